//! Decodes set elements.

use super::compare::listed_type;
use super::rule::{limit, valid_name, value};
use super::tunnel::is_of_header;
use crate::constant::quotable;
use crate::dialect::{Form, NftVersion};
use crate::syntax::{Element, Expr, Statement, Target, Value, Verdict};
use crate::typeof_;
use crate::types::{self, info};
use crate::value::{before, fields};
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{self, Data};
use chainwright::nft::expr::{ExpressionIter, NestedExpression};
use chainwright::nft::userdata::{
    BIG_ENDIAN, SET_DATA_BYTE_ORDER, SET_DATA_INTERVAL, SET_DATA_TYPEOF, SET_KEY_BYTE_ORDER,
    SET_KEY_TYPEOF, UserData,
};
use chainwright::nft::{DataType, ElementRef, SetFlags, SetRef, SnapshotSet};

/// Converts a verdict other than a jump or goto.
pub(crate) fn plain_verdict(verdict: &expr::Verdict<'_>) -> Option<Verdict> {
    Some(match verdict {
        expr::Verdict::Accept => Verdict::Accept,
        expr::Verdict::Drop => Verdict::Drop,
        expr::Verdict::Continue => Verdict::Continue,
        expr::Verdict::Break => Verdict::Break,
        expr::Verdict::Return => Verdict::Return,
        _ => return None,
    })
}

/// Returns the byte order of a map's data.
pub(crate) fn data_order(set: &SetRef<'_>) -> ByteOrder {
    order(
        set,
        SET_DATA_BYTE_ORDER,
        set.data_type().unwrap_or_default(),
    )
}

fn order(set: &SetRef<'_>, kind: u8, data_type: DataType) -> ByteOrder {
    match data_type {
        DataType::INTEGER | DataType::VALUE => {
            let noted = set
                .userdata()
                .and_then(|data| UserData::new(data).number(kind));
            match noted {
                Some(BIG_ENDIAN) => ByteOrder::Network,
                _ => ByteOrder::Host,
            }
        }
        _ => types::order(data_type),
    }
}

/// One field of a concatenation.
#[derive(Debug, Clone, Copy)]
struct Part {
    data_type: DataType,
    /// Offset and length in bytes.
    at: usize,
    length: usize,
    order: ByteOrder,
    /// Number of bits by which the stored values are shifted left compared to printed values.
    shift: u32,
}

impl Part {
    /// Reverses the bytes of a number in host byte order. A name is such a number in a concatenation.
    fn turn(&self, is_alone: bool, key: &mut [u8]) {
        let is_turned = self.order == ByteOrder::Host
            && cfg!(target_endian = "little")
            && !(is_alone && types::is_string(self.data_type));
        if let Some(bytes) = key
            .get_mut(self.at..self.at + self.length)
            .filter(|_| is_turned)
        {
            bytes.reverse();
        }
    }
}

/// Decoder for the elements of a set.
pub(crate) struct SetReader<'s> {
    /// `None` if only single elements are decoded.
    set: Option<SnapshotSet<'s>>,
    /// Version of nft whose forms the elements have.
    version: NftVersion,
    view: SetRef<'s>,
    keys: Vec<Part>,
    data: Vec<Part>,
    /// Whether a map's data are intervals.
    has_ranges: bool,
    /// Expressions of `typeof` declarations for the keys and for a map's data.
    pub(crate) key_typeof: Option<Expr>,
    pub(crate) data_typeof: Option<Expr>,
}

impl<'s> SetReader<'s> {
    /// Creates a decoder for a named set.
    pub(crate) fn named(set: &SnapshotSet<'s>, version: NftVersion) -> Self {
        Self {
            set: Some(*set),
            ..Self::of_view(&set.set(), version)
        }
    }

    /// Creates a decoder for single elements of a set.
    pub(crate) fn of_view(view: &SetRef<'s>, version: NftVersion) -> Self {
        let length = view.key_length().unwrap_or_default();
        // The user data may be too small for all fields.
        let is_whole = |key: &Expr| match key {
            Expr::Concat(_) => key.bits() == length * 8,
            _ => true,
        };
        let key = typeof_::of(view, SET_KEY_TYPEOF).filter(is_whole);
        Self::new(*view, version, key, &[])
    }

    /// Creates a decoder for an anonymous set. `key` is the expression that the rule looks up; `shifts` is how far
    /// each of its fields is shifted left compared to printed values.
    pub(crate) fn anonymous(
        set: &SnapshotSet<'s>,
        version: NftVersion,
        key: &Expr,
        shifts: &[u32],
        is_map: bool,
    ) -> Self {
        let mut reader = Self::new(set.set(), version, Some(key.clone()), shifts);
        reader.set = Some(*set);
        if let [one] = &mut reader.keys[..] {
            match is_map {
                // nft takes the type of a map's keys from the map.
                true if one.data_type == types::RAW => one.data_type = DataType::INTEGER,
                true => {}
                false if is_of_header(key) => one.data_type = types::RAW,
                false => {}
            }
        }
        reader
    }

    fn new(view: SetRef<'s>, version: NftVersion, key: Option<Expr>, shifts: &[u32]) -> Self {
        let is_interval = view
            .flags()
            .unwrap_or_default()
            .contains(SetFlags::INTERVAL);
        let data_typeof = typeof_::of(&view, SET_DATA_TYPEOF);
        let described = view
            .description()
            .and_then(|description| description.fields);
        let described: Vec<usize> = described
            .iter()
            .flat_map(|fields| fields.lengths())
            .map(|length| length as usize)
            .collect();
        let whole = view.key_length().unwrap_or_default() as usize;
        let key_order = |data_type| order(&view, SET_KEY_BYTE_ORDER, data_type);
        let mut keys = parts(
            version,
            view.key_type(),
            key.as_ref(),
            whole,
            &described,
            key_order,
        );
        for (index, part) in keys.iter_mut().enumerate() {
            part.shift = shifts.get(index).copied().unwrap_or_default();
            if is_interval {
                // Keys of interval sets are stored in network byte order.
                part.order = ByteOrder::Network;
            }
        }
        let has_ranges = view
            .userdata()
            .and_then(|data| UserData::new(data).number(SET_DATA_INTERVAL))
            .is_some_and(|number| number != 0);
        let mut whole = view.data_length().unwrap_or_default() as usize;
        if has_ranges {
            whole /= 2;
        }
        let data_order = |data_type| order(&view, SET_DATA_BYTE_ORDER, data_type);
        let data = parts(
            version,
            view.data_type(),
            data_typeof.as_ref(),
            whole,
            &[],
            data_order,
        );
        Self {
            set: None,
            version,
            view,
            keys,
            data,
            has_ranges,
            key_typeof: key,
            data_typeof,
        }
    }

    /// Returns `true` if the set was read without its elements.
    pub(crate) fn is_left_out(&self) -> bool {
        self.set.is_some_and(|set| set.is_left_out())
    }

    /// Returns `true` if a map's data are intervals.
    pub(crate) const fn has_ranges(&self) -> bool {
        self.has_ranges
    }

    /// Returns the type of the keys; `None` for a concatenation.
    pub(crate) fn key_type(&self) -> Option<DataType> {
        match self.keys[..] {
            [one] => Some(one.data_type),
            _ => None,
        }
    }

    /// Returns all elements in nft's order; `None` if nft's language cannot represent one of them.
    pub(crate) fn elements(&self) -> Option<Vec<Element>> {
        self.is_whole().then_some(())?;
        self.each().into_iter().map(|(_, read)| read).collect()
    }

    /// Returns `true` if elements may have more than their key: nft 1.1 prints each of them in its own line.
    pub(crate) fn has_long_elements(&self, elements: &[Element], is_lookup: bool) -> bool {
        let flags = self.view.flags().unwrap_or_default();
        let has_statements = self.view.expression().is_some() || self.view.expressions().is_some();
        flags.intersects(SetFlags::MAP | SetFlags::OBJECT | SetFlags::TIMEOUT)
            || (has_statements && !is_lookup)
            || elements.iter().any(|element| element.comment.is_some())
    }

    /// Returns `true` if the decoded key length equals the kernel's. nft 1.0.6 loses the first of more than five
    /// fields.
    fn is_whole(&self) -> bool {
        let length = self.keys.last().map(|last| match self.keys.len() {
            1 => last.length,
            _ => last.at + last.length.next_multiple_of(4),
        });
        length == Some(self.view.key_length().unwrap_or_default() as usize)
    }

    /// Returns all elements in nft's order, each with its decoded form; `None` if nft's language cannot represent it.
    pub(crate) fn each(&self) -> Vec<(ElementRef<'s>, Option<Element>)> {
        let flags = self.view.flags().unwrap_or_default();
        let is_interval = flags.contains(SetFlags::INTERVAL);
        if is_interval && !flags.contains(SetFlags::CONCAT) && self.keys.len() == 1 {
            return self.intervals();
        }
        let mut elements: Vec<ElementRef<'s>> =
            self.set.iter().flat_map(SnapshotSet::elements).collect();
        if !is_interval {
            // nft sorts keys as numbers: a single value in its own byte order. Version 1.0 sorts a concatenation with
            // the last field first, and names by their last byte.
            let is_one = self.keys.len() == 1;
            let turned = is_one && self.keys[0].order == ByteOrder::Network;
            let is_bits = is_one && types::is_bitmask(self.keys[0].data_type);
            elements.sort_by_cached_key(|element| {
                let mut key = element.key_bytes().unwrap_or_default().to_vec();
                if self.version.has(Form::ElementOrder) {
                    self.keys
                        .iter()
                        .for_each(|part| part.turn(is_one, &mut key));
                } else if !turned && cfg!(target_endian = "little") {
                    key.reverse();
                }
                if is_bits {
                    keep_lowest(&mut key); // bitmask values are sorted by their lowest bit
                }
                (element.is_catch_all(), key)
            });
        }
        let read = |element: ElementRef<'s>| {
            let read = self.one(&element);
            (element, read)
        };
        elements.into_iter().map(read).collect()
    }

    /// Decodes a single element. In an interval set, this is one end of an interval.
    pub(crate) fn one(&self, element: &ElementRef<'_>) -> Option<Element> {
        self.is_whole().then_some(())?;
        let key = match element.key_bytes() {
            Some(from) => {
                let to = element.key_end_bytes().unwrap_or(from);
                Some(self.key(from, to)?)
            }
            None => None,
        };
        self.element(element, key)
    }

    /// Joins the starts and ends of an interval set.
    fn intervals(&self) -> Vec<(ElementRef<'s>, Option<Element>)> {
        let mut bounds: Vec<ElementRef<'s>> =
            self.set.iter().flat_map(SnapshotSet::elements).collect();
        // An end precedes a start at the same key; the catch-all element is last.
        bounds.sort_by_key(|element| {
            (
                element.is_catch_all(),
                element.key_bytes(),
                !element.is_interval_end(),
            )
        });
        let mut elements = Vec::new();
        let mut bounds = bounds.into_iter().peekable();
        while let Some(element) = bounds.next() {
            if element.is_interval_end() {
                continue; // an end without a start: nft's first element is one
            }
            let Some(from) = element.key_bytes() else {
                let read = self.element(&element, None);
                elements.push((element, read));
                continue;
            };
            // Elements that were read twice have two starts at the same key.
            let is_other = |next: &ElementRef<'_>| next.key_bytes() != Some(from);
            let last = bounds.clone().find(is_other);
            let last = last.and_then(|next| next.key_bytes()).and_then(before);
            let last = last.unwrap_or_else(|| vec![0xff; from.len()]);
            let key = self.key(from, &last);
            let read = key.and_then(|key| self.element(&element, Some(key)));
            elements.push((element, read));
        }
        elements
    }

    fn element(&self, element: &ElementRef<'_>, key: Option<Expr>) -> Option<Element> {
        let mut read = Element::new(key);
        read.statements = nested(element.expression().as_ref(), element.expressions())?;
        let milliseconds = |time: std::time::Duration| u64::try_from(time.as_millis()).ok();
        // 0 means "never", and is only printed if the set has a default timeout.
        let of_set = self.view.timeout().is_some_and(|time| !time.is_zero());
        read.timeout = element
            .timeout()
            .and_then(milliseconds)
            .filter(|time| *time > 0 || of_set);
        read.expires = element
            .expiration()
            .and_then(milliseconds)
            .filter(|time| *time > 0);
        if read.timeout.map(std::time::Duration::from_millis) == self.view.timeout() {
            read.timeout = None;
        }
        read.comment = match element.comment() {
            Some(comment) => Some(quotable(comment)?.to_owned()),
            None => None,
        };
        read.data = match (element.data(), element.object()) {
            (Some(Data::Value(bytes)), _) => Some(self.data(&bytes)?),
            (Some(Data::Verdict(verdict)), _) => Some(Expr::Verdict(match verdict {
                expr::Verdict::Jump(name) => Verdict::Jump(Target::Chain(valid_name(&name)?)),
                expr::Verdict::Goto(name) => Verdict::Goto(Target::Chain(valid_name(&name)?)),
                other => plain_verdict(&other)?,
            })),
            (Some(Data::Opaque(_)), _) => return None,
            (None, Some(object)) => Some(Expr::Object(valid_name(object)?)),
            (None, None) => None,
        };
        Some(read)
    }

    fn key(&self, from: &[u8], to: &[u8]) -> Option<Expr> {
        joined(&self.keys, from, to, self.version)
    }

    /// Decodes a constant field of a key that starts at this byte.
    pub(crate) fn key_field(&self, at: usize, bytes: &[u8]) -> Option<Value> {
        field(&self.keys, at, bytes)
    }

    /// Decodes a constant field of a map's data that starts at this byte.
    pub(crate) fn data_field(&self, at: usize, bytes: &[u8]) -> Option<Value> {
        field(&self.data, at, bytes)
    }

    fn data(&self, bytes: &[u8]) -> Option<Expr> {
        match self.has_ranges {
            true => {
                let (from, to) = bytes.split_at_checked(bytes.len() / 2)?;
                joined(&self.data, from, to, self.version)
            }
            false => joined(&self.data, bytes, bytes, self.version),
        }
    }
}

/// Returns the maximum number of elements, if there is a limit.
pub(crate) fn size(set: &SetRef<'_>) -> Option<u32> {
    set.description()?.size.filter(|size| *size > 0)
}

/// Returns the statements that apply to each element of a set; `None` if nft's language cannot represent one of them.
pub(crate) fn statements(set: &SetRef<'_>) -> Option<Vec<Statement>> {
    nested(set.expression().as_ref(), set.expressions())
}

/// Decodes stateful expressions; `None` if nft's language cannot represent one of them.
pub(crate) fn nested(
    one: Option<&NestedExpression<'_>>,
    several: Option<ExpressionIter<'_>>,
) -> Option<Vec<Statement>> {
    let one = one.map(|nested| nested.decode().ok());
    let several = several.into_iter().flatten();
    let several = several.map(|nested| nested.ok()?.decode().ok());
    let all = one.into_iter().chain(several);
    all.map(|expression| Statement::of_expression(&expression?))
        .collect()
}

/// Returns the fields of a type with their positions.
fn parts(
    version: NftVersion,
    data_type: Option<DataType>,
    declared: Option<&Expr>,
    whole: usize,
    described: &[usize],
    order: impl Fn(DataType) -> ByteOrder,
) -> Vec<Part> {
    let exprs: Option<&[Expr]> = match declared {
        Some(Expr::Concat(parts)) => Some(parts),
        Some(one) => Some(std::slice::from_ref(one)),
        None => None,
    };
    let listed = |expr: &Expr| listed_type(expr, version).unwrap_or_else(|| expr.data_type());
    let types = match (exprs, data_type) {
        (Some(exprs), _) => exprs.iter().map(listed).collect(),
        (None, Some(data_type)) => fields(data_type),
        (None, None) => vec![DataType::VALUE],
    };
    let of_expr = |index: usize| exprs.map(|exprs| exprs[index].order());
    if let [one] = types[..] {
        // An integer without a type of its own has the byte order of the expression.
        let order = match (exprs, one) {
            (Some(_), DataType::INTEGER | types::RAW) => of_expr(0).unwrap_or(ByteOrder::Host),
            _ => order(one),
        };
        return vec![Part {
            data_type: one,
            at: 0,
            length: whole,
            order,
            shift: 0,
        }];
    }
    let mut parts = Vec::new();
    let mut at = 0;
    for (index, &data_type) in types.iter().enumerate() {
        let own = exprs.map(|exprs| exprs[index].bits().div_ceil(8) as usize);
        let typical = info(data_type).map(|info| info.bits.div_ceil(8) as usize);
        let length = described
            .get(index)
            .copied()
            .or(own)
            .or(typical)
            .unwrap_or_default();
        parts.push(Part {
            data_type,
            at,
            length,
            order: of_expr(index).unwrap_or_else(|| order(data_type)),
            shift: 0,
        });
        at += length.next_multiple_of(4);
    }
    parts
}

/// Decodes a field that starts at this byte.
fn field(parts: &[Part], at: usize, bytes: &[u8]) -> Option<Value> {
    let mut parts = parts.iter();
    let part = parts.find(|part| part.at == at && part.length == bytes.len())?;
    value(bytes, part.order, part.data_type)
}

/// Decodes a value, a concatenation, or ranges of them.
fn joined(parts: &[Part], from: &[u8], to: &[u8], version: NftVersion) -> Option<Expr> {
    let one = |part: &Part| {
        let bytes = |all: &[u8]| all.get(part.at..part.at + part.length).map(<[u8]>::to_vec);
        let low = |value: Value| Value {
            number: value.number >> part.shift,
            ..value
        };
        let first = low(value(&bytes(from)?, part.order, part.data_type)?);
        let last = low(limit(&bytes(to)?, part.order, part.data_type)?);
        match first == last {
            true => Some(Expr::Value(first)),
            false => span(first, last, version),
        }
    };
    match parts {
        [part] => one(part),
        parts => Some(Expr::Concat(parts.iter().map(one).collect::<Option<_>>()?)),
    }
}

/// Converts to a prefix or range; `None` for strings that are not a prefix.
fn span(first: Value, last: Value, version: NftVersion) -> Option<Expr> {
    let prefix = first.prefix_to(&last);
    if types::is_string(first.data_type) {
        let whole = prefix.filter(|bits| bits % 8 == 0)?;
        return Some(Expr::Beginning(first, whole));
    }
    let has_prefixes = types::has_prefixes(first.data_type, version);
    let value = |value| Box::new(Expr::Value(value));
    Some(match prefix.filter(|_| has_prefixes) {
        Some(prefix) => Expr::Prefix(value(first), prefix),
        None => Expr::Range(value(first), value(last)),
    })
}

/// Clears all but the lowest bit of a big-endian number.
fn keep_lowest(number: &mut [u8]) {
    let mut found = false;
    for byte in number.iter_mut().rev() {
        *byte = match found {
            true => 0,
            false => *byte & byte.wrapping_neg(),
        };
        found |= *byte != 0;
    }
}
