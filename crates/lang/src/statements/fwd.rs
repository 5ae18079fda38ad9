//! `fwd to`: sends the packet through a device, in the netdev family.

use super::destination::{address_type, version};
use super::prelude::*;
use crate::compile::constant::ExpectedType;
use crate::compile::rule_builder::{REGISTER, register};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fwd {
    /// IP version of the address.
    family: Option<Family>,
    address: Option<Expr>,
    device: Expr,
}

impl Text for Fwd {
    const WORDS: &'static [&'static str] = &["fwd"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        let family = version(parser);
        parser.expect("to")?;
        let to = parser.any()?;
        let (address, device) = match family.is_some() || parser.at("device") {
            true => {
                parser.expect("device")?;
                (Some(to), parser.any()?)
            }
            false => (None, to),
        };
        Ok(Self {
            family,
            address,
            device,
        })
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("fwd")?;
        printer.word(self.family.and_then(Family::name))?;
        printer.out.write_str(" to ")?;
        if let Some(address) = &self.address {
            printer.expr(address)?;
            printer.out.write_str(" device ")?;
        }
        printer.expr(&self.device)
    }
}

impl Linearize for Fwd {
    fn operands(&self) -> Vec<&Expr> {
        self.address.iter().chain([&self.device]).collect()
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let mut fwd = expr::Fwd::default();
        rule.put(&self.device, &[ExpectedType::of(DataType::IFACE_INDEX)], 0)?;
        fwd.sreg_dev = Some(register(0));
        if let Some(to) = &self.address {
            let family = self.family.unwrap_or_else(|| rule.family_of_address(to));
            rule.put(to, &[address_type(family)], REGISTER)?;
            fwd.sreg_addr = Some(register(REGISTER));
            fwd.nfproto = Some(family.0.into());
        }
        rule.push(&fwd);
        Ok(())
    }
}

impl Delinearize<expr::Fwd> for Fwd {
    fn delinearize(fwd: &expr::Fwd, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let (family, address) = match fwd.sreg_addr {
            Some(register) => {
                let family = Family(u8::try_from(fwd.nfproto?).ok()?);
                (Some(family), Some(reader.address(register, family)?))
            }
            None => (None, None),
        };
        Some(Self {
            family,
            address,
            device: reader.typed(fwd.sreg_dev?, DataType::IFACE_INDEX)?,
        })
    }
}

#[cfg(feature = "json")]
impl Json for Fwd {
    fn read(reader: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let fields = Fields::new(node, "a forwarding", &["dev", "family", "addr"])?;
        let (family, address) = (fields.version()?, reader.optional(&fields, "addr")?);
        if family.is_some() && address.is_none() {
            return Err(fields.missing("addr"));
        }
        Ok(Self {
            family,
            address,
            device: reader.expr(fields.need("dev")?)?,
        })
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let family = self.family.and_then(Family::name);
        let address = self.address.as_ref().map(|address| writer.expr(address));
        let record = Record::new()
            .field("dev", writer.expr(&self.device))
            .optional("family", family.map(Expression::word))
            .optional("addr", address);
        record.into()
    }
}
