//! What all objects have in common: which messages make, get and remove them, and list them.

use super::Family;
use super::declare::{Known, Note, noted};
use crate::netlink::{Malformed, MessageWriter};

/// The message types of one kind of object, `NFT_MSG_*` without the subsystem.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    /// What the object is called: `table`, `chain`, …
    pub kind: &'static str,
    /// Makes or changes the object, and carries it in a listing.
    pub new: u8,
    /// Asks for the object, or for a listing.
    pub get: u8,
    /// Removes the object; it must exist.
    pub delete: u8,
    /// Removes the object if it exists (Linux 6.3).
    pub destroy: u8,
    /// Whether objects of this kind have an order among themselves, so that one that is added must
    /// say that it goes to the end (`NLM_F_APPEND`): rules.
    pub ordered: bool,
}

/// What a [`Transaction`](super::Transaction) can add and remove: [`Table`](super::Table),
/// [`Chain`](super::Chain), [`Rule`](super::Rule), [`Set`](super::Set),
/// [`Elements`](super::Elements), [`StatefulObject`](super::StatefulObject) and
/// [`Flowtable`](super::Flowtable), and nothing else.
pub trait Object: Written {}

impl<T: Written> Object for T {}

/// How an object is written. Public only to this crate: nobody else can name it.
pub trait Written {
    /// The object's message types.
    const MESSAGES: Messages;
    /// What is known of its attributes.
    #[allow(private_interfaces, reason = "nobody outside can name the trait")]
    const KNOWN: &'static [Known];
    /// Their names.
    const NAMES: &'static [(u16, &'static str)];

    /// The family that goes into the message's header.
    fn family(&self) -> Family;
    /// Writes all attributes that are set.
    fn write(&self, writer: &mut MessageWriter<'_>);
    /// Writes the attributes that say which object is meant, for its removal.
    fn write_identity(&self, writer: &mut MessageWriter<'_>);
}

/// An object that the kernel can list, and how it does. Public only to this crate.
pub trait Listed: Written {
    /// The borrowed view of a listed object.
    type View<'a>;
    /// What a listing can be asked for.
    type Filter<'a>: Into<super::listing::Filter<'a>>;
    /// What listing it is called in errors.
    const REQUEST: &'static str;
    /// Whether the kernel itself filters, by all of the names below, so that nothing else need be
    /// looked at.
    const BY_KERNEL: bool = false;
    /// Whether the kernel refuses to list what is in a table that does not exist, with `ENOENT`;
    /// a listing is then empty, as all others are.
    const REFUSES_ABSENT_TABLE: bool = false;
    /// Whether the kernel marks a listing that a change ran across (`NLM_F_DUMP_INTR`). It does not
    /// where that is elements (seen on Linux 6.18); then the generation that stands in each message
    /// tells.
    const CHANGES_ARE_MARKED: bool = true;

    /// Attribute that holds the name of the object's table.
    const TABLE: Option<u16> = noted(Self::KNOWN, Note::table);
    /// Attribute that holds the name of its chain, if it has one.
    const CHAIN: Option<u16> = noted(Self::KNOWN, Note::chain);
    /// Attribute that holds the name of its set, if it has one.
    const SET: Option<u16> = noted(Self::KNOWN, Note::set);

    /// Reads one message of a listing, given what follows its header.
    ///
    /// # Errors
    /// [`Malformed`] when the message is not such an object.
    fn view(payload: &[u8]) -> Result<Self::View<'_>, Malformed>;
}

/// Makes an object [`Written`]: its word, and its messages (new, get, delete, destroy). What it is
/// removed by is what its declaration says; and, where that alone could stand for more than one object,
/// what is written by the function behind it. All of its attributes are written but if there is another
/// function for that.
macro_rules! written {
    (
        $Object:ident, $kind:literal, [$new:ident, $get:ident, $delete:ident, $destroy:ident]
        $(, ordered: $ordered:literal)? $(, identity: $identity:expr)? $(, more: $more:expr)? $(,)?
    ) => {
        impl $crate::nft::object::Written for $Object<'_> {
            const MESSAGES: $crate::nft::object::Messages = $crate::nft::object::Messages {
                kind: $kind,
                new: $new,
                get: $get,
                delete: $delete,
                destroy: $destroy,
                ordered: false $(|| $ordered)?,
            };
            #[allow(private_interfaces, reason = "nobody outside can name the trait")]
            const KNOWN: &'static [$crate::nft::declare::Known] = $Object::KNOWN;
            const NAMES: &'static [(u16, &'static str)] = $Object::ATTRIBUTES;

            #[inline]
            fn family(&self) -> $crate::nft::Family {
                self.family
            }

            #[inline]
            fn write(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_attributes(writer);
                $(let more: fn(&Self, &mut $crate::netlink::MessageWriter<'_>) = $more;
                more(self, writer);)?
            }

            fn write_identity(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_named(writer);
                $(let identity: fn(&Self, &mut $crate::netlink::MessageWriter<'_>) = $identity;
                identity(self, writer);)?
            }
        }
    };
}
pub(super) use written;

/// Makes an object [`Listed`], with what its listing is called in errors and how it differs from
/// others; and gives a [`Listing`](super::Listing) and a [`List`](super::List) of it their views.
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
            /// The next object, or `None` at the end.
            ///
            /// # Errors
            /// - [`Error::Interrupted`](crate::netlink::Error::Interrupted) at the end of a listing
            ///   that a change ran across.
            /// - [`Error::Refused`](crate::netlink::Error::Refused) when the kernel broke the listing
            ///   off.
            /// - [`Error::Malformed`](crate::netlink::Error::Malformed),
            ///   [`Error::Receive`](crate::netlink::Error::Receive),
            ///   [`Error::Lost`](crate::netlink::Error::Lost),
            ///   [`Error::Truncated`](crate::netlink::Error::Truncated).
            #[allow(clippy::should_implement_trait)] // a lending iterator cannot be an `Iterator`
            #[inline]
            pub fn next(&mut self) -> Result<Option<$View<'_>>, $crate::netlink::Error> {
                self.next_view()
            }

            /// Gives every object to `each`, to the end: the fastest way through a listing, because
            /// the loop over a datagram's messages stays in one place.
            ///
            /// # Errors
            /// As [`next`](Self::next).
            #[inline(always)]
            pub fn for_each(
                self,
                each: impl FnMut($View<'_>),
            ) -> Result<(), $crate::netlink::Error> {
                self.for_each_view(each)
            }
        }

        impl $crate::nft::List<$Object<'_>> {
            /// The objects, in the kernel's order.
            pub fn iter(&self) -> impl ExactSizeIterator<Item = $View<'_>> {
                self.views()
            }
        }
    };
}
pub(super) use listed;
