//! One transaction, as the kernel tells of it: views over the bytes that came.

use std::fmt;

use bstr::BStr;
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE, NFT_MSG_DELSET,
    NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN, NFT_MSG_DESTROYFLOWTABLE,
    NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE,
    NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_TABLE_NAME,
};

use crate::netlink::{Malformed, Message, Messages};
use crate::nft::declare::Field;
use crate::nft::explain::describe;
use crate::nft::name::Name;
use crate::nft::{
    Bytes, ChainRef, ElementsRef, Family, FlowtableRef, Generation, GenerationRef, Operation,
    RuleRef, SetRef, StatefulObjectRef, TableRef,
};

/// One committed transaction: its generation, who committed it, and what it added and deleted.
///
/// The kernel's messages are kept as they came; all else is read from them when it is asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// The events' messages, and behind them the one that ended them (`NFT_MSG_NEWGEN`).
    bytes: Vec<u8>,
    /// Where that one starts.
    end: usize,
    /// How many events there are.
    events: usize,
    generation: Generation,
}

impl Change {
    /// `bytes` are whole messages, of which the one at `end` was read as this generation.
    pub(super) const fn new(
        bytes: Vec<u8>,
        end: usize,
        events: usize,
        generation: Generation,
    ) -> Self {
        Self {
            bytes,
            end,
            events,
            generation,
        }
    }

    fn closing(&self) -> Message<'_> {
        Message::first(&self.bytes[self.end..]).expect("invariant: it was read when it came")
    }

    fn info(&self) -> GenerationRef<'_> {
        GenerationRef::parse(&self.closing()).expect("invariant: it was read when it came")
    }

    /// The generation that the transaction made.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// The port of the socket that committed it: compare it with that of one's own connections
    /// ([`Connection::port`](crate::nft::Connection::port), [`Pool::ports`](crate::nft::Pool::ports)), so as not
    /// to answer to oneself. It is not the process' number, though `nft` and iptables often have one that
    /// is the same.
    #[must_use]
    pub fn port(&self) -> u32 {
        self.closing().port
    }

    /// The thread that committed it; the number that it has in the first pid namespace. That of a process'
    /// first thread is the process' own.
    #[must_use]
    pub fn thread_id(&self) -> Option<u32> {
        self.info().thread_id()
    }

    /// The name of that thread (`comm`), at most 15 bytes.
    #[must_use]
    pub fn thread_name(&self) -> Option<&BStr> {
        self.info().thread_name()
    }

    /// The process of that thread, as `/proc` tells: see [`GenerationRef::process_id`]. `nft` and iptables
    /// have mostly ended by the time that anybody asks.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.info().process_id()
    }

    /// What it added and deleted, in the kernel's order.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events {
            messages: Messages::new(&self.bytes[..self.end]),
            rest: self.events,
        }
    }

    /// The messages of the events and of the generation that ended them, as they came.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("info", &self.info())
            .field("port", &self.port())
            .field("events", &self.events())
            .finish()
    }
}

/// The events of a [`Change`].
#[derive(Clone)]
pub struct Events<'a> {
    messages: Messages<'a>,
    rest: usize,
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let message = self.messages.next()?;
        self.rest -= 1;
        Some(Event {
            message: message.expect("invariant: each was read when it came"),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.rest, Some(self.rest))
    }
}

impl ExactSizeIterator for Events<'_> {}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

bitflags::bitflags! {
    /// How an object was added, as far as the kernel tells: of rules, sets and elements since Linux 5.15;
    /// of a change of what was there (a chain's new name) it tells nothing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
    pub struct EventFlags: u16 {
        /// In place of another.
        ///
        /// `NLM_F_REPLACE`
        const REPLACE = NLM_F_REPLACE;
        /// It must not have been there.
        ///
        /// `NLM_F_EXCL`
        const EXCLUSIVE = NLM_F_EXCL;
        /// It was to be made if it was not there.
        ///
        /// `NLM_F_CREATE`
        const CREATE = NLM_F_CREATE;
        /// A rule that went behind another, or to the end; without it before another, or to the beginning.
        ///
        /// `NLM_F_APPEND`
        const APPEND = NLM_F_APPEND;
        /// Bits that this version of the crate does not know are kept.
        const _ = !0;
    }
}

/// One object that was added, changed or deleted.
///
/// Its `Display` is in words: `add chain ip nat KUBE-SERVICES handle 1`, and of elements their keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    message: Message<'a>,
}

/// What an [`Event`] is about.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum EventObject<'a> {
    /// A table.
    Table(TableRef<'a>),
    /// A chain. One that is there already has another name, policy, device or state.
    Chain(ChainRef<'a>),
    /// A rule.
    ///
    /// [`RuleRef::position`] is the handle of the rule before it at that moment, of all that this
    /// transaction adds and that have not been deleted by events before this one. There is none of the
    /// first rule of a chain, of the last, and of one that is deleted; [`EventFlags::APPEND`] tells the
    /// first from the last. A rule that is replaced is deleted and added again, with the same handle on
    /// newer kernels.
    Rule(RuleRef<'a>),
    /// A set or map.
    Set(SetRef<'a>),
    /// Elements of a set, mostly one.
    Elements(ElementsRef<'a>),
    /// A stateful object.
    Object(StatefulObjectRef<'a>),
    /// A flowtable; of one that is there already the devices that came or went.
    Flowtable(FlowtableRef<'a>),
    /// A message of a type that this version of the crate does not know.
    Unknown,
}

impl<'a> Event<'a> {
    pub(in crate::nft) const fn new(message: Message<'a>) -> Self {
        Self { message }
    }

    /// Whether the object was deleted. Of a deleted one kernels tell what names it, its handle among that,
    /// and of rules, on some, the whole.
    #[must_use]
    pub const fn is_deletion(&self) -> bool {
        matches!(
            self.kind(),
            NFT_MSG_DELTABLE
                | NFT_MSG_DESTROYTABLE
                | NFT_MSG_DELCHAIN
                | NFT_MSG_DESTROYCHAIN
                | NFT_MSG_DELRULE
                | NFT_MSG_DESTROYRULE
                | NFT_MSG_DELSET
                | NFT_MSG_DESTROYSET
                | NFT_MSG_DELSETELEM
                | NFT_MSG_DESTROYSETELEM
                | NFT_MSG_DELOBJ
                | NFT_MSG_DESTROYOBJ
                | NFT_MSG_DELFLOWTABLE
                | NFT_MSG_DESTROYFLOWTABLE
        )
    }

    /// The object.
    ///
    /// # Errors
    /// [`Malformed`] when the message is not such an object. The bytes are in
    /// [`message`](Self::message) all the same.
    pub fn object(&self) -> Result<EventObject<'a>, Malformed> {
        let message = &self.message;
        Ok(match self.kind() {
            NFT_MSG_NEWTABLE | NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE => {
                EventObject::Table(TableRef::parse(message)?)
            }
            NFT_MSG_NEWCHAIN | NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => {
                EventObject::Chain(ChainRef::parse(message)?)
            }
            NFT_MSG_NEWRULE | NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => {
                EventObject::Rule(RuleRef::parse(message)?)
            }
            NFT_MSG_NEWSET | NFT_MSG_DELSET | NFT_MSG_DESTROYSET => {
                EventObject::Set(SetRef::parse(message)?)
            }
            NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => {
                EventObject::Elements(ElementsRef::parse(message)?)
            }
            NFT_MSG_NEWOBJ | NFT_MSG_DELOBJ | NFT_MSG_DESTROYOBJ => {
                EventObject::Object(StatefulObjectRef::parse(message)?)
            }
            NFT_MSG_NEWFLOWTABLE | NFT_MSG_DELFLOWTABLE | NFT_MSG_DESTROYFLOWTABLE => {
                EventObject::Flowtable(FlowtableRef::parse(message)?)
            }
            _ => EventObject::Unknown,
        })
    }

    /// How it was added.
    #[must_use]
    pub const fn flags(&self) -> EventFlags {
        EventFlags::from_bits_retain(self.message.flags)
    }

    /// The address family of the object.
    #[must_use]
    pub fn family(&self) -> Family {
        let header = self.message.nfgenmsg();
        header.map_or(Family::UNSPEC, |(header, _)| Family(header.family))
    }

    /// The name of the table that it is about or in.
    #[must_use]
    pub fn table(&self) -> Option<&'a BStr> {
        // The attribute with the table's name has the same number in all objects.
        let name = self.message.attributes().ok()?.find(NFTA_TABLE_NAME)?;
        Name::keep(name)
    }

    /// The name of the chain that it is, or that the rule is in.
    #[must_use]
    pub fn chain(&self) -> Option<&'a BStr> {
        match self.object().ok()? {
            EventObject::Chain(chain) => Some(chain.name()),
            EventObject::Rule(rule) => Some(rule.chain()),
            _ => None,
        }
    }

    /// The name of the set that it is, or that the elements are of.
    #[must_use]
    pub fn set(&self) -> Option<&'a BStr> {
        match self.object().ok()? {
            EventObject::Set(set) => Some(set.name()),
            EventObject::Elements(elements) => Some(elements.set()),
            _ => None,
        }
    }

    /// The object's handle; elements have none.
    #[must_use]
    pub fn handle(&self) -> Option<u64> {
        Some(match self.object().ok()? {
            EventObject::Table(table) => table.handle(),
            EventObject::Chain(chain) => chain.handle(),
            EventObject::Rule(rule) => rule.handle(),
            EventObject::Set(set) => set.handle(),
            EventObject::Object(object) => object.handle(),
            EventObject::Flowtable(flowtable) => flowtable.handle(),
            EventObject::Elements(_) | EventObject::Unknown => return None,
        })
    }

    /// The number that the operation behind it had in its batch (`nlmsg_seq`). `nft` gives all elements
    /// the number 0.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.message.sequence
    }

    /// The same in words: what was done to what, its names and handle. The index is always 0.
    #[must_use]
    pub fn operation(&self) -> Operation {
        describe(0, &self.message)
    }

    /// The message, as it came.
    #[must_use]
    pub const fn message(&self) -> Message<'a> {
        self.message
    }

    /// `NFT_MSG_*`.
    const fn kind(&self) -> u8 {
        self.message.kind as u8
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation().fmt_words(f)?;
        let Ok(EventObject::Elements(elements)) = self.object() else {
            return Ok(());
        };
        f.write_str(" {")?;
        let mut separator = " ";
        for element in elements.elements().into_iter().flatten() {
            f.write_str(separator)?;
            separator = ", ";
            match element {
                // The type of the bytes is the set's, and that is not told.
                Ok(element) => match element.key_bytes() {
                    Some(key) => write!(f, "0x{}", Bytes::borrowed(key))?,
                    None => f.write_str("*")?,
                },
                Err(malformed) => write!(f, "({malformed})")?,
            }
        }
        f.write_str(" }")
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("operation", &format_args!("{self}"))
            .field("flags", &self.flags())
            .field("object", &self.object())
            .finish()
    }
}
