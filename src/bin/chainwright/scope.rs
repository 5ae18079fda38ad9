//! What verbs are narrowed to, and how they read it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bstr::BStr;
use chainwright::nft::{self, Connection, Filter, Snapshot, SnapshotError};
use clap::ValueEnum;

use crate::glob::Glob;
use crate::output::{Error, Exit, causes, note};

/// Which tables.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Scope {
    /// Only tables of this family
    #[arg(long, value_enum)]
    pub(crate) family: Option<Family>,

    /// Only the table with this name, or those with it in several families
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<OsString>,
}

/// A family, by the name that `nft` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum Family {
    Ip,
    Ip6,
    Inet,
    Arp,
    Bridge,
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

impl Scope {
    pub(crate) fn filter(&self) -> Filter<'_> {
        Filter {
            family: self.family.map_or(nft::Family::UNSPEC, Family::nft),
            table: self.table.as_ref().map(|name| name.as_bytes().into()),
            ..Filter::default()
        }
    }

    pub(crate) const fn is_narrowed(&self) -> bool {
        self.family.is_some() || self.table.is_some()
    }

    /// Reads what is in these tables; and if it could not be read as one whole of one generation,
    /// what to say of that.
    pub(crate) fn look(&self) -> Result<(Snapshot, Option<String>), Error> {
        let error = match Connection::open_to_look()?.snapshot(self.filter()) {
            Ok(snapshot) => return Ok((snapshot, None)),
            Err(SnapshotError::Netlink(error)) => return Err(error.into()),
            Err(error) => error,
        };
        let said = causes(&error);
        match error.into_snapshot() {
            Some(snapshot) => Ok((
                snapshot,
                Some(format!("{said}; what could be read is shown")),
            )),
            None => Err(Error::Other(said)),
        }
    }
}

/// How a verb ends that showed what it found: whether it could be read as one whole, and whether there
/// was any. `kind` is what was looked for, `narrowed` whether by a name or a pattern.
pub(crate) fn ended(
    kind: &str,
    found: bool,
    narrowed: bool,
    torn: Option<String>,
    json: bool,
) -> Exit {
    if let Some(torn) = torn {
        note(&torn);
        return Exit::Failed;
    }
    if found {
        return Exit::Done;
    }
    if !json {
        note(&match narrowed {
            true => format!("no such {kind}"),
            false => format!("nf_tables has no {kind}s in this network namespace"),
        });
    }
    Exit::Absent
}

/// Whether a name matches the pattern, if there is one.
pub(crate) fn admits(pattern: Option<&Glob>, name: &BStr) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(name))
}
