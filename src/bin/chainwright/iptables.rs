//! What the verbs of iptables' language share: whose tables, and in which backend.

use chainwright::iptables::{self, Iptables};
use chainwright::legacy::{self, Status};
use chainwright::netlink;
use chainwright::nft::{self, Connection, Filter};
use clap::ValueEnum;

use crate::output::{Error, note};

/// A backend, by the name that its tools have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// nf_tables, as iptables-nft
    Nft,
    /// the legacy x_tables, as iptables-legacy
    Legacy,
}

/// Whose tables.
#[derive(Debug, clap::Args)]
pub(crate) struct Whose {
    /// Tables of IPv4; this is the default
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,

    /// Tables of IPv6
    #[arg(short = '6', long)]
    ipv6: bool,

    /// Where the tables live. If the other one has tables in use as well, standard error says so:
    /// packets then go through both
    #[arg(long, value_enum, default_value_t = Backend::Nft)]
    pub(crate) backend: Backend,
}

impl Whose {
    pub(crate) const fn family(&self) -> iptables::Family {
        if self.ipv6 {
            iptables::Family::Ipv6
        } else {
            iptables::Family::Ipv4
        }
    }

    pub(crate) fn open(&self) -> Result<Iptables, Error> {
        Ok(match self.backend {
            Backend::Nft => Iptables::nft()?,
            Backend::Legacy => Iptables::legacy()?,
        })
    }

    /// As [`open`](Self::open), for who only looks: nothing is loaded for it.
    pub(crate) fn open_to_look(&self) -> Result<Iptables, Error> {
        if matches!(self.backend, Backend::Nft) && !nft::is_loaded() {
            return Err(netlink::Error::NotLoaded.into());
        }
        self.open()
    }

    /// What they are, in words.
    pub(crate) const fn describe(&self) -> &'static str {
        match (self.backend, self.ipv6) {
            (Backend::Nft, false) => "IPv4 tables in nf_tables",
            (Backend::Nft, true) => "IPv6 tables in nf_tables",
            (Backend::Legacy, false) => "legacy IPv4 tables",
            (Backend::Legacy, true) => "legacy IPv6 tables",
        }
    }

    /// Says on standard error which tables the other backend has in use. What cannot be looked at is
    /// not spoken of: it was not asked for.
    pub(crate) fn warn_of_the_other(&self) {
        let (tables, other) = match self.backend {
            Backend::Nft => (self.legacy_tables(), "legacy"),
            Backend::Legacy => (self.nft_tables(), "nft"),
        };
        if !tables.is_empty() {
            let family = match self.family() {
                iptables::Family::Ipv4 => "IPv4",
                iptables::Family::Ipv6 => "IPv6",
            };
            note(&format!(
                "warning: the other backend has {family} tables in use as well: {} (see --backend \
                 {other})",
                tables.join(", ")
            ));
        }
    }

    fn legacy_tables(&self) -> Vec<String> {
        let family = match self.family() {
            iptables::Family::Ipv4 => legacy::Family::Ipv4,
            iptables::Family::Ipv6 => legacy::Family::Ipv6,
        };
        match legacy::status(family) {
            Ok(Status::InUse(tables)) => tables.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    fn nft_tables(&self) -> Vec<String> {
        let mut tables = Vec::new();
        let listed = Connection::open_to_look().and_then(|mut nft| {
            let filter = Filter::family(nft::Family::from(self.family()));
            nft.tables(filter)?.for_each(|table| {
                let name = table.name().to_string();
                if iptables::builtins(&name).is_some() {
                    tables.push(name);
                }
            })
        });
        match listed {
            Ok(()) => tables,
            Err(_) => Vec::new(),
        }
    }
}
