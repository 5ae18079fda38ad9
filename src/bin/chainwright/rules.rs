//! `chainwright rules`: the rules of chains.

use std::cell::LazyCell;
use std::fmt::Write as _;

use bstr::ByteSlice;
use chainwright::ipset;
use chainwright::iptables::nft::decode;
use chainwright::nft::expr::{Counter, Decoded};
use chainwright::nft::{RuleRef, Snapshot, SnapshotChain, SnapshotTable, Table};
use serde::Serialize;

use crate::chains::Line;
use crate::glob::Glob;
use crate::output::{Error, Exit, Output, Printable};
use crate::scope::{Scope, admits, ended};

/// List rules, by chain
///
/// Under each chain's line, as `chains` writes it, a line for each rule: its handle; what it does;
/// its comment. Rules of iptables-nft that can be said whole in iptables' language are said so, with
/// counters as `iptables-save -c` has them; of a match or target that is not known here, name,
/// revision and length stand in brackets. All other rules are said in nf_tables' bytecode, one pair of
/// brackets an expression.
///
/// All is of one generation of the ruleset. Only where that cannot be had, what could be read is
/// listed all the same, said to be so on standard error, and the exit code is 2. The rules of the
/// legacy tables are not listed.
///
/// With --json, one document: {"generation": N, "tables": [{"table": {…}, "chains": [{"chain": {…},
/// "rules": [{…}]}]}]}. The objects are in the form in which the library's feature `serde` writes and
/// reads them: attributes by their names, what is not there left out; expressions by their names in
/// nf_tables; bytes as hexadecimal digits.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scope: Scope,

    /// Only chains whose names match this pattern, for instance 'KUBE-S[VE][CP]-*'
    #[arg(long = "match", value_name = "GLOB")]
    pattern: Option<Glob>,

    /// Write what `nft --debug=netlink list` prints before its own listing (nft 1.0.6): of each table
    /// the sets with their elements, then the rules, each expression in a line
    #[arg(long, conflicts_with = "json")]
    bytecode: bool,
}

/// All that `--json` writes.
#[derive(Serialize)]
struct Document<'s> {
    generation: Option<u32>,
    tables: Vec<TableDocument<'s>>,
}

#[derive(Serialize)]
struct TableDocument<'s> {
    table: Table<'s>,
    chains: Vec<SnapshotChain<'s>>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let (snapshot, torn) = args.scope.look()?;
    let tables: Vec<_> = snapshot
        .tables()
        .map(|table| (table, args.chains(&table)))
        .filter(|(_, chains)| !chains.is_empty())
        .collect();
    let has_sets = |table: SnapshotTable<'_>| table.sets().next().is_some();
    let found = !tables.is_empty()
        || (args.bytecode && args.pattern.is_none() && snapshot.tables().any(has_sets));
    let mut out = Output::new();
    if json {
        out.json(&Document {
            generation: snapshot.generation().map(|generation| generation.0),
            tables: tables
                .into_iter()
                .map(|(table, chains)| TableDocument {
                    table: table.table().to_builder(),
                    chains,
                })
                .collect(),
        })?;
    } else if args.bytecode {
        bytecode(&mut out, args, &snapshot, &tables)?;
    } else {
        let sets: Sets = LazyCell::new(|| ipset::Connection::open().ok());
        for chain in tables.iter().flat_map(|(_, chains)| chains) {
            people(&mut out, chain, &sets)?;
        }
    }
    out.flush()?;
    let narrowed = args.scope.is_narrowed() || args.pattern.is_some();
    Ok(ended("chain", found, narrowed, torn, json))
}

impl Args {
    /// The chains of a table that were asked for.
    fn chains<'s>(&self, table: &SnapshotTable<'s>) -> Vec<SnapshotChain<'s>> {
        let pattern = self.pattern.as_ref();
        table
            .chains()
            .filter(|chain| admits(pattern, chain.chain().name()))
            .collect()
    }
}

/// As `nft` has it: of the tables the sets, of the chains the rules.
fn bytecode(
    out: &mut Output,
    args: &Args,
    snapshot: &Snapshot,
    tables: &[(SnapshotTable<'_>, Vec<SnapshotChain<'_>>)],
) -> Result<(), Error> {
    if args.pattern.is_none() {
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

/// The way to the names of sets, opened when the first rule refers to one; `None` if there is none.
type Sets = LazyCell<Option<ipset::Connection>>;

/// A chain with its rules, for people.
fn people(out: &mut Output, chain: &SnapshotChain<'_>, sets: &Sets) -> Result<(), Error> {
    let rules = chain.rules();
    writeln!(out, "{}", Line::nft(&chain.chain(), Some(rules.len())))?;
    for rule in rules {
        let text = said(&rule, sets);
        writeln!(out, "  handle {:<6} {}", rule.handle(), Printable(&text))?;
    }
    Ok(())
}

/// What a rule does, in one line.
fn said(rule: &RuleRef<'_>, sets: &Sets) -> String {
    if let Some(options) = options(rule, sets) {
        return options;
    }
    let mut line = String::new();
    let mut comment = rule.comment().map(|comment| comment.to_string());
    for expression in rule.expressions().into_iter().flatten() {
        let between = if line.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        let _ = match expression {
            Ok(expression) => match expression.decode() {
                Ok(decoded) => {
                    comment = comment.or_else(|| comment_of(&decoded));
                    write!(line, "{between}{decoded}")
                }
                Err(_) => write!(line, "{between}[ {} malformed ]", expression.name),
            },
            Err(_) => write!(line, "{between}[ malformed ]"),
        };
    }
    if let Some(comment) = comment {
        let between = if line.is_empty() { "" } else { " " };
        let _ = write!(line, "{between}comment \"{comment}\"");
    }
    line
}

/// The text of a match `comment`, as iptables-nft keeps it.
fn comment_of(expression: &Decoded<'_>) -> Option<String> {
    let Decoded::Match(one) = expression else {
        return None;
    };
    if one.name.as_deref()? != "comment" {
        return None;
    }
    let info = one.info.as_deref()?;
    let text = info.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(text.to_str_lossy().into_owned())
}

/// The tables of iptables.
const IPTABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];

/// The rule in iptables' language, if it can be said whole.
fn options(rule: &RuleRef<'_>, sets: &Sets) -> Option<String> {
    if !IPTABLES.iter().any(|name| rule.table() == *name) {
        return None;
    }
    let mut options = decode(rule).ok()?.rule;
    if options.has_set_indexes() {
        options.name_sets(&mut sets.as_ref()?).ok()?;
    }
    let mut counters = rule
        .expressions()?
        .flatten()
        .filter(|expression| expression.is::<Counter>())
        .filter_map(|expression| match expression.decode() {
            Ok(Decoded::Counter(counter)) => Some(counter),
            _ => None,
        });
    let (counter, another) = (counters.next()?, counters.next());
    if another.is_some() {
        return None;
    }
    let (packets, bytes) = (
        counter.packets.unwrap_or_default(),
        counter.bytes.unwrap_or_default(),
    );
    Some(format!("[{packets}:{bytes}] {options}").trim_end().into())
}
