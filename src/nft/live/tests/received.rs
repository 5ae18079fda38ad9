//! Replays what monitors and tracers receive: complete, and with errors on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chainwright_sys::nf_tables::{NFT_MSG_TRACE, NFT_TRACETYPE_RULE};
use chainwright_sys::nf_tables::{NFTA_TRACE_ID, NFTA_TRACE_TYPE};

use super::*;
use crate::errno::Errno;
use crate::netlink::replay::{Queue, Replay, Reply};
use crate::netlink::{RECEIVE_BUFFER, Socket};
use crate::nft::captured::hex;
use crate::nft::generation::Origin;
use crate::nft::live::{Monitor, MonitorOptions, TracedItem, Tracer, TracerOptions};

/// The port of a replayed socket.
const REPLAYED: u32 = 0;

/// A kernel that answers each request with the result of `reply` for its number, from 0.
struct Kernel {
    monitor: Monitor,
    queue: Queue,
    requests: Arc<AtomicUsize>,
}

impl Kernel {
    fn open(mut answer: impl FnMut(usize) -> Vec<Reply> + Send + 'static) -> Result<Self, Error> {
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        let replay = Replay::new(move |_| answer(counter.fetch_add(1, Ordering::Relaxed)));
        let queue = replay.queue();
        let monitor = MonitorOptions::default()
            .open_over(Socket::with_transport(Box::new(replay)), Origin::Recorded)?;
        Ok(Self {
            monitor,
            queue,
            requests,
        })
    }

    /// Opens a kernel with generation 1 that answers the second request with `generation`.
    #[track_caller]
    fn then(generation: u32) -> Self {
        let answers = [1, generation];
        Self::open(move |number| vec![reported(answers[number])]).unwrap()
    }

    fn queue(&self, replies: impl IntoIterator<Item = Reply>) {
        self.queue.lock().unwrap().extend(replies);
    }

    /// Returns all items of the queue.
    #[track_caller]
    fn items(&mut self) -> Vec<Item> {
        let items = std::iter::from_fn(|| self.monitor.try_receive().unwrap());
        items.collect()
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

/// Returns the reply to a request.
fn reported(generation: u32) -> Reply {
    Reply::Datagram(end(REPLAYED, generation))
}

/// Returns the datagrams of the generations 2 and 3 from Linux 6.18.
fn recorded() -> [Vec<u8>; 3] {
    let renamed = hex(RENAMED);
    [hex(MADE), hex(MADE_BY), renamed]
}

/// Returns a transaction that creates this generation, in one datagram.
fn transaction(generation: u32) -> Reply {
    Reply::Datagram([chain(ONE, generation, 9), end(ONE, generation)].concat())
}

/// Returns the generations of an item, and whether it is a change.
fn of(item: &Item) -> (u32, u32, bool) {
    match item {
        Item::Change(change) => {
            let number = change.generation().number();
            (number - 1, number, true)
        }
        Item::Lost(lost) => (lost.after.number(), lost.through.number(), false),
        Item::OutOfBand(event) => panic!("{event:?}"),
    }
}

#[track_caller]
fn cause(item: &Item) -> &Cause {
    match item {
        Item::Lost(lost) => &lost.cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn complete_transactions_are_reported() {
    let mut kernel = Kernel::then(0);
    assert_eq!(kernel.monitor.reported(), Generation::recorded(1));
    assert!(kernel.items().is_empty());
    kernel.queue(recorded().map(Reply::Datagram));
    // A signal between two datagrams has no effect.
    kernel.queue([Reply::Error(libc::EINTR), transaction(4)]);
    let items = kernel.items();
    let of: Vec<_> = items.iter().map(of).collect();
    assert_eq!(of, [(1, 2, true), (2, 3, true), (3, 4, true)]);
    let Item::Change(made) = &items[0] else {
        panic!("{items:?}");
    };
    assert_eq!(descriptions(made).len(), 3);
    assert_eq!(kernel.requests(), 1);
}

#[test]
fn events_dropped_by_the_kernel_are_reported_as_lost() {
    for (number, loss) in [
        (libc::ENOBUFS, Loss::Dropped(Errno::new(libc::ENOBUFS))),
        (libc::ENOMEM, Loss::Dropped(Errno::new(libc::ENOMEM))),
    ] {
        let mut kernel = Kernel::then(4);
        let [made, made_by, renamed] = recorded().map(Reply::Datagram);
        kernel.queue([made, made_by, Reply::Error(number), renamed, transaction(4)]);
        let items = kernel.items();
        // Messages queued at that moment may come before or after the gap.
        let of: Vec<_> = items.iter().map(of).collect();
        assert_eq!(of, [(1, 2, true), (2, 4, false)]);
        assert_eq!(cause(&items[1]), &Cause::Dropped(loss));
        assert_eq!(kernel.requests(), 2);
        kernel.queue([transaction(5)]);
        assert!(matches!(&kernel.items()[..], [Item::Change(_)]));
    }
}

#[test]
fn a_truncated_datagram_is_a_loss() {
    let mut kernel = Kernel::then(2);
    let made = hex(MADE).repeat(RECEIVE_BUFFER / hex(MADE).len() + 1);
    let length = made.len();
    kernel.queue([made, hex(MADE_BY)].map(Reply::Datagram));
    let items = kernel.items();
    assert_eq!(items.iter().map(of).collect::<Vec<_>>(), [(1, 2, false)]);
    let capacity = RECEIVE_BUFFER;
    assert_eq!(cause(&items[0]), &Cause::Cut { length, capacity });
    // At the start nothing can be missing: the request is only repeated.
    let cut = Reply::Datagram(vec![0; RECEIVE_BUFFER + 1]);
    let kernel = Kernel::open(move |number| match number {
        0 => vec![cut.clone(), reported(6)],
        _ => vec![reported(7)],
    });
    assert_eq!(kernel.unwrap().monitor.reported(), Generation::recorded(7));
}

/// A process with `CAP_NET_ADMIN` may send datagrams to a monitor's port and to the group. The monitor ignores them,
/// because they are not from the kernel.
#[test]
fn datagrams_of_others_are_ignored() {
    let forged = || {
        let whole = |generation| [chain(ONE, generation, 1), end(ONE, generation)].concat();
        let answer = end(REPLAYED, 9);
        let overrun = {
            let mut bytes = Vec::new();
            let writer = MessageWriter::new(&mut bytes, NLMSG_OVERRUN, 0, 0);
            writer.finish().unwrap();
            bytes
        };
        let sent = [whole(2), whole(9), answer, overrun, vec![1, 2, 3]];
        let too_long = vec![0; RECEIVE_BUFFER + 1];
        sent.into_iter()
            .chain([too_long])
            .map(|datagram| Reply::Sent(OTHER, datagram))
    };
    let answers = [1, 4];
    let mut kernel = Kernel::open(move |number| {
        let answer = reported(answers[number]);
        forged().chain([answer]).chain(forged()).collect()
    })
    .unwrap();
    assert_eq!(kernel.monitor.reported(), Generation::recorded(1));
    assert!(kernel.items().is_empty());
    for datagram in recorded() {
        kernel.queue(forged().chain([Reply::Datagram(datagram)]));
    }
    kernel.queue([Reply::Error(libc::ENOBUFS)]);
    kernel.queue(forged());
    let items = kernel.items();
    let of: Vec<_> = items.iter().map(of).collect();
    assert_eq!(of, [(1, 2, true), (2, 3, true), (3, 4, false)]);
    assert_eq!(kernel.requests(), 2);
}

#[test]
fn unanswered_requests_fail() {
    let unanswered = Kernel::open(|_| Vec::new());
    assert!(matches!(
        unanswered.err(),
        Some(Error::Lost(Loss::MissingReply))
    ));
    // It continues when the kernel answers again; then it reports the loss.
    let mut kernel = Kernel::open(|number| match number {
        0 => vec![reported(1)],
        1..=4 => Vec::new(),
        _ => vec![reported(3)],
    })
    .unwrap();
    kernel.queue([Reply::Error(libc::ENOBUFS)]);
    let error = kernel.monitor.try_receive().unwrap_err();
    assert!(
        matches!(error, Error::Lost(Loss::MissingReply)),
        "{error:?}"
    );
    assert_eq!(kernel.requests(), 5);
    let items = kernel.items();
    assert_eq!(items.iter().map(of).collect::<Vec<_>>(), [(1, 3, false)]);
}

#[test]
fn a_socket_error_loses_no_events() {
    let mut kernel = Kernel::then(0);
    let [made, made_by, renamed] = recorded().map(Reply::Datagram);
    kernel.queue([made, Reply::Error(libc::EBADF), made_by, renamed]);
    let error = kernel.monitor.try_receive().unwrap_err();
    assert!(matches!(error, Error::Receive { .. }), "{error:?}");
    let items = kernel.items();
    let of: Vec<_> = items.iter().map(of).collect();
    assert_eq!(of, [(1, 2, true), (2, 3, true)]);
}

/// Whatever happens to one datagram, the reported generations have no gap up to the last one, and each reported change
/// was committed.
#[test]
fn reported_generations_are_contiguous() {
    const LAST: u32 = 6;
    let sent: Vec<Vec<u8>> = (2..=LAST)
        .flat_map(|generation| [chain(ONE, generation, 1), end(ONE, generation)])
        .collect();
    type Delivery = fn(Vec<u8>) -> Vec<Reply>;
    let deliveries: [(&str, Delivery); 5] = [
        ("missing", |_| Vec::new()),
        ("dropped", |_| vec![Reply::Error(libc::ENOBUFS)]),
        ("short", |datagram| {
            vec![Reply::Datagram(datagram[..datagram.len() - 4].to_vec())]
        }),
        ("cut", |datagram| {
            let missing = vec![0; RECEIVE_BUFFER];
            vec![Reply::Datagram([datagram, missing].concat())]
        }),
        ("of another", |mut datagram| {
            datagram[12..16].copy_from_slice(&OTHER.to_ne_bytes());
            vec![Reply::Datagram(datagram)]
        }),
    ];
    for (name, deliver) in deliveries {
        for place in 0..sent.len() {
            let mut kernel = Kernel::then(LAST);
            let (before, rest) = sent.split_at(place);
            kernel.queue(before.iter().cloned().map(Reply::Datagram));
            kernel.queue(deliver(rest[0].clone()));
            kernel.queue(rest[1..].iter().cloned().map(Reply::Datagram));
            kernel.queue([transaction(LAST + 1)]);
            let mut reached = 1;
            for item in kernel.items() {
                let (after, through, _) = of(&item);
                assert_eq!(after, reached, "{name} at {place}: {item:?}");
                reached = through;
            }
            // A transaction without its event looks like an empty one; every other loss is noticed.
            let silent = name == "missing" && place % 2 == 0;
            let noticed = kernel.requests() > 1;
            assert_eq!(noticed, !silent, "{name} at {place}");
            let last = if noticed { LAST } else { LAST + 1 };
            assert_eq!(reached, last, "{name} at {place}");
        }
    }
}

/// Opens a tracer with these datagrams queued.
fn tracer(replies: impl IntoIterator<Item = Reply>) -> Tracer {
    let replay = Replay::new(|_| Vec::new());
    replay.queue().lock().unwrap().extend(replies);
    let socket = Socket::with_transport(Box::new(replay));
    TracerOptions::default().open_over(socket).unwrap()
}

#[test]
fn a_tracer_reports_trace_steps_and_losses() {
    let step = |id: u32| {
        message(NFT_MSG_TRACE, 0, 0, |writer| {
            writer.be32(NFTA_TRACE_ID, id);
            writer.be32(NFTA_TRACE_TYPE, NFT_TRACETYPE_RULE);
        })
    };
    let mut tracer = tracer([
        Reply::Sent(OTHER, step(7)),
        Reply::Datagram([step(1), step(2)].concat()),
        Reply::Error(libc::ENOBUFS),
        Reply::Sent(OTHER, vec![0; RECEIVE_BUFFER + 1]),
        Reply::Datagram(step(3)),
        Reply::Datagram(vec![0; RECEIVE_BUFFER + 1]),
        Reply::Datagram(step(4)),
    ]);
    let mut next = || tracer.try_receive();
    let id = |item| match item {
        Ok(Some(TracedItem::Step(step))) => step.view().id(),
        other => panic!("{other:?}"),
    };
    assert_eq!(id(next()), 1);
    assert_eq!(id(next()), 2);
    let lost = Loss::Dropped(Errno::new(libc::ENOBUFS));
    assert_eq!(next().unwrap(), Some(TracedItem::Lost(lost)));
    assert_eq!(id(next()), 3);
    assert!(matches!(next(), Err(Error::Truncated { .. })));
    assert_eq!(id(next()), 4);
    assert_eq!(next().unwrap(), None);
}
