//! `-m dscp`: compares the differentiated services code point of the IPv4 or IPv6 header.
//!
//! Data of revision 0 (`struct xt_dscp_info`, `linux/netfilter/xt_dscp.h`): code point and
//! negation.

use bstr::BStr;
use chainwright_sys::xt_dscp::{XT_DSCP_MAX, xt_dscp_info};

use crate::xt::value::{Parsed, number_within, one_of};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// Names of code points.
const CLASSES: &[(&str, u8)] = &[
    ("CS0", 0x00),
    ("CS1", 0x08),
    ("CS2", 0x10),
    ("CS3", 0x18),
    ("CS4", 0x20),
    ("CS5", 0x28),
    ("CS6", 0x30),
    ("CS7", 0x38),
    ("BE", 0x00),
    ("AF11", 0x0a),
    ("AF12", 0x0c),
    ("AF13", 0x0e),
    ("AF21", 0x12),
    ("AF22", 0x14),
    ("AF23", 0x16),
    ("AF31", 0x1a),
    ("AF32", 0x1c),
    ("AF33", 0x1e),
    ("AF41", 0x22),
    ("AF42", 0x24),
    ("AF43", 0x26),
    ("EF", 0x2e),
];

/// Parses a code point: a name if the option ends in `-class`, otherwise a number.
pub(in crate::xt) fn code_point(given: &GivenOption<'_>) -> Result<u8, OptionError> {
    if given.option.ends_with("-class") {
        given.parse(class)
    } else {
        given.parse(|value| number_within(value, 0..=XT_DSCP_MAX))
    }
}

fn class(value: &BStr) -> Parsed<u8> {
    let upper = value.to_ascii_uppercase();
    one_of(BStr::new(&upper), CLASSES)
}

/// `-m dscp`: compares the differentiated services code point of the IPv4 or IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dscp {
    /// Code point, 0 to 63: the upper six bits of the octet.
    pub code_point: u8,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Dscp {
    const NAME: &'static str = "dscp";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("dscp").inverts(),
        OptionSpec::one("dscp-class").inverts(),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["dscp", "dscp-class"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_dscp_info = read_struct(info)?;
        (revision == Self::REVISION && info.dscp <= XT_DSCP_MAX).then_some(Self {
            code_point: info.dscp,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_dscp_info {
            dscp: self.code_point,
            invert: self.invert.into(),
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let how = Self::GROUPS[0].find(given)?;
        Ok(Self {
            code_point: code_point(how)?,
            invert: how.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "dscp")
            .display(format_args!(" {:#04x}", self.code_point));
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(if self.invert {
            " DSCP match !"
        } else {
            " DSCP match "
        });
        text.display(format_args!("{:#04x}", self.code_point));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-m dscp ! --dscp 6` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [6, 1, 0, 0, 0, 0, 0, 0];
        let dscp = Dscp {
            code_point: 6,
            invert: true,
        };
        assert_eq!(Dscp::read(Family::Ipv6, 0, &info), Some(dscp));
        assert_eq!(
            Match::Dscp(dscp).encode(Family::Ipv6).unwrap().info,
            &info[..]
        );
        assert_eq!(Match::Dscp(dscp).to_string(), "-m dscp ! --dscp 0x06");
        assert_eq!(Dscp::read(Family::Ipv6, 0, &[6]), None);
        assert_eq!(Dscp::read(Family::Ipv6, 0, &[64, 0]), None);
        assert_eq!(Dscp::read(Family::Ipv6, 1, &info), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("", "--dscp or --dscp-class is required"),
            ("--dscp 1 --dscp-class EF", "cannot be used with"),
            ("--dscp 64", "`64` is not a number from 0 to 63"),
            ("--dscp-class LE", "`LE` is not one of CS0, CS1, "),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m dscp {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
