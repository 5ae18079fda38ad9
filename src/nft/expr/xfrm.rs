//! `xfrm`: reads the IPsec state that transformed the packet, or that will transform it.
//!
//! ```text
//! NFTA_XFRM_KEY     be32
//! NFTA_XFRM_DIR     u8
//! NFTA_XFRM_SPNUM   be32, at most 5
//! NFTA_XFRM_DREG    be32
//! ```

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{NFTA_XFRM_DIR, NFTA_XFRM_DREG, NFTA_XFRM_KEY, NFTA_XFRM_SPNUM};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The key to read (`enum nft_xfrm_keys`). Addresses are those of the tunnel, in network order;
    /// a state in another mode has none, and the rule doesn't match.
    pub struct XfrmKey: u32 {
        /// IPv4 destination, 4 bytes.
        DADDR_IP4 = sys::NFT_XFRM_KEY_DADDR_IP4 => "daddr4",
        /// IPv6 destination, 16 bytes.
        DADDR_IP6 = sys::NFT_XFRM_KEY_DADDR_IP6 => "daddr6",
        /// IPv4 source, 4 bytes.
        SADDR_IP4 = sys::NFT_XFRM_KEY_SADDR_IP4 => "saddr4",
        /// IPv6 source, 16 bytes.
        SADDR_IP6 = sys::NFT_XFRM_KEY_SADDR_IP6 => "saddr6",
        /// Request ID, u32 in host byte order.
        REQID = sys::NFT_XFRM_KEY_REQID => "reqid",
        /// Security parameter index, u32 in network order.
        SPI = sys::NFT_XFRM_KEY_SPI => "spi",
    }
}

values! {
    /// The direction of the packet (`XFRM_POLICY_*`, `linux/xfrm.h`).
    pub struct XfrmDirection: u8 {
        /// Received through IPsec.
        IN = 0 => "in",
        /// Will be sent through IPsec.
        OUT = 1 => "out",
    }
}

expression! {
    "xfrm"
    /// Reads a key of an IPsec state of the packet into a register (`enum nft_xfrm_attributes`);
    /// the rule doesn't match a packet without such a state.
    pub struct Xfrm viewed as XfrmRef,
    listed as [dreg, key, dir, spnum] {
        /// Key to read.
        NFTA_XFRM_KEY => key: XfrmKey,
        /// Direction of the packet.
        NFTA_XFRM_DIR => dir: XfrmDirection,
        /// Index of the packet's state, from 0.
        NFTA_XFRM_SPNUM => spnum: u32,
        /// Destination register.
        NFTA_XFRM_DREG => dreg: Register,
    }
}

impl Xfrm {
    /// Reads a key of the packet's state with this index, from 0 to 5, into a register.
    #[must_use]
    pub const fn load(key: XfrmKey, dir: XfrmDirection, spnum: u32, dreg: Register) -> Self {
        Self {
            key: Some(key),
            dir: Some(dir),
            spnum: Some(spnum),
            dreg: Some(dreg),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Xfrm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(dreg) = self.dreg else {
            return f.write_str("[ xfrm ]");
        };
        let dir = self.dir.unwrap_or_default().name().unwrap_or("unknown");
        let key = self.key.unwrap_or_default();
        let key = match key.name() {
            None if key.0 == sys::NFT_XFRM_KEY_UNSPEC => "(null)",
            name => name.unwrap_or("unknown"),
        };
        let spnum = self.spnum.unwrap_or_default();
        write!(f, "[ xfrm load {dir} {spnum} {key} => reg {} ]", dreg.0)
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
            "ipsec in spnum 2 spi 0x100",
            Xfrm::load(XfrmKey::SPI, XfrmDirection::IN, 2, Register::R1),
        );
        assert_built(
            "ipsec out reqid 1",
            Xfrm::load(XfrmKey::REQID, XfrmDirection::OUT, 0, Register::R1),
        );
    }
}
