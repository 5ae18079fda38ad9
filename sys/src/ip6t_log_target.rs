//! `linux/netfilter_ipv6/ip6t_LOG.h`: the target `LOG` under its old IPv6 names, with the layout of
//! [`xt_log_target`](crate::xt_log_target).

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_LOG.h";

    constants {
        /// Additional fields to log ([`ip6t_log_info::logflags`]).
        "#define IP6T_LOG_*": u8 {
            /// TCP sequence numbers.
            IP6T_LOG_TCPSEQ = 0x01;
            /// TCP options.
            IP6T_LOG_TCPOPT = 0x02;
            /// IP options.
            IP6T_LOG_IPOPT = 0x04;
            /// User id of the socket.
            IP6T_LOG_UID = 0x08;
            /// Not supported by the kernel.
            IP6T_LOG_NFLOG = 0x10;
            /// The link layer header, decoded.
            IP6T_LOG_MACDECODE = 0x20;
            /// All flags.
            IP6T_LOG_MASK = 0x2f;
        }
    }

    structs {
        /// Data of the target `LOG` of IPv6, revision 0.
        struct ip6t_log_info {
            /// Level of the log line: 0 (emergency) to 7 (debug).
            field level: u8,
            /// `IP6T_LOG_*`.
            field logflags: u8,
            /// Prefix of the log line, NUL-terminated.
            field prefix: [u8; 30],
        }
    }
}
