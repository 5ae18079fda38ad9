//! What all objects have in common: which messages make, get and remove them.

use super::Family;
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

/// An object that a [`Transaction`](super::Transaction) can write.
pub trait Object {
    /// The object's message types.
    const MESSAGES: Messages;

    /// The family that goes into the message's header.
    fn family(&self) -> Family;
    /// Writes all attributes that are set.
    fn write(&self, writer: &mut MessageWriter<'_>);
    /// Writes the attributes that say which object is meant, for its removal.
    fn write_identity(&self, writer: &mut MessageWriter<'_>);
}

/// An object that the kernel can list.
pub trait Listed: Object {
    /// The borrowed view of a listed object.
    type View<'a>;
    /// What listing it is called in errors.
    const REQUEST: &'static str;

    /// Reads one message of a listing, given what follows its header.
    ///
    /// # Errors
    /// [`Malformed`] when the message is not such an object.
    fn view(payload: &[u8]) -> Result<Self::View<'_>, Malformed>;
}

/// Makes an object [`Listed`].
macro_rules! listed {
    ($Object:ident as $View:ident, $request:literal) => {
        impl $crate::nft::object::Listed for $Object<'_> {
            type View<'v> = $View<'v>;
            const REQUEST: &'static str = $request;

            #[inline(always)]
            fn view(payload: &[u8]) -> Result<$View<'_>, $crate::netlink::Malformed> {
                $View::of_payload(payload)
            }
        }
    };
}
pub(super) use listed;

/// Makes something with a name an [`Object`]: its word, its messages (new, get, delete, destroy), and
/// the fields that say which one is meant when it is to be removed, the table and the name first.
macro_rules! named {
    ($Object:ident, $kind:literal, [$new:ident, $get:ident, $delete:ident, $destroy:ident], $($more:ident),*) => {
        impl $crate::nft::object::Object for $Object<'_> {
            const MESSAGES: $crate::nft::object::Messages = $crate::nft::object::Messages {
                kind: $kind,
                new: $new,
                get: $get,
                delete: $delete,
                destroy: $destroy,
                ordered: false,
            };

            fn family(&self) -> $crate::nft::Family {
                self.family
            }

            fn write(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_attributes(writer);
            }

            fn write_identity(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                let identity = $Object {
                    table: self.table.as_ref().map($crate::nft::Name::from),
                    name: self.name.as_ref().map($crate::nft::Name::from),
                    $($more: self.$more,)*
                    ..$Object::default()
                };
                identity.write_attributes(writer);
            }
        }
    };
}
pub(super) use named;
