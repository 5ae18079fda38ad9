//! Expressions that this version of the crate has no typed form for.

use std::fmt;

use crate::nft::name::{Bytes, Name};

/// An expression that this version of the crate has no typed form for: kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Opaque<'a> {
    /// The expression's name in the kernel.
    pub name: Name<'a>,
    /// Its attributes, encoded.
    pub attributes: Bytes<'a>,
}

impl Opaque<'_> {
    /// The same with nothing borrowed.
    #[must_use]
    pub fn into_owned(self) -> Opaque<'static> {
        Opaque {
            name: self.name.into_owned(),
            attributes: self.attributes.into_owned(),
        }
    }
}

/// `nft` has no words for these: the name, and the attributes as hexadecimal digits.
impl fmt::Display for Opaque<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[ {} 0x{} ]", self.name, self.attributes)
    }
}
