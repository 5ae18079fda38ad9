//! Compares this module with the kernel: both must list an expression, or refuse it, in the same way.

use std::collections::BTreeMap;

use bstr::{BStr, ByteSlice};
use chainwright_sys::nf_tables::{
    NFT_BREAK, NFT_GOTO, NFT_JUMP, NFT_RETURN, NFTA_DYNSET_TIMEOUT, NFTA_EXPR_DATA, NFTA_EXPR_NAME,
    NFTA_LIST_ELEM, NFTA_RULE_EXPRESSIONS,
};
use proptest::prelude::Rng;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::errors::ENOENT;
use super::{ChainInfo, RulesetView, SetInfo, evaluate_list};
use crate::Sandbox;
use chainwright::Errno;
use chainwright::netlink::{Attributes, MessageWriter};
use chainwright::nft::Field;
use chainwright::nft::expr::{
    Connlimit, Counter, Decoded, Dynset, Expression as _, ExpressionRef, Expressions, Immediate,
    Last, Limit, Meta, MetaKey, Notrack, ObjectType, Payload, PayloadBase, Quota, Register,
};
use chainwright::nft::{
    Chain, Connection, DEPTH, DataType, Family, Hook, Priority, Rule, RuleFilter, Ruleset, Scope,
    Set, SetFlags, StatefulObject, Table, Transaction, is_same_rule,
};

#[allow(unsafe_code, reason = "of the macro")]
mod before_main {
    crate::sandbox_tests!();
}

mod placed;

/// A table with one object of each kind.
struct TestTable {
    family: Family,
    sets: BTreeMap<&'static str, SetInfo>,
}

/// Returns the sets of the table: name, flags, length of the key, size.
fn sets() -> Vec<(&'static str, SetFlags, u32, Option<u32>)> {
    let eval = SetFlags::EVAL;
    vec![
        ("s1", SetFlags::empty(), 1, None),
        ("s2", SetFlags::empty(), 2, None),
        ("s4", SetFlags::empty(), 4, None),
        ("s4n", SetFlags::empty(), 4, Some(10)),
        ("s16", SetFlags::CONSTANT, 16, None),
        ("i4", SetFlags::INTERVAL, 4, None),
        ("m4", SetFlags::MAP, 4, None),
        ("m2", SetFlags::MAP, 2, None),
        ("v4", SetFlags::MAP, 4, None),
        ("o4", SetFlags::OBJECT, 4, None),
        ("d4", eval, 4, None),
        ("d4t", eval.union(SetFlags::TIMEOUT), 4, Some(100)),
        ("d4e", eval, 4, Some(100)),
        ("d4ee", eval, 4, Some(100)),
        ("dm", eval.union(SetFlags::MAP), 4, None),
        ("dv", eval.union(SetFlags::MAP), 4, None),
        ("t4", SetFlags::TIMEOUT, 4, None),
    ]
}

impl TestTable {
    fn new(family: Family) -> (Self, Transaction) {
        let mut tx = Transaction::new();
        tx.add(&Table::new(family, "t")).unwrap();
        for chain in ["c", "d"] {
            tx.add(&Chain::new(family, "t", chain)).unwrap();
        }
        if !matches!(family, Family::NETDEV) {
            let base = Chain::new(family, "t", "base");
            let hook = match family {
                Family::ARP => Hook::ARP_INPUT,
                _ => Hook::INPUT,
            };
            tx.add(&base.with_hook("filter", hook, Priority(0)))
                .unwrap();
        }
        let counter = Counter::new(0, 0);
        tx.add(&StatefulObject::new(family, "t", "n1", counter.clone()))
            .unwrap();
        tx.add(&StatefulObject::new(family, "t", "n1", Quota::until(5)))
            .unwrap();
        let mut world = BTreeMap::new();
        for (name, flags, key_length, size) in sets() {
            let mut set = Set::new(family, "t", name, DataType(0), key_length).with_flags(flags);
            let mut facts = SetInfo {
                name: name.into(),
                flags,
                key_length,
                can_be_updated: SetInfo::in_growing_table(flags, key_length, size.is_some()),
                ..SetInfo::default()
            };
            if let Some(size) = size {
                set = set.with_size(size);
            }
            if name.ends_with("v4") || name == "dv" {
                set = set.with_verdicts();
                (facts.maps_to_verdicts, facts.data_length) = (true, 16);
            } else if flags.contains(SetFlags::MAP) {
                set = set.with_data(DataType(0), 8);
                facts.data_length = 8;
            } else if flags.contains(SetFlags::OBJECT) {
                set = set.with_objects(ObjectType::COUNTER);
            }
            for _ in 0..name.matches('e').count() {
                set = set.with_expression(&counter);
                let mut list = Expressions::new();
                list.push(&counter);
                let taken = evaluate_list(
                    list.as_bytes(),
                    &mut Self {
                        family,
                        sets: BTreeMap::new(),
                    },
                );
                let listed = taken.unwrap().listed;
                facts.expressions.push(listed[4..].to_vec());
            }
            tx.add(&set).unwrap();
            world.insert(name, facts);
        }
        (
            Self {
                family,
                sets: world,
            },
            tx,
        )
    }
}

impl RulesetView for TestTable {
    fn family(&self) -> Family {
        self.family
    }
    fn set(&mut self, name: &BStr, _: Option<u32>) -> Result<SetInfo, Errno> {
        let name = std::str::from_utf8(name).unwrap_or_default();
        self.sets.get(name).cloned().ok_or(ENOENT)
    }
    fn chain(&mut self, name: Option<&BStr>, _: Option<u32>) -> Result<ChainInfo, Errno> {
        let name = name.ok_or(ENOENT)?;
        let is_base = name == "base" && self.family != Family::NETDEV;
        if name != "d" && !is_base {
            return Err(ENOENT);
        }
        Ok(ChainInfo {
            name: name.into(),
            is_base,
            ..ChainInfo::default()
        })
    }
    fn object(&mut self, object_type: ObjectType, name: &BStr) -> Result<(), Errno> {
        let exists = match object_type {
            ObjectType::COUNTER | ObjectType::QUOTA => name == "n1",
            ObjectType::SYNPROXY => {
                name == "p" && matches!(self.family, Family::IP | Family::IP6 | Family::INET)
            }
            _ => false,
        };
        exists.then_some(()).ok_or(ENOENT)
    }
    fn flowtable(&mut self, _: &BStr) -> Result<(), Errno> {
        Err(ENOENT)
    }
}

/// Returns what the kernel lists for these lists of expressions, or its errors, for one rule each.
fn kernel(
    connection: &mut Connection,
    family: Family,
    programs: &[Vec<u8>],
) -> Vec<Result<Vec<u8>, Errno>> {
    let rule = |program: &[u8]| Rule {
        expressions: Some(Field::into_static(Expressions::of_bytes(program).clone())),
        ..Rule::new(family, "t", "c")
    };
    let mut results: Vec<Result<Vec<u8>, Errno>> = vec![Ok(Vec::new()); programs.len()];
    let mut tx = Transaction::new();
    for program in programs {
        tx.add(&rule(program)).unwrap();
    }
    if let Err(error) = connection.check(&tx) {
        assert!(!error.incomplete, "{error}");
        assert!(!error.failures.is_empty(), "{error}");
        for failure in &error.failures {
            let operation = failure
                .operation
                .as_ref()
                .expect("the failure names no operation");
            results[operation.index] = Err(failure.errno);
        }
    }
    let mut tx = Transaction::new();
    for (program, result) in programs.iter().zip(&results) {
        if result.is_ok() {
            tx.add(&rule(program)).unwrap();
        }
    }
    connection.commit(&tx).unwrap();
    let mut rules = connection
        .rules(RuleFilter::chain(family, "t", "c"))
        .unwrap();
    for listed in results.iter_mut().flatten() {
        let rule = rules.try_next().unwrap().expect("a rule is missing");
        let list = rule.attributes().find(NFTA_RULE_EXPRESSIONS);
        *listed = list.unwrap_or_default().to_vec();
    }
    assert!(rules.try_next().unwrap().is_none());
    drop(rules);
    let mut tx = Transaction::new();
    tx.flush_chain(family, "t", "c").unwrap();
    connection.commit(&tx).unwrap();
    results
}

/// Loads constants into all registers.
fn loaded() -> Expressions<'static> {
    let mut list = Expressions::new();
    for number in 1..=4 {
        list.push(&Immediate::value(Register(number), &[1; 16]));
    }
    list
}

/// Picks an item at random.
fn one<T: Copy>(of: &[T], seed: &mut impl FnMut() -> u32) -> T {
    of[seed() as usize % of.len()]
}

/// Groups of attributes, by the ends of their names, that exclude each other: all but one group are removed.
const APART: &[(&str, &[&[&str]])] = &[
    ("bitwise", &[&["_MASK", "_XOR"], &["_DATA"], &["_SREG2"]]),
    ("ct", &[&["_SREG"], &["_DREG"]]),
    (
        "dynset",
        &[
            &["_EXPR"],
            &["_EXPRESSIONS"],
            &["_ID"],
            &["_DATA"],
            &["_TIMEOUT"],
        ],
    ),
    ("exthdr", &[&["_SREG"], &["_DREG", "_FLAGS"], &["_DREG"]]),
    ("hash", &[&["_SREG", "_LEN"], &["_SET_ID"]]),
    (
        "log",
        &[
            &["_LEVEL", "_FLAGS"],
            &["_GROUP", "_SNAPLEN", "_QTHRESHOLD"],
        ],
    ),
    ("meta", &[&["_SREG"], &["_DREG"]]),
    (
        "objref",
        &[&["_IMM_TYPE", "_IMM_NAME"], &["_SET_SREG", "_SET_NAME"]],
    ),
    (
        "payload",
        &[
            &["_DREG"],
            &["_SREG", "_CSUM_TYPE", "_CSUM_OFFSET", "_CSUM_FLAGS"],
        ],
    ),
];

/// Generates an expression that elements may have, in its nested form.
fn stateful(seed: &mut impl FnMut() -> u32) -> Vec<u8> {
    let mut list = Expressions::new();
    match seed() % 8 {
        0 => list.push(&Quota::until(7)),
        1 => list.push(&Limit::packets(5, 60, 0)),
        2 => list.push(&Connlimit::at_most(3)),
        3 => list.push(&Notrack::default()),
        4 => list.push(&Payload::load(PayloadBase::NETWORK, 2, 2, Register::R1)),
        5 => list.push(&Meta::load(MetaKey::L4PROTO, Register::R1)),
        _ => list.push(&Counter::new(1, 2)),
    };
    list.as_bytes()[4..].to_vec()
}

/// Replaces an expression's attributes with values that are more likely to be valid.
fn more_plausible(name: &str, attributes: &[u8], seed: &mut impl FnMut() -> u32) -> Vec<u8> {
    let declared = ExpressionRef::new(name.into(), &[]).attribute_names();
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    let keeps = one(&[4, 9, 10, 10], seed);
    let length = one(&[1, 2, 4, 4, 8, 16], seed);
    let groups = APART.iter().find(|(of, _)| *of == name);
    let groups: &[&[&str]] = groups
        .filter(|_| !seed().is_multiple_of(8))
        .map_or(&[], |(_, groups)| groups);
    let group = seed() as usize % (groups.len() + 1);
    let names: Vec<&str> = sets().iter().map(|set| set.0).collect();
    let names = [&names[..], &["d", "base", "n1", "n1", "nope"]].concat();
    let mut found = Vec::new();
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        if found.contains(&attribute.kind) || seed() % 10 >= keeps {
            continue;
        }
        found.push(attribute.kind);
        let kind = declared.iter().find(|(kind, _)| *kind == attribute.kind);
        let kind = kind.map_or("", |(_, name)| *name);
        let mut others = groups
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != group);
        if others.any(|(_, others)| others.iter().any(|end| kind.ends_with(end)))
            && !groups
                .get(group)
                .is_some_and(|own| own.iter().any(|end| kind.ends_with(end)))
        {
            continue;
        }
        let mut payload = attribute.payload.to_vec();
        let choice = seed() % 20;
        match payload.len() {
            _ if choice == 0 => {}
            _ if kind.ends_with("_EXPR") => payload = stateful(seed),
            _ if kind.ends_with("_EXPRESSIONS") => {
                let mut list = Vec::new();
                let mut inside = MessageWriter::bare(&mut list);
                for _ in 0..one(&[1, 2, 2, 2, 3, 0], seed) {
                    inside.bytes(NFTA_LIST_ELEM, &stateful(seed));
                }
                inside.finish_bare().unwrap();
                payload = list;
            }
            _ if ["_DATA", "_MASK", "_XOR"]
                .iter()
                .any(|end| kind.ends_with(end)) =>
            {
                let length = one(&[length, length, length, length, length, 3, 4, 17], seed);
                let mut nested = Vec::new();
                let mut inside = MessageWriter::bare(&mut nested);
                if name == "immediate" && seed().is_multiple_of(2) {
                    let chain = one(&["d", "d", "base", "nope"], seed);
                    let codes = [
                        NFT_JUMP, NFT_GOTO, NFT_RETURN, NFT_BREAK, 0, 1, 2, 3, 0x1_0003, -5,
                    ];
                    let code = one(&codes, seed);
                    inside.nested(2, |inside| {
                        inside
                            .be32(1, code.cast_unsigned())
                            .string(2, chain.as_bytes());
                    });
                } else {
                    inside.bytes(1, &vec![(seed() % 3) as u8 * 7; length]);
                }
                inside.finish_bare().unwrap();
                payload = nested;
            }
            4 if kind.contains("REG") => {
                let registers = [1, 2, 3, 4, 8, 9, 10, 11, 15, 19, 20, 22, 23, 0, 5, 24, 256];
                let register: u32 = match name {
                    "immediate" if seed().is_multiple_of(2) => 0,
                    _ => one(&registers, seed),
                };
                payload = register.to_be_bytes().to_vec();
            }
            4 if (kind.ends_with("_FAMILY") || kind.ends_with("_NFPROTO")) && choice < 14 => {
                payload = one::<u32>(&[2, 10], seed).to_be_bytes().to_vec();
            }
            4 if kind.ends_with("_LEN") && choice < 14 => {
                payload = (length as u32).to_be_bytes().to_vec();
            }
            4 => match choice {
                0..12 => payload = (seed() % 4).to_be_bytes().to_vec(),
                12..16 => payload = (seed() % 40).to_be_bytes().to_vec(),
                16..18 => {
                    let values = [30, 64, 127, 128, 137, 255, 256, 258, 65535, 65536];
                    payload = one::<u32>(&values, seed).to_be_bytes().to_vec();
                }
                _ => {}
            },
            8 if kind.ends_with("_TIMEOUT") && choice < 18 => {
                // The kernel rounds to multiples of its tick.
                payload = (u64::from(seed() % 300) * 1000).to_be_bytes().to_vec();
            }
            1 if choice < 16 => payload = vec![(seed() % 5) as u8],
            8 if choice < 16 => payload = u64::from(seed() % 300).to_be_bytes().to_vec(),
            _ if payload.ends_with(&[0]) && choice < 18 => {
                payload = format!("{}\0", one(&names, seed)).into_bytes();
            }
            _ => {}
        }
        writer.bytes(attribute.kind, &payload);
    }
    writer.finish_bare().unwrap();
    bytes
}

/// Builds a list with an expression, usually after others that store to all registers, and mostly with likelier
/// attributes. Attributes that the first sample lacks come from the others.
fn program(name: &str, expressions: &[Decoded<'_>], seed: &mut impl FnMut() -> u32) -> Vec<u8> {
    let list = match seed() % 8 {
        0 => Expressions::new(),
        _ => loaded(),
    };
    let mut attributes = Vec::new();
    let as_it_is = seed().is_multiple_of(10);
    for expression in expressions {
        let mut alone = Expressions::new();
        alone.push_decoded(expression);
        let element = alone.iter().next().unwrap().unwrap();
        attributes.extend_from_slice(element.attributes);
        if attributes.len() % 4 != 0 || as_it_is {
            break;
        }
    }
    if !as_it_is {
        attributes = more_plausible(name, &attributes, seed);
    }
    let mut bytes = list.as_bytes().to_vec();
    let mut writer = MessageWriter::bare(&mut bytes);
    writer.nested(NFTA_LIST_ELEM, |writer| {
        writer.string(NFTA_EXPR_NAME, name.as_bytes());
        writer.bytes(NFTA_EXPR_DATA, &attributes);
    });
    writer.finish_bare().unwrap();
    bytes
}

/// Returns `true` if the program contains no expression that the reference kernel lacks or that is opaque here.
fn is_known(program: &[u8], family: Family) -> bool {
    let lacks = [
        "reject\0",
        "queue\0",
        "flow_offload\0",
        "match\0",
        "target\0",
    ];
    let lacks = &lacks[usize::from(family != Family::BRIDGE)..];
    !lacks.iter().any(|name| program.contains_str(name))
}

/// Removes values that change by themselves or depend on the kernel's tick: the elapsed time of a `last` that is set,
/// and the part of timeouts below 20 ms.
fn without_volatile(listed: Vec<u8>) -> Vec<u8> {
    let mut without_volatile = listed.clone();
    let expressions = Expressions::of_bytes(&listed);
    for expression in expressions.iter().map_while(Result::ok) {
        if expression.is::<Last>() && expression.attributes[4..8] != [0; 4] {
            let end = expression.attributes.as_ptr_range().end as usize - listed.as_ptr() as usize;
            without_volatile[end - 8..end].fill(0);
        }
    }
    for expression in expressions.iter().map_while(Result::ok) {
        if expression.is::<Dynset<'_>>()
            && let Some(timeout) = Attributes::new(expression.attributes).find(NFTA_DYNSET_TIMEOUT)
            && let Ok(time) = <[u8; 8]>::try_from(timeout).map(u64::from_be_bytes)
        {
            let at = timeout.as_ptr() as usize - listed.as_ptr() as usize;
            without_volatile[at..at + 8].copy_from_slice(&(time - time % 20).to_be_bytes());
        }
    }
    without_volatile
}

fn hex(bytes: &[u8]) -> String {
    let word = |word: &[u8]| {
        word.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    bytes.chunks(4).map(word).collect::<Vec<_>>().join(" ")
}

/// Returns `true` if the last expression has only attributes that this library knows in their place: the kernel ignores
/// others.
fn has_no_unknown(program: &[u8]) -> bool {
    let list = Expressions::of_bytes(program);
    let last = list.iter().last().and_then(Result::ok);
    let decoded = last.and_then(|last| last.decode().ok());
    decoded.is_some_and(|decoded| {
        decoded.unknown().is_empty() && !format!("{decoded:?}").contains("Opaque")
    })
}

/// Returns `true` if a ruleset treats a program like what the kernel lists for it.
fn is_same_in(ruleset: &Ruleset, family: Family, program: &[u8], listed: &[u8]) -> bool {
    let [sent, listed] = [program, listed].map(|program| {
        let mut rule = Rule::new(family, "t", "c");
        rule.expressions = Some(Expressions::of_bytes(program));
        let mut ruleset = ruleset.clone();
        ruleset.add(&rule).unwrap();
        ruleset.to_snapshot(&Scope::all())
    });
    let rules = [&sent, &listed].map(|snapshot| snapshot.chain(family, "t", "c").unwrap().rule(0));
    let [Some(sent), Some(listed)] = rules else {
        return false;
    };
    is_same_rule(&sent, &listed)
}

/// Compares the results of the kernel and of this module for many programs of each expression, and what a [`Ruleset`]
/// makes of a program with what it makes of the kernel's listing.
#[test]
fn expressions_match_the_kernel() {
    let programs = std::env::var("CHAINWRIGHT_PROGRAMS");
    let programs: usize = programs.map_or(60, |number| number.parse().unwrap());
    let only = std::env::var("CHAINWRIGHT_EXPRESSION").ok();
    let mut runner = TestRunner::default();
    let mut differences: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut compared, mut taken) = (0, BTreeMap::<&str, usize>::new());
    for family in Family::WITH_TABLES {
        let sandbox = Sandbox::new().unwrap();
        sandbox
            .run(|| {
                let mut connection = Connection::open().unwrap();
                let (mut world, tx) = TestTable::new(family);
                connection.commit(&tx).unwrap();
                let ruleset = Ruleset::of(&tx).unwrap();
                for (name, strategy) in Decoded::strategies(DEPTH) {
                    if only.as_ref().is_some_and(|only| only != name) {
                        continue;
                    }
                    if name.is_empty() {
                        continue; // any bytes
                    }
                    let cases: Vec<Vec<u8>> = (0..programs)
                        .map(|_| {
                            let mut any = || strategy.new_tree(&mut runner).unwrap().current();
                            let expressions = [any(), any(), any(), any()];
                            let mut seed = || runner.rng().next_u32();
                            program(name, &expressions, &mut seed)
                        })
                        .collect();
                    let cases: Vec<_> = cases
                        .into_iter()
                        .filter(|case| is_known(case, family))
                        .collect();
                    for (program, kernels) in
                        cases.iter().zip(kernel(&mut connection, family, &cases))
                    {
                        compared += 1;
                        let ours = evaluate_list(program, &mut world).map(|taken| taken.listed);
                        *taken.entry(name).or_default() += usize::from(kernels.is_ok());
                        if has_no_unknown(program)
                            && let Ok(listed) = &kernels
                            && (name == Last::NAME || without_volatile(listed.clone()) == *listed)
                            && !is_same_in(&ruleset, family, program, listed)
                        {
                            let text = format!(
                                "{family} {name}, normal form\n    {}\n    {}",
                                hex(program),
                                hex(listed)
                            );
                            differences.entry(name.to_owned()).or_default().push(text);
                        }
                        if ours.clone().map(without_volatile)
                            == kernels.clone().map(without_volatile)
                        {
                            continue;
                        }
                        let listed = |result: &Result<Vec<u8>, Errno>| match result {
                            Ok(listed) => {
                                let list = Expressions::of_bytes(listed);
                                let last = list.iter().last().and_then(Result::ok);
                                hex(last.map_or(listed, |last| last.attributes))
                            }
                            Err(errno) => errno.name(),
                        };
                        let list = Expressions::of_bytes(program);
                        let last = list.iter().last().unwrap().unwrap();
                        let text = format!(
                            "{} {} of {}\n    {}\n    kernel       {}
    fake kernel  {}",
                            family,
                            name,
                            list.iter().count(),
                            hex(last.attributes),
                            listed(&kernels),
                            listed(&ours)
                        );
                        differences.entry(name.to_owned()).or_default().push(text);
                    }
                }
            })
            .unwrap();
    }
    for (name, texts) in &differences {
        eprintln!("== {name}: {}", texts.len());
        for text in texts.iter().take(12) {
            eprintln!("{text}");
        }
    }
    eprintln!("compared {compared}, accepted {taken:?}");
    assert!(differences.is_empty());
}
