//! The legacy tables in use.

use chainwright::legacy::{self, Lookup, Status};
use chainwright::nft;

use crate::output::{Error, causes};
use crate::scope::{Backend, Found, Scope, UnreadPart};

/// Returns a family's name in nf_tables.
pub(crate) fn family_name(family: legacy::Family) -> &'static str {
    nft::Family::from(family).name().unwrap_or_default()
}

/// Passes each selected table in use to `each`. Creates no table and loads no module. If a family cannot be read, this
/// is an error only if just the legacy tables are selected.
pub(crate) fn read_selected(
    scope: &Scope,
    found: &mut Found,
    each: &mut dyn FnMut(&legacy::Table) -> Result<(), Error>,
) -> Result<(), Error> {
    let backend = scope.place.listed();
    if backend == Backend::Nft {
        return Ok(());
    }
    let alone = backend == Backend::Legacy;
    let families = scope.place.legacy();
    let mut refused: Vec<legacy::Error> = Vec::new();
    for &family in &families {
        match read_family(scope, family, each)? {
            Ok(()) => {}
            Err(error) if alone && !is_not_built(&error) => return Err(error.into()),
            Err(error) => {
                found.not_read.push(UnreadPart {
                    backend: "legacy",
                    family: Some(family_name(family)),
                    reason: causes(&error),
                });
                refused.push(error);
            }
        }
    }
    if alone && refused.len() == families.len() {
        // The kernel has none of the selected families.
        return match refused.into_iter().next() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        };
    }
    for error in &refused {
        match error {
            legacy::Error::NotBuilt { .. } => {}
            legacy::Error::NoPermission { .. } => found.permission_denied = true,
            _ => found.is_inconsistent = true,
        }
    }
    found.notes.extend(not_read(&refused));
    Ok(())
}

/// Returns the selected tables in use: `ip filter`. Ignores tables that cannot be read.
pub(crate) fn in_use(scope: &Scope) -> Vec<String> {
    let mut tables = Vec::new();
    for family in scope.place.legacy() {
        let Ok(Status::InUse(names)) = legacy::status(family) else {
            continue;
        };
        let names = names
            .iter()
            .filter(|name| scope.admits_table(name.as_ref()));
        tables.extend(names.map(|name| format!("{} {name}", family_name(family))));
    }
    tables
}

const fn is_not_built(error: &legacy::Error) -> bool {
    matches!(error, legacy::Error::NotBuilt { .. })
}

/// Reads the tables of one family. The inner error is the reason why they could not be read, the outer one is from
/// `each`.
fn read_family(
    scope: &Scope,
    family: legacy::Family,
    each: &mut dyn FnMut(&legacy::Table) -> Result<(), Error>,
) -> Result<Result<(), legacy::Error>, Error> {
    let opened = legacy::Connection::open(family)
        .and_then(|connection| connection.tables().map(|tables| (connection, tables)));
    let (connection, tables) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error)),
    };
    let mut buffer = legacy::Table::empty(family);
    for name in tables {
        if !scope.admits_table(name.as_ref()) {
            continue;
        }
        match connection.read_into(name, &mut buffer) {
            Ok(Lookup::InUse(table)) => each(table)?,
            Ok(Lookup::NotInUse) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

/// Formats the families of legacy tables that could not be read, one line per reason.
fn not_read(refused: &[legacy::Error]) -> Vec<String> {
    let mut notes = Vec::new();
    let families = |of: &dyn Fn(&legacy::Error) -> Option<legacy::Family>| {
        let names: Vec<_> = refused.iter().filter_map(of).map(family_name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = families(&|error| match error {
        legacy::Error::NotBuilt { family } => Some(*family),
        _ => None,
    }) {
        notes.push(format!(
            "legacy tables ({names}) not examined: this kernel has none (not built in, or their \
             module is not loaded)"
        ));
    }
    for wanted in [legacy::Access::Tables, legacy::Access::TableNames] {
        if let Some(names) = families(&|error| match error {
            legacy::Error::NoPermission { family, access } if *access == wanted => Some(*family),
            _ => None,
        }) {
            notes.push(format!(
                "legacy tables ({names}) not examined: permission denied: {wanted}"
            ));
        }
    }
    for error in refused {
        if !matches!(
            error,
            legacy::Error::NotBuilt { .. } | legacy::Error::NoPermission { .. }
        ) {
            notes.push(format!("legacy tables not examined: {}", causes(error)));
        }
    }
    notes
}
