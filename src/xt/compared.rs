//! What several extensions' values are made of.

use super::option::Given;

/// What a packet's value is compared with, and whether the comparison is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compared<T> {
    /// The value, or the range of values.
    pub value: T,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl<T> Compared<T> {
    /// It is so.
    pub const fn is(value: T) -> Self {
        Self {
            value,
            invert: false,
        }
    }

    /// It is not so.
    pub const fn is_not(value: T) -> Self {
        Self {
            value,
            invert: true,
        }
    }

    /// What an option says: negated if the option is.
    pub(super) const fn given(given: &Given<'_>, value: T) -> Self {
        Self {
            value,
            invert: given.invert,
        }
    }
}
