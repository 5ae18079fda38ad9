//! `limit`: matches up to a rate of packets or bytes, or above it.

use super::prelude::*;
#[cfg(feature = "json")]
use super::units::in_unit;
use super::units::{BYTE_UNITS, glued_number, over, size_of, with_unit, word_over};
use crate::dialect::Form;
use chainwright::nft::expr::{LimitFlags, LimitType};

/// Unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
}

/// Units of time, with their lengths in seconds.
const UNITS: [(Unit, &str, u64); 5] = [
    (Unit::Second, "second", 1),
    (Unit::Minute, "minute", 60),
    (Unit::Hour, "hour", 3_600),
    (Unit::Day, "day", 86_400),
    (Unit::Week, "week", 604_800),
];

impl Unit {
    fn named(word: &str) -> Option<Self> {
        let mut units = UNITS.iter();
        let found = units.find(|(_, name, _)| *name == word);
        found.map(|(unit, ..)| *unit)
    }

    const fn name(self) -> &'static str {
        UNITS[self as usize].1
    }
}

/// Units of a burst.
const BURST_UNITS: [&str; 4] = ["packets", BYTE_UNITS[0], BYTE_UNITS[1], BYTE_UNITS[2]];
/// Default burst of a packet rate; not printed before nft 1.1.
const DEFAULT_BURST: u32 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    rate: u64,
    unit: Unit,
    burst: u32,
    /// Whether rate and burst are numbers of bytes, not of packets.
    is_bytes: bool,
    /// Whether it matches above the rate.
    over: bool,
}

impl Limit {
    fn of_data(data: &ObjectData<'_>) -> Option<Self> {
        match data {
            ObjectData::Limit(limit) => Self::of_expression(limit),
            _ => None,
        }
    }

    /// Formats `rate over 10 mbytes/second burst 3 mbytes`. `has_burst` is whether to print a default burst.
    fn text(&self, has_burst: bool) -> String {
        let rate = match self.is_bytes {
            true => with_unit(self.rate),
            false => self.rate.to_string(),
        };
        let burst = match (self.is_bytes, self.burst) {
            (_, 0) => String::new(),
            (false, DEFAULT_BURST) if !has_burst => String::new(),
            (true, burst) => format!(" burst {}", with_unit(burst.into())),
            (false, burst) => format!(" burst {burst} packets"),
        };
        let (over, unit) = (word_over(self.over), self.unit.name());
        format!("rate {over}{rate}/{unit}{burst}")
    }
}

/// Returns a rate in packets, or in bytes if the size of its unit is given.
fn rate_of(rate: u64, bytes: Option<u64>, span: Span) -> Result<u64, Diagnostic> {
    let rate = rate.checked_mul(bytes.unwrap_or(1));
    let rate = rate.filter(|rate| *rate > 0);
    rate.ok_or_else(|| Diagnostic::new(span, "rate is 0 or too large"))
}

/// Returns a burst in packets or bytes.
fn burst_of(number: u64, size: u64, is_bytes: bool, span: Span) -> Result<u32, Diagnostic> {
    if number == 0 && !is_bytes {
        return Err(Diagnostic::new(span, "packet burst must be at least 1"));
    }
    let all = number.checked_mul(size);
    let all = all.and_then(|all| u32::try_from(all).ok());
    all.ok_or_else(|| Diagnostic::new(span, "burst is larger than 4294967295"))
}

/// Creates the error that the unit of a burst is not of the rate's kind.
fn wrong_burst(is_bytes: bool, span: Span) -> Diagnostic {
    match is_bytes {
        true => {
            Diagnostic::new(span, "the burst of a byte rate must be in bytes").expecting(BYTE_UNITS)
        }
        false => Diagnostic::new(span, "the burst of a packet rate must be in packets")
            .expecting(["packets"]),
    }
}

/// Parses the unit of a rate: `/second`, `mbytes/second`. Also returns the size of a unit of bytes.
fn rate_unit(parser: &mut Parser<'_>, glued: &str) -> Result<(Option<u64>, Unit), Diagnostic> {
    let unknown = |parser: &Parser<'_>| {
        parser
            .unexpected(UNITS.map(|(_, name, _)| format!("/{name}")))
            .with_hint("use a rate like 5/second or 10 mbytes/minute")
    };
    // `mbytes/second` is one token, `5/second` three.
    let mut size = match glued {
        "" => None,
        glued => Some(size_of(glued).ok_or_else(|| unknown(parser))?),
    };
    if size.is_none() && parser.is_word() {
        let word = parser.word();
        let (bytes, time) = word.split_once('/').unwrap_or((word, ""));
        size = Some(size_of(bytes).ok_or_else(|| unknown(parser))?);
        if !time.is_empty() {
            let time = Unit::named(time).ok_or_else(|| unknown(parser))?;
            parser.advance();
            return Ok((size, time));
        }
        parser.advance();
    }
    if !parser.eat_sign("/") {
        return Err(unknown(parser));
    }
    let time = match parser.is_word() {
        true => Unit::named(parser.word()),
        false => None,
    };
    let time = time.ok_or_else(|| parser.unexpected(UNITS.map(|(_, name, _)| name)))?;
    parser.advance();
    Ok((size, time))
}

impl Text for Limit {
    const WORDS: &'static [&'static str] = &["limit"];
    const OBJECT: Option<ObjectType> = Some(ObjectType::LIMIT);

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        parser.expect("rate")?;
        let over = over(parser);
        let start = parser.current.span;
        let (rate, glued) = glued_number(parser, "a rate like 5/second")?;
        let (bytes, unit) = rate_unit(parser, &glued)?;
        let rate = rate_of(rate, bytes, parser.since(start))?;
        let is_bytes = bytes.is_some();
        let mut burst = if is_bytes { 0 } else { DEFAULT_BURST };
        if parser.eat("burst") {
            let start = parser.current.span;
            let (number, glued) = glued_number(parser, "a number")?;
            let unit = match &*glued {
                "" => parser.one_of(&BURST_UNITS)?,
                glued => glued,
            };
            let size = match (is_bytes, unit) {
                (false, "packets") => Some(1),
                (false, _) => None,
                (true, unit) => size_of(unit),
            };
            let size = size.ok_or_else(|| wrong_burst(is_bytes, parser.since(start)))?;
            burst = burst_of(number, size, is_bytes, parser.since(start))?;
        }
        Ok(Self {
            rate,
            unit,
            burst,
            is_bytes,
            over,
        })
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        let has_burst = printer.options.has(Form::DefaultBurst);
        write!(printer.out, "limit {}", self.text(has_burst))
    }
}

impl Stateful for Limit {
    type Expression = expr::Limit;
    const IS_CONDITION: bool = true;

    fn expression(&self) -> expr::Limit {
        let burst = match (self.burst, self.is_bytes) {
            (0, false) => DEFAULT_BURST,
            (burst, _) => burst,
        };
        let mut flags = LimitFlags::empty();
        flags.set(LimitFlags::INV, self.over);
        expr::Limit {
            limit_type: Some(match self.is_bytes {
                true => LimitType::BYTES,
                false => LimitType::PACKETS,
            }),
            flags: Some(flags),
            burst: (burst > 0).then_some(burst),
            ..expr::Limit::packets(self.rate, UNITS[self.unit as usize].2, burst)
        }
    }

    fn of_expression(limit: &expr::Limit) -> Option<Self> {
        let is_bytes = match limit.limit_type.unwrap_or_default() {
            LimitType::PACKETS => false,
            LimitType::BYTES => true,
            _ => return None,
        };
        // nft only has names for these units.
        let mut units = UNITS.iter();
        let (unit, ..) = units.find(|(.., seconds)| Some(*seconds) == limit.unit)?;
        Some(Self {
            rate: limit.rate.unwrap_or_default(),
            unit: *unit,
            burst: limit.burst.unwrap_or_default(),
            is_bytes,
            over: limit.flags.unwrap_or_default().contains(LimitFlags::INV),
        })
    }
}

impl Object for Option<Limit> {
    const TYPE: ObjectType = ObjectType::LIMIT;
    const NAME: &'static str = "limit";
    const PLURALS: &'static [&'static str] = &["limits"];
    const REFERENCE: &'static str = "limit name";
    const NEEDS_BRACES: bool = false;

    fn entry(&mut self, parser: &mut Parser<'_>, _: bool) -> Result<(), Diagnostic> {
        *self = Some(Limit::parse(parser, "")?);
        Ok(())
    }

    fn data(self, span: Span, _: bool) -> Result<ObjectData<'static>, Diagnostic> {
        let limit = self.ok_or_else(|| Diagnostic::new(span, "missing limit rate"))?;
        let mut limit = limit.expression();
        limit.burst.get_or_insert_default();
        Ok(limit.into())
    }

    fn lines(data: &ObjectData<'_>, _: &Options) -> Option<Vec<String>> {
        Some(vec![Limit::of_data(data)?.text(false)])
    }
}

#[cfg(feature = "json")]
impl Limit {
    /// Reads a limit. The unit of time defaults to a second; nft requires it in rules.
    fn read(fields: &Fields<'_, '_>, needs_time: bool) -> Result<Self, Diagnostic> {
        let bytes = fields.word("rate_unit", "rate unit", &BURST_UNITS)?;
        let bytes = bytes.and_then(size_of);
        let is_bytes = bytes.is_some();
        let time = fields.word("per", "time unit", &UNITS.map(|(_, name, _)| name))?;
        let unit = match time.and_then(Unit::named) {
            Some(unit) => unit,
            None if needs_time => return Err(fields.missing("per")),
            None => Unit::Second,
        };
        let rate = fields.need("rate")?;
        let rate = rate_of(rate.count("a rate")?, bytes, rate.span)?;
        let burst_unit = fields.word("burst_unit", "burst unit", &BURST_UNITS)?;
        let burst = match fields.get("burst") {
            None if is_bytes => 0,
            None => DEFAULT_BURST,
            Some(burst) => {
                // The unit has no effect for packets.
                let size = burst_unit.filter(|_| is_bytes).and_then(size_of);
                let number = burst.number("a burst")?;
                burst_of(number, size.unwrap_or(1), is_bytes, burst.span)?
            }
        };
        if let (Some(unit), Some(node)) = (burst_unit, fields.get("burst_unit"))
            && is_bytes == (unit == "packets")
        {
            return Err(wrong_burst(is_bytes, node.span));
        }
        Ok(Self {
            rate,
            unit,
            burst,
            is_bytes,
            over: fields.flag("inv")?,
        })
    }

    /// Returns rate and burst as JSON, with their units.
    fn numbers(&self) -> [(i64, Option<Expression<'static>>); 2] {
        [self.rate, self.burst.into()].map(|number| match self.is_bytes {
            true => {
                let (number, unit) = in_unit(number);
                (number.cast_signed(), Some(Expression::word(unit)))
            }
            false => (number.cast_signed(), None),
        })
    }
}

#[cfg(feature = "json")]
impl Json for Limit {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        Self::read(&Fields::new(node, "a limit", Option::<Self>::KEYS)?, true)
    }

    fn json(&self, _: Writer<'_>) -> Expression<'_> {
        let [(rate, rate_unit), (burst, burst_unit)] = self.numbers();
        let record = Record::new()
            .field("rate", rate)
            .field("burst", burst)
            .field("per", Expression::word(self.unit.name()))
            .optional("inv", self.over.then_some(true))
            .optional("rate_unit", rate_unit)
            .optional("burst_unit", burst_unit);
        record.into()
    }
}

#[cfg(feature = "json")]
impl ObjectJson for Option<Limit> {
    const KEYS: &'static [&'static str] =
        &["rate", "rate_unit", "per", "burst", "burst_unit", "inv"];

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic> {
        Limit::read(fields, false).map(Some)
    }

    fn record(data: &ObjectData<'_>, _: Writer<'_>) -> Option<Record<'static>> {
        let limit = Limit::of_data(data)?;
        let [(rate, rate_unit), (burst, burst_unit)] = limit.numbers();
        let has_burst = burst > 0;
        let record = Record::new()
            .field("rate", rate)
            .field("per", Expression::word(limit.unit.name()))
            .optional("inv", limit.over.then_some(true))
            .optional("rate_unit", rate_unit)
            .optional("burst", has_burst.then_some(burst))
            .optional("burst_unit", burst_unit.filter(|_| has_burst));
        Some(record)
    }
}
