//! `match`: an xtables match, carried by nf_tables' compatibility layer.

use chainwright_sys::nf_tables_compat::{NFTA_MATCH_INFO, NFTA_MATCH_NAME, NFTA_MATCH_REV};

use super::expression;
use crate::nft::name::{Bytes, Name};

expression! {
    "match"
    /// An xtables match: goes on if the extension says so (`enum nft_match_attributes`).
    pub struct Match<'a> {
        /// The extension's name.
        NFTA_MATCH_NAME => name: Name<'a>,
        /// The extension's revision.
        NFTA_MATCH_REV => revision: u32,
        /// The extension's own struct, in host byte order, padded to 8 bytes.
        NFTA_MATCH_INFO => info: Bytes<'a>,
    }
}

impl<'a> Match<'a> {
    /// A match by this extension.
    pub fn new(name: impl Into<Name<'a>>, revision: u32, info: impl Into<Bytes<'a>>) -> Self {
        Self {
            name: Some(name.into()),
            revision: Some(revision),
            info: Some(info.into()),
        }
    }
}
