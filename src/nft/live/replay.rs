//! Applies recorded changes to a snapshot, without a kernel.

use std::collections::BTreeSet;

use super::change::Change;
use crate::netlink::Malformed;
use crate::nft::change_detector::MemberKey;
use crate::nft::snapshot::{Applied, TableKey};
use crate::nft::{Generation, Snapshot};

/// A ruleset to which recorded [`Change`]s are applied in order, for example from a file: a [`Mirror`](super::Mirror)
/// without a kernel.
///
/// The events of some changes are ambiguous, and a mirror then reads a chain or a table again. A replay cannot, so
/// [`is_exact`](Self::is_exact) returns `false` until it receives that part: see [`Mirror::observe`] and
/// [`Mirror::take_reread`].
///
/// [`Mirror::observe`]: super::Mirror::observe
/// [`Mirror::take_reread`]: super::Mirror::take_reread
///
/// ```
/// # fn main() -> Result<(), chainwright::Error> {
/// # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
/// use chainwright::nft::live::{Change, Item, Monitor, Replay};
/// use chainwright::nft::{Connection, Family, Scope, Table, Transaction};
///
/// let mut nft = Connection::open()?;
/// let mut replay = Replay::new(nft.snapshot(Scope::all())?);
/// let mut monitor = Monitor::open()?;
/// let mut tx = Transaction::new();
/// tx.add(&Table::new(Family::IP, "nat"))?;
/// nft.commit(&tx)?;
///
/// let Item::Change(change) = monitor.receive()? else { panic!("nothing was lost") };
/// let stored = change.as_bytes().to_vec();
///
/// replay.apply(&Change::from_bytes(stored)?)?;
/// assert!(replay.is_exact());
/// assert!(replay.snapshot().table(Family::IP, "nat").is_some());
/// # Ok::<(), chainwright::Error>(()) })??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Replay {
    snapshot: Snapshot,
    unclear_tables: BTreeSet<TableKey>,
    unclear_chains: BTreeSet<MemberKey>,
    generation: Option<Generation>,
}

impl Replay {
    /// Starts from a snapshot.
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        let generation = snapshot.generation();
        Self {
            snapshot,
            generation,
            ..Self::default()
        }
    }

    /// Applies the next change.
    ///
    /// # Errors
    /// [`Malformed`] if the kernel never sends such an event. After that, the state is unusable.
    pub fn apply(&mut self, change: &Change) -> Result<(), Malformed> {
        let mut applied = Applied::default();
        for event in change.events() {
            self.snapshot.apply(&event.message(), &mut applied)?;
        }
        self.unclear_chains.extend(applied.unclear_chains());
        self.unclear_tables.extend(applied.unclear_tables());
        self.generation = Some(change.generation());
        self.snapshot.set_generation(self.generation);
        self.snapshot.compact()
    }

    /// Replaces a part of the ruleset with that of the generation of the last applied change.
    ///
    /// # Errors
    /// [`Malformed`] if it does not fit the ruleset. After that, the state is unusable.
    pub fn replace(&mut self, part: &RereadPart) -> Result<(), Malformed> {
        let (family, table) = (part.key.0, part.key.1.clone());
        match &part.chain {
            None => {
                let key = (family, table);
                self.snapshot.replace_table(&key, &part.snapshot)?;
                self.unclear_tables.remove(&key);
                let of_others = |chain: &MemberKey| (chain.0, &chain.1) != (key.0, &key.1);
                self.unclear_chains.retain(of_others);
            }
            Some(chain) => {
                let key = (family, table, chain.clone());
                self.snapshot.replace_rules(&key, &part.snapshot)?;
                self.unclear_chains.remove(&key);
            }
        }
        self.snapshot.compact()
    }

    /// Returns the ruleset after the last applied change.
    #[must_use]
    pub const fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the ruleset after the last applied change.
    #[must_use]
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// Returns `false` if an ambiguous change has not been resolved: then the order of a chain's rules may
    /// differ, or a property of a table that the events do not contain.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.unclear_tables.is_empty() && self.unclear_chains.is_empty()
    }
}

/// A part of the ruleset that a [`Mirror`](super::Mirror) has read again: a table, or the rules of a chain.
#[derive(Debug, Clone)]
pub struct RereadPart {
    key: TableKey,
    chain: Option<bstr::BString>,
    /// The table; for a chain only this chain of it. No table if it no longer exists.
    snapshot: Snapshot,
}

impl RereadPart {
    /// Returns the current content of a table.
    pub(super) fn table(snapshot: &Snapshot, key: TableKey) -> Result<Self, Malformed> {
        Ok(Self {
            snapshot: snapshot.one_table(&key, None)?,
            key,
            chain: None,
        })
    }

    /// Returns the current rules of a chain; `None` if it no longer exists.
    pub(super) fn chain(snapshot: &Snapshot, key: MemberKey) -> Result<Option<Self>, Malformed> {
        let (family, table, chain) = key;
        if snapshot.chain(family, &table, &chain).is_none() {
            return Ok(None);
        }
        let key = (family, table);
        Ok(Some(Self {
            snapshot: snapshot.one_table(&key, Some(chain.as_ref()))?,
            key,
            chain: Some(chain),
        }))
    }

    /// Reassembles a part from the results of [`snapshot`](Self::snapshot) and [`chain`](Self::chain_name). `None` if
    /// the scope of the snapshot is not one table.
    #[must_use]
    pub fn from_parts(snapshot: Snapshot, chain: Option<bstr::BString>) -> Option<Self> {
        let scope = snapshot.scope();
        let table = scope.table.as_ref()?;
        Some(Self {
            key: (scope.family, (**table).to_owned()),
            chain,
            snapshot,
        })
    }

    /// Returns the name of the chain, if the part is a chain.
    #[must_use]
    pub fn chain_name(&self) -> Option<&bstr::BStr> {
        self.chain.as_ref().map(AsRef::as_ref)
    }

    /// Returns the table as a snapshot of this scope; for a chain it has only this chain, with its rules.
    #[must_use]
    pub const fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}
