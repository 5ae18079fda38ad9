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

/// The ways through a listing: their names, and the function that is counted.
const WAYS: [(&str, &str); 2] = [
    ("for_each()", "counted_for_each"),
    ("next()", "counted_next"),
];

fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("--counted") {
        let chains = arguments.next().ok_or("--counted CHAINS")?.parse()?;
        return in_sandbox(|| {
            let mut nft = loaded(chains)?;
            assert_eq!(counted_for_each(&mut nft)?, chains + 6);
            assert_eq!(counted_next(&mut nft)?, chains + 6);
            Ok(())
        });
    }
    let chains: u64 = std::iter::once(first)
        .flatten()
        .chain(arguments)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10_000);
    for (way, function) in WAYS {
        let total = count(chains, function)?;
        let each = total as f64 / (chains + 6) as f64;
        let verdict = match way {
            "for_each()" if each <= GOAL => format!("; goal {GOAL}: kept"),
            "for_each()" => format!("; goal {GOAL}: MISSED"),
            _ => String::new(),
        };
        println!("list {chains} chains by {way}: {each:.1} user instructions a chain{verdict}");
    }
    Ok(())
}

/// Counts the instructions of a function of this program while it lists.
fn count(chains: u64, function: &str) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([
            "--collect-atstart=no",
            &format!("--toggle-collect=*{function}*"),
        ])
        .arg(std::env::current_exe()?)
        .args(["--counted", &chains.to_string()])
        .output()
        .map_err(|error| format!("valgrind (apt-get install valgrind): {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    let total = report
        .lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    Ok(total.ok_or_else(|| format!("no count in valgrind's report:\n{report}"))?)
}

#[inline(never)]
fn counted_for_each(nft: &mut Connection) -> Result<usize> {
    let mut count = 0;
    nft.chains(Filter::family(Family::IP))?.for_each(|chain| {
        read(&chain);
        count += 1;
    })?;
    Ok(count)
}

#[inline(never)]
fn counted_next(nft: &mut Connection) -> Result<usize> {
    let mut count = 0;
    let mut chains = nft.chains(Filter::family(Family::IP))?;
    while let Some(chain) = chains.next()? {
        read(&chain);
        count += 1;
    }
    Ok(count)
}
