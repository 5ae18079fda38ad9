//! `-j REJECT`: drops the packet and sends an error to its sender.
//!
//! Data of revision 0: for IPv4 `struct ipt_reject_info` (`linux/netfilter_ipv4/ipt_REJECT.h`), for
//! IPv6 `struct ip6t_reject_info` (`linux/netfilter_ipv6/ip6t_REJECT.h`): the type of the reply,
//! numbered separately in each family.

use chainwright_sys::ip6t_reject_target as v6;
use chainwright_sys::ipt_reject_target as v4;

use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
};

/// `-j REJECT`: drops the packet and sends an error to its sender.
///
/// The reply. Names that start with `Icmp6` are for IPv6, other names with `Icmp` for IPv4; a rule
/// of the other family cannot be encoded with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reject {
    /// ICMP network unreachable.
    IcmpNetUnreachable,
    /// ICMP host unreachable.
    IcmpHostUnreachable,
    /// ICMP protocol unreachable.
    IcmpProtoUnreachable,
    /// ICMP port unreachable: the default for IPv4.
    IcmpPortUnreachable,
    /// ICMP network prohibited.
    IcmpNetProhibited,
    /// ICMP host prohibited.
    IcmpHostProhibited,
    /// TCP reset, in both families; only for TCP.
    TcpReset,
    /// ICMP communication administratively prohibited.
    IcmpAdminProhibited,
    /// ICMPv6 no route.
    Icmp6NoRoute,
    /// ICMPv6 administratively prohibited.
    Icmp6AdmProhibited,
    /// ICMPv6 address unreachable.
    Icmp6AddrUnreachable,
    /// ICMPv6 port unreachable: the default for IPv6.
    Icmp6PortUnreachable,
    /// ICMPv6 source address failed the policy.
    Icmp6PolicyFail,
    /// ICMPv6 route refused.
    Icmp6RejectRoute,
}

struct Entry {
    value: Reject,
    /// Name and alias.
    names: [&'static str; 2],
    ipv4: Option<u32>,
    ipv6: Option<u32>,
}

const fn entry(
    value: Reject,
    names: [&'static str; 2],
    ipv4: Option<u32>,
    ipv6: Option<u32>,
) -> Entry {
    Entry {
        value,
        names,
        ipv4,
        ipv6,
    }
}

/// In the order of the enum, in which iptables also searches for a name's prefix.
#[rustfmt::skip]
const TABLE: [Entry; 14] = [
    entry(Reject::IcmpNetUnreachable, ["icmp-net-unreachable", "net-unreach"], Some(v4::IPT_ICMP_NET_UNREACHABLE), None),
    entry(Reject::IcmpHostUnreachable, ["icmp-host-unreachable", "host-unreach"], Some(v4::IPT_ICMP_HOST_UNREACHABLE), None),
    entry(Reject::IcmpProtoUnreachable, ["icmp-proto-unreachable", "proto-unreach"], Some(v4::IPT_ICMP_PROT_UNREACHABLE), None),
    entry(Reject::IcmpPortUnreachable, ["icmp-port-unreachable", "port-unreach"], Some(v4::IPT_ICMP_PORT_UNREACHABLE), None),
    entry(Reject::IcmpNetProhibited, ["icmp-net-prohibited", "net-prohib"], Some(v4::IPT_ICMP_NET_PROHIBITED), None),
    entry(Reject::IcmpHostProhibited, ["icmp-host-prohibited", "host-prohib"], Some(v4::IPT_ICMP_HOST_PROHIBITED), None),
    entry(Reject::TcpReset, ["tcp-reset", "tcp-rst"], Some(v4::IPT_TCP_RESET), Some(v6::IP6T_TCP_RESET)),
    entry(Reject::IcmpAdminProhibited, ["icmp-admin-prohibited", "admin-prohib"], Some(v4::IPT_ICMP_ADMIN_PROHIBITED), None),
    entry(Reject::Icmp6NoRoute, ["icmp6-no-route", "no-route"], None, Some(v6::IP6T_ICMP6_NO_ROUTE)),
    entry(Reject::Icmp6AdmProhibited, ["icmp6-adm-prohibited", "adm-prohibited"], None, Some(v6::IP6T_ICMP6_ADM_PROHIBITED)),
    entry(Reject::Icmp6AddrUnreachable, ["icmp6-addr-unreachable", "addr-unreach"], None, Some(v6::IP6T_ICMP6_ADDR_UNREACH)),
    entry(Reject::Icmp6PortUnreachable, ["icmp6-port-unreachable", "port-unreach"], None, Some(v6::IP6T_ICMP6_PORT_UNREACH)),
    entry(Reject::Icmp6PolicyFail, ["icmp6-policy-fail", "policy-fail"], None, Some(v6::IP6T_ICMP6_POLICY_FAIL)),
    entry(Reject::Icmp6RejectRoute, ["icmp6-reject-route", "reject-route"], None, Some(v6::IP6T_ICMP6_REJECT_ROUTE)),
];

impl Entry {
    const fn number(&self, family: Family) -> Option<u32> {
        match family {
            Family::Ipv4 => self.ipv4,
            Family::Ipv6 => self.ipv6,
        }
    }
}

impl Reject {
    /// Returns the default of a family.
    #[must_use]
    pub const fn default_of(family: Family) -> Self {
        match family {
            Family::Ipv4 => Self::IcmpPortUnreachable,
            Family::Ipv6 => Self::Icmp6PortUnreachable,
        }
    }

    const fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }
}

impl Extension for Reject {
    const NAME: &'static str = "REJECT";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("reject-with")];

    fn value_names(family: Family) -> Vec<String> {
        let own = TABLE.iter().filter(|entry| entry.number(family).is_some());
        let lines = own.flat_map(|entry| {
            let [name, other] = entry.names;
            [format!("    {name}"), format!("    {other:<25}\talias")]
        });
        std::iter::once("Valid reject types:".to_owned())
            .chain(lines)
            .collect()
    }

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        // Both structs consist of this number.
        let number = Some(read_struct::<v4::ipt_reject_info>(info)?.with);
        let found = TABLE.iter().find(|entry| entry.number(family) == number);
        found.map(|entry| entry.value)
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let entry = self.entry();
        let Some(number) = entry.number(family) else {
            let reason = format!("{} is not of the rule's family", entry.names[0]);
            return Err(OptionError::of("reject-with", reason));
        };
        Ok(number.to_ne_bytes().to_vec())
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let [with] = given else {
            return Ok(Self::default_of(context.family));
        };
        let wanted = with.value();
        // As in iptables, a prefix of a name is enough, ignoring case.
        let starts = |name: &&str| {
            let start = name.as_bytes().get(..wanted.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(wanted))
        };
        let mut known = TABLE
            .iter()
            .filter(|entry| entry.number(context.family).is_some());
        let found = known
            .clone()
            .find(|entry| !wanted.is_empty() && entry.names.iter().any(starts));
        let Some(entry) = found else {
            let mut names = known.next().map_or("", |entry| entry.names[0]).to_owned();
            for entry in known {
                names += ", ";
                names += entry.names[0];
            }
            return Err(with.error(format!("`{wanted}` is not one of {names}")));
        };
        if entry.value == Self::TcpReset && context.protocol_among(&[6]).is_none() {
            return Err(with.error("only TCP can be reset: the rule needs -p tcp"));
        }
        Ok(entry.value)
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "reject-with")
            .word(self.entry().names[0]);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.bare(|text| self.print(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, parse, refused};

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (place, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.value as usize, place);
            assert!(entry.ipv4.or(entry.ipv6).is_some());
        }
    }

    /// Data from strace of iptables-legacy and ip6tables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let (v4, v6) = (Family::Ipv4, Family::Ipv6);
        check(
            v4,
            "07 00 00 00",
            &Reject::TcpReset,
            " --reject-with tcp-reset",
        );
        check(
            v6,
            "06 00 00 00",
            &Reject::TcpReset,
            " --reject-with tcp-reset",
        );
        check(
            v6,
            "07 00 00 00",
            &Reject::Icmp6PolicyFail,
            " --reject-with icmp6-policy-fail",
        );
        // An echo reply and unknown numbers; "not a neighbour", which has no name in iptables.
        for (family, number) in [(v4, 4), (v4, 9), (v6, 5), (v6, 2)] {
            assert_eq!(Reject::read(family, 0, &[number, 0, 0, 0]), None);
        }
        assert!(Reject::Icmp6NoRoute.write(v4).is_err());
        assert!(Reject::IcmpNetUnreachable.write(v6).is_err());
    }

    #[test]
    fn reports_errors() {
        let with = |family, value| refused::<Reject>(family, None, &[("reject-with", value)]);
        assert_eq!(
            with(Family::Ipv4, "tcp-reset"),
            "--reject-with: only TCP can be reset: the rule needs -p tcp"
        );
        assert_eq!(
            with(Family::Ipv6, "icmp-port-unreachable"),
            "--reject-with: `icmp-port-unreachable` is not one of tcp-reset, icmp6-no-route, icmp6-adm-prohibited, icmp6-addr-unreachable, icmp6-port-unreachable, icmp6-policy-fail, icmp6-reject-route"
        );
        assert!(with(Family::Ipv4, "").starts_with("--reject-with: `` is not one of icmp-net"));
        assert_eq!(
            parse(Family::Ipv6, None, &[]),
            Ok(Reject::Icmp6PortUnreachable)
        );
    }
}
