//! `linux/netfilter/nf_log.h`: additional fields in netfilter's log messages.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_log.h";

    constants {
        /// Flags of the nf_tables expression `log` and of the target `LOG`: additional fields to write.
        "#define NF_LOG_*": u32 {
            /// TCP sequence numbers.
            NF_LOG_TCPSEQ = 0x01;
            /// TCP options.
            NF_LOG_TCPOPT = 0x02;
            /// IP options.
            NF_LOG_IPOPT = 0x04;
            /// User id of the socket.
            NF_LOG_UID = 0x08;
            /// Not supported by the kernel.
            NF_LOG_NFLOG = 0x10;
            /// The link layer header, decoded.
            NF_LOG_MACDECODE = 0x20;
            /// All flags.
            NF_LOG_MASK = 0x2f;
        }

        /// Maximum size of the prefix of a log line, in bytes, including the closing NUL.
        "#define NF_LOG_PREFIXLEN": usize {
            NF_LOG_PREFIXLEN = 128;
        }
    }
}
