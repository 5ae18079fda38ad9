//! The one loop in which answers and events are received, and what takes them in.

use chainwright_sys::netlink::NLMSG_OVERRUN;

use super::ack::Acknowledgement;
use super::dump::Dump;
use super::error::{Error, Loss};
use super::message::Messages;
use super::socket::Socket;

/// What takes in the answer to a request, or events, one datagram after the other.
pub(crate) trait Intake {
    /// Whether nothing more belongs to the answer, or is to be taken in now.
    fn is_complete(&self) -> bool;

    /// Where the next datagram goes.
    fn room(&mut self) -> Result<&mut [u8], Error>;

    /// Takes in a datagram of this length, which is at the start of that room.
    fn take(&mut self, length: usize) -> Result<(), Error>;

    /// Says that the next datagram did not come ([`Loss::Absent`]), or something of the answer is lost
    /// otherwise. Whether to go on: what is received next is behind what was lost.
    #[cold]
    fn lose(&mut self, error: Error) -> Result<(), Error> {
        Err(error)
    }
}

impl Socket {
    /// Receives an answer or events, to the end or to an error.
    ///
    /// This never waits: what is not queued is lost.
    #[inline(always)]
    pub(crate) fn take_in(&self, intake: &mut impl Intake) -> Result<(), Error> {
        while !intake.is_complete() {
            match self.receive(intake.room()?) {
                Ok(length) => intake.take(length)?,
                Err(error) => intake.lose(error)?,
            }
        }
        Ok(())
    }

    /// Receives what is left of a dump that was given up and throws it away, so that the socket is free for the next
    /// request. `question` is any request; its answer is thrown away, too. This never waits.
    pub(crate) fn drain(&self, buffer: &mut [u8], question: &[u8], dump: Dump) {
        let mut rest = Rest {
            socket: self,
            buffer,
            question,
            dump,
            moving: false,
            troubles: 0,
            lost: false,
        };
        // Its errors have no one to go to: the listing was given up.
        let _ = self.take_in(&mut rest);
    }
}

/// How many errors are taken while the rest of a dump is received that was given up.
const TROUBLES: usize = 4;

/// Takes in one datagram of whatever it is.
pub(crate) struct Next<'b> {
    buffer: &'b mut [u8],
    length: Option<usize>,
}

impl<'b> Next<'b> {
    pub(crate) const fn new(buffer: &'b mut [u8]) -> Self {
        Self {
            buffer,
            length: None,
        }
    }

    /// Its length.
    pub(crate) fn length(&self) -> usize {
        self.length.unwrap_or(0)
    }
}

impl Intake for Next<'_> {
    fn is_complete(&self) -> bool {
        self.length.is_some()
    }

    fn room(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        self.length = Some(length);
        Ok(())
    }
}

/// Takes in the answer to a question after one thing.
pub(crate) struct Answer<'b> {
    buffer: &'b mut [u8],
    request: &'static str,
    sequence: u32,
    absent: &'b [i32],
    /// Once it is here: where it starts and ends in the buffer, or that there is no such thing.
    found: Option<Option<(usize, usize)>>,
}

impl<'b> Answer<'b> {
    /// To the request with this sequence number, which `request` names in errors; the errors `absent` say
    /// that there is no such thing.
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

    /// Where the message that answers starts and ends in the buffer; `None` if there is no such thing.
    pub(crate) fn found(&self) -> Option<(usize, usize)> {
        self.found.flatten()
    }
}

impl Intake for Answer<'_> {
    fn is_complete(&self) -> bool {
        self.found.is_some()
    }

    fn room(&mut self) -> Result<&mut [u8], Error> {
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

/// Takes in what is left of a dump that was given up.
struct Rest<'c> {
    socket: &'c Socket,
    buffer: &'c mut [u8],
    /// Any request.
    question: &'c [u8],
    dump: Dump,
    /// Whether the last thing that happened was a datagram: with it the kernel has made the next part, if
    /// there is one.
    moving: bool,
    troubles: usize,
    /// Whether its end will not come.
    lost: bool,
}

impl Intake for Rest<'_> {
    fn is_complete(&self) -> bool {
        self.lost || self.dump.ended()
    }

    fn room(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        self.moving = true;
        for message in Messages::new(&self.buffer[..length]).map_while(Result::ok) {
            let _ = self.dump.accept(message);
        }
        Ok(())
    }

    fn lose(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Truncated { .. } => self.moving = true,
            Error::Lost(Loss::Absent) if self.moving => self.lost = true,
            _ if self.troubles == TROUBLES => self.lost = true,
            // Where the kernel had no memory for the next part, it tries again when something is
            // received: the answer to any question.
            Error::Lost(Loss::Absent) => {
                self.troubles += 1;
                self.lost = self.socket.send(self.question).is_err();
            }
            _ => {
                self.troubles += 1;
                self.moving = false;
            }
        }
        Ok(())
    }
}
