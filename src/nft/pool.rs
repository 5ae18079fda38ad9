//! Pools of connections, shared by threads and tasks.

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
use crate::retry::impl_retry;

/// Default maximum number of connections in a pool.
const LIMIT: usize = 8;

/// A pool of connections to the nf_tables of one network namespace, for any number of threads or tasks.
///
/// It is [`Clone`], [`Send`] and [`Sync`]; all clones share the same connections. A caller has a connection
/// exclusively for the duration of a closure ([`with`](Self::with)). If all connections are in use, the pool opens
/// another one, up to a limit. At the limit, or if none can be opened (no more file descriptors, or the calling
/// thread is in another network namespace than the pool), the caller waits until one is returned. All connections
/// belong to the namespace of the first one.
///
/// Waiting for a connection blocks the thread, and so does the closure: a commit waits for other commits in the
/// same namespace. In an async program use `Pool::run` (feature `tokio`).
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

impl_retry! {
    /// A connection uses it while taken from this pool; another clone of the pool can use another one.
    Pool, retry
}

#[derive(Debug)]
struct Shared {
    connections: Mutex<Connections>,
    /// Notified when a connection is returned.
    returned: Condvar,
    /// The namespace of the connections.
    origin: Origin,
    limit: usize,
}

#[derive(Debug)]
struct Connections {
    idle: Vec<Connection>,
    /// Ports of all connections, including those in use.
    ports: Vec<u32>,
    /// Number of connections, including those in use.
    opened: usize,
}

impl Shared {
    // The guarded data is always consistent: closures run without the lock.
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

    /// Opens another connection, if the calling thread is in the pool's namespace.
    fn open_another(&self) -> Option<Connection> {
        let connection = Connection::open().ok()?;
        (connection.origin == self.origin).then_some(connection)
    }
}

/// A connection in use; dropping this returns it, also during a panic.
struct Lease<'p> {
    shared: &'p Shared,
    connection: Option<Connection>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.shared.lock().idle.push(connection);
            self.shared.returned.notify_one();
        }
    }
}

impl Pool {
    /// Creates a pool of up to 8 connections and opens the first one, in the calling thread's network namespace.
    ///
    /// # Errors
    /// The errors of [`Connection::open`].
    pub fn open() -> Result<Self, Error> {
        Ok(Self::of(Connection::open()?, LIMIT))
    }

    /// Creates a pool of up to `limit` connections (at least one), in the namespace of `first`, with its retry
    /// policy ([`with_retry`](Self::with_retry)).
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

    /// Runs a closure with exclusive use of a connection; waits for one if necessary.
    ///
    /// The closure must not take another connection from the same pool: if all are taken by such closures, they
    /// wait for each other forever.
    pub fn with<R>(&self, work: impl FnOnce(&mut Connection) -> R) -> R {
        let mut taken = Lease {
            shared: &self.shared,
            connection: None,
        };
        let connection = taken.connection.insert(self.shared.take());
        connection.set_retry(self.retry);
        work(connection)
    }

    /// Calls [`Connection::commit`].
    ///
    /// # Errors
    /// Same as [`Connection::commit`].
    pub fn commit(&self, transaction: &Transaction) -> Result<(), CommitError> {
        self.with(|nft| nft.commit(transaction))
    }

    /// Calls [`Connection::commit_echo`].
    ///
    /// # Errors
    /// Same as [`Connection::commit_echo`].
    pub fn commit_echo(&self, transaction: &Transaction) -> Result<Committed, CommitError> {
        self.with(|nft| nft.commit_echo(transaction))
    }

    /// Returns the [ports](Connection::port) of the open connections: a change with one of these
    /// [ports](super::live::Change::port) was committed through this pool. Ports belong to the pool as long as it
    /// exists; opening another connection adds one.
    #[must_use]
    pub fn ports(&self) -> Vec<u32> {
        self.shared.lock().ports.clone()
    }

    /// Calls [`Connection::snapshot`].
    ///
    /// # Errors
    /// Same as [`Connection::snapshot`].
    pub fn snapshot(&self, scope: Scope<'_>) -> Result<Snapshot, SnapshotError> {
        self.with(|nft| nft.snapshot(scope))
    }

    /// Calls [`Connection::generation`].
    ///
    /// # Errors
    /// Same as [`Connection::generation`].
    pub fn generation(&self) -> Result<Generation, Error> {
        self.with(Connection::generation)
    }

    /// Returns the number of open connections, including those in use.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().opened
    }

    /// Calls [`with`](Self::with) on a blocking thread of tokio: for commits or snapshots in an async program.
    ///
    /// It is cancel safe: if this future is dropped early, a closure that has started runs to its end, and the
    /// connection is returned; one that has not started may not run. A thread of tokio is in the process's network
    /// namespace, so a pool of another namespace has only the connections that were opened in that namespace.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or if the closure panics.
    #[cfg(feature = "tokio")]
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> R + Send + 'static,
    ) -> R {
        let pool = self.clone();
        blocking(move || pool.with(work)).await
    }
}

/// Runs `work` on a thread of tokio for blocking work.
#[cfg(feature = "tokio")]
pub(super) async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, together with this future.
            Err(_) => std::future::pending().await,
        },
    }
}
