//! Attributes unknown to this version of the crate, preserved so that objects can be written back
//! completely.

use std::fmt;

use crate::netlink::{Attribute, Attributes, MessageWriter};

/// Attributes of a newer kernel, as received, including header and padding. Usually none, which
/// allocates nothing.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct UnknownAttributes(Option<Box<[u8]>>);

impl UnknownAttributes {
    /// No attributes.
    pub const NONE: Self = Self(None);

    /// Returns `true` if there are no attributes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Iterates over the attributes, in the received order.
    #[must_use]
    pub fn iter(&self) -> Attributes<'_> {
        Attributes::new(self.0.as_deref().unwrap_or_default())
    }

    /// Returns the attributes whose types are not in `known`.
    pub(super) fn of(attributes: Attributes<'_>, known: &[(u16, &'static str)]) -> Self {
        let mut unknown = Self::NONE;
        for attribute in attributes.map_while(Result::ok) {
            if !known.iter().any(|&(kind, _)| kind == attribute.kind) {
                unknown.keep(&attribute);
            }
        }
        unknown
    }

    /// Appends an attribute.
    #[cold]
    pub(super) fn keep(&mut self, attribute: &Attribute<'_>) {
        let mut bytes = self.0.take().unwrap_or_default().into_vec();
        bytes.extend_from_slice(attribute.raw);
        bytes.resize(bytes.len().next_multiple_of(4), 0); // the last attribute may lack its padding
        self.0 = Some(bytes.into());
    }

    /// Writes the attributes unchanged.
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
