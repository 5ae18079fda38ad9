//! `linux/netfilter/nf_conntrack_common.h`: state and status of tracked connections.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_conntrack_common.h";

    constants {
        /// Relation of a packet to a tracked connection.
        "enum ip_conntrack_info": u32 {
            /// Part of a connection that has seen both directions.
            IP_CT_ESTABLISHED = 0;
            /// Related to another connection.
            IP_CT_RELATED = 1;
            /// First of a connection.
            IP_CT_NEW = 2;
            /// From here on: in the direction of replies.
            IP_CT_IS_REPLY = 3;
            /// Established, a reply.
            IP_CT_ESTABLISHED_REPLY = 3;
            /// Related, a reply.
            IP_CT_RELATED_REPLY = 4;
            /// Number of values.
            IP_CT_NUMBER = 5;
            /// Never seen on a packet.
            IP_CT_NEW_REPLY = 5;
        }

        /// Bits of a connection's state for `ct state`; the others are `1 << (ctinfo % IP_CT_IS_REPLY + 1)`.
        "#define NF_CT_STATE_*": u32 {
            /// The packet belongs to no connection.
            NF_CT_STATE_INVALID_BIT = 1 << 0;
            /// The packet is not tracked.
            NF_CT_STATE_UNTRACKED_BIT = 1 << 6;
        }

        /// Status of a connection (`ct status`), as bits and as bit numbers (`…_BIT`).
        "enum ip_conntrack_status": u32 {
            /// Number of [`IPS_EXPECTED`].
            IPS_EXPECTED_BIT = 0;
            /// It was expected by another one.
            IPS_EXPECTED = 1 << 0;
            /// Number of [`IPS_SEEN_REPLY`].
            IPS_SEEN_REPLY_BIT = 1;
            /// Packets were seen in both directions.
            IPS_SEEN_REPLY = 1 << 1;
            /// Number of [`IPS_ASSURED`].
            IPS_ASSURED_BIT = 2;
            /// It is not to be dropped early.
            IPS_ASSURED = 1 << 2;
            /// Number of [`IPS_CONFIRMED`].
            IPS_CONFIRMED_BIT = 3;
            /// It is in the table.
            IPS_CONFIRMED = 1 << 3;
            /// Number of [`IPS_SRC_NAT`].
            IPS_SRC_NAT_BIT = 4;
            /// Its source is translated.
            IPS_SRC_NAT = 1 << 4;
            /// Number of [`IPS_DST_NAT`].
            IPS_DST_NAT_BIT = 5;
            /// Its destination is translated.
            IPS_DST_NAT = 1 << 5;
            /// Number of [`IPS_SEQ_ADJUST`].
            IPS_SEQ_ADJUST_BIT = 6;
            /// Its TCP sequence numbers are adjusted.
            IPS_SEQ_ADJUST = 1 << 6;
            /// Number of [`IPS_SRC_NAT_DONE`].
            IPS_SRC_NAT_DONE_BIT = 7;
            /// Source translation was decided.
            IPS_SRC_NAT_DONE = 1 << 7;
            /// Number of [`IPS_DST_NAT_DONE`].
            IPS_DST_NAT_DONE_BIT = 8;
            /// Destination translation was decided.
            IPS_DST_NAT_DONE = 1 << 8;
            /// Number of [`IPS_DYING`].
            IPS_DYING_BIT = 9;
            /// It is being removed.
            IPS_DYING = 1 << 9;
            /// Number of [`IPS_FIXED_TIMEOUT`].
            IPS_FIXED_TIMEOUT_BIT = 10;
            /// Its timeout does not change.
            IPS_FIXED_TIMEOUT = 1 << 10;
            /// Number of [`IPS_TEMPLATE`].
            IPS_TEMPLATE_BIT = 11;
            /// It is a template.
            IPS_TEMPLATE = 1 << 11;
            /// Number of [`IPS_UNTRACKED`].
            IPS_UNTRACKED_BIT = 12;
            /// Not tracked; no longer used by the kernel.
            IPS_UNTRACKED = 1 << 12;
            /// Number of [`IPS_HELPER`].
            IPS_HELPER_BIT = 13;
            /// It has a helper.
            IPS_HELPER = 1 << 13;
            /// Number of [`IPS_OFFLOAD`].
            IPS_OFFLOAD_BIT = 14;
            /// A flow table carries it.
            IPS_OFFLOAD = 1 << 14;
            /// Number of [`IPS_HW_OFFLOAD`].
            IPS_HW_OFFLOAD_BIT = 15;
            /// Hardware carries it.
            IPS_HW_OFFLOAD = 1 << 15;
            /// Source or destination is translated.
            IPS_NAT_MASK = IPS_DST_NAT | IPS_SRC_NAT;
            /// Source or destination translation was decided.
            IPS_NAT_DONE_MASK = IPS_DST_NAT_DONE | IPS_SRC_NAT_DONE;
            /// Bits that a program cannot change.
            IPS_UNCHANGEABLE_MASK = IPS_NAT_DONE_MASK | IPS_NAT_MASK | IPS_EXPECTED | IPS_CONFIRMED
                | IPS_DYING | IPS_SEQ_ADJUST | IPS_TEMPLATE | IPS_UNTRACKED | IPS_OFFLOAD | IPS_HW_OFFLOAD;
        }

        /// Numbers of the events of a connection, for `ct event`.
        "enum ip_conntrack_events": u32 {
            IPCT_NEW = 0;
            IPCT_RELATED = 1;
            IPCT_DESTROY = 2;
            IPCT_REPLY = 3;
            IPCT_ASSURED = 4;
            IPCT_PROTOINFO = 5;
            IPCT_HELPER = 6;
            IPCT_MARK = 7;
            IPCT_SEQADJ = 8;
            IPCT_NATSEQADJ = 8;
            IPCT_SECMARK = 9;
            IPCT_LABEL = 10;
            IPCT_SYNPROXY = 11;
        }

        /// Numbers of the events of an expectation.
        "enum ip_conntrack_expect_events": u32 {
            IPEXP_NEW = 0;
            IPEXP_DESTROY = 1;
        }

        /// Flags of an expectation.
        "#define NF_CT_EXPECT_*": u32 {
            /// The expectation remains after a connection fulfils it.
            NF_CT_EXPECT_PERMANENT = 0x1;
            /// The expectation is not active yet.
            NF_CT_EXPECT_INACTIVE = 0x2;
            /// A program made it.
            NF_CT_EXPECT_USERSPACE = 0x4;
        }
    }
}
