//! The file that describes the last change with `--confirm` of a network namespace.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chainwright::netns::Netns;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{User, geteuid, getuid};
use serde::{Deserialize, Serialize};

use crate::output::Error;

/// The environment variable that names another directory.
const VARIABLE: &str = "CHAINWRIGHT_STATE_DIR";
const DIRECTORY: &str = "/run/chainwright";

/// Returns the directory of the files.
pub(super) fn directory() -> PathBuf {
    match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => std::path::absolute(&path).unwrap_or_else(|_| path.into()),
        None => DIRECTORY.into(),
    }
}

/// A change, and its outcome.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) state: State,
    /// The arguments of the command.
    pub(super) what: String,
    pub(super) user: String,
    pub(super) process: u32,
    /// The address of the client, if the user is connected by ssh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    /// The keeper process.
    pub(super) keeper: u32,
    pub(super) since: String,
    /// The end of the time for a confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<String>,
    /// The changed tables: `nft ip filter`.
    pub(super) tables: Vec<String>,
    /// Why it was undone, or could not be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// The command has not reported yet that the change is complete.
    Applying,
    /// The change waits for the confirmation.
    Waiting,
    /// Confirmed.
    Kept,
    /// The state before is restored.
    Undone,
    /// The command changed nothing.
    Unchanged,
    /// The change was not allowed, or could not be undone.
    Failed,
}

impl Record {
    /// Describes a change of this process.
    pub(super) fn new(what: String) -> Self {
        let uid = getuid();
        let name = User::from_uid(uid).ok().flatten();
        let name = name.map_or_else(|| format!("user {uid}"), |user| user.name);
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            state: State::Applying,
            what,
            user: match variable("SUDO_USER") {
                Some(user) if uid.is_root() => format!("{user} as {name}"),
                _ => name,
            },
            process: std::process::id(),
            from: variable("SSH_CONNECTION")
                .and_then(|all| Some(all.split_whitespace().next()?.to_owned())),
            keeper: 0,
            since: time(SystemTime::now()),
            until: None,
            tables: Vec::new(),
            reason: None,
        }
    }

    /// Returns who made the change.
    pub(super) fn by(&self) -> String {
        let from = self.from.as_ref().map(|from| format!(", from {from}"));
        let (user, process) = (&self.user, self.process);
        format!("{user} (process {process}{})", from.unwrap_or_default())
    }
}

/// Formats a time.
pub(super) fn time(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

/// The files of a network namespace.
pub(super) struct Files {
    directory: PathBuf,
    stem: String,
}

impl Files {
    /// Returns the files of this thread's network namespace. Creates nothing.
    pub(super) fn here(directory: PathBuf) -> Result<Self, Error> {
        let stem = format!("net-{}", Netns::current()?.id().inode);
        Ok(Self { directory, stem })
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.stem))
    }

    /// Returns the path of the keeper's socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    /// Creates the directory, and takes the lock that only one keeper can hold; `None` if another one holds it.
    pub(super) fn lock(&self) -> io::Result<Option<Flock<File>>> {
        let name = |error| {
            let path = self.directory.display();
            io::Error::other(format!("{path}: {error}"))
        };
        let mut builder = DirBuilder::new();
        match builder.mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(name(error)),
            _ => {}
        }
        check_directory(&self.directory).map_err(name)?;
        let file = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(self.path("lock"))
            .map_err(name)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(lock)),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(name(errno.into())),
        }
    }

    /// Replaces the record.
    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        serde_json::to_writer(&mut file, record)?;
        file.flush()?;
        file.persist(self.path("json"))?;
        Ok(())
    }

    /// Returns the last record, if there is one.
    pub(super) fn read(&self) -> Result<Option<Record>, Error> {
        let path = self.path("json");
        let failed = |error: io::Error| Error::Other(format!("{}: {error}", path.display()));
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| failed(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Connects to the keeper; `None` if there is none.
    pub(super) fn connect(&self) -> Result<Option<UnixStream>, Error> {
        let path = self.socket();
        match UnixStream::connect(&path) {
            Ok(stream) => Ok(Some(stream)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(Error::Other(format!("{}: {error}", path.display()))),
        }
    }
}

/// Rejects a directory in which other users could create or read files.
fn check_directory(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    match found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(io::Error::other(
            "not a directory of this user with mode 0700",
        )),
    }
}
