//! A dump: one request with `NLM_F_DUMP`, answered by many datagrams that end in `NLMSG_DONE`.

use chainwright_sys::netlink::{
    NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_MIN_TYPE, NLMSG_NOOP,
};

use super::ack::Acknowledgement;
use super::error::{Error, Loss};
use super::message::Message;

/// The header key of a message of type 65535 with all flags: its subsystem does not exist.
const NO_HEADER_KEY: u64 = u64::MAX;

/// The meaning of a message for the current dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpItem<'a> {
    /// One object of the listing.
    Object(Message<'a>),
    /// Not part of this dump: left over from an earlier request.
    Unrelated,
    /// The listing is complete, and of one generation.
    End,
}

/// The state of a running dump, independent of any socket: messages in, objects out.
///
/// A change during the dump makes the kernel set `NLM_F_DUMP_INTR`. The objects still come
/// through, but the dump then ends in [`Error::Interrupted`]: a listing that may lack objects or
/// hold duplicates is never reported as complete.
#[derive(Debug, Clone)]
pub struct Dump {
    request: &'static str,
    sequence: u32,
    interrupted: bool,
    ended: bool,
    /// The header key of the last ordinary object message, shared by nearly all messages
    /// of a dump; [`NO_HEADER_KEY`] before the first.
    expected: u64,
}

impl Dump {
    /// Starts a dump with the request's sequence number; `request` names it in errors.
    #[must_use]
    pub const fn new(request: &'static str, sequence: u32) -> Self {
        Self {
            request,
            sequence,
            interrupted: false,
            ended: false,
            expected: NO_HEADER_KEY,
        }
    }

    /// Returns `true` if the dump is over: complete, or ended by an error of the kernel.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended
    }

    /// Returns `true` if a change has interrupted the dump so far.
    #[must_use]
    pub const fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Returns `true` if the message is one more object like the last one, which need not go
    /// through [`accept`](Self::accept).
    #[inline(always)]
    #[must_use]
    pub const fn is_expected(&self, message: &Message<'_>) -> bool {
        message.header_key == self.expected
    }

    /// Makes the caller examine the next message even if it is like the last one.
    pub fn reset_expected(&mut self) {
        self.expected = NO_HEADER_KEY;
    }

    /// Processes the next message.
    ///
    /// # Errors
    /// - [`Error::Refused`] when the kernel refused or aborted the dump.
    /// - [`Error::Interrupted`] at the end of a dump during which the ruleset changed.
    /// - [`Error::Lost`] when the kernel reports that it dropped a part.
    /// - [`Error::Malformed`] when an acknowledgement is truncated.
    #[inline]
    pub fn accept<'a>(&mut self, message: Message<'a>) -> Result<DumpItem<'a>, Error> {
        if message.sequence != self.sequence {
            return Ok(DumpItem::Unrelated);
        }
        if message.flags & NLM_F_DUMP_INTR != 0 {
            self.interrupted = true;
        } else if message.kind >= NLMSG_MIN_TYPE {
            self.expected = message.header_key;
        }
        if message.kind >= NLMSG_MIN_TYPE {
            return Ok(DumpItem::Object(message));
        }
        self.control(message.raw)
    }

    /// Returns whether this message is an object of the dump.
    // Takes the bytes, so that the caller need not store the message in memory.
    #[inline]
    pub(crate) fn selects(&mut self, message: &[u8]) -> Result<bool, Error> {
        let item = self.accept(Message::first(message)?)?;
        Ok(matches!(item, DumpItem::Object(_)))
    }

    #[cold]
    fn control<'a>(&mut self, message: &'a [u8]) -> Result<DumpItem<'a>, Error> {
        let (message, _) = Message::split(message)?;
        let message = &message;
        match message.kind {
            NLMSG_NOOP => Ok(DumpItem::Unrelated),
            NLMSG_DONE => {
                self.ended = true;
                Acknowledgement::of_done(message).into_result(self.request)?;
                if self.interrupted {
                    return Err(Error::Interrupted);
                }
                Ok(DumpItem::End)
            }
            NLMSG_ERROR => {
                self.ended = true;
                if let Some(acknowledgement) = Acknowledgement::parse(message)? {
                    acknowledgement.into_result(self.request)?;
                }
                // An acknowledgement instead of a listing: there was nothing to list.
                Ok(DumpItem::End)
            }
            // The rest of the dump follows.
            _ => Err(Error::Lost(Loss::Overrun)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ack::tests::reply;
    use chainwright_sys::netlink::NLMSG_OVERRUN;

    use super::super::{MessageWriter, Messages};
    use super::*;

    const NEWCHAIN: u16 = 0xa03;
    const NLM_F_MULTI: u16 = 2;

    fn object(buffer: &mut Vec<u8>, sequence: u32, flags: u16) {
        let mut w = MessageWriter::new(buffer, NEWCHAIN, NLM_F_MULTI | flags, sequence);
        w.encoded(&[2, 0, 0, 0]);
        w.finish().unwrap();
    }

    fn done(buffer: &mut Vec<u8>, sequence: u32, flags: u16, error: i32) {
        let mut w = MessageWriter::new(buffer, NLMSG_DONE, NLM_F_MULTI | flags, sequence);
        w.encoded(&error.to_ne_bytes());
        w.finish().unwrap();
    }

    /// Replays a datagram: the number of objects, and how the dump ended (`None`: still running).
    fn replay(datagram: &[u8]) -> (usize, Option<Result<(), Error>>) {
        let mut dump = Dump::new("list chains", 5);
        let mut objects = 0;
        for message in Messages::new(datagram) {
            match dump.accept(message.unwrap()) {
                Ok(DumpItem::Object(_)) => objects += 1,
                Ok(DumpItem::Unrelated) => {}
                Ok(DumpItem::End) => return (objects, Some(Ok(()))),
                Err(error) => {
                    assert!(dump.ended() || matches!(error, Error::Lost(_)));
                    return (objects, Some(Err(error)));
                }
            }
        }
        (objects, None)
    }

    #[test]
    fn a_whole_dump() {
        let mut bytes = Vec::new();
        object(&mut bytes, 4, 0); // of an earlier request
        object(&mut bytes, 5, 0);
        object(&mut bytes, 5, 0);
        assert!(matches!(replay(&bytes), (2, None)));
        done(&mut bytes, 5, 0, 0);
        assert!(matches!(replay(&bytes), (2, Some(Ok(())))));
    }

    #[test]
    fn an_interrupted_dump_is_an_error_at_its_end() {
        for (on_object, on_done) in [(NLM_F_DUMP_INTR, 0), (0, NLM_F_DUMP_INTR)] {
            let mut bytes = Vec::new();
            object(&mut bytes, 5, on_object);
            object(&mut bytes, 5, 0);
            done(&mut bytes, 5, on_done, 0);
            assert!(matches!(replay(&bytes), (2, Some(Err(Error::Interrupted)))));
        }
    }

    #[test]
    fn refusals_before_and_during_the_dump() {
        let mut bytes = Vec::new();
        reply(&mut bytes, 5, libc::EPERM, None, None);
        let (0, Some(Err(Error::Refused { errno, .. }))) = replay(&bytes) else {
            panic!("expected a refusal");
        };
        assert_eq!(errno.number(), libc::EPERM);

        let mut bytes = Vec::new();
        object(&mut bytes, 5, 0);
        done(&mut bytes, 5, 0, -libc::ENOENT);
        let (1, Some(Err(Error::Refused { errno, .. }))) = replay(&bytes) else {
            panic!("expected a refusal");
        };
        assert_eq!(errno.number(), libc::ENOENT);
    }

    #[test]
    fn an_overrun_and_a_cut_error_end_the_dump() {
        let mut bytes = Vec::new();
        MessageWriter::new(&mut bytes, NLMSG_OVERRUN, 0, 5)
            .finish()
            .unwrap();
        assert!(matches!(
            replay(&bytes),
            (0, Some(Err(Error::Lost(Loss::Overrun))))
        ));
        // NLMSG_ERROR without a payload.
        let mut bytes = Vec::new();
        MessageWriter::new(&mut bytes, NLMSG_ERROR, 0, 5)
            .finish()
            .unwrap();
        assert!(matches!(
            replay(&bytes),
            (0, Some(Err(Error::Malformed(_))))
        ));
    }
}
