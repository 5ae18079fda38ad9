//! Reports the detected backend whenever it changes.

use std::time::{Duration, Instant};

use super::{DetectedBackend, Detection, Detector, MANGLE};
use chainwright::netlink;
use chainwright::nft::live::{EventObject, Item, Monitor, MonitorOptions};

/// Longest interval between two probes.
const MAX_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Options of a [`Watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchOptions {
    /// The interval at which to read the legacy tables, whose changes the kernel does not report, and to check whether
    /// nf_tables was loaded: at least once a day.
    pub interval: Duration,
}

impl Default for WatchOptions {
    /// Returns an interval of a quarter of a second.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(250),
        }
    }
}

/// Reports each result that differs from the previous one: for callers that wait until a kubelet has initialized, and
/// that must notice when the other backend is used later.
///
/// nf_tables reports its changes; the legacy tables are read at intervals.
#[derive(Debug)]
pub struct Watch {
    detector: Detector,
    options: WatchOptions,
    /// `None` while nf_tables is not loaded.
    monitor: Option<Monitor>,
    last_reported: Option<DetectedBackend>,
}

impl Detector {
    /// Starts watching. The first verdict reported is the current one.
    #[must_use]
    pub const fn watch(self, options: WatchOptions) -> Watch {
        Watch {
            detector: self,
            options,
            monitor: None,
            last_reported: None,
        }
    }

    /// Waits until the backend is determined: until the verdict is neither [`DetectedBackend::Undetermined`] nor
    /// [`DetectedBackend::Unavailable`], or the time is up. Returns the last detection.
    ///
    /// # Errors
    /// Those of [`Watch::next_until`].
    pub fn wait(self, limit: Duration) -> Result<Detection, netlink::Error> {
        let deadline = Instant::now().checked_add(limit);
        let mut watch = self.watch(WatchOptions::default());
        let mut last = None;
        loop {
            match watch.next_until(deadline)? {
                Some(detection) => match detection.detected_backend() {
                    DetectedBackend::Undetermined | DetectedBackend::Unavailable => {
                        last = Some(detection)
                    }
                    _ => return Ok(detection),
                },
                None => return Ok(last.unwrap_or_else(|| watch.detector.probe())),
            }
        }
    }
}

impl Watch {
    /// Waits for the next verdict until `deadline`, or indefinitely for `None`. Returns `None` if there is none by
    /// then.
    ///
    /// # Errors
    /// Those of [`Monitor::receive`]; the watch can still be used afterwards.
    pub fn next_until(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<Detection>, netlink::Error> {
        loop {
            // Open the monitor before looking, so that no change is missed.
            if self.monitor.is_none() {
                match MonitorOptions::default().open_if_loaded() {
                    Ok(monitor) => self.monitor = Some(monitor),
                    Err(netlink::Error::NotLoaded) => {}
                    // `probe` meets the same error and reports it.
                    Err(error) => tracing::debug!(%error, "cannot watch nf_tables"),
                }
            }
            let detection = self.detector.probe();
            if self.last_reported != Some(detection.detected_backend()) {
                self.last_reported = Some(detection.detected_backend());
                return Ok(Some(detection));
            }
            if !self.wait(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Waits until the next time to read the tables; returns `false` if the deadline comes first.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<bool, netlink::Error> {
        let next = Instant::now() + self.options.interval.min(MAX_INTERVAL);
        let until = deadline.map_or(next, |deadline| deadline.min(next));
        match &mut self.monitor {
            None => std::thread::sleep(until.saturating_duration_since(Instant::now())),
            Some(monitor) => {
                while let Some(item) = monitor.receive_until(until)? {
                    // Changes may arrive without end.
                    if is_of_mangle(&item) || Instant::now() >= until {
                        break;
                    }
                }
            }
        }
        Ok(deadline.is_none_or(|deadline| Instant::now() < deadline))
    }
}

/// Returns `true` if a change may affect the hint or the canary.
fn is_of_mangle(item: &Item) -> bool {
    match item {
        Item::Change(change) => change.events().any(|event| {
            event.table().is_some_and(|table| table == MANGLE)
                && matches!(
                    event.object(),
                    Ok(EventObject::Table(_) | EventObject::Chain(_))
                )
        }),
        Item::Lost(_) => true,
        _ => false,
    }
}
