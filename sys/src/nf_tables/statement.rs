//! Expressions that act on the packet: `log`, `queue`, `reject`, `nat`, `tproxy`, `masq`, `redir`, `dup`,
//! `fwd`; and `last`, which records the time of the last packet.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Attributes of the expression `last`.
        "enum nft_last_attributes": u16 {
            /// Not used.
            NFTA_LAST_UNSPEC = 0;
            /// Payload: u32, big-endian, boolean.
            NFTA_LAST_SET = 1;
            /// Payload: u64, big-endian, milliseconds.
            NFTA_LAST_MSECS = 2;
            /// Padding before a 64-bit payload.
            NFTA_LAST_PAD = 3;
        }

        /// Attributes of the expression `log`.
        "enum nft_log_attributes": u16 {
            /// Not used.
            NFTA_LOG_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_LOG_GROUP = 1;
            /// Payload: string.
            NFTA_LOG_PREFIX = 2;
            /// Payload: u32, big-endian, bytes.
            NFTA_LOG_SNAPLEN = 3;
            /// Payload: u32, big-endian.
            NFTA_LOG_QTHRESHOLD = 4;
            /// Payload: u32, big-endian: `NFT_LOGLEVEL_*`.
            NFTA_LOG_LEVEL = 5;
            /// Payload: u32, big-endian: `NF_LOG_*`.
            NFTA_LOG_FLAGS = 6;
        }

        /// Levels of the expression `log`, as in syslog.
        "enum nft_log_level": u32 {
            NFT_LOGLEVEL_EMERG = 0;
            NFT_LOGLEVEL_ALERT = 1;
            NFT_LOGLEVEL_CRIT = 2;
            NFT_LOGLEVEL_ERR = 3;
            NFT_LOGLEVEL_WARNING = 4;
            NFT_LOGLEVEL_NOTICE = 5;
            NFT_LOGLEVEL_INFO = 6;
            NFT_LOGLEVEL_DEBUG = 7;
            NFT_LOGLEVEL_AUDIT = 8;
        }

        /// Attributes of the expression `queue`.
        "enum nft_queue_attributes": u16 {
            /// Not used.
            NFTA_QUEUE_UNSPEC = 0;
            /// Payload: u16, big-endian.
            NFTA_QUEUE_NUM = 1;
            /// Payload: u16, big-endian.
            NFTA_QUEUE_TOTAL = 2;
            /// Payload: u16, big-endian: `NFT_QUEUE_FLAG_*`.
            NFTA_QUEUE_FLAGS = 3;
            /// Payload: u32, big-endian: register.
            NFTA_QUEUE_SREG_QNUM = 4;
        }

        /// Flags of the expression `queue`.
        "#define NFT_QUEUE_FLAG_*": u16 {
            /// Accept when no program listens.
            NFT_QUEUE_FLAG_BYPASS = 0x1;
            /// Choose the queue by processor.
            NFT_QUEUE_FLAG_CPU_FANOUT = 0x2;
            /// All flags.
            NFT_QUEUE_FLAG_MASK = 0x3;
        }

        /// Types of the expression `reject`.
        "enum nft_reject_types": u32 {
            /// An ICMP error with a code of the packet's own family.
            NFT_REJECT_ICMP_UNREACH = 0;
            /// A TCP reset.
            NFT_REJECT_TCP_RST = 1;
            /// An ICMP error with a code of either family, `NFT_REJECT_ICMPX_*`.
            NFT_REJECT_ICMPX_UNREACH = 2;
        }

        /// Codes of `NFT_REJECT_ICMPX_UNREACH`, which the kernel translates to the packet's family.
        "enum nft_reject_inet_code": u8 {
            NFT_REJECT_ICMPX_NO_ROUTE = 0;
            NFT_REJECT_ICMPX_PORT_UNREACH = 1;
            NFT_REJECT_ICMPX_HOST_UNREACH = 2;
            NFT_REJECT_ICMPX_ADMIN_PROHIBITED = 3;
        }

        /// Attributes of the expression `reject`.
        "enum nft_reject_attributes": u16 {
            /// Not used.
            NFTA_REJECT_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_REJECT_*`.
            NFTA_REJECT_TYPE = 1;
            /// Payload: u8.
            NFTA_REJECT_ICMP_CODE = 2;
        }

        /// Types of the expression `nat`.
        "enum nft_nat_types": u32 {
            /// Translate the source.
            NFT_NAT_SNAT = 0;
            /// Translate the destination.
            NFT_NAT_DNAT = 1;
        }

        /// Attributes of the expression `nat`.
        "enum nft_nat_attributes": u16 {
            /// Not used.
            NFTA_NAT_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFT_NAT_*`.
            NFTA_NAT_TYPE = 1;
            /// Payload: u32, big-endian: `NFPROTO_*`.
            NFTA_NAT_FAMILY = 2;
            /// Payload: u32, big-endian: register.
            NFTA_NAT_REG_ADDR_MIN = 3;
            /// Payload: u32, big-endian: register.
            NFTA_NAT_REG_ADDR_MAX = 4;
            /// Payload: u32, big-endian: register.
            NFTA_NAT_REG_PROTO_MIN = 5;
            /// Payload: u32, big-endian: register.
            NFTA_NAT_REG_PROTO_MAX = 6;
            /// Payload: u32, big-endian: `NF_NAT_RANGE_*`.
            NFTA_NAT_FLAGS = 7;
        }

        /// Attributes of the expression `tproxy`.
        "enum nft_tproxy_attributes": u16 {
            /// Not used.
            NFTA_TPROXY_UNSPEC = 0;
            /// Payload: u32, big-endian: `NFPROTO_*`.
            NFTA_TPROXY_FAMILY = 1;
            /// Payload: u32, big-endian: register.
            NFTA_TPROXY_REG_ADDR = 2;
            /// Payload: u32, big-endian: register.
            NFTA_TPROXY_REG_PORT = 3;
        }

        /// Attributes of the expression `masq`.
        "enum nft_masq_attributes": u16 {
            /// Not used.
            NFTA_MASQ_UNSPEC = 0;
            /// Payload: u32, big-endian: `NF_NAT_RANGE_*`.
            NFTA_MASQ_FLAGS = 1;
            /// Payload: u32, big-endian: register.
            NFTA_MASQ_REG_PROTO_MIN = 2;
            /// Payload: u32, big-endian: register.
            NFTA_MASQ_REG_PROTO_MAX = 3;
        }

        /// Attributes of the expression `redir`.
        "enum nft_redir_attributes": u16 {
            /// Not used.
            NFTA_REDIR_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_REDIR_REG_PROTO_MIN = 1;
            /// Payload: u32, big-endian: register.
            NFTA_REDIR_REG_PROTO_MAX = 2;
            /// Payload: u32, big-endian: `NF_NAT_RANGE_*`.
            NFTA_REDIR_FLAGS = 3;
        }

        /// Attributes of the expression `dup`.
        "enum nft_dup_attributes": u16 {
            /// Not used.
            NFTA_DUP_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_DUP_SREG_ADDR = 1;
            /// Payload: u32, big-endian: register.
            NFTA_DUP_SREG_DEV = 2;
        }

        /// Attributes of the expression `fwd`.
        "enum nft_fwd_attributes": u16 {
            /// Not used.
            NFTA_FWD_UNSPEC = 0;
            /// Payload: u32, big-endian: register.
            NFTA_FWD_SREG_DEV = 1;
            /// Payload: u32, big-endian: register.
            NFTA_FWD_SREG_ADDR = 2;
            /// Payload: u32, big-endian: `NFPROTO_*`.
            NFTA_FWD_NFPROTO = 3;
        }
    }
}
