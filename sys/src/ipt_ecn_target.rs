//! `linux/netfilter_ipv4/ipt_ECN.h`: the target `ECN`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv4/ipt_ECN.h";

    constants {
        /// Bits of the type of service byte that are the ECN field.
        "#define IPT_ECN_IP_MASK": u8 {
            IPT_ECN_IP_MASK = 0x03, c "(__u8)IPT_ECN_IP_MASK";
        }

        /// Fields that the target changes ([`ipt_ECN_info::operation`]).
        "#define IPT_ECN_OP_*": u8 {
            /// The ECN field of the IPv4 header.
            IPT_ECN_OP_SET_IP = 0x01;
            /// The ECE bit of the TCP header.
            IPT_ECN_OP_SET_ECE = 0x10;
            /// The CWR bit of the TCP header.
            IPT_ECN_OP_SET_CWR = 0x20;
            /// Bits that must be zero.
            IPT_ECN_OP_MASK = 0xce;
        }
    }

    structs {
        /// Data of the target `ECN`, revision 0.
        struct ipt_ECN_info {
            /// `IPT_ECN_OP_*`.
            field operation: u8,
            /// New value of the ECN field: 0 to 3.
            field ip_ect: u8,
            /// New values of the TCP bits. Bit fields in C (`proto.tcp`): `ece`, `cwr`, from bit 0 up on little-endian machines, from bit 7 down on big-endian ones.
            field proto: u8,
        }
    }
}
