//! `ct`: reads or sets properties of the packet's conntrack entry.
//!
//! ```text
//! NFTA_CT_KEY         be32
//! NFTA_CT_DREG        be32
//! NFTA_CT_DIRECTION   u8
//! NFTA_CT_SREG        be32
//! ```

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{NFTA_CT_DIRECTION, NFTA_CT_DREG, NFTA_CT_KEY, NFTA_CT_SREG};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The key to read or set (`enum nft_ct_keys`). Numbers are in host byte order; addresses and
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
        /// Milliseconds until the conntrack entry expires, u32.
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
        LABELS = sys::NFT_CT_LABELS => "label",
        /// Number of packets so far, u64.
        PKTS = sys::NFT_CT_PKTS => "packets",
        /// Number of bytes so far, u64.
        BYTES = sys::NFT_CT_BYTES => "bytes",
        /// Average bytes per packet, u64.
        AVGPKT = sys::NFT_CT_AVGPKT => "avgpkt",
        /// Zone, u16.
        ZONE = sys::NFT_CT_ZONE => "zone",
        /// Mask of the events to report (`1 << IPCT_*`), u32.
        EVENTMASK = sys::NFT_CT_EVENTMASK => "event",
        /// IPv4 source address in a direction.
        SRC_IP = sys::NFT_CT_SRC_IP => "src_ip",
        /// IPv4 destination address in a direction.
        DST_IP = sys::NFT_CT_DST_IP => "dst_ip",
        /// IPv6 source address in a direction.
        SRC_IP6 = sys::NFT_CT_SRC_IP6 => "src_ip6",
        /// IPv6 destination address in a direction.
        DST_IP6 = sys::NFT_CT_DST_IP6 => "dst_ip6",
        /// ID of the conntrack entry, u32.
        ID = sys::NFT_CT_ID => "id",
    }
}

values! {
    /// Direction of a connection (`enum ip_conntrack_dir`).
    pub struct CtDirection: u8 {
        /// The direction of the first packet.
        ORIGINAL = 0 => "original",
        /// The direction of the replies.
        REPLY = 1 => "reply",
    }
}

expression! {
    "ct"
    /// Reads a key into a register (`dreg`), or sets it from one (`sreg`)
    /// (`enum nft_ct_attributes`).
    pub struct Ct viewed as CtRef,
    listed as [dreg, sreg, key, direction] {
        /// Key to read or set.
        NFTA_CT_KEY => key: CtKey,
        /// Destination register of a read.
        NFTA_CT_DREG => dreg: Register,
        /// Direction, for the keys that depend on it.
        NFTA_CT_DIRECTION => direction: CtDirection,
        /// Source register of a write.
        NFTA_CT_SREG => sreg: Register,
    }
}

impl Ct {
    /// Reads a key into a register.
    #[must_use]
    pub const fn load(key: CtKey, dreg: Register) -> Self {
        Self {
            key: Some(key),
            dreg: Some(dreg),
            direction: None,
            sreg: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Sets a key from a register.
    #[must_use]
    pub const fn set(key: CtKey, sreg: Register) -> Self {
        Self {
            key: Some(key),
            dreg: None,
            direction: None,
            sreg: Some(sreg),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Ct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = match self.key.unwrap_or_default() {
            CtKey::ID => "unknown", // unknown to libnftnl 1.2.4
            key => key.name().unwrap_or("unknown"),
        };
        match (self.dreg, self.sreg) {
            (Some(dreg), _) => write!(f, "[ ct load {key} => reg {} ", dreg.0)?,
            (None, Some(sreg)) => write!(f, "[ ct set {key} with reg {} ", sreg.0)?,
            (None, None) => f.write_str("[ ct ")?,
        }
        if let Some(direction) = self.direction {
            write!(f, ", dir {} ", direction.name().unwrap_or("unknown"))?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("ct state new", Ct::load(CtKey::STATE, Register::R1));
        assert_built("ct mark set 0x4000", Ct::set(CtKey::MARK, Register::R1));
        assert_built(
            "of [ ct load mark => reg 1 ]",
            Ct::load(CtKey::MARK, Register::R1),
        );
        assert_built(
            "ct event set new,destroy",
            Ct::set(CtKey::EVENTMASK, Register::R1),
        );
    }

    /// The names of all keys, ordered by number.
    #[test]
    fn keys_have_names() {
        let names: Vec<_> = (0..23).map(|key| CtKey(key).name().unwrap()).collect();
        assert_eq!(
            names.join(" "),
            "state direction status mark secmark expiration helper l3protocol src dst protocol \
             proto_src proto_dst label packets bytes avgpkt zone event src_ip dst_ip src_ip6 \
             dst_ip6"
        );
    }
}
