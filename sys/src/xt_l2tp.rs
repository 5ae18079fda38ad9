//! `linux/netfilter/xt_l2tp.h`: the match `l2tp`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_l2tp.h";

    constants {
        /// Types of L2TP packets ([`xt_l2tp_info::type`](xt_l2tp_info)).
        "enum xt_l2tp_type": u8 {
            /// Control.
            XT_L2TP_TYPE_CONTROL = 0;
            /// Data.
            XT_L2TP_TYPE_DATA = 1;
        }

        /// Fields that the match compares ([`xt_l2tp_info::flags`]).
        "enum XT_L2TP_*": u8 {
            /// The tunnel.
            XT_L2TP_TID = 1 << 0;
            /// The session.
            XT_L2TP_SID = 1 << 1;
            /// The version.
            XT_L2TP_VERSION = 1 << 2;
            /// The type of the packet.
            XT_L2TP_TYPE = 1 << 3;
        }
    }

    structs {
        /// Data of the match `l2tp`, revision 0.
        struct xt_l2tp_info {
            /// Tunnel id, host byte order.
            field tid: u32,
            /// Session id, host byte order.
            field sid: u32,
            /// Version of L2TP: 2 or 3.
            field version: u8,
            /// `XT_L2TP_TYPE_*`.
            field r#type: u8 = "type",
            /// `XT_L2TP_*`: fields to compare.
            field flags: u8,
            pad __pad: [u8; 1],
        }
    }
}
