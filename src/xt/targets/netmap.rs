//! `-j NETMAP`: maps a network to another one of the same size, keeping the host part.
//!
//! Data of revision 0: for IPv4 `struct nf_nat_ipv4_multi_range_compat`, for IPv6
//! `struct nf_nat_range` (`linux/netfilter/nf_nat.h`): the first and last address of the network. The
//! bits in which they differ are the host part.

use std::net::IpAddr;

use super::nat::{AddressRange, Layout, Range};
use crate::xt::pack;
use crate::xt::value::{and, network, prefix_length, prefix_mask, width};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
};

/// `-j NETMAP`: maps a network to another one of the same size, keeping the host part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Netmap {
    /// An address of the new network, of the rule's family.
    pub address: IpAddr,
    /// The network's prefix length.
    pub prefix: u8,
}

/// Returns `!address`.
fn not(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(!address),
        IpAddr::V6(address) => IpAddr::V6(!address),
    }
}

impl Netmap {
    /// Returns the first and the last address of the network.
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
    const DIFFERENCES: &'static [Difference] = &[
        Difference::refused(
            "-j NETMAP --to 192.0.2.77/33",
            "-j NETMAP --to 192.0.2.77/32",
            "An IPv4 address has 32 bits.",
        )
        .within("nat", "PREROUTING"),
        Difference::kept(
            "-j NETMAP --to 10/8",
            "-j NETMAP --to 0.0.0.0/8",
            "iptables reads a short address as a number here, and as the start of an address elsewhere.",
        )
        .within("nat", "PREROUTING")
        .printed("-j NETMAP --to 10.0.0.0/8"),
    ];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let range = Range::read(Layout::of(family), family, info, 0)?;
        let AddressRange { first, last } = range.addresses?;
        // The mask covers the equal bits: both 1, or both 0.
        let mask = or(and(first, last), and(not(first), not(last)));
        let prefix = u8::try_from(prefix_length(mask)?).ok()?;
        range.ports.is_none().then_some(Self {
            address: and(first, mask),
            prefix,
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let why = "the prefix is longer than an address";
        pack::require(u32::from(self.prefix) <= width(family), "to", why)?;
        let range = Range {
            addresses: Some(self.ends()),
            ..Range::default()
        };
        range.write("to", family, Layout::of(family))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let to = GivenOption::find_required(given, "to")?;
        let (address, mask) = to.parse(|value| network(value, context.family))?;
        let prefix = prefix_length(mask).and_then(|prefix| u8::try_from(prefix).ok());
        let prefix = prefix.ok_or_else(|| to.error("the mask is not contiguous"))?;
        Ok(Self { address, prefix })
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "to").push(" ").address(self.address);
        text.push("/").number(self.prefix);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" to:").address(self.address);
        text.push("/").number(self.prefix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, parse, refused};

    /// Data from strace of iptables-legacy and ip6tables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let value = Netmap {
            address: [192, 0, 2, 0].into(),
            prefix: 24,
        };
        check(
            Family::Ipv4,
            "01 00 00 00 01 00 00 00 c0 00 02 00 c0 00 02 ff 00 00 00 00",
            &value,
            " --to 192.0.2.0/24",
        );
        check(
            Family::Ipv6,
            "01 00 00 00 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 00 \
             20 01 0d b8 7f ff ff ff ff ff ff ff ff ff ff ff 00 00 00 00",
            &Netmap {
                address: "2001:db8::".parse().unwrap(),
                prefix: 33,
            },
            " --to 2001:db8::/33",
        );
        // A mask with gaps; no addresses; ports.
        let info = value.write(Family::Ipv4).unwrap();
        for (at, byte) in [(13, 0x80), (4, 0), (4, 3)] {
            let mut other = info.clone();
            other[at] = byte;
            assert_eq!(Netmap::read(Family::Ipv4, 0, &other), None);
        }
    }

    #[test]
    fn reports_errors() {
        // iptables 1.8.9 parses these as /32 and as 0.0.0.0/8.
        assert_eq!(
            refused::<Netmap>(Family::Ipv4, None, &[("to", "192.0.2.0/255.0.255.0")]),
            "--to: the mask is not contiguous"
        );
        let ten = parse::<Netmap>(Family::Ipv4, None, &[("to", "10/8")]).unwrap();
        assert_eq!(ten.address, IpAddr::from([10, 0, 0, 0]));
    }
}
