//! Replays datagrams through CommitAssembler. The recorded ones are from Linux 6.18 (x86-64), received on a socket in
//! the group while nft 1.0.6 ran in its own network namespace.

use chainwright_sys::netlink::{NLMSG_ERROR, NLMSG_OVERRUN};
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWGEN, NFT_MSG_NEWOBJ, NFTA_CHAIN_HANDLE, NFTA_CHAIN_NAME,
    NFTA_CHAIN_TABLE, NFTA_GEN_ID, NFTA_GEN_PROC_NAME, NFTA_GEN_PROC_PID,
};
use proptest::prelude::*;

use super::{Cause, Change, CommitAssembler, Item, Lost};
use crate::netlink::{Error, Loss, MessageWriter, NfGenMsg};
use crate::nft::Generation;
use crate::nft::connection::message_type;

#[cfg(target_endian = "little")]
mod received;

/// Our own port, and the ports of two other sockets.
const OWN: u32 = 77;
const ONE: u32 = 1000;
const OTHER: u32 = 2000;
const LIMIT: usize = 4096;

/// Builds a message with the sender's port in its header.
fn message(
    kind: u8,
    port: u32,
    resource: u16,
    content: impl FnOnce(&mut MessageWriter<'_>),
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = NfGenMsg {
        family: 2,
        resource,
    };
    let mut writer = MessageWriter::nfnetlink(&mut bytes, message_type(kind), 0, 1, header);
    content(&mut writer);
    writer.finish().unwrap();
    bytes[12..16].copy_from_slice(&port.to_ne_bytes());
    bytes
}

/// Builds the event of a chain in the transaction that creates this generation.
fn chain(port: u32, generation: u32, handle: u64) -> Vec<u8> {
    message(NFT_MSG_NEWCHAIN, port, generation as u16, |writer| {
        writer.string(NFTA_CHAIN_TABLE, b"t");
        writer.string(NFTA_CHAIN_NAME, b"c");
        writer.be64(NFTA_CHAIN_HANDLE, handle);
    })
}

/// Builds the end of a transaction, or the reply to a request.
fn end(port: u32, generation: u32) -> Vec<u8> {
    message(NFT_MSG_NEWGEN, port, generation as u16, |writer| {
        writer.be32(NFTA_GEN_ID, generation);
        writer.be32(NFTA_GEN_PROC_PID, 4321);
        writer.string(NFTA_GEN_PROC_NAME, b"agent");
    })
}

/// Returns an assembler at this generation.
fn since(generation: u32) -> CommitAssembler {
    let mut assembler = CommitAssembler::new(OWN, LIMIT);
    assert!(assembler.needs_generation() && assembler.reported().is_none());
    assembler.generation_requested();
    assert!(assembler.awaits_generation() && !assembler.needs_generation());
    take(&mut assembler, &end(OWN, generation));
    assert_eq!(assembler.reported(), Some(Generation::recorded(generation)));
    assert!(!assembler.awaits_generation() && assembler.next().is_none());
    assembler
}

#[track_caller]
fn take(assembler: &mut CommitAssembler, datagram: &[u8]) {
    assembler.datagram(datagram).unwrap();
}

#[track_caller]
fn change(assembler: &mut CommitAssembler) -> Change {
    match assembler.next() {
        Some(Item::Change(change)) => change,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn lost(assembler: &mut CommitAssembler) -> Lost {
    match assembler.next() {
        Some(Item::Lost(lost)) => lost,
        other => panic!("{other:?}"),
    }
}

fn descriptions(change: &Change) -> Vec<String> {
    change.events().map(|event| event.to_string()).collect()
}

/// Completes the recovery from a loss: the queue is empty, the assembler requests the generation, and the reply is
/// `generation`.
#[track_caller]
fn complete_recovery(assembler: &mut CommitAssembler, generation: u32) -> Lost {
    assert!(
        !assembler.needs_generation(),
        "no request before the queue is empty"
    );
    assembler.drained();
    assert!(assembler.needs_generation());
    assembler.generation_requested();
    assert!(assembler.next().is_none(), "no item before the reply");
    take(assembler, &end(OWN, generation));
    let lost = lost(assembler);
    assert_eq!(lost.through, Generation::recorded(generation));
    assert_eq!(assembler.reported(), Some(lost.through));
    lost
}

#[test]
fn transactions_end_with_their_generation() {
    let mut assembler = since(7);
    take(
        &mut assembler,
        &[chain(ONE, 8, 1), chain(ONE, 8, 2)].concat(),
    );
    take(&mut assembler, &chain(ONE, 8, 3));
    assert!(assembler.next().is_none());
    take(&mut assembler, &end(ONE, 8));
    let first = change(&mut assembler);
    assert_eq!(first.generation(), Generation::recorded(8));
    assert_eq!((first.port(), first.thread_id()), (ONE, Some(4321)));
    assert_eq!(first.thread_name().unwrap(), "agent");
    assert_eq!(first.events().len(), 3);
    assert_eq!(
        descriptions(&first),
        [
            "add chain ip t c handle 1",
            "add chain ip t c handle 2",
            "add chain ip t c handle 3"
        ]
    );
    // Several transactions in one datagram.
    let datagram = [chain(OTHER, 9, 4), end(OTHER, 9), end(ONE, 10)].concat();
    take(&mut assembler, &datagram);
    let (second, third) = (change(&mut assembler), change(&mut assembler));
    assert_eq!(second.as_bytes(), &datagram[..second.as_bytes().len()]);
    assert_eq!((second.port(), second.events().len()), (OTHER, 1));
    assert_eq!((third.port(), third.events().len()), (ONE, 0));
    assert!(assembler.next().is_none());
    assert_eq!(assembler.reported(), Some(Generation::recorded(10)));
}

#[test]
fn earlier_transactions_are_ignored() {
    let mut assembler = CommitAssembler::new(OWN, LIMIT);
    assembler.generation_requested();
    // The end of one transaction, and the start of the next one.
    take(
        &mut assembler,
        &[chain(ONE, 6, 1), end(ONE, 6), chain(ONE, 7, 2)].concat(),
    );
    take(&mut assembler, &end(OWN, 7));
    take(&mut assembler, &[chain(ONE, 7, 3), end(ONE, 7)].concat());
    assert!(assembler.next().is_none());
    take(&mut assembler, &[chain(ONE, 8, 4), end(ONE, 8)].concat());
    assert_eq!(
        descriptions(&change(&mut assembler)),
        ["add chain ip t c handle 4"]
    );
}

#[test]
fn generations_wrap_around_and_pass_over_zero() {
    let mut assembler = since(u32::MAX - 1);
    for generation in [u32::MAX, 1, 2] {
        take(&mut assembler, &end(ONE, generation));
        assert_eq!(
            change(&mut assembler).generation(),
            Generation::recorded(generation)
        );
    }
    let mut assembler = since(u32::MAX);
    take(&mut assembler, &end(ONE, 2));
    assert_eq!(
        complete_recovery(&mut assembler, 2).cause,
        Cause::Skipped {
            reported: Generation::recorded(2)
        }
    );
}

#[test]
fn every_loss_is_reported_exactly_once() {
    let mut whole = [chain(ONE, 8, 1), end(ONE, 8)].concat();
    whole.truncate(60);
    let malformed = |assembler: &mut CommitAssembler| take(assembler, &whole);
    type Case<'c> = (&'static str, &'c dyn Fn(&mut CommitAssembler));
    let cases: &[Case<'_>] = &[
        ("dropped", &|assembler| {
            assembler.record_loss(Cause::Dropped(Loss::Overrun));
        }),
        ("overrun", &|assembler| {
            let mut bytes = Vec::new();
            MessageWriter::new(&mut bytes, NLMSG_OVERRUN, 0, 0)
                .finish()
                .unwrap();
            take(assembler, &bytes);
        }),
        ("cut", &|assembler| {
            assembler.record_loss(Cause::Cut {
                length: 9,
                capacity: 5,
            });
        }),
        ("skipped", &|assembler| {
            take(assembler, &[chain(ONE, 9, 2), end(ONE, 9)].concat())
        }),
        ("unended", &|assembler| {
            take(
                assembler,
                &[chain(ONE, 8, 1), chain(OTHER, 9, 2), end(OTHER, 9)].concat(),
            );
        }),
        ("unended, of one socket", &|assembler| {
            take(
                assembler,
                &[chain(ONE, 8, 1), chain(ONE, 9, 2), end(ONE, 9)].concat(),
            );
        }),
        ("ended by another", &|assembler| {
            take(assembler, &[chain(ONE, 8, 1), end(OTHER, 8)].concat());
        }),
        ("malformed", &malformed),
    ];
    for (name, record_loss) in cases {
        println!("{name}");
        let mut assembler = since(7);
        record_loss(&mut assembler);
        assert!(assembler.next().is_none());
        // The queued messages may be incomplete.
        take(&mut assembler, &[chain(ONE, 9, 5), end(ONE, 9)].concat());
        let reported = complete_recovery(&mut assembler, 11);
        assert_eq!(reported.after, Generation::recorded(7));
        // The rest of a transaction whose start was discarded.
        take(&mut assembler, &[chain(ONE, 11, 6), end(ONE, 11)].concat());
        assert!(assembler.next().is_none());
        take(&mut assembler, &[chain(ONE, 12, 7), end(ONE, 12)].concat());
        assert_eq!(
            descriptions(&change(&mut assembler)),
            ["add chain ip t c handle 7"]
        );
        assert!(assembler.next().is_none());
    }
}

#[test]
fn a_lost_reply_is_requested_again() {
    let mut assembler = since(7);
    assembler.record_loss(Cause::Dropped(Loss::Overrun));
    assembler.drained();
    assembler.generation_requested();
    // No reply came.
    assembler.drained();
    assert!(assembler.needs_generation());
    assembler.generation_requested();
    // Another loss before the reply, which is then ignored.
    assembler.record_loss(Cause::Skipped {
        reported: Generation::recorded(1),
    });
    take(&mut assembler, &end(OWN, 8));
    assert!(assembler.next().is_none());
    let reported = complete_recovery(&mut assembler, 9);
    assert_eq!(
        reported.cause,
        Cause::Dropped(Loss::Overrun),
        "the first request"
    );
    assert_eq!(reported.after, Generation::recorded(7));
    // An unexpected reply.
    take(&mut assembler, &end(OWN, 12));
    assert!(assembler.next().is_none());
    assert_eq!(assembler.reported(), Some(Generation::recorded(9)));
}

#[test]
fn a_rejected_request_is_an_error() {
    let mut assembler = since(7);
    assembler.record_loss(Cause::Dropped(Loss::Overrun));
    assembler.drained();
    assembler.generation_requested();
    let mut refusal = Vec::new();
    let mut writer = MessageWriter::new(&mut refusal, NLMSG_ERROR, 0, 1);
    let mut payload = (-libc::EPERM).to_ne_bytes().to_vec();
    payload.extend_from_slice(&[0; 16]);
    writer.encoded(&payload);
    writer.finish().unwrap();
    let Err(Error::Refused { errno, .. }) = assembler.datagram(&refusal) else {
        panic!("expected an error");
    };
    assert_eq!(errno.number(), libc::EPERM);
    assert!(assembler.needs_generation());
}

#[test]
fn too_large_transactions_are_lost() {
    let mut assembler = since(7);
    for handle in 0..1000 {
        take(&mut assembler, &chain(ONE, 8, handle));
        assert!(assembler.memory() <= 2 * LIMIT);
    }
    take(&mut assembler, &end(ONE, 8));
    let reported = lost(&mut assembler);
    assert_eq!(
        (reported.after, reported.through),
        (Generation::recorded(7), Generation::recorded(8))
    );
    let Cause::TooLarge {
        events,
        bytes,
        limit,
        port,
        thread_id,
        ref thread_name,
    } = reported.cause
    else {
        panic!("{reported:?}");
    };
    assert_eq!((events, bytes), (1000, 1000 * chain(ONE, 8, 1).len()));
    assert_eq!((limit, port, thread_id), (LIMIT, ONE, Some(4321)));
    assert_eq!(*thread_name.as_ref().unwrap(), "agent");
    assert!(reported.to_string().contains("1000 events"), "{reported}");
    // The next transaction is complete, and no request is sent.
    take(&mut assembler, &[chain(ONE, 9, 1), end(ONE, 9)].concat());
    assert_eq!(change(&mut assembler).events().len(), 1);
}

/// `add table ip t`, `add chain ip t c`, `add rule ip t c drop`.
const MADE: &str = "
    38000000 000a 0000 01000000 e1270000 02000002
        0600 0100 74000000 0800 0300 00000001 0c00 0400 0000000000000001 0800 0200 00000000
    38000000 030a 0004 02000000 e1270000 02000002
        0600 0100 74000000 0600 0300 63000000 0c00 0200 0000000000000001 0800 0600 00000001
    64000000 060a 000c 03000000 e1270000 02000002
        0600 0100 74000000 0600 0200 63000000 0c00 0300 0000000000000002
        3400 0400 3000 0100 0e00 0100 696d6d65646961746500 0000
            1c00 0200 0800 0100 00000000 1000 0200 0c00 0200 0800 0100 00000000";
const MADE_BY: &str = "
    2c000000 0f0a 0000 01000000 e1270000 00000002
        0800 0100 00000002 0800 0200 000027e1 0800 0300 6e667400";
/// `rename chain ip t c d`, and its end.
const RENAMED: &str = "
    38000000 030a 0000 02000000 e2270000 02000003
        0600 0100 74000000 0600 0300 64000000 0c00 0200 0000000000000001 0800 0600 00000001
    2c000000 0f0a 0000 01000000 e2270000 00000003
        0800 0100 00000003 0800 0200 000027e2 0800 0300 6e667400";
/// An event of a quota object that is used up.
const USED_UP: &str = "
    64000000 120a 0000 00000000 00000000 02000004
        0600 0100 74000000 0600 0200 71000000 0800 0300 00000002 0c00 0600 0000000000000003
        0800 0500 00000001
        2400 0400 0c00 0100 000000000000000a 0c00 0400 000000000000000a 0800 0200 00000003";

#[cfg(target_endian = "little")]
#[test]
fn decodes_captured_events() {
    use super::{EventFlags, EventObject};
    use crate::nft::captured::hex;
    use crate::nft::expr::{ObjectType, QuotaFlags};
    use crate::nft::{Family, ObjectData};

    let mut assembler = since(1);
    take(&mut assembler, &hex(MADE));
    assert!(assembler.next().is_none());
    // A quota event between transactions.
    take(&mut assembler, &hex(USED_UP));
    let Some(Item::OutOfBand(event)) = assembler.next() else {
        panic!("expected an event outside of a transaction");
    };
    assert_eq!(event.event().to_string(), "add quota ip t q handle 3");
    let Ok(EventObject::Object(object)) = event.event().object() else {
        panic!("expected an object");
    };
    assert_eq!(object.object_type(), ObjectType::QUOTA);
    let Some(ObjectData::Quota(quota)) = object.data() else {
        panic!("{object:?}");
    };
    assert!(quota.flags.unwrap().contains(QuotaFlags::DEPLETED));

    take(&mut assembler, &hex(MADE_BY));
    let made = change(&mut assembler);
    assert_eq!(
        descriptions(&made),
        [
            "add table ip t handle 1",
            "add chain ip t c handle 1",
            "add rule ip t c handle 2"
        ]
    );
    assert_eq!((made.port(), made.thread_id()), (0x27e1, Some(0x27e1)));
    assert_eq!(made.thread_name().unwrap(), "nft");
    let rule = made.events().nth(2).unwrap();
    assert_eq!(rule.flags(), EventFlags::CREATE | EventFlags::APPEND);
    assert_eq!((rule.family(), rule.sequence()), (Family::IP, 3));
    let Ok(EventObject::Rule(view)) = rule.object() else {
        panic!("{rule:?}");
    };
    assert_eq!(view.position(), None);
    assert_eq!(view.expressions().unwrap().count(), 1);
    assert!(format!("{made:?}").contains("add rule ip t c"), "{made:?}");

    take(&mut assembler, &hex(RENAMED));
    let renamed = change(&mut assembler);
    assert_eq!(descriptions(&renamed), ["add chain ip t d handle 1"]);
    let event = renamed.events().next().unwrap();
    assert!(!event.is_deletion() && event.flags().is_empty());
}

/// An event on the socket.
#[derive(Debug, Clone)]
enum SocketEvent {
    Commit { port: u32, events: u8 },
    Drop,
    Empty,
    OutOfBand,
}

fn socket_event() -> impl Strategy<Value = SocketEvent> {
    prop_oneof![
        4 => (prop_oneof![Just(ONE), Just(OTHER)], 0_u8..40)
            .prop_map(|(port, events)| SocketEvent::Commit { port, events }),
        1 => Just(SocketEvent::Drop),
        2 => Just(SocketEvent::Empty),
        1 => Just(SocketEvent::OutOfBand),
    ]
}

proptest! {
    /// Every generation is returned exactly once, as a complete change or as lost, whatever the kernel drops: a model
    /// of its queue, which after a drop accepts nothing until it is empty.
    #[test]
    fn every_generation_is_reported_once(script in prop::collection::vec(socket_event(), 1..80), cut in any::<u64>()) {
        let mut assembler = since(1);
        let mut generation = 1;
        let mut reported = 1;
        let mut queue: Vec<Vec<u8>> = Vec::new();
        let mut congested = false;
        let mut dice = cut;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let mut counts: Vec<usize> = vec![0, 0];
        for step in script.into_iter().chain([SocketEvent::Empty]) {
            match step {
                SocketEvent::Commit { port, events } => {
                    generation += 1;
                    counts.push(events.into());
                    for handle in 0..events {
                        // Meanwhile the reader empties the queue.
                        if congested && roll(8) == 0 {
                            queue.clear();
                            congested = false;
                            assembler.drained();
                        }
                        if !congested {
                            queue.push(chain(port, generation, handle.into()));
                        }
                    }
                    if !congested {
                        queue.push(end(port, generation));
                    }
                }
                SocketEvent::Drop => {
                    if !congested {
                        congested = true;
                        assembler.record_loss(Cause::Dropped(Loss::Overrun));
                        // The end of the transaction is missing.
                        generation += 1;
                        counts.push(0);
                    }
                }
                SocketEvent::OutOfBand => if !congested {
                    queue.push(message(NFT_MSG_NEWOBJ, 0, 0, |_| {}));
                },
                SocketEvent::Empty => {
                    for datagram in queue.drain(..) {
                        take(&mut assembler, &datagram);
                    }
                    congested = false;
                    assembler.drained();
                    if assembler.needs_generation() {
                        assembler.generation_requested();
                        take(&mut assembler, &end(OWN, generation));
                    }
                }
            }
            while let Some(item) = assembler.next() {
                match item {
                    Item::Change(change) => {
                        prop_assert_eq!(change.generation().number(), reported + 1);
                        reported += 1;
                        prop_assert_eq!(change.events().len(), counts[reported as usize]);
                    }
                    Item::Lost(lost) => {
                        prop_assert_eq!(lost.after.number(), reported);
                        prop_assert!(lost.through.number() >= reported && lost.through.number() <= generation);
                        reported = lost.through.number();
                    }
                    Item::OutOfBand(event) => prop_assert!(event.event().object().is_err()),
                }
            }
        }
        prop_assert_eq!(reported, generation);
    }
}
