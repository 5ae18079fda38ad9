//! Adds, changes and deletes sets.

use bstr::BString;
use chainwright_sys::netlink::NLM_F_CREATE;

use super::{ABSENT, Batch, EXISTS, INVALID, Operation, Refusal, exact};
use crate::nft::normalize::Normal as _;
use crate::nft::ruleset::{PARSED, RulesetSet};
use crate::nft::{ElementRef, Set, SetFlags};

/// The size that the kernel gives a set without one when a rule adds to it.
pub(super) const UPDATED_SIZE: u32 = 65535;

impl Batch<'_> {
    pub(super) fn new_set(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let set = Set::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&set.table)?;
        let id = set.id;
        let mut set = set.into_owned();
        set.normalize();
        set.timeout = set.timeout.map(exact);
        let mut named = BString::from(set.name.as_ref().ok_or(INVALID)?.to_vec());
        let table = self.table_mut(&key)?;
        if let Some(existing) = table.sets.get_mut(&named) {
            operation.may_exist()?;
            let definition = |set: &Set<'static>| Set {
                handle: None,
                timeout: None,
                gc_interval: None,
                policy: None,
                userdata: None,
                description: set.description.clone().map(|mut description| {
                    description.size = None;
                    description
                }),
                ..set.clone()
            };
            if definition(&set) != definition(&existing.set) {
                return Err(EXISTS);
            }
            let handle = existing.set.handle;
            self.updated_sets.push((key, named, handle, set));
            return Ok(());
        }
        if !operation.has(NLM_F_CREATE) {
            return Err(ABSENT);
        }
        let is_anonymous = set.flags.unwrap_or_default().contains(SetFlags::ANONYMOUS);
        if is_anonymous && let Some(before) = named.strip_suffix(b"%d") {
            let before = before.to_vec();
            loop {
                named = [&before[..], table.anonymous_sets.to_string().as_bytes()]
                    .concat()
                    .into();
                table.anonymous_sets += 1;
                if table.sets.get(&named).is_none() {
                    break;
                }
            }
        }
        set.name = Some(named.clone().into());
        set.handle = self.ruleset.handle();
        if let Some(id) = id {
            self.set_ids.insert(id, (key.clone(), named.clone()));
        }
        let elements = Default::default();
        self.table_mut(&key)?
            .sets
            .insert(named, RulesetSet { set, elements });
        Ok(())
    }

    pub(super) fn delete_set(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let set = Set::from_attributes(operation.family, operation.attributes)?;
        let table = self.table_mut(&operation.table(&set.table)?)?;
        let found = match set.handle {
            Some(_) => table.sets.find(|one| one.set.handle == set.handle),
            None => table.sets.find_key(set.name.as_deref().ok_or(INVALID)?),
        };
        if let Some(named) = operation.to_delete(found.cloned())? {
            table.sets.remove(&named);
        }
        Ok(())
    }
}

impl RulesetSet {
    /// Changes the properties that an existing set can get.
    pub(super) fn update(&mut self, new: &Set<'static>) {
        let size = |set: &Set<'_>| {
            set.description
                .as_ref()
                .and_then(|description| description.size)
        };
        if let Some(size) = size(new) {
            self.set.description.get_or_insert_default().size = Some(size);
        }
        self.set.gc_interval = new.gc_interval;
        let old = std::mem::replace(&mut self.set.timeout, new.timeout);
        if old == new.timeout {
            return;
        }
        // Existing elements keep their timeouts.
        for element in self.elements.values_mut() {
            let parsed = ElementRef::parse(element).expect(PARSED);
            if !parsed.is_interval_end() {
                let mut element_with = parsed.to_builder();
                let timeout = element_with.timeout.unwrap_or(old.unwrap_or_default());
                element_with.timeout =
                    Some(timeout).filter(|timeout| *timeout != new.timeout.unwrap_or_default());
                *element = element_with.into_normal().into();
            }
        }
    }
}
