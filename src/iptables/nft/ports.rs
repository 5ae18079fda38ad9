//! Ports and flags of TCP and UDP as nf_tables' own expressions (since iptables 1.8.8).
//!
//! | text | expressions |
//! |---|---|
//! | `--dport 80` | `payload` 2 bytes at 2 of the transport header, `cmp eq` |
//! | `--sport 1 --dport 2` | `payload` 4 bytes at 0, `cmp eq` |
//! | `--dport 0:1023` | `payload`, `cmp lte`; negated `cmp gt` |
//! | `--dport 80:90` | `payload`, `range eq`; negated `range neq` |
//! | `--tcp-flags` | `payload` 1 byte at 13, `bitwise`, `cmp` |
//!
//! iptables writes `! --sport 1 ! --dport 2` as `cmp neq` of 4 bytes, which means that at least one of the
//! two differs. Therefore this module neither writes nor reads that form.
//!
//! `nft` also writes `cmp lt` and `cmp gte`: `dport 80-90` is `cmp gte` and `cmp lte`, which decodes to one range. If
//! one match cannot express the comparisons, they become several matches.

use crate::nft;
use crate::nft::expr::{Bitwise, Cmp, CmpOp, Payload, PayloadBase, Range, RangeOp, Register};
use crate::xt::Match;
use crate::xt::matches::PortRange;
use crate::xt::matches::tcp::{Tcp, TcpFlags, TcpFlagsTest};
use crate::xt::matches::udp::Udp;

/// Offsets in the headers of TCP and UDP, in bytes (RFC 9293, section 3.1; RFC 768).
const SOURCE_PORT: u32 = 0;
const DESTINATION_PORT: u32 = 2;
/// The byte with TCP's flags.
const FLAGS: u32 = 13;

const TCP: u8 = libc::IPPROTO_TCP as u8;
const UDP: u8 = libc::IPPROTO_UDP as u8;

/// Encodes the match if native expressions can express it; returns whether it did.
pub(super) fn encode_tcp(encoded: &mut nft::Rule<'_>, tcp: &Tcp) -> bool {
    let is_restricted = |range: PortRange| range != PortRange::ANY;
    let flags = tcp.flags.mask.bits() != 0 || tcp.flags.comp.bits() != 0 || tcp.flags.invert;
    if tcp.option.is_some()
        || !(flags || is_restricted(tcp.source) || is_restricted(tcp.destination))
    {
        return false;
    }
    if flags {
        encoded
            .push(&transport(FLAGS, 1))
            .push(&Bitwise::mask_xor(
                Register::R1,
                &[tcp.flags.mask.bits()],
                &[0],
            ))
            .push(&compare(
                equality(tcp.flags.invert),
                &[tcp.flags.comp.bits()],
            ));
    }
    encode_both(encoded, tcp.source, tcp.destination);
    true
}

/// Encodes the match if native expressions can express it; returns whether it did.
pub(super) fn encode_udp(encoded: &mut nft::Rule<'_>, udp: &Udp) -> bool {
    if *udp == Udp::default() {
        return false;
    }
    encode_both(encoded, udp.source, udp.destination);
    true
}

fn encode_both(encoded: &mut nft::Rule<'_>, source: PortRange, destination: PortRange) {
    let one = |range: PortRange| range.first != 0 && PortRange::from(range.first) == range;
    if one(source) && one(destination) {
        let mut both = [0; 4];
        both[..2].copy_from_slice(&source.first.to_be_bytes());
        both[2..].copy_from_slice(&destination.first.to_be_bytes());
        encoded
            .push(&transport(SOURCE_PORT, 4))
            .push(&compare(CmpOp::EQ, &both));
        return;
    }
    encode_ports(encoded, SOURCE_PORT, source);
    encode_ports(encoded, DESTINATION_PORT, destination);
}

fn encode_ports(encoded: &mut nft::Rule<'_>, offset: u32, range: PortRange) {
    if range == PortRange::ANY {
        return;
    }
    let (first, last) = (range.first.to_be_bytes(), range.last.to_be_bytes());
    encoded.push(&transport(offset, 2));
    if range.first == range.last {
        encoded.push(&compare(equality(range.invert), &first));
    } else if range.first == 0 && range.last < u16::MAX {
        let op = if range.invert { CmpOp::GT } else { CmpOp::LTE };
        encoded.push(&compare(op, &last));
    } else if range.invert {
        encoded.push(&Range::outside(Register::R1, &first, &last));
    } else {
        encoded.push(&Range::within(Register::R1, &first, &last));
    }
}

const fn equality(invert: bool) -> CmpOp {
    if invert { CmpOp::NEQ } else { CmpOp::EQ }
}

fn transport(offset: u32, length: u32) -> Payload {
    Payload::load(PayloadBase::TRANSPORT, offset, length, Register::R1)
}

const fn compare(op: CmpOp, bytes: &[u8]) -> Cmp<'_> {
    Cmp::new(Register::R1, op, bytes)
}

/// Decodes a comparison of a part of the transport header: as part of the protocol's last match
/// if that does not compare the part yet, otherwise as a new match. `None` if no match can express it.
pub(super) fn decode_comparison(
    matches: &mut Vec<Match>,
    protocol: u8,
    (offset, length): (u32, u32),
    mask: Option<&[u8]>,
    op: CmpOp,
    value: &[u8],
) -> Option<()> {
    match (protocol, offset, length, mask) {
        (TCP, FLAGS, 1, Some(&[mask])) => {
            let &[comp] = value else { return None };
            let invert = match op {
                CmpOp::EQ => false,
                CmpOp::NEQ => true,
                _ => return None,
            };
            let flags = TcpFlagsTest {
                // iptables cannot express ECE and CWR.
                mask: TcpFlags::from_bits(mask)?,
                comp: TcpFlags::from_bits(comp)?,
                invert,
            };
            let is_free = |tcp: &Tcp| tcp.flags == TcpFlagsTest::default();
            with_tcp(matches, is_free, |tcp| tcp.flags = flags);
            Some(())
        }
        (TCP | UDP, SOURCE_PORT | DESTINATION_PORT, 2, None) => {
            let port = u16::from_be_bytes(value.try_into().ok()?);
            let range = match op {
                CmpOp::EQ => PortRange::from(port),
                CmpOp::NEQ => PortRange::from(port).not(),
                CmpOp::LTE => PortRange::new(0, port),
                CmpOp::GT => PortRange::new(0, port).not().positive(),
                CmpOp::GTE => PortRange::new(port, u16::MAX),
                CmpOp::LT => PortRange::new(port, u16::MAX).not().positive(),
                _ => return None,
            };
            set_ports(matches, protocol, offset, range)
        }
        (TCP | UDP, SOURCE_PORT, 4, None) if op == CmpOp::EQ => {
            let &[a, b, c, d] = value else { return None };
            let (source, destination) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            set_ports(matches, protocol, SOURCE_PORT, source.into())?;
            set_ports(matches, protocol, DESTINATION_PORT, destination.into())
        }
        _ => None,
    }
}

/// Returns `true` if the match has a comparison that never holds, but that iptables-nft versions with native
/// expressions read as no comparison: `! --dport 0:65535`, `--tcp-flags NONE SYN`.
pub(super) fn is_ignored_by_versions(one: &Match) -> bool {
    let none = |ports: PortRange| ports == PortRange::ANY.not();
    match one {
        Match::Tcp(tcp) => {
            let never = tcp.flags.mask.is_empty() && tcp.flags != TcpFlagsTest::default();
            never || none(tcp.source) || none(tcp.destination)
        }
        Match::Udp(udp) => none(udp.source) || none(udp.destination),
        _ => false,
    }
}

/// Decodes a range of a part of the transport header, like [`decode_comparison`].
pub(super) fn within(
    matches: &mut Vec<Match>,
    protocol: u8,
    (offset, length): (u32, u32),
    op: RangeOp,
    from: &[u8],
    to: &[u8],
) -> Option<()> {
    let is_port = matches!(offset, SOURCE_PORT | DESTINATION_PORT) && length == 2;
    if !is_port || !matches!(protocol, TCP | UDP) {
        return None;
    }
    let port = |bytes: &[u8]| bytes.try_into().ok().map(u16::from_be_bytes);
    let range = PortRange::new(port(from)?, port(to)?);
    let range = match op {
        RangeOp::EQ => range,
        RangeOp::NEQ => range.not(),
        _ => return None,
    };
    set_ports(matches, protocol, offset, range)
}

/// Adds a comparison of a port: to the protocol's last match with room for it, intersecting two
/// consecutive ranges, otherwise as a new match.
fn set_ports(matches: &mut Vec<Match>, protocol: u8, offset: u32, range: PortRange) -> Option<()> {
    let source = offset == SOURCE_PORT;
    let start = matches.iter().rposition(Match::has_effects);
    let start = start.map_or(0, |at| at + 1);
    let own = matches[start..].iter_mut();
    for ports in own.filter_map(|one| port_of(one, protocol, source)) {
        if let Some(both) = intersect(*ports, range) {
            *ports = both;
            return Some(());
        }
    }
    let mut one = match protocol {
        TCP => Match::Tcp(Tcp::default()),
        _ => Match::Udp(Udp::default()),
    };
    *port_of(&mut one, protocol, source)? = range;
    matches.push(one);
    Some(())
}

/// Returns the ports that the match compares, if it is of the protocol.
const fn port_of(one: &mut Match, protocol: u8, source: bool) -> Option<&mut PortRange> {
    match (one, protocol, source) {
        (Match::Tcp(tcp), TCP, true) => Some(&mut tcp.source),
        (Match::Tcp(tcp), TCP, false) => Some(&mut tcp.destination),
        (Match::Udp(udp), UDP, true) => Some(&mut udp.source),
        (Match::Udp(udp), UDP, false) => Some(&mut udp.destination),
        _ => None,
    }
}

/// Returns the intersection of both ranges, if one range can express it.
fn intersect(one: PortRange, other: PortRange) -> Option<PortRange> {
    if one == PortRange::ANY {
        return Some(other);
    }
    if one.invert || other.invert {
        return (one == other).then_some(one);
    }
    let (first, last) = (one.first.max(other.first), one.last.min(other.last));
    (first <= last).then(|| PortRange::new(first, last))
}

/// Adds to the last TCP match if it has room and no match with side effects follows it, otherwise
/// to a new one.
fn with_tcp(matches: &mut Vec<Match>, is_free: impl Fn(&Tcp) -> bool, add: impl FnOnce(&mut Tcp)) {
    let last = matches
        .iter()
        .rposition(|m| matches!(m, Match::Tcp(_)) || m.has_effects());
    if let Some(Match::Tcp(tcp)) = last.and_then(|at| matches.get_mut(at))
        && is_free(tcp)
    {
        return add(tcp);
    }
    let mut tcp = Tcp::default();
    add(&mut tcp);
    matches.push(Match::Tcp(tcp));
}
