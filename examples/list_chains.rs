//! Lists chains: all of them, borrowed from the kernel's messages, and one by name.
//!
//! Run it with `cargo run --example list_chains`, in a private network namespace. Without the sandbox it
//! lists the tables of the host; that requires CAP_NET_ADMIN.

use chainwright::nft::{Chain, Connection, Family, Scope, Table, Transaction};
use chainwright_testing::Sandbox;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    Sandbox::new()?.run(|| {
        let mut nft = Connection::open()?;
        fill(&mut nft)?;

        // On a busy node a change can interrupt a listing, which then returns an error that is retryable;
        // `List` retries on its own.
        let mut listed = 0;
        nft.chains(Scope::table(Family::IP, "nat"))?
            .for_each(|chain| {
                println!("{chain} handle {:?}", chain.handle());
                listed += 1;
            })?;
        assert_eq!(listed, 10);

        // One message, whatever the number of chains.
        assert!(nft.chain_exists(Family::IP, "nat", "SERVICE-7")?);
        assert!(!nft.chain_exists(Family::IP, "nat", "SERVICE-10")?);
        Ok(())
    })?
}

/// Creates a table with ten chains, in one transaction.
fn fill(nft: &mut Connection) -> Result<(), Error> {
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "nat"))?;
    for number in 0..10 {
        let name = format!("SERVICE-{number}");
        tx.add(&Chain::new(Family::IP, "nat", name.as_str()))?;
    }
    nft.commit(&tx)?;
    Ok(())
}
