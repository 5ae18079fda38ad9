//! `-m tos`: compares bits of the IPv4 type of service or the IPv6 traffic class.
//!
//! Data of revision 1 (`struct xt_tos_match_info`, `linux/netfilter/xt_dscp.h`): mask, value and
//! negation. The layout of revision 0 is no longer in any header.

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_dscp::xt_tos_match_info;

use crate::xt::value::{Parsed, number};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// Names of values; they are compared or set with the mask [`SYMBOL_MASK`].
const SYMBOLS: &[(&str, u8)] = &[
    ("Minimize-Delay", 0x10),
    ("Maximize-Throughput", 0x08),
    ("Maximize-Reliability", 0x04),
    ("Minimize-Cost", 0x02),
    ("Normal-Service", 0x00),
];

/// The bits to which names apply.
const SYMBOL_MASK: u8 = 0x3f;

/// Returns the name of a value under a mask.
pub(in crate::xt) fn symbol(value: u8, mask: u8) -> Option<&'static str> {
    let mut known = SYMBOLS.iter().filter(|_| mask == SYMBOL_MASK);
    known.find(|(_, own)| *own == value).map(|(name, _)| *name)
}

/// Parses `value`, `value/mask` or a name; returns value and mask.
pub(in crate::xt) fn masked_octet(text: &BStr) -> Parsed<(u8, u8)> {
    let name = |(name, _): &&(&str, u8)| text.eq_ignore_ascii_case(name.as_bytes());
    if let Some((_, value)) = SYMBOLS.iter().find(name) {
        return Ok((*value, SYMBOL_MASK));
    }
    match text.split_once_str("/") {
        Some((value, mask)) => Ok((number(value.as_bstr())?, number(mask.as_bstr())?)),
        None => number(text).map(|value| (value, u8::MAX)).map_err(|wrong| {
            let names: Vec<_> = SYMBOLS.iter().map(|(name, _)| *name).collect();
            format!("{wrong}, nor one of {}", names.join(", "))
        }),
    }
}

/// `-m tos`: compares bits of the IPv4 type of service or the IPv6 traffic class.
///
/// Matches if the octet, masked with `mask`, equals `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tos {
    /// Value to compare with.
    pub value: u8,
    /// Bits to compare.
    pub mask: u8,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Tos {
    const NAME: &'static str = "tos";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("tos").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_tos_match_info = read_struct(info)?;
        (revision == Self::REVISION).then_some(Self {
            value: info.tos_value,
            mask: info.tos_mask,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_tos_match_info {
            tos_mask: self.mask,
            tos_value: self.value,
            invert: self.invert.into(),
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let tos = GivenOption::find_required(given, "tos")?;
        let (value, mask) = tos.parse(masked_octet)?;
        Ok(Self {
            value,
            mask,
            invert: tos.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "tos")
            .display(format_args!(" {:#04x}/{:#04x}", self.value, self.mask));
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        text.push(" tos match")
            .push(if self.invert { "!" } else { "" });
        match symbol(self.value, self.mask).filter(|_| !style.numeric) {
            Some(name) => text.word(name),
            None => text.display(format_args!("{:#04x}/{:#04x}", self.value, self.mask)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-m tos ! --tos 5/6` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [6, 5, 1, 0, 0, 0, 0, 0];
        let tos = Tos {
            value: 5,
            mask: 6,
            invert: true,
        };
        assert_eq!(Tos::read(Family::Ipv4, 1, &info), Some(tos));
        assert_eq!(
            Match::Tos(tos).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(Match::Tos(tos).to_string(), "-m tos ! --tos 0x05/0x06");
        assert_eq!(Tos::read(Family::Ipv4, 1, &info[..2]), None);
        assert_eq!(Tos::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("", "--tos is required"),
            (
                "--tos Min",
                "`Min` is not a number from 0 to 255, nor one of Minimize-Delay, ",
            ),
            ("--tos 1/0x100", "`0x100` is not a number from 0 to 255"),
            ("--tos 1/", "`` is not a number from 0 to 255"),
            ("--tos Minimize-Cost/1", "`Minimize-Cost` is not a number"),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m tos {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
