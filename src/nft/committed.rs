//! The kernel's echo of a committed transaction: its generation and the added objects.
//!
//! For an operation with `NLM_F_ECHO` the kernel also sends its notification to the sender of the batch, with the
//! operation's sequence number. If the first operation has the flag, the kernel also echoes the new generation. Each
//! message contains the low 16 bits of the generation. The kernel sends echoes during the commit, and never for a
//! rejected transaction, so any echo proves the commit. The kernel drops messages that do not fit the receive buffer.
//! It also drops the message of a rule that is larger than the kernel's buffer for one message (some kilobytes),
//! without an error on the socket.
//!
//! Source: `nft_commit_notify` and `nf_tables_gen_notify` in `net/netfilter/nf_tables_api.c` of Linux; observed on
//! 6.18.

use std::fmt;

use chainwright_sys::nf_tables::{NFT_MSG_NEWGEN, NFT_MSG_NEWRULE};

use super::connection::message_type;
use super::generation::{Generation, GenerationRef};
use super::live::{Change, Event};
use super::transaction::{Transaction, has_handle};
use crate::netlink::{Message, Messages};

/// Maximum number of bytes of echoed messages kept.
const MAX_KEPT: usize = 256 * 1024 * 1024;
/// Marks an operation without an echoed message.
const NO_MESSAGE: u32 = u32::MAX;

/// The kernel's echo (`NLM_F_ECHO`) of a committed transaction: the new generation and the added objects, with the
/// handles and names assigned by the kernel.
///
/// Returned by [`Connection::commit_echo`](super::Connection::commit_echo).
#[derive(Clone, PartialEq, Eq)]
pub struct Committed {
    generation: Option<Generation>,
    /// The received messages.
    bytes: Vec<u8>,
    /// For each operation, the offset of the message of the added object.
    added: Vec<u32>,
    /// Operations whose message is missing.
    missing: Vec<usize>,
    is_lossy: bool,
}

impl Committed {
    /// Returns the generation created by this transaction alone: events of that generation belong to it
    /// ([`Change::generation`]). `None` if the transaction changed nothing and created no generation, or if the whole
    /// echo was lost ([`is_complete`](Self::is_complete)).
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// Returns `true` if a notified change is this transaction.
    ///
    /// Kernels before 5.14 have no numbers for network namespaces. There, only changes from a monitor opened
    /// [in the namespace](super::live::MonitorOptions::open_in_namespace_of) of the committing connection can be
    /// recognized.
    #[must_use]
    pub fn matches(&self, change: &Change) -> bool {
        self.generation == Some(change.generation())
    }

    /// Returns the number of operations in the transaction.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.added.len()
    }

    /// Returns the object that an operation added or changed, in its current state. Operations are counted from 0, as
    /// in [`Transaction::described`].
    ///
    /// `None` if the operation adds no table, chain, rule, set, stateful object or flowtable; if the object existed and
    /// did not change; and if the message is [missing](Self::missing).
    #[must_use]
    pub fn added(&self, operation: usize) -> Option<Event<'_>> {
        self.at(*self.added.get(operation)?)
    }

    /// Returns the handle of the object that an operation added, for example to replace or delete a rule later. `None`
    /// as for [`added`](Self::added).
    #[must_use]
    pub fn handle(&self, operation: usize) -> Option<u64> {
        self.added(operation)?.handle()
    }

    /// Iterates over all added objects, each with the number of its operation.
    pub fn additions(&self) -> impl Iterator<Item = (usize, Event<'_>)> {
        let added = self.added.iter().enumerate();
        added.filter_map(|(operation, &at)| Some((operation, self.at(at)?)))
    }

    /// Returns the operations that added something, or may have, but whose message was not received. They were applied;
    /// list the ruleset to see the added objects.
    ///
    /// There are three causes. A rule's message was larger than the kernel's buffer for one message (some kilobytes):
    /// only that rule is missing. The socket's receive buffer was full, which `net.core.rmem_max` limits without
    /// `CAP_NET_ADMIN` in the first user namespace: all later messages are missing. The echo exceeded 256 MiB: the rest
    /// is not kept.
    #[must_use]
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Returns `true` if the echo (`NLM_F_ECHO`) is complete.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
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

/// Collects the kernel's echo to the sender of a batch.
#[derive(Debug)]
pub(super) struct EchoCollector {
    /// The sender's netlink port.
    port: u32,
    /// A generation before the batch.
    before: Option<Generation>,
    bytes: Vec<u8>,
    added: Vec<u32>,
    generation: Option<u32>,
    /// The low 16 bits of the new generation, which every message contains.
    resource: Option<u16>,
    is_lossy: bool,
}

impl EchoCollector {
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

    /// Resets this for a batch of `operations` operations that is sent at generation `before` or later.
    pub(super) fn begin(&mut self, operations: usize, before: Generation) {
        *self = Self {
            before: Some(before),
            added: vec![NO_MESSAGE; operations],
            ..Self::new(self.port)
        };
    }

    /// Returns the size of the receive buffer that the echo needs.
    pub(super) fn space(transaction: &Transaction) -> usize {
        // The kernel lists objects with more attributes than requested, and counts its own overhead against the buffer.
        let more = transaction.len().saturating_mul(EXTRA_PER_OBJECT);
        transaction
            .byte_length()
            .saturating_add(more)
            .min(MAX_BUFFER_LENGTH)
    }

    /// Reads a datagram; returns whether it contains echoed messages of the batch.
    pub(super) fn accept(&mut self, datagram: &[u8]) -> bool {
        let mut is_echo = false;
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
            is_echo = true;
        }
        is_echo
    }

    fn keep(&mut self, message: &Message<'_>) {
        let index = message.sequence as usize - 1;
        let Some(added) = self.added.get_mut(index) else {
            return;
        };
        if !has_handle(message.kind as u8) || *added != NO_MESSAGE {
            return;
        }
        if self.bytes.len() + message.padded_length() > MAX_KEPT {
            self.is_lossy = true;
            return;
        }
        *added = self.bytes.len() as u32;
        self.bytes.extend_from_slice(message.raw);
        let end = *added as usize + message.padded_length();
        self.bytes.resize(end, 0);
    }

    /// Records that something was lost.
    pub(super) const fn record_loss(&mut self) {
        self.is_lossy = true;
    }

    /// Returns the result of the transaction, which was committed.
    pub(super) fn finish(self, transaction: &Transaction) -> Committed {
        let number = self
            .generation
            .or_else(|| next_with_low_bits(self.before?.number(), self.resource?));
        let messages = transaction.messages().zip(&self.added).enumerate();
        let missing = messages.filter(|(_, (message, at))| {
            let kind = message.kind as u8;
            // Every rule operation has an echoed message.
            **at == NO_MESSAGE && has_handle(kind) && (self.is_lossy || kind == NFT_MSG_NEWRULE)
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

/// Additional bytes reserved per object, beyond the size of its operation.
const EXTRA_PER_OBJECT: usize = 256;
/// Maximum size of the receive buffer reserved for the echo.
const MAX_BUFFER_LENGTH: usize = 64 * 1024 * 1024;

/// Returns the first number after `before` with these low 16 bits. Fewer than 65,536 other commits fit between reading
/// the generation and sending the batch.
fn next_with_low_bits(before: u32, low: u16) -> Option<u32> {
    let steps = low.wrapping_sub(before as u16);
    (steps > 0).then(|| before.wrapping_add(u32::from(steps)))
}

#[cfg(test)]
mod tests;
