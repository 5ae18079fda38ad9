//! Restoring and saving iptables' tables.

use chainwright::iptables::Backend;
use chainwright_bench::Services;
use chainwright_bench::iptables::{Comparison, restore_legacy, restore_nft, save_legacy, save_nft};
use chainwright_testing::Sandbox;

use super::tools::{Tool, run_once};
use super::{ContenderRecord, Error, Record, note, temporary};

/// The measured operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Benchmark {
    Restore,
    Save,
}

/// Measures at one size, in both backends or one, each in its own namespace.
pub(crate) fn measure(
    what: Benchmark,
    backend: super::Backend,
    services: usize,
    rounds: usize,
    with_tools: bool,
) -> Result<Vec<Record>, Error> {
    let services = Services { services };
    let mut records = Vec::new();
    for which in [Backend::Nft, Backend::Legacy] {
        match (backend, which) {
            (super::Backend::All, _)
            | (super::Backend::Nft, Backend::Nft)
            | (super::Backend::Legacy, Backend::Legacy) => {}
            _ => continue,
        }
        let more = Sandbox::new()?.run(|| -> Result<Vec<Record>, Error> {
            let compared = match (what, which) {
                (Benchmark::Restore, Backend::Nft) => restore_nft(services, rounds)?,
                (Benchmark::Restore, Backend::Legacy) => restore_legacy(services, rounds)?,
                (Benchmark::Save, Backend::Nft) => {
                    vec![save_nft(services, rounds)?]
                }
                (Benchmark::Save, Backend::Legacy) => {
                    vec![save_legacy(services, rounds)?]
                }
            };
            let mut records = Vec::new();
            for (number, mut comparison) in compared.into_iter().enumerate() {
                let mut not_installed = Vec::new();
                // The first measurement is about the whole table.
                if with_tools && number == 0 {
                    tools(what, which, services, &mut comparison, &mut not_installed)?;
                }
                records.push(record(comparison, services, rounds, not_installed));
            }
            Ok(records)
        })??;
        records.extend(more);
    }
    Ok(records)
}

/// Lets the real tool do the same once, on the existing table.
fn tools(
    what: Benchmark,
    backend: Backend,
    services: Services,
    comparison: &mut Comparison,
    not_installed: &mut Vec<&'static str>,
) -> Result<(), Error> {
    let Some(baseline) = comparison.contenders.first().cloned() else {
        return Ok(());
    };
    let lock = temporary("")?;
    let input = match what {
        Benchmark::Restore => temporary(&services.to_table())?,
        Benchmark::Save => temporary("")?,
    };
    let path = input.path().to_string_lossy().into_owned();
    let (file, table) = ([path.as_str()], ["-t", Services::TABLE]);
    let tool: Tool<'_> = match (what, backend) {
        (Benchmark::Restore, Backend::Nft) => ("iptables-nft-restore", &file),
        (Benchmark::Restore, Backend::Legacy) => ("iptables-legacy-restore", &file),
        (Benchmark::Save, Backend::Nft) => ("iptables-nft-save", &table),
        (Benchmark::Save, Backend::Legacy) => ("iptables-legacy-save", &table),
    };
    note(&format!(
        "{} processes {} rules once: this can take minutes",
        tool.0,
        services.rules()
    ));
    match run_once(&baseline, tool, lock.path())? {
        Some(measured) => comparison.contenders.push(measured),
        None => not_installed.push(tool.0),
    }
    Ok(())
}

fn record(
    comparison: Comparison,
    services: Services,
    rounds: usize,
    not_installed: Vec<&'static str>,
) -> Record {
    let without_tables = Record::new(comparison.measured, rounds);
    Record {
        chains: Some(services.chains()),
        rules: Some(services.rules()),
        notes: vec![format!("goal: {} times the baseline", comparison.goal)],
        contenders: comparison
            .contenders
            .into_iter()
            .map(ContenderRecord::from)
            .collect(),
        not_installed,
        ..without_tables
    }
}
