//! Borrowed views: one accessor per attribute, over the bytes received from the kernel.

/// Declares a view, given the order in which the kernel lists the attributes, if it differs from the
/// order of declaration. The head of a view precedes the attributes: the family of an object, nothing
/// for other groups.
macro_rules! view {
    (
        #[doc = $doc:expr]
        $View:ident of $Name:ident [$($life:lifetime)?] [$($family:ident)?] [] {
            $(
                $(#[$field_meta:meta])*
                $KIND:ident => $field:ident : $Type:ident $(<$of:lifetime>)? $([$($note:ident),+])?,
            )*
            $(_ => $PAD:ident,)?
        }
    ) => {
        $crate::nft::declare::view! {
            @ordered #[doc = $doc]
            $View of $Name [$($life)?] [$($family)?] [$($field)*] {
                $(
                    $(#[$field_meta])*
                    $KIND => $field: $Type $(<$of>)? $([$($note),+])?,
                )*
                $(_ => $PAD,)?
            }
        }
    };
    (
        #[doc = $doc:expr]
        $View:ident of $Name:ident $life:tt $family:tt [$($order:ident)+] $body:tt
    ) => {
        $crate::nft::declare::view! {
            @ordered #[doc = $doc] $View of $Name $life $family [$($order)+] $body
        }
    };
    (
        @ordered #[doc = $doc:expr]
        $View:ident of $Name:ident [$($life:lifetime)?] [$($family:ident)?] [$($order:ident)*] {
            $(
                $(#[$field_meta:meta])*
                $KIND:ident => $field:ident : $Type:ident $(<$of:lifetime>)? $([$($note:ident),+])?,
            )*
            $(_ => $PAD:ident,)?
        }
    ) => {
        #[doc = $doc]
        ///
        /// All attributes are found and checked in one pass; nested ones are decoded on access.
        #[derive(Clone, Copy)]
        pub struct $View<'a> {
            head: $crate::nft::declare::view!(@head $($family)?),
            all: &'a [u8],
            $($field: $crate::nft::declare::view!(@parsed [$($($note)+)?] $Type $(<$of>)?),)*
        }

        #[allow(clippy::len_without_is_empty, reason = "the kernel's `len` of an expression counts nothing")]
        impl<'a> $View<'a> {
            #[inline(always)]
            fn of_attributes(
                head: $crate::nft::declare::view!(@head $($family)?),
                bytes: &'a [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                if let Some(this) = Self::in_order(head, bytes) {
                    return Ok(this);
                }
                // Moved field by field, so that the compiler can keep the values of the common case
                // above in registers.
                let Self { head, all, $($field,)* } = Self::in_any_order(head, bytes)?;
                Ok(Self { head, all, $($field,)* })
            }

            /// Parses the attributes in a single pass if they are in the kernel's order; otherwise
            /// returns `None`.
            #[inline(always)]
            pub(in crate::nft) fn in_order(
                head: $crate::nft::declare::view!(@head $($family)?),
                bytes: &'a [u8],
            ) -> Option<Self> {
                #[allow(unused_mut, reason = "of an expression that knows no attributes")]
                let mut attributes = $crate::netlink::AttributeCursor::new(bytes);
                const PADDING: u16 = 0 $(+ $PAD)?;
                const {
                    assert!(
                        PADDING != 0 || !(false $(|| <$Type as $crate::nft::declare::Field<'_>>::WIDE)*),
                        "the kernel pads 64-bit numbers"
                    );
                }
                $(let $field;)*
                // Expanded once per field, in order.
                macro_rules! step {
                    () => {};
                    $(($field) => {
                        $crate::nft::declare::view! {
                            @step [$($($note)+)?] $KIND $field $Type $(<$of>)?, attributes
                        }
                    };)*
                }
                $(step!($order);)*
                step!();
                attributes
                    .at_end()
                    .then_some(Self { head, all: bytes, $($field,)* })
            }

            /// Parses the attributes in any order, as another kernel may send them, and reports
            /// malformed ones. Of duplicate attributes the last one counts, as in the kernel.
            #[cold]
            pub(in crate::nft) fn in_any_order(
                head: $crate::nft::declare::view!(@head $($family)?),
                bytes: &'a [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                let mut attributes = $crate::netlink::Attributes::new(bytes);
                $(let mut $field = None;)*
                while !attributes.at_end() {
                    let (kind, payload) = attributes.advance()?;
                    let _ = payload; // unused for an expression without attributes
                    match kind {
                        $($KIND => {
                            $field = <$Type $(<$of>)? as $crate::nft::declare::Field<'a>>::parse_payload(payload);
                            if $field.is_none() {
                                let kind = stringify!($KIND);
                                return Err($crate::nft::declare::no_value(kind, bytes, payload));
                            }
                        })*
                        _ => {}
                    }
                }
                Ok(Self {
                    head,
                    all: bytes,
                    $($field: $crate::nft::declare::view!(@found [$($($note)+)?] $KIND $field),)*
                })
            }

            $($crate::nft::declare::view! {
                @accessor [$($($note)+)?]
                $(#[$field_meta])*
                #[doc = concat!("\n\n`", stringify!($KIND), "`")]
                $field $Type $(<$of>)?
            })*

            /// Returns all received attributes, including those unknown to this version of the crate.
            #[must_use]
            pub const fn attributes(&self) -> $crate::netlink::Attributes<'a> {
                $crate::netlink::Attributes::new(self.all)
            }

            /// Converts the view to a struct that can be changed and written, borrowing from the same
            /// bytes. An object keeps its handle, so that it can be replaced or deleted; clear the
            /// handle to add a copy.
            #[must_use]
            pub fn to_builder(&self) -> $crate::nft::declare::view!(@type $Name $($life)?) {
                $Name {
                    $($family: self.head,)?
                    $($field: $crate::nft::declare::view!(
                        @builder [$($($note)+)?] self $field $Type $(<$of>)?
                    ),)*
                    unknown: $crate::nft::UnknownAttributes::of(
                        self.attributes(),
                        $Name::ATTRIBUTES,
                    ),
                }
            }
        }

        impl $(<$life>)? $Name $(<$life>)? {
            /// Writes the attributes that are set, in the order in which the kernel lists them, and then the unknown
            /// ones.
            #[doc(hidden)]
            pub fn write_listed(
                &self,
                writer: &mut $crate::netlink::MessageWriter<'_>,
            ) {
                // Expanded once per field, in order.
                macro_rules! step {
                    () => {};
                    $(($field) => {
                        if let Some(value) = &self.$field {
                            $crate::nft::declare::Field::encode(value, writer, $KIND);
                        }
                    };)*
                }
                $(step!($order);)*
                step!();
                self.unknown.write(writer);
            }
        }

        impl std::fmt::Debug for $View<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut out = f.debug_struct(stringify!($View));
                $(out.field(stringify!($family), &self.head);)?
                $($crate::nft::declare::view!(@debug [$($($note)+)?] out self $field);)*
                out.finish()
            }
        }

        #[cfg(any(test, feature = "testing"))]
        #[allow(dead_code, reason = "unused for declarations that are no objects")]
        impl $(<$life>)? $Name $(<$life>)? {
            /// Clears attributes that mean something else in a listing.
            #[allow(unused_mut, reason = "unused for declarations without attributes that differ in listings")]
            fn without_listed(mut self) -> Self {
                $($crate::nft::declare::view!(@clear [$($($note)+)?] self $field);)*
                self
            }
        }
    };
    (@type $Name:ident) => { $Name };
    (@type $Name:ident $life:lifetime) => { $Name<'a> };
    (@head) => { () };
    (@head family) => { $crate::nft::Family };
    (@parsed [required $($note:ident)*] $Type:ty) => {
        <$Type as $crate::nft::declare::Field<'a>>::Parsed
    };
    (@parsed [$($note:ident)*] $Type:ty) => {
        Option<<$Type as $crate::nft::declare::Field<'a>>::Parsed>
    };
    (@step [required $($note:ident)*] $KIND:ident $field:ident $Type:ty, $attributes:ident) => {
        $field = $crate::nft::declare::next_padded::<$Type, PADDING>(&mut $attributes, $KIND).ok()??;
    };
    (@step [request_only $($note:ident)*] $KIND:ident $field:ident $Type:ty, $attributes:ident) => {
        $field = None; // if present anyway, the pass in any order finds it
    };
    (@step [$($note:ident)*] $KIND:ident $field:ident $Type:ty, $attributes:ident) => {
        $field = $crate::nft::declare::next_padded::<$Type, PADDING>(&mut $attributes, $KIND).ok()?;
    };
    (@found [required $($note:ident)*] $KIND:ident $field:ident) => {
        $field.ok_or($crate::netlink::Malformed {
            what: stringify!($KIND),
            offset: 0,
            reason: "missing attribute that the kernel always sends",
        })?
    };
    (@found [$($note:ident)*] $KIND:ident $field:ident) => { $field };
    (@builder [required $($note:ident)*] $this:ident $field:ident $Type:ty) => {
        Some(<$Type as $crate::nft::declare::Field<'a>>::value($this.$field))
    };
    (@builder [typed $($note:ident)*] $this:ident $field:ident $Type:ty) => { $this.$field() };
    (@builder [dump_form $($note:ident)*] $this:ident $field:ident $Type:ty) => { None };
    (@builder [$($note:ident)*] $this:ident $field:ident $Type:ty) => {
        $this.$field.map(<$Type as $crate::nft::declare::Field<'a>>::value)
    };
    (@debug [required $($note:ident)*] $out:ident $this:ident $field:ident) => {
        $out.field(stringify!($field), &$this.$field());
    };
    (@debug [$($note:ident)*] $out:ident $this:ident $field:ident) => {
        if let Some(value) = $this.$field() {
            $out.field(stringify!($field), &value);
        }
    };
    (@clear [dump_form $($note:ident)*] $this:ident $field:ident) => { $this.$field = None };
    (@clear [$($note:ident)*] $this:ident $field:ident) => {};
    (@accessor [required $($note:ident)*] $(#[$meta:meta])* $field:ident $Type:ident $(<$of:lifetime>)?) => {
        $(#[$meta])*
        #[inline]
        #[must_use]
        pub fn $field(&self) -> $crate::nft::declare::plain!($Type $(<$of>)?) {
            <$Type $(<$of>)? as $crate::nft::declare::Field<'a>>::view(self.$field)
        }
    };
    (@accessor [typed $($note:ident)*] $(#[$meta:meta])* $field:ident $Type:ident $(<$of:lifetime>)?) => {
        $(#[$meta])*
        #[must_use]
        pub fn $field(&self) -> Option<$Type $(<$of>)?> {
            let typed = |parsed| $crate::nft::declare::Typed::of(self, parsed);
            self.$field.map(typed)
        }
    };
    (@accessor [$($note:ident)*] $(#[$meta:meta])* $field:ident $Type:ident $(<$of:lifetime>)?) => {
        $(#[$meta])*
        #[inline]
        #[must_use]
        pub fn $field(&self) -> Option<$crate::nft::declare::plain!($Type $(<$of>)?)> {
            self.$field.map(<$Type $(<$of>)? as $crate::nft::declare::Field<'a>>::view)
        }
    };
}
pub(in crate::nft) use view;

/// Maps a field's type to the type that a view returns: a borrow for types that own data.
macro_rules! plain {
    (Name<$of:lifetime>) => { &$of bstr::BStr };
    (Bytes<$of:lifetime>) => { &$of [u8] };
    (Expressions<$of:lifetime>) => { $crate::nft::expr::ExpressionIter<$of> };
    (ElementList<$of:lifetime>) => { $crate::nft::ElementIter<$of> };
    (Milliseconds) => { std::time::Duration };
    (Milliseconds32) => { std::time::Duration };
    ($Type:ident $(<$of:lifetime>)?) => { $Type $(<$of>)? };
}
pub(in crate::nft) use plain;
