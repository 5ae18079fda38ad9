//! Which tables stood still while others were changed.
//!
//! A generation is of the whole ruleset of a namespace, and so is the kernel's mark on a dump: with them
//! alone a commit in any table spoils the reading of every other. What tells tables apart are the kernel's
//! notifications, which a second socket receives while the table is read: for each commit what it added,
//! changed and deleted, and behind that the new generation. They come in the order of the commits, and when
//! that of the generation at the end of the reading is here, all that could have changed the table meanwhile
//! is. Where a notification was lost, or that of the last commit does not come in time, nothing is known.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bstr::BString;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELRULE, NFT_MSG_DELSET, NFT_MSG_DELSETELEM, NFT_MSG_DESTROYCHAIN,
    NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM, NFT_MSG_NEWCHAIN,
    NFT_MSG_NEWGEN, NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFTA_CHAIN_NAME,
    NFTA_RULE_CHAIN, NFTA_SET_ELEM_LIST_SET, NFTA_SET_NAME, NFTA_TABLE_NAME,
};
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;

use crate::netlink::{Error, Intake, Loss, Malformed, Message, Messages, RECEIVE_BUFFER, Socket};
use crate::nft::Family;
use crate::nft::connection::{Connection, message_type};
use crate::nft::declare::Field;
use crate::nft::generation::{Generation, GenerationRef};
use crate::nft::name::Name;
use crate::nft::scope::Scope;

/// How many bytes of notifications may be queued, with the kernel's book-keeping.
const QUEUE: usize = 8 * 1024 * 1024;
/// How long the notification of a commit is waited for, whose generation can be seen already.
const WAIT: Duration = Duration::from_millis(100);

/// A connection's second socket, while nobody listens to it. To close one instead can wait tens of
/// milliseconds for the kernel, which first does away with what was deleted in the namespace.
pub(super) type Resting = Arc<Mutex<Option<Socket>>>;

/// A socket with the notifications of what is committed.
#[derive(Debug)]
pub(super) struct Watch {
    /// There until it is dropped.
    socket: Option<Socket>,
    buffer: Vec<u8>,
    home: Resting,
}

impl Watch {
    /// Over a connection's namespace; `None` if the calling thread is in another one and may not enter that.
    pub(super) fn open(connection: &Connection) -> Option<Self> {
        let resting = connection.listener.lock().ok().and_then(|mut at| at.take());
        let socket = match resting {
            Some(socket) => socket,
            None => {
                let mut socket = connection.socket.sibling()?;
                socket.reserve_receive(QUEUE);
                socket
            }
        };
        socket.join(NFNLGRP_NFTABLES).ok()?;
        Some(Self {
            socket: Some(socket),
            buffer: vec![0; RECEIVE_BUFFER],
            home: Arc::clone(&connection.listener),
        })
    }

    /// Forgets what was committed so far.
    pub(super) fn begin(&mut self) {
        let _ = self.take(&[], Until::Forgotten);
    }

    /// Whether these tables stood still from what was taken in last until this generation.
    pub(super) fn stood_still(&mut self, scopes: &[Scope<'_>], until: Generation) -> bool {
        self.take(scopes, Until::Generation(until.number())).is_ok()
    }

    /// What was touched in these tables from what was taken in last until this generation.
    ///
    /// # Errors
    /// That it is not known.
    pub(super) fn touches(
        &mut self,
        scopes: &[Scope<'_>],
        until: Generation,
    ) -> Result<Touches, Touched> {
        let mut touches = Touches::default();
        let until = Until::Generation(until.number());
        self.take_noting(scopes, until, Some(&mut touches))?;
        Ok(touches)
    }

    /// The number of the newest generation until which these tables stood still, if there is one since what
    /// was taken in last.
    ///
    /// # Errors
    /// One that was touched, or that nothing is known.
    pub(super) fn newest(&mut self, scopes: &[Scope<'_>]) -> Result<Option<u32>, Touched> {
        self.take(scopes, Until::Queued)
    }

    fn take(&mut self, scopes: &[Scope<'_>], until: Until) -> Result<Option<u32>, Touched> {
        self.take_noting(scopes, until, None)
    }

    fn take_noting(
        &mut self,
        scopes: &[Scope<'_>],
        until: Until,
        noted: Option<&mut Touches>,
    ) -> Result<Option<u32>, Touched> {
        let Some(socket) = &self.socket else {
            return Err(Touched);
        };
        let mut events = Events {
            socket,
            buffer: &mut self.buffer,
            until,
            scopes,
            newest: None,
            ended: false,
            touched: false,
            noted,
        };
        match socket.take_in(&mut events) {
            Ok(()) if !events.touched => Ok(events.newest),
            _ => Err(Touched),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let left = self.socket.as_ref().map(|s| s.leave(NFNLGRP_NFTABLES));
        if !matches!(left, Some(Ok(()))) {
            return;
        }
        // What is queued takes memory of the kernel's.
        self.begin();
        let Some(socket) = self.socket.take() else {
            return;
        };
        if let Ok(mut resting) = self.home.lock() {
            resting.get_or_insert(socket);
        }
    }
}

/// A table was changed, or may have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touched;

/// Something in a table: its family, its table's name and its own.
pub(super) type MemberKey = (Family, BString, BString);

/// What was touched in some tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touches {
    /// Chains that came, went or were changed, and those whose rules did.
    pub(super) chains: BTreeSet<MemberKey>,
    /// Sets that came, went or were changed, and those whose elements did.
    pub(super) sets: BTreeSet<MemberKey>,
    /// Whether something else was: a table, a stateful object, a flowtable.
    pub(super) others: bool,
}

impl Touches {
    pub(super) fn is_empty(&self) -> bool {
        self.chains.is_empty() && self.sets.is_empty() && !self.others
    }

    /// Notes what an event is about, or an operation.
    pub(super) fn note(&mut self, message: &Message<'_>) -> Result<(), Malformed> {
        let (members, named_by) = match message.kind as u8 {
            NFT_MSG_NEWCHAIN | NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => {
                (&mut self.chains, NFTA_CHAIN_NAME)
            }
            NFT_MSG_NEWRULE | NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => {
                (&mut self.chains, NFTA_RULE_CHAIN)
            }
            NFT_MSG_NEWSET | NFT_MSG_DELSET | NFT_MSG_DESTROYSET => (&mut self.sets, NFTA_SET_NAME),
            NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => {
                (&mut self.sets, NFTA_SET_ELEM_LIST_SET)
            }
            _ => {
                self.others = true;
                return Ok(());
            }
        };
        let family = Family(message.nfgenmsg()?.0.family);
        // The attribute with the table's name has the same number in all objects.
        let attributes = message.attributes()?;
        let name = |kind| attributes.clone().find(kind).and_then(Name::keep);
        match (name(NFTA_TABLE_NAME), name(named_by)) {
            (Some(table), Some(name)) => {
                _ = members.insert((family, table.to_owned(), name.to_owned()));
            }
            _ => self.others = true,
        }
        Ok(())
    }
}

/// Up to where notifications are taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// All that are queued, whatever they are about.
    Forgotten,
    /// All that are queued.
    Queued,
    /// That of this generation, which is waited for.
    Generation(u32),
}

/// Takes in notifications.
struct Events<'w> {
    socket: &'w Socket,
    buffer: &'w mut [u8],
    until: Until,
    scopes: &'w [Scope<'w>],
    /// The last generation.
    newest: Option<u32>,
    ended: bool,
    /// Whether one is about a table of the scopes, and not noted.
    touched: bool,
    /// Where to note what they are about.
    noted: Option<&'w mut Touches>,
}

impl Intake for Events<'_> {
    fn is_complete(&self) -> bool {
        self.ended || self.touched
    }

    fn room(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        if self.until == Until::Forgotten {
            return Ok(());
        }
        for message in Messages::new(&self.buffer[..length]) {
            let message = message?;
            if message.kind == message_type(NFT_MSG_NEWGEN) {
                let number = GenerationRef::parse(&message)?.id();
                self.ended |= self.until == Until::Generation(number);
                self.newest = Some(number);
                continue;
            }
            // The attribute with the table's name has the same number in all objects.
            let (header, _) = message.nfgenmsg()?;
            let name = message.attributes()?.find(NFTA_TABLE_NAME);
            let family = Family(header.family);
            let name = name.and_then(Name::keep);
            let touches = name.is_none_or(|name| {
                let mut scopes = self.scopes.iter();
                scopes.any(|scope| scope.admits(family, name))
            });
            match (&mut self.noted, name) {
                (Some(noted), Some(_)) if touches => noted.note(&message)?,
                _ => self.touched |= touches,
            }
        }
        Ok(())
    }

    fn lose(&mut self, error: Error) -> Result<(), Error> {
        match (error, self.until) {
            (Error::Lost(Loss::Absent), Until::Generation(_)) => {
                if !self.socket.wait(Some(Instant::now() + WAIT))? {
                    return Err(Error::Lost(Loss::Absent));
                }
            }
            (Error::Lost(Loss::Absent), _) => self.ended = true,
            // What was lost before the beginning does not matter.
            (Error::Lost(_) | Error::Truncated { .. }, Until::Forgotten) => {}
            (error, _) => return Err(error),
        }
        Ok(())
    }
}
