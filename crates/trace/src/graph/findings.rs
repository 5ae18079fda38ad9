//! Problems in a graph.

use super::{Graph, NodeKind};

/// Problems in a graph, as node indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Loops of chains: each chain refers to the next, the last one to the first. Only one loop is listed for chains
    /// that are part of several.
    pub loops: Vec<Vec<usize>>,
    /// Edges to chains that do not exist: source and target.
    pub dangling: Vec<(usize, usize)>,
    /// Chains and maps without a reference.
    pub unreferenced: Vec<usize>,
    /// Chains and maps that are referenced, but not reachable from a base chain.
    pub unreachable: Vec<usize>,
}

impl Graph {
    /// Finds loops, dangling edges, and unreferenced or unreachable nodes.
    #[must_use]
    pub fn findings(&self) -> Findings {
        let has_incoming = self.has_incoming();
        let edges = self.edges.iter();
        let dangling = edges
            .filter(|edge| self.nodes[edge.to].kind == NodeKind::Missing)
            .map(|edge| (edge.from, edge.to));
        let entries = (0..self.nodes.len()).filter(|index| self.is_base(*index));
        let reached = self.reached_from(entries);
        let (mut unreferenced, mut unreachable) = (Vec::new(), Vec::new());
        for (index, node) in self.nodes.iter().enumerate() {
            match node.kind {
                NodeKind::Base(_) | NodeKind::Missing => {}
                _ if !has_incoming[index] => unreferenced.push(index),
                _ if !reached[index] => unreachable.push(index),
                _ => {}
            }
        }
        Findings {
            loops: self.loops(),
            dangling: dangling.collect(),
            unreferenced,
            unreachable,
        }
    }

    pub(super) fn is_base(&self, index: usize) -> bool {
        matches!(self.nodes[index].kind, NodeKind::Base(_))
    }

    /// Returns which nodes are reachable from these nodes, including themselves.
    pub(super) fn reached_from(&self, entries: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        let mut waiting: Vec<usize> = entries.collect();
        while let Some(index) = waiting.pop() {
            if !std::mem::replace(&mut reached[index], true) {
                waiting.extend(self.edges_of(index).map(|edge| edge.to));
            }
        }
        reached
    }

    /// Returns from which nodes these nodes are reachable, including themselves.
    pub(super) fn leading_to(&self, ends: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut into = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            into[edge.to].push(edge.from);
        }
        let mut leading = vec![false; self.nodes.len()];
        let mut waiting: Vec<usize> = ends.collect();
        while let Some(index) = waiting.pop() {
            if !std::mem::replace(&mut leading[index], true) {
                waiting.extend(&into[index]);
            }
        }
        leading
    }

    /// Returns one loop for each strongly connected component, by Tarjan's algorithm with an explicit stack.
    fn loops(&self) -> Vec<Vec<usize>> {
        const UNVISITED: usize = usize::MAX;
        let count = self.nodes.len();
        let (mut number, mut low) = (vec![UNVISITED; count], vec![UNVISITED; count]);
        let mut is_open = vec![false; count];
        let (mut open, mut next) = (Vec::new(), 0);
        let mut loops = Vec::new();
        // Node, and the number of its edges that were followed.
        let mut path: Vec<(usize, usize)> = Vec::new();
        for start in 0..count {
            if number[start] != UNVISITED {
                continue;
            }
            path.push((start, 0));
            while let Some((node, followed)) = path.last_mut() {
                let (node, at) = (*node, *followed);
                *followed += 1;
                if at == 0 {
                    (number[node], low[node]) = (next, next);
                    next += 1;
                    open.push(node);
                    is_open[node] = true;
                }
                if let Some(index) = self.out[node].get(at) {
                    let to = self.edges[*index as usize].to;
                    if number[to] == UNVISITED {
                        path.push((to, 0));
                    } else if is_open[to] {
                        low[node] = low[node].min(number[to]);
                    }
                    continue;
                }
                path.pop();
                if let Some((before, _)) = path.last() {
                    low[*before] = low[*before].min(low[node]);
                }
                if low[node] == number[node] {
                    let first = open.iter().rposition(|other| *other == node);
                    let part = open.split_off(first.unwrap_or_default());
                    part.iter().for_each(|index| is_open[*index] = false);
                    loops.extend(self.find_cycle(&part));
                }
            }
        }
        loops.sort();
        loops
    }

    /// Returns a shortest loop through the first node of a component; `None` if there is no loop.
    fn find_cycle(&self, part: &[usize]) -> Option<Vec<usize>> {
        let start = *part.iter().min()?;
        if part.len() == 1 {
            let mut edges = self.edges_of(start);
            return edges.any(|edge| edge.to == start).then(|| vec![start]);
        }
        let within: std::collections::HashSet<usize> = part.iter().copied().collect();
        let mut before = std::collections::HashMap::new();
        let mut waiting = std::collections::VecDeque::from([start]);
        while let Some(node) = waiting.pop_front() {
            for to in self.edges_of(node).map(|edge| edge.to) {
                if to == start {
                    let mut path = vec![node];
                    while let Some(previous) = path.last().and_then(|last| before.get(last)) {
                        path.push(*previous);
                    }
                    path.reverse();
                    return Some(path);
                }
                if within.contains(&to) && !before.contains_key(&to) {
                    before.insert(to, node);
                    waiting.push_back(to);
                }
            }
        }
        None
    }
}
