//! The kernel's error numbers, carried by the errors of all modules.

use std::fmt;
use std::io;

/// A Linux error number, as in a netlink acknowledgement or from a system call; always
/// positive.
///
/// See [errno(3)](https://man7.org/linux/man-pages/man3/errno.3.html).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// Creates the errno with this number. A negative number, as in netlink, becomes positive.
    #[must_use]
    pub const fn new(number: i32) -> Self {
        // `i32::MIN` has no positive counterpart; the kernel never sends it.
        Self(number.saturating_abs())
    }

    /// Creates the errno of an I/O error; 0, which is no error number, if it has none.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        Self::new(error.raw_os_error().unwrap_or(0))
    }

    /// Returns the number, always positive.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Returns the symbol, for instance `ENOENT`; `errno 524` for a number without a name in the C
    /// library.
    #[must_use]
    pub fn name(self) -> String {
        match nix::errno::Errno::from_raw(self.0) {
            nix::errno::Errno::UnknownErrno => format!("errno {}", self.0),
            known => format!("{known:?}"),
        }
    }

    /// Returns the text of glibc's `strerror` for the number, whichever C library the program uses.
    #[must_use]
    pub fn strerror(self) -> String {
        let text = match nix::errno::Errno::from_raw(self.0) {
            nix::errno::Errno::UnknownErrno => return format!("Unknown error {}", self.0),
            known => known.desc(),
        };
        let text = match self.0 {
            libc::EIO => "Input/output error",
            libc::EBADF => "Bad file descriptor",
            libc::EAGAIN => "Resource temporarily unavailable",
            libc::ENOMEM => "Cannot allocate memory",
            libc::EXDEV => "Invalid cross-device link",
            libc::ENFILE => "Too many open files in system",
            libc::ENOTTY => "Inappropriate ioctl for device",
            libc::EDOM => "Numerical argument out of domain",
            libc::ERANGE => "Numerical result out of range",
            libc::EDEADLK => "Resource deadlock avoided",
            libc::ENOLCK => "No locks available",
            libc::ELOOP => "Too many levels of symbolic links",
            libc::EBADMSG => "Bad message",
            libc::EILSEQ => "Invalid or incomplete multibyte or wide character",
            libc::EOPNOTSUPP => "Operation not supported",
            libc::ENETRESET => "Network dropped connection on reset",
            libc::EDQUOT => "Disk quota exceeded",
            _ => text,
        };
        text.to_owned()
    }
}

impl fmt::Display for Errno {
    /// Formats as the symbol and its text: `ENOENT (No such file or directory)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match nix::errno::Errno::from_raw(self.0) {
            nix::errno::Errno::UnknownErrno => write!(f, "errno {}", self.0),
            known => write!(f, "{known:?} ({})", known.desc()),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        io::Error::from_raw_os_error(errno.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_env = "gnu")]
    #[test]
    fn texts_match_glibc() {
        let differ: Vec<_> = (1..135)
            .filter_map(|number| {
                let theirs = io::Error::from_raw_os_error(number).to_string();
                let (theirs, _) = theirs.rsplit_once(" (os error")?;
                let ours = Errno::new(number).strerror();
                (ours != theirs).then(|| format!("{number}: {ours} / {theirs}"))
            })
            .collect();
        assert!(differ.is_empty(), "{differ:#?}");
    }

    #[test]
    fn names_and_numbers() {
        assert_eq!(Errno::new(-2), Errno::new(2));
        assert_eq!(Errno::new(2).name(), "ENOENT");
        assert_eq!(
            Errno::new(2).to_string(),
            "ENOENT (No such file or directory)"
        );
        assert_eq!(Errno::new(85).name(), "ERESTART");
        assert_eq!(Errno::new(524).to_string(), "errno 524");
        assert_eq!(Errno::new(i32::MIN).number(), i32::MAX);
    }
}
