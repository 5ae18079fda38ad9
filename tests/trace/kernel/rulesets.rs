//! Random rulesets in nft's language. They refer to the addresses, ports and marks of the packets, so that most rules
//! are met by some packets.

use std::fmt::Write;

use crate::common::random::Random;
use crate::kernel::packet::{PORTS, client, far};
use crate::kernel::world::node_address;

/// The table that makes the kernel report packets: at the earliest priority, and again where a packet leaves the rules,
/// so that its final state is reported. A rule that no packet meets enables connection tracking for any ruleset:
/// without such a rule the kernel does not call chains that translate.
pub(crate) const WATCH: &str = "table inet watch {
    chain before {
        type filter hook prerouting priority -500; policy accept;
        icmpv6 type != { echo-request, echo-reply } return
        meta nftrace set 1
    }
    chain out {
        type filter hook output priority -500; policy accept;
        icmpv6 type != { echo-request, echo-reply } return
        meta nftrace set 1
    }
    chain delivered {
        type filter hook input priority 2000; policy accept;
    }
    chain sent {
        type filter hook postrouting priority 2000; policy accept;
    }
    chain tracked {
        ct state new
    }
}
";

/// A hook of a base chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hook {
    Prerouting,
    Input,
    Forward,
    Output,
    Postrouting,
}

impl Hook {
    const ALL: [Self; 5] = [
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Prerouting => "prerouting",
            Self::Input => "input",
            Self::Forward => "forward",
            Self::Output => "output",
            Self::Postrouting => "postrouting",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Filter,
    Nat,
    Route,
    Regular,
}

/// The context of a rule.
#[derive(Debug, Clone, Copy)]
struct Place {
    kind: Kind,
    hook: Option<Hook>,
    /// Whether connections are tracked at this point.
    tracked: bool,
    /// The first chain that it may jump to.
    next: usize,
}

/// Writes one table.
struct Table<'r> {
    random: &'r mut Random,
    /// `ip`, `ip6`, `inet`.
    family: &'static str,
    /// Number of chains without a hook.
    regular: usize,
    /// Whether verdicts may depend on chance.
    chance: bool,
}

/// A ruleset, and whether it depends on chance.
pub(crate) fn ruleset(random: &mut Random) -> (String, bool) {
    let chance = random.once_in(4);
    let mut text = format!("flush ruleset\n{WATCH}");
    // Each base chain has a distinct priority, because no listing shows the order of chains with the same one.
    let mut taken = Vec::new();
    for number in 0..1 + random.below(3) {
        let family = random.pick(&["ip", "ip", "ip6", "inet", "inet"]);
        let regular = random.below(4);
        let mut table = Table {
            random,
            family,
            regular,
            chance,
        };
        table.write(&mut text, number, &mut taken);
    }
    (text, chance)
}

impl Table<'_> {
    fn write(&mut self, text: &mut String, number: usize, taken: &mut Vec<i32>) {
        let _ = writeln!(text, "table {} t{number} {{", self.family);
        self.sets(text);
        for chain in (0..self.regular).rev() {
            let _ = writeln!(text, "  chain r{chain} {{");
            let place = Place {
                kind: Kind::Regular,
                hook: None,
                tracked: true,
                next: chain + 1,
            };
            self.rules(text, place);
            text.push_str("  }\n");
        }
        for chain in 0..1 + self.random.below(5) {
            let hook = self.random.pick(&Hook::ALL);
            let kind = match hook {
                Hook::Output => self.random.pick(&[Kind::Filter, Kind::Nat, Kind::Route]),
                Hook::Forward => Kind::Filter,
                _ => self.random.pick(&[Kind::Filter, Kind::Filter, Kind::Nat]),
            };
            let base = match (kind, hook) {
                (Kind::Nat, Hook::Prerouting | Hook::Output) => -100,
                (Kind::Nat, _) => 100,
                (Kind::Route, _) => -150,
                _ => self.random.pick(&[-310, -150, -50, 0, 50, 150]),
            };
            let mut priority = base;
            while taken.contains(&priority) || priority == -300 || priority == -150 {
                priority += 1;
            }
            taken.push(priority);
            let name = match kind {
                Kind::Nat => "nat",
                Kind::Route => "route",
                _ => "filter",
            };
            let policy = match kind != Kind::Nat && self.random.once_in(10) {
                true => "drop",
                false => "accept",
            };
            let _ = writeln!(
                text,
                "  chain b{chain} {{\n    type {name} hook {} priority {priority}; policy {policy};",
                hook.name()
            );
            let place = Place {
                kind,
                hook: Some(hook),
                tracked: priority > -200,
                next: 0,
            };
            self.rules(text, place);
            text.push_str("  }\n");
        }
        text.push_str("}\n");
    }

    /// Whether rules are about IPv4: in a table of both, chosen at random.
    fn is_ipv4(&mut self) -> bool {
        match self.family {
            "ip" => true,
            "ip6" => false,
            _ => self.random.once_in(2) || self.random.once_in(2),
        }
    }

    fn source(&mut self, is_ipv4: bool) -> String {
        let number = self.random.below(4) as u8;
        match self.random.below(6) {
            0 => node_address(is_ipv4, self.random.below(2)).to_string(),
            _ => client(is_ipv4, number).to_string(),
        }
    }

    fn destination(&mut self, is_ipv4: bool) -> String {
        let number = self.random.below(4) as u8;
        match self.random.below(3) {
            0 => node_address(is_ipv4, self.random.below(2)).to_string(),
            _ => far(is_ipv4, number).to_string(),
        }
    }

    fn port(&mut self) -> u16 {
        self.random.pick(&PORTS)
    }

    fn mark(&mut self) -> u32 {
        self.random.below(8) as u32
    }

    /// Sets and maps that rules refer to: `a4` of addresses, `n4` of networks, `p` of ports, `c4` of addresses with
    /// ports, …
    fn sets(&mut self, text: &mut String) {
        for is_ipv4 in [true, false] {
            if matches!((self.family, is_ipv4), ("ip", false) | ("ip6", true)) {
                continue;
            }
            let (suffix, kind) = match is_ipv4 {
                true => (4, "ipv4_addr"),
                false => (6, "ipv6_addr"),
            };
            let one = (self.source(is_ipv4), self.destination(is_ipv4));
            let _ = writeln!(
                text,
                "  set a{suffix} {{ type {kind}; elements = {{ {}, {} }} }}",
                one.0, one.1
            );
            let networks = match (is_ipv4, self.random.below(3)) {
                (true, 0) => "10.1.0.0/30, 10.3.0.2-10.3.0.3",
                (true, 1) => "10.1.0.3-10.1.0.9, 10.2.0.0/16, 127.0.0.0/8",
                (true, _) => "0.0.0.0/2, 128.0.0.0/1",
                (false, 0) => "fd01::/126, fd03::2-fd03::3",
                (false, 1) => "fd01::3-fd01::9, fd02::/16, ::1",
                (false, _) => "fd00::/8",
            };
            let _ = writeln!(
                text,
                "  set n{suffix} {{ type {kind}; flags interval; elements = {{ {networks} }} }}"
            );
            let (first, second) = (self.destination(is_ipv4), self.source(is_ipv4));
            let (port, other) = (self.port(), self.port());
            let _ = writeln!(
                text,
                "  set c{suffix} {{ type {kind} . inet_service; elements = {{ {first} . {port}, {second} . {other} }} }}"
            );
            let (net, wide) = match is_ipv4 {
                true => ("10.3.0.0/30", "10.1.0.0-10.3.255.255"),
                false => ("fd03::/126", "fd01::-fd03::ffff"),
            };
            let _ = writeln!(
                text,
                "  set i{suffix} {{ type {kind} . inet_service; flags interval; elements = {{ {net} . 50-443, {wide} . {port} }} }}"
            );
            let _ = writeln!(
                text,
                "  map m{suffix} {{ type {kind} : mark; elements = {{ {} : {}, {} : {} }} }}",
                client(is_ipv4, 0),
                self.mark(),
                far(is_ipv4, 1),
                self.mark() + 1
            );
            let _ = writeln!(
                text,
                "  set d{suffix} {{ type {kind}; flags dynamic; size 1024; }}"
            );
        }
        let _ = writeln!(
            text,
            "  set p {{ type inet_service; elements = {{ {}, 7 }} }}\n  set q {{ type inet_service; flags interval; elements = {{ 50-100, 8000-8999 }} }}",
            self.port()
        );
    }

    fn rules(&mut self, text: &mut String, place: Place) {
        for _ in 0..self.random.below(6) {
            let rule = self.rule(place);
            let _ = writeln!(text, "    {rule}");
        }
    }

    fn rule(&mut self, place: Place) -> String {
        let is_ipv4 = self.is_ipv4();
        let protocol = self.random.pick(&["tcp", "udp", "th", "icmp"]);
        if place.kind == Kind::Nat
            && !self.random.once_in(3)
            && let Some(rule) = self.translation(place, is_ipv4, protocol)
        {
            return rule;
        }
        let mut words = Vec::new();
        for _ in 0..self.random.below(3) {
            words.push(self.condition(place, is_ipv4, protocol));
        }
        for _ in 0..self.random.below(2) {
            words.push(self.statement(place, is_ipv4));
        }
        let verdict = self.verdict(place, is_ipv4, protocol, words.is_empty());
        words.extend(verdict);
        if words.is_empty() {
            words.push("counter".to_owned());
        }
        words.join(" ")
    }

    /// A condition. The rule matches no other protocol than this one.
    fn condition(&mut self, place: Place, is_ipv4: bool, protocol: &str) -> String {
        let ip = if is_ipv4 { "ip" } else { "ip6" };
        let suffix = if is_ipv4 { 4 } else { 6 };
        let not = self.random.pick(&["", "", "", "!= "]);
        let (source, destination) = (self.source(is_ipv4), self.destination(is_ipv4));
        let (port, other) = (self.port(), self.port());
        let has_ports = protocol != "icmp";
        let th = match protocol {
            "th" => "meta l4proto { tcp, udp } ",
            _ => "",
        };
        let named = match (protocol, is_ipv4) {
            ("icmp", true) => "icmp",
            ("icmp", false) => "ipv6-icmp",
            ("th", _) => "{ tcp, udp }",
            (protocol, _) => protocol,
        };
        let mark = self.mark();
        match self.random.below(if self.chance { 46 } else { 42 }) {
            0 => format!("{ip} saddr {not}{source}"),
            1 => format!("{ip} daddr {not}{destination}"),
            2 => format!("{ip} saddr {not}{{ {source}, {destination} }}"),
            3 => format!("{ip} daddr @a{suffix}"),
            4 => format!("{ip} saddr {not}@n{suffix}"),
            5 => format!("{ip} daddr {not}@n{suffix}"),
            6 => match is_ipv4 {
                true => format!("ip saddr {not}10.1.0.0/30"),
                false => format!("ip6 saddr {not}fd01::/126"),
            },
            7 => match is_ipv4 {
                true => "ip saddr & 0.0.0.3 == 0.0.0.2".to_owned(),
                false => "ip6 daddr & ::3 == ::2".to_owned(),
            },
            8 => match is_ipv4 {
                true => format!(
                    "ip ttl {}",
                    self.random.pick(&["> 40", "64", "!= 32", "30-64"])
                ),
                false => format!(
                    "ip6 hoplimit {}",
                    self.random.pick(&["> 40", "64", "!= 32", "30-64"])
                ),
            },
            9 => format!("{ip} dscp {not}{}", self.random.pick(&["cs0", "cs1", "ef"])),
            10 => format!(
                "{} {named}",
                if is_ipv4 {
                    "ip protocol"
                } else {
                    "ip6 nexthdr"
                }
            ),
            11 => format!("meta l4proto {named}"),
            12 if has_ports => format!("{th}{protocol} dport {not}{port}"),
            13 if has_ports => format!("{th}{protocol} dport {not}{{ {port}, {other} }}"),
            14 if has_ports => format!(
                "{th}{protocol} dport {not}{}",
                self.random
                    .pick(&["50-100", "400-9000", "{ 10-60, 8000-9999 }"])
            ),
            15 if has_ports => format!(
                "{th}{protocol} sport {not}{}",
                self.random.pick(&["20000-20003", "20002-30000", "1-1023"])
            ),
            16 if has_ports => format!(
                "{th}{protocol} dport {not}@{}",
                self.random.pick(&["p", "q"])
            ),
            17 if has_ports => format!(
                "{th}{ip} daddr . {protocol} dport {not}@{}{suffix}",
                self.random.pick(&["c", "i"])
            ),
            18 if has_ports => format!(
                "{th}{ip} saddr . {protocol} dport {not}{{ {source} . {port}, {source} . {other} }}"
            ),
            19 if protocol == "tcp" => format!(
                "tcp flags {}",
                self.random.pick(&[
                    "syn",
                    "syn / syn,ack",
                    "ack",
                    "& (fin|syn|rst|ack) == syn",
                    "!= syn",
                    "{ syn, syn|ack }"
                ])
            ),
            20 if protocol == "icmp" => match is_ipv4 {
                true => format!(
                    "icmp type {not}{}",
                    self.random
                        .pick(&["echo-request", "echo-reply", "{ 3, 8 }"])
                ),
                false => format!(
                    "icmpv6 type {not}{}",
                    self.random.pick(&["echo-request", "echo-reply"])
                ),
            },
            21 if protocol == "udp" => {
                format!("udp length {}", self.random.pick(&["> 12", "8", "20-60"]))
            }
            22 => format!("meta mark {not}{mark}"),
            23 => format!(
                "meta mark & 0x3 {}{}",
                self.random.pick(&["== ", "!= "]),
                mark & 3
            ),
            24 => format!(
                "meta mark {}",
                self.random
                    .pick(&["{ 1, 3, 5 }", "1-4", "> 2", "and 0x6 == 0x2"])
            ),
            25 => format!(
                "iifname {not}{}",
                self.random
                    .pick(&["\"c0\"", "\"s0\"", "{ \"c0\", \"lo\" }", "\"c*\""])
            ),
            26 => format!(
                "oifname {not}{}",
                self.random
                    .pick(&["\"c0\"", "\"s0\"", "{ \"s0\", \"lo\" }", "\"s*\""])
            ),
            27 => format!("{} {not}lo", self.random.pick(&["iif", "oif"])),
            28 => format!(
                "meta length {}",
                self.random.pick(&["> 60", "< 50", "40-80"])
            ),
            29 => format!("meta pkttype {not}host"),
            30 if self.family == "inet" => {
                format!("meta nfproto {}", if is_ipv4 { "ipv4" } else { "ipv6" })
            }
            31 if place.tracked => format!(
                "ct state {not}{}",
                self.random.pick(&[
                    "new",
                    "established",
                    "established,related",
                    "invalid",
                    "new,untracked"
                ])
            ),
            32 if place.tracked => format!("ct mark {not}{mark}"),
            33 if place.tracked => format!(
                "ct direction {not}{}",
                self.random.pick(&["original", "reply"])
            ),
            34 if place.tracked => format!(
                "ct status {}",
                self.random
                    .pick(&["dnat", "snat", "& (snat|dnat) == 0", "! dnat"])
            ),
            35 if place.tracked && place.kind != Kind::Regular => format!(
                "ct original {ip} {} {not}{}",
                self.random.pick(&["saddr", "daddr"]),
                self.random.pick(&[source, destination])
            ),
            36 if place.tracked && has_ports => format!("{th}ct original proto-dst {not}{port}"),
            37 => format!(
                "fib daddr type {not}{}",
                self.random.pick(&["local", "unicast"])
            ),
            38 => format!("meta mark set {mark} meta mark {mark}"),
            39 if protocol == "tcp" => "tcp option maxseg size 1400-1460".to_owned(),
            40 => match is_ipv4 {
                true => format!("ip length {}", self.random.pick(&["> 60", "< 50", "40-80"])),
                false => format!(
                    "ip6 length {}",
                    self.random.pick(&["> 60", "< 50", "10-80"])
                ),
            },
            41 => format!("{ip} saddr @d{suffix}"),
            42 => format!(
                "numgen random mod 4 {}",
                self.random.pick(&["0", "< 2", "{ 1, 3 }"])
            ),
            43 => "numgen inc mod 2 0".to_owned(),
            44 => format!("limit rate {}3/second", self.random.pick(&["", "over "])),
            45 => format!(
                "jhash {ip} saddr . {ip} daddr mod 2 {}",
                self.random.below(2)
            ),
            _ => format!("{ip} daddr {destination}"),
        }
    }

    /// A statement before a rule's verdict.
    fn statement(&mut self, place: Place, is_ipv4: bool) -> String {
        let ip = if is_ipv4 { "ip" } else { "ip6" };
        let suffix = if is_ipv4 { 4 } else { 6 };
        let mark = self.mark();
        match self.random.below(14) {
            0 => "counter".to_owned(),
            1 | 2 => format!("meta mark set {mark}"),
            3 => format!(
                "meta mark set meta mark {} {mark}",
                self.random.pick(&["or", "and", "xor"])
            ),
            4 if place.tracked => format!("ct mark set {mark}"),
            5 if place.tracked => "ct mark set meta mark".to_owned(),
            6 if place.tracked => "meta mark set ct mark".to_owned(),
            7 => format!("{ip} dscp set {}", self.random.pick(&["cs1", "cs2", "ef"])),
            8 => match is_ipv4 {
                true => format!("ip ttl set {}", self.random.pick(&[33, 64])),
                false => format!("ip6 hoplimit set {}", self.random.pick(&[33, 64])),
            },
            9 => format!(
                "meta mark set {ip} {} map @m{suffix}",
                self.random.pick(&["saddr", "daddr"])
            ),
            10 => format!(
                "{} @d{suffix} {{ {ip} saddr }}",
                self.random.pick(&["add", "update"])
            ),
            11 if matches!(
                place,
                Place {
                    kind: Kind::Filter,
                    hook: Some(Hook::Prerouting | Hook::Output),
                    tracked: false,
                    ..
                }
            ) =>
            {
                "notrack".to_owned()
            }
            12 => format!("meta priority set 1:{mark}"),
            13 => format!(
                "meta mark set {ip} daddr map {{ {} : {mark}, {} : 5 }}",
                far(is_ipv4, 0),
                far(is_ipv4, 1)
            ),
            _ => "counter".to_owned(),
        }
    }

    /// A verdict, or none. Rules without a condition rarely drop.
    fn verdict(
        &mut self,
        place: Place,
        is_ipv4: bool,
        protocol: &str,
        bare: bool,
    ) -> Option<String> {
        let ip = if is_ipv4 { "ip" } else { "ip6" };
        let target = (place.next < self.regular).then(|| {
            let count = self.regular - place.next;
            format!("r{}", place.next + self.random.below(count))
        });
        let rejects = matches!(place.hook, Some(Hook::Input | Hook::Forward | Hook::Output))
            && place.kind == Kind::Filter;
        Some(match self.random.below(16) {
            0 | 1 => "accept".to_owned(),
            2 if !bare && place.kind != Kind::Nat => "drop".to_owned(),
            3 => "return".to_owned(),
            4..=6 => format!("jump {}", target?),
            7 => format!("goto {}", target?),
            8 if rejects && protocol == "tcp" => {
                "meta l4proto tcp reject with tcp reset".to_owned()
            }
            8 if rejects && !bare => {
                let with = match self.family {
                    "ip" => "reject with icmp admin-prohibited",
                    "ip6" => "reject with icmpv6 admin-prohibited",
                    _ => "reject with icmpx admin-prohibited",
                };
                self.random.pick(&["reject", with]).to_owned()
            }
            9 => {
                let target =
                    target.map_or("continue".to_owned(), |target| format!("jump {target}"));
                let other = self.random.pick(&["accept", "return", "continue"]);
                let number = self.random.below(4) as u8;
                format!(
                    "{ip} {} vmap {{ {} : {target}, {} : {other} }}",
                    self.random.pick(&["saddr", "daddr"]),
                    client(is_ipv4, number),
                    far(is_ipv4, number)
                )
            }
            10 if protocol == "tcp" || protocol == "udp" => {
                let target = target.map_or("accept".to_owned(), |target| format!("goto {target}"));
                let (port, other) = (self.random.pick(&PORTS[..2]), self.random.pick(&PORTS[2..]));
                format!("{protocol} dport vmap {{ {port} : {target}, {other} : return }}")
            }
            11 if self.chance => {
                let target = target.map_or("accept".to_owned(), |target| format!("jump {target}"));
                format!("numgen random mod 3 vmap {{ 0 : {target}, 1 : return }}")
            }
            12 => {
                let target = target.map_or("return".to_owned(), |target| format!("goto {target}"));
                format!("meta mark vmap {{ 0-2 : {target}, 3 : accept }}")
            }
            _ => return None,
        })
    }

    /// A translation that keeps the packet on its path: the new destination has the same route.
    fn translation(&mut self, place: Place, is_ipv4: bool, protocol: &str) -> Option<String> {
        let ip = if is_ipv4 { "ip" } else { "ip6" };
        let (node, net, local) = match is_ipv4 {
            true => ("{ 10.1.0.1, 10.2.0.1 }", "10.3.0.0/16", "127.0.0.1"),
            false => ("{ fd01::1, fd02::1 }", "fd03::/16", "::1"),
        };
        let condition = self.condition(place, is_ipv4, protocol);
        let protocol = match protocol {
            "udp" => "udp",
            _ => "tcp",
        };
        let port = self.port();
        let to = |address: std::net::IpAddr, port: Option<u16>| match (address.is_ipv4(), port) {
            (_, None) => address.to_string(),
            (true, Some(port)) => format!("{address}:{port}"),
            (false, Some(port)) => format!("[{address}]:{port}"),
        };
        // With a single port two connections would conflict.
        let to_range = |address| to(address, Some(40_000)) + "-45000";
        let family = if self.family == "inet" { ip } else { "" };
        let number = self.random.below(4) as u8;
        Some(match (place.hook?, self.random.below(4)) {
            (Hook::Prerouting, 0) => format!(
                "{ip} daddr {node} {protocol} dport {port} redirect to :{}",
                self.port()
            ),
            (Hook::Prerouting, 1) => format!(
                "{ip} daddr {node} {condition} dnat {family} to {}",
                node_address(is_ipv4, 0)
            ),
            (Hook::Prerouting | Hook::Output, 2) => format!(
                "{ip} daddr {net} {condition} dnat {family} to {}",
                far(is_ipv4, number)
            ),
            (Hook::Prerouting | Hook::Output, 3) => format!(
                "{ip} daddr {net} {protocol} dport {port} dnat {family} to {}",
                to(far(is_ipv4, number), Some(self.port()))
            ),
            (Hook::Output, _) => format!(
                "{ip} daddr {local} {protocol} dport {port} redirect to :{}",
                self.port()
            ),
            (Hook::Postrouting, 0) => {
                format!("oifname {{ \"c0\", \"s0\" }} {condition} masquerade")
            }
            (Hook::Postrouting, 1) => format!(
                "oifname \"s0\" {condition} snat {family} to {}",
                node_address(is_ipv4, 1)
            ),
            (Hook::Postrouting, 2) => format!(
                "oifname \"s0\" {ip} saddr {} {protocol} dport {port} snat {family} to {}",
                self.source(is_ipv4),
                to_range(node_address(is_ipv4, 1))
            ),
            (Hook::Input, 0) => format!(
                "iifname \"c0\" {condition} snat {family} to {}",
                client(is_ipv4, number)
            ),
            _ => return None,
        })
    }
}
