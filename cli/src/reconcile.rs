//! `chainwright reconcile`: changes tables to match a file, with the fewest changes.

use std::path::PathBuf;

use chainwright::nft::{Connection, OwnerTag, PlanOptions, Snapshot};
use serde::Serialize;

use crate::confirm::{Confirm, Reach};
use crate::output::{Error, Exit, Output, Printable, name_text, note};
use crate::progress::Progress;
use crate::scope::Scope;

/// Make the tables in a backup match the backup, with the fewest changes
///
/// Objects that already match are not changed: rules keep their handles and counters, sets their elements. All changes
/// are one atomic transaction. Tables that are not in the file, or that the options do not select, are not changed;
/// neither are elements that rules added to sets (`flags dynamic`). To restore everything, including counters and other
/// programs' tables, use rollback.
///
/// If the kernel cannot change something (the hook of a chain, the type of a set, a stateful object), it is deleted and
/// recreated, with everything that refers to it; the output reports this.
///
/// --owner TAG restricts this to objects whose comment is the tag, or starts with the tag and a colon: in shared
/// tables, chains, sets, stateful objects and rules with the tag are changed to match the backup, and objects without
/// it are neither changed nor deleted.
///
/// With --dry-run no table is changed, and the exit code is 1 if there are changes. It also queries the kernel for all
/// features that the changes need, which may load modules. If the kernel lacks some, it lists them with their kernel
/// configuration options, and the exit code is 2.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Input file, written by `backup`
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only show the changes
    #[arg(long, conflicts_with = "confirm")]
    dry_run: bool,

    /// Only objects with this tag in their comment
    #[arg(long, value_name = "TAG")]
    owner: Option<OwnerTag>,

    #[command(flatten)]
    confirm: Confirm,

    #[command(flatten)]
    scope: Scope,
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    done: bool,
    operations: Vec<String>,
    replaced: Vec<String>,
    kept_rules: usize,
    owned_by_others: Vec<String>,
    lacking: Vec<String>,
    costs: Vec<String>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let Some(desired) = args.scope.load(&args.file)? else {
        return Ok(Exit::Absent);
    };
    let change = || change(args, &desired, json);
    args.confirm.guard(Reach::NFT, None, change)
}

fn change(args: &Args, desired: &Snapshot, json: bool) -> Result<Exit, Error> {
    let progress = Progress::new("comparing the ruleset with the backup");
    let mut options = PlanOptions::default();
    options.owner_tag = args.owner;
    let (plan, found) = if args.dry_run {
        let mut connection = Connection::open_if_loaded()?;
        let plan = connection.plan(desired, options)?;
        let found = match plan.is_empty() {
            true => None,
            false => Some(connection.preflight(plan.transaction())?),
        };
        (plan, found)
    } else {
        let plan = Connection::open()?.reconcile(desired, options)?;
        (plan, None)
    };
    let (lacking, costs) =
        found.map_or_else(Default::default, |found| (found.missing, found.costs));
    drop(progress);
    let owned: Vec<String> = plan
        .owned_by_others
        .iter()
        .map(|(family, table)| format!("{family} {}", name_text(table)))
        .collect();
    let mut out = Output::new();
    if json {
        out.json(
            "reconcile",
            &Document {
                done: !args.dry_run,
                operations: plan.to_string().lines().map(str::to_owned).collect(),
                replaced: plan.replaced.iter().map(ToString::to_string).collect(),
                kept_rules: plan.kept_rules,
                owned_by_others: owned.clone(),
                lacking: lacking.iter().map(ToString::to_string).collect(),
                costs: costs.iter().map(ToString::to_string).collect(),
            },
        )?;
    } else {
        for line in plan.to_string().lines() {
            writeln!(out, "{}", Printable(line))?;
        }
        for object in &plan.replaced {
            let object = object.to_string();
            writeln!(out, "recreated: {}", Printable(&object))?;
        }
        match (plan.is_empty(), args.dry_run) {
            (true, _) => writeln!(out, "nothing to do")?,
            (false, true) => writeln!(out, "nothing was done")?,
            (false, false) => writeln!(out, "done in one transaction")?,
        }
    }
    out.flush()?;
    for cost in &costs {
        note(&Printable(&cost.to_string()).to_string());
    }
    if !owned.is_empty() && !args.dry_run {
        let owned: Vec<_> = owned
            .iter()
            .map(|name| Printable(name).to_string())
            .collect();
        note(&format!(
            "not changed, because other processes own them: {}",
            owned.join(", ")
        ));
        return Ok(Exit::Failed);
    }
    if !lacking.is_empty() {
        for missing in &lacking {
            note(&Printable(&missing.to_string()).to_string());
        }
        return Ok(Exit::Failed);
    }
    Ok(match args.dry_run && !plan.is_empty() {
        true => Exit::Absent,
        false => Exit::Done,
    })
}
