//! Faults of a table, its chains and its objects.

use bstr::BStr;
use chainwright::nft::{DataType, Policy, RuleRef, SetFlags, SnapshotChain, TableFlags};

use super::chain;
use super::finding::{Fault, Finding, Location, Part};
use super::table::{TableContext, chain_of, map_chains};
use crate::graph::{Graph, NodeKind};

/// Collects the findings of a table.
struct Findings<'f, 's> {
    table: &'f TableContext<'s>,
    all: &'f mut Vec<Finding>,
}

impl Findings<'_, '_> {
    fn add(&mut self, part: Option<Part>, fault: Fault) {
        let location = Location {
            family: self.table.family,
            table: self.table.table.table().name().to_owned(),
            part,
        };
        self.all.push(Finding { location, fault });
    }

    fn add_rule(&mut self, chain: &BStr, number: usize, rule: &RuleRef<'_>, fault: Fault) {
        let part = Part::Rule {
            chain: chain.to_owned(),
            number,
            handle: Some(rule.handle()).filter(|handle| *handle != 0),
        };
        self.add(Some(part), fault);
    }
}

/// Examines a table.
pub(super) fn examine(table: &TableContext<'_>, all: &mut Vec<Finding>) {
    let source = &table.table;
    let mut findings = Findings { table, all };
    let flags = source.table().flags().unwrap_or_default();
    if flags.contains(TableFlags::DORMANT) {
        findings.add(None, Fault::Dormant);
    }
    chains(&mut findings);
    for chain in source.chains() {
        let name = chain.chain().name();
        let has_hook = chain.chain().hook().is_some();
        let drops = chain.chain().policy() == Some(Policy::DROP);
        if has_hook && drops && chain.rules().len() == 0 {
            findings.add(Some(Part::Chain(name.to_owned())), Fault::DropsAll);
        }
        missing_chains(&mut findings, &chain);
        chain::examine(table, &chain, &mut |number, rule, fault| {
            findings.add_rule(name, number, rule, fault);
        });
    }
    objects(&mut findings);
}

/// Finds loops, and chains that no packet reaches.
fn chains(findings: &mut Findings<'_, '_>) {
    let mut graph = Graph::new();
    graph.add_table(&findings.table.table);
    let has_owner = findings.table.table.table().comment().is_some();
    for finding in of_graph(&graph, has_owner) {
        // Rules and maps report missing chains themselves; expressions that were not read may lead to a chain.
        let is_reported = match finding.fault {
            Fault::MissingChain { .. } => false,
            Fault::Unreferenced { .. } | Fault::Unreached => findings.table.uses.is_complete,
            _ => true,
        };
        if is_reported {
            findings.all.push(finding);
        }
    }
}

/// Returns the faults of a graph.
pub(super) fn of_graph(graph: &Graph, has_owner: bool) -> Vec<Finding> {
    let found = graph.findings();
    let mut all = Vec::new();
    let mut add = |index: usize, fault| {
        let node = graph.node(index);
        let table = &graph.tables()[node.table];
        let part = match node.kind {
            NodeKind::Map => Part::Set(node.name.clone()),
            _ => Part::Chain(node.name.clone()),
        };
        let location = Location {
            family: table.family,
            table: table.name.clone(),
            part: Some(part),
        };
        all.push(Finding { location, fault });
    };
    for (from, to) in &found.dangling {
        let name = graph.node(*to).name.clone();
        add(*from, Fault::MissingChain { name });
    }
    for chains in &found.loops {
        let names = chains.iter().map(|index| graph.node(*index).name.clone());
        let names = names.collect();
        if let Some(first) = chains.first() {
            add(*first, Fault::Loop { chains: names });
        }
    }
    let is_chain = |index: &&usize| graph.node(**index).kind == NodeKind::Chain;
    for index in found.unreferenced.iter().filter(is_chain) {
        let rules = graph.node(*index).size;
        add(*index, Fault::Unreferenced { rules, has_owner });
    }
    for index in found.unreachable.iter().filter(is_chain) {
        add(*index, Fault::Unreached);
    }
    all
}

/// Finds jumps to chains that do not exist.
fn missing_chains(findings: &mut Findings<'_, '_>, chain: &SnapshotChain<'_>) {
    for (number, rule) in (1..).zip(chain.rules()) {
        for expression in rule.expressions().into_iter().flatten().flatten() {
            let target = expression.view().ok().and_then(|view| chain_of(&view));
            let target = target.filter(|name| findings.table.table.chain(name).is_none());
            if let Some(name) = target {
                let fault = Fault::MissingChain { name };
                findings.add_rule(chain.chain().name(), number, &rule, fault);
            }
        }
    }
}

/// Finds unused sets, objects and flowtables, and sets without elements.
fn objects(findings: &mut Findings<'_, '_>) {
    let (source, uses) = (&findings.table.table, &findings.table.uses);
    for set in source.sets() {
        if set.set().data_type() == Some(DataType::VERDICT) {
            let mut missing: Vec<_> = map_chains(&set).into_iter().collect();
            missing.retain(|name| source.chain(name).is_none());
            missing.sort_unstable();
            for name in missing {
                let part = Part::Set(set.set().name().to_owned());
                findings.add(Some(part), Fault::MissingChain { name });
            }
        }
    }
    if !uses.is_complete {
        return;
    }
    for set in source.sets() {
        let set_ref = set.set();
        let name = set_ref.name();
        let flags = set_ref.flags().unwrap_or_default();
        if flags.contains(SetFlags::ANONYMOUS) {
            continue;
        }
        let is_written = uses.written.contains(name);
        let part = Some(Part::Set(name.to_owned()));
        let has_comment = set_ref.comment().is_some();
        if !is_written && !uses.looked_up.contains(name) {
            findings.add(part, Fault::Unused { has_comment });
        } else if !is_written
            && !has_comment
            && !flags.contains(SetFlags::EVAL)
            && set.elements().next().is_none()
        {
            findings.add(part, Fault::EmptySet);
        }
    }
    for object in source.objects() {
        let kind = object.object_type();
        let name = object.name();
        if !uses.objects.contains(&(kind.0, name)) {
            let has_comment = object.comment().is_some();
            let part = Part::Object(kind, name.to_owned());
            findings.add(Some(part), Fault::Unused { has_comment });
        }
    }
    for flowtable in source.flowtables() {
        let name = flowtable.name();
        if !uses.flowtables.contains(name) {
            let part = Part::Flowtable(name.to_owned());
            findings.add(Some(part), Fault::Unused { has_comment: false });
        }
    }
}
