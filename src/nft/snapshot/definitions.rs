//! Reads the objects that the text of an event requires: tables, and sets without their elements.

use chainwright_sys::nf_tables::{
    NFT_MSG_GETOBJ_RESET, NFT_MSG_GETRULE_RESET, NFT_MSG_GETSETELEM, NFT_MSG_GETSETELEM_RESET,
    NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_OBJ_TABLE, NFTA_OBJ_TYPE,
    NFTA_RULE_CHAIN, NFTA_RULE_HANDLE, NFTA_RULE_TABLE,
};

use bstr::BStr;

use super::apply::Applied;
use super::index::chain_at;
use super::part::{Part, is_meter};
use super::read::{Reader, ReplySocket, is_bound};
use super::rule_members::{ObjectReference, each_name, is_anonymous};
use super::{ElementFilter, Snapshot, SnapshotError, SnapshotSet, SnapshotTable};
use crate::netlink::{Attributes, Error, Malformed, Message};
use crate::nft::connection::{Connection, message_type};
use crate::nft::element::span_of_list;
use crate::nft::expr::ObjectType;
use crate::nft::live::{Event, EventObject};
use crate::nft::object::Identified as _;
use crate::nft::{Element, ElementRef, RuleRef, Scope, SetId, StatefulObject, Transaction};

impl Connection {
    /// Reads the tables and sets of one generation, without elements, chains and rules. Anonymous sets except meters
    /// are left out, because they would have to be printed as their elements.
    #[doc(hidden)]
    pub fn definitions(&mut self) -> Result<Snapshot, Error> {
        let read = self.consistent(
            &Scope::all(),
            ElementFilter::ANONYMOUS,
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

/// The subject of a request whose answer is a snapshot of the subject alone.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotQuery<'a> {
    /// Resets the stateful objects of a type, in a scope.
    Objects(ObjectType, Scope<'a>),
    /// Resets one stateful object.
    Object(&'a StatefulObject<'a>),
    /// The elements of a set; resets them if the flag is true.
    Elements(&'a SetId<'a>, &'a [ElementQuery], bool),
}

/// A query for an element.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementQuery {
    /// The element with this key.
    Key(Box<Element<'static>>),
    /// The range of the set that contains the range from the first to the second value.
    Range(Vec<u8>, Vec<u8>),
}

/// The message with an element, and the element's key.
type Found = (Vec<u8>, Vec<u8>);

/// Returns the message type of the request for an element.
const fn element_message(is_reset: bool) -> u8 {
    match is_reset {
        true => NFT_MSG_GETSETELEM_RESET,
        false => NFT_MSG_GETSETELEM,
    }
}

/// Returns the next key after this one.
fn successor(key: &[u8]) -> Option<Vec<u8>> {
    let mut next = key.to_vec();
    for byte in next.iter_mut().rev() {
        let (sum, is_over) = byte.overflowing_add(1);
        *byte = sum;
        if !is_over {
            return Some(next);
        }
    }
    None
}

impl Connection {
    /// Sends the request, and adds the answer to a snapshot of the tables and sets of the subject; `None` if the
    /// subject doesn't exist.
    #[doc(hidden)]
    pub fn answered(
        &mut self,
        mut snapshot: Snapshot,
        query: &SnapshotQuery<'_>,
    ) -> Result<Option<Snapshot>, Error> {
        match query {
            SnapshotQuery::Objects(object_type, scope) => {
                let mut reader = Reader::of(self, snapshot);
                reader.dump(
                    ReplySocket::Long,
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
            SnapshotQuery::Object(object) => {
                let reply = self.reply(
                    "reset an object",
                    NFT_MSG_GETOBJ_RESET,
                    object.family,
                    |writer| object.write_identity(writer),
                )?;
                match reply {
                    Some(message) => snapshot.insert_message(&message)?,
                    None => return Ok(None),
                }
            }
            SnapshotQuery::Elements(set, elements, is_reset) => {
                // Resets nothing if one of them doesn't exist.
                if *is_reset {
                    let only_read = SnapshotQuery::Elements(set, elements, false);
                    if self.answered(snapshot.clone(), &only_read)?.is_none() {
                        return Ok(None);
                    }
                }
                let mut open = None;
                snapshot.elements = ElementFilter::all();
                for element in *elements {
                    let found = match element {
                        ElementQuery::Key(element) => {
                            // The kernel looks up only the first value of a range.
                            let last = match &element.key_end {
                                Some(last) => {
                                    let last = Element {
                                        key: Some(last.clone()),
                                        ..Element::default()
                                    };
                                    self.element_raw(NFT_MSG_GETSETELEM, set, &last)?
                                }
                                None => None,
                            };
                            let message = element_message(*is_reset);
                            let found = self.element_raw(message, set, element)?;
                            let is_same = |found: &Found| match (&element.key_end, &last) {
                                (None, _) => true,
                                (Some(_), Some(last)) => last.1 == found.1,
                                (Some(_), None) => false,
                            };
                            found.filter(is_same).map(|raw| vec![raw])
                        }
                        ElementQuery::Range(from, to) => {
                            self.containing_range(set, from, to, &mut open)?
                        }
                    };
                    let Some(mut found) = found else {
                        return Ok(None);
                    };
                    if let ([(first, key), ..], true, ElementQuery::Range(..)) =
                        (&mut found[..], *is_reset, element)
                    {
                        let message = element_message(*is_reset);
                        let raw = self.element_raw(message, set, &Element::new(&key[..]))?;
                        let Some((raw, _)) = raw else {
                            return Ok(None);
                        };
                        *first = raw;
                    }
                    for (raw, _) in found {
                        snapshot.insert_message(&Message::first(&raw)?)?;
                    }
                }
            }
        }
        Ok(Some(snapshot))
    }

    /// Reads a part of these tables once, and resets the counters and quotas of its rules, or of a set's elements. It
    /// never repeats the read, because it would lose what was reset.
    #[doc(hidden)]
    pub fn reset_part(
        &mut self,
        scope: &Scope<'_>,
        part: Part<'_>,
        elements: ElementFilter,
    ) -> Result<Snapshot, Error> {
        let mut reader = Reader::of(self, Snapshot::of(scope.clone().into_owned(), elements));
        match part {
            Part::Set(_) | Part::Map(_) => reader.elements_request = NFT_MSG_GETSETELEM_RESET,
            _ => reader.rules_request = NFT_MSG_GETRULE_RESET,
        }
        match part {
            Part::All => reader.read(scope)?,
            part => reader.parts(scope, &[part])?,
        }
        let mut snapshot = reader.snapshot;
        snapshot.close();
        Ok(snapshot)
    }

    /// Resets a rule by its handle; returns a snapshot of its table without other rules and their chains; `None` if it
    /// doesn't exist.
    #[doc(hidden)]
    pub fn reset_rule(
        &mut self,
        table: &Scope<'_>,
        chain: &BStr,
        handle: u64,
        elements: ElementFilter,
    ) -> Result<Option<Snapshot>, Error> {
        let mut reader = Reader::of(self, Snapshot::of(table.clone().into_owned(), elements));
        reader.tables(table)?;
        if reader.snapshot.index.tables.is_empty() || reader.one_chain(0, chain)?.is_none() {
            return Ok(None);
        }
        reader.objects(table, None)?;
        reader.flowtables(table)?;
        reader.sets(table, &|_| true)?;
        reader.elements(|_| true)?;
        let (family, name) = reader.table_name(0)?;
        let request = "reset a rule";
        let reset = reader.look_up(request, NFT_MSG_GETRULE_RESET, family, |writer| {
            writer
                .string(NFTA_RULE_TABLE, &name)
                .string(NFTA_RULE_CHAIN, chain)
                .be64(NFTA_RULE_HANDLE, handle);
        })?;
        let Some(at) = reset else {
            return Ok(None);
        };
        let rule = RuleRef::parse(&reader.snapshot.arena.message(at)?)?;
        let mut has_chains = false;
        each_name(&rule, &mut |name| {
            has_chains |=
                matches!(name, ObjectReference::Chain(name) if name.starts_with(b"__chain"));
        });
        if has_chains {
            reader.chains(table, &is_bound)?;
            for index in 0..reader.snapshot.index.tables[0].chains.len() {
                let at = reader.snapshot.index.tables[0].chains[index].at;
                if is_bound(&chain_at(&reader.snapshot.arena, at)?) {
                    reader.rules_of(0, index, Some(ReplySocket::Long))?;
                }
            }
        }
        let Snapshot { index, arena, .. } = &mut reader.snapshot;
        index.insert(arena, at)?;
        let mut snapshot = reader.snapshot;
        snapshot.close();
        Ok(Some(snapshot))
    }

    /// Looks up an element; returns its message and its key.
    fn element_raw(
        &mut self,
        message: u8,
        set: &SetId<'_>,
        element: &Element<'_>,
    ) -> Result<Option<Found>, Error> {
        let Some(message) = self.element_message(message, set, element)? else {
            return Ok(None);
        };
        let raw = message.raw.to_vec();
        let list = span_of_list(message.payload)?;
        let element = Attributes::new(&message.payload[list]).next().transpose()?;
        let element = element.map(|element| ElementRef::parse(element.payload));
        let key = element.transpose()?.and_then(|element| element.key_bytes());
        Ok(Some((raw, key.unwrap_or_default().to_vec())))
    }

    /// Returns the elements that begin and end the range that contains these values. `open` caches the start of the
    /// range without an end, if there is one.
    fn containing_range(
        &mut self,
        set: &SetId<'_>,
        from: &[u8],
        to: &[u8],
        open: &mut Option<Option<Vec<u8>>>,
    ) -> Result<Option<Vec<Found>>, Error> {
        const GET: u8 = NFT_MSG_GETSETELEM;
        let Some(start) = self.element_raw(GET, set, &Element::new(from))? else {
            return Ok(None);
        };
        // The kernel reports an error if it finds no end.
        if open.is_none() {
            let last = self.element_raw(GET, set, &Element::new(vec![0xff; from.len()]))?;
            *open = Some(last.map(|(_, key)| key));
        }
        let is_open = matches!(open, Some(Some(key)) if *key == start.1);
        let Some(next) = successor(&start.1).filter(|_| !is_open) else {
            return Ok(Some(vec![start]));
        };
        // If one range begins at the end of another, the kernel finds the end only for keys before it.
        let is_longer = *from != start.1[..]
            || (self.element_raw(GET, set, &Element::new(&next[..]))?)
                .is_some_and(|(_, key)| key == start.1);
        let end = match is_longer {
            true => self.element_raw(GET, set, &Element::end(next))?,
            false => {
                let mut only = Transaction::new();
                let end = Element::end(&next[..]);
                match only.add_elements(set, [end]) {
                    Ok(only) => Some((only.as_bytes().to_vec(), next)),
                    Err(_) => None, // impossible set name
                }
            }
        };
        Ok(end
            .filter(|(_, end)| &end[..] > to)
            .map(|end| vec![start, end]))
    }
}

impl Snapshot {
    /// Creates an empty snapshot of all tables.
    #[doc(hidden)]
    pub fn empty() -> Self {
        Self::of(Scope::all(), ElementFilter::ANONYMOUS)
    }

    fn insert_message(&mut self, message: &Message<'_>) -> Result<(), Malformed> {
        let at = self.arena.put(message.raw)?;
        self.index.insert(&self.arena, at).map(|_| ())
    }

    /// Applies an event of tables and sets, or of the elements of anonymous sets.
    #[doc(hidden)]
    pub fn learn(&mut self, event: &Event<'_>) -> Result<(), Malformed> {
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
    /// Creates a snapshot with one set of this table and only the elements of these messages.
    #[doc(hidden)]
    pub fn excerpt(
        &self,
        set: &SnapshotSet<'s>,
        elements: &[Message<'_>],
    ) -> Result<Snapshot, Malformed> {
        let mut excerpt = Snapshot::of(Scope::all(), ElementFilter::all());
        let table = self.snapshot.message(self.index().at);
        let set = self.snapshot.message(set.index.at);
        let elements = elements.iter().map(|message| (message, NFT_MSG_NEWSETELEM));
        let all = [(&table, NFT_MSG_NEWTABLE), (&set, NFT_MSG_NEWSET)];
        for (message, kind) in all.into_iter().chain(elements) {
            let mut raw = message.raw.to_vec();
            // A deletion differs only in the message type, at offset 4.
            if let Some(place) = raw.get_mut(4..6) {
                place.copy_from_slice(&message_type(kind).to_ne_bytes());
            }
            excerpt.insert_message(&Message::first(&raw)?)?;
        }
        Ok(excerpt)
    }
}
