//! `nft monitor`: events and traces.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Side, plain};
use crate::common::in_workspace;
use crate::common::needs::find;
use crate::common::tools::Tools;

/// Changes made while the monitor runs.
const CHANGES: &[&str] = &[
    "add table ip t",
    "add chain ip t c { type filter hook input priority 0; policy drop; }",
    "add chain ip t d",
    "add set ip t s { type ipv4_addr; }",
    "add set ip t r { type ipv4_addr; flags interval; }",
    "add map ip t m { type inet_service : verdict; }",
    "add rule ip t c tcp dport 22 counter accept",
    "add rule ip t c tcp dport { 80, 443 } accept",
    "insert rule ip t c ip saddr @s drop comment \"blocked\"",
    "add element ip t s { 192.0.2.1, 192.0.2.2 }",
    "add element ip t r { 10.0.0.0/8, 192.0.2.1-192.0.2.9 }",
    "add element ip t m { 80 : jump d }",
    "delete element ip t m { 80 : jump d }",
    "delete element ip t r { 10.0.0.0/8 }",
    "delete element ip t s { 192.0.2.1 }",
    "create counter ip t k",
    "add quota ip t q { over 5 mbytes; }",
    "delete counter ip t k",
    "flush chain ip t c",
    "delete map ip t m",
    "delete chain ip t d",
    "add table inet u { chain a { jump b; }; chain b { counter; }; }",
    "delete table inet u",
    // The last change: once it is printed, all events were printed.
    "add table ip last; add chain ip last c; add set ip last s { type ipv4_addr; }; \
     add element ip last s { 192.0.2.7 }; add rule ip last c accept; add counter ip last k",
    "delete table ip last",
];

/// Starts a monitor, and waits until it listens.
fn listening(side: &Side, arguments: &[&str]) -> Child {
    let spawn = || {
        side.command(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let child = side.sandbox.run(spawn).unwrap();
    // The monitor listens once it has a netlink socket that is in a group.
    let listens = || {
        let sockets = std::fs::read_to_string(format!("/proc/{}/net/netlink", child.id()));
        let sockets = sockets.unwrap_or_default();
        sockets.lines().skip(1).any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields[1] == "12" && u32::from_str_radix(fields[3], 16) != Ok(0)
        })
    };
    let begun = Instant::now();
    while !listens() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the monitor does not listen"
        );
        thread::sleep(Duration::from_millis(10));
    }
    // The monitor reads the ruleset after that.
    thread::sleep(Duration::from_millis(200));
    child
}

/// Returns whether a line contains this text; blanks in JSON are ignored.
fn has(line: &str, last: &str) -> bool {
    match line.starts_with('{') {
        true => line.replace(' ', "").contains(last),
        false => line.contains(last),
    }
}

/// Returns the lines of a monitor up to one that contains this text.
fn events(side: &Side, arguments: &[&str], last: &str) -> Vec<String> {
    events_of(CHANGES, side, arguments, last)
}

/// The same for other changes.
fn events_of(changes: &[&str], side: &Side, arguments: &[&str], last: &str) -> Vec<String> {
    let child = listening(side, arguments);
    for change in changes {
        let output = side.run_with(&find("nft"), &["-f", "-"], change);
        assert_eq!(output.code, Some(0), "{change}: {}", output.err);
    }
    lines_until(child, |line| has(line, last))
}

/// Returns what a program prints up to the last line, and ends the program.
fn lines_until(mut child: Child, is_last: impl Fn(&str) -> bool) -> Vec<String> {
    let out = BufReader::new(child.stdout.take().unwrap());
    let (send, receive) = mpsc::channel();
    let reader = thread::spawn(move || {
        out.lines()
            .map_while(Result::ok)
            .try_for_each(|line| send.send(line))
    });
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| is_last(line)) {
        match receive.recv_timeout(Duration::from_secs(20)) {
            Ok(line) => lines.push(line),
            Err(error) => {
                child.kill().unwrap();
                let output = child.wait_with_output().unwrap();
                let message = String::from_utf8_lossy(&output.stderr);
                panic!("{error}: the last line was not printed: {message}: {lines:#?}");
            }
        }
    }
    drop(receive);
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = reader.join().unwrap(); // the receiver may be gone already
    lines
}

/// Removes what only one of the two programs prints; each removal has its reason.
fn comparable(lines: &[String], arguments: &str) -> Vec<String> {
    // nft 1.0.6 leaves stateful objects out of these.
    let has_objects = !matches!(arguments, "monitor new" | "monitor destroy");
    let lines = lines.iter().filter(|line| {
        // Anonymous sets are deleted with their rule; nft prints both.
        !line.starts_with("delete set ip t __set")
            && (has_objects || !(line.contains(" counter ip ") || line.contains(" quota ip ")))
    });
    lines
        .flat_map(|line| match line.starts_with("# new generation") {
            // The process differs.
            true => vec![line.split(" by process").next().unwrap().to_owned()],
            false => plain(line),
        })
        // nft calls a deleted map a set.
        .map(|line| line.replace("delete map", "delete set"))
        .collect()
}

#[test]
fn monitor_prints_events_like_nft() {
    for (arguments, last) in [
        ("monitor", "delete table ip last"),
        ("-n monitor", "delete table ip last"),
        ("monitor ruleset", "delete table ip last"),
        ("monitor new", "add rule ip last c"),
        ("monitor destroy", "delete table ip last"),
        ("monitor tables", "delete table ip last"),
        ("monitor chains", "delete chain ip last c"),
        ("monitor rules", "delete rule ip last c"),
        ("monitor sets", "delete set ip last s"),
        ("monitor elements", "add element ip last s"),
        ("monitor new rules", "add rule ip last c"),
        ("monitor destroy chains", "delete chain ip last c"),
        ("monitor new elements", "add element ip last s"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let (real, chainwright) = (Side::real(), Side::chainwright());
        let (their, our) = (
            events(&real, &words, last),
            events(&chainwright, &words, last),
        );
        assert_eq!(
            comparable(&our, arguments),
            comparable(&their, arguments),
            "{arguments}"
        );
        assert!(!our.is_empty());
    }
}

/// Changes whose events have another form since nft 1.1.
const CHANGES_OF_1_1: &[&str] = &[
    "add table ip t",
    "add table inet u { flags dormant; }",
    "add chain ip t c { type nat hook output priority -100; policy accept; }",
    "add chain ip t d",
    "add set ip t s { type ipv4_addr; flags interval; }",
    "add set ip t b { type inet_service; timeout 1h; }",
    "add set ip t marks { type mark; flags interval; elements = { 0x100-0x1ff } }",
    "add map ip t m { type inet_service : verdict; elements = { 5 : jump d } }",
    "add map ip t v { typeof ip saddr . tcp dport : ip daddr . meta mark; }",
    "add element ip t v { 10.0.0.1 . 80 : 10.0.0.2 . 5 }",
    "add element ip t s { 12.0.0.1-12.0.0.5, 13.0.0.0/8 }",
    "add rule ip t d tcp flags & (syn|ack) == syn limit rate 5/second accept",
    "add rule ip t d tcp flags & (fin|syn|rst) == fin|syn",
    "add rule ip t d iifname \"lo\" icmp code 1 drop",
    "add rule ip t d ip frag-off & 0x1fff != 0 ct state new,established",
    "add rule ip t d ip saddr @s log flags all masquerade random",
    "insert rule ip t d meta mark & 0xffff0000 == 0x10000 comment \"c\"",
    "add rule ip t d ip option lsrr addr 3221225985 tcp option mptcp subtype 0",
    "add rule ip t d meta hour \"23:00\"-\"01:00\"",
    "add limit ip t l { rate 10/minute }",
    "add chain netdev n i { type filter hook ingress devices = { lo, eth7 } priority 0; }",
    "delete element ip t s { 13.0.0.0/8 }",
    "delete element ip t v { 10.0.0.1 . 80 }",
    "rename chain ip t c c2",
    "delete rule ip t d handle 9",
    "delete table ip last",
];

/// The events of nft 1.1.7 are recorded in `data/nft/monitor-1.1.txt`; with `CHAINWRIGHT_CAPTURE_NFT=PROGRAM`, the test
/// writes them instead, with those of PROGRAM.
#[test]
fn monitor_prints_events_like_nft_1_1() {
    let path = in_workspace("tests/data/nft/monitor-1.1.txt");
    let capture = std::env::var("CHAINWRIGHT_CAPTURE_NFT").ok();
    let of = |mut side: Side, arguments: &str| {
        if let Some(program) = &capture {
            side.program = program.into();
        }
        let tools = Tools::new(&side.sandbox);
        tools.run("ip link add eth7 type veth peer name eth8");
        tools.run("nft add table ip last");
        tools.run("nft add table netdev n");
        let words: Vec<&str> = arguments.split(' ').collect();
        let last = if arguments.contains("-j") {
            "\"name\":\"last\""
        } else {
            "table ip last"
        };
        let mut lines = events_of(CHANGES_OF_1_1, &side, &words, last);
        lines.retain(|line| !line.starts_with("# new generation"));
        lines
            .iter()
            .flat_map(|line| plain(line))
            .collect::<Vec<_>>()
    };
    let mut made = String::new();
    for arguments in ["monitor", "-j monitor"] {
        let lines = of(Side::newest(), arguments);
        made += &format!("=== {arguments}\n{}\n", lines.join("\n"));
    }
    if capture.is_some() {
        fs::write(&path, made).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap();
    let differ: Vec<_> = expected
        .lines()
        .zip(made.lines())
        .filter(|(one, other)| one != other)
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
    assert_eq!(expected.lines().count(), made.lines().count());
}

/// Returns whether a line of JSON is about a counter or a quota, which nft 1.0.6 leaves out of
/// `new` and `destroy`.
fn is_of_object(line: &str) -> bool {
    let value: Value = serde_json::from_str(line).unwrap();
    let object = value
        .as_object()
        .and_then(|line| line.values().next()?.as_object());
    object.is_some_and(|object| object.contains_key("counter") || object.contains_key("quota"))
}

/// The output is equal byte for byte.
#[test]
fn monitor_prints_events_as_json_like_nft() {
    let rule = r#""table":"last","chain":"c""#;
    for (arguments, last) in [
        ("-j monitor new", rule),
        ("monitor new json", rule),
        ("monitor new rules json", rule),
        ("-j monitor new sets json", r#""name":"s","table":"last""#),
        (
            "monitor new elements vm json",
            r#""table":"last","name":"s""#,
        ),
        (
            "-j monitor tables",
            r#"{"delete":{"table":{"family":"ip","name":"last""#,
        ),
        (
            "-ja monitor chains",
            r#"{"delete":{"chain":{"family":"ip","table":"last""#,
        ),
        ("monitor destroy elements json", r#""table":"t","name":"s""#),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let of = |side: &Side| {
            let mut lines = events(side, &words, last);
            lines.retain(|line| !is_of_object(line));
            lines
        };
        let (real, chainwright) = (of(&Side::real()), of(&Side::chainwright()));
        assert_eq!(chainwright, real, "{arguments}");
        assert!(!chainwright.is_empty());
    }
}

/// Events name the deleted object; nft prints "type": "invalid" for an object that it does not
/// know.
#[test]
fn json_events_name_deleted_objects() {
    let chainwright = Side::chainwright();
    let lines = events(
        &chainwright,
        &["-j", "monitor", "destroy"],
        r#""name":"last""#,
    );
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let element = r#"{"delete": {"element": {"family": "ip", "table": "t", "name": "m""#;
    assert!(lines[0].starts_with(element), "{lines:?}");
    let map = r#"{"delete": {"map": {"family": "ip", "name": "m", "table": "t", "handle": "#;
    assert!(lines.iter().any(|line| line.starts_with(map)), "{lines:?}");
    let rule = r#"{"delete": {"rule": {"family": "inet", "table": "u", "chain": "a", "handle": 3, "expr": [{"jump": {"target": "b"}}]}}}"#;
    assert!(lines.contains(&rule), "{lines:?}");
    let counter =
        r#"{"delete": {"counter": {"family": "ip", "name": "k", "table": "t", "handle": "#;
    assert!(
        lines.iter().any(|line| line.starts_with(counter)),
        "{lines:?}"
    );
}

/// Devices and the values that a trace can show: a veth pair, and another one with one end in a
/// bridge.
const DEVICES: &[&str] = &[
    "link add v0 type veth peer name v1",
    "link add b0 type bridge",
    "link add w0 type veth peer name w1",
    "link set w1 master b0",
    "link set v0 up",
    "link set v1 up",
    "link set w0 up",
    "link set w1 up",
    "link set b0 up",
    "addr add 10.9.0.1/24 dev v1",
    "-6 addr add fd00::1/64 dev v1 nodad",
    "addr add 10.8.0.1/24 dev b0",
];

const TRACING: &str = "
table ip t {
    chain other { udp dport 54 return; icmp type echo-request ct state new meta mark set 7; }
    chain last { ip protocol 17 accept; }
    chain pre { type filter hook prerouting priority raw;
        meta nftrace set 1
        jump other
        tcp dport { 80, 772 } meta mark set 9 return
        udp dport { 53, 54 } comment \"some\"
        udp dport 55 goto last
        udp dport 57 drop
    }
    chain out { type filter hook output priority filter; policy drop;
        meta nftrace set 1
        meta mark set 0x12
    }
}
table ip6 t { chain pre { type filter hook prerouting priority raw; meta nftrace set 1; return; }; }
table inet t { chain in { type filter hook input priority 10;
    ip protocol icmp accept
    udp dport 55 reject
    udp dport 9999 drop
}; }
table arp t { chain in { type filter hook input priority 10; meta nftrace set 1; }; }
table netdev t { chain in { type filter hook ingress device v1 priority 0; meta nftrace set 1; }; }
table bridge t {
    chain pre { type filter hook prerouting priority 0; meta nftrace set 1; }
    chain in { type filter hook input priority 0; }
}
";

/// Sends frames of many kinds over the device to the address. AH and IPComp are not among them: nft
/// 1.0.6 aborts with a failed assertion at the first of either (`payload_expr_pctx_update`).
const SENDER: &str = r#"
import os, socket, struct, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}) # so that they arrive one after the other
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind((sys.argv[1], 0))
to, source = bytes.fromhex(sys.argv[2].replace(":", "")), bytes.fromhex("020000000009")
def total(b):
    b += b"\0" * (len(b) % 2)
    x = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    x = (x >> 16) + (x & 0xffff)
    return ~(x + (x >> 16)) & 0xffff
def ip(protocol, payload, options=b""):
    words = 5 + len(options) // 4
    h = struct.pack("!BBHHHBBH4s4s", 0x40 + words, 0xb9, words * 4 + len(payload), 77, 0, 64, protocol, 0,
                    bytes([10, 9, 0, 2]), bytes([10, 9, 0, 1])) + options
    return h[:10] + struct.pack("!H", total(h)) + h[12:] + payload
def ip6(protocol, payload):
    return struct.pack("!IHBB16s16s", 0x6a512345, len(payload), protocol, 63,
                       socket.inet_pton(socket.AF_INET6, "fd00::2"), socket.inet_pton(socket.AF_INET6, "fd00::1")) + payload
def send(kind, payload): link.send(to + source + struct.pack("!H", kind) + payload)
def udp(port): return struct.pack("!HHHH", 1000, port, 12, 0) + b"abcd"
for port in range(53, 58): send(0x800, ip(17, udp(port)))
send(0x86dd, ip6(17, udp(53)))
tag = struct.pack("!HH", 0x6005, 0x800)
send(0x8100, tag + ip(17, udp(53)))
send(0x8100, struct.pack("!HH", 0x6005, 0x8100) + tag + ip(17, udp(53)))
send(0x88a8, tag + ip(17, udp(53)))
send(0x8100, struct.pack("!HH", 0x1006, 0x86dd) + ip6(6, bytes(range(20))))
send(0x806, struct.pack("!HHBBH6s4s6s4s", 1, 0x800, 6, 4, 1, source, bytes([10, 9, 0, 2]), b"\0" * 6, bytes([10, 9, 0, 1])))
send(0x1234, b"hello, world and all that")
send(0x88cc, b"\0" * 30)
send(0x800, ip(17, udp(53), b"\x94\x04\0\0"))
rest = bytes([17]) + bytes(range(2, 26))
for protocol in (0, 1, 2, 4, 6, 17, 33, 41, 47, 50, 58, 132, 136, 255): send(0x800, ip(protocol, rest))
send(0x800, ip(6, b""))
for kind in (0, 1, 2, 3, 5, 8, 11, 13): send(0x800, ip(1, bytes([kind, 1]) + bytes(range(18))))
for flags in (0, 1, 2, 0x12, 0x14, 0xff): send(0x800, ip(6, struct.pack("!HHIIBBHHH", 1, 80, 2, 3, 0x50, flags, 9, 0, 0)))
for protocol in (0, 1, 6, 17, 44, 58, 59, 136): send(0x86dd, ip6(protocol, bytes([17, 0]) + bytes(range(28))))
for kind in (1, 2, 3, 4, 128, 130, 135): send(0x86dd, ip6(58, bytes([kind, 1]) + bytes(range(18))))
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: here.sendto(b"hi", ("127.0.0.1", 53))
except OSError: pass # it is dropped
if sys.argv[1] == "v0": send(0x800, ip(17, udp(9999)))
"#;

/// The bits of the groups of changes and of traced packets.
const CHANGES_GROUP: u32 = 1 << 6;
const TRACES_GROUP: u32 = 1 << 8;

/// Returns how many sockets of the sandbox are in this group.
fn listeners(side: &Side, group: u32) -> usize {
    let sockets = side
        .sandbox
        .run(|| std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap())
        .unwrap();
    let groups = sockets.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields[1] == "12").then(|| u32::from_str_radix(fields[3], 16).unwrap())
    });
    groups.filter(|groups| groups & group != 0).count()
}

/// Runs both programs in the same sandbox, and waits until they listen in these groups: for each of
/// these arguments first theirs, then ours.
fn both_listening(side: &Side, ways: &[&str], groups: &[u32]) -> Vec<Child> {
    let nft = find("nft");
    let mut children = Vec::new();
    for arguments in ways {
        for program in [&nft, &side.program] {
            let words: Vec<&str> = arguments.split(' ').collect();
            let spawn = || {
                side.command_of(program, &words)
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            };
            children.push(side.sandbox.run(spawn).unwrap());
        }
    }
    let begun = Instant::now();
    while (groups.iter()).any(|group| listeners(side, *group) < children.len()) {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the programs do not listen"
        );
        thread::sleep(Duration::from_millis(10));
    }
    children
}

/// Without arguments the monitor prints changes and the rules that packets match, which are text
/// lines even with JSON.
#[test]
fn monitor_prints_changes_and_packets_together() {
    let side = Side::chainwright();
    let up = side.run_with(&find("ip"), &["link", "set", "lo", "up"], "");
    assert_eq!(up.code, Some(0), "{}", up.err);
    let rules = "table ip t { chain out { type filter hook output priority 0; meta nftrace set 1; udp dport 53 drop; }; }";
    assert_eq!(side.run(&[rules], "").code, Some(0));
    let ways = ["monitor", "-n monitor", "-j monitor", "monitor json"];
    let children = both_listening(&side, &ways, &[CHANGES_GROUP, TRACES_GROUP]);
    thread::sleep(Duration::from_secs(1)); // They read the ruleset after they have joined the groups.
    let packet = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                  try: s.sendto(b'x', ('127.0.0.1', 53))\nexcept OSError: pass\n";
    for number in 0..3 {
        for change in [
            format!("add rule ip t out udp dport {number} accept"),
            format!("add table ip x{number}"),
        ] {
            let output = side.run_with(&find("nft"), &[&change], "");
            assert_eq!(output.code, Some(0), "{}", output.err);
            thread::sleep(Duration::from_millis(100));
            let output = side.run_with(&find("/usr/bin/python3"), &["-c", packet], "");
            assert_eq!(output.code, Some(0), "{}", output.err);
            thread::sleep(Duration::from_millis(100));
        }
    }
    let output = side.run_with(&find("nft"), &["add", "table", "ip", "last"], "");
    assert_eq!(output.code, Some(0), "{}", output.err);
    let mut events = children
        .into_iter()
        .map(|child| lines_until(child, |line| has(line, "last")));
    for way in ways {
        let (their, our) = (events.next().unwrap(), events.next().unwrap());
        // The trace is in the middle of the changes, so that each kind appears before and after the
        // other.
        assert!(our[0].starts_with(if way.contains('j') {
            "{\"add\": "
        } else {
            "add rule "
        }));
        assert!(
            our.iter()
                .any(|line| line.contains("rule udp dport 53 drop (verdict drop)"))
        );
        assert_eq!(our, their, "{way}");
    }
}

/// Compares packet traces of every kind line by line.
#[test]
fn monitor_prints_packet_traces_like_nft() {
    let side = Side::chainwright();
    for line in DEVICES {
        let words: Vec<&str> = line.split(' ').collect();
        let output = side.run_with(&find("ip"), &words, "");
        assert_eq!(output.code, Some(0), "{line}: {}", output.err);
    }
    let output = side.run(&["-f", "-"], TRACING);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let ways = [
        "monitor trace",
        "-n monitor trace",
        "-a monitor trace",
        "-j monitor trace",
        "monitor",
    ];
    let children = both_listening(&side, &ways, &[TRACES_GROUP]);
    for (from, to) in [("w0", "b0"), ("v0", "v1")] {
        let events = side
            .run_with(&find("ip"), &["-o", "link", "show", to], "")
            .out;
        let (_, address) = events.split_once("link/ether ").unwrap();
        let address = address.split(' ').next().unwrap();
        let output = side.run_with(&find("/usr/bin/python3"), &["-", from, address], SENDER);
        assert_eq!(output.code, Some(0), "{}", output.err);
    }
    let events: Vec<Vec<String>> = children
        .into_iter()
        .map(|child| {
            let mut lines = lines_until(child, |line| line.contains("udp dport 9999 drop"));
            // Compare only the packets sent by the test: the machine sends others at the same time,
            // printed in any order.
            let is_sent = |line: &str| {
                line.contains(" ether saddr 02:00:00:00:00:09 ") || line.contains(" oif \"lo\" ")
            };
            let number = |line: &str| line.split(' ').nth(2).map(str::to_owned);
            let sent: HashSet<_> = lines
                .iter()
                .filter(|l| is_sent(l))
                .map(|l| number(l))
                .collect();
            lines.retain(|line| sent.contains(&number(line)));
            lines.sort_by_key(|line| number(line));
            lines
        })
        .collect();
    for (way, both) in ways.iter().zip(events.chunks(2)) {
        let [their, our] = both else {
            unreachable!("the outputs come in pairs")
        };
        for (our, their) in our.iter().zip(their) {
            assert_eq!(our, their, "{way}");
        }
        assert_eq!(our.len(), their.len(), "{way}");
        for part in [
            " vlan id 5 ",
            "arp operation request",
            "ether type 0x1234 @nh,0,200 0x68656c6c6f",
            "tcp flags == syn ",
            "(verdict goto last)",
            "policy drop meta mark 0x00000012 ",
        ] {
            let is_reported = our.iter().any(|line| line.contains(part));
            assert!(
                is_reported || *way == "-n monitor trace",
                "{way}: the output lacks {part:?}"
            );
        }
    }
}
