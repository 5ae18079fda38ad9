//! `-j MASQUERADE`: translates a connection's source to the address of the outgoing interface.
//!
//! Data of revision 0: for IPv4 `struct nf_nat_ipv4_multi_range_compat`, for IPv6
//! `struct nf_nat_range` (`linux/netfilter/nf_nat.h`).

use chainwright_sys::nf_nat::{NF_NAT_RANGE_PROTO_RANDOM, NF_NAT_RANGE_PROTO_RANDOM_FULLY};

use super::nat::{Layout, NatPorts, Range, flag};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
};

/// `-j MASQUERADE`: translates a connection's source to the address of the outgoing interface.
///
/// Keeps the port if possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Masquerade {
    /// Possible ports: `--to-ports`.
    pub ports: Option<NatPorts>,
    /// Whether to choose ports by a hash: `--random`.
    pub random: bool,
    /// Whether to choose ports at random: `--random-fully`.
    pub random_fully: bool,
}

impl Masquerade {
    const fn range(self) -> Range {
        Range {
            addresses: None,
            ports: self.ports,
            base_port: None,
            flags: flag(self.random, NF_NAT_RANGE_PROTO_RANDOM)
                | flag(self.random_fully, NF_NAT_RANGE_PROTO_RANDOM_FULLY),
        }
    }
}

impl Extension for Masquerade {
    const NAME: &'static str = "MASQUERADE";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("to-ports"),
        OptionSpec::switch("random"),
        OptionSpec::switch("random-fully"),
    ];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let flags = NF_NAT_RANGE_PROTO_RANDOM | NF_NAT_RANGE_PROTO_RANDOM_FULLY;
        let range = Range::read(Layout::of(family), family, info, flags)?;
        range.addresses.is_none().then_some(Self {
            ports: range.ports,
            random: range.has(NF_NAT_RANGE_PROTO_RANDOM),
            random_fully: range.has(NF_NAT_RANGE_PROTO_RANDOM_FULLY),
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        self.range().write("to-ports", family, Layout::of(family))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut value = Self::default();
        for one in given {
            match one.option {
                "to-ports" => value.ports = Some(Range::parse_ports(context, one)?),
                "random" => value.random = true,
                _ => value.random_fully = true,
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        self.range().print_ports(text);
        text.switch(self.random, "random");
        text.switch(self.random_fully, "random-fully");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        self.range().list_ports(" masq ports: ", text);
        text.bare(|text| {
            text.switch(self.random, "random");
            text.switch(self.random_fully, "random-fully");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    #[test]
    fn round_trip_in_both_families() {
        for family in Family::ALL {
            for value in [
                Masquerade::default(),
                Masquerade {
                    random_fully: true,
                    ..Masquerade::default()
                },
                Masquerade {
                    ports: Some(80.into()),
                    ..Masquerade::default()
                },
            ] {
                let info = value.write(family).unwrap();
                assert_eq!(info.len(), if family == Family::Ipv4 { 20 } else { 40 });
                assert_eq!(Masquerade::read(family, 0, &info), Some(value));
                // The value cannot represent an address, persistence or a base port.
                for flag in [1, 8, 32] {
                    let mut other = info.clone();
                    let flags = if family == Family::Ipv4 { 4 } else { 0 };
                    other[flags + if cfg!(target_endian = "little") { 0 } else { 3 }] |= flag;
                    assert_eq!(Masquerade::read(family, 0, &other), None);
                }
            }
        }
    }

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let value = Masquerade {
            ports: Some(NatPorts {
                first: 10,
                last: 20,
            }),
            random: false,
            random_fully: true,
        };
        check(
            Family::Ipv4,
            "01 00 00 00 12 00 00 00 00 00 00 00 00 00 00 00 00 0a 00 14",
            &value,
            " --to-ports 10-20 --random-fully",
        );
        let mut two = value.write(Family::Ipv4).unwrap();
        two[0] = 2;
        assert_eq!(Masquerade::read(Family::Ipv4, 0, &two), None);
    }

    #[test]
    fn reports_errors() {
        for (protocol, value, reason) in [
            (
                None,
                "80",
                "ports require a rule with -p tcp, udp, sctp, dccp or icmp",
            ),
            (
                Some(6),
                "10:20",
                "`10:20`: a range of ports is written with a dash, like 80-90",
            ),
            (
                Some(6),
                "10-20/5",
                "only DNAT shifts ports: a base port after `/` is not allowed here",
            ),
        ] {
            assert_eq!(
                refused::<Masquerade>(Family::Ipv4, protocol, &[("to-ports", value)]),
                format!("--to-ports: {reason}")
            );
        }
    }
}
