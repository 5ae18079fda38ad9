//! `tunnel`: reads the tunnel metadata that a tunnel device attached to the packet, or will use.
//!
//! ```text
//! NFTA_TUNNEL_KEY    be32
//! NFTA_TUNNEL_DREG   be32
//! NFTA_TUNNEL_MODE   be32
//! ```
//!
//! The kernel lists all three. Linux 6.18 has this expression only in the family netdev (`ENOENT`
//! elsewhere), older kernels in all families.

use chainwright_sys::nf_tables::{
    NFT_TUNNEL_ID, NFT_TUNNEL_MODE_NONE, NFT_TUNNEL_MODE_RX, NFT_TUNNEL_MODE_TX, NFT_TUNNEL_PATH,
    NFTA_TUNNEL_DREG, NFTA_TUNNEL_KEY, NFTA_TUNNEL_MODE,
};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The key to read (`enum nft_tunnel_keys`).
    pub struct TunnelKey: u32 {
        /// Whether there is a tunnel, u8: 0 or 1.
        PATH = NFT_TUNNEL_PATH => "path",
        /// ID of the tunnel (such as a VNI), u32 in host byte order; without a tunnel the rule
        /// doesn't match.
        ID = NFT_TUNNEL_ID => "id",
    }
}

values! {
    /// The direction of the tunnel (`enum nft_tunnel_mode`).
    pub struct TunnelMode: u32 {
        /// Either direction.
        NONE = NFT_TUNNEL_MODE_NONE => "none",
        /// The packet was received through the tunnel.
        RX = NFT_TUNNEL_MODE_RX => "rx",
        /// The packet will be sent through the tunnel.
        TX = NFT_TUNNEL_MODE_TX => "tx",
    }
}

expression! {
    "tunnel"
    /// Reads a key of the packet's tunnel metadata into a register
    /// (`enum nft_tunnel_attributes`).
    pub struct Tunnel viewed as TunnelRef {
        /// Key to read.
        NFTA_TUNNEL_KEY => key: TunnelKey,
        /// Destination register.
        NFTA_TUNNEL_DREG => dreg: Register,
        /// Direction of the tunnel; either direction if absent.
        NFTA_TUNNEL_MODE => mode: TunnelMode,
    }
}

impl Tunnel {
    /// Reads a key into a register.
    #[must_use]
    pub const fn load(key: TunnelKey, mode: TunnelMode, dreg: Register) -> Self {
        Self {
            key: Some(key),
            dreg: Some(dreg),
            mode: Some(mode),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like libnftnl: without the mode.
impl std::fmt::Display for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(dreg) = self.dreg else {
            return f.write_str("[ tunnel ]");
        };
        let key = self.key.unwrap_or_default().name().unwrap_or("unknown");
        write!(f, "[ tunnel load {key} => reg {} ]", dreg.0)
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
            "a number 2",
            Tunnel::load(TunnelKey::ID, TunnelMode::RX, Register::R1),
        );
        assert_built(
            "listed: id",
            Tunnel::load(TunnelKey::ID, TunnelMode::NONE, Register::R1),
        );
    }
}
