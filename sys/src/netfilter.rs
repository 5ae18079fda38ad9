//! `linux/netfilter.h`: verdicts, hooks, protocol families and addresses of netfilter, and, from
//! their own headers, the hooks and priorities of [IPv4](crate::netfilter_ipv4),
//! [IPv6](crate::netfilter_ipv6), [ARP](crate::netfilter_arp) and
//! [bridge](crate::netfilter_bridge).

use crate::abi::abi;

pub use crate::netfilter_arp::*;
pub use crate::netfilter_bridge::*;
pub use crate::netfilter_ipv4::*;
pub use crate::netfilter_ipv6::*;

abi! {
    header "linux/netfilter.h";

    constants {
        /// Verdicts of a hook function; nf_tables uses the same numbers in addition to its own negative ones.
        "#define NF_* (verdicts)": i32 {
            /// Drop the packet.
            NF_DROP = 0;
            /// Accept the packet.
            NF_ACCEPT = 1;
            /// The hook keeps the packet.
            NF_STOLEN = 2;
            /// Queue the packet to a program.
            NF_QUEUE = 3;
            /// Call the hook again.
            NF_REPEAT = 4;
            /// Accept the packet without the remaining hooks; no longer used by the kernel.
            NF_STOP = 5;
            /// The highest verdict.
            NF_MAX_VERDICT = 5;
        }

        /// Layout of a verdict word: the verdict in the lower half, its argument (a queue number, an error) in the upper half.
        "#define NF_VERDICT_*": u32 {
            /// The verdict itself.
            NF_VERDICT_MASK = 0x0000_00ff;
            /// With [`NF_QUEUE`]: accept when no program listens.
            NF_VERDICT_FLAG_QUEUE_BYPASS = 0x0000_8000;
            /// With [`NF_QUEUE`]: the queue number.
            NF_VERDICT_QMASK = 0xffff_0000;
            /// Number of bits by which the queue number is shifted.
            NF_VERDICT_QBITS = 16;
            /// Number of bits by which the argument is shifted.
            NF_VERDICT_BITS = 16;
        }

        /// Hooks of the IPv4, IPv6 and inet families: points in the path of a packet.
        "enum nf_inet_hooks": u32 {
            NF_INET_PRE_ROUTING = 0;
            NF_INET_LOCAL_IN = 1;
            NF_INET_FORWARD = 2;
            NF_INET_LOCAL_OUT = 3;
            NF_INET_POST_ROUTING = 4;
            /// Number of hooks that x_tables uses: the length of its hook arrays.
            NF_INET_NUMHOOKS = 5;
            /// Only in the inet family of nf_tables.
            NF_INET_INGRESS = 5;
        }

        /// Hooks of a network device (the netdev family).
        "enum nf_dev_hooks": u32 {
            NF_NETDEV_INGRESS = 0;
            NF_NETDEV_EGRESS = 1;
        }

        /// Protocol families of netfilter, as `nfgenmsg.nfgen_family` carries them.
        "enum NFPROTO_*": u8 {
            NFPROTO_UNSPEC = 0;
            /// IPv4 and IPv6 together.
            NFPROTO_INET = 1;
            NFPROTO_IPV4 = 2;
            NFPROTO_ARP = 3;
            NFPROTO_NETDEV = 5;
            NFPROTO_BRIDGE = 7;
            NFPROTO_IPV6 = 10;
            /// The kernel itself no longer has it.
            NFPROTO_DECNET = 12;
        }
    }

    structs {
        /// An IPv4 or IPv6 address; a union in C. An IPv4 address is in the first four bytes.
        #[repr(align(4))]
        struct nf_inet_addr = "union nf_inet_addr" {
            /// The address, network byte order.
            field all: [u8; 16],
        }
    }
}
