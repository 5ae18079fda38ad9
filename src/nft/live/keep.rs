//! Keeps tables in a desired state.

use std::borrow::Cow;
use std::ops::ControlFlow;
#[cfg(feature = "tokio")]
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "tokio")]
use tokio::io::{Interest, unix::AsyncFd};

#[cfg(feature = "tokio")]
use super::mirror::MAX_ITEMS;
use super::{Mirror, Update};
use crate::Error;
#[cfg(feature = "tokio")]
use crate::netlink;
use crate::nft::snapshot::{is_outdated, retry_commit, scope_of};
use crate::nft::{Connection, Outcome, Plan, PlanOptions, Snapshot, SnapshotError};
#[cfg(feature = "tokio")]
use crate::nft::{Ruleset, pool::blocking};

/// Longest time of a single wait for a change.
const WAIT: Duration = Duration::from_secs(3600);
/// Shortest and longest pause after repairs in quick succession.
const SHORTEST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A repair without another one for this time was not undone.
const UNDO_WINDOW: Duration = Duration::from_secs(1);

impl Connection {
    /// Makes the kernel's tables match the desired ones, a [`Ruleset`](crate::nft::Ruleset) or a snapshot, and restores
    /// them whenever another program changes them, with the fewest operations, in one transaction.
    ///
    /// It calls `each` with the committed plan: of the first comparison, even if it is empty, and of each later repair.
    /// If `each` breaks, the function returns; otherwise it waits for the next change. If another program undoes each
    /// repair, it pauses before the next one, for up to 100 ms.
    ///
    /// It compares with a [`Mirror`], so that a repair takes time in proportion to the change. Use a `Mirror` directly
    /// to limit the time of waiting, or to know who made a change.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright::Error> {
    /// use std::ops::ControlFlow;
    /// use chainwright::nft::{Connection, Family, PlanOptions, Ruleset, Table, Transaction};
    ///
    /// let mut desired = Transaction::new();
    /// desired.add(&Table::new(Family::INET, "guard"))?;
    /// let desired = Ruleset::of(&desired)?;
    ///
    /// let mut repairs = 0;
    /// let mut rival = Connection::open()?;
    /// Connection::open()?.keep(&desired, PlanOptions::default(), |plan| {
    ///     if repairs == 2 {
    ///         return ControlFlow::Break(plan.to_string());
    ///     }
    ///     repairs += 1;
    ///     let mut tx = Transaction::new();
    ///     tx.delete(&Table::new(Family::INET, "guard")).expect("a short name");
    ///     rival.commit(&tx).expect("the table exists");
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Mirror::open`], of [`plan`](Self::plan) and of [`commit`](Self::commit). If others commit first,
    /// or the ruleset keeps changing, it tries again, as long as [`with_retry`](Self::with_retry) allows.
    pub fn keep<'d, B>(
        self,
        desired: impl Into<Cow<'d, Snapshot>>,
        options: PlanOptions,
        mut each: impl FnMut(&Plan) -> ControlFlow<B>,
    ) -> Result<B, Error> {
        let mut keeper = Keeper::open(self, desired.into().into_owned(), options)?;
        loop {
            if let Some(plan) = keeper.repair()?
                && let ControlFlow::Break(done) = each(&plan)
            {
                return Ok(done);
            }
            keeper.receive(|mirror| mirror.wait(WAIT))?;
        }
    }

    /// Like [`keep`](Self::keep), as a task of tokio. The ruleset is read, compared and changed on the runtime's threads
    /// for blocking work; between changes no thread waits.
    ///
    /// The function ends when the future is dropped, for example by
    /// [`JoinHandle::abort`](tokio::task::JoinHandle::abort): a repair that has begun is completed, and the tables stay.
    /// A thread of tokio is in the process's network namespace, and the connection in its own.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// use std::ops::ControlFlow;
    /// use chainwright::nft::{Family, PlanOptions, Ruleset, Table};
    ///
    /// let mut desired = Ruleset::new();
    /// desired.add(&Table::new(Family::INET, "guard"))?;
    ///
    /// # let kernel = chainwright_testing::FakeKernel::new();
    /// # let nft = kernel.connect()?;
    /// let (sender, plans) = std::sync::mpsc::channel();
    /// let kept = nft.keep_async(desired, PlanOptions::default(), move |plan| {
    ///     let _ = sender.send(plan.to_string());
    ///     ControlFlow::<()>::Continue(())
    /// });
    /// let task = tokio::spawn(kept);
    /// # let first = tokio::task::spawn_blocking(move || plans.recv()).await??;
    /// # assert_eq!(first, "add table inet guard #0\n");
    /// // …
    /// task.abort();
    /// # Ok::<_, Box<dyn std::error::Error>>(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`keep`](Self::keep), and if tokio cannot register the descriptor for events.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled, or if `each` panics.
    #[cfg(feature = "tokio")]
    pub async fn keep_async<B: Send + 'static>(
        self,
        desired: Ruleset,
        options: PlanOptions,
        mut each: impl FnMut(&Plan) -> ControlFlow<B> + Send + 'static,
    ) -> Result<B, Error> {
        let open = move || {
            let desired = Cow::from(&desired).into_owned();
            Keeper::open(self, desired, options)
        };
        let mut keeper = blocking(open).await?;
        // The mirror moves to other threads and back, so the task waits on a copy of its descriptor.
        let events = keeper.mirror.as_fd().try_clone_to_owned();
        let events = events.and_then(|events| {
            // See `Monitor::into_stream`: this type keeps its descriptor to the end.
            #[allow(deprecated)]
            AsyncFd::with_interest(events, Interest::READABLE)
        });
        let events = events.map_err(|source| netlink::Error::Receive { source })?;
        loop {
            let step = move || {
                let reported = keeper.repair().map(|plan| plan.as_ref().map(&mut each));
                (keeper, each, reported)
            };
            let reported;
            (keeper, each, reported) = blocking(step).await;
            if let Some(ControlFlow::Break(done)) = reported? {
                return Ok(done);
            }
            let ready = events.readable().await;
            let mut ready = ready.map_err(|source| netlink::Error::Receive { source })?;
            let step = move || {
                let received = keeper.receive(Mirror::update);
                (keeper, received)
            };
            let received;
            (keeper, received) = blocking(step).await;
            // After an error, and if many items were queued, more may be queued.
            if received?.is_some_and(|updates| updates < MAX_ITEMS) {
                ready.clear_ready();
            }
        }
    }
}

/// Tables with their desired state.
struct Keeper {
    mirror: Mirror,
    desired: Arc<Snapshot>,
    options: PlanOptions,
    is_first: bool,
    /// The time of the last repair, and the pause after it.
    last: Option<Instant>,
    pause: Duration,
}

impl Keeper {
    fn open(
        connection: Connection,
        desired: Snapshot,
        options: PlanOptions,
    ) -> Result<Self, Error> {
        Ok(Self {
            mirror: Mirror::open(connection, &scope_of(&desired, options))?,
            desired: Arc::new(desired),
            options,
            is_first: true,
            last: None,
            pause: Duration::ZERO,
        })
    }

    /// Compares, and commits the differences. Returns the plan of the first comparison and of each repair.
    fn repair(&mut self) -> Result<Option<Plan>, Error> {
        let follows = self.last.is_some_and(|last| last.elapsed() < UNDO_WINDOW);
        if follows {
            // A program that keeps undoing repairs must not use a whole processor.
            std::thread::sleep(self.pause);
        }
        let retry = self.mirror.retry();
        // Committed, but the kernel's reply is lost: the next comparison finds no difference then.
        let mut unconfirmed = None;
        let plan = retry_commit(self, retry, |keeper, _| {
            let plan = keeper.mirror.plan(&keeper.desired, keeper.options)?;
            if plan.is_empty() {
                return Ok(unconfirmed.take().unwrap_or(plan));
            }
            if let Err(error) = keeper.mirror.connection().commit(plan.transaction()) {
                if error.generation_moved() {
                    keeper.mirror.update()?; // the other program's change has arrived
                } else if is_outdated(&error) {
                    keeper.mirror.reread()?; // an element that times out has no event
                }
                unconfirmed = (error.outcome == Outcome::Unknown).then_some(plan);
                return Err(error.into());
            }
            Ok(plan)
        })?;
        if !plan.is_empty() {
            self.pause = match follows {
                true => LONGEST_PAUSE.min(self.pause * 2 + SHORTEST_PAUSE),
                false => Duration::ZERO,
            };
            self.last = Some(Instant::now());
        }
        let is_reported = std::mem::take(&mut self.is_first) || !plan.is_empty();
        Ok(is_reported.then_some(plan))
    }

    /// Applies the changes that `read` returns, and returns their number. Returns `None` if the next comparison reads
    /// everything again.
    fn receive(
        &mut self,
        read: impl FnOnce(&mut Mirror) -> Result<Vec<Update>, SnapshotError>,
    ) -> Result<Option<usize>, Error> {
        match read(&mut self.mirror) {
            Ok(updates) => Ok(Some(updates.len())),
            Err(error) if error.is_retryable() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
