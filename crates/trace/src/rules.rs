//! Rulesets indexed for tracing: the chains of each hook in order.

use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, ByteSlice};
use hashbrown::{HashMap, HashSet};

use super::packet::{Hook, Node, Packet};
use super::sets::Set;
use super::steps::Trace;
use chainwright::legacy;
use chainwright::nft::expr::{CmpOp, ExpressionView, PayloadBase};
use chainwright::nft::{
    Family as NftFamily, Policy, Priority, RuleRef, Snapshot, SnapshotChain, SnapshotTable,
    TableFlags,
};
use chainwright::xt::Family;

/// Priority of connection tracking.
pub(super) const TRACKING: i32 = -200;

/// Options of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Maximum number of branches.
    pub branches: usize,
    /// Maximum number of rules evaluated in all branches together.
    pub rules: usize,
    /// Whether the snapshot's elements are used for sets that rules update or whose elements time out. Otherwise a
    /// lookup in such a set splits the trace, unless a rule of this trace has added or deleted the key, and a rule
    /// always adds its element, as if the set was never full.
    pub assume_static_sets: bool,
}

impl Default for Options {
    /// Returns the default options: 1,024 branches, 4,000,000 rules, and sets that rules update may have changed.
    fn default() -> Self {
        Self {
            branches: 1024,
            rules: 4_000_000,
            assume_static_sets: false,
        }
    }
}

/// Rulesets prepared for tracing: nf_tables rules of a snapshot, legacy tables, or both, which the kernel evaluates
/// side by side.
///
/// Traces cover the families `ip`, `ip6` and `inet`, except for the ingress hook of devices.
/// [`not_traced`](Self::not_traced) lists the other tables and chains.
///
/// ```
/// use chainwright_testing::FakeKernel;
/// use chainwright::nft::Scope;
/// use chainwright_trace::{Direction, Node, Options, Outcome, Packet, Rules};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "text")] {
/// use chainwright_lang::Script;
///
/// let fake = FakeKernel::new();
/// let mut nft = fake.connect()?;
/// let text = "table ip filter { chain input { type filter hook input priority 0; tcp dport 23 drop; }; }";
/// nft.commit(Script::parse("rules.nft", text)?.transaction(None)?.transaction())?;
///
/// let snapshot = nft.snapshot(Scope::all())?;
/// let rules = Rules::new().with_nft(&snapshot);
/// let packet = Packet::tcp(Direction::In, "192.0.2.1:4000".parse()?, "192.0.2.2:23".parse()?);
/// let trace = rules.trace(&packet, &Node::default(), &Options::default());
/// assert_eq!(trace.ends.len(), 1);
/// assert_eq!(trace.ends[0].outcome, Outcome::Dropped);
/// assert_eq!(trace.ends[0].steps[0].chain, "input");
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Rules<'s> {
    tables: Vec<Arc<TableOfRules<'s>>>,
    families: [FamilyChains<'s>; 2],
    not_traced: Vec<String>,
}

/// Chains of a family.
#[derive(Debug, Default)]
struct FamilyChains<'s> {
    /// By hook.
    hooks: [HookChains<'s>; 5],
    /// Whether any chain does NAT.
    translates: bool,
}

/// Base chains of a hook, by priority.
#[derive(Debug, Default)]
pub(super) struct HookChains<'s> {
    pub(super) chains: Vec<Arc<Base<'s>>>,
    /// NAT chains. The kernel evaluates them together, at the fixed NAT priority.
    pub(super) nat: Vec<Arc<Base<'s>>>,
}

/// Base chain.
#[derive(Debug)]
pub(super) struct Base<'s> {
    pub(super) priority: i32,
    pub(super) chain: ChainOf<'s>,
}

/// Chain of either backend.
#[derive(Debug, Clone)]
pub(super) enum ChainOf<'s> {
    Nft {
        table: Arc<TableOfRules<'s>>,
        chain: SnapshotChain<'s>,
        name: &'s BStr,
        /// Whether the policy of a base chain is drop.
        drops: bool,
    },
    Legacy {
        table: Arc<LegacyTable<'s>>,
        chain: legacy::ChainRef<'s>,
    },
}

/// Legacy table with indexes built so far.
#[derive(Debug)]
pub(super) struct LegacyTable<'s> {
    pub(super) table: &'s legacy::Table,
    /// Indexes of long chains, by the offset of their first rule.
    long: Mutex<HashMap<usize, Arc<IndexedEntries<'s>>>>,
}

/// Index of a long chain's rules by destination address. Rules for other destinations are skipped.
#[derive(Debug)]
pub(super) struct IndexedEntries<'s> {
    all: Vec<legacy::RuleRef<'s>>,
    by_destination: HashMap<u128, Vec<u32>>,
    /// Rules without a single destination address.
    others: Vec<u32>,
}

impl<'s> LegacyTable<'s> {
    /// Returns the index of a long chain.
    pub(super) fn long(&self, chain: &legacy::ChainRef<'s>) -> Option<Arc<IndexedEntries<'s>>> {
        let rules = chain.rules();
        if rules.len() < MIN_INDEXED_RULES {
            return None;
        }
        let begin = rules.clone().next()?.offset();
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = long.get(&begin) {
            return Some(known.clone());
        }
        let read = Arc::new(IndexedEntries::read(rules));
        long.insert(begin, read.clone());
        Some(read)
    }
}

impl<'s> IndexedEntries<'s> {
    fn read(rules: legacy::Rules<'s>) -> Self {
        let all: Vec<_> = rules.collect();
        let mut by_destination: HashMap<u128, Vec<u32>> = HashMap::new();
        let mut others = Vec::new();
        for (place, rule) in (0..).zip(&all) {
            match only_destination(&rule.header()) {
                Some(address) => by_destination.entry(address).or_default().push(place),
                None => others.push(place),
            }
        }
        Self {
            all,
            by_destination,
            others,
        }
    }

    /// Returns the first rule, from this position on, that may match packets to this destination, with its position.
    pub(super) fn next(
        &self,
        destination: Option<u128>,
        from: usize,
    ) -> Option<(usize, legacy::RuleRef<'s>)> {
        let place = match destination {
            None => from,
            Some(address) => {
                let own = self.by_destination.get(&address);
                let own = own.and_then(|places| first_at_or_after(places, from));
                match (own, first_at_or_after(&self.others, from)) {
                    (Some(one), Some(other)) => one.min(other),
                    (one, other) => one.or(other)?,
                }
            }
        };
        Some((place, *self.all.get(place)?))
    }
}

/// Returns the destination address of an entry if there is exactly one.
fn only_destination(header: &legacy::Header<'_>) -> Option<u128> {
    match header {
        legacy::Header::Ipv4(ip) => {
            let to = ip.destination();
            let one = !ip.inversions().contains(legacy::Inversions::DESTINATION)
                && to.mask.to_bits() == u32::MAX;
            one.then_some(to.value.to_bits().into())
        }
        legacy::Header::Ipv6(ip) => {
            let to = ip.destination();
            let one = !ip.inversions().contains(legacy::Inversions::DESTINATION)
                && to.mask.to_bits() == u128::MAX;
            one.then_some(to.value.to_bits())
        }
        legacy::Header::Arp(_) => None,
    }
}

/// Returns the first of these positions at or after `from`.
fn first_at_or_after(places: &[u32], from: usize) -> Option<usize> {
    let next = places.partition_point(|place| (*place as usize) < from);
    places.get(next).map(|place| *place as usize)
}

/// Table of nf_tables with sets and indexes read so far.
pub(super) struct TableOfRules<'s> {
    pub(super) number: usize,
    pub(super) table: SnapshotTable<'s>,
    pub(super) name: &'s BStr,
    pub(super) family: &'static str,
    sets: Mutex<HashMap<&'s [u8], Arc<Set<'s>>>>,
    /// Indexes of long chains.
    long: Mutex<HashMap<&'s [u8], Arc<IndexedChain<'s>>>>,
}

/// Minimum number of rules for an index.
const MIN_INDEXED_RULES: usize = 32;

/// Index of a long chain's rules by the part of the network header that distinguishes most of them. Rules for other
/// values are skipped.
#[derive(Debug)]
pub(super) struct IndexedChain<'s> {
    /// Offset and length of that part.
    pub(super) offset: u32,
    pub(super) length: u32,
    by_value: HashMap<&'s [u8], Vec<u32>>,
    /// Rules that do not compare this part.
    others: Vec<u32>,
}

impl<'s> IndexedChain<'s> {
    fn read(chain: &SnapshotChain<'s>) -> Option<Self> {
        let compared: Vec<_> = chain.rules().map(|rule| comparisons(&rule)).collect();
        let mut values: HashMap<(u32, u32), HashSet<&[u8]>> = HashMap::new();
        for (part, value) in compared.iter().flatten() {
            values.entry(*part).or_default().insert(*value);
        }
        // The part with the most distinct values.
        let (&(offset, length), _) = values
            .iter()
            .max_by_key(|(part, values)| (values.len(), **part))?;
        let mut by_value: HashMap<&[u8], Vec<u32>> = HashMap::new();
        let mut others = Vec::new();
        for (place, compared) in compared.into_iter().enumerate() {
            let with = compared.iter().find(|(part, _)| *part == (offset, length));
            match with {
                Some((_, value)) => by_value.entry(*value).or_default().push(place as u32),
                None => others.push(place as u32),
            }
        }
        Some(Self {
            offset,
            length,
            by_value,
            others,
        })
    }

    /// Returns the position of the first rule, from `from` on, that may match packets with this value.
    pub(super) fn next(&self, value: &[u8], from: usize) -> Option<usize> {
        let of_value = self.by_value.get(value);
        let of_value = of_value.and_then(|places| first_at_or_after(places, from));
        match (of_value, first_at_or_after(&self.others, from)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

/// Returns the parts of the network header that a rule compares for equality before it does anything else: offset,
/// length and value.
fn comparisons<'s>(rule: &RuleRef<'s>) -> Vec<((u32, u32), &'s [u8])> {
    let mut found = Vec::new();
    // The last load, if it is such a part.
    let mut loaded = None;
    for expression in rule.expressions().into_iter().flatten() {
        match expression.map(|expression| expression.view()) {
            Ok(Ok(ExpressionView::Payload(payload))) if payload.sreg().is_none() => {
                let part = (payload.offset(), payload.len(), payload.dreg());
                loaded = match part {
                    (Some(offset), Some(length @ 1..=16), Some(register))
                        if payload.base() == Some(PayloadBase::NETWORK) =>
                    {
                        Some((offset, length, register))
                    }
                    _ => None,
                };
            }
            Ok(Ok(ExpressionView::Meta(meta))) if meta.sreg().is_none() => loaded = None,
            Ok(Ok(ExpressionView::Cmp(cmp))) => {
                if let (Some((offset, length, register)), Some(value)) = (loaded, cmp.value_bytes())
                    && cmp.sreg() == Some(register)
                    && cmp.op() == Some(CmpOp::EQ)
                    && value.len() == length as usize
                {
                    found.push(((offset, length), value));
                }
            }
            _ => break,
        }
    }
    found
}

impl std::fmt::Debug for TableOfRules<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.family, self.name)
    }
}

impl<'s> TableOfRules<'s> {
    /// Returns the set of this name.
    pub(super) fn set(&self, name: &BStr) -> Option<Arc<Set<'s>>> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = sets.get(name.as_bytes()) {
            return Some(set.clone());
        }
        let set = Arc::new(Set::read(&self.table, name)?);
        sets.insert(set.name.as_bytes(), set.clone());
        Some(set)
    }

    /// Returns the index of a long chain.
    pub(super) fn long(
        &self,
        name: &'s BStr,
        chain: &SnapshotChain<'s>,
    ) -> Option<Arc<IndexedChain<'s>>> {
        if chain.rules().len() < MIN_INDEXED_RULES {
            return None;
        }
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = long.get(name.as_bytes()) {
            return Some(known.clone());
        }
        let read = Arc::new(IndexedChain::read(chain)?);
        long.insert(name.as_bytes(), read.clone());
        Some(read)
    }
}

/// Returns the index of a family.
const fn family_index(family: Family) -> usize {
    match family {
        Family::Ipv4 => 0,
        Family::Ipv6 => 1,
    }
}

impl<'s> Rules<'s> {
    /// Creates an empty ruleset.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the nf_tables rules of a snapshot. Call this only once.
    #[must_use]
    pub fn with_nft(mut self, snapshot: &'s Snapshot) -> Self {
        for table in snapshot.tables() {
            let definition = table.table();
            let (families, family): (&[Family], _) = match definition.family() {
                NftFamily::IP => (&[Family::Ipv4], "ip"),
                NftFamily::IP6 => (&[Family::Ipv6], "ip6"),
                NftFamily::INET => (&Family::ALL, "inet"),
                other => {
                    let family = other.name().unwrap_or("unknown");
                    let name = definition.name();
                    self.not_traced.push(format!("table {family} {name}"));
                    continue;
                }
            };
            if definition
                .flags()
                .is_some_and(|flags| flags.contains(TableFlags::DORMANT))
            {
                continue;
            }
            let of_rules = Arc::new(TableOfRules {
                number: self.tables.len(),
                table,
                name: definition.name(),
                family,
                sets: Mutex::default(),
                long: Mutex::default(),
            });
            self.tables.push(of_rules.clone());
            for chain in table.chains() {
                let definition = chain.chain();
                let Some(hook) = definition.hook() else {
                    continue;
                };
                let number = hook.number.unwrap_or(u32::MAX) as usize;
                let priority = hook.priority.unwrap_or_default();
                if number >= Hook::ALL.len() {
                    let (table, name) = (of_rules.name, definition.name());
                    self.not_traced
                        .push(format!("chain {family} {table} {name} of a device"));
                    continue;
                }
                let base = Arc::new(Base {
                    priority,
                    chain: ChainOf::Nft {
                        table: of_rules.clone(),
                        chain,
                        name: definition.name(),
                        drops: definition.policy() == Some(Policy::DROP),
                    },
                });
                let translates = definition.chain_type() == Some(BStr::new("nat"));
                for family in families {
                    self.families[family_index(*family)].add(number, base.clone(), translates);
                }
            }
        }
        self
    }

    /// Adds legacy tables. Call this only once. ARP tables are not traced.
    #[must_use]
    pub fn with_legacy(mut self, tables: impl IntoIterator<Item = &'s legacy::Table>) -> Self {
        for table in tables {
            let name = table.name();
            let Ok(family) = Family::try_from(table.family()) else {
                self.not_traced
                    .push(format!("table arp {}", name.as_bstr()));
                continue;
            };
            let translates = name.as_bstr() == "nat";
            let of_rules = Arc::new(LegacyTable {
                table,
                long: Mutex::default(),
            });
            for (number, hook) in Hook::ALL.into_iter().enumerate() {
                let Some(chain) = table.builtin(hook.legacy()) else {
                    continue;
                };
                let priority = match name.as_bstr().as_bytes() {
                    b"raw" => Priority::RAW,
                    b"mangle" => Priority::MANGLE,
                    b"nat" => match hook {
                        Hook::Prerouting | Hook::Output => Priority::DSTNAT,
                        _ => Priority::SRCNAT,
                    },
                    b"security" => Priority::SECURITY,
                    _ => Priority::FILTER,
                };
                let base = Arc::new(Base {
                    priority: priority.0,
                    chain: ChainOf::Legacy {
                        table: of_rules.clone(),
                        chain,
                    },
                });
                self.families[family_index(family)].add(number, base, translates);
            }
        }
        self
    }

    /// Returns the tables and chains that traces do not cover: other families and chains of devices.
    #[must_use]
    pub fn not_traced(&self) -> &[String] {
        &self.not_traced
    }

    /// Traces a packet.
    #[must_use]
    pub fn trace(&self, packet: &Packet, node: &Node, options: &Options) -> Trace {
        super::engine::trace(self, packet, node, options)
    }

    /// Returns the base chains of a hook.
    pub(super) fn at(&self, family: Family, hook: Hook) -> &HookChains<'s> {
        &self.families[family_index(family)].hooks[hook as usize]
    }

    /// Returns the nf_tables tables.
    #[cfg(test)]
    pub(super) fn tables(&self) -> &[Arc<TableOfRules<'s>>] {
        &self.tables
    }

    /// Returns `true` if any chain of a family does NAT; otherwise the kernel does none.
    pub(super) fn translates(&self, family: Family) -> bool {
        self.families[family_index(family)].translates
    }
}

impl<'s> FamilyChains<'s> {
    fn add(&mut self, hook: usize, base: Arc<Base<'s>>, translates: bool) {
        let Some(at) = self.hooks.get_mut(hook) else {
            return;
        };
        let chains = match translates {
            true => &mut at.nat,
            false => &mut at.chains,
        };
        self.translates |= translates;
        // The kernel inserts a chain before existing chains of the same priority.
        let place = chains.partition_point(|other| other.priority < base.priority);
        chains.insert(place, base);
    }
}
