//! `chainwright doctor`: finds problems in iptables' tables.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};

use bstr::{BStr, ByteSlice};
use chainwright::iptables::compat::{self, Effect, Version};
use chainwright::iptables::doctor::{ExamineOptions, Fault, Finding, Severity, examine};
use chainwright::iptables::{
    self, Backend, Family, Iptables, RuleView, Tables, builtins, tables_in_use,
};
use chainwright::netlink;
use chainwright::nft::Connection;
use chainwright_kube::detect;
use serde::Serialize;

use crate::iptables::{backend_word, family_word};
use crate::output::{Error, Exit, Output, Printable, causes, counted, note};
use crate::scope::{Backend as Backends, Scope, UnreadPart};

/// Find present and future problems in iptables' tables
///
/// Examines iptables' tables of both backends and both families, and changes nothing. nft's own tables are listed, but
/// not examined. It finds rules that a version of iptables-nft misreads, and would therefore restore as other rules;
/// tables that a version does not show; rules that iptables cannot express; rules in both backends; rules and chains
/// that no packet reaches; duplicate rules; legacy tables without rules.
///
/// Lists risks first: the filter accepts or drops other packets than its rules suggest, or will do so after the tables
/// are saved and restored. The exit code is 1 if there is a risk, 2 if there is none but some tables could not be
/// examined. Similar problems are listed together, with the first of their rules; --all lists each one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The versions of iptables that may read the tables: those on the node and in the images of its agents. The
    /// default is all known versions
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    versions: Vec<Version>,

    /// List each problem separately
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    scope: Scope,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    risk: bool,
    findings: Vec<Record>,
    tables: Vec<TableRecord>,
    not_read: &'a [UnreadPart],
    not_examined: &'a [NotExamined],
}

/// A table of nf_tables that does not belong to iptables.
#[derive(Serialize)]
struct NotExamined {
    family: String,
    table: String,
}

#[derive(Serialize)]
struct Record {
    severity: &'static str,
    kind: &'static str,
    family: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    versions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_as: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
}

/// An examined table.
#[derive(Serialize)]
struct TableRecord {
    family: &'static str,
    backend: &'static str,
    table: String,
    chains: usize,
    rules: usize,
    /// Number of rules by presumed writer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    writers: BTreeMap<String, usize>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let families = match args.scope.place.iptables()? {
        Some(family) => vec![family],
        None => vec![Family::Ipv4, Family::Ipv6],
    };
    let mut all = Vec::new();
    let mut not_read = Vec::new();
    let (mut has_read_any, mut first) = (false, None);
    for &backend in args.scope.place.iptables_backends() {
        for &family in &families {
            match read_tables(backend, family) {
                Ok(tables) => {
                    has_read_any = true;
                    all.extend(tables);
                }
                Err(error) => {
                    not_read.push(UnreadPart {
                        backend: backend_word(backend),
                        family: Some(family_word(family)),
                        reason: causes(&error),
                    });
                    first = first.or(Some(error));
                }
            }
        }
    }
    if let Some(error) = first.filter(|_| !has_read_any) {
        return Err(error.into());
    }
    let mut not_examined = Vec::new();
    if args.scope.place.listed() != Backends::Legacy {
        match other_tables(args) {
            Ok(tables) => not_examined = tables,
            Err(error) => not_read.push(UnreadPart {
                backend: backend_word(Backend::Nft),
                family: None,
                reason: causes(&error),
            }),
        }
    }
    let what = ExamineOptions {
        versions: match args.versions.as_slice() {
            [] => &Version::ALL,
            versions => versions,
        },
        agent_chains: &detect::is_agent_chain,
    };
    let mut findings = examine(&all, &what);
    findings.retain(|finding| {
        let table = &finding.place.table;
        table
            .as_ref()
            .is_none_or(|table| args.scope.admits_table(table))
    });
    let risk = findings.iter().any(|one| one.severity() == Severity::Risk);
    let is_partial = !not_read.is_empty();
    let mut numbered = Numbered::new(&all);
    let mut out = Output::new();
    if json {
        let records = findings.iter();
        let records = records.map(|finding| Record::of(finding, &mut numbered));
        let document = Document {
            risk,
            findings: records.collect(),
            tables: tables(args, &all),
            not_read: &not_read,
            not_examined: &not_examined,
        };
        out.json("doctor", &document)?;
    } else {
        let groups = match args.all {
            true => findings.iter().map(|finding| vec![finding]).collect(),
            false => grouped(&findings),
        };
        for group in &groups {
            print_group(&mut out, group, &mut numbered)?;
        }
        for table in tables(args, &all) {
            summary(&mut out, &table)?;
        }
    }
    out.flush()?;
    for one in &not_read {
        let family = one.family.map(|family| format!(", {family}"));
        let family = family.unwrap_or_default();
        let (backend, reason) = (one.backend, &one.reason);
        note(&format!("not examined: {backend}{family}: {reason}"));
    }
    if !json {
        conclude(&all, &findings, is_partial, &not_examined);
    }
    Ok(match risk {
        true => Exit::Absent,
        false if is_partial => Exit::Failed,
        false => Exit::Done,
    })
}

/// Reads iptables' tables of a family. Does not load missing modules.
fn read_tables(backend: Backend, family: Family) -> Result<Option<Tables>, iptables::Error> {
    if tables_in_use(backend, family)?.is_empty() {
        return Ok(None);
    }
    Iptables::open_if_loaded(backend)?
        .read(family, &[])
        .map(Some)
}

/// Returns the tables of nf_tables that do not belong to iptables.
fn other_tables(args: &Args) -> Result<Vec<NotExamined>, netlink::Error> {
    let mut connection = match Connection::open_if_loaded() {
        Ok(connection) => connection,
        Err(netlink::Error::NotLoaded) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut tables = Vec::new();
    connection.tables(args.scope.filter())?.for_each(|table| {
        let is_iptables = Family::try_from(table.family()).is_ok()
            && table
                .name()
                .to_str()
                .is_ok_and(|name| builtins(name).is_some());
        if !is_iptables {
            tables.push(NotExamined {
                family: table.family().to_string(),
                table: table.name().to_string(),
            });
        }
    })?;
    Ok(tables)
}

/// Prints the coverage of the result on standard error.
fn conclude(all: &[Tables], findings: &[Finding], is_partial: bool, not_examined: &[NotExamined]) {
    if !not_examined.is_empty() {
        let names = not_examined.iter().take(NAMED);
        let names: Vec<_> = names
            .map(|one| format!("{} {}", one.family, Printable(&one.table)))
            .collect();
        let more = match not_examined.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        note(&format!(
            "not examined, because they are native nft tables, not iptables': {}{more}",
            names.join(", ")
        ));
    }
    match (all.is_empty(), findings.is_empty()) {
        (true, _) if is_partial => note("no iptables tables found in the examined part"),
        (true, _) => note("no iptables tables found"),
        (false, true) if !is_partial && not_examined.is_empty() => note("no problems found"),
        (false, true) => note("no problems found in the examined tables"),
        (false, false) => {}
    }
}

impl Record {
    fn of<'t>(finding: &'t Finding, numbered: &mut Numbered<'t>) -> Self {
        let place = &finding.place;
        Self {
            severity: word(finding.severity()),
            kind: finding.fault.kind(),
            family: family_word(place.family),
            backend: place.backend.map(backend_word),
            table: place.table.as_ref().map(ToString::to_string),
            chain: place.chain.as_ref().map(ToString::to_string),
            number: place.rule,
            rule: numbered.rule(finding),
            message: finding.fault.to_string(),
            versions: finding
                .fault
                .versions()
                .iter()
                .map(ToString::to_string)
                .collect(),
            read_as: read_as(finding),
            effect: effect(finding).map(|effect| effect.to_string()),
        }
    }
}

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Risk => "risk",
        Severity::Note => "note",
    }
}

/// Rules by number, for chains with findings.
struct Numbered<'t> {
    all: &'t [Tables],
    chains: HashMap<(Backend, Family, &'t BStr, &'t BStr), Vec<RuleView<'t>>>,
}

impl<'t> Numbered<'t> {
    fn new(all: &'t [Tables]) -> Self {
        Self {
            all,
            chains: HashMap::new(),
        }
    }

    /// Returns the rule of a finding, in the syntax of `iptables-save`.
    fn rule(&mut self, finding: &'t Finding) -> Option<String> {
        let place = &finding.place;
        let (backend, number) = (place.backend?, place.rule?);
        let (name, chain) = (place.table.as_ref()?, place.chain.as_ref()?);
        let mut all = self.all.iter();
        let tables = all.find(|one| (one.backend(), one.family()) == (backend, place.family))?;
        let table = tables.table(std::str::from_utf8(name).ok()?)?;
        let key = (backend, place.family, name.as_bstr(), chain.as_bstr());
        let rules = match self.chains.entry(key) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(new) => new.insert(table.chain(chain)?.rules().collect()),
        };
        let rule = rules.get(number.checked_sub(1)?)?;
        Some(match (tables.entry(rule), rule) {
            (Ok(entry), _) => format!("-A {chain} {}", entry.rule).trim_end().to_owned(),
            (Err(_), RuleView::Nft(rule)) => {
                chainwright_lang::rule(&table.in_snapshot()?, rule, &crate::dialect::options())?
            }
            (Err(why), RuleView::Legacy(_)) => why.to_string(),
        })
    }
}

/// Returns how versions misread the rule of a finding.
fn read_as(finding: &Finding) -> Option<String> {
    match &finding.fault {
        Fault::Misread { reading, .. } => {
            let chain = finding.place.chain.as_ref()?;
            let rule = &reading.read_as;
            Some(format!("-A {chain} {rule}").trim_end().to_owned())
        }
        _ => None,
    }
}

/// Returns the effect of the rule after versions that misread it restored it.
const fn effect(finding: &Finding) -> Option<Effect> {
    match &finding.fault {
        Fault::Misread { reading, .. } => Some(reading.effect),
        _ => None,
    }
}

/// Groups findings of one kind in one table, in the order of the first of each.
fn grouped(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    let mut places = BTreeMap::new();
    for finding in findings {
        let place = &finding.place;
        let kind = (
            family_word(place.family),
            place.backend.map(backend_word),
            place.table.as_ref(),
            finding.fault.kind(),
            effect(finding).map(|effect| effect.to_string()),
            finding
                .fault
                .versions()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
        );
        let group = *places.entry(kind).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// Prints a group of findings: the problem once, and its further places.
fn print_group<'t>(
    out: &mut Output,
    group: &[&'t Finding],
    numbered: &mut Numbered<'t>,
) -> Result<(), Error> {
    let Some((first, others)) = group.split_first() else {
        return Ok(());
    };
    let severity = word(first.severity());
    paragraph(out, "", &format!("{severity}: {first}"))?;
    if let Some(rule) = numbered.rule(first) {
        paragraph(out, "    ", &format!("is: {rule}"))?;
    }
    if let Some(read_as) = read_as(first) {
        paragraph(out, "    ", &format!("read as: {read_as}"))?;
    }
    let at = |finding: &&Finding| {
        let place = &finding.place;
        let number = place
            .rule
            .map(|rule| format!(" rule {rule}"))
            .unwrap_or_default();
        Some(format!("{}{number}", place.chain.as_ref()?))
    };
    let named: Vec<_> = others.iter().take(NAMED).filter_map(at).collect();
    if !named.is_empty() {
        let more = match others.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        paragraph(out, "    ", &format!("also: {}{more}", named.join(", ")))?;
    }
    Ok(())
}

/// Maximum number of further places that are printed.
const NAMED: usize = 5;

/// The minimum width of terminals.
const WIDTH: usize = 80;

/// Wraps text to the terminal's width; longer words stay in one piece, so that they can be copied.
fn paragraph(out: &mut Output, indent: &str, text: &str) -> Result<(), Error> {
    let text = Printable(text).to_string();
    let further = format!("{indent}    ");
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(indent)
        .subsequent_indent(&further)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    for line in textwrap::wrap(&text, options) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Returns the examined tables.
fn tables(args: &Args, all: &[Tables]) -> Vec<TableRecord> {
    let mut records = Vec::new();
    for tables in all {
        for table in tables.iter() {
            if !args.scope.admits_table(table.name()) {
                continue;
            }
            let mut record = TableRecord {
                family: family_word(tables.family()),
                backend: backend_word(tables.backend()),
                table: table.name().to_string(),
                chains: 0,
                rules: 0,
                writers: BTreeMap::new(),
            };
            for chain in table.chains() {
                record.chains += 1;
                for rule in chain.rules() {
                    record.rules += 1;
                    if let RuleView::Nft(rule) = &rule {
                        let writer = compat::writer(rule).to_string();
                        *record.writers.entry(writer).or_default() += 1;
                    }
                }
            }
            records.push(record);
        }
    }
    records
}

/// Prints an examined table.
fn summary(out: &mut Output, table: &TableRecord) -> Result<(), Error> {
    let TableRecord {
        family,
        backend,
        table: name,
        chains,
        rules,
        writers,
    } = table;
    let chains = counted(*chains, "chain", "chains");
    let rules = counted(*rules, "rule", "rules");
    let mut text = format!("examined: table {family} {name} ({backend}): {chains}, {rules}");
    for (position, (writer, number)) in writers.iter().enumerate() {
        let before = if position == 0 { "; written by " } else { ", " };
        text += &format!("{before}{writer}: {number}");
    }
    paragraph(out, "", &text)
}
