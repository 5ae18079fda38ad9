//! `chainwright apply`: changes in nft's language.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use chainwright::nft::{Connection, Outcome};
use chainwright_lang::{Done, Includes, Mode, RunError, Script, read_text};
use chainwright_libnftables::{LOST_ECHO, added, added_json};
use serde::Serialize;
use serde_json::Value;

use crate::confirm::{Confirm, Reach};
use crate::dialect;
use crate::output::{Error, Exit, Output, Printable, note, say};
use crate::progress::Progress;
use crate::rules::{format_rule, sets};

/// Apply changes in nft's language atomically, as `nft -f` does
///
/// Reads tables with blocks, commands (add, create, insert, replace, delete, destroy, flush, rename), variables and
/// comments: the output of `list`, and the input of `nft -f`. Everything is one transaction: if a line is wrong, or the
/// kernel refuses one, nothing is changed, and standard error shows the position: FILE:LINE:COLUMN. If the text refers
/// to existing sets, chains or rules, and another process commits meanwhile, the command reads them again and retries.
///
/// With `-j` it reads libnftables' JSON (libnftables-json(5)) instead: the output of `list -j`, and the input of `nft
/// -j -f`.
///
/// Prints nothing on success, unless --echo requests the added objects.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only check the text, and have the kernel check the changes; change nothing
    #[arg(short, long, conflicts_with = "confirm")]
    check: bool,

    /// Print the added objects in nft's language, as reported by the kernel; with --json, the document contains them
    #[arg(short, long, conflicts_with = "check")]
    echo: bool,

    /// With --echo: print the handles assigned by the kernel
    #[arg(short = 'a', long, requires = "echo")]
    handles: bool,

    /// Allow the text to include files in and below this directory (`include "file"`); may be given more than once.
    /// Without this option, no file can be included
    #[arg(short = 'I', long, value_name = "DIRECTORY")]
    include: Vec<PathBuf>,

    /// The input is libnftables' JSON
    #[arg(short = 'j', conflicts_with = "include")]
    libnftables_json: bool,

    #[command(flatten)]
    confirm: Confirm,

    /// Input file; standard input if omitted, or `-`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// The JSON document.
#[derive(Serialize)]
struct Record {
    operations: usize,
    checked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<Vec<Value>>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let file = args.file.as_deref().filter(|file| *file != Path::new("-"));
    let name = file.map_or(Cow::Borrowed("<stdin>"), |file| file.to_string_lossy());
    let text = match file {
        Some(file) => File::open(file).and_then(read_text),
        None => read_text(io::stdin().lock()),
    }
    .map_err(|error| Error::Other(format!("cannot read {}: {error}", Printable(&name))))?;
    let includes = match args.include.is_empty() {
        true => Includes::none(),
        false => Includes::below(args.include.iter().cloned()),
    };
    let parsed = match args.libnftables_json {
        true => Script::parse_json(&name, text),
        false => Script::parse_with(&name, text, &includes),
    };
    // Only `list` and `nft` support listings.
    let only_changes = |script: Script| {
        let query = script
            .queries()
            .next()
            .map(|each| each.not_a_change_error());
        query.map_or(Ok(script), Err)
    };
    let script = match parsed.and_then(only_changes) {
        Ok(script) => script.with_nft_version(dialect::selected()),
        Err(error) => {
            say(&error.to_string());
            note("nothing was changed");
            return Ok(Exit::Failed);
        }
    };
    let change = || change(args, &name, &script, json);
    args.confirm.guard(Reach::NFT, None, change)
}

fn change(args: &Args, name: &str, script: &Script, json: bool) -> Result<Exit, Error> {
    let mode = match (args.check, args.echo) {
        (true, _) => Mode::Check,
        (false, true) => Mode::Echo,
        (false, false) => Mode::Commit,
    };
    let progress = Progress::new(format!("applying {name}"));
    let done = script.run(&mut Connection::open()?, mode, &crate::dialect::options());
    drop(progress);
    let Done {
        operations, echo, ..
    } = match done {
        Ok(done) => done,
        Err(error) => return report_error(error).map(|()| Exit::Failed),
    };
    if echo.as_ref().is_some_and(|echo| echo.is_lost) {
        note(LOST_ECHO);
    }
    let mut out = Output::new();
    match echo {
        _ if json => {
            let added = echo.map(added_json);
            let value = |line: &String| serde_json::from_str(line).unwrap_or_default();
            let record = Record {
                operations,
                checked: args.check,
                added: added.map(|added| added.iter().map(value).collect()),
            };
            out.json("apply", &record)?;
        }
        Some(echo) if args.libnftables_json => {
            writeln!(out, "{{\"nftables\": [{}]}}", added_json(echo).join(", "))?;
        }
        Some(echo) => {
            let sets = sets();
            for line in added(echo, args.handles, &|rule| Some(format_rule(rule, &sets))) {
                writeln!(out, "{}", Printable(&line))?;
            }
        }
        None => {}
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Prints the reason why a script failed, if it has a position, and that nothing was changed.
///
/// # Errors Returns other errors.
fn report_error(error: RunError) -> Result<(), Error> {
    let is_unchanged = match &error {
        RunError::Script(_) => true,
        RunError::Refused { outcome, .. } => *outcome == Outcome::NothingApplied,
        _ => return Err(error.into()),
    };
    say(&error.to_string());
    if is_unchanged {
        note("nothing was changed");
    }
    Ok(())
}
