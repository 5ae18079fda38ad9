//! `redir`: changes a connection's destination to this machine.
//!
//! All attributes are be32 and optional.

use chainwright_sys::nf_tables::{
    NFTA_REDIR_FLAGS, NFTA_REDIR_REG_PROTO_MAX, NFTA_REDIR_REG_PROTO_MIN,
};

use super::nat::print_ports;
use super::{NatRangeFlags, Register, expression};

expression! {
    "redir"
    /// Redirects to this machine (`enum nft_redir_attributes`).
    pub struct Redir viewed as RedirRef {
        /// First port.
        NFTA_REDIR_REG_PROTO_MIN => proto_min: Register,
        /// Last port.
        NFTA_REDIR_REG_PROTO_MAX => proto_max: Register,
        /// Flags.
        NFTA_REDIR_FLAGS => flags: NatRangeFlags,
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Redir {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ redir ")?;
        print_ports(f, [self.proto_min, self.proto_max], self.flags)
    }
}
