//! `linux/netfilter/nf_tables_compat.h`: x_tables matches and targets as nf_tables expressions
//! (`match` and `target`), as iptables-nft writes them.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables_compat.h";

    constants {
        /// Attributes of the expression `target`: an x_tables target inside a rule.
        "enum nft_target_attributes": u16 {
            NFTA_TARGET_UNSPEC = 0;
            /// Name of the target (string).
            NFTA_TARGET_NAME = 1;
            /// Revision (u32, big-endian).
            NFTA_TARGET_REV = 2;
            /// The target's own data as x_tables has it, padded to `XT_ALIGN` (bytes).
            NFTA_TARGET_INFO = 3;
        }

        /// Attributes of the expression `match`: an x_tables match inside a rule.
        "enum nft_match_attributes": u16 {
            NFTA_MATCH_UNSPEC = 0;
            /// Name of the match (string).
            NFTA_MATCH_NAME = 1;
            /// Revision (u32, big-endian).
            NFTA_MATCH_REV = 2;
            /// The match's own data as x_tables has it, padded to `XT_ALIGN` (bytes).
            NFTA_MATCH_INFO = 3;
        }

        /// Maximum size of a match's or target's name, in bytes, including the closing NUL.
        "#define NFT_COMPAT_NAME_MAX": usize {
            NFT_COMPAT_NAME_MAX = 32;
        }

        /// Messages of the subsystem `NFNL_SUBSYS_NFT_COMPAT`.
        "enum NFNL_MSG_COMPAT_*": u8 {
            /// Checks whether the kernel knows a revision of a match or target.
            NFNL_MSG_COMPAT_GET = 0;
        }

        /// Attributes of [`NFNL_MSG_COMPAT_GET`].
        "enum NFTA_COMPAT_*": u16 {
            NFTA_COMPAT_UNSPEC = 0;
            /// Name of the match or target (string).
            NFTA_COMPAT_NAME = 1;
            /// Revision (u32, big-endian).
            NFTA_COMPAT_REV = 2;
            /// 0 for a match, 1 for a target (u32, big-endian).
            NFTA_COMPAT_TYPE = 3;
        }
    }
}
