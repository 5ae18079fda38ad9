//! Reads a snapshot from the kernel.
//!
//! This file contains one complete read, from the first request to the last message, and its consistency checks. It
//! receives all messages directly into the snapshot's arena. The requests are: the generation; tables; chains; stateful
//! objects; flowtables; sets; the elements of each set; rules; the generation again.
//!
//! # Rules
//!
//! To resume a dump the kernel iterates over everything that it has sent already, so that one dump of all rules takes
//! time quadratic in their number; a dump for each chain costs a request, two replies and as many allocations. The
//! reader estimates the cheaper way for each table from the use counts of its chains ([`Plan`]). The dumps of short
//! chains use a second socket with small receives, so that the kernel doesn't allocate 32 KiB for a reply with two
//! rules.
//!
//! # Consistency
//!
//! - The commit of this generation is complete: a kernel increments the generation first, and until the end a listing
//!   lacks new objects ([`stable_generation`](Connection::stable_generation)).
//! - The generation is the same before and after, every message has its low 16 bits (`res_id`), and no dump was marked
//!   as interrupted.
//! - If only tables outside of the scope changed, these conditions may fail: then notifications prove that the scope is
//!   unchanged (`change_detector.rs`), and the snapshot has the generation of the end. But a resumed dump of all tables can skip
//!   objects of this one if another table shrank meanwhile, so the use counts must match.
//! - Objects of the scope that changed are read again separately, until none changes during a read (`reread.rs`).
//! - Every rule has the handle of the preceding one (`NFTA_RULE_POSITION`), and the chains of a table have ascending
//!   handles: this detects a dump shifted by a failing transaction of another process.
//! - No hash table lists an element twice: this detects that the kernel resized a hash table meanwhile, which doesn't
//!   change the generation. (Elements that time out during the dump can hide others; this is undetectable.)
//! - The numbers of a table's objects and of a set's elements match the kernel's counts, or else two consecutive reads
//!   gave the same result: this detects a dump shifted by failing transactions of other processes.
//! - The rules of every chain and the references to it match its use count (`NFTA_CHAIN_USE`): this detects a listing
//!   that the kernel ended at an object too large for a reply. Timed-out elements of a verdict map count as references
//!   until the kernel collects them, but are not listed; so this many references may be missing. (Kernels before 6.16
//!   don't report their number: there the reader skips this check for tables with such a map.) It also skips missing
//!   references in a table with verdict maps whose elements are left out; for such a table no dump uses the second
//!   socket.

mod dump;
mod rules;

use std::time::Duration;

use bstr::BStr;
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETFLOWTABLE, NFT_MSG_GETOBJ, NFT_MSG_GETRULE, NFT_MSG_GETSET,
    NFT_MSG_GETSETELEM, NFT_MSG_GETTABLE, NFTA_CHAIN_TABLE, NFTA_FLOWTABLE_TABLE, NFTA_OBJ_TABLE,
    NFTA_OBJ_TYPE, NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_NAME, NFTA_SET_TABLE,
    NFTA_TABLE_NAME,
};
pub(super) use dump::ReplySocket;

use super::index::{chain_at, set_at};
use super::{ElementFilter, Snapshot, SnapshotError, SnapshotOptions};
use crate::Retry;
use crate::arena::{Arena, Position};
use crate::netlink::{Attributes, Error, Message, MessageWriter, Socket};
use crate::nft::change_detector::{TouchedObjects, Watch};
use crate::nft::connection::Connection;
use crate::nft::declare::Field as _;
use crate::nft::expr::ObjectType;
use crate::nft::generation::Refreshed;
use crate::nft::name::Name;
use crate::nft::scope::Scope;
use crate::nft::{ChainFlags, ChainRef, Family, SetRef};
use crate::retry::Attempts;

/// Retry policy for the elements of a set whose hash table the kernel is resizing.
const REBUILDS: Retry = Retry {
    pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(32),
    ..Retry::times(7)
};
/// One attempt to read a snapshot.
pub(super) struct Reader<'c> {
    pub(super) connection: &'c mut Connection,
    /// The socket for rules of short chains.
    short: Option<Socket>,
    pub(super) snapshot: Snapshot,
    /// The low 16 bits of the generation, as in messages.
    resource: u16,
    /// Whether everything so far belongs to that generation.
    pub(super) consistent: bool,
    /// Whether to continue if it doesn't.
    reads_to_end: bool,
    /// Whether to continue after a change because it may affect only tables outside of the scope.
    watched: bool,
    /// Whether a change occurred during the read.
    moved: bool,
    /// The first separately read base chain with missing rules.
    pub(super) missing: Option<MissingRules>,
    /// The requests that list rules and elements, possibly those that reset them.
    pub(super) rules_request: u8,
    pub(super) elements_request: u8,
}

/// The result of an attempt.
struct Read {
    /// Has no generation if the ruleset changed meanwhile.
    snapshot: Snapshot,
    /// A chain with missing rules.
    missing: Option<MissingRules>,
    /// Whether nothing changed meanwhile, in any table.
    quiet: bool,
}

impl SnapshotError {
    /// Returns the error for a last attempt that was inconsistent or lacks rules.
    pub(super) fn not_consistent(
        snapshot: Snapshot,
        missing: Option<MissingRules>,
        attempts: &Attempts,
    ) -> Self {
        let snapshot = Box::new(snapshot);
        match missing {
            Some(chain) => Self::Incomplete { chain, snapshot },
            None => Self::Interrupted {
                attempts: attempts.made(),
                snapshot,
            },
        }
    }
}

impl Connection {
    /// Reads a snapshot: the whole ruleset, a family or a table, of one generation.
    ///
    /// If the ruleset changes during the read, or a part of it is lost, the read starts again
    /// ([`with_retry`](Self::with_retry)). From the second attempt on it listens for commits: for a single table it
    /// requires only that this table doesn't change, and it reads objects that changed again separately, until none
    /// changes during a read. (If the calling thread is in another network namespace than the connection and cannot
    /// enter it, the complete ruleset must not change.) The head of this module's source describes the requests and the
    /// consistency checks.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::{Connection, Scope};
    /// let mut nft = Connection::open()?;
    /// let snapshot = nft.snapshot(Scope::all())?;
    /// for table in snapshot.tables() {
    ///     for chain in table.chains() {
    ///         println!("{} has {} rules", chain.chain(), chain.rules().len());
    ///     }
    /// }
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SnapshotError`], which includes the incomplete result.
    pub fn snapshot(&mut self, scope: Scope<'_>) -> Result<Snapshot, SnapshotError> {
        self.snapshot_with(scope, SnapshotOptions::default())
    }

    /// Like [`snapshot`](Self::snapshot), but without the elements of some sets: if rules keep adding elements, or
    /// there are very many of them, and only the rest is needed.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::{Connection, ElementFilter, Scope, SnapshotOptions};
    /// let mut nft = Connection::open()?;
    /// let options = SnapshotOptions { elements: ElementFilter::all() - ElementFilter::DYNAMIC };
    /// let snapshot = nft.snapshot_with(Scope::all(), options)?;
    /// for table in snapshot.tables() {
    ///     for set in table.sets() {
    ///         match set.is_left_out() {
    ///             true => println!("{}: not read", set.set()),
    ///             false => println!("{}: {} elements", set.set(), set.element_count()),
    ///         }
    ///     }
    /// }
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    #[tracing::instrument(level = "debug", skip_all, fields(bytes))]
    pub fn snapshot_with(
        &mut self,
        scope: Scope<'_>,
        options: SnapshotOptions,
    ) -> Result<Snapshot, SnapshotError> {
        self.snapshot_in(
            Arena::default(),
            &scope,
            options.elements,
            self.session.retry,
        )
    }

    /// Like [`snapshot`](Self::snapshot), with this retry policy.
    pub(super) fn snapshot_as(
        &mut self,
        scope: &Scope<'_>,
        retry: Retry,
    ) -> Result<Snapshot, SnapshotError> {
        self.snapshot_in(Arena::default(), scope, ElementFilter::all(), retry)
    }

    /// Like [`snapshot`](Self::snapshot), into existing memory.
    fn snapshot_in(
        &mut self,
        mut arena: Arena,
        scope: &Scope<'_>,
        elements: ElementFilter,
        retry: Retry,
    ) -> Result<Snapshot, SnapshotError> {
        let mut attempts = retry.begin();
        let mut last_digest = None;
        let mut watch = None;
        loop {
            let last = attempts.is_last();
            if watch.is_none() && (attempts.made() > 1 || (last && scope.table.is_some())) {
                watch = Watch::open(self);
            }
            let mut empty = Snapshot::of(scope.clone().into_owned(), elements);
            empty.arena = std::mem::take(&mut arena);
            let read = self.read(empty, last, watch.as_mut());
            let Read {
                snapshot,
                missing,
                quiet,
            } = match read {
                Ok(read) => read,
                Err(error) if error.allows(&mut attempts) => continue,
                Err(error) => return Err(error.into()),
            };
            if snapshot.generation.is_some() && missing.is_none() {
                // A mismatch is accepted when a second read confirms it.
                let inconsistency_digest = snapshot.inconsistency_digest()?;
                if inconsistency_digest.is_none() || (inconsistency_digest == last_digest && quiet)
                {
                    tracing::Span::current().record("bytes", snapshot.byte_length());
                    return Ok(snapshot);
                }
                last_digest = inconsistency_digest;
            }
            // An uncommitted transaction of another process may cause a mismatch.
            if !attempts.again() {
                return Err(SnapshotError::not_consistent(snapshot, missing, &attempts));
            }
            arena = snapshot.arena;
        }
    }

    /// Reads a snapshot once and completely, even if the ruleset changes meanwhile: then [`Snapshot::generation`] is
    /// `None`, and the snapshot may lack objects or contain some twice. For callers that follow the events and combine
    /// both.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn snapshot_once(&mut self, scope: Scope<'_>) -> Result<Snapshot, Error> {
        let read = self.read(
            Snapshot::of(scope.into_owned(), ElementFilter::all()),
            true,
            None,
        );
        read.map(|read| read.snapshot)
    }

    /// Makes one attempt, into an empty snapshot.
    fn read(
        &mut self,
        mut snapshot: Snapshot,
        reads_to_end: bool,
        mut watch: Option<&mut Watch>,
    ) -> Result<Read, Error> {
        snapshot.arena.clear();
        let scope = &snapshot.scope.clone();
        if let Some(watch) = &mut watch {
            watch.begin();
        }
        let generation = self.stable_generation()?;
        let mut reader = Reader {
            connection: self,
            short: None,
            snapshot,
            resource: generation.number() as u16,
            consistent: true,
            reads_to_end: reads_to_end || watch.is_some(),
            watched: watch.is_some(),
            moved: false,
            missing: None,
            rules_request: NFT_MSG_GETRULE,
            elements_request: NFT_MSG_GETSETELEM,
        };
        reader.read(scope)?;
        let mut missing = match reader.consistent {
            true => reader.complete()?,
            false => None,
        };
        let now = reader.connection.generation()?;
        let quiet = now == generation && !reader.moved;
        let mut consistent_generation = (reader.consistent && quiet).then_some(now);
        let touched = |watch: &mut Watch| match now == generation {
            true => Ok(TouchedObjects::default()),
            false => watch.touches(std::slice::from_ref(scope), now),
        };
        if let Some(watch) = watch
            && consistent_generation.is_none()
            && let Ok(touched) = touched(watch)
        {
            consistent_generation = match touched.is_empty() && reader.consistent {
                true => Some(now),
                false => {
                    missing = None;
                    reader.repair(watch, scope, touched, now)?
                }
            };
        }
        let mut snapshot = reader.snapshot;
        snapshot.close();
        snapshot.generation = consistent_generation;
        Ok(Read {
            snapshot,
            missing,
            quiet,
        })
    }
}

impl Snapshot {
    /// Reads the snapshot again into the same memory if the generation moved, or if this connection is in another
    /// namespace than the last one. If the generation is the same the snapshot is unchanged, at the cost of one small
    /// request and reply whatever its size: but state that doesn't move the generation may have changed, for example
    /// counters and the elements that rules add ([`Refreshed::SameGeneration`]).
    ///
    /// # Errors
    /// As [`Connection::snapshot`]. The snapshot is then empty, without a generation, or unchanged if the request for
    /// the current generation failed.
    pub fn refresh(&mut self, connection: &mut Connection) -> Result<Refreshed, SnapshotError> {
        if self.generation.is_some() && self.generation == Some(connection.generation()?) {
            return Ok(Refreshed::SameGeneration);
        }
        self.reread(connection)?;
        Ok(Refreshed::Reread)
    }

    /// Reads the snapshot again into the same memory, whether or not the generation moved.
    ///
    /// # Errors
    /// As [`Connection::snapshot`]. The snapshot is then empty, without a generation.
    pub fn reread(&mut self, connection: &mut Connection) -> Result<(), SnapshotError> {
        let old = std::mem::take(self);
        (self.scope, self.elements) = (old.scope, old.elements);
        *self = connection.snapshot_in(
            old.arena,
            &self.scope.clone(),
            self.elements,
            connection.session.retry,
        )?;
        Ok(())
    }
}

/// A chain with missing or surplus rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRules {
    /// The chain: family, table and name.
    pub chain: String,
    /// Number of listed rules and of jumps to the chain.
    pub found: u64,
    /// The chain's use count, which is the number of both.
    pub expected: u32,
}

impl<'c> Reader<'c> {
    /// Creates a reader for parts of a snapshot, regardless of changes elsewhere.
    pub(super) const fn of(connection: &'c mut Connection, snapshot: Snapshot) -> Self {
        Self {
            connection,
            short: None,
            snapshot,
            resource: 0,
            consistent: true,
            reads_to_end: true,
            watched: true,
            moved: false,
            missing: None,
            rules_request: NFT_MSG_GETRULE,
            elements_request: NFT_MSG_GETSETELEM,
        }
    }
}

impl Reader<'_> {
    /// Reads all of these tables.
    pub(super) fn read(&mut self, scope: &Scope<'_>) -> Result<(), Error> {
        self.tables(scope)?;
        // The rest of the listing reveals a dump with a lost reply; a lookup by name is answered or fails.
        let is_by_name = scope.table.is_some() && scope.family != Family::UNSPEC;
        if is_by_name && self.snapshot.index.tables.is_empty() {
            return Ok(());
        }
        self.chains(scope, &|_| true)?;
        self.objects(scope, None)?;
        self.flowtables(scope)?;
        self.sets(scope, &|_| true)?;
        self.elements(|_| true)?;
        self.rules(scope)
    }

    /// Reads the tables themselves: one by name, several in a dump.
    pub(super) fn tables(&mut self, scope: &Scope<'_>) -> Result<(), Error> {
        let family = scope.family;
        if let Some(name) = scope.table.as_ref().filter(|_| family != Family::UNSPEC) {
            return self.one_table(family, BStr::new(&**name)).map(|_| ());
        }
        let request = "list tables";
        self.dump(
            ReplySocket::Long,
            request,
            NFT_MSG_GETTABLE,
            family,
            |_| {},
            |message| scope_admits(scope, message, NFTA_TABLE_NAME),
        )
    }

    /// Reads chains without their rules; keeps those that `admits` accepts. The kernel filters only by family.
    pub(super) fn chains(
        &mut self,
        scope: &Scope<'_>,
        admits: &dyn Fn(&ChainRef<'_>) -> bool,
    ) -> Result<(), Error> {
        self.dump(
            ReplySocket::Long,
            "list chains",
            NFT_MSG_GETCHAIN,
            scope.family,
            |_| {},
            |message| {
                scope_admits(scope, message, NFTA_CHAIN_TABLE)
                    && ChainRef::parse(message).is_ok_and(|chain| admits(&chain))
            },
        )?;
        for table in &self.snapshot.index.tables {
            let mut handle = 0;
            for chain in &table.chains {
                let chain = chain_at(&self.snapshot.arena, chain.at)?;
                // A duplicate or descending handle: the dump was shifted.
                self.consistent &= chain.handle() > handle;
                handle = chain.handle();
            }
        }
        Ok(())
    }

    /// Reads stateful objects, of all types or of one.
    pub(super) fn objects(
        &mut self,
        scope: &Scope<'_>,
        object_type: Option<ObjectType>,
    ) -> Result<(), Error> {
        self.dump(
            ReplySocket::Long,
            "list objects",
            NFT_MSG_GETOBJ,
            scope.family,
            |writer| {
                if let Some(table) = &scope.table {
                    writer.string(NFTA_OBJ_TABLE, table);
                }
                if let Some(object_type) = object_type {
                    writer.be32(NFTA_OBJ_TYPE, object_type.0);
                }
            },
            |message| scope_admits(scope, message, NFTA_OBJ_TABLE),
        )
    }

    /// Reads flowtables.
    pub(super) fn flowtables(&mut self, scope: &Scope<'_>) -> Result<(), Error> {
        self.dump(
            ReplySocket::Long,
            "list flowtables",
            NFT_MSG_GETFLOWTABLE,
            scope.family,
            |writer| {
                if let Some(table) = &scope.table {
                    writer.string(NFTA_FLOWTABLE_TABLE, table);
                }
            },
            |message| scope_admits(scope, message, NFTA_FLOWTABLE_TABLE),
        )
    }

    /// Reads sets without their elements; keeps those that `admits` accepts.
    pub(super) fn sets(
        &mut self,
        scope: &Scope<'_>,
        admits: &dyn Fn(&SetRef<'_>) -> bool,
    ) -> Result<(), Error> {
        let table = scope
            .table
            .as_ref()
            .filter(|_| scope.family != Family::UNSPEC);
        let listed = self.dump(
            ReplySocket::Long,
            "list sets",
            NFT_MSG_GETSET,
            scope.family,
            |writer| {
                if let Some(table) = table {
                    writer.string(NFTA_SET_TABLE, table);
                }
            },
            |message| {
                scope_admits(scope, message, NFTA_SET_TABLE)
                    && SetRef::parse(message).is_ok_and(|set| admits(&set))
            },
        );
        self.unless_gone(listed)
    }

    /// Handles the error of a dump whose object was deleted meanwhile.
    fn unless_gone(&mut self, listed: Result<(), Error>) -> Result<(), Error> {
        match listed {
            Err(Error::Refused { errno, .. }) if errno.number() == libc::ENOENT => {
                self.consistent = false;
                match self.reads_to_end {
                    true => Ok(()),
                    false => Err(Error::Interrupted),
                }
            }
            listed => listed,
        }
    }

    /// Reads the elements of the sets that `admits` accepts.
    pub(super) fn elements(&mut self, admits: impl Fn(&SetRef<'_>) -> bool) -> Result<(), Error> {
        for table in 0..self.snapshot.index.tables.len() {
            for set in 0..self.snapshot.index.tables[table].sets.len() {
                let at = self.snapshot.index.tables[table].sets[set].at;
                if admits(&set_at(&self.snapshot.arena, at)?) {
                    self.whole_elements_of(table, set)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the elements of one set until none appears twice, unless they are to be left out.
    pub(super) fn whole_elements_of(&mut self, table: usize, set: usize) -> Result<(), Error> {
        let at = self.snapshot.index.tables[table].sets[set].at;
        if (self.snapshot).leaves_out(&set_at(&self.snapshot.arena, at)?) {
            return Ok(());
        }
        self.elements_of(table, set)?;
        // The kernel resizes a hash table in the background after it has grown; a dump at that time contains some
        // elements twice and lacks as many, without any other sign.
        let retry = Retry {
            attempts: REBUILDS
                .attempts
                .min(self.connection.session.retry.attempts),
            deadline: self.connection.session.retry.deadline,
            ..REBUILDS
        };
        let mut attempts = retry.begin();
        loop {
            let (index, arena) = (&mut self.snapshot.index, &self.snapshot.arena);
            if !index.repeats(arena, table, set)? {
                return Ok(());
            }
            // A dump that resets the elements cannot be repeated.
            if self.elements_request != NFT_MSG_GETSETELEM || !attempts.again() {
                self.consistent = false;
                return Ok(());
            }
            index.forget_elements(arena, table, set)?;
            self.elements_of(table, set)?;
        }
    }

    /// Reads the elements of one set.
    fn elements_of(&mut self, table: usize, set: usize) -> Result<(), Error> {
        let at = self.snapshot.index.tables[table].sets[set].at;
        let (family, attributes) = self.object(at)?;
        let find = |kind| Attributes::new(&attributes).find(kind).unwrap_or_default();
        let name = |kind| Name::parse_payload(find(kind)).unwrap_or_default();
        let content = |writer: &mut MessageWriter<'_>| {
            writer
                .string(NFTA_SET_ELEM_LIST_TABLE, name(NFTA_SET_TABLE))
                .string(NFTA_SET_ELEM_LIST_SET, name(NFTA_SET_NAME));
        };
        self.snapshot.index.expect_elements(set);
        let message = self.elements_request;
        let listed = self.dump(
            ReplySocket::Long,
            "list elements",
            message,
            family,
            content,
            |_| true,
        );
        self.unless_gone(listed)
    }

    /// Returns the family of the object at a position, and a copy of its attributes.
    fn object(&self, at: Position) -> Result<(Family, Vec<u8>), Error> {
        let (header, attributes) = self.snapshot.arena.message(at)?.nfgenmsg()?;
        Ok((Family(header.family), attributes.to_vec()))
    }
}

/// Returns a chain's use count: its rules and the references to it.
pub(super) fn uses(chain: &ChainRef<'_>) -> u32 {
    chain.references().unwrap_or(0)
}

/// Returns `true` if the chain is bound to the rule that jumps to it: newer kernels count this jump twice.
pub(super) fn is_bound(chain: &ChainRef<'_>) -> bool {
    chain
        .flags()
        .is_some_and(|flags| flags.contains(ChainFlags::BINDING))
}

/// Returns `true` if a message's table is in the scope.
fn scope_admits(scope: &Scope<'_>, message: &Message<'_>, kind: u16) -> bool {
    scope.table.is_none()
        || message.nfgenmsg().is_ok_and(|(header, attributes)| {
            let name = Attributes::new(attributes).find(kind);
            name.and_then(Name::parse_payload)
                .is_some_and(|name| scope.admits(Family(header.family), name))
        })
}
