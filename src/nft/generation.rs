//! The generation: a number that every committed transaction of a namespace moves on.

use std::fs;

use bstr::ByteSlice;
use chainwright_sys::nf_tables::{NFTA_GEN_ID, NFTA_GEN_PROC_NAME, NFTA_GEN_PROC_PID};

use super::declare::object;
use super::name::Name;

/// Number of a ruleset's generation: it moves with each commit, and wraps around after 2³².
///
/// It does not move when counters count or are set back, when rules add elements or elements time out:
/// what else it does not tell stands with [`Refreshed::SameGeneration`].
///
/// It knows of which network namespace it is, by the kernel's number for that (`SO_NETNS_COOKIE`); on kernels
/// before 5.14, which have none, by the connection that it was read over, or that the monitor was opened beside.
/// Those of two namespaces are never the same, and a commit that [expects](super::Transaction::expect_generation)
/// one of another is refused. One that was kept in a file says where that came from, and is the same as no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation {
    number: u32,
    origin: Origin,
}

/// What a generation is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// The namespace with this cookie.
    Namespace(u64),
    /// The namespace of this connection.
    Connection(u64),
    /// It was kept outside of the kernel.
    Recorded,
}

impl Generation {
    pub(super) const fn new(number: u32, origin: Origin) -> Self {
        Self { number, origin }
    }

    /// One that was kept in a file.
    #[cfg(any(test, feature = "backup", feature = "serde"))]
    pub(super) const fn recorded(number: u32) -> Self {
        Self::new(number, Origin::Recorded)
    }

    /// One of no kernel.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_test(number: u32) -> Self {
        Self::new(number, Origin::Recorded)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// The one that follows: there is none of the number 0.
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

/// What bringing a [`List`](super::List) or a [`Snapshot`](super::Snapshot) up to date found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    /// The ruleset is of the generation that is shown: nobody has committed a transaction since, and
    /// nothing was read.
    ///
    /// That is not to say that nothing changed. What moves no generation may have:
    ///
    /// - counters of rules, chains, objects and elements, what is used of a quota, the fill of a
    ///   `limit`, the connections of a `connlimit`, when `last` matched, where a `numgen inc` stands; nor
    ///   does setting them back (`nft reset`);
    /// - elements that rules add, update or delete (`dynset`), and elements that time out;
    /// - the rest of a timeout;
    /// - devices that go, and with them, on kernels before 6.16, the hooks of chains and flowtables that
    ///   name them;
    /// - a table that goes with the process that owned it.
    ///
    /// To see those, read anew: [`List::read_anew`](super::List::read_anew),
    /// [`Snapshot::read_anew`](super::Snapshot::read_anew).
    SameGeneration,
    /// It was read anew: the generation had moved, or there was nothing yet, or what there was is of
    /// another namespace (before Linux 5.14: came over another connection). What was read may still be the same.
    ReadAnew,
}

object! {
    /// A generation: `enum nft_gen_attributes`, as `NFT_MSG_NEWGEN` carries it.
    pub struct GenerationInfo viewed as GenerationRef, "a generation" {
        /// The generation's number.
        NFTA_GEN_ID => id: u32 [required],
        /// Thread that committed it; in a reply to a question, the thread that asked. It is the number
        /// that the thread has in the first pid namespace; that of a process' first thread is the
        /// process' own.
        NFTA_GEN_PROC_PID => thread_id: u32,
        /// Name of that thread (`comm`).
        NFTA_GEN_PROC_NAME => thread_name: Name<'a>,
    }
}

impl GenerationRef<'_> {
    /// The process of that thread, as `/proc` tells; `None` if it does not, because the thread has ended
    /// or is not of this pid namespace.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        let thread = format!("/proc/{}", self.thread_id()?);
        // In another pid namespace the number is some other thread's.
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
