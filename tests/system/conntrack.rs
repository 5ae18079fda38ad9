//! Conntrack entries: the library lists what the kernel's own tool (`conntrack`) creates, and the reverse; and entries
//! that packets create.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use crate::common::random::Random;
use crate::common::tools::Tools;
use crate::common::{report, sandbox};
use allocation_counter::measure;
use caps::{CapSet, Capability};
use chainwright::conntrack::{
    Connection, Direction, Entry, EntryKey, Event, Events, Filter, Layer4, Monitor, Status,
    TcpState, Tuple, TupleFilter,
};
use chainwright::netlink::Error;
use chainwright_testing::Sandbox;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const UDP: u8 = 17;

#[track_caller]
fn open(sandbox: &Sandbox) -> Connection {
    sandbox.run(Connection::open).unwrap().unwrap()
}

fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn v6(last: u8) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into()).into()
}

/// An entry's line without its timeout, which changes.
fn lines(conntrack: &mut Connection, filter: &Filter) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let listing = conntrack.entries(filter).unwrap();
    listing
        .for_each(|entry| {
            let line = entry.to_string();
            let (line, _) = line.rsplit_once(" timeout=").unwrap();
            assert!(lines.insert(line.to_owned()), "listed twice: {line}");
        })
        .unwrap();
    lines
}

/// The tool's lines, without the protocol's number, the timeout and the number of references.
fn of_tool(tools: &Tools<'_>) -> BTreeSet<String> {
    let listed = ["ipv4", "ipv6"].map(|family| tools.run(&format!("conntrack -L -f {family}")));
    let lines = listed.iter().flat_map(|listed| listed.lines());
    lines
        .map(|line| {
            let (line, _) = line.rsplit_once(" use=").unwrap();
            let mut words: Vec<_> = line.split_whitespace().collect();
            let number = words.drain(1..3).next().unwrap();
            match words[0] {
                "unknown" => format!("protocol {number} {}", words[1..].join(" ")),
                _ => words.join(" "),
            }
        })
        .collect()
}

/// Checks that two listings are the same; shows what only one has.
#[track_caller]
fn assert_same_entries(chainwright: &BTreeSet<String>, other: &BTreeSet<String>, of: &str) {
    let differ: Vec<_> = chainwright.symmetric_difference(other).collect();
    assert!(differ.is_empty(), "{of}: {differ:#?}");
}

#[test]
fn entries_match_the_conntrack_tool() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    for line in [
        "-I -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 4000 --dport 53 -t 60 -m 7",
        "-I -p udp -s 10.0.0.1 -d 10.96.0.10 --sport 4001 --dport 53 -t 60 --dst-nat 10.244.1.7:5353",
        "-I -p tcp -s 10.0.0.2 -d 10.0.0.3 --sport 1 --dport 65535 -t 60 --state ESTABLISHED -u SEEN_REPLY,ASSURED",
        "-I -p sctp -s 10.0.0.2 -d 10.0.0.3 --sport 2 --dport 3 -t 60 --state ESTABLISHED --orig-vtag 1 --reply-vtag 2",
        "-I -p icmp -s 10.0.0.2 -d 10.0.0.3 --icmp-type 8 --icmp-code 0 --icmp-id 99 -t 60",
        "-I -p udp -s fd00::1 -d fd00::2 --sport 1 --dport 2 -t 60",
        "-I -p icmpv6 -s fd00::1 -d fd00::2 --icmpv6-type 128 --icmpv6-code 0 --icmpv6-id 5 -t 60",
        "-I -p udp -s 10.0.0.9 -d 10.0.0.8 --sport 1 --dport 2 -t 60 -w 3",
    ] {
        tools.run(&format!("conntrack {line}"));
    }
    let mut conntrack = open(&sandbox);
    let chainwright = lines(&mut conntrack, &Filter::all());
    assert_same_entries(&chainwright, &of_tool(&tools), "the tool's");
    assert_eq!(chainwright.len(), 8);
    assert_eq!(conntrack.statistics().unwrap().entries, 8);

    // A translated connection.
    let dns = Tuple::udp((v4(1), 4001), ([10, 96, 0, 10], 53));
    let entry = conntrack.entry(&dns.into()).unwrap().unwrap();
    let endpoint = Tuple::udp(([10, 244, 1, 7], 5353), (v4(1), 4001));
    assert_eq!(entry.reply(), Some(endpoint));
    assert!(entry.status().contains(Status::DST_NAT) && entry.timeout() <= Some(MINUTE));
    let tcp = Tuple::tcp((v4(2), 1), (v4(3), 65535));
    let entry = conntrack.entry(&tcp.into()).unwrap().unwrap();
    assert_eq!(entry.tcp_state(), Some(TcpState::ESTABLISHED));
    // In its zone, and nowhere else.
    let zoned = Tuple::udp((v4(9), 1), (v4(8), 2));
    assert!(conntrack.entry(&zoned.into()).unwrap().is_none());
    let key = EntryKey {
        zone: 3,
        ..zoned.into()
    };
    assert_eq!(conntrack.entry(&key).unwrap().unwrap().zone(), 3);
    assert!(conntrack.delete(&key).unwrap());
    let chainwright = lines(&mut conntrack, &Filter::all());
    assert_same_entries(&chainwright, &of_tool(&tools), "the tool's");
}

/// An entry with one of few addresses, protocols and ports, so that filters find some.
fn random_entry(random: &mut Random) -> Entry {
    let address = if random.once_in(3) { v6 } else { v4 };
    let (source, destination) = (
        address(random.below(4) as u8),
        address(random.below(4) as u8),
    );
    let layer4 = match random.below(5) {
        0 => Layer4::Icmp {
            kind: if source.is_ipv4() { 8 } else { 128 },
            code: 0,
            id: random.below(9) as u16,
        },
        1 => Layer4::Other { protocol: 50 },
        _ => Layer4::Ports {
            protocol: random.pick(&[17, 17, 132]),
            source: random.below(50) as u16,
            destination: random.below(3) as u16,
        },
    };
    let original = Tuple {
        source,
        destination,
        layer4,
    };
    // On a busy machine a test takes more than a minute.
    let mut entry = Entry::new(original, HOUR);
    entry.mark = random.pick(&[0, 0, 1, 0x4000, 0x4001]);
    entry.zone = random.pick(&[0, 0, 0, 5]);
    if random.once_in(3) {
        entry.status |= Status::ASSURED | Status::SEEN_REPLY;
    }
    if random.once_in(4) {
        // As if its destination had been translated.
        entry.reply.source = address(random.below(9) as u8);
    }
    entry
}

fn random_filter(random: &mut Random) -> Filter {
    let mut filter = Filter::all();
    let address = if random.once_in(3) { v6 } else { v4 };
    let tuple = |random: &mut Random| {
        let mut tuple = TupleFilter::default();
        if random.once_in(2) {
            tuple.source = Some(address(random.below(4) as u8));
        }
        if random.once_in(2) {
            tuple.destination = Some(address(random.below(4) as u8));
        }
        if random.once_in(4) {
            tuple.destination_port = Some(random.below(3) as u16);
        }
        if random.once_in(8) {
            tuple.source_port = Some(random.below(3) as u16);
        }
        tuple
    };
    if random.once_in(2) {
        filter = filter.protocol(random.pick(&[1, 17, 50, 58, 132]));
    }
    if random.once_in(2) {
        filter = filter.original(tuple(random));
    }
    if random.once_in(3) {
        filter = filter.reply(tuple(random));
    }
    match random.below(8) {
        0 => filter.ipv4(),
        1 => filter.ipv6(),
        2 => filter.mark(0x4000, 0x4000),
        3 => filter.mark(0, 0xff),
        4 => filter.status(Status::ASSURED, Status::ASSURED),
        5 => filter.status(Status::empty(), Status::ASSURED | Status::SEEN_REPLY),
        6 => filter.zone(random.pick(&[0, 5])),
        _ => filter,
    }
}

/// Whatever the kernel filters itself, the result matches the filter exactly.
#[test]
fn a_filter_is_exact() {
    let sandbox = sandbox();
    let mut conntrack = open(&sandbox);
    let mut random = Random::new();
    for _ in 0..400 {
        match conntrack.create(&random_entry(&mut random)) {
            Ok(()) => {}
            Err(Error::Refused { errno, .. }) if errno.name() == "EEXIST" => {}
            Err(error) => panic!("{}", report(&error)),
        }
    }
    let all = lines(&mut conntrack, &Filter::all());
    assert!(all.len() > 100, "{}", all.len());
    assert_same_entries(&all, &of_tool(&Tools::new(&sandbox)), "the tool's");
    let (mut some, mut none) = (0, 0);
    for _ in 0..400 {
        let filter = random_filter(&mut random);
        let mut expected = BTreeSet::new();
        let listing = conntrack.entries(&Filter::all()).unwrap();
        listing
            .for_each(|entry| {
                if filter.admits(&entry) {
                    let line = entry.to_string();
                    expected.insert(line.rsplit_once(" timeout=").unwrap().0.to_owned());
                }
            })
            .unwrap();
        let found = lines(&mut conntrack, &filter);
        assert_same_entries(&found, &expected, &format!("{filter:?}"));
        match expected.is_empty() || expected.len() == all.len() {
            true => none += 1,
            false => some += 1,
        }
    }
    assert!(some > 100, "{some} {none}");

    // Deletions match the filter, too.
    let filter = Filter::all().protocol(UDP).original(TupleFilter::to(v4(1)));
    let of_filter = lines(&mut conntrack, &filter);
    let deleted = conntrack.delete_matching(&filter).unwrap();
    assert_eq!((deleted.deleted, deleted.absent), (of_filter.len(), 0));
    assert!(deleted.deleted > 0);
    let remaining: BTreeSet<_> = all.difference(&of_filter).cloned().collect();
    assert_same_entries(
        &lines(&mut conntrack, &Filter::all()),
        &remaining,
        "the remaining entries",
    );
}

/// Entries that the kernel deletes itself match the filter, too.
#[test]
fn a_flush_is_exact() {
    let sandbox = sandbox();
    let mut conntrack = open(&sandbox);
    let mut random = Random::new();
    let mut flushed = 0;
    for round in 0..60 {
        let mut filter = random_filter(&mut random);
        if round % 4 != 0 {
            // Most of the others are not sent to the kernel.
            let to = TupleFilter::to(v4(random.below(4) as u8)).to_port(random.below(3) as u16);
            filter = Filter::all().protocol(UDP).original(to);
            if random.once_in(2) {
                filter = filter.reply(TupleFilter::from(v4(random.below(9) as u8)));
            }
        }
        for _ in 0..20 {
            match conntrack.create(&random_entry(&mut random)) {
                Ok(()) => {}
                Err(Error::Refused { errno, .. }) if errno.name() == "EEXIST" => {}
                Err(error) => panic!("{}", report(&error)),
            }
        }
        let mut remaining = lines(&mut conntrack, &Filter::all());
        let of_filter = lines(&mut conntrack, &filter);
        if conntrack.flush_matching(&filter).unwrap() {
            flushed += usize::from(!of_filter.is_empty());
            remaining.retain(|line| !of_filter.contains(line));
        }
        let what = format!("{filter:?}");
        assert_same_entries(&lines(&mut conntrack, &Filter::all()), &remaining, &what);
    }
    assert!(flushed > 10, "{flushed}");
    for filter in [
        Filter::all(),
        Filter::all().protocol(UDP),
        Filter::all().protocol(UDP).ipv4(),
        Filter::all().protocol(UDP).original(TupleFilter::to(v6(1))),
        Filter::all().original(TupleFilter::to(v4(1))),
    ] {
        assert!(!conntrack.flush_matching(&filter).unwrap(), "{filter:?}");
    }
}

fn dns(number: u16) -> Tuple {
    Tuple::udp((v4((number >> 8) as u8), number), ([10, 96, 0, 10], 53))
}

#[test]
fn many_entries_are_deleted_and_missing_ones_counted() {
    let sandbox = sandbox();
    let mut conntrack = open(&sandbox);
    for number in 0..10_000 {
        let tuple = dns(number);
        conntrack.create(&Entry::new(tuple, MINUTE)).unwrap();
    }
    let kept = Tuple::udp((v4(1), 1), ([10, 96, 0, 11], 53));
    conntrack.create(&Entry::new(kept, MINUTE)).unwrap();
    assert_eq!(conntrack.statistics().unwrap().entries, 10_001);
    let keys = (0..10_500).map(|number| dns(number).into());
    let deleted = conntrack.delete_all(keys).unwrap();
    assert_eq!((deleted.deleted, deleted.absent), (10_000, 500));
    assert_eq!(conntrack.statistics().unwrap().entries, 1);
    let nothing = conntrack.delete_all([]).unwrap();
    assert_eq!((nothing.deleted, nothing.absent), (0, 0));
}

/// A later entry with the same addresses and ports is a different one.
#[test]
fn an_entry_that_replaced_another_is_kept() {
    let sandbox = sandbox();
    let mut conntrack = open(&sandbox);
    let entry = Entry::new(dns(1), MINUTE);
    conntrack.create(&entry).unwrap();
    let key = |conntrack: &mut Connection| {
        let entry = conntrack.entry(&dns(1).into()).unwrap().unwrap();
        entry.key()
    };
    let first = key(&mut conntrack);
    // The kernel derives an entry's ID from its memory address: create others until one reuses it.
    let mut second = first;
    for other in 100..200 {
        assert!(conntrack.delete(&second).unwrap());
        conntrack.create(&Entry::new(dns(other), MINUTE)).unwrap();
        conntrack.create(&entry).unwrap();
        second = key(&mut conntrack);
        if second.id != first.id {
            break;
        }
    }
    assert_ne!(first.id, second.id);
    assert!(!conntrack.delete(&first).unwrap());
    assert!(conntrack.entry(&first).unwrap().is_none());
    assert!(conntrack.entry(&second).unwrap().is_some());
    let twice = conntrack.create(&entry).unwrap_err();
    assert!(report(&twice).contains("EEXIST"), "{}", report(&twice));
}

#[test]
fn a_listing_takes_no_memory_and_may_be_dropped() {
    let sandbox = sandbox();
    let mut conntrack = open(&sandbox);
    let mut allocated = BTreeSet::new();
    for numbers in [0..100, 100..5000] {
        for number in numbers.clone() {
            conntrack.create(&Entry::new(dns(number), MINUTE)).unwrap();
        }
        let mut count = 0;
        let cost = measure(|| {
            let filter = Filter::all().protocol(UDP);
            let listing = conntrack.entries(&filter).unwrap();
            listing.for_each(|_| count += 1).unwrap();
        });
        assert_eq!(count, numbers.end);
        allocated.insert(cost.bytes_total);
    }
    assert_eq!(allocated.len(), 1, "{allocated:?}");
    for read in [0, 1, 3000] {
        let mut listing = conntrack.entries(&Filter::all()).unwrap();
        for _ in 0..read {
            assert!(listing.try_next().unwrap().is_some());
        }
        drop(listing);
        assert!(conntrack.entry(&dns(1).into()).unwrap().is_some());
        assert_eq!(lines(&mut conntrack, &Filter::all()).len(), 5000);
    }
}

/// UDP packets to a service's address, which a rule translates.
#[test]
fn entries_created_by_packets_are_reported_and_listed() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("ip link set lo up");
    tools.run_with(
        "nft -f -",
        "table ip t {
            chain out {
                type nat hook output priority -100;
                ip daddr 127.0.0.10 udp dport 53 dnat to 127.0.0.1:5353
            }
         }",
    );
    sandbox
        .run(|| {
            std::fs::write("/proc/sys/net/netfilter/nf_conntrack_acct", "1").unwrap();
            let mut monitor = Monitor::open(Events::all()).unwrap();
            assert!(monitor.try_receive().unwrap().is_none());
            let server = UdpSocket::bind("127.0.0.1:5353").unwrap();
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect("127.0.0.10:53").unwrap();
            client.send(b"question").unwrap();
            let (_, from) = server.recv_from(&mut [0; 16]).unwrap();
            server.send_to(b"answer", from).unwrap();
            client.recv(&mut [0; 16]).unwrap();

            let port = client.local_addr().unwrap().port();
            let localhost = Ipv4Addr::LOCALHOST;
            let original = Tuple::udp((localhost, port), ([127, 0, 0, 10], 53));
            let reply = Tuple::udp((localhost, 5353), (localhost, port));
            let mut conntrack = Connection::open().unwrap();
            let to_endpoint = TupleFilter::from(localhost).from_port(5353);
            let filter = Filter::all().protocol(UDP).reply(to_endpoint);
            let mut keys = Vec::new();
            let listing = conntrack.entries(&filter).unwrap();
            listing
                .for_each(|entry| {
                    assert_eq!((entry.original(), entry.reply()), (original, Some(reply)));
                    let answer = entry.counters(Direction::Reply).unwrap();
                    assert_eq!((answer.packets, answer.bytes), (1, 20 + 8 + 6));
                    let question = entry.counters(Direction::Original).unwrap();
                    assert_eq!((question.packets, question.bytes), (1, 20 + 8 + 8));
                    assert!(
                        entry
                            .status()
                            .contains(Status::SEEN_REPLY | Status::DST_NAT)
                    );
                    keys.push(entry.key());
                })
                .unwrap();
            assert_eq!(keys.len(), 1);
            conntrack
                .reset_counters(&filter)
                .unwrap()
                .for_each(|_| {})
                .unwrap();
            let entry = conntrack.entry(&keys[0]).unwrap().unwrap();
            assert_eq!(entry.counters(Direction::Reply).unwrap().packets, 0);
            assert!(conntrack.delete(&keys[0]).unwrap());

            let (mut is_new, mut updates, mut is_gone) = (false, 0, false);
            while let Some(event) = monitor.receive_within(Duration::from_millis(200)).unwrap() {
                match event {
                    Event::New(entry) => {
                        assert_eq!(entry.original(), original);
                        is_new = true;
                    }
                    Event::Updated(entry) => {
                        assert!(is_new && !is_gone && entry.original() == original);
                        updates += 1;
                    }
                    Event::Destroyed(entry) => {
                        assert_eq!(entry.original(), original);
                        is_gone = true;
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert!(is_new && updates > 0 && is_gone);
        })
        .unwrap();
}

#[test]
fn lost_events_are_reported() {
    let sandbox = sandbox();
    sandbox
        .run(|| {
            let mut monitor = Monitor::open_with(Events::NEW, 4096).unwrap();
            let mut conntrack = Connection::open().unwrap();
            for number in 0..1000 {
                conntrack.create(&Entry::new(dns(number), MINUTE)).unwrap();
            }
            let (mut reported, mut lost) = (0, 0);
            while let Some(event) = monitor.try_receive().unwrap() {
                match event {
                    Event::New(_) => reported += 1,
                    Event::Lost(_) => lost += 1,
                    other => panic!("{other:?}"),
                }
            }
            assert!(lost > 0 && reported < 1000, "{reported} {lost}");
            // It continues afterwards.
            conntrack.create(&Entry::new(dns(2000), MINUTE)).unwrap();
            let Some(Event::New(entry)) = monitor.try_receive().unwrap() else {
                panic!("the new entry was not reported");
            };
            assert_eq!(entry.original(), dns(2000));
        })
        .unwrap();
}

#[test]
fn without_privileges_nothing_is_listed() {
    let sandbox = sandbox();
    let refused = sandbox.run(|| {
        let mut conntrack = Connection::open().unwrap();
        // On a separate thread, whose capabilities end with it.
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        let listed = conntrack.entries(&Filter::all()).unwrap().for_each(|_| {});
        let deleted = conntrack.delete(&dns(1).into());
        [listed.unwrap_err(), deleted.unwrap_err()].map(|error| report(&error))
    });
    for error in refused.unwrap() {
        assert!(error.contains("EPERM"), "{error}");
    }
}
