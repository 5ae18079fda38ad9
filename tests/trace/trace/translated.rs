//! Rules of iptables and their translations: packets with the values of the rules, and with neighboring values, have
//! the same outcome.

use std::collections::{BTreeMap, BTreeSet};

use chainwright::iptables::Family;
use chainwright::iptables::text::{RestoreOptions, ruleset};
use chainwright::nft::{Scope, Snapshot};
use chainwright_lang::Script;
use chainwright_lang::translate::Translation;
use chainwright_trace::{Comparison, Node, Options, Outcome, Rules, Values, compare};

use crate::common::rulesets::data;

/// Number of packets for each rule.
const PACKETS: usize = 150;

/// Extensions that a trace cannot compare with their translation: both traces make assumptions with
/// different descriptions, or stop.
const NOT_COMPARED: &[&str] = &[];

/// Extensions that never change the outcome of a packet: targets with effects that the outcome
/// does not show, and headers and ICMPv6 types that no packet of these has.
const NOT_HIT: &[&str] = &[
    "AUDIT",
    "CLASSIFY",
    "CONNMARK",
    "CT",
    "DSCP",
    "LOG",
    "MASQUERADE",
    "NFLOG",
    "NOTRACK",
    "RETURN",
    "SNAT",
    "TCPMSS",
    "TEE",
    "TOS",
    "TRACE",
    "dst",
    "frag",
    "hbh",
    "icmp6",
    "icmpv6",
    "ipv6-icmp",
    "mh",
    "rt",
    "user",
];

/// The rules with a translation: family, table and text. Without those that only compare the time with the last second
/// of the 32-bit clock, in 2038, which the translation does not.
fn rules() -> Vec<(Family, String, String)> {
    let text = data("translate/1.8.13.txt");
    let lines: Vec<_> = text.lines().collect();
    let mut rules = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let is_rule = line.starts_with(['4', '6']);
        let is_refused = lines
            .get(at + 2)
            .is_some_and(|line| line.starts_with("\t> # "));
        let translated = lines.get(at + 2).filter(|line| line.starts_with("\t> "));
        let is_any_time = line.contains("-m time")
            && !translated
                .or(lines.get(at + 1))
                .is_some_and(|line| line.contains("meta "));
        if !is_rule || is_refused || is_any_time {
            continue;
        }
        let mut parts = line.splitn(3, ' ');
        let family = match parts.next() {
            Some("4") => Family::Ipv4,
            _ => Family::Ipv6,
        };
        let (table, rule) = (parts.next().unwrap(), parts.next().unwrap());
        rules.push((family, table.to_owned(), rule.to_owned()));
    }
    rules
}

/// The rule in a chain that every packet enters. Without a target, it drops.
fn saved(table: &str, rule: &str) -> String {
    let hooks: &[&str] = match table {
        // The kernel's match is only allowed where a packet has the device.
        _ if rule.contains("-m devgroup") => &["FORWARD"],
        "filter" => &["INPUT", "FORWARD", "OUTPUT"],
        "raw" => &["PREROUTING", "OUTPUT"],
        "nat" => &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
        _ => &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
    };
    let mut text = format!("*{table}\n");
    for hook in hooks {
        text += &format!(":{hook} ACCEPT [0:0]\n");
    }
    text += ":rule - [0:0]\n:user - [0:0]\n:other - [0:0]\n-A user -j ACCEPT\n";
    let drop = if table == "nat" { "ACCEPT" } else { "DROP" };
    text += &format!("-A other -j {drop}\n");
    for hook in hooks {
        text += &format!("-A {hook} -j rule\n");
    }
    let has_target = [" -j ", " -g ", "--jump"]
        .iter()
        .any(|word| format!(" {rule}").contains(word));
    let target = if has_target {
        String::new()
    } else {
        format!(" -j {drop}")
    };
    format!("{text}-A rule {rule}{target}\nCOMMIT\n")
}

fn snapshots(family: Family, text: &str) -> Result<(Snapshot, Snapshot), String> {
    let options = RestoreOptions::default();
    let old = ruleset(family, text, &options).map_err(|error| error.to_string())?;
    let translation = Translation::of(family, text).map_err(|error| error.to_string())?;
    if let Some(line) = translation.untranslated.first() {
        return Err(line.reason.clone());
    }
    let script = Script::parse("translated", &translation.text);
    let new = script.and_then(|script| script.ruleset());
    let new = new.map_err(|error| format!("{}{error}", translation.text))?;
    let all = Scope::all();
    Ok((old.to_snapshot(&all), new.to_snapshot(&all)))
}

/// Names of the extensions of a rule.
fn extensions(rule: &str) -> BTreeSet<String> {
    let words: Vec<_> = rule.split(' ').collect();
    let named = words
        .windows(2)
        .filter(|pair| ["-m", "-j"].contains(&pair[0]));
    named.map(|pair| pair[1].to_owned()).collect()
}

struct Tried {
    comparison: Comparison,
    hit: bool,
    missed: bool,
}

fn tried(family: Family, table: &str, rule: &str) -> Result<Tried, String> {
    let text = saved(table, rule);
    let (old, new) = snapshots(family, &text)?;
    let values = Values::between((&old, &[]), (&new, &[]));
    let node = Node {
        addresses: Some(Vec::new()),
        ..Node::default()
    };
    let options = Options::default();
    let (old, new) = (Rules::new().with_nft(&old), Rules::new().with_nft(&new));
    let comparison = compare(&old, &new, &values, PACKETS, &node, &options);
    // Whether the rule decided, or changed the packet.
    let plain_text = saved(table, "-p 254");
    let (plain, _) = snapshots(family, &plain_text)?;
    let plain = Rules::new().with_nft(&plain);
    let outcomes = |rules: &Rules<'_>, packet: &_| -> Vec<(Outcome, String)> {
        let trace = rules.trace(packet, &node, &options);
        let ends = trace.ends.into_iter();
        ends.map(|end| (end.outcome, end.packet.mark.to_string()))
            .collect()
    };
    let (mut hit, mut missed) = (false, false);
    for packet in values.packets(PACKETS) {
        let (with, without) = (outcomes(&new, &packet), outcomes(&plain, &packet));
        hit |= with.iter().any(|end| !without.contains(end));
        missed |= with.iter().any(|end| without.contains(end));
    }
    Ok(Tried {
        comparison,
        hit,
        missed,
    })
}

#[test]
fn packets_have_the_same_outcome_before_and_after_the_translation() {
    let (mut wrong, mut packets) = (Vec::new(), 0);
    // For each extension: rules, rules with comparable packets, rules that packets hit and missed.
    let mut seen: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let rules = rules();
    for (family, table, rule) in &rules {
        // iptables-nft cannot load this target.
        if rule == "-j QUEUE" {
            continue;
        }
        // Devices that this machine does not have.
        if rule.contains("--oif ") && !rule.ends_with("--oif lo") {
            continue;
        }
        let Tried {
            comparison,
            hit,
            missed,
        } = match tried(*family, table, rule) {
            Ok(tried) => tried,
            Err(error) => {
                wrong.push(format!("{rule}: {error}"));
                continue;
            }
        };
        packets += comparison.tried - comparison.unknown;
        for extension in extensions(rule) {
            let counts = seen.entry(extension).or_default();
            counts[0] += 1;
            counts[1] += usize::from(comparison.unknown < comparison.tried);
            counts[2] += usize::from(hit && missed);
        }
        if let Some(difference) = comparison.differences.first() {
            wrong.push(format!(
                "{family:?} {table} {rule}: {} of {} packets\n  {:?}\n  before {}\n  after {}",
                comparison.different,
                comparison.tried,
                difference.packet,
                difference.old,
                difference.new
            ));
        }
    }
    println!("{} rules, {packets} packets compared", rules.len());
    let without = |index: usize| -> Vec<&str> {
        let names = seen.iter().filter(|(_, counts)| counts[index] == 0);
        names.map(|(name, _)| name.as_str()).collect()
    };
    assert!(
        wrong.is_empty(),
        "{} differ\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(without(1), NOT_COMPARED);
    assert_eq!(without(2), NOT_HIT);
}
