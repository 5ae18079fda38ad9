//! `-j REDIRECT`: translates a connection's destination to this host.
//!
//! Data of revision 0: for IPv4 `struct nf_nat_ipv4_multi_range_compat`, for IPv6
//! `struct nf_nat_range` (`linux/netfilter/nf_nat.h`).

use chainwright_sys::nf_nat::NF_NAT_RANGE_PROTO_RANDOM;

use super::nat::{Layout, NatPorts, Range, flag};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
};

/// `-j REDIRECT`: translates a connection's destination to this host.
///
/// The new address is that of the incoming interface, or the loopback address for local
/// packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Redirect {
    /// Possible ports; `None` to keep the port.
    pub ports: Option<NatPorts>,
    /// Whether to choose ports at random: `--random`.
    pub random: bool,
}

impl Redirect {
    const fn range(self) -> Range {
        Range {
            addresses: None,
            ports: self.ports,
            base_port: None,
            flags: flag(self.random, NF_NAT_RANGE_PROTO_RANDOM),
        }
    }
}

impl Extension for Redirect {
    const NAME: &'static str = "REDIRECT";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] =
        &[OptionSpec::one("to-ports"), OptionSpec::switch("random")];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let flags = NF_NAT_RANGE_PROTO_RANDOM;
        let range = Range::read(Layout::of(family), family, info, flags)?;
        range.addresses.is_none().then_some(Self {
            ports: range.ports,
            random: range.has(NF_NAT_RANGE_PROTO_RANDOM),
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
                _ => value.random = true,
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        self.range().print_ports(text);
        text.switch(self.random, "random");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        self.range().list_ports(" redir ports ", text);
        text.bare(|text| _ = text.switch(self.random, "random"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of ip6tables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let value = Redirect {
            ports: Some(80.into()),
            random: true,
        };
        check(
            Family::Ipv6,
            "06 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 \
             00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 50 00 50",
            &value,
            " --to-ports 80 --random",
        );
        // An address, persistence, `--random-fully`.
        for flag in [1, 8, 16] {
            let mut info = value.write(Family::Ipv4).unwrap();
            info[4] |= flag;
            assert_eq!(Redirect::read(Family::Ipv4, 0, &info), None);
        }
    }

    #[test]
    fn reports_errors() {
        assert_eq!(
            refused::<Redirect>(Family::Ipv6, Some(6), &[("to-ports", "80-70")]),
            "--to-ports: the range `80-70` ends before it starts"
        );
    }
}
