//! Attributes that this version of the crate does not know: kept, so that what is read can be
//! written back whole.

use std::fmt;

use crate::netlink::{Attribute, Attributes, MessageWriter};

/// Attributes of a newer kernel, as they came, header and padding included; nearly always none, and
/// then nothing is allocated for them.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct UnknownAttributes(Option<Box<[u8]>>);

impl UnknownAttributes {
    /// None.
    pub const NONE: Self = Self(None);

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The attributes, in the order in which they came.
    #[must_use]
    pub fn iter(&self) -> Attributes<'_> {
        Attributes::new(self.0.as_deref().unwrap_or_default())
    }

    /// Those of `attributes` whose types are not among `known`.
    pub(super) fn of(attributes: Attributes<'_>, known: &[(u16, &'static str)]) -> Self {
        let mut unknown = Self::NONE;
        for attribute in attributes.map_while(Result::ok) {
            if !known.iter().any(|&(kind, _)| kind == attribute.kind) {
                unknown.keep(&attribute);
            }
        }
        unknown
    }

    /// Keeps one more.
    #[cold]
    pub(super) fn keep(&mut self, attribute: &Attribute<'_>) {
        let mut bytes = self.0.take().unwrap_or_default().into_vec();
        bytes.extend_from_slice(attribute.raw);
        bytes.resize(bytes.len().next_multiple_of(4), 0); // the last one may lack its padding
        self.0 = Some(bytes.into());
    }

    /// Writes them as they came.
    #[inline]
    pub(super) fn write(&self, writer: &mut MessageWriter<'_>) {
        if let Some(bytes) = &self.0 {
            writer.encoded(bytes);
        }
    }
}

impl fmt::Debug for UnknownAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().flatten()).finish()
    }
}

#[cfg(feature = "serde")]
mod serial {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Attributes, UnknownAttributes};
    use crate::nft::Bytes;

    impl Serialize for UnknownAttributes {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            Bytes::borrowed(self.0.as_deref().unwrap_or_default()).serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for UnknownAttributes {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let mut unknown = Self::NONE;
            for attribute in Attributes::new(&Bytes::deserialize(deserializer)?) {
                unknown.keep(&attribute.map_err(D::Error::custom)?);
            }
            Ok(unknown)
        }
    }
}
