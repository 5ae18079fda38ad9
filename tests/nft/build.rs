//! Rules made with `nft::build` compared with the same rules made by `nft`: the kernel's listings
//! must have the same bytes, and `nft`'s output the same text.

mod kube_proxy;
mod own_sets;
mod pairs;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use crate::common::tools::Tools;
use crate::common::{connect, report, rules_of, sandbox};
use chainwright::nft::build::{
    AddressType, AnonymousSet, Build, BuildError, CtState, CtStatus, IcmpType, Icmpv6Type,
    Interface, MacAddress, NatTo, Protocol, Rate, Selector, TcpFlags, Version, and, ct, element,
    in_set, ip, ip6, jhash, map, masked, meta, not, numgen_inc, numgen_random, or, symhash, tcp,
    th, udp, xor,
};
use chainwright::nft::expr::{NatRangeFlags, Verdict};
use chainwright::nft::{Family, Rule, Transaction};
use own_sets::{OWN_SETS, OWN_SETS6};
use pairs::{EVERYWHERE, FRAMES, INET, IP, NETDEV, TRACKED, V4, V4_TRACKED, V6, V6_TRACKED};

type Built = Result<Rule<'static>, BuildError>;

/// The context for making a rule: a builder, the transaction for its anonymous sets, and a number
/// for one.
struct Make<'t> {
    tx: &'t mut Transaction,
    family: Family,
    id: u32,
}

impl Make<'_> {
    fn rule(&self) -> Build<'static> {
        Build::new(self.family, "t", "c")
    }

    /// Adds a set to the transaction.
    fn set(&mut self, set: AnonymousSet<'static>) -> AnonymousSet<'static> {
        set.add_to(self.tx).unwrap();
        set
    }
}

/// A rule as nft text, and its builder.
type Pair = (&'static str, fn(&mut Make<'_>) -> Built);

const fn v4(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

const fn v6(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last)
}

fn v4_port(last: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(v4(last), port)
}

fn v6_port(last: u16, port: u16) -> SocketAddrV6 {
    SocketAddrV6::new(v6(last), port, 0, 0)
}

const MAC: MacAddress = MacAddress([0, 0x11, 0x22, 0x33, 0x44, 0x55]);

const NONE: NatRangeFlags = NatRangeFlags::empty();

const RANDOM: NatRangeFlags = NatRangeFlags::PROTO_RANDOM;

const FULLY: NatRangeFlags = NatRangeFlags::PROTO_RANDOM_FULLY;

const SYN: TcpFlags = TcpFlags::SYN;

const FOUR: TcpFlags = TcpFlags::FIN
    .union(SYN)
    .union(TcpFlags::RST)
    .union(TcpFlags::ACK);

/// The table for the rules, without them.
fn table(family: Family) -> String {
    format!(
        "table {family} t {{
            counter hits {{ }}
            set a4 {{ type ipv4_addr; }}
            set a6 {{ type ipv6_addr; }}
            set p {{ type inet_service; }}
            set ifs {{ type ifname; }}
            set protos {{ type inet_proto; }}
            set c3 {{ type ipv4_addr . inet_proto . inet_service; }}
            set ifp {{ type ifname . inet_service; }}
            set ifa {{ type ifname . ipv4_addr; }}
            set dyn {{ type ipv4_addr; flags dynamic,timeout; size 100; }}
            set dyn6 {{ type ipv6_addr; flags dynamic,timeout; size 100; }}
            set dync {{ type ipv4_addr . inet_service; flags dynamic,timeout; size 100; }}
            map dm {{ type ipv4_addr . inet_service : ipv4_addr . inet_service; flags dynamic; }}
            map v3 {{ type ipv4_addr . inet_proto . inet_service : verdict; }}
            map v36 {{ type ipv6_addr . inet_proto . inet_service : verdict; }}
            map v2 {{ type inet_proto . inet_service : verdict; }}
            map vp {{ type inet_service : verdict; }}
            map vif {{ type ifname : verdict; }}
            map vs {{ type ct_state : verdict; }}
            map vn {{ typeof numgen inc mod 2 : verdict; }}
            map m4 {{ type ipv4_addr . inet_service : ipv4_addr . inet_service; }}
            map m6 {{ type ipv6_addr . inet_service : ipv6_addr . inet_service; }}
            map mm {{ type mark : ipv4_addr; }}
            map pm {{ type inet_service : mark; }}
            chain o {{ }}
            chain c {{ }}
        }}\n"
    )
}

/// The bytes of a rule's expressions and of its comment.
fn bytes<'r>(rule: &'r Rule<'_>) -> (&'r [u8], &'r [u8]) {
    let expressions = rule.expressions.as_ref().map(|e| e.as_bytes());
    (
        expressions.unwrap_or_default(),
        rule.userdata.as_deref().unwrap_or_default(),
    )
}

/// Loads the rules with nft in one sandbox and with the library in another, and compares.
#[track_caller]
fn same(family: Family, lists: &[&[Pair]]) -> usize {
    let pairs: Vec<&Pair> = lists.iter().flat_map(|list| list.iter()).collect();
    let (real, chainwright) = (sandbox(), sandbox());
    let (their_tools, our_tools) = (Tools::new(&real), Tools::new(&chainwright));
    for tools in [&their_tools, &our_tools] {
        tools.run_with("nft -f -", &table(family));
    }
    let mut nft = connect(&chainwright);
    for (index, (text, build)) in pairs.iter().enumerate() {
        their_tools.run_with("nft -f -", &format!("add rule {family} t c {text}"));
        let mut tx = Transaction::new();
        let mut make = Make {
            tx: &mut tx,
            family,
            id: index as u32 + 1,
        };
        let rule = build(&mut make).unwrap_or_else(|error| panic!("{family} {text}: {error}"));
        tx.add(&rule).unwrap();
        if let Err(error) = nft.commit(&tx) {
            panic!("{family} {text}: {}\n{rule}", report(&error));
        }
    }
    let their_rules = rules_of(&mut connect(&real), family, "t", "c");
    let our_rules = rules_of(&mut nft, family, "t", "c");
    assert_eq!(their_rules.len(), pairs.len());
    assert_eq!(our_rules.len(), pairs.len());
    let mut wrong = Vec::new();
    for ((real, chainwright), (text, _)) in their_rules.iter().zip(&our_rules).zip(&pairs) {
        if bytes(real) != bytes(chainwright) {
            wrong.push(format!("{text}\nnft:\n{real}ours:\n{chainwright}"));
        }
    }
    assert!(wrong.is_empty(), "{family}:\n{}", wrong.join("\n"));
    let list = format!("nft list chain {family} t c");
    assert_eq!(our_tools.run(&list), their_tools.run(&list));
    pairs.len()
}

#[test]
fn ip_rules_match_nft() {
    same(
        Family::IP,
        &[EVERYWHERE, IP, TRACKED, V4, V4_TRACKED, OWN_SETS],
    );
}

#[test]
fn ip6_rules_match_nft() {
    let everywhere: Vec<Pair> = without_ip(EVERYWHERE);
    same(
        Family::IP6,
        &[&everywhere, IP, TRACKED, V6, V6_TRACKED, OWN_SETS6],
    );
}

#[test]
fn inet_rules_match_nft() {
    let all = [
        EVERYWHERE, IP, TRACKED, V4, V4_TRACKED, V6, V6_TRACKED, INET, OWN_SETS, OWN_SETS6,
    ];
    let compared = same(Family::INET, &all);
    assert!(compared > 250, "{compared}");
}

#[test]
fn bridge_rules_match_nft() {
    same(Family::BRIDGE, &[EVERYWHERE, IP, V4, V6, FRAMES]);
}

#[test]
fn netdev_rules_match_nft() {
    same(Family::NETDEV, &[EVERYWHERE, IP, V4, V6, FRAMES, NETDEV]);
}

/// A rule that is built in the memory of another one allocates nothing.
#[test]
fn reusing_a_rules_memory_allocates_nothing() {
    let build = |rule| {
        Build::again(rule)
            .iifname("eth*")
            .ip_saddr((v4(0), 12))
            .tcp_sport(1)
            .tcp_dport(22)
            .ct_state(CtState::NEW)
            .lookup(&[ip::DADDR, meta::L4PROTO, th::DPORT], "set")
            .meta_mark_set(or(0x4000))
            .limit(Rate::per_minute(10))
            .log_prefix("new: ")
            .counter()
            .dnat(NatTo::map_with_port(Version::V4, numgen_random(2), "map"))
            .unwrap()
    };
    let mut rule = Some(build(Rule::new(Family::INET, "t", "c")));
    let first = rule.clone();
    let measured = allocation_counter::measure(|| rule = rule.take().map(build));
    assert_eq!(measured.count_total, 0);
    assert_eq!(rule, first);
}

fn without_ip(pairs: &[Pair]) -> Vec<Pair> {
    let of_ip = |pair: &&Pair| !pair.0.contains("ip ") && !pair.0.ends_with(" ip");
    pairs.iter().filter(of_ip).copied().collect()
}
