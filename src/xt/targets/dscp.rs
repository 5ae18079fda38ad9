//! `-j DSCP`: sets the differentiated services code point of the IPv4 or IPv6 header.
//!
//! Data of revision 0 (`struct xt_DSCP_info`, `linux/netfilter/xt_DSCP.h`): the code point.

use chainwright_sys::xt_dscp::XT_DSCP_MAX;
use chainwright_sys::xt_dscp_target::xt_DSCP_info;

use crate::xt::matches::dscp::code_point;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j DSCP`: sets the differentiated services code point of the IPv4 or IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dscp {
    /// Code point, 0 to 63: the upper six bits of the octet.
    pub code_point: u8,
}

impl Extension for Dscp {
    const NAME: &'static str = "DSCP";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("set-dscp"),
        OptionSpec::one("set-dscp-class"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["set-dscp", "set-dscp-class"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_DSCP_info = read_struct(info)?;
        (revision == Self::REVISION && info.dscp <= XT_DSCP_MAX).then_some(Self {
            code_point: info.dscp,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_DSCP_info {
            dscp: self.code_point,
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let how = Self::GROUPS[0].find(given)?;
        code_point(how).map(|code_point| Self { code_point })
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "set-dscp")
            .display(format_args!(" {:#04x}", self.code_point));
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.display(format_args!(" DSCP set {:#04x}", self.code_point));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-j DSCP --set-dscp-class EF` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [0x2e, 0, 0, 0, 0, 0, 0, 0];
        let dscp = Dscp { code_point: 46 };
        assert_eq!(Dscp::read(Family::Ipv4, 0, &info), Some(dscp));
        assert_eq!(
            Target::Dscp(dscp).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(Target::Dscp(dscp).to_string(), "-j DSCP --set-dscp 0x2e");
        assert_eq!(Dscp::read(Family::Ipv4, 0, &[]), None);
        assert_eq!(Dscp::read(Family::Ipv4, 0, &[64]), None);
        assert_eq!(Dscp::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("", "--set-dscp or --set-dscp-class is required"),
            ("--set-dscp 1 --set-dscp-class EF", "cannot be used with"),
            ("--set-dscp 64", "`64` is not a number from 0 to 63"),
            ("--set-dscp-class VA", "`VA` is not one of CS0, CS1, "),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-j DSCP {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
