//! Committing, compared with sending the same bytes prepared beforehand.
//!
//! `cargo bench --bench commit [-- CHAINS]`

mod common;

use std::hint::black_box;

use chainwright::nft::{Chain, Connection, Family, Transaction};
use chainwright_bench::baseline::Baseline;
use chainwright_bench::{KubeProxy, alternate_prepared};
use common::{BoxError, Result, in_sandbox, loaded, report};

fn main() -> Result {
    let chains = std::env::args()
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(50_000);
    in_sandbox(|| whole(chains))?;
    in_sandbox(|| add_one_service(chains))
}

/// The complete ruleset in one transaction, in an empty namespace.
fn whole(chains: usize) -> Result {
    let ruleset = KubeProxy { chains };
    let mut nft = Connection::open()?;
    let mut baseline = Baseline::open()?;
    let mut tx = Transaction::new();
    ruleset.write(&mut tx)?;
    let prepared = tx.datagram(<[u8]>::to_vec);
    let title = format!(
        "commit {chains} chains with {} rules ({:.1} MB)",
        ruleset.rules(),
        prepared.len() as f64 / 1e6
    );
    let mut cleaner = Connection::open()?;
    let mut empty = Transaction::new();
    empty.flush_ruleset(Family::UNSPEC)?;
    let measured = alternate_prepared::<BoxError>(
        7,
        &mut || Ok(cleaner.commit(&empty)?),
        &mut [
            ("baseline: the prepared bytes", &mut || {
                Ok(baseline.commit(&prepared)?)
            }),
            ("built from objects, then commit()", &mut || {
                tx.clear();
                ruleset.write(&mut tx)?;
                Ok(nft.commit(&tx)?)
            }),
        ],
    )?;
    report(&title, &measured, 1.05);
    assert!(nft.chain_exists(Family::IP, "nat", ruleset.service_chain(chains / 4))?);
    Ok(())
}

/// One more chain with three rules, in a table with this many other chains.
fn add_one_service(chains: usize) -> Result {
    let ruleset = KubeProxy { chains };
    let mut nft = loaded(chains)?;
    let mut baseline = Baseline::open()?;
    let mut tx = Transaction::new();
    ruleset.write_one_more(&mut tx, chains)?;
    let prepared = tx.datagram(<[u8]>::to_vec);

    // Removed again before each turn.
    let name = ruleset.service_chain(chains);
    let mut cleaner = Connection::open()?;
    let mut remove = Transaction::new();
    remove
        .flush_chain(Family::IP, "nat", &name)?
        .delete(&Chain::new(Family::IP, "nat", &name))?;
    let measured = alternate_prepared::<BoxError>(
        31,
        &mut || {
            if cleaner.chain_exists(Family::IP, "nat", &name)? {
                cleaner.commit(&remove)?;
            }
            Ok(())
        },
        &mut [
            ("baseline: the prepared bytes", &mut || {
                Ok(baseline.commit(&prepared)?)
            }),
            ("built from objects, then commit()", &mut || {
                let mut tx = Transaction::new();
                ruleset.write_one_more(&mut tx, chains)?;
                Ok(black_box(nft.commit(&tx))?)
            }),
        ],
    )?;
    report(
        &format!("commit one more chain with three rules, with {chains} other chains"),
        &measured,
        1.10,
    );
    Ok(())
}
