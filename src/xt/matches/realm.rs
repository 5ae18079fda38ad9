//! `-m realm`: compares the realm of the packet's route.
//!
//! Data of revision 0 (`struct xt_realm_info`, `linux/netfilter/xt_realm.h`): value, mask and
//! negation. `/etc/iproute2/rt_realms` contains names for realms.

use chainwright_sys::xt_realm::xt_realm_info;

use crate::xt::{
    Context, Extension, Families, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m realm`: compares the realm of the packet's route.
///
/// Matches if the realm of the packet's route, masked with `mask`, equals `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Realm {
    /// Value to compare with.
    pub value: u32,
    /// Bits to compare.
    pub mask: u32,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Realm {
    const NAME: &'static str = "realm";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv4;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("realm").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_realm_info = read_struct(info)?;
        (revision == Self::REVISION).then_some(Self {
            value: info.id,
            mask: info.mask,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_realm_info {
            id: self.value,
            mask: self.mask,
            invert: self.invert.into(),
            __pad: [0; 3],
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let realm = GivenOption::find_required(given, "realm")?;
        let (value, mask) = realm.parse(|value| context.names.realms().masked(value))?;
        Ok(Self {
            value,
            mask,
            invert: realm.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "realm");
        text.names().realms().print((self.value, self.mask), text);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.bare(|text| self.print(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-m realm ! --realm 5/6` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [5, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let realm = Realm {
            value: 5,
            mask: 6,
            invert: true,
        };
        assert_eq!(Realm::read(Family::Ipv4, 0, &info), Some(realm));
        assert_eq!(
            Match::Realm(realm).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(
            Match::Realm(realm).to_string(),
            "-m realm ! --realm 0x5/0x6"
        );
        assert_eq!(Realm::read(Family::Ipv4, 0, &info[..11]), None);
        assert_eq!(Realm::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("", "--realm is required"),
            (
                "--realm 5/",
                "`5/` is neither a number, nor a number and a mask",
            ),
            (
                "--realm no-such-realm",
                "nor a name in /etc/iproute2/rt_realms",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m realm {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
