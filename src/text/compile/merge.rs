//! Sets that join their ranges: those that overlap or touch become one, also where one of them is there already.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

use super::Compiler;
use super::elements::{Intervals, Ranges};
use super::load::Loaded;
use super::sets::Shape;
use crate::nft::{Element as Bytes, Family, SetId, SnapshotSet};
use crate::text::parse::{Command, ElementList, Fault, Object, Verb};

/// A set, by its family, table and name.
type Named = (Family, Vec<u8>, Vec<u8>);

/// The ranges of a set, by their first values; the last ones are in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct There(BTreeMap<u128, u128>);

impl There {
    /// Those of a set that is there.
    fn of(set: &SnapshotSet<'_>) -> Self {
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u128::from(*byte))
        };
        let mut bounds: Vec<_> = (set.elements())
            .filter_map(|element| Some((element.key_bytes()?, !element.is_interval_end())))
            .collect();
        // An end before a start at the same value.
        bounds.sort_unstable();
        let mut all = BTreeMap::new();
        let mut bounds = bounds.into_iter().peekable();
        while let Some((from, is_start)) = bounds.next() {
            if is_start {
                let behind = bounds.peek().map(|(behind, _)| number(behind));
                let highest = number(&vec![0xff; from.len()]);
                all.insert(
                    number(from),
                    behind.map_or(highest, |behind| behind.saturating_sub(1)),
                );
            }
        }
        Self(all)
    }

    /// Those that overlap one of these, or touch it or one another behind it.
    pub(super) fn near(&self, ranges: impl Iterator<Item = (u128, u128)>) -> BTreeMap<u128, u128> {
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        // Joined with one another, so that what is there is looked at for few of them.
        ranges.dedup_by(|(from, to), (_, end)| {
            let touches = end.saturating_add(1) >= *from;
            if touches {
                *end = (*end).max(*to);
            }
            touches
        });
        let mut all = BTreeMap::new();
        for (from, mut to) in ranges {
            let before = self.0.range(..from).next_back();
            let touching = before.filter(|(_, end)| end.saturating_add(1) >= from);
            if let Some((start, end)) = touching {
                to = to.max(*end);
                all.insert(*start, *end);
            }
            for (start, end) in self.0.range(from..) {
                if *start > to.saturating_add(1) {
                    break;
                }
                to = to.max(*end);
                all.insert(*start, *end);
            }
        }
        all
    }
}

/// Those of such sets.
pub(super) type Joined = HashMap<Named, There>;

/// The commands that add elements to the same set. Ranges of one transaction cannot be taken away again in it, so that those
/// which several commands add are joined where the first of them does.
#[derive(Default)]
pub(super) struct Ahead {
    /// Where elements are added, by the set; what is known once it was asked for.
    added: Option<HashMap<Named, Vec<usize>>>,
    /// Where something is taken away.
    ends: Vec<usize>,
    /// What came with others.
    taken: HashSet<usize>,
}

impl Ahead {
    fn look(&mut self, commands: &[&Command]) {
        let mut added: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, command) in commands.iter().enumerate() {
            match (command.verb, &command.object) {
                (Verb::Add, Object::Elements(of)) => {
                    let name = (of.family, of.table.to_vec(), of.set.to_vec());
                    added.entry(name).or_default().push(index);
                }
                (Verb::Delete | Verb::Destroy | Verb::Flush, _) => self.ends.push(index),
                _ => {}
            }
        }
        self.added = Some(added);
    }

    /// The elements of the command that stands here, with those that come with it; none if they came with others.
    pub(super) fn together<'e>(
        &mut self,
        commands: &[&'e Command],
        index: usize,
    ) -> Vec<&'e ElementList> {
        if self.taken.remove(&index) {
            return Vec::new();
        }
        if self.added.is_none() {
            self.look(commands);
        }
        let Some(Object::Elements(of)) = commands.get(index).map(|command| &command.object) else {
            return Vec::new();
        };
        let mut together = vec![&of.elements];
        let end = self.ends.partition_point(|end| *end < index);
        let end = self.ends.get(end).copied().unwrap_or(usize::MAX);
        let name = (of.family, of.table.to_vec(), of.set.to_vec());
        let all = self.added.as_ref().and_then(|added| added.get(&name));
        let all = all.map(Vec::as_slice).unwrap_or_default();
        // One that must not be there yet stands for itself.
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

impl Shape {
    /// The key of a set that joins its ranges.
    pub(super) fn joined(&self) -> Option<Loaded> {
        match &self.keys[..] {
            [key] if self.merges && self.is_interval && self.data.is_none() => {
                Some(Loaded::of(*key))
            }
            _ => None,
        }
    }
}

impl Compiler<'_> {
    /// Takes in the ranges of a set that is there.
    pub(super) fn learn_ranges(&mut self, set: &SnapshotSet<'_>, shape: &Shape) {
        if shape.joined().is_some() {
            let id = set.set().set_id();
            self.joined.insert(name_of(&id), There::of(set));
        }
    }

    /// Forgets the ranges of a set, which has none any more.
    pub(super) fn forget_ranges(&mut self, id: &SetId<'_>) {
        self.joined.remove(&name_of(id));
    }

    /// Forgets those of the sets that go: of this name, or of all of a table, or of a family. What is named by its handle
    /// may be any.
    pub(super) fn forget_ranges_of(
        &mut self,
        family: Family,
        table: Option<&[u8]>,
        set: Option<&[u8]>,
    ) {
        let owned = |name: Option<&[u8]>| name.map(<[u8]>::to_vec);
        self.deleted.push((family, owned(table), owned(set)));
        let is_it = |wanted: Option<&[u8]>, name: &[u8]| wanted.is_none_or(|wanted| wanted == name);
        self.joined.retain(|(of, of_table, of_set), _| {
            let goes = (family == Family::UNSPEC || *of == family)
                && is_it(table, of_table)
                && is_it(set, of_set);
            !goes
        });
    }

    /// Notes that ranges are deleted.
    pub(super) fn forget_elements(
        &mut self,
        shape: &Shape,
        id: &SetId<'_>,
        elements: &ElementList,
    ) -> Result<(), Fault> {
        let (Some(key), Some(mut there)) = (shape.joined(), self.joined.remove(&name_of(id)))
        else {
            return Ok(());
        };
        let deleted = self.intervals(&key, elements.iter(), false, shape.ranges(Verb::Delete))?;
        for (from, _) in deleted.ends() {
            there.0.remove(&from);
        }
        self.joined.insert(name_of(id), there);
        Ok(())
    }

    /// Adds elements to a set that joins its ranges, and takes those away that become part of others.
    pub(super) fn join_elements(
        &mut self,
        verb: Verb,
        shape: &Shape,
        id: &SetId<'static>,
        elements: &[&ElementList],
    ) -> Result<(), Fault> {
        let Some(key) = shape.joined() else {
            return Ok(());
        };
        let elements = elements.iter().flat_map(|list| list.iter());
        let mut there = self.joined.remove(&name_of(id)).unwrap_or_default();
        let kept = Ranges {
            there: Some(&there),
            ..shape.ranges(verb)
        };
        let mut intervals = self.intervals(&key, elements, false, kept)?;
        let replaced = mem::take(&mut intervals.replaced);
        let added: Vec<_> = intervals.ends().collect();
        let mut tx = mem::take(&mut self.tx);
        let taken = Intervals::of(&replaced, self.place);
        let taken = self.of_intervals(key, taken, None, Vec::new());
        let done = self
            .write_elements(&mut tx, Verb::Delete, id, taken)
            .and_then(|()| {
                let each = self.of_intervals(key, intervals, None, Vec::new());
                self.write_elements(&mut tx, verb, id, each)
            });
        self.tx = tx;
        for (from, _) in &replaced {
            there.0.remove(from);
        }
        there.0.extend(added);
        self.joined.insert(name_of(id), there);
        done
    }

    /// Writes elements; what is wrong with one ends them.
    pub(super) fn write_elements(
        &self,
        tx: &mut crate::nft::Transaction,
        verb: Verb,
        id: &SetId<'_>,
        mut each: impl Iterator<Item = Result<Bytes<'static>, Fault>>,
    ) -> Result<(), Fault> {
        let mut fault = None;
        let each = std::iter::from_fn(|| match each.next()? {
            Ok(element) => Some(element),
            Err(found) => {
                fault = Some(found);
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
        match fault {
            Some(fault) => Err(fault),
            None => self.fitted(done),
        }
    }
}
