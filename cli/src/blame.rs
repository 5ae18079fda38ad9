//! `chainwright blame`: finds the transaction that added each rule.

use std::collections::HashMap;

use bstr::{BString, ByteSlice};
use chainwright::nft::live::EventObject;
use chainwright::nft::{Family, Snapshot, SnapshotTable};
use chainwright_record::{Archive, Entry, Moment, Reason};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::completions;
use crate::diff::ListFormatter;
use crate::glob::Glob;
use crate::log::only_nft;
use crate::output::{Error, Exit, Output, Printable, note};
use crate::recorded::{Directory, EntryRecord, by, failed, local, moment};
use crate::scope::{Scope, admits};
use crate::show::summary;
use chainwright::nft::ObjectFormatter as _;

/// Show the recorded transaction that added each rule of a chain, or each element of a set
///
/// One line per rule: the time, the generation and the process of the transaction that added it, or that last replaced
/// it, and then the rule; likewise for the chain or set itself. If a rule is older than the record, its line has a
/// dash; if it was added while nothing was recorded, its line names the generations before and after. The exit code is
/// 1 if nothing matches.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Chains or sets of this name; * and ? are wildcards
    #[arg(value_name = "CHAIN", add = ArgValueCompleter::new(completions::chains))]
    chain: Glob,

    /// Only rules and elements whose text contains this
    #[arg(value_name = "TEXT")]
    rule: Option<String>,

    /// The rules at this moment: @10:32, @yesterday, @-10m, @2026-11-28T10:32, @gen:77
    #[arg(long, value_name = "@TIME", value_parser = moment, default_value = "@now", allow_hyphen_values = true)]
    at: Moment,

    #[command(flatten)]
    directory: Directory,

    #[command(flatten)]
    scope: Scope,
}

/// Identity of an object in the record. Handles are unique in a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    /// A rule, chain or set.
    Handle(u64),
    /// An element: its set's name, its key, and whether it ends a range.
    Element(BString, BString, bool),
}

/// An object to blame.
struct Target {
    table: (Family, BString),
    identity: Identity,
    kind: &'static str,
    path: String,
    text: String,
    origin: Option<Origin>,
}

/// Origin of an object.
#[derive(Clone)]
enum Origin {
    Transaction(Entry),
    /// It was added during a gap.
    Gap(Entry),
}

/// Returns the objects of the selected chains and sets.
fn targets(args: &Args, snapshot: &Snapshot, formatter: &ListFormatter<'_>) -> Vec<Target> {
    let mut targets = Vec::new();
    let filter = args.scope.filter();
    for table in snapshot.tables() {
        let view = table.table();
        if !filter.admits(view.family(), view.name()) {
            continue;
        }
        of_table(args, &table, formatter, &mut targets);
    }
    targets
}

fn of_table(
    args: &Args,
    table: &SnapshotTable<'_>,
    formatter: &ListFormatter<'_>,
    targets: &mut Vec<Target>,
) {
    let view = table.table();
    let key = (view.family(), view.name().to_owned());
    let place = format!("{} {}", view.family(), view.name());
    let is_wanted = |text: &str| {
        args.rule
            .as_ref()
            .is_none_or(|part| text.contains(part.as_str()))
    };
    let mut add = |identity, kind, path: &str, text: String| {
        targets.push(Target {
            table: key.clone(),
            identity,
            kind,
            path: path.to_owned(),
            text,
            origin: None,
        });
    };
    for chain in table.chains() {
        let view = chain.chain();
        if !admits(Some(&args.chain), view.name()) {
            continue;
        }
        let path = format!("{place} {}", view.name());
        if args.rule.is_none() {
            let text = formatter.chain(&view).unwrap_or_default();
            add(Identity::Handle(view.handle()), "chain", &path, text);
        }
        for rule in chain.rules() {
            let text = formatter.rule_with_contents(table, &rule);
            let text =
                text.unwrap_or_else(|| crate::get::rules::format_rule(&rule, formatter.sets()));
            if is_wanted(&text) {
                add(Identity::Handle(rule.handle()), "rule", &path, text);
            }
        }
    }
    for set in table.sets() {
        let view = set.set();
        if !admits(Some(&args.chain), view.name()) {
            continue;
        }
        let path = format!("{place} {}", view.name());
        if args.rule.is_none() {
            let text = formatter.set(&set).unwrap_or_default();
            add(Identity::Handle(view.handle()), "set", &path, text);
        }
        for element in set.elements() {
            let text = formatter.element(&view, &element).unwrap_or_default();
            let key = element.key_bytes().unwrap_or_default().into();
            if is_wanted(&text) {
                let identity =
                    Identity::Element(view.name().to_owned(), key, element.is_interval_end());
                add(identity, "element", &path, text);
            }
        }
    }
}

/// Returns the identities of all objects of a ruleset in these tables.
fn has(snapshot: &Snapshot, target: &Target) -> bool {
    let Some(table) = snapshot.table(target.table.0, &target.table.1) else {
        return false;
    };
    match &target.identity {
        Identity::Handle(handle) => match target.kind {
            "set" => table.sets().any(|set| set.set().handle() == *handle),
            "chain" => table
                .chains()
                .any(|chain| chain.chain().handle() == *handle),
            _ => {
                let mut rules = table.chains().flat_map(|chain| chain.rules());
                rules.any(|rule| rule.handle() == *handle)
            }
        },
        Identity::Element(set, key, is_end) => table.set(set).is_some_and(|set| {
            let mut elements = set.elements();
            elements.any(|element| {
                element.key_bytes() == Some(key) && element.is_interval_end() == *is_end
            })
        }),
    }
}

/// Finds the origins, from the newest file to the oldest.
fn blame(archive: &Archive, until: u64, targets: &mut [Target]) -> Result<(), Error> {
    let segments = archive.segments();
    for (index, segment) in segments.iter().enumerate().rev() {
        if segment.sequence() > until {
            continue;
        }
        let mut wanted = HashMap::new();
        for (number, target) in targets.iter().enumerate() {
            if target.origin.is_none() {
                wanted.insert((target.table.clone(), target.identity.clone()), number);
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let mut found: HashMap<usize, Entry> = HashMap::new();
        for entry in segment.entries() {
            let entry = entry.map_err(failed)?;
            if entry.sequence().is_some_and(|sequence| sequence > until) {
                break;
            }
            if let Entry::Transaction(transaction) = &entry {
                for number in added(transaction, &wanted) {
                    found.insert(number, entry.clone());
                }
            }
        }
        for (number, entry) in found {
            targets[number].origin = Some(Origin::Transaction(entry));
        }
        let start = segment.start().map_err(failed)?;
        if start.reason == Reason::Rotated || index == 0 {
            continue;
        }
        // What the last ruleset before the gap does not have was made in the gap.
        let before = Moment::Sequence(segment.sequence() - 1);
        let before = archive.state_at(before).map_err(failed)?;
        for target in targets.iter_mut().filter(|target| target.origin.is_none()) {
            if !has(&before.snapshot, target) {
                target.origin = Some(Origin::Gap(Entry::Start(start.clone())));
            }
        }
    }
    Ok(())
}

/// Returns the numbers of the wanted objects that a transaction added.
fn added(
    transaction: &chainwright_record::Transaction,
    wanted: &HashMap<((Family, BString), Identity), usize>,
) -> Vec<usize> {
    let mut numbers = Vec::new();
    for event in transaction
        .change
        .events()
        .filter(|event| !event.is_deletion())
    {
        let Some(table) = event.table() else {
            continue;
        };
        let table = (event.family(), table.to_owned());
        let identities = match event.object() {
            Ok(EventObject::Rule(_) | EventObject::Chain(_) | EventObject::Set(_)) => {
                event.handle().map(Identity::Handle).into_iter().collect()
            }
            Ok(EventObject::Elements(elements)) => {
                let of_set = elements.elements().into_iter().flatten().flatten();
                of_set
                    .map(|element| {
                        let key = element.key_bytes().unwrap_or_default().into();
                        let is_end = element.is_interval_end();
                        Identity::Element(elements.set().to_owned(), key, is_end)
                    })
                    .collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        for identity in identities {
            numbers.extend(wanted.get(&(table.clone(), identity)));
        }
    }
    numbers
}

/// The JSON of an object.
#[derive(Serialize)]
struct TargetRecord {
    kind: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<u64>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<EntryRecord>,
}

#[derive(Serialize)]
struct Document {
    objects: Vec<TargetRecord>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    only_nft(&args.scope)?;
    let archive = args.directory.open()?;
    let state = archive.state_at(args.at).map_err(failed)?;
    let options = crate::dialect::options();
    let formatter = ListFormatter::new(Some(&options));
    let mut targets = targets(args, &state.snapshot, &formatter);
    blame(&archive, state.sequence, &mut targets)?;
    let mut out = Output::new();
    if json {
        let objects = targets.iter().map(|target| TargetRecord {
            kind: target.kind,
            path: target.path.clone(),
            handle: match target.identity {
                Identity::Handle(handle) => Some(handle),
                Identity::Element(..) => None,
            },
            text: target.text.clone(),
            made: target.origin.as_ref().map(|origin| match origin {
                Origin::Transaction(entry) | Origin::Gap(entry) => {
                    EntryRecord::of(entry, &summary(entry))
                }
            }),
        });
        let objects = objects.collect();
        out.json("blame", &Document { objects })?;
    } else {
        print(&mut out, &targets)?;
    }
    out.flush()?;
    if targets.is_empty() {
        if !json {
            note("no matching chain, set, rule or element found");
        }
        return Ok(Exit::Absent);
    }
    Ok(Exit::Done)
}

fn print(out: &mut Output, targets: &[Target]) -> Result<(), Error> {
    let mut path = "";
    for target in targets {
        if target.path != path {
            path = &target.path;
            writeln!(out, "{}", Printable(path))?;
        }
        let what = match target.kind {
            "rule" | "element" => target.text.clone(),
            kind => format!("{kind} {}", target.text),
        };
        let origin = match &target.origin {
            None => "- older than the record".to_owned(),
            Some(Origin::Transaction(entry)) => {
                let process = match entry {
                    Entry::Transaction(transaction) => by(&transaction.process),
                    _ => String::new(),
                };
                let generation = entry.generation().unwrap_or_default();
                format!("{} {generation:>6} {process}", local(entry.time()))
            }
            Some(Origin::Gap(entry)) => {
                let Entry::Start(start) = entry else {
                    continue;
                };
                format!(
                    "{} not recorded: between generations {} and {}",
                    local(start.time),
                    start.after.unwrap_or_default(),
                    start.generation
                )
            }
        };
        writeln!(
            out,
            "  {}",
            Printable(what.trim_end().as_bytes().to_str_lossy().as_ref())
        )?;
        writeln!(out, "      {}", Printable(&origin))?;
    }
    Ok(())
}
