//! Shared code of the verbs that use iptables' language: selecting tables, locks, and JSON records.

use std::borrow::Cow;
use std::time::Duration;

use chainwright::Retry;
use chainwright::iptables::text::{RestoreOptions, SaveOptions, ruleset};
use chainwright::iptables::{self, Counters, Entry, Iptables, Tables};
use chainwright::legacy::LockPolicy;
use chainwright::nft::{Scope, Snapshot};
use serde::Serialize;

use crate::output::{Error, causes, note};
use crate::scope::Selection;

/// Tables of one family in one backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSelection {
    pub(crate) family: iptables::Family,
    pub(crate) backend: iptables::Backend,
}

/// Returns the text of tables, without counters of rules; `None` if iptables cannot express a part of them.
pub(crate) fn saved_text(tables: &Tables) -> Result<Option<Vec<u8>>, Error> {
    let mut text = Vec::new();
    let omissions = tables.save(SaveOptions::default(), &mut text);
    let is_complete = omissions.map_err(Error::Output)?.is_complete();
    Ok(is_complete.then_some(text))
}

/// Returns the tables of a text: the same for both backends, and for each version of iptables.
pub(crate) fn snapshot_of_text(
    family: iptables::Family,
    text: &[u8],
    options: &RestoreOptions,
) -> Result<Snapshot, Error> {
    let read = ruleset(family, text, options);
    let read = read.map_err(|error| Error::Other(causes(&error)))?;
    Ok(read.to_snapshot(&Scope::all()))
}

impl TableSelection {
    /// Returns the selection; by default IPv4 in nf_tables.
    pub(crate) fn of(place: &Selection) -> Result<Self, Error> {
        Ok(Self {
            family: place.iptables()?.unwrap_or(iptables::Family::Ipv4),
            backend: place.one()?,
        })
    }

    pub(crate) fn open(self) -> Result<Iptables, Error> {
        Ok(Iptables::open(self.backend)?)
    }

    /// Like [`open`](Self::open), but for reading only: loads no module.
    pub(crate) fn open_if_loaded(self) -> Result<Iptables, Error> {
        Ok(Iptables::open_if_loaded(self.backend)?)
    }

    /// Describes the tables.
    pub(crate) const fn describe(self) -> &'static str {
        match (self.backend, self.family) {
            (iptables::Backend::Nft, iptables::Family::Ipv4) => "IPv4 tables in nf_tables",
            (iptables::Backend::Nft, iptables::Family::Ipv6) => "IPv6 tables in nf_tables",
            (iptables::Backend::Legacy, iptables::Family::Ipv4) => "legacy IPv4 tables",
            (iptables::Backend::Legacy, iptables::Family::Ipv6) => "legacy IPv6 tables",
        }
    }

    /// Prints on standard error the tables that the other backend has in use. Ignores tables that cannot be read,
    /// because they were not requested.
    pub(crate) fn warn_about_other_backend(self) {
        let (other, option) = match self.backend {
            iptables::Backend::Nft => (iptables::Backend::Legacy, "legacy"),
            iptables::Backend::Legacy => (iptables::Backend::Nft, "nft"),
        };
        let tables = iptables::tables_in_use(other, self.family).unwrap_or_default();
        if !tables.is_empty() {
            let family = self.family;
            note(&format!(
                "warning: the other backend also has {family} tables in use: {} (see --backend \
                 {option})",
                tables.join(", ")
            ));
        }
    }
}

/// Locking options for legacy tables.
#[derive(Debug, clap::Args)]
pub(crate) struct Locking {
    /// For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait
    #[arg(
        short,
        long,
        global = true,
        value_name = "SECONDS",
        default_value_t = 5
    )]
    wait: u64,

    /// For legacy tables: the lock. `standard` is the legacy tools' lock (the file in XTABLES_LOCKFILE, otherwise
    /// /run/xtables.lock); `none` is for a private network namespace; anything else is the path of a file
    #[arg(long, global = true, value_name = "none|standard|PATH", value_parser = lock, default_value = "standard")]
    lock: LockPolicy,
}

impl Locking {
    /// Returns the same tables with these locking options.
    pub(crate) fn of(&self, iptables: Iptables) -> Iptables {
        let (policy, wait) = self.policy();
        iptables.with_lock(policy, wait)
    }

    /// Returns how long to wait for the lock, in seconds.
    pub(crate) const fn seconds(&self) -> u64 {
        self.wait
    }

    /// Returns the lock, and how long to wait for it.
    pub(crate) fn policy(&self) -> (LockPolicy, Retry) {
        let wait = match self.wait {
            0 => Retry::ONCE,
            seconds => Retry::within(Duration::from_secs(seconds)),
        };
        (self.lock.clone(), wait)
    }
}

fn lock(text: &str) -> Result<LockPolicy, &'static str> {
    match text {
        "" => Err("expected `none`, `standard` or a file path"),
        "none" => Ok(LockPolicy::None),
        "standard" => Ok(LockPolicy::Standard),
        path => Ok(LockPolicy::Path(path.into())),
    }
}

/// Returns the name for `--backend`.
pub(crate) const fn backend_word(backend: iptables::Backend) -> &'static str {
    match backend {
        iptables::Backend::Nft => "nft",
        iptables::Backend::Legacy => "legacy",
    }
}

/// Returns nft's name.
pub(crate) fn family_word(family: iptables::Family) -> &'static str {
    let family = chainwright::nft::Family::from(family);
    family.name().unwrap_or_default()
}

/// A table in JSON.
#[derive(Serialize)]
pub(crate) struct TableRecord<'t> {
    pub(crate) table: Cow<'t, str>,
    pub(crate) chains: Vec<ChainRecord<'t>>,
}

/// A chain in JSON.
#[derive(Default, Serialize)]
pub(crate) struct ChainRecord<'t> {
    pub(crate) chain: Cow<'t, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<&'static str>,
    #[serde(flatten)]
    pub(crate) counters: Option<CountersRecord>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) foreign: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_expressible: Option<&'static str>,
    pub(crate) rules: Vec<RuleRecord>,
}

#[derive(Serialize)]
pub(crate) struct CountersRecord {
    packets: u64,
    bytes: u64,
}

/// A rule in JSON: in iptables' syntax, or the reason why iptables cannot express it.
#[derive(Serialize)]
pub(crate) struct RuleRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<usize>,
    #[serde(flatten)]
    counters: Option<CountersRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_expressible: Option<String>,
}

impl RuleRecord {
    pub(crate) fn of(entry: Result<Entry, String>) -> Self {
        let mut record = Self {
            number: None,
            counters: None,
            rule: None,
            not_expressible: None,
        };
        match entry {
            Ok(entry) => {
                record.counters = Some(entry.counters.into());
                record.rule = Some(entry.rule.to_string());
            }
            Err(why) => record.not_expressible = Some(why),
        }
        record
    }

    /// Returns the same record, with the rule's number in its chain.
    pub(crate) fn at(mut self, number: usize) -> Self {
        self.number = Some(number);
        self
    }
}

impl From<Counters> for CountersRecord {
    fn from(counters: Counters) -> Self {
        Self {
            packets: counters.packets,
            bytes: counters.bytes,
        }
    }
}
