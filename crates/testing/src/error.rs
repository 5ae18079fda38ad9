use std::io;

use chainwright::netns;

/// What can go wrong with sandboxes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A network namespace could not be used.
    #[error(transparent)]
    Netns(#[from] netns::Error),

    /// A file in `/proc` that tells what this process may do could not be read.
    #[error("cannot read this process's capabilities from {path}")]
    Capabilities {
        /// The file.
        path: &'static str,
        /// Why.
        source: io::Error,
    },

    /// Without privileges a sandbox takes a user namespace of the process's own, which the kernel
    /// lets only a process enter that has a single thread
    /// ([user_namespaces(7)](https://man7.org/linux/man-pages/man7/user_namespaces.7.html)).
    ///
    /// Call `become_namespace_root` first in `main`, before any
    /// other thread (an async runtime, a logger, the test harness) is started, or run the program
    /// as root or under `unshare --user --map-root-user`.
    #[error(
        "this process has neither the capabilities to make a network namespace nor, having \
         {threads} threads, the possibility to get them: the kernel lets only a single-threaded \
         process enter a user namespace. Call chainwright_testing::become_namespace_root() at the start of main, \
         before any other thread is started (in a file of tests: `chainwright_testing::sandbox_tests!();`, \
         once), or run the program as root or under `unshare --user --map-root-user`"
    )]
    MultiThreaded {
        /// How many threads the process has.
        threads: usize,
    },

    /// This kernel was built without user namespaces (`CONFIG_USER_NS`), so that a sandbox takes
    /// root privileges.
    #[error("this kernel has no user namespaces (CONFIG_USER_NS): run the program as root")]
    UserNamespacesUnsupported,

    /// The system does not let this user have a user namespace.
    ///
    /// After a failure of the second and later steps (writing the maps) the process is in its new
    /// user namespace, but as nobody in particular: it should end.
    #[error(
        "not allowed to become root in a user namespace: {step} failed. What can forbid it: \
         kernel.unprivileged_userns_clone = 0 (Debian), \
         kernel.apparmor_restrict_unprivileged_userns = 1 (Ubuntu), \
         user.max_user_namespaces = 0 or used up, a container's seccomp filter, a chroot; for \
         user 0 also the lack of CAP_SETFCAP. Here: {settings}. Change the setting with sysctl, \
         or run the program as root with all capabilities"
    )]
    UserNamespacesDenied {
        /// The step that failed, for example `unshare(CLONE_NEWUSER)` or
        /// `writing /proc/self/uid_map`.
        step: &'static str,
        /// Those of the settings that exist on this system, and their values.
        settings: String,
        /// What the kernel said.
        source: io::Error,
    },

    /// A new network namespace could not be made. `ENOSPC` means that `user.max_net_namespaces`
    /// are in use, `EPERM` that something (a container's seccomp filter) forbids it although the
    /// process has the capability.
    #[error("cannot make a network namespace: unshare(CLONE_NEWNET) failed")]
    Create {
        /// What the kernel said.
        source: io::Error,
    },

    /// The kernel refused to change, or to show, a sandbox's network.
    #[error("cannot {action}{}", kernel_text(message))]
    Network {
        /// What was to be done, for example `add address 10.0.0.1/24 to eth0`.
        action: String,
        /// What the kernel wrote about it (extended acknowledgement), if it did.
        message: Option<String>,
        /// The error number.
        source: io::Error,
    },

    /// An interface was brought up but did not begin to run in time.
    #[error("interface {name} is up but is not running after {seconds} s")]
    NotRunning {
        /// The interface.
        name: String,
        /// How long was waited.
        seconds: u64,
    },

    /// A name that no interface can have.
    #[error("{name:?} cannot be the name of an interface (1 to 15 bytes, no %, / or white space)")]
    InvalidInterfaceName {
        /// The name as given.
        name: String,
    },

    /// A text that is not an address, or lacks a valid prefix length.
    #[error("{text:?} is not {expected}")]
    InvalidAddress {
        /// The text as given.
        text: String,
        /// What it should have been, with an example.
        expected: &'static str,
    },

    /// A setting of a sandbox could not be written.
    #[error("cannot write {path}")]
    Setting {
        /// The file in `/proc/sys`.
        path: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl From<Error> for chainwright::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Netns(error) => error.into(),
            error => Self::Other(Box::new(error)),
        }
    }
}

fn kernel_text(message: &Option<String>) -> String {
    message
        .as_ref()
        .map_or_else(String::new, |text| format!(" (the kernel says: {text})"))
}
