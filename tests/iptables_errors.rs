//! Mistakes in what is to be changed: what is said of them, and that nothing is applied.

mod common;

use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{Backend, Error, Family, Iptables, Rule};
use chainwright::netns::Sandbox;
use common::iptables::{open, state, tool};
use common::tools::Tools;
use common::{report, sandbox};

const BACKENDS: [Backend; 2] = [Backend::Nft, Backend::Legacy];

/// What the tables hold.
const START: &str = "*mangle
:PREROUTING ACCEPT [1:2]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
[3:4] -A OUTPUT -p udp
COMMIT
*filter
:INPUT DROP [7:700]
:FORWARD ACCEPT [8:800]
:OUTPUT ACCEPT [9:900]
:KUBE-FORWARD - [0:0]
:full - [0:0]
:empty - [0:0]
[1:100] -A INPUT -s 10.0.0.0/8 -j full
[2:200] -A full -p tcp -j RETURN
COMMIT
";

fn prepared(backend: Backend) -> Sandbox {
    let sandbox = sandbox();
    let restore = tool(backend, Family::Ipv4, "-restore --counters");
    Tools::new(&sandbox).run_with(&restore, START);
    sandbox
}

fn restore(iptables: &mut Iptables, text: &str, noflush: bool) -> Result<(), Error> {
    let options = RestoreOptions {
        noflush,
        ..RestoreOptions::default()
    };
    iptables.restore(Family::Ipv4, text, &options).map(drop)
}

#[test]
fn a_wrong_text_or_a_test_creates_no_legacy_table() {
    let sandbox = sandbox();
    let mut iptables = open(&sandbox, Backend::Legacy);
    let names = || {
        let read = || std::fs::read_to_string("/proc/thread-self/net/ip_tables_names");
        sandbox.run(read).unwrap().unwrap()
    };
    let right = "*raw\n:x - [0:0]\n-A PREROUTING -j x\nCOMMIT\n*nat\n-A INPUT\nCOMMIT\n";
    for noflush in [false, true] {
        let wrong = right.replace("-A INPUT", "-A INPUT -j nowhere");
        restore(&mut iptables, &wrong, noflush).unwrap_err();
        let options = RestoreOptions {
            noflush,
            test: true,
            ..RestoreOptions::default()
        };
        iptables.restore(Family::Ipv4, right, &options).unwrap();
        assert_eq!(names(), "");
    }
    restore(&mut iptables, right, true).unwrap();
    assert_eq!(names().lines().count(), 2);
    let tables = iptables.read(Family::Ipv4, &["raw"]).unwrap();
    let mut text = Vec::new();
    let omitted = tables.save(SaveOptions::default(), &mut text).unwrap();
    assert!(omitted.is_none());
    let text = String::from_utf8(text).unwrap().replace(" [0:0]", "");
    let lines: Vec<_> = text.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(
        lines,
        [
            "*raw",
            ":PREROUTING ACCEPT",
            ":OUTPUT ACCEPT",
            ":x -",
            "-A PREROUTING -j x",
            "COMMIT"
        ]
    );
}

/// Lines of table filter, and what is said of them, up to `…`. The line's number stands before that.
const LINES: &[(&str, &str)] = &[
    (
        "-A INPUT --coment x",
        ", column 10: unknown option `--coment` (did you mean --comment, an option of -m comment?)",
    ),
    (
        "-A INPUT -m comment --coment x",
        ", column 21: unknown option `--coment` (did you mean --comment?)",
    ),
    (
        "-A INPUT --comment x",
        ", column 10: unknown option `--comment` (it is an option of -m comment, which must stand before it)",
    ),
    ("-A INPUT -y", ", column 10: unknown option `-y`"),
    (
        "-A INPUT --",
        ", column 10: `--` is not an option (an option is a `-` and a letter, or `--` and a name)",
    ),
    (
        "-A INPUT -",
        ", column 10: `-` is not an option (an option is a `-` and a letter, or `--` and a name)",
    ),
    (
        "-A INPUT -m comet --comment x",
        ", column 13: match `comet` not found (did you mean -m comment?)",
    ),
    ("-A INPUT -m nix", ", column 13: match `nix` not found"),
    (
        "-A INPUT -m comment",
        ", column 13: -m comment: --comment is required",
    ),
    (
        "-A INPUT -m comment --comment a --comment b",
        ", column 33: -m comment: --comment can be given only once",
    ),
    (
        "-A INPUT -m mark --mark",
        ", column 18: `--mark` wants a value",
    ),
    (
        "-A INPUT -m mark --mark 0x1g",
        ", column 25: -m mark: --mark: `0x1g` is not a number from 0 to 4294967295",
    ),
    (
        "-A INPUT -m mark --mark 4294967296",
        ", column 25: -m mark: --mark: `4294967296` is not a number from 0 to 4294967295",
    ),
    (
        "-A INPUT -m conntrack --ctstate NEW,ESTABLISHD",
        ", column 33: -m conntrack: --ctstate: `ESTABLISHD` …",
    ),
    ("-A INPUT -j", ", column 10: `-j` wants a value"),
    ("-A INPUT -s", ", column 10: `-s` wants a value"),
    (
        "-A INPUT -s -j ACCEPT",
        ", column 13: `-s` wants a value, but `-j` follows",
    ),
    ("-A", ", column 1: `-A` wants a value"),
    (
        "-A INPUT -A FORWARD",
        ", column 10: a line holds one command only",
    ),
    (
        "-A INPUT -N x",
        ", column 10: a line holds one command only",
    ),
    (
        "-A INPUT -j ACCEPT -j DROP",
        ", column 20: a rule has one target only",
    ),
    (
        "-A INPUT -s 1.2.3.4 -s 5.6.7.8",
        ", column 21: `-s` is given twice",
    ),
    (
        "-A INPUT -s 1.2.3.256",
        ", column 13: `1.2.3.256` is not an IPv4 address (host names are not looked up)",
    ),
    (
        "-A INPUT -s 1.2.3.4/33",
        ", column 13: `1.2.3.4/33` has a mask that is neither a prefix length from 0 to 32 nor an address",
    ),
    (
        "-A INPUT -s 1.2.3.4,1.2.x",
        ", column 21: `1.2.x` is not an IPv4 address (host names are not looked up)",
    ),
    (
        "-A INPUT ! -s 1.2.3.4,1.2.3.5",
        ", column 15: a negated option takes one address only: none of several cannot be said",
    ),
    (
        "-A INPUT -s example.com",
        ", column 13: `example.com` is not an IPv4 address (host names are not looked up)",
    ),
    (
        "-A INPUT -s fd00::1",
        ", column 13: `fd00::1` is not an IPv4 address (host names are not looked up) (it is an IPv6 address)",
    ),
    (
        "-A INPUT -i averylongname123",
        ", column 13: `averylongname123` is not an interface's name: it has 1 to 15 bytes",
    ),
    (
        "-A INPUT -p tpc",
        ", column 13: `tpc` is neither a protocol's number nor its name (did you mean tcp?)",
    ),
    (
        "-A INPUT -p 256",
        ", column 13: `256` is neither a protocol's number nor its name",
    ),
    (
        "-A INPUT -s ! 1.2.3.4",
        ", column 13: `!` stands before the option it negates (write `! -s`)",
    ),
    ("-A INPUT !", ", column 10: `!` stands before an option"),
    (
        "-A INPUT ! -j ACCEPT",
        ", column 12: `-j` cannot be negated",
    ),
    (
        "-A INPUT -t filter -j ACCEPT",
        ", column 10: unknown option `-t` (the table stands in a line of its own before, like *filter)",
    ),
    (
        "-A INPUT --table nat",
        ", column 10: unknown option `--table` (the table stands in a line of its own before, like *filter)",
    ),
    (
        "-t nat -A INPUT",
        ", column 1: unknown option `-t` (the table stands in a line of its own before, like *filter)",
    ),
    (
        "-A INPUT word",
        ", column 10: `word` is not an option (a value with blanks stands in double quotes)",
    ),
    (
        "-A INPUT -m comment --comment two words",
        ", column 35: `words` is not an option (a value with blanks stands in double quotes)",
    ),
    (
        "-A INPUT -m comment --comment 'two words'",
        ", column 36: `words'` is not an option (only double quotes hold several words together)",
    ),
    ("-A INPUT -c 5", ", column 10: -c wants packets and bytes"),
    (
        "-A INPUT -c 5 x",
        ", column 15: `x` is not a number from 0 to 18446744073709551615",
    ),
    (
        "-A INPUT -m comment --comment \"open",
        ", column 31: the quotes that open here do not close",
    ),
    (
        "[1:x] -A INPUT",
        ", column 1: counters are written like this: [PACKETS:BYTES]",
    ),
    (
        "[1:2]",
        ", column 1: no command in the line (-A, -I, -D, …)",
    ),
    (
        "-j ACCEPT",
        ", column 10: no command in the line (-A, -I, -D, …)",
    ),
    (
        "-P INPUT REJECT",
        ", column 10: `REJECT` is not a policy (ACCEPT or DROP)",
    ),
    (
        "-P INPUT accept",
        ", column 10: `accept` is not a policy (ACCEPT or DROP)",
    ),
    ("-P INPUT", ", column 1: `-P` wants a value"),
    (
        "-P full DROP",
        ": chain full of table filter is not built in: it has no policy",
    ),
    (
        ":full DROP [0:0]",
        ": chain full of table filter is not built in: it has no policy",
    ),
    (
        ":INPUT REJECT [0:0]",
        ", column 8: `REJECT` is not a policy (ACCEPT, DROP or -)",
    ),
    (":INPUT", ", column 7: a policy, or -, is expected"),
    (":", ", column 2: the name of a chain is expected"),
    (
        ":INPUT ACCEPT 0:0",
        ", column 15: counters like [PACKETS:BYTES] are expected",
    ),
    (
        ":a-name-of-more-than-28-bytes- - [0:0]",
        ", column 2: `a-name-of-more-than-28-bytes-`: a chain's name has at most 28 bytes",
    ),
    (
        "*mangle",
        ", column 1: a COMMIT is expected before the next table",
    ),
    (
        "-A full -j ful",
        ": chain ful not found in table filter (did you mean full?)",
    ),
    (
        "-A INPUT -j KUBE-FOWARD",
        ": chain KUBE-FOWARD not found in table filter (did you mean KUBE-FORWARD?)",
    ),
    (
        "-A fulll -j DROP",
        ": chain fulll not found in table filter (did you mean full?)",
    ),
    (
        "-A INPUT -j accept",
        ": chain accept not found in table filter (did you mean ACCEPT?)",
    ),
    (
        "-A INPUT -j OUTPUT",
        ": chain OUTPUT of table filter is built in: it cannot be made, removed, renamed or jumped to",
    ),
    (
        "-D full -p udp -j RETURN",
        ": rule not found in chain full of table filter: -p udp -j RETURN",
    ),
    ("-D full 2", ": chain full of table filter has only 1 rule"),
    (
        "-D full 0",
        ", column 9: `0` is not the number of a rule, from 1",
    ),
    ("-D nix 1", ": chain nix not found in table filter"),
    ("-D nix -p tcp", ": chain nix not found in table filter"),
    (
        "-I INPUT 3 -j ACCEPT",
        ": chain INPUT of table filter has only 1 rule",
    ),
    (
        "-I INPUT 0 -j ACCEPT",
        ", column 10: `0` is not the number of a rule, from 1",
    ),
    (
        "-R INPUT 2 -j ACCEPT",
        ": chain INPUT of table filter has only 1 rule",
    ),
    (
        "-R INPUT -j ACCEPT",
        ", column 1: -R wants the number of the rule to be replaced",
    ),
    (
        "-R INPUT 1 -s 1.2.3.4,5.6.7.8",
        ", column 1: -R puts one rule in the place of one: with one source and one destination",
    ),
    ("-N full", ": chain full exists already in table filter"),
    (
        "-N INPUT",
        ": chain INPUT of table filter is built in: it cannot be made, removed, renamed or jumped to",
    ),
    (
        "-X full",
        ": chain full of table filter has rules: flush it before it is removed",
    ),
    (
        "-X INPUT",
        ": chain INPUT of table filter is built in: it cannot be made, removed, renamed or jumped to",
    ),
    ("-X nix", ": chain nix not found in table filter"),
    ("-F nix", ": chain nix not found in table filter"),
    ("-Z nix", ": chain nix not found in table filter"),
    (
        "-E full empty",
        ": chain empty exists already in table filter",
    ),
    ("-E nix other", ": chain nix not found in table filter"),
    (
        "-E INPUT other",
        ": chain INPUT of table filter is built in: it cannot be made, removed, renamed or jumped to",
    ),
    (
        "-X empty -j ACCEPT",
        ", column 1: this command takes no rule",
    ),
    (
        "-L",
        ", column 1: unknown option `-L` (a text changes tables and lists nothing)",
    ),
    (
        "-S",
        ", column 1: unknown option `-S` (a text changes tables and lists nothing)",
    ),
    (
        "-w -A INPUT",
        ", column 1: unknown option `-w` (it is for the command line only)",
    ),
];

#[test]
fn mistakes_in_lines() {
    let mut wrong = Vec::new();
    for backend in BACKENDS {
        let sandbox = prepared(backend);
        let before = state(&sandbox, backend);
        for (line, expected) in LINES {
            // A table before it, and lines before and behind it.
            let text = format!(
                "*mangle\n-A OUTPUT -p tcp\nCOMMIT\n*filter\n# here\n-A OUTPUT -p tcp\n{line}\n\
                 -A OUTPUT -p udp\nCOMMIT\n"
            );
            let mut iptables = open(&sandbox, backend);
            let found = match restore(&mut iptables, &text, true) {
                Ok(()) => "nothing".to_owned(),
                Err(error) => {
                    if !error.nothing_applied() {
                        wrong.push(format!("{backend:?} {line}: in part"));
                    }
                    error.to_string()
                }
            };
            let as_expected = match expected.strip_suffix('…') {
                Some(start) => found.starts_with(&format!("line 7{start}")),
                None => found == format!("line 7{expected}"),
            };
            if !as_expected {
                wrong.push(format!("{backend:?} {line}\n    {found}"));
            }
            if state(&sandbox, backend) != before {
                wrong.push(format!("{backend:?} {line}: it was applied in part"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names in nf_tables change when everything is committed, not before.
#[test]
fn what_nf_tables_cannot_do_at_once() {
    let sandbox = prepared(Backend::Nft);
    let before = state(&sandbox, Backend::Nft);
    let new = "renaming a chain in the same change that makes it is not possible with nf_tables";
    let taken = "making a chain of the name that another had, in the same change that renames that is \
                 not possible with nf_tables";
    for (lines, expected) in [
        ("-N new\n-E new newer", new),
        (":new - [0:0]\n-E new newer", new),
        ("-E full fuller\n-N full", taken),
        ("-E full fuller\n:full - [0:0]", taken),
        ("-E full fuller\n-E empty full", taken),
        ("-E full fuller\n-E fuller full", taken),
        (
            "-E full fuller\n-A INPUT -j full",
            "chain full not found in table filter",
        ),
        (
            "-E full fuller\n-F full",
            "chain full not found in table filter",
        ),
    ] {
        let text = format!("*filter\n{lines}\nCOMMIT\n");
        let error = restore(&mut open(&sandbox, Backend::Nft), &text, true).unwrap_err();
        assert_eq!(error.to_string(), format!("line 3: {expected}"), "{lines}");
        assert!(error.nothing_applied());
        assert_eq!(state(&sandbox, Backend::Nft), before, "{lines}");
    }
}

/// A short line cannot ask for rules without end.
#[test]
fn too_many_addresses() {
    let addresses = ["1.2.3.4"; 257].join(",");
    let line = format!("-A INPUT -s {addresses} -d {addresses}");
    for backend in BACKENDS {
        let sandbox = prepared(backend);
        let before = state(&sandbox, backend);
        let text = format!("*filter\n{line}\nCOMMIT\n");
        let error = restore(&mut open(&sandbox, backend), &text, true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2, column 2072: each pair of a source and a destination is a rule: one line makes at \
             most 65536"
        );
        assert_eq!(state(&sandbox, backend), before);
    }
}

/// What only the kernel knows.
#[test]
fn what_the_kernel_refuses() {
    for backend in BACKENDS {
        let sandbox = prepared(backend);
        let before = state(&sandbox, backend);
        for line in [
            "-A INPUT -j MASQUERADE",
            "-A full -j KUBE-FORWARD\n-A KUBE-FORWARD -j full",
        ] {
            let text = format!("*filter\n-A OUTPUT -p tcp\n{line}\nCOMMIT\n");
            let error = restore(&mut open(&sandbox, backend), &text, true).unwrap_err();
            assert!(error.nothing_applied(), "{error}");
            let (start, number) = match backend {
                Backend::Nft => ("line ", 2 + line.lines().count()),
                Backend::Legacy => ("the kernel refused the new legacy IPv4 table filter: E", 0),
            };
            let last = line.lines().last().unwrap();
            let found = error.to_string();
            match backend {
                Backend::Nft => assert_eq!(
                    found.split(": add rule").next().unwrap(),
                    format!("{start}{number}: {last}")
                ),
                Backend::Legacy => assert!(found.starts_with(start), "{found}"),
            }
            assert_eq!(state(&sandbox, backend), before);
        }
        // A chain to which another leads.
        for (text, chain) in [
            ("-F full\n-X full", "full"),
            ("-X empty\n-N empty\n-A INPUT -j empty\n-X empty", "empty"),
        ] {
            let text = format!("*filter\n{text}\nCOMMIT\n");
            let error = restore(&mut open(&sandbox, backend), &text, true).unwrap_err();
            let line = text.lines().count() - 1;
            let found = error.to_string();
            assert!(error.nothing_applied(), "{error}");
            assert!(
                found.starts_with(&format!("line {line}: ")) && found.contains(chain),
                "{found}"
            );
            assert_eq!(state(&sandbox, backend), before);
        }
    }
}

/// Faults of the text as a whole.
#[test]
fn mistakes_between_lines() {
    let texts = [
        (
            "-A INPUT\n",
            "line 1, column 1: a line like `*filter` is expected here",
        ),
        (
            "COMMIT\n",
            "line 1, column 1: a line like `*filter` is expected here",
        ),
        (
            "*mangle\nCOMMIT\n*filtr\nCOMMIT\n",
            "line 3: table `filtr` not found (did you mean filter?)",
        ),
        ("*\nCOMMIT\n", "line 1: table `` not found"),
        (
            "*mangle\n-F\nCOMMIT\n*filter\n-F\n",
            "the text ends without a COMMIT for table filter; nothing was applied",
        ),
        (
            "*filter\n-F\n*mangle\nCOMMIT\n",
            "line 3, column 1: a COMMIT is expected before the next table",
        ),
        (
            "*filter\n-A INPUT\0\nCOMMIT\n",
            "line 2, column 9: there is a NUL or the end of a line within it",
        ),
    ];
    for backend in BACKENDS {
        let sandbox = prepared(backend);
        let before = state(&sandbox, backend);
        for (text, expected) in texts {
            for noflush in [false, true] {
                let error = restore(&mut open(&sandbox, backend), text, noflush).unwrap_err();
                assert_eq!(error.to_string(), expected, "{text}");
                assert!(error.nothing_applied());
                assert_eq!(state(&sandbox, backend), before, "{text}");
            }
        }
        // What is flushed has no chains but those that are declared.
        let text = "*filter\n:mine - [0:0]\n-A mine -j DROP\n-A INPUT -j KUBE-FORWARD\nCOMMIT\n";
        let error = restore(&mut open(&sandbox, backend), text, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 4: chain KUBE-FORWARD not found in table filter"
        );
        assert_eq!(state(&sandbox, backend), before);
    }
}

/// Legacy tables are replaced one after the other: what was done is named.
#[test]
fn the_second_legacy_table_is_refused() {
    let sandbox = prepared(Backend::Legacy);
    let text = "*mangle\n-A OUTPUT -p tcp\nCOMMIT\n*filter\n-A INPUT -j MASQUERADE\nCOMMIT\n";
    let error = restore(&mut open(&sandbox, Backend::Legacy), text, true).unwrap_err();
    assert!(!error.nothing_applied());
    let start =
        "replaced: IPv4 mangle; then: the kernel refused the new legacy IPv4 table filter: EINVAL";
    assert!(error.to_string().starts_with(start), "{error}");
    assert!(matches!(&error, Error::Partly { applied, .. } if *applied == ["IPv4 mangle"]));
    let saved = Tools::new(&sandbox).save("iptables-legacy-save");
    assert!(
        saved.contains("-A OUTPUT -p tcp") && !saved.contains("MASQUERADE"),
        "{saved}"
    );
}

/// An extension that this kernel does not have, or not in that revision, is named.
#[test]
fn an_unknown_extension_is_named() {
    for backend in [Backend::Nft, Backend::Legacy] {
        let sandbox = sandbox();
        let mut iptables = open(&sandbox, backend);
        for (options, kind, name) in [
            (
                "-m nosuchmatch --xt-revision 3 --xt-data 0011223344556677",
                "match",
                "nosuchmatch",
            ),
            (
                "-m mark --xt-revision 200 --xt-data 0011223344556677",
                "match",
                "mark",
            ),
            (
                "-j NOSUCH --xt-revision 1 --xt-data 0011223344556677",
                "target",
                "NOSUCH",
            ),
        ] {
            let rule = Rule::parse(Family::Ipv4, options).unwrap();
            let error = iptables
                .update(Family::Ipv4, "filter", |table| table.append("INPUT", &rule))
                .unwrap_err();
            let text = report(&error);
            assert!(
                text.contains(kind) && text.contains(name),
                "{backend:?}: {text}"
            );
            assert!(error.nothing_applied());
            let text = format!("*filter\n-A INPUT -j ACCEPT\n-A INPUT {options}\nCOMMIT\n");
            let restored = iptables.restore(Family::Ipv4, &text, &RestoreOptions::default());
            let text = report(&restored.unwrap_err());
            assert!(
                text.contains(kind) && text.contains(name),
                "{backend:?}: {text}"
            );
            if backend == Backend::Nft {
                assert!(text.contains("line 3"), "{text}");
            }
        }
        let chain = iptables.read(Family::Ipv4, &["filter"]).unwrap();
        let rules: usize = chain
            .iter()
            .iter()
            .flat_map(|t| t.chains())
            .map(|c| c.rule_count())
            .sum();
        assert_eq!(rules, 0);
    }
}

/// With `--test` the kernel looks at a text for nf_tables, too, and nothing is changed.
#[test]
fn a_test_asks_the_kernel() {
    let sandbox = prepared(Backend::Nft);
    let mut iptables = open(&sandbox, Backend::Nft);
    let before = state(&sandbox, Backend::Nft);
    let options = RestoreOptions {
        test: true,
        ..RestoreOptions::default()
    };
    let wrong =
        "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\n-A INPUT -j MASQUERADE\nCOMMIT\n";
    let error = iptables.restore(Family::Ipv4, wrong, &options).unwrap_err();
    assert!(matches!(error, Error::Refused { line: 4, .. }), "{error}");
    let right = wrong.replace("MASQUERADE", "DROP");
    let restored = iptables.restore(Family::Ipv4, right, &options).unwrap();
    assert_eq!(restored.rules, 2);
    assert!(
        before == state(&sandbox, Backend::Nft),
        "something was changed"
    );
}
