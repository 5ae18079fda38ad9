//! `chainwright watch`: prints changes, traced packets, or drops, as they happen.

mod drops;
pub(crate) mod packets;
mod trace_rule;

use std::time::SystemTime;

use anstyle::AnsiColor;
use chainwright::nft::live::{Change, Event, EventObject, Item, Lost, MonitorOptions};
use chainwright::nft::{Bytes, Connection};
use chainwright_lang::{EventFormatter, Formatted};
use clap::Subcommand;
use serde::Serialize;

use crate::get::rules::{Sets, format_rule, options, sets};
use crate::output::{Error, Exit, Output, Printable, eprint_line, name_text};
use crate::scope::Scope;

/// Print changes, the rules that packets traverse, or those that drop packets, as they happen
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Changes(ChangeArgs),
    Packets(packets::Args),
    Drops(drops::Args),
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    match &args.what {
        What::Changes(args) => changes(args, json),
        What::Packets(args) => packets::run(args, json),
        What::Drops(args) => drops::run(args, json),
    }
}

/// Print each change of nf_tables, and the thread that made it
///
/// One line per transaction: the time, the new generation, and the thread that committed it; below it the added and
/// deleted objects. `add` also means a change of an existing object, such as a chain's policy or name. Rules are shown
/// as in `get rules`; sets, stateful objects and elements in nft's syntax. Rules that nft cannot express, and elements of
/// unknown sets, are shown as bytecode and bytes.
///
/// Runs until it is stopped, or its reader exits. If the kernel dropped events, it reports the affected generations,
/// and continues.
///
/// Does not show counters, elements that rules add or that time out, and other changes without a transaction.
#[derive(clap::Args)]
struct ChangeArgs {
    /// Exit after this number of transactions
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,

    /// Maximum number of shown objects of a transaction; JSON has all
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    show: usize,

    /// Maximum size of the kernel's queue of unread events, in bytes, if the kernel permits it
    #[arg(long, value_name = "BYTES", default_value_t = MonitorOptions::default().receive_buffer)]
    buffer: usize,

    /// Show rules that iptables cannot express as bytecode, and the keys of elements as bytes, instead of in nft's
    /// syntax
    #[arg(long)]
    bytecode: bool,

    #[command(flatten)]
    scope: Scope,
}

/// The JSON document of an item.
#[derive(Serialize)]
struct Document<'t> {
    time: String,
    #[serde(flatten)]
    item: ItemRecord<'t>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ItemRecord<'t> {
    Change(ChangeRecord<'t>),
    Lost(LostRecord),
    #[serde(rename = "notice")]
    OutOfBand(EventRecord<'t>),
}

#[derive(Serialize)]
struct ChangeRecord<'t> {
    generation: u32,
    port: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<std::borrow::Cow<'t, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    events: Vec<EventRecord<'t>>,
}

#[derive(Serialize)]
struct LostRecord {
    after: u32,
    through: u32,
    cause: String,
}

#[derive(Serialize)]
struct EventRecord<'t> {
    verb: &'static str,
    kind: &'static str,
    family: String,
    path: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys: Vec<Bytes<'t>>,
}

/// Formats a rule; `None` if the event only names it.
fn rule_of(event: &Event<'_>, sets: &Sets) -> Option<String> {
    match event.object() {
        Ok(EventObject::Rule(rule)) if rule.expressions().is_some() => {
            Some(format_rule(&rule, sets))
        }
        _ => None,
    }
}

impl<'t> EventRecord<'t> {
    fn of(event: &Event<'t>, sets: &Sets) -> Self {
        let operation = event.operation();
        let keys = match event.object() {
            Ok(EventObject::Elements(elements)) => {
                let elements = elements.elements().into_iter().flatten().flatten();
                let keys = elements.filter_map(|element| element.key_bytes());
                keys.map(Bytes::borrowed).collect()
            }
            _ => Vec::new(),
        };
        Self {
            verb: operation.verb,
            kind: operation.kind,
            family: operation.family.to_string(),
            path: operation
                .path
                .iter()
                .map(|name| name_text(name).into_owned())
                .collect(),
            handle: operation.handle,
            rule: rule_of(event, sets),
            keys,
        }
    }
}

impl ChangeArgs {
    /// Returns `true` if an event is about a selected table.
    fn admits(&self, event: &Event<'_>) -> bool {
        if !self.scope.is_filtered() {
            return true;
        }
        let operation = event.operation();
        let table = operation.path.first();
        let family = self.scope.filter().family;
        (family == chainwright::nft::Family::UNSPEC || family == operation.family)
            && table.is_some_and(|name| self.scope.admits_table(name))
    }
}

fn changes(args: &ChangeArgs, json: bool) -> Result<Exit, Error> {
    args.scope
        .place
        .only_nft("the kernel only reports events of nf_tables: legacy tables have none")?;
    let options = MonitorOptions {
        receive_buffer: args.buffer,
        ..MonitorOptions::default()
    };
    let mut monitor = options.open_if_loaded()?;
    let mut watch = Watch {
        args,
        json,
        formatter: None,
        sets: sets(),
        out: Output::new(),
    };
    watch.load_formatter()?;
    eprint_line(&format!(
        "chainwright: watching nf_tables after generation {}",
        monitor.reported()
    ));
    let mut left = args.count;
    while left != Some(0) && watch.out.has_reader() {
        let item = monitor.receive()?;
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let reported = watch.print_item(time, &item)?;
        watch.out.flush()?;
        if reported && let Some(left) = &mut left {
            *left -= 1;
        }
    }
    Ok(Exit::Done)
}

struct Watch<'a> {
    args: &'a ChangeArgs,
    json: bool,
    /// Formats events in nft's syntax, if requested.
    formatter: Option<EventFormatter>,
    sets: Sets,
    out: Output,
}

impl Watch<'_> {
    /// Reads the present tables and sets, because events do not contain the types of sets.
    fn load_formatter(&mut self) -> Result<(), Error> {
        if self.json || self.args.bytecode {
            return Ok(());
        }
        let words = crate::dialect::options();
        let mut nft = Connection::open_if_loaded()?;
        let formatter = EventFormatter::new(&mut nft, words.clone());
        // If others keep changing the ruleset, the formatter knows only objects that are created from now on.
        self.formatter = Some(formatter.unwrap_or_else(|_| EventFormatter::empty(words)));
        Ok(())
    }

    /// Formats an event on one line; `None` if it is printed together with another one.
    fn line(&self, event: &Event<'_>, reported: &Formatted) -> Option<String> {
        let words = event.to_string();
        if let Ok(EventObject::Rule(rule)) = event.object()
            && rule.expressions().is_some()
            && let Some(options) = options(&rule, &self.sets)
        {
            return Some(format!("{words}: {options}"));
        }
        match (reported, event.object()) {
            (Formatted::Within, _) => None,
            (Formatted::Line(line), Ok(EventObject::Elements(_))) => Some(line.to_string()),
            (Formatted::Line(line), _) if line.body.is_empty() => Some(words),
            (Formatted::Line(line), Ok(EventObject::Rule(_))) => {
                Some(format!("{words}: {}", line.body))
            }
            (Formatted::Line(line), _) => Some(format!("{words} {}", line.body)),
            _ => {
                let rule = rule_of(event, &self.sets).map(|rule| format!(": {rule}"));
                Some(words + &rule.unwrap_or_default())
            }
        }
    }

    /// Prints an item; returns whether it was a transaction on selected tables.
    fn print_item(&mut self, time: String, item: &Item) -> Result<bool, Error> {
        match item {
            Item::Change(change) => self.change(time, change),
            Item::Lost(lost) => self.lost(time, lost).map(|()| false),
            Item::OutOfBand(out_of_band) => {
                let event = out_of_band.event();
                if !self.args.admits(&event) {
                    return Ok(false);
                }
                if self.json {
                    let item = ItemRecord::OutOfBand(EventRecord::of(&event, &self.sets));
                    self.out.json("watch", &Document { time, item })?;
                } else {
                    let words = event.to_string();
                    let words = words.strip_prefix("add ").unwrap_or(&words);
                    writeln!(self.out, "{time} used up: {}", Printable(words))?;
                }
                Ok(false)
            }
            other => {
                writeln!(self.out, "{time} {other:?}")?;
                Ok(false)
            }
        }
    }

    fn change(&mut self, time: String, change: &Change) -> Result<bool, Error> {
        // The formatter must see all events.
        let reported = match &mut self.formatter {
            Some(formatter) => formatter.format(change),
            None => vec![Formatted::Inexpressible; change.events().len()],
        };
        let admitted = |event: &Event<'_>| self.args.admits(event);
        let count = change.events().filter(admitted).count();
        if count == 0 && self.args.scope.is_filtered() {
            return Ok(false);
        }
        let events = change.events().filter(admitted);
        let name = change.thread_name().map(|name| name_text(name));
        if self.json {
            let change = ChangeRecord {
                generation: change.generation().number(),
                port: change.port(),
                thread: change.thread_id(),
                name,
                process: change.process_id(),
                events: events
                    .map(|event| EventRecord::of(&event, &self.sets))
                    .collect(),
            };
            let item = ItemRecord::Change(change);
            self.out.json("watch", &Document { time, item })?;
            return Ok(true);
        }
        let by = match &name {
            Some(name) => format!(" by {}", Printable(name)),
            None => String::new(),
        };
        let thread = change.thread_id().map(|id| format!(" (thread {id})"));
        let plural = if count == 1 { "" } else { "s" };
        let generation = change.generation();
        let thread = thread.unwrap_or_default();
        writeln!(
            self.out,
            "{time} generation {generation}{by}{thread}: {count} event{plural}"
        )?;
        let lines = change.events().zip(&reported);
        let lines = lines.filter(|(event, _)| self.args.admits(event));
        let lines =
            lines.filter_map(|(event, reported)| Some((event, self.line(&event, reported)?)));
        let (mut shown, mut more) = (Vec::new(), 0);
        for line in lines {
            match shown.len() < self.args.show {
                true => shown.push(line),
                false => more += 1,
            }
        }
        for (event, line) in shown {
            let (color, sign) = match event.is_deletion() {
                true => (AnsiColor::Red, '-'),
                false => (AnsiColor::Green, '+'),
            };
            let color = self.out.color(color);
            writeln!(self.out, "  {color}{sign} {}{color:#}", Printable(&line))?;
        }
        if more > 0 {
            writeln!(self.out, "  … and {more} more")?;
        }
        Ok(true)
    }

    fn lost(&mut self, time: String, lost: &Lost) -> Result<(), Error> {
        self.load_formatter()?;
        if self.json {
            let item = ItemRecord::Lost(LostRecord {
                after: lost.after.number(),
                through: lost.through.number(),
                cause: lost.cause.to_string(),
            });
            return self.out.json("watch", &Document { time, item });
        }
        let text = lost.to_string();
        writeln!(self.out, "{time} {}", Printable(&text))
    }
}
