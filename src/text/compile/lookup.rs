//! What is looked up in sets and maps.

use super::body::{Body, register};
use super::constant::Want;
use crate::nft::SetId;
use crate::nft::expr::Register;
use crate::text::parse::Fault;
use crate::text::syntax::Expr;

use super::sets::{Asked, Data, Shape};

/// The lengths of values in bits.
fn lengths(wants: &[Want]) -> Vec<u32> {
    wants.iter().map(|want| want.bits).collect()
}

impl Body<'_, '_> {
    /// What names a set of this table.
    pub(super) fn named(&self, name: &str) -> SetId<'static> {
        let id = self
            .compiler
            .shapes
            .table(self.family, &self.table)
            .and_then(|sets| sets.get(name.as_bytes()))
            .and_then(|shape| shape.id);
        SetId {
            id,
            ..SetId::new(self.family, self.table.clone(), name.to_owned())
        }
    }

    /// What the fields of a key are, without loading them.
    pub(super) fn wants_of(&self, key: &Expr) -> Vec<Want> {
        match key {
            Expr::Concat(parts) => parts.iter().map(|part| self.want_of(part)).collect(),
            one => vec![self.want_of(one)],
        }
    }

    /// Loads a key into registers from this word on, to be looked up in this set, or in this map to such data.
    pub(super) fn sought(
        &mut self,
        key: &Expr,
        set: &Expr,
        word: u32,
        data: Option<&Data>,
    ) -> Result<SetId<'static>, Fault> {
        let declared = self.wants_of(key);
        match set {
            Expr::Reference(name) => {
                let is_map = data.is_some();
                let shape = self.compiler.set(self.family, &self.table, name, is_map)?;
                self.check(&shape, &declared, data, set)?;
                let mut fields = self.load_key(key, word, shape.is_interval)?;
                // In sets with names bits of a byte are kept as they are written.
                if let [field] = &mut fields[..] {
                    self.shift_down(field, word)?;
                }
                Ok(self.named(name))
            }
            Expr::Set(elements) if elements.is_empty() => {
                Err(self.error("a set in a rule has elements: this one has none"))
            }
            Expr::Set(elements) => {
                let has_ranges = self.compiler.has_ranges(elements, &declared)?;
                let fields = self.load_key(key, word, has_ranges)?;
                let asked = Asked {
                    key,
                    fields,
                    declared,
                };
                let (family, table) = (self.family, &self.table);
                self.compiler
                    .anonymous_set(family, table, &asked, elements, has_ranges, data)
            }
            other => {
                let what = match data {
                    Some(Data::Verdict) => "a verdict map is expected here",
                    Some(_) => "a map is expected here",
                    None => "a set is expected here",
                };
                Err(self.compiler.fault(other, what))
            }
        }
    }

    /// Checks that a set has such keys, and such data.
    pub(super) fn check(
        &self,
        shape: &Shape,
        keys: &[Want],
        data: Option<&Data>,
        at: &Expr,
    ) -> Result<(), Fault> {
        let bytes =
            |wants: &[Want]| -> Vec<usize> { wants.iter().map(|want| want.length()).collect() };
        if bytes(keys) != bytes(&shape.keys) {
            let message = format!(
                "the set's keys are `{}`: this is another one",
                crate::text::data_type(shape.key_type)
            );
            return Err(self.compiler.fault(at, message));
        }
        let fits = match (data, &shape.data) {
            (None, _) => true,
            (Some(Data::Values { fields, .. }), Some(Data::Values { fields: of_map, .. })) => {
                lengths(fields) == lengths(of_map)
            }
            (Some(one), Some(of_map)) => one == of_map,
            (Some(_), None) => false,
        };
        match fits {
            true => Ok(()),
            false => {
                let message = "the map does not lead to what is needed here";
                Err(self.compiler.fault(at, message))
            }
        }
    }

    /// Puts what a map has for a key into registers.
    pub(super) fn map(
        &mut self,
        key: &Expr,
        map: &Expr,
        wants: &[Want],
        word: u32,
    ) -> Result<(), Fault> {
        let is_interval = match map {
            Expr::Set(elements) => elements
                .iter()
                .any(|element| element.data.as_ref().is_some_and(Expr::is_interval)),
            _ => false,
        };
        let data = Data::Values {
            fields: wants.to_vec(),
            is_interval,
        };
        let set = self.sought(key, map, word, Some(&data))?;
        self.look_up_from(&set, word, Some(register(word)), false);
        Ok(())
    }

    /// A verdict from a map.
    pub(super) fn verdict_map(&mut self, key: &Expr, map: &Expr) -> Result<(), Fault> {
        self.require(key)?;
        let set = self.sought(key, map, 0, Some(&Data::Verdict))?;
        self.look_up(&set, Some(Register::VERDICT), false);
        Ok(())
    }
}
