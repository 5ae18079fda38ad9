//! `chainwright rollback`: a file back into the ruleset.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::BString;
use chainwright::nft::{self, Connection, Contents, DiffOptions, Snapshot};
use serde::Serialize;

use crate::diff;
use crate::output::{Error, Exit, Output, Printable, name_text, note};
use crate::progress::Progress;
use crate::scope::{Scope, describe};

/// Make the ruleset what a backup shows, in one transaction
///
/// Replaces what the file is a backup of (the whole ruleset, a family, or a table), or that part of it which
/// the options name: what differs is changed, tables that are not in the file are removed. All of it happens, or
/// nothing, and packets never see anything in between. Tables outside of that part stay as they are.
///
/// Before anything is changed the kernel checks the whole; if it refuses, standard error says which operations,
/// and nothing is changed. --dry-run ends there.
///
/// What is the same is not touched; what is new has new handles. Counters and quotas go on from the numbers in the file, and timeouts from the time that was
/// left. `limit`, `connlimit` and `numgen inc` begin anew.
///
/// A table that another process owns cannot be changed by anybody else: it stays as it is, and the exit code is
/// 2. A table that was owned when it was kept comes back without an owner.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file that `backup` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only show what would be done to which table, and to each object in it as `diff` shows it, and have the kernel
    /// check it
    #[arg(long)]
    dry_run: bool,

    /// With --dry-run, show what iptables has no words for as bytecode, instead of in nft's words
    #[arg(long, requires = "dry_run")]
    bytecode: bool,

    #[command(flatten)]
    scope: Scope,
}

/// What becomes of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// It is there, and becomes what the file shows.
    Replace,
    /// It is in the file only.
    Add,
    /// It is not in the file.
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

/// A table, for programs.
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

/// All that `--json` writes.
#[derive(Serialize)]
struct Document<'a> {
    done: bool,
    /// When the file was written, in seconds since 1970.
    written: Option<u64>,
    kernel: Option<&'a str>,
    backup: Contents,
    tables: Vec<Record<'a>>,
    no_longer_owned: Vec<Record<'a>>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let Some(snapshot) = args.scope.load(&args.file)? else {
        return Ok(Exit::Absent);
    };
    let progress = Progress::new("having the kernel check the ruleset");
    let mut nft = match args.dry_run {
        true => Connection::open_to_look()?,
        false => Connection::open()?,
    };
    let mut restored = snapshot.check(&mut nft)?;
    if !args.dry_run {
        progress.now("putting the ruleset into the kernel");
        // What was so when it was done, not when it was checked.
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
                let mut changes = diff::between(&now, &snapshot, options, args.bytecode)?;
                changes
                    .changes
                    .retain(|change| !is_left(&actions, &change.path));
                Some(changes)
            }
            false => None,
        };
        people(&mut out, &snapshot, &actions, &no_longer_owned)?;
        match changes {
            Some(changes) => {
                diff::people(&mut out, &changes)?;
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
        "left as they are, because other processes own them: {}",
        left.join(", ")
    ));
    Ok(Exit::Failed)
}

fn named((family, table): &Key) -> String {
    format!("{family} {}", Printable(&name_text(table)))
}

/// Whether what has this path is in a table that stays as it is.
fn is_left(actions: &BTreeMap<Key, Action>, path: &str) -> bool {
    let mut left = actions
        .iter()
        .filter(|(_, action)| **action == Action::Leave);
    left.any(|((family, table), _)| {
        let rest = path.strip_prefix(&format!("{family} {table}"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

fn people(
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
                write!(out, " (it had an owner, and has none any more)")?;
            }
            _ => {}
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A time as `date --utc` can read it.
fn date(time: SystemTime) -> String {
    let mut text = String::new();
    // It knows no year after 9999; a file can say whatever it likes.
    match write!(text, "{}", humantime::format_rfc3339_seconds(time)) {
        Ok(()) => text,
        Err(_) => "at a time that cannot be".into(),
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
        assert_eq!(at(i64::MAX as u64 / 2), "at a time that cannot be");
    }
}
