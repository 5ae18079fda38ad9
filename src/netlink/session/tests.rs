//! Users of a session meet the same faults of replies.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chainwright_sys::netlink::{NLM_F_DUMP_INTR, NLM_F_MULTI, NLMSG_DONE, NLMSG_ERROR};
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWSETELEM, NFTA_CHAIN_HANDLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE,
    NFTA_DATA_VALUE, NFTA_LIST_ELEM, NFTA_SET_ELEM_KEY, NFTA_SET_ELEM_LIST_ELEMENTS,
    NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_TABLE,
};
use chainwright_sys::nfnetlink::{NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_HOOK, NFNL_SUBSYS_NFTABLES};
use chainwright_sys::nfnetlink_conntrack::IPCTNL_MSG_CT_NEW;
use chainwright_sys::nfnetlink_hook::NFNL_MSG_HOOK_GET;

use super::*;
use crate::conntrack::{self, Entry, EntryKey, Filter, Tuple};
use crate::netlink::replay::{Replay, Reply};
use crate::nft::{self, Family, Hook, Scope};

/// Makes a request; returns the number of objects in the reply.
type Operation = Box<dyn FnMut() -> Result<usize, Error>>;

/// A user of a session.
struct User {
    name: &'static str,
    /// Whether the request is repeated if its reply is lost or interrupted.
    repeats: bool,
    /// Opens a connection whose last sequence number is this one.
    open: fn(Socket, Retry, u32) -> Operation,
    /// Appends the message of an object; `None` if the kernel acknowledges each of the requests.
    object: Option<fn(&mut MessageWriter<'_>)>,
    subsystem: u8,
    message: u8,
}

fn chain(writer: &mut MessageWriter<'_>) {
    writer
        .string(NFTA_CHAIN_TABLE, b"t")
        .be64(NFTA_CHAIN_HANDLE, 1)
        .string(NFTA_CHAIN_NAME, b"c");
}

fn element(writer: &mut MessageWriter<'_>) {
    let writer = writer
        .string(NFTA_SET_ELEM_LIST_TABLE, b"t")
        .string(NFTA_SET_ELEM_LIST_SET, b"s");
    writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
        writer.nested(NFTA_LIST_ELEM, |writer| {
            writer.nested(NFTA_SET_ELEM_KEY, |writer| {
                writer.be32(NFTA_DATA_VALUE, 7);
            });
        });
    });
}

fn tuple() -> Tuple {
    let address = Ipv4Addr::new(10, 0, 0, 1);
    Tuple::udp((address, 1), (address, 2))
}

fn entry(writer: &mut MessageWriter<'_>) {
    Entry::new(tuple(), Duration::from_secs(9)).encode(writer);
}

fn nft(socket: Socket, retry: Retry, sequence: u32) -> nft::Connection {
    let mut connection = nft::Connection::over(socket).unwrap().with_retry(retry);
    connection.session.sequence = sequence;
    connection
}

fn conntrack(socket: Socket, retry: Retry, sequence: u32) -> conntrack::Connection {
    let mut connection = conntrack::Connection::over(socket).with_retry(retry);
    connection.session.sequence = sequence;
    connection
}

/// Reads a listing to its end. After an error each further call returns the same error.
macro_rules! read {
    ($listing:expr) => {{
        let mut listing = $listing?;
        let mut number = 0;
        loop {
            match listing.try_next() {
                Ok(Some(_)) => number += 1,
                Ok(None) => {
                    assert!(listing.try_next()?.is_none());
                    break Ok(number);
                }
                Err(error) => {
                    for _ in 0..2 {
                        let again = listing.try_next().unwrap_err();
                        assert_eq!(again.to_string(), error.to_string());
                        assert_eq!(again.is_retryable(), error.is_retryable());
                    }
                    let again = listing.for_each(|_| {}).unwrap_err();
                    assert_eq!(again.to_string(), error.to_string());
                    break Err(error);
                }
            }
        }
    }};
}

macro_rules! visit {
    ($listing:expr) => {{
        let mut number = 0;
        $listing?.for_each(|_| number += 1)?;
        Ok(number)
    }};
}

/// The number of objects in every whole reply.
const OBJECTS: usize = 3;

fn users() -> Vec<User> {
    let user = |name, open, object: fn(&mut MessageWriter<'_>), (subsystem, message)| User {
        name,
        repeats: false,
        open,
        object: Some(object),
        subsystem,
        message,
    };
    let chains = (NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWCHAIN);
    let elements = (NFNL_SUBSYS_NFTABLES, NFT_MSG_NEWSETELEM);
    let entries = (NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW);
    vec![
        user(
            "chains, one by one",
            |socket, retry, sequence| {
                let mut nft = nft(socket, retry, sequence);
                Box::new(move || read!(nft.chains(Scope::all())))
            },
            chain,
            chains,
        ),
        user(
            "chains",
            |socket, retry, sequence| {
                let mut nft = nft(socket, retry, sequence);
                Box::new(move || visit!(nft.chains(Scope::all())))
            },
            chain,
            chains,
        ),
        user(
            "elements, one by one",
            |socket, retry, sequence| {
                let mut nft = nft(socket, retry, sequence);
                Box::new(move || read!(nft.elements(Family::IP, "t", "s")))
            },
            element,
            elements,
        ),
        user(
            "elements",
            |socket, retry, sequence| {
                let mut nft = nft(socket, retry, sequence);
                Box::new(move || visit!(nft.elements(Family::IP, "t", "s")))
            },
            element,
            elements,
        ),
        user(
            "entries, one by one",
            |socket, retry, sequence| {
                let mut conntrack = conntrack(socket, retry, sequence);
                Box::new(move || read!(conntrack.entries(&Filter::all())))
            },
            entry,
            entries,
        ),
        user(
            "entries",
            |socket, retry, sequence| {
                let mut conntrack = conntrack(socket, retry, sequence);
                Box::new(move || visit!(conntrack.entries(&Filter::all())))
            },
            entry,
            entries,
        ),
        user(
            "filtered entries",
            |socket, retry, sequence| {
                let mut conntrack = conntrack(socket, retry, sequence);
                let udp = Filter::all().protocol(libc::IPPROTO_UDP as u8);
                Box::new(move || visit!(conntrack.entries(&udp)))
            },
            entry,
            entries,
        ),
        User {
            repeats: true,
            ..user(
                "hook functions",
                |socket, retry, sequence| {
                    let mut nft = nft(socket, retry, sequence);
                    Box::new(move || {
                        let functions = nft.hook_functions(Family::IP, Hook::INPUT, None)?;
                        Ok(functions.len())
                    })
                },
                |_| {},
                (NFNL_SUBSYS_HOOK, NFNL_MSG_HOOK_GET),
            )
        },
        User {
            repeats: true,
            object: None,
            ..user(
                "deletions",
                |socket, retry, sequence| {
                    let mut conntrack = conntrack(socket, retry, sequence);
                    let keys = [EntryKey::from(tuple()); OBJECTS];
                    Box::new(move || Ok(conntrack.delete_all(keys)?.deleted))
                },
                entry,
                entries,
            )
        },
    ]
}

/// What happens to a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The kernel drops a part (`ENOBUFS`).
    Dropped,
    /// The kernel drops several parts.
    DroppedOften,
    /// A part is longer than the buffer.
    Truncated,
    /// A part has no valid length.
    Malformed,
    /// A message is too short for an object.
    MalformedObject,
    /// Receiving a part fails.
    Fails,
    /// The last part is missing.
    Missing,
    /// A message reports that the kernel dropped a part.
    Overrun,
    /// The kernel refuses the request.
    Refused(i32),
    /// The kernel fails after a part of the reply.
    FailsLater,
    /// A change interrupts the dump.
    Interrupted,
    /// Replies to the previous request come first, and a refusal of it.
    Stale,
}

fn control(kind: u16, errno: i32, sequence: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::new(&mut bytes, kind, NLM_F_MULTI, sequence);
    writer.encoded(&(-errno).to_ne_bytes()).encoded(&[0; 16]);
    writer.finish().unwrap();
    bytes
}

impl User {
    /// Returns the type of the messages in its replies.
    fn kind(&self) -> u16 {
        u16::from(self.subsystem) << 8 | u16::from(self.message)
    }

    /// Returns the datagrams of the whole reply to requests with these sequence numbers.
    fn reply(&self, sequences: &[u32]) -> Vec<Vec<u8>> {
        let Some(object) = self.object else {
            let acknowledge = |&sequence: &u32| control(NLMSG_ERROR, 0, sequence);
            return sequences.iter().map(acknowledge).collect();
        };
        let mut bytes = Vec::new();
        let header = NfGenMsg {
            family: libc::AF_INET as u8,
            resource: 0,
        };
        let mut writer =
            MessageWriter::nfnetlink(&mut bytes, self.kind(), NLM_F_MULTI, sequences[0], header);
        object(&mut writer);
        writer.finish().unwrap();
        let mut datagrams = vec![bytes; OBJECTS];
        datagrams.push(control(NLMSG_DONE, 0, sequences[0]));
        datagrams
    }

    /// Returns the replies with a fault; some faults concern the datagram `at` this index.
    fn faulty_reply(&self, fault: Fault, at: usize, sequences: &[u32]) -> Vec<Reply> {
        let mut datagrams = self.reply(sequences);
        let last = datagrams.len() - 1;
        let number = *sequences.last().unwrap();
        let mut before = Vec::new();
        match fault {
            Fault::None => {}
            Fault::Dropped | Fault::DroppedOften | Fault::Fails => {
                let mut replies: Vec<_> = datagrams.into_iter().map(Reply::Datagram).collect();
                replies[at] = Reply::Error(match fault {
                    Fault::Fails => libc::EIO,
                    _ => libc::ENOBUFS,
                });
                if fault == Fault::DroppedOften {
                    let more = vec![Reply::Error(libc::ENOBUFS); 2];
                    replies.splice(at + 1..at + 1, more);
                }
                return replies;
            }
            Fault::Truncated => datagrams[at] = vec![0; RECEIVE_BUFFER + 4],
            Fault::Malformed => datagrams[at] = vec![1; 7],
            Fault::MalformedObject => {
                let mut bytes = Vec::new();
                let writer = MessageWriter::new(&mut bytes, self.kind(), NLM_F_MULTI, number);
                writer.finish().unwrap();
                datagrams.insert(at, bytes);
            }
            Fault::Missing => _ = datagrams.pop(),
            Fault::Overrun => datagrams[at] = control(NLMSG_OVERRUN, 0, number),
            Fault::Refused(errno) => datagrams = vec![control(NLMSG_ERROR, errno, sequences[0])],
            Fault::FailsLater => {
                datagrams[last] = match self.object {
                    Some(_) => control(NLMSG_DONE, libc::EIO, number),
                    None => control(NLMSG_ERROR, libc::EIO, number),
                };
            }
            Fault::Interrupted => {
                let flags = NLM_F_MULTI | NLM_F_DUMP_INTR;
                datagrams[at][6..8].copy_from_slice(&flags.to_ne_bytes());
            }
            Fault::Stale => {
                let earlier = |&number: &u32| match number.wrapping_sub(OBJECTS as u32) | SEQUENCES
                {
                    later if later > number => u32::MAX,
                    earlier => earlier,
                };
                let sequences: Vec<_> = sequences.iter().map(earlier).collect();
                before = self.reply(&sequences);
                before.push(control(NLMSG_ERROR, libc::EPERM, sequences[0]));
            }
        }
        let replies = before.into_iter().chain(datagrams);
        replies.map(Reply::Datagram).collect()
    }

    /// Opens a connection to a kernel whose first reply has this fault; also returns the number of requests, and of
    /// requests that do nothing. The kernel runs one dump at a time.
    fn connect(
        self: &Arc<Self>,
        (fault, at): (Fault, usize),
        retry: Retry,
        sequence: u32,
    ) -> (Operation, [Arc<AtomicUsize>; 2]) {
        let counters = [0; 2].map(|zero| Arc::new(AtomicUsize::new(zero)));
        let user = Arc::clone(self);
        let [counter, probes] = counters.clone();
        let queue = Arc::new(std::sync::OnceLock::<crate::netlink::replay::Queue>::new());
        let own_queue = Arc::clone(&queue);
        let replay = Replay::new(move |request: &[u8]| {
            let messages: Vec<_> = Messages::new(request).map(Result::unwrap).collect();
            let sequences: Vec<_> = messages.iter().map(|message| message.sequence).collect();
            if messages[0].kind == NLMSG_NOOP {
                probes.fetch_add(1, Ordering::Relaxed);
                return vec![Reply::Datagram(control(NLMSG_ERROR, 0, sequences[0]))];
            }
            let is_end = |reply: &Reply| match reply {
                Reply::Datagram(bytes) => bytes[4..6] == NLMSG_DONE.to_ne_bytes(),
                _ => false,
            };
            let is_first = counter.fetch_add(1, Ordering::Relaxed) == 0;
            let is_busy = own_queue.get().unwrap().lock().unwrap().iter().any(is_end);
            match (is_first, is_busy) {
                (_, true) => user.faulty_reply(Fault::Refused(libc::EBUSY), 0, &sequences),
                (true, _) => user.faulty_reply(fault, at, &sequences),
                (false, _) => user.faulty_reply(Fault::None, 0, &sequences),
            }
        });
        let _ = queue.set(replay.queue());
        let socket = Socket::with_transport(Box::new(replay));
        ((self.open)(socket, retry, sequence), counters)
    }
}

fn outcome(result: &Result<usize, Error>) -> String {
    match result {
        Ok(number) => format!("{number} objects"),
        Err(Error::Refused { errno, .. }) => format!("refused: {errno:?}"),
        Err(Error::Lost(Loss::Dropped(errno))) => format!("lost: {errno:?}"),
        Err(Error::Lost(Loss::Overrun)) => "lost: overrun".into(),
        Err(Error::Lost(Loss::MissingReply)) => "lost: missing".into(),
        Err(Error::Truncated { .. }) => "truncated".into(),
        Err(Error::Malformed(_)) => "malformed".into(),
        Err(Error::Receive { source }) => format!("receive: {:?}", source.raw_os_error()),
        Err(Error::Interrupted) => "interrupted".into(),
        Err(error) => panic!("{error:?}"),
    }
}

/// The result of each fault is the same for all, except that some repeat a request whose reply is lost; and the next
/// request works.
#[test]
fn faults_have_the_same_result_for_all_users() {
    let whole = format!("{OBJECTS} objects");
    let dropped = "lost: ENOBUFS";
    let faults = [
        (Fault::None, whole.as_str()),
        (Fault::Dropped, dropped),
        (Fault::DroppedOften, dropped),
        (Fault::Truncated, "truncated"),
        (Fault::Malformed, "malformed"),
        (Fault::MalformedObject, "malformed"),
        (Fault::Fails, "receive: Some(5)"),
        (Fault::Missing, "lost: missing"),
        (Fault::Overrun, "lost: overrun"),
        (Fault::Refused(libc::EBUSY), "refused: EBUSY"),
        (Fault::Refused(libc::EPERM), "refused: EPERM"),
        (Fault::FailsLater, "refused: EIO"),
        (Fault::Interrupted, "interrupted"),
        (Fault::Stale, whole.as_str()),
    ];
    // The second and the third one wrap around during the first request.
    let sequences = [0, u32::MAX, u32::MAX - 1, SEQUENCES | 77];
    for user in users().into_iter().map(Arc::new) {
        for ((fault, expected), at) in faults
            .into_iter()
            .flat_map(|fault| [(fault, 0), (fault, 1)])
        {
            for sequence in sequences {
                for retry in [Retry::ONCE, Retry::DEFAULT] {
                    let what = format!(
                        "{}, {fault:?} at {at}, after {sequence}, {retry:?}",
                        user.name
                    );
                    let (mut operation, [requests, probes]) =
                        user.connect((fault, at), retry, sequence);
                    let result = operation();
                    let is_retried = user.repeats
                        && retry != Retry::ONCE
                        && (expected.starts_with("lost") || fault == Fault::Interrupted);
                    // Acknowledgements are no dump: nothing interrupts them, and other messages are ignored.
                    let no_dump = [Fault::Interrupted, Fault::MalformedObject];
                    let ignored = user.object.is_none() && no_dump.contains(&fault);
                    let expected = match is_retried || ignored {
                        true => whole.as_str(),
                        false => expected,
                    };
                    assert_eq!(outcome(&result), expected, "{what}");
                    let made = requests.load(Ordering::Relaxed);
                    assert_eq!(made, 1 + usize::from(is_retried && !ignored), "{what}");
                    assert_eq!(outcome(&operation()), whole, "{what}");
                    assert_eq!(requests.load(Ordering::Relaxed), made + 1, "{what}");
                    // The session sends a probe only if the end of a dump is not queued.
                    let probed = usize::from(fault == Fault::Missing && user.object.is_some());
                    assert_eq!(probes.load(Ordering::Relaxed), probed, "{what}");
                }
            }
        }
    }
}

/// A second request would have another effect: it would reset again, or find the entry that the first one created.
#[test]
fn requests_with_another_effect_are_not_repeated() {
    type Request = fn(Socket) -> Result<(), Error>;
    let requests: [Request; 2] = [
        |socket| {
            let mut nft = nft(socket, Retry::DEFAULT, 0);
            let object = nft.reset_object(Family::IP, "t", nft::expr::ObjectType::COUNTER, "n");
            object.map(drop)
        },
        |socket| {
            let entry = Entry::new(tuple(), Duration::from_secs(9));
            conntrack(socket, Retry::DEFAULT, 0).create(&entry)
        },
    ];
    for request in requests {
        let made = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&made);
        let replay = Replay::new(move |_: &[u8]| {
            counter.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        });
        let error = request(Socket::with_transport(Box::new(replay))).unwrap_err();
        assert!(matches!(error, Error::Lost(Loss::MissingReply)), "{error}");
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
