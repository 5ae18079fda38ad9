//! Writes tables and their objects.

use std::borrow::Cow;

use bstr::{BStr, BString, ByteSlice};
use serde::{Serialize, Serializer};

use super::expr::{Expression, Record, seconds};
use super::{Tagged, Writer};
use crate::dialect::Form;
use crate::list::TABLE_FLAGS;
use crate::list::chain::{devices, names};
use crate::list::set::merges;
use crate::read::set::SetReader;
use crate::read::{rule, set};
use crate::statements::{ObjectKind, object_name};
use crate::syntax::{self, Element, Expr};
use crate::value::fields;
use crate::{typeof_, types};
use chainwright::nft::is_map;
use chainwright::nft::userdata::SET_DATA_TYPEOF;
use chainwright::nft::{
    ChainFlags, ChainRef, DataType, Family, FlowtableFlags, FlowtableRef, RuleRef, SetFlags,
    SetPolicy, SnapshotSet, SnapshotTable, StatefulObjectRef, TableRef, hook_name,
};

/// Writes a name. Invalid UTF-8 becomes `\u{fffd}x` with two digits, which the reader rejects.
pub(crate) fn name(name: &BStr) -> Cow<'_, str> {
    if let Ok(name) = name.to_str() {
        return name.into();
    }
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text += chunk.valid();
        for byte in chunk.invalid() {
            text += &format!("{}x{byte:02x}", char::REPLACEMENT_CHARACTER);
        }
    }
    text.into()
}

/// Converts the timeout of a set.
fn timeout(time: std::time::Duration) -> u64 {
    let milliseconds = u64::try_from(time.as_millis());
    milliseconds.map_or(u64::MAX, seconds)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Writes the names of devices; `None` if there are none.
fn texts(names: &[BString]) -> Option<Expression<'static>> {
    let texts = names
        .iter()
        .map(|each| name(each.as_slice().as_bstr()).into_owned().into());
    Expression::one_or_many(texts.collect())
}

/// Object of a ruleset.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Object<'o> {
    Rule(Rule<'o>),
    Set(Set<'o>),
    Map(Set<'o>),
    #[serde(untagged)]
    Other(Tagged<Record<'o>>),
}

#[derive(Debug, Serialize)]
pub(crate) struct Rule<'o> {
    family: &'static str,
    table: Cow<'o, str>,
    chain: Cow<'o, str>,
    handle: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<Cow<'o, str>>,
    expr: Statements<'o>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Set<'o> {
    family: &'static str,
    name: Cow<'o, str>,
    table: Cow<'o, str>,
    #[serde(rename = "type")]
    key: Types<'o>,
    handle: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<Cow<'o, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<Types<'o>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(rename = "gc-interval", skip_serializing_if = "Option::is_none")]
    gc_interval: Option<u64>,
    #[serde(rename = "auto-merge", skip_serializing_if = "is_false")]
    merges: bool,
    #[serde(skip_serializing_if = "Elements::is_empty")]
    elem: Elements<'o>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stmt: Option<Statements<'o>>,
}

/// Writes a chain that is only named. As in nft, it has its table first, other objects their name.
pub(crate) fn named_chain<'o>(of: Family, table: &'o BStr, named: &'o BStr) -> Record<'o> {
    Record::new()
        .field("family", Expression::word(family(of)))
        .field("table", name(table))
        .field("name", name(named))
}

/// Writes an object that is only named.
pub(crate) fn named<'o>(of: Family, table: &'o BStr, named: &'o BStr) -> Record<'o> {
    Record::new()
        .field("family", Expression::word(family(of)))
        .field("name", name(named))
        .field("table", name(table))
}

/// Elements of a named set.
#[derive(Debug, Serialize)]
pub(crate) struct Members<'o> {
    family: &'static str,
    table: Cow<'o, str>,
    name: Cow<'o, str>,
    elem: Tagged<Elements<'o>>,
}

impl<'o> Members<'o> {
    pub(crate) fn of(writer: Writer<'o>, set: &SnapshotSet<'o>) -> Self {
        let view = set.set();
        Self {
            family: family(view.family()),
            table: name(view.table()),
            name: name(view.name()),
            elem: Tagged("set", Elements::of(writer, set)),
        }
    }
}

/// Statements, converted to JSON one at a time.
#[derive(Debug)]
struct Statements<'o> {
    writer: Writer<'o>,
    statements: Vec<syntax::Statement>,
}

impl Serialize for Statements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let statements = self.statements.iter();
        serializer.collect_seq(statements.map(|each| each.json(self.writer)))
    }
}

/// Types of keys or data.
#[derive(Debug)]
enum Types<'o> {
    Names(Expression<'static>),
    /// The expression of a `typeof`.
    Typeof(Writer<'o>, Box<Expr>),
}

impl Types<'_> {
    /// Creates a list of types.
    fn of(data_type: DataType) -> Self {
        let names = type_names(data_type).into_iter().map(Expression::Text);
        let names = Expression::one_or_many(names.collect());
        Self::Names(names.unwrap_or_else(|| Expression::List(Vec::new())))
    }
}

impl Serialize for Types<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Names(names) => names.serialize(serializer),
            Self::Typeof(writer, expr) => serializer.collect_map([("typeof", writer.expr(expr))]),
        }
    }
}

/// Elements of a set, converted to JSON one at a time.
#[derive(Debug)]
enum Elements<'o> {
    /// Elements that nft's language can represent.
    Printable(Writer<'o>, Vec<Element>),
    Opaque,
}

impl<'o> Elements<'o> {
    fn of(writer: Writer<'o>, set: &SnapshotSet<'o>) -> Self {
        match SetReader::named(set, writer.options.nft_version).elements() {
            Some(elements) => Self::Printable(writer, elements),
            None => Self::Opaque,
        }
    }

    const fn is_empty(&self) -> bool {
        matches!(self, Self::Printable(_, elements) if elements.is_empty())
    }
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Printable(writer, elements) => {
                serializer.collect_seq(elements.iter().map(|each| writer.element(each)))
            }
            Self::Opaque => {
                let why = Cow::Borrowed("elements that nft cannot express");
                serializer.collect_seq([Expression::opaque(why)])
            }
        }
    }
}

fn family(family: Family) -> &'static str {
    family.name().unwrap_or("unknown")
}

impl<'o> Writer<'o> {
    pub(crate) fn table(self, table: &TableRef<'o>) -> Object<'o> {
        let set = table.flags().unwrap_or_default();
        let words = TABLE_FLAGS.iter().filter(|(flag, _)| set.contains(*flag));
        let record = Record::new()
            .field("family", Expression::word(family(table.family())))
            .field("name", name(table.name()))
            .field("handle", table.handle())
            .optional("flags", self.flags(words.map(|(_, word)| *word).collect()))
            .optional("comment", table.comment().map(name));
        Object::Other(Tagged("table", record))
    }

    pub(crate) fn chain(self, chain: &ChainRef<'o>) -> Object<'o> {
        let mut record = named_chain(chain.family(), chain.table(), chain.name())
            .field("handle", chain.handle())
            .optional("comment", chain.comment().map(name));
        if let Some(hook) = chain.hook() {
            let number = hook.number.unwrap_or_default();
            let word = hook_name(chain.family(), number).unwrap_or("unknown");
            let policy = chain.policy();
            let policy = policy.map(|policy| policy.name().unwrap_or("unknown"));
            let flags = chain.flags().unwrap_or_default();
            let flag = flags.contains(ChainFlags::HW_OFFLOAD).then_some("offload");
            record = record
                .optional("dev", texts(&devices(&hook)))
                .field("type", name(chain.chain_type().unwrap_or_default()))
                .field("hook", Expression::word(word))
                .field("prio", hook.priority.unwrap_or_default())
                .optional("policy", policy.map(Expression::word))
                .optional("flags", flag.map(Expression::word));
        }
        Object::Other(Tagged("chain", record))
    }

    pub(crate) fn rule(self, table: &SnapshotTable<'o>, rule: &RuleRef<'o>) -> Object<'o> {
        let line = rule::rule(table, rule, self.options.nft_version);
        Object::Rule(Rule {
            family: family(rule.family()),
            table: name(rule.table()),
            chain: name(rule.chain()),
            handle: line.handle,
            comment: rule.comment().map(name),
            expr: Statements {
                writer: self,
                statements: line.statements,
            },
        })
    }

    pub(crate) fn set(self, set: &SnapshotSet<'o>) -> Object<'o> {
        let view = set.set();
        let flags = view.flags().unwrap_or_default();
        let is_map = is_map(flags);
        let is_constant = flags.contains(SetFlags::CONSTANT);
        let words = [
            (SetFlags::CONSTANT, "constant"),
            (SetFlags::INTERVAL, "interval"),
            (SetFlags::TIMEOUT, "timeout"),
            (SetFlags::EVAL, "dynamic"),
        ];
        let words = words.iter().filter(|(flag, _)| flags.contains(*flag));
        let reader = SetReader::named(set, self.options.nft_version);
        let key_type = view.key_type().unwrap_or_default();
        let data_type = view.data_type().unwrap_or_default();
        // Only expressions give these types a length.
        let has_length = |data_type| types::info(data_type).is_some_and(|info| info.bits > 0);
        let has_values = is_map && view.object_type().is_none() && data_type != DataType::VERDICT;
        let is_to_queues = typeof_::of(&view, SET_DATA_TYPEOF) == Some(Expr::QueueNumber);
        let is_key = !fields(key_type).into_iter().all(has_length);
        let is_data = is_to_queues || has_values && !fields(data_type).into_iter().all(has_length);
        // nft 1.1 writes the type of the data if it has a length, whatever that of the keys has.
        let (is_key, is_data) = match self.options.has(Form::JsonTypeof) {
            true => (true, is_data),
            false => (is_key || is_data, is_key || is_data),
        };
        let typeof_ = |expr: Option<Expr>, is_typeof: bool| {
            let expr = expr.filter(|_| is_typeof);
            expr.map(|expr| Types::Typeof(self, Box::new(expr)))
        };
        let map =
            is_map.then(|| match view.object_type() {
                Some(object) => Types::Names(Expression::word(object_name(object))),
                None if is_to_queues => Types::Names(Expression::word("queue")),
                None => typeof_(reader.data_typeof.filter(|_| has_values), is_data).unwrap_or_else(
                    || match self.options.has(Form::JsonDataTypes) {
                        true => Types::of(data_type),
                        false => Types::Names(type_names(data_type).join(" . ").into()),
                    },
                ),
            });
        let elem = match self.options.terse {
            true => Elements::Printable(self, Vec::new()),
            false => Elements::of(self, set),
        };
        let statements = set::statements(&view);
        let size = set::size(&view).filter(|_| !is_constant);
        let has_count = self.options.has(Form::SetCount);
        let count = view.count().filter(|count| has_count && *count > 0);
        let is_small = view.policy() == Some(SetPolicy::MEMORY);
        let set = Set {
            family: family(view.family()),
            name: name(view.name()),
            table: name(view.table()),
            key: typeof_(reader.key_typeof, is_key).unwrap_or_else(|| Types::of(key_type)),
            handle: view.handle(),
            comment: view.comment().map(name),
            map,
            policy: (is_small && !is_constant).then_some("memory"),
            size,
            count: size.and(count),
            flags: words.map(|(_, word)| *word).collect(),
            timeout: view.timeout().map(timeout),
            gc_interval: view.gc_interval().map(timeout),
            merges: merges(&view),
            elem,
            stmt: match statements {
                Some(statements) if statements.is_empty() => None,
                statements => Some(Statements {
                    writer: self.planned(),
                    statements: statements.unwrap_or_else(opaque_statements),
                }),
            },
        };
        match is_map {
            true => Object::Map(set),
            false => Object::Set(set),
        }
    }

    pub(crate) fn flowtable(self, flowtable: &FlowtableRef<'o>) -> Object<'o> {
        let hook = flowtable.hook().unwrap_or_default();
        let set = flowtable.flags().unwrap_or_default();
        let words = [
            (FlowtableFlags::HW_OFFLOAD, "offload"),
            (FlowtableFlags::COUNTER, "counter"),
        ];
        let words = words.iter().filter(|(flag, _)| set.contains(*flag));
        let devices = hook.devices.unwrap_or_default();
        let record = named(flowtable.family(), flowtable.table(), flowtable.name())
            .field("handle", flowtable.handle())
            .field("hook", Expression::word("ingress"))
            .field("prio", hook.priority.unwrap_or_default())
            .optional("dev", texts(&names(&devices)))
            .optional("flags", self.flags(words.map(|(_, word)| *word).collect()));
        Object::Other(Tagged("flowtable", record))
    }

    pub(crate) fn object(self, object: &StatefulObjectRef<'o>) -> Object<'o> {
        let object_type = object.object_type();
        let mut name_of_kind = object_name(object_type);
        let data = object.data().map(|data| {
            let kind = ObjectKind::find(object_type);
            let record = kind.and_then(|kind| (kind.record)(&data, self));
            record.unwrap_or_else(|| {
                let opaque = Record::new()
                    .field("type", Expression::word(name_of_kind))
                    .field("opaque", data.to_string());
                // nft would read an object of a known kind as a new one.
                name_of_kind = "opaque";
                opaque
            })
        });
        let record = named(object.family(), object.table(), object.name())
            .field("handle", object.handle())
            .optional("comment", object.comment().map(name))
            .append(data.unwrap_or_default());
        Object::Other(Tagged(name_of_kind, record))
    }
}

/// Returns the placeholder for statements that nft's language cannot represent.
fn opaque_statements() -> Vec<syntax::Statement> {
    let why = "statements that nft cannot express".to_owned();
    vec![syntax::Statement::Opaque(why)]
}

/// Returns the names of a type's fields.
fn type_names(data_type: DataType) -> Vec<Cow<'static, str>> {
    let fields = fields(data_type).into_iter();
    let names = fields.map(|field| match types::info(field) {
        Some(info) => Cow::Borrowed(info.name),
        None => Cow::Owned(format!("type {}", field.0)),
    });
    names.collect()
}
