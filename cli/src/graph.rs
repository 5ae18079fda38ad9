//! `chainwright graph`: the graph of chains.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use bstr::ByteSlice as _;
use chainwright::nft::{Family, Snapshot};
use chainwright_kube::explain::{self, ChainInfo};
use chainwright_trace::graph::{Graph, Node, NodeKind, Selected, ViewOptions};
use clap::ValueEnum;
use serde::Serialize;

use crate::legacy_tables;
use crate::output::{Error, Exit, Output, eprint_line, note};
use crate::progress::Progress;
use crate::ruleset_source::Source;
use crate::scope::{Backend, Found, Scope, UnreadPart};
use crate::trace_output::wrapped;

/// Show the jumps between chains, as a tree or a graph
///
/// Follows the jumps and gotos of rules and maps, starting at base chains. Prints a tree for a terminal, or the input
/// of Graphviz (dot) or Mermaid, or a picture (SVG). Many similar chains, such as kube-proxy's chains of services, are
/// folded into one, unless --full is given. Also lists problems: chains that packets cannot reach, and, in a file,
/// jumps to missing chains and loops of chains.
///
/// Chains of Kubernetes are shown with their services.
///
/// The exit code is 1 if there is nothing to show.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,

    /// Only chains on paths to and from the chains of this Kubernetes service: NAME, NAMESPACE/NAME or
    /// NAMESPACE/NAME:PORT
    #[arg(long, value_name = "SERVICE", conflicts_with = "chain")]
    service: Option<String>,

    /// Only chains on paths to and from chains with this name
    #[arg(long, value_name = "CHAIN")]
    chain: Option<OsString>,

    /// Show every chain, without folding
    #[arg(long)]
    full: bool,

    /// Read this file instead of the kernel's tables: a snapshot, output of iptables-save, or a ruleset in nft's
    /// language; standard input if it is `-`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// trees of lines
    Text,
    /// Graphviz
    Dot,
    /// Mermaid
    Mermaid,
    /// a picture
    Svg,
}

/// The graph in JSON: nodes are indexes into `nodes`.
#[derive(Serialize)]
struct Document<'g> {
    tables: &'g [chainwright_trace::graph::Table],
    nodes: Vec<NodeRecord>,
    edges: Vec<EdgeRecord>,
    loops: Vec<Vec<usize>>,
    dangling: Vec<[usize; 2]>,
    unreferenced: Vec<usize>,
    unreachable: Vec<usize>,
    not_read: &'g [UnreadPart],
}

#[derive(Serialize)]
struct NodeRecord {
    table: usize,
    name: String,
    kind: &'static str,
    size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<explain::Role>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
}

#[derive(Serialize)]
struct EdgeRecord {
    from: usize,
    to: usize,
    #[serde(rename = "how")]
    kind: &'static str,
    count: usize,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    let mut found = Found::default();
    let progress = Progress::new("reading the ruleset");
    let graph = match &args.file {
        Some(file) => of_file(&Source::read(file, &args.scope)?, args)?,
        None => of_kernel(args, &mut found)?,
    };
    drop(progress);
    let selected = match args.selected(&graph) {
        Ok(selected) => selected,
        Err(missing) => {
            note(&missing);
            return Ok(Exit::Absent);
        }
    };
    let options = ViewOptions {
        full: args.full,
        selected,
        label: Some(&label),
    };
    let view = graph.view(&options);
    let any = !view.groups().is_empty();
    let mut out = Output::new();
    if json {
        let nodes = ViewOptions {
            full: true,
            ..options
        };
        out.json("graph", &document(&graph.view(&nodes), &found))?;
    } else {
        match args.format {
            _ if !any => {}
            Format::Text => write!(out, "{}", view.tree(WIDTH))?,
            Format::Dot => write!(out, "{}", view.dot())?,
            Format::Mermaid => write!(out, "{}", view.mermaid())?,
            Format::Svg => write!(out, "{}", view.svg())?,
        }
    }
    out.flush()?;
    let filtered = args.scope.is_filtered();
    let backend = args.scope.place.listed();
    Ok(found.end(any, "chain", filtered || args.file.is_some(), backend, json))
}

/// Maximum length of lines.
const WIDTH: usize = 80;

impl Args {
    /// Returns the selected chains, or an error message if there are none.
    fn selected(&self, graph: &Graph) -> Result<Option<Selected>, String> {
        let meant = |node: &Node| match (&self.service, &self.chain) {
            (Some(requested), _) => part(node)
                .and_then(|part| part.port)
                .is_some_and(|port| explain::matches_port(&port, requested)),
            (None, Some(chain)) => node.kind != NodeKind::Map && node.name == chain.as_bytes(),
            (None, None) => false,
        };
        let what = match (&self.service, &self.chain) {
            (None, None) => return Ok(None),
            (Some(service), _) => format!("chain of a service {service:?}"),
            (_, Some(chain)) => format!("chain {chain:?}"),
        };
        let nodes = graph.nodes().iter().enumerate();
        let nodes: Vec<usize> = nodes
            .filter(|(_, node)| meant(node))
            .map(|(place, _)| place)
            .collect();
        match nodes.is_empty() {
            true => Err(format!("no such {what}")),
            false => Ok(Some(Selected::Nodes(nodes))),
        }
    }

    fn admits(&self, snapshot: &Snapshot) -> Option<Snapshot> {
        match self.scope.is_filtered() {
            false => Some(snapshot.clone()),
            true => snapshot.filtered(&self.scope.filter()),
        }
    }
}

/// Returns the purpose of a Kubernetes chain.
fn part(node: &Node) -> Option<ChainInfo> {
    ChainInfo::of(
        &node.name,
        node.comment.as_ref().map(|comment| comment.as_bstr()),
    )
}

/// Describes the purpose of a Kubernetes chain, if its name does not.
pub(crate) fn label(node: &Node) -> Option<String> {
    let part = part(node)?;
    // Chains that exist only once have descriptive names.
    part.port.as_ref()?;
    let in_name = part.endpoint.is_some() || node.name.contains(&b'/');
    (!in_name).then(|| part.port.unwrap_or_default())
}

fn of_kernel(args: &Args, found: &mut Found) -> Result<Graph, Error> {
    let mut graph = Graph::new();
    let backend = args.scope.place.listed();
    if let Some(snapshot) = found.nft(backend, || args.scope.read_selected())? {
        graph.add_snapshot(&snapshot);
    }
    legacy_tables::read_selected(&args.scope, found, &mut |table| {
        graph.add_legacy(table);
        Ok(())
    })?;
    Ok(graph)
}

/// Returns the graph of a file. If the kernel would refuse the file, shows it anyway, with the reason.
fn of_file(source: &Source, args: &Args) -> Result<Graph, Error> {
    if args.scope.place.listed() == Backend::Legacy {
        return Err(Error::Other("--backend cannot be used with a file".into()));
    }
    let mut graph = Graph::new();
    let refused = match source.snapshot() {
        Ok(snapshot) => {
            if let Some(part) = args.admits(&snapshot) {
                graph.add_snapshot(&part);
            }
            return Ok(graph);
        }
        Err(refused) => refused,
    };
    graph = source.graph()?;
    let filter = args.scope.filter();
    graph.retain_tables(|table| {
        let of_family = [Family::UNSPEC, table.family].contains(&filter.family);
        of_family && args.scope.admits_table(&table.name)
    });
    note("the kernel would reject this:");
    for line in refused.lines() {
        // In a line that shows a position, spaces matter.
        match line.chars().count() > WIDTH {
            true => wrapped("", line).iter().for_each(|line| eprint_line(line)),
            false => eprint_line(line),
        }
    }
    Ok(graph)
}

fn document<'g>(view: &chainwright_trace::graph::View<'g>, found: &'g Found) -> Document<'g> {
    let graph = view.graph();
    // The shown nodes, in order.
    let mut place_of = vec![None; graph.nodes().len()];
    let mut nodes = Vec::new();
    for group in view.groups() {
        let member = group.members[0];
        place_of[member] = Some(nodes.len());
        nodes.push(record(graph.node(member)));
    }
    let edges = view.links().iter().map(|link| EdgeRecord {
        from: link.from,
        to: link.to,
        kind: link.kind.name(),
        count: link.count,
    });
    let findings = graph.findings();
    let places = |nodes: &[usize]| nodes.iter().map(|node| place_of[*node]).collect();
    let all = |nodes: &[usize]| -> Option<Vec<usize>> { places(nodes) };
    let shown = |nodes: &[usize]| nodes.iter().filter_map(|node| place_of[*node]).collect();
    Document {
        tables: graph.tables(),
        nodes,
        edges: edges.collect(),
        loops: findings
            .loops
            .iter()
            .filter_map(|nodes| all(nodes))
            .collect(),
        dangling: findings
            .dangling
            .iter()
            .filter_map(|(from, to)| Some([place_of[*from]?, place_of[*to]?]))
            .collect(),
        unreferenced: shown(&findings.unreferenced),
        unreachable: shown(&findings.unreachable),
        not_read: &found.not_read,
    }
}

fn record(node: &Node) -> NodeRecord {
    let base = match &node.kind {
        NodeKind::Base(base) => Some(base),
        _ => None,
    };
    let part = part(node);
    NodeRecord {
        table: node.table,
        name: node.name.to_string(),
        kind: match node.kind {
            NodeKind::Base(_) => "base",
            NodeKind::Chain => "chain",
            NodeKind::Map => "map",
            NodeKind::Missing => "missing",
        },
        size: node.size,
        hook: base.map(|base| base.hook.clone()),
        priority: base.map(|base| base.priority),
        policy: base.map(|base| if base.drops { "drop" } else { "accept" }),
        role: part.as_ref().map(|part| part.role),
        service: part.and_then(|part| part.port),
    }
}
