//! `log`: writes the packet to the kernel's log, or sends it to a group of nflog.

use super::prelude::*;
use crate::constant::{Quoted, quotable};
use chainwright::nft::expr::{LogFlags, LogLevel};

clauses! {
    struct Log, "a log" {
        prefix: Option<String> = "prefix", Prefix;
        group: Option<u16> = "group", Number::new("a group number");
        snaplen: Option<u32> = "snaplen", Number::new("a length");
        queue_threshold: Option<u16> = "queue-threshold", Number::new("a number of packets");
        level: Option<LogLevel> = "level", Level;
        flags: LogFlags = "flags", Flags;
    }
}

/// Names of the flags.
const FLAGS: [(LogFlags, &str); 5] = [
    (LogFlags::TCPSEQ, "tcp sequence"),
    (LogFlags::TCPOPT, "tcp options"),
    (LogFlags::IPOPT, "ip options"),
    (LogFlags::UID, "skuid"),
    (LogFlags::MACDECODE, "ether"),
];

/// Returns the levels with their names.
fn levels() -> impl Iterator<Item = (LogLevel, &'static str)> {
    let levels = (LogLevel::EMERG.0..=LogLevel::AUDIT.0).map(LogLevel);
    levels.filter_map(|level| Some((level, level.name()?)))
}

struct Prefix;

impl Clause<Option<String>> for Prefix {
    /// Parses the prefix and substitutes variables (`$name`) in it.
    fn parse(
        &self,
        _: &str,
        value: &mut Option<String>,
        parser: &mut Parser<'_>,
    ) -> Result<bool, Diagnostic> {
        if parser.at_sign("$") {
            let prefix = parser.constant("a log prefix")?.text.into();
            return Ok(value.replace(prefix).is_some());
        }
        let span = parser.current.span;
        let text = parser.string("a log prefix")?;
        let mut prefix = String::new();
        let mut left = text.as_str();
        while let Some(at) = left.find('$') {
            prefix.push_str(&left[..at]);
            left = &left[at + 1..];
            let end = left
                .bytes()
                .position(|b| !(b.is_ascii_alphanumeric() || b == b'_'))
                .unwrap_or(left.len());
            if end == 0 {
                prefix.push('$');
                continue;
            }
            match parser.variables.value(&left[..end], span)? {
                Expr::Symbol(symbol) => prefix.push_str(&symbol.text),
                _ => {
                    let message = format!("${} is not a single word", shown(&left[..end]));
                    return Err(Diagnostic::new(span, message));
                }
            }
            left = &left[end..];
        }
        prefix.push_str(left);
        Ok(value.replace(prefix).is_some())
    }

    fn text(&self, key: &str, value: &Option<String>, _: &Options) -> Option<String> {
        let prefix = value.as_deref()?;
        Some(format!("{key} {}", Quoted(prefix.into())))
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<Option<String>, Diagnostic> {
        let prefix = fields.get(key).map(|node| node.lossless_text("a prefix"));
        Ok(prefix.transpose()?.map(str::to_owned))
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &Option<String>, _: Writer<'_>) -> Option<Expression<'static>> {
        value.clone().map(Into::into)
    }
}

struct Level;

impl Level {
    fn named(word: &str) -> Option<LogLevel> {
        let word = if word == "warning" { "warn" } else { word };
        let found = levels().find(|(_, name)| *name == word);
        found.map(|(level, _)| level)
    }

    /// Returns a level that is not the default.
    fn unusual(level: Option<LogLevel>) -> Option<LogLevel> {
        level.filter(|level| *level != LogLevel::WARNING)
    }

    fn names() -> impl Iterator<Item = &'static str> {
        levels().map(|(_, name)| name)
    }
}

impl Clause<Option<LogLevel>> for Level {
    fn parse(
        &self,
        _: &str,
        value: &mut Option<LogLevel>,
        parser: &mut Parser<'_>,
    ) -> Result<bool, Diagnostic> {
        let level = Self::named(parser.word()).filter(|_| parser.is_word());
        let level = level.ok_or_else(|| parser.unknown("log level", Self::names()))?;
        parser.advance();
        Ok(value.replace(level).is_some())
    }

    fn text(&self, key: &str, value: &Option<LogLevel>, _: &Options) -> Option<String> {
        let level = Self::unusual(*value)?;
        Some(match level.name() {
            Some(name) => format!("{key} {name}"),
            None => format!("{key} {}", level.0),
        })
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<Option<LogLevel>, Diagnostic> {
        let Some(node) = fields.get(key) else {
            return Ok(None);
        };
        let level = match &node.kind {
            Kind::Text(word) => Self::named(word),
            Kind::Number(number) => u32::try_from(*number).ok().map(LogLevel),
            _ => None,
        };
        level
            .map(Some)
            .ok_or_else(|| node.unknown("log level", Self::names()))
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &Option<LogLevel>, _: Writer<'_>) -> Option<Expression<'static>> {
        let level = Self::unusual(*value)?;
        let name = level.name().map(Expression::word);
        Some(name.unwrap_or_else(|| level.0.into()))
    }
}

struct Flags;

impl Flags {
    /// Returns the names of the flags that are set.
    fn names(flags: LogFlags) -> Vec<&'static str> {
        if flags.contains(LogFlags::all_named()) {
            return vec!["all"];
        }
        let names = FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
        names.map(|(_, name)| *name).collect()
    }
}

impl Clause<LogFlags> for Flags {
    fn parse(
        &self,
        _: &str,
        value: &mut LogFlags,
        parser: &mut Parser<'_>,
    ) -> Result<bool, Diagnostic> {
        *value |= match parser.one_of(&["all", "tcp", "ip", "skuid", "ether"])? {
            "all" => LogFlags::all_named(),
            "tcp" => {
                let mut flags = LogFlags::empty();
                loop {
                    flags |= match parser.one_of(&["sequence", "options"])? {
                        "sequence" => LogFlags::TCPSEQ,
                        _ => LogFlags::TCPOPT,
                    };
                    if !parser.eat_sign(",") {
                        break flags;
                    }
                }
            }
            "ip" => {
                parser.expect("options")?;
                LogFlags::IPOPT
            }
            "skuid" => LogFlags::UID,
            _ => LogFlags::MACDECODE,
        };
        Ok(false)
    }

    fn text(&self, key: &str, value: &LogFlags, _: &Options) -> Option<String> {
        let mut names = Self::names(*value);
        if let ["tcp sequence", "tcp options", ..] = names[..] {
            names.splice(..2, ["tcp sequence,options"]);
        }
        let texts: Vec<_> = names.iter().map(|name| format!("{key} {name}")).collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<LogFlags, Diagnostic> {
        let names = FLAGS.iter().map(|(_, name)| *name);
        let known: Vec<&str> = ["all"].into_iter().chain(names).collect();
        let mut flags = LogFlags::empty();
        for word in fields.words(key, "log flag", &known)? {
            let found = FLAGS.iter().find(|(_, name)| *name == word);
            flags |= found.map_or(LogFlags::all_named(), |(flag, _)| *flag);
        }
        Ok(flags)
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &LogFlags, writer: Writer<'_>) -> Option<Expression<'static>> {
        writer.flags(Self::names(*value))
    }
}

impl Text for Log {
    const WORDS: &'static [&'static str] = &["log"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        Self::parse_all(parser, |start, word| {
            Some(Diagnostic::new(start, format!("duplicate `{word}`")))
        })
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("log")?;
        self.print_all(printer)
    }
}

impl Linearize for Log {
    /// Levels are for the kernel's log, options other than prefix and flags for nflog groups.
    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        if self.level.is_some() {
            let is_of_group =
                self.group.is_some() || self.snaplen.is_some() || self.queue_threshold.is_some();
            if is_of_group {
                return Err(rule.error(
                    "a log statement has either a level, or a group with a length and a threshold",
                ));
            }
            let is_marked = self.prefix.is_some() || !self.flags.is_empty();
            if self.level == Some(LogLevel::AUDIT) && is_marked {
                return Err(rule.error("log level audit allows no prefix and no flags"));
            }
        }
        rule.push(&expr::Log {
            prefix: self.prefix.clone().map(Into::into),
            group: self.group,
            snaplen: self.snaplen,
            queue_threshold: self.queue_threshold,
            level: self.level,
            flags: (!self.flags.is_empty()).then_some(self.flags),
            ..expr::Log::default()
        });
        Ok(())
    }
}

impl Delinearize<expr::Log<'_>> for Log {
    fn delinearize(log: &expr::Log<'_>, _: &mut Reader<'_, '_>) -> Option<Self> {
        Some(Self {
            prefix: match log.prefix.as_deref() {
                Some(prefix) => Some(quotable(prefix)?.to_owned()),
                None => None,
            },
            group: log.group,
            snaplen: log.snaplen,
            queue_threshold: log.queue_threshold,
            level: log.level,
            flags: log.flags.unwrap_or_default(),
        })
    }
}
