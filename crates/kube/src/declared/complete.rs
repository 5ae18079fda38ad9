//! Computes which rules to add and delete so that a chain is complete, for either backend.

use super::{Found, InsertPosition, Item, RequiredChain};

/// The changes that make one chain complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// The handles or positions of the rules to delete.
    pub(super) delete: Vec<u64>,
    /// Indexes of the declared rules to add, in this order: each at the head, or at the end.
    pub(super) put: Vec<usize>,
}

impl Completion {
    pub(super) fn of(wanted: &RequiredChain, found: &Found) -> Self {
        let all = 0..wanted.rules.len();
        match wanted.position {
            InsertPosition::Head => {
                let is_present =
                    |index: &usize| found.rules.iter().any(|(which, _)| which == index);
                Self {
                    delete: Vec::new(),
                    put: all.filter(|index| !is_present(index)).collect(),
                }
            }
            InsertPosition::End => {
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

/// Lists the missing parts of a chain: the chain itself, and the rules to add.
pub(super) fn missing<'w>(
    wanted: &'w RequiredChain,
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

    fn of(position: InsertPosition, standing: &[usize]) -> (Vec<u64>, Vec<usize>) {
        let wanted = RequiredChain {
            family: Family::Ipv4,
            table: "filter".into(),
            chain: "c".into(),
            position,
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
    fn end_rewrites_rules_out_of_order() {
        assert_eq!(of(InsertPosition::End, &[0, 1, 2]), (vec![], vec![]));
        assert_eq!(of(InsertPosition::End, &[]), (vec![], vec![0, 1, 2]));
        assert_eq!(of(InsertPosition::End, &[0, 2]), (vec![101], vec![1, 2]));
        assert_eq!(of(InsertPosition::End, &[0, 2, 1]), (vec![101], vec![2]));
    }

    #[test]
    fn head_inserts_only_missing_rules() {
        assert_eq!(of(InsertPosition::Head, &[2, 0]), (vec![], vec![1]));
        assert_eq!(of(InsertPosition::Head, &[2, 0, 1, 1]), (vec![], vec![]));
    }
}
