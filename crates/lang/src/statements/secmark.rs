//! `secmark`: the security context of a packet, in the terms of SELinux.

use super::prelude::*;
#[cfg(feature = "json")]
use bstr::ByteSlice;

use crate::constant::{Quoted, quotable};
use chainwright::nft::expr::{CtKey, MetaKey};
use chainwright::nft::stateful::Secmark;

impl Object for Secmark<'static> {
    const TYPE: ObjectType = ObjectType::SECMARK;
    const NAME: &'static str = "secmark";
    const PLURALS: &'static [&'static str] = &["secmarks"];
    const REFERENCE: &'static str = "meta secmark set";
    const NEEDS_BRACES: bool = false;
    /// The value of another mark is not an object.
    const IS_ASSIGNED: Option<fn(&Expr, &Expr) -> bool> = Some(|target, value| {
        let is_mark = matches!(
            value,
            Expr::Ct(CtKey::SECMARK, ..) | Expr::Meta(MetaKey::SECMARK)
        );
        *target == Expr::Meta(MetaKey::SECMARK) && !is_mark
    });

    fn entry(&mut self, parser: &mut Parser<'_>, _: bool) -> Result<(), Diagnostic> {
        self.context = Some(parser.string("a security context")?.into());
        Ok(())
    }

    fn data(self, span: Span, _: bool) -> Result<ObjectData<'static>, Diagnostic> {
        match self.context {
            Some(_) => Ok(self.into()),
            None => Err(Diagnostic::new(span, "missing security context")),
        }
    }

    fn lines(data: &ObjectData<'_>, _: &Options) -> Option<Vec<String>> {
        let ObjectData::Secmark(secmark) = data else {
            return None;
        };
        let context = secmark.context.as_deref().unwrap_or_default();
        quotable(context)?;
        Some(vec![Quoted(context).to_string()])
    }
}

#[cfg(feature = "json")]
impl ObjectJson for Secmark<'static> {
    const KEYS: &'static [&'static str] = &["context"];

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic> {
        let context = fields.need("context")?.text("a security context")?;
        Ok(Self {
            context: Some(context.to_owned().into()),
            ..Self::default()
        })
    }

    fn record(data: &ObjectData<'_>, _: Writer<'_>) -> Option<Record<'static>> {
        let ObjectData::Secmark(secmark) = data else {
            return None;
        };
        let context = secmark.context.as_deref().unwrap_or_default();
        Some(Record::new().field("context", context.to_str().ok()?.to_owned()))
    }
}
