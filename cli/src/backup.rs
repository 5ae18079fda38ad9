//! `chainwright backup`: the ruleset into a file.

use std::path::PathBuf;

use bstr::ByteSlice;
use chainwright::nft::{Connection, Contents};
use serde::Serialize;

use crate::legacy_tables;
use crate::output::{Error, Exit, Output, note};
use crate::progress::Progress;
use crate::scope::Scope;

/// Keep the ruleset of nf_tables in a file
///
/// All of it, or one family or table. The file holds everything that the kernel lists: tables, chains, rules
/// with handles, counters and comments, sets and maps with elements, timeouts and counters, stateful objects,
/// flowtables; also what this program does not know. It does not hold what the kernel does not list (how full a
/// `limit` is, which connections a `connlimit` counted, where a `numgen inc` stands), nor connections, devices,
/// and legacy tables (if there are any in use, standard error names them).
///
/// The file is replaced in one step: at any moment it is the old one or the new one, whole. Only its owner can
/// read it. A checksum tells whether it was damaged. It can be read on machines of the same byte order.
///
/// If the ruleset keeps changing, nothing is written and the exit code is 2. `rollback` brings the ruleset
/// back, `diff` shows what changed since.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file. A regular file that is there is replaced; a device, directory, pipe, socket or symbolic link
    /// is an error
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    scope: Scope,
}

/// What was kept, for programs.
#[derive(Serialize)]
struct Kept<'a> {
    file: std::borrow::Cow<'a, str>,
    generation: Option<u32>,
    #[serde(flatten)]
    contents: Contents,
    bytes: usize,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check_file()?;
    let progress = Progress::new("reading the ruleset");
    let snapshot = Connection::open_to_look()?.snapshot(args.scope.filter())?;
    if args.scope.table.is_some() && snapshot.tables().len() == 0 {
        if !json {
            note("no table found that matches; no file was written");
        }
        return Ok(Exit::Absent);
    }
    progress.now("writing the backup");
    snapshot.save(&args.file)?;
    drop(progress);
    let legacy = legacy_tables::in_use(&args.scope);
    if !legacy.is_empty() {
        note(&format!(
            "warning: legacy tables are in use as well, and are not in this file: {} (`chainwright save \
             --backend legacy` writes them as a text)",
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
            &Kept {
                file,
                generation,
                contents,
                bytes,
            },
        )?;
    } else {
        writeln!(out, "kept     {contents} ({bytes} bytes)")?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
