//! `chainwright-bench`: benchmarks, compared with baselines.

mod chains;
mod commit;
mod elements;
mod events;
mod iptables;
mod mirror;
mod plot;
mod rules;
mod services;
mod tools;

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chainwright_bench::{BoxError as Error, Measured};
use chainwright_testing::{Sandbox, become_namespace_root};
use clap::{Parser, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use tempfile::NamedTempFile;

/// Measures against baselines, in a private namespace
///
/// A baseline is the kernel's share: the same request with its replies discarded, or the same bytes prepared beforehand.
/// The benchmarks measure the library and, if installed, `nft` and iptables' tools. Rounds alternate. CPU times are
/// medians, and include the kernel's work and the startup of a tool; a ratio is the median of the rounds' ratios.
#[derive(Parser)]
#[command(name = "chainwright-bench", version, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    what: Benchmark,

    /// Write a line of JSON for each measurement instead of a table
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Benchmark {
    /// List the chains of a ruleset like kube-proxy's; by default 1,000, 10,000 and 50,000
    Chains {
        #[command(flatten)]
        sizes: Sizes,

        /// Draw the CPU times into this SVG file
        #[arg(long, value_name = "FILE.svg")]
        plot: Option<PathBuf>,
    },

    /// Read a whole ruleset like kube-proxy's; by default 10,000 chains with 25,000 rules
    ///
    /// There are two baselines, and the cheaper one is 1: a listing of the chains, then of the rules of each chain; or one
    /// listing of all rules, for which the kernel's time grows with the square of their number, and which is omitted
    /// above 20,000 chains.
    Rules {
        #[command(flatten)]
        sizes: Sizes,
    },

    /// Commit a ruleset like kube-proxy's in one transaction; by default 10,000 chains with 25,000 rules
    ///
    /// The baseline is the same transaction as prepared bytes, sent over a bare socket.
    Commit {
        #[command(flatten)]
        sizes: Sizes,
    },

    /// Flush a ruleset like kube-proxy's, and wait for the event; by default 20 and 1,000 chains
    ///
    /// The baseline is a bare socket that waits for the end of the transaction and discards everything.
    Events {
        #[command(flatten)]
        sizes: Sizes,
    },

    /// Let a mirror of a ruleset like kube-proxy's restore one changed rule, and look up its chains; by default 10,000
    /// chains with 25,000 rules
    ///
    /// The baseline of a change, which the mirror receives, plans against and commits, is the same transaction as prepared
    /// bytes; that of lookups is a table of only the names. The mirror's memory is compared with the size of the
    /// ruleset's messages.
    Mirror {
        #[command(flatten)]
        sizes: Sizes,
    },

    /// Restore the text of kube-proxy's table, and add a rule to it; by default 10,000 services with 80,000 rules
    ///
    /// In nf_tables the baseline is the same transaction as prepared bytes; for a legacy table it is a bare SET_REPLACE,
    /// preceded by a bare read for an added rule.
    Restore(Iptables),

    /// Save kube-proxy's table as text; by default 10,000 services with 80,000 rules
    ///
    /// The baseline is the kernel's listing: in nf_tables the cheaper of two ways, as in `rules`.
    Save(Iptables),

    /// Program the services of a cluster like kube-proxy, in each of the library's layouts; by default 10, 1,000,
    /// 10,000 and 100,000 services
    ///
    /// Measures a cold start, one more and one less endpoint and service, a rolling restart of a deployment of 100
    /// endpoints, a restart of the agent, memory, and the first packet of a connection through a node. The baseline of a
    /// start is the layout's ruleset as bytes; that of changes, for all layouts, the flat layout's operations as bytes.
    /// `nft` and iptables' tools load the same rules once, if they are installed.
    Services(services::Args),

    /// Add the elements of a map in one transaction, and list them; by default 100,000
    Elements {
        #[command(flatten)]
        sizes: Sizes,
    },
}

/// Backends of iptables.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Backend {
    All,
    Nft,
    Legacy,
}

/// Options of the benchmarks of iptables' text.
#[derive(clap::Args)]
struct Iptables {
    #[command(flatten)]
    sizes: Sizes,

    /// Only in this backend
    #[arg(long, value_enum, default_value_t = Backend::All)]
    backend: Backend,

    /// Also measure iptables' own tool, if it is installed: once, as it can take minutes
    #[arg(long)]
    tools: bool,
}

/// Sizes and rounds.
#[derive(clap::Args)]
struct Sizes {
    /// Number of chains, services or elements; several numbers are measured one after the other
    #[arg(value_name = "N")]
    numbers: Vec<usize>,

    /// The same, separated by commas
    #[arg(
        long,
        value_name = "N,N,...",
        value_delimiter = ',',
        conflicts_with = "numbers"
    )]
    count: Vec<usize>,

    /// Number of rounds; by default fewer for larger sizes
    #[arg(long)]
    rounds: Option<usize>,
}

/// The maximum number of elements: their keys are in 10.0.0.0/8.
const MOST_ELEMENTS: usize = 1 << 24;

impl Sizes {
    /// Returns the requested sizes, or the default.
    fn or<'s>(&'s self, default: &'s [usize]) -> &'s [usize] {
        [&self.numbers, &self.count]
            .into_iter()
            .find(|numbers| !numbers.is_empty())
            .map_or(default, |numbers| numbers)
    }

    /// Returns the sizes of rulesets.
    fn chains<'s>(&'s self, default: &'s [usize]) -> Result<&'s [usize], Error> {
        let sizes = self.or(default);
        match sizes.iter().find(|size| **size < 2) {
            Some(few) => Err(Error::from(format!(
                "{few}: a ruleset needs at least 2 chains, one for a service and one for an endpoint"
            ))),
            None => Ok(sizes),
        }
    }

    /// Numbers of services.
    fn services<'s>(&'s self, default: &'s [usize]) -> Result<&'s [usize], Error> {
        let sizes = self.or(default);
        match sizes.contains(&0) {
            true => Err("0: at least one service is required".into()),
            false => Ok(sizes),
        }
    }

    /// Returns the sizes of maps.
    fn elements<'s>(&'s self, default: &'s [usize]) -> Result<&'s [usize], Error> {
        let sizes = self.or(default);
        let fits = |size: &usize| (1..=MOST_ELEMENTS).contains(size);
        match sizes.iter().find(|size| !fits(size)) {
            Some(size) => Err(Error::from(format!(
                "{size}: a map must have 1 to {MOST_ELEMENTS} elements here"
            ))),
            None => Ok(sizes),
        }
    }

    /// Returns the number of rounds at this size, so that `work` limits the total.
    fn rounds(&self, work: usize, size: usize, most: usize) -> usize {
        self.rounds.unwrap_or((work / size).clamp(3, most))
    }
}

/// Prints a line on standard error.
fn note(text: &str) {
    eprintln!("chainwright-bench: {text}");
}

/// Prints what is being measured if standard error is a terminal.
fn progress(text: String) {
    if io::stderr().is_terminal() {
        note(&text);
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    // This must come before any other thread is started.
    let done = become_namespace_root().map_err(Error::from);
    match done.and_then(|()| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&error.to_string());
            ExitCode::from(2)
        }
    }
}

/// The results at one size.
#[derive(Serialize)]
struct Record {
    /// The measured operation.
    measured: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    chains: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    services: Option<usize>,
    /// Endpoints of each service.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<&'static str>,
    rounds: usize,
    contenders: Vec<ContenderRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    not_installed: Vec<&'static str>,
    /// Omissions, with reasons.
    notes: Vec<String>,
}

/// Memory of a ruleset, or of services.
#[derive(Serialize)]
struct Memory {
    bytes: usize,
    /// As a multiple of the size of the kernel's messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_ruleset: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_each_endpoint: Option<f64>,
}

#[derive(Serialize)]
struct ContenderRecord {
    name: String,
    cpu_ns: u128,
    /// The kernel's share.
    kernel_ns: u128,
    wall_ns: u128,
    wall_p99_ns: u128,
    ratio_to_baseline: f64,
}

impl From<Measured> for ContenderRecord {
    fn from(measured: Measured) -> Self {
        Self {
            name: measured.name,
            cpu_ns: measured.cpu.as_nanos(),
            kernel_ns: measured.cpu.mul_f64(measured.kernel).as_nanos(),
            wall_ns: measured.wall.as_nanos(),
            wall_p99_ns: measured.wall_p99.as_nanos(),
            ratio_to_baseline: measured.ratio,
        }
    }
}

/// Writes a text to a temporary file for a tool; dropping the result deletes the file.
fn temporary(text: &str) -> Result<NamedTempFile, Error> {
    let written = NamedTempFile::new().and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        Ok(file)
    });
    written.map_err(|error| Error::from(format!("cannot write a temporary file: {error}")))
}

/// Measures something at one size, with a number of rounds.
type Measure = fn(usize, usize) -> Result<Record, Error>;

fn run(args: &Args) -> Result<(), Error> {
    let json = args.json;
    match &args.what {
        Benchmark::Restore(args) => return text(iptables::Benchmark::Restore, args, json),
        Benchmark::Save(args) => return text(iptables::Benchmark::Save, args, json),
        Benchmark::Services(args) => {
            let measure = |printer: &mut ResultPrinter| services::measure(args, printer);
            return measure_and_plot(args.plot.as_deref(), PlotKind::Services, json, measure);
        }
        _ => {}
    }
    let (sizes, default, measures, work, most): (_, _, &[Measure], _, _) = match &args.what {
        Benchmark::Chains { sizes, .. } => (
            sizes,
            sizes.chains(&[1000, 10_000, 50_000])?,
            &[chains::measure],
            200_000,
            51,
        ),
        Benchmark::Rules { sizes } => (
            sizes,
            sizes.chains(&[10_000])?,
            &[rules::measure],
            100_000,
            31,
        ),
        Benchmark::Commit { sizes } => (
            sizes,
            sizes.chains(&[10_000])?,
            &[commit::measure],
            100_000,
            31,
        ),
        Benchmark::Events { sizes } => (
            sizes,
            sizes.chains(&[20, 1000])?,
            &[events::measure],
            400_000,
            400,
        ),
        Benchmark::Mirror { sizes } => (
            sizes,
            sizes.chains(&[10_000])?,
            &[mirror::change, mirror::lookup],
            300_000,
            31,
        ),
        Benchmark::Elements { sizes } => (
            sizes,
            sizes.elements(&[100_000])?,
            &[elements::add, elements::list],
            2_000_000,
            31,
        ),
        // Handled above.
        Benchmark::Restore(_) | Benchmark::Save(_) | Benchmark::Services(_) => return Ok(()),
    };
    let plot = match &args.what {
        Benchmark::Chains { plot, .. } => plot.as_deref(),
        _ => None,
    };
    measure_and_plot(plot, PlotKind::Chains, json, |printer| {
        let mut records = Vec::new();
        for &size in default {
            let rounds = sizes.rounds(work, size, most);
            for measure in measures {
                progress(format!("measuring, size {size}, {rounds} rounds"));
                let record = Sandbox::new()?.run(|| measure(size, rounds))??;
                printer.add(&record)?;
                records.push(record);
            }
        }
        Ok(records)
    })
}

/// The subject of a drawing.
#[derive(Debug, Clone, Copy)]
enum PlotKind {
    Chains,
    Services,
}

/// Measures something, and draws it if requested.
fn measure_and_plot(
    plot: Option<&Path>,
    what: PlotKind,
    json: bool,
    measure: impl FnOnce(&mut ResultPrinter) -> Result<Vec<Record>, Error>,
) -> Result<(), Error> {
    let mut printer = ResultPrinter::new(json);
    let records = measure(&mut printer)?;
    if let Some(path) = plot {
        draw(&records, what, path)?;
    }
    Ok(())
}

fn draw(records: &[Record], what: PlotKind, path: &Path) -> Result<(), Error> {
    let charts = match what {
        PlotKind::Chains => plot::chains(records),
        PlotKind::Services => plot::services(records),
    };
    let svg = plot::draw(&charts)
        .map_err(|error| Error::from(format!("cannot draw {}: {error}", path.display())))?;
    std::fs::write(path, svg)
        .map_err(|error| Error::from(format!("cannot write {}: {error}", path.display())))
}

/// Measures iptables' text.
fn text(what: iptables::Benchmark, args: &Iptables, json: bool) -> Result<(), Error> {
    let mut printer = ResultPrinter::new(json);
    for &size in args.sizes.services(&[10_000])? {
        let rounds = args.sizes.rounds(50_000, size, 31);
        progress(format!("measuring {size} services, {rounds} rounds"));
        let records = iptables::measure(what, args.backend, size, rounds, args.tools)?;
        for record in records {
            printer.add(&record)?;
        }
    }
    Ok(())
}

/// Prints results as they arrive.
struct ResultPrinter {
    out: BufWriter<StdoutLock<'static>>,
    json: bool,
}

impl ResultPrinter {
    fn new(json: bool) -> Self {
        Self {
            out: BufWriter::new(io::stdout().lock()),
            json,
        }
    }

    fn add(&mut self, record: &Record) -> Result<(), Error> {
        if self.json {
            serde_json::to_writer(&mut self.out, record)?;
            writeln!(self.out)?;
        } else {
            print(&mut self.out, record)?;
        }
        Ok(self.out.flush()?)
    }
}

impl Record {
    /// Creates an empty record.
    const fn new(measured: &'static str, rounds: usize) -> Self {
        Self {
            measured,
            chains: None,
            rules: None,
            elements: None,
            services: None,
            endpoints: None,
            layout: None,
            rounds,
            contenders: Vec::new(),
            memory: None,
            not_installed: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the measured operation and its size.
    fn title(&self) -> String {
        let counted = [
            (self.chains, "chains"),
            (self.rules, "rules"),
            (self.elements, "elements"),
            (self.services, "services"),
            (self.endpoints, "endpoints of each"),
        ];
        let counted: Vec<_> = counted
            .into_iter()
            .filter_map(|(number, noun)| Some(format!("{} {noun}", number?)))
            .collect();
        let layout = self.layout.map(|layout| format!(", {layout}"));
        format!(
            "{}{}: {}",
            self.measured,
            layout.unwrap_or_default(),
            counted.join(", ")
        )
    }
}

fn print(out: &mut impl Write, record: &Record) -> io::Result<()> {
    if record.contenders.is_empty() {
        writeln!(out, "{}", record.title())?;
    } else {
        writeln!(out, "{}", table(record))?;
    }
    if let Some(memory) = &record.memory {
        let of_ruleset = memory.ratio_to_ruleset;
        let of_ruleset = of_ruleset.map(|ratio| format!(", {ratio:.2} × the ruleset's bytes"));
        let of_endpoint = memory.bytes_each_endpoint;
        let of_endpoint = of_endpoint.map(|bytes| format!(", {bytes:.0} bytes an endpoint"));
        writeln!(
            out,
            "memory: {:.2} MB{}",
            memory.bytes as f64 / 1e6,
            of_ruleset.or(of_endpoint).unwrap_or_default()
        )?;
    }
    for note in &record.notes {
        writeln!(out, "{note}")?;
    }
    if !record.not_installed.is_empty() {
        writeln!(out, "not installed: {}", record.not_installed.join(", "))?;
    }
    writeln!(out)
}

fn table(record: &Record) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        record.title().as_str(),
        "CPU ms",
        "in kernel",
        "clock ms",
        "p99 ms",
        "× baseline",
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for contender in &record.contenders {
        table.add_row([
            contender.name.clone(),
            milliseconds(contender.cpu_ns),
            milliseconds(contender.kernel_ns),
            milliseconds(contender.wall_ns),
            milliseconds(contender.wall_p99_ns),
            format!("{:.2}", contender.ratio_to_baseline),
        ]);
    }
    table
}

fn milliseconds(nanoseconds: u128) -> String {
    let milliseconds = nanoseconds as f64 / 1e6;
    match milliseconds < 1.0 {
        true => format!("{milliseconds:.4}"),
        false => format!("{milliseconds:.2}"),
    }
}
