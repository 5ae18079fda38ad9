//! Errors of a netlink socket.

use std::io;

use crate::errno::Errno;
use crate::error::{Class, ErrorKind};

/// Bytes that do not have the expected format.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} at byte {offset}: {reason}")]
pub struct Malformed {
    /// The structure being read, for instance `netlink message` or `chain`.
    pub what: &'static str,
    /// The offset at which reading stopped.
    pub offset: usize,
    /// The reason why reading stopped.
    pub reason: &'static str,
}

crate::debug_as_message!(Malformed);

/// The evidence that replies were lost.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// The kernel reports that it dropped replies: the receive buffer was full, or there was no memory (`ENOBUFS`,
    /// `ENOMEM`).
    #[error("receive buffer full, or the kernel is out of memory: {0}")]
    Dropped(Errno),
    /// The kernel reports it in a message (`NLMSG_OVERRUN`).
    #[error("the kernel dropped data (NLMSG_OVERRUN)")]
    Overrun,
    /// No reply is queued, although the reply is incomplete.
    ///
    /// The kernel replies to a request within `sendmsg`, and generates the next part of a dump within the
    /// `recvmsg` that receives the previous part. So a reply that is not queued at the next `recvmsg` will never
    /// arrive, and waiting for it would be useless.
    #[error("incomplete reply: no more data is queued")]
    MissingReply,
}

crate::debug_as_message!(Loss);

/// An error of a netlink socket or of one request over it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A socket could not be opened.
    #[error("cannot open a netlink socket (protocol {protocol}): {source}")]
    Open {
        /// `NETLINK_*` protocol number.
        protocol: i32,
        /// The kernel's error.
        r#source: io::Error,
    },
    /// The module `nf_tables` is not loaded, and reading does not load it: there are no tables, in any network
    /// namespace.
    #[error("nf_tables is not loaded, so it is empty (a change loads it, a read does not)")]
    NotLoaded,
    /// A socket option could not be set.
    #[error("cannot set {option} on a netlink socket: {source}")]
    Option {
        /// Name of the option, for instance `NETLINK_EXT_ACK`.
        option: &'static str,
        /// The kernel's error.
        r#source: io::Error,
    },
    /// The kernel did not accept the message; none of it was applied.
    #[error("cannot send {length} bytes over netlink: {source}")]
    Send {
        /// Length of the datagram in bytes.
        length: usize,
        /// The kernel's error.
        r#source: io::Error,
    },
    /// The message is larger than the socket's send buffer may become for this user.
    ///
    /// None of it was applied. With `CAP_NET_ADMIN` the buffer can be forced to any size;
    /// without, `net.core.wmem_max` limits it.
    #[error(
        "the message is {length} bytes long, but the socket's send buffer holds only {limit} \
         (raise net.core.wmem_max, or run with CAP_NET_ADMIN)"
    )]
    TooLarge {
        /// Length of the datagram in bytes.
        length: usize,
        /// The largest possible size of the send buffer, in bytes.
        limit: usize,
    },
    /// A value does not fit its attribute in a request; nothing was sent.
    #[error(transparent)]
    MessageError(#[from] super::MessageError),
    /// Receiving failed.
    #[error("cannot receive from netlink: {source}")]
    Receive {
        /// The kernel's error.
        r#source: io::Error,
    },
    /// Replies of the kernel were lost. The result is unknown; repeat the request.
    #[error("lost a reply of the kernel: {0}")]
    Lost(Loss),
    /// A reply was longer than the receive buffer.
    #[error("a reply of {length} bytes was truncated to {capacity}")]
    Truncated {
        /// Length of the whole reply in bytes.
        length: usize,
        /// The length that fitted.
        capacity: usize,
    },
    /// A reply could not be parsed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The kernel refused the request.
    #[error(
        "the kernel refused to {request}: {errno}{}{}",
        text.as_deref().map(|t| format!(": {t}")).unwrap_or_default(),
        match errno.number() {
            libc::EPERM => " (this requires CAP_NET_ADMIN in the network namespace's user namespace)",
            _ => "",
        }
    )]
    Refused {
        /// The request.
        request: &'static str,
        /// The kernel's error number.
        errno: Errno,
        /// The kernel's own text (extended acknowledgement), if any.
        text: Option<String>,
    },
    /// The kernel refused the request because it lacks a feature that the request needs.
    #[error("the kernel refused to {request}: this kernel lacks {what}, available since Linux {}.{}", since.0, since.1)]
    Lacks {
        /// The request.
        request: &'static str,
        /// The missing feature, in words.
        what: &'static str,
        /// The first Linux version that has it: its first two numbers.
        since: (u32, u32),
        /// The kernel's error number.
        errno: Errno,
    },
    /// The listing was interrupted by a change (`NLM_F_DUMP_INTR`): what was read is not one
    /// generation. Discard it and list again.
    #[error("the dump was interrupted by a change: the data is not from one generation")]
    Interrupted,
}

crate::debug_as_message!(Error);

crate::classified!(Error, |error| match error {
    Self::Open { source, .. }
    | Self::Option { source, .. }
    | Self::Send { source, .. }
    | Self::Receive { source } => source.into(),
    Self::NotLoaded => ErrorKind::NotFound.into(),
    Self::TooLarge { .. } => Class {
        kind: ErrorKind::Invalid,
        errno: Some(Errno::new(libc::EMSGSIZE)),
    },
    Self::MessageError(_) => ErrorKind::Invalid.into(),
    Self::Lost(Loss::Dropped(errno)) => Class {
        kind: ErrorKind::Retryable,
        errno: Some(*errno),
    },
    Self::Lost(_) | Self::Interrupted => ErrorKind::Retryable.into(),
    Self::Truncated { .. } | Self::Malformed(_) => ErrorKind::Other.into(),
    Self::Refused { errno, .. } => (*errno).into(),
    Self::Lacks { errno, .. } => Class {
        kind: ErrorKind::Unsupported,
        errno: Some(*errno),
    },
});

impl Error {
    /// Adds the request's name to an error that knows only the attribute.
    pub(crate) fn of_request(mut self, request: &str) -> Self {
        if let Self::MessageError(error) = &mut self {
            error.operation.get_or_insert_with(|| request.to_owned());
        }
        self
    }

    /// Returns a copy of the error, for later calls after a failure.
    pub(crate) fn repeated(&self) -> Self {
        let copy = |source: &io::Error| match source.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(source.kind(), source.to_string()),
        };
        match self {
            Self::Open { protocol, source } => Self::Open {
                protocol: *protocol,
                source: copy(source),
            },
            Self::NotLoaded => Self::NotLoaded,
            Self::Option { option, source } => Self::Option {
                option,
                source: copy(source),
            },
            Self::Send { length, source } => Self::Send {
                length: *length,
                source: copy(source),
            },
            Self::TooLarge { length, limit } => Self::TooLarge {
                length: *length,
                limit: *limit,
            },
            Self::MessageError(error) => Self::MessageError(error.clone()),
            Self::Receive { source } => Self::Receive {
                source: copy(source),
            },
            Self::Lost(loss) => Self::Lost(*loss),
            Self::Truncated { length, capacity } => Self::Truncated {
                length: *length,
                capacity: *capacity,
            },
            Self::Malformed(malformed) => Self::Malformed(*malformed),
            Self::Refused {
                request,
                errno,
                text,
            } => Self::Refused {
                request,
                errno: *errno,
                text: text.clone(),
            },
            Self::Lacks {
                request,
                what,
                since,
                errno,
            } => Self::Lacks {
                request,
                what,
                since: *since,
                errno: *errno,
            },
            Self::Interrupted => Self::Interrupted,
        }
    }
}
