//! Tracers and monitors of conntrack receive the same faults. (A monitor of nf_tables recovers from them.)

use std::net::Ipv4Addr;
use std::time::Duration;

use chainwright_sys::netlink::{NLM_F_CREATE, NLMSG_OVERRUN};
use chainwright_sys::nf_tables::{
    NFT_MSG_TRACE, NFT_TRACETYPE_RULE, NFTA_TRACE_ID, NFTA_TRACE_TYPE,
};
use chainwright_sys::nfnetlink::{NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_NFTABLES};
use chainwright_sys::nfnetlink_conntrack::IPCTNL_MSG_CT_NEW;

use super::*;
use crate::conntrack::{self, Entry, Events, Tuple};
use crate::netlink::replay::{Replay, Reply};
use crate::netlink::{Malformed, MessageWriter, NfGenMsg};
use crate::nft::live::{TracedItem, Tracer, TracerOptions};

fn message(subsystem: u8, message: u8, content: impl FnOnce(&mut MessageWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let kind = u16::from(subsystem) << 8 | u16::from(message);
    let header = NfGenMsg {
        family: libc::AF_INET as u8,
        resource: 0,
    };
    let mut writer = MessageWriter::nfnetlink(&mut bytes, kind, NLM_F_CREATE, 0, header);
    content(&mut writer);
    writer.finish().unwrap();
    bytes
}

fn step(id: u8) -> Vec<u8> {
    message(NFNL_SUBSYS_NFTABLES, NFT_MSG_TRACE, |writer| {
        writer
            .be32(NFTA_TRACE_ID, id.into())
            .be32(NFTA_TRACE_TYPE, NFT_TRACETYPE_RULE);
    })
}

fn entry(id: u8) -> Vec<u8> {
    let tuple = Tuple::udp(
        (Ipv4Addr::from([10, 0, 0, id]), 1),
        (Ipv4Addr::LOCALHOST, 2),
    );
    let entry = Entry::new(tuple, Duration::from_secs(9));
    message(NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW, |writer| {
        entry.encode(writer)
    })
}

/// What a socket returned.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Received {
    Event(u8),
    Lost,
    Malformed,
    Truncated,
    Failed,
    Nothing,
}

fn of_error(error: Error) -> Received {
    match error {
        Error::Malformed(Malformed { .. }) => Received::Malformed,
        Error::Truncated { .. } => Received::Truncated,
        Error::Receive { .. } => Received::Failed,
        error => panic!("{error:?}"),
    }
}

fn traced(item: Result<Option<TracedItem>, Error>) -> Received {
    match item {
        Ok(Some(TracedItem::Step(step))) => Received::Event(step.view().id() as u8),
        Ok(Some(TracedItem::Lost(_))) => Received::Lost,
        Ok(Some(TracedItem::Malformed(_))) => Received::Malformed,
        Ok(None) => Received::Nothing,
        Err(error) => of_error(error),
    }
}

fn tracked(event: Result<Option<conntrack::Event<'_>>, Error>) -> Received {
    match event {
        Ok(Some(conntrack::Event::New(entry))) => match entry.original().source {
            std::net::IpAddr::V4(address) => Received::Event(address.octets()[3]),
            address => panic!("{address}"),
        },
        Ok(Some(conntrack::Event::Lost(_))) => Received::Lost,
        Ok(Some(event)) => panic!("{event:?}"),
        Ok(None) => Received::Nothing,
        Err(error) => of_error(error),
    }
}

/// Returns a reply with a fault.
type Fault = fn() -> Reply;

/// Checks that both return these results if `replies` are queued, up to an empty queue.
#[track_caller]
fn check(replies: impl Fn(fn(u8) -> Vec<u8>) -> Vec<Reply>, expected: &[Received]) {
    let socket = |event| {
        let replay = Replay::new(|_| Vec::new());
        replay.queue().lock().unwrap().extend(replies(event));
        Socket::with_transport(Box::new(replay))
    };
    let mut tracer: Tracer = TracerOptions::default().open_over(socket(step)).unwrap();
    let mut monitor = conntrack::Monitor::open_over(socket(entry), Events::all(), 0).unwrap();
    for expected in expected.iter().chain([&Received::Nothing; 2]) {
        assert_eq!(traced(tracer.try_receive()), *expected);
        assert_eq!(tracked(monitor.try_receive()), *expected);
    }
}

#[test]
fn faults_have_the_same_result_for_all_sockets() {
    use Received::{Event, Failed, Lost, Malformed, Truncated};
    let between = |fault: Fault| {
        move |event: fn(u8) -> Vec<u8>| {
            vec![
                Reply::Datagram([event(1), event(2)].concat()),
                fault(),
                Reply::Datagram(event(3)),
            ]
        }
    };
    let cases: [(Fault, &[Received]); 8] = [
        (|| Reply::Error(libc::ENOBUFS), &[Lost]),
        (|| Reply::Error(libc::ENOMEM), &[Lost]),
        (|| Reply::Error(libc::EINTR), &[]),
        (|| Reply::Error(libc::EBADF), &[Failed]),
        (
            || {
                let mut overrun = Vec::new();
                let writer = MessageWriter::new(&mut overrun, NLMSG_OVERRUN, 0, 0);
                writer.finish().unwrap();
                Reply::Datagram(overrun)
            },
            &[Lost],
        ),
        (
            || Reply::Datagram(vec![0; RECEIVE_BUFFER + 1]),
            &[Truncated],
        ),
        (|| Reply::Datagram(vec![1; 7]), &[Malformed]),
        (|| Reply::Sent(9, step(7)), &[]),
    ];
    for (fault, found) in cases {
        let expected = [&[Event(1), Event(2)], found, &[Event(3)]].concat();
        check(between(fault), &expected);
    }
    // The events before a malformed message are returned, and those of the next datagram.
    check(
        |event| {
            let malformed = [event(1), vec![1; 7]].concat();
            vec![Reply::Datagram(malformed), Reply::Datagram(event(2))]
        },
        &[Event(1), Malformed, Event(2)],
    );
}
