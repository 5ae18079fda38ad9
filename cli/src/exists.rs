//! `chainwright exists`: looks up chains by name.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bstr::BString;
use chainwright::iptables::Backend;
use chainwright::legacy;
use chainwright::nft::{ChainId, Connection};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::completions;
use crate::iptables::backend_word;
use crate::output::{Error, Exit, Output, Printable, Rows, name_text};
use crate::scope::{Family, Scope};

/// Look up chains by name, without a listing
///
/// The exit code is 0 if all chains exist, and 1 if one does not; then each missing chain is printed on its own line. A
/// missing permission is an error (2).
///
/// Looks up each chain of nf_tables with one request, in time independent of the number of chains and rules; before it
/// reports a chain as missing, it repeats the request until the ruleset does not change during the request. The kernel
/// has no such request for legacy tables: there it reads the table once. Creates no table and loads no module.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names of chains in the table of --table; the family is ip by default, the backend nft
    #[arg(value_name = "CHAIN", required = true, add = ArgValueCompleter::new(completions::chains))]
    chains: Vec<OsString>,

    #[command(flatten)]
    scope: Scope,
}

/// A chain in JSON.
#[derive(Serialize)]
struct Record<'a> {
    backend: &'static str,
    family: &'a str,
    table: Cow<'a, str>,
    chain: Cow<'a, str>,
    exists: bool,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let place = &args.scope.place;
    let backend = place.one_for("`exists` looks in one backend")?;
    args.scope.check()?;
    let Some(table) = &args.scope.table else {
        return Err(Error::Other(
            "`exists` looks in one table: use --table".into(),
        ));
    };
    let table = table.as_bytes();
    let family = place.family().unwrap_or(Family::Ip).nft();
    let family_name = family.to_string();
    let mut lookup = Lookup::open(backend, family, table)?;

    let mut out = Output::new();
    let mut rows = json.then(|| Rows::new("exists", "chains"));
    let mut all = true;
    let mut done = Ok(());
    for chain in &args.chains {
        let chain = chain.as_bytes();
        let exists = match lookup.exists(chain) {
            Ok(exists) => exists,
            Err(error) => {
                done = Err(error);
                break;
            }
        };
        all &= exists;
        let record = Record {
            backend: backend_word(backend),
            family: &family_name,
            table: name_text(table),
            chain: name_text(chain),
            exists,
        };
        match &mut rows {
            Some(rows) => rows.add(&mut out, &record)?,
            None if exists => {}
            None => {
                let (table, chain) = (Printable(&record.table), Printable(&record.chain));
                writeln!(out, "missing  {family_name} {table}: chain {chain}")?;
            }
        }
    }
    if let Some(rows) = rows {
        rows.end(&mut out, done.is_ok(), None::<(&str, ())>)?;
    }
    out.flush()?;
    done?;
    Ok(match all {
        true => Exit::Done,
        false => Exit::Absent,
    })
}

/// A table in which chains are looked up.
enum Lookup {
    Nft(Connection, chainwright::nft::Family, BString),
    /// The table; `None` if it is not in use.
    Legacy(Option<legacy::Table>),
}

impl Lookup {
    fn open(
        backend: Backend,
        family: chainwright::nft::Family,
        table: &[u8],
    ) -> Result<Self, Error> {
        Ok(match backend {
            Backend::Nft => Self::Nft(Connection::open_if_loaded()?, family, table.into()),
            Backend::Legacy => {
                let family = legacy::Family::try_from(family)
                    .map_err(|_| Error::Other("legacy tables have no such family".into()))?;
                let read = legacy::Connection::open(family)?.read(table)?;
                Self::Legacy(read.in_use())
            }
        })
    }

    fn exists(&mut self, chain: &[u8]) -> Result<bool, Error> {
        Ok(match self {
            Self::Nft(nft, family, table) => {
                nft.exists(&ChainId::new(*family, table.as_slice(), chain))?
            }
            Self::Legacy(table) => table.as_ref().is_some_and(|t| t.chain(chain).is_some()),
        })
    }
}
