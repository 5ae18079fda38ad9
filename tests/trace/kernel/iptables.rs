//! Random rulesets in iptables' syntax.

use std::fmt::Write;

use crate::common::random::Random;
use crate::kernel::packet::{PORTS, client, far};
use crate::kernel::world::node_address;

/// The tables, and their chains in the kernel.
const TABLES: [(&str, &[&str]); 5] = [
    ("raw", &["PREROUTING", "OUTPUT"]),
    (
        "mangle",
        &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
    ),
    ("nat", &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]),
    ("filter", &["INPUT", "FORWARD", "OUTPUT"]),
    ("security", &["INPUT", "FORWARD", "OUTPUT"]),
];

/// Writes the tables of a family.
struct Writer<'r> {
    random: &'r mut Random,
    is_ipv4: bool,
    /// Whether verdicts may depend on chance.
    chance: bool,
    /// Number of user-defined chains in the table.
    own: usize,
}

/// The tables of a family: all of them, some with rules; and whether they depend on chance.
pub(crate) fn tables(random: &mut Random, is_ipv4: bool) -> (String, bool) {
    let chance = random.once_in(4);
    let mut writer = Writer {
        random,
        is_ipv4,
        chance,
        own: 0,
    };
    let mut text = String::new();
    for (table, chains) in TABLES {
        writer.table(&mut text, table, chains);
    }
    (text, chance)
}

/// Whether rules match more than the description of a packet or the node contains: options, payload, and
/// routes.
pub(crate) fn matches_undescribed_data(text: &str) -> bool {
    ["-m string", "--tcp-option", "-m addrtype", "0>>22"]
        .iter()
        .any(|words| text.contains(words))
}

impl Writer<'_> {
    fn table(&mut self, text: &mut String, table: &str, chains: &[&str]) {
        let _ = writeln!(text, "*{table}");
        self.own = self.random.below(4);
        for chain in chains {
            let policy = match table != "nat" && self.random.once_in(14) {
                true => "DROP",
                false => "ACCEPT",
            };
            let _ = writeln!(text, ":{chain} {policy}");
        }
        for own in 0..self.own {
            let _ = writeln!(text, ":U{own} -");
        }
        for own in 0..self.own {
            self.rules(text, table, &format!("U{own}"), own + 1);
        }
        for chain in chains {
            self.rules(text, table, chain, 0);
        }
        text.push_str("COMMIT\n");
    }

    fn rules(&mut self, text: &mut String, table: &str, chain: &str, next: usize) {
        for _ in 0..self.random.below(5) {
            let rule = self.rule(table, chain, next);
            let _ = writeln!(text, "-A {chain} {rule}");
        }
    }

    fn source(&mut self) -> String {
        let number = self.random.below(4) as u8;
        match self.random.below(6) {
            0 => node_address(self.is_ipv4, self.random.below(2)).to_string(),
            _ => client(self.is_ipv4, number).to_string(),
        }
    }

    fn destination(&mut self) -> String {
        let number = self.random.below(4) as u8;
        match self.random.below(3) {
            0 => node_address(self.is_ipv4, self.random.below(2)).to_string(),
            _ => far(self.is_ipv4, number).to_string(),
        }
    }

    fn rule(&mut self, table: &str, chain: &str, next: usize) -> String {
        if table == "nat"
            && !self.random.once_in(3)
            && let Some(rule) = self.translation(chain)
        {
            return rule;
        }
        let mut words = Vec::new();
        // The protocol, the condition for its match, and options of the rule itself.
        let protocol = self.random.pick(&["tcp", "udp", "icmp", ""]);
        match protocol {
            "" => {}
            "icmp" if !self.is_ipv4 => words.push("-p ipv6-icmp".to_owned()),
            protocol => words.push(format!("-p {protocol}")),
        }
        for _ in 0..self.random.below(3) {
            let condition = self.condition(table, chain, protocol);
            // Each option of a match occurs once.
            let first = condition.split(' ').take(2).collect::<Vec<_>>().join(" ");
            let option = condition
                .trim_start_matches("! ")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned();
            let stands = |word: &String| {
                word.contains(&first)
                    || (option.len() == 2
                        && option != "-m"
                        && word.trim_start_matches("! ").starts_with(&option))
            };
            if !words.iter().any(stands) {
                words.push(condition);
            }
        }
        words.extend(self.target(table, chain, next, protocol, words.is_empty()));
        words.join(" ")
    }

    /// A match.
    fn condition(&mut self, table: &str, chain: &str, protocol: &str) -> String {
        let not = self.random.pick(&["", "", "", "! "]);
        let (source, destination) = (self.source(), self.destination());
        let (port, other) = (self.random.pick(&PORTS), self.random.pick(&PORTS));
        let mark = self.random.below(8);
        let tracked = table != "raw";
        let has_in = matches!(chain, "PREROUTING" | "INPUT" | "FORWARD");
        let has_out = matches!(chain, "FORWARD" | "OUTPUT" | "POSTROUTING");
        let has_ports = matches!(protocol, "tcp" | "udp");
        let length = if self.is_ipv4 { 24 } else { 126 };
        match self.random.below(if self.chance { 36 } else { 33 }) {
            0 => format!("{not}-s {source}"),
            1 => format!("{not}-d {destination}"),
            2 => format!("{not}-s {source}/{length}"),
            3 if has_in => format!("{not}-i {}", self.random.pick(&["c0", "s0", "lo", "c+"])),
            4 if has_out => format!("{not}-o {}", self.random.pick(&["c0", "s0", "lo", "s+"])),
            5 | 6 if has_ports => format!(
                "-m {protocol} {not}--dport {}",
                self.random
                    .pick(&[port.to_string(), "50:100".to_owned(), "400:".to_owned()])
            ),
            7 if has_ports => format!(
                "-m {protocol} {not}--sport {}",
                self.random.pick(&["20000:20003", "20004:", ":1023"])
            ),
            8 if protocol == "tcp" => format!(
                "-m tcp {not}--tcp-flags {}",
                self.random.pick(&[
                    "SYN,ACK SYN",
                    "FIN,SYN,RST,ACK SYN",
                    "ALL NONE",
                    "SYN,ACK ACK"
                ])
            ),
            9 if protocol == "tcp" => {
                format!("-m tcp {not}--tcp-option {}", self.random.pick(&["2", "3"]))
            }
            10 | 11 if has_ports => format!(
                "-m multiport {not}{} {port},{other}",
                self.random.pick(&["--dports", "--sports", "--ports"])
            ),
            12 if protocol == "icmp" => match self.is_ipv4 {
                true => format!(
                    "-m icmp {not}--icmp-type {}",
                    self.random.pick(&["8", "0", "3/1"])
                ),
                false => format!(
                    "-m icmp6 {not}--icmpv6-type {}",
                    self.random.pick(&["128", "129", "1/4"])
                ),
            },
            13 => format!(
                "-m mark {not}--mark {}",
                self.random
                    .pick(&[format!("{mark}"), format!("{mark}/0x7"), "2/2".to_owned()])
            ),
            14 if tracked => format!(
                "-m connmark {not}--mark {}",
                self.random.pick(&[format!("{mark}"), "2/2".to_owned()])
            ),
            15 | 16 if tracked => format!(
                "-m conntrack {not}--ctstate {}",
                self.random.pick(&[
                    "NEW",
                    "ESTABLISHED",
                    "RELATED,ESTABLISHED",
                    "INVALID",
                    "DNAT",
                    "SNAT",
                    "NEW,DNAT"
                ])
            ),
            17 if tracked => format!(
                "-m conntrack --ctdir {}",
                self.random.pick(&["ORIGINAL", "REPLY"])
            ),
            18 if tracked => format!("-m conntrack {not}--ctorigdst {destination}"),
            19 if tracked => format!("-m conntrack {not}--ctorigsrc {source}"),
            20 if tracked => format!("-m conntrack {not}--ctorigdstport {port}"),
            21 => format!(
                "-m addrtype {not}--dst-type {}",
                self.random.pick(if self.is_ipv4 {
                    &["LOCAL", "UNICAST", "BROADCAST,MULTICAST"]
                } else {
                    &["LOCAL", "UNICAST", "MULTICAST"]
                })
            ),
            22 => format!(
                "-m addrtype {not}--src-type {}",
                self.random.pick(&["LOCAL", "UNICAST"])
            ),
            23 => format!("-m comment --comment \"rule {port}\""),
            24 => format!(
                "-m length {not}--length {}",
                self.random.pick(&["40:80", "60", "0:50"])
            ),
            25 => match self.is_ipv4 {
                true => format!(
                    "-m ttl {}",
                    self.random.pick(&[
                        "--ttl-eq 64",
                        "--ttl-gt 40",
                        "--ttl-lt 64",
                        "! --ttl-eq 32"
                    ])
                ),
                false => format!(
                    "-m hl {}",
                    self.random
                        .pick(&["--hl-eq 64", "--hl-gt 40", "--hl-lt 64", "! --hl-eq 32"])
                ),
            },
            26 => format!(
                "-m dscp {not}--dscp {}",
                self.random.pick(&["0x00", "0x08", "0x2e"])
            ),
            27 => format!(
                "-m tos {not}--tos {}",
                self.random.pick(&["0x20/0xff", "0x00/0x3f", "0xb8/0xfc"])
            ),
            28 => match self.is_ipv4 {
                true => format!(
                    "-m iprange {not}{}",
                    self.random.pick(&[
                        "--src-range 10.1.0.3-10.1.0.4",
                        "--dst-range 10.3.0.1-10.3.0.2"
                    ])
                ),
                false => format!(
                    "-m iprange {not}{}",
                    self.random
                        .pick(&["--src-range fd01::3-fd01::4", "--dst-range fd03::1-fd03::2"])
                ),
            },
            29 => format!(
                "-m pkttype {not}--pkt-type {}",
                self.random.pick(&["unicast", "multicast"])
            ),
            30 if self.is_ipv4 => format!(
                "-m u32 {not}--u32 \"{}\"",
                self.random.pick(&[
                    "6&0xFF=0x6",
                    "0>>22&0x3C@0&0xFFFF=0x35,0x50",
                    "8>>24=0x30:0x50",
                    "4&0x3FFF=0"
                ])
            ),
            31 if matches!(chain, "OUTPUT" | "POSTROUTING") => format!(
                "-m owner {not}--uid-owner {}",
                self.random.pick(&["0", "1000-2000"])
            ),
            32 => format!(
                "-m string --algo {} {not}--string {}",
                self.random.pick(&["bm", "kmp"]),
                self.random.pick(&["abcdef", "xyzabc"])
            ),
            33 => format!("-m statistic --mode random {not}--probability 0.25"),
            34 => "-m statistic --mode nth --every 2 --packet 0".to_owned(),
            35 => "-m limit --limit 3/sec --limit-burst 3".to_owned(),
            _ => format!("{not}-d {destination}"),
        }
    }

    fn target(
        &mut self,
        table: &str,
        chain: &str,
        next: usize,
        protocol: &str,
        bare: bool,
    ) -> Option<String> {
        let own =
            (next < self.own).then(|| format!("U{}", next + self.random.below(self.own - next)));
        let mark = self.random.below(8);
        let rejects = table == "filter";
        Some(match self.random.below(20) {
            0 | 1 => "-j ACCEPT".to_owned(),
            2 if !bare && table != "nat" => "-j DROP".to_owned(),
            3 => "-j RETURN".to_owned(),
            4..=7 => format!("-j {}", own?),
            8 => format!("-g {}", own?),
            9 | 10 if table != "nat" || chain.starts_with('U') || !bare => match table {
                "mangle" | "filter" | "raw" | "security" => match table {
                    "mangle" => format!(
                        "-j MARK --set-xmark {}",
                        self.random.pick(&[
                            format!("{mark}/0xffffffff"),
                            "0x4/0x4".to_owned(),
                            "0x0/0x1".to_owned()
                        ])
                    ),
                    _ => format!("-j MARK --set-xmark {mark}/0xffffffff"),
                },
                _ => "-j ACCEPT".to_owned(),
            },
            11 if table != "raw" => format!(
                "-j CONNMARK {}",
                self.random.pick(&[
                    "--set-xmark 0x3/0xffffffff",
                    "--save-mark --nfmask 0xffffffff --ctmask 0xffffffff",
                    "--restore-mark --nfmask 0xffffffff --ctmask 0xffffffff",
                    "--set-xmark 0x4/0x4"
                ])
            ),
            12 if rejects && !bare => match (protocol, self.is_ipv4) {
                ("tcp", _) if self.random.once_in(2) => {
                    "-j REJECT --reject-with tcp-reset".to_owned()
                }
                (_, true) => format!(
                    "-j REJECT --reject-with {}",
                    self.random
                        .pick(&["icmp-port-unreachable", "icmp-host-prohibited"])
                ),
                (_, false) => format!(
                    "-j REJECT --reject-with {}",
                    self.random
                        .pick(&["icmp6-port-unreachable", "icmp6-adm-prohibited"])
                ),
            },
            13 if table == "mangle" => match self.random.below(4) {
                0 => format!(
                    "-j DSCP --set-dscp {}",
                    self.random.pick(&["0x08", "0x2e", "0x00"])
                ),
                1 => format!(
                    "-j TOS --set-tos {}",
                    self.random.pick(&["0x20/0xff", "0x10/0x3f"])
                ),
                2 if self.is_ipv4 => format!(
                    "-j TTL {}",
                    self.random
                        .pick(&["--ttl-set 64", "--ttl-dec 1", "--ttl-inc 2"])
                ),
                _ if matches!(chain, "FORWARD" | "OUTPUT" | "POSTROUTING") => {
                    "-j CLASSIFY --set-class 0001:0002".to_owned()
                }
                _ if self.is_ipv4 => return None,
                _ => format!(
                    "-j HL {}",
                    self.random
                        .pick(&["--hl-set 64", "--hl-dec 1", "--hl-inc 2"])
                ),
            },
            14 if table == "raw" => format!("-j {}", self.random.pick(&["CT --notrack", "TRACE"])),
            15 => "-j LOG --log-prefix met".to_owned(),
            16 if table == "mangle" && protocol == "tcp" => {
                "-p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1200"
                    .replacen("-p tcp ", "", 1)
            }
            _ => return None,
        })
    }

    /// A translation that keeps the packet on its path.
    fn translation(&mut self, chain: &str) -> Option<String> {
        let is_ipv4 = self.is_ipv4;
        let (net, local) = match is_ipv4 {
            true => ("10.3.0.0/16", "127.0.0.1"),
            false => ("fd03::/16", "::1"),
        };
        let node = node_address(is_ipv4, self.random.below(2));
        let (port, other) = (self.random.pick(&PORTS), self.random.pick(&PORTS));
        let protocol = self.random.pick(&["tcp", "udp"]);
        let number = self.random.below(4) as u8;
        let with_port = |address: std::net::IpAddr, port: u16| match address.is_ipv4() {
            true => format!("{address}:{port}"),
            false => format!("[{address}]:{port}"),
        };
        Some(match (chain, self.random.below(5)) {
            ("PREROUTING", 0) => format!(
                "-d {node} -p {protocol} -m {protocol} --dport {port} -j REDIRECT --to-ports {other}"
            ),
            ("PREROUTING", 1) => format!(
                "-d {node} -j DNAT --to-destination {}",
                node_address(is_ipv4, 0)
            ),
            ("PREROUTING" | "OUTPUT", 2) => format!(
                "-d {net} -p {protocol} -j DNAT --to-destination {}",
                far(is_ipv4, number)
            ),
            ("PREROUTING" | "OUTPUT", 3) => format!(
                "-d {net} -p {protocol} -m {protocol} --dport {port} -j DNAT --to-destination {}",
                with_port(far(is_ipv4, number), other)
            ),
            ("PREROUTING" | "OUTPUT", 4) if is_ipv4 => {
                "-d 10.3.0.0/30 -j NETMAP --to 10.3.0.0/30".to_owned()
            }
            ("OUTPUT", _) => format!(
                "-d {local} -p {protocol} -m {protocol} --dport {port} -j REDIRECT --to-ports {other}"
            ),
            ("POSTROUTING", 0) => format!("-o {} -j MASQUERADE", self.random.pick(&["c0", "s0"])),
            ("POSTROUTING", 1) => format!(
                "-o s0 -s {} -j SNAT --to-source {}",
                self.source(),
                node_address(is_ipv4, 1)
            ),
            ("POSTROUTING", 2) => format!(
                "-o s0 -p {protocol} -m {protocol} --dport {port} -j SNAT --to-source {}",
                with_port(node_address(is_ipv4, 1), 40_000) + "-45000"
            ),
            ("INPUT", 0) => format!(
                "-p {protocol} -s {} -j SNAT --to-source {}",
                self.source(),
                client(is_ipv4, number)
            ),
            _ => return None,
        })
    }
}
