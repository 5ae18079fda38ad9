//! Jump graph of a ruleset: the jumps between chains, for all programs and both backends.
//!
//! | topic | module |
//! |---|---|
//! | chains, maps and edges of a ruleset | `build.rs`; of inconsistent texts: `from_text.rs` |
//! | loops, unreferenced chains, dangling jumps | `findings.rs` |
//! | similar chains as one node, parts of the graph | `view.rs`; similar names: `kind.rs` |
//! | tree for terminals | `tree.rs` |
//! | Graphviz and Mermaid | `diagram.rs` |
//! | picture | `svg.rs`; its layout: `layout.rs` |
//!
//! ```
//! use chainwright::nft::{Chain, Family, Rule, Scope, Table, Transaction, expr::Immediate};
//! use chainwright_testing::FakeKernel;
//! use chainwright_trace::graph::{Graph, ViewOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut tx = Transaction::new();
//! let chain = |name| Chain::new(Family::IP, "t", name);
//! tx.add(&Table::new(Family::IP, "t"))?;
//! tx.add(&chain("in").with_hook("filter", 1, 0))?;
//! tx.add(&chain("web"))?.add(&chain("old"))?;
//! tx.add(&Rule::new(Family::IP, "t", "in").with(&Immediate::jump("web")))?;
//! let mut nft = FakeKernel::new().connect()?;
//! nft.commit(&tx)?;
//!
//! let mut graph = Graph::new();
//! graph.add_snapshot(&nft.snapshot(Scope::all())?);
//! let findings = graph.findings();
//! assert_eq!(graph.node(findings.unreferenced[0]).name, "old");
//!
//! let tree = graph.view(&ViewOptions::default()).tree(80).to_string();
//! assert!(tree.contains("└─ web"));
//! # Ok(())
//! # }
//! ```
//!
//! All functions need time proportional to the ruleset and do not recurse. So they support a sequence of a hundred
//! thousand chains that jump to one another.

mod build;
mod diagram;
mod findings;
#[cfg(feature = "text")]
mod from_text;
mod kind;
mod layout;
mod svg;
#[cfg(test)]
mod tests;
mod tree;
mod view;

use std::collections::HashMap;
use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use chainwright::internal::Escaped;
use chainwright::iptables::Backend;
use chainwright::nft::Family;

pub use diagram::{Dot, Mermaid};
pub use findings::Findings;
#[cfg(feature = "text")]
pub use from_text::TextError;
pub use svg::Svg;
pub use tree::Tree;
pub use view::{Group, Label, Link, Selected, View, ViewOptions};

/// Graph of chains and maps.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    tables: Vec<Table>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Indexes in `edges` for each node, in rule order.
    out: Vec<Vec<u32>>,
    /// Index of each edge.
    known: HashMap<(u32, u32, EdgeKind), u32>,
    /// Nodes of each table by name; a chain and a map may have the same name.
    names: Vec<HashMap<(bool, BString), u32>>,
}

/// Table of a ruleset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Table {
    /// Backend.
    #[cfg_attr(feature = "serde", serde(serialize_with = "backend"))]
    pub backend: Backend,
    /// Family.
    #[cfg_attr(feature = "serde", serde(serialize_with = "shown"))]
    pub family: Family,
    /// Name.
    #[cfg_attr(feature = "serde", serde(serialize_with = "shown"))]
    pub name: BString,
    /// Whether the table is switched off (`flags dormant`).
    pub dormant: bool,
}

#[cfg(feature = "serde")]
fn shown<S: serde::Serializer>(
    value: &impl fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[cfg(feature = "serde")]
fn backend<S: serde::Serializer>(value: &Backend, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match value {
        Backend::Nft => "nft",
        Backend::Legacy => "legacy",
    })
}

impl fmt::Display for Table {
    /// Prints `ip nat (legacy)`; nf_tables is implied.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.name)?;
        match self.backend {
            Backend::Nft => Ok(()),
            Backend::Legacy => f.write_str(" (legacy)"),
        }
    }
}

/// Chain or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Index of its table in [`Graph::tables`].
    pub table: usize,
    /// Name.
    pub name: BString,
    /// NodeKind.
    pub kind: NodeKind,
    /// Number of rules of a chain or elements of a map.
    pub size: usize,
    /// First comment of a rule in it, otherwise of a rule that jumps to it.
    pub comment: Option<BString>,
}

/// NodeKind of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// Base chain.
    Base(Base),
    /// Regular chain.
    Chain,
    /// Verdict map, which rules of several chains may use.
    Map,
    /// Chain that does not exist, but is the target of a rule or element.
    Missing,
}

/// Properties of a base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// `filter`, `nat` or `route`.
    pub chain_type: BString,
    /// `prerouting`, `input`, …
    pub hook: String,
    /// Priority among the chains of the hook; lowest first.
    pub priority: i32,
    /// Whether its policy is drop.
    pub drops: bool,
}

impl fmt::Display for Base {
    /// Prints `prerouting -100, policy drop`; the policy accept is implied.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.hook, self.priority)?;
        match self.drops {
            true => f.write_str(", policy drop"),
            false => Ok(()),
        }
    }
}

/// Kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// Jump with return.
    Jump,
    /// Goto without return.
    Goto,
    /// Map lookup by a rule.
    MapLookup,
}

impl EdgeKind {
    /// Returns `jump`, `goto` or `asks`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jump => "jump",
            Self::Goto => "goto",
            Self::MapLookup => "asks",
        }
    }
}

/// Edge between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Index of the source node.
    pub from: usize,
    /// Index of the target node.
    pub to: usize,
    /// NodeKind.
    pub kind: EdgeKind,
    /// Number of rules or elements.
    pub count: usize,
}

impl Graph {
    /// Creates an empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the tables in the order in which they were added.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the chains and maps, in the order of their table.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the node with this index.
    ///
    /// # Panics
    /// If the index is out of bounds.
    #[must_use]
    pub fn node(&self, place: usize) -> &Node {
        &self.nodes[place]
    }

    /// Returns all edges.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the edges of a node, in rule order.
    pub fn edges_of(&self, node: usize) -> impl ExactSizeIterator<Item = &Edge> {
        self.out[node]
            .iter()
            .map(|place| &self.edges[*place as usize])
    }

    /// Returns the number of chains.
    #[must_use]
    pub fn chain_count(&self) -> usize {
        let chains = self.nodes.iter();
        chains
            .filter(|node| matches!(node.kind, NodeKind::Base(_) | NodeKind::Chain))
            .count()
    }

    /// Returns the index of a chain by name.
    #[must_use]
    pub fn chain(&self, table: usize, name: impl AsRef<[u8]>) -> Option<usize> {
        let key = (false, BString::from(name.as_ref()));
        self.names
            .get(table)?
            .get(&key)
            .map(|place| *place as usize)
    }

    /// Removes all tables, with their contents, for which the predicate is false.
    pub fn retain_tables(&mut self, mut keep: impl FnMut(&Table) -> bool) {
        let all = std::mem::take(self);
        let tables = all.tables.into_iter();
        let tables: Vec<Option<usize>> = tables
            .map(|table| keep(&table).then(|| self.begin(table)))
            .collect();
        let mut moved = vec![None; all.nodes.len()];
        for (place, node) in all.nodes.into_iter().enumerate() {
            let Some(table) = tables[node.table] else {
                continue;
            };
            let to = self.named(table, node.kind == NodeKind::Map, node.name.as_bstr());
            self.nodes[to] = Node { table, ..node };
            moved[place] = Some(to);
        }
        for edge in all.edges {
            if let (Some(from), Some(to)) = (moved[edge.from], moved[edge.to]) {
                self.link(from, to, edge.kind, edge.count);
            }
        }
    }

    /// Adds a table.
    fn begin(&mut self, table: Table) -> usize {
        self.tables.push(table);
        self.names.push(HashMap::new());
        self.tables.len() - 1
    }

    /// Returns the node of this name, which is added if necessary. It counts as missing until it is
    /// [declared](Self::declare).
    fn named(&mut self, table: usize, is_map: bool, name: &BStr) -> usize {
        // Names are stored twice: for the lookup and in the node.
        let key = (is_map, name.to_owned());
        if let Some(place) = self.names[table].get(&key) {
            return *place as usize;
        }
        let place = self.nodes.len();
        self.names[table].insert(key, u32::try_from(place).unwrap_or(u32::MAX));
        self.nodes.push(Node {
            table,
            name: name.to_owned(),
            kind: NodeKind::Missing,
            size: 0,
            comment: None,
        });
        self.out.push(Vec::new());
        place
    }

    /// Sets the kind of a node.
    fn declare(&mut self, table: usize, name: &BStr, kind: NodeKind) -> usize {
        let place = self.named(table, kind == NodeKind::Map, name);
        self.nodes[place].kind = kind;
        place
    }

    /// Adds `count` rules or elements to an edge.
    fn link(&mut self, from: usize, to: usize, how: EdgeKind, count: usize) {
        let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let next = number(self.edges.len());
        let place = *self
            .known
            .entry((number(from), number(to), how))
            .or_insert(next);
        if place == next {
            self.edges.push(Edge {
                from,
                to,
                kind: how,
                count: 0,
            });
            self.out[from].push(place);
        }
        self.edges[place as usize].count += count;
    }

    /// Returns which nodes are the target of another node.
    fn has_incoming(&self) -> Vec<bool> {
        let mut has_incoming = vec![false; self.nodes.len()];
        for edge in &self.edges {
            has_incoming[edge.to] |= edge.from != edge.to;
        }
        has_incoming
    }

    /// Records a rule's comment for its chain and its targets, if they have none yet.
    fn comment(&mut self, from: usize, targets: &[(usize, EdgeKind)], comment: &BStr) {
        let own = std::iter::once(from);
        for place in own.chain(targets.iter().map(|(to, _)| *to)) {
            let node = &mut self.nodes[place];
            let is_plain = matches!(node.kind, NodeKind::Chain | NodeKind::Missing);
            if is_plain && node.comment.is_none() {
                node.comment = Some(comment.to_owned());
            }
        }
    }
}

/// Escapes a name for a line of text.
fn printable(name: &BStr) -> String {
    Escaped(name).to_string()
}
