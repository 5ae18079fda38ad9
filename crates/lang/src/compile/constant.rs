//! Evaluates constants, once the type that they are compared with is known.

use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::ToSpan;
use jiff::civil::{DateTime, Time};
use nix::net::if_::if_nametoindex;

use super::Compiler;
use crate::parse::{Diagnostic, number, parse_time};
use crate::syntax::{Expr, Operator, Span, Symbol, Value};
use crate::types::{self, BITMASK, CT_LABEL, DATE, DAY, HOUR, LL_ADDR, info, symbols};
use chainwright::nft::DataType;
use chainwright::nft::build::ByteOrder;

/// Expected type of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedType {
    pub(crate) data_type: DataType,
    /// Length in bits.
    pub(crate) bits: u32,
    /// Byte order in a register.
    pub(crate) order: ByteOrder,
}

impl ExpectedType {
    /// Creates an expected type with the length and byte order of a data type.
    pub(crate) fn of(data_type: DataType) -> Self {
        let known = info(data_type);
        Self {
            data_type,
            bits: known.map_or(0, |info| info.bits),
            order: known.map_or(ByteOrder::Host, |info| info.order),
        }
    }

    /// Returns the length in bytes.
    pub(crate) const fn length(self) -> usize {
        self.bits.div_ceil(8) as usize
    }

    pub(crate) const fn value(self, number: u128) -> Value {
        Value {
            data_type: self.data_type,
            bits: self.bits,
            number,
        }
    }

    /// Encodes a number; for a string, its first `length` bytes.
    pub(crate) fn bytes(self, number: u128, length: usize) -> Vec<u8> {
        bytes_in(number, length, self.order, types::is_string(self.data_type))
    }
}

/// Encodes a number in this byte order.
pub(crate) fn bytes_in(number: u128, length: usize, order: ByteOrder, is_string: bool) -> Vec<u8> {
    let all = number.to_be_bytes();
    let start = all.len().saturating_sub(length);
    let mut bytes = all[start..].to_vec();
    if order == ByteOrder::Host && cfg!(target_endian = "little") && !is_string {
        bytes.reverse();
    }
    bytes
}

/// Returns the location of an expression's first constant.
pub(crate) fn span_of(expr: &Expr) -> Option<Span> {
    match expr {
        Expr::Symbol(symbol) => Some(symbol.span),
        Expr::Binary(_, left, right)
        | Expr::Range(left, right)
        | Expr::Masked(left, right)
        | Expr::Map(left, right) => span_of(left).or_else(|| span_of(right)),
        Expr::Prefix(value, _) => span_of(value),
        Expr::Concat(parts) | Expr::Flags(parts) => parts.iter().find_map(span_of),
        Expr::Set(elements) => elements.iter().find_map(|element| match &element.key {
            Some(key) => span_of(key),
            None => element.data.as_ref().and_then(span_of),
        }),
        _ => None,
    }
}

/// Parses a link-layer address; leading digits of a byte may be missing.
fn link_address(text: &str) -> Option<u128> {
    if text.split(':').count() > 6 {
        return None;
    }
    let mut number = 0;
    for part in text.split(':') {
        let digits = part.strip_prefix("0x").unwrap_or(part);
        if digits.is_empty() || digits.len() > 2 {
            return None;
        }
        number = number << 8 | u128::from(u8::from_str_radix(digits, 16).ok()?);
    }
    Some(number)
}

/// Parses an IPv4 address with octal or hexadecimal numbers. In quotation marks it may have fewer numbers; the last one
/// then is the rest of the address.
fn address(text: &str, is_quoted: bool) -> Option<u128> {
    let parts = text.split('.').map(number).collect::<Option<Vec<_>>>()?;
    let (last, first) = parts.split_last()?;
    let rest = 8 * (4_u32.checked_sub(u32::try_from(first.len()).ok()?)?);
    let is_whole = is_quoted || first.len() == 3;
    let fits = first.iter().all(|part| *part <= 0xff) && *last <= Value::ones(rest);
    let first = first.iter().fold(0, |number, part| number << 8 | part);
    (is_whole && fits).then_some(first << rest | last)
}

/// Parses a time of day to seconds. As in nft, it may have a leap second.
fn clock_time(text: &str) -> Option<i64> {
    let mut parts = text.split(':').map(|part| {
        let part = part.trim_start();
        let is_number = part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| is_number)
    });
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let is_time = hours < 24 && minutes < 60 && seconds < 62 && parts.next().is_none();
    is_time.then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Parses a traffic class: `major:minor`.
fn class(text: &str) -> Option<u128> {
    match text {
        "root" => return Some(0xffff_ffff),
        "none" => return Some(0),
        _ => {}
    }
    let (major, minor) = text.split_once(':')?;
    let part = |part: &str| match part {
        "" => Some(0),
        part => u16::from_str_radix(part, 16).ok().map(u128::from),
    };
    Some(part(major)? << 16 | part(minor)?)
}

/// Returns the name for the values of a type in messages.
fn what(data_type: DataType) -> &'static str {
    match data_type {
        DataType::INET_SERVICE => "a port",
        DataType::IPV4_ADDR => "an IPv4 address",
        DataType::IPV6_ADDR => "an IPv6 address",
        DataType::ETHER_ADDR | LL_ADDR => "a link-layer address",
        DataType::INET_PROTO => "a protocol",
        DataType::TIME => "a time",
        DATE => "a date",
        HOUR => "a time of day",
        DAY => "a day of the week",
        DataType::MARK => "a mark",
        DataType::CT_STATE => "a connection state",
        DataType::CT_STATUS => "a connection status",
        CT_LABEL => "a connection label",
        DataType::TCP_FLAG => "a TCP flag",
        DataType::ICMP_TYPE => "an ICMP type",
        DataType::ICMPV6_TYPE => "an ICMPv6 type",
        DataType::ETHER_TYPE => "an Ethernet type",
        DataType::PKT_TYPE => "a packet type",
        DataType::FIB_ADDRTYPE => "an address type",
        DataType::DSCP => "a DSCP code point",
        DataType::UID => "a user",
        DataType::GID => "a group",
        DataType::BOOLEAN => "`exists` or `missing`",
        DataType::IFACE_INDEX => "an interface",
        types::MPTCP_SUBTYPE => "an MPTCP subtype",
        types::OPTION_ADDRESS => "an IPv4 address or a number",
        DataType::INTEGER | BITMASK | types::RAW | DataType::VALUE => "a number",
        data_type => info(data_type).map_or("a value", |info| info.name),
    }
}

impl Compiler<'_> {
    /// Evaluates a constant: a value, a prefix, a range or a string prefix.
    pub(crate) fn constant(
        &self,
        expr: &Expr,
        expected_type: ExpectedType,
    ) -> Result<Expr, Diagnostic> {
        match expr {
            Expr::Symbol(symbol) => self.symbol(symbol, expected_type),
            Expr::Value(value) => Ok(Expr::Value(Value {
                data_type: expected_type.data_type,
                bits: expected_type.bits,
                ..*value
            })),
            Expr::Prefix(value, bits) => {
                if *bits > expected_type.bits {
                    return Err(self.diagnostic(
                        expr,
                        format!(
                            "a prefix of {bits} bits is longer than the {} bits of the value",
                            expected_type.bits
                        ),
                    ));
                }
                let value = self.value(value, expected_type)?;
                let zeros = Value::ones(expected_type.bits - bits);
                let first = expected_type.value(value.number & !zeros);
                Ok(match *bits == expected_type.bits {
                    true => Expr::Value(value),
                    false => Expr::Prefix(Box::new(Expr::Value(first)), *bits),
                })
            }
            Expr::Range(from, to) => {
                let (from, to) = (
                    self.value(from, expected_type)?,
                    self.value(to, expected_type)?,
                );
                if from.number > to.number {
                    return Err(self.diagnostic(expr, "range ends before it begins"));
                }
                Ok(match from.number == to.number {
                    true => Expr::Value(from),
                    false => Expr::Range(Box::new(Expr::Value(from)), Box::new(Expr::Value(to))),
                })
            }
            Expr::Flags(_) | Expr::Binary(..) => Ok(Expr::Value(self.value(expr, expected_type)?)),
            other => {
                Err(self.diagnostic(other, format!("expected {}", what(expected_type.data_type))))
            }
        }
    }

    /// Evaluates a constant with a single value.
    pub(crate) fn value(
        &self,
        expr: &Expr,
        expected_type: ExpectedType,
    ) -> Result<Value, Diagnostic> {
        match expr {
            // Combines flags.
            Expr::Flags(flags) => {
                let mut number = 0;
                for flag in flags {
                    number |= self.value(flag, expected_type)?.number;
                }
                Ok(expected_type.value(number))
            }
            Expr::Binary(operator, left, right) => {
                let left = self.value(left, expected_type)?.number;
                let number = match operator {
                    Operator::And => left & self.value(right, expected_type)?.number,
                    Operator::Or => left | self.value(right, expected_type)?.number,
                    Operator::Xor => left ^ self.value(right, expected_type)?.number,
                    Operator::LeftShift => {
                        left.saturating_mul(1 << self.shift_count(right, expected_type)?)
                    }
                    Operator::RightShift => left >> self.shift_count(right, expected_type)?,
                };
                Ok(expected_type.value(self.fitting(number, expected_type, expr)?))
            }
            expr => match self.constant(expr, expected_type)? {
                Expr::Value(value) => Ok(value),
                _ => Err(self.diagnostic(expr, "expected a single value")),
            },
        }
    }

    /// Evaluates a shift count, which must be less than the number of bits.
    pub(crate) fn shift_count(
        &self,
        expr: &Expr,
        expected_type: ExpectedType,
    ) -> Result<u32, Diagnostic> {
        let count = ExpectedType {
            data_type: DataType::INTEGER,
            bits: 32,
            order: ByteOrder::Host,
        };
        let count = self.value(expr, count)?.number;
        let count = u32::try_from(count).ok();
        count
            .filter(|count| *count < expected_type.bits)
            .ok_or_else(|| {
                let most = expected_type.bits.saturating_sub(1);
                let message = format!(
                    "a value of {} bits can be shifted by at most {most}",
                    expected_type.bits
                );
                self.diagnostic(expr, message)
            })
    }

    fn symbol(&self, symbol: &Symbol, expected_type: ExpectedType) -> Result<Expr, Diagnostic> {
        let text = &*symbol.text;
        if types::is_string(expected_type.data_type) {
            return self.characters(symbol, expected_type);
        }
        let found = self.number_of(text, expected_type);
        let found = found.or_else(|| match expected_type.data_type {
            DataType::IPV4_ADDR => address(text, symbol.is_quoted),
            // The keyword for its header.
            DataType::INET_PROTO if text == "comp" && !symbol.is_quoted => Some(108),
            _ => None,
        });
        let Some(number) = found else {
            let known = symbols(expected_type.data_type)
                .iter()
                .map(|(name, _)| *name);
            let message = format!("`{text}` is not {}", what(expected_type.data_type));
            return Err(Diagnostic::new(symbol.span, message)
                .expecting(known)
                .nearest_to(text));
        };
        if expected_type.bits == 0 {
            return Ok(Expr::Value(expected_type.value(number)));
        }
        let number = self.fitting(number, expected_type, &Expr::Symbol(symbol.clone()))?;
        Ok(Expr::Value(expected_type.value(number)))
    }

    /// Checks that a number fits into the bits of the type.
    pub(crate) fn fitting(
        &self,
        number: u128,
        expected_type: ExpectedType,
        expr: &Expr,
    ) -> Result<u128, Diagnostic> {
        let most = Value::ones(expected_type.bits);
        if number <= most {
            return Ok(number);
        }
        let shown = match expr {
            Expr::Symbol(symbol) => symbol.text.to_string(),
            _ => number.to_string(),
        };
        let message = format!("`{shown}` is larger than the maximum {most}");
        Err(self.diagnostic(expr, message))
    }

    /// Returns the number of a word, quoted or not.
    fn number_of(&self, text: &str, expected_type: ExpectedType) -> Option<u128> {
        let named = |data_type| {
            let mut names = symbols(data_type).iter();
            let found = names.find(|(name, _)| *name == text);
            found.map(|(_, number)| u128::from(*number))
        };
        let plain = || number(text);
        match expected_type.data_type {
            DataType::IPV4_ADDR | types::OPTION_ADDRESS => plain().or_else(|| {
                let address: Ipv4Addr = text.parse().ok()?;
                Some(address.to_bits().into())
            }),
            DataType::IPV6_ADDR => {
                let address: Ipv6Addr = text.parse().ok()?;
                Some(address.to_bits())
            }
            DataType::ETHER_ADDR | LL_ADDR => link_address(text),
            DataType::INET_SERVICE => plain().or_else(|| {
                let port = self.names.service(text.as_bytes(), None)?;
                Some(port.into())
            }),
            DataType::INET_PROTO => {
                plain()
                    .or_else(|| named(expected_type.data_type))
                    .or_else(|| {
                        let protocol = self.names.protocol(text.as_bytes())?;
                        Some(protocol.into())
                    })
            }
            DataType::UID => plain().or_else(|| Some(self.names.user(text.as_bytes())?.into())),
            DataType::GID => plain().or_else(|| Some(self.names.group(text.as_bytes())?.into())),
            DataType::REALM => plain()
                .or_else(|| named(expected_type.data_type))
                .or_else(|| Some(self.names.realm(text.as_bytes())?.into())),
            DataType::DEVGROUP => plain()
                .or_else(|| named(expected_type.data_type))
                .or_else(|| Some(self.names.device_group(text.as_bytes())?.into())),
            DataType::IFACE_INDEX => plain().or_else(|| Some(if_nametoindex(text).ok()?.into())),
            DataType::TIME => parse_time(text).map(u128::from),
            DATE => self.date(text),
            HOUR => self.hour(text),
            DAY => named(DAY)
                .or_else(|| {
                    let mut days = symbols(DAY).iter();
                    let found = days.find(|(name, _)| {
                        text.len() >= 3
                            && name.len() >= text.len()
                            && name[..text.len()].eq_ignore_ascii_case(text)
                    });
                    found.map(|(_, number)| u128::from(*number))
                })
                .or_else(plain)
                .filter(|day| *day <= 6),
            DataType::CLASSID => class(text).or_else(plain),
            CT_LABEL => {
                let bit = match number(text) {
                    Some(bit) => u32::try_from(bit).ok()?,
                    None => self.names.label(text.as_bytes())?.into(),
                };
                (bit < 128).then(|| 1 << bit)
            }
            DataType::BOOLEAN => match text {
                "exists" => Some(1),
                "missing" => Some(0),
                // An option, header or chunk exists, or not.
                _ if expected_type.bits == 8 => plain().map(|number| number.min(1)),
                _ => plain(),
            },
            DataType::CGROUPSV2 => match plain() {
                Some(number) => Some(number),
                None => {
                    use std::os::unix::fs::MetadataExt;
                    let path = std::path::Path::new("/sys/fs/cgroup").join(text);
                    Some(std::fs::metadata(path).ok()?.ino().into())
                }
            },
            data_type => plain().or_else(|| named(data_type)),
        }
    }

    /// Parses a date, to nanoseconds of the kernel's clock.
    fn date(&self, text: &str) -> Option<u128> {
        if let Some(number) = number(text) {
            return number.checked_mul(1_000_000_000);
        }
        let text = text.trim_start();
        let (date, clock) = text.split_once(' ').unwrap_or((text, "0:0"));
        let date = jiff::fmt::strtime::parse("%Y-%m-%d", date).ok()?;
        let midnight = DateTime::from_parts(date.to_date().ok()?, Time::midnight());
        let time = midnight.checked_add(clock_time(clock)?.seconds()).ok()?;
        let time = time.to_zoned(self.time_zone.get().clone()).ok()?;
        u128::try_from(time.timestamp().as_nanosecond()).ok()
    }

    /// Parses a time of day, to seconds of the day in UTC.
    fn hour(&self, text: &str) -> Option<u128> {
        if let Some(number) = number(text) {
            return (number < 86_400).then_some(number);
        }
        if let Some(time) = parse_time(text) {
            return (time < 86_400_000).then_some(u128::from(time / 1000));
        }
        let seconds = clock_time(text)?;
        let offset = i64::from(
            self.time_zone
                .get()
                .to_offset(jiff::Timestamp::now())
                .seconds(),
        );
        Some((seconds - offset).rem_euclid(86_400) as u128) // below a day
    }

    /// Parses a string or string prefix.
    fn characters(&self, symbol: &Symbol, expected_type: ExpectedType) -> Result<Expr, Diagnostic> {
        let most = (expected_type.bits / 8).min(16) as usize;
        let (text, is_beginning) = match symbol.text.strip_suffix('*') {
            // Escaped asterisk.
            Some(text) if text.ends_with('\\') => (
                format!("{}*", text.strip_suffix('\\').unwrap_or_default()),
                false,
            ),
            Some(text) => (text.to_owned(), true),
            None => (symbol.text.to_string(), false),
        };
        let fits = match is_beginning {
            true => text.len() < most,
            false => {
                text.len() < most
                    || (text.len() == most && expected_type.data_type != DataType::IFNAME)
            }
        };
        if !fits {
            let message = format!(
                "name `{text}` is longer than {} bytes",
                most.saturating_sub(1)
            );
            return Err(Diagnostic::new(symbol.span, message));
        }
        if text.is_empty() {
            let message = match is_beginning {
                true => "every name matches an empty prefix: remove the match",
                false => "a name cannot be empty",
            };
            return Err(Diagnostic::new(symbol.span, message));
        }
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        let number = u128::from_be_bytes(bytes) >> (128 - most * 8);
        let value = expected_type.value(number);
        Ok(match is_beginning {
            true => Expr::Beginning(value, text.len() as u32 * 8), // at most 15 bytes
            false => Expr::Value(value),
        })
    }

    /// Creates an error at an expression of the current statement.
    pub(crate) fn diagnostic(&self, expr: &Expr, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(span_of(expr).unwrap_or(self.span), message)
    }
}
