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
    /// What a view keeps of the payload when it has checked it: the value of a plain number or
    /// name, the bytes of anything that is nested.
    type Kept: Copy;
    /// What a view gives for it: the value itself, or a borrow.
    type View;
    /// The value with nothing borrowed.
    type Static: 'static;

    /// Checks a payload; `None` if it is not such a value.
    fn keep(payload: &'a [u8]) -> Option<Self::Kept>;
    /// The view of what was kept.
    fn view(kept: Self::Kept) -> Self::View;
    /// The value of what was kept.
    fn value(kept: Self::Kept) -> Self;
    /// The value of a payload, borrowing from it; `None` if it is not such a value.
    fn decode(payload: &'a [u8]) -> Option<Self> {
        Self::keep(payload).map(Self::value)
    }
    /// Writes the attribute.
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16);
    /// The value with nothing borrowed.
    fn into_static(self) -> Self::Static;
}

/// The parts of [`Field`] that are alike for all values that borrow nothing.
macro_rules! plain_field {
    () => {
        type Kept = Self;
        type View = Self;
        type Static = Self;
        #[inline(always)]
        fn view(kept: Self) -> Self {
            kept
        }
        #[inline]
        fn value(kept: Self) -> Self {
            kept
        }
        fn into_static(self) -> Self {
            self
        }
    };
}
pub(super) use plain_field;

macro_rules! number_field {
    ($($number:ty, $write:ident;)*) => {$(
        impl<'a> Field<'a> for $number {
            plain_field!();
            #[inline(always)]
            fn keep(payload: &'a [u8]) -> Option<Self> {
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
    u8, u8;
    u16, be16;
    u32, be32;
    i32, be32;
    u64, be64;
}

impl<'a> Field<'a> for Name<'a> {
    type Kept = &'a BStr;
    type View = &'a BStr;
    type Static = Name<'static>;

    #[inline(always)]
    fn keep(payload: &'a [u8]) -> Option<&'a BStr> {
        Some(BStr::new(match payload {
            [name @ .., 0] => name,
            name => name,
        }))
    }
    #[inline(always)]
    fn view(kept: &'a BStr) -> &'a BStr {
        kept
    }
    #[inline]
    fn value(kept: &'a BStr) -> Self {
        kept.into()
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
    type Kept = &'a [u8];
    type View = &'a [u8];
    type Static = Bytes<'static>;

    #[inline(always)]
    fn keep(payload: &'a [u8]) -> Option<&'a [u8]> {
        Some(payload)
    }
    #[inline(always)]
    fn view(kept: &'a [u8]) -> &'a [u8] {
        kept
    }
    #[inline]
    fn value(kept: &'a [u8]) -> Self {
        Cow::Borrowed(kept)
    }
    #[inline]
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.bytes(kind, self);
    }
    fn into_static(self) -> Bytes<'static> {
        Cow::Owned(self.into_owned())
    }
}

/// The parts of [`Field`] that are alike for all nested values: the bytes are kept, and read when
/// they are asked for. The first argument reads them.
macro_rules! nested_field {
    ($life:lifetime, $read:expr) => {
        type Kept = &$life [u8];
        type View = Self;

        fn keep(payload: &$life [u8]) -> Option<&$life [u8]> {
            let read: fn(&$life [u8]) -> Option<Self> = $read;
            read(payload).map(|_| payload)
        }
        fn view(kept: &$life [u8]) -> Self {
            <Self as $crate::nft::declare::Field<$life>>::value(kept)
        }
        fn value(kept: &$life [u8]) -> Self {
            let read: fn(&$life [u8]) -> Option<Self> = $read;
            read(kept).expect("invariant: `keep` keeps only what could be read")
        }
    };
}
pub(super) use nested_field;

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
            type Static = Self;
            $crate::nft::declare::nested_field!('f, |bytes| Self::from_attributes(bytes).ok());
            $crate::nft::declare::attributes!(@encode);
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
            type Static = $Name<'static>;
            $crate::nft::declare::nested_field!('f, |bytes| Self::from_attributes(bytes).ok());
            $crate::nft::declare::attributes!(@encode);
            fn into_static(self) -> $Name<'static> {
                self.into_owned()
            }
        }
    };
    (@encode) => {
        fn encode(&self, writer: &mut $crate::netlink::MessageWriter<'_>, kind: u16) {
            writer.nested(kind, |writer| self.write_attributes(writer));
        }
    };
}
pub(super) use attributes;

/// Declares an object: an owned builder (a family and one `Option` an attribute) and a borrowed
/// view with an accessor an attribute. A `required` attribute is one that the kernel always sends;
/// a message without it is malformed; a `written` one is only ever sent to the
/// kernel; a `listed` one means something else in a listing than in a request, and a builder does not
/// take it over. The attributes are declared in the order in which the kernel
/// sends them, so that a view is read in one straight pass; any other order is read as well.
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
        /// The attributes are found and checked in one pass; nested ones are read when they are
        /// asked for.
        #[derive(Clone)]
        pub struct $View<'a> {
            family: $crate::nft::Family,
            bytes: &'a [u8],
            $($field: $crate::nft::declare::object!(@kept $presence $Type),)*
        }

        impl<'a> $View<'a> {
            #[doc = concat!("Reads a message of the kernel as ", $what, ".")]
            ///
            /// # Errors
            /// [`Malformed`](crate::netlink::Malformed) when an attribute does not fit, is not a
            /// value of its type, or is missing though the kernel always sends it.
            pub fn parse(
                message: &$crate::netlink::Message<'a>,
            ) -> Result<Self, $crate::netlink::Malformed> {
                Self::of_payload(message.payload)
            }

            /// As [`parse`](Self::parse), of what follows the message's header.
            #[inline(always)]
            pub(crate) fn of_payload(
                payload: &'a [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                if let Some(this) = Self::in_order(payload) {
                    return Ok(this);
                }
                // Taken over field by field, so that the values of the common case above can stay
                // in registers.
                let Self { family, bytes, $($field,)* } = Self::in_any_order(payload)?;
                Ok(Self { family, bytes, $($field,)* })
            }

            /// Reads the attributes in one straight pass, if they stand in the order in which they
            /// are declared here, which is the kernel's; `None` if anything is not so.
            #[inline(always)]
            fn in_order(payload: &'a [u8]) -> Option<Self> {
                let (header, bytes) = $crate::netlink::NfGenMsg::split(payload).ok()?;
                let mut attributes = $crate::netlink::Attributes::new(bytes);
                let (mut kind, mut payload) = attributes.advance().ok()?;
                $($crate::nft::declare::object!(
                    @next $presence $KIND $field $Type, (attributes, kind, payload)
                );)*
                let _ = payload; // of the end
                if kind != 0 || !attributes.at_end() {
                    return None;
                }
                Some(Self {
                    family: $crate::nft::Family(header.family),
                    bytes,
                    $($field,)*
                })
            }

            /// Finds the attributes wherever they stand, as another kernel may send them, and says
            /// what is malformed; of an attribute that stands twice the last one counts, as in the
            /// kernel.
            #[cold]
            fn in_any_order(
                payload: &'a [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                let (header, bytes) = $crate::netlink::NfGenMsg::split(payload)?;
                $(let mut $field = None;)*
                let mut offset = 0;
                for attribute in $crate::netlink::Attributes::new(bytes) {
                    let attribute = attribute?;
                    match attribute.kind {
                        $($KIND => {
                            $field = <$Type as $crate::nft::declare::Field<'a>>::keep(attribute.payload);
                            if $field.is_none() {
                                return Err($crate::netlink::Malformed {
                                    what: stringify!($KIND),
                                    offset,
                                    reason: "the payload is not a value of its type",
                                });
                            }
                        })*
                        _ => {}
                    }
                    offset += attribute.raw.len();
                }
                Ok(Self {
                    family: $crate::nft::Family(header.family),
                    bytes,
                    $($field: $crate::nft::declare::object!(@check $presence $KIND $field),)*
                })
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
                $crate::netlink::Attributes::new(self.bytes)
            }

            /// The object as a builder that borrows from the same bytes; with its handle, so that
            /// it can be replaced or deleted: leave that out to add a copy.
            #[must_use]
            pub fn to_builder(&self) -> $Name<'a> {
                $Name {
                    family: self.family,
                    $($field: $crate::nft::declare::object!(@copied $presence self $field)
                        .map(<$Type as $crate::nft::declare::Field<'a>>::value),)*
                }
            }
        }

        impl std::fmt::Debug for $View<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut out = f.debug_struct(stringify!($View));
                out.field("family", &self.family);
                $(if $crate::nft::declare::object!(@option $presence self $field).is_some() {
                    out.field(stringify!($field), &self.$field());
                })*
                out.finish()
            }
        }
    };
    (@next required $KIND:ident $field:ident $Type:ty,
        ($attributes:ident, $kind:ident, $payload:ident)) => {
        if $kind != $KIND {
            return None;
        }
        let $field = <$Type as $crate::nft::declare::Field<'a>>::keep($payload)?;
        ($kind, $payload) = $attributes.advance().ok()?;
    };
    (@next optional $KIND:ident $field:ident $Type:ty,
        ($attributes:ident, $kind:ident, $payload:ident)) => {
        let mut $field = None;
        if $kind == $KIND {
            $field = Some(<$Type as $crate::nft::declare::Field<'a>>::keep($payload)?);
            ($kind, $payload) = $attributes.advance().ok()?;
        }
    };
    (@next listed $($rest:tt)*) => {
        $crate::nft::declare::object!(@next optional $($rest)*);
    };
    (@next written $KIND:ident $field:ident $Type:ty,
        ($attributes:ident, $kind:ident, $payload:ident)) => {
        let $field = None; // if it is there all the same, the pass in any order finds it
    };
    (@kept required $Type:ty) => { <$Type as $crate::nft::declare::Field<'a>>::Kept };
    (@kept $otherwise:ident $Type:ty) => { Option<<$Type as $crate::nft::declare::Field<'a>>::Kept> };
    (@copied listed $this:ident $field:ident) => { None };
    (@copied $presence:ident $this:ident $field:ident) => {
        $crate::nft::declare::object!(@option $presence $this $field)
    };
    (@option required $this:ident $field:ident) => { Some($this.$field) };
    (@option $otherwise:ident $this:ident $field:ident) => { $this.$field };
    (@check required $KIND:ident $field:ident) => {
        $field.ok_or($crate::netlink::Malformed {
            what: stringify!($KIND),
            offset: 0,
            reason: "the attribute is missing though the kernel always sends it",
        })?
    };
    (@check $otherwise:ident $KIND:ident $field:ident) => { $field };
    (@accessor required $(#[$meta:meta])* $KIND:ident $field:ident $Type:ty) => {
        $(#[$meta])*
        #[doc = concat!("\n\n`", stringify!($KIND), "`")]
        #[inline]
        #[must_use]
        pub fn $field(&self) -> <$Type as $crate::nft::declare::Field<'a>>::View {
            <$Type as $crate::nft::declare::Field<'a>>::view(self.$field)
        }
    };
    (@accessor $otherwise:ident $(#[$meta:meta])* $KIND:ident $field:ident $Type:ty) => {
        $(#[$meta])*
        #[doc = concat!("\n\n`", stringify!($KIND), "`")]
        #[inline]
        #[must_use]
        pub fn $field(&self) -> Option<<$Type as $crate::nft::declare::Field<'a>>::View> {
            self.$field.map(<$Type as $crate::nft::declare::Field<'a>>::view)
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
            $crate::nft::declare::plain_field!();
            #[inline(always)]
            fn keep(payload: &'a [u8]) -> Option<Self> {
                <$number as $crate::nft::declare::Field<'a>>::keep(payload).map(Self)
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
            $crate::nft::declare::plain_field!();
            #[inline(always)]
            fn keep(payload: &'a [u8]) -> Option<Self> {
                <$number as $crate::nft::declare::Field<'a>>::keep(payload)
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
