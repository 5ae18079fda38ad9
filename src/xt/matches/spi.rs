//! Security parameter indices, shared by several matches.

use crate::xt::value::{ends_of, number};
use crate::xt::{GivenOption, OptionError, Text};

/// A range of security parameter indices (for `ipcomp`: compression parameter indices),
/// optionally negated; in host byte order. A reversed range contains no index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpiRange {
    /// The lowest index.
    pub first: u32,
    /// The highest index.
    pub last: u32,
    /// Whether to match indices outside the range.
    pub invert: bool,
}

impl Default for SpiRange {
    fn default() -> Self {
        Self::ANY
    }
}

impl SpiRange {
    /// All indices.
    pub const ANY: Self = Self {
        first: 0,
        last: u32::MAX,
        invert: false,
    };

    /// Decodes the fields of a kernel struct; `None` if there are unknown flags.
    pub(super) fn read([first, last]: [u32; 2], flags: u8, negation: u8) -> Option<Self> {
        (flags & !negation == 0).then_some(Self {
            first,
            last,
            invert: flags != 0,
        })
    }

    pub(super) const fn ends(self) -> [u32; 2] {
        [self.first, self.last]
    }

    pub(super) const fn flags(self, negation: u8) -> u8 {
        if self.invert { negation } else { 0 }
    }

    pub(super) fn parse(given: &GivenOption<'_>) -> Result<Self, OptionError> {
        let (first, last) = given.parse(|value| ends_of(value, 0..=u32::MAX, number))?;
        Ok(Self {
            first,
            last,
            invert: given.invert,
        })
    }

    /// Appends it as an option, unless it contains all indices.
    pub(super) fn print(self, text: &mut Text, option: &str) {
        if self == Self::ANY {
            return;
        }
        text.option(self.invert, option)
            .push(" ")
            .range(self.first, self.last);
    }
    /// Appends it as `iptables -L` shows it.
    pub(super) fn list(self, text: &mut Text) {
        if self == Self::ANY {
            return;
        }
        text.push(if self.first == self.last {
            "spi:"
        } else {
            "spis:"
        })
        .push(if self.invert { "!" } else { "" })
        .range(self.first, self.last);
    }
}
