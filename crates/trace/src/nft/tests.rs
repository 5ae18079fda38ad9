use std::sync::Arc;

use super::*;
use crate::packet::{Direction, Hook};
use chainwright::nft::expr::{Decoded, Expressions};
use chainwright::xt::Family;

/// Evaluates random expressions of each kind on fully known and unknown packets. Each one is evaluated, possibly after
/// valid splits, or reports why it cannot be.
#[test]
fn every_expression_is_evaluated_or_reported() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;

    use crate::path_state::TraceContext;
    use crate::{Node, Packet, Rules};
    use chainwright::nft::expr::NAMES;
    use chainwright::nft::{Connection, Family as NftFamily, Scope, Table, Transaction};
    use chainwright_testing::FakeKernel;

    let mut nft: Connection = FakeKernel::new().connect().unwrap();
    let mut tx = Transaction::new();
    tx.add(&Table::new(NftFamily::INET, "t")).unwrap();
    nft.commit(&tx).unwrap();
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let mut runner = TestRunner::deterministic();
    let kinds = Decoded::strategies(1);
    assert_eq!(kinds.len(), NAMES.len() + 1);
    let mut unknown = 0;
    for (kind, strategy) in kinds {
        for turn in 0..24 {
            let decoded = strategy.new_tree(&mut runner).unwrap().current();
            let mut list = Expressions::new();
            list.push_decoded(&decoded);
            let Some(Ok(expression)) = list.iter().next() else {
                continue; // too long for a rule
            };
            let rules = Rules::new().with_nft(&snapshot);
            let (family, addresses) = match turn % 2 {
                0 => (Family::Ipv4, ["192.0.2.1:1", "192.0.2.2:80"]),
                _ => (Family::Ipv6, ["[2001:db8::1]:1", "[2001:db8::2]:80"]),
            };
            let hook = Hook::ALL[turn % 5];
            let direction = match hook {
                Hook::Output | Hook::Postrouting => Direction::Out,
                _ => Direction::In,
            };
            let place = TraceContext {
                node: Node::default(),
                direction,
                sets_may_differ: true,
            };
            let mut path_state = PathState::new(family, hook, Arc::new(place));
            if turn % 4 < 2 {
                let [from, to] = addresses.map(|address| address.parse().unwrap());
                let packet = Packet::tcp(direction, from, to);
                crate::convert::enter(&mut path_state, &packet);
                path_state.track();
            }
            let mut parts = vec![(path_state, Registers::new(), Vec::new())];
            let mut evaluated = 0;
            while let Some((mut path_state, mut registers, mut changes)) = parts.pop() {
                path_state.begin();
                let mut machine = Evaluator {
                    path_state: &mut path_state,
                    registers: &mut registers,
                    changes: &mut changes,
                    state_owners: &mut Vec::new(),
                    table: &rules.tables()[0],
                    rest: ExpressionIter::new(&[]).enumerate(),
                };
                match machine.evaluate(&expression) {
                    Ok(_) => {}
                    Err(Undetermined::Unknown(why)) => {
                        assert!(!why.is_empty(), "{kind}");
                        unknown += 1;
                    }
                    Err(Undetermined::Split(alternatives)) => {
                        assert!(alternatives.len() > 1, "{kind}: {decoded}");
                        for alternative in alternatives {
                            let mut part = path_state.clone();
                            assert!(
                                part.take(&alternative),
                                "{kind}: {decoded}: {alternative:?}"
                            );
                            parts.push((part, registers.clone(), changes.clone()));
                        }
                    }
                }
                evaluated += 1;
                assert!(evaluated < 10_000, "{kind}: {decoded}");
            }
        }
    }
    assert!(unknown > 0);
}

/// Returns for each final branch whether a rule with these expressions matches.
fn ends_of<'s>(
    path_state: PathState,
    registers: Registers,
    list: &'s Expressions<'_>,
    table: &TableOfRules<'s>,
) -> Vec<(bool, PathState)> {
    let (mut parts, mut ends) = (
        vec![(path_state, registers, list.iter().enumerate())],
        Vec::new(),
    );
    while let Some((mut path_state, mut registers, mut rest)) = parts.pop() {
        let before = rest.clone();
        let Some((_, expression)) = rest.next() else {
            ends.push((true, path_state));
            continue;
        };
        path_state.begin();
        let mut machine = Evaluator {
            path_state: &mut path_state,
            registers: &mut registers,
            changes: &mut Vec::new(),
            state_owners: &mut Vec::new(),
            table,
            rest: rest.clone(),
        };
        match machine.evaluate(&expression.unwrap()) {
            Ok(Continuation::On) => {
                path_state.end();
                parts.push((path_state, registers, rest));
            }
            Ok(Continuation::Break) => ends.push((false, path_state)),
            Err(Undetermined::Split(alternatives)) => {
                parts.extend(alternatives.iter().map(|alternative| {
                    let mut part = path_state.clone();
                    assert!(part.take(alternative));
                    (part, registers.clone(), before.clone())
                }))
            }
            other => panic!("{other:?}"),
        }
    }
    ends
}

/// `tcp dport 10-20` is two comparisons. A branch splits into ports inside and outside, not into below and above,
/// which would each continue through all later rules.
#[test]
fn range_comparisons_split_only_once() {
    use crate::path_state::TraceContext;
    use crate::value::Test;
    use crate::{Field, Node, Rules};
    use chainwright::nft::expr::{Cmp, CmpOp};
    use chainwright::nft::{Connection, Family as NftFamily, Scope, Table, Transaction};
    use chainwright_testing::FakeKernel;

    const ALL: Option<(u128, u128)> = Some((0, 0xffff));
    let mut nft: Connection = FakeKernel::new().connect().unwrap();
    let mut tx = Transaction::new();
    tx.add(&Table::new(NftFamily::INET, "t")).unwrap();
    nft.commit(&tx).unwrap();
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    for (comparisons, inside) in [
        (&[(CmpOp::GTE, 10), (CmpOp::LTE, 20)][..], Some((10, 20))),
        (&[(CmpOp::GT, 9), (CmpOp::LT, 21)], Some((10, 20))),
        (&[(CmpOp::LTE, 20), (CmpOp::GTE, 10)], Some((10, 20))),
        (
            &[(CmpOp::GTE, 3), (CmpOp::LT, 21), (CmpOp::GT, 9)],
            Some((10, 20)),
        ),
        (&[(CmpOp::GTE, 20), (CmpOp::LTE, 20)], Some((20, 20))),
        (&[(CmpOp::GTE, 20)], Some((20, 0xffff))),
        (&[(CmpOp::LT, 20)], Some((0, 19))),
        (&[(CmpOp::GTE, 0), (CmpOp::LTE, 0xffff)], ALL),
        (&[(CmpOp::GTE, 21), (CmpOp::LTE, 20)], None),
        (&[(CmpOp::LT, 0)], None),
        (&[(CmpOp::GT, 0xffff)], None),
    ] {
        let mut list = Expressions::new();
        for (op, end) in comparisons {
            let end = u16::to_be_bytes(*end);
            list.push(&Cmp::new(Register(1), *op, &end));
        }
        let rules = Rules::new().with_nft(&snapshot);
        let table = &rules.tables()[0];
        let place = Arc::new(TraceContext {
            node: Node::default(),
            direction: Direction::In,
            sets_may_differ: true,
        });
        let mut path_state = PathState::new(Family::Ipv4, Hook::Input, place);
        let port = path_state.get(Field::DestinationPort);
        let mut registers = Registers::new();
        registers.store(Register(1), &port, Order::Network).unwrap();
        let found = ends_of(path_state.clone(), registers.clone(), &list, table);
        let number = if inside.is_none() || inside == ALL {
            1
        } else {
            2
        };
        assert_eq!(found.len(), number, "{comparisons:?}");
        for (goes_on, mut path_state) in found {
            match inside {
                Some((low, high)) => {
                    let is = path_state.test_value(&port, Test::Within(low, high));
                    assert_eq!(is.unwrap(), goes_on, "{comparisons:?}");
                }
                None => assert!(!goes_on, "{comparisons:?}"),
            }
            assert!(!goes_on || path_state.ends_of(&port) == inside);
        }
        for number in [0, 9, 10, 11, 19, 20, 21, 0xffff] {
            registers
                .store_bytes(Register(1), &u16::to_be_bytes(number))
                .unwrap();
            let found = ends_of(path_state.clone(), registers.clone(), &list, table);
            let inside = inside.is_some_and(|(low, high)| (low..=high).contains(&number.into()));
            let found: Vec<_> = found.iter().map(|(goes_on, _)| *goes_on).collect();
            assert_eq!(found, [inside], "{comparisons:?}: {number}");
        }
    }
}
