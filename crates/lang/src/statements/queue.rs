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

const FLAGS: Flags<QueueFlags> = Flags {
    what: "queue flag",
    names: &[
        (QueueFlags::BYPASS, "bypass"),
        (QueueFlags::CPU_FANOUT, "fanout"),
    ],
};

impl Text for Queue {
    const WORDS: &'static [&'static str] = &["queue"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        let mut queue = Self {
            numbers: None,
            flags: QueueFlags::empty(),
        };
        if parser.eat("flags") {
            queue.flags = FLAGS.parse_list(parser)?;
        }
        if parser.eat("num") || parser.eat("to") {
            queue.numbers = Some(parser.any()?);
        }
        if queue.flags.is_empty() && parser.at_any(&FLAGS.all_words()).is_some() {
            queue.flags = FLAGS.parse_list(parser)?;
        }
        Ok(queue)
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("queue")?;
        if !self.flags.is_empty() {
            let words: Vec<_> = FLAGS.set(self.flags).collect();
            write!(printer.out, " flags {}", words.join(","))?;
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
            queue.flags = FLAGS.read("flags", &fields)?;
        }
        Ok(queue)
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let numbers = self.numbers.as_ref().map(|numbers| writer.expr(numbers));
        let record = Record::new().optional("num", numbers);
        record
            .optional("flags", writer.flags(FLAGS.set(self.flags).collect()))
            .or_null()
    }
}
