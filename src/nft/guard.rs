//! Commits that are conditional on some tables alone.

use std::time::Instant;

use super::commit::CommitError;
use super::committed::Committed;
use super::connection::Connection;
use super::generation::Generation;
use super::scope::Scope;
use super::transaction::Transaction;
use super::watch::Watch;
use crate::netlink::Error;
use crate::retry::Attempts;

/// How often a transaction is sent anew because another table changed.
const SENDINGS: usize = 1024;

/// Watches over tables between reading and committing: a commit through it is conditional on those alone.
///
/// A [generation](Transaction::expect_generation) is of the whole ruleset. On a node where others commit to
/// tables of their own all the time, a commit that is conditional on one comes too late again and again. A
/// guard listens, from its beginning on, to what others commit. If the kernel refuses its transaction
/// because the generation moved, and nothing of the guarded tables was changed meanwhile, what was read still
/// holds, and the transaction is sent again for the newest generation: at once, without reading anew.
///
/// It costs a socket, and the kernel the notifications; who meets others seldom does better to try without
/// first, as [`Connection::reconcile`], [`iptables::Iptables::update`](crate::iptables::Iptables::update) and
/// `chainwright_kube::kubelet` do.
///
/// Where notifications were lost, and if the calling thread is in another network namespace than the
/// connection and may not enter that (`CAP_SYS_ADMIN`), nothing is known of single tables: then every commit
/// counts, as without a guard.
///
/// Of a dump that others' commits run across, the connection says that it is [interrupted](Error::Interrupted).
/// Where the kernel itself leaves out what was not asked for (rules of a table or chain, elements of a set)
/// it is whole all the same if the guard [holds](Self::holds) afterwards.
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
/// // Somebody else makes a table of their own.
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
/// // What was read is so no longer: nothing more is committed through this guard.
/// assert!(!guard.holds(&mut nft)?);
/// assert!(guard.commit(&mut nft, &mut tx).unwrap_err().generation_moved());
/// # Ok(()) })??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Guard {
    watch: Option<Watch>,
    scopes: Vec<Scope<'static>>,
    /// That until which they are known to have stood still.
    generation: Generation,
    /// Whether one was changed since, or it is not known.
    broken: bool,
}

impl Connection {
    /// Watches over these tables from here on. What is read of them over this connection afterwards can
    /// be relied on by a commit [through the guard](Guard::commit).
    ///
    /// # Errors
    /// Those of a request.
    pub fn guard(&mut self, scopes: &[Scope<'_>]) -> Result<Guard, Error> {
        let watch = Watch::open(self);
        Guard::begin(self, watch, scopes)
    }

    /// The guard of one of several attempts: others are listened to from the second one on.
    #[doc(hidden)]
    pub fn guard_of_attempt(
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
            generation: connection.generation()?,
            broken: false,
        })
    }

    /// What came of a dump in which the kernel left out the tables that are not guarded: a commit that ran
    /// across it is not an error if it will be told.
    #[doc(hidden)]
    pub fn dumped(&self, ended: Result<(), Error>) -> Result<(), Error> {
        match ended {
            Err(Error::Interrupted) if self.watch.is_some() => Ok(()),
            ended => ended,
        }
    }

    /// Whether nothing of the tables was changed since the beginning: then all that was read of them since is
    /// of one state, the present one. What [moves no generation](super::Refreshed::SameGeneration)
    /// is not seen.
    ///
    /// # Errors
    /// Those of a request.
    pub fn holds(&mut self, connection: &mut Connection) -> Result<bool, Error> {
        let now = connection.generation()?;
        if now != self.generation && !self.broken {
            let watch = self.watch.as_mut();
            match watch.is_some_and(|watch| watch.stood_still(&self.scopes, now)) {
                true => self.generation = now,
                false => self.broken = true,
            }
        }
        Ok(!self.broken)
    }

    /// Commits a transaction if the tables still are as they were read. It then expects the generation that it
    /// was committed on. A transaction without operations does nothing, and asks for nothing.
    ///
    /// The tables count as changed afterwards: each guard is good for one commit.
    ///
    /// # Errors
    /// As [`Connection::commit`]. [`generation_moved`](CommitError::generation_moved) says that the tables were
    /// changed, or that within the connection's [`Retry::deadline`](crate::Retry::deadline) others were always
    /// quicker: begin anew, with another guard.
    pub fn commit(
        &mut self,
        connection: &mut Connection,
        transaction: &mut Transaction,
    ) -> Result<(), CommitError> {
        self.send(connection, transaction, |nft, tx| nft.commit(tx))
    }

    /// As [`commit`](Self::commit), and has the kernel tell what came of it, as [`Connection::commit_echo`].
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_echo(
        &mut self,
        connection: &mut Connection,
        transaction: &mut Transaction,
    ) -> Result<Committed, CommitError> {
        self.send(connection, transaction, |nft, tx| nft.commit_echo(tx))
    }

    /// As [`commit`](Self::commit); the generation that was made.
    pub(crate) fn commit_numbered(
        &mut self,
        connection: &mut Connection,
        transaction: &mut Transaction,
    ) -> Result<Option<Generation>, CommitError> {
        self.send(connection, transaction, Connection::commit_numbered)
    }

    /// As [`Connection::check`], if the tables still are as they were read.
    ///
    /// # Errors
    /// As [`commit`](Self::commit) would fail; nothing is ever applied.
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
        let mut sendings = 1;
        loop {
            transaction.expect_generation(self.generation);
            match send(connection, transaction) {
                // The notifications of the commit that was quicker are queued by now: the kernel sends
                // them before it looks at another transaction.
                Err(error)
                    if error.generation_moved()
                        && sendings < SENDINGS
                        && deadline.is_none_or(|time| start.elapsed() < time)
                        && self.advance() => {}
                sent => return sent,
            }
            sendings += 1;
        }
    }

    /// Takes in what is known by now; whether the tables stood still until a newer generation.
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
