//! Becoming root in a user namespace, which is how an ordinary user gets a sandbox.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::Error;

/// What a sandbox and the work in it need, as bits of the effective set
/// (capabilities(7), linux/capability.h): CAP_NET_ADMIN, CAP_NET_RAW (the legacy tables' sockets),
/// CAP_SYS_ADMIN (unshare, setns).
const NEEDED: u64 = 1 << 12 | 1 << 13 | 1 << 21;

const STATUS: &str = "/proc/thread-self/status";

/// What can forbid user namespaces, below /proc/sys.
const SETTINGS: [&str; 3] = [
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "user/max_user_namespaces",
];

/// How long to wait for threads that have been joined to be gone in the kernel's eyes too.
const STRAGGLERS: Duration = Duration::from_millis(100);

/// Makes this process root in a new user namespace, unless it already has the capabilities that a
/// [`Sandbox`](crate::Sandbox) takes (`CAP_SYS_ADMIN`, `CAP_NET_ADMIN`, `CAP_NET_RAW`); then, and
/// when called again, it does nothing.
///
/// The kernel lets only a process with a **single thread** enter a user namespace: call this first
/// in `main`, before any other thread (an async runtime, a logger) exists. From then on sandboxes
/// can be made from any thread. [`Sandbox::new`](crate::Sandbox::new) calls it by itself, which
/// is enough in a program that makes its first sandbox before its first thread.
///
/// What changes for the process: its user and group are shown as 0, all other users and groups as
/// nobody (65534); it has all capabilities, but only over what belongs to the new user namespace,
/// as do the network namespaces which it makes from now on. To the rest of the system it stays the
/// ordinary user. It stays in the network namespace it was in, over which it has no rights.
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
    if status_number("CapEff:", 16)? & NEEDED == NEEDED {
        return Ok(());
    }
    // Inside the new namespace, and before the maps are written, both would be nobody's.
    let (uid, gid) = (geteuid(), getegid());
    enter_user_namespace()?;
    // Without "deny" an ordinary user may not write gid_map. Linux before 3.19 has no such file,
    // and no such rule.
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

/// What [`sandbox_tests!`](crate::sandbox_tests) runs before `main`: [`become_namespace_root`], which on
/// standard error says why it cannot be done.
#[doc(hidden)]
pub fn prepare_tests() {
    if let Err(error) = become_namespace_root() {
        let cause = std::error::Error::source(&error);
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        eprintln!("The tests cannot make network namespaces: {error}{cause}");
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
                // A thread is joined a moment before the kernel stops counting it.
                if start.elapsed() > STRAGGLERS {
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

/// A number from the calling thread's status file (proc_pid_status(5)).
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
        .ok_or_else(|| failed(io::Error::other(format!("no {field} line in it"))))
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
