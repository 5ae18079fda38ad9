//! Connections that threads and tasks share.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::commit::CommitError;
use super::committed::Committed;
use super::connection::Connection;
use super::generation::{Generation, Origin};
use super::scope::Scope;
use super::snapshot::{Snapshot, SnapshotError};
use super::transaction::Transaction;
use crate::Retry;
use crate::netlink::Error;
use crate::retry::retrying;

/// How many connections a pool has at most, unless it is told otherwise.
const LIMIT: usize = 8;

/// A few connections to the nf_tables of one network namespace, for as many threads or tasks as there are.
///
/// It is [`Clone`], [`Send`] and [`Sync`]; all clones share the same connections. Whoever wants one takes it
/// for the time of some work ([`with`](Self::with)), and nobody else has it meanwhile. When all are taken
/// another one is opened, up to a limit; then, and where none can be opened (no more descriptors, or the
/// calling thread is in another network namespace than the pool), the caller waits until one is given back.
/// All of them are of the namespace that the first was opened in.
///
/// Who waits for a connection blocks its thread, and so does the work itself: a commit waits for those of
/// others in the same namespace. In an async program use `Pool::run` (feature `tokio`).
///
/// ```
/// # fn main() -> Result<(), chainwright::Error> {
/// # chainwright_testing::Sandbox::new()?.run(|| {
/// use chainwright::nft::{Family, Pool, Scope, Table, Transaction};
/// let pool = Pool::open()?;
/// std::thread::scope(|scope| {
///     for number in 0..4 {
///         let pool = pool.clone();
///         scope.spawn(move || {
///             let mut tx = Transaction::new();
///             tx.add(&Table::new(Family::IP, format!("t{number}"))).unwrap();
///             pool.commit(&tx).unwrap();
///         });
///     }
/// });
/// assert_eq!(pool.snapshot(Scope::all())?.tables().len(), 4);
/// # Ok::<(), chainwright::Error>(()) })?
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<Shared>,
    retry: Retry,
}

retrying! {
    /// Each connection has it for as long as it is taken from here; another clone of the pool may have another one.
    Pool, retry
}

#[derive(Debug)]
struct Shared {
    connections: Mutex<Connections>,
    /// Told when one is given back.
    returned: Condvar,
    /// Of which namespace they are.
    origin: Origin,
    limit: usize,
}

#[derive(Debug)]
struct Connections {
    idle: Vec<Connection>,
    /// Those of all, also of those that are taken.
    ports: Vec<u32>,
    /// How many there are, those that are taken included.
    opened: usize,
}

impl Shared {
    // What the mutex guards is whole at every moment: work that panics does not hold it.
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Connection {
        let mut connections = self.lock();
        let mut tried = false;
        loop {
            if let Some(connection) = connections.idle.pop() {
                return connection;
            }
            if !tried && connections.opened < self.limit {
                tried = true;
                connections.opened += 1;
                drop(connections);
                if let Some(connection) = self.open_another() {
                    // Before anything is committed over it.
                    self.lock().ports.push(connection.port());
                    return connection;
                }
                connections = self.lock();
                connections.opened -= 1;
                continue;
            }
            connections = self
                .returned
                .wait(connections)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Another connection of the namespace, if the calling thread is in it.
    fn open_another(&self) -> Option<Connection> {
        let connection = Connection::open().ok()?;
        (connection.origin == self.origin).then_some(connection)
    }
}

/// A connection that is taken; it is given back when this is dropped, also by a panic.
struct Taken<'p> {
    shared: &'p Shared,
    connection: Option<Connection>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.shared.lock().idle.push(connection);
            self.shared.returned.notify_one();
        }
    }
}

impl Pool {
    /// A pool of up to 8 connections, of which the first is opened now, in the calling thread's network
    /// namespace.
    ///
    /// # Errors
    /// Those of [`Connection::open`].
    pub fn open() -> Result<Self, Error> {
        Ok(Self::of(Connection::open()?, LIMIT))
    }

    /// A pool of up to so many connections (at least one), of the namespace of this one, which is the first;
    /// all are as patient as it is ([`with_retry`](Self::with_retry)).
    #[must_use]
    pub fn of(first: Connection, limit: usize) -> Self {
        Self {
            retry: first.retry(),
            shared: Arc::new(Shared {
                origin: first.origin,
                limit: limit.max(1),
                returned: Condvar::new(),
                connections: Mutex::new(Connections {
                    ports: vec![first.port()],
                    idle: vec![first],
                    opened: 1,
                }),
            }),
        }
    }

    /// Does some work over a connection that nobody else has meanwhile; waits for one if need be.
    ///
    /// The work must not take another one of the same pool: where all are taken by such work, each waits for
    /// the others.
    pub fn with<R>(&self, work: impl FnOnce(&mut Connection) -> R) -> R {
        let mut taken = Taken {
            shared: &self.shared,
            connection: None,
        };
        let connection = taken.connection.insert(self.shared.take());
        connection.set_retry(self.retry);
        work(connection)
    }

    /// [`Connection::commit`].
    ///
    /// # Errors
    /// Those of that.
    pub fn commit(&self, transaction: &Transaction) -> Result<(), CommitError> {
        self.with(|nft| nft.commit(transaction))
    }

    /// [`Connection::commit_echo`].
    ///
    /// # Errors
    /// Those of that.
    pub fn commit_echo(&self, transaction: &Transaction) -> Result<Committed, CommitError> {
        self.with(|nft| nft.commit_echo(transaction))
    }

    /// The [ports](Connection::port) of the connections that there are: a change that is
    /// [told](super::live::Change::port) to be of one of them was committed through this pool. They stay the
    /// pool's for as long as it is there; another one comes when another connection is opened.
    #[must_use]
    pub fn ports(&self) -> Vec<u32> {
        self.shared.lock().ports.clone()
    }

    /// [`Connection::snapshot`].
    ///
    /// # Errors
    /// Those of that.
    pub fn snapshot(&self, scope: Scope<'_>) -> Result<Snapshot, SnapshotError> {
        self.with(|nft| nft.snapshot(scope))
    }

    /// [`Connection::generation`].
    ///
    /// # Errors
    /// Those of that.
    pub fn generation(&self) -> Result<Generation, Error> {
        self.with(Connection::generation)
    }

    /// How many connections there are, those that are taken included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().opened
    }

    /// [`with`](Self::with) on a thread of tokio's for what blocks: a commit or a snapshot in an async program.
    ///
    /// It is safe to cancel: when this future is dropped before its end, the work that has begun is done to its
    /// end all the same, and the connection is given back; what has not begun is perhaps not done. A thread of
    /// tokio's is in the network namespace of the process, so a pool of another one has only the connections
    /// that were opened in that.
    ///
    /// # Panics
    /// Outside of a tokio runtime; and as the work does.
    #[cfg(feature = "tokio")]
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> R + Send + 'static,
    ) -> R {
        let pool = self.clone();
        match tokio::task::spawn_blocking(move || pool.with(work)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is being shut down, and this future with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
