//! `linux/audit.h`: audit records of netfilter changes, and whether auditing is enabled. The rest of the header, about
//! system calls and audit rules, is omitted.

use crate::abi::abi;

abi! {
    header "linux/audit.h";

    constants {
        /// Commands ([`nlmsghdr::nlmsg_type`](crate::netlink::nlmsghdr::nlmsg_type)).
        "#define AUDIT_* (commands)": u16 {
            /// Requests a `struct audit_status`, whose second word, `enabled`, is 0 where nothing is audited.
            AUDIT_GET = 1000;
        }

        /// Text records.
        "#define AUDIT_* (records)": u16 {
            /// A table of netfilter was registered, replaced, or unregistered.
            AUDIT_NETFILTER_CFG = 1325;
        }

        /// Multicast groups.
        "enum audit_nlgrps": u32 {
            /// All records, for others than the audit daemon. Takes `CAP_AUDIT_READ`.
            AUDIT_NLGRP_READLOG = 1;
        }
    }
}
