//! Detects which iptables backend a node's Kubernetes components use.
//!
//! A kubelet creates the hint `KUBE-IPTABLES-HINT` and its canary in the `mangle` table of the backend that its
//! iptables uses, so that other programs find it: iptables-wrappers, Calico and azure-npm look for these two. A
//! [`Detector`] looks them up by name, in both backends and both families; it creates no table and loads no module.
//! Chains of kube-proxy do not count, because kube-proxy itself followed the hint, or a default where there was none.
//!
//! ```
//! # fn main() -> Result<(), chainwright_kube::Error> {
//! # chainwright_testing::Sandbox::new()?.run(|| {
//! use chainwright_kube::detect::{Detector, DetectedBackend};
//! use chainwright_kube::kubelet::Kubelet;
//! use chainwright::nft::Connection;
//!
//! let mut detector = Detector::open();
//! assert_eq!(detector.probe().detected_backend(), DetectedBackend::Undetermined);
//! Kubelet::new().ensure(&mut Connection::open()?)?;
//! assert_eq!(detector.probe().detected_backend(), DetectedBackend::Nft);
//! # Ok::<(), chainwright_kube::Error>(()) })?
//! # }
//! ```

mod evidence;
mod watch;

use std::fmt;

use bstr::BStr;

use super::kubelet;
use chainwright::iptables::{Backend, Family};
use chainwright::legacy::{self, Lookup, Table};
use chainwright::netlink;
use chainwright::nft::{self, Connection};

pub use evidence::{Evidence, Owned, PREFIXES, ServiceTable, ServiceTableKind};
pub use watch::{Watch, WatchOptions};

/// The table that contains the hint.
const MANGLE: &str = "mangle";

/// The chain that kube-proxy watches.
pub(super) const PROXY_CANARY: &str = "KUBE-PROXY-CANARY";

/// Returns `true` if a chain of this name shows that a kubelet or kube-proxy uses its backend: the hint, and the
/// canaries that they watch.
///
/// ```
/// use chainwright_kube::detect::is_agent_chain;
///
/// assert!(is_agent_chain("KUBE-IPTABLES-HINT".into()));
/// assert!(is_agent_chain("KUBE-PROXY-CANARY".into()));
/// assert!(!is_agent_chain("KUBE-SERVICES".into()));
/// ```
#[must_use]
pub fn is_agent_chain(chain: &BStr) -> bool {
    [kubelet::HINT, kubelet::CANARY, PROXY_CANARY]
        .iter()
        .any(|name| chain == *name)
}

/// The backend that the node's components use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DetectedBackend {
    /// nf_tables: it has a hint or canary, and the legacy tables have neither.
    Nft,
    /// The legacy tables: they have a hint or canary, and nf_tables has neither.
    Legacy,
    /// Both have a hint or a canary: components that look for them may have chosen different backends.
    Mixed,
    /// Neither has one: kubelet has not initialized, or its chains were flushed.
    Undetermined,
    /// Unknown: a backend could not be read, or the kernel has neither.
    Unavailable,
}

impl DetectedBackend {
    /// Returns the backend, if there is exactly one.
    #[must_use]
    pub const fn backend(self) -> Option<Backend> {
        match self {
            Self::Nft => Some(Backend::Nft),
            Self::Legacy => Some(Backend::Legacy),
            _ => None,
        }
    }

    /// Returns the name: `nft`, `legacy`, `mixed`, `undetermined`, `unavailable`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nft => "nft",
            Self::Legacy => "legacy",
            Self::Mixed => "mixed",
            Self::Undetermined => "undetermined",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for DetectedBackend {
    /// Formats the verdict as [`name`](Self::name) does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The presence of the two chains in a family's `mangle` table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// [`HINT`](super::kubelet::HINT)
    pub hint: bool,
    /// [`CANARY`](super::kubelet::CANARY)
    pub canary: bool,
}

impl Marks {
    /// Returns `true` if at least one of them exists.
    #[must_use]
    pub const fn any(self) -> bool {
        self.hint || self.canary
    }
}

/// The result of reading one family of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeResult {
    /// The chains that were found.
    Marks(Marks),
    /// The kernel does not have this backend: it is not built, or its module is not loaded.
    Absent,
    /// Reading failed, for this reason.
    Failed(String),
}

impl ProbeResult {
    /// Returns the chains that were found; neither if reading failed or the backend is absent.
    #[must_use]
    pub fn marks(&self) -> Marks {
        match self {
            Self::Marks(marks) => *marks,
            _ => Marks::default(),
        }
    }
}

/// The state at one moment, by backend and family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// In nf_tables, IPv4 and IPv6.
    pub nft: [ProbeResult; 2],
    /// In the legacy tables, IPv4 and IPv6.
    pub legacy: [ProbeResult; 2],
}

impl Detection {
    /// Returns the detected backend. A backend that could not be read is never treated as empty.
    #[must_use]
    pub fn detected_backend(&self) -> DetectedBackend {
        let all = || self.nft.iter().chain(&self.legacy);
        let any = |results: &[ProbeResult; 2]| results.iter().any(|probe| probe.marks().any());
        match (any(&self.nft), any(&self.legacy)) {
            (true, true) => DetectedBackend::Mixed,
            _ if all().any(|probe| matches!(probe, ProbeResult::Failed(_))) => {
                DetectedBackend::Unavailable
            }
            (true, false) => DetectedBackend::Nft,
            (false, true) => DetectedBackend::Legacy,
            _ if all().all(|probe| *probe == ProbeResult::Absent) => DetectedBackend::Unavailable,
            (false, false) => DetectedBackend::Undetermined,
        }
    }

    /// Returns the results of a backend, by family.
    #[must_use]
    pub const fn of(&self, backend: Backend) -> &[ProbeResult; 2] {
        match backend {
            Backend::Nft => &self.nft,
            Backend::Legacy => &self.legacy,
        }
    }
}

/// Looks for the hint and canary in the network namespace in which it was opened.
///
/// A look costs four requests to nf_tables, however many chains there are, and a read of the legacy `mangle` table if
/// that table is in use.
#[derive(Debug)]
pub struct Detector {
    /// The nf_tables connection; `None` while nf_tables is not loaded.
    nft: Option<Connection>,
    /// For each family, the connection to its legacy tables, or the error from opening it.
    legacy: [Result<legacy::Connection, legacy::Error>; 2],
    /// Buffer for reading legacy tables.
    table: Table,
}

impl Detector {
    /// Opens a detector for the calling thread's network namespace. Opening cannot fail: [`probe`](Self::probe) reports
    /// errors.
    #[must_use]
    pub fn open() -> Self {
        Self {
            nft: None,
            legacy: LEGACY.map(legacy::Connection::open),
            table: Table::empty(legacy::Family::Ipv4),
        }
    }

    /// Reads the current state.
    pub fn probe(&mut self) -> Detection {
        Detection {
            nft: self.probe_nft(),
            legacy: [self.probe_legacy(0), self.probe_legacy(1)],
        }
    }

    fn probe_nft(&mut self) -> [ProbeResult; 2] {
        let connection = match &mut self.nft {
            Some(connection) => connection,
            None => match Connection::open_if_loaded() {
                Ok(connection) => self.nft.insert(connection),
                Err(error) => return [(); 2].map(|()| of_nft(&error)),
            },
        };
        Family::ALL.map(|family| match marks_of_nft(connection, family) {
            Ok(marks) => ProbeResult::Marks(marks),
            Err(error) => of_nft(&error),
        })
    }

    fn probe_legacy(&mut self, index: usize) -> ProbeResult {
        let connection = &mut self.legacy[index];
        if connection.is_err() {
            // The module may have been loaded meanwhile.
            *connection = legacy::Connection::open(LEGACY[index]);
        }
        let connection = match connection {
            Ok(connection) => connection,
            Err(error) => return of_legacy(error),
        };
        match connection.read_into(MANGLE, &mut self.table) {
            Ok(Lookup::InUse(table)) => ProbeResult::Marks(marks_of_legacy(table)),
            Ok(Lookup::NotInUse) => ProbeResult::Marks(Marks::default()),
            Err(error) => of_legacy(&error),
        }
    }
}

/// The legacy families in the order of [`Family::ALL`].
const LEGACY: [legacy::Family; 2] = [legacy::Family::Ipv4, legacy::Family::Ipv6];

fn marks_of_nft(connection: &mut Connection, family: Family) -> Result<Marks, netlink::Error> {
    let family = nft::Family::from(family);
    Ok(Marks {
        hint: connection.chain_exists(family, MANGLE, kubelet::HINT)?,
        canary: connection.chain_exists(family, MANGLE, kubelet::CANARY)?,
    })
}

fn marks_of_legacy(table: &Table) -> Marks {
    let mut marks = Marks::default();
    for chain in table.chains() {
        marks.hint |= chain.name() == kubelet::HINT;
        marks.canary |= chain.name() == kubelet::CANARY;
    }
    marks
}

fn of_nft(error: &netlink::Error) -> ProbeResult {
    match error {
        netlink::Error::NotLoaded => ProbeResult::Absent,
        error => ProbeResult::Failed(error.to_string()),
    }
}

fn of_legacy(error: &legacy::Error) -> ProbeResult {
    match error {
        legacy::Error::NotBuilt { .. } => ProbeResult::Absent,
        error => ProbeResult::Failed(error.to_string()),
    }
}

/// Returns whether a family of a backend has the hint, in the calling thread's network namespace.
pub(super) fn has_hint(backend: Backend, family: Family) -> Result<bool, chainwright::Error> {
    match backend {
        Backend::Nft => match Connection::open_if_loaded() {
            Ok(mut connection) => Ok(marks_of_nft(&mut connection, family)?.hint),
            Err(netlink::Error::NotLoaded) => Ok(false),
            Err(error) => Err(error.into()),
        },
        Backend::Legacy => match legacy::Connection::open(family.into()) {
            Ok(connection) => Ok(match connection.read(MANGLE)? {
                Lookup::InUse(table) => marks_of_legacy(&table).hint,
                Lookup::NotInUse => false,
            }),
            Err(legacy::Error::NotBuilt { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: ProbeResult = ProbeResult::Marks(Marks {
        hint: false,
        canary: false,
    });
    const HINT: ProbeResult = ProbeResult::Marks(Marks {
        hint: true,
        canary: false,
    });

    fn denied() -> ProbeResult {
        ProbeResult::Failed("denied".into())
    }

    /// States that this machine's kernel cannot be brought into: a missing backend, and one that cannot be read.
    #[test]
    fn unreadable_backends_do_not_count_as_empty() {
        for (nft, legacy, verdict) in [
            (
                [HINT, NONE],
                [ProbeResult::Absent, ProbeResult::Absent],
                DetectedBackend::Nft,
            ),
            (
                [NONE, NONE],
                [ProbeResult::Absent, ProbeResult::Absent],
                DetectedBackend::Undetermined,
            ),
            (
                [ProbeResult::Absent, ProbeResult::Absent],
                [NONE, HINT],
                DetectedBackend::Legacy,
            ),
            (
                [ProbeResult::Absent, ProbeResult::Absent],
                [NONE, ProbeResult::Absent],
                DetectedBackend::Undetermined,
            ),
            (
                [ProbeResult::Absent, ProbeResult::Absent],
                [ProbeResult::Absent, ProbeResult::Absent],
                DetectedBackend::Unavailable,
            ),
            (
                [denied(), denied()],
                [denied(), denied()],
                DetectedBackend::Unavailable,
            ),
            ([HINT, NONE], [denied(), NONE], DetectedBackend::Unavailable),
            (
                [denied(), denied()],
                [HINT, HINT],
                DetectedBackend::Unavailable,
            ),
            // Both have it, whatever else was found.
            ([HINT, denied()], [HINT, NONE], DetectedBackend::Mixed),
            ([HINT, NONE], [NONE, HINT], DetectedBackend::Mixed),
        ] {
            let detection = Detection { nft, legacy };
            assert_eq!(detection.detected_backend(), verdict, "{detection:?}");
        }
    }

    /// `nft` does not count as empty where it could not be read.
    #[test]
    fn legacy_requires_readable_nf_tables() {
        let owned = |backend| Owned {
            backend,
            family: Family::Ipv4,
            table: "nat".into(),
            prefix: PREFIXES[0],
            chains: 1,
            rules: 0,
            first: "KUBE-SERVICES".into(),
        };
        let (nft, old) = (Backend::Nft, Backend::Legacy);
        for (chains, uncounted, expected) in [
            (&[][..], &[][..], false),
            (&[old], &[], true),
            (&[nft], &[], false),
            (&[nft, old], &[], false),
            (&[old], &[nft], false),
            (&[old], &[old, nft], false),
            // One legacy family could not be read.
            (&[old], &[old], true),
        ] {
            let evidence = Evidence {
                detection: Detection {
                    nft: [NONE, NONE],
                    legacy: [NONE, NONE],
                },
                nft_loaded: true,
                counts_rules: true,
                legacy: LEGACY.map(|_| Ok(legacy::Status::NotInUse)),
                owned: chains.iter().map(|&backend| owned(backend)).collect(),
                services: Vec::new(),
                uncounted: uncounted
                    .iter()
                    .map(|&backend| (backend, netlink::Error::NotLoaded.into()))
                    .collect(),
            };
            assert_eq!(evidence.is_legacy_only(), expected, "{evidence:?}");
        }
    }
}
