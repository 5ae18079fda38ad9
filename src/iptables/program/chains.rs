//! The chains of a listing, and their rules.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::Program;
use crate::iptables::handle::OneChain;
use crate::iptables::{
    Backend, Builtin, Chain, ChainKind, Counters, Entry, Error, Iptables, NotExpressible, Policy,
    Tables, Target, builtins,
};

/// A rule, if iptables' language can express it.
pub(super) type Line = Result<Entry, NotExpressible>;

/// The part of a table that was read.
pub(super) enum Read {
    Whole(Tables),
    /// A chain of nf_tables, if it exists.
    One(BString, Option<OneChain>),
}

/// A chain to list.
pub(super) struct ListedChain<'r> {
    pub(super) name: BString,
    pub(super) kind: ChainKind,
    pub(super) references: u32,
    /// Whether iptables' text can express the chain.
    pub(super) expressible: bool,
    rules: Rules<'r>,
}

enum Rules<'r> {
    None,
    Of(&'r Tables, Chain<'r>),
    Read(&'r [Line]),
}

impl Read {
    /// Reads the chain, or the whole table.
    pub(super) fn new(
        iptables: &mut Iptables,
        program: &Program,
        table: &str,
        chain: Option<&BStr>,
    ) -> Result<Self, Error> {
        if let Some(chain) = chain.filter(|_| program.backend == Backend::Nft) {
            let one = iptables.one_chain(program.family, table, chain)?;
            return Ok(Self::One(chain.to_owned(), one));
        }
        Ok(Self::Whole(iptables.read(program.family, &[table])?))
    }

    /// Returns the chain of that name, or all of the table, in the real tool's order, including built-in ones
    /// that do not exist yet.
    pub(super) fn chains(&self, table: &str, only: Option<&BStr>) -> Vec<ListedChain<'_>> {
        let tables = match self {
            Self::One(name, None) => {
                let is_it = |known: &&Builtin| name == known.chain;
                let builtin = builtins(table).unwrap_or_default().iter().find(is_it);
                return builtin.into_iter().map(ListedChain::missing).collect();
            }
            Self::One(name, Some(one)) => {
                return vec![ListedChain {
                    name: name.clone(),
                    kind: one.kind,
                    references: one.references,
                    expressible: true,
                    rules: Rules::Read(&one.rules),
                }];
            }
            Self::Whole(tables) => tables,
        };
        let found = tables.table(table);
        let existing = found.map_or_else(Vec::new, |table| table.in_order(tables.backend()));
        let jumps = match tables.backend() {
            Backend::Nft => HashMap::new(),
            Backend::Legacy => jumps(tables, &existing),
        };
        let listed = |chain: &Chain<'_>| {
            let references = chain.references();
            references.unwrap_or_else(|| jumps.get(chain.name()).copied().unwrap_or_default())
        };
        let mut chains = Vec::new();
        let builtin = builtins(table).unwrap_or_default();
        let missing = builtin.iter().filter(|builtin| {
            let is_it = |chain: &Chain<'_>| chain.name() == builtin.chain;
            !existing.iter().any(is_it)
        });
        chains.extend(missing.map(ListedChain::missing));
        chains.extend(existing.iter().map(|chain| ListedChain {
            name: chain.name().to_owned(),
            kind: chain.kind(),
            references: listed(chain),
            expressible: chain.not_expressible().is_none(),
            rules: Rules::Of(tables, *chain),
        }));
        let place = |name: &BStr| builtin.iter().position(|builtin| name == builtin.chain);
        chains.sort_by_key(|chain| place(chain.name.as_bstr()).unwrap_or(usize::MAX));
        if let Some(only) = only {
            chains.retain(|chain| chain.name == only);
        }
        chains
    }
}

impl ListedChain<'_> {
    /// Creates a built-in chain that does not exist yet.
    fn missing(builtin: &Builtin) -> Self {
        Self {
            name: builtin.chain.into(),
            kind: ChainKind::Builtin {
                policy: Policy::Accept,
                counters: Counters::default(),
            },
            references: 0,
            expressible: true,
            rules: Rules::None,
        }
    }

    /// Returns the rules, in order.
    pub(super) fn lines(&self) -> Box<dyn Iterator<Item = Line> + '_> {
        match &self.rules {
            Rules::None => Box::new(std::iter::empty()),
            Rules::Read(lines) => Box::new(lines.iter().cloned()),
            Rules::Of(tables, chain) => Box::new(chain.rules().map(|rule| tables.entry(&rule))),
        }
    }
}

/// Counts the rules that jump to each chain.
fn jumps(tables: &Tables, chains: &[Chain<'_>]) -> HashMap<BString, u32> {
    let mut jumps = HashMap::new();
    for chain in chains {
        for rule in chain.rules() {
            if let Ok(entry) = tables.entry(&rule)
                && let Target::Jump(to) | Target::Goto(to) = entry.rule.target
            {
                *jumps.entry(to).or_default() += 1;
            }
        }
    }
    jumps
}
