//! `linux/netfilter/xt_policy.h`: the match `policy`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_policy.h";

    constants {
        /// Maximum number of transformations in one match.
        "#define XT_POLICY_MAX_ELEM": usize {
            XT_POLICY_MAX_ELEM = 4;
        }

        /// Flags of the match ([`xt_policy_info::flags`]).
        "enum xt_policy_flags": u16 {
            /// Compare the transformations that the incoming packet had.
            XT_POLICY_MATCH_IN = 0x1;
            /// Compare the transformations that the outgoing packet will have.
            XT_POLICY_MATCH_OUT = 0x2;
            /// Match packets without IPsec.
            XT_POLICY_MATCH_NONE = 0x4;
            /// All transformations must match in order, not just one.
            XT_POLICY_MATCH_STRICT = 0x8;
        }

        /// Modes of IPsec ([`xt_policy_elem::mode`]).
        "enum xt_policy_modes": u8 {
            /// Transport.
            XT_POLICY_MODE_TRANSPORT = 0;
            /// Tunnel.
            XT_POLICY_MODE_TUNNEL = 1;
        }
    }

    structs {
        /// An IPv4 or IPv6 address; a union in C. An IPv4 address is in the first four bytes.
        #[repr(align(4))]
        struct xt_policy_addr = "union xt_policy_addr" {
            /// The address, network byte order.
            field a6: [u8; 16],
        }

        /// One transformation.
        struct xt_policy_elem {
            /// Source address of the tunnel.
            field saddr: xt_policy_addr,
            /// Its mask.
            field smask: xt_policy_addr,
            /// Destination address of the tunnel.
            field daddr: xt_policy_addr,
            /// Its mask.
            field dmask: xt_policy_addr,
            /// Security parameter index, big-endian.
            field spi: [u8; 4],
            /// Request id of the policy, host byte order.
            field reqid: u32,
            /// Protocol number of the transformation.
            field proto: u8,
            /// `XT_POLICY_MODE_*`.
            field mode: u8,
            /// Parts to compare. Bit fields in C (`struct xt_policy_spec`): `saddr`, `daddr`, `proto`, `mode`, `spi`,
            /// `reqid`, from bit 0 up on little-endian machines, from bit 7 down on big-endian ones.
            field r#match: u8 = "match",
            /// Parts to negate; the same bits as in `match`.
            field invert: u8,
        }

        /// Data of the match `policy`, revision 0.
        struct xt_policy_info {
            /// Transformations.
            field pol: [xt_policy_elem; XT_POLICY_MAX_ELEM],
            /// `XT_POLICY_MATCH_*`.
            field flags: u16,
            /// Number of elements of `pol` in use.
            field len: u16,
        }
    }
}
