//! `-m mh`: compares the type of a mobility header.
//!
//! Data of revision 0 (`struct ip6t_mh`, `linux/netfilter_ipv6/ip6t_mh.h`): range of types and
//! negation.

use bstr::BStr;
use chainwright_sys::ip6t_mh::{IP6T_MH_INV_MASK, IP6T_MH_INV_TYPE, ip6t_mh};

use crate::xt::value::{Parsed, number, range_of};
use crate::xt::{
    Context, Difference, Extension, Families, Family, GivenOption, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `IPPROTO_MH`
const MOBILITY: u8 = 135;

/// Names of types, from 0: a long and a short one each.
const TYPES: [[&str; 2]; 8] = [
    ["binding-refresh-request", "brr"],
    ["home-test-init", "hoti"],
    ["careof-test-init", "coti"],
    ["home-test", "hot"],
    ["careof-test", "cot"],
    ["binding-update", "bu"],
    ["binding-acknowledgement", "ba"],
    ["binding-error", "be"],
];

/// `-m mh`: compares the type of a mobility header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mh {
    /// First type.
    pub first: u8,
    /// Last type.
    pub last: u8,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Mh {
    const NAME: &'static str = "mh";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("mh-type").inverts()];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-p mobility-header -m mh ! --mh-type 0:255",
        "-p mobility-header -m mh",
        "iptables-save omits the option, so the rule matches every packet after a restore.",
    )
    .ipv6()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ip6t_mh = read_struct(info)?;
        (revision == Self::REVISION && info.invflags & !IP6T_MH_INV_MASK == 0).then_some(Self {
            first: info.types[0],
            last: info.types[1],
            invert: info.invflags & IP6T_MH_INV_TYPE != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = ip6t_mh {
            types: [self.first, self.last],
            invflags: if self.invert { IP6T_MH_INV_TYPE } else { 0 },
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        if context.protocol_among(&[MOBILITY]).is_none() {
            return Err(OptionError::of_all(
                "only mobility headers have a type: the rule needs -p mh",
            ));
        }
        let mut mh = Self {
            first: 0,
            last: u8::MAX,
            invert: false,
        };
        if let [types] = given {
            let range = types.parse(|value| range_of(value, 0..=u8::MAX, kind))?;
            (mh.first, mh.last) = range.into_inner();
            mh.invert = types.invert;
        }
        Ok(mh)
    }

    fn print(&self, text: &mut Text) {
        if (self.first, self.last, self.invert) == (0, u8::MAX, false) {
            return;
        }
        text.option(self.invert, "mh-type")
            .push(" ")
            .range(self.first, self.last);
    }
}

/// Parses a number, a name in upper or lower case, or a prefix of a name: the first name with
/// that prefix, unless another one matches in full.
fn kind(value: &BStr) -> Parsed<u8> {
    let lower = value.to_ascii_lowercase();
    let named = |found: &dyn Fn(&str) -> bool| {
        let mut types = (0..).zip(TYPES);
        types.find_map(|(kind, names)| names.iter().any(|name| found(name)).then_some(kind))
    };
    named(&|name| name.as_bytes() == lower)
        .or_else(|| named(&|name| !lower.is_empty() && name.as_bytes().starts_with(&lower)))
        .map_or_else(
            || {
                number(value).map_err(|wrong| {
                    let names = TYPES.map(|[long, _]| long).join(", ");
                    format!("{wrong}, nor one of {names}")
                })
            },
            Ok,
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-p mh -m mh ! --mh-type bu` by ip6tables-legacy 1.8.9 (`strace -xx`).
        let info = [5, 5, 1, 0, 0, 0, 0, 0];
        let mh = Mh {
            first: 5,
            last: 5,
            invert: true,
        };
        assert_eq!(Mh::read(Family::Ipv6, 0, &info), Some(mh));
        assert_eq!(Match::Mh(mh).encode(Family::Ipv6).unwrap().info, &info[..]);
        assert_eq!(Match::Mh(mh).to_string(), "-m mh ! --mh-type 5");
        assert_eq!(Mh::read(Family::Ipv6, 0, &info[..2]), None);
        assert_eq!(Mh::read(Family::Ipv6, 0, &[5, 5, 2]), None);
        assert_eq!(Mh::read(Family::Ipv6, 1, &info), None);
    }

    #[test]
    fn the_range_of_all() {
        let parse = |options: &str| {
            let rule = Rule::parse(Family::Ipv6, format!("-p mh -m mh {options}")).unwrap();
            rule.matches[0].to_string()
        };
        assert_eq!(parse("--mh-type :"), "-m mh");
        // iptables-save 1.8.9 prints no `--mh-type` here, although no value is outside that
        // range.
        let none = "-m mh ! --mh-type 0:255";
        assert_eq!(parse("! --mh-type :"), none);
    }

    #[test]
    fn names_and_refusals() {
        for (text, wanted) in [
            ("b", 0),
            ("home", 1),
            ("home-test", 3),
            ("BE", 7),
            ("0x10", 16),
        ] {
            assert_eq!(kind(text.into()), Ok(wanted));
        }
        for (rule, message) in [
            ("-m mh --mh-type 1", "the rule needs -p mh"),
            (
                "-p mh -m mh --mh-type x",
                "nor one of binding-refresh-request, ",
            ),
            ("-p mh -m mh --mh-type \"\"", "`` is not a number"),
            ("-p mh -m mh --mh-type 9:3", "ends before it starts"),
        ] {
            let fault = Rule::parse(Family::Ipv6, rule).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
