//! `chainwright diff`: compares a file or a recorded ruleset with the ruleset, or two of them.

use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use chainwright::nft::{
    ChainRef, Connection, Diff, DiffOptions, ElementRef, FlowtableRef, ObjectFormatter, RuleRef,
    SetRef, Snapshot, SnapshotSet, SnapshotTable, StatefulObjectRef, TableRef,
};
use serde::Serialize;

use crate::behavior_diff;
use crate::get::rules;
use crate::log::only_nft;
use crate::output::{Error, Exit, Output, Printable, note};
use crate::recorded::{Directory, failed, moment};
use crate::scope::Scope;

/// Show the changes since a backup or a recorded moment, or between two
///
/// A moment is that of a ruleset that `record` has recorded: @10:32, @10:32:05, @now, @yesterday (24 hours ago), @-10m,
/// @2026-11-28T10:32, or @gen:77 for a generation.
///
/// Prints each changed object on one line: `-` marks the old version, `+` the new one. Rules are formatted as by
/// `get rules`, elements as by `get elements` (the start and the end of a range are separate lines), and other objects in nft's
/// syntax. In JSON, rules that iptables cannot express are bytecode. Without a second file, compares with the part of
/// the kernel's ruleset that the first file covers. The exit code is 1 if there are differences.
///
/// Values that the kernel assigns are not compared: handles, numbers of references, positions of rules, owners of
/// tables, remaining times of timeouts.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Input file, written by `snapshot`, or a recorded moment
    #[arg(value_name = "FILE|@TIME")]
    old: PathBuf,

    /// A later backup or moment, instead of the kernel's ruleset
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

    /// Show packets that the rulesets treat differently, instead of changes. The packets use values from the rules. The
    /// files may also be output of iptables-save, or in nft's language
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
    /// nft's syntax; `None` for bytecode.
    formatter: Option<chainwright_lang::ObjectFormatter<'o>>,
}

impl<'o> ListFormatter<'o> {
    /// Creates a formatter; without options it prints bytecode.
    pub(crate) fn new(options: Option<&'o chainwright_lang::Options>) -> Self {
        Self {
            sets: rules::sets(),
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

impl Args {
    /// Loads the selected part of a backup, or of the ruleset at a recorded moment.
    fn load(&self, name: &Path) -> Result<Option<Snapshot>, Error> {
        let Some(text) = name.to_str().filter(|text| text.starts_with('@')) else {
            return self.scope.load(name);
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
        Ok(match self.scope.is_filtered() {
            true => state.snapshot.filtered(&self.scope.filter()),
            false => Some(state.snapshot),
        })
    }
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
    let Some(old) = args.load(&args.old)? else {
        return Ok(Exit::Absent);
    };
    let new = match &args.new {
        Some(path) => match args.load(path)? {
            Some(new) => new,
            None => return Ok(Exit::Absent),
        },
        None => Connection::open_if_loaded()?.snapshot(old.scope().clone())?,
    };
    let mut options = DiffOptions::default();
    options.counters = args.counters;
    // The JSON format does not change.
    let diff = between(&old, &new, options, args.bytecode || json)?;
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

/// Prints each change on one line, or two.
pub(crate) fn print_text(out: &mut Output, diff: &Diff) -> Result<(), Error> {
    for change in &diff.changes {
        let path = Printable(&change.path);
        for (sign, color, text) in [
            ('-', AnsiColor::Red, &change.old),
            ('+', AnsiColor::Green, &change.new),
        ] {
            let Some(text) = text else {
                continue;
            };
            let (color, kind) = (out.color(color), change.kind);
            match text.is_empty() {
                true => writeln!(out, "{color}{sign} {kind} {path}{color:#}")?,
                false => {
                    let text = Printable(text);
                    writeln!(out, "{color}{sign} {kind} {path}: {text}{color:#}")?;
                }
            }
        }
    }
    Ok(())
}
