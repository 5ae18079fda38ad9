//! `SNAT`: changes a connection's source.
//!
//! Data: revision 0, for IPv4, `struct nf_nat_ipv4_multi_range_compat`; revision 1, which is written
//! for IPv6, `struct nf_nat_range`; revision 2 `struct nf_nat_range2` (`linux/netfilter/nf_nat.h`).

use chainwright_sys::nf_nat::{
    NF_NAT_RANGE_PERSISTENT, NF_NAT_RANGE_PROTO_RANDOM, NF_NAT_RANGE_PROTO_RANDOM_FULLY,
};

use super::nat::{AddressRange, Layout, PortRange, Range, UNSHIFTED, flag};
use crate::xt::{Context, Extension, Family, Given, Misuse, OptionSpec, Text};

/// Translates the source. Addresses or ports, or both, are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Snat {
    /// Addresses to choose from, of the rule's family; without them the address stays.
    pub addresses: Option<AddressRange>,
    /// Ports to choose from.
    pub ports: Option<PortRange>,
    /// Ports are chosen by a hash: `--random`.
    pub random: bool,
    /// Ports are chosen at random: `--random-fully`.
    pub random_fully: bool,
    /// A client gets the same address for each connection: `--persistent`.
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
        let said = range.addresses.is_some() || range.ports.is_some();
        (said && range.base_port.is_none()).then_some(Self {
            addresses: range.addresses,
            ports: range.ports,
            random: range.has(NF_NAT_RANGE_PROTO_RANDOM),
            random_fully: range.has(NF_NAT_RANGE_PROTO_RANDOM_FULLY),
            persistent: range.has(NF_NAT_RANGE_PERSISTENT),
        })
    }

    fn write(&self, family: Family) -> Vec<u8> {
        self.range().write(Layout::of(family))
    }

    fn parse(context: &Context<'_>, given: &[Given<'_>]) -> Result<Self, Misuse> {
        let mut value = Self::default();
        for one in given {
            match one.option {
                "to-source" => {
                    let range = Range::parse_to(context, one)?;
                    if range.base_port.is_some() {
                        return Err(one.misuse(UNSHIFTED));
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
        if self.random {
            text.option(false, "random");
        }
        if self.random_fully {
            text.option(false, "random-fully");
        }
        if self.persistent {
            text.option(false, "persistent");
        }
    }
}
