//! `-m eui64`: compares the lower half of an IPv6 packet's source with its source link-layer address.
//!
//! Data of revision 0: a zero `int`, which the kernel ignores.

use crate::xt::{Context, Extension, Families, Family, GivenOption, OptionError, OptionSpec, Text};

/// Length of the data.
const LENGTH: usize = size_of::<i32>();

/// `-m eui64`: compares the lower half of an IPv6 packet's source with its source link-layer address.
///
/// The lower half must be derived from the Ethernet source (modified EUI-64).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Eui64;

impl Extension for Eui64 {
    const NAME: &'static str = "eui64";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        (revision == Self::REVISION && info.len() >= LENGTH).then_some(Self)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        Ok(vec![0; LENGTH])
    }

    fn parse(_: &Context<'_>, _: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        Ok(Self)
    }

    fn print(&self, _: &mut Text) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn has_no_options() {
        // `-m eui64` by ip6tables-legacy 1.8.9 (`strace -xx`).
        let info = [0; 8];
        assert_eq!(Eui64::read(Family::Ipv6, 0, &info), Some(Eui64));
        let value = Match::Eui64(Eui64);
        assert_eq!(value.encode(Family::Ipv6).unwrap().info, &info[..]);
        assert_eq!(value.to_string(), "-m eui64");
        assert_eq!(Eui64::read(Family::Ipv6, 0, &info[..3]), None);
        assert_eq!(Eui64::read(Family::Ipv6, 1, &info), None);
        assert!(Rule::parse(Family::Ipv6, "-m eui64 --eui64").is_err());
    }
}
