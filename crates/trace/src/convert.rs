//! Converts packet descriptions to fields, and final fields to results.

use std::net::IpAddr;

use super::ct::{ORIGINAL, REPLY};
use super::field::{Field, name_value};
use super::headers::has_ports;
use super::packet::{Packet, Tuple};
use super::path_state::PathState;
use super::route::{address_number, is_of};
use super::steps::{FinalPacket, FinalValue};
use chainwright::nft::expr::{CtKey, MetaKey};

/// Initializes the fields from a packet description.
pub(super) fn enter(path_state: &mut PathState, packet: &Packet) {
    let family = packet.family;
    let addresses = [
        (Field::Source, packet.source),
        (Field::Destination, packet.destination),
    ];
    for (field, address) in addresses {
        if let Some(address) = address.filter(|address| is_of(*address, family)) {
            path_state.set_number(field, address_number(address));
        }
    }
    let numbers = [
        (Field::Protocol, packet.protocol.map(u128::from)),
        (Field::SourcePort, packet.source_port.map(u128::from)),
        (
            Field::DestinationPort,
            packet.destination_port.map(u128::from),
        ),
        (Field::IcmpType, packet.icmp_type.map(u128::from)),
        (Field::IcmpCode, packet.icmp_code.map(u128::from)),
        (Field::TcpFlags, packet.tcp_flags.map(u128::from)),
        (Field::HasOptions, packet.has_options.map(u128::from)),
        (Field::Length, packet.length.map(u128::from)),
        (Field::Ttl, packet.ttl.map(u128::from)),
        (Field::Tos, packet.tos.map(u128::from)),
        (
            Field::Meta(MetaKey::PKTTYPE),
            packet.packet_type.map(u128::from),
        ),
        (Field::Mark, packet.mark.map(u128::from)),
        (
            Field::Meta(MetaKey::PRIORITY),
            packet.priority.map(u128::from),
        ),
        (Field::Meta(MetaKey::SKUID), packet.user.map(u128::from)),
        (Field::Meta(MetaKey::SKGID), packet.group.map(u128::from)),
    ];
    for (field, number) in numbers {
        if let Some(number) = number {
            path_state.set_number(field, number);
        }
    }
    match packet.fragment {
        // Unfragmented or first fragment: only the flags may be set.
        Some(false) => {
            const FLAGS: u128 = 0x6000;
            let flags = path_state.get(Field::Fragment).masked(FLAGS, 0);
            path_state.set(Field::Fragment, flags);
        }
        Some(true) => {
            let offsets = (0..8).map(|flags| (flags << 13 | 1, flags << 13 | 0x1fff));
            path_state.limit(Field::Fragment, offsets.collect());
        }
        None => {}
    }
    if let Some(address) = packet.source_hardware {
        for (at, byte) in (6..).zip(address) {
            path_state.set_number(Field::Link(at), byte.into());
        }
    }
    let connection = &packet.connection;
    if let Some(state) = connection.state {
        path_state.set_number(Field::State, state.bit());
    }
    let numbers = [
        (Field::CtDirection, connection.is_reply.map(u128::from)),
        (Field::CtMark, connection.mark.map(u128::from)),
        (Field::CtStatus, connection.status.map(u128::from)),
        (Field::Ct(CtKey::LABELS, None), connection.labels),
        (
            Field::Ct(CtKey::ZONE, None),
            connection.zone.map(u128::from),
        ),
        (
            Field::Ct(CtKey::HELPER, None),
            connection.helper.as_ref().map(|name| name_value(name)),
        ),
    ];
    for (field, number) in numbers {
        if let Some(number) = number {
            path_state.set_number(field, number);
        }
    }
    tuple(path_state, ORIGINAL, &connection.original);
    // Reply fields correspond to the packet's fields in inverse order: the destination comes first.
    let reply = &connection.reply;
    let turned = Tuple {
        source: reply.destination,
        destination: reply.source,
        source_port: reply.destination_port,
        destination_port: reply.source_port,
    };
    tuple(path_state, REPLY, &turned);
}

fn tuple(path_state: &mut PathState, fields: [Field; 4], tuple: &Tuple) {
    let family = path_state.family;
    let address = |address: Option<IpAddr>| {
        let address = address.filter(|address| is_of(*address, family));
        address.map(address_number)
    };
    let numbers = [
        address(tuple.source),
        address(tuple.destination),
        tuple.source_port.map(u128::from),
        tuple.destination_port.map(u128::from),
    ];
    for (field, number) in fields.into_iter().zip(numbers) {
        if let Some(number) = number {
            path_state.set_number(field, number);
        }
    }
}

impl PathState {
    /// Describes the packet at the end of the branch.
    pub(super) fn final_packet(&mut self) -> FinalPacket {
        let mut part = |field| {
            let value = self.get(field);
            let description = self.description(field, &value);
            match self.known(&value) {
                Some(_) => FinalValue::Known(description),
                None => FinalValue::Open(description),
            }
        };
        let (source, destination) = (part(Field::Source), part(Field::Destination));
        let mark = part(Field::Mark);
        let (source_port, destination_port) =
            (part(Field::SourcePort), part(Field::DestinationPort));
        let protocol = self.number(Field::Protocol);
        let has_ports = protocol.is_none_or(|protocol| has_ports(protocol as u8));
        let port = |port| if has_ports { port } else { FinalValue::None };
        FinalPacket {
            source,
            destination,
            source_port: port(source_port),
            destination_port: port(destination_port),
            mark,
        }
    }
}
