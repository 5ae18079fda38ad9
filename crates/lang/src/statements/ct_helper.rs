//! `ct helper`: the helper that tracks the further connections of a protocol.

use super::prelude::*;
#[cfg(feature = "json")]
use bstr::ByteSlice;

use super::ct::{L3Protocol, Protocol, family_name, protocol_name};
use crate::constant::{Quoted, quotable};
use chainwright::nft::expr::CtKey;
use chainwright::nft::stateful::CtHelper;

impl Object for CtHelper<'static> {
    const TYPE: ObjectType = ObjectType::CT_HELPER;
    const NAME: &'static str = "ct helper";
    const PLURALS: &'static [&'static str] = &["ct helpers"];
    const REFERENCE: &'static str = "ct helper set";
    const IS_ASSIGNED: Option<fn(&Expr, &Expr) -> bool> =
        Some(|target, _| matches!(target, Expr::Ct(CtKey::HELPER, None, _)));

    fn entry(&mut self, parser: &mut Parser<'_>, _: bool) -> Result<(), Diagnostic> {
        match parser.eat_any(&["type", "l3proto"]) {
            Some("type") => {
                let start = parser.current.span;
                if !parser.is_quoted() {
                    return Err(parser.unexpected(["the name of a helper in quotation marks"]));
                }
                let helper = parser.string("the name of a helper")?;
                parser.expect("protocol")?;
                Protocol.parse("", &mut self.l4proto, parser)?;
                match self.helper.replace(helper.into()) {
                    Some(_) => Err(parser.repeated(start, "type")),
                    None => Ok(()),
                }
            }
            Some(word) => L3Protocol
                .parse(word, &mut self.l3proto, parser)
                .map(|_| ()),
            None => Err(parser.no_entry("a ct helper", &["type", "l3proto", "comment"])),
        }
    }

    fn data(self, span: Span, _: bool) -> Result<ObjectData<'static>, Diagnostic> {
        let missing = match (&self.helper, self.l4proto) {
            (None, _) => "missing helper type",
            (_, None) => "missing protocol",
            _ => return Ok(self.into()),
        };
        Err(Diagnostic::new(span, missing))
    }

    fn lines(data: &ObjectData<'_>, _: &Options) -> Option<Vec<String>> {
        let ObjectData::CtHelper(helper) = data else {
            return None;
        };
        let name = helper.helper.as_deref().unwrap_or_default();
        quotable(name)?;
        let (name, protocol) = (Quoted(name), protocol_name(helper.l4proto));
        Some(vec![
            format!("type {name} protocol {protocol}"),
            format!("l3proto {}", family_name(helper.l3proto)?),
        ])
    }
}

#[cfg(feature = "json")]
impl ObjectJson for CtHelper<'static> {
    const KEYS: &'static [&'static str] = &["type", "protocol", "l3proto"];

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic> {
        Ok(Self {
            l4proto: Protocol.read("protocol", fields)?,
            l3proto: L3Protocol.read("l3proto", fields)?,
            helper: Some(
                fields
                    .need("type")?
                    .text("the name of a helper")?
                    .to_owned()
                    .into(),
            ),
            ..Self::default()
        })
    }

    fn record(data: &ObjectData<'_>, _: Writer<'_>) -> Option<Record<'static>> {
        let ObjectData::CtHelper(helper) = data else {
            return None;
        };
        let name = helper.helper.as_deref().unwrap_or_default().to_str().ok()?;
        let record = Record::new()
            .field("type", name.to_owned())
            .field("protocol", protocol_name(helper.l4proto))
            .field("l3proto", Expression::word(family_name(helper.l3proto)?));
        Some(record)
    }
}
