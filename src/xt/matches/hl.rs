//! `-m hl`: compares the hop limit of the IPv6 header.
//!
//! Data of revision 0 (`struct ip6t_hl_info`, `linux/netfilter_ipv6/ip6t_hl.h`), with the layout of
//! `ttl`.

use super::ttl::Hops;
use crate::xt::extension::shared;
use crate::xt::{Families, OptionGroup, OptionSpec};

/// `-m hl`: compares the hop limit of the IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hl(pub Hops);

shared!(
    Hl(Hops),
    "hl",
    Families::Ipv6,
    prefix: "hl",
    &[
        OptionSpec::one("hl-eq").inverts(),
        OptionSpec::one("hl-eq").inverts().or("hl"),
        OptionSpec::one("hl-lt"),
        OptionSpec::one("hl-gt"),
    ],
    &[OptionGroup::one_of(&["hl-eq", "hl-lt", "hl-gt"])]
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;
    use crate::xt::{Extension, Family};

    #[test]
    fn works_like_ttl_and_is_ipv6_only() {
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
        let message = "-m hl: --hl-eq, --hl-lt or --hl-gt is required";
        assert!(fault.to_string().contains(message), "{fault}");
    }
}
