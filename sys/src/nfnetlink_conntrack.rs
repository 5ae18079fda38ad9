//! `linux/netfilter/nfnetlink_conntrack.h`: tracked connections (`NFNL_SUBSYS_CTNETLINK`).

use crate::abi::abi;

abi! {
    header "linux/netfilter/nfnetlink_conntrack.h";

    constants {
        /// Messages of the subsystem (`NFNL_SUBSYS_CTNETLINK`).
        "enum cntl_msg_types": u8 {
            /// Creates or changes an entry; in events and answers: an entry.
            IPCTNL_MSG_CT_NEW = 0;
            /// Requests an entry or, as a dump, all of them.
            IPCTNL_MSG_CT_GET = 1;
            /// Deletes an entry; without a tuple all that the filter admits. In events: a deleted entry.
            IPCTNL_MSG_CT_DELETE = 2;
            /// Like [`IPCTNL_MSG_CT_GET`], and sets counters to zero.
            IPCTNL_MSG_CT_GET_CTRZERO = 3;
            /// A dump: statistics of each processor.
            IPCTNL_MSG_CT_GET_STATS_CPU = 4;
            /// Number of entries.
            IPCTNL_MSG_CT_GET_STATS = 5;
            /// A dump: entries that are being deleted.
            IPCTNL_MSG_CT_GET_DYING = 6;
            /// A dump: entries whose first packet has not left yet. Empty since Linux 5.19.
            IPCTNL_MSG_CT_GET_UNCONFIRMED = 7;
        }

        /// Attributes of an entry.
        "enum ctattr_type": u16 {
            /// Not used.
            CTA_UNSPEC = 0;
            /// Nested `CTA_TUPLE_*`: the direction of the first packet.
            CTA_TUPLE_ORIG = 1;
            /// Nested `CTA_TUPLE_*`: the direction of answers.
            CTA_TUPLE_REPLY = 2;
            /// u32, big-endian: `IPS_*`.
            CTA_STATUS = 3;
            /// Nested `CTA_PROTOINFO_*`: the state of the protocol.
            CTA_PROTOINFO = 4;
            /// Nested `CTA_HELP_*`: its helper.
            CTA_HELP = 5;
            /// Nested `CTA_NAT_*`: translation of the source; only in requests.
            CTA_NAT_SRC = 6;
            /// u32, big-endian: seconds until the entry is deleted.
            CTA_TIMEOUT = 7;
            /// u32, big-endian: its mark.
            CTA_MARK = 8;
            /// Nested `CTA_COUNTERS_*`: the direction of the first packet.
            CTA_COUNTERS_ORIG = 9;
            /// Nested `CTA_COUNTERS_*`: the direction of answers.
            CTA_COUNTERS_REPLY = 10;
            /// u32, big-endian: reference count.
            CTA_USE = 11;
            /// u32, big-endian: the id of this entry, which differs from that of another entry with the same tuple.
            CTA_ID = 12;
            /// Nested `CTA_NAT_*`: translation of the destination; only in requests.
            CTA_NAT_DST = 13;
            /// Nested `CTA_TUPLE_*`: the connection that expected it.
            CTA_TUPLE_MASTER = 14;
            /// Nested `CTA_SEQADJ_*`.
            CTA_SEQ_ADJ_ORIG = 15;
            /// Nested `CTA_SEQADJ_*`.
            CTA_SEQ_ADJ_REPLY = 16;
            /// Obsolete.
            CTA_SECMARK = 17;
            /// u16, big-endian: the zone of both directions.
            CTA_ZONE = 18;
            /// Nested `CTA_SECCTX_*`: its security context.
            CTA_SECCTX = 19;
            /// Nested `CTA_TIMESTAMP_*`: its creation time.
            CTA_TIMESTAMP = 20;
            /// u32, big-endian: the bits of the mark that are set or compared.
            CTA_MARK_MASK = 21;
            /// Bytes: its labels, a bit each.
            CTA_LABELS = 22;
            /// Bytes: mask of labels to change.
            CTA_LABELS_MASK = 23;
            /// Nested `CTA_SYNPROXY_*`.
            CTA_SYNPROXY = 24;
            /// Nested `CTA_FILTER_*`: the parts of the tuples that a dump compares.
            CTA_FILTER = 25;
            /// u32, big-endian: the bits of the status that a dump compares.
            CTA_STATUS_MASK = 26;
        }

        /// Attributes of a direction.
        "enum ctattr_tuple": u16 {
            /// Not used.
            CTA_TUPLE_UNSPEC = 0;
            /// Nested `CTA_IP_*`.
            CTA_TUPLE_IP = 1;
            /// Nested `CTA_PROTO_*`.
            CTA_TUPLE_PROTO = 2;
            /// u16, big-endian: the zone of this direction alone.
            CTA_TUPLE_ZONE = 3;
        }

        /// Addresses of a direction.
        "enum ctattr_ip": u16 {
            /// Not used.
            CTA_IP_UNSPEC = 0;
            /// 4 bytes: the source.
            CTA_IP_V4_SRC = 1;
            /// 4 bytes: the destination.
            CTA_IP_V4_DST = 2;
            /// 16 bytes: the source.
            CTA_IP_V6_SRC = 3;
            /// 16 bytes: the destination.
            CTA_IP_V6_DST = 4;
        }

        /// Protocol and ports of a direction.
        "enum ctattr_l4proto": u16 {
            /// Not used.
            CTA_PROTO_UNSPEC = 0;
            /// u8: `IPPROTO_*`.
            CTA_PROTO_NUM = 1;
            /// u16, big-endian: the source port; of GRE the key.
            CTA_PROTO_SRC_PORT = 2;
            /// u16, big-endian: the destination port; of GRE the key.
            CTA_PROTO_DST_PORT = 3;
            /// u16, big-endian.
            CTA_PROTO_ICMP_ID = 4;
            /// u8.
            CTA_PROTO_ICMP_TYPE = 5;
            /// u8.
            CTA_PROTO_ICMP_CODE = 6;
            /// u16, big-endian.
            CTA_PROTO_ICMPV6_ID = 7;
            /// u8.
            CTA_PROTO_ICMPV6_TYPE = 8;
            /// u8.
            CTA_PROTO_ICMPV6_CODE = 9;
        }

        /// The protocol of the state.
        "enum ctattr_protoinfo": u16 {
            /// Not used.
            CTA_PROTOINFO_UNSPEC = 0;
            /// Nested `CTA_PROTOINFO_TCP_*`.
            CTA_PROTOINFO_TCP = 1;
            /// Nested; DCCP is gone since Linux 6.16.
            CTA_PROTOINFO_DCCP = 2;
            /// Nested `CTA_PROTOINFO_SCTP_*`.
            CTA_PROTOINFO_SCTP = 3;
        }

        /// The state of a TCP connection.
        "enum ctattr_protoinfo_tcp": u16 {
            /// Not used.
            CTA_PROTOINFO_TCP_UNSPEC = 0;
            /// u8: `TCP_CONNTRACK_*`.
            CTA_PROTOINFO_TCP_STATE = 1;
            /// u8.
            CTA_PROTOINFO_TCP_WSCALE_ORIGINAL = 2;
            /// u8.
            CTA_PROTOINFO_TCP_WSCALE_REPLY = 3;
            /// Two u8: flags and mask.
            CTA_PROTOINFO_TCP_FLAGS_ORIGINAL = 4;
            /// Two u8: flags and mask.
            CTA_PROTOINFO_TCP_FLAGS_REPLY = 5;
        }

        /// The state of an SCTP association.
        "enum ctattr_protoinfo_sctp": u16 {
            /// Not used.
            CTA_PROTOINFO_SCTP_UNSPEC = 0;
            /// u8: `SCTP_CONNTRACK_*`.
            CTA_PROTOINFO_SCTP_STATE = 1;
            /// u32, big-endian.
            CTA_PROTOINFO_SCTP_VTAG_ORIGINAL = 2;
            /// u32, big-endian.
            CTA_PROTOINFO_SCTP_VTAG_REPLY = 3;
        }

        /// Counters of a direction, if `net.netfilter.nf_conntrack_acct` is set.
        "enum ctattr_counters": u16 {
            /// Not used.
            CTA_COUNTERS_UNSPEC = 0;
            /// u64, big-endian.
            CTA_COUNTERS_PACKETS = 1;
            /// u64, big-endian.
            CTA_COUNTERS_BYTES = 2;
            /// Not used.
            CTA_COUNTERS32_PACKETS = 3;
            /// Not used.
            CTA_COUNTERS32_BYTES = 4;
            /// Padding, ignored.
            CTA_COUNTERS_PAD = 5;
        }

        /// Creation time of an entry, if `net.netfilter.nf_conntrack_timestamp` is set.
        "enum ctattr_tstamp": u16 {
            /// Not used.
            CTA_TIMESTAMP_UNSPEC = 0;
            /// u64, big-endian: nanoseconds since 1970.
            CTA_TIMESTAMP_START = 1;
            /// u64, big-endian: nanoseconds since 1970.
            CTA_TIMESTAMP_STOP = 2;
            /// Padding, ignored.
            CTA_TIMESTAMP_PAD = 3;
        }

        /// The helper of an entry.
        "enum ctattr_help": u16 {
            /// Not used.
            CTA_HELP_UNSPEC = 0;
            /// String.
            CTA_HELP_NAME = 1;
            /// Bytes: the helper's own.
            CTA_HELP_INFO = 2;
        }

        /// Number of entries.
        "enum ctattr_stats_global": u16 {
            /// Not used.
            CTA_STATS_GLOBAL_UNSPEC = 0;
            /// u32, big-endian: now.
            CTA_STATS_GLOBAL_ENTRIES = 1;
            /// u32, big-endian: at most (`net.netfilter.nf_conntrack_max`).
            CTA_STATS_GLOBAL_MAX_ENTRIES = 2;
        }

        /// Parts of the tuples that a dump compares, since Linux 5.8.
        "enum ctattr_filter": u16 {
            /// Not used.
            CTA_FILTER_UNSPEC = 0;
            /// u32, host byte order: which parts of [`CTA_TUPLE_ORIG`].
            CTA_FILTER_ORIG_FLAGS = 1;
            /// u32, host byte order: which parts of [`CTA_TUPLE_REPLY`].
            CTA_FILTER_REPLY_FLAGS = 2;
        }
    }
}
