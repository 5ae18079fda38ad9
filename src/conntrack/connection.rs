//! A netlink connection to the conntrack table of one network namespace.

use std::os::fd::{AsFd, BorrowedFd};

use chainwright_sys::netlink::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NLMSG_OVERRUN,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_CTNETLINK;
use chainwright_sys::nfnetlink_conntrack::{
    CTA_STATS_GLOBAL_ENTRIES, CTA_STATS_GLOBAL_MAX_ENTRIES, IPCTNL_MSG_CT_DELETE,
    IPCTNL_MSG_CT_GET, IPCTNL_MSG_CT_GET_CTRZERO, IPCTNL_MSG_CT_GET_STATS, IPCTNL_MSG_CT_NEW,
};

use super::entry::{Entry, EntryKey, EntryRef};
use super::filter::Filter;
use super::listing::Listing;
use crate::Retry;
use crate::errno::Errno;
use crate::netlink::{
    Acknowledgement, DatagramReceiver, Dump, Error, Loss, Message, MessageError, MessageWriter,
    Messages, NextDatagram, NfGenMsg, ObjectReply, RECEIVE_BUFFER, Socket,
};
use crate::retry::impl_retry;

/// Returns the netlink type of a conntrack message.
pub(super) const fn message_type(message: u8) -> u16 {
    ((NFNL_SUBSYS_CTNETLINK as u16) << 8) | message as u16
}

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
    socket: Socket,
    pub(super) buffer: Vec<u8>,
    request: Vec<u8>,
    sequence: u32,
    /// A dump that was abandoned before its end: the kernel runs only one dump at a time per socket.
    unfinished: Option<Dump>,
    retry: Retry,
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
    Connection, retry
}

/// The socket, for closing or identifying it. It only receives replies to requests.
impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
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

    fn over(socket: Socket) -> Self {
        Self {
            socket,
            buffer: vec![0; RECEIVE_BUFFER],
            request: Vec::with_capacity(256),
            sequence: 0,
            unfinished: None,
            retry: Retry::DEFAULT,
        }
    }

    /// Receives a datagram into the buffer.
    #[inline]
    pub(super) fn receive(&mut self) -> Result<usize, Error> {
        let mut next = NextDatagram::new(&mut self.buffer);
        self.socket.receive_all(&mut next)?;
        Ok(next.length())
    }

    /// Appends a request and returns its sequence number.
    fn write(
        &mut self,
        message: u8,
        flags: u16,
        family: u8,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        write(
            &mut self.request,
            self.sequence,
            message,
            flags,
            family,
            content,
        )?;
        Ok(self.sequence)
    }

    /// Sends one request.
    fn send_request(
        &mut self,
        message: u8,
        flags: u16,
        family: u8,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        self.drain_dump();
        self.request.clear();
        let sequence = self.write(message, flags, family, content)?;
        self.socket.send(&self.request)?;
        Ok(sequence)
    }

    /// Records that the caller does not want the rest of a dump. The rest is received before the next request, not now.
    pub(super) fn abandon_dump(&mut self, dump: &Dump) {
        if !dump.ended() {
            self.unfinished = Some(dump.clone());
        }
    }

    /// Prepares the socket for a request.
    fn drain_dump(&mut self) {
        let Some(dump) = self.unfinished.take() else {
            return;
        };
        // The table may be large, and a new socket has no pending dump.
        if let Some(socket) = self.socket.sibling() {
            self.socket = socket;
            return;
        }
        self.request.clear();
        let any = libc::AF_UNSPEC as u8;
        if self.write(IPCTNL_MSG_CT_GET_STATS, 0, any, |_| {}).is_ok() {
            self.socket.drain(&mut self.buffer, &self.request, dump);
        }
    }

    /// Sends a request, and repeats it while replies are lost.
    fn retry_lost<R>(
        &mut self,
        mut send_request: impl FnMut(&mut Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut attempts = self.retry.begin();
        loop {
            match send_request(self) {
                Err(error) if error.is_retryable() && attempts.retry_after_loss() => {}
                answer => return answer,
            }
        }
    }

    /// Receives the reply to a request and returns its position in the buffer; `None` if the entry does not exist.
    fn answer(
        &mut self,
        request: &'static str,
        sequence: u32,
    ) -> Result<Option<(usize, usize)>, Error> {
        let mut answer = ObjectReply::new(&mut self.buffer, request, sequence, &[libc::ENOENT]);
        self.socket.receive_all(&mut answer)?;
        Ok(answer.found())
    }

    /// Lists entries as a stream: memory does not grow with the table.
    ///
    /// The table changes during the listing and has no generation. An entry that exists the whole time is listed; one
    /// that is added or removed in the meantime may be. While the kernel resizes its hash table, an entry can appear
    /// twice.
    ///
    /// # Errors
    /// [`Error::Send`]; [`Listing::next`] returns the errors of the listing.
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
        let write = |writer: &mut MessageWriter<'_>| filter.encode(writer);
        let sequence = self.send_request(message, NLM_F_DUMP, filter.family(), write)?;
        Ok(Listing::new(self, *filter, sequence))
    }

    /// Looks up an entry; `None` if it does not exist.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn entry(&mut self, key: &EntryKey) -> Result<Option<EntryRef<'_>>, Error> {
        let found = self.retry_lost(|connection| {
            let family = key.original.family();
            let sequence = connection
                .send_request(IPCTNL_MSG_CT_GET, 0, family, |writer| key.encode(writer))?;
            connection.answer("look up an entry", sequence)
        })?;
        let Some((start, end)) = found else {
            return Ok(None);
        };
        let (message, _) = Message::split(&self.buffer[start..end])?;
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
        let flags = NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
        let family = entry.original.family();
        let sequence = self.send_request(IPCTNL_MSG_CT_NEW, flags, family, |writer| {
            entry.encode(writer)
        })?;
        let mut answers = AckBatch::new(&mut self.buffer, "create an entry", sequence, 1);
        self.socket.receive_all(&mut answers)?;
        match answers.absent {
            0 => Ok(()),
            _ => Err(Error::Refused {
                request: "create an entry",
                errno: Errno::new(libc::ENOENT),
                text: None,
            }),
        }
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
            deleted += self.retry_lost(|connection| connection.delete_some(&some))?;
        }
    }

    fn delete_some(&mut self, keys: &[EntryKey]) -> Result<Deleted, Error> {
        self.drain_dump();
        self.request.clear();
        // The requests of one batch have consecutive sequence numbers.
        if self.sequence.checked_add(keys.len() as u32).is_none() {
            self.sequence = 0;
        }
        let first = self.sequence + 1;
        for key in keys {
            let family = key.original.family();
            self.write(IPCTNL_MSG_CT_DELETE, NLM_F_ACK, family, |writer| {
                key.encode(writer)
            })?;
        }
        self.socket.reserve_send(self.request.len())?;
        self.socket.send(&self.request)?;
        let mut answers = AckBatch::new(&mut self.buffer, "delete an entry", first, keys.len());
        self.socket.receive_all(&mut answers)?;
        Ok(Deleted {
            deleted: keys.len() - answers.absent,
            absent: answers.absent,
        })
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
        let deleter = self.socket.try_sibling()?;
        let mut deleter = Self::over(deleter).with_retry(self.retry);
        let mut deleted = Deleted::default();
        let mut some = Vec::with_capacity(BATCH_SIZE);
        let mut listing = self.entries(filter)?;
        loop {
            let entry = listing.next()?;
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
        const REQUEST: &str = "delete the entries of a filter";
        if !filter.kernel_can_evaluate() {
            return Ok(false);
        }
        let absent = self.retry_lost(|connection| {
            let write = |writer: &mut MessageWriter<'_>| filter.encode(writer);
            let family = filter.family();
            let sequence =
                connection.send_request(IPCTNL_MSG_CT_DELETE, NLM_F_ACK, family, write)?;
            let mut answers = AckBatch::new(&mut connection.buffer, REQUEST, sequence, 1);
            connection.socket.receive_all(&mut answers)?;
            Ok(answers.absent)
        });
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
        const REQUEST: &str = "count entries";
        let found = self.retry_lost(|connection| {
            let sequence = connection.send_request(
                IPCTNL_MSG_CT_GET_STATS,
                0,
                libc::AF_UNSPEC as u8,
                |_| {},
            )?;
            connection.answer(REQUEST, sequence)
        })?;
        let (start, end) = found.ok_or(Error::Refused {
            request: REQUEST,
            errno: Errno::new(libc::ENOENT),
            text: None,
        })?;
        let (message, _) = Message::split(&self.buffer[start..end])?;
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

/// Appends a request with this sequence number.
fn write(
    bytes: &mut Vec<u8>,
    sequence: u32,
    message: u8,
    flags: u16,
    family: u8,
    content: impl FnOnce(&mut MessageWriter<'_>),
) -> Result<(), MessageError> {
    let header = NfGenMsg {
        family,
        resource: 0,
    };
    let (kind, flags) = (message_type(message), NLM_F_REQUEST | flags);
    let mut writer = MessageWriter::nfnetlink(bytes, kind, flags, sequence, header);
    content(&mut writer);
    writer.finish()
}

/// Returns the request for all entries, for benchmarks.
#[doc(hidden)]
pub fn list_request() -> Result<Vec<u8>, MessageError> {
    let (mut bytes, any) = (Vec::new(), libc::AF_UNSPEC as u8);
    write(&mut bytes, 1, IPCTNL_MSG_CT_GET, NLM_F_DUMP, any, |_| {})?;
    Ok(bytes)
}

/// Returns the request to delete an entry, for benchmarks.
#[doc(hidden)]
pub fn delete_request(key: &EntryKey) -> Result<Vec<u8>, MessageError> {
    let (mut bytes, family) = (Vec::new(), key.original.family());
    write(
        &mut bytes,
        1,
        IPCTNL_MSG_CT_DELETE,
        NLM_F_ACK,
        family,
        |writer| key.encode(writer),
    )?;
    Ok(bytes)
}

/// Processes the acknowledgements of a batch of requests.
struct AckBatch<'c> {
    buffer: &'c mut [u8],
    request: &'static str,
    /// The sequence number of the first request; the others are consecutive.
    first: u32,
    number: u32,
    rest: usize,
    /// Number of requests for entries that do not exist.
    absent: usize,
}

impl<'c> AckBatch<'c> {
    const fn new(buffer: &'c mut [u8], request: &'static str, first: u32, number: usize) -> Self {
        Self {
            buffer,
            request,
            first,
            number: number as u32, // `BATCH_SIZE` at most
            rest: number,
            absent: 0,
        }
    }
}

impl DatagramReceiver for AckBatch<'_> {
    fn is_complete(&self) -> bool {
        self.rest == 0
    }

    fn space(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        for message in Messages::new(&self.buffer[..length]) {
            let message = message?;
            if message.kind == NLMSG_OVERRUN {
                return Err(Error::Lost(Loss::Overrun));
            }
            // A leftover reply to an earlier request has a sequence number outside this range: a lower one, or one from
            // before the numbers wrapped around.
            if message.sequence.wrapping_sub(self.first) >= self.number {
                continue;
            }
            let Some(answer) = Acknowledgement::parse(&message)? else {
                continue;
            };
            self.rest = self.rest.saturating_sub(1);
            if answer
                .errno
                .is_some_and(|errno| errno.number() == libc::ENOENT)
            {
                self.absent += 1;
            } else {
                answer.into_result(self.request)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use chainwright_sys::netlink::{NLMSG_DONE, NLMSG_ERROR};

    use super::*;
    use crate::conntrack::Tuple;
    use crate::netlink::replay::{Replay, Reply};

    fn control(kind: u16, number: i32, sequence: u32) -> Reply {
        let mut bytes = 36_u32.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend((-number).to_ne_bytes());
        bytes.extend([0; 16]);
        Reply::Datagram(bytes)
    }

    fn answering(kernel: impl FnMut(Message<'_>) -> Vec<Reply> + Send + 'static) -> Connection {
        let mut kernel = kernel;
        let replay = Replay::new(move |request: &[u8]| {
            let messages = Messages::new(request).map(Result::unwrap);
            messages.flat_map(&mut kernel).collect()
        });
        Connection::over(Socket::to_peer(Box::new(replay))).with_retry(Retry::ONCE)
    }

    fn key() -> EntryKey {
        let address = Ipv4Addr::new(10, 0, 0, 1);
        Tuple::udp((address, 1), (address, 2)).into()
    }

    /// A stale reply does not belong to this request, whether its sequence number is lower or, from before a
    /// wraparound, higher.
    #[test]
    fn ignores_stale_replies() {
        for (next, stale) in [
            (7, 5),
            (u32::MAX, u32::MAX - 40),
            (1, u32::MAX - 3),
            (1, 900),
            (9, 10),
        ] {
            let mut connection = answering(move |message| {
                assert_eq!(message.sequence, next);
                vec![
                    control(NLMSG_ERROR, 0, stale),
                    control(NLMSG_ERROR, libc::ENOENT, message.sequence),
                ]
            });
            connection.sequence = next - 1;
            assert!(!connection.delete(&key()).unwrap(), "{next} {stale}");
        }
        // Across a wraparound of the sequence numbers.
        let mut connection = answering(|message| vec![control(NLMSG_ERROR, 0, message.sequence)]);
        connection.sequence = u32::MAX - 2;
        let deleted = connection.delete_all([key(); 5]).unwrap();
        assert_eq!((deleted.deleted, deleted.absent), (5, 0));
        assert!(connection.delete(&key()).unwrap());
    }

    /// An abandoned dump is received to its end, even if replies are lost: until then the kernel refuses another one
    /// (`EBUSY`).
    #[test]
    fn abandoned_dump_is_drained_despite_losses() {
        for losses in [0, 1, 3] {
            let mut dumps = 0;
            let mut connection = answering(move |message| {
                if message.flags & NLM_F_DUMP == 0 {
                    return vec![control(NLMSG_ERROR, libc::EOPNOTSUPP, message.sequence)];
                }
                dumps += 1;
                let mut replies = Vec::new();
                if dumps == 1 {
                    replies.push(Reply::Datagram(vec![1, 2, 3])); // malformed: the listing ends there
                    replies.extend((0..losses).map(|_| Reply::Error(libc::ENOBUFS)));
                }
                replies.push(control(NLMSG_DONE, 0, message.sequence));
                replies
            });
            let error = connection
                .entries(&Filter::all())
                .unwrap()
                .next()
                .unwrap_err();
            assert!(matches!(error, Error::Malformed(_)), "{error:?}");
            connection.drain_dump();
            // Nothing is left of the dump.
            assert!(connection.unfinished.is_none());
            let error = connection.receive().unwrap_err();
            assert!(
                matches!(error, Error::Lost(Loss::MissingReply)),
                "{losses}: {error:?}"
            );
            let mut listing = connection.entries(&Filter::all()).unwrap();
            assert!(listing.next().unwrap().is_none());
        }
    }

    #[test]
    fn failed_listing_repeats_its_error() {
        for number in [libc::EPERM, libc::ENOMEM, libc::EINVAL] {
            let mut connection =
                answering(move |message| vec![control(NLMSG_ERROR, number, message.sequence)]);
            let mut listing = connection.entries(&Filter::all()).unwrap();
            for _ in 0..3 {
                let error = listing.next().unwrap_err();
                assert_eq!(error.errno().map(Errno::number), Some(number));
                assert!(!error.is_retryable(), "{error:?}");
            }
            assert_eq!(
                listing
                    .for_each(|_| {})
                    .unwrap_err()
                    .errno()
                    .map(Errno::number),
                Some(number)
            );
        }
    }
}
