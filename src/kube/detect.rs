//! Which backend a node's Kubernetes uses, as far as its tables tell.

use std::fmt;

use bstr::{BStr, BString};

use super::kubelet;
use crate::iptables::Family;
use crate::legacy::{self, Lookup, Status};
use crate::netlink;
use crate::nft::{self, Chain, Connection, List, Scope};

/// What the names of all chains of Kubernetes start with: `KUBE-IPTABLES-HINT`, `KUBE-SERVICES`, ….
const PREFIX: &[u8] = b"KUBE-";

/// The chain that kube-proxy watches.
pub(super) const PROXY_CANARY: &str = "KUBE-PROXY-CANARY";

/// Whether a chain of this name says that a kubelet or kube-proxy is at work in its backend: the hint, and the canaries that
/// they watch.
///
/// ```
/// use chainwright::kube::detect::is_of_an_agent;
///
/// assert!(is_of_an_agent("KUBE-IPTABLES-HINT".into()));
/// assert!(is_of_an_agent("KUBE-PROXY-CANARY".into()));
/// assert!(!is_of_an_agent("KUBE-SERVICES".into()));
/// ```
#[must_use]
pub fn is_of_an_agent(chain: &BStr) -> bool {
    [kubelet::HINT, kubelet::CANARY, PROXY_CANARY]
        .iter()
        .any(|name| chain == *name)
}

/// A chain of Kubernetes in a legacy table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyChain {
    /// Address family.
    pub family: Family,
    /// Table.
    pub table: String,
    /// Chain.
    pub chain: BString,
}

impl fmt::Display for LegacyChain {
    /// `ip mangle KUBE-IPTABLES-HINT`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = nft::Family::from(self.family);
        write!(f, "{family} {} {}", self.table, self.chain)
    }
}

/// Whether the node's Kubernetes uses the legacy tables.
#[derive(Debug)]
#[non_exhaustive]
pub enum LegacyUse {
    /// Nothing says so: there are chains of Kubernetes in nf_tables, or none in either.
    No,
    /// Chains of Kubernetes are in the legacy tables, and none in nf_tables. The first of each table.
    Only(Vec<LegacyChain>),
    /// The legacy tables could not be looked at, and there is none in nf_tables.
    Unknown(legacy::Error),
}

/// Looks in which backend there are chains of Kubernetes. Neither creates a table nor loads a module.
///
/// The hint `KUBE-IPTABLES-HINT` is made for others to read: in nf_tables of a node whose kubelet and
/// kube-proxy work with legacy tables it sends them to the wrong backend.
///
/// # Errors
/// Those of listing the chains of nf_tables.
pub fn legacy_use(nft: &mut Connection) -> Result<LegacyUse, netlink::Error> {
    for family in Family::ALL {
        // What was lost, or what a change ran across, is listed again.
        let mut chains = List::<Chain<'_>>::new(Scope::family(family.into()));
        chains.refresh(nft)?;
        if chains.iter().any(|chain| chain.name().starts_with(PREFIX)) {
            return Ok(LegacyUse::No);
        }
    }
    let mut all = Vec::new();
    for family in Family::ALL {
        match chains(family) {
            Ok(chains) => all.extend(chains),
            Err(error) => return Ok(LegacyUse::Unknown(error)),
        }
    }
    Ok(match all.is_empty() {
        true => LegacyUse::No,
        false => LegacyUse::Only(all),
    })
}

/// The first chain of Kubernetes in each legacy table of a family that is in use.
fn chains(family: Family) -> Result<Vec<LegacyChain>, legacy::Error> {
    let legacy = legacy::Family::from(family);
    let tables = match legacy::status(legacy)? {
        Status::InUse(tables) => tables,
        Status::NoPermission(access) => {
            return Err(legacy::Error::NoPermission {
                family: legacy,
                access,
            });
        }
        _ => return Ok(Vec::new()),
    };
    let connection = legacy::Connection::open(legacy)?;
    let mut found = Vec::new();
    for name in tables {
        let Lookup::InUse(table) = connection.read(name)? else {
            continue;
        };
        let chain = table
            .chains()
            .find(|chain| chain.name().starts_with(PREFIX));
        found.extend(chain.map(|chain| LegacyChain {
            family,
            table: name.to_string(),
            chain: chain.name().to_owned(),
        }));
    }
    Ok(found)
}
