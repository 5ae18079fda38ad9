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

    /// Both tunnels have a header of eight bytes and carry Ethernet frames.
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

/// nft 1.0.6 has no syntax for `inner`, and libnftnl 1.2.4 doesn't read it: the bytes are built
/// from the header, in the order of later versions of libnftnl, and Linux 6.18 accepted them.
#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed, hex,
    };
    use crate::nft::expr::{Decoded, Meta, MetaKey, Payload, PayloadBase, Register};

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_INNER_NUM", Wire::Be32),
            (2, "NFTA_INNER_TYPE", Wire::Be32),
            (3, "NFTA_INNER_FLAGS", Wire::Be32),
            (4, "NFTA_INNER_HDRSIZE", Wire::Be32),
            (5, "NFTA_INNER_EXPR", Wire::Expression),
        ];
        assert_layout::<Inner<'_>>(Inner::ATTRIBUTES, &layout);
    }

    /// Loads the source address.
    fn saddr() -> Payload {
        Payload {
            dreg: Some(Register::R1),
            base: Some(PayloadBase::NETWORK),
            offset: Some(12),
            len: Some(4),
            ..Default::default()
        }
    }

    #[test]
    fn the_source_inside_vxlan() {
        assert_element(
            Decoded::Inner,
            Inner {
                num: Some(0),
                inner_type: Some(InnerType::VXLAN),
                flags: Some(InnerFlags::from_bits_retain(0xf)),
                hdrsize: Some(8),
                expr: Some(NestedExpression::new(&saddr())),
                ..Default::default()
            },
            "
                68000180                    ; NFTA_LIST_ELEM
                0a000100 696e6e65 72000000  ;   NFTA_EXPR_NAME: inner
                58000280                    ;   NFTA_EXPR_DATA
                08000100 00000000           ;     NFTA_INNER_NUM
                08000200 00000001           ;     NFTA_INNER_TYPE
                08000300 0000000f           ;     NFTA_INNER_FLAGS
                08000400 00000008           ;     NFTA_INNER_HDRSIZE
                34000580                    ;     NFTA_INNER_EXPR
                0c000100 7061796c 6f616400  ;       NFTA_EXPR_NAME: payload
                24000280                    ;       NFTA_EXPR_DATA
                08000100 00000001           ;         NFTA_PAYLOAD_DREG
                08000200 00000001           ;         NFTA_PAYLOAD_BASE
                08000300 0000000c           ;         NFTA_PAYLOAD_OFFSET
                08000400 00000004           ;         NFTA_PAYLOAD_LEN
            ",
        );
    }

    #[test]
    fn the_protocol_inside_geneve() {
        let protocol = Meta::load(MetaKey::L4PROTO, Register::R1);
        assert_attributes(
            Decoded::Inner,
            Inner::geneve(&protocol),
            "
                08000100 00000000 08000200 00000002 08000300 0000000f 08000400 00000008
                24000580 09000100 6d657461 00000000 14000280 08000200 00000010 08000100
                00000001
            ",
        );
    }

    /// Listed after the first one was sent; inside, too, without `NLA_F_NESTED`.
    #[test]
    fn listed() {
        let nested = hex("
            0c000100 7061796c 6f616400 24000200 08000100 00000001 08000200 00000001
            08000300 0000000c 08000400 00000004
        ");
        let nested: NestedExpression<'_> = crate::nft::declare::Field::decode(&nested).unwrap();
        assert_eq!(nested.decode(), Ok(Decoded::Payload(saddr())));
        assert_listed(
            Decoded::Inner,
            Inner {
                expr: Some(nested),
                ..Inner::vxlan(&saddr())
            },
            "
                68000100 0a000100 696e6e65 72000000 58000200 08000100 00000000 08000200
                00000001 08000300 0000000f 08000400 00000008 34000500 0c000100 7061796c
                6f616400 24000200 08000100 00000001 08000200 00000001 08000300 0000000c
                08000400 00000004
            ",
        );
    }

    /// The form of later versions of libnftnl, which no tool at hand prints.
    #[test]
    fn bytecode() {
        assert_eq!(
            Inner::vxlan(&saddr()).to_string(),
            "[ inner type 1 hdrsize 8 flags f [ payload load 4b @ network header + 12 => reg 1 ] ]"
        );
        // This crate's own output.
        assert_eq!(
            Inner::default().to_string(),
            "[ inner type 0 hdrsize 0 flags 0 [ ] ]"
        );
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
