//! `-j TCPMSS`: changes the maximum segment size in the handshake of a TCP connection.
//!
//! Data of revision 0 (`struct xt_tcpmss_info`, `linux/netfilter/xt_TCPMSS.h`): the size, or a
//! number that stands for the path's MTU.

use chainwright_sys::xt_tcpmss_target::{XT_TCPMSS_CLAMP_PMTU, xt_tcpmss_info};

use crate::xt::value::number_within;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j TCPMSS`: changes the maximum segment size in the handshake of a TCP connection.
///
/// The new maximum, if the packet's is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tcpmss {
    /// This size in bytes; 65535 is interpreted as [`ClampToPmtu`](Self::ClampToPmtu).
    Set(u16),
    /// The path's MTU minus the headers.
    ClampToPmtu,
}

/// Returns the longest packet minus the IP header.
const fn most(family: Family) -> u16 {
    match family {
        Family::Ipv4 => 65535 - 20,
        Family::Ipv6 => 65535 - 40,
    }
}

impl Extension for Tcpmss {
    const NAME: &'static str = "TCPMSS";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("set-mss"),
        OptionSpec::switch("clamp-mss-to-pmtu"),
    ];
    const GROUPS: &'static [OptionGroup] =
        &[OptionGroup::one_of(&["set-mss", "clamp-mss-to-pmtu"])];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_tcpmss_info = read_struct(info)?;
        Some(match info.mss {
            XT_TCPMSS_CLAMP_PMTU => Self::ClampToPmtu,
            size if size <= most(family) => Self::Set(size),
            _ => return None,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_tcpmss_info {
            mss: match self {
                Self::Set(size) => *size,
                Self::ClampToPmtu => XT_TCPMSS_CLAMP_PMTU,
            },
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let how = Self::GROUPS[0].find(given)?;
        if context.protocol_among(&[6]).is_none() {
            return Err(OptionError::of_all(
                "the rule needs -p tcp, and in a legacy table also -m tcp --syn or similar",
            ));
        }
        if how.option == "clamp-mss-to-pmtu" {
            return Ok(Self::ClampToPmtu);
        }
        how.parse(|value| number_within(value, 0..=most(context.family)))
            .map(Self::Set)
    }

    fn print(&self, text: &mut Text) {
        match self {
            Self::Set(size) => text.option(false, "set-mss").push(" ").number(*size),
            Self::ClampToPmtu => text.option(false, "clamp-mss-to-pmtu"),
        };
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        match self {
            Self::Set(size) => text.push(" TCPMSS set ").number(*size),
            Self::ClampToPmtu => text.push(" TCPMSS clamp to PMTU"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, parse, refused};

    /// Data from strace of ip6tables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let v6 = Family::Ipv6;
        check(v6, "78 05", &Tcpmss::Set(1400), " --set-mss 1400");
        assert_eq!(Tcpmss::read(v6, 0, &[0xfe, 0xff]), None);
        check(v6, "ff ff", &Tcpmss::ClampToPmtu, " --clamp-mss-to-pmtu");
    }

    #[test]
    fn reports_errors() {
        let size = [("set-mss", "65515")];
        assert_eq!(parse(Family::Ipv4, Some(6), &size), Ok(Tcpmss::Set(65515)));
        assert_eq!(
            refused::<Tcpmss>(Family::Ipv6, Some(6), &size),
            "--set-mss: `65515` is not a number from 0 to 65495"
        );
        assert_eq!(
            refused::<Tcpmss>(Family::Ipv4, None, &size),
            "the rule needs -p tcp, and in a legacy table also -m tcp --syn or similar"
        );
        let both = [size[0], ("clamp-mss-to-pmtu", "")];
        for (given, reason) in [
            (
                &both[..],
                "--clamp-mss-to-pmtu cannot be used with --set-mss",
            ),
            (&[], "--set-mss or --clamp-mss-to-pmtu is required"),
        ] {
            assert_eq!(refused::<Tcpmss>(Family::Ipv4, Some(6), given), reason);
        }
    }
}
