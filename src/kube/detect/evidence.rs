//! What else there is of the node's components, counted.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use super::{Detection, Detector, LEGACY};
use crate::iptables::{Backend, Error, Family, builtins};
use crate::legacy::{self, Lookup, Status};
use crate::netlink;
use crate::nft::{self, Connection, ElementsOf, List, Scope, SnapshotOptions};

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
    /// How many rules are in them; 0 if these were not counted ([`Evidence::counts_rules`]).
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
    /// Whether rules were counted, too.
    pub counts_rules: bool,
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
    /// but for the elements of sets, and makes none. The calling thread is to be in the network namespace in which this was
    /// opened: which legacy tables are in use is told of the thread's.
    pub fn evidence(&mut self) -> Evidence {
        self.evidence_with(true)
    }

    /// The same, but it counts chains and no rules: of nf_tables it reads no more than the chains.
    pub fn evidence_of_chains(&mut self) -> Evidence {
        self.evidence_with(false)
    }

    fn evidence_with(&mut self, counts_rules: bool) -> Evidence {
        let mut evidence = Evidence {
            detection: self.look(),
            nft_loaded: nft::is_loaded(),
            legacy: LEGACY.map(legacy::status),
            counts_rules,
            owned: Vec::new(),
            uncounted: Vec::new(),
        };
        let counted = self.count_nft(counts_rules, &mut evidence.owned);
        let uncounted = counted.err().map(|error| (Backend::Nft, error));
        evidence.uncounted.extend(uncounted);
        for index in [0, 1] {
            let counted = self.count_legacy(index, counts_rules, &mut evidence.owned);
            let uncounted = counted.err().map(|error| (Backend::Legacy, error));
            evidence.uncounted.extend(uncounted);
        }
        evidence
    }

    /// Counts in nf_tables. Where they are not loaded there is nothing.
    fn count_nft(&mut self, counts_rules: bool, all: &mut Vec<Owned>) -> Result<(), Error> {
        let connection = match &mut self.nft {
            Some(connection) => connection,
            None => match Connection::open_to_look() {
                Ok(connection) => self.nft.insert(connection),
                Err(netlink::Error::NotLoaded) => return Ok(()),
                Err(error) => return Err(error.into()),
            },
        };
        for family in Family::ALL {
            let of = nft::Family::from(family);
            if !counts_rules {
                let mut chains = List::<nft::Chain<'_>>::new(Scope::family(of));
                chains.refresh(connection)?;
                let mut counts = BTreeMap::new();
                for chain in chains.iter().filter(|chain| is_of_iptables(chain.table())) {
                    let count = counts
                        .entry(chain.table())
                        .or_insert_with(|| Count::of(Backend::Nft, family, chain.table()));
                    count.add(chain.name(), 0);
                }
                let owned = counts.into_values().flat_map(|count| count.owned);
                all.extend(owned.flatten());
                continue;
            }
            let mut tables = Vec::new();
            let listed = connection.tables(Scope::family(of))?;
            listed.for_each(|table| tables.push(table.name().to_owned()))?;
            tables.sort();
            for table in tables {
                if !is_of_iptables(table.as_bstr()) {
                    continue;
                }
                let options = SnapshotOptions {
                    elements: ElementsOf::empty(),
                };
                let scope = Scope::table(of, table.as_bstr());
                let snapshot = connection.snapshot_with(scope, options)?;
                let mut count = Count::of(Backend::Nft, family, table.as_bstr());
                for chain in snapshot.tables().flat_map(|table| table.chains()) {
                    count.add(chain.chain().name(), chain.rules().len());
                }
                all.extend(count.owned.into_iter().flatten());
            }
        }
        Ok(())
    }

    /// Counts in the legacy tables of a family. Where there are none there is nothing.
    fn count_legacy(
        &mut self,
        index: usize,
        counts_rules: bool,
        all: &mut Vec<Owned>,
    ) -> Result<(), Error> {
        let opened;
        let connection = match &self.legacy[index] {
            Ok(connection) => connection,
            Err(_) => match legacy::Connection::open(LEGACY[index]) {
                Ok(connection) => {
                    opened = connection;
                    &opened
                }
                Err(legacy::Error::NotBuilt { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            },
        };
        let mut names = connection.tables()?;
        names.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
        for name in names {
            if let Lookup::InUse(table) = connection.read_into(name, &mut self.table)? {
                let name = table.name().as_bstr();
                let mut count = Count::of(Backend::Legacy, Family::ALL[index], name);
                for chain in table.chains() {
                    let rules = if counts_rules { chain.rule_count() } else { 0 };
                    count.add(chain.name(), rules);
                }
                all.extend(count.owned.into_iter().flatten());
            }
        }
        Ok(())
    }
}

/// Whether it is one of iptables' tables.
fn is_of_iptables(table: &BStr) -> bool {
    table.to_str().is_ok_and(|name| builtins(name).is_some())
}

/// The chains of a table, counted.
struct Count<'n> {
    backend: Backend,
    family: Family,
    table: &'n BStr,
    /// In the order of [`PREFIXES`].
    owned: [Option<Owned>; PREFIXES.len()],
}

impl<'n> Count<'n> {
    const fn of(backend: Backend, family: Family, table: &'n BStr) -> Self {
        Self {
            backend,
            family,
            table,
            owned: [const { None }; PREFIXES.len()],
        }
    }

    fn add(&mut self, chain: &BStr, rules: usize) {
        for (prefix, owned) in PREFIXES.into_iter().zip(&mut self.owned) {
            if !chain.starts_with(prefix.as_bytes()) {
                continue;
            }
            let owned = owned.get_or_insert_with(|| Owned {
                backend: self.backend,
                family: self.family,
                table: self.table.to_owned(),
                prefix,
                chains: 0,
                rules: 0,
                first: chain.to_owned(),
            });
            owned.chains += 1;
            owned.rules += rules;
        }
    }
}
