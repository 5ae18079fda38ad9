//! Tables that were read, of either backend.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::builtin::{self, builtin, builtins};
use super::sets::{self, Sets, named};
use super::{Backend, Counters, Entry, NotExpressible, Policy, Target, expressible};
use crate::legacy;
use crate::nft::{self, Snapshot, SnapshotChain, SnapshotTable};
use crate::xt::{Family, Names};

/// The tables of one family in one backend, as of one moment.
///
/// They keep the kernel's bytes and decode rules on request.
pub struct Tables {
    family: Family,
    source: Source,
    /// Looks up the names of sets.
    sets: Sets,
    /// The names in texts.
    pub(super) names: Arc<Names>,
}

enum Source {
    /// A snapshot, and the iptables tables in it.
    Nft(Box<Snapshot>),
    Legacy(Vec<LegacyTable>),
}

/// A legacy table.
struct LegacyTable {
    table: legacy::Table,
    /// The names that several of its chains share, which the kernel allows.
    shared: HashSet<BString>,
    /// The names of its chains that are also those of targets.
    of_targets: Vec<BString>,
}

impl LegacyTable {
    fn new(table: legacy::Table) -> Self {
        let mut names = HashSet::with_capacity(table.chains().len());
        let again = table.chains().map(|chain| chain.name());
        let again = again.filter(|name| !names.insert(*name));
        let shared = again.map(BStr::to_owned).collect();
        let of_targets = names
            .into_iter()
            .filter(|name| expressible::is_target(name));
        let of_targets = of_targets.map(BStr::to_owned).collect();
        Self {
            table,
            shared,
            of_targets,
        }
    }
}

impl Tables {
    /// Returns the iptables tables of a family in a snapshot from any source: a connection, a file, or a fake kernel.
    /// Names of sets that rules refer to by index come from the running kernel.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use chainwright::iptables::{Family, Tables};
    /// use chainwright::nft::{Connection, Scope};
    ///
    /// let snapshot = Connection::open()?.snapshot(Scope::all())?;
    /// let tables = Tables::in_snapshot(Family::Ipv4, snapshot);
    /// assert!(tables.table("nat").is_none());
    /// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn in_snapshot(family: Family, snapshot: Snapshot) -> Self {
        Self::of_snapshot(family, snapshot, sets::open(), Names::system())
    }

    /// Creates the view of legacy tables that were read before. Tables of other families are ignored.
    #[must_use]
    pub fn in_legacy(family: Family, tables: impl IntoIterator<Item = legacy::Table>) -> Self {
        let of_family = |table: &legacy::Table| table.family() == legacy::Family::from(family);
        let tables = tables.into_iter().filter(of_family).collect();
        Self::of_legacy(family, tables, sets::open(), Names::system())
    }

    /// Creates the view of the iptables tables of a family in a snapshot.
    pub(super) fn of_snapshot(
        family: Family,
        snapshot: Snapshot,
        sets: Sets,
        names: Arc<Names>,
    ) -> Self {
        Self {
            family,
            source: Source::Nft(Box::new(snapshot)),
            sets,
            names,
        }
    }

    /// Creates the view of a family's legacy tables.
    pub(super) fn of_legacy(
        family: Family,
        tables: Vec<legacy::Table>,
        sets: Sets,
        names: Arc<Names>,
    ) -> Self {
        Self {
            family,
            source: Source::Legacy(tables.into_iter().map(LegacyTable::new).collect()),
            sets,
            names,
        }
    }

    /// Returns the family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the backend of the tables.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        match self.source {
            Source::Nft(_) => Backend::Nft,
            Source::Legacy(_) => Backend::Legacy,
        }
    }

    /// Returns the tables: those of nf_tables in iptables-nft's order, legacy ones in the kernel's.
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

    /// Decodes a rule like [`RuleView::entry`], with its sets by name.
    ///
    /// # Errors
    /// [`NotExpressible`], even if the name of a set cannot be found.
    pub fn entry(&self, rule: &RuleView<'_>) -> Result<Entry, NotExpressible> {
        let mut entry = Entry::default();
        self.entry_into(rule, &mut entry)?;
        Ok(entry)
    }

    /// Like [`entry`](Self::entry), reusing the memory of another entry.
    pub(super) fn entry_into(
        &self,
        rule: &RuleView<'_>,
        entry: &mut Entry,
    ) -> Result<(), NotExpressible> {
        match rule {
            RuleView::Nft(rule) => super::nft::decode_into(rule, entry)?,
            RuleView::Legacy(rule) => super::legacy::decode_into(rule, entry)?,
        }
        named(&mut entry.rule, &self.sets).map_err(|_| SET_UNKNOWN)?;
        if let Target::Extension(target) = &entry.rule.target
            && self.has_chain_of(rule, target.name())
        {
            return Err(NotExpressible {
                expression: None,
                reason: "the table has a chain with the name of its target, which the text would jump to",
            });
        }
        if let (RuleView::Legacy(rule), Source::Legacy(tables)) = (rule, &self.source)
            && let Target::Jump(to) | Target::Goto(to) = &entry.rule.target
        {
            let name = rule.table().name();
            let mut tables = tables.iter();
            let shared = tables.any(|l| l.table.name() == name && l.shared.contains(to));
            if shared {
                return Err(NotExpressible {
                    expression: None,
                    reason: SHARED,
                });
            }
        }
        Ok(())
    }

    /// Returns `true` if the rule's table has a chain of this name.
    fn has_chain_of(&self, rule: &RuleView<'_>, name: &str) -> bool {
        match (rule, &self.source) {
            (RuleView::Nft(rule), Source::Nft(snapshot)) => {
                let table = snapshot.table(rule.family(), rule.table());
                table.is_some_and(|table| table.chain(name).is_some())
            }
            (RuleView::Legacy(rule), Source::Legacy(tables)) => {
                let table = rule.table().name();
                let mut tables = tables.iter().filter(|legacy| legacy.table.name() == table);
                tables.any(|legacy| legacy.of_targets.iter().any(|other| other == name))
            }
            _ => false,
        }
    }

    /// Replaces the indexes of a rule's sets by their names, as far as they are found.
    pub(super) fn name_sets(&self, rule: &mut super::Rule) {
        let _ = named(rule, &self.sets);
    }

    /// Returns the table of that name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Table<'_>> {
        let inner = match &self.source {
            Source::Nft(snapshot) => {
                builtins(name)?; // other tables are not iptables'
                let family = nft::Family::from(self.family);
                Inner::Nft(snapshot.table(family, name)?)
            }
            Source::Legacy(tables) => {
                Inner::Legacy(tables.iter().find(|legacy| *legacy.table.name() == name)?)
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
    Legacy(&'t LegacyTable),
}

impl<'t> Table<'t> {
    const fn new(family: Family, inner: Inner<'t>) -> Self {
        Self { family, inner }
    }

    /// Returns the family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the name: `filter`, `nat`, …
    #[must_use]
    pub fn name(&self) -> &'t BStr {
        match self.inner {
            Inner::Nft(table) => table.table().name(),
            Inner::Legacy(legacy) => legacy.table.name().as_bstr(),
        }
    }

    /// Returns the chains in the kernel's order.
    pub fn chains(&self) -> impl Iterator<Item = Chain<'t>> + use<'t> {
        let name = self.name();
        let (nft, legacy) = match self.inner {
            Inner::Nft(table) => (Some(table.chains()), None),
            Inner::Legacy(table) => (None, Some(table)),
        };
        let nft = nft.into_iter().flatten();
        let legacy = legacy.into_iter().flat_map(|legacy| {
            let chains = legacy.table.chains();
            chains.map(|chain| Chain::of_legacy(legacy, chain))
        });
        nft.map(move |chain| Chain::of_nft(name, chain))
            .chain(legacy)
    }

    /// Returns the table in the snapshot of nf_tables; `None` for a legacy table.
    #[must_use]
    pub const fn in_snapshot(&self) -> Option<SnapshotTable<'t>> {
        match self.inner {
            Inner::Nft(table) => Some(table),
            Inner::Legacy(_) => None,
        }
    }

    /// Returns the chain of that name.
    #[must_use]
    pub fn chain(&self, name: impl AsRef<[u8]>) -> Option<Chain<'t>> {
        match self.inner {
            Inner::Nft(table) => Some(Chain::of_nft(self.name(), table.chain(name)?)),
            Inner::Legacy(legacy) => Some(Chain::of_legacy(legacy, legacy.table.chain(name)?)),
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

/// The kind of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainKind {
    /// A base chain of iptables.
    Builtin {
        /// The policy for packets on which no rule decides.
        policy: Policy,
        /// The packets and bytes that the policy decided on.
        counters: Counters,
    },
    /// A chain that is reached by jumps.
    User,
    /// In nf_tables: a base chain that differs from iptables' built-in chains in name, type, hook or priority, or a
    /// regular chain with the name of one. iptables does not know such chains.
    Foreign,
}

impl ChainKind {
    /// Classifies a chain of nf_tables.
    pub(super) fn of_nft(table: &BStr, chain: &nft::ChainRef<'_>) -> Self {
        let known = |name: &BStr| builtin(table.to_str().ok()?, name.to_str().ok()?);
        match (known(chain.name()), chain.hook()) {
            (None, None) => Self::User,
            (Some(builtin), Some(_)) if builtin.is(chain) => Self::Builtin {
                policy: match chain.policy() {
                    Some(nft::Policy::DROP) => Policy::Drop,
                    _ => Policy::Accept,
                },
                counters: chain
                    .counters()
                    .as_ref()
                    .map(Into::into)
                    .unwrap_or_default(),
            },
            _ => Self::Foreign,
        }
    }

    /// Returns `true` if an nf_tables chain of this kind has a hook without being a chain of iptables.
    pub(super) fn has_foreign_hook(self, chain: &nft::ChainRef<'_>) -> bool {
        self == Self::Foreign && chain.hook().is_some()
    }
}

/// The reason for a rule with a set whose name is not found.
pub(super) const SET_UNKNOWN: NotExpressible = NotExpressible {
    expression: None,
    reason: "it refers to a set whose name is unknown",
};

const SHARED: &str = "several chains have the same name";

/// A chain of a table.
#[derive(Clone, Copy)]
pub struct Chain<'t> {
    kind: ChainKind,
    /// Whether another chain of the table has the same name.
    shared: bool,
    inner: InnerChain<'t>,
}

#[derive(Clone, Copy)]
enum InnerChain<'t> {
    Nft(SnapshotChain<'t>),
    Legacy(legacy::ChainRef<'t>),
}

impl<'t> Chain<'t> {
    fn of_nft(table: &BStr, inner: SnapshotChain<'t>) -> Self {
        Self {
            kind: ChainKind::of_nft(table, &inner.chain()),
            shared: false,
            inner: InnerChain::Nft(inner),
        }
    }

    fn of_legacy(legacy: &LegacyTable, inner: legacy::ChainRef<'t>) -> Self {
        let kind = inner
            .builtin()
            .map_or(ChainKind::User, |builtin| ChainKind::Builtin {
                policy: builtin.policy,
                counters: builtin.counters,
            });
        Self {
            kind,
            shared: !legacy.shared.is_empty() && legacy.shared.contains(inner.name()),
            inner: InnerChain::Legacy(inner),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'t BStr {
        match self.inner {
            InnerChain::Nft(chain) => chain.chain().name(),
            InnerChain::Legacy(chain) => chain.name(),
        }
    }

    /// Returns the kind of the chain.
    #[must_use]
    pub const fn kind(&self) -> ChainKind {
        self.kind
    }

    /// Returns the reason why iptables' text cannot express this chain with its rules: it is
    /// [foreign](ChainKind::Foreign), or its name cannot be written or is not unique. `None` if the text can express
    /// it.
    #[must_use]
    pub fn not_expressible(&self) -> Option<&'static str> {
        match (self.kind, self.inner) {
            (ChainKind::Builtin { .. }, _) => None,
            _ if self.shared => Some(SHARED),
            (ChainKind::Foreign, _) => Some("its hook or priority is not that of a built-in chain"),
            (ChainKind::User, InnerChain::Nft(chain)) => {
                let chain = chain.chain();
                expressible::chain(chain.table(), chain.name()).err()
            }
            (ChainKind::User, InnerChain::Legacy(chain)) => {
                let table = chain.table();
                expressible::chain(table.name().as_bstr(), chain.name()).err()
            }
        }
    }

    /// Returns the policy, if it is a built-in chain.
    #[must_use]
    pub const fn policy(&self) -> Option<Policy> {
        match self.kind {
            ChainKind::Builtin { policy, .. } => Some(policy),
            _ => None,
        }
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        match self.inner {
            InnerChain::Nft(chain) => chain.rules().len(),
            InnerChain::Legacy(chain) => chain.rule_count(),
        }
    }

    /// Returns `true` if this is an nf_tables chain that has a hook without being a chain of iptables.
    pub(super) fn has_foreign_hook(&self) -> bool {
        match self.inner {
            InnerChain::Nft(chain) => self.kind.has_foreign_hook(&chain.chain()),
            InnerChain::Legacy(_) => false,
        }
    }

    /// Returns the number of references to the chain by rules of the table; only nf_tables reports it.
    pub(super) fn references(&self) -> Option<u32> {
        match self.inner {
            InnerChain::Nft(chain) => references(chain.chain().references(), chain.rules().len()),
            InnerChain::Legacy(_) => None,
        }
    }

    /// Returns the rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = RuleView<'t>> + use<'t> {
        let (nft, legacy) = match self.inner {
            InnerChain::Nft(chain) => (Some(chain.rules()), None),
            InnerChain::Legacy(chain) => (None, Some(chain.rules())),
        };
        let nft = nft.into_iter().flatten().map(RuleView::Nft);
        nft.chain(legacy.into_iter().flatten().map(RuleView::Legacy))
    }
}

/// Returns the number of jumps to a chain of nf_tables; the kernel reports it together with the number of the chain's
/// rules.
pub(super) fn references(uses: Option<u32>, rules: usize) -> Option<u32> {
    let rules = u32::try_from(rules).unwrap_or(u32::MAX);
    Some(uses?.saturating_sub(rules))
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

/// A rule of a chain in its encoded form, which [`entry`](Self::entry) decodes.
#[derive(Clone)]
pub enum RuleView<'t> {
    /// A rule of nf_tables.
    Nft(nft::RuleRef<'t>),
    /// A rule of a legacy table.
    Legacy(legacy::RuleRef<'t>),
}

impl RuleView<'_> {
    /// Decodes the rule and its counters. Sets appear with their indexes
    /// ([`Rule::name_sets`](super::Rule::name_sets)).
    ///
    /// # Errors
    /// [`NotExpressible`] if iptables' language cannot express it.
    pub fn entry(&self) -> Result<Entry, NotExpressible> {
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
            Err(error) => fmt::Display::fmt(&error, f),
        }
    }
}
