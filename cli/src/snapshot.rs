//! `chainwright snapshot`: saves the ruleset in a file.

use std::path::PathBuf;

use bstr::ByteSlice;
use chainwright::nft::{Connection, ObjectCounts};
use serde::Serialize;

use crate::legacy_tables;
use crate::output::{Error, Exit, Output, note};
use crate::progress::Progress;
use crate::scope::Scope;

/// Save the ruleset of nf_tables in a file
///
/// Saves the whole ruleset, or one family or table. The file contains everything that the kernel lists: tables, chains,
/// rules with handles, counters and comments, sets and maps with elements, timeouts and counters, stateful objects,
/// flowtables; also attributes that this program does not know. It does not contain state that the kernel does not list
/// (the fill of a `limit`, the connections that a `connlimit` counted, the position of a `numgen inc`), connections,
/// devices, or legacy tables; if any are in use, a warning lists them.
///
/// The file is replaced atomically: readers see either the complete old file or the complete new one. Only its
/// owner can read it. A checksum detects damage. It can be read on machines with the same byte order.
///
/// If the ruleset keeps changing, nothing is written and the exit code is 2. `apply --replace` restores the ruleset, `diff`
/// shows the changes since the backup.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output file. An existing regular file is replaced; a device, directory, pipe, socket or symbolic link is an
    /// error
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    scope: Scope,
}

/// The JSON document.
#[derive(Serialize)]
struct BackupRecord<'a> {
    file: std::borrow::Cow<'a, str>,
    generation: Option<u32>,
    #[serde(flatten)]
    contents: ObjectCounts,
    bytes: usize,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check_file()?;
    let progress = Progress::new("reading the ruleset");
    let snapshot = Connection::open_if_loaded()?.snapshot(args.scope.filter())?;
    if args.scope.table.is_some() && snapshot.tables().len() == 0 {
        if !json {
            note("no matching table found; no file was written");
        }
        return Ok(Exit::Absent);
    }
    progress.now("writing the backup");
    snapshot.save(&args.file)?;
    drop(progress);
    let legacy = legacy_tables::in_use(&args.scope);
    if !legacy.is_empty() {
        note(&format!(
            "warning: legacy tables are also in use, but are not in this file: {} (`chainwright get \
             ruleset -o iptables --backend legacy` prints them as text)",
            legacy.join(", ")
        ));
    }
    let contents = snapshot.contents();
    let bytes = snapshot.byte_length();
    let file = args.file.as_os_str().as_encoded_bytes().to_str_lossy();
    let generation = snapshot.generation().map(|generation| generation.number());
    let mut out = Output::new();
    if json {
        out.json(
            "backup",
            &BackupRecord {
                file,
                generation,
                contents,
                bytes,
            },
        )?;
    } else {
        writeln!(out, "saved    {contents} ({bytes} bytes)")?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
