//! `-m dst`: compares the destination options of an IPv6 packet.
//!
//! Data of revision 0 (`struct ip6t_opts`, `linux/netfilter_ipv6/ip6t_opts.h`).

use super::opts::HeaderOptions;
use crate::xt::{Context, Extension, Families, Family, GivenOption, OptionError, OptionSpec, Text};

/// `-m dst`: compares the destination options of an IPv6 packet.
///
/// The packet must have a destination options header that meets these
/// conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Dst(pub HeaderOptions);

impl Extension for Dst {
    const NAME: &'static str = "dst";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("dst-len").inverts(),
        OptionSpec::one("dst-opts"),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        (revision == Self::REVISION).then_some(())?;
        HeaderOptions::read(info).map(Self)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        self.0.write("dst-opts")
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        HeaderOptions::parse(given).map(Self)
    }

    fn print(&self, text: &mut Text) {
        self.0.print(text, "dst-len", "dst-opts");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;

    #[test]
    fn options_and_refusals() {
        let text = "-m dst ! --dst-len 16 --dst-opts 1:2,3";
        let rule = Rule::parse(Family::Ipv6, text).unwrap();
        assert_eq!(rule.to_string(), text);
        for (options, message) in [
            ("--dst-len x", "--dst-len: `x` is not a number"),
            ("--dst-opts 1:", "--dst-opts: `` is not a number"),
            ("! --dst-opts 1", "--dst-opts cannot be negated"),
        ] {
            let fault = Rule::parse(Family::Ipv6, format!("-m dst {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
        assert!(Rule::parse(Family::Ipv4, text).is_err());
        let info = Dst::default().write(Family::Ipv6).unwrap();
        assert_eq!(Dst::read(Family::Ipv6, 0, &info), Some(Dst::default()));
        assert_eq!(Dst::read(Family::Ipv6, 1, &info), None);
    }
}
