//! The verbs of iptables' language, `save` and `restore`, as a program, in sandboxes, against the real
//! tools.
#![cfg(feature = "cli")]

mod common;

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use chainwright::legacy::{self, Lock, LockPolicy, LockWait};
use chainwright::netns::Sandbox;
use common::tools::Tools;
use common::{connect, sandbox};
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

/// What a run of the command left.
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

    /// The output, without the comments that stand around tables.
    fn text(&self) -> String {
        let lines = self.out.lines().filter(|line| !line.starts_with("# "));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it ended by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs the command in the sandbox, arguments separated by blanks, with this standard input.
fn run_with(sandbox: &Sandbox, arguments: &str, input: &str) -> Ran {
    let work = || {
        let mut child = Command::new(PROGRAM)
            .args(arguments.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // One that ends early does not read it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap()
    };
    sandbox.run(work).unwrap().into()
}

fn run(sandbox: &Sandbox, arguments: &str) -> Ran {
    run_with(sandbox, arguments, "")
}

/// The legacy tables in use, or that there are none in this kernel.
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

/// What the tools of both backends restore, we save; what we restore, they save.
#[test]
fn save_and_restore_are_those_of_the_real_tools() {
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let real_save = format!("iptables-{backend}-save -c");
        tools.run_with(&format!("iptables-{backend}-restore -c"), TEXT);
        let theirs = tools.save(&real_save);
        let ours = run(&sandbox, &format!("save -c --backend {backend}")).expect(0);
        assert_eq!(ours.text(), theirs, "{backend}");
        assert_eq!(ours.err, "", "{backend}");

        let restore = format!("restore -4 -c --lock none --backend {backend}");
        let ran = run_with(&sandbox, &restore, TEXT).expect(0);
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""), "{backend}");
        assert_eq!(tools.save(&real_save), theirs, "{backend}");

        // Over the same rules, which have counted: all begin at 0 again.
        let restore = format!("restore --lock none --backend {backend}");
        run_with(&sandbox, &restore, TEXT).expect(0);
        let again = tools.save(&real_save);
        let mut lines = again.lines().filter(|l| l.starts_with([':', '[']));
        assert!(
            lines.all(|line| line.contains("[0:0]")),
            "{backend}: {again}"
        );

        // Only one table, and without counters.
        let nat = run(&sandbox, &format!("save -t nat --backend {backend}")).expect(0);
        assert!(nat.out.contains("\n-A POSTROUTING -m mark"), "{}", nat.out);
        assert!(!nat.out.contains("*filter"), "{}", nat.out);
    }
}

#[test]
fn restore_keeps_what_it_is_told_to() {
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let restore = format!("restore --lock none --backend {backend}");
        run_with(&sandbox, &restore, TEXT).expect(0);
        let save = format!("iptables-{backend}-save");
        let before = tools.save(&save);

        // --test changes nothing; -T takes one table of the text; -n adds.
        let more = "*filter\n-A INPUT -j DROP\nCOMMIT\n*nat\n-A OUTPUT -j ACCEPT\nCOMMIT\n";
        run_with(&sandbox, &format!("{restore} -n -t"), more).expect(0);
        assert_eq!(tools.save(&save), before);
        let ran = run_with(&sandbox, &format!("{restore} -n -T nat --json"), more).expect(0);
        let counts: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(counts, json!({"tables": 1, "chains": 0, "rules": 1}));
        let after = tools.save(&save);
        assert!(after.contains("-A OUTPUT -j ACCEPT"), "{after}");
        assert!(!after.contains("-A INPUT -j DROP"), "{after}");
        assert!(after.contains("KUBE-FIREWALL"), "{after}");

        // Without -n the table is emptied, from a file as well.
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "*filter\nCOMMIT\n").unwrap();
        run(&sandbox, &format!("{restore} {}", file.path().display())).expect(0);
        let after = tools.save(&save);
        assert!(!after.contains("KUBE-FIREWALL"), "{after}");
        assert!(after.contains("-A OUTPUT -j ACCEPT"), "{after}");
    }
}

#[test]
fn profiles_are_those_of_versions() {
    let sandbox = sandbox();
    for (profile, native) in [("1.8.7", false), ("1.8.8", true), ("1.8.10", true)] {
        let restore = format!("restore --profile {profile}");
        run_with(&sandbox, &restore, TEXT).expect(0);
        let rules = run(&sandbox, "rules --bytecode --table nat").expect(0).out;
        assert_eq!(
            rules.contains("meta load mark"),
            native,
            "{profile}: {rules}"
        );
    }
    run(&sandbox, "restore --profile 1.8.6").expect(2);
}

#[test]
fn an_error_shows_its_place_and_changes_nothing() {
    let wrong = "*filter\n-A INPUT -p udp\n-A INPUT -m conntrack --ctsate NEW -j DROP\nCOMMIT\n";
    let missing = "*filter\n-A INPUT -i lo\n-A INPUT -j NOWHERE\nCOMMIT\n";
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let restore = format!("restore --lock none --backend {backend}");
        run_with(&sandbox, &restore, TEXT).expect(0);
        let save = format!("iptables-{backend}-save -c");
        let before = tools.save(&save);

        let ran = run_with(&sandbox, &restore, wrong).expect(2);
        assert_eq!(
            ran.err,
            "<stdin>:3:23: there is no option `--ctsate` here (did you mean --ctstate?)\n    \
             3 | -A INPUT -m conntrack --ctsate NEW -j DROP\n      \
             |                       ^^^^^^^^\n\
             chainwright: nothing was changed\n"
        );
        let ran = run_with(&sandbox, &format!("{restore} -"), missing).expect(2);
        assert!(ran.err.starts_with("<stdin>:3: "), "{}", ran.err);
        assert!(
            ran.err.contains("\n    3 | -A INPUT -j NOWHERE\n"),
            "{}",
            ran.err
        );
        assert!(ran.err.ends_with("nothing was changed\n"), "{}", ran.err);

        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "*nat\n-A OUTPUT\n").unwrap();
        let path = file.path().display();
        let ran = run(&sandbox, &format!("{restore} {path}")).expect(2);
        assert!(
            ran.err.contains("without a COMMIT for table nat"),
            "{}",
            ran.err
        );
        assert_eq!(tools.save(&save), before, "{backend}");

        let ran = run(&sandbox, &format!("{restore} /nowhere/at/all")).expect(2);
        assert!(
            ran.err.contains("cannot read /nowhere/at/all"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn what_has_no_words_is_never_left_out_in_silence() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    run_with(&sandbox, "restore", TEXT).expect(0);
    tools.run("nft add rule ip filter KUBE-FIREWALL meta length 5 drop");
    let ran = run(&sandbox, "save").expect(2);
    assert!(
        ran.out
            .contains("# a rule of KUBE-FIREWALL that iptables has no words for")
    );
    assert!(
        ran.out.contains("#   [ meta load len => reg 1 ]"),
        "{}",
        ran.out
    );
    assert!(ran.err.contains("no words for 1 rule,"), "{}", ran.err);
    // The other table is whole.
    run(&sandbox, "save -t nat").expect(0);

    tools.run("nft add chain ip nat early { type nat hook prerouting priority -150 ; }");
    let ran = run(&sandbox, "save").expect(2);
    assert!(ran.err.contains("1 rule and 1 base chain,"), "{}", ran.err);
    let ran = run(&sandbox, "save --json").expect(2);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let tables = document["tables"].as_array().unwrap();
    let rules = tables
        .iter()
        .flat_map(|table| table["chains"].as_array().unwrap())
        .flat_map(|chain| chain["rules"].as_array().unwrap());
    assert_eq!(rules.filter(|rule| rule["beyond"].is_string()).count(), 1);
}

#[test]
fn save_as_json() {
    let sandbox = sandbox();
    run_with(&sandbox, "restore -c", TEXT).expect(0);
    let ran = run(&sandbox, "save --json -t filter").expect(0);
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
fn reading_makes_nothing() {
    let sandbox = sandbox();
    let generation = connect(&sandbox).generation().unwrap();
    for arguments in [
        "save",
        "save -6",
        "save -t nat",
        "save --backend legacy -t nat",
    ] {
        let ran = run(&sandbox, arguments).expect(1);
        assert_eq!(ran.out, "", "{arguments}");
        assert!(
            ran.err.starts_with("chainwright: there "),
            "{arguments}: {}",
            ran.err
        );
    }
    assert!(
        run(&sandbox, "save --backend legacy")
            .expect(1)
            .out
            .is_empty()
    );
    assert_eq!(legacy_tables(&sandbox), Vec::<String>::new());
    assert_eq!(connect(&sandbox).generation().unwrap(), generation);
}

#[test]
fn the_other_backend_is_spoken_of() {
    let sandbox = sandbox();
    let filter = "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n";
    run_with(&sandbox, "restore", filter).expect(0);
    let ran = run_with(&sandbox, "restore --backend legacy --lock none", filter).expect(0);
    assert!(
        ran.err
            .contains("IPv4 tables in use as well: filter (see --backend nft)")
    );
    assert_eq!(legacy_tables(&sandbox), ["filter"]);
    let ran = run(&sandbox, "save").expect(0);
    assert!(
        ran.err
            .contains("IPv4 tables in use as well: filter (see --backend legacy)")
    );
    assert_eq!(
        run(&sandbox, "save -6")
            .expect(1)
            .err
            .matches("as well")
            .count(),
        0
    );
}

#[test]
fn the_lock_is_waited_for_and_named() {
    let sandbox = sandbox();
    let file = tempfile::NamedTempFile::new().unwrap();
    let policy = LockPolicy::Path(file.path().into());
    let held = Lock::take(&policy, LockWait::No).unwrap();
    let path = file.path().display();
    let restore = format!("restore --backend legacy --wait 0 --lock {path}");
    let filter = "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n";
    let ran = run_with(&sandbox, &restore, filter).expect(2);
    assert!(ran.err.contains("is held by"), "{}", ran.err);
    drop(held);
    run_with(&sandbox, &restore, filter).expect(0);
}
