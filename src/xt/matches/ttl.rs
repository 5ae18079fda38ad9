//! `-m ttl`: compares the time to live of the IPv4 header.
//!
//! Data of revision 0 (`struct ipt_ttl_info`, `linux/netfilter_ipv4/ipt_ttl.h`): a comparison
//! and a number of hops. `hl` also uses [`Hops`] and its layout.

use chainwright_sys::ipt_ttl::{IPT_TTL_EQ, IPT_TTL_GT, IPT_TTL_LT, IPT_TTL_NE, ipt_ttl_info};

use crate::xt::extension::shared;
use crate::xt::value::number;
use crate::xt::{
    Families, GivenOption, OptionError, OptionGroup, OptionSpec, Text, read_struct, write_struct,
};

/// A condition for the remaining hops of a packet: IPv4's time to live, IPv6's hop limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hops {
    /// Equal to this number.
    Equal(u8),
    /// Not equal to this number.
    NotEqual(u8),
    /// Less than this number.
    Less(u8),
    /// Greater than this number.
    Greater(u8),
}

impl Hops {
    pub(super) fn read(info: &[u8]) -> Option<Self> {
        let info: ipt_ttl_info = read_struct(info)?;
        Some(match info.mode {
            IPT_TTL_EQ => Self::Equal(info.ttl),
            IPT_TTL_NE => Self::NotEqual(info.ttl),
            IPT_TTL_LT => Self::Less(info.ttl),
            IPT_TTL_GT => Self::Greater(info.ttl),
            _ => return None,
        })
    }

    pub(super) fn write(self) -> Vec<u8> {
        let (mode, ttl) = match self {
            Self::Equal(hops) => (IPT_TTL_EQ, hops),
            Self::NotEqual(hops) => (IPT_TTL_NE, hops),
            Self::Less(hops) => (IPT_TTL_LT, hops),
            Self::Greater(hops) => (IPT_TTL_GT, hops),
        };
        write_struct(&ipt_ttl_info { mode, ttl })
    }

    /// Parses the option: its name ends in `-eq`, `-lt` or `-gt`.
    pub(super) fn parse(
        groups: &[OptionGroup],
        given: &[GivenOption<'_>],
    ) -> Result<Self, OptionError> {
        let how = groups[0].find(given)?;
        let hops = how.parse(number)?;
        Ok(match (how.option.rsplit('-').next(), how.invert) {
            (Some("lt"), _) => Self::Less(hops),
            (Some("gt"), _) => Self::Greater(hops),
            (_, true) => Self::NotEqual(hops),
            (_, false) => Self::Equal(hops),
        })
    }

    pub(super) fn list(self, text: &mut Text, name: &str) {
        let (how, hops) = match self {
            Self::Equal(hops) => (" == ", hops),
            Self::NotEqual(hops) => (" != ", hops),
            Self::Less(hops) => (" < ", hops),
            Self::Greater(hops) => (" > ", hops),
        };
        let name = name.to_ascii_uppercase();
        text.word(&name).push(" match").word(&name);
        text.push(how).number(hops);
    }

    pub(super) fn print(self, text: &mut Text, name: &str) {
        let (invert, how, hops) = match self {
            Self::Equal(hops) => (false, "-eq ", hops),
            Self::NotEqual(hops) => (true, "-eq ", hops),
            Self::Less(hops) => (false, "-lt ", hops),
            Self::Greater(hops) => (false, "-gt ", hops),
        };
        text.option(invert, name).push(how).number(hops);
    }
}

/// `-m ttl`: compares the time to live of the IPv4 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ttl(pub Hops);

shared!(
    Ttl(Hops),
    "ttl",
    Families::Ipv4,
    prefix: "ttl",
    &[
        OptionSpec::one("ttl-eq").inverts(),
        OptionSpec::one("ttl-eq").inverts().or("ttl"),
        OptionSpec::one("ttl-lt"),
        OptionSpec::one("ttl-gt"),
    ],
    &[OptionGroup::one_of(&["ttl-eq", "ttl-lt", "ttl-gt"])]
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;
    use crate::xt::{Extension, Family};

    #[test]
    fn round_trips_data_of_iptables() {
        // `-m ttl ! --ttl 4` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [1, 4, 0, 0, 0, 0, 0, 0];
        let ttl = Ttl(Hops::NotEqual(4));
        assert_eq!(Ttl::read(Family::Ipv4, 0, &info), Some(ttl));
        assert_eq!(
            Match::Ttl(ttl).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(Match::Ttl(ttl).to_string(), "-m ttl ! --ttl-eq 4");
        assert_eq!(Ttl::read(Family::Ipv4, 0, &[1]), None);
        assert_eq!(Ttl::read(Family::Ipv4, 0, &[4, 4]), None);
        assert_eq!(Ttl::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("", "--ttl-eq, --ttl-lt or --ttl-gt is required"),
            ("--ttl-eq 1 --ttl-lt 5", "cannot be used with"),
            ("--ttl-eq 256", "`256` is not a number from 0 to 255"),
            ("! --ttl-lt 5", "cannot be negated"),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m ttl {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
