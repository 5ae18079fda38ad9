//! `linux/netfilter/xt_cgroup.h`: the match `cgroup`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_cgroup.h";

    constants {
        /// Maximum size of the path of a control group in revision 2, in bytes, including the closing NUL.
        "#define XT_CGROUP_PATH_MAX": usize {
            XT_CGROUP_PATH_MAX = 512;
        }
    }

    structs {
        /// Data of the match `cgroup`, revision 0.
        struct xt_cgroup_info_v0 {
            /// Class of the sending socket (`net_cls.classid`), host byte order.
            field id: u32,
            /// 1 negates.
            field invert: u32,
        }

        /// Data of the match `cgroup`, revision 1: also a path of the unified hierarchy.
        #[repr(align(8))]
        struct xt_cgroup_info_v1 {
            /// 1: compare the path. Either this or `has_classid` is 1.
            field has_path: u8,
            /// 1: compare the class.
            field has_classid: u8,
            /// 1 negates the path.
            field invert_path: u8,
            /// 1 negates the class.
            field invert_classid: u8,
            /// Path from the root of the hierarchy, NUL-terminated; groups below it match too.
            field path: [u8; 4096],
            /// Class of the sending socket (`net_cls.classid`), host byte order.
            field classid: u32,
            /// The kernel's own pointer; zero.
            field r#priv: usize = "priv",
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }

        /// Data of the match `cgroup`, revision 2: as revision 1, but shorter.
        #[repr(align(8))]
        struct xt_cgroup_info_v2 {
            /// 1: compare the path. Either this or `has_classid` is 1.
            field has_path: u8,
            /// 1: compare the class.
            field has_classid: u8,
            /// 1 negates the path.
            field invert_path: u8,
            /// 1 negates the class.
            field invert_classid: u8,
            /// A union in C. With `has_path`: path from the root of the hierarchy, NUL-terminated; groups below it match too. With `has_classid` (`classid` in C): the first four bytes are the class of the sending socket, host byte order.
            field path: [u8; XT_CGROUP_PATH_MAX],
            pad __pad: [u8; 4],
            /// The kernel's own pointer; zero.
            field r#priv: usize = "priv",
            #[cfg(target_pointer_width = "32")]
            pad __pad2: [u8; 4],
        }
    }
}
