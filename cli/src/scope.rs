//! What verbs are narrowed to: the same options in each, and how they read it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use chainwright::nft::{self, Connection, Snapshot, SnapshotError};
use chainwright::{iptables, legacy};
use clap::ValueEnum;
use serde::Serialize;

use crate::glob::Glob;
use crate::output::{Error, Exit, Printable, causes, note};
use crate::progress::Progress;

/// Which tables.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Scope {
    #[command(flatten)]
    pub(crate) place: Selection,

    /// Only tables with this name
    #[arg(short, long, value_name = "NAME", help_heading = HEADING)]
    pub(crate) table: Option<OsString>,
}

/// Where tables are.
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
                     default all for chains, rules, sets and cleanup, and nft for everything else"
    )]
    backend: Option<Backend>,
}

/// The heading of these options in each verb's help.
const HEADING: &str = "Which tables";

/// A family, by the name that `nft` gives it.
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
    const fn nft(self) -> nft::Family {
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

/// Where tables live.
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

    /// The backends that are listed: both, if nothing is said.
    pub(crate) fn listed(&self) -> Backend {
        self.backend.unwrap_or(Backend::All)
    }

    /// The one backend that a text is of.
    pub(crate) fn one(&self) -> Result<iptables::Backend, Error> {
        self.one_for("a text is of one backend")
    }

    /// The same for something else that is in one: why, in words.
    pub(crate) fn one_for(&self, why: &str) -> Result<iptables::Backend, Error> {
        match self.backend {
            None | Some(Backend::Nft) => Ok(iptables::Backend::Nft),
            Some(Backend::Legacy) => Ok(iptables::Backend::Legacy),
            Some(Backend::All) => Err(Error::Other(format!(
                "{why}: --backend nft or --backend legacy"
            ))),
        }
    }

    /// The backends of iptables' tables: both, if nothing is said.
    pub(crate) fn iptables_backends(&self) -> &'static [iptables::Backend] {
        match self.listed() {
            Backend::Nft => &[iptables::Backend::Nft],
            Backend::Legacy => &[iptables::Backend::Legacy],
            Backend::All => &[iptables::Backend::Nft, iptables::Backend::Legacy],
        }
    }

    /// Refuses another backend than nf_tables, where there can be none: `why`.
    pub(crate) fn only_nft(&self, why: &str) -> Result<(), Error> {
        match self.backend {
            None | Some(Backend::Nft) => Ok(()),
            Some(Backend::Legacy | Backend::All) => Err(Error::Other(why.into())),
        }
    }

    /// The family of iptables' tables, if one was named.
    pub(crate) fn iptables(&self) -> Result<Option<iptables::Family>, Error> {
        match self.family() {
            None => Ok(None),
            Some(family) => match iptables::Family::try_from(family.nft()) {
                Ok(family) => Ok(Some(family)),
                Err(_) => Err(Error::Other(
                    "iptables' tables are of the families ip and ip6 only".into(),
                )),
            },
        }
    }

    /// The families of legacy tables.
    pub(crate) fn legacy(&self) -> Vec<legacy::Family> {
        match self.family() {
            None => legacy::Family::ALL.to_vec(),
            Some(family) => legacy::Family::try_from(family.nft()).into_iter().collect(),
        }
    }
}

impl Scope {
    /// The same place, and all tables there.
    pub(crate) fn of_all_tables(&self) -> Self {
        Self {
            place: self.place.clone(),
            table: None,
        }
    }

    /// Refuses what cannot be listed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.place.listed() == Backend::Legacy && self.place.legacy().is_empty() {
            return Err(Error::Other(
                "legacy tables have the families ip, ip6 and arp only".into(),
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

    /// Whether this is the name of a table that was asked for.
    pub(crate) fn admits_table(&self, name: &[u8]) -> bool {
        self.table().is_none_or(|wanted| wanted == name)
    }

    pub(crate) fn is_narrowed(&self) -> bool {
        self.place.family().is_some() || self.table.is_some()
    }

    /// Refuses another backend than nf_tables, which alone is kept in files.
    pub(crate) fn check_file(&self) -> Result<(), Error> {
        self.place.only_nft(
            "a backup is of nf_tables only; `chainwright save --backend legacy` writes the legacy tables as \
             a text",
        )
    }

    /// Reads a backup, or that part of it which is of these tables; `None`, and it is said, if it has nothing
    /// to do with them.
    pub(crate) fn load(&self, file: &Path) -> Result<Option<Snapshot>, Error> {
        self.check_file()?;
        let progress = Progress::new("reading the backup");
        let snapshot = Snapshot::load(file)?;
        drop(progress);
        if !self.is_narrowed() {
            return Ok(Some(snapshot));
        }
        let of = describe(snapshot.scope());
        let part = snapshot.narrowed(&self.filter());
        // A table that is not in it would be removed.
        let part = part.filter(|part| self.table.is_none() || part.tables().len() > 0);
        if part.is_none() {
            let file = file.to_string_lossy();
            note(&format!(
                "{} is a backup of {of}: no table found in it that matches",
                Printable(&file)
            ));
        }
        Ok(part)
    }

    /// Reads what is in these tables of nf_tables; and if it could not be read as one whole of one
    /// generation, what to say of that.
    pub(crate) fn look(&self) -> Result<(Snapshot, Option<String>), Error> {
        self.look_at(|nft, filter| nft.snapshot(filter))
    }

    /// The same of a part, which `read` reads.
    pub(crate) fn look_at<S: From<Snapshot>>(
        &self,
        read: impl FnOnce(&mut Connection, nft::Scope<'_>) -> Result<S, SnapshotError>,
    ) -> Result<(S, Option<String>), Error> {
        let error = match read(&mut Connection::open_to_look()?, self.filter()) {
            Ok(snapshot) => return Ok((snapshot, None)),
            Err(SnapshotError::Netlink(error)) => return Err(error.into()),
            Err(error) => error,
        };
        let said = causes(&error);
        match error.into_snapshot() {
            Some(snapshot) => Ok((
                snapshot.into(),
                Some(format!("{said}; what could be read is shown")),
            )),
            None => Err(Error::Other(said)),
        }
    }
}

/// What a backup is of, in words.
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

/// What could not be looked at.
#[derive(Serialize)]
pub(crate) struct NotLookedAt {
    pub(crate) backend: &'static str,
    /// Not there if it is about all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) family: Option<&'static str>,
    pub(crate) reason: String,
}

/// What a listing prints beside its rows.
#[derive(Default)]
pub(crate) struct Found {
    /// The requested tables that were not looked at, for JSON.
    pub(crate) not_looked_at: Vec<NotLookedAt>,
    /// Notes for people, on standard error.
    pub(crate) notes: Vec<String>,
    /// Whether not all of it could be looked at, or it is not of one generation.
    pub(crate) torn: bool,
    /// Whether there may be more where this process may not look.
    pub(crate) hidden: bool,
}

impl Found {
    /// Whether an answer about all rules may be wrong, as some of them were not looked at.
    pub(crate) const fn is_partial(&self) -> bool {
        self.torn || self.hidden
    }

    /// What `work` finds in nf_tables. A kernel that has none is no failure where both backends were asked
    /// for: one with the legacy tables only is a good one, too.
    pub(crate) fn nft<T>(
        &mut self,
        backend: Backend,
        work: impl FnOnce() -> Result<(T, Option<String>), Error>,
    ) -> Result<Option<T>, Error> {
        if backend == Backend::Legacy {
            return Ok(None);
        }
        match work() {
            Ok((found, torn)) => {
                self.torn |= torn.is_some();
                self.notes.extend(torn);
                Ok(Some(found))
            }
            Err(error) if backend == Backend::All && error.is_nft_not_built() => {
                let reason = causes(&error);
                self.notes
                    .push(format!("nf_tables not looked at: {reason}"));
                self.not_looked_at.push(NotLookedAt {
                    backend: "nft",
                    family: None,
                    reason,
                });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Tells people, and says how a verb ends that showed what it found: whether there was `any`, of which
    /// kind, and whether a name or a pattern was asked for. Programs read the exit code, and that there is
    /// nothing.
    pub(crate) fn end(
        self,
        any: bool,
        kind: &str,
        narrowed: bool,
        backend: Backend,
        json: bool,
    ) -> Exit {
        for said in &self.notes {
            note(said);
        }
        if self.torn || (!any && self.hidden) {
            return Exit::Failed;
        }
        if any {
            return Exit::Done;
        }
        if !json {
            note(&match (narrowed, backend) {
                (true, _) => format!("no {kind} found that matches"),
                (_, Backend::Nft) => format!("nf_tables has no {kind}s in this network namespace"),
                (_, Backend::Legacy) => {
                    "no legacy table is in use in this network namespace".into()
                }
                (_, Backend::All) => format!("there are no {kind}s in this network namespace"),
            });
        }
        Exit::Absent
    }
}

/// Whether a name matches the pattern, if there is one.
pub(crate) fn admits(pattern: Option<&Glob>, name: &BStr) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(name.as_bytes().as_bstr()))
}
