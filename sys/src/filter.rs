//! `linux/filter.h`: the classic BPF instruction, as used by the match `bpf`. The rest of the
//! header, about sockets, is omitted.

use crate::abi::abi;

abi! {
    header "linux/filter.h";

    structs {
        /// One instruction.
        struct sock_filter {
            /// Operation, host byte order.
            field code: u16,
            /// Instructions to skip when a comparison holds.
            field jt: u8,
            /// Instructions to skip when it does not.
            field jf: u8,
            /// Operand, host byte order.
            field k: u32,
        }
    }
}
