//! `linux/filter.h`: an instruction of classic BPF, as the match `bpf` carries them. The rest of the
//! header, which is about sockets, is not here.

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
