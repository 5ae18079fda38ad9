//! `chainwright watch`: who changes what, as it happens.

use std::time::SystemTime;

use anstyle::AnsiColor;
use chainwright::nft::live::{Change, Event, EventObject, Item, Lost, MonitorOptions};
use chainwright::nft::{Bytes, Connection};
use chainwright_lang::{EventFormatter, Formatted as Said};
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable, name_text, say};
use crate::rules::{Sets, options, said, sets};
use crate::scope::Scope;

/// Tell who changes nf_tables, and what
///
/// One line a transaction: when, the generation that it made, and the thread that committed it; under it
/// what it added and deleted. `add` also stands for a change of what is there, as of a chain's policy or
/// name. A rule is shown as `rules` shows it; what a set, an object and an element are, as nft writes it. What
/// nft has no words for, or is of a set that cannot be known any more, is shown as bytecode and bytes.
///
/// Runs until it is ended, or its reader has gone. Where the kernel dropped events, it says of which
/// generations, and goes on.
///
/// Not told are counters, elements that rules add or that time out, and what else makes no transaction.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// End after so many transactions
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,

    /// Show at most so many objects of a transaction; JSON has them all
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    show: usize,

    /// How many bytes the kernel may queue while nobody reads, as far as it lets
    #[arg(long, value_name = "BYTES", default_value_t = MonitorOptions::default().receive_buffer)]
    buffer: usize,

    /// Show what iptables has no words for as bytecode, and the keys of elements as bytes, instead of in nft's words
    #[arg(long)]
    bytecode: bool,

    #[command(flatten)]
    scope: Scope,
}

/// What is told, for programs: one document each.
#[derive(Serialize)]
struct Formatted<'t> {
    time: String,
    #[serde(flatten)]
    item: ToldItem<'t>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ToldItem<'t> {
    Change(ToldChange<'t>),
    Lost(ToldLost),
    Notice(ToldEvent<'t>),
}

#[derive(Serialize)]
struct ToldChange<'t> {
    generation: u32,
    port: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<std::borrow::Cow<'t, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    events: Vec<ToldEvent<'t>>,
}

#[derive(Serialize)]
struct ToldLost {
    after: u32,
    through: u32,
    cause: String,
}

#[derive(Serialize)]
struct ToldEvent<'t> {
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

/// What a rule does, in words; nothing of one that is only named.
fn rule_of(event: &Event<'_>, sets: &Sets) -> Option<String> {
    match event.object() {
        Ok(EventObject::Rule(rule)) if rule.expressions().is_some() => Some(said(&rule, sets)),
        _ => None,
    }
}

impl<'t> ToldEvent<'t> {
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

impl Args {
    /// Whether an event is about a table that was asked for.
    fn admits(&self, event: &Event<'_>) -> bool {
        if !self.scope.is_narrowed() {
            return true;
        }
        let operation = event.operation();
        let table = operation.path.first();
        let family = self.scope.filter().family;
        (family == chainwright::nft::Family::UNSPEC || family == operation.family)
            && table.is_some_and(|name| self.scope.admits_table(name))
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope
        .place
        .only_nft("the kernel tells of nf_tables only: legacy tables have no events")?;
    let options = MonitorOptions {
        receive_buffer: args.buffer,
        ..MonitorOptions::default()
    };
    let mut monitor = options.open_to_look()?;
    let mut watch = Watch {
        args,
        json,
        formatter: None,
        sets: sets(),
        out: Output::new(),
    };
    watch.know()?;
    say(&format!(
        "chainwright: watching nf_tables after generation {}",
        monitor.told()
    ));
    let mut left = args.count;
    while left != Some(0) && watch.out.is_read() {
        let item = monitor.receive()?;
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let told = watch.tell(time, &item)?;
        watch.out.flush()?;
        if told && let Some(left) = &mut left {
            *left -= 1;
        }
    }
    Ok(Exit::Done)
}

struct Watch<'a> {
    args: &'a Args,
    json: bool,
    /// Who has nft's words, if they are asked for.
    formatter: Option<EventFormatter>,
    sets: Sets,
    out: Output,
}

impl Watch<'_> {
    /// Finds out which tables and sets there are, whose events do not say of what types they are.
    fn know(&mut self) -> Result<(), Error> {
        if self.json || self.args.bytecode {
            return Ok(());
        }
        let words = chainwright_lang::Options::here();
        let mut nft = Connection::open_to_look()?;
        let formatter = EventFormatter::new(&mut nft, words.clone());
        // If others keep changing it, what comes from now on is known all the same.
        self.formatter = Some(formatter.unwrap_or_else(|_| EventFormatter::of_nothing(words)));
        Ok(())
    }

    /// An event in one line; nothing of one that is said with another.
    fn line(&self, event: &Event<'_>, told: &Said) -> Option<String> {
        let words = event.to_string();
        if let Ok(EventObject::Rule(rule)) = event.object()
            && rule.expressions().is_some()
            && let Some(options) = options(&rule, &self.sets)
        {
            return Some(format!("{words}: {options}"));
        }
        match (told, event.object()) {
            (Said::Within, _) => None,
            (Said::Line(line), Ok(EventObject::Elements(_))) => Some(line.to_string()),
            (Said::Line(line), _) if line.body.is_empty() => Some(words),
            (Said::Line(line), Ok(EventObject::Rule(_))) => Some(format!("{words}: {}", line.body)),
            (Said::Line(line), _) => Some(format!("{words} {}", line.body)),
            _ => {
                let rule = rule_of(event, &self.sets).map(|rule| format!(": {rule}"));
                Some(words + &rule.unwrap_or_default())
            }
        }
    }

    /// Tells of an item; whether it was a transaction that was asked for.
    fn tell(&mut self, time: String, item: &Item) -> Result<bool, Error> {
        match item {
            Item::Change(change) => self.change(time, change),
            Item::Lost(lost) => self.lost(time, lost).map(|()| false),
            Item::Notice(notice) => {
                let event = notice.event();
                if !self.args.admits(&event) {
                    return Ok(false);
                }
                if self.json {
                    let item = ToldItem::Notice(ToldEvent::of(&event, &self.sets));
                    self.out.json("watch", &Formatted { time, item })?;
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
        // It is to hear of all of them.
        let told = match &mut self.formatter {
            Some(formatter) => formatter.format(change),
            None => vec![Said::Inexpressible; change.events().len()],
        };
        let admitted = |event: &Event<'_>| self.args.admits(event);
        let count = change.events().filter(admitted).count();
        if count == 0 && self.args.scope.is_narrowed() {
            return Ok(false);
        }
        let events = change.events().filter(admitted);
        let name = change.thread_name().map(|name| name_text(name));
        if self.json {
            let change = ToldChange {
                generation: change.generation().number(),
                port: change.port(),
                thread: change.thread_id(),
                name,
                process: change.process_id(),
                events: events
                    .map(|event| ToldEvent::of(&event, &self.sets))
                    .collect(),
            };
            let item = ToldItem::Change(change);
            self.out.json("watch", &Formatted { time, item })?;
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
        let lines = change.events().zip(&told);
        let lines = lines.filter(|(event, _)| self.args.admits(event));
        let lines = lines.filter_map(|(event, told)| Some((event, self.line(&event, told)?)));
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
        self.know()?;
        if self.json {
            let item = ToldItem::Lost(ToldLost {
                after: lost.after.number(),
                through: lost.through.number(),
                cause: lost.cause.to_string(),
            });
            return self.out.json("watch", &Formatted { time, item });
        }
        let text = lost.to_string();
        writeln!(self.out, "{time} {}", Printable(&text))
    }
}
