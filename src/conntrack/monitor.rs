//! Events of the conntrack table.

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
use crate::netlink::{Error, Loss, RECEIVE_BUFFER, Socket, Unread};

bitflags! {
    /// The kinds of events to receive.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Events: u8 {
        /// New entries.
        const NEW = 1;
        /// Entries that changed.
        const UPDATE = 2;
        /// Entries that were removed.
        const DESTROY = 4;
    }
}

/// An event from a [`Monitor`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'m> {
    /// A new entry.
    New(EntryRef<'m>),
    /// A changed entry; contains the changed attributes.
    Updated(EntryRef<'m>),
    /// A removed entry, with its final counters if the kernel counts packets.
    Destroyed(EntryRef<'m>),
    /// Events were lost because the receive buffer was full. List the table again.
    Lost(Loss),
}

/// Receives the conntrack events of the network namespace in which the calling thread was when it opened the monitor.
///
/// If `net.netfilter.nf_conntrack_events` is 0, the kernel sends no events. If it is 2, the default since Linux 5.19,
/// the kernel sends events only for entries that were created while a listener existed.
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

/// Position of an event in the buffer.
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
    /// Subscribes to these events, with a receive buffer of 8 MiB. Without `CAP_NET_ADMIN` in the initial user
    /// namespace, `net.core.rmem_max` limits its size.
    ///
    /// # Errors
    /// [`Error::Open`]; [`Error::Option`], with `EPERM` without `CAP_NET_ADMIN`.
    pub fn open(events: Events) -> Result<Self, Error> {
        Self::open_with(events, 8 << 20)
    }

    /// Like [`open`](Self::open), with a receive buffer of this many bytes.
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

    /// Returns the next event if one is queued, without waiting.
    ///
    /// # Errors
    /// [`Error::Receive`]; [`Error::Malformed`], after which the next call continues with the next datagram.
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

    /// Waits for the next event for at most `time`; `None` on timeout.
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
                match self.socket.try_receive(&mut self.buffer) {
                    Ok(Some(length)) => self.unread = Unread::of(length),
                    Ok(None) => return Ok(None),
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

/// The descriptor is readable when there is something to [receive](Monitor::try_receive).
impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
