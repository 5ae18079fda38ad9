//! Reports the results of a script, as text and as JSON.

use chainwright::nft::Outcome;
use chainwright::nft::live::{Change, Event, EventObject};
use chainwright_lang::{Echo, Formatted, RunError};

use crate::output::{Error, note, say};
use crate::rules::{Sets, format_rule};

/// Formats an event in nft's syntax, or as a comment if nft cannot express it; `None` if it is printed together with
/// another one.
pub(crate) fn line(
    event: &Event<'_>,
    told: &Formatted,
    handles: bool,
    sets: &Sets,
) -> Option<String> {
    match told {
        Formatted::Within => None,
        Formatted::Line(line) if handles => Some(format!("{line:#}")),
        Formatted::Line(line) => Some(line.to_string()),
        _ => Some(match event.object() {
            Ok(EventObject::Rule(rule)) => format!("# {event}: {}", format_rule(&rule, sets)),
            _ => format!("# {event}"),
        }),
    }
}

/// Formats the added objects, one line each.
pub(crate) fn added(echo: Echo, handles: bool, sets: &Sets) -> Vec<String> {
    let Echo { mut formatter, .. } = echo;
    let describe = |change: &Change| {
        let told = formatter.format(change);
        let lines = change.events().zip(&told);
        let added = lines.filter(|(event, _)| !event.is_deletion());
        added
            .filter_map(|(event, told)| line(&event, told, handles, sets))
            .collect()
    };
    complete(echo.change.as_ref(), echo.is_lost, describe)
}

/// Formats the added objects in libnftables' JSON.
pub(crate) fn added_json(echo: Echo) -> Vec<String> {
    let Echo { mut formatter, .. } = echo;
    let describe = |change: &Change| {
        let told = formatter.format_json(change);
        let lines = change.events().zip(told);
        let added = lines.filter(|(event, _)| !event.is_deletion());
        added
            .filter_map(|(_, told)| match told {
                Formatted::Line(line) => Some(line),
                _ => None,
            })
            .collect()
    };
    complete(echo.change.as_ref(), echo.is_lost, describe)
}

fn complete(
    change: Option<&Change>,
    is_lost: bool,
    describe: impl FnOnce(&Change) -> Vec<String>,
) -> Vec<String> {
    if is_lost {
        note("done, but the kernel did not report everything that was added: list it");
    }
    change.map(describe).unwrap_or_default()
}

/// Prints the reason why a script failed, if it has a position, and that nothing was changed, if the script has
/// changes.
///
/// # Errors Returns other errors.
pub(crate) fn report_error(error: RunError, changes: bool) -> Result<(), Error> {
    let is_unchanged = match &error {
        RunError::Script(_) => true,
        RunError::Refused { outcome, .. } => *outcome == Outcome::NothingApplied,
        _ => return Err(error.into()),
    };
    say(&error.to_string());
    if is_unchanged && changes {
        note("nothing was changed");
    }
    Ok(())
}
