//! Declarations: one table of (attribute, field, type, notes) generates an object's borrowed view, its
//! builder, its `Debug`, the names used in errors, and the lists that are used to compare and restore
//! snapshots.
//!
//! - [`attributes!`](attributes) declares a group of attributes: an expression, an element, or a nested
//!   attribute.
//! - [`object!`](object) declares an object with its view.
//! - [`values!`](values) declares a number with named values, [`flags!`](flags) a set of flags.
//!
//! A line of a declaration is
//!
//! ```text
//! /// Handle of the chain.
//! NFTA_CHAIN_HANDLE => handle: u64 [required, handle],
//! ```
//!
//! The brackets contain [`AttributeNote`]s. A field's type implements [`Field`], which reads and writes its payload.
//! [`plain!`](plain) defines the type that a view returns for it.
//!
//! A group with 64-bit numbers declares its padding attribute last (`_ => NFTA_CHAIN_PAD,`): see [`padding`].

mod builder;
mod padding;
mod values;
mod view;

use bstr::BStr;
#[cfg(any(test, feature = "testing"))]
pub(in crate::nft) use builder::{any_field, any_fields};
pub(in crate::nft) use builder::{attributes, builder, object, read_fields};
pub(in crate::nft) use padding::{Padded, next_padded};
pub(in crate::nft) use values::{flags, milliseconds, named_in_serde, read_as_number, values};
pub(in crate::nft) use view::{plain, view};

use super::name::{Bytes, Name};
use crate::netlink::{AttributeCursor, FastPathMiss, Malformed, MessageWriter};

/// Properties of an attribute, besides its type, named as in declarations.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "declarations write them so")]
pub(crate) enum AttributeNote {
    /// The kernel always sends it: a message without it is malformed.
    required,
    /// Only ever sent to the kernel.
    request_only,
    /// Means something else in a listing than in a request, or is ignored there; builders made from a view
    /// omit it.
    dump_form,
    /// Its meaning depends on the other attributes: see [`Typed`].
    typed,
    /// Set by the kernel: neither compared nor restored.
    kernel_set,
    /// Changes over time: restored, but not compared.
    volatile,
    /// Counts packets: compared only on request.
    counter,
    /// The object's handle, assigned by the kernel, which identifies the object.
    handle,
    /// Name of the object's table: identifies the object, and can filter listings.
    table,
    /// Name of its chain, used in the same way.
    chain,
    /// Name of its set, used in the same way.
    set,
    /// The object's own name, which identifies it.
    name,
    /// Identifies, together with others, an object to be removed.
    identity,
    /// The padding that some kernels put before a 64-bit number: always skipped.
    padding,
    /// A name that nft writes without a trailing NUL; the kernel accepts and lists both.
    without_nul,
    /// The name of a network device.
    device,
    /// The security context of a secmark, without a trailing NUL.
    context,
    /// User data.
    userdata,
    // // By type:
    /// Holds a list of expressions, which may have state.
    expressions,
    /// Holds one expression, which may have state.
    expression,
    /// Holds counters.
    counters,
    /// Holds a list of elements.
    elements,
    /// Holds the data of a stateful object.
    object,
    /// Holds anything else.
    value,
}

/// The type of an attribute, and its notes.
pub(crate) type AttributeNotes = (u16, &'static [AttributeNote]);

/// Returns the attribute with this note, if any.
pub(crate) const fn noted(known: &[AttributeNotes], note: AttributeNote) -> Option<u16> {
    let mut at = 0;
    while at < known.len() {
        if has(known[at].1, note) {
            return Some(known[at].0);
        }
        at += 1;
    }
    None
}

const fn has(notes: &[AttributeNote], note: AttributeNote) -> bool {
    let mut at = 0;
    while at < notes.len() {
        if notes[at] as u8 == note as u8 {
            return true;
        }
        at += 1;
    }
    false
}

/// A set of attribute types. All types of nf_tables are below 64, as the compiler checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttributeSet(u64);

impl AttributeSet {
    pub(crate) const NONE: Self = Self(0);

    /// Returns the attributes that have any of these notes.
    pub(crate) const fn noted(known: &[AttributeNotes], notes: &[AttributeNote]) -> Self {
        let mut these = Self::NONE;
        let mut at = 0;
        while at < known.len() {
            let mut note = 0;
            while note < notes.len() {
                if has(known[at].1, notes[note]) {
                    these = these.and(known[at].0);
                }
                note += 1;
            }
            at += 1;
        }
        these
    }

    /// Returns the attributes that the kernel sets and that are not sent to it.
    pub(crate) const fn kernel_set(known: &[AttributeNotes]) -> Self {
        const KERNEL_SET: &[AttributeNote] = &[
            AttributeNote::kernel_set,
            AttributeNote::handle,
            AttributeNote::dump_form,
            AttributeNote::padding,
        ];
        Self::noted(known, KERNEL_SET)
    }

    /// Returns the attributes that are ignored in comparisons of objects.
    pub(crate) const fn not_compared(known: &[AttributeNotes]) -> Self {
        Self(Self::kernel_set(known).0 | Self::noted(known, &[AttributeNote::volatile]).0)
    }

    /// Adds one more.
    #[must_use]
    pub(crate) const fn and(self, kind: u16) -> Self {
        assert!(kind < 64, "invariant: nf_tables' attributes are fewer");
        Self(self.0 | 1 << kind)
    }

    pub(crate) const fn contains(self, kind: u16) -> bool {
        kind < 64 && self.0 & 1 << kind != 0
    }
}

/// The value of an attribute: how it is read from and written to a payload.
#[doc(hidden)]
pub trait Field<'a>: Sized {
    /// The checked payload as stored in a view: the value of a plain number or name, the bytes of a nested
    /// attribute.
    type Parsed: Copy;
    /// The type that a view returns: the value itself, or a borrow.
    type View;
    /// The value without borrows.
    type Static: 'static;
    /// Whether it is a 64-bit number, before which the kernel may put padding.
    const WIDE: bool = false;

    /// Checks a payload; returns `None` if it is not a value of this type.
    fn parse_payload(payload: &'a [u8]) -> Option<Self::Parsed>;
    /// Reads the next attribute if it is of this kind; returns `None` otherwise.
    #[inline(always)]
    fn next(
        attributes: &mut AttributeCursor<'a>,
        kind: u16,
    ) -> Result<Option<Self::Parsed>, FastPathMiss> {
        match attributes.payload(kind)? {
            None => Ok(None),
            Some(payload) => match Self::parse_payload(payload) {
                None => Err(FastPathMiss),
                parsed => Ok(parsed),
            },
        }
    }
    /// Returns the view of a checked payload.
    fn view(parsed: Self::Parsed) -> Self::View;
    /// Returns the value of a checked payload.
    fn value(parsed: Self::Parsed) -> Self;
    /// Decodes a payload, borrowing from it; returns `None` if it is not a value of this type.
    fn decode(payload: &'a [u8]) -> Option<Self> {
        Self::parse_payload(payload).map(Self::value)
    }
    /// Writes the attribute.
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16);
    /// Converts it into a value that borrows nothing.
    fn into_static(self) -> Self::Static;
    /// Brings the value into its normal form: see [`normal`](super::normalize).
    fn normalize(&mut self) {}
}

/// A value that cannot be decoded from its payload alone, but depends on the view that contains it.
pub(in crate::nft) trait Typed<'a, View>: Field<'a> {
    /// Decodes a payload stored in this view.
    fn of(view: &View, parsed: Self::Parsed) -> Self;
}

/// The items of [`Field`] shared by all values that borrow nothing.
macro_rules! plain_field {
    () => {
        type Parsed = Self;
        type View = Self;
        type Static = Self;
        #[inline(always)]
        fn view(parsed: Self) -> Self {
            parsed
        }
        #[inline]
        fn value(parsed: Self) -> Self {
            parsed
        }
        fn into_static(self) -> Self {
            self
        }
    };
}
pub(in crate::nft) use plain_field;

macro_rules! number_field {
    ($($number:ty, $write:ident, $whole:literal;)*) => {$(
        impl<'a> Field<'a> for $number {
            plain_field!();
            const WIDE: bool = size_of::<Self>() == 8;
            #[inline(always)]
            fn parse_payload(payload: &'a [u8]) -> Option<Self> {
                payload.first_chunk().copied().map(<$number>::from_be_bytes)
            }
            #[inline(always)]
            fn next(attributes: &mut AttributeCursor<'a>, kind: u16) -> Result<Option<Self>, FastPathMiss> {
                let number = attributes.number::<{ size_of::<$number>() }, $whole>(kind);
                Ok(number.map(<$number>::from_be_bytes))
            }
            #[inline]
            fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
                writer.$write(kind, *self as _);
            }
        }
    )*};
}

number_field! {
    u8, u8, 8;
    u16, be16, 8;
    u32, be32, 8;
    i32, be32, 8;
    u64, be64, 12;
}

impl<'a> Field<'a> for Name<'a> {
    type Parsed = &'a BStr;
    type View = &'a BStr;
    type Static = Name<'static>;

    #[inline(always)]
    fn parse_payload(payload: &'a [u8]) -> Option<&'a BStr> {
        Some(BStr::new(match payload {
            [name @ .., 0] => name,
            name => name,
        }))
    }
    #[inline(always)]
    fn view(parsed: &'a BStr) -> &'a BStr {
        parsed
    }
    #[inline]
    fn value(parsed: &'a BStr) -> Self {
        parsed.into()
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
    type Parsed = &'a [u8];
    type View = &'a [u8];
    type Static = Bytes<'static>;

    #[inline(always)]
    fn parse_payload(payload: &'a [u8]) -> Option<&'a [u8]> {
        Some(payload)
    }
    #[inline(always)]
    fn view(parsed: &'a [u8]) -> &'a [u8] {
        parsed
    }
    #[inline]
    fn value(parsed: &'a [u8]) -> Self {
        Bytes::borrowed(parsed)
    }
    #[inline]
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.bytes(kind, self);
    }
    fn into_static(self) -> Bytes<'static> {
        self.into_owned()
    }
}

/// The items of [`Field`] shared by all nested values: a view stores the bytes and decodes them on access.
/// The second argument decodes them.
macro_rules! nested_field {
    ($life:lifetime, $read:expr) => {
        type Parsed = &$life [u8];
        type View = Self;

        fn parse_payload(payload: &$life [u8]) -> Option<&$life [u8]> {
            let read: fn(&$life [u8]) -> Option<Self> = $read;
            read(payload).map(|_| payload)
        }
        fn decode(payload: &$life [u8]) -> Option<Self> {
            let read: fn(&$life [u8]) -> Option<Self> = $read;
            read(payload) // decodes once
        }
        fn view(parsed: &$life [u8]) -> Self {
            <Self as $crate::nft::declare::Field<$life>>::value(parsed)
        }
        fn value(parsed: &$life [u8]) -> Self {
            let read: fn(&$life [u8]) -> Option<Self> = $read;
            read(parsed).expect("invariant: `parse_payload` accepts only what can be read")
        }
    };
}
pub(in crate::nft) use nested_field;

/// Returns the error for a payload, within `bytes`, that is not a value of its type.
#[cold]
pub(in crate::nft) fn no_value(what: &'static str, bytes: &[u8], payload: &[u8]) -> Malformed {
    let at = payload.as_ptr() as usize - bytes.as_ptr() as usize;
    Malformed {
        what,
        offset: at.saturating_sub(4), // the offset of its header
        reason: "the payload is not a value of its type",
    }
}
