//! Interval sets: tracks existing ranges to detect overlaps, and merges overlapping and adjacent ranges, including
//! existing ones, in sets with `auto-merge`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

use super::Compiler;
use super::declared::{is_deletion, of_verb};
use super::elements::{Intervals, Ranges};
use super::load::Loaded;
use super::sets::SetSpec;
use crate::parse::{Command, Diagnostic, ElementList, Elements, Object, Verb};
use crate::syntax::Value;
use chainwright::nft::expr::Data;
use chainwright::nft::{Element as Bytes, Family, Ranges as There, SetId, userdata};

/// A set by family, table and name.
pub(crate) type Named = (Family, Vec<u8>, Vec<u8>);

/// An emptied family, table or set; `None` stands for any name.
type Emptied = (Family, Option<Vec<u8>>, Option<Vec<u8>>);

/// Ranges of sets at a position in the text.
#[derive(Default)]
pub(crate) struct Contents {
    /// Ranges of sets that are known or get elements from the text.
    sets: HashMap<Named, Content>,
    /// Emptied or new objects: all sets of a family, of a table, or one set.
    emptied: HashSet<Emptied>,
    /// Set whose elements are needed but unknown.
    pub(crate) missing_elements: Option<Named>,
}

/// Ranges of a set.
#[derive(Debug, Clone, Default)]
struct Content {
    ranges: There,
    /// Whether these are all ranges of the set; otherwise they are only those that the text adds.
    is_whole: bool,
    /// Elements that the text adds to a set with `auto-merge`, by key, for as long as the text may cut them.
    added: HashMap<Vec<u8>, Bytes<'static>>,
}

impl Content {
    /// Records the start of an added range.
    fn note(&mut self, element: &Bytes<'static>) {
        if let (Some(Data::Value(key)), None) = (&element.key, element.flags) {
            self.added.insert(key.to_vec(), element.clone());
        }
    }
}

/// Commands that add elements to or delete elements from the same set. A range that was added in a transaction cannot
/// be removed in it. So the ranges of several `add` commands are merged at the first of them, and those of several
/// `delete` commands are cut at the first of them.
#[derive(Default)]
pub(crate) struct MergePlan {
    /// Positions of commands that add and delete elements, by set; computed on first use.
    added: Option<HashMap<Named, Vec<usize>>>,
    deleted: HashMap<Named, Vec<usize>>,
    /// Positions of commands that remove something.
    ends: Vec<usize>,
    /// Positions of commands other than deletions of elements.
    ends_of_deleted: Vec<usize>,
    /// Commands that were merged into earlier ones.
    taken: HashSet<usize>,
    /// Number of commands about elements of a set.
    counts: HashMap<Named, usize>,
}

impl MergePlan {
    fn collect(&mut self, commands: &[&Command]) {
        let mut added: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, command) in commands.iter().enumerate() {
            if let Object::Elements(of) = &command.object {
                let name = (of.family, of.table.to_vec(), of.set.to_vec());
                *self.counts.entry(name).or_default() += 1;
            }
            match (command.verb, &command.object) {
                (Verb::Add, Object::Elements(of)) => {
                    let name = (of.family, of.table.to_vec(), of.set.to_vec());
                    added.entry(name).or_default().push(index);
                }
                (Verb::Delete | Verb::Destroy | Verb::Flush, _) => self.ends.push(index),
                _ => {}
            }
            match (command.verb, &command.object) {
                (Verb::Delete, Object::Elements(of)) => {
                    let name = (of.family, of.table.to_vec(), of.set.to_vec());
                    self.deleted.entry(name).or_default().push(index);
                }
                _ => self.ends_of_deleted.push(index),
            }
        }
        self.added = Some(added);
    }

    /// Returns `true` if several commands are about elements of this set.
    fn are_several(&mut self, commands: &[&Command], set: &Named) -> bool {
        if self.added.is_none() {
            self.collect(commands);
        }
        self.counts.get(set).is_some_and(|count| *count > 1)
    }

    /// Returns the elements of a command and of those merged with it; empty if it was itself merged into an earlier
    /// one.
    pub(crate) fn together<'e>(
        &mut self,
        commands: &[&'e Command],
        index: usize,
    ) -> Vec<&'e ElementList> {
        if self.taken.remove(&index) {
            return Vec::new();
        }
        if self.added.is_none() {
            self.collect(commands);
        }
        let Some(command) = commands.get(index) else {
            return Vec::new();
        };
        let Object::Elements(of) = &command.object else {
            return Vec::new();
        };
        let (ends, all) = match command.verb {
            Verb::Delete => (&self.ends_of_deleted, Some(&self.deleted)),
            _ => (&self.ends, self.added.as_ref()),
        };
        let mut together = vec![&of.elements];
        let end = ends.partition_point(|end| *end < index);
        let end = ends.get(end).copied().unwrap_or(usize::MAX);
        let name = (of.family, of.table.to_vec(), of.set.to_vec());
        let all = all.and_then(|all| all.get(&name));
        let all = all.map(Vec::as_slice).unwrap_or_default();
        // `create` is not merged.
        if let Ok(at) = all.binary_search(&index) {
            let others = all[at + 1..].iter().take_while(|other| **other < end);
            for other in others {
                if let Some(Object::Elements(of)) = commands.get(*other).map(|other| &other.object)
                {
                    together.push(&of.elements);
                    self.taken.insert(*other);
                }
            }
        }
        together
    }
}

fn name_of(id: &SetId<'_>) -> Named {
    (id.family, id.table.to_vec(), id.set.to_vec())
}

impl SetSpec {
    /// Returns the key of a set with `auto-merge`.
    pub(crate) fn joined(&self) -> Option<Loaded> {
        match &self.keys[..] {
            [key] if self.merges && self.is_interval && self.data.is_none() => {
                Some(Loaded::of(*key))
            }
            _ => None,
        }
    }
}

impl Compiler<'_> {
    /// Records that a set, a table or a family is deleted or emptied. `None` stands for any name.
    pub(crate) fn forget_contents(
        &mut self,
        family: Family,
        table: Option<&[u8]>,
        set: Option<&[u8]>,
    ) {
        let owned = |name: Option<&[u8]>| name.map(<[u8]>::to_vec);
        self.deleted.push((family, owned(table), owned(set)));
        self.contents.empty(family, table, set);
    }
}

impl Contents {
    /// Records that a set, or all sets of a table or family, have no elements.
    pub(crate) fn empty(&mut self, family: Family, table: Option<&[u8]>, set: Option<&[u8]>) {
        let is_it = |wanted: Option<&[u8]>, name: &[u8]| wanted.is_none_or(|wanted| wanted == name);
        self.sets.retain(|(of, of_table, of_set), _| {
            let goes = (family == Family::UNSPEC || *of == family)
                && is_it(table, of_table)
                && is_it(set, of_set);
            !goes
        });
        let owned = |name: Option<&[u8]>| name.map(<[u8]>::to_vec);
        self.emptied.insert((family, owned(table), owned(set)));
    }

    /// Returns `true` if a set has been emptied.
    pub(crate) fn is_emptied(&self, (family, table, set): &Named) -> bool {
        let all = (None, None);
        let of_table = (Some(table.clone()), None);
        let this = (Some(table.clone()), Some(set.clone()));
        let is_emptied = |of, (table, set)| self.emptied.contains(&(of, table, set));
        is_emptied(Family::UNSPEC, all.clone())
            || [all, of_table, this]
                .into_iter()
                .any(|names| is_emptied(*family, names))
    }
}

impl Compiler<'_> {
    /// Returns the known ranges of a set.
    fn content(&mut self, name: &Named, highest: u128) -> Content {
        if let Some(known) = self.contents.sets.remove(name) {
            return known;
        }
        let (family, table, set) = name;
        let is_read = self.read.is_none_or(|needed| {
            let key = (*family, table.as_slice().into(), set.as_slice().into());
            needed.sets.get(&key) == Some(&true)
        });
        if self.contents.is_emptied(name) {
            return Content {
                is_whole: true,
                ..Content::default()
            };
        }
        let found = (self.now).and_then(|now| now.table(*family, table)?.set(set));
        let ranges = found
            .filter(|_| is_read)
            .map(|set| There::of_listed(set.elements()));
        Content {
            ranges: ranges.unwrap_or_default().up_to(highest),
            is_whole: is_read,
            added: HashMap::new(),
        }
    }

    /// Creates the error that the elements of a set are unknown.
    fn unknown_elements(&mut self, name: &Named) -> Diagnostic {
        self.contents.missing_elements = Some(name.clone());
        Diagnostic::new(self.span, "the elements of the set are unknown")
    }

    /// Adds ranges to a set without `auto-merge`, or deletes them.
    pub(crate) fn ranged(
        &mut self,
        verb: Verb,
        set_spec: &SetSpec,
        id: &SetId<'static>,
        elements: &Elements,
        commands: &[&Command],
    ) -> Result<(), Diagnostic> {
        let name = name_of(id);
        let data = set_spec.data.as_ref().filter(|_| !is_deletion(verb));
        let (keys, each) = of_verb(set_spec, &elements.elements, verb);
        let [key] = keys[..] else {
            return Ok(());
        };
        let highest = Value::ones(key.expected_type.bits);
        let mut intervals = self.intervals(&key, each, data.is_some(), set_spec.ranges(verb))?;
        let are_several = self.ahead.are_several(commands, &name);
        let reaches_end = intervals.ends().any(|(_, to)| to >= highest);
        // A kernel before Linux 6.18 only checks that a deleted range begins and ends where ranges of the set do: for
        // 10-40 it would delete the start of 10-20 and the end of 30-40. A single value has no such neighbor.
        let is_long = is_deletion(verb) && intervals.ends().any(|(from, to)| from < to);
        let needs_contents = reaches_end || is_long || verb == Verb::Destroy;
        if needs_contents || are_several || !is_deletion(verb) {
            let mut content = self.content(&name, highest);
            if needs_contents && !content.is_whole {
                return Err(self.unknown_elements(&name));
            }
            let there = &mut content.ranges;
            let wrong = match verb {
                Verb::Delete => intervals.find(|from, to| needs_contents && !there.has(from, to)),
                Verb::Destroy => {
                    intervals.retain(|from, to| there.has(from, to) || there.overlaps(from, to));
                    intervals.find(|from, to| !there.has(from, to))
                }
                _ => intervals.find(|from, to| there.overlaps(from, to)),
            };
            if let Some(span) = wrong {
                return Err(match is_deletion(verb) {
                    true => {
                        Diagnostic::new(span, "element does not exist: the set has no such range")
                    }
                    false => Diagnostic::new(span, "interval overlaps with an existing one")
                        .with_hint("delete that one first, or declare the set with `auto-merge`"),
                });
            }
            if are_several {
                match is_deletion(verb) {
                    true => intervals.ends().for_each(|(from, _)| there.remove(from)),
                    false => there.extend(intervals.ends()),
                }
                self.contents.sets.insert(name, content);
            }
        }
        let mut tx = mem::take(&mut self.tx);
        let fields = data.map_or_else(Vec::new, super::sets::Data::fields);
        let each = self.of_intervals(key, intervals, data, fields);
        let done = self.write_elements(&mut tx, verb, id, each);
        self.tx = tx;
        done
    }

    /// Adds elements to a set with `auto-merge`, and deletes existing ones that are merged into others.
    pub(crate) fn join_elements(
        &mut self,
        verb: Verb,
        set_spec: &SetSpec,
        id: &SetId<'static>,
        elements: &[&ElementList],
        commands: &[&Command],
    ) -> Result<(), Diagnostic> {
        let Some(key) = set_spec.joined() else {
            return Ok(());
        };
        let elements = elements.iter().flat_map(|list| list.iter());
        let name = name_of(id);
        let are_several = self.ahead.are_several(commands, &name);
        let mut content = self.content(&name, Value::ones(key.expected_type.bits));
        let kept = Ranges {
            there: Some(&content.ranges),
            ..set_spec.ranges(verb)
        };
        let mut intervals = self.intervals(&key, elements, false, kept)?;
        let replaced = mem::take(&mut intervals.replaced);
        let added: Vec<_> = intervals.ends().collect();
        let mut tx = mem::take(&mut self.tx);
        let taken = Intervals::of(&replaced, self.span);
        let taken = self.of_intervals(key, taken, None, Vec::new());
        let done = self
            .write_elements(&mut tx, Verb::Delete, id, taken)
            .and_then(|()| {
                let each = self.of_intervals(key, intervals, None, Vec::new());
                let each = each.inspect(|each| {
                    if let (true, Ok(element)) = (are_several, each) {
                        content.note(element);
                    }
                });
                self.write_elements(&mut tx, verb, id, each)
            });
        self.tx = tx;
        for (from, _) in &replaced {
            content.ranges.remove(*from);
        }
        content.ranges.extend(added);
        self.contents.sets.insert(name, content);
        done
    }

    /// Deletes elements of a set with `auto-merge`. If only part of a range is deleted, the rest is added again with
    /// the options of the range.
    pub(crate) fn cut_elements(
        &mut self,
        verb: Verb,
        set_spec: &SetSpec,
        id: &SetId<'static>,
        elements: &[&ElementList],
    ) -> Result<(), Diagnostic> {
        let Some(key) = set_spec.joined() else {
            return Ok(());
        };
        let name = name_of(id);
        let mut content = self.content(&name, Value::ones(key.expected_type.bits));
        if !content.is_whole {
            return Err(self.unknown_elements(&name));
        }
        let there = &mut content.ranges;
        let each = elements
            .iter()
            .flat_map(|list| of_verb(set_spec, list, verb).1);
        let mut intervals = self.intervals(&key, each, false, set_spec.ranges(verb))?;
        if verb == Verb::Destroy {
            intervals.retain(|from, to| there.has(from, to) || there.overlaps(from, to));
        }
        if let Some(span) = intervals.find(|from, to| there.around(from, to).is_none()) {
            let message = "element does not exist: the set has no such range";
            return Err(Diagnostic::new(span, message));
        }
        let mut cut: BTreeMap<_, Vec<(u128, u128)>> = BTreeMap::new();
        for (from, to) in intervals.ends() {
            if let Some(range) = there.around(from, to) {
                cut.entry(range).or_default().push((from, to));
            }
        }
        let whole: Vec<_> = cut.keys().copied().collect();
        let intervals = intervals.with_ranges(&whole, self.span);
        let mut tx = mem::take(&mut self.tx);
        let taken = self.of_intervals(key, intervals, None, Vec::new());
        let mut done = self.write_elements(&mut tx, verb, id, taken);
        let (family, table, set) = &name;
        let listed = (self.now).and_then(|now| now.table(*family, table)?.set(set));
        let elements = listed.iter().flat_map(|set| set.elements());
        let starts: HashMap<Vec<u8>, _> = elements
            .filter(|each| !each.is_interval_end())
            .filter_map(|each| Some((each.key_bytes()?.to_vec(), each)))
            .collect();
        for ((first, last), parts) in cut {
            content.ranges.remove(first);
            let mut rest = Vec::new();
            let mut next = Some(first);
            for (from, to) in parts {
                rest.extend(
                    next.filter(|next| *next < from)
                        .map(|next| (next, from - 1)),
                );
                next = to.checked_add(1);
            }
            rest.extend(next.filter(|next| *next <= last).map(|next| (next, last)));
            if rest.is_empty() {
                continue;
            }
            let start = key.bytes(first);
            let was = content.added.remove(&start).or_else(|| {
                let listed = starts.get(&start[..])?;
                Some(listed.to_builder().into_owned())
            });
            let was = was.unwrap_or_default();
            // Including the terminating NUL.
            let comment = was.userdata.as_deref().and_then(|data| {
                let comment = userdata::UserData::new(data).comment(userdata::ELEMENT_COMMENT)?;
                Some([comment, &b"\0"[..]].concat())
            });
            let added = self.of_intervals(key, Intervals::of(&rest, self.span), None, Vec::new());
            let added = added.map(|each| {
                let mut each = each?;
                if each.flags.is_some() {
                    return Ok(each);
                }
                if let Some(comment) = &comment {
                    userdata::put(&mut each.userdata, userdata::ELEMENT_COMMENT, comment);
                }
                Ok(Bytes {
                    key: each.key,
                    userdata: each.userdata,
                    ..was.clone()
                })
            });
            let added = added.inspect(|each| {
                if let Ok(element) = each {
                    content.note(element);
                }
            });
            done = done.and_then(|()| self.write_elements(&mut tx, Verb::Add, id, added));
            content.ranges.extend(rest);
        }
        self.tx = tx;
        self.contents.sets.insert(name, content);
        done
    }

    /// Adds elements to the transaction; stops at the first error.
    pub(crate) fn write_elements(
        &self,
        tx: &mut chainwright::nft::Transaction,
        verb: Verb,
        id: &SetId<'_>,
        mut each: impl Iterator<Item = Result<Bytes<'static>, Diagnostic>>,
    ) -> Result<(), Diagnostic> {
        let mut diagnostic = None;
        let each = std::iter::from_fn(|| match each.next()? {
            Ok(element) => Some(element),
            Err(found) => {
                diagnostic = Some(found);
                None
            }
        });
        let done = match verb {
            Verb::Add => tx.add_elements(id, each).map(|_| ()),
            Verb::Create => tx.create_elements(id, each).map(|_| ()),
            Verb::Delete => tx.delete_elements(id, each).map(|_| ()),
            Verb::Destroy => tx.destroy_elements(id, each).map(|_| ()),
            _ => return Err(self.not_a_change()),
        };
        match diagnostic {
            Some(diagnostic) => Err(diagnostic),
            None => self.fitted(done),
        }
    }
}
