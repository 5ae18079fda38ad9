//! Recorded replies of a kernel, replayed unchanged and with all possible faults.
//!
//! `replays/recorded.txt` contains the data that a connection sent (`>`) and received (`<`) on Linux 6.18 (x86-64),
//! in a new network namespace, according to `strace -e trace=sendto,recvfrom -e read=all -e write=all`: the
//! generation, a commit of seven operations, and a snapshot afterwards. The reply to a request follows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chainwright_sys::netlink::{
    NLM_F_DUMP_INTR, NLM_F_MULTI, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN,
};
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETGEN, NFT_MSG_GETRULE, NFT_MSG_NEWGEN,
};
use chainwright_sys::nfnetlink::NFNL_MSG_BATCH_BEGIN;

use super::captured::hex;
use super::connection::message_type;
use super::*;
use crate::Retry;
use crate::netlink::replay::{Replay, Reply};
use crate::netlink::{Error, Loss, MessageWriter, RECEIVE_BUFFER, Socket};

/// A request and its reply.
struct Exchange {
    request: Vec<u8>,
    answer: Vec<Vec<u8>>,
}

fn recorded() -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for line in include_str!("replays/recorded.txt").lines() {
        match line.split_at_checked(2) {
            Some(("> ", bytes)) => exchanges.push(Exchange {
                request: hex(bytes),
                answer: Vec::new(),
            }),
            Some(("< ", bytes)) => exchanges.last_mut().unwrap().answer.push(hex(bytes)),
            _ => assert!(line.is_empty()),
        }
    }
    exchanges
}

/// The recorded snapshot, as printed by `Display`.
const PRINTED: &str = "\
ip nat @addresses
\telement 0200000a  : 0 [end]
\telement 0100000a  : 0 [end]
ip nat services 4
  [ counter pkts 1 bytes 2 ]
  [ immediate reg 0 jump -> endpoints ]

ip nat endpoints 5
  [ immediate reg 0 accept ]

";
/// Number of datagrams in the replies to a snapshot.
const DATAGRAMS: usize = 14;
/// Number of attempts after lost replies.
const MAX_ATTEMPTS: usize = Retry::DEFAULT.losses as usize;
/// Number of operations in the commit.
const OPERATIONS: usize = 7;

const KIND: std::ops::Range<usize> = 4..6;
const FLAGS: std::ops::Range<usize> = 6..8;
const SEQUENCE: std::ops::Range<usize> = 8..12;

fn u16_at(bytes: &[u8], at: std::ops::Range<usize>) -> u16 {
    u16::from_ne_bytes(bytes[at].try_into().unwrap())
}

fn sequence_of(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes(bytes[SEQUENCE].try_into().unwrap())
}

/// Returns the offsets of the messages in a datagram.
fn starts(datagram: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at < datagram.len() {
        starts.push(at);
        let length = u32::from_ne_bytes(datagram[at..at + 4].try_into().unwrap());
        at += (length as usize).next_multiple_of(4);
    }
    starts
}

/// Returns the number of operations in a batch.
fn operations(batch: &[u8]) -> usize {
    let kind = |start: usize| u16_at(batch, start + KIND.start..start + KIND.end);
    let of_tables = message_type(0)..message_type(u8::MAX);
    let starts = starts(batch).into_iter();
    starts
        .filter(|&start| of_tables.contains(&kind(start)))
        .count()
}

/// Returns a datagram of one empty message.
fn bare(kind: u16, flags: u16, sequence: u32) -> Vec<u8> {
    let mut datagram = Vec::new();
    let writer = MessageWriter::new(&mut datagram, kind, flags, sequence);
    writer.finish().unwrap();
    datagram
}

/// A reply datagram about to be received.
struct Answer {
    /// Number of datagrams before it, from the start.
    number: usize,
    /// The type of the request's first message.
    request: u16,
    /// Number of requests of that type so far.
    request_count: usize,
    /// Number of operations in the request.
    operations: usize,
    datagram: Vec<u8>,
}

impl Answer {
    fn unchanged(self) -> Vec<Reply> {
        vec![Reply::Datagram(self.datagram)]
    }
}

/// A kernel with the recorded replies, which `fault_for` can change.
struct Kernel {
    /// The ruleset's generation, 1 or 2.
    generation: u32,
    /// Whether a commit increments it.
    moves: bool,
    /// Whether it acknowledges the end of a batch.
    acknowledges_ends: bool,
    /// Number of requests per type, shared with the test.
    batches: Arc<AtomicUsize>,
    generation_requests: Arc<AtomicUsize>,
}

impl Default for Kernel {
    fn default() -> Self {
        Self {
            generation: 2,
            moves: true,
            acknowledges_ends: true,
            batches: Arc::default(),
            generation_requests: Arc::default(),
        }
    }
}

impl Kernel {
    /// Returns a connection to it.
    fn connect(
        mut self,
        mut fault_for: impl FnMut(Answer) -> Vec<Reply> + Send + 'static,
    ) -> Connection {
        let exchanges = recorded();
        let mut number = 0;
        let mut request_count = std::collections::HashMap::new();
        let replay = Replay::new(move |request: &[u8]| {
            let kind = u16_at(request, KIND);
            let times = request_count.entry(kind).or_insert(0);
            *times += 1;
            let mut replies = Vec::new();
            for datagram in self.answer(&exchanges, request) {
                replies.extend(fault_for(Answer {
                    number,
                    request: kind,
                    request_count: *times,
                    operations: operations(request),
                    datagram,
                }));
                number += 1;
            }
            replies
        });
        Connection::over(Socket::with_transport(Box::new(replay))).unwrap()
    }

    fn answer(&mut self, exchanges: &[Exchange], request: &[u8]) -> Vec<Vec<u8>> {
        let kind = u16_at(request, KIND);
        if kind == NLMSG_NOOP {
            let mut acknowledgement = Vec::new();
            let sequence = sequence_of(request);
            let mut writer = MessageWriter::new(&mut acknowledgement, NLMSG_ERROR, 0, sequence);
            writer.encoded(&[0; 20]);
            writer.finish().unwrap();
            return vec![acknowledgement];
        }
        if kind == NFNL_MSG_BATCH_BEGIN {
            self.batches.fetch_add(1, Ordering::Relaxed);
            let operations = operations(request);
            let batch = |exchange: &&Exchange| u16_at(&exchange.request, KIND) == kind;
            let mut answer = exchanges.iter().find(batch).unwrap().answer.clone();
            let mut end = answer.pop().unwrap();
            assert_eq!(sequence_of(&end), OPERATIONS as u32 + 1);
            if operations == 0 {
                answer.clear();
                end[SEQUENCE].copy_from_slice(&1_u32.to_ne_bytes());
            } else {
                assert_eq!(operations, OPERATIONS);
            }
            let ends = starts(request).len() == operations + 2;
            self.generation += u32::from(self.moves && ends && operations > 0);
            answer.extend((ends && self.acknowledges_ends).then_some(end));
            return answer;
        }
        let same = |exchange: &&Exchange| {
            let recorded = &exchange.request;
            let apart = |bytes: &[u8]| [&bytes[..SEQUENCE.start], &bytes[SEQUENCE.end..]].concat();
            apart(recorded) == apart(request)
        };
        let mut of_request = exchanges.iter().filter(same);
        let mut which = 0;
        if kind == message_type(NFT_MSG_GETGEN) {
            self.generation_requests.fetch_add(1, Ordering::Relaxed);
            // The first one was recorded before the commit, the second one after it.
            which = self.generation as usize - 1;
        }
        let exchange = of_request.nth(which).expect("no such recorded exchange");
        let mut answer = exchange.answer.clone();
        for datagram in &mut answer {
            for start in starts(datagram) {
                let sequence = start + SEQUENCE.start..start + SEQUENCE.end;
                datagram[sequence].copy_from_slice(&request[SEQUENCE]);
            }
        }
        answer
    }
}

/// A fault of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It is missing.
    MissingReply,
    /// The receive buffer was full, and the kernel reports that.
    NoBufferSpace,
    /// It follows a report that something else was dropped.
    AfterLoss,
    /// A message reports that it was dropped.
    Overrun,
    /// It is marked as interrupted by a change.
    Interrupted,
    /// Replies to earlier requests precede it.
    StrayReplies,
    /// It is longer than the receive buffer.
    Cut,
}

impl Fault {
    fn apply(self, answer: Answer) -> Vec<Reply> {
        let mut datagram = answer.datagram.clone();
        match self {
            Self::MissingReply => Vec::new(),
            Self::NoBufferSpace => vec![Reply::Error(libc::ENOBUFS)],
            Self::AfterLoss => [vec![Reply::Error(libc::ENOBUFS)], answer.unchanged()].concat(),
            Self::Overrun => {
                vec![Reply::Datagram(bare(
                    NLMSG_OVERRUN,
                    0,
                    sequence_of(&datagram),
                ))]
            }
            Self::Interrupted => {
                let flags = u16_at(&datagram, FLAGS) | NLM_F_DUMP_INTR;
                datagram[FLAGS].copy_from_slice(&flags.to_ne_bytes());
                vec![Reply::Datagram(datagram)]
            }
            Self::StrayReplies => {
                let earlier = sequence_of(&datagram) - 1;
                let mut object = datagram.clone();
                for start in starts(&object) {
                    let sequence = start + SEQUENCE.start..start + SEQUENCE.end;
                    object[sequence].copy_from_slice(&earlier.to_ne_bytes());
                }
                let strays = [object, bare(NLMSG_DONE, NLM_F_MULTI, earlier)];
                let strays = strays.into_iter().map(Reply::Datagram);
                strays.chain(answer.unchanged()).collect()
            }
            Self::Cut => {
                datagram.resize(RECEIVE_BUFFER + 4, 0);
                vec![Reply::Datagram(datagram)]
            }
        }
    }
}

/// Returns a connection to a kernel whose reply with this number has this fault, once.
fn with_fault(index: usize, fault: Fault) -> Connection {
    Kernel::default().connect(move |answer| match answer.number == index {
        true => fault.apply(answer),
        false => answer.unchanged(),
    })
}

#[test]
fn a_snapshot_is_read() {
    let datagrams = Arc::new(AtomicUsize::new(0));
    let counter = datagrams.clone();
    let mut nft = Kernel::default().connect(move |answer| {
        counter.fetch_add(1, Ordering::Relaxed);
        answer.unchanged()
    });
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    assert_eq!(snapshot.to_string(), PRINTED);
    assert_eq!(snapshot.generation().map(Generation::number), Some(2));
    assert_eq!(datagrams.load(Ordering::Relaxed), DATAGRAMS);
}

#[test]
fn a_snapshot_is_complete_whichever_reply_is_lost() {
    use Fault::{AfterLoss, Interrupted, MissingReply, NoBufferSpace, Overrun, StrayReplies};
    for index in 0..DATAGRAMS {
        for fault in [
            MissingReply,
            NoBufferSpace,
            AfterLoss,
            Overrun,
            Interrupted,
            StrayReplies,
        ] {
            let mut nft = with_fault(index, fault);
            let snapshot = nft.snapshot(Scope::all()).unwrap();
            assert_eq!(snapshot.to_string(), PRINTED, "{fault:?} at {index}");
            assert_eq!(snapshot.generation().map(Generation::number), Some(2));
        }
    }
}

#[test]
fn reading_once_with_a_lost_reply_fails_or_has_no_generation() {
    use Fault::{AfterLoss, Interrupted, NoBufferSpace, Overrun};
    // The first and the last request read the generation, which is retried separately.
    for index in 1..DATAGRAMS - 1 {
        for fault in [NoBufferSpace, AfterLoss, Overrun, Interrupted] {
            let read = with_fault(index, fault).snapshot_once(Scope::all());
            match (fault, read) {
                (Interrupted, Ok(snapshot)) => assert_eq!(snapshot.generation(), None),
                (NoBufferSpace | AfterLoss | Overrun, Err(Error::Lost(_))) => {}
                (_, read) => panic!("{fault:?} at {index}: {read:?}"),
            }
        }
    }
}

#[test]
fn a_truncated_reply_is_an_error_and_the_next_request_works() {
    for index in 0..DATAGRAMS {
        let mut nft = with_fault(index, Fault::Cut);
        match nft.snapshot(Scope::all()) {
            Err(SnapshotError::Netlink(Error::Truncated { length, capacity })) => {
                assert_eq!((length, capacity), (RECEIVE_BUFFER + 4, RECEIVE_BUFFER));
            }
            read => panic!("{index}: {read:?}"),
        }
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        assert_eq!(snapshot.to_string(), PRINTED, "{index}");
    }
}

#[test]
fn a_request_is_retried_a_few_times() {
    for fault in [Fault::MissingReply, Fault::NoBufferSpace, Fault::Overrun] {
        let kernel = Kernel::default();
        let generation_requests = kernel.generation_requests.clone();
        let mut nft = kernel.connect(move |answer| match answer.request_count < MAX_ATTEMPTS {
            true => fault.apply(answer),
            false => answer.unchanged(),
        });
        assert_eq!(nft.generation().unwrap().number(), 2, "{fault:?}");
        assert_eq!(generation_requests.load(Ordering::Relaxed), MAX_ATTEMPTS);

        let mut nft = Kernel::default().connect(move |answer| fault.apply(answer));
        let Err(Error::Lost(loss)) = nft.generation() else {
            panic!("{fault:?}: the request should fail");
        };
        match fault {
            Fault::MissingReply => assert_eq!(loss, Loss::MissingReply),
            Fault::NoBufferSpace => {
                assert_eq!(loss, Loss::Dropped(crate::Errno::new(libc::ENOBUFS)))
            }
            _ => assert_eq!(loss, Loss::Overrun),
        }
    }
}

#[test]
fn an_interrupted_listing_keeps_returning_its_error() {
    for index in 0..2 {
        let mut nft = with_fault(index, Fault::Interrupted);
        let mut chains = nft.chains(Scope::all()).unwrap();
        assert_eq!(chains.try_next().unwrap().unwrap().name(), "services");
        assert_eq!(chains.try_next().unwrap().unwrap().name(), "endpoints");
        assert!(matches!(chains.try_next(), Err(Error::Interrupted)));
        assert!(matches!(chains.try_next(), Err(Error::Interrupted)));

        let mut nft = with_fault(index, Fault::Interrupted);
        let mut seen = 0;
        let ended = nft.chains(Scope::all()).unwrap().for_each(|_| seen += 1);
        assert!(matches!((ended, seen), (Err(Error::Interrupted), 2)));

        // The generation is read first.
        let mut nft = with_fault(index + 1, Fault::Interrupted);
        let mut list = List::<Chain<'_>>::new(Scope::all());
        list.refresh(&mut nft).unwrap();
        assert_eq!(
            (list.len(), list.generation().map(Generation::number)),
            (2, Some(2))
        );
    }
}

#[test]
fn a_listing_that_lacks_a_reply_is_an_error() {
    for fault in [
        Fault::MissingReply,
        Fault::NoBufferSpace,
        Fault::AfterLoss,
        Fault::Overrun,
    ] {
        for index in 0..2 {
            if (fault, index) == (Fault::MissingReply, 0) {
                continue; // the kernel reports a drop of any but the last
            }
            let mut nft = with_fault(index, fault);
            let chains = nft.chains(Scope::all()).unwrap();
            let mut seen = 0;
            let Err(Error::Lost(_)) = chains.for_each(|_| seen += 1) else {
                panic!("{fault:?} at {index}: the listing should fail");
            };
            assert_eq!(seen, 2 * index);
            assert_eq!(
                nft.generation().unwrap().number(),
                2,
                "{fault:?} at {index}"
            );
            // The second listing contains nothing of the first.
            let mut seen = 0;
            let chains = nft.chains(Scope::all()).unwrap();
            chains.for_each(|_| seen += 1).unwrap();
            assert_eq!(seen, 2);
        }
    }
}

/// Lists chains, reads one, abandons the rest, and reads the generation.
fn abandon_and_request(mut nft: Connection) {
    let mut chains = nft.chains(Scope::all()).unwrap();
    assert_eq!(chains.try_next().unwrap().unwrap().name(), "services");
    drop(chains);
    assert_eq!(nft.generation().unwrap().number(), 2);
    let mut chains = nft.chains(Scope::all()).unwrap();
    let mut seen = 0;
    while chains.try_next().unwrap().is_some() {
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn an_abandoned_listing_does_not_answer_the_next_request() {
    abandon_and_request(Kernel::default().connect(Answer::unchanged));
    for fault in [
        Fault::MissingReply,
        Fault::NoBufferSpace,
        Fault::AfterLoss,
        Fault::Overrun,
        Fault::Interrupted,
        Fault::Cut,
        Fault::StrayReplies,
    ] {
        abandon_and_request(with_fault(1, fault)); // the dump's end
    }
}

/// If the kernel has no memory for the next part of a dump it reports that, and continues when the socket is read
/// again.
#[test]
fn an_abandoned_halted_dump_is_resumed() {
    let halted = Arc::new(AtomicUsize::new(0));
    let resumed = halted.clone();
    let mut end = None;
    let nft = Kernel::default().connect(move |answer| {
        let is_dump = answer.request == message_type(NFT_MSG_GETCHAIN);
        if is_dump && answer.request_count == 1 && answer.number == 1 {
            end = Some(answer.unchanged());
            return vec![Reply::Error(libc::ENOMEM)];
        }
        // Only the drain's own request continues it.
        let rest = end
            .take_if(|_| answer.request == NLMSG_NOOP)
            .inspect(|_| _ = resumed.fetch_add(1, Ordering::Relaxed));
        [answer.unchanged(), rest.unwrap_or_default()].concat()
    });
    abandon_and_request(nft);
    assert_eq!(halted.load(Ordering::Relaxed), 1);
}

#[test]
fn a_retry_limit_of_one_makes_one_attempt() {
    for index in 0..DATAGRAMS {
        let mut nft = with_fault(index, Fault::NoBufferSpace).with_retry(Retry::ONCE);
        match nft.snapshot(Scope::all()) {
            Err(SnapshotError::Netlink(Error::Lost(_))) => {}
            read => panic!("{index}: {read:?}"),
        }
        let mut nft = with_fault(index, Fault::Interrupted).with_retry(Retry::ONCE);
        match nft.snapshot(Scope::all()) {
            // A generation request is no dump, so it cannot be interrupted.
            Ok(_) if [0, DATAGRAMS - 1].contains(&index) => {}
            Err(SnapshotError::Interrupted {
                attempts: 1,
                snapshot,
            }) => {
                assert_eq!(snapshot.to_string(), PRINTED);
                assert_eq!(snapshot.generation(), None);
            }
            read => panic!("{index}: {read:?}"),
        }
    }
    let kernel = Kernel {
        generation: 1,
        moves: false,
        ..Kernel::default()
    };
    let batches = kernel.batches.clone();
    let mut nft = kernel
        .connect(|answer| Lost::All.apply(answer))
        .with_retry(Retry::ONCE);
    let error = nft.commit(&transaction()).unwrap_err();
    assert_eq!(error.outcome, Outcome::NothingApplied);
    assert_eq!(batches.load(Ordering::Relaxed), 1);
}

#[test]
fn the_last_attempt_is_returned_at_the_deadline() {
    let mut nft = Kernel::default()
        .connect(
            |answer| match answer.request == message_type(NFT_MSG_GETCHAIN) {
                true => Fault::Interrupted.apply(answer),
                false => answer.unchanged(),
            },
        )
        .with_retry(Retry::within(std::time::Duration::from_millis(5)));
    match nft.snapshot(Scope::all()) {
        Err(SnapshotError::Interrupted { attempts, snapshot }) => {
            assert!(attempts >= 2);
            assert_eq!(snapshot.to_string(), PRINTED);
        }
        read => panic!("{read:?}"),
    }
    let mut list = List::<Chain<'_>>::new(Scope::all());
    assert!(matches!(list.refresh(&mut nft), Err(Error::Interrupted)));
}

/// Position of the generation's number in its reply.
const GENERATION: std::ops::Range<usize> = 24..28;

/// A part is read separately at most 32 times while the generation keeps changing, and then with the whole.
#[test]
fn a_changing_part_is_read_with_the_whole() {
    const SETS: &str = "\
ip nat @addresses
\telement 0200000a  : 0 [end]
\telement 0100000a  : 0 [end]
";
    let table = [
        (1, Retry::DEFAULT, Ok(SETS)),
        (31, Retry::DEFAULT, Ok(SETS)),
        (31, Retry::times(32), Ok(SETS)),
        (32, Retry::DEFAULT, Ok(PRINTED)),
        (32, Retry::times(33), Ok(PRINTED)),
        (32, Retry::times(32), Err(32)),
        (7, Retry::times(7), Err(7)),
    ];
    for (disturbed, retry, expected) in table {
        let rules = Arc::new(AtomicUsize::new(0));
        let of_rules = rules.clone();
        let mut nft = Kernel::default()
            .connect(move |mut answer| {
                if answer.request == message_type(NFT_MSG_GETGEN) {
                    // Two generation requests for each attempt.
                    let number = match answer.request_count <= 2 * disturbed {
                        true => answer.request_count as u32 + 2,
                        false => 2,
                    };
                    answer.datagram[GENERATION].copy_from_slice(&number.to_be_bytes());
                }
                if answer.request == message_type(NFT_MSG_GETRULE) {
                    of_rules.store(answer.request_count, Ordering::Relaxed);
                }
                answer.unchanged()
            })
            .with_retry(retry);
        let read = nft.snapshot_sets(Scope::all(), |_| true);
        let read = match read {
            Ok(part) => {
                assert_eq!(part.generation().map(Generation::number), Some(2));
                Ok(part.to_string())
            }
            Err(SnapshotError::Interrupted { attempts, .. }) => Err(attempts),
            Err(other) => panic!("{disturbed}, {retry:?}: {other}"),
        };
        assert_eq!(read, expected.map(str::to_owned), "{disturbed}, {retry:?}");
        let unchanged = usize::from(expected == Ok(PRINTED));
        assert_eq!(
            rules.load(Ordering::Relaxed),
            unchanged,
            "{disturbed}, {retry:?}"
        );
        assert_eq!(nft.retry(), retry);
    }
}

/// Returns a transaction with as many operations as the recorded one.
fn transaction() -> Transaction {
    let mut tx = Transaction::new();
    for number in 0..OPERATIONS {
        tx.add(&Table::new(Family::IP, number.to_string())).unwrap();
    }
    tx
}

/// The replies to a commit that are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    None,
    /// All of them.
    All,
    /// Those of the first operation, the last one, or the end.
    First,
    Last,
    End,
    /// The kernel reports a loss, and the lost replies are missing.
    NoBufferSpace,
    /// The decisive reply arrives, after a report of a loss and replies to other requests.
    Before,
}

impl Lost {
    fn apply(self, answer: Answer) -> Vec<Reply> {
        if answer.request != NFNL_MSG_BATCH_BEGIN || answer.operations == 0 {
            return answer.unchanged();
        }
        let sequence = sequence_of(&answer.datagram) as usize;
        let (first, last) = (sequence == 1, sequence == OPERATIONS);
        let is_end = sequence == OPERATIONS + 1;
        match self {
            Self::All if first || last || is_end => Vec::new(),
            Self::First if first => Vec::new(),
            Self::Last if last => Vec::new(),
            Self::End if is_end => Vec::new(),
            Self::NoBufferSpace if first => vec![Reply::Error(libc::ENOBUFS)],
            Self::NoBufferSpace if is_end => Vec::new(),
            Self::Before if first => {
                let stray = bare(message_type(NFT_MSG_NEWGEN), 0, 1 << 31);
                vec![Reply::Datagram(stray), Reply::Error(libc::ENOBUFS)]
            }
            _ => answer.unchanged(),
        }
    }
}

/// Commits to a kernel; returns the result and the number of batches sent.
fn commit(moves: bool, acknowledges_ends: bool, lost: Lost) -> (Result<(), CommitError>, usize) {
    let kernel = Kernel {
        generation: 1,
        moves,
        acknowledges_ends,
        ..Kernel::default()
    };
    let batches = kernel.batches.clone();
    let mut nft = kernel.connect(move |answer| lost.apply(answer));
    let result = nft.commit(&transaction());
    (result, batches.load(Ordering::Relaxed))
}

#[test]
fn outcome_of_a_commit_with_lost_replies() {
    use Outcome::{NothingApplied, Unknown};
    // Whether the generation changes, and whether the kernel acknowledges ends; the lost replies; the outcome if it
    // is an error, and the number of batches.
    let cases = [
        ((true, true), Lost::None, None, 1),
        ((false, true), Lost::None, None, 1), // nothing to change
        ((true, true), Lost::First, None, 1),
        ((true, true), Lost::Last, None, 1),
        ((true, true), Lost::End, None, 1),
        ((true, true), Lost::Before, None, 1),
        ((true, true), Lost::All, Some(Unknown), 1),
        ((true, true), Lost::NoBufferSpace, Some(Unknown), 1),
        // Nothing was applied, so the batch is sent again.
        ((false, true), Lost::All, Some(NothingApplied), MAX_ATTEMPTS),
        (
            (false, true),
            Lost::NoBufferSpace,
            Some(NothingApplied),
            MAX_ATTEMPTS,
        ),
        // One empty batch detects whether the kernel acknowledges ends.
        (
            (false, true),
            Lost::End,
            Some(NothingApplied),
            MAX_ATTEMPTS + 1,
        ),
        // Kernels before 6.10.
        ((true, false), Lost::None, None, 1),
        ((false, false), Lost::None, None, 2),
        ((true, false), Lost::First, Some(Unknown), 1),
        ((true, false), Lost::Last, Some(Unknown), 1),
        ((true, false), Lost::All, Some(Unknown), 1),
        (
            (false, false),
            Lost::Last,
            Some(NothingApplied),
            MAX_ATTEMPTS,
        ),
        (
            (false, false),
            Lost::All,
            Some(NothingApplied),
            MAX_ATTEMPTS,
        ),
    ];
    for ((moves, acknowledges_ends), lost, outcome, batches) in cases {
        let case = format!("{lost:?}, moves: {moves}, ends: {acknowledges_ends}");
        let (result, sent) = commit(moves, acknowledges_ends, lost);
        let failed = result.err();
        assert_eq!(
            failed.as_ref().map(|error| error.outcome),
            outcome,
            "{case}"
        );
        assert_eq!(sent, batches, "{case}");
        if let Some(error) = failed {
            assert!(error.failures.is_empty(), "{case}: {error}");
            assert!(
                matches!(error.source, Some(Error::Lost(_))),
                "{case}: {error:?}"
            );
        }
    }
}

#[test]
fn a_commit_with_lost_replies_and_unreadable_generation_is_unknown() {
    for moves in [false, true] {
        let kernel = Kernel {
            generation: 1,
            moves,
            ..Kernel::default()
        };
        let mut nft = kernel.connect(|answer| match answer.request {
            NFNL_MSG_BATCH_BEGIN => Vec::new(),
            _ if answer.request_count > 1 => Vec::new(),
            _ => answer.unchanged(),
        });
        let error = nft.commit(&transaction()).unwrap_err();
        assert_eq!(error.outcome, Outcome::Unknown);
    }
}

#[test]
fn a_commit_that_compares_no_generations_and_has_no_reply_is_unknown() {
    let kernel = Kernel {
        moves: false,
        ..Kernel::default()
    };
    let generation_requests = kernel.generation_requests.clone();
    let mut nft = kernel.connect(|answer| match answer.request {
        NFNL_MSG_BATCH_BEGIN if answer.request_count > 1 => Vec::new(),
        _ => answer.unchanged(),
    });
    nft.set_compares_generations(false);
    // The first commit detects that the kernel acknowledges ends.
    nft.commit(&transaction()).unwrap();
    let error = nft.commit(&transaction()).unwrap_err();
    assert_eq!(error.outcome, Outcome::Unknown);
    assert_eq!(generation_requests.load(Ordering::Relaxed), 1);
}

#[test]
fn one_rejection_among_lost_replies_means_nothing_was_applied() {
    for acknowledges_ends in [false, true] {
        let kernel = Kernel {
            generation: 1,
            moves: false,
            acknowledges_ends,
            ..Kernel::default()
        };
        let mut nft = kernel.connect(|mut answer| {
            if answer.request != NFNL_MSG_BATCH_BEGIN {
                return answer.unchanged();
            }
            match sequence_of(&answer.datagram) as usize {
                OPERATIONS => {
                    answer.datagram[16..20].copy_from_slice(&(-libc::EEXIST).to_ne_bytes());
                    [vec![Reply::Error(libc::ENOBUFS)], answer.unchanged()].concat()
                }
                1 => answer.unchanged(),
                _ => Vec::new(),
            }
        });
        let error = nft.commit(&transaction()).unwrap_err();
        assert_eq!(error.outcome, Outcome::NothingApplied);
        assert!(error.incomplete);
        let [failure] = &error.failures[..] else {
            panic!("{error}");
        };
        assert_eq!(failure.errno.number(), libc::EEXIST);
        assert_eq!(failure.operation.as_ref().unwrap().index, OPERATIONS - 1);
    }
}

#[test]
fn a_check_with_lost_replies_is_repeated() {
    for (lost, batches, ok) in [
        (Lost::None, 1, true),
        (Lost::End, 1, true), // the end was not sent
        (Lost::All, MAX_ATTEMPTS, false),
        (Lost::First, MAX_ATTEMPTS, false),
        (Lost::NoBufferSpace, MAX_ATTEMPTS, false),
    ] {
        let kernel = Kernel::default();
        let sent = kernel.batches.clone();
        let mut nft = kernel.connect(move |answer| lost.apply(answer));
        let checked = nft.check(&transaction());
        assert_eq!(checked.is_ok(), ok, "{lost:?}");
        assert_eq!(sent.load(Ordering::Relaxed), batches, "{lost:?}");
        if let Err(error) = checked {
            assert_eq!(error.outcome, Outcome::NothingApplied);
        }
    }
}

#[test]
fn stale_replies_do_not_answer_a_commit() {
    // A listing is rejected midway and its rest stays queued; its sequence numbers are those of a batch.
    let kernel = Kernel {
        generation: 1,
        ..Kernel::default()
    };
    let mut nft = kernel.connect(|answer| {
        if answer.request != message_type(NFT_MSG_GETGEN) {
            return answer.unchanged();
        }
        // Acknowledgements of another batch, after the reply to the generation request before the commit.
        let batch = recorded().remove(1).answer.into_iter().map(|mut datagram| {
            datagram[16..20].copy_from_slice(&(-libc::EEXIST).to_ne_bytes());
            Reply::Datagram(datagram)
        });
        answer.unchanged().into_iter().chain(batch).collect()
    });
    nft.commit(&transaction()).unwrap();
}
