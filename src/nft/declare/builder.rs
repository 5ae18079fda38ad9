//! Builders that own their data: structs with one `Option` per attribute.

/// Declares a builder: its fields, and how they are written, with the order of writing if it differs from
/// that of the declaration. Objects have a family before the attributes.
macro_rules! builder {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident $life:tt $family:tt [] {
            $(
                $(#[$field_meta:meta])*
                $KIND:ident => $field:ident : $Type:ident $(<$of:lifetime>)? $([$($note:ident),+])?,
            )*
            $(_ => $PAD:ident,)?
        }
    ) => {
        $crate::nft::declare::builder! {
            @ordered $(#[$meta])*
            pub struct $Name $life $family [$($field)*] {
                $(
                    $(#[$field_meta])*
                    $KIND => $field: $Type $(<$of>)? $([$($note),+])?,
                )*
                $(_ => $PAD,)?
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $Name:ident $life:tt $family:tt [$($order:ident)+] $body:tt
    ) => {
        $crate::nft::declare::builder! {
            @ordered $(#[$meta])* pub struct $Name $life $family [$($order)+] $body
        }
    };
    (
        @ordered
        $(#[$meta:meta])*
        pub struct $Name:ident [$($life:lifetime)?] [$($family:ident)?] [$($order:ident)*] {
            $(
                $(#[$field_meta:meta])*
                $KIND:ident => $field:ident : $Type:ident $(<$of:lifetime>)? $([$($note:ident),+])?,
            )*
            $(_ => $PAD:ident,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
        pub struct $Name $(<$life>)? {
            $(
                /// The address family that the object belongs to.
                pub $family: $crate::nft::Family,
            )?
            $(
                $(#[$field_meta])*
                #[doc = concat!("\n\n`", stringify!($KIND), "`")]
                #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
                pub $field: Option<$Type $(<$of>)?>,
            )*
            /// Attributes unknown to this version of the crate; written after all others.
            #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::nft::UnknownAttributes::is_empty"))]
            pub unknown: $crate::nft::UnknownAttributes,
        }

        impl $(<$life>)? $Name $(<$life>)? {
            /// Types and names of the attributes.
            #[doc(hidden)]
            pub const ATTRIBUTES: &'static [(u16, &'static str)] =
                &[$(($KIND, stringify!($KIND)),)* $(($PAD, stringify!($PAD)),)?];

            /// The notes of each attribute.
            #[allow(dead_code, reason = "of what is not compared")]
            pub(crate) const ATTRIBUTE_NOTES: &'static [$crate::nft::declare::AttributeNotes] =
                &[$(($KIND, &[
                    $crate::nft::declare::builder!(@holds $Type),
                    $($($crate::nft::declare::AttributeNote::$note),+)?
                ]),)* $(($PAD, &[$crate::nft::declare::AttributeNote::padding]),)?];

            /// Writes the attributes that are set, in nft's order.
            #[doc(hidden)]
            #[inline]
            pub fn write_attributes(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                // Expanded once per field, in order.
                macro_rules! step {
                    () => {};
                    $(($field) => {
                        if let Some(value) = &self.$field {
                            $crate::nft::declare::builder!(
                                @encode [$($($note)+)?] value, writer, $KIND
                            );
                        }
                    };)*
                }
                $(step!($order);)*
                step!();
                self.unknown.write(writer);
            }

            /// Brings the value of each attribute into its normal form.
            #[allow(dead_code, reason = "of values that have one form")]
            pub(in crate::nft) fn normalize_fields(&mut self) {
                $(if let Some(value) = &mut self.$field {
                    $crate::nft::declare::Field::normalize(value);
                })*
            }

            /// Writes the attributes that identify the object.
            #[allow(dead_code, reason = "of what is not removed by itself")]
            pub(in crate::nft) fn write_named(
                &self,
                writer: &mut $crate::netlink::MessageWriter<'_>,
            ) {
                // Expanded once per field, in order.
                macro_rules! step {
                    () => {};
                    $(($field) => {
                        $crate::nft::declare::builder! {
                            @identity [$($($note)+)?] {
                                if let Some(value) = &self.$field {
                                    $crate::nft::declare::Field::encode(value, writer, $KIND);
                                }
                            }
                        }
                    };)*
                }
                $(step!($order);)*
                step!();
                let _ = writer; // without an identity it is unused
            }
        }

        $crate::nft::declare::builder!(@empty $Name [$($life)?] [$($family)?] { $($field)* });
        $crate::nft::declare::builder!(@owned $Name [$($life)?] [$($family)?] { $($field)* });

        #[cfg(any(test, feature = "testing"))]
        impl $(<$life>)? $crate::nft::properties::Arbitrary for $Name $(<$life>)? {
            type Value = $crate::nft::declare::builder!(@static $Name $($life)?);
            fn arbitrary(depth: u32) -> proptest::strategy::BoxedStrategy<Self::Value> {
                let _ = depth; // unused without fields
                let this = $crate::nft::declare::any_fields!(
                    $crate::nft::declare::builder!(@blank $Name [$($family)?])
                    $(, $family = <$crate::nft::Family as $crate::nft::properties::Arbitrary>::arbitrary(depth))?
                    $(, $field = $crate::nft::declare::any_field!(
                        [$($($note)+)?] $Type $(<$of>)?, depth
                    ))*
                    , unknown = $crate::nft::properties::unknown(Self::ATTRIBUTES)
                );
                $($($($crate::nft::declare::builder!(@fit $note this);)+)?)*
                this
            }
        }
    };
    (@holds Expressions) => { $crate::nft::declare::AttributeNote::expressions };
    (@holds NestedExpression) => { $crate::nft::declare::AttributeNote::expression };
    (@holds Counters) => { $crate::nft::declare::AttributeNote::counters };
    (@holds ElementList) => { $crate::nft::declare::AttributeNote::elements };
    (@holds ObjectData) => { $crate::nft::declare::AttributeNote::object };
    (@holds $Type:ident) => { $crate::nft::declare::AttributeNote::value };
    (@encode [without_nul $($note:ident)*] $value:ident, $writer:ident, $KIND:ident) => {
        $writer.without_nul($KIND, $value);
    };
    (@encode [device $($note:ident)*] $value:ident, $writer:ident, $KIND:ident) => {
        $writer.device($KIND, $value);
    };
    (@encode [context $($note:ident)*] $value:ident, $writer:ident, $KIND:ident) => {
        $writer.context($KIND, $value);
    };
    (@encode [userdata $($note:ident)*] $value:ident, $writer:ident, $KIND:ident) => {
        $writer.userdata($KIND, $value);
    };
    (@encode [$($note:ident)*] $value:ident, $writer:ident, $KIND:ident) => {
        $crate::nft::declare::Field::encode($value, $writer, $KIND);
    };
    (@identity [] $write:tt) => {};
    (@identity [table $($rest:ident)*] $write:tt) => { $write };
    (@identity [chain $($rest:ident)*] $write:tt) => { $write };
    (@identity [set $($rest:ident)*] $write:tt) => { $write };
    (@identity [name $($rest:ident)*] $write:tt) => { $write };
    (@identity [handle $($rest:ident)*] $write:tt) => { $write };
    (@identity [identity $($rest:ident)*] $write:tt) => { $write };
    (@identity [$other:ident $($rest:ident)*] $write:tt) => {
        $crate::nft::declare::builder!(@identity [$($rest)*] $write);
    };
    (@fit typed $this:ident) => {
        let $this = proptest::strategy::Strategy::prop_map($this, |mut this| {
            $crate::nft::properties::MakeConsistent::fit(&mut this);
            this
        });
        let $this = proptest::strategy::Strategy::boxed($this);
    };
    (@fit $note:ident $this:ident) => {};
    (@static $Name:ident) => { $Name };
    (@static $Name:ident $life:lifetime) => { $Name<'static> };
    (@blank $Name:ident [$family:ident]) => { $Name::empty() };
    (@blank $Name:ident []) => { $Name::default() };
    // An object without attributes is none, so it has no public `Default`.
    (@empty $Name:ident [$($life:lifetime)?] [$family:ident] { $($field:ident)* }) => {
        impl $(<$life>)? $Name $(<$life>)? {
            /// Creates it without attributes, to set them.
            #[doc(hidden)]
            #[must_use]
            pub fn empty() -> Self {
                Self {
                    $family: $crate::nft::Family::UNSPEC,
                    $($field: None,)*
                    unknown: $crate::nft::UnknownAttributes::default(),
                }
            }
        }
    };
    (@empty $Name:ident [$($life:lifetime)?] [] { $($field:ident)* }) => {
        impl $(<$life>)? Default for $Name $(<$life>)? {
            fn default() -> Self {
                Self {
                    $($field: None,)*
                    unknown: $crate::nft::UnknownAttributes::default(),
                }
            }
        }
    };
    (@owned $Name:ident [] [] $fields:tt) => {};
    (@owned $Name:ident [$life:lifetime] [$($family:ident)?] { $($field:ident)* }) => {
        impl $Name<'_> {
            /// Converts it into a value that borrows nothing.
            #[must_use]
            pub fn into_owned(self) -> $Name<'static> {
                $Name {
                    $($family: self.$family,)?
                    $($field: self.$field.map($crate::nft::declare::Field::into_static),)*
                    unknown: self.unknown,
                }
            }
        }
    };
}
pub(in crate::nft) use builder;

/// Reads the attributes of a struct, in any order. An object has a family besides them.
macro_rules! read_fields {
    ($bytes:ident, [$($family:ident)?] { $($KIND:ident => $field:ident,)* $(_ => $PAD:ident,)? }) => {{
        let mut attributes = $crate::netlink::Attributes::new($bytes);
        // Finds all attributes first, then decodes each value directly into its field.
        $(let mut $field = None;)*
        let mut others = false;
        while !attributes.at_end() {
            let (kind, payload) = attributes.advance()?;
            let _ = payload; // unused for an expression without attributes
            match kind {
                $($KIND => $field = Some(payload),)*
                $($PAD => {})?
                _ => others = true,
            }
        }
        Ok(Self {
            $($family,)?
            $($field: match $field {
                None => None,
                Some(payload) => match $crate::nft::declare::Field::decode(payload) {
                    None => {
                        let kind = stringify!($KIND);
                        return Err($crate::nft::declare::no_value(kind, $bytes, payload));
                    }
                    value => value,
                },
            },)*
            unknown: match others {
                false => $crate::nft::UnknownAttributes::NONE,
                true => $crate::nft::UnknownAttributes::of(
                    $crate::netlink::Attributes::new($bytes),
                    Self::ATTRIBUTES,
                ),
            },
        })
    }};
}
pub(in crate::nft) use read_fields;

/// Declares a group of attributes: a struct that is read from and written to bytes, and is itself the
/// value of the attribute that contains them. If it also has a view, the view's name and its description
/// follow the struct's name; after that comes the order in which the kernel lists the attributes, if it
/// differs from the order in which they are declared and written (`listed as`).
macro_rules! attributes {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident $(<$life:lifetime>)?
        viewed as $View:ident, ($($what:literal),+) $(, listed as [$($order:ident),*])? =>
        $body:tt
    ) => {
        $crate::nft::declare::attributes! {
            $(#[$meta])*
            pub struct $Name $(<$life>)? $body
        }

        $crate::nft::declare::view! {
            #[doc = concat!("A borrowed view of ", $($what,)+ ", as the kernel sent it: [`struct@", stringify!($Name), "`] for reading.")]
            $View of $Name [$($life)?] [] [$($($order)*)?] $body
        }

        impl<'a> $View<'a> {
            /// Parses the attributes in `bytes`; skips unknown ones.
            ///
            /// # Errors
            /// [`Malformed`](crate::netlink::Malformed) if an attribute does not fit or is not a value of
            /// its type.
            #[inline(always)]
            pub fn parse(bytes: &'a [u8]) -> Result<Self, $crate::netlink::Malformed> {
                Self::of_attributes((), bytes)
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $Name:ident $(<$life:lifetime>)? {
            $(
                $(#[$field_meta:meta])*
                $KIND:ident => $field:ident : $Type:ident $(<$of:lifetime>)? $([$($note:ident),+])?,
            )*
            $(_ => $PAD:ident,)?
        }
    ) => {
        $crate::nft::declare::builder! {
            $(#[$meta])*
            pub struct $Name [$($life)?] [] [] {
                $(
                    $(#[$field_meta])*
                    $KIND => $field: $Type $(<$of>)? $([$($note),+])?,
                )*
                $(_ => $PAD,)?
            }
        }

        impl $(<$life>)? $Name $(<$life>)? {
            /// Parses the attributes in `bytes`; keeps unknown ones.
            ///
            /// # Errors
            /// [`Malformed`](crate::netlink::Malformed) if an attribute does not fit or is not a value of
            /// its type.
            #[doc(hidden)]
            #[inline(always)]
            pub fn from_attributes(
                bytes: & $($life)? [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                $crate::nft::declare::read_fields!(bytes, [] { $($KIND => $field,)* $(_ => $PAD,)? })
            }
        }

        $crate::nft::declare::attributes!(@nested $Name $($life)?);

        #[cfg(any(test, feature = "testing"))]
        #[test]
        #[allow(non_snake_case, reason = "each declaration has a test of its own name")]
        fn $Name() {
            $crate::nft::properties::attributes($Name::ATTRIBUTES, |bytes| {
                let value = $Name::from_attributes(bytes).ok();
                value.map($crate::nft::declare::Field::into_static)
            });
        }
    };
    (@nested $Name:ident) => {
        impl<'f> $crate::nft::declare::Field<'f> for $Name {
            type Static = Self;
            $crate::nft::declare::nested_field!('f, |bytes| Self::from_attributes(bytes).ok());
            $crate::nft::declare::attributes!(@encode);
            fn into_static(self) -> Self {
                self
            }
        }
    };
    (@nested $Name:ident $life:lifetime) => {
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
        fn normalize(&mut self) {
            self.normalize_fields();
        }
    };
}
pub(in crate::nft) use attributes;

/// Declares an object: a builder (a family and one `Option` per attribute) and a borrowed view with one
/// accessor per attribute. The attributes are declared in the order in which the kernel sends them, so
/// that a view is parsed in a single pass; any other order is parsed as well. If the attributes are
/// written in another order, it follows the view's name (`written as`).
macro_rules! object {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident viewed as $View:ident, $what:literal
        $(, written as [$($order:ident),*])? {
            $(
                $(#[$field_meta:meta])*
                $KIND:ident => $field:ident : $Type:ident $(<$of:lifetime>)? $([$($note:ident),+])?,
            )*
            $(_ => $PAD:ident,)?
        }
    ) => {
        $crate::nft::declare::object! {
            @declared $(#[$meta])*
            pub struct $Name viewed as $View, $what $(, written as [$($order),*])? {
                $(
                    $(#[$field_meta])*
                    $KIND => $field: $Type $(<$of>)? $([$($note),+])?,
                )*
                $(_ => $PAD,)?
            }
        }

        impl<'a> $Name<'a> {
            /// Parses the attributes of a request or listing in any order; keeps unknown ones.
            #[allow(dead_code, reason = "of lists of elements")]
            pub(in crate::nft) fn from_attributes(
                family: $crate::nft::Family,
                bytes: &'a [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                $crate::nft::declare::read_fields!(
                    bytes, [family] { $($KIND => $field,)* $(_ => $PAD,)? }
                )
            }
        }
    };
    (
        @declared
        $(#[$meta:meta])*
        pub struct $Name:ident viewed as $View:ident, $what:literal
        $(, written as [$($order:ident),*])? { $($body:tt)* }
    ) => {
        $crate::nft::declare::builder! {
            $(#[$meta])*
            pub struct $Name ['a] [family] [$($($order)*)?] { $($body)* }
        }

        $crate::nft::declare::view! {
            #[doc = concat!("A borrowed view of ", $what, ", as the kernel sent it: [`", stringify!($Name), "`] for reading.")]
            $View of $Name ['a] [family] [] { $($body)* }
        }

        impl<'a> $View<'a> {
            #[doc = concat!("Reads a message of the kernel as ", $what, ".")]
            ///
            /// # Errors
            /// [`Malformed`](crate::netlink::Malformed) if an attribute does not fit, is not a value of
            /// its type, or is missing although the kernel always sends it.
            #[inline(always)]
            pub fn parse(
                message: &$crate::netlink::Message<'a>,
            ) -> Result<Self, $crate::netlink::Malformed> {
                Self::of_payload(message.payload)
            }

            /// Like [`parse`](Self::parse), for the payload after the message's header.
            #[doc(hidden)]
            #[inline(always)]
            pub fn of_payload(
                payload: &'a [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                let (header, bytes) = $crate::netlink::NfGenMsg::split(payload)?;
                Self::of_attributes($crate::nft::Family(header.family), bytes)
            }

            /// Returns the address family that the object belongs to.
            #[inline]
            #[must_use]
            pub const fn family(&self) -> $crate::nft::Family {
                self.head
            }
        }

        #[cfg(any(test, feature = "testing"))]
        impl $crate::nft::properties::Declared for $Name<'static> {
            const KINDS: &'static [(u16, &'static str)] = Self::ATTRIBUTES;
            fn family(&self) -> $crate::nft::Family {
                self.family
            }
            fn write(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_attributes(writer);
            }
            fn has_unknown(&self) -> bool {
                !self.unknown.is_empty()
            }
            fn without_listed(self) -> Self {
                self.without_listed()
            }
            fn read(payload: &[u8]) -> Result<Self, $crate::netlink::Malformed> {
                let view = $View::of_payload(payload)?;
                let _ = format!("{view:?} {view:#?}");
                let this = view.to_builder().into_owned();
                // Both parsers return the same.
                let slow = $View::in_any_order(view.head, view.all)?;
                assert_eq!(slow.to_builder(), this);
                Ok(this)
            }
        }

        #[cfg(any(test, feature = "testing"))]
        #[test]
        #[allow(non_snake_case, reason = "each declaration has a test of its own name")]
        fn $Name() {
            $crate::nft::properties::object::<$Name<'static>>();
        }
    };
}
pub(in crate::nft) use object;

/// A strategy for a field, given its notes.
#[cfg(any(test, feature = "testing"))]
macro_rules! any_field {
    ([required $($note:ident)*] $Type:ty, $depth:ident) => {
        $crate::nft::properties::always::<$Type>($depth)
    };
    ([$($note:ident)*] $Type:ty, $depth:ident) => {
        $crate::nft::properties::maybe::<$Type>($depth)
    };
}
#[cfg(any(test, feature = "testing"))]
pub(in crate::nft) use any_field;

/// A strategy for a struct, given a strategy for each of its fields.
#[cfg(any(test, feature = "testing"))]
macro_rules! any_fields {
    ($blank:expr $(, $field:ident = $strategy:expr)* $(,)?) => {{
        use proptest::strategy::Strategy;
        let this = proptest::strategy::Just($blank).boxed();
        $(let this = (this, $strategy)
            .prop_map(|(mut this, value)| {
                this.$field = value;
                this
            })
            .boxed();)*
        this
    }};
}
#[cfg(any(test, feature = "testing"))]
pub(in crate::nft) use any_fields;
