//! Where rules stand in the chains in which a script counts them (`index N`), as its commands leave these chains one after
//! the other.

use std::collections::{BTreeSet, HashMap};

use bstr::BString;

use crate::parse::{Command, Fault, Object, Position, Rule, Verb, names_devices};
use crate::syntax::Place;
use chainwright::nft::{Family, Snapshot};

type Named = (Family, BString, BString);

fn in_table(family: Family, table: &[u8], chain: &[u8]) -> Named {
    (family, table.into(), chain.into())
}

/// The chains whose rules the commands count. A chain keeps its name until the transaction ends.
pub(crate) fn counted<'c>(commands: impl IntoIterator<Item = &'c Command>) -> BTreeSet<Named> {
    let chains = commands
        .into_iter()
        .filter_map(|command| match &command.object {
            Object::Rule(rule) if matches!(rule.position, Position::Index(_)) => {
                Some(in_table(rule.family, &rule.table, &rule.chain))
            }
            _ => None,
        });
    chains.collect()
}

/// What names a rule in the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// The handle that the kernel gave it.
    Handle(u64),
    /// The number that the transaction gives it.
    Number(u32),
}

/// A rule of a chain: one of the kernel's, or the one that a command makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    handle: Option<u64>,
    command: Option<usize>,
}

/// A chain's rules.
#[derive(Debug, Default)]
struct Counts {
    rules: Vec<Counted>,
    /// How many rules the commands flushed. In a chain that they emptied so, and left empty, any place is the same: nft
    /// takes the places of the rules that were there.
    flushed: usize,
}

/// What the commands' rules are told by, where they are counted; by the command's number.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The rule that a command refers to.
    refers: HashMap<usize, Option<At>>,
    /// The numbers of rules that later commands refer to.
    numbers: HashMap<usize, u32>,
}

impl Order {
    pub(super) fn of(commands: &[&Command], now: Option<&Snapshot>) -> Result<Self, Fault> {
        let mut chains: HashMap<Named, Counts> = counted(commands.iter().copied())
            .into_iter()
            .map(|name| {
                let chain = now.and_then(|now| now.chain(name.0, &*name.1, &*name.2));
                let rules = chain.into_iter().flat_map(|chain| chain.rules());
                let rules = rules.map(|rule| Counted {
                    handle: Some(rule.handle()),
                    command: None,
                });
                let rules = rules.collect();
                (name, Counts { rules, flushed: 0 })
            })
            .collect();
        let mut this = Self::default();
        if chains.is_empty() {
            return Ok(this);
        }
        for (index, command) in commands.iter().enumerate() {
            match &command.object {
                Object::Rule(rule) => {
                    let name = in_table(rule.family, &rule.table, &rule.chain);
                    if let Some(counts) = chains.get_mut(&name) {
                        this.rule(index, command, rule, counts)?;
                    }
                }
                object => forget(command.verb, object, now, &mut chains),
            }
        }
        Ok(this)
    }

    /// What names the rule that the command refers to, where its chain is counted.
    pub(super) fn refers(&self, command: usize) -> Option<Option<At>> {
        self.refers.get(&command).copied()
    }

    /// The number that the command's rule gets.
    pub(super) fn number(&self, command: usize) -> Option<u32> {
        self.numbers.get(&command).copied()
    }

    fn rule(
        &mut self,
        index: usize,
        command: &Command,
        rule: &Rule,
        counts: &mut Counts,
    ) -> Result<(), Fault> {
        let rules = &mut counts.rules;
        let found = match rule.position {
            Position::Any => None,
            Position::Handle(handle) => {
                let found = rules.iter().position(|rule| rule.handle == Some(handle));
                if found.is_none() {
                    return Ok(()); // the kernel refuses it, or it goes without being there
                }
                found
            }
            Position::Index(wanted) => {
                let at = usize::try_from(wanted).unwrap_or(usize::MAX);
                let is_empty = rules.is_empty() && at < counts.flushed;
                if at >= rules.len() && !is_empty {
                    return Err(lacking(command.place, wanted));
                }
                (!is_empty).then_some(at)
            }
        };
        let refers =
            found
                .and_then(|at| rules.get(at))
                .map(|rule| match (rule.command, rule.handle) {
                    (None, Some(handle)) => At::Handle(handle),
                    (made, _) => At::Number(self.numbered(made.unwrap_or(index))),
                });
        let is_given = matches!(rule.position, Position::Handle(_))
            && !matches!(command.verb, Verb::Add | Verb::Insert);
        if !is_given {
            self.refers.insert(index, refers);
        }
        let made = Counted {
            handle: None,
            command: Some(index),
        };
        match (command.verb, found) {
            (Verb::Delete | Verb::Destroy, Some(at)) => {
                rules.remove(at);
            }
            (Verb::Replace, Some(at)) => {
                // Whether it keeps its handle depends on the kernel: the text goes on to call it by that.
                if let Some(rule) = rules.get_mut(at) {
                    rule.command = Some(index);
                }
            }
            (Verb::Insert, at) => rules.insert(at.unwrap_or(0), made),
            (Verb::Add | Verb::Create, at) => {
                rules.insert(at.map_or(rules.len(), |at| at + 1), made);
            }
            _ => {}
        }
        Ok(())
    }

    fn numbered(&mut self, command: usize) -> u32 {
        let next = self.numbers.len() as u32 + 1; // memory does not hold more
        *self.numbers.entry(command).or_insert(next)
    }
}

fn lacking(place: Place, index: u64) -> Fault {
    let message = format!("the chain has no rule at index {index}: the first one is at 0");
    Fault::missing(place, message)
}

/// Forgets the rules that go with what a command flushes or deletes.
fn forget(
    verb: Verb,
    object: &Object,
    now: Option<&Snapshot>,
    chains: &mut HashMap<Named, Counts>,
) {
    let is_flush = verb == Verb::Flush;
    if !is_flush && !matches!(verb, Verb::Delete | Verb::Destroy) {
        return;
    }
    // Called by their names, or by their handles.
    let goes: Box<dyn Fn(&Named) -> bool> = match object {
        Object::Ruleset(family) => {
            let family = *family;
            Box::new(move |(of, ..)| family == Family::UNSPEC || *of == family)
        }
        Object::Table(table) => Box::new(|(family, name, _)| {
            let handle = || Some(now?.table(*family, &**name)?.table().handle());
            *family == table.family
                && match &table.name {
                    Some(table) => ***table == **name,
                    None => table.handle.is_some() && table.handle == handle(),
                }
        }),
        // With a block that names devices, only these go.
        Object::Chain(chain) if !names_devices(chain) => Box::new(|(family, table, name)| {
            let handle = || Some(now?.chain(*family, &**table, &**name)?.chain().handle());
            *family == chain.family
                && chain.table.as_deref().is_some_and(|of| **of == **table)
                && match &chain.name {
                    Some(chain) => ***chain == **name,
                    None => chain.handle.is_some() && chain.handle == handle(),
                }
        }),
        _ => return,
    };
    let is_ruleset = matches!(object, Object::Ruleset(_));
    for (_, counts) in chains.iter_mut().filter(|(name, _)| goes(name)) {
        let flushed = counts.rules.len() + counts.flushed;
        counts.rules.clear();
        counts.flushed = if is_flush && !is_ruleset { flushed } else { 0 };
    }
}
