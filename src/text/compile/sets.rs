//! Sets: which there are, what their keys and data are, and elements as bytes.

use std::collections::HashMap;

use super::Compiler;
use super::constant::{Want, place_of};
use super::load::Loaded;
use super::matching::type_of;
use crate::nft::build::ByteOrder;
use crate::nft::expr::{Expressions, NestedExpression, ObjectType};
use crate::nft::userdata::{self, BIG_ENDIAN, CommentError, HOST_ENDIAN};
use crate::nft::{
    DataType, Element as Bytes, Family, Milliseconds, Name, Set, SetFields, SetFlags, SetId,
    concatenation,
};
use crate::text::parse::Fault;
use crate::text::stateful;
use crate::text::syntax::{Element, Expr, Statement, Value};
use crate::text::{typeof_, types};

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

    pub(super) fn table(&self, family: Family, table: &[u8]) -> Option<&HashMap<Vec<u8>, Shape>> {
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

/// What a set without a name is asked for.
pub(super) struct Asked<'e> {
    pub(super) key: &'e Expr,
    /// The fields as they stand in registers when they are looked up.
    pub(super) fields: Vec<Loaded>,
    /// What they were before they were turned.
    pub(super) declared: Vec<Want>,
}

/// What nft notes in a set's user data.
#[derive(Default)]
pub(super) struct Notes<'n> {
    /// The orders of their bytes ([`noted_order`]).
    pub(super) key_order: u32,
    pub(super) data_order: u32,
    pub(super) data: Option<&'n Data>,
    /// Whether overlapping ranges are joined.
    pub(super) merges: bool,
    /// The expressions that keys and data are of.
    pub(super) key_typeof: Option<Vec<u8>>,
    pub(super) data_typeof: Option<Vec<u8>>,
    pub(super) comment: Option<&'n str>,
}

/// The order of the bytes of several values as nft notes it: of more than one there is none.
pub(super) const fn noted_order(wants: &[Want]) -> u32 {
    match wants {
        [one] => match one.order {
            ByteOrder::Host => HOST_ENDIAN,
            ByteOrder::Network => BIG_ENDIAN,
        },
        _ => 0,
    }
}

impl Notes<'_> {
    /// As it stands in a set's user data.
    pub(super) fn write(&self, set: &mut Set<'_>) -> Result<(), CommentError> {
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

/// Whether an expression is only a part of the bytes that are loaded for it, or made of others.
fn is_made(expr: &Expr) -> bool {
    let is_part = |offset: u32, bits: u32| !offset.is_multiple_of(8) || !bits.is_multiple_of(8);
    match expr {
        Expr::Payload(payload) => is_part(payload.offset, payload.bits),
        Expr::Option(option) => is_part(option.offset, option.bits),
        Expr::Binary(..) | Expr::Map(..) => true,
        _ => false,
    }
}

/// Whether an expression stands higher in the bytes that are loaded for it than it is written, or is made of others.
fn is_shifted(expr: &Expr) -> bool {
    match expr {
        Expr::Payload(payload) => !(payload.offset % 8 + payload.bits).is_multiple_of(8),
        Expr::Option(option) => !(option.offset % 8 + option.bits).is_multiple_of(8),
        other => is_made(other),
    }
}

impl Asked<'_> {
    /// What nft notes of the expression that is looked up in a set without a name.
    fn typeof_(&self, is_map: bool, has_ranges: bool) -> Option<Vec<u8>> {
        match self.key {
            Expr::Concat(parts) => {
                let is_turned = |want: &Want| {
                    want.order == ByteOrder::Host
                        && want.bits > 8
                        && !types::is_string(want.data_type)
                };
                let is_unsaid = parts.iter().any(is_shifted)
                    || (has_ranges && !is_map && self.declared.iter().any(is_turned));
                match typeof_::written(self.key).filter(|_| !is_unsaid) {
                    Some(written) => Some(written),
                    None => Some(typeof_::fields_of_types()),
                }
            }
            key if is_map || is_made(key) => None,
            key => typeof_::written(key),
        }
    }
}

/// The type that the kernel is told, which of bytes without a name is a number's.
pub(super) const fn told_type(data_type: DataType) -> DataType {
    match data_type {
        types::RAW => DataType::INTEGER,
        data_type => data_type,
    }
}

/// How ranges are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranges {
    /// Overlapping and adjacent ones become one.
    pub(super) joins: bool,
    /// Each has its end, also where the next one begins there.
    pub(super) is_closed: bool,
    /// Before the first one it is said that nothing is in the set from the lowest value on.
    pub(super) begins: bool,
}

impl Ranges {
    /// In a set without a name.
    const WITHOUT_NAME: Self = Self {
        joins: true,
        is_closed: false,
        begins: true,
    };
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
            if is_map && shape.data.is_none() {
                let message = format!("`{name}` is a set: a map is expected here");
                return Err(Fault::new(self.place, message));
            }
            // The keys of a map are a set, too.
            return Ok(shape.clone());
        }
        let names = known.into_iter().flat_map(HashMap::keys);
        let mut names: Vec<_> = names.map(|name| String::from_utf8_lossy(name)).collect();
        names.sort_unstable();
        let table = String::from_utf8_lossy(table);
        let message = format!("there is no set `{name}` in table {family} {table}");
        Err(Fault::new(self.place, message)
            .expecting(names)
            .nearest_to(name))
    }

    /// Whether a set in braces has ranges.
    pub(super) fn has_ranges(&self, elements: &[Element], keys: &[Want]) -> Result<bool, Fault> {
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

    /// Adds a set without a name, with elements.
    pub(super) fn anonymous(
        &mut self,
        family: Family,
        table: &Name<'static>,
        pattern: &'static str,
        with: impl FnOnce(Set<'static>) -> Set<'static>,
        notes: &Notes<'_>,
        elements: &[Bytes<'static>],
    ) -> Result<SetId<'static>, Fault> {
        let id = self.next_number();
        let set = Set {
            family,
            table: Some(table.clone()),
            name: Some(pattern.into()),
            id: Some(id),
            flags: Some(SetFlags::ANONYMOUS | SetFlags::CONSTANT),
            ..Set::default()
        };
        let mut set = with(set);
        let noted = notes.write(&mut set);
        noted.map_err(|error| Fault::new(self.place, error.to_string()))?;
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
        asked: &Asked<'_>,
        elements: &[Element],
        has_ranges: bool,
        data: Option<&Data>,
    ) -> Result<SetId<'static>, Fault> {
        let keys = &asked.fields;
        let (bytes, size) =
            self.bytes_of(keys, elements, has_ranges, data, Ranges::WITHOUT_NAME)?;
        let notes = Notes {
            key_order: noted_order(&asked.declared),
            data_order: match data {
                Some(Data::Values { fields, .. }) => noted_order(fields),
                _ => 0,
            },
            data,
            merges: has_ranges && data.is_none(),
            key_typeof: asked.typeof_(data.is_some(), has_ranges),
            data_typeof: match data {
                Some(Data::Verdict) => Some(typeof_::verdicts()),
                _ => None,
            },
            comment: None,
        };
        let wants: Vec<Want> = keys
            .iter()
            .map(|key| Want {
                bits: key.length as u32 * 8, // at most 16
                ..key.want
            })
            .collect();
        let with = |set: Set<'static>| {
            let mut set = with_keys(set, &wants, has_ranges).with_size(size);
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

    /// Elements as the kernel takes them, and how many the set is to have room for.
    pub(super) fn bytes_of(
        &self,
        keys: &[Loaded],
        elements: &[Element],
        has_ranges: bool,
        data: Option<&Data>,
        ranges: Ranges,
    ) -> Result<(Vec<Bytes<'static>>, u32), Fault> {
        let mut bytes = Vec::with_capacity(elements.len());
        if let ([key], true) = (keys, has_ranges) {
            return self.intervals(key, elements, data, ranges);
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
        kept: Ranges,
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
                let is_near = last.to.checked_add(1).is_none_or(|next| range.from <= next);
                let are_plain = data.is_none() && is_plain(range.element) && is_plain(last.element);
                if kept.joins && is_near && are_plain {
                    last.to = last.to.max(range.to);
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
        if kept.begins && joined.first().is_some_and(|first| first.from > 0) {
            bytes.push(Bytes::end(key.bytes(0)));
            size += 1;
        }
        let mut next = joined.iter().map(|range| range.from).skip(1);
        for range in &joined {
            let behind = match range.to << key.shift | Value::ones(key.shift) {
                last if last >= highest => None,
                _ => Some(range.to + 1),
            };
            let from = Bytes::new(key.bytes(range.from));
            let mut this = self.element(from, range.element, data)?;
            if behind.is_none() {
                this = this.without_end();
            }
            bytes.push(this);
            let follows = next.next();
            if let Some(behind) = behind
                && (kept.is_closed || follows != Some(behind))
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
                let fields: Vec<Loaded> = fields.iter().copied().map(Loaded::of).collect();
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
        match stateful::instruction(statement) {
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
            match stateful::instruction(statement) {
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

/// Makes a set one of these keys.
pub(super) fn with_keys<'s>(mut set: Set<'s>, keys: &[Want], is_interval: bool) -> Set<'s> {
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

/// Makes a map of a set.
pub(super) fn with_data<'s>(set: Set<'s>, data: &Data) -> Set<'s> {
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
