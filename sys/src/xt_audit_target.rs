//! `linux/netfilter/xt_AUDIT.h`: the target `AUDIT`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_AUDIT.h";

    constants {
        /// Action in an audit record.
        "enum XT_AUDIT_TYPE_*": u8 {
            /// It was accepted.
            XT_AUDIT_TYPE_ACCEPT = 0;
            /// It was dropped.
            XT_AUDIT_TYPE_DROP = 1;
            /// It was rejected.
            XT_AUDIT_TYPE_REJECT = 2;
        }
    }

    structs {
        /// Data of the target `AUDIT`, revision 0.
        struct xt_audit_info {
            /// One of `XT_AUDIT_TYPE_*`; only written to the record, the packet continues.
            field r#type: u8 = "type",
        }
    }
}
