//! The elements of sets as values.

use super::inside::is_of_header;
use super::rule::{limit, spoken, value};
use super::stateful::stateful_statement;
use crate::constant::quotable;
use crate::syntax::{Element, Expr, Statement, Target, Value, Verdict};
use crate::typeof_;
use crate::types::{self, info};
use crate::value::{before, fields};
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{self, Data};
use chainwright::nft::userdata::{
    BIG_ENDIAN, SET_DATA_BYTE_ORDER, SET_DATA_INTERVAL, SET_DATA_TYPEOF, SET_KEY_BYTE_ORDER,
    SET_KEY_TYPEOF, UserData,
};
use chainwright::nft::{DataType, ElementRef, SetFlags, SetRef, SnapshotSet};

/// A verdict that leads to no chain.
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

/// The order of the bytes of a map's data.
pub(super) fn data_order(set: &SetRef<'_>) -> ByteOrder {
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

/// One of several values that stand one behind the other.
#[derive(Debug, Clone, Copy)]
struct Part {
    data_type: DataType,
    /// Place and length in bytes.
    at: usize,
    length: usize,
    order: ByteOrder,
    /// How many bits its values are higher than what they are written as.
    shift: u32,
}

/// Reads the elements of a set.
pub(crate) struct SetReader<'s> {
    /// `None` where single elements are read.
    set: Option<SnapshotSet<'s>>,
    view: SetRef<'s>,
    keys: Vec<Part>,
    data: Vec<Part>,
    /// Whether a map's data are ranges.
    has_ranges: bool,
    /// The expressions that a set's keys, and a map's data, were declared by.
    pub(crate) key_typeof: Option<Expr>,
    pub(crate) data_typeof: Option<Expr>,
}

impl<'s> SetReader<'s> {
    /// Of a set that has a name.
    pub(crate) fn named(set: &SnapshotSet<'s>) -> Self {
        Self {
            set: Some(*set),
            ..Self::of_view(&set.set())
        }
    }

    /// The same without its elements.
    pub(crate) fn of_view(view: &SetRef<'s>) -> Self {
        let length = view.key_length().unwrap_or_default();
        // User data may be too small for all of them.
        let is_whole = |key: &Expr| match key {
            Expr::Concat(_) => key.bits() == length * 8,
            _ => true,
        };
        let key = typeof_::of(view, SET_KEY_TYPEOF).filter(is_whole);
        Self::new(*view, key, &[])
    }

    /// Of one that a rule has in braces: its keys are what the rule looks up, which may be so many bits higher than
    /// they are written.
    pub(super) fn anonymous(
        set: &SnapshotSet<'s>,
        key: &Expr,
        shifts: &[u32],
        is_map: bool,
    ) -> Self {
        let mut reader = Self::new(set.set(), Some(key.clone()), shifts);
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

    fn new(view: SetRef<'s>, key: Option<Expr>, shifts: &[u32]) -> Self {
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
        let mut keys = parts(view.key_type(), key.as_ref(), whole, &described, key_order);
        for (index, part) in keys.iter_mut().enumerate() {
            part.shift = shifts.get(index).copied().unwrap_or_default();
            if is_interval {
                // Ranges are kept in the order in which bytes compare.
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
            view.data_type(),
            data_typeof.as_ref(),
            whole,
            &[],
            data_order,
        );
        Self {
            set: None,
            view,
            keys,
            data,
            has_ranges,
            key_typeof: key,
            data_typeof,
        }
    }

    /// Whether the set was read without its elements.
    pub(crate) fn is_left_out(&self) -> bool {
        self.set.is_some_and(|set| set.is_left_out())
    }

    /// Whether a map's data are ranges.
    pub(crate) const fn has_ranges(&self) -> bool {
        self.has_ranges
    }

    /// The type of the keys, or of their first field.
    pub(crate) fn key_type(&self) -> Option<DataType> {
        match self.keys[..] {
            [one] => Some(one.data_type),
            _ => None,
        }
    }

    /// All elements, in the order in which nft writes them; `None` if one of them cannot be said.
    pub(crate) fn elements(&self) -> Option<Vec<Element>> {
        self.is_whole().then_some(())?;
        self.each().into_iter().map(|(_, read)| read).collect()
    }

    /// Whether the keys are as long as the kernel's: nft 1.0.6 forgets the first of more than five fields.
    fn is_whole(&self) -> bool {
        let length = self.keys.last().map(|last| match self.keys.len() {
            1 => last.length,
            _ => last.at + last.length.next_multiple_of(4),
        });
        length == Some(self.view.key_length().unwrap_or_default() as usize)
    }

    /// Each element, in the order in which nft writes them, and what it is; `None` of one that cannot be said.
    pub(crate) fn each(&self) -> Vec<(ElementRef<'s>, Option<Element>)> {
        let flags = self.view.flags().unwrap_or_default();
        let is_interval = flags.contains(SetFlags::INTERVAL);
        if is_interval && !flags.contains(SetFlags::CONCAT) && self.keys.len() == 1 {
            return self.intervals();
        }
        let mut elements: Vec<ElementRef<'s>> =
            self.set.iter().flat_map(SnapshotSet::elements).collect();
        if !is_interval {
            // nft compares them as numbers: one value as what it is, several with the last in front.
            let is_one = self.keys.len() == 1;
            let turned = is_one && self.keys[0].order == ByteOrder::Network;
            let is_bits = is_one && types::is_bitmask(self.keys[0].data_type);
            elements.sort_by_cached_key(|element| {
                let mut key = element.key_bytes().unwrap_or_default().to_vec();
                if !turned && cfg!(target_endian = "little") {
                    key.reverse();
                }
                if is_bits {
                    keep_lowest(&mut key); // several bits by the first of them
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

    /// An element by itself; of a set of ranges one end of a range.
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

    /// The elements of a set of ranges: starts and ends.
    fn intervals(&self) -> Vec<(ElementRef<'s>, Option<Element>)> {
        let mut bounds: Vec<ElementRef<'s>> =
            self.set.iter().flat_map(SnapshotSet::elements).collect();
        // An end before a start at the same key; what stands for all others is last.
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
                continue; // of nothing: nft begins its ranges with one
            }
            let Some(from) = element.key_bytes() else {
                let read = self.element(&element, None);
                elements.push((element, read));
                continue;
            };
            // Of what was looked up twice there are two starts at the same key.
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
        if let Some(nested) = element.expression() {
            read.statements
                .push(stateful_statement(&nested.decode().ok()?)?);
        }
        for nested in element.expressions().into_iter().flatten() {
            read.statements
                .push(stateful_statement(&nested.ok()?.decode().ok()?)?);
        }
        let milliseconds = |time: std::time::Duration| u64::try_from(time.as_millis()).ok();
        // 0 is never, which is said where the set has another one.
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
                expr::Verdict::Jump(name) => Verdict::Jump(Target::Chain(spoken(&name)?)),
                expr::Verdict::Goto(name) => Verdict::Goto(Target::Chain(spoken(&name)?)),
                other => plain_verdict(&other)?,
            })),
            (Some(Data::Opaque(_)), _) => return None,
            (None, Some(object)) => Some(Expr::Object(spoken(object)?)),
            (None, None) => None,
        };
        Some(read)
    }

    fn key(&self, from: &[u8], to: &[u8]) -> Option<Expr> {
        joined(&self.keys, from, to)
    }

    fn data(&self, bytes: &[u8]) -> Option<Expr> {
        match self.has_ranges {
            true => {
                let (from, to) = bytes.split_at_checked(bytes.len() / 2)?;
                joined(&self.data, from, to)
            }
            false => joined(&self.data, bytes, bytes),
        }
    }
}

/// How many elements a set may have, if that is limited.
pub(crate) fn size(set: &SetRef<'_>) -> Option<u32> {
    set.description()?.size.filter(|size| *size > 0)
}

/// What goes with each element of a set; `None` if nft has no words for one of them.
pub(crate) fn statements(set: &SetRef<'_>) -> Option<Vec<Statement>> {
    let mut statements = Vec::new();
    if let Some(nested) = set.expression() {
        statements.push(stateful_statement(&nested.decode().ok()?)?);
    }
    for nested in set.expressions().into_iter().flatten() {
        statements.push(stateful_statement(&nested.ok()?.decode().ok()?)?);
    }
    Some(statements)
}

/// Where the fields of a type stand.
fn parts(
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
    let types = match (exprs, data_type) {
        (Some(exprs), _) => exprs.iter().map(Expr::data_type).collect(),
        (None, Some(data_type)) => fields(data_type),
        (None, None) => vec![DataType::VALUE],
    };
    let of_expr = |index: usize| exprs.map(|exprs| exprs[index].order());
    if let [one] = types[..] {
        // A number of no type in particular has the order of what is looked up.
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

/// A value, or several, or ranges of them.
fn joined(parts: &[Part], from: &[u8], to: &[u8]) -> Option<Expr> {
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
            false => span(first, last),
        }
    };
    match parts {
        [part] => one(part),
        parts => Some(Expr::Concat(parts.iter().map(one).collect::<Option<_>>()?)),
    }
}

/// A range, or the prefix that it is; `None` of names that do not all begin so.
fn span(first: Value, last: Value) -> Option<Expr> {
    let prefix = first.prefix_to(&last);
    if types::is_string(first.data_type) {
        let whole = prefix.filter(|bits| bits % 8 == 0)?;
        return Some(Expr::Beginning(first, whole));
    }
    let has_prefixes = types::has_prefixes(first.data_type);
    let value = |value| Box::new(Expr::Value(value));
    Some(match prefix.filter(|_| has_prefixes) {
        Some(prefix) => Expr::Prefix(value(first), prefix),
        None => Expr::Range(value(first), value(last)),
    })
}

/// Leaves the lowest bit of a number whose highest byte is the first.
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
