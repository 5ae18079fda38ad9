//! Computes which rules to add and delete so that a chain is complete, for either backend.

use super::{Found, Item, Place, Wanted};

/// The changes that make one chain complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// The handles or positions of the rules to delete.
    pub(super) delete: Vec<u64>,
    /// Indexes of the wanted rules to add, in this order: each at the head, or at the end.
    pub(super) put: Vec<usize>,
}

impl Completion {
    pub(super) fn of(wanted: &Wanted, found: &Found) -> Self {
        let all = 0..wanted.rules.len();
        match wanted.place {
            Place::Head => {
                let is_there = |index: &usize| found.rules.iter().any(|(which, _)| which == index);
                Self {
                    delete: Vec::new(),
                    put: all.filter(|index| !is_there(index)).collect(),
                }
            }
            Place::End => {
                // The order of these rules matters: from the first one that is out of order, they
                // are deleted and added again.
                let mut standing = found.rules.iter();
                let in_place = all
                    .clone()
                    .take_while(|index| standing.any(|(which, _)| which == index))
                    .count();
                let out = found.rules.iter().filter(|(which, _)| *which >= in_place);
                Self {
                    delete: out.map(|(_, handle)| *handle).collect(),
                    put: (in_place..all.end).collect(),
                }
            }
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.put.is_empty()
    }
}

/// Lists what a chain lacks: the chain itself, and the rules to add.
pub(super) fn missing<'w>(
    wanted: &'w Wanted,
    made: bool,
    completion: &'w Completion,
) -> impl Iterator<Item = Item> + 'w {
    let chain = (made && !wanted.is_builtin()).then(|| wanted.item(None));
    let rules = completion.put.iter();
    chain
        .into_iter()
        .chain(rules.map(|&index| wanted.item(Some(&wanted.rules[index]))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainwright::iptables::{Family, Rule, Target};

    fn of(place: Place, standing: &[usize]) -> (Vec<u64>, Vec<usize>) {
        let wanted = Wanted {
            family: Family::Ipv4,
            table: "filter".into(),
            chain: "c".into(),
            place,
            rules: vec![Rule::new(Target::Accept); 3],
        };
        let found = Found {
            rules: standing.iter().copied().zip(100..).collect(),
            ..Found::default()
        };
        let completion = Completion::of(&wanted, &found);
        (completion.delete, completion.put)
    }

    #[test]
    fn at_the_end_what_is_out_of_its_order_is_made_anew() {
        assert_eq!(of(Place::End, &[0, 1, 2]), (vec![], vec![]));
        assert_eq!(of(Place::End, &[]), (vec![], vec![0, 1, 2]));
        assert_eq!(of(Place::End, &[0, 2]), (vec![101], vec![1, 2]));
        assert_eq!(of(Place::End, &[0, 2, 1]), (vec![101], vec![2]));
    }

    #[test]
    fn at_the_head_only_what_is_missing_comes() {
        assert_eq!(of(Place::Head, &[2, 0]), (vec![], vec![1]));
        assert_eq!(of(Place::Head, &[2, 0, 1, 1]), (vec![], vec![]));
    }
}
