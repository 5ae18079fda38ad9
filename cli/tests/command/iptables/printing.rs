//! How `rules`, `chains`, `sets` and `save` print rules, tables and sets.

use chainwright::nft::expr::Immediate;
use chainwright::nft::{Chain, Rule, Transaction};

use super::*;

#[test]
fn rules_without_iptables_syntax_are_never_omitted_silently() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    run_with(&sandbox, "apply", TEXT).expect(0);
    tools.run("nft add rule ip filter KUBE-FIREWALL meta length 5 drop");
    let ran = run(&sandbox, "get ruleset -o iptables").expect(2);
    assert!(
        ran.out
            .contains("# a rule of KUBE-FIREWALL that iptables cannot express")
    );
    assert!(ran.out.contains("#   meta length 5 drop\n"), "{}", ran.out);
    assert!(ran.err.contains("cannot express 1 rule;"), "{}", ran.err);
    // The other table can be saved completely.
    run(&sandbox, "get ruleset -o iptables -t nat").expect(0);

    tools.run("nft add chain ip nat early { type nat hook prerouting priority -150 ; }");
    let ran = run(&sandbox, "get ruleset -o iptables").expect(2);
    assert!(ran.err.contains("1 rule and 1 chain;"), "{}", ran.err);
    let ran = run(&sandbox, "get ruleset -o iptables --json").expect(2);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let tables = document["tables"].as_array().unwrap();
    let rules = tables
        .iter()
        .flat_map(|table| table["chains"].as_array().unwrap())
        .flat_map(|chain| chain["rules"].as_array().unwrap());
    assert_eq!(
        rules
            .filter(|rule| rule["not_expressible"].is_string())
            .count(),
        1
    );
}

/// Rules of a legacy table are listed by number under their chains, in iptables' language where it
/// has words for them.
#[test]
fn rules_of_legacy_tables_are_listed() {
    let sandbox = sandbox();
    let restore = "apply -c --lock none --backend legacy";
    run_with(&sandbox, restore, TEXT).expect(0);
    let ran = run(&sandbox, "get rules --backend legacy").expect(0);
    let saved = Tools::new(&sandbox).save("iptables-legacy-save -c");
    let printed = |line: &str| {
        line.trim_start()
            .splitn(3, ' ')
            .last()
            .unwrap()
            .trim_start()
            .to_owned()
    };
    let listed: Vec<_> = ran
        .out
        .lines()
        .filter(|line| line.starts_with("  number "))
        .map(printed)
        .collect();
    let real = saved.lines().filter(|line| line.starts_with('['));
    let real: Vec<_> = real
        .map(|line| {
            let (counters, rest) = line.split_once(" -A ").unwrap();
            format!("{counters} {}", rest.split_once(' ').unwrap().1)
        })
        .collect();
    let (mut one, mut other) = (listed.clone(), real);
    one.sort();
    other.sort();
    assert_eq!(one, other);
    assert!(
        ran.out.contains("  number 2      [2:120] -j KUBE-FIREWALL"),
        "{}",
        ran.out
    );
    // `chains` lists the same chains.
    let chains = run(&sandbox, "get chains --backend legacy --rules").expect(0);
    let heads: Vec<_> = ran
        .out
        .lines()
        .filter(|line| !line.starts_with(' '))
        .collect();
    assert_eq!(heads, chains.out.lines().collect::<Vec<_>>());
    // Together with those of nf_tables, and filtered.
    run_with(&sandbox, "apply", "*filter\n-A INPUT -j DROP\nCOMMIT\n").expect(0);
    let both = run(&sandbox, "get rules --table filter").expect(0);
    assert!(both.out.contains("nft    ip     filter"), "{}", both.out);
    assert!(both.out.contains("legacy ip     filter"), "{}", both.out);
    for (arguments, rules) in [
        ("-6", 0),
        ("-4 -t nat", 1),
        ("--match KUBE-*", 1),
        ("--match {IN,OUT}PUT -t nat", 0),
    ] {
        let ran = run(&sandbox, &format!("get rules --backend legacy {arguments}"));
        assert_eq!(
            ran.out.matches("  number ").count(),
            rules,
            "{arguments}: {}",
            ran.out
        );
    }
    let ran = run(&sandbox, "get rules --backend legacy --bytecode").expect(2);
    assert!(ran.err.contains("no bytecode"), "{}", ran.err);
    let ran = run(&sandbox, "get sets --backend legacy").expect(2);
    assert!(ran.err.contains("no sets of their own"), "{}", ran.err);
    for verb in ["rules", "chains"] {
        run(&sandbox, &format!("{verb} --backend legacy --family inet")).expect(2);
    }
    for verb in ["save", "restore"] {
        let ran = run(&sandbox, &format!("{verb} --backend all")).expect(2);
        assert!(ran.err.contains("tables of one backend"), "{}", ran.err);
        let ran = run(&sandbox, &format!("{verb} --family inet")).expect(2);
        assert!(ran.err.contains("families ip and ip6"), "{}", ran.err);
        let ran = run_with(&sandbox, &format!("{verb} --family ip6 --backend nft"), "");
        assert!(ran.code < 2, "{}", ran.err);
    }
    // A backup of nf_tables contains no legacy tables and reports that.
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    let ran = run(&sandbox, &format!("snapshot {path}")).expect(0);
    assert!(
        ran.err.contains("not in this file: ip nat, ip filter")
            || ran.err.contains("not in this file: ip filter, ip nat"),
        "{}",
        ran.err
    );
    let ran = run(&sandbox, &format!("snapshot {path} -6")).expect(0);
    assert_eq!(ran.err, "");
}

/// A legacy table that iptables cannot express: ARP rules, which are printed as bytes.
#[test]
fn arp_rules_are_not_printed_as_iptables_rules() {
    let sandbox = sandbox();
    if !crate::common::arp::drop_all(&sandbox) {
        return;
    }
    let ran = run(&sandbox, "get rules --backend legacy --family arp").expect(0);
    assert!(ran.out.contains("  number 1      [0:0] [ "), "{}", ran.out);
    let ran = run(&sandbox, "get rules --json --backend legacy").expect(0);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let rule = &document["legacy"][0]["chains"][0]["rules"][0];
    assert!(rule["not_expressible"].is_string(), "{rule}");
    assert_eq!(rule.get("rule"), None);
}

/// A text with such names would be parsed as something else, or not at all.
#[test]
fn chains_with_odd_names_are_printed_unambiguously() {
    let sandbox = sandbox();
    run_with(&sandbox, "apply", TEXT).expect(0);
    let before = run(&sandbox, "get ruleset -o iptables").expect(0).text();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    for name in ["ACCEPT", "two words", "end\n-A INPUT", &"x".repeat(29)] {
        let jump = Rule::new(Family::IP, "filter", "INPUT").with(&Immediate::jump(name));
        let own = Rule::new(Family::IP, "filter", name).with(&Immediate::drop());
        tx.add(&Chain::new(Family::IP, "filter", name)).unwrap();
        tx.add(&own).unwrap().add(&jump).unwrap();
    }
    nft.commit(&tx).unwrap();
    let ran = run(&sandbox, "get ruleset -o iptables").expect(2);
    assert!(ran.err.contains("4 rules and 4 chains;"), "{}", ran.err);
    // The text contained only comments, so restoring it changed nothing.
    assert_eq!(ran.text(), before);
    Tools::new(&sandbox).run_with("iptables-nft-restore", &ran.out);
    assert_eq!(
        run(&sandbox, "get ruleset -o iptables").expect(0).text(),
        before
    );

    let mut tx = Transaction::new();
    tx.add(&Chain::new(Family::IP, "filter", "ACCEPT")).unwrap();
    nft.commit(&tx).unwrap();
    let ran = run(&sandbox, "get ruleset -o iptables --json -t filter").expect(2);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let mut chains = document["tables"][0]["chains"].as_array().unwrap().iter();
    let odd = chains.find(|chain| chain["chain"] == "ACCEPT").unwrap();
    assert!(
        odd["not_expressible"].as_str().unwrap().contains("target"),
        "{odd}"
    );
}

#[test]
fn sets_are_always_printed_by_name() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("ipset create other hash:ip");
    tools.run("ipset create four hash:ip");
    let rule = "-m set --match-set four src -j DROP";
    tools.run(&format!("iptables-nft -A INPUT {rule}"));
    let ran = run(&sandbox, "get ruleset -o iptables --json").expect(0);
    assert!(ran.out.contains(rule), "{}", ran.out);
    let ran = run(&sandbox, "get rules").expect(0);
    assert!(ran.out.contains(rule), "{}", ran.out);
}

#[test]
fn tables_of_sets_alone_have_bytecode() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    run(&sandbox, "get rules --bytecode").expect(1);
    tools.run("nft add table ip x");
    tools.run("nft add set ip x s { type mark ; elements = { 7 } ; }");
    let ran = run(&sandbox, "get rules --bytecode").expect(0);
    assert!(ran.out.contains("element 00000007"), "{}", ran.out);
}

/// Texts longer than the field are truncated as the real tool truncates them, and still find their
/// rule; standard error has a warning.
#[test]
fn overlong_texts_are_truncated_with_a_warning() {
    let long = |letter: &str, length| letter.repeat(length);
    let rules = [
        (
            format!("-m comment --comment {} -j ACCEPT", long("c", 300)),
            "comment",
            300,
            255,
        ),
        (
            format!("-j LOG --log-prefix {}", long("l", 40)),
            "log-prefix",
            40,
            29,
        ),
        (
            format!("-j NFLOG --nflog-prefix {}", long("n", 64)),
            "nflog-prefix",
            64,
            63,
        ),
    ];
    let lines: Vec<_> = rules
        .iter()
        .map(|(rule, ..)| format!("-A INPUT {rule}\n"))
        .collect();
    let text = format!("*filter\n{}COMMIT\n", lines.concat());
    for backend in ["nft", "legacy"] {
        let (real, chainwright) = (sandbox(), sandbox());
        let restore = format!("apply --lock none --backend {backend}");
        let ran = run_with(&chainwright, &restore, &text).expect(0);
        let wanted: Vec<_> = (2..)
            .zip(&rules)
            .map(|(line, (_, option, length, kept))| {
                format!(
                    "<stdin>:{line}: warning: --{option}: truncated from {length} to {kept} bytes, as iptables does\n"
                )
            })
            .collect();
        assert_eq!(ran.err, wanted.concat(), "{backend}");
        let tools = Tools::new(&real);
        tools.run_with(&format!("iptables-{backend}-restore"), &text);
        let save = format!("iptables-{backend}-save");
        let saved = Tools::new(&chainwright).save(&save);
        match backend {
            // 1.8.9 has room for 127 bytes; the form of 1.8.7 has less.
            "nft" => assert!(
                tools
                    .save(&save)
                    .starts_with(&saved[..saved.find("NFLOG").unwrap()])
            ),
            _ => assert_eq!(saved, tools.save(&save)),
        }
        // The same text finds the rules, also in the real tool.
        let with = |verb: &str| text.replace("-A INPUT", verb);
        run_with(&chainwright, &format!("{restore} -n"), &with("-C INPUT")).expect(0);
        if backend == "legacy" {
            let check = format!("iptables-{backend}-restore -n");
            Tools::new(&chainwright).run_with(&check, &with("-C INPUT"));
        }
        let deleted = run_with(
            &chainwright,
            &format!("{restore} -n --json"),
            &with("-D INPUT"),
        )
        .expect(0);
        let record: Value = serde_json::from_str(&deleted.out).unwrap();
        assert_eq!(record["shortened"].as_array().unwrap().len(), 3);
        assert!(!Tools::new(&chainwright).save(&save).contains("-A"));
    }
    // In a form that has room for the text.
    let sandbox = sandbox();
    let ran = run_with(&sandbox, "apply --profile 1.8.8", &text).expect(0);
    assert!(!ran.err.contains("nflog-prefix"), "{}", ran.err);
    let many = "-A INPUT -j LOG --log-prefix 0123456789012345678901234567890\n".repeat(25);
    let ran = run_with(&sandbox, "apply", &format!("*filter\n{many}COMMIT\n")).expect(0);
    assert_eq!(ran.err.lines().count(), 11, "{}", ran.err);
    assert!(ran.err.contains("15 more texts"), "{}", ran.err);
}

/// Words that no other tool knows are marked in the output.
#[test]
fn private_words_are_marked_as_private() {
    // A bridge port whose second byte is not compared.
    let data = format!("65746800{:0>24}ff00ffff{:0>24}{:0>64}0001", "", "", "");
    let text = format!(
        "*filter\n-A FORWARD -m physdev --xt-revision 0 --xt-data {data}000000000000\nCOMMIT\n"
    );
    let sandbox = sandbox();
    for backend in ["nft", "legacy"] {
        let restore = format!("apply --lock none --backend {backend}");
        run_with(&sandbox, &restore, &text).expect(0);
        for json in ["", " --json"] {
            let ran = run(
                &sandbox,
                &format!("get ruleset -o iptables --backend {backend}{json}"),
            )
            .expect(2);
            assert!(ran.out.contains("--xt-data"), "{}", ran.out);
            assert!(
                ran.err
                    .contains("1 rule has options that only `chainwright apply` knows"),
                "{}",
                ran.err
            );
            if json.is_empty() {
                // Our own restore reads it as a complete copy.
                run_with(&sandbox, &restore, &ran.out).expect(0);
                let again = run(
                    &sandbox,
                    &format!("get ruleset -o iptables --backend {backend}"),
                )
                .expect(2);
                assert_eq!(again.out, ran.out);
            }
        }
    }
    let help = Command::new(PROGRAM)
        .args(["get", "ruleset", "--help"])
        .output()
        .unwrap();
    assert!(
        String::from_utf8(help.stdout)
            .unwrap()
            .contains("--xt-data")
    );
}
