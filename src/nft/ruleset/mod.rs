//! Rulesets as values: tables with their chains, rules, sets, elements and objects.
//!
//! | task | file |
//! |---|---|
//! | the value and its parts | this file |
//! | execute the operations of a transaction | `apply.rs` |
//! | keep objects in order | `members.rs` |
//! | convert to a [`Snapshot`] | `../snapshot/of_ruleset.rs` |

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bstr::{BStr, BString};

use super::commit::diagnose;
use super::element::ElementKey;
use super::explain::diagnose::View;
use super::expr::ObjectType;
use super::normalize::Normal as _;
use super::snapshot::{WriteError, kept_flags};
use super::{
    Chain, CommitError, ElementRef, Family, Flowtable, Object, PlanOptions, Rule, Scope, Set,
    Snapshot, StatefulObject, Table, Transaction,
};
use crate::netlink::MessageError;

mod apply;
mod members;

use members::Members;

/// A ruleset as a value: the current one of nf_tables, or a desired one.
///
/// It is built from the objects themselves, from [transactions](Self::apply), or from a [`Snapshot`]; nft's language
/// and iptables' tables are compiled to transactions. Its objects have the form in which a kernel lists them, whatever
/// form they were built from, so that equal rulesets compare as equal: with the defaults that a kernel adds, names
/// instead of ids, and the expressions that elements get from their set. The comparison ignores handles, the order of
/// sets, objects and tables, and the names of anonymous sets and bound chains.
///
/// [`Connection::reconcile`](super::Connection::reconcile) makes the kernel's tables match it, and
/// [`Connection::keep`](super::Connection::keep) restores them after each change by another program.
///
/// ```
/// use chainwright::nft::expr::{Counter, Immediate, Verdict};
/// use chainwright::nft::{Chain, Family, Hook, Rule, Ruleset, Table};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut desired = Ruleset::new();
/// desired.add(&Table::new(Family::INET, "guard"))?;
/// desired.add(&Chain::new(Family::INET, "guard", "in").with_hook("filter", Hook::INPUT, 0))?;
/// desired.add(
///     &Rule::new(Family::INET, "guard", "in")
///         .with(&Counter::default())
///         .with(&Immediate::verdict(Verdict::Drop)),
/// )?;
///
/// let table = desired.table(Family::INET, "guard").unwrap();
/// assert_eq!(table.chain("in").unwrap().rules().len(), 1);
/// assert_eq!(desired, desired.clone());
/// assert_ne!(desired, Ruleset::new());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Ruleset {
    tables: Members<(Family, BString), RulesetTable>,
    /// The last handle. The handles identify objects within this value only.
    handles: u64,
    /// Number of bound chains that got a name.
    bound_chains: u64,
}

/// A table of a [`Ruleset`].
#[derive(Debug, Clone)]
pub struct RulesetTable {
    table: Table<'static>,
    chains: Members<BString, RulesetChain>,
    sets: Members<BString, RulesetSet>,
    objects: Members<(ObjectType, BString), StatefulObject<'static>>,
    flowtables: Members<BString, Flowtable<'static>>,
    /// Number of anonymous sets that got a name.
    anonymous_sets: u32,
}

/// A chain of a [`Ruleset`], with its rules.
#[derive(Debug, Clone)]
pub struct RulesetChain {
    chain: Chain<'static>,
    rules: Vec<Rule<'static>>,
}

/// A set or map of a [`Ruleset`], with its elements.
#[derive(Debug, Clone)]
pub struct RulesetSet {
    set: Set<'static>,
    /// The attributes of each element, in normal form.
    elements: BTreeMap<ElementKey<Box<[u8]>>, Box<[u8]>>,
}

/// The reason why an object cannot be added to a [`Ruleset`].
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RulesetError {
    /// The object does not fit into a message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A kernel with this ruleset would refuse it.
    #[error(transparent)]
    Refused(#[from] CommitError),
}

crate::debug_as_message!(RulesetError);

impl Ruleset {
    /// Creates an empty ruleset.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the ruleset that results from a transaction on an empty one.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn of(transaction: &Transaction) -> Result<Self, CommitError> {
        let mut this = Self::new();
        this.apply(transaction)?;
        Ok(this)
    }

    /// Adds an object, as [`Transaction::add`] does: a rule at the end of its chain, elements to their set.
    ///
    /// # Errors
    /// [`RulesetError::Message`] as `Transaction::add`, and [`RulesetError::Refused`] as [`apply`](Self::apply); the
    /// ruleset is then unchanged.
    pub fn add<T: Object>(&mut self, object: &T) -> Result<&mut Self, RulesetError> {
        let mut tx = Transaction::new();
        tx.add(object)?;
        Ok(self.apply(&tx)?)
    }

    /// Executes the operations of a transaction.
    ///
    /// It refuses references to objects that do not exist, and the creation of existing objects. It does not check
    /// everything that the kernel does: for example, it accepts values of a wrong length and the deletion of an object
    /// in use. Unlike a kernel, it refuses a new chain with the name that another chain gets in the same transaction. It
    /// deletes an element of a set of ranges only by the exact bounds. It rounds timeouts of sets, elements
    /// and rules up to multiples of 20 ms, because a kernel rounds others down to the ticks of its timer and lists
    /// another time.
    ///
    /// # Errors
    /// The error of a kernel with this ruleset, with the first failed operation; nothing is applied then.
    pub fn apply(&mut self, transaction: &Transaction) -> Result<&mut Self, CommitError> {
        let applied = match transaction.len() {
            1 => apply::apply(self, transaction), // a refused operation changes nothing
            _ => {
                let mut next = self.clone();
                apply::apply(&mut next, transaction).map(|()| *self = next)
            }
        };
        match applied {
            Ok(()) => Ok(self),
            Err(mut error) => {
                let before = || View::of(&self.to_snapshot(&Scope::all()));
                diagnose(transaction, &mut error.failures, |_, _| Some(before()));
                Err(error)
            }
        }
    }

    /// Iterates over the tables, in the order of their creation.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = &RulesetTable> {
        self.tables.iter()
    }

    /// Returns the table of this name.
    pub fn table(&self, family: Family, name: impl AsRef<[u8]>) -> Option<&RulesetTable> {
        self.tables.get(&(family, BString::from(name.as_ref())))
    }

    /// Returns the part of the ruleset in a scope, in the form of a listing. The scope determines what
    /// [`Snapshot::restore`] deletes.
    #[must_use]
    pub fn to_snapshot(&self, scope: &Scope<'_>) -> Snapshot {
        Snapshot::of_ruleset(self, scope.clone().into_owned())
    }

    /// Returns the next handle.
    fn handle(&mut self) -> Option<u64> {
        self.handles += 1;
        Some(self.handles)
    }
}

impl RulesetTable {
    /// Returns the table itself.
    #[must_use]
    pub const fn table(&self) -> &Table<'static> {
        &self.table
    }

    /// Iterates over its chains, in the order of their creation.
    pub fn chains(&self) -> impl ExactSizeIterator<Item = &RulesetChain> {
        self.chains.iter()
    }

    /// Returns the chain of this name.
    pub fn chain(&self, name: impl AsRef<[u8]>) -> Option<&RulesetChain> {
        self.chains.get(BStr::new(name.as_ref()))
    }

    /// Iterates over its sets and maps, in the order of their creation.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = &RulesetSet> {
        self.sets.iter()
    }

    /// Returns the set or map of this name.
    pub fn set(&self, name: impl AsRef<[u8]>) -> Option<&RulesetSet> {
        self.sets.get(BStr::new(name.as_ref()))
    }

    /// Iterates over its stateful objects, in the order of their creation.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = &StatefulObject<'static>> {
        self.objects.iter()
    }

    /// Iterates over its flowtables, in the order of their creation.
    pub fn flowtables(&self) -> impl ExactSizeIterator<Item = &Flowtable<'static>> {
        self.flowtables.iter()
    }
}

impl RulesetChain {
    /// Returns the chain itself.
    #[must_use]
    pub const fn chain(&self) -> &Chain<'static> {
        &self.chain
    }

    /// Returns its rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule<'static>] {
        &self.rules
    }
}

impl RulesetSet {
    /// Returns the set itself.
    #[must_use]
    pub const fn set(&self) -> &Set<'static> {
        &self.set
    }

    /// Iterates over its elements, ordered by key.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = ElementRef<'_>> {
        self.raw_elements()
            .map(|element| ElementRef::parse(element).expect(PARSED))
    }

    /// Iterates over the attributes of its elements.
    pub(in crate::nft) fn raw_elements(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.elements.values().map(|element| &**element)
    }
}

/// The reason why parsing a stored element cannot fail.
const PARSED: &str = "invariant: it was parsed when it was added";

impl TryFrom<&Snapshot> for Ruleset {
    type Error = WriteError;

    /// Copies the tables of a snapshot.
    ///
    /// # Errors
    /// [`WriteError::MissingElements`] if elements of the snapshot are [missing](Snapshot::lacks_elements).
    fn try_from(snapshot: &Snapshot) -> Result<Self, WriteError> {
        snapshot.ensure_complete("copied")?;
        let mut this = Self::new();
        for listed in snapshot.tables() {
            let table = listed.table();
            let key = (table.family(), table.name().to_owned());
            let mut table = RulesetTable::new(table.to_builder().into_owned());
            this.handles = this.handles.max(listed.table().handle());
            for object in listed.objects() {
                let mut object = object.to_builder().into_owned();
                object.normalize();
                object.references = None;
                this.handles = this.handles.max(object.handle.unwrap_or_default());
                let name = name(&object.name).to_owned();
                let object_type = object.object_type.unwrap_or_default();
                table.objects.insert((object_type, name), object);
            }
            for flowtable in listed.flowtables() {
                let mut flowtable = flowtable.to_builder().into_owned();
                flowtable.normalize();
                flowtable.references = None;
                this.handles = this.handles.max(flowtable.handle.unwrap_or_default());
                let name = name(&flowtable.name).to_owned();
                table.flowtables.insert(name, flowtable);
            }
            for set in listed.sets() {
                let mut elements = BTreeMap::new();
                for element in set.elements() {
                    let element = element.to_builder().into_normal();
                    let key = ElementKey::of(&element).expect(PARSED).into_owned();
                    elements.insert(key, element.into());
                }
                let mut set = set.set().to_builder().into_owned();
                set.normalize();
                this.handles = this.handles.max(set.handle.unwrap_or_default());
                let name = name(&set.name).to_owned();
                table.sets.insert(name, RulesetSet { set, elements });
            }
            for listed in listed.chains() {
                let mut chain = listed.chain().to_builder().into_owned();
                chain.normalize();
                chain.references = None;
                this.handles = this.handles.max(chain.handle.unwrap_or_default());
                let rules = listed.rules().map(|rule| {
                    let mut rule = rule.to_builder().into_owned();
                    rule.normalize();
                    this.handles = this.handles.max(rule.handle.unwrap_or_default());
                    rule
                });
                let rules = rules.collect();
                let name = name(&chain.name).to_owned();
                table.chains.insert(name, RulesetChain { chain, rules });
            }
            this.tables.insert(key, table);
        }
        Ok(this)
    }
}

impl RulesetTable {
    /// Creates an empty table.
    fn new(mut table: Table<'static>) -> Self {
        table.normalize();
        table.flags = table.flags.map(kept_flags);
        (table.references, table.owner) = (None, None);
        Self {
            table,
            chains: Members::default(),
            sets: Members::default(),
            objects: Members::default(),
            flowtables: Members::default(),
            anonymous_sets: 0,
        }
    }
}

/// Returns a name, which all objects of a ruleset have.
fn name<'n>(name: &'n Option<super::Name<'_>>) -> &'n BStr {
    name.as_deref().unwrap_or_default()
}

/// Copies the ruleset into the form of a listing, as the desired state of a plan. Its scope is everything.
impl<'a> From<&'a Ruleset> for Cow<'a, Snapshot> {
    fn from(ruleset: &'a Ruleset) -> Self {
        Cow::Owned(ruleset.to_snapshot(&Scope::all()))
    }
}

/// Two rulesets are equal if no change leads from one to the other, counters included.
impl PartialEq for Ruleset {
    fn eq(&self, other: &Self) -> bool {
        let options = PlanOptions {
            remove_other_tables: true,
            remove_dynamic_elements: true,
            counters: true,
            ..PlanOptions::default()
        };
        let [one, other] = [self, other].map(|ruleset| ruleset.to_snapshot(&Scope::all()));
        one.plan(&other, options).is_ok_and(|plan| plan.is_empty())
    }
}

/// Formats as a [`Snapshot`] of it.
impl fmt::Display for Ruleset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_snapshot(&Scope::all()).fmt(f)
    }
}

/// Serializes as a [`Snapshot`] of it, and deserializes such a snapshot.
#[cfg(feature = "serde")]
mod serial {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Ruleset, Scope, Snapshot};

    impl Serialize for Ruleset {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.to_snapshot(&Scope::all()).serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for Ruleset {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let snapshot = Snapshot::deserialize(deserializer)?;
            Self::try_from(&snapshot).map_err(D::Error::custom)
        }
    }
}
