//! A rule's conditions apart from its matches: addresses, interfaces, the protocol.

use std::net::IpAddr;

use bstr::BString;

use crate::xt::{Family, Text};

/// An address and a mask to compare with a packet's source or destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// The address, with the bits outside the mask cleared.
    pub address: IpAddr,
    /// The mask, of the same family; it may have gaps.
    pub mask: IpAddr,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Address {
    /// Creates a network with a prefix length, which is limited to the address's length.
    #[must_use]
    pub fn network(address: IpAddr, prefix: u32) -> Self {
        let mask = match address {
            IpAddr::V4(_) => IpAddr::from(
                u32::MAX
                    .checked_shl(32 - prefix.min(32))
                    .unwrap_or(0)
                    .to_be_bytes(),
            ),
            IpAddr::V6(_) => {
                let bits = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
                IpAddr::from(bits.to_be_bytes())
            }
        };
        Self::masked(address, mask, false)
    }

    /// Creates an address and a mask; the bits outside the mask are cleared. If they are of
    /// different families, the mask is full.
    #[must_use]
    pub fn masked(address: IpAddr, mask: IpAddr, invert: bool) -> Self {
        match (address, mask) {
            (IpAddr::V4(a), IpAddr::V4(m)) => Self {
                address: IpAddr::from((a.to_bits() & m.to_bits()).to_be_bytes()),
                mask,
                invert,
            },
            (IpAddr::V6(a), IpAddr::V6(m)) => Self {
                address: IpAddr::from((a.to_bits() & m.to_bits()).to_be_bytes()),
                mask,
                invert,
            },
            (address, _) => Self {
                address,
                mask: match address {
                    IpAddr::V4(_) => IpAddr::from([0xff; 4]),
                    IpAddr::V6(_) => IpAddr::from([0xff; 16]),
                },
                invert,
            },
        }
    }

    /// Returns the negated condition.
    #[must_use]
    pub const fn not(mut self) -> Self {
        self.invert = !self.invert;
        self
    }

    /// Returns the prefix length, if the mask has no gaps.
    #[must_use]
    pub fn prefix(&self) -> Option<u32> {
        let (leading, ones) = match self.mask {
            IpAddr::V4(mask) => (mask.to_bits().leading_ones(), mask.to_bits().count_ones()),
            IpAddr::V6(mask) => (mask.to_bits().leading_ones(), mask.to_bits().count_ones()),
        };
        (leading == ones).then_some(leading)
    }
}

/// A name to compare with a packet's input or output interface.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Interface {
    /// The name, or its start.
    pub name: BString,
    /// Whether it matches all names with this start (written with a `+`).
    pub prefix: bool,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// A layer-4 protocol to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// `IPPROTO_*`.
    pub number: u8,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Address {
    /// Returns the family of the address.
    #[must_use]
    pub const fn family(&self) -> Family {
        match self.address {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        }
    }

    /// Returns `true` if the condition matches every address: a mask of no bits.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        !self.invert && self.prefix() == Some(0)
    }

    /// Returns `true` if the condition matches no address: the negation of a mask of no bits.
    #[must_use]
    pub(super) fn is_nothing(&self) -> bool {
        self.invert && self.prefix() == Some(0)
    }

    /// Prints it as the value of an option, `-s` or `-d`.
    pub(super) fn print(&self, text: &mut Text, option: &str) {
        text.push(if self.invert { " ! " } else { " " })
            .push(option);
        text.push(" ").address(self.address);
        match self.prefix() {
            Some(prefix) => text.push("/").number(prefix),
            None => text.push("/").address(self.mask),
        };
    }
}

impl Interface {
    /// Prints it as the value of an option, `-i` or `-o`.
    pub(super) fn print(&self, text: &mut Text, option: &str) {
        text.push(if self.invert { " ! " } else { " " })
            .push(option);
        if self.prefix {
            text.name([&self.name[..], b"+"].concat());
        } else {
            text.name(&self.name);
        }
    }
}

impl Protocol {
    /// Prints it as an option.
    pub(super) fn print(self, text: &mut Text) {
        text.push(if self.invert { " ! -p " } else { " -p " });
        text.protocol(self.number);
    }
}
