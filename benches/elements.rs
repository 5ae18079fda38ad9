//! Adding the elements of a map in one transaction, compared with the same bytes prepared
//! beforehand; and listing them, compared with the same request whose replies are discarded.
//!
//! `cargo bench --bench elements [-- ELEMENTS …]`

mod common;

use std::hint::black_box;

use chainwright::nft::{Connection, Family, Transaction};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{Addresses, alternate, alternate_prepared};
use common::{BoxError, Result, counts, in_sandbox, report};

fn main() -> Result {
    for elements in counts(&[1_000_000]) {
        in_sandbox(|| add(elements))?;
        in_sandbox(|| list(elements))?;
    }
    Ok(())
}

/// The map and all of its elements in one transaction, in an empty namespace.
fn add(elements: usize) -> Result {
    let map = Addresses { elements };
    let mut nft = Connection::open()?;
    let mut baseline = Baseline::open()?;
    let mut tx = Transaction::new();
    map.write(&mut tx)?;
    let prepared = tx.datagram(<[u8]>::to_vec);
    let mut cleaner = Connection::open()?;
    let mut empty = Transaction::new();
    empty.flush_ruleset(Family::UNSPEC)?;
    let measured = alternate_prepared::<BoxError>(
        (5_000_000 / elements).clamp(9, 51),
        &mut || Ok(cleaner.commit(&empty)?),
        &mut [
            ("baseline: the prepared bytes", &mut || {
                Ok(baseline.commit(&prepared)?)
            }),
            ("built from objects, then commit()", &mut || {
                tx.clear();
                map.write(&mut tx)?;
                Ok(nft.commit(&tx)?)
            }),
        ],
    )?;
    let length = prepared.len() as f64 / 1e6;
    let title = format!("add {elements} elements to a map ({length:.1} MB)");
    report(&title, &measured, 1.05);
    Ok(())
}

/// Lists key and value of every element.
fn list(elements: usize) -> Result {
    let map = Addresses { elements };
    let mut nft = Connection::open()?;
    map.load(&mut nft)?;
    let (family, table, name) = map.map();
    let request = Request::elements(family, table, name);
    let mut baseline = Baseline::open()?;
    let measured = alternate::<BoxError>(
        // For every datagram the kernel skips the elements that it has already sent.
        (100_000_000_000 / elements.pow(2)).clamp(3, 51),
        &mut [
            ("baseline: replies discarded", &mut || {
                black_box(baseline.dump(&request)?);
                Ok(())
            }),
            ("elements(), key and value of each", &mut || {
                let mut count = 0;
                nft.elements(family, table, name)?.for_each(|element| {
                    black_box((element.key_bytes(), element.data_bytes()));
                    count += 1;
                })?;
                assert_eq!(count, elements);
                Ok(())
            }),
        ],
    )?;
    report(
        &format!("list {elements} elements of a map"),
        &measured,
        1.10,
    );
    Ok(())
}
