//! `chainwright apply`: runs changes in nft's language.

use chainwright::nft::{Connection, Diff, DiffOptions, Outcome, Ruleset, Scope};
use chainwright_lang::{Includes, RunError, RunMode, RunOutcome, Script};
use chainwright_libnftables::{LOST_ECHO, added, added_json};
use serde::Serialize;
use serde_json::Value;

use crate::apply::Args;
use crate::confirm::Reach;
use crate::dialect;
use crate::diff;
use crate::get::rules::{format_rule, sets};
use crate::output::{Error, Exit, Output, Printable, causes, eprint_line, note};
use crate::progress::Progress;

/// The JSON document.
#[derive(Serialize)]
struct Record {
    operations: usize,
    checked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Diff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<Vec<Value>>,
}

/// Runs a script.
pub(crate) fn run(args: &Args, text: Vec<u8>, is_json: bool, json: bool) -> Result<Exit, Error> {
    let name = args.input.name();
    let options = &args.nft;
    let includes = match options.include.is_empty() {
        true => Includes::none(),
        false => Includes::below(options.include.iter().cloned()),
    };
    let parsed = match is_json {
        true => Script::parse_json(&name, text),
        false => Script::parse_with(&name, text, &includes),
    };
    // Only `get` and `nft` support listings.
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
            eprint_line(&error.to_string());
            note("nothing was changed");
            return Ok(Exit::Failed);
        }
    };
    let change = || change(args, &name, &script, json);
    args.confirm.guard(Reach::NFT, None, change)
}

fn change(args: &Args, name: &str, script: &Script, json: bool) -> Result<Exit, Error> {
    let mode = match (args.dry_run, args.nft.echo) {
        (true, _) => RunMode::Check,
        (false, true) => RunMode::Echo,
        (false, false) => RunMode::Commit,
    };
    let progress = Progress::new(format!("applying {name}"));
    let done = script.run(&mut Connection::open()?, mode, &crate::dialect::options());
    drop(progress);
    let RunOutcome {
        operations, echo, ..
    } = match done {
        Ok(done) => done,
        Err(error) => return report_error(error).map(|()| Exit::Failed),
    };
    if echo.as_ref().is_some_and(|echo| echo.is_lost) {
        note(LOST_ECHO);
    }
    let changes = match args.dry_run {
        true => planned_changes(script, json),
        false => None,
    };
    let mut out = Output::new();
    match echo {
        _ if json => {
            let added = echo.map(added_json);
            let value = |line: &String| serde_json::from_str(line).unwrap_or_default();
            let record = Record {
                operations,
                checked: args.dry_run,
                changes,
                added: added.map(|added| added.iter().map(value).collect()),
            };
            out.json("apply", &record)?;
        }
        Some(echo) if args.nft.libnftables_json => {
            writeln!(out, "{{\"nftables\": [{}]}}", added_json(echo).join(", "))?;
        }
        Some(echo) => {
            let sets = sets();
            for line in added(echo, args.nft.handles, &|rule| {
                Some(format_rule(rule, &sets))
            }) {
                writeln!(out, "{}", Printable(&line))?;
            }
        }
        None => {
            if let Some(changes) = &changes {
                diff::print_text(&mut out, changes)?;
                writeln!(out, "nothing was done")?;
            }
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Simulates a script on the kernel's ruleset, and returns the changes. Prints a note if that is not possible; the kernel
/// has checked the script already.
fn planned_changes(script: &Script, bytecode: bool) -> Option<Diff> {
    let simulated = || -> Result<Diff, Box<dyn std::error::Error>> {
        let all = Scope::all();
        let now = Connection::open_if_loaded()?.snapshot(all.clone())?;
        let compiled = script.transaction(Some(&now))?;
        let mut ruleset = Ruleset::try_from(&now)?;
        // Both sides of the comparison come from the same simulation.
        let before = ruleset.to_snapshot(&all);
        ruleset.apply(compiled.transaction())?;
        let after = ruleset.to_snapshot(&all);
        diff::between(&before, &after, DiffOptions::default(), bytecode)
            .map_err(|error| causes(&error).into())
    };
    simulated()
        .inspect_err(|error| {
            note(&format!(
                "the kernel accepts this; its changes cannot be shown in advance: {}",
                Printable(&causes(&**error))
            ));
        })
        .ok()
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
    eprint_line(&error.to_string());
    if is_unchanged {
        note("nothing was changed");
    }
    Ok(())
}
