//! A socket's transport, if that is not the kernel's.

use std::io;
use std::os::fd::BorrowedFd;

use super::Received;

/// Replaces the kernel: it processes a request before [`send`](Self::send) returns, and queues
/// its replies.
pub trait Transport: Send + Sync {
    /// Takes one datagram.
    fn send(&self, datagram: &[u8]) -> io::Result<()>;

    /// Copies as much of the next datagram as fits into the buffer. It never waits:
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if none is queued.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Received>;

    /// Returns a descriptor that is readable when a datagram is queued.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Returns this socket's number at the peer.
    fn port(&self) -> u32 {
        0
    }

    /// Returns the number that identifies the peer.
    fn namespace_cookie(&self) -> Option<u64> {
        None
    }

    /// Joins a multicast group, or leaves it.
    fn set_membership(&self, _group: u32, _joined: bool) -> io::Result<()> {
        Ok(())
    }

    /// Limits the size of the queue, in bytes.
    fn set_receive_buffer(&self, _bytes: usize) {}

    /// Returns the limit of the queue's size.
    fn receive_buffer(&self) -> usize {
        0
    }

    /// Opens another socket with the same peer; `None` if the peer supports only one.
    fn sibling(&self) -> Option<Box<dyn Transport>> {
        None
    }
}
