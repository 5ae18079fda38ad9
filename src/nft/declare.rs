//! Declare once: from one table of (attribute, field, type) come an object's borrowed view, its
//! owned builder, its Debug form and the names that errors use.
//!
//! - [`attributes!`](attributes) declares a group of attributes: an expression, or a nested
//!   attribute.
//! - [`object!`](object) declares an object with its view.
//! - [`values!`](values) declares a number whose values have names, [`flags!`](flags) a set of
//!   flags.
//!
//! A field's type implements [`Field`]: how its payload is read and written.

use std::borrow::Cow;

use bstr::BStr;

use super::name::{Bytes, Name};
use crate::netlink::MessageWriter;

/// One attribute's value: how it is read from, and written to, a payload.
pub trait Field<'a>: Sized {
    /// The least length of the payload in bytes.
    const MINIMUM: u16;
    /// What a view gives for it: the value itself, or a borrow.
    type View;
    /// The value with nothing borrowed.
    type Static: 'static;

    /// The view of a payload; `None` if it is not such a value.
    fn view(payload: &'a [u8]) -> Option<Self::View>;
    /// The value of a payload, borrowing from it; `None` if it is not such a value.
    fn decode(payload: &'a [u8]) -> Option<Self>;
    /// Writes the attribute.
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16);
    /// The value with nothing borrowed.
    fn into_static(self) -> Self::Static;
}

/// The parts of [`Field`] that are alike for all values that borrow nothing.
macro_rules! plain_field {
    () => {
        type View = Self;
        type Static = Self;
        #[inline]
        fn view(payload: &'a [u8]) -> Option<Self> {
            <Self as $crate::nft::declare::Field<'a>>::decode(payload)
        }
        fn into_static(self) -> Self {
            self
        }
    };
}
pub(super) use plain_field;

macro_rules! number_field {
    ($($number:ty, $length:literal, $write:ident;)*) => {$(
        impl<'a> Field<'a> for $number {
            const MINIMUM: u16 = $length;
            plain_field!();
            #[inline]
            fn decode(payload: &'a [u8]) -> Option<Self> {
                payload.first_chunk().copied().map(<$number>::from_be_bytes)
            }
            #[inline]
            fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
                writer.$write(kind, *self as _);
            }
        }
    )*};
}

number_field! {
    u8, 1, u8;
    u16, 2, be16;
    u32, 4, be32;
    i32, 4, be32;
    u64, 8, be64;
}

impl<'a> Field<'a> for Name<'a> {
    const MINIMUM: u16 = 0;
    type View = &'a BStr;
    type Static = Name<'static>;

    #[inline]
    fn view(payload: &'a [u8]) -> Option<&'a BStr> {
        Some(BStr::new(payload.strip_suffix(&[0]).unwrap_or(payload)))
    }
    #[inline]
    fn decode(payload: &'a [u8]) -> Option<Self> {
        Self::view(payload).map(Name::from)
    }
    #[inline]
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.string(kind, self);
    }
    fn into_static(self) -> Name<'static> {
        self.into_owned()
    }
}

impl<'a> Field<'a> for Bytes<'a> {
    const MINIMUM: u16 = 0;
    type View = &'a [u8];
    type Static = Bytes<'static>;

    #[inline]
    fn view(payload: &'a [u8]) -> Option<&'a [u8]> {
        Some(payload)
    }
    #[inline]
    fn decode(payload: &'a [u8]) -> Option<Self> {
        Some(Cow::Borrowed(payload))
    }
    #[inline]
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.bytes(kind, self);
    }
    fn into_static(self) -> Bytes<'static> {
        Cow::Owned(self.into_owned())
    }
}

/// How long a table from attribute type to payload must be to hold all of these types.
pub(super) const fn table_size(kinds: &[u16]) -> usize {
    let mut size = 0;
    let mut index = 0;
    while index < kinds.len() {
        if kinds[index] as usize >= size {
            size = kinds[index] as usize + 1;
        }
        index += 1;
    }
    size
}

/// Declares a group of attributes: a struct with one `Option` a field, read from and written to
/// bytes.
macro_rules! attributes {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident $(<$life:lifetime>)? {
            $( $(#[$field_meta:meta])* $KIND:ident => $field:ident : $Type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $Name $(<$life>)? {
            $(
                $(#[$field_meta])*
                #[doc = concat!("\n\n`", stringify!($KIND), "`")]
                pub $field: Option<$Type>,
            )*
        }

        impl $(<$life>)? $Name $(<$life>)? {
            /// The attributes' types and names.
            pub const ATTRIBUTES: &'static [(u16, &'static str)] =
                &[$(($KIND, stringify!($KIND)),)*];

            /// Reads the attributes that `bytes` consists of; unknown ones are passed over.
            ///
            /// # Errors
            /// [`Malformed`](crate::netlink::Malformed) when an attribute does not fit or is not a
            /// value of its type.
            pub fn from_attributes(
                bytes: & $($life)? [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                let mut this = Self::default();
                let mut offset = 0;
                for attribute in $crate::netlink::Attributes::new(bytes) {
                    let attribute = attribute?;
                    match attribute.kind {
                        $($KIND => {
                            let value = $crate::nft::declare::Field::decode(attribute.payload);
                            this.$field = Some(value.ok_or($crate::netlink::Malformed {
                                what: stringify!($KIND),
                                offset,
                                reason: "the payload is not a value of its type",
                            })?);
                        })*
                        _ => {}
                    }
                    offset += attribute.raw.len();
                }
                Ok(this)
            }

            /// Writes the attributes that are set, in the order in which they are declared.
            pub fn write_attributes(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                $(if let Some(value) = &self.$field {
                    $crate::nft::declare::Field::encode(value, writer, $KIND);
                })*
            }
        }

        $crate::nft::declare::attributes!(@nested $Name $($life)? { $($field)* });
    };
    (@nested $Name:ident { $($field:ident)* }) => {
        impl<'f> $crate::nft::declare::Field<'f> for $Name {
            const MINIMUM: u16 = 0;
            type View = Self;
            type Static = Self;
            $crate::nft::declare::attributes!(@codec 'f);
            fn into_static(self) -> Self {
                self
            }
        }
    };
    (@nested $Name:ident $life:lifetime { $($field:ident)* }) => {
        impl $Name<'_> {
            /// The same with nothing borrowed.
            #[must_use]
            pub fn into_owned(self) -> $Name<'static> {
                $Name {
                    $($field: self.$field.map($crate::nft::declare::Field::into_static),)*
                }
            }
        }

        impl<'f> $crate::nft::declare::Field<'f> for $Name<'f> {
            const MINIMUM: u16 = 0;
            type View = Self;
            type Static = $Name<'static>;
            $crate::nft::declare::attributes!(@codec 'f);
            fn into_static(self) -> $Name<'static> {
                self.into_owned()
            }
        }
    };
    (@codec $life:lifetime) => {
        fn view(payload: &$life [u8]) -> Option<Self> {
            Self::from_attributes(payload).ok()
        }
        fn decode(payload: &$life [u8]) -> Option<Self> {
            Self::from_attributes(payload).ok()
        }
        fn encode(&self, writer: &mut $crate::netlink::MessageWriter<'_>, kind: u16) {
            writer.nested(kind, |writer| self.write_attributes(writer));
        }
    };
}
pub(super) use attributes;

/// Declares an object: an owned builder (a family and one `Option` an attribute) and a borrowed
/// view with an accessor an attribute. A `required` attribute is one that the kernel always sends;
/// a message without it is malformed.
macro_rules! object {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident viewed as $View:ident, $what:literal {
            $( $(#[$field_meta:meta])* $KIND:ident => $field:ident : $presence:ident $Type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $Name<'a> {
            /// The address family that the object belongs to.
            pub family: $crate::nft::Family,
            $(
                $(#[$field_meta])*
                #[doc = concat!("\n\n`", stringify!($KIND), "`")]
                pub $field: Option<$Type>,
            )*
        }

        impl<'a> $Name<'a> {
            /// The attributes' types and names.
            pub const ATTRIBUTES: &'static [(u16, &'static str)] =
                &[$(($KIND, stringify!($KIND)),)*];

            /// The same with nothing borrowed.
            #[must_use]
            pub fn into_owned(self) -> $Name<'static> {
                $Name {
                    family: self.family,
                    $($field: self.$field.map($crate::nft::declare::Field::into_static),)*
                }
            }

            /// Writes the attributes that are set, in the order in which they are declared.
            #[inline]
            pub fn write_attributes(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                $(if let Some(value) = &self.$field {
                    $crate::nft::declare::Field::encode(value, writer, $KIND);
                })*
            }
        }

        #[doc = concat!("A borrowed view of ", $what, ", as the kernel sent it: [`", stringify!($Name), "`] for reading.")]
        ///
        /// The attributes are found in one pass; values are decoded when they are asked for.
        #[derive(Clone)]
        pub struct $View<'a> {
            family: $crate::nft::Family,
            table: $crate::netlink::AttributeTable<
                'a,
                { $crate::nft::declare::table_size(&[$($KIND),*]) },
            >,
        }

        impl<'a> $View<'a> {
            const MINIMUM: [u16; $crate::nft::declare::table_size(&[$($KIND),*])] = {
                let mut minimum = [0; $crate::nft::declare::table_size(&[$($KIND),*])];
                $(minimum[$KIND as usize] = <$Type as $crate::nft::declare::Field<'_>>::MINIMUM;)*
                minimum
            };

            #[doc = concat!("Reads a message of the kernel as ", $what, ".")]
            ///
            /// # Errors
            /// [`Malformed`](crate::netlink::Malformed) when an attribute does not fit, is not a
            /// value of its type, or is missing though the kernel always sends it.
            #[inline]
            pub fn parse(
                message: &$crate::netlink::Message<'a>,
            ) -> Result<Self, $crate::netlink::Malformed> {
                let (header, bytes) = message.nfgenmsg()?;
                let this = Self {
                    family: $crate::nft::Family(header.family),
                    table: $crate::netlink::AttributeTable::parse($what, bytes, &Self::MINIMUM)?,
                };
                $($crate::nft::declare::object!(@check $presence this $KIND $Type);)*
                Ok(this)
            }

            /// The address family that the object belongs to.
            #[inline]
            #[must_use]
            pub const fn family(&self) -> $crate::nft::Family {
                self.family
            }

            $($crate::nft::declare::object! {
                @accessor $presence $(#[$field_meta])* $KIND $field $Type
            })*

            /// All attributes as they came, those included that this version of the crate does
            /// not know.
            #[must_use]
            pub const fn attributes(&self) -> $crate::netlink::Attributes<'a> {
                $crate::netlink::Attributes::new(self.table.bytes())
            }

            /// The object as a builder that borrows from the same bytes.
            #[must_use]
            pub fn to_builder(&self) -> $Name<'a> {
                $Name {
                    family: self.family,
                    $($field: self.table.get($KIND).and_then($crate::nft::declare::Field::decode),)*
                }
            }
        }

        impl<'a> std::fmt::Debug for $View<'a> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut out = f.debug_struct(stringify!($View));
                out.field("family", &self.family);
                $(if let Some(value) = self.table.get($KIND).and_then(<$Type as $crate::nft::declare::Field<'_>>::view) {
                    out.field(stringify!($field), &value);
                })*
                out.finish()
            }
        }
    };
    (@check required $this:ident $KIND:ident $Type:ty) => {
        if $this.table.get($KIND).is_none() {
            return Err($crate::netlink::Malformed {
                what: stringify!($KIND),
                offset: 0,
                reason: "the attribute is missing though the kernel always sends it",
            });
        }
    };
    (@check optional $this:ident $KIND:ident $Type:ty) => {
        // The lengths of plain values are checked by now; nested ones are read once here, so that
        // an accessor never has to hide that one is malformed.
        if <$Type as $crate::nft::declare::Field<'_>>::MINIMUM == 0 {
            if let Some(payload) = $this.table.get($KIND) {
                if <$Type as $crate::nft::declare::Field<'_>>::view(payload).is_none() {
                    return Err($crate::netlink::Malformed {
                        what: stringify!($KIND),
                        offset: 0,
                        reason: "the payload is not a value of its type",
                    });
                }
            }
        }
    };
    (@accessor required $(#[$meta:meta])* $KIND:ident $field:ident $Type:ty) => {
        $(#[$meta])*
        #[doc = concat!("\n\n`", stringify!($KIND), "`")]
        #[inline]
        #[must_use]
        pub fn $field(&self) -> <$Type as $crate::nft::declare::Field<'a>>::View {
            // `parse` saw the attribute, and that it is long enough.
            self.table
                .get($KIND)
                .and_then(<$Type as $crate::nft::declare::Field<'a>>::view)
                .unwrap_or_default()
        }
    };
    (@accessor optional $(#[$meta:meta])* $KIND:ident $field:ident $Type:ty) => {
        $(#[$meta])*
        #[doc = concat!("\n\n`", stringify!($KIND), "`")]
        #[inline]
        #[must_use]
        pub fn $field(&self) -> Option<<$Type as $crate::nft::declare::Field<'a>>::View> {
            self.table
                .get($KIND)
                .and_then(<$Type as $crate::nft::declare::Field<'a>>::view)
        }
    };
}
pub(super) use object;

/// Declares a number whose values have names. Values without a name pass through unchanged and
/// show as numbers.
macro_rules! values {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident: $number:ty {
            $( $(#[$value_meta:meta])* $CONSTANT:ident = $value:expr => $text:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $Name(pub $number);

        impl $Name {
            $(
                $(#[$value_meta])*
                #[doc = concat!("\n\n`", stringify!($value), "`, shown as `", $text, "`")]
                pub const $CONSTANT: Self = Self($value);
            )*

            /// The value's name, as `nft` writes it; `None` for a value that has none here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                $(if self.0 == $value {
                    return Some($text);
                })*
                None
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self($value)),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => std::fmt::Display::fmt(&self.0, f),
                }
            }
        }

        impl std::fmt::Debug for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl<'a> $crate::nft::declare::Field<'a> for $Name {
            const MINIMUM: u16 = <$number as $crate::nft::declare::Field<'a>>::MINIMUM;
            $crate::nft::declare::plain_field!();
            #[inline]
            fn decode(payload: &'a [u8]) -> Option<Self> {
                <$number as $crate::nft::declare::Field<'a>>::decode(payload).map(Self)
            }
            #[inline]
            fn encode(&self, writer: &mut $crate::netlink::MessageWriter<'_>, kind: u16) {
                self.0.encode(writer, kind);
            }
        }
    };
}
pub(super) use values;

/// Declares a set of flags. Unknown bits pass through unchanged.
macro_rules! flags {
    (
        $(#[$($meta:tt)*])*
        pub struct $Name:ident: $number:ty {
            $( $(#[$($value_meta:tt)*])* const $CONSTANT:ident = $value:expr, )*
        }
    ) => {
        bitflags::bitflags! {
            $(#[$($meta)*])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
            pub struct $Name: $number {
                $(
                    $(#[$($value_meta)*])*
                    #[doc = concat!("\n\n`", stringify!($value), "`")]
                    const $CONSTANT = $value;
                )*
                /// Bits that this version of the crate does not know are kept.
                const _ = !0;
            }
        }

        impl<'a> $crate::nft::declare::Field<'a> for $Name {
            const MINIMUM: u16 = <$number as $crate::nft::declare::Field<'a>>::MINIMUM;
            $crate::nft::declare::plain_field!();
            #[inline]
            fn decode(payload: &'a [u8]) -> Option<Self> {
                <$number as $crate::nft::declare::Field<'a>>::decode(payload)
                    .map(Self::from_bits_retain)
            }
            #[inline]
            fn encode(&self, writer: &mut $crate::netlink::MessageWriter<'_>, kind: u16) {
                self.bits().encode(writer, kind);
            }
        }
    };
}
pub(super) use flags;
