//! Detects tables that stayed unchanged while others were changed.
//!
//! A generation covers the whole ruleset of a namespace, and so does the kernel's mark on a dump: based on
//! them, a commit to any table disturbs reading every other. The kernel's notifications distinguish tables.
//! A second socket receives them while a table is read: for each commit the additions, changes and
//! deletions, followed by the new generation. They arrive in the order of the commits. Once the notification
//! of the generation at the end of the reading has arrived, all changes of the table up to then are known.
//! If a notification is lost, or that of the last commit does not arrive in time, nothing is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bstr::BString;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELRULE, NFT_MSG_DELSET, NFT_MSG_DELSETELEM, NFT_MSG_DESTROYCHAIN,
    NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM, NFT_MSG_NEWCHAIN,
    NFT_MSG_NEWGEN, NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFTA_CHAIN_NAME,
    NFTA_RULE_CHAIN, NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET, NFTA_SET_NAME,
    NFTA_TABLE_NAME,
};
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;

use crate::netlink::{
    Attributes, DatagramReceiver, Error, Loss, Malformed, Message, Messages, RECEIVE_BUFFER, Socket,
};
use crate::nft::Family;
use crate::nft::connection::{Connection, message_type};
use crate::nft::declare::Field;
use crate::nft::element::ElementKey;
use crate::nft::generation::{Generation, GenerationRef};
use crate::nft::name::Name;
use crate::nft::scope::Scope;

/// Maximum number of queued bytes of notifications, including the kernel's overhead.
const MAX_QUEUED_BYTES: usize = 8 * 1024 * 1024;
/// Maximum time to wait for the notification of a commit whose generation is already visible.
const MAX_EVENT_DELAY: Duration = Duration::from_millis(100);

/// A connection's second socket, while it is not in use. Closing it instead could wait tens of milliseconds
/// for the kernel to clean up objects deleted in the namespace.
pub(super) type IdleSocket = Arc<Mutex<Option<Socket>>>;

/// A socket that receives the notifications of commits.
#[derive(Debug)]
pub(super) struct Watch {
    /// `Some` until dropped.
    socket: Option<Socket>,
    buffer: Vec<u8>,
    idle_slot: IdleSocket,
}

impl Watch {
    /// Watches a connection's namespace; `None` if the calling thread is in another one and may not enter
    /// it.
    pub(super) fn open(connection: &Connection) -> Option<Self> {
        let idle = connection.listener.lock().ok().and_then(|mut at| at.take());
        let socket = match idle {
            Some(socket) => socket,
            None => {
                let mut socket = connection.session.socket.sibling()?;
                socket.reserve_receive(MAX_QUEUED_BYTES);
                socket
            }
        };
        socket.join(NFNLGRP_NFTABLES).ok()?;
        Some(Self {
            socket: Some(socket),
            buffer: vec![0; RECEIVE_BUFFER],
            idle_slot: Arc::clone(&connection.listener),
        })
    }

    /// Discards the notifications of earlier commits.
    pub(super) fn begin(&mut self) {
        let _ = self.take(&[], Until::Discard);
    }

    /// Returns `true` if these tables stayed unchanged since the last call until this generation.
    pub(super) fn unchanged_until(&mut self, scopes: &[Scope<'_>], until: Generation) -> bool {
        self.take(scopes, Until::Generation(until.number())).is_ok()
    }

    /// Returns the objects of these tables that were touched since the last call until this generation.
    ///
    /// # Errors
    /// [`Touched`] if that is unknown.
    pub(super) fn touches(
        &mut self,
        scopes: &[Scope<'_>],
        until: Generation,
    ) -> Result<TouchedObjects, Touched> {
        let mut touches = TouchedObjects::default();
        let until = Until::Generation(until.number());
        self.take_recording(scopes, until, Some(&mut touches))?;
        Ok(touches)
    }

    /// Returns the newest generation since the last call, if any, up to which these tables stayed unchanged.
    ///
    /// # Errors
    /// [`Touched`] if one was touched, or that is unknown.
    pub(super) fn newest(&mut self, scopes: &[Scope<'_>]) -> Result<Option<u32>, Touched> {
        self.take(scopes, Until::Queued)
    }

    fn take(&mut self, scopes: &[Scope<'_>], until: Until) -> Result<Option<u32>, Touched> {
        self.take_recording(scopes, until, None)
    }

    fn take_recording(
        &mut self,
        scopes: &[Scope<'_>],
        until: Until,
        noted: Option<&mut TouchedObjects>,
    ) -> Result<Option<u32>, Touched> {
        let Some(socket) = &self.socket else {
            return Err(Touched);
        };
        let mut events = Events {
            socket,
            buffer: &mut self.buffer,
            until,
            scopes,
            newest: None,
            ended: false,
            touched: false,
            noted,
        };
        match socket.receive_all(&mut events) {
            Ok(()) if !events.touched => Ok(events.newest),
            _ => Err(Touched),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let left = self.socket.as_ref().map(|s| s.leave(NFNLGRP_NFTABLES));
        if !matches!(left, Some(Ok(()))) {
            return;
        }
        // Queued notifications occupy kernel memory.
        self.begin();
        let Some(socket) = self.socket.take() else {
            return;
        };
        if let Ok(mut idle) = self.idle_slot.lock() {
            idle.get_or_insert(socket);
        }
    }
}

/// A table was changed, or may have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touched;

/// Identifies an object in a table: its family, the table's name and its own.
pub(super) type MemberKey = (Family, BString, BString);

/// The touched part of a set.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SetTouch {
    /// Only these elements.
    Elements {
        keys: BTreeSet<ElementKey<Box<[u8]>>>,
        /// Memory used by the keys.
        memory: usize,
    },
    /// Any part.
    Whole,
}

/// The object that an event concerns, including its members.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Chain,
    Set,
    Elements,
}

/// The objects touched in some tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TouchedObjects {
    /// Chains that were added, deleted or changed, and chains whose rules were.
    pub(super) chains: BTreeSet<MemberKey>,
    /// Sets that were added, deleted or changed, and sets whose elements were.
    pub(super) sets: BTreeMap<MemberKey, SetTouch>,
    /// Whether another object was touched: a table, a stateful object, a flowtable.
    pub(super) others: bool,
    /// Memory left for the keys of touched elements. If it is exceeded, the whole set counts as touched.
    space: usize,
}

impl TouchedObjects {
    /// Records elements individually, as long as their keys use no more memory than this.
    pub(super) fn with_elements(space: usize) -> Self {
        Self {
            space,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chains.is_empty() && self.sets.is_empty() && !self.others
    }

    /// Records the object that an event or operation concerns.
    pub(super) fn note(&mut self, message: &Message<'_>) -> Result<(), Malformed> {
        let (about, named_by) = match message.kind as u8 {
            NFT_MSG_NEWCHAIN | NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => {
                (Subject::Chain, NFTA_CHAIN_NAME)
            }
            NFT_MSG_NEWRULE | NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => {
                (Subject::Chain, NFTA_RULE_CHAIN)
            }
            NFT_MSG_NEWSET | NFT_MSG_DELSET | NFT_MSG_DESTROYSET => (Subject::Set, NFTA_SET_NAME),
            NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => {
                (Subject::Elements, NFTA_SET_ELEM_LIST_SET)
            }
            _ => {
                self.others = true;
                return Ok(());
            }
        };
        let family = Family(message.nfgenmsg()?.0.family);
        // The attribute with the table's name has the same type in all objects.
        let attributes = message.attributes()?;
        let name = |kind| attributes.clone().find(kind).and_then(Name::parse_payload);
        let (Some(table), Some(name)) = (name(NFTA_TABLE_NAME), name(named_by)) else {
            self.others = true;
            return Ok(());
        };
        let key = (family, table.to_owned(), name.to_owned());
        match about {
            Subject::Chain => _ = self.chains.insert(key),
            Subject::Set => {
                if let Some(SetTouch::Elements { memory, .. }) =
                    self.sets.insert(key, SetTouch::Whole)
                {
                    self.space += memory;
                }
            }
            Subject::Elements => {
                let list = attributes.clone().find(NFTA_SET_ELEM_LIST_ELEMENTS);
                self.note_elements(key, list);
            }
        }
        Ok(())
    }

    /// Records elements of a set; without a list, all of them.
    fn note_elements(&mut self, set: MemberKey, list: Option<&[u8]>) {
        let touch = self.sets.entry(set).or_insert(SetTouch::Elements {
            keys: BTreeSet::new(),
            memory: 0,
        });
        let SetTouch::Elements { keys, memory } = touch else {
            return;
        };
        let mut note = |list: &[u8]| {
            for element in Attributes::new(list) {
                let key = ElementKey::of(element.ok()?.payload).ok()?;
                let needed = key.memory();
                if needed > self.space {
                    return None;
                }
                if keys.insert(key.into_owned()) {
                    self.space -= needed;
                    *memory += needed;
                }
            }
            Some(())
        };
        if list.and_then(&mut note).is_none() {
            self.space += *memory;
            *touch = SetTouch::Whole;
        }
    }
}

/// The point up to which notifications are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// All that are queued, which are ignored.
    Discard,
    /// All that are queued.
    Queued,
    /// The notification of this generation, which is waited for.
    Generation(u32),
}

/// Reads notifications.
struct Events<'w> {
    socket: &'w Socket,
    buffer: &'w mut [u8],
    until: Until,
    scopes: &'w [Scope<'w>],
    /// The last generation.
    newest: Option<u32>,
    ended: bool,
    /// Whether one concerns a table of the scopes and is not recorded.
    touched: bool,
    /// Where to record the touched objects.
    noted: Option<&'w mut TouchedObjects>,
}

impl DatagramReceiver for Events<'_> {
    fn is_complete(&self) -> bool {
        self.ended || self.touched
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        if self.until == Until::Discard {
            return Ok(());
        }
        for message in Messages::new(&self.buffer[..length]) {
            let message = message?;
            if message.kind == message_type(NFT_MSG_NEWGEN) {
                let number = GenerationRef::parse(&message)?.id();
                self.ended |= self.until == Until::Generation(number);
                self.newest = Some(number);
                continue;
            }
            // The attribute with the table's name has the same type in all objects.
            let (header, _) = message.nfgenmsg()?;
            let name = message.attributes()?.find(NFTA_TABLE_NAME);
            let family = Family(header.family);
            let name = name.and_then(Name::parse_payload);
            let touches = name.is_none_or(|name| {
                let mut scopes = self.scopes.iter();
                scopes.any(|scope| scope.admits(family, name))
            });
            match (&mut self.noted, name) {
                (Some(noted), Some(_)) if touches => noted.note(&message)?,
                _ => self.touched |= touches,
            }
        }
        Ok(())
    }

    fn record_loss(&mut self, error: Error) -> Result<(), Error> {
        match (error, self.until) {
            (Error::Lost(Loss::MissingReply), Until::Generation(_)) => {
                if !self.socket.wait(Some(Instant::now() + MAX_EVENT_DELAY))? {
                    return Err(Error::Lost(Loss::MissingReply));
                }
            }
            (Error::Lost(Loss::MissingReply), _) => self.ended = true,
            // Losses before the start do not matter.
            (Error::Lost(_) | Error::Truncated { .. }, Until::Discard) => {}
            (error, _) => return Err(error),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::{DataType, Element, Set, SetId, Transaction};

    fn set() -> SetId<'static> {
        SetId::new(Family::IP, "t", "s")
    }

    /// Returns the objects touched by these operations, with this memory for elements.
    fn touched(space: usize, fill: impl FnOnce(&mut Transaction)) -> TouchedObjects {
        let mut tx = Transaction::new();
        fill(&mut tx);
        let mut touched = TouchedObjects::with_elements(space);
        for message in tx.messages() {
            touched.note(&message).unwrap();
        }
        touched
    }

    /// Returns the number of touched elements of the set; `None` for the whole set.
    fn count(touched: &TouchedObjects) -> Option<usize> {
        match &touched.sets[&(Family::IP, "t".into(), "s".into())] {
            SetTouch::Elements { keys, .. } => Some(keys.len()),
            SetTouch::Whole => None,
        }
    }

    fn some(tx: &mut Transaction, keys: std::ops::Range<u8>) {
        let keys: Vec<_> = keys.map(|key| [10, 0, 0, key]).collect();
        let elements = || keys.iter().map(Element::new);
        tx.delete_elements(&set(), elements()).unwrap();
        tx.add_elements(&set(), elements()).unwrap();
    }

    #[test]
    fn changed_elements_are_recorded_once() {
        let noted = touched(1 << 20, |tx| some(tx, 0..10));
        assert_eq!(count(&noted), Some(10));
        let more = touched(1 << 20, |tx| {
            some(tx, 0..10);
            some(tx, 5..20);
            tx.delete_elements(&set(), [Element::catch_all()]).unwrap();
            tx.delete_elements(&set(), Element::interval(&[10, 0, 0, 1], &[10, 0, 0, 2]))
                .unwrap();
        });
        // The end of a range differs from the start of the next.
        assert_eq!(count(&more), Some(22));
        assert!(noted.chains.is_empty() && !noted.others);
    }

    #[test]
    fn a_changed_set_is_recorded_as_a_whole() {
        let of = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4);
        type Touch<'t> = &'t dyn Fn(&mut Transaction);
        let operations: [Touch<'_>; 4] = [
            &|tx| _ = tx.add(&of).unwrap(),
            &|tx| _ = tx.delete(&of).unwrap(),
            &|tx| _ = tx.flush_set(&set()).unwrap(),
            &|tx| some(tx, 0..200),
        ];
        for operation in operations {
            for (before, behind) in [(true, false), (false, true), (true, true)] {
                let touched = touched(10_000, |tx| {
                    if before {
                        some(tx, 0..2);
                    }
                    operation(tx);
                    if behind {
                        some(tx, 0..2);
                    }
                });
                assert_eq!(count(&touched), None);
                // The memory of its elements is available to others again.
                assert_eq!(touched.space, 10_000);
            }
        }
    }
}
