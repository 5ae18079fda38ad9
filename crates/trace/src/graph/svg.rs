//! Graphs as SVG.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use super::layout::{Drawn, Layout};
use super::tree::shortened;
use super::{EdgeKind, NodeKind, View};

/// Width of a character in a monospaced font at [`SIZE`].
const CHARACTER: f64 = 7.25;
/// Font size.
const SIZE: f64 = 12.0;
/// Line height.
const LINE: f64 = 16.0;
/// Padding of a box.
const INSIDE: f64 = 10.0;
/// Padding around the boxes of a table.
const AROUND: f64 = 20.0;
/// Height of a table's heading.
const HEADING: f64 = 30.0;
/// Distance between two tables.
const TABLES: f64 = 24.0;
/// Maximum length of a line in a box, in characters; longer names are wrapped.
const MAX_LINE_LENGTH: usize = 64;
/// Maximum number of lines of a name: enough for any name that the kernel accepts.
const LINES: usize = 5;
/// Extent of a self-loop beyond its box.
const LOOP: f64 = 32.0;
/// Distance between two rows of unconnected boxes.
const ROWS: f64 = 18.0;
/// Width of a row of unconnected boxes.
const ALONE: f64 = 1000.0;

/// Displays an SVG picture with a panel for each table, from base chains on the left to their targets.
#[derive(Debug, Clone, Copy)]
pub struct Svg<'v, 'g>(&'v View<'g>);

impl<'g> View<'g> {
    /// Formats the view as SVG.
    #[must_use]
    pub const fn svg(&self) -> Svg<'_, 'g> {
        Svg(self)
    }
}

/// Escapes a text for XML, which cannot represent two noncharacters.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Colors of edges and of back edges.
const WAY: &str = "#7a8694";
const RING: &str = "#c62828";

/// Style of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Enter,
    Drop,
    Map,
    Missing,
    Chain,
    Unreferenced,
}

impl Look {
    const fn of(kind: &NodeKind, has_incoming: bool) -> Self {
        match kind {
            NodeKind::Base(base) if base.drops => Self::Drop,
            NodeKind::Base(_) => Self::Enter,
            NodeKind::Map => Self::Map,
            NodeKind::Missing => Self::Missing,
            NodeKind::Chain if has_incoming => Self::Chain,
            NodeKind::Chain => Self::Unreferenced,
        }
    }

    /// Returns the fill and border color.
    const fn colors(self) -> (&'static str, &'static str) {
        match self {
            Self::Enter => ("#d6e6f7", "#3b6ea5"),
            Self::Drop => ("#f8d7da", "#a33a44"),
            Self::Map => ("#fdf3cf", "#a8851c"),
            Self::Missing => ("#ffffff", RING),
            Self::Chain => ("#ffffff", "#5f6b7a"),
            Self::Unreferenced => ("#ececec", "#9a9a9a"),
        }
    }

    /// Returns the dash attribute of the border.
    const fn dashes(self) -> &'static str {
        match self {
            Self::Missing => r#" stroke-dasharray="5 3""#,
            _ => "",
        }
    }
}

/// Returns the dash attribute of an edge.
const fn dashes(how: EdgeKind) -> &'static str {
    match how {
        EdgeKind::Jump => "",
        EdgeKind::Goto => r#" stroke-dasharray="7 3""#,
        EdgeKind::MapLookup => r#" stroke-dasharray="2 3""#,
    }
}

/// Wraps a text into as few lines of at most [`MAX_LINE_LENGTH`] characters as possible, of similar length, preferably after
/// a separator.
fn wrapped(text: &str) -> Vec<String> {
    let text: Vec<char> = shortened(text, LINES * MAX_LINE_LENGTH).chars().collect();
    let (mut lines, mut rest) = (Vec::new(), &text[..]);
    while rest.len() > MAX_LINE_LENGTH {
        let parts = |one: &char| matches!(one, '-' | '_' | '/' | '.' | ':' | ' ');
        let even = rest.len().div_ceil(rest.len().div_ceil(MAX_LINE_LENGTH));
        let behind = rest[even - 1..MAX_LINE_LENGTH].iter().position(parts);
        let end = behind.map_or(even, |place| even + place);
        lines.push(rest[..end].iter().collect());
        rest = &rest[end..];
    }
    lines.push(rest.iter().collect());
    lines
}

/// Text of a box.
struct Text {
    /// Name, wrapped.
    name: Vec<String>,
    /// Lines below it.
    more: Vec<String>,
}

impl Text {
    fn lines(&self) -> impl Iterator<Item = &String> {
        self.name.iter().chain(&self.more)
    }

    /// Returns the width and height of the box.
    fn size(&self) -> (f64, f64) {
        let longest = self.lines().map(|line| line.chars().count()).max();
        let width = longest.unwrap_or(0) as f64 * CHARACTER + 2.0 * INSIDE;
        (width, self.lines().count() as f64 * LINE + INSIDE)
    }
}

/// Panel of a table.
struct Panel {
    heading: String,
    parts: Vec<Drawing>,
    /// Unconnected groups with their positions below the others.
    alone: Vec<(usize, f64, f64)>,
    width: f64,
    height: f64,
}

impl Panel {
    /// Returns the vertical position of the next row.
    fn next_row(&self) -> f64 {
        match self.height > 0.0 {
            true => self.height + ROWS,
            false => 0.0,
        }
    }
}

/// Connected groups with their layout.
struct Drawing {
    groups: Vec<usize>,
    links: Vec<usize>,
    layout: Layout,
    top: f64,
}

impl View<'_> {
    fn text_of(&self, group: usize) -> Text {
        let mut lines = self.lines(group).into_iter();
        Text {
            name: wrapped(&lines.next().unwrap_or_default()),
            more: lines
                .map(|line| shortened(&line, MAX_LINE_LENGTH))
                .collect(),
        }
    }

    fn panel(&self, table: usize, of_table: Vec<usize>) -> Panel {
        let heading = self.heading(table);
        let mut panel = Panel {
            width: heading.chars().count() as f64 * (CHARACTER + 1.5),
            heading,
            parts: Vec::new(),
            alone: Vec::new(),
            height: 0.0,
        };
        let (parts, rest) = self.parts(&of_table);
        for groups in parts {
            let layout = self.layout(&groups);
            let top = panel.next_row();
            panel.width = panel.width.max(layout.layout.width);
            panel.height = top + layout.layout.height;
            panel.parts.push(Drawing { top, ..layout });
        }
        let widest = panel.width.max(ALONE);
        let (mut x, mut y) = (0.0, panel.next_row());
        for group in rest {
            let (w, h) = self.text_of(group).size();
            if x > 0.0 && x + w > widest {
                (x, y) = (0.0, panel.next_row());
            }
            panel.alone.push((group, x, y));
            panel.width = panel.width.max(x + w);
            panel.height = panel.height.max(y + h);
            x += w + ROWS;
        }
        panel.width += 2.0 * AROUND;
        panel.height += HEADING + 2.0 * AROUND;
        panel
    }

    /// Splits a table's groups into connected components and unconnected groups.
    fn parts(&self, of_table: &[usize]) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut near: HashMap<usize, Vec<usize>> = HashMap::new();
        for link in of_table.iter().flat_map(|group| self.links_of(*group)) {
            near.entry(link.from).or_default().push(link.to);
            near.entry(link.to).or_default().push(link.from);
        }
        let (mut parts, mut alone) = (Vec::new(), Vec::new());
        let mut seen = vec![false; self.groups.len()];
        for start in of_table {
            if !near.contains_key(start) {
                alone.push(*start);
                continue;
            }
            let (mut part, mut waiting) = (Vec::new(), vec![*start]);
            while let Some(group) = waiting.pop() {
                if !std::mem::replace(&mut seen[group], true) {
                    part.push(group);
                    waiting.extend(near.get(&group).into_iter().flatten());
                }
            }
            if !part.is_empty() {
                part.sort_unstable();
                parts.push(part);
            }
        }
        (parts, alone)
    }

    /// Lays out a component.
    fn layout(&self, groups: &[usize]) -> Drawing {
        let places = groups.iter().enumerate();
        let place_of: HashMap<usize, usize> =
            places.map(|(place, group)| (*group, place)).collect();
        let links = groups.iter().flat_map(|group| self.out[*group].iter());
        let links: Vec<usize> = links.copied().collect();
        let sizes = groups.iter().map(|group| self.text_of(*group).size());
        let ends = links.iter().map(|link| &self.links[*link]);
        let drawn = Drawn {
            boxes: sizes.collect(),
            edges: ends
                .map(|link| (place_of[&link.from], place_of[&link.to]))
                .collect(),
        };
        let mut layout = drawn.layout();
        for (at, _) in drawn.edges.iter().filter(|(from, to)| from == to) {
            let right = layout.boxes[*at].0 + drawn.boxes[*at].0;
            layout.width = layout.width.max(right + LOOP);
        }
        Drawing {
            groups: groups.to_vec(),
            links,
            layout,
            top: 0.0,
        }
    }

    fn draw_box(
        &self,
        f: &mut fmt::Formatter<'_>,
        group: usize,
        has_incoming: bool,
        (x, y): (f64, f64),
    ) -> fmt::Result {
        let text = self.text_of(group);
        let (width, height) = text.size();
        let look = Look::of(self.kind(group), has_incoming);
        let ((fill, stroke), dashes) = (look.colors(), look.dashes());
        let corner = if look == Look::Map { 12 } else { 3 };
        // Several nodes are drawn as a stack.
        let behind: &[f64] = match self.groups[group].members.len() {
            0 | 1 => &[0.0],
            _ => &[6.0, 3.0, 0.0],
        };
        for behind in behind {
            writeln!(
                f,
                r#"<rect x="{:.1}" y="{:.1}" width="{width:.1}" height="{height:.1}" rx="{corner}" fill="{fill}" stroke="{stroke}"{dashes}/>"#,
                x + behind,
                y + behind,
            )?;
        }
        for (number, line) in text.lines().enumerate() {
            let look = match number < text.name.len() {
                true => r#"font-weight="bold""#,
                false => r##"fill="#4a4a4a" font-size="11""##,
            };
            writeln!(
                f,
                r#"<text x="{:.1}" y="{:.1}" {look}>{}</text>"#,
                x + INSIDE,
                y + LINE * (number as f64 + 1.0),
                escaped(line)
            )?;
        }
        Ok(())
    }

    fn draw_edge(
        &self,
        f: &mut fmt::Formatter<'_>,
        link: usize,
        route: &[(f64, f64)],
        back: bool,
        (dx, dy): (f64, f64),
    ) -> fmt::Result {
        let link = &self.links[link];
        let mut path = String::new();
        let mut points = route.iter().map(|(x, y)| (x + dx, y + dy));
        let Some((mut x, mut y)) = points.next() else {
            return Ok(());
        };
        write!(path, "M{x:.1} {y:.1}")?;
        if link.from == link.to {
            // Around the corner of its own box.
            write!(path, "c40 -10 40 -34 -12 -{:.1}", LINE * 1.5)?;
        } else {
            for (nx, ny) in points {
                let middle = f64::midpoint(x, nx);
                write!(
                    path,
                    "C{middle:.1} {y:.1} {middle:.1} {ny:.1} {nx:.1} {ny:.1}"
                )?;
                (x, y) = (nx, ny);
            }
        }
        let color = if back { RING } else { WAY };
        let dashed = dashes(link.kind);
        let width = 1.0 + (link.count as f64).log10() * 0.6;
        let arrow = if back { "ring" } else { "arrow" };
        writeln!(
            f,
            r#"<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:.1}"{dashed} marker-end="url(#{arrow})"><title>{} {}: {} → {}</title></path>"#,
            link.count,
            link.kind.name(),
            escaped(&self.groups[link.from].name),
            escaped(&self.groups[link.to].name),
        )
    }

    fn draw_panel(
        &self,
        f: &mut fmt::Formatter<'_>,
        panel: &Panel,
        has_incoming: &[bool],
        top: f64,
    ) -> fmt::Result {
        let (left, inner) = (2.0 * AROUND, top + HEADING + AROUND);
        writeln!(
            f,
            r##"<rect x="{AROUND:.1}" y="{top:.1}" width="{:.1}" height="{:.1}" rx="6" fill="#fafbfc" stroke="#c8ced6"/>"##,
            panel.width, panel.height
        )?;
        writeln!(
            f,
            r##"<text x="{left:.1}" y="{:.1}" font-size="14" font-weight="bold" fill="#2b3440">{}</text>"##,
            top + 24.0,
            escaped(&panel.heading)
        )?;
        for part in &panel.parts {
            let (layout, inner) = (&part.layout, inner + part.top);
            let routes = part.links.iter().zip(&layout.routes).zip(&layout.back);
            for ((link, route), back) in routes {
                self.draw_edge(f, *link, route, *back, (left, inner))?;
            }
            for (group, (x, y)) in part.groups.iter().zip(&layout.boxes) {
                self.draw_box(f, *group, has_incoming[*group], (left + x, inner + y))?;
            }
        }
        for (group, x, y) in &panel.alone {
            self.draw_box(f, *group, has_incoming[*group], (left + x, inner + y))?;
        }
        Ok(())
    }

    /// Returns the legend entries for the styles in the picture.
    fn legend(&self, panels: &[Panel], has_incoming: &[bool]) -> Vec<(Sample, &'static str)> {
        let has = |look| {
            let mut groups = 0..self.groups.len();
            groups.any(|group| Look::of(self.kind(group), has_incoming[group]) == look)
        };
        let has_edge = |how| self.links.iter().any(|link| link.kind == how);
        let parts = panels.iter().flat_map(|panel| &panel.parts);
        let mut back = parts.flat_map(|part| &part.layout.back);
        let boxes = [
            (Look::Enter, "packets enter"),
            (Look::Drop, "packets enter, policy drop"),
            (Look::Map, "map"),
            (Look::Unreferenced, "unreferenced"),
            (Look::Missing, "missing"),
        ];
        let boxes = boxes.into_iter().filter(|(look, _)| has(*look));
        let routes = [
            (EdgeKind::Jump, "jump"),
            (EdgeKind::Goto, "goto"),
            (EdgeKind::MapLookup, "asks"),
        ];
        let routes = routes.into_iter().filter(|(how, _)| has_edge(*how));
        let boxes = boxes.map(|(look, words)| (Sample::Box(look), words));
        let routes = routes.map(|(how, words)| (Sample::Edge(how), words));
        let ring = back
            .any(|back| *back)
            .then_some((Sample::Ring, "part of a loop"));
        boxes.chain(routes).chain(ring).collect()
    }
}

impl fmt::Display for Svg<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.0;
        let tables = view.by_table().into_iter();
        let panels: Vec<Panel> = tables
            .map(|(table, groups)| view.panel(table, groups))
            .collect();
        let has_incoming = view.has_incoming();
        let legend = view.legend(&panels, &has_incoming);
        let entries = legend.iter();
        let legend_width: f64 = entries.map(|(sample, text)| sample.width(text)).sum();
        let widths = panels.iter().map(|panel| panel.width);
        let width = widths.fold(legend_width, f64::max) + 2.0 * AROUND;
        let panels_height: f64 = panels.iter().map(|panel| panel.height + TABLES).sum();
        let height = panels_height + 2.0 * AROUND + LINE;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}" xml:space="preserve">"#
        )?;
        writeln!(f, r#"<rect width="100%" height="100%" fill="white"/>"#)?;
        f.write_str("<defs>")?;
        for (name, color) in [("arrow", WAY), ("ring", RING)] {
            write!(
                f,
                r#"<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8Z" fill="{color}"/></marker>"#
            )?;
        }
        writeln!(f, "</defs>")?;
        let mut top = AROUND;
        for panel in &panels {
            view.draw_panel(f, panel, &has_incoming, top)?;
            top += panel.height + TABLES;
        }
        let mut x = AROUND;
        for (sample, text) in legend {
            sample.draw(f, text, (x, top + LINE))?;
            x += sample.width(text);
        }
        writeln!(f, "</svg>")
    }
}

/// Sample in the legend.
#[derive(Debug, Clone, Copy)]
enum Sample {
    Box(Look),
    Edge(EdgeKind),
    Ring,
}

impl Sample {
    /// Returns the offset of the text.
    const fn text_offset(self) -> f64 {
        match self {
            Self::Box(_) => 18.0,
            Self::Edge(_) | Self::Ring => 32.0,
        }
    }

    /// Returns the width with text and spacing.
    fn width(self, text: &str) -> f64 {
        self.text_offset() + text.chars().count() as f64 * 6.7 + 16.0
    }

    fn draw(self, f: &mut fmt::Formatter<'_>, text: &str, (x, y): (f64, f64)) -> fmt::Result {
        let (top, middle, text_at) = (y - 10.0, y - 4.0, x + self.text_offset());
        let end = x + 26.0;
        match self {
            Self::Box(look) => {
                let ((fill, stroke), dashes) = (look.colors(), look.dashes());
                write!(
                    f,
                    r#"<rect x="{x:.1}" y="{top:.1}" width="12" height="12" rx="2" fill="{fill}" stroke="{stroke}"{dashes}/>"#
                )?;
            }
            Self::Edge(how) => write!(
                f,
                r#"<path d="M{x:.1} {middle:.1}L{end:.1} {middle:.1}" stroke="{WAY}"{}/>"#,
                dashes(how)
            )?,
            Self::Ring => write!(
                f,
                r#"<path d="M{x:.1} {middle:.1}L{end:.1} {middle:.1}" stroke="{RING}" marker-end="url(#ring)"/>"#
            )?,
        }
        writeln!(
            f,
            r##"<text x="{text_at:.1}" y="{y:.1}" font-size="11" fill="#4a4a4a">{text}</text>"##
        )
    }
}
