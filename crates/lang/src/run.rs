//! Runs scripts: the changes in one transaction; the queries afterwards.

use super::list::Options;
use super::monitor::EventFormatter;
use super::parse::Error;
use super::query::{Planned as PlannedNames, QueryCache};
use super::script::{Planned, Script};
#[cfg(feature = "json")]
use super::syntax::Span;
use chainwright::ErrorKind;
use chainwright::netlink;
#[cfg(feature = "json")]
use chainwright::nft::Committed;
use chainwright::nft::live::{Change, Item, Monitor, MonitorOptions};
use chainwright::nft::{CommitError, Connection, Outcome, SnapshotError, Transaction};

/// The mode in which to run a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunMode {
    /// Commits the transaction.
    #[default]
    Commit,
    /// Commits the transaction and reports the added objects ([`RunOutcome::echo`]).
    Echo,
    /// Lets the kernel check the transaction; nothing changes.
    Check,
}

/// Result of running a script's changes.
#[derive(Debug)]
pub struct RunOutcome {
    /// Number of operations in the transaction.
    pub operations: usize,
    /// The added objects, in the mode `Echo`.
    pub echo: Option<Echo>,
    /// Tables read to check that queried objects exist. Pass them to [`answer_cached`](super::Query::answer_cached).
    pub cache: QueryCache,
    /// Handles of the objects that commands added, with the commands' locations; only in the mode `Echo`.
    #[cfg(feature = "json")]
    pub(super) handles: Vec<(Span, u64)>,
}

/// Events of a transaction, with a formatter for them.
#[derive(Debug)]
pub struct Echo {
    /// `None` if the transaction changed nothing, or the event was lost.
    pub change: Option<Change>,
    /// Whether the transaction changed something and its event was lost.
    pub is_lost: bool,
    /// Formatter that knows the ruleset before the change. Pass it `change`.
    pub formatter: EventFormatter,
}

/// Error while running a script.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The script is invalid, or refers to a missing object. [`Script::run`] reports this before it changes anything.
    #[error("{0}")]
    Script(Box<Error>),
    /// The kernel rejected the commands at these locations.
    #[error("{}", Lines(errors))]
    Refused {
        /// Locations of the commands.
        errors: Vec<Error>,
        /// Whether nothing was applied, or the outcome is unknown.
        outcome: Outcome,
    },
    /// The commit failed.
    #[error(transparent)]
    Commit(Box<CommitError>),
    /// Reading the ruleset failed.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A netlink request failed.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
}

chainwright::debug_as_message!(RunError);

chainwright::classified!(RunError, |error| match error {
    Self::Script(error) => error.class(),
    Self::Refused { errors, .. } => match errors.first() {
        Some(error) => error.class(),
        None => ErrorKind::Invalid.into(),
    },
    Self::Commit(error) => error.class(),
    Self::Snapshot(error) => error.class(),
    Self::Netlink(error) => error.class(),
});

impl From<RunError> for chainwright::Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Commit(error) => Self::Commit(error),
            RunError::Snapshot(error) => Self::Snapshot(error),
            RunError::Netlink(error) => Self::Netlink(error),
            error => {
                let class = error.class();
                Self::other(error, class)
            }
        }
    }
}

/// Prints errors, one per line.
struct Lines<'e>(&'e [Error]);

impl std::fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl Script {
    /// Applies the script's changes in one transaction: all or nothing.
    ///
    /// [Queries](Self::queries) are not run. But if one of them refers to an object that will not exist, nothing is
    /// changed. The options apply to the formatter of the echo.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use chainwright::nft::Connection;
    /// use chainwright_lang::{RunMode, Options, Script};
    ///
    /// let mut nft = Connection::open()?;
    /// let options = Options::here();
    /// let script = Script::parse("rules.nft", "add table inet t; list tables")?;
    /// let done = script.run(&mut nft, RunMode::Commit, &options)?;
    /// assert_eq!(done.operations, 1);
    /// for query in script.queries() {
    ///     let answer = query.answer(&mut nft)?;
    ///     assert_eq!(answer.listing(&options).to_string(), "table inet t\n");
    /// }
    ///
    /// let script = Script::parse("rules.nft", "add table inet u; list table inet v")?;
    /// assert!(script.run(&mut nft, RunMode::Commit, &options).is_err()); // and there is no table u
    /// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If the transaction depends on the current ruleset and another process commits meanwhile, the ruleset is read
    /// again and the commit retried, as set by the connection's [`with_retry`](Connection::with_retry). Only the
    /// needed parts of the ruleset are read: intervals of a set that the script adds to, a chain that it renames, the
    /// rules of a chain that it refers to by index.
    ///
    /// # Errors
    /// [`RunError`]
    pub fn run(
        &self,
        nft: &mut Connection,
        mode: RunMode,
        options: &Options,
    ) -> Result<RunOutcome, RunError> {
        self.run_with_preview(nft, mode, options, |_| {})
    }

    /// Applies the changes like [`run`](Self::run), and passes the transaction to `show` before each attempt to commit
    /// it.
    ///
    /// # Errors
    /// [`RunError`]
    pub fn run_with_preview(
        &self,
        nft: &mut Connection,
        mode: RunMode,
        options: &Options,
        mut show: impl FnMut(&Transaction),
    ) -> Result<RunOutcome, RunError> {
        let mut known = QueryCache::new(options);
        if !self.changes_something() {
            if self.queries().nth(1).is_some() {
                self.check_queries(nft, &mut known)?; // a single query reports missing objects when it runs
            }
            return Ok(RunOutcome {
                operations: 0,
                echo: None,
                cache: known,
                #[cfg(feature = "json")]
                handles: Vec::new(),
            });
        }
        let mut listener = match mode {
            RunMode::Echo => Some(EchoListener::begin(nft, options)?),
            _ => None,
        };
        let mut needed = self.needed();
        let mut attempts = nft.retry().begin();
        nft.find_open_ranges(&mut needed)?;
        loop {
            let now = match needed.is_empty() {
                true => None,
                false => Some(nft.needed(&needed)?),
            };
            self.check_queries(nft, &mut known)?;
            let change = match self.changes(now.as_ref(), &needed) {
                Ok(Planned::Compiled(change)) => change,
                Ok(Planned::NeedsElements(set)) => {
                    needed.sets.insert(set, true);
                    continue;
                }
                Err(error) => return Err(RunError::Script(Box::new(error))),
            };
            let operations = change.transaction().len();
            show(change.transaction());
            let committed = match (&mut listener, mode) {
                (Some(listener), _) => listener.commit(nft, change.transaction()).map(Some),
                (None, RunMode::Check) => nft.check(change.transaction()).map(|()| None),
                (None, _) => nft.commit(change.transaction()).map(|()| None),
            };
            let error = match committed {
                Ok(heard) => {
                    #[cfg(feature = "json")]
                    let handles = heard
                        .as_ref()
                        .map(|heard| change.handles(&heard.committed))
                        .unwrap_or_default();
                    let echo = heard.zip(listener).map(|(heard, listener)| Echo {
                        change: heard.change,
                        is_lost: heard.is_lost,
                        formatter: listener.formatter,
                    });
                    return Ok(RunOutcome {
                        operations,
                        echo,
                        cache: known,
                        #[cfg(feature = "json")]
                        handles,
                    });
                }
                Err(error) => error,
            };
            if error.generation_moved() && attempts.again() {
                continue;
            }
            let errors = change.explain(&error);
            return Err(match errors.is_empty() {
                true => RunError::Commit(Box::new(error)),
                false => RunError::Refused {
                    errors,
                    outcome: error.outcome,
                },
            });
        }
    }

    /// Checks that the objects of all queries will exist.
    fn check_queries(&self, nft: &mut Connection, known: &mut QueryCache) -> Result<(), RunError> {
        let mut planned = PlannedNames::default();
        for command in self.commands() {
            match command.is_query() {
                false => planned.take(command),
                true => self.query(command).check_by(nft, known, &planned)?,
            }
        }
        Ok(())
    }
}

/// Listens for the event of a commit.
struct EchoListener {
    monitor: Monitor,
    formatter: EventFormatter,
}

/// Result of a commit, with its event.
struct EchoedCommit {
    #[cfg(feature = "json")]
    committed: Committed,
    change: Option<Change>,
    is_lost: bool,
}

impl EchoListener {
    fn begin(nft: &mut Connection, options: &Options) -> Result<Self, netlink::Error> {
        // Subscribe before reading the ruleset, so that no change is missed.
        let monitor = MonitorOptions::default().open_in_namespace_of(nft)?;
        Ok(Self {
            monitor,
            formatter: EventFormatter::new(nft, options.clone())?,
        })
    }

    fn commit(
        &mut self,
        nft: &mut Connection,
        transaction: &Transaction,
    ) -> Result<EchoedCommit, CommitError> {
        let committed = nft.commit_echo(transaction)?;
        let (mut echoed, mut is_lost) = (None, false);
        if committed.generation().is_some() || !committed.is_complete() {
            // The kernel has sent the event by now.
            while let Ok(Some(item)) = self.monitor.try_receive() {
                let Item::Change(change) = item else {
                    continue;
                };
                if committed.matches(&change) {
                    echoed = Some(change);
                    break;
                }
                self.formatter.format(&change); // another process's commit before this one
            }
            is_lost = echoed.is_none();
        } // else nothing changed
        Ok(EchoedCommit {
            #[cfg(feature = "json")]
            committed,
            change: echoed,
            is_lost,
        })
    }
}
