//! `-j SNPT`: puts an IPv6 prefix in the place of the source's (RFC 6296), without connection
//! tracking.
//!
//! Data of revision 0 (`struct ip6t_npt_tginfo`, `linux/netfilter_ipv6/ip6t_NPT.h`).

use super::npt::PrefixTranslation;
use crate::xt::{Context, Extension, Families, Family, Given, OptionError, OptionSpec, Text};

/// `-j SNPT`: puts an IPv6 prefix in the place of the source's (RFC 6296), without connection
/// tracking.
///
/// Puts a prefix in the place of the source's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snpt(pub PrefixTranslation);

impl Extension for Snpt {
    const NAME: &'static str = "SNPT";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = PrefixTranslation::OPTIONS;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        (revision == Self::REVISION).then_some(())?;
        PrefixTranslation::read(info).map(Self)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        Ok(self.0.write())
    }

    fn parse(_: &Context<'_>, given: &[Given<'_>]) -> Result<Self, OptionError> {
        PrefixTranslation::parse(given).map(Self)
    }

    fn print(&self, text: &mut Text) {
        self.0.print(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;

    #[test]
    fn is_as_dnpt_is() {
        let text = "-j SNPT --src-pfx fd00:1::/48 --dst-pfx fd00:2::/64";
        let rule = Rule::parse(Family::Ipv6, text).unwrap();
        assert_eq!(rule.to_string(), text);
        assert!(Snpt::read(Family::Ipv6, 0, &[0; 36]).is_some());
        assert_eq!(Snpt::read(Family::Ipv6, 0, &[0; 35]), None);
        assert_eq!(Snpt::read(Family::Ipv6, 1, &[0; 36]), None);
        let fault = Rule::parse(Family::Ipv6, "-j SNPT --dst-pfx ::/0").unwrap_err();
        assert!(fault.to_string().contains("--src-pfx is required"));
    }
}
