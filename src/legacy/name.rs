//! The name of a legacy table.

use std::fmt;
use std::ops::Deref;

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::x_tables::XT_TABLE_MAXNAMELEN;

use super::Error;

/// The name of a legacy table, for instance `nat`: 1 to 31 bytes, none of them NUL.
///
/// Source: `XT_TABLE_MAXNAMELEN` in `linux/netfilter/x_tables.h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The kernel's form: padded with at least one NUL.
    padded: [u8; XT_TABLE_MAXNAMELEN],
}

impl TableName {
    /// The name of a table that has not been read.
    pub(super) const NONE: Self = Self {
        padded: [0; XT_TABLE_MAXNAMELEN],
    };

    /// Creates a name from these bytes.
    ///
    /// # Errors
    /// [`Error::TableName`] if it is empty, longer than 31 bytes or has a NUL in it.
    pub fn new(name: impl AsRef<[u8]>) -> Result<Self, Error> {
        let name = name.as_ref();
        Self::try_new(name).ok_or_else(|| Error::TableName {
            name: BString::from(name),
        })
    }

    /// Creates a name from these bytes, or returns `None` if they are not a valid name.
    pub(super) fn try_new(name: &[u8]) -> Option<Self> {
        if name.is_empty() || name.contains(&0) {
            return None;
        }
        let mut padded = [0; XT_TABLE_MAXNAMELEN];
        padded[..XT_TABLE_MAXNAMELEN - 1]
            .get_mut(..name.len())?
            .copy_from_slice(name);
        Some(Self { padded })
    }

    /// Returns the name in a field of a kernel struct: the bytes before the first NUL.
    pub(super) fn from_padded(field: &[u8; XT_TABLE_MAXNAMELEN]) -> Option<Self> {
        Self::try_new(until_nul(field))
    }

    /// Returns the name in the kernel's form.
    pub(super) const fn padded(&self) -> &[u8; XT_TABLE_MAXNAMELEN] {
        &self.padded
    }

    /// Returns the name's bytes.
    #[must_use]
    pub fn as_bstr(&self) -> &BStr {
        until_nul(&self.padded).as_bstr()
    }
}

/// Returns the bytes before the first NUL of a C string field, or all bytes if there is no NUL.
pub(super) fn until_nul(field: &[u8]) -> &[u8] {
    match field.find_byte(0) {
        Some(end) => &field[..end],
        None => field,
    }
}

/// Converts the first 16 bytes of a name to a number. Names with different numbers sort like their
/// numbers.
pub(crate) fn sort_key(name: &[u8]) -> u128 {
    let mut start = [0; 16];
    let length = name.len().min(start.len());
    start[..length].copy_from_slice(&name[..length]);
    u128::from_be_bytes(start)
}

impl Deref for TableName {
    type Target = BStr;

    fn deref(&self) -> &BStr {
        self.as_bstr()
    }
}

impl AsRef<[u8]> for TableName {
    fn as_ref(&self) -> &[u8] {
        self.as_bstr()
    }
}

impl PartialEq<str> for TableName {
    fn eq(&self, other: &str) -> bool {
        self.as_bstr() == other
    }
}

impl PartialEq<&str> for TableName {
    fn eq(&self, other: &&str) -> bool {
        self.as_bstr() == *other
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_bstr(), f)
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_bstr(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_to_31_bytes_and_no_nul() {
        assert_eq!(TableName::new("nat").unwrap(), "nat");
        assert_eq!(TableName::new([b'a'; 31]).unwrap().len(), 31);
        for wrong in [&b""[..], &[b'a'; 32], b"na\0t", b"\0"] {
            let error = TableName::new(wrong).unwrap_err();
            assert!(matches!(error, Error::TableName { .. }), "{error}");
        }
    }

    #[test]
    fn the_kernels_field_and_back() {
        let name = TableName::new("mangle").unwrap();
        assert_eq!(name.padded()[..8], *b"mangle\0\0");
        assert_eq!(TableName::from_padded(name.padded()), Some(name));
        assert_eq!(TableName::from_padded(&[0; 32]), None);
        // Not terminated: 32 bytes are one too many.
        assert_eq!(TableName::from_padded(&[b'a'; 32]), None);
    }
}
