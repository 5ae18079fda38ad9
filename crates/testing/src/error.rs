use std::io;

use chainwright::netns;

/// Errors of sandboxes.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A network namespace could not be used.
    #[error(transparent)]
    Netns(#[from] netns::Error),

    /// The file in `/proc` with this process's capabilities could not be read.
    #[error("cannot read this process's capabilities from {path}: {source}")]
    Capabilities {
        /// The file.
        path: &'static str,
        /// The cause.
        r#source: io::Error,
    },

    /// Without privileges a sandbox needs a user namespace of the process, which the kernel
    /// lets a process enter only while it has a single thread
    /// ([user_namespaces(7)](https://man7.org/linux/man-pages/man7/user_namespaces.7.html)).
    ///
    /// Call `become_namespace_root` first in `main`, before any
    /// other thread (an async runtime, a logger, the test harness) starts, or run the program
    /// as root or under `unshare --user --map-root-user`.
    #[error(
        "this process lacks the capabilities to create a network namespace, and cannot get them \
         because it has {threads} threads: the kernel only lets a single-threaded \
         process enter a user namespace. Call chainwright_testing::become_namespace_root() at the start of main, \
         before any other thread is started (in a test file: `chainwright_testing::sandbox_tests!();`, \
         once), or run the program as root or under `unshare --user --map-root-user`"
    )]
    MultiThreaded {
        /// Number of threads of the process.
        threads: usize,
    },

    /// This kernel was built without user namespaces (`CONFIG_USER_NS`), so a sandbox needs
    /// root privileges.
    #[error("this kernel has no user namespaces (CONFIG_USER_NS): run the program as root")]
    UserNamespacesUnsupported,

    /// The system does not let this user have a user namespace.
    ///
    /// If the second or a later step failed (writing the maps), the process is in its new
    /// user namespace, but without a mapped user: it should exit.
    #[error(
        "not allowed to become root in a user namespace: {step} failed: {source}. Possible causes: \
         kernel.unprivileged_userns_clone = 0 (Debian), \
         kernel.apparmor_restrict_unprivileged_userns = 1 (Ubuntu), \
         user.max_user_namespaces = 0 or exhausted, a container's seccomp filter, a chroot; for \
         user 0 also a missing CAP_SETFCAP. Settings here: {settings}. Change the setting with sysctl, \
         or run the program as root with all capabilities"
    )]
    UserNamespacesDenied {
        /// The step that failed, for example `unshare(CLONE_NEWUSER)` or
        /// `writing /proc/self/uid_map`.
        step: &'static str,
        /// The settings that exist on this system, with their values.
        settings: String,
        /// The kernel's error.
        r#source: io::Error,
    },

    /// A new network namespace could not be created. `ENOSPC` means that `user.max_net_namespaces`
    /// are in use, `EPERM` that something (a container's seccomp filter) forbids it although the
    /// process has the capability.
    #[error("cannot create a network namespace: unshare(CLONE_NEWNET) failed: {source}")]
    Create {
        /// The kernel's error.
        r#source: io::Error,
    },

    /// The kernel refused to change or show a sandbox's network.
    #[error("cannot {action}: {source}{}", kernel_text(message))]
    Network {
        /// The intended action, for example `add address 10.0.0.1/24 to eth0`.
        action: String,
        /// The kernel's own text (extended acknowledgement), if any.
        message: Option<String>,
        /// The error number.
        r#source: io::Error,
    },

    /// An interface was brought up but did not begin to run in time.
    #[error("interface {name} is up but is not running after {seconds} s")]
    NotRunning {
        /// The interface.
        name: String,
        /// The time waited.
        seconds: u64,
    },

    /// A name is not valid for an interface.
    #[error("invalid interface name {name:?} (1 to 15 bytes, no %, / or white space)")]
    InvalidInterfaceName {
        /// The name as given.
        name: String,
    },

    /// A text is not an address, or lacks a valid prefix length.
    #[error("{text:?} is not {expected}")]
    InvalidAddress {
        /// The text as given.
        text: String,
        /// The expected format, with an example.
        expected: &'static str,
    },

    /// A setting of a sandbox could not be written.
    #[error("cannot write {path}: {source}")]
    Setting {
        /// The file in `/proc/sys`.
        path: &'static str,
        /// The cause.
        r#source: io::Error,
    },
}

chainwright::debug_as_message!(Error);

impl From<Error> for chainwright::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Netns(error) => error.into(),
            error => Self::other(error, chainwright::ErrorKind::Other),
        }
    }
}

fn kernel_text(message: &Option<String>) -> String {
    message.as_ref().map_or_else(String::new, |text| {
        format!(" (the kernel reported: {text})")
    })
}
