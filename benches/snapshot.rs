//! Reading the whole ruleset, compared with the cheaper of two baselines: the chains and then the rules
//! of each chain, or one dump of all rules, each with the replies discarded. Also the memory that a
//! snapshot takes.
//!
//! The kernel's time for the one dump grows with the square of the number of rules: the dump is
//! omitted above 20,000 chains, where it is by far the more expensive one.
//!
//! `cargo bench --bench snapshot [-- CHAINS …]`

mod common;

use std::hint::black_box;

use chainwright::nft::{Connection, Family, Refreshed, Scope, Snapshot, Table, Transaction};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{Contender, KubeProxy, alternate, resident};
use common::{BoxError, Result, counts, in_sandbox, loaded, report, verdict};

/// Largest number of chains with which the one dump is measured.
const ONE_DUMP: usize = 20_000;
/// Number of rounds that determine the cheaper baseline.
const TRIAL: usize = 3;
/// Smallest number of chains with goals.
const LARGE: usize = 50_000;
/// The goals: CPU time as a multiple of the cheaper baseline, memory as a multiple of the messages.
const CPU: f64 = 1.10;
const MEMORY: f64 = 1.30;

fn main() -> Result {
    for chains in counts(&[1_000, 10_000, 50_000]) {
        in_sandbox(|| whole(chains))?;
    }
    Ok(())
}

fn rules(snapshot: &Snapshot) -> usize {
    let chains = snapshot.tables().flat_map(|table| table.chains());
    chains.map(|chain| chain.rules().len()).sum()
}

fn whole(chains: usize) -> Result {
    let ruleset = KubeProxy { chains };
    let mut nft = loaded(chains)?;
    let before = resident()?;
    let snapshot = nft.snapshot(Scope::all())?;
    let grown = resident()?.saturating_sub(before);
    assert_eq!(rules(&snapshot), ruleset.rules());
    let (length, memory) = (snapshot.byte_length(), snapshot.memory());
    drop(snapshot);

    let (family, table) = ruleset.table();
    let (all_chains, all_rules) = (Request::chains(Family::IP), Request::rules(Family::IP));
    let each_chain: Vec<_> = ruleset
        .chain_names()
        .map(|name| Request::rules_of(family, table, &name))
        .collect();
    let (mut first, mut second) = (Baseline::open()?, Baseline::open()?);
    let mut by_chain = || {
        black_box(first.dump(&all_chains)?);
        black_box(first.dump_each(&each_chain)?);
        Ok(())
    };
    let mut one_dump = || {
        black_box(second.dump(&all_rules)?);
        Ok(())
    };
    let mut baseline: Contender<'_, BoxError> =
        ("baseline: chains, then a dump a chain", &mut by_chain);
    if chains <= ONE_DUMP {
        let one: Contender<'_, BoxError> = ("baseline: one dump of all rules", &mut one_dump);
        let mut both = [baseline, one];
        let trial = alternate(TRIAL, &mut both)?;
        println!(
            "\none dump of all {} rules takes {:.2} × a dump a chain",
            ruleset.rules(),
            trial[1].ratio
        );
        let [first, second] = both;
        baseline = if trial[1].ratio < 1.0 { second } else { first };
    }
    let rounds = (200_000 / chains).clamp(9, 51);
    // A refresh needs a change: a separate table is created and deleted in turn, which the time
    // includes.
    let mut writer = Connection::open()?;
    let mut kept = writer.snapshot(Scope::family(Family::IP))?;
    let mut there = false;
    let measured = alternate(
        rounds,
        &mut [
            baseline,
            ("refresh(), in the memory of the last one", &mut || {
                let other = Table::new(Family::IP6, "other");
                let mut tx = Transaction::new();
                match there {
                    true => tx.delete(&other)?,
                    false => tx.add(&other)?,
                };
                there = !there;
                writer.commit(&tx)?;
                assert_eq!(kept.refresh(&mut writer)?, Refreshed::Reread);
                Ok(())
            }),
            ("snapshot(), dropped again", &mut || {
                black_box(nft.snapshot(Scope::all())?);
                Ok(())
            }),
        ],
    )?;
    let title = format!("read {chains} chains with {} rules", ruleset.rules());
    let is_large = chains >= LARGE;
    report(&title, &measured, is_large.then_some(CPU));
    for (what, bytes) in [
        ("Snapshot::memory()", memory),
        ("growth of the process", grown),
    ] {
        let ratio = bytes as f64 / length as f64;
        let verdict = match is_large {
            true => verdict(ratio, MEMORY),
            false => String::new(),
        };
        println!(
            "  {what:<44} {:>12} {:>12} {ratio:>8.3}{verdict}",
            format!("{:.1} MB", bytes as f64 / 1e6),
            format!("of {:.1} MB", length as f64 / 1e6),
        );
    }
    Ok(())
}
