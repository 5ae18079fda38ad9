//! `chainwright metrics`: prints or serves metrics of the ruleset.

mod drift;
mod http;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::OnceLock;

use bstr::BStr;
use chainwright::metrics::{MetricType, Metrics, Sample};
use chainwright::nft::Snapshot;
use serde::Serialize;

use crate::glob::Glob;
use crate::legacy_tables;
use crate::output::{Error, Exit, Output, Printable, Rows, eprint_line, note};
use crate::scope::{Found, Scope};

/// Print counters, sizes and totals for Prometheus, or serve them over HTTP
///
/// Prints Prometheus' text format: packets and bytes of rules that have a comment and a counter of their own, of named counters,
/// quotas and policies; the numbers of elements, chains, rules and sets; the generation of nf_tables; with --against
/// whether the ruleset differs from a file. Rules of one chain with the same comment are summed. docs/metrics.md lists
/// the metrics with their labels.
///
/// --listen serves them at http://ADDR:PORT/metrics, without TLS and authentication, until SIGTERM or SIGINT. Each
/// request reads the ruleset, at most once a second; if that fails, the response has the status 503. It notifies systemd
/// (Type=notify) and its watchdog; the packages have a unit, chainwright-metrics.service. With --netns it reads that
/// namespace, and listens in the one where it was started.
///
/// The kernel counts a policy of nf_tables only if the chain was created with counters. Repairs of `kube guard` are not
/// shown: it only writes them to its log.
///
/// Without --listen, the exit code is 2 if a part could not be read, or the ruleset kept changing, and 1 if a selected
/// table does not exist.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Serve the metrics over HTTP at this address, for instance 127.0.0.1:9638
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "json")]
    listen: Option<SocketAddr>,

    /// Compare nf_tables with this file, which has any format that `apply` accepts, and is read again for each request;
    /// with --backend legacy compare legacy tables with output of iptables-save. Unless the file is a snapshot, compares
    /// only the tables in it
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// Show only rules whose comment matches, for instance 'default/*'; may be given more than once. Without it, shows
    /// all rules with a comment
    #[arg(long, value_name = "GLOB")]
    comment: Vec<Glob>,

    #[command(flatten)]
    scope: Scope,

    /// The socket of `listen`.
    #[arg(skip)]
    listener: OnceLock<TcpListener>,
}

/// A metric of every table.
const TABLES: &str = "chainwright_table_chains";

/// A sample in JSON.
#[derive(Serialize)]
struct Record<'m> {
    metric: &'static str,
    #[serde(rename = "type")]
    metric_type: MetricType,
    labels: BTreeMap<&'static str, &'m str>,
    value: u64,
}

impl<'m> Record<'m> {
    fn of(sample: &Sample<'m>) -> Self {
        let labels = sample.metric.labels.iter().copied();
        let values = sample.labels.iter().map(String::as_str);
        Self {
            metric: sample.metric.name,
            metric_type: sample.metric.metric_type,
            labels: labels.zip(values).collect(),
            value: sample.value,
        }
    }
}

impl Args {
    /// Returns `true` if it runs until it is stopped.
    pub(crate) const fn serves(&self) -> bool {
        self.listen.is_some()
    }

    /// Listens at the address in the calling thread's network namespace.
    pub(crate) fn bind(&self) -> Result<(), Error> {
        if let Some(address) = self.listen {
            let listener = TcpListener::bind(address);
            let listener = listener
                .map_err(|error| Error::Other(format!("cannot listen on {address}: {error}")))?;
            let _ = self.listener.set(listener); // it is called once
        }
        Ok(())
    }

    /// Reads the metrics. Also returns notes, and what could not be read.
    fn read(&self) -> Result<(Metrics, Found), Error> {
        let admits = |comment: &BStr| {
            self.comment.is_empty() || self.comment.iter().any(|glob| glob.is_match(comment))
        };
        let mut metrics = Metrics::default();
        let mut found = Found::default();
        let snapshot = found.nft(self.scope.place.listed(), || {
            self.scope.read_or_note(|nft, filter| nft.snapshot(filter))
        })?;
        let snapshot: Snapshot = snapshot.unwrap_or_default();
        let mut legacy = Vec::new();
        legacy_tables::read_selected(&self.scope, &mut found, &mut |table| {
            legacy.push(table.clone());
            Ok(())
        })?;
        metrics.add_snapshot(&snapshot, &admits);
        for table in &legacy {
            metrics.add_legacy(table, &admits);
        }
        if let Some(file) = &self.against
            && let Some(tables) = drift::different_tables(&self.scope, file, &snapshot, &legacy)?
        {
            metrics.add_drift(tables);
        }
        metrics.add_completeness(!found.is_partial());
        Ok((metrics, found))
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    if let (Some(file), true) = (&args.against, args.serves())
        && !std::fs::metadata(file).is_ok_and(|file| file.is_file())
    {
        return Err(Error::Other(format!(
            "--listen reads the file of --against for each request, and {} is not a regular file",
            Printable(&file.to_string_lossy())
        )));
    }
    if let Some(listener) = args.listener.get() {
        let address = listener.local_addr().map_err(Error::Output)?;
        eprint_line(&format!("chainwright: serving http://{address}/metrics"));
        http::serve(listener, &mut || Ok(args.read()?.0.to_string()))?;
        return Ok(Exit::Done);
    }
    let (metrics, found) = args.read()?;
    let has_tables = metrics.samples().any(|sample| sample.metric.name == TABLES);
    let mut out = Output::new();
    if json {
        let mut rows = Rows::new("metrics", "metrics");
        for sample in metrics.samples() {
            rows.add(&mut out, &Record::of(&sample))?;
        }
        rows.end(&mut out, true, Some(("not_read", &found.not_read)))?;
    } else {
        write!(out, "{metrics}")?;
    }
    out.flush()?;
    if args.scope.is_filtered() {
        let backend = args.scope.place.listed();
        return Ok(found.end(has_tables, "table", true, backend, json));
    }
    for text in &found.notes {
        note(text);
    }
    Ok(match found.is_partial() {
        true => Exit::Failed,
        false => Exit::Done,
    })
}
