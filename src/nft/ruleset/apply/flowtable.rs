//! Adds, changes and deletes flowtables.

use bstr::BString;

use super::chain::{with_devices, without_devices};
use super::{Batch, INVALID, Operation, Refusal};
use crate::nft::Flowtable;
use crate::nft::normalize::Normal as _;

impl Batch<'_> {
    pub(super) fn new_flowtable(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let flowtable = Flowtable::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&flowtable.table)?;
        let mut flowtable = flowtable.into_owned();
        let named = BString::from(flowtable.name.as_ref().ok_or(INVALID)?.to_vec());
        let table = self.table_mut(&key)?;
        if let Some(existing) = table.flowtables.get_mut(&named) {
            operation.may_exist()?;
            existing.flags = flowtable.flags.or(existing.flags);
            if let Some(new) = flowtable.hook.and_then(|hook| hook.devices) {
                let hook = existing.hook.get_or_insert_default();
                hook.devices = Some(with_devices(hook.devices.take(), &new));
            }
            return Ok(());
        }
        flowtable.normalize();
        flowtable.handle = self.ruleset.handle();
        self.table_mut(&key)?.flowtables.insert(named, flowtable);
        Ok(())
    }

    pub(super) fn delete_flowtable(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let flowtable = Flowtable::from_attributes(operation.family, operation.attributes)?;
        let table = self.table_mut(&operation.table(&flowtable.table)?)?;
        let found = match flowtable.handle {
            Some(_) => table.flowtables.find(|one| one.handle == flowtable.handle),
            None => {
                let named = flowtable.name.as_deref().ok_or(INVALID)?;
                table.flowtables.find_key(named)
            }
        };
        let Some(named) = operation.to_delete(found.cloned())? else {
            return Ok(());
        };
        match flowtable.hook {
            None => _ = table.flowtables.remove(&named),
            Some(gone) => {
                let gone = gone.devices.unwrap_or_default();
                if let Some(existing) = table.flowtables.get_mut(&named) {
                    let hook = existing.hook.get_or_insert_default();
                    hook.devices = Some(without_devices(hook.devices.as_ref(), &gone)?);
                }
            }
        }
        Ok(())
    }
}
