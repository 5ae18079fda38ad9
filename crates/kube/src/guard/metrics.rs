//! Counters and histograms, written to the recorder of the crate `metrics` if that feature is on.

use std::time::Duration;

#[cfg(feature = "metrics")]
mod facade {
    use super::Duration;

    pub(in super::super) fn repaired(items: usize, took: Duration) {
        metrics::counter!("chainwright_guard_repairs_total").increment(1);
        metrics::counter!("chainwright_guard_vanished_total").increment(items as u64);
        metrics::histogram!("chainwright_guard_repair_seconds").record(took);
    }

    pub(in super::super) fn failed() {
        metrics::counter!("chainwright_guard_failures_total").increment(1);
    }

    pub(in super::super) fn backed_off() {
        metrics::counter!("chainwright_guard_backed_off_total").increment(1);
    }

    pub(in super::super) fn lost() {
        metrics::counter!("chainwright_guard_lost_total").increment(1);
    }
}

#[cfg(not(feature = "metrics"))]
mod facade {
    use super::Duration;

    pub(in super::super) const fn repaired(_items: usize, _took: Duration) {}
    pub(in super::super) const fn failed() {}
    pub(in super::super) const fn backed_off() {}
    pub(in super::super) const fn lost() {}
}

pub(super) use facade::{backed_off, failed, lost, repaired};
