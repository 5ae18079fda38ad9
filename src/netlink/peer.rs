//! A socket's other end, where that is not the kernel.

use std::io;
use std::os::fd::BorrowedFd;

use super::Received;

/// What answers in the kernel's place: it carries a request out before [`send`](Self::send) returns, and queues
/// what it answers.
pub trait Peer: Send + Sync {
    /// Takes one datagram.
    fn send(&self, datagram: &[u8]) -> io::Result<()>;

    /// Puts as much of the next datagram as fits into the buffer. It never waits:
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) says that there is none.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Received>;

    /// A descriptor that is readable when something is queued.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// The number that the other end knows this socket by.
    fn port(&self) -> u32 {
        0
    }

    /// The number that tells the other end from all others.
    fn namespace_cookie(&self) -> Option<u64> {
        None
    }

    /// Joins a multicast group, or leaves it.
    fn set_membership(&self, _group: u32, _joined: bool) -> io::Result<()> {
        Ok(())
    }

    /// Limits what may be queued; in bytes.
    fn set_receive_buffer(&self, _bytes: usize) {}

    /// How much may be queued.
    fn receive_buffer(&self) -> usize {
        0
    }

    /// Another socket with the same other end; `None` if there is no other.
    fn sibling(&self) -> Option<Box<dyn Peer>> {
        None
    }
}
