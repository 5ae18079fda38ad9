//! `-m length`: compares the packet's length.
//!
//! Data of revision 0 (`struct xt_length_info`, `linux/netfilter/xt_length.h`).

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_length::xt_length_info;

use crate::xt::value::{Parsed, number};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m length`: compares the packet's length.
///
/// The length includes the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Length {
    /// Minimum length, in bytes.
    pub min: u16,
    /// Maximum length, in bytes. If it is less than `min`, no packet is in the range.
    pub max: u16,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// Parses `a`, or `a:b` where either may be missing; in any order, as iptables does.
fn bounds(value: &BStr) -> Parsed<(u16, u16)> {
    let Some((min, max)) = value.split_once_str(":") else {
        return number(value).map(|only| (only, only));
    };
    let end = |text: &[u8], open| match text {
        b"" => Ok(open),
        text => number(text.as_bstr()),
    };
    Ok((end(min, 0)?, end(max, u16::MAX)?))
}

impl Extension for Length {
    const NAME: &'static str = "length";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("length").inverts().required()];
    const DIFFERENCES: &'static [Difference] = &[Difference::refused(
        "-m length --length \"\"",
        "-m length --length 0",
        "An empty value is a mistake, not a 0.",
    )];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_length_info = read_struct(info)?;
        Some(Self {
            min: info.min,
            max: info.max,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_length_info {
            min: self.min,
            max: self.max,
            invert: self.invert.into(),
            __pad: [0; 1],
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let length = GivenOption::find_required(given, "length")?;
        let (min, max) = length.parse(bounds)?;
        Ok(Self {
            min,
            max,
            invert: length.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "length").push(" ");
        text.range(self.min, self.max);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" length ")
            .push(if self.invert { "!" } else { "" });
        text.range(self.min, self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-m length ! --length 64:1500` by iptables-legacy 1.8.9 (from `strace -xx`).
        let info = [0x40, 0, 0xdc, 5, 1, 0, 0, 0];
        let length = Length {
            min: 64,
            max: 1500,
            invert: true,
        };
        assert_eq!(Length::read(Family::Ipv4, 0, &info), Some(length));
        assert_eq!(
            Match::Length(length).encode(Family::Ipv4).unwrap().info[..],
            info
        );
        assert_eq!(
            Match::Length(length).to_string(),
            "-m length ! --length 64:1500"
        );
        assert_eq!(Length::read(Family::Ipv4, 0, &info[..5]), None);
        assert_eq!(Length::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn bounds_may_be_open_and_in_any_order() {
        let bounds = |text: &str| bounds(text.as_bytes().as_bstr());
        assert_eq!(bounds(":"), Ok((0, u16::MAX)));
        assert_eq!(bounds("0x10:"), Ok((16, u16::MAX)));
        assert_eq!(bounds("9:5"), Ok((9, 5)));
        // iptables parses an empty value as 0.
        for wrong in ["", "1:2:3", "65536", "a", "-1"] {
            assert!(bounds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            bounds("70000:").unwrap_err(),
            "`70000` is not a number from 0 to 65535"
        );
    }
}
