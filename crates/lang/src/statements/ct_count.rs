//! `ct count`: matches up to a number of connections, or above it. The kernel calls it `connlimit`.

use super::prelude::*;
use super::units::{over, word_over};
use chainwright::nft::expr::{Connlimit, ConnlimitFlags};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CtCount {
    count: u32,
    /// Whether it matches above the number.
    over: bool,
}

impl Text for CtCount {
    const WORDS: &'static [&'static str] = &["ct count"];
    const OBJECT: Option<ObjectType> = Some(ObjectType::CONNLIMIT);

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        Ok(Self {
            over: over(parser),
            count: parser.number("a number of connections")?,
        })
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        write!(
            printer.out,
            "ct count {}{}",
            word_over(self.over),
            self.count
        )
    }
}

impl Stateful for CtCount {
    type Expression = Connlimit;
    const IS_CONDITION: bool = true;

    fn expression(&self) -> Connlimit {
        let mut flags = ConnlimitFlags::empty();
        flags.set(ConnlimitFlags::INV, self.over);
        Connlimit {
            count: Some(self.count),
            flags: Some(flags),
            ..Connlimit::default()
        }
    }

    fn of_expression(connlimit: &Connlimit) -> Option<Self> {
        let flags = connlimit.flags.unwrap_or_default();
        Some(Self {
            count: connlimit.count.unwrap_or_default(),
            over: flags.contains(ConnlimitFlags::INV),
        })
    }
}

#[cfg(feature = "json")]
impl Json for CtCount {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let fields = Fields::new(node, "a ct count statement", &["val", "inv"])?;
        Ok(Self {
            count: fields.need("val")?.small_count("a number of connections")?,
            over: fields.flag("inv")?,
        })
    }

    fn json(&self, _: Writer<'_>) -> Expression<'_> {
        let record = Record::new().field("val", self.count);
        record.optional("inv", self.over.then_some(true)).into()
    }
}
