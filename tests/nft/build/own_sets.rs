//! Rules with anonymous sets.

use chainwright::nft::DataType;
use chainwright::nft::build::ByteOrder;

use super::*;

/// With anonymous sets, in families with IPv4.
pub(crate) const OWN_SETS: &[Pair] = &[
    ("tcp dport { 22, 80 }", |make| {
        let set = make.set(AnonymousSet::ports(make.family, "t", make.id, [22, 80]));
        make.rule().tcp_dport(&set).finish()
    }),
    ("tcp dport != { 22, 80 } drop", |make| {
        let set = make.set(AnonymousSet::ports(make.family, "t", make.id, [22, 80]));
        make.rule().tcp_dport(not(&set)).drop()
    }),
    ("tcp dport { 22-80, 443 }", |make| {
        let ports = AnonymousSet::of::<u16>(make.family, "t", make.id, [22..=80, 443..=443])?;
        let set = make.set(ports);
        make.rule().tcp_dport(&set).finish()
    }),
    ("tcp dport { 1024-65535, 80 }", |make| {
        let ports = AnonymousSet::of::<u16>(make.family, "t", make.id, [1024..=65535, 80..=80])?;
        let set = make.set(ports);
        make.rule().tcp_dport(in_set(&set)).finish()
    }),
    ("ip saddr { 10.0.0.1, 10.0.0.2 }", |make| {
        let set = make.set(AnonymousSet::addresses(
            make.family,
            "t",
            make.id,
            [v4(1), v4(2)],
        ));
        make.rule().ip_saddr(&set).finish()
    }),
    ("ip saddr { 10.0.0.0/8, 192.168.0.0/16 }", |make| {
        let prefixes = [(v4(3), 8), (Ipv4Addr::new(192, 168, 0, 0), 16)];
        let set = AnonymousSet::of::<Ipv4Addr>(make.family, "t", make.id, prefixes)?;
        let set = make.set(set);
        make.rule().ip_saddr(&set).finish()
    }),
    ("meta l4proto { tcp, udp } th dport 53", |make| {
        let protocols = [Protocol::TCP, Protocol::UDP];
        let set = make.set(AnonymousSet::protocols(
            make.family,
            "t",
            make.id,
            protocols,
        ));
        make.rule().meta_l4proto(&set).th_dport(53).finish()
    }),
    ("icmp type { echo-request, echo-reply }", |make| {
        let types = [IcmpType::ECHO_REQUEST, IcmpType::ECHO_REPLY];
        let set = AnonymousSet::of::<IcmpType>(make.family, "t", make.id, types)?;
        let set = make.set(set);
        make.rule().icmp_type(&set).finish()
    }),
    ("meta mark { 0x1, 0x2 }", |make| {
        let set = make.set(AnonymousSet::of::<u32>(make.family, "t", make.id, [1, 2])?);
        make.rule().meta_mark(&set).finish()
    }),
    ("ct state { new, established }", |make| {
        let states = [CtState::NEW, CtState::ESTABLISHED];
        let set = make.set(AnonymousSet::of::<CtState>(
            make.family,
            "t",
            make.id,
            states,
        )?);
        make.rule().ct_state(&set).finish()
    }),
    (r#"iifname { "eth0", "eth1" }"#, |make| {
        let names = ["eth0", "eth1"];
        let set = make.set(AnonymousSet::of::<Interface<'_>>(
            make.family,
            "t",
            make.id,
            names,
        )?);
        make.rule().iifname(&set).finish()
    }),
    ("fib daddr type { local, broadcast }", |make| {
        let types = [AddressType::LOCAL, AddressType::BROADCAST];
        let set = make.set(AnonymousSet::of::<AddressType>(
            make.family,
            "t",
            make.id,
            types,
        )?);
        make.rule().fib_daddr_type(&set).finish()
    }),
    (
        "meta l4proto . th dport { tcp . 22, udp . 53 } accept",
        |make| {
            let fields = [(DataType::INET_PROTO, 1), (DataType::INET_SERVICE, 2)];
            let elements = [[&[6][..], &[0, 22]], [&[17], &[0, 53]]];
            let set = AnonymousSet::concatenations(make.family, "t", make.id, &fields, elements);
            let set = make.set(set);
            make.rule()
                .lookup(&[meta::L4PROTO, th::DPORT], &set)
                .accept()
        },
    ),
    ("tcp dport vmap { 22 : accept, 80 : jump o }", |make| {
        let verdicts = [(22_u16, Verdict::Accept), (80, Verdict::Jump("o".into()))];
        let (id, order) = (make.id, ByteOrder::Network);
        let map = make.set(AnonymousSet::verdicts(
            make.family,
            "t",
            id,
            order,
            verdicts,
        )?);
        make.rule().vmap(tcp::DPORT, &map).finish()
    }),
    ("ct state vmap { new : accept, invalid : drop }", |make| {
        let verdicts = [
            (CtState::NEW, Verdict::Accept),
            (CtState::INVALID, Verdict::Drop),
        ];
        let (id, order) = (make.id, ByteOrder::Host);
        let map = make.set(AnonymousSet::verdicts(
            make.family,
            "t",
            id,
            order,
            verdicts,
        )?);
        make.rule().vmap(ct::STATE, &map).finish()
    }),
    (
        "numgen random mod 2 offset 5 vmap { 5 : jump o, 6 : drop }",
        |make| {
            let verdicts = [Verdict::Jump("o".into()), Verdict::Drop];
            let map = AnonymousSet::numbered_verdicts(make.family, "t", make.id, 5, verdicts);
            let map = make.set(map);
            make.rule().vmap(numgen_random(2).offset(5), &map).finish()
        },
    ),
    ("symhash mod 2 vmap { 0 : goto o, 1 : drop }", |make| {
        let verdicts = [Verdict::Goto("o".into()), Verdict::Drop];
        let map = AnonymousSet::numbered_verdicts(make.family, "t", make.id, 0, verdicts);
        let map = make.set(map);
        make.rule().vmap(symhash(2), &map).finish()
    }),
    (
        "dnat ip to numgen random mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }",
        |make| {
            let to = [v4(1), v4(2)];
            let map = make.set(AnonymousSet::numbered_addresses(
                make.family,
                "t",
                make.id,
                0,
                to,
            ));
            make.rule()
                .dnat(NatTo::map(Version::V4, numgen_random(2), &map))
        },
    ),
    (
        "dnat ip to jhash ip saddr mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }",
        |make| {
            let to = [v4(1), v4(2)];
            let map = make.set(AnonymousSet::numbered_addresses(
                make.family,
                "t",
                make.id,
                0,
                to,
            ));
            make.rule()
                .dnat(NatTo::map(Version::V4, jhash(&[ip::SADDR], 2), &map))
        },
    ),
    ("meta l4proto { tcp, udp } dnat ip to 10.0.0.1:80", |make| {
        let protocols = [Protocol::TCP, Protocol::UDP];
        let set = make.set(AnonymousSet::protocols(
            make.family,
            "t",
            make.id,
            protocols,
        ));
        make.rule().meta_l4proto(&set).dnat(v4_port(1, 80))
    }),
    (
        "meta l4proto tcp dnat ip addr . port to numgen random mod 2 map \
         { 0 : 10.0.0.1 . 80, 1 : 10.0.0.2 . 81 }",
        |make| {
            let to = [v4_port(1, 80), v4_port(2, 81)];
            let map = make.set(AnonymousSet::numbered_addresses_with_ports(
                make.family,
                "t",
                make.id,
                0,
                to,
            ));
            let tcp = make.rule().meta_l4proto(Protocol::TCP);
            tcp.dnat(NatTo::map_with_port(Version::V4, numgen_random(2), &map))
        },
    ),
];

/// With anonymous sets, in families with IPv6.
pub(crate) const OWN_SETS6: &[Pair] = &[
    ("ip6 saddr { fd00::1, fd00::2 }", |make| {
        let set = make.set(AnonymousSet::addresses6(
            make.family,
            "t",
            make.id,
            [v6(1), v6(2)],
        ));
        make.rule().ip6_saddr(&set).finish()
    }),
    ("ip6 saddr { fd00::/64, fe80::/10 }", |make| {
        let prefixes = [
            (v6(0), 64),
            (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
        ];
        let set = make.set(AnonymousSet::of::<Ipv6Addr>(
            make.family,
            "t",
            make.id,
            prefixes,
        )?);
        make.rule().ip6_saddr(&set).finish()
    }),
    (
        "icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept",
        |make| {
            let types = [
                Icmpv6Type::ND_ROUTER_ADVERT,
                Icmpv6Type::ND_NEIGHBOR_SOLICIT,
            ];
            let set = make.set(AnonymousSet::of::<Icmpv6Type>(
                make.family,
                "t",
                make.id,
                types,
            )?);
            make.rule().icmpv6_type(&set).accept()
        },
    ),
    (
        "ip6 saddr . tcp dport { fd00::1 . 22, fd00::2 . 23 }",
        |make| {
            let fields = [(DataType::IPV6_ADDR, 16), (DataType::INET_SERVICE, 2)];
            let (one, two) = (v6(1).octets(), v6(2).octets());
            let elements = [[&one[..], &[0, 22]], [&two[..], &[0, 23]]];
            let set = AnonymousSet::concatenations(make.family, "t", make.id, &fields, elements);
            let set = make.set(set);
            make.rule().lookup(&[ip6::SADDR, tcp::DPORT], &set).finish()
        },
    ),
    (
        "dnat ip6 to numgen inc mod 2 map { 0 : fd00::1, 1 : fd00::2 }",
        |make| {
            let to = [v6(1), v6(2)];
            let map = make.set(AnonymousSet::numbered_addresses6(
                make.family,
                "t",
                make.id,
                0,
                to,
            ));
            make.rule()
                .dnat(NatTo::map(Version::V6, numgen_inc(2), &map))
        },
    ),
    (
        "meta l4proto tcp dnat ip6 addr . port to numgen random mod 2 map \
         { 0 : fd00::1 . 80, 1 : fd00::2 . 81 }",
        |make| {
            let to = [v6_port(1, 80), v6_port(2, 81)];
            let map = make.set(AnonymousSet::numbered_addresses6_with_ports(
                make.family,
                "t",
                make.id,
                0,
                to,
            ));
            let tcp = make.rule().meta_l4proto(Protocol::TCP);
            tcp.dnat(NatTo::map_with_port(Version::V6, numgen_random(2), &map))
        },
    ),
];
