//! Commits that are conditional on some tables only.

use std::time::Instant;

use super::change_detector::Watch;
use super::commit::CommitError;
use super::committed::Committed;
use super::connection::Connection;
use super::generation::Generation;
use super::scope::Scope;
use super::transaction::Transaction;
use crate::netlink::Error;
use crate::retry::Attempts;

/// Maximum number of times that a transaction is sent again because another table changed.
const MAX_SENDS: usize = 1024;

/// Watches tables between reading and committing: a commit through the guard is conditional on those tables
/// only.
///
/// A [generation](Transaction::expect_generation) covers the whole ruleset. On a node where other programs
/// continually commit to their own tables, a commit that is conditional on a generation keeps failing. From its
/// creation on, a guard receives the notifications of other commits. If the kernel rejects the transaction
/// because the generation changed, and nothing in the guarded tables was changed, the data that was read is
/// still valid. The guard then sends the transaction again for the newest generation, immediately and without
/// reading again.
///
/// A guard costs a socket, and the kernel the notifications. If conflicts are rare, first try without one, as
/// [`Connection::reconcile`], `iptables::Iptables::update` and
/// `chainwright_kube::kubelet` do.
///
/// If notifications were lost, or if the calling thread is in another network namespace than the connection and
/// may not enter that (`CAP_SYS_ADMIN`), the guard cannot distinguish tables. Then every commit counts as a
/// change, as without a guard.
///
/// A dump during which others commit ends in [`Interrupted`](Error::Interrupted). If the kernel itself applied
/// the dump's filter (rules of a table or chain, elements of a set), the dump is still complete if
/// [`is_unchanged`](Self::is_unchanged) returns true afterwards.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), chainwright::Error> {
/// use chainwright::nft::{Chain, Connection, Family, Scope, Table, Transaction};
///
/// let (mut nft, mut other) = (Connection::open()?, Connection::open()?);
/// let mut guard = nft.guard(&[Scope::table(Family::INET, "agent")])?;
/// let is_there = nft.table(Family::INET, "agent")?.is_some();
///
/// // Another program creates its own table.
/// let mut elsewhere = Transaction::new();
/// elsewhere.add(&Table::new(Family::IP, "other"))?;
/// other.commit(&elsewhere)?;
///
/// let mut tx = Transaction::new();
/// if !is_there {
///     tx.add(&Table::new(Family::INET, "agent"))?;
///     tx.add(&Chain::new(Family::INET, "agent", "web"))?;
/// }
/// guard.commit(&mut nft, &mut tx)?;
///
/// // The guarded table changed: this guard commits nothing more.
/// assert!(!guard.is_unchanged(&mut nft)?);
/// assert!(guard.commit(&mut nft, &mut tx).unwrap_err().generation_moved());
/// # Ok(()) })??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Guard {
    watch: Option<Watch>,
    scopes: Vec<Scope<'static>>,
    /// The generation up to which the tables are known to be unchanged.
    generation: Generation,
    /// Whether a table was changed since, or that is unknown.
    broken: bool,
}

impl Connection {
    /// Starts watching these tables. A commit [through the guard](Guard::commit) is conditional on everything
    /// that is read of them over this connection from now on.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn guard(&mut self, scopes: &[Scope<'_>]) -> Result<Guard, Error> {
        let watch = Watch::open(self);
        Guard::begin(self, watch, scopes)
    }

    /// Returns the guard for one of several attempts; it receives notifications from the second attempt on.
    #[doc(hidden)]
    pub fn guard_for_attempt(
        &mut self,
        attempts: &Attempts,
        scopes: &[Scope<'_>],
    ) -> Result<Guard, Error> {
        match attempts.made() {
            1 => Guard::begin(self, None, &[]),
            _ => self.guard(scopes),
        }
    }
}

impl Guard {
    fn begin(
        connection: &mut Connection,
        mut watch: Option<Watch>,
        scopes: &[Scope<'_>],
    ) -> Result<Self, Error> {
        if let Some(watch) = &mut watch {
            watch.begin();
        }
        Ok(Self {
            watch,
            scopes: scopes.iter().cloned().map(Scope::into_owned).collect(),
            generation: connection.stable_generation()?,
            broken: false,
        })
    }

    /// Returns the result of a dump in which the kernel omitted the unguarded tables: a concurrent commit is no
    /// error if a notification of it will arrive.
    #[doc(hidden)]
    pub fn check_dump(&self, ended: Result<(), Error>) -> Result<(), Error> {
        match ended {
            Err(Error::Interrupted) if self.watch.is_some() => Ok(()),
            ended => ended,
        }
    }

    /// Returns whether the tables are unchanged since the guard was created. If so, everything that was read of them
    /// since belongs to one state, the current one. Changes that [create no
    /// generation](super::Refreshed::SameGeneration) are not detected.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn is_unchanged(&mut self, connection: &mut Connection) -> Result<bool, Error> {
        let now = connection.generation()?;
        if now != self.generation && !self.broken {
            let watch = self.watch.as_mut();
            match watch.is_some_and(|watch| watch.unchanged_until(&self.scopes, now)) {
                true => self.generation = now,
                false => self.broken = true,
            }
        }
        Ok(!self.broken)
    }

    /// Commits a transaction if the tables are unchanged since they were read. The transaction then expects the
    /// generation that it was committed on. An empty transaction does nothing and sends no request.
    ///
    /// Afterwards the tables count as changed: each guard allows one commit.
    ///
    /// # Errors
    /// Same as [`Connection::commit`]. If [`generation_moved`](CommitError::generation_moved), the tables were
    /// changed, or other commits always came first within the connection's
    /// [`Retry::deadline`](crate::Retry::deadline): start again, with another guard.
    pub fn commit(
        &mut self,
        connection: &mut Connection,
        transaction: &mut Transaction,
    ) -> Result<(), CommitError> {
        self.send(connection, transaction, |nft, tx| nft.commit(tx))
    }

    /// Commits like [`commit`](Self::commit) and returns the kernel's echo, like [`Connection::commit_echo`].
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit).
    pub fn commit_echo(
        &mut self,
        connection: &mut Connection,
        transaction: &mut Transaction,
    ) -> Result<Committed, CommitError> {
        self.send(connection, transaction, |nft, tx| nft.commit_echo(tx))
    }

    /// Commits like [`commit`](Self::commit) and returns the new generation.
    pub(crate) fn commit_returning_generation(
        &mut self,
        connection: &mut Connection,
        transaction: &mut Transaction,
    ) -> Result<Option<Generation>, CommitError> {
        self.send(
            connection,
            transaction,
            Connection::commit_returning_generation,
        )
    }

    /// Checks like [`Connection::check`], if the tables are unchanged since they were read.
    ///
    /// # Errors
    /// Same as [`commit`](Self::commit); nothing is ever applied.
    pub fn check(
        &mut self,
        connection: &mut Connection,
        transaction: &mut Transaction,
    ) -> Result<(), CommitError> {
        self.send(connection, transaction, |nft, tx| nft.check(tx))
    }

    fn send<R>(
        &mut self,
        connection: &mut Connection,
        transaction: &mut Transaction,
        send: fn(&mut Connection, &mut Transaction) -> Result<R, CommitError>,
    ) -> Result<R, CommitError> {
        let start = Instant::now();
        let deadline = connection.retry().deadline;
        self.advance();
        let mut sent_count = 1;
        loop {
            transaction.expect_generation(self.generation);
            match send(connection, transaction) {
                // The notifications of the conflicting commit are already queued: the kernel sends them before
                // it processes another transaction.
                Err(error)
                    if error.generation_moved()
                        && sent_count < MAX_SENDS
                        && deadline.is_none_or(|time| start.elapsed() < time)
                        && self.advance() => {}
                sent => return sent,
            }
            sent_count += 1;
        }
    }

    /// Reads the queued notifications; returns whether the tables are unchanged up to a newer generation.
    fn advance(&mut self) -> bool {
        let Some(watch) = self.watch.as_mut().filter(|_| !self.broken) else {
            return false;
        };
        match watch.newest(&self.scopes) {
            Ok(Some(number)) => {
                let moved = number != self.generation.number();
                self.generation = Generation::new(number, self.generation.origin());
                moved
            }
            Ok(None) => false,
            Err(_) => {
                self.broken = true;
                false
            }
        }
    }
}
