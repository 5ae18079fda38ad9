//! The verbs that print events: `watch`, `trace-packets`.

use std::net::UdpSocket;
use std::process::Child;

use chainwright::nft::expr::Match;

use super::*;
use crate::common::tools::Tools;

/// Starts a verb, and waits until it reports on standard error that it listens.
#[track_caller]
pub(super) fn listen(sandbox: &Sandbox, arguments: &str) -> Child {
    let mut child = sandbox
        .run(|| {
            let mut command = Command::new(PROGRAM);
            command.args(arguments.split_whitespace());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .unwrap();
    let errors = child.stderr.as_mut().unwrap();
    // Byte by byte: what follows the line is left for `end`.
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        assert_eq!(
            errors.read(&mut byte).unwrap(),
            1,
            "{}",
            line.escape_ascii()
        );
        line.extend(byte);
    }
    let line = String::from_utf8(line).unwrap();
    assert!(line.starts_with("chainwright: "), "{line}");
    child
}

#[track_caller]
pub(super) fn end(child: Child) -> Ran {
    let output: Ran = child.wait_with_output().unwrap().into();
    output.expect(0)
}

/// Returns the lines without the times at their starts.
pub(super) fn without_times(output: &Ran) -> Vec<String> {
    let lines = output
        .lines()
        .into_iter()
        .map(|line| match line.split_once(' ') {
            Some((time, rest)) if time.ends_with('Z') && time.len() == 24 => rest.to_owned(),
            _ => line.to_owned(),
        });
    lines.collect()
}

#[test]
fn watch_prints_changes_as_they_happen() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    // A table of another family, which the filter excludes.
    let of_one_table = listen(
        &sandbox,
        "watch changes --count 2 --family ip --table filter",
    );
    let all = listen(&sandbox, "watch changes --count 3 --show 2");
    let json = listen(&sandbox, "watch changes --count 3 --json");
    let start = generation(&sandbox).number();
    tools.run("nft add table inet other");
    tools.run("iptables-nft -A INPUT -p tcp --dport 22 -j ACCEPT");
    tools.run("nft flush ruleset");

    let all = end(all);
    let lines = without_times(&all);
    assert!(
        lines[0].starts_with(&format!("generation {} by nft (thread ", start + 1)),
        "{}",
        all.out
    );
    assert!(lines[0].ends_with("): 1 event"));
    assert_eq!(lines[1], "  + add table inet other handle 1");
    assert!(lines[2].starts_with(&format!("generation {} by iptables", start + 2)));
    assert_eq!(lines[5], "  … and 1 more");
    assert!(lines[6].ends_with("): 4 events"), "{}", all.out);

    let of_one_table = end(of_one_table);
    let lines = without_times(&of_one_table);
    assert!(
        lines.iter().all(|line| !line.contains("other")),
        "{}",
        of_one_table.out
    );
    assert_eq!(
        lines[3],
        "  + add rule ip filter INPUT handle 2: [0:0] -p tcp -m tcp --dport 22 -j ACCEPT"
    );
    assert!(lines.contains(&"  - delete table ip filter handle 2".to_owned()));

    let json = end(json);
    let documents: Vec<Value> = json
        .lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(documents.len(), 3);
    assert_eq!(documents[1]["verb"], "watch");
    let change = &documents[1]["change"];
    assert_eq!(change["generation"], start + 2);
    assert_eq!(change["events"].as_array().unwrap().len(), 3);
    assert_eq!(
        change["events"][2]["path"],
        serde_json::json!(["filter", "INPUT"])
    );
}

/// Packets that the kernel dropped are reported; it drops them because nothing reads.
#[test]
fn exits_when_the_reader_closes_the_pipe() {
    let sandbox = sandbox();
    let mut child = listen(&sandbox, "watch changes");
    drop(child.stdout.take());
    let mut nft = connect(&sandbox);
    // The command notices the closed pipe when it writes.
    while child.try_wait().unwrap().is_none() {
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        nft.commit(&tx).unwrap();
        tx.clear();
        tx.delete(&Table::new(Family::IP, "t")).unwrap();
        nft.commit(&tx).unwrap();
    }
    end(child);
}

#[test]
fn legacy_tables_have_no_events() {
    for verb in ["watch changes", "watch packets"] {
        let output = run(&sandbox(), &format!("{verb} --backend legacy")).expect(2);
        assert!(output.err.contains("legacy tables"), "{}", output.err);
    }
}

/// Returns each line as the result of a run of its own.
fn documents(output: &Ran) -> Vec<Ran> {
    let lines = output.lines().into_iter().map(|line| Ran {
        code: 0,
        out: line.to_owned(),
        err: String::new(),
    });
    lines.collect()
}

#[test]
fn event_output_matches_the_documentation() {
    let sandbox = traced();
    let mut watching = listen(&sandbox, "watch changes --json");
    let tracing = listen(&sandbox, "watch packets --json --count 12");
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut watched = Vec::new();
    // Waits for each line, so that no event is lost unread.
    let mut next = |key: &str| {
        let out = lines.next().unwrap().unwrap();
        let document: Value = serde_json::from_str(&out).unwrap();
        assert!(document[key].is_object(), "{out}");
        watched.push(Ran {
            code: 0,
            out,
            err: String::new(),
        });
    };
    let mut nft = connect(&sandbox);
    let mut committed = |fill: &dyn Fn(&mut Transaction)| {
        let mut tx = Transaction::new();
        fill(&mut tx);
        nft.commit(&tx).unwrap();
    };
    // By a process that stays; with every kind of key.
    let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4);
    committed(&|tx| {
        tx.add(&set).unwrap();
        tx.add_elements(&set.set_id(), [Element::new(&[10, 0, 0, 1])])
            .unwrap();
        tx.add(&Rule::new(Family::IP, "t", "web")).unwrap();
    });
    next("change");
    // Too large for an event.
    committed(&|tx| {
        let mut rule = Rule::new(Family::IP, "t", "web");
        for _ in 0..60 {
            rule.push(&Match::new("comment", 0, &[0; 256]));
        }
        tx.add(&rule).unwrap();
    });
    next("lost");
    // The quota is used up.
    send(&sandbox);
    next("notice");
    watching.kill().unwrap();
    watching.wait().unwrap();
    json::check("watch", &watched.iter().collect::<Vec<_>>());

    let mut traced = documents(&end(tracing));
    traced.push(lost_step(&sandbox));
    json::check("trace-packets", &traced.iter().collect::<Vec<_>>());
}

/// Returns the output when packets come faster than they are read: the test does not read until the
/// buffers are full.
fn lost_step(sandbox: &Sandbox) -> Ran {
    let mut child = listen(sandbox, "watch packets --json --buffer 1");
    for _ in 0..2000 {
        send(sandbox);
    }
    let out = BufReader::new(child.stdout.take().unwrap());
    let lost = out
        .lines()
        .map(Result::unwrap)
        .find(|line| line.contains("\"lost\""));
    child.kill().unwrap();
    child.wait().unwrap();
    Ran {
        code: 0,
        out: lost.expect("the loss is reported"),
        err: String::new(),
    }
}

/// Returns a sandbox with a quota, and rules that trace a packet through two chains to a policy.
fn traced() -> Sandbox {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with(
        "nft -f -",
        "table ip t {
            quota q { over 50 bytes; }
            chain web { counter; }
            chain out { type filter hook output priority 0; policy accept;
                meta nftrace set 1; udp dport 9 jump web; quota name \"q\"; }
        }
        table ip u {
            chain in { type filter hook input priority 0; meta nftrace set 1; meta mark set 7; counter; }
        }",
    );
    sandbox
}

fn send(sandbox: &Sandbox) {
    sandbox
        .run(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(&[0; 100], "127.0.0.1:9").unwrap();
        })
        .unwrap();
}

#[test]
fn prints_packets_with_the_rules_they_traverse() {
    let sandbox = traced();
    let people = listen(&sandbox, "watch packets --count 7 --table t");
    let other = listen(&sandbox, "watch packets --count 1 --table other");
    let json = listen(&sandbox, "watch packets --count 7 --table t --json");
    send(&sandbox);
    let people = end(people);
    let lines = people.lines();
    let (id, packet) = lines[0].split_once(' ').unwrap();
    assert!(
        packet.starts_with(
            "packet oif lo ip saddr 127.0.0.1 daddr 127.0.0.1 ttl 64 length 128 udp sport "
        ),
        "{packet}"
    );
    assert!(packet.ends_with(" dport 9"));
    let steps: Vec<_> = lines[1..]
        .iter()
        .map(|line| line.strip_prefix(&format!("{id} ")).unwrap())
        .collect();
    let begins = [
        "rule ip t out handle 5 verdict continue: meta nftrace set 1",
        "rule ip t out handle 6 verdict jump -> web: udp dport 9 jump web",
        "rule ip t web handle 4 verdict continue: counter",
        "end ip t web verdict continue",
        "rule ip t out handle 7 verdict continue: ",
        "end ip t out verdict continue",
        "policy ip t out policy accept",
    ];
    assert_eq!(steps.len(), begins.len(), "{}", people.out);
    for (step, begin) in steps.iter().zip(begins) {
        assert!(step.starts_with(begin), "{step}\n{}", people.out);
    }
    let json = end(json);
    let documents: Vec<Value> = json
        .lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(documents[0]["oif"], "lo");
    assert_eq!(documents[1]["verdict"], "jump -> web");
    assert_eq!(documents[6]["policy"], "accept");
    // No rule of that table matched.
    let mut other = other;
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}

/// A described packet is traced without a rule of others, in a table that the kernel removes with the process.
#[test]
fn traces_described_packets() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table ip t { chain out { type filter hook output priority -300; udp dport { 9, 10 } counter; }; }",
    );
    let to = |port: u16| {
        let send = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(&[0; 100], ("127.0.0.1", port)).unwrap();
        };
        sandbox.run(send).unwrap();
    };
    let words = "watch packets udp any 127.0.0.1:9 --count 3";
    let (text, json) = (words.to_owned(), format!("{words} --json"));
    let [text, json] = [text, json].map(|words| listen(&sandbox, &words));
    let mut killed = listen(&sandbox, "watch packets tcp 10.0.0.1 any:443 --in lo");
    let listed = tools.run("nft list ruleset");
    let of_killed = "ip saddr 10.0.0.1 tcp dport 443 iifname \"lo\" meta nftrace set 1";
    let tables: Vec<_> = listed
        .split("\n}\n")
        .filter(|table| table.starts_with("table inet chainwright-watch-"))
        .collect();
    let table = tables.iter().find(|table| table.contains(of_killed));
    let table = table.expect(&listed).split(" {").next().unwrap();
    assert_eq!(tables.len(), 3, "{listed}");
    // Nobody else can change it.
    assert!(!tools.succeeds(&format!("nft delete {table}")));
    killed.kill().unwrap();
    killed.wait().unwrap();
    // The kernel deletes it before the socket is closed completely.
    assert!(!tools.run("nft list tables").contains(table));

    to(10);
    to(9);
    let (text, json) = (end(text), end(json));
    let ids: BTreeSet<_> = text
        .lines()
        .iter()
        .map(|line| line[..8].to_owned())
        .collect();
    let lines: Vec<_> = text
        .lines()
        .iter()
        .map(|line| line[9..].to_owned())
        .collect();
    assert!(
        !text.out.contains("dport 10") && !text.out.contains("nftrace"),
        "{}",
        text.out
    );
    assert!(
        lines[0].starts_with("packet oif lo ip saddr 127.0.0.1 "),
        "{}",
        text.out
    );
    assert!(lines[0].ends_with(" dport 9"), "{}", text.out);
    assert_eq!(
        lines[1..4],
        [
            "rule ip t out handle 3 verdict continue: udp dport { 9, 10 } counter",
            "end ip t out verdict continue",
            "policy ip t out policy accept",
        ]
    );
    assert_eq!((lines.len(), ids.len()), (4, 1), "{}", text.out);
    let own = json
        .lines()
        .iter()
        .filter(|line| line.contains("chainwright-watch"))
        .count();
    // One step in its own table, none in the table of the other process.
    assert_eq!((json.lines().len(), own), (4, 1), "{}", json.out);
    let left = tools.run("nft list tables");
    assert_eq!(left, "table ip t\n");

    // With --table, the packet is printed with the first step in that table; a family limits what is traced.
    let in_table = listen(&sandbox, "watch packets udp any any:9 --count 1 --table t");
    let elsewhere = listen(&sandbox, "watch packets udp any any:9 --table other");
    let v6 = listen(&sandbox, "watch packets -6 udp any any:9");
    let listed = tools.run("nft list ruleset");
    assert_eq!(
        listed
            .matches("meta nfproto ipv6 udp dport 9 meta nftrace set 1")
            .count(),
        2,
        "{listed}"
    );
    to(9);
    let in_table = end(in_table);
    let [packet, rule] = in_table.lines()[..] else {
        panic!("{}", in_table.out);
    };
    assert!(packet.contains(" packet oif lo "), "{}", in_table.out);
    assert!(
        rule.contains(" rule ip t out handle 3 "),
        "{}",
        in_table.out
    );
    for mut child in [elsewhere, v6] {
        child.kill().unwrap();
        assert_eq!(child.wait_with_output().unwrap().stdout, b"");
    }

    for (words, message) in [
        ("watch packets tcp any", "3 values required"),
        ("watch packets tcp host any", "\"host\" is not an address"),
        (
            "watch packets tcp any any --in a\"b",
            "not the name of an interface",
        ),
        ("watch packets --in lo", "<PACKET>"),
    ] {
        let ran = run(&sandbox, words).expect(2);
        assert!(ran.err.contains(message), "{words}: {}", ran.err);
    }
}
