//! The socket.

use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType};

use super::Family;
use super::family::Layout;
use crate::error::Errno;
use crate::sockopt;

/// A socket of a family, through which its tables are read. It belongs to the network namespace in
/// which it was opened, whatever its thread enters later.
///
/// It is a datagram socket, not a raw one: the tables' options work on every socket of the family
/// and check the caller's rights themselves (`linux/netfilter_ipv4/ip_tables.h`), so that this takes
/// `CAP_NET_ADMIN` only, where a raw socket would take `CAP_NET_RAW` too, which containers often lack.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    layout: &'static Layout,
}

impl Socket {
    /// Opens one in the calling thread's network namespace.
    pub(super) fn open(family: Family) -> Result<Self, Errno> {
        let domain = match family {
            Family::Ipv4 | Family::Arp => AddressFamily::Inet,
            Family::Ipv6 => AddressFamily::Inet6,
        };
        let fd = nix::sys::socket::socket(domain, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|errno| Errno::new(errno as i32))?;
        Ok(Self {
            fd,
            layout: family.layout(),
        })
    }

    /// `getsockopt` on the family's level: the kernel reads its argument from the buffer and writes
    /// its answer there.
    ///
    /// # Errors
    /// What the kernel says: `EPERM`, `ENOPROTOOPT` (no such tables), `ENOENT` (no such table),
    /// `EAGAIN` (the table has another size by now), `EINVAL` (wrong size of the buffer), …
    pub(super) fn get(&self, option: i32, buffer: &mut [u8]) -> Result<(), Errno> {
        sockopt::get(self.fd.as_fd(), self.layout.level, option, buffer)?;
        Ok(())
    }
}
