//! Events of the ruleset: each item follows the previous one without an unreported gap, regardless of
//! how the messages are split into datagrams; and every event can be formatted.

use chainwright::netlink::{MessageWriter, Messages, NfGenMsg};
use chainwright::nft::live::{CommitAssembler, Item};

use crate::Target;
use crate::mutate::InputFormat;

/// The target.
pub const TARGET: Target = Target {
    name: "nft_events",
    input_format: InputFormat::Messages,
    run,
};

/// The port of the socket that receives the events, and that of one that commits.
const OWN: u32 = 3;
const OTHER: u32 = 5;
/// Largest number of bytes kept of a transaction.
const LIMIT: usize = 8 << 10;

/// The message that reports a generation, as the kernel writes it for this port.
fn generation(port: u32, generation: u32) -> Vec<u8> {
    /// `NFT_MSG_NEWGEN`, and its attributes.
    const NEWGEN: u16 = 0xa0f;
    const ID: u16 = 1;
    const PROC_PID: u16 = 2;
    const PROC_NAME: u16 = 3;
    let mut bytes = Vec::new();
    let header = NfGenMsg {
        family: 0,
        resource: generation as u16,
    };
    let mut writer = MessageWriter::nfnetlink(&mut bytes, NEWGEN, 0, 1, header);
    writer.be32(ID, generation);
    writer.be32(PROC_PID, port);
    writer.string(PROC_NAME, b"fuzz");
    writer
        .finish()
        .expect("the message exceeds the maximum length");
    with_port(bytes, port)
}

/// Sets the port in each message's header.
fn with_port(mut messages: Vec<u8>, port: u32) -> Vec<u8> {
    let starts: Vec<_> = Messages::new(&messages)
        .flatten()
        .map(|message| message.raw.as_ptr() as usize - messages.as_ptr() as usize)
        .collect();
    for start in starts {
        messages[start + 12..start + 16].copy_from_slice(&port.to_ne_bytes());
    }
    messages
}

/// A stream of messages as two transactions.
pub(crate) fn transactions(stream: &[u8]) -> Vec<u8> {
    let events = with_port(stream.to_vec(), OTHER);
    [
        &events,
        &generation(OTHER, 2),
        &events,
        &generation(OTHER, 3),
    ]
    .map(Vec::as_slice)
    .concat()
}

fn run(input: &[u8]) {
    let whole = items_of(&[input]);
    if Messages::new(input).all(|message| message.is_ok()) {
        let messages: Vec<_> = Messages::new(input).flatten().collect();
        let parts: Vec<_> = messages.iter().map(|message| message.raw).collect();
        assert_eq!(items_of(&parts), whole);
    }
}

/// The items that result from these datagrams, the last of which empties the queue.
fn items_of(datagrams: &[&[u8]]) -> Vec<Item> {
    let mut assembler = CommitAssembler::new(OWN, LIMIT);
    assert!(assembler.needs_generation());
    assembler.generation_requested();
    assembler
        .datagram(&generation(OWN, 1))
        .expect("the reply is rejected");
    let mut reported = assembler.reported().expect("the reply is missing");
    assert_eq!(reported.number(), 1);
    let mut items = Vec::new();
    let mut take = |assembler: &mut CommitAssembler| {
        while let Some(item) = assembler.next() {
            match &item {
                Item::Change(change) => {
                    let next = reported.number().checked_add(1).unwrap_or(1);
                    assert_eq!(change.generation().number(), next);
                    reported = change.generation();
                    assert_eq!(change.events().len(), change.events().count());
                    assert!(change.as_bytes().len() <= LIMIT + (64 << 10));
                    for event in change.events() {
                        assert_eq!(event.message().port, change.port());
                        let _ = (event.flags(), event.is_deletion(), event.sequence());
                        let _ = format!("{event} {event:?} {:?}", event.family());
                    }
                    let _ = format!("{change:?}");
                }
                Item::Lost(lost) => {
                    assert_eq!(lost.after, reported);
                    reported = lost.through;
                    let _ = lost.to_string();
                }
                Item::OutOfBand(event) => {
                    assert_eq!(event.event().message().port, 0);
                    let _ = format!("{} {event:?}", event.event());
                }
                other => panic!("{other:?}"),
            }
            items.push(item);
        }
    };
    for datagram in datagrams {
        let _ = assembler.datagram(datagram);
        take(&mut assembler);
        assert!(assembler.memory() <= 2 * LIMIT.max(datagram.len()));
    }
    // After any input a resynchronization works the same way.
    assembler.drained();
    if assembler.needs_generation() {
        assembler.generation_requested();
        let now = assembler.reported().map_or(1, |reported| reported.number());
        assembler
            .datagram(&generation(OWN, now))
            .expect("the reply is rejected");
        take(&mut assembler);
    }
    assert!(!assembler.needs_generation() && !assembler.awaits_generation());
    items
}
