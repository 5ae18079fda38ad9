//! `chainwright get rules`: lists the rules of chains.

use std::cell::LazyCell;
use std::fmt::Write as _;

use bstr::BStr;
use chainwright::iptables::nft::decode;
use chainwright::iptables::{self, Counters, Entry, Policy};
use chainwright::metrics::rule_comment;
use chainwright::nft::expr::{Counter, Decoded};
use chainwright::nft::{
    self, Connection, ElementFilter, Part, PartialSnapshot, RuleRef, SnapshotChain, SnapshotError,
    SnapshotOptions, SnapshotTable, Table,
};
use chainwright::{ipset, legacy};
use serde::Serialize;

use super::{ListFormat, ListOutput};
use crate::get::chains::{Line, print_line};
use crate::glob::Names;
use crate::iptables::{ChainRecord, RuleRecord, TableRecord};
use crate::legacy_tables::{self, family_name};
use crate::output::{Error, Exit, Output, Printable, name_text};
use crate::scope::{Backend, Found, Scope, UnreadPart};

/// List rules, by chain
///
/// Below the line of each chain (the same as in `get chains`), prints its rules: the handle, or the number of a rule in a
/// legacy chain; the rule; its comment. Rules that iptables can express are shown in iptables' syntax, with counters as
/// in `iptables-save -c`. Other rules of nf_tables are shown in nft's syntax; if nft cannot express them, as bytecode,
/// with one pair of brackets per expression. Other legacy rules are shown as bytes. -o wide adds to the line of a chain
/// what it adds in `get chains`, and to a rule of nf_tables its number; -o name prints only the names of the chains.
///
/// The listing shows one generation of the ruleset. If the ruleset changes meanwhile, it is read again. If it keeps
/// changing, the rules are listed anyway, standard error warns that the listing may be inconsistent, and the exit code
/// is 2.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    names: Names,

    /// Print what `nft --debug=netlink list` (nft 1.0.6) prints before the listing itself: for each table of nf_tables
    /// its sets with their elements, then its rules, one expression per line
    #[arg(long, conflicts_with_all = ["json", "output"])]
    bytecode: bool,

    #[command(flatten)]
    output: ListOutput,

    #[command(flatten)]
    scope: Scope,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'s> {
    generation: Option<u32>,
    tables: Vec<TableDocument<'s>>,
    legacy: Vec<LegacyRecord>,
    not_read: &'s [UnreadPart],
}

#[derive(Serialize)]
struct TableDocument<'s> {
    table: Table<'s>,
    chains: Vec<SnapshotChain<'s>>,
}

/// A legacy table.
#[derive(Serialize)]
struct LegacyRecord {
    family: &'static str,
    #[serde(flatten)]
    table: TableRecord<'static>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    let backend = match (args.bytecode, args.scope.place.listed()) {
        (false, backend) => backend,
        (true, Backend::Legacy) => {
            return Err(Error::Other("legacy tables have no bytecode".into()));
        }
        (true, _) => Backend::Nft,
    };
    let mut found = Found::default();
    let snapshot = found
        .nft(backend, || {
            args.scope
                .read_or_note(|nft, filter| args.read(nft, filter))
        })?
        .unwrap_or_default();
    let tables: Vec<_> = snapshot
        .tables()
        .map(|table| (table, args.chains(&table)))
        .filter(|(_, chains)| !chains.is_empty())
        .collect();
    let mut any = !tables.is_empty();
    let format = args.output.format(json);
    let json = format == ListFormat::Json;
    let sets = sets();
    let mut out = Output::new();
    if args.bytecode {
        let has_sets = |table: SnapshotTable<'_>| table.sets().next().is_some();
        any |= args.names.is_empty() && snapshot.tables().any(has_sets);
        bytecode(&mut out, args, &snapshot, &tables)?;
    } else if json {
        let mut legacy = Vec::new();
        legacy_tables::read_selected(&args.scope, &mut found, &mut |table| {
            legacy.extend(args.legacy_record(table, &sets));
            Ok(())
        })?;
        any |= !legacy.is_empty();
        out.json(
            "rules",
            &Document {
                generation: snapshot.generation().map(|generation| generation.number()),
                tables: tables
                    .into_iter()
                    .map(|(table, chains)| TableDocument {
                        table: table.table().to_builder(),
                        chains,
                    })
                    .collect(),
                legacy,
                not_read: &found.not_read,
            },
        )?;
    } else {
        let options = crate::dialect::options();
        for (table, chains) in &tables {
            for chain in chains {
                print_text(&mut out, table, chain, &sets, &options, format)?;
            }
        }
        legacy_tables::read_selected(&args.scope, &mut found, &mut |table| {
            for chain in table.chains().filter(|chain| args.admits(chain.name())) {
                any = true;
                print_legacy_text(&mut out, &chain, &sets, format)?;
            }
            Ok(())
        })?;
    }
    out.flush()?;
    let filtered = args.scope.is_filtered() || !args.names.is_empty();
    Ok(found.end(any, "chain", filtered, backend, json))
}

/// Reads the chains with these names, and what printing their rules requires.
pub(crate) fn read(
    nft: &mut Connection,
    filter: nft::Scope<'_>,
    names: &Names,
) -> Result<PartialSnapshot, SnapshotError> {
    if let Some(names) = names.exact() {
        let parts: Vec<_> = names.into_iter().map(Part::Chain).collect();
        return nft.snapshot_parts(filter, &parts, SnapshotOptions::default());
    }
    if !names.is_empty() {
        return nft.snapshot_chains(filter, |chain| names.admits(chain));
    }
    let options = SnapshotOptions {
        elements: ElementFilter::ANONYMOUS,
    };
    let read = nft.snapshot_with(filter, options);
    read.map(PartialSnapshot::from)
}

impl Args {
    /// Reads the selected tables and chains.
    fn read(
        &self,
        nft: &mut Connection,
        filter: nft::Scope<'_>,
    ) -> Result<PartialSnapshot, SnapshotError> {
        if self.bytecode {
            return nft.snapshot(filter).map(PartialSnapshot::from);
        }
        read(nft, filter, &self.names)
    }

    /// Returns the selected chains of a table.
    fn chains<'s>(&self, table: &SnapshotTable<'s>) -> Vec<SnapshotChain<'s>> {
        table
            .chains()
            .filter(|chain| self.admits(chain.chain().name()))
            .collect()
    }

    fn admits(&self, chain: &BStr) -> bool {
        self.names.admits(chain)
    }

    /// Returns the JSON of a legacy table, if it has selected chains.
    fn legacy_record(&self, table: &legacy::Table, sets: &Sets) -> Option<LegacyRecord> {
        let chains: Vec<_> = table
            .chains()
            .filter(|chain| self.admits(chain.name()))
            .map(|chain| ChainRecord {
                chain: name_text(chain.name()).into_owned().into(),
                policy: chain.policy().map(Policy::name),
                counters: chain.builtin().map(|builtin| builtin.counters.into()),
                rules: (1..)
                    .zip(chain.rules())
                    .map(|(number, rule)| RuleRecord::of(entry(&rule, sets)).at(number))
                    .collect(),
                ..ChainRecord::default()
            })
            .collect();
        (!chains.is_empty()).then(|| LegacyRecord {
            family: family_name(table.family()),
            table: TableRecord {
                table: table.name().as_bstr().to_string().into(),
                chains,
            },
        })
    }
}

/// Prints bytecode like `nft`: the sets of tables, then the rules of chains.
fn bytecode(
    out: &mut Output,
    args: &Args,
    snapshot: &PartialSnapshot,
    tables: &[(SnapshotTable<'_>, Vec<SnapshotChain<'_>>)],
) -> Result<(), Error> {
    if args.names.is_empty() {
        return write!(out, "{snapshot}");
    }
    for (table, chains) in tables {
        for set in table.sets() {
            writeln!(out, "{}", set.set())?;
            for element in set.elements() {
                writeln!(out, "\t{element}")?;
            }
        }
        for rule in chains.iter().flat_map(SnapshotChain::rules) {
            write!(out, "{rule}")?;
        }
    }
    Ok(())
}

/// The connection that looks up the names of sets, opened when the first rule refers to a set; `None` if it cannot be
/// opened.
pub(crate) type Sets = LazyCell<Option<ipset::Connection>>;

pub(crate) fn sets() -> Sets {
    LazyCell::new(|| ipset::Connection::open().ok())
}

/// Prints a chain with its rules as text.
fn print_text(
    out: &mut Output,
    table: &SnapshotTable<'_>,
    chain: &SnapshotChain<'_>,
    sets: &Sets,
    words: &chainwright_lang::Options,
    format: ListFormat,
) -> Result<(), Error> {
    let rules = chain.rules();
    print_line(out, &Line::nft(&chain.chain(), Some(rules.len())), format)?;
    if format == ListFormat::Name {
        return Ok(());
    }
    for (number, rule) in (1..).zip(rules) {
        write!(out, "  handle {:<6} ", rule.handle())?;
        if format == ListFormat::Wide {
            write!(out, "number {number:<6} ")?;
        }
        let text = words_of(table, &rule, sets, words);
        writeln!(out, "{}", Printable(&text))?;
    }
    Ok(())
}

/// Prints a chain of a legacy table with its rules as text.
fn print_legacy_text(
    out: &mut Output,
    chain: &legacy::ChainRef<'_>,
    sets: &Sets,
    format: ListFormat,
) -> Result<(), Error> {
    print_line(out, &Line::legacy(chain, true), format)?;
    if format == ListFormat::Name {
        return Ok(());
    }
    for (number, rule) in (1..).zip(chain.rules()) {
        let text = legacy_words(&rule, sets);
        writeln!(out, "  number {number:<6} {}", Printable(&text))?;
    }
    Ok(())
}

/// Formats a legacy rule with its counters.
pub(crate) fn legacy_words(rule: &legacy::RuleRef<'_>, sets: &Sets) -> String {
    match entry(rule, sets) {
        Ok(Entry { rule, counters, .. }) => {
            let Counters { packets, bytes, .. } = counters;
            format!("[{packets}:{bytes}] {rule}").trim_end().to_owned()
        }
        Err(why) => {
            let counters = rule.counters();
            let bytes = rule.bytes().iter().map(|byte| format!("{byte:02x}"));
            format!("{counters} [ {why} ] {}", bytes.collect::<String>())
        }
    }
}

/// Decodes a legacy rule, with the names of its sets.
pub(crate) fn entry(rule: &legacy::RuleRef<'_>, sets: &Sets) -> Result<Entry, String> {
    let mut entry = iptables::legacy::decode(rule).map_err(|why| why.to_string())?;
    if entry.rule.has_set_indexes() {
        let unknown = || "it refers to a set whose name is unknown".to_owned();
        let mut sets = sets.as_ref().ok_or_else(unknown)?;
        entry.rule.name_sets(&mut sets).map_err(|_| unknown())?;
    }
    Ok(entry)
}

/// Formats a rule in iptables' syntax, otherwise in nft's, otherwise as bytecode.
pub(crate) fn words_of(
    table: &SnapshotTable<'_>,
    rule: &RuleRef<'_>,
    sets: &Sets,
    words: &chainwright_lang::Options,
) -> String {
    options(rule, sets)
        .or_else(|| chainwright_lang::rule(table, rule, words))
        .unwrap_or_else(|| format_rule(rule, sets))
}

/// Formats rules without their counters.
pub(crate) struct RuleFormatter {
    sets: Sets,
    options: chainwright_lang::Options,
}

impl RuleFormatter {
    pub(crate) fn new() -> Self {
        let mut options = crate::dialect::options();
        options.stateless = true;
        Self {
            sets: sets(),
            options,
        }
    }

    /// Formats a rule of nf_tables like [`words_of`].
    pub(crate) fn nft(&self, table: &SnapshotTable<'_>, rule: &RuleRef<'_>) -> String {
        without_counters(words_of(table, rule, &self.sets, &self.options))
    }

    /// Formats a legacy rule.
    pub(crate) fn legacy(&self, rule: &legacy::RuleRef<'_>) -> String {
        without_counters(legacy_words(rule, &self.sets))
    }
}

/// Removes the counters from a rule in iptables' syntax, which begins with them.
fn without_counters(text: String) -> String {
    let after = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    match after {
        Some((counters, rest)) if counters.bytes().all(|c| c.is_ascii_digit() || c == b':') => {
            rest.trim_start().to_owned()
        }
        _ => text,
    }
}

/// Formats a rule on one line.
pub(crate) fn format_rule(rule: &RuleRef<'_>, sets: &Sets) -> String {
    if let Some(options) = options(rule, sets) {
        return options;
    }
    let mut line = String::new();
    for expression in rule.expressions().into_iter().flatten() {
        let between = if line.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        let _ = match expression {
            Ok(expression) => match expression.decode() {
                Ok(decoded) => write!(line, "{between}{decoded}"),
                Err(_) => write!(line, "{between}[ {} malformed ]", expression.name),
            },
            Err(_) => write!(line, "{between}[ malformed ]"),
        };
    }
    if let Some(comment) = rule_comment(rule) {
        let comment = name_text(&comment);
        let between = if line.is_empty() { "" } else { " " };
        let _ = write!(line, "{between}comment \"{comment}\"");
    }
    line
}

/// The names of iptables' tables.
const IPTABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];

/// Returns the rule as one of iptables, if its options can express it completely.
pub(crate) fn decoded(rule: &RuleRef<'_>, sets: &Sets) -> Option<iptables::Rule> {
    if !IPTABLES.iter().any(|name| rule.table() == *name) {
        return None;
    }
    let mut options = decode(rule).ok()?.rule;
    if options.has_set_indexes() {
        options.name_sets(&mut sets.as_ref()?).ok()?;
    }
    Some(options)
}

/// Returns the packets and bytes of the rule's counter, if it has exactly one.
pub(crate) fn counters(rule: &RuleRef<'_>) -> Option<(u64, u64)> {
    let mut counters = rule
        .expressions()?
        .flatten()
        .filter(|expression| expression.is::<Counter>())
        .filter_map(|expression| match expression.decode() {
            Ok(Decoded::Counter(counter)) => Some(counter),
            _ => None,
        });
    let (counter, another) = (counters.next()?, counters.next());
    another.is_none().then(|| {
        let (packets, bytes) = (counter.packets, counter.bytes);
        (packets.unwrap_or_default(), bytes.unwrap_or_default())
    })
}

/// Formats the rule in iptables' syntax, if this can express it completely.
pub(crate) fn options(rule: &RuleRef<'_>, sets: &Sets) -> Option<String> {
    let options = decoded(rule, sets)?;
    let (packets, bytes) = counters(rule)?;
    Some(format!("[{packets}:{bytes}] {options}").trim_end().into())
}
