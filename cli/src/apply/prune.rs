//! `chainwright apply --prune`: changes tables to match a file, with the fewest changes.

use chainwright::nft::{Connection, OwnerTag, PlanOptions, Snapshot};
use serde::Serialize;

use crate::apply::Args;
use crate::confirm::Reach;
use crate::output::{Error, Exit, Output, Printable, name_text, note};
use crate::progress::Progress;

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

/// Makes the tables match the desired state.
pub(crate) fn run(
    args: &Args,
    desired: &Snapshot,
    owner: Option<&OwnerTag>,
    json: bool,
) -> Result<Exit, Error> {
    let change = || change(args, desired, owner, json);
    args.confirm.guard(Reach::NFT, None, change)
}

fn change(
    args: &Args,
    desired: &Snapshot,
    owner: Option<&OwnerTag>,
    json: bool,
) -> Result<Exit, Error> {
    let progress = Progress::new("comparing the ruleset with the file");
    let mut options = PlanOptions::default();
    options.owner_tag = owner.copied();
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
