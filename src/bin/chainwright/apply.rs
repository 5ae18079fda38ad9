//! `chainwright apply`: changes in nft's language.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use chainwright::nft::live::{Event, EventObject, Item, Monitor, MonitorOptions};
use chainwright::nft::{CommitError, Connection, Outcome, Scope, Transaction};
use chainwright::text::{Includes, Options, Script, Teller, Told};
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable, note, say};
use crate::progress::Progress;
use crate::rules::{Sets, said, sets};

/// Change the ruleset as a text in nft's language says, all of it or nothing, as `nft -f` does
///
/// Takes tables with their blocks, commands (add, create, insert, replace, delete, destroy, flush, rename), variables
/// and comments: what `list` prints, and what `nft -f` takes. All of it is one transaction: if a line is wrong, or the
/// kernel refuses one, nothing is changed, and standard error shows the place: FILE:LINE:COLUMN. Where the text speaks
/// of sets, chains or rules that must be there, and somebody else commits meanwhile, it is read again and tried again.
///
/// With `-j` it takes libnftables' JSON (libnftables-json(5)) instead: what `list -j` prints, and what `nft -j -f` takes.
///
/// Nothing is printed when it is done, unless --echo asks for what was added.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only check the text, and have the kernel check the changes; change nothing
    #[arg(short, long)]
    check: bool,

    /// Print what was added, in nft's language, as the kernel tells of it; with --json, in the document
    #[arg(short, long, conflicts_with = "check")]
    echo: bool,

    /// With --echo: with the handles that the kernel gave
    #[arg(short = 'a', long, requires = "echo")]
    handles: bool,

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
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<Vec<String>>,
}

/// What came of it.
struct Applied {
    operations: usize,
    /// What was added, a line each, if it was asked for.
    added: Option<Vec<String>>,
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
    let applied = apply(&script, args);
    drop(progress);
    let Some(applied) = applied? else {
        return Ok(Exit::Failed);
    };
    let mut out = Output::new();
    if json {
        let record = Record {
            operations: applied.operations,
            checked: args.check,
            added: applied.added,
        };
        out.json("apply", &record)?;
    } else {
        for line in applied.added.iter().flatten() {
            writeln!(out, "{}", Printable(line))?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Carries it out; how many operations it was, or nothing if the text is wrong, which is said then.
fn apply(script: &Script, args: &Args) -> Result<Option<Applied>, Error> {
    let mut nft = Connection::open()?;
    let mut echo = match args.echo {
        true => Some(Echo::begin(&mut nft)?),
        false => None,
    };
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
        let operations = change.transaction().len();
        let committed = match &mut echo {
            Some(echo) => echo
                .commit(&mut nft, change.transaction(), args.handles)
                .map(Some),
            None if args.check => nft.check(change.transaction()).map(|()| None),
            None => nft.commit(change.transaction()).map(|()| None),
        };
        let error = match committed {
            Ok(added) => return Ok(Some(Applied { operations, added })),
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

/// Who is told of what is committed.
struct Echo {
    monitor: Monitor,
    teller: Teller,
    sets: Sets,
}

impl Echo {
    fn begin(nft: &mut Connection) -> Result<Self, Error> {
        // What is told from here on is later than what is known.
        let monitor = MonitorOptions::default().open_beside(nft)?;
        Ok(Self {
            monitor,
            teller: Teller::new(nft, Options::here())?,
            sets: sets(),
        })
    }

    /// Commits it; what it added, a line each.
    fn commit(
        &mut self,
        nft: &mut Connection,
        transaction: &Transaction,
        handles: bool,
    ) -> Result<Vec<String>, CommitError> {
        let committed = nft.commit_echo(transaction)?;
        if committed.generation().is_none() && committed.is_whole() {
            return Ok(Vec::new()); // it changed nothing
        }
        // The kernel has told of it by now.
        while let Ok(Some(item)) = self.monitor.try_receive() {
            let Item::Change(change) = item else {
                continue;
            };
            let told = self.teller.tell(&change);
            if !committed.made(&change) {
                continue; // somebody else's, before it
            }
            let lines = change.events().zip(&told);
            let added = lines.filter(|(event, _)| !event.is_deletion());
            return Ok(added
                .filter_map(|(event, told)| self.line(&event, told, handles))
                .collect());
        }
        note("it is done, and the kernel did not tell of all that was added: list it");
        Ok(Vec::new())
    }

    fn line(&self, event: &Event<'_>, told: &Told, handles: bool) -> Option<String> {
        match told {
            Told::Within => None,
            Told::Line(line) if handles => Some(format!("{line:#}")),
            Told::Line(line) => Some(line.to_string()),
            _ => Some(match event.object() {
                Ok(EventObject::Rule(rule)) => format!("# {event}: {}", said(&rule, &self.sets)),
                _ => format!("# {event}"),
            }),
        }
    }
}
