//! `-j SNAT`: translates a connection's source.
//!
//! Data: revision 0, for IPv4, `struct nf_nat_ipv4_multi_range_compat`; revision 1, the written one
//! for IPv6, `struct nf_nat_range`; revision 2 `struct nf_nat_range2` (`linux/netfilter/nf_nat.h`).

use chainwright_sys::nf_nat::{
    NF_NAT_RANGE_PERSISTENT, NF_NAT_RANGE_PROTO_RANDOM, NF_NAT_RANGE_PROTO_RANDOM_FULLY,
};

use super::nat::{AddressRange, Layout, NO_BASE_PORT, NatPorts, Range, flag};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
};

/// `-j SNAT`: translates a connection's source.
///
/// At least one of addresses and ports is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Snat {
    /// Possible addresses, of the rule's family; `None` to keep the address.
    pub addresses: Option<AddressRange>,
    /// Possible ports.
    pub ports: Option<NatPorts>,
    /// Whether to choose ports by a hash: `--random`.
    pub random: bool,
    /// Whether to choose ports at random: `--random-fully`.
    pub random_fully: bool,
    /// Whether a client gets the same address for each connection: `--persistent`.
    pub persistent: bool,
}

impl Snat {
    const fn range(self) -> Range {
        Range {
            addresses: self.addresses,
            ports: self.ports,
            base_port: None,
            flags: flag(self.random, NF_NAT_RANGE_PROTO_RANDOM)
                | flag(self.random_fully, NF_NAT_RANGE_PROTO_RANDOM_FULLY)
                | flag(self.persistent, NF_NAT_RANGE_PERSISTENT),
        }
    }
}

impl Extension for Snat {
    const NAME: &'static str = "SNAT";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("to-source").required(),
        OptionSpec::switch("random"),
        OptionSpec::switch("random-fully"),
        OptionSpec::switch("persistent"),
    ];

    fn revision(family: Family) -> u8 {
        match family {
            Family::Ipv4 => 0,
            Family::Ipv6 => 1,
        }
    }

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let layout = Layout::of_revision(family, revision)?;
        let flags =
            NF_NAT_RANGE_PROTO_RANDOM | NF_NAT_RANGE_PROTO_RANDOM_FULLY | NF_NAT_RANGE_PERSISTENT;
        let range = Range::read(layout, family, info, flags)?;
        let message = range.addresses.is_some() || range.ports.is_some();
        (message && range.base_port.is_none()).then_some(Self {
            addresses: range.addresses,
            ports: range.ports,
            random: range.has(NF_NAT_RANGE_PROTO_RANDOM),
            random_fully: range.has(NF_NAT_RANGE_PROTO_RANDOM_FULLY),
            persistent: range.has(NF_NAT_RANGE_PERSISTENT),
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        self.range().write("to-source", family, Layout::of(family))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut value = Self::default();
        for one in given {
            match one.option {
                "to-source" => {
                    let range = Range::parse_to(context, one)?;
                    if range.base_port.is_some() {
                        return Err(one.error(NO_BASE_PORT));
                    }
                    (value.addresses, value.ports) = (range.addresses, range.ports);
                }
                "random" => value.random = true,
                "random-fully" => value.random_fully = true,
                _ => value.persistent = true,
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        self.range().print_to(text, "to-source");
        text.switch(self.random, "random");
        text.switch(self.random_fully, "random-fully");
        text.switch(self.persistent, "persistent");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        self.range().list_to(text);
        text.bare(|text| {
            text.switch(self.random, "random");
            text.switch(self.random_fully, "random-fully");
            text.switch(self.persistent, "persistent");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, parse, refused};

    fn range(first: &str, last: &str) -> Option<AddressRange> {
        Some(AddressRange {
            first: first.parse().unwrap(),
            last: last.parse().unwrap(),
        })
    }

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let mut snat = Snat {
            addresses: range("192.0.2.1", "192.0.2.9"),
            ports: Some(NatPorts {
                first: 80,
                last: 90,
            }),
            persistent: true,
            ..Snat::default()
        };
        check(
            Family::Ipv4,
            "01 00 00 00 0b 00 00 00 c0 00 02 01 c0 00 02 09 00 50 00 5a",
            &snat,
            " --to-source 192.0.2.1-192.0.2.9:80-90 --persistent",
        );
        // Revisions 1 and 2 have the same content.
        let raw = snat.range();
        for (revision, layout) in [(1, Layout::Both), (2, Layout::Shifted)] {
            let info = raw.write("to", Family::Ipv4, layout).unwrap();
            assert_eq!(Snat::read(Family::Ipv4, revision, &info), Some(snat));
        }
        snat = Snat {
            addresses: range("2001:db8::1", "2001:db8::1"),
            ports: Some(80.into()),
            random_fully: true,
            ..Snat::default()
        };
        check(
            Family::Ipv6,
            "13 00 00 00 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 \
             20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 00 50 00 50",
            &snat,
            " --to-source [2001:db8::1]:80 --random-fully",
        );
        assert_eq!(
            Snat::read(Family::Ipv6, 0, &snat.write(Family::Ipv6).unwrap()),
            None
        );
        // Neither address nor port; a base port.
        let nothing = Snat::default().write(Family::Ipv4).unwrap();
        assert_eq!(Snat::read(Family::Ipv4, 0, &nothing), None);
        let shifted = Range {
            base_port: Some(1),
            ..raw
        };
        let info = shifted.write("to", Family::Ipv4, Layout::Shifted).unwrap();
        assert_eq!(Snat::read(Family::Ipv4, 2, &info), None);
    }

    #[test]
    fn reports_errors() {
        let (v4, v6, tcp) = (Family::Ipv4, Family::Ipv6, Some(6));
        for (family, protocol, value, reason) in [
            (
                v4,
                None,
                "192.0.2.1:80",
                "ports require a rule with -p tcp, udp, sctp, dccp or icmp",
            ),
            (
                v4,
                Some(47),
                ":80",
                "ports require a rule with -p tcp, udp, sctp, dccp or icmp",
            ),
            (
                v4,
                tcp,
                "192.0.2.1:80:90",
                "`192.0.2.1:80:90` is not an IPv4 address (host names are not looked up)",
            ),
            (v4, tcp, ":90-80", "the range `90-80` ends before it starts"),
            (v4, tcp, ":80-", "`` is not a number from 0 to 65535"),
            (
                v4,
                tcp,
                ":80-90/8",
                "only DNAT shifts ports: a base port after `/` is not allowed here",
            ),
            (
                v4,
                tcp,
                ":",
                "`` is neither a port number nor a service in /etc/services",
            ),
            (
                v4,
                tcp,
                "",
                "`` is not an IPv4 address (host names are not looked up)",
            ),
            (
                v4,
                tcp,
                "[192.0.2.1]:80",
                "`[192.0.2.1]:80`: brackets are for IPv6 addresses",
            ),
            (
                v4,
                tcp,
                "192.0.2.1-",
                "`` is not an IPv4 address (host names are not looked up)",
            ),
            (
                v6,
                tcp,
                "[::1",
                "`[::1` is not like [address-address]:port-port",
            ),
            (
                v6,
                tcp,
                "[::1]-[::2]:80",
                "`[::1]-[::2]:80` is not like [address-address]:port-port",
            ),
            (
                v6,
                tcp,
                "[]",
                "`` is not an IPv6 address (host names are not looked up)",
            ),
        ] {
            assert_eq!(
                refused::<Snat>(family, protocol, &[("to-source", value)]),
                format!("--to-source: {reason}")
            );
        }
        let both = parse::<Snat>(v6, tcp, &[("to-source", "[]:1-2"), ("random", "")]).unwrap();
        assert_eq!(both.addresses, None);
        assert!(both.random && !both.persistent);
    }
}
