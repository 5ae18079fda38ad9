//! Expected outcomes of packets on the command line.

use chainwright_trace::{End, Outcome, Trace};
use serde::Serialize;

use crate::packet::End as PacketEnd;

/// An expected outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Accepted,
    Dropped,
    Translated(PacketEnd),
}

/// Whether an outcome is the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Yes,
    No,
    /// Only for some random choices, or some values of unknown properties.
    Sometimes,
    /// The outcome of at least one path is unknown.
    Unknown,
}

impl Expected {
    /// Parses `accepted`, `dropped` or `dnat to ADDRESS[:PORT]`.
    pub(crate) fn from_text(text: &str) -> Result<Self, String> {
        Self::parse(&text.split_whitespace().collect::<Vec<_>>())
    }

    /// Parses the words of an outcome.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        match words {
            ["accepted"] => Ok(Self::Accepted),
            ["dropped"] => Ok(Self::Dropped),
            ["dnat", "to", to] => {
                let to = PacketEnd::parse(to)?;
                match to.address {
                    Some(_) => Ok(Self::Translated(to)),
                    None => Err("dnat to what? An address is expected".into()),
                }
            }
            _ => Err(format!(
                "{:?} is not an outcome: expected accepted, dropped or dnat to ADDRESS[:PORT]",
                words.join(" ")
            )),
        }
    }

    /// Returns whether a path ends with this outcome; `None` if that is unknown.
    fn matches(self, end: &End) -> Option<bool> {
        let passes = match end.outcome {
            Outcome::Delivered | Outcome::Forwarded | Outcome::Sent => true,
            Outcome::Dropped | Outcome::Rejected(_) => false,
            _ => return None,
        };
        match self {
            Self::Accepted => Some(passes),
            Self::Dropped => Some(!passes),
            Self::Translated(_) if !passes => Some(false),
            Self::Translated(to) => {
                let expected = [
                    (&end.packet.destination, to.address.map(|to| to.to_string())),
                    (
                        &end.packet.destination_port,
                        to.port.map(|to| to.to_string()),
                    ),
                ];
                let parts = expected.into_iter().filter_map(|(real, expected)| {
                    expected.map(|expected| real.known().map(|real| real == expected))
                });
                let parts: Vec<_> = parts.collect();
                match parts.contains(&Some(false)) {
                    true => Some(false),
                    false => (!parts.contains(&None)).then_some(true),
                }
            }
        }
    }

    /// Compares a trace's outcomes with the expected one.
    pub(crate) fn verdict(self, trace: &Trace) -> Verdict {
        let possible = trace.ends.iter().filter(|end| end.probability > 0.0);
        let matches: Vec<_> = possible.map(|end| self.matches(end)).collect();
        let is_known = !trace.is_truncated && !matches.is_empty() && !matches.contains(&None);
        match (
            matches.contains(&Some(true)),
            matches.contains(&Some(false)),
        ) {
            (true, true) => Verdict::Sometimes,
            (true, false) if is_known => Verdict::Yes,
            (false, true) if is_known => Verdict::No,
            _ => Verdict::Unknown,
        }
    }
}
