//! Finds packets that two rulesets treat differently, by trying the values that their rules contain.
//!
//! Each rule yields a piece of a packet: its address, protocol and ports. The packets tried consist of one piece, or
//! of two pieces on top of each other, with neutral values for the rest; then of each value's neighbors; all in each
//! direction. Rules and elements that only one ruleset has come first, combined with the rules that jump to them.
//! Differences may remain undetected; the number of changed rules that no packet matched is reported.

mod changed;
mod loaded;
mod piece;
mod values;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub use values::Values;

use super::{Node, Options, Outcome, Packet, Rules, Trace};

/// Maximum number of kinds of difference.
const KINDS: usize = 256;
/// Tolerance for equal probabilities.
const PROBABILITY_TOLERANCE: f64 = 1e-6;

/// Result of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Number of packets tried.
    pub tried: usize,
    /// Number of packets whose outcome is unknown, or whose traces have different assumptions.
    pub unknown: usize,
    /// Number of packets that are treated differently.
    pub different: usize,
    /// Number of rules and elements that only one of the rulesets has.
    pub changed: usize,
    /// Number of these rules that no packet matched.
    pub unmatched: usize,
    /// One packet for each of the first 256 kinds of difference.
    pub differences: Vec<Difference>,
}

/// Packet that is treated differently.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The packet.
    pub packet: Packet,
    /// Trace through the first ruleset.
    pub old: Trace,
    /// Trace through the second ruleset.
    pub new: Trace,
    /// Number of further packets for which the same rules made the same decisions.
    pub more: usize,
}

/// Summarizes the outcomes of a packet with their probabilities.
fn summary(trace: &Trace) -> Summary {
    let mut summary = Summary::default();
    for end in &trace.ends {
        summary.is_unknown |= matches!(end.outcome, Outcome::Unknown(_) | Outcome::NotFollowed(_));
        let packet = &end.packet;
        let arrives = matches!(
            end.outcome,
            Outcome::Delivered | Outcome::Forwarded | Outcome::Sent | Outcome::Queued(_)
        );
        let description = match arrives {
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
        let assumed = end.assumptions.clone();
        *summary
            .assumed
            .entry((assumed, description.clone()))
            .or_default() += end.probability;
        *summary.ends.entry(description).or_default() += end.probability;
    }
    summary
}

#[derive(Default)]
struct Summary {
    ends: BTreeMap<String, f64>,
    /// Outcomes by assumptions. Probabilities under different assumptions cannot be compared.
    assumed: BTreeMap<(Vec<String>, String), f64>,
    is_unknown: bool,
}

impl Summary {
    /// Returns whether both have the same outcomes with the same probabilities; `None` if their assumptions differ, so
    /// that probabilities cannot be compared.
    fn is_the_same(&self, other: &Self) -> Option<bool> {
        if !self.ends.keys().eq(other.ends.keys()) {
            return Some(false);
        }
        let assumed = |summary: &Self| -> BTreeSet<Vec<String>> {
            summary
                .assumed
                .keys()
                .map(|(assumed, _)| assumed.clone())
                .collect()
        };
        if assumed(self) != assumed(other) {
            return None;
        }
        let close = |(one, other): (&f64, &f64)| (one - other).abs() < PROBABILITY_TOLERANCE;
        let keys = self.assumed.keys().eq(other.assumed.keys());
        Some(keys && self.assumed.values().zip(other.assumed.values()).all(close))
    }
}

/// Returns the decisive rules with the outcomes.
fn decided(trace: &Trace) -> Vec<String> {
    let mut seen = HashSet::new();
    for end in &trace.ends {
        let last = end.steps.last().map(ToString::to_string);
        seen.insert(format!("{} {}", last.unwrap_or_default(), end.outcome));
    }
    let mut outcomes: Vec<String> = seen.into_iter().collect();
    outcomes.sort_unstable();
    outcomes
}

/// Traces packets through two rulesets and returns those that are treated differently: accepted by only one, sent
/// elsewhere, or with another probability. Tries at most `most` packets, with values from the rules.
#[must_use]
pub fn compare(
    old: &Rules<'_>,
    new: &Rules<'_>,
    values: &Values,
    most: usize,
    node: &Node,
    options: &Options,
) -> Comparison {
    let mut comparison = Comparison::default();
    let mut kinds: HashMap<(Vec<String>, Vec<String>), usize> = HashMap::new();
    let mut changed = values.changed().clone();
    for packet in &values.packets(most) {
        comparison.tried += 1;
        let (one, other) = (
            old.trace(packet, node, options),
            new.trace(packet, node, options),
        );
        for (side, trace) in [&one, &other].into_iter().enumerate() {
            changed.met(side, trace.ends.iter().flat_map(|end| &end.steps));
        }
        let (was, is) = (summary(&one), summary(&other));
        let same = match was.is_unknown || is.is_unknown {
            true => None,
            false => was.is_the_same(&is),
        };
        match same {
            Some(true) => continue,
            Some(false) => {}
            None => {
                comparison.unknown += 1;
                continue;
            }
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
    comparison.changed = values.changed().count();
    comparison.unmatched = changed.unmatched();
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainwright::nft::{Scope, Snapshot};
    use chainwright_lang::Script;
    use chainwright_testing::FakeKernel;

    fn snapshot(text: &str) -> Snapshot {
        let script = Script::parse("test", text).unwrap();
        let mut nft = FakeKernel::new().connect().unwrap();
        let change = script.transaction(None).unwrap();
        nft.commit(change.transaction()).unwrap();
        nft.snapshot(Scope::all()).unwrap()
    }

    fn compared(old: &str, new: &str) -> Comparison {
        let (old, new) = (snapshot(old), snapshot(new));
        compare(
            &Rules::new().with_nft(&old),
            &Rules::new().with_nft(&new),
            &Values::between((&old, &[]), (&new, &[])),
            3000,
            &Node {
                addresses: Some(Vec::new()),
                ..Node::default()
            },
            &Options::default(),
        )
    }

    /// Changes one rule in small steps; each change is found by a packet that the rule concerns.
    #[test]
    fn each_change_of_a_rule_is_found() {
        let ruleset = |rule: &str| {
            format!(
                "table inet t {{
                    set s {{ type ipv4_addr . inet_service; elements = {{ 192.0.2.1 . 80, 192.0.2.2 . 443 }} }}
                    chain c {{ {rule}; }}
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
                assert_eq!(was.is_the_same(&is), Some(false));
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

    /// Services three chains deep: each removed rule or element is shown by a packet, or counted.
    #[test]
    fn each_removed_rule_is_found() {
        let mut rules = Vec::new();
        for number in 0..40 {
            rules.push(format!(
                "services ip daddr 10.96.0.{number} tcp dport 80 jump svc{number}"
            ));
            rules.push(format!(
                "svc{number} ip saddr 10.1.{number}.1 meta mark set 0x4000"
            ));
            rules.push(format!(
                "svc{number} meta l4proto tcp numgen random mod 2 == 0 dnat to 10.1.{number}.1:8080"
            ));
            rules.push(format!(
                "svc{number} meta l4proto tcp dnat to 10.1.{number}.2:8080"
            ));
        }
        rules.push("services iifname != \"eth0\" tcp dport 7777 dnat to 10.2.0.1".to_owned());
        rules.push("services ip saddr != 10.3.0.0/16 tcp dport 7778 dnat to 10.2.0.2".to_owned());
        let ruleset = |without: usize| {
            let mut text = String::from("table ip t {\n");
            for number in 0..40 {
                text += &format!("chain svc{number} {{ }}\n");
            }
            text += "chain services { }\n";
            text += "chain pre { type nat hook prerouting priority -100; jump services; }\n}\n";
            for (index, rule) in rules.iter().enumerate() {
                if index != without {
                    text += &format!("add rule ip t {rule}\n");
                }
            }
            snapshot(&text)
        };
        let whole = ruleset(usize::MAX);
        let try_packets = |new: &Snapshot| {
            compare(
                &Rules::new().with_nft(&whole),
                &Rules::new().with_nft(new),
                &Values::between((&whole, &[]), (new, &[])),
                150,
                &Node {
                    addresses: Some(Vec::new()),
                    ..Node::default()
                },
                &Options::default(),
            )
        };
        let same = try_packets(&ruleset(usize::MAX));
        assert_eq!((same.different, same.changed, same.unmatched), (0, 0, 0));
        for (index, rule) in rules
            .iter()
            .enumerate()
            .filter(|(index, _)| index % 7 == 0 || *index > 158)
        {
            let compared = try_packets(&ruleset(index));
            assert!(compared.different > 0, "{rule}: {compared:?}");
        }
    }

    /// A rule in a chain that no packet reaches, or whose effect cannot be compared, is reported and does not count as
    /// equal.
    #[test]
    fn unmatched_rules_are_counted() {
        let table = |rules: &str| {
            format!(
                "table ip t {{ chain lone {{ {rules}; }}; chain f {{ type filter hook forward priority 0; }}; }}"
            )
        };
        let found = compared(&table("drop"), &table(""));
        assert_eq!((found.different, found.changed, found.unmatched), (0, 1, 1));
        let assuming = |last: &str| {
            format!(
                "table ip t {{ chain f {{ type filter hook forward priority 0;
                    ct helper \"ftp\" numgen random mod 2 == 0 drop; {last}; }}; }}"
            )
        };
        let found = compared(&assuming("numgen random mod 2 == 0 drop"), &assuming(""));
        assert!(found.different + found.unknown > 0, "{found:?}");
    }

    /// Interface names are equal whether the comparison includes one NUL or the whole padding.
    #[test]
    fn an_exact_name_is_the_same_in_either_encoding() {
        use chainwright::iptables::text::RestoreOptions;
        use chainwright::iptables::{Family, Iptables};

        let text = b"*nat\n:PREROUTING ACCEPT\n:POSTROUTING ACCEPT\n\
            -A PREROUTING -i eth0 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.5:8080\n\
            -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE\nCOMMIT\n\
            *filter\n:FORWARD DROP\n-A FORWARD -i eth0 -o eth1 -j ACCEPT\nCOMMIT\n";
        let fake = FakeKernel::new().with_any_device();
        let mut iptables = Iptables::over(fake.connect().unwrap());
        iptables
            .restore(Family::Ipv4, text, &RestoreOptions::default())
            .unwrap();
        let old = fake.connect().unwrap().snapshot(Scope::all()).unwrap();
        let new = snapshot(
            "table ip nat {
                chain PREROUTING { type nat hook prerouting priority -100; policy accept;
                    iifname \"eth0\" tcp dport 80 counter dnat to 10.0.0.5:8080; }
                chain POSTROUTING { type nat hook postrouting priority 100; policy accept;
                    oifname != \"docker0\" ip saddr 172.17.0.0/16 counter masquerade; }
            }
            table ip filter {
                chain FORWARD { type filter hook forward priority 0; policy drop;
                    iifname \"eth0\" oifname \"eth1\" counter accept; }
            }",
        );
        let compared = compare(
            &Rules::new().with_nft(&old),
            &Rules::new().with_nft(&new),
            &Values::between((&old, &[]), (&new, &[])),
            2000,
            &Node {
                addresses: Some(Vec::new()),
                ..Node::default()
            },
            &Options::default(),
        );
        assert_eq!(
            (compared.different, compared.unknown),
            (0, 0),
            "{:?}",
            compared.differences
        );
    }

    #[test]
    fn other_translations_and_probabilities_are_differences() {
        let ruleset = |rule: &str| {
            format!(
                "table ip t {{ chain n {{ type nat hook prerouting priority -100;
                    ip daddr 10.96.0.1 tcp dport 443 {rule}
                }}; }}"
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
