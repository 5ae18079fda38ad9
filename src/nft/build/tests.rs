//! What is refused, and what is not kept from one rule to the next. That the rules themselves are
//! nft's is for `tests/build.rs`, with the kernel.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

use super::*;
use crate::nft::expr::{FibFlags, Log, LogLevel, NatRangeFlags, RejectIcmpxCode};

const V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const V6: Ipv6Addr = Ipv6Addr::LOCALHOST;
const NONE: NatRangeFlags = NatRangeFlags::empty();

const ALL: [Family; 6] = [
    Family::IP,
    Family::IP6,
    Family::INET,
    Family::BRIDGE,
    Family::NETDEV,
    Family::ARP,
];

fn build(family: Family) -> Build<'static> {
    Build::new(family, "t", "c")
}

fn error(build: Build<'_>) -> BuildError {
    build.finish().unwrap_err()
}

/// The families in which a rule cannot be.
#[track_caller]
fn only_in(
    families: &[Family],
    rule: impl Fn(Build<'static>) -> Result<Rule<'static>, BuildError>,
) {
    for family in ALL {
        match rule(build(family)) {
            Ok(_) => assert!(families.contains(&family), "{family}"),
            Err(BuildError::Family { family: of, .. }) => {
                assert_eq!(of, family);
                assert!(!families.contains(&family), "{family}");
            }
            Err(other) => panic!("{family}: {other}"),
        }
    }
}

const NOT_IP6: [Family; 4] = [Family::IP, Family::INET, Family::BRIDGE, Family::NETDEV];
const NOT_IP: [Family; 4] = [Family::IP6, Family::INET, Family::BRIDGE, Family::NETDEV];
const NOT_ARP: [Family; 5] = [
    Family::IP,
    Family::IP6,
    Family::INET,
    Family::BRIDGE,
    Family::NETDEV,
];
const TRACKED: [Family; 4] = [Family::IP, Family::IP6, Family::INET, Family::BRIDGE];
const ROUTED: [Family; 4] = [Family::IP, Family::IP6, Family::INET, Family::NETDEV];
const NAT: [Family; 3] = [Family::IP, Family::IP6, Family::INET];

#[test]
fn what_a_family_has_not() {
    only_in(&NOT_IP6, |b| b.ip_saddr(V4).finish());
    only_in(&NOT_IP6, |b| b.icmp_type(IcmpType::ECHO_REQUEST).finish());
    only_in(&[Family::IP, Family::INET, Family::BRIDGE], |b| {
        b.ct_original_ip_saddr(V4).finish()
    });
    only_in(&TRACKED, |b| b.ct_state(CtState::NEW).finish());
    only_in(&TRACKED, |b| b.ct_mark_set(or(1)).finish());
    only_in(&ROUTED, |b| b.fib_missing(FibFlags::SADDR).finish());
    only_in(&ROUTED, |b| b.fib_daddr_type(AddressType::LOCAL).finish());
    only_in(&NOT_IP6, |b| {
        b.lookup(&[ip::SADDR, tcp::DPORT], "s").finish()
    });
    only_in(&NOT_IP6, |b| b.update_element("s", ip::SADDR).finish());
    only_in(&NOT_IP, |b| b.ip6_saddr(V6).finish());
    only_in(&NOT_IP, |b| {
        b.icmpv6_type(Icmpv6Type::ECHO_REQUEST).finish()
    });
    only_in(&NOT_ARP, |b| b.tcp_dport(22).finish());
    only_in(&NOT_ARP, |b| {
        b.meta_l4proto(Protocol::UDP).th_dport(22).finish()
    });
    only_in(&NOT_ARP, |b| b.meta_l4proto(Protocol::TCP).finish());
    only_in(&NOT_ARP, |b| b.reject());
    only_in(&NOT_ARP, |b| b.reject_with(RejectWith::TcpReset));
    only_in(&[Family::INET], |b| b.meta_nfproto(Family::IP).finish());
    only_in(&NAT, |b| b.masquerade(NONE));
    only_in(&NAT, |b| b.redirect(NONE));
    only_in(&[Family::IP, Family::INET], |b| b.dnat(V4));
    only_in(&[Family::IP6, Family::INET], |b| b.snat(V6));
    only_in(&[Family::INET, Family::BRIDGE, Family::NETDEV], |b| {
        b.reject_with(RejectWith::Icmpx(RejectIcmpxCode::NO_ROUTE))
    });
    only_in(&NOT_IP, |b| {
        b.reject_with(RejectWith::Icmpv6(Icmpv6Code::NO_ROUTE))
    });
    only_in(&NOT_IP6, |b| {
        b.reject_with(RejectWith::Icmp(IcmpCode::PORT_UNREACHABLE))
    });
    only_in(&ALL, |b| b.iifname("eth0").meta_mark(1).counter().accept());
}

#[test]
fn one_rule_is_for_one_protocol() {
    let conflict = |what, protocol| BuildError::Conflict { what, protocol };
    let inet = || build(Family::INET);
    assert_eq!(
        error(inet().ip_saddr(V4).ip6_saddr(V6)),
        conflict("ip6 saddr", "ip")
    );
    assert_eq!(
        error(inet().ip6_saddr(V6).ip_saddr(V4)),
        conflict("ip saddr", "ip6")
    );
    assert_eq!(
        error(inet().tcp_dport(1).udp_dport(1)),
        conflict("udp dport", "tcp")
    );
    assert_eq!(
        error(inet().meta_l4proto(Protocol::UDP).tcp_dport(1)),
        conflict("tcp dport", "udp")
    );
    assert_eq!(
        error(inet().tcp_dport(1).meta_l4proto(Protocol::UDP)),
        conflict("meta l4proto", "tcp")
    );
    assert_eq!(
        error(
            inet()
                .meta_nfproto(Family::IP6)
                .icmp_type(IcmpType::REDIRECT)
        ),
        conflict("icmp type", "ip6")
    );
    assert_eq!(
        inet().ip_saddr(V4).dnat(V6).unwrap_err(),
        conflict("dnat", "ip")
    );
    assert_eq!(
        inet()
            .udp_dport(1)
            .reject_with(RejectWith::TcpReset)
            .unwrap_err(),
        conflict("reject with tcp reset", "udp")
    );
    assert_eq!(
        inet()
            .ip_saddr(V4)
            .reject_with(RejectWith::Icmpv6(Icmpv6Code::NO_ROUTE))
            .unwrap_err(),
        conflict("reject with icmpv6", "ip")
    );
    // What is not so limits nothing.
    let rule = inet().meta_l4proto(not(Protocol::UDP)).udp_dport(1);
    assert!(rule.finish().is_ok());
}

#[test]
fn ports_of_what_has_none_are_not_looked_at() {
    let refused = |rule: Result<Rule<'_>, BuildError>, what| {
        assert_eq!(rule, Err(BuildError::NoTransport { what }));
    };
    let ip = || build(Family::IP);
    refused(ip().th_dport(53).finish(), "th dport");
    refused(ip().th_sport(53).finish(), "th sport");
    refused(ip().matches(th::DPORT, 53u16).finish(), "th dport");
    refused(ip().th_dport(in_set("ports")).finish(), "th dport");
    refused(
        ip().update_element("s", &[ip::SADDR, th::DPORT]).finish(),
        "th dport",
    );
    refused(
        ip().lookup(&[ip::SADDR, th::DPORT], "s").finish(),
        "th dport",
    );
    let icmp = ip().meta_l4proto(Protocol::ICMP);
    refused(icmp.th_dport(53).finish(), "th dport");
    let not_icmp = ip().meta_l4proto(not(Protocol::ICMP));
    refused(not_icmp.th_dport(53).finish(), "th dport");
    let not_these = ip().meta_l4proto(not(in_set("protocols")));
    refused(not_these.th_dport(53).finish(), "th dport");

    // The protocol before it, of a set before it, or in the same key.
    let taken = [
        ip().meta_l4proto(Protocol::UDP).th_dport(53),
        ip().ip_protocol(Protocol::TCP).th_dport(53),
        ip().tcp_sport(1).th_dport(53),
        ip().meta_l4proto(in_set("protocols")).th_dport(53),
        ip().lookup(&[meta::L4PROTO, th::DPORT], "s"),
        ip().lookup(&[th::DPORT, ip::PROTOCOL], "s"),
    ];
    for rule in taken {
        assert!(rule.finish().is_ok());
    }
    let arp = build(Family::ARP).lookup(&[meta::L4PROTO, th::DPORT], "s");
    assert!(matches!(arp.finish(), Err(BuildError::Family { .. })));
}

#[test]
fn ports_of_what_has_none_are_not_changed() {
    let none = |what| Err(BuildError::NoTransport { what });
    let to = SocketAddrV4::new(V4, 80);
    assert_eq!(build(Family::IP).dnat(to), none("dnat"));
    assert_eq!(build(Family::IP).snat(NatTo::ports(80)), none("snat"));
    assert_eq!(
        build(Family::IP).masquerade_to(80, NONE),
        none("masquerade")
    );
    assert_eq!(build(Family::IP).redirect_to(80, NONE), none("redirect"));
    let map = NatTo::map_with_port(Version::V4, &[ip::DADDR, th::DPORT], "m");
    assert_eq!(build(Family::IP).dnat(map), none("th dport"));
    let map = NatTo::map_with_port(Version::V4, &[ip::DADDR, meta::L4PROTO], "m");
    assert_eq!(build(Family::IP).dnat(map), none("dnat"));
    let icmp = build(Family::IP).meta_l4proto(Protocol::ICMP);
    assert_eq!(icmp.dnat(to), none("dnat"));
    let not_udp = build(Family::IP).meta_l4proto(not(Protocol::UDP));
    assert_eq!(not_udp.dnat(to), none("dnat"));
    let not_these = build(Family::IP).meta_l4proto(not(in_set("protocols")));
    assert_eq!(not_these.dnat(to), none("dnat"));
    assert!(build(Family::IP).udp_dport(1).dnat(to).is_ok());
}

#[test]
fn values_that_compare_with_something_else() {
    let ip = || build(Family::IP);
    let what = "ip saddr";
    let prefix = |length| BuildError::Prefix {
        what,
        length,
        max: 32,
    };
    assert_eq!(error(ip().ip_saddr((V4, 33))), prefix(33));
    assert_eq!(error(ip().ip_saddr((V4, 255))), prefix(255));
    let backwards = Ipv4Addr::new(10, 0, 0, 9)..=V4;
    assert_eq!(
        error(ip().ip_saddr(backwards.clone())),
        BuildError::Range { what }
    );
    assert_eq!(
        error(ip().ip_saddr(not(backwards))),
        BuildError::Range { what }
    );
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let backwards = 2..=1;
    let what = "meta mark";
    assert_eq!(error(ip().meta_mark(backwards)), BuildError::Range { what });
    // 256 is after 255 on every machine.
    assert!(ip().meta_mark(255..=256).finish().is_ok());
    assert_eq!(
        error(ip().meta_mark(masked(0x100, 0xff))),
        BuildError::Mask { what }
    );
    assert_eq!(
        error(ip().meta_mark(not(masked(2, 1)))),
        BuildError::Mask { what }
    );
    let what = "ct state";
    assert_eq!(
        error(ip().ct_state(CtState::empty())),
        BuildError::NoFlags { what }
    );
    assert_eq!(
        error(ip().ct_state(not(CtState::empty()))),
        BuildError::NoFlags { what }
    );
    let (what, length, expected) = ("meta mark", 2, 4);
    assert_eq!(
        error(ip().matches(meta::MARK, 5u16)),
        BuildError::ValueLength {
            what,
            length,
            expected
        }
    );
    for name in ["", "*", "a234567890123456", "a234567890123456*", "a\0b"] {
        assert_eq!(
            error(ip().iifname(name)),
            BuildError::InterfaceName,
            "{name:?}"
        );
    }
    for name in [
        "a",
        "a23456789012345",
        "a23456789012345*",
        "a2345678901234\\*",
        "\\*",
    ] {
        assert!(ip().iifname(name).finish().is_ok(), "{name:?}");
    }
    // A name and no other kind of value may be the start of what is compared.
    let what = "iifname";
    assert_eq!(
        error(ip().matches(meta::IIFNAME, 5u32)),
        BuildError::ValueLength {
            what,
            length: 4,
            expected: 16
        }
    );
}

#[test]
fn keys_that_cannot_be() {
    let ip = || build(Family::IP);
    assert_eq!(error(ip().lookup(&[], "s")), BuildError::Key { length: 0 });
    // Four times 16 bytes is all there is.
    let most = [ip6::SADDR; 4];
    assert!(build(Family::IP6).lookup(&most, "s").finish().is_ok());
    let more = [ip6::SADDR, ip6::SADDR, ip6::SADDR, ip6::SADDR, tcp::DPORT];
    assert_eq!(
        error(build(Family::IP6).lookup(&more, "s")),
        BuildError::Key { length: 68 }
    );
    // Of a hash one of them is the number's.
    let hashed = build(Family::IP6).vmap(jhash(&most, 2), "m");
    assert_eq!(error(hashed), BuildError::Key { length: 64 });
    assert!(
        build(Family::IP6)
            .vmap(jhash(&most[..3], 2), "m")
            .finish()
            .is_ok()
    );
    let data = element(&most[..2]).data(&most[..]);
    assert_eq!(
        error(build(Family::IP6).add_element("m", data)),
        BuildError::Key { length: 96 }
    );
    let raw = Selector::raw(PayloadBase::INNER, 0, 255);
    assert_eq!(
        error(ip().lookup(raw, "s")),
        BuildError::Key { length: 255 }
    );
    assert_eq!(
        error(ip().matches(raw, 1u32)),
        BuildError::Key { length: 255 }
    );
    // The start of a name, wherever names are; it is in no order, and has no mask.
    let raw = Selector::raw(PayloadBase::INNER, 0, 64);
    let (start, what) = (Interface("eth*"), "raw payload");
    assert!(ip().matches(raw, start).finish().is_ok());
    let (length, expected) = (3, 64);
    let refused = BuildError::ValueLength {
        what,
        length,
        expected,
    };
    assert_eq!(error(ip().matches(raw, less_than(start))), refused);
    assert_eq!(
        error(ip().matches(raw, masked(start, Interface("eth0")))),
        refused
    );
    let what = "iifname";
    let (length, expected) = (3, 16);
    let refused = BuildError::ValueLength {
        what,
        length,
        expected,
    };
    assert_eq!(error(ip().iifname(Interface("eth0")..=start)), refused);
    let pair = error(ip().matches(&[ip::SADDR, ip::DADDR], V4));
    assert_eq!(pair, BuildError::Concatenation);
    for (modulus, offset) in [(0, 0), (2, u32::MAX)] {
        let refused = BuildError::Modulus { modulus, offset };
        assert_eq!(
            error(ip().vmap(numgen_inc(modulus).offset(offset), "m")),
            refused
        );
        assert_eq!(
            error(ip().vmap(symhash(modulus).offset(offset), "m")),
            refused
        );
        let hash = jhash(&[ip::SADDR], modulus).offset(offset);
        assert_eq!(error(ip().meta_mark_set(hash)), refused);
    }
    assert!(
        ip().vmap(numgen_inc(1).offset(u32::MAX), "m")
            .finish()
            .is_ok()
    );
    // A set that was given whole has keys of a length that is known.
    let set = Anonymous::ports(Family::IP, "t", 1, [22]);
    let (length, expected) = (4, 2);
    assert_eq!(
        error(ip().ip_saddr(&set)),
        BuildError::SetKey { length, expected }
    );
    assert_eq!(
        error(ip().vmap(ip::SADDR, &set)),
        BuildError::SetKey { length, expected }
    );
    assert_eq!(
        error(ip().add_element(&set, ip::SADDR)),
        BuildError::SetKey { length, expected }
    );
    let what = "meta mark";
    let (length, expected) = (2, 4);
    assert_eq!(
        error(ip().meta_mark_set(copy(tcp::DPORT))),
        BuildError::ValueLength {
            what,
            length,
            expected
        }
    );
}

#[test]
fn statements_that_cannot_be() {
    let ip = || build(Family::IP);
    let both = Log {
        level: Some(LogLevel::INFO),
        group: Some(1),
        ..Log::default()
    };
    assert_eq!(error(ip().log(&both)), BuildError::LogGroup);
    assert_eq!(
        error(ip().log_prefix(&"x".repeat(128))),
        BuildError::LogPrefix
    );
    assert!(ip().log_prefix(&"x".repeat(127)).finish().is_ok());
    assert_eq!(error(ip().limit(Rate::per_hour(0))), BuildError::Rate);
    assert!(matches!(
        error(ip().comment(&"x".repeat(129))),
        BuildError::Comment(_)
    ));
    let what = "dnat";
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let ports = 2..=1;
    let range = Err(BuildError::Range { what });
    assert_eq!(
        ip().tcp_dport(1).dnat(NatTo::from(V4).with_ports(ports)),
        range
    );
    assert_eq!(ip().dnat(Ipv4Addr::new(10, 0, 0, 9)..=V4), range);
}

#[test]
fn anonymous_sets_that_cannot_be() {
    let of =
        |elements: Vec<Match<'static, u16>>| Anonymous::of::<u16>(Family::IP, "t", 1, elements);
    assert_eq!(of(vec![not(22).into()]), Err(BuildError::Element));
    assert_eq!(of(vec![less_than(22).into()]), Err(BuildError::Element));
    assert_eq!(of(vec![in_set("s").into()]), Err(BuildError::Element));
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let backwards = 2..=1;
    let what = "an element";
    assert_eq!(of(vec![backwards.into()]), Err(BuildError::Range { what }));
    let (length, max) = (33, 32);
    assert_eq!(
        Anonymous::of::<Ipv4Addr>(Family::IP, "t", 1, [(V4, length)]),
        Err(BuildError::Prefix { what, length, max })
    );
    assert_eq!(of(vec![]), Err(BuildError::Element));
    let names = Anonymous::of::<Interface<'_>>(Family::IP, "t", 1, ["eth*"]);
    assert_eq!(names, Err(BuildError::Element));
}

#[test]
fn the_first_error_is_the_one() {
    let error = build(Family::IP)
        .ip6_saddr(V6)
        .iifname("")
        .tcp_dport(22)
        .accept()
        .unwrap_err();
    let (what, family) = ("ip6 saddr", Family::IP);
    assert_eq!(error, BuildError::Family { what, family });
    assert_eq!(
        error.to_string(),
        "`ip6 saddr` has no meaning in a table of the family ip"
    );
}

/// nft has no words for it; the expressions are those of a field's bits.
#[test]
fn bits_of_what_a_map_has_are_changed() {
    let number = map(ip::SADDR, "marks").with(and(0xff)).with(or(0x101));
    let rule = build(Family::IP).ct_mark_set(number).finish().unwrap();
    let mask = Number::from(0x1234).with(and_xor(0xff, 1));
    assert_eq!(mask, 0x35.into());
    // Whatever the bits are, both changes are made.
    let both = [or(0x0f0), xor(0xff), and(0x3c)].into_iter();
    let value = both.fold(Number::from(0x1204), Number::with);
    assert_eq!(value, (((0x1204 | 0x0f0) ^ 0xff) & 0x3c).into());
    let both = Number::from(or(0x0f0)).with(xor(0xff)).with(and(0x3c));
    assert_eq!(both, and_xor(0x0c, 0x0c).into());
    let expected = "ip t c
  [ payload load 4b @ network header + 12 => reg 1 ]
  [ lookup reg 1 set marks dreg 1 ]
  [ bitwise reg 1 = ( reg 1 & 0x000000fe ) ^ 0x00000101 ]
  [ ct set mark with reg 1 ]

";
    assert_eq!(rule.to_string(), expected);
}

#[test]
fn nothing_of_a_rule_is_in_the_next_one_in_its_memory() {
    let rule = build(Family::INET)
        .ip_saddr(V4)
        .tcp_dport(22)
        .comment("the first")
        .accept()
        .unwrap();
    let rule = Rule {
        handle: Some(7),
        position: Some(6),
        ..rule
    };
    let again = Build::again(rule).udp_dport(53).drop().unwrap();
    assert_eq!(again, build(Family::INET).udp_dport(53).drop().unwrap());
    let address = again.expressions.as_ref().map(|e| e.as_bytes().as_ptr());
    let third = Build::again(again).accept().unwrap();
    assert_eq!(
        third.expressions.as_ref().map(|e| e.as_bytes().as_ptr()),
        address
    );
}

/// What nft 1.0.6 sends (x86-64, `strace -e trace=sendmsg -e write=all nft add rule …`) in
/// `NFTA_RULE_EXPRESSIONS`, and the same rules as they are built.
#[test]
#[cfg(target_endian = "little")]
fn the_bytes_are_those_that_nft_sends() {
    use crate::nft::captured::hex;
    use crate::nft::expr::Quota;

    let same = |text: &str, rule: Result<Rule<'_>, BuildError>, sent: &str| {
        let rule = rule.unwrap();
        let built = rule.expressions.as_ref().unwrap();
        // The padding at the end is the message's.
        let mut sent = hex(sent);
        sent.resize(sent.len().next_multiple_of(4), 0);
        let hex = |bytes: &[u8]| crate::nft::Bytes::from(bytes).to_string();
        assert_eq!(hex(built.as_bytes()), hex(&sent), "{text}\n{rule}");
    };
    same(
        "ip: ip saddr 10.0.0.0/12 tcp dport 22 ct state new counter accept",
        build(Family::IP)
            .ip_saddr((Ipv4Addr::new(10, 0, 0, 0), 12))
            .tcp_dport(22)
            .ct_state(CtState::NEW)
            .counter()
            .accept(),
        "
            34000180 0c000100 7061796c 6f616400 24000280 08000100 00000001 08000200 00000001
            08000300 0000000c 08000400 00000004 44000180 0c000100 62697477 69736500 34000280
            08000100 00000001 08000200 00000001 08000300 00000004 0c000480 08000100 fff00000
            0c000580 08000100 00000000 2c000180 08000100 636d7000 20000280 08000100 00000001
            08000200 00000000 0c000380 08000100 0a000000 24000180 09000100 6d657461 00000000
            14000280 08000200 00000010 08000100 00000001 2c000180 08000100 636d7000 20000280
            08000100 00000001 08000200 00000000 0c000380 05000100 06000000 34000180 0c000100
            7061796c 6f616400 24000280 08000100 00000001 08000200 00000002 08000300 00000002
            08000400 00000002 2c000180 08000100 636d7000 20000280 08000100 00000001 08000200
            00000000 0c000380 06000100 00160000 20000180 07000100 63740000 14000280 08000200
            00000000 08000100 00000001 44000180 0c000100 62697477 69736500 34000280 08000100
            00000001 08000200 00000001 08000300 00000004 0c000480 08000100 08000000 0c000580
            08000100 00000000 2c000180 08000100 636d7000 20000280 08000100 00000001 08000200
            00000001 0c000380 08000100 00000000 14000180 0c000100 636f756e 74657200 04000280
            30000180 0e000100 696d6d65 64696174 65000000 1c000280 08000100 00000000 10000280
            0c000280 08000100 00000001
        ",
    );
    same(
        r#"inet: iifname "eth*" ip6 daddr != fd00::/64 limit rate over 10/minute log prefix "x" level debug drop"#,
        build(Family::INET)
            .iifname("eth*")
            .ip6_daddr(not((Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0), 64)))
            .limit(Rate::per_minute(10).over())
            .log(&Log {
                level: Some(LogLevel::DEBUG),
                ..Log::prefix("x")
            })
            .drop(),
        "
            24000180 09000100 6d657461 00000000 14000280 08000200 00000006 08000100 00000001
            2c000180 08000100 636d7000 20000280 08000100 00000001 08000200 00000000 0c000380
            07000100 65746800 24000180 09000100 6d657461 00000000 14000280 08000200 0000000f
            08000100 00000001 2c000180 08000100 636d7000 20000280 08000100 00000001 08000200
            00000000 0c000380 05000100 0a000000 34000180 0c000100 7061796c 6f616400 24000280
            08000100 00000001 08000200 00000001 08000300 00000018 08000400 00000008 30000180
            08000100 636d7000 24000280 08000100 00000001 08000200 00000001 10000380 0c000100
            fd000000 00000000 44000180 0a000100 6c696d69 74000000 34000280 0c000100 00000000
            0000000a 0c000200 00000000 0000003c 08000300 00000005 08000400 00000000 08000500
            00000001 20000180 08000100 6c6f6700 14000280 06000200 78000000 08000500 00000007
            30000180 0e000100 696d6d65 64696174 65000000 1c000280 08000100 00000000 10000280
            0c000280 08000100 00000000
        ",
    );
    same(
        "inet: tcp sport 1 tcp dport 2 meta mark set meta mark | 0x4000 reject with tcp reset",
        build(Family::INET)
            .tcp_sport(1)
            .tcp_dport(2)
            .meta_mark_set(or(0x4000))
            .reject_with(RejectWith::TcpReset),
        "
            24000180 09000100 6d657461 00000000 14000280 08000200 00000010 08000100 00000001
            2c000180 08000100 636d7000 20000280 08000100 00000001 08000200 00000000 0c000380
            05000100 06000000 34000180 0c000100 7061796c 6f616400 24000280 08000100 00000001
            08000200 00000002 08000300 00000000 08000400 00000004 2c000180 08000100 636d7000
            20000280 08000100 00000001 08000200 00000000 0c000380 08000100 00010002 24000180
            09000100 6d657461 00000000 14000280 08000200 00000003 08000100 00000001 4c000180
            0c000100 62697477 69736500 3c000280 08000100 00000001 08000200 00000001 08000600
            00000000 08000300 00000004 0c000480 08000100 ffbfffff 0c000580 08000100 00400000
            24000180 09000100 6d657461 00000000 14000280 08000200 00000003 08000300 00000001
            24000180 0b000100 72656a65 63740000 14000280 08000100 00000001 05000200 00000000
        ",
    );
    same(
        "ip: meta l4proto tcp dnat to 10.0.0.1-10.0.0.9:80-90 random",
        build(Family::IP).meta_l4proto(Protocol::TCP).dnat(
            NatTo::from(V4..=Ipv4Addr::new(10, 0, 0, 9))
                .with_ports(80..=90)
                .with_flags(NatRangeFlags::PROTO_RANDOM),
        ),
        "
            24000180 09000100 6d657461 00000000 14000280 08000200 00000010 08000100 00000001
            2c000180 08000100 636d7000 20000280 08000100 00000001 08000200 00000000 0c000380
            05000100 06000000 2c000180 0e000100 696d6d65 64696174 65000000 18000280 08000100
            00000001 0c000280 08000100 0a000001 2c000180 0e000100 696d6d65 64696174 65000000
            18000280 08000100 00000002 0c000280 08000100 0a000009 2c000180 0e000100 696d6d65
            64696174 65000000 18000280 08000100 00000003 0c000280 06000100 00500000 2c000180
            0e000100 696d6d65 64696174 65000000 18000280 08000100 00000004 0c000280 06000100
            005a0000 48000180 08000100 6e617400 3c000280 08000100 00000001 08000200 00000002
            08000300 00000001 08000400 00000002 08000500 00000003 08000600 00000004 08000700
            00000006
        ",
    );
    same(
        "inet: meta mark 1-5 meta mark set jhash ip saddr . ip daddr mod 2 offset 3",
        build(Family::INET)
            .meta_mark(1..=5)
            .meta_mark_set(jhash(&[ip::SADDR, ip::DADDR], 2).offset(3))
            .finish(),
        "
            24000180 09000100 6d657461 00000000 14000280 08000200 00000003 08000100 00000001
            40000180 0e000100 62797465 6f726465 72000000 2c000280 08000100 00000001 08000200
            00000001 08000300 00000001 08000400 00000004 08000500 00000004 2c000180 08000100
            636d7000 20000280 08000100 00000001 08000200 00000005 0c000380 08000100 00000001
            2c000180 08000100 636d7000 20000280 08000100 00000001 08000200 00000003 0c000380
            08000100 00000005 24000180 09000100 6d657461 00000000 14000280 08000200 0000000f
            08000100 00000001 2c000180 08000100 636d7000 20000280 08000100 00000001 08000200
            00000000 0c000380 05000100 02000000 34000180 0c000100 7061796c 6f616400 24000280
            08000100 00000002 08000200 00000001 08000300 0000000c 08000400 00000004 34000180
            0c000100 7061796c 6f616400 24000280 08000100 0000000d 08000200 00000001 08000300
            00000010 08000400 00000004 44000180 09000100 68617368 00000000 34000280 08000100
            00000002 08000200 00000001 08000300 00000008 08000400 00000002 08000600 00000003
            08000700 00000000 24000180 09000100 6d657461 00000000 14000280 08000200 00000003
            08000300 00000001
        ",
    );
    same(
        "ip: fib saddr . iif oif missing ct original ip saddr 10.0.0.0/8 ct mark set numgen inc mod 4 masquerade fully-random",
        build(Family::IP)
            .fib_missing(FibFlags::SADDR | FibFlags::IIF)
            .ct_original_ip_saddr((Ipv4Addr::new(10, 0, 0, 0), 8))
            .ct_mark_set(numgen_inc(4))
            .masquerade(NatRangeFlags::PROTO_RANDOM_FULLY),
        "
            28000180 08000100 66696200 1c000280 08000300 00000029 08000200 00000001 08000100
            00000001 2c000180 08000100 636d7000 20000280 08000100 00000001 08000200 00000000
            0c000380 08000100 00000000 28000180 07000100 63740000 1c000280 08000200 00000013
            08000100 00000001 05000300 00000000 2c000180 08000100 636d7000 20000280 08000100
            00000001 08000200 00000000 0c000380 05000100 0a000000 34000180 0b000100 6e756d67
            656e0000 24000280 08000100 00000001 08000200 00000004 08000300 00000000 08000400
            00000000 20000180 07000100 63740000 14000280 08000200 00000003 08000400 00000001
            1c000180 09000100 6d617371 00000000 0c000280 08000100 00000010
        ",
    );
    same(
        "bridge: icmp type echo-request quota over 25 mbytes used 5 bytes jump c2",
        build(Family::BRIDGE)
            .icmp_type(IcmpType::ECHO_REQUEST)
            .quota(&Quota::over(25 << 20).with_consumed(5))
            .jump("c2"),
        "
            34000180 0c000100 7061796c 6f616400 24000280 08000100 00000001 08000200 00000000
            08000300 0000000c 08000400 00000002 2c000180 08000100 636d7000 20000280 08000100
            00000001 08000200 00000000 0c000380 06000100 08000000 24000180 09000100 6d657461
            00000000 14000280 08000200 00000010 08000100 00000001 2c000180 08000100 636d7000
            20000280 08000100 00000001 08000200 00000000 0c000380 05000100 01000000 34000180
            0c000100 7061796c 6f616400 24000280 08000100 00000001 08000200 00000002 08000300
            00000000 08000400 00000001 2c000180 08000100 636d7000 20000280 08000100 00000001
            08000200 00000000 0c000380 05000100 08000000 34000180 0a000100 71756f74 61000000
            24000280 0c000100 00000000 01900000 0c000400 00000000 00000005 08000200 00000001
            38000180 0e000100 696d6d65 64696174 65000000 24000280 08000100 00000000 18000280
            14000280 08000100 fffffffd 07000200 63320000
        ",
    );
}
