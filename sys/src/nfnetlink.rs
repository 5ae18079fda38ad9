//! `linux/netfilter/nfnetlink.h`: common parts of netfilter's netlink messages.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nfnetlink.h";

    constants {
        /// Multicast groups of netfilter, for `NETLINK_ADD_MEMBERSHIP`.
        "enum nfnetlink_groups": u32 {
            NFNLGRP_NONE = 0;
            /// New connections.
            NFNLGRP_CONNTRACK_NEW = 1;
            /// Changed connections.
            NFNLGRP_CONNTRACK_UPDATE = 2;
            /// Ended connections.
            NFNLGRP_CONNTRACK_DESTROY = 3;
            /// New expectations.
            NFNLGRP_CONNTRACK_EXP_NEW = 4;
            /// Changed expectations.
            NFNLGRP_CONNTRACK_EXP_UPDATE = 5;
            /// Ended expectations.
            NFNLGRP_CONNTRACK_EXP_DESTROY = 6;
            /// Changes of the nf_tables ruleset.
            NFNLGRP_NFTABLES = 7;
            /// Quotas that were used up.
            NFNLGRP_ACCT_QUOTA = 8;
            /// Traces of packets through nf_tables rules.
            NFNLGRP_NFTRACE = 9;
        }

        /// Version in [`nfgenmsg::version`].
        "#define NFNETLINK_V0": u8 {
            NFNETLINK_V0 = 0;
        }

        /// Subsystems of nfnetlink: the upper byte of a message's type.
        "#define NFNL_SUBSYS_*": u8 {
            NFNL_SUBSYS_NONE = 0;
            /// Connections.
            NFNL_SUBSYS_CTNETLINK = 1;
            /// Expected connections.
            NFNL_SUBSYS_CTNETLINK_EXP = 2;
            /// Packets for programs to judge.
            NFNL_SUBSYS_QUEUE = 3;
            /// Packets for programs to log.
            NFNL_SUBSYS_ULOG = 4;
            /// Fingerprints of operating systems.
            NFNL_SUBSYS_OSF = 5;
            /// IP sets.
            NFNL_SUBSYS_IPSET = 6;
            /// Accounting.
            NFNL_SUBSYS_ACCT = 7;
            /// Timeouts of connections.
            NFNL_SUBSYS_CTNETLINK_TIMEOUT = 8;
            /// Helpers of connection tracking.
            NFNL_SUBSYS_CTHELPER = 9;
            /// nf_tables.
            NFNL_SUBSYS_NFTABLES = 10;
            /// x_tables extensions inside nf_tables.
            NFNL_SUBSYS_NFT_COMPAT = 11;
            /// Listing of registered hooks.
            NFNL_SUBSYS_HOOK = 12;
        }

        /// Message types that enclose a batch; the subsystem byte is zero, and [`nfgenmsg::res_id`] contains the subsystem.
        "#define NFNL_MSG_BATCH_*": u16 {
            /// First message of a batch.
            NFNL_MSG_BATCH_BEGIN = 0x10;
            /// Last message of a batch: commit.
            NFNL_MSG_BATCH_END = 0x11;
        }

        /// Attributes of [`NFNL_MSG_BATCH_BEGIN`].
        "enum nfnl_batch_attributes": u16 {
            NFNL_BATCH_UNSPEC = 0;
            /// The generation that the batch was made for (u32, big-endian); another one is refused with `ERESTART`.
            NFNL_BATCH_GENID = 1;
        }
    }

    structs {
        /// Header of every netfilter message, after `nlmsghdr`.
        #[repr(align(2))]
        struct nfgenmsg {
            /// `NFPROTO_*`.
            field nfgen_family: u8,
            /// [`NFNETLINK_V0`].
            field version: u8,
            /// Argument of the message, big-endian: the subsystem at the begin and end of a batch, the lower half of the generation in messages from nf_tables.
            field res_id: [u8; 2],
        }
    }
}
