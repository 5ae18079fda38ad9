//! Formats the objects that a text added, as the kernel reported them.

use chainwright::nft::live::{Change, Event, EventObject};
use chainwright_lang::{Echo, Formatted};

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
    let Echo {
        change,
        mut formatter,
        ..
    } = echo;
    let Some(change) = change else {
        return Vec::new();
    };
    let formatted = formatter.format(&change);
    additions(&change, &formatted)
        .filter_map(|(event, formatted)| line(&event, formatted, handles, describe_rule))
        .collect()
}

/// Formats the added objects in libnftables' JSON. Empty if the events were lost.
#[must_use]
pub fn added_json(echo: Echo) -> Vec<String> {
    let Echo {
        change,
        mut formatter,
        ..
    } = echo;
    let Some(change) = change else {
        return Vec::new();
    };
    let formatted = formatter.format_json(&change);
    let lines = additions(&change, &formatted).filter_map(|(_, formatted)| match formatted {
        Formatted::Line(line) => Some(line.clone()),
        _ => None,
    });
    lines.collect()
}

fn additions<'c, L>(
    change: &'c Change,
    formatted: &'c [Formatted<L>],
) -> impl Iterator<Item = (Event<'c>, &'c Formatted<L>)> {
    let all = change.events().zip(formatted);
    all.filter(|(event, _)| !event.is_deletion())
}
