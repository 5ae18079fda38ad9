//! The kernel's time alone.

use std::hint::black_box;

use crate::BoxError;
use crate::Cluster;
use crate::baseline::{Baseline, Request};
use chainwright::Retry;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{self, Backend, Iptables};
use chainwright::legacy::{self, LockPolicy, Replacement, TableEditor};
use chainwright::nft::{self, Connection, Scope, Transaction};
use chainwright_kube::service::Layout;
use chainwright_testing::Sandbox;

/// The data that a layout commits in a cold start.
#[derive(Debug)]
pub(super) enum CommitBaseline {
    Datagrams(Baseline, Vec<Vec<u8>>),
    /// Legacy tables, which replace the same tables in their own namespace.
    Tables {
        connection: legacy::Connection,
        replacements: Vec<Replacement>,
        bytes: usize,
        _namespace: Sandbox,
    },
}

impl CommitBaseline {
    /// Reads the calling thread's network namespace; legacy tables are created again in another one.
    pub(super) fn of(cluster: Cluster, layout: Layout) -> Result<Self, BoxError> {
        if layout != Layout::Iptables(Backend::Legacy) {
            let parts = Cluster::as_datagrams(layout)?;
            return Ok(Self::Datagrams(Baseline::open()?, parts));
        }
        let namespace = Sandbox::new()?;
        let (connection, tables) = namespace.run(|| -> Result<_, BoxError> {
            Cluster::load(&mut cluster.services(), layout, false)?;
            let connection = legacy::Connection::open(legacy::Family::Ipv4)?;
            let mut tables = Vec::new();
            for name in legacy_tables()? {
                let mut table = legacy::Table::empty(legacy::Family::Ipv4);
                connection.instantiate_and_read_into(&name, &mut table)?;
                tables.push(table);
            }
            Ok((connection, tables))
        })??;
        let replacements = tables.iter().map(|table| TableEditor::of(table).finish());
        Ok(Self::Tables {
            connection,
            replacements: replacements
                .collect::<Result<_, _>>()
                .map_err(iptables::Error::from)?,
            bytes: tables.iter().map(|table| table.entries().len()).sum(),
            _namespace: namespace,
        })
    }

    /// Returns the number of bytes and of parts.
    pub(super) fn size(&self) -> (usize, usize) {
        match self {
            Self::Datagrams(_, parts) => (parts.iter().map(Vec::len).sum(), parts.len()),
            Self::Tables {
                replacements,
                bytes,
                ..
            } => (*bytes, replacements.len()),
        }
    }

    pub(super) fn commit(&mut self) -> Result<(), BoxError> {
        match self {
            Self::Datagrams(baseline, parts) => {
                Ok(parts.iter().try_for_each(|part| baseline.commit(part))?)
            }
            Self::Tables {
                connection,
                replacements,
                ..
            } => Ok(replacements
                .iter_mut()
                .try_for_each(|table| connection.replace_baseline(table))?),
        }
    }
}

fn legacy_tables() -> Result<Vec<String>, BoxError> {
    Ok(iptables::tables_in_use(
        Backend::Legacy,
        iptables::Family::Ipv4,
    )?)
}

/// The calling thread's network namespace, to be emptied of rules.
#[derive(Debug)]
pub(super) enum RulesetCleaner {
    Nft(Connection, Transaction),
    Legacy(Iptables, String),
}

impl RulesetCleaner {
    pub(super) fn new(layout: Layout) -> Result<Self, BoxError> {
        if layout != Layout::Iptables(Backend::Legacy) {
            let mut empty = Transaction::new();
            empty.flush_ruleset(nft::Family::UNSPEC)?;
            return Ok(Self::Nft(Connection::open()?, empty));
        }
        let tables = legacy_tables()?.into_iter();
        let text = tables.map(|table| format!("*{table}\nCOMMIT\n")).collect();
        let iptables = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
        Ok(Self::Legacy(iptables, text))
    }

    pub(super) fn empty(&mut self) -> Result<(), BoxError> {
        match self {
            Self::Nft(connection, empty) => Ok(connection.commit(empty)?),
            Self::Legacy(iptables, text) => {
                let options = RestoreOptions::default();
                iptables.restore(iptables::Family::Ipv4, &*text, &options)?;
                Ok(())
            }
        }
    }
}

/// The data that a start must read.
#[derive(Debug)]
pub(super) enum ListingBaseline {
    /// The elements of the flat layout.
    Elements(Baseline, Vec<Request>),
    /// The other layouts in nf_tables.
    Ruleset(Connection),
    Tables(legacy::Connection, Vec<String>, legacy::Table),
}

impl ListingBaseline {
    pub(super) fn new(layout: Layout) -> Result<Self, BoxError> {
        Ok(match layout {
            Layout::Flat => {
                let (family, table) = Cluster::table();
                let sets = Cluster::SETS.map(|set| Request::elements(family, table, set));
                Self::Elements(Baseline::open()?, sets.into())
            }
            Layout::Nftables | Layout::Iptables(Backend::Nft) => Self::Ruleset(Connection::open()?),
            Layout::Iptables(Backend::Legacy) => Self::Tables(
                legacy::Connection::open(legacy::Family::Ipv4)?,
                legacy_tables()?,
                legacy::Table::empty(legacy::Family::Ipv4),
            ),
            other => unreachable!("no baseline for {other:?}"),
        })
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Elements(..) => "baseline: the elements, discarded",
            Self::Ruleset(_) => "baseline: a snapshot of the ruleset",
            Self::Tables(..) => "baseline: GET_INFO and GET_ENTRIES",
        }
    }

    pub(super) fn list(&mut self) -> Result<(), BoxError> {
        match self {
            Self::Elements(baseline, sets) => {
                black_box(baseline.dump_each(&*sets)?);
            }
            Self::Ruleset(connection) => {
                black_box(connection.snapshot(Scope::all())?);
            }
            Self::Tables(connection, names, buffer) => {
                for name in names {
                    black_box(connection.baseline(&*name, buffer)?);
                }
            }
        }
        Ok(())
    }
}
