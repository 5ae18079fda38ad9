//! A connection to the table of connections of one network namespace.

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
    Acknowledgement, Answer, Dump, Error, Intake, Loss, Message, MessageError, MessageWriter,
    Messages, Next, NfGenMsg, RECEIVE_BUFFER, Socket,
};
use crate::retry::retrying;

/// The type of a message of the subsystem.
pub(super) const fn message_type(message: u8) -> u16 {
    ((NFNL_SUBSYS_CTNETLINK as u16) << 8) | message as u16
}

/// How many deletions are asked for at once: their answers fit the smallest receive buffer.
const AT_ONCE: usize = 64;

/// An open connection to the table of connections of one network namespace: that which the calling thread was in when it
/// was opened.
///
/// It is [`Send`] and [`Sync`]; every request takes it by `&mut`. Do not use it in a child process after `fork(2)`: open a
/// new one there, for both would receive from one socket. Nothing here waits: the kernel has answered when a
/// request has been sent. Requests take `CAP_NET_ADMIN` in the namespace's user namespace. The kernel loads
/// ctnetlink (`nf_conntrack_netlink`) for the first of them, if it is a module.
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
    /// A dump that was given up before its end: the kernel runs one at a time on a socket.
    unfinished: Option<Dump>,
    retry: Retry,
}

/// How many entries there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Now, in this network namespace.
    pub entries: u32,
    /// At most (`net.netfilter.nf_conntrack_max`), where the kernel tells.
    pub max_entries: Option<u32>,
}

/// What came of deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "it says what was there"]
pub struct Deleted {
    /// How many entries were deleted.
    pub deleted: usize,
    /// How many were gone already.
    pub absent: usize,
}

impl std::ops::AddAssign for Deleted {
    fn add_assign(&mut self, more: Self) {
        self.deleted += more.deleted;
        self.absent += more.absent;
    }
}

retrying! {
    /// It is for lost replies: requests are made again, and a deletion whose answer was lost may find nothing then.
    Connection, retry
}

/// The socket, to be closed or counted with. Nothing comes on it but the answers to requests.
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
        let mut next = Next::new(&mut self.buffer);
        self.socket.take_in(&mut next)?;
        Ok(next.length())
    }

    /// Appends a request; its sequence number.
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
    fn ask(
        &mut self,
        message: u8,
        flags: u16,
        family: u8,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<u32, Error> {
        self.settle();
        self.request.clear();
        let sequence = self.write(message, flags, family, content)?;
        self.socket.send(&self.request)?;
        Ok(sequence)
    }

    /// Says that nobody wants the rest of a dump. It is received before the next request, not now.
    pub(super) fn give_up(&mut self, dump: &Dump) {
        if !dump.ended() {
            self.unfinished = Some(dump.clone());
        }
    }

    /// Makes the socket free for a request.
    fn settle(&mut self) {
        let Some(dump) = self.unfinished.take() else {
            return;
        };
        // The table may be large; a new socket has no dump.
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

    /// Asks, and again while answers are lost.
    fn insist<R>(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut attempts = self.retry.begin();
        loop {
            match ask(self) {
                Err(error) if error.ask_again() && attempts.again_after_loss() => {}
                answer => return answer,
            }
        }
    }

    /// Receives the answer to a request: where in the buffer it stands; `None` if there is no such thing.
    fn answer(
        &mut self,
        request: &'static str,
        sequence: u32,
    ) -> Result<Option<(usize, usize)>, Error> {
        let mut answer = Answer::new(&mut self.buffer, request, sequence, &[libc::ENOENT]);
        self.socket.take_in(&mut answer)?;
        Ok(answer.found())
    }

    /// Lists entries, streamed: memory does not grow with the table.
    ///
    /// The table changes while it is listed, and has no generation: an entry that is there all the while is listed, one
    /// that comes or goes meanwhile may be. While the kernel grows its hash table an entry can come twice.
    ///
    /// # Errors
    /// [`Error::Send`]; those of the listing come from [`Listing::next`].
    pub fn entries<'c>(&'c mut self, filter: &Filter) -> Result<Listing<'c>, Error> {
        self.list(filter, IPCTNL_MSG_CT_GET)
    }

    /// As [`entries`](Self::entries), and sets the counters of each entry that the kernel sends back to 0.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub fn reset_counters<'c>(&'c mut self, filter: &Filter) -> Result<Listing<'c>, Error> {
        self.list(filter, IPCTNL_MSG_CT_GET_CTRZERO)
    }

    fn list<'c>(&'c mut self, filter: &Filter, message: u8) -> Result<Listing<'c>, Error> {
        let write = |writer: &mut MessageWriter<'_>| filter.encode(writer);
        let sequence = self.ask(message, NLM_F_DUMP, filter.family(), write)?;
        Ok(Listing::new(self, *filter, sequence))
    }

    /// Looks one entry up; `None` if there is none.
    ///
    /// # Errors
    /// Those of a request.
    pub fn entry(&mut self, key: &EntryKey) -> Result<Option<EntryRef<'_>>, Error> {
        let found = self.insist(|connection| {
            let family = key.original.family();
            let sequence =
                connection.ask(IPCTNL_MSG_CT_GET, 0, family, |writer| key.encode(writer))?;
            connection.answer("look an entry up", sequence)
        })?;
        let Some((start, end)) = found else {
            return Ok(None);
        };
        let (message, _) = Message::split(&self.buffer[start..end])?;
        let entry = EntryRef::parse(message.payload)?;
        // Of a look-up the kernel does not compare numbers.
        Ok(Some(entry).filter(|entry| key.id.is_none_or(|id| entry.id() == Some(id))))
    }

    /// Makes an entry.
    ///
    /// # Errors
    /// [`Error::Refused`] with `EEXIST` if there is one of a direction of its own, `ENOMEM` if the table is full; those
    /// of a request. After [`Error::Lost`] it may have been made.
    pub fn create(&mut self, entry: &Entry) -> Result<(), Error> {
        let flags = NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
        let family = entry.original.family();
        let sequence = self.ask(IPCTNL_MSG_CT_NEW, flags, family, |writer| {
            entry.encode(writer)
        })?;
        let mut answers = Answers::new(&mut self.buffer, "make an entry", sequence, 1);
        self.socket.take_in(&mut answers)?;
        match answers.absent {
            0 => Ok(()),
            _ => Err(Error::Refused {
                request: "make an entry",
                errno: Errno::new(libc::ENOENT),
                text: None,
            }),
        }
    }

    /// Deletes an entry; whether it was there.
    ///
    /// # Errors
    /// Those of a request.
    pub fn delete(&mut self, key: &EntryKey) -> Result<bool, Error> {
        Ok(self.delete_all([*key])?.deleted == 1)
    }

    /// Deletes entries by what names them, many in each request and without listing any: those that are gone already are
    /// counted, and no error.
    ///
    /// # Errors
    /// Those of a request; what comes before it is deleted. Answers that were lost are asked for again, so that what
    /// was deleted by the first request counts as gone.
    pub fn delete_all(
        &mut self,
        keys: impl IntoIterator<Item = EntryKey>,
    ) -> Result<Deleted, Error> {
        let mut keys = keys.into_iter();
        let mut some = Vec::with_capacity(AT_ONCE);
        let mut deleted = Deleted::default();
        loop {
            some.clear();
            some.extend(keys.by_ref().take(AT_ONCE));
            if some.is_empty() {
                return Ok(deleted);
            }
            deleted += self.insist(|connection| connection.delete_some(&some))?;
        }
    }

    fn delete_some(&mut self, keys: &[EntryKey]) -> Result<Deleted, Error> {
        self.settle();
        self.request.clear();
        // The numbers of what is asked at once follow one another.
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
        let mut answers = Answers::new(&mut self.buffer, "delete an entry", first, keys.len());
        self.socket.take_in(&mut answers)?;
        Ok(Deleted {
            deleted: keys.len() - answers.absent,
            absent: answers.absent,
        })
    }

    /// Deletes the entries that a filter admits, each by what names it and its number: one that takes its place meanwhile
    /// stays. Memory does not grow with the table. (A new [`Connection`] in the same namespace does the deleting.)
    ///
    /// # Errors
    /// As [`entries`](Self::entries) and [`delete_all`](Self::delete_all); [`Error::Open`] if no second socket can be
    /// had.
    pub fn delete_matching(&mut self, filter: &Filter) -> Result<Deleted, Error> {
        self.delete_if(filter, |_| true)
    }

    /// The same, of those alone that `is_it` says yes of.
    ///
    /// # Errors
    /// As [`delete_matching`](Self::delete_matching).
    pub fn delete_if(
        &mut self,
        filter: &Filter,
        mut is_it: impl FnMut(&EntryRef<'_>) -> bool,
    ) -> Result<Deleted, Error> {
        let deleter = self.socket.try_sibling()?;
        let mut deleter = Self::over(deleter).with_retry(self.retry);
        let mut deleted = Deleted::default();
        let mut some = Vec::with_capacity(AT_ONCE);
        let mut listing = self.entries(filter)?;
        loop {
            let entry = listing.next()?;
            let is_end = entry.is_none();
            some.extend(entry.filter(&mut is_it).map(|entry| entry.key()));
            if some.len() == AT_ONCE || is_end {
                deleted += deleter.delete_all(some.drain(..))?;
            }
            if is_end {
                return Ok(deleted);
            }
        }
    }

    /// Has the kernel delete the entries that a filter admits by itself, in one request: no entry comes to this program,
    /// and nobody counts them. `false` if it cannot, and nothing is deleted: then
    /// [`delete_matching`](Self::delete_matching) does it.
    ///
    /// The kernel compares TCP or UDP, their ports and IPv4 addresses; with any other filter it is not asked. (Linux 6.18
    /// compares IPv6 addresses the wrong way round, and no ports of SCTP.) Older kernels refuse the request.
    ///
    /// # Errors
    /// Those of a request.
    pub fn flush_matching(&mut self, filter: &Filter) -> Result<bool, Error> {
        const REQUEST: &str = "delete the entries of a filter";
        if !filter.is_left_to_kernel() {
            return Ok(false);
        }
        let absent = self.insist(|connection| {
            let write = |writer: &mut MessageWriter<'_>| filter.encode(writer);
            let family = filter.family();
            let sequence = connection.ask(IPCTNL_MSG_CT_DELETE, NLM_F_ACK, family, write)?;
            let mut answers = Answers::new(&mut connection.buffer, REQUEST, sequence, 1);
            connection.socket.take_in(&mut answers)?;
            Ok(answers.absent)
        });
        match absent {
            Ok(absent) => Ok(absent == 0),
            // It takes the filter for the whole name of one entry, or does not know such filters here.
            Err(Error::Refused { errno, .. })
                if [libc::EINVAL, libc::EOPNOTSUPP].contains(&errno.number()) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// How many entries there are.
    ///
    /// # Errors
    /// Those of a request.
    pub fn statistics(&mut self) -> Result<Statistics, Error> {
        const REQUEST: &str = "count entries";
        let found = self.insist(|connection| {
            let sequence =
                connection.ask(IPCTNL_MSG_CT_GET_STATS, 0, libc::AF_UNSPEC as u8, |_| {})?;
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

/// Appends a request of this number.
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

/// The request for all entries, to be measured against.
#[doc(hidden)]
pub fn request_for_all() -> Result<Vec<u8>, MessageError> {
    let (mut bytes, any) = (Vec::new(), libc::AF_UNSPEC as u8);
    write(&mut bytes, 1, IPCTNL_MSG_CT_GET, NLM_F_DUMP, any, |_| {})?;
    Ok(bytes)
}

/// The request to delete an entry, to be measured against.
#[doc(hidden)]
pub fn request_to_delete(key: &EntryKey) -> Result<Vec<u8>, MessageError> {
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

/// Takes in the acknowledgements of requests that were sent together.
struct Answers<'c> {
    buffer: &'c mut [u8],
    request: &'static str,
    /// The number of the first one; those of the others follow.
    first: u32,
    number: u32,
    rest: usize,
    /// How many were about what is not there.
    absent: usize,
}

impl<'c> Answers<'c> {
    const fn new(buffer: &'c mut [u8], request: &'static str, first: u32, number: usize) -> Self {
        Self {
            buffer,
            request,
            first,
            number: number as u32, // `AT_ONCE` at most
            rest: number,
            absent: 0,
        }
    }
}

impl Intake for Answers<'_> {
    fn is_complete(&self) -> bool {
        self.rest == 0
    }

    fn room(&mut self) -> Result<&mut [u8], Error> {
        Ok(self.buffer)
    }

    fn take(&mut self, length: usize) -> Result<(), Error> {
        for message in Messages::new(&self.buffer[..length]) {
            let message = message?;
            if message.kind == NLMSG_OVERRUN {
                return Err(Error::Lost(Loss::Overrun));
            }
            // What is left over of an earlier request has another number: an earlier one, or one from before the
            // numbers began anew.
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

    /// A stale answer is none of this request, whether its number is lower or, from before the numbers began anew, higher.
    #[test]
    fn an_answer_to_an_earlier_request_is_passed_over() {
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
        // Over the end of the numbers.
        let mut connection = answering(|message| vec![control(NLMSG_ERROR, 0, message.sequence)]);
        connection.sequence = u32::MAX - 2;
        let deleted = connection.delete_all([key(); 5]).unwrap();
        assert_eq!((deleted.deleted, deleted.absent), (5, 0));
        assert!(connection.delete(&key()).unwrap());
    }

    /// A dump that was given up is received to its end, whatever is lost on the way: the kernel refuses another one
    /// (`EBUSY`) until then.
    #[test]
    fn what_is_left_of_a_listing_is_received_whatever_is_lost() {
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
            connection.settle();
            // Nothing of it is left.
            assert!(connection.unfinished.is_none());
            let error = connection.receive().unwrap_err();
            assert!(
                matches!(error, Error::Lost(Loss::Absent)),
                "{losses}: {error:?}"
            );
            let mut listing = connection.entries(&Filter::all()).unwrap();
            assert!(listing.next().unwrap().is_none());
        }
    }

    #[test]
    fn a_failed_listing_gives_the_same_error_again() {
        for number in [libc::EPERM, libc::ENOMEM, libc::EINVAL] {
            let mut connection =
                answering(move |message| vec![control(NLMSG_ERROR, number, message.sequence)]);
            let mut listing = connection.entries(&Filter::all()).unwrap();
            for _ in 0..3 {
                let error = listing.next().unwrap_err();
                assert_eq!(error.errno().map(Errno::number), Some(number));
                assert!(!error.ask_again(), "{error:?}");
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
