//! Saves, restores and compares rulesets: `backup`, `rollback`, `diff`.

use chainwright::nft::TableFlags;
use sha2::Sha256;

use super::*;

#[test]
fn backup_and_rollback_round_trip() {
    let sandbox = loaded();
    let tools = Tools::new(&sandbox);
    let before = tools.run("nft list ruleset");
    let (_directory, path) = file();
    let ran = run(&sandbox, &format!("snapshot {path}")).expect(0);
    assert!(
        ran.out
            .starts_with("saved    3 tables, 5 chains, 5 rules, 9 sets, 14 elements ("),
        "{}",
        ran.out
    );
    assert_eq!(run(&sandbox, &format!("diff {path}")).expect(0).out, "");

    tools.run("nft flush chain ip t d");
    tools.run("nft delete table ip6 t");
    tools.run_with("nft -f -", "table ip z { chain y { drop; }; }");
    let differences = run(&sandbox, &format!("diff {path}")).expect(1);
    let lines = differences.lines();
    assert!(lines.contains(&"+ table ip z"), "{lines:?}");
    assert!(lines.contains(&"- table ip6 t"), "{lines:?}");
    assert!(
        lines.contains(&"- rule ip t d: tcp dport 22 drop"),
        "{lines:?}"
    );
    let bytecode = run(&sandbox, &format!("diff {path} --bytecode")).expect(1);
    let lines = bytecode.lines();
    assert!(lines.iter().any(|l| l.starts_with("- rule ip t d: [ meta")));
    let now = generation(&sandbox);

    let ran = run(&sandbox, &format!("apply --replace {path} --dry-run")).expect(0);
    assert_eq!(generation(&sandbox), now, "a dry run changes nothing");
    let lines = ran.lines();
    assert!(lines[0].starts_with("backup   the whole ruleset: 3 tables, 5 chains"));
    // Each object as `diff` shows it, in the opposite direction.
    let (objects, tables): (Vec<_>, Vec<_>) = lines[1..]
        .iter()
        .copied()
        .partition(|line| line.starts_with(['-', '+']));
    assert!(objects.contains(&"- table ip z") && objects.contains(&"+ table ip6 t"));
    assert_eq!(
        tables,
        [
            "replace  ip filter",
            "replace  ip t",
            "remove   ip z",
            "add      ip6 t",
            "nothing was done"
        ]
    );
    let planned = run(
        &sandbox,
        &format!("apply --replace {path} --dry-run --json"),
    )
    .expect(0);
    let done = run(&sandbox, &format!("apply --replace {path} --json"))
        .expect(0)
        .value();
    assert_eq!(done["tables"], planned.value()["tables"]);
    assert_eq!(planned.value()["done"], false);
    assert_eq!(done["done"], true);
    assert_eq!(done["backup"]["rules"], 5);
    assert_eq!(
        done["tables"][2],
        serde_json::json!({"family": "ip", "table": "z", "action": "remove"})
    );
    assert_eq!(run(&sandbox, &format!("diff {path}")).expect(0).out, "");
    let sorted = |text: &str| {
        let mut tables: Vec<_> = text.split("\n}\n").map(str::to_owned).collect();
        tables.sort();
        tables
    };
    assert_eq!(sorted(&tools.run("nft list ruleset")), sorted(&before));
}

#[test]
fn counters_differ_only_if_requested() {
    let sandbox = loaded();
    let (_directory, path) = file();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    let mut nft = connect(&sandbox);
    let reset = nft.reset_rules(Scope::all()).unwrap().for_each(|_| {});
    if kernel::if_supported(reset).is_none() {
        run(&sandbox, &format!("diff --counters {path}")).expect(0);
        return;
    }
    run(&sandbox, &format!("diff {path}")).expect(0);
    let ran = run(&sandbox, &format!("diff --counters --bytecode {path}")).expect(1);
    assert_eq!(ran.lines().len(), 2, "{}", ran.out);
    assert!(ran.out.contains("pkts 3 bytes 4"), "{}", ran.out);
    let ran = run(&sandbox, &format!("diff --counters --json {path}")).expect(1);
    let changes = &ran.value()["changes"];
    assert_eq!(changes.as_array().unwrap().len(), 1);
    assert_eq!(changes[0]["change_type"], "changed");
    assert_eq!(changes[0]["kind"], "rule");
    let ran = run(&sandbox, &format!("diff --json {path}")).expect(0);
    assert_eq!(ran.value(), serde_json::json!({"changes": []}));
}

/// Differences are visible: in iptables' language, or where it has no words for them, in the bytes
/// that the bytecode listing leaves out.
#[test]
fn the_two_lines_of_a_change_always_differ() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let (_directory, path) = file();
    tools.run("iptables-nft -A INPUT -m comment --comment one -j ACCEPT");
    let with_comment = |text: &str| {
        let mut info = [0; 256];
        info[..text.len()].copy_from_slice(text.as_bytes());
        let comment = chainwright::nft::expr::Match::new("comment", 0, &info[..]);
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t"))
            .and_then(|tx| tx.add(&Chain::new(Family::IP, "t", "c")))
            .and_then(|tx| tx.flush_chain(Family::IP, "t", "c"))
            .and_then(|tx| tx.add(&Rule::new(Family::IP, "t", "c").with(&comment)))
            .unwrap();
        commit(&sandbox, &mut tx);
    };
    with_comment("one");
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    tools.run("iptables-nft -R INPUT 1 -m comment --comment two -j ACCEPT");
    with_comment("two");
    let ran = run(&sandbox, &format!("diff {path}")).expect(1);
    let named = "rule ip t c: xt match \"comment\" 0x";
    let message = ran
        .lines()
        .iter()
        .filter(|line| line.contains(named))
        .count();
    assert_eq!(message, 2, "{}", ran.out);
    let ran = run(&sandbox, &format!("diff {path} --bytecode")).expect(1);
    let lines = ran.lines();
    assert_eq!(lines.len(), 4, "{}", ran.out);
    assert!(
        lines.contains(&"- rule ip filter INPUT: [0:0] -m comment --comment one -j ACCEPT"),
        "{}",
        ran.out
    );
    assert!(
        lines.contains(&"+ rule ip filter INPUT: [0:0] -m comment --comment two -j ACCEPT"),
        "{}",
        ran.out
    );
    let start = |sign: &str| format!("{sign} rule ip t c: [ match name comment rev 0 ] 0x");
    let one = lines
        .iter()
        .find(|line| line.starts_with(&start("-")))
        .unwrap();
    let two = lines
        .iter()
        .find(|line| line.starts_with(&start("+")))
        .unwrap();
    assert!(
        one.contains("6f6e65") && two.contains("74776f"),
        "{}",
        ran.out
    );
}

#[test]
fn a_single_table_can_be_saved_and_restored() {
    let sandbox = loaded();
    let (_directory, path) = file();
    let ran = run(
        &sandbox,
        &format!("snapshot {path} --family ip --table t --json"),
    )
    .expect(0);
    let kept = ran.value();
    assert_eq!((&kept["tables"], &kept["chains"]), (&1.into(), &3.into()));
    let whole = format!("{path}-whole");
    run(&sandbox, &format!("snapshot {whole}")).expect(0);
    Tools::new(&sandbox).run("nft flush table ip t");
    Tools::new(&sandbox).run("nft flush table ip6 t");
    let ran = run(&sandbox, &format!("apply --replace {path}")).expect(0);
    assert_eq!(
        ran.lines()[1..],
        ["replace  ip t", "done     in one transaction"]
    );
    // Everything outside the table stays unchanged.
    let ran = run(&sandbox, &format!("diff {whole}")).expect(1);
    assert_eq!(ran.lines().len(), 1, "{}", ran.out);
    assert!(ran.out.starts_with("- rule ip6 t c: "), "{}", ran.out);
    // One table of a complete file: in the file it is unchanged.
    run(&sandbox, &format!("diff {whole} -4 --table t")).expect(0);
    run(&sandbox, &format!("diff {whole} -6")).expect(1);
    Tools::new(&sandbox).run("nft add rule ip t d counter");
    let ran = run(&sandbox, &format!("diff {whole} --family ip --table t")).expect(1);
    assert_eq!(ran.lines().len(), 1, "{}", ran.out);
    let ran = run(
        &sandbox,
        &format!("apply --replace {whole} -4 -t t --dry-run"),
    )
    .expect(0);
    let lines = ran.lines();
    assert_eq!([lines[1], lines[3]], ["replace  ip t", "nothing was done"]);
    assert_eq!(lines[2], "- rule ip t d: counter packets 0 bytes 0");
    assert_eq!(lines.len(), 4);
    let ran = run(&sandbox, &format!("apply --replace {whole} -6")).expect(0);
    assert!(
        ran.out.starts_with("backup   family ip6: 1 table,"),
        "{}",
        ran.out
    );
    let ran = run(&sandbox, &format!("diff {whole}")).expect(1);
    assert_eq!(ran.lines().len(), 1, "{}", ran.out);
    run(&sandbox, &format!("apply --replace {whole} -4 -t t")).expect(0);
    run(&sandbox, &format!("diff {whole}")).expect(0);
    Tools::new(&sandbox).run("nft flush table ip6 t");
    // Objects that are not in the file are not removed.
    let before = generation(&sandbox);
    for none in ["-t nix", "-6 -t filter", "--family arp -t t"] {
        for verb in ["apply --replace", "diff"] {
            let ran = run(&sandbox, &format!("{verb} {whole} {none}")).expect(1);
            assert!(
                ran.err
                    .contains("contains the whole ruleset: no matching table"),
                "{}",
                ran.err
            );
        }
    }
    let ran = run(&sandbox, &format!("apply --replace {path} -6")).expect(1);
    assert!(
        ran.err
            .contains("contains table t of family ip: no matching table"),
        "{}",
        ran.err
    );
    assert_eq!(generation(&sandbox), before);
    for verb in ["backup", "rollback", "diff"] {
        let ran = run(&sandbox, &format!("{verb} {whole} --backend legacy")).expect(2);
        assert!(ran.err.contains("only support nf_tables"), "{}", ran.err);
    }
    // Two files.
    let ran = run(&sandbox, &format!("diff {whole} {path}")).expect(1);
    assert!(ran.out.contains("- table ip6 t\n"), "{}", ran.out);
    run(&sandbox, &format!("diff {path} {path}")).expect(0);
}

#[test]
fn rollback_skips_and_reports_tables_owned_by_other_processes() {
    let sandbox = sandbox();
    small_ruleset(&sandbox);
    let mut owner = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table {
        flags: Some(TableFlags::OWNER),
        ..Table::new(Family::IP, "owned")
    })
    .unwrap();
    if !kernel::commit_if_supported(&mut owner, &mut tx, &["owned tables"]) {
        return;
    }
    let (_directory, path) = file();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    let ran = run(&sandbox, &format!("apply --replace {path} --dry-run")).expect(0);
    let left = "leave    ip owned (another process owns it)";
    assert!(ran.lines().contains(&left), "{}", ran.out);
    let ran = run(&sandbox, &format!("apply --replace {path}")).expect(2);
    assert!(ran.lines().contains(&left), "{}", ran.out);
    assert!(ran.lines().contains(&"replace  inet t"), "{}", ran.out);
    assert_eq!(
        ran.err,
        "chainwright: not changed, because other processes own them: ip owned\n"
    );
    // The table is deleted with its owner; the rollback creates it again, without an owner.
    close_owner(&sandbox, owner);
    let ran = run(&sandbox, &format!("apply --replace {path}")).expect(0);
    let back = "add      ip owned (it had an owner, and no longer has one)";
    assert!(ran.lines().contains(&back), "{}", ran.out);
}

/// A valid file with an object that this kernel does not support: the error names the operation,
/// and nothing is changed.
#[test]
fn rollback_reports_unsupported_objects_before_any_change() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with("nft -f -", RULESET);
    let (_directory, path) = file();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    let mut bytes = fs::read(&path).unwrap();
    // An unknown expression, with a matching checksum.
    let at = bytes.windows(8).position(|eight| eight == b"counter\0");
    bytes[at.unwrap() + 6] = b'x';
    let end = bytes.len() - 32;
    let sum = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum);
    fs::write(&path, bytes).unwrap();
    let before = generation(&sandbox);
    for verb in ["apply --replace --dry-run", "rollback"] {
        let ran = run(&sandbox, &format!("{verb} {path}")).expect(2);
        assert_eq!(ran.out, "");
        for message in ["the transaction was not applied", "add rule", "ENOENT"] {
            assert!(ran.err.contains(message), "{verb}: {}", ran.err);
        }
        assert_eq!(generation(&sandbox), before);
    }
}

#[test]
fn rejects_invalid_files() {
    let sandbox = sandbox();
    small_ruleset(&sandbox);
    let (directory, path) = file();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    let kept = fs::read(&path).unwrap();
    let bad = directory.path().join("bad");
    let mut altered = kept.clone();
    altered[100] ^= 1;
    for (content, message) in [
        (&kept[..kept.len() / 2], "is truncated"),
        (&kept[..kept.len() - 1], "was modified or damaged"),
        (&altered, "was modified or damaged"),
    ] {
        fs::write(&bad, content).unwrap();
        for verb in ["apply --replace", "apply --replace --dry-run", "diff"] {
            let before = generation(&sandbox);
            let ran = run(&sandbox, &format!("{verb} {}", bad.display())).expect(2);
            assert_eq!(ran.out, "");
            assert!(ran.err.contains(message), "{verb}: {}", ran.err);
            assert_eq!(generation(&sandbox), before);
        }
    }
    let absent = directory.path().join("absent");
    for verb in ["apply --replace", "diff"] {
        let ran = run(&sandbox, &format!("{verb} {}", absent.display())).expect(2);
        assert!(ran.err.contains("No such file"), "{}", ran.err);
    }
    let ran = run(
        &sandbox,
        &format!("snapshot {}/x/y", directory.path().display()),
    )
    .expect(2);
    assert!(ran.err.contains("No such file"), "{}", ran.err);
}

#[test]
fn diff_prints_changed_elements() {
    let sandbox = loaded();
    let (_directory, path) = file();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    Tools::new(&sandbox).run_with(
        "nft -f -",
        "add element ip t ranges { 172.16.0.0/12 }
         add element ip t both { 11.0.0.0/8 . 443 }
         delete element ip t verdicts { \"lo\" }
         add element ip t passing { tcp . 0x10 timeout 5d comment \"y\" }",
    );
    let ran = run(&sandbox, &format!("diff {path}")).expect(1);
    let mut lines = ran.lines();
    lines.sort();
    let [both, passing, last, first, verdict] = lines[..] else {
        panic!("{}", ran.out);
    };
    assert_eq!(both, "+ element ip t both: 11.0.0.0/8 . 443");
    let start = "+ element ip t passing: tcp . 0x00000010 timeout 5d expires 4d23h59m";
    assert!(passing.starts_with(start), "{passing}");
    assert_eq!(last, "+ element ip t ranges: before 172.32.0.0");
    assert_eq!(first, "+ element ip t ranges: from 172.16.0.0");
    assert_eq!(verdict, "- element ip t verdicts: \"lo\" : accept");
}

/// `diff` reads texts of all formats; one is compared only with the tables that it creates.
#[test]
fn diff_reads_files_of_all_formats() {
    let sandbox = loaded();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let text = |name: &str, command: &str| {
        let text = run(&sandbox, command).expect(0).out;
        std::fs::write(path(name), text).unwrap();
        path(name)
    };
    let tools = Tools::new(&sandbox);
    let nft = text("nft", "get ruleset table ip t");
    let json = text("json", "get ruleset -o nft-json table ip t");
    let save = text("save", "get ruleset -o iptables");
    let (_directory, snapshot) = file();
    // iptables would also create the other base chains.
    let chains = ["FORWARD", "OUTPUT"].map(|chain| {
        format!(
            "- chain ip filter {chain}: type filter hook {} priority filter; policy accept",
            chain.to_lowercase()
        )
    });
    assert_eq!(
        run(&sandbox, &format!("diff {save}")).expect(1).lines(),
        chains
    );
    tools.run("iptables-nft -P FORWARD ACCEPT");
    tools.run("iptables-nft -P OUTPUT ACCEPT");
    run(&sandbox, &format!("snapshot {snapshot}")).expect(0);
    for file in [&nft, &json, &save, &snapshot] {
        assert_eq!(
            run(&sandbox, &format!("diff {file}")).expect(0).out,
            "",
            "{file}"
        );
    }
    run(&sandbox, &format!("diff {json} {nft}")).expect(0);
    run(&sandbox, &format!("diff {nft} {snapshot} --table t -4")).expect(0);
    let missing = run(&sandbox, &format!("diff {nft} {snapshot}")).expect(1);
    assert!(missing.out.contains("+ table ip6 t"), "{}", missing.out);

    tools.run("nft add rule ip t d tcp dport 23 drop");
    tools.run("nft add table ip other");
    let changed = |file: &str, lines: &[&str]| {
        let ran = run(&sandbox, &format!("diff {file}")).expect(1);
        assert_eq!(ran.lines(), lines, "{file}");
    };
    let rule = "+ rule ip t d: tcp dport 23 drop";
    changed(&nft, &[rule]);
    changed(&json, &[rule]);
    changed(&snapshot, &[rule, "+ table ip other"]);
    assert_eq!(run(&sandbox, &format!("diff {save}")).expect(0).out, "");
    tools.run("iptables-nft -A INPUT -j LOG");
    changed(&save, &["+ rule ip filter INPUT: [0:0] -j LOG"]);
    let twice = run(&sandbox, "diff - -").expect(2);
    assert!(twice.err.contains("only once"), "{}", twice.err);
    std::fs::write(path("wrong"), "table ip t { chain c { jump gone; }; }").unwrap();
    let wrong = run(&sandbox, &format!("diff {}", path("wrong"))).expect(2);
    assert!(wrong.err.contains("is not a ruleset"), "{}", wrong.err);
}

/// The changes that `apply --dry-run` prints are those that `diff` prints after the same text was applied.
#[test]
fn dry_runs_print_the_changes() {
    let sandbox = loaded();
    let (_directory, snapshot) = file();
    for (text, some) in [
        (
            "add rule ip t d tcp dport 23 drop",
            "+ rule ip t d: tcp dport 23 drop",
        ),
        (
            "insert rule ip t d ip saddr { 10.9.9.9 } accept",
            "+ rule ip t d: ",
        ),
        (
            "add element ip t names { \"wlan0\" }",
            "+ element ip t names: from \"wlan0\"",
        ),
        ("flush chain ip t c\ndelete chain ip t c", "- chain ip t c"),
        (
            "table inet new { set s { type ipv4_addr; }; chain c { type filter hook input priority 0; ip saddr @s drop; }; }",
            "+ table inet new",
        ),
        (
            "chain ip filter INPUT { policy drop; }",
            "+ chain ip filter INPUT: ",
        ),
        ("flush ruleset", "- table ip t"),
    ] {
        let apply = |options: &str| {
            let mut words = vec!["apply"];
            words.extend(options.split_whitespace());
            let input = format!("{text}\n");
            let mut command = std::process::Command::new(PROGRAM);
            command.args(words);
            let output = sandbox
                .run(|| crate::common::tools::run_on(&mut command, input.as_bytes()))
                .unwrap()
                .unwrap();
            Ran::from(output)
        };
        run(&sandbox, &format!("snapshot {snapshot}")).expect(0);
        let before = generation(&sandbox);
        let planned = apply("--dry-run").expect(0);
        assert_eq!(generation(&sandbox), before, "{text}");
        assert!(planned.out.contains(some), "{text}: {}", planned.out);
        let json = apply("--dry-run --json").expect(0).value();
        apply("").expect(0);
        // The kernel lists elements in its own order.
        let sorted = |lines: &str| {
            let mut lines: Vec<_> = lines.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        let real = run(&sandbox, &format!("diff {snapshot}")).expect(1);
        let (planned, end) = planned.out.split_once("nothing was done\n").unwrap();
        assert_eq!((sorted(planned), end), (sorted(&real.out), ""), "{text}");
        let real = run(&sandbox, &format!("diff {snapshot} --json"))
            .expect(1)
            .value();
        let changes = |document: &Value| {
            let changes = document["changes"].as_array().unwrap();
            let mut changes: Vec<_> = changes.iter().map(Value::to_string).collect();
            changes.sort_unstable();
            changes
        };
        assert_eq!(changes(&json), changes(&real), "{text}");
    }
}
