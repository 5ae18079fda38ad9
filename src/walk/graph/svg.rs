//! A graph as a picture.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use super::layout::{Drawn, Layout};
use super::tree::shortened;
use super::{How, Kind, View};

/// Width of a character: of a font whose characters are all as wide, at [`SIZE`].
const CHARACTER: f64 = 7.25;
/// Size of the font.
const SIZE: f64 = 12.0;
/// From one line to the next.
const LINE: f64 = 16.0;
/// Room around the text of a box.
const INSIDE: f64 = 10.0;
/// Room around the boxes of a table.
const AROUND: f64 = 20.0;
/// Room for the name of a table.
const HEADING: f64 = 30.0;
/// Room between two tables.
const TABLES: f64 = 24.0;
/// The longest text of a box, in characters.
const LONGEST: usize = 64;
/// The least width of the picture: the legend's.
const NARROWEST: f64 = 640.0;
/// Room between two rows of boxes that are not connected.
const ROWS: f64 = 18.0;
/// How wide a row of boxes is that are connected with nothing.
const ALONE: f64 = 1000.0;

/// As a picture: SVG, each table by itself, from where packets enter on the left to where they are led.
#[derive(Debug, Clone, Copy)]
pub struct Svg<'v, 'g>(&'v View<'g>);

impl<'g> View<'g> {
    /// As a picture.
    #[must_use]
    pub const fn svg(&self) -> Svg<'_, 'g> {
        Svg(self)
    }
}

/// A text in XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// What colors a group has: of its inside and its border.
fn colors(kind: &Kind, led_to: bool) -> (&'static str, &'static str) {
    match kind {
        Kind::Base(base) if base.drops => ("#f8d7da", "#a33a44"),
        Kind::Base(_) => ("#d6e6f7", "#3b6ea5"),
        Kind::Map => ("#fdf3cf", "#a8851c"),
        Kind::Missing => ("#ffffff", "#c62828"),
        Kind::Chain if led_to => ("#ffffff", "#5f6b7a"),
        Kind::Chain => ("#ececec", "#9a9a9a"),
    }
}

/// A table's drawing.
struct Panel {
    heading: String,
    parts: Vec<Drawing>,
    /// The groups that are connected with nothing, and where they stand below the others.
    alone: Vec<(usize, f64, f64)>,
    width: f64,
    height: f64,
}

impl Panel {
    /// Where the next row begins.
    fn next_row(&self) -> f64 {
        match self.height > 0.0 {
            true => self.height + ROWS,
            false => 0.0,
        }
    }
}

/// Groups that are connected with one another, and where they stand.
struct Drawing {
    groups: Vec<usize>,
    links: Vec<usize>,
    layout: Layout,
    top: f64,
}

impl View<'_> {
    /// The text of a box, and its size.
    fn text_of(&self, group: usize) -> (Vec<String>, f64, f64) {
        let lines = self.lines(group);
        let lines: Vec<_> = lines.iter().map(|line| shortened(line, LONGEST)).collect();
        let longest = lines.iter().map(|line| line.chars().count()).max();
        let width = longest.unwrap_or(0) as f64 * CHARACTER + 2.0 * INSIDE;
        (lines.clone(), width, lines.len() as f64 * LINE + INSIDE)
    }

    fn panel(&self, table: usize, of_table: Vec<usize>) -> Panel {
        let heading = format!("table {}", self.graph.tables[table]);
        let heading = super::printable(heading.as_str().into());
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
            let (_, w, h) = self.text_of(group);
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

    /// A table's groups in parts that are not connected with one another, and those that are connected with nothing.
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

    /// Where the groups of a part stand.
    fn layout(&self, groups: &[usize]) -> Drawing {
        let places = groups.iter().enumerate();
        let place_of: HashMap<usize, usize> =
            places.map(|(place, group)| (*group, place)).collect();
        let links = groups.iter().flat_map(|group| self.out[*group].iter());
        let links: Vec<usize> = links.copied().collect();
        let sizes = groups.iter().map(|group| {
            let (_, width, height) = self.text_of(*group);
            (width, height)
        });
        let ends = links.iter().map(|link| &self.links[*link]);
        let drawn = Drawn {
            boxes: sizes.collect(),
            edges: ends
                .map(|link| (place_of[&link.from], place_of[&link.to]))
                .collect(),
        };
        Drawing {
            groups: groups.to_vec(),
            links,
            layout: drawn.layout(),
            top: 0.0,
        }
    }

    fn draw_box(
        &self,
        f: &mut fmt::Formatter<'_>,
        group: usize,
        led_to: bool,
        (x, y): (f64, f64),
    ) -> fmt::Result {
        let (lines, width, height) = self.text_of(group);
        let kind = self.kind(group);
        let (fill, stroke) = colors(kind, led_to);
        let many = self.groups[group].members.len() > 1;
        let dashed = match kind {
            Kind::Missing => r#" stroke-dasharray="5 3""#,
            _ => "",
        };
        let corner = if *kind == Kind::Map { 12 } else { 3 };
        if many {
            // As a pile.
            for behind in [6.0, 3.0] {
                writeln!(
                    f,
                    r#"<rect x="{:.1}" y="{:.1}" width="{width:.1}" height="{height:.1}" rx="{corner}" fill="{fill}" stroke="{stroke}"/>"#,
                    x + behind,
                    y + behind,
                )?;
            }
        }
        writeln!(
            f,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="{corner}" fill="{fill}" stroke="{stroke}"{dashed}/>"#
        )?;
        for (number, line) in lines.iter().enumerate() {
            let look = match number {
                0 => r#"font-weight="bold""#,
                _ => r##"fill="#4a4a4a" font-size="11""##,
            };
            writeln!(
                f,
                r#"<text x="{:.1}" y="{:.1}" {look}>{}</text>"#,
                x + INSIDE,
                y + LINE * (number as f64 + 1.0),
                escaped(line)
            )?;
        }
        if let [name, ..] = &lines[..]
            && *name != self.groups[group].title()
        {
            // What was cut is told to who points there.
            let whole = escaped(&self.groups[group].title());
            writeln!(
                f,
                r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="transparent"><title>{whole}</title></rect>"#
            )?;
        }
        Ok(())
    }

    fn draw_way(
        &self,
        f: &mut fmt::Formatter<'_>,
        link: usize,
        way: &[(f64, f64)],
        back: bool,
        (dx, dy): (f64, f64),
    ) -> fmt::Result {
        let link = &self.links[link];
        let mut path = String::new();
        let mut points = way.iter().map(|(x, y)| (x + dx, y + dy));
        let Some((mut x, mut y)) = points.next() else {
            return Ok(());
        };
        write!(path, "M{x:.1} {y:.1}")?;
        if link.from == link.to {
            // Around its own box's corner.
            write!(path, "c40 -10 40 -34 -12 -{:.1}", LINE * 1.5)?;
        } else {
            for (nx, ny) in points {
                let reach = ((nx - x) / 2.0).abs().max(if back { 40.0 } else { 0.0 });
                let (out, into) = match back && nx < x && way.len() == 2 {
                    true => (x + reach, nx - reach),
                    false if nx < x => (x - reach, nx + reach),
                    false => (x + reach, nx - reach),
                };
                write!(path, "C{out:.1} {y:.1} {into:.1} {ny:.1} {nx:.1} {ny:.1}")?;
                (x, y) = (nx, ny);
            }
        }
        let color = if back { "#c62828" } else { "#7a8694" };
        let dashed = match link.how {
            How::Jump => "",
            How::Goto => r#" stroke-dasharray="7 3""#,
            How::Asks => r#" stroke-dasharray="2 3""#,
        };
        let width = 1.0 + (link.count as f64).log10() * 0.6;
        let arrow = if back { "ring" } else { "arrow" };
        writeln!(
            f,
            r#"<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:.1}"{dashed} marker-end="url(#{arrow})"><title>{} {}: {} → {}</title></path>"#,
            link.count,
            link.how.name(),
            escaped(&self.groups[link.from].name),
            escaped(&self.groups[link.to].name),
        )
    }
}

impl fmt::Display for Svg<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.0;
        let tables = view.by_table().into_iter();
        let panels: Vec<Panel> = tables
            .map(|(table, groups)| view.panel(table, groups))
            .collect();
        let width = panels
            .iter()
            .map(|panel| panel.width)
            .fold(NARROWEST, f64::max)
            + 2.0 * AROUND;
        let panels_height: f64 = panels.iter().map(|panel| panel.height + TABLES).sum();
        let height = panels_height + 2.0 * AROUND + LINE;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}">"#
        )?;
        writeln!(f, r#"<rect width="100%" height="100%" fill="white"/>"#)?;
        f.write_str("<defs>")?;
        for (name, color) in [("arrow", "#7a8694"), ("ring", "#c62828")] {
            write!(
                f,
                r#"<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8Z" fill="{color}"/></marker>"#
            )?;
        }
        writeln!(f, "</defs>")?;
        let led_to = view.led_to();
        let mut top = AROUND;
        for panel in &panels {
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
                let ways = part.links.iter().zip(&layout.ways).zip(&layout.back);
                for ((link, way), back) in ways {
                    view.draw_way(f, *link, way, *back, (left, inner))?;
                }
                for (group, (x, y)) in part.groups.iter().zip(&layout.boxes) {
                    let at = (left + x, inner + y);
                    view.draw_box(f, *group, led_to[*group], at)?;
                }
            }
            for (group, x, y) in &panel.alone {
                let at = (left + x, inner + y);
                view.draw_box(f, *group, led_to[*group], at)?;
            }
            top += panel.height + TABLES;
        }
        legend(f, top + LINE)?;
        writeln!(f, "</svg>")
    }
}

/// What colors and lines mean.
fn legend(f: &mut fmt::Formatter<'_>, y: f64) -> fmt::Result {
    let mut x = AROUND;
    for (fill, stroke, text) in [
        ("#d6e6f7", "#3b6ea5", "packets enter"),
        ("#f8d7da", "#a33a44", "… and drop"),
        ("#fdf3cf", "#a8851c", "map"),
        ("#ececec", "#9a9a9a", "nothing leads here"),
    ] {
        let (top, text_at) = (y - 10.0, x + 18.0);
        writeln!(
            f,
            r##"<rect x="{x:.1}" y="{top:.1}" width="12" height="12" rx="2" fill="{fill}" stroke="{stroke}"/><text x="{text_at:.1}" y="{y:.1}" font-size="11" fill="#4a4a4a">{text}</text>"##
        )?;
        x = text_at + text.chars().count() as f64 * 6.7 + 16.0;
    }
    for (dashes, text) in [("", "jump"), ("7 3", "goto"), ("2 3", "asks")] {
        let (middle, end, text_at) = (y - 4.0, x + 26.0, x + 32.0);
        writeln!(
            f,
            r##"<path d="M{x:.1} {middle:.1}L{end:.1} {middle:.1}" stroke="#7a8694" stroke-dasharray="{dashes}"/><text x="{text_at:.1}" y="{y:.1}" font-size="11" fill="#4a4a4a">{text}</text>"##
        )?;
        x = text_at + text.chars().count() as f64 * 6.7 + 16.0;
    }
    Ok(())
}
