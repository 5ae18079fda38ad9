//! `masq`: changes a connection's source to the address of the output interface.
//!
//! All attributes are be32 and optional.

use chainwright_sys::nf_tables::{
    NFTA_MASQ_FLAGS, NFTA_MASQ_REG_PROTO_MAX, NFTA_MASQ_REG_PROTO_MIN,
};

use super::nat::print_ports;
use super::{NatRangeFlags, Register, expression};

expression! {
    "masq"
    /// Masquerades (`enum nft_masq_attributes`).
    pub struct Masq viewed as MasqRef {
        /// Flags.
        NFTA_MASQ_FLAGS => flags: NatRangeFlags,
        /// First port.
        NFTA_MASQ_REG_PROTO_MIN => proto_min: Register,
        /// Last port.
        NFTA_MASQ_REG_PROTO_MAX => proto_max: Register,
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Masq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ masq ")?;
        print_ports(f, [self.proto_min, self.proto_max], self.flags)
    }
}
