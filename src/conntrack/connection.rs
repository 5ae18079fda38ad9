//! A netlink connection to the conntrack table of one network namespace.

use std::os::fd::{AsFd, BorrowedFd};

use chainwright_sys::netlink::{NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_CTNETLINK;
use chainwright_sys::nfnetlink_conntrack::{
    CTA_STATS_GLOBAL_ENTRIES, CTA_STATS_GLOBAL_MAX_ENTRIES, IPCTNL_MSG_CT_DELETE,
    IPCTNL_MSG_CT_GET, IPCTNL_MSG_CT_GET_CTRZERO, IPCTNL_MSG_CT_GET_STATS, IPCTNL_MSG_CT_NEW,
};

use super::entry::{Entry, EntryKey, EntryRef};
use super::filter::Filter;
use super::listing::Listing;
use crate::netlink::{
    AbandonedDump, Error, Loss, Message, MessageError, MessageWriter, Request, Session, Socket,
    write_request,
};
use crate::retry::impl_retry;

/// Returns the netlink type of a conntrack message.
pub(super) const fn message_type(message: u8) -> u16 {
    ((NFNL_SUBSYS_CTNETLINK as u16) << 8) | message as u16
}

const fn request(name: &'static str, message: u8) -> Request {
    Request::new(name, message_type(message))
}

/// The request to delete an entry.
const DELETE: Request = Request {
    absent: &[libc::ENOENT],
    ..request("delete an entry", IPCTNL_MSG_CT_DELETE)
};
/// Number of deletions in one request: their replies fit into the smallest receive buffer.
const BATCH_SIZE: usize = 64;

/// An open connection to the conntrack table of the network namespace in which the calling thread was when it opened
/// the connection.
///
/// It is [`Send`] and [`Sync`]; every request takes it by `&mut`. Do not use it in a child process after `fork(2)`:
/// open a new one there, because both processes would receive from one socket. No call blocks, because the kernel
/// replies while a request is sent. Requests require `CAP_NET_ADMIN` in the user namespace of the network namespace. If
/// ctnetlink (`nf_conntrack_netlink`) is a module, the kernel loads it for the first request.
///
/// ```
/// # fn main() -> Result<(), chainwright::Error> {
/// # chainwright_testing::Sandbox::new()?.run(|| {
/// use std::time::Duration;
/// use chainwright::conntrack::{Connection, Entry, Filter, Tuple, TupleFilter};
///
/// let mut conntrack = Connection::open()?;
/// let dns = Tuple::udp(([10, 0, 0, 1], 4000), ([10, 96, 0, 10], 53));
/// conntrack.create(&Entry::new(dns, Duration::from_secs(30)))?;
///
/// let to_service = TupleFilter::to([10, 96, 0, 10]).to_port(53);
/// let deleted = conntrack.delete_matching(&Filter::all().original(to_service))?;
/// assert_eq!((deleted.deleted, deleted.absent), (1, 0));
/// assert!(!conntrack.delete(&dns.into())?, "it is gone");
/// # Ok::<(), chainwright::Error>(()) })?
/// # }
/// ```
#[derive(Debug)]
pub struct Connection {
    pub(crate) session: Session,
}

/// Number of entries in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Current number, in this network namespace.
    pub entries: u32,
    /// Maximum number (`net.netfilter.nf_conntrack_max`), if the kernel reports it.
    pub max_entries: Option<u32>,
}

/// Result of deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "contains how many entries existed"]
pub struct Deleted {
    /// Number of deleted entries.
    pub deleted: usize,
    /// Number of entries that did not exist any more.
    pub absent: usize,
}

impl std::ops::AddAssign for Deleted {
    fn add_assign(&mut self, more: Self) {
        self.deleted += more.deleted;
        self.absent += more.absent;
    }
}

impl_retry! {
    /// The policy applies to lost replies: the connection sends the request again. A repeated deletion may then find
    /// nothing.
    Connection, session.retry
}

/// The socket, for closing or identifying it. It only receives replies to requests.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.session.socket.as_fd()
    }
}

impl Connection {
    /// Opens a connection in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Option`].
    pub fn open() -> Result<Self, Error> {
        Ok(Self::over(Socket::netfilter()?))
    }

    pub(crate) fn over(socket: Socket) -> Self {
        Self {
            session: Session::new(socket, AbandonedDump::Reopen),
        }
    }

    /// Lists entries as a stream: memory does not grow with the table.
    ///
    /// The table changes during the listing and has no generation. An entry that exists the whole time is listed; one
    /// that is added or removed in the meantime may be. While the kernel resizes its hash table, an entry can appear
    /// twice.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::try_next`] returns the errors of the listing.
    pub fn entries<'c>(&'c mut self, filter: &Filter) -> Result<Listing<'c>, Error> {
        self.list(filter, IPCTNL_MSG_CT_GET)
    }

    /// Like [`entries`](Self::entries), and resets the counters of each entry that the kernel sends to 0.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub fn reset_counters<'c>(&'c mut self, filter: &Filter) -> Result<Listing<'c>, Error> {
        self.list(filter, IPCTNL_MSG_CT_GET_CTRZERO)
    }

    fn list<'c>(&'c mut self, filter: &Filter, message: u8) -> Result<Listing<'c>, Error> {
        let request = request("list entries", message);
        let write = |writer: &mut MessageWriter<'_>| filter.encode(writer);
        let reader = self.session.dump(&request, filter.family(), write)?;
        Ok(Listing::new(reader, *filter))
    }

    /// Looks up an entry; `None` if it does not exist.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn entry(&mut self, key: &EntryKey) -> Result<Option<EntryRef<'_>>, Error> {
        let request = Request {
            absent: &[libc::ENOENT],
            ..request("look up an entry", IPCTNL_MSG_CT_GET)
        };
        let family = key.original.family();
        let found = (self.session).object(&request, family, |writer| key.encode(writer))?;
        let Some((start, end)) = found else {
            return Ok(None);
        };
        let (message, _) = Message::split(&self.session.buffer[start..end])?;
        let entry = EntryRef::parse(message.payload)?;
        // The kernel does not compare ids in a lookup.
        Ok(Some(entry).filter(|entry| key.id.is_none_or(|id| entry.id() == Some(id))))
    }

    /// Creates an entry.
    ///
    /// # Errors
    /// [`Error::Refused`] with `EEXIST` if one of its directions is already in the table, `ENOMEM` if the table is
    /// full; the errors of a request. After [`Error::Lost`] the entry may have been created.
    pub fn create(&mut self, entry: &Entry) -> Result<(), Error> {
        let request = Request {
            flags: NLM_F_CREATE | NLM_F_EXCL,
            repeats: false,
            ..request("create an entry", IPCTNL_MSG_CT_NEW)
        };
        let family = |entry: &&Entry| entry.original.family();
        let write = |entry: &&Entry, writer: &mut MessageWriter<'_>| entry.encode(writer);
        let _ = self
            .session
            .acknowledged(&request, &[entry], family, write)?;
        Ok(())
    }

    /// Deletes an entry. Returns whether it existed.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn delete(&mut self, key: &EntryKey) -> Result<bool, Error> {
        Ok(self.delete_all([*key])?.deleted == 1)
    }

    /// Deletes entries by their keys, many in each request and without listing any. Counts keys without an entry
    /// instead of returning an error.
    ///
    /// # Errors
    /// The errors of a request; all entries before the failing one are deleted. Requests with lost replies are
    /// repeated, so an entry that the first request deleted counts as absent.
    pub fn delete_all(
        &mut self,
        keys: impl IntoIterator<Item = EntryKey>,
    ) -> Result<Deleted, Error> {
        let mut keys = keys.into_iter();
        let mut some = Vec::with_capacity(BATCH_SIZE);
        let mut deleted = Deleted::default();
        loop {
            some.clear();
            some.extend(keys.by_ref().take(BATCH_SIZE));
            if some.is_empty() {
                return Ok(deleted);
            }
            let family = |key: &EntryKey| key.original.family();
            let absent = (self.session).acknowledged(&DELETE, &some, family, EntryKey::encode)?;
            deleted += Deleted {
                deleted: some.len() - absent,
                absent,
            };
        }
    }

    /// Deletes the entries that match a filter, by key and id: a new entry with the same key stays. Memory does not
    /// grow with the table. (A second [`Connection`] in the same namespace sends the deletions.)
    ///
    /// # Errors
    /// As [`entries`](Self::entries) and [`delete_all`](Self::delete_all); [`Error::Open`] if the second socket cannot
    /// be opened.
    pub fn delete_matching(&mut self, filter: &Filter) -> Result<Deleted, Error> {
        self.delete_if(filter, |_| true)
    }

    /// Like [`delete_matching`](Self::delete_matching), but only deletes entries for which `predicate` returns `true`.
    ///
    /// # Errors
    /// As [`delete_matching`](Self::delete_matching).
    pub fn delete_if(
        &mut self,
        filter: &Filter,
        mut predicate: impl FnMut(&EntryRef<'_>) -> bool,
    ) -> Result<Deleted, Error> {
        let deleter = self.session.socket.try_sibling()?;
        let mut deleter = Self::over(deleter).with_retry(self.retry());
        let mut deleted = Deleted::default();
        let mut some = Vec::with_capacity(BATCH_SIZE);
        let mut listing = self.entries(filter)?;
        loop {
            let entry = listing.try_next()?;
            let is_end = entry.is_none();
            some.extend(entry.filter(&mut predicate).map(|entry| entry.key()));
            if some.len() == BATCH_SIZE || is_end {
                deleted += deleter.delete_all(some.drain(..))?;
            }
            if is_end {
                return Ok(deleted);
            }
        }
    }

    /// Makes the kernel delete the entries that match a filter, in one request: it sends no entry to this program, and
    /// does not report their number. Returns `false`, without deleting anything, if the kernel cannot evaluate the
    /// filter; use [`delete_matching`](Self::delete_matching) then.
    ///
    /// The kernel compares TCP or UDP, their ports and IPv4 addresses. This sends no request for a filter with other
    /// conditions, or without a port or an address. (Linux 6.18 inverts the comparison of IPv6 addresses, and ignores
    /// ports of SCTP.) Older kernels refuse the request.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn flush_matching(&mut self, filter: &Filter) -> Result<bool, Error> {
        if !filter.kernel_can_evaluate() {
            return Ok(false);
        }
        let request = Request {
            name: "delete the entries of a filter",
            ..DELETE
        };
        let write = |filter: &&Filter, writer: &mut MessageWriter<'_>| filter.encode(writer);
        let absent = (self.session).acknowledged(&request, &[filter], |it| it.family(), write);
        match absent {
            Ok(absent) => Ok(absent == 0),
            // The kernel takes the filter for the complete key of one entry, or does not support such filters.
            Err(Error::Refused { errno, .. })
                if [libc::EINVAL, libc::EOPNOTSUPP].contains(&errno.number()) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the number of entries.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn statistics(&mut self) -> Result<Statistics, Error> {
        let request = request("count entries", IPCTNL_MSG_CT_GET_STATS);
        let any = libc::AF_UNSPEC as u8;
        let found = self.session.object(&request, any, |_| {})?;
        let (start, end) = found.ok_or(Error::Lost(Loss::MissingReply))?;
        let (message, _) = Message::split(&self.session.buffer[start..end])?;
        let attributes = message.attributes()?;
        let number = |kind| {
            let payload = attributes.clone().find(kind)?;
            payload.try_into().ok().map(u32::from_be_bytes)
        };
        Ok(Statistics {
            entries: number(CTA_STATS_GLOBAL_ENTRIES).unwrap_or(0),
            max_entries: number(CTA_STATS_GLOBAL_MAX_ENTRIES),
        })
    }
}

/// Returns the request for all entries, for benchmarks.
#[doc(hidden)]
pub fn list_request() -> Result<Vec<u8>, MessageError> {
    let (mut bytes, any) = (Vec::new(), libc::AF_UNSPEC as u8);
    let kind = message_type(IPCTNL_MSG_CT_GET);
    write_request(&mut bytes, 1, kind, NLM_F_DUMP, any, |_| {})?;
    Ok(bytes)
}

/// Returns the request to delete an entry, for benchmarks.
#[doc(hidden)]
pub fn delete_request(key: &EntryKey) -> Result<Vec<u8>, MessageError> {
    let (mut bytes, family) = (Vec::new(), key.original.family());
    let write = |writer: &mut MessageWriter<'_>| key.encode(writer);
    write_request(&mut bytes, 1, DELETE.kind, NLM_F_ACK, family, write)?;
    Ok(bytes)
}
