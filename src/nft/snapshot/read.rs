//! Reading a snapshot from the kernel.
//!
//! The file is long because it is one reading, from the first request to the last message, and what makes it
//! whole. Everything is received into the snapshot's own memory, in place. What is asked for is: the
//! generation; tables; chains; stateful objects; flowtables; sets; the elements of each set; rules;
//! the generation again.
//!
//! # How rules are asked for
//!
//! The kernel resumes a dump by walking over everything that it has sent already, so that one dump of
//! all rules costs time that grows with the square of their number; a dump for each chain costs a
//! request, two replies and as many allocations for each. Which of the two is cheaper is estimated for
//! each table from the chains' numbers of rules and references ([`Plan`]); chains without either are
//! not asked about at all. The dumps of short chains go over a second socket, whose receives are so
//! small that the kernel need not allocate 32 KiB for a reply of two.
//!
//! # What makes it one generation, and whole
//!
//! - The generation is the same before and after, every message bears its low 16 bits (`res_id`), and
//!   no dump was marked as interrupted.
//! - Where tables of the scope stood still while others did not, all of that may be otherwise: then the
//!   kernel's notifications prove it (`watch.rs`), and the generation is that at the end. But a dump over
//!   all tables that is resumed can lack something of this one when another shrank meanwhile, so its
//!   numbers must add up then.
//! - Where something of the scope did not stand still, that is read anew by itself, until nothing more is touched
//!   meanwhile (`repair.rs`).
//! - Every rule names the one before it (`NFTA_RULE_POSITION`), and the chains of a table come with
//!   rising handles: a dump that another's failing transaction shifted shows here.
//! - No hash table gives an element twice: so it shows when the kernel rebuilt one meanwhile, which
//!   moves no generation. (Elements that time out while they are listed can hide others; nothing shows
//!   that.)
//! - Every table has as many objects as it says, and every set as many elements, or else two readings
//!   one after the other found the same: so it shows when other's failing transactions shifted a dump
//!   of theirs.
//! - Every chain has as many rules and references as it says (`NFTA_CHAIN_USE`): a listing that the
//!   kernel cut short at an object too large for a reply shows here. Elements of a verdict map that
//!   have timed out are references still until the kernel collects them, and are not listed; so many
//!   references may lack. (Kernels before 6.16 do not say how many: there a table with such a map is
//!   not looked at this closely.) Nor are those of a table that has verdict maps whose elements were to be left
//!   out; there no dump goes over the second socket.

use std::sync::LazyLock;
use std::time::Duration;

use bstr::BStr;
use chainwright_sys::netlink::NLM_F_DUMP;
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETFLOWTABLE, NFT_MSG_GETOBJ, NFT_MSG_GETRULE, NFT_MSG_GETSET,
    NFT_MSG_GETSETELEM, NFT_MSG_GETTABLE, NFTA_CHAIN_TABLE, NFTA_FLOWTABLE_TABLE, NFTA_OBJ_TABLE,
    NFTA_OBJ_TYPE, NFTA_RULE_CHAIN, NFTA_RULE_TABLE, NFTA_SET_ELEM_LIST_SET,
    NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_NAME, NFTA_SET_TABLE, NFTA_TABLE_NAME,
};
use nix::unistd::{SysconfVar, sysconf};

use super::index::{Inserted, chain_at, set_at, table_at};
use super::{ElementsOf, Snapshot, SnapshotError, SnapshotOptions};
use crate::Retry;
use crate::arena::{Arena, Position};
use crate::netlink::{
    Attributes, Dump, DumpItem, Error, Intake, Malformed, Message, MessageWriter, NfGenMsg,
    RECEIVE_BUFFER, Socket,
};
use crate::nft::connection::Connection;
use crate::nft::declare::Field;
use crate::nft::expr::ObjectType;
use crate::nft::generation::Refreshed;
use crate::nft::name::Name;
use crate::nft::scope::Scope;
use crate::nft::watch::{Touches, Watch};
use crate::nft::{ChainFlags, ChainRef, Family, SetRef};
use crate::retry::Attempts;

/// How patiently, at most, the elements of a set are asked for again while its hash table is being rebuilt.
const REBUILDS: Retry = Retry {
    pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(32),
    ..Retry::times(7)
};
/// Length of a receive for a short chain: a reply then takes the kernel one page. Where pages are
/// larger it never makes one shorter than about 8 KiB (`NLMSG_GOODSIZE`), and what does not fit would
/// be cut off.
static SHORT_BUFFER: LazyLock<usize> = LazyLock::new(|| match sysconf(SysconfVar::PAGE_SIZE) {
    Ok(Some(..8192)) => 4096,
    _ => 8192,
});
/// Up to how many rules and references a chain is short.
const SHORT: u32 = 8;
/// Below this many short chains a second socket does not pay.
const MANY: usize = 64;

/// What a dump of rules costs the kernel beyond sending them, in nanoseconds, roughly: only the ratio
/// matters. Measured on Linux 6.18 with the rules that kube-proxy writes; with 10,000 of its chains the
/// two ways cost the same.
mod cost {
    /// A request and its replies.
    const REQUEST: u64 = 4_600;
    /// Passing a rule that was sent already.
    const PASS: u64 = 9;
    /// How many rules fit a datagram of 32 KiB.
    const DATAGRAM: u64 = 48;

    /// One dump of all rules of chains that have so many rules and references together: mostly there
    /// are three references to five rules.
    pub(super) const fn of_dump(uses: u64) -> u64 {
        let rules = uses.saturating_mul(5) / 8;
        (rules.saturating_mul(rules) / (2 * DATAGRAM))
            .saturating_mul(PASS)
            .saturating_add(REQUEST)
    }
}

/// How the rules of a table are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// In one dump.
    Whole,
    /// In a dump for each chain.
    ByChain,
}

/// One attempt to read a snapshot.
pub(super) struct Reader<'c> {
    pub(super) connection: &'c mut Connection,
    /// For the rules of short chains.
    short: Option<Socket>,
    pub(super) snapshot: Snapshot,
    /// The low bits of the generation, as messages bear it.
    resource: u16,
    /// Whether everything so far was of that generation.
    pub(super) consistent: bool,
    /// Whether to go on when it is not.
    to_the_end: bool,
    /// Whether a change is no reason to stop yet: it may be of tables that are not in the scope.
    watched: bool,
    /// Whether there was one.
    moved: bool,
    /// The first base chain that was read by itself and lacks rules.
    pub(super) missing: Option<MissingRules>,
    /// The requests that list rules and elements, which may be those that reset what they list.
    pub(super) rules_by: u8,
    pub(super) elements_by: u8,
}

/// What an attempt read.
struct Read {
    /// Without a generation if a change ran across it.
    snapshot: Snapshot,
    /// A chain that lacks rules.
    missing: Option<MissingRules>,
    /// Whether nothing changed meanwhile, in no table.
    quiet: bool,
}

/// Over which socket to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Long receives.
    Long,
    /// Receives of a page.
    Short,
}

impl SnapshotError {
    /// Returns that the last attempt did not read one generation, or lacks rules.
    pub(super) fn unsettled(
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
    /// When changes run across the reading, or a part of it is lost, it is begun again
    /// ([`with_retry`](Self::with_retry)). From then on it listens to what others commit: of one table it asks only
    /// that this table stands still, and what was touched meanwhile is read anew by itself, until nothing more
    /// is touched while that is done. (Unless the calling thread is in another network namespace than
    /// the connection, and may not enter that: then all of it has to stand still.) How it is read, and what makes it whole, stands at the head of this module's source.
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
    /// [`SnapshotError`]: it hands out what was read.
    pub fn snapshot(&mut self, scope: Scope<'_>) -> Result<Snapshot, SnapshotError> {
        self.snapshot_with(scope, SnapshotOptions::default())
    }

    /// As [`snapshot`](Self::snapshot), without the elements of some sets: where rules add elements all the
    /// time, or there are a great many of them, and only the rest is of interest.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::{Connection, ElementsOf, Scope, SnapshotOptions};
    /// let mut nft = Connection::open()?;
    /// let options = SnapshotOptions { elements: ElementsOf::all() - ElementsOf::DYNAMIC };
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
        self.snapshot_in(Arena::default(), &scope, options.elements, self.retry)
    }

    /// As [`snapshot`](Self::snapshot), tried as often as `retry` says.
    pub(super) fn snapshot_as(
        &mut self,
        scope: &Scope<'_>,
        retry: Retry,
    ) -> Result<Snapshot, SnapshotError> {
        self.snapshot_in(Arena::default(), scope, ElementsOf::all(), retry)
    }

    /// As [`snapshot`](Self::snapshot), in memory that is there already.
    fn snapshot_in(
        &mut self,
        mut arena: Arena,
        scope: &Scope<'_>,
        elements: ElementsOf,
        retry: Retry,
    ) -> Result<Snapshot, SnapshotError> {
        let mut attempts = retry.begin();
        let mut doubted = None;
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
                Err(Error::Interrupted) if attempts.again() => continue,
                Err(error) if error.ask_again() && attempts.again_after_loss() => continue,
                Err(error) => return Err(error.into()),
            };
            if snapshot.generation.is_some() && missing.is_none() {
                // What does not add up is believed when it is read a second time.
                let doubt = snapshot.doubt()?;
                if doubt.is_none() || (doubt == doubted && quiet) {
                    tracing::Span::current().record("bytes", snapshot.byte_length());
                    return Ok(snapshot);
                }
                doubted = doubt;
            }
            // A transaction of somebody else's, not committed yet, may be why it does not add up.
            if !attempts.again() {
                return Err(SnapshotError::unsettled(snapshot, missing, &attempts));
            }
            arena = snapshot.arena;
        }
    }

    /// Reads a snapshot once, to the end, whatever changes in the meantime:
    /// [`Snapshot::generation`] is `None` if something did, and the snapshot then may lack objects or
    /// hold some twice. For callers who follow the events and join the two.
    ///
    /// # Errors
    /// Those of a request.
    pub fn snapshot_once(&mut self, scope: Scope<'_>) -> Result<Snapshot, Error> {
        let read = self.read(
            Snapshot::of(scope.into_owned(), ElementsOf::all()),
            true,
            None,
        );
        read.map(|read| read.snapshot)
    }

    /// One attempt, into an empty snapshot.
    fn read(
        &mut self,
        mut snapshot: Snapshot,
        to_the_end: bool,
        mut watch: Option<&mut Watch>,
    ) -> Result<Read, Error> {
        snapshot.arena.clear();
        let scope = &snapshot.scope.clone();
        if let Some(watch) = &mut watch {
            watch.begin();
        }
        let generation = self.generation()?;
        let mut reader = Reader {
            connection: self,
            short: None,
            snapshot,
            resource: generation.number() as u16,
            consistent: true,
            to_the_end: to_the_end || watch.is_some(),
            watched: watch.is_some(),
            moved: false,
            missing: None,
            rules_by: NFT_MSG_GETRULE,
            elements_by: NFT_MSG_GETSETELEM,
        };
        reader.read(scope)?;
        let mut missing = match reader.consistent {
            true => reader.complete()?,
            false => None,
        };
        let now = reader.connection.generation()?;
        let quiet = now == generation && !reader.moved;
        let mut whole = (reader.consistent && quiet).then_some(now);
        let touched = |watch: &mut Watch| match now == generation {
            true => Ok(Touches::default()),
            false => watch.touches(std::slice::from_ref(scope), now),
        };
        if let Some(watch) = watch
            && whole.is_none()
            && let Ok(touched) = touched(watch)
        {
            whole = match touched.is_empty() && reader.consistent {
                true => Some(now),
                false => {
                    missing = None;
                    reader.repair(watch, scope, touched, now)?
                }
            };
        }
        let mut snapshot = reader.snapshot;
        snapshot.close();
        snapshot.generation = whole;
        Ok(Read {
            snapshot,
            missing,
            quiet,
        })
    }
}

impl Snapshot {
    /// Reads it again, in the memory that it has, if the generation moved, or if this
    /// connection is of another namespace than that of the last time. If the generation is the same
    /// the snapshot is left as it is, at the price of one small request and reply whatever the size:
    /// what moves no generation, counters and the elements that rules add for instance, may have changed
    /// all the same ([`Refreshed::SameGeneration`]).
    ///
    /// # Errors
    /// As [`Connection::snapshot`]. The snapshot is then empty, without a generation, or as it was if not
    /// even that of the ruleset could be asked for.
    pub fn refresh(&mut self, connection: &mut Connection) -> Result<Refreshed, SnapshotError> {
        if self.generation.is_some() && self.generation == Some(connection.generation()?) {
            return Ok(Refreshed::SameGeneration);
        }
        self.read_anew(connection)?;
        Ok(Refreshed::ReadAnew)
    }

    /// Reads it again, in the memory that it has, whether or not the generation moved.
    ///
    /// # Errors
    /// As [`Connection::snapshot`]. The snapshot is then empty, without a generation.
    pub fn read_anew(&mut self, connection: &mut Connection) -> Result<(), SnapshotError> {
        let old = std::mem::take(self);
        (self.scope, self.elements) = (old.scope, old.elements);
        *self = connection.snapshot_in(
            old.arena,
            &self.scope.clone(),
            self.elements,
            connection.retry,
        )?;
        Ok(())
    }
}

/// A chain that lacks rules, or has too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRules {
    /// The chain: family, table and name.
    pub chain: String,
    /// How many rules were listed, and jumps to the chain were found.
    pub found: u64,
    /// How many of both the chain has.
    pub expected: u32,
}

impl<'c> Reader<'c> {
    /// To read parts of a snapshot anew, whatever changes elsewhere.
    pub(super) const fn of(connection: &'c mut Connection, snapshot: Snapshot) -> Self {
        Self {
            connection,
            short: None,
            snapshot,
            resource: 0,
            consistent: true,
            to_the_end: true,
            watched: true,
            moved: false,
            missing: None,
            rules_by: NFT_MSG_GETRULE,
            elements_by: NFT_MSG_GETSETELEM,
        }
    }
}

impl Reader<'_> {
    /// Reads all of these tables.
    pub(super) fn read(&mut self, scope: &Scope<'_>) -> Result<(), Error> {
        self.tables(scope)?;
        // A dump of which a reply was lost is found out by what else is listed; a look-up by name is answered or fails.
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

    /// Reads the tables themselves: one by its name, others in a dump.
    pub(super) fn tables(&mut self, scope: &Scope<'_>) -> Result<(), Error> {
        let family = scope.family;
        if let Some(name) = scope.table.as_ref().filter(|_| family != Family::UNSPEC) {
            return self.one_table(family, BStr::new(&**name)).map(|_| ());
        }
        let request = "list tables";
        self.dump(
            Lane::Long,
            request,
            NFT_MSG_GETTABLE,
            family,
            |_| {},
            |message| scope_admits(scope, message, NFTA_TABLE_NAME),
        )
    }

    /// Reads chains without their rules: those that `admits` accepts are kept. The kernel filters by the family only.
    pub(super) fn chains(
        &mut self,
        scope: &Scope<'_>,
        admits: &dyn Fn(&ChainRef<'_>) -> bool,
    ) -> Result<(), Error> {
        self.dump(
            Lane::Long,
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
                // Two of one handle, or an order that is none: the dump was shifted.
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
            Lane::Long,
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
            Lane::Long,
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

    /// Reads sets without their elements: those that `admits` accepts are kept.
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
            Lane::Long,
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

    /// What came of a dump that the kernel refuses if what it is of is gone by now.
    fn unless_gone(&mut self, listed: Result<(), Error>) -> Result<(), Error> {
        match listed {
            Err(Error::Refused { errno, .. }) if errno.number() == libc::ENOENT => {
                self.consistent = false;
                match self.to_the_end {
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

    /// Reads the elements of one set, until none of them comes twice; unless they are to be left out.
    pub(super) fn whole_elements_of(&mut self, table: usize, set: usize) -> Result<(), Error> {
        let at = self.snapshot.index.tables[table].sets[set].at;
        if (self.snapshot).leaves_out(&set_at(&self.snapshot.arena, at)?) {
            return Ok(());
        }
        self.elements_of(table, set)?;
        // The kernel rebuilds a hash table after it has grown, in the background; a dump that
        // this runs across holds some elements twice and lacks as many, with no other mark.
        let retry = Retry {
            attempts: REBUILDS.attempts.min(self.connection.retry.attempts),
            deadline: self.connection.retry.deadline,
            ..REBUILDS
        };
        let mut attempts = retry.begin();
        loop {
            let (index, arena) = (&mut self.snapshot.index, &self.snapshot.arena);
            if !index.repeats(arena, table, set)? {
                return Ok(());
            }
            // What was reset is not there again.
            if self.elements_by != NFT_MSG_GETSETELEM || !attempts.again() {
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
        let name = |kind| Name::keep(find(kind)).unwrap_or_default();
        let content = |writer: &mut MessageWriter<'_>| {
            writer
                .string(NFTA_SET_ELEM_LIST_TABLE, name(NFTA_SET_TABLE))
                .string(NFTA_SET_ELEM_LIST_SET, name(NFTA_SET_NAME));
        };
        self.snapshot.index.expect_elements(set);
        let message = self.elements_by;
        let listed = self.dump(
            Lane::Long,
            "list elements",
            message,
            family,
            content,
            |_| true,
        );
        self.unless_gone(listed)
    }

    /// The family of the object at a position, and a copy of its attributes.
    fn object(&self, at: Position) -> Result<(Family, Vec<u8>), Error> {
        let (header, attributes) = self.snapshot.arena.message(at)?.nfgenmsg()?;
        Ok((Family(header.family), attributes.to_vec()))
    }

    /// Reads all rules, in the way that is cheapest.
    fn rules(&mut self, scope: &Scope<'_>) -> Result<(), Error> {
        let plans = self.plans()?;
        if scope.table.is_none() && !plans.iter().any(|plan| plan.0 == Plan::ByChain) {
            let rules = plans.iter().map(|plan| plan.1).sum();
            // All tables together may be cheaper one by one.
            let apart: u64 = plans.iter().map(|plan| cost::of_dump(plan.1)).sum();
            if cost::of_dump(rules) <= apart {
                return self.dump(
                    Lane::Long,
                    "list rules",
                    self.rules_by,
                    scope.family,
                    |_| {},
                    |_| true,
                );
            }
        }
        for (table, (plan, _)) in plans.into_iter().enumerate() {
            match plan {
                // Also if no chain counts a rule: while somebody's transaction is prepared, the counts
                // are those that it will leave.
                Plan::Whole => {
                    let at = self.snapshot.index.tables[table].at;
                    let (family, name) = {
                        let table = table_at(&self.snapshot.arena, at)?;
                        (table.family(), table.name().to_vec())
                    };
                    let content = |writer: &mut MessageWriter<'_>| {
                        writer.string(NFTA_RULE_TABLE, &name);
                    };
                    self.dump(
                        Lane::Long,
                        "list rules",
                        self.rules_by,
                        family,
                        content,
                        |_| true,
                    )?;
                }
                Plan::ByChain => {
                    let Snapshot { index, arena, .. } = &self.snapshot;
                    let lacks_jumps = index.lacks_jumps(arena, table, self.snapshot.elements)?;
                    // What a cut reply resets is lost.
                    let is_reset = self.rules_by != NFT_MSG_GETRULE;
                    let lane = (lacks_jumps || is_reset).then_some(Lane::Long);
                    for chain in 0..self.snapshot.index.tables[table].chains.len() {
                        self.rules_of(table, chain, lane)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// How to ask for the rules of each table, and an upper bound of their number.
    fn plans(&mut self) -> Result<Vec<(Plan, u64)>, Error> {
        let mut plans = Vec::with_capacity(self.snapshot.index.tables.len());
        let Snapshot { index, arena, .. } = &self.snapshot;
        for (number, table) in index.tables.iter().enumerate() {
            let (mut rules, mut by_chain, mut short) = (0, 0, 0);
            for chain in &table.chains {
                let count = uses(&chain_at(&self.snapshot.arena, chain.at)?);
                rules += u64::from(count);
                by_chain += cost::of_dump(count.into());
                short += usize::from(count <= SHORT);
            }
            let plan = match by_chain < cost::of_dump(rules) {
                true => Plan::ByChain,
                false => Plan::Whole,
            };
            // A reply that was too short shows only where all jumps are known.
            let lacks_jumps = index.lacks_jumps(arena, number, self.snapshot.elements)?;
            if plan == Plan::ByChain && short >= MANY && self.short.is_none() && !lacks_jumps {
                self.short = self.connection.socket.sibling();
            }
            plans.push((plan, rules));
        }
        Ok(plans)
    }

    /// Reads the rules of one chain; `lane` is chosen by its length if it is `None`.
    pub(super) fn rules_of(
        &mut self,
        table: usize,
        chain: usize,
        lane: Option<Lane>,
    ) -> Result<(), Error> {
        let Self {
            connection,
            snapshot,
            short,
            rules_by,
            ..
        } = self;
        let at = snapshot.index.tables[table].chains[chain].at;
        let view = chain_at(&snapshot.arena, at)?;
        let count = uses(&view);
        snapshot.index.expect_rules(&view, table, chain);
        let lane = lane.unwrap_or(match short {
            Some(_) if count <= SHORT => Lane::Short,
            _ => Lane::Long,
        });
        let sequence = connection.build(*rules_by, NLM_F_DUMP, view.family(), |writer| {
            writer
                .string(NFTA_RULE_TABLE, view.table())
                .string(NFTA_RULE_CHAIN, view.name());
        })?;
        self.receive(lane, Dump::new("list rules", sequence), |_| true)
    }

    /// Whether every chain has all its rules; the first that has not. What came over the socket of
    /// small replies is asked for again over the other.
    fn complete(&mut self) -> Result<Option<MissingRules>, Error> {
        for table in 0..self.snapshot.index.tables.len() {
            let (mut handle, mut expected, mut bound) = (0, 0, 0);
            for chain in &self.snapshot.index.tables[table].chains {
                let view = chain_at(&self.snapshot.arena, chain.at)?;
                // Two of one handle, or an order that is none: the dump was shifted.
                if view.handle() <= handle || chain.broken {
                    self.consistent = false;
                    return Ok(None);
                }
                handle = view.handle();
                expected += u64::from(uses(&view));
                bound += u64::from(is_bound(&view));
            }
            let found = self.snapshot.index.tables[table].uses;
            if found == expected || found + bound == expected {
                continue;
            }
            if self.short.is_some() {
                for (chain, _) in self.incomplete(table)? {
                    let index = &mut self.snapshot.index;
                    index.forget_rules(&self.snapshot.arena, table, chain)?;
                    self.rules_of(table, chain, Some(Lane::Long))?;
                }
            }
            let incomplete = self.incomplete(table)?;
            let timed_out = self.snapshot.index.timed_out(&self.snapshot.arena, table)?;
            let (mut missing, mut surplus, mut first) = (0, false, None);
            for (chain, found) in incomplete {
                let chain = self.snapshot.index.tables[table].chains[chain].at;
                let view = chain_at(&self.snapshot.arena, chain)?;
                let expected = uses(&view);
                missing += u64::from(expected).saturating_sub(found);
                surplus |= found > expected.into();
                first.get_or_insert_with(|| MissingRules {
                    chain: view.to_string(),
                    found,
                    expected,
                });
            }
            if surplus || missing > timed_out {
                return Ok(first);
            }
        }
        Ok(None)
    }

    /// The chains of a table that do not have as many rules and jumps to them as they say, and how many
    /// were found. Where jumps were left out it is no matter that some lack.
    pub(super) fn incomplete(&self, table: usize) -> Result<Vec<(usize, u64)>, Error> {
        let Snapshot { index, arena, .. } = &self.snapshot;
        let lacks_jumps = index.lacks_jumps(arena, table, self.snapshot.elements)?;
        let found = index.uses(arena, table)?;
        let mut incomplete = Vec::new();
        for (number, found) in found.into_iter().enumerate() {
            let chain = self.snapshot.index.tables[table].chains[number].at;
            let view = chain_at(&self.snapshot.arena, chain)?;
            let expected = u64::from(uses(&view));
            let adds_up = found == expected
                || found + u64::from(is_bound(&view)) == expected
                || found < expected && lacks_jumps;
            if !adds_up {
                incomplete.push((number, found));
            }
        }
        Ok(incomplete)
    }

    /// Asks for a dump and takes it in; `admits` says of a message whether it was asked for.
    pub(super) fn dump(
        &mut self,
        lane: Lane,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
        admits: impl Fn(&Message<'_>) -> bool,
    ) -> Result<(), Error> {
        let sequence = self
            .connection
            .build(message, NLM_F_DUMP, family, content)?;
        self.receive(lane, Dump::new(request, sequence), admits)
    }

    /// Sends the request that was built, and takes in the dump that answers it.
    fn receive(
        &mut self,
        lane: Lane,
        dump: Dump,
        admits: impl Fn(&Message<'_>) -> bool,
    ) -> Result<(), Error> {
        let (socket, length) = match (lane, &self.short) {
            (Lane::Short, Some(short)) => (short, *SHORT_BUFFER),
            _ => (&self.connection.socket, RECEIVE_BUFFER),
        };
        socket.send(self.connection.request())?;
        let mut objects = Objects {
            snapshot: &mut self.snapshot,
            length,
            dump,
            admits,
            resource: self.resource,
            consistent: &mut self.consistent,
            moved: self.watched.then_some(&mut self.moved),
            failed: None,
        };
        let taken = socket.take_in(&mut objects);
        let (dump, failed) = (objects.dump, objects.failed);
        if !dump.ended() {
            match lane {
                Lane::Short => self.short = None,
                Lane::Long => self.connection.give_up(&dump),
            }
        }
        taken?;
        match failed {
            Some(error) => Err(error),
            None if self.consistent || self.to_the_end => Ok(()),
            None => Err(Error::Interrupted),
        }
    }
}

/// Takes in a dump: its objects into the snapshot.
struct Objects<'r, A> {
    snapshot: &'r mut Snapshot,
    /// Length of a receive.
    length: usize,
    dump: Dump,
    /// Whether a message was asked for.
    admits: A,
    /// The low bits of the generation, as messages bear it.
    resource: u16,
    /// Whether everything so far was of that generation.
    consistent: &'r mut bool,
    /// Where to note a change, if that may be none of the scope.
    moved: Option<&'r mut bool>,
    /// The first thing that could not be understood. What comes behind it is received, so that the socket
    /// is free again.
    failed: Option<Error>,
}

impl<A: Fn(&Message<'_>) -> bool> Intake for Objects<'_, A> {
    fn is_complete(&self) -> bool {
        self.dump.ended()
    }

    fn room(&mut self) -> Result<&mut [u8], Error> {
        let room = self.snapshot.arena.room(self.length);
        Ok(room.map_err(Malformed::from)?)
    }

    fn take(&mut self, received: usize) -> Result<(), Error> {
        let Self { snapshot, dump, .. } = self;
        let start = snapshot.arena.take(received);
        let mut kept = 0;
        let mut offset = 0;
        while offset < received {
            let at = start.plus(offset);
            let rest = &snapshot.arena.bytes(at)[..received - offset];
            let message = match Message::first(rest) {
                Ok(message) => message,
                Err(malformed) => {
                    self.failed.get_or_insert(malformed.into());
                    break;
                }
            };
            offset += message.padded_length();
            if !dump.is_usual(&message) {
                match dump.accept(message) {
                    Ok(DumpItem::Object(_)) => {}
                    Ok(DumpItem::Unrelated | DumpItem::End) => continue,
                    // The kernel's mark that a change ran across this dump.
                    Err(Error::Interrupted) => {
                        see_change(&mut self.moved, self.consistent);
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            if self.failed.is_some() || !(self.admits)(&message) {
                continue;
            }
            let resource = NfGenMsg::split(message.payload).map(|(header, _)| header.resource);
            if resource != Ok(self.resource) {
                see_change(&mut self.moved, self.consistent);
            }
            match snapshot.index.insert(&snapshot.arena, at) {
                Ok(Inserted::Placed) => kept = offset,
                Ok(Inserted::Stray) => *self.consistent = false,
                Ok(Inserted::Unrelated) => {}
                Err(malformed) => self.failed = Some(malformed.into()),
            }
        }
        // What comes behind the last object is not needed: mostly the dump's end.
        snapshot.arena.give_back(start.plus(kept));
        Ok(())
    }
}

/// Notes that something changed while it was read.
fn see_change(moved: &mut Option<&mut bool>, consistent: &mut bool) {
    match moved {
        Some(moved) => **moved = true,
        None => *consistent = false,
    }
}

/// How many rules and references a chain says it has.
pub(super) fn uses(chain: &ChainRef<'_>) -> u32 {
    chain.references().unwrap_or(0)
}

/// Whether the chain is bound to the rule that jumps to it: newer kernels count that jump twice.
pub(super) fn is_bound(chain: &ChainRef<'_>) -> bool {
    chain
        .flags()
        .is_some_and(|flags| flags.contains(ChainFlags::BINDING))
}

/// Whether a message's table is in the scope.
fn scope_admits(scope: &Scope<'_>, message: &Message<'_>, kind: u16) -> bool {
    scope.table.is_none()
        || message.nfgenmsg().is_ok_and(|(header, attributes)| {
            let name = Attributes::new(attributes).find(kind);
            name.and_then(Name::keep)
                .is_some_and(|name| scope.admits(Family(header.family), name))
        })
}
