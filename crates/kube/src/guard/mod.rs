//! Guards chains and rules: restores those that disappear at once, and reports which process removed them.
//!
//! Kubelet and kube-proxy each watch one chain, the canary, and check for it once or twice a minute. They do not notice
//! when a program flushes the rules and leaves the chain, or restores a file without that table. A [`ChainGuard`] watches
//! all [declared](super::declared::Declared) chains, jumps and rules. nf_tables reports each change when it is
//! committed; for legacy tables the guard queries their size at [intervals](GuardOptions::poll), because the kernel
//! does not report their changes. Where netfilter is audited, the [audit log](ChainGuard::with_audit) reports those too.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sandbox = chainwright_testing::Sandbox::new()?;
//! # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use std::sync::mpsc;
//! use chainwright::iptables::{Backend, Family, Iptables};
//! use chainwright_kube::guard::{Event, ChainGuard, GuardOptions};
//! use chainwright_kube::kubelet::Kubelet;
//!
//! let (sender, notifications) = mpsc::channel();
//! let guard = ChainGuard::open(Kubelet::new().declared(), Backend::Nft, GuardOptions::default())?;
//! let running = guard.start(move |notification| { let _ = sender.send(notification); })?;
//! assert!(matches!(notifications.recv()?.event, Event::Ready { .. }));
//!
//! Iptables::nft()?.update(Family::Ipv4, "filter", |table| table.flush_all())?;
//! let Event::Repaired(repair) = notifications.recv()?.event else { panic!() };
//! assert_eq!(repair.items[0].to_string(), "ip filter: -A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment \
//!     --comment \"block incoming localnet connections\" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP");
//! println!("{} by {}", repair.items.len(), repair.by[0]);
//! running.stop();
//! # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
//! # Ok(())
//! # }
//! ```
//!
//! # When it acts
//! At first the guard creates all missing chains and rules, and retries until it succeeds. Later it restores items that
//! disappear at once, and checks again at the end of a burst: a `systemctl restart iptables` makes some twenty commits
//! and may remove the restored items again. If another program keeps removing them, the
//! guard stops after [some repairs](BackoffOptions::repairs): it reports that it backs off, and resumes later. When the
//! kernel dropped events it checks everything. [`Backoff`] makes these decisions, without a clock or a kernel.
//!
//! When idle it waits for nf_tables events without a deadline, and wakes for nothing else. Every change of the node's
//! tables wakes it; it examines only the names in the change.
//!
//! With the feature `metrics` it writes these counters to the recorder of the crate `metrics`:
//! `chainwright_guard_repairs_total`, `chainwright_guard_vanished_total`, `chainwright_guard_failures_total`,
//! `chainwright_guard_backed_off_total`, `chainwright_guard_lost_total`, and a histogram
//! `chainwright_guard_repair_seconds`.

mod attribution;
mod audit;
mod backoff;
mod metrics;
mod notification;
mod poll;
mod run;
#[cfg(feature = "tokio")]
mod task;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use bstr::{BStr, BString, ByteSlice};

use super::declared::{self, BackendMut, Declared};
use chainwright::Retry;
use chainwright::iptables::{Backend, Family, Iptables};
use chainwright::legacy::LockPolicy;
use chainwright::nft::live::{Change, EventObject, Item as MonitorItem, Monitor, MonitorOptions};
use chainwright::nft::{self, Connection};

pub use attribution::{Attribution, Parent};
pub use audit::AuditLog;
pub use backoff::{Backoff, BackoffOptions, Outcome};
pub use notification::{Event, Notification, Repair};
use poll::Poll;
pub use run::Running;

/// Largest number of events to read before a check.
const MAX_EVENTS_PER_TURN: usize = 4096;
/// Largest number of changes in a row whose processes are recorded.
const MAX_ATTRIBUTIONS: usize = 16;

/// The reason why a guard cannot run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tables cannot be opened.
    #[error(transparent)]
    Tables(#[from] declared::Error),
    /// A thread could not be started, or could not be stopped later.
    #[error("cannot start the guard's thread: {0}")]
    Thread(io::Error),
}

chainwright::debug_as_message!(Error);

/// Options of a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardOptions {
    /// Options for the times of checks and repairs.
    pub backoff: BackoffOptions,
    /// The interval at which to query the size and number of entries of legacy tables. It bounds the delay until a
    /// removal is noticed. A query takes some microseconds per table.
    pub poll: Duration,
    /// The number of polls after which legacy tables are read completely, which finds changes that keep size and number
    /// of entries.
    pub full_read_every: u32,
    /// Options of the monitor that receives changes of nf_tables.
    pub monitor: MonitorOptions,
    /// The retry policy of a repair while other programs change the tables.
    pub retry: Retry,
}

impl Default for GuardOptions {
    /// Polls legacy tables once a second, and reads them completely twice a minute.
    fn default() -> Self {
        Self {
            backoff: BackoffOptions::default(),
            poll: Duration::from_secs(1),
            full_read_every: 30,
            monitor: MonitorOptions {
                // Holds events that arrive during a repair; lost events lead to a check.
                receive_buffer: 8 << 20,
                ..MonitorOptions::default()
            },
            retry: Retry::DEFAULT,
        }
    }
}

/// Keeps declared chains and rules present.
///
/// It is opened in the calling thread's network namespace, and [runs](Self::start) in its own thread, or with the
/// feature `tokio` as a task (`ChainGuard::run`).
#[derive(Debug)]
pub struct ChainGuard {
    declared: Declared,
    names: GuardedChains,
    state: BackendState,
    backoff: Backoff,
    /// Whether everything was present at least once.
    is_ready: bool,
    /// The processes that changed guarded chains since everything was last present.
    by: Vec<Attribution>,
    /// Time of the first of those changes.
    since: Option<(Instant, SystemTime)>,
    /// The last failure that was reported.
    failure: Option<String>,
    /// Whether receiving events is suspended until the next check.
    is_receiving_suspended: bool,
    /// Whether all pending events have been read.
    #[cfg_attr(
        not(feature = "tokio"),
        allow(dead_code, reason = "a thread waits for the socket itself")
    )]
    has_read_all: bool,
}

#[derive(Debug)]
enum BackendState {
    Nft {
        connection: Box<Connection>,
        monitor: Box<Monitor>,
    },
    Legacy {
        iptables: Box<Iptables>,
        poll: Box<Poll>,
        audit: Option<Box<AuditLog>>,
        /// The network namespace, as `/proc` names it.
        namespace: Option<PathBuf>,
    },
}

impl ChainGuard {
    /// Opens the tables and starts listening.
    ///
    /// # Errors
    /// Those of opening the tables, and of listing legacy ones.
    pub fn open(
        declared: Declared,
        backend: Backend,
        options: GuardOptions,
    ) -> Result<Self, Error> {
        let now = Instant::now();
        let state = match backend {
            Backend::Nft => {
                let open = || {
                    let connection = Connection::open()?.with_retry(options.retry);
                    let monitor = options.monitor.open_in_namespace_of(&connection)?;
                    Ok((Box::new(connection), Box::new(monitor)))
                };
                let opened: Result<_, chainwright::netlink::Error> = open();
                let (connection, monitor) = opened.map_err(declared::Error::from)?;
                BackendState::Nft {
                    connection,
                    monitor,
                }
            }
            Backend::Legacy => {
                let iptables = Iptables::legacy().map_err(declared::Error::from)?;
                let mut iptables = iptables.with_retry(options.retry);
                for family in Family::ALL {
                    // A process that may not read the tables' names now will not be able to later either.
                    if declared.tables().iter().any(|(of, _)| *of == family) {
                        let names = iptables.tables_in_use(family);
                        names.map_err(declared::Error::from)?;
                    }
                }
                BackendState::Legacy {
                    iptables: Box::new(iptables),
                    poll: Box::new(Poll::new(&declared, &options, now)),
                    audit: None,
                    namespace: fs::read_link("/proc/thread-self/ns/net").ok(),
                }
            }
        };
        Ok(Self {
            names: GuardedChains::of(&declared),
            declared,
            state,
            backoff: Backoff::new(options.backoff, now),
            is_ready: false,
            by: Vec::new(),
            since: None,
            failure: None,
            is_receiving_suspended: false,
            has_read_all: false,
        })
    }

    /// Sets another lock for changes of legacy tables, like [`Iptables::with_lock`].
    #[must_use]
    pub fn with_lock(mut self, policy: LockPolicy, limit: Retry) -> Self {
        self.state = match self.state {
            BackendState::Legacy {
                iptables,
                poll,
                audit,
                namespace,
            } => BackendState::Legacy {
                iptables: Box::new(iptables.with_lock(policy, limit)),
                poll,
                audit,
                namespace,
            },
            nft => nft,
        };
        self
    }

    /// Adds the audit log, which reports when a legacy table is replaced, and by which process, where that is audited.
    /// The guard then polls the tables once no record has arrived for the [`burst_gap`](BackoffOptions::burst_gap), and still
    /// at intervals. Has no effect on nf_tables, where it is not needed.
    #[must_use]
    pub fn with_audit(mut self, log: AuditLog) -> Self {
        if let BackendState::Legacy { audit, .. } = &mut self.state {
            *audit = Some(Box::new(log));
        }
        self
    }

    /// Returns the backend that contains the tables.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        match self.state {
            BackendState::Nft { .. } => Backend::Nft,
            BackendState::Legacy { .. } => Backend::Legacy,
        }
    }

    /// Reads pending events, and checks if a check is due.
    fn process_pending(&mut self, on: &mut dyn FnMut(Notification)) {
        self.read_pending(on);
        if self.backoff.is_due(Instant::now()) {
            self.check(on);
        }
    }

    /// Returns the time at which the next turn is due if nothing happens before. Pending events keep the descriptor
    /// readable.
    fn deadline(&self) -> Option<Instant> {
        match (&self.state, self.backoff.deadline()) {
            (BackendState::Legacy { poll, .. }, Some(check)) => Some(check.min(poll.next())),
            (BackendState::Legacy { poll, .. }, None) => Some(poll.next()),
            (BackendState::Nft { .. }, check) => check,
        }
    }

    /// Returns the descriptor that becomes readable when something happens; `None` if there is no source of events.
    fn events(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            BackendState::Nft { monitor, .. } if !self.is_receiving_suspended => {
                Some(monitor.as_fd())
            }
            BackendState::Nft { .. } => None,
            BackendState::Legacy { audit, .. } => audit.as_ref().map(|log| log.as_fd()),
        }
    }

    fn read_pending(&mut self, on: &mut dyn FnMut(Notification)) {
        match &mut self.state {
            BackendState::Legacy { .. } => {
                // Before polling: the log shows which process changed the table.
                self.read_log();
                self.poll();
            }
            BackendState::Nft { .. } => self.read_events(on),
        }
    }

    fn poll(&mut self) {
        let now = Instant::now();
        if let BackendState::Legacy { poll, .. } = &mut self.state
            && poll.is_due(now)
            && poll.differs(now)
        {
            self.record_change(now);
        }
    }

    /// Reads audit records of replaced legacy tables.
    fn read_log(&mut self) {
        self.has_read_all = false;
        for _ in 0..MAX_EVENTS_PER_TURN {
            let BackendState::Legacy {
                audit,
                namespace,
                poll,
                ..
            } = &mut self.state
            else {
                return;
            };
            let next = audit
                .as_mut()
                .map(|log| log.try_receive(namespace.as_deref()));
            match next.unwrap_or(Ok(None)) {
                Ok(None) => {
                    self.has_read_all = true;
                    return;
                }
                Ok(Some(record)) if self.names.has(record.family, record.table.as_bstr()) => {
                    let now = Instant::now();
                    poll.report_change(now, self.backoff.options().burst_gap);
                    self.record_attribution(Attribution::of_record(&record), now);
                }
                Ok(Some(_)) => {}
                // Polling continues.
                Err(error) => {
                    tracing::warn!(%error, "cannot read the audit log any more: processes that replace legacy tables are not reported");
                    *audit = None;
                }
            }
        }
    }

    fn read_events(&mut self, on: &mut dyn FnMut(Notification)) {
        if self.is_receiving_suspended {
            return;
        }
        self.has_read_all = false;
        for _ in 0..MAX_EVENTS_PER_TURN {
            let BackendState::Nft {
                connection,
                monitor,
            } = &mut self.state
            else {
                return;
            };
            let now = Instant::now();
            match monitor.try_receive() {
                Ok(None) => {
                    self.has_read_all = true;
                    return;
                }
                Ok(Some(MonitorItem::Change(change))) => {
                    if change.port() != connection.port() && self.names.are_affected_by(&change) {
                        self.record_attribution(Attribution::of(&change), now);
                        self.record_change(now);
                    }
                }
                Ok(Some(MonitorItem::Lost(lost))) => {
                    metrics::lost();
                    let what = lost.to_string();
                    notify(on, Event::Lost { cause: what });
                    self.record_change(now);
                }
                Ok(Some(_)) => {}
                Err(error) => {
                    self.is_receiving_suspended = true;
                    self.backoff.record_check(now, Outcome::Failed);
                    self.fail(on, &error);
                    return;
                }
            }
        }
    }

    /// Records a process that changed guarded chains. Beyond the limit only the last one is replaced.
    fn record_attribution(&mut self, attribution: Attribution, now: Instant) {
        if self.by.len() == MAX_ATTRIBUTIONS {
            self.by.pop();
        }
        self.by.push(attribution);
        self.since.get_or_insert_with(|| (now, SystemTime::now()));
    }

    fn record_change(&mut self, now: Instant) {
        self.since.get_or_insert_with(|| (now, SystemTime::now()));
        self.backoff.changed(now);
    }

    /// Checks the guarded items, and restores missing ones if the backoff permits it.
    fn check(&mut self, on: &mut dyn FnMut(Notification)) {
        let start = Instant::now();
        self.is_receiving_suspended = false;
        let is_trailing = self.backoff.is_trailing();
        let may_repair = self.backoff.may_repair(start);
        if let BackendState::Legacy { poll, .. } = &mut self.state {
            poll.remember();
        }
        let through = match &mut self.state {
            BackendState::Nft { connection, .. } => BackendMut::Nft(connection),
            BackendState::Legacy { iptables, .. } => BackendMut::Legacy(iptables),
        };
        let done = match may_repair {
            true => self.declared.ensure(through),
            false => self.declared.check(through),
        };
        let end = Instant::now();
        let items = match done {
            Ok(items) => items,
            Err(error) => {
                self.backoff.record_check(end, Outcome::Failed);
                self.fail(on, &error);
                return;
            }
        };
        self.failure = None;
        let outcome = match (items.is_empty(), may_repair) {
            (true, _) => Outcome::Complete,
            (false, true) => Outcome::Repaired,
            (false, false) => Outcome::BackedOff,
        };
        self.backoff.record_check(end, outcome);
        let by = std::mem::take(&mut self.by);
        let (began, since) = self.since.take().unwrap_or((start, SystemTime::now()));
        match outcome {
            Outcome::BackedOff => {
                metrics::backed_off();
                let rest = self.backoff.options().backoff_time;
                let missing = items;
                notify(on, Event::BackedOff { missing, by, rest });
            }
            _ if !self.is_ready => {
                self.is_ready = true;
                self.forget_sizes_if(outcome == Outcome::Repaired);
                notify(on, Event::Ready { made: items });
            }
            Outcome::Repaired => {
                self.forget_sizes_if(true);
                let took = end.duration_since(began);
                metrics::repaired(items.len(), took);
                let repair = Repair {
                    items,
                    by,
                    since,
                    took,
                    trailing: is_trailing,
                };
                notify(on, Event::Repaired(repair));
            }
            Outcome::Complete | Outcome::Failed => {}
        }
    }

    /// Forgets the known sizes of legacy tables after the guard changed them.
    fn forget_sizes_if(&mut self, changed: bool) {
        if let BackendState::Legacy { poll, .. } = &mut self.state
            && changed
        {
            poll.clear();
        }
    }

    fn fail(&mut self, on: &mut dyn FnMut(Notification), error: &dyn std::error::Error) {
        metrics::failed();
        let error = error.to_string();
        if self.failure.as_ref() != Some(&error) {
            self.failure = Some(error.clone());
            let retry = self.backoff.pause();
            notify(on, Event::Failed { error, retry });
        }
    }
}

fn notify(on: &mut dyn FnMut(Notification), event: Event) {
    match event {
        Event::Ready { .. } | Event::Repaired(_) => tracing::info!(name = event.name(), "{event}"),
        _ => tracing::warn!(name = event.name(), "{event}"),
    }
    on(Notification {
        at: SystemTime::now(),
        event,
    });
}

/// The names of the guarded chains, as events contain them.
#[derive(Debug)]
struct GuardedChains {
    chains: HashMap<nft::Family, HashMap<BString, HashSet<BString>>>,
}

impl GuardedChains {
    fn of(declared: &Declared) -> Self {
        let mut chains: HashMap<_, HashMap<_, HashSet<_>>> = HashMap::new();
        for wanted in &declared.chains {
            let family = chains.entry(nft::Family::from(wanted.family));
            let table = family.or_default().entry(BString::from(&*wanted.table));
            table.or_default().insert(BString::from(&*wanted.chain));
        }
        Self { chains }
    }

    /// Returns `true` if this table contains guarded chains.
    fn has(&self, family: Family, table: &BStr) -> bool {
        let tables = self.chains.get(&nft::Family::from(family));
        tables.is_some_and(|tables| tables.contains_key(table))
    }

    /// Returns `true` if a change may have removed something guarded.
    fn are_affected_by(&self, change: &Change) -> bool {
        change.events().any(|event| {
            let tables = self.chains.get(&event.family());
            let Some(chains) = event.table().and_then(|name| tables?.get(name)) else {
                return false;
            };
            match event.object() {
                Ok(EventObject::Chain(chain)) => match event.is_deletion() {
                    true => chains.contains(chain.name()),
                    // It may be a guarded chain under a new name. An event of a built-in chain is a change of its
                    // policy.
                    false => chain.hook().is_none() && !chains.contains(chain.name()),
                },
                Ok(EventObject::Rule(rule)) => event.is_deletion() && chains.contains(rule.chain()),
                Ok(EventObject::Table(_)) | Err(_) => true,
                Ok(_) => false,
            }
        })
    }
}
