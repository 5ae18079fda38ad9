//! Changes made by the library and by the tool.

use chainwright::legacy::{ChainId, Counters};

use super::*;

/// A change by the tool's command, and the same one with the library. The latter gets the table as
/// the tool left it, from which it copies the bytes of new rules.
type Change = (&'static str, fn(&mut Draft<'_>, &Table));

#[test]
fn changes_are_those_that_the_tool_makes() {
    fn id(draft: &Draft<'_>, name: &str) -> ChainId {
        draft.chain(name).unwrap()
    }
    let changes: &[Change] = &[
        (
            "-A INPUT -s 1.2.3.4 ! -i eth1 -p udp -m udp --sport 5:7 -j DROP",
            |draft, theirs| {
                let rule = copy(draft, &last_rule(theirs, "INPUT"));
                draft.append(id(draft, "INPUT"), rule).unwrap();
            },
        ),
        ("-N gamma", |draft, _| _ = draft.add_chain("gamma").unwrap()),
        ("-N AAA", |draft, _| _ = draft.add_chain("AAA").unwrap()),
        (
            "-I INPUT 2 -m comment --comment new -g gamma",
            |draft, theirs| {
                let rule = theirs.chain("INPUT").unwrap().rules().nth(1).unwrap();
                let rule = copy(draft, &rule);
                draft.insert(id(draft, "INPUT"), 1, rule).unwrap();
            },
        ),
        ("-E alpha zz", |draft, _| {
            draft.rename_chain(id(draft, "alpha"), "zz").unwrap()
        }),
        ("-E zeta Alpha", |draft, _| {
            draft.rename_chain(id(draft, "zeta"), "Alpha").unwrap()
        }),
        ("-D INPUT 1", |draft, _| {
            draft.remove(id(draft, "INPUT"), 0).unwrap()
        }),
        ("-F zz", |draft, _| draft.flush(id(draft, "zz")).unwrap()),
        ("-X zz", |draft, _| {
            draft.remove_chain(id(draft, "zz")).unwrap()
        }),
        ("-R INPUT 2 -i lo", |draft, theirs| {
            let rule = theirs.chain("INPUT").unwrap().rules().nth(1).unwrap();
            let rule = copy(draft, &rule);
            draft.replace(id(draft, "INPUT"), 1, rule).unwrap();
        }),
        ("-Z INPUT 3", |draft, _| {
            draft.zero_rule(id(draft, "INPUT"), 2).unwrap()
        }),
        ("-P FORWARD DROP", |draft, _| {
            let forward = draft.builtin(Hook::Forward).unwrap();
            draft.set_policy(forward, Policy::Drop).unwrap();
            // The tool does this too.
            draft
                .set_policy_counters(forward, Counters::default())
                .unwrap();
        }),
        ("-c 77 78 -A OUTPUT -j ACCEPT", |draft, theirs| {
            let rule = copy(draft, &last_rule(theirs, "OUTPUT"));
            draft.append(id(draft, "OUTPUT"), rule).unwrap();
        }),
        ("-Z OUTPUT", |draft, _| {
            draft.zero(id(draft, "OUTPUT")).unwrap()
        }),
        ("-Z", |draft, _| {
            let ids: Vec<_> = draft.chains().map(|chain| chain.id()).collect();
            for id in ids {
                draft.zero(id).unwrap();
            }
        }),
        ("-F", |draft, _| {
            let ids: Vec<_> = draft.chains().map(|chain| chain.id()).collect();
            for id in ids {
                draft.flush(id).unwrap();
            }
        }),
        ("-X", |draft, _| draft.clear()),
    ];
    let (theirs, ours) = (sandbox(), sandbox());
    let (their_tools, our_tools) = (Tools::new(&theirs), Tools::new(&ours));
    for tools in [&their_tools, &our_tools] {
        tools.run_with("iptables-legacy-restore --counters", FILTER);
    }
    let (their, our) = (open(&theirs, Family::Ipv4), open(&ours, Family::Ipv4));
    for (command, change) in changes {
        their_tools.run(&format!("iptables-legacy {command}"));
        let wanted = read(&their, "filter");
        let old = read(&our, "filter");
        let mut draft = Draft::of(&old);
        change(&mut draft, &wanted);
        replace(&our, &draft);
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
