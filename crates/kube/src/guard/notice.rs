//! What the guard tells.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::Culprit;
use crate::declared::Item;

/// What a guard tells of.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Notice {
    /// When.
    pub at: SystemTime,
    /// What.
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// For the first time everything is there.
    Ready {
        /// What was made for it.
        made: Vec<Item>,
    },
    /// Something had vanished, and was made again.
    Repaired(Repair),
    /// It could not be looked, or not be made; it will be tried again. Of the same failure again and again it is told once.
    Failed {
        /// Why, with the causes.
        error: String,
        /// When it is tried again.
        retry: Duration,
    },
    /// Something has vanished that was made again and again: it is left so for some time.
    GaveWay {
        /// What is missing.
        missing: Vec<Item>,
        /// Who took it away last.
        by: Vec<Culprit>,
        /// For how long.
        rest: Duration,
    },
    /// The kernel dropped events: everything is looked at anew, and who changed it is not known.
    Lost {
        /// What was lost.
        what: String,
    },
}

/// A repair.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Repair {
    /// What had vanished, and was made again.
    pub items: Vec<Item>,
    /// Who changed what is guarded since it was complete, in their order; of many the first and the last. Not known on legacy
    /// tables, of whose changes the kernel does not tell.
    pub by: Vec<Culprit>,
    /// Since when it was missing: when the first of these changes was told, or on legacy tables when it was seen.
    pub since: SystemTime,
    /// How long it took from then on.
    pub took: Duration,
    /// Whether it is the repair at the end of a burst.
    pub trailing: bool,
}

impl Event {
    /// Its name: `ready`, `repaired`, `failed`, `gave_way`, `lost`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "ready",
            Self::Repaired(_) => "repaired",
            Self::Failed { .. } => "failed",
            Self::GaveWay { .. } => "gave_way",
            Self::Lost { .. } => "lost",
        }
    }
}

impl fmt::Display for Event {
    /// In one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready { made } if made.is_empty() => f.write_str("everything is there"),
            Self::Ready { made } => write!(f, "everything is there: {} made", made.len()),
            Self::Repaired(repair) => {
                let end = if repair.trailing {
                    ", at the end of a burst"
                } else {
                    ""
                };
                let (count, took) = (repair.items.len(), repair.took);
                write!(f, "{count} vanished, made again in {took:.1?}{end}")
            }
            Self::Failed { error, retry } => write!(f, "failed, again in {retry:?}: {error}"),
            Self::GaveWay { missing, rest, .. } => {
                let count = missing.len();
                write!(
                    f,
                    "gave way for {rest:?}: {count} missing, taken away again and again"
                )
            }
            Self::Lost { what } => write!(f, "events were lost: {what}"),
        }
    }
}
