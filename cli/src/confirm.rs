//! `--confirm SECONDS`: a change that is undone unless the user confirms it. The verbs `confirm` and `get pending`.
//!
//! A process of its own, the [keeper](keeper), keeps the state before the change, and restores it.

mod before;
pub(crate) mod keeper;
mod record;
pub(crate) mod verbs;

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::{getpgrp, tcgetpgrp};

use chainwright::nft::{Connection, DiffOptions, Scope, Snapshot};

use crate::diff;
use crate::iptables::Locking;
use crate::output::{Error, Exit, causes, counted, eprint_line, note};
pub(crate) use before::Reach;
use keeper::{KeeperRequest, Request};
use record::Record;
pub(crate) use record::State;

/// Undoes a change unless it is confirmed.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Confirm {
    /// Undo the change unless it is confirmed within this time
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS),
        long_help = "Undo the change unless it is confirmed within this time: with Enter on the terminal, or with \
                     `chainwright confirm` from any session. The change is undone even if the terminal, the \
                     connection or this process is gone. Without a terminal, the command exits after the change, \
                     which then waits for `chainwright confirm`. `chainwright get pending` shows the waiting change. \
                     See docs/confirm.md"
    )]
    confirm: Option<u64>,
}

/// The maximum timeout: one day.
const MAX_SECONDS: u64 = 24 * 60 * 60;

impl Confirm {
    /// Runs `change`. With `--confirm`, first keeps the state of these tables; then waits for the confirmation if standard
    /// input is a terminal. A change that fails, even partly, is undone at once.
    pub(crate) fn guard(
        &self,
        reach: Reach,
        locking: Option<&Locking>,
        change: impl FnOnce() -> Result<Exit, Error>,
    ) -> Result<Exit, Error> {
        let Some(seconds) = self.confirm else {
            return change();
        };
        let what = std::env::args_os()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ".as_ref());
        let kept = PendingChange::before(what, seconds, reach, locking)?;
        let before = read_nft(reach);
        match change() {
            Ok(Exit::Done) => {
                if let (Some(before), Some(after)) = (before, read_nft(reach)) {
                    print_changes(&before, &after);
                }
                kept.wait_for_confirmation()
            }
            failed => {
                match kept.undo() {
                    Ok(State::Unchanged) => {}
                    Ok(_) => note("the change failed, and what it had changed was undone"),
                    Err(error) => error.report(),
                }
                failed
            }
        }
    }
}

/// Maximum number of changes to print before the confirmation.
const MAX_CHANGES: usize = 20;

/// Reads nf_tables, if a change may change it. If that fails, prints a note: the user confirms without seeing the changes.
fn read_nft(reach: Reach) -> Option<Snapshot> {
    let read = || Ok(Connection::open_if_loaded()?.snapshot(Scope::all())?);
    let failed = |error: &Error| {
        note(&format!(
            "the changes of nf_tables cannot be shown: {}",
            causes(error)
        ));
    };
    reach.nft.then(read)?.inspect_err(failed).ok()
}

/// Prints what has changed in nf_tables to standard error.
fn print_changes(before: &Snapshot, after: &Snapshot) {
    let Ok(diff) = diff::between(before, after, DiffOptions::default(), false) else {
        return;
    };
    let shown = diff.changes.iter().take(MAX_CHANGES);
    shown
        .flat_map(diff::lines)
        .for_each(|(_, line)| eprint_line(&line));
    match diff.changes.len().saturating_sub(MAX_CHANGES) {
        0 => {}
        more => note(&format!(
            "and {}",
            counted(more, "more change", "more changes")
        )),
    }
}

/// A change that waits for confirmation, and the connection to its keeper.
pub(crate) struct PendingChange {
    keeper: Child,
    stream: BufReader<UnixStream>,
    record: Record,
}

/// Becomes readable when the change is undone.
impl AsFd for PendingChange {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.get_ref().as_fd()
    }
}

impl PendingChange {
    /// Starts a keeper, and waits until it has read the tables.
    ///
    /// # Errors
    /// Then nothing may be changed.
    pub(crate) fn before(
        what: OsString,
        seconds: u64,
        reach: Reach,
        locking: Option<&Locking>,
    ) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            Error::Other(format!(
                "cannot start the process that would undo the change, so nothing was changed: {error}"
            ))
        };
        // The keeper has another working directory.
        let lock = locking.and_then(|locking| locking.policy().0.path());
        let lock = lock.map(std::path::absolute).transpose().map_err(failed)?;
        let what = what.to_string_lossy().into_owned();
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        // This program's own executable: no other program runs.
        let keeper = Command::new("/proc/self/exe")
            .arg0(keeper::NAME)
            .arg(&what)
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let record = Record::new(what);
        let mut kept = Self {
            keeper,
            stream: BufReader::new(ours),
            record: record.clone(),
        };
        kept.send(&Request {
            seconds,
            reach,
            lock,
            wait_seconds: locking.map_or(0, Locking::seconds),
            directory: record::directory(),
            record,
        })?;
        let reason = match kept.receive() {
            Ok(record) if record.state == State::Applying => return Ok(kept),
            Ok(record) => record.reason.unwrap_or_default(),
            Err(_) => "the process that would undo the change has ended".to_owned(),
        };
        Err(Error::Other(format!("nothing was changed: {reason}")))
    }

    fn send(&mut self, message: &impl serde::Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_vec(message).unwrap_or_default();
        line.push(b'\n');
        self.stream
            .get_mut()
            .write_all(&line)
            .map_err(|_| keeper_ended_error())
    }

    /// Receives the next state.
    fn receive(&mut self) -> Result<Record, Error> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(length) if length > 0 => {
                serde_json::from_str(&line).map_err(|_| keeper_ended_error())
            }
            _ => Err(keeper_ended_error()),
        }
    }

    /// Reports that the change is complete; from now on it waits for the confirmation. Returns `false` if nothing was
    /// changed: then nothing waits.
    pub(crate) fn applied(&mut self) -> Result<bool, Error> {
        self.send(&KeeperRequest::Applied)?;
        self.record = self.receive()?;
        Ok(self.record.state != State::Unchanged)
    }

    /// Keeps the change; returns the state that this leads to, because the time may be over.
    pub(crate) fn confirm(mut self) -> Result<State, Error> {
        self.send(&KeeperRequest::Confirm)?;
        self.end()
    }

    /// Restores the state before the change; returns the resulting state.
    pub(crate) fn undo(mut self) -> Result<State, Error> {
        self.send(&KeeperRequest::Undo)?;
        self.end()
    }

    /// Returns how the change ended, after this became readable.
    pub(crate) fn end(mut self) -> Result<State, Error> {
        self.record = self.receive()?;
        // It does nothing more.
        let _ = self.keeper.wait();
        match self.record.state {
            State::Failed => Err(Error::Other(format!(
                "the change could not be undone: {}",
                self.record.reason.unwrap_or_default()
            ))),
            state => Ok(state),
        }
    }

    /// Waits for the confirmation, if a user can answer.
    fn wait_for_confirmation(mut self) -> Result<Exit, Error> {
        if !self.applied()? {
            note("nothing was changed, so there is nothing to confirm");
            return Ok(Exit::Done);
        }
        let until = self.record.until.take().unwrap_or_default();
        if !is_interactive() {
            note(&format!(
                "the change will be undone at {until} unless `chainwright confirm` confirms it"
            ));
            return Ok(Exit::Done);
        }
        // Discards input typed before the prompt.
        let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
        note(&format!(
            "the change will be undone at {until}: press Enter to keep it, or n and Enter to undo it now"
        ));
        let ended = match self.answer()? {
            Answer::Keep => self.confirm(),
            Answer::Undo => self.undo(),
            Answer::None => self.end(),
        };
        Ok(match ended? {
            State::Kept => {
                note("the change is kept");
                Exit::Done
            }
            _ => {
                note("the change was undone");
                Exit::Absent
            }
        })
    }

    /// Waits until a user answers, or the change has ended.
    fn answer(&self) -> Result<Answer, Error> {
        let stdin = io::stdin();
        let mut watched = vec![
            PollFd::new(self.as_fd(), PollFlags::POLLIN),
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
        ];
        loop {
            match poll(&mut watched, PollTimeout::NONE) {
                Ok(_) => {}
                Err(nix::errno::Errno::EINTR) => continue,
                Err(errno) => return Err(Error::Output(errno.into())),
            }
            if watched[0].any().unwrap_or(true) {
                return Ok(Answer::None);
            }
            let mut line = [0; 256];
            match nix::unistd::read(&stdin, &mut line) {
                // The terminal was closed, or the user ended the input: the deadline still applies.
                Ok(0) | Err(_) => watched.truncate(1),
                Ok(length) => {
                    return Ok(match line[..length].trim_ascii() {
                        b"" | b"y" | b"Y" | b"yes" => Answer::Keep,
                        _ => Answer::Undo,
                    });
                }
            }
        }
    }
}

/// The answer of a user.
enum Answer {
    Keep,
    Undo,
    None,
}

/// Returns `true` if a user can answer: standard input is a terminal, and this process may read from it.
fn is_interactive() -> bool {
    let stdin = io::stdin();
    stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp())
}

fn keeper_ended_error() -> Error {
    Error::Other(
        "the process that keeps the state before the change has ended: the change is in force, and will not be undone"
            .into(),
    )
}
