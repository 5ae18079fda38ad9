//! `metrics`: values, drift, and the server.

use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

use chainwright_lang::{RunMode, Script};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::live::listen;
use super::*;
use crate::common::tools::Tools;

const RULES: &str = r#"
table inet t {
    counter hits { }
    quota monthly { until 1 mbytes; }
    set nets { type ipv4_addr; flags interval; size 100; elements = { 10.0.0.0/8, 192.0.2.1 }; }
    map m { type inet_service : verdict; elements = { 1 : drop }; }
    set seen { type inet_service; size 9; flags dynamic; }
    chain out {
        type filter hook output priority 0;
        udp dport 9 counter name "hits" quota name "monthly" counter comment "nine"
        udp dport 9 counter packets 5 bytes 50 comment "nine"
        udp dport { 9, 10 } counter accept comment "another one"
        udp dport 9 accept comment "without a counter"
        counter
        udp dport 9 add @seen { udp dport }
    }
}
"#;

fn send(sandbox: &Sandbox) {
    let send = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[0; 72], "127.0.0.1:9").unwrap();
    };
    sandbox.run(send).unwrap();
}

/// Returns the samples whose names contain `name`, without the prefix of all names.
fn samples(text: &str, name: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| line.strip_prefix("chainwright_").unwrap());
    lines
        .filter(|line| line.contains(name))
        .map(str::to_owned)
        .collect()
}

#[test]
fn metrics_have_the_values_of_the_kernel() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", RULES);
    tools.run("iptables-nft -A OUTPUT -p udp -m comment --comment by-match");
    tools.run("iptables-legacy -A OUTPUT -p udp -m comment --comment old");
    tools.run("iptables-legacy -A OUTPUT -p udp");
    send(&sandbox);
    send(&sandbox);
    let text = run(&sandbox, "metrics").expect(0).out;
    let out = r#"backend="nft",family="inet",table="t",chain="out""#;
    let filter = r#"backend="nft",family="ip",table="filter",chain="OUTPUT""#;
    let legacy = r#"backend="legacy",family="ip",table="filter",chain="OUTPUT""#;
    assert_eq!(
        samples(&text, "rule_"),
        [
            format!(r#"rule_packets_total{{{legacy},comment="old"}} 2"#),
            format!(r#"rule_packets_total{{{out},comment="another one"}} 2"#),
            format!(r#"rule_packets_total{{{out},comment="nine"}} 9"#),
            format!(r#"rule_packets_total{{{filter},comment="by-match"}} 2"#),
            format!(r#"rule_bytes_total{{{legacy},comment="old"}} 200"#),
            format!(r#"rule_bytes_total{{{out},comment="another one"}} 200"#),
            format!(r#"rule_bytes_total{{{out},comment="nine"}} 450"#),
            format!(r#"rule_bytes_total{{{filter},comment="by-match"}} 200"#),
        ]
    );
    let policy = samples(&text, "policy_packets_total");
    // Also the kernel's answers to a closed port.
    let old = format!(r#"policy_packets_total{{{legacy},policy="accept"}} 4"#);
    assert!(policy.contains(&old), "{text}");
    let t = r#"family="inet",table="t""#;
    for expected in [
        format!(r#"counter_packets_total{{{t},counter="hits"}} 2"#),
        format!(r#"counter_bytes_total{{{t},counter="hits"}} 200"#),
        format!(r#"quota_used_bytes{{{t},quota="monthly"}} 200"#),
        format!(r#"quota_limit_bytes{{{t},quota="monthly"}} 1048576"#),
        format!(r#"set_elements{{{t},set="nets"}} 2"#),
        format!(r#"set_elements{{{t},set="m"}} 1"#),
        format!(r#"set_max_elements{{{t},set="nets"}} 100"#),
        format!(r#"table_chains{{backend="nft",{t}}} 1"#),
        format!(r#"table_rules{{backend="nft",{t}}} 6"#),
        format!(r#"table_sets{{backend="nft",{t}}} 3"#),
        r#"table_rules{backend="legacy",family="ip",table="filter"} 2"#.to_owned(),
        format!("nft_generation {}", generation(&sandbox).number()),
        "complete 1".to_owned(),
    ] {
        let found = samples(&text, &expected);
        assert_eq!(found, [expected], "{text}");
    }
    // Each sample belongs to the metric above it.
    let mut metric = "";
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(name) => metric = name.split(' ').next().unwrap(),
            None if line.starts_with('#') => {}
            None => assert_eq!(line.split(['{', ' ']).next(), Some(metric)),
        }
    }
    let few = run(&sandbox, "metrics -t t --comment n?ne --family inet")
        .expect(0)
        .out;
    assert_eq!(samples(&few, "rule_").len(), 2);
    assert_eq!(samples(&few, "legacy"), [""; 0]);
    assert_eq!(samples(&few, "OUTPUT"), [""; 0]);
    let only = run(&sandbox, "metrics --backend legacy").expect(0).out;
    assert_eq!(samples(&only, r#""nft""#), [""; 0]);
    let json = run(&sandbox, "metrics --json").expect(0);
    json::check("metrics", &[&json]);
    let count = json.value()["metrics"].as_array().unwrap().len();
    assert_eq!(count, samples(&text, "").len());
    // A reset starts anew.
    tools.run("nft reset counters");
    let text = run(&sandbox, "metrics").expect(0).out;
    let hits = samples(&text, "counter_packets");
    assert_eq!(
        hits,
        [format!(r#"counter_packets_total{{{t},counter="hits"}} 0"#)]
    );
}

/// The ruleset is compared with files of all formats.
#[test]
fn drift_is_the_difference_from_a_file() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", RULES);
    tools.run("iptables-nft -A INPUT -p tcp --dport 22 -j ACCEPT");
    tools.run("iptables-nft -A OUTPUT -p udp");
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let snapshot = path("snapshot");
    run(&sandbox, &format!("snapshot {snapshot}")).expect(0);
    let mut files = vec![snapshot];
    for (name, verb) in [
        ("nft", "get ruleset"),
        ("json", "get ruleset -o nft-json"),
        ("save", "get ruleset -o iptables"),
    ] {
        let text = run(&sandbox, verb).out;
        files.push(path(name));
        fs::write(path(name), text).unwrap();
    }
    let drift = |options: &str| {
        let ran = run(&sandbox, &format!("metrics --against {options}")).expect(0);
        samples(&ran.out, "drift").join(", ")
    };
    let tables = |number: u32| format!("drift {}, drift_tables {number}", number.min(1));
    let all = |expected: [u32; 4]| {
        for (file, expected) in files.iter().zip(expected) {
            assert_eq!(drift(file), tables(expected), "{file}");
        }
    };
    all([0; 4]);
    send(&sandbox);
    // Only counters and an element that a rule added have changed.
    let elements = run(&sandbox, "get elements seen").expect(0).out;
    assert!(elements.contains('9'), "{elements}");
    all([0; 4]);
    // A table that vanishes with its program is no drift.
    let mut tracer = listen(&sandbox, "watch packets udp any any:9");
    assert!(tools.run("nft list tables").contains("chainwright-watch-"));
    all([0; 4]);
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    // A table that a program owns and that the file contains is compared like others.
    if let Some(mut owner) = owned_table(&sandbox) {
        let with_owned = path("owned");
        let fill = "add set ip owned seen { type inet_service; size 9; flags dynamic; }\n\
            add chain ip owned out { type filter hook output priority 1; }\n\
            add rule ip owned out udp dport 9 add @seen { udp dport }\n";
        let mut of_owner = |text: &str| {
            let script = Script::parse("owned", text).unwrap();
            let options = chainwright_lang::Options::default();
            script.run(&mut owner, RunMode::Commit, &options).unwrap();
        };
        of_owner(fill);
        run(&sandbox, &format!("snapshot {with_owned}")).expect(0);
        assert_eq!(drift(&with_owned), tables(0));
        send(&sandbox);
        assert_eq!(drift(&with_owned), tables(0));
        of_owner("flush chain ip owned out");
        assert_eq!(drift(&with_owned), tables(1));
        close_owner(&sandbox, owner);
    }
    tools.run("nft add table ip other");
    all([1, 0, 0, 0]);
    tools.run("iptables-nft -A INPUT -j DROP");
    all([2, 1, 1, 1]);
    tools.run("nft flush chain inet t out");
    all([3, 2, 2, 1]);
    // No legacy table exists yet.
    let legacy = format!("{} --backend legacy", files[3]);
    assert_eq!(drift(&legacy), tables(1));
    tools.run("iptables-legacy -A INPUT -p tcp --dport 22 -j ACCEPT");
    tools.run("iptables-legacy -A OUTPUT -p udp");
    assert_eq!(drift(&legacy), tables(0));
    tools.run("iptables-legacy -P INPUT DROP");
    assert_eq!(drift(&legacy), tables(1));
    assert_eq!(drift(&format!("{} --family inet", files[0])), tables(1));
    tools.run("nft flush ruleset");
    all([2, 2, 2, 1]);
    let empty = path("empty");
    fs::write(&empty, "# truncated\n").unwrap();
    for (options, message) in [
        (empty, "has no table"),
        (
            "- --listen 127.0.0.1:9637".to_owned(),
            "- is not a regular file",
        ),
        (
            format!("{} -t other", files[1]),
            "none of the selected tables",
        ),
        ("/nowhere".to_owned(), "cannot read /nowhere"),
        (
            format!("{} --backend legacy", files[1]),
            "only with output of iptables-save",
        ),
    ] {
        let ran = run(&sandbox, &format!("metrics --against {options}")).expect(2);
        assert!(ran.err.contains(message), "{options}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
}

/// Sends a request for the metrics; returns the whole response.
fn request(sandbox: &Sandbox, method: &str, address: &str) -> String {
    let exchange = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(format!("{method} /metrics HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    sandbox.run(exchange).unwrap()
}

/// Serves one namespace to another: the clients connect where it was started.
#[test]
fn metrics_are_served_over_http() {
    let (here, elsewhere) = (sandbox(), sandbox());
    Tools::new(&elsewhere).run_with("nft -f -", RULES);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules");
    fs::write(&file, RULES).unwrap();
    let arguments = format!(
        "metrics --listen 127.0.0.1:9638 --against {} --netns /proc/{}/fd/{}",
        file.display(),
        std::process::id(),
        elsewhere.netns().as_fd().as_raw_fd(),
    );
    let server = listen(&here, &arguments);
    let response = request(&here, "GET", "127.0.0.1:9638");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(samples(body, "drift"), ["drift 0", "drift_tables 0"]);
    assert_eq!(samples(body, "table_rules").len(), 1);
    let response = request(&here, "HEAD", "127.0.0.1:9638");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\n"), "{response}");
    // The address is in use.
    let ran = run(&here, "metrics --listen 127.0.0.1:9638").expect(2);
    assert!(
        ran.err.contains("cannot listen on 127.0.0.1:9638"),
        "{}",
        ran.err
    );
    let id = Pid::from_raw(server.id() as i32);
    kill(id, Signal::SIGTERM).unwrap();
    super::live::end(server);
}
