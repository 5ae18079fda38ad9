//! Stateful objects, the expressions with the same attributes (`counter`, `limit`,
//! `connlimit`, `quota`, `synproxy`), and `objref`, which references objects.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Unit of the expression and object `limit`.
        "enum nft_limit_type": u32 {
            /// Packets.
            NFT_LIMIT_PKTS = 0;
            /// Bytes.
            NFT_LIMIT_PKT_BYTES = 1;
        }

        /// Flags of the expression and object `limit`.
        "enum nft_limit_flags": u32 {
            NFT_LIMIT_F_INV = 0x1;
        }

        /// Attributes of the expression and object `limit`.
        "enum nft_limit_attributes": u16 {
            /// Not used.
            NFTA_LIMIT_UNSPEC = 0;
            /// Payload: u64, big-endian.
            NFTA_LIMIT_RATE = 1;
            /// Payload: u64, big-endian, seconds.
            NFTA_LIMIT_UNIT = 2;
            /// Payload: u32, big-endian.
            NFTA_LIMIT_BURST = 3;
            /// Payload: u32, big-endian: `NFT_LIMIT_*`.
            NFTA_LIMIT_TYPE = 4;
            /// Payload: u32, big-endian: [`NFT_LIMIT_F_INV`].
            NFTA_LIMIT_FLAGS = 5;
            /// Padding before a 64-bit payload.
            NFTA_LIMIT_PAD = 6;
        }

        /// Flags of the expression and object `connlimit`.
        "enum nft_connlimit_flags": u32 {
            NFT_CONNLIMIT_F_INV = 0x1;
        }

        /// Attributes of the expression and object `connlimit`.
        "enum nft_connlimit_attributes": u16 {
            /// Not used.
            NFTA_CONNLIMIT_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_CONNLIMIT_COUNT = 1;
            /// Payload: u32, big-endian: [`NFT_CONNLIMIT_F_INV`].
            NFTA_CONNLIMIT_FLAGS = 2;
        }

        /// Attributes of the expression and object `counter`, and of a base chain's counters.
        "enum nft_counter_attributes": u16 {
            /// Not used.
            NFTA_COUNTER_UNSPEC = 0;
            /// Payload: u64, big-endian.
            NFTA_COUNTER_BYTES = 1;
            /// Payload: u64, big-endian.
            NFTA_COUNTER_PACKETS = 2;
            /// Padding before a 64-bit payload.
            NFTA_COUNTER_PAD = 3;
        }

        /// Flags of the expression and object `quota`.
        "enum nft_quota_flags": u32 {
            /// Match once the quota is used up.
            NFT_QUOTA_F_INV = 0x1;
            /// The quota is used up; set by the kernel.
            NFT_QUOTA_F_DEPLETED = 0x2;
        }

        /// Attributes of the expression and object `quota`.
        "enum nft_quota_attributes": u16 {
            /// Not used.
            NFTA_QUOTA_UNSPEC = 0;
            /// Payload: u64, big-endian.
            NFTA_QUOTA_BYTES = 1;
            /// Payload: u32, big-endian: `NFT_QUOTA_F_*`.
            NFTA_QUOTA_FLAGS = 2;
            /// Padding before a 64-bit payload.
            NFTA_QUOTA_PAD = 3;
            /// Payload: u64, big-endian.
            NFTA_QUOTA_CONSUMED = 4;
        }

        /// Attributes of the object `secmark`.
        "enum nft_secmark_attributes": u16 {
            /// Not used.
            NFTA_SECMARK_UNSPEC = 0;
            /// Payload: string.
            NFTA_SECMARK_CTX = 1;
        }

        /// Maximum size of a security context, in bytes.
        "#define NFT_SECMARK_CTX_MAXLEN": usize {
            /// Longest security context.
            NFT_SECMARK_CTX_MAXLEN = 4096;
        }

        /// Attributes of the expression `objref`, which uses a named object.
        "enum nft_objref_attributes": u16 {
            /// Not used.
            NFTA_OBJREF_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_OBJECT_*`.
            NFTA_OBJREF_IMM_TYPE = 1;
            /// Payload: string.
            NFTA_OBJREF_IMM_NAME = 2;
            /// Payload: u32, big-endian: register.
            NFTA_OBJREF_SET_SREG = 3;
            /// Payload: string.
            NFTA_OBJREF_SET_NAME = 4;
            /// Payload: u32, big-endian.
            NFTA_OBJREF_SET_ID = 5;
        }

        /// Attributes of the object `ct helper`.
        "enum nft_ct_helper_attributes": u16 {
            /// Not used.
            NFTA_CT_HELPER_UNSPEC = 0;
            /// Payload: string.
            NFTA_CT_HELPER_NAME = 1;
            /// Payload: u16, big-endian.
            NFTA_CT_HELPER_L3PROTO = 2;
            /// Payload: u8.
            NFTA_CT_HELPER_L4PROTO = 3;
        }

        /// Attributes of the object `ct timeout`.
        "enum nft_ct_timeout_timeout_attributes": u16 {
            /// Not used.
            NFTA_CT_TIMEOUT_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_CT_TIMEOUT_L3PROTO = 1;
            /// Payload: u8.
            NFTA_CT_TIMEOUT_L4PROTO = 2;
            /// Payload: nested.
            NFTA_CT_TIMEOUT_DATA = 3;
        }

        /// Attributes of the object `ct expectation`.
        "enum nft_ct_expectation_attributes": u16 {
            /// Not used.
            NFTA_CT_EXPECT_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_CT_EXPECT_L3PROTO = 1;
            /// Payload: u8.
            NFTA_CT_EXPECT_L4PROTO = 2;
            /// Payload: u16, big-endian.
            NFTA_CT_EXPECT_DPORT = 3;
            /// Payload: u32, host byte order.
            NFTA_CT_EXPECT_TIMEOUT = 4;
            /// Payload: u8.
            NFTA_CT_EXPECT_SIZE = 5;
        }

        /// Types of named objects.
        "#define NFT_OBJECT_*": u32 {
            NFT_OBJECT_UNSPEC = 0;
            /// A counter.
            NFT_OBJECT_COUNTER = 1;
            /// A quota.
            NFT_OBJECT_QUOTA = 2;
            /// A helper of connection tracking.
            NFT_OBJECT_CT_HELPER = 3;
            /// A limit.
            NFT_OBJECT_LIMIT = 4;
            /// A limit of connections.
            NFT_OBJECT_CONNLIMIT = 5;
            /// A tunnel's metadata.
            NFT_OBJECT_TUNNEL = 6;
            /// Timeouts of connections.
            NFT_OBJECT_CT_TIMEOUT = 7;
            /// A security mark.
            NFT_OBJECT_SECMARK = 8;
            /// An expectation.
            NFT_OBJECT_CT_EXPECT = 9;
            /// A SYN proxy.
            NFT_OBJECT_SYNPROXY = 10;
        }

        /// Attributes of a named object.
        "enum nft_object_attributes": u16 {
            /// Not used.
            NFTA_OBJ_UNSPEC = 0;
            /// Payload: string.
            NFTA_OBJ_TABLE = 1;
            /// Payload: string.
            NFTA_OBJ_NAME = 2;
            /// Payload: u32, big-endian: `NFT_OBJECT_*`.
            NFTA_OBJ_TYPE = 3;
            /// Payload: nested: attributes of the object's type.
            NFTA_OBJ_DATA = 4;
            /// Payload: u32, big-endian.
            NFTA_OBJ_USE = 5;
            /// Payload: u64, big-endian.
            NFTA_OBJ_HANDLE = 6;
            /// Padding before a 64-bit payload.
            NFTA_OBJ_PAD = 7;
            /// Payload: bytes.
            NFTA_OBJ_USERDATA = 8;
        }

        /// Attributes of the expression and object `synproxy`.
        "enum nft_synproxy_attributes": u16 {
            /// Not used.
            NFTA_SYNPROXY_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_SYNPROXY_MSS = 1;
            /// Payload: u8.
            NFTA_SYNPROXY_WSCALE = 2;
            /// Payload: u32, big-endian.
            NFTA_SYNPROXY_FLAGS = 3;
        }
    }
}
