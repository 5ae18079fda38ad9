//! Statements, and the stateful objects that they refer to: one file each, named as in nft's language.
//!
//! A file has the statement's node in the syntax tree and everything that depends on it:
//!
//! | trait | purpose |
//! |---|---|
//! | [`Text`] | parses and prints the statement |
//! | [`Json`] | reads and writes it as libnftables' JSON |
//! | [`Linearize`], [`Delinearize`] | compiles it to the kernel's expressions, and back |
//! | [`Stateful`] | the same, for a statement that is one expression and that set elements may also have |
//! | [`Object`], [`ObjectJson`] | the same for the named object: its declaration, its listing, its JSON |
//!
//! If a statement or an object consists of words with values, [`clauses`] declares them once for text and JSON.

pub(crate) mod clauses;
mod ct;
mod destination;
mod expression;
mod object;
mod prelude;
mod units;

use std::fmt::{self, Write};

use crate::compile::rule_builder::RuleBuilder;
#[cfg(feature = "json")]
use crate::json::{Expression, JsonReader, Key, Node, Writer, is_object};
use crate::parse::Diagnostic;
use crate::parse::parser::Parser;
use crate::parts::RuleEnd;
use crate::print::Printer;
use crate::read::rule::Reader;
use crate::syntax::{Expr, Relation, Verdict};
use chainwright::nft::expr::{Decoded, ObjectType};
use chainwright::nft::stateful::{CtHelper, Secmark, TunnelObject};

pub(crate) use expression::end_by_operands;
#[cfg(feature = "json")]
pub(crate) use object::ObjectJson;
pub(crate) use object::{
    Declaration, Object, ObjectKind, assigned, object_name, parse_reference, reference,
};

/// Text of a statement.
pub(crate) trait Text: Sized {
    /// Words that begin the statement: `counter`, `ct count`. The first one names it.
    const WORDS: &'static [&'static str];
    /// Type of the objects that may replace its values: `counter name "x"`.
    const OBJECT: Option<ObjectType> = None;

    /// Parses the statement after its first word, one of [`WORDS`](Self::WORDS).
    fn parse(parser: &mut Parser<'_>, word: &str) -> Result<Self, Diagnostic> {
        Err(parser.unexpected([word]))
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result;
}

/// JSON of a statement.
#[cfg(feature = "json")]
pub(crate) trait Json: Text {
    /// Keys of the statement.
    const KEYS: &'static [&'static str] = Self::WORDS;

    /// Returns the key of this statement.
    fn key(&self) -> &'static str {
        Self::KEYS[0]
    }

    /// Reads a statement whose JSON is only its key, without a value, as the crate `nftables` writes it.
    fn of_word() -> Option<Self> {
        None
    }

    /// Reads the value of this key.
    fn read(reader: JsonReader, key: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic>;

    /// Writes the value of the key.
    fn json(&self, writer: Writer<'_>) -> Expression<'_>;
}

/// Statement that consists of one expression, which set elements may also have.
pub(crate) trait Stateful: Text {
    /// The kernel's expression.
    type Expression;
    /// Whether it ends the rule for some packets.
    const IS_CONDITION: bool = false;

    fn expression(&self) -> Self::Expression;

    /// Reads an expression; `None` if nft's language cannot represent it.
    fn of_expression(expression: &Self::Expression) -> Option<Self>;
}

/// Compiles a statement.
pub(crate) trait Linearize: Text {
    /// Whether no statement may follow.
    const ENDS_RULE: bool = false;

    /// Returns the expressions whose values the statement uses.
    fn operands(&self) -> Vec<&Expr> {
        Vec::new()
    }

    /// Returns how the statement can end the rule, besides by a verdict.
    fn rule_end(&self) -> RuleEnd {
        end_by_operands(&self.operands())
    }

    /// Adds the matches that the statement depends on.
    fn add_dependencies(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        rule.add_dependencies(self.operands())
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic>;
}

/// Reads a statement from an expression of the kernel.
pub(crate) trait Delinearize<E>: Linearize {
    /// Reads an expression; `None` if nft's language cannot represent it or its operands.
    fn delinearize(expression: &E, reader: &mut Reader<'_, '_>) -> Option<Self>;
}

/// Parses the statement that the current word begins, if it is one of this kind.
fn parse<S: Text>(
    parser: &mut Parser<'_>,
    statement: fn(S) -> Statement,
) -> Result<Option<Statement>, Diagnostic> {
    let Some(word) = parser.eat_keyword(S::WORDS) else {
        return Ok(None);
    };
    match S::OBJECT {
        Some(object_type) if parser.eat("name") => parser.object_for(object_type).map(Some),
        _ => S::parse(parser, word).map(|node| Some(statement(node))),
    }
}

/// Reads the value of a key of JSON, if it is a statement of this kind.
#[cfg(feature = "json")]
fn read<S: Json>(
    reader: JsonReader,
    key: &Key<'_>,
    node: &Node<'_>,
    statement: fn(S) -> Statement,
) -> Result<Option<Statement>, Diagnostic> {
    if !S::KEYS.contains(&&*key.text) {
        return Ok(None);
    }
    match S::OBJECT {
        Some(object_type) if is_object(node) => {
            let object = reader.expr(node)?;
            Ok(Some(Statement::Object(object_type, object)))
        }
        _ => S::read(reader, key, node).map(|node| Some(statement(node))),
    }
}

/// Declares the statements and objects: one line for each file. (`cargo fmt` does not find modules that a macro declares:
/// run `rustfmt crates/lang/src/statements/*.rs`.)
///
/// `stateful` and `statement` name a node, and in parentheses the expressions of the kernel that it is read from.
macro_rules! registry {
    ($(
        $module:ident:
        $( stateful $State:ident($StateExpression:ident) )?
        $( statement $Statement:ident($($Expression:ident),*) )?
        $( object $Object:ty )?;
    )*) => {
        $(pub(crate) mod $module;)*

        /// Statement of a rule.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum Statement {
            $(
                $($State($module::$State),)?
                $($Statement($module::$Statement),)?
            )*
            Match {
                left: Expr,
                relation: Relation,
                right: Expr,
            },
            /// Issues a verdict.
            Verdict(Expr),
            VerdictMap(Expr, Expr),
            /// Refers to a stateful object of this type.
            Object(ObjectType, Expr),
            /// Expression that nft's language cannot represent, as bytecode.
            Opaque(String),
        }

        /// Words that begin statements.
        const WORDS: &[&[&str]] = &[$(
            $(<$module::$State as Text>::WORDS,)?
            $(<$module::$Statement as Text>::WORDS,)?
        )*];

        /// Keys of statements in JSON.
        #[cfg(feature = "json")]
        const KEYS: &[&[&str]] = &[$(
            $(<$module::$State as Json>::KEYS,)?
            $(<$module::$Statement as Json>::KEYS,)?
        )*];

        const STATEFUL_WORDS: &[&[&str]] = &[$($(<$module::$State as Text>::WORDS,)?)*];

        /// The types of objects that a statement may name, and the statement's words.
        const NAMED: &[(Option<ObjectType>, &[&str])] = &[$(
            $((<$module::$State as Text>::OBJECT, <$module::$State as Text>::WORDS),)?
            $((<$module::$Statement as Text>::OBJECT, <$module::$Statement as Text>::WORDS),)?
        )*];

        /// The kinds of objects.
        pub(crate) const OBJECTS: &[ObjectKind] = &[$($(ObjectKind::of::<$Object>(),)?)*];

        impl Statement {
            /// Parses a statement that set elements may also have, if there is one.
            pub(crate) fn parse_stateful(
                parser: &mut Parser<'_>,
            ) -> Result<Option<Self>, Diagnostic> {
                $($(
                    if let Some(statement) = parse(parser, Self::$State)? {
                        return Ok(Some(statement));
                    }
                )?)*
                Ok(None)
            }

            /// Parses a statement that begins with its name, if there is one.
            pub(crate) fn parse(parser: &mut Parser<'_>) -> Result<Option<Self>, Diagnostic> {
                $($(
                    if let Some(statement) = parse(parser, Self::$Statement)? {
                        return Ok(Some(statement));
                    }
                )?)*
                Ok(None)
            }

            pub(crate) fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
                match self {
                    $(
                        $(Self::$State(node) => node.print(printer),)?
                        $(Self::$Statement(node) => node.print(printer),)?
                    )*
                    other => other.print_expression(printer),
                }
            }

            /// Returns the expressions whose values the statement uses.
            pub(crate) fn operands(&self) -> Vec<&Expr> {
                match self {
                    $($(Self::$Statement(node) => node.operands(),)?)*
                    other => other.operands_of_expression(),
                }
            }

            /// Returns `true` if no statement may follow.
            pub(crate) fn ends_rule(&self) -> bool {
                match self {
                    $($(Self::$Statement(_) => <$module::$Statement as Linearize>::ENDS_RULE,)?)*
                    Self::Verdict(Expr::Verdict(verdict)) => *verdict != Verdict::Continue,
                    _ => false,
                }
            }

            /// Returns how the statement can end the rule, besides by a verdict.
            pub(crate) fn rule_end(&self) -> RuleEnd {
                match self {
                    $(
                        $(Self::$State(_) if <$module::$State as Stateful>::IS_CONDITION => {
                            RuleEnd::Condition
                        })?
                        $(Self::$Statement(node) => node.rule_end(),)?
                    )*
                    other => other.rule_end_of_expression(),
                }
            }

            pub(crate) fn add_dependencies(
                &self,
                rule: &mut RuleBuilder<'_, '_>,
            ) -> Result<(), Diagnostic> {
                match self {
                    $($(Self::$Statement(node) => node.add_dependencies(rule),)?)*
                    other => rule.add_dependencies(other.operands()),
                }
            }

            /// Compiles a statement that is not stateful.
            pub(crate) fn linearize(
                &self,
                rule: &mut RuleBuilder<'_, '_>,
            ) -> Result<(), Diagnostic> {
                match self {
                    $($(Self::$Statement(node) => node.linearize(rule),)?)*
                    other => other.linearize_expression(rule),
                }
            }

            /// Returns the expression of a stateful statement; `None` for any other statement.
            pub(crate) fn expression(&self) -> Option<Decoded<'static>> {
                match self {
                    $($(Self::$State(node) => Some(Decoded::$StateExpression(node.expression())),)?)*
                    _ => None,
                }
            }

            /// Reads a stateful expression; `None` if nft's language cannot represent it.
            pub(crate) fn of_expression(expression: &Decoded<'_>) -> Option<Self> {
                expression.unknown().is_empty().then_some(())?;
                match expression {
                    $($(
                        Decoded::$StateExpression(expression) => {
                            Stateful::of_expression(expression).map(Self::$State)
                        }
                    )?)*
                    _ => None,
                }
            }

            /// Reads an expression; `None` if nft's language cannot represent it or its operands.
            pub(crate) fn delinearize(
                expression: &Decoded<'_>,
                reader: &mut Reader<'_, '_>,
            ) -> Option<Self> {
                match expression {
                    $($($(
                        Decoded::$Expression(expression) => {
                            Delinearize::delinearize(expression, reader).map(Self::$Statement)
                        }
                    )*)?)*
                    stateful => Self::of_expression(stateful),
                }
            }

            /// Reads a statement of JSON that set elements may also have, if the key is one.
            #[cfg(feature = "json")]
            pub(crate) fn read_stateful(
                reader: JsonReader,
                key: &Key<'_>,
                node: &Node<'_>,
            ) -> Result<Option<Self>, Diagnostic> {
                $($(
                    if let Some(statement) = read(reader, key, node, Self::$State)? {
                        return Ok(Some(statement));
                    }
                )?)*
                Ok(None)
            }

            /// Reads a statement of JSON, if the key is one.
            #[cfg(feature = "json")]
            pub(crate) fn read(
                reader: JsonReader,
                key: &Key<'_>,
                node: &Node<'_>,
            ) -> Result<Option<Self>, Diagnostic> {
                $($(
                    if let Some(statement) = read(reader, key, node, Self::$Statement)? {
                        return Ok(Some(statement));
                    }
                )?)*
                Ok(None)
            }

            /// Reads a statement of JSON that is only its key.
            #[cfg(feature = "json")]
            pub(crate) fn of_word(word: &str) -> Option<Self> {
                match word {
                    $($(
                        word if <$module::$Statement as Json>::KEYS.contains(&word) => {
                            Json::of_word().map(Self::$Statement)
                        }
                    )?)*
                    _ => None,
                }
            }

            /// Writes the statement as JSON.
            #[cfg(feature = "json")]
            pub(crate) fn json(&self, writer: Writer<'_>) -> Expression<'_> {
                match self {
                    $(
                        $(Self::$State(node) => Expression::tagged(node.key(), node.json(writer)),)?
                        $(Self::$Statement(node) => Expression::tagged(node.key(), node.json(writer)),)?
                    )*
                    other => other.expression_json(writer),
                }
            }

            /// Returns the key and the value of a stateful statement in JSON.
            #[cfg(feature = "json")]
            pub(crate) fn state(&self, writer: Writer<'_>) -> Option<(&'static str, Expression<'_>)> {
                match self {
                    $($(Self::$State(node) => Some((node.key(), node.json(writer))),)?)*
                    _ => None,
                }
            }
        }
    };
}

registry! {
    counter: stateful Counter(Counter) object counter::Counter;
    quota: stateful Quota(Quota) object Option<quota::Quota>;
    limit: stateful Limit(Limit) object Option<limit::Limit>;
    last: stateful Last(Last);
    ct_count: stateful CtCount(Connlimit);
    log: statement Log(Log);
    reject: statement Reject(Reject);
    nat: statement Nat(Nat, Masq, Redir);
    tproxy: statement Tproxy(Tproxy);
    queue: statement Queue(Queue);
    notrack: statement Notrack(Notrack);
    flow: statement Flow(FlowOffload);
    ct_helper: object CtHelper<'static>;
    ct_timeout: object ct_timeout::CtTimeout;
    ct_expectation: object ct_expectation::CtExpectation;
    secmark: object Secmark<'static>;
    synproxy: statement Synproxy(Synproxy) object synproxy::Synproxy;
    dup: statement Dup(Dup);
    fwd: statement Fwd(Fwd);
    mangle: statement Mangle();
    update: statement Update();
    meter: statement Meter();
    reset: statement Reset();
    xt: statement Xt(Match, Target);
    tunnel: object TunnelObject<'static>;
}

/// Returns the words of statements that begin with their name.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().copied().flatten().copied()
}

/// Returns the words of stateful statements, which are their keys in JSON, too.
pub(crate) fn stateful_words() -> impl Iterator<Item = &'static str> {
    STATEFUL_WORDS.iter().copied().flatten().copied()
}

/// Returns the keys of statements in JSON, and of objects that only an assignment refers to.
#[cfg(feature = "json")]
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    let keys = || KEYS.iter().copied().flatten().copied();
    let objects = OBJECTS.iter().map(|kind| kind.name);
    keys().chain(objects.filter(move |name| !keys().any(|key| key == *name)))
}
