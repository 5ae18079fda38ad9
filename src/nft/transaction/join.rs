//! Joins several transactions: the ids that sets, chains and rules have within each are kept distinct.
//!
//! A new set, chain or rule has an id in its batch (`NFTA_SET_ID`, `NFTA_CHAIN_ID`, `NFTA_RULE_ID`), by which later
//! operations refer to objects that have no name or handle yet. Independent transactions use the same ids, so
//! joining assigns new ones; these have the same length, and are replaced in place.

use std::collections::HashMap;

use super::{FLAGS, Transaction};
use crate::nft::references::{MessageItem, each_mention};

/// Position of the sequence number in a message's header.
const SEQUENCE: std::ops::Range<usize> = 8..12;
/// An id that no object has.
const UNASSIGNED: u32 = u32::MAX;

/// The ids assigned in a batch.
#[derive(Debug, Default)]
pub(in crate::nft) struct IdAllocator {
    last: u32,
}

impl Transaction {
    /// Appends the operations of another transaction and assigns new ids to its objects. The ids are unique as long
    /// as all operations of `self` were added this way.
    pub(in crate::nft) fn join(&mut self, other: &Self, numbers: &mut IdAllocator) {
        let mut given = HashMap::new();
        for message in other.messages() {
            each_mention(&message, &mut |_, found| {
                if let MessageItem::Definition(sort, number) = found {
                    given.entry((sort, number)).or_insert_with(|| {
                        numbers.last += 1;
                        numbers.last
                    });
                }
            });
        }
        self.unseal();
        for message in other.messages() {
            let start = self.buffer.len();
            self.buffer.extend_from_slice(message.raw);
            self.buffer.resize(start + message.padded_length(), 0);
            self.operations += 1;
            self.last = start;
            let written = &mut self.buffer[start..];
            written[SEQUENCE].copy_from_slice(&self.operations.to_ne_bytes());
            written[FLAGS].copy_from_slice(&message.flags.to_ne_bytes());
            each_mention(&message, &mut |at, found| {
                if let MessageItem::Definition(sort, number)
                | MessageItem::Reference(sort, number) = found
                {
                    // An id that the other transaction does not create must not refer to objects of this one.
                    let number = given.get(&(sort, number)).copied().unwrap_or(UNASSIGNED);
                    written[at..at + 4].copy_from_slice(&number.to_be_bytes());
                }
            });
            self.acknowledge(start, false);
        }
        self.seal();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::nft::expr::{Immediate, Lookup, Register, Verdict};
    use crate::nft::references::IdKind;
    use crate::nft::{Chain, DataType, Element, Family, Rule, Set, Table};

    /// Returns a transaction with ids of each kind, and references to them.
    fn numbered() -> Transaction {
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        let set = Set::anonymous(Family::IP, "t", "__set%d", 0, DataType::IPV4_ADDR, 4);
        let set = tx.add_anonymous(&set).unwrap();
        tx.add_elements(&set, [Element::new(&[192, 0, 2, 1])])
            .unwrap();
        let mut chain = Chain::new(Family::IP, "t", "c");
        chain.id = Some(5);
        tx.add(&chain).unwrap();
        let lookup = Lookup {
            set_id: set.id,
            ..Lookup::set(Register::R1, "__set%d")
        };
        let mut rule = Rule::new(Family::IP, "t", "c")
            .with(&lookup)
            .with(&Immediate::verdict(Verdict::JumpId(5)));
        rule.id = Some(9);
        tx.add(&rule).unwrap();
        let mut behind = Rule::new(Family::IP, "t", "c");
        behind.position_id = Some(9);
        tx.add(&behind).unwrap();
        // Refers to no object.
        tx.add(&Rule::new(Family::IP, "t", "c").with(&Immediate::verdict(Verdict::JumpId(6))))
            .unwrap();
        tx
    }

    fn numbers(tx: &Transaction) -> Vec<(bool, IdKind, u32)> {
        let mut numbers = Vec::new();
        for message in tx.messages() {
            each_mention(&message, &mut |_, found| match found {
                MessageItem::Definition(sort, number) => numbers.push((true, sort, number)),
                MessageItem::Reference(sort, number) => numbers.push((false, sort, number)),
                MessageItem::Name(..) | MessageItem::Expression(_) => {}
            });
        }
        numbers
    }

    #[test]
    fn each_has_its_own_numbers() {
        let one = numbered();
        let mut joined = Transaction::new();
        let mut given = IdAllocator::default();
        joined.join(&one, &mut given);
        joined.join(&one, &mut given);
        assert_eq!(joined.len(), 2 * one.len());
        assert_eq!(joined.byte_length(), 2 * one.byte_length());
        let of = |set, chain, rule| {
            [
                (true, IdKind::Set, set),
                (false, IdKind::Set, set),
                (true, IdKind::Chain, chain),
                (false, IdKind::Set, set),
                (false, IdKind::Chain, chain),
                (true, IdKind::Rule, rule),
                (false, IdKind::Rule, rule),
                (false, IdKind::Chain, UNASSIGNED),
            ]
        };
        let sorted = |numbers: &[(bool, IdKind, u32)]| {
            let mut numbers = numbers.to_vec();
            numbers.sort_by_key(|&(made, sort, number)| (number, sort as u8, made));
            numbers
        };
        let found = numbers(&joined);
        let (first, second) = found.split_at(found.len() / 2);
        assert_eq!(sorted(first), sorted(&of(1, 2, 3)));
        assert_eq!(sorted(second), sorted(&of(4, 5, 6)));
        // Apart from the ids, the operations are equal.
        let words = |tx: &Transaction| -> Vec<_> {
            let described = tx.described();
            described
                .map(|operation| (operation.verb, operation.path))
                .collect()
        };
        assert_eq!(words(&joined)[..one.len()], words(&one));
        let sequences: Vec<u32> = joined.messages().map(|message| message.sequence).collect();
        assert_eq!(sequences, Vec::from_iter(1..=joined.len() as u32));
    }

    proptest! {
        /// Operations encoded by a caller may contain anything.
        #[test]
        fn any_operations_are_joined(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut bytes = numbered().as_bytes().to_vec();
            for (at, byte) in changes {
                *at.get_mut(&mut bytes) = byte;
            }
            let mut tx = Transaction::new();
            if tx.append(&bytes).is_ok() {
                let mut joined = Transaction::new();
                joined.join(&tx, &mut IdAllocator::default());
                prop_assert_eq!(joined.len(), tx.len());
                prop_assert_eq!(joined.byte_length(), tx.byte_length());
            }
        }
    }
}
