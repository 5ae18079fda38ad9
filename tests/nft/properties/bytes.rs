//! Any bytes: reading them never panics and always ends.

use chainwright::netlink::{
    Acknowledgement, Attributes, BatchReplies, BatchStatus as BatchVerdict, Dump, DumpItem, Error,
    MessageError, MessageErrorKind, MessageWriter, NfGenMsg,
};
use chainwright::nft::expr::Expressions;
use chainwright::nft::{Compat, GenerationRef};
use proptest::option;

use super::*;

/// The tree of attributes for hostile messages.
#[derive(Debug, Clone)]
enum Tree {
    Bytes(u16, Vec<u8>),
    Nested(u16, Vec<Tree>),
}

impl Tree {
    fn write(&self, writer: &mut MessageWriter<'_>) {
        match self {
            Self::Bytes(kind, payload) => {
                writer.bytes(*kind, payload);
            }
            Self::Nested(kind, inner) => {
                writer.nested(*kind, |writer| {
                    inner.iter().for_each(|tree| tree.write(writer))
                });
            }
        }
    }
}

/// Attributes whose types are mostly known ones, with payloads that are sometimes valid.
fn tree() -> impl Strategy<Value = Tree> {
    let kind = prop_oneof![8 => 0u16..20, 1 => any::<u16>()];
    let names = [
        "bitwise",
        "cmp",
        "counter",
        "ct",
        "immediate",
        "limit",
        "log",
        "lookup",
        "masq",
        "match",
        "meta",
        "nat",
        "payload",
        "redir",
        "reject",
        "target",
        "fib",
    ];
    let payload = prop_oneof![
        vec(any::<u8>(), 0..12),
        any::<u32>().prop_map(|n| n.to_be_bytes().to_vec()),
        any::<u64>().prop_map(|n| n.to_be_bytes().to_vec()),
        proptest::sample::select(names.to_vec()).prop_map(|name| [name.as_bytes(), b"\0"].concat()),
        Just(b"KUBE-SERVICES\0".to_vec()),
    ];
    let leaf = (kind.clone(), payload).prop_map(|(kind, payload)| Tree::Bytes(kind, payload));
    leaf.prop_recursive(4, 64, 6, move |inner| {
        (kind.clone(), vec(inner, 0..6)).prop_map(|(kind, inner)| Tree::Nested(kind, inner))
    })
}

/// One change to some bytes: one is replaced, or the rest is cut off.
pub(crate) fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, Option<u8>)>> {
    vec(
        (
            any::<prop::sample::Index>(),
            option::weighted(0.9, any::<u8>()),
        ),
        0..4,
    )
}

pub(crate) fn damaged(
    mut bytes: Vec<u8>,
    damages: &[(prop::sample::Index, Option<u8>)],
) -> Vec<u8> {
    for (index, byte) in damages {
        if bytes.is_empty() {
            break;
        }
        let at = index.index(bytes.len());
        match byte {
            Some(byte) => bytes[at] = *byte,
            None => bytes.truncate(at),
        }
    }
    bytes
}

/// Datagrams that resemble the kernel's, and noise.
pub(crate) fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        4 => (0u16..32).prop_map(|kind| 0x0a00 | kind),
        2 => 0u16..16,
        1 => any::<u16>(),
    ];
    let body = prop_oneof![
        4 => vec(tree(), 0..8).prop_map(|trees| {
            let mut body = Vec::new();
            let header = NfGenMsg { family: 2, resource: 0 };
            let mut writer = MessageWriter::nfnetlink(&mut body, 0, 0, 0, header);
            trees.iter().for_each(|tree| tree.write(&mut writer));
            writer.finish().unwrap();
            body.split_off(16)
        }),
        1 => vec(any::<u8>(), 0..64),
        // An acknowledgement: an error number and the header of a request.
        2 => (any::<i8>(), 0u32..64, vec(tree(), 0..3)).prop_map(|(errno, length, trees)| {
            let mut body = i32::from(errno).to_ne_bytes().to_vec();
            body.extend(length.to_ne_bytes());
            body.extend([0; 12]);
            let mut attributes = Vec::new();
            let mut writer = MessageWriter::new(&mut attributes, 0, 0, 0);
            trees.iter().for_each(|tree| tree.write(&mut writer));
            writer.finish().unwrap();
            body.extend(attributes.split_off(16));
            body
        }),
    ];
    let message = (kind, any::<u16>(), 0u32..6, body).prop_map(|(kind, flags, sequence, body)| {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::new(&mut bytes, kind, flags, sequence);
        writer.encoded(&body);
        writer.finish().unwrap();
        bytes
    });
    let object = object().prop_map(|object| each!(&object, object => written(object)));
    let messages =
        vec(prop_oneof![message, object.boxed()], 0..5).prop_map(|messages| messages.concat());
    prop_oneof![
        9 => (messages, damage()).prop_map(|(bytes, damages)| damaged(bytes, &damages)),
        1 => vec(any::<u8>(), 0..256),
    ]
}

/// A view shows any bytes in place of a name; bytes that cannot be a name are not written again.
fn fits_or_has_no_name<T>(written: Result<T, MessageError>) {
    if let Err(MessageError { error_kind, .. }) = written {
        assert!(
            matches!(
                error_kind,
                MessageErrorKind::Nul { .. } | MessageErrorKind::LongName { .. }
            ),
            "{error_kind}"
        );
    }
}

/// Reads everything from a view, and converts it to operations.
fn read_everything(message: &Message<'_>) {
    let mut tx = Transaction::new();
    if let Ok(table) = TableRef::parse(message) {
        let _ = format!("{table:?}");
        let _ = (table.family(), table.name(), table.handle(), table.flags());
        let _ = (table.references(), table.userdata(), table.owner());
        fits_or_has_no_name(tx.add(&table.to_builder().into_owned()));
    }
    if let Ok(chain) = ChainRef::parse(message) {
        let _ = format!("{chain:?} {chain}");
        let _ = (chain.table(), chain.name(), chain.handle(), chain.hook());
        let _ = (chain.policy(), chain.chain_type(), chain.references());
        let _ = (chain.counters(), chain.flags(), chain.userdata());
        assert!(chain.hook().is_none() || chain.is_base());
        fits_or_has_no_name(tx.add(&chain.to_builder().into_owned()));
        fits_or_has_no_name(tx.delete(&chain.to_builder()));
    }
    if let Ok(rule) = RuleRef::parse(message) {
        let _ = format!("{rule:?} {rule} {:?}", Compat::of(&rule));
        let _ = (rule.table(), rule.chain(), rule.handle(), rule.position());
        let bytes = rule.attributes().map_while(Result::ok).count() * 4;
        assert!(bytes <= message.raw.len());
        if let Some(expressions) = rule.expressions() {
            let mut again = Expressions::new();
            let (mut count, mut whole) = (0, true);
            for expression in expressions {
                count += 1;
                match expression {
                    Ok(expression) => {
                        if let Ok(decoded) = expression.decode() {
                            let _ = format!("{expression:?} {decoded:?} {decoded}");
                        }
                        again.push_raw(&expression);
                        assert_eq!(again.as_bytes().len() % 4, 0);
                    }
                    Err(_) => whole = false,
                }
            }
            assert!(count * 4 <= message.raw.len());
            if whole {
                assert_eq!(again.iter().count(), count);
            }
        }
        fits_or_has_no_name(tx.add(&rule.to_builder().into_owned()));
        fits_or_has_no_name(tx.replace(&rule.to_builder()));
    }
    if let Ok(set) = SetRef::parse(message) {
        let _ = format!("{set:?} {set}");
        let _ = (
            set.key_type(),
            set.is_map(),
            set.description(),
            set.comment(),
        );
        fits_or_has_no_name(tx.add(&set.to_builder().into_owned()));
        fits_or_has_no_name(tx.delete(&set.to_builder()));
        fits_or_has_no_name(tx.flush_set(&set.set_id()));
    }
    if let Ok(elements) = ElementsRef::parse(message) {
        let _ = format!("{elements:?}");
        let mut whole = Vec::new();
        for element in elements.elements().into_iter().flatten().flatten() {
            let _ = format!("{element:?} {element}");
            let _ = (
                element.key_bytes(),
                element.data_bytes(),
                element.is_open_interval(),
            );
            whole.push(element.to_builder());
        }
        assert!(whole.len() * 4 <= message.raw.len());
        let set = Set::new(elements.family(), "t", "s", DataType::VALUE, 4);
        fits_or_has_no_name(tx.add_elements(&set.set_id(), &whole));
        fits_or_has_no_name(tx.delete_elements(&set.set_id(), &whole));
        fits_or_has_no_name(tx.add(&elements.to_builder().into_owned()));
        fits_or_has_no_name(tx.delete(&elements.to_builder()));
    }
    if let Ok(object) = StatefulObjectRef::parse(message) {
        let _ = format!("{object:?} {object}");
        let _ = (object.data(), object.object_type(), object.comment());
        fits_or_has_no_name(tx.add(&object.to_builder().into_owned()));
        fits_or_has_no_name(tx.delete(&object.to_builder()));
    }
    if let Ok(flowtable) = FlowtableRef::parse(message) {
        let _ = format!("{flowtable:?} {flowtable}");
        let _ = (flowtable.flags(), flowtable.hook());
        fits_or_has_no_name(tx.add(&flowtable.to_builder().into_owned()));
        fits_or_has_no_name(tx.delete(&flowtable.to_builder()));
    }
    if let Ok(generation) = GenerationRef::parse(message) {
        let _ = format!("{generation:?}");
        let _ = (
            generation.id(),
            generation.thread_id(),
            generation.thread_name(),
        );
    }
    // What was read is written as complete messages.
    tx.datagram(|bytes| {
        for message in Messages::new(bytes) {
            assert!(message.unwrap().nfgenmsg().is_ok());
        }
    });
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn any_datagram_is_read_to_its_end(bytes in datagram()) {
        let mut at = 0;
        let mut messages = Messages::new(&bytes);
        for message in &mut messages {
            let Ok(message) = message else {
                break;
            };
            prop_assert!(message.raw.len() >= 16);
            at += message.raw.len();
            prop_assert!(at <= bytes.len());
            read_everything(&message);
            let _ = Acknowledgement::parse(&message);
            if let Ok(attributes) = message.attributes() {
                // Each takes at least its header.
                prop_assert!(attributes.count() * 4 <= message.payload.len());
            }
        }
        prop_assert!(messages.next().is_none());
        prop_assert_eq!(Attributes::new(&bytes).filter(Result::is_err).count() <= 1, true);
    }

    #[test]
    fn any_batch_replies_give_a_status(
        datagrams in vec(datagram(), 0..6), last in 1u32..8, lost: bool,
    ) {
        let mut replies = BatchReplies::new(1..=last);
        let mut malformed = false;
        for datagram in &datagrams {
            malformed |= replies.accept(datagram).is_err();
        }
        if lost {
            replies.record_loss();
        }
        let complete = replies.complete();
        let replies = replies.finish();
        prop_assert_eq!(replies.lost, lost || malformed);
        for rejection in &replies.rejections {
            prop_assert!(rejection.operation.is_none_or(|operation| operation < last as usize));
            prop_assert!(rejection.errno.number() > 0);
        }
        prop_assert!(replies.status != BatchVerdict::Acknowledged || !replies.lost);
        match replies.status {
            // Never reported as applied when anything was refused.
            BatchVerdict::Applied => prop_assert!(replies.rejections.is_empty()),
            BatchVerdict::Rejected => prop_assert!(!replies.rejections.is_empty()),
            BatchVerdict::Acknowledged | BatchVerdict::Unknown => {
                prop_assert!(replies.rejections.is_empty() && !complete);
            }
        }
    }

    #[test]
    fn any_dump_ends_and_interrupted_ones_fail(
        datagrams in vec(datagram(), 0..6), sequence in 0u32..6,
    ) {
        let mut dump = Dump::new("list anything", sequence);
        'all: for datagram in &datagrams {
            for message in Messages::new(datagram).map_while(Result::ok) {
                let done = message.sequence == sequence
                    && [NLMSG_ERROR, NLMSG_DONE].contains(&message.kind);
                match dump.accept(message) {
                    Ok(DumpItem::Object(object)) => {
                        prop_assert_eq!(object.sequence, sequence);
                        prop_assert!(!dump.ended());
                    }
                    Ok(DumpItem::Unrelated) => prop_assert!(!dump.ended() && !done),
                    Ok(DumpItem::End) => {
                        prop_assert!(dump.ended() && done);
                        prop_assert!(message.kind == NLMSG_ERROR || !dump.interrupted());
                        break 'all;
                    }
                    // The rest of the dump follows.
                    Err(Error::Lost(_)) => prop_assert!(!dump.ended() && !done),
                    Err(_) => {
                        prop_assert!(dump.ended() && done);
                        break 'all;
                    }
                }
            }
        }
    }

    /// Every truncation of a valid message is an error or another valid message.
    #[test]
    fn any_truncation_is_read(rule in rule(), cut: prop::sample::Index) {
        let mut bytes = written(&rule);
        let length = 16 + cut.index(bytes.len() - 16);
        bytes.truncate(length);
        bytes[..4].copy_from_slice(&u32::try_from(length).unwrap().to_ne_bytes());
        read_everything(&Message::split(&bytes).unwrap().0);
    }
}
