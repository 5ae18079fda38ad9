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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (2, "NFTA_CT_KEY", Wire::Be32),
            (1, "NFTA_CT_DREG", Wire::Be32),
            (3, "NFTA_CT_DIRECTION", Wire::U8),
            (4, "NFTA_CT_SREG", Wire::Be32),
        ];
        assert_layout::<Ct>(Ct::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c ct original saddr 10.1.2.3`.
    #[test]
    fn an_address_in_a_direction() {
        assert_element(
            Decoded::Ct,
            Ct {
                key: Some(CtKey::SRC),
                dreg: Some(Register::R1),
                direction: Some(CtDirection::ORIGINAL),
                sreg: None,
                ..Default::default()
            },
            "
                28000180           ; NFTA_LIST_ELEM
                07000100 63740000  ;   NFTA_EXPR_NAME: ct
                1c000280           ;   NFTA_EXPR_DATA
                08000200 00000008  ;     NFTA_CT_KEY
                08000100 00000001  ;     NFTA_CT_DREG
                05000300 00000000  ;     NFTA_CT_DIRECTION
            ",
        );
        // nft 1.0.6: `add rule ip t c ct reply ip daddr 10.0.0.1`.
        assert_attributes(
            Decoded::Ct,
            Ct {
                direction: Some(CtDirection::REPLY),
                ..Ct::load(CtKey::DST_IP, Register::R1)
            },
            "08000200 00000014 08000100 00000001 05000300 01000000",
        );
    }

    /// nft 1.0.6: `ct state new`, `ct mark set 0x4000`, `ct zone set 5`,
    /// `ct event set new,destroy`.
    #[test]
    fn reads_and_sets() {
        assert_attributes(
            Decoded::Ct,
            Ct::load(CtKey::STATE, Register::R1),
            "08000200 00000000 08000100 00000001",
        );
        for (key, sent) in [
            (CtKey::MARK, "08000200 00000003 08000400 00000001"),
            (CtKey::ZONE, "08000200 00000011 08000400 00000001"),
            (CtKey::EVENTMASK, "08000200 00000012 08000400 00000001"),
        ] {
            assert_attributes(Decoded::Ct, Ct::set(key, Register::R1), sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule ip t c ct original saddr 10.1.2.3 …` and
    /// `add rule ip t c ct mark set meta mark << 8`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Ct,
            Ct {
                direction: Some(CtDirection::ORIGINAL),
                ..Ct::load(CtKey::SRC, Register::R1)
            },
            "
                28000100 07000100 63740000 1c000200 08000100 00000001 08000200 00000008
                05000300 00000000
            ",
        );
        assert_listed(
            Decoded::Ct,
            Ct::set(CtKey::MARK, Register::R1),
            "20000100 07000100 63740000 14000200 08000400 00000001 08000200 00000003",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after `ct mark`,
    /// `ct original saddr`, `ct original ip saddr`, `ct original packets`, `ct label`, `ct id`
    /// (which it prints as unknown), `ct mark set`, `ct event set`. The last five, which have no
    /// syntax in nft 1.0.6, were printed by its libnftnl from handmade attributes.
    #[test]
    fn bytecode() {
        let original = |key| Ct {
            direction: Some(CtDirection::ORIGINAL),
            ..Ct::load(key, Register::R1)
        };
        let in_direction = |direction, ct| Ct {
            direction: Some(CtDirection(direction)),
            ..ct
        };
        for (ct, line) in [
            (
                Ct::load(CtKey::MARK, Register::R1),
                "[ ct load mark => reg 1 ]",
            ),
            (
                original(CtKey::SRC),
                "[ ct load src => reg 1 , dir original ]",
            ),
            (
                original(CtKey::SRC_IP),
                "[ ct load src_ip => reg 1 , dir original ]",
            ),
            (
                original(CtKey::PKTS),
                "[ ct load packets => reg 1 , dir original ]",
            ),
            (
                Ct::load(CtKey::LABELS, Register::R1),
                "[ ct load label => reg 1 ]",
            ),
            (
                Ct::load(CtKey::ID, Register::R1),
                "[ ct load unknown => reg 1 ]",
            ),
            (
                Ct::set(CtKey::MARK, Register::R1),
                "[ ct set mark with reg 1 ]",
            ),
            (
                Ct::set(CtKey::EVENTMASK, Register::R1),
                "[ ct set event with reg 1 ]",
            ),
            (
                in_direction(1, Ct::load(CtKey::DST_IP6, Register::word(1))),
                "[ ct load dst_ip6 => reg 9 , dir reply ]",
            ),
            (
                in_direction(1, Ct::set(CtKey::ZONE, Register::R1)),
                "[ ct set zone with reg 1 , dir reply ]",
            ),
            (
                in_direction(2, Ct::load(CtKey::SRC, Register::R1)),
                "[ ct load src => reg 1 , dir unknown ]",
            ),
            (
                Ct::load(CtKey(24), Register::R1),
                "[ ct load unknown => reg 1 ]",
            ),
            (Ct::default(), "[ ct ]"),
        ] {
            assert_eq!(ct.to_string(), line);
        }
        // The names of all keys, ordered by number.
        let names: Vec<_> = (0..23).map(|key| CtKey(key).name().unwrap()).collect();
        assert_eq!(
            names.join(" "),
            "state direction status mark secmark expiration helper l3protocol src dst protocol \
             proto_src proto_dst label packets bytes avgpkt zone event src_ip dst_ip src_ip6 \
             dst_ip6"
        );
    }
}
