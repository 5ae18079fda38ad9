//! The crate's common [`Error`], which each module's own error converts into.

/// Any error of this crate. Each module has its own, which names the failed operation; this one lets
/// `?` convert them all.
#[derive(Debug, thiserror::Error)]
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
    /// A plan would change an object that lacks the owner's tag: it belongs to somebody else.
    #[error(transparent)]
    NotOwned(#[from] crate::nft::NotOwned),
    /// A comment could not be attached to an object.
    #[error(transparent)]
    Comment(#[from] crate::nft::userdata::CommentError),
    /// An error of a crate that builds on this one.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
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
