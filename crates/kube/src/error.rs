//! The crate's [`Error`].

use chainwright::ErrorKind;

/// Any error of this crate. Each module has its own; this one lets `?` convert all of them.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of `chainwright`.
    #[error(transparent)]
    Chainwright(chainwright::Error),
    /// The chains could not be read or changed.
    #[error(transparent)]
    Kubelet(#[from] crate::kubelet::Error),
    /// A text cannot be read as a declaration.
    #[error(transparent)]
    Declared(#[from] crate::declared::TextError),
    /// Services could not be written to the kernel in one family or in both.
    #[error(transparent)]
    Families(crate::service::FamilyErrors),
    /// A guard ended.
    #[error(transparent)]
    Guard(#[from] crate::guard::Error),
}

chainwright::debug_as_message!(Error);

chainwright::classified!(Error, |error| match error {
    Self::Chainwright(error) => error.class(),
    Self::Kubelet(error) | Self::Guard(crate::guard::Error::Tables(error)) => error.class(),
    Self::Guard(crate::guard::Error::Thread(error)) => error.into(),
    Self::Declared(_) => ErrorKind::Invalid.into(),
    Self::Families(errors) => match errors.iter().next() {
        Some((_, error)) => error.class(),
        None => ErrorKind::Other.into(),
    },
});

impl<E: Into<chainwright::Error>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Chainwright(error.into())
    }
}
