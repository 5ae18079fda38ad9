//! Owned headers for new rules.

use std::net::{Ipv4Addr, Ipv6Addr};

use chainwright_sys::arp_tables::arpt_arp;
use chainwright_sys::ip_tables::ipt_ip;
use chainwright_sys::ip6_tables::ip6t_ip6;
use zerocopy::{FromZeros, IntoBytes};

use super::interface::IFNAMSIZ;
use super::{
    Header, InterfaceMatch, Inversions, Ipv4Flags, Ipv4Header, Ipv6Flags, Ipv6Header, Masked,
};
use crate::legacy::Family;

/// A pattern for interface names in a new rule: the owned form of [`InterfaceMatch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct InterfaceMatchBuf {
    /// The name, padded with NUL.
    pub raw_name: [u8; IFNAMSIZ],
    /// 0xff for each byte to compare.
    pub raw_mask: [u8; IFNAMSIZ],
}

impl InterfaceMatchBuf {
    /// Matches every interface.
    pub const ANY: Self = Self {
        raw_name: [0; IFNAMSIZ],
        raw_mask: [0; IFNAMSIZ],
    };

    /// Parses the argument of `iptables -i`: a name of up to 15 bytes; a name ending in `+`,
    /// which matches every name with that prefix; or nothing or `+`, which match every interface.
    /// The bytes are the ones that iptables writes: the `+` stays in the name, outside the mask.
    /// Returns `None` for a longer name or one that contains a NUL.
    #[must_use]
    pub fn new(pattern: impl AsRef<[u8]>) -> Option<Self> {
        let pattern = pattern.as_ref();
        if pattern.len() >= IFNAMSIZ || pattern.contains(&0) {
            return None;
        }
        let mut interface = Self::ANY;
        interface.raw_name[..pattern.len()].copy_from_slice(pattern);
        let counted = match pattern {
            [] => 0,
            [start @ .., b'+'] => start.len(),
            // Include the closing NUL.
            _ => pattern.len() + 1,
        };
        interface.raw_mask[..counted].fill(0xff);
        Some(interface)
    }
}

impl From<InterfaceMatch<'_>> for InterfaceMatchBuf {
    fn from(interface: InterfaceMatch<'_>) -> Self {
        Self {
            raw_name: *interface.raw_name,
            raw_mask: *interface.raw_mask,
        }
    }
}

/// The header of a new IPv4 rule. The default matches every packet.
///
/// Source: `struct ipt_ip` in `linux/netfilter_ipv4/ip_tables.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4HeaderBuf {
    /// The source address. The kernel compares it, unmasked, with the masked address of a packet,
    /// so an address with bits outside its mask never matches.
    pub source: Masked<Ipv4Addr>,
    /// The destination address, with the same restriction.
    pub destination: Masked<Ipv4Addr>,
    /// The incoming interface.
    pub in_interface: InterfaceMatchBuf,
    /// The outgoing interface.
    pub out_interface: InterfaceMatchBuf,
    /// The protocol number; 0 matches every protocol.
    pub protocol: u16,
    /// Flags. The target sets [`Ipv4Flags::GOTO`].
    pub flags: Ipv4Flags,
    /// The negated parts.
    pub inversions: Inversions,
}

impl Default for Ipv4HeaderBuf {
    fn default() -> Self {
        let any = Masked {
            value: Ipv4Addr::UNSPECIFIED,
            mask: Ipv4Addr::UNSPECIFIED,
        };
        Self {
            source: any,
            destination: any,
            in_interface: InterfaceMatchBuf::ANY,
            out_interface: InterfaceMatchBuf::ANY,
            protocol: 0,
            flags: Ipv4Flags::empty(),
            inversions: Inversions::empty(),
        }
    }
}

impl Ipv4HeaderBuf {
    /// Returns the kernel's struct.
    #[must_use]
    pub const fn to_raw(&self) -> ipt_ip {
        ipt_ip {
            src: self.source.value.octets(),
            dst: self.destination.value.octets(),
            smsk: self.source.mask.octets(),
            dmsk: self.destination.mask.octets(),
            iniface: self.in_interface.raw_name,
            outiface: self.out_interface.raw_name,
            iniface_mask: self.in_interface.raw_mask,
            outiface_mask: self.out_interface.raw_mask,
            proto: self.protocol,
            flags: self.flags.bits(),
            invflags: self.inversions.bits(),
        }
    }
}

impl From<Ipv4Header<'_>> for Ipv4HeaderBuf {
    fn from(header: Ipv4Header<'_>) -> Self {
        Self {
            source: header.source(),
            destination: header.destination(),
            in_interface: header.in_interface().into(),
            out_interface: header.out_interface().into(),
            protocol: header.protocol(),
            flags: header.flags(),
            inversions: header.inversions(),
        }
    }
}

/// The header of a new IPv6 rule. The default matches every packet.
///
/// Source: `struct ip6t_ip6` in `linux/netfilter_ipv6/ip6_tables.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6HeaderBuf {
    /// The source address. The kernel compares it, unmasked, with the masked address of a packet,
    /// so an address with bits outside its mask never matches.
    pub source: Masked<Ipv6Addr>,
    /// The destination address, with the same restriction.
    pub destination: Masked<Ipv6Addr>,
    /// The incoming interface.
    pub in_interface: InterfaceMatchBuf,
    /// The outgoing interface.
    pub out_interface: InterfaceMatchBuf,
    /// The number of the protocol; compared only with [`Ipv6Flags::PROTOCOL`].
    pub protocol: u16,
    /// The type of service; compared only with [`Ipv6Flags::TOS`].
    pub tos: u8,
    /// Flags. The target sets [`Ipv6Flags::GOTO`].
    pub flags: Ipv6Flags,
    /// The negated parts.
    pub inversions: Inversions,
}

impl Default for Ipv6HeaderBuf {
    fn default() -> Self {
        let any = Masked {
            value: Ipv6Addr::UNSPECIFIED,
            mask: Ipv6Addr::UNSPECIFIED,
        };
        Self {
            source: any,
            destination: any,
            in_interface: InterfaceMatchBuf::ANY,
            out_interface: InterfaceMatchBuf::ANY,
            protocol: 0,
            tos: 0,
            flags: Ipv6Flags::empty(),
            inversions: Inversions::empty(),
        }
    }
}

impl Ipv6HeaderBuf {
    /// Returns the kernel's struct.
    #[must_use]
    pub fn to_raw(&self) -> ip6t_ip6 {
        let mut raw = ip6t_ip6::new_zeroed();
        raw.src = self.source.value.octets();
        raw.dst = self.destination.value.octets();
        raw.smsk = self.source.mask.octets();
        raw.dmsk = self.destination.mask.octets();
        raw.iniface = self.in_interface.raw_name;
        raw.outiface = self.out_interface.raw_name;
        raw.iniface_mask = self.in_interface.raw_mask;
        raw.outiface_mask = self.out_interface.raw_mask;
        raw.proto = self.protocol;
        raw.tos = self.tos;
        raw.flags = self.flags.bits();
        raw.invflags = self.inversions.bits();
        raw
    }
}

impl From<Ipv6Header<'_>> for Ipv6HeaderBuf {
    fn from(header: Ipv6Header<'_>) -> Self {
        Self {
            source: header.source(),
            destination: header.destination(),
            in_interface: header.in_interface().into(),
            out_interface: header.out_interface().into(),
            protocol: header.protocol(),
            tos: header.tos(),
            flags: header.flags(),
            inversions: header.inversions(),
        }
    }
}

/// The header of a new rule.
#[derive(Clone, Copy, Debug)]
pub enum HeaderBuf {
    /// The header of a rule of an IPv4 table.
    Ipv4(Ipv4HeaderBuf),
    /// The header of a rule of an IPv6 table.
    Ipv6(Ipv6HeaderBuf),
    /// The header of a rule of an ARP table: the kernel's struct.
    Arp(arpt_arp),
}

impl HeaderBuf {
    /// Returns the family of the tables that can contain the rule.
    #[must_use]
    pub const fn family(&self) -> Family {
        match self {
            Self::Ipv4(_) => Family::Ipv4,
            Self::Ipv6(_) => Family::Ipv6,
            Self::Arp(_) => Family::Arp,
        }
    }

    /// Writes the kernel's struct at the start of an entry.
    pub(in crate::legacy) fn write(&self, entry: &mut [u8]) {
        let mut put = |raw: &[u8]| {
            if let Some(place) = entry.get_mut(..raw.len()) {
                place.copy_from_slice(raw);
            }
        };
        match self {
            Self::Ipv4(header) => put(header.to_raw().as_bytes()),
            Self::Ipv6(header) => put(header.to_raw().as_bytes()),
            Self::Arp(raw) => put(raw.as_bytes()),
        }
    }
}

impl From<Ipv4HeaderBuf> for HeaderBuf {
    fn from(header: Ipv4HeaderBuf) -> Self {
        Self::Ipv4(header)
    }
}

impl From<Ipv6HeaderBuf> for HeaderBuf {
    fn from(header: Ipv6HeaderBuf) -> Self {
        Self::Ipv6(header)
    }
}

impl From<Header<'_>> for HeaderBuf {
    fn from(header: Header<'_>) -> Self {
        match header {
            Header::Ipv4(header) => Self::Ipv4(header.into()),
            Header::Ipv6(header) => Self::Ipv6(header.into()),
            Header::Arp(header) => Self::Arp(*header.raw()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names and masks that `iptables-legacy -i` writes, observed with strace.
    #[test]
    fn interfaces_are_encoded_like_iptables() {
        for (pattern, name, mask) in [
            ("", &b""[..], &b""[..]),
            ("+", b"+", b""),
            ("eth0", b"eth0", b"\xff\xff\xff\xff\xff"),
            ("eth+", b"eth+", b"\xff\xff\xff"),
            ("abcdefghijklmno", b"abcdefghijklmno", &[0xff; 16]),
        ] {
            let interface = InterfaceMatchBuf::new(pattern).unwrap();
            assert_eq!(interface.raw_name[..name.len()], *name, "{pattern}");
            assert!(interface.raw_name[name.len()..].iter().all(|b| *b == 0));
            assert_eq!(interface.raw_mask[..mask.len()], *mask, "{pattern}");
            assert!(interface.raw_mask[mask.len()..].iter().all(|b| *b == 0));
            let view = InterfaceMatch {
                raw_name: &interface.raw_name,
                raw_mask: &interface.raw_mask,
            };
            assert!(view.is_plain());
            assert_eq!(InterfaceMatchBuf::from(view), interface);
        }
        assert_eq!(InterfaceMatchBuf::new("abcdefghijklmnop"), None);
        assert_eq!(InterfaceMatchBuf::new("a\0b"), None);
    }
}
