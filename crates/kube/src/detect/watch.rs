//! Verdicts as they change.

use std::time::{Duration, Instant};

use super::{Detection, Detector, MANGLE, Verdict};
use chainwright::netlink;
use chainwright::nft::live::{EventObject, Item, Monitor, MonitorOptions};

/// Longer than this nobody is to wait for a look.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How a [`Watch`] looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchOptions {
    /// How often the legacy tables are looked at, of whose changes nobody tells, and whether nf_tables have been loaded: at
    /// least once a day.
    pub interval: Duration,
}

impl Default for WatchOptions {
    /// Four times a second.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(250),
        }
    }
}

/// Tells each verdict that differs from the one before: for who waits until a kubelet has initialised, and is to know when
/// the other backend comes up later.
///
/// nf_tables tell of their changes; the legacy tables are looked at in intervals.
#[derive(Debug)]
pub struct Watch {
    detector: Detector,
    options: WatchOptions,
    /// None while nf_tables are not loaded.
    monitor: Option<Monitor>,
    told: Option<Verdict>,
}

impl Detector {
    /// Watches from here on. The first that it tells is what there is now.
    #[must_use]
    pub const fn watch(self, options: WatchOptions) -> Watch {
        Watch {
            detector: self,
            options,
            monitor: None,
            told: None,
        }
    }

    /// Waits until the backend is determined: until the verdict is neither [`Verdict::Undetermined`] nor
    /// [`Verdict::Unavailable`], or the time is up. What was found last.
    ///
    /// # Errors
    /// As [`Watch::next_until`].
    pub fn wait(self, limit: Duration) -> Result<Detection, netlink::Error> {
        let deadline = Instant::now().checked_add(limit);
        let mut watch = self.watch(WatchOptions::default());
        let mut last = None;
        loop {
            match watch.next_until(deadline)? {
                Some(detection) => match detection.verdict() {
                    Verdict::Undetermined | Verdict::Unavailable => last = Some(detection),
                    _ => return Ok(detection),
                },
                None => return Ok(last.unwrap_or_else(|| watch.detector.look())),
            }
        }
    }
}

impl Watch {
    /// Waits for the next verdict until this moment, without end for `None`; `None` if there is none by then.
    ///
    /// # Errors
    /// Those of [`Monitor::receive`]; it can be used on.
    pub fn next_until(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<Detection>, netlink::Error> {
        loop {
            // Before it is looked: no change is missed.
            if self.monitor.is_none() {
                match MonitorOptions::default().open_to_look() {
                    Ok(monitor) => self.monitor = Some(monitor),
                    Err(netlink::Error::NotLoaded) => {}
                    // What looking meets as well, and tells.
                    Err(error) => tracing::debug!(%error, "nf_tables cannot be watched"),
                }
            }
            let detection = self.detector.look();
            if self.told != Some(detection.verdict()) {
                self.told = Some(detection.verdict());
                return Ok(Some(detection));
            }
            if !self.wait(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Waits until it is time to look again; `false` if the time is up before.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<bool, netlink::Error> {
        let next = Instant::now() + self.options.interval.min(LONGEST);
        let until = deadline.map_or(next, |deadline| deadline.min(next));
        match &mut self.monitor {
            None => std::thread::sleep(until.saturating_duration_since(Instant::now())),
            Some(monitor) => {
                while let Some(item) = monitor.receive_until(until)? {
                    // Changes may come without end.
                    if is_of_mangle(&item) || Instant::now() >= until {
                        break;
                    }
                }
            }
        }
        Ok(deadline.is_none_or(|deadline| Instant::now() < deadline))
    }
}

/// Whether a change may be one of the hint or the canary.
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
