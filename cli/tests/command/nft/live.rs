//! Tests that take time: monitors, readers that close the pipe, callers without privileges.

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

#[test]
fn exits_successfully_when_the_reader_closes_the_pipe() {
    let side = Side::chainwright();
    let rules = "add rule ip t c accept\n".repeat(2000);
    for text in rules
        .as_bytes()
        .chunks(200 * "add rule ip t c accept\n".len())
    {
        let text = std::str::from_utf8(text).unwrap();
        let text = format!("add table ip t\nadd chain ip t c\n{text}");
        let output = side.run_with(&find("nft"), &["-f", "-"], &text);
        assert_eq!(output.code, Some(0), "{}", output.err);
    }
    let spawn = || {
        let listing = "list ruleset\n".repeat(20);
        side.command(&[listing.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut child = side.sandbox.run(spawn).unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(first, "table ip t {\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn standard_input_may_be_closed() {
    use std::process::Command;
    for side in [Side::real(), Side::chainwright()] {
        let run = || {
            Command::new("/bin/sh")
                .args(["-c", r#""$0" -f - <&-"#])
                .arg(&side.program)
                .output()
                .unwrap()
        };
        let output = side.sandbox.run(run).unwrap();
        assert_eq!(output.stdout, b"");
        // nft treats it as an empty text.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
    }
}

#[test]
fn reports_missing_privileges_like_nft() {
    let (real, chainwright) = (Side::real(), Side::chainwright());
    for arguments in [
        "list ruleset",
        "add table ip x",
        "-c add table ip x",
        "monitor",
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let run = |side: &Side| {
            let run = || {
                thread::scope(|scope| {
                    let unprivileged = scope.spawn(|| {
                        for set in [caps::CapSet::Bounding, caps::CapSet::Effective] {
                            caps::clear(None, set).unwrap();
                        }
                        caps::clear(None, caps::CapSet::Inheritable).unwrap();
                        side.command(&words).stdin(Stdio::null()).output().unwrap()
                    });
                    unprivileged.join().unwrap()
                })
            };
            side.sandbox.run(run).unwrap()
        };
        let (their, our) = (run(&real), run(&chainwright));
        assert_eq!(their.status.code(), Some(1), "{arguments}");
        assert_eq!(our.status.code(), Some(1), "{arguments}");
        assert_eq!(our.stdout, b"");
        let message = String::from_utf8(our.stderr).unwrap();
        assert!(message.contains("CAP_NET_ADMIN"), "{message}");
        assert!(
            message.contains("\nOperation not permitted (you must be root)\n")
                || message.starts_with("Operation not permitted (you must be root)\n"),
            "{message}"
        );
        let their_message = String::from_utf8(their.stderr).unwrap();
        assert_eq!(
            message.lines().next(),
            their_message.lines().next(),
            "{arguments}"
        );
    }
    // Commands that need no kernel need no privileges.
    let words = ["describe", "ipv4_addr"];
    assert_eq!(chainwright.run(&words, "").out, real.run(&words, "").out);
}

/// A terminal gets a prompt for each line.
#[test]
fn a_terminal_is_prompted() {
    let side = Side::chainwright();
    let program = side.program.to_str().unwrap();
    let line = format!("{program} -i");
    let input = "add table ip x\nlist tables\nquit\n";
    let output = side.run_with(&find("script"), &["-qec", &line, "/dev/null"], input);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert_eq!(output.out.matches("nft> ").count(), 3, "{}", output.out);
    assert!(output.out.contains("nft> table ip x\r\n"), "{}", output.out);
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

const HOOKED: &str = "
table ip t {
    chain in { type filter hook input priority 1; }
    chain nat { type nat hook postrouting priority srcnat; masquerade; }
    chain out { type route hook output priority -151; }
}
table ip6 t { chain in { type filter hook input priority 2147483647; }; }
table inet t { chain in { type filter hook input priority -5; ct state new counter; }; }
table netdev t {
    chain in { type filter hook ingress device lo priority -2147483648; }
    chain more { type filter hook ingress device lo priority 10; }
}
table bridge t { chain pre { type filter hook prerouting priority -300; }; }
table arp t { chain in { type filter hook input priority 0; }; }
";

/// Lists registered hooks if the kernel reports them; otherwise ours prints an error and nft prints
/// nothing.
#[test]
fn hooks_are_listed_like_nft() {
    let side = Side::chainwright();
    let output = side.run(&["-f", "-"], HOOKED);
    assert_eq!(output.code, Some(0), "{}", output.err);
    Tools::new(&side.sandbox).run("iptables-legacy -A INPUT -j ACCEPT");
    for arguments in [
        "list hooks",
        "list hooks ip",
        "list hooks ip6",
        "list hooks inet",
        "list hooks arp",
        "list hooks bridge",
        "list hooks netdev",
        "list hooks netdev device lo",
        "list hooks ip device lo",
        "list hooks inet device lo",
        "list hooks arp device lo",
        "list hooks bridge device lo",
        "list hooks device lo",
        "list hooks ip device nothing",
        "list hooks netdev device nothing",
    ] {
        let their = side.run_with(&find("nft"), &[arguments], "");
        let our = side.run(&[arguments], "");
        assert_eq!(their.code, Some(0), "{arguments}: {}", their.err);
        if our.err.contains("this kernel lacks nfnetlink_hook") {
            assert_eq!(
                (our.code, &*our.out, &*their.out),
                (Some(1), "", ""),
                "{arguments}"
            );
            continue;
        }
        assert_eq!((our.code, &*our.err), (Some(0), ""), "{arguments}");
        // nft leaves out ARP when it lists all hooks.
        let is_of_all = matches!(arguments, "list hooks" | "list hooks device lo");
        let our = match our.out.strip_prefix("family arp {\n").filter(|_| is_of_all) {
            Some(more) => more.split_once("\n}\n").unwrap().1,
            None => &our.out,
        };
        assert_eq!(our, their.out, "{arguments}");
        let is_there = !arguments.starts_with("list hooks netdev") || arguments.ends_with(" lo");
        assert_eq!(our.is_empty(), !is_there, "{arguments}");
    }
}

/// Each input of `nft -i` sees the changes of the one before, also in a table that its connection
/// owns.
#[test]
fn an_owned_table_lives_until_standard_input_ends() {
    let side = Side::chainwright();
    let input =
        "add table ip t { flags owner; }\nlist tables\nadd chain ip t c\nnothing\nlist chains\n";
    let output = side.run(&["-i"], input);
    assert_eq!(
        output.out, "table ip t\ntable ip t {\n\tchain c {\n\t}\n}\n",
        "{}",
        output.err
    );
    assert_eq!(side.run(&["list tables"], "").out, "");
}

/// The handle of a table is listed where nft 1.1.7 lists it: where the whole table is listed.
#[test]
fn table_handles_are_listed_with_the_whole_table() {
    let side = Side::chainwright();
    let base = "add table ip t; add chain ip t c; add set ip t s { type ipv4_addr; elements = { 1.1.1.1 }; }; \
                add map ip t m { type ipv4_addr : mark; }; add counter ip t k; add quota ip t q { over 1 bytes; }";
    assert_eq!(side.run(&[base], "").code, Some(0));
    for (text, is_listed) in [
        ("list ruleset", true),
        ("list table ip t", true),
        ("list chain ip t c", false),
        ("list chains", false),
        ("list set ip t s", false),
        ("list sets", false),
        ("list map ip t m", false),
        ("list maps", false),
        ("list counter ip t k", false),
        ("list counters", false),
        ("list quota ip t q", false),
        ("list quotas", false),
        ("list flowtables", false),
        ("get element ip t s { 1.1.1.1 }", false),
        ("reset counters", false),
    ] {
        let output = side.run(&["-a", text], "");
        let first = output.out.lines().next().unwrap_or_default();
        let expected = if is_listed {
            "table ip t { # handle 1"
        } else {
            "table ip t {"
        };
        assert_eq!(first, expected, "{text}: {}", output.err);
    }
}

/// Resets list and reset the same as nft 1.1.7, except for errors, which reset nothing.
#[test]
fn reset_prints_old_values_and_resets_them() {
    const BASE: &str = "table ip t {
        counter k { packets 1031 bytes 1; }
        quota q { 5000 bytes used 1041 bytes; }
        set s { type ipv4_addr; counter; elements = { 1.1.1.1 counter packets 1021 bytes 1, \
                                                      2.2.2.2 counter packets 1022 bytes 1 }; }
        map m { type ipv4_addr : inet_service; counter; elements = { 1.1.1.1 counter packets 1023 bytes 1 : 80 }; }
        set i { type ipv4_addr; flags interval; counter; elements = { 1.0.0.0/8 counter packets 1024 bytes 1 }; }
        chain c { counter packets 1011 bytes 1 accept; ip saddr { 1.1.1.1, 2.2.2.2 } counter packets 1012 bytes 1; }
        chain d { counter packets 1013 bytes 1 jump { counter packets 1015 bytes 1; }; }
    }
    table ip6 u { chain e { counter packets 1014 bytes 1; }; }";
    const ALL: [u64; 11] = [
        1011, 1012, 1013, 1014, 1015, 1021, 1022, 1023, 1024, 1031, 1041,
    ];
    const RULES: &[u64] = &[1011, 1012, 1013, 1014, 1015];
    const TABLE_T: &[u64] = &[1011, 1012, 1013, 1015, 1021, 1022, 1023, 1024, 1031, 1041];
    let numbers = |text: &str| -> Vec<u64> {
        let words: HashSet<&str> = text.split(|c: char| !c.is_ascii_digit()).collect();
        let is_there = |number: &u64| words.contains(&*number.to_string());
        ALL.into_iter().filter(is_there).collect()
    };
    for (command, listed, reset) in [
        ("reset rules", &ALL[..], RULES),
        ("reset rules ip6", &[1014], &[1014]),
        ("reset rules ip", TABLE_T, &[1011, 1012, 1013, 1015]),
        ("reset rules ip t", TABLE_T, &[1011, 1012, 1013, 1015]),
        ("reset rules t", TABLE_T, &[1011, 1012, 1013, 1015]),
        ("reset rules table ip t", TABLE_T, &[1011, 1012, 1013, 1015]),
        ("reset rules ip t c", &[1011, 1012], &[1011, 1012]),
        ("reset rules t c", &[1011, 1012], &[1011, 1012]),
        ("reset rules chain ip t c", &[1011, 1012], &[1011, 1012]),
        ("reset rules inet", &[], &[]),
        (
            "reset rule ip t c handle H",
            &[1011, 1021, 1022, 1023, 1024, 1031, 1041],
            &[1011],
        ),
        ("reset set ip t s", &[1021, 1022], &[1021, 1022]),
        ("reset set t s", &[1021, 1022], &[1021, 1022]),
        ("reset set ip t i", &[1024], &[1024]),
        ("reset map ip t m", &[1023], &[1023]),
        ("reset element ip t s { 1.1.1.1 }", &[1021], &[1021]),
        (
            "reset element ip t s { 2.2.2.2, 1.1.1.1 }",
            &[1021, 1022],
            &[1021, 1022],
        ),
        ("reset element ip t i { 1.2.3.4 }", &[1024], &[1024]),
        ("reset element ip t m { 1.1.1.1 }", &[1023], &[1023]),
        ("reset counters", &[1031], &[1031]),
        ("reset counters ip t", &[1031], &[1031]),
        ("reset counter ip t k", &[1031], &[1031]),
        ("reset quotas", &[1041], &[1041]),
        ("reset quota ip t q", &[1041], &[1041]),
    ] {
        for options in [&[][..], &["-j"], &["-a"]] {
            let side = Side::chainwright();
            let made = side.run(&["-f", "-"], BASE);
            assert_eq!(made.code, Some(0), "{}", made.err);
            let all = side.run(&["-a", "list", "chain", "ip", "t", "c"], "").out;
            let (_, handle) = all.split_once("accept # handle ").unwrap();
            let command = command.replace('H', handle.lines().next().unwrap());
            let output = side.run(&[options, &[&command]].concat(), "");
            assert_eq!(output.code, Some(0), "{command}: {}", output.err);
            assert_eq!(numbers(&output.out), listed, "{command}: {}", output.out);
            let remaining: Vec<_> = ALL
                .into_iter()
                .filter(|each| !reset.contains(each))
                .collect();
            let now = side.run(&["list", "ruleset"], "").out;
            assert_eq!(numbers(&now), remaining, "{command}: {now}");
        }
    }
    let side = Side::chainwright();
    assert_eq!(side.run(&["-f", "-"], BASE).code, Some(0));
    for command in [
        "reset set ip t m",
        "reset map ip t s",
        "reset set ip t nope",
        "reset set ip nope s",
        "reset element ip t s { 9.9.9.9 }",
        "reset element ip t nope { 9.9.9.9 }",
        "reset rule ip t c handle 99",
        "reset rule ip t nope handle 1",
        "reset rules ip nope",
        "reset rules chain ip t nope",
        "reset ruleset",
        "reset table ip t",
        "reset chain ip t c",
        "reset sets",
    ] {
        let output = side.run(&[command], "");
        assert_eq!(output.code, Some(1), "{command}: {}", output.out);
        assert!(
            output.out.is_empty() && output.err.starts_with("Error: "),
            "{command}: {}",
            output.err
        );
        let now = side.run(&["list", "ruleset"], "").out;
        assert_eq!(numbers(&now), ALL, "{command}: {now}");
    }
}

/// A range in a set of concatenations is found if a single range of the set contains all of it.
#[test]
fn concatenated_ranges_are_looked_up_as_a_whole() {
    let side = Side::chainwright();
    let base = "table ip t { set s { type ipv4_addr . inet_service; flags interval; \
                elements = { 10.0.0.0-10.0.0.9 . 80-90, 11.0.0.0/8 . 22 }; }; \
                map m { type ipv4_addr : mark; elements = { 1.1.1.1 : 1 }; }; }";
    assert_eq!(side.run(&[base], "").code, Some(0));
    for (element, found) in [
        ("10.0.0.3 . 80", Some("10.0.0.0-10.0.0.9 . 80-90")),
        ("10.0.0.3-10.0.0.5 . 80", Some("10.0.0.0-10.0.0.9 . 80-90")),
        (
            "10.0.0.3-10.0.0.5 . 85-90",
            Some("10.0.0.0-10.0.0.9 . 80-90"),
        ),
        (
            "10.0.0.0-10.0.0.9 . 80-90",
            Some("10.0.0.0-10.0.0.9 . 80-90"),
        ),
        ("11.1.0.0/16 . 22", Some("11.0.0.0/8 . 22")),
        ("10.0.0.3-10.0.0.20 . 80", None),
        ("10.0.0.3 . 80-200", None),
        ("10.0.0.3-11.0.0.0 . 80", None),
        ("11.0.0.0/8 . 22-23", None),
    ] {
        let output = side.run(&[&format!("get element ip t s {{ {element} }}")], "");
        assert_eq!(
            output.code,
            Some(i32::from(found.is_none())),
            "{element}: {}",
            output.err
        );
        let listed = found.map(|found| format!("elements = {{ {found} }}"));
        assert!(
            listed.is_none_or(|listed| output.out.contains(&listed)),
            "{}",
            output.out
        );
    }
    // The data of a map's key is not compared, as in nft 1.1.7.
    for data in ["", " : 1", " : 2"] {
        let output = side.run(&[&format!("get element ip t m {{ 1.1.1.1{data} }}")], "");
        assert!(
            output.out.contains("{ 1.1.1.1 : 0x00000001 }"),
            "{data}: {}",
            output.err
        );
    }
}
