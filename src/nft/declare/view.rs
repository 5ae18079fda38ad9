//! Borrowed views: one accessor an attribute, over the bytes that the kernel sent.

/// Declares a view, given the order in which the kernel lists the attributes, if that is not the one in
/// which they are declared. What the attributes stand behind (the family of an object, nothing of any
/// other group) is its head.
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
        /// The attributes are found and checked in one pass; nested ones are read when they are
        /// asked for.
        #[derive(Clone, Copy)]
        pub struct $View<'a> {
            head: $crate::nft::declare::view!(@head $($family)?),
            all: &'a [u8],
            $($field: $crate::nft::declare::view!(@kept [$($($note)+)?] $Type $(<$of>)?),)*
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
                // Taken over field by field, so that the values of the common case above can stay
                // in registers.
                let Self { head, all, $($field,)* } = Self::in_any_order(head, bytes)?;
                Ok(Self { head, all, $($field,)* })
            }

            /// Reads the attributes in one straight pass, if they stand in the kernel's order; `None`
            /// if anything is not so.
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
                        "the kernel pads numbers of 64 bits"
                    );
                }
                $(let $field;)*
                // The steps, to be taken in order.
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

            /// Finds the attributes wherever they stand, as another kernel may send them, and says
            /// what is malformed; of an attribute that stands twice the last one counts, as in the
            /// kernel.
            #[cold]
            pub(in crate::nft) fn in_any_order(
                head: $crate::nft::declare::view!(@head $($family)?),
                bytes: &'a [u8],
            ) -> Result<Self, $crate::netlink::Malformed> {
                let mut attributes = $crate::netlink::Attributes::new(bytes);
                $(let mut $field = None;)*
                while !attributes.at_end() {
                    let (kind, payload) = attributes.advance()?;
                    let _ = payload; // of an expression that knows no attributes
                    match kind {
                        $($KIND => {
                            $field = <$Type $(<$of>)? as $crate::nft::declare::Field<'a>>::keep(payload);
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

            /// All attributes as they came, those included that this version of the crate does
            /// not know.
            #[must_use]
            pub const fn attributes(&self) -> $crate::netlink::Attributes<'a> {
                $crate::netlink::Attributes::new(self.all)
            }

            /// The same as a struct that can be changed and written, borrowing from the same bytes.
            /// An object keeps its handle in it, so that it can be replaced or deleted: leave that out
            /// to add a copy.
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

        #[allow(dead_code, reason = "of what the model does not list")]
        impl $(<$life>)? $Name $(<$life>)? {
            /// Writes the attributes that are set, in the order in which the kernel lists them.
            #[doc(hidden)]
            pub fn write_listed(
                &self,
                writer: &mut $crate::netlink::MessageWriter<'_>,
            ) {
                // The steps, to be taken in order.
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
                let _ = writer; // of an expression that knows no attributes
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
        #[allow(dead_code, reason = "of what is no object")]
        impl $(<$life>)? $Name $(<$life>)? {
            /// Without what means something else in a listing.
            #[allow(unused_mut, reason = "of what lists nothing else than it is told")]
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
    (@kept [required $($note:ident)*] $Type:ty) => {
        <$Type as $crate::nft::declare::Field<'a>>::Kept
    };
    (@kept [$($note:ident)*] $Type:ty) => {
        Option<<$Type as $crate::nft::declare::Field<'a>>::Kept>
    };
    (@step [required $($note:ident)*] $KIND:ident $field:ident $Type:ty, $attributes:ident) => {
        $field = $crate::nft::declare::next_padded::<$Type, PADDING>(&mut $attributes, $KIND).ok()??;
    };
    (@step [written $($note:ident)*] $KIND:ident $field:ident $Type:ty, $attributes:ident) => {
        $field = None; // if it is there all the same, the pass in any order finds it
    };
    (@step [$($note:ident)*] $KIND:ident $field:ident $Type:ty, $attributes:ident) => {
        $field = $crate::nft::declare::next_padded::<$Type, PADDING>(&mut $attributes, $KIND).ok()?;
    };
    (@found [required $($note:ident)*] $KIND:ident $field:ident) => {
        $field.ok_or($crate::netlink::Malformed {
            what: stringify!($KIND),
            offset: 0,
            reason: "the attribute is missing though the kernel always sends it",
        })?
    };
    (@found [$($note:ident)*] $KIND:ident $field:ident) => { $field };
    (@builder [required $($note:ident)*] $this:ident $field:ident $Type:ty) => {
        Some(<$Type as $crate::nft::declare::Field<'a>>::value($this.$field))
    };
    (@builder [typed $($note:ident)*] $this:ident $field:ident $Type:ty) => { $this.$field() };
    (@builder [listed $($note:ident)*] $this:ident $field:ident $Type:ty) => { None };
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
    (@clear [listed $($note:ident)*] $this:ident $field:ident) => { $this.$field = None };
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
            let typed = |kept| $crate::nft::declare::Typed::of(self, kept);
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

/// What a view gives for a field of this type: itself, but for those that would own something.
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
