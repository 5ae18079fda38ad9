//! Declare once: from one table of (attribute, field, type, what is known of it) come an object's
//! borrowed view, its owned builder, its Debug form, the names that errors use, and the lists by which
//! snapshots are compared and written back.
//!
//! - [`attributes!`](attributes) declares a group of attributes: an expression, an element, or a nested
//!   attribute.
//! - [`object!`](object) declares an object with its view.
//! - [`values!`](values) declares a number whose values have names, [`flags!`](flags) a set of
//!   flags.
//!
//! A line of a declaration is
//!
//! ```text
//! /// What it is.
//! NFTA_CHAIN_HANDLE => handle: u64 [required, handle],
//! ```
//!
//! and what stands in the brackets are [`Note`]s. A field's type implements [`Field`]: how its payload
//! is read and written. What a view gives for it stands in [`plain!`](plain).
//!
//! A group with numbers of 64 bits declares last which attribute its padding is (`_ => NFTA_CHAIN_PAD,`): see
//! [`padding`].

mod builder;
mod padding;
mod values;
mod view;

use bstr::BStr;
#[cfg(any(test, feature = "testing"))]
pub(in crate::nft) use builder::{any_field, any_fields};
pub(in crate::nft) use builder::{attributes, builder, object};
pub(in crate::nft) use padding::{Padded, next_padded};
pub(in crate::nft) use values::{flags, milliseconds, named_in_serde, read_as_number, values};
pub(in crate::nft) use view::{plain, view};

use super::name::{Bytes, Name};
use crate::netlink::{AttributeCursor, FastPathMiss, Malformed, MessageWriter};

/// What is known of an attribute, beside its type; the names are those that a declaration uses.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "declarations write them so")]
pub(crate) enum Note {
    /// The kernel always sends it: a message without it is malformed.
    required,
    /// Only ever sent to the kernel.
    written,
    /// What it is in a listing is another thing than in a request, or nothing there: a builder does not
    /// take it over.
    listed,
    /// What it is depends on the other attributes: see [`Typed`].
    typed,
    /// Given by the kernel: it is neither compared nor written back.
    given,
    /// Goes on by itself: it is written back, and not compared.
    passing,
    /// Counts packets: compared only if that is asked for.
    counts,
    /// The object's handle, which is given by the kernel and says which object is meant.
    handle,
    /// Name of the object's table: says which object is meant, and listings can be filtered by it.
    table,
    /// Name of its chain, likewise.
    chain,
    /// Name of its set, likewise.
    set,
    /// The object's own name: says which object is meant.
    name,
    /// Says, with others, which object is meant when it is to be removed.
    identity,
    /// The padding that some kernels put before a number of 64 bits: it is skipped everywhere.
    padding,
    /// A name that nft writes without the NUL at its end; the kernel takes and lists both.
    unended,
    /// The name of a network device.
    device,
    /// The context of a secmark, without a NUL at its end.
    context,
    /// User data.
    userdata,
    // By its type:
    /// Holds a list of expressions, which may have a state.
    expressions,
    /// Holds one expression, which may have a state.
    expression,
    /// Holds counters.
    counters,
    /// Holds a list of elements.
    elements,
    /// Holds what an object of its type has.
    object,
    /// Holds anything else.
    value,
}

/// An attribute's type, and what is known of it.
pub(crate) type Known = (u16, &'static [Note]);

/// The one attribute with this note, if there is one.
pub(crate) const fn noted(known: &[Known], note: Note) -> Option<u16> {
    let mut at = 0;
    while at < known.len() {
        if has(known[at].1, note) {
            return Some(known[at].0);
        }
        at += 1;
    }
    None
}

const fn has(notes: &[Note], note: Note) -> bool {
    let mut at = 0;
    while at < notes.len() {
        if notes[at] as u8 == note as u8 {
            return true;
        }
        at += 1;
    }
    false
}

/// A set of types of attributes. All of nf_tables' are below 64, as the compiler checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds(u64);

impl Kinds {
    pub(crate) const NONE: Self = Self(0);

    /// Those that have any of these notes.
    pub(crate) const fn noted(known: &[Known], notes: &[Note]) -> Self {
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

    /// What the kernel gives by itself and is not told.
    pub(crate) const fn given(known: &[Known]) -> Self {
        const GIVEN: &[Note] = &[Note::given, Note::handle, Note::listed, Note::padding];
        Self::noted(known, GIVEN)
    }

    /// What says nothing of whether two objects are the same.
    pub(crate) const fn not_compared(known: &[Known]) -> Self {
        Self(Self::given(known).0 | Self::noted(known, &[Note::passing]).0)
    }

    /// These and one more.
    #[must_use]
    pub(crate) const fn and(self, kind: u16) -> Self {
        assert!(kind < 64, "invariant: nf_tables' attributes are fewer");
        Self(self.0 | 1 << kind)
    }

    pub(crate) const fn contains(self, kind: u16) -> bool {
        kind < 64 && self.0 & 1 << kind != 0
    }
}

/// One attribute's value: how it is read from, and written to, a payload.
#[doc(hidden)]
pub trait Field<'a>: Sized {
    /// What a view keeps of the payload when it has checked it: the value of a plain number or
    /// name, the bytes of anything that is nested.
    type Kept: Copy;
    /// What a view gives for it: the value itself, or a borrow.
    type View;
    /// The value with nothing borrowed.
    type Static: 'static;
    /// Whether it is a number of 64 bits, before which the kernel may put padding.
    const WIDE: bool = false;

    /// Checks a payload; `None` if it is not such a value.
    fn keep(payload: &'a [u8]) -> Option<Self::Kept>;
    /// What a view keeps of the attribute that comes next, if it is of this type; none if anything else
    /// does.
    #[inline(always)]
    fn next(
        attributes: &mut AttributeCursor<'a>,
        kind: u16,
    ) -> Result<Option<Self::Kept>, FastPathMiss> {
        match attributes.payload(kind)? {
            None => Ok(None),
            Some(payload) => match Self::keep(payload) {
                None => Err(FastPathMiss),
                kept => Ok(kept),
            },
        }
    }
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
pub(in crate::nft) trait Typed<'a, View>: Field<'a> {
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
pub(in crate::nft) use plain_field;

macro_rules! number_field {
    ($($number:ty, $write:ident, $whole:literal;)*) => {$(
        impl<'a> Field<'a> for $number {
            plain_field!();
            const WIDE: bool = size_of::<Self>() == 8;
            #[inline(always)]
            fn keep(payload: &'a [u8]) -> Option<Self> {
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
pub(in crate::nft) use nested_field;

/// The payload of an attribute, somewhere in `bytes`, is not a value of its type.
#[cold]
pub(in crate::nft) fn no_value(what: &'static str, bytes: &[u8], payload: &[u8]) -> Malformed {
    let at = payload.as_ptr() as usize - bytes.as_ptr() as usize;
    Malformed {
        what,
        offset: at.saturating_sub(4), // where its header is
        reason: "the payload is not a value of its type",
    }
}
