//! Rules and elements that only one of two rulesets has.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use bstr::{BStr, BString, ByteSlice};

use crate::Step;
use chainwright::iptables::{self, Backend};
use chainwright::legacy;
use chainwright::nft::{ElementRef, Family, RuleRef, SetRef, Snapshot};

/// Location of a rule: whether it is in nf_tables, family as in steps, table, chain and number.
pub(super) type RuleKey = (bool, &'static str, BString, BString, usize);

/// Rules and elements whose count differs between two rulesets.
#[derive(Debug, Clone, Default)]
pub(super) struct Changed {
    /// Count in the old ruleset minus count in the new one, by a hash of location and content.
    balance: HashMap<u64, i64>,
    /// Rules of the old and the new ruleset that are changed and that no packet has matched yet.
    rules: [HashSet<RuleKey>; 2],
}

impl Changed {
    pub(super) fn is(&self, key: u64) -> bool {
        self.balance.get(&key).is_some_and(|balance| *balance != 0)
    }

    /// Compares the rules and elements of nf_tables.
    pub(super) fn nft(&mut self, old: &Snapshot, new: &Snapshot) {
        for (snapshot, one) in [(old, 1), (new, -1)] {
            each_nft(snapshot, |key, _| {
                *self.balance.entry(key).or_default() += one;
            });
        }
        self.balance.retain(|_, balance| *balance != 0);
        for (side, snapshot) in [old, new].into_iter().enumerate() {
            each_nft(snapshot, |key, rule_key| {
                if let Some(rule_key) = rule_key
                    && self.is(key)
                {
                    self.rules[side].insert(rule_key());
                }
            });
        }
    }

    /// Compares the rules of legacy tables.
    pub(super) fn legacy(&mut self, old: &[legacy::Table], new: &[legacy::Table]) {
        for (tables, one) in [(old, 1), (new, -1)] {
            each_legacy(tables, |key, _| {
                *self.balance.entry(key).or_default() += one;
            });
        }
        for (side, tables) in [old, new].into_iter().enumerate() {
            each_legacy(tables, |key, rule_key| {
                if self.is(key) {
                    self.rules[side].insert(rule_key());
                }
            });
        }
    }

    /// Returns the number of rules and elements that only one of the rulesets has.
    pub(super) fn count(&self) -> usize {
        self.balance
            .values()
            .map(|balance| balance.unsigned_abs() as usize)
            .sum()
    }

    /// Removes the rules that matched a packet in the old (0) or new (1) ruleset.
    pub(super) fn met<'s>(&mut self, side: usize, steps: impl Iterator<Item = &'s Step>) {
        let Some(rules) = self.rules.get_mut(side).filter(|rules| !rules.is_empty()) else {
            return;
        };
        for step in steps.filter(|step| step.is_full_match) {
            if let Some(rule) = step.rule {
                let is_nft = step.backend == Backend::Nft;
                let (table, chain) = (step.table.clone(), step.chain.clone());
                rules.remove(&(is_nft, step.family, table, chain, rule.number));
            }
        }
    }

    /// Returns the number of rules that matched no packet.
    pub(super) fn unmatched(&self) -> usize {
        self.rules.iter().map(HashSet::len).sum()
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Hashes location and content of an nf_tables rule, without handle, counters and numbers of anonymous sets.
pub(super) fn key_of_rule(family: Family, table: &BStr, chain: &BStr, rule: &RuleRef<'_>) -> u64 {
    let description = match iptables::nft::decode(rule) {
        Ok(entry) => entry.rule.to_string(),
        Err(_) => {
            let mut description = String::new();
            for line in rule.to_string().lines().skip(1).map(str::trim) {
                if !line.starts_with("[ counter") {
                    let named = line.split(' ').map(|word| plain(word.as_bytes().as_bstr()));
                    for word in named {
                        description.push_str(&word.to_str_lossy());
                        description.push(' ');
                    }
                }
            }
            description
        }
    };
    hash((family.0, table, chain, description))
}

/// Returns the name of a set; without its number if it is anonymous.
fn plain(name: &BStr) -> &BStr {
    for prefix in ["__set", "__map"] {
        let number = name.strip_prefix(prefix.as_bytes());
        if number.is_some_and(|number| number.iter().all(u8::is_ascii_digit)) {
            return name[..prefix.len()].as_bstr();
        }
    }
    name
}

/// Hashes an element by its set and content.
pub(super) fn key_of_element(table: &BStr, set: &SetRef<'_>, element: &ElementRef<'_>) -> u64 {
    let data = element.data().map(|data| format!("{data:?}"));
    let keys = (element.key_bytes(), element.key_end_bytes());
    let name = plain(set.name());
    hash((table, name, keys, element.is_interval_end(), data))
}

/// Visits the rules, with their locations if traces cover them, and the elements.
fn each_nft(snapshot: &Snapshot, mut each: impl FnMut(u64, Option<&dyn Fn() -> RuleKey>)) {
    for table in snapshot.tables() {
        let (family, name) = (table.table().family(), table.table().name());
        let traced = match family {
            Family::IP => Some("ip"),
            Family::IP6 => Some("ip6"),
            Family::INET => Some("inet"),
            _ => None,
        };
        for chain in table.chains() {
            let at = chain.chain();
            for (index, rule) in chain.rules().enumerate() {
                let key = key_of_rule(family, name, at.name(), &rule);
                let rule_key = |family| {
                    move || {
                        let (table, chain) = (name.to_owned(), at.name().to_owned());
                        (true, family, table, chain, index + 1)
                    }
                };
                match traced {
                    Some(family) => each(key, Some(&rule_key(family))),
                    None => each(key, None),
                }
            }
        }
        for set in table.sets() {
            let at = set.set();
            for element in set.elements() {
                each(key_of_element(name, &at, &element), None);
            }
        }
    }
}

/// Hashes location and content of a legacy rule.
pub(super) fn key_of_legacy(
    table: &legacy::Table,
    chain: &BStr,
    rule: &legacy::RuleRef<'_>,
) -> Option<u64> {
    let entry = iptables::legacy::decode(rule).ok()?;
    let (family, description) = (table.family() as u8, entry.rule.to_string());
    Some(hash((family, table.name().as_bstr(), chain, description)))
}

fn each_legacy(tables: &[legacy::Table], mut each: impl FnMut(u64, &dyn Fn() -> RuleKey)) {
    for table in tables {
        let family = match chainwright::xt::Family::try_from(table.family()) {
            Ok(chainwright::xt::Family::Ipv4) => "ip",
            Ok(chainwright::xt::Family::Ipv6) => "ip6",
            Err(_) => continue,
        };
        for chain in table.chains() {
            for (index, rule) in chain.rules().enumerate() {
                if let Some(key) = key_of_legacy(table, chain.name(), &rule) {
                    each(key, &|| {
                        let (table, chain) = (table.name().as_bstr().into(), chain.name().into());
                        (false, family, table, chain, index + 1)
                    });
                }
            }
        }
    }
}
