//! The jump graph of a ruleset: which chains lead to which, whoever wrote them and in whichever backend.
//!
//! | step | where |
//! |---|---|
//! | a ruleset's chains, maps and what leads where | `build.rs`; of texts that no kernel would take: `lenient.rs` |
//! | loops, what nothing leads to, what leads nowhere | `findings.rs` |
//! | chains of one kind as one node, a part of the whole | `view.rs`; kinds by their names: `kind.rs` |
//! | as a tree in a terminal | `tree.rs` |
//! | for Graphviz and Mermaid | `diagram.rs` |
//! | as a picture | `svg.rs`; where what stands: `layout.rs` |
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
//! All of it takes time in proportion to the ruleset, and none of it calls itself: a text with a hundred thousand chains
//! that lead to one another in a row is a graph as any other.

mod build;
mod diagram;
mod findings;
mod kind;
mod layout;
#[cfg(feature = "text")]
mod lenient;
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
pub use lenient::TextError;
pub use svg::Svg;
pub use tree::Tree;
pub use view::{Group, Label, Link, Selected, View, ViewOptions};

/// Chains and maps, and what leads from one to another.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    tables: Vec<Table>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// For each node its edges, by their places in `edges`: in the order of the rules.
    out: Vec<Vec<u32>>,
    /// Which edge there is already.
    known: HashMap<(u32, u32, How), u32>,
    /// The nodes of each table by their names: chains and maps may have the same ones.
    names: Vec<HashMap<(bool, BString), u32>>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Table {
    /// Where it lives.
    #[cfg_attr(feature = "serde", serde(serialize_with = "backend"))]
    pub backend: Backend,
    /// Its family.
    #[cfg_attr(feature = "serde", serde(serialize_with = "shown"))]
    pub family: Family,
    /// Its name.
    #[cfg_attr(feature = "serde", serde(serialize_with = "shown"))]
    pub name: BString,
    /// Whether no packet comes to it, because that was switched off (`flags dormant`).
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
    /// `ip nat (legacy)`; nothing is said of nf_tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.name)?;
        match self.backend {
            Backend::Nft => Ok(()),
            Backend::Legacy => f.write_str(" (legacy)"),
        }
    }
}

/// A chain or a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The place of its table among [`Graph::tables`].
    pub table: usize,
    /// Its name.
    pub name: BString,
    /// What it is.
    pub kind: Kind,
    /// How many rules a chain has; how many elements a map.
    pub size: usize,
    /// The first comment of a rule in it, or else of a rule that leads to it.
    pub comment: Option<BString>,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A chain that packets enter by themselves.
    Base(Base),
    /// A chain that is jumped to.
    Chain,
    /// A map of verdicts, which rules of several chains may ask.
    Map,
    /// A chain that is not there, and that something leads to.
    Missing,
}

/// Where and how packets enter a base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// `filter`, `nat` or `route`.
    pub chain_type: BString,
    /// `prerouting`, `input`, …
    pub hook: String,
    /// The order among the chains of the hook, lowest first.
    pub priority: i32,
    /// Whether a packet is dropped that no rule decides on.
    pub drops: bool,
}

impl fmt::Display for Base {
    /// `prerouting -100, policy drop`; the policy accept is not said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.hook, self.priority)?;
        match self.drops {
            true => f.write_str(", policy drop"),
            false => Ok(()),
        }
    }
}

/// How something leads to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// There and back.
    Jump,
    /// There for good.
    Goto,
    /// A rule asks the map.
    Asks,
}

impl How {
    /// `jump`, `goto` or `asks`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jump => "jump",
            Self::Goto => "goto",
            Self::Asks => "asks",
        }
    }
}

/// What leads from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The place of the node that it leads from.
    pub from: usize,
    /// The place of the node that it leads to.
    pub to: usize,
    /// How.
    pub how: How,
    /// How many rules or elements do.
    pub count: usize,
}

impl Graph {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tables, in the order in which they were added.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The chains and maps; those of a table in its order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node in this place.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn node(&self, place: usize) -> &Node {
        &self.nodes[place]
    }

    /// All edges.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Where a node leads, in the order of its rules.
    pub fn edges_of(&self, node: usize) -> impl ExactSizeIterator<Item = &Edge> {
        self.out[node]
            .iter()
            .map(|place| &self.edges[*place as usize])
    }

    /// How many chains there are.
    #[must_use]
    pub fn chain_count(&self) -> usize {
        let chains = self.nodes.iter();
        chains
            .filter(|node| matches!(node.kind, Kind::Base(_) | Kind::Chain))
            .count()
    }

    /// The place of the chain of this name in a table.
    #[must_use]
    pub fn chain(&self, table: usize, name: impl AsRef<[u8]>) -> Option<usize> {
        let key = (false, BString::from(name.as_ref()));
        self.names
            .get(table)?
            .get(&key)
            .map(|place| *place as usize)
    }

    /// Leaves out all tables but those that are to be kept, with all that is in them.
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
            let to = self.named(table, node.kind == Kind::Map, node.name.as_bstr());
            self.nodes[to] = Node { table, ..node };
            moved[place] = Some(to);
        }
        for edge in all.edges {
            if let (Some(from), Some(to)) = (moved[edge.from], moved[edge.to]) {
                self.lead(from, to, edge.how, edge.count);
            }
        }
    }

    /// Begins a table.
    fn begin(&mut self, table: Table) -> usize {
        self.tables.push(table);
        self.names.push(HashMap::new());
        self.tables.len() - 1
    }

    /// The node of this name, which is made if it is not there: as one that is missing until it is
    /// [declared](Self::declare).
    fn named(&mut self, table: usize, is_map: bool, name: &BStr) -> usize {
        // Names are kept once for the look-up, once in the node.
        let key = (is_map, name.to_owned());
        if let Some(place) = self.names[table].get(&key) {
            return *place as usize;
        }
        let place = self.nodes.len();
        self.names[table].insert(key, u32::try_from(place).unwrap_or(u32::MAX));
        self.nodes.push(Node {
            table,
            name: name.to_owned(),
            kind: Kind::Missing,
            size: 0,
            comment: None,
        });
        self.out.push(Vec::new());
        place
    }

    /// Says what a node is.
    fn declare(&mut self, table: usize, name: &BStr, kind: Kind) -> usize {
        let place = self.named(table, kind == Kind::Map, name);
        self.nodes[place].kind = kind;
        place
    }

    /// Adds what leads from one node to another: so many rules or elements.
    fn lead(&mut self, from: usize, to: usize, how: How, count: usize) {
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
                how,
                count: 0,
            });
            self.out[from].push(place);
        }
        self.edges[place as usize].count += count;
    }

    /// What something leads to besides itself.
    fn led_to(&self) -> Vec<bool> {
        let mut led_to = vec![false; self.nodes.len()];
        for edge in &self.edges {
            led_to[edge.to] |= edge.from != edge.to;
        }
        led_to
    }

    /// Notes what a rule says of itself: for its own chain, if that has no word yet, and for those that it leads to.
    fn comment(&mut self, from: usize, targets: &[(usize, How)], comment: &BStr) {
        let own = std::iter::once(from);
        for place in own.chain(targets.iter().map(|(to, _)| *to)) {
            let node = &mut self.nodes[place];
            let is_plain = matches!(node.kind, Kind::Chain | Kind::Missing);
            if is_plain && node.comment.is_none() {
                node.comment = Some(comment.to_owned());
            }
        }
    }
}

/// A name as it stands in a line of text: with escapes in place of what would end or forge it.
fn printable(name: &BStr) -> String {
    Escaped(name).to_string()
}
