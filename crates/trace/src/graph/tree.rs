//! Graphs as indented trees.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};

use super::view::thousands;
use super::{EdgeKind, NodeKind, View};

/// Maximum depth of a tree, if lines are long enough. The kernel follows 16 jumps; deeper chains start a tree of their
/// own.
const MAX_DEPTH: usize = 20;
/// Indentation for each level.
const STEP: usize = 3;
/// Maximum number of children that are shown, unless the view is full.
const MAX_CHILDREN: usize = 40;
/// Minimum space for a name.
const MIN_NAME_WIDTH: usize = 16;

/// Displays trees, table by table, followed by the findings.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'v, 'g> {
    view: &'v View<'g>,
    width: usize,
}

impl<'g> View<'g> {
    /// Formats the view as trees, with lines of at most this many characters if possible.
    #[must_use]
    pub const fn tree(&self, width: usize) -> Tree<'_, 'g> {
        Tree { view: self, width }
    }
}

/// Line to print.
struct Line {
    group: usize,
    /// Indentation before its own branch.
    indent: String,
    branch: &'static str,
    kind: Option<EdgeKind>,
    depth: usize,
    /// Number of chains that are not shown, instead of a group.
    more: usize,
}

/// State of printing a table.
struct TreeState {
    /// Groups printed with all their targets.
    expanded: Vec<bool>,
    /// Groups that need no tree of their own, because they were printed or are part of a cut list.
    seen: Vec<bool>,
    /// Groups announced as "below".
    announced: Vec<bool>,
    /// Roots of trees.
    roots: VecDeque<usize>,
}

impl fmt::Display for Tree<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.view;
        let has_incoming = view.has_incoming();
        let none = vec![false; view.groups.len()];
        let mut grown = TreeState {
            expanded: none.clone(),
            seen: none.clone(),
            announced: none,
            roots: VecDeque::new(),
        };
        for (number, (table, groups)) in view.by_table().into_iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            self.heading(f, table, &groups)?;
            // Base chains first, then unreferenced groups, then loops.
            let is_base = |group: &usize| matches!(view.kind(*group), NodeKind::Base(_));
            let roots = &mut grown.roots;
            roots.extend(groups.iter().filter(|g| is_base(g)));
            roots.extend(groups.iter().filter(|g| !is_base(g) && !has_incoming[**g]));
            roots.extend(groups.iter().filter(|g| !is_base(g) && has_incoming[**g]));
            while let Some(root) = grown.roots.pop_front() {
                // Unconnected groups are listed below.
                let alone = !is_base(&root) && view.out[root].is_empty() && !has_incoming[root];
                let is_owed = grown.announced[root] && !grown.expanded[root];
                if is_owed || (!grown.seen[root] && !alone) {
                    self.grow(f, root, &mut grown)?;
                }
            }
        }
        self.findings(f)
    }
}

const fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

impl Tree<'_, '_> {
    /// Prints `table ip nat: 11 chains, 333 rules`.
    fn heading(&self, f: &mut fmt::Formatter<'_>, table: usize, groups: &[usize]) -> fmt::Result {
        let view = self.view;
        let (mut chains, mut rules) = (0, 0);
        for group in groups {
            if matches!(view.kind(*group), NodeKind::Base(_) | NodeKind::Chain) {
                chains += view.groups[*group].members.len();
                rules += view.groups[*group].size;
            }
        }
        let dormant = match view.graph.tables[table].dormant {
            true => ", dormant",
            false => "",
        };
        let behind = format!(
            "{dormant}: {} chain{}, {} rule{}",
            thousands(chains),
            plural(chains),
            thousands(rules),
            plural(rules),
        );
        let available = self
            .width
            .saturating_sub(length(&behind))
            .max(MIN_NAME_WIDTH);
        writeln!(f, "{}{behind}", shortened(&view.heading(table), available))
    }

    /// Returns the maximum depth that leaves space for a name and its surroundings.
    fn max_depth(&self) -> usize {
        /// `  `, `goto `, ` (below)` and ` 12,345 rules`.
        const AROUND: usize = 28;
        let available = self.width.saturating_sub(MIN_NAME_WIDTH + AROUND);
        (available / STEP).clamp(1, MAX_DEPTH)
    }

    /// Prints one tree.
    fn grow(&self, f: &mut fmt::Formatter<'_>, root: usize, grown: &mut TreeState) -> fmt::Result {
        let (view, max_depth) = (self.view, self.max_depth());
        let mut waiting = vec![Line {
            group: root,
            indent: String::new(),
            branch: "",
            kind: None,
            depth: 0,
            more: 0,
        }];
        while let Some(line) = waiting.pop() {
            if line.more > 0 {
                let more = thousands(line.more);
                writeln!(f, "  {}{}… {more} more", line.indent, line.branch)?;
                continue;
            }
            let group = line.group;
            grown.seen[group] = true;
            let has_targets = !view.out[group].is_empty();
            let again = grown.expanded[group] && has_targets;
            let too_deep = line.depth >= max_depth && has_targets && !again;
            let note = match (again, too_deep) {
                (true, _) => " (above)",
                (_, true) => " (below)",
                _ => "",
            };
            self.line(f, &line, note)?;
            if too_deep && !std::mem::replace(&mut grown.announced[group], true) {
                grown.roots.push_back(group);
            }
            if !again && !too_deep {
                grown.expanded[group] = true;
                self.branches(line, &mut waiting, &mut grown.seen);
            }
        }
        Ok(())
    }

    /// Adds the lines below a line, last one first.
    fn branches(&self, line: Line, waiting: &mut Vec<Line>, seen: &mut [bool]) {
        let (view, group, depth) = (self.view, line.group, line.depth + 1);
        let indent = line.indent
            + match line.branch {
                "" => "",
                "└─ " => "   ",
                _ => "│  ",
            };
        let links = view.out[group].len();
        let shown = match view.full {
            true => links,
            false => links.min(MAX_CHILDREN),
        };
        let more = links - shown;
        if more > 0 {
            // Neither these groups nor their targets become trees of their own because of the cut.
            let rest = view.out[group][shown..].iter();
            let mut left: Vec<usize> = rest.map(|link| view.links[*link].to).collect();
            while let Some(hidden) = left.pop() {
                if !std::mem::replace(&mut seen[hidden], true) {
                    left.extend(view.links_of(hidden).map(|link| link.to));
                }
            }
            waiting.push(Line {
                group,
                indent: indent.clone(),
                branch: "└─ ",
                kind: None,
                depth,
                more,
            });
        }
        for (index, link) in view.links_of(group).take(shown).enumerate().rev() {
            let last = index + 1 == shown && more == 0;
            waiting.push(Line {
                group: link.to,
                indent: indent.clone(),
                branch: if last { "└─ " } else { "├─ " },
                kind: Some(link.kind),
                depth,
                more: 0,
            });
        }
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, line: &Line, note: &str) -> fmt::Result {
        let view = self.view;
        let group = &view.groups[line.group];
        let mut left = format!("  {}{}", line.indent, line.branch);
        match line.kind {
            Some(EdgeKind::Goto) => left.push_str("goto "),
            Some(EdgeKind::MapLookup) => left.push_str("map "),
            Some(EdgeKind::Jump) | None => {}
        }
        let size = match note {
            " (above)" => String::new(),
            _ => view.size(line.group),
        };
        let mut behind = note.to_owned();
        if let NodeKind::Base(base) = view.kind(line.group) {
            let _ = write!(behind, "  {base}");
        }
        let available = self
            .width
            .saturating_sub(length(&left) + length(&size) + 2)
            .max(MIN_NAME_WIDTH);
        let mut name = group.title();
        if let Some(label) = &group.label {
            let _ = write!(name, "  {label}");
        }
        let name = shortened(
            &name,
            available
                .saturating_sub(length(&behind))
                .max(MIN_NAME_WIDTH),
        );
        left.push_str(&name);
        left.push_str(&behind);
        if size.is_empty() {
            return writeln!(f, "{left}");
        }
        // The first rule is on the line on which the others' text begins.
        let plural = usize::from(!size.ends_with('s') && !size.ends_with("there"));
        let column = self.width.saturating_sub(length(&size) + plural);
        writeln!(
            f,
            "{left:column$}{size}",
            column = column.max(length(&left) + 1)
        )
    }

    /// Prints the findings.
    fn findings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (view, graph) = (self.view, self.view.graph);
        let findings = graph.findings();
        let mut group_of = vec![None; graph.nodes.len()];
        for (index, group) in view.groups.iter().enumerate() {
            group
                .members
                .iter()
                .for_each(|node| group_of[*node] = Some(index));
        }
        // Nodes of one group are listed once.
        let titles = |nodes: &mut dyn Iterator<Item = usize>| {
            let mut groups: Vec<usize> = nodes.filter_map(|node| group_of[node]).collect();
            groups.sort_unstable();
            groups.dedup();
            groups
        };
        // Leaves space for at least one name.
        let available = self
            .width
            .saturating_sub(2 * MIN_NAME_WIDTH)
            .max(MIN_NAME_WIDTH);
        let table = |group: usize| {
            let table = graph.tables[view.groups[group].table].to_string();
            shortened(&super::printable(table.as_str().into()), available)
        };
        let name = |node: usize| super::printable(graph.nodes[node].name.as_slice().into());
        let mut has_heading = false;
        let mut head = |f: &mut fmt::Formatter<'_>, text: &str| {
            if !std::mem::replace(&mut has_heading, true) {
                writeln!(f)?;
            }
            writeln!(f, "{text}")
        };
        let shown = |nodes: &[usize]| nodes.iter().all(|node| group_of[*node].is_some());
        let loops: Vec<_> = findings.loops.iter().filter(|cycle| shown(cycle)).collect();
        if !loops.is_empty() {
            head(
                f,
                "Loops, which the kernel rejects where packets can reach them:",
            )?;
            for cycle in self.some(&loops) {
                let round = cycle.iter().chain(cycle.first());
                let names: Vec<String> = round.map(|node| name(*node)).collect();
                let of = group_of[cycle[0]].map(table).unwrap_or_default();
                self.list(f, &format!("  {of}: "), &names, " → ")?;
            }
            self.rest(f, &loops)?;
        }
        let dangling = findings.dangling.iter();
        let dangling: Vec<_> = dangling.filter(|(from, to)| shown(&[*from, *to])).collect();
        if !dangling.is_empty() {
            head(f, "Jumps to missing chains, which the kernel rejects:")?;
            for (from, to) in self.some(&dangling) {
                let of = group_of[*from].map(table).unwrap_or_default();
                self.list(f, &format!("  {of}: "), &[name(*from), name(*to)], " → ")?;
            }
            self.rest(f, &dangling)?;
        }
        for (heading, nodes) in [
            ("Unreferenced:", &findings.unreferenced),
            (
                "Referenced, but not reachable from a base chain:",
                &findings.unreachable,
            ),
        ] {
            let groups = titles(&mut nodes.iter().copied());
            if groups.is_empty() {
                continue;
            }
            head(f, heading)?;
            for of in groups.chunk_by(|a, b| view.groups[*a].table == view.groups[*b].table) {
                let names: Vec<_> = of.iter().map(|group| view.groups[*group].title()).collect();
                self.list(f, &format!("  {}: ", table(of[0])), &names, ", ")?;
            }
        }
        Ok(())
    }

    /// Returns the part of a list that is shown.
    fn some<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        match self.view.full {
            true => all,
            false => &all[..all.len().min(MAX_CHILDREN)],
        }
    }

    /// Prints how many entries are not shown.
    fn rest<T>(&self, f: &mut fmt::Formatter<'_>, all: &[T]) -> fmt::Result {
        match all.len() - self.some(all).len() {
            0 => Ok(()),
            rest => writeln!(f, "  … {} more", thousands(rest)),
        }
    }

    /// Prints a list, wrapped.
    fn list(
        &self,
        f: &mut fmt::Formatter<'_>,
        head: &str,
        names: &[String],
        between: &str,
    ) -> fmt::Result {
        let shown = self.some(names);
        let mut line = head.to_owned();
        let rest = names.len() - shown.len();
        let more = (rest > 0).then(|| format!("… {} more", thousands(rest)));
        let mut words = shown.iter().chain(&more).peekable();
        while let Some(word) = words.next() {
            let behind = if words.peek().is_some() { between } else { "" };
            let available = self.width.max(MIN_NAME_WIDTH + 4) - 4;
            let word = shortened(word, available - length(between));
            if length(&line) + length(&word) + length(behind.trim_end()) > self.width {
                writeln!(f, "{}", line.trim_end())?;
                line = "    ".to_owned();
            }
            line.push_str(&word);
            line.push_str(behind);
        }
        writeln!(f, "{}", line.trim_end())
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Shortens a text to its beginning and end.
pub(super) fn shortened(text: &str, available: usize) -> String {
    let long = length(text);
    if long <= available {
        return text.to_owned();
    }
    let head = available / 3;
    let tail = available.saturating_sub(head + 1);
    let mut short: String = text.chars().take(head).collect();
    short.push('…');
    short.extend(text.chars().skip(long - tail));
    short
}
