//! `redir`: changes a connection's destination to this machine.

use chainwright_sys::nf_tables::{
    NFTA_REDIR_FLAGS, NFTA_REDIR_REG_PROTO_MAX, NFTA_REDIR_REG_PROTO_MIN,
};

use super::{NatRangeFlags, Register, expression};

expression! {
    "redir"
    /// Redirects to this machine (`enum nft_redir_attributes`).
    pub struct Redir {
        /// First port.
        NFTA_REDIR_REG_PROTO_MIN => proto_min: Register,
        /// Last port.
        NFTA_REDIR_REG_PROTO_MAX => proto_max: Register,
        /// Flags.
        NFTA_REDIR_FLAGS => flags: NatRangeFlags,
    }
}
