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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "rt ip6 nexthop 2001:db8::1",
            Rt::load(RtKey::NEXTHOP6, Register::R1),
        );
    }
}
