//! `masq`: changes a connection's source to the address of the interface that it leaves by.

use chainwright_sys::nf_tables::{
    NFTA_MASQ_FLAGS, NFTA_MASQ_REG_PROTO_MAX, NFTA_MASQ_REG_PROTO_MIN,
};

use super::{NatRangeFlags, Register, expression};

expression! {
    "masq"
    /// Masquerades (`enum nft_masq_attributes`).
    pub struct Masq {
        /// Flags.
        NFTA_MASQ_FLAGS => flags: NatRangeFlags,
        /// First port.
        NFTA_MASQ_REG_PROTO_MIN => proto_min: Register,
        /// Last port.
        NFTA_MASQ_REG_PROTO_MAX => proto_max: Register,
    }
}
