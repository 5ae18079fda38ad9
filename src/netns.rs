//! Network namespaces: open one, and run code inside it.
//!
//! Packet-filter tables belong to a network namespace
//! ([network_namespaces(7)](https://man7.org/linux/man-pages/man7/network_namespaces.7.html)).
//! A socket belongs to the namespace in which it was opened, whatever its thread enters later. So,
//! to work on another namespace's tables, open the connection inside [`Netns::run`] and use it from
//! anywhere.
//!
//! [`Netns`] is a handle to a namespace that exists: the caller's, a named one (`ip netns add`), a
//! process's, or a file's.
//!
//! A new, private namespace that disappears with its handle is a `Sandbox` of the crate `chainwright-testing`.
//!
//! ```
//! use chainwright_testing::Sandbox;
//!
//! let sandbox = Sandbox::new()?;
//! let interfaces = sandbox.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
//! assert!(interfaces.contains("lo:"));
//! assert!(!interfaces.contains("eth0:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::statfs::{NSFS_MAGIC, fstatfs};

pub use error::Error;

/// The calling thread's network namespace. `/proc/self` would be that of the main thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// The directories in which `ip netns` keeps named namespaces; the second is the older name of the first.
#[doc(hidden)]
pub const NAMED: [&str; 2] = ["/run/netns", "/var/run/netns"];

/// A handle to a network namespace.
///
/// The handle keeps the namespace alive, even if no process is left in it. Two handles are equal
/// if they refer to the same namespace.
#[derive(Debug)]
pub struct Netns {
    fd: OwnedFd,
    id: NetnsId,
}

/// Identifies a network namespace among all that exist at the same time, by the device and
/// inode numbers of its file, as in
/// [namespaces(7)](https://man7.org/linux/man-pages/man7/namespaces.7.html).
///
/// Displayed as `readlink /proc/PID/ns/net` and `lsns` show it: `net:[4026531840]`. The kernel may
/// reuse the number for a new namespace once this one is gone, but not while a [`Netns`] is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetnsId {
    /// The device number (`st_dev`) of the kernel's namespace file system.
    pub dev: u64,
    /// The inode number (`st_ino`), which tools display.
    pub inode: u64,
}

impl fmt::Display for NetnsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "net:[{}]", self.inode)
    }
}

impl Netns {
    /// Opens the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Open`], if `/proc` is not mounted.
    pub fn current() -> Result<Self, Error> {
        Self::from_path(OWN)
    }

    /// Opens the network namespace called `name`, as `ip netns add NAME` creates it:
    /// `/run/netns/NAME`, else `/var/run/netns/NAME`
    /// ([ip-netns(8)](https://man7.org/linux/man-pages/man8/ip-netns.8.html)).
    ///
    /// # Errors
    /// [`Error::InvalidName`], [`Error::NoSuchName`], and the errors of [`Netns::from_path`]. A name
    /// whose namespace is gone (a file left over from before a reboot, or created in another mount
    /// namespace) is [`Error::NotANetworkNamespace`].
    pub fn from_name(name: impl AsRef<OsStr>) -> Result<Self, Error> {
        let name = name.as_ref();
        let bytes = name.as_bytes();
        if matches!(bytes, b"" | b"." | b"..") || bytes.iter().any(|&b| b == b'/' || b == 0) {
            return Err(Error::InvalidName { name: name.into() });
        }
        for directory in NAMED {
            match Self::from_path(Path::new(directory).join(name)) {
                Err(Error::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                found => return found,
            }
        }
        Err(Error::NoSuchName { name: name.into() })
    }

    /// Opens the network namespace of the file at `path`: `/proc/PID/ns/net`, or a file on
    /// which a namespace was mounted (container runtimes do this).
    ///
    /// A file that is not a network namespace is inspected, but not opened for reading: a pipe does
    /// not block the call, and a device is not activated.
    ///
    /// # Errors
    /// [`Error::Open`] and [`Error::NotANetworkNamespace`].
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        match open(path) {
            Ok(Some(netns)) => Ok(netns),
            Ok(None) => Err(Error::NotANetworkNamespace { path: path.into() }),
            Err(source) => Err(Error::Open {
                path: path.into(),
                source,
            }),
        }
    }

    /// Opens the network namespace of the process (or thread) `pid`, a number in the caller's PID
    /// namespace.
    ///
    /// # Errors
    /// [`Error::NoSuchProcess`] if the process does not exist or has ended; [`Error::Open`] otherwise,
    /// for instance for another user's process, which takes the right to trace it
    /// ([ptrace(2)](https://man7.org/linux/man-pages/man2/ptrace.2.html)).
    pub fn from_pid(pid: u32) -> Result<Self, Error> {
        Self::from_path(format!("/proc/{pid}/ns/net")).map_err(|error| match error {
            // A process can also end between the lookups of its directory and of the file.
            Error::Open { source, .. }
                if source.kind() == io::ErrorKind::NotFound
                    || source.raw_os_error() == Some(libc::ESRCH) =>
            {
                Error::NoSuchProcess { pid }
            }
            other => other,
        })
    }

    /// Opens the namespace that the argument of a command's option `--netns NAME|PATH` names: a path if it contains a
    /// `/` ([`Netns::from_path`]), otherwise a name ([`Netns::from_name`]).
    ///
    /// # Errors
    /// The errors of the two.
    pub fn from_name_or_path(name_or_path: impl AsRef<OsStr>) -> Result<Self, Error> {
        let argument = name_or_path.as_ref();
        if argument.as_bytes().contains(&b'/') {
            Self::from_path(PathBuf::from(argument))
        } else {
            Self::from_name(argument)
        }
    }

    /// Returns the numbers that identify this namespace.
    pub fn id(&self) -> NetnsId {
        self.id
    }

    /// Returns another handle to the same namespace.
    ///
    /// # Errors
    /// The process has no file descriptor left ([`Error::Open`]).
    pub fn try_clone(&self) -> Result<Self, Error> {
        let fd = self.fd.try_clone().map_err(|source| Error::Open {
            path: format!("/proc/self/fd/{}", self.fd.as_raw_fd()).into(),
            source,
        })?;
        Ok(Self { fd, id: self.id })
    }

    /// Runs `work` inside this network namespace and returns its result.
    ///
    /// `work` runs on a new thread, which enters the namespace
    /// ([setns(2)](https://man7.org/linux/man-pages/man2/setns.2.html)) and ends with it; the
    /// calling thread waits and never changes its namespace. Apart from the network namespace the
    /// new thread inherits the caller's context (user, capabilities, other namespaces, current
    /// `tracing` span), but not its thread-local values. Processes and threads that `work` starts
    /// begin in the namespace; sockets that it opens stay in it wherever they are used later.
    ///
    /// A panic of `work` is resumed in the caller.
    ///
    /// ```
    /// use std::net::{TcpListener, TcpStream};
    /// use chainwright_testing::Sandbox;
    ///
    /// let here = Sandbox::new()?;
    /// let elsewhere = Sandbox::new()?;
    /// let _listener = here.netns().run(|| TcpListener::bind("127.0.0.1:80"))??;
    /// assert!(here.netns().run(|| TcpStream::connect("127.0.0.1:80"))?.is_ok());
    /// assert!(elsewhere.netns().run(|| TcpStream::connect("127.0.0.1:80"))?.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Thread`] and [`Error::Enter`]; `work` has not run then.
    pub fn run<T, F>(&self, work: F) -> Result<T, Error>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let span = tracing::Span::current();
        on_helper_thread(|| {
            self.enter()?;
            Ok(span.in_scope(work))
        })?
    }

    /// Moves the calling thread permanently into this namespace.
    fn enter(&self) -> Result<(), Error> {
        match setns(&self.fd, CloneFlags::CLONE_NEWNET) {
            Ok(()) => Ok(()),
            // Without privileges a thread may not enter even the namespace that it is in.
            Err(Errno::EPERM) if Self::current().is_ok_and(|current| current == *self) => Ok(()),
            Err(errno) => Err(Error::Enter {
                id: self.id,
                source: errno.into(),
            }),
        }
    }
}

impl PartialEq for Netns {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Netns {}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Netns> for OwnedFd {
    fn from(netns: Netns) -> Self {
        netns.fd
    }
}

/// Waits until the kernel has processed every packet that it is processing now: later ones see the current rules
/// and elements. This takes some milliseconds, and no CPU time.
#[doc(hidden)]
pub fn wait_for_packets() {
    // The kernel processes packets inside RCU read-side sections, and this call waits for their end.
    const GLOBAL: libc::c_int = 1; // MEMBARRIER_CMD_GLOBAL
    // SAFETY: membarrier(2) takes no pointers.
    let waited = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if waited != 0 {
        // Kernels with `nohz_full` refuse it, and seccomp filters may.
        thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Opens `path`; `None` if it is not a network namespace.
fn open(path: &Path) -> io::Result<Option<Netns>> {
    // O_PATH finds the file without opening its contents.
    let found = File::options()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)?;
    if fstatfs(&found)?.filesystem_type() != NSFS_MAGIC {
        return Ok(None);
    }
    // Opens the same file for setns(2) and ioctl(2).
    let file = File::open(format!("/proc/thread-self/fd/{}", found.as_raw_fd()))?;

    // SAFETY: `file` is an open descriptor of the namespace file system for the whole call, and
    // NS_GET_NSTYPE takes no argument and writes no memory (ioctl_nsfs(2)).
    let kind = unsafe { libc::ioctl(file.as_raw_fd(), libc::NS_GET_NSTYPE) };
    if Errno::result(kind)? != libc::CLONE_NEWNET {
        return Ok(None);
    }
    let metadata = file.metadata()?;
    Ok(Some(Netns {
        fd: file.into(),
        id: NetnsId {
            dev: metadata.dev(),
            inode: metadata.ino(),
        },
    }))
}

/// Runs `work` on a new thread, so that changes to the thread's state end with it.
///
/// The thread gets no name: it inherits the caller's in the kernel, and nf_tables records that
/// with each generation as the name of the process that created it.
#[doc(hidden)]
pub fn on_helper_thread<T, F>(work: F) -> Result<T, Error>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    thread::scope(|scope| {
        let helper = thread::Builder::new()
            .spawn_scoped(scope, work)
            .map_err(|source| Error::Thread { source })?;
        helper
            .join()
            .or_else(|panic| std::panic::resume_unwind(panic))
    })
}
