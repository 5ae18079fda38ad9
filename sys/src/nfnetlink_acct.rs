//! `linux/netfilter/nfnetlink_acct.h`: named counters (`NFNL_SUBSYS_ACCT`) of the match
//! `nfacct`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nfnetlink_acct.h";

    constants {
        /// Maximum size of a counter's name, in bytes, including the closing NUL.
        "#define NFACCT_NAME_MAX": usize {
            NFACCT_NAME_MAX = 32;
        }

        /// Messages of the subsystem.
        "enum nfnl_acct_msg_types": u8 {
            /// Creates a counter, or with `NLM_F_REPLACE` sets it to zero.
            NFNL_MSG_ACCT_NEW = 0;
            /// Requests a counter or, as a dump, all of them.
            NFNL_MSG_ACCT_GET = 1;
            /// Like [`NFNL_MSG_ACCT_GET`], and sets counters to zero.
            NFNL_MSG_ACCT_GET_CTRZERO = 2;
            /// Deletes a counter or, without a name, all that nothing uses.
            NFNL_MSG_ACCT_DEL = 3;
            /// Event: a counter went over its quota.
            NFNL_MSG_ACCT_OVERQUOTA = 4;
        }

        /// Flags of a counter ([`NFACCT_FLAGS`]).
        "enum nfnl_acct_flags": u32 {
            /// It has a quota, in packets.
            NFACCT_F_QUOTA_PKTS = 1 << 0;
            /// It has a quota, in bytes.
            NFACCT_F_QUOTA_BYTES = 1 << 1;
            /// It is over its quota; only the kernel sets this.
            NFACCT_F_OVERQUOTA = 1 << 2;
        }

        /// Attributes of a counter.
        "enum nfnl_acct_type": u16 {
            /// Not used.
            NFACCT_UNSPEC = 0;
            /// String: the name.
            NFACCT_NAME = 1;
            /// u64, big-endian: packets.
            NFACCT_PKTS = 2;
            /// u64, big-endian: bytes.
            NFACCT_BYTES = 3;
            /// u32, big-endian: reference count.
            NFACCT_USE = 4;
            /// u32, big-endian: `NFACCT_F_*`.
            NFACCT_FLAGS = 5;
            /// u64, big-endian: the quota, in packets or bytes.
            NFACCT_QUOTA = 6;
            /// Nested `NFACCT_FILTER_*`: filter of a dump.
            NFACCT_FILTER = 7;
            /// Padding, ignored.
            NFACCT_PAD = 8;
        }

        /// Attributes in [`NFACCT_FILTER`]: counters whose `flags & mask == value` are dumped.
        "enum nfnl_attr_filter_type": u16 {
            /// Not used.
            NFACCT_FILTER_UNSPEC = 0;
            /// u32, big-endian: the flags to compare.
            NFACCT_FILTER_MASK = 1;
            /// u32, big-endian: their required value.
            NFACCT_FILTER_VALUE = 2;
        }
    }
}
