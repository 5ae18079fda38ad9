//! Decodes set lookups and statements that update sets.

use super::registers::{Content, Loaded};
use super::rule::{Reader, valid_name};
use super::set::{self, SetReader};
use crate::statements;
use crate::statements::meter::Meter;
use crate::statements::update::{self, Update};
use crate::syntax::{Element, Expr, Operator, Relation, Statement, Value};
use crate::value::fields;
use chainwright::nft::expr::{self, DynsetFlags, Expressions, LookupFlags, Register};
use chainwright::nft::{DataType, SetFlags};

impl Reader<'_, '_> {
    /// Returns the parts of a key that is looked up or hashed, before fields are resolved.
    pub(crate) fn key(&self, register: Register, length: usize) -> Option<Vec<Expr>> {
        self.fields(register, length, |_, _| None)
    }

    /// Returns the parts of a key or of data. `constant` decodes a constant that starts at this byte.
    fn fields(
        &self,
        register: Register,
        length: usize,
        constant: impl Fn(usize, &[u8]) -> Option<Value>,
    ) -> Option<Vec<Expr>> {
        let mut at = 0;
        let loaded = self.registers.many(register, length)?;
        let parts = loaded.into_iter().map(|loaded| {
            let start = at;
            at += loaded.length.next_multiple_of(4);
            match &loaded.expr {
                Content::Expr(expr) => Some(expr.clone()),
                Content::Bytes(bytes) => constant(start, bytes).map(Expr::Value),
            }
        });
        parts.collect()
    }

    /// Resolves a key. Also returns how many bits each part is shifted left in the register compared to its printed
    /// value.
    pub(crate) fn resolve_key(&mut self, parts: Vec<Expr>) -> (Expr, Vec<u32>) {
        let mut resolved = Vec::with_capacity(parts.len());
        let mut shifts = Vec::with_capacity(parts.len());
        for part in parts {
            let part = masked_once(part);
            if let Expr::Binary(Operator::And, left, mask) = &part {
                let shift = self.masked(left, mask).map_or(0, |(_, shift)| shift);
                shifts.resize(resolved.len(), 0);
                shifts.push(shift);
            }
            match part {
                // Bytes that are several fields.
                Expr::Payload(place) => match self.fields_of(&place) {
                    Some(fields) => {
                        for field in fields {
                            self.remove_implicit(&field);
                            resolved.push(Expr::Payload(field));
                        }
                    }
                    None => resolved.push(self.resolve(part)),
                },
                part => resolved.push(self.resolve(part)),
            }
        }
        let key = match <[Expr; 1]>::try_from(resolved) {
            Ok([one]) => one,
            Err(many) => Expr::Concat(many),
        };
        (key, shifts)
    }

    pub(crate) fn set(&self, name: &[u8]) -> Option<chainwright::nft::SnapshotSet<'_>> {
        self.table.set(name)
    }

    /// Returns a reference to a named set, or the elements of an anonymous one.
    pub(crate) fn set_expr(&self, name: &[u8], key: &Expr, shifts: &[u32]) -> Option<Expr> {
        let set = self.set(name)?;
        let flags = set.set().flags().unwrap_or_default();
        Some(
            match flags.contains(SetFlags::ANONYMOUS) && !flags.contains(SetFlags::EVAL) {
                true => {
                    let is_map = flags.intersects(SetFlags::MAP | SetFlags::OBJECT);
                    let reader = SetReader::anonymous(&set, self.version, key, shifts, is_map);
                    Expr::Set(reader.elements()?)
                }
                false => Expr::Reference(valid_name(name)?),
            },
        )
    }

    /// Resolves the key and the set of a lookup.
    pub(crate) fn looked_up(&mut self, key: Vec<Expr>, set: &[u8]) -> Option<(Expr, Expr)> {
        let (key, shifts) = self.resolve_key(key);
        let set = self.set_expr(set, &key, &shifts)?;
        Some((key, set))
    }

    pub(crate) fn lookup(&mut self, lookup: &expr::Lookup<'_>) -> Option<()> {
        let name = lookup.set.as_deref()?.to_vec();
        let view = self.set(&name)?.set();
        let length = view.key_length()? as usize;
        let data = (view.data_type(), view.data_length().unwrap_or_default());
        let data_order = set::data_order(&view);
        let register = lookup.sreg?;
        let key = match (lookup.dreg, self.key(register, length)) {
            (_, Some(key)) => key,
            (None, None) => {
                let reader = SetReader::of_view(&view, self.version);
                let key = self.fields(register, length, |at, bytes| reader.key_field(at, bytes))?;
                key.iter().any(|part| !part.is_constant()).then_some(key)?
            }
            (Some(_), None) => return None,
        };
        let is_inverted = lookup.flags.unwrap_or_default().contains(LookupFlags::INV);
        match lookup.dreg {
            None => {
                let relation = match is_inverted {
                    true => Relation::NotEqual,
                    false => Relation::Implicit,
                };
                let (key, right) = self.looked_up(key, &name)?;
                self.matched(key, relation, right)
            }
            Some(_) if is_inverted => None,
            Some(Register::VERDICT) => {
                let (key, right) = self.looked_up(key, &name)?;
                self.push(Statement::VerdictMap(key, right))
            }
            Some(dreg) => {
                data.0?;
                let loaded = Loaded {
                    expr: Content::Expr(Expr::Map(
                        Box::new(Expr::Concat(key)),
                        Box::new(Expr::Reference(valid_name(&name)?)),
                    )),
                    length: data.1 as usize,
                    order: data_order,
                };
                self.registers.put(dreg, loaded)
            }
        }
    }

    pub(crate) fn dynset(&mut self, dynset: &expr::Dynset<'_>) -> Option<()> {
        let name = dynset.set_name.as_deref()?.to_vec();
        let view = self.set(&name)?.set();
        let flags = view.flags().unwrap_or_default();
        let (length, size) = (view.key_length()? as usize, set::size(&view));
        let (key_type, data_type) = (view.key_type(), view.data_type());
        let several = dynset.expressions.as_ref().map(Expressions::iter);
        let statements = set::nested(dynset.expr.as_ref(), several)?;
        if dynset.flags.unwrap_or_default().contains(DynsetFlags::INV) {
            return None;
        }
        let mut element = Element {
            statements,
            timeout: dynset.timeout.map(|time| time.0).filter(|time| *time > 0),
            ..Element::new(None)
        };
        let register = dynset.sreg_key?;
        let is_single = key_type.is_some_and(|key| fields(key).len() == 1);
        element.key = Some(match self.key(register, length) {
            Some(key) => self.resolve_key(key).0,
            // A constant.
            None if is_single => self.typed(register, key_type?)?,
            None => {
                let reader = SetReader::of_view(&view, self.version);
                let key = self.fields(register, length, |at, bytes| reader.key_field(at, bytes))?;
                self.resolve_key(key).0
            }
        });
        if let Some(register) = dynset.sreg_data {
            element.data = Some(self.data_of(register, data_type?, &name)?);
        }
        let element = Box::new(element);
        let name = valid_name(&name)?;
        let statement = match flags.contains(SetFlags::ANONYMOUS) {
            true => Statement::Meter(Meter {
                name,
                size,
                element,
            }),
            false => {
                let op = dynset.op?;
                update::word(op)?;
                Statement::Update(Update {
                    op,
                    set: name,
                    element,
                })
            }
        };
        self.push(statement)
    }

    /// Returns the data that a rule adds to a map.
    pub(crate) fn data_of(
        &mut self,
        register: Register,
        data_type: DataType,
        set: &[u8],
    ) -> Option<Expr> {
        let length = self.set(set)?.set().data_length()? as usize;
        let fields = fields(data_type);
        if fields.len() > 1 {
            let reader = SetReader::of_view(&self.set(set)?.set(), self.version);
            let parts = self.fields(register, length, |at, bytes| reader.data_field(at, bytes))?;
            return Some(self.resolve_key(parts).0);
        }
        self.typed(register, data_type)
    }

    pub(crate) fn objref(&mut self, objref: &expr::Objref<'_>) -> Option<()> {
        let (kind, object) = match (&objref.imm_name, &objref.set_name) {
            (Some(name), _) => (objref.imm_type?, Expr::Object(valid_name(name)?)),
            (None, Some(name)) => {
                let name = name.to_vec();
                let view = self.set(&name)?.set();
                let (length, kind) = (view.key_length()? as usize, view.object_type()?);
                let key = self.key(objref.set_sreg?, length)?;
                let (key, map) = self.looked_up(key, &name)?;
                (kind, Expr::Map(Box::new(key), Box::new(map)))
            }
            (None, None) => return None,
        };
        statements::reference(kind)?;
        self.push(Statement::Object(kind, object))
    }
}

/// Removes a repeated mask. nft 1.1.7 masks a field twice if a statement looks it up.
fn masked_once(expr: Expr) -> Expr {
    match expr {
        Expr::Binary(Operator::And, left, mask)
            if matches!(
                (&*left, &*mask),
                (Expr::Binary(Operator::And, _, first), Expr::Value(mask))
                    if matches!(&**first, Expr::Value(first) if first.number == mask.number)
            ) =>
        {
            *left
        }
        expr => expr,
    }
}
