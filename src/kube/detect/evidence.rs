//! What else there is of the node's components, counted.

use bstr::BString;

use super::{Detection, Detector, LEGACY};
use crate::iptables::{Backend, Error, Family, Iptables};
use crate::legacy::{self, Status};
use crate::nft;

/// What the names of chains start with that the components of a node make.
pub const PREFIXES: [&str; 4] = ["KUBE-", "CNI-", "AZURE-NPM", "cali-"];

/// The chains of one prefix in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// Where the table is.
    pub backend: Backend,
    /// Address family.
    pub family: Family,
    /// Table.
    pub table: BString,
    /// One of [`PREFIXES`].
    pub prefix: &'static str,
    /// How many chains have it.
    pub chains: usize,
    /// How many rules are in them.
    pub rules: usize,
    /// The first of the chains, in the kernel's order.
    pub first: BString,
}

/// What speaks for a verdict.
#[derive(Debug)]
pub struct Evidence {
    /// Hints and canaries.
    pub detection: Detection,
    /// Whether nf_tables are loaded.
    pub nft_loaded: bool,
    /// What there is of the legacy tables, IPv4 and IPv6: whether they are built and which are in use.
    pub legacy: [Result<Status, legacy::Error>; 2],
    /// The chains of the node's components, by table.
    pub owned: Vec<Owned>,
    /// Why the chains of a backend could not be counted.
    pub uncounted: Vec<(Backend, Error)>,
}

impl Evidence {
    /// Those of this prefix in this backend.
    pub fn of(&self, backend: Backend, prefix: &str) -> impl Iterator<Item = &Owned> {
        let of = move |owned: &&Owned| owned.backend == backend && owned.prefix == prefix;
        self.owned.iter().filter(of)
    }

    /// Whether chains of Kubernetes are in the legacy tables, and none in nf_tables, so that nothing there looks into those.
    #[must_use]
    pub fn is_legacy_only(&self) -> bool {
        let any = |backend| self.of(backend, PREFIXES[0]).next().is_some();
        any(Backend::Legacy) && !any(Backend::Nft)
    }
}

impl Detector {
    /// Counts what there is of the node's components, in all tables of iptables'. It reads the tables that are in use whole,
    /// and makes none.
    pub fn evidence(&mut self) -> Evidence {
        let mut evidence = Evidence {
            detection: self.look(),
            nft_loaded: nft::is_loaded(),
            legacy: LEGACY.map(legacy::status),
            owned: Vec::new(),
            uncounted: Vec::new(),
        };
        for backend in [Backend::Nft, Backend::Legacy] {
            if backend == Backend::Nft && !evidence.nft_loaded {
                continue;
            }
            match count(backend, &mut evidence.owned) {
                Ok(()) => {}
                // There is nothing to be counted.
                Err(Error::Legacy(legacy::Error::NotBuilt { .. })) => {}
                Err(error) => evidence.uncounted.push((backend, error)),
            }
        }
        evidence
    }
}

fn count(backend: Backend, all: &mut Vec<Owned>) -> Result<(), Error> {
    let mut iptables = Iptables::open(backend)?;
    for family in Family::ALL {
        let tables = iptables.read(family, &[])?;
        for table in tables.iter() {
            for prefix in PREFIXES {
                let mut owned: Option<Owned> = None;
                for chain in table.chains() {
                    if !chain.name().starts_with(prefix.as_bytes()) {
                        continue;
                    }
                    let owned = owned.get_or_insert_with(|| Owned {
                        backend,
                        family,
                        table: table.name().to_owned(),
                        prefix,
                        chains: 0,
                        rules: 0,
                        first: chain.name().to_owned(),
                    });
                    owned.chains += 1;
                    owned.rules += chain.rule_count();
                }
                all.extend(owned);
            }
        }
    }
    Ok(())
}
