//! Names and indexes of `ipset(8)` sets.
//!
//! A rule's data holds the index of a set (`linux/netfilter/xt_set.h`), text holds its name; the
//! kernel translates between them with the socket option `SO_IP_SET`
//! (`linux/netfilter/ipset/ip_set.h`). The option works on every IPv4 socket and takes
//! `CAP_NET_ADMIN`. This module does not read sets' contents.
//!
//! ```
//! use chainwright::ipset::Connection;
//! use chainwright_testing::Sandbox;
//!
//! let sandbox = Sandbox::new()?;
//! let sets = sandbox.run(Connection::open)??;
//! assert_eq!(sets.look_up("no-such-set")?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::os::fd::{AsFd, OwnedFd};

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::ip_set::{
    IP_SET_OP_GET_BYINDEX, IP_SET_OP_GET_BYNAME, IP_SET_OP_GET_FNAME, IP_SET_OP_VERSION,
    IPSET_INVALID_ID, IPSET_MAXNAMELEN, SO_IP_SET, ip_set_name_index, ip_set_req_get_set,
    ip_set_req_get_set_family, ip_set_req_version,
};
use chainwright_sys::netfilter::{NFPROTO_IPV4, NFPROTO_IPV6};
use nix::sys::socket::{AddressFamily, SockFlag, SockType};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::errno::Errno;
use crate::error::ErrorKind;
use crate::sockopt;

/// Length of a name in the kernel's structs, with its NUL.
const LENGTH: usize = IPSET_MAXNAMELEN;

/// The reason why a set could not be looked up.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This kernel has no sets: not built in, or the module is not loaded.
    #[error("this kernel has no ipset support (not built in, or the ip_set module is not loaded)")]
    NotBuilt,
    /// The caller lacks the permission to look up sets.
    #[error("no permission to read sets: this requires CAP_NET_ADMIN in this network namespace")]
    NoPermission,
    /// These bytes cannot be a set's name.
    #[error("invalid set name {name:?} (1 to 31 bytes, no NUL)")]
    Name {
        /// The name as given.
        name: BString,
    },
    /// The kernel refused the request, or sent an invalid answer.
    #[error("{doing}: {errno}")]
    Kernel {
        /// The request.
        doing: String,
        /// The kernel's error number.
        errno: Errno,
    },
}

crate::debug_as_message!(Error);

crate::classified!(Error, |error| match error {
    Self::NotBuilt => ErrorKind::Unsupported.into(),
    Self::NoPermission => ErrorKind::PermissionDenied.into(),
    Self::Name { .. } => ErrorKind::Invalid.into(),
    Self::Kernel { errno, .. } => (*errno).into(),
});

/// The address family of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetFamily {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// No particular one (ports, other sets, link-layer addresses), or an old kernel does not
    /// report it.
    Any,
}

/// The result of a lookup by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetInfo {
    /// The set's index, valid until the set is destroyed, or swapped with another (`ipset swap`).
    pub index: u16,
    /// The family of its addresses.
    pub family: SetFamily,
}

/// Looks up sets of the network namespace that the thread was in when it opened the connection.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    version: u32,
}

impl Connection {
    /// Opens a connection in the calling thread's network namespace.
    ///
    /// # Errors
    /// The socket cannot be opened, this kernel has no sets, or the permission is missing.
    pub fn open() -> Result<Self, Error> {
        let socket = nix::sys::socket::socket(
            AddressFamily::Inet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        )
        .map_err(|errno| kernel_error("opening a socket", Errno::new(errno as i32)))?;
        let mut connection = Self { socket, version: 0 };
        let request = ip_set_req_version {
            op: IP_SET_OP_VERSION,
            version: 0,
        };
        let reply = connection
            .send_request(request)
            .map_err(|errno| kernel_error("querying the ipset version", errno))?;
        connection.version = reply.version;
        Ok(connection)
    }

    /// Returns the version of ipset's protocol that the kernel speaks.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Looks up a set by name; `None` if there is none.
    ///
    /// # Errors
    /// The name is not valid for a set, or the kernel refuses.
    pub fn look_up(&self, name: impl AsRef<[u8]>) -> Result<Option<SetInfo>, Error> {
        let name = name.as_ref();
        if name.is_empty() || name.len() >= LENGTH || name.contains(&0) {
            return Err(Error::Name { name: name.into() });
        }
        let mut field = [0; LENGTH];
        field[..name.len()].copy_from_slice(name);
        let set = ip_set_name_index { name: field };
        let op = IP_SET_OP_GET_FNAME;
        let version = self.version;
        let request = ip_set_req_get_set_family {
            op,
            version,
            family: 0,
            set,
        };
        let (set, family) = match self.send_request(request) {
            Ok(reply) => (reply.set, reply.family),
            // Linux before 3.16 lacks this operation.
            Err(errno) if errno.number() == libc::EBADMSG => {
                let op = IP_SET_OP_GET_BYNAME;
                let request = ip_set_req_get_set { op, version, set };
                let reply = self
                    .send_request(request)
                    .map_err(|errno| lookup_error(name, errno))?;
                (reply.set, 0)
            }
            Err(errno) => return Err(lookup_error(name, errno)),
        };
        Ok(found(&set, family))
    }

    /// Looks up the name of a set by its index; `None` if there is none.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn name(&self, index: u16) -> Result<Option<BString>, Error> {
        let mut name = [0; LENGTH];
        name[..2].copy_from_slice(&index.to_ne_bytes());
        let request = ip_set_req_get_set {
            op: IP_SET_OP_GET_BYINDEX,
            version: self.version,
            set: ip_set_name_index { name },
        };
        let name = match self.send_request(request) {
            Ok(reply) => reply.set.name,
            // The kernel has never used this index.
            Err(errno) if errno.number() == libc::EINVAL => return Ok(None),
            Err(errno) => {
                let doing = format!("looking for the set of index {index}");
                return Err(kernel_error(&doing, errno));
            }
        };
        Ok(named(&name))
    }

    /// Sends a request to the kernel, which answers in the same struct.
    fn send_request<T>(&self, mut request: T) -> Result<T, Errno>
    where
        T: FromBytes + IntoBytes + Immutable + KnownLayout,
    {
        let bytes = request.as_mut_bytes();
        let whole = bytes.len();
        let length = sockopt::get(self.socket.as_fd(), libc::SOL_IP, SO_IP_SET, bytes)?;
        if length != whole {
            return Err(Errno::new(libc::EPROTO));
        }
        Ok(request)
    }
}

/// Reads the kernel's answer to a lookup by name.
pub(crate) fn found(set: &ip_set_name_index, family: u32) -> Option<SetInfo> {
    let index = u16::from_ne_bytes([set.name[0], set.name[1]]);
    (index != IPSET_INVALID_ID).then_some(SetInfo {
        index,
        family: match u8::try_from(family) {
            Ok(NFPROTO_IPV4) => SetFamily::Ipv4,
            Ok(NFPROTO_IPV6) => SetFamily::Ipv6,
            _ => SetFamily::Any,
        },
    })
}

/// Reads the kernel's answer to a lookup by index.
pub(crate) fn named(name: &[u8; LENGTH]) -> Option<BString> {
    let name = name.split_str(b"\0").next().unwrap_or_default();
    (!name.is_empty()).then(|| name.into())
}

fn kernel_error(doing: &str, errno: Errno) -> Error {
    match errno.number() {
        libc::ENOPROTOOPT => Error::NotBuilt,
        libc::EPERM => Error::NoPermission,
        _ => Error::Kernel {
            doing: doing.to_owned(),
            errno,
        },
    }
}

fn lookup_error(name: &[u8], errno: Errno) -> Error {
    kernel_error(&format!("looking for the set `{}`", BStr::new(name)), errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_cause() {
        let kernel = |number| kernel_error("requesting", Errno::new(number));
        assert_eq!(kernel(libc::ENOPROTOOPT), Error::NotBuilt);
        assert_eq!(kernel(libc::EPERM), Error::NoPermission);
        assert_eq!(
            lookup_error(b"four", Errno::new(libc::EPROTO)).to_string(),
            "looking for the set `four`: EPROTO (Protocol error)"
        );
    }
}
