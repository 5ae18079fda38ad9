//! `-m icmp6`: compares type and code of ICMPv6. The rule is for `-p ipv6-icmp`.
//!
//! Data of revision 0: `struct ip6t_icmp` (`linux/netfilter_ipv6/ip6_tables.h`).

use chainwright_sys::ip6_tables::{IP6T_ICMP_INV, ip6t_icmp};

use super::icmp::{IcmpCodes, Name, list, listed_names, parse, print};
use crate::xt::{
    Context, Difference, Extension, Families, Family, GivenOption, ListStyle, OptionError,
    OptionSpec, Text, read_struct, write_struct,
};

/// `-m icmp6`: compares type and code of ICMPv6. The rule is for `-p ipv6-icmp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Icmp6 {
    /// The type.
    pub kind: u8,
    /// The codes; `None` for every code.
    pub code: Option<IcmpCodes>,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Icmp6 {
    const NAME: &'static str = "icmp6";
    const NAMES: &'static [&'static str] = &["icmp6", "icmpv6", "ipv6-icmp"];
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("icmpv6-type").inverts().required()];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-p ipv6-icmp -m icmp6 --icmpv6-type 1/1:5",
        "-p ipv6-icmp -m icmp6 --icmpv6-type 1/1",
        "iptables accepts and stores several codes, but only prints the first.",
    )
    .ipv6()];

    fn value_names(_: Family) -> Vec<String> {
        listed_names("Valid ICMPv6 Types:", NAMES)
    }

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ip6t_icmp = read_struct(info).filter(|_| revision == Self::REVISION)?;
        if info.invflags & !IP6T_ICMP_INV != 0 {
            return None;
        }
        Some(Self {
            kind: info.r#type,
            code: IcmpCodes::read(info.code),
            invert: info.invflags != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        Ok(write_struct(&ip6t_icmp {
            r#type: self.kind,
            code: IcmpCodes::write(self.code),
            invflags: if self.invert { IP6T_ICMP_INV } else { 0 },
        }))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        context.needs_protocol(58, "ipv6-icmp")?;
        let one = GivenOption::find_required(given, "icmpv6-type")?;
        let (kind, code) = one.parse(|value| parse(value, NAMES))?;
        Ok(Self {
            kind,
            code,
            invert: one.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "icmpv6-type").push(" ");
        print(self.kind, self.code, text);
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        list(
            "ipv6-icmp",
            self.invert,
            self.kind,
            self.code,
            NAMES,
            text,
            style,
        );
    }
}

const NAMES: &[Name] = &[
    ("destination-unreachable", 1, None),
    ("no-route", 1, Some(0)),
    ("communication-prohibited", 1, Some(1)),
    ("beyond-scope", 1, Some(2)),
    ("address-unreachable", 1, Some(3)),
    ("port-unreachable", 1, Some(4)),
    ("failed-policy", 1, Some(5)),
    ("reject-route", 1, Some(6)),
    ("packet-too-big", 2, None),
    ("time-exceeded", 3, None),
    ("ttl-exceeded", 3, None),
    ("ttl-zero-during-transit", 3, Some(0)),
    ("ttl-zero-during-reassembly", 3, Some(1)),
    ("parameter-problem", 4, None),
    ("bad-header", 4, Some(0)),
    ("unknown-header-type", 4, Some(1)),
    ("unknown-option", 4, Some(2)),
    ("echo-request", 128, None),
    ("ping", 128, None),
    ("echo-reply", 129, None),
    ("pong", 129, None),
    ("mld-listener-query", 130, None),
    ("mld-listener-report", 131, None),
    ("mld-listener-done", 132, None),
    ("mld-listener-reduction", 132, None),
    ("router-solicitation", 133, None),
    ("router-advertisement", 134, None),
    ("neighbour-solicitation", 135, None),
    ("neighbor-solicitation", 135, None),
    ("neighbour-advertisement", 136, None),
    ("neighbor-advertisement", 136, None),
    ("redirect", 137, None),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-p icmpv6 -m icmp6 ! --icmpv6-type no-route` by ip6tables-legacy 1.8.9.
        let info = [1, 0, 0, 1, 0, 0, 0, 0];
        let icmp = Icmp6 {
            kind: 1,
            code: Some(0.into()),
            invert: true,
        };
        assert_eq!(Icmp6::read(Family::Ipv6, 0, &info), Some(icmp));
        assert_eq!(
            Match::Icmp6(icmp).encode(Family::Ipv6).unwrap().info[..],
            info
        );
        assert_eq!(
            Match::Icmp6(icmp).to_string(),
            "-m icmp6 ! --icmpv6-type 1/0"
        );
        for info in [&[1, 0, 0, 2][..], &[1, 0, 0]] {
            assert_eq!(Icmp6::read(Family::Ipv6, 0, info), None);
        }
        assert_eq!(Icmp6::read(Family::Ipv6, 1, &info), None);
        let elsewhere = Match::read(Family::Ipv4, "icmp6", 0, &info);
        assert!(matches!(elsewhere, Match::Opaque(_)));
    }

    #[test]
    fn several_codes() {
        // `-p icmpv6 -m icmp6 --icmpv6-type 1/1:5` by ip6tables-legacy 1.8.9.
        let line = "-p ipv6-icmp -m icmp6 --icmpv6-type 1/1:5";
        let rule = Rule::parse(Family::Ipv6, line).unwrap();
        let info = [1, 1, 5, 0, 0, 0, 0, 0];
        assert_eq!(rule.matches[0].encode(Family::Ipv6).unwrap().info[..], info);
        assert_eq!(
            Match::read(Family::Ipv6, "icmp6", 0, &info),
            rule.matches[0]
        );
        assert_eq!(rule.to_string(), line);
    }

    #[test]
    fn refusals() {
        let message = |options| Rule::parse(Family::Ipv6, options).unwrap_err().to_string();
        assert!(message("-m icmp6 --icmpv6-type 1").contains("needs `-p ipv6-icmp`"));
        assert!(message("-p icmpv6 --icmpv6-type neigh").contains("neighbour-solicitation or"));
        assert!(
            message("-p icmpv6 --icmpv6-type any").contains("nor one of destination-unreachable")
        );
    }
}
