//! `-m mark`: compares the packet's mark.
//!
//! Data of revision 1 (`struct xt_mark_mtinfo1`, `linux/netfilter/xt_mark.h`): value, mask and
//! negation.

use chainwright_sys::xt_mark::xt_mark_mtinfo1;

use crate::xt::value::masked;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-m mark`: compares the packet's mark.
///
/// Matches if the packet's mark, masked with `mask`, equals `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Value to compare with.
    pub value: u32,
    /// Bits to compare.
    pub mask: u32,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Mark {
    const NAME: &'static str = "mark";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("mark").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_mark_mtinfo1 = read_struct(info)?;
        Some(Self {
            value: info.mark,
            mask: info.mask,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_mark_mtinfo1 {
            mark: self.value,
            mask: self.mask,
            invert: self.invert.into(),
            __pad: [0; 3],
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mark = GivenOption::find_required(given, "mark")?;
        let (value, mask) = mark.parse(masked)?;
        Ok(Self {
            value,
            mask,
            invert: mark.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "mark").push(" ").hex(self.value);
        if self.mask != u32::MAX {
            text.push("/").hex(self.mask);
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" mark match")
            .push(if self.invert { " !" } else { "" });
        text.push(" ").hex(self.value);
        if self.mask != u32::MAX {
            text.push("/").hex(self.mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Match;

    #[test]
    fn round_trip_and_text() {
        let mark = Mark {
            value: 0x4000,
            mask: 0x4000,
            invert: true,
        };
        let info = mark.write(Family::Ipv4).unwrap();
        assert_eq!(info.len(), 12);
        assert_eq!(Mark::read(Family::Ipv4, 1, &info), Some(mark));
        assert_eq!(Mark::read(Family::Ipv4, 1, &info[..11]), None);
        assert_eq!(Mark::read(Family::Ipv4, 0, &info), None);
        assert_eq!(
            Match::Mark(mark).to_string(),
            "-m mark ! --mark 0x4000/0x4000"
        );
        let whole = Mark {
            value: 7,
            mask: u32::MAX,
            invert: false,
        };
        assert_eq!(Match::Mark(whole).to_string(), "-m mark --mark 0x7");
    }
}
