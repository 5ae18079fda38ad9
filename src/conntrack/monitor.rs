//! Events of the conntrack table.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use bitflags::bitflags;
use chainwright_sys::netlink::{NLM_F_CREATE, NLM_F_EXCL, NLMSG_OVERRUN};
use chainwright_sys::nfnetlink::{
    NFNLGRP_CONNTRACK_DESTROY, NFNLGRP_CONNTRACK_NEW, NFNLGRP_CONNTRACK_UPDATE,
};
use chainwright_sys::nfnetlink_conntrack::{IPCTNL_MSG_CT_DELETE, IPCTNL_MSG_CT_NEW};

use super::connection::message_type;
use super::entry::EntryRef;
use crate::netlink::{Error, EventDecoder, EventSocket, Loss, Malformed, Messages, Socket};

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
    events: EventSocket<Decoder>,
}

/// Position of an event in the buffer.
#[derive(Debug)]
enum Found {
    Entry {
        kind: u8,
        is_new: bool,
        start: usize,
        end: usize,
    },
    Lost(Loss),
}

/// Finds the events of a datagram.
#[derive(Debug)]
struct Decoder;

impl EventDecoder for Decoder {
    type Item = Result<Found, Malformed>;

    fn decode(&mut self, datagram: &[u8], items: &mut VecDeque<Self::Item>) -> Result<(), Error> {
        items.extend(Messages::new(datagram).filter_map(|message| {
            let message = match message {
                Ok(message) => message,
                Err(malformed) => return Some(Err(malformed)),
            };
            if message.kind == NLMSG_OVERRUN {
                return Some(Ok(Found::Lost(Loss::Overrun)));
            }
            let is_event = [IPCTNL_MSG_CT_NEW, IPCTNL_MSG_CT_DELETE]
                .map(message_type)
                .contains(&message.kind);
            let start = message.payload.as_ptr() as usize - datagram.as_ptr() as usize;
            is_event.then_some(Ok(Found::Entry {
                kind: message.kind as u8,
                is_new: message.flags & (NLM_F_CREATE | NLM_F_EXCL) != 0,
                start,
                end: start + message.payload.len(),
            }))
        }));
        Ok(())
    }

    fn record_loss(&mut self, error: Error, items: &mut VecDeque<Self::Item>) -> Result<(), Error> {
        match error {
            Error::Lost(loss) => items.push_back(Ok(Found::Lost(loss))),
            error => return Err(error),
        }
        Ok(())
    }
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
        Self::open_over(Socket::netfilter()?, events, receive_buffer)
    }

    pub(crate) fn open_over(
        socket: Socket,
        events: Events,
        receive_buffer: usize,
    ) -> Result<Self, Error> {
        let groups = [
            (Events::NEW, NFNLGRP_CONNTRACK_NEW),
            (Events::UPDATE, NFNLGRP_CONNTRACK_UPDATE),
            (Events::DESTROY, NFNLGRP_CONNTRACK_DESTROY),
        ];
        let groups = groups
            .into_iter()
            .filter(|(event, _)| events.contains(*event));
        let groups: Vec<u32> = groups.map(|(_, group)| group).collect();
        let events = EventSocket::open(socket, receive_buffer, &groups, Decoder)?;
        Ok(Self { events })
    }

    /// Returns the next event if one is queued, without waiting.
    ///
    /// # Errors
    /// [`Error::Receive`]; [`Error::Malformed`], after which the next call continues with the next datagram.
    pub fn try_receive(&mut self) -> Result<Option<Event<'_>>, Error> {
        let found = self.events.try_receive()?;
        found.map(|found| self.event(found?)).transpose()
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// As [`try_receive`](Self::try_receive).
    pub fn receive(&mut self) -> Result<Event<'_>, Error> {
        let found = self.events.receive()??;
        self.event(found)
    }

    /// Waits for the next event for at most `time`; `None` on timeout.
    ///
    /// # Errors
    /// As [`try_receive`](Self::try_receive).
    pub fn receive_within(&mut self, time: Duration) -> Result<Option<Event<'_>>, Error> {
        let deadline = Instant::now().checked_add(time);
        let found = self.events.receive_before(deadline)?;
        found.map(|found| self.event(found?)).transpose()
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
                let entry = EntryRef::parse(&self.events.buffer[start..end])?;
                match (kind, is_new) {
                    (IPCTNL_MSG_CT_DELETE, _) => Event::Destroyed(entry),
                    (_, true) => Event::New(entry),
                    (_, false) => Event::Updated(entry),
                }
            }
        })
    }
}

/// The descriptor is readable when there is something to [receive](Monitor::try_receive).
impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.socket.as_fd()
    }
}
