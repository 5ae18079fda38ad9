//! Keeps a table in a desired state: waits until another program changes it, reports which one, and restores it
//! with the fewest operations, in one transaction, so that no packet meets a partly restored table.
//!
//! Run it with `cargo run --example keep_table`, in a private network namespace. The unit tests below need no
//! kernel.

use std::sync::Arc;
use std::time::Duration;

use chainwright::nft::build::{Build, CtState};
use chainwright::nft::live::{Mirror, Update};
use chainwright::nft::{
    Chain, Connection, Family, Hook, PlanOptions, Policy, Priority, Ruleset, Scope, Snapshot,
    Table, Transaction,
};
use chainwright_testing::Sandbox;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

pub(crate) fn main() -> Result<(), Error> {
    Sandbox::new()?.run(|| {
        let mut keeper = Keeper::new(Connection::open()?)?;
        print!("{}", keeper.keep(Duration::ZERO)?);

        let mut rival = Connection::open()?;
        rival.commit(&interference()?)?;
        print!("{}", keeper.keep(Duration::from_secs(1))?);

        let there = rival.snapshot(table())?;
        assert!(
            there
                .plan(&keeper.desired, PlanOptions::default())?
                .is_empty()
        );
        Ok(())
    })?
}

/// Keeps one table in the state of [`desired`].
struct Keeper {
    desired: Arc<Snapshot>,
    mirror: Mirror,
}

impl Keeper {
    /// Creates a keeper with any connection: to the kernel, or to a fake kernel.
    fn new(nft: Connection) -> Result<Self, Error> {
        Ok(Self {
            desired: Arc::new(desired()?),
            mirror: Mirror::open(nft, &table())?,
        })
    }

    /// Waits until another program commits something, or until `time` has passed, and restores the table.
    /// Returns a description of the changes.
    fn keep(&mut self, time: Duration) -> Result<String, Error> {
        let mut done = String::new();
        let mut updates = self.mirror.wait(time)?;
        loop {
            for update in updates {
                if let Update::Change(change) = update {
                    let who = change.thread_name().unwrap_or_default();
                    println!("{who} made generation {}", change.generation());
                }
            }
            // Compares the touched parts with the mirror, without a request to the kernel.
            let plan = self.mirror.plan(&self.desired, PlanOptions::default())?;
            if plan.is_empty() {
                return Ok(done);
            }
            match self.mirror.connection().commit(plan.transaction()) {
                Ok(()) => done += &plan.to_string(),
                // Another program committed first; its change arrives next.
                Err(late) if late.generation_moved() => {}
                Err(error) => return Err(error.into()),
            }
            updates = self.mirror.update()?;
        }
    }
}

fn table() -> Scope<'static> {
    Scope::table(Family::INET, "mine")
}

/// The desired table.
fn desired() -> Result<Snapshot, Error> {
    let input = || Build::new(Family::INET, "mine", "input");
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::INET, "mine"))?;
    tx.add(
        &Chain::new(Family::INET, "mine", "input")
            .with_hook("filter", Hook::INPUT, Priority::FILTER)
            .with_policy(Policy::DROP),
    )?;
    let known = CtState::ESTABLISHED | CtState::RELATED;
    tx.add(&input().ct_state(known).accept()?)?;
    tx.add(&input().tcp_dport(22).accept()?)?;

    Ok(Ruleset::of(&tx)?.to_snapshot(&table()))
}

/// A change by another program to this table, and elsewhere.
fn interference() -> Result<Transaction, Error> {
    let mut tx = Transaction::new();
    tx.flush_chain(Family::INET, "mine", "input")?;
    tx.add(&Chain::new(Family::INET, "mine", "theirs"))?;
    tx.add(&Table::new(Family::INET, "elsewhere"))?;
    Ok(tx)
}

#[cfg(test)]
mod tests {
    use chainwright_testing::FakeKernel;

    use super::*;

    /// Creates a keeper of an existing table.
    fn keeper(fake: &FakeKernel) -> Result<Keeper, Error> {
        let mut keeper = Keeper::new(fake.connect()?)?;
        assert!(!keeper.keep(Duration::ZERO)?.is_empty());
        Ok(keeper)
    }

    #[test]
    fn correct_tables_are_unchanged() -> Result<(), Error> {
        let fake = FakeKernel::new();
        assert_eq!(keeper(&fake)?.keep(Duration::ZERO)?, "");
        // The next keeper does not change this one's result either.
        assert_eq!(Keeper::new(fake.connect()?)?.keep(Duration::ZERO)?, "");
        Ok(())
    }

    #[test]
    fn foreign_changes_are_reverted() -> Result<(), Error> {
        let fake = FakeKernel::new();
        let mut keeper = keeper(&fake)?;
        let mut rival = fake.connect()?;
        rival.commit(&interference()?)?;

        let done = keeper.keep(Duration::ZERO)?;
        assert!(done.contains("delete chain inet mine theirs"), "{done}");
        let input = rival.snapshot(table())?;
        let input = input.chain(Family::INET, "mine", "input");
        assert_eq!(input.map(|chain| chain.rules().len()), Some(2));
        // Other tables stay.
        assert!(rival.table(Family::INET, "elsewhere")?.is_some());
        assert_eq!(keeper.keep(Duration::ZERO)?, "");
        Ok(())
    }

    #[test]
    fn a_chain_of_another_kind_is_replaced() -> Result<(), Error> {
        let fake = FakeKernel::new();
        let mut keeper = keeper(&fake)?;
        // Another program replaces the chain by one of another type.
        let mut tx = Transaction::new();
        tx.delete(&Chain::new(Family::INET, "mine", "input"))?;
        tx.add(&Chain::new(Family::INET, "mine", "input"))?;
        fake.connect()?.commit(&tx)?;
        let done = keeper.keep(Duration::ZERO)?;
        assert!(done.contains("add chain inet mine input"), "{done}");
        Ok(())
    }
}
