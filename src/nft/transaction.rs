//! Transactions: one message buffer, sent in one piece, applied whole or not at all.

use std::ops::Range;

use chainwright_sys::netlink::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELRULE, NFT_MSG_DELTABLE, NFTA_RULE_CHAIN, NFTA_RULE_TABLE,
};
use chainwright_sys::nfnetlink::{
    NFNL_BATCH_GENID, NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NFNL_SUBSYS_NFTABLES,
};

use super::connection::message_type;
use super::generation::Generation;
use super::name::Name;
use super::object::Object;
use super::{Family, Rule};
use crate::netlink::{Malformed, Message, MessageWriter, Messages, NfGenMsg, TooLong};

/// Length of `BATCH_BEGIN` with a generation: header, nfgenmsg, one attribute of four bytes.
const BEGIN: usize = 28;
/// Length of the attribute with the generation.
const GENERATION: usize = 8;
/// Where the flags stand in a message's header.
const FLAGS: Range<usize> = 6..8;

/// A list of operations that the kernel carries out as one change: packets and readers see the
/// ruleset before it or after it, and a failure of any operation leaves everything as it was.
///
/// To replace what is in a table, flush and refill it ([`flush_table`](Self::flush_table)): chains
/// that exist before and after then never cease to exist. A transaction that deletes a table and
/// makes it anew is applied as one as well, but a reader whose look-up began just before it may find
/// neither the old table nor the new one.
///
/// Operations are written into one buffer as they are added, in the order in which they are to be
/// carried out; nothing is allocated for them but the buffer's growth. The same transaction can be
/// committed again.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Room for `BATCH_BEGIN` with a generation, then the operations.
    buffer: Vec<u8>,
    operations: u32,
    /// Where the last operation starts.
    last: usize,
    expected: Option<Generation>,
}

impl Default for Transaction {
    fn default() -> Self {
        Self::new()
    }
}

impl Transaction {
    /// An empty transaction.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty transaction with room for this many bytes of operations.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(BEGIN + bytes + 32);
        buffer.resize(BEGIN, 0);
        Self {
            buffer,
            operations: 0,
            last: BEGIN,
            expected: None,
        }
    }

    /// Takes all operations out and keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.truncate(BEGIN);
        self.operations = 0;
        self.last = BEGIN;
        self.expected = None;
    }

    /// Number of operations.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.operations as usize
    }

    /// Whether there are no operations.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Length of the operations in bytes.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.buffer.len() - BEGIN
    }

    /// Makes the commit conditional: it fails, with nothing applied, if the ruleset is no longer
    /// of this generation.
    pub fn expect_generation(&mut self, generation: Generation) -> &mut Self {
        self.expected = Some(generation);
        self
    }

    /// The generation that the commit is conditional on.
    #[must_use]
    pub const fn expected_generation(&self) -> Option<Generation> {
        self.expected
    }

    #[inline]
    fn operation(
        &mut self,
        message: u8,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<&mut Self, TooLong> {
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
        writer.finish()?;
        self.operations = sequence;
        self.last = start;
        Ok(self)
    }

    /// Adds an object; a rule goes to the end of its chain, or behind its `position`. A table or
    /// chain that is already there stays, and takes what is given (a policy, say).
    ///
    /// # Errors
    /// [`TooLong`] when an attribute is too long; the transaction is then as it was before.
    #[inline]
    pub fn add<T: Object>(&mut self, object: &T) -> Result<&mut Self, TooLong> {
        let flags = NLM_F_CREATE | append_flag::<T>();
        self.operation(T::MESSAGES.new, flags, object.family(), |writer| {
            object.write(writer);
        })
    }

    /// Adds an object that must not be there yet.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub fn create<T: Object>(&mut self, object: &T) -> Result<&mut Self, TooLong> {
        let flags = NLM_F_CREATE | NLM_F_EXCL | append_flag::<T>();
        self.operation(T::MESSAGES.new, flags, object.family(), |writer| {
            object.write(writer);
        })
    }

    /// Inserts a rule at the head of its chain, or before its `position`.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub fn insert(&mut self, rule: &Rule<'_>) -> Result<&mut Self, TooLong> {
        let message = Rule::MESSAGES.new;
        self.operation(message, NLM_F_CREATE, rule.family, |writer| {
            rule.write(writer);
        })
    }

    /// Puts a rule in the place of the one with its handle. On Linux 6.18 the new rule has the same
    /// handle then.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub fn replace(&mut self, rule: &Rule<'_>) -> Result<&mut Self, TooLong> {
        let message = Rule::MESSAGES.new;
        self.operation(message, NLM_F_REPLACE, rule.family, |writer| {
            rule.write(writer);
        })
    }

    /// Deletes an object, which must be there: a table with all that is in it, an empty chain, a
    /// rule by its handle. One that lacks what names it fails with `ENOENT`, and never stands for
    /// more than one object: for that there are the `flush_…` operations.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub fn delete<T: Object>(&mut self, object: &T) -> Result<&mut Self, TooLong> {
        self.operation(T::MESSAGES.delete, 0, object.family(), |writer| {
            object.write_identity(writer);
        })
    }

    /// Deletes an object if it is there (Linux 6.3; before, the commit fails with `EINVAL`).
    ///
    /// # Errors
    /// As [`add`](Self::add).
    #[inline]
    pub fn destroy<T: Object>(&mut self, object: &T) -> Result<&mut Self, TooLong> {
        self.operation(T::MESSAGES.destroy, 0, object.family(), |writer| {
            object.write_identity(writer);
        })
    }

    /// Deletes all rules of a chain.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn flush_chain<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
        chain: impl Into<Name<'n>>,
    ) -> Result<&mut Self, TooLong> {
        let (table, chain) = (table.into(), chain.into());
        self.operation(NFT_MSG_DELRULE, 0, family, |writer| {
            writer
                .string(NFTA_RULE_TABLE, &table)
                .string(NFTA_RULE_CHAIN, &chain);
        })
    }

    /// Deletes all rules of all chains of a table; chains, sets and the table stay.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn flush_table<'n>(
        &mut self,
        family: Family,
        table: impl Into<Name<'n>>,
    ) -> Result<&mut Self, TooLong> {
        let table = table.into();
        self.operation(NFT_MSG_DELRULE, 0, family, |writer| {
            writer.string(NFTA_RULE_TABLE, &table);
        })
    }

    /// Deletes all tables of a family; of all families for [`Family::UNSPEC`].
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn flush_ruleset(&mut self, family: Family) -> Result<&mut Self, TooLong> {
        self.operation(NFT_MSG_DELTABLE, 0, family, |_| {})
    }

    /// Appends operations that are encoded already: nf_tables messages one behind the other, as they
    /// stand between `BATCH_BEGIN` and `BATCH_END`, in this machine's byte order. They get sequence
    /// numbers of this transaction.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are not whole nf_tables messages; the transaction is then as it
    /// was before.
    pub fn append(&mut self, messages: &[u8]) -> Result<&mut Self, Malformed> {
        let before = (self.buffer.len(), self.operations, self.last);
        for message in Messages::new(messages) {
            if let Err(malformed) = message.and_then(|message| self.append_one(&message)) {
                self.buffer.truncate(before.0);
                (self.operations, self.last) = (before.1, before.2);
                return Err(malformed);
            }
        }
        Ok(self)
    }

    fn append_one(&mut self, message: &Message<'_>) -> Result<(), Malformed> {
        let (header, attributes) = message.nfgenmsg()?;
        if u32::from(message.kind >> 8) != u32::from(NFNL_SUBSYS_NFTABLES) {
            return Err(Malformed {
                what: "operation",
                offset: 0,
                reason: "it is no nf_tables message",
            });
        }
        let flags = message.flags & !(NLM_F_REQUEST | NLM_F_ACK | NLM_F_ECHO);
        let family = Family(header.family);
        self.operation(message.kind as u8, flags, family, |writer| {
            writer.encoded(attributes);
        })
        .map(drop)
        .map_err(|_| Malformed {
            what: "operation",
            offset: 0,
            reason: "it is too long",
        })
    }

    /// The numbers of the operations, as they stand in their messages.
    pub(super) fn sequences(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.operations
    }

    /// The bytes of the operations, without the messages around them.
    pub(super) fn operations(&self) -> &[u8] {
        &self.buffer[BEGIN..]
    }

    /// Completes the batch and gives the one datagram that it is to be sent as.
    ///
    /// What the datagram holds is described at [`BatchReplies`](crate::netlink::BatchReplies):
    /// acknowledgements are asked for on the first and last operation and on `BATCH_END`.
    /// [`Connection::commit`](super::Connection::commit) does this by itself; a caller who wants
    /// the bytes, to measure or to send them in another way, gets them here.
    pub fn datagram<R>(&mut self, send: impl FnOnce(&[u8]) -> R) -> R {
        let start = self.write_begin();
        for at in [BEGIN, self.last] {
            if let Some(flags) = self.buffer.get_mut(at + FLAGS.start..at + FLAGS.end) {
                let set = u16::from_ne_bytes([flags[0], flags[1]]) | NLM_F_ACK;
                flags.copy_from_slice(&set.to_ne_bytes());
            }
        }
        let end = self.buffer.len();
        let (kind, flags) = (NFNL_MSG_BATCH_END, NLM_F_REQUEST | NLM_F_ACK);
        batch_message(&mut self.buffer, kind, flags, self.operations + 1, None);
        let result = send(&self.buffer[start..]);
        self.buffer.truncate(end);
        // More operations may be added: the last one is then another.
        if self.last != BEGIN {
            let flags = &mut self.buffer[self.last + FLAGS.start..self.last + FLAGS.end];
            let unset = u16::from_ne_bytes([flags[0], flags[1]]) & !NLM_F_ACK;
            flags.copy_from_slice(&unset.to_ne_bytes());
        }
        result
    }

    /// Writes `BATCH_BEGIN` into the room that was left for it, and tells where it starts.
    fn write_begin(&mut self) -> usize {
        let mut begin = Vec::with_capacity(BEGIN);
        let kind = NFNL_MSG_BATCH_BEGIN;
        batch_message(&mut begin, kind, NLM_F_REQUEST, 0, self.expected);
        let start = BEGIN - begin.len();
        debug_assert!(start == 0 || start == GENERATION);
        self.buffer[start..BEGIN].copy_from_slice(&begin);
        start
    }
}

/// Objects without an order take no notice of it, but do not get it either.
const fn append_flag<T: Object>() -> u16 {
    if T::MESSAGES.ordered { NLM_F_APPEND } else { 0 }
}

/// Writes `BATCH_BEGIN` or `BATCH_END`. They cannot be too long: they hold at most one number.
fn batch_message(
    buffer: &mut Vec<u8>,
    kind: u16,
    flags: u16,
    sequence: u32,
    generation: Option<Generation>,
) {
    let header = NfGenMsg {
        family: Family::UNSPEC.0,
        resource: NFNL_SUBSYS_NFTABLES as u16,
    };
    let mut writer = MessageWriter::nfnetlink(buffer, kind, flags, sequence, header);
    if let Some(Generation(generation)) = generation {
        writer.be32(NFNL_BATCH_GENID, generation);
    }
    let finished = writer.finish();
    debug_assert!(finished.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::{Chain, Table};

    #[test]
    fn encoded_operations_are_renumbered() {
        let mut one = Transaction::new();
        one.add(&Table::new(Family::IP, "t")).unwrap();
        one.add(&Chain::new(Family::IP, "t", "a")).unwrap();
        let mut two = Transaction::new();
        two.delete(&Chain::new(Family::IP, "t", "b")).unwrap();
        two.append(one.operations()).unwrap();
        let sequences: Vec<_> = Messages::new(two.operations())
            .map(|message| message.unwrap().sequence)
            .collect();
        assert_eq!(sequences, [1, 2, 3]);
        assert_eq!(two.len(), 3);

        // Anything else is refused whole.
        let before = two.operations().to_vec();
        let mut foreign = one.operations().to_vec();
        foreign[5] = 1;
        for bad in [&foreign[..], &one.operations()[..30], &[0; 4]] {
            assert!(two.append(bad).is_err());
            assert_eq!((two.operations(), two.len()), (&before[..], 3));
        }
    }

    #[test]
    fn a_datagram_is_framed_and_acknowledged_at_both_ends() {
        let mut tx = Transaction::new();
        for name in ["a", "b", "c"] {
            tx.add(&Chain::new(Family::IP, "t", name)).unwrap();
        }
        for expected in [None, Some(Generation(7))] {
            if let Some(generation) = expected {
                tx.expect_generation(generation);
            }
            // Twice: the transaction is left as it was.
            for _ in 0..2 {
                tx.datagram(|datagram| {
                    let all: Vec<_> = Messages::new(datagram).map(Result::unwrap).collect();
                    let kinds: Vec<_> = all.iter().map(|message| message.kind).collect();
                    assert_eq!(
                        kinds,
                        [
                            NFNL_MSG_BATCH_BEGIN,
                            0xa03,
                            0xa03,
                            0xa03,
                            NFNL_MSG_BATCH_END
                        ]
                    );
                    let acks: Vec<_> = all.iter().map(|m| m.flags & NLM_F_ACK != 0).collect();
                    assert_eq!(acks, [false, true, false, true, true]);
                    let sequences: Vec<_> = all.iter().map(|message| message.sequence).collect();
                    assert_eq!(sequences, [0, 1, 2, 3, 4]);
                    let generation = all[0].attributes().unwrap().find(NFNL_BATCH_GENID);
                    assert_eq!(generation, expected.map(|_| &[0, 0, 0, 7][..]));
                    assert_eq!(all[0].nfgenmsg().unwrap().0.resource, 10);
                });
            }
        }
        tx.add(&Chain::new(Family::IP, "t", "d")).unwrap();
        tx.datagram(|datagram| {
            let acks: Vec<_> = Messages::new(datagram)
                .map(|message| message.unwrap().flags & NLM_F_ACK != 0)
                .collect();
            assert_eq!(acks, [false, true, false, false, true, true]);
        });
    }
}
