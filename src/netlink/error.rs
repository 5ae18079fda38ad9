//! What can go wrong on a netlink socket.

use std::io;

use crate::error::Errno;

/// Bytes that are not what they claim to be. They are reported, never guessed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} at byte {offset}: {reason}")]
pub struct Malformed {
    /// What was being read, for instance `netlink message` or `chain`.
    pub what: &'static str,
    /// Where in the bytes at hand reading stopped.
    pub offset: usize,
    /// Why reading stopped.
    pub reason: &'static str,
}

/// An error of a netlink socket or of one request over it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A socket could not be opened.
    #[error("cannot open a netlink socket (protocol {protocol})")]
    Open {
        /// `NETLINK_*` protocol number.
        protocol: i32,
        /// What the kernel said.
        source: io::Error,
    },
    /// A socket option could not be set.
    #[error("cannot set {option} on a netlink socket")]
    Option {
        /// Name of the option, for instance `NETLINK_EXT_ACK`.
        option: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel did not take the message; nothing of it was carried out.
    #[error("cannot send {length} bytes over netlink")]
    Send {
        /// Length of the datagram in bytes.
        length: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// The message is larger than the socket's send buffer may become for this user.
    ///
    /// Nothing of it was carried out. With `CAP_NET_ADMIN` the buffer is forced to any size;
    /// without, `net.core.wmem_max` limits it.
    #[error(
        "the message is {length} bytes long, but the socket's send buffer holds only {limit} \
         (raise net.core.wmem_max, or run with CAP_NET_ADMIN)"
    )]
    TooLarge {
        /// Length of the datagram in bytes.
        length: usize,
        /// Size of the send buffer that could be had, in bytes.
        limit: usize,
    },
    /// An attribute was too long to be put into a request; nothing was sent.
    #[error(transparent)]
    TooLong(#[from] super::TooLong),
    /// Receiving failed.
    #[error("cannot receive from netlink")]
    Receive {
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel dropped replies because the receive buffer was full (`ENOBUFS`).
    #[error("the kernel dropped replies: the socket's receive buffer was full (ENOBUFS)")]
    Lost,
    /// A reply was longer than the buffer it was received into.
    #[error("a reply of {length} bytes was cut to {capacity}")]
    Truncated {
        /// Length of the whole reply in bytes.
        length: usize,
        /// How much of it fitted.
        capacity: usize,
    },
    /// A reply could not be understood.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The kernel refused the request.
    #[error("the kernel refused to {request}: {errno}{}", text.as_deref().map(|t| format!(": {t}")).unwrap_or_default())]
    Refused {
        /// What was asked.
        request: &'static str,
        /// The kernel's error number.
        errno: Errno,
        /// The kernel's own text (extended acknowledgement), if it gave one.
        text: Option<String>,
    },
    /// The listing was interrupted by a change (`NLM_F_DUMP_INTR`): what was read is not one
    /// generation. Discard it and list again.
    #[error("the listing was interrupted by a change: what was read is not of one generation")]
    Interrupted,
}

impl Error {
    /// The errno behind this error, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Open { source, .. }
            | Self::Option { source, .. }
            | Self::Send { source, .. }
            | Self::Receive { source } => Some(Errno::of(source)),
            Self::Refused { errno, .. } => Some(*errno),
            Self::Lost => Some(Errno::new(libc::ENOBUFS)),
            Self::TooLarge { .. } => Some(Errno::new(libc::EMSGSIZE)),
            Self::Truncated { .. } | Self::Malformed(_) | Self::Interrupted | Self::TooLong(_) => {
                None
            }
        }
    }
}
