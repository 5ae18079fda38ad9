//! The process that keeps the state before a change, and restores it unless the change is confirmed.
//!
//! The command starts it from its own executable before the change. It has a session of its own, so that the end of a
//! terminal does not reach it, and is in the command's network namespace. Its standard input is a socket to the command,
//! whose end it notices; other processes connect to a socket in the [directory](super::record::directory).

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use chainwright::Retry;
use chainwright::legacy::LockPolicy;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{getppid, setsid};
use serde::{Deserialize, Serialize};

use super::before::{Changed, Reach, Tables};
use super::record::{Files, Record, State, time};
use crate::output::causes;

/// The name of the process, which selects it instead of a verb.
pub(super) const NAME: &str = "chainwright-keeper";

/// The first message of the command.
#[derive(Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) seconds: u64,
    pub(super) reach: Reach,
    /// The file with the lock of the legacy tables.
    pub(super) lock: Option<PathBuf>,
    pub(super) wait_seconds: u64,
    pub(super) directory: PathBuf,
    pub(super) record: Record,
}

/// A request of the command or another process. The keeper replies with a [`Record`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KeeperRequest {
    /// The change is complete. Only from the command.
    Applied,
    /// Keep the change.
    Confirm,
    /// Restore the state before. Only from the command.
    Undo,
    /// Only report the state.
    Status,
}

/// The maximum time for the change itself, if this is more than the time for its confirmation. Then the command is
/// killed, because it could still change something after the state before is restored.
const APPLYING: Duration = Duration::from_secs(60);

/// The reason for undoing such a change.
const ENDED: &str = "the command ended before the change was complete";

/// The maximum time to receive a request or to send a reply.
const REQUEST: Duration = Duration::from_secs(1);

/// Runs the keeper, if this process was started as one. Returns the exit code.
pub(crate) fn called(words: &[OsString]) -> Option<ExitCode> {
    let is_keeper = words.first().is_some_and(|name| name == NAME);
    is_keeper.then(|| match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn run() -> io::Result<()> {
    close_inherited();
    // Only SIGTERM is read. All others are ignored: nothing may end this process before it has restored the state.
    SigSet::all().thread_block()?;
    let terminate: SigSet = [Signal::SIGTERM].into_iter().collect();
    let signals = SignalFd::with_flags(&terminate, SfdFlags::SFD_CLOEXEC)?;
    setsid()?;
    let _ = nix::sys::prctl::set_name(c"chainwright-keep");
    // The kernel must not choose this process when memory is short. This takes a privilege.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let command = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    command.set_read_timeout(Some(REQUEST))?;
    command.set_write_timeout(Some(REQUEST))?;
    let mut command = BufReader::new(command);
    let request: Request = serde_json::from_slice(&line(&mut command)?)?;
    let mut record = request.record.clone();
    record.keeper = std::process::id();
    match Keeper::start(request, record.clone()) {
        Ok((keeper, listener)) => keeper.keep(command, &listener, &signals),
        Err(reason) => {
            record.state = State::Failed;
            record.reason = Some(reason);
            reply(command.get_mut(), &record)
        }
    }
}

/// Closes descriptors that the command's caller left open: it may wait for the end of a pipe.
fn close_inherited() {
    let all = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // One of them is the directory, which is closed then.
    for number in numbers.collect::<Vec<_>>() {
        if number > 2 {
            let _ = nix::unistd::close(number);
        }
    }
}

/// Reads a line; an empty one at the end.
fn line(stream: &mut BufReader<UnixStream>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line)?;
    Ok(line)
}

fn reply(stream: &mut UnixStream, record: &Record) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    stream.write_all(&line)
}

struct Keeper {
    files: Files,
    record: Record,
    before: Tables,
    seconds: u64,
    reach: Reach,
    lock: LockPolicy,
    wait: Retry,
    /// Held until the process ends.
    _only: nix::fcntl::Flock<std::fs::File>,
}

/// An event in the keeper.
enum Event {
    /// A request of the command.
    Command(KeeperRequest),
    /// The command has ended.
    Gone,
    /// Another process confirms; it receives the result.
    Confirm(UnixStream),
    /// SIGTERM.
    Terminated,
    /// The time is over.
    Over,
}

impl Keeper {
    /// Becomes the keeper of this network namespace, and reads the tables. The error is for the user.
    fn start(request: Request, record: Record) -> Result<(Self, UnixListener), String> {
        let of_file = |error: io::Error| error.to_string();
        let files = Files::here(request.directory).map_err(|error| causes(&error))?;
        let Some(only) = files.lock().map_err(of_file)? else {
            let first = files.read().ok().flatten().map(|first| {
                let (what, by, since) = (&first.what, first.by(), &first.since);
                format!(": `{what}`, by {by}, since {since}")
            });
            return Err(format!(
                "another change waits for its confirmation{} (see `chainwright get pending`)",
                first.unwrap_or_default()
            ));
        };
        let socket = files.socket();
        // Left by a keeper that was killed.
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| format!("{}: {error}", socket.display()))?;
        let keeper = Self {
            before: Tables::read(request.reach).map_err(|error| causes(&error))?,
            seconds: request.seconds,
            reach: request.reach,
            lock: request.lock.map_or(LockPolicy::None, LockPolicy::Path),
            wait: match request.wait_seconds {
                0 => Retry::ONCE,
                seconds => Retry::within(Duration::from_secs(seconds)),
            },
            files,
            record,
            _only: only,
        };
        keeper.files.write(&keeper.record).map_err(of_file)?;
        Ok((keeper, listener))
    }

    /// Waits for the change and its confirmation.
    fn keep(
        mut self,
        command: BufReader<UnixStream>,
        listener: &UnixListener,
        signals: &SignalFd,
    ) -> io::Result<()> {
        let mut command = Some(command);
        self.report(&mut command);
        let timeout = Duration::from_secs(self.seconds);

        // The change.
        let mut deadline = Instant::now() + timeout.max(APPLYING);
        let undo_now = loop {
            match self.next(&mut command, listener, signals, deadline) {
                Event::Command(KeeperRequest::Applied) => break None,
                Event::Command(_) => break Some("the change failed"),
                Event::Gone => break Some(ENDED),
                // It would leave the change half-done.
                Event::Confirm(mut stream) => drop(reply(&mut stream, &self.record)),
                Event::Terminated | Event::Over => {
                    if !self.kill_command() {
                        break Some(ENDED);
                    }
                    deadline = Instant::now() + APPLYING;
                }
            }
        };
        let changed = match Tables::read(self.reach) {
            Ok(after) => self.before.changed(&after),
            // Then any of them may be changed.
            Err(_) => self.before.all(),
        };
        self.record.tables = changed.names();
        if changed.is_empty() {
            return self.end(State::Unchanged, None, &mut command, None);
        }
        if let Some(reason) = undo_now {
            return self.undo(&changed, reason, &mut command);
        }

        // The confirmation.
        let deadline = Instant::now() + timeout;
        self.record.state = State::Waiting;
        self.record.until = Some(time(SystemTime::now() + timeout));
        let _ = self.files.write(&self.record);
        self.report(&mut command);
        let reason = loop {
            match self.next(&mut command, listener, signals, deadline) {
                Event::Command(KeeperRequest::Confirm) => {
                    return self.end(State::Kept, None, &mut command, None);
                }
                Event::Confirm(stream) => {
                    return self.end(State::Kept, None, &mut command, Some(stream));
                }
                Event::Command(KeeperRequest::Undo) => break "as requested".to_owned(),
                // Another session may confirm it.
                Event::Command(_) | Event::Gone => {}
                Event::Terminated => {
                    break "the process that kept the state before was terminated".to_owned();
                }
                Event::Over => break format!("not confirmed within {} s", self.seconds),
            }
        };
        self.undo(&changed, &reason, &mut command)
    }

    /// Kills the command; returns `false` if it has ended.
    fn kill_command(&self) -> bool {
        let parent = getppid();
        // Afterwards this process has another parent.
        u32::try_from(parent.as_raw()) == Ok(self.record.process)
            && kill(parent, Signal::SIGKILL).is_ok()
    }

    /// Waits for the next event.
    fn next(
        &self,
        command: &mut Option<BufReader<UnixStream>>,
        listener: &UnixListener,
        signals: &SignalFd,
        deadline: Instant,
    ) -> Event {
        loop {
            if let Some(stream) = command
                .as_mut()
                .filter(|stream| !stream.buffer().is_empty())
            {
                return Self::of_command(stream).unwrap_or(Event::Gone);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Event::Over;
            }
            // Rounded up, so that the last wait is not too short.
            let left =
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            let mut watched = vec![
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            ];
            watched.extend(
                command
                    .iter()
                    .map(|stream| PollFd::new(stream.get_ref().as_fd(), PollFlags::POLLIN)),
            );
            if poll(&mut watched, left).is_err() {
                continue;
            }
            let ready: Vec<_> = watched.iter().map(|fd| fd.any().unwrap_or(true)).collect();
            if ready[0] && matches!(signals.read_signal(), Ok(Some(_))) {
                return Event::Terminated;
            }
            if let Some(stream) = command.as_mut().filter(|_| ready.get(2) == Some(&true)) {
                let event = Self::of_command(stream);
                if event.is_none() {
                    *command = None;
                }
                return event.unwrap_or(Event::Gone);
            }
            if ready[1]
                && let Ok((stream, _)) = listener.accept()
                && let Some(stream) = self.serve(stream)
            {
                return Event::Confirm(stream);
            }
        }
    }

    /// Reads a request of the command; `None` at its end.
    fn of_command(stream: &mut BufReader<UnixStream>) -> Option<Event> {
        let line = line(stream).ok()?;
        serde_json::from_slice(&line).ok().map(Event::Command)
    }

    /// Answers another process; returns it if it confirms.
    fn serve(&self, stream: UnixStream) -> Option<UnixStream> {
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(REQUEST)).ok()?;
        stream.set_write_timeout(Some(REQUEST)).ok()?;
        let mut stream = BufReader::new(stream);
        let request: KeeperRequest = serde_json::from_slice(&line(&mut stream).ok()?).ok()?;
        let mut stream = stream.into_inner();
        if request == KeeperRequest::Confirm {
            return Some(stream);
        }
        reply(&mut stream, &self.record).ok()?;
        None
    }

    /// Reports the state to the command. If it has ended, `next` notices that.
    fn report(&self, command: &mut Option<BufReader<UnixStream>>) {
        if let Some(stream) = command {
            let _ = reply(stream.get_mut(), &self.record);
        }
    }

    fn undo(
        self,
        changed: &Changed,
        reason: &str,
        command: &mut Option<BufReader<UnixStream>>,
    ) -> io::Result<()> {
        match self.before.restore(changed, &self.lock, self.wait) {
            Ok(()) => self.end(State::Undone, Some(reason.to_owned()), command, None),
            Err(errors) => {
                let reason = format!("{reason}, but {}", errors.join("; "));
                self.end(State::Failed, Some(reason), command, None)
            }
        }
    }

    /// Records how the change ended, and reports it.
    fn end(
        mut self,
        state: State,
        reason: Option<String>,
        command: &mut Option<BufReader<UnixStream>>,
        other: Option<UnixStream>,
    ) -> io::Result<()> {
        self.record.state = state;
        self.record.reason = reason;
        let written = self.files.write(&self.record);
        let _ = std::fs::remove_file(self.files.socket());
        match state {
            State::Undone => log(NOTICE, &format!("undone: {}", self.summary())),
            State::Failed => log(ERROR, &format!("could not be undone: {}", self.summary())),
            _ => {}
        }
        self.report(command);
        if let Some(mut stream) = other {
            reply(&mut stream, &self.record)?;
        }
        written
    }

    fn summary(&self) -> String {
        let Record { what, reason, .. } = &self.record;
        let reason = reason.as_deref().unwrap_or_default();
        format!("`{what}` by {}: {reason}", self.record.by())
    }
}

/// Priorities in the system's log, of the facility for daemons.
const NOTICE: u8 = 3 << 3 | 5;
const ERROR: u8 = 3 << 3 | 3;

/// Writes a line to the system's log, if there is one.
fn log(priority: u8, message: &str) {
    let message = message.replace(char::is_control, " ");
    let line = format!("<{priority}>chainwright[{}]: {message}", std::process::id());
    if let Ok(socket) = UnixDatagram::unbound() {
        let _ = socket.set_nonblocking(true);
        let _ = socket.send_to(line.as_bytes(), Path::new("/dev/log"));
    }
}
