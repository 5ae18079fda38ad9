//! Matches of IPv6 extension headers.

use super::super::field::{Field, PacketOption};
use super::super::path_state::{PathState, Undetermined};
use super::super::value::Test;
use super::{holds, option_bytes, within};
use chainwright::nft::expr::PayloadBase;
use chainwright::xt::Match;
use chainwright::xt::matches::HeaderOptions;
use chainwright::xt::matches::frag::Frag;
use chainwright::xt::matches::ipv6header::{Ipv6Headers, Ipv6header};
use chainwright::xt::matches::mh::Mh;
use chainwright::xt::matches::rt::Rt;
use chainwright::xt::matches::srh::Srh;

pub(super) const HOP_BY_HOP: u8 = 0;
pub(super) const DESTINATION: u8 = 60;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const AH: u8 = 51;
const NONE: u8 = 59;

/// Headers by the flags of the match.
const HEADERS: [(Ipv6Headers, u8); 7] = [
    (Ipv6Headers::HOP_BY_HOP, HOP_BY_HOP),
    (Ipv6Headers::DESTINATION, DESTINATION),
    (Ipv6Headers::ROUTING, ROUTING),
    (Ipv6Headers::FRAGMENT, FRAGMENT),
    (Ipv6Headers::AH, AH),
    (Ipv6Headers::ESP, ESP),
    (Ipv6Headers::NONE, NONE),
];

const fn option(kind: u8) -> PacketOption {
    PacketOption { of: 0, kind }
}

fn has(path_state: &mut PathState, kind: u8) -> Result<bool, Undetermined> {
    match kind {
        // These end the header chain, so they are the packet's protocol.
        ESP | NONE => path_state.is(Field::Protocol, Test::Is(kind.into())),
        _ => path_state.has_option(option(kind)),
    }
}

/// Tests the header's length, which it has in units of 8 bytes without the first unit.
fn has_length(path_state: &mut PathState, kind: u8, length: u32) -> Result<bool, Undetermined> {
    match length.checked_sub(8) {
        Some(rest) if rest % 8 == 0 => {
            let field = Field::OptionByte(option(kind), 1);
            path_state.is(field, Test::Is((rest / 8).into()))
        }
        _ => Ok(false),
    }
}

/// Tests `-m hbh` and `-m dst`.
pub(super) fn options(
    path_state: &mut PathState,
    kind: u8,
    options: &HeaderOptions,
) -> Result<bool, Undetermined> {
    if !has(path_state, kind)? {
        return Ok(false);
    }
    let is = holds(options.length.as_ref(), |length| {
        has_length(path_state, kind, *length)
    })?;
    if !is || options.options.is_empty() {
        return Ok(is);
    }
    let name = if kind == HOP_BY_HOP {
        "hop-by-hop"
    } else {
        "destination"
    };
    let wanted: Vec<_> = options
        .options
        .iter()
        .map(|option| match option.length {
            Some(length) => format!("{}:{length}", option.kind),
            None => option.kind.to_string(),
        })
        .collect();
    path_state.always(format!("its {name} options are {}", wanted.join(",")))
}

pub(super) fn frag(path_state: &mut PathState, frag: &Frag) -> Result<bool, Undetermined> {
    if !has(path_state, FRAGMENT)? {
        return Ok(false);
    }
    let is = holds(frag.ids.as_ref(), |(first, last)| {
        let id = option_bytes(path_state, option(FRAGMENT), 4, 7);
        path_state.test_value(&id, Test::Within((*first).into(), (*last).into()))
    })?;
    if !is {
        return Ok(false);
    }
    let rest = option_bytes(path_state, option(FRAGMENT), 1, 3);
    let mut wanted = Vec::new();
    if frag.reserved {
        wanted.push((0x00ff_0006, 0));
    }
    if frag.first {
        wanted.push((0x0000_fff8, 0));
    }
    if let Some(more) = frag.more {
        wanted.push((1, u128::from(more)));
    }
    for (mask, value) in wanted {
        if !path_state.test_value(&rest, Test::Masked { mask, value })? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn rt(path_state: &mut PathState, rt: &Rt) -> Result<bool, Undetermined> {
    if !has(path_state, ROUTING)? {
        return Ok(false);
    }
    let byte = |at| Field::OptionByte(option(ROUTING), at);
    let is = holds(rt.segments_left.as_ref(), |(first, last)| {
        within(path_state, byte(3), *first, *last, false)
    })? && holds(rt.kind.as_ref(), |kind| {
        path_state.is(byte(2), Test::Is((*kind).into()))
    })? && holds(rt.length.as_ref(), |length| {
        has_length(path_state, ROUTING, *length)
    })?;
    if !is {
        return Ok(false);
    }
    if rt.reserved {
        let reserved = option_bytes(path_state, option(ROUTING), 4, 7);
        if !path_state.test_value(&reserved, Test::Is(0))? {
            return Ok(false);
        }
    }
    if rt.addresses.is_empty() {
        return Ok(true);
    }
    let addresses: Vec<_> = rt.addresses.iter().map(ToString::to_string).collect();
    let how = if rt.not_strict {
        "with others in between"
    } else {
        "and no others"
    };
    path_state.always(format!(
        "its routing header has {}, {how}",
        addresses.join(", ")
    ))
}

/// Tests the type of the mobility header, in byte 2. This header is the packet's protocol.
pub(super) fn mh(path_state: &mut PathState, mh: Mh) -> Result<bool, Undetermined> {
    match path_state.header(PayloadBase::TRANSPORT, 2, 1)? {
        Some(kind) => {
            let range = Test::Within(mh.first.into(), mh.last.into());
            Ok(path_state.test_value(&kind, range)? != mh.invert)
        }
        None => Ok(false),
    }
}

pub(super) fn srh(path_state: &mut PathState, srh: &Srh) -> Result<bool, Undetermined> {
    const SEGMENTS: u128 = 4;
    let byte = Field::OptionByte(option(ROUTING), 2);
    if !has(path_state, ROUTING)? || !path_state.is(byte, Test::Is(SEGMENTS))? {
        return Ok(false);
    }
    let description = super::description(&Match::Srh(*srh));
    path_state.always(format!(
        "its segment routing header matches `{description}`"
    ))
}

/// Tests the headers of the packet: with `soft`, only the listed ones; otherwise the packet must
/// have exactly these.
pub(super) fn ipv6header(
    path_state: &mut PathState,
    wanted: Ipv6header,
) -> Result<bool, Undetermined> {
    let mut found = Ipv6Headers::empty();
    let mut last = false;
    for (header, kind) in HEADERS {
        if wanted.soft && !wanted.headers.contains(header) {
            continue;
        }
        if has(path_state, kind)? {
            found |= header;
            last |= matches!(kind, ESP | NONE);
        }
    }
    // The header chain ends with a protocol, unless it ends with one of these.
    if wanted.soft && wanted.headers.contains(Ipv6Headers::PROTOCOL) {
        last = has(path_state, ESP)? || has(path_state, NONE)?;
    }
    if !last && (!wanted.soft || wanted.headers.contains(Ipv6Headers::PROTOCOL)) {
        found |= Ipv6Headers::PROTOCOL;
    }
    let negated = if wanted.invert {
        Ipv6Headers::all()
    } else {
        Ipv6Headers::empty()
    };
    let differ = found ^ wanted.headers ^ negated;
    Ok(match (wanted.soft, wanted.invert) {
        (true, _) => (differ & wanted.headers).is_empty(),
        (false, false) => found == wanted.headers,
        (false, true) => found != wanted.headers,
    })
}

pub(super) fn eui64(path_state: &mut PathState) -> Result<bool, Undetermined> {
    path_state.always("its source address is derived from its hardware address")
}
