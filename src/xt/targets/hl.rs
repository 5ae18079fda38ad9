//! `-j HL`: changes the hop limit of the IPv6 header.
//!
//! Data of revision 0 (`struct ip6t_HL_info`, `linux/netfilter_ipv6/ip6t_HL.h`): laid out as that of
//! `TTL`.

use super::ttl::HopsChange;
use crate::xt::{
    Context, Extension, Families, Family, Given, OptionError, OptionGroup, OptionSpec, Text,
};

/// `-j HL`: changes the hop limit of the IPv6 header.
///
/// Changes the hop limit of an IPv6 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hl(pub HopsChange);

impl Extension for Hl {
    const NAME: &'static str = "HL";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("hl-set"),
        OptionSpec::one("hl-inc"),
        OptionSpec::one("hl-dec"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["hl-set", "hl-inc", "hl-dec"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        (revision == Self::REVISION).then_some(())?;
        HopsChange::read(info).map(Self)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        Ok(self.0.write())
    }

    fn parse(_: &Context<'_>, given: &[Given<'_>]) -> Result<Self, OptionError> {
        HopsChange::parse(Self::GROUPS[0].find(given)?).map(Self)
    }

    fn print(&self, text: &mut Text) {
        self.0.print(text, "hl");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    #[test]
    fn is_as_ttl_is_for_ipv6_only() {
        // `-j HL --hl-inc 3` by ip6tables-legacy 1.8.9 (`strace -xx`).
        let info = [1, 3, 0, 0, 0, 0, 0, 0];
        let hl = Hl(HopsChange::Increase(3));
        assert_eq!(Target::read(Family::Ipv6, "HL", 0, &info), Target::Hl(hl));
        assert_eq!(Target::Hl(hl).encode(Family::Ipv6).unwrap().info, &info[..]);
        assert_eq!(Target::Hl(hl).to_string(), "-j HL --hl-inc 3");
        assert_eq!(Hl::read(Family::Ipv6, 1, &info), None);
        assert!(matches!(
            Target::read(Family::Ipv4, "HL", 0, &info),
            Target::Opaque(_)
        ));
        let fault = Rule::parse(Family::Ipv6, "-j HL").unwrap_err();
        let said = "-j HL: --hl-set, --hl-inc or --hl-dec is required";
        assert!(fault.to_string().contains(said), "{fault}");
    }
}
