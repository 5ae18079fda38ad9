//! Identities of the elements of a set.

use super::ElementRef;
use crate::netlink::Malformed;

/// The identity of an element within its set: the key, the last key of a range, and whether it ends a
/// range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::nft) struct ElementKey<B> {
    /// `None` for the catch-all element.
    key: Option<B>,
    end: Option<B>,
    is_end: bool,
}

impl<'a> ElementKey<&'a [u8]> {
    /// The identity of the catch-all element.
    pub(in crate::nft) const CATCH_ALL: Self = Self {
        key: None,
        end: None,
        is_end: false,
    };

    /// Returns the identity of the element with these attributes.
    pub(in crate::nft) fn of(element: &'a [u8]) -> Result<Self, Malformed> {
        let element = ElementRef::parse(element)?;
        Ok(Self {
            key: element.key_bytes(),
            end: element.key_end_bytes(),
            is_end: element.is_interval_end(),
        })
    }

    pub(in crate::nft) fn into_owned(self) -> ElementKey<Box<[u8]>> {
        ElementKey {
            key: self.key.map(Box::from),
            end: self.end.map(Box::from),
            is_end: self.is_end,
        }
    }

    /// Estimates the memory needed to store it.
    pub(in crate::nft) fn memory(&self) -> usize {
        let length = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
        2 * size_of::<ElementKey<Box<[u8]>>>() + length(self.key) + length(self.end)
    }
}

impl ElementKey<Box<[u8]>> {
    pub(in crate::nft) fn borrowed(&self) -> ElementKey<&[u8]> {
        ElementKey {
            key: self.key.as_deref(),
            end: self.end.as_deref(),
            is_end: self.is_end,
        }
    }
}
