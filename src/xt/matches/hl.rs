//! `-m hl`: compares the hop limit of the IPv6 header.
//!
//! Data of revision 0 (`struct ip6t_hl_info`, `linux/netfilter_ipv6/ip6t_hl.h`): laid out as that of
//! `ttl`.

use super::ttl::Hops;
use crate::xt::{
    Context, Extension, Families, Family, Given, OptionError, OptionGroup, OptionSpec, Text,
};

/// `-m hl`: compares the hop limit of the IPv6 header.
///
/// The hop limit of an IPv6 packet, in hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hl(pub Hops);

impl Extension for Hl {
    const NAME: &'static str = "hl";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("hl-eq").inverts(),
        OptionSpec::one("hl-eq").inverts().or("hl"),
        OptionSpec::one("hl-lt"),
        OptionSpec::one("hl-gt"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["hl-eq", "hl-lt", "hl-gt"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        (revision == Self::REVISION).then_some(())?;
        Hops::read(info).map(Self)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        Ok(self.0.write())
    }

    fn parse(_: &Context<'_>, given: &[Given<'_>]) -> Result<Self, OptionError> {
        Hops::parse(Self::GROUPS[0].find(given)?).map(Self)
    }

    fn print(&self, text: &mut Text) {
        self.0.print(text, "hl");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn is_as_ttl_is_for_ipv6_only() {
        // `-m hl --hl-gt 0x3` by ip6tables-legacy 1.8.9 (`strace -xx`).
        let info = [3, 3, 0, 0, 0, 0, 0, 0];
        let hl = Hl(Hops::Greater(3));
        assert_eq!(Match::read(Family::Ipv6, "hl", 0, &info), Match::Hl(hl));
        assert_eq!(Match::Hl(hl).encode(Family::Ipv6).unwrap().info, &info[..]);
        assert_eq!(Match::Hl(hl).to_string(), "-m hl --hl-gt 3");
        assert_eq!(Hl::read(Family::Ipv6, 1, &info), None);
        assert!(matches!(
            Match::read(Family::Ipv4, "hl", 0, &info),
            Match::Opaque(_)
        ));
        let fault = Rule::parse(Family::Ipv6, "-m hl").unwrap_err();
        let said = "-m hl: --hl-eq, --hl-lt or --hl-gt is required";
        assert!(fault.to_string().contains(said), "{fault}");
    }
}
