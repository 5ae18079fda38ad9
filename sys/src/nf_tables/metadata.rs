//! Expressions that read state outside the packet: `meta`, `rt`, `socket`, `ct`, `fib`, `xfrm`, `tunnel`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Keys of the expression `meta`: the field to read or set.
        "enum nft_meta_keys": u32 {
            /// Length of the packet (u32, bytes).
            NFT_META_LEN = 0;
            /// Ethernet type (u16, big-endian).
            NFT_META_PROTOCOL = 1;
            /// Priority, a traffic class handle (u32).
            NFT_META_PRIORITY = 2;
            /// Mark (u32, host byte order).
            NFT_META_MARK = 3;
            /// Index of the incoming interface (u32, host byte order).
            NFT_META_IIF = 4;
            /// Index of the outgoing interface (u32, host byte order).
            NFT_META_OIF = 5;
            /// Name of the incoming interface (16 bytes, NUL-padded).
            NFT_META_IIFNAME = 6;
            /// Name of the outgoing interface (16 bytes, NUL-padded).
            NFT_META_OIFNAME = 7;
            /// Hardware type of the incoming interface (u16, host byte order).
            NFT_META_IFTYPE = 8;
            /// Hardware type of the outgoing interface (u16, host byte order).
            NFT_META_OIFTYPE = 9;
            /// User id of the socket (u32, host byte order).
            NFT_META_SKUID = 10;
            /// Group id of the socket (u32, host byte order).
            NFT_META_SKGID = 11;
            /// Whether the packet is traced (u8).
            NFT_META_NFTRACE = 12;
            /// Routing realm (u32, host byte order).
            NFT_META_RTCLASSID = 13;
            /// Security mark (u32, host byte order).
            NFT_META_SECMARK = 14;
            /// Protocol family, `NFPROTO_*` (u8).
            NFT_META_NFPROTO = 15;
            /// Layer 4 protocol number (u8).
            NFT_META_L4PROTO = 16;
            /// Name of the incoming bridge (16 bytes, NUL-padded).
            NFT_META_BRI_IIFNAME = 17;
            /// Name of the outgoing bridge (16 bytes, NUL-padded).
            NFT_META_BRI_OIFNAME = 18;
            /// Unicast, broadcast, multicast or other (u8).
            NFT_META_PKTTYPE = 19;
            /// Number of the processor (u32, host byte order).
            NFT_META_CPU = 20;
            /// Group of the incoming interface (u32, host byte order).
            NFT_META_IIFGROUP = 21;
            /// Group of the outgoing interface (u32, host byte order).
            NFT_META_OIFGROUP = 22;
            /// Class id of the socket's net_cls control group (u32, host byte order).
            NFT_META_CGROUP = 23;
            /// A random number (u32).
            NFT_META_PRANDOM = 24;
            /// Whether it was decrypted by IPsec (u8).
            NFT_META_SECPATH = 25;
            /// Kind of the incoming interface (16 bytes, NUL-padded).
            NFT_META_IIFKIND = 26;
            /// Kind of the outgoing interface (16 bytes, NUL-padded).
            NFT_META_OIFKIND = 27;
            /// Default VLAN of the bridge port (u16, host byte order).
            NFT_META_BRI_IIFPVID = 28;
            /// VLAN protocol of the bridge (u16, big-endian).
            NFT_META_BRI_IIFVPROTO = 29;
            /// Time since 1970 (u64, nanoseconds).
            NFT_META_TIME_NS = 30;
            /// Day of the week, 0 is Sunday (u8).
            NFT_META_TIME_DAY = 31;
            /// Time of the day (u32, seconds).
            NFT_META_TIME_HOUR = 32;
            /// Index of the device under a VRF (u32, host byte order).
            NFT_META_SDIF = 33;
            /// Name of the device under a VRF (16 bytes, NUL-padded).
            NFT_META_SDIFNAME = 34;
            /// Route the frame instead of bridging it (u8; only to be set).
            NFT_META_BRI_BROUTE = 35, since (6, 4);
            /// Hardware address of the incoming bridge (6 bytes).
            NFT_META_BRI_IIFHWADDR = 37, since (6, 18);
        }

        /// Second name of a key of the expression `meta`.
        "#define NFT_META_IIFTYPE": u32 {
            /// The same as [`NFT_META_IFTYPE`].
            NFT_META_IIFTYPE = 8;
        }

        /// Keys of the expression `rt`: the field of the route to read.
        "enum nft_rt_keys": u32 {
            NFT_RT_CLASSID = 0;
            NFT_RT_NEXTHOP4 = 1;
            NFT_RT_NEXTHOP6 = 2;
            NFT_RT_TCPMSS = 3;
            NFT_RT_XFRM = 4;
        }

        /// Attributes of the expression `meta`.
        "enum nft_meta_attributes": u16 {
            /// Not used.
            NFTA_META_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_META_DREG = 1;
            /// Payload: u32, big-endian: `NFT_META_*`.
            NFTA_META_KEY = 2;
            /// Payload: u32, big-endian: register.
            NFTA_META_SREG = 3;
        }

        /// Attributes of the expression `rt`.
        "enum nft_rt_attributes": u16 {
            /// Not used.
            NFTA_RT_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_RT_DREG = 1;
            /// Payload: u32, big-endian: `NFT_RT_*`.
            NFTA_RT_KEY = 2;
        }

        /// Attributes of the expression `socket`.
        "enum nft_socket_attributes": u16 {
            /// Not used.
            NFTA_SOCKET_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_SOCKET_*`.
            NFTA_SOCKET_KEY = 1;
            /// Payload: u32, big-endian: register.
            NFTA_SOCKET_DREG = 2;
            /// Payload: u32, big-endian.
            NFTA_SOCKET_LEVEL = 3;
        }

        /// Keys of the expression `socket`: the field of the socket to read.
        "enum nft_socket_keys": u32 {
            NFT_SOCKET_TRANSPARENT = 0;
            NFT_SOCKET_MARK = 1;
            NFT_SOCKET_WILDCARD = 2;
            NFT_SOCKET_CGROUPV2 = 3;
        }

        /// Keys of the expression `ct`: the field of the connection to read or set.
        "enum nft_ct_keys": u32 {
            /// State bits (u32, host byte order).
            NFT_CT_STATE = 0;
            /// `IP_CT_DIR_*` (u8).
            NFT_CT_DIRECTION = 1;
            /// `IPS_*` (u32, host byte order).
            NFT_CT_STATUS = 2;
            /// Mark (u32, host byte order).
            NFT_CT_MARK = 3;
            NFT_CT_SECMARK = 4;
            /// Time left (u32, milliseconds).
            NFT_CT_EXPIRATION = 5;
            NFT_CT_HELPER = 6;
            NFT_CT_L3PROTOCOL = 7;
            /// Source address; [`NFT_CT_SRC_IP`] and [`NFT_CT_SRC_IP6`] are better, their length is fixed.
            NFT_CT_SRC = 8;
            /// Destination address; [`NFT_CT_DST_IP`] and [`NFT_CT_DST_IP6`] are better, their length is fixed.
            NFT_CT_DST = 9;
            NFT_CT_PROTOCOL = 10;
            NFT_CT_PROTO_SRC = 11;
            NFT_CT_PROTO_DST = 12;
            /// Labels (16 bytes).
            NFT_CT_LABELS = 13;
            /// Packets (u64, host byte order).
            NFT_CT_PKTS = 14;
            /// Bytes (u64, host byte order).
            NFT_CT_BYTES = 15;
            /// Bytes for each packet (u64, host byte order).
            NFT_CT_AVGPKT = 16;
            /// Zone (u16, host byte order).
            NFT_CT_ZONE = 17;
            /// Events to send (u32, `1 << IPCT_*`).
            NFT_CT_EVENTMASK = 18;
            NFT_CT_SRC_IP = 19;
            NFT_CT_DST_IP = 20;
            NFT_CT_SRC_IP6 = 21;
            NFT_CT_DST_IP6 = 22;
            NFT_CT_ID = 23;
        }

        /// Attributes of the expression `ct`.
        "enum nft_ct_attributes": u16 {
            /// Not used.
            NFTA_CT_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_CT_DREG = 1;
            /// Payload: u32, big-endian: `NFT_CT_*`.
            NFTA_CT_KEY = 2;
            /// Payload: u8: `IP_CT_DIR_*`.
            NFTA_CT_DIRECTION = 3;
            /// Payload: u32, big-endian: register.
            NFTA_CT_SREG = 4;
        }

        /// Attributes of the expression `fib`, which queries the routing table.
        "enum nft_fib_attributes": u16 {
            /// Not used.
            NFTA_FIB_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_FIB_DREG = 1;
            /// Payload: u32, big-endian: `NFT_FIB_RESULT_*`.
            NFTA_FIB_RESULT = 2;
            /// Payload: u32, big-endian: `NFTA_FIB_F_*`.
            NFTA_FIB_FLAGS = 3;
        }

        /// Result of the expression `fib`.
        "enum nft_fib_result": u32 {
            NFT_FIB_RESULT_UNSPEC = 0;
            /// Index of the outgoing interface.
            NFT_FIB_RESULT_OIF = 1;
            /// Name of the outgoing interface.
            NFT_FIB_RESULT_OIFNAME = 2;
            /// Type of the address, `RTN_*`.
            NFT_FIB_RESULT_ADDRTYPE = 3;
        }

        /// Flags of the expression `fib`; not attributes, despite their names.
        "enum nft_fib_flags": u32 {
            /// Look up the source address.
            NFTA_FIB_F_SADDR = 0x1;
            /// Look up the destination address.
            NFTA_FIB_F_DADDR = 0x2;
            /// Use the packet's mark.
            NFTA_FIB_F_MARK = 0x4;
            /// Only routes of the incoming interface.
            NFTA_FIB_F_IIF = 0x8;
            /// Only routes of the outgoing interface.
            NFTA_FIB_F_OIF = 0x10;
            /// Only whether there is a route.
            NFTA_FIB_F_PRESENT = 0x20;
        }

        /// Attributes of the expression `xfrm`.
        "enum nft_xfrm_attributes": u16 {
            /// Not used.
            NFTA_XFRM_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_XFRM_DREG = 1;
            /// Payload: u32, big-endian: `NFT_XFRM_KEY_*`.
            NFTA_XFRM_KEY = 2;
            /// Payload: u8.
            NFTA_XFRM_DIR = 3;
            /// Payload: u32, big-endian.
            NFTA_XFRM_SPNUM = 4;
        }

        /// Keys of the expression `xfrm`: the field of the IPsec state to read.
        "enum nft_xfrm_keys": u32 {
            NFT_XFRM_KEY_UNSPEC = 0;
            NFT_XFRM_KEY_DADDR_IP4 = 1;
            NFT_XFRM_KEY_DADDR_IP6 = 2;
            NFT_XFRM_KEY_SADDR_IP4 = 3;
            NFT_XFRM_KEY_SADDR_IP6 = 4;
            NFT_XFRM_KEY_REQID = 5;
            NFT_XFRM_KEY_SPI = 6;
        }

        /// Keys of the expression `tunnel`.
        "enum nft_tunnel_keys": u32 {
            NFT_TUNNEL_PATH = 0;
            NFT_TUNNEL_ID = 1;
        }

        /// Directions of the expression `tunnel`.
        "enum nft_tunnel_mode": u32 {
            NFT_TUNNEL_MODE_NONE = 0;
            NFT_TUNNEL_MODE_RX = 1;
            NFT_TUNNEL_MODE_TX = 2;
        }

        /// Attributes of the expression `tunnel`.
        "enum nft_tunnel_attributes": u16 {
            /// Not used.
            NFTA_TUNNEL_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_TUNNEL_*`.
            NFTA_TUNNEL_KEY = 1;
            /// Payload: u32, big-endian: register.
            NFTA_TUNNEL_DREG = 2;
            /// Payload: u32, big-endian: `NFT_TUNNEL_MODE_*`.
            NFTA_TUNNEL_MODE = 3;
        }
    }
}
