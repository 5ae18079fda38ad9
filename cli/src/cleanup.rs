//! `chainwright cleanup`: chains that somebody left behind.

use bstr::BStr;
use chainwright::iptables::{Backend, CleanedUp, Cleanup, Family, Iptables, tables_in_use};
use serde::Serialize;

use crate::glob::Glob;
use crate::iptables::{Locking, backend_word, family_word};
use crate::output::{Error, Exit, Output, Printable, note};
use crate::scope::Scope;

/// Take out chains that somebody left behind, with all that leads to them
///
/// Removes the chains of iptables' tables whose names match, with their rules and all jumps to them: in nf_tables from all
/// tables at once, from each legacy table at once, under the lock of the legacy tools. Without --backend and
/// --family it looks in both backends and both families. No table is made; built-in chains stay. Afterwards it is
/// looked whether they are gone.
///
/// Patterns: `*` any characters, `?` one, `[a-z]` one of these, `{a,b}` either. AZURE-NPM* are Azure's network
/// policies, for instance.
///
/// What goes is printed. What cannot be done is said on standard error, with exit code 2: a chain stays, with all others of
/// its backend's transaction or table, while a rule leads to it that iptables has no words for.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only print what would go; exit code 1 if anything would
    #[arg(long)]
    dry_run: bool,

    /// Rules with a comment that matches go, too; may be given more than once
    #[arg(long, value_name = "GLOB")]
    comment: Vec<Glob>,

    /// The names of the chains
    #[arg(value_name = "GLOB", required_unless_present = "comment")]
    chains: Vec<Glob>,

    #[command(flatten)]
    locking: Locking,

    #[command(flatten)]
    scope: Scope,
}

/// All that `--json` writes.
#[derive(Serialize)]
struct Document {
    done: bool,
    failed: Vec<&'static str>,
    tables: Vec<Record>,
}

/// What goes from a table.
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
    // A name that is no text is none of iptables' tables.
    let table = args.scope.table.as_ref().map(|name| name.to_string_lossy());
    let what = Cleanup {
        table: table.as_deref(),
        chains: &|name| matches(&args.chains, name),
        comments: &|comment| matches(&args.comment, comment),
    };
    let mut tables = Vec::new();
    let mut failed = Vec::new();
    for &backend in args.scope.place.iptables_backends() {
        let gone = clean_up(args, backend, &families, &what);
        match gone {
            Ok(gone) => tables.extend(gone.iter().map(|gone| Record::of(backend, gone))),
            // The other one is cleaned all the same.
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
        note("there is nothing of that");
    }
    Ok(match args.dry_run && !is_empty {
        true => Exit::Absent,
        false => Exit::Done,
    })
}

/// Of one backend. What is not there is not loaded, nor asked for more.
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
        let said = match (&rule.rule, &rule.not_expressible) {
            (Some(rule), _) => rule.clone(),
            (None, why) => format!(
                "a rule that iptables has no words for ({})",
                why.as_deref().unwrap_or_default()
            ),
        };
        writeln!(
            out,
            "- rule {}: {}",
            Printable(&rule.chain),
            Printable(&said)
        )?;
    }
    for chain in &table.chains {
        writeln!(out, "- chain {}", Printable(chain))?;
    }
    Ok(())
}
