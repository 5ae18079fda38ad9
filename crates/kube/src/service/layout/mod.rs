//! The layouts of services in the kernel's tables.
//!
//! | layout | form | cost of a change |
//! |---|---|---|
//! | [flat](Layout::Flat) | elements of maps of data, with constant rules | proportional to the change |
//! | [nftables](Layout::Nftables) | kube-proxy's: a chain per service, a verdict map | the kernel validates all chains |
//! | [iptables](Layout::Iptables) | kube-proxy's: a chain per service, a chain per endpoint | reads the table |

pub(super) mod flat;
pub(super) mod iptables;
pub(super) mod nftables;
pub(super) mod shared_elements;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::config::Config;
use super::map::Map;
use super::names::PortName;
use super::resolve::ServicePort;
use chainwright::Error;
use chainwright::iptables::{Backend, Family};
use chainwright::nft::{Generation, Transaction};

/// The representation of services in the kernel's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Everything that grows with services is an element of a map or set of data.
    Flat,
    /// The layout of kube-proxy's nftables mode.
    Nftables,
    /// The layout of kube-proxy's iptables mode, in one of the backends.
    Iptables(Backend),
}

impl Layout {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Flat,
        Self::Nftables,
        Self::Iptables(Backend::Nft),
        Self::Iptables(Backend::Legacy),
    ];
}

/// The complete desired state of one family: every port of every service.
pub(super) type Ports = Map<PortName, Arc<ServicePort>>;

/// A port that changed.
#[derive(Debug, Clone)]
pub(super) struct PortChange {
    pub(super) name: PortName,
    /// Its state when the kernel was last updated; `None` if it did not exist.
    pub(super) before: Option<Arc<ServicePort>>,
    /// Its new state; `None` if it is removed.
    pub(super) after: Option<Arc<ServicePort>>,
}

/// Progress of a sync that takes several transactions, as the first one of many services may. Each committed part
/// already handles traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The family: families are synced one after the other.
    pub family: Family,
    /// Number of parts in the kernel: service ports; in the nftables layout also the elements that refer to them, which
    /// come last.
    pub completed: usize,
    /// Total number of parts.
    pub total: usize,
}

/// The callback for progress.
#[derive(Clone, Default)]
pub(super) struct Observer(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl Observer {
    pub(super) fn new(observe: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    pub(super) fn report(&self, family: Family, done: usize, all: usize) {
        if let Some(observe) = &self.0 {
            observe(Progress {
                family,
                completed: done,
                total: all,
            });
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = self.0.is_some();
        f.debug_tuple("Observer").field(&is_set).finish()
    }
}

/// The commits of one proxy, of all its families: if only these moved the generation, no other program changed a table.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnCommits(Arc<Mutex<Option<[Generation; 2]>>>);

impl OwnCommits {
    /// Records a commit that required the first generation and created the second.
    pub(super) fn note(&self, before: Generation, made: Generation) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *generations = match *generations {
            Some([first, last]) if last == before => Some([first, made]),
            _ => Some([before, made]),
        };
    }

    /// Returns the last generation that the proxy's own commits led to from this one.
    pub(super) fn latest(&self, since: Generation) -> Generation {
        let generations = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until = |last: Generation, from: Generation| last.number().wrapping_sub(from.number());
        match generations {
            Some([first, last]) if until(last, since) <= until(last, first) => last,
            _ => since,
        }
    }
}

/// Waits until the kernel has finished every packet that it is processing now.
fn wait_for_packets() {
    #[cfg(test)]
    WAITS.set(WAITS.get() + 1);
    chainwright::netns::wait_for_packets();
}

#[cfg(test)]
thread_local! {
    /// Number of waits.
    static WAITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The transactions of one change of a table. A packet makes several lookups in the table, and each one sees the state
/// of its moment. Elements are added no earlier than their targets, and targets are deleted in a later transaction. Before
/// each transaction but the first, it waits until the kernel has finished the packets that found the previous state.
#[derive(Debug)]
pub(super) struct StagedCommits {
    waits: bool,
    made: usize,
}

impl StagedCommits {
    /// Creates the state for one change; `waits` is false if transactions are only checked.
    pub(super) const fn new(waits: bool) -> Self {
        Self { waits, made: 0 }
    }

    /// Commits the next transaction, if it is not empty.
    pub(super) fn commit<E>(
        &mut self,
        tx: &mut Transaction,
        commit: impl FnOnce(&mut Transaction) -> Result<(), E>,
    ) -> Result<(), E> {
        match tx.is_empty() {
            true => Ok(()),
            false => self.step(|| commit(tx).map(|()| 1)),
        }
    }

    /// Runs a step of several transactions that need not wait for one another; `commit` returns their number.
    pub(super) fn step<E>(&mut self, commit: impl FnOnce() -> Result<usize, E>) -> Result<(), E> {
        if self.waits && self.made > 0 {
            wait_for_packets();
        }
        self.made += commit()?;
        Ok(())
    }

    /// Returns the number of transactions.
    pub(super) const fn made(&self) -> usize {
        self.made
    }
}

/// The inputs that all layouts share.
#[derive(Debug, Clone)]
pub(super) struct Common {
    /// The configuration of node and cluster.
    config: Arc<Config>,
    /// The observer of progress.
    observer: Observer,
    /// The proxy's commits, of this family and the others.
    commits: OwnCommits,
}

impl Common {
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            observer: Observer::default(),
            commits: OwnCommits::default(),
        }
    }
}

/// One family of one layout in one network namespace.
pub(super) trait FamilyLayout: fmt::Debug + Send {
    /// Brings the kernel from any state to the desired one, with the smallest change and without disturbing correct
    /// parts. Returns the number of transactions (0 if nothing had to change).
    fn full_sync(&mut self, ports: &Ports) -> Result<usize, Error>;

    /// Applies changes to a kernel that is as the last [`full_sync`](Self::full_sync) or `change` left it; `ports` is the
    /// desired state including the changes. If the kernel is not in that state, the implementation must run a full
    /// sync.
    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error>;

    /// Makes the kernel only check transactions from now on, or accept them again. Returns whether that is supported.
    /// Afterwards the kernel's state is unknown: the next call must be `full_sync`.
    fn set_check_only(&mut self, yes: bool) -> bool;

    /// Replaces the configuration. If more than the node's name and zone differ, the next call must be `full_sync`.
    fn set_config(&mut self, config: Arc<Config>) {
        self.common().config = config;
    }

    /// Reports progress to the observer while `full_sync` runs, if that takes several transactions.
    fn observe(&mut self, observer: Observer) {
        self.common().observer = observer;
    }

    /// Shares the record of commits with the proxy's other families.
    fn share(&mut self, commits: OwnCommits) {
        self.common().commits = commits;
    }

    /// Removes everything that the layout wrote to the kernel.
    fn remove(&mut self) -> Result<(), Error>;

    /// Returns the shared inputs.
    fn common(&mut self) -> &mut Common;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_follows_only_own_commits() {
        let at = Generation::for_test;
        let commits = OwnCommits::default();
        assert_eq!(commits.latest(at(7)), at(7));
        commits.note(at(7), at(8));
        commits.note(at(8), at(9));
        for since in [7, 8, 9] {
            assert_eq!(commits.latest(at(since)), at(9));
        }
        for since in [6, 10, 0] {
            assert_eq!(commits.latest(at(since)), at(since));
        }
        // Another program created 10.
        commits.note(at(10), at(11));
        for (since, latest) in [(8, 8), (9, 9), (10, 11), (11, 11)] {
            assert_eq!(commits.latest(at(since)), at(latest));
        }
        commits.note(at(u32::MAX - 1), at(u32::MAX));
        commits.note(at(u32::MAX), at(1));
        assert_eq!(commits.latest(at(u32::MAX - 1)), at(1));
        assert_eq!(commits.latest(at(2)), at(2));
    }
}
