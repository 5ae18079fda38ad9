//! Whether tables stood still while others were changed.
//!
//! A generation is of the whole ruleset of a namespace, and so is the kernel's mark on a dump: with them
//! alone a commit in any table spoils the reading of every other. What tells tables apart are the kernel's
//! notifications, which a second socket receives while the table is read: for each commit what it added,
//! changed and deleted, and behind that the new generation. They come in the order of the commits, and when
//! that of the generation at the end of the reading is here, all that could have changed the table meanwhile
//! is. Where a notification was lost, or that of the last commit does not come in time, nothing is known.

use std::time::{Duration, Instant};

use chainwright_sys::nf_tables::{NFT_MSG_NEWGEN, NFTA_TABLE_NAME};
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;

use crate::netlink::{Error, Intake, Loss, Messages, RECEIVE_BUFFER, Socket};
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

/// A socket with the notifications of what is committed.
#[derive(Debug)]
pub(super) struct Watch {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Watch {
    /// Over a connection's namespace; `None` if the calling thread is in another one.
    pub(super) fn open(connection: &Connection) -> Option<Self> {
        let mut socket = connection.socket.sibling()?;
        socket.reserve_receive(QUEUE);
        socket.join(NFNLGRP_NFTABLES).ok()?;
        Some(Self {
            socket,
            buffer: vec![0; RECEIVE_BUFFER],
        })
    }

    /// Forgets what was committed so far.
    pub(super) fn begin(&mut self) {
        let _ = self.socket.take_in(&mut Events {
            socket: &self.socket,
            buffer: &mut self.buffer,
            until: None,
            scope: &Scope::all(),
            ended: false,
            touched: false,
        });
    }

    /// Whether these tables stood still since [`begin`](Self::begin) and until this generation.
    pub(super) fn stood_still(&mut self, scope: &Scope<'_>, until: Generation) -> bool {
        let mut events = Events {
            socket: &self.socket,
            buffer: &mut self.buffer,
            until: Some(until),
            scope,
            ended: false,
            touched: false,
        };
        self.socket.take_in(&mut events).is_ok() && !events.touched
    }
}

/// Takes in notifications.
struct Events<'w> {
    socket: &'w Socket,
    buffer: &'w mut [u8],
    /// Up to that of this generation, which is waited for; `None` for what is queued.
    until: Option<Generation>,
    scope: &'w Scope<'w>,
    ended: bool,
    /// Whether one is about a table of the scope.
    touched: bool,
}

impl Intake for Events<'_> {
    fn is_complete(&self) -> bool {
        self.ended || (self.touched && self.until.is_some())
    }

    fn room(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        let Some(until) = self.until else {
            return Ok(());
        };
        for message in Messages::new(&self.buffer[..length]) {
            let message = message?;
            if message.kind == message_type(NFT_MSG_NEWGEN) {
                self.ended |= GenerationRef::parse(&message)?.id() == until.number();
                continue;
            }
            // The attribute with the table's name has the same number in all objects.
            let (header, _) = message.nfgenmsg()?;
            let name = message.attributes()?.find(NFTA_TABLE_NAME);
            self.touched |= name
                .and_then(Name::keep)
                .is_none_or(|name| self.scope.admits(Family(header.family), name));
        }
        Ok(())
    }

    fn lose(&mut self, error: Error) -> Result<(), Error> {
        match (error, self.until) {
            (Error::Lost(Loss::Absent), None) => self.ended = true,
            // What was lost before the beginning does not matter.
            (Error::Lost(_) | Error::Truncated { .. }, None) => {}
            (Error::Lost(Loss::Absent), Some(_)) => {
                if !self.socket.wait(Some(Instant::now() + WAIT))? {
                    return Err(Error::Lost(Loss::Absent));
                }
            }
            (error, _) => return Err(error),
        }
        Ok(())
    }
}
