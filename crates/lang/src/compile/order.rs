//! Tracks rule positions in chains in which a script refers to rules by index (`index N`), as its commands change
//! them.

use std::collections::{BTreeSet, HashMap};

use bstr::BString;

use crate::parse::{Command, Diagnostic, Object, Position, Rule, Verb, names_devices};
use crate::syntax::Span;
use chainwright::nft::{Family, Snapshot};

type Named = (Family, BString, BString);

fn in_table(family: Family, table: &[u8], chain: &[u8]) -> Named {
    (family, table.into(), chain.into())
}

/// Returns the chains in which the commands refer to rules by index. Chains keep their names until the end of a
/// transaction.
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

/// Reference to a rule in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// Handle assigned by the kernel.
    Handle(u64),
    /// ID within the transaction.
    Number(u32),
}

/// Rule of a chain: an existing one or the one that a command creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    handle: Option<u64>,
    command: Option<usize>,
}

/// Rules of a chain.
#[derive(Debug, Default)]
struct Counts {
    rules: Vec<Counted>,
    /// Number of rules that commands flushed. In a chain that was flushed and is still empty, nft accepts the indexes
    /// of the flushed rules.
    flushed: usize,
}

/// References to rules and IDs of rules, by command index.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Rules that commands refer to.
    refers: HashMap<usize, Option<At>>,
    /// IDs of rules that later commands refer to.
    numbers: HashMap<usize, u32>,
}

impl Order {
    pub(crate) fn of(commands: &[&Command], now: Option<&Snapshot>) -> Result<Self, Diagnostic> {
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

    /// Returns the rule that a command refers to, if positions in its chain are tracked.
    pub(crate) fn refers(&self, command: usize) -> Option<Option<At>> {
        self.refers.get(&command).copied()
    }

    /// Returns the ID of the rule that a command creates.
    pub(crate) fn number(&self, command: usize) -> Option<u32> {
        self.numbers.get(&command).copied()
    }

    fn rule(
        &mut self,
        index: usize,
        command: &Command,
        rule: &Rule,
        counts: &mut Counts,
    ) -> Result<(), Diagnostic> {
        let rules = &mut counts.rules;
        let found = match rule.position {
            Position::Any => None,
            Position::Handle(handle) => {
                let found = rules.iter().position(|rule| rule.handle == Some(handle));
                if found.is_none() {
                    return Ok(()); // the kernel rejects it, or ignores a missing rule
                }
                found
            }
            Position::Index(wanted) => {
                let at = usize::try_from(wanted).unwrap_or(usize::MAX);
                let is_empty = rules.is_empty() && at < counts.flushed;
                if at >= rules.len() && !is_empty {
                    return Err(no_such_rule(command.span, wanted));
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
                // The kernel version determines whether the handle stays valid; later commands still refer to it.
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

fn no_such_rule(span: Span, index: u64) -> Diagnostic {
    let message = format!("the chain has no rule at index {index} (indexes start at 0)");
    Diagnostic::missing(span, message)
}

/// Removes the rules that a command flushes or deletes.
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
    // By name or by handle.
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
        // A block with devices only deletes these devices.
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
