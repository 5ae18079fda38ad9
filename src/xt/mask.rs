//! Masks of addresses, which extensions store in 16 bytes for both families.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::value::{from_octets, prefix_length, prefix_mask};
use super::{Family, OptionError, Text, pack};

/// A mask of an address.
///
/// Without an explicit mask, iptables sets all 16 bytes, also for IPv4, which uses 4 of them; for an
/// explicit full mask, it only sets those 4. The kernel ignores the other 12, but iptables compares them
/// when it searches for a rule. This type preserves both forms, but compares only the addresses.
#[derive(Clone, Copy)]
pub struct Mask {
    address: IpAddr,
    /// Whether the bytes that the family does not use are set, too.
    filled: bool,
}

impl Mask {
    /// Creates an explicit mask.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self {
            address,
            filled: false,
        }
    }

    /// Creates the mask with all bits set, as without an explicit mask.
    #[must_use]
    pub const fn full(family: Family) -> Self {
        Self {
            address: match family {
                Family::Ipv4 => IpAddr::V4(Ipv4Addr::BROADCAST),
                Family::Ipv6 => IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)),
            },
            filled: true,
        }
    }

    /// Creates a mask with this prefix length; `None` if the family's addresses are shorter.
    #[must_use]
    pub fn prefix(family: Family, bits: u8) -> Option<Self> {
        prefix_mask(family, bits.into()).map(Self::new)
    }

    /// Returns the mask.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Returns the prefix length; `None` if it has gaps.
    #[must_use]
    pub fn prefix_length(self) -> Option<u32> {
        prefix_length(self.address)
    }

    /// Returns `true` if the mask covers all bits of the address.
    #[must_use]
    pub fn is_full(self) -> bool {
        match self.address {
            IpAddr::V4(mask) => mask.to_bits() == u32::MAX,
            IpAddr::V6(mask) => mask.to_bits() == u128::MAX,
        }
    }

    pub(super) fn read(family: Family, octets: &[u8; 16]) -> Self {
        Self {
            address: from_octets(family, octets),
            filled: *octets == [0xff; 16],
        }
    }

    pub(super) fn write(
        self,
        option: &'static str,
        family: Family,
    ) -> Result<[u8; 16], OptionError> {
        let octets = pack::address(option, family, self.address)?;
        Ok(if self.filled { [0xff; 16] } else { octets })
    }

    /// Appends `/` and the prefix length, or the mask if it has gaps; nothing if it is whole.
    pub(super) fn print(self, text: &mut Text) {
        match self.prefix_length() {
            _ if self.is_full() => {}
            Some(length) => drop(text.push("/").number(length)),
            None => drop(text.push("/").display(self.address)),
        }
    }
}

impl From<IpAddr> for Mask {
    fn from(address: IpAddr) -> Self {
        Self::new(address)
    }
}

/// Equal masks have the same output.
impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mask").field(&self.address).finish()
    }
}

impl PartialEq for Mask {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl Eq for Mask {}

impl Hash for Mask {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_kept_and_equal() {
        let mut four = [0; 16];
        four[..4].fill(0xff);
        let (given, default) = (
            Mask::read(Family::Ipv4, &four),
            Mask::read(Family::Ipv4, &[0xff; 16]),
        );
        assert_eq!(given, default);
        assert_eq!(format!("{given:?}"), format!("{default:?}"));
        assert_eq!(given, Mask::new([255; 4].into()));
        assert_eq!(default, Mask::full(Family::Ipv4));
        assert_eq!(given.write("mask", Family::Ipv4), Ok(four));
        assert_eq!(default.write("mask", Family::Ipv4), Ok([0xff; 16]));
        assert!(default.write("mask", Family::Ipv6).is_err());
        let six = Mask::full(Family::Ipv6);
        assert_eq!(six, Mask::prefix(Family::Ipv6, 128).unwrap());
        assert_eq!(six.write("mask", Family::Ipv6), Ok([0xff; 16]));
        assert_eq!(Mask::prefix(Family::Ipv4, 33), None);
        for (mask, printed) in [
            (default, ""),
            (Mask::prefix(Family::Ipv6, 32).unwrap(), "/32"),
            (Mask::new([255, 0, 255, 0].into()), "/255.0.255.0"),
        ] {
            let mut text = Text::new();
            mask.print(&mut text);
            assert_eq!(text.as_bytes(), printed.as_bytes());
        }
    }
}
