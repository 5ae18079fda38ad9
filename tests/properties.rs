//! Properties that hold for any bytes and any values: reading never panics and always ends, and
//! what is written is read back.

mod common;

use chainwright::netlink::{
    Acknowledgement, Attributes, BatchReplies, Dump, DumpItem, Message, MessageWriter, Messages,
    NfGenMsg, Verdict as BatchVerdict,
};
use chainwright::nft::expr::{
    Bitwise, BitwiseOp, ChecksumFlags, ChecksumType, Cmp, CmpOp, Counter, Ct, CtDirection, CtKey,
    Data, Decoded, ExpressionRef, Expressions, Immediate, Limit, LimitFlags, LimitType, Log,
    LogFlags, LogLevel, Lookup, LookupFlags, Masq, Match, Meta, MetaKey, Nat, NatRangeFlags,
    NatType, Payload, PayloadBase, Redir, Register, Reject, RejectType, Target, Verdict,
};
use chainwright::nft::{
    Chain, ChainFlags, ChainRef, Compat, Counters, Family, GenerationRef, Hook, Name, Policy, Rule,
    RuleRef, Table, TableFlags, TableRef, Transaction,
};
use common::expressions;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// `NLMSG_ERROR` and `NLMSG_DONE` of `linux/netlink.h`.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

// ---------------------------------------------------------------------------------------------
// Any bytes.

/// The tree of attributes that hostile messages are made of.
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

/// Attributes whose types are mostly known ones, with payloads that are now and then right.
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
fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, Option<u8>)>> {
    vec(
        (
            any::<prop::sample::Index>(),
            option::weighted(0.9, any::<u8>()),
        ),
        0..4,
    )
}

fn damaged(mut bytes: Vec<u8>, damages: &[(prop::sample::Index, Option<u8>)]) -> Vec<u8> {
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

/// Datagrams that look like those of the kernel, and noise.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
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
    let object = prop_oneof![
        table().prop_map(|table| written(&table)),
        chain().prop_map(|chain| written(&chain)),
        rule().prop_map(|rule| written(&rule)),
    ];
    let messages = vec(prop_oneof![message, object], 0..5).prop_map(|messages| messages.concat());
    prop_oneof![
        9 => (messages, damage()).prop_map(|(bytes, damages)| damaged(bytes, &damages)),
        1 => vec(any::<u8>(), 0..256),
    ]
}

/// Asks a view for everything, and gives what it says to be written again.
fn read_everything(message: &Message<'_>) {
    let mut tx = Transaction::new();
    if let Ok(table) = TableRef::parse(message) {
        let _ = format!("{table:?}");
        let _ = (table.family(), table.name(), table.handle(), table.flags());
        let _ = (table.references(), table.userdata(), table.owner());
        tx.add(&table.to_builder().into_owned()).unwrap();
    }
    if let Ok(chain) = ChainRef::parse(message) {
        let _ = format!("{chain:?} {chain}");
        let _ = (chain.table(), chain.name(), chain.handle(), chain.hook());
        let _ = (chain.policy(), chain.chain_type(), chain.references());
        let _ = (chain.counters(), chain.flags(), chain.userdata());
        assert!(chain.hook().is_none() || chain.is_base());
        tx.add(&chain.to_builder().into_owned()).unwrap();
        tx.delete(&chain.to_builder()).unwrap();
    }
    if let Ok(rule) = RuleRef::parse(message) {
        let _ = format!("{rule:?}");
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
                        let _ = format!("{expression:?} {:?}", expression.decode());
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
        tx.add(&rule.to_builder().into_owned()).unwrap();
        tx.replace(&rule.to_builder()).unwrap();
    }
    if let Ok(generation) = GenerationRef::parse(message) {
        let _ = format!("{generation:?}");
        let _ = (
            generation.id(),
            generation.process_id(),
            generation.process_name(),
        );
    }
    // What was read is written as whole messages.
    tx.datagram(|bytes| {
        for message in Messages::new(bytes) {
            assert!(message.unwrap().nfgenmsg().is_ok());
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

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
    fn any_replies_to_a_batch_are_a_verdict(
        datagrams in vec(datagram(), 0..6), last in 1u32..8, lost: bool,
    ) {
        let mut replies = BatchReplies::new(1..=last);
        let mut malformed = false;
        for datagram in &datagrams {
            malformed |= replies.accept(datagram).is_err();
        }
        if lost {
            replies.lose();
        }
        let complete = replies.complete();
        let replies = replies.finish();
        prop_assert_eq!(replies.lost, lost || malformed);
        for rejection in &replies.rejections {
            prop_assert!(rejection.operation.is_none_or(|operation| operation < last as usize));
            prop_assert!(rejection.errno.number() > 0);
        }
        match replies.verdict {
            // Never taken for applied when anything was refused.
            BatchVerdict::Applied => prop_assert!(replies.rejections.is_empty()),
            BatchVerdict::Rejected => prop_assert!(!replies.rejections.is_empty()),
            BatchVerdict::Unknown => {
                prop_assert!(replies.rejections.is_empty() && !complete);
            }
        }
    }

    #[test]
    fn any_dump_ends_and_an_interrupted_one_never_well(
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
                    Err(_) => {
                        prop_assert!(dump.ended());
                        break 'all;
                    }
                }
            }
        }
    }

    /// Every truncation of a message that can be read is an error or another such message.
    #[test]
    fn any_truncation_is_read(rule in rule(), cut: prop::sample::Index) {
        let mut bytes = written(&rule);
        let length = 16 + cut.index(bytes.len() - 16);
        bytes.truncate(length);
        bytes[..4].copy_from_slice(&u32::try_from(length).unwrap().to_ne_bytes());
        read_everything(&Message::split(&bytes).unwrap().0);
    }
}

// ---------------------------------------------------------------------------------------------
// Any values.

fn name() -> impl Strategy<Value = Name<'static>> {
    prop_oneof![
        "[ -~]{0,40}".prop_map(Name::from),
        vec(1u8.., 0..255).prop_map(|bytes| Name::from(&bytes[..]).into_owned()),
    ]
}

fn bytes() -> impl Strategy<Value = std::borrow::Cow<'static, [u8]>> {
    vec(any::<u8>(), 0..300).prop_map(Into::into)
}

fn verdict() -> impl Strategy<Value = Verdict<'static>> {
    prop_oneof![
        Just(Verdict::Accept),
        Just(Verdict::Drop),
        Just(Verdict::Continue),
        Just(Verdict::Break),
        Just(Verdict::Return),
        name().prop_map(Verdict::Jump),
        name().prop_map(Verdict::Goto),
        // Queues, and numbers that mean nothing; not those that have a name.
        prop_oneof![2i32..=i32::MAX, i32::MIN..-5].prop_map(|code| Verdict::Other { code }),
    ]
}

fn data() -> impl Strategy<Value = Data<'static>> {
    prop_oneof![
        vec(any::<u8>(), 0..64).prop_map(|bytes| Data::Value(bytes.into())),
        verdict().prop_map(Data::Verdict),
    ]
}

/// A strategy for a struct of `Option`s: each field is given now and then.
macro_rules! fields {
    ($Type:ident { $($field:ident: $strategy:expr),* $(,)? }) => {
        ($(option::of($strategy),)*).prop_map(|($($field,)*)| $Type { $($field,)* })
    };
}

fn register() -> impl Strategy<Value = Register> {
    any::<u32>().prop_map(Register)
}

/// Any of the typed expressions, with any of their attributes.
fn expression() -> impl Strategy<Value = Decoded<'static>> {
    let number = any::<u32>;
    let flags = |flags: u32| NatRangeFlags::from_bits_retain(flags);
    prop_oneof![
        fields!(Bitwise {
            sreg: register(),
            dreg: register(),
            len: number(),
            mask: data(),
            xor: data(),
            op: number().prop_map(BitwiseOp),
            data: data(),
            sreg2: register(),
        })
        .prop_map(Decoded::Bitwise),
        fields!(Cmp {
            sreg: register(),
            op: number().prop_map(CmpOp),
            data: data()
        })
        .prop_map(Decoded::Cmp),
        fields!(Counter {
            bytes: any::<u64>(),
            packets: any::<u64>()
        })
        .prop_map(Decoded::Counter),
        fields!(Ct {
            dreg: register(),
            key: number().prop_map(CtKey),
            direction: any::<u8>().prop_map(CtDirection),
            sreg: register(),
        })
        .prop_map(Decoded::Ct),
        fields!(Immediate {
            dreg: register(),
            data: data()
        })
        .prop_map(Decoded::Immediate),
        fields!(Limit {
            rate: any::<u64>(),
            unit: any::<u64>(),
            burst: number(),
            limit_type: number().prop_map(LimitType),
            flags: number().prop_map(LimitFlags::from_bits_retain),
        })
        .prop_map(Decoded::Limit),
        fields!(Log {
            group: any::<u16>(),
            prefix: name(),
            snaplen: number(),
            queue_threshold: any::<u16>(),
            level: number().prop_map(LogLevel),
            flags: number().prop_map(LogFlags::from_bits_retain),
        })
        .prop_map(Decoded::Log),
        fields!(Lookup {
            set: name(),
            sreg: register(),
            dreg: register(),
            set_id: number(),
            flags: number().prop_map(LookupFlags::from_bits_retain),
        })
        .prop_map(Decoded::Lookup),
        fields!(Masq {
            flags: number().prop_map(flags),
            proto_min: register(),
            proto_max: register(),
        })
        .prop_map(Decoded::Masq),
        fields!(Match {
            name: name(),
            revision: number(),
            info: bytes()
        })
        .prop_map(Decoded::Match),
        fields!(Meta {
            key: number().prop_map(MetaKey),
            dreg: register(),
            sreg: register()
        })
        .prop_map(Decoded::Meta),
        fields!(Nat {
            nat_type: number().prop_map(NatType),
            family: number(),
            addr_min: register(),
            addr_max: register(),
            proto_min: register(),
            proto_max: register(),
            flags: number().prop_map(flags),
        })
        .prop_map(Decoded::Nat),
        fields!(Payload {
            dreg: register(),
            sreg: register(),
            base: number().prop_map(PayloadBase),
            offset: number(),
            len: number(),
            checksum_type: number().prop_map(ChecksumType),
            checksum_offset: number(),
            checksum_flags: number().prop_map(ChecksumFlags::from_bits_retain),
        })
        .prop_map(Decoded::Payload),
        fields!(Redir {
            proto_min: register(),
            proto_max: register(),
            flags: number().prop_map(flags),
        })
        .prop_map(Decoded::Redir),
        fields!(Reject {
            reject_type: number().prop_map(RejectType),
            icmp_code: any::<u8>(),
        })
        .prop_map(Decoded::Reject),
        fields!(Target {
            name: name(),
            revision: number(),
            info: bytes()
        })
        .prop_map(Decoded::Target),
    ]
}

fn list() -> impl Strategy<Value = Expressions<'static>> {
    vec(expression(), 0..8).prop_map(|typed| {
        let mut list = Expressions::new();
        for expression in &typed {
            expressions::push(&mut list, expression);
        }
        list
    })
}

fn family() -> impl Strategy<Value = Family> {
    any::<u8>().prop_map(Family)
}

fn table() -> impl Strategy<Value = Table<'static>> {
    let optional = (
        option::of(any::<u32>().prop_map(TableFlags::from_bits_retain)),
        option::of(any::<u32>()),
        option::of(bytes()),
        option::of(any::<u32>()),
    );
    (family(), name(), any::<u64>(), optional).prop_map(
        |(family, name, handle, (flags, references, userdata, owner))| Table {
            handle: Some(handle),
            flags,
            references,
            userdata,
            owner,
            ..Table::new(family, name)
        },
    )
}

fn chain() -> impl Strategy<Value = Chain<'static>> {
    let hook = fields!(Hook {
        number: any::<u32>(),
        priority: any::<i32>(),
        device: name(),
        devices: bytes(),
    });
    let optional = (
        option::of(hook),
        option::of(any::<u32>().prop_map(Policy)),
        option::of(name()),
        option::of(any::<u32>()),
        option::of(fields!(Counters {
            packets: any::<u64>(),
            bytes: any::<u64>()
        })),
        option::of(any::<u32>().prop_map(ChainFlags::from_bits_retain)),
        option::of(any::<u32>()),
        option::of(bytes()),
    );
    (family(), name(), name(), any::<u64>(), optional).prop_map(
        |(family, table, name, handle, optional)| {
            let (hook, policy, chain_type, references, counters, flags, id, userdata) = optional;
            Chain {
                handle: Some(handle),
                hook,
                policy,
                chain_type,
                references,
                counters,
                flags,
                id,
                userdata,
                ..Chain::new(family, table, name)
            }
        },
    )
}

fn rule() -> impl Strategy<Value = Rule<'static>> {
    let optional = (
        option::of(list()),
        option::of(fields!(Compat {
            protocol: any::<u32>(),
            flags: any::<u32>()
        })),
        option::of(any::<u64>()),
        option::of(bytes()),
        option::of(any::<u32>()),
        option::of(any::<u32>()),
        option::of(any::<u32>()),
    );
    (family(), name(), name(), any::<u64>(), optional).prop_map(
        |(family, table, chain, handle, optional)| {
            let (expressions, compat, position, userdata, id, position_id, chain_id) = optional;
            Rule {
                handle: Some(handle),
                expressions,
                compat,
                position,
                userdata,
                id,
                position_id,
                chain_id,
                ..Rule::new(family, table, chain)
            }
        },
    )
}

/// The message by which an object is added.
fn written(object: &impl chainwright::nft::Object) -> Vec<u8> {
    let mut tx = Transaction::new();
    tx.add(object).unwrap();
    tx.datagram(|datagram| {
        let (_begin, rest) = Message::split(datagram).unwrap();
        Message::split(rest).unwrap().0.raw.to_vec()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn typed_expressions_are_read_as_they_were_written(typed in vec(expression(), 0..8)) {
        let mut list = Expressions::new();
        for expression in &typed {
            expressions::push(&mut list, expression);
        }
        let raw = list.iter().collect::<Result<Vec<ExpressionRef<'_>>, _>>().unwrap();
        let read = raw.iter().map(ExpressionRef::decode).collect::<Result<Vec<_>, _>>().unwrap();
        prop_assert_eq!(&read, &typed);
        // Once more, and raw: the same bytes.
        let (mut again, mut copied) = (Expressions::new(), Expressions::new());
        for (expression, raw) in read.iter().zip(&raw) {
            expressions::push(&mut again, expression);
            copied.push_raw(raw);
        }
        prop_assert_eq!(again.as_bytes(), list.as_bytes());
        prop_assert_eq!(copied.as_bytes(), list.as_bytes());
        prop_assert_eq!(list.as_bytes().len() % 4, 0);
    }

    #[test]
    fn tables_are_read_as_they_were_written(table in table()) {
        let bytes = written(&table);
        let (message, _) = Message::split(&bytes).unwrap();
        let read = TableRef::parse(&message).unwrap();
        prop_assert_eq!(read.to_builder(), table.clone());
        prop_assert_eq!(written(&read.to_builder()), bytes.clone());
        prop_assert_eq!(Some(read.name()), table.name.as_deref());
        prop_assert_eq!(read.userdata(), table.userdata.as_deref());
    }

    #[test]
    fn chains_are_read_as_they_were_written(chain in chain()) {
        let bytes = written(&chain);
        let (message, _) = Message::split(&bytes).unwrap();
        let read = ChainRef::parse(&message).unwrap();
        prop_assert_eq!(read.to_builder(), chain.clone());
        prop_assert_eq!(read.hook(), chain.hook.clone());
        prop_assert_eq!(read.counters(), chain.counters.clone());
        prop_assert_eq!(read.chain_type(), chain.chain_type.as_deref());
        prop_assert_eq!(read.to_builder().into_owned(), read.to_builder());
    }

    #[test]
    fn rules_are_read_as_they_were_written(rule in rule()) {
        let bytes = written(&rule);
        let (message, _) = Message::split(&bytes).unwrap();
        let read = RuleRef::parse(&message).unwrap();
        // A builder holds what is written to make such a rule, and not where the rule stood.
        let built = Rule {
            position: None,
            ..rule.clone()
        };
        prop_assert_eq!(read.to_builder().into_owned(), built);
        let expressions = read.expressions().map(|list| list.map(Result::unwrap).count());
        prop_assert_eq!(expressions, rule.expressions.as_ref().map(|list| list.iter().count()));
        prop_assert_eq!(read.position(), rule.position);
    }
}
