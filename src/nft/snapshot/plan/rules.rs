//! What differs between the rules of a chain and those that it is to have: the fewest deletions and
//! insertions, with every other rule left where it is. Where these would take the kernel longer than to write all rules
//! anew, all are written anew. A rule that is there before and after goes on counting in either case.

use std::collections::{HashMap, VecDeque};

use similar::DiffOp;

use crate::nft::RuleRef;
use crate::nft::is_cheaper_anew;
use crate::nft::snapshot::compare::{self, Compare};
use crate::nft::snapshot::within::Within;
use crate::nft::snapshot::write::Place;
use crate::sequence;

/// What is to be done to the rules of a chain.
#[derive(Default)]
pub(super) struct Rules<'c, 'd> {
    /// Whether all rules go at once.
    pub(super) flushes: bool,
    /// Handles of the rules that go one by one.
    pub(super) deleted: Vec<u64>,
    /// The rules that come, in the order in which they are to be sent.
    pub(super) added: Vec<Added<'c, 'd>>,
    /// How many stay.
    pub(super) kept: usize,
}

/// A rule that comes.
#[derive(Clone, Copy)]
pub(super) struct Added<'c, 'd> {
    pub(super) source: Source<'c, 'd>,
    pub(super) place: Place,
}

/// Where a rule is copied from.
#[derive(Clone, Copy)]
pub(super) enum Source<'c, 'd> {
    /// The same rule is there now, with its counters.
    Now(RuleRef<'c>),
    Desired(RuleRef<'d>),
}

/// Rules of one side, and what belongs to them.
#[derive(Clone, Copy)]
pub(super) struct Side<'r, 's> {
    pub(super) rules: &'r [RuleRef<'s>],
    pub(super) within: &'r Within<'s>,
}

/// How rules go that are not desired.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    /// All rules of the chain are in `current`, and may go at once.
    AtOnce,
    OneByOne,
    /// None does: what comes stands before them.
    Nothing,
}

/// What is to be done so that a chain has the desired rules. `renewed` says that a rule is to be made anew even if it is
/// the same.
pub(super) fn changes<'c, 'd>(
    compare: Compare,
    current: Side<'_, 'c>,
    desired: Side<'_, 'd>,
    renewed: impl Fn(&RuleRef<'_>) -> bool,
    goes: Goes,
) -> Rules<'c, 'd> {
    let (now, wanted) = (current.rules, desired.rules);
    let plain = current.within.is_empty() && desired.within.is_empty();
    let same = |now: &RuleRef<'_>, wanted: &RuleRef<'_>| {
        let equal = match plain && compare::is_same_rule(now, wanted) {
            true => true,
            false => current.within.key(compare, now) == desired.within.key(compare, wanted),
        };
        equal && !renewed(now)
    };
    let common = |now: &mut dyn Iterator<Item = &RuleRef<'_>>,
                  wanted: &mut dyn Iterator<Item = &RuleRef<'d>>| {
        now.zip(wanted)
            .take_while(|(now, wanted)| same(now, wanted))
            .count()
    };
    let first = common(&mut now.iter(), &mut wanted.iter());
    let (rest, rest_wanted) = (&now[first..], &wanted[first..]);
    let last = common(&mut rest.iter().rev(), &mut rest_wanted.iter().rev());
    let (middle, behind) = rest.split_at(rest.len() - last);
    let wanted = &rest_wanted[..rest_wanted.len() - last];

    let mut changes = Rules {
        kept: first + last,
        ..Rules::default()
    };
    if middle.is_empty() && wanted.is_empty() {
        return changes;
    }
    // What comes before what stays goes in before it, in order; what comes last to the end.
    let place = |stays: Option<&RuleRef<'_>>| match stays {
        Some(rule) => Place::Before(rule.handle()),
        None => Place::End,
    };
    let numbers = Numbers::of(
        compare,
        Side {
            rules: middle,
            ..current
        },
        Side {
            rules: wanted,
            ..desired
        },
    );
    let stays_as: Vec<usize> = (middle.iter().zip(&numbers.now))
        .map(|(rule, number)| match renewed(rule) {
            true => usize::MAX, // no rule that is wanted has it
            false => *number,
        })
        .collect();
    let operations = sequence::changes(&stays_as, &numbers.wanted);
    let mut gone = vec![false; middle.len()];
    for operation in &operations {
        if !matches!(operation, DiffOp::Equal { .. }) {
            gone[operation.old_range()].fill(true);
        }
    }
    // From the last to the first: so the rule that stays behind each is known.
    let mut stays = behind.first();
    let mut stays_at = first + middle.len();
    let mut added = Vec::new();
    // How many rules the kernel passes to find those that are named.
    let mut passed = 0_usize;
    for operation in operations.iter().rev() {
        let (old, new) = (operation.old_range(), operation.new_range());
        if let DiffOp::Equal { .. } = operation {
            changes.kept += old.len();
            stays = middle.get(old.start);
            stays_at = first + old.start;
            continue;
        }
        passed += old.clone().map(|at| first + at).sum::<usize>();
        passed += stays.map_or(0, |_| new.len().saturating_mul(stays_at));
        let behind_it = match goes {
            Goes::Nothing => {
                let before = gone[..old.end].iter().rposition(|gone| !gone);
                let at = before.map_or(0, |at| at + 1);
                middle.get(at).or(stays)
            }
            _ => stays,
        };
        changes
            .deleted
            .extend(middle[old].iter().map(RuleRef::handle));
        added.extend(new.rev().map(|number| (number, place(behind_it))));
    }
    added.reverse();
    if goes == Goes::Nothing {
        changes.kept += changes.deleted.len();
        changes.deleted.clear();
    }
    if goes == Goes::AtOnce && is_cheaper_anew(passed, desired.rules.len()) {
        let numbered = numbers.sources(middle, wanted, |_| true);
        let there = |rules: &[RuleRef<'c>]| rules.iter().map(|rule| Source::Now(*rule)).collect();
        let (before, behind): (Vec<_>, Vec<_>) = (there(&now[..first]), there(behind));
        let sources = before.into_iter().chain(numbered).chain(behind);
        let place = Place::End;
        return Rules {
            flushes: true,
            added: sources.map(|source| Added { source, place }).collect(),
            ..Rules::default()
        };
    }
    // A rule that goes and comes is moved.
    let sources = numbers.sources(middle, wanted, |at| gone[at]);
    let added = added.into_iter().map(|(number, place)| Added {
        source: sources[number],
        place,
    });
    changes.added = added.collect();
    changes
}

/// The rules of a chain that is made anew.
pub(super) fn anew<'c, 'd>(
    compare: Compare,
    current: Side<'_, 'c>,
    desired: Side<'_, 'd>,
) -> Vec<Added<'c, 'd>> {
    let sources = match current.rules.is_empty() {
        true => desired
            .rules
            .iter()
            .map(|rule| Source::Desired(*rule))
            .collect(),
        false => {
            let numbers = Numbers::of(compare, current, desired);
            numbers.sources(current.rules, desired.rules, |_| true)
        }
    };
    let place = Place::End;
    let added = sources.into_iter().map(|source| Added { source, place });
    added.collect()
}

/// Numbers that are the same where the rules are.
struct Numbers {
    now: Vec<usize>,
    wanted: Vec<usize>,
}

impl Numbers {
    fn of(compare: Compare, current: Side<'_, '_>, desired: Side<'_, '_>) -> Self {
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

    /// Where each of the desired rules is copied from: from the same one now, of those that `is_free` admits, each of
    /// which is copied once.
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
