//! A snapshot that events keep current.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::assembler::{Item, Lost, precedes};
use super::change::{Change, Event, EventObject};
use super::monitor::{Monitor, MonitorOptions};
use super::replay::RereadPart;
use crate::netlink::{self, Loss, Malformed};
use crate::nft::change_detector::{MemberKey, TouchedObjects};
use crate::nft::generation::Generation;
use crate::nft::snapshot::{Applied, DesiredPositions, TableKey, scope_of};
use crate::nft::{
    Connection, Name, Plan, PlanOptions, Scope, Snapshot, SnapshotError, SnapshotOptions,
};
use crate::retry::impl_retry;

/// Maximum number of items per update, so that an update ends even if writers never pause.
pub(super) const MAX_ITEMS: usize = 1024;
/// Maximum number of items until all tables and chains that were read separately reach one generation.
const CATCH_UP_ITEMS: usize = 64 * MAX_ITEMS;
/// Maximum number of touched chains and sets before everything is compared again.
const MAX_TOUCHED: usize = 4096;
/// Maximum size in bytes of the keys of touched elements before all elements of their set are compared again.
const MAX_ELEMENT_KEY_BYTES: usize = 4 << 20;
/// Maximum time to wait for events of a transaction that is already committed.
const MAX_EVENT_DELAY: Duration = Duration::from_secs(1);

/// A change that a [`Mirror`] applied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// A transaction was committed. Its tables may be outside of the mirror's scope.
    Change(Change),
    /// Changes were lost, and the mirror read everything again: anything may have changed.
    Reread(Lost),
}

/// Options of a [`Mirror`].
///
/// ```no_run
/// # fn main() -> Result<(), chainwright::Error> {
/// use chainwright::nft::live::Mirror;
/// use chainwright::nft::{Connection, ElementFilter, Scope, SnapshotOptions};
///
/// // Omits the elements that rules add and delete: this program does not need them.
/// let options = SnapshotOptions { elements: ElementFilter::all() - ElementFilter::DYNAMIC };
/// let mirror = Mirror::open_with(Connection::open()?, &Scope::all(), options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorOptions {
    /// Options of the monitor.
    pub monitor: MonitorOptions,
    /// The parts of the tables to keep. Events of elements that are left out are ignored.
    pub snapshot: SnapshotOptions,
}

impl From<MonitorOptions> for MirrorOptions {
    fn from(monitor: MonitorOptions) -> Self {
        Self {
            monitor,
            ..Self::default()
        }
    }
}

impl From<SnapshotOptions> for MirrorOptions {
    fn from(snapshot: SnapshotOptions) -> Self {
        Self {
            snapshot,
            ..Self::default()
        }
    }
}

/// A copy of the ruleset, or of one family or table, that the kernel's events keep current.
///
/// It reads the ruleset once; then each [`update`](Self::update) applies the changes committed since, in time
/// proportional to the changes and not to the ruleset. Queries of [`snapshot`](Self::snapshot) between updates need no
/// system call and see one generation. After a loss of events the mirror reads everything again and reports it
/// ([`Update::Reread`]).
///
/// ```
/// # fn main() -> Result<(), chainwright::Error> {
/// # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
/// use chainwright::nft::live::{Mirror, Update};
/// use chainwright::nft::{Chain, Connection, Family, Scope, Table, Transaction};
///
/// let mut mirror = Mirror::open(Connection::open()?, &Scope::all())?;
///
/// // Another program creates a chain.
/// let mut tx = Transaction::new();
/// tx.add(&Table::new(Family::IP, "nat"))?;
/// tx.add(&Chain::new(Family::IP, "nat", "KUBE-SERVICES"))?;
/// Connection::open()?.commit(&tx)?;
///
/// for update in mirror.update()? {
///     match update {
///         Update::Change(change) => println!("{} by {:?}", change.generation(), change.thread_name()),
///         Update::Reread(lost) => println!("{lost}"),
///         _ => {}
///     }
/// }
/// assert!(mirror.snapshot().chain(Family::IP, "nat", "KUBE-SERVICES").is_some());
/// # Ok::<(), chainwright::Error>(()) })??;
/// # Ok(())
/// # }
/// ```
///
/// # Recognizing own changes
///
/// Changes committed over the mirror's own [`connection`](Self::connection) also arrive with the next update: they have
/// that connection's [port](Connection::port), and changes of others don't.
///
/// ```
/// # fn main() -> Result<(), chainwright::Error> {
/// # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
/// use chainwright::nft::live::{Mirror, Update};
/// use chainwright::nft::{Connection, Family, Scope, Table, Transaction};
///
/// let mut mirror = Mirror::open(Connection::open()?, &Scope::all())?;
/// let mut tx = Transaction::new();
/// tx.add(&Table::new(Family::IP, "mine"))?;
/// let committed = mirror.connection().commit_echo(&tx)?;
///
/// let own = mirror.connection().port();
/// for update in mirror.update()? {
///     match update {
///         Update::Change(change) if change.port() == own => assert!(committed.matches(&change)),
///         other => println!("to be looked at: {other:?}"),
///     }
/// }
/// # Ok::<(), chainwright::Error>(()) })??;
/// # Ok(())
/// # }
/// ```
///
/// # What it does not show
///
/// State without events is as of the last read or event of the object:
///
/// - changes that [don't move the generation](crate::nft::Refreshed::SameGeneration): counters and other state,
///   elements that rules add or that time out;
/// - numbers that the kernel counts: [`ChainRef::references`](crate::nft::ChainRef::references),
///   [`TableRef::references`](crate::nft::TableRef::references), [`SetRef::count`](crate::nft::SetRef::count);
/// - that a [persistent](crate::nft::TableFlags::PERSIST) table lost its owner;
/// - the handle of the preceding rule ([`RuleRef::position`](crate::nft::RuleRef::position)): the order of the rules is
///   right.
///
/// To see them, call [`reread`](Self::reread).
///
/// # Cost
///
/// The events of some changes are ambiguous. The mirror then reads the chain or table again, regardless of changes
/// elsewhere. It reads a chain when one transaction deleted its first or last rule and added others at an end, and on
/// kernels before 5.15 when a rule is added to a chain that has rules. It reads a table when a chain is renamed, a
/// set's timeout changes, a rule adds to a set without a size, or a chain or flowtable gains or loses devices.
#[derive(Debug)]
pub struct Mirror {
    connection: Connection,
    monitor: Monitor,
    snapshot: Snapshot,
    scope: Scope<'static>,
    options: SnapshotOptions,
    /// Tables that were read later than the rest: events up to this generation are already included.
    ahead: HashMap<TableKey, Generation>,
    /// The same for the rules of chains.
    chains_ahead: HashMap<MemberKey, Generation>,
    /// Whether the snapshot may be incomplete.
    is_broken: bool,
    /// Updates received outside of an update, for example during a plan; the next update returns them.
    held_back: Vec<Update>,
    /// State of the last plan.
    planned: Option<Planned>,
    observer: Option<Observer>,
}

impl_retry! {
    /// Stored in its [`connection`](Self::connection); applies when the mirror reads tables again.
    Mirror, connection.session.retry
}

/// Receives each item before it is applied.
struct Observer {
    observe: Box<dyn FnMut(&Item) + Send>,
    /// Parts that were read again since they were last taken.
    tables: BTreeSet<TableKey>,
    chains: BTreeSet<MemberKey>,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// The changes since the last plan.
#[derive(Debug)]
struct Planned {
    desired: Arc<Snapshot>,
    options: PlanOptions,
    /// The touched objects; everything else is as desired.
    touched: TouchedObjects,
    /// Positions of touched elements in the desired sets.
    places: DesiredPositions,
}

impl Mirror {
    /// Reads the ruleset over this connection, and listens for changes in its namespace.
    ///
    /// It reads each table separately: commits to other tables don't interrupt the read.
    ///
    /// # Errors
    /// Those of [`Monitor::open`] and of a [snapshot](Connection::snapshot).
    pub fn open(connection: Connection, scope: &Scope<'_>) -> Result<Self, SnapshotError> {
        Self::open_with(connection, scope, MonitorOptions::default())
    }

    /// Like [`open`](Self::open), with another receive buffer, or without the elements of some sets.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        connection: Connection,
        scope: &Scope<'_>,
        options: impl Into<MirrorOptions>,
    ) -> Result<Self, SnapshotError> {
        let options = options.into();
        let monitor = options.monitor.open_in_namespace_of(&connection)?;
        let mut mirror = Self {
            connection,
            monitor,
            snapshot: Snapshot::default(),
            scope: scope.clone().into_owned(),
            options: options.snapshot,
            ahead: HashMap::new(),
            chains_ahead: HashMap::new(),
            is_broken: true,
            held_back: Vec::new(),
            planned: None,
            observer: None,
        };
        mirror.reread()?;
        Ok(mirror)
    }

    /// Calls `observe` with each item as soon as it is received, before it is applied. It can read data that disappears
    /// quickly, such as the process that made a change. From then on, [`take_reread`](Self::take_reread) returns what a
    /// [`Replay`](super::Replay) of these items needs in addition.
    pub fn observe(&mut self, observe: impl FnMut(&Item) + Send + 'static) {
        self.observer = Some(Observer {
            observe: Box::new(observe),
            tables: BTreeSet::new(),
            chains: BTreeSet::new(),
        });
    }

    /// Returns the current content of the tables and chains that were read again since the last call because a change
    /// was ambiguous. Everything is read again after an [`Item::Lost`]: this is not included.
    ///
    /// # Errors
    /// [`Malformed`] if a part does not fit into memory.
    pub fn take_reread(&mut self) -> Result<Vec<RereadPart>, Malformed> {
        let Some(observer) = &mut self.observer else {
            return Ok(Vec::new());
        };
        let tables = std::mem::take(&mut observer.tables);
        let mut chains = std::mem::take(&mut observer.chains);
        chains.retain(|(family, table, _)| !tables.contains(&(*family, table.clone())));
        let mut parts = Vec::new();
        for key in tables {
            parts.push(RereadPart::table(&self.snapshot, key)?);
        }
        for key in chains {
            parts.extend(RereadPart::chain(&self.snapshot, key)?);
        }
        Ok(parts)
    }

    /// Returns the ruleset of one generation. After an error of [`update`](Self::update) it has no generation, and
    /// recent changes may be missing.
    #[must_use]
    pub const fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the connection that the mirror reads over, for example to commit. (On kernels before 5.14, a replacement
    /// connection cannot commit a transaction that expects one of the mirror's generations.)
    pub const fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Computes the transaction that makes the kernel's tables match a snapshot: like [`Connection::plan`], but from
    /// the mirror's state and without requests to the kernel. Committing it, for example over
    /// [`connection`](Self::connection), fails if the ruleset has changed since.
    ///
    /// Repeated for the same snapshot (the same `Arc`), it compares only the chains, sets and elements that were
    /// touched since, unless other objects changed, so that its time depends on the changes and not on the ruleset. To
    /// find the elements of a desired set it keeps 8 bytes per element after the first time.
    ///
    /// | it compares | when |
    /// |---|---|
    /// | touched objects | called again for the same snapshot with the same options |
    /// | all elements of a set | the keys of the touched ones exceed 4 MiB, or it has intervals without being a concatenation |
    /// | everything | the first time, and after events were lost |
    /// | everything | tables, stateful objects or flowtables changed, or more than 4,096 chains and sets |
    /// | everything | an object that others refer to has to be recreated |
    /// | everything | a table has an anonymous set or chain, or another process owns one |
    ///
    /// If the plan's scope exceeds the mirror's, it reads from the kernel as [`Connection::plan`] does. After an error
    /// of [`update`](Self::update) it first reads everything again; the next update returns the changes received
    /// meanwhile.
    ///
    /// [`Plan::kept_rules`] counts only what was compared.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
    /// use std::sync::Arc;
    /// use chainwright::nft::live::Mirror;
    /// use chainwright::nft::{Chain, Connection, Family, PlanOptions, Scope, Table, Transaction};
    ///
    /// let mut nft = Connection::open()?;
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::INET, "guard"))?;
    /// tx.add(&Chain::new(Family::INET, "guard", "allowed"))?;
    /// nft.commit(&tx)?;
    /// let mut mirror = Mirror::open(Connection::open()?, &Scope::all())?;
    /// let desired = Arc::new(mirror.snapshot().clone());
    /// assert!(mirror.plan(&desired, PlanOptions::default())?.is_empty());
    ///
    /// // Another program creates another chain.
    /// let mut tx = Transaction::new();
    /// tx.add(&Chain::new(Family::INET, "guard", "other"))?;
    /// nft.commit(&tx)?;
    /// mirror.update()?;
    /// let plan = mirror.plan(&desired, PlanOptions::default())?;
    /// assert_eq!(plan.to_string(), "delete chain inet guard other #0\n");
    /// mirror.connection().commit(plan.transaction())?;
    /// # Ok::<(), chainwright::Error>(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::plan`], and the errors of reading tables again.
    pub fn plan(
        &mut self,
        desired: &Arc<Snapshot>,
        options: PlanOptions,
    ) -> Result<Plan, crate::Error> {
        self.repair_if_broken()?;
        if !self.scope.covers(&scope_of(desired, options)) {
            return self.connection.plan(&**desired, options);
        }
        let foreign = self.connection.tables_of_other_owners(&self.snapshot);
        let known = self.planned.take();
        let mut known = known.filter(|planned| Arc::ptr_eq(&planned.desired, desired));
        if let Some(planned) = &mut known
            && planned.options == options
            && !planned.touched.others
            && foreign.is_empty()
        {
            let (touched, places) = (&planned.touched, &mut planned.places);
            let plan = (self.snapshot).plan_touched(desired, options, touched, places)?;
            if let Some(plan) = plan {
                if plan.is_empty() {
                    planned.touched = TouchedObjects::with_elements(MAX_ELEMENT_KEY_BYTES);
                }
                self.planned = known;
                return Ok(plan);
            }
        }
        let is_simple = foreign.is_empty() && self.snapshot.is_plain() && desired.is_plain();
        let plan = (self.connection).plan_from(&self.snapshot, desired, options, foreign)?;
        if is_simple {
            // The plan may still be uncommitted at the next call.
            let mut touched = TouchedObjects::with_elements(MAX_ELEMENT_KEY_BYTES);
            let mut messages = plan.transaction().messages();
            messages.try_for_each(|message| touched.note(&message))?;
            self.planned = Some(Planned {
                desired: Arc::clone(desired),
                options,
                touched,
                places: known.map(|planned| planned.places).unwrap_or_default(),
            });
        }
        Ok(plan)
    }

    /// Records the objects that events touch, while there is a previous plan.
    fn note(&mut self, event: &Event<'_>) -> Result<(), Malformed> {
        let Some(planned) = &mut self.planned else {
            return Ok(());
        };
        let is_planned = event.table().is_none_or(|table| {
            self.scope.admits(event.family(), table)
                && (planned.options.remove_other_tables
                    || planned.desired.table(event.family(), table).is_some())
        });
        if !is_planned {
            return Ok(());
        }
        planned.touched.note(&event.message())?;
        let touched = planned.touched.chains.len() + planned.touched.sets.len();
        if planned.touched.others || touched > MAX_TOUCHED {
            self.planned = None;
        }
        Ok(())
    }

    /// Applies the changes committed since the last call, without waiting for more; returns them in order.
    ///
    /// This covers everything committed before the call, unless more than 1,024 items are queued: then call it again.
    ///
    /// # Errors
    /// The errors of [`Monitor::try_receive`], and of reading tables again. The next call repairs the snapshot.
    pub fn update(&mut self) -> Result<Vec<Update>, SnapshotError> {
        self.repair_if_broken()?;
        self.attempt(|mirror, updates| {
            while updates.len() < MAX_ITEMS
                && let Some(item) = mirror.monitor.try_receive()?
            {
                mirror.take(item, updates)?;
            }
            mirror.catch_up(updates)
        })?;
        Ok(std::mem::take(&mut self.held_back))
    }

    /// Waits at most `time` for a change; then does the same as [`update`](Self::update).
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn wait(&mut self, time: Duration) -> Result<Vec<Update>, SnapshotError> {
        self.repair_if_broken()?;
        self.attempt(|mirror, updates| {
            if updates.is_empty()
                && let Some(item) = mirror.monitor.receive_within(time)?
            {
                mirror.take(item, updates)?;
            }
            mirror.catch_up(updates)
        })?;
        match self.held_back.is_empty() {
            true => Ok(Vec::new()),
            false => self.update(),
        }
    }

    /// Reads everything again, including state without events; returns the changes committed since the last call that
    /// were received along with it.
    ///
    /// # Errors
    /// The errors of a [snapshot](Connection::snapshot).
    pub fn reread(&mut self) -> Result<Vec<Update>, SnapshotError> {
        self.read_whole()?;
        Ok(std::mem::take(&mut self.held_back))
    }

    fn read_whole(&mut self) -> Result<(), SnapshotError> {
        self.attempt(|mirror, updates| {
            mirror.read()?;
            mirror.catch_up(updates)
        })
    }

    /// Reads everything again after an earlier error.
    fn repair_if_broken(&mut self) -> Result<(), SnapshotError> {
        match self.is_broken {
            true => self.read_whole(),
            false => Ok(()),
        }
    }

    /// Runs `work`, which leaves the snapshot incomplete if it fails. Received updates stay held back until returned.
    fn attempt(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Vec<Update>) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        self.is_broken = true;
        self.snapshot.set_generation(None);
        let mut updates = std::mem::take(&mut self.held_back);
        let done = work(self, &mut updates);
        self.held_back = updates;
        done?;
        self.snapshot.set_generation(Some(self.monitor.reported()));
        self.is_broken = false;
        Ok(())
    }

    /// Reads all tables.
    fn read(&mut self) -> Result<(), SnapshotError> {
        self.planned = None;
        self.ahead.clear();
        self.chains_ahead.clear();
        self.snapshot = Snapshot::of(self.scope.clone(), self.options.elements);
        let mut keys = Vec::new();
        let mut attempts = self.connection.retry().begin();
        loop {
            keys.clear();
            let tables = self.connection.tables(self.scope.clone())?;
            let listed = tables.for_each(|table| {
                keys.push((table.family(), table.name().to_owned()));
            });
            match listed {
                Err(error) if error.allows(&mut attempts) => {}
                listed => break listed?,
            }
        }
        keys.into_iter().try_for_each(|key| self.read_table(key))
    }

    /// Reads one table, which is then ahead of the others.
    fn read_table(&mut self, key: TableKey) -> Result<(), SnapshotError> {
        self.planned = None;
        let name = Name::from(key.1.as_slice());
        let table = self
            .connection
            .snapshot_with(Scope::table(key.0, name), self.options)?;
        self.snapshot.replace_table(&key, &table)?;
        // A snapshot that was read has a generation.
        if let Some(generation) = table.generation() {
            self.ahead.insert(key, generation);
        }
        Ok(())
    }

    /// Applies an item.
    fn take(&mut self, item: Item, updates: &mut Vec<Update>) -> Result<(), SnapshotError> {
        if let Some(observer) = &mut self.observer {
            (observer.observe)(&item);
        }
        match item {
            Item::Change(change) => {
                let applied = self.apply(&change);
                updates.push(Update::Change(change));
                applied
            }
            Item::Lost(lost) => {
                updates.push(Update::Reread(lost));
                self.read()
            }
            Item::OutOfBand(event) => {
                let mut applied = Applied::default();
                Ok(self.apply_event(&event.event(), None, &mut applied)?)
            }
        }
    }

    /// Applies a transaction.
    fn apply(&mut self, change: &Change) -> Result<(), SnapshotError> {
        let mut applied = Applied::default();
        for event in change.events() {
            self.apply_event(&event, Some(change.generation()), &mut applied)?;
        }
        for key in applied.unclear_chains() {
            if let Some(observer) = &mut self.observer {
                observer.chains.insert(key.clone());
            }
            self.read_chain(key, change.generation())?;
        }
        for key in applied.unclear_tables() {
            if let Some(observer) = &mut self.observer {
                observer.tables.insert(key.clone());
            }
            let read_at = self.ahead.get(&key);
            if read_at.is_none_or(|&read_at| precedes(read_at, change.generation())) {
                self.read_table(key)?;
            }
        }
        self.forget_ahead();
        Ok(self.snapshot.compact()?)
    }

    /// Reads the rules of one chain, which are then ahead of the rest.
    fn read_chain(&mut self, key: MemberKey, after: Generation) -> Result<(), SnapshotError> {
        let read_at = self.chains_ahead.get(&key);
        if read_at.is_some_and(|&read_at| !precedes(read_at, after)) {
            return Ok(());
        }
        let table = (key.0, key.1.clone());
        let read = match self.snapshot.has_bound_chains(&table) {
            true => None,
            false => self.snapshot.read_chain(&mut self.connection, &key)?,
        };
        match read {
            Some(generation) => _ = self.chains_ahead.insert(key, generation),
            None => {
                if let Some(observer) = &mut self.observer {
                    observer.tables.insert(table.clone());
                }
                self.read_table(table)?;
            }
        }
        Ok(())
    }

    /// Forgets tables and chains that are no longer ahead.
    fn forget_ahead(&mut self) {
        let reported = self.monitor.reported();
        self.ahead
            .retain(|_, &mut read_at| precedes(reported, read_at));
        let chains = &mut self.chains_ahead;
        chains.retain(|_, &mut read_at| precedes(reported, read_at));
    }

    fn apply_event(
        &mut self,
        event: &Event<'_>,
        generation: Option<Generation>,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        if !self.ahead.is_empty()
            && let Some(generation) = generation
            && let Some(table) = event.table()
        {
            let read_at = self.ahead.get(&(event.family(), table.to_owned()));
            if read_at.is_some_and(|&read_at| !precedes(read_at, generation)) {
                return Ok(());
            }
        }
        if !self.chains_ahead.is_empty()
            && let Some(generation) = generation
            && let EventObject::Rule(rule) = event.object()?
        {
            let key = (
                rule.family(),
                rule.table().to_owned(),
                rule.chain().to_owned(),
            );
            let read_at = self.chains_ahead.get(&key);
            if read_at.is_some_and(|&read_at| !precedes(read_at, generation)) {
                return Ok(());
            }
        }
        self.note(event)?;
        self.snapshot.apply(&event.message(), applied)
    }

    /// Applies events until no table or chain is ahead: then everything is of one generation.
    fn catch_up(&mut self, updates: &mut Vec<Update>) -> Result<(), SnapshotError> {
        // Reads on the way are also ahead: with writers that never pause the loop might not end.
        for _ in 0..CATCH_UP_ITEMS {
            self.forget_ahead();
            if self.ahead.is_empty() && self.chains_ahead.is_empty() {
                return Ok(());
            }
            let deadline = Instant::now() + MAX_EVENT_DELAY;
            match self.monitor.receive_until(deadline)? {
                Some(item) => self.take(item, updates)?,
                None => return Err(netlink::Error::Lost(Loss::MissingReply).into()),
            }
        }
        Err(netlink::Error::Interrupted.into())
    }
}

/// Readable when [`update`](Mirror::update) should be called.
impl AsFd for Mirror {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.monitor.as_fd()
    }
}
