//! Scripts carried out: what they change as one transaction, what they ask for behind it.

use super::list::Options;
use super::monitor::EventFormatter;
use super::parse::Error;
use super::question::{Known, Planned as PlannedNames};
use super::script::{Planned, Script};
#[cfg(feature = "json")]
use super::syntax::Place;
use chainwright::netlink;
#[cfg(feature = "json")]
use chainwright::nft::Committed;
use chainwright::nft::live::{Change, Item, Monitor, MonitorOptions};
use chainwright::nft::{CommitError, Connection, Outcome, SnapshotError, Transaction};

/// How a script is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is committed.
    #[default]
    Commit,
    /// The same, and what it added is told ([`Done::echo`]).
    Echo,
    /// The kernel checks it; nothing is changed.
    Check,
}

/// What came of a script's changes.
#[derive(Debug)]
pub struct Done {
    /// How many operations they were.
    pub operations: usize,
    /// What was added, where that was asked for.
    pub echo: Option<Echo>,
    /// What was read to see that what it asks for is there: [`answers`](super::Question::answer_from) take it.
    pub known: Known,
    /// The handles of what its commands added, with their places; known to an echo.
    #[cfg(feature = "json")]
    pub(super) handles: Vec<(Place, u64)>,
}

/// What a transaction did, as the kernel told of it, and who has words for it.
#[derive(Debug)]
pub struct Echo {
    /// `None` if it changed nothing, or the kernel's message was lost.
    pub change: Option<Change>,
    /// Whether it changed something that the kernel did not tell of.
    pub is_lost: bool,
    /// One that knows what was there before the change, which it is to be told.
    pub formatter: EventFormatter,
}

/// Why a script was not carried out, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The script is wrong, or asks for what is not there. Its changes were not made, if it is said before they were.
    #[error("{0}")]
    Script(Box<Error>),
    /// The kernel refused what these places ask for.
    #[error("{}", Lines(places))]
    Refused {
        /// The places.
        places: Vec<Error>,
        /// Whether nothing was applied, or that cannot be known.
        outcome: Outcome,
    },
    /// It was not committed.
    #[error(transparent)]
    Commit(Box<CommitError>),
    /// The ruleset could not be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A request failed.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
}

impl From<RunError> for chainwright::Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Commit(error) => Self::Commit(error),
            RunError::Snapshot(error) => Self::Snapshot(error),
            RunError::Netlink(error) => Self::Netlink(error),
            error => Self::Other(Box::new(error)),
        }
    }
}

/// Errors one below the other.
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
    /// Carries out what it changes: all of it in one transaction, or nothing. Where it speaks of what must be there, and
    /// others commit meanwhile, it is read again and tried again.
    ///
    /// What it [asks for](Self::questions) is not answered by this, but if something of that will not be there, nothing is
    /// changed. What an echo is told in, the options say.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use chainwright::nft::Connection;
    /// use chainwright_lang::{Mode, Options, Script};
    ///
    /// let mut nft = Connection::open()?;
    /// let options = Options::here();
    /// let script = Script::parse("rules.nft", "add table inet t; list tables")?;
    /// let done = script.run(&mut nft, Mode::Commit, &options)?;
    /// assert_eq!(done.operations, 1);
    /// for question in script.questions() {
    ///     let answer = question.answer(&mut nft)?;
    ///     assert_eq!(answer.listing(&options).to_string(), "table inet t\n");
    /// }
    ///
    /// let script = Script::parse("rules.nft", "add table inet u; list table inet v")?;
    /// assert!(script.run(&mut nft, Mode::Commit, &options).is_err()); // and there is no table u
    /// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Where it depends on what is there, and others change that meanwhile, it begins again, as the connection's
    /// [`with_retry`](Connection::with_retry) says. Of what is there no more is read than what it
    /// speaks of: the ranges of a set that it adds to, a chain that it renames, the rules of a chain of which it counts them.
    ///
    /// # Errors
    /// [`RunError`]
    pub fn run(
        &self,
        nft: &mut Connection,
        mode: Mode,
        options: &Options,
    ) -> Result<Done, RunError> {
        self.run_shown(nft, mode, options, |_| {})
    }

    /// The same, with its transaction shown before each attempt to commit it.
    ///
    /// # Errors
    /// [`RunError`]
    pub fn run_shown(
        &self,
        nft: &mut Connection,
        mode: Mode,
        options: &Options,
        mut show: impl FnMut(&Transaction),
    ) -> Result<Done, RunError> {
        let mut known = Known::new(options);
        if !self.changes_something() {
            if self.questions().nth(1).is_some() {
                self.check_questions(nft, &mut known)?; // a single one says it itself
            }
            return Ok(Done {
                operations: 0,
                echo: None,
                known,
                #[cfg(feature = "json")]
                handles: Vec::new(),
            });
        }
        let mut listener = match mode {
            Mode::Echo => Some(Listener::begin(nft, options)?),
            _ => None,
        };
        let mut needed = self.needed();
        let mut attempts = nft.retry().begin();
        nft.look_for_open_ranges(&mut needed)?;
        loop {
            let now = match needed.is_empty() {
                true => None,
                false => Some(nft.needed(&needed)?),
            };
            self.check_questions(nft, &mut known)?;
            let change = match self.changes(now.as_ref(), &needed) {
                Ok(Planned::Change(change)) => change,
                Ok(Planned::Lacks(set)) => {
                    needed.sets.insert(set, true);
                    continue;
                }
                Err(error) => return Err(RunError::Script(Box::new(error))),
            };
            let operations = change.transaction().len();
            show(change.transaction());
            let committed = match (&mut listener, mode) {
                (Some(listener), _) => listener.commit(nft, change.transaction()).map(Some),
                (None, Mode::Check) => nft.check(change.transaction()).map(|()| None),
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
                    return Ok(Done {
                        operations,
                        echo,
                        known,
                        #[cfg(feature = "json")]
                        handles,
                    });
                }
                Err(error) => error,
            };
            if error.generation_moved() && attempts.again() {
                continue;
            }
            let places = change.explain(&error);
            return Err(match places.is_empty() {
                true => RunError::Commit(Box::new(error)),
                false => RunError::Refused {
                    places,
                    outcome: error.outcome,
                },
            });
        }
    }

    /// Whether what is asked for will be there.
    fn check_questions(&self, nft: &mut Connection, known: &mut Known) -> Result<(), RunError> {
        let mut planned = PlannedNames::default();
        for command in self.commands() {
            match command.is_question() {
                false => planned.take(command),
                true => self.question(command).check_by(nft, known, &planned)?,
            }
        }
        Ok(())
    }
}

/// Who is told of what is committed.
struct Listener {
    monitor: Monitor,
    formatter: EventFormatter,
}

/// What was told of it.
struct Heard {
    #[cfg(feature = "json")]
    committed: Committed,
    change: Option<Change>,
    is_lost: bool,
}

impl Listener {
    fn begin(nft: &mut Connection, options: &Options) -> Result<Self, netlink::Error> {
        // What is told from here on is later than what is known.
        let monitor = MonitorOptions::default().open_beside(nft)?;
        Ok(Self {
            monitor,
            formatter: EventFormatter::new(nft, options.clone())?,
        })
    }

    fn commit(
        &mut self,
        nft: &mut Connection,
        transaction: &Transaction,
    ) -> Result<Heard, CommitError> {
        let committed = nft.commit_echo(transaction)?;
        let (mut told, mut is_lost) = (None, false);
        if committed.generation().is_some() || !committed.is_whole() {
            // The kernel has told of it by now.
            while let Ok(Some(item)) = self.monitor.try_receive() {
                let Item::Change(change) = item else {
                    continue;
                };
                if committed.made(&change) {
                    told = Some(change);
                    break;
                }
                self.formatter.format(&change); // somebody else's, before it
            }
            is_lost = told.is_none();
        } // else it changed nothing
        Ok(Heard {
            #[cfg(feature = "json")]
            committed,
            change: told,
            is_lost,
        })
    }
}
