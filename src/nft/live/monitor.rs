//! The socket that receives changes.

use chainwright_sys::netlink::NLM_F_REQUEST;
use chainwright_sys::nf_tables::NFT_MSG_GETGEN;
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;

use super::assembler::{Cause, CommitAssembler, Item};
use super::waiting::waiting;
use crate::netlink::{
    DatagramReceiver, Error, Loss, MessageWriter, NfGenMsg, RECEIVE_BUFFER, Socket,
};
use crate::nft::connection::message_type;
use crate::nft::generation::Origin;
use crate::nft::{Connection, Family, Generation};

/// How many requests for the generation may remain unanswered.
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
    /// 128 MiB each. A transaction of this size has about 200,000 rules of kube-proxy, or more than a million elements.
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
    pub(super) fn open_over(self, mut socket: Socket, origin: Origin) -> Result<Monitor, Error> {
        socket.set_receive_buffer(self.receive_buffer);
        socket.join(NFNLGRP_NFTABLES)?;
        let mut monitor = Monitor {
            incoming: Incoming {
                assembler: CommitAssembler::of(origin, socket.port()?, self.transaction),
                buffer: vec![0; RECEIVE_BUFFER],
                unanswered: 0,
                answered: false,
                is_empty: false,
            },
            socket,
            request: Vec::new(),
        };
        // Sending the request already queues the answer.
        while monitor.incoming.assembler.reported().is_none() {
            monitor.receive_all()?;
        }
        Ok(monitor)
    }

    /// As [`open`](Self::open), but fails if nf_tables is not loaded instead of loading it.
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
    socket: Socket,
    incoming: Incoming,
    request: Vec<u8>,
}

/// Receives events and answers to requests for the generation. A loss is not an error but becomes an [`Item`].
#[derive(Debug)]
struct Incoming {
    assembler: CommitAssembler,
    buffer: Vec<u8>,
    /// Number of consecutive requests without an answer.
    unanswered: usize,
    /// Whether the answer just arrived.
    answered: bool,
    /// Whether the queue is empty.
    is_empty: bool,
}

impl DatagramReceiver for Incoming {
    fn is_complete(&self) -> bool {
        self.is_empty
            || self.answered
            || self.assembler.has_ready()
            || self.assembler.needs_generation()
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        Ok(&mut self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        let awaited = self.assembler.awaits_generation();
        self.assembler.datagram(&self.buffer[..length])?;
        if awaited && !self.assembler.awaits_generation() {
            self.unanswered = 0;
            self.answered = true;
        }
        Ok(())
    }

    fn record_loss(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Lost(Loss::MissingReply) => {
                self.assembler.drained();
                self.is_empty = true;
            }
            Error::Lost(loss) => self.assembler.record_loss(Cause::Dropped(loss)),
            Error::Truncated { length, capacity } => {
                self.assembler.record_loss(Cause::Cut { length, capacity });
            }
            error => return Err(error),
        }
        Ok(())
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

    /// As [`open`](Self::open), but fails if nf_tables is not loaded instead of loading it.
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
        let reported = self.incoming.assembler.reported();
        reported.expect("invariant: opening waits for the first answer, and it stays")
    }

    /// Returns the next item without waiting; `None` if it has not arrived completely.
    ///
    /// # Errors
    /// [`Error::Receive`]; from the request that follows a loss [`Error::Send`], [`Error::Refused`], and
    /// [`Error::Lost`] when its answer was lost several times.
    pub fn try_receive(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(item) = self.incoming.assembler.next() {
                return Ok(Some(item));
            }
            self.receive_all()?;
            let Incoming {
                assembler,
                is_empty,
                ..
            } = &self.incoming;
            if *is_empty && !assembler.needs_generation() {
                return Ok(None);
            }
        }
    }

    /// Receives until an item is ready or the generation has to be requested; sends a pending request first.
    fn receive_all(&mut self) -> Result<(), Error> {
        if self.incoming.assembler.needs_generation() {
            self.request_generation()?;
        }
        (self.incoming.is_empty, self.incoming.answered) = (false, false);
        self.socket.receive_all(&mut self.incoming)
    }

    /// Sends a request for the generation.
    fn request_generation(&mut self) -> Result<(), Error> {
        let unanswered = &mut self.incoming.unanswered;
        if *unanswered == MAX_UNANSWERED {
            *unanswered = 0;
            return Err(Error::Lost(Loss::MissingReply));
        }
        *unanswered += 1;
        self.request.clear();
        let header = NfGenMsg {
            family: Family::UNSPEC.0,
            resource: 0,
        };
        let kind = message_type(NFT_MSG_GETGEN);
        MessageWriter::nfnetlink(&mut self.request, kind, NLM_F_REQUEST, 1, header).finish()?;
        self.socket.send(&self.request)?;
        self.incoming.assembler.generation_requested();
        Ok(())
    }
}

waiting!(Monitor, Item);
