//! Shared by the verbs that read recorded files: the directory, moments, and one-line summaries.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use anstyle::AnsiColor;
use chainwright::nft::live::{Event, EventObject};
use chainwright_record::{Archive, Entry, Moment, Presence, Process, Reason, Start};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::Serialize;

use crate::output::{Error, Output, Printable, causes, counted, name_text};

/// Maximum number of characters of a command line in a line of text.
const MAX_COMMAND: usize = 100;
/// Maximum number of chains or tables that a summary names.
const MAX_NAMES: usize = 3;

/// The directory of a recorder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Directory {
    /// Directory of the recorder's files
    #[arg(
        long = "dir",
        value_name = "DIR",
        default_value = "/var/lib/chainwright/record"
    )]
    pub(crate) path: PathBuf,
}

/// Converts an error of the recorder.
pub(crate) fn failed(error: chainwright_record::Error) -> Error {
    Error::Other(causes(&error))
}

impl Directory {
    pub(crate) fn open(&self) -> Result<Archive, Error> {
        Archive::open(&self.path).map_err(failed)
    }
}

/// Parses a moment: `@10:32`, `@yesterday`, `@now`, `@-10m`, `@2026-11-28T10:32`, `@gen:77`; the `@` may be missing.
pub(crate) fn moment(text: &str) -> Result<Moment, String> {
    moment_at(text, &Zoned::now())
}

/// The same, for options whose value is a time.
pub(crate) fn time(text: &str) -> Result<SystemTime, String> {
    match moment(text)? {
        Moment::Time(time) => Ok(time),
        Moment::Now => Ok(SystemTime::now()),
        _ => Err(format!("{text:?} is not a time")),
    }
}

fn moment_at(text: &str, now: &Zoned) -> Result<Moment, String> {
    let word = text.strip_prefix('@').unwrap_or(text);
    let of = |time: Timestamp| Moment::Time(time.into());
    let ago = |time: SignedDuration| now.timestamp().checked_sub(time).ok().map(of);
    let wrong = || {
        format!(
            "{text:?} is not a moment: expected @10:32, @10:32:05, @now, @yesterday (24 hours ago), @-10m, \
             @2026-11-28T10:32 or @gen:77"
        )
    };
    if let Some(number) = word.strip_prefix("gen:") {
        let number = number.parse().map_err(|_| wrong())?;
        return Ok(Moment::Generation(number));
    }
    match word {
        "now" => return Ok(Moment::Now),
        "yesterday" => return ago(SignedDuration::from_hours(24)).ok_or_else(wrong),
        _ => {}
    }
    if let Some(length) = word.strip_prefix('-') {
        let length = humantime::parse_duration(length).ok();
        let length = length.and_then(|length| SignedDuration::try_from(length).ok());
        return length.and_then(ago).ok_or_else(wrong);
    }
    if let Ok(time) = word.parse::<Timestamp>() {
        return Ok(of(time));
    }
    // A time without seconds means its whole minute, and one without fractions its whole second.
    let is_fraction = word.contains('.');
    let seconds = match word.matches(':').count() {
        0 => None,
        1 => Some(59),
        _ => Some(0),
    };
    let whole = |at: DateTime| -> Option<Moment> {
        let local = at.to_zoned(now.time_zone().clone()).ok()?;
        let more = match (seconds, is_fraction) {
            (Some(seconds), false) => SignedDuration::new(seconds, 999_999_999),
            _ => SignedDuration::ZERO,
        };
        local.timestamp().checked_add(more).ok().map(of)
    };
    if let Some(seconds) = seconds
        && let Ok(time) = word.parse::<Time>()
        && !word.contains('-')
    {
        let today = whole(now.date().to_datetime(time)).ok_or_else(wrong)?;
        let minute = SignedDuration::from_secs(seconds + 1);
        let is_later = matches!(today, Moment::Time(at) if Timestamp::try_from(at)
            .is_ok_and(|at| at.duration_since(now.timestamp()) > minute));
        // A later time is that of the day before.
        return match is_later {
            false => Ok(today),
            true => (now.date().yesterday().ok())
                .and_then(|day| whole(day.to_datetime(time)))
                .ok_or_else(wrong),
        };
    }
    let at = match seconds {
        None => word
            .parse::<Date>()
            .ok()
            .map(|day| day.to_datetime(Time::midnight())),
        Some(_) => word.parse::<DateTime>().ok(),
    };
    at.and_then(whole).ok_or_else(wrong)
}

/// Formats a time on this machine's clock.
pub(crate) fn local(time: SystemTime) -> String {
    match Timestamp::try_from(time) {
        Ok(time) => {
            let zoned = time.to_zoned(TimeZone::system());
            zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        Err(_) => humantime::format_rfc3339_seconds(time).to_string(),
    }
}

/// The numbers of changed objects of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    change: &'static str,
    kind: &'static str,
    number: usize,
}

/// Summary of a transaction: numbers of changed objects, and a few names.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// By deletion, and then by kind.
    counts: BTreeMap<(bool, &'static str), usize>,
    /// The tables, and in each the chains and sets of changed members.
    places: BTreeMap<(bool, String), Vec<String>>,
    /// The only changed object, for a table, chain or set of its own.
    only: Option<String>,
}

impl Summary {
    /// Summarizes these events.
    pub(crate) fn of<'e>(events: impl Iterator<Item = Event<'e>>) -> Self {
        let mut summary = Self::default();
        for event in events {
            let operation = event.operation();
            let number = match event.object() {
                Ok(EventObject::Elements(elements)) => {
                    elements.elements().into_iter().flatten().count()
                }
                _ => 1,
            };
            let is_deletion = event.is_deletion();
            *summary
                .counts
                .entry((is_deletion, operation.kind))
                .or_default() += number;
            let mut names = operation
                .path
                .iter()
                .map(|name| name_text(name).into_owned());
            let Some(table) = names.next() else {
                continue;
            };
            let member = names.next();
            let path = match &member {
                Some(member) => format!("{} {table} {member}", operation.family),
                None => format!("{} {table}", operation.family),
            };
            summary.only = Some(format!("{} {path}", operation.kind));
            let place = format!("{} {table}", operation.family);
            let members = summary.places.entry((is_deletion, place)).or_default();
            if let ("rule" | "element", Some(member)) = (operation.kind, member)
                && members.len() <= MAX_NAMES
                && !members.contains(&member)
            {
                members.push(member);
            }
        }
        summary
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub(crate) fn counts(&self) -> Vec<Count> {
        let counts = self.counts.iter().rev();
        counts
            .map(|(&(is_deletion, kind), &number)| Count {
                change: if is_deletion { "deleted" } else { "added" },
                kind,
                number,
            })
            .collect()
    }

    /// Formats what was added, or what was deleted.
    fn part(&self, is_deletion: bool) -> Option<String> {
        let verb = if is_deletion { "deleted" } else { "added" };
        let counts = self
            .counts
            .iter()
            .filter(|((deletion, _), _)| *deletion == is_deletion);
        let counts: Vec<_> = counts.map(|(&(_, kind), &number)| (kind, number)).collect();
        match (&counts[..], &self.only) {
            ([], _) => return None,
            ([(kind, 1)], Some(only))
                if self.counts.len() == 1 && !matches!(*kind, "rule" | "element") =>
            {
                return Some(format!("{only} {verb}"));
            }
            _ => {}
        }
        // What is most specific first.
        let kinds = ["rule", "element", "chain", "set", "flowtable"];
        let place = |kind: &str| {
            let known = kinds.iter().position(|known| *known == kind);
            known.unwrap_or(if kind == "table" { 9 } else { 8 })
        };
        let mut counts = counts;
        counts.sort_by_key(|(kind, _)| place(kind));
        let words: Vec<_> = counts
            .iter()
            .map(|(kind, number)| counted(*number, kind, &format!("{kind}s")))
            .collect();
        let places: Vec<_> = self
            .places
            .iter()
            .filter(|((deletion, _), _)| *deletion == is_deletion)
            .map(|((_, table), members)| (table, members))
            .collect();
        let only_tables = counts.iter().all(|(kind, _)| *kind == "table");
        let mut text = format!("{} {verb}", words.join(", "));
        match &places[..] {
            _ if only_tables => {
                let names: Vec<_> = places.iter().map(|(table, _)| table.as_str()).collect();
                if names.len() <= MAX_NAMES {
                    let _ = write!(text, ": {}", names.join(", "));
                }
            }
            [(table, members)] if (1..=MAX_NAMES).contains(&members.len()) => {
                let _ = write!(text, " in {table} {}", members.join(", "));
            }
            places if places.len() <= MAX_NAMES => {
                let names: Vec<_> = places.iter().map(|(table, _)| table.as_str()).collect();
                let _ = write!(text, " in {}", names.join(", "));
            }
            places => {
                let _ = write!(text, " in {} tables", places.len());
            }
        }
        Some(text)
    }

    pub(crate) fn text(&self) -> String {
        let parts: Vec<_> = [true, false]
            .into_iter()
            .filter_map(|is| self.part(is))
            .collect();
        match parts.is_empty() {
            true => "nothing changed".into(),
            false => parts.join("; "),
        }
    }
}

/// Shortens a command line.
fn clipped(line: &str) -> String {
    match line.char_indices().nth(MAX_COMMAND) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Formats the process of a transaction: `by systemctl restart iptables (pid 1234)`.
pub(crate) fn by(process: &Process) -> String {
    let line = process.command_line();
    let line = line.as_deref().unwrap_or("an unknown process");
    let mut text = format!("by {}", clipped(line));
    let gone = match process.presence {
        Presence::Gone => ", already gone",
        _ => "",
    };
    match (process.process_id, process.thread_id) {
        (Some(id), _) => text += &format!(" (pid {id}{gone})"),
        (None, Some(id)) => text += &format!(" (thread {id}{gone})"),
        (None, None) => {}
    }
    if let Some(unit) = process.unit() {
        text += &format!(" in {}", name_text(unit));
    }
    text
}

/// Describes a start: why the whole ruleset was read.
fn describe_start(start: &Start) -> String {
    let until = start.generation;
    let missed = match start.after {
        Some(after) if after != until => {
            format!("not recorded: what happened between generations {after} and {until}")
        }
        _ => format!("the ruleset of generation {until}"),
    };
    match start.reason {
        Reason::First => format!("recording starts with generation {until}"),
        Reason::Restarted => format!("recorder started again; {missed}"),
        Reason::Lost => format!("ruleset read again after lost events; {missed}"),
        Reason::Unwritable => format!(
            "recorder could not write, and continues; {missed}; {}",
            name_text(&start.cause)
        ),
        _ => format!("new file; {missed}"),
    }
}

/// Describes an entry without its time; `summary` is that of a transaction.
pub(crate) fn describe(entry: &Entry, summary: &Summary) -> String {
    match entry {
        Entry::Transaction(transaction) => {
            format!("{} {}", summary.text(), by(&transaction.process))
        }
        Entry::Gap(gap) => format!("not recorded: {}", name_text(&gap.cause)),
        Entry::Start(start) => describe_start(start),
        Entry::Stop(_) => "recorder stopped".into(),
        other => format!("{other:?}"),
    }
}

/// Prints an entry on one line: its time, its generation, and what happened.
pub(crate) fn print_line(out: &mut Output, entry: &Entry, summary: &Summary) -> Result<(), Error> {
    let generation = match entry.generation() {
        Some(generation) => format!(" {generation:>6}"),
        None => " ".repeat(7),
    };
    let color = match entry {
        Entry::Transaction(_) => anstyle::Style::new(),
        _ => out.color(AnsiColor::Yellow),
    };
    let text = describe(entry, summary);
    let time = local(entry.time());
    writeln!(
        out,
        "{color}{time}{generation}  {}{color:#}",
        Printable(&text)
    )
}

/// The JSON of a process.
#[derive(Serialize)]
pub(crate) struct ProcessRecord {
    presence: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    command: Vec<String>,
    parents: Vec<ParentRecord>,
    #[serde(skip_serializing_if = "String::is_empty")]
    control_group: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
}

#[derive(Serialize)]
struct ParentRecord {
    process: u32,
    name: String,
    command: Vec<String>,
}

fn words(all: &[chainwright::bstr::BString]) -> Vec<String> {
    all.iter()
        .map(|word| name_text(word).into_owned())
        .collect()
}

impl ProcessRecord {
    fn of(process: &Process) -> Self {
        Self {
            presence: match process.presence {
                Presence::Present => "present",
                Presence::Gone => "gone",
                _ => "unnamed",
            },
            thread: process.thread_id,
            name: process
                .thread_name
                .as_ref()
                .map(|name| name_text(name).into_owned()),
            process: process.process_id,
            user: process.user,
            command: words(&process.command),
            parents: process
                .parents
                .iter()
                .map(|parent| ParentRecord {
                    process: parent.process_id,
                    name: name_text(&parent.name).into_owned(),
                    command: words(&parent.command),
                })
                .collect(),
            control_group: name_text(&process.control_group).into_owned(),
            unit: process.unit().map(|unit| name_text(unit).into_owned()),
            container: process.container().map(ToString::to_string),
            pod: process.pod(),
        }
    }
}

/// The JSON of an entry.
#[derive(Serialize)]
pub(crate) struct EntryRecord {
    event: &'static str,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
    /// The last recorded generation before a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u32>,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts: Vec<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<ProcessRecord>,
}

impl EntryRecord {
    pub(crate) fn of(entry: &Entry, summary: &Summary) -> Self {
        let (event, after, by) = match entry {
            Entry::Transaction(transaction) => (
                "transaction",
                None,
                Some(ProcessRecord::of(&transaction.process)),
            ),
            Entry::Gap(gap) => ("gap", Some(gap.after), None),
            Entry::Start(start) => ("start", start.after, None),
            _ => ("stop", None, None),
        };
        Self {
            event,
            time: humantime::format_rfc3339_millis(entry.time()).to_string(),
            sequence: entry.sequence(),
            generation: entry.generation(),
            after,
            text: match entry {
                Entry::Transaction(_) => summary.text(),
                _ => describe(entry, summary),
            },
            counts: summary.counts(),
            by,
        }
    }
}

/// Prints the known properties of a transaction's process, one per line.
pub(crate) fn print_process(out: &mut Output, process: &Process) -> Result<(), Error> {
    let command = (!process.command.is_empty()).then(|| words(&process.command).join(" "));
    let user = process.user.map(|user| user.to_string());
    let mut lines = vec![("command", command)];
    for parent in &process.parents {
        let line = match parent.command.is_empty() {
            true => name_text(&parent.name).into_owned(),
            false => words(&parent.command).join(" "),
        };
        let text = format!("{} (pid {})", clipped(&line), parent.process_id);
        lines.push(("started by", Some(text)));
    }
    lines.extend([
        ("user", user),
        ("unit", process.unit().map(ToString::to_string)),
        ("container", process.container().map(ToString::to_string)),
        ("pod", process.pod()),
    ]);
    for (name, value) in lines {
        if let Some(value) = value {
            writeln!(out, "  {name}: {}", Printable(&value))?;
        }
    }
    if process.presence == Presence::Gone {
        writeln!(
            out,
            "  it had already ended when the change arrived: only the kernel's report is known"
        )?;
    }
    Ok(())
}

/// Returns the last selected entries, in their order: reads the files from the newest to the oldest, as many as
/// necessary. Reports entries that cannot be read; then the second value is `false`.
pub(crate) fn last(
    archive: &Archive,
    number: usize,
    select: &dyn Fn(&Entry) -> Option<Summary>,
) -> (VecDeque<(Entry, Summary)>, bool) {
    let mut all = VecDeque::new();
    let mut is_whole = true;
    for segment in archive.segments().iter().rev() {
        let mut of_segment = VecDeque::new();
        for entry in segment.entries() {
            match entry {
                Ok(entry) => {
                    if let Some(summary) = select(&entry) {
                        of_segment.push_back((entry, summary));
                    }
                }
                Err(error) => {
                    failed(error).report();
                    is_whole = false;
                }
            }
            if all.len() + of_segment.len() > number {
                of_segment.pop_front();
            }
        }
        of_segment.append(&mut all);
        all = of_segment;
        if all.len() >= number {
            break;
        }
    }
    (all, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let now: Zoned = "2026-11-28T10:40:30[Europe/Berlin]".parse().unwrap();
        let utc = |text: &str| {
            let time: Timestamp = text.parse().unwrap();
            Ok(Moment::Time(time.into()))
        };
        for (text, expected) in [
            ("@10:32", utc("2026-11-28T09:32:59.999999999Z")),
            ("10:32:05", utc("2026-11-28T09:32:05.999999999Z")),
            ("@10:40", utc("2026-11-28T09:40:59.999999999Z")),
            ("@23:00", utc("2026-11-27T22:00:59.999999999Z")),
            ("@yesterday", utc("2026-11-27T09:40:30Z")),
            ("@-10m", utc("2026-11-28T09:30:30Z")),
            ("@2026-11-28T10:32", utc("2026-11-28T09:32:59.999999999Z")),
            (
                "@2026-11-28 10:32:05",
                utc("2026-11-28T09:32:05.999999999Z"),
            ),
            ("@2026-11-28T09:32:05.5Z", utc("2026-11-28T09:32:05.5Z")),
            ("@2026-11-20", utc("2026-11-19T23:00:00Z")),
            ("@now", Ok(Moment::Now)),
            ("@gen:77", Ok(Moment::Generation(77))),
        ] {
            assert_eq!(moment_at(text, &now), expected, "{text}");
        }
        for text in [
            "@",
            "@tomorrow",
            "@gen:x",
            "@-x",
            "@25:00",
            "@1",
            "@10:32:99",
            "@-",
        ] {
            assert!(moment_at(text, &now).is_err(), "{text}");
        }
    }
}
