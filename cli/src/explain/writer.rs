//! Writes explanations as text or Markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chainwright_trace::explain::RuleExplanation;
use comfy_table::{ContentArrangement, Table, TableComponent, presets};

use super::Format;
use super::chain::{ChainExplanation, RuleRecord};
use super::service::{ServiceExplanation, ServicePort};
use crate::output::{Error, Output, Printable, counted};
use crate::trace_output::{lines, percent};

/// Width of tables.
const WIDTH: u16 = 80;

/// Names of the columns of a chain's table.
const COLUMNS: [&str; 9] = [
    "rule",
    "source",
    "destination",
    "protocol",
    "interface",
    "if",
    "outcome",
    "packets",
    "comment",
];

/// The columns in which an empty cell stands for any value.
const ADDRESSES: std::ops::Range<usize> = 1..5;

/// Writes explanations.
pub(super) struct Writer<'o> {
    out: &'o mut Output,
    format: Format,
    /// Whether something was written.
    is_behind: bool,
}

/// Escapes a text for Markdown.
fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    for c in Printable(text).to_string().chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut Output, format: Format) -> Self {
        Self {
            out,
            format,
            is_behind: false,
        }
    }

    /// Writes an empty line, except at the beginning.
    fn space(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.is_behind, true) {
            true => writeln!(self.out),
            false => Ok(()),
        }
    }

    /// Writes a heading.
    fn heading(&mut self, level: usize, text: &str) -> Result<(), Error> {
        self.space()?;
        match self.format {
            Format::Text => lines(self.out, "", text),
            Format::Markdown => {
                writeln!(self.out, "{} {}\n", "#".repeat(level), markdown(text))
            }
        }
    }

    /// Writes a line of text.
    fn line(&mut self, indent: &str, text: &str) -> Result<(), Error> {
        match self.format {
            Format::Text => lines(self.out, indent, text),
            Format::Markdown => writeln!(self.out, "- {}", markdown(text)),
        }
    }

    /// Writes a rule from the command line.
    pub(super) fn rule(&mut self, rule: &RuleExplanation) -> Result<(), Error> {
        let text = rule.to_string();
        match self.format {
            Format::Text => lines(self.out, "", &text)?,
            Format::Markdown => writeln!(self.out, "{}", markdown(&text))?,
        }
        match &rule.comment {
            Some(comment) => self.line("  ", &format!("comment: {comment}")),
            None => Ok(()),
        }
    }

    /// Writes a chain: what it is for, its rules in sentences, and a table of them; or only its rules.
    pub(super) fn chain(&mut self, chain: &ChainExplanation, only_rule: bool) -> Result<(), Error> {
        self.heading(2, &title(chain, only_rule))?;
        for line in about(chain) {
            self.line("  ", &line)?;
        }
        if chain.rules.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.sentences(chain)?;
        if !only_rule {
            writeln!(self.out)?;
            self.table(&chain.rules)?;
        }
        Ok(())
    }

    /// Writes the sentences of the rules.
    fn sentences(&mut self, chain: &ChainExplanation) -> Result<(), Error> {
        for rule in &chain.rules {
            let handle = rule.handle.map(|handle| format!(" (handle {handle})"));
            let head = format!("rule {}{}", rule.number, handle.unwrap_or_default());
            let text = format!("{head}: {}", rule.text);
            match self.format {
                Format::Text => lines(self.out, "  ", &text)?,
                Format::Markdown => {
                    writeln!(self.out, "{}. {}", rule.number, markdown(&rule.text))?
                }
            }
            match (&rule.comment, self.format) {
                (Some(comment), Format::Text) => {
                    lines(self.out, "      ", &format!("comment: {comment}"))?;
                }
                (Some(comment), Format::Markdown) => {
                    writeln!(self.out, "   - comment: {}", markdown(comment))?;
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Writes the rules as a table.
    fn table(&mut self, rules: &[RuleRecord]) -> Result<(), Error> {
        let mut rows: Vec<[String; 9]> = rules.iter().map(cells).collect();
        let shown: Vec<usize> = (0..COLUMNS.len())
            .filter(|column| rows.iter().any(|row| !row[*column].is_empty()))
            .collect();
        for cell in rows.iter_mut().flat_map(|row| &mut row[ADDRESSES]) {
            if cell.is_empty() {
                cell.push_str("any");
            }
        }
        if self.format == Format::Markdown {
            let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
            let heads = shown.iter().map(|column| COLUMNS[*column].to_owned());
            writeln!(self.out, "{}", line(heads.collect()))?;
            writeln!(self.out, "{}", line(vec!["---".to_owned(); shown.len()]))?;
            for row in &rows {
                let cells = shown.iter().map(|column| markdown(&row[*column]));
                writeln!(self.out, "{}", line(cells.collect()))?;
            }
            return Ok(());
        }
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_style(TableComponent::HeaderLines, '─')
            .set_style(TableComponent::MiddleHeaderIntersections, '─')
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(WIDTH)
            .set_header(shown.iter().map(|column| COLUMNS[*column]));
        for row in &rows {
            let cells = shown
                .iter()
                .map(|column| Printable(&row[*column]).to_string());
            table.add_row(cells);
        }
        for line in table.lines() {
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Writes a service.
    pub(super) fn service(&mut self, service: &ServiceExplanation) -> Result<(), Error> {
        for port in &service.ports {
            self.port(port)?;
        }
        Ok(())
    }

    fn port(&mut self, port: &ServicePort) -> Result<(), Error> {
        self.heading(2, &format!("service {}", port.name))?;
        for frontend in &port.frontends {
            let name = frontend.name();
            self.line(
                "  ",
                &format!("A new connection from {} to {name}:", frontend.client),
            )?;
            for outcome in &frontend.outcomes {
                let percent = percent(outcome.probability);
                let mut text = format!("{percent:>7}: {}", outcome.outcome);
                if let Some(reason) = &outcome.reason {
                    let _ = write!(text, " by {reason}");
                }
                if !outcome.assumptions.is_empty() {
                    let _ = write!(text, ", if {}", outcome.assumptions.join(", "));
                }
                match self.format {
                    Format::Text => lines(self.out, "    ", &text)?,
                    Format::Markdown => writeln!(self.out, "  - {}", markdown(&text))?,
                }
            }
        }
        self.line("  ", choice(port))?;
        match port.chains.len() {
            0 => self.line("  ", "No chain belongs to it.")?,
            1 => self.line("  ", "One chain belongs to it:")?,
            count => self.line("  ", &format!("{count} chains belong to it:"))?,
        }
        for chain in &port.chains {
            self.chain(chain, false)?;
        }
        Ok(())
    }
}

/// Describes how the endpoint of a new connection is chosen.
fn choice(port: &ServicePort) -> &'static str {
    let endpoints = |outcomes: &[super::service::OutcomeRecord]| {
        let endpoints = outcomes.iter().filter_map(|one| one.endpoint.as_ref());
        endpoints.collect::<BTreeSet<_>>().len()
    };
    let most = port
        .frontends
        .iter()
        .map(|one| endpoints(&one.outcomes))
        .max();
    match (most.unwrap_or_default(), port.affinity) {
        (2.., false) if !port.frontends.iter().any(|one| one.is_random) => {
            "The endpoint depends on properties of the packet."
        }
        (0, _) => "No simulated packet reaches an endpoint.",
        (1, _) => "There is one endpoint, so nothing is chosen.",
        (_, true) => {
            "A client that connected before stays with its endpoint for a while. For other clients, an endpoint is \
             chosen at random for each new connection."
        }
        (_, false) => {
            "An endpoint is chosen at random for each new connection; the packets of the connection follow it."
        }
    }
}

/// Returns the heading of a chain.
fn title(chain: &ChainExplanation, only_rule: bool) -> String {
    let legacy = match chain.backend {
        "legacy" => "legacy ",
        _ => "",
    };
    let count = match only_rule {
        true => String::new(),
        false => format!(": {}", counted(chain.rules.len(), "rule", "rules")),
    };
    let ChainExplanation {
        family,
        table,
        chain,
        ..
    } = chain;
    format!("chain {legacy}{family} {table} {chain}{count}")
}

/// Returns sentences about a chain.
pub(crate) fn about(chain: &ChainExplanation) -> Vec<String> {
    let mut lines = Vec::new();
    let of = chain.owner.map(|owner| format!(" of {owner}"));
    let purpose = chain.purpose.as_ref().map(|purpose| format!(": {purpose}"));
    if of.is_some() || purpose.is_some() {
        let [of, purpose] = [of, purpose].map(Option::unwrap_or_default);
        lines.push(format!("probably{of}{purpose}"));
    }
    if let Some(hook) = &chain.hook {
        let mut at = format!("hook {hook}");
        if !chain.devices.is_empty() {
            let noun = if chain.devices.len() == 1 {
                "device"
            } else {
                "devices"
            };
            let _ = write!(at, " of the {noun} {}", chain.devices.join(", "));
        }
        if let Some(priority) = chain.priority {
            let _ = write!(at, ", priority {priority}");
        }
        let verb = match chain.policy {
            Some("drop") => "drops",
            _ => "accepts",
        };
        lines.push(format!(
            "base chain: {at}; it {verb} the packets that no rule decides on"
        ));
        if chain.dormant {
            lines.push("its table is dormant: no packet reaches it".to_owned());
        }
    } else {
        lines.push(match chain.from.is_empty() {
            true => "no rule or map leads here".to_owned(),
            false => {
                let shown = chain.from.len().min(8);
                let more = match chain.from.len() - shown {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!("from: {}{more}", chain.from[..shown].join(", "))
            }
        });
    }
    lines
}

/// Returns the cells of a rule.
fn cells(rule: &RuleRecord) -> [String; 9] {
    let row = &rule.row;
    [
        rule.number.to_string(),
        row.source.clone(),
        row.destination.clone(),
        row.protocol.clone(),
        row.interface.clone(),
        row.conditions.clone(),
        row.outcome.clone(),
        rule.packets
            .map(|packets| packets.to_string())
            .unwrap_or_default(),
        rule.comment.clone().unwrap_or_default(),
    ]
}
