//! Chains with their rules in English.

use bstr::{BString, ByteSlice as _};
use chainwright::iptables::Backend;
use chainwright::nft::{RuleRef, SnapshotTable};
use chainwright::{legacy, xt};
use chainwright_trace::explain::{Row, RuleExplanation};
use chainwright_trace::graph::{EdgeKind, Graph, NodeKind, Table};
use chainwright_trace::owner;
use serde::Serialize;

use super::purpose;
use super::target::{ChainTarget, RuleName};
use crate::get::chains::devices;
use crate::get::rules;
use crate::iptables::backend_word;
use crate::output::name_text;
use crate::trace_output::Ruleset;

/// A chain in English.
#[derive(Debug, Serialize)]
pub(crate) struct ChainExplanation {
    pub(crate) backend: &'static str,
    pub(crate) family: String,
    pub(crate) table: String,
    pub(crate) chain: String,
    /// Of a base chain: the hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hook: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<&'static str>,
    /// Of a base chain: the devices that it is bound to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) devices: Vec<String>,
    /// Whether its table is switched off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dormant: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) purpose: Option<String>,
    /// The chains and maps that lead here.
    pub(crate) from: Vec<String>,
    pub(crate) rules: Vec<RuleRecord>,
}

/// A rule in English.
#[derive(Debug, Serialize)]
pub(crate) struct RuleRecord {
    pub(crate) number: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handle: Option<u64>,
    pub(crate) text: String,
    /// Whether the text has no words of the rule's own language.
    pub(crate) complete: bool,
    /// The rule in its own language.
    pub(crate) words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comment: Option<String>,
    pub(crate) row: Row,
}

impl RuleRecord {
    fn new(
        number: usize,
        explanation: RuleExplanation,
        words: String,
        counters: Option<(u64, u64)>,
    ) -> Self {
        Self {
            number,
            handle: None,
            text: explanation.to_string(),
            complete: explanation.is_complete(),
            words,
            packets: counters.map(|(packets, _)| packets),
            bytes: counters.map(|(_, bytes)| bytes),
            row: explanation.row(),
            comment: explanation.comment.filter(|comment| !comment.is_empty()),
        }
    }

    /// Explains a rule of nf_tables.
    pub(crate) fn of_nft(
        ruleset: &Ruleset,
        table: &SnapshotTable<'_>,
        number: usize,
        rule: &RuleRef<'_>,
    ) -> Self {
        let family = xt::Family::try_from(table.table().family()).ok();
        let options =
            family.and_then(|family| Some((family, rules::decoded(rule, &ruleset.sets)?)));
        let (explanation, words) = match options {
            Some((family, options)) => (
                RuleExplanation::of_iptables(family, &options),
                options.to_string(),
            ),
            None => (
                RuleExplanation::of_nft(table, rule, &ruleset.words),
                chainwright_lang::rule(table, rule, &ruleset.words)
                    .unwrap_or_else(|| rules::format_rule(rule, &ruleset.sets)),
            ),
        };
        Self {
            handle: Some(rule.handle()),
            ..Self::new(number, explanation, words, rules::counters(rule))
        }
    }

    /// Explains a rule of a legacy table.
    pub(crate) fn of_legacy(
        ruleset: &Ruleset,
        family: xt::Family,
        number: usize,
        rule: &legacy::RuleRef<'_>,
    ) -> Self {
        let counters = rule.counters();
        let counters = Some((counters.packets, counters.bytes));
        match rules::entry(rule, &ruleset.sets) {
            Ok(entry) => {
                let explanation = RuleExplanation::of_iptables(family, &entry.rule);
                Self::new(number, explanation, entry.rule.to_string(), counters)
            }
            Err(why) => {
                let unreadable = format!("The rule cannot be read: {why}.");
                Self {
                    text: unreadable,
                    complete: false,
                    row: Row::default(),
                    ..Self::new(number, RuleExplanation::default(), why, counters)
                }
            }
        }
    }
}

impl ChainExplanation {
    /// Keeps one rule.
    fn retain(&mut self, wanted: &RuleName) {
        self.rules.retain(|rule| match wanted {
            RuleName::Number(number) => rule.number == *number,
            RuleName::Handle(handle) => rule.handle == Some(*handle),
        });
    }
}

/// A ruleset and its graph.
pub(crate) struct Explainer<'r> {
    pub(crate) ruleset: &'r Ruleset,
    pub(crate) graph: Graph,
    /// Edges to each node.
    incoming: Vec<Vec<usize>>,
}

impl<'r> Explainer<'r> {
    pub(crate) fn new(ruleset: &'r Ruleset) -> Self {
        let mut graph = Graph::new();
        graph.add_snapshot(&ruleset.snapshot);
        for table in &ruleset.legacy {
            graph.add_legacy(table);
        }
        let mut incoming = vec![Vec::new(); graph.nodes().len()];
        for (place, edge) in graph.edges().iter().enumerate() {
            incoming[edge.to].push(place);
        }
        Self {
            ruleset,
            graph,
            incoming,
        }
    }

    /// Explains a chain with its rules; `None` if the node is no chain.
    pub(crate) fn chain(&self, place: usize) -> Option<ChainExplanation> {
        self.chain_up_to(place, usize::MAX)
    }

    /// Like [`chain`](Self::chain), with at most this many rules.
    pub(crate) fn chain_up_to(&self, place: usize, rules: usize) -> Option<ChainExplanation> {
        let node = self.graph.node(place);
        let table = &self.graph.tables()[node.table];
        let base = match &node.kind {
            NodeKind::Base(base) => Some(base),
            NodeKind::Chain => None,
            NodeKind::Map | NodeKind::Missing => return None,
        };
        let comment = node.comment.as_ref().map(|comment| comment.as_bstr());
        Some(ChainExplanation {
            backend: backend_word(table.backend),
            family: table.family.to_string(),
            table: name_text(&table.name).into_owned(),
            chain: name_text(&node.name).into_owned(),
            hook: base.map(|base| base.hook.clone()),
            priority: base.map(|base| base.priority),
            policy: base.map(|base| if base.drops { "drop" } else { "accept" }),
            devices: self.devices(table, &node.name),
            dormant: table.dormant,
            owner: owner(&table.name, &node.name),
            purpose: purpose::of(table.name.as_bstr(), node.name.as_bstr(), comment),
            from: self.from(place),
            rules: self.rules(table, &node.name, rules),
        })
    }

    /// Returns the devices of a base chain of nf_tables.
    fn devices(&self, table: &Table, chain: &BString) -> Vec<String> {
        let found = match table.backend {
            Backend::Nft => self.ruleset.snapshot.table(table.family, &table.name),
            Backend::Legacy => None,
        };
        let hook = found.and_then(|found| found.chain(chain)?.chain().hook());
        hook.map(|hook| devices(&hook)).unwrap_or_default()
    }

    /// Names the chains and maps that lead to a node.
    fn from(&self, place: usize) -> Vec<String> {
        let edges = self.incoming[place]
            .iter()
            .map(|edge| &self.graph.edges()[*edge]);
        let names = edges.map(|edge| {
            let from = self.graph.node(edge.from);
            let name = name_text(&from.name);
            match (&from.kind, edge.kind) {
                (NodeKind::Map, _) => format!("the map {name}"),
                (_, EdgeKind::Goto) => format!("{name} (goto)"),
                _ => name.into_owned(),
            }
        });
        names.collect()
    }

    fn rules(&self, table: &Table, chain: &BString, most: usize) -> Vec<RuleRecord> {
        let numbers = 1..;
        match table.backend {
            Backend::Nft => {
                let found = self.ruleset.snapshot.table(table.family, &table.name);
                let found = found.and_then(|table| Some((table, table.chain(chain)?)));
                let Some((table, chain)) = found else {
                    return Vec::new();
                };
                let rules = numbers.zip(chain.rules()).take(most);
                rules
                    .map(|(number, rule)| RuleRecord::of_nft(self.ruleset, &table, number, &rule))
                    .collect()
            }
            Backend::Legacy => {
                let mut tables = self.ruleset.legacy.iter();
                let Ok(family) = xt::Family::try_from(table.family) else {
                    return Vec::new();
                };
                let found = tables.find(|one| {
                    one.name().as_bstr() == table.name
                        && xt::Family::try_from(one.family()) == Ok(family)
                });
                let Some(chain) = found.and_then(|found| found.chain(chain)) else {
                    return Vec::new();
                };
                let rules = numbers.zip(chain.rules()).take(most);
                rules
                    .map(|(number, rule)| {
                        RuleRecord::of_legacy(self.ruleset, family, number, &rule)
                    })
                    .collect()
            }
        }
    }
}

/// Explains the chains with the target's name, or one rule of each.
pub(super) fn explained(explainer: &Explainer<'_>, target: &ChainTarget) -> Vec<ChainExplanation> {
    let mut chains = Vec::new();
    for (place, node) in explainer.graph.nodes().iter().enumerate() {
        let table = &explainer.graph.tables()[node.table];
        if node.name == target.chain.as_bytes() && target.admits(table) {
            chains.extend(explainer.chain(place));
        }
    }
    if let Some(rule) = &target.rule {
        chains.iter_mut().for_each(|one| one.retain(rule));
        chains.retain(|one| !one.rules.is_empty());
    }
    chains
}
