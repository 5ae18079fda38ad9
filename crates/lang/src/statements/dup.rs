//! `dup to`: sends a copy of the packet to an address or a device.

use super::destination::address_type;
use super::prelude::*;
use crate::compile::constant::ExpectedType;
use crate::compile::rule_builder::{REGISTER, register};

/// At least one of both is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dup {
    address: Option<Expr>,
    device: Option<Expr>,
}

impl Dup {
    /// Creates a statement. In the netdev family, there is no address.
    fn new(family: Family, to: Expr, device: Option<Expr>) -> Self {
        match (family, device) {
            (Family::NETDEV, None) => Self {
                address: None,
                device: Some(to),
            },
            (_, device) => Self {
                address: Some(to),
                device,
            },
        }
    }
}

impl Text for Dup {
    const WORDS: &'static [&'static str] = &["dup"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        parser.expect("to")?;
        let to = parser.any()?;
        let device = match parser.eat("device") {
            true => Some(parser.any()?),
            false => None,
        };
        Ok(Self::new(parser.family, to, device))
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("dup to ")?;
        if let Some(address) = &self.address {
            printer.expr(address)?;
        }
        if self.address.is_some() && self.device.is_some() {
            printer.out.write_str(" device ")?;
        }
        self.device
            .iter()
            .try_for_each(|device| printer.expr(device))
    }
}

impl Linearize for Dup {
    fn operands(&self) -> Vec<&Expr> {
        self.address.iter().chain(&self.device).collect()
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let mut dup = expr::Dup::default();
        let mut word = 0;
        if let Some(to) = &self.address {
            rule.put(to, &[address_type(rule.family)], word)?;
            dup.sreg_addr = Some(register(word));
            word += REGISTER;
        }
        if let Some(device) = &self.device {
            rule.put(device, &[ExpectedType::of(DataType::IFACE_INDEX)], word)?;
            dup.sreg_dev = Some(register(word));
        }
        rule.push(&dup);
        Ok(())
    }
}

impl Delinearize<expr::Dup> for Dup {
    fn delinearize(dup: &expr::Dup, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let family = reader.family();
        Some(Self {
            address: match dup.sreg_addr {
                Some(register) => Some(reader.address(register, family)?),
                None => None,
            },
            device: match dup.sreg_dev {
                Some(register) => Some(reader.typed(register, DataType::IFACE_INDEX)?),
                None => None,
            },
        })
    }
}

#[cfg(feature = "json")]
impl Json for Dup {
    fn read(reader: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let fields = Fields::new(node, "a copy", &["addr", "dev"])?;
        let to = reader.expr(fields.need("addr")?)?;
        let device = reader.optional(&fields, "dev")?;
        Ok(Self::new(reader.family, to, device))
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        // nft writes the device as the address if there is no address.
        let (address, device) = match &self.address {
            Some(_) => (&self.address, self.device.as_ref()),
            None => (&self.device, None),
        };
        let record = Record::new().optional("addr", address.as_ref().map(|to| writer.expr(to)));
        record
            .optional("dev", device.map(|device| writer.expr(device)))
            .into()
    }
}
