//! `linux/netfilter_ipv6/ip6t_REJECT.h`: the target `REJECT` of IPv6.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_REJECT.h";

    constants {
        /// Type of the reply ([`ip6t_reject_info::with`]).
        "enum ip6t_reject_with": u32 {
            /// ICMPv6 no route.
            IP6T_ICMP6_NO_ROUTE = 0;
            /// ICMPv6 administratively prohibited.
            IP6T_ICMP6_ADM_PROHIBITED = 1;
            /// ICMPv6 not a neighbour (beyond the scope of the source address).
            IP6T_ICMP6_NOT_NEIGHBOUR = 2;
            /// ICMPv6 address unreachable.
            IP6T_ICMP6_ADDR_UNREACH = 3;
            /// ICMPv6 port unreachable.
            IP6T_ICMP6_PORT_UNREACH = 4;
            /// ICMPv6 echo reply; refused by the kernel.
            IP6T_ICMP6_ECHOREPLY = 5;
            /// TCP reset.
            IP6T_TCP_RESET = 6;
            /// ICMPv6 source address failed the policy.
            IP6T_ICMP6_POLICY_FAIL = 7;
            /// ICMPv6 route refused.
            IP6T_ICMP6_REJECT_ROUTE = 8;
        }
    }

    structs {
        /// Data of the target `REJECT` of IPv6, revision 0.
        struct ip6t_reject_info {
            /// `IP6T_ICMP6_*` or [`IP6T_TCP_RESET`], host byte order.
            field with: u32,
        }
    }
}
