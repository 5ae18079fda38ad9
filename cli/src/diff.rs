//! `chainwright diff`: compares a file or a recorded ruleset with the ruleset, or two of them.

use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use chainwright::nft::{
    ChainRef, Change, Connection, Diff, DiffOptions, ElementRef, FlowtableRef, ObjectFormatter,
    RuleRef, Scope as NftScope, SetRef, Snapshot, SnapshotSet, SnapshotTable, StatefulObjectRef,
    TableRef,
};
use serde::Serialize;

use crate::behavior_diff;
use crate::get::rules;
use crate::log::only_nft;
use crate::output::{Error, Exit, Output, Printable, note};
use crate::recorded::{Directory, failed, moment};
use crate::ruleset_source::Source;
use crate::scope::Scope;

/// Show the changes since a file was written or a moment was recorded, or between two
///
/// A file is a snapshot, output of iptables-save, or a ruleset in nft's language or libnftables' JSON; `-` is standard
/// input.
///
/// A moment is that of a ruleset that `record` has recorded: @10:32, @10:32:05, @now, @yesterday (24 hours ago), @-10m,
/// @2026-11-28T10:32, or @gen:77 for a generation.
///
/// Prints each changed object on one line: `-` marks the old version, `+` the new one. Rules are formatted as by
/// `get rules`, elements as by `get elements` (the start and the end of a range are separate lines), and other objects in nft's
/// syntax. In JSON, rules that iptables cannot express are bytecode. Without a second file, compares with the part of
/// the kernel's ruleset that the first file covers: of a snapshot, what it was saved from; of a text, the tables that it
/// creates. The exit code is 1 if there are differences.
///
/// Values that the kernel assigns are not compared: handles, numbers of references, positions of rules, owners of
/// tables, remaining times of timeouts.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Input file, or a recorded moment
    #[arg(value_name = "FILE|@TIME")]
    old: PathBuf,

    /// A later file or moment, instead of the kernel's ruleset
    #[arg(value_name = "FILE|@TIME")]
    new: Option<PathBuf>,

    #[command(flatten)]
    directory: Directory,

    /// Also compare counters, quotas and times of last use
    #[arg(long)]
    counters: bool,

    /// Show rules that iptables cannot express as bytecode, one pair of brackets per expression, instead of in nft's
    /// syntax
    #[arg(long)]
    bytecode: bool,

    /// Show packets that the rulesets treat differently, instead of changes. The packets use values from the rules
    #[arg(long, alias = "packets", conflicts_with_all = ["counters", "bytecode"])]
    behavior: bool,

    /// Maximum number of packets to try
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 5000,
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "behavior"
    )]
    tries: u32,

    #[command(flatten)]
    scope: Scope,
}

/// Formats objects like `get rules` and `get elements`.
pub(crate) struct ListFormatter<'o> {
    sets: rules::Sets,
    /// Whether rules that iptables can express are compared as text: iptables has written some rules in different forms.
    compares_iptables_text: bool,
    /// nft's syntax; `None` for bytecode.
    formatter: Option<chainwright_lang::ObjectFormatter<'o>>,
}

impl<'o> ListFormatter<'o> {
    /// Creates a formatter; without options it prints bytecode.
    pub(crate) fn new(options: Option<&'o chainwright_lang::Options>) -> Self {
        Self {
            sets: rules::sets(),
            compares_iptables_text: false,
            formatter: options.map(chainwright_lang::ObjectFormatter::new),
        }
    }

    pub(crate) const fn sets(&self) -> &rules::Sets {
        &self.sets
    }

    fn format_with<'s>(
        &'s self,
        format_with: impl FnOnce(&'s chainwright_lang::ObjectFormatter<'_>) -> Option<String>,
    ) -> Option<String> {
        self.formatter.as_ref().and_then(format_with)
    }
}

impl ObjectFormatter for ListFormatter<'_> {
    fn rule_key(&self, rule: &RuleRef<'_>, counters: bool) -> Option<Vec<u8>> {
        let text = self
            .compares_iptables_text
            .then(|| rules::options(rule, &self.sets))??;
        let key = match (counters, text.split_once("] ")) {
            (false, Some((_, options))) => options.to_owned(),
            _ => text,
        };
        Some(key.into_bytes())
    }

    fn rule_with_contents(&self, table: &SnapshotTable<'_>, rule: &RuleRef<'_>) -> Option<String> {
        rules::options(rule, &self.sets)
            .or_else(|| self.format_with(|formatter| formatter.rule_with_contents(table, rule)))
    }

    fn table(&self, table: &TableRef<'_>) -> Option<String> {
        self.format_with(|formatter| formatter.table(table))
    }

    fn chain(&self, chain: &ChainRef<'_>) -> Option<String> {
        self.format_with(|formatter| formatter.chain(chain))
    }

    fn set(&self, set: &SnapshotSet<'_>) -> Option<String> {
        self.format_with(|formatter| formatter.set(set))
    }

    fn object(&self, object: &StatefulObjectRef<'_>) -> Option<String> {
        self.format_with(|formatter| formatter.object(object))
    }

    fn flowtable(&self, flowtable: &FlowtableRef<'_>) -> Option<String> {
        self.format_with(|formatter| formatter.flowtable(flowtable))
    }

    fn element(&self, set: &SetRef<'_>, element: &ElementRef<'_>) -> Option<String> {
        let options = crate::dialect::of_selected(chainwright_lang::Options::default());
        Some(chainwright_lang::element(set, element, &options))
    }
}

/// Compares two snapshots; formats rules that iptables cannot express in nft's syntax or as bytecode.
pub(crate) fn between(
    old: &Snapshot,
    new: &Snapshot,
    options: DiffOptions,
    bytecode: bool,
) -> Result<Diff, Error> {
    let words = crate::dialect::options();
    let formatter = ListFormatter::new((!bytecode).then_some(&words));
    Ok(old.diff_with(new, options, &formatter)?)
}

/// Compares iptables' tables with those of a text, both [read from text](crate::iptables::snapshot_of_text).
pub(crate) fn of_iptables(old: &Snapshot, text: &Snapshot) -> Result<Diff, Error> {
    let words = crate::dialect::options();
    let mut formatter = ListFormatter::new(Some(&words));
    formatter.compares_iptables_text = true;
    of_tables(text, [old, text], DiffOptions::default(), &formatter)
}

/// A ruleset to compare.
struct Loaded {
    snapshot: Snapshot,
    kind: Kind,
}

/// The kind of a ruleset's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A snapshot or a recorded ruleset.
    Snapshot,
    /// A text in nft's language. It does not describe tables that it does not create.
    Script,
    /// Output of iptables-save. It does not describe other tables either, nor the form in which the kernel has a rule.
    Iptables,
}

impl Args {
    /// Loads the selected part of a file, or of the ruleset at a recorded moment.
    fn load(&self, name: &Path) -> Result<Option<Loaded>, Error> {
        let Some(text) = name.to_str().filter(|text| text.starts_with('@')) else {
            return self.load_file(name);
        };
        only_nft(&self.scope)?;
        let moment = moment(text).map_err(Error::Other)?;
        let state = self.directory.open()?.state_at(moment).map_err(failed)?;
        if !state.is_exact {
            note(&format!(
                "{}: the order of some rules is uncertain",
                Printable(text)
            ));
        }
        let snapshot = match self.scope.is_filtered() {
            true => state.snapshot.filtered(&self.scope.filter()),
            false => Some(state.snapshot),
        };
        let kind = Kind::Snapshot;
        Ok(snapshot.map(|snapshot| Loaded { snapshot, kind }))
    }

    fn load_file(&self, path: &Path) -> Result<Option<Loaded>, Error> {
        self.scope.check_file()?;
        let name = path.to_string_lossy();
        let source = Source::read(path, &self.scope)?;
        let kind = match source {
            Source::Backup(_) => Kind::Snapshot,
            Source::Script(_) => Kind::Script,
            Source::Iptables(..) => Kind::Iptables,
        };
        let snapshot = source.into_snapshot().map_err(|reason| {
            Error::Other(format!("{} is not a ruleset: {reason}", Printable(&name)))
        })?;
        let snapshot = self.scope.part_of(snapshot, &name);
        Ok(snapshot.map(|snapshot| Loaded { snapshot, kind }))
    }
}

/// Compares two rulesets in the tables of `text`, one after the other.
fn of_tables(
    text: &Snapshot,
    sides: [&Snapshot; 2],
    options: DiffOptions,
    formatter: &ListFormatter<'_>,
) -> Result<Diff, Error> {
    let mut all = Diff::default();
    for table in text.tables() {
        let scope = NftScope::table(table.table().family(), table.table().name());
        let [old, new] = sides.map(|one| one.filtered(&scope).unwrap_or_default());
        all.changes
            .extend(old.diff_with(&new, options, formatter)?.changes);
    }
    Ok(all)
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'d> {
    changes: &'d Diff,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    if args.behavior {
        return behavior_diff::run(
            &args.old,
            args.new.as_deref(),
            usize::try_from(args.tries).unwrap_or(usize::MAX),
            &args.scope,
            json,
        );
    }
    let is_stdin = |path: &Path| path == Path::new("-");
    if is_stdin(&args.old) && args.new.as_deref().is_some_and(is_stdin) {
        return Err(Error::Other("standard input can be read only once".into()));
    }
    let Some(old) = args.load(&args.old)? else {
        return Ok(Exit::Absent);
    };
    let new = match &args.new {
        None => None,
        Some(path) => match args.load(path)? {
            None => return Ok(Exit::Absent),
            new => new,
        },
    };
    let mut options = DiffOptions::default();
    options.counters = args.counters;
    let words = crate::dialect::options();
    // The JSON format does not change.
    let mut formatter = ListFormatter::new((!args.bytecode && !json).then_some(&words));
    formatter.compares_iptables_text = [Some(&old), new.as_ref()]
        .into_iter()
        .flatten()
        .any(|one| one.kind == Kind::Iptables);
    let (old, kind) = (old.snapshot, old.kind);
    let diff = match new {
        Some(new) => old.diff_with(&new.snapshot, options, &formatter)?,
        None => {
            let now = Connection::open_if_loaded()?.snapshot(old.scope().clone())?;
            match kind {
                Kind::Snapshot => old.diff_with(&now, options, &formatter)?,
                _ => of_tables(&old, [&old, &now], options, &formatter)?,
            }
        }
    };
    let mut out = Output::new();
    if json {
        out.json("diff", &Document { changes: &diff })?;
    } else {
        print_text(&mut out, &diff)?;
    }
    out.flush()?;
    Ok(if diff.is_empty() {
        Exit::Done
    } else {
        Exit::Absent
    })
}

/// Formats a change in one line, or two, each with its color.
pub(crate) fn lines(change: &Change) -> impl Iterator<Item = (AnsiColor, String)> {
    let path = Printable(&change.path).to_string();
    let sides = [
        ('-', AnsiColor::Red, &change.old),
        ('+', AnsiColor::Green, &change.new),
    ];
    let kind = change.kind;
    sides.into_iter().filter_map(move |(sign, color, text)| {
        let line = match text.as_deref()? {
            "" => format!("{sign} {kind} {path}"),
            text => format!("{sign} {kind} {path}: {}", Printable(text)),
        };
        Some((color, line))
    })
}

/// Prints all changes.
pub(crate) fn print_text(out: &mut Output, diff: &Diff) -> Result<(), Error> {
    for (color, line) in diff.changes.iter().flat_map(lines) {
        let color = out.color(color);
        writeln!(out, "{color}{line}{color:#}")?;
    }
    Ok(())
}
