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

use bstr::BStr;

use super::name::{Bytes, Name};
use crate::netlink::{Malformed, MessageWriter};

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

/// A value that its payload alone does not tell: what it is depends on the view that it stands in.
pub(super) trait Typed<'a, View>: Field<'a> {
    /// The value of what this view kept.
    fn of(view: &View, kept: Self::Kept) -> Self;
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
        Bytes::borrowed(kept)
    }
    #[inline]
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.bytes(kind, self);
    }
    fn into_static(self) -> Bytes<'static> {
        self.into_owned()
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
        fn decode(payload: &$life [u8]) -> Option<Self> {
            let read: fn(&$life [u8]) -> Option<Self> = $read;
            read(payload) // once
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

/// The payload of an attribute, somewhere in `bytes`, is not a value of its type.
#[cold]
pub(super) fn no_value(what: &'static str, bytes: &[u8], payload: &[u8]) -> Malformed {
    let at = payload.as_ptr() as usize - bytes.as_ptr() as usize;
    Malformed {
        what,
        offset: at.saturating_sub(4), // where its header is
        reason: "the payload is not a value of its type",
    }
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
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
        pub struct $Name $(<$life>)? {
            $(
                $(#[$field_meta])*
                #[doc = concat!("\n\n`", stringify!($KIND), "`")]
                #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
                pub $field: Option<$Type>,
            )*
            /// Attributes that this version of the crate does not know; written behind all others.
            #[cfg_attr(feature = "serde", serde(skip_serializing_if = "crate::nft::UnknownAttributes::is_empty"))]
            pub unknown: $crate::nft::UnknownAttributes,
        }

        impl $(<$life>)? $Name $(<$life>)? {
            /// The attributes' types and names.
            pub const ATTRIBUTES: &'static [(u16, &'static str)] =
                &[$(($KIND, stringify!($KIND)),)*];

            /// Reads the attributes that `bytes` consists of; unknown ones are kept.
            ///
            /// # Errors
            /// [`Malformed`](crate::netlink::Malformed) when an attribute does not fit or is not a
            /// value of its type.
            #[inline(always)]
            pub fn from_attributes(
                bytes: & $($life)? [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                let mut attributes = $crate::netlink::Attributes::new(bytes);
                // First where everything is, then every value straight into its place.
                $(let mut $field = None;)*
                let mut others = false;
                while !attributes.at_end() {
                    let (kind, payload) = attributes.advance()?;
                    let _ = payload; // of an expression that knows no attributes
                    match kind {
                        $($KIND => $field = Some(payload),)*
                        _ => others = true,
                    }
                }
                Ok(Self {
                    $($field: match $field {
                        None => None,
                        Some(payload) => match $crate::nft::declare::Field::decode(payload) {
                            None => {
                                let kind = stringify!($KIND);
                                return Err($crate::nft::declare::no_value(kind, bytes, payload));
                            }
                            value => value,
                        },
                    },)*
                    unknown: match others {
                        false => $crate::nft::UnknownAttributes::NONE,
                        true => $crate::nft::UnknownAttributes::of(
                            $crate::netlink::Attributes::new(bytes),
                            Self::ATTRIBUTES,
                        ),
                    },
                })
            }

            /// Writes the attributes that are set, in the order in which they are declared.
            pub fn write_attributes(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                $(if let Some(value) = &self.$field {
                    $crate::nft::declare::Field::encode(value, writer, $KIND);
                })*
                self.unknown.write(writer);
            }
        }

        $crate::nft::declare::attributes!(@nested $Name $($life)? { $($field)* });

        #[cfg(test)]
        impl $(<$life>)? $crate::nft::properties::Arbitrary for $Name $(<$life>)? {
            type Value = $crate::nft::declare::attributes!(@static $Name $($life)?);
            fn arbitrary(depth: u32) -> proptest::strategy::BoxedStrategy<Self::Value> {
                let _ = depth; // of one without fields
                $crate::nft::declare::any_fields!(
                    $Name
                    $(, $field = $crate::nft::properties::now_and_then::<$Type>(depth))*
                    , unknown = $crate::nft::properties::unknown(Self::ATTRIBUTES)
                )
            }
        }

        #[cfg(test)]
        #[test]
        #[allow(non_snake_case, reason = "each declaration has a test of its own name")]
        fn $Name() {
            $crate::nft::properties::attributes($Name::ATTRIBUTES, |bytes| {
                let value = $Name::from_attributes(bytes).ok();
                value.map($crate::nft::declare::Field::into_static)
            });
        }
    };
    (@static $Name:ident) => { $Name };
    (@static $Name:ident $life:lifetime) => { $Name<'static> };
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
                    unknown: self.unknown,
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

/// Any values of a struct, given a strategy for each of its fields.
#[cfg(test)]
macro_rules! any_fields {
    ($Name:ident $(, $field:ident = $strategy:expr)* $(,)?) => {{
        use proptest::strategy::Strategy;
        let this = proptest::strategy::Just($Name::default()).boxed();
        $(let this = (this, $strategy)
            .prop_map(|(mut this, value)| {
                this.$field = value;
                this
            })
            .boxed();)*
        this
    }};
}
#[cfg(test)]
pub(super) use any_fields;

/// Declares an object: an owned builder (a family and one `Option` an attribute) and a borrowed
/// view with an accessor an attribute. A `required` attribute is one that the kernel always sends;
/// a message without it is malformed; a `written` one is only ever sent to the
/// kernel; a `listed` one means something else in a listing than in a request, and a builder does not
/// take it over; what a `typed` one means depends on the others ([`Typed`]). The attributes are declared in the order in which the kernel
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
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
        pub struct $Name<'a> {
            /// The address family that the object belongs to.
            pub family: $crate::nft::Family,
            $(
                $(#[$field_meta])*
                #[doc = concat!("\n\n`", stringify!($KIND), "`")]
                #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
                pub $field: Option<$Type>,
            )*
            /// Attributes that this version of the crate does not know; written behind all others.
            #[cfg_attr(feature = "serde", serde(skip_serializing_if = "crate::nft::UnknownAttributes::is_empty"))]
            pub unknown: $crate::nft::UnknownAttributes,
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
                    unknown: self.unknown,
                }
            }

            /// Writes the attributes that are set, in the order in which they are declared.
            #[inline]
            pub fn write_attributes(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                $(if let Some(value) = &self.$field {
                    $crate::nft::declare::Field::encode(value, writer, $KIND);
                })*
                self.unknown.write(writer);
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
            #[inline(always)]
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
                // One comparison for the header and the first attribute's.
                if payload.len() < $crate::netlink::NfGenMsg::LENGTH + 4 {
                    return None;
                }
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
                    $($field: $crate::nft::declare::object!(@builder $presence self $field $Type),)*
                    unknown: $crate::nft::UnknownAttributes::of(
                        self.attributes(),
                        $Name::ATTRIBUTES,
                    ),
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

        #[cfg(test)]
        impl<'a> $crate::nft::properties::Arbitrary for $Name<'a> {
            type Value = $Name<'static>;
            fn arbitrary(depth: u32) -> proptest::strategy::BoxedStrategy<$Name<'static>> {
                let this = $crate::nft::declare::any_fields!(
                    $Name,
                    family = <$crate::nft::Family as $crate::nft::properties::Arbitrary>::arbitrary(depth)
                    $(, $field = $crate::nft::declare::object!(@any $presence $Type, depth))*
                    , unknown = $crate::nft::properties::unknown(Self::ATTRIBUTES)
                );
                $($crate::nft::declare::object!(@fit $presence this);)*
                this
            }
        }

        #[cfg(test)]
        impl $crate::nft::properties::Declared for $Name<'static> {
            const KNOWN: &'static [(u16, &'static str)] = Self::ATTRIBUTES;
            fn family(&self) -> $crate::nft::Family {
                self.family
            }
            fn write(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_attributes(writer);
            }
            #[allow(unused_mut, reason = "of an object that lists nothing else than it is told")]
            fn without_listed(mut self) -> Self {
                $($crate::nft::declare::object!(@clear $presence self $field);)*
                self
            }
            fn has_unknown(&self) -> bool {
                !self.unknown.is_empty()
            }
            fn read(payload: &[u8]) -> Result<Self, $crate::netlink::Malformed> {
                let view = $View::of_payload(payload)?;
                let _ = format!("{view:?} {view:#?}");
                let this = view.to_builder().into_owned();
                // The fast way and the slow way read the same.
                assert_eq!($View::in_any_order(payload)?.to_builder(), this);
                Ok(this)
            }
        }

        #[cfg(test)]
        #[test]
        #[allow(non_snake_case, reason = "each declaration has a test of its own name")]
        fn $Name() {
            $crate::nft::properties::object::<$Name<'static>>();
        }
    };
    (@any required $Type:ty, $depth:ident) => {
        $crate::nft::properties::always::<$Type>($depth)
    };
    (@any $presence:ident $Type:ty, $depth:ident) => {
        $crate::nft::properties::now_and_then::<$Type>($depth)
    };
    (@fit typed $this:ident) => {
        let $this = proptest::strategy::Strategy::prop_map($this, |mut this| {
            $crate::nft::properties::Fit::fit(&mut this);
            this
        });
        let $this = proptest::strategy::Strategy::boxed($this);
    };
    (@fit $presence:ident $this:ident) => {};
    (@clear listed $this:ident $field:ident) => { $this.$field = None };
    (@clear $presence:ident $this:ident $field:ident) => {};
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
    (@next typed $($rest:tt)*) => {
        $crate::nft::declare::object!(@next optional $($rest)*);
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
    (@builder typed $this:ident $field:ident $Type:ty) => { $this.$field() };
    (@builder $presence:ident $this:ident $field:ident $Type:ty) => {
        $crate::nft::declare::object!(@copied $presence $this $field)
            .map(<$Type as $crate::nft::declare::Field<'a>>::value)
    };
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
    (@accessor typed $(#[$meta:meta])* $KIND:ident $field:ident $Type:ty) => {
        $(#[$meta])*
        #[doc = concat!("\n\n`", stringify!($KIND), "`")]
        #[must_use]
        pub fn $field(&self) -> Option<$Type> {
            let typed = |kept| $crate::nft::declare::Typed::of(self, kept);
            self.$field.map(typed)
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

        $crate::nft::declare::named_in_serde!($Name: $number);

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

        #[cfg(test)]
        impl $crate::nft::properties::Arbitrary for $Name {
            type Value = Self;
            fn arbitrary(_: u32) -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy;
                let named = proptest::sample::select(vec![$($value),*]);
                proptest::prop_oneof![named, proptest::prelude::any::<$number>()]
                    .prop_map(Self)
                    .boxed()
            }
        }
    };
}
pub(super) use values;

/// A number that has names is written as its name, or as the number if it has none; both are read.
macro_rules! named_in_serde {
    ($Name:ident: $number:ty) => {
        #[cfg(feature = "serde")]
        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.name() {
                    Some(name) => serializer.serialize_str(name),
                    None => self.0.serialize(serializer),
                }
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(untagged)]
                enum Named {
                    Number($number),
                    Name(String),
                }
                match Named::deserialize(deserializer)? {
                    Named::Number(number) => Ok(Self(number)),
                    Named::Name(name) => Self::from_name(&name).ok_or_else(|| {
                        serde::de::Error::custom(format_args!(
                            concat!("`{}` is no ", stringify!($Name)),
                            name
                        ))
                    }),
                }
            }
        }
    };
}
pub(super) use named_in_serde;

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
            #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

        #[cfg(test)]
        impl $crate::nft::properties::Arbitrary for $Name {
            type Value = Self;
            fn arbitrary(_: u32) -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy;
                let known: $number = 0 $(| $value)*;
                (proptest::prelude::any::<$number>(), proptest::prelude::any::<bool>())
                    .prop_map(move |(bits, any)| if any { bits } else { bits & known })
                    .prop_map(Self::from_bits_retain)
                    .boxed()
            }
        }
    };
}
pub(super) use flags;
