//! Transactions: one message buffer, sent as one datagram, and applied completely or not at all.

mod bytecode;
mod echo;
mod elements;
mod join;

use std::fmt;
use std::ops::Range;

use chainwright_sys::netlink::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELRULE, NFT_MSG_DELTABLE, NFT_MSG_NEWTABLE, NFTA_RULE_CHAIN, NFTA_RULE_TABLE,
};
use chainwright_sys::nfnetlink::{
    NFNL_BATCH_GENID, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NFNL_SUBSYS_NFTABLES,
};

use super::Chain;
use super::connection::message_type;
use super::explain::{Operation, describe, name_of_operation};
use super::generation::Generation;
use super::name::Name;
use super::object::{Identified as _, Object, Written as _};
use super::{Family, Reference, Rule, Set, SetId};
use crate::netlink::{Malformed, Message, MessageError, MessageWriter, Messages, NfGenMsg};
pub(super) use echo::{Echo, has_handle};
pub(super) use join::IdAllocator;

/// Length of `BATCH_BEGIN` with a generation: header, nfgenmsg, one attribute of four bytes.
const BEGIN: usize = 28;
/// Length of `BATCH_END`: header, nfgenmsg.
pub(super) const END: usize = 20;
/// Length of the attribute with the generation.
const GENERATION: usize = 8;
/// Length of an attribute's header.
const ATTRIBUTE: usize = 4;
/// The first id assigned by a transaction.
const FIRST_ASSIGNED_ID: u32 = 1 << 31;
/// Position of the flags in a message's header.
const FLAGS: Range<usize> = 6..8;

/// A list of operations that the kernel applies as one change: packets and readers see the ruleset before it or after
/// it, and if any operation fails, nothing changes.
///
/// To replace the contents of a table, flush and refill it ([`flush_table`](Self::flush_table)): chains that exist
/// before and after then exist all the time. A transaction that deletes a table and creates it again is also applied as
/// one, but a reader whose lookup began just before may find neither the old table nor the new one.
///
/// Operations are encoded into one buffer when they are added, in the order in which the kernel applies them; nothing
/// else is allocated. Committing does not change a transaction, so it can be committed again.
///
/// It is [`Send`] and [`Sync`]; its `Debug` lists the descriptions of its operations.
#[derive(Clone)]
pub struct Transaction {
    /// Room for `BATCH_BEGIN` with a generation, with the message at its end; the operations; `BATCH_END`. Between
    /// calls it is ready to be sent: the first and last operation and the end request an acknowledgement.
    buffer: Vec<u8>,
    operations: u32,
    /// Offset of the last operation.
    last: usize,
    expected: Option<Generation>,
    /// Whether operations are encoded like nft's, where that differs.
    nft_compatible: bool,
}

impl Default for Transaction {
    fn default() -> Self {
        Self::new()
    }
}

impl Transaction {
    /// Creates an empty transaction.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates an empty transaction with room for this many bytes of operations.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let mut this = Self {
            buffer: Vec::with_capacity(BEGIN + bytes + END + 32),
            operations: 0,
            last: BEGIN,
            expected: None,
            nft_compatible: false,
        };
        this.buffer.resize(BEGIN, 0);
        this.write_begin();
        this.seal();
        this
    }

    /// Creates an empty transaction whose bytes will equal nft's: tables without `NLM_F_CREATE`, the elements of a
    /// message numbered from 1 instead of the attribute type `NFTA_LIST_ELEM`, and deletions of elements with all their
    /// attributes. The kernel ignores these differences.
    #[doc(hidden)]
    pub fn nft_compatible() -> Self {
        Self {
            nft_compatible: true,
            ..Self::new()
        }
    }

    /// Encodes operations added from now on in the usual way.
    #[doc(hidden)]
    pub fn into_regular(mut self) -> Self {
        self.nft_compatible = false;
        self
    }

    /// Removes all operations and keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.truncate(BEGIN);
        self.operations = 0;
        self.last = BEGIN;
        self.expected = None;
        self.nft_compatible = false;
        self.write_begin();
        self.seal();
    }

    /// Returns the number of operations.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.operations as usize
    }

    /// Returns `true` if there are no operations.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Returns the length of the operations in bytes.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.operations().len()
    }

    /// Makes the commit conditional: it fails, with nothing applied, if the ruleset no longer has this generation.
    ///
    /// A generation of another namespace, or from a file, is rejected when the transaction is committed
    /// ([`CommitError::generation_is_foreign`](super::CommitError::generation_is_foreign)).
    pub fn expect_generation(&mut self, generation: Generation) -> &mut Self {
        self.expected = Some(generation);
        self.write_begin();
        self
    }

    /// Returns the generation that the commit is conditional on.
    #[must_use]
    pub const fn expected_generation(&self) -> Option<Generation> {
        self.expected
    }

    /// Removes the end, so that more operations can be written.
    #[inline]
    fn unseal(&mut self) {
        self.buffer.truncate(self.buffer.len() - END);
        if self.last != BEGIN {
            self.acknowledge(self.last, false); // the next one becomes the last
        }
    }

    /// Writes the end, and requests acknowledgements of the first and last operation.
    #[inline]
    fn seal(&mut self) {
        if self.operations > 0 {
            self.acknowledge(BEGIN, true);
            self.acknowledge(self.last, true);
        }
        let end = batch_message(
            END,
            NFNL_MSG_BATCH_END,
            NLM_F_REQUEST | NLM_F_ACK,
            self.operations + 1,
        );
        self.buffer.extend_from_slice(&end);
    }

    /// Sets or clears the flag that requests an acknowledgement of the operation at this offset.
    #[inline]
    fn acknowledge(&mut self, at: usize, enable: bool) {
        if let Some(flags) = self.buffer.get_mut(at + FLAGS.start..at + FLAGS.end) {
            let others = u16::from_ne_bytes([flags[0], flags[1]]) & !NLM_F_ACK;
            let set = if enable { others | NLM_F_ACK } else { others };
            flags.copy_from_slice(&set.to_ne_bytes());
        }
    }

    #[inline]
    pub(super) fn operation(
        &mut self,
        message: u8,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<&mut Self, MessageError> {
        self.unseal();
        let written = self.write_operation(message, flags, family, content);
        self.seal();
        written.map(|()| self)
    }

    /// Writes an operation after the end was removed.
    #[inline]
    fn write_operation(
        &mut self,
        message: u8,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<(), MessageError> {
        let start = self.buffer.len();
        let sequence = self.operations + 1;
        let mut writer = MessageWriter::nfnetlink(
            &mut self.buffer,
            message_type(message),
            NLM_F_REQUEST | flags,
            sequence,
            NfGenMsg {
                family: family.0,
                resource: 0,
            },
        );
        content(&mut writer);
        writer.finish().map_err(|error| MessageError {
            operation: Some(name_of_operation(message, flags)),
            ..error
        })?;
        self.operations = sequence;
        self.last = start;
        Ok(())
    }

    /// Returns the flags for adding such an object. `NLM_F_APPEND` is set only for ordered objects; the kernel ignores
    /// it for others.
    #[inline]
    const fn flags_of<T: Object>(&self) -> u16 {
        let created = match self.nft_compatible && T::MESSAGES.new == NFT_MSG_NEWTABLE {
            true => 0,
            false => NLM_F_CREATE,
        };
        match T::MESSAGES.ordered {
            true => created | NLM_F_APPEND,
            false => created,
        }
    }

    /// Adds an object; a rule is added at the end of its chain, or after its `position`. An existing table or chain
    /// stays and is updated with the given attributes, such as a policy.
    ///
    /// # Errors
    /// [`MessageError`] if an attribute is too long, or a name is too long or contains a NUL; the transaction is then
    /// unchanged.
    #[inline]
    pub fn add<T: Object>(&mut self, object: &T) -> Result<&mut Self, MessageError> {
        let flags = self.flags_of::<T>();
        self.operation(T::MESSAGES.new, flags, object.family(), |writer| {
            object.write(writer);
        })
    }

    /// Adds an object that must not exist.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    #[inline]
    pub fn create<T: Object>(&mut self, object: &T) -> Result<&mut Self, MessageError> {
        let flags = NLM_F_EXCL | self.flags_of::<T>();
        self.operation(T::MESSAGES.new, flags, object.family(), |writer| {
            object.write(writer);
        })
    }

    /// Adds an anonymous set, for one rule that must follow, and assigns an id that is unique among the sets of this
    /// transaction. Use the id to add the elements ([`add_elements`](Self::add_elements)) and in the rule
    /// ([`Lookup::set_id`](super::expr::Lookup)). The set's own id is ignored.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    pub fn add_anonymous(&mut self, set: &Set<'_>) -> Result<SetId<'static>, MessageError> {
        // Far from the ids that callers usually count from 0 or 1.
        let id = FIRST_ASSIGNED_ID | (self.operations + 1);
        let set = Set {
            id: Some(id),
            ..set.clone()
        };
        self.add(&set)?;
        let name = set.set_id();
        Ok(SetId {
            family: name.family,
            table: name.table.into_owned(),
            set: name.set.into_owned(),
            id: name.id,
        })
    }

    /// Inserts a rule at the head of its chain, or before its `position`.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    #[inline]
    pub fn insert(&mut self, rule: &Rule<'_>) -> Result<&mut Self, MessageError> {
        let message = Rule::MESSAGES.new;
        self.operation(message, NLM_F_CREATE, rule.family, |writer| {
            rule.write(writer);
        })
    }

    /// Replaces the rule with this rule's handle. On Linux 6.18 the new rule has the same handle.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    #[inline]
    pub fn replace(&mut self, rule: &Rule<'_>) -> Result<&mut Self, MessageError> {
        let message = Rule::MESSAGES.new;
        self.operation(message, NLM_F_REPLACE, rule.family, |writer| {
            rule.write(writer);
        })
    }

    /// Renames the chain with this handle.
    #[doc(hidden)]
    pub fn rename(&mut self, chain: &Chain<'_>) -> Result<&mut Self, MessageError> {
        self.operation(Chain::MESSAGES.new, 0, chain.family, |writer| {
            chain.write(writer);
        })
    }

    /// Deletes the object that a [`ChainId`](super::ChainId) or another reference identifies, or this object. It must
    /// exist: a table with its contents, an empty chain, a rule by handle. A deletion never means more than one object,
    /// except for [`Elements`](super::Elements); use the `flush_…` operations for that.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    #[inline]
    pub fn delete<R: Reference>(&mut self, reference: &R) -> Result<&mut Self, MessageError> {
        self.operation(R::MESSAGES.delete, 0, reference.family(), |writer| {
            reference.write_identity(writer);
        })
    }

    /// Deletes an object if it exists (Linux 6.3; before, the commit fails with `EINVAL`).
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    #[inline]
    pub fn destroy<R: Reference>(&mut self, reference: &R) -> Result<&mut Self, MessageError> {
        self.operation(R::MESSAGES.destroy, 0, reference.family(), |writer| {
            reference.write_identity(writer);
        })
    }

    /// Removes the devices named in the object's hook from a chain or flowtable, which remains. With `is_destroyed` the
    /// flowtable may be missing; the kernel supports that for flowtables only.
    #[doc(hidden)]
    pub fn delete_devices<T: Object>(
        &mut self,
        object: &T,
        is_destroyed: bool,
    ) -> Result<&mut Self, MessageError> {
        let message = match is_destroyed {
            true => T::MESSAGES.destroy,
            false => T::MESSAGES.delete,
        };
        self.operation(message, 0, object.family(), |writer| object.write(writer))
    }

    /// Deletes all rules of a chain.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    pub fn flush_chain<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        chain: impl Into<Name<'n>>,
    ) -> Result<&mut Self, MessageError> {
        let (table, chain) = (table.into(), chain.into());
        self.operation(NFT_MSG_DELRULE, 0, family, |writer| {
            writer
                .string(NFTA_RULE_TABLE, &table)
                .string(NFTA_RULE_CHAIN, &chain);
        })
    }

    /// Deletes all rules of all chains in a table; the chains, the sets and the table remain.
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    pub fn flush_table<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
    ) -> Result<&mut Self, MessageError> {
        let table = table.into();
        self.operation(NFT_MSG_DELRULE, 0, family, |writer| {
            writer.string(NFTA_RULE_TABLE, &table);
        })
    }

    /// Deletes all tables of a family, or of all families for [`Family::UNSPEC`].
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    pub fn flush_ruleset(&mut self, family: Family) -> Result<&mut Self, MessageError> {
        self.operation(NFT_MSG_DELTABLE, 0, family, |_| {})
    }

    /// Appends encoded operations: consecutive nf_tables messages, as between `BATCH_BEGIN` and `BATCH_END`, in this
    /// machine's byte order. They get new sequence numbers.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not complete nf_tables messages; the transaction is then unchanged.
    pub fn append(&mut self, messages: &[u8]) -> Result<&mut Self, Malformed> {
        self.unseal();
        let before = (self.buffer.len(), self.operations, self.last);
        let written = Messages::new(messages)
            .try_for_each(|message| message.and_then(|message| self.append_one(&message)));
        if written.is_err() {
            self.buffer.truncate(before.0);
            (self.operations, self.last) = (before.1, before.2);
        }
        self.seal();
        written.map(|()| self)
    }

    fn append_one(&mut self, message: &Message<'_>) -> Result<(), Malformed> {
        let (header, attributes) = message.nfgenmsg()?;
        if u32::from(message.kind >> 8) != u32::from(NFNL_SUBSYS_NFTABLES) {
            return Err(Malformed {
                what: "operation",
                offset: 0,
                reason: "not an nf_tables message",
            });
        }
        let flags = message.flags & !(NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO);
        let family = Family(header.family);
        self.write_operation(message.kind as u8, flags, family, |writer| {
            writer.encoded(attributes);
        })
        .map_err(|_| Malformed {
            what: "operation",
            offset: 0,
            reason: "message is too long",
        })
    }

    /// Returns the sequence numbers of the operations.
    pub(super) fn sequences(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.operations
    }

    /// Returns the encoded operations: consecutive nf_tables messages, as accepted by [`append`](Self::append).
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.operations()
    }

    /// Returns the bytes of the operations, without the messages around them.
    pub(super) fn operations(&self) -> &[u8] {
        &self.buffer[BEGIN..self.buffer.len() - END]
    }

    /// Returns an operation, counted from 0, without its message's header.
    #[doc(hidden)]
    pub fn payload(&self, index: usize) -> Option<&[u8]> {
        let mut messages = crate::netlink::Messages::new(self.operations());
        Some(messages.nth(index)?.ok()?.payload)
    }

    /// Describes the operations, in order, as in errors.
    pub fn described(&self) -> impl Iterator<Item = Operation> {
        self.messages()
            .zip(0..)
            .map(|(message, index)| describe(index, &message))
    }

    /// Iterates over the operations' messages.
    pub(super) fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        Messages::new(self.operations()).map_while(Result::ok)
    }

    /// Passes the datagram of the transaction to `send`.
    ///
    /// [`BatchReplies`](crate::netlink::BatchReplies) describes its contents: the first and last operation and
    /// `BATCH_END` request acknowledgements. [`Connection::commit`](super::Connection::commit) calls this itself; use
    /// it to measure the bytes, or to send them in another way.
    pub fn datagram<R>(&self, send: impl FnOnce(&[u8]) -> R) -> R {
        let unused = if self.expected.is_some() {
            0
        } else {
            GENERATION
        };
        send(&self.buffer[unused..])
    }

    /// Writes `BATCH_BEGIN` into the room before the first operation.
    fn write_begin(&mut self) {
        let length = if self.expected.is_some() { BEGIN } else { END };
        let start = BEGIN - length;
        let begin = batch_message(length, NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, 0);
        self.buffer[start..start + END].copy_from_slice(&begin);
        if let Some(generation) = self.expected.map(Generation::number) {
            let attribute = &mut self.buffer[BEGIN - GENERATION..BEGIN];
            attribute[..2].copy_from_slice(&(GENERATION as u16).to_ne_bytes());
            attribute[2..ATTRIBUTE].copy_from_slice(&NFNL_BATCH_GENID.to_ne_bytes());
            attribute[ATTRIBUTE..].copy_from_slice(&generation.to_be_bytes());
        }
    }
}

/// Lists the descriptions of the operations.
impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Descriptions<'t>(&'t Transaction);
        impl fmt::Debug for Descriptions<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let descriptions = self.0.described().map(|operation| operation.to_string());
                f.debug_list().entries(descriptions).finish()
            }
        }
        let mut out = f.debug_struct("Transaction");
        out.field("operations", &Descriptions(self));
        if let Some(generation) = &self.expected {
            out.field("expected", generation);
        }
        out.finish()
    }
}

/// Returns a batch without operations.
pub(super) fn empty_batch() -> [u8; 2 * END] {
    let mut batch = [0; 2 * END];
    for (message, kind) in batch
        .chunks_exact_mut(END)
        .zip([NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END])
    {
        message.copy_from_slice(&batch_message(END, kind, NLM_F_REQUEST, 0));
    }
    batch
}

/// Encodes `BATCH_BEGIN` or `BATCH_END`: header and nfgenmsg. Encoded by hand without allocation, because the end is
/// written after every operation.
fn batch_message(length: usize, kind: u16, flags: u16, sequence: u32) -> [u8; END] {
    let mut message = [0; END];
    message[..4].copy_from_slice(&(length as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&kind.to_ne_bytes());
    message[FLAGS].copy_from_slice(&flags.to_ne_bytes());
    message[8..12].copy_from_slice(&sequence.to_ne_bytes());
    // After the port, family and version, which are 0: the subsystem, big-endian.
    message[18..].copy_from_slice(&(NFNL_SUBSYS_NFTABLES as u16).to_be_bytes());
    message
}

#[cfg(test)]
mod tests;
