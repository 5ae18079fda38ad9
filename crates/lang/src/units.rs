//! The units of rates.

/// What a rate is given for, and how many seconds that is.
const TIMES: [(&str, u64); 5] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    ("week", 604_800),
];

/// What these words are.
pub(super) fn times() -> impl Iterator<Item = &'static str> {
    TIMES.iter().map(|(word, _)| *word)
}

/// The word for so many seconds, if there is one.
pub(super) fn time(seconds: u64) -> Option<&'static str> {
    let found = TIMES.iter().find(|(_, known)| *known == seconds);
    found.map(|(word, _)| *word)
}

/// How many seconds a word is for.
pub(super) fn seconds(word: &str) -> Option<u64> {
    let found = TIMES.iter().find(|(known, _)| *known == word);
    found.map(|(_, seconds)| *seconds)
}
