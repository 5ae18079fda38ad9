//! The object `tunnel`: parameters for encapsulating packets.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Attributes of the addresses of an IPv4 tunnel.
        "enum nft_tunnel_key_ip_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_IP_UNSPEC = 0;
            /// Payload: IPv4 address.
            NFTA_TUNNEL_KEY_IP_SRC = 1;
            /// Payload: IPv4 address.
            NFTA_TUNNEL_KEY_IP_DST = 2;
        }

        /// Attributes of the addresses of an IPv6 tunnel.
        "enum nft_tunnel_ip6_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_IP6_UNSPEC = 0;
            /// Payload: IPv6 address.
            NFTA_TUNNEL_KEY_IP6_SRC = 1;
            /// Payload: IPv6 address.
            NFTA_TUNNEL_KEY_IP6_DST = 2;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_IP6_FLOWLABEL = 3;
        }

        /// Attributes of the options of a tunnel.
        "enum nft_tunnel_opts_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_OPTS_UNSPEC = 0;
            /// Payload: nested: `NFTA_TUNNEL_KEY_VXLAN_*`.
            NFTA_TUNNEL_KEY_OPTS_VXLAN = 1;
            /// Payload: nested: `NFTA_TUNNEL_KEY_ERSPAN_*`.
            NFTA_TUNNEL_KEY_OPTS_ERSPAN = 2;
            /// Payload: nested: `NFTA_TUNNEL_KEY_GENEVE_*`.
            NFTA_TUNNEL_KEY_OPTS_GENEVE = 3;
        }

        /// Attributes of the options of a VXLAN tunnel.
        "enum nft_tunnel_opts_vxlan_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_VXLAN_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_VXLAN_GBP = 1;
        }

        /// Attributes of the options of an ERSPAN tunnel.
        "enum nft_tunnel_opts_erspan_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_ERSPAN_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_ERSPAN_VERSION = 1;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_ERSPAN_V1_INDEX = 2;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_ERSPAN_V2_HWID = 3;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_ERSPAN_V2_DIR = 4;
        }

        /// Attributes of one option of a Geneve tunnel.
        "enum nft_tunnel_opts_geneve_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_GENEVE_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_TUNNEL_KEY_GENEVE_CLASS = 1;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_GENEVE_TYPE = 2;
            /// Payload: bytes.
            NFTA_TUNNEL_KEY_GENEVE_DATA = 3;
        }

        /// Flags of a tunnel.
        "enum nft_tunnel_flags": u32 {
            NFT_TUNNEL_F_ZERO_CSUM_TX = 0x1;
            NFT_TUNNEL_F_DONT_FRAGMENT = 0x2;
            NFT_TUNNEL_F_SEQ_NUMBER = 0x4;
            /// All flags.
            NFT_TUNNEL_F_MASK = 0x7;
        }

        /// Attributes of the object `tunnel`.
        "enum nft_tunnel_key_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_KEY_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_TUNNEL_KEY_ID = 1;
            /// Payload: nested: `NFTA_TUNNEL_KEY_IP_*`.
            NFTA_TUNNEL_KEY_IP = 2;
            /// Payload: nested: `NFTA_TUNNEL_KEY_IP6_*`.
            NFTA_TUNNEL_KEY_IP6 = 3;
            /// Payload: u32, big-endian: `NFT_TUNNEL_F_*`.
            NFTA_TUNNEL_KEY_FLAGS = 4;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_TOS = 5;
            /// Payload: u8.
            NFTA_TUNNEL_KEY_TTL = 6;
            /// Payload: u16, big-endian.
            NFTA_TUNNEL_KEY_SPORT = 7;
            /// Payload: u16, big-endian.
            NFTA_TUNNEL_KEY_DPORT = 8;
            /// Payload: nested: `NFTA_TUNNEL_KEY_OPTS_*`.
            NFTA_TUNNEL_KEY_OPTS = 9;
        }
    }
}
