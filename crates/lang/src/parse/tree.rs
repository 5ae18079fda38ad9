//! What a script says: commands, one behind the other, each about one object.
//!
//! Blocks are only a shorter way of writing commands: a table's block is the table's own command and, in nft's
//! order, those of its chains, stateful objects, sets, each with its elements, flowtables and rules.

use super::elements::ElementList;
use crate::syntax::{Expr, Place, Statement};
use crate::types;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{
    Chain, DataType, Family, Flowtable, Name, Set, SetFlags, StatefulObject, Table,
};

/// What is to be done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    /// It must not be there yet.
    Create,
    Insert,
    Replace,
    Delete,
    /// It need not be there.
    Destroy,
    Flush,
    Rename,
    Reset,
    List,
    /// Look elements up.
    Get,
}

/// One command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    pub(crate) verb: Verb,
    pub(crate) object: Object,
    /// Of its first line: the words that name the object.
    pub(crate) place: Place,
}

impl Command {
    /// Whether it asks, and is no part of a transaction.
    pub(crate) const fn is_question(&self) -> bool {
        matches!(self.verb, Verb::List | Verb::Reset | Verb::Get)
    }
}

/// What a command is about. Where the text has all that the kernel's object needs, it is that object; a name or a handle
/// alone where it is to be deleted, flushed, reset or listed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Object {
    /// All, or all of a family.
    Ruleset(Family),
    Table(Table<'static>),
    Chain(Chain<'static>),
    /// A chain, and the name that it is to get.
    Renamed(Chain<'static>, Name<'static>),
    Rule(Box<Rule>),
    Set(Box<SetDeclaration>),
    Elements(Elements),
    Flowtable(Flowtable<'static>),
    Stateful(StatefulObject<'static>),
    /// All objects of a kind, to be listed or reset.
    Kind(Kind, Family, Option<Name<'static>>),
    /// A set that a rule's `meter` made, to be listed.
    Meter(Set<'static>),
    /// What is to be told of as it happens.
    Monitor(Watched),
    /// What is to be explained.
    Described(Described),
}

/// What of the changes is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Whether it is said what; all is told otherwise, and generations, too.
    pub(crate) is_named: bool,
    pub(crate) additions: bool,
    pub(crate) deletions: bool,
    pub(crate) kind: WatchedKind,
    /// `json`: as JSON, however all else is told.
    pub(crate) is_json: bool,
}

/// Of which kind of objects is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchedKind {
    Ruleset,
    Tables,
    Chains,
    Rules,
    Sets,
    Elements,
    Objects,
    Trace,
}

/// What is explained.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Described {
    /// The type of a set's keys or data.
    Type(DataType),
    /// What a rule can look at.
    Expr(Expr),
}

/// Kinds of objects, of which all are listed or reset.
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

/// Where in its chain a rule goes to, or which one is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// At the end if it is added, at the beginning if it is inserted.
    Any,
    /// Behind or before the rule with this handle; the rule itself if it is replaced or deleted.
    Handle(u64),
    /// Behind or before the rule that stands so far from the first.
    Index(u64),
}

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(crate) family: Family,
    pub(crate) table: Name<'static>,
    pub(crate) chain: Name<'static>,
    pub(crate) position: Position,
    /// With the place of each.
    pub(crate) statements: Vec<(Statement, Place)>,
    pub(crate) comment: Option<String>,
}

/// Whether a chain's block names devices: where the chain is deleted, only these are taken off it.
pub(crate) fn names_devices(chain: &Chain<'_>) -> bool {
    let hook = chain.hook.as_ref();
    hook.is_some_and(|hook| hook.device.is_some() || hook.devices.is_some())
}

/// How the keys or the data of a set are declared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Declared {
    /// `type ipv4_addr . inet_service`: the types of its fields.
    Types(Vec<DataType>),
    /// `typeof ip saddr . tcp dport`
    Typeof(Expr),
    /// Stateful objects of a type; of data alone.
    Objects(ObjectType),
}

/// A set or a map, with its elements' types still in nft's words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetDeclaration {
    /// Family, names, handle, flags that are written, timeout, interval of the collection, policy, size.
    pub(crate) set: Set<'static>,
    pub(crate) is_map: bool,
    /// `None` where it is only named.
    pub(crate) keys: Option<(Declared, Place)>,
    pub(crate) data: Option<(Declared, Place)>,
    /// Whether a map's data are ranges (`interval ipv4_addr`).
    pub(crate) data_is_interval: bool,
    pub(crate) auto_merge: bool,
    pub(crate) comment: Option<String>,
    /// What is made with each element.
    pub(crate) statements: Vec<(Statement, Place)>,
}

impl SetDeclaration {
    /// Returns the length in bytes of the keys of a set of ranges of single values; `None` of other sets.
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
    /// Whether they are this set's.
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
