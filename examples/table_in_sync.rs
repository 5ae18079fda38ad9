//! Keeps a table as it should be: whoever changes it, the next look puts it back, in one transaction in
//! which no packet finds it half done.
//!
//! `cargo run --example table_in_sync`, in a private network namespace.

use chainwright::netns::Sandbox;
use chainwright::nft::build::{Build, CtState};
use chainwright::nft::{
    Chain, Connection, Family, Generation, Hook, Policy, Priority, Scope, Table, Transaction,
};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    Sandbox::new()?.run(|| {
        let mut keeper = Keeper::new(Connection::open()?)?;
        assert!(!keeper.look()?, "nobody has changed anything");

        let mut rival = Connection::open()?;
        let mut tx = Transaction::new();
        tx.delete(&Chain::new(Family::INET, "mine", "input"))?;
        rival.commit(&tx)?;

        assert!(keeper.look()?, "what was changed is put back");
        assert!(rival.chain_exists(Family::INET, "mine", "input")?);
        assert!(!keeper.look()?);
        Ok(())
    })?
}

/// Holds one table as [`desired`] says.
struct Keeper {
    nft: Connection,
    /// The generation in which the table was right.
    right: Generation,
    /// What was listed of it then.
    rules: usize,
}

impl Keeper {
    fn new(mut nft: Connection) -> Result<Self, Error> {
        nft.commit(&desired()?)?;
        let right = nft.generation()?;
        let rules = rules(&mut nft)?;
        Ok(Self { nft, right, rules })
    }

    /// Puts the table back if somebody changed it; whether that was so. While the generation stands still
    /// this costs one message.
    fn look(&mut self) -> Result<bool, Error> {
        let now = self.nft.generation()?;
        if now == self.right {
            return Ok(false);
        }
        let changed = rules(&mut self.nft)? != self.rules;
        if changed {
            self.nft.commit(&desired()?)?;
        }
        self.right = self.nft.generation()?;
        Ok(changed)
    }
}

/// The whole table, whatever was there before.
fn desired() -> Result<Transaction, Error> {
    let table = Table::new(Family::INET, "mine");
    let mut tx = Transaction::new();
    tx.add(&table)?.delete(&table)?.add(&table)?;
    tx.add(
        &Chain::new(Family::INET, "mine", "input")
            .with_hook("filter", Hook::INPUT, Priority::FILTER)
            .with_policy(Policy::DROP),
    )?;
    tx.add(
        &Build::new(Family::INET, "mine", "input")
            .ct_state(CtState::ESTABLISHED | CtState::RELATED)
            .accept()?,
    )?;
    tx.add(
        &Build::new(Family::INET, "mine", "input")
            .tcp_dport(22)
            .accept()?,
    )?;
    Ok(tx)
}

fn rules(nft: &mut Connection) -> Result<usize, Error> {
    let mut count = 0;
    nft.rules(Scope::table(Family::INET, "mine"))?
        .for_each(|_| count += 1)?;
    Ok(count)
}
