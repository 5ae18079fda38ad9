//! `snat`, `dnat`, `masquerade`, `redirect`: change the packet's source or destination.

use super::destination::{Destination, address_type, limits, port, port_type, version};
use super::prelude::*;
use crate::compile::constant::ExpectedType;
use crate::compile::rule_builder::{REGISTER, register};
use crate::compile::sets::Data;
use crate::read::registers::{Content, Registers};
use crate::syntax::Value;
use chainwright::nft::expr::{Immediate, Masq, NatRangeFlags, NatType, Redir, Register};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nat {
    kind: Translation,
    /// IP version of the address, where it is not that of the table.
    family: Option<Family>,
    /// Whether the prefix is replaced, and the rest of the address is kept.
    prefix: bool,
    to: Destination,
    flags: NatRangeFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Translation {
    Source,
    Destination,
    Masquerade,
    Redirect,
}

/// Translations by word.
const KINDS: [(&str, Translation); 4] = [
    ("snat", Translation::Source),
    ("dnat", Translation::Destination),
    ("masquerade", Translation::Masquerade),
    ("redirect", Translation::Redirect),
];

/// Flags with words, in the order of the listing.
const FLAGS: Flags<NatRangeFlags> = Flags {
    what: "nat flag",
    names: &[
        (NatRangeFlags::PROTO_RANDOM, "random"),
        (NatRangeFlags::PROTO_RANDOM_FULLY, "fully-random"),
        (NatRangeFlags::PERSISTENT, "persistent"),
    ],
};

impl Translation {
    fn of(word: &str) -> Self {
        let found = KINDS.iter().find(|(known, _)| *known == word);
        found.map_or(Self::Redirect, |(_, kind)| *kind)
    }

    const fn word(self) -> &'static str {
        KINDS[self as usize].0
    }

    const fn needs_address(self) -> bool {
        matches!(self, Self::Source | Self::Destination)
    }
}

/// Returns the flags with words; `None` if others are set that do not follow from the operands.
fn named_flags(flags: NatRangeFlags) -> Option<NatRangeFlags> {
    let named = FLAGS
        .names
        .iter()
        .fold(NatRangeFlags::empty(), |all, (flag, _)| all | *flag);
    let implied = NatRangeFlags::MAP_IPS | NatRangeFlags::PROTO_SPECIFIED | NatRangeFlags::NETMAP;
    (named | implied).contains(flags).then_some(flags & named)
}

impl Nat {
    const fn new(kind: Translation) -> Self {
        Self {
            kind,
            family: None,
            prefix: false,
            to: Destination {
                address: None,
                port: None,
            },
            flags: NatRangeFlags::empty(),
        }
    }
}

impl Text for Nat {
    const WORDS: &'static [&'static str] = &[KINDS[0].0, KINDS[1].0, KINDS[2].0, KINDS[3].0];

    fn parse(parser: &mut Parser<'_>, word: &str) -> Result<Self, Diagnostic> {
        let start = parser.before;
        let mut nat = Self::new(Translation::of(word));
        let needs_address = nat.kind.needs_address();
        if needs_address {
            // Without one of these words it is the start of an expression: `snat ip saddr map …`.
            let is_version = parser
                .next_if_word()
                .is_some_and(|word| ["to", "prefix", "interval", "addr"].contains(&&*word));
            nat.family = is_version.then(|| version(parser)).flatten();
            nat.prefix = parser.eat("prefix");
            // Older versions of nft printed the types of map data explicitly.
            if !nat.prefix && !parser.eat("interval") && parser.eat("addr") {
                parser.expect_sign(".")?;
                parser.expect("port")?;
            }
        }
        // Some versions of nft require `to` before an address; all require it if there is none.
        if parser.eat("to") || (needs_address && !parser.at_end()) {
            if needs_address {
                nat.to = Destination::parse(parser)?;
            } else {
                parser.eat_sign(":");
                nat.to.port = Some(port(parser)?);
            }
        } else if needs_address {
            return Err(Diagnostic::new(parser.since(start), "missing address").expecting(["to"]));
        }
        if parser.at_any(&FLAGS.all_words()).is_some() {
            nat.flags = FLAGS.parse_list(parser)?;
        }
        Ok(nat)
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str(self.kind.word())?;
        if self.to != Destination::default() {
            printer.word(self.family.and_then(Family::name))?;
            printer.word(self.prefix.then_some("prefix"))?;
            self.to.print(printer, self.to.port.is_some())?;
        }
        let words: Vec<_> = FLAGS.set(self.flags).collect();
        match words.is_empty() {
            true => Ok(()),
            false => write!(printer.out, " {}", words.join(",")),
        }
    }
}

impl Linearize for Nat {
    const ENDS_RULE: bool = true;

    fn operands(&self) -> Vec<&Expr> {
        self.to.operands().collect()
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let nat_type = match self.kind {
            Translation::Source => NatType::SNAT,
            Translation::Destination => NatType::DNAT,
            Translation::Masquerade | Translation::Redirect => return self.to_ports(rule),
        };
        let mut nat = expr::Nat {
            nat_type: Some(nat_type),
            ..expr::Nat::default()
        };
        let mut flags = self.flags;
        let mut word = 0;
        let mut version = rule.family;
        if let Some(to) = &self.to.address {
            let known = match rule.family {
                Family::IP | Family::IP6 => Some(rule.family),
                _ => rule.protocols.version(),
            };
            version = match (self.family, known) {
                (Some(family), Some(known)) if family != known => {
                    let message =
                        format!("{known} packets cannot be translated to {family} addresses");
                    return Err(rule.error(message));
                }
                (Some(family), _) => family,
                (None, None) if matches!(to, Expr::Map(..)) => {
                    let message = "the IP version of the map's addresses is unknown";
                    let hint = "specify it: `ip to` or `ip6 to`";
                    return Err(rule.error(message).with_hint(hint));
                }
                (None, _) => rule.family_of_address(to),
            };
            let expected_type = address_type(version);
            nat.addr_min = Some(register(word));
            match to {
                Expr::Map(key, map) => {
                    let (fields, is_interval) =
                        nat_data(rule, map, expected_type, self.to.port.is_some())?;
                    rule.map(key, map, &fields, word)?;
                    let behind = expected_type.bits / 32;
                    if fields.len() > 1 {
                        rule.check_transport(Some(key))?;
                        nat.proto_min = Some(register(word + behind));
                    }
                    if is_interval {
                        let whole: u32 = fields.iter().map(|field| field.bits.div_ceil(32)).sum();
                        nat.addr_max = Some(register(word + whole));
                        if fields.len() > 1 {
                            nat.proto_max = Some(register(word + whole + behind));
                        }
                    }
                    word += REGISTER;
                }
                to if to.is_constant() => {
                    let (from, last) = match rule.compiler.constant(to, expected_type)? {
                        Expr::Value(value) => (value.number, None),
                        Expr::Range(from, to) => match (*from, *to) {
                            (Expr::Value(from), Expr::Value(to)) => (from.number, Some(to.number)),
                            _ => return Err(rule.error("expected a range of addresses")),
                        },
                        Expr::Prefix(value, bits) => match *value {
                            Expr::Value(value) => {
                                let last = value.number | Value::ones(expected_type.bits - bits);
                                (value.number, Some(last))
                            }
                            _ => return Err(rule.error("expected an address prefix")),
                        },
                        _ => return Err(rule.error("expected an address")),
                    };
                    let mut put = |number: u128| {
                        let bytes = expected_type.bytes(number, expected_type.length());
                        let into = register(word);
                        rule.push(&Immediate::value(into, &bytes));
                        word += REGISTER;
                        into
                    };
                    nat.addr_min = Some(put(from));
                    nat.addr_max = last.map(&mut put);
                }
                to => {
                    rule.put(to, &[expected_type], word)?;
                    word += REGISTER;
                }
            }
            if self.prefix {
                flags |= NatRangeFlags::NETMAP;
            }
        }
        if let Some(ports) = &self.to.port {
            (nat.proto_min, nat.proto_max) = rule.ports(ports, &mut word)?;
            flags |= NatRangeFlags::PROTO_SPECIFIED;
        }
        nat.family = Some(version.0.into());
        nat.flags = (!flags.is_empty()).then_some(flags);
        rule.push(&nat);
        Ok(())
    }
}

impl Nat {
    /// Compiles `masquerade` or `redirect`.
    fn to_ports(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let mut flags = self.flags;
        let (proto_min, proto_max) = match &self.to.port {
            Some(port) => {
                flags |= NatRangeFlags::PROTO_SPECIFIED;
                rule.ports(port, &mut 0)?
            }
            None => (None, None),
        };
        let flags = (!flags.is_empty()).then_some(flags);
        match self.kind {
            Translation::Masquerade => rule.push(&Masq {
                flags,
                proto_min,
                proto_max,
                ..Masq::default()
            }),
            _ => rule.push(&Redir {
                flags,
                proto_min,
                proto_max,
                ..Redir::default()
            }),
        }
        Ok(())
    }

    /// Reads `masquerade` or `redirect`.
    fn of_ports(
        kind: Translation,
        flags: Option<NatRangeFlags>,
        [min, max]: [Option<Register>; 2],
        reader: &mut Reader<'_, '_>,
    ) -> Option<Self> {
        let mut nat = Self::new(kind);
        nat.to.port = reader.ports(min, max)?;
        nat.flags = named_flags(flags.unwrap_or_default())?;
        Some(nat)
    }
}

/// Returns the types of a NAT map's data: address, with or without port; and whether they are intervals.
fn nat_data(
    rule: &RuleBuilder<'_, '_>,
    map: &Expr,
    address: ExpectedType,
    has_port: bool,
) -> Result<(Vec<ExpectedType>, bool), Diagnostic> {
    match map {
        Expr::Reference(name) => match rule.data_of(name)? {
            Data::Values {
                fields,
                is_interval,
            } => match fields.len() > 1 && !has_port {
                true => Ok((vec![address, port_type()], is_interval)),
                false => Ok((vec![address], is_interval)),
            },
            _ => Err(rule.error(format!("`{name}` does not map to addresses"))),
        },
        Expr::Set(elements) => {
            let data = elements.iter().filter_map(|element| element.data.as_ref());
            let has_ports = data
                .clone()
                .any(|data| matches!(data, Expr::Concat(parts) if parts.len() > 1));
            let is_interval = data.clone().any(Expr::is_interval);
            let fields = match has_ports {
                true => vec![address, port_type()],
                false => vec![address],
            };
            Ok((fields, is_interval))
        }
        _ => Ok((vec![address], false)),
    }
}

impl Delinearize<expr::Nat> for Nat {
    fn delinearize(nat: &expr::Nat, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let family = Family(nat.family? as u8);
        let flags = nat.flags.unwrap_or_default();
        let kind = match nat.nat_type? {
            NatType::SNAT => Translation::Source,
            NatType::DNAT => Translation::Destination,
            _ => return None,
        };
        let mut word = None;
        let mut address = None;
        let mut with_port = false;
        if let Some(min) = nat.addr_min {
            let loaded = reader.registers.get(min)?;
            let map = match &loaded.expr {
                Content::Expr(Expr::Map(_, _)) => Some(loaded.length),
                _ => None,
            };
            let first = reader.address(min, family)?;
            let width = match family {
                Family::IP => 4,
                _ => 16,
            };
            let is_wide = map.is_some_and(|length| length > width);
            if let (true, Some(length)) = (is_wide, map) {
                // Address and port must all come from the map.
                let others = [nat.addr_max, nat.proto_min, nat.proto_max];
                let is_of_map = |other: &Register| Registers::is_within(*other, min, length);
                others.iter().flatten().all(is_of_map).then_some(())?;
            }
            with_port = is_wide;
            if is_wide || reader.family() == Family::INET {
                word = Some(family).filter(|family| family.name().is_some());
            }
            address = Some(match nat.addr_max.filter(|max| *max != min) {
                Some(max) if !is_wide => limits(first, reader.address(max, family)?),
                _ => first,
            });
        }
        let port = match with_port {
            true => None,
            false => reader.ports(nat.proto_min, nat.proto_max)?,
        };
        Some(Self {
            kind,
            family: word,
            prefix: flags.contains(NatRangeFlags::NETMAP),
            to: Destination { address, port },
            flags: named_flags(flags)?,
        })
    }
}

impl Delinearize<Masq> for Nat {
    fn delinearize(masq: &Masq, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let ports = [masq.proto_min, masq.proto_max];
        Self::of_ports(Translation::Masquerade, masq.flags, ports, reader)
    }
}

impl Delinearize<Redir> for Nat {
    fn delinearize(redir: &Redir, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let ports = [redir.proto_min, redir.proto_max];
        Self::of_ports(Translation::Redirect, redir.flags, ports, reader)
    }
}

#[cfg(feature = "json")]
impl Json for Nat {
    fn key(&self) -> &'static str {
        self.kind.word()
    }

    fn read(reader: JsonReader, key: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let mut nat = Self::new(Translation::of(&key.text));
        let needs_address = nat.kind.needs_address();
        if node.is_null() && !needs_address {
            return Ok(nat);
        }
        let known: &[&str] = match needs_address {
            true => &["family", "addr", "port", "flags", "type_flags"],
            false => &["port", "flags"],
        };
        let fields = Fields::new(node, "a translation", known)?;
        let words = ["random", "fully-random", "persistent", "netmap"];
        for word in fields.words("flags", "nat flag", &words)? {
            nat.flags |= FLAGS.flag(word);
            nat.prefix |= word == "netmap";
        }
        // The first two follow from the map.
        let types = ["interval", "concat", "prefix"];
        let types = fields.words("type_flags", "nat type flag", &types)?;
        nat.prefix |= types.contains(&"prefix");
        nat.to = Destination::read(reader, &fields)?;
        if needs_address && nat.to == Destination::default() {
            return Err(fields.missing("addr"));
        }
        nat.family = fields.version()?;
        Ok(nat)
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let mut words: Vec<_> = FLAGS.set(self.flags).collect();
        words.extend(self.prefix.then_some("netmap"));
        let types = self.prefix.then_some("prefix").into_iter().collect();
        let family = self
            .family
            .and_then(Family::name)
            .filter(|_| self.to != Destination::default() || !words.is_empty());
        let record = Record::new().optional("family", family.map(Expression::word));
        self.to
            .record(record, writer)
            .optional("flags", writer.flags(words))
            .optional("type_flags", writer.flags(types))
            .or_null()
    }
}
