//! Expressions that read and write the packet: `payload`, `inner`, `exthdr`, `osf`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Base of the offset of the expression `payload`.
        "enum nft_payload_bases": u32 {
            /// Start of the link layer header.
            NFT_PAYLOAD_LL_HEADER = 0;
            /// Start of the network header.
            NFT_PAYLOAD_NETWORK_HEADER = 1;
            /// Start of the transport header.
            NFT_PAYLOAD_TRANSPORT_HEADER = 2;
            /// Start of the transport header's payload.
            NFT_PAYLOAD_INNER_HEADER = 3;
            /// Start of the tunnel header, inside an `inner` expression.
            NFT_PAYLOAD_TUN_HEADER = 4, since (6, 2);
        }

        /// Checksum to correct when the expression `payload` writes.
        "enum nft_payload_csum_types": u32 {
            NFT_PAYLOAD_CSUM_NONE = 0;
            NFT_PAYLOAD_CSUM_INET = 1;
            NFT_PAYLOAD_CSUM_SCTP = 2;
        }

        /// Flags of that checksum.
        "enum nft_payload_csum_flags": u32 {
            NFT_PAYLOAD_L4CSUM_PSEUDOHDR = 0x1;
        }

        /// Tunnels that the expression `inner` parses.
        "enum nft_inner_type": u32 {
            NFT_INNER_UNSPEC = 0, since (6, 2);
            NFT_INNER_VXLAN = 1, since (6, 2);
            NFT_INNER_GENEVE = 2, since (6, 2);
        }

        /// Flags of the expression `inner`.
        "enum nft_inner_flags": u32 {
            /// The header size counts.
            NFT_INNER_HDRSIZE = 0x1, since (6, 2);
            /// There is an inner link layer header.
            NFT_INNER_LL = 0x2, since (6, 2);
            /// There is an inner network header.
            NFT_INNER_NH = 0x4, since (6, 2);
            /// There is an inner transport header.
            NFT_INNER_TH = 0x8, since (6, 2);
            /// All flags.
            NFT_INNER_MASK = 0xf, since (6, 2);
        }

        /// Attributes of the expression `inner`, which runs another expression inside a tunnel.
        "enum nft_inner_attributes": u16 {
            /// Not used.
            NFTA_INNER_UNSPEC = 0, since (6, 2);
            /// Payload: u32, big-endian.
            NFTA_INNER_NUM = 1, since (6, 2);
            /// Payload: u32, big-endian: `NFT_INNER_*` of `enum nft_inner_type`.
            NFTA_INNER_TYPE = 2, since (6, 2);
            /// Payload: u32, big-endian: `NFT_INNER_*` of `enum nft_inner_flags`.
            NFTA_INNER_FLAGS = 3, since (6, 2);
            /// Payload: u32, big-endian, bytes.
            NFTA_INNER_HDRSIZE = 4, since (6, 2);
            /// Payload: nested: `NFTA_EXPR_*`.
            NFTA_INNER_EXPR = 5, since (6, 2);
        }

        /// Attributes of the expression `payload`, which reads or writes the packet.
        "enum nft_payload_attributes": u16 {
            /// Not used.
            NFTA_PAYLOAD_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_PAYLOAD_DREG = 1;
            /// Payload: u32, big-endian: `NFT_PAYLOAD_*`.
            NFTA_PAYLOAD_BASE = 2;
            /// Payload: u32, big-endian.
            NFTA_PAYLOAD_OFFSET = 3;
            /// Payload: u32, big-endian.
            NFTA_PAYLOAD_LEN = 4;
            /// Payload: u32, big-endian: register.
            NFTA_PAYLOAD_SREG = 5;
            /// Payload: u32, big-endian: `NFT_PAYLOAD_CSUM_*`.
            NFTA_PAYLOAD_CSUM_TYPE = 6;
            /// Payload: u32, big-endian.
            NFTA_PAYLOAD_CSUM_OFFSET = 7;
            /// Payload: u32, big-endian: `NFT_PAYLOAD_L4CSUM_*`.
            NFTA_PAYLOAD_CSUM_FLAGS = 8;
        }

        /// Flags of the expression `exthdr`.
        "enum nft_exthdr_flags": u32 {
            NFT_EXTHDR_F_PRESENT = 0x1;
        }

        /// Kinds of headers and options that the expression `exthdr` supports.
        "enum nft_exthdr_op": u32 {
            NFT_EXTHDR_OP_IPV6 = 0;
            NFT_EXTHDR_OP_TCPOPT = 1;
            NFT_EXTHDR_OP_IPV4 = 2;
            NFT_EXTHDR_OP_SCTP = 3;
            NFT_EXTHDR_OP_DCCP = 4;
        }

        /// Attributes of the expression `exthdr`, which reads or writes extension headers and options.
        "enum nft_exthdr_attributes": u16 {
            /// Not used.
            NFTA_EXTHDR_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_EXTHDR_DREG = 1;
            /// Payload: u8.
            NFTA_EXTHDR_TYPE = 2;
            /// Payload: u32, big-endian.
            NFTA_EXTHDR_OFFSET = 3;
            /// Payload: u32, big-endian.
            NFTA_EXTHDR_LEN = 4;
            /// Payload: u32, big-endian: `NFT_EXTHDR_F_*`.
            NFTA_EXTHDR_FLAGS = 5;
            /// Payload: u32, big-endian: `NFT_EXTHDR_OP_*`.
            NFTA_EXTHDR_OP = 6;
            /// Payload: u32, big-endian.
            NFTA_EXTHDR_SREG = 7;
        }

        /// Attributes of the expression `osf`.
        "enum nft_osf_attributes": u16 {
            /// Not used.
            NFTA_OSF_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_OSF_DREG = 1;
            /// Payload: u8.
            NFTA_OSF_TTL = 2;
            /// Payload: u32, big-endian: `NFT_OSF_F_*`.
            NFTA_OSF_FLAGS = 3;
        }

        /// Flags of the expression `osf`.
        "enum nft_osf_flags": u32 {
            NFT_OSF_F_VERSION = 0x1;
        }
    }
}
