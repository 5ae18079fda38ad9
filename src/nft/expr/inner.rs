//! `inner`: applies an expression to the packet inside a tunnel. Since Linux 6.2.
//!
//! ```text
//! NFTA_INNER_NUM       be32: 0
//! NFTA_INNER_TYPE      be32
//! NFTA_INNER_FLAGS     be32
//! NFTA_INNER_HDRSIZE   be32
//! NFTA_INNER_EXPR      nested: a `payload` or a `meta`
//!   NFTA_EXPR_NAME     string
//!   NFTA_EXPR_DATA     nested
//! ```
//!
//! The kernel requires all of them.

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{
    NFT_INNER_GENEVE, NFT_INNER_LL, NFT_INNER_NH, NFT_INNER_TH, NFT_INNER_VXLAN, NFTA_INNER_EXPR,
    NFTA_INNER_FLAGS, NFTA_INNER_HDRSIZE, NFTA_INNER_NUM, NFTA_INNER_TYPE,
};

use super::{Expression, NestedExpression, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::{flags, values};

values! {
    /// The type of the tunnel (`enum nft_inner_type`).
    pub struct InnerType: u32 {
        /// VXLAN.
        VXLAN = NFT_INNER_VXLAN => "vxlan",
        /// Geneve, with variable-length options after its header.
        GENEVE = NFT_INNER_GENEVE => "geneve",
    }
}

flags! {
    /// The headers in the tunnel (`enum nft_inner_flags`).
    pub struct InnerFlags: u32 {
        /// A tunnel header of `hdrsize` bytes.
        const HDRSIZE = sys::NFT_INNER_HDRSIZE,
        /// Followed by a link layer header.
        const LL = NFT_INNER_LL,
        /// Followed by a network header.
        const NH = NFT_INNER_NH,
        /// Followed by a transport header.
        const TH = NFT_INNER_TH,
    }
}

expression! {
    "inner"
    /// Applies an expression to the packet inside a tunnel (`enum nft_inner_attributes`).
    pub struct Inner<'a> viewed as InnerRef {
        /// Nesting depth of the tunnel: only 0 so far.
        NFTA_INNER_NUM => num: u32,
        /// Type of the tunnel.
        NFTA_INNER_TYPE => inner_type: InnerType,
        /// Headers in the tunnel.
        NFTA_INNER_FLAGS => flags: InnerFlags,
        /// Size of the tunnel's header in bytes, 1 to 64.
        NFTA_INNER_HDRSIZE => hdrsize: u32,
        /// Expression to apply: a [`Payload`](super::Payload) or a [`Meta`](super::Meta).
        NFTA_INNER_EXPR => expr: NestedExpression<'a>,
    }
}

impl Inner<'static> {
    /// Applies a `payload` or a `meta` to the packet inside a VXLAN tunnel.
    #[must_use]
    pub fn vxlan<E: Expression>(expression: &E) -> Self {
        Self::new(InnerType::VXLAN, expression)
    }

    /// Applies a `payload` or a `meta` to the packet inside a Geneve tunnel.
    #[must_use]
    pub fn geneve<E: Expression>(expression: &E) -> Self {
        Self::new(InnerType::GENEVE, expression)
    }

    /// Creates the expression for a tunnel with a header of eight bytes that carries Ethernet
    /// frames.
    fn new<E: Expression>(inner_type: InnerType, expression: &E) -> Self {
        Self {
            num: Some(0),
            inner_type: Some(inner_type),
            flags: Some(InnerFlags::HDRSIZE | InnerFlags::LL | InnerFlags::NH | InnerFlags::TH),
            hdrsize: Some(8),
            expr: Some(NestedExpression::new(expression)),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like later versions of libnftnl (1.2.4 does not know it); missing values as 0, and a
/// missing or malformed expression as `[ ]`.
impl std::fmt::Display for Inner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "[ inner type {} hdrsize {} flags {:x} ",
            self.inner_type.unwrap_or_default().0,
            self.hdrsize.unwrap_or_default(),
            self.flags.unwrap_or_default().bits(),
        )?;
        match self.expr.as_ref().map(NestedExpression::decode) {
            Some(Ok(expression)) => write!(f, "{expression} ]"),
            _ => f.write_str("[ ] ]"),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::captured::hex;
    use crate::nft::expr::tests::cases::assert_built;
    use crate::nft::expr::{Meta, MetaKey, Payload, PayloadBase, Register};

    #[test]
    fn constructors() {
        assert_built(
            "the source inside vxlan",
            Inner::vxlan(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1)),
        );
        assert_built(
            "the protocol inside geneve",
            Inner::geneve(&Meta::load(MetaKey::L4PROTO, Register::R1)),
        );
    }

    /// This crate's own output for an expression whose attribute is too short.
    #[test]
    fn a_malformed_expression_is_printed_as_none() {
        let short = hex("09000100 6d657461 00000000 0c000200 06000100 00000000");
        let malformed = Inner {
            expr: crate::nft::declare::Field::decode(&short),
            ..Inner::default()
        };
        assert!(malformed.expr.is_some());
        assert_eq!(
            malformed.to_string(),
            "[ inner type 0 hdrsize 0 flags 0 [ ] ]"
        );
    }
}
