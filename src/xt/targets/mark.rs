//! `-j MARK`: sets the packet's mark.
//!
//! Data of revision 2 (`struct xt_mark_tginfo2`, `linux/netfilter/xt_mark.h`): the mark becomes
//! `(mark & !mask) ^ value`.

use chainwright_sys::xt_mark::xt_mark_tginfo2;

use crate::xt::value::{masked, number};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j MARK`: sets the packet's mark.
///
/// The packet's mark becomes `(mark & !mask) ^ value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Bits to flip.
    pub value: u32,
    /// Bits to clear first.
    pub mask: u32,
}

impl Mark {
    /// Sets these bits: `--or-mark`.
    #[must_use]
    pub const fn or(bits: u32) -> Self {
        Self {
            value: bits,
            mask: bits,
        }
    }

    /// Flips these bits: `--xor-mark`.
    #[must_use]
    pub const fn xor(bits: u32) -> Self {
        Self {
            value: bits,
            mask: 0,
        }
    }
}

impl Extension for Mark {
    const NAME: &'static str = "MARK";
    const REVISION: u8 = 2;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("set-xmark"),
        OptionSpec::one("set-mark"),
        OptionSpec::one("and-mark"),
        OptionSpec::one("or-mark"),
        OptionSpec::one("xor-mark"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&[
        "set-xmark",
        "set-mark",
        "and-mark",
        "or-mark",
        "xor-mark",
    ])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_mark_tginfo2 = read_struct(info)?;
        Some(Self {
            value: info.mark,
            mask: info.mask,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_mark_tginfo2 {
            mark: self.value,
            mask: self.mask,
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let how = Self::GROUPS[0].find(given)?;
        Ok(match how.option {
            "set-xmark" => {
                let (value, mask) = how.parse(masked)?;
                Self { value, mask }
            }
            "set-mark" => {
                let (value, mask) = how.parse(masked)?;
                Self {
                    value,
                    mask: mask | value,
                }
            }
            "and-mark" => Self {
                value: 0,
                mask: !how.parse(number::<u32>)?,
            },
            "or-mark" => Self::or(how.parse(number)?),
            _ => Self::xor(how.parse(number)?),
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "set-xmark").push(" ").hex(self.value);
        text.push("/").hex(self.mask);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        list_change(" MARK", self.value, self.mask, text);
    }
}

/// Appends the effect of `value` and `mask` on a mark in the form of `iptables -L`.
pub(super) fn list_change(name: &str, value: u32, mask: u32, text: &mut Text) {
    text.push(name);
    match (value, mask) {
        (0, mask) => text.push(" and ").hex(!mask),
        (value, mask) if value == mask => text.push(" or ").hex(value),
        (value, 0) => text.push(" xor ").hex(value),
        (value, u32::MAX) => text.push(" set ").hex(value),
        (value, mask) => text.push(" xset ").hex(value).push("/").hex(mask),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Target;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-j MARK --or-mark 0x4000` by iptables-nft 1.8.9.
        let info = [0, 0x40, 0, 0, 0, 0x40, 0, 0];
        assert_eq!(Mark::read(Family::Ipv6, 2, &info), Some(Mark::or(0x4000)));
        assert_eq!(Mark::or(0x4000).write(Family::Ipv6).unwrap(), info);
        assert_eq!(Mark::read(Family::Ipv6, 2, &info[..7]), None);
        assert_eq!(Mark::read(Family::Ipv6, 1, &info), None);
        assert_eq!(
            Target::Mark(Mark::xor(0x4000)).to_string(),
            "-j MARK --set-xmark 0x4000/0x0"
        );
    }
}
