//! An entry of the conntrack table.

use std::fmt;
use std::time::{Duration, SystemTime};

use bitflags::bitflags;
use bstr::{BStr, ByteSlice as _};
use chainwright_sys::nf_conntrack_common::{
    IPS_ASSURED, IPS_CONFIRMED, IPS_DST_NAT, IPS_DST_NAT_DONE, IPS_DYING, IPS_EXPECTED,
    IPS_FIXED_TIMEOUT, IPS_HELPER, IPS_HW_OFFLOAD, IPS_OFFLOAD, IPS_SEEN_REPLY, IPS_SEQ_ADJUST,
    IPS_SRC_NAT, IPS_SRC_NAT_DONE,
};
use chainwright_sys::nfnetlink_conntrack::{
    CTA_COUNTERS_BYTES, CTA_COUNTERS_ORIG, CTA_COUNTERS_PACKETS, CTA_COUNTERS_REPLY, CTA_HELP,
    CTA_HELP_NAME, CTA_ID, CTA_LABELS, CTA_MARK, CTA_PROTOINFO, CTA_PROTOINFO_SCTP,
    CTA_PROTOINFO_SCTP_STATE, CTA_PROTOINFO_TCP, CTA_PROTOINFO_TCP_STATE, CTA_STATUS, CTA_TIMEOUT,
    CTA_TIMESTAMP, CTA_TIMESTAMP_START, CTA_TUPLE_MASTER, CTA_TUPLE_ORIG, CTA_TUPLE_REPLY,
    CTA_TUPLE_ZONE, CTA_USE, CTA_ZONE,
};

use super::tuple::Tuple;
use crate::netlink::{Attributes, Malformed, MessageWriter, NfGenMsg};

bitflags! {
    /// Status bits of a connection (`IPS_*`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
    pub struct Status: u32 {
        /// It is an expected connection, related to another one.
        const EXPECTED = IPS_EXPECTED;
        /// The kernel has seen packets in both directions.
        const SEEN_REPLY = IPS_SEEN_REPLY;
        /// The kernel does not drop it early when the table is full.
        const ASSURED = IPS_ASSURED;
        /// It is confirmed: its first packet has left.
        const CONFIRMED = IPS_CONFIRMED;
        /// Its source address or port is translated.
        const SRC_NAT = IPS_SRC_NAT;
        /// Its destination address or port is translated.
        const DST_NAT = IPS_DST_NAT;
        /// Its TCP sequence numbers are adjusted.
        const SEQ_ADJUST = IPS_SEQ_ADJUST;
        /// Source NAT setup is done, even if nothing is translated.
        const SRC_NAT_DONE = IPS_SRC_NAT_DONE;
        /// Destination NAT setup is done, even if nothing is translated.
        const DST_NAT_DONE = IPS_DST_NAT_DONE;
        /// It is being deleted.
        const DYING = IPS_DYING;
        /// Packets do not renew its timeout.
        const FIXED_TIMEOUT = IPS_FIXED_TIMEOUT;
        /// It has a conntrack helper.
        const HELPER = IPS_HELPER;
        /// A flowtable handles it.
        const OFFLOAD = IPS_OFFLOAD;
        /// Hardware handles it.
        const HW_OFFLOAD = IPS_HW_OFFLOAD;
        /// Preserves bits that this version of the crate does not know.
        const _ = !0;
    }
}

/// One of the two directions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The direction of its first packet.
    Original,
    /// The direction of replies.
    Reply,
}

/// Packet and byte counters of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Counters {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes, including IP headers.
    pub bytes: u64,
}

/// Declares the states of a protocol: numbers with the names that `conntrack` prints.
macro_rules! states {
    (
        $(#[$meta:meta])*
        $State:ident {
            $($(#[$state_meta:meta])* $STATE:ident = $number:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $State(pub u8);

        impl $State {
            $($(#[$state_meta])* pub const $STATE: Self = Self($number);)*
        }

        impl fmt::Display for $State {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$STATE => f.write_str(stringify!($STATE)),)*
                    Self(other) => write!(f, "{other}"),
                }
            }
        }
    };
}

states! {
    /// The state of a TCP connection (`TCP_CONNTRACK_*`, `linux/netfilter/nf_conntrack_tcp.h`).
    TcpState {
        /// No packet was seen yet.
        NONE = 0,
        /// `SYN` was sent.
        SYN_SENT = 1,
        /// `SYN`, `ACK` was received in reply.
        SYN_RECV = 2,
        /// The connection is established.
        ESTABLISHED = 3,
        /// One side has sent `FIN`.
        FIN_WAIT = 4,
        /// The other side acknowledged the `FIN`.
        CLOSE_WAIT = 5,
        /// Both sides have sent `FIN`.
        LAST_ACK = 6,
        /// Both `FIN`s were acknowledged.
        TIME_WAIT = 7,
        /// The connection was reset.
        CLOSE = 8,
        /// Both sides have sent `SYN`.
        SYN_SENT2 = 9,
    }
}

states! {
    /// The state of an SCTP association (`SCTP_CONNTRACK_*`, `linux/netfilter/nf_conntrack_sctp.h`).
    SctpState {
        /// No packet was seen yet.
        NONE = 0,
        /// It has ended.
        CLOSED = 1,
        /// `INIT` was sent.
        COOKIE_WAIT = 2,
        /// The cookie was sent back.
        COOKIE_ECHOED = 3,
        /// The association is established.
        ESTABLISHED = 4,
        /// The initiator has sent `SHUTDOWN`.
        SHUTDOWN_SENT = 5,
        /// The other side has sent `SHUTDOWN`.
        SHUTDOWN_RECD = 6,
        /// The `SHUTDOWN` was acknowledged.
        SHUTDOWN_ACK_SENT = 7,
        /// Only heartbeats were seen.
        HEARTBEAT_SENT = 8,
    }
}

/// Key of an entry: the original direction and the zone. The optional kernel id distinguishes it from a later entry
/// with the same addresses and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryKey {
    /// The original direction.
    pub original: Tuple,
    /// The zone; 0 is the default.
    pub zone: u16,
    /// The kernel's id of the entry; without it, any entry with this direction and zone matches.
    pub id: Option<u32>,
}

impl From<Tuple> for EntryKey {
    /// Matches any entry with this direction in the default zone.
    fn from(original: Tuple) -> Self {
        Self {
            original,
            zone: 0,
            id: None,
        }
    }
}

impl EntryKey {
    pub(super) fn encode(&self, writer: &mut MessageWriter<'_>) {
        self.original.encode(writer, CTA_TUPLE_ORIG);
        if self.zone != 0 {
            writer.be16(CTA_ZONE, self.zone);
        }
        if let Some(id) = self.id {
            writer.be32(CTA_ID, id);
        }
    }
}

/// An entry as the kernel sent it: a view of its bytes. Except for the original direction, fields are decoded on
/// access.
///
/// The `Display` output resembles that of `conntrack -L`.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    original: Tuple,
    attributes: &'a [u8],
}

impl<'a> EntryRef<'a> {
    /// Parses an entry from a message's payload.
    ///
    /// # Errors
    /// [`Malformed`] if an attribute is truncated, or the original direction is invalid.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (_, attributes) = NfGenMsg::split(payload)?;
        let mut original = None;
        for attribute in Attributes::new(attributes) {
            let attribute = attribute?;
            if attribute.kind == CTA_TUPLE_ORIG {
                original = Tuple::decode(attribute.payload);
            }
        }
        let original = original.ok_or(Malformed {
            what: "conntrack entry",
            offset: 0,
            reason: "missing addresses and protocol of the first packet",
        })?;
        Ok(Self {
            original,
            attributes,
        })
    }

    fn find(&self, kind: u16) -> Option<&'a [u8]> {
        Attributes::new(self.attributes).find(kind)
    }

    fn number(&self, kind: u16) -> Option<u32> {
        be32(self.find(kind)?)
    }

    /// Returns the original direction, as in the first packet: before destination NAT.
    #[must_use]
    pub const fn original(&self) -> Tuple {
        self.original
    }

    /// Returns the direction of replies. With destination NAT, replies come from the translated address, for instance
    /// an endpoint of a service.
    #[must_use]
    pub fn reply(&self) -> Option<Tuple> {
        Tuple::decode(self.find(CTA_TUPLE_REPLY)?)
    }

    /// Returns the original direction of the master connection that expected this one.
    #[must_use]
    pub fn master(&self) -> Option<Tuple> {
        Tuple::decode(self.find(CTA_TUPLE_MASTER)?)
    }

    /// Returns the status bits.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::from_bits_retain(self.number(CTA_STATUS).unwrap_or(0))
    }

    /// Returns the remaining time until the kernel removes the entry if no packet arrives, in whole seconds. Events for
    /// removed entries do not have it.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.number(CTA_TIMEOUT)
            .map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Returns the mark; 0 if unset.
    #[must_use]
    pub fn mark(&self) -> u32 {
        self.number(CTA_MARK).unwrap_or(0)
    }

    /// Returns the zone; 0 is the default.
    #[must_use]
    pub fn zone(&self) -> u16 {
        self.find(CTA_ZONE).and_then(be16).unwrap_or(0)
    }

    /// Returns the zone that applies to one direction only, if set.
    #[must_use]
    pub fn zone_of(&self, direction: Direction) -> Option<u16> {
        let tuple = self.find(match direction {
            Direction::Original => CTA_TUPLE_ORIG,
            Direction::Reply => CTA_TUPLE_REPLY,
        })?;
        be16(Attributes::new(tuple).find(CTA_TUPLE_ZONE)?)
    }

    /// Returns the kernel's id of the entry; another entry with the same tuple has another id.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.number(CTA_ID)
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> EntryKey {
        EntryKey {
            original: self.original,
            zone: self.zone(),
            id: self.id(),
        }
    }

    /// Returns the counters of a direction, if the kernel counts packets (`net.netfilter.nf_conntrack_acct`).
    #[must_use]
    pub fn counters(&self, direction: Direction) -> Option<Counters> {
        let counters = Attributes::new(self.find(match direction {
            Direction::Original => CTA_COUNTERS_ORIG,
            Direction::Reply => CTA_COUNTERS_REPLY,
        })?);
        Some(Counters {
            packets: be64(counters.clone().find(CTA_COUNTERS_PACKETS)?)?,
            bytes: be64(counters.find(CTA_COUNTERS_BYTES)?)?,
        })
    }

    fn protocol_state(&self, protocol: u16, state: u16) -> Option<u8> {
        let protocol = Attributes::new(self.find(CTA_PROTOINFO)?).find(protocol)?;
        Attributes::new(protocol).find(state)?.first().copied()
    }

    /// Returns the state of a TCP connection.
    #[must_use]
    pub fn tcp_state(&self) -> Option<TcpState> {
        self.protocol_state(CTA_PROTOINFO_TCP, CTA_PROTOINFO_TCP_STATE)
            .map(TcpState)
    }

    /// Returns the state of an SCTP association.
    #[must_use]
    pub fn sctp_state(&self) -> Option<SctpState> {
        self.protocol_state(CTA_PROTOINFO_SCTP, CTA_PROTOINFO_SCTP_STATE)
            .map(SctpState)
    }

    /// Returns the time of its creation, if the kernel records it (`net.netfilter.nf_conntrack_timestamp`).
    #[must_use]
    pub fn started(&self) -> Option<SystemTime> {
        let start = Attributes::new(self.find(CTA_TIMESTAMP)?).find(CTA_TIMESTAMP_START)?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(be64(start)?))
    }

    /// Returns the name of its helper, for instance `ftp`.
    #[must_use]
    pub fn helper(&self) -> Option<&'a BStr> {
        let name = Attributes::new(self.find(CTA_HELP)?).find(CTA_HELP_NAME)?;
        Some(name.strip_suffix(b"\0").unwrap_or(name).as_bstr())
    }

    /// Returns the labels as a bit field, from the lowest bit of the first byte.
    #[must_use]
    pub fn labels(&self) -> Option<&'a [u8]> {
        self.find(CTA_LABELS)
    }

    /// Returns the reference count.
    #[must_use]
    pub fn references(&self) -> Option<u32> {
        self.number(CTA_USE)
    }

    /// Returns the raw attributes.
    #[must_use]
    pub const fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.attributes)
    }
}

fn be16(payload: &[u8]) -> Option<u16> {
    payload.try_into().ok().map(u16::from_be_bytes)
}

fn be32(payload: &[u8]) -> Option<u32> {
    payload.try_into().ok().map(u32::from_be_bytes)
}

fn be64(payload: &[u8]) -> Option<u64> {
    payload.try_into().ok().map(u64::from_be_bytes)
}

impl fmt::Display for EntryRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = |f: &mut fmt::Formatter<'_>, direction| match self.counters(direction) {
            Some(Counters { packets, bytes }) => write!(f, " packets={packets} bytes={bytes}"),
            None => Ok(()),
        };
        self.original.fmt_protocol(f)?;
        if let Some(state) = self.tcp_state() {
            write!(f, " {state}")?;
        }
        if let Some(state) = self.sctp_state() {
            write!(f, " {state}")?;
        }
        f.write_str(" ")?;
        self.original.fmt_endpoints(f)?;
        counters(f, Direction::Original)?;
        if !self.status().contains(Status::SEEN_REPLY) {
            f.write_str(" [UNREPLIED]")?;
        }
        if let Some(reply) = self.reply() {
            f.write_str(" ")?;
            reply.fmt_endpoints(f)?;
            counters(f, Direction::Reply)?;
        }
        if self.status().contains(Status::ASSURED) {
            f.write_str(" [ASSURED]")?;
        }
        write!(f, " mark={}", self.mark())?;
        if self.zone() != 0 {
            write!(f, " zone={}", self.zone())?;
        }
        match self.timeout() {
            Some(timeout) => write!(f, " timeout={}", timeout.as_secs()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for EntryRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryRef({self})")
    }
}

/// An entry to create.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The original direction.
    pub original: Tuple,
    /// The direction of replies: the [reversed](Tuple::reversed) original one if nothing is translated.
    pub reply: Tuple,
    /// Its status bits.
    pub status: Status,
    /// Time until the kernel removes it if no packet arrives, in whole seconds.
    pub timeout: Duration,
    /// Its mark.
    pub mark: u32,
    /// Its zone.
    pub zone: u16,
}

impl Entry {
    /// Creates a connection without address translation.
    #[must_use]
    pub const fn new(original: Tuple, timeout: Duration) -> Self {
        Self {
            original,
            reply: original.reversed(),
            status: Status::CONFIRMED,
            timeout,
            mark: 0,
            zone: 0,
        }
    }

    pub(crate) fn encode(&self, writer: &mut MessageWriter<'_>) {
        self.original.encode(writer, CTA_TUPLE_ORIG);
        self.reply.encode(writer, CTA_TUPLE_REPLY);
        let seconds = u32::try_from(self.timeout.as_secs()).unwrap_or(u32::MAX);
        writer
            .be32(CTA_STATUS, self.status.bits())
            .be32(CTA_TIMEOUT, seconds);
        if self.mark != 0 {
            writer.be32(CTA_MARK, self.mark);
        }
        if self.zone != 0 {
            writer.be16(CTA_ZONE, self.zone);
        }
    }

    /// Calls `see` with the entry in the form in which the kernel would send it.
    #[doc(hidden)]
    pub fn with_view<R>(&self, see: impl FnOnce(&EntryRef<'_>) -> R) -> R {
        let (mut bytes, family) = (Vec::new(), self.original.family());
        let header = NfGenMsg {
            family,
            resource: 0,
        };
        let mut writer = MessageWriter::nfnetlink(&mut bytes, 0, 0, 1, header);
        self.encode(&mut writer);
        writer.finish().unwrap();
        let (message, _) = crate::netlink::Message::split(&bytes).unwrap();
        see(&EntryRef::parse(message.payload).unwrap())
    }
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use chainwright_sys::nfnetlink_conntrack::{CTA_COUNTERS_PAD, CTA_TIMESTAMP_PAD};

    use super::*;
    use crate::nft::captured::hex;

    /// The payload of a dump's first message on Linux 6.18 (x86-64), with counters and timestamps enabled.
    const LISTED: &str = "
        02000000
        34000180 14000180 08000100 7f000001 08000200 7f000001
                 1c000280 05000100 06000000 06000200 9c400000 06000300 1f900000 ; CTA_TUPLE_ORIG
        34000280 14000180 08000100 7f000001 08000200 7f000001
                 1c000280 05000100 06000000 06000200 1f900000 06000300 9c400000 ; CTA_TUPLE_REPLY
        08000300 0000000e 08000800 00000000 08000c00 6b2680ad 08000b00 00000001 08000700 00069780
        30000480 2c000180 05000100 03000000 05000200 0a000000 05000300 0a000000
                          06000400 23000000 06000500 23000000 ; CTA_PROTOINFO
        1c000980 0c000100 00000000 00000003 0c000200 00000000 000000a9 ; CTA_COUNTERS_ORIG
        1c000a80 0c000100 00000000 00000002 0c000200 00000000 00000070 ; CTA_COUNTERS_REPLY
        10001480 0c000100 18ebb889 8d608c64 ; CTA_TIMESTAMP";

    /// Returns the attributes of an entry. Inserts an empty attribute before the nested 64-bit attributes at positions
    /// that `is_padded` accepts, as the kernel does on machines that require alignment.
    fn padded(attributes: &[u8], is_padded: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut all = Vec::new();
        let mut place = 0;
        for attribute in Attributes::new(attributes).map(Result::unwrap) {
            let padding = match attribute.kind {
                CTA_COUNTERS_ORIG | CTA_COUNTERS_REPLY => CTA_COUNTERS_PAD,
                CTA_TIMESTAMP => CTA_TIMESTAMP_PAD,
                _ => {
                    all.extend(attribute.raw);
                    continue;
                }
            };
            let start = all.len();
            all.extend(&attribute.raw[..4]);
            for wide in Attributes::new(attribute.payload).map(Result::unwrap) {
                if is_padded(place) {
                    all.extend([4_u16, padding].map(u16::to_ne_bytes).concat());
                }
                all.extend(wide.raw);
                place += 1;
            }
            let length = (all.len() - start) as u16;
            all[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        }
        assert_eq!(
            place, 5,
            "two counters for each direction, and the timestamps"
        );
        all
    }

    #[test]
    fn empty_attributes_before_wide_ones_change_nothing() {
        let listed = hex(LISTED);
        let (header, attributes) = listed.split_at(4);
        for which in 0..1 << 5 {
            let padded = padded(attributes, |place| which >> place & 1 != 0);
            assert_eq!(
                padded.len(),
                attributes.len() + 4 * (which as u32).count_ones() as usize
            );
            let payload = [header, &padded].concat();
            let entry = EntryRef::parse(&payload).unwrap();
            assert_eq!(
                entry.to_string(),
                "tcp ESTABLISHED src=127.0.0.1 dst=127.0.0.1 sport=40000 dport=8080 packets=3 bytes=169 \
                 src=127.0.0.1 dst=127.0.0.1 sport=8080 dport=40000 packets=2 bytes=112 [ASSURED] mark=0 \
                 timeout=432000",
                "{which:05b}"
            );
            let started = Duration::from_nanos(0x18eb_b889_8d60_8c64);
            let started = SystemTime::UNIX_EPOCH + started;
            assert_eq!(entry.started(), Some(started), "{which:05b}");
        }
    }
}
