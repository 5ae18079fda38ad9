//! What else there is of the node's components, counted.

use std::collections::{BTreeMap, HashSet};

use bstr::{BStr, BString, ByteSlice};

use super::{Detection, Detector, LEGACY};
use crate::service::{is_flat_table, whose_nftables};
use chainwright::iptables::{Backend, Error, Family, builtins};
use chainwright::legacy::{self, Lookup, Status};
use chainwright::netlink;
use chainwright::nft::{self, Connection, ElementsOf, List, Scope, SnapshotOptions};

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

/// Whose a table of services in nf_tables is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceTableKind {
    /// kube-proxy's, in its nftables mode. So counts every table of its name that nothing says of that this library made it.
    KubeProxy,
    /// Of this library's [nftables layout](crate::service::Layout::Nftables), by what stands beside the table's
    /// comment, or by an owner, which kube-proxy cannot be.
    Nftables,
    /// Of this library's [flat layout](crate::service::Layout::Flat).
    Flat,
}

impl ServiceTableKind {
    /// Its name: `kube-proxy`, `nftables`, `flat`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KubeProxy => "kube-proxy",
            Self::Nftables => "nftables",
            Self::Flat => "flat",
        }
    }
}

/// A table of nf_tables that has a node's services and none of iptables' chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceTable {
    /// Address family.
    pub family: Family,
    /// Its name.
    pub table: BString,
    /// Whose it is.
    pub kind: ServiceTableKind,
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
    /// The tables of services in nf_tables.
    pub services: Vec<ServiceTable>,
    /// Which backends, or families of them, could not be looked at, and why: any chains of a node's components may be there,
    /// and in nf_tables any tables of services.
    pub uncounted: Vec<(Backend, Error)>,
}

impl Evidence {
    /// Those of this prefix in this backend.
    pub fn of(&self, backend: Backend, prefix: &str) -> impl Iterator<Item = &Owned> {
        let of = move |owned: &&Owned| owned.backend == backend && owned.prefix == prefix;
        self.owned.iter().filter(of)
    }

    /// Whether chains of Kubernetes are in the legacy tables, and none in nf_tables, so that nothing there looks into those.
    /// Where nf_tables could not be looked at that is not known, and it is `false`.
    #[must_use]
    pub fn is_legacy_only(&self) -> bool {
        let any = |backend| self.of(backend, PREFIXES[0]).next().is_some();
        let mut uncounted = self.uncounted.iter();
        let is_known = !uncounted.any(|(backend, _)| *backend == Backend::Nft);
        any(Backend::Legacy) && is_known && !any(Backend::Nft)
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
            services: Vec::new(),
            uncounted: Vec::new(),
        };
        for family in Family::ALL {
            let counted = self.count_nft(family, counts_rules, &mut evidence.owned);
            let services = counted.and_then(|()| self.service_tables_of(family));
            match services {
                Ok(services) => evidence.services.extend(services),
                Err(error) => evidence.uncounted.push((Backend::Nft, error)),
            }
        }
        for index in [0, 1] {
            let counted = self.count_legacy(index, counts_rules, &mut evidence.owned);
            let uncounted = counted.err().map(|error| (Backend::Legacy, error));
            evidence.uncounted.extend(uncounted);
        }
        // What stands in the way of both families is said once.
        let mut seen = HashSet::new();
        let uncounted = &mut evidence.uncounted;
        uncounted.retain(|(backend, error)| seen.insert((*backend, error.to_string())));
        evidence
    }

    /// The tables of nf_tables that have services: kube-proxy's, and those of this library. Where nf_tables are not loaded
    /// there are none.
    ///
    /// # Errors
    /// Those of listing tables.
    pub fn service_tables(&mut self) -> Result<Vec<ServiceTable>, Error> {
        let mut all = Vec::new();
        for family in Family::ALL {
            all.extend(self.service_tables_of(family)?);
        }
        Ok(all)
    }

    fn service_tables_of(&mut self, family: Family) -> Result<Vec<ServiceTable>, Error> {
        let Some(connection) = self.connection()? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        let listed = connection.tables(Scope::family(family.into()))?;
        listed.for_each(|table| {
            let kind = match whose_nftables(&table) {
                Some(true) => Some(ServiceTableKind::Nftables),
                Some(false) => Some(ServiceTableKind::KubeProxy),
                None => is_flat_table(table.name()).then_some(ServiceTableKind::Flat),
            };
            all.extend(kind.map(|kind| ServiceTable {
                family,
                table: table.name().to_owned(),
                kind,
            }));
        })?;
        Ok(all)
    }

    /// The way to nf_tables; none where they are not loaded.
    fn connection(&mut self) -> Result<Option<&mut Connection>, Error> {
        if self.nft.is_none() {
            self.nft = match Connection::open_to_look() {
                Ok(connection) => Some(connection),
                Err(netlink::Error::NotLoaded) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.nft.as_mut())
    }

    /// Counts in a family of nf_tables. Where they are not loaded there is nothing.
    fn count_nft(
        &mut self,
        family: Family,
        counts_rules: bool,
        all: &mut Vec<Owned>,
    ) -> Result<(), Error> {
        let Some(connection) = self.connection()? else {
            return Ok(());
        };
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
            return Ok(());
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
