//! Decodes rules in the encodings of the versions of iptables.

use super::*;
use crate::iptables::{Address, Interface, Protocol, Rule, Target};
use crate::netlink::Message;
use crate::nft::expr::{
    self, Bitwise, Cmp, CmpOp, Counter, Immediate, Meta, MetaKey, Payload, PayloadBase, Register,
};
use crate::nft::{RuleRef, Transaction};
use crate::xt::matches::comment::Comment;
use crate::xt::matches::conntrack::{Conntrack, ConntrackState};
use crate::xt::matches::mark::Mark as MarkMatch;
use crate::xt::targets::masquerade::Masquerade;
use crate::xt::{self};

/// Decodes a rule as if the kernel had listed it.
fn listed(family: Family, mut encoded: nft::Rule<'_>) -> Option<Rule> {
    encoded.handle = Some(1);
    let mut tx = Transaction::new();
    tx.add(&encoded).unwrap();
    tx.datagram(|datagram| {
        let (_begin, rest) = Message::split(datagram).unwrap();
        let (message, _) = Message::split(rest).unwrap();
        let view = RuleRef::parse(&message).unwrap();
        assert_eq!(view.family(), family.into());
        decode(&view).ok().map(|entry| entry.rule)
    })
}

fn bare() -> nft::Rule<'static> {
    nft::Rule::new(nft::Family::IP, "filter", "A")
}

fn samples() -> Vec<Rule> {
    let mark = |invert| {
        xt::Match::Mark(MarkMatch {
            value: 0x4000,
            mask: 0x4000,
            invert,
        })
    };
    let v4 = |bytes: [u8; 4], prefix| Some(Address::network(bytes.into(), prefix));
    vec![
        Rule::jump("KUBE-FIREWALL"),
        Rule::new(Target::None),
        Rule::new(Target::Goto("X".into())),
        Rule::new(Target::Return).with(mark(true)),
        Rule {
            source: v4([10, 0, 0, 0], 8).map(Address::not),
            destination: v4([10, 1, 2, 3], 32),
            ..Rule::new(Target::Accept)
        },
        Rule {
            source: v4([10, 64, 0, 0], 10),
            destination: v4([192, 168, 0, 0], 16),
            protocol: Some(Protocol {
                number: 6,
                invert: false,
            }),
            in_interface: Some(Interface {
                name: "cni0".into(),
                prefix: false,
                invert: true,
            }),
            out_interface: Some(Interface {
                name: "veth".into(),
                prefix: true,
                invert: false,
            }),
            ..Rule::new(Target::Drop)
        },
        Rule::new(Target::Drop)
            .with(xt::Match::Comment(Comment::new("why").unwrap()))
            .with(xt::Match::Conntrack(Conntrack::states(ConntrackState::NEW))),
        Rule::new(Target::Extension(xt::Target::Masquerade(
            Masquerade::default(),
        ))),
    ]
}

#[test]
fn encoded_rules_round_trip() {
    for rule in samples() {
        let encoded = encode(Family::Ipv4, "filter", "A", &rule).unwrap();
        assert_eq!(
            listed(Family::Ipv4, encoded).as_ref(),
            Some(&rule),
            "{rule}"
        );
    }
    let rule = Rule {
        source: Some(Address::network("fd00:1::".parse().unwrap(), 32)),
        destination: Some(Address::network("fd00::1".parse().unwrap(), 127).not()),
        ..Rule::new(Target::Accept)
    };
    let encoded = encode(Family::Ipv6, "filter", "A", &rule).unwrap();
    assert_eq!(listed(Family::Ipv6, encoded), Some(rule));
}

#[test]
fn a_mark_is_read_in_both_forms() {
    let bits = 0x8000u32.to_ne_bytes();
    let native = bare()
        .with(&Meta::load(MetaKey::MARK, Register::R1))
        .with(&Bitwise::mask_xor(Register::R1, &bits, &[0; 4]))
        .with(&Cmp::eq(Register::R1, &bits))
        .with(&Counter::new(7, 8))
        .with(&Immediate::drop());
    let extension = encode(
        Family::Ipv4,
        "filter",
        "A",
        &Rule::new(Target::Drop).with(xt::Match::Mark(MarkMatch {
            value: 0x8000,
            mask: 0x8000,
            invert: false,
        })),
    )
    .unwrap();
    let (native, extension) = (
        listed(Family::Ipv4, native).unwrap(),
        listed(Family::Ipv4, extension).unwrap(),
    );
    assert_eq!(native, extension);
    // Without a mask, as 1.8.8 and later write `--mark 0x8000`.
    let whole = bare()
        .with(&Meta::load(MetaKey::MARK, Register::R1))
        .with(&Cmp::neq(Register::R1, &bits));
    assert_eq!(
        listed(Family::Ipv4, whole).unwrap().to_string(),
        "-m mark ! --mark 0x8000"
    );
}

#[test]
fn addresses_and_protocols_are_read_in_all_forms() {
    let load = |offset, length| Payload::load(PayloadBase::NETWORK, offset, length, Register::R1);
    // Up to 1.8.6: whole addresses with a mask. 1.8.7 on: the bytes of the prefix.
    let masked = bare()
        .with(&load(12, 4))
        .with(&Bitwise::mask_xor(Register::R1, &[255, 0, 0, 0], &[0; 4]))
        .with(&Cmp::neq(Register::R1, &[127, 0, 0, 0]));
    let short = bare()
        .with(&load(12, 1))
        .with(&Cmp::neq(Register::R1, &[127]));
    assert_eq!(
        listed(Family::Ipv4, masked),
        listed(Family::Ipv4, short.clone())
    );
    assert_eq!(
        listed(Family::Ipv4, short).unwrap().to_string(),
        "! -s 127.0.0.0/8"
    );
    // The protocol by meta or (since 1.8.10) by the header.
    let meta = bare()
        .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
        .with(&Cmp::eq(Register::R1, &[6]));
    let payload = bare().with(&load(9, 1)).with(&Cmp::eq(Register::R1, &[6]));
    assert_eq!(listed(Family::Ipv4, meta), listed(Family::Ipv4, payload));
}

#[test]
fn a_comment_is_read_from_user_data_as_well() {
    let mut rule = bare().with(&Immediate::accept());
    rule.userdata = Some(b"\0\x04why\0"[..].into());
    assert_eq!(
        listed(Family::Ipv4, rule.clone()).unwrap().to_string(),
        "-m comment --comment why -j ACCEPT"
    );
    // Other user data makes the rule not expressible.
    for other in [
        &b"\x01\x04why\0"[..],
        b"\0\x05why\0",
        b"\0",
        b"\0\x04why\0\x01\0",
    ] {
        rule.userdata = Some(other.into());
        assert_eq!(listed(Family::Ipv4, rule.clone()), None);
    }
}

#[test]
fn additional_expressions_are_not_ignored() {
    let accept = Immediate::accept();
    let transport = Payload::load(PayloadBase::TRANSPORT, 2, 2, Register::R1);
    let inexpressible = [
        // A port without a protocol.
        bare()
            .with(&transport)
            .with(&Cmp::eq(Register::R1, &[0, 22]))
            .with(&accept),
        // At least one port differs: `! --sport 1 ! --dport 2` requires both to.
        bare()
            .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
            .with(&Cmp::eq(Register::R1, &[6]))
            .with(&Payload::load(PayloadBase::TRANSPORT, 0, 4, Register::R1))
            .with(&Cmp::neq(Register::R1, &[0, 1, 0, 2]))
            .with(&accept),
        // A native statement.
        bare().with(&expr::Masq::default()),
        bare()
            .with(&expr::Lookup::set(Register::R1, "s"))
            .with(&accept),
        // A comparison other than equality, and one without a load.
        bare()
            .with(&Meta::load(MetaKey::MARK, Register::R1))
            .with(&Cmp::new(Register::R1, CmpOp::GT, &[0; 4]))
            .with(&accept),
        bare().with(&Cmp::eq(Register::R2, &[0; 4])).with(&accept),
        // An expression after the verdict.
        bare().with(&accept).with(&Counter::new(0, 0)),
        // A mask that changes bits.
        bare()
            .with(&Meta::load(MetaKey::MARK, Register::R1))
            .with(&Bitwise::mask_xor(Register::R1, &[1; 4], &[1; 4]))
            .with(&Cmp::eq(Register::R1, &[1; 4]))
            .with(&accept),
        // An address twice.
        bare()
            .with(&Payload::load(PayloadBase::NETWORK, 12, 1, Register::R1))
            .with(&Cmp::eq(Register::R1, &[127]))
            .with(&Cmp::neq(Register::R1, &[126]))
            .with(&accept),
        // Bits outside the mask: never equal.
        bare()
            .with(&Payload::load(PayloadBase::NETWORK, 16, 4, Register::R1))
            .with(&Bitwise::mask_xor(Register::R1, &[255, 0, 0, 0], &[0; 4]))
            .with(&Cmp::eq(Register::R1, &[127, 0, 0, 1]))
            .with(&accept),
        // Bytes after the end of an interface's name: never equal.
        bare()
            .with(&Meta::load(MetaKey::IIFNAME, Register::R1))
            .with(&Cmp::eq(Register::R1, b"lo\0xyz\0\0"))
            .with(&accept),
        // A register of 4 bytes over one of 16.
        bare()
            .with(&Meta::load(MetaKey::IIFNAME, Register::R1))
            .with(&Meta::load(MetaKey::MARK, Register::word(1)))
            .with(&Cmp::eq(Register::R1, b"lo\0\0\0\0\0\0"))
            .with(&accept),
    ];
    for (index, rule) in inexpressible.into_iter().enumerate() {
        assert_eq!(listed(Family::Ipv4, rule), None, "{index}");
    }
}

/// Returns a rule in a chain of this name.
fn of_chain(chain: &str) -> nft::Rule<'static> {
    nft::Rule::new(nft::Family::IP, "filter", chain.to_owned())
}

fn tcp() -> [(Meta, Cmp<'static>); 1] {
    [(
        Meta::load(MetaKey::L4PROTO, Register::R1),
        Cmp::eq(Register::R1, &[6]),
    )]
}

#[test]
fn inexpressible_or_late_expressions_are_rejected() {
    let accept = Immediate::accept();
    let of_tcp = || {
        let [(load, compare)] = tcp();
        bare().with(&load).with(&compare)
    };
    let source = Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1);
    let is_source = Cmp::eq(Register::R1, &[10, 0, 0, 1]);
    let flags = Payload::load(PayloadBase::TRANSPORT, 13, 1, Register::R1);
    let port = Payload::load(PayloadBase::TRANSPORT, 2, 2, Register::R1);
    let limit = expr::Limit::packets(1, 1, 5);
    let inexpressible = [
        // `tcp flags & (syn | ecn) == syn`, `tcp flags & syn == ecn`: iptables cannot express that flag.
        of_tcp()
            .with(&flags)
            .with(&Bitwise::mask_xor(Register::R1, &[0x42], &[0]))
            .with(&Cmp::eq(Register::R1, &[0x02]))
            .with(&accept),
        of_tcp()
            .with(&flags)
            .with(&Bitwise::mask_xor(Register::R1, &[0x02], &[0]))
            .with(&Cmp::eq(Register::R1, &[0x82]))
            .with(&accept),
        // `limit rate 1/second ip saddr 10.0.0.1`: the limit counts packets of all addresses. The same for
        // the interface and the protocol, and after an extension.
        bare()
            .with(&limit)
            .with(&source)
            .with(&is_source)
            .with(&accept),
        bare()
            .with(&limit)
            .with(&Meta::load(MetaKey::IIFNAME, Register::R1))
            .with(&Cmp::eq(Register::R1, b"lo\0"))
            .with(&accept),
        bare()
            .with(&limit)
            .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
            .with(&Cmp::eq(Register::R1, &[6]))
            .with(&accept),
        bare()
            .with(&expr::Match::new("recent", 1, &[0; 232][..]))
            .with(&source)
            .with(&is_source)
            .with(&accept),
        // A counter that counts more than the rule matches.
        bare()
            .with(&Counter::new(0, 0))
            .with(&source)
            .with(&is_source)
            .with(&accept),
        // A load that ends the rule for fragments, without a comparison.
        of_tcp().with(&port).with(&accept),
        // The same before a limit, though the comparison comes after it.
        of_tcp()
            .with(&port)
            .with(&limit)
            .with(&Cmp::eq(Register::R1, &[0, 80]))
            .with(&accept),
        // Protocol 0, which means all protocols after `-p`.
        bare()
            .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
            .with(&Cmp::eq(Register::R1, &[0]))
            .with(&accept),
        // A range that ends before it starts.
        of_tcp()
            .with(&port)
            .with(&expr::Range::within(Register::R1, &[0, 9], &[0, 5]))
            .with(&accept),
        // An extension that requires a protocol, in a rule without one.
        bare()
            .with(&expr::Match::new(
                "tcp",
                0,
                &[0, 0, 255, 255, 80, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            ))
            .with(&accept),
        // A newline in a comment, and in the name of an extension.
        {
            let mut rule = bare().with(&accept);
            rule.userdata = Some(b"\0\x04a\nb\0"[..].into());
            rule
        },
        bare()
            .with(&expr::Match::new("a -j DROP", 0, &[][..]))
            .with(&accept),
        // Interfaces that iptables does not allow in the chain.
        of_chain("OUTPUT")
            .with(&Meta::load(MetaKey::IIFNAME, Register::R1))
            .with(&Cmp::eq(Register::R1, b"lo\0"))
            .with(&accept),
        of_chain("INPUT")
            .with(&Meta::load(MetaKey::OIFNAME, Register::R1))
            .with(&Cmp::neq(Register::R1, b"lo\0"))
            .with(&accept),
    ];
    for (index, rule) in inexpressible.into_iter().enumerate() {
        assert_eq!(listed(Family::Ipv4, rule), None, "{index}");
    }
}

#[test]
fn rules_of_nft_are_decoded() {
    let of = |family, protocol: u8, offset, length, op, value: &'static [u8]| {
        let (base, mut rule) = match protocol {
            0 => (PayloadBase::NETWORK, nft::Rule::new(family, "filter", "A")),
            _ => {
                let rule = nft::Rule::new(family, "filter", "A")
                    .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
                    .with(&Cmp::eq(Register::R1, &[protocol]));
                (PayloadBase::TRANSPORT, rule)
            }
        };
        rule.push(&Payload::load(base, offset, length, Register::R1))
            .push(&Cmp::new(Register::R1, op, value));
        rule
    };
    let (v4, v6) = (nft::Family::IP, nft::Family::IP6);
    for (rule, text) in [
        (of(v4, 0, 8, 1, CmpOp::EQ, &[5]), "-m ttl --ttl-eq 5"),
        (of(v4, 0, 8, 1, CmpOp::LTE, &[5]), "-m ttl --ttl-lt 6"),
        (of(v6, 0, 7, 1, CmpOp::NEQ, &[5]), "-m hl ! --hl-eq 5"),
        (of(v6, 0, 7, 1, CmpOp::GTE, &[5]), "-m hl --hl-gt 4"),
        (
            of(v4, 1, 0, 1, CmpOp::EQ, &[8]),
            "-p icmp -m icmp --icmp-type 8",
        ),
        // iptables-save 1.8.9 prints these two without the `!`.
        (
            of(v4, 1, 0, 1, CmpOp::NEQ, &[8]),
            "-p icmp -m icmp ! --icmp-type 8",
        ),
        (
            of(v4, 1, 0, 2, CmpOp::NEQ, &[3, 1]),
            "-p icmp -m icmp ! --icmp-type 3/1",
        ),
        (
            of(v6, 58, 0, 2, CmpOp::EQ, &[1, 3]),
            "-p ipv6-icmp -m icmp6 --icmpv6-type 1/3",
        ),
    ] {
        let family = if rule.family == v4 {
            Family::Ipv4
        } else {
            Family::Ipv6
        };
        assert_eq!(listed(family, rule).unwrap().to_string(), text);
    }
    for rule in [
        of(v4, 0, 8, 1, CmpOp::LTE, &[255]),
        of(v4, 0, 8, 1, CmpOp::GTE, &[0]),
        of(v4, 1, 0, 1, CmpOp::EQ, &[255]), // means any type
        of(v4, 1, 1, 1, CmpOp::EQ, &[1]),   // a code without a type
        of(v4, 1, 0, 1, CmpOp::GT, &[8]),
        of(v4, 58, 0, 1, CmpOp::EQ, &[8]), // not the ICMP of the family
        of(v4, 6, 0, 1, CmpOp::EQ, &[8]),
    ] {
        assert_eq!(listed(Family::Ipv4, rule), None);
    }
    let kind = |value: &'static [u8]| {
        bare()
            .with(&Meta::load(MetaKey::PKTTYPE, Register::R1))
            .with(&Cmp::eq(Register::R1, value))
    };
    let rule = listed(Family::Ipv4, kind(&[1])).unwrap();
    assert_eq!(rule.to_string(), "-m pkttype --pkt-type broadcast");
    assert_eq!(listed(Family::Ipv4, kind(&[7])), None);
}

/// Comparisons of ports as `nft` writes them form one range if possible, in any order, otherwise several matches.
#[test]
fn port_comparisons_merge_into_one_range() {
    use CmpOp as Op;
    let ports = |offset| Payload::load(PayloadBase::TRANSPORT, offset, 2, Register::R1);
    let rule = |protocol: u8, parts: &[(u32, CmpOp, u16)]| {
        let mut rule = bare()
            .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
            .with(&Cmp::eq(Register::R1, &[protocol]));
        for (offset, op, port) in parts {
            rule.push(&ports(*offset))
                .push(&Cmp::new(Register::R1, *op, &port.to_be_bytes()));
        }
        listed(Family::Ipv4, rule).map(|rule| rule.to_string())
    };
    let source = 0;
    for (parts, text) in [
        (&[(2, Op::GTE, 67), (2, Op::LTE, 69)][..], "--dport 67:69"),
        (&[(2, Op::LTE, 69), (2, Op::GTE, 67)], "--dport 67:69"),
        (&[(2, Op::GT, 66), (2, Op::LT, 70)], "--dport 67:69"),
        (&[(0, Op::GTE, 67), (0, Op::LTE, 67)], "--sport 67"),
        (
            &[(0, Op::GTE, 67), (0, Op::LTE, u16::MAX)],
            "--sport 67:65535",
        ),
        (&[(0, Op::GTE, 0), (0, Op::LTE, 69)], "--sport 0:69"),
        (&[(2, Op::GTE, 5), (2, Op::GTE, 6)], "--dport 6:65535"),
        (
            &[(2, Op::GTE, 6), (2, Op::LTE, 7), (0, Op::EQ, 5)],
            "--sport 5 --dport 6:7",
        ),
        (
            &[
                (0, Op::GTE, 6),
                (2, Op::GTE, 1),
                (2, Op::LTE, 2),
                (0, Op::LTE, 7),
            ],
            "--sport 6:7 --dport 1:2",
        ),
        (&[(2, Op::NEQ, 5), (2, Op::NEQ, 5)], "! --dport 5"),
    ] {
        for (protocol, name) in [(6, "tcp"), (17, "udp")] {
            let whole = format!("-p {name} -m {name} {text}");
            assert_eq!(rule(protocol, parts), Some(whole), "{parts:?}");
        }
        // iptables compares these only by extensions.
        for protocol in [33, 132, 136] {
            assert_eq!(rule(protocol, parts), None, "{parts:?}");
        }
    }
    let several = rule(17, &[(2, Op::GT, 5), (2, Op::NEQ, 7)]);
    let text = "-p udp -m udp --dport 6:65535 -m udp ! --dport 7";
    assert_eq!(several.as_deref(), Some(text));
    // No port is left: one range cannot express that.
    let none = rule(6, &[(source, Op::GT, 9), (source, Op::LTE, 5)]);
    let text = "-p tcp -m tcp --sport 10:65535 -m tcp --sport 0:5";
    assert_eq!(none.as_deref(), Some(text));
}

/// Rules that iptables-nft 1.8.9 would load without the comparison, or with another.
#[test]
fn rules_that_iptables_misreads_are_rejected() {
    let of_tcp = || {
        let [(load, compare)] = tcp();
        bare().with(&load).with(&compare)
    };
    let ports = Payload::load(PayloadBase::TRANSPORT, 2, 2, Register::R1);
    let flags = Payload::load(PayloadBase::TRANSPORT, 13, 1, Register::R1);
    let nat = nft::Rule::new(nft::Family::IP, "nat", "A").with(&Immediate::drop());
    for rule in [
        of_tcp()
            .with(&ports)
            .with(&Cmp::new(Register::R1, CmpOp::GT, &[0xff, 0xff])),
        of_tcp()
            .with(&flags)
            .with(&Bitwise::mask_xor(Register::R1, &[0], &[0]))
            .with(&Cmp::eq(Register::R1, &[2])),
        encode(
            Family::Ipv4,
            "filter",
            "A",
            &Rule::parse(Family::Ipv4, "-m conntrack --ctorigdst 10.0.0.0/255.1.0.0").unwrap(),
        )
        .unwrap(),
        nat, // nat has no DROP
    ] {
        assert_eq!(listed(Family::Ipv4, rule), None);
    }
}

#[test]
fn names_round_trip_or_are_rejected() {
    let interface = |name: &'static [u8]| {
        bare()
            .with(&Meta::load(MetaKey::IIFNAME, Register::R1))
            .with(&Cmp::eq(Register::R1, name))
            .with(&Immediate::accept())
    };
    for name in [
        &b"a+\0"[..],       // a prefix `a` in iptables' language
        b"a\nb\0",          // two lines
        b"abcdefghijklmno", // one byte too many with its `+`
    ] {
        assert_eq!(listed(Family::Ipv4, interface(name)), None, "{name:?}");
    }
    for (name, text) in [
        (&b"x y\0"[..], r#"-i "x y" -j ACCEPT"#),
        (b"x\" -d 1.2.3.4\0", r#"-i "x\" -d 1.2.3.4" -j ACCEPT"#),
        (b"x y", r#"-i "x y+" -j ACCEPT"#),
        (b"a+", "-i a++ -j ACCEPT"),
        (b"a+b\0", "-i a+b -j ACCEPT"),
        (b"-x\0", "-i -x -j ACCEPT"),
        (b"\xff\xfe\0", "-i \u{fffd}\u{fffd} -j ACCEPT"),
    ] {
        let rule = listed(Family::Ipv4, interface(name)).unwrap();
        assert_eq!(rule.to_string(), text);
        let mut printed = xt::Text::new();
        rule.print(&mut printed);
        assert_eq!(Rule::parse(Family::Ipv4, printed.as_bytes()), Ok(rule));
    }
    let long = "x".repeat(29);
    for name in [
        "ACCEPT", "DROP", "QUEUE", "RETURN", "LOG", "MARK", "HL", "NOTRACK", "ULOG", "INPUT",
        "a b", "a\tb", "a\nb", "a\"b", "-x", "!x", "", &long,
    ] {
        let jump = bare().with(&Immediate::jump(name));
        let goto = bare().with(&Immediate::goto(name));
        assert_eq!(listed(Family::Ipv4, jump), None, "{name:?}");
        assert_eq!(listed(Family::Ipv4, goto), None, "{name:?}");
    }
    for name in [
        "accept",
        "LOGS",
        "a'b\\",
        "[x]",
        "#x",
        "PREROUTING",
        "x!",
        &long[1..],
    ] {
        let jump = bare().with(&Immediate::jump(name));
        let rule = listed(Family::Ipv4, jump).unwrap();
        assert_eq!(rule.to_string(), format!("-j {name}"));
        assert_eq!(Rule::parse(Family::Ipv4, rule.to_string()), Ok(rule));
    }
}

#[test]
fn never_matching_rules_are_not_encoded_as_match_all() {
    let never = Rule {
        source: Some(Address::network([0; 4].into(), 0).not()),
        ..Rule::new(Target::Drop)
    };
    // As nft writes it; no iptables-nft loads `! -s 0.0.0.0/0`, because the kernel refuses its expressions.
    assert_eq!(
        encode(Family::Ipv4, "filter", "A", &never).err(),
        Some(Unwritable::NoAddress)
    );
    for length in [1_u32, 4] {
        let nothing = &[0; 4][..length as usize];
        let native = bare()
            .with(&Payload::load(
                PayloadBase::NETWORK,
                12,
                length,
                Register::R1,
            ))
            .with(&Bitwise::mask_xor(Register::R1, nothing, nothing));
        let never = native
            .clone()
            .with(&Cmp::new(Register::R1, CmpOp::NEQ, nothing));
        assert_eq!(listed(Family::Ipv4, never), None);
        let always = native.with(&Cmp::eq(Register::R1, nothing));
        let read = listed(Family::Ipv4, always).map(|rule| rule.to_string());
        assert_eq!(read.as_deref(), Some(""));
    }
    let other = Rule {
        source: Some(Address::network([10; 4].into(), 32)),
        ..Rule::new(Target::Drop)
    };
    assert!(encode(Family::Ipv6, "filter", "A", &other).is_err());
}
