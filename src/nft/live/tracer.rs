//! The socket that receives packet traces.

use std::collections::VecDeque;

use chainwright_sys::netlink::NLMSG_OVERRUN;
use chainwright_sys::nf_tables::NFT_MSG_TRACE;
use chainwright_sys::nfnetlink::NFNLGRP_NFTRACE;

use super::trace::TraceRef;
use super::waiting::waiting;
use crate::netlink::{
    Error, EventDecoder, EventSocket, Loss, Malformed, Message, Messages, Socket,
};
use crate::nft::connection::message_type;

/// Options of a [`Tracer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracerOptions {
    /// Like [`MonitorOptions::receive_buffer`](super::MonitorOptions::receive_buffer).
    pub receive_buffer: usize,
}

impl Default for TracerOptions {
    /// Returns a receive buffer of 16 MiB: about ten thousand steps.
    fn default() -> Self {
        Self {
            receive_buffer: 16 << 20,
        }
    }
}

impl TracerOptions {
    /// Opens a tracer in the calling thread's network namespace.
    ///
    /// # Errors
    /// As [`Tracer::open`].
    pub fn open(self) -> Result<Tracer, Error> {
        self.open_over(Socket::netfilter()?)
    }

    /// Opens a tracer over this socket.
    pub(crate) fn open_over(self, socket: Socket) -> Result<Tracer, Error> {
        let groups = [NFNLGRP_NFTRACE];
        let events = EventSocket::open(socket, self.receive_buffer, &groups, Decoder)?;
        Ok(Tracer { events })
    }

    /// Like [`open`](Self::open), but fails if nf_tables is not loaded instead of loading it.
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; the errors of [`open`](Self::open).
    pub fn open_if_loaded(self) -> Result<Tracer, Error> {
        if !crate::nft::is_loaded() {
            return Err(Error::NotLoaded);
        }
        self.open()
    }
}

/// The output of a [`Tracer`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TracedItem {
    /// A step of a packet through the rules.
    Step(Traced),
    /// The kernel dropped steps: they arrived faster than the program received them.
    Lost(Loss),
    /// A message is malformed.
    Malformed(Malformed),
}

/// One step of a packet through the rules, owned.
#[derive(Clone, PartialEq, Eq)]
pub struct Traced {
    bytes: Vec<u8>,
}

impl Traced {
    /// Returns the step.
    #[must_use]
    pub fn view(&self) -> TraceRef<'_> {
        let (message, _) =
            Message::split(&self.bytes).expect("invariant: it was read when it came");
        TraceRef::parse(&message).expect("invariant: it was read when it came")
    }
}

impl std::fmt::Debug for Traced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}

/// Receives the trace of packets for which a rule set `nftrace`
/// ([`Build::meta_nftrace_set`](crate::nft::build::Build::meta_nftrace_set)), in the network namespace that the calling
/// thread was in when it opened the tracer.
///
/// It only listens. While at least one tracer is open, the kernel sends the same steps to all. The functions for the
/// next [`TracedItem`] are the same as those of a [`Monitor`](super::Monitor).
#[derive(Debug)]
pub struct Tracer {
    events: EventSocket<Decoder>,
}

/// Decodes steps. A loss is not an error but becomes an item.
#[derive(Debug)]
struct Decoder;

impl EventDecoder for Decoder {
    type Item = TracedItem;

    fn decode(&mut self, datagram: &[u8], items: &mut VecDeque<TracedItem>) -> Result<(), Error> {
        items.extend(items_of(datagram));
        Ok(())
    }

    fn record_loss(&mut self, error: Error, items: &mut VecDeque<TracedItem>) -> Result<(), Error> {
        match error {
            Error::Lost(loss) => items.push_back(TracedItem::Lost(loss)),
            error => return Err(error),
        }
        Ok(())
    }
}

impl Tracer {
    /// Opens a tracer with a receive buffer for about ten thousand steps. The kernel loads nf_tables if necessary.
    ///
    /// # Errors
    /// [`Error::Open`]; [`Error::Option`], with `EPERM` without `CAP_NET_ADMIN`.
    pub fn open() -> Result<Self, Error> {
        TracerOptions::default().open()
    }

    /// Like [`open`](Self::open), but fails if nf_tables is not loaded instead of loading it.
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; the errors of [`open`](Self::open).
    pub fn open_if_loaded() -> Result<Self, Error> {
        TracerOptions::default().open_if_loaded()
    }

    /// Returns the next item without waiting; `None` if none is queued.
    ///
    /// # Errors
    /// [`Error::Receive`], [`Error::Truncated`].
    pub fn try_receive(&mut self) -> Result<Option<TracedItem>, Error> {
        self.events.try_receive()
    }
}

waiting!(Tracer, TracedItem);

/// Parses the items of a datagram.
fn items_of(datagram: &[u8]) -> impl Iterator<Item = TracedItem> {
    Messages::new(datagram).filter_map(|message| {
        let step = message.and_then(|message| {
            if message.kind == NLMSG_OVERRUN {
                return Ok(Some(TracedItem::Lost(Loss::Overrun)));
            }
            if message.kind != message_type(NFT_MSG_TRACE) {
                return Ok(None);
            }
            TraceRef::parse(&message)?;
            Ok(Some(TracedItem::Step(Traced {
                bytes: message.raw.to_vec(),
            })))
        });
        step.unwrap_or_else(|malformed| Some(TracedItem::Malformed(malformed)))
    })
}
