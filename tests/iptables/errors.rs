//! Errors in changes: their messages, and that nothing is applied.

mod lines;

use crate::common::iptables::{open, state, tool};
use crate::common::tools::Tools;
use crate::common::{report, sandbox};
use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{Backend, Error, Family, Iptables, Rule};
use chainwright_testing::Sandbox;

const BACKENDS: [Backend; 2] = [Backend::Nft, Backend::Legacy];

/// The initial tables.
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
fn an_invalid_text_or_a_dry_run_creates_no_legacy_table() {
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

/// nf_tables applies new names only at the commit.
#[test]
fn operations_nf_tables_cannot_combine() {
    let sandbox = prepared(Backend::Nft);
    let before = state(&sandbox, Backend::Nft);
    let new = "renaming a chain in the same change that creates it is not possible with nf_tables";
    let taken = "creating a chain with the old name of a chain that the same change renames is not possible with nf_tables";
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

/// A short line cannot create an unlimited number of rules.
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
            "line 2, column 2072: each pair of a source and a destination is a rule: one line can create at most 65536"
        );
        assert_eq!(state(&sandbox, backend), before);
    }
}

/// Errors that only the kernel detects.
#[test]
fn kernel_rejections_are_errors() {
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
                Backend::Legacy => ("the kernel rejected the new legacy IPv4 table filter: E", 0),
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
        // A chain that another one jumps to.
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

/// Errors that involve several lines.
#[test]
fn mistakes_between_lines() {
    let texts = [
        (
            "-A INPUT\n",
            "line 1, column 1: expected a line like `*filter`",
        ),
        (
            "COMMIT\n",
            "line 1, column 1: expected a line like `*filter`",
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
            "line 3, column 1: expected COMMIT before the next table",
        ),
        (
            "*filter\n-A INPUT\0\nCOMMIT\n",
            "line 2, column 9: it contains a NUL or a newline",
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
        // A flushed table has only the declared chains.
        let text = "*filter\n:mine - [0:0]\n-A mine -j DROP\n-A INPUT -j KUBE-FORWARD\nCOMMIT\n";
        let error = restore(&mut open(&sandbox, backend), text, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 4: chain KUBE-FORWARD not found in table filter"
        );
        assert_eq!(state(&sandbox, backend), before);
    }
}

/// Legacy tables are replaced one after the other: the error names the changed ones.
#[test]
fn a_rejected_second_legacy_table_is_reported() {
    let sandbox = prepared(Backend::Legacy);
    let text = "*mangle\n-A OUTPUT -p tcp\nCOMMIT\n*filter\n-A INPUT -j MASQUERADE\nCOMMIT\n";
    let error = restore(&mut open(&sandbox, Backend::Legacy), text, true).unwrap_err();
    assert!(!error.nothing_applied());
    let start = "replaced IPv4 mangle, then failed: the kernel rejected the new legacy IPv4 table filter: EINVAL";
    assert!(error.to_string().starts_with(start), "{error}");
    assert!(matches!(&error, Error::PartlyApplied { applied, .. } if *applied == ["IPv4 mangle"]));
    let saved = Tools::new(&sandbox).save("iptables-legacy-save");
    assert!(
        saved.contains("-A OUTPUT -p tcp") && !saved.contains("MASQUERADE"),
        "{saved}"
    );
}

/// The error names an extension that this kernel lacks, or lacks in that revision.
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

/// With `--test` the kernel also checks a text for nf_tables, and nothing is changed.
#[test]
fn a_test_is_checked_by_the_kernel() {
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
        "nothing should change"
    );
}
