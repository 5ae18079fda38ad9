//! `queue`: lets a program decide about the packet.

use super::prelude::*;
use crate::compile::constant::ExpectedType;
use crate::compile::sets::Data;
use crate::read::compare::range;
use crate::syntax::Value;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{QueueFlags, Register};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queue {
    numbers: Option<Expr>,
    flags: QueueFlags,
}

const FLAGS: [(QueueFlags, &str); 2] = [
    (QueueFlags::BYPASS, "bypass"),
    (QueueFlags::CPU_FANOUT, "fanout"),
];

fn flag(word: &str) -> QueueFlags {
    let found = FLAGS.iter().find(|(_, known)| *known == word);
    found.map_or(QueueFlags::empty(), |(flag, _)| *flag)
}

fn flags(parser: &mut Parser<'_>) -> Result<QueueFlags, Diagnostic> {
    let mut flags = QueueFlags::empty();
    loop {
        flags |= flag(parser.one_of(&FLAGS.map(|(_, word)| word))?);
        if !parser.eat_sign(",") {
            return Ok(flags);
        }
    }
}

impl Queue {
    /// Returns the words of the flags.
    fn words(&self) -> Vec<&'static str> {
        let set = FLAGS.iter().filter(|(flag, _)| self.flags.contains(*flag));
        set.map(|(_, word)| *word).collect()
    }
}

impl Text for Queue {
    const WORDS: &'static [&'static str] = &["queue"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        let mut queue = Self {
            numbers: None,
            flags: QueueFlags::empty(),
        };
        if parser.eat("flags") {
            queue.flags = flags(parser)?;
        }
        if parser.eat("num") || parser.eat("to") {
            queue.numbers = Some(parser.any()?);
        }
        if queue.flags.is_empty() && FLAGS.iter().any(|(_, word)| parser.at(word)) {
            queue.flags = flags(parser)?;
        }
        Ok(queue)
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("queue")?;
        if !self.flags.is_empty() {
            write!(printer.out, " flags {}", self.words().join(","))?;
        }
        match &self.numbers {
            Some(numbers) => {
                printer.out.write_str(" to ")?;
                printer.expr(numbers)
            }
            None => Ok(()),
        }
    }
}

impl Linearize for Queue {
    const ENDS_RULE: bool = true;

    fn operands(&self) -> Vec<&Expr> {
        self.numbers.iter().collect()
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let expected_type = ExpectedType {
            data_type: DataType::INTEGER,
            bits: 16,
            order: ByteOrder::Host,
        };
        let queue = match &self.numbers {
            None => expr::Queue::spread(0, 1),
            Some(numbers) if numbers.is_constant() => {
                let number = |value: &Value| value.number as u16; // of 16 bits
                match rule.compiler.constant(numbers, expected_type)? {
                    Expr::Value(value) => expr::Queue::to(number(&value)),
                    Expr::Range(from, to) => match (&*from, &*to) {
                        (Expr::Value(from), Expr::Value(to)) => {
                            let (first, last) = (number(from), number(to));
                            let total = (last - first).saturating_add(1);
                            expr::Queue::spread(first, total)
                        }
                        _ => return Err(rule.error("expected a range of queues")),
                    },
                    _ => return Err(rule.error("expected a queue number")),
                }
            }
            Some(numbers) => {
                let mut expected_type = ExpectedType {
                    bits: 32,
                    ..expected_type
                };
                if let Expr::Map(_, map) = numbers
                    && let Expr::Reference(name) = &**map
                    && let Data::Values { fields, .. } = rule.data_of(name)?
                    && let [number] = fields[..]
                {
                    expected_type.bits = number.bits.min(32);
                }
                rule.put(numbers, &[expected_type], 0)?;
                expr::Queue::register(Register::R1)
            }
        };
        let queue = match self.flags.is_empty() {
            true => queue,
            false => queue.with_flags(self.flags),
        };
        rule.push(&queue);
        Ok(())
    }
}

impl Delinearize<expr::Queue> for Queue {
    fn delinearize(queue: &expr::Queue, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let numbers = match (queue.sreg_qnum, queue.num) {
            (Some(register), _) => reader.typed(register, DataType::INTEGER)?,
            (None, first) => {
                let first = first.unwrap_or_default();
                let number = |number: u16| Value {
                    data_type: DataType::INTEGER,
                    bits: 16,
                    number: number.into(),
                };
                let last = first.checked_add(queue.total.unwrap_or(1).max(1) - 1)?;
                match first == last {
                    true => Expr::Value(number(first)),
                    false => range(number(first), number(last)),
                }
            }
        };
        Some(Self {
            numbers: Some(numbers),
            flags: queue.flags.unwrap_or_default(),
        })
    }
}

#[cfg(feature = "json")]
impl Json for Queue {
    fn read(reader: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let mut queue = Self {
            numbers: None,
            flags: QueueFlags::empty(),
        };
        if !node.is_null() {
            let fields = Fields::new(node, "a queue", &["num", "flags"])?;
            queue.numbers = reader.optional(&fields, "num")?;
            for word in fields.words("flags", "queue flag", &FLAGS.map(|(_, word)| word))? {
                queue.flags |= flag(word);
            }
        }
        Ok(queue)
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let numbers = self.numbers.as_ref().map(|numbers| writer.expr(numbers));
        let record = Record::new().optional("num", numbers);
        record
            .optional("flags", writer.flags(self.words()))
            .or_null()
    }
}
