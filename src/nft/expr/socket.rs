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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_SOCKET_KEY", Wire::Be32),
            (2, "NFTA_SOCKET_DREG", Wire::Be32),
            (3, "NFTA_SOCKET_LEVEL", Wire::Be32),
        ];
        assert_layout::<Socket>(Socket::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule inet t c socket cgroupv2 level 1 "."`.
    #[test]
    fn a_control_group() {
        assert_element(
            Decoded::Socket,
            Socket {
                key: Some(SocketKey::CGROUPV2),
                dreg: Some(Register::R1),
                level: Some(1),
                ..Default::default()
            },
            "
                2c000180                    ; NFTA_LIST_ELEM
                0b000100 736f636b 65740000  ;   NFTA_EXPR_NAME: socket
                1c000280                    ;   NFTA_EXPR_DATA
                08000100 00000003           ;     NFTA_SOCKET_KEY
                08000200 00000001           ;     NFTA_SOCKET_DREG
                08000300 00000001           ;     NFTA_SOCKET_LEVEL
            ",
        );
    }

    /// nft 1.0.6: `socket transparent 1`, `socket mark 0x5`, `socket wildcard 0`.
    #[test]
    fn keys() {
        for (key, sent) in [
            (
                SocketKey::TRANSPARENT,
                "08000100 00000000 08000200 00000001 08000300 00000000",
            ),
            (
                SocketKey::MARK,
                "08000100 00000001 08000200 00000001 08000300 00000000",
            ),
            (
                SocketKey::WILDCARD,
                "08000100 00000002 08000200 00000001 08000300 00000000",
            ),
        ] {
            let socket = Socket {
                level: Some(0),
                ..Socket::load(key, Register::R1)
            };
            assert_attributes(Decoded::Socket, socket, sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule inet t c socket mark 0x5` and
    /// `add rule inet t c socket cgroupv2 level 1 "."`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Socket,
            Socket::load(SocketKey::MARK, Register::R1),
            "
                24000100 0b000100 736f636b 65740000 14000200 08000100 00000001 08000200
                00000001
            ",
        );
        assert_listed(
            Decoded::Socket,
            Socket::cgroupv2(1, Register::R1),
            "
                2c000100 0b000100 736f636b 65740000 1c000200 08000100 00000003 08000200
                00000001 08000300 00000001
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them; the last two as libnftnl 1.2.4 prints an unknown
    /// key, and a missing register.
    #[test]
    fn bytecode() {
        for (socket, line) in [
            (
                Socket::load(SocketKey::TRANSPARENT, Register::R1),
                "[ socket load transparent => reg 1 ]",
            ),
            (
                Socket::load(SocketKey::MARK, Register::R1),
                "[ socket load mark => reg 1 ]",
            ),
            (
                Socket::load(SocketKey::WILDCARD, Register::R1),
                "[ socket load wildcard => reg 1 ]",
            ),
            (
                Socket::cgroupv2(1, Register::R1),
                "[ socket load cgroupv2 => reg 1 ]",
            ),
            (
                Socket::load(SocketKey(4), Register::R1),
                "[ socket load unknown => reg 1 ]",
            ),
            (Socket::default(), "[ socket ]"),
        ] {
            assert_eq!(socket.to_string(), line);
        }
    }
}
