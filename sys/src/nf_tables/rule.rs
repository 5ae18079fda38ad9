//! Rules, and their lists of expressions.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Attributes of a rule.
        "enum nft_rule_attributes": u16 {
            /// Not used.
            NFTA_RULE_UNSPEC = 0;
            /// Payload: string.
            NFTA_RULE_TABLE = 1;
            /// Payload: string.
            NFTA_RULE_CHAIN = 2;
            /// Payload: u64, big-endian.
            NFTA_RULE_HANDLE = 3;
            /// Payload: nested: `NFTA_EXPR_*`.
            NFTA_RULE_EXPRESSIONS = 4;
            /// Payload: nested: `NFTA_RULE_COMPAT_*`.
            NFTA_RULE_COMPAT = 5;
            /// Payload: u64, big-endian.
            NFTA_RULE_POSITION = 6;
            /// Payload: bytes, at most [`NFT_USERDATA_MAXLEN`](super::NFT_USERDATA_MAXLEN).
            NFTA_RULE_USERDATA = 7;
            /// Padding before a 64-bit payload.
            NFTA_RULE_PAD = 8;
            /// Payload: u32, big-endian.
            NFTA_RULE_ID = 9;
            /// Payload: u32, big-endian.
            NFTA_RULE_POSITION_ID = 10;
            /// Payload: u32, big-endian: the chain's `NFTA_CHAIN_ID` in this batch.
            NFTA_RULE_CHAIN_ID = 11;
        }

        /// Flags in a rule's note for x_tables extensions.
        "enum nft_rule_compat_flags": u32 {
            /// Was the inversion in early kernels; ignored.
            NFT_RULE_COMPAT_F_UNUSED = 0x1, since (6, 8);
            /// The protocol is negated.
            NFT_RULE_COMPAT_F_INV = 0x2;
            /// All flags.
            NFT_RULE_COMPAT_F_MASK = 0x2;
        }

        /// Attributes of a rule's note for x_tables extensions: the protocol that the rule matches.
        "enum nft_rule_compat_attributes": u16 {
            /// Not used.
            NFTA_RULE_COMPAT_UNSPEC = 0;
            /// Payload: u32, big-endian: IP protocol number.
            NFTA_RULE_COMPAT_PROTO = 1;
            /// Payload: u32, big-endian: `NFT_RULE_COMPAT_F_*`.
            NFTA_RULE_COMPAT_FLAGS = 2;
        }

        /// Attributes of any expression: its type and its own attributes.
        "enum nft_expr_attributes": u16 {
            /// Not used.
            NFTA_EXPR_UNSPEC = 0;
            /// Payload: string.
            NFTA_EXPR_NAME = 1;
            /// Payload: nested: attributes of the expression's type.
            NFTA_EXPR_DATA = 2;
        }
    }
}
