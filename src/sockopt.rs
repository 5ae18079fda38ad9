//! `getsockopt` with an argument that the kernel reads and overwrites with its answer, as x_tables and
//! ipset use it. No crate offers these options, so this module makes the call for all others.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;

/// Netfilter's options of `SOL_IP` and `SOL_IPV6` (`nf_register_sockopt`): x_tables' begin at 64, ipset's is 83,
/// arp_tables' end at 99. An argument of other options may contain an address that the kernel writes to.
const NETFILTER: std::ops::RangeInclusive<i32> = 64..=99;

/// Calls `getsockopt` with a netfilter option: the kernel reads its argument from the buffer and writes its answer
/// there. Returns the answer's length.
///
/// # Errors
/// The kernel's error; `EINVAL` also for a buffer of 4 GiB or more, and for an option that is not netfilter's.
pub(crate) fn get(
    socket: BorrowedFd<'_>,
    level: i32,
    option: i32,
    buffer: &mut [u8],
) -> Result<usize, Errno> {
    if !matches!(level, libc::SOL_IP | libc::SOL_IPV6) || !NETFILTER.contains(&option) {
        return Err(Errno::new(libc::EINVAL));
    }
    let Ok(mut length) = libc::socklen_t::try_from(buffer.len()) else {
        return Err(Errno::new(libc::EINVAL));
    };
    // SAFETY: `buffer` is borrowed exclusively for the call and `length` is its length, beyond
    // which getsockopt neither reads nor writes; any bytes are valid in a `[u8]`. None of these options
    // has an address in its argument. The descriptor is open as long as it is borrowed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(Errno::new(nix::errno::Errno::last_raw()));
    }
    Ok(usize::try_from(length)
        .unwrap_or(usize::MAX)
        .min(buffer.len()))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    /// Only netfilter's options reach the kernel: arguments of others may contain addresses.
    #[test]
    fn rejects_other_options() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (level, option) in [
            (libc::IPPROTO_TCP, libc::TCP_ZEROCOPY_RECEIVE),
            (libc::SOL_SOCKET, libc::SO_RCVBUF),
            (libc::SOL_IP, libc::IP_TTL),
            (libc::SOL_IP, 63),
            (libc::SOL_IP, 100),
            (libc::SOL_IPV6, libc::IPV6_V6ONLY),
        ] {
            let refused = get(socket.as_fd(), level, option, &mut [0; 64]);
            assert_eq!(refused.map_err(Errno::number), Err(libc::EINVAL));
        }
    }
}
