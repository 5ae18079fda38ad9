//! `synproxy`: answers TCP handshakes in place of the server, and forwards only completed ones.
//!
//! ```text
//! NFTA_SYNPROXY_MSS      be16
//! NFTA_SYNPROXY_WSCALE   u8
//! NFTA_SYNPROXY_FLAGS    be32
//! ```
//!
//! The kernel lists all three, 0 by default.

use chainwright_sys::nf_tables::{NFTA_SYNPROXY_FLAGS, NFTA_SYNPROXY_MSS, NFTA_SYNPROXY_WSCALE};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::declare::flags;

flags! {
    /// The TCP options of the answer (`NF_SYNPROXY_OPT_*`, `linux/netfilter/nf_synproxy.h`).
    pub struct SynproxyFlags: u32 {
        /// Maximum segment size.
        const MSS = 0x01,
        /// Window scale.
        const WSCALE = 0x02,
        /// Selective acknowledgement.
        const SACK_PERM = 0x04,
        /// Timestamps, which window scale and selective acknowledgement require.
        const TIMESTAMP = 0x08,
        /// Explicit congestion notification: the kernel refuses it here (`EOPNOTSUPP`).
        const ECN = 0x10,
    }
}

expression! {
    "synproxy"
    /// Answers TCP handshakes in place of the server (`enum nft_synproxy_attributes`). The
    /// announced options must be those of the server.
    pub struct Synproxy viewed as SynproxyRef {
        /// The server's maximum segment size, in bytes.
        NFTA_SYNPROXY_MSS => mss: u16,
        /// The server's window scale, as a power of two.
        NFTA_SYNPROXY_WSCALE => wscale: u8,
        /// Announced options.
        NFTA_SYNPROXY_FLAGS => flags: SynproxyFlags,
    }
}

impl Synproxy {
    /// Announces these options; values without their flag are not announced.
    #[must_use]
    pub const fn new(mss: u16, wscale: u8, flags: SynproxyFlags) -> Self {
        Self {
            mss: Some(mss),
            wscale: Some(wscale),
            flags: Some(flags),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`: without the flags, and without the values if one is missing.
impl std::fmt::Display for Synproxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.mss, self.wscale) {
            (Some(mss), Some(wscale)) => write!(f, "[ synproxy mss {mss} wscale {wscale} ]"),
            _ => f.write_str("[ synproxy ]"),
        }
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

    /// The flags of `mss 1460 wscale 7 timestamp sack-perm` in nft.
    const ALL: SynproxyFlags = SynproxyFlags::MSS
        .union(SynproxyFlags::WSCALE)
        .union(SynproxyFlags::SACK_PERM)
        .union(SynproxyFlags::TIMESTAMP);

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_SYNPROXY_MSS", Wire::Be16),
            (2, "NFTA_SYNPROXY_WSCALE", Wire::U8),
            (3, "NFTA_SYNPROXY_FLAGS", Wire::Be32),
        ];
        assert_layout::<Synproxy>(Synproxy::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule inet t c synproxy mss 1460 wscale 7 timestamp sack-perm`.
    #[test]
    fn all_options() {
        assert_element(
            Decoded::Synproxy,
            Synproxy {
                mss: Some(1460),
                wscale: Some(7),
                flags: Some(ALL),
                ..Default::default()
            },
            "
                30000180                             ; NFTA_LIST_ELEM
                0d000100 73796e70 726f7879 00000000  ;   NFTA_EXPR_NAME: synproxy
                1c000280                             ;   NFTA_EXPR_DATA
                06000100 05b40000                    ;     NFTA_SYNPROXY_MSS
                05000200 07000000                    ;     NFTA_SYNPROXY_WSCALE
                08000300 0000000f                    ;     NFTA_SYNPROXY_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `synproxy`, `synproxy mss 1460`, `synproxy wscale 7`, `synproxy sack-perm`,
    /// `synproxy timestamp`.
    #[test]
    fn one_option() {
        for (synproxy, sent) in [
            (
                Synproxy::new(0, 0, SynproxyFlags::empty()),
                "06000100 00000000 05000200 00000000 08000300 00000000",
            ),
            (
                Synproxy::new(1460, 0, SynproxyFlags::MSS),
                "06000100 05b40000 05000200 00000000 08000300 00000001",
            ),
            (
                Synproxy::new(0, 7, SynproxyFlags::WSCALE),
                "06000100 00000000 05000200 07000000 08000300 00000002",
            ),
            (
                Synproxy::new(0, 0, SynproxyFlags::SACK_PERM),
                "06000100 00000000 05000200 00000000 08000300 00000004",
            ),
            (
                Synproxy::new(0, 0, SynproxyFlags::TIMESTAMP),
                "06000100 00000000 05000200 00000000 08000300 00000008",
            ),
        ] {
            assert_attributes(Decoded::Synproxy, synproxy, sent);
        }
    }

    /// Listed after nft 1.0.6:
    /// `add rule inet t c synproxy mss 1460 wscale 7 timestamp sack-perm`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Synproxy,
            Synproxy::new(1460, 7, ALL),
            "
                30000100 0d000100 73796e70 726f7879 00000000 1c000200 06000100 05b40000
                05000200 07000000 08000300 0000000f
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them; the last two as libnftnl 1.2.4 prints attributes
    /// that no kernel lists.
    #[test]
    fn bytecode() {
        for (synproxy, line) in [
            (
                Synproxy::new(1460, 7, ALL),
                "[ synproxy mss 1460 wscale 7 ]",
            ),
            (
                Synproxy::new(0, 0, SynproxyFlags::empty()),
                "[ synproxy mss 0 wscale 0 ]",
            ),
            (
                Synproxy {
                    mss: None,
                    ..Synproxy::new(0, 7, SynproxyFlags::WSCALE)
                },
                "[ synproxy ]",
            ),
            (Synproxy::default(), "[ synproxy ]"),
        ] {
            assert_eq!(synproxy.to_string(), line);
        }
    }
}
