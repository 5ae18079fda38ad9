//! `linux/netfilter/xt_addrtype.h`: the match `addrtype`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_addrtype.h";

    constants {
        /// Flags of the match, revision 1.
        "enum XT_ADDRTYPE_INVERT_*, XT_ADDRTYPE_LIMIT_*": u32 {
            /// Negate the types of the source.
            XT_ADDRTYPE_INVERT_SOURCE = 0x0001;
            /// Negate the types of the destination.
            XT_ADDRTYPE_INVERT_DEST = 0x0002;
            /// Look the address up only on the incoming interface.
            XT_ADDRTYPE_LIMIT_IFACE_IN = 0x0004;
            /// Look the address up only on the outgoing interface.
            XT_ADDRTYPE_LIMIT_IFACE_OUT = 0x0008;
        }

        /// Types of an address: bits `1 << RTN_*` of its route.
        "enum XT_ADDRTYPE_*": u16 {
            /// The unspecified address.
            XT_ADDRTYPE_UNSPEC = 1 << 0;
            /// Another host's address.
            XT_ADDRTYPE_UNICAST = 1 << 1;
            /// An address of this machine.
            XT_ADDRTYPE_LOCAL = 1 << 2;
            /// A broadcast address.
            XT_ADDRTYPE_BROADCAST = 1 << 3;
            /// An anycast address.
            XT_ADDRTYPE_ANYCAST = 1 << 4;
            /// A multicast address.
            XT_ADDRTYPE_MULTICAST = 1 << 5;
            /// The route discards silently.
            XT_ADDRTYPE_BLACKHOLE = 1 << 6;
            /// The route answers that the host is unreachable.
            XT_ADDRTYPE_UNREACHABLE = 1 << 7;
            /// The route answers that it is prohibited.
            XT_ADDRTYPE_PROHIBIT = 1 << 8;
            /// The route passes on to the next routing table.
            XT_ADDRTYPE_THROW = 1 << 9;
            /// The route translates; the kernel no longer has such routes.
            XT_ADDRTYPE_NAT = 1 << 10;
            /// The route uses an external resolver; the kernel has no such routes.
            XT_ADDRTYPE_XRESOLVE = 1 << 11;
        }
    }

    structs {
        /// Data of the match `addrtype`, revision 1.
        struct xt_addrtype_info_v1 {
            /// Types of the source address, any of which matches; 0 to ignore it.
            field source: u16,
            /// Types of the destination address, any of which matches; 0 to ignore it.
            field dest: u16,
            /// `XT_ADDRTYPE_INVERT_*` and `XT_ADDRTYPE_LIMIT_*`.
            field flags: u32,
        }

        /// Data of the match `addrtype`, revision 0: IPv4.
        struct xt_addrtype_info {
            /// Types of the source address, any of which matches; 0 to ignore it.
            field source: u16,
            /// Types of the destination address, any of which matches; 0 to ignore it.
            field dest: u16,
            /// 1 negates the types of the source.
            field invert_source: u32,
            /// 1 negates the types of the destination.
            field invert_dest: u32,
        }
    }
}
