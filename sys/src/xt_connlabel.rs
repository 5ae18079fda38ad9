//! `linux/netfilter/xt_connlabel.h`: the match `connlabel`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_connlabel.h";

    constants {
        /// The highest label.
        "#define XT_CONNLABEL_MAXBIT": u16 {
            XT_CONNLABEL_MAXBIT = 127;
        }

        /// Options of the match.
        "enum xt_connlabel_mtopts": u16 {
            /// Negate.
            XT_CONNLABEL_OP_INVERT = 1 << 0;
            /// Set the label first; it matches when that succeeds.
            XT_CONNLABEL_OP_SET = 1 << 1;
        }
    }

    structs {
        /// Data of the match `connlabel`, revision 0.
        struct xt_connlabel_mtinfo {
            /// The label: 0 to [`XT_CONNLABEL_MAXBIT`], host byte order.
            field bit: u16,
            /// `XT_CONNLABEL_OP_*`.
            field options: u16,
        }
    }
}
