//! Compiles lookups in sets and maps.

use super::constant::ExpectedType;
use super::load::Loaded;
use super::matching::type_of;
use super::rule_builder::{RuleBuilder, register};
use super::sets::{Data, LookupKey, SetSpec, kernel_type};
use crate::parse::Diagnostic;
use crate::syntax::Expr;
use crate::types;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::Register;
use chainwright::nft::{DataType, SetId};

/// Returns `true` if the type has a name and a byte order of its own.
fn is_known(data_type: DataType) -> bool {
    data_type != DataType::VALUE && types::info(data_type).is_some()
}

/// Returns `true` if a loaded field can be looked up as this field of a set's keys. `to_mark` allows numbers as keys of
/// a set of marks.
fn is_key_of(field: ExpectedType, of_set: ExpectedType, to_mark: bool) -> bool {
    let (given, wanted) = (kernel_type(field.data_type), kernel_type(of_set.data_type));
    if given == wanted || !is_known(given) || !is_known(wanted) {
        return true;
    }
    match field.data_type {
        // Raw packet bytes take the type that they are compared with.
        types::RAW if types::order(wanted) == ByteOrder::Network => return true,
        types::OPTION_ADDRESS if wanted == DataType::IPV4_ADDR => return true,
        _ => {}
    }
    let are_names = types::is_string(given) && types::is_string(wanted);
    are_names || (to_mark && wanted == DataType::MARK && is_number(given))
}

/// Returns `true` if a statement that expects this type accepts a map's data.
fn is_data_for(wanted: ExpectedType, of_map: ExpectedType) -> bool {
    let (given, taken) = (kernel_type(of_map.data_type), kernel_type(wanted.data_type));
    if wanted.data_type == DataType::MARK && is_number(given) {
        return of_map.length() <= wanted.length();
    }
    wanted.bits == of_map.bits && (given == taken || !is_known(given))
}

/// Returns the names of these types.
fn names(expected_types: &[ExpectedType]) -> String {
    crate::data_type(type_of(expected_types.iter().copied()))
}

/// Returns `true` if values of a type are numbers, which can be marks.
fn is_number(data_type: DataType) -> bool {
    !types::is_bitmask(data_type) && !types::is_string(data_type)
}

impl RuleBuilder<'_, '_> {
    /// Returns a reference to a set in this table.
    pub(crate) fn named(&self, name: &str) -> SetId<'static> {
        let id = self
            .compiler
            .known_sets
            .table(self.family, &self.table)
            .and_then(|sets| sets.get(name.as_bytes()))
            .and_then(|set_spec| set_spec.id);
        SetId {
            id,
            ..SetId::new(self.family, self.table.clone(), name.to_owned())
        }
    }

    /// Returns the types of a key's fields.
    pub(crate) fn expected_types(&self, key: &Expr) -> Vec<ExpectedType> {
        self.expected_types_in(key, &[])
    }

    /// Returns the types of a key's fields. Constants have the types of a named set's fields.
    pub(crate) fn expected_types_in(
        &self,
        key: &Expr,
        of_set: &[ExpectedType],
    ) -> Vec<ExpectedType> {
        let Expr::Concat(parts) = key else {
            return vec![self.expected_type(key)];
        };
        let parts = parts.iter().enumerate();
        let types = parts.map(|(index, part)| match of_set.get(index) {
            Some(of_set) if part.is_constant() => *of_set,
            _ => self.expected_type(part),
        });
        types.collect()
    }

    /// Loads a key into registers from this word on, and returns a reference to the set or to the map with such data.
    pub(crate) fn sought(
        &mut self,
        key: &Expr,
        set: &Expr,
        word: u32,
        data: Option<&Data>,
    ) -> Result<SetId<'static>, Diagnostic> {
        match set {
            Expr::Reference(name) => {
                let is_map = data.is_some();
                let set_spec = self.compiler.set(self.family, &self.table, name, is_map)?;
                if key.is_constant() {
                    let message = "the key needs a field of the packet";
                    return Err(self.compiler.diagnostic(key, message));
                }
                // Like nft, constants are allowed in keys of sets, not of maps.
                let of_set = if is_map { &[][..] } else { &set_spec.keys };
                let declared = self.expected_types_in(key, of_set);
                self.check(&set_spec, &declared, is_map, data, set)?;
                let mut fields = self.load_key(key, word, set_spec.is_interval, of_set)?;
                // In named sets, bits of a byte are stored right-aligned.
                if let [field] = &mut fields[..] {
                    self.shift_down(field, word)?;
                    if set_spec.key_type == DataType::MARK && !set_spec.is_interval {
                        self.turn_to_mark(field, word);
                    }
                }
                Ok(self.named(name))
            }
            Expr::Set(elements) if elements.is_empty() => {
                Err(self.error("an anonymous set needs at least one element"))
            }
            Expr::Set(elements) => {
                let declared = self.expected_types(key);
                let has_ranges = self.compiler.has_ranges(elements, &declared)?;
                let fields = self.load_key(key, word, has_ranges, &[])?;
                let lookup_key = LookupKey {
                    key,
                    fields,
                    declared,
                };
                let (family, table) = (self.family, &self.table);
                self.compiler
                    .anonymous_set(family, table, &lookup_key, elements, has_ranges, data)
            }
            other => {
                let what = match data {
                    Some(Data::Verdict) => "expected a verdict map",
                    Some(_) => "expected a map",
                    None => "expected a set",
                };
                Err(self.compiler.diagnostic(other, what))
            }
        }
    }

    /// Returns the type of the data of a named map.
    pub(crate) fn data_of(&self, name: &str) -> Result<Data, Diagnostic> {
        let set_spec = self.compiler.set(self.family, &self.table, name, true)?;
        set_spec
            .data
            .ok_or_else(|| self.error(format!("expected a map: `{name}` is a set")))
    }

    /// Checks the types of a set's keys and data. `to_mark` allows numbers as keys of a set of marks.
    pub(crate) fn check(
        &self,
        set_spec: &SetSpec,
        keys: &[ExpectedType],
        to_mark: bool,
        data: Option<&Data>,
        at: &Expr,
    ) -> Result<(), Diagnostic> {
        let bytes = |expected_types: &[ExpectedType]| -> Vec<usize> {
            expected_types
                .iter()
                .map(|expected_type| expected_type.length())
                .collect()
        };
        let to_mark = to_mark && keys.len() == 1;
        let mut fields = keys.iter().zip(&set_spec.keys);
        if bytes(keys) != bytes(&set_spec.keys)
            || !fields.all(|(field, of_set)| is_key_of(*field, *of_set, to_mark))
        {
            let message = format!(
                "the set's keys are `{}`, but this is `{}`",
                crate::data_type(set_spec.key_type),
                names(keys)
            );
            return Err(self.compiler.diagnostic(at, message));
        }
        let fits = match (data, &set_spec.data) {
            (None, _) => true,
            (Some(Data::Values { fields, .. }), Some(Data::Values { fields: of_map, .. })) => {
                let mut both = fields.iter().zip(of_map);
                fields.len() == of_map.len() && both.all(|(one, of_map)| is_data_for(*one, *of_map))
            }
            (Some(one), Some(of_map)) => one == of_map,
            (Some(_), None) => false,
        };
        match fits {
            true => Ok(()),
            false => {
                let message = match (data, &set_spec.data) {
                    (
                        Some(Data::Values { fields, .. }),
                        Some(Data::Values { fields: of_map, .. }),
                    ) => format!(
                        "expected `{1}`, but the map's data are `{0}`",
                        names(of_map),
                        names(fields)
                    ),
                    _ => "the map has the wrong kind of data".to_owned(),
                };
                Err(self.compiler.diagnostic(at, message))
            }
        }
    }

    /// Loads the result of a map lookup into registers.
    pub(crate) fn map(
        &mut self,
        key: &Expr,
        map: &Expr,
        expected_types: &[ExpectedType],
        word: u32,
    ) -> Result<(), Diagnostic> {
        let is_interval = match map {
            Expr::Set(elements) => elements
                .iter()
                .any(|element| element.data.as_ref().is_some_and(Expr::is_interval)),
            _ => false,
        };
        let data = Data::Values {
            fields: expected_types.to_vec(),
            is_interval,
        };
        let set = self.sought(key, map, word, Some(&data))?;
        self.look_up_from(&set, word, Some(register(word)), false);
        if let (Expr::Reference(name), [wanted]) = (map, expected_types)
            && wanted.data_type == DataType::MARK
            && let Data::Values { fields, .. } = self.data_of(name)?
            && let [of_map] = fields[..]
        {
            self.turn_to_mark(&mut Loaded::of(of_map), word);
        }
        Ok(())
    }

    /// Compiles a verdict map lookup.
    pub(crate) fn verdict_map(&mut self, key: &Expr, map: &Expr) -> Result<(), Diagnostic> {
        self.add_dependency(key)?;
        let set = self.sought(key, map, 0, Some(&Data::Verdict))?;
        self.look_up(&set, Some(Register::VERDICT), false);
        Ok(())
    }
}
