//! The observer: asks in a tight loop whether all of kubelet's chains are there.

use std::time::{Duration, Instant};

use chainwright::nft::Connection;
use chainwright_kube::kubelet::Item;
use serde::Serialize;

use super::{Error, Stop, milliseconds};

/// What an observer saw.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Seen {
    /// How often it looked for all the chains.
    pub(crate) looks: u64,
    /// How often one of them was missing.
    pub(crate) misses: u64,
    /// Stretches of time in which each look missed one.
    pub(crate) gaps: u32,
    /// The length of all gaps together, in milliseconds: from the first look that missed a chain
    /// to the first that missed none.
    pub(crate) missing_ms: f64,
    /// The length of the longest gap, in milliseconds.
    pub(crate) longest_gap_ms: f64,
}

/// Looks for the chains until it is told to stop.
pub(crate) fn watch(stop: &Stop, chains: &[Item]) -> Result<Seen, Error> {
    let mut nft = Connection::open()?;
    let mut seen = Seen::default();
    let mut gap: Option<Instant> = None;
    loop {
        // Read first, so that the last look comes after the end of what was to be watched.
        let last = stop.is_set();
        let complete = all_there(&mut nft, chains)?;
        seen.looks += 1;
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

impl Seen {
    /// Counts a gap.
    fn end(&mut self, gap: Duration) {
        let length = milliseconds(gap);
        self.gaps += 1;
        self.missing_ms += length;
        self.longest_gap_ms = self.longest_gap_ms.max(length);
    }
}

fn all_there(nft: &mut Connection, chains: &[Item]) -> Result<bool, Error> {
    for item in chains {
        if !nft.chain_exists(item.family.into(), &*item.table, &*item.chain)? {
            return Ok(false);
        }
    }
    Ok(true)
}
