//! Views of a graph: selected parts, and similar chains grouped.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::{EdgeKind, Graph, Node, NodeKind, kind, printable};

/// Options of a view.
#[derive(Default)]
pub struct ViewOptions<'o> {
    /// Show each chain individually.
    pub full: bool,
    /// Show only a part.
    pub selected: Option<Selected>,
    /// Additional labels of chains.
    pub label: Option<&'o Label>,
}

/// Returns an additional label of a chain, if it has one.
pub type Label = dyn Fn(&Node) -> Option<String>;

/// Part of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// Tables with this name.
    Table(BString),
    /// These nodes, the paths to them, and everything reachable from them.
    Nodes(Vec<usize>),
}

/// Maximum number of similar chains that are shown individually.
const ONE_BY_ONE: usize = 8;
/// Maximum number of groups of similar chains with different targets; more are merged.
const MAX_TARGET_GROUPS: usize = 6;
/// Maximum number of refinements of groups by their targets.
const ROUNDS: usize = 8;
/// Maximum number of nodes below the selected ones that are shown individually.
const ONE_BY_ONE_BELOW: usize = 64;

/// A graph or part of it, with similar chains grouped if their edges end at similar chains.
#[derive(Debug, Clone)]
pub struct View<'g> {
    pub(super) graph: &'g Graph,
    pub(super) groups: Vec<Group>,
    pub(super) links: Vec<Link>,
    /// Links of each group.
    pub(super) out: Vec<Vec<usize>>,
    /// Whether each node is shown individually and no list is cut.
    pub(super) full: bool,
}

/// A node, or several nodes shown as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Index of the table in [`Graph::tables`].
    pub table: usize,
    /// Name; for several nodes, their common prefix and `*`.
    pub name: String,
    /// Additional label.
    pub label: Option<String>,
    /// Indexes of the nodes.
    pub members: Vec<usize>,
    /// Total number of rules or elements.
    pub size: usize,
}

/// Link between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Index of the source group.
    pub from: usize,
    /// Index of the target group.
    pub to: usize,
    /// NodeKind.
    pub kind: EdgeKind,
    /// Number of rules or elements.
    pub count: usize,
}

impl Group {
    /// Returns `KUBE-SVC-* ×306`, or the name of a single node.
    #[must_use]
    pub fn title(&self) -> String {
        match self.members.len() {
            0 | 1 => self.name.clone(),
            many => format!("{} ×{many}", self.name),
        }
    }
}

impl Graph {
    /// Creates a view.
    #[must_use]
    pub fn view(&self, options: &ViewOptions<'_>) -> View<'_> {
        let part = Part::of(self, options.selected.as_ref());
        let (grouped, kinds) = self.grouped(&part, options.full);
        let mut groups: Vec<Group> = Vec::new();
        let mut places = HashMap::new();
        let mut group_of = vec![usize::MAX; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().filter(|(p, _)| part.kept[*p]) {
            let group = *places.entry(grouped[index]).or_insert(groups.len());
            group_of[index] = group;
            match groups.get_mut(group) {
                Some(group) => {
                    group.members.push(index);
                    group.size += node.size;
                }
                None => groups.push(Group {
                    table: node.table,
                    name: printable(node.name.as_bstr()),
                    label: options
                        .label
                        .and_then(|label| label(node))
                        .map(|label| printable(label.as_str().into())),
                    members: vec![index],
                    size: node.size,
                }),
            }
        }
        for group in groups.iter_mut().filter(|group| group.members.len() > 1) {
            group.name = printable(kinds[&group.members[0]]) + "*";
            group.label = None;
        }
        let mut links: Vec<Link> = Vec::new();
        let mut known = HashMap::new();
        let mut out = vec![Vec::new(); groups.len()];
        for index in groups.iter().flat_map(|group| &group.members) {
            for edge in self
                .edges_of(*index)
                .filter(|edge| part.keeps(edge.from, edge.to))
            {
                let (from, to) = (group_of[edge.from], group_of[edge.to]);
                let link = *known.entry((from, to, edge.kind)).or_insert(links.len());
                if link == links.len() {
                    out[from].push(link);
                    links.push(Link {
                        from,
                        to,
                        kind: edge.kind,
                        count: 0,
                    });
                }
                links[link].count += edge.count;
            }
        }
        View {
            graph: self,
            groups,
            links,
            out,
            full: options.full,
        }
    }

    /// Returns a class for each node, which is the same for nodes shown as one, and the name prefixes of nodes that
    /// may be grouped.
    fn grouped(&self, part: &Part, full: bool) -> (Vec<usize>, HashMap<usize, &BStr>) {
        let mut kinds: HashMap<usize, &BStr> = HashMap::new();
        let mut class: Vec<usize> = (0..self.nodes.len()).collect();
        if full {
            return (class, kinds);
        }
        let entries = (0..self.nodes.len()).filter(|index| self.is_base(*index));
        let reached = self.reached_from(entries);
        let has_incoming = self.has_incoming();
        let mut families: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if !part.kept[index] || part.pinned[index] || self.is_base(index) {
                continue;
            }
            if let Some(kind) = kind::of(node.name.as_bstr()) {
                let sort = std::mem::discriminant(&node.kind);
                let key = (node.table, sort, kind, reached[index], has_incoming[index]);
                families.entry(key).or_default().push(index);
            }
        }
        families.retain(|_, members| members.len() > ONE_BY_ONE);
        for ((_, _, kind, ..), members) in &families {
            for index in members {
                class[*index] = members[0];
                kinds.insert(*index, kind);
            }
        }
        self.part_by_where_they_lead(part, &mut class, &kinds);
        // Too many classes of similar names: merge the rare ones.
        for members in families.values() {
            let mut sizes: HashMap<usize, usize> = HashMap::new();
            for index in members {
                *sizes.entry(class[*index]).or_default() += 1;
            }
            if sizes.len() <= MAX_TARGET_GROUPS {
                continue;
            }
            let mut sizes: Vec<_> = sizes.into_iter().collect();
            sizes.sort_by_key(|(class, size)| (std::cmp::Reverse(*size), *class));
            let rare: HashMap<usize, usize> = sizes[MAX_TARGET_GROUPS - 1..]
                .iter()
                .map(|(class, _)| (*class, sizes[MAX_TARGET_GROUPS - 1].0))
                .collect();
            for index in members {
                if let Some(other) = rare.get(&class[*index]) {
                    class[*index] = *other;
                }
            }
        }
        (class, kinds)
    }

    /// Splits classes whose members have edges to different classes, until nothing changes or the limit is reached.
    fn part_by_where_they_lead(
        &self,
        part: &Part,
        class: &mut Vec<usize>,
        kinds: &HashMap<usize, &BStr>,
    ) {
        let mut before = 0;
        for _ in 0..ROUNDS {
            let mut parted: HashMap<(usize, Vec<(EdgeKind, usize)>), usize> = HashMap::new();
            let mut next = class.clone();
            let mut members: Vec<usize> = kinds.keys().copied().collect();
            members.sort_unstable();
            for index in members {
                let edges = self.edges_of(index);
                let mut targets: Vec<_> = edges
                    .filter(|edge| part.keeps(edge.from, edge.to))
                    .map(|edge| (edge.kind, class[edge.to]))
                    .collect();
                targets.sort_unstable();
                targets.dedup();
                // The first member gives the class its number.
                next[index] = *parted.entry((class[index], targets)).or_insert(index);
            }
            *class = next;
            if parted.len() == before {
                break;
            }
            before = parted.len();
        }
    }
}

/// Selected part of a graph.
struct Part {
    kept: Vec<bool>,
    /// Nodes that are shown individually.
    pinned: Vec<bool>,
    /// Nodes from which selected nodes are reachable; `None` without a selection.
    above: Option<Vec<bool>>,
    below: Vec<bool>,
}

impl Part {
    fn of(graph: &Graph, selected: Option<&Selected>) -> Self {
        let count = graph.nodes.len();
        let all = |kept| Self {
            kept,
            pinned: vec![false; count],
            above: None,
            below: Vec::new(),
        };
        match selected {
            None => all(vec![true; count]),
            Some(Selected::Table(name)) => {
                let nodes = graph.nodes.iter();
                all(nodes
                    .map(|node| graph.tables[node.table].name == *name)
                    .collect())
            }
            Some(Selected::Nodes(nodes)) => {
                let above = graph.leading_to(nodes.iter().copied());
                let below = graph.reached_from(nodes.iter().copied());
                let kept = above.iter().zip(&below).map(|(a, b)| *a || *b).collect();
                let few = below.iter().filter(|is| **is).count() <= ONE_BY_ONE_BELOW;
                let mut pinned = match few {
                    true => below.clone(),
                    false => vec![false; count],
                };
                nodes.iter().for_each(|index| pinned[*index] = true);
                Self {
                    kept,
                    pinned,
                    above: Some(above),
                    below,
                }
            }
        }
    }

    /// Returns `true` if an edge is shown. Above the selected nodes, only edges towards them are.
    fn keeps(&self, from: usize, to: usize) -> bool {
        match &self.above {
            None => self.kept[from] && self.kept[to],
            Some(above) => self.below[from] || above[to],
        }
    }
}

impl<'g> View<'g> {
    /// Returns the underlying graph.
    #[must_use]
    pub const fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Returns the groups, in the order of their first nodes.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the links.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the first node of a group.
    pub(super) fn first(&self, group: usize) -> &'g Node {
        &self.graph.nodes[self.groups[group].members[0]]
    }

    pub(super) fn kind(&self, group: usize) -> &'g NodeKind {
        &self.first(group).kind
    }

    pub(super) fn links_of(
        &self,
        group: usize,
    ) -> impl DoubleEndedIterator<Item = &Link> + ExactSizeIterator {
        self.out[group].iter().map(|link| &self.links[*link])
    }

    /// Returns the tables with visible groups, and these groups.
    pub(super) fn by_table(&self) -> Vec<(usize, Vec<usize>)> {
        let mut groups = vec![Vec::new(); self.graph.tables.len()];
        for (index, group) in self.groups.iter().enumerate() {
            groups[group.table].push(index);
        }
        let tables = groups.into_iter().enumerate();
        tables.filter(|(_, groups)| !groups.is_empty()).collect()
    }

    /// Returns the heading of a table: `table ip nat (legacy)`.
    pub(super) fn heading(&self, table: usize) -> String {
        let table = self.graph.tables[table].to_string();
        format!("table {}", printable(table.as_str().into()))
    }

    /// Returns which groups are the target of another group.
    pub(super) fn has_incoming(&self) -> Vec<bool> {
        let mut has_incoming = vec![false; self.groups.len()];
        for link in &self.links {
            has_incoming[link.to] |= link.from != link.to;
        }
        has_incoming
    }

    /// Formats the number of rules or elements of a group: `1 rule`.
    pub(super) fn size(&self, group: usize) -> String {
        let size = self.groups[group].size;
        let word = match (self.kind(group), size) {
            (NodeKind::Missing, _) => return "missing".to_owned(),
            (NodeKind::Map, 1) => "element",
            (NodeKind::Map, _) => "elements",
            (_, 1) => "rule",
            _ => "rules",
        };
        format!("{} {word}", thousands(size))
    }
}

/// Formats a number like `12,345`.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
