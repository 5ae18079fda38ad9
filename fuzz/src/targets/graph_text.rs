//! The graph of a text, even of one that no kernel would accept: it can be written in every form, and names in it
//! cannot create lines. For a script that nf_tables accepts, its edges are those of the resulting ruleset.

use std::collections::BTreeSet;

use chainwright::iptables::Family;
use chainwright::nft::Scope;
use chainwright_lang::Script;
use chainwright_testing::FakeKernel;
use chainwright_trace::graph::{EdgeKind, Graph, NodeKind, ViewOptions};

use crate::Target;
use crate::mutate::InputFormat;

/// The target.
pub const TARGET: Target = Target {
    name: "graph_text",
    input_format: InputFormat::Text,
    run,
};

fn run(input: &[u8]) {
    for family in [Family::Ipv4, Family::Ipv6] {
        let mut graph = Graph::new();
        match graph.add_iptables_text(family, input) {
            Ok(()) => print_all_forms(&graph),
            Err(error) => assert!(error.to_string().starts_with("line "), "{error}"),
        }
    }
    let Ok(script) = Script::parse("input", input) else {
        return;
    };
    let mut graph = Graph::new();
    if graph.add_script(&script).is_err() {
        return;
    }
    print_all_forms(&graph);
    // The graph ignores deletions and changes.
    let others = ["delete", "destroy", "flush", "rename", "replace", "reset"];
    let text = String::from_utf8_lossy(input);
    if others.iter().any(|word| text.contains(word)) {
        return;
    }
    if let Some(taken) = of_ruleset(&script) {
        assert_eq!(named_edges(&graph), named_edges(&taken), "{text}");
    }
}

/// The graph of the ruleset that nf_tables makes of a script; `None` if it refuses the script.
fn of_ruleset(script: &Script) -> Option<Graph> {
    let mut nft = FakeKernel::new().with_any_device().connect().ok()?;
    let nothing = nft.snapshot(Scope::all()).ok()?;
    let change = script.transaction(Some(&nothing)).ok()?;
    nft.commit(change.transaction()).ok()?;
    let mut graph = Graph::new();
    graph.add_snapshot(&nft.snapshot(Scope::all()).ok()?);
    Some(graph)
}

/// The edges, except those of anonymous chains.
fn named_edges(graph: &Graph) -> BTreeSet<(String, String, EdgeKind, String)> {
    let edges = graph.edges().iter().map(|edge| {
        let (from, to) = (graph.node(edge.from), graph.node(edge.to));
        let table = graph.tables()[from.table].to_string();
        (table, from.name.to_string(), edge.kind, to.name.to_string())
    });
    let has_name = |name: &str| !name.starts_with("__");
    edges
        .filter(|(_, from, _, to)| has_name(from) && has_name(to))
        .collect()
}

/// Writes the graph in all forms.
fn print_all_forms(graph: &Graph) {
    let findings = graph.findings();
    for way in &findings.loops {
        for (place, node) in way.iter().enumerate() {
            let next = way[(place + 1) % way.len()];
            assert!(graph.edges_of(*node).any(|edge| edge.to == next), "{way:?}");
        }
    }
    for (_, to) in findings.dangling {
        assert_eq!(graph.node(to).kind, NodeKind::Missing);
    }
    for full in [false, true] {
        let options = ViewOptions {
            full,
            ..ViewOptions::default()
        };
        let view = graph.view(&options);
        let members: usize = view.groups().iter().map(|group| group.members.len()).sum();
        assert_eq!(members, graph.nodes().len());
        let forms = [
            view.tree(80).to_string(),
            view.dot().to_string(),
            view.mermaid().to_string(),
            view.svg().to_string(),
        ];
        for form in &forms {
            assert!(
                !form.contains(|c: char| c.is_control() && c != '\n'),
                "{form:?}"
            );
        }
        for line in forms[0].lines() {
            assert!(line.chars().count() <= 80, "{line:?}");
        }
    }
}
