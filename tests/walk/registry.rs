//! That no expression is passed over: each is evaluated, or the walk says that it does not know.

use std::collections::BTreeSet;

use chainwright::nft::Scope;
use chainwright::nft::expr::NAMES;
use chainwright::walk::{Direction, Node, Options, Packet, Rules};

use crate::common::connect;
use crate::common::rulesets::rules_of_every_expression;

/// All rules of the test rulesets, which together have every expression, are walked through by packets of which little is
/// known: nothing panics, every end says what became of it, and the probabilities of ends that nothing is assumed for are
/// those of one packet.
#[test]
fn every_expression_is_met() {
    let (sandbox, _) = rules_of_every_expression();
    let snapshot = connect(&sandbox).snapshot(Scope::all()).unwrap();
    let mut there = BTreeSet::new();
    for table in snapshot.tables() {
        for chain in table.chains() {
            for rule in chain.rules() {
                for expression in rule.expressions().into_iter().flatten() {
                    there.insert(expression.unwrap().name.to_string());
                }
            }
        }
    }
    let missing: Vec<_> = NAMES
        .iter()
        .filter(|name| !there.contains(**name))
        .collect();
    assert!(missing.is_empty(), "no rule has {missing:?}");
    let rules = Rules::new().with_nft(&snapshot);
    assert!(!rules.not_walked().is_empty());
    let options = Options::default();
    for direction in [
        Direction::In,
        Direction::Forwarded,
        Direction::Out,
        Direction::Local,
    ] {
        for (from, to) in [
            ("10.0.0.5:1234", "10.0.0.1:80"),
            ("[2001:db8::5]:1234", "[2001:db8::1]:80"),
        ] {
            let packet = Packet::tcp(direction, from.parse().unwrap(), to.parse().unwrap());
            let walk = rules.walk(&packet, &Node::default(), &options);
            assert!(!walk.ends.is_empty());
            for end in &walk.ends {
                assert!(end.probability > 0.0 && end.probability <= 1.0);
            }
        }
    }
}
