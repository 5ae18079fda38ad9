//! The error numbers of Linux.

use chainwright::Errno;

macro_rules! errors {
    ($($name:ident)*) => {
        $(pub(super) const $name: Errno = Errno::new(libc::$name);)*
    };
}

errors! {
    E2BIG EAFNOSUPPORT EBUSY EINVAL ENODATA ENOENT EOPNOTSUPP EOVERFLOW EPROTO ERANGE
}
