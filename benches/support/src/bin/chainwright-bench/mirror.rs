//! A mirror: a changed rule, look-ups, memory.

use chainwright::nft::live::Mirror;
use chainwright::nft::{Connection, Scope};
use chainwright_bench::KubeProxy;
use chainwright_bench::mirror::{look_ups, one_rule};

use super::{Contestant, Error, Memory, Record};

/// How many look-ups a round has.
const LOOK_UPS: usize = 100_000;

/// Somebody changes one rule, and it is made what is desired.
pub(crate) fn change(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let one = one_rule(ruleset, rounds)?;
    Ok(Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        contenders: one.contenders.into_iter().map(Contestant::from).collect(),
        notes: vec![format!(
            "of that plan(): {:.1?} on the clock; the first one, which looks at everything: {:.1?}",
            one.plan, one.first_plan
        )],
        ..Record::new("make one changed rule what a mirror's plan desires", rounds)
    })
}

/// Memory, and look-ups of chains.
pub(crate) fn look_up(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let (family, table) = ruleset.table();
    ruleset.load(&mut Connection::open()?)?;
    let mirror = Mirror::open(Connection::open()?, &Scope::table(family, table))?;
    let snapshot = mirror.snapshot();
    let contenders = look_ups(snapshot, ruleset, LOOK_UPS, rounds)?;
    // With the numbers that look-ups go by.
    let (bytes, of) = (snapshot.memory(), snapshot.byte_length());
    Ok(Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        contenders: contenders.into_iter().map(Contestant::from).collect(),
        memory: Some(Memory {
            bytes,
            ratio_to_ruleset: Some(bytes as f64 / of as f64),
            bytes_each_endpoint: None,
        }),
        notes: vec![format!("look-ups in a round: {LOOK_UPS}")],
        ..Record::new("look up chains in a mirror", rounds)
    })
}
