//! Matches of connections.

use std::net::IpAddr;

use super::super::build::{
    Statement, compared, ct, ct_of, flags, hex, is, quoted, sets, span, test, under, unless,
    unless_any, word,
};
use super::super::{Statements, Untranslatable, prefix_of};
use super::{inexact, transport::within};
use crate::syntax::{Expr, Relation};
use chainwright::nft::expr::{CtDirection, CtKey};
use chainwright::xt::Match;
use chainwright::xt::matches::connbytes::{Connbytes, ConnbytesDirection, ConnbytesMode};
use chainwright::xt::matches::connlabel::Connlabel;
use chainwright::xt::matches::conntrack::{
    Conntrack, ConntrackAddress, ConntrackDirection, ConntrackExpiry, ConntrackState,
    ConntrackStatus, ConntrackTuples,
};
use chainwright::xt::matches::helper::Helper;
use chainwright::xt::{Family, Negatable};

const STATES: [(ConntrackState, &str); 5] = [
    (ConntrackState::INVALID, "invalid"),
    (ConntrackState::NEW, "new"),
    (ConntrackState::RELATED, "related"),
    (ConntrackState::ESTABLISHED, "established"),
    (ConntrackState::UNTRACKED, "untracked"),
];

const STATUS: [(ConntrackStatus, &str); 4] = [
    (ConntrackStatus::EXPECTED, "expected"),
    (ConntrackStatus::SEEN_REPLY, "seen-reply"),
    (ConntrackStatus::ASSURED, "assured"),
    (ConntrackStatus::CONFIRMED, "confirmed"),
];

/// Matches packets with a connection.
fn any_connection() -> Statement {
    under(ct(CtKey::MARK), hex(0), false, hex(0))
}

/// Matches if any of these bits is set; inverted, if none is.
fn bits(key: CtKey, names: &[&str], invert: bool) -> Statement {
    let relation = match invert {
        true => Relation::None,
        false => Relation::Implicit,
    };
    compared(ct(key), relation, flags(names))
}

fn names<T: Copy>(all: &[(T, &'static str)], has: impl Fn(T) -> bool) -> Vec<&'static str> {
    let named = all.iter().filter(|(flag, _)| has(*flag));
    named.map(|(_, name)| *name).collect()
}

pub(super) fn conntrack(conntrack: &Conntrack, family: Family, one: &Match) -> Statements {
    let mut tests = Vec::new();
    match conntrack.direction {
        Some(ConntrackDirection::Original) => {
            tests.push(test(ct(CtKey::DIRECTION), word("original")));
        }
        Some(ConntrackDirection::Reply) => {
            tests.push(test(ct(CtKey::DIRECTION), word("reply")));
        }
        None => {}
    }
    if let Some(protocol) = conntrack.protocol {
        let direction = match conntrack.direction {
            Some(ConntrackDirection::Reply) => CtDirection::REPLY,
            _ => CtDirection::ORIGINAL,
        };
        let left = ct_of(CtKey::PROTOCOL, direction);
        tests.push(is(left, protocol.invert, word(protocol.value)));
    }
    if let Some(state) = conntrack.state {
        // For packets without a connection, iptables only compares the state; nft's further matches on the connection
        // fail.
        let of_none = ConntrackState::INVALID | ConntrackState::UNTRACKED;
        let only_state = Conntrack {
            state: None,
            alias: conntrack.alias,
            ..Conntrack::default()
        };
        let has_other_conditions = Conntrack {
            state: None,
            ..conntrack.clone()
        } != only_state;
        let may_match_none = match state.invert {
            true => !state.value.contains(of_none),
            false => state.value.intersects(of_none),
        };
        if has_other_conditions && may_match_none {
            let why = "packets without a connection match by their state alone";
            return Err(inexact(one, why));
        }
        tests.extend(self::state(state)?);
    }
    if let Some(status) = conntrack.status {
        let names = names(&STATUS, |flag| status.value.contains(flag));
        let known = STATUS
            .iter()
            .fold(ConntrackStatus::empty(), |all, (flag, _)| all | *flag);
        if !known.contains(status.value) {
            return Err(super::extension(one));
        }
        tests.push(match (names.is_empty(), status.invert) {
            (false, invert) => bits(CtKey::STATUS, &names, invert),
            (true, true) => any_connection(),
            (true, false) => return Err(Untranslatable::Never),
        });
    }
    if let Some(expiry) = conntrack.expiry {
        tests.push(self::expiry(expiry)?);
    }
    if let Some(tuples) = &conntrack.tuples {
        tests.extend(self::tuples(tuples, family, one)?);
    }
    Ok(tests)
}

fn state(state: Negatable<ConntrackState>) -> Statements {
    let names = names(&STATES, |flag| state.value.contains(flag));
    let nat = [
        (ConntrackState::SNAT, "snat"),
        (ConntrackState::DNAT, "dnat"),
    ];
    let nat = self::names(&nat, |flag| state.value.contains(flag));
    // A packet without a connection has no status.
    Ok(match (names.is_empty(), nat.is_empty(), state.invert) {
        (true, true, true) => Vec::new(),
        (true, true, false) => return Err(Untranslatable::Never),
        (false, true, invert) => vec![bits(CtKey::STATE, &names, invert)],
        (true, false, false) => vec![bits(CtKey::STATUS, &nat, false)],
        (true, false, true) => vec![unless(vec![bits(CtKey::STATUS, &nat, false)])],
        (false, false, true) => vec![
            bits(CtKey::STATE, &names, true),
            unless(vec![bits(CtKey::STATUS, &nat, false)]),
        ],
        // One or the other. A packet without a connection has a state, but no status.
        (false, false, false) => {
            let of_none = ["invalid", "untracked"];
            let others: Vec<_> = of_none
                .iter()
                .copied()
                .filter(|name| !names.contains(name))
                .collect();
            let mut without = Vec::new();
            if !others.is_empty() {
                without.push(vec![bits(CtKey::STATE, &others, false)]);
            }
            without.push(vec![
                bits(CtKey::STATE, &names, true),
                bits(CtKey::STATUS, &nat, true),
            ]);
            vec![unless_any(without)]
        }
    })
}

/// Translates seconds to nft's milliseconds.
fn expiry(expiry: Negatable<ConntrackExpiry>) -> Result<Statement, Untranslatable> {
    let (min, max) = (expiry.value.min, expiry.value.max);
    let left = ct(CtKey::EXPIRATION);
    let first = word(format_args!("{min}s"));
    let last = u64::from(max) * 1000 + 999;
    match (min > max, u64::from(min) * 1000 > u32::MAX.into()) {
        (true, _) | (_, true) if expiry.invert => Ok(any_connection()),
        (true, _) | (_, true) => Err(Untranslatable::Never),
        _ if last > u32::MAX.into() => Ok(match expiry.invert {
            true => compared(left, Relation::Less, first),
            false => compared(left, Relation::GreaterOrEqual, first),
        }),
        _ => {
            let last = word(format_args!("{max}s999ms"));
            let range = Expr::Range(Box::new(first), Box::new(last));
            Ok(is(left, expiry.invert, range))
        }
    }
}

fn tuples(tuples: &ConntrackTuples, family: Family, one: &Match) -> Statements {
    let (original, reply) = (CtDirection::ORIGINAL, CtDirection::REPLY);
    let mut tests = Vec::new();
    for (address, key, direction) in [
        (tuples.original_source, CtKey::SRC, original),
        (tuples.original_destination, CtKey::DST, original),
        (tuples.reply_source, CtKey::SRC, reply),
        (tuples.reply_destination, CtKey::DST, reply),
    ] {
        if let Some(address) = address {
            let left = ct_of(key, direction);
            tests.push(self::address(left, address, family, one)?);
        }
    }
    for (range, key, direction) in [
        (tuples.original_source_port, CtKey::PROTO_SRC, original),
        (tuples.original_destination_port, CtKey::PROTO_DST, original),
        (tuples.reply_source_port, CtKey::PROTO_SRC, reply),
        (tuples.reply_destination_port, CtKey::PROTO_DST, reply),
    ] {
        if let Some(range) = range {
            let ends = (range.first.into(), range.last.into());
            let left = ct_of(key, direction);
            tests.extend(within(left, ends, u16::MAX.into(), range.invert)?);
        }
    }
    Ok(tests)
}

fn address(
    left: Expr,
    address: Negatable<ConntrackAddress>,
    family: Family,
    one: &Match,
) -> Result<Statement, Untranslatable> {
    let (of, mask) = (address.value.address, address.value.mask.address());
    let masked: IpAddr = match (of, mask) {
        (IpAddr::V4(of), IpAddr::V4(mask)) => (of & mask).into(),
        (IpAddr::V6(of), IpAddr::V6(mask)) => (of & mask).into(),
        _ => return Err(super::extension(one)),
    };
    let whole = match family {
        Family::Ipv4 => 32,
        Family::Ipv6 => 128,
    };
    Ok(match prefix_of(mask) {
        Some(0) if address.invert => return Err(Untranslatable::Never),
        Some(0) => any_connection(),
        Some(bits) if bits == whole => {
            is(left, address.invert, super::super::build::address(masked))
        }
        Some(bits) => {
            let prefix = Expr::Prefix(Box::new(super::super::build::address(masked)), bits.into());
            is(left, address.invert, prefix)
        }
        None => under(left, word(mask), address.invert, word(masked)),
    })
}

pub(super) fn connbytes(connbytes: &Connbytes) -> Statements {
    let key = match connbytes.mode {
        ConnbytesMode::Packets => CtKey::PKTS,
        ConnbytesMode::Bytes => CtKey::BYTES,
        ConnbytesMode::AveragePacket => CtKey::AVGPKT,
    };
    let left = match connbytes.direction {
        ConnbytesDirection::Original => ct_of(key, CtDirection::ORIGINAL),
        ConnbytesDirection::Reply => ct_of(key, CtDirection::REPLY),
        ConnbytesDirection::Both => ct(key),
    };
    // A range whose end is before its start matches the values outside of it.
    let (from, to) = (connbytes.from, connbytes.to);
    let invert = from > to;
    let (first, last) = if invert { (to, from) } else { (from, to) };
    Ok(vec![match (last, invert) {
        _ if first == last => test(left, word(first)),
        (u64::MAX, false) => compared(left, Relation::GreaterOrEqual, word(first)),
        (u64::MAX, true) if first == 0 => return Err(Untranslatable::Never),
        (u64::MAX, true) => compared(left, Relation::Less, word(first)),
        (_, invert) => is(left, invert, span(first, last)),
    }])
}

/// Packets without a connection match the inverted condition, too.
pub(super) fn connlabel(connlabel: &Connlabel, one: &Match) -> Statements {
    let label = || word(connlabel.label);
    let has = test(ct(CtKey::LABELS), label());
    match (connlabel.set, connlabel.invert) {
        (false, false) => Ok(vec![has]),
        (false, true) => Ok(vec![unless(vec![has])]),
        (true, false) => Ok(vec![sets(ct(CtKey::LABELS), label()), has]),
        (true, true) => Err(inexact(
            one,
            "nft does not notice that a label cannot be set",
        )),
    }
}

/// Names of the kernel's helpers.
const HELPERS: [&str; 12] = [
    "amanda",
    "ftp",
    "H.245",
    "irc",
    "netbios-ns",
    "pptp",
    "Q.931",
    "RAS",
    "sane",
    "sip",
    "snmp_trap",
    "tftp",
];

/// Packets without a helper match the inverted condition, too.
pub(super) fn helper(helper: &Helper, one: &Match) -> Statements {
    let name = helper.name.to_string();
    // The kernel compares as many bytes as the helper's name has.
    let begins = |known: &str| name.starts_with(known) && name != known;
    if name.is_empty() || name.len() > 15 || HELPERS.iter().any(|known| begins(known)) {
        let why = "nft compares whole names of helpers, and names of up to 15 bytes";
        return Err(inexact(one, why));
    }
    let name = super::super::checked(helper.name.as_ref(), 15)?;
    let has = test(ct(CtKey::HELPER), quoted(name));
    Ok(vec![match helper.invert {
        true => unless(vec![has]),
        false => has,
    }])
}
