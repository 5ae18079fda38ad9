//! The packet header match of an entry, which the kernel evaluates before the entry's matches.

/// Defines the address accessors of a family's header.
macro_rules! addresses {
    ($Address:ty) => {
        /// Returns the source address. A mask of all zeros matches every address.
        #[must_use]
        pub fn source(&self) -> Masked<$Address> {
            Masked {
                value: self.raw.src.into(),
                mask: self.raw.smsk.into(),
            }
        }

        /// Returns the destination address. A mask of all zeros matches every address.
        #[must_use]
        pub fn destination(&self) -> Masked<$Address> {
            Masked {
                value: self.raw.dst.into(),
                mask: self.raw.dmsk.into(),
            }
        }
    };
}

/// Defines the interface accessors; the fields have the same names in all structs.
macro_rules! interfaces {
    () => {
        /// Returns the incoming interface.
        #[must_use]
        pub const fn in_interface(&self) -> InterfaceMatch<'t> {
            InterfaceMatch {
                raw_name: &self.raw.iniface,
                raw_mask: &self.raw.iniface_mask,
            }
        }

        /// Returns the outgoing interface.
        #[must_use]
        pub const fn out_interface(&self) -> InterfaceMatch<'t> {
            InterfaceMatch {
                raw_name: &self.raw.outiface,
                raw_mask: &self.raw.outiface_mask,
            }
        }
    };
}

mod arp;
mod interface;
mod ipv4;
mod ipv6;
mod owned;

use std::fmt;

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Family;

pub use arp::{ArpHeader, ArpInversions, HardwareAddressMatch};
pub use interface::InterfaceMatch;
pub use ipv4::{Inversions, Ipv4Flags, Ipv4Header};
pub use ipv6::{Ipv6Flags, Ipv6Header};
pub use owned::{HeaderBuf, InterfaceMatchBuf, Ipv4HeaderBuf, Ipv6HeaderBuf};

/// The packets to which an entry applies, before its matches are evaluated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Header<'t> {
    /// The header of an entry in an IPv4 table.
    Ipv4(Ipv4Header<'t>),
    /// The header of an entry in an IPv6 table.
    Ipv6(Ipv6Header<'t>),
    /// The header of an entry in an ARP table.
    Arp(ArpHeader<'t>),
}

impl<'t> Header<'t> {
    /// Returns the header at the start of an entry of a table.
    pub(super) fn of(family: Family, entry: &'t [u8]) -> Self {
        match family {
            Family::Ipv4 => Self::Ipv4(Ipv4Header { raw: view(entry) }),
            Family::Ipv6 => Self::Ipv6(Ipv6Header { raw: view(entry) }),
            Family::Arp => Self::Arp(ArpHeader { raw: view(entry) }),
        }
    }

    /// Returns `true` if a jump of this entry is a goto. Always `false` in an ARP table.
    #[must_use]
    pub fn is_goto(&self) -> bool {
        match self {
            Self::Ipv4(header) => header.flags().contains(Ipv4Flags::GOTO),
            Self::Ipv6(header) => header.flags().contains(Ipv6Flags::GOTO),
            Self::Arp(_) => false,
        }
    }

    /// Returns the incoming interface.
    #[must_use]
    pub const fn in_interface(&self) -> InterfaceMatch<'t> {
        match self {
            Self::Ipv4(header) => header.in_interface(),
            Self::Ipv6(header) => header.in_interface(),
            Self::Arp(header) => header.in_interface(),
        }
    }

    /// Returns the outgoing interface.
    #[must_use]
    pub const fn out_interface(&self) -> InterfaceMatch<'t> {
        match self {
            Self::Ipv4(header) => header.out_interface(),
            Self::Ipv6(header) => header.out_interface(),
            Self::Arp(header) => header.out_interface(),
        }
    }

    /// Returns the IPv4 header, if it is one.
    #[must_use]
    pub const fn as_ipv4(&self) -> Option<&Ipv4Header<'t>> {
        match self {
            Self::Ipv4(header) => Some(header),
            _ => None,
        }
    }

    /// Returns the IPv6 header, if it is one.
    #[must_use]
    pub const fn as_ipv6(&self) -> Option<&Ipv6Header<'t>> {
        match self {
            Self::Ipv6(header) => Some(header),
            _ => None,
        }
    }

    /// Returns the ARP header, if it is one.
    #[must_use]
    pub const fn as_arp(&self) -> Option<&ArpHeader<'t>> {
        match self {
            Self::Arp(header) => Some(header),
            _ => None,
        }
    }
}

impl fmt::Debug for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipv4(header) => header.fmt(f),
            Self::Ipv6(header) => header.fmt(f),
            Self::Arp(header) => header.fmt(f),
        }
    }
}

/// Casts the start of an entry to the kernel's struct.
///
/// This cannot panic: entries come from a [`Table`](super::Table), which keeps them aligned to
/// 8 bytes and has checked the alignment of each entry's offset and that it is at least as
/// long as its fixed header.
fn view<T: FromBytes + KnownLayout + Immutable>(entry: &[u8]) -> &T {
    match T::ref_from_prefix(entry) {
        Ok((view, _)) => view,
        Err(_) => unreachable!("invariant: a table's entries are aligned and whole"),
    }
}

/// A value and its mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Masked<T> {
    /// The value, with the bits outside the mask already cleared (iptables does that; the
    /// kernel does not check it).
    pub value: T,
    /// The bits to compare.
    pub mask: T,
}

impl<T: fmt::Display> fmt::Display for Masked<T> {
    /// Writes `value/mask`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.value, self.mask)
    }
}
