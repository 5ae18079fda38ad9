//! Programming services into the kernel, in each layout.

use chainwright::iptables::text::SaveOptions;
use chainwright::iptables::{Backend, Family, Iptables};
use chainwright::legacy::{self, Status};
use chainwright::nft::{Connection, Family as Nft, Scope, Transaction};
use chainwright_bench::proxy::{
    Path as PacketPath, changes, cold, first_packets, memory, name_of, restart, rolling,
};
use chainwright_bench::{Cluster, Measured};
use chainwright_kube::service::Layout;
use chainwright_lang::{Listing, NftVersion, Options, Part};
use chainwright_testing::Sandbox;
use clap::ValueEnum;
use tempfile::NamedTempFile;

use super::tools::{Tool, run_once};
use super::{
    ContenderRecord, Error, Memory, Record, ResultPrinter, Sizes, note, progress, temporary,
};

/// Number of endpoints of a restarted deployment.
const DEPLOYMENT: usize = 100;
/// A process grows by pages, and by its own buffers: with fewer endpoints, the memory is not meaningful.
const LEAST_FOR_MEMORY: usize = 1_000;
const FIRST_PACKET: &str = "the first packet of a connection";

/// Options of the benchmark of services.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    sizes: Sizes,

    /// Number of endpoints of each service
    #[arg(long, value_name = "M", default_value_t = 1)]
    endpoints: usize,

    /// Only this layout; may be given several times. Memory is measured in the first
    #[arg(long, value_enum)]
    layout: Vec<LayoutArg>,

    /// In layouts other than flat, skip larger sizes: there the cost of a change grows with the number of services
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    others_at_most: usize,

    /// Draw CPU times and latencies into this SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<std::path::PathBuf>,
}

/// A layout, with its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LayoutArg {
    /// elements in maps and sets of data
    Flat,
    /// kube-proxy's nftables mode
    Nftables,
    /// kube-proxy's iptables mode in nf_tables
    IptablesNft,
    /// kube-proxy's iptables mode in the legacy x_tables
    IptablesLegacy,
}

impl LayoutArg {
    const fn layout(self) -> Layout {
        match self {
            Self::Flat => Layout::Flat,
            Self::Nftables => Layout::Nftables,
            Self::IptablesNft => Layout::Iptables(Backend::Nft),
            Self::IptablesLegacy => Layout::Iptables(Backend::Legacy),
        }
    }
}

impl Args {
    /// Returns the layouts to measure that this kernel supports, and notes about the others.
    fn layouts(&self) -> Result<(Vec<Layout>, Vec<String>), Error> {
        let requested = match self.layout.is_empty() {
            true => LayoutArg::value_variants(),
            false => &self.layout[..],
        };
        let mut layouts: Vec<Layout> = requested.iter().map(|which| which.layout()).collect();
        let is_legacy = |layout: &Layout| *layout == Layout::Iptables(Backend::Legacy);
        let mut notes = Vec::new();
        if layouts.iter().any(is_legacy)
            && matches!(legacy::status(legacy::Family::Ipv4)?, Status::NotBuilt)
        {
            layouts.retain(|layout| !is_legacy(layout));
            notes.push("iptables-legacy: not measured, this kernel has no legacy tables".into());
        }
        Ok((layouts, notes))
    }

    /// Returns the layouts that are measured at this size.
    fn at(&self, layouts: &[Layout], services: usize) -> Vec<Layout> {
        let fits = |l: &&Layout| **l == Layout::Flat || services <= self.others_at_most;
        layouts.iter().filter(fits).copied().collect()
    }
}

/// Runs all measurements.
pub(crate) fn measure(args: &Args, printer: &mut ResultPrinter) -> Result<Vec<Record>, Error> {
    let sizes = args.sizes.services(&[10, 1_000, 10_000, 100_000])?;
    if args.endpoints == 0 {
        return Err("a service needs at least one endpoint".into());
    }
    let (layouts, notes_on_omissions) = args.layouts()?;
    for word in notes_on_omissions {
        note(&word);
    }
    if sizes.iter().any(|size| *size > args.others_at_most) {
        note(&format!(
            "above {} services only flat is measured (--others-at-most)",
            args.others_at_most
        ));
    }
    let mut bench = Bench {
        args,
        layouts,
        records: Vec::new(),
        printer,
    };
    bench.memory(sizes)?;
    for &services in sizes {
        let cluster = Cluster::new(services, args.endpoints);
        bench.cold(cluster)?;
        bench.changes(cluster)?;
        bench.restart(cluster)?;
    }
    bench.packets(sizes)?;
    Ok(bench.records)
}

struct Bench<'a> {
    args: &'a Args,
    layouts: Vec<Layout>,
    records: Vec<Record>,
    printer: &'a mut ResultPrinter,
}

impl Bench<'_> {
    fn add(&mut self, record: Record) -> Result<(), Error> {
        self.printer.add(&record)?;
        self.records.push(record);
        Ok(())
    }

    fn of(measured: &'static str, cluster: Cluster, rounds: usize) -> Record {
        Record {
            services: Some(cluster.services),
            endpoints: Some(cluster.endpoints),
            ..Record::new(measured, rounds)
        }
    }

    /// Measures memory. This runs first, and keeps everything until the end, so that no freed memory is reused. It
    /// measures only one layout, because others leave many allocations behind.
    fn memory(&mut self, sizes: &[usize]) -> Result<(), Error> {
        let first = self.layouts.first().copied();
        let mut kept = Vec::new();
        for &services in sizes {
            let cluster = Cluster::new(services, self.args.endpoints);
            if services * cluster.endpoints < LEAST_FOR_MEMORY {
                continue;
            }
            for layout in self.args.at(first.as_slice(), services) {
                progress(format!("memory, {services} services"));
                let memory = memory(cluster, layout)?;
                self.add(Record {
                    layout: Some(name_of(layout)),
                    memory: Some(Memory {
                        bytes: memory.all,
                        ratio_to_ruleset: None,
                        bytes_each_endpoint: Some(
                            memory.all as f64 / (services * cluster.endpoints) as f64,
                        ),
                    }),
                    notes: vec![format!(
                        "Services: {:.2} MB of that; growth of the process, in pages",
                        memory.services as f64 / 1e6
                    )],
                    ..Self::of("memory of services and proxy", cluster, 1)
                })?;
                kept.push(memory);
            }
        }
        Ok(())
    }

    /// Measures something in each layout separately, in a new network namespace, and reports the number of rounds.
    fn in_each(
        &mut self,
        what: &str,
        cluster: Cluster,
        measure: impl Fn(Layout, usize) -> Result<Record, Error> + Sync,
    ) -> Result<(), Error> {
        let elements = cluster.services * cluster.endpoints;
        let rounds = self.args.sizes.rounds(200_000, elements, 31);
        for layout in self.args.at(&self.layouts, cluster.services) {
            progress(format!(
                "{what}, {} services, {}, {rounds} rounds",
                cluster.services,
                name_of(layout)
            ));
            let record = Sandbox::new()?.run(|| measure(layout, rounds))??;
            self.add(record)?;
        }
        Ok(())
    }

    fn cold(&mut self, cluster: Cluster) -> Result<(), Error> {
        self.in_each("cold start", cluster, |layout, rounds| {
            let cold = cold(cluster, layout, rounds)?;
            let mut record = Record {
                layout: Some(name_of(layout)),
                notes: vec![format!(
                    "bytes: {:.2} MB; parts: {}",
                    cold.bytes as f64 / 1e6,
                    cold.parts
                )],
                contenders: contender_records(&cold.contenders),
                ..Self::of("cold start", cluster, rounds)
            };
            if let Some(baseline) = cold.contenders.first() {
                tool(layout, baseline, &mut record)?;
            }
            Ok(record)
        })
    }

    /// Measures single changes, and sequences of changes.
    fn changes(&mut self, cluster: Cluster) -> Result<(), Error> {
        let layouts = self.args.at(&self.layouts, cluster.services);
        if layouts.is_empty() {
            return Ok(());
        }
        let rounds = self.args.sizes.rounds(200_000, cluster.services, 301);
        progress(format!(
            "one change, {} services, {rounds} rounds",
            cluster.services
        ));
        let all = changes(cluster, &layouts, rounds)?;
        for (name, measured) in all {
            self.add(Record {
                contenders: contender_records(&measured),
                ..Self::of(name, cluster, rounds)
            })?;
        }
        let rounds = self.args.sizes.rounds(50_000, cluster.services, 9);
        progress(format!(
            "rolling restart, {} services, {rounds} rounds",
            cluster.services
        ));
        let measured = rolling(cluster, DEPLOYMENT, &layouts, rounds)?;
        self.add(Record {
            contenders: contender_records(&measured),
            notes: vec![format!(
                "{DEPLOYMENT} endpoints of one service, replaced one after another"
            )],
            ..Self::of("rolling restart of a deployment", cluster, rounds)
        })
    }

    fn restart(&mut self, cluster: Cluster) -> Result<(), Error> {
        self.in_each("restart", cluster, |layout, rounds| {
            Ok(Record {
                layout: Some(name_of(layout)),
                contenders: contender_records(&restart(cluster, layout, rounds)?),
                ..Self::of("restart of the agent", cluster, rounds)
            })
        })
    }

    /// Measures all sizes in one run, in alternating rounds.
    fn packets(&mut self, sizes: &[usize]) -> Result<(), Error> {
        let at = |services: usize| {
            let layouts = self.args.at(&self.layouts, services).into_iter();
            layouts.map(move |layout| PacketPath { layout, services })
        };
        let paths: Vec<PacketPath> = sizes.iter().copied().flat_map(at).collect();
        let Some(baseline) = paths.first() else {
            return Ok(());
        };
        let rounds = self.args.sizes.rounds.unwrap_or(1_000);
        progress(format!("first packets, {rounds} rounds"));
        let measured = first_packets(&paths, rounds)?;
        let baseline = format!(
            "ratios are of wall time, relative to {} with {} services",
            name_of(baseline.layout),
            baseline.services
        );
        for &services in sizes {
            let all = paths.iter().zip(&measured);
            let of_size = all.filter(|(packet_path, _)| packet_path.services == services);
            let contenders = of_size.map(|(packet_path, measured)| {
                let mut contender_record = ContenderRecord::from(measured.clone());
                contender_record.name = name_of(packet_path.layout).into();
                contender_record
            });
            let record = Record {
                contenders: contenders.collect(),
                notes: vec![baseline.clone()],
                ..Self::of(FIRST_PACKET, Cluster::new(services, 1), rounds)
            };
            self.add(record)?;
        }
        Ok(())
    }
}

fn contender_records(measured: &[Measured]) -> Vec<ContenderRecord> {
    measured
        .iter()
        .cloned()
        .map(ContenderRecord::from)
        .collect()
}

/// Lets the real tool load the same rules once, into the calling thread's network namespace, which contains them.
fn tool(layout: Layout, baseline: &Measured, record: &mut Record) -> Result<(), Error> {
    let (tool, text) = match layout {
        Layout::Flat => {
            record.notes.push(
                "nft: only the sets and maps of services, because its language cannot express the rules"
                    .into(),
            );
            ("nft", listed(&Cluster::SETS.map(part_of))?)
        }
        Layout::Nftables => ("nft", listed(&[Part::All])?),
        Layout::Iptables(Backend::Nft) => ("iptables-nft-restore", saved(Backend::Nft)?),
        Layout::Iptables(Backend::Legacy) => ("iptables-legacy-restore", saved(Backend::Legacy)?),
        _ => return Ok(()),
    };
    let mut empty = Transaction::new();
    empty.flush_ruleset(Nft::UNSPEC)?;
    Connection::open()?.commit(&empty)?;
    let path = text.path().to_string_lossy().into_owned();
    let (load, restore) = (["-f", &path], [&path[..]]);
    let tool: Tool<'_> = match tool {
        "nft" => (tool, &load),
        _ => (tool, &restore),
    };
    let lock = temporary("")?;
    match run_once(baseline, tool, lock.path())? {
        Some(measured) => record.contenders.push(measured.into()),
        None => record.not_installed.push(tool.0),
    }
    Ok(())
}

/// Returns a set or map of the flat layout that grows with services.
const fn part_of(set: &str) -> Part<'_> {
    match set.as_bytes() {
        b"cluster-ips" => Part::Set(set.as_bytes()),
        map => Part::Map(map),
    }
}

/// Lists parts of the present ruleset in nft's language.
fn listed(parts: &[Part<'_>]) -> Result<NamedTempFile, Error> {
    let snapshot = Connection::open()?.snapshot(Scope::all())?;
    let mut options = Options::here();
    options.nft_version = NftVersion::V1_0; // which every version reads
    let mut text = String::new();
    for part in parts {
        let listing = Listing::new(&snapshot, &options).part(*part);
        if listing.is_empty() {
            return Err(Error::from(format!("no {part:?} found")));
        }
        text += &listing.to_string();
    }
    temporary(&text)
}

/// Returns the present tables, as printed by iptables-save.
fn saved(backend: Backend) -> Result<NamedTempFile, Error> {
    let mut text = Vec::new();
    let tables = Iptables::open(backend)?.read(Family::Ipv4, &[])?;
    let omissions = tables.save(SaveOptions::default(), &mut text)?;
    if !omissions.is_none() {
        return Err("iptables' language cannot hold every rule".into());
    }
    temporary(&String::from_utf8_lossy(&text))
}

/// The measurements that are drawn by number of services, and whether they use wall-clock time.
pub(crate) const PLOTTED: [(&str, bool); 4] = [
    ("cold start", false),
    ("one endpoint more", false),
    ("one service more", false),
    (FIRST_PACKET, true),
];
