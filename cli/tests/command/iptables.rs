//! Compares the verbs of iptables' language, `save` and `restore`, run as programs in sandboxes,
//! with the real tools.
mod cleaning;
mod printing;
mod refusing;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output, Stdio};

use crate::common::tools::{Tools, run_on};
use crate::common::{connect, sandbox};
use chainwright::legacy;
use chainwright::nft::Family;
use chainwright_testing::Sandbox;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

/// Built-in and other chains, counters, quotes, several tables, as `iptables-save -c` prints them.
const TEXT: &str = r#"*filter
:INPUT DROP [3:400]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-FIREWALL - [0:0]
[1:60] -A INPUT -i lo -m comment --comment "it's \"quoted\"" -j ACCEPT
[2:120] -A INPUT -j KUBE-FIREWALL
[0:0] -A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
[5:500] -A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE
COMMIT
"#;

/// The result of a run.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Returns the output without the comments around tables.
    fn text(&self) -> String {
        let lines = self.out.lines().filter(|line| !line.starts_with("# "));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output
                .status
                .code()
                .expect("the command exits without a signal"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs the command in the sandbox, arguments separated by blanks, with this standard input.
fn run_with(sandbox: &Sandbox, arguments: &str, input: &str) -> Ran {
    let work = || {
        let mut command = Command::new(PROGRAM);
        command.args(arguments.split_whitespace());
        run_on(&mut command, input.as_bytes()).unwrap()
    };
    sandbox.run(work).unwrap().into()
}

fn run(sandbox: &Sandbox, arguments: &str) -> Ran {
    run_with(sandbox, arguments, "")
}

/// Returns the legacy tables in use; none if the kernel has no legacy tables.
fn legacy_tables(sandbox: &Sandbox) -> Vec<String> {
    match sandbox
        .run(|| legacy::status(legacy::Family::Ipv4))
        .unwrap()
    {
        Ok(legacy::Status::InUse(tables)) => tables.iter().map(ToString::to_string).collect(),
        Ok(_) => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// `save` prints what the tools of both backends restored, and they save what `restore` restored.
#[test]
fn save_and_restore_match_the_real_tools() {
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let real_save = format!("iptables-{backend}-save -c");
        tools.run_with(&format!("iptables-{backend}-restore -c"), TEXT);
        let theirs = tools.save(&real_save);
        let ours = run(
            &sandbox,
            &format!("get ruleset -o iptables -c --backend {backend}"),
        )
        .expect(0);
        assert_eq!(ours.text(), theirs, "{backend}");
        assert_eq!(ours.err, "", "{backend}");

        let restore = format!("apply -4 -c --lock none --backend {backend}");
        let ran = run_with(&sandbox, &restore, TEXT).expect(0);
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""), "{backend}");
        assert_eq!(tools.save(&real_save), theirs, "{backend}");

        // Over the same rules, whose counters are not 0: all counters start at 0 again.
        let restore = format!("apply --lock none --backend {backend}");
        run_with(&sandbox, &restore, TEXT).expect(0);
        let again = tools.save(&real_save);
        let mut lines = again.lines().filter(|l| l.starts_with([':', '[']));
        assert!(
            lines.all(|line| line.contains("[0:0]")),
            "{backend}: {again}"
        );

        // Only one table, without counters.
        let nat = run(
            &sandbox,
            &format!("get ruleset -o iptables -t nat --backend {backend}"),
        )
        .expect(0);
        assert!(nat.out.contains("\n-A POSTROUTING -m mark"), "{}", nat.out);
        assert!(!nat.out.contains("*filter"), "{}", nat.out);
    }
}

/// What `--dry-run` prints is the difference between the tables before and after the text is restored.
#[test]
fn dry_run_prints_the_changes_of_a_text() {
    const BEFORE: &str = "*filter\n:FORWARD DROP [0:0]\n:old - [0:0]\n:stays - [0:0]\n\
        [3:4] -A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n-A INPUT -j old\n-A stays -j DROP\n\
        -A FORWARD -p udp -j DROP\nCOMMIT\n";
    // It does not mention the chain with another policy.
    const REST: &str = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\n";
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let save = format!("iptables-{backend}-save -t filter");
        let apply = format!("apply --lock none --backend {backend}");
        run_with(&sandbox, &apply, BEFORE).expect(0);
        // Comments before the first table, and a part of the text.
        let text = format!("# made by hand\n{BEFORE}*nat\n-A OUTPUT -j ACCEPT\nCOMMIT\n");
        let dry_run = format!("{apply} --dry-run -t filter");
        assert_eq!(
            run_with(&sandbox, &dry_run, &text).expect(0).out,
            "nothing was done\n"
        );
        let dry_run = format!("{apply} --dry-run");
        let planned = run_with(&sandbox, &dry_run, &text).expect(0).out;
        assert!(
            planned.contains("+ rule ip nat OUTPUT: [0:0] -j ACCEPT\n"),
            "{planned}"
        );
        assert!(!planned.contains("ip filter"), "{planned}");
        for text in [
            BEFORE,
            "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:new - [0:0]\n:stays - [0:0]\n\
             -A INPUT -p tcp -m tcp --dport 80 -j new\n-A new -s 10.0.0.0/8 -j ACCEPT\n-A stays -j DROP\nCOMMIT\n",
            REST,
            BEFORE,
            REST,
        ] {
            let before = tools.save(&save);
            let planned = run_with(&sandbox, &format!("{apply} --dry-run"), text)
                .expect(0)
                .out;
            assert_eq!(tools.save(&save), before);
            let lines = |text: &str| -> BTreeSet<String> {
                let lines = text.lines().filter(|line| line.starts_with("-A "));
                lines.map(str::to_owned).collect()
            };
            run_with(&sandbox, &apply, text).expect(0);
            let after = tools.save(&save);
            for chain in ["INPUT", "FORWARD", "OUTPUT"] {
                let declaration = format!(":{chain} ");
                let policy = |text: &str| -> String {
                    let line = text
                        .lines()
                        .find_map(|line| line.strip_prefix(&declaration));
                    let policy = line.unwrap().split(' ').next();
                    policy.unwrap().to_lowercase()
                };
                let [old, new] = [&before, &after].map(|text| policy(text));
                let is_planned = |sign: char, policy: &str| {
                    planned.lines().any(|line| {
                        line.starts_with(&format!("{sign} chain ip filter {chain}: "))
                            && line.ends_with(&format!(" policy {policy}"))
                    })
                };
                let found = (is_planned('-', &old), is_planned('+', &new));
                assert_eq!(
                    found,
                    (old != new, old != new),
                    "{backend} {chain}: {planned}"
                );
            }
            let before = lines(&before);
            let after = lines(&after);
            let changed = |sign: &str| -> BTreeSet<String> {
                let prefix = format!("{sign} rule ip filter ");
                let rules = planned
                    .lines()
                    .filter_map(|line| line.strip_prefix(&prefix));
                let rules = rules.map(|rule| rule.replacen(": [0:0]", "", 1));
                rules.map(|rule| format!("-A {rule}")).collect()
            };
            let (removed, added) = (changed("-"), changed("+"));
            let expected: BTreeSet<_> = after.difference(&before).cloned().collect();
            assert_eq!(added, expected, "{backend}: {planned}");
            let expected: BTreeSet<_> = before.difference(&after).cloned().collect();
            let in_removed_chains = |rule: &&String| {
                let chain = rule.split(' ').nth(1).unwrap();
                planned.contains(&format!("- chain ip filter {chain}\n"))
            };
            let expected: BTreeSet<_> = expected
                .iter()
                .filter(|rule| removed.contains(*rule) || !in_removed_chains(rule))
                .cloned()
                .collect();
            assert_eq!(removed, expected, "{backend}: {planned}");
        }
    }
}

#[test]
fn restore_options_limit_the_change() {
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let restore = format!("apply --lock none --backend {backend}");
        run_with(&sandbox, &restore, TEXT).expect(0);
        let save = format!("iptables-{backend}-save");
        let before = tools.save(&save);

        // --dry-run changes nothing; --table restores one table of the text; -n keeps the existing rules.
        let more = "*filter\n-A INPUT -j DROP\nCOMMIT\n*nat\n-A OUTPUT -j ACCEPT\nCOMMIT\n";
        run_with(&sandbox, &format!("{restore} -n --dry-run"), more).expect(0);
        assert_eq!(tools.save(&save), before);
        let ran = run_with(&sandbox, &format!("{restore} -n --table nat --json"), more).expect(0);
        let counts: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(
            counts,
            json!({"version": 1, "verb": "restore", "tables": 1, "chains": 0, "rules": 1, "shortened": []})
        );
        let after = tools.save(&save);
        assert!(after.contains("-A OUTPUT -j ACCEPT"), "{after}");
        assert!(!after.contains("-A INPUT -j DROP"), "{after}");
        assert!(after.contains("KUBE-FIREWALL"), "{after}");

        // Without -n the table is flushed, also when the text comes from a file.
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "*filter\nCOMMIT\n").unwrap();
        run(&sandbox, &format!("{restore} {}", file.path().display())).expect(0);
        let after = tools.save(&save);
        assert!(!after.contains("KUBE-FIREWALL"), "{after}");
        assert!(after.contains("-A OUTPUT -j ACCEPT"), "{after}");
    }
}

#[test]
fn profiles_match_their_versions() {
    let sandbox = sandbox();
    for (profile, native) in [("1.8.7", false), ("1.8.8", true), ("1.8.10", true)] {
        let restore = format!("apply --profile {profile}");
        run_with(&sandbox, &restore, TEXT).expect(0);
        let rules = run(&sandbox, "get rules --bytecode --table nat")
            .expect(0)
            .out;
        assert_eq!(
            rules.contains("meta load mark"),
            native,
            "{profile}: {rules}"
        );
    }
    run(&sandbox, "apply --profile 1.8.6").expect(2);
}

/// iptables creates the table at priority 150, not at `NF_IP_PRI_SECURITY`.
#[test]
fn the_security_table_equals_that_of_iptables() {
    for (program, option) in [("iptables-nft", "-4"), ("ip6tables-nft", "-6")] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let rule = "-A INPUT -p tcp -j CONNSECMARK --save";
        tools.run(&format!("{program} -t security {rule}"));
        let ran = run(&sandbox, &format!("get ruleset -o iptables {option}")).expect(0);
        assert!(ran.out.contains(&format!("{rule}\n")), "{}", ran.out);
        let text = "*security\n-A INPUT -p udp -j CONNSECMARK --save\nCOMMIT\n";
        run_with(&sandbox, &format!("apply -n {option}"), text).expect(0);
        let save = tools.save(&format!("{program}-save -t security"));
        assert_eq!(save.matches("CONNSECMARK").count(), 2, "{save}");
    }
    for program in ["iptables-nft", "ip6tables-nft"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        // Each table that we create equals that of the real tool.
        let option = if program == "iptables-nft" {
            "-4"
        } else {
            "-6"
        };
        for (table, chains) in [
            ("raw", &["PREROUTING", "OUTPUT"][..]),
            (
                "mangle",
                &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
            ),
            ("nat", &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]),
            ("filter", &["INPUT", "FORWARD", "OUTPUT"]),
            ("security", &["INPUT", "FORWARD", "OUTPUT"]),
        ] {
            let rules: String = chains.iter().map(|c| format!("-A {c} -p tcp\n")).collect();
            let text = format!("*{table}\n{rules}COMMIT\n");
            run_with(&sandbox, &format!("apply {option}"), &text).expect(0);
            let save = tools.save(&format!("{program}-save -t {table}"));
            assert_eq!(save.matches("-p tcp").count(), chains.len(), "{save}");
            for chain in chains {
                tools.run(&format!("{program} -t {table} -A {chain} -p udp"));
            }
            let ours = run(
                &sandbox,
                &format!("get ruleset -o iptables {option} -t {table}"),
            )
            .expect(0);
            assert_eq!(ours.out.matches("-p udp").count(), chains.len());
        }
    }
}

/// All spellings that the real tool accepts: both numbers in one word, and leading zeroes that do
/// not mean octal.
#[test]
fn counters_are_parsed_as_the_real_tool_reads_them() {
    for (word, save) in [
        ("-c 5,6", "[5:6]"),
        ("-c 5 6", "[5:6]"),
        ("--set-counters 7,8", "[7:8]"),
        ("-c 010,011", "[10:11]"),
        ("-c 010 011", "[10:11]"),
    ] {
        for backend in ["nft", "legacy"] {
            let text = format!("*filter\n-A INPUT {word} -p tcp\nCOMMIT\n");
            let (theirs, ours) = (sandbox(), sandbox());
            let tools = Tools::new(&theirs);
            tools.run_with(&format!("iptables-{backend}-restore -c"), &text);
            let restore = format!("apply -c --lock none --backend {backend}");
            run_with(&ours, &restore, &text).expect(0);
            for tools in [tools, Tools::new(&ours)] {
                let saved = tools.save(&format!("iptables-{backend}-save -c"));
                let wanted = format!("{save} -A INPUT -p tcp\n");
                assert!(saved.contains(&wanted), "{word}: {saved}");
            }
        }
    }
    // The real tool parses the leading digits only (docs/differences.md).
    for word in [
        "-c 5x,6", "-c 5,6x", "-c -1 3", "-c 5,", "-c ,6", "-c 0x5,6",
    ] {
        let text = format!("*filter\n-A INPUT {word} -p tcp\nCOMMIT\n");
        let ran = run_with(&sandbox(), "apply", &text).expect(2);
        assert!(ran.err.starts_with("<stdin>:2:"), "{word}: {}", ran.err);
    }
}

/// The differences in tables, chains and interface names that docs/differences.md lists.
#[test]
fn differences_in_tables_and_chains() {
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let restore = format!("apply -n --lock none --backend {backend}");
        let line = |line: &str| format!("*nat\n{line}\nCOMMIT\n");
        let real = format!("iptables-{backend}-restore -n");
        run_with(&sandbox, &restore, &line("-N mine")).expect(0);
        for verb in ["-A mine", "-I mine", "-C mine", "-D mine"] {
            let text = line(&format!("{verb} -j DROP"));
            assert!(tools.takes(&real, &text).is_err(), "{backend} {verb}");
            let ran = run_with(&sandbox, &restore, &text).expect(2);
            let refused = ran.err.contains("not intended for filtering");
            assert_eq!(
                refused,
                matches!(verb, "-A mine" | "-I mine"),
                "{}",
                ran.err
            );
        }
        // A chain cannot be renamed to a verdict.
        let ran = run_with(&sandbox, &restore, &line("-E mine ACCEPT")).expect(2);
        assert!(ran.err.contains("cannot be named ACCEPT"), "{}", ran.err);
        let save = tools.save(&format!("iptables-{backend}-save -t nat"));
        assert!(
            save.contains(":mine - ") && !save.contains(":ACCEPT"),
            "{save}"
        );
    }
    let sandbox = sandbox();
    run_with(
        &sandbox,
        "restore",
        "*filter\n-A INPUT -i + -j ACCEPT\nCOMMIT\n",
    )
    .expect(0);
    let ran = run(&sandbox, "get rules --bytecode").expect(0);
    assert!(!ran.out.contains("iifname"), "{}", ran.out);
    assert!(
        run(&sandbox, "get ruleset -o iptables")
            .expect(0)
            .out
            .contains("-A INPUT -j ACCEPT\n")
    );
}

#[test]
fn a_table_that_is_not_in_the_text_is_reported_as_missing() {
    let sandbox = sandbox();
    let ran = run_with(&sandbox, "apply --table nta", TEXT).expect(2);
    assert!(
        ran.err
            .contains("table nta not found in the text (did you mean nat?)"),
        "{}",
        ran.err
    );
    let ran = run_with(&sandbox, "apply --table raw", TEXT).expect(2);
    assert!(
        ran.err.contains("table raw not found in the text"),
        "{}",
        ran.err
    );
    run(&sandbox, "get ruleset -o iptables").expect(1);
}

/// The exit code of a verb stays the same when the reader closes the pipe early, as `head` does.
#[test]
fn the_exit_code_is_kept_when_the_reader_closes_the_pipe() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    run_with(&sandbox, "apply", TEXT).expect(0);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    tools.run("nft add rule ip filter KUBE-FIREWALL meta length 5 drop");
    let unread = |arguments: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let work = || {
            let mut command = Command::new(PROGRAM);
            command.args(arguments.split_whitespace());
            command.stdout(writer).stderr(Stdio::piped());
            command.output().unwrap()
        };
        sandbox.run(work).unwrap()
    };
    for (arguments, code) in [
        (format!("diff {path}"), 1),
        (format!("diff --json {path}"), 1),
        ("get ruleset -o iptables".to_owned(), 2),
        ("get ruleset -o iptables --json".to_owned(), 2),
        ("get ruleset -o iptables -t nat".to_owned(), 0),
        ("get chains".to_owned(), 0),
        ("get chains --json".to_owned(), 0),
        ("get chains --table nowhere".to_owned(), 1),
        ("get chains --table nowhere --json".to_owned(), 1),
        ("get rules".to_owned(), 0),
        ("get rules --json".to_owned(), 0),
        ("get rules --bytecode".to_owned(), 0),
        ("get rules --backend legacy --json".to_owned(), 1),
        ("get sets --elements".to_owned(), 1),
        ("get sets --json".to_owned(), 1),
        ("kube check".to_owned(), 1),
        ("kube check --json".to_owned(), 1),
        ("kube ensure".to_owned(), 0),
        ("kube remove --json".to_owned(), 0),
        (format!("snapshot {path}.2"), 0),
        (format!("apply --replace {path} --dry-run"), 0),
        (format!("apply --replace {path} --json"), 0),
        (format!("apply --replace {path} -t nix"), 1),
        (format!("diff {path}"), 0),
        (format!("diff {path} {path}.2"), 1),
        ("apply --format iptables --json -n /dev/null".to_owned(), 0),
        ("apply /nowhere".to_owned(), 2),
        ("completions bash".to_owned(), 0),
        ("man".to_owned(), 0),
        ("man nix".to_owned(), 1),
        ("--help".to_owned(), 0),
        ("--version".to_owned(), 0),
        ("help apply".to_owned(), 0),
        ("nix".to_owned(), 2),
    ] {
        let ran = Ran::from(unread(&arguments));
        assert_eq!(ran.code, code, "{arguments}: {ran:?}");
        assert!(!ran.err.contains("panicked"), "{arguments}: {ran:?}");
    }
}

#[test]
fn save_as_json() {
    let sandbox = sandbox();
    run_with(&sandbox, "apply -c", TEXT).expect(0);
    let ran = run(&sandbox, "get ruleset -o iptables --json -t filter").expect(0);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["family"], "ip");
    assert_eq!(document["backend"], "nft");
    let chains = document["tables"][0]["chains"].as_array().unwrap();
    let chain = |name| chains.iter().find(|chain| chain["chain"] == name).unwrap();
    assert_eq!(
        *chain("INPUT"),
        json!({"chain": "INPUT", "policy": "DROP", "packets": 3, "bytes": 400, "rules": [
            {"packets": 1, "bytes": 60,
             "rule": r#"-i lo -m comment --comment "it\'s \"quoted\"" -j ACCEPT"#},
            {"packets": 2, "bytes": 120, "rule": "-j KUBE-FIREWALL"},
        ]})
    );
    assert_eq!(chain("KUBE-FIREWALL").get("policy"), None);
}

#[test]
fn reading_creates_no_tables() {
    let sandbox = sandbox();
    let generation = connect(&sandbox).generation().unwrap();
    for arguments in [
        "get ruleset -o iptables",
        "get ruleset -o iptables -6",
        "get ruleset -o iptables -t nat",
        "get ruleset -o iptables --backend legacy -t nat",
    ] {
        let ran = run(&sandbox, arguments).expect(1);
        assert_eq!(ran.out, "", "{arguments}");
        assert!(
            ran.err.starts_with("chainwright: no "),
            "{arguments}: {}",
            ran.err
        );
    }
    assert!(
        run(&sandbox, "get ruleset -o iptables --backend legacy")
            .expect(1)
            .out
            .is_empty()
    );
    assert_eq!(legacy_tables(&sandbox), Vec::<String>::new());
    assert_eq!(connect(&sandbox).generation().unwrap(), generation);
}

#[test]
fn rules_in_the_other_backend_are_reported() {
    let sandbox = sandbox();
    let filter = "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n";
    run_with(&sandbox, "apply", filter).expect(0);
    let ran = run_with(&sandbox, "apply --backend legacy --lock none", filter).expect(0);
    assert!(
        ran.err
            .contains("IPv4 tables in use: filter (see --backend nft)")
    );
    assert_eq!(legacy_tables(&sandbox), ["filter"]);
    let ran = run(&sandbox, "get ruleset -o iptables").expect(0);
    assert!(
        ran.err
            .contains("IPv4 tables in use: filter (see --backend legacy)")
    );
    assert_eq!(
        run(&sandbox, "get ruleset -o iptables -6")
            .expect(1)
            .err
            .matches("the other backend also has")
            .count(),
        0
    );
}

/// Names and texts that other programs wrote cannot control a terminal or forge a line, whichever
/// verb prints them.
#[test]
fn names_cannot_control_a_terminal() {
    use chainwright::nft::expr::Immediate;
    use chainwright::nft::{Chain, Rule, Table, Transaction};

    const DRIVING: &str = "ev\x1b[31mil\x07\u{9b}8m";
    const FORGING: &str = "n\n-A INPUT -j ACCEPT\n#";
    const IP: Family = Family::IP;
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "filter")).unwrap();
    let input = Chain::new(IP, "filter", "INPUT").with_hook("filter", 1, 0);
    tx.add(&input).unwrap();
    for name in [DRIVING, FORGING] {
        tx.add(&Chain::new(IP, "filter", name)).unwrap();
        tx.add(&Rule::new(IP, "filter", "INPUT").with(&Immediate::jump(name)))
            .unwrap();
        tx.add(&Rule::new(IP, "filter", name).with(&Immediate::accept()))
            .unwrap();
    }
    connect(&sandbox).commit(&tx).unwrap();
    // The legacy tools reject a line break in a name.
    run_with(
        &sandbox,
        "apply --backend legacy",
        &format!("*filter\n:{DRIVING} - [0:0]\n-A INPUT -j {DRIVING}\nCOMMIT\n"),
    )
    .expect(0);
    for arguments in [
        "get ruleset -o iptables",
        "get ruleset -o iptables --backend legacy",
        "rules",
        "get rules --bytecode",
        "get rules --backend legacy",
        "chains",
        "get ruleset ruleset",
        "delete chains --dry-run *",
        "graph",
        "graph --backend legacy",
        "doctor",
        "trace --in eth0 tcp 10.0.0.1:5 127.0.0.1:1",
        "iptables-legacy -S",
        "iptables-legacy -L",
        "iptables-legacy-save",
        "nft list ruleset",
        "nft --debug=netlink list ruleset",
    ] {
        let line = format!("script --quiet --command \"{PROGRAM} {arguments}\" /dev/null");
        let line = line.replace('*', "'*'");
        let printed = tools.run(&line);
        assert!(printed.contains("ev"), "{arguments}: {printed:?}");
        for forbidden in ["\x1b[31m", "\x07", "\u{9b}", "\r\n-A INPUT -j ACCEPT\r\n"] {
            assert!(!printed.contains(forbidden), "{arguments}: {printed:?}");
        }
        // A pipe gets the unescaped name where the text can be read back, but no forged line
        // either.
        let piped = run(&sandbox, arguments);
        assert!(
            !piped.out.contains("\n-A INPUT -j ACCEPT\n"),
            "{arguments}: {piped:?}"
        );
    }
    let saved = run(&sandbox, "get ruleset -o iptables --backend legacy").expect(0);
    assert!(
        saved.out.contains(&format!(":{DRIVING} - [0:0]\n")),
        "{saved:?}"
    );
}

/// On a terminal (of `script`, which every Debian has) slow work prints a progress line and erases
/// it at the end; elsewhere nothing is printed.
#[test]
fn slow_work_shows_progress_on_a_terminal() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let restore = format!("{PROGRAM} apply --lock none --backend nft -4");
    // One backslash is for the shell, the other for splitting the line into words.
    let text = "printf '*filter\\\\nCOMMIT\\\\n'";
    let late = format!("(sleep 2; {text})");
    let printed = |from: &str| {
        let line = format!("script --quiet --return --command \"{from} | {restore}\" /dev/null");
        tools.run(&line)
    };
    let slow = printed(&late);
    assert!(slow.contains("\r\x1b[Kreading <stdin>: 1 s"), "{slow:?}");
    assert!(slow.ends_with("\r\x1b[K"), "{slow:?}");
    // Fast work prints nothing on a terminal either.
    assert_eq!(printed(text), "");
    let elsewhere = format!("env sh -c \"{late} | {restore} 2>&1\"");
    assert_eq!(tools.run(&elsewhere), "");
}
