//! `target`: an xtables target, carried by nf_tables' compatibility layer.

use chainwright_sys::nf_tables_compat::{NFTA_TARGET_INFO, NFTA_TARGET_NAME, NFTA_TARGET_REV};

use super::expression;
use crate::nft::name::{Bytes, Name};

expression! {
    "target"
    /// An xtables target: the extension works on the packet and gives the verdict
    /// (`enum nft_target_attributes`).
    pub struct Target<'a> {
        /// The extension's name.
        NFTA_TARGET_NAME => name: Name<'a>,
        /// The extension's revision.
        NFTA_TARGET_REV => revision: u32,
        /// The extension's own struct, in host byte order, padded to 8 bytes.
        NFTA_TARGET_INFO => info: Bytes<'a>,
    }
}

impl<'a> Target<'a> {
    /// A target of this extension.
    pub fn new(name: impl Into<Name<'a>>, revision: u32, info: impl Into<Bytes<'a>>) -> Self {
        Self {
            name: Some(name.into()),
            revision: Some(revision),
            info: Some(info.into()),
        }
    }
}
