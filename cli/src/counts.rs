//! Counters of rules, policies and sets, read repeatedly: their increase between two samples.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use bstr::{BString, ByteSlice};
use chainwright::legacy;
use chainwright::metrics::{element_counter, rule_counter};
use chainwright::nft::expr::{Counter, Data, Decoded, ExpressionRef, Last, Limit, Quota, Verdict};
use chainwright::nft::{self, PartialSnapshot, RuleRef, SnapshotTable};
use serde::Serialize;

use crate::get::rules;
use crate::glob::Names;
use crate::legacy_tables;
use crate::output::Error;
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
    counts: HashMap<Group, HashMap<Item, Counts>>,
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
        let mut sample = Self {
            time: Instant::now(),
            snapshot: snapshot.unwrap_or_default(),
            legacy: Vec::new(),
            found,
            counts: HashMap::new(),
        };
        if counted == Counted::Chains {
            let legacy = &mut sample.legacy;
            legacy_tables::read_selected(scope, &mut sample.found, &mut |table| {
                legacy.push(table.clone());
                Ok(())
            })?;
        }
        sample.counts = sample.count(names, counted);
        Ok(sample)
    }

    fn count(&self, names: &Names, counted: Counted) -> HashMap<Group, HashMap<Item, Counts>> {
        let mut groups = HashMap::new();
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
                    (item, Counts::from(rule.counters()))
                });
                let policy = chain.builtin();
                let policy = policy.map(|builtin| (Item::Policy, Counts::from(builtin.counters)));
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
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&Group, &HashMap<Item, Counts>)> {
        self.counts.iter().filter(|(_, items)| !items.is_empty())
    }

    /// Returns the increase of a counter since an earlier sample; `None` if it is new, or was reset.
    pub(crate) fn increase(&self, before: &Self, group: &Group, item: &Item) -> Option<Counts> {
        let now = self.counts.get(group)?.get(item)?;
        now.since(*before.counts.get(group)?.get(item)?)
    }
}

impl Sample {
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

    /// Returns the rule of this handle, and its table.
    pub(crate) fn nft_rule(
        &self,
        group: &Group,
        handle: u64,
    ) -> Option<(SnapshotTable<'_>, RuleRef<'_>)> {
        let table = self.nft_table(group)?;
        let mut rules = table.chain(&group.name)?.rules();
        Some((table, rules.find(|rule| rule.handle() == handle)?))
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
            Item::Rule(handle, _) => self.nft_rule(group, *handle).is_some_and(|(_, rule)| {
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
        Ok(Decoded::Target(target)) => match target.name.as_deref() {
            Some(name) => name == "REJECT" || name == "DROP",
            None => false,
        },
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

impl Counts {
    fn of(packets: Option<u64>, bytes: Option<u64>) -> Self {
        Self {
            packets: packets.unwrap_or_default(),
            bytes: bytes.unwrap_or_default(),
        }
    }
}

type Groups = HashMap<Group, HashMap<Item, Counts>>;

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
        let rules = chain.rules().filter_map(|rule| {
            let counter = rule_counter(&rule)?;
            let counts = Counts::of(counter.packets, counter.bytes);
            Some((Item::Rule(rule.handle(), content_hash(&rule)), counts))
        });
        let policy = view.counters();
        let policy = policy.map(|counts| (Item::Policy, Counts::of(counts.packets, counts.bytes)));
        groups.insert(group(table, view.name()), rules.chain(policy).collect());
    }
}

fn count_elements(table: &SnapshotTable<'_>, names: &Names, groups: &mut Groups) {
    for set in table.sets() {
        if !names.admits(set.set().name()) {
            continue;
        }
        let elements = set.elements().filter_map(|element| {
            let counter = element_counter(&element)?;
            let key = element.key_bytes().unwrap_or_default();
            let counts = Counts::of(counter.packets, counter.bytes);
            Some((Item::Element(key.into()), counts))
        });
        groups.insert(group(table, set.set().name()), elements.collect());
    }
}
