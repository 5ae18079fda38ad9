//! `rt`: reads properties of the packet's route.
//!
//! ```text
//! NFTA_RT_KEY    be32
//! NFTA_RT_DREG   be32
//! ```

use chainwright_sys::nf_tables::{
    NFT_RT_CLASSID, NFT_RT_NEXTHOP4, NFT_RT_NEXTHOP6, NFT_RT_TCPMSS, NFT_RT_XFRM, NFTA_RT_DREG,
    NFTA_RT_KEY,
};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The key to read (`enum nft_rt_keys`).
    pub struct RtKey: u32 {
        /// Realm of the route, u32 in host byte order.
        CLASSID = NFT_RT_CLASSID => "classid",
        /// IPv4 address of the next hop, 4 bytes in network order.
        NEXTHOP4 = NFT_RT_NEXTHOP4 => "nexthop4",
        /// IPv6 address of the next hop, 16 bytes in network order.
        NEXTHOP6 = NFT_RT_NEXTHOP6 => "nexthop6",
        /// Maximum TCP segment size for the route's MTU, u16 in host byte order.
        TCPMSS = NFT_RT_TCPMSS => "tcpmss",
        /// Whether IPsec will transform the packet, u8: 0 or 1.
        XFRM = NFT_RT_XFRM => "ipsec",
    }
}

expression! {
    "rt"
    /// Reads a key of the packet's route into a register (`enum nft_rt_attributes`); the rule
    /// doesn't match a packet without a route.
    pub struct Rt viewed as RtRef {
        /// Key to read.
        NFTA_RT_KEY => key: RtKey,
        /// Destination register.
        NFTA_RT_DREG => dreg: Register,
    }
}

impl Rt {
    /// Reads a key into a register.
    #[must_use]
    pub const fn load(key: RtKey, dreg: Register) -> Self {
        Self {
            key: Some(key),
            dreg: Some(dreg),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Rt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(dreg) = self.dreg else {
            return f.write_str("[ rt ]");
        };
        let key = self.key.unwrap_or_default().name().unwrap_or("unknown");
        write!(f, "[ rt load {key} => reg {} ]", dreg.0)
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
            (2, "NFTA_RT_KEY", Wire::Be32),
            (1, "NFTA_RT_DREG", Wire::Be32),
        ];
        assert_layout::<Rt>(Rt::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule inet t c tcp option maxseg size set rt mtu`.
    #[test]
    fn a_segment_size() {
        assert_element(
            Decoded::Rt,
            Rt {
                key: Some(RtKey::TCPMSS),
                dreg: Some(Register::R1),
                ..Default::default()
            },
            "
                20000180           ; NFTA_LIST_ELEM
                07000100 72740000  ;   NFTA_EXPR_NAME: rt
                14000280           ;   NFTA_EXPR_DATA
                08000200 00000003  ;     NFTA_RT_KEY
                08000100 00000001  ;     NFTA_RT_DREG
            ",
        );
    }

    /// nft 1.0.6: `rt classid 0x5`, `rt ip nexthop 10.0.0.1`, `rt ip6 nexthop 2001:db8::1`,
    /// `rt ipsec exists`.
    #[test]
    fn keys() {
        for (key, sent) in [
            (RtKey::CLASSID, "08000200 00000000 08000100 00000001"),
            (RtKey::NEXTHOP4, "08000200 00000001 08000100 00000001"),
            (RtKey::NEXTHOP6, "08000200 00000002 08000100 00000001"),
            (RtKey::XFRM, "08000200 00000004 08000100 00000001"),
        ] {
            assert_attributes(Decoded::Rt, Rt::load(key, Register::R1), sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule inet t c rt ip6 nexthop 2001:db8::1`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Rt,
            Rt::load(RtKey::NEXTHOP6, Register::R1),
            "20000100 07000100 72740000 14000200 08000200 00000002 08000100 00000001",
        );
    }

    /// The rules above as nft 1.0.6 prints them; the last two as libnftnl 1.2.4 prints an unknown
    /// key, and a missing register.
    #[test]
    fn bytecode() {
        for (key, line) in [
            (RtKey::CLASSID, "[ rt load classid => reg 1 ]"),
            (RtKey::NEXTHOP4, "[ rt load nexthop4 => reg 1 ]"),
            (RtKey::NEXTHOP6, "[ rt load nexthop6 => reg 1 ]"),
            (RtKey::TCPMSS, "[ rt load tcpmss => reg 1 ]"),
            (RtKey::XFRM, "[ rt load ipsec => reg 1 ]"),
            (RtKey(5), "[ rt load unknown => reg 1 ]"),
        ] {
            assert_eq!(Rt::load(key, Register::R1).to_string(), line);
        }
        assert_eq!(Rt::default().to_string(), "[ rt ]");
    }
}
