//! `chainwright delete chains`: removes leftover chains of other programs.

use bstr::BStr;
use chainwright::iptables::{Backend, CleanedUp, Cleanup, Family, Iptables, tables_in_use};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::completions;
use crate::confirm::{Confirm, Reach};
use crate::glob::Glob;
use crate::iptables::{Locking, backend_word, family_word};
use crate::output::{Error, Exit, Output, Printable, note};
use crate::scope::Scope;

/// Delete leftover chains, and all rules that jump to them
///
/// Removes the chains of iptables' tables whose names match, with their rules and all jumps to them: in nf_tables from
/// all tables in one transaction, from each legacy table atomically, under the lock of the legacy tools. Without
/// --backend and --family it covers both backends and both families. It creates no table; built-in chains remain.
/// Afterwards it verifies that the chains no longer exist.
///
/// In patterns, `*` matches any characters, `?` one character, `[a-z]` one of these characters, and `{a,b}` either
/// part. For instance, AZURE-NPM* matches the chains of Azure's network policies.
///
/// Prints the removed chains and rules. If a rule that iptables cannot express jumps to a matching chain, the chain
/// cannot be removed. Then all chains of the same transaction (nf_tables) or table (legacy) remain, standard error
/// shows the reason, and the exit code is 2.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only print the chains and rules that would be removed; exit code 1 if there are any
    #[arg(long, conflicts_with = "confirm")]
    dry_run: bool,

    /// Also remove rules with a comment that matches; may be given more than once
    #[arg(long, value_name = "GLOB")]
    comment: Vec<Glob>,

    /// Patterns of chain names
    #[arg(value_name = "GLOB", required_unless_present = "comment", add = ArgValueCompleter::new(completions::chains))]
    chains: Vec<Glob>,

    #[command(flatten)]
    confirm: Confirm,

    #[command(flatten)]
    locking: Locking,

    #[command(flatten)]
    scope: Scope,
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    done: bool,
    failed: Vec<&'static str>,
    tables: Vec<Record>,
}

/// The removed parts of a table.
#[derive(Serialize)]
struct Record {
    backend: &'static str,
    family: &'static str,
    table: String,
    chains: Vec<String>,
    rules: Vec<RuleRecord>,
}

#[derive(Serialize)]
struct RuleRecord {
    chain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_expressible: Option<String>,
}

impl Record {
    fn of(backend: Backend, gone: &CleanedUp) -> Self {
        let rules = gone.rules.iter().map(|(chain, rule)| RuleRecord {
            chain: chain.to_string(),
            rule: rule.as_ref().ok().map(ToString::to_string),
            not_expressible: rule.as_ref().err().map(ToString::to_string),
        });
        Self {
            backend: backend_word(backend),
            family: family_word(gone.family),
            table: gone.table.clone(),
            chains: gone.chains.iter().map(ToString::to_string).collect(),
            rules: rules.collect(),
        }
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let families = match args.scope.place.iptables()? {
        Some(family) => vec![family],
        None => vec![Family::Ipv4, Family::Ipv6],
    };
    let matches = |globs: &[Glob], name: &BStr| globs.iter().any(|glob| glob.is_match(name));
    // A name that is not UTF-8 belongs to none of iptables' tables.
    let table = args.scope.table.as_ref().map(|name| name.to_string_lossy());
    let what = Cleanup {
        table: table.as_deref(),
        chains: &|name| matches(&args.chains, name),
        comments: &|comment| matches(&args.comment, comment),
    };
    let reach = Reach::of(args.scope.place.iptables_backends());
    let change = || change(args, &families, &what, json);
    args.confirm.guard(reach, Some(&args.locking), change)
}

fn change(args: &Args, families: &[Family], what: &Cleanup<'_>, json: bool) -> Result<Exit, Error> {
    let mut tables = Vec::new();
    let mut failed = Vec::new();
    for &backend in args.scope.place.iptables_backends() {
        let gone = clean_up(args, backend, families, what);
        match gone {
            Ok(gone) => tables.extend(gone.iter().map(|gone| Record::of(backend, gone))),
            // Cleans the other backend anyway.
            Err(error) => {
                failed.push(backend_word(backend));
                let nothing_applied = error.nothing_applied();
                Error::from(error).report();
                if nothing_applied {
                    note(&format!("nothing was changed in {backend}"));
                }
            }
        }
    }
    let is_empty = tables.is_empty();
    let mut out = Output::new();
    if json {
        let done = !args.dry_run && failed.is_empty();
        let document = Document {
            done,
            failed: failed.clone(),
            tables,
        };
        out.json("cleanup", &document)?;
    } else {
        for table in &tables {
            print(&mut out, table)?;
        }
    }
    out.flush()?;
    if !failed.is_empty() {
        return Ok(Exit::Failed);
    }
    if is_empty && !json {
        note("nothing to clean up");
    }
    Ok(match args.dry_run && !is_empty {
        true => Exit::Absent,
        false => Exit::Done,
    })
}

/// Cleans one backend. Does not load missing modules.
fn clean_up(
    args: &Args,
    backend: Backend,
    families: &[Family],
    what: &Cleanup<'_>,
) -> Result<Vec<CleanedUp>, chainwright::iptables::Error> {
    let mut is_used = false;
    for family in families {
        is_used |= !tables_in_use(backend, *family)?.is_empty();
    }
    if !is_used {
        return Ok(Vec::new());
    }
    let mut iptables = args.locking.of(Iptables::open(backend)?);
    iptables.clean_up(families, what, args.dry_run)
}

fn print(out: &mut Output, table: &Record) -> Result<(), Error> {
    let Record {
        backend,
        family,
        table: name,
        ..
    } = table;
    writeln!(out, "table {family} {name} ({backend})")?;
    for rule in &table.rules {
        let rule_text = match (&rule.rule, &rule.not_expressible) {
            (Some(rule), _) => rule.clone(),
            (None, why) => format!(
                "a rule that iptables cannot express ({})",
                why.as_deref().unwrap_or_default()
            ),
        };
        writeln!(
            out,
            "- rule {}: {}",
            Printable(&rule.chain),
            Printable(&rule_text)
        )?;
    }
    for chain in &table.chains {
        writeln!(out, "- chain {}", Printable(chain))?;
    }
    Ok(())
}
