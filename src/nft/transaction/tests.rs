//! The contents of a transaction's buffer.

use super::*;
use crate::nft::Element;
use crate::nft::{Chain, ElementsRef, Table};

#[test]
fn operations_are_described() {
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.insert(&Rule::new(Family::IP, "t", "c")).unwrap();
    tx.flush_set(&SetId::new(Family::IP, "t", "s")).unwrap();
    assert_eq!(
        format!("{tx:?}"),
        "Transaction { operations: [\"add table ip t #0\", \"insert rule ip t c #1\", \
             \"flush element ip t s #2\"] }"
    );
    tx.clear();
    tx.expect_generation(Generation::recorded(3));
    let expected = "Transaction { operations: [], expected: Generation(3) }";
    assert_eq!(format!("{tx:?}"), expected);
}

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

    // Other messages are rejected as a whole.
    let before = two.operations().to_vec();
    let mut foreign = one.operations().to_vec();
    foreign[4..6].copy_from_slice(&0x0100_u16.to_ne_bytes()); // of another subsystem
    for bad in [&foreign[..], &one.operations()[..30], &[0; 4]] {
        assert!(two.append(bad).is_err());
        assert_eq!((two.operations(), two.len()), (&before[..], 3));
    }
}

/// Returns the keys of the elements in every message.
fn chunks(tx: &Transaction) -> Vec<Vec<u32>> {
    Messages::new(tx.operations())
        .map(|message| {
            let message = message.unwrap();
            let view = ElementsRef::parse(&message).unwrap();
            assert_eq!((view.table(), view.set()), ("t".into(), "s".into()));
            let keys = view.elements().unwrap().map(|element| {
                let element = element.unwrap();
                u32::from_be_bytes(element.key_bytes().unwrap().try_into().unwrap())
            });
            keys.collect()
        })
        .collect()
}

#[test]
fn elements_are_split_at_full_attributes() {
    let set = SetId::new(Family::IP, "t", "s");
    // An element takes 16 bytes: 4,095 of them and the list's header fit into 65,535 bytes.
    for (count, expected) in [
        (0, &[][..]),
        (1, &[1]),
        (4_095, &[4_095]),
        (4_096, &[4_095, 1]),
        (8_191, &[4_095, 4_095, 1]),
    ] {
        let keys: Vec<_> = (0..count).map(u32::to_be_bytes).collect();
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        let before = tx.byte_length();
        tx.add_elements(&set, keys.iter().map(Element::new))
            .unwrap();
        assert_eq!(tx.len(), 1 + expected.len());
        let mut added = Transaction::new();
        added.append(&tx.operations()[before..]).unwrap();
        let chunks = chunks(&added);
        let lengths: Vec<_> = chunks.iter().map(Vec::len).collect();
        assert_eq!(lengths, expected);
        assert!(chunks.into_iter().flatten().eq(0..count));
        // The last message is the last operation, which is acknowledged.
        let sequences: Vec<_> = Messages::new(tx.operations())
            .map(|message| message.unwrap().sequence)
            .collect();
        assert!(sequences.into_iter().eq(1..=tx.len() as u32));
        tx.datagram(|datagram| {
            let acknowledged = Messages::new(datagram)
                .map(|message| message.unwrap().flags & NLM_F_ACK != 0)
                .collect::<Vec<_>>();
            let last = acknowledged.len() - 1;
            for (at, acknowledged) in acknowledged.into_iter().enumerate().skip(1) {
                assert_eq!(acknowledged, [1, last - 1, last].contains(&at), "{at}");
            }
        });
    }
}

#[doc(hidden)]
#[test]
fn pairs_are_the_same_elements() {
    let map = SetId::new(Family::IP6, "t", "m");
    let pairs: Vec<(Vec<u8>, Option<Vec<u8>>)> = (0..5_000_u16)
        .map(|number| {
            let key = vec![number as u8; 1 + usize::from(number % 44)];
            let data = (number % 3 > 0).then(|| number.to_be_bytes().to_vec());
            (key, data)
        })
        .collect();
    let (mut short, mut long) = (Transaction::new(), Transaction::new());
    let of = |(key, data): &'_ (Vec<u8>, Option<Vec<u8>>)| {
        let element = Element::new(&key[..]).into_owned();
        match data {
            Some(data) => element.with_data(&data[..]).into_owned(),
            None => element,
        }
    };
    long.add_elements(&map, pairs.iter().map(of)).unwrap();
    let pairs = pairs.iter().map(|(key, data)| (&key[..], data.as_deref()));
    short.add_pairs(&map, pairs).unwrap();
    assert_eq!(short.operations(), long.operations());
}

#[test]
fn an_oversized_element_leaves_the_transaction_unchanged() {
    let set = SetId::new(Family::IP, "t", "s");
    let long = vec![1; 65_512];
    let keys = [&[1; 4][..], &long];
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    let before = tx.operations().to_vec();
    // The longest one that fits: 12 bytes of headers around it.
    tx.add_elements(&set, keys.iter().copied().map(Element::new))
        .unwrap();
    assert_eq!(tx.len(), 3);
    for length in [65_520, 65_524, 65_525, 70_000, 140_000] {
        let mut tx = Transaction::new();
        tx.append(&before).unwrap();
        let longer = vec![1; length];
        let keys = [&[1; 4][..], &[2; 4], &longer];
        for attempt in 0..2 {
            let elements = keys[attempt..].iter().copied().map(Element::new);
            assert!(tx.add_elements(&set, elements).is_err(), "{length}");
            assert_eq!((tx.operations(), tx.len()), (&before[..], 1));
        }
        // A long name fails too.
        let name = "x".repeat(length + 100);
        let set = SetId::new(Family::IP, "t", &name);
        assert!(tx.add_elements(&set, [Element::new(&[1; 4])]).is_err());
        assert_eq!((tx.operations(), tx.len()), (&before[..], 1));
        tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
        assert_eq!(tx.len(), 2);
    }
}

#[test]
fn deletions_hold_keys_only() {
    let set = SetId {
        id: Some(7),
        ..SetId::new(Family::IP, "t", "s")
    };
    let element = Element::new(&[0, 0, 0, 9])
        .with_data(&[5; 4])
        .with_timeout(std::time::Duration::from_millis(5))
        .with_comment("x")
        .unwrap();
    let (mut one, mut two) = (Transaction::new(), Transaction::new());
    one.delete_elements(&set, [&element]).unwrap();
    two.delete_elements(&set, [Element::new(&[0, 0, 0, 9])])
        .unwrap();
    assert_eq!(one.operations(), two.operations());
    assert_eq!(chunks(&one), [[9]]);
    one.clear();
    one.flush_set(&set).unwrap();
    let (message, _) = Message::split(one.operations()).unwrap();
    let view = ElementsRef::parse(&message).unwrap();
    assert!(view.elements().is_none());
    assert_eq!(view.set_id(), Some(7));
}

#[test]
fn a_datagram_is_framed_and_acknowledged_at_both_ends() {
    let mut tx = Transaction::new();
    for name in ["a", "b", "c"] {
        tx.add(&Chain::new(Family::IP, "t", name)).unwrap();
    }
    for expected in [None, Some(Generation::recorded(7))] {
        if let Some(generation) = expected {
            tx.expect_generation(generation);
        }
        // Twice, because the transaction is unchanged.
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
                // The hand-made messages equal those of the general writer.
                let header = NfGenMsg {
                    family: 0,
                    resource: NFNL_SUBSYS_NFTABLES as u16,
                };
                let (mut begin, mut end) = (Vec::new(), Vec::new());
                let kind = NFNL_MSG_BATCH_BEGIN;
                let mut writer =
                    MessageWriter::nfnetlink(&mut begin, kind, NLM_F_REQUEST, 0, header);
                if expected.is_some() {
                    writer.be32(NFNL_BATCH_GENID, 7);
                }
                writer.finish().unwrap();
                let (kind, flags) = (NFNL_MSG_BATCH_END, NLM_F_REQUEST | NLM_F_ACK);
                let writer = MessageWriter::nfnetlink(&mut end, kind, flags, 4, header);
                writer.finish().unwrap();
                assert_eq!((all[0].raw, all[4].raw), (&begin[..], &end[..]));
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
