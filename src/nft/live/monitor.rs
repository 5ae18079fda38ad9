//! The socket that is told of changes.

use chainwright_sys::netlink::NLM_F_REQUEST;
use chainwright_sys::nf_tables::NFT_MSG_GETGEN;
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;

use super::assembler::{Cause, CommitAssembler, Item};
use super::waiting::waiting;
use crate::netlink::{Error, Intake, Loss, MessageWriter, NfGenMsg, RECEIVE_BUFFER, Socket};
use crate::nft::connection::message_type;
use crate::nft::generation::Origin;
use crate::nft::{Connection, Family, Generation};

/// How often the generation is asked for without an answer.
const ASKS: usize = 4;

/// How a [`Monitor`] is opened.
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
    /// How large the socket's receive buffer is to be, in bytes: what the kernel may queue while nobody
    /// receives. It takes no memory before there is something to queue.
    ///
    /// The kernel counts each datagram with the memory that it lies in, and doubles what it is told. With
    /// `CAP_NET_ADMIN` any size can be had; without, `net.core.rmem_max` limits it.
    /// [`Monitor::receive_buffer`] says what came of it.
    pub receive_buffer: usize,
    /// How many bytes of events are kept of one transaction. A larger one is given out as
    /// [`Lost`](super::Lost) ([`Cause::TooLarge`]), with who committed it.
    pub transaction: usize,
}

impl Default for MonitorOptions {
    /// 128 MiB each. So large a transaction has some 200,000 rules of kube-proxy's, or more than a million
    /// elements.
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

    /// Opens a monitor in a connection's network namespace. Its generations are the connection's: also on kernels
    /// before 5.14, which give namespaces no number, a commit over the connection can expect them.
    ///
    /// # Errors
    /// As [`Monitor::open`]; [`Error::Open`] with `EPERM` when the calling thread is in another namespace
    /// than the connection and may not enter that (`CAP_SYS_ADMIN`).
    pub fn open_beside(self, connection: &Connection) -> Result<Monitor, Error> {
        let socket = connection.socket.try_sibling()?;
        self.open_over(socket, connection.origin)
    }

    /// Opens a monitor over this socket, whose generations are of this origin.
    pub(super) fn open_over(self, mut socket: Socket, origin: Origin) -> Result<Monitor, Error> {
        socket.set_receive_buffer(self.receive_buffer);
        socket.join(NFNLGRP_NFTABLES)?;
        let mut monitor = Monitor {
            incoming: Incoming {
                grouping: CommitAssembler::of(origin, socket.port()?, self.transaction),
                buffer: vec![0; RECEIVE_BUFFER],
                unanswered: 0,
                answered: false,
                is_empty: false,
            },
            socket,
            request: Vec::new(),
        };
        // The answer is queued when the question has been sent.
        while monitor.incoming.grouping.told().is_none() {
            monitor.take_in()?;
        }
        Ok(monitor)
    }

    /// As [`open`](Self::open), for who only looks: where nf_tables is not loaded it stays so.
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; those of [`open`](Self::open).
    pub fn open_to_look(self) -> Result<Monitor, Error> {
        if !crate::nft::is_loaded() {
            return Err(Error::NotLoaded);
        }
        self.open()
    }
}

/// Is told of every change of the nf_tables ruleset of one network namespace: the one that the calling
/// thread was in when it was opened, whatever the thread enters later.
///
/// It is an endless iterator that waits for the next [`Item`]; [`receive_until`](Self::receive_until),
/// [`receive_within`](Self::receive_within) and [`try_receive`](Self::try_receive) wait less. Its
/// descriptor is readable when `try_receive` is worth a call. After an error it can be used on: what
/// the error made it miss, it says.
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

/// Takes in events, and answers to the question for the generation. What is lost is no error here: it is told.
#[derive(Debug)]
struct Incoming {
    grouping: CommitAssembler,
    buffer: Vec<u8>,
    /// How many questions in a row had no answer.
    unanswered: usize,
    /// Whether the last one was just answered.
    answered: bool,
    /// Whether nothing is queued.
    is_empty: bool,
}

impl Intake for Incoming {
    fn is_complete(&self) -> bool {
        self.is_empty || self.answered || self.grouping.has_next() || self.grouping.asks()
    }

    fn room(&mut self) -> Result<&mut [u8], Error> {
        Ok(&mut self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        let awaited = self.grouping.awaits();
        self.grouping.datagram(&self.buffer[..length])?;
        if awaited && !self.grouping.awaits() {
            self.unanswered = 0;
            self.answered = true;
        }
        Ok(())
    }

    fn lose(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Lost(Loss::Absent) => {
                self.grouping.drained();
                self.is_empty = true;
            }
            Error::Lost(loss) => self.grouping.lose(Cause::Dropped(loss)),
            Error::Truncated { length, capacity } => {
                self.grouping.lose(Cause::Cut { length, capacity });
            }
            error => return Err(error),
        }
        Ok(())
    }
}

impl Monitor {
    /// Opens a monitor, with a [receive buffer](MonitorOptions) for large transactions. From here on
    /// every change is told, or said to be lost.
    ///
    /// The kernel loads nf_tables if it was not loaded.
    ///
    /// # Errors
    /// [`Error::Open`]; [`Error::Option`], with `EPERM` without `CAP_NET_ADMIN`; those of a request.
    pub fn open() -> Result<Self, Error> {
        MonitorOptions::default().open()
    }

    /// As [`open`](Self::open), for who only looks: where nf_tables is not loaded it stays so.
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; those of [`open`](Self::open).
    pub fn open_to_look() -> Result<Self, Error> {
        MonitorOptions::default().open_to_look()
    }

    /// The generation up to which everything was given out, or said to be lost, or was there when the monitor
    /// was opened. The next change is of the generation behind it.
    #[must_use]
    pub fn told(&self) -> Generation {
        let told = self.incoming.grouping.told();
        told.expect("invariant: opening waits for the first answer, and it stays")
    }

    /// The next item, if all of it is queued; `None` if not. This does not wait.
    ///
    /// # Errors
    /// [`Error::Receive`]; and of the question that follows a loss [`Error::Send`], [`Error::Refused`], and
    /// [`Error::Lost`] when its answer was lost several times.
    pub fn try_receive(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(item) = self.incoming.grouping.next() {
                return Ok(Some(item));
            }
            self.take_in()?;
            let Incoming {
                grouping, is_empty, ..
            } = &self.incoming;
            if *is_empty && !grouping.asks() {
                return Ok(None);
            }
        }
    }

    /// Takes in what is queued until something can be given out, or is to be asked; asks that first.
    fn take_in(&mut self) -> Result<(), Error> {
        if self.incoming.grouping.asks() {
            self.ask()?;
        }
        (self.incoming.is_empty, self.incoming.answered) = (false, false);
        self.socket.take_in(&mut self.incoming)
    }

    /// Asks for the generation.
    fn ask(&mut self) -> Result<(), Error> {
        let unanswered = &mut self.incoming.unanswered;
        if *unanswered == ASKS {
            *unanswered = 0;
            return Err(Error::Lost(Loss::Absent));
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
        self.incoming.grouping.asked();
        Ok(())
    }
}

waiting!(Monitor, Item);
