//! A connection to the nf_tables of one network namespace.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use chainwright_sys::nf_tables::{
    NFT_MSG_GETGEN, NFT_MSG_GETOBJ_RESET, NFT_MSG_GETRULE_RESET, NFT_MSG_GETSETELEM_RESET,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;

use super::Family;
use super::change_detector;
use super::feature::explain_request;
use super::generation::{Generation, GenerationRef, Origin};
use super::object::Listed;
use crate::netlink::{AbandonedDump, Error, Message, MessageWriter, Request, Session, Socket};
use crate::retry::impl_retry;

/// Returns the message type of an nf_tables message.
pub fn message_type(message: u8) -> u16 {
    ((NFNL_SUBSYS_NFTABLES as u16) << 8) | message as u16
}

/// Number of lookups, while the ruleset changes, after which an object counts as absent. These are not failed attempts
/// in the sense of [`Retry`]: each lookup is answered, and the last answer is used.
const MAX_LOOKUPS: usize = 8;

/// An open connection to the nf_tables of one network namespace.
///
/// It belongs to the network namespace of the thread that opened it, even if the thread later enters another. Keep it
/// open: opening costs more than most requests, and closing after a deletion waits for the kernel's clean-up.
///
/// It is [`Send`] and [`Sync`], but every request takes `&mut self`: one connection serves one thread at a time; open
/// one per thread, or put one behind a mutex. A request blocks while the kernel processes it: lookups and listings take
/// no lock, a commit waits for other commits in the same namespace. An async program can call lookups directly; it
/// should run listings of many objects, and commits, on a thread for blocking work.
///
/// No method waits for a reply: the kernel queues it before the request returns, and a reply that is missing then is
/// [lost](Error::Lost). Lookups, snapshots and a [`List`](super::List) are then repeated, and a commit reads the
/// generation; all other listings return the error. [`with_retry`](Self::with_retry) sets the number of retries and
/// their duration.
///
/// Do not use a connection in a child process after `fork(2)`: parent and child share the socket, and each receives
/// replies to the other. Open a new one in the child. `exec` closes it.
#[derive(Debug)]
pub struct Connection {
    /// Identifies the namespace of its generations, because those of different namespaces look alike.
    pub(super) origin: Origin,
    pub(crate) session: Session,
    port: u32,
    /// Whether the kernel acknowledges the end of a batch, if known.
    pub(super) acknowledges_ends: Option<bool>,
    /// Whether commits only check transactions.
    pub(super) check_only: bool,
    /// Whether a refused commit reads the ruleset to name the reason.
    pub(super) diagnoses: bool,
    /// Whether every commit reads the generation before it sends the batch.
    pub(super) compares_generations: bool,
    /// State for receiving notifications, kept between calls.
    pub(super) listener: change_detector::IdleSocket,
}

impl_retry! {
    /// Applies to operations disturbed by concurrent changes or lost replies: lookups, a [`snapshot`](Self::snapshot),
    /// a [`List`](super::List), a [restoration](super::Snapshot::restore), and a commit of which nothing was applied
    /// and the error reports were lost.
    Connection, session.retry
}

/// The socket, to close or count it or to hand it to another process. It receives only the replies to requests, which
/// the requests read themselves, so there is nothing to poll for.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.session.socket.as_fd()
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.session.socket.as_fd().as_raw_fd()
    }
}

impl Connection {
    /// Opens a connection in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Option`].
    pub fn open() -> Result<Self, Error> {
        Self::over(Socket::netfilter()?)
    }

    /// Creates a connection over this socket.
    #[doc(hidden)]
    pub fn over(socket: Socket) -> Result<Self, Error> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            origin: match socket.namespace_cookie() {
                Some(cookie) => Origin::Namespace(cookie),
                None => Origin::Connection(OPENED.fetch_add(1, Ordering::Relaxed)),
            },
            port: socket.port()?,
            session: Session::new(socket, AbandonedDump::Drain),
            acknowledges_ends: None,
            check_only: false,
            diagnoses: true,
            compares_generations: true,
            listener: change_detector::IdleSocket::default(),
        })
    }

    /// Like [`open`](Self::open), for read-only programs: if nf_tables is not loaded, this fails instead of loading it.
    /// (A request would load it.)
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; the errors of [`open`](Self::open).
    pub fn open_if_loaded() -> Result<Self, Error> {
        if !super::is_loaded() {
            return Err(Error::NotLoaded);
        }
        Self::open()
    }

    /// Returns the netlink port of the socket, which the kernel assigns uniquely among the open sockets of the
    /// namespace. [Changes](super::live::Change::port) committed over this connection have this port, so a program can
    /// recognize its own changes:
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::live::{Item, Monitor};
    /// use chainwright::nft::{Connection, Family, Table, Transaction};
    ///
    /// let mut monitor = Monitor::open()?;
    /// let (mut mine, mut other) = (Connection::open()?, Connection::open()?);
    /// for (nft, name) in [(&mut mine, "mine"), (&mut other, "theirs")] {
    ///     let mut tx = Transaction::new();
    ///     tx.add(&Table::new(Family::IP, name))?;
    ///     nft.commit(&tx)?;
    /// }
    /// let mut reactions = 0;
    /// while let Some(item) = monitor.try_receive()? {
    ///     match item {
    ///         Item::Change(change) if change.port() == mine.port() => {} // what we did ourselves
    ///         Item::Change(_) | Item::Lost(_) => reactions += 1,
    ///         _ => {}
    ///     }
    /// }
    /// assert_eq!(reactions, 1);
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    ///
    /// The port is not a process or thread id. After the connection is closed, another socket may get it.
    #[must_use]
    pub const fn port(&self) -> u32 {
        self.port
    }

    /// Returns `true` if the connection belongs to the calling thread's network namespace; true if unknown (before
    /// Linux 5.14).
    #[doc(hidden)]
    pub fn is_in_current_namespace(&self) -> bool {
        let Origin::Namespace(cookie) = self.origin else {
            return true;
        };
        let here = Socket::namespace_cookie_here();
        here.is_none_or(|here| here == cookie)
    }

    /// Looks up an object: returns its view, or `None` if it does not exist.
    ///
    /// The kernel answers without a lock, and a single `ENOENT` proves nothing: if a commit replaces an object by
    /// another with the same name between the kernel's reading of the generation and its search of the list, the kernel
    /// finds neither. (Observed on Linux 6.18, while a table was replaced without a pause, in one of a thousand
    /// lookups.) So an object is absent if it was not found between two reads of the same generation, or, if the
    /// generation keeps changing, if it was not found many times in a row.
    pub(super) fn look_up<T: Listed>(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<T::View<'_>>, Error> {
        match self.reply(request, message, family, content)? {
            Some(message) => Ok(Some(T::view(message.payload)?)),
            None => Ok(None),
        }
    }

    /// Requests an object: returns the kernel's reply.
    pub(super) fn reply(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<Message<'_>>, Error> {
        let mut before = None;
        for _ in 0..MAX_LOOKUPS {
            if let Some((start, end)) = self.request_once(request, message, family, &content)? {
                return Ok(Some(Message::split(&self.session.buffer[start..end])?.0));
            }
            let after = Some(self.stable_generation()?);
            if after == before {
                break;
            }
            before = after;
        }
        Ok(None)
    }

    /// Requests an object: returns the start and end of the reply in the buffer. Repeats the request if the reply is
    /// lost, except for requests that reset counters.
    pub(super) fn request_once(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<(usize, usize)>, Error> {
        let is_reset = matches!(
            message,
            NFT_MSG_GETRULE_RESET | NFT_MSG_GETSETELEM_RESET | NFT_MSG_GETOBJ_RESET
        );
        let request = Request {
            absent: &[libc::ENOENT],
            repeats: !is_reset,
            ..Request::new(request, message_type(message))
        };
        let found = self.session.object(&request, family.0, content);
        found.map_err(|error| explain_request(error, message))
    }

    /// Reads the ruleset's generation, and waits until the kernel has completed the commit that created it.
    ///
    /// A kernel increments the generation before it applies the changes: until then, a listing of the new generation
    /// lacks new objects (seen on Linux 6.18: chains without any of their rules). So a read that compares the
    /// generation before and after must begin with this. [Snapshots](Self::snapshot), [lists](super::List) and
    /// [guards](Self::guard) do.
    ///
    /// # Errors
    /// The errors of [`generation`](Self::generation).
    pub fn stable_generation(&mut self) -> Result<Generation, Error> {
        let generation = self.generation()?;
        // A fake kernel and recorded replies have no concurrent commits.
        if self.session.socket.is_kernel() {
            // The kernel processes an empty batch under the lock of commits, without a reply or a new generation.
            self.session
                .socket
                .send(&super::transaction::empty_batch())?;
        }
        Ok(generation)
    }

    /// Reads the ruleset's generation, which every committed change increments, with one small request.
    ///
    /// # Errors
    /// The errors of a request: [`Error::Send`], [`Error::Receive`], [`Error::Refused`], …
    pub fn generation(&mut self) -> Result<Generation, Error> {
        let request = "get the generation";
        match self.request_once(request, NFT_MSG_GETGEN, Family::UNSPEC, |_| {})? {
            Some((start, end)) => {
                let (message, _) = Message::split(&self.session.buffer[start..end])?;
                let number = GenerationRef::parse(&message)?.id();
                Ok(Generation::new(number, self.origin))
            }
            None => Err(Error::Refused {
                request,
                errno: crate::errno::Errno::new(libc::ENOENT),
                text: None,
            }),
        }
    }
}
