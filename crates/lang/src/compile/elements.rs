//! Compiles set elements one by one. Elements that do not depend on others are not kept in memory.

use std::borrow::Cow;

use super::Compiler;
use super::constant::{ExpectedType, span_of};
use super::load::Loaded;
use super::sets::Data;
use crate::parse::Diagnostic;
use crate::syntax::{Element, Expr, Span, Statement, Value};
use chainwright::nft::expr::{Decoded, Expressions, NestedExpression};
use chainwright::nft::{Element as Bytes, Milliseconds, Ranges as There, concatenation, userdata};

/// The ranges to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeMerging {
    None,
    /// Overlapping ranges.
    Overlapping,
    /// Overlapping and adjacent ranges.
    Adjacent,
}

/// Representation of ranges in a set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranges<'r> {
    pub(crate) joins: RangeMerging,
    /// Whether each range has an end element, even if the next range starts there.
    pub(crate) is_closed: bool,
    /// Whether an end element at the lowest value precedes the first range.
    pub(crate) begins: bool,
    /// Whether the ranges are deleted, so that none can be named twice.
    pub(crate) are_deleted: bool,
    /// Existing ranges to merge with.
    pub(crate) there: Option<&'r There>,
}

impl Ranges<'_> {
    /// Representation in an anonymous set.
    pub(crate) const WITHOUT_NAME: Self = Self {
        joins: RangeMerging::Adjacent,
        is_closed: false,
        begins: true,
        are_deleted: false,
        there: None,
    };
}

/// Range of keys, including both ends.
struct Interval<'e> {
    from: u128,
    to: u128,
    /// Location in the source text.
    span: Span,
    /// Source element, if it has data, options or statements.
    with: Option<Box<Cow<'e, Element>>>,
    /// Whether the range exists in the kernel.
    exists: bool,
}

impl Interval<'_> {
    /// Merges with a range that overlaps or is adjacent and does not start earlier. Returns the existing range that
    /// the result replaces. The options of the first new range are kept.
    fn join(&mut self, other: Self) -> Option<(u128, u128)> {
        let replaced = match (self.exists, other.exists) {
            (true, false) if other.to <= self.to => return None,
            (true, false) => {
                let replaced = (self.from, self.to);
                self.with = other.with;
                self.exists = false;
                Some(replaced)
            }
            (_, true) => Some((other.from, other.to)),
            (false, false) => None,
        };
        self.to = self.to.max(other.to);
        replaced
    }
}

/// Sorted ranges, and the catch-all element.
pub(crate) struct Intervals<'e> {
    ranges: Vec<Interval<'e>>,
    others: Option<Cow<'e, Element>>,
    is_closed: bool,
    begins: bool,
    /// Existing ranges that are merged into new ones.
    pub(crate) replaced: Vec<(u128, u128)>,
}

impl Intervals<'_> {
    /// Creates existing ranges.
    pub(crate) fn of(ranges: &[(u128, u128)], span: Span) -> Self {
        let range = |(from, to): &(u128, u128)| Interval {
            from: *from,
            to: *to,
            span,
            with: None,
            exists: true,
        };
        Self {
            ranges: ranges.iter().map(range).collect(),
            others: None,
            is_closed: true,
            begins: false,
            replaced: Vec::new(),
        }
    }

    /// Replaces the ranges and keeps the catch-all element.
    pub(crate) fn with_ranges(self, ranges: &[(u128, u128)], span: Span) -> Self {
        Self {
            others: self.others,
            ..Self::of(ranges, span)
        }
    }

    /// Returns the first and last value of each range.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (u128, u128)> {
        self.ranges.iter().map(|range| (range.from, range.to))
    }

    /// Returns the location of the first range that satisfies the predicate.
    pub(crate) fn find(&self, mut is_it: impl FnMut(u128, u128) -> bool) -> Option<Span> {
        let found = self.ranges.iter().find(|range| is_it(range.from, range.to));
        found.map(|range| range.span)
    }

    /// Keeps the ranges that satisfy the predicate.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(u128, u128) -> bool) {
        self.ranges.retain(|range| is_kept(range.from, range.to));
    }

    /// Returns `true` if an end element at the lowest value is needed.
    fn begins(&self) -> bool {
        self.begins && self.ranges.first().is_some_and(|first| first.from > 0)
    }

    /// Returns the number of kernel elements.
    pub(crate) fn size(&self) -> u32 {
        self.ranges.len() as u32 * 2 + u32::from(self.begins()) // a message cannot hold more
    }
}

/// Kernel elements, and the set size if it differs from the number of source elements.
pub(crate) type Each<'e> = (
    Option<u32>,
    Box<dyn Iterator<Item = Result<Bytes<'static>, Diagnostic>> + 'e>,
);

impl Compiler<'_> {
    /// Compiles elements.
    pub(crate) fn each_element<'e>(
        &'e self,
        keys: Vec<Loaded>,
        elements: impl Iterator<Item = Cow<'e, Element>> + 'e,
        has_ranges: bool,
        data: Option<&'e Data>,
        ranges: Ranges<'_>,
    ) -> Result<Each<'e>, Diagnostic> {
        let fields = data.map_or_else(Vec::new, Data::fields);
        if let ([key], true) = (&keys[..], has_ranges) {
            let key = *key;
            let intervals = self.intervals(&key, elements, data.is_some(), ranges)?;
            let size = intervals.size();
            let each = self.of_intervals(key, intervals, data, fields);
            return Ok((Some(size), Box::new(each)));
        }
        let each = elements.map(move |element| {
            let this = match &element.key {
                None => Bytes::catch_all(),
                Some(key) => {
                    let (from, to) = self.key_of(key, &keys)?;
                    match has_ranges {
                        true => Bytes::range(from, to),
                        false if from != to => {
                            let message = "ranges and prefixes need a set with `flags interval`";
                            return Err(self.diagnostic(key, message));
                        }
                        false => Bytes::new(from),
                    }
                }
            };
            self.element(this, &element, data, &fields)
        });
        Ok((None, Box::new(each)))
    }

    /// Returns the first and last key of an element.
    pub(crate) fn key_of(
        &self,
        key: &Expr,
        fields: &[Loaded],
    ) -> Result<(Vec<u8>, Vec<u8>), Diagnostic> {
        let parts = match (key, fields) {
            (Expr::Concat(parts), [_, _, ..]) => &parts[..],
            _ => std::slice::from_ref(key),
        };
        if let ([part], [field]) = (parts, fields) {
            let (first, last) = self.ends(part, field.expected_type)?;
            return Ok((field.bytes(first), field.bytes(last)));
        }
        if parts.len() != fields.len() {
            let message = format!(
                "the set's keys have {} fields, but this has {}",
                fields.len(),
                parts.len()
            );
            return Err(self.diagnostic(key, message));
        }
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for (part, field) in parts.iter().zip(fields) {
            let (first, last) = self.ends(part, field.expected_type)?;
            from.push(field.bytes(first));
            to.push(field.bytes(last));
        }
        Ok((
            concatenation(from.iter().map(Vec::as_slice)),
            concatenation(to.iter().map(Vec::as_slice)),
        ))
    }

    /// Returns the first and last number of a constant.
    fn ends(&self, expr: &Expr, expected_type: ExpectedType) -> Result<(u128, u128), Diagnostic> {
        let of = |expr: &Expr| match expr {
            Expr::Value(value) => Ok(value.number),
            other => Err(self.diagnostic(other, "expected a value")),
        };
        Ok(match self.constant(expr, expected_type)? {
            Expr::Value(value) => (value.number, value.number),
            Expr::Range(from, to) => (of(&from)?, of(&to)?),
            Expr::Prefix(value, bits) => {
                let first = of(&value)?;
                (first, first | Value::ones(expected_type.bits - bits))
            }
            Expr::Beginning(value, bits) => {
                let rest = Value::ones(expected_type.bits)
                    & !(Value::ones(bits) << (expected_type.bits - bits));
                (value.number, value.number | rest)
            }
            other => return Err(self.diagnostic(&other, "expected a constant")),
        })
    }

    /// Sorts and merges ranges of a single field.
    pub(crate) fn intervals<'e>(
        &self,
        key: &Loaded,
        elements: impl Iterator<Item = Cow<'e, Element>>,
        has_data: bool,
        kept: Ranges<'_>,
    ) -> Result<Intervals<'e>, Diagnostic> {
        let (mut ranges, mut others) = (Vec::new(), None);
        for element in elements {
            let Some(key_expr) = &element.key else {
                others = Some(element);
                continue;
            };
            let (from, to) = self.ends(key_expr, key.expected_type)?;
            let span = span_of(key_expr).unwrap_or(self.span);
            let has_more = has_data || element.data.is_some() || !is_plain(&element);
            ranges.push(Interval {
                from,
                to,
                span,
                with: has_more.then(|| Box::new(element)),
                exists: false,
            });
        }
        if let Some(there) = kept.there {
            let near = there.near(ranges.iter().map(|range| (range.from, range.to)));
            let near: Vec<_> = near.into_iter().collect();
            ranges.extend(Intervals::of(&near, self.span).ranges);
        }
        ranges.sort_by_key(|range| (range.from, range.exists, range.to));
        let mut joined: Vec<Interval<'_>> = Vec::with_capacity(ranges.len());
        let mut replaced = Vec::new();
        for range in ranges {
            if let Some(last) = joined.last_mut() {
                let is_near = match kept.joins {
                    RangeMerging::None => false,
                    RangeMerging::Overlapping => range.from <= last.to,
                    RangeMerging::Adjacent => range.from <= last.to.saturating_add(1),
                };
                let is_new = !last.exists || !range.exists;
                if is_near && !has_data && is_new {
                    replaced.extend(last.join(range));
                    continue;
                }
                if range.from <= last.to {
                    if kept.are_deleted {
                        return Err(Diagnostic::new(range.span, "element does not exist")
                            .with_hint("an earlier range of the list contains it"));
                    }
                    let is_same = (range.from, range.to) == (last.from, last.to);
                    if is_same && !has_data {
                        continue;
                    }
                    return Err(Diagnostic::new(range.span, "this overlaps another element"));
                }
            }
            joined.push(range);
        }
        joined.retain(|range| !range.exists);
        Ok(Intervals {
            ranges: joined,
            others,
            is_closed: kept.is_closed,
            begins: kept.begins,
            replaced,
        })
    }

    /// Returns the kernel elements of ranges: one at the start, and one after the end.
    pub(crate) fn of_intervals<'e>(
        &'e self,
        key: Loaded,
        intervals: Intervals<'e>,
        data: Option<&'e Data>,
        fields: Vec<Loaded>,
    ) -> impl Iterator<Item = Result<Bytes<'static>, Diagnostic>> + 'e {
        let highest = Value::ones(key.length as u32 * 8); // at most 16 bytes
        let first = intervals.begins().then(|| Ok(Bytes::end(key.bytes(0))));
        let Intervals {
            ranges,
            others,
            is_closed,
            ..
        } = intervals;
        let others = others.map(|element| (Bytes::catch_all(), element));
        let mut ranges = ranges.into_iter().peekable();
        let mut others = others.into_iter();
        let mut end = first;
        let plain = Element::new(None);
        std::iter::from_fn(move || {
            if let Some(end) = end.take() {
                return Some(end);
            }
            let Some(range) = ranges.next() else {
                let (this, element) = others.next()?;
                return Some(self.element(this, &element, data, &fields));
            };
            let this = Bytes::new(key.bytes(range.from));
            let with = range.with.as_ref().map_or(&plain, |with| with);
            let this = self.element(this, with, data, &fields);
            Some(match range.to << key.shift | Value::ones(key.shift) {
                last if last >= highest => this.map(Bytes::without_end),
                _ => {
                    let behind = range.to + 1;
                    if is_closed || ranges.peek().is_none_or(|next| next.from != behind) {
                        end = Some(Ok(Bytes::end(key.bytes(behind))));
                    }
                    this
                }
            })
        })
    }

    /// Adds data, options and statements to a kernel element.
    fn element(
        &self,
        mut this: Bytes<'static>,
        element: &Element,
        data: Option<&Data>,
        fields: &[Loaded],
    ) -> Result<Bytes<'static>, Diagnostic> {
        this.timeout = element.timeout.map(Milliseconds);
        this.expiration = element.expires.map(Milliseconds);
        if let Some(comment) = &element.comment {
            let put = userdata::put_comment(&mut this.userdata, userdata::ELEMENT_COMMENT, comment);
            put.map_err(|error| Diagnostic::new(self.span, error.to_string()))?;
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
            (Some(Data::Values { is_interval, .. }), Some(value)) => {
                let (mut from, to) = self.key_of(value, fields)?;
                if *is_interval {
                    from.extend(to);
                } else if from != to {
                    let message = "only maps to intervals can have ranges as data";
                    return Err(self.diagnostic(value, message));
                }
                this = this.with_data(from);
            }
            (_, data) => {
                let at = data.as_ref().and_then(span_of);
                let at = at.or_else(|| element.key.as_ref().and_then(span_of));
                let message = match element.data {
                    Some(_) => {
                        "set elements cannot have data, and all elements of a map need the same kind of data"
                    }
                    None => "a map element needs data: `key : data`",
                };
                return Err(Diagnostic::new(at.unwrap_or(self.span), message));
            }
        }
        Ok(this)
    }

    /// Compiles a stateful statement of an element.
    pub(crate) fn nested(
        &self,
        statement: &Statement,
    ) -> Result<NestedExpression<'static>, Diagnostic> {
        let expression = self.stateful(statement)?;
        Ok(NestedExpression::of_decoded(&expression))
    }

    pub(crate) fn all_nested(
        &self,
        statements: &[Statement],
    ) -> Result<Expressions<'static>, Diagnostic> {
        let mut all = Expressions::new();
        for statement in statements {
            all.push_decoded(&self.stateful(statement)?);
        }
        Ok(all)
    }

    fn stateful(&self, statement: &Statement) -> Result<Decoded<'static>, Diagnostic> {
        let message = "an element can only have statements such as counters, limits and quotas";
        let expression = statement.expression();
        expression.ok_or_else(|| Diagnostic::new(self.span, message))
    }
}

/// Returns `true` if an element has no options and statements.
fn is_plain(element: &Element) -> bool {
    element.statements.is_empty()
        && element.timeout.is_none()
        && element.expires.is_none()
        && element.comment.is_none()
}
