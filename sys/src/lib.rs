//! The kernel ABI of the Linux packet filter as data: constants and `#[repr(C)]` structs of netlink,
//! nfnetlink, nf_tables and x_tables. No logic, no allocation, no system calls, `no_std`.
//!
//! Each module corresponds to one kernel header, and every name is the kernel's own:
//! `NFTA_CHAIN_NAME` of `linux/netfilter/nf_tables.h` is [`nf_tables::NFTA_CHAIN_NAME`]. The names of
//! some kernel headers differ only in case, such as `xt_DSCP.h` (a target) and `xt_dscp.h` (a match).
//! Here, the module of an upper-case header with the prefix `xt_`, `ipt_` or `ip6t_` ends in
//! `_target`: [`xt_dscp_target`].
//!
//! ```
//! use chainwright_sys::netlink::{NLM_F_DUMP, NLM_F_REQUEST, nlmsghdr};
//! use chainwright_sys::nf_tables::NFT_MSG_GETCHAIN;
//! use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;
//! use zerocopy::IntoBytes;
//!
//! let header = nlmsghdr {
//!     nlmsg_len: 20,
//!     nlmsg_type: u16::from(NFNL_SUBSYS_NFTABLES) << 8 | u16::from(NFT_MSG_GETCHAIN),
//!     nlmsg_flags: NLM_F_REQUEST | NLM_F_DUMP,
//!     nlmsg_seq: 1,
//!     nlmsg_pid: 0,
//! };
//! assert_eq!(header.as_bytes().len(), 16);
//! ```
//!
//! # Types
//! - Constants have the type of the field that holds them: message types of a subsystem are `u8`,
//!   attribute types `u16`, flag words, registers, operations and keys `u32`, socket options `i32`,
//!   hook priorities and verdicts `i32` (jump, goto and return are negative), lengths `usize`.
//! - Struct fields are in host byte order. Fields that the kernel declares as big-endian, and all IP
//!   addresses, are byte arrays (`[u8; 2]`, `[u8; 4]`, `[u8; 16]`) in network byte order.
//! - Every struct implements zerocopy's `FromBytes`, `IntoBytes`, `Immutable` and `KnownLayout`;
//!   `__pad` fields make padding explicit. Bytes from a netlink attribute or from the middle of a
//!   buffer may be less aligned than the struct: read a copy (`read_from_prefix`) or use
//!   `zerocopy::Unalign`.
//! - A struct that ends in a flexible array in C is only its fixed part here; its documentation
//!   describes the array.
//!
//! # Omissions
//! End markers of enums, and masks that grow with them (`NFTA_CHAIN_MAX`, `__NFTA_CHAIN_MAX`,
//! `NFT_TABLE_F_MASK`, …), are omitted: their values differ between Linux releases, so they describe
//! the headers of a build, not the abilities of a kernel.
//!
//! # Versions
//! The minimum is Linux 6.1: its headers contain all constants without a note. The documentation of
//! newer ones, up to Linux 6.18, names the first release with them; stable branches and distributions
//! may have backported them. The values are the same on every kernel that supports them. A kernel
//! that does not support a message, flag or key refuses it, but silently ignores many unknown
//! attributes.
//!
//! # Checks
//! Every module has a table, [`abi::Header`], of its declarations, and [`HEADERS`] lists all tables.
//! `cargo test` generates a C program from them, compiles it against the installed kernel headers and
//! compares every value, size, alignment and offset. It counts the constants that are newer than
//! those headers; `CHAINWRIGHT_SYS_HEADERS=/path/to/include` selects other headers.

#![no_std]
#![allow(non_camel_case_types)]
#![forbid(unsafe_code)]

pub mod abi;

/// Declares the modules and lists their tables.
macro_rules! headers {
    ($($(#[$meta:meta])* pub mod $module:ident;)*) => {
        $($(#[$meta])* pub mod $module;)*

        /// The table of every header in this crate.
        pub const HEADERS: &[&abi::Header] = &[$(&$module::ABI),*];
    };
}

headers! {
    pub mod audit;
    pub mod netlink;
    pub mod nfnetlink;
    pub mod nfnetlink_acct;
    pub mod nfnetlink_conntrack;
    pub mod nfnetlink_hook;
    pub mod nfnetlink_osf;
    pub mod filter;
    pub mod netfilter;
    pub mod netfilter_ipv4;
    pub mod netfilter_ipv6;
    pub mod netfilter_arp;
    pub mod netfilter_bridge;
    pub mod nf_tables;
    pub mod nf_tables_compat;
    pub mod x_tables;
    pub mod ip_tables;
    pub mod ip6_tables;
    pub mod arp_tables;
    pub mod nf_conntrack_common;
    pub mod nf_conntrack_tuple_common;
    pub mod nf_log;
    pub mod nf_nat;
    pub mod ip_set;
    pub mod xt_addrtype;
    pub mod xt_audit_target;
    pub mod xt_bpf;
    pub mod xt_cgroup;
    pub mod xt_checksum_target;
    pub mod xt_classify_target;
    pub mod xt_cluster;
    pub mod xt_comment;
    pub mod xt_connbytes;
    pub mod xt_connlabel;
    pub mod xt_connlimit;
    pub mod xt_connmark;
    pub mod xt_connsecmark_target;
    pub mod xt_conntrack;
    pub mod xt_cpu;
    pub mod xt_ct_target;
    pub mod xt_dccp;
    pub mod xt_devgroup;
    pub mod xt_dscp;
    pub mod xt_dscp_target;
    pub mod xt_ecn;
    pub mod xt_esp;
    pub mod xt_hashlimit;
    pub mod xt_helper;
    pub mod xt_hmark_target;
    pub mod xt_idletimer_target;
    pub mod xt_ipcomp;
    pub mod xt_iprange;
    pub mod xt_ipvs;
    pub mod xt_l2tp;
    pub mod xt_led_target;
    pub mod xt_length;
    pub mod xt_limit;
    pub mod xt_log_target;
    pub mod xt_mac;
    pub mod xt_mark;
    pub mod xt_multiport;
    pub mod xt_nfacct;
    pub mod xt_nflog_target;
    pub mod xt_nfqueue_target;
    pub mod xt_osf;
    pub mod xt_owner;
    pub mod xt_physdev;
    pub mod xt_pkttype;
    pub mod xt_policy;
    pub mod xt_quota;
    pub mod xt_rateest;
    pub mod xt_rateest_target;
    pub mod xt_realm;
    pub mod xt_recent;
    pub mod xt_rpfilter;
    pub mod xt_sctp;
    pub mod xt_secmark_target;
    pub mod xt_set;
    pub mod xt_socket;
    pub mod xt_state;
    pub mod xt_statistic;
    pub mod xt_string;
    pub mod xt_synproxy_target;
    pub mod xt_tcpmss;
    pub mod xt_tcpmss_target;
    pub mod xt_tcpoptstrip_target;
    pub mod xt_tcpudp;
    pub mod xt_tee_target;
    pub mod xt_time;
    pub mod xt_tproxy_target;
    pub mod xt_u32;
    pub mod ipt_ah;
    pub mod ipt_clusterip_target;
    // Before the target: C can declare the match's enum only while IPT_ECN_IP_MASK is not a macro
    // yet.
    pub mod ipt_ecn;
    pub mod ipt_ecn_target;
    pub mod ipt_log_target;
    pub mod ipt_reject_target;
    pub mod ipt_ttl;
    pub mod ipt_ttl_target;
    pub mod ip6t_ah;
    pub mod ip6t_frag;
    pub mod ip6t_hl;
    pub mod ip6t_hl_target;
    pub mod ip6t_ipv6header;
    pub mod ip6t_log_target;
    pub mod ip6t_mh;
    pub mod ip6t_npt_target;
    pub mod ip6t_opts;
    pub mod ip6t_reject_target;
    pub mod ip6t_rt;
    pub mod ip6t_srh;
}
