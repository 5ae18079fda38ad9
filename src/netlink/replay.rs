//! A socket's other end, for tests: what kernels answered, and what may become of it on the way.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use super::Received;
use super::peer::Peer;

/// What is received.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Datagram(Vec<u8>),
    /// What another socket sent, which has this port.
    Sent(u32, Vec<u8>),
    /// An error of `recvmsg`.
    Error(i32),
}

/// What is queued to be received.
pub(crate) type Queue = Arc<Mutex<VecDeque<Reply>>>;

/// What is answered to a request.
type Kernel = dyn FnMut(&[u8]) -> Vec<Reply> + Send;

/// The other end: called with every request, it queues replies. When none is queued, none is received.
pub(crate) struct Replay {
    kernel: Mutex<Box<Kernel>>,
    queue: Queue,
    /// A descriptor with which nothing is done.
    file: File,
}

impl Replay {
    pub(crate) fn new(kernel: impl FnMut(&[u8]) -> Vec<Reply> + Send + 'static) -> Self {
        Self {
            kernel: Mutex::new(Box::new(kernel)),
            queue: Queue::default(),
            file: File::open("/dev/null").unwrap(),
        }
    }

    /// Where to put what comes without a request.
    pub(crate) fn queue(&self) -> Queue {
        Arc::clone(&self.queue)
    }
}

impl Peer for Replay {
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        let replies = (self.kernel.lock().unwrap())(datagram);
        self.queue.lock().unwrap().extend(replies);
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let (sender, datagram) = match self.queue.lock().unwrap().pop_front() {
            Some(Reply::Datagram(datagram)) => (0, datagram),
            Some(Reply::Sent(port, datagram)) => (port, datagram),
            Some(Reply::Error(number)) => return Err(io::Error::from_raw_os_error(number)),
            None => return Err(io::ErrorKind::WouldBlock.into()),
        };
        let fits = datagram.len().min(buffer.len());
        buffer[..fits].copy_from_slice(&datagram[..fits]);
        Ok(Received {
            length: datagram.len(),
            sender,
        })
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
