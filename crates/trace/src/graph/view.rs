//! What of a graph is shown, and how much of it as one.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::{Graph, How, Kind, Node, kind, printable};

/// How a graph is shown.
#[derive(Default)]
pub struct ViewOptions<'o> {
    /// Each chain by itself, however many there are of a kind.
    pub full: bool,
    /// Only a part of it.
    pub selected: Option<Selected>,
    /// What a chain is called beside its name.
    pub label: Option<&'o Label>,
}

/// What says how a chain is called beside its name, if it is.
pub type Label = dyn Fn(&Node) -> Option<String>;

/// A part of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// Tables with this name.
    Table(BString),
    /// These nodes, the ways to them, and all that they lead to.
    Nodes(Vec<usize>),
}

/// Up to so many chains of a kind are shown one by one.
const ONE_BY_ONE: usize = 8;
/// So many groups of chains of a kind there may be that lead to different chains; more are one.
const DIFFERENT: usize = 6;
/// So often groups are parted by where their chains lead.
const ROUNDS: usize = 8;
/// Up to so many nodes below those that were selected are shown one by one.
const ONE_BY_ONE_BELOW: usize = 64;

/// A graph, or a part of it, in which chains of one kind that lead to the same kinds of chains are one.
#[derive(Debug, Clone)]
pub struct View<'g> {
    pub(super) graph: &'g Graph,
    pub(super) groups: Vec<Group>,
    pub(super) links: Vec<Link>,
    /// For each group its links.
    pub(super) out: Vec<Vec<usize>>,
    /// Whether each is shown by itself, and nothing is cut.
    pub(super) full: bool,
}

/// A node, or several that are shown as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The place of the table among [`Graph::tables`].
    pub table: usize,
    /// The name; of several what their names begin with, and a `*`.
    pub name: String,
    /// What it is called beside that.
    pub label: Option<String>,
    /// The nodes.
    pub members: Vec<usize>,
    /// Rules of them all, or elements.
    pub size: usize,
}

/// What leads from one group to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// From where.
    pub from: usize,
    /// To where.
    pub to: usize,
    /// How.
    pub how: How,
    /// By how many rules or elements.
    pub count: usize,
}

impl Group {
    /// `KUBE-SVC-* ×306`, or the name of the one that it is.
    #[must_use]
    pub fn title(&self) -> String {
        match self.members.len() {
            0 | 1 => self.name.clone(),
            many => format!("{} ×{many}", self.name),
        }
    }
}

impl Graph {
    /// What of it is shown.
    #[must_use]
    pub fn view(&self, options: &ViewOptions<'_>) -> View<'_> {
        let part = Part::of(self, options.selected.as_ref());
        let (grouped, kinds) = self.grouped(&part, options.full);
        let mut groups: Vec<Group> = Vec::new();
        let mut places = HashMap::new();
        let mut group_of = vec![usize::MAX; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate().filter(|(p, _)| part.kept[*p]) {
            let group = *places.entry(grouped[place]).or_insert(groups.len());
            group_of[place] = group;
            match groups.get_mut(group) {
                Some(group) => {
                    group.members.push(place);
                    group.size += node.size;
                }
                None => groups.push(Group {
                    table: node.table,
                    name: printable(node.name.as_bstr()),
                    label: options
                        .label
                        .and_then(|label| label(node))
                        .map(|label| printable(label.as_str().into())),
                    members: vec![place],
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
        for place in groups.iter().flat_map(|group| &group.members) {
            for edge in self
                .edges_of(*place)
                .filter(|edge| part.keeps(edge.from, edge.to))
            {
                let (from, to) = (group_of[edge.from], group_of[edge.to]);
                let link = *known.entry((from, to, edge.how)).or_insert(links.len());
                if link == links.len() {
                    out[from].push(link);
                    links.push(Link {
                        from,
                        to,
                        how: edge.how,
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

    /// A number for each node, the same for those that are shown as one; and of those that may be, what their names
    /// begin with.
    fn grouped(&self, part: &Part, full: bool) -> (Vec<usize>, HashMap<usize, &BStr>) {
        let mut kinds: HashMap<usize, &BStr> = HashMap::new();
        let mut class: Vec<usize> = (0..self.nodes.len()).collect();
        if full {
            return (class, kinds);
        }
        let entries = (0..self.nodes.len()).filter(|place| self.is_base(*place));
        let reached = self.reached_from(entries);
        let led_to = self.led_to();
        let mut families: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, node) in self.nodes.iter().enumerate() {
            if !part.kept[place] || part.pinned[place] || self.is_base(place) {
                continue;
            }
            if let Some(kind) = kind::of(node.name.as_bstr()) {
                let sort = std::mem::discriminant(&node.kind);
                let key = (node.table, sort, kind, reached[place], led_to[place]);
                families.entry(key).or_default().push(place);
            }
        }
        families.retain(|_, members| members.len() > ONE_BY_ONE);
        for ((_, _, kind, ..), members) in &families {
            for place in members {
                class[*place] = members[0];
                kinds.insert(*place, kind);
            }
        }
        self.part_by_where_they_lead(part, &mut class, &kinds);
        // Where there are too many kinds of them, the rare ones are one.
        for members in families.values() {
            let mut sizes: HashMap<usize, usize> = HashMap::new();
            for place in members {
                *sizes.entry(class[*place]).or_default() += 1;
            }
            if sizes.len() <= DIFFERENT {
                continue;
            }
            let mut sizes: Vec<_> = sizes.into_iter().collect();
            sizes.sort_by_key(|(class, size)| (std::cmp::Reverse(*size), *class));
            let rare: HashMap<usize, usize> = sizes[DIFFERENT - 1..]
                .iter()
                .map(|(class, _)| (*class, sizes[DIFFERENT - 1].0))
                .collect();
            for place in members {
                if let Some(other) = rare.get(&class[*place]) {
                    class[*place] = *other;
                }
            }
        }
        (class, kinds)
    }

    /// Parts classes whose members lead to different classes, until none does, or often enough.
    fn part_by_where_they_lead(
        &self,
        part: &Part,
        class: &mut Vec<usize>,
        kinds: &HashMap<usize, &BStr>,
    ) {
        let mut before = 0;
        for _ in 0..ROUNDS {
            let mut parted: HashMap<(usize, Vec<(How, usize)>), usize> = HashMap::new();
            let mut next = class.clone();
            let mut members: Vec<usize> = kinds.keys().copied().collect();
            members.sort_unstable();
            for place in members {
                let edges = self.edges_of(place);
                let mut leads: Vec<_> = edges
                    .filter(|edge| part.keeps(edge.from, edge.to))
                    .map(|edge| (edge.how, class[edge.to]))
                    .collect();
                leads.sort_unstable();
                leads.dedup();
                // The first of them gives the class its number.
                next[place] = *parted.entry((class[place], leads)).or_insert(place);
            }
            *class = next;
            if parted.len() == before {
                break;
            }
            before = parted.len();
        }
    }
}

/// What of a graph is kept.
struct Part {
    kept: Vec<bool>,
    /// What is shown by itself.
    pinned: Vec<bool>,
    /// Where ways lead to what was selected; `None` if all was.
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
                nodes.iter().for_each(|place| pinned[*place] = true);
                Self {
                    kept,
                    pinned,
                    above: Some(above),
                    below,
                }
            }
        }
    }

    /// Whether what leads from one node to another is shown: of those above the selected ones only what leads on to
    /// them.
    fn keeps(&self, from: usize, to: usize) -> bool {
        match &self.above {
            None => self.kept[from] && self.kept[to],
            Some(above) => self.below[from] || above[to],
        }
    }
}

impl<'g> View<'g> {
    /// The graph that it shows.
    #[must_use]
    pub const fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// What is shown, in the order of the first node of each.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// What leads where.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The first node of a group.
    pub(super) fn first(&self, group: usize) -> &'g Node {
        &self.graph.nodes[self.groups[group].members[0]]
    }

    pub(super) fn kind(&self, group: usize) -> &'g Kind {
        &self.first(group).kind
    }

    pub(super) fn links_of(
        &self,
        group: usize,
    ) -> impl DoubleEndedIterator<Item = &Link> + ExactSizeIterator {
        self.out[group].iter().map(|link| &self.links[*link])
    }

    /// The tables that something is shown of, each with its groups.
    pub(super) fn by_table(&self) -> Vec<(usize, Vec<usize>)> {
        let mut groups = vec![Vec::new(); self.graph.tables.len()];
        for (place, group) in self.groups.iter().enumerate() {
            groups[group.table].push(place);
        }
        let tables = groups.into_iter().enumerate();
        tables.filter(|(_, groups)| !groups.is_empty()).collect()
    }

    /// `table ip nat (legacy)`.
    pub(super) fn heading(&self, table: usize) -> String {
        let table = self.graph.tables[table].to_string();
        format!("table {}", printable(table.as_str().into()))
    }

    /// Whether something leads to a group besides itself.
    pub(super) fn led_to(&self) -> Vec<bool> {
        let mut led_to = vec![false; self.groups.len()];
        for link in &self.links {
            led_to[link.to] |= link.from != link.to;
        }
        led_to
    }

    /// How many rules or elements a group has: `1 rule`.
    pub(super) fn size(&self, group: usize) -> String {
        let size = self.groups[group].size;
        let word = match (self.kind(group), size) {
            (Kind::Missing, _) => return "not there".to_owned(),
            (Kind::Map, 1) => "element",
            (Kind::Map, _) => "elements",
            (_, 1) => "rule",
            _ => "rules",
        };
        format!("{} {word}", thousands(size))
    }
}

/// `12,345`.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
