//! `chainwright rollback`: a file back into the ruleset.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use bstr::{BString, ByteSlice};
use chainwright::nft::{self, Connection, List, Snapshot, Table, TableFlags};
use serde::Serialize;

use crate::backup::Contents;
use crate::output::{Error, Exit, Output, Printable, note};
use crate::scope::{Scope, describe};

/// Make the ruleset what a backup shows, in one transaction
///
/// Replaces what the file is a backup of (the whole ruleset, a family, or a table), or that part of it which
/// the options name: tables in the file are made anew, others are removed. All of it happens, or nothing, and
/// packets never see anything in between. Tables outside of that part stay as they are.
///
/// Before anything is changed the kernel checks the whole; if it refuses, standard error says which operations,
/// and nothing is changed. --dry-run ends there.
///
/// Handles are new. Counters and quotas go on from the numbers in the file, and timeouts from the time that was
/// left. `limit`, `connlimit` and `numgen inc` begin anew.
///
/// A table that another process owns cannot be changed by anybody else: it stays as it is, and the exit code is
/// 2. A table that was owned when it was kept comes back without an owner.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file that `backup` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only show what would be done to which table, and have the kernel check it; `diff` shows each object
    #[arg(long)]
    dry_run: bool,

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
            table: table.to_str_lossy(),
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
    let mut nft = match args.dry_run {
        true => Connection::open_to_look()?,
        false => Connection::open()?,
    };
    let mut actions = plan(&snapshot, &mut nft)?;
    let mut no_longer_owned = owned(&snapshot);
    snapshot.check(&mut nft)?;
    if !args.dry_run {
        let restored = snapshot.restore(&mut nft)?;
        // What was so when it was done, not when it was planned.
        for (key, action) in &mut actions {
            let is_in_file = snapshot.table(key.0, &key.1).is_some();
            match (restored.owned_by_others.contains(key), *action) {
                (true, _) => *action = Action::Leave,
                (false, Action::Leave) if is_in_file => *action = Action::Replace,
                (false, Action::Leave) => *action = Action::Remove,
                (false, _) => {}
            }
        }
        for key in restored.owned_by_others {
            actions.insert(key, Action::Leave);
        }
        no_longer_owned = restored.no_longer_owned;
    }
    let left: Vec<_> = actions
        .iter()
        .filter(|(_, action)| **action == Action::Leave)
        .map(|(key, _)| named(key))
        .collect();
    no_longer_owned.retain(|key| actions.get(key) != Some(&Action::Leave));

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
                backup: Contents::of(&snapshot),
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
        people(&mut out, args, &snapshot, &actions, &no_longer_owned)?;
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

/// What is to become of each table that there is, or that the file has.
fn plan(snapshot: &Snapshot, nft: &mut Connection) -> Result<BTreeMap<Key, Action>, Error> {
    let mut actions: BTreeMap<_, _> = snapshot
        .tables()
        .map(|table| {
            let table = table.table();
            ((table.family(), table.name().to_owned()), Action::Add)
        })
        .collect();
    let mut tables = List::<Table<'_>>::new(snapshot.scope().clone());
    tables.refresh(nft)?;
    for table in tables.iter() {
        let key = (table.family(), table.name().to_owned());
        let action = match (table.owner(), actions.contains_key(&key)) {
            (Some(_), _) => Action::Leave,
            (None, true) => Action::Replace,
            (None, false) => Action::Remove,
        };
        actions.insert(key, action);
    }
    Ok(actions)
}

/// The file's tables that will come back without their owner.
fn owned(snapshot: &Snapshot) -> Vec<Key> {
    let tables = snapshot.tables().map(|table| table.table());
    tables
        .filter(|table| {
            table.flags().is_some_and(|flags| {
                flags.contains(TableFlags::OWNER) && !flags.contains(TableFlags::PERSIST)
            })
        })
        .map(|table| (table.family(), table.name().to_owned()))
        .collect()
}

fn named((family, table): &Key) -> String {
    format!("{family} {}", Printable(&table.to_str_lossy()))
}

fn people(
    out: &mut Output,
    args: &Args,
    snapshot: &Snapshot,
    actions: &BTreeMap<Key, Action>,
    no_longer_owned: &[Key],
) -> Result<(), Error> {
    write!(out, "backup   {}: ", describe(snapshot.scope()))?;
    write!(out, "{}", Contents::of(snapshot))?;
    if let Some(provenance) = snapshot.provenance() {
        write!(
            out,
            "; written {} by Linux {}",
            utc(provenance
                .written
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs()),
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
    if args.dry_run {
        writeln!(out, "nothing was done")
    } else {
        writeln!(out, "done     in one transaction")
    }
}

/// Seconds since 1970 as date and time (days to civil date after Howard Hinnant).
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let part = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * part + 2) / 5 + 1;
    let month = if part < 10 { part + 3 } else { part - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u -d @SECONDS` has it.
    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_735_689_599), "2024-12-31 23:59:59 UTC");
        assert_eq!(utc(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }
}
