//! Compares the kernel's report about a packet with the ends of its trace.

use std::collections::HashSet;
use std::fmt::Write;
use std::net::IpAddr;

use chainwright::conntrack::Tuple as Tracked;
use chainwright::iptables::Backend;
use chainwright::nft::live::TraceKind;
use chainwright::xt::Family;
use chainwright_trace::{
    Direction, End, FinalValue, Interface, Node, Outcome, Packet, State, Trace, TrackedConnection,
    Tuple,
};

use crate::kernel::log::Logged;
use crate::kernel::packet::{Headers, Route, Sent};
use crate::kernel::world::{Arrived, Destination, NODE4, NODE6, Seen};

/// A rule that was met, or the end of a base chain, in a form that both sides have: family, table, chain, and the
/// rule's handle or number.
pub(crate) type MatchedRule = (String, String, String, Option<u64>);

/// The kernel's report about a packet.
#[derive(Debug)]
pub(crate) struct Formatted {
    nft: Vec<MatchedRule>,
    legacy: Vec<MatchedRule>,
    /// Arrivals of the packet itself.
    arrived: Vec<Arrived>,
    /// Its mark where it left the rules.
    mark: Option<u32>,
}

/// The description of the node.
pub(crate) fn node() -> Node {
    let device = |name: &str, index, number: usize| Interface {
        index: Some(index),
        hardware: Some(1),
        group: Some(0),
        addresses: vec![NODE4[number].into(), NODE6[number].into()],
        ..Interface::named(name)
    };
    Node {
        interfaces: vec![device("c0", 2, 0), device("s0", 3, 1)],
        addresses: Some(
            NODE4
                .map(Into::into)
                .into_iter()
                .chain(NODE6.map(Into::into))
                .collect(),
        ),
    }
}

/// The description of a connection that conntrack tracks.
pub(crate) fn connection(
    original: Tracked,
    reply: Tracked,
    mark: u32,
    status: u32,
) -> TrackedConnection {
    let tuple = |tuple: Tracked| Tuple {
        source: Some(tuple.source),
        destination: Some(tuple.destination),
        source_port: tuple.source_port(),
        destination_port: tuple.destination_port(),
    };
    TrackedConnection {
        mark: Some(mark),
        status: Some(status),
        original: tuple(original),
        reply: tuple(reply),
        ..TrackedConnection::default()
    }
}

/// The packet as the input for a trace.
pub(crate) fn packet(sent: &Sent, connection: Option<TrackedConnection>) -> Packet {
    let is_for_node = NODE4.map(IpAddr::from).contains(&sent.destination)
        || NODE6.map(IpAddr::from).contains(&sent.destination);
    let direction = match sent.route {
        Route::Back if is_for_node => Direction::In, // except for what was translated before
        Route::Forward | Route::Back => Direction::Forwarded,
        Route::In => Direction::In,
        Route::Out => Direction::Out,
        Route::Local => Direction::Local,
    };
    let mut packet = Packet::between(direction, sent.protocol, sent.source, sent.destination);
    match sent.protocol {
        6 | 17 => {
            packet.source_port = Some(sent.ports.0);
            packet.destination_port = Some(sent.ports.1);
        }
        _ => {
            packet.icmp_type = Some(sent.kind.0);
            packet.icmp_code = Some(sent.kind.1);
        }
    }
    if sent.protocol == 6 {
        packet.tcp_flags = Some(sent.flags);
    }
    packet.length = Some(sent.length() as u32);
    packet.ttl = Some(sent.hops);
    packet.tos = Some(sent.tos);
    let to_client = matches!(sent.route, Route::Back)
        || matches!(sent.destination, IpAddr::V4(to) if to.octets()[1] == 1)
        || matches!(sent.destination, IpAddr::V6(to) if to.segments()[0] == 0xfd01);
    let leaves = if to_client { "c0" } else { "s0" };
    let (comes, leaves) = match sent.route {
        Route::Forward => (Some("c0"), Some(leaves)),
        Route::In => (Some("c0"), None),
        Route::Out => (None, Some(leaves)),
        Route::Local => (Some("lo"), Some("lo")),
        Route::Back => (Some("s0"), Some(leaves)),
    };
    packet.in_interface = comes.map(Into::into);
    packet.out_interface = leaves.map(Into::into);
    packet.packet_type = Some(0);
    packet.priority = Some(0);
    if matches!(sent.route, Route::Out | Route::Local) {
        packet.user = Some(0);
        packet.group = Some(0);
    }
    if !sent.may_begin() {
        packet.connection.state = Some(State::Invalid);
    }
    if let Some(connection) = connection {
        packet.connection = connection;
    }
    packet
}

/// Marks it as a packet of an answered connection.
pub(crate) fn answered(mut packet: Packet, is_reply: bool) -> Packet {
    packet.connection.state = Some(State::Established);
    packet.connection.is_reply = Some(is_reply);
    packet
}

/// Whether these headers belong to the packet, possibly translated, and not to an answer.
fn is_own(sent: &Sent, headers: &Headers) -> bool {
    headers.protocol == sent.protocol && headers.flags == sent.flags && headers.kind == sent.kind
}

/// The part of the observations that belongs to the packet.
pub(crate) fn observed(sent: &Sent, seen: &Seen, rules_of: impl Fn(&Logged) -> usize) -> Formatted {
    let (mut nft, mut mark) = (Vec::new(), None);
    let (mut own, mut foreign) = (HashSet::new(), HashSet::new());
    for step in &seen.traced {
        let step = step.view();
        if let (Some(network), Some(transport)) = (step.network_header(), step.transport_header()) {
            let mut bytes = network.to_vec();
            // The network header is reported together with the rest.
            let header = if network.first().is_some_and(|first| first >> 4 == 4) {
                20
            } else {
                40
            };
            bytes.truncate(header);
            bytes.extend_from_slice(transport);
            let headers = Headers::parse(&bytes);
            let is = headers.is_some_and(|headers| is_own(sent, &headers));
            let (into, other) = if is {
                (&mut own, &mut foreign)
            } else {
                (&mut foreign, &mut own)
            };
            into.insert(step.id());
            other.remove(&step.id());
        }
        if !own.contains(&step.id()) {
            continue;
        }
        let name = |name: Option<&bstr::BStr>| name.map(ToString::to_string).unwrap_or_default();
        let met = (
            step.family().to_string(),
            name(step.table()),
            name(step.chain()),
            step.rule(),
        );
        match (step.kind(), step.rule()) {
            (TraceKind::POLICY, _) => {
                if matches!(met.2.as_str(), "delivered" | "sent") {
                    mark = Some(step.mark().unwrap_or(0));
                }
                nft.push(met);
            }
            (_, Some(_)) => nft.push(met),
            // The end of a chain that was jumped to.
            (_, None) => {}
        }
    }
    let mut legacy = Vec::new();
    for line in &seen.logged {
        if !line
            .headers
            .as_ref()
            .is_some_and(|headers| is_own(sent, headers))
        {
            continue;
        }
        let family = if line.is_ipv4 { "ip" } else { "ip6" };
        let is_end = line.number > rules_of(line);
        if is_end && line.kind == "return" {
            continue;
        }
        let number = (!is_end).then_some(line.number as u64);
        legacy.push((
            family.to_owned(),
            line.table.clone(),
            line.chain.clone(),
            number,
        ));
    }
    let arrived = seen.arrived.iter();
    let arrived = arrived.filter(|arrived| is_own(sent, &arrived.headers));
    Formatted {
        nft,
        legacy,
        arrived: arrived.cloned().collect(),
        mark,
    }
}

/// The rules of a backend that a packet with this end matched; the kernel reports only rules that it evaluated to their
/// end.
fn matched_rules(end: &End, backend: Backend) -> Vec<MatchedRule> {
    let of_it = end
        .steps
        .iter()
        .filter(|step| step.backend == backend && step.is_full_match);
    of_it
        .map(|step| {
            let rule = step.rule.map(|rule| match backend {
                Backend::Nft => rule.handle.unwrap_or_default(),
                Backend::Legacy => rule.number as u64,
            });
            (
                step.family.to_owned(),
                step.table.to_string(),
                step.chain.to_string(),
                rule,
            )
        })
        .collect()
}

/// The observable properties of an end.
pub(crate) fn describe(end: &End) -> String {
    let (nft, legacy) = (
        matched_rules(end, Backend::Nft),
        matched_rules(end, Backend::Legacy),
    );
    format!("{nft:?} {legacy:?} {} {:?}", end.outcome, end.packet)
}

/// Whether a part agrees with the observation; an unknown part agrees with everything.
fn agrees(part: &FinalValue, seen: &impl ToString) -> bool {
    part.known().is_none_or(|known| known == seen.to_string())
}

/// Why an end differs from the kernel's behavior; `None` if it does not.
fn differs(end: &End, sent: &Sent, observed: &Formatted) -> Option<String> {
    for (backend, seen) in [
        (Backend::Nft, &observed.nft),
        (Backend::Legacy, &observed.legacy),
    ] {
        let traced = matched_rules(end, backend);
        if traced != *seen {
            let at = traced
                .iter()
                .zip(seen)
                .take_while(|(one, other)| one == other)
                .count();
            return Some(format!(
                "{backend:?}: at step {at} the trace goes to {:?}, and the kernel went to {:?}",
                traced.get(at),
                seen.get(at)
            ));
        }
    }
    let place = match end.outcome {
        Outcome::Delivered => Some(vec![Destination::Node]),
        Outcome::Forwarded | Outcome::Sent => Some(vec![Destination::Client, Destination::Server]),
        Outcome::Dropped | Outcome::Rejected(_) => None,
        ref other => return Some(format!("the trace ends as {other}")),
    };
    let Some(places) = place else {
        let arrived = observed.arrived.first();
        return arrived
            .map(|arrived| format!("the trace ends, but the packet arrived: {arrived:?}"));
    };
    let [arrived] = &observed.arrived[..] else {
        return Some(format!(
            "the traced packet arrives, but {} packets arrived",
            observed.arrived.len()
        ));
    };
    if !places.contains(&arrived.place) {
        return Some(format!(
            "the traced packet arrives at {places:?}, the real one at {:?}",
            arrived.place
        ));
    }
    let headers = &arrived.headers;
    let packet = &end.packet;
    let mut same = agrees(&packet.source, &headers.source)
        && headers
            .destination
            .is_none_or(|seen| agrees(&packet.destination, &seen));
    if matches!(sent.protocol, 6 | 17) {
        same &= agrees(&packet.source_port, &headers.ports.0)
            && agrees(&packet.destination_port, &headers.ports.1);
    }
    if !same {
        return Some(format!(
            "the traced packet arrives as {packet:?}, the real one as {headers:?}"
        ));
    }
    let number = |words: &str| match words.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => words.parse().ok(),
    };
    match (packet.mark.known().and_then(number), observed.mark) {
        (Some(traced), Some(seen)) if traced != seen => Some(format!(
            "the mark in the trace is {traced:#x}, the real one {seen:#x}"
        )),
        _ => None,
    }
}

/// The end of a trace that the kernel's path reached.
///
/// # Errors
/// The reasons why there is none.
pub(crate) fn end_of<'w>(
    trace: &'w Trace,
    sent: &Sent,
    observed: &Formatted,
) -> Result<&'w End, String> {
    let mut reasons = String::new();
    for end in &trace.ends {
        match differs(end, sent, observed) {
            None => return Ok(end),
            Some(reason) => {
                let _ = writeln!(
                    reasons,
                    "  the end with {:?} differs: {reason}",
                    end.assumptions
                );
            }
        }
    }
    let mut text = format!("no end of the trace matches the kernel's path\n{reasons}{sent:?}\n");
    for met in observed.nft.iter().chain(&observed.legacy) {
        let _ = writeln!(text, "  kernel: {met:?}");
    }
    let _ = writeln!(
        text,
        "  arrived: {:?}, mark {:?}\n{trace}",
        observed.arrived, observed.mark
    );
    Err(text)
}

/// The family of a packet in x_tables.
pub(crate) const fn family(is_ipv4: bool) -> Family {
    match is_ipv4 {
        true => Family::Ipv4,
        false => Family::Ipv6,
    }
}
