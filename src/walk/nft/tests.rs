use std::sync::Arc;

use super::*;
use crate::nft::expr::Decoded;
use crate::walk::packet::{Direction, Hook};
use crate::xt::Family;

/// Any expression of each kind, on packets of which everything or nothing is known: it is carried out, or it splits the
/// branch into parts that there can be, in which it is carried out in the end, or it says why it cannot be.
#[cfg(feature = "model")]
#[test]
fn no_expression_is_passed_over() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;

    use crate::nft::expr::{Expressions, NAMES};
    use crate::nft::live::Model;
    use crate::nft::{Connection, Family as NftFamily, Scope, Table, Transaction};
    use crate::walk::flow::Place;
    use crate::walk::{Node, Packet, Rules};

    let mut nft: Connection = Model::new().connect().unwrap();
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
            let place = Place {
                node: Node::default(),
                direction,
                sets_may_differ: true,
            };
            let mut flow = Flow::new(family, hook, Arc::new(place));
            if turn % 4 < 2 {
                let [from, to] = addresses.map(|address| address.parse().unwrap());
                let packet = Packet::tcp(direction, from, to);
                crate::walk::known::enter(&mut flow, &packet);
                flow.track();
            }
            let mut parts = vec![(flow, Registers::new(), Vec::new())];
            let mut carried_out = 0;
            while let Some((mut flow, mut registers, mut changes)) = parts.pop() {
                flow.begin();
                let mut machine = Machine {
                    flow: &mut flow,
                    registers: &mut registers,
                    changes: &mut changes,
                    table: &rules.tables()[0],
                };
                match machine.carry_out(&expression) {
                    Ok(_) => {}
                    Err(Open::Unknown(why)) => {
                        assert!(!why.is_empty(), "{kind}");
                        unknown += 1;
                    }
                    Err(Open::Split(ways)) => {
                        assert!(ways.len() > 1, "{kind}: {decoded}");
                        for way in ways {
                            let mut part = flow.clone();
                            assert!(part.take(&way), "{kind}: {decoded}: {way:?}");
                            parts.push((part, registers.clone(), changes.clone()));
                        }
                    }
                }
                carried_out += 1;
                assert!(carried_out < 10_000, "{kind}: {decoded}");
            }
        }
    }
    assert!(unknown > 0);
}
