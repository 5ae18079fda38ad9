//! Set lookups, set updates and named objects.

use std::sync::Arc;
use std::time::Duration;

use bstr::BStr;

use super::bounds::Bound;
use super::{Continuation, Evaluator, needed};
use crate::path_state::Undetermined;
use crate::sets::{AddedElement, Found, Set, SetChange};
use crate::steps::{Action, ElementBytes, StateOwner};
use crate::value::{Bit, Value};
use chainwright::netlink::Malformed;
use chainwright::nft::ObjectData;
use chainwright::nft::expr::{
    Decoded, DynsetFlags, DynsetOp, DynsetRef, ExpressionIter, ExpressionRef, LookupFlags,
    LookupRef, NestedExpression, ObjectType, ObjrefRef, Register,
};

impl<'s> Evaluator<'_, 's> {
    /// Returns the set of this name.
    fn set(&self, name: &BStr) -> Result<Arc<Set<'s>>, Undetermined> {
        let set = self.table.set(name);
        set.ok_or_else(|| Undetermined::unknown(format!("no such set: {name}")))
    }

    pub(super) fn lookup(
        &mut self,
        lookup: &LookupRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let set = self.set(needed(lookup.set())?)?;
        let register = needed(lookup.sreg())?;
        let inverted = lookup
            .flags()
            .unwrap_or_default()
            .contains(LookupFlags::INV);
        let found =
            self.path_state
                .lookup(self.registers, self.changes, self.table, &set, register)?;
        let Some(found) = found else {
            return Ok(Continuation::on_if(inverted));
        };
        if inverted {
            return Ok(Continuation::Break);
        }
        if !self.of_found(&set, &found)? {
            return Ok(Continuation::Break);
        }
        let Some(dreg) = lookup.dreg() else {
            return Ok(Continuation::On);
        };
        match found {
            Found::Element(element) => self.store_data(dreg, &needed(element.data())?),
            Found::Added(added) if added.data.is_empty() => Err(Undetermined::unknown(format!(
                "the value of {} for the key is unknown",
                set.name
            ))),
            Found::Added(added) => {
                needed(self.registers.store_bits(dreg, &added.data))?;
                Ok(Continuation::On)
            }
        }
    }

    /// Returns whether the expressions of an element let the rule continue.
    fn of_found(&mut self, set: &Set<'s>, found: &Found<'s>) -> Result<bool, Undetermined> {
        match found {
            Found::Element(element) => {
                let key = element.key_bytes();
                let key = key.map(|key| ElementBytes::Known(key.to_vec()));
                let bounds = bounds_of(element.expression(), element.expressions())?;
                self.of_element(set, key, &bounds)
            }
            Found::Added(AddedElement { key, bounds, .. }) => {
                self.of_element(set, Some(self.key_bytes(set, key)), bounds)
            }
        }
    }

    fn of_element(
        &mut self,
        set: &Set<'s>,
        key: Option<ElementBytes>,
        bounds: &[Option<Bound>],
    ) -> Result<bool, Undetermined> {
        for (expression, bound) in bounds.iter().enumerate() {
            let owner = StateOwner::Element {
                set: set.name.to_owned(),
                key: key.clone(),
                expression,
            };
            match bound {
                None => self.state_owners.push((owner, None)),
                Some(bound) => {
                    if !matches!(self.bounded(bound.clone(), owner)?, Continuation::On) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn key_bytes(&self, set: &Set<'s>, key: &[Bit]) -> ElementBytes {
        self.bytes(key)
            .unwrap_or_else(|| ElementBytes::Open(set.describe_key(self.path_state, key)))
    }

    /// Returns bits as bytes, if they are known.
    fn bytes(&self, bits: &[Bit]) -> Option<ElementBytes> {
        let byte = |bits| Some(self.path_state.known(&Value::of_bits(bits))? as u8);
        let bytes = bits.chunks(8).map(byte).collect::<Option<_>>();
        bytes.map(ElementBytes::Known)
    }

    /// Returns the element with a key that rules change: `None` if it is unknown whether it exists.
    fn existing(
        &mut self,
        set: &Set<'s>,
        register: Register,
        key: &[Bit],
    ) -> Result<Option<Option<Found<'s>>>, Undetermined> {
        let known = self
            .registers
            .known(self.path_state, register, set.key_length);
        let Some(known) = known.filter(|_| !self.path_state.context.sets_may_differ) else {
            return Ok(None);
        };
        let change = self
            .path_state
            .last_change(self.changes, self.table, set, key)?;
        Ok(Some(match change {
            None => set.find_own(&known).map(Found::Element),
            Some(change) => (!change.delete).then(|| Found::Added(change.element.clone())),
        }))
    }

    pub(super) fn dynset(
        &mut self,
        dynset: &DynsetRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let set = self.set(needed(dynset.set_name())?)?;
        let key_register = needed(dynset.sreg_key())?;
        let op = needed(dynset.op())?;
        let delete = match op {
            DynsetOp::ADD | DynsetOp::UPDATE => false,
            DynsetOp::DELETE => true,
            _ => {
                return Err(Undetermined::unknown(
                    "it changes a set in an unsupported way",
                ));
            }
        };
        let inverted = dynset
            .flags()
            .unwrap_or_default()
            .contains(DynsetFlags::INV);
        let key = needed(self.registers.bits(key_register, set.key_length))?;
        let snapshot_set = needed(self.table.table.set(set.name))?;
        let data = match dynset.sreg_data() {
            None => Vec::new(),
            Some(register) => {
                let length = snapshot_set.set().data_length().unwrap_or_default();
                needed(self.registers.bits(register, length as usize))?
            }
        };
        let existing = self.existing(&set, key_register, &key)?;
        let is_absent = matches!(existing, Some(None));
        if is_absent && !delete && set.is_full(self.table, self.changes) {
            return Ok(Continuation::on_if(inverted));
        }
        let data_bytes = dynset.sreg_data().map(|_| {
            self.bytes(&data).unwrap_or_else(|| {
                ElementBytes::Open(self.path_state.origin(&Value::of_bits(&data)))
            })
        });
        let key_bytes = self.key_bytes(&set, &key);
        let owner = StateOwner::Set {
            set: set.name.to_owned(),
            key: key_bytes.clone(),
            data: data_bytes,
        };
        self.state_owners.push((owner, None));
        let existing = existing.flatten();
        let mut bounds = Vec::new();
        let goes_on = match &existing {
            _ if delete => true,
            Some(found) => self.of_found(&set, found)?,
            None => {
                bounds = bounds_of(dynset.expr(), dynset.expressions())?;
                if bounds.is_empty() {
                    // The kernel lists expressions of all elements with the set alone.
                    let set = snapshot_set.set();
                    bounds = bounds_of(set.expression(), set.expressions())?;
                }
                self.of_element(&set, Some(key_bytes), &bounds)?
            }
        };
        let description = set.describe_key(self.path_state, &key);
        self.path_state.record_action(Action::Update {
            set: set.name.to_owned(),
            key: description,
            delete,
        });
        // An existing element keeps its data.
        let change = match &existing {
            _ if delete => (!is_absent).then_some(true),
            None => Some(false),
            Some(Found::Element(element)) => {
                // Its time ends at once if neither the rule nor the set has a timeout.
                let is_set = |time: Option<Duration>| time.is_some_and(|time| !time.is_zero());
                let ends = op == DynsetOp::UPDATE
                    && is_set(element.timeout())
                    && !is_set(dynset.timeout())
                    && !is_set(snapshot_set.set().timeout());
                ends.then_some(true)
            }
            Some(Found::Added(_)) => None,
        };
        if let Some(delete) = change {
            self.changes.push(SetChange {
                table: self.table.number,
                set: set.name.to_owned(),
                element: AddedElement {
                    key: key.into(),
                    data: data.into(),
                    bounds: bounds.into(),
                },
                delete,
            });
        }
        // Inverted, it only matches if the update failed; a deletion always matches.
        Ok(Continuation::on_if(delete || goes_on && !inverted))
    }

    /// Evaluates a named object, or one from a map.
    pub(super) fn objref(
        &mut self,
        objref: &ObjrefRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let (kind, name) = match objref.set_sreg() {
            None => (needed(objref.imm_type())?, needed(objref.imm_name())?),
            Some(register) => {
                let name = needed(objref.set_name())?;
                let set = self.set(name)?;
                let found = self.path_state.lookup(
                    self.registers,
                    self.changes,
                    self.table,
                    &set,
                    register,
                )?;
                let element = match found {
                    None => return Ok(Continuation::Break),
                    Some(Found::Element(element)) => element,
                    Some(Found::Added(_)) => {
                        return Err(Undetermined::unknown(format!(
                            "the object of {name} for the key is unknown"
                        )));
                    }
                };
                let snapshot_set = needed(self.table.table.set(name))?;
                (
                    needed(snapshot_set.set().object_type())?,
                    needed(element.object())?,
                )
            }
        };
        let object = self.table.table.object(kind, name);
        let data = object.as_ref().and_then(|object| object.data());
        let owner = StateOwner::Object {
            object_type: kind.0,
            name: name.to_owned(),
        };
        match (kind, data) {
            (ObjectType::COUNTER, _) => {
                self.state_owners.push((owner, None));
                Ok(Continuation::On)
            }
            (ObjectType::QUOTA, Some(ObjectData::Quota(quota))) => {
                self.bounded(Bound::quota(&quota).with(format_args!("({name})")), owner)
            }
            (ObjectType::LIMIT, Some(ObjectData::Limit(limit))) => {
                self.bounded(Bound::limit(&limit).with(format_args!("({name})")), owner)
            }
            (ObjectType::CONNLIMIT, Some(ObjectData::Connlimit(connlimit))) => self.bounded(
                Bound::connlimit(&connlimit).with(format_args!("({name})")),
                owner,
            ),
            (ObjectType::SYNPROXY, _) => self.synproxy(),
            (
                ObjectType::CT_HELPER
                | ObjectType::CT_TIMEOUT
                | ObjectType::CT_EXPECT
                | ObjectType::SECMARK
                | ObjectType::TUNNEL,
                _,
            ) => {
                let kind = kind.name().unwrap_or("object");
                self.path_state
                    .record_action(Action::Other(format!("{kind} {name} is assigned to it")));
                Ok(Continuation::On)
            }
            _ => Err(Undetermined::unknown(format!(
                "the object {name} does not exist, or has an unsupported type"
            ))),
        }
    }
}

/// Returns the bound of each expression of an element that has one.
fn bounds_of(
    one: Option<NestedExpression<'_>>,
    several: Option<ExpressionIter<'_>>,
) -> Result<Vec<Option<Bound>>, Undetermined> {
    let bound = |expression: Result<ExpressionRef<'_>, Malformed>| {
        let Ok(decoded) = expression.and_then(|expression| expression.decode()) else {
            return Err(Undetermined::unknown("malformed expression in an element"));
        };
        match (Bound::of(&decoded), &decoded) {
            (Some(bound), _) => Ok(Some(bound.with("for this element"))),
            (None, Decoded::Counter(_) | Decoded::Last(_)) => Ok(None),
            (None, other) => Err(Undetermined::unknown(format!(
                "unsupported expression `{}` in an element",
                other.name()
            ))),
        }
    };
    let one = one.as_ref().map(|one| bound(one.get()));
    one.into_iter()
        .chain(several.into_iter().flatten().map(bound))
        .collect()
}
