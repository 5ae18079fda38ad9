//! `counter`: counts packets and bytes.

use super::prelude::*;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    packets: u64,
    bytes: u64,
}

impl Counter {
    fn of_data(data: &ObjectData<'_>) -> Option<Self> {
        match data {
            ObjectData::Counter(counter) => Self::of_expression(counter),
            _ => None,
        }
    }

    #[cfg(feature = "json")]
    fn record(&self) -> Record<'static> {
        Record::new()
            .field("packets", self.packets.cast_signed())
            .field("bytes", self.bytes.cast_signed())
    }
}

impl Text for Counter {
    const WORDS: &'static [&'static str] = &["counter"];
    const OBJECT: Option<ObjectType> = Some(ObjectType::COUNTER);

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        let mut counter = Self::default();
        while let Some(word) = parser.eat_any(&["packets", "bytes"]) {
            match word {
                "packets" => counter.packets = parser.number("a number of packets")?,
                _ => counter.bytes = parser.number("a number of bytes")?,
            }
        }
        Ok(counter)
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("counter")?;
        let Self { packets, bytes } = self;
        match printer.is_stateless() {
            true => Ok(()),
            false => write!(printer.out, " packets {packets} bytes {bytes}"),
        }
    }
}

impl Stateful for Counter {
    type Expression = expr::Counter;

    fn expression(&self) -> expr::Counter {
        // nft does not send a value of zero.
        expr::Counter {
            packets: Some(self.packets).filter(|count| *count > 0),
            bytes: Some(self.bytes).filter(|count| *count > 0),
            ..expr::Counter::default()
        }
    }

    fn of_expression(counter: &expr::Counter) -> Option<Self> {
        Some(Self {
            packets: counter.packets.unwrap_or_default(),
            bytes: counter.bytes.unwrap_or_default(),
        })
    }
}

impl Object for Counter {
    const TYPE: ObjectType = ObjectType::COUNTER;
    const NAME: &'static str = "counter";
    const PLURALS: &'static [&'static str] = &["counters"];
    const REFERENCE: &'static str = "counter name";
    const NEEDS_BRACES: bool = false;
    const HAS_RESET: bool = true;

    fn entry(&mut self, parser: &mut Parser<'_>, _: bool) -> Result<(), Diagnostic> {
        if !parser.eat("packets") {
            return Err(parser.no_entry("a counter", &["packets", "comment"]));
        }
        self.packets = parser.number("a number of packets")?;
        parser.expect("bytes")?;
        self.bytes = parser.number("a number of bytes")?;
        Ok(())
    }

    fn data(self, _: Span, _: bool) -> Result<ObjectData<'static>, Diagnostic> {
        Ok(expr::Counter::new(self.packets, self.bytes).into())
    }

    fn lines(data: &ObjectData<'_>, options: &Options) -> Option<Vec<String>> {
        let Self { packets, bytes } = Self::of_data(data)?;
        Some(match options.stateless {
            true => Vec::new(),
            false => vec![format!("packets {packets} bytes {bytes}")],
        })
    }
}

#[cfg(feature = "json")]
impl Json for Counter {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        match node.is_null() {
            true => Ok(Self::default()),
            false => ObjectJson::read(&Fields::new(node, "a counter", <Self as ObjectJson>::KEYS)?),
        }
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        match writer.stateless {
            true => Expression::Null(()),
            false => self.record().into(),
        }
    }
}

#[cfg(feature = "json")]
impl ObjectJson for Counter {
    const KEYS: &'static [&'static str] = &["packets", "bytes"];

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic> {
        let count = |key, what| fields.get(key).map_or(Ok(0), |node| node.count(what));
        Ok(Self {
            packets: count("packets", "a number of packets")?,
            bytes: count("bytes", "a number of bytes")?,
        })
    }

    fn record(data: &ObjectData<'_>, _: Writer<'_>) -> Option<Record<'static>> {
        Some(Self::of_data(data)?.record())
    }
}
