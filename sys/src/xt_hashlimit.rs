//! `linux/netfilter/xt_hashlimit.h`: the match `hashlimit`.

#![allow(non_upper_case_globals)]

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_hashlimit.h";

    constants {
        /// Units of `avg` per second in revisions 0 and 1.
        "#define XT_HASHLIMIT_SCALE": u32 {
            XT_HASHLIMIT_SCALE = 10_000;
        }

        /// Units of `avg` per second in revisions 2 and 3.
        "#define XT_HASHLIMIT_SCALE_v2": u64 {
            XT_HASHLIMIT_SCALE_v2 = 1_000_000;
        }

        /// Shift of lengths: bytes are counted in steps of 16.
        "#define XT_HASHLIMIT_BYTE_SHIFT": u32 {
            XT_HASHLIMIT_BYTE_SHIFT = 4;
        }

        /// Fields of the key of a table entry, and the comparison of the rate (`mode`).
        "enum XT_HASHLIMIT_*": u32 {
            /// The same destination address.
            XT_HASHLIMIT_HASH_DIP = 1 << 0;
            /// The same destination port.
            XT_HASHLIMIT_HASH_DPT = 1 << 1;
            /// The same source address.
            XT_HASHLIMIT_HASH_SIP = 1 << 2;
            /// The same source port.
            XT_HASHLIMIT_HASH_SPT = 1 << 3;
            /// Match above the rate instead of up to it.
            XT_HASHLIMIT_INVERT = 1 << 4;
            /// The rate is in bytes.
            XT_HASHLIMIT_BYTES = 1 << 5;
            /// Measure the rate over an interval (revision 3).
            XT_HASHLIMIT_RATE_MATCH = 1 << 6;
        }
    }

    structs {
        /// Parameters of the match, revision 0.
        struct hashlimit_cfg {
            /// `XT_HASHLIMIT_*`.
            field mode: u32,
            /// Time between two packets at the rate: [`XT_HASHLIMIT_SCALE`] divided by packets per second. Host byte order.
            field avg: u32,
            /// Number of packets allowed at once. Host byte order.
            field burst: u32,
            /// Number of buckets of the hash table; 0 for the kernel\'s default.
            field size: u32,
            /// The most entries of the table; 0 leaves it to the kernel.
            field max: u32,
            /// Milliseconds between two searches for expired entries.
            field gc_interval: u32,
            /// Milliseconds after which an unused entry expires.
            field expire: u32,
        }

        /// Data of the match `hashlimit`, revision 0: IPv4, in very old kernels.
        struct xt_hashlimit_info {
            /// Name of the table, NUL-terminated; rules with the same one share it.
            field name: [u8; 16],
            /// Parameters.
            field cfg: hashlimit_cfg,
            #[cfg(target_pointer_width = "64")]
            pad __pad: [u8; 4],
            /// The kernel's own pointer; zero.
            field hinfo: usize,
            /// The kernel's own pointer; zero. A union with `u.master` in C.
            field ptr: usize = "u.ptr",
        }

        /// Parameters of the match, revision 1.
        struct hashlimit_cfg1 {
            /// `XT_HASHLIMIT_*`.
            field mode: u32,
            /// Time between two packets at the rate: [`XT_HASHLIMIT_SCALE`] divided by packets per second; with [`XT_HASHLIMIT_BYTES`], `u32::MAX / (bytes per second / 16 + 1)`. Host byte order.
            field avg: u32,
            /// Number of packets allowed at once; with [`XT_HASHLIMIT_BYTES`], the number of seconds whose bytes may be
            /// used in advance. Host byte order.
            field burst: u32,
            /// Number of buckets of the hash table; 0 for the kernel\'s default.
            field size: u32,
            /// The most entries of the table; 0 leaves it to the kernel.
            field max: u32,
            /// Milliseconds between two searches for expired entries.
            field gc_interval: u32,
            /// Milliseconds after which an unused entry expires.
            field expire: u32,
            /// Prefix length that source addresses are cut to, in bits.
            field srcmask: u8,
            /// Prefix length that destination addresses are cut to, in bits.
            field dstmask: u8,
            pad __pad: [u8; 2],
        }

        /// Parameters of the match, revision 2: wider rate and burst.
        struct hashlimit_cfg2 {
            /// Time between two packets at the rate: [`XT_HASHLIMIT_SCALE_v2`] divided by packets per second; with [`XT_HASHLIMIT_BYTES`], `u32::MAX / (bytes per second / 16 + 1)`. Host byte order.
            field avg: u64,
            /// Number of packets allowed at once; with [`XT_HASHLIMIT_BYTES`], the number of seconds whose bytes may be
            /// used in advance. Host byte order.
            field burst: u64,
            /// `XT_HASHLIMIT_*`.
            field mode: u32,
            /// Number of buckets of the hash table; 0 for the kernel\'s default.
            field size: u32,
            /// The most entries of the table; 0 leaves it to the kernel.
            field max: u32,
            /// Milliseconds between two searches for expired entries.
            field gc_interval: u32,
            /// Milliseconds after which an unused entry expires.
            field expire: u32,
            /// Prefix length that source addresses are cut to, in bits.
            field srcmask: u8,
            /// Prefix length that destination addresses are cut to, in bits.
            field dstmask: u8,
            pad __pad: [u8; 2],
        }

        /// Parameters of the match, revision 3: with an interval.
        struct hashlimit_cfg3 {
            /// Time between two packets at the rate: [`XT_HASHLIMIT_SCALE_v2`] divided by packets per second; with [`XT_HASHLIMIT_BYTES`], `u32::MAX / (bytes per second / 16 + 1)`. Host byte order.
            field avg: u64,
            /// Number of packets allowed at once; with [`XT_HASHLIMIT_BYTES`], the number of seconds whose bytes may be
            /// used in advance. Host byte order.
            field burst: u64,
            /// `XT_HASHLIMIT_*`.
            field mode: u32,
            /// Number of buckets of the hash table; 0 for the kernel\'s default.
            field size: u32,
            /// The most entries of the table; 0 leaves it to the kernel.
            field max: u32,
            /// Milliseconds between two searches for expired entries.
            field gc_interval: u32,
            /// Milliseconds after which an unused entry expires.
            field expire: u32,
            /// With [`XT_HASHLIMIT_RATE_MATCH`]: seconds over which the rate is measured.
            field interval: u32,
            /// Prefix length that source addresses are cut to, in bits.
            field srcmask: u8,
            /// Prefix length that destination addresses are cut to, in bits.
            field dstmask: u8,
            #[cfg(target_arch = "x86")]
            pad __pad: [u8; 2],
            #[cfg(not(target_arch = "x86"))]
            pad __pad: [u8; 6],
        }

        /// Data of the match `hashlimit`, revision 1.
        #[repr(align(8))]
        struct xt_hashlimit_mtinfo1 {
            /// Name of the table, NUL-terminated; rules with the same one share it.
            field name: [u8; 16],
            /// Parameters.
            field cfg: hashlimit_cfg1,
            /// The kernel's own pointer; zero.
            field hinfo: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }

        /// Data of the match `hashlimit`, revision 2.
        #[repr(align(8))]
        struct xt_hashlimit_mtinfo2 {
            /// Name of the table, NUL-terminated; rules with the same one share it.
            field name: [u8; 255],
            pad __pad: [u8; 1],
            /// Parameters.
            field cfg: hashlimit_cfg2,
            /// The kernel's own pointer; zero.
            field hinfo: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad2: [u8; 4],
        }

        /// Data of the match `hashlimit`, revision 3.
        #[repr(align(8))]
        struct xt_hashlimit_mtinfo3 {
            /// Name of the table, NUL-terminated; rules with the same one share it.
            field name: [u8; 255],
            pad __pad: [u8; 1],
            /// Parameters.
            field cfg: hashlimit_cfg3,
            #[cfg(target_arch = "x86")]
            pad __pad2: [u8; 4],
            /// The kernel's own pointer; zero.
            field hinfo: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad3: [u8; 4],
        }
    }
}
