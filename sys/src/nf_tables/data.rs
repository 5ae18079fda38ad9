//! Registers, and their data and verdicts.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Registers of a rule: the verdict, four of 16 bytes, and the same bytes again as sixteen of 4 bytes.
        "enum nft_registers": u32 {
            /// The verdict.
            NFT_REG_VERDICT = 0;
            /// 16 bytes.
            NFT_REG_1 = 1;
            /// 16 bytes.
            NFT_REG_2 = 2;
            /// 16 bytes.
            NFT_REG_3 = 3;
            /// 16 bytes.
            NFT_REG_4 = 4;
            /// 4 bytes, the same as bytes 0 to 3 of [`NFT_REG_1`].
            NFT_REG32_00 = 8;
            /// 4 bytes, the same as bytes 4 to 7 of [`NFT_REG_1`].
            NFT_REG32_01 = 9;
            /// 4 bytes, the same as bytes 8 to 11 of [`NFT_REG_1`].
            NFT_REG32_02 = 10;
            /// 4 bytes, the same as bytes 12 to 15 of [`NFT_REG_1`].
            NFT_REG32_03 = 11;
            /// 4 bytes, the same as bytes 0 to 3 of [`NFT_REG_2`].
            NFT_REG32_04 = 12;
            /// 4 bytes, the same as bytes 4 to 7 of [`NFT_REG_2`].
            NFT_REG32_05 = 13;
            /// 4 bytes, the same as bytes 8 to 11 of [`NFT_REG_2`].
            NFT_REG32_06 = 14;
            /// 4 bytes, the same as bytes 12 to 15 of [`NFT_REG_2`].
            NFT_REG32_07 = 15;
            /// 4 bytes, the same as bytes 0 to 3 of [`NFT_REG_3`].
            NFT_REG32_08 = 16;
            /// 4 bytes, the same as bytes 4 to 7 of [`NFT_REG_3`].
            NFT_REG32_09 = 17;
            /// 4 bytes, the same as bytes 8 to 11 of [`NFT_REG_3`].
            NFT_REG32_10 = 18;
            /// 4 bytes, the same as bytes 12 to 15 of [`NFT_REG_3`].
            NFT_REG32_11 = 19;
            /// 4 bytes, the same as bytes 0 to 3 of [`NFT_REG_4`].
            NFT_REG32_12 = 20;
            /// 4 bytes, the same as bytes 4 to 7 of [`NFT_REG_4`].
            NFT_REG32_13 = 21;
            /// 4 bytes, the same as bytes 8 to 11 of [`NFT_REG_4`].
            NFT_REG32_14 = 22;
            /// 4 bytes, the same as bytes 12 to 15 of [`NFT_REG_4`].
            NFT_REG32_15 = 23;
        }

        /// Sizes of registers, in bytes, and their number.
        "#define NFT_REG*_SIZE": usize {
            /// Size of [`NFT_REG_1`] to [`NFT_REG_4`].
            NFT_REG_SIZE = 16;
            /// Size of [`NFT_REG32_00`] to [`NFT_REG32_15`].
            NFT_REG32_SIZE = 4;
            /// Number of registers of 4 bytes.
            NFT_REG32_COUNT = 16;
        }

        /// Verdicts of nf_tables, in addition to the netfilter ones (`NF_ACCEPT`, …).
        "enum nft_verdicts": i32 {
            /// Continue in this rule.
            NFT_CONTINUE = -1;
            /// Leave this rule and continue with the next one.
            NFT_BREAK = -2;
            /// Continue in another chain, and return at its end.
            NFT_JUMP = -3;
            /// Continue in another chain without returning to this one.
            NFT_GOTO = -4;
            /// Return to the calling chain, or to the policy.
            NFT_RETURN = -5;
        }

        /// Types of data in a map.
        "enum nft_data_types": u32 {
            /// Plain bytes; any number below 0xffffff00 means the same.
            NFT_DATA_VALUE = 0x0;
            /// A verdict.
            NFT_DATA_VERDICT = 0xffff_ff00;
            /// Types with all of these bits belong to the kernel.
            NFT_DATA_RESERVED_MASK = 0xffff_ff00;
        }

        /// Attributes of a value: bytes or a verdict.
        "enum nft_data_attributes": u16 {
            /// Not used.
            NFTA_DATA_UNSPEC = 0;
            /// Payload: bytes.
            NFTA_DATA_VALUE = 1;
            /// Payload: nested: `NFTA_VERDICT_*`.
            NFTA_DATA_VERDICT = 2;
        }

        /// Maximum size of a value, in bytes.
        "#define NFT_DATA_VALUE_MAXLEN": usize {
            /// Longest value.
            NFT_DATA_VALUE_MAXLEN = 64;
        }

        /// Attributes of a verdict.
        "enum nft_verdict_attributes": u16 {
            /// Not used.
            NFTA_VERDICT_UNSPEC = 0;
            /// Payload: i32, big-endian: `NFT_*` or `NF_*` verdict.
            NFTA_VERDICT_CODE = 1;
            /// Payload: string.
            NFTA_VERDICT_CHAIN = 2;
            /// Payload: u32, big-endian.
            NFTA_VERDICT_CHAIN_ID = 3;
        }
    }
}
