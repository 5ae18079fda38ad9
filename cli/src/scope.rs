//! The options of verbs that select tables.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};
use chainwright::nft::{self, Connection, Snapshot, SnapshotError};
use chainwright::{iptables, legacy};
use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::completions;
use crate::glob::Glob;
use crate::output::{Error, Exit, Printable, causes, note};

/// Selects tables.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Scope {
    #[command(flatten)]
    pub(crate) place: Selection,

    /// Only tables with this name
    #[arg(
        short,
        long,
        value_name = "NAME",
        help_heading = HEADING,
        add = ArgValueCompleter::new(completions::tables)
    )]
    pub(crate) table: Option<OsString>,
}

/// Selects families and backends.
#[derive(Debug, Default, Clone, clap::Args)]
pub(crate) struct Selection {
    /// Only IPv4: the same as --family ip
    #[arg(short = '4', long, global = true, conflicts_with_all = ["ipv6", "family"], help_heading = HEADING)]
    ipv4: bool,

    /// Only IPv6: the same as --family ip6
    #[arg(short = '6', long, global = true, conflicts_with = "family", help_heading = HEADING)]
    ipv6: bool,

    /// Only this family: ip, ip6, inet, arp, bridge, netdev
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FAMILY",
        hide_possible_values = true,
        help_heading = HEADING,
        long_help = "Only this family: ip, ip6, inet, arp, bridge or netdev; legacy tables have ip, ip6 and arp"
    )]
    family: Option<Family>,

    /// Only this backend: nft, legacy, or all
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "BACKEND",
        hide_possible_values = true,
        help_heading = HEADING,
        long_help = "Only this backend: nft (nf_tables), legacy (the x_tables of iptables-legacy), or all. By \
                     default all for verbs that only read, and for `delete`; nft for everything else"
    )]
    backend: Option<Backend>,
}

/// Help heading of these options.
const HEADING: &str = "Table selection";

/// A family, with the name that `nft` uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Family {
    /// IPv4
    Ip,
    /// IPv6
    Ip6,
    /// IPv4 and IPv6 (nf_tables)
    Inet,
    /// ARP
    Arp,
    /// bridges (nf_tables)
    Bridge,
    /// devices (nf_tables)
    Netdev,
}

impl Family {
    pub(crate) const fn nft(self) -> nft::Family {
        match self {
            Self::Ip => nft::Family::IP,
            Self::Ip6 => nft::Family::IP6,
            Self::Inet => nft::Family::INET,
            Self::Arp => nft::Family::ARP,
            Self::Bridge => nft::Family::BRIDGE,
            Self::Netdev => nft::Family::NETDEV,
        }
    }
}

/// Selects backends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// nf_tables, as iptables-nft
    Nft,
    /// the legacy x_tables, as iptables-legacy
    Legacy,
    /// both
    All,
}

impl Selection {
    pub(crate) fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::Ip),
            (_, true) => Some(Family::Ip6),
            _ => self.family,
        }
    }

    /// Returns the backends to list; both by default.
    pub(crate) fn listed(&self) -> Backend {
        self.backend.unwrap_or(Backend::All)
    }

    /// Returns `true` if the options select a backend.
    pub(crate) const fn is_backend_given(&self) -> bool {
        self.backend.is_some()
    }

    /// Returns the single backend of a text.
    pub(crate) fn one(&self) -> Result<iptables::Backend, Error> {
        self.one_for("a text contains the tables of one backend")
    }

    /// Returns the single backend; `why` is the error message if both are selected.
    pub(crate) fn one_for(&self, why: &str) -> Result<iptables::Backend, Error> {
        match self.backend {
            None | Some(Backend::Nft) => Ok(iptables::Backend::Nft),
            Some(Backend::Legacy) => Ok(iptables::Backend::Legacy),
            Some(Backend::All) => Err(Error::Other(format!(
                "{why}: use --backend nft or --backend legacy"
            ))),
        }
    }

    /// Returns the backends of iptables' tables; both by default.
    pub(crate) fn iptables_backends(&self) -> &'static [iptables::Backend] {
        match self.listed() {
            Backend::Nft => &[iptables::Backend::Nft],
            Backend::Legacy => &[iptables::Backend::Legacy],
            Backend::All => &[iptables::Backend::Nft, iptables::Backend::Legacy],
        }
    }

    /// Rejects backends other than nf_tables, with the error message `why`.
    pub(crate) fn only_nft(&self, why: &str) -> Result<(), Error> {
        match self.backend {
            None | Some(Backend::Nft) => Ok(()),
            Some(Backend::Legacy | Backend::All) => Err(Error::Other(why.into())),
        }
    }

    /// Returns the selected family of iptables' tables.
    pub(crate) fn iptables(&self) -> Result<Option<iptables::Family>, Error> {
        match self.family() {
            None => Ok(None),
            Some(family) => match iptables::Family::try_from(family.nft()) {
                Ok(family) => Ok(Some(family)),
                Err(_) => Err(Error::Other(
                    "iptables only has tables of the families ip and ip6".into(),
                )),
            },
        }
    }

    /// Returns the selected families of legacy tables.
    pub(crate) fn legacy(&self) -> Vec<legacy::Family> {
        match self.family() {
            None => legacy::Family::ALL.to_vec(),
            Some(family) => legacy::Family::try_from(family.nft()).into_iter().collect(),
        }
    }
}

impl Scope {
    /// Selects all tables of these families and backends.
    pub(crate) const fn of(place: Selection) -> Self {
        Self { place, table: None }
    }

    /// Returns the same selection, for all tables.
    pub(crate) fn of_all_tables(&self) -> Self {
        Self::of(self.place.clone())
    }

    /// Rejects families that the legacy tables do not have, if only these are selected.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.place.listed() == Backend::Legacy && self.place.legacy().is_empty() {
            return Err(Error::Other(
                "legacy tables only exist in the families ip, ip6 and arp".into(),
            ));
        }
        Ok(())
    }

    pub(crate) fn filter(&self) -> nft::Scope<'_> {
        nft::Scope {
            family: self.place.family().map_or(nft::Family::UNSPEC, Family::nft),
            table: self.table().map(Into::into),
        }
    }

    fn table(&self) -> Option<&[u8]> {
        self.table.as_ref().map(|name| name.as_bytes())
    }

    /// Returns `true` if a table of this name is selected.
    pub(crate) fn admits_table(&self, name: &[u8]) -> bool {
        self.table().is_none_or(|wanted| wanted == name)
    }

    pub(crate) fn is_filtered(&self) -> bool {
        self.place.family().is_some() || self.table.is_some()
    }

    /// Rejects backends other than nf_tables: backups contain no legacy tables.
    pub(crate) fn check_file(&self) -> Result<(), Error> {
        self.place.only_nft(
            "snapshots only support nf_tables; `chainwright get ruleset -o iptables --backend legacy` prints the \
             legacy tables as text",
        )
    }

    /// Returns the selected part of a file's ruleset. Returns `None`, and prints a note, if it has no such part.
    pub(crate) fn part_of(&self, snapshot: Snapshot, file: &str) -> Option<Snapshot> {
        if !self.is_filtered() {
            return Some(snapshot);
        }
        let of = describe(snapshot.scope());
        let part = snapshot.filtered(&self.filter());
        // A table that is missing in the file would be removed.
        let part = part.filter(|part| self.table.is_none() || part.tables().len() > 0);
        if part.is_none() {
            note(&format!(
                "{} contains {of}: no matching table found in it",
                Printable(file)
            ));
        }
        part
    }

    /// Reads the selected tables of nf_tables; also returns a note if they could not be read in one generation.
    pub(crate) fn read_selected(&self) -> Result<(Snapshot, Option<String>), Error> {
        self.read_or_note(|nft, filter| nft.snapshot(filter))
    }

    /// Reads a part of the selected tables with `read`; otherwise like `read_selected`.
    pub(crate) fn read_or_note<S: From<Snapshot>>(
        &self,
        read: impl FnOnce(&mut Connection, nft::Scope<'_>) -> Result<S, SnapshotError>,
    ) -> Result<(S, Option<String>), Error> {
        let error = match read(&mut Connection::open_if_loaded()?, self.filter()) {
            Ok(snapshot) => return Ok((snapshot, None)),
            Err(SnapshotError::Netlink(error)) => return Err(error.into()),
            Err(error) => error,
        };
        let error_text = causes(&error);
        match error.into_snapshot() {
            Some(snapshot) => Ok((
                snapshot.into(),
                Some(format!("{error_text}; showing what could be read")),
            )),
            None => Err(Error::Other(error_text)),
        }
    }
}

/// Describes the contents of a backup.
pub(crate) fn describe(filter: &nft::Scope<'_>) -> String {
    let family = match filter.family {
        nft::Family::UNSPEC => "all families".to_owned(),
        family => format!("family {family}"),
    };
    match filter.table.as_ref().map(|name| name.to_str_lossy()) {
        Some(table) => format!("table {} of {family}", Printable(&table)),
        None if filter.family == nft::Family::UNSPEC => "the whole ruleset".to_owned(),
        None => family,
    }
}

/// A part of the tables that could not be read.
#[derive(Serialize)]
pub(crate) struct UnreadPart {
    pub(crate) backend: &'static str,
    /// Omitted if it applies to all families.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) family: Option<&'static str>,
    pub(crate) reason: String,
}

/// Formats the part and the reason: `legacy, ip6: permission denied`.
impl fmt::Display for UnreadPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.backend)?;
        if let Some(family) = self.family {
            write!(f, ", {family}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// The result of a listing, apart from its rows.
#[derive(Default)]
pub(crate) struct Found {
    /// The selected tables that could not be read, for JSON.
    pub(crate) not_read: Vec<UnreadPart>,
    /// Notes for users, on standard error.
    pub(crate) notes: Vec<String>,
    /// Whether a part could not be read, or the parts are of different generations.
    pub(crate) is_inconsistent: bool,
    /// Whether the process lacks permission to read some tables.
    pub(crate) permission_denied: bool,
}

impl Found {
    /// Returns `true` if a result about all rules may be wrong, because some were not read.
    pub(crate) const fn is_partial(&self) -> bool {
        self.is_inconsistent || self.permission_denied
    }

    /// Runs `work`, which reads nf_tables. If both backends are selected, a kernel without nf_tables is no error: it
    /// may have only the legacy tables.
    pub(crate) fn nft<T>(
        &mut self,
        backend: Backend,
        work: impl FnOnce() -> Result<(T, Option<String>), Error>,
    ) -> Result<Option<T>, Error> {
        if backend == Backend::Legacy {
            return Ok(None);
        }
        match work() {
            Ok((found, is_inconsistent)) => {
                self.is_inconsistent |= is_inconsistent.is_some();
                self.notes.extend(is_inconsistent);
                Ok(Some(found))
            }
            Err(error) if backend == Backend::All && error.is_nft_not_built() => {
                let reason = causes(&error);
                self.notes.push(format!("nf_tables not examined: {reason}"));
                self.not_read.push(UnreadPart {
                    backend: "nft",
                    family: None,
                    reason,
                });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Prints the notes, and returns the exit code of a listing. `any` is whether it found something, `kind` names the
    /// listed objects, and `filtered` is whether tables or names were selected. Without `json`, also prints a note if
    /// nothing was found.
    pub(crate) fn end(
        self,
        any: bool,
        kind: &str,
        filtered: bool,
        backend: Backend,
        json: bool,
    ) -> Exit {
        for text in &self.notes {
            note(text);
        }
        if self.is_inconsistent || (!any && self.permission_denied) {
            return Exit::Failed;
        }
        if any {
            return Exit::Done;
        }
        if !json {
            note(&match (filtered, backend) {
                (true, _) => format!("no matching {kind} found"),
                (_, Backend::Nft) => format!("nf_tables has no {kind}s in this network namespace"),
                (_, Backend::Legacy) => {
                    "no legacy table is in use in this network namespace".into()
                }
                (_, Backend::All) => format!("no {kind}s in this network namespace"),
            });
        }
        Exit::Absent
    }
}

/// Returns `true` if a name matches the pattern; always true without a pattern.
pub(crate) fn admits(pattern: Option<&Glob>, name: &BStr) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(name))
}
