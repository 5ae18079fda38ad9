//! The socket. This file contains the module's only unsafe calls.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use chainwright_sys::x_tables::xt_counters;
use nix::sys::socket::{AddressFamily, SockFlag, SockType};

use super::Family;
use super::family::Layout;
use crate::errno::Errno;
use crate::sockopt;

/// A socket of a family, through which the kernel reads and writes its tables. It belongs to the network
/// namespace in which it was opened, even if the thread enters another one later.
///
/// It is a datagram socket, not a raw one: the tables' options work on every socket of the family and check the
/// caller's permissions themselves (`linux/netfilter_ipv4/ip_tables.h`). So `CAP_NET_ADMIN` is enough; a raw
/// socket would also need `CAP_NET_RAW`, which containers often lack.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    layout: &'static Layout,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
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

    /// Calls `getsockopt` on the family's level: the kernel reads the argument from the buffer and writes the
    /// reply into it.
    ///
    /// # Errors
    /// The kernel's error: `EPERM`, `ENOPROTOOPT` (no such tables), `ENOENT` (no such table), `EAGAIN` (the table
    /// has another size by now), `EINVAL` (wrong size of the buffer), …
    pub(super) fn get(&self, option: i32, buffer: &mut [u8]) -> Result<(), Errno> {
        sockopt::get(self.fd.as_fd(), self.layout.level, option, buffer)?;
        Ok(())
    }

    /// Sends `SET_ADD_COUNTERS`.
    ///
    /// # Errors
    /// The kernel's error: `EPERM`, `EINVAL` (the table has another number of entries), …
    pub(super) fn add_counters(&self, argument: &[u8]) -> Result<(), Errno> {
        // SAFETY: the argument of this option holds no address (`struct xt_counters_info`).
        unsafe { self.setsockopt(self.layout.set_add_counters, argument) }
    }

    /// Sends `SET_REPLACE`. Puts the number and the address of `counters` into the argument, whose header must
    /// otherwise be complete. The kernel fills `counters` with the counters of the old table, which must have as
    /// many entries.
    ///
    /// # Errors
    /// The kernel's error: `EPERM`, `EAGAIN` (the old table has another number of entries), `ENOENT` (no such
    /// table, match or target), `EINVAL`, `ELOOP`, `ENOMEM`, …
    pub(super) fn replace(
        &self,
        argument: &mut [u8],
        counters: &mut [xt_counters],
    ) -> Result<(), Errno> {
        let layout = &self.layout.replace;
        let refused = Errno::new(libc::EINVAL);
        let number = u32::try_from(counters.len()).map_err(|_| refused)?;
        let head = argument.get_mut(..layout.size).ok_or(refused)?;
        head[layout.num_counters..][..size_of::<u32>()].copy_from_slice(&number.to_ne_bytes());
        let address = counters.as_mut_ptr().expose_provenance();
        head[layout.counters..][..size_of::<usize>()].copy_from_slice(&address.to_ne_bytes());
        // SAFETY: during the call the kernel writes at most `number` counters to `address`. `counters` has that
        // length and is borrowed exclusively until after the call. Any bytes are a valid `xt_counters`.
        let result = unsafe { self.setsockopt(self.layout.set_replace, argument) };
        // The address must not outlive the borrow.
        argument[layout.counters..][..size_of::<usize>()].fill(0);
        result
    }

    /// Calls `setsockopt` on the family's level.
    ///
    /// # Safety
    /// If the option makes the kernel write to an address in the argument, the memory there must be valid for
    /// writes during the call.
    unsafe fn setsockopt(&self, option: i32, argument: &[u8]) -> Result<(), Errno> {
        let Ok(length) = libc::socklen_t::try_from(argument.len()) else {
            return Err(Errno::new(libc::EINVAL));
        };
        // SAFETY: `argument` is borrowed for the call and `length` is its length, beyond which setsockopt does
        // not read. The caller guarantees validity of the memory behind any address in it. The descriptor is
        // open, since `self.fd` owns it.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                self.layout.level,
                option,
                argument.as_ptr().cast(),
                length,
            )
        };
        if result < 0 {
            return Err(Errno::new(nix::errno::Errno::last_raw()));
        }
        Ok(())
    }
}
