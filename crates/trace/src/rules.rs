//! Rulesets as packets meet them: the chains of each hook in their order.

use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, ByteSlice};
use hashbrown::{HashMap, HashSet};

use super::packet::{Hook, Node, Packet};
use super::sets::Set;
use super::steps::Walk;
use chainwright::legacy;
use chainwright::nft::expr::{CmpOp, ExpressionView, PayloadBase};
use chainwright::nft::{
    Family as NftFamily, Policy, Priority, RuleRef, Snapshot, SnapshotChain, SnapshotTable,
    TableFlags,
};
use chainwright::xt::Family;

/// The priority at which connection tracking looks at packets.
pub(super) const TRACKING: i32 = -200;

/// How a walk is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How many branches are followed at most.
    pub branches: usize,
    /// How many rules are looked at in all of them together at most.
    pub rules: usize,
    /// Whether sets that rules fill, or whose elements time out, are taken as they are in the snapshot. Otherwise a
    /// walk splits where it looks something up there, unless a rule that the packet met has put it there.
    pub sets_as_they_are: bool,
}

impl Default for Options {
    /// 1,024 branches, 4,000,000 rules, and what rules fill may have changed.
    fn default() -> Self {
        Self {
            branches: 1024,
            rules: 4_000_000,
            sets_as_they_are: false,
        }
    }
}

/// Rulesets, ready to be walked through: those of nf_tables in a snapshot, legacy tables, or both, as the kernel has
/// them beside one another.
///
/// Of nf_tables the families `ip`, `ip6` and `inet` are walked through, but for the ingress hook of devices; other families
/// and that hook are [told of](Self::not_walked), and see no packet here.
///
/// ```
/// use chainwright_testing::FakeKernel;
/// use chainwright::nft::Scope;
/// use chainwright_trace::{Direction, Node, Options, Outcome, Packet, Rules};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "text")] {
/// use chainwright_lang::Script;
///
/// let model = FakeKernel::new();
/// let mut nft = model.connect()?;
/// let text = "table ip filter { chain input { type filter hook input priority 0; tcp dport 23 drop; }; }";
/// nft.commit(Script::parse("rules.nft", text)?.transaction(None)?.transaction())?;
///
/// let snapshot = nft.snapshot(Scope::all())?;
/// let rules = Rules::new().with_nft(&snapshot);
/// let packet = Packet::tcp(Direction::In, "192.0.2.1:4000".parse()?, "192.0.2.2:23".parse()?);
/// let walk = rules.walk(&packet, &Node::default(), &Options::default());
/// assert_eq!(walk.ends.len(), 1);
/// assert_eq!(walk.ends[0].outcome, Outcome::Dropped);
/// assert_eq!(walk.ends[0].steps[0].chain, "input");
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Rules<'s> {
    tables: Vec<Arc<TableOfRules<'s>>>,
    families: [OfFamily<'s>; 2],
    not_walked: Vec<String>,
}

/// The chains of a family.
#[derive(Debug, Default)]
struct OfFamily<'s> {
    /// By hook.
    hooks: [AtHook<'s>; 5],
    /// Whether any chain translates.
    translates: bool,
}

/// The base chains of a hook, by priority.
#[derive(Debug, Default)]
pub(super) struct AtHook<'s> {
    pub(super) chains: Vec<Arc<Base<'s>>>,
    /// Those that translate: they are asked together, at the one priority of all translations.
    pub(super) nat: Vec<Arc<Base<'s>>>,
}

/// A base chain.
#[derive(Debug)]
pub(super) struct Base<'s> {
    pub(super) priority: i32,
    pub(super) chain: ChainOf<'s>,
}

/// A chain of either backend.
#[derive(Debug, Clone)]
pub(super) enum ChainOf<'s> {
    Nft {
        table: Arc<TableOfRules<'s>>,
        chain: SnapshotChain<'s>,
        name: &'s BStr,
        /// Whether the policy of a base chain is to drop.
        drops: bool,
    },
    Legacy {
        table: Arc<LegacyTable<'s>>,
        chain: legacy::ChainRef<'s>,
    },
}

/// A legacy table with what was found in it so far.
#[derive(Debug)]
pub(super) struct LegacyTable<'s> {
    pub(super) table: &'s legacy::Table,
    /// Of long chains, by where they begin, which of their rules may be for whom.
    long: Mutex<HashMap<usize, Arc<LongEntries<'s>>>>,
}

/// The rules of a long chain by the one destination that they are for: those for others need not be looked at.
#[derive(Debug)]
pub(super) struct LongEntries<'s> {
    all: Vec<legacy::RuleRef<'s>>,
    by_destination: HashMap<u128, Vec<u32>>,
    /// Those that are for several destinations.
    others: Vec<u32>,
}

impl<'s> LegacyTable<'s> {
    /// Which rules of a long chain may be for whom.
    pub(super) fn long(&self, chain: &legacy::ChainRef<'s>) -> Option<Arc<LongEntries<'s>>> {
        let rules = chain.rules();
        if rules.len() < LONG {
            return None;
        }
        let begin = rules.clone().next()?.offset();
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = long.get(&begin) {
            return Some(known.clone());
        }
        let read = Arc::new(LongEntries::read(rules));
        long.insert(begin, read.clone());
        Some(read)
    }
}

impl<'s> LongEntries<'s> {
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

    /// The first rule from this place on that may be for packets to this destination, if that is known; and its place.
    pub(super) fn next(
        &self,
        destination: Option<u128>,
        from: usize,
    ) -> Option<(usize, legacy::RuleRef<'s>)> {
        let place = match destination {
            None => from,
            Some(address) => {
                let own = self.by_destination.get(&address);
                let own = own.and_then(|places| at_or_behind(places, from));
                match (own, at_or_behind(&self.others, from)) {
                    (Some(one), Some(other)) => one.min(other),
                    (one, other) => one.or(other)?,
                }
            }
        };
        Some((place, *self.all.get(place)?))
    }
}

/// The one destination that an entry is for.
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

/// The first of these places that is not before that one.
fn at_or_behind(places: &[u32], from: usize) -> Option<usize> {
    let behind = places.partition_point(|place| (*place as usize) < from);
    places.get(behind).map(|place| *place as usize)
}

/// A table of nf_tables with what was found in it so far.
pub(super) struct TableOfRules<'s> {
    pub(super) number: usize,
    pub(super) table: SnapshotTable<'s>,
    pub(super) name: &'s BStr,
    pub(super) family: &'static str,
    sets: Mutex<HashMap<&'s [u8], Arc<Set<'s>>>>,
    /// Of long chains, which of their rules may be for whom.
    long: Mutex<HashMap<&'s [u8], Arc<LongChain<'s>>>>,
}

/// From how many rules on a chain is looked through but once.
const LONG: usize = 32;

/// The rules of a long chain by the part of the network header that tells most of them apart: those for other packets
/// need not be looked at.
#[derive(Debug)]
pub(super) struct LongChain<'s> {
    /// Where that part is, and how long.
    pub(super) offset: u32,
    pub(super) length: u32,
    by_value: HashMap<&'s [u8], Vec<u32>>,
    /// Those that compare something else.
    others: Vec<u32>,
}

impl<'s> LongChain<'s> {
    fn read(chain: &SnapshotChain<'s>) -> Option<Self> {
        let compared: Vec<_> = chain.rules().map(|rule| comparisons(&rule)).collect();
        let mut values: HashMap<(u32, u32), HashSet<&[u8]>> = HashMap::new();
        for (part, value) in compared.iter().flatten() {
            values.entry(*part).or_default().insert(*value);
        }
        // What tells most of them apart.
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

    /// The first rule from this place on that is not for other packets than those with this value.
    pub(super) fn next(&self, value: &[u8], from: usize) -> Option<usize> {
        let of_value = self.by_value.get(value);
        let of_value = of_value.and_then(|places| at_or_behind(places, from));
        match (of_value, at_or_behind(&self.others, from)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

/// The parts of the network header that a rule compares with one value each, before it does anything but compare: where
/// they are, how long, and the values.
fn comparisons<'s>(rule: &RuleRef<'s>) -> Vec<((u32, u32), &'s [u8])> {
    let mut found = Vec::new();
    // What was loaded last, if it is such a part.
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
    /// The set of this name.
    pub(super) fn set(&self, name: &BStr) -> Option<Arc<Set<'s>>> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = sets.get(name.as_bytes()) {
            return Some(set.clone());
        }
        let set = Arc::new(Set::read(&self.table, name)?);
        sets.insert(set.name.as_bytes(), set.clone());
        Some(set)
    }

    /// Which rules of a long chain may be for whom.
    pub(super) fn long(
        &self,
        name: &'s BStr,
        chain: &SnapshotChain<'s>,
    ) -> Option<Arc<LongChain<'s>>> {
        if chain.rules().len() < LONG {
            return None;
        }
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = long.get(name.as_bytes()) {
            return Some(known.clone());
        }
        let read = Arc::new(LongChain::read(chain)?);
        long.insert(name.as_bytes(), read.clone());
        Some(read)
    }
}

/// The number of a family in the list of them.
const fn place(family: Family) -> usize {
    match family {
        Family::Ipv4 => 0,
        Family::Ipv6 => 1,
    }
}

impl<'s> Rules<'s> {
    /// No rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With those of nf_tables. They are to be given only once.
    #[must_use]
    pub fn with_nft(mut self, snapshot: &'s Snapshot) -> Self {
        for table in snapshot.tables() {
            let said = table.table();
            let (families, family): (&[Family], _) = match said.family() {
                NftFamily::IP => (&[Family::Ipv4], "ip"),
                NftFamily::IP6 => (&[Family::Ipv6], "ip6"),
                NftFamily::INET => (&Family::ALL, "inet"),
                other => {
                    let family = other.name().unwrap_or("unknown");
                    let name = said.name();
                    self.not_walked.push(format!("table {family} {name}"));
                    continue;
                }
            };
            if said
                .flags()
                .is_some_and(|flags| flags.contains(TableFlags::DORMANT))
            {
                continue;
            }
            let of_rules = Arc::new(TableOfRules {
                number: self.tables.len(),
                table,
                name: said.name(),
                family,
                sets: Mutex::default(),
                long: Mutex::default(),
            });
            self.tables.push(of_rules.clone());
            for chain in table.chains() {
                let said = chain.chain();
                let Some(hook) = said.hook() else {
                    continue;
                };
                let number = hook.number.unwrap_or(u32::MAX) as usize;
                let priority = hook.priority.unwrap_or_default();
                if number >= Hook::ALL.len() {
                    let (table, name) = (of_rules.name, said.name());
                    self.not_walked
                        .push(format!("chain {family} {table} {name} of a device"));
                    continue;
                }
                let base = Arc::new(Base {
                    priority,
                    chain: ChainOf::Nft {
                        table: of_rules.clone(),
                        chain,
                        name: said.name(),
                        drops: said.policy() == Some(Policy::DROP),
                    },
                });
                let translates = said.chain_type() == Some(BStr::new("nat"));
                for family in families {
                    self.families[place(*family)].add(number, base.clone(), translates);
                }
            }
        }
        self
    }

    /// With these legacy tables, which are to be given only once. Those of ARP see no packet here.
    #[must_use]
    pub fn with_legacy(mut self, tables: impl IntoIterator<Item = &'s legacy::Table>) -> Self {
        for table in tables {
            let name = table.name();
            let Ok(family) = Family::try_from(table.family()) else {
                self.not_walked
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
                self.families[place(family)].add(number, base, translates);
            }
        }
        self
    }

    /// What there is and no packet is walked through: tables of other families, chains of devices.
    #[must_use]
    pub fn not_walked(&self) -> &[String] {
        &self.not_walked
    }

    /// Walks a packet through.
    #[must_use]
    pub fn walk(&self, packet: &Packet, node: &Node, options: &Options) -> Walk {
        super::engine::walk(self, packet, node, options)
    }

    /// The base chains of a hook.
    pub(super) fn at(&self, family: Family, hook: Hook) -> &AtHook<'s> {
        &self.families[place(family)].hooks[hook as usize]
    }

    /// The tables of nf_tables.
    #[cfg(test)]
    pub(super) fn tables(&self) -> &[Arc<TableOfRules<'s>>] {
        &self.tables
    }

    /// Whether any chain of a family translates, so that the kernel does.
    pub(super) fn translates(&self, family: Family) -> bool {
        self.families[place(family)].translates
    }
}

impl<'s> OfFamily<'s> {
    fn add(&mut self, hook: usize, base: Arc<Base<'s>>, translates: bool) {
        let Some(at) = self.hooks.get_mut(hook) else {
            return;
        };
        let chains = match translates {
            true => &mut at.nat,
            false => &mut at.chains,
        };
        self.translates |= translates;
        // The kernel puts a chain before others of the same priority that were there before it.
        let place = chains.partition_point(|other| other.priority < base.priority);
        chains.insert(place, base);
    }
}
