//! Packets on the command line, and the machine that they come to.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use chainwright::iptables::Family;
use chainwright_trace::{Direction, Interface, Node, Packet, State};
use clap::ValueEnum;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;

use crate::output::{Error, note};

/// Further properties of a packet.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct PacketOptions {
    /// Input interface of the packet
    #[arg(long = "in", value_name = "INTERFACE", help_heading = HEADING)]
    in_interface: Option<String>,

    /// Output interface of the packet
    #[arg(long = "out", value_name = "INTERFACE", help_heading = HEADING)]
    out_interface: Option<String>,

    /// Mark of the packet: a number, or 0x and hexadecimal digits
    #[arg(long, value_name = "MARK", value_parser = number, default_value = "0", help_heading = HEADING)]
    mark: u32,

    /// State of the packet's connection
    #[arg(long, value_enum, value_name = "STATE", default_value_t = StateArgument::New, hide_possible_values = true,
        help_heading = HEADING, long_help = "State of the packet's connection: new, established, related, invalid, \
        untracked, or any")]
    state: StateArgument,

    /// Direction of the packet: in, forward, out or local
    #[arg(long, value_enum, value_name = "WAY", hide_possible_values = true, help_heading = HEADING,
        long_help = "Direction of the packet: in (to this machine), forward (through it), out (from it), or local (from \
        it to itself). By default it depends on the addresses; for a file, whose machine's addresses are unknown, it \
        is forward")]
    direction: Option<DirectionArgument>,

    /// User ID of the sending socket
    #[arg(long, value_name = "UID", help_heading = HEADING)]
    uid: Option<u32>,
}

/// Help heading of these options.
const HEADING: &str = "The packet";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum StateArgument {
    #[default]
    New,
    Established,
    Related,
    Invalid,
    Untracked,
    /// unknown
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionArgument {
    In,
    Forward,
    Out,
    Local,
}

impl DirectionArgument {
    const fn directions(self) -> &'static [Direction] {
        match self {
            Self::In => &[Direction::In],
            Self::Forward => &[Direction::Forwarded],
            Self::Out => &[Direction::Out],
            Self::Local => &[Direction::Local],
        }
    }
}

/// Returns the argument for a direction.
const fn direction_argument(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Forwarded => "forward",
        Direction::Out => "out",
        Direction::Local => "local",
    }
}

/// Formats a direction: `through this machine`.
const fn direction_words(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "to this machine",
        Direction::Forwarded => "through this machine",
        Direction::Out => "from this machine",
        Direction::Local => "from this machine to itself",
    }
}

fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("{text:?} is not a 32-bit number"))
}

/// The known parts of a packet's source or destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: Option<u16>,
}

impl End {
    /// Parses `10.0.0.5:1234`, `10.0.0.5`, `[fd00::1]:80`, `fd00::1`, `any` or `any:80`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(both) = text.parse::<SocketAddr>() {
            return Ok(Self {
                address: Some(both.ip()),
                port: Some(both.port()),
            });
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self {
                address: Some(address),
                port: None,
            });
        }
        let wrong = || {
            format!(
                "{text:?} is not an address: expected 10.0.0.5, 10.0.0.5:1234, fd00::1, [fd00::1]:80, any or any:80 \
                 (host names are not looked up)"
            )
        };
        match text.strip_prefix("any").ok_or_else(wrong)? {
            "" => Ok(Self::default()),
            rest => Ok(Self {
                address: None,
                port: Some(
                    rest.strip_prefix(':')
                        .and_then(|port| port.parse().ok())
                        .ok_or_else(wrong)?,
                ),
            }),
        }
    }
}

/// Protocols with names.
const PROTOCOLS: [(&str, u8); 11] = [
    ("tcp", 6),
    ("udp", 17),
    ("sctp", 132),
    ("dccp", 33),
    ("udplite", 136),
    ("icmp", 1),
    ("icmpv6", 58),
    ("esp", 50),
    ("ah", 51),
    ("gre", 47),
    ("ipip", 4),
];

/// Parses `tcp`, `udp`, …, or a number.
fn protocol(text: &str) -> Result<u8, String> {
    let name = match text {
        "ipv6-icmp" => "icmpv6",
        other => other,
    };
    let known = PROTOCOLS.iter().find(|(known, _)| *known == name);
    let number = known.map_or_else(|| text.parse().ok(), |(_, number)| Some(*number));
    number.ok_or_else(|| {
        let names = PROTOCOLS.map(|(name, _)| name).join(", ");
        format!("{text:?} is not a protocol: expected {names} or a number")
    })
}

/// Returns the name of a protocol, or its number.
pub(crate) fn protocol_name(number: u8) -> String {
    let known = PROTOCOLS.iter().find(|(_, known)| *known == number);
    known.map_or_else(
        || format!("protocol {number}"),
        |(name, _)| (*name).to_owned(),
    )
}

const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}

/// Parses a packet from three words: protocol, source, destination.
pub(crate) fn parse(words: &[String], more: &PacketOptions, node: &Node) -> Result<Packet, Error> {
    let [protocol_word, source, destination] = words else {
        return Err(Error::Other(
            "a packet takes three arguments: tcp 10.0.0.5:1234 10.96.0.1:443".into(),
        ));
    };
    let number = protocol(protocol_word).map_err(Error::Other)?;
    let source = End::parse(source).map_err(Error::Other)?;
    let destination = End::parse(destination).map_err(Error::Other)?;
    packet(number, source, destination, None, more, node).map_err(Error::Other)
}

/// Creates a packet of this protocol.
pub(crate) fn packet(
    protocol: u8,
    source: End,
    destination: End,
    family: Option<Family>,
    more: &PacketOptions,
    node: &Node,
) -> Result<Packet, String> {
    let of = |address: Option<IpAddr>| address.map(|address| address.is_ipv6());
    let (from, to) = (of(source.address), of(destination.address));
    if from.is_some() && to.is_some() && from != to {
        return Err("source and destination have different families".into());
    }
    let is_ipv6 = from.or(to);
    let family = match (is_ipv6, family) {
        (Some(true), _) => Family::Ipv6,
        (Some(false), _) => Family::Ipv4,
        (None, Some(family)) => family,
        (None, None) if protocol == 58 => Family::Ipv6,
        (None, None) => Family::Ipv4,
    };
    if !has_ports(protocol) && (source.port.or(destination.port)).is_some() {
        return Err(format!("{} has no ports", protocol_name(protocol)));
    }
    let direction = match more.direction {
        Some(given) => given.directions()[0],
        None => possible_directions(source.address, destination.address, node)[0],
    };
    let mut packet = Packet::new(family, direction);
    packet.source = source.address;
    packet.destination = destination.address;
    packet.protocol = Some(protocol);
    packet.source_port = source.port;
    packet.destination_port = destination.port;
    packet.fragment = Some(false);
    packet.has_options = Some(false);
    packet.mark = Some(more.mark);
    packet.in_interface = more.in_interface.as_deref().map(Into::into);
    packet.out_interface = more.out_interface.as_deref().map(Into::into);
    packet.user = more.uid;
    packet.connection.state = match more.state {
        StateArgument::New => Some(State::New),
        StateArgument::Established => Some(State::Established),
        StateArgument::Related => Some(State::Related),
        StateArgument::Invalid => Some(State::Invalid),
        StateArgument::Untracked => Some(State::Untracked),
        StateArgument::Any => None,
    };
    if more.state == StateArgument::New {
        packet.connection.is_reply = Some(false);
        // A SYN without other flags opens a connection.
        packet.tcp_flags = (protocol == 6).then_some(2);
        match protocol {
            1 => (packet.icmp_type, packet.icmp_code) = (Some(8), Some(0)),
            58 => (packet.icmp_type, packet.icmp_code) = (Some(128), Some(0)),
            _ => {}
        }
    }
    Ok(packet)
}

/// Whether an address belongs to the machine, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Here,
    Elsewhere,
    Unknown,
}

impl Side {
    fn of(address: Option<IpAddr>, node: &Node) -> Self {
        match address.and_then(|address| node.has_address(address)) {
            Some(true) => Self::Here,
            Some(false) => Self::Elsewhere,
            None => Self::Unknown,
        }
    }
}

/// Returns the directions that a packet can have, the most likely one first. A packet from the machine to itself is
/// possible only if both addresses belong to it.
fn possible_directions(
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    node: &Node,
) -> &'static [Direction] {
    // The machine delivers these packets to its own sockets.
    let is_for_all =
        |address: IpAddr| address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST);
    if destination.is_some_and(is_for_all) {
        return match Side::of(source, node) {
            Side::Here => &[Direction::Out],
            Side::Elsewhere => &[Direction::In],
            Side::Unknown => &[Direction::In, Direction::Out],
        };
    }
    match (Side::of(source, node), Side::of(destination, node)) {
        (Side::Here, Side::Here) => &[Direction::Local],
        (Side::Here, _) => &[Direction::Out],
        (_, Side::Here) => &[Direction::In],
        (Side::Elsewhere, Side::Elsewhere) => &[Direction::Forwarded],
        (Side::Elsewhere, Side::Unknown) => &[Direction::Forwarded, Direction::In],
        (Side::Unknown, Side::Elsewhere) => &[Direction::Forwarded, Direction::Out],
        (Side::Unknown, Side::Unknown) => &[Direction::Forwarded, Direction::In, Direction::Out],
    }
}

impl PacketOptions {
    /// Returns the directions that a packet can have: the given one, or those that agree with its addresses.
    pub(crate) fn directions(&self, packet: &Packet, node: &Node) -> &'static [Direction] {
        match self.direction {
            Some(given) => given.directions(),
            None => possible_directions(packet.source, packet.destination, node),
        }
    }

    /// Prints a note if the direction of a packet is not known.
    pub(crate) fn note_assumed_direction(&self, packet: &Packet, node: &Node) {
        let possible = self.directions(packet, node);
        let others: Vec<&str> = (possible.iter())
            .filter(|way| **way != packet.direction)
            .map(|way| direction_argument(*way))
            .collect();
        // The packet to a node port has a direction that does not follow from its addresses.
        if !others.is_empty() && possible.contains(&packet.direction) {
            note(&format!(
                "assumed --direction {}; {} is also possible",
                direction_argument(packet.direction),
                others.join(" or ")
            ));
        }
    }

    /// Sets the direction of a packet, unless the options specify one.
    pub(crate) fn set_default_direction(&self, packet: &mut Packet, way: Direction) {
        if self.direction.is_none() {
            packet.direction = way;
        }
    }
}

/// Returns the known properties of this machine.
pub(crate) fn node() -> Node {
    let mut node = Node::default();
    let mut all = Vec::new();
    // A node has thousands of interfaces, with several addresses each.
    let mut indices: HashMap<String, usize> = HashMap::new();
    // If the addresses cannot be read, they are unknown.
    let Ok(addresses) = getifaddrs() else {
        return node;
    };
    for one in addresses {
        let index = match indices.entry(one.interface_name) {
            Slot::Occupied(known) => *known.get(),
            Slot::Vacant(new) => {
                let mut interface = Interface::named(new.key().as_str());
                interface.index = if_nametoindex(new.key().as_str()).ok();
                node.interfaces.push(interface);
                *new.insert(node.interfaces.len() - 1)
            }
        };
        let address = one.address.as_ref().and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        });
        if let Some(address) = address {
            node.interfaces[index].addresses.push(address);
            all.push(address);
        }
    }
    node.addresses = Some(all);
    node
}

/// Formats a packet on one line: `tcp 10.0.0.5:1234 → 10.96.0.1:443, through this machine, new`.
pub(crate) fn format_packet(packet: &Packet) -> String {
    let end = |address: Option<IpAddr>, port: Option<u16>| match (address, port) {
        (Some(address), Some(port)) => SocketAddr::new(address, port).to_string(),
        (Some(address), None) => address.to_string(),
        (None, Some(port)) => format!("any:{port}"),
        (None, None) => "any".to_owned(),
    };
    let protocol = packet
        .protocol
        .map_or("any protocol".to_owned(), protocol_name);
    let mut text = format!(
        "{protocol} {} → {}, {}",
        end(packet.source, packet.source_port),
        end(packet.destination, packet.destination_port),
        direction_words(packet.direction)
    );
    for (word, name) in [("in", &packet.in_interface), ("out", &packet.out_interface)] {
        if let Some(name) = name {
            text += &format!(", {word} {name}");
        }
    }
    match packet.mark {
        Some(0) | None => {}
        Some(mark) => text += &format!(", mark {mark:#x}"),
    }
    text += match packet.connection.state {
        Some(State::New) => ", new",
        Some(State::Established) => ", established",
        Some(State::Related) => ", related",
        Some(State::Invalid) => ", invalid",
        Some(State::Untracked) => ", untracked",
        None => "",
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(words: &str) -> Result<String, String> {
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        let packet = parse(&words, &PacketOptions::default(), &Node::default());
        packet
            .map(|packet| format_packet(&packet))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn packets_round_trip() {
        for (words, line) in [
            (
                "tcp 10.0.0.5:1234 10.96.0.1:443",
                "tcp 10.0.0.5:1234 → 10.96.0.1:443, through this machine, new",
            ),
            (
                "udp any 10.0.0.1:53",
                "udp any → 10.0.0.1:53, through this machine, new",
            ),
            (
                "tcp 127.0.0.1 127.0.0.1:80",
                "tcp 127.0.0.1 → 127.0.0.1:80, from this machine to itself, new",
            ),
            (
                "tcp [fd00::1]:9 fd00::2",
                "tcp [fd00::1]:9 → fd00::2, through this machine, new",
            ),
            (
                "icmp any 192.0.2.1",
                "icmp any → 192.0.2.1, through this machine, new",
            ),
            ("50 any any", "esp any → any, through this machine, new"),
            (
                "89 any any",
                "protocol 89 any → any, through this machine, new",
            ),
        ] {
            assert_eq!(round_trip(words).as_deref(), Ok(line), "{words}");
        }
        for (words, part) in [
            ("tpc any any", "\"tpc\" is not a protocol"),
            ("tcp host any", "\"host\" is not an address"),
            ("tcp any:x any", "is not an address"),
            ("tcp 10.0.0.1 fd00::1", "different families"),
            ("icmp any:1 any", "icmp has no ports"),
            ("tcp any", "three arguments"),
        ] {
            let error = round_trip(words).unwrap_err();
            assert!(error.contains(part), "{words}: {error}");
        }
    }
}
