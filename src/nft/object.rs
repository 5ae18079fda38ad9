//! Traits shared by all objects: the messages that create, get, delete and list them.

use super::Family;
use super::declare::{AttributeNote, AttributeNotes, noted};
use crate::netlink::{Malformed, MessageWriter};

/// The message types for one kind of object, `NFT_MSG_*` without the subsystem.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    /// Name of the kind: `table`, `chain`, …
    pub kind: &'static str,
    /// Creates or changes the object; also describes it in a listing.
    pub new: u8,
    /// Requests the object, or a listing.
    pub get: u8,
    /// Deletes the object, which must exist.
    pub delete: u8,
    /// Deletes the object if it exists (Linux 6.3).
    pub destroy: u8,
    /// Whether objects of this kind are ordered, so that adding one at the end requires `NLM_F_APPEND`:
    /// rules.
    pub ordered: bool,
}

/// An object that a [`Transaction`](super::Transaction) can add and delete: [`Table`](super::Table),
/// [`Chain`](super::Chain), [`Rule`](super::Rule), [`Set`](super::Set), [`Elements`](super::Elements),
/// [`StatefulObject`](super::StatefulObject) or [`Flowtable`](super::Flowtable), and nothing else.
pub trait Object: Written {}

impl<T: Written> Object for T {}

/// The attributes that identify an object in messages. Effectively private: code outside of this crate cannot name it.
pub trait Identified {
    /// The object's message types.
    const MESSAGES: Messages;

    /// Returns the family for the message's header.
    fn family(&self) -> Family;
    /// Writes the attributes that identify the object, for its deletion.
    fn write_identity(&self, writer: &mut MessageWriter<'_>);
}

/// The encoding of an object in messages. Effectively private: code outside of this crate cannot name it.
pub trait Written: Identified {
    /// The notes of its attributes.
    #[allow(
        private_interfaces,
        reason = "the trait is not nameable outside this crate"
    )]
    const ATTRIBUTE_NOTES: &'static [AttributeNotes];
    /// The names of its attributes.
    const NAMES: &'static [(u16, &'static str)];

    /// Writes all attributes that are set.
    fn write(&self, writer: &mut MessageWriter<'_>);
}

/// The form in which the kernel lists an object. Effectively private to this crate.
pub trait Listed: Written {
    /// The borrowed view of a listed object.
    type View<'a>;
    /// The filter of a listing.
    #[allow(
        private_bounds,
        reason = "the trait is not nameable outside this crate"
    )]
    type Filter<'a>: Into<super::listing::Filter<'a>>;
    /// The request's description in errors.
    const REQUEST: &'static str;
    /// Whether the kernel itself filters by all of the names below, so that the results need no further
    /// check.
    const BY_KERNEL: bool = false;
    /// Whether the kernel fails with `ENOENT` when listing objects in a table that does not exist; such
    /// a listing is then empty, like all others.
    const REFUSES_ABSENT_TABLE: bool = false;
    /// Whether the kernel marks a listing during which the ruleset changed (`NLM_F_DUMP_INTR`). It does
    /// not do so for elements (observed on Linux 6.18); there the generation in each message is
    /// compared.
    const CHANGES_ARE_MARKED: bool = true;

    /// Type of the attribute with the name of the object's table.
    const TABLE: Option<u16> = noted(Self::ATTRIBUTE_NOTES, AttributeNote::table);
    /// Type of the attribute with the name of its chain, if any.
    const CHAIN: Option<u16> = noted(Self::ATTRIBUTE_NOTES, AttributeNote::chain);
    /// Type of the attribute with the name of its set, if any.
    const SET: Option<u16> = noted(Self::ATTRIBUTE_NOTES, AttributeNote::set);

    /// Parses the payload of one message of a listing.
    ///
    /// # Errors
    /// [`Malformed`] if the message is not such an object.
    fn view(payload: &[u8]) -> Result<Self::View<'_>, Malformed>;
}

/// Implements [`Written`] for an object, given its name and its messages (new, get, delete, destroy). A
/// deletion contains the attributes that the declaration marks as identity, and, if those are
/// ambiguous, the output of the function `identity`. An addition contains all attributes that are set,
/// and the output of the function `more`, if given.
macro_rules! written {
    (
        $Object:ident, $kind:literal, [$new:ident, $get:ident, $delete:ident, $destroy:ident]
        $(, ordered: $ordered:literal)? $(, identity: $identity:expr)? $(, more: $more:expr)? $(,)?
    ) => {
        impl $crate::nft::object::Identified for $Object<'_> {
            const MESSAGES: $crate::nft::object::Messages = $crate::nft::object::Messages {
                kind: $kind,
                new: $new,
                get: $get,
                delete: $delete,
                destroy: $destroy,
                ordered: false $(|| $ordered)?,
            };

            #[inline]
            fn family(&self) -> $crate::nft::Family {
                self.family
            }

            fn write_identity(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_named(writer);
                $(let identity: fn(&Self, &mut $crate::netlink::MessageWriter<'_>) = $identity;
                identity(self, writer);)?
            }
        }

        impl $crate::nft::object::Written for $Object<'_> {
            #[allow(private_interfaces, reason = "the trait is not nameable outside this crate")]
            const ATTRIBUTE_NOTES: &'static [$crate::nft::declare::AttributeNotes] = $Object::ATTRIBUTE_NOTES;
            const NAMES: &'static [(u16, &'static str)] = $Object::ATTRIBUTES;

            #[inline]
            fn write(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_attributes(writer);
                $(let more: fn(&Self, &mut $crate::netlink::MessageWriter<'_>) = $more;
                more(self, writer);)?
            }
        }
    };
}
pub(super) use written;

/// Implements [`Listed`] for an object, given the request's description in errors and its differences
/// from other objects, and adds typed accessors to [`Listing`](super::Listing) and
/// [`List`](super::List).
macro_rules! listed {
    ($Object:ident as $View:ident by $Filter:ident, $request:literal $(, $CONSTANT:ident = $value:literal)* $(,)?) => {
        impl $crate::nft::object::Listed for $Object<'_> {
            type View<'v> = $View<'v>;
            type Filter<'f> = $crate::nft::$Filter<'f>;
            const REQUEST: &'static str = $request;
            $(const $CONSTANT: bool = $value;)*

            #[inline(always)]
            fn view(payload: &[u8]) -> Result<$View<'_>, $crate::netlink::Malformed> {
                $View::of_payload(payload)
            }
        }

        impl $crate::nft::Listing<'_, $Object<'static>> {
            /// Returns the next object, or `None` at the end.
            ///
            /// # Errors
            /// - [`Error::Interrupted`](crate::netlink::Error::Interrupted) at the end of a listing
            ///   during which the ruleset changed.
            /// - [`Error::Refused`](crate::netlink::Error::Refused) if the kernel aborted the listing.
            /// - [`Error::Malformed`](crate::netlink::Error::Malformed),
            ///   [`Error::Receive`](crate::netlink::Error::Receive),
            ///   [`Error::Lost`](crate::netlink::Error::Lost),
            ///   [`Error::Truncated`](crate::netlink::Error::Truncated).
            #[inline]
            pub fn try_next(&mut self) -> Result<Option<$View<'_>>, $crate::netlink::Error> {
                self.next_view()
            }

            /// Passes every remaining object to `each`; the fastest way to read a listing, because it
            /// loops over the messages of a datagram in one place.
            ///
            /// # Errors
            /// Same as [`try_next`](Self::try_next).
            #[inline(always)]
            pub fn for_each(
                self,
                each: impl FnMut($View<'_>),
            ) -> Result<(), $crate::netlink::Error> {
                self.for_each_view(each)
            }
        }

        impl $crate::nft::List<$Object<'_>> {
            /// Iterates over the objects, in the kernel's order.
            pub fn iter(&self) -> impl ExactSizeIterator<Item = $View<'_>> {
                self.views()
            }
        }
    };
}
pub(super) use listed;
