//! `linux/netfilter_ipv4/ipt_LOG.h`: the target `LOG` under its old IPv4 names, with the layout of
//! [`xt_log_target`](crate::xt_log_target).

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv4/ipt_LOG.h";

    constants {
        /// Additional fields to log ([`ipt_log_info::logflags`]).
        "#define IPT_LOG_*": u8 {
            /// TCP sequence numbers.
            IPT_LOG_TCPSEQ = 0x01;
            /// TCP options.
            IPT_LOG_TCPOPT = 0x02;
            /// IP options.
            IPT_LOG_IPOPT = 0x04;
            /// User id of the socket.
            IPT_LOG_UID = 0x08;
            /// Not supported by the kernel.
            IPT_LOG_NFLOG = 0x10;
            /// The link layer header, decoded.
            IPT_LOG_MACDECODE = 0x20;
            /// All flags.
            IPT_LOG_MASK = 0x2f;
        }
    }

    structs {
        /// Data of the target `LOG` of IPv4, revision 0.
        struct ipt_log_info {
            /// Level of the log line: 0 (emergency) to 7 (debug).
            field level: u8,
            /// `IPT_LOG_*`.
            field logflags: u8,
            /// Prefix of the log line, NUL-terminated.
            field prefix: [u8; 30],
        }
    }
}
