//! An interface name or prefix.

use std::fmt;

use bstr::{BStr, ByteSlice};

use crate::legacy::name::until_nul;

/// Size of an interface's name with its closing NUL: `IFNAMSIZ` of `linux/if.h`.
pub(super) const IFNAMSIZ: usize = 16;

/// A pattern for interface names: a name and the mask of bytes to compare.
///
/// The kernel compares byte by byte under the mask. iptables writes three kinds of masks: empty (any
/// interface), the name with its closing NUL (`eth0`), and the name alone (`eth+`: every name with
/// that prefix).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InterfaceMatch<'t> {
    /// The name, padded with NUL.
    pub raw_name: &'t [u8; IFNAMSIZ],
    /// 0xff for each byte to compare.
    pub raw_mask: &'t [u8; IFNAMSIZ],
}

impl<'t> InterfaceMatch<'t> {
    /// Returns `true` if the pattern matches every interface.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self.raw_mask == [0; IFNAMSIZ]
    }

    /// Returns the compared bytes of the name, without the closing NUL. Empty if every interface matches.
    #[must_use]
    pub fn name(&self) -> &'t BStr {
        let counted = self.raw_mask.iter().take_while(|mask| **mask != 0).count();
        until_nul(&self.raw_name[..counted]).as_bstr()
    }

    /// Returns `true` if [`name`](Self::name) is a prefix, so that it matches every interface whose name starts with
    /// it.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        self.raw_mask
            .get(self.name().len())
            .is_some_and(|mask| *mask == 0)
    }

    /// Returns `true` if iptables writes this form of name and mask, so that [`name`](Self::name) and
    /// [`is_prefix`](Self::is_prefix) describe it completely.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let length = self.name().len();
        let counted = if self.is_prefix() { length } else { length + 1 };
        counted <= IFNAMSIZ
            && self
                .raw_mask
                .iter()
                .enumerate()
                .all(|(at, mask)| *mask == if at < counted { 0xff } else { 0 })
    }
}

impl fmt::Display for InterfaceMatch<'_> {
    /// Writes it in iptables' form: `eth0`, `eth+`, or `+` for every interface. This is complete only
    /// if the match is [plain](InterfaceMatch::is_plain).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            self.name(),
            if self.is_prefix() { "+" } else { "" }
        )
    }
}

impl fmt::Debug for InterfaceMatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_plain() {
            return fmt::Debug::fmt(self.to_string().as_bytes().as_bstr(), f);
        }
        f.debug_struct("InterfaceMatch")
            .field("raw_name", &self.raw_name.as_bstr())
            .field("raw_mask", &self.raw_mask)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded<const N: usize>(start: &[u8; N]) -> [u8; 16] {
        let mut padded = [0; 16];
        padded[..N].copy_from_slice(start);
        padded
    }

    #[test]
    fn the_kinds_that_iptables_writes() {
        for (name, mask, text, prefix) in [
            (padded(b""), padded(b""), "+", true),
            (
                padded(b"eth0"),
                padded(b"\xff\xff\xff\xff\xff"),
                "eth0",
                false,
            ),
            (padded(b"eth"), padded(b"\xff\xff\xff"), "eth+", true),
            // iptables leaves the plus sign in the name, outside the mask.
            (padded(b"eth+"), padded(b"\xff\xff\xff"), "eth+", true),
            (
                padded(b"abcdefghijklmno"),
                [0xff; 16],
                "abcdefghijklmno",
                false,
            ),
            (
                padded(b"abcdefghijklmn"),
                padded(&[0xff; 14]),
                "abcdefghijklmn+",
                true,
            ),
        ] {
            let interface = InterfaceMatch {
                raw_name: &name,
                raw_mask: &mask,
            };
            assert_eq!(interface.to_string(), text);
            assert_eq!(interface.is_prefix(), prefix, "{text}");
            assert_eq!(interface.is_any(), text == "+", "{text}");
            assert!(interface.is_plain(), "{text}");
        }
    }

    #[test]
    fn other_masks_are_not_plain() {
        for (name, mask) in [
            (padded(b"eth0"), padded(b"\xff\0\xff")),
            (padded(b"eth0"), padded(b"\xff\xff\xff\xff\xff\xff\xff")),
            (padded(b"eth0"), padded(b"\x0f\xff\xff\xff\xff")),
            ([b'a'; 16], [0xff; 16]),
        ] {
            let interface = InterfaceMatch {
                raw_name: &name,
                raw_mask: &mask,
            };
            assert!(!interface.is_plain(), "{interface:?}");
        }
    }
}
