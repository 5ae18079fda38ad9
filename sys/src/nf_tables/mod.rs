//! `linux/netfilter/nf_tables.h`: messages, attributes, flags, keys and operations of nf_tables.
//!
//! Messages have the type `NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_*` and start with `nlmsghdr` and
//! `nfgenmsg`; attributes follow. Numbers in attributes are big-endian unless documented otherwise;
//! strings are NUL-terminated; bytes in [`NFTA_DATA_VALUE`] have the byte order of the compared
//! value.

use crate::abi::{Constant, Header};

/// Declares the parts of the header, re-exports their items, and joins their tables.
macro_rules! parts {
    ($(mod $part:ident;)*) => {
        $(
            #[expect(unreachable_pub, reason = "the parts' tables are joined here")]
            mod $part;
            pub use $part::*;
        )*

        const PARTS: &[Header] = &[$($part::ABI),*];
    };
}

parts! {
    mod message;
    mod data;
    mod table;
    mod chain;
    mod rule;
    mod set;
    mod compute;
    mod packet;
    mod metadata;
    mod statement;
    mod object;
    mod tunnel;
    mod flowtable;
    mod trace;
}

/// Everything that this module declares, as a table.
pub const ABI: Header = Header {
    path: PARTS[0].path,
    constants: &CONSTANTS,
    strings: &[],
    structs: &[],
};

/// The constants of all parts.
static CONSTANTS: [Constant; COUNT] = {
    let mut all = [PARTS[0].constants[0]; COUNT];
    let (mut part, mut at) = (0, 0);
    while part < PARTS.len() {
        // A module that is not listed here would not be checked.
        assert!(PARTS[part].strings.is_empty() && PARTS[part].structs.is_empty());
        let constants = PARTS[part].constants;
        let mut index = 0;
        while index < constants.len() {
            all[at] = constants[index];
            index += 1;
            at += 1;
        }
        part += 1;
    }
    all
};

/// Number of constants in all parts.
const COUNT: usize = {
    let (mut part, mut count) = (0, 0);
    while part < PARTS.len() {
        count += PARTS[part].constants.len();
        part += 1;
    }
    count
};
