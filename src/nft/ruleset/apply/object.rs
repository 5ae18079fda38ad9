//! Adds and deletes stateful objects.

use bstr::BString;

use super::{Batch, INVALID, Operation, Refusal};
use crate::nft::expr::ObjectType;
use crate::nft::normalize::Normal as _;
use crate::nft::{ObjectData, StatefulObject};

impl Batch<'_> {
    pub(super) fn new_object(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let object = StatefulObject::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&object.table)?;
        let mut object = object.into_owned();
        object.normalize();
        let identity = identity(&object)?;
        let table = self.table_mut(&key)?;
        if let Some(existing) = table.objects.get_mut(&identity) {
            operation.may_exist()?;
            // Only quotas can be changed; the used amount remains.
            if let (Some(ObjectData::Quota(old)), Some(ObjectData::Quota(new))) =
                (&mut existing.data, object.data)
            {
                (old.bytes, old.flags) = (new.bytes, new.flags);
                existing.normalize();
            }
            return Ok(());
        }
        object.handle = self.ruleset.handle();
        self.table_mut(&key)?.objects.insert(identity, object);
        Ok(())
    }

    pub(super) fn delete_object(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let object = StatefulObject::from_attributes(operation.family, operation.attributes)?;
        let table = self.table_mut(&operation.table(&object.table)?)?;
        let found = match object.handle {
            Some(_) => table
                .objects
                .find(|one| one.handle == object.handle && one.object_type == object.object_type),
            None => table.objects.find_key(&identity(&object)?),
        };
        if let Some(identity) = operation.to_delete(found.cloned())? {
            table.objects.remove(&identity);
        }
        Ok(())
    }
}

/// Returns the type and the name of an object.
pub(super) fn identity(object: &StatefulObject<'_>) -> Result<(ObjectType, BString), Refusal> {
    match (object.object_type, &object.name) {
        (Some(object_type), Some(name)) => Ok((object_type, name.to_vec().into())),
        _ => Err(INVALID),
    }
}
