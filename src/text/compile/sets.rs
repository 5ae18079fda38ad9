//! Sets: which there are, what their keys and data are, and elements as bytes.

use std::collections::HashMap;

use super::Compiler;
use super::body::Body;
use super::constant::{Want, place_of};
use super::load::Loaded;
use super::matching::type_of;
use crate::nft::build::ByteOrder;
use crate::nft::expr::{Expressions, NestedExpression, ObjectType};
use crate::nft::userdata::{self, BIG_ENDIAN, HOST_ENDIAN};
use crate::nft::{
    DataType, Element as Bytes, Family, Milliseconds, Name, Set, SetFields, SetFlags, SetId,
    concatenation,
};
use crate::text::parse::Fault;
use crate::text::syntax::{Element, Expr, Statement, Value};
use crate::text::types;

/// What a set is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::text) struct Shape {
    pub(in crate::text) key_type: DataType,
    /// The fields of its keys, in the order in which the set keeps them.
    pub(in crate::text) keys: Vec<Want>,
    pub(in crate::text) data: Option<Data>,
    pub(in crate::text) is_interval: bool,
    /// Whether overlapping ranges are joined.
    pub(in crate::text) merges: bool,
    /// The number that it has in this transaction.
    pub(in crate::text) id: Option<u32>,
}

/// What a map has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::text) enum Data {
    Verdict,
    Object(ObjectType),
    Values {
        fields: Vec<Want>,
        is_interval: bool,
    },
}

impl Data {
    /// The length of values in bytes.
    pub(super) fn length(&self) -> u32 {
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

/// The sets that there are, by family, table and name.
#[derive(Debug, Clone, Default)]
pub(in crate::text) struct Shapes(HashMap<(Family, Vec<u8>), HashMap<Vec<u8>, Shape>>);

impl Shapes {
    pub(in crate::text) fn insert(
        &mut self,
        family: Family,
        table: &[u8],
        name: &[u8],
        shape: Shape,
    ) {
        let table = self.0.entry((family, table.to_vec())).or_default();
        table.insert(name.to_vec(), shape);
    }

    fn table(&self, family: Family, table: &[u8]) -> Option<&HashMap<Vec<u8>, Shape>> {
        self.0.get(&(family, table.to_vec()))
    }
}

/// The key of a set in the order in which its ranges are kept.
pub(super) fn in_order_of_ranges(want: Want) -> Want {
    Want {
        order: ByteOrder::Network,
        ..want
    }
}

/// Notes in which order of bytes keys are.
pub(super) fn with_order(mut set: Set<'_>, want: Want) -> Set<'_> {
    let order = match want.order {
        ByteOrder::Host => HOST_ENDIAN,
        ByteOrder::Network => BIG_ENDIAN,
    };
    userdata::put(
        &mut set.userdata,
        userdata::SET_KEY_BYTE_ORDER,
        &order.to_ne_bytes(),
    );
    set
}

/// The type that the kernel is told, which of bytes without a name is a number's.
pub(super) const fn told_type(data_type: DataType) -> DataType {
    match data_type {
        types::RAW => DataType::INTEGER,
        data_type => data_type,
    }
}

/// A range of keys, both ends in it, and what goes with it.
struct Interval<'e> {
    from: u128,
    to: u128,
    element: &'e Element,
}

impl Compiler<'_> {
    /// The set, or map, of this name.
    pub(super) fn set(
        &self,
        family: Family,
        table: &[u8],
        name: &str,
        is_map: bool,
    ) -> Result<Shape, Fault> {
        let known = self.shapes.table(family, table);
        if let Some(shape) = known.and_then(|sets| sets.get(name.as_bytes())) {
            return match (shape.data.is_some(), is_map) {
                (true, false) | (false, true) => {
                    let (is, wanted) = match is_map {
                        true => ("a set", "a map"),
                        false => ("a map", "a set"),
                    };
                    let message = format!("`{name}` is {is}: {wanted} is expected here");
                    Err(Fault::new(self.place, message))
                }
                _ => Ok(shape.clone()),
            };
        }
        let names = known.into_iter().flat_map(HashMap::keys);
        let names = names.map(|name| String::from_utf8_lossy(name));
        let table = String::from_utf8_lossy(table);
        let message = format!("there is no set `{name}` in table {family} {table}");
        Err(Fault::new(self.place, message)
            .expecting(names)
            .nearest_to(name))
    }

    /// Whether a set in braces has ranges.
    pub(super) fn has_ranges(&self, elements: &[Element], keys: &[Loaded]) -> Result<bool, Fault> {
        let is_range = |key: &Expr, want: Want| -> Result<bool, Fault> {
            Ok(match key {
                Expr::Symbol(symbol) if types::is_string(want.data_type) => {
                    symbol.text.ends_with('*') && !symbol.text.ends_with("\\*")
                }
                Expr::Symbol(_) | Expr::Value(_) => false,
                key => !matches!(self.constant(key, want)?, Expr::Value(_)),
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
                        found |= is_range(part, key.want)?;
                    }
                    found
                }
                (key, [one]) => is_range(key, one.want)?,
                _ => false,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a set without a name, with elements.
    pub(super) fn anonymous(
        &mut self,
        family: Family,
        table: &Name<'static>,
        pattern: &'static str,
        with: impl FnOnce(Set<'static>) -> Set<'static>,
        elements: &[Bytes<'static>],
    ) -> Result<SetId<'static>, Fault> {
        let id = self.next_set();
        let set = Set {
            family,
            table: Some(table.clone()),
            name: Some(pattern.into()),
            id: Some(id),
            flags: Some(SetFlags::ANONYMOUS | SetFlags::CONSTANT),
            ..Set::default()
        };
        let set = with(set);
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
            Err(unfit) => Err(Fault::new(self.place, unfit.to_string())),
        }
    }

    /// A set in braces.
    pub(super) fn anonymous_set(
        &mut self,
        family: Family,
        table: &Name<'static>,
        keys: &[Loaded],
        elements: &[Element],
        has_ranges: bool,
        data: Option<&Data>,
    ) -> Result<SetId<'static>, Fault> {
        let (bytes, size) = self.bytes_of(keys, elements, has_ranges, data, true)?;
        let lengths: Vec<u32> = keys.iter().map(|key| key.length as u32).collect(); // at most 16
        let wants = keys.iter().map(|key| Want {
            data_type: told_type(key.want.data_type),
            ..key.want
        });
        let key_type = type_of(wants);
        let with = |mut set: Set<'static>| {
            set.key_type = Some(key_type);
            set.key_length = Some(match lengths[..] {
                [one] => one,
                _ => lengths
                    .iter()
                    .map(|length| length.next_multiple_of(4))
                    .sum(),
            });
            if let [one] = keys {
                set = with_order(set, one.want);
            } else {
                let order = in_order_of_ranges(keys[0].want);
                set = with_order(set, order);
            }
            set = set.with_size(size);
            if has_ranges {
                set = set.with_interval();
                if lengths.len() > 1 {
                    set = set.with_flags(SetFlags::CONCAT);
                    set.description.get_or_insert_default().fields =
                        Some(SetFields::of_lengths(lengths.iter().copied()));
                }
            }
            match data {
                None => set,
                Some(data) => with_data(set, data),
            }
        };
        let pattern = match data {
            None => "__set%d",
            Some(Data::Object(_)) => "__objmap%d",
            Some(_) => "__map%d",
        };
        self.anonymous(family, table, pattern, with, &bytes)
    }

    /// Elements as the kernel takes them, and how many the set is to have room for.
    pub(super) fn bytes_of(
        &self,
        keys: &[Loaded],
        elements: &[Element],
        has_ranges: bool,
        data: Option<&Data>,
        is_anonymous: bool,
    ) -> Result<(Vec<Bytes<'static>>, u32), Fault> {
        let mut bytes = Vec::with_capacity(elements.len());
        if let ([key], true) = (keys, has_ranges) {
            return self.intervals(key, elements, data, is_anonymous);
        }
        for element in elements {
            let Some(key) = &element.key else {
                bytes.push(self.element(Bytes::catch_all(), element, data)?);
                continue;
            };
            let (from, to) = self.key_of(key, keys)?;
            let this = match has_ranges {
                true => Bytes::range(from, to),
                false if from != to => {
                    let message = "ranges and prefixes are for sets with `flags interval`";
                    return Err(self.fault(key, message));
                }
                false => Bytes::new(from),
            };
            bytes.push(self.element(this, element, data)?);
        }
        let size = bytes.len() as u32; // a message cannot hold more
        Ok((bytes, size))
    }

    /// The first and the last key that an element stands for.
    pub(super) fn key_of(
        &self,
        key: &Expr,
        fields: &[Loaded],
    ) -> Result<(Vec<u8>, Vec<u8>), Fault> {
        let parts = match (key, fields) {
            (_, [_]) => std::slice::from_ref(key),
            (Expr::Concat(parts), _) => &parts[..],
            _ => std::slice::from_ref(key),
        };
        if parts.len() != fields.len() {
            let message = format!(
                "the set's keys have {} fields, and this has {}",
                fields.len(),
                parts.len()
            );
            return Err(self.fault(key, message));
        }
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for (part, field) in parts.iter().zip(fields) {
            let (first, last) = self.ends(part, field.want)?;
            from.push(field.bytes(first));
            to.push(field.bytes(last));
        }
        Ok(match (&mut from[..], &mut to[..]) {
            ([from], [to]) => (std::mem::take(from), std::mem::take(to)),
            _ => (
                concatenation(from.iter().map(Vec::as_slice)),
                concatenation(to.iter().map(Vec::as_slice)),
            ),
        })
    }

    /// The first and the last number that a constant stands for.
    fn ends(&self, expr: &Expr, want: Want) -> Result<(u128, u128), Fault> {
        let of = |expr: &Expr| match expr {
            Expr::Value(value) => Ok(value.number),
            other => Err(self.fault(other, "a value is expected here")),
        };
        Ok(match self.constant(expr, want)? {
            Expr::Value(value) => (value.number, value.number),
            Expr::Range(from, to) => (of(&from)?, of(&to)?),
            Expr::Prefix(value, bits) => {
                let first = of(&value)?;
                (first, first | Value::ones(want.bits - bits))
            }
            Expr::Beginning(value, bits) => {
                let rest = Value::ones(want.bits) & !(Value::ones(bits) << (want.bits - bits));
                (value.number, value.number | rest)
            }
            other => return Err(self.fault(&other, "a constant is expected here")),
        })
    }

    /// Ranges of one value: each is an element where it begins and one behind its end.
    fn intervals(
        &self,
        key: &Loaded,
        elements: &[Element],
        data: Option<&Data>,
        is_anonymous: bool,
    ) -> Result<(Vec<Bytes<'static>>, u32), Fault> {
        let mut ranges = Vec::with_capacity(elements.len());
        let mut catch_all = None;
        for element in elements {
            match &element.key {
                Some(key_expr) => {
                    let (from, to) = self.ends(key_expr, key.want)?;
                    ranges.push(Interval { from, to, element });
                }
                None => catch_all = Some(self.element(Bytes::catch_all(), element, data)?),
            }
        }
        ranges.sort_by_key(|range| (range.from, range.to));
        let mut joined: Vec<Interval<'_>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            if let Some(last) = joined.last_mut() {
                let is_next = last.to.checked_add(1) == Some(range.from);
                if is_next
                    && is_anonymous
                    && data.is_none()
                    && is_plain(range.element)
                    && is_plain(last.element)
                {
                    last.to = range.to;
                    continue;
                }
                if range.from <= last.to {
                    let is_same = (range.from, range.to) == (last.from, last.to);
                    if is_same && data.is_none() {
                        continue;
                    }
                    let at = range.element.key.as_ref().and_then(place_of);
                    let message = "this overlaps another element";
                    return Err(Fault::new(at.unwrap_or(self.place), message));
                }
            }
            joined.push(range);
        }
        let highest = Value::ones(key.length as u32 * 8); // at most 16 bytes
        let mut bytes = Vec::with_capacity(joined.len() * 2 + 1);
        let mut size = joined.len() as u32 * 2; // as above
        if joined.first().is_some_and(|first| first.from > 0) {
            bytes.push(Bytes::end(key.bytes(0)));
            size += 1;
        }
        let mut next = joined.iter().map(|range| range.from).skip(1);
        for range in &joined {
            let behind = match range.to << key.shift | Value::ones(key.shift) {
                last if last >= highest => None,
                _ => Some(range.to + 1),
            };
            let from = key.bytes(range.from);
            let this = match behind {
                Some(_) => Bytes::new(from),
                None => Bytes::open_interval(from),
            };
            bytes.push(self.element(this, range.element, data)?);
            if let Some(behind) = behind
                && next.next() != Some(behind)
            {
                bytes.push(Bytes::end(key.bytes(behind)));
            }
        }
        bytes.extend(catch_all);
        Ok((bytes, size))
    }

    /// An element with what goes with its key.
    fn element(
        &self,
        mut this: Bytes<'static>,
        element: &Element,
        data: Option<&Data>,
    ) -> Result<Bytes<'static>, Fault> {
        this.timeout = element.timeout.map(Milliseconds);
        this.expiration = element.expires.map(Milliseconds);
        if let Some(comment) = &element.comment {
            let put = userdata::put_comment(&mut this.userdata, userdata::ELEMENT_COMMENT, comment);
            put.map_err(|error| Fault::new(self.place, error.to_string()))?;
        }
        match &element.statements[..] {
            [] => {}
            [one] => this.expression = Some(self.nested(one)?),
            several => this.expressions = Some(self.all_nested(several)?),
        }
        match (data, &element.data) {
            (None, None) => {}
            (Some(Data::Verdict), Some(Expr::Verdict(verdict))) => {
                this = this.with_verdict(self.verdict(verdict)?);
            }
            (Some(Data::Object(_)), Some(Expr::Object(name))) => {
                this = this.with_object(name.clone());
            }
            (Some(Data::Object(_)), Some(Expr::Symbol(symbol))) => {
                this = this.with_object(symbol.text.to_string());
            }
            (
                Some(Data::Values {
                    fields,
                    is_interval,
                }),
                Some(value),
            ) => {
                let fields: Vec<Loaded> = fields
                    .iter()
                    .map(|want| Loaded {
                        want: *want,
                        length: want.length(),
                        shift: 0,
                    })
                    .collect();
                let (mut from, to) = self.key_of(value, &fields)?;
                if *is_interval {
                    from.extend(to);
                } else if from != to {
                    let message = "a range is data of maps to intervals only";
                    return Err(self.fault(value, message));
                }
                this = this.with_data(from);
            }
            (_, data) => {
                let at = data.as_ref().and_then(place_of);
                let at = at.or_else(|| element.key.as_ref().and_then(place_of));
                let message = match element.data {
                    Some(_) => "a set's elements have no data, and a map's are of one kind",
                    None => "an element of a map needs data: `key : data`",
                };
                return Err(Fault::new(at.unwrap_or(self.place), message));
            }
        }
        Ok(this)
    }

    /// What counts or limits with an element.
    pub(super) fn nested(&self, statement: &Statement) -> Result<NestedExpression<'static>, Fault> {
        match super::stateful::of(statement) {
            Some(expression) => Ok(NestedExpression::of_decoded(&expression)),
            None => {
                let message =
                    "this cannot go with an element: counters, limits, quotas and the like can";
                Err(Fault::new(self.place, message))
            }
        }
    }

    pub(super) fn all_nested(
        &self,
        statements: &[Statement],
    ) -> Result<Expressions<'static>, Fault> {
        let mut all = Expressions::new();
        for statement in statements {
            match super::stateful::of(statement) {
                Some(expression) => _ = all.push_decoded(&expression),
                None => {
                    let message =
                        "this cannot go with an element: counters, limits, quotas and the like can";
                    return Err(Fault::new(self.place, message));
                }
            }
        }
        Ok(all)
    }
}

/// Whether nothing goes with an element.
fn is_plain(element: &Element) -> bool {
    element.statements.is_empty()
        && element.timeout.is_none()
        && element.expires.is_none()
        && element.comment.is_none()
}

/// Makes a map of a set.
pub(super) fn with_data<'s>(mut set: Set<'s>, data: &Data) -> Set<'s> {
    match data {
        Data::Verdict => set.with_verdicts(),
        Data::Object(object_type) => set.with_objects(*object_type),
        Data::Values {
            fields,
            is_interval,
        } => {
            set = set.with_flags(SetFlags::MAP);
            set.data_type = Some(type_of(fields.iter().copied()));
            set.data_length = Some(data.length());
            let order = match fields[..] {
                [one] if one.order == ByteOrder::Host => HOST_ENDIAN,
                _ => BIG_ENDIAN,
            };
            let put = |set: &mut Set<'s>, kind, number: u32| {
                userdata::put(&mut set.userdata, kind, &number.to_ne_bytes());
            };
            put(&mut set, userdata::SET_DATA_BYTE_ORDER, order);
            if *is_interval {
                put(&mut set, userdata::SET_DATA_INTERVAL, 1);
            }
            set
        }
    }
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

    /// Puts what a map has for a key into registers.
    pub(super) fn map(
        &mut self,
        key: &Expr,
        map: &Expr,
        wants: &[Want],
        word: u32,
    ) -> Result<(), Fault> {
        use super::body::register;
        let mut fields = self.load_key(key, word)?;
        let set = match map {
            Expr::Reference(name) => {
                let shape = self.compiler.set(self.family, &self.table, name, true)?;
                self.turn_for(&shape, &mut fields, map)?;
                let given: Vec<u32> = match &shape.data {
                    Some(Data::Values { fields, .. }) => {
                        fields.iter().map(|want| want.bits).collect()
                    }
                    _ => Vec::new(),
                };
                let wanted: Vec<u32> = wants.iter().map(|want| want.bits).collect();
                if given != wanted {
                    let message = format!("`{name}` does not map to what is needed here");
                    return Err(self.compiler.fault(map, message));
                }
                self.named(name)
            }
            Expr::Set(elements) => {
                let has_ranges = self.compiler.has_ranges(elements, &fields)?;
                if has_ranges {
                    self.turn(&mut fields);
                }
                let is_interval = elements.iter().any(|element| {
                    matches!(&element.data, Some(Expr::Range(..) | Expr::Prefix(..)))
                });
                let data = Data::Values {
                    fields: wants.to_vec(),
                    is_interval,
                };
                self.compiler.anonymous_set(
                    self.family,
                    &self.table,
                    &fields,
                    elements,
                    has_ranges,
                    Some(&data),
                )?
            }
            other => return Err(self.compiler.fault(other, "a map is expected here")),
        };
        self.look_up_from(&set, word, Some(register(word)), false);
        Ok(())
    }

    /// A verdict from a map.
    pub(super) fn verdict_map(&mut self, key: &Expr, map: &Expr) -> Result<(), Fault> {
        use crate::nft::expr::Register;
        self.require(key)?;
        let mut fields = self.load_key(key, 0)?;
        let set = match map {
            Expr::Reference(name) => {
                let shape = self.compiler.set(self.family, &self.table, name, true)?;
                self.turn_for(&shape, &mut fields, map)?;
                if shape.data != Some(Data::Verdict) {
                    let message = format!("`{name}` does not map to verdicts");
                    return Err(self.compiler.fault(map, message));
                }
                self.named(name)
            }
            Expr::Set(elements) => {
                let has_ranges = self.compiler.has_ranges(elements, &fields)?;
                if has_ranges {
                    self.turn(&mut fields);
                }
                let data = Some(&Data::Verdict);
                let (family, table) = (self.family, &self.table);
                self.compiler
                    .anonymous_set(family, table, &fields, elements, has_ranges, data)?
            }
            other => return Err(self.compiler.fault(other, "a verdict map is expected here")),
        };
        self.look_up(&set, Some(Register::VERDICT), false);
        Ok(())
    }
}
