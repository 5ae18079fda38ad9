//! Changes made by the library and by the tool.

use chainwright::legacy::{ChainId, Counters};

use super::*;

/// A change by the tool's command, and the same one with the library. The latter gets the table as
/// the tool left it, from which it copies the bytes of new rules.
type Change = (&'static str, fn(&mut TableEditor<'_>, &Table));

#[test]
fn edits_match_the_real_tool() {
    fn id(editor: &TableEditor<'_>, name: &str) -> ChainId {
        editor.chain(name).unwrap()
    }
    let changes: &[Change] = &[
        (
            "-A INPUT -s 1.2.3.4 ! -i eth1 -p udp -m udp --sport 5:7 -j DROP",
            |editor, real| {
                let rule = copy(editor, &last_rule(real, "INPUT"));
                editor.append(id(editor, "INPUT"), rule).unwrap();
            },
        ),
        ("-N gamma", |editor, _| {
            _ = editor.add_chain("gamma").unwrap()
        }),
        ("-N AAA", |editor, _| _ = editor.add_chain("AAA").unwrap()),
        (
            "-I INPUT 2 -m comment --comment new -g gamma",
            |editor, real| {
                let rule = real.chain("INPUT").unwrap().rules().nth(1).unwrap();
                let rule = copy(editor, &rule);
                editor.insert(id(editor, "INPUT"), 1, rule).unwrap();
            },
        ),
        ("-E alpha zz", |editor, _| {
            editor.rename_chain(id(editor, "alpha"), "zz").unwrap()
        }),
        ("-E zeta Alpha", |editor, _| {
            editor.rename_chain(id(editor, "zeta"), "Alpha").unwrap()
        }),
        ("-D INPUT 1", |editor, _| {
            editor.remove(id(editor, "INPUT"), 0).unwrap()
        }),
        ("-F zz", |editor, _| editor.flush(id(editor, "zz")).unwrap()),
        ("-X zz", |editor, _| {
            editor.remove_chain(id(editor, "zz")).unwrap()
        }),
        ("-R INPUT 2 -i lo", |editor, real| {
            let rule = real.chain("INPUT").unwrap().rules().nth(1).unwrap();
            let rule = copy(editor, &rule);
            editor.replace(id(editor, "INPUT"), 1, rule).unwrap();
        }),
        ("-Z INPUT 3", |editor, _| {
            editor.zero_rule(id(editor, "INPUT"), 2).unwrap()
        }),
        ("-P FORWARD DROP", |editor, _| {
            let forward = editor.builtin(Hook::Forward).unwrap();
            editor.set_policy(forward, Policy::Drop).unwrap();
            // The tool does this too.
            editor
                .set_policy_counters(forward, Counters::default())
                .unwrap();
        }),
        ("-c 77 78 -A OUTPUT -j ACCEPT", |editor, real| {
            let rule = copy(editor, &last_rule(real, "OUTPUT"));
            editor.append(id(editor, "OUTPUT"), rule).unwrap();
        }),
        ("-Z OUTPUT", |editor, _| {
            editor.zero(id(editor, "OUTPUT")).unwrap()
        }),
        ("-Z", |editor, _| {
            let ids: Vec<_> = editor.chains().map(|chain| chain.id()).collect();
            for id in ids {
                editor.zero(id).unwrap();
            }
        }),
        ("-F", |editor, _| {
            let ids: Vec<_> = editor.chains().map(|chain| chain.id()).collect();
            for id in ids {
                editor.flush(id).unwrap();
            }
        }),
        ("-X", |editor, _| editor.clear()),
    ];
    let (real, chainwright) = (sandbox(), sandbox());
    let (their_tools, our_tools) = (Tools::new(&real), Tools::new(&chainwright));
    for tools in [&their_tools, &our_tools] {
        tools.run_with("iptables-legacy-restore --counters", FILTER);
    }
    let (their, our) = (open(&real, Family::Ipv4), open(&chainwright, Family::Ipv4));
    for (command, change) in changes {
        their_tools.run(&format!("iptables-legacy {command}"));
        let wanted = read(&their, "filter");
        let old = read(&our, "filter");
        let mut editor = TableEditor::of(&old);
        change(&mut editor, &wanted);
        replace(&our, &editor);
        assert_eq!(
            our_tools.save("iptables-legacy-save -c"),
            their_tools.save("iptables-legacy-save -c"),
            "{command}"
        );
        let new = read(&our, "filter");
        assert_eq!(new.info(), wanted.info(), "{command}");
        assert!(new.entries() == wanted.entries(), "{command}");
    }
}
