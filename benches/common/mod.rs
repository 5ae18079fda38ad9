//! Shared by the benches: a private namespace, and the printed table.
#![allow(dead_code, reason = "each bench uses its own part of this module")]

use std::error::Error;
use std::hint::black_box;

use chainwright::nft::{ChainRef, Connection};
use chainwright_bench::{KubeProxy, Measured};
use chainwright_testing::{Sandbox, become_namespace_root};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
pub(crate) type Result<T = ()> = std::result::Result<T, BoxError>;

/// Runs a bench in a private network namespace, as root or as a user without privileges.
pub(crate) fn in_sandbox(work: impl FnOnce() -> Result + Send) -> Result {
    become_namespace_root()?; // before any thread starts
    Sandbox::new()?.run(work)?
}

/// Opens a connection to this namespace, and loads a kube-proxy's ruleset with this many chains.
pub(crate) fn loaded(chains: usize) -> Result<Connection> {
    let mut nft = Connection::open()?;
    KubeProxy { chains }.load(&mut nft)?;
    Ok(nft)
}

/// Reads every base attribute of a chain, so that the compiler cannot omit any.
#[inline(always)] // so that the count covers the listing, not a call
pub(crate) fn read(chain: &ChainRef<'_>) {
    black_box(chain.family());
    black_box(chain.table());
    black_box(chain.name());
    black_box(chain.handle());
    if let Some(hook) = chain.hook() {
        black_box((hook.number, hook.priority));
    }
    black_box(chain.policy());
    black_box(chain.chain_type());
    black_box(chain.flags());
    black_box(chain.references());
}

/// The numbers among the command's arguments; `default` if there are none.
pub(crate) fn counts(default: &[usize]) -> Vec<usize> {
    let counts: Vec<usize> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    if counts.is_empty() {
        default.to_vec()
    } else {
        counts
    }
}

/// Whether a ratio meets its goal, in words.
pub(crate) fn verdict(ratio: f64, goal: f64) -> String {
    let word = if ratio <= goal { "kept" } else { "MISSED" };
    format!("  goal {goal:.2}: {word}")
}

/// Prints the measurements, and whether each contender meets the goal, if there is one.
pub(crate) fn report(title: &str, measured: &[Measured], goal: impl Into<Option<f64>>) {
    let goal = goal.into();
    println!("\n{title}");
    println!(
        "  {:<44} {:>12} {:>12} {:>12} {:>8}",
        "", "CPU", "in kernel", "clock", "ratio"
    );
    for (index, one) in measured.iter().enumerate() {
        let verdict = match goal {
            Some(goal) if index > 0 => verdict(one.ratio, goal),
            _ => String::new(),
        };
        println!(
            "  {:<44} {:>12} {:>12} {:>12} {:>8.3}{verdict}",
            one.name,
            format!("{:.1?}", one.cpu),
            format!("{:.1?}", one.cpu.mul_f64(one.kernel)),
            format!("{:.1?}", one.wall),
            one.ratio,
        );
    }
}
