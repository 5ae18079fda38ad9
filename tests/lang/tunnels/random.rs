//! Rules of random instructions that match the inside of tunnels.

use std::collections::BTreeSet;

use chainwright::nft::expr::{
    Bitwise, Cmp, CmpOp, Counter, Data, Decoded, Expression, Inner, InnerFlags, InnerType, Meta,
    MetaKey, NestedExpression, Payload, PayloadBase, Register,
};
use chainwright::nft::{Chain, Family, Rule, RuleRef, Scope, Table, Transaction};
use chainwright_lang::{Options, rule};

use super::{apply, nothing_else, of_text};
use crate::common::random::Random;
use crate::common::{connect, from_env, sandbox};

/// The tunnels as in the instruction: type, length of the header, flags for the content.
const TUNNELS: [(u32, u32, u32); 4] = [(1, 8, 0xf), (2, 8, 0xf), (3, 4, 0xc), (4, 4, 0xe)];

fn inside<E: Expression>((inner_type, header, flags): (u32, u32, u32), what: &E) -> Inner<'static> {
    Inner {
        num: Some(0),
        inner_type: Some(InnerType(inner_type)),
        flags: Some(InnerFlags::from_bits_retain(flags)),
        hdrsize: Some(header),
        expr: Some(NestedExpression::new(what)),
        ..Inner::default()
    }
}

/// A match's field and value.
#[derive(Clone, Copy)]
enum Step {
    Formatted(MetaKey, u32, u32),
    At(PayloadBase, u32, u32, u32),
}

/// Matches that may occur together, each after those that it requires.
const RECIPES: &[&[Step]] = {
    use PayloadBase as Base;
    use Step::{At, Formatted};
    const IP: Step = Formatted(MetaKey::PROTOCOL, 2, 0x800);
    const IP6: Step = Formatted(MetaKey::PROTOCOL, 2, 0x86dd);
    const TYPE_IP: Step = At(Base::LINK, 12, 2, 0x800);
    const TYPE_IP6: Step = At(Base::LINK, 12, 2, 0x86dd);
    const TYPE_TAG: Step = At(Base::LINK, 12, 2, 0x8100);
    const TAG: Step = At(Base::LINK, 14, 2, 7);
    const ICMP: Step = Formatted(MetaKey::L4PROTO, 1, 1);
    const ECHO: Step = At(Base::TRANSPORT, 0, 1, 8);
    const SOURCE: Step = At(Base::NETWORK, 12, 4, 0x0a00_0001);
    const PORT: Step = At(Base::TRANSPORT, 2, 2, 53);
    &[
        &[IP, SOURCE],
        &[IP, At(Base::NETWORK, 8, 1, 64), At(Base::NETWORK, 9, 1, 6)],
        &[IP, At(Base::NETWORK, 9, 1, 47), PORT],
        &[IP6, At(Base::NETWORK, 6, 1, 17), PORT],
        &[
            IP6,
            At(Base::NETWORK, 6, 2, 1),
            Formatted(MetaKey::L4PROTO, 1, 6),
            PORT,
        ],
        &[TYPE_IP, SOURCE],
        &[TYPE_IP6, At(Base::NETWORK, 7, 1, 64)],
        &[At(Base::LINK, 12, 2, 0x806), At(Base::NETWORK, 6, 2, 1)],
        &[
            Formatted(MetaKey::PROTOCOL, 2, 0x806),
            At(Base::NETWORK, 6, 2, 1),
        ],
        &[TYPE_TAG, TAG],
        &[At(Base::LINK, 12, 2, 0x88a8), TAG],
        &[TYPE_TAG, TAG, At(Base::LINK, 16, 2, 0x800), SOURCE],
        &[TYPE_TAG, At(Base::LINK, 16, 2, 0x800), TAG],
        &[Formatted(MetaKey::L4PROTO, 1, 6), PORT],
        &[
            Formatted(MetaKey::L4PROTO, 1, 17),
            At(Base::TRANSPORT, 0, 2, 53),
            PORT,
        ],
        &[
            Formatted(MetaKey::L4PROTO, 1, 17),
            At(Base::TRANSPORT, 4, 2, 7),
        ],
        &[Formatted(MetaKey::L4PROTO, 1, 47), PORT],
        &[PORT],
        &[TYPE_IP, ICMP, ECHO, At(Base::TRANSPORT, 4, 2, 7)],
        &[TYPE_IP, ICMP, At(Base::TRANSPORT, 4, 2, 7)],
        &[IP, ICMP, ECHO],
        &[TYPE_IP, SOURCE, ICMP, ECHO],
        &[IP, SOURCE, ICMP, ECHO],
        &[
            TYPE_IP6,
            Formatted(MetaKey::L4PROTO, 1, 58),
            At(Base::TRANSPORT, 0, 1, 128),
        ],
        &[
            TYPE_IP,
            Formatted(MetaKey::L4PROTO, 1, 2),
            At(Base::TRANSPORT, 0, 1, 17),
        ],
        &[
            IP,
            Formatted(MetaKey::L4PROTO, 1, 2),
            At(Base::TRANSPORT, 0, 1, 17),
        ],
        &[At(Base::TUNNEL, 4, 3, 7)],
        &[At(Base::TUNNEL, 0, 1, 8)],
        &[At(Base::TUNNEL, 2, 2, 0x800)],
    ]
};

/// A value in this many bytes.
fn bytes(number: u32, length: u32) -> Vec<u8> {
    number.to_be_bytes()[4 - length as usize..].to_vec()
}

/// Some recipes in sequence, occasionally with a missing step, or with one from elsewhere.
fn steps(random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..1 + random.below(3) {
        steps.extend_from_slice(random.pick(RECIPES));
    }
    if random.once_in(4) {
        steps.remove(random.below(steps.len()));
    }
    if random.once_in(4) {
        let other = random.pick(RECIPES);
        steps.insert(random.below(steps.len() + 1), random.pick(other));
    }
    steps
}

/// A rule of matches that may be meaningful together.
fn random_rule(random: &mut Random, family: Family) -> Rule<'static> {
    let mut rule = Rule::new(family, "t", "c");
    let tunnel = random.pick(&TUNNELS);
    // Usually the protocol that carries it.
    if !random.once_in(12) {
        let number = if tunnel.0 > 2 { 47 } else { 17 };
        rule = rule
            .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
            .with(&Cmp::eq(Register::R1, &[number]));
    }
    for step in steps(random) {
        let tunnel = match random.once_in(30) {
            true => random.pick(&TUNNELS),
            false => tunnel,
        };
        let operation = match random.once_in(15) {
            true => CmpOp::NEQ,
            false => CmpOp::EQ,
        };
        let value = match step {
            Step::Formatted(key, length, number) => {
                rule = rule.with(&inside(tunnel, &Meta::load(key, Register::R1)));
                bytes(number, length)
            }
            Step::At(base, offset, length, number) => {
                let load = Payload::load(base, offset, length, Register::R1);
                rule = match base == PayloadBase::TRANSPORT && random.once_in(8) {
                    true => rule.with(&load),
                    false => rule.with(&inside(tunnel, &load)),
                };
                if (base, offset) == (PayloadBase::LINK, 14) {
                    let tag = Bitwise::mask_xor(Register::R1, &[0x0f, 0xff], &[0, 0]);
                    rule = rule.with(&tag);
                }
                bytes(number, length)
            }
        };
        rule = rule.with(&Cmp::new(Register::R1, operation, &value));
        if random.once_in(20) {
            rule = rule.with(&Counter::new(0, 0));
        }
    }
    rule
}

/// The matches of a rule between two actions, regardless of their order: bytes of the packet individually.
fn matches_of(rule: &RuleRef<'_>) -> Vec<BTreeSet<String>> {
    let mut matches_of = vec![BTreeSet::new()];
    let mut loaded: (String, Option<Payload>) = (String::new(), None);
    for expression in rule.expressions().into_iter().flatten() {
        let decoded = expression.and_then(|expression| expression.decode());
        match decoded.expect("incomplete attribute") {
            Decoded::Inner(inner) => {
                let within = inner
                    .expr
                    .as_ref()
                    .expect("no inner expression")
                    .decode()
                    .expect("incomplete attribute");
                let kind = inner.inner_type.expect("no inner type").0;
                loaded = match within {
                    Decoded::Payload(payload) => (format!("in {kind}"), Some(payload)),
                    other => (format!("in {kind} {other}"), None),
                };
            }
            Decoded::Payload(payload) => loaded = (String::new(), Some(payload)),
            Decoded::Cmp(cmp) => {
                let last = matches_of.last_mut().expect("no earlier match");
                let Some(Data::Value(value)) = &cmp.data else {
                    panic!("{cmp}");
                };
                match (&loaded, cmp.op) {
                    ((within, Some(payload)), Some(CmpOp::EQ)) => {
                        let base = payload.base.expect("no base").0;
                        let offset = payload.offset.expect("no offset");
                        for (at, byte) in (offset..).zip(value.iter()) {
                            last.insert(format!("{within} {base} {at} is {byte}"));
                        }
                    }
                    ((within, Some(payload)), _) => {
                        _ = last.insert(format!("{within} {payload} {cmp}"))
                    }
                    ((what, None), _) => _ = last.insert(format!("{what} {cmp}")),
                }
            }
            Decoded::Bitwise(bitwise) => {
                let whole = loaded.1.map(|payload| payload.to_string());
                loaded = (
                    format!("{} {} {bitwise}", loaded.0, whole.unwrap_or_default()),
                    None,
                );
            }
            Decoded::Counter(_) => matches_of.push(BTreeSet::new()),
            other => loaded = (other.to_string(), None),
        }
    }
    matches_of
}

/// For any instructions that match inside tunnels, the listed text has the same matches, or the listing is bytecode.
#[test]
fn listed_text_of_random_instructions_is_equivalent() {
    let mut random = Random::new();
    let count = from_env("RULES", 2_000);
    let (mut formatted, mut formatted_inside, mut wrong) = (0, 0, Vec::new());
    for family in [Family::IP, Family::INET, Family::NETDEV, Family::BRIDGE] {
        let kernel = sandbox();
        let mut nft = connect(&kernel);
        let mut tx = Transaction::new();
        tx.add(&Table::new(family, "t"))
            .expect("the object exceeds the maximum length");
        tx.add(&Chain::new(family, "t", "c"))
            .expect("the object exceeds the maximum length");
        for _ in 0..count / 4 {
            tx.add(&random_rule(&mut random, family))
                .expect("the object exceeds the maximum length");
        }
        nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));
        let now = nft.snapshot(Scope::all()).expect("cannot read the ruleset");
        let table = now.tables().next().expect("no table");
        let chain = table.chains().next().expect("no chain");
        let options = Options::default();
        let name = family.name().expect("no name");
        let (mut texts, mut first) = (String::new(), Vec::new());
        for each in chain.rules() {
            let Some(words) = rule(&table, &each, &options) else {
                continue;
            };
            // An empty one.
            if words.is_empty() {
                continue;
            }
            formatted += 1;
            formatted_inside += usize::from(each.to_string().contains("inner"));
            let text = format!("add rule {name} t d {words}\n");
            match of_text(&now, &text) {
                Ok(_) => {
                    texts += &text;
                    first.push((words, matches_of(&each)));
                }
                Err(error) => wrong.push(error),
            }
        }
        let all = format!("add chain {name} t d\n{texts}");
        apply(&mut nft, &all).unwrap_or_else(|error| panic!("{error}"));
        let now = nft.snapshot(Scope::all()).expect("cannot read the ruleset");
        let chain = now.chain(family, "t", "d").expect("no chain d");
        let mut again = chain.rules();
        for (words, first) in first {
            let again = matches_of(&again.next().expect("a rule is missing"));
            if first != again {
                wrong.push(format!("{words}\n  {first:?}\n  {again:?}"));
            }
        }
    }
    println!(
        "{formatted} of {count} rules can be expressed, {formatted_inside} of them match inside a tunnel"
    );
    nothing_else("recreated differently", &wrong);
    assert!(
        formatted_inside > count / 8,
        "only {formatted_inside} of {count} rules match inside a tunnel"
    );
}
