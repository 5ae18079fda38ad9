//! Rules as lists of conditions and statements, for programs that describe rules in other words.

use std::fmt;

use super::list::Options;
use super::parse::{Error, NoIncludes, Object, Source, parse};
use super::print::Printer;
use super::read::rule;
use super::syntax::{Element, Expr, ListedRule, Operator, Relation, Statement};
use chainwright::nft::{Family, RuleRef, SnapshotTable};

/// A rule as a list of its conditions and statements, in their order, with nft's words.
///
/// ```
/// use chainwright::nft::Family;
/// use chainwright_lang::{MatchValue, RulePart, RuleParts};
///
/// let rule = RuleParts::parse(Family::IP, "ip saddr 10.0.0.0/8 counter accept")?;
/// let RulePart::Match { fields, value, .. } = &rule.parts[0] else { panic!() };
/// assert_eq!(fields[0].name, "ip saddr");
/// assert_eq!(*value, MatchValue::Prefix("10.0.0.0/8".into()));
/// assert_eq!(rule.parts[2].words(), "accept");
/// # Ok::<(), chainwright_lang::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleParts {
    /// The conditions and statements.
    pub parts: Vec<RulePart>,
    /// The comment.
    pub comment: Option<String>,
}

/// A condition or a statement of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RulePart {
    /// Compares fields of the packet with a value. Several fields are a concatenation.
    #[non_exhaustive]
    Match {
        /// The fields.
        fields: Vec<MatchField>,
        /// The operator: `""`, `==`, `!=`, `<`, `<=`, `>`, `>=` or `!`.
        relation: &'static str,
        /// The value.
        value: MatchValue,
        /// Whether the values are sets of flags: without an operator, any of the flags matches.
        is_flags: bool,
        /// The condition in nft's language.
        words: String,
    },
    /// Looks up a verdict.
    #[non_exhaustive]
    VerdictMap {
        /// The fields of the key.
        fields: Vec<MatchField>,
        /// The map.
        map: MatchValue,
        /// The statement in nft's language.
        words: String,
    },
    /// Another statement.
    #[non_exhaustive]
    Statement {
        /// The header fields that it reads or sets. Packets without them do not reach it.
        fields: Vec<String>,
        /// How it can end the rule, besides by a verdict.
        end: RuleEnd,
        /// The statement in nft's language.
        words: String,
    },
    /// An expression without a form in nft's language, as bytecode.
    Bytecode(String),
}

/// How a statement can end the rule, so that the statements after it do not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleEnd {
    /// It does not.
    Never,
    /// It is a condition: a limit, or a match of iptables.
    Condition,
    /// It looks up a value: it ends the rule if the map has no entry.
    NoEntry,
    /// It ends the rule if it fails, for instance because a set is full, or the packet has no connection.
    Failure,
}

/// A field that a rule compares.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchField {
    /// The name, such as `ip saddr`.
    pub name: String,
    /// The mask, if the rule only compares some bits.
    pub mask: Option<String>,
}

/// A value that a rule compares with fields.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchValue {
    /// A value.
    One(String),
    /// All values with this prefix: `10.0.0.0/8`.
    Prefix(String),
    /// All values from the first to the last one.
    Range(String, String),
    /// All names that begin with this text, without quotation marks and asterisk.
    Beginning(String),
    /// Flags: it matches if one of them is set.
    Flags(Vec<String>),
    /// Flags under a mask: of the flags in the second list, those in the first one are set, and no other.
    Masked(String, String),
    /// The value of several fields.
    Fields(Vec<MatchValue>),
    /// An anonymous set; in a map, with the data of each value. The value of the catch-all element is `*`.
    Set(Vec<(MatchValue, Option<String>)>),
    /// A named set or map, by its name.
    Named(String),
    /// Another expression, in nft's language.
    Other(String),
}

impl RulePart {
    /// Returns the part in nft's language.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Match { words, .. }
            | Self::VerdictMap { words, .. }
            | Self::Statement { words, .. }
            | Self::Bytecode(words) => words,
        }
    }
}

impl RuleParts {
    /// Reads a rule.
    #[must_use]
    pub fn read(table: &SnapshotTable<'_>, rule: &RuleRef<'_>, options: &Options) -> Self {
        let ListedRule {
            statements,
            comment,
            ..
        } = rule::rule(table, rule, options.nft_version);
        Self {
            parts: statements.iter().map(|one| part(one, options)).collect(),
            comment: comment.map(|comment| comment.to_string()),
        }
    }

    /// Parses a rule, without the state of its statements. It is not compiled: its constants and names may be unknown.
    ///
    /// # Errors
    /// The text is not one rule.
    pub fn parse(family: Family, text: &str) -> Result<Self, Error> {
        let line = format!("add rule {family} t c {text}");
        let (commands, sources) = parse(Source::new("rule", line.as_bytes()), &NoIncludes)?;
        if let [command] = &commands[..]
            && let Object::Rule(rule) = &command.object
        {
            let mut options = Options::default();
            options.stateless = true;
            let statements = rule.statements.iter();
            return Ok(Self {
                parts: statements.map(|(one, _)| part(one, &options)).collect(),
                comment: rule.comment.clone(),
            });
        }
        let span = commands
            .get(1)
            .map(|command| command.span)
            .unwrap_or_default();
        Err(sources.explain(super::parse::Diagnostic::new(span, "expected one rule")))
    }
}

/// Formats with the printer; without indentation.
fn printed(
    options: &Options,
    print: impl FnOnce(&mut Printer<'_, &mut String>) -> fmt::Result,
) -> String {
    let mut text = String::new();
    let mut printer = Printer::new(&mut text, options);
    printer.in_line = true;
    // Writing to a string does not fail.
    let _ = print(&mut printer);
    text
}

fn words(expr: &Expr, options: &Options) -> String {
    printed(options, |printer| printer.expr(expr))
}

fn part(statement: &Statement, options: &Options) -> RulePart {
    let text = printed(options, |printer| statement.print(printer));
    match statement {
        Statement::Match {
            left,
            relation,
            right,
        } => {
            let left_words = words(left, options);
            let behind = text.strip_prefix(&left_words).map(str::trim_start);
            let behind = behind.and_then(|rest| rest.strip_prefix(relation.sign()));
            RulePart::Match {
                fields: fields(left, options),
                relation: relation.sign(),
                value: match (right, behind) {
                    (Expr::Symbol(symbol), _) if beginning(&symbol.text).is_some() => {
                        value(right, options)
                    }
                    // Its form depends on the left side.
                    (Expr::Value(_) | Expr::Symbol(_), Some(value)) => {
                        MatchValue::One(value.trim_start().to_owned())
                    }
                    _ => value(right, options),
                },
                is_flags: left.is_bitmask()
                    && matches!(relation, Relation::Implicit | Relation::None),
                words: text,
            }
        }
        Statement::VerdictMap(key, map) => RulePart::VerdictMap {
            fields: fields(key, options),
            map: value(map, options),
            words: text,
        },
        Statement::Opaque(_) => RulePart::Bytecode(text),
        _ => {
            let mut fields = Vec::new();
            let operands = statement.operands().into_iter();
            operands.for_each(|operand| add_header_fields(operand, &mut fields, options));
            RulePart::Statement {
                fields,
                end: statement.rule_end(),
                words: text,
            }
        }
    }
}

/// Adds the names of the header fields that an expression reads.
fn add_header_fields(expr: &Expr, names: &mut Vec<String>, options: &Options) {
    match expr {
        Expr::Payload(_) | Expr::Option(_) => names.push(words(expr, options)),
        Expr::Binary(_, left, right) => {
            add_header_fields(left, names, options);
            add_header_fields(right, names, options);
        }
        Expr::Concat(parts) => parts
            .iter()
            .for_each(|part| add_header_fields(part, names, options)),
        Expr::Hash { key: Some(key), .. } | Expr::Map(key, _) => {
            add_header_fields(key, names, options);
        }
        _ => {}
    }
}

fn fields(left: &Expr, options: &Options) -> Vec<MatchField> {
    let field = |one: &Expr| match one {
        Expr::Binary(Operator::And, of, mask)
            if mask.is_constant() && !matches!(**of, Expr::Binary(..)) =>
        {
            MatchField {
                name: words(of, options),
                mask: Some(words(mask, options)),
            }
        }
        other => MatchField {
            name: words(other, options),
            mask: None,
        },
    };
    match left {
        Expr::Concat(parts) => parts.iter().map(field).collect(),
        one => vec![field(one)],
    }
}

fn value(right: &Expr, options: &Options) -> MatchValue {
    let all = |exprs: &[Expr]| exprs.iter().map(|one| value(one, options)).collect();
    match right {
        Expr::Symbol(symbol) if beginning(&symbol.text).is_some() => {
            MatchValue::Beginning(beginning(&symbol.text).unwrap_or_default().to_owned())
        }
        Expr::Value(_) | Expr::Symbol(_) => MatchValue::One(words(right, options)),
        Expr::Prefix(..) => MatchValue::Prefix(words(right, options)),
        Expr::Range(from, to) => {
            let text = words(right, options);
            match text.split_once('-') {
                // Bounds without a dash of their own.
                Some((first, last)) if !last.contains('-') => {
                    MatchValue::Range(first.trim().into(), last.into())
                }
                _ => MatchValue::Range(words(from, options), words(to, options)),
            }
        }
        Expr::Beginning(..) => {
            let text = words(right, options);
            let text = text
                .strip_prefix('"')
                .and_then(|text| text.strip_suffix("*\""));
            MatchValue::Beginning(text.unwrap_or_default().to_owned())
        }
        Expr::Flags(flags) => {
            MatchValue::Flags(flags.iter().map(|flag| words(flag, options)).collect())
        }
        Expr::Masked(flags, of) => MatchValue::Masked(words(flags, options), words(of, options)),
        Expr::Concat(parts) => MatchValue::Fields(all(parts)),
        Expr::Reference(name) => MatchValue::Named(name.clone()),
        Expr::Set(elements) if elements.iter().all(is_plain) => {
            let elements = elements.iter().map(|element| {
                let key = element.key.as_ref();
                let key =
                    key.map_or_else(|| MatchValue::One("*".into()), |key| value(key, options));
                (key, element.data.as_ref().map(|data| words(data, options)))
            });
            MatchValue::Set(elements.collect())
        }
        // Flags: `syn | ack`.
        Expr::Binary(..) if right.is_constant() => MatchValue::One(words(right, options)),
        other => MatchValue::Other(words(other, options)),
    }
}

/// Returns the text before the asterisk that stands for any end of a name.
fn beginning(text: &str) -> Option<&str> {
    text.strip_suffix('*').filter(|text| !text.ends_with('\\'))
}

/// Returns `true` if an element has nothing but a key and data.
fn is_plain(element: &Element) -> bool {
    element.statements.is_empty()
        && (element.timeout, element.expires, &element.comment) == (None, None, &None)
}
