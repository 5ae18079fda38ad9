//! The socket that receives changes.

use std::collections::VecDeque;

use chainwright_sys::nf_tables::NFT_MSG_GETGEN;
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;

use super::assembler::{Cause, CommitAssembler, Item};
use super::waiting::waiting;
use crate::netlink::{Error, EventDecoder, EventSocket, Loss, Socket, write_request};
use crate::nft::connection::message_type;
use crate::nft::generation::Origin;
use crate::nft::{Connection, Family, Generation};

/// Maximum number of unanswered requests for the generation.
const MAX_UNANSWERED: usize = 4;

/// Options of a [`Monitor`].
///
/// ```no_run
/// # fn main() -> Result<(), chainwright::netlink::Error> {
/// use chainwright::nft::live::MonitorOptions;
///
/// let monitor = MonitorOptions { receive_buffer: 512 << 20, ..MonitorOptions::default() }.open()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorOptions {
    /// Size of the socket's receive buffer in bytes: how much the kernel queues while the program doesn't receive. It
    /// takes no memory until something is queued.
    ///
    /// The kernel counts each datagram with its buffer overhead, and doubles the requested size. With `CAP_NET_ADMIN`
    /// any size is possible; without it, `net.core.rmem_max` limits the size. [`Monitor::receive_buffer`] returns the
    /// actual size.
    pub receive_buffer: usize,
    /// Maximum size in bytes of a transaction's events. A larger transaction is reported as [`Lost`](super::Lost)
    /// ([`Cause::TooLarge`]), with the committing thread.
    pub transaction: usize,
}

impl Default for MonitorOptions {
    /// Returns limits of 128 MiB each. A transaction of this size has about 200,000 rules of kube-proxy, or more than a
    /// million elements.
    fn default() -> Self {
        Self {
            receive_buffer: 128 << 20,
            transaction: 128 << 20,
        }
    }
}

impl MonitorOptions {
    /// Opens a monitor in the calling thread's network namespace.
    ///
    /// # Errors
    /// As [`Monitor::open`].
    pub fn open(self) -> Result<Monitor, Error> {
        let socket = Socket::netfilter()?;
        let origin = socket
            .namespace_cookie()
            .map_or(Origin::Recorded, Origin::Namespace);
        self.open_over(socket, origin)
    }

    /// Opens a monitor in a connection's network namespace. Its generations match the connection's: a commit over the
    /// connection can expect them even on kernels before 5.14, which don't number namespaces.
    ///
    /// # Errors
    /// As [`Monitor::open`]; [`Error::Open`] with `EPERM` when the calling thread is in another namespace than the
    /// connection and lacks permission to enter it (`CAP_SYS_ADMIN`).
    pub fn open_in_namespace_of(self, connection: &Connection) -> Result<Monitor, Error> {
        let socket = connection.session.socket.try_sibling()?;
        self.open_over(socket, connection.origin)
    }

    /// Opens a monitor over this socket; `origin` is the namespace of its generations.
    pub(super) fn open_over(self, socket: Socket, origin: Origin) -> Result<Monitor, Error> {
        let decoder = Decoder {
            assembler: CommitAssembler::of(origin, socket.port()?, self.transaction),
            request: Vec::new(),
            unanswered: 0,
        };
        let groups = [NFNLGRP_NFTABLES];
        let mut events = EventSocket::open(socket, self.receive_buffer, &groups, decoder)?;
        // Sending the request already queues the reply.
        while events.decoder.assembler.reported().is_none() {
            events.receive_once()?;
        }
        Ok(Monitor { events })
    }

    /// Like [`open`](Self::open), but fails if nf_tables is not loaded instead of loading it.
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; the errors of [`open`](Self::open).
    pub fn open_if_loaded(self) -> Result<Monitor, Error> {
        if !crate::nft::is_loaded() {
            return Err(Error::NotLoaded);
        }
        self.open()
    }
}

/// Receives every change of the nf_tables ruleset of one network namespace: the one that the calling thread was in when
/// it opened the monitor.
///
/// It is an endless iterator that blocks until the next [`Item`]. [`receive_until`](Self::receive_until) and
/// [`receive_within`](Self::receive_within) wait for a limited time, [`try_receive`](Self::try_receive) doesn't wait.
/// The descriptor is readable when `try_receive` should be called. The monitor remains usable after an error, and
/// reports changes that it missed because of the error as [`Lost`](super::Lost).
///
/// ```no_run
/// # fn main() -> Result<(), chainwright::Error> {
/// use chainwright::nft::live::{Item, Monitor};
///
/// for item in Monitor::open()? {
///     match item? {
///         Item::Change(change) => for event in change.events() {
///             println!("{} {event}", change.generation());
///         },
///         Item::Lost(lost) => println!("{lost}"),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Monitor {
    events: EventSocket<Decoder>,
}

/// Decodes events and answers to requests for the generation. A loss is not an error but becomes an [`Item`].
#[derive(Debug)]
struct Decoder {
    assembler: CommitAssembler,
    request: Vec<u8>,
    /// Number of consecutive requests without a reply.
    unanswered: usize,
}

impl EventDecoder for Decoder {
    type Item = Item;

    /// Requests the generation if it is needed.
    fn prepare(&mut self, socket: &Socket) -> Result<(), Error> {
        if !self.assembler.needs_generation() {
            return Ok(());
        }
        if self.unanswered == MAX_UNANSWERED {
            self.unanswered = 0;
            return Err(Error::Lost(Loss::MissingReply));
        }
        self.unanswered += 1;
        self.request.clear();
        let (kind, family) = (message_type(NFT_MSG_GETGEN), Family::UNSPEC.0);
        write_request(&mut self.request, 1, kind, 0, family, |_| {})?;
        socket.send(&self.request)?;
        self.assembler.generation_requested();
        Ok(())
    }

    fn decode(&mut self, datagram: &[u8], items: &mut VecDeque<Item>) -> Result<(), Error> {
        let awaited = self.assembler.awaits_generation();
        let decoded = self.assembler.datagram(datagram);
        items.extend(std::iter::from_fn(|| self.assembler.next()));
        if awaited && decoded.is_ok() && !self.assembler.awaits_generation() {
            self.unanswered = 0;
        }
        decoded
    }

    fn record_loss(&mut self, error: Error, _: &mut VecDeque<Item>) -> Result<(), Error> {
        self.assembler.record_loss(match error {
            Error::Lost(loss) => Cause::Dropped(loss),
            Error::Truncated { length, capacity } => Cause::Cut { length, capacity },
            error => return Err(error),
        });
        Ok(())
    }

    fn drained(&mut self) -> bool {
        self.assembler.drained();
        self.assembler.needs_generation()
    }
}

impl Monitor {
    /// Opens a monitor with a [receive buffer](MonitorOptions) for large transactions. From then on every change is
    /// returned or reported as lost.
    ///
    /// The kernel loads nf_tables if necessary.
    ///
    /// # Errors
    /// [`Error::Open`]; [`Error::Option`], with `EPERM` without `CAP_NET_ADMIN`; the errors of a request.
    pub fn open() -> Result<Self, Error> {
        MonitorOptions::default().open()
    }

    /// Like [`open`](Self::open), but fails if nf_tables is not loaded instead of loading it.
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; the errors of [`open`](Self::open).
    pub fn open_if_loaded() -> Result<Self, Error> {
        MonitorOptions::default().open_if_loaded()
    }

    /// Returns the generation of the last change that was returned or reported as lost, initially the generation at
    /// opening. The next change has the following generation.
    #[must_use]
    pub fn reported(&self) -> Generation {
        let reported = self.events.decoder.assembler.reported();
        reported.expect("invariant: opening waits for the first answer, and it stays")
    }

    /// Returns the next item without waiting; `None` if it has not arrived completely.
    ///
    /// # Errors
    /// [`Error::Receive`]; from the request that follows a loss [`Error::Send`], [`Error::Refused`], and
    /// [`Error::Lost`] when its reply was lost several times.
    pub fn try_receive(&mut self) -> Result<Option<Item>, Error> {
        self.events.try_receive()
    }
}

waiting!(Monitor, Item);
