//! `linux/netfilter/xt_LOG.h`: the target `LOG`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_LOG.h";

    constants {
        /// Additional fields to log; the values of `NF_LOG_*`.
        "#define XT_LOG_*": u8 {
            /// TCP sequence numbers.
            XT_LOG_TCPSEQ = 0x01;
            /// TCP options.
            XT_LOG_TCPOPT = 0x02;
            /// IP options.
            XT_LOG_IPOPT = 0x04;
            /// User id of the socket.
            XT_LOG_UID = 0x08;
            /// Not supported by the kernel.
            XT_LOG_NFLOG = 0x10;
            /// The link layer header, decoded.
            XT_LOG_MACDECODE = 0x20;
            /// All flags that the kernel supports.
            XT_LOG_MASK = 0x2f;
        }
    }

    structs {
        /// Data of the target `LOG`, revision 0.
        struct xt_log_info {
            /// Syslog level: 0 (emergency) to 7 (debug).
            field level: u8,
            /// `XT_LOG_*`.
            field logflags: u8,
            /// Prefix of the line, NUL-terminated.
            field prefix: [u8; 30],
        }
    }
}
