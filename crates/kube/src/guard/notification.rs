//! The notifications that a guard sends.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::Attribution;
use crate::declared::Item;

/// A notification of a guard.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Notification {
    /// The time of the event.
    pub at: SystemTime,
    /// The event.
    pub event: Event,
}

/// The event of a notification.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// Everything is present for the first time.
    Ready {
        /// The items that were created for that.
        made: Vec<Item>,
    },
    /// Something had disappeared, and was restored.
    Repaired(Repair),
    /// A check or repair failed; it will be retried. Repetitions of the same failure are reported once.
    Failed {
        /// The error with its causes.
        error: String,
        /// The time until the retry.
        retry: Duration,
    },
    /// Something disappeared that was restored repeatedly: the guard leaves it missing for some time.
    BackedOff {
        /// The missing items.
        missing: Vec<Item>,
        /// The processes that removed it last.
        by: Vec<Attribution>,
        /// The time for which the guard backs off.
        rest: Duration,
    },
    /// The kernel dropped events: everything is checked, and the processes that made the changes are unknown.
    Lost {
        /// A description of the loss.
        cause: String,
    },
}

/// A repair.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Repair {
    /// The items that had disappeared, and were restored.
    pub items: Vec<Item>,
    /// The processes that changed guarded chains since everything was last present, in order; if there are many, the
    /// first ones and the last one. Empty for legacy tables unless the audit log reported them.
    pub by: Vec<Attribution>,
    /// The time since which the items were missing: when the first of these changes was received, or for legacy tables
    /// when their removal was noticed.
    pub since: SystemTime,
    /// The time that the repair took from then on.
    pub took: Duration,
    /// Whether it is the repair at the end of a burst.
    pub trailing: bool,
}

impl Event {
    /// Returns the event's name: `ready`, `repaired`, `failed`, `backed_off`, `lost`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "ready",
            Self::Repaired(_) => "repaired",
            Self::Failed { .. } => "failed",
            Self::BackedOff { .. } => "backed_off",
            Self::Lost { .. } => "lost",
        }
    }
}

impl fmt::Display for Event {
    /// Formats the event in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready { made } if made.is_empty() => f.write_str("everything is present"),
            Self::Ready { made } => write!(f, "everything is present: {} created", made.len()),
            Self::Repaired(repair) => {
                let end = if repair.trailing {
                    ", at the end of a burst"
                } else {
                    ""
                };
                let (count, took) = (repair.items.len(), repair.took);
                write!(f, "{count} disappeared, restored in {took:.1?}{end}")
            }
            Self::Failed { error, retry } => write!(f, "failed, retrying in {retry:?}: {error}"),
            Self::BackedOff { missing, rest, .. } => {
                let count = missing.len();
                write!(
                    f,
                    "backing off for {rest:?}: {count} missing, removed repeatedly by others"
                )
            }
            Self::Lost { cause: what } => write!(f, "events were lost: {what}"),
        }
    }
}
