//! `reject`: drops the packet and answers it with an error.

use super::prelude::*;
use crate::constant;
use crate::parse::parser::parse_number;
use crate::parse::selectors::field_of;
use crate::protocols::{self, Protocol};
use crate::read::context::Layer;
use crate::syntax::{Symbol, Value};
use crate::types;
use chainwright::nft::expr::RejectType;

/// The reply; `None` for the family's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reject(Option<RejectWith>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RejectWith {
    TcpReset,
    /// An ICMP error: the type of its code, and the code.
    Icmp(DataType, u8),
}

const TCP_RESET: &str = "tcp reset";
/// ICMP errors: their words, the types of their codes, and "port unreachable".
const ICMP: [(&str, DataType, u8); 3] = [
    ("icmp", DataType::ICMP_CODE, 3),
    ("icmpv6", DataType::ICMPV6_CODE, 4),
    ("icmpx", DataType::ICMPX_CODE, 1),
];

impl RejectWith {
    const fn word(self) -> &'static str {
        match self {
            Self::TcpReset => TCP_RESET,
            Self::Icmp(DataType::ICMP_CODE, _) => ICMP[0].0,
            Self::Icmp(DataType::ICMPV6_CODE, _) => ICMP[1].0,
            Self::Icmp(..) => ICMP[2].0,
        }
    }

    /// Returns the default for packets of this IP version, or of either.
    const fn default_for(version: Option<Family>) -> Self {
        let (_, data_type, code) = match version {
            Some(Family::IP) => ICMP[0],
            Some(Family::IP6) => ICMP[1],
            _ => ICMP[2],
        };
        Self::Icmp(data_type, code)
    }

    /// Returns the ICMP error of this word, with a code.
    fn icmp(word: &str, code: &Symbol) -> Result<Self, Diagnostic> {
        let found = ICMP.iter().find(|(known, ..)| *known == word);
        let data_type = found.map_or(DataType::ICMPX_CODE, |(_, data_type, _)| *data_type);
        let known = types::symbols(data_type);
        let named = known.iter().find(|(name, _)| **name == *code.text);
        let number = named.map_or_else(|| parse_number(&code.text), |(_, number)| Some(*number));
        match number.and_then(|number| u8::try_from(number).ok()) {
            Some(number) => Ok(Self::Icmp(data_type, number)),
            None => {
                let message = format!("unknown {word} code `{}`", shown(&code.text));
                Err(Diagnostic::new(code.span, message)
                    .expecting(known.iter().map(|(name, _)| *name))
                    .nearest_to(&code.text))
            }
        }
    }

    /// Returns the protocol of the packets to which it can reply, if it is only one.
    const fn protocol(self) -> Option<&'static Protocol> {
        match self {
            Self::TcpReset => Some(&protocols::TCP),
            Self::Icmp(DataType::ICMP_CODE, _) => Some(&protocols::IP),
            Self::Icmp(DataType::ICMPV6_CODE, _) => Some(&protocols::IP6),
            Self::Icmp(..) => None,
        }
    }
}

impl Text for Reject {
    const WORDS: &'static [&'static str] = &["reject"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        if !parser.eat("with") {
            return Ok(Self(None));
        }
        let word = parser.one_of(&["tcp", ICMP[0].0, ICMP[1].0, ICMP[2].0])?;
        if word == "tcp" {
            parser.expect("reset")?;
            return Ok(Self(Some(RejectWith::TcpReset)));
        }
        parser.eat("type");
        RejectWith::icmp(word, &parser.constant("a code")?).map(|reply| Self(Some(reply)))
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("reject")?;
        let Some(reply) = self.0 else {
            return Ok(());
        };
        write!(printer.out, " with {}", reply.word())?;
        match reply {
            RejectWith::TcpReset => Ok(()),
            RejectWith::Icmp(data_type, code) => {
                let code = Value {
                    data_type,
                    bits: 8,
                    number: code.into(),
                };
                printer.out.write_char(' ')?;
                constant::reason(&mut printer.out, &code, printer.options)
            }
        }
    }
}

impl Linearize for Reject {
    const ENDS_RULE: bool = true;

    fn add_dependencies(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        match self.0.and_then(RejectWith::protocol) {
            Some(protocol) => {
                let field = Expr::Payload(field_of(protocol, 0));
                rule.first(|rule| rule.add_dependency(&field))
            }
            None => Ok(()),
        }
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let version = match rule.family {
            Family::IP | Family::IP6 => Some(rule.family),
            _ => rule.protocols.version(),
        };
        let reject = match self.0.unwrap_or_else(|| RejectWith::default_for(version)) {
            RejectWith::TcpReset => expr::Reject {
                icmp_code: Some(0),
                ..expr::Reject::tcp_reset()
            },
            RejectWith::Icmp(DataType::ICMPX_CODE, _)
                if matches!(rule.family, Family::IP | Family::IP6) =>
            {
                return Err(rule.error(
                    "`icmpx` is for packets of either IP version: use `icmp` or `icmpv6` here",
                ));
            }
            RejectWith::Icmp(DataType::ICMPX_CODE, code) => expr::Reject {
                reject_type: Some(RejectType::ICMPX_UNREACH),
                icmp_code: Some(code),
                ..expr::Reject::default()
            },
            RejectWith::Icmp(_, code) => expr::Reject::icmp(code),
        };
        rule.push(&reject);
        Ok(())
    }
}

impl Delinearize<expr::Reject> for Reject {
    fn delinearize(reject: &expr::Reject, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let code = reject.icmp_code.unwrap_or_default();
        let family = reader.family();
        let default = RejectWith::default_for(None);
        Some(Self(match reject.reject_type? {
            RejectType::TCP_RST => {
                if matches!(family, Family::IP | Family::IP6) {
                    reader.context.take_protocol("tcp", &mut reader.statements);
                }
                Some(RejectWith::TcpReset)
            }
            RejectType::ICMPX_UNREACH => {
                Some(RejectWith::Icmp(DataType::ICMPX_CODE, code)).filter(|reply| *reply != default)
            }
            RejectType::ICMP_UNREACH => {
                let version = match family {
                    Family::IP | Family::IP6 => family,
                    _ => reader.version()?,
                };
                let data_type = match version {
                    Family::IP => DataType::ICMP_CODE,
                    _ => DataType::ICMPV6_CODE,
                };
                reader.context.take(Layer::Network, &mut reader.statements);
                let reply = RejectWith::Icmp(data_type, code);
                let is_default =
                    reply == RejectWith::default_for(Some(version)) && family == version;
                (!is_default).then_some(reply)
            }
            _ => return None,
        }))
    }
}

#[cfg(feature = "json")]
impl Json for Reject {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        if node.is_null() {
            return Ok(Self(None));
        }
        let fields = Fields::new(node, "a reject statement", &["type", "expr"])?;
        let types = [TCP_RESET, ICMP[0].0, ICMP[1].0, ICMP[2].0];
        let reply = match (
            fields.word("type", "reject type", &types)?,
            fields.get("expr"),
        ) {
            (None, None) => return Ok(Self(None)),
            (None, Some(_)) => return Err(fields.missing("type")),
            (Some(TCP_RESET), None) => RejectWith::TcpReset,
            (Some(TCP_RESET), Some(code)) => {
                return Err(Diagnostic::new(code.span, "tcp reset has no code"));
            }
            (Some(word), _) => RejectWith::icmp(word, &fields.need("expr")?.symbol("a code")?)?,
        };
        Ok(Self(Some(reply)))
    }

    /// Writes the reply, even if it is the default.
    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let reply = self
            .0
            .unwrap_or_else(|| RejectWith::default_for(Some(writer.family)));
        let record = Record::new().field("type", Expression::word(reply.word()));
        let code = match reply {
            RejectWith::TcpReset => None,
            RejectWith::Icmp(data_type, code) => {
                let name = constant::named(data_type, code.into(), writer.options);
                Some(name.map_or_else(|| numeric(code.into()), Expression::word))
            }
        };
        record.optional("expr", code).into()
    }
}
