//! `chainwright apply`: changes in nft's language.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use chainwright::nft::{Connection, Outcome, Scope};
use chainwright::text::{Includes, Script};
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable, note, say};
use crate::progress::Progress;

/// Change the ruleset as a text in nft's language says, all of it or nothing, as `nft -f` does
///
/// Takes tables with their blocks, commands (add, create, insert, replace, delete, destroy, flush, rename), variables
/// and comments: what `list` prints, and what `nft -f` takes. All of it is one transaction: if a line is wrong, or the
/// kernel refuses one, nothing is changed, and standard error shows the place: FILE:LINE:COLUMN. Where the text speaks
/// of sets, chains or rules that must be there, and somebody else commits meanwhile, it is read again and tried again.
///
/// With `-j` it takes libnftables' JSON (libnftables-json(5)) instead: what `list -j` prints, and what `nft -j -f` takes.
///
/// Nothing is printed when it is done.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only check the text, and have the kernel check the changes; change nothing
    #[arg(short, long)]
    check: bool,

    /// Files in this directory, and below it, may be included (`include "file"`); may be given more than once. Without
    /// it nothing may
    #[arg(short = 'I', long, value_name = "DIRECTORY")]
    include: Vec<PathBuf>,

    /// The text is libnftables' JSON
    #[arg(short = 'j', conflicts_with = "include")]
    libnftables_json: bool,

    /// The text; standard input if there is none, or `-`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// How often it is tried again when others commit.
const ATTEMPTS: usize = 20;

/// What was applied, for programs.
#[derive(Serialize)]
struct Record {
    operations: usize,
    checked: bool,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let file = args.file.as_deref().filter(|file| *file != Path::new("-"));
    let name = file.map_or(Cow::Borrowed("<stdin>"), |file| file.to_string_lossy());
    let mut text = Vec::new();
    match file {
        Some(file) => File::open(file).and_then(|mut file| file.read_to_end(&mut text)),
        None => io::stdin().lock().read_to_end(&mut text),
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
    let script = match parsed {
        Ok(script) => script,
        Err(error) => {
            say(&error.to_string());
            note("nothing was changed");
            return Ok(Exit::Failed);
        }
    };
    let progress = Progress::new(format!("applying {name}"));
    let applied = apply(&script, args.check);
    drop(progress);
    let applied = applied?;
    if let (Some(operations), true) = (applied, json) {
        let mut out = Output::new();
        let record = Record {
            operations,
            checked: args.check,
        };
        out.json("apply", &record)?;
        out.flush()?;
    }
    Ok(match applied {
        Some(_) => Exit::Done,
        None => Exit::Failed,
    })
}

/// Carries it out; how many operations it was, or nothing if the text is wrong, which is said then.
fn apply(script: &Script, only_check: bool) -> Result<Option<usize>, Error> {
    let mut nft = Connection::open()?;
    let mut attempt = 1;
    loop {
        let now = match script.needs_listing() {
            true => Some(nft.snapshot(Scope::all())?),
            false => None,
        };
        let change = match script.transaction(now.as_ref()) {
            Ok(change) => change,
            Err(error) => {
                say(&error.to_string());
                note("nothing was changed");
                return Ok(None);
            }
        };
        let committed = match only_check {
            true => nft.check(change.transaction()),
            false => nft.commit(change.transaction()),
        };
        let error = match committed {
            Ok(()) => return Ok(Some(change.transaction().len())),
            Err(error) => error,
        };
        if error.generation_moved() && attempt < ATTEMPTS {
            attempt += 1;
            continue;
        }
        let places = change.explain(&error);
        if places.is_empty() {
            return Err(error.into());
        }
        for place in &places {
            say(&place.to_string());
        }
        if error.outcome == Outcome::NothingApplied {
            note("nothing was changed");
        }
        return Ok(None);
    }
}
