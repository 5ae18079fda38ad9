//! Compares the output of `xtables-monitor`, run by a link, with the lines that 1.8.13 printed for
//! the same changes and packets.

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::*;

/// The output is complete when nothing was printed for this long.
const QUIET: Duration = Duration::from_millis(300);

/// A running monitor.
struct Monitored<'s> {
    side: &'s Side,
    child: Child,
    lines: Receiver<String>,
}

impl<'s> Monitored<'s> {
    /// Starts the monitor, and repeats `sign` until it prints something.
    fn start(side: &'s Side, words: &[&str], sign: &dyn Fn()) -> Self {
        let link = side.directory.join("xtables-monitor");
        let start = || {
            Command::new(link)
                .args(words)
                .stdout(Stdio::piped())
                .spawn()
        };
        let mut child = side.sandbox.run(start).unwrap().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line))
        });
        let mut monitored = Self { side, child, lines };
        let signs = std::iter::repeat_with(|| {
            sign();
            monitored.lines.recv_timeout(QUIET)
        });
        assert!(
            signs.take(100).any(|line| line.is_ok()),
            "the monitor prints nothing"
        );
        monitored.rest();
        monitored
    }

    /// Returns what the monitor prints until it pauses, without the values that differ between
    /// runs.
    fn rest(&mut self) -> String {
        let lines = std::iter::from_fn(|| self.lines.recv_timeout(QUIET).ok());
        lines
            .map(|line| without_run_numbers(&line) + "\n")
            .collect()
    }

    /// Returns what the monitor prints for a call.
    fn of(&mut self, line: &str, input: &str) -> String {
        let ran = self.side.run(&self.side.directory, &words(line), input);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        self.rest()
    }
}

impl Drop for Monitored<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Replaces the numbers that differ between runs: generations, threads, packets, ports and sequence
/// numbers.
fn without_run_numbers(line: &str) -> String {
    let mut words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    let is_trace = line.starts_with("PACKET: ") || line.starts_with(" TRACE: ");
    for (place, word) in words.iter_mut().enumerate() {
        let number = match word.split_once('=') {
            Some((key @ ("GENID" | "PID" | "ID" | "SPORT"), _)) => format!("{key}=N"),
            _ if is_trace && word.len() == 8 && place < 4 => "N".to_owned(),
            _ => continue,
        };
        *word = number;
    }
    words.join(" ")
}

/// Calls, and the output for each.
const EVENTS: &[(&str, &str)] = &[
    (
        "iptables -N TCP",
        " EVENT: nft: NEW table: table filter ip flags 0 use 1 handle H\n EVENT: iptables -t filter -N TCP\n",
    ),
    (
        "iptables -A TCP -s 192.168.0.0/16 -p tcp --dport 22 -j ACCEPT",
        " EVENT: iptables -t filter[0:0] -A TCP -s 192.168.0.0/16 -p tcp -m tcp --dport 22 -j ACCEPT\n",
    ),
    (
        "iptables -I INPUT -p tcp -j TCP",
        " EVENT: nft: NEW chain: ip filter INPUT use 1 type filter hook input prio 0 policy accept packets 0 bytes 0 flags 1\n \
         EVENT: iptables -t filter[0:0] -A INPUT -p tcp -j TCP\n",
    ),
    (
        "nft add chain ip filter INPUT { policy drop; }",
        " EVENT: nft: NEW chain: ip filter INPUT use 1 type filter hook input prio 0 policy drop packets 0 bytes 0 flags 1\n",
    ),
    (
        "iptables -I TCP -s 10.0.0.0/8 -m comment --comment \"a b -?\" -j DROP",
        " EVENT: iptables -t filter[0:0] -A TCP -s 10.0.0.0/8 -m comment --comment \"a b -?\" -j DROP\n",
    ),
    (
        "iptables -D TCP 2",
        " EVENT: iptables -t filter[0:0] -D TCP -s 192.168.0.0/16 -p tcp -m tcp --dport 22 -j ACCEPT\n",
    ),
    (
        "iptables -E TCP TCP2",
        " EVENT: iptables -t filter -N TCP2\n",
    ),
    (
        "iptables -D INPUT 1",
        " EVENT: iptables -t filter[0:0] -D INPUT -p tcp -j TCP2\n",
    ),
    (
        "iptables -F TCP2",
        " EVENT: iptables -t filter[0:0] -D TCP2 -s 10.0.0.0/8 -m comment --comment \"a b -?\" -j DROP\n",
    ),
    ("iptables -X TCP2", " EVENT: iptables -t filter -X TCP2\n"),
    (
        "ip6tables -t nat -A POSTROUTING -o eth0 -j MASQUERADE",
        " EVENT: nft: NEW table: table nat ip6 flags 0 use 1 handle H\n \
         EVENT: nft: NEW chain: ip6 nat POSTROUTING use 1 type nat hook postrouting prio 100 policy accept packets 0 bytes 0 flags 1\n \
         EVENT: ip6tables -t nat[0:0] -A POSTROUTING -o eth0 -j MASQUERADE\n",
    ),
    (
        "nft add table inet own",
        " EVENT: nft: NEW table: table own inet flags 0 use 0 handle H\n",
    ),
    (
        "nft add chain inet own c",
        " EVENT: nft: NEW chain: inet own c use 0\n",
    ),
    // 1.8.13 prints an error of its own for this call.
    (
        "nft add rule inet own c tcp dport 22 accept",
        " EVENT: nft: NEW rule: inet own c tcp dport 22 accept\n",
    ),
    (
        "nft add set inet own s { type ipv4_addr; elements = { 192.0.2.1 }; }",
        "",
    ),
    (
        "nft delete table inet own",
        " EVENT: nft: DEL rule: inet own c tcp dport 22 accept\n EVENT: nft: DEL chain: inet own c use 0\n \
         EVENT: nft: DEL table: table own inet flags 0 use 0 handle H\n",
    ),
    (
        "nft add table bridge b",
        " EVENT: nft: NEW table: table b bridge flags 0 use 0 handle H\n",
    ),
    ("nft add chain bridge b c", " EVENT: ebtables -t b -N c\n"),
    // 1.8.13 exits on this call.
    (
        "nft add rule ip filter INPUT meta mark set ip saddr map { 192.0.2.1 : 5 }",
        " EVENT: nft: NEW rule: ip filter INPUT meta mark set ip saddr map { 192.0.2.1 : 0x00000005 }\n",
    ),
    (
        "nft delete table ip filter",
        " EVENT: nft: DEL rule: ip filter INPUT meta mark set ip saddr map { 192.0.2.1 : 0x00000005 }\n \
         EVENT: iptables -t filter -X INPUT\n EVENT: nft: DEL table: table filter ip flags 0 use 0 handle H\n",
    ),
];

#[test]
fn changes_are_printed_like_the_real_monitor() {
    let links = links();
    for (options, family, counters) in [
        (&["-e"][..], "", false),
        (&["--even", "--counters"], "", true),
        (&["-ce4"], "ip", true),
        (&["-4", "-6", "--event"], "ip6", false),
    ] {
        let side = Side::new(links.path(), "nft");
        let sign = || {
            side.run(&side.directory, &words("nft add table arp sign"), "");
            side.run(&side.directory, &words("nft delete table arp sign"), "");
        };
        let mut monitor = Monitored::start(&side, options, &sign);
        for (call, printed) in EVENTS {
            let of = |line: &&str| {
                let is_ip6 = line.contains(" ip6");
                let is_ip = line.contains(" ip") && !is_ip6;
                match family {
                    "ip" => is_ip,
                    "ip6" => is_ip6,
                    _ => true,
                }
            };
            let expected = printed.lines().filter(of).map(|line| format!("{line}\n"));
            let expected: String = expected.collect();
            let expected = expected.replace("[0:0]", if counters { " [0:0]" } else { "" });
            let got = monitor.of(call, "");
            let (events, end) = got.split_at(got.rfind("NEWGEN: ").expect(call));
            let mut lines: Vec<_> = events.lines().map(str::to_owned).collect();
            for line in &mut lines {
                if let Some((rest, _)) = line.split_once(" handle ") {
                    *line = format!("{rest} handle H");
                }
            }
            let got: String = lines.into_iter().map(|line| line + "\n").collect();
            assert_eq!(got, expected, "{options:?}: {call}");
            assert!(end.starts_with("NEWGEN: GENID=N PID=N NAME="), "{end}");
        }
    }
}

/// What 1.8.13 prints for a packet that rules mark, pass on, return and drop.
const TRACE: &str = "\
PACKET: 2 N OUT=lo SRC=127.0.0.1 DST=127.0.0.1 LEN=31 TOS=0x0 TTL=64 ID=N DF SPORT=N DPORT=9 
 TRACE: 2 N raw:OUTPUT:rule:0x2:CONTINUE  iptables -t raw -A OUTPUT -p udp -j TRACE
 TRACE: 2 N raw:OUTPUT:policy:ACCEPT 
PACKET: 2 N OUT=lo SRC=127.0.0.1 DST=127.0.0.1 LEN=31 TOS=0x0 TTL=64 ID=N DF SPORT=N DPORT=9 
 TRACE: 2 N filter:OUTPUT:rule:0x6:JUMP:V  iptables -t filter -A OUTPUT -j V
 TRACE: 2 N filter:V:rule:0x4:GOTO:U  iptables -t filter -A V -p udp -g U
 TRACE: 2 N filter:U:rule:0x3:0xfffffffb  iptables -t filter -A U -p udp -m udp --dport 9 -m comment --comment \"hi you\" -j RETURN
 TRACE: 2 N filter:OUTPUT:rule:0x7:CONTINUE  iptables -t filter -A OUTPUT -p udp -m udp --dport 9 -j MARK --set-xmark 0x5/0xffffffff
 TRACE: 2 N filter:OUTPUT:rule:0x8:DROP  iptables -t filter -A OUTPUT -p udp -m udp --dport 9 -j DROP
";

/// The same for a packet that arrives again and reaches a policy.
const TRACE_IN: &str = "\
PACKET: 2 N IN=lo LOOPBACK SRC=127.0.0.1 DST=127.0.0.1 LEN=31 TOS=0x0 TTL=64 ID=N DF SPORT=N DPORT=10 
 TRACE: 2 N raw:PREROUTING:rule:0x4:CONTINUE  iptables -t raw -A PREROUTING -i lo -j TRACE
 TRACE: 2 N raw:PREROUTING:policy:ACCEPT 
PACKET: 2 N IN=lo LOOPBACK SRC=127.0.0.1 DST=127.0.0.1 LEN=31 TOS=0x0 TTL=64 ID=N DF SPORT=N DPORT=10 
 TRACE: 2 N filter:INPUT:policy:DROP 
";

#[test]
fn packets_are_printed_like_the_real_monitor() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    let call = |line: &str| {
        let ran = side.run(&side.directory, &words(line), "");
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    };
    for line in [
        "-t raw -A OUTPUT -p udp -j TRACE",
        "-t raw -A PREROUTING -i lo -j TRACE",
        "-N U",
        "-N V",
        "-A U -p udp --dport 9 -m comment --comment \"hi you\" -j RETURN",
        "-A V -p udp -g U",
        "-A OUTPUT -j V",
        "-A OUTPUT -p udp --dport 9 -j MARK --set-mark 5",
        "-A OUTPUT -p udp --dport 9 -j DROP",
        "-P INPUT DROP",
    ] {
        call(&format!("iptables {line}"));
    }
    let send = |port: u16| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let _ = socket.send_to(b"abc", ("127.0.0.1", port)); // sending a dropped packet fails
    };
    let sign = || side.sandbox.run(|| send(11)).unwrap();
    let mut monitor = Monitored::start(&side, &["--trace"], &sign);
    side.sandbox.run(|| send(9)).unwrap();
    assert_eq!(monitor.rest(), TRACE);
    side.sandbox.run(|| send(10)).unwrap();
    let printed = monitor.rest();
    let at = printed.find("PACKET: 2 N IN=").unwrap();
    assert_eq!(&printed[at..], TRACE_IN);
}

#[test]
fn monitor_exits_on_invalid_arguments_and_help() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    let usage = "Usage: xtables-monitor [ -t | -e ]";
    for (line, code, out, err) in [
        ("-h", 1, usage, ""),
        ("", 1, usage, ""),
        ("file", 1, usage, ""),
        ("--ipv4 -h", 1, usage, ""),
        ("-t -V", 0, "xtables-monitor 1.8.9\n", ""),
        ("-e --versio", 0, "xtables-monitor 1.8.9\n", ""),
        ("-x", 2, "", "xtables-monitor 1.8.9: Bad argument."),
        ("-0", 2, "", "xtables-monitor 1.8.9: Bad argument."),
        ("--v6", 2, "", "xtables-monitor 1.8.9: Bad argument."),
    ] {
        let ran = side.run_path(&links.path().join("xtables-monitor"), &words(line), "");
        assert_eq!(ran.code, code, "{line}: {ran:?}");
        assert!(
            ran.out.contains(out) && ran.out.is_empty() == out.is_empty(),
            "{line}: {ran:?}"
        );
        assert!(
            ran.err.contains(err) && ran.err.is_empty() == err.is_empty(),
            "{line}: {ran:?}"
        );
    }
}
