//! Listing chains, compared with the same request whose replies are discarded; refreshing a list of
//! the same generation; and looking up one chain.
//!
//! `cargo bench --bench listing [-- COUNT …]`

mod common;

use std::hint::black_box;

use chainwright::nft::{Chain, Connection, Family, List, Refreshed, Scope};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{KubeProxy, alternate};
use common::{BoxError, Result, counts, in_sandbox, loaded, read, report};

fn main() -> Result {
    for count in counts(&[1_000, 10_000, 100_000]) {
        in_sandbox(|| listing(count))?;
    }
    Ok(())
}

/// Reads every base attribute of each chain.
fn list(nft: &mut Connection) -> Result<usize> {
    let mut count = 0;
    nft.chains(Scope::family(Family::IP))?.for_each(|chain| {
        read(&chain);
        count += 1;
    })?;
    Ok(count)
}

fn listing(count: usize) -> Result {
    let mut nft = loaded(count)?;
    let mut baseline = Baseline::open()?;
    let dump = Request::chains(Family::IP);
    assert_eq!(list(&mut nft)?, count + 6);

    let rounds = if count > 20_000 { 11 } else { 101 };
    let measured = alternate::<BoxError>(
        rounds,
        &mut [
            ("baseline: replies discarded", &mut || {
                black_box(baseline.dump(&dump)?);
                Ok(())
            }),
            ("chains(), all base attributes of each", &mut || {
                black_box(list(&mut nft)?);
                Ok(())
            }),
        ],
    )?;
    report(&format!("list {count} chains"), &measured, 1.10);

    // A thousand at a time, because one takes microseconds.
    let generation = Request::generation();
    let mut kept = List::<Chain<'_>>::new(Scope::family(Family::IP));
    kept.refresh(&mut nft)?;
    let measured = alternate::<BoxError>(
        51,
        &mut [
            ("baseline: 1,000 × request the generation", &mut || {
                for _ in 0..1000 {
                    black_box(baseline.request(&generation)?);
                }
                Ok(())
            }),
            ("1,000 × refresh() of the same generation", &mut || {
                for _ in 0..1000 {
                    assert_eq!(kept.refresh(&mut nft)?, Refreshed::SameGeneration);
                }
                Ok(())
            }),
        ],
    )?;
    report(
        &format!("refresh {count} chains of the same generation"),
        &measured,
        1.20,
    );

    let name = KubeProxy { chains: count }.service_chain(count / 4);
    let one = Request::chain(Family::IP, "nat", &name);
    let measured = alternate::<BoxError>(
        51,
        &mut [
            ("baseline: 1,000 × bare request and reply", &mut || {
                for _ in 0..1000 {
                    black_box(baseline.request(&one)?);
                }
                Ok(())
            }),
            ("1,000 × chain()", &mut || {
                for _ in 0..1000 {
                    let chain = nft.chain(Family::IP, "nat", &name)?;
                    assert!(black_box(chain).is_some());
                }
                Ok(())
            }),
        ],
    )?;
    report(&format!("look one of {count} chains up"), &measured, 1.20);
    Ok(())
}
