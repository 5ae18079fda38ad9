//! Names and byte strings in objects, borrowed or owned.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use bstr::{BStr, BString, ByteSlice};

use crate::escape::Escaped;

/// Bytes that are borrowed or owned: register contents, user data, and other opaque data.
///
/// With the feature `serde` they are serialized as a string of hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes<'a>(Cow<'a, [u8]>);

impl<'a> Bytes<'a> {
    /// Borrows these bytes.
    #[must_use]
    pub const fn borrowed(bytes: &'a [u8]) -> Self {
        Self(Cow::Borrowed(bytes))
    }

    /// Converts it into a value that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Bytes<'static> {
        Bytes(Cow::Owned(self.0.into_owned()))
    }

    /// Returns the bytes for modification; borrowed bytes are copied first.
    pub fn to_mut(&mut self) -> &mut Vec<u8> {
        self.0.to_mut()
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::borrowed(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Bytes<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::borrowed(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Bytes<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::borrowed(bytes)
    }
}

impl From<Vec<u8>> for Bytes<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Cow::Owned(bytes))
    }
}

impl<'a> From<Cow<'a, [u8]>> for Bytes<'a> {
    fn from(bytes: Cow<'a, [u8]>) -> Self {
        Self(bytes)
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<&T> for Bytes<'_> {
    fn eq(&self, other: &&T) -> bool {
        *self.0 == *other.as_ref()
    }
}

/// Formats the bytes as hexadecimal digits.
impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// The name of a table, chain, set, …: bytes without a NUL, nearly always UTF-8, at most 255
/// (`NFT_NAME_MAXLEN` less the NUL).
///
/// The kernel does not require UTF-8, so a name is a byte string; it can be compared with `&str`,
/// converted from `&str` and `String`, and derefs to [`BStr`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name<'a>(Cow<'a, BStr>);

impl Name<'_> {
    /// Converts it into a name that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Name<'static> {
        Name(Cow::Owned(self.0.into_owned()))
    }
}

impl Name<'static> {
    /// Replaces the name, reusing its memory.
    pub fn set(&mut self, name: &[u8]) {
        let owned = self.0.to_mut();
        owned.clear();
        owned.extend_from_slice(name);
    }
}

impl Deref for Name<'_> {
    type Target = BStr;
    fn deref(&self) -> &BStr {
        &self.0
    }
}

impl<'a> From<&'a BStr> for Name<'a> {
    fn from(name: &'a BStr) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl<'a> From<&'a str> for Name<'a> {
    fn from(name: &'a str) -> Self {
        Self(Cow::Borrowed(name.into()))
    }
}

impl<'a> From<&'a String> for Name<'a> {
    fn from(name: &'a String) -> Self {
        name.as_str().into()
    }
}

impl<'a> From<&'a [u8]> for Name<'a> {
    fn from(name: &'a [u8]) -> Self {
        Self(Cow::Borrowed(name.as_bstr()))
    }
}

impl<'a> From<&'a Name<'_>> for Name<'a> {
    fn from(name: &'a Name<'_>) -> Self {
        Self(Cow::Borrowed(&name.0))
    }
}

impl From<String> for Name<'_> {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name.into()))
    }
}

impl From<BString> for Name<'_> {
    fn from(name: BString) -> Self {
        Self(Cow::Owned(name))
    }
}

impl PartialEq<str> for Name<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Name<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

/// Displays the name, with control characters escaped, so that it stays on one line.
impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Escaped(&self.0), f)
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(feature = "serde")]
mod serial {
    use bstr::ByteVec;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{BString, ByteSlice, Bytes, Name};
    use crate::netlink::{MAX_CONTEXT_LENGTH, MessageErrorKind};

    /// Serializes as a string; bytes that are not UTF-8, and backslashes, are escaped (`\xFF`, `\\`). A
    /// string that the kernel would not accept as a name is an error.
    impl Serialize for Name<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if let Some(error_kind) = MessageErrorKind::of_name(self, MAX_CONTEXT_LENGTH) {
                return Err(serde::ser::Error::custom(error_kind));
            }
            match self.to_str() {
                Ok(name) if !name.contains('\\') => serializer.serialize_str(name),
                _ => serializer.collect_str(&self.escape_bytes()),
            }
        }
    }

    impl<'de> Deserialize<'de> for Name<'_> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            let name: Name<'_> = match text.contains('\\') {
                true => BString::from(Vec::unescape_bytes(&text)).into(),
                false => text.into(),
            };
            match MessageErrorKind::of_name(&name, MAX_CONTEXT_LENGTH) {
                None => Ok(name),
                Some(error_kind) => Err(D::Error::custom(error_kind)),
            }
        }
    }

    impl Serialize for Bytes<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for Bytes<'_> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            let digit = |at: usize| {
                text.as_bytes()
                    .get(at)
                    .and_then(|c| (*c as char).to_digit(16))
            };
            let bytes: Option<Vec<u8>> = (0..text.len())
                .step_by(2)
                .map(|at| Some((digit(at)? << 4 | digit(at + 1)?) as u8))
                .collect();
            let bytes = bytes.ok_or_else(|| {
                D::Error::custom(format_args!("`{text}` is not pairs of hexadecimal digits"))
            })?;
            Ok(bytes.into())
        }
    }
}

/// The error of parsing a value, such as a [`Family`](super::Family), from a text that is not a name of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    of: &'static str,
    name: String,
}

impl UnknownName {
    pub(super) fn new(of: &'static str, name: &str) -> Self {
        Self {
            of,
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Escaped(self.name.as_str().into());
        write!(f, "`{name}` is not the name of a value of {}", self.of)
    }
}

impl std::error::Error for UnknownName {}
