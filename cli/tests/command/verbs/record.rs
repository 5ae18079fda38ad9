//! The recorder and its readers: `record`, `log`, `show`, `diff @TIME`, `blame`, `bisect`.

use std::path::Path;
use std::time::{Duration, Instant};

use chainwright::nft::Scope;
use chainwright_lang::Script;
use chainwright_record::{Archive, Moment, Recorder, RecorderOptions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::tempdir;

use super::live::listen;
use super::*;
use crate::common::random::Random;
use crate::common::tools::Tools;

/// Waits until the present generation is recorded.
#[track_caller]
pub(super) fn recorded(sandbox: &Sandbox, directory: &Path) {
    let wanted = generation(sandbox).number();
    let start = Instant::now();
    loop {
        let state = Archive::open(directory).and_then(|all| all.state_at(Moment::Now));
        let now = state.ok().and_then(|state| state.snapshot.generation());
        if now.is_some_and(|now| now.number() == wanted) {
            return;
        }
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{wanted} {now:?}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn log_and_blame_name_the_process_that_flushed_a_chain() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let directory = tempdir().unwrap();
    let dir = directory.path().join("record");
    let at = dir.display();
    tools.run("iptables-nft -t nat -N KUBE-SERVICES");
    let old = generation(&sandbox).number();
    let recorder = listen(&sandbox, &format!("record --dir {at}"));
    for port in [80, 443, 8443] {
        tools.run(&format!(
            "iptables-nft -t nat -A KUBE-SERVICES -p tcp --dport {port} -j RETURN"
        ));
    }
    tools.run("nft add table inet other { chain c { tcp dport 22 accept; } ; set s { type inet_service; elements = { 1, 2 } ; } ; }");
    recorded(&sandbox, &dir);
    let before = generation(&sandbox).number();
    tools.run("iptables-nft -t nat -F KUBE-SERVICES");
    let flushed = generation(&sandbox).number();
    tools.run("iptables-nft -t nat -A KUBE-SERVICES -j RETURN");
    recorded(&sandbox, &dir);

    let log = run(&sandbox, &format!("log --dir {at}")).expect(0);
    let lines = log.lines();
    assert!(
        lines[0].contains(&format!("recording starts with generation {old}")),
        "{}",
        log.out
    );
    assert!(
        lines[1].contains("1 rule added in ip nat KUBE-SERVICES by "),
        "{}",
        log.out
    );
    let of_flush = format!(" {flushed:>6}  3 rules deleted in ip nat KUBE-SERVICES by ");
    assert!(lines[5].contains(&of_flush), "{}", log.out);
    assert!(lines[5].contains("iptables"), "{}", log.out);
    assert_eq!(lines.len(), 7, "{}", log.out);
    // Selected by table, chain and number.
    let chosen = run(&sandbox, &format!("log --dir {at} --table other")).expect(0);
    assert_eq!(chosen.lines().len(), 2, "{}", chosen.out);
    assert!(
        chosen.lines()[1].contains("1 rule, 2 elements, 1 chain, 1 set, 1 table added"),
        "{}",
        chosen.out
    );
    let chosen = run(&sandbox, &format!("log --dir {at} KUBE-* -n 2")).expect(0);
    assert_eq!(chosen.lines(), lines[5..], "{}", chosen.out);
    run(&sandbox, &format!("log --dir {at} nothing")).expect(1);
    let json = run(&sandbox, &format!("log --dir {at} --json -n 2"))
        .expect(0)
        .values();
    assert_eq!(json[0]["generation"], flushed);
    assert_eq!(
        json[0]["counts"],
        serde_json::json!([{"change": "deleted", "kind": "rule", "number": 3}])
    );
    assert!(json[0]["by"]["presence"].is_string(), "{json:?}");

    let shown = run(&sandbox, &format!("show --dir {at} {flushed}")).expect(0);
    let deleted: Vec<_> = shown
        .lines()
        .into_iter()
        .filter(|line| line.starts_with("- rule"))
        .collect();
    assert_eq!(deleted.len(), 3, "{}", shown.out);
    assert_eq!(
        deleted[0],
        "- rule ip nat KUBE-SERVICES: [0:0] -p tcp -m tcp --dport 80 -j RETURN"
    );
    let now = run(&sandbox, &format!("show --dir {at} @now")).expect(0);
    assert!(
        now.out
            .ends_with("+ rule ip nat KUBE-SERVICES: [0:0] -j RETURN\n"),
        "{}",
        now.out
    );
    let first = run(&sandbox, &format!("show --dir {at} @gen:{old}")).expect(0);
    assert!(first.out.contains("recording starts"), "{}", first.out);

    let diff = run(&sandbox, &format!("diff --dir {at} @gen:{before} @now")).expect(1);
    assert_eq!(diff.lines().len(), 4, "{}", diff.out);
    let live = run(&sandbox, &format!("diff --dir {at} @gen:{before}")).expect(1);
    assert_eq!(live.out, diff.out);
    run(&sandbox, &format!("diff --dir {at} @now")).expect(0);
    let early = run(&sandbox, &format!("diff --dir {at} @yesterday @now")).expect(2);
    assert!(early.err.contains("it starts later"), "{}", early.err);
    for wrong in ["show @25:61", "diff @nonsense", "show 777777"] {
        run(&sandbox, &format!("{wrong} --dir {at}")).expect(2);
    }

    let blame = run(&sandbox, &format!("blame --dir {at} KUBE-SERVICES")).expect(0);
    let lines = blame.lines();
    assert_eq!(lines[0], "ip nat KUBE-SERVICES");
    assert!(lines[2].contains("older than the record"), "{}", blame.out);
    assert_eq!(lines[3], "  [0:0] -j RETURN");
    assert!(
        lines[4].contains(&format!("{} by ", flushed + 1)),
        "{}",
        blame.out
    );
    let blame = run(
        &sandbox,
        &format!("blame --dir {at} KUBE-SERVICES 8443 --at @gen:{before} --json"),
    );
    let blame = blame.expect(0).values();
    assert_eq!(blame.len(), 1, "{blame:?}");
    assert_eq!(blame[0]["made"]["generation"], old + 3);
    let set = run(&sandbox, &format!("blame --dir {at} s")).expect(0);
    assert_eq!(
        set.out.matches(&format!("{before} by ")).count(),
        3,
        "{}",
        set.out
    );

    // A second recorder may not write there; SIGTERM ends the first one.
    let second = run(&sandbox, &format!("record --dir {at}")).expect(2);
    assert!(
        second.err.contains("in use by another recorder"),
        "{}",
        second.err
    );
    kill(Pid::from_raw(recorder.id() as i32), Signal::SIGTERM).unwrap();
    super::live::end(recorder);
    let log = run(&sandbox, &format!("log --dir {at}")).expect(0);
    assert!(
        log.lines().last().unwrap().ends_with("recorder stopped"),
        "{}",
        log.out
    );

    // What happens meanwhile is a gap, which names what it hides.
    tools.run("iptables-nft -t nat -A KUBE-SERVICES -j ACCEPT");
    let again = listen(&sandbox, &format!("record --dir {at}"));
    kill(Pid::from_raw(again.id() as i32), Signal::SIGINT).unwrap();
    super::live::end(again);
    let log = run(&sandbox, &format!("log --dir {at} -n 2")).expect(0);
    assert!(
        log.out.contains("recorder started again; not recorded"),
        "{}",
        log.out
    );
    let shown = run(&sandbox, &format!("show --dir {at} @now")).expect(0);
    assert!(
        shown
            .out
            .contains("+ rule ip nat KUBE-SERVICES: [0:0] -j ACCEPT"),
        "{}",
        shown.out
    );
    let blame = run(&sandbox, &format!("blame --dir {at} KUBE-SERVICES ACCEPT")).expect(0);
    let gap = format!(
        "not recorded: between generations {} and {}",
        flushed + 1,
        flushed + 2
    );
    assert!(blame.out.contains(&gap), "{}", blame.out);
    run(&sandbox, "log --dir /nonexistent").expect(2);
}

/// One transaction of a random history changes the outcome of the packet.
#[test]
fn bisect_finds_the_transaction() {
    let count = std::env::var("CHAINWRIGHT_HISTORIES");
    let count = count.map_or(8, |number| number.parse().unwrap());
    let mut random = Random::new();
    for history in 0..count {
        let sandbox = sandbox();
        let directory = tempdir().unwrap();
        let at = directory.path().display().to_string();
        let (culprit, total, text) = sandbox
            .run(|| random_history(&mut random, directory.path()))
            .unwrap();
        let command = [
            "bisect",
            "--dir",
            &at,
            "--json",
            "tcp 192.0.2.1 10.0.0.5:80 is accepted",
            "--direction",
            "in",
        ];
        let found = sandbox
            .run(|| run_here(&command))
            .unwrap()
            .expect(0)
            .value();
        let changes = found["changes"].as_array().unwrap();
        assert_eq!(changes.len(), 1, "history {history}: {text}: {found}");
        assert_eq!(
            changes[0]["entry"]["generation"], culprit,
            "history {history} of {total}: {text}: {found}"
        );
        assert_eq!(
            (&changes[0]["before"], &changes[0]["after"]),
            (&"yes".into(), &"no".into())
        );
        // By halves the same.
        let dropped = [
            "bisect",
            "--dir",
            &at,
            "tcp",
            "192.0.2.1",
            "10.0.0.5:80",
            "is",
            "dropped",
            "--direction",
            "in",
        ];
        let words = sandbox.run(|| run_here(&dropped)).unwrap().expect(0);
        assert!(
            words.out.contains(&format!(" {culprit:>6}  ")),
            "{}",
            words.out
        );
        assert!(words.out.contains("  before: delivered"), "{}", words.out);
    }
}

/// Records a history; returns the generation that broke it, the number of transactions, and what did it.
fn random_history(random: &mut Random, directory: &Path) -> (u32, usize, String) {
    let mut nft = Connection::open().unwrap();
    let mut commit = |text: &str| {
        let script = Script::parse("history", text).unwrap();
        let now = nft.snapshot(Scope::all()).unwrap();
        let compiled = script.transaction(Some(&now)).unwrap();
        nft.commit(compiled.transaction()).unwrap();
        nft.generation().unwrap().number()
    };
    commit(
        "table inet f {
            set open { type inet_service; elements = { 80, 443 }; }
            chain web { tcp dport @open accept; }
            chain input { type filter hook input priority 0; policy drop; ct state established accept; jump web; }
        }
        table ip n { chain other { }; }",
    );
    let mut recorder = Recorder::open(
        directory,
        Connection::open().unwrap(),
        RecorderOptions {
            max_size: 10_000_000,
            ..RecorderOptions::default()
        },
    )
    .unwrap();
    let noise = |random: &mut Random| match random.below(5) {
        0 => format!(
            "add rule ip n other tcp dport {} drop",
            random.below(9) + 70
        ),
        1 => format!("add element inet f open {{ {} }}", 1000 + random.below(50)),
        2 => format!(
            "add rule inet f web tcp dport {} drop",
            100 + random.below(300)
        ),
        3 => format!("add chain inet f c{}", random.below(1000)),
        _ => "flush chain ip n other".to_owned(),
    };
    let (before, after) = (random.below(40), random.below(40));
    for _ in 0..before {
        commit(&noise(random));
        if !random.once_in(4) {
            recorder.record().unwrap();
        }
    }
    let breaks = [
        "insert rule inet f input tcp dport 80 drop",
        "delete element inet f open { 80 }",
        "flush chain inet f web",
        "flush set inet f open",
        "insert rule inet f web ip saddr 192.0.2.0/24 reject",
        "flush chain inet f input",
        "add table ip raw { chain early { type filter hook prerouting priority -300; tcp dport 79-81 drop; }; }",
    ];
    let text = random.pick(&breaks);
    let culprit = commit(text);
    for _ in 0..after {
        commit(&noise(random));
        if !random.once_in(4) {
            recorder.record().unwrap();
        }
    }
    recorder.record().unwrap();
    (culprit, before + after + 1, text.to_owned())
}

#[test]
fn bisect_reports_ambiguous_and_missing_changes() {
    let sandbox = sandbox();
    let directory = tempdir().unwrap();
    let at = directory.path().display();
    let mut recorder = sandbox
        .run(|| {
            Recorder::open(
                directory.path(),
                Connection::open().unwrap(),
                RecorderOptions::default(),
            )
            .unwrap()
        })
        .unwrap();
    let tools = Tools::new(&sandbox);
    tools.run("nft table ip f { chain input { type filter hook input priority 0; }; }");
    let unchanged = run(
        &sandbox,
        &format!("bisect --dir {at} --direction in tcp 192.0.2.1 10.0.0.5:80 is accepted"),
    );
    assert!(unchanged.expect(1).out.contains("always: "));
    tools.run("nft add rule ip f input tcp dport 80 drop");
    tools.run("nft flush chain ip f input");
    recorder.record().unwrap();
    let twice = run(
        &sandbox,
        &format!("bisect --dir {at} --direction in tcp 192.0.2.1 10.0.0.5:80 is accepted"),
    );
    let twice = twice.expect(0);
    assert!(
        twice.err.contains("the outcome changed 2 times"),
        "{}",
        twice.err
    );
    assert_eq!(twice.out.matches("before:").count(), 2, "{}", twice.out);
    tools.run("nft table ip n { chain pre { type nat hook prerouting priority -100; tcp dport 80 dnat to 10.1.1.1:8080; }; }");
    recorder.record().unwrap();
    let translated = run(
        &sandbox,
        &format!("bisect --dir {at} tcp 192.0.2.1:4000 10.0.0.5:80 is dnat to 10.1.1.1:8080"),
    );
    assert_eq!(translated.expect(0).out.matches("before:").count(), 1);
    for wrong in [
        "tcp 192.0.2.1 10.0.0.5:80",
        "tcp 192.0.2.1 10.0.0.5:80 is fine",
        "tcp is accepted",
        "tcp 1.1.1.1 1.1.1.2 is dnat to any",
    ] {
        run(&sandbox, &format!("bisect --dir {at} {wrong}")).expect(2);
    }
}
