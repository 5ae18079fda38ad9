//! Numbers of bytes with a unit, for limits and quotas.

use super::prelude::*;
use crate::parse::parser::{number, parse_number};

/// Units of bytes.
const BYTES: [(&str, u64); 3] = [("bytes", 1), ("kbytes", 1 << 10), ("mbytes", 1 << 20)];
/// Names of the units.
pub(crate) const BYTE_UNITS: [&str; 3] = [BYTES[0].0, BYTES[1].0, BYTES[2].0];

/// Converts a number of bytes to the largest unit in which it is whole.
pub(crate) fn in_unit(number: u64) -> (u64, &'static str) {
    let mut units = BYTES.iter().rev();
    let found = units.find(|(_, size)| number != 0 && number.is_multiple_of(*size));
    let (unit, size) = found.unwrap_or(&BYTES[0]);
    (number / size, unit)
}

/// Formats `10 mbytes`.
pub(crate) fn with_unit(number: u64) -> String {
    let (number, unit) = in_unit(number);
    format!("{number} {unit}")
}

/// Returns the size of a unit.
pub(crate) fn size_of(unit: &str) -> Option<u64> {
    let found = BYTES.iter().find(|(known, _)| *known == unit);
    found.map(|(_, size)| *size)
}

/// Multiplies a number by a unit.
fn bytes_of(number: u64, size: u64, span: Span) -> Result<u64, Diagnostic> {
    let all = number.checked_mul(size);
    all.ok_or_else(|| Diagnostic::new(span, "number of bytes is too large"))
}

/// Parses `10 mbytes`.
pub(crate) fn bytes(parser: &mut Parser<'_>) -> Result<u64, Diagnostic> {
    let start = parser.current.span;
    let (number, glued) = glued_number(parser, "a number of bytes like 10 mbytes")?;
    let unit = match &*glued {
        "" => parser.one_of(&BYTE_UNITS)?,
        glued => glued,
    };
    let Some(size) = size_of(unit) else {
        let message = format!("invalid number of bytes `{}`", shown(unit));
        return Err(Diagnostic::new(start, message).expecting(BYTE_UNITS));
    };
    bytes_of(number, size, parser.since(start))
}

/// Reads a number of bytes, and its unit from another key.
#[cfg(feature = "json")]
pub(crate) fn read_bytes(
    fields: &Fields<'_, '_>,
    node: &Node<'_>,
    unit: &str,
) -> Result<u64, Diagnostic> {
    let unit = fields.word(unit, "byte unit", &BYTE_UNITS)?;
    let size = unit.and_then(size_of).unwrap_or(1);
    bytes_of(node.count("a number of bytes")?, size, node.span)
}

/// Parses a number with optional letters at its end.
pub(crate) fn glued_number(
    parser: &mut Parser<'_>,
    what: &str,
) -> Result<(u64, String), Diagnostic> {
    let word = match parser.is_word() {
        true => parser.word(),
        false => "",
    };
    let digits = match number(word) {
        Some(_) => word.len(),
        None => word.bytes().take_while(u8::is_ascii_digit).count(),
    };
    if digits == 0 {
        return Err(parser.unexpected([what]));
    }
    let (digits, rest) = word.split_at(digits);
    let Some(number) = parse_number(digits) else {
        let message = format!("`{}` is not a number, or is too large", shown(digits));
        return Err(Diagnostic::new(parser.current.span, message));
    };
    let rest = rest.to_owned();
    parser.advance();
    Ok((number, rest))
}

/// Parses the optional `over` or `until`; returns whether it is `over`. `until` is the default.
pub(crate) fn over(parser: &mut Parser<'_>) -> bool {
    parser.eat_any(&["over", "until"]) == Some("over")
}

/// Returns the prefix of limits, quotas and numbers of connections that match when exceeded.
pub(crate) const fn word_over(over: bool) -> &'static str {
    match over {
        true => "over ",
        false => "",
    }
}
