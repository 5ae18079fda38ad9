//! `chainwright top`: the rules, chains or sets that count most packets, again and again.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::io::{self, IsTerminal};
use std::time::{Duration, SystemTime};

use anstyle::AnsiColor;
use clap::ValueEnum;
use serde::Serialize;
use terminal_size::terminal_size;

use crate::counts::{Change, Counted, Counts, Group, Item, Sample, Sampling};
use crate::get::rules::RuleFormatter;
use crate::glob::Names;
use crate::output::{Error, Exit, Output, Printable, counted, name_text};
use crate::recorded::local;
use crate::scope::{Backend, Scope};

/// Show the rules, chains or sets that count the most packets
///
/// Reads the counters at each interval, and prints how much they increased, the largest first. On a terminal, redraws
/// the table; otherwise prints one table for each interval. Numbers from 10,000 on are shortened (k, M, G: thousands,
/// millions, billions). With --json, prints one document for each interval, with exact numbers.
///
/// Rules without a counter are not shown; in iptables' tables every rule has one. If a rule has several, the last one
/// is used. A base chain's policy is shown where the kernel counts it: in legacy tables, and in chains of nf_tables that
/// were created with counters. With --by chain, the rules and the policy of a chain are summed: a packet that several
/// rules count is counted several times. With --by set, the counters of a set's elements are summed.
///
/// A rule of nf_tables is recognized by its handle and content, one of a legacy table by its position and content. A rule
/// that is new or replaced, or whose counter was reset, starts anew: its rate is unknown ("-") in that interval. The rate
/// of a chain or set is unknown if one of its counters was reset; new and replaced rules do not count in it.
///
/// Runs until it is stopped, or its reader exits.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    names: Names,

    /// What to show: rule, chain or set
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Kind::Rule, hide_possible_values = true)]
    by: Kind,

    /// Order: rate (packets per second), byte-rate (bytes per second), packets or bytes (in total)
    #[arg(long, value_enum, value_name = "KEY", default_value_t = Sort::Rate, hide_possible_values = true)]
    sort: Sort,

    /// Time between two samples, for instance 500ms or 2s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,

    /// Exit after this number of intervals
    #[arg(long, value_name = "NUMBER")]
    iterations: Option<u64>,

    /// Maximum number of lines; on a terminal, also limited to its height
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    limit: usize,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Rule,
    Chain,
    Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Rate,
    ByteRate,
    Packets,
    Bytes,
}

/// Parses the time between samples.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(10);
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match time < SHORTEST {
        true => Err("the shortest interval is 10ms".to_owned()),
        false => Ok(time),
    }
}

/// A line of the table.
struct Row<'s> {
    group: &'s Group,
    /// The rule; `None` for a chain or set.
    item: Option<&'s Item>,
    total: Counts,
    /// The change in the interval.
    change: Change,
}

impl Row<'_> {
    /// Returns the increase in the interval; `None` if it is unknown.
    const fn increase(&self) -> Option<Counts> {
        match self.change {
            Change::Increase(counts) => Some(counts),
            Change::New | Change::Reset => None,
        }
    }
}

/// Returns all rows, unordered.
fn rows<'s>(before: &Sample, now: &'s Sample, kind: Kind) -> Vec<Row<'s>> {
    let mut rows = Vec::new();
    for (group, items) in now.groups() {
        let each = items.iter().map(|(item, entry)| Row {
            group,
            item: Some(item),
            total: entry.counts,
            change: now.change(before, group, item),
        });
        if kind == Kind::Rule {
            rows.extend(each);
            continue;
        }
        let sum = each.reduce(|sum, row| Row {
            total: sum.total.plus(row.total),
            change: match (sum.change, row.change) {
                (Change::Increase(one), Change::Increase(other)) => {
                    Change::Increase(one.plus(other))
                }
                (Change::Reset, _) | (_, Change::Reset) => Change::Reset,
                (known, Change::New) | (Change::New, known) => known,
            },
            ..sum
        });
        rows.extend(sum.map(|sum| Row { item: None, ..sum }));
    }
    rows
}

impl Sort {
    /// Sorts the first rows, and removes the others.
    fn first(self, rows: &mut Vec<Row<'_>>, count: usize) {
        let key = |row: &Row<'_>| match self {
            Self::Rate => row.increase().map(|increase| increase.packets),
            Self::ByteRate => row.increase().map(|increase| increase.bytes),
            Self::Packets => Some(row.total.packets),
            Self::Bytes => Some(row.total.bytes),
        };
        rows.sort_unstable_by(|one, other| {
            let order = Reverse(key(one)).cmp(&Reverse(key(other)));
            order.then_with(|| (one.group, one.item).cmp(&(other.group, other.item)))
        });
        rows.truncate(count);
    }
}

/// Formats a rule without its counters, or a policy; `None` for an element.
fn rule(words: &RuleFormatter, sample: &Sample, group: &Group, item: &Item) -> Option<String> {
    match item {
        Item::Policy => Some(format!("policy {}", sample.policy(group)?)),
        Item::Rule(..) => {
            let (table, rule) = sample.nft_rule(group, item)?;
            Some(words.nft(&table, &rule))
        }
        Item::Legacy(index, _) => Some(words.legacy(&sample.legacy_rule(group, *index)?)),
        Item::Element(_) => None,
    }
}

/// The JSON document of an interval.
#[derive(Serialize)]
struct Document<'d> {
    time: String,
    seconds: f64,
    complete: bool,
    rows: Vec<Record<'d>>,
}

/// A row in JSON.
#[derive(Serialize)]
pub(crate) struct Record<'d> {
    backend: &'static str,
    family: String,
    table: Cow<'d, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<Cow<'d, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<Cow<'d, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    packets: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
}

impl<'d> Record<'d> {
    fn of(
        row: &Row<'d>,
        sample: &Sample,
        words: &RuleFormatter,
        kind: Kind,
        elapsed: Duration,
    ) -> Self {
        let name = Some(name_text(&row.group.name));
        let (chain, set) = match kind {
            Kind::Set => (None, name),
            Kind::Rule | Kind::Chain => (name, None),
        };
        let rate = |count: u64| count as f64 / elapsed.as_secs_f64();
        Self {
            backend: row.group.backend,
            family: row.group.family.to_string(),
            table: name_text(&row.group.table),
            chain,
            set,
            handle: row.item.and_then(Item::handle),
            number: row.item.and_then(Item::number),
            rule: row
                .item
                .and_then(|item| rule(words, sample, row.group, item)),
            packets: row.total.packets,
            bytes: row.total.bytes,
            packets_per_second: row.increase().map(|increase| rate(increase.packets)),
            bytes_per_second: row.increase().map(|increase| rate(increase.bytes)),
        }
    }

    /// Creates the record of a rule or policy with other counts than the total ones, and without rates.
    pub(crate) fn counted(
        group: &'d Group,
        item: &'d Item,
        counts: Counts,
        sample: &Sample,
        words: &RuleFormatter,
    ) -> Self {
        let row = Row {
            group,
            item: Some(item),
            total: counts,
            change: Change::New,
        };
        Self::of(&row, sample, words, Kind::Rule, Duration::ZERO)
    }

    /// Formats the counts, place and rule: `1 packet, 84 bytes: ip filter INPUT handle 5: -j DROP`.
    pub(crate) fn counted_place(&self) -> String {
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let packets = counted(number(self.packets), "packet", "packets");
        let bytes = counted(number(self.bytes), "byte", "bytes");
        format!("{packets}, {bytes}: {}", self.place())
    }

    /// Formats place and rule.
    fn place(&self) -> String {
        let name = self.chain.as_ref().or(self.set.as_ref());
        let (table, name) = (
            Printable(&self.table),
            Printable(name.map_or("", |name| name)),
        );
        let backend = match self.backend {
            "legacy" => "legacy ",
            _ => "",
        };
        let mut text = format!("{backend}{} {table} {name}", self.family);
        if let Some(handle) = self.handle {
            text += &format!(" handle {handle}");
        }
        if let Some(number) = self.number {
            text += &format!(" rule {number}");
        }
        if let Some(rule) = &self.rule {
            text += &format!(": {}", Printable(rule));
        }
        text
    }
}

/// Formats a number in at most 8 characters: with these decimals, or from 10,000 on with a unit.
fn short(number: f64, decimals: usize) -> String {
    if number < 10_000.0 {
        return format!("{number:.decimals$}");
    }
    let mut rest = number;
    let mut unit = ' ';
    for next in ['k', 'M', 'G', 'T', 'P', 'E', 'Z'] {
        if rest < 999.95 {
            break;
        }
        (rest, unit) = (rest / 1000.0, next);
    }
    format!("{rest:.1}{unit}")
}

impl fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| short(rate, 1));
        write!(
            f,
            "{:>9} {:>9} {:>9} {:>9}  ",
            rate(self.packets_per_second),
            rate(self.bytes_per_second),
            short(self.packets as f64, 0),
            short(self.bytes as f64, 0)
        )?;
        f.write_str(&self.place())
    }
}

/// The heading of the columns of a record.
const COLUMNS: &str = "packets/s   bytes/s   packets     bytes  ";

/// Prints the table of an interval. On a terminal of this size, replaces the previous table.
fn print_text(
    out: &mut Output,
    args: &Args,
    sample: &Sample,
    records: &[Record<'_>],
    size: Option<(usize, usize)>,
) -> Result<(), Error> {
    if size.is_some() {
        write!(out, "\x1b[H\x1b[2J")?;
    }
    let (time, interval) = (
        local(SystemTime::now()),
        humantime::format_duration(args.interval),
    );
    write!(out, "{time}, every {interval}")?;
    if sample.found.is_partial() {
        write!(
            out,
            ", incomplete: some tables could not be read, or changed meanwhile"
        )?;
    }
    writeln!(out)?;
    let kind = args.by.to_possible_value();
    let kind = kind.as_ref().map_or("", |kind| kind.get_name());
    let color = out.color(AnsiColor::Cyan);
    writeln!(out, "{color}{COLUMNS}{kind}{color:#}")?;
    for record in records {
        let line = record.to_string();
        match size {
            Some((width, _)) if line.chars().count() > width => {
                let cut: String = line.chars().take(width.saturating_sub(1)).collect();
                writeln!(out, "{cut}…")?;
            }
            _ => writeln!(out, "{line}")?,
        }
    }
    if size.is_none() {
        writeln!(out)?;
    }
    Ok(())
}

/// Returns width and height of the terminal on standard output, if it can be redrawn.
fn redrawn() -> Option<(usize, usize)> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
    if is_dumb || !io::stdout().is_terminal() {
        return None;
    }
    let (width, height) = terminal_size()?;
    Some((width.0.into(), height.0.into()))
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    let counted = match args.by {
        Kind::Rule | Kind::Chain => Counted::Chains,
        Kind::Set => Counted::Sets,
    };
    if counted == Counted::Sets && args.scope.place.listed() == Backend::Legacy {
        return Err(Error::Other(
            "legacy tables have no sets of their own".into(),
        ));
    }
    let words = RuleFormatter::new();
    let mut out = Output::new();
    let sampling = Sampling {
        scope: &args.scope,
        names: &args.names,
        counted,
        interval: args.interval,
        iterations: args.iterations,
        start: None,
    };
    sampling.each_interval(|before, now| {
        let elapsed = now.time.duration_since(before.time);
        let size = (!json).then(redrawn).flatten();
        let limit = size.map_or(args.limit, |(_, height)| {
            args.limit.min(height.saturating_sub(3))
        });
        let mut rows = rows(before, now, args.by);
        args.sort.first(&mut rows, limit);
        let records = rows.iter();
        let records = records.map(|row| Record::of(row, now, &words, args.by, elapsed));
        let records: Vec<_> = records.collect();
        match json {
            true => out.json(
                "top",
                &Document {
                    time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
                    seconds: elapsed.as_secs_f64(),
                    complete: !now.found.is_partial(),
                    rows: records,
                },
            )?,
            false => print_text(&mut out, args, now, &records, size)?,
        }
        out.flush()?;
        Ok(out.has_reader())
    })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0.0, "0.0"),
            (9999.9, "9999.9"),
            (12_345.0, "12.3k"),
            (999_949.0, "999.9k"),
            (999_951.0, "1.0M"),
            (u64::MAX as f64, "18.4E"),
            (u64::MAX as f64 * 100.0, "1.8Z"),
        ] {
            assert_eq!(short(number, 1), text);
        }
        assert_eq!(short(9999.0, 0), "9999");
    }

    #[test]
    fn intervals_have_a_minimum() {
        assert_eq!(interval("1s"), Ok(Duration::from_secs(1)));
        for text in ["1ms", "0s", "x", "1"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
