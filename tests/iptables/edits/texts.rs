//! Texts restored by the library and by the real tool.

use super::*;
use crate::common::connect;
use crate::common::iptables::{ALL, state};

/// The content of the tables before a text is restored.
fn start(family: Family) -> String {
    let net = match family {
        Family::Ipv4 => "10.0.0.0/8",
        Family::Ipv6 => "fd00::/8",
    };
    format!(
        "*filter
:INPUT DROP [7:700]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [9:900]
:kept - [0:0]
:used - [0:0]
[1:100] -A INPUT -s {net} -j used
[2:200] -A INPUT -i eth0 -m comment --comment \"to stay\" -j ACCEPT
[3:300] -A kept -p tcp -j RETURN
[4:400] -A used -g kept
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
[5:500] -A PREROUTING -d {net} -j MARK --set-xmark 0x1/0xff
COMMIT
"
    )
}

/// Removes the counters in which the tool errs: the legacy one forgets those of policies whenever a table is
/// changed, ip6tables-nft 1.8.9 those of new rules.
fn normalized(save: &str, backend: Backend, family: Family) -> String {
    let mut text = String::new();
    for line in save.lines() {
        match line.split_once(" [") {
            Some((head, _)) if line.starts_with(':') && backend == Backend::Legacy => {
                let _ = writeln!(text, "{head}");
            }
            _ if line.starts_with('[') && (backend, family) == (Backend::Nft, Family::Ipv6) => {
                let _ = writeln!(text, "{}", line.split_once(' ').unwrap().1);
            }
            _ => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

/// The library's options for the real tool's arguments.
fn options(arguments: &str) -> RestoreOptions {
    let mut words = arguments.split_whitespace();
    let mut options = RestoreOptions::default();
    while let Some(word) = words.next() {
        match word {
            "--noflush" => options.noflush = true,
            "--counters" => options.counters = true,
            "--test" => options.test = true,
            "-T" => options.table = words.next().map(str::to_owned),
            other => panic!("{other}"),
        }
    }
    options
}

/// Texts that both restore onto the same tables. `4` or `6` at the start of a line restricts it to that family.
const TEXTS: &[&str] = &[
    // Only chain declarations, all of them.
    "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [5:6]\n:OUTPUT ACCEPT [1:2]\nCOMMIT\n",
    // Some built-in chains, an existing chain, a new one, counters in both forms.
    "*filter\n:FORWARD DROP [5:6]\n:kept - [0:0]\n:new - [3:4]\n[11:12] -A new -j RETURN\n\
     [13:14] -A kept -p udp -j new\n-A FORWARD -i eth1 -j kept\nCOMMIT\n",
    // No declarations at all.
    "*filter\n-A INPUT -p tcp -j ACCEPT\n-I INPUT 1 -p udp -j DROP\n-P FORWARD DROP\nCOMMIT\n",
    // Comment lines, empty lines, blanks and quotes.
    "# one\n\n*filter\n# two\n:INPUT ACCEPT [0:0]\n\n:new - [0:0]\n\
     -A new   -m comment\t--comment \"a b\" \n\
     -A new -m comment --comment \"q \\\" b \\\\ ' $x\" -j ACCEPT\n-A new -m comment --comment it's\n\
     -A new -m comment --comment \"\" -j \"RETURN\"\n# three\nCOMMIT\n# four\n",
    // Lines for one family.
    "*filter\n-4 -A INPUT -s 1.2.3.4 -j ACCEPT\n-6 -A INPUT -s 2001:db8::1 -j ACCEPT\n\
     -A INPUT -4 -p tcp\n-A INPUT --ipv6 -p udp\nCOMMIT\n",
    // Several addresses.
    "*filter\n4-A FORWARD -s 1.2.3.4,5.6.0.0/16 -d 10.1.1.1,10.1.1.2 -j ACCEPT\n\
     6-A FORWARD -s fd00::1,fd00::2 -d fd01::/16,fd02::/17 -j DROP\n\
     4-I FORWARD -s 9.9.9.9,8.8.8.8 -j DROP\n4[5:6] -A OUTPUT -d 1.1.1.1,2.2.2.2\nCOMMIT\n",
    // Several tables, one of which does not exist yet.
    "*mangle\n:PREROUTING DROP [0:0]\n-A OUTPUT -j MARK --set-mark 7\nCOMMIT\n*filter\n:new - [0:0]\n\
     -A new -j DROP\nCOMMIT\n*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT DROP [2:3]\n\
     -A OUTPUT -p tcp -j ACCEPT\nCOMMIT\n",
    // The same table twice.
    "*filter\n:one - [0:0]\n-A one -j DROP\nCOMMIT\n*mangle\n-A INPUT -j ACCEPT\nCOMMIT\n\
     *filter\n:two - [0:0]\n-A two -j ACCEPT\nCOMMIT\n",
    // A chain declared twice, with rules between.
    "*filter\n:one - [0:0]\n-A one -p tcp -j DROP\n:one - [0:0]\n-A one -p udp -j ACCEPT\n\
     -A one -j RETURN\nCOMMIT\n",
    // Empty tables.
    "*mangle\nCOMMIT\n",
    "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n",
    "",
    "# nothing\n\n",
    // Long names of options and prefixes of them. The real tool misreads `--jump=ACCEPT` and `-ptcp`.
    "*filter\n--append INPUT --source 1.2.3.4 --jump ACCEPT\n--insert INPUT --prot tcp --jump DROP\n\
     --new-chain n\n-A INPUT --prot tcp --goto n\n-A n ! --in-interface eth0 --match comment --comm x\n\
     --policy FORWARD DROP\nCOMMIT\n",
];

/// The lines of one family; for long options with an IPv4 address only IPv4.
fn text_for(text: &str, family: Family) -> String {
    let (own, other) = match family {
        Family::Ipv4 => ('4', '6'),
        Family::Ipv6 => ('6', '4'),
    };
    let mut lines = String::new();
    for line in text.lines().filter(|line| !line.starts_with(other)) {
        lines += line.strip_prefix(own).unwrap_or(line);
        lines.push('\n');
    }
    if family == Family::Ipv6 {
        lines = lines.replace("--source 1.2.3.4", "--source fd00::1");
    }
    lines
}

#[track_caller]
fn restored(backend: Backend, family: Family) {
    let mut wrong = Vec::new();
    for text in TEXTS {
        let text = text_for(text, family);
        for arguments in [
            "",
            "--counters",
            "--noflush",
            "--noflush --counters",
            "--test",
            "--noflush -T filter",
            "-T mangle",
        ] {
            if text.matches(":one ").count() == 2 && !arguments.contains("--noflush") {
                continue; // the legacy tool treats that as an error
            }
            // Commands that delete or have numbers are made for these tables.
            let (ours, theirs) = (sandbox(), sandbox());
            let (our_tools, their_tools) = (Tools::new(&ours), Tools::new(&theirs));
            let real = tool(backend, family, "-restore");
            for tools in [&our_tools, &their_tools] {
                tools.run_with(&format!("{real} --counters"), &start(family));
            }
            let context = format!("{real} {arguments}\n{text}");
            if let Err(error) = their_tools.takes(&format!("{real} {arguments}"), &text) {
                wrong.push(format!("{context}the real tool: {error}"));
                continue;
            }
            let save = |text: String| normalized(&text, backend, family);
            let before = save(real_save(&our_tools, backend, family));
            let options = options(arguments);
            let wanted = options.table.as_ref().map(|table| format!("*{table}\n"));
            let result = open(&ours, backend).restore(family, &text, &options);
            if wanted.is_some_and(|wanted| !text.contains(&wanted)) {
                // The real tool does nothing and prints nothing.
                if !matches!(result, Err(Error::NotInText { .. })) {
                    wrong.push(format!("{context}{result:?}"));
                }
            } else if let Err(error) = result {
                wrong.push(format!("{context}{error}"));
                continue;
            }
            let expected = match (backend, arguments) {
                // The real tool creates the tables of a text that it only tests.
                (Backend::Legacy, "--test") => before,
                _ => save(real_save(&their_tools, backend, family)),
            };
            let found = save(real_save(&our_tools, backend, family));
            if expected != found {
                wrong.push(format!(
                    "{context}--- expected\n{expected}--- found\n{found}"
                ));
            }
            let printed = save(our_save(&ours, backend, family));
            if printed != found {
                wrong.push(format!(
                    "{context}--- saved\n{found}--- our save\n{printed}"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn restore_matches_the_real_tool_in_nf_tables() {
    restored(Backend::Nft, Family::Ipv4);
}

#[test]
fn restore_matches_the_real_tool_in_ipv6_nf_tables() {
    restored(Backend::Nft, Family::Ipv6);
}

#[test]
fn restore_matches_the_real_tool_in_legacy_tables() {
    restored(Backend::Legacy, Family::Ipv4);
}

#[test]
fn restore_matches_the_real_tool_in_ipv6_legacy_tables() {
    restored(Backend::Legacy, Family::Ipv6);
}

/// The effect of a text on a policy and its counters, as with iptables 1.8.13 in nf_tables and in legacy tables.
#[test]
fn policies_get_the_counters_of_the_text() {
    for (lines, arguments, nft, legacy) in [
        (
            ":INPUT ACCEPT [7:700]",
            "--noflush",
            "ACCEPT [0:0]",
            "ACCEPT [0:0]",
        ),
        (
            ":INPUT ACCEPT [7:700]",
            "--counters",
            "ACCEPT [7:700]",
            "ACCEPT [7:700]",
        ),
        (":INPUT - [7:700]", "", "ACCEPT [0:0]", "DROP [5:500]"),
        (
            ":INPUT - [7:700]",
            "--counters",
            "ACCEPT [7:700]",
            "DROP [5:500]",
        ),
        (
            ":INPUT - [7:700]",
            "--noflush",
            "DROP [0:0]",
            "DROP [5:500]",
        ),
        (
            ":INPUT - [7:700]",
            "--noflush --counters",
            "DROP [7:700]",
            "DROP [5:500]",
        ),
        ("-P INPUT ACCEPT", "", "ACCEPT [0:0]", "ACCEPT [0:0]"),
        ("-P INPUT DROP", "--noflush", "DROP [0:0]", "DROP [0:0]"),
        (
            "[9:900] -P INPUT DROP",
            "--noflush",
            "DROP [0:0]",
            "DROP [0:0]",
        ),
        (
            "[9:900] -P INPUT DROP",
            "--noflush --counters",
            "DROP [0:0]",
            "DROP [9:900]",
        ),
        (
            "-P INPUT DROP -c 3 4",
            "--noflush",
            "DROP [0:0]",
            "DROP [3:4]",
        ),
        (
            ":INPUT DROP [7:700]\n-P INPUT ACCEPT",
            "--counters",
            "ACCEPT [0:0]",
            "ACCEPT [0:0]",
        ),
        ("-F INPUT", "--noflush", "DROP [5:500]", "DROP [5:500]"),
    ] {
        for (backend, expected) in [(Backend::Nft, nft), (Backend::Legacy, legacy)] {
            let sandbox = sandbox();
            let mut iptables = open(&sandbox, backend);
            let mut restore = |lines: &str, arguments: &str| {
                let text = format!("*filter\n{lines}\nCOMMIT\n");
                let restored = iptables.restore(Family::Ipv4, text, &options(arguments));
                restored.unwrap_or_else(|error| panic!("{lines}: {error}"));
            };
            restore(
                ":INPUT DROP [5:500]\n:FORWARD DROP [6:600]\n:OUTPUT ACCEPT [0:0]",
                "--counters",
            );
            restore(lines, arguments);
            let saved = our_save(&sandbox, backend, Family::Ipv4);
            let line = saved.lines().find(|line| line.starts_with(":INPUT"));
            let expected = format!(":INPUT {expected}");
            assert_eq!(
                line,
                Some(&expected[..]),
                "{backend:?} {arguments}: {lines}"
            );
        }
    }
    // Counters that are given twice.
    for (arguments, is_taken) in [("--noflush", true), ("--noflush --counters", false)] {
        for backend in [Backend::Nft, Backend::Legacy] {
            let text = "*filter\n[9:900] -A INPUT -p tcp -c 3 4\nCOMMIT\n";
            let restored =
                open(&sandbox(), backend).restore(Family::Ipv4, text, &options(arguments));
            assert_eq!(restored.is_ok(), is_taken, "{backend:?} {arguments}");
        }
    }
}

#[test]
fn both_families_are_restored_in_one_generation() {
    for (backend, _) in [ALL[0], ALL[2]] {
        let (ours, theirs) = (sandbox(), sandbox());
        let (our_tools, their_tools) = (Tools::new(&ours), Tools::new(&theirs));
        let texts = [Family::Ipv4, Family::Ipv6].map(|family| (family, start(family)));
        let before = connect(&ours).generation().unwrap().number();
        let mut iptables = open(&ours, backend);
        let inputs = texts
            .each_ref()
            .map(|(family, text)| (*family, text.as_bytes()));
        let with_counters = options("--counters");
        let restored = iptables.restore_all(&inputs, &with_counters).unwrap();
        assert_eq!(
            (restored.tables, restored.chains, restored.rules),
            (4, 20, 10)
        );
        if backend == Backend::Nft {
            let after = connect(&ours).generation().unwrap().number();
            assert_eq!(after, before + 1);
        }
        for (family, text) in &texts {
            their_tools.run_with(&tool(backend, *family, "-restore --counters"), text);
            let save = |tools| normalized(&real_save(tools, backend, *family), backend, *family);
            assert_eq!(save(&our_tools), save(&their_tools));
            assert!(real_save(&our_tools, backend, *family).contains("[4:400] -A used"));
        }
        // An error in the second text also reverts the first.
        let before = state(&ours, backend);
        let bad = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tpc\nCOMMIT\n";
        let inputs = [(Family::Ipv4, "*filter\nCOMMIT\n"), (Family::Ipv6, bad)];
        let inputs = inputs.map(|(family, text)| (family, text.as_bytes()));
        let error = iptables.restore_all(&inputs, &with_counters).unwrap_err();
        assert_eq!(
            error.to_string(),
            "IPv6: line 3, column 13: `tpc` is not a protocol number or name (did you mean tcp?)"
        );
        assert!(state(&ours, backend) == before);
    }
}
