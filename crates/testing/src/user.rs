//! Becomes root in a user namespace, so that an ordinary user can create a sandbox.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::Error;

/// The capabilities that a sandbox and the work in it need, as bits of the effective set
/// (capabilities(7), linux/capability.h): CAP_NET_ADMIN, CAP_NET_RAW (the legacy tables' sockets),
/// CAP_SYS_ADMIN (unshare, setns).
const REQUIRED_CAPABILITIES: u64 = 1 << 12 | 1 << 13 | 1 << 21;

const STATUS: &str = "/proc/thread-self/status";

/// Settings below /proc/sys that can forbid user namespaces.
const SETTINGS: [&str; 3] = [
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "user/max_user_namespaces",
];

/// Maximum time for which the kernel may still count threads that have been joined.
const JOIN_GRACE: Duration = Duration::from_millis(100);

/// Makes this process root in a new user namespace, unless it already has the capabilities that a
/// [`Sandbox`](super::Sandbox) needs (`CAP_SYS_ADMIN`, `CAP_NET_ADMIN`, `CAP_NET_RAW`); then, and
/// when called again, it does nothing.
///
/// The kernel lets only a process with a **single thread** enter a user namespace: call this first
/// in `main`, before any other thread (an async runtime, a logger) exists. From then on any thread
/// can create sandboxes. [`Sandbox::new`](super::Sandbox::new) calls it too, which
/// is enough for a program that creates its first sandbox before its first thread.
///
/// In the process, its user and group appear as 0, all other users and groups as
/// nobody (65534). It has all capabilities, but only over resources of the new user namespace,
/// including the network namespaces that it creates from now on. To the rest of the system it stays
/// the ordinary user. It stays in its network namespace, over which it has no rights.
/// See [user_namespaces(7)](https://man7.org/linux/man-pages/man7/user_namespaces.7.html).
///
/// ```
/// use chainwright_testing::{Sandbox, become_namespace_root};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     become_namespace_root()?;
///     std::thread::spawn(|| Sandbox::new().map(drop)).join().unwrap()?;
///     Ok(())
/// }
/// ```
///
/// # Errors
/// [`Error::MultiThreaded`], [`Error::UserNamespacesDenied`], [`Error::UserNamespacesUnsupported`],
/// and [`Error::Capabilities`] without `/proc`.
pub fn become_namespace_root() -> Result<(), Error> {
    if status_number("CapEff:", 16)? & REQUIRED_CAPABILITIES == REQUIRED_CAPABILITIES {
        return Ok(());
    }
    // Inside the new namespace, before the maps are written, both would be nobody's.
    let (uid, gid) = (geteuid(), getegid());
    enter_user_namespace()?;
    // Without "deny" an ordinary user may not write gid_map. Linux before 3.19 has neither this file
    // nor this rule.
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(denied("writing /proc/self/setgroups", error));
        }
        _ => {}
    }
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))
        .map_err(|error| denied("writing /proc/self/uid_map", error))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
        .map_err(|error| denied("writing /proc/self/gid_map", error))?;
    Ok(())
}

/// Runs [`become_namespace_root`] for [`sandbox_tests!`](crate::sandbox_tests) before `main` and
/// prints the reason to standard error if it fails.
#[doc(hidden)]
pub fn prepare_tests() {
    if let Err(error) = become_namespace_root() {
        let cause = std::error::Error::source(&error);
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        eprintln!("the tests cannot create network namespaces: {error}{cause}");
    }
}

fn enter_user_namespace() -> Result<(), Error> {
    let start = Instant::now();
    loop {
        match unshare(CloneFlags::CLONE_NEWUSER) {
            Ok(()) => return Ok(()),
            Err(Errno::EINVAL) if !Path::new("/proc/self/ns/user").exists() => {
                return Err(Error::UserNamespacesUnsupported);
            }
            Err(Errno::EINVAL) => {
                // The kernel still counts a thread for a moment after it was joined.
                if start.elapsed() > JOIN_GRACE {
                    let threads = status_number("Threads:", 10)?;
                    return Err(Error::MultiThreaded {
                        threads: usize::try_from(threads).unwrap_or(usize::MAX),
                    });
                }
                thread::sleep(Duration::from_millis(1));
            }
            Err(errno) => return Err(denied("unshare(CLONE_NEWUSER)", errno.into())),
        }
    }
}

/// Returns a number from the calling thread's status file (proc_pid_status(5)).
fn status_number(field: &str, radix: u32) -> Result<u64, Error> {
    let failed = |source| Error::Capabilities {
        path: STATUS,
        source,
    };
    let status = fs::read_to_string(STATUS).map_err(failed)?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|value| u64::from_str_radix(value.trim(), radix).ok())
        .ok_or_else(|| failed(io::Error::other(format!("missing {field} line"))))
}

fn denied(step: &'static str, source: io::Error) -> Error {
    let mut settings = Vec::new();
    for path in SETTINGS {
        if let Ok(value) = fs::read_to_string(Path::new("/proc/sys").join(path)) {
            settings.push(format!("{} = {}", path.replace('/', "."), value.trim()));
        }
    }
    if settings.is_empty() {
        settings.push("none of these settings can be read".into());
    }
    Error::UserNamespacesDenied {
        step,
        settings: settings.join(", "),
        source,
    }
}
