//! `-j CONNMARK`: sets the connection's mark, or copies marks between it and the packet.
//!
//! Data (`linux/netfilter/xt_connmark.h`): revision 1 `struct xt_connmark_tginfo1`; revision 2, the
//! written one, `struct xt_connmark_tginfo2`, with a shift.

use chainwright_sys::xt_connmark::{
    D_SHIFT_LEFT, D_SHIFT_RIGHT, XT_CONNMARK_RESTORE, XT_CONNMARK_SAVE, XT_CONNMARK_SET,
    xt_connmark_tginfo1, xt_connmark_tginfo2,
};
use zerocopy::FromZeros;

use super::mark::list_change;
use crate::xt::value::{masked, number, number_within};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j CONNMARK`: sets the connection's mark, or copies marks between it and the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connmark {
    /// The operation.
    pub operation: ConnmarkOperation,
    /// The shift of the new mark.
    pub shift: Option<ConnmarkShift>,
}

/// Operation on the connection's mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnmarkOperation {
    /// The connection's mark becomes `(mark & !mask) ^ value`.
    Set {
        /// Bits to flip.
        value: u32,
        /// Bits to clear first.
        mask: u32,
    },
    /// The connection's mark becomes `(mark & !ctmask) ^ (packet's mark & nfmask)`.
    Save {
        /// Bits to copy from the packet's mark.
        nfmask: u32,
        /// Bits to clear first in the connection's mark.
        ctmask: u32,
    },
    /// The packet's mark becomes `(mark & !nfmask) ^ (connection's mark & ctmask)`.
    Restore {
        /// Bits to clear first in the packet's mark.
        nfmask: u32,
        /// Bits to copy from the connection's mark.
        ctmask: u32,
    },
}

/// Shift of a mark by 1 to 31 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnmarkShift {
    /// To the left.
    Left(u8),
    /// To the right.
    Right(u8),
}

impl Extension for Connmark {
    const NAME: &'static str = "CONNMARK";
    const REVISION: u8 = 2;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("set-xmark"),
        OptionSpec::one("set-mark"),
        OptionSpec::one("and-mark"),
        OptionSpec::one("or-mark"),
        OptionSpec::one("xor-mark"),
        OptionSpec::switch("save-mark"),
        OptionSpec::switch("restore-mark"),
        OptionSpec::one("left-shift-mark"),
        OptionSpec::one("right-shift-mark"),
        OptionSpec::one("ctmask"),
        OptionSpec::one("nfmask"),
        // Sets both masks.
        OptionSpec::one("mask").excludes(&["ctmask", "nfmask"]),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&[
        "set-xmark",
        "set-mark",
        "and-mark",
        "or-mark",
        "xor-mark",
        "save-mark",
        "restore-mark",
    ])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let raw = match revision {
            1 => {
                let info: xt_connmark_tginfo1 = read_struct(info)?;
                xt_connmark_tginfo2 {
                    ctmark: info.ctmark,
                    ctmask: info.ctmask,
                    nfmask: info.nfmask,
                    mode: info.mode,
                    ..xt_connmark_tginfo2::new_zeroed()
                }
            }
            2 => read_struct::<xt_connmark_tginfo2>(info)?,
            _ => return None,
        };
        let (nfmask, ctmask) = (raw.nfmask, raw.ctmask);
        Some(Self {
            operation: match raw.mode {
                XT_CONNMARK_SET => ConnmarkOperation::Set {
                    value: raw.ctmark,
                    mask: ctmask,
                },
                XT_CONNMARK_SAVE => ConnmarkOperation::Save { nfmask, ctmask },
                XT_CONNMARK_RESTORE => ConnmarkOperation::Restore { nfmask, ctmask },
                _ => return None,
            },
            shift: match (raw.shift_dir, raw.shift_bits) {
                (D_SHIFT_LEFT | D_SHIFT_RIGHT, 0) => None,
                (D_SHIFT_LEFT, bits @ 1..=31) => Some(ConnmarkShift::Left(bits)),
                (D_SHIFT_RIGHT, bits @ 1..=31) => Some(ConnmarkShift::Right(bits)),
                _ => return None,
            },
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_connmark_tginfo2::new_zeroed();
        (info.mode, info.ctmark, info.ctmask, info.nfmask) = match self.operation {
            // The packet's mark is not used, but iptables fills in its mask.
            ConnmarkOperation::Set { value, mask } => (XT_CONNMARK_SET, value, mask, u32::MAX),
            ConnmarkOperation::Save { nfmask, ctmask } => (XT_CONNMARK_SAVE, 0, ctmask, nfmask),
            ConnmarkOperation::Restore { nfmask, ctmask } => {
                (XT_CONNMARK_RESTORE, 0, ctmask, nfmask)
            }
        };
        (info.shift_dir, info.shift_bits) = match self.shift {
            None => (D_SHIFT_LEFT, 0),
            Some(ConnmarkShift::Left(bits)) => (D_SHIFT_LEFT, bits),
            Some(ConnmarkShift::Right(bits)) => (D_SHIFT_RIGHT, bits),
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let operation = Self::GROUPS[0].find(given)?;
        // As in iptables, the last option for a mask or a shift takes precedence.
        let (mut value, mut ctmask, mut nfmask) = (0, u32::MAX, u32::MAX);
        let mut shift = None;
        for one in given {
            match one.option {
                "set-xmark" => (value, ctmask) = one.parse(masked)?,
                "set-mark" => {
                    (value, ctmask) = one.parse(masked)?;
                    ctmask |= value;
                }
                "and-mark" => ctmask = !one.parse(number::<u32>)?,
                "or-mark" => {
                    value = one.parse(number)?;
                    ctmask = value;
                }
                "xor-mark" => (value, ctmask) = (one.parse(number)?, 0),
                "left-shift-mark" => shift = Some(ConnmarkShift::Left(one.parse(bits)?)),
                "right-shift-mark" => shift = Some(ConnmarkShift::Right(one.parse(bits)?)),
                "ctmask" => ctmask = one.parse(number)?,
                "nfmask" => nfmask = one.parse(number)?,
                "mask" => {
                    nfmask = one.parse(number)?;
                    ctmask = nfmask;
                }
                _ => {}
            }
        }
        use ConnmarkShift::{Left, Right};
        Ok(Self {
            operation: match operation.option {
                "save-mark" => ConnmarkOperation::Save { nfmask, ctmask },
                "restore-mark" => ConnmarkOperation::Restore { nfmask, ctmask },
                _ => ConnmarkOperation::Set {
                    value,
                    mask: ctmask,
                },
            },
            shift: shift.filter(|shift| !matches!(shift, Left(0) | Right(0))),
        })
    }

    fn print(&self, text: &mut Text) {
        let (option, nfmask, ctmask) = match self.operation {
            ConnmarkOperation::Set { value, mask } => {
                text.option(false, "set-xmark").push(" ").hex(value);
                text.push("/").hex(mask);
                ("", 0, 0)
            }
            ConnmarkOperation::Save { nfmask, ctmask } => ("save-mark", nfmask, ctmask),
            ConnmarkOperation::Restore { nfmask, ctmask } => ("restore-mark", nfmask, ctmask),
        };
        if !option.is_empty() {
            text.option(false, option);
            text.option(false, "nfmask").push(" ").hex(nfmask);
            text.option(false, "ctmask").push(" ").hex(ctmask);
        }
        let (option, bits) = match self.shift {
            None => return,
            Some(ConnmarkShift::Left(bits)) => ("left-shift-mark", bits),
            Some(ConnmarkShift::Right(bits)) => ("right-shift-mark", bits),
        };
        text.option(false, option).push(" ").number(bits);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        let mut masks = |name: &str, masks: [(&str, u32); 2]| {
            text.push(" CONNMARK ").push(name);
            match masks {
                [(_, u32::MAX), (_, u32::MAX)] => {}
                [(_, one), (_, other)] if one == other => drop(text.push(" mask ").hex(one)),
                [(first, one), (second, other)] => {
                    text.word(first).push(" ").hex(one);
                    text.word(second).push(" ~").hex(other);
                }
            }
        };
        match self.operation {
            ConnmarkOperation::Set { value, mask } => list_change(" CONNMARK", value, mask, text),
            ConnmarkOperation::Save { nfmask, ctmask } => {
                masks("save", [("nfmask", nfmask), ("ctmask", ctmask)]);
            }
            ConnmarkOperation::Restore { nfmask, ctmask } => {
                masks("restore", [("ctmask", ctmask), ("nfmask", nfmask)]);
            }
        }
        match self.shift {
            None => {}
            Some(ConnmarkShift::Left(bits)) => drop(text.push(" left-shift-mark ").number(bits)),
            Some(ConnmarkShift::Right(bits)) => drop(text.push(" right-shift-mark ").number(bits)),
        }
    }
}

fn bits(value: &bstr::BStr) -> crate::xt::value::Parsed<u8> {
    number_within(value, 0..=31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let value = Connmark {
            operation: ConnmarkOperation::Save {
                nfmask: 0xff,
                ctmask: 0xff00,
            },
            shift: Some(ConnmarkShift::Right(3)),
        };
        check(
            Family::Ipv4,
            "00 00 00 00 00 ff 00 00 ff 00 00 00 01 03 01 00",
            &value,
            " --save-mark --nfmask 0xff --ctmask 0xff00 --right-shift-mark 3",
        );
        // Revision 1 has no shift.
        let older = [0, 0, 0, 0, 0, 0xff, 0, 0, 0xff, 0, 0, 0, 1, 0, 0, 0];
        let unshifted = Connmark {
            shift: None,
            ..value
        };
        assert_eq!(Connmark::read(Family::Ipv4, 1, &older), Some(unshifted));
        assert_eq!(Connmark::read(Family::Ipv4, 1, &older[..15]), None);
        // An unknown direction, a shift of 32 bits, an unknown operation.
        let info = value.write(Family::Ipv4).unwrap();
        for (at, byte) in [(12, 2), (13, 32), (14, 3)] {
            let mut other = info.clone();
            other[at] = byte;
            assert_eq!(Connmark::read(Family::Ipv4, 2, &other), None);
        }
    }

    #[test]
    fn reports_errors() {
        let all = "--set-xmark, --set-mark, --and-mark, --or-mark, --xor-mark, --save-mark or \
                   --restore-mark is required";
        for (given, reason) in [
            (&[][..], all),
            (&[("ctmask", "1")], all),
            (
                &[("set-mark", "1"), ("save-mark", "")],
                "--save-mark cannot be used with --set-mark",
            ),
            (
                &[("save-mark", ""), ("mask", "1"), ("nfmask", "1")],
                "--mask cannot be used with --nfmask",
            ),
            (
                &[("set-mark", "1"), ("left-shift-mark", "32")],
                "--left-shift-mark: `32` is not a number from 0 to 31",
            ),
        ] {
            assert_eq!(refused::<Connmark>(Family::Ipv4, None, given), reason);
        }
    }
}
