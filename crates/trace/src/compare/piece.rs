//! Partial packets from rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bstr::BString;

use crate::headers::has_ports;
use crate::{Direction, Packet, State, TrackedConnection};
use chainwright::iptables::Address;
use chainwright::xt::Family;

/// Partial packet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) source: Option<IpAddr>,
    pub(super) destination: Option<IpAddr>,
    pub(super) protocol: Option<u8>,
    pub(super) source_port: Option<u16>,
    pub(super) destination_port: Option<u16>,
    pub(super) in_interface: Option<BString>,
    pub(super) out_interface: Option<BString>,
    pub(super) mark: Option<u32>,
    pub(super) state: Option<u8>,
    pub(super) ipv6: Option<bool>,
}

impl Piece {
    /// Completes the piece to a packet; `None` if that is impossible, for example with addresses of different
    /// families.
    pub(super) fn packet(&self, direction: Direction) -> Option<Packet> {
        let of = |address: &Option<IpAddr>| address.map(|address| address.is_ipv6());
        let ipv6 = of(&self.source)
            .or(of(&self.destination))
            .or(self.ipv6)
            .unwrap_or(false);
        if [of(&self.source), of(&self.destination), self.ipv6].contains(&Some(!ipv6)) {
            return None;
        }
        let known = |v4: [u8; 4], v6: [u16; 8]| match ipv6 {
            false => IpAddr::from(v4),
            true => IpAddr::from(v6),
        };
        // Documentation addresses (RFC 5737, RFC 3849).
        let source = known([198, 51, 100, 7], [0x2001, 0xdb8, 0, 0, 0, 0, 0, 7]);
        let destination = known([203, 0, 113, 9], [0x2001, 0xdb8, 1, 0, 0, 0, 0, 9]);
        let ported = self.source_port.or(self.destination_port).is_some();
        let protocol = self.protocol.unwrap_or(6);
        if ported && !has_ports(protocol) {
            return None;
        }
        let mut packet = Packet::between(
            direction,
            protocol,
            self.source.unwrap_or(source),
            self.destination.unwrap_or(destination),
        );
        packet.family = if ipv6 { Family::Ipv6 } else { Family::Ipv4 };
        match protocol {
            _ if has_ports(protocol) => {
                packet.source_port = Some(self.source_port.unwrap_or(40000));
                packet.destination_port = Some(self.destination_port.unwrap_or(9));
                packet.tcp_flags = (protocol == 6).then_some(2);
            }
            1 => (packet.icmp_type, packet.icmp_code) = (Some(8), Some(0)),
            58 => (packet.icmp_type, packet.icmp_code) = (Some(128), Some(0)),
            _ => {}
        }
        packet.mark = Some(self.mark.unwrap_or(0));
        (packet.length, packet.ttl, packet.tos) = (Some(60), Some(64), Some(0));
        packet.packet_type = Some(0);
        let named = |name: &Option<BString>, otherwise: &str| {
            Some(name.clone().unwrap_or_else(|| otherwise.into()))
        };
        if direction != Direction::Out {
            packet.in_interface = named(&self.in_interface, "eth0");
        }
        if direction != Direction::In {
            packet.out_interface = named(&self.out_interface, "eth1");
        }
        packet.connection = TrackedConnection {
            state: Some(self.state()),
            is_reply: Some(false),
            mark: Some(0),
            status: Some(0),
            ..TrackedConnection::default()
        };
        Some(packet)
    }

    /// Returns the first state in its bits.
    fn state(&self) -> State {
        let bits = u128::from(self.state.unwrap_or(0));
        State::ALL
            .into_iter()
            .find(|state| bits & state.bit() != 0)
            .unwrap_or(State::New)
    }
}

/// Merges two pieces; the upper one takes precedence.
pub(super) fn over(upper: &Piece, lower: &Piece) -> Piece {
    Piece {
        source: upper.source.or(lower.source),
        destination: upper.destination.or(lower.destination),
        protocol: upper.protocol.or(lower.protocol),
        source_port: upper.source_port.or(lower.source_port),
        destination_port: upper.destination_port.or(lower.destination_port),
        in_interface: upper
            .in_interface
            .clone()
            .or_else(|| lower.in_interface.clone()),
        out_interface: upper
            .out_interface
            .clone()
            .or_else(|| lower.out_interface.clone()),
        mark: upper.mark.or(lower.mark),
        state: upper.state.or(lower.state),
        ipv6: upper.ipv6.or(lower.ipv6),
    }
}

/// Returns the last address of a network and the addresses directly before and after the network.
pub(super) fn adjacent(network: &Address) -> Vec<IpAddr> {
    match (network.address, network.mask) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => {
            let (first, last) = (address.to_bits(), address.to_bits() | !mask.to_bits());
            let all = [last, first.wrapping_sub(1), last.wrapping_add(1)];
            all.map(|bits| Ipv4Addr::from_bits(bits).into()).to_vec()
        }
        (IpAddr::V6(address), IpAddr::V6(mask)) => {
            let (first, last) = (address.to_bits(), address.to_bits() | !mask.to_bits());
            let all = [last, first.wrapping_sub(1), last.wrapping_add(1)];
            all.map(|bits| Ipv6Addr::from_bits(bits).into()).to_vec()
        }
        _ => Vec::new(),
    }
}
