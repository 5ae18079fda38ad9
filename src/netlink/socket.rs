//! The socket: a thin wrapper around neli's [`NlSocket`], and the only part of this module that does I/O.

use std::io::{self, IoSliceMut};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;

use chainwright_sys::netlink::NETLINK_CAP_ACK;
use neli::consts::socket::{Msg, NlFamily};
use neli::socket::NlSocket;
use neli::utils::Groups;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{MsgFlags, NetlinkAddr, getsockopt, recvmsg, setsockopt, sockopt};

use super::error::{Error, Loss};
use crate::errno::Errno;

/// Size in bytes of the buffer for replies.
///
/// The kernel sizes a dump's datagrams by the largest receive that it has seen on the socket, but
/// at most 32 KiB. A smaller buffer makes a long dump several times more
/// expensive, because the kernel traverses the list from its head for each datagram.
pub const RECEIVE_BUFFER: usize = 32 * 1024;

/// The `ioctl(2)` request for a descriptor of a socket's network namespace (`linux/sockios.h`, Linux 4.9).
const SIOCGSKNS: libc::Ioctl = 0x894c;

/// A netlink socket. It belongs to the network namespace in which it was opened, even if its
/// thread enters another one later.
pub struct Socket {
    endpoint: Endpoint,
    send_buffer: usize,
}

/// The transport that sends and receives the datagrams.
enum Endpoint {
    /// The kernel.
    Kernel(NlSocket),
    /// Another transport: a fake kernel, or recorded replies of a kernel.
    Transport(Box<dyn super::transport::Transport>),
}

/// A received datagram, possibly truncated to the buffer.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Its full length, in bytes.
    pub length: usize,
    /// The port of the sending socket; the kernel's is 0.
    pub sender: u32,
}

impl Endpoint {
    #[inline(always)]
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self {
            // Netlink sends a datagram whole or not at all.
            Self::Kernel(socket) => socket.send(datagram, Msg::empty()).map(|_| ()),
            Self::Transport(transport) => transport.send(datagram),
        }
    }

    /// Receives the next datagram into the buffer.
    #[inline(always)]
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        match self {
            // Neli's own receive function does not report the sender.
            Self::Kernel(socket) => {
                let mut iov = [IoSliceMut::new(buffer)];
                let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
                let received = recvmsg::<NetlinkAddr>(socket.as_raw_fd(), &mut iov, None, flags)?;
                Ok(Received {
                    length: received.bytes,
                    sender: received.address.map_or(u32::MAX, |sender| sender.pid()),
                })
            }
            Self::Transport(transport) => transport.receive(buffer),
        }
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            // SAFETY: the descriptor is the socket's own, open for as long as the socket is borrowed.
            Self::Kernel(socket) => unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) },
            Self::Transport(transport) => transport.descriptor(),
        }
    }
}

impl Socket {
    /// Opens a socket for `NETLINK_NETFILTER` in the calling thread's network namespace, with
    /// extended acknowledgements.
    ///
    /// # Errors
    /// [`Error::Open`] or [`Error::Option`].
    pub fn netfilter() -> Result<Self, Error> {
        let protocol = libc::NETLINK_NETFILTER;
        let inner = NlSocket::connect(NlFamily::Netfilter, None, Groups::empty())
            .map_err(|source| Error::Open { protocol, source })?;
        inner.enable_ext_ack(true).map_err(|source| Error::Option {
            option: "NETLINK_EXT_ACK",
            source,
        })?;
        let endpoint = Endpoint::Kernel(inner);
        let socket = Self {
            send_buffer: getsockopt(&endpoint, sockopt::SndBuf).unwrap_or(0),
            endpoint,
        };
        socket.cap_acknowledgements()?;
        Ok(socket)
    }

    /// Opens a socket for `NETLINK_AUDIT` in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Open`]; `EPROTONOSUPPORT` where the kernel has no auditing.
    #[doc(hidden)]
    pub fn audit() -> Result<Self, Error> {
        let protocol = libc::NETLINK_AUDIT;
        let inner = NlSocket::connect(NlFamily::Audit, None, Groups::empty())
            .map_err(|source| Error::Open { protocol, source })?;
        let endpoint = Endpoint::Kernel(inner);
        Ok(Self {
            send_buffer: getsockopt(&endpoint, sockopt::SndBuf).unwrap_or(0),
            endpoint,
        })
    }

    /// Creates a socket with another transport than the kernel.
    #[doc(hidden)]
    pub fn with_transport(transport: Box<dyn super::transport::Transport>) -> Self {
        Self {
            endpoint: Endpoint::Transport(transport),
            send_buffer: usize::MAX,
        }
    }

    /// Opens another socket in this one's network namespace. `None` if that fails: if the
    /// calling thread is in another namespace now, it takes `CAP_SYS_ADMIN`.
    #[must_use]
    pub fn sibling(&self) -> Option<Self> {
        self.try_sibling().ok()
    }

    /// Like [`sibling`](Self::sibling), but returns the error.
    pub(crate) fn try_sibling(&self) -> Result<Self, Error> {
        let failed = |source| Error::Open {
            protocol: libc::NETLINK_NETFILTER,
            source,
        };
        if let Endpoint::Transport(transport) = &self.endpoint {
            let sibling = transport.sibling().map(Self::with_transport);
            return sibling.ok_or_else(|| failed(io::Error::from_raw_os_error(libc::EPERM)));
        }
        let is_here = |sibling: &Self| {
            let cookie = self.namespace_cookie();
            cookie.is_some() && sibling.namespace_cookie() == cookie
        };
        match Self::netfilter()? {
            sibling if is_here(&sibling) => Ok(sibling),
            _ => self.sibling_from_elsewhere().map_err(failed)?,
        }
    }

    /// Opens another socket in this one's network namespace, on a thread that enters it.
    fn sibling_from_elsewhere(&self) -> io::Result<Result<Self, Error>> {
        // SAFETY: the request takes no argument, and the descriptor is open for as long as `self`.
        let namespace = unsafe { libc::ioctl(self.as_fd().as_raw_fd(), SIOCGSKNS) };
        if namespace < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel opened this descriptor just now, for the caller alone.
        let namespace = unsafe { OwnedFd::from_raw_fd(namespace) };
        let open = move || {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            Ok(Self::netfilter())
        };
        let thread = std::thread::Builder::new().spawn(open)?;
        let panicked = |_| Err(io::Error::other("the thread panicked"));
        thread.join().unwrap_or_else(panicked)
    }

    /// Returns the socket's port, its number in its namespace (`nlmsg_pid`).
    ///
    /// # Errors
    /// [`Error::Receive`] when the kernel does not report it.
    pub fn port(&self) -> Result<u32, Error> {
        match &self.endpoint {
            Endpoint::Kernel(socket) => socket.pid().map_err(|source| Error::Receive { source }),
            Endpoint::Transport(transport) => Ok(transport.port()),
        }
    }

    /// Returns the number that identifies the socket's network namespace (`SO_NETNS_COOKIE`,
    /// Linux 5.14).
    pub(crate) fn namespace_cookie(&self) -> Option<u64> {
        if let Endpoint::Transport(transport) = &self.endpoint {
            return transport.namespace_cookie();
        }
        Self::cookie_of(self.endpoint.as_fd())
    }

    /// Returns the number of the calling thread's namespace. Uses a UNIX socket: closing a netlink socket
    /// shortly after a deletion of nf_tables objects blocks for an RCU grace period.
    #[doc(hidden)]
    pub fn namespace_cookie_here() -> Option<u64> {
        let socket = std::os::unix::net::UnixDatagram::unbound().ok()?;
        Self::cookie_of(socket.as_fd())
    }

    fn cookie_of(socket: BorrowedFd<'_>) -> Option<u64> {
        let mut cookie = 0u64;
        let mut length = size_of::<u64>() as libc::socklen_t;
        // SAFETY: the descriptor is open for as long as it is borrowed, and the pointers are those of a live
        // u64 and of its length, which the kernel writes no more than.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_NETNS_COOKIE,
                (&raw mut cookie).cast(),
                &raw mut length,
            )
        };
        (result == 0 && length as usize == size_of::<u64>()).then_some(cookie)
    }

    /// Requests error replies without the request's payload (`NETLINK_CAP_ACK`).
    fn cap_acknowledgements(&self) -> Result<(), Error> {
        let on: libc::c_int = 1;
        // SAFETY: the descriptor is open for as long as `self`, and the pointer and length are
        // those of a live c_int, which the kernel only reads.
        let result = unsafe {
            libc::setsockopt(
                self.endpoint.as_fd().as_raw_fd(),
                libc::SOL_NETLINK,
                NETLINK_CAP_ACK as libc::c_int,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(Error::Option {
                option: "NETLINK_CAP_ACK",
                source: io::Error::last_os_error(),
            })
        }
    }

    /// Makes the send buffer large enough for a datagram of `length` bytes: by force
    /// (`SO_SNDBUFFORCE`, needs `CAP_NET_ADMIN`), or as far as `net.core.wmem_max` allows.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the buffer cannot become large enough; [`Error::Option`] when the kernel does not
    /// report its size.
    pub fn reserve_send(&mut self, length: usize) -> Result<(), Error> {
        // The kernel accepts a datagram of up to sk_sndbuf - 32 bytes, and doubles the requested size;
        // requesting all of it leaves room for changes in that.
        let wanted = length.saturating_add(4096);
        if wanted <= self.send_buffer {
            return Ok(());
        }
        // Grow by halves, so that a growing series of batches does not set the option each time.
        let target = wanted.saturating_add(wanted / 2).min(i32::MAX as usize / 2);
        if setsockopt(&self.endpoint, sockopt::SndBufForce, &target).is_err() {
            // Without the privilege the kernel silently stops at net.core.wmem_max.
            let _ = setsockopt(&self.endpoint, sockopt::SndBuf, &target);
        }
        let size = getsockopt(&self.endpoint, sockopt::SndBuf);
        self.send_buffer = size.map_err(|errno| Error::Option {
            option: "SO_SNDBUF",
            source: errno.into(),
        })?;
        let limit = self.send_buffer.saturating_sub(32);
        if length <= limit {
            Ok(())
        } else {
            Err(Error::TooLarge { length, limit })
        }
    }

    /// Makes the receive buffer hold about `bytes` of queued replies, by force or as far as
    /// `net.core.rmem_max` allows. A buffer that is too small shows later as [`Error::Lost`].
    pub fn reserve_receive(&mut self, bytes: usize) {
        if self.receive_buffer() < bytes.min(i32::MAX as usize / 2) {
            self.set_receive_buffer(bytes);
        }
    }

    /// Sets the size of the receive buffer, as far as the kernel allows.
    pub fn set_receive_buffer(&mut self, bytes: usize) {
        if let Endpoint::Transport(transport) = &self.endpoint {
            return transport.set_receive_buffer(bytes);
        }
        let bytes = bytes.min(i32::MAX as usize / 2);
        if setsockopt(&self.endpoint, sockopt::RcvBufForce, &bytes).is_err() {
            let _ = setsockopt(&self.endpoint, sockopt::RcvBuf, &bytes);
        }
    }

    /// Joins a multicast group (`NFNLGRP_*`): the kernel's messages to it are queued from now on, as far
    /// as they fit the [receive buffer](Self::reserve_receive). The kernel loads the module that the
    /// group belongs to.
    ///
    /// # Errors
    /// [`Error::Option`]; `EPERM` without `CAP_NET_ADMIN`.
    pub fn join(&self, group: u32) -> Result<(), Error> {
        let joined = match &self.endpoint {
            Endpoint::Kernel(socket) => socket.add_mcast_membership(Groups::new_groups(&[group])),
            Endpoint::Transport(transport) => transport.set_membership(group, true),
        };
        joined.map_err(|source| Error::Option {
            option: "NETLINK_ADD_MEMBERSHIP",
            source,
        })
    }

    /// Leaves a multicast group. Messages that are already queued stay queued.
    ///
    /// # Errors
    /// [`Error::Option`].
    pub fn leave(&self, group: u32) -> Result<(), Error> {
        let left = match &self.endpoint {
            Endpoint::Kernel(socket) => socket.drop_mcast_membership(Groups::new_groups(&[group])),
            Endpoint::Transport(transport) => transport.set_membership(group, false),
        };
        left.map_err(|source| Error::Option {
            option: "NETLINK_DROP_MEMBERSHIP",
            source,
        })
    }

    /// Makes the kernel queue only datagrams that begin with a message of this type, from now on.
    ///
    /// # Errors
    /// [`Error::Option`].
    #[doc(hidden)]
    pub fn filter_message_type(&self, kind: u16) -> Result<(), Error> {
        // Offset of nlmsg_type, which is in host byte order; BPF loads are big-endian.
        const TYPE: u32 = 4;
        let instruction = |code: u32, if_equal, otherwise, operand| libc::sock_filter {
            code: code as u16,
            jt: if_equal,
            jf: otherwise,
            k: operand,
        };
        let kind = u16::from_be_bytes(kind.to_ne_bytes()).into();
        let mut program = [
            instruction(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, TYPE),
            instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, kind),
            instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
            instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        ];
        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        // SAFETY: the descriptor is open for as long as `self`; the pointer and length are those of a live sock_fprog,
        // and its own those of a live array. The kernel only reads both.
        let result = unsafe {
            libc::setsockopt(
                self.endpoint.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(Error::Option {
                option: "SO_ATTACH_FILTER",
                source: io::Error::last_os_error(),
            })
        }
    }

    /// Returns the size of the receive buffer, as the kernel counts it: each datagram with the memory that
    /// it occupies, up to several times its length. 0 if the kernel does not report it.
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        if let Endpoint::Transport(transport) = &self.endpoint {
            return transport.receive_buffer();
        }
        getsockopt(&self.endpoint, sockopt::RcvBuf).unwrap_or(0)
    }

    /// Waits until there is something to receive: a datagram, or an error. Returns `false` if there is nothing by
    /// the deadline; without a deadline it waits indefinitely.
    ///
    /// # Errors
    /// [`Error::Receive`].
    pub fn wait(&self, deadline: Option<Instant>) -> Result<bool, Error> {
        loop {
            let timeout = match deadline {
                None => PollTimeout::NONE,
                Some(deadline) => {
                    let rest = deadline.saturating_duration_since(Instant::now());
                    // Rounded up, so that a wait of less than a millisecond does not become a busy loop.
                    let rest = rest.as_nanos().div_ceil(1_000_000);
                    PollTimeout::try_from(rest).unwrap_or(PollTimeout::MAX)
                }
            };
            let mut polled = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, timeout) {
                Ok(0) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    return Ok(false);
                }
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => {
                    return Err(Error::Receive {
                        source: errno.into(),
                    });
                }
            }
        }
    }

    /// Sends one datagram. The kernel processes a request before this returns.
    ///
    /// # Errors
    /// [`Error::Send`]; the request was not processed then.
    #[inline]
    pub fn send(&self, datagram: &[u8]) -> Result<(), Error> {
        loop {
            match self.endpoint.send(datagram) {
                Ok(()) => return Ok(()),
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Send {
                        length: datagram.len(),
                        source,
                    });
                }
            }
        }
    }

    /// Returns `true` if the peer is the kernel.
    pub(crate) const fn is_kernel(&self) -> bool {
        matches!(self.endpoint, Endpoint::Kernel(_))
    }

    /// Receives one datagram of a reply and returns its length.
    ///
    /// This never waits: the kernel queues a reply, or the next part of one, before the caller requests
    /// for it. If nothing is queued, it is lost ([`Loss::MissingReply`]).
    ///
    /// # Errors
    /// The errors of [`try_receive`](Self::try_receive), and [`Error::Lost`] when nothing is queued.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        match self.try_receive(buffer)? {
            Some(length) => Ok(length),
            None => Err(Error::Lost(Loss::MissingReply)),
        }
    }

    /// Receives one datagram if one is queued; otherwise returns `None`.
    ///
    /// Skips datagrams that are not from the kernel: a process with `CAP_NET_ADMIN` can send to any socket of the
    /// namespace, and to groups.
    ///
    /// # Errors
    /// [`Error::Receive`], [`Error::Lost`] when the kernel dropped replies, [`Error::Truncated`]
    /// when the datagram did not fit.
    #[inline]
    pub fn try_receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        loop {
            match self.endpoint.receive(buffer) {
                Ok(Received { sender: 1.., .. }) => {}
                Ok(Received { length, .. }) if length <= buffer.len() => return Ok(Some(length)),
                Ok(Received { length, .. }) => {
                    return Err(Error::Truncated {
                        length,
                        capacity: buffer.len(),
                    });
                }
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) if source.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(source) => return Err(receive_error(source)),
            }
        }
    }
}

#[cold]
fn receive_error(source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(number @ (libc::ENOBUFS | libc::ENOMEM)) => {
            Error::Lost(Loss::Dropped(Errno::new(number)))
        }
        _ => Error::Receive { source },
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.endpoint.as_fd()
    }
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket")
            .field("fd", &self.endpoint.as_fd().as_raw_fd())
            .field("send_buffer", &self.send_buffer)
            .finish()
    }
}
