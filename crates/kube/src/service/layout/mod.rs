//! How services stand in the kernel's tables.
//!
//! | layout | as | a change costs |
//! |---|---|---|
//! | [flat](Layout::Flat) | elements of maps of data, under rules that stay | as much as the change |
//! | [nftables](Layout::Nftables) | kube-proxy's: a chain a service, a verdict map | the kernel's look at all chains |
//! | [iptables](Layout::Iptables) | kube-proxy's: a chain a service, a chain an endpoint | a reading of the table |

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

/// How services stand in the kernel's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// All that grows with services is an element of a map or set of data.
    Flat,
    /// That of kube-proxy's nftables mode.
    Nftables,
    /// That of kube-proxy's iptables mode, in one of the backends.
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

/// What is desired of one family, whole: every port of every service.
pub(super) type Ports = Map<PortName, Arc<ServicePort>>;

/// A port that changed.
#[derive(Debug, Clone)]
pub(super) struct PortChange {
    pub(super) name: PortName,
    /// What it was when the kernel was last brought up to date; `None` if it was not there.
    pub(super) before: Option<Arc<ServicePort>>,
    /// What it is to be; `None` if it is to be no more.
    pub(super) after: Option<Arc<ServicePort>>,
}

/// How far a sync has come that takes several transactions, as the first one of many services may. What each of them
/// committed is good for traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The family: families follow one another.
    pub family: Family,
    /// How many parts are in the kernel: ports of services; in nftables' layout also the elements that lead to them, which
    /// come last.
    pub done: usize,
    /// How many there are to be.
    pub all: usize,
}

/// Who wants to know of progress.
#[derive(Clone, Default)]
pub(super) struct Observer(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl Observer {
    pub(super) fn new(observe: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    pub(super) fn tell(&self, family: Family, done: usize, all: usize) {
        if let Some(observe) = &self.0 {
            observe(Progress { family, done, all });
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_there = self.0.is_some();
        f.debug_tuple("Observer").field(&is_there).finish()
    }
}

/// The commits of one proxy, of all its families: where the generation moved by these alone, no table was changed by
/// others.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnCommits(Arc<Mutex<Option<[Generation; 2]>>>);

impl OwnCommits {
    /// A commit demanded the first generation and made the second.
    pub(super) fn note(&self, before: Generation, made: Generation) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = match *known {
            Some([first, last]) if last == before => Some([first, made]),
            _ => Some([before, made]),
        };
    }

    /// The last generation that the proxy's own commits led to from this one.
    pub(super) fn latest(&self, since: Generation) -> Generation {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until = |last: Generation, from: Generation| last.number().wrapping_sub(from.number());
        match known {
            Some([first, last]) if until(last, since) <= until(last, first) => last,
            _ => since,
        }
    }
}

/// Waits until the kernel has dealt with every packet that it is dealing with now.
fn wait_for_packets() {
    #[cfg(test)]
    WAITS.set(WAITS.get() + 1);
    chainwright::netns::wait_for_packets();
}

#[cfg(test)]
thread_local! {
    /// How often it was waited.
    static WAITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The transactions of one change of a table in which a packet makes several look-ups, each of which sees what is there by
/// then. What leads somewhere comes no earlier than where it leads to, and what was led to goes in a later transaction: each
/// but the first waits until the kernel has dealt with the packets that found what was there before.
#[derive(Debug)]
pub(super) struct InOrder {
    waits: bool,
    made: usize,
}

impl InOrder {
    /// `waits`: unless nothing is carried out.
    pub(super) const fn new(waits: bool) -> Self {
        Self { waits, made: 0 }
    }

    /// Commits the next transaction, if there is anything in it.
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

    /// The same of several transactions that need not wait for one another: `commit` returns how many.
    pub(super) fn step<E>(&mut self, commit: impl FnOnce() -> Result<usize, E>) -> Result<(), E> {
        if self.waits && self.made > 0 {
            wait_for_packets();
        }
        self.made += commit()?;
        Ok(())
    }

    /// How many there were.
    pub(super) const fn made(&self) -> usize {
        self.made
    }
}

/// What each layout is told.
#[derive(Debug, Clone)]
pub(super) struct Common {
    /// What is known of the node and the cluster.
    config: Arc<Config>,
    /// Who is told how far it has come.
    observer: Observer,
    /// What the proxy committed, this family and the others.
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
    /// Makes what is in the kernel what is desired, whatever is there: the smallest change, without disturbing what
    /// is right. Says how many transactions it took (0: all was there).
    fn adopt(&mut self, ports: &Ports) -> Result<usize, Error>;

    /// Brings changes to a kernel that is as the last [`adopt`](Self::adopt) or `change` left it; `ports` is what is
    /// desired, the changes included. If that turns out not to be so, it is to adopt.
    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error>;

    /// Has the kernel only look at what is brought to it from now on, or take it again; whether it can. After that
    /// nothing is known of what is there: next is to adopt.
    fn only_check(&mut self, yes: bool) -> bool;

    /// What is known of the node and the cluster is this from now on. If more of it is another than the node's name and zone,
    /// next is to adopt.
    fn set_config(&mut self, config: Arc<Config>) {
        self.common().config = config;
    }

    /// Has this one told of progress while it adopts, where that takes several transactions.
    fn observe(&mut self, observer: Observer) {
        self.common().observer = observer;
    }

    /// Has this one know of the commits of the proxy's other families, and those of this one.
    fn share(&mut self, commits: OwnCommits) {
        self.common().commits = commits;
    }

    /// Removes all that the layout put into the kernel.
    fn remove(&mut self) -> Result<(), Error>;

    /// What it was told.
    fn common(&mut self) -> &mut Common;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_commits_are_followed_and_those_of_others_are_not() {
        let at = Generation::of_test;
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
        // Somebody made 10.
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
