//! Set lookups, set updates and named objects.

use std::sync::Arc;

use bstr::BStr;

use super::bounds::Bound;
use super::{Continuation, Evaluator, needed};
use crate::path_state::Undetermined;
use crate::sets::{Found, Set, SetChange};
use crate::steps::Action;
use chainwright::netlink::Malformed;
use chainwright::nft::ObjectData;
use chainwright::nft::expr::{
    Decoded, DynsetFlags, DynsetOp, DynsetRef, ExpressionRef, LookupFlags, LookupRef,
    NestedExpression, ObjectType, ObjrefRef,
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
        if let Found::Element(element) = &found
            && !self.of_element(element.expression(), element.expressions())?
        {
            return Ok(Continuation::Break);
        }
        let Some(dreg) = lookup.dreg() else {
            return Ok(Continuation::On);
        };
        match found {
            Found::Element(element) => self.store_data(dreg, &needed(element.data())?),
            Found::Added(bits) if bits.is_empty() => Err(Undetermined::unknown(format!(
                "the value of {} for the key is unknown",
                set.name
            ))),
            Found::Added(bits) => {
                needed(self.registers.store_bits(dreg, &bits))?;
                Ok(Continuation::On)
            }
        }
    }

    /// Returns whether the expressions of an element let the rule continue.
    fn of_element<'e>(
        &mut self,
        one: Option<NestedExpression<'_>>,
        several: Option<impl Iterator<Item = Result<ExpressionRef<'e>, Malformed>>>,
    ) -> Result<bool, Undetermined> {
        if let Some(one) = one
            && !self.goes_on_behind(one.get())?
        {
            return Ok(false);
        }
        for expression in several.into_iter().flatten() {
            if !self.goes_on_behind(expression)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn goes_on_behind(
        &mut self,
        expression: Result<ExpressionRef<'_>, Malformed>,
    ) -> Result<bool, Undetermined> {
        let Ok(decoded) = expression.and_then(|expression| expression.decode()) else {
            return Err(Undetermined::unknown("malformed expression in an element"));
        };
        match (Bound::of(&decoded), &decoded) {
            (Some(bound), _) => {
                let went = self.bounded(bound.with("for this element"))?;
                Ok(matches!(went, Continuation::On))
            }
            (None, Decoded::Counter(_) | Decoded::Last(_)) => Ok(true),
            (None, other) => Err(Undetermined::unknown(format!(
                "unsupported expression `{}` in an element",
                other.name()
            ))),
        }
    }

    pub(super) fn dynset(
        &mut self,
        dynset: &DynsetRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let set = self.set(needed(dynset.set_name())?)?;
        let key_register = needed(dynset.sreg_key())?;
        let delete = match needed(dynset.op())? {
            DynsetOp::ADD | DynsetOp::UPDATE => false,
            DynsetOp::DELETE => true,
            _ => {
                return Err(Undetermined::unknown(
                    "it changes a set in an unsupported way",
                ));
            }
        };
        let flags = dynset.flags().unwrap_or_default();
        let key = needed(self.registers.bits(key_register, set.key_length))?;
        let data = match dynset.sreg_data() {
            None => Vec::new(),
            Some(register) => {
                let snapshot_set = self.table.table.set(set.name);
                let length = snapshot_set.and_then(|snapshot_set| snapshot_set.set().data_length());
                needed(
                    self.registers
                        .bits(register, length.unwrap_or_default() as usize),
                )?
            }
        };
        let goes_on = delete || self.of_element(dynset.expr(), dynset.expressions())?;
        let description = set.describe_key(self.path_state, &key);
        self.path_state.record_action(Action::Update {
            set: set.name.to_owned(),
            key: description,
            delete,
        });
        self.changes.push(SetChange {
            table: self.table.number,
            set: set.name.to_owned(),
            key: key.into(),
            data: data.into(),
            delete,
        });
        // Inverted, it only matches if the update failed.
        Ok(Continuation::on_if(
            goes_on && !flags.contains(DynsetFlags::INV),
        ))
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
        match (kind, data) {
            (ObjectType::COUNTER, _) => Ok(Continuation::On),
            (ObjectType::QUOTA, Some(ObjectData::Quota(quota))) => {
                self.bounded(Bound::quota(&quota).with(format_args!("({name})")))
            }
            (ObjectType::LIMIT, Some(ObjectData::Limit(limit))) => {
                self.bounded(Bound::limit(&limit).with(format_args!("({name})")))
            }
            (ObjectType::CONNLIMIT, Some(ObjectData::Connlimit(connlimit))) => {
                self.bounded(Bound::connlimit(&connlimit).with(format_args!("({name})")))
            }
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
