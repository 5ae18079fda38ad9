//! User instructions a listed chain, counted by valgrind's callgrind (package `valgrind`).
//!
//! Unlike a time, the count is the same on a busy machine. It leaves out the kernel, and is taken
//! over the whole of a listing: requests, datagrams, messages, and every base attribute of each
//! chain.
//!
//! `cargo bench --features measure --bench instructions [-- CHAINS]`

mod common;

use std::process::Command;

use chainwright::nft::{Connection, Family, Filter};
use common::{Result, in_sandbox, loaded, read};

/// The goal: the best peer needs 1,560.
const GOAL: f64 = 200.0;

fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("--counted") {
        let chains = arguments.next().ok_or("--counted CHAINS")?.parse()?;
        return in_sandbox(|| {
            let mut nft = loaded(chains)?;
            assert_eq!(counted_listing(&mut nft)?, chains + 6);
            Ok(())
        });
    }
    let chains: u64 = std::iter::once(first)
        .flatten()
        .chain(arguments)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10_000);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no", "--toggle-collect=*counted_listing*"])
        .arg(std::env::current_exe()?)
        .args(["--counted", &chains.to_string()])
        .output()
        .map_err(|error| format!("valgrind (apt-get install valgrind): {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    let total: u64 = report
        .lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok())
        .ok_or_else(|| format!("no count in valgrind's report:\n{report}"))?;
    let each = total as f64 / (chains + 6) as f64;
    let verdict = if each <= GOAL { "kept" } else { "MISSED" };
    println!(
        "list {chains} chains: {total} user instructions, {each:.1} a chain (goal {GOAL}: {verdict})"
    );
    Ok(())
}

#[inline(never)]
fn counted_listing(nft: &mut Connection) -> Result<usize> {
    let mut count = 0;
    nft.chains(Filter::family(Family::IP))?.for_each(|chain| {
        read(&chain);
        count += 1;
    })?;
    Ok(count)
}
