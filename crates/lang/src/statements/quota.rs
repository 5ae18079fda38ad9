//! `quota`: matches before a number of bytes is used up, or after that.

use super::prelude::*;
use super::units::{bytes, over, with_unit, word_over};
#[cfg(feature = "json")]
use super::units::{in_unit, read_bytes};
use chainwright::nft::expr::QuotaFlags;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Quota {
    bytes: u64,
    used: u64,
    /// Whether it matches when the bytes are used up.
    over: bool,
}

impl Quota {
    fn of_data(data: &ObjectData<'_>) -> Option<Self> {
        match data {
            ObjectData::Quota(quota) => Self::of_expression(quota),
            _ => None,
        }
    }

    /// Formats `over 10 mbytes used 3 mbytes`.
    fn text(&self, is_stateless: bool) -> String {
        let mut text = format!("{}{}", word_over(self.over), with_unit(self.bytes));
        if self.used > 0 && !is_stateless {
            text += " used ";
            text += &with_unit(self.used);
        }
        text
    }
}

impl Text for Quota {
    const WORDS: &'static [&'static str] = &["quota"];
    const OBJECT: Option<ObjectType> = Some(ObjectType::QUOTA);

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        Ok(Self {
            over: over(parser),
            bytes: bytes(parser)?,
            used: match parser.eat("used") {
                true => bytes(parser)?,
                false => 0,
            },
        })
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        let text = self.text(printer.is_stateless());
        write!(printer.out, "quota {text}")
    }
}

impl Stateful for Quota {
    type Expression = expr::Quota;
    const IS_CONDITION: bool = true;

    fn expression(&self) -> expr::Quota {
        let mut flags = QuotaFlags::empty();
        flags.set(QuotaFlags::INV, self.over);
        expr::Quota {
            bytes: Some(self.bytes),
            consumed: Some(self.used),
            flags: Some(flags),
            ..expr::Quota::default()
        }
    }

    fn of_expression(quota: &expr::Quota) -> Option<Self> {
        Some(Self {
            bytes: quota.bytes.unwrap_or_default(),
            used: quota.consumed.unwrap_or_default(),
            over: quota.flags.unwrap_or_default().contains(QuotaFlags::INV),
        })
    }
}

impl Object for Option<Quota> {
    const TYPE: ObjectType = ObjectType::QUOTA;
    const NAME: &'static str = "quota";
    const PLURALS: &'static [&'static str] = &["quotas"];
    const REFERENCE: &'static str = "quota name";
    const NEEDS_BRACES: bool = false;
    const HAS_RESET: bool = true;

    fn entry(&mut self, parser: &mut Parser<'_>, _: bool) -> Result<(), Diagnostic> {
        *self = Some(Quota::parse(parser, "")?);
        Ok(())
    }

    fn data(self, span: Span, is_block: bool) -> Result<ObjectData<'static>, Diagnostic> {
        match self.or_else(|| is_block.then(Quota::default)) {
            Some(quota) => Ok(quota.expression().into()),
            None => Err(Diagnostic::new(span, "missing quota size")),
        }
    }

    fn lines(data: &ObjectData<'_>, options: &Options) -> Option<Vec<String>> {
        Some(vec![Quota::of_data(data)?.text(options.stateless)])
    }
}

#[cfg(feature = "json")]
impl Json for Quota {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let known = ["val", "val_unit", "used", "used_unit", "inv"];
        let fields = Fields::new(node, "a quota", &known)?;
        Ok(Self {
            bytes: read_bytes(&fields, fields.need("val")?, "val_unit")?,
            used: match fields.get("used") {
                Some(used) => read_bytes(&fields, used, "used_unit")?,
                None => 0,
            },
            over: fields.flag("inv")?,
        })
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let (val, val_unit) = in_unit(self.bytes);
        let has_used = self.used > 0 && !writer.stateless;
        let used = has_used.then(|| in_unit(self.used));
        let record = Record::new()
            .field("val", val.cast_signed())
            .field("val_unit", Expression::word(val_unit))
            .optional("inv", self.over.then_some(true))
            .optional("used", used.map(|(used, _)| used.cast_signed()))
            .optional("used_unit", used.map(|(_, unit)| Expression::word(unit)));
        record.into()
    }
}

#[cfg(feature = "json")]
impl ObjectJson for Option<Quota> {
    const KEYS: &'static [&'static str] = &["bytes", "used", "inv"];

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic> {
        let used = fields.get("used");
        Ok(Some(Quota {
            bytes: fields.need("bytes")?.count("a number of bytes")?,
            used: used.map_or(Ok(0), |used| used.count("a number of bytes"))?,
            over: fields.flag("inv")?,
        }))
    }

    fn record(data: &ObjectData<'_>, _: Writer<'_>) -> Option<Record<'static>> {
        let Quota { bytes, used, over } = Quota::of_data(data)?;
        let record = Record::new().field("bytes", bytes.cast_signed());
        Some(record.field("used", used.cast_signed()).field("inv", over))
    }
}
