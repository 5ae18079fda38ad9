//! Builds graphs from snapshots and legacy tables.

use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};

use super::{Base, EdgeKind, Graph, NodeKind, Table};
use chainwright::iptables::{Backend, builtin};
use chainwright::legacy;
use chainwright::nft::expr::{Data, ExpressionIter, ExpressionView, Verdict};
use chainwright::nft::{
    ChainRef, DataType, Family, Policy, SetFlags, Snapshot, SnapshotTable, TableFlags, hook_name,
};

/// Target of an expression.
#[cfg_attr(
    not(feature = "text"),
    allow(
        dead_code,
        reason = "the numbers are those of batches, which only texts make here"
    )
)]
pub(super) enum RuleTarget<'a> {
    /// A chain.
    Chain(EdgeKind, &'a BStr),
    /// The chain with this ID in the same batch.
    Numbered(EdgeKind, u32),
    /// A set, which may be a verdict map: its name, and its ID in the same batch.
    Set(&'a BStr, Option<u32>),
}

/// Returns the target of a verdict.
pub(super) fn of_verdict<'a>(verdict: &'a Verdict<'_>) -> Option<RuleTarget<'a>> {
    Some(match verdict {
        Verdict::Jump(to) => RuleTarget::Chain(EdgeKind::Jump, to.as_bytes().as_bstr()),
        Verdict::Goto(to) => RuleTarget::Chain(EdgeKind::Goto, to.as_bytes().as_bstr()),
        Verdict::JumpId(id) => RuleTarget::Numbered(EdgeKind::Jump, *id),
        Verdict::GotoId(id) => RuleTarget::Numbered(EdgeKind::Goto, *id),
        _ => return None,
    })
}

/// Visits the targets of a rule's expressions. Returns the comment that iptables stores as an expression. Malformed
/// expressions have no target.
pub(super) fn each_target<'a>(
    expressions: ExpressionIter<'a>,
    visit: &mut dyn FnMut(RuleTarget<'_>),
) -> Option<&'a BStr> {
    let mut comment = None;
    for expression in expressions.flatten() {
        // Only these expressions can have a target.
        if !matches!(
            expression.name.as_bytes(),
            b"immediate" | b"lookup" | b"match"
        ) {
            continue;
        }
        match expression.view() {
            Ok(ExpressionView::Immediate(immediate)) => {
                if let Some(Data::Verdict(verdict)) = immediate.data()
                    && let Some(link) = of_verdict(&verdict)
                {
                    visit(link);
                }
            }
            Ok(ExpressionView::Lookup(lookup)) => {
                let name = lookup.set().unwrap_or_default();
                visit(RuleTarget::Set(name, lookup.set_id()));
            }
            Ok(ExpressionView::Match(one)) if one.name().is_some_and(|n| n == "comment") => {
                comment = comment.or_else(|| one.info().map(until_nul));
            }
            _ => {}
        }
    }
    comment
}

/// Reads a NUL-terminated string.
pub(super) fn until_nul(bytes: &[u8]) -> &BStr {
    let end = bytes.find_byte(0).unwrap_or(bytes.len());
    bytes[..end].as_bstr()
}

/// Describes a base chain.
pub(super) fn base(
    family: Family,
    chain_type: Option<&BStr>,
    hook: u32,
    priority: i32,
    policy: Option<Policy>,
) -> Base {
    Base {
        chain_type: chain_type.unwrap_or(BStr::new("filter")).to_owned(),
        hook: match hook_name(family, hook) {
            Some(name) => name.to_owned(),
            None => format!("hook {hook}"),
        },
        priority,
        drops: policy == Some(Policy::DROP),
    }
}

fn kind(chain: &ChainRef<'_>) -> NodeKind {
    match chain.hook() {
        None => NodeKind::Chain,
        Some(hook) => NodeKind::Base(base(
            chain.family(),
            chain.chain_type(),
            hook.number.unwrap_or_default(),
            hook.priority.unwrap_or_default(),
            chain.policy(),
        )),
    }
}

impl Graph {
    /// Adds the tables of a snapshot.
    pub fn add_snapshot(&mut self, snapshot: &Snapshot) {
        for table in snapshot.tables() {
            self.add_table(&table);
        }
    }

    /// Adds a table of a snapshot.
    pub(crate) fn add_table(&mut self, source: &SnapshotTable<'_>) {
        let table_ref = source.table();
        let flags = table_ref.flags().unwrap_or_default();
        let table = self.begin(Table {
            backend: Backend::Nft,
            family: table_ref.family(),
            name: table_ref.name().to_owned(),
            dormant: flags.contains(TableFlags::DORMANT),
        });
        // Declare all chains first, to keep the table's order.
        let chains: Vec<usize> = source
            .chains()
            .map(|chain| {
                let chain = chain.chain();
                self.declare(table, chain.name(), kind(&chain))
            })
            .collect();
        let mut maps = HashSet::new();
        for set in source.sets() {
            let set_ref = set.set();
            if set_ref.data_type() != Some(DataType::VERDICT) {
                continue;
            }
            maps.insert(set_ref.name().to_owned());
            let is_anonymous = set_ref
                .flags()
                .is_some_and(|flags| flags.contains(SetFlags::ANONYMOUS));
            if !is_anonymous {
                self.add_map(table, set_ref.name(), source);
            }
        }
        let mut places = Vec::new();
        let mut inlined = HashSet::new();
        for (chain, node) in source.chains().zip(chains) {
            let rules = chain.rules();
            self.nodes[node].size = rules.len();
            for rule in rules {
                let Some(expressions) = rule.expressions() else {
                    continue;
                };
                places.clear();
                let comment = each_target(expressions, &mut |link| match link {
                    RuleTarget::Chain(how, name) => {
                        let to = self.named(table, false, name);
                        self.link(node, to, how, 1);
                        places.push((to, how));
                    }
                    RuleTarget::Set(name, _) if maps.contains(name) => {
                        self.add_lookup(table, node, name, source, &mut inlined);
                    }
                    RuleTarget::Set(..) | RuleTarget::Numbered(..) => {}
                });
                if let Some(comment) = comment.or_else(|| rule.comment()) {
                    self.comment(node, &places, comment);
                }
            }
        }
    }

    /// Adds a map lookup by a rule. An anonymous map belongs to one rule, so its targets become targets of the rule's
    /// chain.
    fn add_lookup(
        &mut self,
        table: usize,
        node: usize,
        name: &BStr,
        source: &SnapshotTable<'_>,
        inlined: &mut HashSet<BString>,
    ) {
        let is_named = self.names[table].contains_key(&(true, name.to_owned()));
        if !is_named && inlined.insert(name.to_owned()) {
            self.add_elements(table, node, name, source);
            return;
        }
        if !is_named {
            self.add_map(table, name, source);
        }
        let to = self.named(table, true, name);
        self.link(node, to, EdgeKind::MapLookup, 1);
    }

    fn add_map(&mut self, table: usize, name: &BStr, source: &SnapshotTable<'_>) {
        let node = self.declare(table, name, NodeKind::Map);
        self.nodes[node].size = self.add_elements(table, node, name, source);
    }

    /// Adds edges to the targets of a map's elements; returns the number of elements.
    fn add_elements(
        &mut self,
        table: usize,
        node: usize,
        name: &BStr,
        source: &SnapshotTable<'_>,
    ) -> usize {
        let elements = source.set(name).map(|set| set.elements());
        let mut count = 0;
        for element in elements.into_iter().flatten() {
            if element.is_interval_end() {
                continue;
            }
            count += 1;
            if let Some(Data::Verdict(verdict)) = element.data()
                && let Some(RuleTarget::Chain(how, to)) = of_verdict(&verdict)
            {
                let to = self.named(table, false, to);
                self.link(node, to, how, 1);
            }
        }
        count
    }

    /// Adds a legacy table.
    pub fn add_legacy(&mut self, source: &legacy::Table) {
        let family = Family::from(source.family());
        let name = source.name().as_bstr();
        let table = self.begin(Table {
            backend: Backend::Legacy,
            family,
            name: name.to_owned(),
            dormant: false,
        });
        let chains: Vec<usize> = source
            .chains()
            .map(|chain| {
                let kind = match chain.hook() {
                    None => NodeKind::Chain,
                    Some(hook) => NodeKind::Base(legacy_base(source, hook, chain.policy())),
                };
                self.declare(table, chain.name(), kind)
            })
            .collect();
        for (chain, node) in source.chains().zip(chains) {
            self.nodes[node].size = chain.rule_count();
            for rule in chain.rules() {
                let link = match rule.target() {
                    Ok(legacy::Target::Jump(to)) => Some((to, EdgeKind::Jump)),
                    Ok(legacy::Target::Goto(to)) => Some((to, EdgeKind::Goto)),
                    _ => None,
                };
                let link = link.map(|(to, how)| {
                    let to = self.named(table, false, to.name());
                    self.link(node, to, how, 1);
                    (to, how)
                });
                let mut matches = rule.matches().flatten();
                if let Some(comment) = matches.find(|one| one.name() == "comment") {
                    self.comment(node, link.as_slice(), until_nul(comment.data()));
                }
            }
        }
    }
}

/// Describes a built-in chain of a legacy table.
fn legacy_base(table: &legacy::Table, hook: legacy::Hook, policy: Option<legacy::Policy>) -> Base {
    let name = table.name().to_string();
    let known = builtin(&name, hook.chain_name());
    let mut base = Base {
        chain_type: known.map_or("filter", |known| known.chain_type).into(),
        hook: hook.chain_name().to_ascii_lowercase(),
        priority: known.map_or(0, |known| known.priority),
        drops: policy == Some(legacy::Policy::Drop),
    };
    if name == "security" {
        // iptables-nft uses a different priority here than the kernel's table.
        base.priority = chainwright_sys::netfilter_ipv4::NF_IP_PRI_SECURITY;
    }
    base
}
