//! What it takes to say in words what happens: tables, and sets without their elements.

use chainwright_sys::nf_tables::{
    NFT_MSG_GETOBJ_RESET, NFT_MSG_GETSETELEM, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE,
    NFTA_OBJ_TABLE, NFTA_OBJ_TYPE,
};

use super::apply::Applied;
use super::part::is_meter;
use super::read::{Lane, Reader};
use super::within::is_anonymous;
use super::{ElementsOf, Snapshot, SnapshotError, SnapshotSet, SnapshotTable};
use crate::netlink::{Error, Malformed, Message};
use crate::nft::connection::{Connection, message_type};
use crate::nft::expr::ObjectType;
use crate::nft::live::{Event, EventObject};
use crate::nft::object::Written as _;
use crate::nft::{Element, Scope, SetId, StatefulObject};

impl Connection {
    /// The tables and sets that there are, of one generation, without elements, chains and rules. Sets without a name of
    /// their own, whose elements would say what they are, are not among them.
    pub(crate) fn definitions(&mut self) -> Result<Snapshot, Error> {
        let read = self.consistent(
            &Scope::all(),
            ElementsOf::ANONYMOUS,
            false,
            |reader, scope| {
                reader.tables(scope)?;
                reader.sets(scope, &|set| is_meter(set) || !is_anonymous(set))
            },
        );
        read.map_err(|error| match error {
            SnapshotError::Netlink(error) => error,
            _ => Error::Interrupted,
        })
    }
}

/// What a request is about whose answer is a snapshot of that alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered<'a> {
    /// Stateful objects of a type, of a family or of one of its tables: they are set back.
    Objects(ObjectType, Scope<'a>),
    /// One of them.
    Object(&'a StatefulObject<'a>),
    /// Elements of a set, by their keys.
    Elements(&'a SetId<'a>, &'a [Element<'a>]),
}

impl Connection {
    /// Asks for it, and puts what is answered into a snapshot of the tables and sets that it is in; `None` of what is not
    /// there.
    pub(crate) fn answered(
        &mut self,
        mut snapshot: Snapshot,
        asked: &Answered<'_>,
    ) -> Result<Option<Snapshot>, Error> {
        match asked {
            Answered::Objects(object_type, scope) => {
                let mut reader = Reader::of(self, snapshot);
                reader.dump(
                    Lane::Long,
                    "reset objects",
                    NFT_MSG_GETOBJ_RESET,
                    scope.family,
                    |writer| {
                        if let Some(table) = &scope.table {
                            writer.string(NFTA_OBJ_TABLE, table);
                        }
                        writer.be32(NFTA_OBJ_TYPE, object_type.0);
                    },
                    |_| true,
                )?;
                snapshot = reader.snapshot;
            }
            Answered::Object(object) => {
                let reply = self.reply(
                    "reset an object",
                    NFT_MSG_GETOBJ_RESET,
                    object.family,
                    |writer| object.write_identity(writer),
                )?;
                match reply {
                    Some(message) => snapshot.take_in(&message)?,
                    None => return Ok(None),
                }
            }
            Answered::Elements(set, elements) => {
                snapshot.elements = ElementsOf::all();
                for element in *elements {
                    match self.element_message(NFT_MSG_GETSETELEM, set, element)? {
                        Some(message) => snapshot.take_in(&message)?,
                        None => return Ok(None),
                    }
                }
            }
        }
        Ok(Some(snapshot))
    }
}

impl Snapshot {
    /// One that knows nothing, and takes in what it is told.
    pub(crate) fn of_nothing() -> Self {
        Self::of(Scope::all(), ElementsOf::ANONYMOUS)
    }

    fn take_in(&mut self, message: &Message<'_>) -> Result<(), Malformed> {
        let at = self.arena.put(message.raw)?;
        self.index.insert(&self.arena, at).map(|_| ())
    }

    /// Takes in what an event tells of tables and sets, and of the elements of sets that have no name of their own.
    pub(crate) fn learn(&mut self, event: &Event<'_>) -> Result<(), Malformed> {
        let is_defining = matches!(
            event.object()?,
            EventObject::Table(_) | EventObject::Set(_) | EventObject::Elements(_)
        );
        match is_defining {
            true => self.apply(&event.message(), &mut Applied::default()),
            false => Ok(()),
        }
    }
}

impl<'s> SnapshotTable<'s> {
    /// A snapshot that holds one set of this table, with the elements of these messages alone.
    pub(crate) fn excerpt(
        &self,
        set: &SnapshotSet<'s>,
        elements: &[Message<'_>],
    ) -> Result<Snapshot, Malformed> {
        let mut excerpt = Snapshot::of(Scope::all(), ElementsOf::all());
        let table = self.snapshot.message(self.index().at);
        let set = self.snapshot.message(set.index.at);
        let elements = elements.iter().map(|message| (message, NFT_MSG_NEWSETELEM));
        let all = [(&table, NFT_MSG_NEWTABLE), (&set, NFT_MSG_NEWSET)];
        for (message, kind) in all.into_iter().chain(elements) {
            let mut raw = message.raw.to_vec();
            // Of what is deleted it is the same, but for the type of the message, which stands behind its length.
            if let Some(place) = raw.get_mut(4..6) {
                place.copy_from_slice(&message_type(kind).to_ne_bytes());
            }
            excerpt.take_in(&Message::first(&raw)?)?;
        }
        Ok(excerpt)
    }
}
