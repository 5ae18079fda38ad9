//! The address and the port that a packet is sent to.

use super::prelude::*;
use crate::compile::constant::ExpectedType;
use crate::compile::rule_builder::{REGISTER, register};
use crate::dialect::Form;
use crate::read::compare::is_address;
use crate::syntax::Symbol;
use chainwright::nft::expr::{MetaKey, PayloadBase, Register};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) address: Option<Expr>,
    pub(crate) port: Option<Expr>,
}

/// Parses an optional IP version.
pub(crate) fn version(parser: &mut Parser<'_>) -> Option<Family> {
    parser.eat_any(&["ip", "ip6"])?.parse().ok()
}

pub(crate) fn address_type(family: Family) -> ExpectedType {
    ExpectedType::of(match family {
        Family::IP6 => DataType::IPV6_ADDR,
        _ => DataType::IPV4_ADDR,
    })
}

pub(crate) fn port_type() -> ExpectedType {
    ExpectedType::of(DataType::INET_SERVICE)
}

impl Destination {
    /// Parses an address, a port, or both.
    pub(crate) fn parse(parser: &mut Parser<'_>) -> Result<Self, Diagnostic> {
        let address = match parser.at_sign(":") {
            true => None,
            false => Some(parser.any()?),
        };
        if !parser.eat_sign(":") {
            return Ok(Self {
                address,
                port: None,
            });
        }
        // nft would read it and the port as one word.
        if let Some(symbol) = address.as_ref().and_then(last_symbol)
            && symbol.text.len() <= 4
            && symbol.text.bytes().all(|b| b.is_ascii_hexdigit())
        {
            let message = format!("invalid address `{}`", shown(&symbol.text));
            return Err(Diagnostic::new(symbol.span, message));
        }
        let port = Some(port(parser)?);
        Ok(Self { address, port })
    }

    /// Prints ` to 192.0.2.1:80`; an IPv6 address in brackets if a port may follow.
    pub(crate) fn print<W: Write>(
        &self,
        printer: &mut Printer<'_, W>,
        in_brackets: bool,
    ) -> fmt::Result {
        printer.out.write_str(" to ")?;
        let is_v6 = |expr: &Expr| match expr {
            Expr::Value(value) => value.data_type == DataType::IPV6_ADDR,
            Expr::Symbol(symbol) => symbol.text.contains(':') && !symbol.is_quoted,
            _ => false,
        };
        match &self.address {
            Some(Expr::Range(from, to)) if in_brackets && is_v6(from) => {
                bracketed(printer, from)?;
                printer.out.write_char('-')?;
                bracketed(printer, to)?;
            }
            Some(address) if in_brackets && is_v6(address) => bracketed(printer, address)?,
            Some(address) => printer.expr(address)?,
            None => {}
        }
        match &self.port {
            Some(port) => {
                printer.out.write_char(':')?;
                printer.expr(port)
            }
            None => Ok(()),
        }
    }

    pub(crate) fn operands(&self) -> impl Iterator<Item = &Expr> {
        self.address.iter().chain(&self.port)
    }

    #[cfg(feature = "json")]
    pub(crate) fn read(reader: JsonReader, fields: &Fields<'_, '_>) -> Result<Self, Diagnostic> {
        Ok(Self {
            address: reader.optional(fields, "addr")?,
            port: reader.optional(fields, "port")?,
        })
    }

    /// Appends the address and the port.
    #[cfg(feature = "json")]
    pub(crate) fn record<'s>(&'s self, record: Record<'s>, writer: Writer<'_>) -> Record<'s> {
        let written = |expr: &'s Option<Expr>| expr.as_ref().map(|expr| writer.expr(expr));
        record
            .optional("addr", written(&self.address))
            .optional("port", written(&self.port))
    }
}

pub(crate) fn port(parser: &mut Parser<'_>) -> Result<Expr, Diagnostic> {
    let port = parser.any()?;
    match first_symbol(&port) {
        Some(symbol) if symbol.text.contains(':') && !symbol.is_quoted => {
            let message = format!("invalid port `{}`", shown(&symbol.text));
            Err(Diagnostic::new(symbol.span, message))
        }
        _ => Ok(port),
    }
}

fn bracketed<W: Write>(printer: &mut Printer<'_, W>, address: &Expr) -> fmt::Result {
    printer.out.write_char('[')?;
    printer.expr(address)?;
    printer.out.write_char(']')
}

/// Returns the constant that an expression begins with, if any.
fn first_symbol(expr: &Expr) -> Option<&Symbol> {
    match expr {
        Expr::Symbol(symbol) => Some(symbol),
        Expr::Range(first, _)
        | Expr::Prefix(first, _)
        | Expr::Binary(_, first, _)
        | Expr::Map(first, _) => first_symbol(first),
        Expr::Concat(parts) => first_symbol(parts.first()?),
        _ => None,
    }
}

/// Returns the constant that an expression ends with, if any.
fn last_symbol(expr: &Expr) -> Option<&Symbol> {
    match expr {
        Expr::Symbol(symbol) => Some(symbol),
        Expr::Range(_, last) | Expr::Binary(_, _, last) => last_symbol(last),
        Expr::Concat(parts) => last_symbol(parts.last()?),
        _ => None,
    }
}

impl RuleBuilder<'_, '_> {
    /// Returns the IP version of an address.
    pub(crate) fn family_of_address(&self, address: &Expr) -> Family {
        match self.family {
            Family::IP | Family::IP6 => return self.family,
            _ => {}
        }
        if let Some(version) = self.protocols.version() {
            return version;
        }
        let is_v6 = |expr: &Expr| match expr {
            Expr::Symbol(symbol) => symbol.text.contains(':'),
            Expr::Value(value) => value.data_type == DataType::IPV6_ADDR,
            _ => false,
        };
        let first = match address {
            Expr::Range(from, _) => from,
            Expr::Prefix(value, _) => value,
            other => other,
        };
        match is_v6(first) {
            true => Family::IP6,
            false => Family::IP,
        }
    }

    /// Checks that packets have ports, because of an established protocol or the key of a map.
    pub(crate) fn check_transport(&self, key: Option<&Expr>) -> Result<(), Diagnostic> {
        let determines_transport = |expr: &Expr| match expr {
            Expr::Meta(MetaKey::L4PROTO) => true,
            Expr::Payload(payload) => payload.field.is_some_and(|(protocol, field)| {
                let is_key = protocol.key == Some(protocol.fields[field].name);
                protocol.base == PayloadBase::NETWORK && is_key && payload.tunnel.is_none()
            }),
            _ => false,
        };
        let is_transport_known = match key {
            Some(Expr::Concat(parts)) => parts.iter().any(determines_transport),
            Some(key) => determines_transport(key),
            None => false,
        };
        match is_transport_known || self.protocols.has_transport() {
            true => Ok(()),
            false => Err(self.error(
                "a port requires a protocol that has ports: match the protocol first (`meta l4proto tcp`)",
            )),
        }
    }

    /// Loads a port, or both ends of a port range, into registers.
    pub(crate) fn ports(
        &mut self,
        ports: &Expr,
        word: &mut u32,
    ) -> Result<(Option<Register>, Option<Register>), Diagnostic> {
        let key = match ports {
            Expr::Map(key, _) => Some(&**key),
            _ => None,
        };
        self.check_transport(key)?;
        let expected_type = port_type();
        if ports.is_constant()
            && let Expr::Range(from, to) = self.compiler.constant(ports, expected_type)?
        {
            let first = register(*word);
            self.put(&from, &[expected_type], *word)?;
            *word += REGISTER;
            let last = register(*word);
            self.put(&to, &[expected_type], *word)?;
            *word += REGISTER;
            return Ok((Some(first), Some(last)));
        }
        let only = register(*word);
        self.put(ports, &[expected_type], *word)?;
        *word += REGISTER;
        Ok((Some(only), None))
    }
}

impl Reader<'_, '_> {
    pub(crate) fn address(&mut self, register: Register, family: Family) -> Option<Expr> {
        let data_type = match family {
            Family::IP => DataType::IPV4_ADDR,
            Family::IP6 => DataType::IPV6_ADDR,
            _ => return None,
        };
        self.typed(register, data_type)
    }

    pub(crate) fn ports(
        &mut self,
        from: Option<Register>,
        to: Option<Register>,
    ) -> Option<Option<Expr>> {
        // nft 1.0 does not omit the protocol match before a translated port.
        if !self.version.has(Form::ImpliedByPort) {
            self.context.keep_transport();
        }
        let mut port = |register: Register| self.typed(register, DataType::INET_SERVICE);
        let Some(from_register) = from else {
            return Some(None);
        };
        let first = port(from_register)?;
        match to.filter(|to| *to != from_register) {
            None => Some(Some(first)),
            Some(to) => Some(Some(limits(first, port(to)?))),
        }
    }
}

/// Converts to a range, or to a prefix if the addresses form one.
pub(crate) fn limits(from: Expr, to: Expr) -> Expr {
    if let (Expr::Value(first), Expr::Value(last)) = (&from, &to) {
        let is_address = is_address(first.data_type);
        if let Some(prefix) = first.prefix_to(last).filter(|_| is_address) {
            return Expr::Prefix(Box::new(from), prefix);
        }
    }
    Expr::Range(Box::new(from), Box::new(to))
}
