//! Formats the objects that a text added, as the kernel reported them.

use chainwright::nft::live::{Change, Event, EventObject};
use chainwright_lang::{Echo, EventFormatter, Formatted};

use crate::context::DescribeRule;

/// The note for an echo [that was lost](Echo::is_lost).
pub const LOST_ECHO: &str =
    "done, but the kernel did not report everything that was added: list it";

/// Formats an event in nft's syntax, or as a comment if nft's language cannot express it; `None` if it is a part of
/// another event's line.
#[must_use]
pub fn line(
    event: &Event<'_>,
    formatted: &Formatted,
    handles: bool,
    describe_rule: &DescribeRule<'_>,
) -> Option<String> {
    match formatted {
        Formatted::Within => None,
        Formatted::Line(line) if handles => Some(format!("{line:#}")),
        Formatted::Line(line) => Some(line.to_string()),
        _ => {
            let rule = match event.object() {
                Ok(EventObject::Rule(rule)) => describe_rule(&rule),
                _ => None,
            };
            Some(match rule {
                Some(rule) => format!("# {event}: {rule}"),
                None => format!("# {event}"),
            })
        }
    }
}

/// Formats the added objects, one line each. Empty if the events were lost.
#[must_use]
pub fn added(echo: Echo, handles: bool, describe_rule: &DescribeRule<'_>) -> Vec<String> {
    additions(echo, EventFormatter::format, |event, formatted| {
        line(event, &formatted, handles, describe_rule)
    })
}

/// Formats the added objects in libnftables' JSON. Empty if the events were lost.
#[must_use]
pub fn added_json(echo: Echo) -> Vec<String> {
    additions(
        echo,
        EventFormatter::format_json,
        |_, formatted| match formatted {
            Formatted::Line(line) => Some(line),
            _ => None,
        },
    )
}

fn additions<L>(
    echo: Echo,
    format: impl FnOnce(&mut EventFormatter, &Change) -> Vec<Formatted<L>>,
    line: impl Fn(&Event<'_>, Formatted<L>) -> Option<String>,
) -> Vec<String> {
    let Echo {
        change,
        mut formatter,
        ..
    } = echo;
    let Some(change) = change else {
        return Vec::new();
    };
    let formatted = format(&mut formatter, &change);
    let added = change.events().zip(formatted);
    added
        .filter(|(event, _)| !event.is_deletion())
        .filter_map(|(event, formatted)| line(&event, formatted))
        .collect()
}
