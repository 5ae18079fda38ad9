//! The loop that receives replies and events.

use super::error::Error;
use super::socket::Socket;

/// Receives the reply to a request, or events, one datagram after the other.
pub(crate) trait DatagramReceiver {
    /// Returns `true` if the reply is complete, or nothing more should be received now.
    fn is_complete(&self) -> bool;

    /// Returns the buffer for the next datagram.
    fn space(&mut self) -> Result<&mut [u8], Error>;

    /// Processes a datagram of this length at the start of the buffer.
    fn take(&mut self, length: usize) -> Result<(), Error>;

    /// Reports that no datagram was queued ([`Loss::MissingReply`](super::Loss::MissingReply)), or that part of the
    /// reply was lost otherwise. `Ok` continues with the datagrams after the loss.
    #[cold]
    fn record_loss(&mut self, error: Error) -> Result<(), Error> {
        Err(error)
    }
}

impl Socket {
    /// Receives a reply or events, to the end or to an error.
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
}
