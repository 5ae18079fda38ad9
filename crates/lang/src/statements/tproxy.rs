//! `tproxy to`: delivers the packet to a local socket.

use super::destination::{Destination, address_type, port_type, version};
use super::prelude::*;
use crate::compile::rule_builder::{REGISTER, register};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tproxy {
    /// IP version, in tables of both.
    family: Option<Family>,
    to: Destination,
}

impl Text for Tproxy {
    const WORDS: &'static [&'static str] = &["tproxy"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        let family = version(parser);
        parser.expect("to")?;
        Ok(Self {
            family,
            to: Destination::parse(parser)?,
        })
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("tproxy")?;
        printer.word(self.family.and_then(Family::name))?;
        self.to.print(printer, true)
    }
}

impl Linearize for Tproxy {
    /// A socket may not exist.
    fn rule_end(&self) -> RuleEnd {
        RuleEnd::Failure
    }

    fn operands(&self) -> Vec<&Expr> {
        self.to.operands().collect()
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let Destination { address, port } = &self.to;
        let family = match self.family {
            Some(family) => family,
            None if rule.family == Family::INET => match address {
                Some(address) => rule.family_of_address(address),
                None => Family::UNSPEC,
            },
            None => rule.family,
        };
        let mut tproxy = expr::Tproxy {
            family: Some(family.0.into()),
            ..expr::Tproxy::default()
        };
        let mut word = 0;
        if let Some(address) = address {
            rule.put(address, &[address_type(family)], word)?;
            tproxy.reg_addr = Some(register(word));
            word += REGISTER;
        }
        if let Some(port) = port {
            rule.put(port, &[port_type()], word)?;
            tproxy.reg_port = Some(register(word));
        }
        rule.push(&tproxy);
        Ok(())
    }
}

impl Delinearize<expr::Tproxy> for Tproxy {
    fn delinearize(tproxy: &expr::Tproxy, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let family = Family(tproxy.family.unwrap_or_default() as u8);
        let address = match tproxy.reg_addr {
            Some(register) => Some(reader.address(register, family)?),
            None => None,
        };
        let port = match tproxy.reg_port {
            Some(register) => Some(reader.typed(register, DataType::INET_SERVICE)?),
            None => None,
        };
        let is_inet = reader.family() == Family::INET && family != Family::UNSPEC;
        Some(Self {
            family: is_inet.then_some(family),
            to: Destination { address, port },
        })
    }
}

#[cfg(feature = "json")]
impl Json for Tproxy {
    fn read(reader: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let fields = Fields::new(node, "a tproxy statement", &["family", "addr", "port"])?;
        Ok(Self {
            family: fields.version()?,
            to: Destination::read(reader, &fields)?,
        })
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let family = self.family.and_then(Family::name);
        let record = Record::new().optional("family", family.map(Expression::word));
        self.to.record(record, writer).into()
    }
}
