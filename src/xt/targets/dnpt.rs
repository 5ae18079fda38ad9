//! `-j DNPT`: replaces the IPv6 prefix of the destination (RFC 6296), without connection tracking.
//!
//! Data of revision 0 (`struct ip6t_npt_tginfo`, `linux/netfilter_ipv6/ip6t_NPT.h`).

use super::npt::PrefixTranslation;
use crate::xt::Families;
use crate::xt::extension::shared;

/// `-j DNPT`: replaces the IPv6 prefix of the destination (RFC 6296), without connection tracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dnpt(pub PrefixTranslation);

shared!(
    Dnpt(PrefixTranslation),
    "DNPT",
    Families::Ipv6,
    prefix: "",
    PrefixTranslation::OPTIONS,
    &[]
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;
    use crate::xt::{Extension, Family};

    #[test]
    fn round_trips_data_of_iptables() {
        // `--src-pfx fd00:1::/ffff:ffff:: --dst-pfx fd00:2::/32` by ip6tables-legacy 1.8.9
        // (`strace -xx`).
        let mut info = vec![0; 40];
        info[..4].copy_from_slice(&[0xfd, 0, 0, 1]);
        info[16..20].copy_from_slice(&[0xfd, 0, 0, 2]);
        info[32..34].copy_from_slice(&[32, 32]);
        let value = Target::read(Family::Ipv6, "DNPT", 0, &info);
        let text = "-j DNPT --src-pfx fd00:1::/32 --dst-pfx fd00:2::/32";
        assert_eq!(value.to_string(), text);
        assert_eq!(value.encode(Family::Ipv6).unwrap().info, info);
        assert_eq!(Dnpt::read(Family::Ipv6, 0, &info[..35]), None);
        assert_eq!(Dnpt::read(Family::Ipv6, 1, &info), None);
        // A prefix that is too long; bits after the prefix.
        for (at, byte) in [(32, 65), (33, 8)] {
            let mut invalid = info.clone();
            invalid[at] = byte;
            assert_eq!(Dnpt::read(Family::Ipv6, 0, &invalid), None);
        }
        // iptables-save 1.8.9 prints neither of these.
        let all = "-j DNPT --src-pfx ::/0 --dst-pfx ::/0";
        assert_eq!(Rule::parse(Family::Ipv6, all).unwrap().to_string(), all);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("--src-pfx fd00::/8", "--dst-pfx is required"),
            (
                "--dst-pfx ::/0 --src-pfx fd00::",
                "`fd00::` has no prefix length, as in fd00::/64",
            ),
            (
                "--dst-pfx ::/0 --src-pfx fd00::/65",
                "`65` is not a prefix length from 0 to 64",
            ),
            (
                "--dst-pfx ::/0 --src-pfx fd00::/ff0f::",
                "`ff0f::` is not a prefix length",
            ),
            (
                "--dst-pfx ::/0 --src-pfx fd00:1::/16",
                "`fd00:1::/16` has bits set after the prefix",
            ),
            (
                "--dst-pfx ::/0 --src-pfx 10.0.0.0/8",
                "`10.0.0.0` is not an IPv6 address",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv6, format!("-j DNPT {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
