//! Devices bound to a chain or flowtable.
//!
//! ```text
//! NFTA_HOOK_DEVS, NFTA_FLOWTABLE_HOOK_DEVS   nested
//!   NFTA_DEVICE_NAME                         string: one device
//!   NFTA_DEVICE_PREFIX                       string: all devices with this name prefix (Linux 6.17)
//! ```

use std::fmt;

use bstr::BStr;
use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{NFTA_DEVICE_NAME, NFTA_DEVICE_PREFIX};

use super::declare::{Field, nested_field};
use super::name::{Bytes, Name};
use crate::escape::Escaped;
use crate::netlink::{Attributes, MessageError, MessageWriter};

/// An entry of a list of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device<'a> {
    /// The device with this name. Since Linux 6.16 it need not exist yet.
    Name(&'a BStr),
    /// All devices whose names have this prefix, including future ones (Linux 6.17).
    Prefix(&'a BStr),
    /// An attribute unknown to this version of the crate.
    Unknown {
        /// Type of the attribute.
        kind: u16,
        /// Its payload.
        payload: &'a [u8],
    },
}

/// Formats the entry as `nft` does: a prefix ends in `*`.
impl fmt::Display for Device<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{}", Escaped(name)),
            Self::Prefix(prefix) => write!(f, "{}*", Escaped(prefix)),
            Self::Unknown { kind, .. } => write!(f, "attribute {kind}"),
        }
    }
}

/// An encoded list of devices: borrowed from a message, or under construction.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Devices<'a> {
    bytes: Bytes<'a>,
    error: Option<Box<MessageError>>,
}

impl<'a> Devices<'a> {
    /// Creates a list of devices with these names.
    #[must_use]
    pub fn new<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> Devices<'static> {
        let mut devices = Devices::default();
        for name in names {
            devices.push(Device::Name(BStr::new(name.as_ref())));
        }
        devices
    }

    /// Appends an entry.
    pub fn push(&mut self, device: Device<'_>) -> &mut Self {
        let bytes = self.bytes.to_mut();
        bytes.resize(bytes.len().next_multiple_of(4), 0); // the last entry may lack its padding
        let mut writer = MessageWriter::bare(bytes);
        match device {
            Device::Name(name) => writer.device(NFTA_DEVICE_NAME, name),
            Device::Prefix(prefix) => writer.device(NFTA_DEVICE_PREFIX, prefix),
            Device::Unknown { kind, payload } => writer.bytes(kind, payload),
        };
        if let Err(error) = writer.finish_bare() {
            self.error.get_or_insert_with(|| Box::new(error));
        }
        self
    }

    /// Iterates over the entries, in order.
    #[must_use]
    pub fn iter(&self) -> DeviceIter<'_> {
        DeviceIter(Attributes::new(&self.bytes))
    }

    /// Iterates over the names of the entries that are not prefixes.
    pub fn names(&self) -> impl Iterator<Item = &BStr> {
        self.iter().filter_map(|device| match device {
            Device::Name(name) => Some(name),
            _ => None,
        })
    }
}

impl<'d> IntoIterator for &'d Devices<'_> {
    type Item = Device<'d>;
    type IntoIter = DeviceIter<'d>;
    fn into_iter(self) -> DeviceIter<'d> {
        self.iter()
    }
}

impl fmt::Debug for Devices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An iterator over the entries of a list of devices.
#[derive(Debug, Clone)]
pub struct DeviceIter<'a>(Attributes<'a>);

impl<'a> Iterator for DeviceIter<'a> {
    type Item = Device<'a>;

    fn next(&mut self) -> Option<Device<'a>> {
        let attribute = self.0.next()?.ok()?; // the constructors accept only valid attributes
        let payload = attribute.payload;
        Some(match attribute.kind {
            NFTA_DEVICE_NAME => Device::Name(Name::parse_payload(payload)?),
            NFTA_DEVICE_PREFIX => Device::Prefix(Name::parse_payload(payload)?),
            kind => Device::Unknown { kind, payload },
        })
    }
}

impl<'a> Field<'a> for Devices<'a> {
    type Static = Devices<'static>;
    nested_field!('a, |bytes| {
        let malformed = Attributes::new(bytes).any(|attribute| attribute.is_err());
        (!malformed).then_some(Devices {
            bytes: Bytes::borrowed(bytes),
            error: None,
        })
    });

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        if let Some(error) = &self.error {
            writer.fail(error);
        }
        writer.bytes(kind | NLA_F_NESTED, &self.bytes);
    }

    fn into_static(self) -> Devices<'static> {
        Devices {
            bytes: self.bytes.into_owned(),
            error: self.error,
        }
    }
}

#[cfg(feature = "serde")]
mod serial {
    use bstr::ByteSlice;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Device, Devices};
    use crate::nft::name::{Bytes, Name};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Entry<'a> {
        Name(Name<'a>),
        Prefix(Name<'a>),
        Unknown { kind: u16, payload: Bytes<'a> },
    }

    /// Serializes as a list of entries: `{"name": "eth0"}`.
    impl Serialize for Devices<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if let Some(error) = &self.error {
                return Err(S::Error::custom(error));
            }
            serializer.collect_seq(self.iter().map(|device| match device {
                Device::Name(name) => Entry::Name(name.into()),
                Device::Prefix(prefix) => Entry::Prefix(prefix.into()),
                Device::Unknown { kind, payload } => Entry::Unknown {
                    kind,
                    payload: Bytes::borrowed(payload),
                },
            }))
        }
    }

    impl<'de> Deserialize<'de> for Devices<'_> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let mut devices = Devices::default();
            for entry in Vec::<Entry<'_>>::deserialize(deserializer)? {
                devices.push(match &entry {
                    Entry::Name(name) => Device::Name(name.as_bstr()),
                    Entry::Prefix(prefix) => Device::Prefix(prefix.as_bstr()),
                    Entry::Unknown { kind, payload } => Device::Unknown {
                        kind: *kind,
                        payload,
                    },
                });
            }
            Ok(devices)
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::captured::hex;

    fn written(devices: &Devices<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes);
        devices.encode(&mut writer, 4);
        writer.finish_bare().unwrap();
        bytes
    }

    /// `NFTA_HOOK_DEVS` of nft 1.0.6:
    /// `add chain netdev t c { type filter hook ingress devices = { lo, v0 } priority 0; }`, which
    /// reverses their order; the prefix follows the header, because that nft has none.
    #[test]
    fn names_and_prefixes() {
        let sent = hex("14000480 07000100 76300000 07000100 6c6f0000");
        let devices = Devices::decode(&sent[4..]).unwrap();
        assert_eq!(devices.names().collect::<Vec<_>>(), ["v0", "lo"]);
        assert_eq!(written(&Devices::new(["v0", "lo"])), sent);
        assert_eq!(devices, Devices::new(["v0", "lo"]));

        let other = hex("18000480 08000200 76657400 0c000700 01020304 05060708");
        let devices = Devices::decode(&other[4..]).unwrap();
        let entries: Vec<_> = devices.iter().collect();
        assert_eq!(entries[0], Device::Prefix("vet".into()));
        assert_eq!(entries[0].to_string(), "vet*");
        assert!(matches!(entries[1], Device::Unknown { kind: 7, .. }));
        assert_eq!(devices.names().count(), 0);
        assert_eq!(written(&devices), other);
        assert_eq!(devices.clone().into_static(), devices);
        #[cfg(feature = "serde")]
        {
            let json = serde_json::to_string(&devices).unwrap();
            assert_eq!(
                json,
                r#"[{"prefix":"vet"},{"unknown":{"kind":7,"payload":"0102030405060708"}}]"#
            );
            assert_eq!(serde_json::from_str::<Devices<'_>>(&json).unwrap(), devices);
        }
    }

    #[test]
    fn malformed_lists_are_rejected() {
        let sent = hex("07000100 6c6f0000 07000100 76300000");
        for end in 0..sent.len() {
            // A list can end at the end of an attribute, or where only padding is missing.
            let fits = [0, 7, 8, 15].contains(&end);
            assert_eq!(Devices::decode(&sent[..end]).is_some(), fits, "{end}");
        }
        let long = Devices::new([vec![b'x'; 70_000]]);
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes);
        long.encode(&mut writer, 4);
        assert!(writer.finish_bare().is_err());
    }
}
