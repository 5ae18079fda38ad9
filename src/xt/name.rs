//! Names in extensions' data: of lists, tables, estimators and sets.

use std::fmt;
use std::hash::{Hash, Hasher};

use bstr::{BStr, ByteSlice};

use super::value::{Parsed, field, string, until_nul};

/// Names up to this length are stored inline.
const INLINE: usize = 38;

/// A name of 1 to `MAX` bytes without NUL.
#[derive(Clone)]
pub struct Name<const MAX: usize>(Bytes);

#[derive(Clone)]
enum Bytes {
    Inline(u8, [u8; INLINE]),
    Long(Box<[u8]>),
}

impl<const MAX: usize> Name<MAX> {
    /// Creates a name; `None` if it is empty, too long or contains a NUL.
    pub fn new(name: impl AsRef<[u8]>) -> Option<Self> {
        let name = name.as_ref();
        if name.is_empty() || name.len() > MAX || name.contains(&0) {
            return None;
        }
        Some(Self(match u8::try_from(name.len()) {
            Ok(length) if name.len() <= INLINE => Bytes::Inline(length, field(name)),
            _ => Bytes::Long(name.into()),
        }))
    }

    /// Returns the name's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline(length, bytes) => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Bytes::Long(bytes) => bytes,
        }
    }

    /// Reads the name from a NUL-terminated field of the kernel.
    pub(super) fn from_field(field: &[u8]) -> Option<Self> {
        until_nul(field).and_then(Self::new)
    }

    /// Parses an option's value.
    pub(super) fn parse(value: &BStr) -> Parsed<Self> {
        string(value, 1..=MAX).and_then(|name| Self::new(name).ok_or_else(String::new))
    }
}

impl<const MAX: usize> AsRef<[u8]> for Name<MAX> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl<const MAX: usize> PartialEq for Name<MAX> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const MAX: usize> Eq for Name<MAX> {}

impl<const MAX: usize> Hash for Name<MAX> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl<const MAX: usize> fmt::Debug for Name<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_bytes().as_bstr(), f)
    }
}

impl<const MAX: usize> fmt::Display for Name<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_bytes().as_bstr(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_ones() {
        for length in [1, 37, 38, 39, 199] {
            let name = Name::<199>::new(vec![b'x'; length]).unwrap();
            assert_eq!(name.as_bytes(), vec![b'x'; length]);
            assert_eq!(name, Name::new(vec![b'x'; length]).unwrap());
            assert_ne!(name, Name::new(vec![b'y'; length]).unwrap());
        }
        assert_eq!(size_of::<Name<199>>(), 40);
        for wrong in ["", "a\0b", "abcd"] {
            assert_eq!(Name::<3>::new(wrong), None, "{wrong:?}");
        }
        assert_eq!(Name::<3>::from_field(b"ab\0c"), Name::new("ab"));
        assert_eq!(Name::<3>::from_field(b"abc"), None);
        assert_eq!(
            Name::<3>::parse(b"abcd".as_bstr()).unwrap_err(),
            "it has 4 bytes; 1 to 3 are allowed"
        );
        let name = Name::<9>::new(*b"a\xff").unwrap();
        assert_eq!(
            (format!("{name}"), format!("{name:?}")),
            ("a\u{fffd}".into(), r#""a\xff""#.into())
        );
    }
}
