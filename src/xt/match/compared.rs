//! A comparison that can be negated.

/// What something is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compared<T> {
    /// What it is compared with.
    pub with: T,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl<T> Compared<T> {
    /// It is so.
    pub const fn is(with: T) -> Self {
        Self {
            with,
            invert: false,
        }
    }

    /// It is not so.
    pub const fn is_not(with: T) -> Self {
        Self { with, invert: true }
    }
}
