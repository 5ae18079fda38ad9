//! `linux/netfilter_ipv4/ipt_REJECT.h`: the target `REJECT` of IPv4.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv4/ipt_REJECT.h";

    constants {
        /// Type of the reply ([`ipt_reject_info::with`]).
        "enum ipt_reject_with": u32 {
            /// ICMP network unreachable.
            IPT_ICMP_NET_UNREACHABLE = 0;
            /// ICMP host unreachable.
            IPT_ICMP_HOST_UNREACHABLE = 1;
            /// ICMP protocol unreachable.
            IPT_ICMP_PROT_UNREACHABLE = 2;
            /// ICMP port unreachable.
            IPT_ICMP_PORT_UNREACHABLE = 3;
            /// ICMP echo reply; refused by the kernel.
            IPT_ICMP_ECHOREPLY = 4;
            /// ICMP network prohibited.
            IPT_ICMP_NET_PROHIBITED = 5;
            /// ICMP host prohibited.
            IPT_ICMP_HOST_PROHIBITED = 6;
            /// TCP reset.
            IPT_TCP_RESET = 7;
            /// ICMP communication administratively prohibited.
            IPT_ICMP_ADMIN_PROHIBITED = 8;
        }
    }

    structs {
        /// Data of the target `REJECT` of IPv4, revision 0.
        struct ipt_reject_info {
            /// `IPT_ICMP_*` or [`IPT_TCP_RESET`], host byte order; an enum in C.
            field with: u32,
        }
    }
}
