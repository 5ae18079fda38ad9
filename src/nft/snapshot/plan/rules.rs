//! Plans the changes of the rules of a chain: the fewest deletions and insertions, without touching the other rules. If
//! these take the kernel longer than writing all rules again, all are written again. In either case a rule that exists
//! before and after keeps its counters.

use std::collections::{HashMap, VecDeque};

use similar::DiffOp;

use crate::nft::RuleRef;
use crate::nft::is_cheaper_to_recreate;
use crate::nft::snapshot::compare::Compare;
use crate::nft::snapshot::rule_members::RuleObjects;
use crate::nft::snapshot::write::InsertPosition;
use crate::sequence;

/// The changes of the rules of a chain.
#[derive(Default)]
pub(super) struct Rules<'c, 'd> {
    /// Whether all rules are deleted at once.
    pub(super) flushes: bool,
    /// Handles of the rules that are deleted separately.
    pub(super) deleted: Vec<u64>,
    /// The rules to add, in the order of their operations.
    pub(super) added: Vec<Added<'c, 'd>>,
    /// Number of rules that remain.
    pub(super) kept: usize,
}

/// A rule to add.
#[derive(Clone, Copy)]
pub(super) struct Added<'c, 'd> {
    pub(super) source: Source<'c, 'd>,
    pub(super) position: InsertPosition,
}

/// The source of a rule.
#[derive(Clone, Copy)]
pub(super) enum Source<'c, 'd> {
    /// The same rule exists now, with its counters.
    Now(RuleRef<'c>),
    Desired(RuleRef<'d>),
}

/// The rules of one side, and the objects that belong to them.
#[derive(Clone, Copy)]
pub(super) struct Side<'r, 's> {
    pub(super) rules: &'r [RuleRef<'s>],
    pub(super) within: &'r RuleObjects<'s>,
}

/// The way to delete undesired rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletion {
    /// All at once: `current` has all rules of the chain.
    AtOnce,
    OneByOne,
    /// Not at all: new rules are inserted before them.
    Nothing,
}

/// Computes the changes that give a chain the desired rules. `renewed` returns whether a rule must be recreated even if
/// it is the same.
pub(super) fn changes<'c, 'd>(
    compare: Compare,
    current: Side<'_, 'c>,
    desired: Side<'_, 'd>,
    renewed: impl Fn(&RuleRef<'_>) -> bool,
    deletion: Deletion,
) -> Rules<'c, 'd> {
    let (now, wanted) = (current.rules, desired.rules);
    let equal = |now: &RuleRef<'_>, wanted: &RuleRef<'_>| match current.within.has_parts_of(now)
        || desired.within.has_parts_of(wanted)
    {
        true => current.within.key(compare, now) == desired.within.key(compare, wanted),
        false => compare.is_same_rule(now, wanted),
    };
    let same = |now: &RuleRef<'_>, wanted: &RuleRef<'_>| equal(now, wanted) && !renewed(now);
    let common = |now: &mut dyn Iterator<Item = &RuleRef<'_>>,
                  wanted: &mut dyn Iterator<Item = &RuleRef<'d>>| {
        now.zip(wanted)
            .take_while(|(now, wanted)| same(now, wanted))
            .count()
    };
    let first = common(&mut now.iter(), &mut wanted.iter());
    let (rest, rest_wanted) = (&now[first..], &wanted[first..]);
    let last = common(&mut rest.iter().rev(), &mut rest_wanted.iter().rev());
    let (middle, common_suffix) = rest.split_at(rest.len() - last);
    let wanted = &rest_wanted[..rest_wanted.len() - last];

    let mut changes = Rules {
        kept: first + last,
        ..Rules::default()
    };
    if middle.is_empty() && wanted.is_empty() {
        return changes;
    }
    // New rules are inserted before the next remaining rule, in order; without one, at the end.
    let position = |next_remaining: Option<&RuleRef<'_>>| match next_remaining {
        Some(rule) => InsertPosition::Before(rule.handle()),
        None => InsertPosition::End,
    };
    let numbers = match (middle, wanted) {
        // Usually one rule changed.
        ([now], [other]) if !equal(now, other) => RuleClasses::distinct(1, 1),
        _ => RuleClasses::of(
            compare,
            Side {
                rules: middle,
                ..current
            },
            Side {
                rules: wanted,
                ..desired
            },
        ),
    };
    let remaining_class: Vec<usize> = (middle.iter().zip(&numbers.now))
        .map(|(rule, number)| match renewed(rule) {
            true => usize::MAX, // matches no desired rule
            false => *number,
        })
        .collect();
    let operations = sequence::changes(&remaining_class, &numbers.wanted);
    let mut deleted_flags = vec![false; middle.len()];
    for operation in &operations {
        if !matches!(operation, DiffOp::Equal { .. }) {
            deleted_flags[operation.old_range()].fill(true);
        }
    }
    // In reverse order, so that the next remaining rule is known.
    let mut next_remaining = common_suffix.first();
    let mut next_remaining_at = first + middle.len();
    let mut added = Vec::new();
    // Number of rules that the kernel iterates over to find the referenced ones.
    let mut passed = 0_usize;
    for operation in operations.iter().rev() {
        let (old, new) = (operation.old_range(), operation.new_range());
        if let DiffOp::Equal { .. } = operation {
            changes.kept += old.len();
            next_remaining = middle.get(old.start);
            next_remaining_at = first + old.start;
            continue;
        }
        passed += old.clone().map(|at| first + at).sum::<usize>();
        passed += next_remaining.map_or(0, |_| new.len().saturating_mul(next_remaining_at));
        let following_rule = match deletion {
            Deletion::Nothing => {
                let before = deleted_flags[..old.end]
                    .iter()
                    .rposition(|deleted_flags| !deleted_flags);
                let at = before.map_or(0, |at| at + 1);
                middle.get(at).or(next_remaining)
            }
            _ => next_remaining,
        };
        changes
            .deleted
            .extend(middle[old].iter().map(RuleRef::handle));
        added.extend(new.rev().map(|number| (number, position(following_rule))));
    }
    added.reverse();
    if deletion == Deletion::Nothing {
        changes.kept += changes.deleted.len();
        changes.deleted.clear();
    }
    if deletion == Deletion::AtOnce && is_cheaper_to_recreate(passed, desired.rules.len()) {
        let numbered = numbers.sources(middle, wanted, |_| true);
        let there = |rules: &[RuleRef<'c>]| rules.iter().map(|rule| Source::Now(*rule)).collect();
        let (before, common_suffix): (Vec<_>, Vec<_>) =
            (there(&now[..first]), there(common_suffix));
        let sources = before.into_iter().chain(numbered).chain(common_suffix);
        let position = InsertPosition::End;
        return Rules {
            flushes: true,
            added: sources.map(|source| Added { source, position }).collect(),
            ..Rules::default()
        };
    }
    // A rule that is deleted and added is moved.
    let sources = numbers.sources(middle, wanted, |at| deleted_flags[at]);
    let added = added.into_iter().map(|(number, position)| Added {
        source: sources[number],
        position,
    });
    changes.added = added.collect();
    changes
}

/// Returns the rules of a recreated chain.
pub(super) fn recreated<'c, 'd>(
    compare: Compare,
    current: Side<'_, 'c>,
    desired: Side<'_, 'd>,
) -> Vec<Added<'c, 'd>> {
    let numbers = RuleClasses::of(compare, current, desired);
    let sources = numbers.sources(current.rules, desired.rules, |_| true);
    let position = InsertPosition::End;
    let added = sources.into_iter().map(|source| Added { source, position });
    added.collect()
}

/// Numbers of rules: equal rules have equal numbers.
struct RuleClasses {
    now: Vec<usize>,
    wanted: Vec<usize>,
}

impl RuleClasses {
    /// Numbers this many current and desired rules if no current rule equals a desired one.
    fn distinct(now: usize, wanted: usize) -> Self {
        Self {
            now: vec![usize::MAX; now],
            wanted: (0..wanted).collect(),
        }
    }

    fn of(compare: Compare, current: Side<'_, '_>, desired: Side<'_, '_>) -> Self {
        if current.rules.is_empty() || desired.rules.is_empty() {
            return Self::distinct(current.rules.len(), desired.rules.len());
        }
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        let wanted = desired.rules.iter().map(|rule| {
            let next = known.len();
            *known
                .entry(desired.within.key(compare, rule))
                .or_insert(next)
        });
        let wanted: Vec<usize> = wanted.collect();
        let now = current.rules.iter().map(|rule| {
            let number = known.get(&current.within.key(compare, rule));
            number.copied().unwrap_or(usize::MAX)
        });
        Self {
            now: now.collect(),
            wanted,
        }
    }

    /// Returns the source of each desired rule: an equal current rule that `is_free` accepts, each of which is used
    /// once.
    fn sources<'c, 'd>(
        &self,
        now: &[RuleRef<'c>],
        wanted: &[RuleRef<'d>],
        is_free: impl Fn(usize) -> bool,
    ) -> Vec<Source<'c, 'd>> {
        let mut free: HashMap<usize, VecDeque<RuleRef<'c>>> = HashMap::new();
        for (at, (rule, number)) in now.iter().zip(&self.now).enumerate() {
            if *number != usize::MAX && is_free(at) {
                free.entry(*number).or_default().push_back(*rule);
            }
        }
        let source = |(rule, number): (&RuleRef<'d>, &usize)| {
            let same = free.get_mut(number).and_then(VecDeque::pop_front);
            same.map_or(Source::Desired(*rule), Source::Now)
        };
        wanted.iter().zip(&self.wanted).map(source).collect()
    }
}
