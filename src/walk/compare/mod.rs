//! Packets that two rulesets treat differently, looked for among the values that their rules name.
//!
//! A rule is a part of a packet: the address, protocol and ports that it names together. A packet that is tried is such a
//! part, or two of them, one over the other, and for the rest what nothing asks for; then with each value's neighbours,
//! and in each direction. What is not found so may be there all the same.

mod loaded;
mod piece;
mod values;

use std::collections::{BTreeMap, HashMap, HashSet};

pub use values::Values;

use super::{Node, Options, Outcome, Packet, Rules, Walk};

/// So many kinds of difference are told apart at most.
const KINDS: usize = 256;
/// A probability that is no other one.
const SAME: f64 = 1e-6;

/// What came of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// How many packets were tried.
    pub tried: usize,
    /// For how many of them a walk could not say what becomes of them.
    pub unknown: usize,
    /// How many are treated differently.
    pub different: usize,
    /// One packet of each kind of difference, of the first 256 kinds.
    pub differences: Vec<Difference>,
}

/// A packet that is treated differently.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The packet.
    pub packet: Packet,
    /// Its walk through the first ruleset.
    pub old: Walk,
    /// Its walk through the second one.
    pub new: Walk,
    /// How many more there were for which the same rules decided in the same way.
    pub more: usize,
}

/// What becomes of a packet, in words, with the probability of each.
fn summary(walk: &Walk) -> Summary {
    let mut summary = Summary::default();
    for end in &walk.ends {
        summary.is_unknown |= matches!(end.outcome, Outcome::Unknown(_) | Outcome::NotFollowed(_));
        summary.is_assumed |= !end.assumptions.is_empty();
        let packet = &end.packet;
        let arrives = matches!(
            end.outcome,
            Outcome::Delivered | Outcome::Forwarded | Outcome::Sent | Outcome::Queued(_)
        );
        let words = match arrives {
            true => format!(
                "{} from {} {} to {} {} mark {}",
                end.outcome,
                packet.source,
                packet.source_port,
                packet.destination,
                packet.destination_port,
                packet.mark
            ),
            false => end.outcome.to_string(),
        };
        *summary.ends.entry(words).or_default() += end.probability;
    }
    summary
}

#[derive(Default)]
struct Summary {
    ends: BTreeMap<String, f64>,
    is_unknown: bool,
    /// Whether something is assumed, so that probabilities cannot be compared.
    is_assumed: bool,
}

impl Summary {
    fn is_the_same(&self, other: &Self) -> bool {
        let words = self.ends.keys().eq(other.ends.keys());
        let assumed = self.is_assumed || other.is_assumed;
        let close = |(one, other): (&f64, &f64)| (one - other).abs() < SAME;
        words && (assumed || self.ends.values().zip(other.ends.values()).all(close))
    }
}

/// Which rules decided, and what.
fn decided(walk: &Walk) -> Vec<String> {
    let mut seen = HashSet::new();
    for end in &walk.ends {
        let last = end.steps.last().map(ToString::to_string);
        seen.insert(format!("{} {}", last.unwrap_or_default(), end.outcome));
    }
    let mut said: Vec<String> = seen.into_iter().collect();
    said.sort_unstable();
    said
}

/// Walks packets through two rulesets, and says which are treated differently: accepted by one and not by the other, or
/// sent elsewhere, or with another probability.
#[must_use]
pub fn compare(
    old: &Rules<'_>,
    new: &Rules<'_>,
    packets: &[Packet],
    node: &Node,
    options: &Options,
) -> Comparison {
    let mut comparison = Comparison::default();
    let mut kinds: HashMap<(Vec<String>, Vec<String>), usize> = HashMap::new();
    for packet in packets {
        comparison.tried += 1;
        let (one, other) = (
            old.walk(packet, node, options),
            new.walk(packet, node, options),
        );
        let (was, is) = (summary(&one), summary(&other));
        if was.is_unknown || is.is_unknown {
            comparison.unknown += 1;
            continue;
        }
        if was.is_the_same(&is) {
            continue;
        }
        comparison.different += 1;
        let key = (decided(&one), decided(&other));
        let known = kinds.get(&key).copied();
        match known.and_then(|place| comparison.differences.get_mut(place)) {
            Some(difference) => difference.more += 1,
            None if kinds.len() < KINDS => {
                kinds.insert(key, comparison.differences.len());
                comparison.differences.push(Difference {
                    packet: packet.clone(),
                    old: one,
                    new: other,
                    more: 0,
                });
            }
            None => {}
        }
    }
    comparison
}

#[cfg(all(test, feature = "model", feature = "text"))]
mod tests {
    use super::*;
    use crate::nft::live::Model;
    use crate::nft::{Scope, Snapshot};
    use crate::text::Script;

    fn snapshot(text: &str) -> Snapshot {
        let script = Script::parse("test", text).unwrap();
        let mut nft = Model::new().connect().unwrap();
        let change = script.transaction(None).unwrap();
        nft.commit(change.transaction()).unwrap();
        nft.snapshot(Scope::all()).unwrap()
    }

    fn compared(old: &str, new: &str) -> Comparison {
        let (old, new) = (snapshot(old), snapshot(new));
        let packets = Values::new().with_nft(&old).with_nft(&new).packets(3000);
        compare(
            &Rules::new().with_nft(&old),
            &Rules::new().with_nft(&new),
            &packets,
            &Node {
                addresses: Some(Vec::new()),
                ..Node::default()
            },
            &Options::default(),
        )
    }

    /// One rule is changed a little at a time; each change is found by a packet that it is about.
    #[test]
    fn each_change_of_a_rule_is_found() {
        let ruleset = |rule: &str| {
            format!(
                "table inet t {{
                    set s {{ type ipv4_addr . inet_service; elements = {{ 192.0.2.1 . 80, 192.0.2.2 . 443 }} }}
                    chain c {{ {rule} }}
                    chain f {{ type filter hook forward priority 0; policy drop;
                        ip saddr 10.0.0.0/24 jump c
                        ct state established accept
                    }}
                }}"
            )
        };
        let rule = "tcp dport 22-23 accept; ip daddr . tcp dport @s accept; meta mark 0x10 accept";
        let same = compared(&ruleset(rule), &ruleset(rule));
        assert_eq!((same.different, same.unknown), (0, 0));
        assert!(same.tried > 100, "{}", same.tried);
        for changed in [
            "tcp dport 22-24 accept; ip daddr . tcp dport @s accept; meta mark 0x10 accept",
            "tcp dport 22 accept; ip daddr . tcp dport @s accept; meta mark 0x10 accept",
            "tcp dport 22-23 accept; ip daddr . tcp sport @s accept; meta mark 0x10 accept",
            "tcp dport 22-23 accept; ip daddr . tcp dport @s accept; meta mark 0x11 accept",
            "udp dport 22-23 accept; ip daddr . tcp dport @s accept; meta mark 0x10 accept",
            "tcp dport 22-23 accept; ip daddr . tcp dport @s accept; iifname \"eth7\" accept",
        ] {
            let found = compared(&ruleset(rule), &ruleset(changed));
            assert!(found.different > 0, "{changed}");
            for difference in &found.differences {
                let (was, is) = (summary(&difference.old), summary(&difference.new));
                assert!(!was.is_the_same(&is));
            }
        }
        let established = ruleset(rule).replace("established", "related");
        assert!(compared(&ruleset(rule), &established).different > 0);
        for (network, other) in [
            ("ip saddr 10.0.0.0/24", "ip saddr 10.0.0.0/25"),
            ("ip saddr 10.0.0.0/20", "ip saddr 10.0.0.0/21"),
            ("ip6 saddr 2001:db8::/32", "ip6 saddr 2001:db8::/40"),
            ("ip6 daddr 2001:db8::/35", "ip6 daddr 2001:db8::/36"),
        ] {
            let with = |network| ruleset(rule).replace("ip saddr 10.0.0.0/24", network);
            let found = compared(&with(network), &with(other));
            assert!(found.different > 0, "{network}");
        }
    }

    #[test]
    fn other_translations_and_probabilities_are_differences() {
        let ruleset = |rule: &str| {
            format!(
                "table ip t {{ chain n {{ type nat hook prerouting priority -100;
                    ip daddr 10.96.0.1 tcp dport 443 {rule}
                }} }}"
            )
        };
        let two = ruleset("dnat to numgen random mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }");
        let other = ruleset("dnat to numgen random mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.3 }");
        let uneven = ruleset(
            "dnat to numgen random mod 4 map { 0 : 10.0.0.1, 1 : 10.0.0.2, 2 : 10.0.0.2, 3 : 10.0.0.2 }",
        );
        assert_eq!(compared(&two, &two).different, 0);
        assert!(compared(&two, &other).different > 0);
        assert!(compared(&two, &uneven).different > 0);
    }
}
