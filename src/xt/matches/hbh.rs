//! `-m hbh`: compares the hop-by-hop options of an IPv6 packet.
//!
//! Data of revision 0 (`struct ip6t_opts`, `linux/netfilter_ipv6/ip6t_opts.h`).

use super::opts::HeaderOptions;
use crate::xt::{Context, Extension, Families, Family, GivenOption, OptionError, OptionSpec, Text};

/// `-m hbh`: compares the hop-by-hop options of an IPv6 packet.
///
/// The packet must have a hop-by-hop options header that meets these
/// conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Hbh(pub HeaderOptions);

impl Extension for Hbh {
    const NAME: &'static str = "hbh";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("hbh-len").inverts(),
        OptionSpec::one("hbh-opts"),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        (revision == Self::REVISION).then_some(())?;
        HeaderOptions::read(info).map(Self)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        self.0.write("hbh-opts")
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        HeaderOptions::parse(given).map(Self)
    }

    fn print(&self, text: &mut Text) {
        self.0.print(text, "hbh-len", "hbh-opts");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;

    #[test]
    fn options_and_refusals() {
        let text = "-m hbh ! --hbh-len 16 --hbh-opts 1:2,3";
        let rule = Rule::parse(Family::Ipv6, text).unwrap();
        assert_eq!(rule.to_string(), text);
        for (options, message) in [
            ("--hbh-len x", "--hbh-len: `x` is not a number"),
            ("--hbh-opts 1:", "--hbh-opts: `` is not a number"),
            ("! --hbh-opts 1", "--hbh-opts cannot be negated"),
        ] {
            let fault = Rule::parse(Family::Ipv6, format!("-m hbh {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
        assert!(Rule::parse(Family::Ipv4, text).is_err());
        let info = Hbh::default().write(Family::Ipv6).unwrap();
        assert_eq!(Hbh::read(Family::Ipv6, 0, &info), Some(Hbh::default()));
        assert_eq!(Hbh::read(Family::Ipv6, 1, &info), None);
    }
}
