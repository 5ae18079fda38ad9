//! Rejected rules, and reuse of a rule's memory. `tests/nft/build.rs` compares rules with nft's,
//! in the kernel.

#[cfg(target_endian = "little")]
mod bytes;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

use super::*;
use crate::nft::expr::{FibFlags, Log, LogLevel, NatRangeFlags, RejectIcmpxCode};

const V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const V6: Ipv6Addr = Ipv6Addr::LOCALHOST;
const NONE: NatRangeFlags = NatRangeFlags::empty();

fn build(family: Family) -> Build<'static> {
    Build::new(family, "t", "c")
}

fn error(build: Build<'_>) -> BuildError {
    build.finish().unwrap_err()
}

/// Asserts that a rule can be built in these families only.
#[track_caller]
fn only_in(
    families: &[Family],
    rule: impl Fn(Build<'static>) -> Result<Rule<'static>, BuildError>,
) {
    for family in Family::WITH_TABLES {
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
fn errors_of_unsupported_families() {
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
    only_in(&Family::WITH_TABLES, |b| {
        b.iifname("eth0").meta_mark(1).counter().accept()
    });
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
    // A negated match implies no protocol.
    let rule = inet().meta_l4proto(not(Protocol::UDP)).udp_dport(1);
    assert!(rule.finish().is_ok());
}

#[test]
fn matching_ports_requires_a_protocol_with_ports() {
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

    // The protocol is matched before, by a set before, or in the same key.
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
fn changing_ports_requires_a_protocol_with_ports() {
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
fn values_of_the_wrong_kind() {
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
    // 256 is after 255 in either byte order.
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
    // Only names may be shorter than the compared field.
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
fn invalid_keys() {
    let ip = || build(Family::IP);
    assert_eq!(error(ip().lookup(&[], "s")), BuildError::Key { length: 0 });
    // All registers have four times 16 bytes.
    let most = [ip6::SADDR; 4];
    assert!(build(Family::IP6).lookup(&most, "s").finish().is_ok());
    let more = [ip6::SADDR, ip6::SADDR, ip6::SADDR, ip6::SADDR, tcp::DPORT];
    assert_eq!(
        error(build(Family::IP6).lookup(&more, "s")),
        BuildError::Key { length: 68 }
    );
    // A hash uses one register for its result.
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
    // The start of a name can be compared with any field, but not ordered or masked.
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
    // The builder knows the key length of a set that it was given.
    let set = AnonymousSet::ports(Family::IP, "t", 1, [22]);
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
fn invalid_statements() {
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
fn invalid_anonymous_sets() {
    let of =
        |elements: Vec<Match<'static, u16>>| AnonymousSet::of::<u16>(Family::IP, "t", 1, elements);
    assert_eq!(of(vec![not(22).into()]), Err(BuildError::Element));
    assert_eq!(of(vec![less_than(22).into()]), Err(BuildError::Element));
    assert_eq!(of(vec![in_set("s").into()]), Err(BuildError::Element));
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let backwards = 2..=1;
    let what = "an element";
    assert_eq!(of(vec![backwards.into()]), Err(BuildError::Range { what }));
    let (length, max) = (33, 32);
    assert_eq!(
        AnonymousSet::of::<Ipv4Addr>(Family::IP, "t", 1, [(V4, length)]),
        Err(BuildError::Prefix { what, length, max })
    );
    assert_eq!(of(vec![]), Err(BuildError::Element));
    let names = AnonymousSet::of::<Interface<'_>>(Family::IP, "t", 1, ["eth*"]);
    assert_eq!(names, Err(BuildError::Element));
}

#[test]
fn the_first_error_is_returned() {
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
        "`ip6 saddr` is not supported in a table of family ip"
    );
}

/// nft has no syntax for it; the expressions are the same as for a field's bits.
#[test]
fn bits_of_a_map_lookup_are_changed() {
    let number = map(ip::SADDR, "marks").with(and(0xff)).with(or(0x101));
    let rule = build(Family::IP).ct_mark_set(number).finish().unwrap();
    let mask = IntegerExpr::from(0x1234).with(and_xor(0xff, 1));
    assert_eq!(mask, 0x35.into());
    // The changes combine for any bits.
    let both = [or(0x0f0), xor(0xff), and(0x3c)].into_iter();
    let value = both.fold(IntegerExpr::from(0x1204), IntegerExpr::with);
    assert_eq!(value, (((0x1204 | 0x0f0) ^ 0xff) & 0x3c).into());
    let both = IntegerExpr::from(or(0x0f0)).with(xor(0xff)).with(and(0x3c));
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
fn reused_memory_is_cleared() {
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
