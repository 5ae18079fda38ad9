//! Requests over one socket: their sequence numbers, their replies, and dumps that end early.
//!
//! Every request of nf_tables, of hooks and of conntrack goes through a [`Session`], except for a batch
//! ([`BatchReplies`](super::BatchReplies)) and a monitor's request for the generation. A snapshot builds its dumps here,
//! and receives them into memory of its own. The rules are the same for all:
//!
//! | event | reaction |
//! |---|---|
//! | a reply is lost (`ENOBUFS`, `NLMSG_OVERRUN`, nothing queued) | the request is repeated, unless a second one has another effect. A dump is not repeated here: the callers that can discard its objects do that |
//! | a datagram is truncated, malformed, or an error (`EBUSY`, `EPERM`) | it is returned, and each later call of the dump returns it again |
//! | a dump ends early: an error, or the caller drops it | its rest is received before the next request, because the kernel runs one dump at a time per socket and refuses a second one (`EBUSY`) |
//! | a dump is interrupted by a change (`NLM_F_DUMP_INTR`) | all its objects are returned, and then [`Error::Interrupted`] |
//! | a reply has the sequence number of another request | it is ignored. After a failed request other than a dump, the next request first discards all queued replies and reports of lost replies |
//!
//! Only the repetitions have a time limit ([`Retry::deadline`]), because nothing here waits.

use chainwright_sys::netlink::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_NOOP, NLMSG_OVERRUN};

use super::ack::Acknowledgement;
use super::dump::{Dump, DumpItem};
use super::error::{Error, Loss};
use super::message::{MessageError, MessageWriter, Messages, NfGenMsg, Unread};
use super::receive::DatagramReceiver;
use super::socket::{RECEIVE_BUFFER, Socket};
use crate::Retry;
use crate::retry::Attempts;

/// The bit that all sequence numbers of a session have. The operations of an nf_tables batch use lower ones.
const SEQUENCES: u32 = 1 << 31;
/// How many errors to tolerate while receiving the rest of a dump.
const MAX_ERRORS: usize = 4;

/// What a request is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// Its description in errors.
    pub(crate) name: &'static str,
    /// `nlmsg_type`.
    pub(crate) kind: u16,
    /// `NLM_F_*`, in addition to `NLM_F_REQUEST`.
    pub(crate) flags: u16,
    /// The kernel's errors for an object that does not exist.
    pub(crate) absent: &'static [i32],
    /// Whether it is repeated if its reply is lost.
    pub(crate) repeats: bool,
}

impl Request {
    /// Creates a request that is repeated if its reply is lost. All errors of the kernel are returned.
    pub(crate) const fn new(name: &'static str, kind: u16) -> Self {
        Self {
            name,
            kind,
            flags: 0,
            absent: &[],
            repeats: true,
        }
    }
}

/// How a session ends a dump that the caller abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AbandonedDump {
    /// It receives and discards the rest. The socket stays the same: nf_tables knows the owner of a table and the
    /// author of a change by the socket's port.
    Drain,
    /// It opens another socket, if it can, because the rest may be a million entries.
    Reopen,
}

/// A socket with the state of its requests.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) socket: Socket,
    /// Receive buffer.
    pub(crate) buffer: Vec<u8>,
    pub(crate) retry: Retry,
    /// The last built request.
    request: Vec<u8>,
    sequence: u32,
    /// A dump that was abandoned before its end.
    unfinished: Option<Dump>,
    abandoned: AbandonedDump,
    /// Whether replies to a failed request may be queued.
    has_stale_replies: bool,
}

impl Session {
    pub(crate) fn new(socket: Socket, abandoned: AbandonedDump) -> Self {
        Self {
            socket,
            buffer: vec![0; RECEIVE_BUFFER],
            retry: Retry::DEFAULT,
            request: Vec::with_capacity(512),
            sequence: 0,
            unfinished: None,
            abandoned,
            has_stale_replies: false,
        }
    }

    /// Builds a request of one message and returns its sequence number.
    fn build(
        &mut self,
        request: &Request,
        family: u8,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        self.drain();
        self.request.clear();
        self.append(request, family, content)
    }

    /// Builds the request for a dump, which the caller [sends](Self::request) and receives.
    pub(crate) fn build_dump(
        &mut self,
        request: &Request,
        family: u8,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<Dump, Error> {
        let flags = request.flags | NLM_F_DUMP;
        let sequence = self.build(&Request { flags, ..*request }, family, content)?;
        Ok(Dump::new(request.name, sequence))
    }

    /// Appends a message to the request.
    fn append(
        &mut self,
        request: &Request,
        family: u8,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        self.sequence = self.sequence.wrapping_add(1) | SEQUENCES;
        let (bytes, sequence) = (&mut self.request, self.sequence);
        let written = write_request(
            bytes,
            sequence,
            request.kind,
            request.flags,
            family,
            content,
        );
        match written {
            Ok(()) => Ok(sequence),
            Err(error) => Err(Error::from(error).of_request(request.name)),
        }
    }

    /// Returns the last built request.
    pub(crate) fn request(&self) -> &[u8] {
        &self.request
    }

    /// Requests a dump.
    pub(crate) fn dump(
        &mut self,
        request: &Request,
        family: u8,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<DumpReader<'_>, Error> {
        let dump = self.build_dump(request, family, content)?;
        self.socket.send(&self.request)?;
        Ok(DumpReader {
            session: self,
            dump,
            unread: Unread::default(),
            failed: None,
        })
    }

    /// Requests one object: returns the start and end of the reply in the buffer, or `None` if it does not exist.
    pub(crate) fn object(
        &mut self,
        request: &Request,
        family: u8,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<(usize, usize)>, Error> {
        self.repeat(request, |session| {
            let sequence = session.build(request, family, &content)?;
            session.socket.send(&session.request)?;
            let mut reply = ObjectReply {
                buffer: &mut session.buffer,
                request,
                sequence,
                found: None,
            };
            session.socket.receive_all(&mut reply)?;
            Ok(reply.found.flatten())
        })
    }

    /// Sends a message with these contents for each item, and receives an acknowledgement of each. Returns the number
    /// of objects that do not exist.
    #[cfg(feature = "conntrack")]
    pub(crate) fn acknowledged<T>(
        &mut self,
        request: &Request,
        items: &[T],
        family: impl Fn(&T) -> u8,
        content: impl Fn(&T, &mut MessageWriter<'_>),
    ) -> Result<usize, Error> {
        let flags = request.flags | NLM_F_ACK;
        let request = &Request { flags, ..*request };
        self.repeat(request, |session| {
            session.drain();
            session.request.clear();
            // Without a wraparound among them, so that they are consecutive.
            if session.sequence.checked_add(items.len() as u32).is_none() {
                session.sequence = 0;
            }
            let first = (session.sequence + 1) | SEQUENCES;
            for item in items {
                session.append(request, family(item), |writer| content(item, writer))?;
            }
            session.socket.reserve_send(session.request.len())?;
            session.socket.send(&session.request)?;
            let mut replies = Acknowledgements {
                buffer: &mut session.buffer,
                request,
                first,
                number: items.len(),
                rest: items.len(),
                absent: 0,
            };
            session.socket.receive_all(&mut replies)?;
            Ok(replies.absent)
        })
    }

    /// Makes a request, and repeats it while its replies are lost.
    fn repeat<R>(
        &mut self,
        request: &Request,
        mut attempt: impl FnMut(&mut Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let retry = match request.repeats {
            true => self.retry,
            false => Retry::ONCE,
        };
        let mut attempts = retry.begin();
        loop {
            let result = attempt(self);
            self.has_stale_replies |= result.is_err();
            match result {
                Err(error) if error.allows(&mut attempts) => {}
                result => return result,
            }
        }
    }

    /// Abandons the rest of a dump. It is received before the next request, not now.
    pub(crate) fn abandon_dump(&mut self, dump: &Dump) {
        if !dump.ended() {
            self.unfinished = Some(dump.clone());
        }
    }

    /// Prepares the socket for a request: receives what remains of earlier ones.
    #[inline]
    pub(crate) fn drain(&mut self) {
        if let Some(dump) = self.unfinished.take() {
            self.finish(dump);
        }
        if self.has_stale_replies {
            self.discard_replies();
        }
    }

    /// Discards all replies that are queued, and reports of lost ones.
    pub(crate) fn discard_replies(&mut self) {
        let mut queued = Discard {
            buffer: &mut self.buffer,
            is_empty: false,
        };
        let _ = self.socket.receive_all(&mut queued);
        self.has_stale_replies = false;
    }

    /// Ends an abandoned dump, without waiting either.
    #[cold]
    fn finish(&mut self, dump: Dump) {
        if self.abandoned == AbandonedDump::Reopen
            && let Some(socket) = self.socket.sibling()
        {
            self.socket = socket;
            return;
        }
        // The kernel acknowledges a message that does nothing, whatever modules it has.
        self.sequence = self.sequence.wrapping_add(1) | SEQUENCES;
        self.request.clear();
        let (flags, sequence) = (NLM_F_REQUEST | NLM_F_ACK, self.sequence);
        let probe = MessageWriter::new(&mut self.request, NLMSG_NOOP, flags, sequence);
        if probe.finish().is_err() {
            return;
        }
        let mut rest = DumpDrain {
            socket: &self.socket,
            buffer: &mut self.buffer,
            probe: &self.request,
            dump,
            progressing: false,
            errors: 0,
            lost: false,
        };
        // Its errors are irrelevant: the caller abandoned the dump.
        let _ = self.socket.receive_all(&mut rest);
    }
}

impl Error {
    /// Pauses and returns `true` if the failed request may be repeated: a change interrupted it, or replies were lost.
    pub(crate) fn allows(&self, attempts: &mut Attempts) -> bool {
        match self {
            Self::Interrupted => attempts.again(),
            Self::Lost(_) => attempts.retry_after_loss(),
            _ => false,
        }
    }
}

/// Appends an nfnetlink request.
pub(crate) fn write_request(
    bytes: &mut Vec<u8>,
    sequence: u32,
    kind: u16,
    flags: u16,
    family: u8,
    content: impl FnOnce(&mut MessageWriter<'_>),
) -> Result<(), MessageError> {
    let header = NfGenMsg {
        family,
        resource: 0,
    };
    let flags = NLM_F_REQUEST | flags;
    let mut writer = MessageWriter::nfnetlink(bytes, kind, flags, sequence, header);
    content(&mut writer);
    writer.finish()
}

/// A running dump, received into the session's buffer one datagram at a time.
///
/// `selects` decides about messages that are unlike the last one: [`Dump::selects`], or a filter on top of it.
#[derive(Debug)]
pub(crate) struct DumpReader<'c> {
    session: &'c mut Session,
    dump: Dump,
    unread: Unread,
    /// The error that ended it.
    failed: Option<Box<Error>>,
}

impl DumpReader<'_> {
    /// Returns the view of the object that `find` finds in the buffer. After an error, each further call returns the
    /// same error.
    #[inline(always)]
    pub(crate) fn next<'s, V>(
        &'s mut self,
        find: impl FnOnce(&mut Self) -> Result<Option<(usize, usize)>, Error>,
        view: impl FnOnce(&'s [u8]) -> Result<V, super::Malformed>,
    ) -> Result<Option<V>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.repeated());
        }
        let object = match find(self) {
            Ok(None) => return Ok(None),
            Ok(Some((start, end))) => view(&self.session.buffer[start..end]).map_err(Error::from),
            Err(error) => Err(error),
        };
        if let Err(error) = &object {
            self.failed = Some(Box::new(error.repeated()));
        }
        object.map(Some)
    }

    /// Returns the buffer with the last received datagram.
    #[inline(always)]
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.session.buffer
    }

    /// Receives a datagram if all messages of the last one are read.
    #[inline(always)]
    fn fill(&mut self) -> Result<(), Error> {
        if self.unread.is_empty() {
            self.unread = Unread::of(self.session.socket.receive(&mut self.session.buffer)?);
        }
        Ok(())
    }

    /// Finds the next selected message; returns the start and end of its payload in the buffer.
    #[inline(always)]
    pub(crate) fn advance(
        &mut self,
        mut selects: impl FnMut(&mut Dump, &[u8]) -> Result<bool, Error>,
    ) -> Result<Option<(usize, usize)>, Error> {
        while !self.dump.ended() {
            self.fill()?;
            let start = self.unread.offset();
            let mut messages = self.unread.messages(&self.session.buffer);
            let message = messages.next();
            self.unread.keep(&messages);
            let Some(message) = message.transpose()? else {
                continue;
            };
            if self.dump.is_expected(&message) || selects(&mut self.dump, message.raw)? {
                let end = start + message.raw.len();
                return Ok(Some((end - message.payload.len(), end)));
            }
        }
        Ok(None)
    }

    /// Passes the payload of every selected message to `each`, until the end or an error.
    #[inline(always)]
    pub(crate) fn for_each(
        &mut self,
        mut selects: impl FnMut(&mut Dump, &[u8]) -> Result<bool, Error>,
        mut each: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(error) = &self.failed {
            return Err(error.repeated());
        }
        while !self.dump.ended() {
            self.fill()?;
            let mut messages = self.unread.messages(&self.session.buffer);
            let dump = &mut self.dump;
            let result = messages.by_ref().try_for_each(|message| {
                let message = message?;
                match dump.is_expected(&message) || selects(dump, message.raw)? {
                    true => each(message.payload),
                    false => Ok(()),
                }
            });
            self.unread.keep(&messages);
            result?;
        }
        Ok(())
    }
}

impl Drop for DumpReader<'_> {
    fn drop(&mut self) {
        if self.dump.ended() {
            return;
        }
        // The dump's end may already be in the buffer.
        let rest = self.unread.messages(&self.session.buffer);
        for message in rest.map_while(Result::ok) {
            let _ = self.dump.accept(message);
        }
        self.session.abandon_dump(&self.dump);
    }
}

/// Receives the reply to a request for one object.
struct ObjectReply<'c> {
    buffer: &'c mut [u8],
    request: &'c Request,
    sequence: u32,
    /// Once received: the reply's range in the buffer, or that the object does not exist.
    found: Option<Option<(usize, usize)>>,
}

impl DatagramReceiver for ObjectReply<'_> {
    fn is_complete(&self) -> bool {
        self.found.is_some()
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        let datagram = &self.buffer[..length];
        for message in Messages::new(datagram) {
            let message = message?;
            if message.kind == NLMSG_OVERRUN {
                return Err(Error::Lost(Loss::Overrun));
            }
            if message.sequence != self.sequence {
                continue; // left over from an earlier request
            }
            let Some(refusal) = Acknowledgement::parse(&message)? else {
                let start = message.raw.as_ptr() as usize - datagram.as_ptr() as usize;
                self.found = Some(Some((start, start + message.raw.len())));
                return Ok(());
            };
            if self.request.is_absent(&refusal) {
                self.found = Some(None);
                return Ok(());
            }
            refusal.into_result(self.request.name)?;
        }
        Ok(())
    }
}

impl Request {
    fn is_absent(&self, reply: &Acknowledgement<'_>) -> bool {
        let is = |errno: crate::errno::Errno| self.absent.contains(&errno.number());
        reply.errno.is_some_and(is)
    }
}

/// Receives the acknowledgements of some requests.
#[cfg(feature = "conntrack")]
struct Acknowledgements<'c> {
    buffer: &'c mut [u8],
    request: &'c Request,
    /// The sequence number of the first request; the others are consecutive.
    first: u32,
    number: usize,
    rest: usize,
    /// Number of requests for objects that do not exist.
    absent: usize,
}

#[cfg(feature = "conntrack")]
impl DatagramReceiver for Acknowledgements<'_> {
    fn is_complete(&self) -> bool {
        self.rest == 0
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        for message in Messages::new(&self.buffer[..length]) {
            let message = message?;
            if message.kind == NLMSG_OVERRUN {
                return Err(Error::Lost(Loss::Overrun));
            }
            // A reply that is left over from an earlier request has a sequence number outside of this range: a lower
            // one, or one from before the numbers wrapped around.
            if message.sequence.wrapping_sub(self.first) as usize >= self.number {
                continue;
            }
            let Some(reply) = Acknowledgement::parse(&message)? else {
                continue;
            };
            self.rest = self.rest.saturating_sub(1);
            match self.request.is_absent(&reply) {
                true => self.absent += 1,
                false => reply.into_result(self.request.name)?,
            }
        }
        Ok(())
    }
}

/// Discards everything that is queued.
struct Discard<'c> {
    buffer: &'c mut [u8],
    is_empty: bool,
}

impl DatagramReceiver for Discard<'_> {
    fn is_complete(&self) -> bool {
        self.is_empty
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn record_loss(&mut self, error: Error) -> Result<(), Error> {
        // An error of the socket itself is not about the replies either.
        self.is_empty = matches!(
            error,
            Error::Lost(Loss::MissingReply) | Error::Receive { .. }
        );
        Ok(())
    }
}

/// Receives the rest of an abandoned dump.
struct DumpDrain<'c> {
    socket: &'c Socket,
    buffer: &'c mut [u8],
    /// A request whose reply is ignored.
    probe: &'c [u8],
    dump: Dump,
    /// Whether the last event was a datagram: the kernel has then created the next part, if there
    /// is one.
    progressing: bool,
    /// Number of errors since the last object.
    errors: usize,
    /// Whether the end of the dump will not come.
    lost: bool,
}

impl DatagramReceiver for DumpDrain<'_> {
    fn is_complete(&self) -> bool {
        self.lost || self.dump.ended()
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        self.progressing = true;
        for message in Messages::new(&self.buffer[..length]).map_while(Result::ok) {
            if matches!(self.dump.accept(message), Ok(DumpItem::Object(_))) {
                self.errors = 0;
            }
        }
        Ok(())
    }

    fn record_loss(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Truncated { .. } => self.progressing = true,
            Error::Lost(Loss::MissingReply) if self.progressing => self.lost = true,
            _ if self.errors == MAX_ERRORS => self.lost = true,
            // If the kernel had no memory for the next part, it tries again when something is
            // received: the reply to any request.
            Error::Lost(Loss::MissingReply) => {
                self.errors += 1;
                self.lost = self.socket.send(self.probe).is_err();
            }
            _ => {
                self.errors += 1;
                self.progressing = false;
            }
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "conntrack"))]
mod tests;
