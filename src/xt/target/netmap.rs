//! `NETMAP`: translates a network onto another one of the same size, keeping the host part.
//!
//! Data of revision 0: for IPv4 `struct nf_nat_ipv4_multi_range_compat`, for IPv6
//! `struct nf_nat_range` (`linux/netfilter/nf_nat.h`): the network's first and last address. The
//! bits in which they differ are the host part.

use std::net::IpAddr;

use super::nat::{AddressRange, Layout, Range};
use crate::xt::value::{and, network, prefix_length, prefix_mask, width};
use crate::xt::{Context, Extension, Family, Given, Misuse, OptionSpec, Text};

/// Maps onto this network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Netmap {
    /// An address of the network, of the rule's family.
    pub address: IpAddr,
    /// The network's prefix length.
    pub prefix: u8,
}

/// `!address`
fn not(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(!address),
        IpAddr::V6(address) => IpAddr::V6(!address),
    }
}

impl Netmap {
    /// The first and the last address of the network.
    fn ends(self) -> AddressRange {
        let family = match self.address {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        };
        let prefix = u32::from(self.prefix).min(width(family));
        // The prefix is no longer than the address.
        let mask = prefix_mask(family, prefix).unwrap_or(self.address);
        AddressRange {
            first: and(self.address, mask),
            last: or(and(self.address, mask), not(mask)),
        }
    }
}

fn or(one: IpAddr, other: IpAddr) -> IpAddr {
    not(and(not(one), not(other)))
}

impl Extension for Netmap {
    const NAME: &'static str = "NETMAP";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("to").required()];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let range = Range::read(Layout::of(family), family, info, 0)?;
        let AddressRange { first, last } = range.addresses?;
        // Where both are equal: both 1, or both 0.
        let mask = or(and(first, last), and(not(first), not(last)));
        let prefix = u8::try_from(prefix_length(mask)?).ok()?;
        range.ports.is_none().then_some(Self {
            address: and(first, mask),
            prefix,
        })
    }

    fn write(&self, family: Family) -> Vec<u8> {
        let range = Range {
            addresses: Some(self.ends()),
            ..Range::default()
        };
        range.write(Layout::of(family))
    }

    fn parse(context: &Context<'_>, given: &[Given<'_>]) -> Result<Self, Misuse> {
        let [to] = given else {
            return Err(Misuse::of("to", "it is missing"));
        };
        let (address, mask) = to.parse(|value| network(value, context.family))?;
        let prefix = prefix_length(mask).and_then(|prefix| u8::try_from(prefix).ok());
        let prefix = prefix.ok_or_else(|| to.misuse("the mask has gaps; a network has none"))?;
        Ok(Self { address, prefix })
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "to").push(" ").address(self.address);
        text.push("/").number(self.prefix);
    }
}
