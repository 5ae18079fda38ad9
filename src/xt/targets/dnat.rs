//! `-j DNAT`: translates a connection's destination.
//!
//! Data: revision 0, for IPv4, `struct nf_nat_ipv4_multi_range_compat`; revision 1
//! `struct nf_nat_range`; revision 2, the written one, `struct nf_nat_range2`
//! (`linux/netfilter/nf_nat.h`).

use chainwright_sys::nf_nat::{NF_NAT_RANGE_PERSISTENT, NF_NAT_RANGE_PROTO_RANDOM};

use super::nat::{AddressRange, Layout, NatPorts, Range, flag};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
};

/// `-j DNAT`: translates a connection's destination.
///
/// At least one of addresses and ports is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Dnat {
    /// Possible addresses, of the rule's family; `None` to keep the address.
    pub addresses: Option<AddressRange>,
    /// Possible ports.
    pub ports: Option<NatPorts>,
    /// The original port that maps to the first of `ports`; the next one maps to the second,
    /// and so on. Only with `ports`.
    pub base_port: Option<u16>,
    /// Whether to choose ports at random: `--random`.
    pub random: bool,
    /// Whether a client gets the same address for each connection: `--persistent`.
    pub persistent: bool,
}

impl Dnat {
    const fn range(self) -> Range {
        Range {
            addresses: self.addresses,
            ports: self.ports,
            base_port: self.base_port,
            flags: flag(self.random, NF_NAT_RANGE_PROTO_RANDOM)
                | flag(self.persistent, NF_NAT_RANGE_PERSISTENT),
        }
    }
}

impl Extension for Dnat {
    const NAME: &'static str = "DNAT";
    const REVISION: u8 = 2;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("to-destination").required(),
        OptionSpec::switch("random"),
        OptionSpec::switch("persistent"),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-p tcp -j DNAT --to-destination :5-5/1",
        "-p tcp -j DNAT --to-destination :5/1",
        "iptables rejects its own output here.",
    )
    .within("nat", "PREROUTING")];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let layout = Layout::of_revision(family, revision)?;
        let flags = NF_NAT_RANGE_PROTO_RANDOM | NF_NAT_RANGE_PERSISTENT;
        let range = Range::read(layout, family, info, flags)?;
        // iptables has no option for neither of them, nor for a base port that is alone or 0.
        let expressible = match range.base_port {
            None => range.addresses.is_some() || range.ports.is_some(),
            Some(base) => base != 0 && range.ports.is_some(),
        };
        expressible.then_some(Self {
            addresses: range.addresses,
            ports: range.ports,
            base_port: range.base_port,
            random: range.has(NF_NAT_RANGE_PROTO_RANDOM),
            persistent: range.has(NF_NAT_RANGE_PERSISTENT),
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        self.range()
            .write("to-destination", family, Layout::Shifted)
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut value = Self::default();
        for one in given {
            match one.option {
                "to-destination" => {
                    let range = Range::parse_to(context, one)?;
                    (value.addresses, value.ports) = (range.addresses, range.ports);
                    value.base_port = range.base_port;
                }
                "random" => value.random = true,
                _ => value.persistent = true,
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        self.range().print_to(text, "to-destination");
        text.switch(self.random, "random");
        text.switch(self.persistent, "persistent");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        self.range().list_to(text);
        text.bare(|text| {
            text.switch(self.random, "random");
            text.switch(self.persistent, "persistent");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    use crate::xt::targets::testing::{check, parse, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let shifted = Dnat {
            addresses: Some(IpAddr::from([10, 1, 0, 1]).into()),
            ports: Some(NatPorts {
                first: 8080,
                last: 8089,
            }),
            base_port: Some(80),
            random: true,
            persistent: false,
        };
        check(
            Family::Ipv4,
            "27 00 00 00 0a 01 00 01 00 00 00 00 00 00 00 00 00 00 00 00 \
             0a 01 00 01 00 00 00 00 00 00 00 00 00 00 00 00 1f 90 1f 99 00 50 00 00",
            &shifted,
            " --to-destination 10.1.0.1:8080-8089/80 --random",
        );
        let plain = Dnat {
            addresses: Some("2001:db8::1".parse::<IpAddr>().unwrap().into()),
            ports: Some(8080.into()),
            ..Dnat::default()
        };
        check(
            Family::Ipv6,
            "03 00 00 00 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 \
             20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 1f 90 1f 90 00 00 00 00",
            &plain,
            " --to-destination [2001:db8::1]:8080",
        );
        // Older revisions have no base port.
        let mut older = shifted;
        older.base_port = None;
        for (revision, layout) in [(0, Layout::Ipv4), (1, Layout::Both)] {
            let info = older.range().write("to", Family::Ipv4, layout).unwrap();
            assert_eq!(Dnat::read(Family::Ipv4, revision, &info), Some(older));
            assert!(shifted.range().write("to", Family::Ipv4, layout).is_err());
        }
        // Nothing, a lone base port, and `--random-fully`, for which DNAT has no option.
        let alone = Dnat {
            ports: None,
            ..shifted
        };
        for inexpressible in [Dnat::default(), alone] {
            let info = inexpressible.write(Family::Ipv4).unwrap();
            assert_eq!(Dnat::read(Family::Ipv4, 2, &info), None);
        }
        let mut fully = plain.write(Family::Ipv6).unwrap();
        fully[0] |= 16;
        assert_eq!(Dnat::read(Family::Ipv6, 2, &fully), None);
    }

    #[test]
    fn a_shifted_range_of_one_port_can_be_loaded_again() {
        // iptables-save 1.8.9 prints `:80/5`, which iptables refuses.
        let given = [("to-destination", ":80-80/5")];
        let dnat = parse::<Dnat>(Family::Ipv4, Some(6), &given).unwrap();
        assert_eq!((dnat.ports, dnat.base_port), (Some(80.into()), Some(5)));
        let mut text = Text::new();
        dnat.print(&mut text);
        assert_eq!(text.as_bytes(), b" --to-destination :80-80/5");
        let given = [("to-destination", ":80/5")];
        assert_eq!(parse(Family::Ipv4, Some(6), &given), Ok(dnat));
    }

    #[test]
    fn reports_errors() {
        for (value, reason) in [
            (":80-90/0", "`0` is not a number from 1 to 65535"),
            (":80-90/7x", "`7x` is not a number from 1 to 65535"),
            (
                ":80-90/no-such-service",
                "`no-such-service` is neither a port number nor a service in /etc/services",
            ),
            (":70000", "`70000` is not a number from 0 to 65535"),
            (
                ":http-https",
                "`http-https` is neither a port number nor a service in /etc/services",
            ),
            (
                "10.1.0.1/8",
                "`10.1.0.1/8` is not an IPv4 address (host names are not looked up)",
            ),
        ] {
            assert_eq!(
                refused::<Dnat>(Family::Ipv4, Some(6), &[("to-destination", value)]),
                format!("--to-destination: {reason}")
            );
        }
    }
}
