//! Expressions that compute with registers: `immediate`, `bitwise`, `byteorder`, `cmp`, `range`, `hash`, `numgen`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Attributes of the expression `immediate`, which loads a value or a verdict.
        "enum nft_immediate_attributes": u16 {
            /// Not used.
            NFTA_IMMEDIATE_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_IMMEDIATE_DREG = 1;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_IMMEDIATE_DATA = 2;
        }

        /// Operations of the expression `bitwise`.
        "enum nft_bitwise_ops": u32 {
            /// `(source & mask) ^ xor`.
            NFT_BITWISE_MASK_XOR = 0, since (6, 13);
            /// Shift left.
            NFT_BITWISE_LSHIFT = 1;
            /// Shift right.
            NFT_BITWISE_RSHIFT = 2;
            /// And of two registers, or of a register and data.
            NFT_BITWISE_AND = 3, since (6, 13);
            /// Or of two registers, or of a register and data.
            NFT_BITWISE_OR = 4, since (6, 13);
            /// Exclusive or of two registers, or of a register and data.
            NFT_BITWISE_XOR = 5, since (6, 13);
            /// The former name of [`NFT_BITWISE_MASK_XOR`].
            NFT_BITWISE_BOOL = 0;
        }

        /// Attributes of the expression `bitwise`.
        "enum nft_bitwise_attributes": u16 {
            /// Not used.
            NFTA_BITWISE_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_BITWISE_SREG = 1;
            /// Payload: u32, big-endian: register.
            NFTA_BITWISE_DREG = 2;
            /// Payload: u32, big-endian.
            NFTA_BITWISE_LEN = 3;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_BITWISE_MASK = 4;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_BITWISE_XOR = 5;
            /// Payload: u32, big-endian: `NFT_BITWISE_*`.
            NFTA_BITWISE_OP = 6;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_BITWISE_DATA = 7;
            /// Payload: u32, big-endian: register of the right operand.
            NFTA_BITWISE_SREG2 = 8, since (6, 13);
        }

        /// Operations of the expression `byteorder`.
        "enum nft_byteorder_ops": u32 {
            /// From network to host byte order.
            NFT_BYTEORDER_NTOH = 0;
            /// From host to network byte order.
            NFT_BYTEORDER_HTON = 1;
        }

        /// Attributes of the expression `byteorder`.
        "enum nft_byteorder_attributes": u16 {
            /// Not used.
            NFTA_BYTEORDER_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_BYTEORDER_SREG = 1;
            /// Payload: u32, big-endian: register.
            NFTA_BYTEORDER_DREG = 2;
            /// Payload: u32, big-endian: `NFT_BYTEORDER_*`.
            NFTA_BYTEORDER_OP = 3;
            /// Payload: u32, big-endian.
            NFTA_BYTEORDER_LEN = 4;
            /// Payload: u32, big-endian, bytes: 2, 4 or 8.
            NFTA_BYTEORDER_SIZE = 5;
        }

        /// Operations of the expression `cmp`; they compare bytes, so numbers compare in network byte order.
        "enum nft_cmp_ops": u32 {
            /// Equal.
            NFT_CMP_EQ = 0;
            /// Not equal.
            NFT_CMP_NEQ = 1;
            /// Less.
            NFT_CMP_LT = 2;
            /// Less or equal.
            NFT_CMP_LTE = 3;
            /// Greater.
            NFT_CMP_GT = 4;
            /// Greater or equal.
            NFT_CMP_GTE = 5;
        }

        /// Attributes of the expression `cmp`.
        "enum nft_cmp_attributes": u16 {
            /// Not used.
            NFTA_CMP_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_CMP_SREG = 1;
            /// Payload: u32, big-endian: `NFT_CMP_*`.
            NFTA_CMP_OP = 2;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_CMP_DATA = 3;
        }

        /// Operations of the expression `range`.
        "enum nft_range_ops": u32 {
            /// Inside the range.
            NFT_RANGE_EQ = 0;
            /// Outside the range.
            NFT_RANGE_NEQ = 1;
        }

        /// Attributes of the expression `range`.
        "enum nft_range_attributes": u16 {
            /// Not used.
            NFTA_RANGE_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_RANGE_SREG = 1;
            /// Payload: u32, big-endian: `NFT_CMP_*`.
            NFTA_RANGE_OP = 2;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_RANGE_FROM_DATA = 3;
            /// Payload: nested: `NFTA_DATA_*`.
            NFTA_RANGE_TO_DATA = 4;
        }

        /// Types of the expression `hash`.
        "enum nft_hash_types": u32 {
            /// Hash of the bytes in a register.
            NFT_HASH_JENKINS = 0;
            /// Hash of the connection, the same for both directions.
            NFT_HASH_SYM = 1;
        }

        /// Attributes of the expression `hash`.
        "enum nft_hash_attributes": u16 {
            /// Not used.
            NFTA_HASH_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_HASH_SREG = 1;
            /// Payload: u32, big-endian: register.
            NFTA_HASH_DREG = 2;
            /// Payload: u32, big-endian.
            NFTA_HASH_LEN = 3;
            /// Payload: u32, big-endian.
            NFTA_HASH_MODULUS = 4;
            /// Payload: u32, big-endian.
            NFTA_HASH_SEED = 5;
            /// Payload: u32, big-endian.
            NFTA_HASH_OFFSET = 6;
            /// Payload: u32, big-endian: `NFT_HASH_*`.
            NFTA_HASH_TYPE = 7;
            /// Payload: string.
            NFTA_HASH_SET_NAME = 8;
            /// Payload: u32, big-endian.
            NFTA_HASH_SET_ID = 9;
        }

        /// Attributes of the expression `numgen`.
        "enum nft_ng_attributes": u16 {
            /// Not used.
            NFTA_NG_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_NG_DREG = 1;
            /// Payload: u32, big-endian.
            NFTA_NG_MODULUS = 2;
            /// Payload: u32, big-endian: `NFT_NG_*`.
            NFTA_NG_TYPE = 3;
            /// Payload: u32, big-endian.
            NFTA_NG_OFFSET = 4;
            /// Payload: string.
            NFTA_NG_SET_NAME = 5;
            /// Payload: u32, big-endian.
            NFTA_NG_SET_ID = 6;
        }

        /// Types of the expression `numgen`.
        "enum nft_ng_types": u32 {
            /// One after the other.
            NFT_NG_INCREMENTAL = 0;
            /// At random.
            NFT_NG_RANDOM = 1;
        }
    }
}
