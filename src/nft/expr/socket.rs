//! `socket`: reads a property of the local socket that the packet belongs to.
//!
//! ```text
//! NFTA_SOCKET_KEY     be32
//! NFTA_SOCKET_DREG    be32
//! NFTA_SOCKET_LEVEL   be32, at most 255: with NFT_SOCKET_CGROUPV2
//! ```
//!
//! nft always sends the level, 0 with other keys; the kernel lists it only with that key.

use chainwright_sys::nf_tables::{
    NFT_SOCKET_CGROUPV2, NFT_SOCKET_MARK, NFT_SOCKET_TRANSPARENT, NFT_SOCKET_WILDCARD,
    NFTA_SOCKET_DREG, NFTA_SOCKET_KEY, NFTA_SOCKET_LEVEL,
};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The key to read (`enum nft_socket_keys`).
    pub struct SocketKey: u32 {
        /// Whether the socket has the option `IP_TRANSPARENT`, u8: 0 or 1.
        TRANSPARENT = NFT_SOCKET_TRANSPARENT => "transparent",
        /// Mark of the socket, u32 in host byte order.
        MARK = NFT_SOCKET_MARK => "mark",
        /// Whether the socket is bound to any address (`0.0.0.0` or `::`), u8: 0 or 1.
        WILDCARD = NFT_SOCKET_WILDCARD => "wildcard",
        /// ID of the socket's control group (version 2), or of one of its ancestors, u64 in host
        /// byte order.
        CGROUPV2 = NFT_SOCKET_CGROUPV2 => "cgroupv2",
    }
}

expression! {
    "socket"
    /// Reads a key of the packet's socket into a register (`enum nft_socket_attributes`); the rule
    /// doesn't match a packet without a local socket.
    pub struct Socket viewed as SocketRef {
        /// Key to read.
        NFTA_SOCKET_KEY => key: SocketKey,
        /// Destination register.
        NFTA_SOCKET_DREG => dreg: Register,
        /// Level of the control group below the root.
        NFTA_SOCKET_LEVEL => level: u32,
    }
}

impl Socket {
    /// Reads a key other than [`SocketKey::CGROUPV2`] into a register.
    #[must_use]
    pub const fn load(key: SocketKey, dreg: Register) -> Self {
        Self {
            key: Some(key),
            dreg: Some(dreg),
            level: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Reads the ID of the control group at this level below the root, at most 255, among the
    /// ancestors of the socket's.
    #[must_use]
    pub const fn cgroupv2(level: u32, dreg: Register) -> Self {
        Self {
            key: Some(SocketKey::CGROUPV2),
            dreg: Some(dreg),
            level: Some(level),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`: without the level.
impl std::fmt::Display for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(dreg) = self.dreg else {
            return f.write_str("[ socket ]");
        };
        let key = self.key.unwrap_or_default().name().unwrap_or("unknown");
        write!(f, "[ socket load {key} => reg {} ]", dreg.0)
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
            "listed: socket mark 0x5",
            Socket::load(SocketKey::MARK, Register::R1),
        );
        assert_built(
            "socket cgroupv2 level 1 \".\"",
            Socket::cgroupv2(1, Register::R1),
        );
        assert_built(
            "of [ socket load transparent => reg 1 ]",
            Socket::load(SocketKey::TRANSPARENT, Register::R1),
        );
    }
}
