//! What differs between the rules of a chain and those that it is to have: the fewest deletions and
//! insertions, with every other rule left where it is.

use std::collections::HashMap;

use similar::DiffOp;

use crate::nft::RuleRef;
use crate::nft::snapshot::compare::{self, Compare};
use crate::nft::snapshot::within::Within;
use crate::nft::snapshot::write::Place;
use crate::sequence;

/// What is to be done to the rules of a chain.
#[derive(Default)]
pub(super) struct Rules<'d> {
    /// Handles of the rules that go.
    pub(super) deleted: Vec<u64>,
    /// The rules that come, in the order in which they are to be sent.
    pub(super) added: Vec<(RuleRef<'d>, Place)>,
    /// How many stay.
    pub(super) kept: usize,
}

/// Rules of one side, and what belongs to them.
#[derive(Clone, Copy)]
pub(super) struct Side<'r, 's> {
    pub(super) rules: &'r [RuleRef<'s>],
    pub(super) within: &'r Within<'s>,
}

/// What is to be done so that a chain has the desired rules. `renewed` says that a rule is to be made
/// anew even if it is the same.
pub(super) fn changes<'d>(
    compare: Compare,
    current: Side<'_, '_>,
    desired: Side<'_, 'd>,
    renewed: impl Fn(&RuleRef<'_>) -> bool,
) -> Rules<'d> {
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
    // What comes before what stays goes in before it, in order; what comes last to the end.
    let place = |stays: Option<&RuleRef<'_>>| match stays {
        Some(rule) => Place::Before(rule.handle()),
        None => Place::End,
    };
    let numbers = numbered(
        compare,
        current.within,
        middle,
        desired.within,
        wanted,
        renewed,
    );
    let operations = sequence::changes(&numbers.0, &numbers.1);
    // From the last to the first: so the rule that stays behind each is known.
    let mut stays = behind.first();
    let mut added = Vec::new();
    for operation in operations.iter().rev() {
        let (old, new) = (operation.old_range(), operation.new_range());
        if let DiffOp::Equal { .. } = operation {
            changes.kept += old.len();
            stays = middle.get(old.start);
            continue;
        }
        changes
            .deleted
            .extend(middle[old].iter().map(RuleRef::handle));
        let rules = wanted[new].iter().rev();
        added.extend(rules.map(|rule| (*rule, place(stays))));
    }
    added.reverse();
    changes.added = added;
    changes
}

/// Numbers that are the same where the rules are.
fn numbered(
    compare: Compare,
    within: &Within<'_>,
    now: &[RuleRef<'_>],
    wanted_within: &Within<'_>,
    wanted: &[RuleRef<'_>],
    renewed: impl Fn(&RuleRef<'_>) -> bool,
) -> (Vec<usize>, Vec<usize>) {
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let wanted = wanted.iter().map(|rule| {
        let next = known.len();
        *known
            .entry(wanted_within.key(compare, rule))
            .or_insert(next)
    });
    let wanted: Vec<usize> = wanted.collect();
    let now = now.iter().map(|rule| match renewed(rule) {
        true => usize::MAX, // no rule that is wanted has it
        false => {
            let number = known.get(&within.key(compare, rule));
            number.copied().unwrap_or(usize::MAX)
        }
    });
    (now.collect(), wanted)
}
