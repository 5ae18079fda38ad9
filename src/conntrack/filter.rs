//! Filters for entries.

use std::net::IpAddr;

use chainwright_sys::nfnetlink_conntrack::{
    CTA_FILTER, CTA_FILTER_ORIG_FLAGS, CTA_FILTER_REPLY_FLAGS, CTA_MARK, CTA_MARK_MASK,
    CTA_PROTO_DST_PORT, CTA_PROTO_NUM, CTA_PROTO_SRC_PORT, CTA_STATUS, CTA_STATUS_MASK,
    CTA_TUPLE_IP, CTA_TUPLE_ORIG, CTA_TUPLE_PROTO, CTA_TUPLE_REPLY, CTA_ZONE,
};

use super::entry::{EntryRef, Status};
use super::tuple::{Tuple, encode_destination, encode_source};
use crate::netlink::MessageWriter;

/// Conditions for one direction of an entry; `None` matches everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TupleFilter {
    /// The source address.
    pub source: Option<IpAddr>,
    /// The destination address.
    pub destination: Option<IpAddr>,
    /// The source port; only matches protocols with ports.
    pub source_port: Option<u16>,
    /// The destination port; only matches protocols with ports.
    pub destination_port: Option<u16>,
}

impl TupleFilter {
    /// Matches packets to this address.
    #[must_use]
    pub fn to(destination: impl Into<IpAddr>) -> Self {
        Self {
            destination: Some(destination.into()),
            ..Self::default()
        }
    }

    /// Matches packets from this address.
    #[must_use]
    pub fn from(source: impl Into<IpAddr>) -> Self {
        Self {
            source: Some(source.into()),
            ..Self::default()
        }
    }

    /// Also requires this destination port.
    #[must_use]
    pub const fn to_port(mut self, port: u16) -> Self {
        self.destination_port = Some(port);
        self
    }

    /// Also requires this source port.
    #[must_use]
    pub const fn from_port(mut self, port: u16) -> Self {
        self.source_port = Some(port);
        self
    }

    fn admits(&self, tuple: &Tuple) -> bool {
        let is = |wanted: Option<IpAddr>, address| wanted.is_none_or(|wanted| wanted == address);
        let has = |wanted: Option<u16>, port| wanted.is_none_or(|wanted| Some(wanted) == port);
        is(self.source, tuple.source)
            && is(self.destination, tuple.destination)
            && has(self.source_port, tuple.source_port())
            && has(self.destination_port, tuple.destination_port())
    }

    fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.source.into_iter().chain(self.destination)
    }

    /// Writes the conditions that the kernel can compare, for addresses of one family.
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16, protocol: Option<u8>) -> u32 {
        let mut compared = 0;
        writer.nested(kind, |writer| {
            // Linux 6.18 inverts the comparison of IPv6 addresses.
            if self.addresses().any(|address| address.is_ipv4()) {
                writer.nested(CTA_TUPLE_IP, |writer| {
                    if let Some(address) = self.source {
                        encode_source(writer, address);
                        compared |= COMPARE_SOURCE;
                    }
                    if let Some(address) = self.destination {
                        encode_destination(writer, address);
                        compared |= COMPARE_DESTINATION;
                    }
                });
            }
            // The kernel compares ports only together with a protocol.
            if let Some(protocol) = protocol {
                writer.nested(CTA_TUPLE_PROTO, |writer| {
                    writer.u8(CTA_PROTO_NUM, protocol);
                    compared |= COMPARE_PROTOCOL;
                    if let Some(port) = self.source_port {
                        writer.be16(CTA_PROTO_SRC_PORT, port);
                        compared |= COMPARE_SOURCE_PORT;
                    }
                    if let Some(port) = self.destination_port {
                        writer.be16(CTA_PROTO_DST_PORT, port);
                        compared |= COMPARE_DESTINATION_PORT;
                    }
                });
            }
        });
        compared
    }
}

// `CTA_FILTER_F_*` of `net/netfilter/nf_internals.h`, which are in no user-space header.
const COMPARE_SOURCE: u32 = 1 << 0;
const COMPARE_DESTINATION: u32 = 1 << 1;
const COMPARE_PROTOCOL: u32 = 1 << 3;
const COMPARE_SOURCE_PORT: u32 = 1 << 4;
const COMPARE_DESTINATION_PORT: u32 = 1 << 5;

/// Selects the entries to list or delete: those that meet all conditions.
///
/// The kernel filters by the family and marks; newer kernels also by IPv4 addresses, protocol, ports and the status.
/// This crate checks all conditions again, so the result is the same on every kernel. (It does not send IPv6
/// addresses to the kernel, because Linux 6.18 inverts their comparison.)
///
/// ```
/// use std::net::Ipv4Addr;
/// use chainwright::conntrack::{Filter, TupleFilter};
///
/// // UDP to a service that went to this endpoint.
/// let service = TupleFilter::to(Ipv4Addr::new(10, 96, 0, 10)).to_port(53);
/// let endpoint = TupleFilter::from(Ipv4Addr::new(10, 244, 1, 7)).from_port(5353);
/// let filter = Filter::all().protocol(17).original(service).reply(endpoint);
/// # let _ = filter;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    is_ipv4: Option<bool>,
    protocol: Option<u8>,
    original: TupleFilter,
    reply: TupleFilter,
    mark: Option<(u32, u32)>,
    status: Option<(Status, Status)>,
    zone: Option<u16>,
}

impl Filter {
    /// Matches all entries.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only matches entries with IPv4 addresses.
    #[must_use]
    pub const fn ipv4(mut self) -> Self {
        self.is_ipv4 = Some(true);
        self
    }

    /// Only matches entries with IPv6 addresses.
    #[must_use]
    pub const fn ipv6(mut self) -> Self {
        self.is_ipv4 = Some(false);
        self
    }

    /// Only matches entries with this protocol number (`IPPROTO_*`): 6 is TCP, 17 UDP.
    #[must_use]
    pub const fn protocol(mut self, protocol: u8) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Only matches entries whose original direction meets these conditions.
    #[must_use]
    pub const fn original(mut self, tuple: TupleFilter) -> Self {
        self.original = tuple;
        self
    }

    /// Only matches entries whose reply direction meets these conditions.
    #[must_use]
    pub const fn reply(mut self, tuple: TupleFilter) -> Self {
        self.reply = tuple;
        self
    }

    /// Only matches entries whose mark has this value in the bits of `mask`.
    #[must_use]
    pub const fn mark(mut self, value: u32, mask: u32) -> Self {
        self.mark = Some((value, mask));
        self
    }

    /// Only matches entries whose status has this value in the bits of `mask`.
    #[must_use]
    pub const fn status(mut self, value: Status, mask: Status) -> Self {
        self.status = Some((value, mask));
        self
    }

    /// Only matches entries in this zone; 0 is the default.
    #[must_use]
    pub const fn zone(mut self, zone: u16) -> Self {
        self.zone = Some(zone);
        self
    }

    /// Returns `true` if an entry meets all conditions.
    #[must_use]
    pub fn admits(&self, entry: &EntryRef<'_>) -> bool {
        let original = entry.original();
        let of_reply = self.reply == TupleFilter::default()
            || entry.reply().is_some_and(|reply| self.reply.admits(&reply));
        self.is_ipv4
            .is_none_or(|is_ipv4| original.source.is_ipv4() == is_ipv4)
            && self
                .protocol
                .is_none_or(|number| number == original.protocol())
            && self.original.admits(&original)
            && of_reply
            && self
                .mark
                .is_none_or(|(value, mask)| (entry.mark() ^ value) & mask == 0)
            && self
                .status
                .is_none_or(|(value, mask)| ((entry.status() ^ value) & mask).is_empty())
            && self.zone.is_none_or(|zone| entry.zone() == zone)
    }

    /// Returns `true` if a kernel that can compare tuples compares all of the conditions: TCP or UDP, their ports, IPv4
    /// addresses.
    pub(super) fn kernel_can_evaluate(&self) -> bool {
        // Linux 6.18 does not compare SCTP ports.
        const WITH_PORTS: [i32; 2] = [libc::IPPROTO_TCP, libc::IPPROTO_UDP];
        let tuples = [&self.original, &self.reply];
        let has_ports =
            |tuple: &TupleFilter| tuple.source_port.or(tuple.destination_port).is_some();
        let is_narrow =
            |tuple: &TupleFilter| has_ports(tuple) || tuple.addresses().next().is_some();
        let protocol = self.protocol.map(i32::from);
        self.single_family() == Some(true)
            && protocol.is_some_and(|number| WITH_PORTS.contains(&number))
            && tuples.into_iter().any(is_narrow)
            && (self.mark, self.status, self.zone) == (None, None, None)
    }

    /// Returns the only address family that can match, if there is just one: `true` for IPv4.
    fn single_family(&self) -> Option<bool> {
        let addresses = self.original.addresses().chain(self.reply.addresses());
        let mut families = addresses
            .map(|address| address.is_ipv4())
            .chain(self.is_ipv4);
        let first = families.next()?;
        families.all(|family| family == first).then_some(first)
    }

    /// Returns the family for the request to the kernel.
    pub(super) fn family(&self) -> u8 {
        match self.single_family() {
            Some(true) => libc::AF_INET as u8,
            Some(false) => libc::AF_INET6 as u8,
            None => libc::AF_UNSPEC as u8,
        }
    }

    /// Writes the conditions that the kernel can check.
    pub(super) fn encode(&self, writer: &mut MessageWriter<'_>) {
        if let Some((value, mask)) = self.mark {
            writer
                .be32(CTA_MARK, value & mask)
                .be32(CTA_MARK_MASK, mask);
        }
        if let Some((value, mask)) = self.status {
            writer
                .be32(CTA_STATUS, (value & mask).bits())
                .be32(CTA_STATUS_MASK, mask.bits());
        }
        if let Some(zone) = self.zone.filter(|zone| *zone != 0) {
            writer.be16(CTA_ZONE, zone);
        }
        // Tuples require a family.
        if self.single_family().is_none() {
            return;
        }
        let mut write = |tuple: &TupleFilter, kind, protocol: Option<u8>| {
            let is_any = *tuple == TupleFilter::default() && protocol.is_none();
            match is_any {
                true => 0,
                false => tuple.encode(writer, kind, protocol),
            }
        };
        // Both directions have the same protocol, so it is written once, unless the reply needs it for ports.
        let has_ports = self.reply.source_port.or(self.reply.destination_port);
        let flags = [
            write(&self.original, CTA_TUPLE_ORIG, self.protocol),
            write(
                &self.reply,
                CTA_TUPLE_REPLY,
                self.protocol.filter(|_| has_ports.is_some()),
            ),
        ];
        if flags != [0, 0] {
            writer.nested(CTA_FILTER, |writer| {
                // In host byte order, unlike all other numbers here.
                writer
                    .bytes(CTA_FILTER_ORIG_FLAGS, &flags[0].to_ne_bytes())
                    .bytes(CTA_FILTER_REPLY_FLAGS, &flags[1].to_ne_bytes());
            });
        }
    }
}
