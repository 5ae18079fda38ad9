//! Reading the whole ruleset, compared with the kernel's listing of its rules.

use std::hint::black_box;

use chainwright::nft::{Connection, Family, Scope};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{Contender, KubeProxy, Measured, alternate};

use super::tools::{Tool, compare};
use super::{ContenderRecord, Error, Record};

/// The tools to compare with.
const TOOLS: &[Tool<'_>] = &[
    ("nft", &["list", "ruleset"]),
    ("iptables-nft-save", &["-t", "nat"]),
];

/// The one dump is not measured above this number of chains: its cost grows with the square of their number.
const ONE_DUMP: usize = 20_000;
/// Number of rounds to find the cheaper baseline.
const TRIAL: usize = 3;

const BY_CHAIN: &str = "baseline: chains, then a dump a chain";
const ONE: &str = "baseline: one dump of all rules";

pub(crate) fn measure(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let mut nft = Connection::open()?;
    ruleset.load(&mut nft)?;
    let (family, table) = ruleset.table();
    let all_chains = Request::chains(Family::IP);
    let all_rules = Request::rules(Family::IP);
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
    let mut ours = || {
        let snapshot = nft.snapshot(Scope::all())?;
        let rules: usize = snapshot
            .tables()
            .flat_map(|table| table.chains())
            .map(|chain| chain.rules().len())
            .sum();
        if rules == ruleset.rules() {
            Ok(())
        } else {
            Err(Error::from(format!("{rules} rules were read")))
        }
    };

    let mut notes = Vec::new();
    let mut dearer: Option<Measured> = None;
    let mut baseline: Contender<'_, Error> = (BY_CHAIN, &mut by_chain);
    if chains <= ONE_DUMP {
        let mut both: [Contender<'_, Error>; 2] = [baseline, (ONE, &mut one_dump)];
        let trial = alternate(TRIAL, &mut both)?;
        let [first, second] = both;
        let [mut of_first, mut of_second] =
            <[_; 2]>::try_from(trial).map_err(|_| "two contenders return different results")?;
        if of_second.ratio < 1.0 {
            of_first.ratio = of_second.ratio.recip();
            baseline = second;
            dearer = Some(of_first);
        } else {
            of_second.name = ONE.into();
            baseline = first;
            dearer = Some(of_second);
        }
    } else {
        notes.push(format!(
            "{ONE}: left out above {ONE_DUMP} chains, because its time is quadratic in the rules"
        ));
    }
    let mut contenders: [Contender<'_, Error>; 2] =
        [baseline, ("chainwright, snapshot", &mut ours)];
    let mut measured = alternate(rounds, &mut contenders)?;
    measured.splice(1..1, dearer);
    let [baseline, _] = contenders;
    let (tools, not_installed) = compare(rounds, &mut || Ok(()), baseline, TOOLS)?;
    measured.extend(tools);
    Ok(Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        contenders: measured.into_iter().map(ContenderRecord::from).collect(),
        not_installed,
        notes,
        ..Record::new("read the whole ruleset", rounds)
    })
}
