//! Random rules: pieces as iptables and nft write them, and cut, doubled, reordered and changed.

use chainwright::iptables::nft::{Encoder, Profile};
use chainwright::iptables::{Counters, Rule};
use chainwright::nft::expr::{
    Bitwise, Cmp, CmpOp, Counter, Data, Decoded, Immediate, Limit, LimitFlags, Log, Lookup, Match,
    Meta, MetaKey, Payload, PayloadBase, Range, RangeOp, Register, Verdict,
};
use chainwright::nft::{self, Compat, UnknownAttributes};
use chainwright::xt::Family;

use crate::common::random::Random;

/// Random bytes, many of them 0 or 0xff.
fn mask(random: &mut Random, length: usize) -> Vec<u8> {
    let ones = random.below(length * 8 + 1);
    match random.below(3) {
        0 => random.bytes(length),
        1 => (0..length)
            .map(|_| random.pick(&[0, 0xff, 0xf0, 1]))
            .collect(),
        _ => (0..length)
            .map(|at| match (ones).saturating_sub(at * 8).min(8) {
                0 => 0,
                bits => 0xff << (8 - bits),
            })
            .collect(),
    }
}

/// A rule before it is added to the kernel.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) expressions: Vec<Decoded<'static>>,
    pub(crate) compat: Option<Compat>,
    pub(crate) userdata: Option<Vec<u8>>,
}

pub(crate) const NAMES: [&[u8]; 14] = [
    b"lo",
    b"eth0",
    b"veth",
    b"a+",
    b"+",
    b"x y",
    b"q\"uote",
    b"new\nline",
    b"-x",
    b"!",
    b"a*",
    b"abcdefghijklmno",
    b"abcdefghijklmn",
    b"\xff\xfe",
];

/// Names for chains, and targets of jumps.
pub(crate) const CHAINS: [&str; 16] = [
    "KUBE-SERVICES",
    "other",
    "ACCEPT",
    "ULOG",
    "a b",
    "x\ny",
    "quo\"te",
    "-dash",
    "!bang",
    "#hash",
    "ap'os",
    "back\\slash",
    "[0:0]",
    "RETURN",
    "abcdefghijklmnopqrstuvwxyz123456",
    "COMMIT",
];

/// Matches and targets, as options.
const OPTIONS: [&str; 44] = [
    "-m comment --comment x",
    "-m comment --comment \"two \\\"words\\\"\"",
    "-m mark --mark 0x4000/0x4000",
    "-m mark ! --mark 7",
    "-m conntrack --ctstate NEW",
    "-m conntrack ! --ctstate RELATED,ESTABLISHED --ctdir REPLY",
    "-m conntrack --ctproto 6 --ctorigdst 10.0.0.0/8",
    "-m addrtype --dst-type LOCAL",
    "-m addrtype ! --src-type LOCAL,BROADCAST --limit-iface-in",
    "-m limit --limit 5/min --limit-burst 7",
    "-m limit --limit 10/sec",
    "-m statistic --mode random --probability 0.5",
    "-m statistic --mode nth --every 3 --packet 1",
    "-m length --length 10:20",
    "-m length ! --length 7",
    "-m ttl --ttl-eq 5",
    "-m ttl --ttl-lt 9",
    "-m dscp --dscp 4",
    "-m tos --tos 0x10/0xff",
    "-m pkttype --pkt-type broadcast",
    "-p tcp -m tcp --dport 80",
    "-p tcp -m tcp ! --sport 1000:2000 --tcp-flags SYN,ACK SYN",
    "-p tcp -m tcp --tcp-option 5 --dport 0:1023",
    "-p udp -m udp --dport 53",
    "-p udp -m udp --sport 9:5",
    "-p tcp -m multiport --dports 22,80:90",
    "-p udp -m multiport ! --ports 53",
    "-p icmp -m icmp --icmp-type 8",
    "-p icmpv6 -m icmp6 --icmpv6-type 1/3",
    "-m hl --hl-eq 7",
    "-p tcp",
    "! -p udp",
    "-p 47",
    "-j MARK --set-xmark 0x4000/0x4000",
    "-j NFLOG --nflog-group 3 --nflog-prefix \"a b\"",
    "-j NFLOG --nflog-size 10 --nflog-threshold 5",
    "-j LOG --log-prefix \"x \" --log-level 4",
    "-j REJECT",
    "-j TRACE",
    "-j MASQUERADE",
    "-j CONNMARK --save-mark",
    "-j CLASSIFY --set-class 1:2",
    "-p tcp -j TCPMSS --clamp-mss-to-pmtu",
    "-m owner --uid-owner 5",
];

fn header(random: &mut Random, family: Family) -> String {
    let mut text = String::new();
    for option in ["-s", "-d"] {
        if random.once_in(3) {
            let not = if random.once_in(3) { "! " } else { "" };
            let address = match family {
                Family::Ipv4 => {
                    let bytes = random.bytes(4);
                    format!("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3])
                }
                Family::Ipv6 => {
                    format!("fd00:{:x}::{:x}", random.below(65536), random.below(65536))
                }
            };
            let mask = match (family, random.below(4)) {
                (Family::Ipv4, 0) => format!("255.{}.0.255", random.below(256)),
                (Family::Ipv6, 0) => format!("ffff::{:x}", random.below(65536)),
                (Family::Ipv4, _) => random.below(33).to_string(),
                (Family::Ipv6, _) => random.below(129).to_string(),
            };
            text += &format!(" {not}{option} {address}/{mask}");
        }
    }
    for option in ["-i", "-o"] {
        if random.once_in(6) {
            let not = if random.once_in(3) { "! " } else { "" };
            text += &format!(
                " {not}{option} {}",
                random.pick(&["lo", "eth+", "+", "cni0"])
            );
        }
    }
    if family == Family::Ipv4 && random.once_in(12) {
        text += random.pick(&[" -f", " ! -f"]);
    }
    text
}

/// A rule's options.
pub(crate) fn options(random: &mut Random, family: Family) -> String {
    let mut text = header(random, family);
    for _ in 0..random.below(4) {
        text += " ";
        text += random.pick(&OPTIONS);
    }
    if !text.contains(" -j ") {
        match random.below(7) {
            0 => text += " -j ACCEPT",
            1 => text += " -j DROP",
            2 => text += " -j RETURN",
            3 => text += " -j KUBE-SERVICES",
            4 => text += " -g other",
            _ => {}
        }
    }
    text.trim().to_owned()
}

/// A rule as one of iptables' versions writes it.
fn written(random: &mut Random, family: Family) -> Option<Made> {
    let rule = Rule::parse(family, options(random, family)).ok()?;
    let profile = random.pick(&[Profile::V1_8_7, Profile::V1_8_8, Profile::V1_8_10]);
    let mut encoded = nft::Rule::new(family.into(), "filter", "x");
    let encoder = Encoder { family, profile };
    encoder
        .fill(&mut encoded, &rule, Counters::default())
        .ok()?;
    let expressions = encoded.expressions.iter().flat_map(|all| all.iter());
    Some(Made {
        expressions: expressions
            .map(|one| one.unwrap().decode().unwrap().into_owned())
            .collect(),
        compat: encoded.compat.clone(),
        userdata: None,
    })
}

fn register(random: &mut Random) -> Register {
    let all = [Register::R1, Register::R2, Register::R3, Register::R4];
    match random.below(12) {
        0 => random.pick(&all),
        1 => Register::word(random.below(16) as u32),
        _ => Register::R1,
    }
}

fn value(bytes: Vec<u8>) -> Option<Data<'static>> {
    Some(Data::Value(bytes.into()))
}

fn compare(random: &mut Random, register: Register, bytes: Vec<u8>) -> Decoded<'static> {
    let op = match random.below(8) {
        0..4 => CmpOp::EQ,
        4 | 5 => CmpOp::NEQ,
        _ => random.pick(&[CmpOp::LT, CmpOp::LTE, CmpOp::GT, CmpOp::GTE]),
    };
    Decoded::Cmp(Cmp {
        sreg: Some(register),
        op: Some(op),
        data: value(bytes),
        unknown: UnknownAttributes::NONE,
    })
}

fn masked(random: &mut Random, register: Register, length: usize) -> Decoded<'static> {
    let xor = match random.below(8) {
        0 => random.bytes(length),
        _ => vec![0; length],
    };
    Decoded::Bitwise(Bitwise {
        sreg: Some(register),
        dreg: Some(register),
        len: Some(length as u32),
        mask: value(mask(random, length)),
        xor: value(xor),
        ..Bitwise::default()
    })
}

/// A load, perhaps a mask, and a comparison.
fn piece(random: &mut Random, family: Family, all: &mut Vec<Decoded<'static>>) {
    let register = register(random);
    let offsets: &[(PayloadBase, u32, u32)] = match family {
        Family::Ipv4 => &[
            (PayloadBase::NETWORK, 12, 4),
            (PayloadBase::NETWORK, 12, 3),
            (PayloadBase::NETWORK, 16, 4),
            (PayloadBase::NETWORK, 16, 1),
            (PayloadBase::NETWORK, 12, 8),
            (PayloadBase::NETWORK, 14, 2),
            (PayloadBase::NETWORK, 9, 1),
            (PayloadBase::NETWORK, 8, 1),
            (PayloadBase::NETWORK, 8, 2),
            (PayloadBase::NETWORK, 6, 2),
            (PayloadBase::NETWORK, 1, 1),
        ],
        Family::Ipv6 => &[
            (PayloadBase::NETWORK, 8, 16),
            (PayloadBase::NETWORK, 8, 4),
            (PayloadBase::NETWORK, 8, 15),
            (PayloadBase::NETWORK, 24, 16),
            (PayloadBase::NETWORK, 24, 2),
            (PayloadBase::NETWORK, 12, 4),
            (PayloadBase::NETWORK, 6, 1),
            (PayloadBase::NETWORK, 7, 1),
            (PayloadBase::NETWORK, 9, 1),
        ],
    };
    let transport = [
        (PayloadBase::TRANSPORT, 0, 1),
        (PayloadBase::TRANSPORT, 0, 2),
        (PayloadBase::TRANSPORT, 2, 2),
        (PayloadBase::TRANSPORT, 0, 4),
        (PayloadBase::TRANSPORT, 13, 1),
        (PayloadBase::TRANSPORT, 0, 1),
        (PayloadBase::TRANSPORT, 1, 1),
        (PayloadBase::TRANSPORT, 12, 2),
        (PayloadBase::TRANSPORT, 4, 1),
    ];
    let (key, length) = match random.below(16) {
        0..3 => (MetaKey::L4PROTO, 1),
        3 => (MetaKey::IIFNAME, 16),
        4 => (MetaKey::OIFNAME, 16),
        5 | 6 => (MetaKey::MARK, 4),
        7 => (MetaKey::PKTTYPE, 1),
        8 => (MetaKey::LEN, 4),
        9 => (MetaKey::SKUID, 4),
        other => {
            let (base, offset, length) = match other {
                10..13 => random.pick(offsets),
                _ => random.pick(&transport),
            };
            if matches!(base, PayloadBase::TRANSPORT) && !random.once_in(4) {
                // Most of them after a protocol.
                let protocol = random.pick(&[6, 17, 6, 17, 1, 58, 1, 58, 132]);
                all.push(Decoded::Meta(Meta::load(MetaKey::L4PROTO, Register::R1)));
                let protocol = [protocol];
                let is = Cmp::new(Register::R1, CmpOp::EQ, &protocol);
                all.push(Decoded::Cmp(is).into_owned());
            }
            all.push(Decoded::Payload(Payload::load(
                base, offset, length, register,
            )));
            let length = length as usize;
            let is_flags = base == PayloadBase::TRANSPORT && offset == 13;
            if is_flags || random.once_in(4) {
                all.push(masked(random, register, length));
            }
            if random.once_in(6) {
                let (from, to) = (random.bytes(length), random.bytes(length));
                let (from, to) = if from <= to { (from, to) } else { (to, from) };
                all.push(Decoded::Range(Range {
                    sreg: Some(register),
                    op: Some(random.pick(&[RangeOp::EQ, RangeOp::NEQ])),
                    from_data: value(from),
                    to_data: value(to),
                    unknown: UnknownAttributes::NONE,
                }));
                return;
            }
            let bytes = match random.below(4) {
                0 => mask(random, length),
                1 => vec![random.pick(&[0, 0, 1, 0xff]); length],
                _ => random.bytes(length),
            };
            all.push(compare(random, register, bytes));
            return;
        }
    };
    all.push(Decoded::Meta(Meta::load(key, register)));
    let bytes = match key {
        MetaKey::IIFNAME | MetaKey::OIFNAME => {
            let mut name = random.pick(&NAMES).to_vec();
            match random.below(4) {
                0 => {}
                1 => name.resize(16, 0),
                2 => name.extend([0, b'x']),
                _ => name.push(0),
            }
            if random.once_in(8) {
                b"INVAL/D\0".to_vec()
            } else {
                name
            }
        }
        MetaKey::L4PROTO => vec![random.pick(&[0, 1, 6, 6, 6, 17, 17, 58, 132, 255])],
        MetaKey::PKTTYPE => vec![random.pick(&[0, 1, 2, 3, 7])],
        _ => mask(random, length),
    };
    if (key == MetaKey::MARK && random.once_in(2)) || random.once_in(12) {
        all.push(masked(random, register, bytes.len()));
    }
    all.push(compare(random, register, bytes));
}

/// Expressions with an effect.
fn statement(random: &mut Random) -> Vec<Decoded<'static>> {
    let name = |name: &str| nft::Name::from(name.to_owned());
    vec![match random.below(14) {
        0 => Decoded::Counter(Counter::new(random.next() >> 40, random.next() >> 30)),
        1 => Decoded::Limit(Limit {
            rate: Some(random.pick(&[1, 3, 5, 7, 100, 20_000])),
            unit: Some(random.pick(&[1, 60, 3600, 86400, 7 * 86400])),
            burst: Some(random.pick(&[0, 1, 5, 7, 20_000])),
            flags: random.once_in(4).then_some(LimitFlags::INV),
            ..Limit::default()
        }),
        2 => Decoded::Log(Log {
            prefix: random.once_in(2).then(|| {
                let long = "x".repeat(random.below(127));
                let prefix = random.pick(&["a", "a b", "q\"", "n\nl", "", &long]);
                name(prefix)
            }),
            group: (!random.once_in(4)).then(|| random.below(9) as u16),
            snaplen: random.once_in(3).then(|| random.below(100) as u32),
            queue_threshold: random.once_in(3).then(|| random.below(3) as u16),
            ..Log::default()
        }),
        3..6 => Decoded::Immediate(Immediate::verdict(match random.below(8) {
            0 => Verdict::Accept,
            1 => Verdict::Drop,
            2 => Verdict::Return,
            3 => Verdict::Continue,
            4 | 5 => Verdict::Goto(name(random.pick(&CHAINS))),
            _ => Verdict::Jump(name(random.pick(&CHAINS))),
        })),
        6 => {
            let bytes = random.bytes(4);
            let register = register(random);
            return vec![
                Decoded::Immediate(Immediate::value(register, &bytes)).into_owned(),
                Decoded::Meta(Meta::set(MetaKey::MARK, register)),
            ];
        }
        7 => {
            let register = register(random);
            let load = Decoded::Meta(Meta::load(MetaKey::MARK, register));
            let mask = masked(random, register, 4);
            let set = Decoded::Meta(Meta::set(MetaKey::MARK, register));
            return vec![load, mask, set];
        }
        8 => {
            let register = Register::word(1);
            let trace = random.pick(&[0, 1, 1, 2]);
            return vec![
                Decoded::Immediate(Immediate::value(register, &[trace])).into_owned(),
                Decoded::Meta(Meta::set(MetaKey::NFTRACE, register)),
            ];
        }
        9 => Decoded::Match(Match::new(
            random.pick(&["comment", "-j DROP", "no such"]).to_owned(),
            0,
            random.bytes(256),
        )),
        10 => {
            let load = Decoded::Meta(Meta::load(MetaKey::MARK, Register::R1));
            return vec![load, Decoded::Lookup(Lookup::set(Register::R1, "marks"))];
        }
        _ => Decoded::Counter(Counter::new(0, 0)),
    }]
}

fn change_bytes(random: &mut Random, bytes: &[u8], within: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let end = bytes.len().min(within);
    if end > 0 {
        for _ in 0..=random.below(2) {
            let at = random.below(end);
            match random.below(3) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.pick(&[0, 1, 2, 0xff]),
                _ => bytes[at] = random.next() as u8,
            }
        }
    }
    bytes
}

/// Changes something in one expression.
fn change(random: &mut Random, one: &mut Decoded<'static>) {
    match one {
        Decoded::Cmp(cmp) => match (random.below(4), &mut cmp.data) {
            (0, _) => cmp.op = Some(random.pick(&[CmpOp::EQ, CmpOp::NEQ, CmpOp::LT, CmpOp::GTE])),
            (1, _) => cmp.sreg = Some(register(random)),
            (2, Some(Data::Value(data))) => {
                let mut bytes = data.to_vec();
                bytes.truncate(random.below(bytes.len()).max(1));
                *data = bytes.into();
            }
            (_, Some(Data::Value(data))) => *data = change_bytes(random, data, 64).into(),
            _ => {}
        },
        Decoded::Range(range) => {
            let (from, to) = (range.from_data.take(), range.to_data.take());
            (range.from_data, range.to_data) = (to, from);
        }
        Decoded::Bitwise(bitwise) => match (random.below(3), &mut bitwise.mask) {
            (0, _) => bitwise.dreg = Some(register(random)),
            (_, Some(Data::Value(mask))) => *mask = change_bytes(random, mask, 64).into(),
            _ => {}
        },
        Decoded::Payload(payload) => match random.below(3) {
            0 => payload.offset = Some(random.below(24) as u32),
            1 => payload.len = Some(random.below(16) as u32 + 1),
            _ => payload.dreg = Some(register(random)),
        },
        Decoded::Meta(meta) if meta.sreg.is_none() => meta.dreg = Some(register(random)),
        Decoded::Match(extension) => match (random.below(8), &mut extension.info) {
            (0, _) => extension.revision = Some(random.below(4) as u32),
            (_, Some(info)) => *info = change_bytes(random, info, 48).into(),
            _ => {}
        },
        Decoded::Target(extension) => match (random.below(8), &mut extension.info) {
            (0, _) => extension.revision = Some(random.below(4) as u32),
            (_, Some(info)) => *info = change_bytes(random, info, 48).into(),
            _ => {}
        },
        _ => {}
    }
}

/// A random rule.
pub(crate) fn rule(random: &mut Random, family: Family) -> Made {
    let mut made = match random.below(3) {
        0 => None,
        _ => written(random, family),
    }
    .unwrap_or_else(|| {
        let mut expressions = Vec::new();
        for _ in 0..random.below(4) {
            piece(random, family, &mut expressions);
        }
        for _ in 0..random.below(3) {
            expressions.extend(statement(random));
        }
        Made {
            expressions,
            compat: None,
            userdata: None,
        }
    });
    let all = &mut made.expressions;
    let changes = random.pick(&[0, 0, 0, 1, 1, 1, 2, 3]);
    for _ in 0..changes {
        let length = all.len();
        match random.below(12) {
            0 if length > 1 => {
                let (one, other) = (random.below(length), random.below(length));
                all.swap(one, other);
            }
            1 if length > 2 => {
                let at = random.below(length);
                all[at..].rotate_left(1);
            }
            2 if length > 0 => drop(all.remove(random.below(length))),
            3 if length > 0 => {
                let again = all[random.below(length)].clone();
                all.insert(random.below(length + 1), again);
            }
            4 => {
                let mut more = Vec::new();
                piece(random, family, &mut more);
                let at = random.below(length + 1);
                all.splice(at..at, more);
            }
            5 => {
                let at = random.below(length + 1);
                let more = statement(random);
                all.splice(at..at, more);
            }
            6 if length > 0 => all.truncate(random.below(length)),
            _ if length > 0 => {
                let at = random.below(length);
                change(random, &mut all[at]);
            }
            _ => {}
        }
    }
    if random.once_in(12) {
        made.userdata = Some(match random.below(5) {
            0 => b"\0\x04why\0".to_vec(),
            1 => b"\0\x06new\nl\0".to_vec(),
            2 => b"\0\x04wh\0\0".to_vec(),
            3 => b"\x01\x04why\0".to_vec(),
            _ => {
                let length = random.below(12) + 1;
                random.bytes(length)
            }
        });
    }
    made
}
