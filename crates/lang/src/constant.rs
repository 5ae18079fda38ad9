//! Formats constants, by name or as numbers.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use bstr::{BStr, ByteSlice};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::dialect::Form;
use super::list::Options;
use super::syntax::Value;
use super::types::{self, BITMASK, CT_LABEL, DATE, DAY, HOUR, NEWER_STATUS, symbols};
use chainwright::nft::DataType;

/// Returns the characters of a string value.
fn characters(number: u128, bits: u32) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let length = (bits / 8).min(16) as usize;
    let text = &bytes[16 - length..];
    text.trim_end_with(|c| c == '\0').to_vec()
}

/// Returns `true` if nft's lexer reads a name as one word that is not a pattern.
pub(super) fn is_name(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let is_number = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let is_of_word = |byte: &u8| is_number(byte) || matches!(byte, b'-' | b'/');
    match name {
        [b'.', second, ..] => is_letter(second) && name.iter().all(is_of_word),
        [first, rest @ ..] if first.is_ascii_digit() => rest.iter().all(is_number),
        [first, rest @ ..] => is_letter(first) && rest.iter().all(is_of_word),
        [] => false,
    }
}

/// Returns the text if it can be quoted: UTF-8 without control characters and quotation marks.
pub(super) fn quotable(text: &[u8]) -> Option<&str> {
    let text = text.to_str().ok()?;
    (!text.contains(|c: char| c.is_control() || c == '"')).then_some(text)
}

/// Quotes a text. Quotation marks, backslashes and everything but printable ASCII become `\x` with two digits.
/// Different texts have different results, and none of them is a valid name in nft's language.
pub(super) fn escaped(text: &BStr) -> String {
    let mut escaped = String::from("\"");
    for byte in text.iter() {
        match byte {
            b'"' | b'\\' => escaped += &format!("\\x{byte:02x}"),
            b' '..=b'~' => escaped.push(char::from(*byte)),
            _ => escaped += &format!("\\x{byte:02x}"),
        }
    }
    escaped.push('"');
    escaped
}

/// Displays a name, or its [escaped] form if it is not valid in nft's language.
pub(super) struct Named<'n>(pub(super) &'n BStr);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_name(self.0) {
            true => write!(f, "{}", self.0),
            false => f.write_str(&escaped(self.0)),
        }
    }
}

/// Displays a text; control characters and invalid UTF-8 become `\x` with two digits. The result of such a text is not
/// valid input for nft.
pub(super) struct Plain<'n>(pub(super) &'n BStr);

/// Displays a text like [`Plain`], in quotation marks; `"` in the text also becomes `\x22`.
pub(super) struct Quoted<'n>(pub(super) &'n BStr);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shown(f, self.0, |c| c.is_control())
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        shown(f, self.0, |c| c.is_control() || c == '"')?;
        f.write_char('"')
    }
}

fn shown(f: &mut fmt::Formatter<'_>, text: &BStr, is_bad: impl Fn(char) -> bool) -> fmt::Result {
    for chunk in text.utf8_chunks() {
        for part in chunk.valid().split_inclusive(&is_bad) {
            let plain = part.trim_end_matches(&is_bad);
            f.write_str(plain)?;
            bytes(f, &part.as_bytes()[plain.len()..])?;
        }
        bytes(f, chunk.invalid())?;
    }
    Ok(())
}

fn bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))
}

fn quoted(out: &mut impl Write, text: &[u8]) -> fmt::Result {
    write!(out, "{}", Quoted(text.as_bstr()))
}

/// Writes a name prefix, followed by an asterisk.
pub(super) fn beginning(out: &mut impl Write, number: u128, bits: u32, first: u32) -> fmt::Result {
    let bytes = number.to_be_bytes();
    let start = 16 - (bits / 8).min(16) as usize;
    let text = &bytes[start..][..(first / 8) as usize];
    let mut name = text.to_vec();
    name.push(b'*');
    quoted(out, &name)
}

/// Writes a value by its name if it has one.
pub(super) fn plain(out: &mut impl Write, value: &Value, options: &Options) -> fmt::Result {
    let number = value.number;
    match value.data_type {
        DataType::IFACE_INDEX => {
            let name = u32::try_from(number)
                .ok()
                .and_then(|index| options.interface(index));
            match name {
                Some(name) => quoted(out, name.as_bytes()),
                None => write!(out, "{number}"),
            }
        }
        data_type @ (DataType::UID | DataType::GID | DataType::INET_SERVICE) => {
            match options.account_or_service(data_type, number) {
                Some(name) => quoted(out, name.as_bytes()),
                None => numeric(out, value, options),
            }
        }
        data_type @ (DataType::REALM | DataType::DEVGROUP) => {
            match symbol(data_type, number, options) {
                Some(name) => quoted(out, name.as_bytes()),
                None => write!(out, "{number}"),
            }
        }
        DAY => match symbol(DAY, number, options) {
            Some(name) => quoted(out, name.as_bytes()),
            None => write!(out, "{number}"),
        },
        DataType::TIME => match u64::try_from(number) {
            Ok(0) => out.write_str("0s"),
            Ok(milliseconds) => out.write_str(&options.time(milliseconds)),
            Err(_) => write!(out, "{number}"),
        },
        DataType::STRING | DataType::IFNAME => {
            let text = characters(number, value.bits);
            match text.strip_suffix(b"*") {
                // Escapes a literal asterisk at the end.
                Some(text) => quoted(out, &[text, br"\*"].concat()),
                None => quoted(out, &text),
            }
        }
        CT_LABEL => flags(out, value, ",", options),
        data_type if types::is_bitmask(data_type) => flags(out, value, " | ", options),
        data_type => match symbol(data_type, number, options) {
            Some(name) => out.write_str(name),
            None => numeric(out, value, options),
        },
    }
}

/// Writes the reason of a rejection, by its name if it has one.
pub(super) fn reason(out: &mut impl Write, code: &Value, options: &Options) -> fmt::Result {
    match named(code.data_type, code.number, options) {
        Some(name) => out.write_str(name),
        None => numeric(out, code, options),
    }
}

/// Returns the name of a value, if values of its type are listed by name.
pub(super) fn symbol(data_type: DataType, number: u128, options: &Options) -> Option<&'static str> {
    let is_number = match data_type {
        DataType::ICMP_CODE | DataType::ICMPV6_CODE | DataType::ICMPX_CODE => {
            options.has(Form::IcmpCodes)
        }
        DataType::CT_STATUS => number & NEWER_STATUS != 0 && !options.has(Form::StatusNames),
        _ => false,
    };
    match is_number {
        true => None,
        false => named(data_type, number, options),
    }
}

/// Returns the name of a value.
pub(super) fn named(data_type: DataType, number: u128, options: &Options) -> Option<&'static str> {
    if options.is_numeric(data_type) {
        return None;
    }
    let found = symbols(data_type)
        .iter()
        .find(|(_, value)| u128::from(*value) == number);
    found.map(|(name, _)| *name)
}

/// Writes a value whose bits have names.
pub(super) fn flags(
    out: &mut impl Write,
    value: &Value,
    between: &str,
    options: &Options,
) -> fmt::Result {
    let mut left = value.number;
    if left == 0 {
        return numeric(out, value, options);
    }
    let mut first = true;
    while left != 0 {
        let flag = left & left.wrapping_neg();
        left &= left - 1;
        if !first {
            out.write_str(between)?;
        }
        first = false;
        match symbol(value.data_type, flag, options) {
            Some(name) => out.write_str(name)?,
            None if value.data_type == CT_LABEL => write!(out, "{}", flag.trailing_zeros())?,
            None => write!(out, "{flag:#x}")?,
        }
    }
    Ok(())
}

/// Writes a value as a number, even if it has a name.
pub(super) fn numeric(out: &mut impl Write, value: &Value, options: &Options) -> fmt::Result {
    let number = value.number;
    match value.data_type {
        DataType::IPV4_ADDR => write!(out, "{}", Ipv4Addr::from_bits(number as u32)), // of 32 bits
        DataType::IPV6_ADDR => write!(out, "{}", Ipv6Addr::from_bits(number)),
        DataType::ETHER_ADDR => {
            let bytes = number.to_be_bytes();
            for (index, byte) in bytes[10..].iter().enumerate() {
                let colon = if index > 0 { ":" } else { "" };
                write!(out, "{colon}{byte:02x}")?;
            }
            Ok(())
        }
        DataType::MARK => write!(out, "{number:#010x}"),
        DataType::ETHER_TYPE => write!(out, "{number:#06x}"),
        DataType::DSCP => write!(out, "{number:#04x}"),
        BITMASK | DataType::ECN => write!(out, "{number:#x}"),
        DataType::CLASSID => match number {
            0 => out.write_str("none"),
            0xffff_ffff => out.write_str("root"),
            number => write!(out, "{:x}:{:x}", number >> 16, number & 0xffff),
        },
        DataType::TIME if number.is_multiple_of(1000) => write!(out, "{}s", number / 1000),
        DATE => match i64::try_from(number / 1_000_000_000) {
            Ok(seconds) => date(out, seconds, options.time_zone.get()),
            Err(_) => write!(out, "{number}"),
        },
        HOUR => match i64::try_from(number) {
            Ok(seconds) if seconds < 86_400 => hour(out, seconds, options.time_zone.get()),
            _ => write!(out, "{number}"),
        },
        DataType::IFNAME | DataType::STRING | DAY | DataType::TIME => plain(out, value, options),
        DataType::CT_STATE | DataType::CT_STATUS | DataType::TCP_FLAG => {
            write!(out, "{number:#x}")
        }
        super::types::RAW => write!(out, "{number:#x}"),
        _ => write!(out, "{number}"),
    }
}

/// Writes a date and time.
fn date(out: &mut impl Write, seconds: i64, zone: &TimeZone) -> fmt::Result {
    match Timestamp::from_second(seconds) {
        Ok(time) => {
            let time = time.to_zoned(zone.clone());
            write!(out, "\"{}\"", time.strftime("%Y-%m-%d %H:%M:%S"))
        }
        Err(_) => write!(out, "{seconds}"),
    }
}

/// Writes a time of day. The kernel's times are in UTC.
fn hour(out: &mut impl Write, seconds: i64, zone: &TimeZone) -> fmt::Result {
    let offset = i64::from(zone.to_offset(Timestamp::now()).seconds());
    let local = (seconds + offset).rem_euclid(86_400);
    let (hours, minutes, seconds) = (local / 3600, local / 60 % 60, local % 60);
    match seconds {
        0 => write!(out, "\"{hours:02}:{minutes:02}\""),
        seconds => write!(out, "\"{hours:02}:{minutes:02}:{seconds:02}\""),
    }
}
