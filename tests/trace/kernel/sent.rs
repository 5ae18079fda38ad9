//! `FakeKernel::send` compared with Linux: the same packets through the same ruleset leave the same listing, and cause
//! the same events.

use std::time::Duration;

use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Family, Iptables};
use chainwright::nft::expr::{
    Counter, Dynset, DynsetFlags, DynsetOp, Payload, PayloadBase, Register,
};
use chainwright::nft::live::{EventObject, Item, Monitor, MonitorOptions};
use chainwright::nft::{self, Connection, Rule, Scope, Snapshot, Transaction};
use chainwright_lang::{Listing, NftVersion, Options, Script};
use chainwright_testing::FakeKernel;
use chainwright_trace::{Direction, Outcome, Packet};

use super::judge;
use super::packet::{Route, Sent, client, far};
use super::world::{Texts, World, node_address};
use crate::common::rulesets::without_remainders;

/// Members of the table, rules of the chain `c` at the hook `forward`, and packets: number of the client, and port.
type Case = (&'static str, &'static str, &'static [(u8, u16)]);

const CASES: &[Case] = &[
    // A counter in front of a condition counts what the rule does not match.
    (
        "",
        "counter udp dport 53\n udp dport 53 counter\n udp dport 80 last drop\n counter",
        &[(0, 53), (0, 80), (1, 53)],
    ),
    // Named counters, directly and by a map.
    (
        "counter all {}\n counter dns {}\n counter web { packets 7 bytes 700 }
         map m { type inet_service : counter; elements = { 53 : \"dns\", 80 : \"web\" } }",
        "counter name all\n counter name udp dport map @m accept\n counter name all",
        &[(0, 53), (0, 80), (0, 80), (0, 443)],
    ),
    // Quotas of 100 bytes for packets of 44.
    (
        "",
        "quota until 100 bytes counter\n quota over 100 bytes counter\n quota over 88 bytes used 88 bytes counter",
        &[(0, 53), (0, 53), (0, 53), (0, 53)],
    ),
    (
        "quota up { until 100 bytes }\n quota over { over 88 bytes }",
        "quota name up counter\n quota name over counter drop\n quota name up counter",
        &[(0, 53), (0, 53), (0, 53), (0, 53)],
    ),
    // Elements that count.
    (
        "set s { type ipv4_addr; counter; elements = { 10.1.0.2, 10.1.0.3 } }
         set n { type inet_service; flags interval; counter; last; elements = { 50-60, 443 } }
         map v { type inet_service : verdict; counter; elements = { 53 : drop, 80 : continue, * : return } }
         set c { type ipv4_addr . inet_service; flags interval; counter; elements = { 10.1.0.0/24 . 50-60 } }",
        "ip saddr @s counter\n udp dport @n counter\n ip saddr != @s counter
         ip saddr . udp dport @c counter\n udp dport vmap @v\n counter",
        &[(0, 53), (1, 80), (2, 443), (2, 60)],
    ),
    (
        "set s { type ipv4_addr; quota until 60 bytes; elements = { 10.1.0.2, 10.1.0.3 } }",
        "ip saddr @s counter",
        &[(0, 53), (0, 53), (1, 53)],
    ),
    // Elements that rules add, refresh and delete.
    (
        "set s { type ipv4_addr; flags dynamic; }",
        "udp dport 53 add @s { ip saddr } counter\n udp dport 80 delete @s { ip saddr } counter\n ip saddr @s counter",
        &[(0, 53), (0, 53), (1, 53), (0, 80), (2, 80)],
    ),
    (
        "set s { type ipv4_addr; flags dynamic, timeout; timeout 1h; elements = { 10.1.0.3 timeout 2h expires 1h } }
         set t { type ipv4_addr; flags dynamic, timeout; elements = { 10.1.0.3, 10.1.0.4 timeout 2h } }",
        "udp dport 53 add @s { ip saddr timeout 10m } add @t { ip saddr timeout 10m }
         udp dport 80 update @s { ip saddr } update @t { ip saddr timeout 20m }
         udp dport 443 add @s { ip saddr } add @t { ip saddr }",
        &[(0, 53), (1, 53), (0, 80), (1, 80), (2, 80), (3, 443)],
    ),
    // A refresh without any timeout ends the element.
    (
        "set t { type ipv4_addr; flags dynamic, timeout; elements = { 10.1.0.2 timeout 2h } }",
        "update @t { ip saddr }\n ip saddr @t counter",
        &[(0, 53)],
    ),
    // A full set.
    (
        "set s { type ipv4_addr; flags dynamic; size 2; }",
        "add @s { ip saddr } counter\n ip saddr @s counter\n add @s { ip daddr } counter",
        &[(0, 53), (1, 53), (0, 53)],
    ),
    // Expressions of elements: of the rule, and of the set.
    (
        "set s { type ipv4_addr . inet_service; flags dynamic; }
         set d { type ipv4_addr; flags dynamic; counter; elements = { 10.1.0.3 counter packets 3 bytes 30 } }
         set q { type ipv4_addr; flags dynamic; quota over 60 bytes; }",
        "add @s { ip saddr . udp dport counter packets 5 bytes 50 last } counter
         add @d { ip saddr } ip saddr @d counter\n update @q { ip saddr } counter drop\n counter",
        &[(0, 53), (0, 53), (1, 53), (0, 80), (1, 53)],
    ),
    (
        "set s { type ipv4_addr; flags dynamic; }",
        "add @s { ip saddr quota until 60 bytes } counter\n add @s { ip saddr counter } counter",
        &[(0, 53), (0, 53), (1, 53)],
    ),
    // Data of an existing element remains.
    (
        "map m { type ipv4_addr : inet_service; flags dynamic; size 10; }
         map t { type ipv4_addr : mark; flags dynamic, timeout; timeout 1h; }",
        "add @m { ip saddr : udp dport } counter
         udp dport 53 update @t { ip saddr : 0x17 }\n udp dport 80 update @t { ip saddr : 0x50 }
         meta mark set ip saddr map @t\n meta mark 0x17 counter\n meta mark 0x50 counter",
        &[(0, 53), (0, 80), (1, 80)],
    ),
    // Rates that do not recover within the test.
    (
        "limit hourly { rate over 1/hour burst 2 packets }",
        "limit name hourly counter\n limit rate 2/day burst 1 packets counter\n limit rate over 50 bytes/day counter
         limit rate 40 bytes/day burst 60 bytes counter",
        &[(0, 53), (0, 53), (0, 53), (0, 53)],
    ),
    (
        "set s { type ipv4_addr; flags dynamic; }
         set e { type ipv4_addr; limit rate 1/day burst 1 packets; elements = { 10.1.0.2, 10.1.0.3 } }",
        "add @s { ip saddr limit rate over 1/day burst 1 packets } counter drop\n ip saddr @e counter",
        &[(0, 53), (0, 53), (1, 53), (0, 53)],
    ),
];

fn sent(number: u16, is_ipv4: bool, (from, port): (u8, u16)) -> Sent {
    Sent {
        route: Route::Forward,
        source: client(is_ipv4, from),
        destination: far(is_ipv4, 0),
        protocol: 17,
        ports: (20_000 + number, port),
        kind: (0, 0),
        flags: 0,
        hops: 64,
        tos: 0,
        payload: 16,
    }
}

/// The ruleset in a form without the numbers of elements: the kernel also counts deleted ones that it has not collected.
fn ruleset(snapshot: &Snapshot) -> String {
    let mut options = Options::default();
    options.nft_version = NftVersion::V1_0;
    Listing::new(snapshot, &options).to_string()
}

/// The ruleset and the counters of its base chains, without times.
fn listed(snapshot: &Snapshot) -> String {
    let mut text = ruleset(snapshot);
    for chain in snapshot.tables().flat_map(|table| table.chains()) {
        if let Some(counters) = chain.chain().counters() {
            text += &format!("{}: {counters:?}\n", chain.chain().name());
        }
    }
    let mut words: Vec<&str> = text.split_inclusive(' ').collect();
    for at in 1..words.len() {
        if words[at - 1] == "used " && !words[at].starts_with("never") && words[at].contains("ms") {
            words[at] = "… ";
        }
    }
    without_remainders(&words.concat(), false)
}

fn fake(text: &str) -> (FakeKernel, Connection) {
    let kernel = FakeKernel::new();
    let mut nft = kernel.connect().unwrap();
    let script = Script::parse("rules.nft", text).unwrap();
    let change = script.transaction(Some(&nft.snapshot(Scope::all()).unwrap()));
    nft.commit(change.unwrap().transaction()).unwrap();
    (kernel, nft)
}

fn events(monitor: &mut Monitor) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(item) = monitor.try_receive().unwrap() {
        match item {
            Item::Change(change) => all.extend(change.events().map(|event| event.to_string())),
            Item::OutOfBand(event) => {
                let event = event.event();
                let EventObject::Object(object) = event.object().unwrap() else {
                    panic!("{event}");
                };
                all.push(format!("{} {event}", object.family()));
            }
            other => all.push(format!("{other:?}")),
        }
    }
    all
}

/// Sends packets through the same rules on the node and in the fake kernel, and compares the states and the events.
#[track_caller]
fn check(world: &mut World, table: &str, packets: impl IntoIterator<Item = Sent>) {
    let text = format!("flush ruleset\ntable inet t {{\n{table}\n}}\n");
    let texts = Texts {
        nft: text.clone(),
        ..Texts::default()
    };
    world.load(&texts).unwrap();
    let (kernel, mut nft) = fake(&text);
    let of_fake = MonitorOptions::default().open_in_namespace_of(&nft);
    let mut monitors = [world.watch(), of_fake.unwrap()];
    for sent in packets {
        let before = listed(&world.snapshot());
        assert_eq!(listed(&nft.snapshot(Scope::all()).unwrap()), before);
        let seen = world.send(&sent);
        let end = kernel
            .send(&judge::packet(&sent, None), &judge::node())
            .unwrap_or_else(|error| panic!("{error}\n{sent:?}\n{before}"));
        let passes = matches!(
            end.outcome,
            Outcome::Forwarded | Outcome::Sent | Outcome::Delivered
        );
        assert_eq!(passes, !seen.arrived.is_empty(), "{sent:?}\n{end}");
        let now = listed(&nft.snapshot(Scope::all()).unwrap());
        assert_eq!(now, listed(&world.snapshot()), "{sent:?}\n{end}\n{before}");
    }
    let [of_kernel, of_fake] = monitors.each_mut().map(events);
    assert_eq!(of_fake, of_kernel, "{text}");
}

#[test]
fn state_after_packets_matches_the_kernel() {
    let mut world = World::new();
    for (members, rules, packets) in CASES {
        let table = format!(
            "{members}\nchain c {{\ntype filter hook forward priority 0; policy accept;\n{rules}\n}}"
        );
        let of_ipv4 = (0..)
            .zip(*packets)
            .map(|(number, one)| sent(number, true, *one));
        check(&mut world, &table, of_ipv4.chain([sent(9, false, (0, 53))]));
    }
}

/// A packet is counted at each hook that it passes.
#[test]
fn state_at_each_hook_matches_the_kernel() {
    let hooks = ["prerouting", "input", "forward", "output", "postrouting"].map(|hook| {
        format!(
            "chain {hook} {{ type filter hook {hook} priority 0; udp dport 53 counter jump all; }}"
        )
    });
    let table = format!(
        "set s {{ type ipv4_addr; flags dynamic; }}
         chain all {{ udp dport 53 counter add @s {{ ip saddr counter }} quota until 100 bytes counter return; }}
         {}",
        hooks.join("\n")
    );
    let node = node_address(true, 0);
    let packets = [
        (Route::Forward, client(true, 0), far(true, 0)),
        (Route::In, client(true, 1), node),
        (Route::Out, node, far(true, 0)),
        (Route::Local, node, node),
    ];
    let packets = (0..)
        .zip(packets)
        .map(|(number, (route, source, destination))| Sent {
            route,
            source,
            destination,
            ..sent(number, true, (0, 53))
        });
    check(&mut World::new(), &table, packets);
}

/// Inverted, a rule continues if it could not add the element. A deletion always continues.
#[test]
fn inverted_updates_match_the_kernel() {
    let mut world = World::new();
    let text = "flush ruleset\ntable ip t { set s { type ipv4_addr; flags dynamic; size 1; }
        set d { type ipv4_addr; flags dynamic; elements = { 10.1.0.2 }; }
        chain c { type filter hook forward priority 0; }; }";
    let texts = Texts {
        nft: text.to_owned(),
        ..Texts::default()
    };
    world.load(&texts).unwrap();
    let (kernel, mut fake) = fake(text);
    let mut tx = Transaction::new();
    for (op, set) in [
        (DynsetOp::ADD, "s"),
        (DynsetOp::UPDATE, "s"),
        (DynsetOp::DELETE, "d"),
        (DynsetOp::DELETE, "d"),
    ] {
        let update = Dynset {
            flags: Some(DynsetFlags::INV),
            op: Some(op),
            sreg_key: Some(Register::R1),
            set_name: Some(set.into()),
            ..Dynset::default()
        };
        let rule = Rule::new(nft::Family::IP, "t", "c")
            .with(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1))
            .with(&update)
            .with(&Counter::new(0, 0));
        tx.add(&rule).unwrap();
    }
    world.commit(&tx);
    fake.commit(&tx).unwrap();
    for (number, from) in [0, 1, 0].into_iter().enumerate() {
        send_both(
            &mut world,
            &kernel,
            &mut fake,
            &sent(number as u16, true, (from, 53)),
        );
    }
}

/// Sends a packet through the kernel's rules and the fake kernel's; compares the state after it.
#[track_caller]
fn send_both(world: &mut World, kernel: &FakeKernel, fake: &mut Connection, sent: &Sent) {
    world.send(sent);
    kernel
        .send(&judge::packet(sent, None), &judge::node())
        .unwrap();
    let now = listed(&fake.snapshot(Scope::all()).unwrap());
    assert_eq!(now, listed(&world.snapshot()));
}

/// Compares the state after a packet, given the one before it.
#[track_caller]
pub(super) fn compare(before: &Snapshot, packet: &Packet, after: &Snapshot) {
    // The text of some rules changes when it is loaded.
    let [before, after] = [before, after].map(ruleset);
    let (kernel, mut nft) = fake(&before);
    let end = kernel.send(packet, &judge::node());
    let end = end.unwrap_or_else(|error| panic!("{error}\n{before}"));
    let [now, expected] =
        [&mut nft, &mut fake(&after).1].map(|nft| listed(&nft.snapshot(Scope::all()).unwrap()));
    assert_eq!(now, expected, "{end}\n{before}");
}

/// The counters of base chains, which only iptables requests.
#[test]
fn counters_of_base_chains_match_the_kernel() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:web - [0:0]\n\
                -A FORWARD -p udp --dport 53 -j ACCEPT\n-A FORWARD -j web\n-A web -p udp --dport 80 -j RETURN\nCOMMIT\n";
    let mut world = World::new();
    let texts = Texts {
        nft: "flush ruleset\n".to_owned(),
        iptables_nft: vec![(Family::Ipv4, text.to_owned())],
        ..Texts::default()
    };
    world.load(&texts).unwrap();
    let kernel = FakeKernel::new();
    let mut fake = kernel.connect().unwrap();
    let mut iptables = Iptables::over(kernel.connect().unwrap());
    iptables
        .restore(Family::Ipv4, text, &RestoreOptions::default())
        .unwrap();
    for (number, packet) in [(0, 53), (0, 80), (1, 443)].into_iter().enumerate() {
        send_both(
            &mut world,
            &kernel,
            &mut fake,
            &sent(number as u16, true, packet),
        );
    }
    let snapshot = fake.snapshot(Scope::all()).unwrap();
    let forward = snapshot.chain(nft::Family::IP, "filter", "FORWARD");
    let counters = forward.unwrap().chain().counters().unwrap();
    assert_eq!((counters.packets, counters.bytes), (Some(2), Some(88)));
}

/// A description that is not sufficient changes nothing, and the error names what is missing.
#[test]
fn errors_name_missing_packet_fields() {
    let text = "table ip t {
        set s { type ipv4_addr; flags dynamic; }
        chain a { type filter hook forward priority 0; counter meta iifname c0 accept; }
        chain b { type filter hook output priority 0; add @s { ip saddr }; }
        chain c { type filter hook input priority 0; ct count over 5 drop; }
    }";
    let (kernel, mut nft) = fake(text);
    let before = listed(&nft.snapshot(Scope::all()).unwrap());
    let whole = judge::packet(&sent(0, true, (0, 53)), None);
    type Change = fn(&mut Packet);
    let cases: &[(Change, &str)] = &[
        (
            |packet| packet.in_interface = None,
            "the description leaves open: iifname is \"c0\", or iifname is not \"c0\"",
        ),
        (
            |packet| packet.length = None,
            "the description leaves open: the length of the packet, which a rule counts",
        ),
        (
            |packet| (packet.direction, packet.source) = (Direction::Out, None),
            "the description leaves open: source address, from which a rule makes an element",
        ),
        (
            |packet| packet.direction = Direction::In,
            "the description leaves open: more than 5 connections, or not more than 5 connections",
        ),
    ];
    for (change, expected) in cases {
        let mut packet = whole.clone();
        change(&mut packet);
        let error = kernel.send(&packet, &judge::node()).unwrap_err();
        assert_eq!(error.to_string(), *expected);
        assert_eq!(listed(&nft.snapshot(Scope::all()).unwrap()), before);
    }
    kernel.send(&whole, &judge::node()).unwrap();
    assert_ne!(listed(&nft.snapshot(Scope::all()).unwrap()), before);
}

/// Each rate and each quota splits the trace, which follows 1,024 branches.
#[test]
fn traces_at_most_ten_rate_limits() {
    for (number, is_traced) in [(10, true), (11, false)] {
        let rules = "limit rate 5/second counter;".repeat(number);
        let (kernel, _nft) = fake(&format!(
            "table ip t {{ chain c {{ type filter hook forward priority 0; {rules} }}; }}"
        ));
        let sent = kernel.send(
            &judge::packet(&sent(0, true, (0, 53)), None),
            &judge::node(),
        );
        let expected = "the packet cannot be traced: more than 1024 branches";
        match sent {
            Ok(_) => assert!(is_traced),
            Err(error) => assert_eq!((is_traced, error.to_string()), (false, expected.to_owned())),
        }
    }
}

/// Rates recover as time passes.
#[test]
fn rates_recover_with_time() {
    let (kernel, _nft) = fake(
        "table ip t { chain c { type filter hook forward priority 0; limit rate over 6/minute burst 2 packets drop; }; }",
    );
    let packet = judge::packet(&sent(0, true, (0, 53)), None);
    let mut passes = |seconds| {
        kernel.advance(Duration::from_secs(seconds));
        let end = kernel.send(&packet, &judge::node()).unwrap();
        end.outcome == Outcome::Forwarded
    };
    let waits = [0, 0, 0, 9, 1, 0, 25, 0, 0, 5];
    let expected = [
        true, true, false, false, true, false, true, true, false, false,
    ];
    assert_eq!(waits.map(&mut passes), expected);
}
