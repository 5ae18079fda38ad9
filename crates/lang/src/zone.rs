//! The time zone of days and hours.

use std::sync::OnceLock;

use jiff::tz::TimeZone;

/// The system's time zone, or another one. The system's is looked up when a text first has a day or an hour: few have one, and
/// it takes reading directories.
#[derive(Debug, Clone, Default)]
pub(super) struct Zone(OnceLock<TimeZone>);

impl Zone {
    /// One of the IANA's database; `None` if it is not known.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(Self(TimeZone::get(name).ok()?.into()))
    }

    pub(super) fn get(&self) -> &TimeZone {
        self.0.get_or_init(TimeZone::system)
    }
}
