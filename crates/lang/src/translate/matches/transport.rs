//! Matches of transport headers.

use super::super::build::{
    Statement, any, exists, field, flags, is, option, set, span, tcp_option, test, unless, word,
};
use super::super::{Statements, Untranslatable};
use super::{extension, inexact};
use crate::protocols::{self, Protocol};
use crate::syntax::{Expr, Relation};
use chainwright::iptables::Rule;
use chainwright::nft::expr::ExthdrOp;
use chainwright::xt::matches::dccp::{Dccp, DccpTypes};
use chainwright::xt::matches::ecn::Ecn;
use chainwright::xt::matches::icmp::IcmpCodes;
use chainwright::xt::matches::multiport::{Multiport, MultiportSide};
use chainwright::xt::matches::sctp::{Sctp, SctpScope};
use chainwright::xt::matches::tcp::{Tcp, TcpFlags};
use chainwright::xt::matches::tcpmss::Tcpmss;
use chainwright::xt::matches::{PortRange, SpiRange};
use chainwright::xt::{Family, Match};

const TCP_FLAGS: [(TcpFlags, &str); 6] = [
    (TcpFlags::FIN, "fin"),
    (TcpFlags::SYN, "syn"),
    (TcpFlags::RST, "rst"),
    (TcpFlags::PSH, "psh"),
    (TcpFlags::ACK, "ack"),
    (TcpFlags::URG, "urg"),
];

const DCCP_TYPES: [(DccpTypes, &str); 10] = [
    (DccpTypes::REQUEST, "request"),
    (DccpTypes::RESPONSE, "response"),
    (DccpTypes::DATA, "data"),
    (DccpTypes::ACK, "ack"),
    (DccpTypes::DATAACK, "dataack"),
    (DccpTypes::CLOSEREQ, "closereq"),
    (DccpTypes::CLOSE, "close"),
    (DccpTypes::RESET, "reset"),
    (DccpTypes::SYNC, "sync"),
    (DccpTypes::SYNCACK, "syncack"),
];

/// Matches every value of a field: packets that have the header, unlike later fragments.
pub(super) fn present(left: Expr) -> Statement {
    super::compared(left, Relation::GreaterOrEqual, word(0))
}

/// Translates a range of values of a field, of which `last` is the highest.
pub(super) fn within(left: Expr, range: (u32, u32), last: u32, invert: bool) -> Statements {
    let (first, end) = (range.0, range.1.min(last));
    let is_empty = first > end;
    match (is_empty, (first, end) == (0, last)) {
        // nft rejects ranges without or with all values.
        (true, _) | (_, true) if is_empty != invert => Err(Untranslatable::Never),
        (true, _) | (_, true) => Ok(vec![present(left)]),
        _ => Ok(vec![is(left, invert, span(first, end))]),
    }
}

pub(super) fn ports(
    protocol: &'static Protocol,
    source: Option<PortRange>,
    destination: Option<PortRange>,
) -> Statements {
    let mut tests = Vec::new();
    for (range, name) in [(source, "sport"), (destination, "dport")] {
        if let Some(range) = range.filter(|range| *range != PortRange::ANY) {
            let is_all = (range.first, range.last) == (0, u16::MAX);
            let ends = (range.first.into(), range.last.into());
            match is_all && !range.invert {
                true => {}
                false => tests.extend(within(
                    field(protocol, name),
                    ends,
                    u16::MAX.into(),
                    range.invert,
                )?),
            }
        }
    }
    Ok(tests)
}

/// Returns the tests of a header; without any, one that the packet has the header.
fn or_present(tests: Vec<Statement>, left: Expr) -> Vec<Statement> {
    match tests.is_empty() {
        true => vec![present(left)],
        false => tests,
    }
}

pub(super) fn udp(source: PortRange, destination: PortRange) -> Statements {
    let tests = ports(&protocols::UDP, Some(source), Some(destination))?;
    Ok(or_present(tests, field(&protocols::UDP, "sport")))
}

pub(super) fn tcp(tcp: &Tcp, one: &Match) -> Statements {
    let mut tests = ports(&protocols::TCP, Some(tcp.source), Some(tcp.destination))?;
    if let Some(kind) = tcp.option {
        if kind.value < 2 {
            return Err(inexact(one, "nft does not find options of one byte"));
        }
        if kind.invert {
            // A packet without the header has no option either.
            tests = or_present(tests, field(&protocols::TCP, "sport"));
        }
        tests.push(tcp_option(kind.value, !kind.invert));
    }
    let wanted = tcp.flags;
    if !(wanted.mask.is_empty() && wanted.comp.is_empty() && !wanted.invert) {
        let names = |flags: TcpFlags| {
            let names = TCP_FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
            let names: Vec<_> = names.map(|(_, name)| *name).collect();
            match names.is_empty() {
                true => word("0x0"),
                false => self::flags(&names),
            }
        };
        if !TcpFlags::all().contains(wanted.mask | wanted.comp) {
            return Err(extension(one));
        }
        // No masked value has flags outside of the mask, and all have none of no mask.
        let always = wanted.mask.is_empty() && wanted.comp.is_empty();
        match always || !wanted.mask.contains(wanted.comp) {
            true if always == wanted.invert => return Err(Untranslatable::Never),
            true => {}
            false => tests.push(is(
                field(&protocols::TCP, "flags"),
                wanted.invert,
                Expr::Masked(Box::new(names(wanted.comp)), Box::new(names(wanted.mask))),
            )),
        }
    }
    Ok(or_present(tests, field(&protocols::TCP, "sport")))
}

/// Packets without the option match the inverted condition, too.
pub(super) fn tcpmss(mss: Tcpmss) -> Statements {
    let size = option(ExthdrOp::TCPOPT, "maxseg", "size");
    let range = (mss.min.into(), mss.max.into());
    let tests = within(size, range, u16::MAX.into(), false);
    match (mss.invert, tests) {
        (false, tests) => tests,
        (true, Ok(tests)) => Ok(vec![unless(tests)]),
        (true, Err(_)) => Ok(Vec::new()),
    }
}

pub(super) fn ecn(ecn: &Ecn, family: Family) -> Statements {
    let mut tests = Vec::new();
    for (wanted, name) in [(ecn.ece, "ecn"), (ecn.cwr, "cwr")] {
        if let Some(wanted) = wanted {
            let relation = match wanted {
                true => Relation::Implicit,
                false => Relation::None,
            };
            tests.push(super::compared(
                field(&protocols::TCP, "flags"),
                relation,
                word(name),
            ));
        }
    }
    if let Some(wanted) = ecn.field {
        let names = ["not-ect", "ect1", "ect0", "ce"];
        let name = names[usize::from(wanted.value & 3)];
        let left = field(super::network(family), "ecn");
        tests.push(is(left, wanted.invert, word(name)));
    }
    Ok(tests)
}

pub(super) fn sctp(sctp: &Sctp, one: &Match) -> Statements {
    let mut tests = ports(&protocols::SCTP, sctp.source, sctp.destination)?;
    let sport = || field(&protocols::SCTP, "sport");
    let Some(chunks) = &sctp.chunks else {
        return Ok(or_present(tests, sport()));
    };
    let flags = "nft compares the flags of a packet's first chunk of a type only";
    let types = "nft does not know all types of chunks";
    let types = match &chunks.types {
        Some(chunks) if chunks.iter().any(|chunk| chunk.mask != 0) => {
            return Err(inexact(one, flags));
        }
        Some(chunks) => chunks,
        None => return Err(inexact(one, types)),
    };
    let mut found = Vec::new();
    for chunk in types {
        let named = protocols::extension(ExthdrOp::SCTP, chunk.kind, 0, 0);
        let named = named.ok_or_else(|| inexact(one, "nft has no name for a type of chunk"))?;
        found.push(named.name);
    }
    let has = |is| {
        let tests = found.iter().map(|name| exists(ExthdrOp::SCTP, name, is));
        tests.collect::<Vec<_>>()
    };
    tests = or_present(tests, sport());
    match (chunks.scope, chunks.invert) {
        (SctpScope::Only, _) => {
            return Err(inexact(one, "nft does not know all types of chunks"));
        }
        (SctpScope::Any, false) if found.is_empty() => return Err(Untranslatable::Never),
        (SctpScope::All, true) if found.is_empty() => return Err(Untranslatable::Never),
        (SctpScope::All, false) => tests.extend(has(true)),
        (SctpScope::Any, true) => tests.extend(has(false)),
        (SctpScope::All, true) => tests.push(unless(has(true))),
        (SctpScope::Any, false) if found.len() == 1 => tests.extend(has(true)),
        (SctpScope::Any, false) => tests.push(unless(has(false))),
    }
    Ok(tests)
}

pub(super) fn dccp(dccp: &Dccp, one: &Match) -> Statements {
    let mut tests = ports(&protocols::DCCP, dccp.source, dccp.destination)?;
    if dccp.option.is_some() {
        return Err(extension(one));
    }
    if let Some(types) = dccp.types {
        let named = DCCP_TYPES
            .iter()
            .filter(|(kind, _)| types.value.contains(*kind));
        let mut names: Vec<_> = named.map(|(_, name)| word(name)).collect();
        if types.value.contains(DccpTypes::INVALID) {
            names.push(span(10, 15));
        }
        match names.is_empty() {
            true if types.invert => {}
            true => return Err(Untranslatable::Never),
            false => tests.push(is(
                field(&protocols::DCCP, "type"),
                types.invert,
                any(names),
            )),
        }
    }
    Ok(or_present(tests, field(&protocols::DCCP, "sport")))
}

/// Translates a range of security parameter indexes.
pub(super) fn spis(left: Expr, spis: SpiRange, last: u32) -> Statements {
    within(left, (spis.first, spis.last), last, spis.invert)
}

pub(super) fn multiport(multiport: &Multiport, rule: &Rule, one: &Match) -> Statements {
    let protocol = rule.protocol.filter(|protocol| !protocol.invert);
    let protocol = match protocol.map(|protocol| protocol.number) {
        Some(6) => &protocols::TCP,
        Some(17) => &protocols::UDP,
        Some(33) => &protocols::DCCP,
        Some(132) => &protocols::SCTP,
        Some(136) => &protocols::UDPLITE,
        _ => return Err(extension(one)),
    };
    let mut given: Vec<(u16, u16)> = Vec::new();
    for range in multiport.ports.iter().filter(|range| !range.is_empty()) {
        given.push((*range.start(), *range.end()));
    }
    // nft rejects overlapping ranges.
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    let mut sorted = given.clone();
    sorted.sort_unstable();
    for (first, last) in sorted {
        match ranges.last_mut() {
            Some((_, end)) if first <= *end => *end = (*end).max(last),
            _ => ranges.push((first, last)),
        }
    }
    // The order as written, if that is possible.
    let is_same = given.len() == ranges.len();
    let ranges = if is_same { given } else { ranges };
    let is_all = ranges == [(0, u16::MAX)];
    if ranges.is_empty() || is_all {
        return match is_all != multiport.invert {
            true => Ok(vec![present(field(protocol, "sport"))]),
            false => Err(Untranslatable::Never),
        };
    }
    let ports = |name| {
        let ranges = ranges.iter().map(|(first, last)| span(*first, *last));
        is(
            field(protocol, name),
            multiport.invert,
            any(ranges.collect()),
        )
    };
    Ok(match (multiport.side, multiport.invert) {
        (MultiportSide::Source, _) => vec![ports("sport")],
        (MultiportSide::Destination, _) => vec![ports("dport")],
        (MultiportSide::Either, true) => vec![ports("sport"), ports("dport")],
        (MultiportSide::Either, false) => {
            let pair = |one, other| Expr::Concat(vec![one, other]);
            let all = || span(0, u16::MAX);
            // The kernel does not accept ranges that begin at the same ports, so 0 needs disjoint ones.
            let mut elements = Vec::new();
            if ranges.iter().any(|(first, _)| *first == 0) {
                let mut sorted = ranges.clone();
                sorted.sort_unstable();
                let mut next = 0_u32;
                for (first, last) in sorted {
                    if u32::from(first) > next {
                        let gap = span(next, u32::from(first) - 1);
                        let ports = ranges.iter().map(|(first, last)| span(*first, *last));
                        elements.extend(ports.map(|port| pair(gap.clone(), port)));
                    }
                    elements.push(pair(span(first, last), all()));
                    next = u32::from(last) + 1;
                }
                if next <= u16::MAX.into() {
                    let gap = span(next, u16::MAX.into());
                    let ports = ranges.iter().map(|(first, last)| span(*first, *last));
                    elements.extend(ports.map(|port| pair(gap.clone(), port)));
                }
            } else {
                for (first, last) in &ranges {
                    let port = || span(*first, *last);
                    elements.extend([pair(all(), port()), pair(port(), all())]);
                }
            }
            let both = pair(field(protocol, "sport"), field(protocol, "dport"));
            vec![test(both, set(elements))]
        }
    })
}

/// Names of ICMP types, as in nft's listings.
const ICMP: [(u8, &str); 13] = [
    (0, "echo-reply"),
    (3, "destination-unreachable"),
    (4, "source-quench"),
    (5, "redirect"),
    (8, "echo-request"),
    (9, "router-advertisement"),
    (10, "router-solicitation"),
    (11, "time-exceeded"),
    (12, "parameter-problem"),
    (13, "timestamp-request"),
    (14, "timestamp-reply"),
    (17, "address-mask-request"),
    (18, "address-mask-reply"),
];

/// Names of ICMPv6 types, as in nft's listings.
const ICMPV6: [(u8, &str); 11] = [
    (1, "destination-unreachable"),
    (2, "packet-too-big"),
    (3, "time-exceeded"),
    (4, "parameter-problem"),
    (128, "echo-request"),
    (129, "echo-reply"),
    (133, "nd-router-solicit"),
    (134, "nd-router-advert"),
    (135, "nd-neighbor-solicit"),
    (136, "nd-neighbor-advert"),
    (137, "nd-redirect"),
];

pub(super) fn icmp(kind: u8, codes: Option<IcmpCodes>, invert: bool, family: Family) -> Statements {
    let (protocol, names) = match family {
        Family::Ipv4 => (&protocols::ICMP, &ICMP[..]),
        Family::Ipv6 => (&protocols::ICMPV6, &ICMPV6[..]),
    };
    let named = names.iter().find(|(number, _)| *number == kind);
    let value = named.map_or_else(|| word(kind), |(_, name)| word(name));
    let left = field(protocol, "type");
    let codes = codes.filter(|codes| (codes.first, codes.last) != (0, u8::MAX));
    let Some(codes) = codes else {
        return Ok(vec![is(left, invert, value)]);
    };
    let mut both = vec![test(left, value)];
    if codes.first > codes.last {
        return match invert {
            true => Ok(vec![present(field(protocol, "type"))]),
            false => Err(Untranslatable::Never),
        };
    }
    let code = field(protocol, "code");
    both.push(test(code, span(codes.first, codes.last)));
    Ok(match invert {
        true => vec![present(field(protocol, "type")), unless(both)],
        false => both,
    })
}

pub(super) fn icmp_any(invert: bool) -> Statements {
    match invert {
        true => Err(Untranslatable::Never),
        false => Ok(vec![present(field(&protocols::ICMP, "type"))]),
    }
}
