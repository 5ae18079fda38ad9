//! Sockets to a fake kernel: their receive queues and event subscriptions.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use chainwright_sys::nf_tables::NFT_MSG_NEWGEN;
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;

use super::events::QueuedEvent;
use super::state::{Devices, State};
use super::wire::{Header, put};
use super::{batch, request};
use chainwright::netlink::Received;
use chainwright::netlink::Transport;
use chainwright::nft::message_type;

/// Approximate size of the datagrams with the events of a transaction.
const DATAGRAM: usize = 3_700;
/// Default size of a receive buffer (`net.core.rmem_default`).
const RECEIVE_BUFFER: usize = 212_992;
/// Overhead that the kernel counts for each datagram.
const OVERHEAD: usize = 768;

/// A fake kernel and its sockets.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) namespace: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    devices: Arc<Devices>,
    sockets: Vec<Weak<Queue>>,
    /// The last socket's port.
    ports: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The protected state is always consistent: each change is complete or absent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(namespace: u64, devices: Devices, state: State) -> Arc<Self> {
        Arc::new(Self {
            namespace,
            inner: Mutex::new(Inner {
                state,
                devices: Arc::new(devices),
                sockets: Vec::new(),
                ports: 0,
            }),
        })
    }

    /// Opens a socket.
    pub(super) fn connect(self: &Arc<Self>) -> io::Result<Socket> {
        let mut inner = lock(&self.inner);
        inner.ports += 1;
        let (readable, signal) = UnixStream::pair()?;
        readable.set_nonblocking(true)?;
        signal.set_nonblocking(true)?;
        let queue = Arc::new(Queue {
            port: inner.ports,
            inner: Mutex::new(Queued {
                datagrams: VecDeque::new(),
                bytes: 0,
                limit: RECEIVE_BUFFER,
                listens: false,
                overrun: false,
                signal,
                is_signalled: false,
            }),
        });
        inner.sockets.retain(|socket| socket.strong_count() > 0);
        inner.sockets.push(Arc::downgrade(&queue));
        Ok(Socket {
            shared: Arc::clone(self),
            queue,
            readable,
        })
    }

    fn take(&self, queue: &Queue, datagram: &[u8]) {
        let mut inner = lock(&self.inner);
        if !batch::is_batch(datagram) {
            let answers = request::answer(&mut inner.state, queue.port, datagram);
            return queue.push_all(answers);
        }
        let devices = Arc::clone(&inner.devices);
        let outcome = batch::run(&mut inner.state, queue.port, &devices, datagram);
        if let Some(committed) = outcome.committed {
            inner.state = committed.state;
            inner.send_events(&committed.events, queue.port, true);
            inner.send_generation(committed.first, queue.port, committed.is_echoed);
        }
        queue.push_all(outcome.replies);
    }

    /// Handles a closed socket: its tables are deleted, or lose their owner.
    fn close(&self, port: u32) {
        let mut inner = lock(&self.inner);
        let events = inner.state.close_owner(port);
        if !events.is_empty() {
            inner.send_events(&events, port, false);
        }
    }

    /// Lets time pass.
    pub(super) fn advance(&self, time: Duration) {
        lock(&self.inner).state.advance(time);
    }

    /// Changes a copy of the state, and replaces the state with it if that succeeds. The events go to the subscribers.
    #[cfg(feature = "trace")]
    pub(super) fn change<T, E>(
        &self,
        change: impl FnOnce(&mut State, &mut Vec<QueuedEvent>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut inner = lock(&self.inner);
        let (mut state, mut events) = (inner.state.clone(), Vec::new());
        let result = change(&mut state, &mut events)?;
        inner.state = state;
        inner.send_events(&events, 0, false);
        Ok(result)
    }

    /// Changes the existing devices.
    pub(super) fn with_devices(&self, change: impl FnOnce(&mut Devices)) {
        let mut inner = lock(&self.inner);
        change(Arc::make_mut(&mut inner.devices));
    }
}

impl Inner {
    /// Sends the generation to all subscribers, and optionally to the sender.
    fn send_generation(&self, sequence: u32, port: u32, to_sender: bool) {
        let generation = request::generation_and_thread(self.state.generation);
        let header = Header {
            kind: message_type(NFT_MSG_NEWGEN),
            flags: 0,
            sequence,
            port,
        };
        let mut datagram = Vec::new();
        put(&mut datagram, header, &[&self.nfgenmsg(0), &generation.0]);
        self.send(&datagram, port, to_sender);
    }

    /// Sends the events to all subscribers, and those with an echo flag to the sender.
    fn send_events(&self, events: &[QueuedEvent], port: u32, to_sender: bool) {
        for events in events.chunk_by(|one, next| one.is_echoed == next.is_echoed) {
            let to_sender = to_sender && events.iter().any(|events| events.is_echoed);
            let mut datagram = Vec::new();
            for events in events {
                let before = datagram.len();
                let header = Header {
                    kind: message_type(events.message),
                    flags: events.flags,
                    sequence: events.sequence,
                    port,
                };
                let nfgenmsg = self.nfgenmsg(events.family);
                put(&mut datagram, header, &[&nfgenmsg, &events.attributes.0]);
                if before > 0 && datagram.len() > DATAGRAM {
                    let last = datagram.split_off(before);
                    self.send(&datagram, port, to_sender);
                    datagram = last;
                }
            }
            self.send(&datagram, port, to_sender);
        }
    }

    /// Queues a datagram for all subscribers and for the sender, but only once for each socket.
    fn send(&self, datagram: &[u8], port: u32, to_sender: bool) {
        for socket in self.sockets.iter().filter_map(Weak::upgrade) {
            let is_sender = to_sender && socket.port == port;
            if is_sender || lock(&socket.inner).listens {
                socket.push(datagram.to_vec());
            }
        }
    }

    fn nfgenmsg(&self, family: u8) -> [u8; 4] {
        let resource = (self.state.generation as u16).to_be_bytes();
        [family, 0, resource[0], resource[1]]
    }
}

/// The receive queue of a socket.
#[derive(Debug)]
struct Queue {
    port: u32,
    inner: Mutex<Queued>,
}

#[derive(Debug)]
struct Queued {
    datagrams: VecDeque<Vec<u8>>,
    bytes: usize,
    limit: usize,
    listens: bool,
    /// Whether a datagram was dropped since the last report.
    overrun: bool,
    /// Contains a byte while there is something to receive.
    signal: UnixStream,
    is_signalled: bool,
}

impl Queue {
    fn push_all(&self, datagrams: Vec<Vec<u8>>) {
        let mut queued = lock(&self.inner);
        // Replies to requests are never dropped: the kernel generates the next part when the buffer has space.
        for datagram in datagrams {
            queued.bytes += datagram.len() + OVERHEAD;
            queued.datagrams.push_back(datagram);
        }
        queued.signal();
    }

    /// Queues an event, if there is space.
    fn push(&self, datagram: Vec<u8>) {
        let mut queued = lock(&self.inner);
        if queued.bytes + datagram.len() + OVERHEAD > queued.limit {
            queued.overrun = true;
        } else {
            queued.bytes += datagram.len() + OVERHEAD;
            queued.datagrams.push_back(datagram);
        }
        queued.signal();
    }
}

impl Queued {
    /// Makes the descriptor readable if there is something to receive.
    fn signal(&mut self) {
        let wanted = self.overrun || !self.datagrams.is_empty();
        if wanted && !self.is_signalled {
            self.is_signalled = self.signal.write(&[1]).is_ok();
        }
    }
}

/// A socket to a fake kernel.
#[derive(Debug)]
pub(super) struct Socket {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    readable: UnixStream,
}

impl Transport for Socket {
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.shared.take(&self.queue, datagram);
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut queued = lock(&self.queue.inner);
        // Like the kernel, reports a loss before the queued datagrams.
        let received = match std::mem::take(&mut queued.overrun) {
            true => Err(io::Error::from_raw_os_error(libc::ENOBUFS)),
            false => match queued.datagrams.pop_front() {
                None => Err(io::ErrorKind::WouldBlock.into()),
                Some(datagram) => {
                    queued.bytes = queued.bytes.saturating_sub(datagram.len() + OVERHEAD);
                    let fits = datagram.len().min(buffer.len());
                    buffer[..fits].copy_from_slice(&datagram[..fits]);
                    Ok(Received {
                        length: datagram.len(),
                        sender: 0,
                    })
                }
            },
        };
        if queued.datagrams.is_empty() && queued.is_signalled {
            queued.is_signalled = false;
            // The signal is a single byte.
            let _ = (&self.readable).read(&mut [0]);
        }
        received
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }

    fn port(&self) -> u32 {
        self.queue.port
    }

    fn namespace_cookie(&self) -> Option<u64> {
        Some(self.shared.namespace)
    }

    fn set_membership(&self, group: u32, joined: bool) -> io::Result<()> {
        if group == NFNLGRP_NFTABLES {
            lock(&self.queue.inner).listens = joined;
        }
        Ok(())
    }

    fn set_receive_buffer(&self, bytes: usize) {
        // The kernel doubles the requested size.
        lock(&self.queue.inner).limit = bytes.saturating_mul(2);
    }

    fn receive_buffer(&self) -> usize {
        lock(&self.queue.inner).limit
    }

    fn sibling(&self) -> Option<Box<dyn Transport>> {
        Some(Box::new(self.shared.connect().ok()?))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.shared.close(self.queue.port);
    }
}
