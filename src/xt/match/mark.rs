//! `mark`: compares the packet's mark.
//!
//! Data of revision 1 (`struct xt_mark_mtinfo1`, `linux/netfilter/xt_mark.h`): value, mask, whether
//! it is negated.

use std::fmt;

use chainwright_sys::xt_mark::xt_mark_mtinfo1;
use zerocopy::IntoBytes;

use crate::xt::{Extension, Family, read_struct};

/// The packet's mark and `mask` is `value`, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Value to compare with.
    pub value: u32,
    /// Bits to compare.
    pub mask: u32,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Mark {
    const NAME: &'static str = "mark";
    const REVISION: u8 = 1;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_mark_mtinfo1 = read_struct(info)?;
        Some(Self {
            value: info.mark,
            mask: info.mask,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Vec<u8> {
        let info = xt_mark_mtinfo1 {
            mark: self.value,
            mask: self.mask,
            invert: self.invert.into(),
            __pad: [0; 3],
        };
        info.as_bytes().to_vec()
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.invert { "! " } else { "" };
        write!(f, "-m mark {not}--mark {:#x}", self.value)?;
        if self.mask == u32::MAX {
            Ok(())
        } else {
            write!(f, "/{:#x}", self.mask)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_text() {
        let mark = Mark {
            value: 0x4000,
            mask: 0x4000,
            invert: true,
        };
        let info = mark.write(Family::Ipv4);
        assert_eq!(info.len(), 12);
        assert_eq!(Mark::read(Family::Ipv4, 1, &info), Some(mark));
        assert_eq!(Mark::read(Family::Ipv4, 1, &info[..11]), None);
        assert_eq!(Mark::read(Family::Ipv4, 0, &info), None);
        assert_eq!(mark.to_string(), "-m mark ! --mark 0x4000/0x4000");
        let whole = Mark {
            value: 7,
            mask: u32::MAX,
            invert: false,
        };
        assert_eq!(whole.to_string(), "-m mark --mark 0x7");
    }
}
