//! Graphs in Graphviz' and Mermaid's languages.

use std::fmt;

use super::{EdgeKind, NodeKind, View};

/// Displays a Graphviz `digraph` with a cluster for each table.
#[derive(Debug, Clone, Copy)]
pub struct Dot<'v, 'g>(&'v View<'g>);

/// Displays a Mermaid `flowchart` with a subgraph for each table.
#[derive(Debug, Clone, Copy)]
pub struct Mermaid<'v, 'g>(&'v View<'g>);

impl<'g> View<'g> {
    /// Formats the view for Graphviz.
    #[must_use]
    pub const fn dot(&self) -> Dot<'_, 'g> {
        Dot(self)
    }

    /// Formats the view for Mermaid.
    #[must_use]
    pub const fn mermaid(&self) -> Mermaid<'_, 'g> {
        Mermaid(self)
    }

    /// Returns the text of a group: name, label, hook, number of rules.
    pub(super) fn lines(&self, group: usize) -> Vec<String> {
        let mut lines = vec![self.groups[group].title()];
        lines.extend(self.groups[group].label.clone());
        lines.push(match self.kind(group) {
            NodeKind::Base(base) => format!("{base} · {}", self.size(group)),
            NodeKind::Map => format!("map · {}", self.size(group)),
            _ => self.size(group),
        });
        lines
    }
}

/// Escapes lines for a double-quoted string, separated by `\n`.
fn quoted(lines: &[String]) -> String {
    let lines = lines
        .iter()
        .map(|line| line.replace('\\', "\\\\").replace('"', "\\\""));
    lines.collect::<Vec<_>>().join("\\n")
}

impl fmt::Display for Dot<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.0;
        writeln!(f, "digraph ruleset {{")?;
        writeln!(f, "  rankdir=LR;")?;
        writeln!(
            f,
            "  node [shape=box, fontname=monospace, fontsize=10, style=filled, fillcolor=white];"
        )?;
        for (table, groups) in view.by_table() {
            writeln!(f, "  subgraph cluster_{table} {{")?;
            writeln!(f, "    label=\"{}\";", quoted(&[view.heading(table)]))?;
            for group in groups {
                let label = quoted(&view.lines(group));
                let look = match view.kind(group) {
                    NodeKind::Base(_) => ", fillcolor=lightblue",
                    NodeKind::Chain if view.groups[group].members.len() > 1 => ", peripheries=2",
                    NodeKind::Chain => "",
                    NodeKind::Map => ", shape=cylinder, fillcolor=lightyellow",
                    NodeKind::Missing => ", color=red, style=dashed",
                };
                writeln!(f, "    n{group} [label=\"{label}\"{look}];")?;
            }
            writeln!(f, "  }}")?;
        }
        for link in &view.links {
            let style = match link.kind {
                EdgeKind::Jump => "solid",
                EdgeKind::Goto => "dashed",
                EdgeKind::MapLookup => "dotted",
            };
            write!(f, "  n{} -> n{} [style={style}", link.from, link.to)?;
            if link.count > 1 {
                write!(f, ", label=\"{}\"", link.count)?;
            }
            writeln!(f, "];")?;
        }
        writeln!(f, "}}")
    }
}

/// Escapes a text for a double-quoted string in Mermaid, which uses entities.
fn entities(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("#quot;"),
            '#' => escaped.push_str("#35;"),
            '&' => escaped.push_str("#amp;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '`' => escaped.push_str("#96;"),
            // Markdown emphasis.
            '*' => escaped.push_str("#42;"),
            '_' => escaped.push_str("#95;"),
            other => escaped.push(other),
        }
    }
    escaped
}

impl fmt::Display for Mermaid<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.0;
        writeln!(f, "flowchart LR")?;
        for (table, groups) in view.by_table() {
            let heading = entities(&view.heading(table));
            writeln!(f, "  subgraph t{table}[\"{heading}\"]")?;
            for group in groups {
                let lines: Vec<_> = view
                    .lines(group)
                    .iter()
                    .map(|line| entities(line))
                    .collect();
                let label = lines.join("<br>");
                let (open, close) = match view.kind(group) {
                    NodeKind::Base(_) => ("([", "])"),
                    NodeKind::Map => ("[(", ")]"),
                    NodeKind::Missing => ("{{", "}}"),
                    NodeKind::Chain if view.groups[group].members.len() > 1 => ("[[", "]]"),
                    NodeKind::Chain => ("[", "]"),
                };
                writeln!(f, "    n{group}{open}\"{label}\"{close}")?;
            }
            writeln!(f, "  end")?;
        }
        for link in &view.links {
            let arrow = match link.kind {
                EdgeKind::Jump => "-->",
                EdgeKind::Goto => "==>",
                EdgeKind::MapLookup => "-.->",
            };
            match link.count {
                1 => writeln!(f, "  n{} {arrow} n{}", link.from, link.to)?,
                count => writeln!(f, "  n{} {arrow}|{count}| n{}", link.from, link.to)?,
            }
        }
        Ok(())
    }
}
