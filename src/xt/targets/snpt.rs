//! `-j SNPT`: replaces the IPv6 prefix of the source (RFC 6296), without connection tracking.
//!
//! Data of revision 0 (`struct ip6t_npt_tginfo`, `linux/netfilter_ipv6/ip6t_NPT.h`).

use super::npt::PrefixTranslation;
use crate::xt::Families;
use crate::xt::extension::shared;

/// `-j SNPT`: replaces the IPv6 prefix of the source (RFC 6296), without connection tracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Snpt(pub PrefixTranslation);

shared!(
    Snpt(PrefixTranslation),
    "SNPT",
    Families::Ipv6,
    prefix: "",
    PrefixTranslation::OPTIONS,
    &[]
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::{Extension, Family};

    #[test]
    fn works_like_dnpt() {
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
