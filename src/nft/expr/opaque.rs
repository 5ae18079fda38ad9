//! Expressions without a typed form in this version of the crate.

use std::fmt;

use crate::nft::name::{Bytes, Name};

/// An expression without a typed form in this version of the crate, preserved unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Opaque<'a> {
    /// The expression's name in the kernel.
    pub name: Name<'a>,
    /// Its encoded attributes.
    pub attributes: Bytes<'a>,
}

impl Opaque<'_> {
    /// Converts the expression into one without borrowed data.
    #[must_use]
    pub fn into_owned(self) -> Opaque<'static> {
        Opaque {
            name: self.name.into_owned(),
            attributes: self.attributes.into_owned(),
        }
    }
}

/// Formats the name, and the attributes as hexadecimal digits: `nft` has no syntax for these expressions.
impl fmt::Display for Opaque<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[ {} 0x{} ]", self.name, self.attributes)
    }
}
