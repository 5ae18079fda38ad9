//! Stateful objects: named counters, quotas, limits and others that rules and map elements refer to;
//! the kernel calls them *objects*. Each type of data has its own file.
//!
//! On the wire, an object's data is nested in `NFTA_OBJ_DATA`; its attributes depend on
//! `NFTA_OBJ_TYPE`. If the expression with the same name has the same attributes ([`Counter`],
//! [`Quota`], [`Limit`], [`Connlimit`], [`Synproxy`]), its type is used for both. Source:
//! `linux/netfilter/nf_tables.h`.

mod connlimit;
mod counter;
mod ct_expect;
mod ct_helper;
mod ct_timeout;
mod limit;
mod quota;
mod secmark;
mod synproxy;
mod tunnel;

use std::fmt;

use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELOBJ, NFT_MSG_DESTROYOBJ, NFT_MSG_GETOBJ, NFT_MSG_NEWOBJ, NFTA_OBJ_DATA,
    NFTA_OBJ_HANDLE, NFTA_OBJ_NAME, NFTA_OBJ_PAD, NFTA_OBJ_TABLE, NFTA_OBJ_TYPE, NFTA_OBJ_USE,
    NFTA_OBJ_USERDATA,
};

pub use ct_expect::{CtExpect, HostMilliseconds};
pub use ct_helper::CtHelper;
pub use ct_timeout::{CtTimeout, Timeouts};
pub use secmark::Secmark;
pub use tunnel::{
    TunnelErspan, TunnelFlags, TunnelGeneve, TunnelIp, TunnelIp6, TunnelObject, TunnelOption,
    TunnelOptions, TunnelVxlan,
};

use super::Family;
use super::declare::{Field, Typed, nested_field, object};
use super::expr::{Connlimit, Counter, Limit, ObjectType, Quota, Synproxy};
use super::name::{Bytes, Name};
use super::object::{listed, written};
use super::userdata::commented;
use crate::escape::Escaped;
use crate::netlink::{Attributes, MessageWriter};

/// The types of objects, one line per type.
macro_rules! registry {
    ($( $TYPE:ident => $Variant:ident($($Type:tt)+), )*) => {
        /// The data of a stateful object.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum ObjectData<'a> {
            $(
                #[doc = concat!("Of [`ObjectType::", stringify!($TYPE), "`].")]
                $Variant($($Type)+),
            )*
            /// Data of an unknown type or form: the attributes as received.
            Opaque(Bytes<'a>),
        }

        impl<'a> ObjectData<'a> {
            /// Parses the attributes of an object of this type.
            #[must_use]
            pub fn read(object_type: ObjectType, attributes: &'a [u8]) -> Self {
                let known = match object_type {
                    $(ObjectType::$TYPE => {
                        <$($Type)+>::from_attributes(attributes).ok().map(ObjectData::$Variant)
                    })*
                    _ => None,
                };
                known.unwrap_or(ObjectData::Opaque(Bytes::borrowed(attributes)))
            }

            /// Returns the type of object with this data; `None` if the data does not determine it.
            #[must_use]
            pub const fn object_type(&self) -> Option<ObjectType> {
                match self {
                    $(Self::$Variant(_) => Some(ObjectType::$TYPE),)*
                    Self::Opaque(_) => None,
                }
            }

            /// Returns the names of the attributes in the data of an object of this type, if known.
            pub(super) fn attribute_names(
                object_type: ObjectType,
            ) -> &'static [(u16, &'static str)] {
                match object_type {
                    $(ObjectType::$TYPE => <$($Type)+>::ATTRIBUTES,)*
                    _ => &[],
                }
            }

            /// Returns the notes of the attributes in the data of an object of this type.
            pub(super) const fn known(
                object_type: ObjectType,
            ) -> &'static [super::declare::AttributeNotes] {
                match object_type {
                    $(ObjectType::$TYPE => <$($Type)+>::ATTRIBUTE_NOTES,)*
                    _ => &[],
                }
            }
        }

        impl<'a> Field<'a> for ObjectData<'a> {
            type Static = ObjectData<'static>;
            // The object's type determines the variant: see `Typed`.
            nested_field!('a, |bytes| {
                let malformed = Attributes::new(bytes).any(|attribute| attribute.is_err());
                (!malformed).then_some(ObjectData::Opaque(Bytes::borrowed(bytes)))
            });

            fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
                match self {
                    $(Self::$Variant(data) => data.encode(writer, kind),)*
                    // Unchanged: the padding of the last attribute may be missing.
                    Self::Opaque(attributes) => {
                        writer.bytes(kind | NLA_F_NESTED, attributes);
                    }
                }
            }

            fn into_static(self) -> ObjectData<'static> {
                match self {
                    $(Self::$Variant(data) => ObjectData::$Variant(data.into_static()),)*
                    Self::Opaque(attributes) => ObjectData::Opaque(attributes.into_owned()),
                }
            }

            fn normalize(&mut self) {
                self.normalize();
            }
        }

        #[cfg(any(test, feature = "testing"))]
        impl<'a> ObjectData<'a> {
            /// Returns strategies for the data of each type; the last one for data without a typed form.
            pub(in crate::nft) fn strategies(
                depth: u32,
            ) -> Vec<proptest::strategy::BoxedStrategy<ObjectData<'static>>> {
                use crate::nft::properties::{Arbitrary, arbitrary_attributes};
                use proptest::strategy::Strategy;
                let opaque = arbitrary_attributes(&[]).prop_filter_map("attributes", |bytes| {
                    ObjectData::decode(&bytes).map(Field::into_static)
                });
                vec![
                    $(<$($Type)+>::arbitrary(depth).prop_map(ObjectData::$Variant).boxed(),)*
                    opaque.boxed(),
                ]
            }
        }

        $(
            impl<'a> From<$($Type)+> for ObjectData<'a> {
                fn from(data: $($Type)+) -> Self {
                    Self::$Variant(data)
                }
            }
        )*

        /// Formats the data as `nft --debug=netlink` does (libnftnl 1.2.4), including the brackets.
        #[allow(unreachable_patterns, reason = "two are printed in another way than expressions")]
        impl fmt::Display for ObjectData<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Limit(limit) => limit::write_line(limit, f),
                    Self::Quota(quota) => quota::write_line(quota, f),
                    $(Self::$Variant(data) => data.fmt(f),)*
                    Self::Opaque(attributes) => write!(f, "[ unknown {attributes} ]"),
                }
            }
        }

    };
}

registry! {
    COUNTER => Counter(Counter),
    QUOTA => Quota(Quota),
    CT_HELPER => CtHelper(CtHelper<'a>),
    LIMIT => Limit(Limit),
    CONNLIMIT => Connlimit(Connlimit),
    TUNNEL => Tunnel(TunnelObject<'a>),
    CT_TIMEOUT => CtTimeout(CtTimeout<'a>),
    SECMARK => Secmark(Secmark<'a>),
    CT_EXPECT => CtExpect(CtExpect),
    SYNPROXY => Synproxy(Synproxy),
}

object! {
    /// A stateful object to be sent to the kernel: `enum nft_object_attributes`. Names are separate
    /// for each type: a counter and a quota may have the same name.
    pub struct StatefulObject viewed as StatefulObjectRef, "a stateful object",
    written as [table, name, handle, object_type, references, userdata, data] {
        /// Name of the object's table.
        NFTA_OBJ_TABLE => table: Name<'a> [required, table],
        /// Name of the object.
        NFTA_OBJ_NAME => name: Name<'a> [required, name],
        /// Type of the object.
        NFTA_OBJ_TYPE => object_type: ObjectType [required, identity],
        /// Handle, assigned by the kernel.
        NFTA_OBJ_HANDLE => handle: u64 [required, handle],
        /// Number of rules and elements that refer to it, set by the kernel.
        NFTA_OBJ_USE => references: u32 [kernel_set],
        /// The data of the object.
        NFTA_OBJ_DATA => data: ObjectData<'a> [typed],
        /// Data stored by user space, opaque to the kernel: see [`userdata`](crate::nft::userdata).
        NFTA_OBJ_USERDATA => userdata: Bytes<'a> [userdata],
        _ => NFTA_OBJ_PAD,
    }
}

commented!(StatefulObject as StatefulObjectRef, OBJECT_COMMENT);

impl<'a> Typed<'a, StatefulObjectRef<'a>> for ObjectData<'a> {
    fn of(view: &StatefulObjectRef<'a>, parsed: &'a [u8]) -> Self {
        Self::read(view.object_type, parsed)
    }
}

impl<'a> StatefulObject<'a> {
    /// Creates an object with this data. For [`ObjectData::Opaque`] the caller must set the type.
    pub fn new(
        family: Family,
        table: impl Into<Name<'a>>,
        name: impl Into<Name<'a>>,
        data: impl Into<ObjectData<'a>>,
    ) -> Self {
        let data = data.into();
        Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            object_type: data.object_type(),
            data: Some(data),
            ..Self::empty()
        }
    }

    /// Refers to the object of this type and name, to delete it.
    #[doc(hidden)]
    pub fn named(
        family: Family,
        table: impl Into<Name<'a>>,
        object_type: ObjectType,
        name: impl Into<Name<'a>>,
    ) -> Self {
        Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            object_type: Some(object_type),
            ..Self::empty()
        }
    }
}

written!(
    StatefulObject,
    "object",
    [
        NFT_MSG_NEWOBJ,
        NFT_MSG_GETOBJ,
        NFT_MSG_DELOBJ,
        NFT_MSG_DESTROYOBJ
    ],
    // nft does the same.
    identity: |_, writer| _ = writer.nested(NFTA_OBJ_DATA, |_| {}),
);

listed!(
    StatefulObject as StatefulObjectRef by ObjectFilter,
    "list objects",
    BY_KERNEL = true
);

/// Formats the object as `nft --debug=netlink` does when adding one (libnftnl 1.2.4):
/// `table t name c use 0 [ counter pkts 0 bytes 0 ]`.
impl fmt::Display for StatefulObjectRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let references = self.references.unwrap_or_default();
        let (table, name) = (Escaped(self.table()), Escaped(self.name()));
        write!(f, "table {table} name {name} use {references}")?;
        match self.data() {
            Some(data) => write!(f, " {data}"),
            None => write!(f, " [ {} ]", self.object_type),
        }
    }
}
