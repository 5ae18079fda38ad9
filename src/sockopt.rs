//! `getsockopt` with an argument that the kernel reads and answers into: how x_tables and ipset are
//! asked. No crate has these options, so that the call is made here, once for all modules.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;

/// `getsockopt`: the kernel reads its argument from the buffer and writes its answer there. Returns
/// the answer's length.
///
/// # Errors
/// What the kernel says; `EINVAL` also for a buffer of 4 GiB or more.
pub(crate) fn get(
    socket: BorrowedFd<'_>,
    level: i32,
    option: i32,
    buffer: &mut [u8],
) -> Result<usize, Errno> {
    let Ok(mut length) = libc::socklen_t::try_from(buffer.len()) else {
        return Err(Errno::new(libc::EINVAL));
    };
    // SAFETY: `buffer` is borrowed exclusively for the call and `length` is its length, beyond
    // which getsockopt neither reads nor writes; any bytes are valid in a `[u8]`. The descriptor
    // is open as long as it is borrowed.
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
