//! A mirror: a changed rule, lookups, memory.

use chainwright::nft::live::Mirror;
use chainwright::nft::{Connection, Scope};
use chainwright_bench::KubeProxy;
use chainwright_bench::mirror::{lookups, one_rule};

use super::{ContenderRecord, Error, Memory, Record};

/// Number of lookups in a round.
const LOOK_UPS: usize = 100_000;

/// Measures how a mirror restores a rule that another program changed.
pub(crate) fn change(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let one = one_rule(ruleset, rounds)?;
    Ok(Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        contenders: one
            .contenders
            .into_iter()
            .map(ContenderRecord::from)
            .collect(),
        notes: vec![format!(
            "plan(): {:.1?} wall time of that; the first one, which reads everything: {:.1?}",
            one.plan, one.first_plan
        )],
        ..Record::new("revert one changed rule by a mirror's plan", rounds)
    })
}

/// Measures memory, and lookups of chains.
pub(crate) fn lookup(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let (family, table) = ruleset.table();
    ruleset.load(&mut Connection::open()?)?;
    let mirror = Mirror::open(Connection::open()?, &Scope::table(family, table))?;
    let snapshot = mirror.snapshot();
    let contenders = lookups(snapshot, ruleset, LOOK_UPS, rounds)?;
    // Includes the indexes for lookups.
    let (bytes, of) = (snapshot.memory(), snapshot.byte_length());
    Ok(Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        contenders: contenders.into_iter().map(ContenderRecord::from).collect(),
        memory: Some(Memory {
            bytes,
            ratio_to_ruleset: Some(bytes as f64 / of as f64),
            bytes_each_endpoint: None,
        }),
        notes: vec![format!("lookups in a round: {LOOK_UPS}")],
        ..Record::new("look up chains in a mirror", rounds)
    })
}
