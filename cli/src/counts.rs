//! Counters of rules, policies and sets, read repeatedly: their increase between two samples.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice};
use chainwright::legacy;
use chainwright::metrics::{element_counter, rule_counter};
use chainwright::nft::expr::{Counter, Data, Decoded, ExpressionRef, Last, Limit, Quota, Verdict};
use chainwright::nft::{self, PartialSnapshot, RuleRef, SnapshotTable};
use serde::Serialize;

use crate::get::rules;
use crate::glob::Names;
use crate::legacy_tables;
use crate::output::{Error, eprint_line, note};
use crate::scope::{Found, Scope};

/// Packets and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Counts {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Returns the increase since `before`; `None` if the counters were reset.
    fn since(self, before: Self) -> Option<Self> {
        Some(Self {
            packets: self.packets.checked_sub(before.packets)?,
            bytes: self.bytes.checked_sub(before.bytes)?,
        })
    }
}

/// A chain or a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Group {
    pub(crate) backend: &'static str,
    pub(crate) family: nft::Family,
    pub(crate) table: BString,
    pub(crate) name: BString,
}

/// Something in a chain or set that has counters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Item {
    /// A rule of nf_tables: its handle, which a replaced rule keeps, and the hash of its content.
    Rule(u64, u64),
    /// A rule of a legacy chain: its index, and the hash of its content.
    Legacy(usize, u64),
    /// An element: its key.
    Element(Box<[u8]>),
    /// The policy of a base chain.
    Policy,
}

impl Item {
    /// Returns the handle of a rule of nf_tables.
    pub(crate) const fn handle(&self) -> Option<u64> {
        match self {
            Self::Rule(handle, _) => Some(*handle),
            _ => None,
        }
    }

    /// Returns the number of a legacy rule in its chain, from 1.
    pub(crate) const fn number(&self) -> Option<usize> {
        match self {
            Self::Legacy(index, _) => Some(*index + 1),
            _ => None,
        }
    }
}

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Rules, and policies of base chains.
    Chains,
    /// Elements of sets and maps.
    Sets,
}

/// All counters at one time.
pub(crate) struct Sample {
    pub(crate) time: Instant,
    snapshot: PartialSnapshot,
    legacy: Vec<legacy::Table>,
    pub(crate) found: Found,
    groups: Groups,
}

/// The counters by chain or set.
type Groups = HashMap<Group, HashMap<Item, Entry>>;

/// The counter of an item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) counts: Counts,
    /// The position of a rule in its chain, from 0.
    position: usize,
}

/// The change of a counter between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Increase(Counts),
    /// It did not exist, or had another content.
    New,
    /// It was reset.
    Reset,
}

impl Sample {
    /// Reads the selected tables, and in them the chains or sets with these names.
    pub(crate) fn read(scope: &Scope, names: &Names, counted: Counted) -> Result<Self, Error> {
        let mut found = Found::default();
        let snapshot = found.nft(scope.place.listed(), || {
            scope.read_or_note(|nft, filter| match counted {
                Counted::Chains => rules::read(nft, filter, names),
                Counted::Sets => nft.snapshot_sets(filter, |set| names.admits(set.name())),
            })
        })?;
        let mut legacy = Vec::new();
        if counted == Counted::Chains {
            legacy_tables::read_selected(scope, &mut found, &mut |table| {
                legacy.push(table.clone());
                Ok(())
            })?;
        }
        let mut sample = Self {
            time: Instant::now(),
            snapshot: snapshot.unwrap_or_default(),
            legacy,
            found,
            groups: Groups::new(),
        };
        sample.groups = sample.count(names, counted);
        Ok(sample)
    }

    fn count(&self, names: &Names, counted: Counted) -> Groups {
        let mut groups = Groups::new();
        for table in self.snapshot.tables() {
            match counted {
                Counted::Chains => count_rules(&table, names, &mut groups),
                Counted::Sets => count_elements(&table, names, &mut groups),
            }
        }
        for table in &self.legacy {
            for chain in table.chains().filter(|chain| names.admits(chain.name())) {
                let rules = chain.rules().enumerate().map(|(index, rule)| {
                    let item = Item::Legacy(index, rule.content_hash());
                    (item, Entry::at(index, rule.counters().into()))
                });
                let policy = chain.builtin();
                let policy =
                    policy.map(|builtin| (Item::Policy, Entry::at(0, builtin.counters.into())));
                let group = Group {
                    backend: "legacy",
                    family: table.family().into(),
                    table: table.name().as_bstr().to_owned(),
                    name: chain.name().to_owned(),
                };
                groups.insert(group, rules.chain(policy).collect());
            }
        }
        groups
    }

    /// Iterates over the chains or sets that have counters.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&Group, &HashMap<Item, Entry>)> {
        self.groups.iter().filter(|(_, items)| !items.is_empty())
    }

    fn entry(&self, group: &Group, item: &Item) -> Option<Entry> {
        self.groups.get(group)?.get(item).copied()
    }

    /// Returns the change of one of the counters since an earlier sample.
    pub(crate) fn change(&self, before: &Self, group: &Group, item: &Item) -> Change {
        let Some((now, before)) = self.entry(group, item).zip(before.entry(group, item)) else {
            return Change::New;
        };
        now.counts
            .since(before.counts)
            .map_or(Change::Reset, Change::Increase)
    }

    fn nft_table(&self, group: &Group) -> Option<SnapshotTable<'_>> {
        let mut tables = self.snapshot.tables();
        tables.find(|table| {
            let table = table.table();
            (table.family(), table.name()) == (group.family, group.table.as_bstr())
        })
    }

    fn legacy_chain(&self, group: &Group) -> Option<legacy::ChainRef<'_>> {
        let mut tables = self.legacy.iter();
        let table = tables.find(|table| {
            let family: nft::Family = table.family().into();
            (family, table.name().as_bstr()) == (group.family, group.table.as_bstr())
        })?;
        table.chain(&group.name)
    }

    /// Returns a rule of nf_tables, and its table.
    pub(crate) fn nft_rule(
        &self,
        group: &Group,
        item: &Item,
    ) -> Option<(SnapshotTable<'_>, RuleRef<'_>)> {
        let position = self.entry(group, item)?.position;
        let table = self.nft_table(group)?;
        Some((table, table.chain(&group.name)?.rule(position)?))
    }

    /// Returns the legacy rule of this index.
    pub(crate) fn legacy_rule(&self, group: &Group, index: usize) -> Option<legacy::RuleRef<'_>> {
        self.legacy_chain(group)?.rules().nth(index)
    }

    /// Returns the policy of a base chain.
    pub(crate) fn policy(&self, group: &Group) -> Option<String> {
        if group.backend == "legacy" {
            let policy = self.legacy_chain(group)?.policy()?;
            return Some(policy.name().to_ascii_lowercase());
        }
        let chain = self.nft_table(group)?.chain(&group.name)?;
        Some(chain.chain().policy()?.to_string())
    }

    /// Returns `true` if a rule or policy drops or rejects packets.
    pub(crate) fn drops(&self, group: &Group, item: &Item) -> bool {
        match item {
            Item::Policy => self.policy(group).is_some_and(|policy| policy == "drop"),
            Item::Rule(..) => self.nft_rule(group, item).is_some_and(|(_, rule)| {
                let mut expressions = rule.expressions().into_iter().flatten().flatten();
                expressions.any(|expression| drops(&expression))
            }),
            Item::Legacy(index, _) => {
                self.legacy_rule(group, *index)
                    .is_some_and(|rule| match rule.target() {
                        Ok(legacy::Target::Drop) => true,
                        Ok(legacy::Target::Extension(target)) => target.name() == "REJECT",
                        _ => false,
                    })
            }
            Item::Element(_) => false,
        }
    }
}

/// Returns `true` if an expression drops or rejects packets.
fn drops(expression: &ExpressionRef<'_>) -> bool {
    match expression.decode() {
        Ok(Decoded::Reject(_)) => true,
        Ok(Decoded::Immediate(one)) => matches!(one.data, Some(Data::Verdict(Verdict::Drop))),
        Ok(Decoded::Target(target)) => target.name.is_some_and(|name| &*name == "REJECT"),
        _ => false,
    }
}

impl From<chainwright::iptables::Counters> for Counts {
    fn from(counters: chainwright::iptables::Counters) -> Self {
        Self {
            packets: counters.packets,
            bytes: counters.bytes,
        }
    }
}

impl From<Counter> for Counts {
    fn from(counter: Counter) -> Self {
        Self {
            packets: counter.packets.unwrap_or_default(),
            bytes: counter.bytes.unwrap_or_default(),
        }
    }
}

impl Entry {
    const fn at(position: usize, counts: Counts) -> Self {
        Self { counts, position }
    }
}

fn group(table: &SnapshotTable<'_>, name: &bstr::BStr) -> Group {
    Group {
        backend: "nft",
        family: table.table().family(),
        table: table.table().name().to_owned(),
        name: name.to_owned(),
    }
}

/// Hashes the expressions and the comment of a rule, without the state that packets change.
fn content_hash(rule: &RuleRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for expression in rule.expressions().into_iter().flatten().flatten() {
        expression.name.hash(&mut hasher);
        let is_stateful = expression.is::<Counter>()
            || expression.is::<Quota>()
            || expression.is::<Limit>()
            || expression.is::<Last>();
        if !is_stateful {
            expression.attributes.hash(&mut hasher);
        }
    }
    rule.userdata().hash(&mut hasher);
    hasher.finish()
}

fn count_rules(table: &SnapshotTable<'_>, names: &Names, groups: &mut Groups) {
    for chain in table.chains() {
        let view = chain.chain();
        if !names.admits(view.name()) {
            continue;
        }
        let rules = chain.rules().enumerate().filter_map(|(position, rule)| {
            let counts = rule_counter(&rule)?.into();
            let item = Item::Rule(rule.handle(), content_hash(&rule));
            Some((item, Entry::at(position, counts)))
        });
        let policy = view.counters();
        let policy = policy.map(|counts| {
            let counts = Counts {
                packets: counts.packets.unwrap_or_default(),
                bytes: counts.bytes.unwrap_or_default(),
            };
            (Item::Policy, Entry::at(0, counts))
        });
        groups.insert(group(table, view.name()), rules.chain(policy).collect());
    }
}

fn count_elements(table: &SnapshotTable<'_>, names: &Names, groups: &mut Groups) {
    for set in table.sets() {
        if !names.admits(set.set().name()) {
            continue;
        }
        let elements = set.elements().filter_map(|element| {
            let counts = element_counter(&element)?.into();
            let key = element.key_bytes().unwrap_or_default();
            Some((Item::Element(key.into()), Entry::at(0, counts)))
        });
        groups.insert(group(table, set.set().name()), elements.collect());
    }
}

/// What is sampled, and how often.
pub(crate) struct Sampling<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) names: &'a Names,
    pub(crate) counted: Counted,
    pub(crate) interval: Duration,
    /// The number of intervals; `None` without end.
    pub(crate) iterations: Option<u64>,
    /// A line for standard error that is printed when the first sample was read.
    pub(crate) start: Option<&'static str>,
}

impl Sampling<'_> {
    /// Calls `each` with the samples at the start and at the end of every interval, until it returns `false`. Prints the
    /// notes of the first sample, and those of samples that lack a part that the one before had.
    pub(crate) fn each_interval(
        &self,
        mut each: impl FnMut(&Sample, &Sample) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let read = || Sample::read(self.scope, self.names, self.counted);
        let mut before = read()?;
        let print_notes = |sample: &Sample| sample.found.notes.iter().for_each(|text| note(text));
        print_notes(&before);
        if before.groups().next().is_none() {
            note("no counters found");
        }
        self.start.into_iter().for_each(eprint_line);
        let mut next = Instant::now() + self.interval;
        let mut left = self.iterations;
        while left != Some(0) {
            thread::sleep(next.saturating_duration_since(Instant::now()));
            // After a delay, it continues from now on.
            next = next.max(Instant::now()) + self.interval;
            let now = read()?;
            if now.found.is_partial() && !before.found.is_partial() {
                print_notes(&now);
            }
            if !each(&before, &now)? {
                return Ok(());
            }
            before = now;
            left = left.map(|left| left - 1);
        }
        Ok(())
    }
}
