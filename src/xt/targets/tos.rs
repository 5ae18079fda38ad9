//! `-j TOS`: changes bits of the IPv4 type of service or the IPv6 traffic class.
//!
//! Data of revision 1 (`struct xt_tos_target_info`, `linux/netfilter/xt_DSCP.h`): the octet becomes
//! `(octet & !mask) ^ value`. The layout of revision 0 is no longer in any header.

use chainwright_sys::xt_dscp_target::xt_tos_target_info;

use crate::xt::matches::tos::masked_octet;
use crate::xt::matches::tos::symbol;
use crate::xt::value::number;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j TOS`: changes bits of the IPv4 type of service or the IPv6 traffic class.
///
/// The octet becomes `(octet & !mask) ^ value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tos {
    /// Bits to flip.
    pub value: u8,
    /// Bits to clear first.
    pub mask: u8,
}

impl Extension for Tos {
    const NAME: &'static str = "TOS";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("set-tos"),
        OptionSpec::one("and-tos"),
        OptionSpec::one("or-tos"),
        OptionSpec::one("xor-tos"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&[
        "set-tos", "and-tos", "or-tos", "xor-tos",
    ])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_tos_target_info = read_struct(info)?;
        (revision == Self::REVISION).then_some(Self {
            value: info.tos_value,
            mask: info.tos_mask,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_tos_target_info {
            tos_value: self.value,
            tos_mask: self.mask,
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let how = Self::GROUPS[0].find(given)?;
        let (value, mask) = match how.option {
            "set-tos" => how.parse(masked_octet)?,
            "and-tos" => (0, !how.parse(number::<u8>)?),
            "or-tos" => {
                let bits = how.parse(number)?;
                (bits, bits)
            }
            _ => (how.parse(number)?, 0),
        };
        Ok(Self { value, mask })
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "set-tos")
            .display(format_args!(" {:#04x}/{:#04x}", self.value, self.mask));
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        let (value, mask) = (self.value, self.mask);
        match (symbol(value, mask), value, mask) {
            _ if style.numeric => {
                text.display(format_args!(" TOS set {value:#04x}/{mask:#04x}"));
            }
            (Some(name), ..) => _ = text.push("  TOS set").push(name),
            (_, 0, _) => _ = text.display(format_args!(" TOS and {:#04x}", !mask)),
            (_, value, mask) if value == mask => {
                text.display(format_args!(" TOS or {value:#04x}"));
            }
            (_, value, 0) => _ = text.display(format_args!(" TOS xor {value:#04x}")),
            _ => _ = text.display(format_args!(" TOS set {value:#04x}/{mask:#04x}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-j TOS --set-tos 5/6` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [5, 6, 0, 0, 0, 0, 0, 0];
        let tos = Tos { value: 5, mask: 6 };
        assert_eq!(Tos::read(Family::Ipv4, 1, &info), Some(tos));
        assert_eq!(
            Target::Tos(tos).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(Target::Tos(tos).to_string(), "-j TOS --set-tos 0x05/0x06");
        assert_eq!(Tos::read(Family::Ipv4, 1, &info[..1]), None);
        assert_eq!(Tos::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            (
                "",
                "--set-tos, --and-tos, --or-tos or --xor-tos is required",
            ),
            ("--and-tos 1 --or-tos 1", "cannot be used with"),
            (
                "--set-tos 256",
                "`256` is not a number from 0 to 255, nor one of",
            ),
            (
                "--or-tos Minimize-Delay",
                "`Minimize-Delay` is not a number",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-j TOS {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
