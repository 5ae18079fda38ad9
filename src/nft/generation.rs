//! Generations: numbers that every committed transaction of a namespace increments.

use std::fs;

use bstr::ByteSlice;
use chainwright_sys::nf_tables::{NFTA_GEN_ID, NFTA_GEN_PROC_NAME, NFTA_GEN_PROC_PID};

use super::declare::object;
use super::name::Name;

/// The generation of a ruleset: a number that each commit increments, and that wraps around after 2³².
///
/// Counter updates and resets, elements added by rules, and element timeouts do not change it; see
/// [`Refreshed::SameGeneration`] for other changes that it misses.
///
/// A generation includes its network namespace, by the kernel's cookie (`SO_NETNS_COOKIE`). Kernels before 5.14
/// have no cookie; there it includes the connection that read it, or in whose namespace the monitor was opened.
/// Generations of two namespaces are never equal, and a commit that
/// [expects](super::Transaction::expect_generation) one of another namespace is rejected. A generation loaded
/// from a file keeps that origin, and never equals one read from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation {
    number: u32,
    origin: Origin,
}

/// The origin of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// The namespace with this cookie.
    Namespace(u64),
    /// The namespace of this connection.
    Connection(u64),
    /// Stored outside of the kernel.
    Recorded,
}

impl Generation {
    pub(super) const fn new(number: u32, origin: Origin) -> Self {
        Self { number, origin }
    }

    /// Creates a generation that was stored in a file.
    pub(super) const fn recorded(number: u32) -> Self {
        Self::new(number, Origin::Recorded)
    }

    /// Creates a generation of no kernel, for tests.
    #[doc(hidden)]
    #[must_use]
    pub const fn for_test(number: u32) -> Self {
        Self::new(number, Origin::Recorded)
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns the next generation; the number 0 is skipped.
    #[doc(hidden)]
    pub const fn next(self) -> Self {
        let number = match self.number {
            u32::MAX => 1,
            number => number + 1,
        };
        Self::new(number, self.origin)
    }

    pub(super) const fn origin(self) -> Origin {
        self.origin
    }
}

impl std::fmt::Debug for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Generation").field(&self.number).finish()
    }
}

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}

/// The result of refreshing a [`List`](super::List) or a [`Snapshot`](super::Snapshot).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    /// The ruleset still has the generation that was read: no transaction was committed since, and nothing was
    /// read.
    ///
    /// Changes that do not create a generation may still have happened:
    ///
    /// - counters of rules, chains, objects and elements, usage of a quota, state of a `limit`, connections of a
    ///   `connlimit`, time of a `last`, position of a `numgen inc`, and resets of them (`nft reset`);
    /// - elements that rules add, update or delete (`dynset`), and elements that time out;
    /// - the remaining time of a timeout;
    /// - removal of devices, and with them, on kernels before 6.16, of the hooks of chains and flowtables that
    ///   name them;
    /// - removal of a table together with the process that owned it.
    ///
    /// To see those, read everything again: [`List::reread`](super::List::reread),
    /// [`Snapshot::reread`](super::Snapshot::reread).
    SameGeneration,
    /// Everything was read again: the generation changed, or nothing had been read yet, or the old data came from
    /// another namespace (before Linux 5.14: from another connection). The new data may still be equal.
    Reread,
}

object! {
    /// A generation: `enum nft_gen_attributes`, as sent in `NFT_MSG_NEWGEN`.
    pub struct GenerationInfo viewed as GenerationRef, "a generation" {
        /// The generation's number.
        NFTA_GEN_ID => id: u32 [required],
        /// Thread that committed it; in a reply to a request, the requesting thread. It is the thread's id in the
        /// first pid namespace; the first thread of a process has the process id.
        NFTA_GEN_PROC_PID => thread_id: u32,
        /// Name of that thread (`comm`).
        NFTA_GEN_PROC_NAME => thread_name: Name<'a>,
    }
}

impl GenerationRef<'_> {
    /// Returns the process of that thread according to `/proc`; `None` if the thread has ended or is not in this
    /// pid namespace.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        let thread = format!("/proc/{}", self.thread_id()?);
        // In another pid namespace, the id belongs to another thread.
        let name = fs::read(format!("{thread}/comm")).ok()?;
        let is_same = name.strip_suffix(b"\n") == self.thread_name().map(|name| &**name);
        let status = fs::read(format!("{thread}/status")).ok()?;
        let process = status
            .lines()
            .find_map(|line| line.strip_prefix(b"Tgid:"))?;
        let process = process.to_str().ok()?.trim().parse().ok();
        process.filter(|_| is_same)
    }
}
