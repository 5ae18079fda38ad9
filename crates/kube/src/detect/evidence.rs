//! Counts other chains and tables of the node's components.

use std::collections::{BTreeMap, HashSet};

use bstr::{BStr, BString, ByteSlice};

use super::{Detection, Detector, LEGACY};
use crate::service::{is_flat_table, is_own_nftables_table};
use chainwright::iptables::{Backend, Error, Family, builtins};
use chainwright::legacy::{self, Lookup, Status};
use chainwright::netlink;
use chainwright::nft::{self, Connection, ElementFilter, List, Scope, SnapshotOptions};

/// Prefixes of the names of chains that a node's components create.
pub const PREFIXES: [&str; 4] = ["KUBE-", "CNI-", "AZURE-NPM", "cali-"];

/// The chains with one prefix in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// The backend that has the table.
    pub backend: Backend,
    /// Address family.
    pub family: Family,
    /// Table.
    pub table: BString,
    /// One of [`PREFIXES`].
    pub prefix: &'static str,
    /// Number of chains with the prefix.
    pub chains: usize,
    /// Number of rules in them; 0 if rules were not counted ([`Evidence::counts_rules`]).
    pub rules: usize,
    /// The first of these chains, in the kernel's order.
    pub first: BString,
}

/// The program that created a table of services in nf_tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceTableKind {
    /// kube-proxy, in its nftables mode. Every table of kube-proxy's name counts unless something shows that this
    /// library made it.
    KubeProxy,
    /// This library's [nftables layout](crate::service::Layout::Nftables), recognized by a mark next to the table's
    /// comment, or by an owner, which a table of kube-proxy cannot have.
    Nftables,
    /// This library's [flat layout](crate::service::Layout::Flat).
    Flat,
}

impl ServiceTableKind {
    /// Returns the kind's name: `kube-proxy`, `nftables`, `flat`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KubeProxy => "kube-proxy",
            Self::Nftables => "nftables",
            Self::Flat => "flat",
        }
    }
}

/// A table of nf_tables that contains a node's services and none of iptables' chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceTable {
    /// Address family.
    pub family: Family,
    /// Table name.
    pub table: BString,
    /// The program that made the table.
    pub kind: ServiceTableKind,
}

/// The evidence for a verdict.
#[derive(Debug)]
pub struct Evidence {
    /// Hints and canaries.
    pub detection: Detection,
    /// Whether nf_tables is loaded.
    pub nft_loaded: bool,
    /// The state of the legacy tables, IPv4 and IPv6: whether they are built and which are in use.
    pub legacy: [Result<Status, legacy::Error>; 2],
    /// Whether rules were counted as well.
    pub counts_rules: bool,
    /// The chains of the node's components, by table.
    pub owned: Vec<Owned>,
    /// The tables of services in nf_tables.
    pub services: Vec<ServiceTable>,
    /// Backends, or families of a backend, that could not be read, with the errors. They may contain further chains of
    /// the node's components, and nf_tables may contain any tables of services.
    pub uncounted: Vec<(Backend, Error)>,
}

impl Evidence {
    /// Returns the chains with this prefix in this backend.
    pub fn of(&self, backend: Backend, prefix: &str) -> impl Iterator<Item = &Owned> {
        let of = move |owned: &&Owned| owned.backend == backend && owned.prefix == prefix;
        self.owned.iter().filter(of)
    }

    /// Returns `true` if Kubernetes' chains are in the legacy tables and not in nf_tables, so that a program that reads
    /// nf_tables does not see them. `false` if nf_tables could not be read.
    #[must_use]
    pub fn is_legacy_only(&self) -> bool {
        let any = |backend| self.of(backend, PREFIXES[0]).next().is_some();
        let mut uncounted = self.uncounted.iter();
        let is_known = !uncounted.any(|(backend, _)| *backend == Backend::Nft);
        any(Backend::Legacy) && is_known && !any(Backend::Nft)
    }
}

impl Detector {
    /// Counts chains of the node's components in all iptables tables. It reads the tables in use completely, except for
    /// the elements of sets, and creates none. The calling thread must be in the network namespace in which the
    /// detector was opened, because the list of legacy tables in use is that of the thread's namespace.
    pub fn evidence(&mut self) -> Evidence {
        self.evidence_with(true)
    }

    /// Like [`evidence`](Self::evidence), but counts chains and no rules: from nf_tables it reads only the chains.
    pub fn evidence_without_rules(&mut self) -> Evidence {
        self.evidence_with(false)
    }

    fn evidence_with(&mut self, counts_rules: bool) -> Evidence {
        let mut evidence = Evidence {
            detection: self.probe(),
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
        // An error that affects both families is reported once.
        let mut seen = HashSet::new();
        let uncounted = &mut evidence.uncounted;
        uncounted.retain(|(backend, error)| seen.insert((*backend, error.to_string())));
        evidence
    }

    /// Lists the tables of nf_tables that contain services: those of kube-proxy and of this library. The list is empty
    /// if nf_tables is not loaded.
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
            let kind = match is_own_nftables_table(&table) {
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

    /// Returns the nf_tables connection; `None` if nf_tables is not loaded.
    fn connection(&mut self) -> Result<Option<&mut Connection>, Error> {
        if self.nft.is_none() {
            self.nft = match Connection::open_if_loaded() {
                Ok(connection) => Some(connection),
                Err(netlink::Error::NotLoaded) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.nft.as_mut())
    }

    /// Counts in a family of nf_tables. Counts nothing if nf_tables is not loaded.
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
                elements: ElementFilter::empty(),
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

    /// Counts in the legacy tables of a family. Counts nothing if there are none.
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

/// Returns `true` if the table is one of iptables' tables.
fn is_of_iptables(table: &BStr) -> bool {
    table.to_str().is_ok_and(|name| builtins(name).is_some())
}

/// Counter of one table's chains.
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
