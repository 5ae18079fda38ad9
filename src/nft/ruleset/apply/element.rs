//! Adds and deletes elements.

use std::collections::BTreeMap;

use bstr::BString;

use super::{ABSENT, Batch, EXISTS, INVALID, Operation, Refusal, TableKey, exact};
use crate::nft::declare::Field;
use crate::nft::element::ElementKey;
use crate::nft::expr::Data;
use crate::nft::normalize::Normal as _;
use crate::nft::ruleset::{PARSED, RulesetTable, name};
use crate::nft::{Element, ElementRef, ElementsRef, Set, SetFlags};

impl Batch<'_> {
    /// Returns the table and the name of the set of a list of elements.
    pub(super) fn set_of_elements(
        &self,
        operation: Operation<'_>,
        list: &ElementsRef<'_>,
    ) -> Result<(TableKey, BString), Refusal> {
        let key = (operation.family, list.table().to_owned());
        let set = self.set(&key, self.table(&key)?, Some(list.set()), list.set_id())?;
        let named = name(&set.set.name).to_owned();
        Ok((key, named))
    }

    pub(super) fn new_elements(
        &mut self,
        operation: Operation<'_>,
        list: ElementsRef<'_>,
    ) -> Result<(), Refusal> {
        let (key, named) = self.set_of_elements(operation, &list)?;
        let table = self.table(&key)?;
        let set = table.sets.get(&named).ok_or(ABSENT)?;
        let mut new = BTreeMap::new();
        for element in list.elements().into_iter().flatten() {
            let element = self
                .element(&key, table, &set.set, &element?)?
                .into_normal();
            let identity = ElementKey::of(&element)?.into_owned();
            let existing = new.get(&identity);
            if let Some(existing) = existing.or_else(|| set.elements.get(&identity)) {
                operation.may_exist()?;
                let [one, other] = [&element, &existing[..]]
                    .map(|element| ElementRef::parse(element).expect(PARSED));
                if one.data() != other.data() || one.object() != other.object() {
                    return Err(EXISTS);
                }
                if one.timeout() == other.timeout() && one.expiration().is_none() {
                    continue;
                }
            }
            new.insert(identity, element.into_boxed_slice());
        }
        let table = self.table_mut(&key)?;
        let set = table.sets.get_mut(&named).ok_or(ABSENT)?;
        set.elements.extend(new);
        Ok(())
    }

    /// Returns an element with names for ids, and with what it inherits from its set.
    pub(super) fn element<'e>(
        &self,
        key: &TableKey,
        table: &RulesetTable,
        set: &Set<'_>,
        element: &ElementRef<'e>,
    ) -> Result<Element<'e>, Refusal> {
        let is_end = element.is_interval_end();
        let mut element = element.to_builder();
        if let Some(Data::Verdict(verdict)) = &mut element.data {
            self.resolve_verdict(key, table, verdict)?;
        }
        if let Some(object) = &element.object {
            let of_type = set.object_type.unwrap_or_default();
            let object = (of_type, BString::from(object.to_vec()));
            table.objects.get(&object).ok_or(ABSENT)?;
        }
        let flags = set.flags.unwrap_or_default();
        let needs = |flag| flags.contains(flag) && !is_end;
        if element.data.is_some() != needs(SetFlags::MAP)
            || element.object.is_some() != needs(SetFlags::OBJECT)
        {
            return Err(INVALID);
        }
        let length =
            |data: &Option<Data<'_>>| data.as_ref().and_then(Data::as_value).map(<[u8]>::len);
        let set_length = set.key_length.map(|length| length as usize);
        if length(&element.key).is_some_and(|length| Some(length) != set_length) {
            return Err(INVALID);
        }
        // The kernel lists a timeout only if it is not the set's.
        let default = set.timeout.unwrap_or_default();
        element.timeout = element.timeout.map(exact);
        element.timeout.take_if(|timeout| *timeout == default);
        if element.expression.is_none() && element.expressions.is_none() {
            element.expression = set.expression.clone().map(Field::into_static);
            element.expressions = set.expressions.clone().map(Field::into_static);
        }
        Ok(element)
    }

    pub(super) fn delete_elements(
        &mut self,
        operation: Operation<'_>,
        list: ElementsRef<'_>,
    ) -> Result<(), Refusal> {
        let (key, named) = self.set_of_elements(operation, &list)?;
        let set = self.table_mut(&key)?.sets.get_mut(&named).ok_or(ABSENT)?;
        let Some(elements) = list.elements() else {
            set.elements.clear();
            return Ok(());
        };
        let mut gone = Vec::new();
        for element in elements {
            let element = element?.to_builder().into_normal();
            let identity = ElementKey::of(&element)?.into_owned();
            let found = set.elements.contains_key(&identity).then_some(identity);
            gone.extend(operation.to_delete(found)?);
        }
        for identity in gone {
            set.elements.remove(&identity);
        }
        Ok(())
    }
}
