//! `linux/netfilter/xt_socket.h`: the match `socket`; its revision 0 has no data.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_socket.h";

    constants {
        /// Flags of the match.
        "enum XT_SOCKET_*": u8 {
            /// The socket must be transparent.
            XT_SOCKET_TRANSPARENT = 1 << 0;
            /// The socket may be bound to no address.
            XT_SOCKET_NOWILDCARD = 1 << 1;
            /// The packet gets the socket's mark.
            XT_SOCKET_RESTORESKMARK = 1 << 2;
        }

        /// All flags of a revision.
        "#define XT_SOCKET_FLAGS_V*": u8 {
            /// Revision 1.
            XT_SOCKET_FLAGS_V1 = 0x1;
            /// Revision 2.
            XT_SOCKET_FLAGS_V2 = 0x3;
            /// Revision 3.
            XT_SOCKET_FLAGS_V3 = 0x7;
        }
    }

    structs {
        /// Data of the match `socket`, revision 1.
        struct xt_socket_mtinfo1 {
            /// Flags in [`XT_SOCKET_FLAGS_V1`].
            field flags: u8,
        }

        /// Data of the match `socket`, revision 2.
        struct xt_socket_mtinfo2 {
            /// Flags in [`XT_SOCKET_FLAGS_V2`].
            field flags: u8,
        }

        /// Data of the match `socket`, revision 3.
        struct xt_socket_mtinfo3 {
            /// Flags in [`XT_SOCKET_FLAGS_V3`].
            field flags: u8,
        }
    }
}
