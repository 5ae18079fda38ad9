//! Units of rates.

/// Units of time for rates, with their length in seconds.
const TIMES: [(&str, u64); 5] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    ("week", 604_800),
];

/// Returns the names of the units of time.
pub(super) fn times() -> impl Iterator<Item = &'static str> {
    TIMES.iter().map(|(word, _)| *word)
}

/// Returns the name of the unit of this many seconds.
pub(super) fn time(seconds: u64) -> Option<&'static str> {
    let found = TIMES.iter().find(|(_, known)| *known == seconds);
    found.map(|(word, _)| *word)
}

/// Returns the length of a unit in seconds.
pub(super) fn seconds(word: &str) -> Option<u64> {
    let found = TIMES.iter().find(|(known, _)| *known == word);
    found.map(|(_, seconds)| *seconds)
}
