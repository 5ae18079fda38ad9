//! The lock of the legacy tools.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use nix::fcntl::FlockArg;

use super::Error;
use crate::Retry;
use crate::errno::Errno;

/// The file that the legacy tools lock, unless [`LOCK_VARIABLE`] names another.
pub const LOCK_FILE: &str = "/run/xtables.lock";

/// The environment variable that names the lock file of the legacy tools.
pub const LOCK_VARIABLE: &str = "XTABLES_LOCKFILE";

/// The lock to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockPolicy {
    /// No lock: only if no other process changes these tables, for instance in a private network namespace.
    None,
    /// The lock that the legacy tools take: the file named by the environment variable `XTABLES_LOCKFILE`, else
    /// `/run/xtables.lock`.
    Standard,
    /// This file.
    Path(PathBuf),
}

impl LockPolicy {
    /// Returns the file to lock.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Self::None => None,
            Self::Standard => Some(match std::env::var_os(LOCK_VARIABLE) {
                // Unlike the tools, which use an empty value as a path and fail.
                Some(path) if !path.is_empty() => PathBuf::from(path),
                _ => PathBuf::from(LOCK_FILE),
            }),
            Self::Path(path) => Some(path.clone()),
        }
    }
}

/// The lock of the legacy tools: while it exists, none of them changes (or lists) a table.
///
/// It is a `flock` on a file, for all families and all network namespaces that see the same file. Hold it from before
/// reading a table until after replacing it. nf_tables tools, including `iptables-nft`, do not take it. A child process
/// after `fork` without `exec` holds the lock as well.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct Lock {
    /// `None` for [`LockPolicy::None`].
    file: Option<File>,
}

impl Lock {
    /// Takes the lock; while another process holds it, retries as `retry` specifies.
    ///
    /// Creates the lock file if it does not exist, as the legacy tools do: empty, with mode 0600. The file is not
    /// removed.
    ///
    /// # Errors
    /// - [`Error::Locked`] if another process holds it during all attempts;
    /// - [`Error::LockFile`] if the file cannot be opened or locked.
    pub fn take(policy: &LockPolicy, retry: Retry) -> Result<Self, Error> {
        let Some(path) = policy.path() else {
            return Ok(Self { file: None });
        };
        let failed = |errno| Error::LockFile {
            path: path.clone(),
            errno,
        };
        // O_CLOEXEC is always set by `std`.
        let file = OpenOptions::new()
            .read(true)
            // Prevents `open` from waiting for the writer of a FIFO.
            .custom_flags(libc::O_CREAT | libc::O_NONBLOCK | libc::O_NOCTTY)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed(Errno::of(&error)))?;
        let mut attempts = retry.begin();
        loop {
            match flock(&file, FlockArg::LockExclusiveNonblock) {
                Ok(()) => return Ok(Self { file: Some(file) }),
                Err(nix::errno::Errno::EINTR) => continue,
                Err(nix::errno::Errno::EWOULDBLOCK) => {}
                Err(other) => return Err(failed(Errno::new(other as i32))),
            }
            if !attempts.again() {
                return Err(Error::Locked {
                    holder: LockHolder::of(&file),
                    path,
                    waited: attempts.elapsed(),
                });
            }
        }
    }

    /// Returns `true` if a lock is held ([`LockPolicy::None`] takes none).
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.file.is_some()
    }
}

impl Drop for Lock {
    /// Releases the lock immediately, even if a child process holds the file too. If that fails, the kernel releases it
    /// when the last holder closes the file.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = flock(file, FlockArg::Unlock);
        }
    }
}

/// Calls `flock`. (nix's own guard panics if releasing the lock fails.)
fn flock(file: &File, how: FlockArg) -> nix::Result<()> {
    #[allow(deprecated)]
    nix::fcntl::flock(file.as_raw_fd(), how)
}

/// The process that holds a lock, according to `/proc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// The process that took the lock, in the pid namespace of `/proc`. It may have ended since, while a child process
    /// still holds the lock.
    pub pid: u32,
    /// The name of the process (`comm`), if it still exists.
    pub name: Option<BString>,
}

/// Maximum number of bytes of `/proc/locks` to read.
const MAX_LOCKS_LENGTH: u64 = 1 << 20;

impl LockHolder {
    /// Finds the process that holds the lock of a file.
    fn of(file: &File) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        let mut locks = Vec::new();
        let all = File::open("/proc/locks").ok()?;
        all.take(MAX_LOCKS_LENGTH).read_to_end(&mut locks).ok()?;
        let pid = holder(&locks, metadata.dev(), metadata.ino())?;
        let name = fs::read(format!("/proc/{pid}/comm")).ok();
        Some(Self {
            pid,
            name: name.map(|name| BString::from(name.trim_end_with(|c| c == '\n'))),
        })
    }
}

impl fmt::Display for LockHolder {
    /// Writes `iptables (process 1234)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} (process {})", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// Finds the process in `/proc/locks` that holds a `flock` on a file.
///
/// A line is `1: FLOCK  ADVISORY  WRITE 1234 00:19:567 0 EOF`: the process, then the device (major and minor number in
/// hexadecimal) and the inode. A line of a waiting process has `->` after its number.
fn holder(locks: &[u8], device: u64, inode: u64) -> Option<u32> {
    let mut same_inode = None;
    for line in locks.lines() {
        let fields: Vec<&BStr> = line
            .fields_with(|c| c == ' ')
            .map(ByteSlice::as_bstr)
            .take(6)
            .collect();
        let [_, kind, _, _, pid, place] = fields[..] else {
            continue;
        };
        if kind != "FLOCK" {
            continue;
        }
        let parse = |pid: &BStr| pid.to_str().ok()?.parse::<u32>().ok();
        let (Some(pid), Some((on, number))) = (parse(pid), place_of(place)) else {
            continue;
        };
        if number != inode {
            continue;
        }
        if on == (libc::major(device), libc::minor(device)) {
            return Some(pid);
        }
        // Some file systems (btrfs) report another device here than in a file's metadata.
        same_inode = same_inode.or(Some(pid));
    }
    same_inode
}

/// Parses device and inode from `00:19:567`.
fn place_of(text: &BStr) -> Option<((u32, u32), u64)> {
    let mut parts = text.to_str().ok()?.split(':');
    let mut hexadecimal = || u32::from_str_radix(parts.next()?, 16).ok();
    let device = (hexadecimal()?, hexadecimal()?);
    Some((device, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The format of Linux 6.18.
    const LOCKS: &[u8] = b"1: POSIX  ADVISORY  WRITE 311 00:1b:43 0 EOF
2: FLOCK  ADVISORY  WRITE 4711 fd:0a:43 0 EOF
2: -> FLOCK  ADVISORY  WRITE 4712 fd:0a:43 0 EOF
3: FLOCK  ADVISORY  READ 77 00:1b:43 0 EOF
4: FLOCK  ADVISORY
5: FLOCK  ADVISORY  WRITE x fd:0a:44 0 EOF
";

    #[test]
    fn finds_the_holder_in_proc_locks() {
        let device = libc::makedev(0xfd, 0x0a);
        assert_eq!(holder(LOCKS, device, 43), Some(4711));
        assert_eq!(holder(LOCKS, libc::makedev(0, 0x1b), 43), Some(77));
        assert_eq!(holder(LOCKS, device, 44), None);
        assert_eq!(holder(LOCKS, device, 45), None);
        // An unknown device: the first lock with that inode.
        assert_eq!(holder(LOCKS, libc::makedev(9, 9), 43), Some(4711));
        assert_eq!(holder(b"", device, 43), None);
        assert_eq!(holder(&[0xff; 99], device, 43), None);
    }

    #[test]
    fn locks_a_fifo_without_blocking() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let policy = LockPolicy::Path(path);
        let lock = Lock::take(&policy, Retry::ONCE).unwrap();
        let error = Lock::take(&policy, Retry::ONCE).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        drop(lock);
    }

    #[test]
    fn the_lock_is_exclusive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let policy = LockPolicy::Path(path.clone());
        let lock = Lock::take(&policy, Retry::ONCE).unwrap();
        assert!(lock.is_held());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o177, 0);
        let short = Retry::within(Duration::from_millis(5));
        let error = Lock::take(&policy, short).unwrap_err();
        let Error::Locked {
            holder: Some(holder),
            waited,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(holder.pid, std::process::id());
        assert!(*waited >= Duration::from_millis(5));
        assert!(error.to_string().contains(&holder.to_string()), "{error}");
        // Without a lock there is no waiting.
        let none = Lock::take(&LockPolicy::None, Retry::ONCE).unwrap();
        assert!(!none.is_held());
        drop(lock);
        let _ = Lock::take(&policy, Retry::FOREVER).unwrap();
        // A path that cannot be a file.
        let policy = LockPolicy::Path(path.join("not a directory"));
        let error = Lock::take(&policy, Retry::ONCE).unwrap_err();
        assert!(matches!(error, Error::LockFile { .. }), "{error}");
    }
}
