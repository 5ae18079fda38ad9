//! Compares the ruleset with a file.

use std::collections::BTreeSet;
use std::path::Path;

use bstr::{BString, ByteSlice};
use chainwright::iptables::Tables;
use chainwright::iptables::text::RestoreOptions;
use chainwright::legacy;
use chainwright::nft::{self, PlanOptions, Ruleset, Scope as NftScope, Snapshot};

use crate::iptables::{saved_text, snapshot_of_text};
use crate::output::{Error, Printable, causes};
use crate::ruleset_source::Source;
use crate::scope::{Backend, Scope};

/// Returns the number of tables that differ from the file; `None` if the snapshot is not of one generation. `legacy` are
/// the kernel's legacy tables.
pub(super) fn different_tables(
    scope: &Scope,
    file: &Path,
    snapshot: &Snapshot,
    legacy: &[legacy::Table],
) -> Result<Option<usize>, Error> {
    let name = file.to_string_lossy();
    let source = Source::read(file, scope)?;
    let is_legacy = scope.place.listed() == Backend::Legacy;
    if is_legacy && !matches!(source, Source::Iptables(..)) {
        return Err(Error::Other(
            "legacy tables are compared only with output of iptables-save".into(),
        ));
    }
    let is_snapshot = matches!(source, Source::Backup(_));
    let family = match source {
        Source::Iptables(family, _) => Some(family),
        _ => None,
    };
    let desired = source.into_snapshot().map_err(Error::Other)?;
    let desired = scope.part_of(desired, &name).unwrap_or_default();
    // A truncated text would otherwise agree with every ruleset.
    if desired.tables().len() == 0 && (scope.is_filtered() || !is_snapshot) {
        let lacks = match scope.is_filtered() {
            true => "has none of the selected tables",
            false => "has no table",
        };
        return Err(Error::Other(format!("{} {lacks}", Printable(&name))));
    }
    if let Some(family) = family {
        let present = |(of, name): &Key| match is_legacy {
            true => {
                let named = legacy.iter().filter(|table| table.name().as_bstr() == name);
                Tables::in_legacy(family, named.cloned())
            }
            false => {
                let table = snapshot.filtered(&NftScope::table(*of, name.as_bstr()));
                Tables::in_snapshot(family, table.unwrap_or_default())
            }
        };
        let is_read = is_legacy || snapshot.generation().is_some();
        return is_read.then(|| iptables(&present, &desired)).transpose();
    }
    let present = snapshot.filtered(desired.scope());
    let present = present.filter(|_| snapshot.generation().is_some());
    present
        .map(|present| tables(&present, &desired, is_snapshot))
        .transpose()
}

/// Family and name of a table.
type Key = (nft::Family, BString);

fn keys(snapshot: &Snapshot) -> impl Iterator<Item = Key> + '_ {
    let tables = snapshot.tables().map(|table| table.table());
    tables.map(|table| (table.family(), table.name().to_owned()))
}

/// Counts the tables that differ. With `of_all`, those that are not desired differ, too, unless a program owns them: they
/// vanish with it.
fn tables(present: &Snapshot, desired: &Snapshot, of_all: bool) -> Result<usize, Error> {
    let all: BTreeSet<Key> = match of_all {
        true => keys(present).chain(keys(desired)).collect(),
        false => keys(desired).collect(),
    };
    let mut different = 0;
    for (family, name) in all {
        let scope = NftScope::table(family, name.as_bstr());
        let [present, desired] =
            [present, desired].map(|one| one.filtered(&scope).unwrap_or_default());
        let is_owned = present
            .tables()
            .any(|table| table.table().owner().is_some());
        if is_owned && desired.tables().len() == 0 {
            continue;
        }
        // A plan skips tables of other owners.
        let present = Ruleset::try_from(&present).map_err(|error| Error::Other(causes(&error)))?;
        let mut options = PlanOptions::default();
        options.remove_other_tables = true;
        let plan = present.to_snapshot(&scope).plan(&desired, options);
        let plan = plan.map_err(|error| Error::Other(causes(&error)))?;
        different += usize::from(!plan.is_empty());
    }
    Ok(different)
}

/// Compares tables as iptables' text, because each version of iptables encodes rules in another way.
fn iptables(present: &dyn Fn(&Key) -> Tables, desired: &Snapshot) -> Result<usize, Error> {
    let mut different = 0;
    for key in keys(desired) {
        let present = present(&key);
        let is_same = match saved_text(&present)? {
            None => false,
            Some(text) => {
                let options = RestoreOptions::default();
                let present = snapshot_of_text(present.family(), &text, &options)?;
                let desired = desired.filtered(&NftScope::table(key.0, key.1.as_bstr()));
                tables(&present, &desired.unwrap_or_default(), false)? == 0
            }
        };
        different += usize::from(!is_same);
    }
    Ok(different)
}
