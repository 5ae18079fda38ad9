//! The time from a flush to its event.

use chainwright_bench::{KubeProxy, events};

use super::{ContenderRecord, Error, Record};

pub(crate) fn measure(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let contenders = events::flush(ruleset, rounds)?;
    Ok(Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        contenders: contenders.into_iter().map(ContenderRecord::from).collect(),
        ..Record::new("from a flush to its event", rounds)
    })
}
