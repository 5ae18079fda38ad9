//! Names and byte strings that an object carries: borrowed where they can be, owned where they
//! must.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use bstr::{BStr, BString, ByteSlice};

/// Bytes that are borrowed or owned.
pub type Bytes<'a> = Cow<'a, [u8]>;

/// The name of a table, chain, set, … : bytes without a NUL, nearly always UTF-8, at most 255 of
/// them (`NFT_NAME_MAXLEN` less the NUL).
///
/// The kernel does not ask for UTF-8, so a name is a byte string; it compares with, and comes
/// from, `&str` and `String`, and derefs to [`BStr`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name<'a>(Cow<'a, BStr>);

impl Name<'_> {
    /// The same name with nothing borrowed.
    #[must_use]
    pub fn into_owned(self) -> Name<'static> {
        Name(Cow::Owned(self.0.into_owned()))
    }
}

impl Name<'static> {
    /// Becomes this name, in the memory that it has.
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

impl From<String> for Name<'static> {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name.into()))
    }
}

impl From<BString> for Name<'static> {
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

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
