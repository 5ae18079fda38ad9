//! `chainwright check`: finds problems in the tables of both backends.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use bstr::{BStr, ByteSlice};
use chainwright::iptables::compat::{self, Effect, Version};
use chainwright::iptables::doctor::{ExamineOptions, Fault, Finding, Severity, examine};
use chainwright::iptables::{
    self, Backend, Family, Iptables, RuleView, Tables, builtins, tables_in_use,
};
use chainwright::netlink;
use chainwright::nft::{self, Connection, Snapshot, SnapshotError, SnapshotTable};
use chainwright_kube::detect;
use chainwright_trace::check;
use chainwright_trace::graph::Graph;
use serde::Serialize;

use crate::iptables::{backend_word, family_word};
use crate::nft_findings::KINDS;
use crate::output::{Error, Exit, Output, Printable, causes, counted, note};
use crate::ruleset_source::Source;
use crate::sarif;
use crate::scope::{Backend as Backends, Scope, UnreadPart};

/// Find present and future problems in the tables
///
/// Examines the tables of both backends and all families, or of a file, and changes nothing. In all tables of
/// nf_tables, it finds rules behind an earlier rule that matches all of their packets, duplicate rules, rules whose
/// conditions exclude one another, chains that no packet reaches, jumps to missing chains, loops, and unused sets and
/// objects. In iptables' tables, it also finds rules that a version of iptables-nft misreads, and would therefore
/// restore as other rules; tables that a version does not show; rules that iptables cannot express; rules in both
/// backends; legacy tables without rules.
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

    /// Write SARIF 2.1.0, the format of static analysis results
    #[arg(long)]
    sarif: bool,

    /// Read this file instead of the kernel's tables: a snapshot, output of iptables-save, or a ruleset in nft's
    /// language; standard input if it is `-`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    scope: Scope,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    risk: bool,
    findings: &'a [Record],
    tables: &'a [TableRecord],
    not_read: &'a [UnreadPart],
}

/// A finding.
#[derive(Serialize)]
pub(crate) struct Record {
    pub(crate) severity: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) family: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) backend: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handle: Option<u64>,
    /// `set`, `flowtable`, or the type of a stateful object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) versions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read_as: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<String>,
    /// Location for people.
    #[serde(skip)]
    pub(crate) location: String,
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

/// The tables to examine.
#[derive(Default)]
pub(crate) struct Input {
    /// iptables' tables.
    iptables: Vec<Tables>,
    nft: Option<Snapshot>,
    /// Jumps of a file that the kernel would reject.
    graph: Option<Graph>,
    pub(crate) not_read: Vec<UnreadPart>,
}

impl Input {
    /// Returns the tables of a ruleset.
    pub(crate) fn of_ruleset(snapshot: Snapshot, legacy: &[chainwright::legacy::Table]) -> Self {
        let of_family = |family| {
            [
                Tables::in_snapshot(family, snapshot.clone()),
                Tables::in_legacy(family, legacy.iter().cloned()),
            ]
        };
        let all = Family::ALL.into_iter().flat_map(of_family);
        let all = all.filter(|tables| !tables.iter().is_empty());
        Self {
            iptables: all.collect(),
            nft: Some(snapshot),
            ..Self::default()
        }
    }

    /// Returns the findings, risks first.
    pub(crate) fn findings(&self, scope: &Scope, versions: &[Version]) -> Vec<Record> {
        let what = ExamineOptions {
            versions: match versions {
                [] => &Version::ALL,
                versions => versions,
            },
            agent_chains: &detect::is_agent_chain,
        };
        let mut findings = examine(&self.iptables, &what);
        findings.retain(|finding| {
            let table = &finding.place.table;
            table.as_ref().is_none_or(|table| scope.admits_table(table))
        });
        let mut numbered = Numbered::new(&self.iptables);
        let records = findings.iter();
        let mut records: Vec<_> = records
            .map(|finding| Record::of(finding, &mut numbered))
            .collect();
        let more = nft_records(scope, self, &records);
        records.extend(more);
        let rank = |record: &Record| {
            ["risk", "warning"]
                .iter()
                .position(|one| *one == record.severity)
        };
        records.sort_by_key(|record| rank(record).unwrap_or(usize::MAX));
        records
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    if json && args.sarif {
        return Err(Error::Other("--sarif cannot be used with --json".into()));
    }
    args.scope.check()?;
    let input = match &args.file {
        Some(file) => of_file(file, &args.scope)?,
        None => of_kernel(&args.scope)?,
    };
    let records = input.findings(&args.scope, &args.versions);
    let tables = tables(&args.scope, &input);
    let risk = records.iter().any(|one| one.severity == "risk");
    let is_partial = !input.not_read.is_empty();
    let mut out = Output::new();
    let not_read = input.not_read.iter();
    let not_read: Vec<_> = not_read
        .map(|part| format!("not examined: {part}"))
        .collect();
    if json {
        let document = Document {
            risk,
            findings: &records,
            tables: &tables,
            not_read: &input.not_read,
        };
        out.json("doctor", &document)?;
    } else if args.sarif {
        let file = args.file.as_deref().map(sarif::uri);
        let found = records.iter().map(Record::sarif).collect();
        out.value(&sarif::Log::new(&KINDS, file, not_read.clone(), found))?;
    } else {
        let groups = match args.all {
            true => records.iter().map(|record| vec![record]).collect(),
            false => grouped(&records),
        };
        for group in &groups {
            print_group(&mut out, group)?;
        }
        for table in &tables {
            summary(&mut out, table)?;
        }
    }
    out.flush()?;
    for text in &not_read {
        note(text);
    }
    if !json && !args.sarif {
        match (tables.is_empty(), records.is_empty()) {
            (true, true) if is_partial => note("no tables found in the examined part"),
            (true, true) => note("no tables found"),
            (false, true) if is_partial => note("no problems found in the examined tables"),
            (false, true) => note("no problems found"),
            (_, false) => {}
        }
    }
    Ok(match risk {
        true => Exit::Absent,
        false if is_partial => Exit::Failed,
        false => Exit::Done,
    })
}

/// Reads the kernel's tables.
fn of_kernel(scope: &Scope) -> Result<Input, Error> {
    let mut input = Input::default();
    let families = match scope.place.iptables() {
        Ok(Some(family)) => vec![family],
        Ok(None) => vec![Family::Ipv4, Family::Ipv6],
        Err(error) if scope.place.listed() == Backends::Legacy => return Err(error),
        Err(_) => Vec::new(),
    };
    let (mut has_read_any, mut first) = (false, None);
    for &backend in scope.place.iptables_backends() {
        for &family in &families {
            match read_tables(backend, family) {
                Ok(tables) => {
                    has_read_any = true;
                    input.iptables.extend(tables);
                }
                Err(error) => {
                    input.not_read.push(UnreadPart {
                        backend: backend_word(backend),
                        family: Some(family_word(family)),
                        reason: causes(&error),
                    });
                    first = first.or(Some(Error::from(error)));
                }
            }
        }
    }
    if scope.place.listed() != Backends::Legacy {
        match read_nft(scope, &mut input) {
            Ok(()) => has_read_any = true,
            Err(error) => {
                input.not_read.push(UnreadPart {
                    backend: backend_word(Backend::Nft),
                    family: None,
                    reason: causes(&error),
                });
                first = first.or(Some(error.into()));
            }
        }
    }
    match first.filter(|_| !has_read_any) {
        Some(error) => Err(error),
        None => Ok(input),
    }
}

/// Reads the tables of nf_tables.
fn read_nft(scope: &Scope, input: &mut Input) -> Result<(), netlink::Error> {
    let mut connection = match Connection::open_if_loaded() {
        Ok(connection) => connection,
        Err(netlink::Error::NotLoaded) => return Ok(()),
        Err(error) => return Err(error),
    };
    match connection.snapshot(scope.filter()) {
        Ok(snapshot) => input.nft = Some(snapshot),
        Err(SnapshotError::Netlink(error)) => return Err(error),
        Err(error) => {
            input.not_read.push(UnreadPart {
                backend: backend_word(Backend::Nft),
                family: None,
                reason: causes(&error),
            });
            input.nft = error.into_snapshot();
        }
    }
    Ok(())
}

/// Reads the tables of a file.
fn of_file(file: &Path, scope: &Scope) -> Result<Input, Error> {
    if scope.place.listed() == Backends::Legacy {
        return Err(Error::Other("--backend cannot be used with a file".into()));
    }
    let mut input = Input::default();
    let source = Source::read(file, scope)?;
    let filter = scope.filter();
    match source.snapshot() {
        Ok(snapshot) => {
            let snapshot = snapshot.filtered(&filter).unwrap_or_default();
            input = Input::of_ruleset(snapshot, &[]);
        }
        Err(refused) => {
            let mut graph = source.graph()?;
            graph.retain_tables(|table| {
                let of_family = [nft::Family::UNSPEC, table.family].contains(&filter.family);
                of_family && scope.admits_table(&table.name)
            });
            input.graph = Some(graph);
            input.not_read.push(UnreadPart {
                backend: backend_word(Backend::Nft),
                family: None,
                reason: format!("the kernel would reject this file: {refused}"),
            });
        }
    }
    Ok(input)
}

/// Returns the findings in nf_tables, given those about iptables' tables.
fn nft_records(scope: &Scope, input: &Input, known: &[Record]) -> Vec<Record> {
    let mut records = Vec::new();
    for table in nft_tables(input) {
        let findings = check::examine_table(table);
        records.extend(
            findings
                .iter()
                .map(|finding| Record::of_nft(finding, Some(&table))),
        );
    }
    if let Some(graph) = &input.graph {
        let findings = check::examine_graph(graph);
        records.extend(findings.iter().map(|finding| Record::of_nft(finding, None)));
    }
    // Of iptables' tables, only the rules whose conditions need a comparison: the rest is known.
    let known: HashSet<_> = known
        .iter()
        .filter(|one| matches!(one.kind, "duplicate" | "unreachable"))
        .map(|one| (one.family, &one.table, &one.chain, one.number))
        .collect();
    for tables in &input.iptables {
        for table in tables.iter() {
            let Some(table) = table.in_snapshot() else {
                continue;
            };
            if !scope.admits_table(table.table().name()) {
                continue;
            }
            let findings = check::examine_table(table);
            let found = findings
                .iter()
                .map(|finding| Record::of_nft(finding, Some(&table)));
            records.extend(found.filter(|one| {
                let at = (one.family, &one.table, &one.chain, one.number);
                matches!(one.kind, "shadowed" | "contradiction") && !known.contains(&at)
            }));
        }
    }
    records
}

/// Returns the tables of nf_tables that do not belong to iptables.
fn nft_tables(input: &Input) -> impl Iterator<Item = SnapshotTable<'_>> {
    let tables = input.nft.iter().flat_map(Snapshot::tables);
    tables.filter(|table| {
        let definition = table.table();
        Family::try_from(definition.family()).is_err()
            || definition
                .name()
                .to_str()
                .is_ok_and(|name| builtins(name).is_none())
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
            handle: None,
            object_type: None,
            object: None,
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
            location: place.to_string(),
        }
    }

    /// Returns the finding as a result of a SARIF log.
    fn sarif(&self) -> sarif::Found {
        let table = self.table.as_ref().map(|table| {
            let legacy = if self.backend == Some("legacy") {
                " (legacy)"
            } else {
                ""
            };
            ("table", format!("{} {table}{legacy}", self.family))
        });
        let chain = self.chain.as_ref().map(|chain| ("chain", chain.clone()));
        let rule = self.number.map(|number| ("rule", number.to_string()));
        let object = self.object_type.as_deref().zip(self.object.clone());
        let steps = [table, chain, rule, object].into_iter().flatten();
        sarif::Found {
            rule: self.kind,
            level: match self.severity {
                "risk" => "error",
                severity => severity,
            },
            message: format!("{}: {}", self.location, self.message),
            steps: steps.map(|(kind, name)| (kind.to_owned(), name)).collect(),
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
fn grouped(records: &[Record]) -> Vec<Vec<&Record>> {
    let mut groups: Vec<Vec<&Record>> = Vec::new();
    let mut places = HashMap::new();
    for record in records {
        let kind = (
            (record.family, record.backend, &record.table),
            (record.kind, record.severity),
            (&record.effect, &record.versions),
        );
        let group = *places.entry(kind).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    groups
}

/// Prints a group of findings: the problem once, and its further places.
fn print_group(out: &mut Output, group: &[&Record]) -> Result<(), Error> {
    let Some((first, others)) = group.split_first() else {
        return Ok(());
    };
    let Record {
        severity,
        location,
        message,
        ..
    } = first;
    paragraph(out, "", &format!("{severity}: {location}: {message}"))?;
    if let Some(rule) = &first.rule {
        paragraph(out, "    ", &format!("is: {rule}"))?;
    }
    if let Some(read_as) = &first.read_as {
        paragraph(out, "    ", &format!("read as: {read_as}"))?;
    }
    let at = |record: &&Record| {
        let number = record.number.map(|rule| format!(" rule {rule}"));
        let name = record.chain.as_ref().or(record.object.as_ref())?;
        Some(format!("{name}{}", number.unwrap_or_default()))
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
fn tables(scope: &Scope, input: &Input) -> Vec<TableRecord> {
    let mut records = Vec::new();
    for tables in &input.iptables {
        for table in tables.iter() {
            if !scope.admits_table(table.name()) {
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
    records.extend(nft_tables(input).map(|table| TableRecord {
        family: table.table().family().name().unwrap_or("unknown"),
        backend: backend_word(Backend::Nft),
        table: table.table().name().to_string(),
        chains: table.chains().len(),
        rules: table.chains().map(|chain| chain.rules().len()).sum(),
        writers: BTreeMap::new(),
    }));
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
