//! Numbers with named values, and sets of flags.

/// Implements reading a [`Field`](super::Field) as a number, which `$of` converts.
macro_rules! read_as_number {
    ($life:lifetime, $number:ty, $of:expr) => {
        const WIDE: bool = size_of::<$number>() == 8;
        #[inline(always)]
        fn parse_payload(payload: &$life [u8]) -> Option<Self> {
            <$number as $crate::nft::declare::Field<$life>>::parse_payload(payload).map($of)
        }
        #[inline(always)]
        fn next(
            attributes: &mut $crate::netlink::AttributeCursor<$life>,
            kind: u16,
        ) -> Result<Option<Self>, $crate::netlink::FastPathMiss> {
            let number = <$number as $crate::nft::declare::Field<$life>>::next(attributes, kind);
            number.map(|number| number.map($of))
        }
    };
}
pub(in crate::nft) use read_as_number;

/// Declares a number with named values. Values without a name are preserved and formatted as numbers. If a value has
/// several numbers, a method returns its normal form.
macro_rules! values {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident: $number:ty $(, normalized by $normal:ident)? {
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

            /// Returns the value's name, as printed by `nft`; `None` if it has no name here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                $(if self.0 == $value {
                    return Some($text);
                })*
                None
            }
        }

        impl std::str::FromStr for $Name {
            type Err = $crate::nft::UnknownName;

            /// Returns the value with this name. A number is not a name.
            fn from_str(name: &str) -> Result<Self, $crate::nft::UnknownName> {
                match name {
                    $($text => Ok(Self($value)),)*
                    _ => Err($crate::nft::UnknownName::new(stringify!($Name), name)),
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
            $crate::nft::declare::read_as_number!('a, $number, Self);
            #[inline]
            fn encode(&self, writer: &mut $crate::netlink::MessageWriter<'_>, kind: u16) {
                self.0.encode(writer, kind);
            }
            $(fn normalize(&mut self) {
                *self = self.$normal();
            })?
        }

        #[cfg(any(test, feature = "testing"))]
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
pub(in crate::nft) use values;

/// Serializes a number as its name, or as the number if it has none; deserializes both.
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
                    Named::Name(name) => name.parse().map_err(serde::de::Error::custom),
                }
            }
        }
    };
}
pub(in crate::nft) use named_in_serde;

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
                /// Preserves bits unknown to this version of the crate.
                const _ = !0;
            }
        }

        #[allow(dead_code, reason = "of flags that the kernel does not look at")]
        impl $Name {
            /// Returns all flags named here.
            #[doc(hidden)]
            pub const fn all_named() -> Self {
                Self::from_bits_retain(0 $(| $value)*)
            }
        }

        impl<'a> $crate::nft::declare::Field<'a> for $Name {
            $crate::nft::declare::plain_field!();
            $crate::nft::declare::read_as_number!('a, $number, Self::from_bits_retain);
            #[inline]
            fn encode(&self, writer: &mut $crate::netlink::MessageWriter<'_>, kind: u16) {
                self.bits().encode(writer, kind);
            }
        }

        #[cfg(any(test, feature = "testing"))]
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
pub(in crate::nft) use flags;

/// Declares a time in milliseconds, as a number of this type; a view returns it as a
/// [`Duration`](std::time::Duration).
macro_rules! milliseconds {
    ($(#[$meta:meta])* pub struct $Name:ident: $number:ty;) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(transparent))]
        pub struct $Name(pub $number);

        impl From<std::time::Duration> for $Name {
            /// Rounds up to whole milliseconds, because 0 often means no timeout; saturates at the
            /// maximum of the number.
            fn from(time: std::time::Duration) -> Self {
                let milliseconds = time.as_nanos().div_ceil(1_000_000);
                Self(milliseconds.try_into().unwrap_or(<$number>::MAX))
            }
        }

        impl From<$Name> for std::time::Duration {
            fn from($Name(milliseconds): $Name) -> Self {
                Self::from_millis(milliseconds.into())
            }
        }

        impl<'a> $crate::nft::declare::Field<'a> for $Name {
            type Parsed = Self;
            type View = std::time::Duration;
            type Static = Self;
            $crate::nft::declare::read_as_number!('a, $number, Self);
            #[inline(always)]
            fn view(parsed: Self) -> std::time::Duration {
                parsed.into()
            }
            #[inline]
            fn value(parsed: Self) -> Self {
                parsed
            }
            #[inline]
            fn encode(&self, writer: &mut $crate::netlink::MessageWriter<'_>, kind: u16) {
                self.0.encode(writer, kind);
            }
            fn into_static(self) -> Self {
                self
            }
        }

        #[cfg(any(test, feature = "testing"))]
        impl $crate::nft::properties::Arbitrary for $Name {
            type Value = Self;
            fn arbitrary(depth: u32) -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy;
                <$number>::arbitrary(depth).prop_map(Self).boxed()
            }
        }
    };
}
pub(in crate::nft) use milliseconds;
