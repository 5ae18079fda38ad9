//! The chain that a packet is in, and the current rule.

use std::iter::Enumerate;
use std::sync::Arc;

use bstr::BStr;

use super::field::Field;
use super::path_state::PathState;
use super::rules::{ChainOf, IndexedChain, IndexedEntries, LegacyTable, TableOfRules};
use chainwright::iptables::Backend;
use chainwright::legacy;
use chainwright::nft::SnapshotChain;
use chainwright::nft::expr::{ExpressionIter, Expressions, PayloadBase};

/// Chain on the call stack.
#[derive(Debug, Clone)]
pub(super) struct Frame<'s> {
    /// Number of jumps and gotos that led here.
    pub(super) depth: usize,
    /// Number of the last rule evaluated, from 1; 0 before the first.
    pub(super) taken: usize,
    chain: FrameChain<'s>,
}

#[derive(Debug, Clone)]
enum FrameChain<'s> {
    Nft {
        table: Arc<TableOfRules<'s>>,
        chain: SnapshotChain<'s>,
        name: &'s BStr,
        long: Option<Arc<IndexedChain<'s>>>,
    },
    Legacy {
        table: Arc<LegacyTable<'s>>,
        chain: legacy::ChainRef<'s>,
        rules: legacy::Rules<'s>,
        long: Option<Arc<IndexedEntries<'s>>>,
    },
}

/// The current rule.
#[derive(Debug, Clone)]
pub(super) enum Rule<'s> {
    Nft {
        handle: u64,
        /// Remaining expressions with their indexes.
        rest: Enumerate<ExpressionIter<'s>>,
    },
    Legacy {
        rule: legacy::RuleRef<'s>,
        /// Number of evaluated parts: the header, then the matches.
        evaluated: usize,
    },
}

static NO_EXPRESSIONS: Expressions<'static> = Expressions::new();

impl<'s> Frame<'s> {
    /// Creates a frame at the start of a chain.
    pub(super) fn of(chain: &ChainOf<'s>, depth: usize) -> Self {
        let chain = match chain {
            ChainOf::Nft {
                table, chain, name, ..
            } => FrameChain::Nft {
                table: table.clone(),
                chain: *chain,
                name,
                long: table.long(name, chain),
            },
            ChainOf::Legacy { table, chain } => FrameChain::Legacy {
                table: table.clone(),
                chain: *chain,
                rules: chain.rules(),
                long: table.long(chain),
            },
        };
        Self {
            depth,
            taken: 0,
            chain,
        }
    }

    /// Returns the next rule that may match the packet.
    pub(super) fn next_rule(&mut self, path_state: &mut PathState) -> Option<Rule<'s>> {
        match &mut self.chain {
            FrameChain::Nft { chain, long, .. } => {
                let index = match long {
                    Some(long) => path_state.next_of(long, self.taken)?,
                    None => self.taken,
                };
                let rule = chain.rule(index)?;
                self.taken = index + 1;
                Some(Rule::Nft {
                    handle: rule.handle(),
                    rest: rule
                        .expressions()
                        .unwrap_or_else(|| NO_EXPRESSIONS.iter())
                        .enumerate(),
                })
            }
            FrameChain::Legacy { rules, long, .. } => {
                let (index, rule) = match long {
                    Some(long) => long.next(path_state.number(Field::Destination), self.taken)?,
                    None => (self.taken, rules.next()?),
                };
                self.taken = index + 1;
                Some(Rule::Legacy { rule, evaluated: 0 })
            }
        }
    }

    /// Returns the table, if it belongs to nf_tables.
    pub(super) const fn nft_table(&self) -> Option<&Arc<TableOfRules<'s>>> {
        match &self.chain {
            FrameChain::Nft { table, .. } => Some(table),
            FrameChain::Legacy { .. } => None,
        }
    }

    /// Returns the table, if it is a legacy table.
    pub(super) const fn legacy_table(&self) -> Option<&Arc<LegacyTable<'s>>> {
        match &self.chain {
            FrameChain::Legacy { table, .. } => Some(table),
            FrameChain::Nft { .. } => None,
        }
    }

    /// Returns backend, family, table and chain.
    pub(super) fn names(&self) -> (Backend, &'static str, &BStr, &BStr) {
        match &self.chain {
            FrameChain::Nft { table, name, .. } => (Backend::Nft, table.family, table.name, name),
            FrameChain::Legacy { table, chain, .. } => {
                let family = match table.table.family() {
                    legacy::Family::Ipv4 => "ip",
                    legacy::Family::Ipv6 => "ip6",
                    legacy::Family::Arp => "arp",
                };
                let name = table.table.name().as_bstr();
                (Backend::Legacy, family, name, chain.name())
            }
        }
    }
}

impl PathState {
    /// Returns the position of the first rule in a long chain, from `from` on, that may match the
    /// packet.
    fn next_of(&mut self, chain: &IndexedChain<'_>, from: usize) -> Option<usize> {
        let part = self.header(PayloadBase::NETWORK, chain.offset, chain.length);
        let Ok(Some(value)) = part else {
            return Some(from); // evaluate every rule
        };
        match self.known(&value) {
            Some(number) => {
                let bytes = number.to_be_bytes();
                let value = &bytes[16 - chain.length as usize..];
                chain.next(value, from)
            }
            None => Some(from),
        }
    }
}

impl ChainOf<'_> {
    pub(super) fn name(&self) -> &BStr {
        match self {
            Self::Nft { name, .. } => name,
            Self::Legacy { chain, .. } => chain.name(),
        }
    }

    /// Returns `true` if the policy of a base chain is drop.
    pub(super) fn drops(&self) -> bool {
        match self {
            Self::Nft { drops, .. } => *drops,
            Self::Legacy { chain, .. } => chain
                .builtin()
                .is_some_and(|builtin| builtin.policy == legacy::Policy::Drop),
        }
    }
}
