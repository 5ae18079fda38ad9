//! `-j TTL`: changes the time to live of the IPv4 header.
//!
//! Data of revision 0 (`struct ipt_TTL_info`, `linux/netfilter_ipv4/ipt_TTL.h`): an operation and a
//! number of hops. `HL` also uses [`HopsChange`] and its layout.

use chainwright_sys::ipt_ttl_target::{IPT_TTL_DEC, IPT_TTL_INC, IPT_TTL_SET, ipt_TTL_info};

use crate::xt::extension::shared;
use crate::xt::value::number_within;
use crate::xt::{
    Families, GivenOption, OptionError, OptionGroup, OptionSpec, Text, read_struct, write_struct,
};

/// A change of the remaining hops of a packet: IPv4's time to live, IPv6's hop limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HopsChange {
    /// Sets it to this number.
    Set(u8),
    /// Increases it by this number, to at most 255.
    Increase(u8),
    /// Decreases it by this number, to at least 0.
    Decrease(u8),
}

impl HopsChange {
    pub(super) fn read(info: &[u8]) -> Option<Self> {
        let info: ipt_TTL_info = read_struct(info)?;
        match (info.mode, info.ttl) {
            (IPT_TTL_SET, hops) => Some(Self::Set(hops)),
            (IPT_TTL_INC, hops @ 1..) => Some(Self::Increase(hops)),
            (IPT_TTL_DEC, hops @ 1..) => Some(Self::Decrease(hops)),
            _ => None,
        }
    }

    pub(super) fn write(self) -> Vec<u8> {
        let (mode, ttl) = match self {
            Self::Set(hops) => (IPT_TTL_SET, hops),
            Self::Increase(hops) => (IPT_TTL_INC, hops),
            Self::Decrease(hops) => (IPT_TTL_DEC, hops),
        };
        write_struct(&ipt_TTL_info { mode, ttl })
    }

    /// Parses the only given option: its name ends in `-set`, `-inc` or `-dec`.
    pub(super) fn parse(
        groups: &[OptionGroup],
        given: &[GivenOption<'_>],
    ) -> Result<Self, OptionError> {
        let how = groups[0].find(given)?;
        let hops = |least| how.parse(|value| number_within(value, least..=u8::MAX));
        Ok(match how.option.rsplit('-').next() {
            Some("inc") => Self::Increase(hops(1)?),
            Some("dec") => Self::Decrease(hops(1)?),
            _ => Self::Set(hops(0)?),
        })
    }

    pub(super) fn list(self, text: &mut Text, name: &str) {
        let (how, hops) = match self {
            Self::Set(hops) => (" set to ", hops),
            Self::Increase(hops) => (" increment by ", hops),
            Self::Decrease(hops) => (" decrement by ", hops),
        };
        text.word(name).push(how).number(hops);
    }

    pub(super) fn print(self, text: &mut Text, name: &str) {
        let (how, hops) = match self {
            Self::Set(hops) => ("-set ", hops),
            Self::Increase(hops) => ("-inc ", hops),
            Self::Decrease(hops) => ("-dec ", hops),
        };
        text.option(false, name).push(how).number(hops);
    }
}

/// `-j TTL`: changes the time to live of the IPv4 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ttl(pub HopsChange);

shared!(
    Ttl(HopsChange),
    "TTL",
    Families::Ipv4,
    prefix: "ttl",
    &[
        OptionSpec::one("ttl-set"),
        OptionSpec::one("ttl-inc"),
        OptionSpec::one("ttl-dec"),
    ],
    &[OptionGroup::one_of(&["ttl-set", "ttl-inc", "ttl-dec"])]
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;
    use crate::xt::{Extension, Family};

    #[test]
    fn round_trips_data_of_iptables() {
        // `-j TTL --ttl-dec 255` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [2, 255, 0, 0, 0, 0, 0, 0];
        let ttl = Ttl(HopsChange::Decrease(255));
        assert_eq!(Ttl::read(Family::Ipv4, 0, &info), Some(ttl));
        assert_eq!(
            Target::Ttl(ttl).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(Target::Ttl(ttl).to_string(), "-j TTL --ttl-dec 255");
        for invalid in [&[2][..], &[3, 1], &[2, 0]] {
            assert_eq!(Ttl::read(Family::Ipv4, 0, invalid), None);
        }
        assert_eq!(Ttl::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("", "--ttl-set, --ttl-inc or --ttl-dec is required"),
            ("--ttl-set 1 --ttl-inc 5", "cannot be used with"),
            ("--ttl-set 256", "`256` is not a number from 0 to 255"),
            ("--ttl-dec 0", "`0` is not a number from 1 to 255"),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-j TTL {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
