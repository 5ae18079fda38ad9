//! Tests what lists of calls cannot compare: tables that a listing creates, tables with native nft
//! rules, help, translations, XML, pipes, and programs that only have a name.

mod messages;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use super::*;

impl Side {
    fn shell(&self, line: &str) -> String {
        let ran = self.run_path(Path::new("sh"), &["-c", line], "");
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        ran.out
    }

    fn call(&self, line: &str, input: &str) -> Ran {
        self.run(&self.directory, &words(line), input)
    }
}

/// Returns the real side and ours.
fn sides(backend: &'static str, links: &TempDir) -> [Side; 2] {
    let real = find("iptables-nft-save").parent().unwrap().to_owned();
    [Side::new(&real, backend), Side::new(links.path(), backend)]
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Programs read `/proc/net/ip_tables_names`, and expect a table to have its built-in chains.
#[test]
fn listing_creates_the_same_tables_as_the_real_programs() {
    let links = links();
    let calls = [
        "-t T -L",
        "-t T -S",
        "-t T -n -L",
        "-t T -nL OUTPUT",
        "-t T -L NONE",
        "-t T -C OUTPUT -j ACCEPT",
        "-t T -D OUTPUT 1",
        "-t T -Z",
        "-t T -F",
        "-t T -X",
        "-t T -X NONE",
        "-V",
        "-t none -L",
    ];
    for backend in ["legacy", "nft"] {
        for family in ["ip", "ip6"] {
            let tables = ["filter", "nat", "mangle", "raw", "security"];
            for (place, call) in calls.iter().enumerate() {
                let call = call.replace('T', tables[place % tables.len()]);
                let [their, our] = sides(backend, &links).map(|side| {
                    let ran = side.call(&format!("{family}tables {call}"), "");
                    let names =
                        format!("cat /proc/net/{family}_tables_names | sort; nft list ruleset");
                    (ran.code, side.shell(&names))
                });
                assert_eq!(their, our, "{backend} {family}: {call}");
            }
            for call in ["", "-t nat", "-t raw -c", "-t none"] {
                let [their, our] = sides(backend, &links).map(|side| {
                    let ran = side.call(format!("{family}tables-save {call}").trim_end(), "");
                    let names = format!("cat /proc/net/{family}_tables_names; nft list ruleset");
                    (ran.code, without_comments(&ran.out), side.shell(&names))
                });
                assert_eq!(their, our, "{backend} {family}: save {call}");
            }
        }
    }
    let [their, our] = sides("legacy", &links).map(|side| {
        let text = "*mangle\n-A OUTPUT -j ACCEPT\nCOMMIT\n";
        let code = side.call("iptables-restore --test", text).code;
        (code, side.shell("cat /proc/net/ip_tables_names"))
    });
    assert_eq!(their, our);
    // Our own verbs create no tables.
    let side = Side::new(links.path(), "legacy");
    for verb in [
        "save --backend legacy",
        "save --backend nft",
        "chains --backend legacy",
        "rules",
    ] {
        side.run_path(
            Path::new(PROGRAM),
            &words(verb).iter().map(String::as_str).collect::<Vec<_>>(),
            "",
        );
    }
    assert_eq!(
        side.shell("cat /proc/net/ip_tables_names; nft list ruleset"),
        ""
    );
}

/// A table that cannot be expressed completely is left out of the saved text, and stays when the
/// text is restored.
#[test]
fn a_table_with_rules_of_nft_is_not_saved_without_them() {
    let links = links();
    for rule in [
        "ct state new meta cgroup 5 accept",
        "ip saddr != 0.0.0.0/0 accept",
        "tcp dport { 22, 80 } accept",
        "meta l4proto 0 accept",
        "sctp dport 67-69 accept",
        "meta mark 1-5 accept",
        "iifname \"a+\" accept",
        "udp dport != 0-65535 accept",
    ] {
        let side = Side::new(links.path(), "nft");
        side.shell(&format!(
            "nft -f - <<'END'\ntable ip filter {{\nchain INPUT {{ type filter hook input priority 0; }}\nchain mine {{ {rule}\n}}\n}}\nEND"
        ));
        side.call("iptables -A INPUT -s 192.0.2.1 -j DROP", "");
        let before = side.shell("nft list ruleset");
        let saved = side.call("iptables-save", "");
        let message = "# Table `filter' is incompatible, use 'nft' tool.\n";
        assert_eq!((saved.code, &*saved.out), (0, message), "{rule}");
        assert_eq!(side.call("iptables-restore", &saved.out).code, 0);
        assert_eq!(side.shell("nft list ruleset"), before, "{rule}");
        for (call, what) in [
            ("-S", "table `filter'"),
            ("-L mine", "chain `mine' in table `filter'"),
        ] {
            let ran = side.call(&format!("iptables {call}"), "");
            let message =
                format!("iptables v1.8.9 (nf_tables): {what} is incompatible, use 'nft' tool.\n");
            assert_eq!(
                (ran.code, &*ran.out, &*ran.err),
                (1, "", &*message),
                "{rule}"
            );
        }
        // A chain without such rules can be listed.
        assert_eq!(side.call("iptables -S INPUT", "").code, 0);
    }
    // Chains with other hooks are left out, as the real program leaves them out.
    let [their, our] = sides("nft", &links).map(|side| {
        side.shell("nft add table ip filter; nft 'add chain ip filter other { type filter hook input priority 5; }'");
        let saved = side.call("iptables-save", "");
        let listed = side.call("iptables -S", "");
        (without_comments(&saved.out), saved.out.contains("contains incompatible base-chains"), listed.out)
    });
    assert_eq!(their, our);
}

/// The real program restores saved nft rules as the same rules.
#[test]
fn saved_nft_rules_can_be_restored() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    let mut rules = vec![
        (
            "ip saddr & 0.0.255.0 != 0.0.3.0".to_owned(),
            "! -s 0.0.3.0/0.0.255.0".to_owned(),
        ),
        ("ip daddr 0.0.0.0/0".to_owned(), String::new()),
        (
            "meta mark & 0 == 0".to_owned(),
            "-m mark --mark 0x0/0x0".to_owned(),
        ),
        (
            "meta mark & 0 != 0".to_owned(),
            "-m mark ! --mark 0x0/0x0".to_owned(),
        ),
        (
            "ip ttl 5-9".to_owned(),
            "-m ttl --ttl-gt 4 -m ttl --ttl-lt 10".to_owned(),
        ),
    ];
    for protocol in ["tcp", "udp"] {
        for (native, text) in [
            ("P dport 67-69", "--dport 67:69"),
            ("P sport 67-69", "--sport 67:69"),
            ("P dport != 67-69", "! --dport 67:69"),
            ("P dport >= 67 P dport <= 69", "--dport 67:69"),
            ("P dport < 70 P dport > 66", "--dport 67:69"),
            ("P dport 6-7 P sport 5-9", "--sport 5:9 --dport 6:7"),
            ("P dport 5-65535", "--dport 5:65535"),
            ("P sport 5-5", "--sport 5"),
        ] {
            let text = format!("-p {protocol} -m {protocol} {text}");
            rules.push((native.replace('P', protocol), text));
        }
    }
    for (native, text) in &rules {
        side.shell(&format!(
            "nft flush ruleset; nft add table ip filter; nft add chain ip filter A; nft add rule ip filter A '{native} accept'"
        ));
        let line = format!("-A A {text} -j ACCEPT\n").replace("  ", " ");
        let saved = side.call("iptables-save", "").out;
        assert!(saved.contains(&line), "{native}: {saved}");
        let ran = side.run(&side.real, &words("iptables-restore"), &saved);
        assert_eq!(ran.code, 0, "{native}: {ran:?}");
        let again = side.call("iptables-save", "").out;
        assert!(again.contains(&line), "{native}: {again}");
    }
}

/// The arguments that added a rule find it again, whatever the rule compares.
#[test]
fn added_rules_can_be_deleted_with_the_same_arguments() {
    let links = links();
    for backend in ["nft", "legacy"] {
        let side = Side::new(links.path(), backend);
        for rule in [
            "-p tcp ! --sport :",
            "-p tcp ! --dport 0:65535",
            "-p udp ! --sport :",
            "-p udp ! --dport : --sport 5",
            "-p tcp ! --sport 0:69",
            "-p tcp --tcp-flags NONE SYN",
            "-p tcp ! --tcp-flags NONE NONE",
            "-p sctp ! --dport :",
            "-p dccp ! --sport :",
            "-m mark ! --mark 0/0",
            "-m length ! --length 0:65535",
            "! -i +",
            "-i +",
            "-p all",
            "-s x/0",
            "-m ttl --ttl-lt 0",
            "-p icmp ! --icmp-type any",
            "-m multiport -p udplite ! --dports 0:65535",
        ] {
            for (verb, code) in [("-A", 0), ("-C", 0), ("-D", 0), ("-C", 1)] {
                let ran = side.call(&format!("iptables {verb} FORWARD {rule} -j ACCEPT"), "");
                assert_eq!(ran.code, code, "{backend}: {verb} {rule}: {ran:?}");
            }
        }
    }
}

/// Chains with names of extensions: older versions created them, and saved texts can contain them.
#[test]
fn chains_with_names_of_targets_are_saved() {
    let links = links();
    for backend in ["nft", "legacy"] {
        let text = "*filter\n:LOG - [0:0]\n:REJECT - [0:0]\n-A INPUT -s 192.0.2.1/32 -j LOG\n-A LOG -g REJECT\n-A REJECT -j DROP\nCOMMIT\n";
        let [their, our] = sides(backend, &links).map(|side| {
            let code = side.call("iptables-restore", text).code;
            let saved = side.call("iptables-save", "");
            let again = side.call("iptables-restore", &saved.out).code;
            let rules = side.call("iptables -S", "").out;
            let verdict = side
                .call("iptables-restore", "*filter\n:RETURN - [0:0]\nCOMMIT\n")
                .code;
            (code, tables(&saved.out), again, rules, verdict)
        });
        assert_eq!(their, our);
        assert!(
            our.1.contains("-A INPUT -s 192.0.2.1/32 -j LOG\n"),
            "{our:?}"
        );
    }
    // A target of this name would be parsed as the chain, so saving fails.
    let side = Side::new(links.path(), "nft");
    side.call("iptables -A INPUT -j LOG --log-prefix a", "");
    side.call("iptables-restore -n", "*filter\n:LOG - [0:0]\nCOMMIT\n");
    let saved = side.call("iptables-save", "");
    assert!(
        saved.out.starts_with("# Table `filter' is incompatible"),
        "{saved:?}"
    );
}

/// firewalld reads the ICMP types from the help.
#[test]
fn help_lists_the_same_names_as_the_real_program() {
    let links = links();
    for (call, heading) in [
        ("iptables -p icmp --help", "Valid ICMP Types:"),
        ("iptables -p icmp -h", "Valid ICMP Types:"),
        ("ip6tables -p ipv6-icmp --help", "Valid ICMPv6 Types:"),
        ("ip6tables -p icmpv6 --help", "Valid ICMPv6 Types:"),
        ("iptables -m icmp -h", "Valid ICMP Types:"),
    ] {
        let [their, our] = sides("nft", &links).map(|side| {
            let ran = side.call(call, "");
            assert_eq!(ran.code, 0, "{ran:?}");
            let lines = ran
                .out
                .lines()
                .skip_while(|line| !line.starts_with(heading));
            lines.map(str::to_owned).collect::<Vec<_>>()
        });
        assert!(their.len() > 20, "{their:?}");
        // 1.8.13 has more names than 1.8.9.
        let missing: Vec<_> = their.iter().filter(|line| !our.contains(line)).collect();
        assert!(missing.is_empty(), "{call}: {missing:?}");
    }
    for (call, parts) in [
        (
            "iptables -m comment -m tcp -h",
            &[
                "comment match options:",
                "--comment",
                "--tcp-flags",
                "--syn",
            ][..],
        ),
        (
            "iptables -j REJECT -h",
            &[
                "REJECT target options:",
                "--reject-with",
                "    icmp-port-unreachable",
                "tcp-reset",
            ],
        ),
        ("ip6tables -j REJECT -h", &["icmp6-no-route"]),
        ("iptables -p tcp -h", &["tcp match options:", "--sport"]),
        ("iptables -m pkttype --help", &["\tbroadcast"]),
    ] {
        for (side, whose) in sides("nft", &links).iter().zip(["theirs", "ours"]) {
            let ran = side.call(call, "");
            assert_eq!(ran.code, 0, "{ran:?}");
            for part in parts {
                assert!(
                    ran.out.contains(part),
                    "{whose}: {call}: {part}: {}",
                    ran.out
                );
            }
        }
    }
    for call in ["iptables -m nosuch -h", "iptables -V", "iptables -h"] {
        let [their, our] = sides("nft", &links).map(|side| side.call(call, "").code);
        assert_eq!(their, our, "{call}");
    }
}

#[test]
fn translations_match_the_real_programs() {
    let links = links();
    let [their, our] = sides("nft", &links);
    let run = |side: &Side, line: &str, input: &str| {
        let all = words(line);
        let rest: Vec<_> = all[1..].iter().map(String::as_str).collect();
        let path = side.directory.join(&all[0]);
        // This program is not for root alone.
        let path = if path.exists() {
            path
        } else {
            Path::new("/usr/bin").join(&all[0])
        };
        side.run_path(&path, &rest, input)
    };
    for line in [
        "iptables-translate -A INPUT -p tcp --dport 22 -j ACCEPT",
        "iptables-translate -t nat -A POSTROUTING -s 10.0.0.0/8 -o eth0 -j MASQUERADE",
        "iptables-translate -I INPUT -j DROP",
        "iptables-translate -N foo",
        "iptables-translate -X foo",
        "iptables-translate -F",
        "iptables-translate -t nat -F",
        "iptables-translate -F INPUT",
        "iptables-translate -L",
        "iptables-translate -t nat -L -n",
        "iptables-translate -A INPUT -s 192.0.2.1,192.0.2.2 -j DROP",
        "iptables-translate -A INPUT -m comment --comment hello -j ACCEPT",
        "iptables-translate -A INPUT -m string --string x --algo bm -j DROP",
        "iptables-translate -A INPUT -j foo",
        "iptables-translate -A INPUT -g foo",
        "iptables-translate -V",
        "ip6tables-translate -A INPUT -p tcp --dport 5 -s 2001:db8::1 -j ACCEPT",
    ] {
        assert_eq!(run(&their, line, ""), run(&our, line, ""), "{line}");
    }
    for line in [
        "iptables-translate -S",
        "iptables-translate -P INPUT DROP",
        "iptables-translate -D INPUT -j DROP",
        "iptables-translate -6 -A INPUT",
        "iptables-translate",
        "iptables-translate -N",
        "iptables-restore-translate",
        "iptables-restore-translate -h",
        "iptables-restore-translate -f /none",
        "iptables-xml -h",
        "iptables-xml /none",
    ] {
        assert_eq!(
            run(&their, line, "").code,
            run(&our, line, "").code,
            "{line}"
        );
    }
    // The translation inserts the rule at the requested position.
    let placed = run(&our, "iptables-translate -I INPUT 3 -j DROP", "");
    assert_eq!(
        placed.out,
        "nft 'insert rule ip filter INPUT index 2 counter drop'\n"
    );
    let text = "# c\n*filter\n:INPUT ACCEPT [1:2]\n:FORWARD DROP [0:0]\n:foo - [0:0]\n\
                -A INPUT -s 10.0.0.0/8 ! -i eth0 -p tcp -m tcp --dport 22:80 ! --sport 5 -m comment --comment \"a <b> & c\" -j ACCEPT\n\
                -A INPUT -j foo\n-A foo -g foo\n-A INPUT -m string --string x --algo bm --to 65535 -j DROP\n\
                -A INPUT -m conntrack --ctstate NEW -j LOG --log-prefix \"x y\"\nCOMMIT\n\
                *nat\n:POSTROUTING ACCEPT [0:0]\n[3:4] -A POSTROUTING -o eth0 -j MASQUERADE\nCOMMIT\n";
    let file = our.lock.path().join("text");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    for program in ["iptables-xml", "iptables-xml -c"] {
        let line = format!("{program} {file}");
        assert_eq!(run(&their, &line, ""), run(&our, &line, ""), "{line}");
        assert_eq!(
            run(&their, program, text),
            run(&our, program, text),
            "{line}"
        );
    }
    let plain = text.replace("[3:4] ", "");
    fs::write(file, plain).unwrap();
    let line = format!("iptables-restore-translate -f {file}");
    let [their, our] = [&their, &our].map(|side| run(side, &line, ""));
    assert_eq!(
        (their.code, without_comments(&their.out)),
        (our.code, without_comments(&our.out))
    );
    assert!(
        our.out.contains("# -t filter -A INPUT -m string"),
        "{}",
        our.out
    );
}

#[test]
fn unconfirmed_rules_are_rolled_back() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    side.call("iptables -A INPUT -s 192.0.2.1 -j DROP", "");
    side.call("iptables -P FORWARD DROP", "");
    let file = side.lock.path().join("rules");
    fs::write(
        &file,
        "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n*nat\n-A OUTPUT -j ACCEPT\nCOMMIT\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let apply = |words: &[&str], input: &str| {
        side.run_path(&side.directory.join("iptables-apply"), words, input)
    };
    let before = side.call("iptables-save", "").out;
    for (words, input) in [(&["-t", "1", file][..], "n\n"), (&["-t", "5", file], "")] {
        let ran = apply(words, input);
        assert_eq!(ran.code, 255, "{ran:?}");
        assert_eq!(
            tables(&side.call("iptables-save", "").out),
            tables(&before),
            "{ran:?}"
        );
    }
    let copy = side.lock.path().join("copy");
    let ran = apply(&["-t", "60", "-w", copy.to_str().unwrap(), file], "y\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    let after = side.call("iptables-save", "").out;
    assert!(
        after.contains("-A OUTPUT -j ACCEPT") && !after.contains("192.0.2.1"),
        "{after}"
    );
    assert!(
        fs::read_to_string(&copy)
            .unwrap()
            .contains("-A OUTPUT -j ACCEPT")
    );
    // A rejected call runs no other program and changes nothing.
    for words in [&["-c", "true"][..], &["/none"], &["--nosuch"]] {
        let ran = apply(words, "y\n");
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(!ran.err.is_empty());
    }
    fs::write(file, "*filter\n-A NONE -j ACCEPT\nCOMMIT\n").unwrap();
    assert_eq!(apply(&[file], "y\n").code, 1);
    assert_eq!(tables(&side.call("iptables-save", "").out), tables(&after));
    // A rule that iptables cannot express is put back, too.
    side.shell("nft add rule ip filter INPUT ct state new accept");
    let ruleset = side.shell("nft list table ip filter");
    fs::write(file, "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n").unwrap();
    assert_eq!(apply(&["-t", "60", file], "n\n").code, 255);
    assert_eq!(side.shell("nft list table ip filter"), ruleset);
}

/// When the reader closes the pipe a listing ends without a message, as SIGPIPE ends the real
/// programs.
#[test]
fn exits_silently_on_a_closed_pipe() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    side.call("iptables -N A", "");
    for program in [
        "iptables-nft -S",
        "iptables-nft -L",
        "iptables-nft-save",
        "iptables-nft -h",
    ] {
        let all = words(program);
        let work = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            drop(theirs);
            let path = links.path().join(&all[0]);
            let out = Stdio::from(OwnedFd::from(ours));
            Command::new(path)
                .args(&all[1..])
                .stdout(out)
                .output()
                .unwrap()
        };
        let output = side.sandbox.run(work).unwrap();
        assert_eq!(output.status.code(), Some(128 + 13), "{program}");
        assert!(output.stderr.is_empty(), "{program}: {output:?}");
    }
}

/// Programs that are not implemented fail with a message.
#[test]
fn rejects_other_program_names() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    for name in [
        "arptables",
        "arptables-nft-save",
        "ebtables",
        "ebtables-nft",
        "ebtables-restore",
    ] {
        let link = links.path().join(name);
        symlink(PROGRAM, &link).unwrap();
        let ran = side.run_path(&link, &["-L"], "");
        assert_eq!((ran.code, &*ran.out), (1, ""), "{name}");
        assert!(ran.err.starts_with(&format!("{name}: ")), "{ran:?}");
    }
}

/// Behavior of 1.8.13 that 1.8.9 does not always have: a chain cannot have the name of a target,
/// and the counters of a policy are checked.
#[test]
fn rejects_names_of_targets_and_counters_of_policies() {
    let links = links();
    let clash = "chain name may not clash with target name";
    let counters = |chain| format!("invalid policy counters for chain '{chain}'");
    for backend in ["nft", "legacy"] {
        let is_nft = backend == "nft";
        for family in ["iptables", "ip6tables"] {
            let side = Side::new(links.path(), backend);
            assert_eq!(side.call(&format!("{family} -N x"), "").code, 0);
            for (from, to) in [
                ("x", "LOG"),
                ("x", "ACCEPT"),
                ("INPUT", "MARK"),
                ("none", "REJECT"),
            ] {
                let ran = side.call(&format!("{family} -E {from} {to}"), "");
                assert_eq!(ran.code, 2, "{backend} {from} {to}: {ran:?}");
                assert!(ran.err.contains(clash), "{ran:?}");
            }
            for (line, option, refused) in [
                (":INPUT DROP", "", None),
                (":INPUT DROP", " -c", Some("INPUT")),
                (":INPUT DROP x", "", Some("INPUT")),
                (":INPUT DROP [x:1]", " -c", Some("INPUT")),
                (":INPUT DROP [1:2]", " -c", None),
                (":INPUT - x", " -c", is_nft.then_some("INPUT")),
                (":foo - x", " -c", None),
                (":foo DROP", " -c", (!is_nft).then_some("foo")),
            ] {
                let text = format!("*filter\n{line}\nCOMMIT\n");
                let ran = side.call(&format!("{family}-restore{option}"), &text);
                let code = if refused.is_some() { 2 } else { 0 };
                assert_eq!(ran.code, code, "{backend} {line}{option}: {ran:?}");
                if let Some(chain) = refused {
                    assert!(ran.err.contains(&counters(chain)), "{ran:?}");
                }
            }
            for (line, message) in [
                ("-v -Z x", "Zeroing chain `x'\n"),
                ("-v -F x", "Flushing chain `x'\n"),
                ("-S foo -v -Z", "-N foo\nZeroing chain `foo'\n"),
                ("-S foo -Z", "-N foo\n"),
                ("-v -X x", "Deleting chain `x'\n"),
            ] {
                let _ = side.call(&format!("{family} -N x"), "");
                let _ = side.call(&format!("{family} -N foo"), "");
                let ran = side.call(&format!("{family} {line}"), "");
                assert_eq!(
                    (ran.code, &*ran.out),
                    (0, message),
                    "{backend} {line}: {ran:?}"
                );
            }
        }
    }
}

/// Flushing a chain keeps the counters of its policy.
#[test]
fn flushing_a_chain_keeps_its_policy_counters() {
    let links = links();
    for backend in ["nft", "legacy"] {
        for call in ["-F INPUT", "-F"] {
            let side = Side::new(links.path(), backend);
            let text = "*filter\n:INPUT DROP [5:500]\n-A INPUT -p tcp\nCOMMIT\n";
            assert_eq!(side.call("iptables-restore -c", text).code, 0);
            assert_eq!(side.call(&format!("iptables {call}"), "").code, 0);
            let saved = side.call("iptables-save -c", "").out;
            assert!(
                saved.contains(":INPUT DROP [5:500]\n"),
                "{backend} {call}: {saved}"
            );
        }
    }
}

/// An invalid chain name is rejected before the table is read.
#[test]
fn a_rejected_name_creates_no_legacy_table() {
    let links = links();
    for family in ["ip", "ip6"] {
        for call in ["-N LOG", "-N ACCEPT", "-N -x"] {
            let side = Side::new(links.path(), "legacy");
            let ran = side.call(&format!("{family}tables {call}"), "");
            assert_eq!(ran.code, 2, "{ran:?}");
            let saved = side.call(&format!("{family}tables-save"), "");
            assert_eq!((saved.code, &*saved.out), (0, ""), "{call}");
        }
    }
}
