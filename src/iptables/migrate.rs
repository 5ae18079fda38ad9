//! Moves tables from one backend to the other.
//!
//! Packets traverse the tables of both backends. So rules are first written to the new one, then compared, and only
//! then removed from the old one: in between a packet meets both, and never neither.

use std::collections::{HashMap, HashSet};
use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use super::edit::Edit;
use super::handle::Change;
use super::{
    Backend, Chain, ChainKind, Counters, Entry, Error, Family, Iptables, Policy, Rule, Table,
    Tables,
};

/// Options of a migration.
#[derive(Clone, Copy)]
pub struct Migration<'m> {
    /// The families whose tables move.
    pub families: &'m [Family],
    /// Selects chains that stay, with the jumps to them, in either backend: those of running agents.
    pub keep: &'m dyn Fn(&BStr) -> bool,
    /// Selects chains of a program that is active in the old backend and would create them there again: unless they
    /// are kept, they are obstacles.
    pub recreated: &'m dyn Fn(&BStr) -> bool,
    /// Allows separating a built-in chain's rules or policy from jumps to kept chains, in either backend. The rules may
    /// then meet packets that a kept chain accepts, or no longer meet them. Otherwise such a chain is an obstacle.
    pub allow_split: bool,
    /// Changes nothing: reads and encodes everything, and on nf_tables lets the kernel check it.
    pub test: bool,
}

impl fmt::Debug for Migration<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration")
            .field("families", &self.families)
            .field("test", &self.test)
            .finish_non_exhaustive()
    }
}

/// The result for one table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migrated {
    /// Its family.
    pub family: Family,
    /// Its name.
    pub table: String,
    /// Number of its chains that are not built in.
    pub chains: usize,
    /// Number of its rules.
    pub rules: usize,
    /// Whether it was in the other backend already, as after an interrupted migration.
    pub existed: bool,
}

/// The reason why a migration failed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// There are obstacles; nothing was changed.
    #[error("{} in the way; nothing was changed", counted(.0.len()))]
    Obstacles(Vec<Obstacle>),
    /// The lock of the legacy tables, held during the whole migration, could not be taken; nothing was changed.
    #[error("nothing was changed: {0}")]
    Lock(Error),
    /// The tables of the old backend could not be read; nothing was changed.
    #[error("cannot read the tables: {0}")]
    Read(Error),
    /// The rules could not be written to the new backend; the old one has all of them.
    #[error("cannot write the rules to {to}; the other backend still has all of them: {source}")]
    Write {
        /// The new backend.
        to: Backend,
        /// The cause.
        r#source: Error,
    },
    /// The written rules differ from those read, or another process changed them. Both backends have the rules.
    #[error(
        "chain {chain} of table {table} ({family}) differs between the backends after it was written; both have \
         their rules"
    )]
    Differs {
        /// The table's family.
        family: Family,
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// Another process changed the old backend's table meanwhile. Both backends have the rules.
    #[error(
        "chain {chain} of table {table} ({family}) was changed in the old backend in the meantime; both have their \
         rules"
    )]
    Changed {
        /// The table's family.
        family: Family,
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// The rules could not be taken out of the old backend, or not of all its legacy tables ([`Error::PartlyApplied`]).
    #[error("cannot remove all rules from {from}; the other backend has all of them: {source}")]
    Remove {
        /// The old backend.
        from: Backend,
        /// The cause.
        r#source: Error,
    },
}

crate::debug_as_message!(MigrationError);

/// An obstacle to a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Obstacle {
    /// The family of the table.
    pub family: Family,
    /// The table.
    pub table: String,
    /// The chain.
    pub chain: BString,
    /// The number of the rule, from 1, if the obstacle is a rule.
    pub rule: Option<usize>,
    /// Description of the obstacle.
    pub reason: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            family,
            table,
            chain,
            rule,
            reason: why,
        } = self;
        match rule {
            Some(number) => write!(f, "rule {number} of chain {chain}")?,
            None => write!(f, "chain {chain}")?,
        }
        write!(f, ", table {table} ({family}): {why}")
    }
}

fn counted(number: usize) -> String {
    match number {
        1 => "one obstacle is".to_owned(),
        many => format!("{many} obstacles are"),
    }
}

/// A chain that moves.
#[derive(Debug)]
struct MovingChain {
    name: BString,
    /// For a built-in chain.
    policy: Option<(Policy, Counters)>,
    /// Number of its rules that jump to kept chains.
    kept_jumps: usize,
    entries: Vec<Entry>,
}

/// A table that moves.
#[derive(Debug)]
struct MovingTable {
    family: Family,
    name: String,
    chains: Vec<MovingChain>,
    /// Indexes of the chains by name.
    places: HashMap<BString, usize>,
    existed: bool,
}

impl MovingTable {
    fn chain(&self, name: &BStr) -> Option<&MovingChain> {
        self.places.get(name).map(|place| &self.chains[*place])
    }

    const fn table_key(&self) -> (Family, &str) {
        (self.family, self.name.as_str())
    }

    fn obstacle(&self, chain: &BStr, rule: Option<usize>, why: impl Into<String>) -> Obstacle {
        Obstacle {
            family: self.family,
            table: self.name.clone(),
            chain: chain.to_owned(),
            rule,
            reason: why.into(),
        }
    }
}

impl Iptables {
    /// Moves all of iptables' tables with their counters to another backend, except for kept chains: reads them, writes
    /// them there, compares the meanings, and then removes them here. Skips tables that have only chains without rules
    /// and with the policy `ACCEPT`. The emptied tables remain, because legacy tables cannot be removed.
    ///
    /// Obstacles are reported before any change: rules and chains that iptables cannot express, kept chains
    /// that jump to others that are not kept, and tables that already have other rules there, which would change the
    /// order in which packets meet the rules.
    ///
    /// ```no_run
    /// use chainwright::iptables::{Backend, Family, Iptables, Migration};
    ///
    /// let mut legacy = Iptables::open(Backend::Legacy)?;
    /// let mut nft = Iptables::open(Backend::Nft)?;
    /// let migration = Migration {
    ///     families: &[Family::Ipv4, Family::Ipv6],
    ///     keep: &|_| false,
    ///     recreated: &|_| false,
    ///     allow_split: false,
    ///     test: false,
    /// };
    /// for table in legacy.migrate_to(&mut nft, &migration)? {
    ///     println!("{} of {}: {} rules", table.table, table.family, table.rules);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MigrationError`] names the backends that have the rules.
    pub fn migrate_to(
        &mut self,
        to: &mut Self,
        migration: &Migration<'_>,
    ) -> Result<Vec<Migrated>, MigrationError> {
        if migration.test {
            return self.migrate(to, migration);
        }
        // Of the two, the handle of the legacy tables has a lock.
        let here = self.acquire_lock().map_err(MigrationError::Lock)?;
        let moved = match to.acquire_lock() {
            Ok(existing) => {
                let moved = self.migrate(to, migration);
                to.release(existing);
                moved
            }
            Err(error) => Err(MigrationError::Lock(error)),
        };
        self.release(here);
        moved
    }

    fn migrate(
        &mut self,
        to: &mut Self,
        migration: &Migration<'_>,
    ) -> Result<Vec<Migrated>, MigrationError> {
        let mut moving = Vec::new();
        let mut obstacles = Vec::new();
        for family in &families(migration) {
            let tables = self.read(*family, &[]).map_err(MigrationError::Read)?;
            for table in tables.iter() {
                let table = read(&tables, &table, migration, &mut obstacles);
                moving.extend(table);
            }
            let existing = to.read(*family, &[]).map_err(MigrationError::Read)?;
            for table in moving.iter_mut().filter(|table| table.family == *family) {
                check_destination(table, &existing, migration, &mut obstacles);
            }
        }
        if !obstacles.is_empty() {
            return Err(MigrationError::Obstacles(obstacles));
        }
        to.write(&moving, migration.test)
            .map_err(|source| MigrationError::Write {
                to: to.backend(),
                source,
            })?;
        if !migration.test {
            to.compare(&moving, migration)?;
            self.take_out(&moving, migration)?;
        }
        let moved = moving.into_iter().map(|table| Migrated {
            chains: table
                .chains
                .iter()
                .filter(|one| one.policy.is_none())
                .count(),
            rules: table.chains.iter().map(|one| one.entries.len()).sum(),
            family: table.family,
            existed: table.existed,
            table: table.name,
        });
        Ok(moved.collect())
    }

    fn write(&mut self, moving: &[MovingTable], test: bool) -> Result<(), Error> {
        let moving: Vec<_> = moving.iter().filter(|table| !table.existed).collect();
        if moving.is_empty() {
            return Ok(());
        }
        let places: Vec<_> = moving.iter().map(|table| table.table_key()).collect();
        let change = Change {
            apply: !test,
            tracking: false,
            replaced: &[],
            repeatable: false,
        };
        self.change(&places, change, &mut |edit: &mut Edit<'_>| {
            for (place, table) in moving.iter().enumerate() {
                let mut edit = edit.at(place);
                for chain in table.chains.iter().filter(|one| one.policy.is_none()) {
                    edit.ensure_chain(&chain.name)?;
                }
                for chain in &table.chains {
                    if let Some((policy, counters)) = chain.policy {
                        edit.set_policy(&chain.name, Some(policy), Some(counters))?;
                    }
                    for entry in &chain.entries {
                        edit.append_with(&chain.name, &entry.rule, entry.counters)?;
                    }
                }
            }
            Ok(())
        })
    }

    fn compare(
        &mut self,
        moving: &[MovingTable],
        migration: &Migration<'_>,
    ) -> Result<(), MigrationError> {
        for family in &families(migration) {
            let existing = self.read(*family, &[]).map_err(MigrationError::Read)?;
            for table in moving.iter().filter(|table| table.family == *family) {
                if let Err(chain) = is_equivalent(table, &existing, migration) {
                    return Err(MigrationError::Differs {
                        family: table.family,
                        table: table.name.clone(),
                        chain,
                    });
                }
            }
        }
        Ok(())
    }

    fn take_out(
        &mut self,
        moving: &[MovingTable],
        migration: &Migration<'_>,
    ) -> Result<(), MigrationError> {
        if moving.is_empty() {
            return Ok(());
        }
        let places: Vec<_> = moving.iter().map(MovingTable::table_key).collect();
        let taken = self.update_tables(&places, |edit| {
            for (place, table) in moving.iter().enumerate() {
                if let Some(chain) = changed(edit, place, table, migration)? {
                    return Ok(Err((table.family, table.name.clone(), chain)));
                }
            }
            for (place, table) in moving.iter().enumerate() {
                empty(edit, place, table, migration)?;
            }
            Ok(Ok(()))
        });
        match taken {
            Ok(Ok(())) => Ok(()),
            Ok(Err((family, table, chain))) => Err(MigrationError::Changed {
                family,
                table,
                chain,
            }),
            Err(source) => Err(MigrationError::Remove {
                from: self.backend(),
                source,
            }),
        }
    }
}

/// Collects the part of a table that moves, if any.
fn read(
    tables: &Tables,
    table: &Table<'_>,
    migration: &Migration<'_>,
    obstacles: &mut Vec<Obstacle>,
) -> Option<MovingTable> {
    let mut moving = MovingTable {
        family: table.family(),
        name: table.name().to_str_lossy().into_owned(),
        chains: Vec::new(),
        places: HashMap::new(),
        existed: false,
    };
    for chain in table.chains() {
        let is_kept = (migration.keep)(chain.name());
        let policy = match chain.kind() {
            ChainKind::Builtin { policy, counters } => Some((policy, counters)),
            _ => None,
        };
        if let Some(why) = chain.not_expressible() {
            if is_kept {
                continue;
            }
            obstacles.push(moving.obstacle(chain.name(), None, why));
            continue;
        }
        let mut kept_jumps = 0;
        let mut entries = Vec::new();
        for (number, rule) in (1..).zip(chain.rules()) {
            let entry = match tables.entry(&rule) {
                Ok(entry) => entry,
                Err(_) if is_kept => continue,
                Err(why) => {
                    obstacles.push(moving.obstacle(chain.name(), Some(number), why.to_string()));
                    continue;
                }
            };
            match (is_kept, entry.rule.jump_chain().map(migration.keep)) {
                (true, Some(false)) => obstacles.push(moving.obstacle(
                    chain.name(),
                    Some(number),
                    format!(
                        "the chain is kept, but jumps to one that is not: {}",
                        entry.rule
                    ),
                )),
                (true, _) => {}
                (false, Some(true)) => kept_jumps += 1,
                (false, _) => entries.push(entry),
            }
        }
        if !is_kept && (migration.recreated)(chain.name()) {
            let why = "another process uses the old backend, and would create it there again";
            obstacles.push(moving.obstacle(chain.name(), None, why));
        }
        if !is_kept {
            moving
                .places
                .insert(chain.name().to_owned(), moving.chains.len());
            moving.chains.push(MovingChain {
                name: chain.name().to_owned(),
                policy,
                kept_jumps,
                entries,
            });
        }
    }
    let is_nothing = |chain: &MovingChain| {
        chain.entries.is_empty() && matches!(chain.policy, Some((Policy::Accept, _)))
    };
    if moving.chains.iter().all(is_nothing) {
        return None;
    }
    for chain in moving.chains.iter().filter(|chain| !is_nothing(chain)) {
        // A user's chain is removed, and its jumps with it.
        if chain.kept_jumps > 0 && (!migration.allow_split || chain.policy.is_none()) {
            let why = "its jumps to kept chains would stay in the old backend, and its other rules would move: \
                       packets that only one of the two accepts would be treated differently";
            obstacles.push(moving.obstacle(chain.name.as_bstr(), None, why));
        }
    }
    Some(moving)
}

/// Returns the families, without duplicates.
fn families(migration: &Migration<'_>) -> Vec<Family> {
    let mut all = Family::ALL.to_vec();
    all.retain(|family| migration.families.contains(family));
    all
}

/// Returns the rules of an existing chain, except for jumps to kept chains.
fn own(tables: &Tables, chain: &Chain<'_>, migration: &Migration<'_>) -> Vec<Option<Rule>> {
    let rules = chain.rules();
    let rules = rules.map(|rule| tables.entry(&rule).ok().map(|entry| entry.rule));
    let is_kept = |rule: &Option<Rule>| {
        let to = rule.as_ref().and_then(Rule::jump_chain);
        to.is_some_and(migration.keep)
    };
    rules.filter(|rule| !is_kept(rule)).collect()
}

/// Checks whether the other backend has the table already; otherwise collects obstacles there.
fn check_destination(
    table: &mut MovingTable,
    existing: &Tables,
    migration: &Migration<'_>,
    obstacles: &mut Vec<Obstacle>,
) {
    let Some(known) = existing.table(&table.name) else {
        return;
    };
    table.existed = is_equivalent(table, existing, migration).is_ok();
    if table.existed {
        return;
    }
    for chain in known.chains().filter(|one| !(migration.keep)(one.name())) {
        let name = chain.name();
        let rules = own(existing, &chain, migration).len();
        let moves = table.chain(name).is_some_and(|moving| {
            !moving.entries.is_empty() || matches!(moving.policy, Some((Policy::Drop, _)))
        });
        if rules == 0 && chain.rule_count() > 0 && moves && !migration.allow_split {
            let why = "the other backend has jumps to kept chains there: packets that these accept would no longer reach \
                       this chain's rules";
            obstacles.push(table.obstacle(name, None, why));
        }
        if rules > 0 {
            let why = match rules {
                1 => "the other backend has a rule of its own there".to_owned(),
                _ => format!("the other backend has {rules} rules of its own there"),
            };
            obstacles.push(table.obstacle(name, None, why));
        } else if let ChainKind::Builtin { policy, .. } = chain.kind() {
            let moving = table.chain(name);
            let becomes = moving.and_then(|moving| moving.policy);
            if policy == Policy::Drop
                && becomes.is_none_or(|(policy, _)| policy != policy_of(&chain))
            {
                let why = "the other backend has policy DROP there";
                obstacles.push(table.obstacle(name, None, why));
            }
        }
    }
}

const fn policy_of(chain: &Chain<'_>) -> Policy {
    match chain.kind() {
        ChainKind::Builtin { policy, .. } => policy,
        _ => Policy::Accept,
    }
}

/// Checks that an existing table means the same; the error is the first chain that differs.
fn is_equivalent(
    table: &MovingTable,
    existing: &Tables,
    migration: &Migration<'_>,
) -> Result<(), BString> {
    let known = existing.table(&table.name);
    let chains = known.into_iter().flat_map(|known| known.chains());
    let chains: HashMap<&BStr, Chain<'_>> = chains.map(|chain| (chain.name(), chain)).collect();
    for moving in &table.chains {
        let chain = chains.get(moving.name.as_bstr()).copied();
        let policy = chain.map(|chain| policy_of(&chain));
        let differs = match (policy, moving.policy) {
            (Some(policy), Some((moving, _))) => policy != moving,
            // iptables-nft creates built-in chains on demand.
            (None, Some((policy, _))) => policy != Policy::Accept,
            (policy, None) => policy.is_none(),
        };
        let rules = chain.map(|chain| own(existing, &chain, migration));
        let rules = rules.unwrap_or_default();
        let mut both = rules.iter().zip(&moving.entries);
        let same = rules.len() == moving.entries.len()
            && both.all(|(rule, entry)| {
                let rule = rule.as_ref();
                rule.is_some_and(|rule| rule.means_the_same(&entry.rule))
            });
        if differs || !same {
            return Err(moving.name.clone());
        }
    }
    // No other rules.
    for chain in chains.values().filter(|one| !(migration.keep)(one.name())) {
        let moves = table.chain(chain.name()).is_some();
        if !moves && !own(existing, chain, migration).is_empty() {
            return Err(chain.name().to_owned());
        }
    }
    Ok(())
}

/// Returns the first chain of a table that has changed since it was read.
fn changed(
    edit: &mut Edit<'_>,
    place: usize,
    table: &MovingTable,
    migration: &Migration<'_>,
) -> Result<Option<BString>, Error> {
    let mut edit = edit.at(place);
    let existing = edit.unique_chains()?;
    let known: HashSet<&BString> = existing.iter().collect();
    if let Some(gone) = table.chains.iter().find(|one| !known.contains(&one.name)) {
        return Ok(Some(gone.name.clone()));
    }
    for name in existing {
        if (migration.keep)(name.as_bstr()) {
            continue;
        }
        let Some(moving) = table.chain(name.as_bstr()) else {
            return Ok(Some(name));
        };
        if let Some((policy, _)) = moving.policy
            && edit.policy(name.as_bstr())? != Some(policy)
        {
            return Ok(Some(name));
        }
        let mut entries = moving.entries.iter();
        for entry in edit.rules_of(name.as_bstr())? {
            let Ok(entry) = entry else {
                return Ok(Some(name));
            };
            if entry.rule.jump_chain().is_some_and(migration.keep) {
                continue;
            }
            let read = entries
                .next()
                .map(|read| edit.check_and_resolve(&read.rule))
                .transpose()?;
            if !read.is_some_and(|read| entry.rule.means_the_same(&read)) {
                return Ok(Some(name));
            }
        }
        if entries.next().is_some() {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Removes the moved chains and rules from a table.
fn empty(
    edit: &mut Edit<'_>,
    place: usize,
    table: &MovingTable,
    migration: &Migration<'_>,
) -> Result<(), Error> {
    let mut edit = edit.at(place);
    for chain in table.chains.iter().filter(|one| one.policy.is_some()) {
        edit.reconcile_chain_keeping(&chain.name, &[], |rule| {
            rule.jump_chain().is_some_and(migration.keep)
        })?;
        edit.set_policy(&chain.name, Some(Policy::Accept), None)?;
    }
    let users = table.chains.iter().filter(|one| one.policy.is_none());
    let users: Vec<_> = users.map(|chain| chain.name.clone()).collect();
    edit.remove_chains(&users)
}
