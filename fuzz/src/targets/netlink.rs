//! Datagrams: messages, attributes, dumps, acknowledgements, replies to a batch, and the attribute that
//! an error points at.

use chainwright::fuzzing::explain;
use chainwright::netlink::{
    Acknowledgement, Attributes, BatchReplies, Dump, MessageWriter, Messages,
};
use chainwright::nft::Transaction;

use crate::Target;
use crate::mutate::InputFormat;

/// The target.
pub const TARGET: Target = Target {
    name: "netlink",
    input_format: InputFormat::Messages,
    run,
};

/// Number of operations in the batch to which the replies are assumed to belong.
const OPERATIONS: u32 = 8;

fn run(input: &[u8]) {
    let mut passed = 0;
    let mut messages = Messages::new(input);
    let first = messages.clone().flatten().next();
    let mut dump = Dump::new("fuzz", first.map_or(1, |message| message.sequence));
    while let Some(message) = messages.next() {
        assert!(messages.offset() > passed && messages.offset() <= input.len());
        let Ok(message) = message else {
            assert_eq!(
                messages.offset(),
                input.len(),
                "reading should end at an error"
            );
            break;
        };
        assert_eq!(message.raw, &input[passed..][..message.raw.len()]);
        passed = messages.offset();
        if !dump.ended() {
            let _ = dump.accept(message);
        }
        let _ = Acknowledgement::parse(&message);
        let length = message.raw.len() as u32;
        // Some of the offsets at which attributes can begin.
        let step = (length / 16).max(4) as usize / 4 * 4;
        for offset in (0..length).step_by(step).chain([length, u32::MAX]) {
            let (operation, attribute) = explain(&message, offset);
            if offset == 0 {
                let _ = format!("{operation} {operation:?}");
            }
            assert!(attribute.is_none_or(|name| name.len() < 1000 + message.raw.len() * 4));
        }
        if let Ok((header, attributes)) = message.nfgenmsg() {
            again(attributes);
            // The same message from the writer.
            let mut bytes = Vec::new();
            let mut writer = MessageWriter::nfnetlink(
                &mut bytes,
                message.kind,
                message.flags,
                message.sequence,
                header,
            );
            writer.encoded(attributes);
            if writer.finish().is_ok() {
                let (written, rest) = chainwright::netlink::Message::split(&bytes).unwrap();
                assert!(rest.is_empty());
                let (other, padded) = written.nfgenmsg().unwrap();
                assert_eq!(other, header);
                assert!(padded.starts_with(attributes) && padded.len() < attributes.len() + 4);
            }
        }
    }
    replies(input);
    // Foreign messages become a transaction, or are refused and leave the transaction unchanged.
    let mut tx = Transaction::new();
    let before = tx.byte_length();
    if tx.append(input).is_err() {
        assert_eq!(tx.byte_length(), before);
    } else {
        tx.datagram(|datagram| assert!(Messages::new(datagram).all(|message| message.is_ok())));
    }
}

/// Replies in one datagram or in several have the same result.
fn replies(input: &[u8]) {
    let mut whole = BatchReplies::new(1..=OPERATIONS);
    let fine = whole.accept(input).is_ok();
    let mut parts = BatchReplies::new(1..=OPERATIONS);
    if fine {
        for message in Messages::new(input).flatten() {
            let _ = parts.accept(message.raw);
        }
    }
    let whole = whole.finish();
    let _ = format!("{whole:?}");
    if fine {
        let parts = parts.finish();
        assert_eq!(whole.status, parts.status);
        assert_eq!(
            format!("{:?}", whole.rejections),
            format!("{:?}", parts.rejections)
        );
    }
}

/// Attributes are read one after the other, and the writer writes the same bytes.
fn again(bytes: &[u8]) {
    let mut passed = 0;
    let mut written = Vec::new();
    let mut writer = MessageWriter::new(&mut written, 0, 0, 0);
    for attribute in Attributes::new(bytes) {
        let Ok(attribute) = attribute else { break };
        assert_eq!(attribute.raw, &bytes[passed..][..attribute.raw.len()]);
        passed += attribute.raw.len();
        let kind = u16::from_ne_bytes([attribute.raw[2], attribute.raw[3]]);
        writer.bytes(kind, attribute.payload);
    }
    if writer.finish().is_ok() {
        let again = Attributes::new(&written[16..]);
        for (one, other) in Attributes::new(bytes).flatten().zip(again) {
            let other = other.unwrap();
            assert_eq!((one.kind, one.payload), (other.kind, other.payload));
        }
    }
}
