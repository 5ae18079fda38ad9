//! Compares two snapshots, object by object.
//!
//! Objects are compared as sent by the kernel, without what it assigns (handles, use counts, a rule's position, a
//! table's owner, the remaining time of a timeout) and, unless requested, without counters (counters, quotas, `last`).
//! Base chains of one priority run in the reverse order of their creation: this order is compared within a table, since
//! the kernel lists it. Rules have no names: those of a chain are compared as a sequence, each with the anonymous sets
//! and bound chains that belong to it.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use bstr::{BStr, BString};
use similar::DiffOp;

use super::compare::{Compare, element_name};
use super::match_objects::by_name;
use super::order::{Moved, moved};
use super::rule_members::{RuleObjects, is_anonymous, is_bound};
use super::{MissingElements, Snapshot, SnapshotChain, SnapshotSet, SnapshotTable};
use crate::nft::{
    ChainRef, ElementRef, FlowtableRef, RuleRef, SetRef, StatefulObjectRef, TableRef, hook_name,
};
use crate::sequence;

/// Options of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Whether different values of counters, quotas and similar state count as a change.
    pub counters: bool,
}

/// The kind of change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ChangeType {
    /// It is only in the second snapshot.
    Added,
    /// It is only in the first snapshot.
    Removed,
    /// It is in both, but different.
    Changed,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Change {
    /// The kind of change.
    pub change_type: ChangeType,
    /// The kind of the object: `table`, `chain`, `rule`, `set`, `element`, `object`, `flowtable`; `order` for the order
    /// in which a table's base chains of one priority run at a hook.
    pub kind: &'static str,
    /// Family and names of the object, or of its chain or set; for an order the table, the hook and the priority.
    pub path: String,
    /// The old object, in one line.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub old: Option<String>,
    /// The new object, in one line.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub new: Option<String>,
}

/// Formats objects for [`Snapshot::diff_with`], in one line each. An object without a text is shown as bytecode.
pub trait ObjectFormatter {
    /// Formats a rule.
    fn rule(&self, rule: &RuleRef<'_>) -> Option<String> {
        let _ = rule;
        None
    }

    /// Formats a rule including the contents of its anonymous sets and bound chains, which are then not appended. Takes
    /// precedence over [`rule`](Self::rule).
    fn rule_with_contents(&self, table: &SnapshotTable<'_>, rule: &RuleRef<'_>) -> Option<String> {
        let _ = (table, rule);
        None
    }

    /// Returns what is compared instead of the rule's attributes: two rules with the same key are the same rule, even if
    /// different programs wrote them in different forms. With `counters`, the key includes the counters.
    fn rule_key(&self, rule: &RuleRef<'_>, counters: bool) -> Option<Vec<u8>> {
        let _ = (rule, counters);
        None
    }

    /// Formats a table, without its members.
    fn table(&self, table: &TableRef<'_>) -> Option<String> {
        let _ = table;
        None
    }

    /// Formats a chain, without its rules.
    fn chain(&self, chain: &ChainRef<'_>) -> Option<String> {
        let _ = chain;
        None
    }

    /// Formats a set, without its elements.
    fn set(&self, set: &SnapshotSet<'_>) -> Option<String> {
        let _ = set;
        None
    }

    /// Formats a stateful object.
    fn object(&self, object: &StatefulObjectRef<'_>) -> Option<String> {
        let _ = object;
        None
    }

    /// Formats a flowtable.
    fn flowtable(&self, flowtable: &FlowtableRef<'_>) -> Option<String> {
        let _ = flowtable;
        None
    }

    /// Formats an element, or the end of a range of elements, of a set.
    fn element(&self, set: &SetRef<'_>, element: &ElementRef<'_>) -> Option<String> {
        let _ = (set, element);
        None
    }
}

/// All differences between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Diff {
    /// The differences: by table, and in a table by kind of object.
    pub changes: Vec<Change>,
}

impl Diff {
    /// Returns `true` if both are the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Formats one line per change, or two for a changed object: `-` for the old object, `+` for the new one.
impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Change {
            kind,
            path,
            old,
            new,
            ..
        } in &self.changes
        {
            for (sign, text) in [('-', old), ('+', new)] {
                match text {
                    Some(text) if text.is_empty() => writeln!(f, "{sign} {kind} {path}")?,
                    Some(text) => writeln!(f, "{sign} {kind} {path}: {text}")?,
                    None => {}
                }
            }
        }
        Ok(())
    }
}

impl Snapshot {
    /// Compares this snapshot, as the old one, with another, as the new one: everything that either covers, so both
    /// should have the same scope.
    ///
    /// Objects are compared byte by byte. A snapshot that was read from JSON or a similar format has the attributes in
    /// this crate's order instead of the kernel's, so compare it only with another such snapshot.
    ///
    /// Anonymous sets and the chains that are bound to a rule are compared by content, as parts of that rule. The
    /// kernel assigns their names, which differ after a rollback.
    ///
    /// # Errors
    /// [`MissingElements`] if one of them [lacks elements](Self::lacks_elements).
    pub fn diff(&self, new: &Self, options: DiffOptions) -> Result<Diff, MissingElements> {
        struct Bytecode;
        impl ObjectFormatter for Bytecode {}
        self.diff_with(new, options, &Bytecode)
    }

    /// Like [`diff`](Self::diff), with texts for the differences. The comparison is the same.
    ///
    /// # Errors
    /// As [`diff`](Self::diff).
    pub fn diff_with(
        &self,
        new: &Self,
        options: DiffOptions,
        words: &dyn ObjectFormatter,
    ) -> Result<Diff, MissingElements> {
        self.ensure_complete("compared")?;
        new.ensure_complete("compared")?;
        let mut diff = Differ {
            options,
            words,
            changes: Vec::new(),
        };
        diff.snapshots(self, new);
        Ok(Diff {
            changes: diff.changes,
        })
    }
}

/// An object in the comparison: its name, its comparison key, and itself, for printing.
struct Item<'s> {
    name: BString,
    key: Vec<u8>,
    shown: Displayed<'s>,
}

enum Displayed<'s> {
    Table(TableRef<'s>),
    Chain(ChainRef<'s>),
    Set(SnapshotSet<'s>),
    Element(SnapshotSet<'s>, ElementRef<'s>),
    Object(StatefulObjectRef<'s>),
    Flowtable(FlowtableRef<'s>),
    Rule(RuleRef<'s>),
}

impl DiffOptions {
    const fn compare(self) -> Compare {
        Compare {
            counters: self.counters,
        }
    }

    fn tables<'s>(self, snapshot: &'s Snapshot) -> Vec<Item<'s>> {
        let item = |table: SnapshotTable<'s>| {
            let table = table.table();
            Item {
                name: format!("{} {}", table.family(), table.name()).into(),
                key: self.compare().table(&table),
                shown: Displayed::Table(table),
            }
        };
        snapshot.tables().map(item).collect()
    }

    fn chains<'s>(self, table: &SnapshotTable<'s>) -> Vec<Item<'s>> {
        let item = |chain: SnapshotChain<'s>| {
            let chain = chain.chain();
            Item {
                name: chain.name().to_owned(),
                key: self.compare().chain(&chain),
                shown: Displayed::Chain(chain),
            }
        };
        let named = table.chains().filter(|chain| !is_bound(chain));
        named.map(item).collect()
    }

    fn sets<'s>(self, table: &SnapshotTable<'s>) -> Vec<Item<'s>> {
        let item = |set: SnapshotSet<'s>| {
            let view = set.set();
            Item {
                name: view.name().to_owned(),
                key: self.compare().set(&view),
                shown: Displayed::Set(set),
            }
        };
        let named = table.sets().filter(|set| !is_anonymous(&set.set()));
        named.map(item).collect()
    }

    fn elements<'s>(self, set: &SnapshotSet<'s>) -> Vec<Item<'s>> {
        let of = *set;
        let item = |element: ElementRef<'s>| Item {
            name: element_name(&element),
            key: self.compare().element(&element),
            shown: Displayed::Element(of, element),
        };
        set.elements().map(item).collect()
    }

    fn objects<'s>(self, table: &SnapshotTable<'s>) -> Vec<Item<'s>> {
        let item = |object: StatefulObjectRef<'s>| Item {
            name: format!("{} {}", object.object_type(), object.name()).into(),
            key: self.compare().object(&object),
            shown: Displayed::Object(object),
        };
        table.objects().map(item).collect()
    }

    fn flowtables<'s>(self, table: &SnapshotTable<'s>) -> Vec<Item<'s>> {
        let item = |flowtable: FlowtableRef<'s>| Item {
            name: flowtable.name().to_owned(),
            key: self.compare().flowtable(&flowtable),
            shown: Displayed::Flowtable(flowtable),
        };
        table.flowtables().map(item).collect()
    }
}

struct Differ<'w> {
    options: DiffOptions,
    words: &'w dyn ObjectFormatter,
    changes: Vec<Change>,
}

/// Appends the comparison keys to the texts of a changed object, if the texts are equal.
fn append_keys(old: &mut Option<String>, new: &mut Option<String>, compared: [Option<&[u8]>; 2]) {
    if let (Some(old), Some(new), [Some(before), Some(after)]) = (old, new, compared)
        && old == new
    {
        for (text, bytes) in [(old, before), (new, after)] {
            text.push_str(" 0x");
            for byte in bytes {
                let _ = write!(text, "{byte:02x}"); // writing to a string does not fail
            }
        }
    }
}

impl Differ<'_> {
    fn snapshots<'t>(&mut self, old: &'t Snapshot, new: &'t Snapshot) {
        let options = self.options;
        let (before, after) = (options.tables(old), options.tables(new));
        let numbers = |items: &[Item<'_>]| -> HashMap<BString, usize> {
            let names = items.iter().map(|item| item.name.clone());
            names.zip(0..).collect()
        };
        let (in_old, in_new) = (numbers(&before), numbers(&after));
        for (name, old_table, new_table) in pairs(before, after) {
            let table = |snapshot: &'t Snapshot, numbers: &HashMap<BString, usize>| {
                let number = *numbers.get(&name)?;
                Some(SnapshotTable { snapshot, number })
            };
            let (old, new) = (table(old, &in_old), table(new, &in_new));
            self.item("table", name.to_string(), old_table, new_table);
            self.contents(&name.to_string(), old.as_ref(), new.as_ref());
        }
    }

    /// Compares the members of a table; a missing table has none.
    fn contents<'t>(
        &mut self,
        path: &str,
        old: Option<&SnapshotTable<'t>>,
        new: Option<&SnapshotTable<'t>>,
    ) {
        let options = self.options;
        self.items(
            "object",
            path,
            all(old, |t| options.objects(t)),
            all(new, |t| options.objects(t)),
        );
        self.items(
            "flowtable",
            path,
            all(old, |table| options.flowtables(table)),
            all(new, |table| options.flowtables(table)),
        );
        let (before, after) = (all(old, |t| options.sets(t)), all(new, |t| options.sets(t)));
        for (name, old_set, new_set) in pairs(before, after) {
            let path = format!("{path} {name}");
            self.item("set", path.clone(), old_set, new_set);
            let old = old.and_then(|table| table.set(&name));
            let new = new.and_then(|table| table.set(&name));
            let elements = |set: &SnapshotSet<'t>| options.elements(set);
            let (old, new) = (all(old.as_ref(), elements), all(new.as_ref(), elements));
            for (_, old, new) in pairs(old, new) {
                self.item("element", path.clone(), old, new);
            }
        }
        if let (Some(old), Some(new)) = (old, new) {
            for Moved {
                hook_point,
                old,
                new,
            } in moved(old.chains(), new.chains())
            {
                self.changes.push(Change {
                    change_type: ChangeType::Changed,
                    kind: "order",
                    path: format!("{path} {hook_point}"),
                    old: Some(old),
                    new: Some(new),
                });
            }
        }
        let within = (old.map(RuleObjects::of), new.map(RuleObjects::of));
        let (before, after) = (
            all(old, |t| options.chains(t)),
            all(new, |t| options.chains(t)),
        );
        for (name, old_chain, new_chain) in pairs(before, after) {
            let path = format!("{path} {name}");
            self.item("chain", path.clone(), old_chain, new_chain);
            let chain = |table: Option<&SnapshotTable<'t>>| table?.chain(&name);
            let side = |table: Option<&SnapshotTable<'t>>, within| Side {
                rules: chain(table).map_or_else(Vec::new, |chain| chain.rules().collect()),
                table: table.copied(),
                within,
            };
            self.rules(
                &path,
                &side(old, within.0.as_ref()),
                &side(new, within.1.as_ref()),
            );
        }
    }

    /// Compares objects by name.
    fn items<'t>(
        &mut self,
        kind: &'static str,
        path: &str,
        old: Vec<Item<'t>>,
        new: Vec<Item<'t>>,
    ) {
        for (name, old, new) in pairs(old, new) {
            self.item(kind, format!("{path} {name}"), old, new);
        }
    }

    fn item(
        &mut self,
        kind: &'static str,
        path: String,
        old: Option<Item<'_>>,
        new: Option<Item<'_>>,
    ) {
        let change_type = match (&old, &new) {
            (Some(old), Some(new)) if old.key == new.key => return,
            (Some(_), Some(_)) => ChangeType::Changed,
            (Some(_), None) => ChangeType::Removed,
            (None, Some(_)) => ChangeType::Added,
            (None, None) => return,
        };
        let words = self.words;
        let text = |item: &Option<Item<'_>>| {
            let item = item.as_ref()?;
            let words = match &item.shown {
                Displayed::Table(table) => words.table(table),
                Displayed::Chain(chain) => words.chain(chain),
                Displayed::Set(set) => words.set(set),
                Displayed::Element(set, element) => words.element(&set.set(), element),
                Displayed::Object(object) => words.object(object),
                Displayed::Flowtable(flowtable) => words.flowtable(flowtable),
                Displayed::Rule(_) => None,
            };
            Some(words.unwrap_or_else(|| item.shown.to_string()))
        };
        let key = |item: Option<Item<'_>>| item.map(|item| item.key);
        let (mut before, mut after) = (text(&old), text(&new));
        let (old_key, new_key) = (key(old), key(new));
        append_keys(
            &mut before,
            &mut after,
            [old_key.as_deref(), new_key.as_deref()],
        );
        self.changes.push(Change {
            change_type,
            kind,
            path,
            old: before,
            new: after,
        });
    }

    /// Compares the rules of a chain.
    fn rules(&mut self, path: &str, old_side: &Side<'_>, new_side: &Side<'_>) {
        let compare = self.options.compare();
        let words = self.words;
        let keys = |side: &Side<'_>| side.keys(compare, words, self.options.counters);
        let (before, after) = (keys(old_side), keys(new_side));
        let (old, new) = (&old_side.rules, &new_side.rules);
        let text = |side: &Side<'_>, rule: &RuleRef<'_>| {
            let with_contents = |table| words.rule_with_contents(table, rule);
            if let Some(with_contents) = side.table.as_ref().and_then(with_contents) {
                return with_contents;
            }
            let formatted = words.rule(rule);
            let mut text = formatted.unwrap_or_else(|| Displayed::Rule(*rule).to_string());
            side.append_parts(rule, words, &mut text);
            text
        };
        for operation in sequence::changes(&before, &after) {
            if matches!(operation, DiffOp::Equal { .. }) {
                continue;
            }
            let (removed, added) = (&old[operation.old_range()], &new[operation.new_range()]);
            let compared = (
                &before[operation.old_range()],
                &after[operation.new_range()],
            );
            for number in 0..removed.len().max(added.len()) {
                let (old, new) = (removed.get(number), added.get(number));
                let mut was = old.map(|rule| text(old_side, rule));
                let mut is = new.map(|rule| text(new_side, rule));
                let keys = [compared.0.get(number), compared.1.get(number)];
                append_keys(&mut was, &mut is, keys.map(|key| key.map(Vec::as_slice)));
                self.changes.push(Change {
                    change_type: match (old, new) {
                        (Some(_), Some(_)) => ChangeType::Changed,
                        (Some(_), None) => ChangeType::Removed,
                        _ => ChangeType::Added,
                    },
                    kind: "rule",
                    path: path.to_owned(),
                    old: was,
                    new: is,
                });
            }
        }
    }
}

/// Returns the items of a container, none if it is missing.
fn all<T, I>(container: Option<&T>, items: impl FnOnce(&T) -> Vec<I>) -> Vec<I> {
    container.map(items).unwrap_or_default()
}

/// Matches objects by name.
fn pairs<'s>(
    old: Vec<Item<'s>>,
    new: Vec<Item<'s>>,
) -> Vec<(BString, Option<Item<'s>>, Option<Item<'s>>)> {
    let named = |item: Item<'s>| (item.name.clone(), item);
    by_name(old.into_iter().map(named), new.into_iter().map(named))
}

/// The rules of a chain on one side, and the objects that belong to them.
struct Side<'s> {
    rules: Vec<RuleRef<'s>>,
    table: Option<SnapshotTable<'s>>,
    /// `None` if the table doesn't exist.
    within: Option<&'s RuleObjects<'s>>,
}

impl Side<'_> {
    fn keys(&self, compare: Compare, words: &dyn ObjectFormatter, counters: bool) -> Vec<Vec<u8>> {
        let within = self.within.into_iter();
        let keys = within.flat_map(|within| {
            let key = |rule| {
                let other = words.rule_key(rule, counters);
                other.unwrap_or_else(|| within.key(compare, rule))
            };
            self.rules.iter().map(key)
        });
        keys.collect()
    }

    /// Appends the contents of the anonymous sets and bound chains of a rule, each in braces.
    fn append_parts(&self, rule: &RuleRef<'_>, words: &dyn ObjectFormatter, text: &mut String) {
        let Some(parts) = self.within.map(|within| within.parts(rule)) else {
            return;
        };
        // Writing to a string does not fail.
        for set in parts.sets {
            let view = set.set();
            let mut elements: Vec<_> = set
                .elements()
                .map(|element| {
                    let words = words.element(&view, &element);
                    words.unwrap_or_else(|| Displayed::Element(set, element).to_string())
                })
                .collect();
            elements.sort_unstable();
            let _ = write!(text, " @{} {{ {} }}", view.name(), elements.join("; "));
        }
        for chain in parts.chains {
            let rules: Vec<_> = chain
                .rules()
                .map(|rule| {
                    let words = words.rule(&rule);
                    words.unwrap_or_else(|| Displayed::Rule(rule).to_string())
                })
                .collect();
            let _ = write!(text, " {} {{ {} }}", chain.chain().name(), rules.join("; "));
        }
    }
}

/// Formats an object in one line, without what its path contains.
impl fmt::Display for Displayed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(table) => {
                if let Some(flags) = table.flags().filter(|flags| !flags.is_empty()) {
                    write!(f, "flags {}", flags_in_words(&flags))?;
                }
                comment(f, table.comment())
            }
            Self::Chain(chain) => {
                if let (Some(chain_type), Some(hook)) = (chain.chain_type(), chain.hook()) {
                    let number = hook.number.unwrap_or_default();
                    write!(f, "type {chain_type} hook ")?;
                    match hook_name(chain.family(), number) {
                        Some(name) => f.write_str(name)?,
                        None => write!(f, "{number}")?,
                    }
                    for device in hook.device.iter() {
                        write!(f, " device {device}")?;
                    }
                    for device in hook.devices.iter().flatten() {
                        write!(f, " device {device}")?;
                    }
                    write!(f, " priority {}", hook.priority.unwrap_or_default())?;
                }
                if let Some(policy) = chain.policy() {
                    write!(f, " policy {policy}")?;
                }
                comment(f, chain.comment())
            }
            Self::Set(set) => {
                let set = set.set();
                write!(
                    f,
                    "key type {} of {} bytes",
                    set.key_type().unwrap_or_default(),
                    set.key_length().unwrap_or_default()
                )?;
                if set.is_map() {
                    f.write_str(", a map")?;
                }
                if let Some(flags) = set.flags().filter(|flags| !flags.is_empty()) {
                    write!(f, ", flags {}", flags_in_words(&flags))?;
                }
                comment(f, set.comment())
            }
            Self::Element(_, element) => {
                let text = element.to_string();
                f.write_str(text.strip_prefix("element ").unwrap_or(&text))
            }
            Self::Object(object) => match object.data() {
                Some(data) => write!(f, "{data:?}"),
                None => Ok(()),
            },
            Self::Flowtable(flowtable) => write!(f, "{flowtable:?}"),
            Self::Rule(rule) => {
                let mut blank = "";
                for expression in rule.expressions().into_iter().flatten() {
                    match expression.and_then(|expression| expression.decode()) {
                        Ok(decoded) => write!(f, "{blank}{decoded}")?,
                        Err(malformed) => write!(f, "{blank}[ {malformed} ]")?,
                    }
                    blank = " ";
                }
                comment(f, rule.comment())
            }
        }
    }
}

fn comment(f: &mut fmt::Formatter<'_>, comment: Option<&BStr>) -> fmt::Result {
    match comment {
        Some(comment) => write!(f, " comment \"{comment}\""),
        None => Ok(()),
    }
}

/// Formats flags like nft: `dormant`, `interval,timeout`.
fn flags_in_words<F: bitflags::Flags>(flags: &F) -> String {
    let names = flags.iter_names().map(|(name, _)| name.to_lowercase());
    names.collect::<Vec<_>>().join(",")
}
