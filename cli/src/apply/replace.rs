//! `chainwright apply --replace`: restores the ruleset from a file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::BString;
use chainwright::nft::{self, Connection, DiffOptions, ObjectCounts, Snapshot};
use serde::Serialize;

use crate::apply::Args;
use crate::confirm::Reach;
use crate::diff;
use crate::output::{Error, Exit, Output, Printable, name_text, note};
use crate::progress::Progress;
use crate::scope::describe;

/// The action for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// The table exists, and is changed to match the file.
    Replace,
    /// Only the file has the table.
    Add,
    /// The file does not have the table.
    Remove,
    /// Another process owns it.
    Leave,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Replace => "replace",
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Leave => "leave",
        })
    }
}

/// Family and name.
type Key = (nft::Family, BString);

/// A table in JSON.
#[derive(Serialize)]
struct Record<'a> {
    family: String,
    table: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
}

impl<'a> Record<'a> {
    fn new((family, table): &'a Key, action: Option<Action>) -> Self {
        Self {
            family: family.to_string(),
            table: name_text(table),
            action,
        }
    }
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    done: bool,
    /// The time at which the file was written, in seconds since 1970.
    written: Option<u64>,
    kernel: Option<&'a str>,
    backup: ObjectCounts,
    tables: Vec<Record<'a>>,
    no_longer_owned: Vec<Record<'a>>,
}

/// Makes the ruleset match the snapshot.
pub(crate) fn run(args: &Args, snapshot: &Snapshot, json: bool) -> Result<Exit, Error> {
    let change = || change(args, snapshot, json);
    args.confirm.guard(Reach::NFT, None, change)
}

fn change(args: &Args, snapshot: &Snapshot, json: bool) -> Result<Exit, Error> {
    let progress = Progress::new("checking the ruleset in the kernel");
    let mut nft = match args.dry_run {
        true => Connection::open_if_loaded()?,
        false => Connection::open()?,
    };
    let mut restored = snapshot.check(&mut nft)?;
    if !args.dry_run {
        progress.now("loading the ruleset into the kernel");
        // Uses the state at the time of the commit, not of the check.
        restored = snapshot.restore(&mut nft)?;
    }
    drop(progress);
    let no_longer_owned = restored.no_longer_owned;
    let actions: BTreeMap<Key, Action> = [
        (restored.replaced, Action::Replace),
        (restored.added, Action::Add),
        (restored.removed, Action::Remove),
        (restored.owned_by_others, Action::Leave),
    ]
    .into_iter()
    .flat_map(|(keys, action)| keys.into_iter().map(move |key| (key, action)))
    .collect();
    let left: Vec<_> = actions
        .iter()
        .filter(|(_, action)| **action == Action::Leave)
        .map(|(key, _)| named(key))
        .collect();

    let mut out = Output::new();
    if json {
        let provenance = snapshot.provenance();
        out.json(
            "rollback",
            &Document {
                done: !args.dry_run,
                written: provenance
                    .and_then(|provenance| provenance.written.duration_since(UNIX_EPOCH).ok())
                    .map(|since| since.as_secs()),
                kernel: provenance.map(|provenance| &*provenance.kernel),
                backup: snapshot.contents(),
                tables: actions
                    .iter()
                    .map(|(key, &action)| Record::new(key, Some(action)))
                    .collect(),
                no_longer_owned: no_longer_owned
                    .iter()
                    .map(|key| Record::new(key, None))
                    .collect(),
            },
        )?;
    } else {
        let changes = match args.dry_run {
            true => {
                let now = nft.snapshot(snapshot.scope().clone())?;
                let options = DiffOptions::default();
                let mut changes = diff::between(&now, snapshot, options, args.bytecode)?;
                changes
                    .changes
                    .retain(|change| !is_left(&actions, &change.path));
                Some(changes)
            }
            false => None,
        };
        print_text(&mut out, snapshot, &actions, &no_longer_owned)?;
        match changes {
            Some(changes) => {
                diff::print_text(&mut out, &changes)?;
                writeln!(out, "nothing was done")?;
            }
            None => writeln!(out, "done     in one transaction")?,
        }
    }
    out.flush()?;
    if left.is_empty() || args.dry_run {
        return Ok(Exit::Done);
    }
    note(&format!(
        "not changed, because other processes own them: {}",
        left.join(", ")
    ));
    Ok(Exit::Failed)
}

fn named((family, table): &Key) -> String {
    format!("{family} {}", Printable(&name_text(table)))
}

/// Returns `true` if the object with this path is in a table that is left alone.
fn is_left(actions: &BTreeMap<Key, Action>, path: &str) -> bool {
    let mut left = actions
        .iter()
        .filter(|(_, action)| **action == Action::Leave);
    left.any(|((family, table), _)| {
        let rest = path.strip_prefix(&format!("{family} {table}"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

fn print_text(
    out: &mut Output,
    snapshot: &Snapshot,
    actions: &BTreeMap<Key, Action>,
    no_longer_owned: &[Key],
) -> Result<(), Error> {
    write!(out, "backup   {}: ", describe(snapshot.scope()))?;
    write!(out, "{}", snapshot.contents())?;
    if let Some(provenance) = snapshot.provenance() {
        write!(
            out,
            "; written {} by Linux {}",
            date(provenance.written),
            Printable(&provenance.kernel)
        )?;
    }
    writeln!(out)?;
    for (key, action) in actions {
        write!(out, "{action:8} {}", named(key))?;
        match action {
            Action::Leave => write!(out, " (another process owns it)")?,
            _ if no_longer_owned.contains(key) => {
                write!(out, " (it had an owner, and no longer has one)")?;
            }
            _ => {}
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Formats a time so that `date --utc` can parse it.
fn date(time: SystemTime) -> String {
    let mut text = String::new();
    // The formatter supports no year after 9999, but a file can contain any time.
    match write!(text, "{}", humantime::format_rfc3339_seconds(time)) {
        Ok(()) => text,
        Err(_) => "at an invalid time".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates() {
        let at = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(i64::MAX as u64 / 2), "at an invalid time");
    }
}
