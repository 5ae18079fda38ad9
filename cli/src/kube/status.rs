//! `chainwright kube status`: detects the backend of the node's Kubernetes.

use std::time::Duration;

use chainwright::iptables::{Backend, Family};
use chainwright::legacy::Status;
use chainwright_kube::detect::{
    DetectedBackend, Detection, Detector, Evidence, Owned, ProbeResult, ServiceTableKind,
    WatchOptions,
};
use chainwright_kube::kubelet::{CANARY, HINT};
use serde::Serialize;

use crate::iptables::{backend_word, family_word};
use crate::output::{Error, Exit, Output, Printable, causes, note};
use crate::scope::UnreadPart;

/// Detect the backend that this node's Kubernetes uses: nf_tables or the legacy tables
///
/// Looks for the hint KUBE-IPTABLES-HINT and kubelet's canary in the table mangle, in both backends and both families,
/// like iptables-wrappers, Calico and azure-npm; but it creates no table and loads no module, and there is no default.
/// It also prints the evidence: the chains of Kubernetes, CNI plugins, azure-npm and Calico in each table, tables of
/// kube-proxy's or chainwright's services in nf_tables, and everything that could not be read.
///
/// The result is nft, legacy, mixed (both have a hint or canary), undetermined (neither has: kubelet has not
/// initialized, or its chains were flushed) or unavailable (it cannot be determined).
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Wait up to this time for a result: nf_tables sends notifications, legacy tables are polled
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,

    /// Run until stopped, and print each result that differs from the previous one
    #[arg(long, conflicts_with = "wait")]
    follow: bool,

    /// Also count the rules of the chains
    #[arg(long, conflicts_with_all = ["quiet", "follow"])]
    rules: bool,

    /// Print only the result, without the chains
    #[arg(short, long)]
    quiet: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  nft or legacy
  1  undetermined
  2  unavailable; see standard error
  3  mixed";

const FAMILIES: [Family; 2] = Family::ALL;

#[derive(Serialize)]
struct Formatted {
    #[serde(rename = "verdict")]
    backend: &'static str,
    probes: Vec<ProbeRecord>,
    #[serde(flatten)]
    evidence: Option<EvidenceRecord>,
}

#[derive(Serialize)]
struct ProbeRecord {
    backend: &'static str,
    family: &'static str,
    hint: bool,
    canary: bool,
    state: String,
}

#[derive(Serialize)]
struct EvidenceRecord {
    nft_loaded: bool,
    legacy: Vec<LegacyRecord>,
    chains: Vec<OwnedRecord>,
    services: Vec<ServiceRecord>,
    not_read: Vec<UnreadPart>,
}

#[derive(Serialize)]
struct ServiceRecord {
    family: &'static str,
    table: String,
    kind: &'static str,
}

#[derive(Serialize)]
struct LegacyRecord {
    family: &'static str,
    status: &'static str,
    tables: Vec<String>,
}

#[derive(Serialize)]
struct OwnedRecord {
    backend: &'static str,
    family: &'static str,
    table: String,
    prefix: &'static str,
    chains: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<usize>,
}

impl OwnedRecord {
    fn new(owned: &Owned, counts_rules: bool) -> Self {
        Self {
            backend: backend_word(owned.backend),
            family: family_word(owned.family),
            table: owned.table.to_string(),
            prefix: owned.prefix,
            chains: owned.chains,
            rules: counts_rules.then_some(owned.rules),
        }
    }
}

/// Returns each probe with its backend and family.
fn probes(detection: &Detection) -> impl Iterator<Item = (Backend, Family, &ProbeResult)> {
    [Backend::Nft, Backend::Legacy]
        .into_iter()
        .flat_map(move |backend| {
            let probes = FAMILIES.into_iter().zip(detection.of(backend));
            probes.map(move |(family, probe)| (backend, family, probe))
        })
}

fn probe_records(detection: &Detection) -> Vec<ProbeRecord> {
    let record = |(backend, family, probe): (_, _, &ProbeResult)| ProbeRecord {
        backend: backend_word(backend),
        family: family_word(family),
        hint: probe.marks().hint,
        canary: probe.marks().canary,
        state: match probe {
            ProbeResult::Marks(_) => "read".to_owned(),
            ProbeResult::Absent => "absent".to_owned(),
            ProbeResult::Failed(error) => error.clone(),
        },
    };
    probes(detection).map(record).collect()
}

/// Describes the legacy tables of a family: a status, and the tables in use.
fn status(found: &Result<Status, chainwright::legacy::Error>) -> (&'static str, Vec<String>) {
    match found {
        Ok(Status::NotBuilt) => ("not built", vec![]),
        Ok(Status::NoPermission(_)) | Err(_) => ("unknown", vec![]),
        Ok(Status::NotInUse) => ("not in use", vec![]),
        Ok(Status::InUse(tables)) => ("in use", tables.iter().map(ToString::to_string).collect()),
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let mut out = Output::new();
    if args.follow {
        let mut watch = Detector::open().watch(WatchOptions::default());
        while let Some(detection) = watch.next_until(None)? {
            print_detection(&mut out, &detection, None, json)?;
            out.flush()?;
            if !json {
                print_failures(&detection);
            }
            if !out.has_reader() {
                break;
            }
        }
        return Ok(Exit::Done);
    }
    let mut detector = Detector::open();
    let mut detection = detector.probe();
    if args.wait > 0 {
        detection = detector.wait(Duration::from_secs(args.wait))?;
        detector = Detector::open();
    }
    let evidence = (!args.quiet).then(|| match args.rules {
        true => detector.evidence(),
        false => detector.evidence_without_rules(),
    });
    print_detection(&mut out, &detection, evidence.as_ref(), json)?;
    out.flush()?;
    let mut is_partial = false;
    if let Some(evidence) = &evidence {
        is_partial = !evidence.uncounted.is_empty();
        for (backend, error) in &evidence.uncounted {
            note(&format!("{backend}: not examined: {}", causes(error)));
        }
    }
    let exit = match detection.detected_backend() {
        DetectedBackend::Nft | DetectedBackend::Legacy => Exit::Done,
        // The parts that were not read may determine the backend.
        DetectedBackend::Undetermined if is_partial => Exit::Failed,
        DetectedBackend::Undetermined => Exit::Absent,
        DetectedBackend::Mixed => Exit::Code(3),
        DetectedBackend::Unavailable => Exit::Failed,
    };
    print_failures(&detection);
    Ok(exit)
}

/// Prints the errors on standard error if the result is unavailable.
fn print_failures(detection: &Detection) {
    if detection.detected_backend() != DetectedBackend::Unavailable {
        return;
    }
    for (backend, family, probe) in probes(detection) {
        match probe {
            ProbeResult::Failed(error) => note(&format!("{backend}, {family}: {error}")),
            ProbeResult::Absent => note(&format!("{backend}, {family}: not in this kernel")),
            ProbeResult::Marks(_) => {}
        }
    }
}

fn print_detection(
    out: &mut Output,
    detection: &Detection,
    evidence: Option<&Evidence>,
    json: bool,
) -> Result<(), Error> {
    let detected = detection.detected_backend();
    if json {
        let evidence = evidence.map(|evidence| EvidenceRecord {
            nft_loaded: evidence.nft_loaded,
            legacy: FAMILIES
                .into_iter()
                .zip(&evidence.legacy)
                .map(|(family, found)| {
                    let (status, tables) = status(found);
                    LegacyRecord {
                        family: family_word(family),
                        status,
                        tables,
                    }
                })
                .collect(),
            chains: evidence
                .owned
                .iter()
                .map(|owned| OwnedRecord::new(owned, evidence.counts_rules))
                .collect(),
            services: evidence
                .services
                .iter()
                .map(|table| ServiceRecord {
                    family: family_word(table.family),
                    table: table.table.to_string(),
                    kind: table.kind.name(),
                })
                .collect(),
            not_read: evidence
                .uncounted
                .iter()
                .map(|(backend, error)| UnreadPart {
                    backend: backend_word(*backend),
                    family: None,
                    reason: causes(error),
                })
                .collect(),
        });
        return out.json(
            "detect",
            &Formatted {
                backend: detected.name(),
                probes: probe_records(detection),
                evidence,
            },
        );
    }
    writeln!(out, "{detected}: {}", describe(detected))?;
    let Some(evidence) = evidence else {
        return Ok(());
    };
    writeln!(out, "\n{:22}{:18}the legacy tables", "", "nf_tables")?;
    for (name, has) in [
        (
            HINT,
            (|probe| probe.marks().hint) as fn(&ProbeResult) -> bool,
        ),
        (CANARY, |probe| probe.marks().canary),
    ] {
        let where_to = |backend| {
            let probes = FAMILIES.into_iter().zip(detection.of(backend));
            let words = |admits: &dyn Fn(&ProbeResult) -> bool| {
                let those = probes.clone().filter(|(_, probe)| admits(probe));
                let words: Vec<_> = those.map(|(family, _)| family_word(family)).collect();
                words.join(", ")
            };
            let there = words(&has);
            let unknown = words(&|probe| matches!(probe, ProbeResult::Failed(_)));
            match (there.is_empty(), unknown.is_empty()) {
                (true, true) => "-".to_owned(),
                (false, true) => there,
                (true, false) => format!("{unknown}: unknown"),
                (false, false) => format!("{there}; {unknown}?"),
            }
        };
        let (nft, legacy) = (where_to(Backend::Nft), where_to(Backend::Legacy));
        writeln!(out, "{name:22}{nft:18}{legacy}")?;
    }
    let loaded = if evidence.nft_loaded {
        "loaded"
    } else {
        "not loaded"
    };
    for ((family, found), first) in FAMILIES
        .into_iter()
        .zip(&evidence.legacy)
        .zip([true, false])
    {
        let (word, tables) = status(found);
        let tables = match tables.is_empty() {
            true => String::new(),
            false => format!(" ({})", tables.join(", ")),
        };
        let label = if first { "in the kernel" } else { "" };
        let loaded = if first { loaded } else { "" };
        let family = family_word(family);
        let line = format!(
            "{label:22}{loaded:18}{family}: {word}{}",
            Printable(&tables)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    print_chains(out, evidence)?;
    for table in &evidence.services {
        let owner = match table.kind {
            ServiceTableKind::KubeProxy => "kube-proxy's services (nftables mode)",
            ServiceTableKind::Nftables => "chainwright's services (layout nftables)",
            ServiceTableKind::Flat => "chainwright's services (layout flat)",
            _ => "services",
        };
        let (family, name) = (family_word(table.family), table.table.to_string());
        writeln!(
            out,
            "nf_tables: table {family} {}: {owner}",
            Printable(&name)
        )?;
    }
    // Standard error has the reasons.
    for (backend, _) in &evidence.uncounted {
        writeln!(out, "{backend}: not examined completely")?;
    }
    Ok(())
}

/// Prints the chains of the node's components.
fn print_chains(out: &mut Output, evidence: &Evidence) -> Result<(), Error> {
    if evidence.owned.is_empty() {
        let looked: Vec<_> = [Backend::Nft, Backend::Legacy]
            .into_iter()
            .filter(|backend| evidence.uncounted.iter().all(|(one, _)| one != backend))
            .collect();
        let none = "no chains of Kubernetes, CNI plugins, azure-npm or Calico";
        return match looked[..] {
            [] => writeln!(out),
            [one] => writeln!(out, "\n{none} in {one}"),
            _ => writeln!(out, "\n{none}"),
        };
    }
    let rules = |rules: &dyn std::fmt::Display| match evidence.counts_rules {
        true => format!("{rules:>8}"),
        false => String::new(),
    };
    writeln!(
        out,
        "\n{:8}{:7}{:10}{:12}{:>8}{}",
        "backend",
        "family",
        "table",
        "chains of",
        "chains",
        rules(&"rules")
    )?;
    for owned in &evidence.owned {
        let table = owned.table.to_string();
        writeln!(
            out,
            "{:8}{:7}{:10}{:12}{:>8}{}",
            backend_word(owned.backend),
            family_word(owned.family),
            Printable(&table),
            format!("{}*", owned.prefix),
            owned.chains,
            rules(&owned.rules)
        )?;
    }
    Ok(())
}

const fn describe(detected: DetectedBackend) -> &'static str {
    match detected {
        DetectedBackend::Nft => "this node's Kubernetes uses nf_tables",
        DetectedBackend::Legacy => "this node's Kubernetes uses the legacy tables",
        DetectedBackend::Mixed => "both backends have a hint or a canary chain",
        DetectedBackend::Undetermined => "kubelet has not created its chains, or they were flushed",
        DetectedBackend::Unavailable => "cannot be determined",
    }
}
