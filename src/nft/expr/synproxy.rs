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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("synproxy", Synproxy::new(0, 0, SynproxyFlags::empty()));
        assert_built(
            "synproxy mss 1460",
            Synproxy::new(1460, 0, SynproxyFlags::MSS),
        );
        assert_built(
            "synproxy wscale 7",
            Synproxy::new(0, 7, SynproxyFlags::WSCALE),
        );
    }
}
