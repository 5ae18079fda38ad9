//! The crate's one [`Error`], which each module's own turns into.

/// Any error of this crate. Each module has its own, and says what was being done; this one lets
/// `?` take them all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Of a netlink socket or request.
    #[error(transparent)]
    Netlink(#[from] crate::netlink::Error),
    /// A transaction was not applied, or it cannot be known whether it was.
    #[error(transparent)]
    Commit(Box<crate::nft::CommitError>),
    /// An attribute was too long to be put into a message.
    #[error(transparent)]
    MessageError(#[from] crate::netlink::MessageError),
    /// A snapshot lacks elements, which were left out when it was read.
    #[error(transparent)]
    LeftOut(#[from] crate::nft::LeftOut),
    /// What a plan is to change as one's own is somebody else's.
    #[error(transparent)]
    NotOwn(#[from] crate::nft::NotOwn),
    /// A comment could not be given to an object.
    #[error(transparent)]
    Comment(#[from] crate::nft::userdata::CommentError),
    /// An error of a crate that is built on this one.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// A snapshot could not be read as one whole.
    #[error(transparent)]
    Snapshot(#[from] crate::nft::SnapshotError),
    /// A snapshot could not be written into a file, or read from one.
    #[cfg(feature = "backup")]
    #[error(transparent)]
    File(#[from] crate::nft::FileError),
    /// A rule could not be built.
    #[error(transparent)]
    Build(#[from] crate::nft::build::BuildError),
    /// A rule in iptables' terms could not be put into nf_tables'.
    #[error(transparent)]
    Unwritable(#[from] crate::iptables::nft::Unwritable),
    /// Of tables in iptables' terms.
    #[error(transparent)]
    Iptables(Box<crate::iptables::Error>),
    /// A set that a rule names could not be looked up.
    #[error(transparent)]
    Set(#[from] crate::iptables::SetError),
    /// Of the connection that looks up sets.
    #[error(transparent)]
    Ipset(#[from] crate::ipset::Error),
    /// Of the legacy tables.
    #[error(transparent)]
    Legacy(#[from] crate::legacy::Error),
    /// Of a network namespace.
    #[error(transparent)]
    Netns(#[from] crate::netns::Error),
}

impl From<crate::nft::WriteError> for Error {
    fn from(error: crate::nft::WriteError) -> Self {
        match error {
            crate::nft::WriteError::LeftOut(error) => Self::LeftOut(error),
            crate::nft::WriteError::NotOwn(error) => Self::NotOwn(error),
            crate::nft::WriteError::MessageError(error) => Self::MessageError(error),
        }
    }
}

impl From<crate::nft::CommitError> for Error {
    fn from(error: crate::nft::CommitError) -> Self {
        Self::Commit(Box::new(error))
    }
}

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
