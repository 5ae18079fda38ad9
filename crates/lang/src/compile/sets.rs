//! Structure of sets, and anonymous sets.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Compiler;
use super::constant::ExpectedType;
use super::elements::Ranges;
use super::load::Loaded;
use super::matching::type_of;
use crate::parse::Diagnostic;
use crate::syntax::{Element, Expr, Payload};
use crate::{typeof_, types};
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::userdata::{self, BIG_ENDIAN, CommentError, HOST_ENDIAN};
use chainwright::nft::{DataType, Element as Bytes, Family, Name, Set, SetFields, SetFlags, SetId};

/// Structure of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetSpec {
    pub(crate) key_type: DataType,
    /// Fields of its keys, in storage order.
    pub(crate) keys: Vec<ExpectedType>,
    pub(crate) data: Option<Data>,
    pub(crate) is_interval: bool,
    /// Whether overlapping ranges are merged (`auto-merge`).
    pub(crate) merges: bool,
    /// ID in this transaction.
    pub(crate) id: Option<u32>,
    /// Whether it has elements before the current command: the lowest value then is in a range or has an end element.
    pub(crate) has_elements: bool,
    /// Whether it has several fields, and the byte order of one of them is unknown.
    pub(crate) is_unclear: bool,
}

/// Data of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Data {
    Verdict,
    Object(ObjectType),
    Values {
        fields: Vec<ExpectedType>,
        is_interval: bool,
    },
}

impl Data {
    /// Returns the fields of the values, in storage order.
    pub(crate) fn fields(&self) -> Vec<Loaded> {
        match self {
            Self::Values { fields, .. } => fields.iter().copied().map(Loaded::of).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the length of the values in bytes.
    pub(crate) fn length(&self) -> u32 {
        match self {
            Self::Values {
                fields,
                is_interval,
            } => {
                let length: u32 = match fields[..] {
                    [one] => one.bits.div_ceil(8),
                    _ => fields.iter().map(|field| field.bits.div_ceil(32) * 4).sum(),
                };
                match is_interval {
                    true => length * 2,
                    false => length,
                }
            }
            _ => 0,
        }
    }
}

/// Known sets, by family, table and name.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownSets(HashMap<(Family, Vec<u8>), HashMap<Vec<u8>, SetSpec>>);

impl KnownSets {
    pub(crate) fn insert(&mut self, family: Family, table: &[u8], name: &[u8], set_spec: SetSpec) {
        let table = self.0.entry((family, table.to_vec())).or_default();
        table.insert(name.to_vec(), set_spec);
    }

    /// Records whether a set has elements.
    pub(crate) fn fill(&mut self, family: Family, table: &[u8], name: &[u8], has_elements: bool) {
        let table = self.0.get_mut(&(family, table.to_vec()));
        if let Some(set_spec) = table.and_then(|sets| sets.get_mut(name)) {
            set_spec.has_elements = has_elements;
        }
    }

    pub(crate) fn table(&self, family: Family, table: &[u8]) -> Option<&HashMap<Vec<u8>, SetSpec>> {
        self.0.get(&(family, table.to_vec()))
    }
}

/// Converts a key to the byte order of interval sets.
pub(crate) fn in_order_of_ranges(expected_type: ExpectedType) -> ExpectedType {
    ExpectedType {
        order: ByteOrder::Network,
        ..expected_type
    }
}

/// Key of an anonymous set.
pub(crate) struct LookupKey<'e> {
    pub(crate) key: &'e Expr,
    /// Fields as they are in registers during the lookup.
    pub(crate) fields: Vec<Loaded>,
    /// Types of the fields before byte order conversions.
    pub(crate) declared: Vec<ExpectedType>,
}

/// User data that nft writes for a set.
#[derive(Default)]
pub(crate) struct SetUserData<'n> {
    /// Byte orders ([`noted_order`]).
    pub(crate) key_order: u32,
    pub(crate) data_order: u32,
    pub(crate) data: Option<&'n Data>,
    /// Whether overlapping ranges are merged.
    pub(crate) merges: bool,
    /// Expressions of keys and data.
    pub(crate) key_typeof: Option<Vec<u8>>,
    pub(crate) data_typeof: Option<Vec<u8>>,
    pub(crate) comment: Option<&'n str>,
}

/// Returns the byte order in the user data; 0 for concatenations.
pub(crate) const fn noted_order(expected_types: &[ExpectedType]) -> u32 {
    match expected_types {
        [one] => match one.order {
            ByteOrder::Host => HOST_ENDIAN,
            ByteOrder::Network => BIG_ENDIAN,
        },
        _ => 0,
    }
}

impl SetUserData<'_> {
    /// Writes the user data of a set.
    pub(crate) fn write(&self, set: &mut Set<'_>) -> Result<(), CommentError> {
        let mut put = |kind, value: &[u8]| userdata::put(&mut set.userdata, kind, value);
        let number = |number: u32| number.to_ne_bytes();
        put(userdata::SET_KEY_BYTE_ORDER, &number(self.key_order));
        let mut is_interval = false;
        if let Some(Data::Values {
            is_interval: are_ranges,
            ..
        }) = self.data
        {
            is_interval = *are_ranges;
        }
        if !matches!(self.data, None | Some(Data::Object(_))) {
            put(userdata::SET_DATA_BYTE_ORDER, &number(self.data_order));
        }
        if self.merges {
            put(userdata::SET_MERGE_ELEMENTS, &number(1));
        }
        if let Some(key) = &self.key_typeof {
            put(userdata::SET_KEY_TYPEOF, key);
        }
        if let Some(data) = &self.data_typeof {
            put(userdata::SET_DATA_TYPEOF, data);
        }
        if self.data.is_some() {
            put(userdata::SET_DATA_INTERVAL, &number(is_interval.into()));
        }
        match self.comment {
            Some(comment) => {
                userdata::put_comment(&mut set.userdata, userdata::SET_COMMENT, comment)
            }
            None => Ok(()),
        }
    }
}

/// Returns `true` if an expression is part of the loaded bytes, or combines others.
fn is_made(expr: &Expr) -> bool {
    let is_part = |offset: u32, bits: u32| !offset.is_multiple_of(8) || !bits.is_multiple_of(8);
    match expr {
        Expr::Payload(payload) => is_part(payload.offset, payload.bits),
        Expr::Option(option) => is_part(option.offset, option.bits),
        Expr::Binary(..) | Expr::Map(..) => true,
        _ => false,
    }
}

/// Returns `true` if nft 1.0.6 or 1.1.7 does not know an expression in the user data of an anonymous set.
fn is_unknown_to_one(expr: &Expr) -> bool {
    match expr {
        Expr::Option(option) if option.extension.name.is_empty() => true,
        Expr::Fib(..) | Expr::Xfrm { .. } => true,
        Expr::Binary(_, left, _) => is_unknown_to_one(left),
        expr => is_abortive(expr),
    }
}

/// Returns `true` if nft 1.0.6 or 1.1.7 aborts when it reads this expression in the user data of an anonymous set.
fn is_abortive(expr: &Expr) -> bool {
    match expr {
        Expr::Option(option) => option.is("rt2", "addr"),
        Expr::Binary(_, left, _) => is_abortive(left),
        Expr::Payload(Payload {
            field: Some((protocol, field)),
            ..
        }) => {
            protocol.name == "icmpv6" && matches!(protocol.fields[*field].name, "taddr" | "daddr")
        }
        _ => false,
    }
}

/// Returns `true` if the type determines the length of a value.
pub(crate) fn has_length(expected_type: &ExpectedType) -> bool {
    types::info(kernel_type(expected_type.data_type)).is_some_and(|info| info.bits > 0)
}

impl LookupKey<'_> {
    /// Returns `true` if both versions of nft can list an anonymous set with several elements. They abort if neither
    /// expressions nor types determine the length of each field.
    fn can_be_listed(&self) -> bool {
        let Expr::Concat(parts) = self.key else {
            return true;
        };
        let are_known =
            typeof_::written(self.key).is_some() && !parts.iter().any(is_unknown_to_one);
        are_known || self.declared.iter().all(has_length)
    }

    /// Returns the user data that nft writes for the key expression of an anonymous set.
    fn typeof_(&self, is_map: bool, has_ranges: bool) -> Option<Vec<u8>> {
        match self.key {
            Expr::Concat(parts) => {
                let is_turned = |expected_type: &ExpectedType| {
                    expected_type.order == ByteOrder::Host
                        && expected_type.bits > 8
                        && !types::is_string(expected_type.data_type)
                };
                let is_inexpressible = parts.iter().any(is_abortive)
                    || (has_ranges && !is_map && self.declared.iter().any(is_turned));
                match typeof_::written(self.key).filter(|_| !is_inexpressible) {
                    Some(written) => Some(written),
                    None => Some(typeof_::fields_of_types()),
                }
            }
            Expr::Xfrm { .. } => None,
            key if is_map || is_made(key) => None,
            key => typeof_::written(key),
        }
    }
}

/// Returns the type number for the kernel; raw bytes become integers.
pub(crate) const fn kernel_type(data_type: DataType) -> DataType {
    match data_type {
        types::RAW | types::MPTCP_SUBTYPE | types::OPTION_ADDRESS => DataType::INTEGER,
        data_type => data_type,
    }
}

impl Compiler<'_> {
    /// Returns the structure of a named set or map.
    pub(crate) fn set(
        &self,
        family: Family,
        table: &[u8],
        name: &str,
        is_map: bool,
    ) -> Result<SetSpec, Diagnostic> {
        let known = self.known_sets.table(family, table);
        if let Some(set_spec) = known.and_then(|sets| sets.get(name.as_bytes())) {
            if is_map && set_spec.data.is_none() {
                let message = format!("expected a map: `{name}` is a set");
                return Err(Diagnostic::new(self.span, message).with_hint(
                    "declare it with `map` and data, for example: type ipv4_addr : verdict",
                ));
            }
            // A map can be used as a set of its keys.
            return Ok(set_spec.clone());
        }
        let names = known.into_iter().flat_map(HashMap::keys);
        let mut names: Vec<_> = names.map(|name| String::from_utf8_lossy(name)).collect();
        names.sort_unstable();
        let table = String::from_utf8_lossy(table);
        let message = format!("no set `{name}` in table {family} {table}");
        Err(Diagnostic::missing(self.span, message)
            .expecting(names)
            .nearest_to(name))
    }

    /// Returns whether an anonymous set contains ranges.
    pub(crate) fn has_ranges(
        &self,
        elements: &[Element],
        keys: &[ExpectedType],
    ) -> Result<bool, Diagnostic> {
        let is_range = |key: &Expr, expected_type: ExpectedType| -> Result<bool, Diagnostic> {
            Ok(match key {
                Expr::Symbol(symbol) if types::is_string(expected_type.data_type) => {
                    symbol.text.ends_with('*') && !symbol.text.ends_with("\\*")
                }
                Expr::Symbol(_) | Expr::Value(_) => false,
                key => !matches!(self.constant(key, expected_type)?, Expr::Value(_)),
            })
        };
        for element in elements {
            let Some(key) = &element.key else {
                continue;
            };
            let found = match (key, keys) {
                (Expr::Concat(parts), _) => {
                    let mut found = false;
                    for (part, key) in parts.iter().zip(keys) {
                        found |= is_range(part, *key)?;
                    }
                    found
                }
                (key, [one]) => is_range(key, *one)?,
                _ => false,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds an anonymous set with elements.
    pub(crate) fn anonymous(
        &mut self,
        family: Family,
        table: &Name<'static>,
        pattern: &'static str,
        with: impl FnOnce(Set<'static>) -> Set<'static>,
        notes: &SetUserData<'_>,
        elements: &[Bytes<'static>],
    ) -> Result<SetId<'static>, Diagnostic> {
        self.anonymous += 1;
        let id = self.anonymous;
        let set = Set {
            family,
            table: Some(table.clone()),
            name: Some(pattern.into()),
            id: Some(id),
            flags: Some(SetFlags::ANONYMOUS | SetFlags::CONSTANT),
            ..Set::empty()
        };
        let mut set = with(set);
        let noted = notes.write(&mut set);
        noted.map_err(|error| Diagnostic::new(self.span, error.to_string()))?;
        let name = SetId {
            id: Some(id),
            ..SetId::new(family, table.clone(), pattern)
        };
        let added = self
            .tx
            .add(&set)
            .and_then(|tx| tx.add_elements(&name, elements));
        match added {
            Ok(_) => Ok(name),
            Err(error) => Err(Diagnostic::new(self.span, error.to_string())),
        }
    }

    /// Compiles a set in braces.
    pub(crate) fn anonymous_set(
        &mut self,
        family: Family,
        table: &Name<'static>,
        lookup_key: &LookupKey<'_>,
        elements: &[Element],
        has_ranges: bool,
        data: Option<&Data>,
    ) -> Result<SetId<'static>, Diagnostic> {
        if elements.len() > 1 && !lookup_key.can_be_listed() {
            let message =
                "nft aborts when it lists an anonymous set of these fields: declare a named set";
            return Err(Diagnostic::new(self.span, message));
        }
        let keys = &lookup_key.fields;
        let each = elements.iter().map(Cow::Borrowed);
        let ranges = Ranges::WITHOUT_NAME;
        let (size, each) = self.each_element(keys.clone(), each, has_ranges, data, ranges)?;
        let bytes = each.collect::<Result<Vec<_>, _>>()?;
        let size = size.unwrap_or(bytes.len() as u32); // a message cannot hold more
        let notes = SetUserData {
            key_order: noted_order(&lookup_key.declared),
            data_order: match data {
                Some(Data::Values { fields, .. }) => noted_order(fields),
                _ => 0,
            },
            data,
            merges: has_ranges && data.is_none(),
            key_typeof: lookup_key.typeof_(data.is_some(), has_ranges),
            data_typeof: match data {
                Some(Data::Verdict) => Some(typeof_::verdicts()),
                _ => None,
            },
            comment: None,
        };
        let expected_types: Vec<ExpectedType> = keys
            .iter()
            .map(|key| ExpectedType {
                bits: key.length as u32 * 8, // at most 16
                ..key.expected_type
            })
            .collect();
        let with = |set: Set<'static>| {
            let mut set = with_keys(set, &expected_types, has_ranges).with_size(size);
            if let Some(data) = data {
                set = with_data(set, data);
            }
            set
        };
        let pattern = match data {
            None => "__set%d",
            Some(Data::Object(_)) => "__objmap%d",
            Some(_) => "__map%d",
        };
        self.anonymous(family, table, pattern, with, &notes, &bytes)
    }
}

/// Sets the key type and length of a set.
pub(crate) fn with_keys<'s>(mut set: Set<'s>, keys: &[ExpectedType], is_interval: bool) -> Set<'s> {
    let lengths: Vec<u32> = keys.iter().map(|key| key.bits.div_ceil(8)).collect();
    set.key_type = Some(type_of(keys.iter().copied()));
    set.key_length = Some(match lengths[..] {
        [one] => one,
        _ => lengths
            .iter()
            .map(|length| length.next_multiple_of(4))
            .sum(),
    });
    if is_interval {
        set = set.with_interval();
        if lengths.len() > 1 {
            set = set.with_flags(SetFlags::CONCAT);
            let fields = SetFields::of_lengths(lengths);
            set.description.get_or_insert_default().fields = Some(fields);
        }
    }
    set
}

/// Turns a set into a map.
pub(crate) fn with_data<'s>(set: Set<'s>, data: &Data) -> Set<'s> {
    match data {
        Data::Verdict => set.with_verdicts(),
        Data::Object(object_type) => set.with_objects(*object_type),
        Data::Values { fields, .. } => {
            let mut set = set.with_flags(SetFlags::MAP);
            set.data_type = Some(type_of(fields.iter().copied()));
            set.data_length = Some(data.length());
            set
        }
    }
}
