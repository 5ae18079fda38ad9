//! Compares the ruleset with a file.

use std::path::Path;

use bstr::ByteSlice;
use chainwright::iptables::text::{RestoreOptions, SaveOptions, ruleset};
use chainwright::iptables::{Family, Tables};
use chainwright::nft::{PlanOptions, Scope as NftScope, Snapshot, TableRef};

use crate::iptables::TableSelection;
use crate::output::{Error, Printable, causes};
use crate::ruleset_source::Source;
use crate::scope::{Backend, Scope};

/// Returns the number of tables that differ from the file; `None` if the snapshot is not of one generation.
pub(super) fn different_tables(
    scope: &Scope,
    file: &Path,
    snapshot: &Snapshot,
) -> Result<Option<usize>, Error> {
    let name = file.to_string_lossy();
    let source = Source::read(file, scope)?;
    let is_legacy = scope.place.listed() == Backend::Legacy;
    if is_legacy && !matches!(source, Source::Iptables(..)) {
        return Err(Error::Other(
            "legacy tables are compared only with output of iptables-save".into(),
        ));
    }
    let desired = source.snapshot().map_err(Error::Other)?;
    let desired = scope.part_of(desired, &name);
    let desired = desired.filter(|part| part.tables().len() > 0 || !scope.is_filtered());
    let Some(desired) = desired else {
        let name = Printable(&name);
        let reason = format!("{name} has none of the selected tables");
        return Err(Error::Other(reason));
    };
    if !is_legacy && snapshot.generation().is_none() {
        return Ok(None);
    }
    if let Source::Iptables(family, _) = source {
        return iptables(scope, family, &desired, snapshot).map(Some);
    }
    let Some(present) = snapshot.filtered(desired.scope()) else {
        return Ok(None);
    };
    let remove_other_tables = matches!(source, Source::Backup(_));
    tables(&present, &desired, remove_other_tables).map(Some)
}

fn tables(
    present: &Snapshot,
    desired: &Snapshot,
    remove_other_tables: bool,
) -> Result<usize, Error> {
    let mut options = PlanOptions::default();
    options.remove_other_tables = remove_other_tables;
    let plan = present.plan(desired, options);
    let plan = plan.map_err(|error| Error::Other(causes(&error)))?;
    Ok(plan.tables().len())
}

/// Compares tables as iptables' text, because each version of iptables encodes rules in another way.
fn iptables(
    scope: &Scope,
    family: Family,
    desired: &Snapshot,
    snapshot: &Snapshot,
) -> Result<usize, Error> {
    let mut different = 0;
    for table in desired.tables() {
        let table = table.table();
        let of_table = NftScope::table(table.family(), table.name());
        let Some(desired) = desired.filtered(&of_table) else {
            continue;
        };
        let mut text = Vec::new();
        let present = present(scope, family, &table, snapshot)?;
        let omissions = present.save(SaveOptions::default(), &mut text);
        let is_same = omissions.map_err(Error::Output)?.is_complete() && {
            let present = ruleset(family, text, &RestoreOptions::default());
            let present = present.map_err(|error| Error::Other(causes(&error)))?;
            tables(&present.to_snapshot(&NftScope::all()), &desired, false)? == 0
        };
        different += usize::from(!is_same);
    }
    Ok(different)
}

/// Returns a table of the kernel, if it exists there.
fn present(
    scope: &Scope,
    family: Family,
    table: &TableRef<'_>,
    snapshot: &Snapshot,
) -> Result<Tables, Error> {
    if scope.place.listed() == Backend::Legacy {
        let mut tables = TableSelection::of(&scope.place)?.open_if_loaded()?;
        return Ok(tables.read(family, &[&table.name().to_str_lossy()])?);
    }
    let part = snapshot.filtered(&NftScope::table(table.family(), table.name()));
    Ok(Tables::in_snapshot(family, part.unwrap_or_default()))
}
