//! `linux/netfilter/xt_bpf.h`: the match `bpf`.

use crate::abi::abi;
use crate::filter::sock_filter;

abi! {
    header "linux/netfilter/xt_bpf.h";

    constants {
        /// Sizes in the match `bpf`.
        "#define XT_BPF_*": usize {
            /// Most instructions of a program in the rule.
            XT_BPF_MAX_NUM_INSTR = 64;
            /// Maximum size of the path of a pinned program, in bytes, including the closing NUL.
            XT_BPF_PATH_MAX = XT_BPF_MAX_NUM_INSTR * core::mem::size_of::<sock_filter>();
        }

        /// Source of the program.
        "enum xt_bpf_modes": u16 {
            /// The rule holds it, as classic BPF.
            XT_BPF_MODE_BYTECODE = 0;
            /// The rule names a file in which it is pinned.
            XT_BPF_MODE_FD_PINNED = 1;
            /// The rule holds the file descriptor of a loaded one.
            XT_BPF_MODE_FD_ELF = 2;
        }

        /// Another name of [`XT_BPF_MODE_FD_PINNED`].
        "#define XT_BPF_MODE_PATH_PINNED": u16 {
            XT_BPF_MODE_PATH_PINNED = XT_BPF_MODE_FD_PINNED;
        }
    }

    structs {
        /// Data of the match `bpf`, revision 0.
        #[repr(align(8))]
        struct xt_bpf_info {
            /// Number of instructions of the program, host byte order.
            field bpf_program_num_elem: u16,
            pad __pad: [u8; 2],
            /// The program; it matches when it returns something other than 0.
            field bpf_program: [sock_filter; XT_BPF_MAX_NUM_INSTR],
            pad __pad2: [u8; 4],
            /// The kernel's own pointer; zero.
            field filter: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad3: [u8; 4],
        }

        /// Data of the match `bpf`, revision 1: also eBPF.
        #[repr(align(8))]
        struct xt_bpf_info_v1 {
            /// One of `XT_BPF_MODE_*`.
            field mode: u16,
            /// With [`XT_BPF_MODE_BYTECODE`]: number of instructions of the program, host byte order.
            field bpf_program_num_elem: u16,
            /// With [`XT_BPF_MODE_FD_ELF`]: the program's file descriptor in the process that sets the rule.
            field fd: i32,
            /// A union in C. With [`XT_BPF_MODE_PATH_PINNED`]: the path, NUL-terminated. With [`XT_BPF_MODE_BYTECODE`] (`bpf_program` in C): the bytes of [`XT_BPF_MAX_NUM_INSTR`] times [`sock_filter`].
            field path: [u8; XT_BPF_PATH_MAX],
            /// The kernel's own pointer; zero.
            field filter: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }
    }
}
