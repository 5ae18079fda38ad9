//! Events of the table of connections.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use bitflags::bitflags;
use chainwright_sys::netlink::{NLM_F_CREATE, NLM_F_EXCL, NLMSG_MIN_TYPE, NLMSG_OVERRUN};
use chainwright_sys::nfnetlink::{
    NFNLGRP_CONNTRACK_DESTROY, NFNLGRP_CONNTRACK_NEW, NFNLGRP_CONNTRACK_UPDATE,
};
use chainwright_sys::nfnetlink_conntrack::{IPCTNL_MSG_CT_DELETE, IPCTNL_MSG_CT_NEW};

use super::connection::message_type;
use super::entry::EntryRef;
use crate::netlink::{Error, Loss, Next, RECEIVE_BUFFER, Socket, Unread};

bitflags! {
    /// What is told of.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Events: u8 {
        /// New entries.
        const NEW = 1;
        /// Entries that changed.
        const UPDATE = 2;
        /// Entries that are gone.
        const DESTROY = 4;
    }
}

/// What a [`Monitor`] tells.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'m> {
    /// An entry is new.
    New(EntryRef<'m>),
    /// An entry has changed: what has is in it.
    Updated(EntryRef<'m>),
    /// An entry is gone, with its counters as they were, if the kernel counts.
    Destroyed(EntryRef<'m>),
    /// Events were lost, as more came than the receive buffer holds. What is known of the table is to be listed anew.
    Lost(Loss),
}

/// Is told what becomes of connections in one network namespace: the one that the calling thread was in when it was
/// opened.
///
/// The kernel tells nothing where `net.netfilter.nf_conntrack_events` is 0; where it is 2, as by default since Linux
/// 5.19, it tells of entries that were made while somebody listened.
///
/// ```no_run
/// use chainwright::conntrack::{Event, Events, Monitor};
///
/// let mut monitor = Monitor::open(Events::NEW | Events::DESTROY)?;
/// loop {
///     match monitor.receive()? {
///         Event::New(entry) => println!("new {entry}"),
///         Event::Destroyed(entry) => println!("gone {entry}"),
///         Event::Lost(loss) => println!("list again: {loss}"),
///         _ => {}
///     }
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), chainwright::netlink::Error>(())
/// ```
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
    buffer: Vec<u8>,
    unread: Unread,
}

/// Where an event stands in the buffer.
enum Found {
    Entry {
        kind: u8,
        is_new: bool,
        start: usize,
        end: usize,
    },
    Lost(Loss),
}

impl Monitor {
    /// Listens to these events from here on, with a receive buffer of 8 MiB, as far as `net.core.rmem_max` allows without
    /// `CAP_NET_ADMIN` in the first user namespace.
    ///
    /// # Errors
    /// [`Error::Open`]; [`Error::Option`], with `EPERM` without `CAP_NET_ADMIN`.
    pub fn open(events: Events) -> Result<Self, Error> {
        Self::open_with(events, 8 << 20)
    }

    /// As [`open`](Self::open), with a receive buffer of so many bytes.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(events: Events, receive_buffer: usize) -> Result<Self, Error> {
        let mut socket = Socket::netfilter()?;
        socket.set_receive_buffer(receive_buffer);
        for (event, group) in [
            (Events::NEW, NFNLGRP_CONNTRACK_NEW),
            (Events::UPDATE, NFNLGRP_CONNTRACK_UPDATE),
            (Events::DESTROY, NFNLGRP_CONNTRACK_DESTROY),
        ] {
            if events.contains(event) {
                socket.join(group)?;
            }
        }
        Ok(Self {
            socket,
            buffer: vec![0; RECEIVE_BUFFER],
            unread: Unread::default(),
        })
    }

    /// The next event, if one is queued. This does not wait.
    ///
    /// # Errors
    /// [`Error::Receive`]; [`Error::Malformed`], after which the next datagram is looked at.
    pub fn try_receive(&mut self) -> Result<Option<Event<'_>>, Error> {
        Ok(match self.advance()? {
            None => None,
            Some(found) => Some(self.event(found)?),
        })
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// As [`try_receive`](Self::try_receive).
    pub fn receive(&mut self) -> Result<Event<'_>, Error> {
        loop {
            if let Some(found) = self.advance()? {
                return self.event(found);
            }
            self.socket.wait(None)?;
        }
    }

    /// Waits for the next event, at most so long; `None` if there is none by then.
    ///
    /// # Errors
    /// As [`try_receive`](Self::try_receive).
    pub fn receive_within(&mut self, time: Duration) -> Result<Option<Event<'_>>, Error> {
        let deadline = Instant::now().checked_add(time);
        loop {
            if let Some(found) = self.advance()? {
                return Ok(Some(self.event(found)?));
            }
            if !self.socket.wait(deadline)? {
                return Ok(None);
            }
        }
    }

    fn event(&self, found: Found) -> Result<Event<'_>, Error> {
        Ok(match found {
            Found::Lost(loss) => Event::Lost(loss),
            Found::Entry {
                kind,
                is_new,
                start,
                end,
            } => {
                let entry = EntryRef::parse(&self.buffer[start..end])?;
                match (kind, is_new) {
                    (IPCTNL_MSG_CT_DELETE, _) => Event::Destroyed(entry),
                    (_, true) => Event::New(entry),
                    (_, false) => Event::Updated(entry),
                }
            }
        })
    }

    /// Finds the next event.
    fn advance(&mut self) -> Result<Option<Found>, Error> {
        loop {
            if self.unread.is_empty() {
                let mut next = Next::new(&mut self.buffer);
                match self.socket.take_in(&mut next) {
                    Ok(()) => self.unread = Unread::of(next.length()),
                    Err(Error::Lost(Loss::Absent)) => return Ok(None),
                    Err(Error::Lost(loss)) => return Ok(Some(Found::Lost(loss))),
                    Err(error) => return Err(error),
                }
            }
            let (start, message) = self.unread.next(&self.buffer)?;
            if message.kind < NLMSG_MIN_TYPE {
                if message.kind == NLMSG_OVERRUN {
                    return Ok(Some(Found::Lost(Loss::Overrun)));
                }
                continue;
            }
            let kind = message.kind as u8;
            let is_event = message.kind == message_type(IPCTNL_MSG_CT_NEW)
                || message.kind == message_type(IPCTNL_MSG_CT_DELETE);
            if is_event {
                let end = start + message.raw.len();
                return Ok(Some(Found::Entry {
                    kind,
                    is_new: message.flags & (NLM_F_CREATE | NLM_F_EXCL) != 0,
                    start: end - message.payload.len(),
                    end,
                }));
            }
        }
    }
}

/// It is readable when there is something to [receive](Monitor::try_receive).
impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
