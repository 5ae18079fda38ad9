//! A snapshot that is kept current by events.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::assembler::{Item, Lost, precedes};
use super::change::{Change, Event, EventObject};
use super::monitor::{Monitor, MonitorOptions};
use crate::netlink::{self, Loss, Malformed};
use crate::nft::generation::Generation;
use crate::nft::snapshot::{Applied, DesiredPlaces, TableKey, scope_of};
use crate::nft::watch::{MemberKey, Touches};
use crate::nft::{
    Connection, Name, Plan, PlanOptions, Scope, Snapshot, SnapshotError, SnapshotOptions,
};
use crate::retry::retrying;

/// How many items are taken in at once: beside writers that never pause an update comes to an end.
const ITEMS: usize = 1024;
/// Within how many items all that was read by itself must be of one generation.
const SETTLING: usize = 64 * ITEMS;
/// How many chains and sets may be touched before all is looked at again.
const TOUCHED: usize = 4096;
/// How many bytes the keys of touched elements may take before all elements of their set are looked at again.
const ELEMENTS: usize = 4 << 20;
/// How long events are waited for whose commit can be seen already.
const WAIT: Duration = Duration::from_secs(1);

/// What a [`Mirror`] was told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// A transaction was committed. It may be about tables that the mirror does not cover.
    Change(Change),
    /// Changes were lost, and everything was read anew: anything may have changed.
    ReadAnew(Lost),
}

/// How a [`Mirror`] is opened.
///
/// ```no_run
/// # fn main() -> Result<(), chainwright::Error> {
/// use chainwright::nft::live::Mirror;
/// use chainwright::nft::{Connection, ElementsOf, Scope, SnapshotOptions};
///
/// // Rules add and delete elements all the time, which nobody here asks for.
/// let options = SnapshotOptions { elements: ElementsOf::all() - ElementsOf::DYNAMIC };
/// let mirror = Mirror::open_with(Connection::open()?, &Scope::all(), options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MirrorOptions {
    /// How changes are listened to.
    pub monitor: MonitorOptions,
    /// What is kept of the tables. Events of elements that are left out are passed over.
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

/// A ruleset, or a family's or table's part of one, that is kept current by what the kernel tells.
///
/// It is read once; from then on each [`update`](Self::update) takes in what was committed since, in time that
/// goes with the changes and not with the ruleset. What is asked of [`snapshot`](Self::snapshot) in between
/// costs no system call, and is of one generation. Where events were lost it reads all anew, and says so
/// ([`Update::ReadAnew`]).
///
/// ```
/// # fn main() -> Result<(), chainwright::Error> {
/// # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
/// use chainwright::nft::live::{Mirror, Update};
/// use chainwright::nft::{Chain, Connection, Family, Scope, Table, Transaction};
///
/// let mut mirror = Mirror::open(Connection::open()?, &Scope::all())?;
///
/// // Somebody else makes a chain.
/// let mut tx = Transaction::new();
/// tx.add(&Table::new(Family::IP, "nat"))?;
/// tx.add(&Chain::new(Family::IP, "nat", "KUBE-SERVICES"))?;
/// Connection::open()?.commit(&tx)?;
///
/// for update in mirror.update()? {
///     match update {
///         Update::Change(change) => println!("{} by {:?}", change.generation(), change.thread_name()),
///         Update::ReadAnew(lost) => println!("{lost}"),
///         _ => {}
///     }
/// }
/// assert!(mirror.snapshot().chain(Family::IP, "nat", "KUBE-SERVICES").is_some());
/// # Ok::<(), chainwright::Error>(()) })??;
/// # Ok(())
/// # }
/// ```
///
/// # Not to answer to oneself
///
/// What was committed over the mirror's own [`connection`](Self::connection) comes in with the next update as well:
/// its changes are of that connection's [port](Connection::port), as those of others are not.
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
///         Update::Change(change) if change.port() == own => assert!(committed.made(&change)),
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
/// What no event tells is as it was when the object was read or told of last:
///
/// - what [moves no generation](crate::nft::Refreshed::SameGeneration): counters and the like, elements that rules
///   add or that time out;
/// - numbers that the kernel counts by itself: [`ChainRef::references`](crate::nft::ChainRef::references),
///   [`TableRef::references`](crate::nft::TableRef::references), [`SetRef::count`](crate::nft::SetRef::count);
/// - that a table that [persists](crate::nft::TableFlags::PERSIST) lost its owner;
/// - the handle of the rule before it ([`RuleRef::position`](crate::nft::RuleRef::position)): the order of
///   the rules is right.
///
/// To see those, [`read_anew`](Self::read_anew).
///
/// # What it costs
///
/// A few things events leave open; the mirror then reads that one chain or table anew, beside whatever others
/// do elsewhere: a chain, where its first or last rule was deleted and others were added at an end in one
/// transaction, and on kernels before 5.15 when a rule is added to one that has some; a table, when a chain is
/// renamed, a set's timeout changes, or devices join or leave a chain or flowtable.
#[derive(Debug)]
pub struct Mirror {
    connection: Connection,
    monitor: Monitor,
    snapshot: Snapshot,
    scope: Scope<'static>,
    options: SnapshotOptions,
    /// Tables that were read later than the rest: up to this generation what is told of them is there
    /// already.
    ahead: HashMap<TableKey, Generation>,
    /// And so of chains the rules.
    chains_ahead: HashMap<MemberKey, Generation>,
    /// Whether what is shown cannot be relied on.
    is_broken: bool,
    /// What came in when a plan was asked for, to be given out by the next update.
    held_back: Vec<Update>,
    /// What was planned last.
    planned: Option<Planned>,
}

retrying! {
    /// It is that of its [`connection`](Self::connection): for what is read anew.
    Mirror, connection.retry
}

/// What is known since a plan.
#[derive(Debug)]
struct Planned {
    desired: Arc<Snapshot>,
    options: PlanOptions,
    /// All else is as desired.
    touched: Touches,
    /// Where elements of the desired sets are that were touched.
    places: DesiredPlaces,
}

impl Mirror {
    /// Reads what is there, over this connection, and listens from then on in its namespace.
    ///
    /// Each table is read by itself: commits to others are in nobody's way.
    ///
    /// # Errors
    /// Those of [`Monitor::open`] and of a [snapshot](Connection::snapshot).
    pub fn open(connection: Connection, scope: &Scope<'_>) -> Result<Self, SnapshotError> {
        Self::open_with(connection, scope, MonitorOptions::default())
    }

    /// As [`open`](Self::open), with another receive buffer, or without the elements of some sets.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        connection: Connection,
        scope: &Scope<'_>,
        options: impl Into<MirrorOptions>,
    ) -> Result<Self, SnapshotError> {
        let options = options.into();
        let monitor = options.monitor.open_beside(&connection)?;
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
        };
        mirror.read_anew()?;
        Ok(mirror)
    }

    /// The ruleset, as of one generation. After an error of [`update`](Self::update) it has no generation, and may
    /// lack what came since.
    #[must_use]
    pub const fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The connection that it reads over: for commits, say. (One that is put in its place cannot commit, on kernels
    /// before 5.14, what expects a generation that the mirror shows.)
    pub const fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// What is to be done so that the tables of a snapshot are as it shows them: as
    /// [`Connection::plan`], from what the mirror shows now and without asking the kernel. Committed, over
    /// [`connection`](Self::connection) for instance, it is refused if the ruleset has changed since.
    ///
    /// Asked again for the same snapshot (the same `Arc`) it looks only at the chains, sets and elements that were
    /// touched since, as long as nothing else was, so that it takes time with the changes and not with the ruleset. To
    /// find the elements of a desired set it keeps 8 bytes an element, from the first time on.
    ///
    /// | it looks at | when |
    /// |---|---|
    /// | what was touched | asked again for the same snapshot with the same options |
    /// | all elements of a set | the keys of the touched ones are more than 4 MiB, or it is of intervals that are not of several fields |
    /// | everything | the first time, and after events were lost |
    /// | everything | tables, stateful objects or flowtables changed, or more than 4,096 chains and sets |
    /// | everything | something is to be made anew that others name |
    /// | everything | a table has an anonymous set or chain, or another process owns one |
    ///
    /// Where the mirror covers less than what is to be planned, the kernel is asked as by [`Connection::plan`]. After
    /// an error of [`update`](Self::update) everything is read anew first; what came in by that, the next update
    /// gives out.
    ///
    /// [`Plan::kept_rules`] counts what was looked at.
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
    /// // Somebody makes another chain.
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
    /// As [`Snapshot::plan`], and those of reading anew.
    pub fn plan(
        &mut self,
        desired: &Arc<Snapshot>,
        options: PlanOptions,
    ) -> Result<Plan, crate::Error> {
        self.mend()?;
        if !self.scope.covers(&scope_of(desired, options)) {
            return self.connection.plan(desired, options);
        }
        let closed = self.connection.closed_in(&self.snapshot);
        let known = self.planned.take();
        let mut known = known.filter(|planned| Arc::ptr_eq(&planned.desired, desired));
        if let Some(planned) = &mut known
            && planned.options == options
            && !planned.touched.others
            && closed.is_empty()
        {
            let (touched, places) = (&planned.touched, &mut planned.places);
            let plan = (self.snapshot).plan_touched(desired, options, touched, places)?;
            if let Some(plan) = plan {
                if plan.is_empty() {
                    planned.touched = Touches::with_elements(ELEMENTS);
                }
                self.planned = known;
                return Ok(plan);
            }
        }
        let is_simple = closed.is_empty() && self.snapshot.is_plain() && desired.is_plain();
        let plan = (self.connection).plan_from(&self.snapshot, desired, options, closed)?;
        if is_simple {
            // What it is to change may be so still when the next one is asked for.
            let mut touched = Touches::with_elements(ELEMENTS);
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

    /// Notes what events touch, while that is of use.
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
        if planned.touched.others || touched > TOUCHED {
            self.planned = None;
        }
        Ok(())
    }

    /// Takes in what was committed since the last time, without waiting for more; what that was, in its order.
    ///
    /// All that was committed before this is called is in it, unless more than some thousand transactions
    /// are queued: then call it again.
    ///
    /// # Errors
    /// Those of [`Monitor::try_receive`], and of reading anew what events leave open. The next call makes good
    /// what is missing.
    pub fn update(&mut self) -> Result<Vec<Update>, SnapshotError> {
        self.mend()?;
        self.attempt(|mirror, updates| {
            while updates.len() < ITEMS
                && let Some(item) = mirror.monitor.try_receive()?
            {
                mirror.take(item, updates)?;
            }
            mirror.settle(updates)
        })?;
        Ok(std::mem::take(&mut self.held_back))
    }

    /// Waits until something was committed, or for so long; then as [`update`](Self::update).
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn wait(&mut self, time: Duration) -> Result<Vec<Update>, SnapshotError> {
        self.mend()?;
        self.attempt(|mirror, updates| {
            if updates.is_empty()
                && let Some(item) = mirror.monitor.receive_within(time)?
            {
                mirror.take(item, updates)?;
            }
            mirror.settle(updates)
        })?;
        match self.held_back.is_empty() {
            true => Ok(Vec::new()),
            false => self.update(),
        }
    }

    /// Reads everything anew, also what no event tells; what was committed since the last time, as far as it
    /// was read together with the rest.
    ///
    /// # Errors
    /// Those of a [snapshot](Connection::snapshot).
    pub fn read_anew(&mut self) -> Result<Vec<Update>, SnapshotError> {
        self.read_whole()?;
        Ok(std::mem::take(&mut self.held_back))
    }

    fn read_whole(&mut self) -> Result<(), SnapshotError> {
        self.attempt(|mirror, updates| {
            mirror.read()?;
            mirror.settle(updates)
        })
    }

    /// Makes good what an earlier error left.
    fn mend(&mut self) -> Result<(), SnapshotError> {
        match self.is_broken {
            true => self.read_whole(),
            false => Ok(()),
        }
    }

    /// Does what leaves the snapshot half done if it fails. What came in is held back until it can be given out.
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
        self.snapshot.set_generation(Some(self.monitor.told()));
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
                Err(netlink::Error::Interrupted) if attempts.again() => {}
                Err(error) if error.ask_again() && attempts.again_after_loss() => {}
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
        // A snapshot that could be read has one.
        if let Some(generation) = table.generation() {
            self.ahead.insert(key, generation);
        }
        Ok(())
    }

    /// Takes in an item.
    fn take(&mut self, item: Item, updates: &mut Vec<Update>) -> Result<(), SnapshotError> {
        match item {
            Item::Change(change) => {
                let applied = self.apply(&change);
                updates.push(Update::Change(change));
                applied
            }
            Item::Lost(lost) => {
                updates.push(Update::ReadAnew(lost));
                self.read()
            }
            Item::Notice(notice) => {
                let mut applied = Applied::default();
                Ok(self.apply_event(&notice.event(), None, &mut applied)?)
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
            self.read_chain(key, change.generation())?;
        }
        for key in applied.unclear_tables() {
            let read_at = self.ahead.get(&key);
            if read_at.is_none_or(|&read_at| precedes(read_at, change.generation())) {
                self.read_table(key)?;
            }
        }
        self.forget_ahead();
        Ok(self.snapshot.tidy()?)
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
            None => self.read_table(table)?,
        }
        Ok(())
    }

    /// What was ahead of the rest is so no longer.
    fn forget_ahead(&mut self) {
        let told = self.monitor.told();
        self.ahead.retain(|_, &mut read_at| precedes(told, read_at));
        let chains = &mut self.chains_ahead;
        chains.retain(|_, &mut read_at| precedes(told, read_at));
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

    /// Takes in what was committed before a table was read that is ahead: then all is of one generation.
    fn settle(&mut self, updates: &mut Vec<Update>) -> Result<(), SnapshotError> {
        // What is read anew on the way is ahead, too: beside writers that never pause there might be no end.
        for _ in 0..SETTLING {
            self.forget_ahead();
            if self.ahead.is_empty() && self.chains_ahead.is_empty() {
                return Ok(());
            }
            let deadline = Instant::now() + WAIT;
            match self.monitor.receive_until(deadline)? {
                Some(item) => self.take(item, updates)?,
                None => return Err(netlink::Error::Lost(Loss::Absent).into()),
            }
        }
        Err(netlink::Error::Interrupted.into())
    }
}

/// It is readable when there is something to [`update`](Mirror::update).
impl AsFd for Mirror {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.monitor.as_fd()
    }
}
