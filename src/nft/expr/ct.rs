//! `ct`: reads or sets what connection tracking knows of a packet.

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{NFTA_CT_DIRECTION, NFTA_CT_DREG, NFTA_CT_KEY, NFTA_CT_SREG};

use super::{Register, expression};
use crate::nft::declare::values;

values! {
    /// What to read or set (`enum nft_ct_keys`). Numbers are in host byte order; addresses and
    /// ports in network order.
    pub struct CtKey: u32 {
        /// State as a bit (`NF_CT_STATE_*`), u32.
        STATE = sys::NFT_CT_STATE => "state",
        /// Direction, 0 original and 1 reply, u8.
        DIRECTION = sys::NFT_CT_DIRECTION => "direction",
        /// Status bits (`IPS_*`), u32.
        STATUS = sys::NFT_CT_STATUS => "status",
        /// Mark of the connection, u32.
        MARK = sys::NFT_CT_MARK => "mark",
        /// Security mark of the connection, u32.
        SECMARK = sys::NFT_CT_SECMARK => "secmark",
        /// Milliseconds until the connection expires, u32.
        EXPIRATION = sys::NFT_CT_EXPIRATION => "expiration",
        /// Name of the helper, 16 bytes.
        HELPER = sys::NFT_CT_HELPER => "helper",
        /// Family of the connection, u8.
        L3PROTOCOL = sys::NFT_CT_L3PROTOCOL => "l3protocol",
        /// Source address in a direction, 4 or 16 bytes.
        SRC = sys::NFT_CT_SRC => "src",
        /// Destination address in a direction, 4 or 16 bytes.
        DST = sys::NFT_CT_DST => "dst",
        /// Layer-4 protocol, u8.
        PROTOCOL = sys::NFT_CT_PROTOCOL => "protocol",
        /// Source port in a direction, be16.
        PROTO_SRC = sys::NFT_CT_PROTO_SRC => "proto_src",
        /// Destination port in a direction, be16.
        PROTO_DST = sys::NFT_CT_PROTO_DST => "proto_dst",
        /// Labels, 16 bytes.
        LABELS = sys::NFT_CT_LABELS => "labels",
        /// Packets so far, u64.
        PKTS = sys::NFT_CT_PKTS => "packets",
        /// Bytes so far, u64.
        BYTES = sys::NFT_CT_BYTES => "bytes",
        /// Average bytes a packet, u64.
        AVGPKT = sys::NFT_CT_AVGPKT => "avgpkt",
        /// Zone, u16.
        ZONE = sys::NFT_CT_ZONE => "zone",
        /// Mask of the events to be told of, u16.
        EVENTMASK = sys::NFT_CT_EVENTMASK => "event",
        /// IPv4 source address in a direction.
        SRC_IP = sys::NFT_CT_SRC_IP => "src_ip",
        /// IPv4 destination address in a direction.
        DST_IP = sys::NFT_CT_DST_IP => "dst_ip",
        /// IPv6 source address in a direction.
        SRC_IP6 = sys::NFT_CT_SRC_IP6 => "src_ip6",
        /// IPv6 destination address in a direction.
        DST_IP6 = sys::NFT_CT_DST_IP6 => "dst_ip6",
        /// Number of the connection, u32.
        ID = sys::NFT_CT_ID => "id",
    }
}

values! {
    /// Direction of a connection (`enum ip_conntrack_dir`).
    pub struct CtDirection: u8 {
        /// As the first packet went.
        ORIGINAL = 0 => "original",
        /// As the replies go.
        REPLY = 1 => "reply",
    }
}

expression! {
    "ct"
    /// Reads a key into a register (`dreg`), or sets it from one (`sreg`)
    /// (`enum nft_ct_attributes`).
    pub struct Ct {
        /// Where what was read goes.
        NFTA_CT_DREG => dreg: Register,
        /// What to read or set.
        NFTA_CT_KEY => key: CtKey,
        /// Direction, for the keys that depend on it.
        NFTA_CT_DIRECTION => direction: CtDirection,
        /// Where what is set comes from.
        NFTA_CT_SREG => sreg: Register,
    }
}

impl Ct {
    /// Reads a key into a register.
    #[must_use]
    pub const fn load(key: CtKey, dreg: Register) -> Self {
        Self {
            dreg: Some(dreg),
            key: Some(key),
            direction: None,
            sreg: None,
        }
    }

    /// Sets a key from a register.
    #[must_use]
    pub const fn set(key: CtKey, sreg: Register) -> Self {
        Self {
            dreg: None,
            key: Some(key),
            direction: None,
            sreg: Some(sreg),
        }
    }
}
