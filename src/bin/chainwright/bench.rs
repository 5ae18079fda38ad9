//! `chainwright bench`: measured listings against their floor.

use std::ffi::OsStr;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chainwright::measure::floor::{Floor, Request};
use chainwright::measure::{Contender, KubeProxy, Measured, alternate};
use chainwright::netns::Sandbox;
use chainwright::nft::{Connection, Family, Filter};
use clap::Subcommand;
use comfy_table::{CellAlignment, Table, presets};
use plotters::prelude::*;
use serde::Serialize;

use crate::output::{Error, Exit, Output};

/// Measure listing, in a private namespace and against its floor
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the chains of a ruleset like a kube-proxy's
    ///
    /// The floor is the same request with its replies received and thrown away. What is compared:
    /// this library, and the tools `nft` and `iptables-nft-save` where they are installed (the only
    /// programs that chainwright ever starts). Rounds alternate; CPU times are medians and count
    /// the kernel's work, and a tool's start; a ratio is the median of the rounds' ratios.
    Chains {
        /// Numbers of chains to measure with
        #[arg(
            long,
            value_name = "N,N,…",
            value_delimiter = ',',
            default_value = "1000,10000,50000"
        )]
        count: Vec<usize>,

        /// Rounds of each measurement; by default fewer for larger rulesets
        #[arg(long)]
        rounds: Option<usize>,

        /// Draw the CPU times into this SVG file
        #[arg(long, value_name = "FILE.svg")]
        plot: Option<PathBuf>,
    },
}

/// What was measured at one size.
#[derive(Serialize)]
struct Record {
    chains: usize,
    rules: usize,
    rounds: usize,
    contenders: Vec<Contestant>,
    not_installed: Vec<&'static str>,
}

#[derive(Serialize)]
struct Contestant {
    name: String,
    cpu_ns: u128,
    wall_ns: u128,
    ratio_to_floor: f64,
}

impl From<Measured> for Contestant {
    fn from(measured: Measured) -> Self {
        Self {
            name: measured.name,
            cpu_ns: measured.cpu.as_nanos(),
            wall_ns: measured.wall.as_nanos(),
            ratio_to_floor: measured.ratio,
        }
    }
}

/// The tools to compare with, and their arguments.
const TOOLS: &[(&str, &[&str])] = &[
    ("nft", &["list", "chains", "ip"]),
    ("iptables-nft-save", &["-t", "nat"]),
];

/// How many rounds the tools are measured for, at most: one takes them seconds.
const TOOL_ROUNDS: usize = 3;

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let What::Chains {
        count,
        rounds,
        plot,
    } = &args.what;
    if let Some(few) = count.iter().find(|count| **count < 2) {
        return Err(Error::Other(format!(
            "--count {few}: a ruleset has at least 2 chains, a service's and an endpoint's"
        )));
    }
    let mut out = Output::new();
    let mut records = Vec::new();
    for &chains in count {
        let rounds = rounds.unwrap_or((200_000 / chains).clamp(3, 51));
        let record = Sandbox::new()?.run(|| measure(chains, rounds))??;
        if json {
            out.json(&record)?;
        } else {
            print(&mut out, &record)?;
        }
        out.flush()?;
        records.push(record);
    }
    if let Some(path) = plot {
        let drawing = draw(&records)
            .map_err(|error| Error::Other(format!("cannot draw {}: {error}", path.display())))?;
        fs::write(path, drawing)
            .map_err(|error| Error::Other(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(Exit::Done)
}

fn measure(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let mut nft = Connection::open()?;
    ruleset.load(&mut nft)?;
    let mut floor = Floor::open()?;
    let request = Request::chains(Family::IP);
    let mut thrown_away = || {
        black_box(floor.dump(&request)?);
        Ok(())
    };
    let mut listed = || {
        let mut count = 0;
        nft.chains(Filter::family(Family::IP))?.for_each(|chain| {
            black_box(chain.table());
            black_box(chain.name());
            black_box(chain.handle());
            if let Some(hook) = chain.hook() {
                black_box((hook.number, hook.priority));
            }
            black_box(chain.policy());
            black_box(chain.chain_type());
            black_box(chain.flags());
            black_box(chain.references());
            count += 1;
        })?;
        // Beside the services' chains: four built-in ones, and two that all share.
        if count == chains / 2 * 2 + 6 {
            Ok(())
        } else {
            Err(Error::Other(format!("{count} chains were listed")))
        }
    };
    let (installed, missing): (Vec<_>, Vec<_>) =
        TOOLS.iter().partition(|(tool, _)| find(tool).is_some());
    let mut tools: Vec<_> = installed
        .iter()
        .map(|(tool, arguments)| {
            let name = format!("{tool} {} (process)", arguments.join(" "));
            (name, move || start(tool, arguments))
        })
        .collect();

    let mut contenders: [Contender<'_, Error>; 2] = [
        ("floor: replies thrown away", &mut thrown_away),
        ("chainwright, every attribute read", &mut listed),
    ];
    let mut measured = alternate(rounds, &mut contenders)?;
    // Rounds of their own: a tool leaves the caches to whoever comes after it.
    let [floor, _] = contenders;
    let mut contenders = vec![floor];
    contenders.extend(tools.iter_mut().map(|(name, run)| {
        let contender: Contender<'_, Error> = (name, run);
        contender
    }));
    measured.extend(alternate(rounds.min(TOOL_ROUNDS), &mut contenders)?.drain(1..));
    Ok(Record {
        chains,
        rules: ruleset.rules(),
        rounds,
        contenders: measured.into_iter().map(Contestant::from).collect(),
        not_installed: missing.iter().map(|(tool, _)| *tool).collect(),
    })
}

/// Where a tool is installed.
fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(tool))
        .find(|path| path.is_file())
}

/// Runs a tool to its end, its output thrown away.
fn start(tool: &str, arguments: &[&str]) -> Result<(), Error> {
    let program = find(tool);
    let program = program.as_deref().map_or(OsStr::new(tool), Path::as_os_str);
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| Error::Other(format!("cannot start {tool}: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Other(format!("{tool} failed: {status}")))
    }
}

fn print(out: &mut Output, record: &Record) -> Result<(), Error> {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        format!("list {} chains ({} rules)", record.chains, record.rules).as_str(),
        "CPU ms",
        "clock ms",
        "× floor",
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for contender in &record.contenders {
        table.add_row([
            contender.name.clone(),
            milliseconds(contender.cpu_ns),
            milliseconds(contender.wall_ns),
            format!("{:.2}", contender.ratio_to_floor),
        ]);
    }
    writeln!(out, "{table}")?;
    if !record.not_installed.is_empty() {
        writeln!(out, "not installed: {}", record.not_installed.join(", "))?;
    }
    writeln!(out)
}

fn milliseconds(nanoseconds: u128) -> String {
    format!("{:.2}", nanoseconds as f64 / 1e6)
}

/// Draws CPU time over the number of chains, both on logarithmic scales.
fn draw(records: &[Record]) -> Result<String, Box<dyn std::error::Error>> {
    let points: Vec<(&str, f64, f64)> = records
        .iter()
        .flat_map(|record| {
            record.contenders.iter().map(|contender| {
                let milliseconds = (contender.cpu_ns as f64 / 1e6).max(1e-3);
                (contender.name.as_str(), record.chains as f64, milliseconds)
            })
        })
        .collect();
    let range = |value: fn(&(&str, f64, f64)) -> f64| {
        let least = points.iter().map(value).fold(f64::INFINITY, f64::min);
        let most = points.iter().map(value).fold(0.0, f64::max);
        (least / 1.5)..(most * 1.5)
    };
    let mut drawing = String::new();
    let root = SVGBackend::with_string(&mut drawing, (900, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("Listing chains: CPU time", ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(
            range(|point| point.1).log_scale(),
            range(|point| point.2).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("chains")
        .y_desc("CPU, ms (median)")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y}"))
        .light_line_style(WHITE)
        .draw()?;
    let mut names: Vec<&str> = Vec::new();
    for (name, ..) in &points {
        if !names.contains(name) {
            names.push(name);
        }
    }
    for (index, name) in names.into_iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let line: Vec<_> = points
            .iter()
            .filter(|point| point.0 == name)
            .map(|point| (point.1, point.2))
            .collect();
        chart
            .draw_series(LineSeries::new(line.iter().copied(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        chart.draw_series(
            line.iter()
                .map(|&point| Circle::new(point, 4, color.filled())),
        )?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    drop(chart);
    drop(root);
    Ok(drawing)
}
