//! `top` and `watch drops`: counters and their increase.

use std::net::UdpSocket;
use std::process::{Child, ChildStdout};

use super::live::listen;
use super::*;
use crate::common::tools::Tools;

fn send(sandbox: &Sandbox, count: usize) {
    let send = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..count {
            socket.send_to(&[0; 72], "127.0.0.1:9").unwrap();
        }
    };
    sandbox.run(send).unwrap();
}

/// A running `top --json`.
struct Top {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Top {
    fn start(sandbox: &Sandbox, arguments: &str) -> Self {
        let spawn = || {
            let mut command = Command::new(PROGRAM);
            command.args(["top", "--json", "--interval", "20ms"]);
            command.args(arguments.split_whitespace());
            command.stdout(Stdio::piped()).spawn().unwrap()
        };
        let mut child = sandbox.run(spawn).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns the next document.
    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Reads documents until `found` accepts the row with these values.
    fn until(&mut self, row: &[(&str, Value)], mut found: impl FnMut(&Value, f64) -> bool) {
        for _ in 0..3000 {
            let document = self.next();
            let seconds = document["seconds"].as_f64().unwrap();
            for one in document["rows"].as_array().unwrap() {
                // No rate is larger than the total allows: a reset is not an increase.
                if let Some(rate) = one.get("packets_per_second") {
                    let increase = rate.as_f64().unwrap() * seconds;
                    let total = one["packets"].as_f64().unwrap();
                    assert!(increase < total + 0.001, "{document}");
                }
                if row.iter().all(|(key, value)| one[*key] == *value) && found(one, seconds) {
                    return;
                }
            }
        }
        panic!("{row:?}");
    }
}

#[test]
fn rates_add_up_and_start_anew() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table inet t { chain out { type filter hook output priority 0; udp dport 9 counter; }; }",
    );
    tools.run("iptables-legacy -A OUTPUT -p udp");
    let nft = [("chain", "out".into()), ("handle", 2.into())];
    let legacy = [("backend", "legacy".into()), ("number", 1.into())];
    let mut top = Top::start(&sandbox, "");
    top.next();
    send(&sandbox, 5);
    for row in [&nft, &legacy] {
        // The packets may be spread over several intervals.
        let mut top = Top::start(&sandbox, "");
        top.next();
        let mut sum = 0.0;
        send(&sandbox, 5);
        let before = if row == &nft { 5 } else { 10 };
        top.until(row, |row, seconds| {
            sum += row["packets_per_second"].as_f64().unwrap() * seconds;
            row["packets"] == before + 5
        });
        assert!((sum - 5.0).abs() < 0.001, "{sum}");
        top.child.kill().unwrap();
        top.child.wait().unwrap();
    }
    // From here on it has counters above 0.
    top.until(&legacy, |row, _| row["packets"] == 15);
    tools.run("iptables-legacy -Z");
    top.until(&legacy, |row, _| row.get("packets_per_second").is_none());
    top.until(&legacy, |row, _| {
        row["packets_per_second"] == 0.0 && row["packets"] == 0
    });
    // Of a chain, too: one of its counters is enough.
    let chain = [("backend", "legacy".into()), ("chain", "OUTPUT".into())];
    let mut by_chain = Top::start(&sandbox, "--by chain --backend legacy");
    send(&sandbox, 5);
    by_chain.until(&chain, |row, _| row["packets"].as_u64() >= Some(5));
    tools.run("iptables-legacy -Z OUTPUT 1");
    by_chain.until(&chain, |row, _| row.get("packets_per_second").is_none());
    by_chain.until(&chain, |row, _| row["packets_per_second"] == 0.0);
    by_chain.child.kill().unwrap();
    by_chain.child.wait().unwrap();
    // An inserted rule moves the others: they are at another position.
    tools.run("iptables-legacy -I OUTPUT -j ACCEPT");
    let moved = [("backend", "legacy".into()), ("number", 2.into())];
    top.until(&moved, |row, _| row.get("packets_per_second").is_none());
    tools.run(
        "nft replace rule inet t out handle 2 udp dport { 9, 10 } counter packets 1000 bytes 1",
    );
    let new = [("chain", "out".into()), ("packets", 1000.into())];
    top.until(&new, |row, _| row.get("packets_per_second").is_none());
    top.until(&new, |row, _| row["packets_per_second"] == 0.0);
    top.child.kill().unwrap();
    top.child.wait().unwrap();
}

#[test]
fn rules_chains_and_sets_are_sorted() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table inet t {
            set seen { type inet_service; flags dynamic; counter; elements = { 9 counter packets 7 bytes 70, 10 counter packets 1 bytes 1 }; }
            chain a { counter packets 3 bytes 30; counter packets 4 bytes 1 accept; }
            chain b { counter packets 5 bytes 2; drop; }
            chain none { drop; }
        }",
    );
    tools.run("iptables-legacy -A OUTPUT -p udp");
    let top = |options: &str| run(&sandbox, &format!("top --interval 10ms {options}")).expect(0);
    let shown = |options: &str| {
        let ran = top(&format!("--iterations 1 --backend nft {options}"));
        let lines = ran
            .lines()
            .into_iter()
            .skip(2)
            .take_while(|line| !line.is_empty());
        let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        shown("--sort packets"),
        [
            "0.0 0.0 5 2 inet t b handle 7: counter",
            "0.0 0.0 4 1 inet t a handle 6: counter accept",
            "0.0 0.0 3 30 inet t a handle 5: counter",
        ]
    );
    assert_eq!(
        shown("--sort bytes --limit 1"),
        ["0.0 0.0 3 30 inet t a handle 5: counter"]
    );
    assert_eq!(
        shown("--by chain --sort packets"),
        ["0.0 0.0 7 31 inet t a", "0.0 0.0 5 2 inet t b"]
    );
    assert_eq!(
        shown("--by chain --sort packets ?"),
        shown("--by chain --sort packets")
    );
    assert_eq!(shown("--by chain b"), ["0.0 0.0 5 2 inet t b"]);
    assert_eq!(shown("--by set"), ["0.0 0.0 8 71 inet t seen"]);
    assert_eq!(shown("-t other"), [""; 0]);
    let none = top("--iterations 1 --backend nft none");
    assert!(none.err.contains("no counters found"), "{}", none.err);
    let two = top("--iterations 2").out;
    assert_eq!(
        two.split("\n\n")
            .filter(|table| table.contains("packets/s"))
            .count(),
        2
    );
    assert!(!two.contains('\u{1b}'));
    let by_set = top("--json --iterations 1 --by set");
    let [nft, legacy] =
        ["nft", "legacy"].map(|backend| top(&format!("--json --iterations 1 --backend {backend}")));
    json::check("top", &[&nft, &legacy, &by_set]);
    let policies = legacy.value()["rows"].clone();
    let policies = policies
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["rule"] == "policy accept");
    assert_eq!(policies.count(), 3);
    for (options, message) in [
        ("--interval 1us", "the shortest interval is 10ms"),
        ("--by set --backend legacy", "no sets of their own"),
    ] {
        let ran = run(&sandbox, &format!("top {options}")).expect(2);
        assert!(ran.err.contains(message), "{}", ran.err);
    }
}

/// Rules and policies that drop are printed with the packets that they counted.
#[test]
fn drops_are_printed() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table inet t { chain in { type filter hook input priority 0; udp dport 9 counter; udp dport 9 counter reject; tcp dport 1 drop; }; }",
    );
    tools.run("iptables-nft -A INPUT -p udp --dport 10 -j DROP");
    // Answers of `reject`, and what nf_tables drops: the legacy chain comes first.
    tools.run("iptables-legacy -A INPUT -p icmp -j ACCEPT");
    tools.run("iptables-legacy -A INPUT -p udp --dport 9:10 -j ACCEPT");
    tools.run("iptables-legacy -A INPUT -p udp --dport 11 -j DROP");
    tools.run("iptables-legacy -A INPUT -p udp --dport 13 -j REJECT");
    tools.run("iptables-legacy -A FORWARD -p udp -j DROP");
    tools.run("iptables-legacy -P INPUT DROP");
    let arguments = "watch drops --interval 20ms";
    let mut text = listen(&sandbox, arguments);
    let mut json = listen(&sandbox, &format!("{arguments} --json"));
    let to = |port: u16| {
        let send = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(&[0; 72], ("127.0.0.1", port)).unwrap();
        };
        sandbox.run(send).unwrap();
    };
    let mut lines = BufReader::new(text.stdout.take().unwrap()).lines();
    let mut documents = BufReader::new(json.stdout.take().unwrap()).lines();
    let mut checked = Vec::new();
    for (port, place) in [
        (9, "inet t in handle 3: udp dport 9 counter reject"),
        (
            10,
            "ip filter INPUT handle 2: -p udp -m udp --dport 10 -j DROP",
        ),
        (
            11,
            "legacy ip filter INPUT rule 3: -p udp -m udp --dport 11 -j DROP",
        ),
        (
            13,
            "legacy ip filter INPUT rule 4: -p udp -m udp --dport 13 -j REJECT --reject-with icmp-port-unreachable",
        ),
        (14, "legacy ip filter INPUT: policy drop"),
    ] {
        to(port);
        let line = lines.next().unwrap().unwrap();
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.ends_with('Z'), "{line}");
        assert_eq!(rest, format!("1 packet, 100 bytes: {place}"), "{port}");
        let document = documents.next().unwrap().unwrap();
        let value: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(value["drops"].as_array().unwrap().len(), 1, "{document}");
        assert_eq!(value["drops"][0]["packets"], 1);
        checked.push(Ran {
            code: 0,
            out: document,
            err: String::new(),
        });
    }
    json::check("drops", &checked.iter().collect::<Vec<_>>());
    for child in [&mut text, &mut json] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
