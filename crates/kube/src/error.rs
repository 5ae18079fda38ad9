//! The crate's one [`Error`].

/// Any error of this crate. Each module has its own; this one lets `?` take them all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of `chainwright`.
    #[error(transparent)]
    Chainwright(chainwright::Error),
    /// The kept chains could not be read or changed.
    #[error(transparent)]
    Kubelet(#[from] crate::kubelet::Error),
    /// A text of rules cannot be declared.
    #[error(transparent)]
    Declared(#[from] crate::declared::TextError),
    /// Services could not be brought to the kernel in both families.
    #[error(transparent)]
    Families(crate::service::FamilyErrors),
    /// A guard ended.
    #[error(transparent)]
    Guard(#[from] crate::guard::Error),
}

impl<E: Into<chainwright::Error>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Chainwright(error.into())
    }
}
