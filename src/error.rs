//! The crate's common [`Error`], into which each module's own error converts; common parts of all errors: their
//! `Debug`, and the predicates for callers.

use std::fmt::Write as _;

use crate::errno::Errno;

/// The kind of an error, for callers that branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An object that the call names does not exist, or another object to which that one refers.
    NotFound,
    /// An object of that name already exists.
    AlreadyExists,
    /// The object is still in use.
    InUse,
    /// The caller lacks a permission, or the object belongs to another program.
    PermissionDenied,
    /// Another process interfered, or replies were lost. The same call may succeed when it is repeated.
    Retryable,
    /// The kernel, or this build of the program, lacks what the call requires.
    Unsupported,
    /// A value, a name, a rule or a text is invalid, or invalid in this place.
    Invalid,
    /// Any other failure.
    Other,
}

/// The values that an error's predicates return.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Class {
    pub kind: ErrorKind,
    pub errno: Option<Errno>,
}

impl Class {
    /// Returns the class of an operation that the kernel refused: the place or the values do not support it, hardly
    /// ever the kernel.
    #[must_use]
    pub fn of_operation(errno: Errno) -> Self {
        let class = Self::from(errno);
        match class.kind {
            ErrorKind::Unsupported => Self {
                kind: ErrorKind::Invalid,
                ..class
            },
            _ => class,
        }
    }
}

impl From<ErrorKind> for Class {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, errno: None }
    }
}

impl From<Errno> for Class {
    fn from(errno: Errno) -> Self {
        let kind = match errno.number() {
            libc::ENOENT | libc::ENODEV | libc::ESRCH => ErrorKind::NotFound,
            libc::EEXIST => ErrorKind::AlreadyExists,
            libc::EBUSY => ErrorKind::InUse,
            libc::EPERM | libc::EACCES => ErrorKind::PermissionDenied,
            libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::ENOPROTOOPT => {
                ErrorKind::Unsupported
            }
            libc::EINVAL | libc::ERANGE | libc::ELOOP | libc::EMLINK | libc::ENAMETOOLONG => {
                ErrorKind::Invalid
            }
            _ => ErrorKind::Other,
        };
        Self {
            kind,
            errno: Some(errno),
        }
    }
}

impl From<&std::io::Error> for Class {
    fn from(error: &std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Errno::new(number).into(),
            None => ErrorKind::Other.into(),
        }
    }
}

/// Returns an error's message and its causes. Omits causes that the text already contains.
#[doc(hidden)]
#[must_use]
pub fn message_with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            let _ = write!(text, ": {more}");
        }
        cause = error.source();
    }
    text
}

/// Implements `Debug` of error types as the message and its causes, because `main`, `unwrap` and failed tests print
/// errors by their `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_message {
    ($($Error:ty),+ $(,)?) => {$(
        impl ::std::fmt::Debug for $Error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&$crate::internal::message_with_causes(self))
            }
        }
    )+};
}

/// Implements `From` for causes that an error's own message contains, and that `source` therefore does not return.
#[doc(hidden)]
#[macro_export]
macro_rules! cause_from {
    ($Error:ident { $($Cause:ty => $Variant:ident),+ $(,)? }) => {$(
        impl From<$Cause> for $Error {
            fn from(cause: $Cause) -> Self {
                Self::$Variant(cause)
            }
        }
    )+};
}

/// Gives an error type its predicates, from its [`Class`].
#[doc(hidden)]
#[macro_export]
macro_rules! classified {
    ($Error:ty, |$error:pat_param| $class:expr) => {
        impl $Error {
            #[doc(hidden)]
            #[must_use]
            pub fn class(&self) -> $crate::internal::Class {
                let $error = self;
                $class
            }

            /// Returns the kind of the error.
            #[must_use]
            pub fn kind(&self) -> $crate::ErrorKind {
                self.class().kind
            }

            /// Returns the kernel's error number that caused the error, if any.
            #[must_use]
            pub fn errno(&self) -> ::std::option::Option<$crate::Errno> {
                self.class().errno
            }

            /// Returns `true` if the error is that something does not exist: an object that the call names, or another
            /// object to which that one refers.
            #[must_use]
            pub fn is_not_found(&self) -> bool {
                self.kind() == $crate::ErrorKind::NotFound
            }

            /// Returns `true` if the same call may succeed when it is repeated: another process interfered, or replies
            /// were lost.
            #[must_use]
            pub fn is_retryable(&self) -> bool {
                self.kind() == $crate::ErrorKind::Retryable
            }
        }
    };
}

/// Any error of this crate. Each module has its own, which names the failed operation; this one lets
/// `?` convert them all.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of a netlink socket or request.
    #[error(transparent)]
    Netlink(#[from] crate::netlink::Error),
    /// A transaction was not applied, or the outcome is unknown.
    #[error(transparent)]
    Commit(Box<crate::nft::CommitError>),
    /// A value does not fit its attribute.
    #[error(transparent)]
    MessageError(#[from] crate::netlink::MessageError),
    /// A snapshot lacks elements because it was read without them.
    #[error(transparent)]
    MissingElements(#[from] crate::nft::MissingElements),
    /// A plan would change an object that lacks the owner's tag: it belongs to another program.
    #[error(transparent)]
    NotOwned(#[from] crate::nft::NotOwned),
    /// A comment could not be attached to an object.
    #[error(transparent)]
    Comment(#[from] crate::nft::userdata::CommentError),
    /// An error of a crate that builds on this one.
    #[error(transparent)]
    Other(OtherError),
    /// A snapshot could not be read consistently.
    #[error(transparent)]
    Snapshot(#[from] crate::nft::SnapshotError),
    /// A snapshot could not be written to a file, or read from one.
    #[cfg(feature = "backup")]
    #[error(transparent)]
    File(#[from] crate::nft::FileError),
    /// A rule could not be built.
    #[error(transparent)]
    Build(#[from] crate::nft::build::BuildError),
    /// An iptables rule could not be expressed in nf_tables.
    #[cfg(feature = "iptables")]
    #[error(transparent)]
    Unwritable(#[from] crate::iptables::nft::Unwritable),
    /// An error of iptables' tables.
    #[cfg(feature = "iptables")]
    #[error(transparent)]
    Iptables(Box<crate::iptables::Error>),
    /// A set that a rule names could not be looked up.
    #[cfg(feature = "iptables")]
    #[error(transparent)]
    Set(#[from] crate::iptables::SetError),
    /// An error of the connection that looks up sets.
    #[cfg(feature = "iptables")]
    #[error(transparent)]
    Ipset(#[from] crate::ipset::Error),
    /// An error of the legacy tables.
    #[cfg(feature = "iptables")]
    #[error(transparent)]
    Legacy(#[from] crate::legacy::Error),
    /// An error of a network namespace.
    #[error(transparent)]
    Netns(#[from] crate::netns::Error),
}

debug_as_message!(Error);

classified!(Error, |error| match error {
    Self::Netlink(error) => error.class(),
    Self::Commit(error) => error.class(),
    Self::Snapshot(error) => error.class(),
    #[cfg(feature = "iptables")]
    Self::Iptables(error) => error.class(),
    #[cfg(feature = "iptables")]
    Self::Set(error) => error.class(),
    #[cfg(feature = "iptables")]
    Self::Ipset(error) => error.class(),
    #[cfg(feature = "iptables")]
    Self::Legacy(error) => error.class(),
    Self::Netns(error) => error.class(),
    #[cfg(feature = "backup")]
    Self::File(error) => error.class(),
    Self::NotOwned(_) => ErrorKind::PermissionDenied.into(),
    Self::MessageError(_) | Self::MissingElements(_) | Self::Comment(_) | Self::Build(_) =>
        ErrorKind::Invalid.into(),
    #[cfg(feature = "iptables")]
    Self::Unwritable(_) => ErrorKind::Invalid.into(),
    Self::Other(error) => error.class,
});

/// An error of a crate that builds on this one, with its kind and error number.
pub struct OtherError {
    error: Box<dyn std::error::Error + Send + Sync>,
    class: Class,
}

impl Error {
    /// Wraps an error of a crate that builds on this one.
    #[doc(hidden)]
    pub fn other(
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        class: impl Into<Class>,
    ) -> Self {
        Self::Other(OtherError {
            error: error.into(),
            class: class.into(),
        })
    }
}

impl OtherError {
    /// Returns the wrapped error.
    #[must_use]
    pub fn get_ref(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.error
    }
}

impl std::fmt::Display for OtherError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for OtherError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

debug_as_message!(OtherError);

impl From<crate::nft::WriteError> for Error {
    fn from(error: crate::nft::WriteError) -> Self {
        match error {
            crate::nft::WriteError::MissingElements(error) => Self::MissingElements(error),
            crate::nft::WriteError::NotOwned(error) => Self::NotOwned(error),
            crate::nft::WriteError::MessageError(error) => Self::MessageError(error),
        }
    }
}

impl From<crate::nft::CommitError> for Error {
    fn from(error: crate::nft::CommitError) -> Self {
        Self::Commit(Box::new(error))
    }
}

#[cfg(feature = "iptables")]
impl From<crate::iptables::Error> for Error {
    fn from(error: crate::iptables::Error) -> Self {
        Self::Iptables(Box::new(error))
    }
}

impl From<crate::netlink::Malformed> for Error {
    fn from(error: crate::netlink::Malformed) -> Self {
        Self::Netlink(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink;
    use std::io;

    #[derive(thiserror::Error)]
    #[error("cannot dig: {0}")]
    struct InMessage(#[source] io::Error);
    debug_as_message!(InMessage);

    #[derive(thiserror::Error)]
    #[error("cannot build")]
    struct AsSource(#[source] InMessage);
    debug_as_message!(AsSource);

    #[test]
    fn debug_has_each_cause_once() {
        let cause = || InMessage(io::Error::other("no spade"));
        assert_eq!(format!("{:?}", cause()), "cannot dig: no spade");
        let error = AsSource(cause());
        assert_eq!(format!("{error:?}"), "cannot build: cannot dig: no spade");
        let error = Error::other(error, ErrorKind::Other);
        assert_eq!(error.to_string(), "cannot build");
        assert_eq!(format!("{error:?}"), "cannot build: cannot dig: no spade");
    }

    #[test]
    fn predicates_follow_the_cause() {
        let refused = |number| {
            Error::from(crate::netlink::Error::Refused {
                request: "look up a chain",
                errno: Errno::new(number),
                text: None,
            })
        };
        assert_eq!(refused(libc::EPERM).kind(), ErrorKind::PermissionDenied);
        assert_eq!(refused(libc::EPERM).errno(), Some(Errno::new(libc::EPERM)));
        assert!(refused(libc::ENOENT).is_not_found() && !refused(libc::ENOENT).is_retryable());
        for number in [libc::EPERM, libc::ENOMEM, libc::EOPNOTSUPP] {
            assert!(!refused(number).is_retryable());
            assert_eq!(refused(number).errno(), Some(Errno::new(number)));
        }
        let errno = |number| Some(Errno::new(number));
        let receive = io::Error::from_raw_os_error(libc::EIO);
        for (error, is_retryable, errno) in [
            (netlink::Error::Interrupted, true, None),
            (
                netlink::Error::Lost(netlink::Loss::Dropped(Errno::new(libc::ENOBUFS))),
                true,
                errno(libc::ENOBUFS),
            ),
            (netlink::Error::Lost(netlink::Loss::Overrun), true, None),
            (
                netlink::Error::Receive { source: receive },
                false,
                errno(libc::EIO),
            ),
            (
                netlink::Error::Malformed(netlink::Malformed {
                    what: "a message",
                    offset: 0,
                    reason: "short",
                }),
                false,
                None,
            ),
        ] {
            let error = Error::from(error);
            assert_eq!(
                (error.is_retryable(), error.errno()),
                (is_retryable, errno),
                "{error}"
            );
        }
        let open = crate::netns::Error::Open {
            path: "/run/netns/x".into(),
            source: io::Error::from_raw_os_error(libc::ENOENT),
        };
        let text = "cannot open the network namespace /run/netns/x: No such file or directory (os error 2)";
        assert_eq!(format!("{open:?}"), text);
        assert!(Error::from(open).is_not_found());
    }
}
