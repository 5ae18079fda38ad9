//! A connection to the nf_tables of one network namespace.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use chainwright_sys::netlink::NLM_F_REQUEST;
use chainwright_sys::nf_tables::{
    NFT_MSG_GETGEN, NFT_MSG_GETOBJ_RESET, NFT_MSG_GETRULE_RESET, NFT_MSG_GETSETELEM_RESET,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;

use super::Family;
use super::feature::explain_request;
use super::generation::{Generation, GenerationRef, Origin};
use super::object::Listed;
use super::watch;
use crate::Retry;
use crate::netlink::{
    Answer, Dump, Error, Message, MessageWriter, Next, NfGenMsg, RECEIVE_BUFFER, Socket,
};
use crate::retry::retrying;

/// The message type of an nf_tables message.
pub fn message_type(message: u8) -> u16 {
    ((NFNL_SUBSYS_NFTABLES as u16) << 8) | message as u16
}

/// How often an object is looked for while the ruleset changes: not found so often, it is not there. That is no attempt
/// that failed, which [`Retry`] is for: each of these looks is answered, and the last one's answer stands.
const LOOKS: usize = 8;
/// Where the numbers of requests begin: those of a batch's operations are below.
const SEQUENCES: u32 = 1 << 31;

/// An open connection to the nf_tables of one network namespace.
///
/// It belongs to the namespace that the calling thread was in when it was opened, whatever the
/// thread enters later. Keep it open: opening costs more than most requests, and closing after a
/// deletion waits for the kernel's clean-up.
///
/// It is [`Send`] and [`Sync`], but every request takes it by `&mut`: one connection serves one thread at
/// a time; open one for each thread that needs it, or put one behind a mutex. A request blocks for as
/// long as the kernel works on it: look-ups and listings read without a lock, a commit waits for the
/// commits of others in the same namespace. In an async program a look-up can be made in place; listings
/// of many objects, and commits, belong on a thread for what blocks.
///
/// Nothing here waits for an answer: the kernel gives it before a request returns, and what is not
/// there then is [lost](Error::Lost). A look-up is asked again, a snapshot and a [`List`](super::List) are
/// read again, and of a commit the generation is asked for; all other listings end in the error. How often
/// and for how long, [`with_retry`](Self::with_retry) says.
///
/// Do not use a connection in a child process after `fork(2)`: parent and child share the socket, and each receives
/// answers that are for the other. Open a new one in the child. `exec` closes it.
#[derive(Debug)]
pub struct Connection {
    /// What its generations are of: those of different namespaces look alike.
    pub(super) origin: Origin,
    pub(super) socket: Socket,
    port: u32,
    /// Where replies are received.
    pub(super) buffer: Vec<u8>,
    /// Where small requests are built.
    request: Vec<u8>,
    sequence: u32,
    /// A dump that was given up before its end: the kernel runs one at a time on a socket.
    unfinished: Option<Dump>,
    /// Whether the kernel acknowledges the end of a batch, once that is known.
    pub(super) acknowledges_ends: Option<bool>,
    /// Whether transactions are only looked at.
    pub(super) only_checks: bool,
    pub(super) retry: Retry,
    /// Where notifications are received, between one time and the next.
    pub(super) listener: watch::Resting,
}

retrying! {
    /// It is for what others' changes or lost replies spoil: look-ups, a [`snapshot`](Self::snapshot), a
    /// [`List`](super::List), a [restoration](super::Snapshot::restore), and a commit of which nothing was applied
    /// and the reasons were lost.
    Connection, retry
}

/// The socket, to be closed, counted or handed to a namespace's owner with. Nothing comes on it but the
/// answers to requests, which are received where they are asked for: there is nothing to poll for.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_fd().as_raw_fd()
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

    /// A connection over this socket.
    #[doc(hidden)]
    pub fn over(socket: Socket) -> Result<Self, Error> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            origin: match socket.namespace_cookie() {
                Some(cookie) => Origin::Namespace(cookie),
                None => Origin::Connection(OPENED.fetch_add(1, Ordering::Relaxed)),
            },
            port: socket.port()?,
            socket,
            buffer: vec![0; RECEIVE_BUFFER],
            request: Vec::with_capacity(512),
            sequence: 0,
            unfinished: None,
            acknowledges_ends: None,
            only_checks: false,
            retry: Retry::DEFAULT,
            listener: watch::Resting::default(),
        })
    }

    /// As [`open`](Self::open), for who only looks: where nf_tables is not loaded there is nothing to be seen,
    /// and it stays so. (A request would load it.)
    ///
    /// # Errors
    /// [`Error::NotLoaded`]; those of [`open`](Self::open).
    pub fn open_to_look() -> Result<Self, Error> {
        if !super::is_loaded() {
            return Err(Error::NotLoaded);
        }
        Self::open()
    }

    /// The port of its socket: the kernel's number for it in its namespace, which no other socket has at the same
    /// time. What is committed over this connection is [told](super::live::Change::port) to be of this port, so
    /// that who is told of changes knows one's own:
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
    /// It is not the number of a process or thread. When the connection is closed, another socket may get it.
    #[must_use]
    pub const fn port(&self) -> u32 {
        self.port
    }

    /// Whether it is of the calling thread's network namespace, as far as the kernel numbers them (Linux 5.14).
    #[doc(hidden)]
    pub fn is_of_this_namespace(&self) -> bool {
        let Origin::Namespace(cookie) = self.origin else {
            return true;
        };
        let here = Socket::namespace_cookie_here();
        here.is_none_or(|here| here == cookie)
    }

    /// Receives a datagram into the buffer.
    #[inline]
    pub(super) fn receive(&mut self) -> Result<usize, Error> {
        let mut next = Next::new(&mut self.buffer);
        self.socket.take_in(&mut next)?;
        Ok(next.length())
    }

    /// Sends a request.
    pub(super) fn ask(
        &mut self,
        message: u8,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        let sequence = self.build(message, flags, family, content)?;
        self.socket.send(&self.request)?;
        Ok(sequence)
    }

    /// Sends a request of any subsystem of nfnetlink.
    pub(super) fn ask_subsystem(
        &mut self,
        message_type: u16,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        let sequence = self.build_type(message_type, flags, family, content)?;
        self.socket.send(&self.request)?;
        Ok(sequence)
    }

    /// The request that was built last.
    pub(super) fn request(&self) -> &[u8] {
        &self.request
    }

    /// Builds a request; its sequence number.
    pub(super) fn build(
        &mut self,
        message: u8,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        self.build_type(message_type(message), flags, family, content)
    }

    fn build_type(
        &mut self,
        message_type: u16,
        flags: u16,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        self.settle();
        self.sequence = self.sequence.wrapping_add(1) | SEQUENCES;
        self.request.clear();
        let mut writer = MessageWriter::nfnetlink(
            &mut self.request,
            message_type,
            NLM_F_REQUEST | flags,
            self.sequence,
            NfGenMsg {
                family: family.0,
                resource: 0,
            },
        );
        content(&mut writer);
        writer.finish()?;
        Ok(self.sequence)
    }

    /// Says that nobody wants the rest of a dump. It is received before the next request, not now.
    pub(super) fn give_up(&mut self, dump: &Dump) {
        if !dump.ended() {
            self.unfinished = Some(dump.clone());
        }
    }

    /// Makes the socket free for a request.
    #[inline]
    pub(super) fn settle(&mut self) {
        if let Some(dump) = self.unfinished.take() {
            self.finish(dump);
        }
    }

    /// Receives what is left of a dump and throws it away. This does not wait either.
    #[cold]
    fn finish(&mut self, dump: Dump) {
        // Its answer is of no interest.
        if self
            .build(NFT_MSG_GETGEN, 0, Family::UNSPEC, |_| {})
            .is_ok()
        {
            self.socket.drain(&mut self.buffer, &self.request, dump);
        }
    }

    /// Asks for one object: its view, `None` if there is none.
    ///
    /// The kernel answers without a lock, and `ENOENT` alone proves nothing: when a commit that
    /// replaces an object by another of its name falls between the kernel's look at the generation
    /// and its look into the list, it finds neither. (Seen on Linux 6.18, while a table was replaced
    /// without a pause, in one of a thousand looks.) So an object is absent if it was not found
    /// between two looks at the same generation; when that never holds still, if it was not found
    /// many times in a row.
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

    /// Asks for one object: the message that the kernel answered with.
    pub(super) fn reply(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<Message<'_>>, Error> {
        let mut before = None;
        for _ in 0..LOOKS {
            if let Some((start, end)) = self.look_once(request, message, family, &content)? {
                return Ok(Some(Message::split(&self.buffer[start..end])?.0));
            }
            let after = Some(self.generation()?);
            if after == before {
                break;
            }
            before = after;
        }
        Ok(None)
    }

    /// Asks for one object: where in the buffer the message starts and ends. What was lost is asked
    /// for again, but for counters that are set back by being told.
    pub(super) fn look_once(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<(usize, usize)>, Error> {
        let once = matches!(
            message,
            NFT_MSG_GETRULE_RESET | NFT_MSG_GETSETELEM_RESET | NFT_MSG_GETOBJ_RESET
        );
        let retry = if once { Retry::ONCE } else { self.retry };
        self.insist(retry, |connection| {
            let sequence = connection
                .ask(message, 0, family, &content)
                .map_err(|error| error.of_request(request))?;
            let answer = connection.answer(request, sequence, &[libc::ENOENT]);
            answer.map_err(|error| explain_request(error, message))
        })
    }

    /// Asks, and again while answers are lost.
    fn insist<R>(
        &mut self,
        retry: Retry,
        mut ask: impl FnMut(&mut Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut attempts = retry.begin();
        loop {
            match ask(self) {
                Err(error) if error.ask_again() && attempts.again_after_loss() => {}
                answer => return answer,
            }
        }
    }

    /// Whether a subsystem of nfnetlink has an answer to a request, other than one of these errors.
    pub(super) fn has_answer(
        &mut self,
        request: &'static str,
        message_type: u16,
        family: Family,
        absent: &[i32],
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<bool, Error> {
        let answer = self.insist(self.retry, |connection| {
            let sequence = connection.ask_subsystem(message_type, 0, family, &content)?;
            connection.answer(request, sequence, absent)
        })?;
        Ok(answer.is_some())
    }

    /// Receives the answer to a request: where in the buffer it starts and ends; `None` if it is one of
    /// these errors.
    fn answer(
        &mut self,
        request: &'static str,
        sequence: u32,
        absent: &[i32],
    ) -> Result<Option<(usize, usize)>, Error> {
        let mut answer = Answer::new(&mut self.buffer, request, sequence, absent);
        self.socket.take_in(&mut answer)?;
        Ok(answer.found())
    }

    /// The ruleset's generation, which every committed change moves: one small request and reply.
    ///
    /// # Errors
    /// Those of a request: [`Error::Send`], [`Error::Receive`], [`Error::Refused`], …
    pub fn generation(&mut self) -> Result<Generation, Error> {
        let request = "tell the generation";
        match self.look_once(request, NFT_MSG_GETGEN, Family::UNSPEC, |_| {})? {
            Some((start, end)) => {
                let (message, _) = Message::split(&self.buffer[start..end])?;
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
