//! Translates matches.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::{Untranslatable, Words, masked, part, protocol_word, sign, word};
use chainwright::iptables::Rule;
use chainwright::xt::matches::PortRange;
use chainwright::xt::matches::addrtype::{AddressTypes, Addrtype, AddrtypeInterface};
use chainwright::xt::matches::conntrack::{
    Conntrack, ConntrackDirection, ConntrackState, ConntrackStatus,
};
use chainwright::xt::matches::icmp::IcmpCodes;
use chainwright::xt::matches::multiport::{Multiport, MultiportSide};
use chainwright::xt::matches::pkttype::PacketType;
use chainwright::xt::matches::tcp::{Tcp, TcpFlags};
use chainwright::xt::matches::ttl::Hops;
use chainwright::xt::{Family, Match, Negatable};

const TCP_FLAGS: [(TcpFlags, &str); 6] = [
    (TcpFlags::FIN, "fin"),
    (TcpFlags::SYN, "syn"),
    (TcpFlags::RST, "rst"),
    (TcpFlags::PSH, "psh"),
    (TcpFlags::ACK, "ack"),
    (TcpFlags::URG, "urg"),
];

const STATES: [(ConntrackState, &str); 5] = [
    (ConntrackState::INVALID, "invalid"),
    (ConntrackState::NEW, "new"),
    (ConntrackState::RELATED, "related"),
    (ConntrackState::ESTABLISHED, "established"),
    (ConntrackState::UNTRACKED, "untracked"),
];

const STATUS: [(ConntrackStatus, &str); 4] = [
    (ConntrackStatus::EXPECTED, "expected"),
    (ConntrackStatus::SEEN_REPLY, "seen-reply"),
    (ConntrackStatus::ASSURED, "assured"),
    (ConntrackStatus::CONFIRMED, "confirmed"),
];

const ADDRESS_TYPES: [(AddressTypes, &str); 9] = [
    (AddressTypes::UNSPEC, "unspec"),
    (AddressTypes::UNICAST, "unicast"),
    (AddressTypes::LOCAL, "local"),
    (AddressTypes::BROADCAST, "broadcast"),
    (AddressTypes::ANYCAST, "anycast"),
    (AddressTypes::MULTICAST, "multicast"),
    (AddressTypes::BLACKHOLE, "blackhole"),
    (AddressTypes::UNREACHABLE, "unreachable"),
    (AddressTypes::PROHIBIT, "prohibit"),
];

/// Matches unfragmented packets and first fragments.
const WHOLE_PACKETS: &str = "ip frag-off & 0x1fff == 0";

/// Returns `true` if nft implies the rule's protocol for this match.
pub(super) fn implies_protocol(one: &Match, translated: &[String]) -> bool {
    let is_of_protocol = matches!(
        one,
        Match::Tcp(_) | Match::Udp(_) | Match::Icmp(_) | Match::Icmp6(_) | Match::Multiport(_)
    );
    is_of_protocol
        && translated
            .first()
            .is_some_and(|translated| translated != WHOLE_PACKETS)
}

pub(super) fn translated(one: &Match, rule: &Rule, family: Family) -> Words {
    let untranslatable = || Untranslatable::Extension(part(one));
    let ip = word(family);
    Ok(match one {
        Match::Tcp(tcp) => unfragmented(self::tcp(tcp, &untranslatable)?, family, &untranslatable)?,
        Match::Udp(udp) => {
            let mut words = ports("udp sport", &udp.source)?;
            words.extend(ports("udp dport", &udp.destination)?);
            unfragmented(words, family, &untranslatable)?
        }
        Match::Multiport(multiport) => self::multiport(multiport, rule, &untranslatable)?,
        Match::Mark(mark) => masked("meta mark", mark.value, mark.mask, mark.invert)?,
        Match::Connmark(mark) => {
            let words = masked("ct mark", mark.value, mark.mask, mark.invert)?;
            // A match without conditions on the mark still requires a connection.
            if words.is_empty() {
                return Err(untranslatable());
            }
            words
        }
        // The kernel rejects a burst of 0 in iptables rules, and treats it as 5 in nft rules.
        Match::Limit(limit) if limit.burst == 0 => return Err(untranslatable()),
        Match::Limit(limit) => {
            let (packets, seconds) = limit.rate();
            let unit = match seconds {
                1 => "second",
                60 => "minute",
                3_600 => "hour",
                86_400 => "day",
                _ => return Err(untranslatable()),
            };
            vec![format!(
                "limit rate {packets}/{unit} burst {} packets",
                limit.burst
            )]
        }
        Match::Iprange(range) => {
            let mut words = Vec::new();
            for (range, field) in [(&range.source, "saddr"), (&range.destination, "daddr")] {
                if let Some(range) = range {
                    words.push(
                        addresses(&format!("{ip} {field}"), range).ok_or_else(untranslatable)?,
                    );
                }
            }
            words
        }
        Match::Addrtype(addrtype) => self::addrtype(addrtype, family).ok_or_else(untranslatable)?,
        Match::Conntrack(conntrack) => self::conntrack(conntrack).ok_or_else(untranslatable)?,
        Match::Icmp(icmp) => match icmp.kind {
            None if icmp.invert => return Err(untranslatable()),
            None => unfragmented(Vec::new(), family, &untranslatable)?,
            Some(kind) => {
                icmp_type("icmp", kind, icmp.code, icmp.invert).ok_or_else(untranslatable)?
            }
        },
        Match::Icmp6(icmp) => {
            icmp_type("icmpv6", icmp.kind, icmp.code, icmp.invert).ok_or_else(untranslatable)?
        }
        Match::Mac(mac) => {
            let bytes = mac.source.map(|byte| format!("{byte:02x}"));
            vec![format!(
                "ether saddr {}{}",
                sign(mac.invert),
                bytes.join(":")
            )]
        }
        Match::Pkttype(pkttype) => {
            let kind = match pkttype.kind {
                PacketType::Host => "host",
                PacketType::Broadcast => "broadcast",
                PacketType::Multicast => "multicast",
                PacketType::OtherHost => "other",
            };
            vec![format!("meta pkttype {}{kind}", sign(pkttype.invert))]
        }
        Match::Dscp(dscp) => vec![format!(
            "{ip} dscp {}{:#04x}",
            sign(dscp.invert),
            dscp.code_point
        )],
        Match::Cpu(cpu) => vec![format!("meta cpu {}{}", sign(cpu.invert), cpu.cpu)],
        Match::Ttl(ttl) => hops("ip ttl", ttl.0),
        Match::Hl(hl) => hops("ip6 hoplimit", hl.0),
        Match::Length(length) if length.min > length.max => return Err(untranslatable()),
        Match::Length(length) => {
            let range = span(length.min.into(), length.max.into());
            vec![format!("meta length {}{range}", sign(length.invert))]
        }
        Match::Owner(owner) if owner.socket_exists.is_none() && !owner.suppl_groups => {
            // For packets without a socket, iptables evaluates inverted matches to true, nft to false.
            let mut ids = owner.uid.iter().chain(&owner.gid);
            if ids.all(|ids| ids.invert) {
                return Err(untranslatable());
            }
            let mut words = Vec::new();
            for (ids, what) in [(&owner.uid, "meta skuid"), (&owner.gid, "meta skgid")] {
                if let Some(ids) = ids {
                    let (first, last) = (*ids.value.start(), *ids.value.end());
                    if first > last {
                        return Err(untranslatable());
                    }
                    words.push(format!("{what} {}{}", sign(ids.invert), span(first, last)));
                }
            }
            words
        }
        _ => return Err(untranslatable()),
    })
}

/// Returns the matches of a header; without any, a match that the header exists, because later fragments do not have
/// one.
fn unfragmented(
    words: Vec<String>,
    family: Family,
    untranslatable: &dyn Fn() -> Untranslatable,
) -> Words {
    match family {
        _ if !words.is_empty() => Ok(words),
        Family::Ipv4 => Ok(vec![WHOLE_PACKETS.to_owned()]),
        Family::Ipv6 => Err(untranslatable()),
    }
}

fn span(first: u32, last: u32) -> String {
    match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    }
}

fn ports(what: &str, range: &PortRange) -> Words {
    if *range == PortRange::ANY {
        return Ok(Vec::new());
    }
    // nft rejects a range that covers all values.
    let is_all = range.first == 0 && range.last == u16::MAX;
    if is_all || range.first > range.last {
        return match range.invert == is_all {
            true => Err(Untranslatable::Never),
            false => Ok(Vec::new()),
        };
    }
    let ports = span(range.first.into(), range.last.into());
    Ok(vec![format!("{what} {}{ports}", sign(range.invert))])
}

fn tcp(tcp: &Tcp, untranslatable: &dyn Fn() -> Untranslatable) -> Words {
    if tcp.option.is_some() {
        return Err(untranslatable());
    }
    let mut words = ports("tcp sport", &tcp.source)?;
    words.extend(ports("tcp dport", &tcp.destination)?);
    let test = tcp.flags;
    if !(test.mask.is_empty() && test.comp.is_empty() && !test.invert) {
        let flags = |flags: TcpFlags| {
            let names = TCP_FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
            let names: Vec<_> = names.map(|(_, name)| *name).collect();
            match names.is_empty() {
                true => "0x0".to_owned(),
                false => names.join(" | "),
            }
        };
        let is_known = TcpFlags::all().contains(test.mask) && test.mask.contains(test.comp);
        if test.mask.is_empty() || !is_known {
            return Err(untranslatable());
        }
        let sign = if test.invert { "!=" } else { "==" };
        let (mask, comp) = (flags(test.mask), flags(test.comp));
        words.push(format!("tcp flags & ({mask}) {sign} {comp}"));
    }
    Ok(words)
}

fn multiport(
    multiport: &Multiport,
    rule: &Rule,
    untranslatable: &dyn Fn() -> Untranslatable,
) -> Words {
    let protocol = rule.protocol.filter(|protocol| !protocol.invert);
    let protocol = match protocol.map(|protocol| protocol.number) {
        Some(number @ (6 | 17 | 33 | 132 | 136)) => protocol_word(number),
        _ => return Err(untranslatable()),
    };
    let side = match multiport.side {
        MultiportSide::Source => "sport",
        MultiportSide::Destination => "dport",
        MultiportSide::Either => return Err(untranslatable()),
    };
    // nft rejects overlapping ranges.
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    let mut sorted = multiport.ports.clone();
    sorted.retain(|range| !range.is_empty());
    sorted.sort_unstable_by_key(|range| *range.start());
    for range in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *range.start() <= *last => *last = (*last).max(*range.end()),
            _ => ranges.push((*range.start(), *range.end())),
        }
    }
    let is_all = ranges == [(0, u16::MAX)];
    if ranges.is_empty() || is_all {
        return Err(untranslatable());
    }
    let ports: Vec<_> = ranges
        .iter()
        .map(|(first, last)| span((*first).into(), (*last).into()))
        .collect();
    let not = sign(multiport.invert);
    Ok(vec![format!(
        "{protocol} {side} {not}{{ {} }}",
        ports.join(", ")
    )])
}

fn addresses(what: &str, range: &Negatable<RangeInclusive<IpAddr>>) -> Option<String> {
    let (first, last) = (range.value.start(), range.value.end());
    let translated = match first.cmp(last) {
        std::cmp::Ordering::Less => format!("{first}-{last}"),
        std::cmp::Ordering::Equal => first.to_string(),
        std::cmp::Ordering::Greater => return None,
    };
    Some(format!("{what} {}{translated}", sign(range.invert)))
}

fn addrtype(addrtype: &Addrtype, family: Family) -> Option<Vec<String>> {
    let interface = match addrtype.interface {
        None => "",
        Some(AddrtypeInterface::In) => " . iif",
        Some(AddrtypeInterface::Out) => " . oif",
    };
    let mut words = Vec::new();
    for (types, field) in [(addrtype.source, "saddr"), (addrtype.destination, "daddr")] {
        let Some(types) = types else {
            continue;
        };
        // For IPv6, iptables and nft determine other address types in different ways.
        let is_same = family == Family::Ipv4 || types.value == AddressTypes::LOCAL;
        let named = ADDRESS_TYPES
            .iter()
            .filter(|(kind, _)| types.value.contains(*kind));
        let (mut all, mut names) = (AddressTypes::empty(), Vec::new());
        for (kind, name) in named {
            all |= *kind;
            names.push(*name);
        }
        (is_same && all == types.value && !names.is_empty()).then_some(())?;
        let names = match &names[..] {
            [one] => (*one).to_owned(),
            many => format!("{{ {} }}", many.join(", ")),
        };
        let not = sign(types.invert);
        words.push(format!("fib {field}{interface} type {not}{names}"));
    }
    Some(words)
}

/// Matches if any of these bits is set; inverted, if none is.
fn bits(what: &str, names: &[&str], invert: bool) -> String {
    match (invert, names) {
        (false, names) => format!("{what} {}", names.join(",")),
        // `!=` would compare the whole value.
        (true, [one]) => format!("{what} & {one} == 0"),
        (true, many) => format!("{what} & ({}) == 0", many.join(" | ")),
    }
}

fn conntrack(conntrack: &Conntrack) -> Option<Vec<String>> {
    let rest =
        conntrack.protocol.is_none() && conntrack.tuples.is_none() && conntrack.expiry.is_none();
    rest.then_some(())?;
    let mut words = Vec::new();
    if let Some(state) = conntrack.state {
        // For packets without a connection, iptables only compares the state; nft's further matches on the connection
        // fail.
        let of_none = ConntrackState::INVALID | ConntrackState::UNTRACKED;
        let has_other_conditions = conntrack.status.is_some() || conntrack.direction.is_some();
        if has_other_conditions && (state.invert || state.value.intersects(of_none)) {
            return None;
        }
        let mut left = state.value;
        let mut names = Vec::new();
        for (flag, name) in STATES {
            if left.contains(flag) {
                names.push(name);
                left.remove(flag);
            }
        }
        let nat = match left {
            ConntrackState::SNAT => "snat",
            ConntrackState::DNAT => "dnat",
            _ => "",
        };
        match (&names[..], nat) {
            (&[], "") => return None,
            // Without a connection, iptables matches an inverted NAT state, and nft has no status to test.
            (&[], _) if state.invert => return None,
            (&[], nat) => words.push(bits("ct status", &[nat], state.invert)),
            // A state or a NAT status: one match cannot express both.
            (_, _) if !left.is_empty() => return None,
            (names, _) => words.push(bits("ct state", names, state.invert)),
        }
    }
    if let Some(status) = conntrack.status {
        let mut left = status.value;
        let mut names = Vec::new();
        for (flag, name) in STATUS {
            if left.contains(flag) {
                names.push(name);
                left.remove(flag);
            }
        }
        (left.is_empty() && !names.is_empty()).then_some(())?;
        words.push(bits("ct status", &names, status.invert));
    }
    match conntrack.direction {
        Some(ConntrackDirection::Original) => words.push("ct direction original".to_owned()),
        Some(ConntrackDirection::Reply) => words.push("ct direction reply".to_owned()),
        None => {}
    }
    Some(words)
}

fn icmp_type(
    protocol: &str,
    kind: u8,
    codes: Option<IcmpCodes>,
    invert: bool,
) -> Option<Vec<String>> {
    let codes = codes.filter(|codes| (codes.first, codes.last) != (0, u8::MAX));
    match codes {
        None => Some(vec![format!("{protocol} type {}{kind}", sign(invert))]),
        // "Not this type or not these codes": one match cannot express it.
        Some(_) if invert => None,
        Some(codes) if codes.first > codes.last => None,
        Some(codes) => Some(vec![
            format!("{protocol} type {kind}"),
            format!(
                "{protocol} code {}",
                span(codes.first.into(), codes.last.into())
            ),
        ]),
    }
}

fn hops(what: &str, hops: Hops) -> Vec<String> {
    vec![match hops {
        Hops::Equal(number) => format!("{what} {number}"),
        Hops::NotEqual(number) => format!("{what} != {number}"),
        Hops::Less(number) => format!("{what} < {number}"),
        Hops::Greater(number) => format!("{what} > {number}"),
    }]
}
