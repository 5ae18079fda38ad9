//! The observer: checks in a tight loop whether all of kubelet's chains exist.

use std::time::{Duration, Instant};

use chainwright::nft::Connection;
use chainwright_kube::kubelet::Item;
use serde::Serialize;

use super::{Error, Stop, milliseconds};

/// The results of an observer.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Observation {
    /// Number of checks for all chains.
    pub(crate) checks: u64,
    /// Number of checks that found a chain missing.
    pub(crate) misses: u64,
    /// Number of periods in which each check found a chain missing.
    pub(crate) gaps: u32,
    /// Total length of all gaps in milliseconds: from the first check that found a chain missing to the first that
    /// found all.
    pub(crate) missing_ms: f64,
    /// The length of the longest gap, in milliseconds.
    pub(crate) longest_gap_ms: f64,
}

/// Checks for the chains until it is stopped.
pub(crate) fn watch(stop: &Stop, chains: &[Item]) -> Result<Observation, Error> {
    let mut nft = Connection::open()?;
    let mut seen = Observation::default();
    let mut gap: Option<Instant> = None;
    loop {
        // Read first, so that the last check happens after the end of the observed activity.
        let last = stop.is_set();
        let complete = is_complete(&mut nft, chains)?;
        seen.checks += 1;
        if !complete {
            seen.misses += 1;
            gap.get_or_insert_with(Instant::now);
        }
        if (complete || last)
            && let Some(start) = gap.take()
        {
            seen.end(start.elapsed());
        }
        if last {
            return Ok(seen);
        }
    }
}

impl Observation {
    /// Counts a gap.
    fn end(&mut self, gap: Duration) {
        let length = milliseconds(gap);
        self.gaps += 1;
        self.missing_ms += length;
        self.longest_gap_ms = self.longest_gap_ms.max(length);
    }
}

fn is_complete(nft: &mut Connection, chains: &[Item]) -> Result<bool, Error> {
    for item in chains {
        if !nft.chain_exists(item.family.into(), &*item.table, &*item.chain)? {
            return Ok(false);
        }
    }
    Ok(true)
}
