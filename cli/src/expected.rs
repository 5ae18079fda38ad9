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
    /// It depends on unknown or random values.
    Sometimes,
}

impl Expected {
    /// Parses `accepted`, `dropped` or `dnat to ADDRESS[:PORT]`.
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

    fn is(self, end: &End) -> bool {
        let passes = matches!(
            end.outcome,
            Outcome::Delivered | Outcome::Forwarded | Outcome::Sent
        );
        match self {
            Self::Accepted => passes,
            Self::Dropped => matches!(end.outcome, Outcome::Dropped | Outcome::Rejected(_)),
            Self::Translated(to) => {
                let is = |known: Option<&str>, wanted: Option<String>| {
                    wanted.is_none_or(|wanted| known == Some(wanted.as_str()))
                };
                let packet = &end.packet;
                passes
                    && is(
                        packet.destination.known(),
                        to.address.map(|to| to.to_string()),
                    )
                    && is(
                        packet.destination_port.known(),
                        to.port.map(|to| to.to_string()),
                    )
            }
        }
    }

    /// Compares a trace's outcomes with the expected one.
    pub(crate) fn verdict(self, trace: &Trace) -> Verdict {
        let possible = || trace.ends.iter().filter(|end| end.probability > 0.0);
        match (
            possible().any(|end| self.is(end)),
            possible().all(|end| self.is(end)),
        ) {
            (true, true) => Verdict::Yes,
            (true, false) => Verdict::Sometimes,
            (false, _) => Verdict::No,
        }
    }
}
