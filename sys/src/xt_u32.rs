//! `linux/netfilter/xt_u32.h`: the match `u32`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_u32.h";

    constants {
        /// Steps from an offset in the packet to a value ([`xt_u32_location_element::nextop`]).
        "enum xt_u32_ops": u8 {
            /// The value and the number, bit by bit.
            XT_U32_AND = 0;
            /// The value shifted to the left by the number of bits.
            XT_U32_LEFTSH = 1;
            /// The value shifted to the right by the number of bits.
            XT_U32_RIGHTSH = 2;
            /// The value is added to the place; the next value is read the number of bytes further on.
            XT_U32_AT = 3;
        }

        /// One less than the capacity for tests, steps and ranges.
        "#define XT_U32_MAXSIZE": usize {
            XT_U32_MAXSIZE = 10;
        }
    }

    structs {
        /// A step.
        struct xt_u32_location_element {
            /// Operand, host byte order; in the first step, where the value is, in bytes from the IP header.
            field number: u32,
            /// `XT_U32_*`; ignored in the first step.
            field nextop: u8,
            pad __pad: [u8; 3],
        }

        /// A range of values.
        struct xt_u32_value_element {
            /// First value, host byte order.
            field min: u32,
            /// Last value, host byte order.
            field max: u32,
        }

        /// A test: a value is in one of the ranges.
        struct xt_u32_test {
            /// Steps to the value.
            field location: [xt_u32_location_element; XT_U32_MAXSIZE + 1],
            /// Ranges.
            field value: [xt_u32_value_element; XT_U32_MAXSIZE + 1],
            /// Number of elements of `location` in use.
            field nnums: u8,
            /// Number of elements of `value` in use.
            field nvalues: u8,
            pad __pad: [u8; 2],
        }

        /// Data of the match `u32`, revision 0: all tests must be true.
        struct xt_u32 {
            /// Tests.
            field tests: [xt_u32_test; XT_U32_MAXSIZE + 1],
            /// Number of elements of `tests` in use.
            field ntests: u8,
            /// 1 negates.
            field invert: u8,
            pad __pad: [u8; 2],
        }
    }
}
