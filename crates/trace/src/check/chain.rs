//! Comparison of the rules of a chain.

use std::collections::HashMap;

use bstr::{BString, ByteSlice};
use chainwright::nft::expr::{ExpressionView, MetaKey, ObjectType};
use chainwright::nft::{RuleRef, SetFlags, SnapshotChain};

use super::finding::Fault;
use super::meaning::Meaning;
use super::reader::Reader;
use super::table::{Contents, TableContext};
use super::variables::Variables;
use crate::value_set::{Constraint, ones};

/// Maximum number of comparisons in a chain for each rule, on average, and in addition for the whole chain.
const COMPARISONS_PER_RULE: usize = 64;
const COMPARISONS: usize = 1 << 20;

/// Rules with conditions on the same bits of the same variables.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Group {
    /// Variables with a mask: the bits of the mask have one value.
    bits: Vec<(u32, u128)>,
    /// Variables with other conditions.
    others: Vec<u32>,
}

/// Rules of a group, by the values of the bits.
type Members = HashMap<Vec<u128>, Vec<usize>>;

/// Rules of a chain that end the chain for some packets.
#[derive(Debug, Default)]
struct Ends {
    /// Number and meaning of each rule.
    rules: Vec<(usize, Meaning)>,
    groups: HashMap<Group, Members>,
    comparisons: usize,
}

impl Ends {
    fn add(&mut self, number: usize, meaning: Meaning, variables: &Variables) {
        let mut masks: HashMap<u32, Option<(u128, u128)>> = HashMap::new();
        for (variable, constraint) in &meaning.conditions {
            let bits = as_bits(constraint, variables.bits(*variable));
            let mask = masks.entry(*variable).or_insert(bits);
            if *mask != bits {
                *mask = None;
            }
        }
        let (mut bits, mut others): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        for (variable, mask) in masks {
            match mask {
                Some((mask, value)) => bits.push((variable, mask, value)),
                None => others.push(variable),
            }
        }
        bits.sort_unstable();
        others.sort_unstable();
        let values = bits.iter().map(|(.., value)| *value).collect();
        let bits = bits.iter().map(|(variable, mask, _)| (*variable, *mask));
        let group = Group {
            bits: bits.collect(),
            others,
        };
        let members = self.groups.entry(group).or_default();
        members.entry(values).or_default().push(self.rules.len());
        self.rules.push((number, meaning));
    }

    /// Forgets rules with conditions on data that have changed since: no later rule reads the same data.
    fn retain_current(&mut self, variables: &Variables) {
        self.groups.retain(|group, _| {
            let bits = group.bits.iter().map(|(variable, _)| variable);
            bits.chain(&group.others)
                .all(|variable| variables.is_current(*variable))
        });
    }

    /// Returns the first rule that matches all packets of this one.
    fn containing(&mut self, meaning: &Meaning) -> Option<usize> {
        let mut first: Option<usize> = None;
        for (group, members) in &self.groups {
            self.comparisons += 1;
            let known = group.bits.iter().map(|(variable, mask)| {
                let domain = meaning.domain(*variable)?;
                let (known, value) = domain.known();
                let (low, high) = domain.ranges().ends()?;
                // The ends of the ranges also have known bits: those above the first different bit.
                let same = !ones(128 - (low ^ high).leading_zeros());
                let value = value & known | low & same;
                (mask & !(known | same) == 0).then_some(value & mask)
            });
            let Some(values) = known.collect::<Option<Vec<u128>>>() else {
                continue;
            };
            let has_all = |others: &[u32]| others.iter().all(|one| meaning.domain(*one).is_some());
            if !has_all(&group.others) {
                continue;
            }
            for index in members.get(&values).into_iter().flatten() {
                if first.is_some_and(|first| first <= *index) {
                    break;
                }
                let (_, earlier) = &self.rules[*index];
                self.comparisons += earlier.cost(meaning);
                if earlier.contains(meaning) {
                    first = Some(*index);
                    break;
                }
            }
        }
        first
    }
}

/// Returns the mask and the value of the bits that a constraint fixes, if it fixes bits and nothing else.
fn as_bits(constraint: &Constraint, bits: u32) -> Option<(u128, u128)> {
    match constraint {
        Constraint::Bits { mask, value } => Some((*mask, value & mask)),
        Constraint::NotBits { .. } => None,
        Constraint::Within(ranges) => {
            let [(low, high)] = ranges[..] else {
                return None;
            };
            let below = low ^ high;
            let is_prefix = below & below.wrapping_add(1) == 0 && low & below == 0;
            let mask = !below & ones(bits);
            is_prefix.then_some((mask, low & mask))
        }
    }
}

/// Examines the rules of a chain. Calls `report` with the number of a rule, from 1, its handle, and its fault.
pub(super) fn examine<'s>(
    table: &TableContext<'s>,
    chain: &SnapshotChain<'s>,
    report: &mut dyn FnMut(usize, &RuleRef<'s>, Fault),
) {
    let mut variables = Variables::default();
    let mut ends = Ends::default();
    let mut texts: HashMap<(BString, Vec<u32>), usize> = HashMap::new();
    let count = chain.rules().len();
    let budget = COMPARISONS + COMPARISONS_PER_RULE * count;
    let mut is_partial = false;
    for (number, rule) in (1..).zip(chain.rules()) {
        let meaning = Reader::read(table, &mut variables, &rule);
        let mut is_dead = false;
        let text = text(table, &rule);
        let mut add = |fault| report(number, &rule, fault);
        let seen = text.map(|text| {
            let key = (text, meaning.read_variables());
            *texts.entry(key).or_insert(number)
        });
        if meaning.is_contradiction && !meaning.acts_early {
            add(Fault::Contradiction);
            is_dead = true;
        } else if let Some(of) = seen.filter(|of| *of != number) {
            add(Fault::Duplicate { of });
            is_dead = meaning.ends_chain();
        } else if ends.comparisons > budget {
            if !is_partial {
                add(Fault::PartlyCompared);
            }
            is_partial = true;
        } else if let Some(index) = ends.containing(&meaning).filter(|_| !meaning.acts_early) {
            let (by, earlier) = &ends.rules[index];
            let has_same_verdict = earlier.ending == meaning.ending;
            add(match has_same_verdict && meaning.contains(earlier) {
                true => Fault::Duplicate { of: *by },
                false => Fault::Shadowed {
                    by: *by,
                    has_same_verdict,
                },
            });
            is_dead = true;
        }
        if is_dead {
            continue;
        }
        let writes = table.writes(&rule);
        if meaning.is_catch_all() {
            if let Some(next) = chain.rule(number) {
                let fault = Fault::Unreachable {
                    catch_all: number,
                    rules: count - number,
                };
                report(number + 1, &next, fault);
            }
            return;
        }
        if meaning.ends_chain() {
            ends.add(number, meaning, &variables);
        }
        if !writes.is_empty() {
            variables.change(&writes);
            ends.retain_current(&variables);
        }
    }
}

/// Returns a text that two rules with the same conditions and statements have in common, without counters and comments;
/// `None` if a repetition of the rule has another effect: limits, random numbers, changes of sets, logs, copies.
fn text(table: &TableContext<'_>, rule: &RuleRef<'_>) -> Option<BString> {
    let mut text = BString::default();
    for expression in rule.expressions().into_iter().flatten() {
        let expression = expression.ok()?;
        match expression.view().ok()? {
            ExpressionView::Counter(_) | ExpressionView::Last(_) => continue,
            ExpressionView::Match(found) if found.name()? == "comment" => continue,
            ExpressionView::Limit(_)
            | ExpressionView::Quota(_)
            | ExpressionView::Connlimit(_)
            | ExpressionView::Numgen(_)
            | ExpressionView::Dynset(_)
            | ExpressionView::Log(_)
            | ExpressionView::Dup(_)
            | ExpressionView::Match(_)
            | ExpressionView::Target(_)
            | ExpressionView::Opaque(_) => return None,
            ExpressionView::Objref(objref) if objref.imm_type() != Some(ObjectType::COUNTER) => {
                return None;
            }
            ExpressionView::Meta(meta) if meta.key() == Some(MetaKey::PRANDOM) => return None,
            ExpressionView::Lookup(lookup) => {
                let name = lookup.set()?;
                let set = table.set(name)?;
                if matches!(set.contents, Contents::Changing) {
                    return None;
                }
                let is_anonymous = table
                    .table
                    .set(name)
                    .and_then(|set| set.set().flags())
                    .is_some_and(|flags| flags.contains(SetFlags::ANONYMOUS));
                if let (Contents::Constant { text: contents }, true) = (&set.contents, is_anonymous)
                {
                    let registers = (lookup.sreg(), lookup.dreg(), lookup.flags());
                    text.extend_from_slice(format!("{registers:?}").as_bytes());
                    text.extend_from_slice(contents);
                    continue;
                }
            }
            _ => {}
        }
        text.extend_from_slice(&(expression.raw.len() as u32).to_ne_bytes());
        text.extend_from_slice(expression.raw.as_bytes());
    }
    Some(text)
}
