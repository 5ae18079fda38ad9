//! A comparison with a value, as used by several extensions.

use super::option::{GivenOption, OptionError};
use super::text::Text;
use super::value::{ends_of, number};

/// A comparison with a value, and whether it is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Negatable<T> {
    /// The value, or the range of values.
    pub value: T,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl<T> Negatable<T> {
    /// Requires the value.
    pub const fn is(value: T) -> Self {
        Self {
            value,
            invert: false,
        }
    }

    /// Requires any other value.
    pub const fn is_not(value: T) -> Self {
        Self {
            value,
            invert: true,
        }
    }

    /// Builds the comparison from an option: negated if the option is.
    pub(super) const fn given(given: &GivenOption<'_>, value: T) -> Self {
        Self {
            value,
            invert: given.invert,
        }
    }
}

impl<T: TryFrom<u64>> Negatable<T> {
    /// Parses an option's value as a number.
    pub(in crate::xt) fn parse(given: &GivenOption<'_>) -> Result<Self, OptionError> {
        Ok(Self {
            value: given.parse(number)?,
            invert: given.invert,
        })
    }
}

impl<T: Into<u64> + Copy> Negatable<T> {
    pub(in crate::xt) fn print(&self, text: &mut Text, option: &str) {
        text.option(self.invert, option)
            .push(" ")
            .number(self.value);
    }
}

impl Negatable<(u32, u32)> {
    /// Builds it from a kernel struct, which always contains a range; `None` if every number
    /// matches.
    pub(in crate::xt) fn from_range((first, last): (u32, u32), invert: bool) -> Option<Self> {
        let all = (first, last) == (0, u32::MAX) && !invert;
        (!all).then_some(Self {
            value: (first, last),
            invert,
        })
    }

    /// Parses an option's value as a number or a range. As in the kernel, the range may be
    /// reversed; it then contains no number.
    pub(in crate::xt) fn parse_range(given: &GivenOption<'_>) -> Result<Option<Self>, OptionError> {
        let ends = given.parse(|value| ends_of(value, 0..=u32::MAX, number))?;
        Ok(Self::from_range(ends, given.invert))
    }

    pub(in crate::xt) fn print_range(&self, text: &mut Text, option: &str) {
        let (first, last) = self.value;
        text.option(self.invert, option)
            .push(" ")
            .range(first, last);
    }
}
