//! The loop that receives replies and events, and their receivers.

use chainwright_sys::netlink::NLMSG_OVERRUN;

use super::ack::Acknowledgement;
use super::dump::Dump;
use super::error::{Error, Loss};
use super::message::Messages;
use super::socket::Socket;

/// Receives the answer to a request, or events, one datagram after the other.
pub(crate) trait DatagramReceiver {
    /// Returns `true` if the answer is complete, or nothing more should be received now.
    fn is_complete(&self) -> bool;

    /// Returns the buffer for the next datagram.
    fn space(&mut self) -> Result<&mut [u8], Error>;

    /// Processes a datagram of this length at the start of the buffer.
    fn take(&mut self, length: usize) -> Result<(), Error>;

    /// Reports that no datagram was queued ([`Loss::MissingReply`]), or that part of the answer was lost
    /// otherwise. `Ok` continues with the datagrams after the loss.
    #[cold]
    fn record_loss(&mut self, error: Error) -> Result<(), Error> {
        Err(error)
    }
}

impl Socket {
    /// Receives an answer or events, to the end or to an error.
    ///
    /// This never waits: a datagram that is not queued is lost.
    #[inline(always)]
    pub(crate) fn receive_all(&self, receiver: &mut impl DatagramReceiver) -> Result<(), Error> {
        while !receiver.is_complete() {
            match self.receive(receiver.space()?) {
                Ok(length) => receiver.take(length)?,
                Err(error) => receiver.record_loss(error)?,
            }
        }
        Ok(())
    }

    /// Receives and discards the rest of an abandoned dump, so that the socket is free for the next
    /// request. `probe` is any request; its answer is discarded, too. This never waits.
    pub(crate) fn drain(&self, buffer: &mut [u8], probe: &[u8], dump: Dump) {
        let mut rest = DumpDrain {
            socket: self,
            buffer,
            probe,
            dump,
            progressing: false,
            errors: 0,
            lost: false,
        };
        // Its errors are irrelevant: the caller abandoned the listing.
        let _ = self.receive_all(&mut rest);
    }
}

/// Maximum number of errors while draining an abandoned dump.
const MAX_ERRORS: usize = 4;

/// Receives a single datagram of any kind.
pub(crate) struct NextDatagram<'b> {
    buffer: &'b mut [u8],
    length: Option<usize>,
}

impl<'b> NextDatagram<'b> {
    pub(crate) const fn new(buffer: &'b mut [u8]) -> Self {
        Self {
            buffer,
            length: None,
        }
    }

    /// Returns the datagram's length.
    pub(crate) fn length(&self) -> usize {
        self.length.unwrap_or(0)
    }
}

impl DatagramReceiver for NextDatagram<'_> {
    fn is_complete(&self) -> bool {
        self.length.is_some()
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        self.length = Some(length);
        Ok(())
    }
}

/// Receives the answer to a request for one object.
pub(crate) struct ObjectReply<'b> {
    buffer: &'b mut [u8],
    request: &'static str,
    sequence: u32,
    absent: &'b [i32],
    /// The answer's range in the buffer, once received; the inner `None` if the object does not exist.
    found: Option<Option<(usize, usize)>>,
}

impl<'b> ObjectReply<'b> {
    /// Expects the answer to the request with this sequence number; `request` names it in errors. The errors
    /// `absent` mean that the object does not exist.
    pub(crate) const fn new(
        buffer: &'b mut [u8],
        request: &'static str,
        sequence: u32,
        absent: &'b [i32],
    ) -> Self {
        Self {
            buffer,
            request,
            sequence,
            absent,
            found: None,
        }
    }

    /// Returns the answer's range in the buffer; `None` if the object does not exist.
    pub(crate) fn found(&self) -> Option<(usize, usize)> {
        self.found.flatten()
    }
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
            let errno = refusal.errno.map(|errno| errno.number());
            if errno.is_some_and(|number| self.absent.contains(&number)) {
                self.found = Some(None);
                return Ok(());
            }
            refusal.into_result(self.request)?;
        }
        Ok(())
    }
}

/// Receives the rest of an abandoned dump.
struct DumpDrain<'c> {
    socket: &'c Socket,
    buffer: &'c mut [u8],
    /// Any request.
    probe: &'c [u8],
    dump: Dump,
    /// Whether the last event was a datagram: the kernel has then created the next part, if there
    /// is one.
    progressing: bool,
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
            let _ = self.dump.accept(message);
        }
        Ok(())
    }

    fn record_loss(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Truncated { .. } => self.progressing = true,
            Error::Lost(Loss::MissingReply) if self.progressing => self.lost = true,
            _ if self.errors == MAX_ERRORS => self.lost = true,
            // If the kernel had no memory for the next part, it tries again when something is
            // received: the answer to any request.
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
