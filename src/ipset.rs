//! Sets of `ipset(8)`: their names and indexes.
//!
//! A rule's data has the index of a set (`linux/netfilter/xt_set.h`), text has its name; the kernel
//! tells one from the other by the socket option `SO_IP_SET` (`linux/netfilter/ipset/ip_set.h`). The
//! option works on every IPv4 socket and takes `CAP_NET_ADMIN`. What is in sets is not read here.
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
use crate::sockopt;

/// Length of a name in the kernel's structs, with its NUL.
const LENGTH: usize = IPSET_MAXNAMELEN;

/// Why the kernel could not be asked for a set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This kernel knows no sets: they are not built in, and if they are a module, it is not loaded.
    #[error("this kernel has no sets (not built in, or the module ip_set is not loaded)")]
    NotBuilt,
    /// The caller may not look at sets.
    #[error("no permission to look at sets: it takes CAP_NET_ADMIN in this network namespace")]
    NoPermission,
    /// These bytes cannot be a set's name.
    #[error("{name:?} cannot be the name of a set (1 to 31 bytes, no NUL)")]
    Name {
        /// What was given.
        name: BString,
    },
    /// The kernel refused, or answered what cannot be.
    #[error("{doing}: {errno}")]
    Kernel {
        /// What was asked.
        doing: String,
        /// What it said.
        errno: Errno,
    },
}

/// The addresses that a set holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetFamily {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// None in particular: ports, other sets, link-layer addresses; or an old kernel does not say.
    Any,
}

/// A set that was found by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Found {
    /// Its index. It keeps it until it is destroyed, or swapped for another (`ipset swap`).
    pub index: u16,
    /// The addresses that it holds.
    pub family: SetFamily,
}

/// A way to ask for sets of the network namespace that the thread was in when it was opened.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    version: u32,
}

impl Connection {
    /// Opens one in the calling thread's network namespace.
    ///
    /// # Errors
    /// No socket, no sets in this kernel, or no permission.
    pub fn open() -> Result<Self, Error> {
        let socket = nix::sys::socket::socket(
            AddressFamily::Inet,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        )
        .map_err(|errno| failed("opening a socket", Errno::new(errno as i32)))?;
        let mut connection = Self { socket, version: 0 };
        let question = ip_set_req_version {
            op: IP_SET_OP_VERSION,
            version: 0,
        };
        let answer = connection
            .ask(question)
            .map_err(|errno| failed("asking for the version of sets", errno))?;
        connection.version = answer.version;
        Ok(connection)
    }

    /// The version of ipset's protocol that the kernel speaks.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The set of that name; `None` if there is none.
    ///
    /// # Errors
    /// A name that no set can have, or what the kernel says.
    pub fn look_up(&self, name: impl AsRef<[u8]>) -> Result<Option<Found>, Error> {
        let name = name.as_ref();
        if name.is_empty() || name.len() >= LENGTH || name.contains(&0) {
            return Err(Error::Name { name: name.into() });
        }
        let mut field = [0; LENGTH];
        field[..name.len()].copy_from_slice(name);
        let set = ip_set_name_index { name: field };
        let op = IP_SET_OP_GET_FNAME;
        let version = self.version;
        let question = ip_set_req_get_set_family {
            op,
            version,
            family: 0,
            set,
        };
        let (set, family) = match self.ask(question) {
            Ok(answer) => (answer.set, answer.family),
            // Before Linux 3.16 there was no such question.
            Err(errno) if errno.number() == libc::EBADMSG => {
                let op = IP_SET_OP_GET_BYNAME;
                let question = ip_set_req_get_set { op, version, set };
                let answer = self.ask(question).map_err(|errno| no_answer(name, errno))?;
                (answer.set, 0)
            }
            Err(errno) => return Err(no_answer(name, errno)),
        };
        Ok(found(&set, family))
    }

    /// The name of the set of that index; `None` if there is none.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn name(&self, index: u16) -> Result<Option<BString>, Error> {
        let mut name = [0; LENGTH];
        name[..2].copy_from_slice(&index.to_ne_bytes());
        let question = ip_set_req_get_set {
            op: IP_SET_OP_GET_BYINDEX,
            version: self.version,
            set: ip_set_name_index { name },
        };
        let name = match self.ask(question) {
            Ok(answer) => answer.set.name,
            // An index that no set has had yet.
            Err(errno) if errno.number() == libc::EINVAL => return Ok(None),
            Err(errno) => {
                let doing = format!("looking for the set of index {index}");
                return Err(failed(&doing, errno));
            }
        };
        Ok(named(&name))
    }

    /// Asks the kernel, which answers in the question's own form.
    fn ask<T>(&self, mut question: T) -> Result<T, Errno>
    where
        T: FromBytes + IntoBytes + Immutable + KnownLayout,
    {
        let bytes = question.as_mut_bytes();
        let whole = bytes.len();
        let length = sockopt::get(self.socket.as_fd(), libc::SOL_IP, SO_IP_SET, bytes)?;
        if length != whole {
            return Err(Errno::new(libc::EPROTO));
        }
        Ok(question)
    }
}

/// The set that the kernel's answer to a name tells of.
pub(crate) fn found(set: &ip_set_name_index, family: u32) -> Option<Found> {
    let index = u16::from_ne_bytes([set.name[0], set.name[1]]);
    (index != IPSET_INVALID_ID).then_some(Found {
        index,
        family: match u8::try_from(family) {
            Ok(NFPROTO_IPV4) => SetFamily::Ipv4,
            Ok(NFPROTO_IPV6) => SetFamily::Ipv6,
            _ => SetFamily::Any,
        },
    })
}

/// The name in the kernel's answer to an index.
pub(crate) fn named(name: &[u8; LENGTH]) -> Option<BString> {
    let name = name.split_str(b"\0").next().unwrap_or_default();
    (!name.is_empty()).then(|| name.into())
}

fn failed(doing: &str, errno: Errno) -> Error {
    match errno.number() {
        libc::ENOPROTOOPT => Error::NotBuilt,
        libc::EPERM => Error::NoPermission,
        _ => Error::Kernel {
            doing: doing.to_owned(),
            errno,
        },
    }
}

fn no_answer(name: &[u8], errno: Errno) -> Error {
    failed(&format!("looking for the set `{}`", BStr::new(name)), errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_missing() {
        let kernel = |number| failed("asking", Errno::new(number));
        assert_eq!(kernel(libc::ENOPROTOOPT), Error::NotBuilt);
        assert_eq!(kernel(libc::EPERM), Error::NoPermission);
        assert_eq!(
            no_answer(b"four", Errno::new(libc::EPROTO)).to_string(),
            "looking for the set `four`: EPROTO (Protocol error)"
        );
    }
}
