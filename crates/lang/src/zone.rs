//! Time zone for days and hours.

use std::sync::OnceLock;

use jiff::tz::TimeZone;

/// Time zone: the system's or a named one. The system's zone is looked up lazily, at the first day or hour in a text,
/// because few texts have one and the lookup reads directories.
#[derive(Debug, Clone, Default)]
pub(super) struct Zone(OnceLock<TimeZone>);

impl Zone {
    /// Returns a zone of the IANA database; `None` if the name is unknown.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(Self(TimeZone::get(name).ok()?.into()))
    }

    pub(super) fn get(&self) -> &TimeZone {
        self.0.get_or_init(TimeZone::system)
    }
}
