//! One transaction as reported by the kernel: views over the received bytes.

use std::fmt;

use bstr::BStr;
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE, NFT_MSG_DELSET,
    NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN, NFT_MSG_DESTROYFLOWTABLE,
    NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWGEN, NFT_MSG_NEWOBJ,
    NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_TABLE_NAME,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;

use crate::netlink::{Malformed, Message, Messages};
use crate::nft::declare::Field;
use crate::nft::explain::describe;
use crate::nft::name::Name;
use crate::nft::{
    Bytes, ChainRef, ElementsRef, Family, FlowtableRef, Generation, GenerationRef, Operation,
    RuleRef, SetRef, StatefulObjectRef, TableRef,
};

/// One committed transaction: its generation, the committing process, and the added and deleted objects.
///
/// It stores the kernel's messages unchanged and parses them on access.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// The messages of the events, followed by the closing one (`NFT_MSG_NEWGEN`).
    bytes: Vec<u8>,
    /// Offset of the closing message.
    end: usize,
    /// Number of events.
    events: usize,
    generation: Generation,
}

impl Change {
    /// Creates a change from complete messages. The message at `end` was parsed as this generation.
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

    /// Parses the result of [`as_bytes`](Self::as_bytes).
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not the events of a transaction, followed by its generation.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let refused = |offset, reason| Malformed {
            what: "a recorded transaction",
            offset,
            reason,
        };
        let (mut at, mut events) = (0, 0);
        while at < bytes.len() {
            let (message, _) = Message::split(&bytes[at..])?;
            if message.kind >> 8 != u16::from(NFNL_SUBSYS_NFTABLES) {
                return Err(refused(at, "it contains a message of something else"));
            }
            message.nfgenmsg()?;
            let next = at + message.padded_length();
            if message.kind as u8 == NFT_MSG_NEWGEN {
                if next < bytes.len() {
                    return Err(refused(at, "its generation is not its last message"));
                }
                let generation = Generation::recorded(GenerationRef::parse(&message)?.id());
                return Ok(Self::new(bytes, at, events, generation));
            }
            crate::nft::snapshot::check_outside_message(&message)?;
            (at, events) = (next, events + 1);
        }
        Err(refused(at, "its generation is missing"))
    }

    fn closing(&self) -> Message<'_> {
        Message::first(&self.bytes[self.end..]).expect("invariant: it was read when it came")
    }

    fn info(&self) -> GenerationRef<'_> {
        GenerationRef::parse(&self.closing()).expect("invariant: it was read when it came")
    }

    /// Returns the generation that the transaction created.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the port of the committing socket: compare it with the ports of your own connections
    /// ([`Connection::port`](crate::nft::Connection::port), [`Pool::ports`](crate::nft::Pool::ports)) to ignore your
    /// own changes. It is not the process ID, although for `nft` and iptables the two are often equal.
    #[must_use]
    pub fn port(&self) -> u32 {
        self.closing().port
    }

    /// Returns the ID of the committing thread in the initial pid namespace. The ID of a process' first thread is the
    /// process ID.
    #[must_use]
    pub fn thread_id(&self) -> Option<u32> {
        self.info().thread_id()
    }

    /// Returns the name of that thread (`comm`), at most 15 bytes.
    #[must_use]
    pub fn thread_name(&self) -> Option<&BStr> {
        self.info().thread_name()
    }

    /// Returns the process of that thread according to `/proc`: see [`GenerationRef::process_id`]. Most `nft` and
    /// iptables processes have exited by then.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.info().process_id()
    }

    /// Returns the additions and deletions, in the kernel's order.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events {
            messages: Messages::new(&self.bytes[..self.end]),
            rest: self.events,
        }
    }

    /// Returns the received messages of the events and of the generation, unchanged.
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
    /// Flags with which an object was added. The kernel reports them for rules, sets and elements since Linux 5.15; it
    /// doesn't report any for the update of an existing object (a chain's new name).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
    pub struct EventFlags: u16 {
        /// Replaces an existing object.
        ///
        /// `NLM_F_REPLACE`
        const REPLACE = NLM_F_REPLACE;
        /// Fails if the object exists.
        ///
        /// `NLM_F_EXCL`
        const EXCLUSIVE = NLM_F_EXCL;
        /// Creates the object if it doesn't exist.
        ///
        /// `NLM_F_CREATE`
        const CREATE = NLM_F_CREATE;
        /// The rule was added after another one or at the end; without this flag before another one or at the start.
        ///
        /// `NLM_F_APPEND`
        const APPEND = NLM_F_APPEND;
        /// Preserves bits that this version of the crate does not know.
        const _ = !0;
    }
}

/// One object that was added, changed or deleted.
///
/// Its `Display` prints `add chain ip nat KUBE-SERVICES handle 1`, and the keys of elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    message: Message<'a>,
}

/// The object of an [`Event`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum EventObject<'a> {
    /// A table.
    Table(TableRef<'a>),
    /// A chain. For an existing chain: the update of its name, policy, devices or state.
    Chain(ChainRef<'a>),
    /// A rule.
    ///
    /// [`RuleRef::position`] is the handle of the preceding rule at that moment, counting all rules that this
    /// transaction adds and excluding those that earlier events deleted. The first rule and the last rule of a chain
    /// and deleted rules have no position; [`EventFlags::APPEND`] distinguishes the first rule from the last. The
    /// replacement of a rule is a deletion and an addition, with the same handle on newer kernels.
    Rule(RuleRef<'a>),
    /// A set or map.
    Set(SetRef<'a>),
    /// Elements of a set, usually one.
    Elements(ElementsRef<'a>),
    /// A stateful object.
    Object(StatefulObjectRef<'a>),
    /// A flowtable; for an existing one, the devices that were added or removed.
    Flowtable(FlowtableRef<'a>),
    /// A message of a type that this version of the crate does not know.
    Unknown,
}

impl<'a> Event<'a> {
    pub(in crate::nft) const fn new(message: Message<'a>) -> Self {
        Self { message }
    }

    /// Returns `true` if the object was deleted. For a deleted object the kernel sends its identification, including
    /// the handle, and some kernels send complete rules.
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

    /// Parses the object.
    ///
    /// # Errors
    /// [`Malformed`] when the message cannot be parsed as such an object. [`message`](Self::message) still returns the
    /// bytes.
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

    /// Returns the flags with which the object was added.
    #[must_use]
    pub const fn flags(&self) -> EventFlags {
        EventFlags::from_bits_retain(self.message.flags)
    }

    /// Returns the address family of the object.
    #[must_use]
    pub fn family(&self) -> Family {
        let header = self.message.nfgenmsg();
        header.map_or(Family::UNSPEC, |(header, _)| Family(header.family))
    }

    /// Returns the name of the object's table, or of the table itself.
    #[must_use]
    pub fn table(&self) -> Option<&'a BStr> {
        // The table name has the same attribute number in all objects.
        let name = self.message.attributes().ok()?.find(NFTA_TABLE_NAME)?;
        Name::parse_payload(name)
    }

    /// Returns the name of the chain, or of the rule's chain.
    #[must_use]
    pub fn chain(&self) -> Option<&'a BStr> {
        match self.object().ok()? {
            EventObject::Chain(chain) => Some(chain.name()),
            EventObject::Rule(rule) => Some(rule.chain()),
            _ => None,
        }
    }

    /// Returns the name of the set, or of the elements' set.
    #[must_use]
    pub fn set(&self) -> Option<&'a BStr> {
        match self.object().ok()? {
            EventObject::Set(set) => Some(set.name()),
            EventObject::Elements(elements) => Some(elements.set()),
            _ => None,
        }
    }

    /// Returns the object's handle; elements have none.
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

    /// Returns the number of the operation in its batch (`nlmsg_seq`). `nft` numbers all elements 0.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.message.sequence
    }

    /// Describes the operation: its kind, and the object's names and handle. The index is always 0.
    #[must_use]
    pub fn operation(&self) -> Operation {
        describe(0, &self.message)
    }

    /// Returns the message as received.
    #[must_use]
    pub const fn message(&self) -> Message<'a> {
        self.message
    }

    /// Returns the message type, `NFT_MSG_*`.
    const fn kind(&self) -> u8 {
        self.message.kind as u8
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation().fmt_without_index(f)?;
        let Ok(EventObject::Elements(elements)) = self.object() else {
            return Ok(());
        };
        f.write_str(" {")?;
        let mut separator = " ";
        for element in elements.elements().into_iter().flatten() {
            f.write_str(separator)?;
            separator = ", ";
            match element {
                // The event doesn't include the set's type, so the key is printed as bytes.
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
