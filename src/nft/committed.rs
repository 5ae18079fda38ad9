//! What the kernel tells the sender of a transaction that it committed: its generation and what it added.
//!
//! An operation that asks for it (`NLM_F_ECHO`) has the sender told what all who listen are told of it, at the
//! operation's own sequence number, and where the first operation asks, also of the generation; the low half of the
//! generation's number stands in all of it. The kernel tells it while it commits, and never of a transaction that it
//! refuses: whatever comes proves the commit. What does not fit the receive buffer is dropped, and so is the message of
//! a rule that is larger than the kernel's buffer for one (some kilobytes), of which the socket says nothing.
//!
//! Source: `nft_commit_notify` and `nf_tables_gen_notify` in `net/netfilter/nf_tables_api.c` of Linux; seen on
//! 6.18.

use std::fmt;

use chainwright_sys::nf_tables::{NFT_MSG_NEWGEN, NFT_MSG_NEWRULE};

use super::connection::message_type;
use super::generation::{Generation, GenerationRef};
use super::live::{Change, Event};
use super::transaction::{Transaction, gets_a_handle};
use crate::netlink::{Message, Messages};

/// How many bytes of what is told are kept at most.
const KEPT: usize = 256 * 1024 * 1024;
/// That an operation was not told of.
const NOWHERE: u32 = u32::MAX;

/// The kernel's echo (`NLM_F_ECHO`) of a committed transaction: the generation that it made, and what its operations
/// added, with the handles and names that the kernel gave.
///
/// [`Connection::commit_echo`](super::Connection::commit_echo) gives it.
#[derive(Clone, PartialEq, Eq)]
pub struct Committed {
    generation: Option<Generation>,
    /// Messages as they came.
    bytes: Vec<u8>,
    /// For each operation where the message of what it added starts.
    added: Vec<u32>,
    /// Of what nothing came that should have.
    missing: Vec<usize>,
    is_lossy: bool,
}

impl Committed {
    /// The generation that the transaction made, and no other: events of that generation are its own
    /// ([`Change::generation`]). `None` if it changed nothing, so that it made none; and if everything that the
    /// kernel told was lost ([`is_whole`](Self::is_whole)).
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// Whether a notified change is this transaction: nobody else's, and no other one of one's own.
    ///
    /// On kernels before 5.14, which give network namespaces no number, only a monitor that was opened
    /// [beside](super::live::MonitorOptions::open_beside) the connection that committed it tells changes that can
    /// be known.
    #[must_use]
    pub fn made(&self, change: &Change) -> bool {
        self.generation == Some(change.generation())
    }

    /// How many operations the transaction had.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.added.len()
    }

    /// What an operation added, or changed, as the kernel shows it now: the operations are counted from 0, as
    /// [`Transaction::described`] has them.
    ///
    /// `None` of one that adds no table, chain, rule, set, stateful object or flowtable; that found it there and
    /// changed nothing; and if it is [missing](Self::missing).
    #[must_use]
    pub fn added(&self, operation: usize) -> Option<Event<'_>> {
        self.at(*self.added.get(operation)?)
    }

    /// The handle of what an operation added: of a rule, say, that is to be replaced or deleted later. `None` as
    /// for [`added`](Self::added).
    #[must_use]
    pub fn handle(&self, operation: usize) -> Option<u64> {
        self.added(operation)?.handle()
    }

    /// All that was added, each with the number of its operation.
    pub fn additions(&self) -> impl Iterator<Item = (usize, Event<'_>)> {
        let added = self.added.iter().enumerate();
        added.filter_map(|(operation, &at)| Some((operation, self.at(at)?)))
    }

    /// The operations that added something, or may have, of which the kernel's message did not come: they were
    /// carried out, and what they added is to be listed.
    ///
    /// There are three reasons. A rule's message was larger than the kernel's buffer for one (some kilobytes): then
    /// it alone is missing. The socket's receive buffer was full, which `net.core.rmem_max` limits without
    /// `CAP_NET_ADMIN` in the first user namespace: then all that follows is. More than 256 MiB were told: no more is
    /// kept.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Whether the whole echo (`NLM_F_ECHO`) came.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        !self.is_lossy && self.missing.is_empty()
    }

    fn at(&self, at: u32) -> Option<Event<'_>> {
        let bytes = self.bytes.get(at as usize..)?;
        Some(Event::new(Message::first(bytes).ok()?))
    }
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Additions<'c>(&'c Committed);
        impl fmt::Debug for Additions<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let additions = self.0.additions();
                let words = additions.map(|(operation, event)| (operation, event.to_string()));
                f.debug_map().entries(words).finish()
            }
        }
        f.debug_struct("Committed")
            .field("generation", &self.generation)
            .field("added", &Additions(self))
            .field("missing", &self.missing)
            .finish()
    }
}

/// Takes in what the kernel tells the sender of a batch.
#[derive(Debug)]
pub(super) struct Echoes {
    /// The sender's.
    port: u32,
    /// The generation of some moment before it.
    before: Option<Generation>,
    bytes: Vec<u8>,
    added: Vec<u32>,
    generation: Option<u32>,
    /// The low half of the generation, as every message has it.
    resource: Option<u16>,
    is_lossy: bool,
}

impl Echoes {
    pub(super) const fn new(port: u32) -> Self {
        Self {
            port,
            before: None,
            bytes: Vec::new(),
            added: Vec::new(),
            generation: None,
            resource: None,
            is_lossy: false,
        }
    }

    /// Begins anew, for a batch of so many operations that is sent while this generation is there, or a later one.
    pub(super) fn begin(&mut self, operations: usize, before: Generation) {
        *self = Self {
            before: Some(before),
            added: vec![NOWHERE; operations],
            ..Self::new(self.port)
        };
    }

    /// How much of the receive buffer it takes.
    pub(super) fn room(transaction: &Transaction) -> usize {
        // A rule is listed with what was not said, and the kernel doubles what it is told for its own
        // book-keeping.
        let more = transaction.len().saturating_mul(MORE);
        transaction.byte_length().saturating_add(more).min(ROOM)
    }

    /// Takes in a datagram; whether it tells of the batch.
    pub(super) fn accept(&mut self, datagram: &[u8]) -> bool {
        let mut tells = false;
        for message in Messages::new(datagram).map_while(Result::ok) {
            let is_ours = message.port == self.port
                && (1..=self.added.len()).contains(&(message.sequence as usize));
            let Ok((header, _)) = message.nfgenmsg() else {
                continue;
            };
            if !is_ours || message.kind & !0xff != message_type(0) {
                continue;
            }
            if message.kind == message_type(NFT_MSG_NEWGEN) {
                let Ok(generation) = GenerationRef::parse(&message) else {
                    self.is_lossy = true;
                    continue;
                };
                self.generation = Some(generation.id());
            } else {
                self.keep(&message);
            }
            self.resource = Some(header.resource);
            tells = true;
        }
        tells
    }

    fn keep(&mut self, message: &Message<'_>) {
        let index = message.sequence as usize - 1;
        let Some(added) = self.added.get_mut(index) else {
            return;
        };
        if !gets_a_handle(message.kind as u8) || *added != NOWHERE {
            return;
        }
        if self.bytes.len() + message.padded_length() > KEPT {
            self.is_lossy = true;
            return;
        }
        *added = self.bytes.len() as u32;
        self.bytes.extend_from_slice(message.raw);
        let end = *added as usize + message.padded_length();
        self.bytes.resize(end, 0);
    }

    /// Says that something was lost.
    pub(super) const fn lose(&mut self) {
        self.is_lossy = true;
    }

    /// What came of the transaction, which was committed.
    pub(super) fn finish(self, transaction: &Transaction) -> Committed {
        let number = self
            .generation
            .or_else(|| following(self.before?.number(), self.resource?));
        let messages = transaction.messages().zip(&self.added).enumerate();
        let missing = messages.filter(|(_, (message, at))| {
            let kind = message.kind as u8;
            // Of a rule there is always something to be told.
            **at == NOWHERE && gets_a_handle(kind) && (self.is_lossy || kind == NFT_MSG_NEWRULE)
        });
        Committed {
            generation: self
                .before
                .zip(number)
                .map(|(before, number)| Generation::new(number, before.origin())),
            missing: missing.map(|(index, _)| index).collect(),
            bytes: self.bytes,
            added: self.added,
            is_lossy: self.is_lossy,
        }
    }
}

/// How many bytes an object takes in what is told more than in the operation.
const MORE: usize = 256;
/// Up to how many bytes of what is told are made room for.
const ROOM: usize = 64 * 1024 * 1024;

/// The first number behind this one that has this low half: 65,536 commits of others do not fit between the
/// question before a batch and the batch.
fn following(before: u32, low: u16) -> Option<u32> {
    let steps = low.wrapping_sub(before as u16);
    (steps > 0).then(|| before.wrapping_add(u32::from(steps)))
}

#[cfg(test)]
mod tests;
