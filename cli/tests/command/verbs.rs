//! Tests of the command `chainwright`, run as a program in sandboxes.
//!
//! This file has the common helpers and the tests of the verbs for chains; the other verbs have
//! files of their own.
mod confirm;
mod get;
mod help_and_pipes;
mod json;
mod kube;
mod live;
mod metrics;
mod nft_syntax;
mod record;
mod report;
mod ruleset;
mod top;
mod tree;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::sandbox;
use chainwright::legacy;
use chainwright::nft::{
    Chain, Connection, DataType, Element, Family, Generation, Policy, Rule, Set, Table, TableFlags,
    Transaction,
};
use chainwright_testing::Sandbox;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

/// The result of a run.
struct Ran {
    code: i32,
    out: String,
    err: String,
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

impl Ran {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "output: {}\nerrors: {}",
            self.out, self.err
        );
        self
    }

    /// Returns the lines of output.
    fn lines(&self) -> Vec<&str> {
        self.out.lines().collect()
    }

    /// Returns the output as one JSON document, without the keys that every document has.
    #[track_caller]
    fn value(&self) -> Value {
        let mut value: Value = serde_json::from_str(&self.out).unwrap();
        let document = value.as_object_mut().unwrap();
        assert_eq!(document.remove("version").unwrap(), 1);
        assert!(document.remove("verb").unwrap().is_string());
        value
    }

    /// Returns the elements of a document that is a list. Checks that nothing was skipped.
    #[track_caller]
    fn values(&self) -> Vec<Value> {
        let mut value = self.value();
        if let Some(places) = value.as_object_mut().unwrap().remove("not_read") {
            assert_eq!(places, Value::Array(Vec::new()));
        }
        let keys: Vec<_> = value.as_object().unwrap().values().collect();
        let [Value::Array(parts)] = keys[..] else {
            panic!("{value}");
        };
        parts.clone()
    }

    /// Returns the values of this key in all elements.
    #[track_caller]
    fn each(&self, key: &str) -> Vec<Value> {
        self.values().iter().map(|line| line[key].clone()).collect()
    }
}

/// Runs the command in the namespace of the test.
fn run_here<S: AsRef<OsStr>>(arguments: &[S]) -> Ran {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    output.into()
}

/// Runs the command inside the sandbox, with arguments separated by blanks.
fn run(sandbox: &Sandbox, arguments: &str) -> Ran {
    let arguments: Vec<_> = arguments.split_whitespace().collect();
    sandbox.run(|| run_here(&arguments)).unwrap()
}

fn connect(sandbox: &Sandbox) -> Connection {
    sandbox.run(Connection::open).unwrap().unwrap()
}

/// Returns a connection that owns the new table `ip owned`; `None` if the kernel does not support this.
fn owned_table(sandbox: &Sandbox) -> Option<Connection> {
    let mut owner = connect(sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table {
        flags: Some(TableFlags::OWNER),
        ..Table::new(Family::IP, "owned")
    })
    .unwrap();
    let features = &["owned tables"];
    crate::common::kernel::commit_if_supported(&mut owner, &mut tx, features).then_some(owner)
}

/// Closes the owner of the table `ip owned`, and waits until the kernel has deleted the table: a process that another test
/// starts has the socket, too, until it runs its program.
fn close_owner(sandbox: &Sandbox, owner: Connection) {
    drop(owner);
    let mut nft = connect(sandbox);
    while nft.table(Family::IP, "owned").unwrap().is_some() {
        thread::yield_now();
    }
}

fn generation(sandbox: &Sandbox) -> Generation {
    connect(sandbox).generation().unwrap()
}

fn commit(sandbox: &Sandbox, tx: &mut Transaction) {
    connect(sandbox).commit(tx).unwrap();
}

/// `table inet t`: base chain `in` with two rules, chains `web` with one and `WEB/x` with none;
/// `table ip t`: chain `other`.
fn small_ruleset(sandbox: &Sandbox) {
    let mut tx = Transaction::new();
    let chain = |name| Chain::new(Family::INET, "t", name);
    tx.add(&Table::new(Family::INET, "t"))
        .and_then(|tx| {
            tx.add(
                &chain("in")
                    .with_hook("filter", 1, -7)
                    .with_policy(Policy::DROP),
            )
        })
        .and_then(|tx| tx.add(&chain("web"))?.add(&chain("WEB/x")))
        .and_then(|tx| tx.add(&Rule::new(Family::INET, "t", "in")))
        .and_then(|tx| tx.add(&Rule::new(Family::INET, "t", "in")))
        .and_then(|tx| tx.add(&Rule::new(Family::INET, "t", "web")))
        .and_then(|tx| tx.add(&Table::new(Family::IP, "t")))
        .and_then(|tx| tx.add(&Chain::new(Family::IP, "t", "other")))
        .unwrap();
    commit(sandbox, &mut tx);
}

/// Many chains in `table ip many`: `c0`, `c1`, …
fn many_chains(sandbox: &Sandbox, count: usize) {
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "many")).unwrap();
    for number in 0..count {
        tx.add(&Chain::new(Family::IP, "many", format!("c{number}")))
            .unwrap();
    }
    commit(sandbox, &mut tx);
}

#[test]
fn an_empty_namespace_has_no_chains() {
    let sandbox = sandbox();
    let ran = run(&sandbox, "get chains").expect(1);
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("no chains"), "{}", ran.err);
    let ran = run(&sandbox, "get chains --backend nft").expect(1);
    assert!(ran.err.contains("nf_tables has no chains"), "{}", ran.err);
    let ran = run(&sandbox, "get chains --json --backend nft").expect(1);
    assert_eq!((ran.values(), ran.err.as_str()), (Vec::new(), ""));
}

#[test]
fn kubelet_chains_are_created_and_removed() {
    let sandbox = sandbox();
    let before = generation(&sandbox);
    let missing = run(&sandbox, "kube check").expect(1);
    let items = missing.lines().len();
    assert_eq!(items, 12, "{}", missing.out);
    assert!(
        missing
            .lines()
            .contains(&"missing  ip filter: -A INPUT -j KUBE-FIREWALL")
    );
    assert_eq!(generation(&sandbox), before, "checking changes nothing");

    let made = run(&sandbox, "kube ensure").expect(0);
    assert_eq!(made.out, missing.out.replace("missing  ", "created  "));
    assert_eq!(
        run(&sandbox, "kube check").expect(0).out,
        "everything is present\n"
    );

    let before = generation(&sandbox);
    let again = run(&sandbox, "kube ensure").expect(0);
    assert_eq!(again.out, "nothing to do: everything is present\n");
    assert_eq!(generation(&sandbox), before, "nothing was committed");

    let removed = run(&sandbox, "kube remove").expect(0);
    assert_eq!(removed.lines().len(), items);
    assert!(
        removed
            .lines()
            .contains(&"removed  ip6 mangle: chain KUBE-IPTABLES-HINT")
    );
    run(&sandbox, "kube check").expect(1);
    let again = run(&sandbox, "kube remove").expect(0);
    assert!(again.out.starts_with("nothing to do"), "{}", again.out);
}

#[test]
fn kubelet_chains_as_json() {
    let sandbox = sandbox();
    let missing = run(&sandbox, "kube check --json").expect(1).value();
    let made = run(&sandbox, "--json kube ensure").expect(0).value();
    assert_eq!(missing["missing"], made["created"]);
    assert_eq!(
        made["created"][0],
        serde_json::json!({"family": "ip", "table": "mangle", "chain": "KUBE-IPTABLES-HINT"})
    );
    let rules: Vec<_> = made["created"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["rule"].as_str())
        .collect();
    assert_eq!(rules.len(), 3);
    assert!(rules.contains(&"-j KUBE-FIREWALL"));

    let none = serde_json::json!({"missing": []});
    assert_eq!(run(&sandbox, "kube check --json").expect(0).value(), none);
    let none = serde_json::json!({"created": []});
    assert_eq!(run(&sandbox, "kube ensure --json").expect(0).value(), none);

    // A foreign rule in a kubelet chain.
    let mut tx = Transaction::new();
    tx.add(&Rule::new(Family::IP, "mangle", "KUBE-IPTABLES-HINT"))
        .unwrap();
    commit(&sandbox, &mut tx);
    let removed = run(&sandbox, "kube remove --json").expect(0).value();
    assert_eq!(removed["removed"].as_array().unwrap().len(), 11);
    assert_eq!(
        removed["left"],
        serde_json::json!([{"family": "ip", "table": "mangle", "chain": "KUBE-IPTABLES-HINT"}])
    );
    let text = run(&sandbox, "kube remove").expect(0).out;
    assert!(
        text.starts_with("left     ip mangle: chain KUBE-IPTABLES-HINT (it has"),
        "{text}"
    );
}

#[test]
fn kubelet_chains_of_one_family_and_of_old_versions() {
    let sandbox = sandbox();
    run(&sandbox, "kube ensure -6").expect(0);
    run(&sandbox, "kube check -6").expect(0);
    run(&sandbox, "kube check -4").expect(1);
    run(&sandbox, "kube check").expect(1);
    let families = run(&sandbox, "get chains --json").expect(0).each("family");
    assert!(families.iter().all(|family| family == "ip6"));

    run(&sandbox, "kube ensure --family ip").expect(0);
    for arguments in [
        "-4 -6 check",
        "check -4 --family ip6",
        "check --family inet",
    ] {
        run(&sandbox, &format!("kube {arguments}")).expect(2);
    }
    let ran = run(&sandbox, "kube ensure --backend legacy").expect(2);
    assert!(ran.err.contains("mangle table of nf_tables"), "{}", ran.err);
    run(&sandbox, "kube check").expect(0);
    run(&sandbox, "kube check --up-to-1.26").expect(1);
    let made = run(&sandbox, "kube ensure --up-to-1.26").expect(0).out;
    assert!(made.contains("ip nat: chain KUBE-MARK-MASQ"), "{made}");
}

#[test]
fn chains_are_filtered_and_counted() {
    let sandbox = sandbox();
    small_ruleset(&sandbox);
    let names = |arguments: &str| {
        let ran = run(
            &sandbox,
            &format!("get chains --backend nft --json {arguments}"),
        )
        .expect(0);
        ran.each("chain")
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["in", "web", "WEB/x", "other"]);
    assert_eq!(names("--family inet"), ["in", "web", "WEB/x"]);
    assert_eq!(names("--family ip"), ["other"]);
    assert_eq!(names("--table t --family ip"), ["other"]);
    assert_eq!(names("--match w*"), ["web"]);
    assert_eq!(names("--match W*"), ["WEB/x"]);
    assert_eq!(names("--match {in,o*r}"), ["in", "other"]);
    for none in ["--table u", "--family ip6", "--match we", "--family netdev"] {
        let ran = run(&sandbox, &format!("get chains --backend nft {none}")).expect(1);
        assert_eq!(ran.err, "chainwright: no matching chain found\n");
    }
    run(&sandbox, "get chains --match [").expect(2);

    let rules = run(&sandbox, "get chains --backend nft --json --rules")
        .expect(0)
        .each("rules");
    assert_eq!(rules, [2, 1, 0, 0]);
    let first = &run(&sandbox, "get chains --backend nft --json --rules")
        .expect(0)
        .values()[0];
    assert_eq!(
        *first,
        serde_json::json!({
            "backend": "nft", "family": "inet", "table": "t", "chain": "in", "type": "filter",
            "hook": "input", "priority": -7, "policy": "drop", "rules": 2, "handle": 1, "references": 2
        })
    );

    let text = run(&sandbox, "get chains --backend nft --rules")
        .expect(0)
        .out;
    let words: Vec<Vec<_>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        words[0].join(" "),
        "nft inet t in 2 rules type filter hook input priority -7 policy drop"
    );
    assert_eq!(words[1].join(" "), "nft inet t web 1 rule");
    assert!(text.lines().all(|line| line.trim_end() == line));
}

#[test]
fn a_name_cannot_forge_a_line() {
    let sandbox = sandbox();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t"))
        .and_then(|tx| tx.add(&Chain::new(Family::IP, "t", "a\nnft ip t b\x1b[2J")))
        .and_then(|tx| tx.add(&Chain::new(Family::IP, "t", &b"\xff"[..])))
        .unwrap();
    commit(&sandbox, &mut tx);
    let text = run(&sandbox, "get chains").expect(0);
    assert_eq!(text.lines().len(), 2);
    assert!(text.out.contains(r"a\nnft ip t b\u{1b}[2J"), "{}", text.out);
    let names = run(&sandbox, "get chains --json").expect(0).each("chain");
    assert_eq!(names, ["a\nnft ip t b\x1b[2J", r"\xFF"]);
}

#[test]
fn legacy_chains_are_listed_and_never_created() {
    let sandbox = sandbox();
    let tables = || {
        let connection = legacy::Connection::open(legacy::Family::Ipv4);
        connection.and_then(|connection| connection.tables())
    };
    match sandbox.run(tables).unwrap() {
        Ok(tables) => assert!(tables.is_empty(), "{tables:?}"),
        Err(legacy::Error::NotBuilt { .. }) => {
            let ran = run(&sandbox, "get chains --backend legacy --family ip").expect(2);
            assert!(ran.err.contains("module ip_tables"), "{}", ran.err);
            small_ruleset(&sandbox);
            let ran = run(&sandbox, "get chains --family ip").expect(0);
            assert!(ran.err.contains("legacy tables (ip) not examined"));
            return;
        }
        Err(error) => panic!("{error}"),
    }
    run(&sandbox, "get chains").expect(1);
    run(&sandbox, "get chains --backend legacy --table nat").expect(1);
    assert!(sandbox.run(tables).unwrap().unwrap().is_empty());

    let made = sandbox.run(|| {
        legacy::Connection::open(legacy::Family::Ipv4)
            .and_then(|connection| connection.instantiate("nat"))
    });
    made.unwrap().unwrap();
    let text = run(&sandbox, "get chains --rules").expect(0).out;
    let first: Vec<_> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(
        first.join(" "),
        "legacy ip nat PREROUTING 0 rules hook prerouting policy accept"
    );
    assert_eq!(text.lines().count(), 4);
    let listed = run(&sandbox, "get chains --backend legacy --json --match *PUT").expect(0);
    assert_eq!(listed.each("chain"), ["INPUT", "OUTPUT"]);
    assert_eq!(
        listed.values()[0],
        serde_json::json!({
            "backend": "legacy", "family": "ip", "table": "nat", "chain": "INPUT",
            "hook": "input", "policy": "accept", "packets": 0, "bytes": 0
        })
    );
    run(&sandbox, "get chains --backend legacy --family ip6").expect(1);
    run(&sandbox, "get chains --backend nft").expect(1);

    small_ruleset(&sandbox);
    let backends = run(&sandbox, "get chains --json").expect(0).each("backend");
    assert_eq!(backends.iter().filter(|name| *name == "nft").count(), 4);
    assert_eq!(backends.iter().filter(|name| *name == "legacy").count(), 4);

    let ran = run(&sandbox, "get chains --backend legacy --family inet").expect(2);
    assert!(
        ran.err
            .contains("only exist in the families ip, ip6 and arp"),
        "{}",
        ran.err
    );
}

#[test]
fn chains_are_looked_up_by_name() {
    let sandbox = sandbox();
    let tools = crate::common::tools::Tools::new(&sandbox);
    small_ruleset(&sandbox);
    let found = |arguments: &str| run(&sandbox, &format!("exists {arguments}"));
    assert_eq!(found("-t t --family inet in web WEB/x").expect(0).out, "");
    assert_eq!(found("-t t other").expect(0).out, "");
    let missing = found("-t t --family inet in WEB web we other").expect(1);
    assert_eq!(
        missing.lines(),
        [
            "missing  inet t: chain WEB",
            "missing  inet t: chain we",
            "missing  inet t: chain other"
        ]
    );
    assert_eq!(missing.err, "");
    // The table is missing.
    let missing = found("-t u other -6").expect(1);
    assert_eq!(missing.out, "missing  ip6 u: chain other\n");
    let values = found("-t t --json other in").expect(1).values();
    assert_eq!(
        values,
        [("other", true), ("in", false)].map(|(chain, exists)| serde_json::json!({
            "backend": "nft", "family": "ip", "table": "t", "chain": chain, "exists": exists
        }))
    );

    // Looking up chains does not create a legacy table.
    let legacy = |arguments: &str| found(&format!("--backend legacy {arguments}"));
    legacy("-t filter INPUT").expect(1);
    legacy("-t filter -6 INPUT").expect(1);
    for family in [legacy::Family::Ipv4, legacy::Family::Ipv6] {
        let status = sandbox.run(|| legacy::status(family)).unwrap().unwrap();
        assert_eq!(status, legacy::Status::NotInUse);
    }
    tools.run("iptables-legacy -N USER");
    assert_eq!(legacy("-t filter USER INPUT").expect(0).out, "");
    let missing = legacy("-t filter USER PREROUTING").expect(1);
    assert_eq!(missing.out, "missing  ip filter: chain PREROUTING\n");
    legacy("-t nat OUTPUT").expect(1);
    legacy("-t filter -6 INPUT").expect(1);
}

/// The time of a lookup does not depend on the number of chains: it receives one chain, and no listing.
#[test]
fn a_look_up_receives_no_listing() {
    let sandbox = sandbox();
    many_chains(&sandbox, 2000);
    let output = sandbox
        .run(|| {
            let mut command = Command::new(crate::common::needs::find("strace"));
            command.args(["-f", "-qq", "-e", "trace=sendto,sendmsg,recvfrom,recvmsg"]);
            command.args([PROGRAM, "exists", "-t", "many", "c0", "c1999"]);
            command.output().unwrap()
        })
        .unwrap();
    let ran = Ran::from(output).expect(0);
    let sent = ran.err.lines().filter(|line| line.contains("send")).count();
    assert_eq!(sent, 2, "{}", ran.err);
}

#[test]
fn another_namespace_by_path() {
    let sandbox = sandbox();
    small_ruleset(&sandbox);
    let elsewhere = crate::common::sandbox();
    let ran: Ran = elsewhere
        .run(|| {
            let namespace = sandbox.netns().as_fd().try_clone_to_owned().unwrap();
            Command::new(PROGRAM)
                .args([
                    "get",
                    "chains",
                    "--backend",
                    "nft",
                    "--netns",
                    "/proc/self/fd/0",
                ])
                .stdin(Stdio::from(namespace))
                .output()
                .unwrap()
        })
        .unwrap()
        .into();
    assert_eq!(ran.expect(0).lines().len(), 4);

    // By the path of an open descriptor, as seen from another sandbox.
    let path = format!("/proc/{}/fd/0", std::process::id());
    let ran = run_here(&["--netns", &path, "chains"]).expect(2);
    assert!(ran.err.contains("not a network namespace"), "{}", ran.err);
}

#[test]
fn rejects_a_missing_namespace() {
    for (argument, text) in [
        ("no-such-name", "no network namespace \"no-such-name\""),
        ("/no/such/file", "No such file or directory"),
        ("/dev/null", "not a network namespace"),
        ("", "invalid network namespace name"),
    ] {
        for verb in [&["chains"][..], &["kubelet", "check"]] {
            let arguments = [verb, &["--netns", argument]].concat();
            let ran = run_here(&arguments).expect(2);
            assert_eq!(ran.out, "");
            assert!(ran.err.starts_with("chainwright: "), "{}", ran.err);
            assert!(ran.err.contains(text), "{}", ran.err);
        }
    }
}

/// Copies the command to a directory where every user may run it.
///
/// Another process writes the copy: a program that another thread starts could inherit a descriptor
/// of this process that is open for writing, and the copy could not be executed until that program
/// ends (ETXTBSY).
fn copied_for_everybody() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("chainwright");
    let copied = Command::new("install")
        .arg("-m755")
        .arg(PROGRAM)
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    (directory, program)
}

/// Runs the command as a user without privileges over the network namespace of the test.
fn run_unprivileged(arguments: &[&str]) -> Ran {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    let ids: Vec<_> = map.split_whitespace().collect();
    let mut command;
    let copy;
    if ids.as_slice() == ["0", "0", "4294967295"] {
        // As root: switch to nobody, who cannot read the directory of the program.
        let (directory, program) = copied_for_everybody();
        command = Command::new(program);
        command.uid(65534).gid(65534).current_dir("/");
        copy = Some(directory);
    } else {
        // As root of a user namespace, who has no privileges over the network namespace around it.
        command = Command::new(PROGRAM);
        copy = None;
    }
    let ran = command.args(arguments).output().unwrap().into();
    drop(copy);
    ran
}

#[test]
fn unprivileged_errors_name_the_missing_privilege() {
    for arguments in [
        &["get", "chains"][..],
        &["get", "chains", "--json"],
        &["get", "chains", "--rules", "--backend", "nft"],
        &["kube", "check"],
        &["kube", "ensure"],
        &["kube", "remove"],
        &["watch", "changes"],
        &["watch", "packets"],
    ] {
        let ran = run_unprivileged(arguments).expect(2);
        assert_eq!(ran.out, "");
        assert!(ran.err.starts_with("chainwright: "), "{}", ran.err);
        // The errors of a socket option and of a request.
        let refused = ["Operation not permitted", "EPERM"];
        assert!(refused.iter().any(|it| ran.err.contains(it)), "{}", ran.err);
        assert!(ran.err.contains("CAP_NET_ADMIN"), "{}", ran.err);
        assert!(ran.err.contains("run this as root"), "{}", ran.err);
    }
    // A kernel without legacy tables reports that first.
    let ran = run_unprivileged(&["chains", "--backend", "legacy", "--family", "ip"]).expect(2);
    assert!(
        ran.err.contains("CAP_NET_ADMIN") || ran.err.contains("module ip_tables"),
        "{}",
        ran.err
    );
}

/// While another process changes the ruleset constantly, a listing is of one generation or reports
/// that it is not.
#[test]
fn a_listing_is_of_one_generation_or_reports_that_it_is_not() {
    const CHAINS: usize = 500;
    let sandbox = sandbox();
    many_chains(&sandbox, CHAINS);
    // Each generation has one of the two chains, with two rules.
    let swap = |old: &'static str, new: &'static str| {
        let mut tx = Transaction::new();
        if !old.is_empty() {
            tx.flush_chain(Family::IP, "many", old)
                .and_then(|tx| tx.delete(&Chain::new(Family::IP, "many", old)))
                .unwrap();
        }
        tx.add(&Chain::new(Family::IP, "many", new))
            .and_then(|tx| tx.add(&Rule::new(Family::IP, "many", new)))
            .and_then(|tx| tx.add(&Rule::new(Family::IP, "many", new)))
            .unwrap();
        tx
    };
    commit(&sandbox, &mut swap("", "odd"));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut nft = connect(&sandbox);
            let swaps = [swap("odd", "even"), swap("even", "odd")];
            for tx in (0..2).cycle() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                nft.commit(&swaps[tx]).unwrap();
            }
        });
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut complete = 0;
            for arguments in ["get chains --json --backend nft --rules"; 3] {
                let ran = run(&sandbox, arguments);
                if ran.code == 2 {
                    assert!(ran.err.contains("not from one generation"), "{}", ran.err);
                    continue;
                }
                let ran = ran.expect(0);
                let lines = ran.values();
                assert_eq!(lines.len(), CHAINS + 1);
                let names: BTreeSet<_> = lines.iter().map(|l| l["chain"].to_string()).collect();
                assert_eq!(names.len(), CHAINS + 1);
                let rules: u64 = lines.iter().map(|l| l["rules"].as_u64().unwrap()).sum();
                assert_eq!(rules, 2);
                complete += 1;
            }
            assert!(complete > 0, "every listing was interrupted");
        }));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    });
}
