//! Tables that move from one backend to the other.
//!
//! Packets go through the tables of both backends. So rules are written to the new one first, compared, and only then taken
//! out of the old one: in between a packet meets both, and never neither.

use std::collections::{HashMap, HashSet};
use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use super::edit::Edit;
use super::handle::Change;
use super::{
    Backend, Chain, ChainKind, Counters, Entry, Error, Family, Iptables, Policy, Rule, Table,
    Tables,
};

/// Which tables move, and what of them does not.
#[derive(Clone, Copy)]
pub struct Migration<'m> {
    /// The families whose tables move.
    pub families: &'m [Family],
    /// Chains of these names stay, with the jumps to them, in either backend: those of agents that are at work.
    pub keep: &'m dyn Fn(&BStr) -> bool,
    /// Chains of these names say that somebody is at work in the old backend, who would make them there again: unless they
    /// are kept they stand in the way.
    pub made_again: &'m dyn Fn(&BStr) -> bool,
    /// Also where a built-in chain has jumps to kept chains in either backend and rules or a policy move: what a kept chain
    /// accepts is then no longer, or only then, kept from them. Otherwise that stands in the way.
    pub apart: bool,
    /// Nothing is changed: everything is read and built, and a kernel's nf_tables looks at it.
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

/// A table that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migrated {
    /// Its family.
    pub family: Family,
    /// Its name.
    pub table: String,
    /// How many chains of it that are not built in.
    pub chains: usize,
    /// How many rules.
    pub rules: usize,
    /// Whether it was in the other backend already, as after a migration that was broken off.
    pub was_there: bool,
}

/// Why tables cannot move.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// Things stand in the way; nothing was changed.
    #[error("{} in the way; nothing was changed", counted(.0.len()))]
    Obstacles(Vec<Obstacle>),
    /// The lock of the legacy tables, which is held from the first look on, could not be taken; nothing was changed.
    #[error("nothing was changed")]
    Lock(#[source] Error),
    /// The tables of the old backend could not be read; nothing was changed.
    #[error("the tables cannot be read")]
    Read(#[source] Error),
    /// The rules could not be written to the new backend; the old one has all of them.
    #[error("the rules cannot be written to {to}; the other backend has all of them as before")]
    Write {
        /// The new backend.
        to: Backend,
        /// Why.
        source: Error,
    },
    /// What was written does not mean what was read, or somebody changed it meanwhile. Both backends have the rules.
    #[error(
        "chain {chain} of table {table} ({family}) is not the same in both backends once it is written; both have \
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
    /// Somebody changed the old backend's table meanwhile. Both backends have the rules.
    #[error(
        "somebody changed chain {chain} of table {table} ({family}) in the old backend meanwhile; both have their \
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
    /// The rules could not be taken out of the old backend, or not of all its legacy tables ([`Error::Partly`]).
    #[error("the rules cannot all be taken out of {from}; the other backend has all of them")]
    TakeOut {
        /// The old backend.
        from: Backend,
        /// Why.
        source: Error,
    },
}

/// What stands in the way of a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Obstacle {
    /// The family of the table.
    pub family: Family,
    /// The table.
    pub table: String,
    /// The chain.
    pub chain: BString,
    /// The number of the rule, from 1, if it is one.
    pub rule: Option<usize>,
    /// What it is.
    pub why: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            family,
            table,
            chain,
            rule,
            why,
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
        1 => "one thing stands".to_owned(),
        many => format!("{many} things stand"),
    }
}

/// A chain that moves.
#[derive(Debug)]
struct Moving {
    name: BString,
    /// Of a built-in chain.
    policy: Option<(Policy, Counters)>,
    /// How many of its rules lead to chains that are kept.
    kept_jumps: usize,
    entries: Vec<Entry>,
}

/// A table that moves.
#[derive(Debug)]
struct MovingTable {
    family: Family,
    name: String,
    chains: Vec<Moving>,
    /// Where they are among them.
    places: HashMap<BString, usize>,
    was_there: bool,
}

impl MovingTable {
    fn chain(&self, name: &BStr) -> Option<&Moving> {
        self.places.get(name).map(|place| &self.chains[*place])
    }

    const fn place(&self) -> (Family, &str) {
        (self.family, self.name.as_str())
    }

    fn obstacle(&self, chain: &BStr, rule: Option<usize>, why: impl Into<String>) -> Obstacle {
        Obstacle {
            family: self.family,
            table: self.name.clone(),
            chain: chain.to_owned(),
            rule,
            why: why.into(),
        }
    }
}

impl Iptables {
    /// Moves all of iptables' tables with their counters to another backend, but for what is kept: reads them, writes them
    /// there, compares what they mean, and then takes them out here. Tables of nothing but chains without rules and with
    /// the policy `ACCEPT` are passed over. A table stays, empty: nothing takes a legacy one away.
    ///
    /// What cannot move is said before anything is changed: rules and chains that iptables has no words for, chains that are
    /// kept and lead to some that are not, and tables that have other rules there already, which packets would no longer
    /// meet in the order in which they do.
    ///
    /// ```no_run
    /// use chainwright::iptables::{Backend, Family, Iptables, Migration};
    ///
    /// let mut legacy = Iptables::open(Backend::Legacy)?;
    /// let mut nft = Iptables::open(Backend::Nft)?;
    /// let migration = Migration {
    ///     families: &[Family::Ipv4, Family::Ipv6],
    ///     keep: &|_| false,
    ///     made_again: &|_| false,
    ///     apart: false,
    ///     test: false,
    /// };
    /// for table in legacy.migrate_to(&mut nft, &migration)? {
    ///     println!("{} of {}: {} rules", table.table, table.family, table.rules);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MigrationError`] says which backends have the rules.
    pub fn migrate_to(
        &mut self,
        to: &mut Self,
        migration: &Migration<'_>,
    ) -> Result<Vec<Migrated>, MigrationError> {
        if migration.test {
            return self.migrate(to, migration);
        }
        // Of this one and the other one, that of the legacy tables has a lock.
        let here = self.hold().map_err(MigrationError::Lock)?;
        let moved = match to.hold() {
            Ok(there) => {
                let moved = self.migrate(to, migration);
                to.release(there);
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
            let there = to.read(*family, &[]).map_err(MigrationError::Read)?;
            for table in moving.iter_mut().filter(|table| table.family == *family) {
                look_there(table, &there, migration, &mut obstacles);
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
            was_there: table.was_there,
            table: table.name,
        });
        Ok(moved.collect())
    }

    fn write(&mut self, moving: &[MovingTable], test: bool) -> Result<(), Error> {
        let moving: Vec<_> = moving.iter().filter(|table| !table.was_there).collect();
        if moving.is_empty() {
            return Ok(());
        }
        let places: Vec<_> = moving.iter().map(|table| table.place()).collect();
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
            let there = self.read(*family, &[]).map_err(MigrationError::Read)?;
            for table in moving.iter().filter(|table| table.family == *family) {
                if let Err(chain) = is_there(table, &there, migration) {
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
        let places: Vec<_> = moving.iter().map(MovingTable::place).collect();
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
            Err(source) => Err(MigrationError::TakeOut {
                from: self.backend(),
                source,
            }),
        }
    }
}

/// What of a table moves, if anything does.
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
        was_there: false,
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
            match (is_kept, entry.rule.leads_to().map(migration.keep)) {
                (true, Some(false)) => obstacles.push(moving.obstacle(
                    chain.name(),
                    Some(number),
                    format!(
                        "the chain is kept, and leads to one that is not: {}",
                        entry.rule
                    ),
                )),
                (true, _) => {}
                (false, Some(true)) => kept_jumps += 1,
                (false, _) => entries.push(entry),
            }
        }
        if !is_kept && (migration.made_again)(chain.name()) {
            let why = "somebody is at work in the old backend, and would make it there again";
            obstacles.push(moving.obstacle(chain.name(), None, why));
        }
        if !is_kept {
            moving
                .places
                .insert(chain.name().to_owned(), moving.chains.len());
            moving.chains.push(Moving {
                name: chain.name().to_owned(),
                policy,
                kept_jumps,
                entries,
            });
        }
    }
    let is_nothing = |chain: &Moving| {
        chain.entries.is_empty() && matches!(chain.policy, Some((Policy::Accept, _)))
    };
    if moving.chains.iter().all(is_nothing) {
        return None;
    }
    for chain in moving.chains.iter().filter(|chain| !is_nothing(chain)) {
        // With a chain of a user the jumps would go.
        if chain.kept_jumps > 0 && (!migration.apart || chain.policy.is_none()) {
            let why = "jumps to kept chains would stay behind: what these accept, and this chain not, or the other way \
                       round, would be decided otherwise";
            obstacles.push(moving.obstacle(chain.name.as_bstr(), None, why));
        }
    }
    Some(moving)
}

/// Each once.
fn families(migration: &Migration<'_>) -> Vec<Family> {
    let mut all = Family::ALL.to_vec();
    all.retain(|family| migration.families.contains(family));
    all
}

/// What of a chain that is there is not somebody's who is kept.
fn own(tables: &Tables, chain: &Chain<'_>, migration: &Migration<'_>) -> Vec<Option<Rule>> {
    let rules = chain.rules();
    let rules = rules.map(|rule| tables.entry(&rule).ok().map(|entry| entry.rule));
    let is_kept = |rule: &Option<Rule>| {
        let to = rule.as_ref().and_then(Rule::leads_to);
        to.is_some_and(migration.keep)
    };
    rules.filter(|rule| !is_kept(rule)).collect()
}

/// Whether the other backend has the table already; what stands in its way there.
fn look_there(
    table: &mut MovingTable,
    there: &Tables,
    migration: &Migration<'_>,
    obstacles: &mut Vec<Obstacle>,
) {
    let Some(known) = there.table(&table.name) else {
        return;
    };
    table.was_there = is_there(table, there, migration).is_ok();
    if table.was_there {
        return;
    }
    for chain in known.chains().filter(|one| !(migration.keep)(one.name())) {
        let name = chain.name();
        let rules = own(there, &chain, migration).len();
        let moves = table.chain(name).is_some_and(|moving| {
            !moving.entries.is_empty() || matches!(moving.policy, Some((Policy::Drop, _)))
        });
        if rules == 0 && chain.rule_count() > 0 && moves && !migration.apart {
            let why = "the other backend has jumps to kept chains there: what these accept would no longer be looked at by \
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
                let why = "the other backend drops there what no rule decides on";
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

/// Whether a table means what another one does; the first chain that does not.
fn is_there(table: &MovingTable, there: &Tables, migration: &Migration<'_>) -> Result<(), BString> {
    let known = there.table(&table.name);
    let chains = known.into_iter().flat_map(|known| known.chains());
    let chains: HashMap<&BStr, Chain<'_>> = chains.map(|chain| (chain.name(), chain)).collect();
    for moving in &table.chains {
        let chain = chains.get(moving.name.as_bstr()).copied();
        let policy = chain.map(|chain| policy_of(&chain));
        let differs = match (policy, moving.policy) {
            (Some(policy), Some((moving, _))) => policy != moving,
            // iptables-nft makes built-in chains as they are needed.
            (None, Some((policy, _))) => policy != Policy::Accept,
            (policy, None) => policy.is_none(),
        };
        let rules = chain.map(|chain| own(there, &chain, migration));
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
    // And nothing else.
    for chain in chains.values().filter(|one| !(migration.keep)(one.name())) {
        let moves = table.chain(chain.name()).is_some();
        if !moves && !own(there, chain, migration).is_empty() {
            return Err(chain.name().to_owned());
        }
    }
    Ok(())
}

/// The first chain of a table that is not any more what was read.
fn changed(
    edit: &mut Edit<'_>,
    place: usize,
    table: &MovingTable,
    migration: &Migration<'_>,
) -> Result<Option<BString>, Error> {
    let mut edit = edit.at(place);
    let there = edit.unique_chains()?;
    let known: HashSet<&BString> = there.iter().collect();
    if let Some(gone) = table.chains.iter().find(|one| !known.contains(&one.name)) {
        return Ok(Some(gone.name.clone()));
    }
    for name in there {
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
            if entry.rule.leads_to().is_some_and(migration.keep) {
                continue;
            }
            let read = entries
                .next()
                .map(|read| edit.to_put_in(&read.rule))
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

/// Takes out of a table what moved.
fn empty(
    edit: &mut Edit<'_>,
    place: usize,
    table: &MovingTable,
    migration: &Migration<'_>,
) -> Result<(), Error> {
    let mut edit = edit.at(place);
    for chain in table.chains.iter().filter(|one| one.policy.is_some()) {
        edit.reconcile_chain_keeping(&chain.name, &[], |rule| {
            rule.leads_to().is_some_and(migration.keep)
        })?;
        edit.set_policy(&chain.name, Some(Policy::Accept), None)?;
    }
    let users = table.chains.iter().filter(|one| one.policy.is_none());
    let users: Vec<_> = users.map(|chain| chain.name.clone()).collect();
    edit.remove_chains(&users)
}
