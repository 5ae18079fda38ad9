//! Keeps a table as it should be, for ever: waits until somebody changes it, says who, and puts it back by
//! the fewest operations, in one transaction in which no packet finds it half done.
//!
//! `cargo run --example keep_table`, in a private network namespace.

use std::sync::Arc;
use std::time::Duration;

use chainwright::netns::Sandbox;
use chainwright::nft::build::{Build, CtState};
use chainwright::nft::live::{Mirror, Update};
use chainwright::nft::{
    Chain, Connection, Family, Hook, PlanOptions, Policy, Priority, Scope, Snapshot, Table,
    Transaction,
};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    Sandbox::new()?.run(|| {
        let mut keeper = Keeper::new(Connection::open()?)?;
        assert_eq!(keeper.keep(Duration::ZERO)?, "", "nobody changed anything");

        let mut rival = Connection::open()?;
        let mut tx = Transaction::new();
        tx.flush_chain(Family::INET, "mine", "input")?;
        tx.add(&Chain::new(Family::INET, "mine", "theirs"))?;
        tx.add(&Table::new(Family::INET, "elsewhere"))?;
        rival.commit(&tx)?;

        print!("{}", keeper.keep(Duration::from_secs(1))?);
        let rules = |snapshot: &Snapshot| {
            let chain = snapshot.chain(Family::INET, "mine", "input");
            chain.map(|chain| chain.rules().len())
        };
        assert_eq!(rules(&rival.snapshot(table())?), Some(2));
        assert!(!rival.chain_exists(Family::INET, "mine", "theirs")?);
        assert_eq!(keeper.keep(Duration::from_millis(1))?, "");
        Ok(())
    })?
}

/// Holds one table as [`desired`] says.
struct Keeper {
    desired: Arc<Snapshot>,
    mirror: Mirror,
}

impl Keeper {
    fn new(mut nft: Connection) -> Result<Self, Error> {
        nft.commit(&desired()?)?;
        let desired = Arc::new(nft.snapshot(table())?);
        let mirror = Mirror::open(nft, &table())?;
        Ok(Self { desired, mirror })
    }

    /// Waits until somebody commits something, or for so long, and puts the table back; what was done for that.
    fn keep(&mut self, time: Duration) -> Result<String, Error> {
        let mut done = String::new();
        for update in self.mirror.wait(time)? {
            if let Update::Change(change) = update {
                let who = change.thread_name().unwrap_or_default();
                println!("{who} made generation {}", change.generation());
            }
        }
        // Compared with what the mirror shows, as far as that was touched: the kernel is asked nothing.
        let plan = self.mirror.plan(&self.desired, PlanOptions::default())?;
        if !plan.is_empty() {
            match self.mirror.connection().commit(plan.transaction()) {
                Ok(()) => done = plan.to_string(),
                // Somebody was quicker: that will be told.
                Err(late) if late.generation_moved() => {}
                Err(error) => return Err(error.into()),
            }
            // What was committed here need not be answered.
            self.mirror.update()?;
        }
        Ok(done)
    }
}

fn table() -> Scope<'static> {
    Scope::table(Family::INET, "mine")
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
