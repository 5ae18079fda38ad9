//! What the benches share: a private namespace, and the table that they print.
#![allow(dead_code, reason = "each bench uses its own part of this module")]

use std::error::Error;
use std::hint::black_box;

use chainwright::nft::{ChainRef, Connection};
use chainwright_bench::{KubeProxy, Measured};
use chainwright_testing::{Sandbox, become_namespace_root};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
pub(crate) type Result<T = ()> = std::result::Result<T, BoxError>;

/// Runs a bench in a private network namespace, with or without root's rights.
pub(crate) fn in_sandbox(work: impl FnOnce() -> Result + Send) -> Result {
    become_namespace_root()?; // before any thread
    Sandbox::new()?.run(work)?
}

/// A connection to this namespace, in which a kube-proxy's ruleset of so many chains was loaded.
pub(crate) fn loaded(chains: usize) -> Result<Connection> {
    let mut nft = Connection::open()?;
    KubeProxy { chains }.load(&mut nft)?;
    Ok(nft)
}

/// Reads every base attribute of a chain; the compiler can leave none out.
#[inline(always)] // what is counted is the listing, not a call
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

/// The numbers among the command's arguments; these, if there are none.
pub(crate) fn counts(usual: &[usize]) -> Vec<usize> {
    let counts: Vec<usize> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    if counts.is_empty() {
        usual.to_vec()
    } else {
        counts
    }
}

/// Whether a ratio keeps its goal, in words.
pub(crate) fn verdict(ratio: f64, goal: f64) -> String {
    let word = if ratio <= goal { "kept" } else { "MISSED" };
    format!("  goal {goal:.2}: {word}")
}

/// Prints what was measured, and whether each contender keeps the goal, if there is one.
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
