//! A transport for tests that replays replies of kernels, possibly altered.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use super::Received;
use super::transport::Transport;

/// A result of `recvmsg`.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Datagram(Vec<u8>),
    /// A datagram from another socket, with its port.
    Sent(u32, Vec<u8>),
    /// An error of `recvmsg`.
    Error(i32),
}

/// The queue of results.
pub(crate) type Queue = Arc<Mutex<VecDeque<Reply>>>;

/// Returns the replies to a request.
type Kernel = dyn FnMut(&[u8]) -> Vec<Reply> + Send;

/// The transport: calls a function with every request and queues its replies. Receiving never waits.
pub(crate) struct Replay {
    kernel: Mutex<Box<Kernel>>,
    queue: Queue,
    /// A dummy descriptor.
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

    /// Returns the queue, for adding datagrams without a request.
    pub(crate) fn queue(&self) -> Queue {
        Arc::clone(&self.queue)
    }
}

impl Transport for Replay {
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
