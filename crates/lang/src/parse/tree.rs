//! Syntax tree of scripts: a sequence of commands, each about one object.
//!
//! Blocks are shorthand: a table's block consists of the command for the table and, in nft's order, those for its
//! chains, stateful objects, sets with their elements, flowtables and rules.

use super::elements::ElementList;
use crate::syntax::{Expr, Span, Statement};
use crate::types;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{
    Chain, DataType, Family, Flowtable, Name, Set, SetFlags, StatefulObject, Table,
};

/// Action on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    /// Fails if the object exists.
    Create,
    Insert,
    Replace,
    Delete,
    /// Succeeds even if the object does not exist.
    Destroy,
    Flush,
    Rename,
    Reset,
    List,
    /// Looks up elements.
    Get,
}

/// One command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    pub(crate) verb: Verb,
    pub(crate) object: Object,
    /// Location of the first line: the words that name the object.
    pub(crate) span: Span,
}

impl Command {
    /// Returns `true` if the command is a query, which cannot be part of a transaction.
    pub(crate) const fn is_query(&self) -> bool {
        matches!(self.verb, Verb::List | Verb::Reset | Verb::Get)
    }
}

/// Object of a command. It is the kernel's object if the text contains all of it; to delete, flush, reset or list,
/// only a name or a handle.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Object {
    /// All families, or one.
    Ruleset(Family),
    Table(Table<'static>),
    Chain(Chain<'static>),
    /// A chain and its new name.
    Renamed(Chain<'static>, Name<'static>),
    Rule(Box<Rule>),
    Set(Box<SetDeclaration>),
    Elements(Elements),
    Flowtable(Flowtable<'static>),
    Stateful(StatefulObject<'static>),
    /// All objects of a kind, to list or reset.
    Kind(Kind, Family, Option<Name<'static>>),
    /// A set created by a `meter` statement, to list.
    Meter(Set<'static>),
    /// Events to report.
    Monitor(EventFilter),
    /// Operand of `describe`.
    Described(Described),
}

/// Selection of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventFilter {
    /// Whether the command names a selection; otherwise everything is reported, including generations.
    pub(crate) is_named: bool,
    pub(crate) additions: bool,
    pub(crate) deletions: bool,
    pub(crate) kind: EventKind,
    /// Whether the command requests JSON.
    pub(crate) is_json: bool,
}

/// Kind of objects whose events are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Ruleset,
    Tables,
    Chains,
    Rules,
    Sets,
    Elements,
    Objects,
    Trace,
}

/// Operand of `describe`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Described {
    /// Data type of keys or data.
    Type(DataType),
    /// Selector.
    Expr(Expr),
}

/// Kind of objects that can be listed or reset together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tables,
    Chains,
    Rules,
    Sets,
    Maps,
    Meters,
    Flowtables,
    Hooks,
    Stateful(ObjectType),
}

/// Position of a new rule, or reference to an existing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// At the end for `add`, at the beginning for `insert`.
    Any,
    /// After or before the rule with this handle; for `replace` and `delete`, that rule.
    Handle(u64),
    /// After or before the rule with this index.
    Index(u64),
}

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(crate) family: Family,
    pub(crate) table: Name<'static>,
    pub(crate) chain: Name<'static>,
    pub(crate) position: Position,
    /// Statements with their locations.
    pub(crate) statements: Vec<(Statement, Span)>,
    pub(crate) comment: Option<String>,
}

/// Returns `true` if a chain's block names devices. Deleting such a chain only deletes these devices from it.
pub(crate) fn names_devices(chain: &Chain<'_>) -> bool {
    let hook = chain.hook.as_ref();
    hook.is_some_and(|hook| hook.device.is_some() || hook.devices.is_some())
}

/// Declaration of a set's keys or data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Declared {
    /// `type ipv4_addr . inet_service`: the types of the fields.
    Types(Vec<DataType>),
    /// `typeof ip saddr . tcp dport`
    Typeof(Expr),
    /// Stateful objects of a type; only for data.
    Objects(ObjectType),
}

/// Set or map whose types are still those of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetDeclaration {
    /// Family, names, handle, explicit flags, timeout, garbage collection interval, policy, size.
    pub(crate) set: Set<'static>,
    pub(crate) is_map: bool,
    /// `None` if the set is only referred to.
    pub(crate) keys: Option<(Declared, Span)>,
    pub(crate) data: Option<(Declared, Span)>,
    /// Whether a map's data are intervals (`interval ipv4_addr`).
    pub(crate) data_is_interval: bool,
    pub(crate) auto_merge: bool,
    pub(crate) comment: Option<String>,
    /// Statements for each new element.
    pub(crate) statements: Vec<(Statement, Span)>,
}

impl SetDeclaration {
    /// Returns the key length in bytes of an interval set without concatenation; `None` for other sets.
    pub(crate) fn length_of_ranges(&self) -> Option<usize> {
        let flags = self.set.flags.unwrap_or_default();
        let bits = match &self.keys.as_ref()?.0 {
            Declared::Types(types) => match types[..] {
                [one] => types::info(one)?.bits,
                _ => return None,
            },
            Declared::Typeof(Expr::Concat(_)) | Declared::Objects(_) => return None,
            Declared::Typeof(expr) => expr.bits(),
        };
        let is_range = flags.contains(SetFlags::INTERVAL) && bits > 0;
        is_range.then(|| bits.div_ceil(8) as usize) // at most 16
    }
}

impl Elements {
    /// Returns `true` if the elements belong to this set.
    pub(crate) fn is_of(&self, set: &Set<'_>) -> bool {
        self.family == set.family
            && set.table.as_ref() == Some(&self.table)
            && set.name.as_ref() == Some(&self.set)
    }
}

/// Elements of a set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Elements {
    pub(crate) family: Family,
    pub(crate) table: Name<'static>,
    pub(crate) set: Name<'static>,
    pub(crate) elements: ElementList,
}
