//! Adds and deletes tables.

use super::{Batch, Operation, Refusal, UNSUPPORTED};
use crate::nft::ruleset::RulesetTable;
use crate::nft::snapshot::kept_flags;
use crate::nft::{Family, Table};

impl Batch<'_> {
    pub(super) fn new_table(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let table = Table::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&table.name)?;
        if !Family::WITH_TABLES.contains(&operation.family) {
            return Err(UNSUPPORTED);
        }
        if let Ok(existing) = self.table_mut(&key) {
            operation.may_exist()?;
            if table.flags.is_some() {
                existing.table.flags = table.flags.map(kept_flags);
            }
            return Ok(());
        }
        let mut table = RulesetTable::new(table.into_owned());
        table.table.handle = self.ruleset.handle();
        self.ruleset.tables.insert(key, table);
        Ok(())
    }

    pub(super) fn delete_tables(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let table = Table::from_attributes(operation.family, operation.attributes)?;
        let family = operation.family;
        if family == Family::UNSPEC || table.name.is_none() && table.handle.is_none() {
            let is_meant = |one: &RulesetTable| {
                (family == Family::UNSPEC || one.table.family == family)
                    && (table.name.is_none() || one.table.name == table.name)
            };
            self.ruleset.tables.retain(|table| !is_meant(table));
            return Ok(());
        }
        let tables = &self.ruleset.tables;
        let found = match table.handle {
            Some(_) => tables
                .find(|one| one.table.family == family && one.table.handle == table.handle)
                .cloned(),
            None => Some(operation.table(&table.name)?).filter(|key| tables.get(key).is_some()),
        };
        if let Some(key) = operation.to_delete(found)? {
            self.ruleset.tables.remove(&key);
        }
        Ok(())
    }
}
