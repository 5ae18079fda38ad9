//! Tables as they were read, whichever backend they live in.

use std::fmt;

use bstr::{BStr, ByteSlice};

use super::builtin::{self, builtin, builtins};
use super::sets::Sets;
use super::{Backend, Beyond, Counters, Entry, Policy};
use crate::legacy;
use crate::nft::{self, Snapshot, SnapshotChain, SnapshotTable};
use crate::xt::Family;

/// The tables of one family in one backend, as they were at one moment.
///
/// Their bytes are as the kernel sent them; rules are decoded when they are asked for.
pub struct Tables {
    family: Family,
    source: Source,
    /// For the names of sets.
    pub(super) sets: Sets,
}

enum Source {
    /// A snapshot, and the iptables tables in it.
    Nft(Box<Snapshot>),
    Legacy(Vec<legacy::Table>),
}

impl Tables {
    /// The iptables tables of a family in a snapshot.
    pub(super) fn of_snapshot(family: Family, snapshot: Snapshot, sets: Sets) -> Self {
        Self {
            family,
            source: Source::Nft(Box::new(snapshot)),
            sets,
        }
    }

    /// Legacy tables of a family.
    pub(super) fn of_legacy(family: Family, tables: Vec<legacy::Table>, sets: Sets) -> Self {
        Self {
            family,
            source: Source::Legacy(tables),
            sets,
        }
    }

    /// The family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Where the tables live.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        match self.source {
            Source::Nft(_) => Backend::Nft,
            Source::Legacy(_) => Backend::Legacy,
        }
    }

    /// The tables: those of nf_tables in iptables-nft's order, legacy ones in the kernel's.
    #[must_use]
    pub fn iter(&self) -> Vec<Table<'_>> {
        match &self.source {
            Source::Nft(_) => builtin::NAMES
                .iter()
                .filter_map(|name| self.table(name))
                .collect(),
            Source::Legacy(tables) => tables
                .iter()
                .map(|table| Table::new(self.family, Inner::Legacy(table)))
                .collect(),
        }
    }

    /// The table of that name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table<'_>> {
        let inner = match &self.source {
            Source::Nft(snapshot) => {
                builtins(name)?; // other tables are none of iptables'
                let family = nft::Family::from(self.family);
                Inner::Nft(snapshot.table(family, name)?)
            }
            Source::Legacy(tables) => {
                Inner::Legacy(tables.iter().find(|table| *table.name() == name)?)
            }
        };
        Some(Table::new(self.family, inner))
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("family", &self.family)
            .field("backend", &self.backend())
            .finish_non_exhaustive()
    }
}

/// A table.
#[derive(Clone, Copy)]
pub struct Table<'t> {
    family: Family,
    inner: Inner<'t>,
}

#[derive(Clone, Copy)]
enum Inner<'t> {
    Nft(SnapshotTable<'t>),
    Legacy(&'t legacy::Table),
}

impl<'t> Table<'t> {
    const fn new(family: Family, inner: Inner<'t>) -> Self {
        Self { family, inner }
    }

    /// The family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// The name: `filter`, `nat`, …
    #[must_use]
    pub fn name(&self) -> &'t BStr {
        match self.inner {
            Inner::Nft(table) => table.table().name(),
            Inner::Legacy(table) => table.name().as_bstr(),
        }
    }

    /// The chains in the kernel's order.
    pub fn chains(&self) -> impl Iterator<Item = Chain<'t>> + use<'t> {
        let name = self.name();
        let (nft, legacy) = match self.inner {
            Inner::Nft(table) => (Some(table.chains()), None),
            Inner::Legacy(table) => (None, Some(table.chains())),
        };
        let nft = nft.into_iter().flatten();
        nft.map(move |chain| Chain::of_nft(name, chain))
            .chain(legacy.into_iter().flatten().map(Chain::of_legacy))
    }

    /// The chain of that name.
    #[must_use]
    pub fn chain(&self, name: impl AsRef<[u8]>) -> Option<Chain<'t>> {
        match self.inner {
            Inner::Nft(table) => Some(Chain::of_nft(self.name(), table.chain(name)?)),
            Inner::Legacy(table) => Some(Chain::of_legacy(table.chain(name)?)),
        }
    }
}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("family", &self.family)
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// What kind of chain it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainKind {
    /// One that packets enter by themselves.
    Builtin {
        /// What happens to a packet that no rule has decided on.
        policy: Policy,
        /// How many those were.
        counters: Counters,
    },
    /// One that is jumped to.
    User,
    /// In nf_tables: one that packets enter in another place than a built-in chain's. iptables does
    /// not know such chains.
    Foreign,
}

/// A chain of a table.
#[derive(Clone, Copy)]
pub struct Chain<'t> {
    kind: ChainKind,
    inner: InnerChain<'t>,
}

#[derive(Clone, Copy)]
enum InnerChain<'t> {
    Nft(SnapshotChain<'t>),
    Legacy(legacy::ChainRef<'t>),
}

impl<'t> Chain<'t> {
    fn of_nft(table: &BStr, inner: SnapshotChain<'t>) -> Self {
        let view = inner.chain();
        let known = |name: &BStr| builtin(table.to_str().ok()?, name.to_str().ok()?);
        let kind = match (known(view.name()), view.hook()) {
            (None, None) => ChainKind::User,
            (Some(builtin), Some(_)) if builtin.is(&view) => ChainKind::Builtin {
                policy: match view.policy() {
                    Some(nft::Policy::DROP) => Policy::Drop,
                    _ => Policy::Accept,
                },
                counters: view
                    .counters()
                    .map_or_else(Counters::default, |counters| Counters {
                        packets: counters.packets.unwrap_or_default(),
                        bytes: counters.bytes.unwrap_or_default(),
                    }),
            },
            _ => ChainKind::Foreign,
        };
        Self {
            kind,
            inner: InnerChain::Nft(inner),
        }
    }

    fn of_legacy(inner: legacy::ChainRef<'t>) -> Self {
        let kind = inner
            .builtin()
            .map_or(ChainKind::User, |builtin| ChainKind::Builtin {
                policy: builtin.policy,
                counters: builtin.counters.into(),
            });
        Self {
            kind,
            inner: InnerChain::Legacy(inner),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'t BStr {
        match self.inner {
            InnerChain::Nft(chain) => chain.chain().name(),
            InnerChain::Legacy(chain) => chain.name(),
        }
    }

    /// Which kind of chain it is.
    #[must_use]
    pub const fn kind(&self) -> ChainKind {
        self.kind
    }

    /// The policy, if it is a built-in chain.
    #[must_use]
    pub const fn policy(&self) -> Option<Policy> {
        match self.kind {
            ChainKind::Builtin { policy, .. } => Some(policy),
            _ => None,
        }
    }

    /// Number of rules.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        match self.inner {
            InnerChain::Nft(chain) => chain.rules().len(),
            InnerChain::Legacy(chain) => chain.rule_count(),
        }
    }

    /// The rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = RuleView<'t>> + use<'t> {
        let (nft, legacy) = match self.inner {
            InnerChain::Nft(chain) => (Some(chain.rules()), None),
            InnerChain::Legacy(chain) => (None, Some(chain.rules())),
        };
        let nft = nft.into_iter().flatten().map(RuleView::Nft);
        nft.chain(legacy.into_iter().flatten().map(RuleView::Legacy))
    }
}

impl fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("name", &self.name())
            .field("kind", &self.kind)
            .field("rules", &self.rule_count())
            .finish()
    }
}

/// A rule of a chain: its bytes, which [`entry`](Self::entry) decodes.
#[derive(Clone)]
pub enum RuleView<'t> {
    /// Of nf_tables.
    Nft(nft::RuleRef<'t>),
    /// Of a legacy table.
    Legacy(legacy::RuleRef<'t>),
}

impl RuleView<'_> {
    /// The rule with its counters. Sets are said by their indexes
    /// ([`Rule::name_sets`](super::Rule::name_sets)).
    ///
    /// # Errors
    /// [`Beyond`] if iptables' language has no words for it.
    pub fn entry(&self) -> Result<Entry, Beyond> {
        match self {
            Self::Nft(rule) => super::nft::decode(rule),
            Self::Legacy(rule) => super::legacy::decode(rule),
        }
    }
}

impl fmt::Debug for RuleView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Ok(entry) => fmt::Display::fmt(&entry.rule, f),
            Err(beyond) => fmt::Display::fmt(&beyond, f),
        }
    }
}

impl From<legacy::Counters> for Counters {
    fn from(counters: legacy::Counters) -> Self {
        Self {
            packets: counters.packets,
            bytes: counters.bytes,
        }
    }
}

impl From<Counters> for legacy::Counters {
    fn from(counters: Counters) -> Self {
        Self {
            packets: counters.packets,
            bytes: counters.bytes,
        }
    }
}
