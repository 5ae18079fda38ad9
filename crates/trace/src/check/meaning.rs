//! Meaning of a rule: the conditions on packet data under which its verdict applies, as far as they can be expressed.

use std::collections::{BTreeMap, HashMap};

use bstr::BString;

use super::variables::Variables;
use crate::value_set::{Constraint, Domain};

/// Maximum number of alternatives that are compared in pairs.
const MAX_PAIRS: usize = 1 << 14;

/// Conditions on single variables. All of them hold.
pub(super) type Conditions = Vec<(u32, Constraint)>;

/// How a rule ends the chain for a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    Accept,
    Drop,
    Return,
    Goto(BString),
    /// Another statement that decides on the packet, as its bytes.
    Statement(Vec<u8>),
}

/// Meaning of a rule.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    pub(super) conditions: Conditions,
    /// Conditions on several variables: one of the alternatives holds.
    pub(super) relations: Vec<Vec<Conditions>>,
    /// Possible values of each variable with a condition.
    domains: HashMap<u32, Domain>,
    /// Whether there are further conditions.
    pub(super) is_opaque: bool,
    /// Whether the conditions exclude one another.
    pub(super) is_contradiction: bool,
    /// Variables that the rule reads.
    pub(super) reads: Vec<u32>,
    /// Those of them that a packet may lack.
    pub(super) loads: Vec<u32>,
    /// Ends of the bytes that each header must have.
    pub(super) ends: BTreeMap<u32, u32>,
    pub(super) ending: Option<Ending>,
    /// Whether a statement before the last condition has an effect outside of the rule: then the rule acts on packets
    /// that do not match all of it.
    pub(super) acts_early: bool,
}

impl Meaning {
    /// Returns `true` if the rule ends the chain for every packet.
    pub(super) fn is_catch_all(&self) -> bool {
        self.ends_chain()
            && self.conditions.is_empty()
            && self.relations.is_empty()
            && self.loads.is_empty()
            && self.ends.is_empty()
    }

    /// Returns `true` if the rule ends the chain for packets that satisfy its conditions.
    pub(super) const fn ends_chain(&self) -> bool {
        !self.is_opaque && self.ending.is_some()
    }

    /// Returns the variables that the rule reads, except those about which nothing is known.
    pub(super) fn read_variables(&self) -> Vec<u32> {
        self.reads.clone()
    }

    /// Returns the number of comparisons that [`contains`](Self::contains) needs.
    pub(super) fn cost(&self, other: &Self) -> usize {
        let count = |relations: &[Vec<Conditions>]| relations.iter().map(Vec::len).sum::<usize>();
        1 + count(&self.relations) * count(&other.relations).max(1)
    }

    pub(super) fn domain(&self, variable: u32) -> Option<&Domain> {
        self.domains.get(&variable)
    }

    /// Returns `true` if all packets that match the other rule satisfy the conditions of this one.
    pub(super) fn contains(&self, other: &Self) -> bool {
        let are_loaded = self.loads.iter().all(|load| other.loads.contains(load));
        let has_bytes = |(base, end): (&u32, &u32)| other.ends.get(base).is_some_and(|e| e >= end);
        if self.is_opaque || !are_loaded || !self.ends.iter().all(has_bytes) {
            return false;
        }
        let holds = |conditions: &Conditions, narrowed: &HashMap<u32, Domain>| {
            conditions.iter().all(|(variable, constraint)| {
                let domain = narrowed.get(variable).or_else(|| other.domain(*variable));
                domain.is_some_and(|domain| domain.decides(constraint) == Some(true))
            })
        };
        let none = HashMap::new();
        if !holds(&self.conditions, &none) {
            return false;
        }
        self.relations.iter().all(|boxes| {
            if boxes.iter().any(|one| holds(one, &none)) {
                return true;
            }
            // Each alternative of the other rule lies within one of this rule.
            other.relations.iter().any(|others| {
                others.len() * boxes.len() <= MAX_PAIRS
                    && others.iter().all(|part| {
                        let narrowed = other.narrowed(part);
                        narrowed
                            .is_none_or(|narrowed| boxes.iter().any(|one| holds(one, &narrowed)))
                    })
            })
        })
    }

    /// Returns the domains of the variables in `conditions` under these conditions; `None` if they cannot hold.
    fn narrowed(&self, conditions: &Conditions) -> Option<HashMap<u32, Domain>> {
        let mut narrowed: HashMap<u32, Domain> = HashMap::new();
        for (variable, constraint) in conditions {
            let domain = narrowed.get(variable).or_else(|| self.domain(*variable));
            let domain = domain.cloned().unwrap_or_else(|| Domain::any(128));
            narrowed.insert(*variable, domain.with(constraint)?);
        }
        Some(narrowed)
    }

    /// Determines the domains.
    pub(super) fn finish(&mut self, variables: &Variables) {
        for (variable, constraint) in &self.conditions {
            let domain = self.domains.remove(variable);
            let domain = domain.unwrap_or_else(|| variables.domain(*variable));
            match domain.with(constraint) {
                Some(domain) => _ = self.domains.insert(*variable, domain),
                None => {
                    self.is_contradiction = true;
                    return;
                }
            }
        }
        for boxes in &self.relations {
            // A domain of the same width makes the alternatives comparable.
            for (variable, _) in boxes.iter().flatten() {
                let any = || variables.domain(*variable);
                self.domains.entry(*variable).or_insert_with(any);
            }
        }
        for boxes in std::mem::take(&mut self.relations) {
            let left = boxes
                .into_iter()
                .filter_map(|one| Some((self.narrowed(&one)?, one)));
            let (narrowed, left): (Vec<_>, Vec<_>) = left.unzip();
            let Some(first) = narrowed.first() else {
                self.is_contradiction = true;
                return;
            };
            for variable in first.keys() {
                let all = narrowed.iter().map(|one| one.get(variable));
                let Some(all) = all.collect::<Option<Vec<_>>>() else {
                    continue;
                };
                let ranges = all.iter().flat_map(|domain| domain.ranges().iter());
                let union = Constraint::within(ranges.collect());
                if let Some(domain) = self.domains[variable].with(&union) {
                    self.domains.insert(*variable, domain);
                }
            }
            self.relations.push(left);
        }
    }
}
