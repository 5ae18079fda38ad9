//! `DNAT`: changes a connection's destination.
//!
//! Data: revision 0, for IPv4, `struct nf_nat_ipv4_multi_range_compat`; revision 1
//! `struct nf_nat_range`; revision 2, which is written, `struct nf_nat_range2`
//! (`linux/netfilter/nf_nat.h`).

use chainwright_sys::nf_nat::{NF_NAT_RANGE_PERSISTENT, NF_NAT_RANGE_PROTO_RANDOM};

use super::nat::{AddressRange, Layout, PortRange, Range, flag};
use crate::xt::{Context, Extension, Family, Given, Misuse, OptionSpec, Text};

/// Translates the destination. Addresses or ports, or both, are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dnat {
    /// Addresses to choose from, of the rule's family; without them the address stays.
    pub addresses: Option<AddressRange>,
    /// Ports to choose from.
    pub ports: Option<PortRange>,
    /// The port that becomes the first of `ports`, the next one becomes the second, and so on.
    /// Only with `ports`.
    pub base_port: Option<u16>,
    /// Ports are chosen at random: `--random`.
    pub random: bool,
    /// A client gets the same address for each connection: `--persistent`.
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

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let layout = Layout::of_revision(family, revision)?;
        let flags = NF_NAT_RANGE_PROTO_RANDOM | NF_NAT_RANGE_PERSISTENT;
        let range = Range::read(layout, family, info, flags)?;
        // iptables has no option for neither, nor for a base port alone or of 0.
        let sayable = match range.base_port {
            None => range.addresses.is_some() || range.ports.is_some(),
            Some(base) => base != 0 && range.ports.is_some(),
        };
        sayable.then_some(Self {
            addresses: range.addresses,
            ports: range.ports,
            base_port: range.base_port,
            random: range.has(NF_NAT_RANGE_PROTO_RANDOM),
            persistent: range.has(NF_NAT_RANGE_PERSISTENT),
        })
    }

    fn write(&self, _: Family) -> Vec<u8> {
        self.range().write(Layout::Shifted)
    }

    fn parse(context: &Context<'_>, given: &[Given<'_>]) -> Result<Self, Misuse> {
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
        if self.random {
            text.option(false, "random");
        }
        if self.persistent {
            text.option(false, "persistent");
        }
    }
}
