//! Trace events.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Attributes of a trace event.
        "enum nft_trace_attributes": u16 {
            /// Not used.
            NFTA_TRACE_UNSPEC = 0;
            /// Payload: string.
            NFTA_TRACE_TABLE = 1;
            /// Payload: string.
            NFTA_TRACE_CHAIN = 2;
            /// Payload: u64, big-endian.
            NFTA_TRACE_RULE_HANDLE = 3;
            /// Payload: u32, big-endian: `NFT_TRACETYPE_*`.
            NFTA_TRACE_TYPE = 4;
            /// Payload: nested: `NFTA_VERDICT_*`.
            NFTA_TRACE_VERDICT = 5;
            /// Payload: u32, without a byte order: compare only.
            NFTA_TRACE_ID = 6;
            /// Payload: bytes.
            NFTA_TRACE_LL_HEADER = 7;
            /// Payload: bytes.
            NFTA_TRACE_NETWORK_HEADER = 8;
            /// Payload: bytes.
            NFTA_TRACE_TRANSPORT_HEADER = 9;
            /// Payload: u32, big-endian.
            NFTA_TRACE_IIF = 10;
            /// Payload: u16, big-endian.
            NFTA_TRACE_IIFTYPE = 11;
            /// Payload: u32, big-endian.
            NFTA_TRACE_OIF = 12;
            /// Payload: u16, big-endian.
            NFTA_TRACE_OIFTYPE = 13;
            /// Payload: u32, big-endian.
            NFTA_TRACE_MARK = 14;
            /// Payload: u32, big-endian.
            NFTA_TRACE_NFPROTO = 15;
            /// Payload: u32, big-endian.
            NFTA_TRACE_POLICY = 16;
            /// Padding before a 64-bit payload.
            NFTA_TRACE_PAD = 17;
            /// Payload: u32, without a byte order: compare only, as with `CTA_ID`.
            NFTA_TRACE_CT_ID = 18, since (6, 16);
            /// Payload: u8: `IP_CT_DIR_*`.
            NFTA_TRACE_CT_DIRECTION = 19, since (6, 16);
            /// Payload: u32, big-endian: `IPS_*`.
            NFTA_TRACE_CT_STATUS = 20, since (6, 16);
            /// Payload: u32, big-endian: bits of `ct state`.
            NFTA_TRACE_CT_STATE = 21, since (6, 16);
        }

        /// Types of trace events.
        "enum nft_trace_types": u32 {
            NFT_TRACETYPE_UNSPEC = 0;
            /// A base chain's policy.
            NFT_TRACETYPE_POLICY = 1;
            /// The end of a chain.
            NFT_TRACETYPE_RETURN = 2;
            /// A rule.
            NFT_TRACETYPE_RULE = 3;
        }
    }
}
