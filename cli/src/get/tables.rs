//! `chainwright get tables`: lists tables, one per line.

use std::fmt;

use bstr::BStr;
use chainwright::legacy;
use chainwright::nft::{
    ElementFilter, Part, PartialSnapshot, SetFlags, SnapshotOptions, SnapshotSet, SnapshotTable,
};
use serde::Serialize;

use super::{ListFormat, ListOutput};
use crate::glob::Names;
use crate::legacy_tables::{self, family_name};
use crate::output::{Error, Exit, Output, Printable, counted, name_text};
use crate::scope::{Found, Scope, Selection, UnreadPart};

/// List tables, one per line
///
/// Prints backend, family and name; the number of chains; for nf_tables also of named sets and maps, and the flags: a
/// table with the flag `owner` belongs to a program, and others cannot change it.
///
/// A legacy table is listed if the kernel has created it for this network namespace; listing creates none.
///
/// The listing shows one generation of the ruleset, as in `get chains`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    names: Names,

    /// Show the number of rules of each table
    #[arg(long)]
    rules: bool,

    #[command(flatten)]
    output: ListOutput,

    #[command(flatten)]
    place: Selection,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'s> {
    tables: &'s [Line],
    not_read: &'s [UnreadPart],
}

/// A listed table.
#[derive(Serialize)]
struct Line {
    backend: &'static str,
    family: String,
    table: String,
    chains: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sets: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flowtables: Option<usize>,
    flags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<u64>,
    /// The netlink port of the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_port: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

impl Line {
    fn nft(table: &SnapshotTable<'_>, rules: bool) -> Self {
        let header = table.table();
        let flags = header.flags().unwrap_or_default();
        let mut known = flags.iter_names();
        let names = known.by_ref().map(|(name, _)| name.to_lowercase());
        let mut names: Vec<String> = names.collect();
        let unknown = known.remaining();
        if !unknown.is_empty() {
            names.push(format!("{:#x}", unknown.bits()));
        }
        let is_named = |set: &SnapshotSet<'_>| {
            let flags = set.set().flags().unwrap_or_default();
            !flags.contains(SetFlags::ANONYMOUS)
        };
        Self {
            backend: "nft",
            family: header.family().to_string(),
            table: name_text(header.name()).into_owned(),
            chains: table.chains().len(),
            rules: rules.then(|| table.chains().map(|chain| chain.rules().len()).sum()),
            sets: Some(table.sets().filter(is_named).count()),
            flowtables: Some(table.flowtables().len()),
            flags: names,
            handle: Some(header.handle()),
            owner_port: header.owner(),
            comment: header
                .comment()
                .map(|comment| name_text(comment).into_owned()),
        }
    }

    fn legacy(table: &legacy::Table, rules: bool) -> Self {
        Self {
            backend: "legacy",
            family: family_name(table.family()).to_owned(),
            table: table.name().as_bstr().to_string(),
            chains: table.chains().count(),
            rules: rules.then(|| table.chains().map(|chain| chain.rule_count()).sum()),
            sets: None,
            flowtables: None,
            flags: Vec::new(),
            handle: None,
            owner_port: None,
            comment: None,
        }
    }
}

impl fmt::Display for Line {
    /// Formats the line; with `#` the wide one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:6} {:6} {:20} {}",
            self.backend,
            self.family,
            Printable(&self.table),
            counted(self.chains, "chain", "chains")
        )?;
        let more = [
            (self.rules, "rule", "rules"),
            (self.sets, "set", "sets"),
            (self.flowtables, "flowtable", "flowtables"),
        ];
        for (count, one, many) in more {
            // A table without sets is common, and so is one without flowtables.
            if let Some(count) = count.filter(|count| *count > 0 || one == "rule") {
                write!(f, ", {}", counted(count, one, many))?;
            }
        }
        if !self.flags.is_empty() {
            write!(f, ", flags {}", self.flags.join(","))?;
        }
        if let Some(port) = self.owner_port {
            write!(f, ", owned by netlink port {port}")?;
        }
        if let Some(handle) = self.handle.filter(|_| f.alternate()) {
            write!(f, ", handle {handle}")?;
        }
        if let Some(comment) = &self.comment {
            write!(f, ", comment \"{}\"", Printable(comment))?;
        }
        Ok(())
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let scope = Scope::of(args.place.clone());
    scope.check()?;
    let format = args.output.format(json);
    let with_rules = args.rules || format == ListFormat::Wide;
    let mut found = Found::default();
    let mut lines = Vec::new();
    let admits = |name: &BStr| args.names.admits(name);
    let snapshot = found.nft(args.place.listed(), || {
        scope.read_or_note(|nft, filter| match with_rules {
            true => {
                let elements = ElementFilter::ANONYMOUS;
                let read = nft.snapshot_with(filter, SnapshotOptions { elements });
                read.map(PartialSnapshot::from)
            }
            false => {
                let parts = [Part::Chains, Part::Sets, Part::Maps, Part::Flowtables];
                let elements = ElementFilter::empty();
                nft.snapshot_parts(filter, &parts, SnapshotOptions { elements })
            }
        })
    })?;
    let snapshot = snapshot.unwrap_or_default();
    for table in snapshot
        .tables()
        .filter(|table| admits(table.table().name()))
    {
        lines.push(Line::nft(&table, with_rules));
    }
    legacy_tables::read_selected(&scope, &mut found, &mut |table| {
        if admits(table.name().as_bstr()) {
            lines.push(Line::legacy(table, with_rules));
        }
        Ok(())
    })?;
    let mut out = Output::new();
    match format {
        ListFormat::Json => {
            let (tables, not_read) = (&lines[..], &found.not_read[..]);
            out.json("tables", &Document { tables, not_read })?;
        }
        ListFormat::Table => lines.iter().try_for_each(|line| writeln!(out, "{line}"))?,
        ListFormat::Wide => lines
            .iter()
            .try_for_each(|line| writeln!(out, "{line:#}"))?,
        ListFormat::Name => {
            let mut names = lines.iter().map(|line| Printable(&line.table));
            names.try_for_each(|name| writeln!(out, "{name}"))?;
        }
    }
    out.flush()?;
    let filtered = scope.is_filtered() || !args.names.is_empty();
    let is_json = format == ListFormat::Json;
    Ok(found.end(
        !lines.is_empty(),
        "table",
        filtered,
        args.place.listed(),
        is_json,
    ))
}
