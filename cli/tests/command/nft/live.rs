//! Tests that take time, except monitors: readers that close the pipe, callers without privileges, listings of state.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;

use super::Side;
use crate::common::needs::find;
use crate::common::tools::Tools;

#[test]
fn exits_successfully_when_the_reader_closes_the_pipe() {
    let side = Side::chainwright();
    let rules = "add rule ip t c accept\n".repeat(2000);
    for text in rules
        .as_bytes()
        .chunks(200 * "add rule ip t c accept\n".len())
    {
        let text = std::str::from_utf8(text).unwrap();
        let text = format!("add table ip t\nadd chain ip t c\n{text}");
        let output = side.run_with(&find("nft"), &["-f", "-"], &text);
        assert_eq!(output.code, Some(0), "{}", output.err);
    }
    let spawn = || {
        let listing = "list ruleset\n".repeat(20);
        side.command(&[listing.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut child = side.sandbox.run(spawn).unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(first, "table ip t {\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn standard_input_may_be_closed() {
    use std::process::Command;
    for side in [Side::real(), Side::chainwright()] {
        let run = || {
            Command::new("/bin/sh")
                .args(["-c", r#""$0" -f - <&-"#])
                .arg(&side.program)
                .output()
                .unwrap()
        };
        let output = side.sandbox.run(run).unwrap();
        assert_eq!(output.stdout, b"");
        // nft treats it as an empty text.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
    }
}

#[test]
fn reports_missing_privileges_like_nft() {
    let (real, chainwright) = (Side::real(), Side::chainwright());
    for arguments in [
        "list ruleset",
        "add table ip x",
        "-c add table ip x",
        "monitor",
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let run = |side: &Side| {
            let run = || {
                thread::scope(|scope| {
                    let unprivileged = scope.spawn(|| {
                        for set in [caps::CapSet::Bounding, caps::CapSet::Effective] {
                            caps::clear(None, set).unwrap();
                        }
                        caps::clear(None, caps::CapSet::Inheritable).unwrap();
                        side.command(&words).stdin(Stdio::null()).output().unwrap()
                    });
                    unprivileged.join().unwrap()
                })
            };
            side.sandbox.run(run).unwrap()
        };
        let (their, our) = (run(&real), run(&chainwright));
        assert_eq!(their.status.code(), Some(1), "{arguments}");
        assert_eq!(our.status.code(), Some(1), "{arguments}");
        assert_eq!(our.stdout, b"");
        let message = String::from_utf8(our.stderr).unwrap();
        assert!(message.contains("CAP_NET_ADMIN"), "{message}");
        assert!(
            message.contains("\nOperation not permitted (you must be root)\n")
                || message.starts_with("Operation not permitted (you must be root)\n"),
            "{message}"
        );
        let their_message = String::from_utf8(their.stderr).unwrap();
        assert_eq!(
            message.lines().next(),
            their_message.lines().next(),
            "{arguments}"
        );
    }
    // Commands that need no kernel need no privileges.
    let words = ["describe", "ipv4_addr"];
    assert_eq!(chainwright.run(&words, "").out, real.run(&words, "").out);
}

/// A terminal gets a prompt for each line.
#[test]
fn a_terminal_is_prompted() {
    let side = Side::chainwright();
    let program = side.program.to_str().unwrap();
    let line = format!("{program} -i");
    let input = "add table ip x\nlist tables\nquit\n";
    let output = side.run_with(&find("script"), &["-qec", &line, "/dev/null"], input);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert_eq!(output.out.matches("nft> ").count(), 3, "{}", output.out);
    assert!(output.out.contains("nft> table ip x\r\n"), "{}", output.out);
}

const HOOKED: &str = "
table ip t {
    chain in { type filter hook input priority 1; }
    chain nat { type nat hook postrouting priority srcnat; masquerade; }
    chain out { type route hook output priority -151; }
}
table ip6 t { chain in { type filter hook input priority 2147483647; }; }
table inet t { chain in { type filter hook input priority -5; ct state new counter; }; }
table netdev t {
    chain in { type filter hook ingress device lo priority -2147483648; }
    chain more { type filter hook ingress device lo priority 10; }
}
table bridge t { chain pre { type filter hook prerouting priority -300; }; }
table arp t { chain in { type filter hook input priority 0; }; }
";

/// Lists registered hooks if the kernel reports them; otherwise ours prints an error and nft prints
/// nothing.
#[test]
fn hooks_are_listed_like_nft() {
    let side = Side::chainwright();
    let output = side.run(&["-f", "-"], HOOKED);
    assert_eq!(output.code, Some(0), "{}", output.err);
    Tools::new(&side.sandbox).run("iptables-legacy -A INPUT -j ACCEPT");
    for arguments in [
        "list hooks",
        "list hooks ip",
        "list hooks ip6",
        "list hooks inet",
        "list hooks arp",
        "list hooks bridge",
        "list hooks netdev",
        "list hooks netdev device lo",
        "list hooks ip device lo",
        "list hooks inet device lo",
        "list hooks arp device lo",
        "list hooks bridge device lo",
        "list hooks device lo",
        "list hooks ip device nothing",
        "list hooks netdev device nothing",
    ] {
        let their = side.run_with(&find("nft"), &[arguments], "");
        let our = side.run(&[arguments], "");
        assert_eq!(their.code, Some(0), "{arguments}: {}", their.err);
        if our.err.contains("this kernel lacks nfnetlink_hook") {
            assert_eq!(
                (our.code, &*our.out, &*their.out),
                (Some(1), "", ""),
                "{arguments}"
            );
            continue;
        }
        assert_eq!((our.code, &*our.err), (Some(0), ""), "{arguments}");
        // nft leaves out ARP when it lists all hooks.
        let is_of_all = matches!(arguments, "list hooks" | "list hooks device lo");
        let our = match our.out.strip_prefix("family arp {\n").filter(|_| is_of_all) {
            Some(more) => more.split_once("\n}\n").unwrap().1,
            None => &our.out,
        };
        assert_eq!(our, their.out, "{arguments}");
        let is_there = !arguments.starts_with("list hooks netdev") || arguments.ends_with(" lo");
        assert_eq!(our.is_empty(), !is_there, "{arguments}");
    }
}

/// Each input of `nft -i` sees the changes of the one before, also in a table that its connection
/// owns.
#[test]
fn an_owned_table_lives_until_standard_input_ends() {
    let side = Side::chainwright();
    let input =
        "add table ip t { flags owner; }\nlist tables\nadd chain ip t c\nnothing\nlist chains\n";
    let output = side.run(&["-i"], input);
    assert_eq!(
        output.out, "table ip t\ntable ip t {\n\tchain c {\n\t}\n}\n",
        "{}",
        output.err
    );
    assert_eq!(side.run(&["list tables"], "").out, "");
}

/// The handle of a table is listed where nft 1.1.7 lists it: where the whole table is listed.
#[test]
fn table_handles_are_listed_with_the_whole_table() {
    let side = Side::chainwright();
    let base = "add table ip t; add chain ip t c; add set ip t s { type ipv4_addr; elements = { 1.1.1.1 }; }; \
                add map ip t m { type ipv4_addr : mark; }; add counter ip t k; add quota ip t q { over 1 bytes; }";
    assert_eq!(side.run(&[base], "").code, Some(0));
    for (text, is_listed) in [
        ("list ruleset", true),
        ("list table ip t", true),
        ("list chain ip t c", false),
        ("list chains", false),
        ("list set ip t s", false),
        ("list sets", false),
        ("list map ip t m", false),
        ("list maps", false),
        ("list counter ip t k", false),
        ("list counters", false),
        ("list quota ip t q", false),
        ("list quotas", false),
        ("list flowtables", false),
        ("get element ip t s { 1.1.1.1 }", false),
        ("reset counters", false),
    ] {
        let output = side.run(&["-a", text], "");
        let first = output.out.lines().next().unwrap_or_default();
        let expected = if is_listed {
            "table ip t { # handle 1"
        } else {
            "table ip t {"
        };
        assert_eq!(first, expected, "{text}: {}", output.err);
    }
}

/// Resets list and reset the same as nft 1.1.7, except for errors, which reset nothing.
#[test]
fn reset_prints_old_values_and_resets_them() {
    const BASE: &str = "table ip t {
        counter k { packets 1031 bytes 1; }
        quota q { 5000 bytes used 1041 bytes; }
        set s { type ipv4_addr; counter; elements = { 1.1.1.1 counter packets 1021 bytes 1, \
                                                      2.2.2.2 counter packets 1022 bytes 1 }; }
        map m { type ipv4_addr : inet_service; counter; elements = { 1.1.1.1 counter packets 1023 bytes 1 : 80 }; }
        set i { type ipv4_addr; flags interval; counter; elements = { 1.0.0.0/8 counter packets 1024 bytes 1 }; }
        chain c { counter packets 1011 bytes 1 accept; ip saddr { 1.1.1.1, 2.2.2.2 } counter packets 1012 bytes 1; }
        chain d { counter packets 1013 bytes 1 jump { counter packets 1015 bytes 1; }; }
    }
    table ip6 u { chain e { counter packets 1014 bytes 1; }; }";
    const ALL: [u64; 11] = [
        1011, 1012, 1013, 1014, 1015, 1021, 1022, 1023, 1024, 1031, 1041,
    ];
    const RULES: &[u64] = &[1011, 1012, 1013, 1014, 1015];
    const TABLE_T: &[u64] = &[1011, 1012, 1013, 1015, 1021, 1022, 1023, 1024, 1031, 1041];
    let numbers = |text: &str| -> Vec<u64> {
        let words: HashSet<&str> = text.split(|c: char| !c.is_ascii_digit()).collect();
        let is_there = |number: &u64| words.contains(&*number.to_string());
        ALL.into_iter().filter(is_there).collect()
    };
    for (command, listed, reset) in [
        ("reset rules", &ALL[..], RULES),
        ("reset rules ip6", &[1014], &[1014]),
        ("reset rules ip", TABLE_T, &[1011, 1012, 1013, 1015]),
        ("reset rules ip t", TABLE_T, &[1011, 1012, 1013, 1015]),
        ("reset rules t", TABLE_T, &[1011, 1012, 1013, 1015]),
        ("reset rules table ip t", TABLE_T, &[1011, 1012, 1013, 1015]),
        ("reset rules ip t c", &[1011, 1012], &[1011, 1012]),
        ("reset rules t c", &[1011, 1012], &[1011, 1012]),
        ("reset rules chain ip t c", &[1011, 1012], &[1011, 1012]),
        ("reset rules inet", &[], &[]),
        (
            "reset rule ip t c handle H",
            &[1011, 1021, 1022, 1023, 1024, 1031, 1041],
            &[1011],
        ),
        ("reset set ip t s", &[1021, 1022], &[1021, 1022]),
        ("reset set t s", &[1021, 1022], &[1021, 1022]),
        ("reset set ip t i", &[1024], &[1024]),
        ("reset map ip t m", &[1023], &[1023]),
        ("reset element ip t s { 1.1.1.1 }", &[1021], &[1021]),
        (
            "reset element ip t s { 2.2.2.2, 1.1.1.1 }",
            &[1021, 1022],
            &[1021, 1022],
        ),
        ("reset element ip t i { 1.2.3.4 }", &[1024], &[1024]),
        ("reset element ip t m { 1.1.1.1 }", &[1023], &[1023]),
        ("reset counters", &[1031], &[1031]),
        ("reset counters ip t", &[1031], &[1031]),
        ("reset counter ip t k", &[1031], &[1031]),
        ("reset quotas", &[1041], &[1041]),
        ("reset quota ip t q", &[1041], &[1041]),
    ] {
        for options in [&[][..], &["-j"], &["-a"]] {
            let side = Side::chainwright();
            let made = side.run(&["-f", "-"], BASE);
            assert_eq!(made.code, Some(0), "{}", made.err);
            let all = side.run(&["-a", "list", "chain", "ip", "t", "c"], "").out;
            let (_, handle) = all.split_once("accept # handle ").unwrap();
            let command = command.replace('H', handle.lines().next().unwrap());
            let output = side.run(&[options, &[&command]].concat(), "");
            assert_eq!(output.code, Some(0), "{command}: {}", output.err);
            assert_eq!(numbers(&output.out), listed, "{command}: {}", output.out);
            let remaining: Vec<_> = ALL
                .into_iter()
                .filter(|each| !reset.contains(each))
                .collect();
            let now = side.run(&["list", "ruleset"], "").out;
            assert_eq!(numbers(&now), remaining, "{command}: {now}");
        }
    }
    let side = Side::chainwright();
    assert_eq!(side.run(&["-f", "-"], BASE).code, Some(0));
    for command in [
        "reset set ip t m",
        "reset map ip t s",
        "reset set ip t nope",
        "reset set ip nope s",
        "reset element ip t s { 9.9.9.9 }",
        "reset element ip t nope { 9.9.9.9 }",
        "reset rule ip t c handle 99",
        "reset rule ip t nope handle 1",
        "reset rules ip nope",
        "reset rules chain ip t nope",
        "reset ruleset",
        "reset table ip t",
        "reset chain ip t c",
        "reset sets",
    ] {
        let output = side.run(&[command], "");
        assert_eq!(output.code, Some(1), "{command}: {}", output.out);
        assert!(
            output.out.is_empty() && output.err.starts_with("Error: "),
            "{command}: {}",
            output.err
        );
        let now = side.run(&["list", "ruleset"], "").out;
        assert_eq!(numbers(&now), ALL, "{command}: {now}");
    }
}

/// A range in a set of concatenations is found if a single range of the set contains all of it.
#[test]
fn concatenated_ranges_are_looked_up_as_a_whole() {
    let side = Side::chainwright();
    let base = "table ip t { set s { type ipv4_addr . inet_service; flags interval; \
                elements = { 10.0.0.0-10.0.0.9 . 80-90, 11.0.0.0/8 . 22 }; }; \
                map m { type ipv4_addr : mark; elements = { 1.1.1.1 : 1 }; }; }";
    assert_eq!(side.run(&[base], "").code, Some(0));
    for (element, found) in [
        ("10.0.0.3 . 80", Some("10.0.0.0-10.0.0.9 . 80-90")),
        ("10.0.0.3-10.0.0.5 . 80", Some("10.0.0.0-10.0.0.9 . 80-90")),
        (
            "10.0.0.3-10.0.0.5 . 85-90",
            Some("10.0.0.0-10.0.0.9 . 80-90"),
        ),
        (
            "10.0.0.0-10.0.0.9 . 80-90",
            Some("10.0.0.0-10.0.0.9 . 80-90"),
        ),
        ("11.1.0.0/16 . 22", Some("11.0.0.0/8 . 22")),
        ("10.0.0.3-10.0.0.20 . 80", None),
        ("10.0.0.3 . 80-200", None),
        ("10.0.0.3-11.0.0.0 . 80", None),
        ("11.0.0.0/8 . 22-23", None),
    ] {
        let output = side.run(&[&format!("get element ip t s {{ {element} }}")], "");
        assert_eq!(
            output.code,
            Some(i32::from(found.is_none())),
            "{element}: {}",
            output.err
        );
        let listed = found.map(|found| format!("elements = {{ {found} }}"));
        assert!(
            listed.is_none_or(|listed| output.out.contains(&listed)),
            "{}",
            output.out
        );
    }
    // The data of a map's key is not compared, as in nft 1.1.7.
    for data in ["", " : 1", " : 2"] {
        let output = side.run(&[&format!("get element ip t m {{ 1.1.1.1{data} }}")], "");
        assert!(
            output.out.contains("{ 1.1.1.1 : 0x00000001 }"),
            "{data}: {}",
            output.err
        );
    }
}
