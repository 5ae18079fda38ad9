//! The state of the tables before a change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bstr::{BString, ByteSlice as _};
use chainwright::legacy::{self, Lock, LockPolicy, Lookup};
use chainwright::netlink;
use chainwright::nft::{
    Connection, Family, PlanOptions, Ruleset, Scope, Snapshot, SnapshotTable, TableId, Transaction,
};
use chainwright::{Retry, iptables};
use serde::{Deserialize, Serialize};

use crate::legacy_tables::family_name;
use crate::output::{Error, Printable, causes, name_text};

/// The backends that a change may change.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Reach {
    pub(super) nft: bool,
    legacy: bool,
}

impl Reach {
    pub(crate) const NFT: Self = Self {
        nft: true,
        legacy: false,
    };

    pub(crate) fn of(backends: &[iptables::Backend]) -> Self {
        Self {
            nft: backends.contains(&iptables::Backend::Nft),
            legacy: backends.contains(&iptables::Backend::Legacy),
        }
    }
}

/// The families with legacy tables that a verb can change.
const LEGACY: [legacy::Family; 2] = [legacy::Family::Ipv4, legacy::Family::Ipv6];

type LegacyKey = (legacy::Family, BString);
type NftKey = (Family, BString);

/// All tables of the backends, as they were at one time.
pub(super) struct Tables {
    nft: Option<Snapshot>,
    legacy: BTreeMap<LegacyKey, legacy::Table>,
}

/// The tables that a change changed.
#[derive(Default)]
pub(super) struct Changed {
    nft: BTreeSet<NftKey>,
    legacy: BTreeSet<LegacyKey>,
    /// Whether nf_tables lost rules: then they are restored before the legacy tables, so that packets do not meet
    /// neither copy of tables that were migrated.
    nft_first: bool,
}

impl Changed {
    pub(super) fn is_empty(&self) -> bool {
        self.nft.is_empty() && self.legacy.is_empty()
    }

    /// Returns the names of the tables.
    pub(super) fn names(&self) -> Vec<String> {
        let line = |backend, family: &str, name: &BString| {
            format!("{backend} {family} {}", Printable(&name_text(name)))
        };
        let nft = self.nft.iter();
        let nft = nft.map(|(family, name)| line("nft", &family.to_string(), name));
        let legacy = self.legacy.iter();
        nft.chain(legacy.map(|(family, name)| line("legacy", family_name(*family), name)))
            .collect()
    }
}

impl Tables {
    /// Reads the tables. Creates none, and loads no module.
    pub(super) fn read(reach: Reach) -> Result<Self, Error> {
        let mut legacy = BTreeMap::new();
        for family in LEGACY.into_iter().filter(|_| reach.legacy) {
            let connection = match legacy::Connection::open(family) {
                Ok(connection) => connection,
                Err(legacy::Error::NotBuilt { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            for name in connection.tables()? {
                if let Lookup::InUse(table) = connection.read(name)? {
                    legacy.insert((family, name.as_bstr().to_owned()), table);
                }
            }
        }
        Ok(Self {
            nft: reach.nft.then(read_nft).transpose()?,
            legacy,
        })
    }

    /// Finds the tables that were changed between this state and a later one. Packets change counters, and elements of
    /// dynamic sets: these are no changes.
    pub(super) fn changed(&self, after: &Self) -> Changed {
        let mut changed = Changed::default();
        for (key, now) in &after.legacy {
            if self
                .legacy
                .get(key)
                .is_none_or(|before| before.was_replaced(now))
            {
                changed.legacy.insert(key.clone());
            }
        }
        let (Some(before), Some(now)) = (&self.nft, &after.nft) else {
            return changed;
        };
        if before.generation().is_some() && before.generation() == now.generation() {
            return changed;
        }
        changed.nft_first = before.contents().rules >= now.contents().rules;
        let tables = before.tables().chain(now.tables());
        changed.nft = tables.map(|table| key(&table)).collect();
        changed.nft.retain(|(family, name)| {
            let tables = [before, now].map(|all| all.table(*family, name));
            let [Some(old), Some(new)] = tables else {
                return true;
            };
            handles(&old) != handles(&new)
                || differ(before, now, &Scope::table(*family, name.as_bstr()))
        });
        changed
    }

    /// Returns all tables that existed.
    pub(super) fn all(&self) -> Changed {
        let nft = self.nft.iter().flat_map(Snapshot::tables);
        Changed {
            nft: nft.map(|table| key(&table)).collect(),
            legacy: self.legacy.keys().cloned().collect(),
            nft_first: true,
        }
    }

    /// Restores these tables, and leaves all others alone. Tries it several times.
    ///
    /// # Errors
    /// The reasons of the last attempt.
    pub(super) fn restore(
        &self,
        changed: &Changed,
        lock: &LockPolicy,
        wait: Retry,
    ) -> Result<(), Vec<String>> {
        let mut left = [changed.nft_first, !changed.nft_first].to_vec();
        for attempt in 1.. {
            let is_last = attempt == ATTEMPTS;
            // A process that never releases the lock must not prevent the restoration.
            let lock = if is_last { &LockPolicy::None } else { lock };
            let mut errors = Vec::new();
            left.retain(|is_nft| {
                let done = match is_nft {
                    true => self.restore_nft(&changed.nft),
                    false => self.restore_legacy(&changed.legacy, lock, wait),
                };
                done.map_err(|error| errors.push(error)).is_err()
            });
            match (left.is_empty(), is_last) {
                (true, _) => break,
                (false, true) => return Err(errors),
                (false, false) => std::thread::sleep(PAUSE * attempt),
            }
        }
        Ok(())
    }

    fn restore_nft(&self, changed: &BTreeSet<NftKey>) -> Result<(), String> {
        let Some(before) = self.nft.as_ref().filter(|_| !changed.is_empty()) else {
            return Ok(());
        };
        let tables = changed.iter();
        let tables = tables.map(|(family, name)| TableId::new(*family, name.as_bstr()));
        let tables: Vec<_> = tables.collect();
        let restored = Connection::open()
            .map_err(chainwright::Error::from)
            .and_then(|mut nft| before.restore_tables(&mut nft, &tables))
            .map_err(|error| causes(&error))?;
        match restored.owned_by_others.first() {
            None => Ok(()),
            Some((family, name)) => Err(format!(
                "another process owns table {family} {}",
                Printable(&name_text(name))
            )),
        }
    }

    fn restore_legacy(
        &self,
        changed: &BTreeSet<LegacyKey>,
        lock: &LockPolicy,
        wait: Retry,
    ) -> Result<(), String> {
        if changed.is_empty() {
            return Ok(());
        }
        let lock = Lock::take(lock, wait).map_err(|error| causes(&error))?;
        let mut failed = Vec::new();
        for key @ (family, name) in changed {
            let restored = legacy::Connection::open(*family).and_then(|connection| {
                match self.legacy.get(key) {
                    Some(table) => connection.restore(table),
                    // Nothing removes a legacy table.
                    None => connection.reset(name),
                }
            });
            failed.extend(restored.err().map(|error| causes(&error)));
        }
        drop(lock);
        match failed.is_empty() {
            true => Ok(()),
            false => Err(failed.join("; ")),
        }
    }
}

/// Number of attempts to restore tables.
const ATTEMPTS: u32 = 5;
/// The pause after the first attempt; it grows with each.
const PAUSE: Duration = Duration::from_millis(200);

fn read_nft() -> Result<Snapshot, Error> {
    match Connection::open_if_loaded() {
        Ok(mut nft) => Ok(nft.snapshot(Scope::all())?),
        Err(netlink::Error::NotLoaded) => {
            let none = Ruleset::of(&Transaction::new())?;
            Ok(none.to_snapshot(&Scope::all()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the handles of a table's objects. New objects have new handles, even if they are like the old ones.
fn handles(table: &SnapshotTable<'_>) -> Vec<u64> {
    let mut handles = vec![table.table().handle()];
    for chain in table.chains() {
        handles.push(chain.chain().handle());
        handles.extend(chain.rules().map(|rule| rule.handle()));
    }
    handles.extend(table.sets().map(|set| set.set().handle()));
    handles.extend(table.objects().map(|object| object.handle()));
    handles.extend(table.flowtables().map(|flowtable| flowtable.handle()));
    handles.sort_unstable();
    handles
}

fn key(table: &SnapshotTable<'_>) -> NftKey {
    let table = table.table();
    (table.family(), table.name().to_owned())
}

/// Returns `true` if the contents of a table differ.
fn differ(before: &Snapshot, now: &Snapshot, table: &Scope<'_>) -> bool {
    let (Some(before), Some(now)) = (before.filtered(table), now.filtered(table)) else {
        return true;
    };
    now.plan(&before, PlanOptions::default())
        .map_or(true, |plan| !plan.is_empty())
}
