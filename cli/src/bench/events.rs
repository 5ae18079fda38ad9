//! From a flush to the event that tells of it.

use chainwright_bench::{KubeProxy, events};

use super::{Contestant, Record};
use crate::output::Error;

pub(super) fn measure(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let contenders = events::flush(ruleset, rounds).map_err(Error::measured)?;
    Ok(Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        contenders: contenders.into_iter().map(Contestant::from).collect(),
        ..Record::new("from a flush to the event that tells of it", rounds)
    })
}
