//! `-j HL`: changes the hop limit of the IPv6 header.
//!
//! Data of revision 0 (`struct ip6t_HL_info`, `linux/netfilter_ipv6/ip6t_HL.h`), with the layout of
//! `TTL`.

use super::ttl::HopsChange;
use crate::xt::extension::shared;
use crate::xt::{Families, OptionGroup, OptionSpec};

/// `-j HL`: changes the hop limit of the IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hl(pub HopsChange);

shared!(
    Hl(HopsChange),
    "HL",
    Families::Ipv6,
    prefix: "hl",
    &[
        OptionSpec::one("hl-set"),
        OptionSpec::one("hl-inc"),
        OptionSpec::one("hl-dec"),
    ],
    &[OptionGroup::one_of(&["hl-set", "hl-inc", "hl-dec"])]
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;
    use crate::xt::{Extension, Family};

    #[test]
    fn works_like_ttl_and_is_ipv6_only() {
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
        let message = "-j HL: --hl-set, --hl-inc or --hl-dec is required";
        assert!(fault.to_string().contains(message), "{fault}");
    }
}
