//! Matches of packet headers.

use super::super::field::{Field, PacketOption};
use super::super::headers::{CWR, ECE};
use super::super::path_state::{PathState, Undetermined};
use super::super::value::Test;
use super::{holds, is, named, option_bytes, within};
use chainwright::nft::expr::PayloadBase;
use chainwright::xt::Family;
use chainwright::xt::matches::ah::Ah;
use chainwright::xt::matches::dccp::{Dccp, DccpTypes};
use chainwright::xt::matches::dscp::Dscp;
use chainwright::xt::matches::ecn::Ecn;
use chainwright::xt::matches::esp::Esp;
use chainwright::xt::matches::icmp::{Icmp, IcmpCodes};
use chainwright::xt::matches::icmp6::Icmp6;
use chainwright::xt::matches::ipcomp::Ipcomp;
use chainwright::xt::matches::length::Length;
use chainwright::xt::matches::multiport::{Multiport, MultiportSide};
use chainwright::xt::matches::osf::Osf;
use chainwright::xt::matches::sctp::{Sctp, SctpChunks, SctpScope};
use chainwright::xt::matches::string::String as StringMatch;
use chainwright::xt::matches::tcp::Tcp;
use chainwright::xt::matches::tcpmss::Tcpmss;
use chainwright::xt::matches::tos::Tos;
use chainwright::xt::matches::ttl::Hops;
use chainwright::xt::matches::udp::Udp;
use chainwright::xt::matches::{PortRange, SpiRange};

/// Values of [`PacketOption::of`].
const TCP: u8 = 1;
const CHUNK: u8 = 3;
const DCCP: u8 = 4;
/// TCP option for the maximum segment size.
pub(super) const MSS: PacketOption = PacketOption { of: TCP, kind: 2 };

/// Tests a number in the transport header; false if there is no such header.
fn transport(
    path_state: &mut PathState,
    offset: u32,
    length: u32,
    test: Test<'_>,
) -> Result<bool, Undetermined> {
    let value = path_state.header(PayloadBase::TRANSPORT, offset, length)?;
    is(path_state, value, test)
}

fn port(path_state: &mut PathState, field: Field, range: PortRange) -> Result<bool, Undetermined> {
    if range == PortRange::ANY {
        return Ok(true);
    }
    within(path_state, field, range.first, range.last, range.invert)
}

/// Tests both ports.
fn ports(
    path_state: &mut PathState,
    source: PortRange,
    destination: PortRange,
) -> Result<bool, Undetermined> {
    Ok(port(path_state, Field::SourcePort, source)?
        && port(path_state, Field::DestinationPort, destination)?)
}

/// Returns whether the packet has a transport header, unlike later fragments.
fn has_transport(path_state: &mut PathState) -> Result<bool, Undetermined> {
    Ok(!path_state.is_later_fragment()?)
}

pub(super) fn tcp(path_state: &mut PathState, tcp: &Tcp) -> Result<bool, Undetermined> {
    if !has_transport(path_state)? || !ports(path_state, tcp.source, tcp.destination)? {
        return Ok(false);
    }
    let (mask, comp) = (tcp.flags.mask.bits(), tcp.flags.comp.bits());
    if (mask, comp, tcp.flags.invert) != (0, 0, false) {
        let test = Test::Masked {
            mask: mask.into(),
            value: comp.into(),
        };
        let is = comp & !mask == 0 && path_state.is(Field::TcpFlags, test)?;
        if is == tcp.flags.invert {
            return Ok(false);
        }
    }
    holds(tcp.option.as_ref(), |kind| has(path_state, TCP, *kind))
}

fn has(path_state: &mut PathState, of: u8, kind: u8) -> Result<bool, Undetermined> {
    path_state.has_option(PacketOption { of, kind })
}

pub(super) fn udp(path_state: &mut PathState, udp: &Udp) -> Result<bool, Undetermined> {
    Ok(has_transport(path_state)? && ports(path_state, udp.source, udp.destination)?)
}

pub(super) fn multiport(
    path_state: &mut PathState,
    multiport: &Multiport,
) -> Result<bool, Undetermined> {
    if !has_transport(path_state)? {
        return Ok(false);
    }
    let ranges: Vec<(u128, u128)> = multiport
        .ports
        .iter()
        .filter(|range| range.start() <= range.end())
        .map(|range| ((*range.start()).into(), (*range.end()).into()))
        .collect();
    let any = Test::Among(&ranges);
    let is = match multiport.side {
        MultiportSide::Source => path_state.is(Field::SourcePort, any)?,
        MultiportSide::Destination => path_state.is(Field::DestinationPort, any)?,
        MultiportSide::Either => {
            path_state.is(Field::SourcePort, any)? || path_state.is(Field::DestinationPort, any)?
        }
    };
    Ok(is != multiport.invert)
}

pub(super) fn sctp(path_state: &mut PathState, sctp: &Sctp) -> Result<bool, Undetermined> {
    let any = PortRange::ANY;
    let (source, destination) = (sctp.source.unwrap_or(any), sctp.destination.unwrap_or(any));
    if !has_transport(path_state)? || !ports(path_state, source, destination)? {
        return Ok(false);
    }
    match &sctp.chunks {
        Some(chunks) => Ok(has_chunks(path_state, chunks)? != chunks.invert),
        None => Ok(true),
    }
}

fn has_chunks(path_state: &mut PathState, chunks: &SctpChunks) -> Result<bool, Undetermined> {
    let types = chunks.types.as_deref().unwrap_or_default();
    let plain = types.iter().all(|chunk| chunk.mask == 0);
    match (chunks.scope, &chunks.types, plain) {
        (SctpScope::Any, Some(_), true) => {
            for chunk in types {
                if has(path_state, CHUNK, chunk.kind)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (SctpScope::All, Some(_), true) => {
            for chunk in types {
                if !has(path_state, CHUNK, chunk.kind)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => {
            let scope = match chunks.scope {
                SctpScope::Any => "any",
                SctpScope::All => "all",
                SctpScope::Only => "only",
            };
            let kinds: Vec<_> = types
                .iter()
                .map(|chunk| format!("{}:{:#x}/{:#x}", chunk.kind, chunk.flags, chunk.mask))
                .collect();
            let kinds = match &chunks.types {
                Some(_) => kinds.join(","),
                None => "all".to_owned(),
            };
            path_state.always(format!("the packet has {scope} of the chunks {kinds}"))
        }
    }
}

pub(super) fn dccp(path_state: &mut PathState, dccp: &Dccp) -> Result<bool, Undetermined> {
    let any = PortRange::ANY;
    let (source, destination) = (dccp.source.unwrap_or(any), dccp.destination.unwrap_or(any));
    if !has_transport(path_state)? || !ports(path_state, source, destination)? {
        return Ok(false);
    }
    let is = holds(dccp.types.as_ref(), |types| dccp_type(path_state, *types))?;
    Ok(is && holds(dccp.option.as_ref(), |kind| has(path_state, DCCP, *kind))?)
}

/// Tests the DCCP packet type, which is in four bits of byte 8.
fn dccp_type(path_state: &mut PathState, types: DccpTypes) -> Result<bool, Undetermined> {
    let Some(byte) = path_state.header(PayloadBase::TRANSPORT, 8, 1)? else {
        return Ok(false);
    };
    let wanted: Vec<(u128, u128)> = (0..16)
        .filter(|kind| types.bits() >> kind & 1 != 0)
        .map(|kind| (kind, kind))
        .collect();
    let kind = byte.part(1, 4);
    path_state.test_value(&kind, Test::Among(&wanted))
}

fn spis(
    path_state: &mut PathState,
    offset: u32,
    length: u32,
    spis: SpiRange,
) -> Result<bool, Undetermined> {
    if spis == SpiRange::ANY {
        return Ok(true);
    }
    let range = Test::Within(spis.first.into(), spis.last.into());
    Ok(transport(path_state, offset, length, range)? != spis.invert)
}

pub(super) fn esp(path_state: &mut PathState, esp: &Esp) -> Result<bool, Undetermined> {
    Ok(has_transport(path_state)? && spis(path_state, 0, 4, esp.spis)?)
}

pub(super) fn ipcomp(path_state: &mut PathState, ipcomp: &Ipcomp) -> Result<bool, Undetermined> {
    if !has_transport(path_state)? || !spis(path_state, 2, 2, ipcomp.spis)? {
        return Ok(false);
    }
    // The kernel tests the flags as the reserved field.
    Ok(!ipcomp.reserved || transport(path_state, 1, 1, Test::Is(0))?)
}

pub(super) fn ah(path_state: &mut PathState, ah: &Ah) -> Result<bool, Undetermined> {
    if path_state.family == Family::Ipv6 {
        // In IPv6, it is an extension header before the transport header.
        const AH: u8 = 51;
        if !has(path_state, 0, AH)? {
            return Ok(false);
        }
        if ah.spis == SpiRange::ANY && ah.length.is_none() && !ah.reserved {
            return Ok(true);
        }
        let option = PacketOption { of: 0, kind: AH };
        let spi = option_bytes(path_state, option, 4, 7);
        let range = Test::Within(ah.spis.first.into(), ah.spis.last.into());
        if path_state.test_value(&spi, range)? == ah.spis.invert {
            return Ok(false);
        }
        let length = Field::OptionByte(option, 1);
        if !holds(ah.length.as_ref(), |wanted| {
            ah_length(path_state, length, *wanted)
        })? {
            return Ok(false);
        }
        let reserved = option_bytes(path_state, option, 2, 3);
        return Ok(!ah.reserved || path_state.test_value(&reserved, Test::Is(0))?);
    }
    Ok(has_transport(path_state)? && spis(path_state, 4, 4, ah.spis)?)
}

/// Tests the length of an authentication header, which contains it in 32-bit words minus two.
fn ah_length(path_state: &mut PathState, field: Field, length: u32) -> Result<bool, Undetermined> {
    match length.checked_sub(8) {
        Some(rest) if rest % 4 == 0 => path_state.is(field, Test::Is((rest / 4).into())),
        _ => Ok(false),
    }
}

fn icmp_is(
    path_state: &mut PathState,
    kind: u8,
    codes: Option<IcmpCodes>,
) -> Result<bool, Undetermined> {
    if !path_state.is(Field::IcmpType, Test::Is(kind.into()))? {
        return Ok(false);
    }
    match codes {
        Some(codes) => within(path_state, Field::IcmpCode, codes.first, codes.last, false),
        None => Ok(true),
    }
}

pub(super) fn icmp(path_state: &mut PathState, icmp: &Icmp) -> Result<bool, Undetermined> {
    if !has_transport(path_state)? {
        return Ok(false);
    }
    let is = match icmp.kind {
        Some(kind) => icmp_is(path_state, kind, icmp.code)?,
        None => true,
    };
    Ok(is != icmp.invert)
}

pub(super) fn icmp6(path_state: &mut PathState, icmp6: &Icmp6) -> Result<bool, Undetermined> {
    if !has_transport(path_state)? {
        return Ok(false);
    }
    Ok(icmp_is(path_state, icmp6.kind, icmp6.code)? != icmp6.invert)
}

pub(super) fn length(path_state: &mut PathState, length: Length) -> Result<bool, Undetermined> {
    within(
        path_state,
        Field::Length,
        length.min,
        length.max,
        length.invert,
    )
}

pub(super) fn dscp(path_state: &mut PathState, dscp: Dscp) -> Result<bool, Undetermined> {
    let test = Test::Masked {
        mask: 0xfc,
        value: u128::from(dscp.code_point) << 2,
    };
    Ok(path_state.is(Field::Tos, test)? != dscp.invert)
}

pub(super) fn tos(path_state: &mut PathState, tos: Tos) -> Result<bool, Undetermined> {
    let test = Test::Masked {
        mask: tos.mask.into(),
        value: tos.value.into(),
    };
    let is = tos.value & !tos.mask == 0 && path_state.is(Field::Tos, test)?;
    Ok(is != tos.invert)
}

pub(super) fn ecn(path_state: &mut PathState, ecn: &Ecn) -> Result<bool, Undetermined> {
    let field = holds(ecn.field.as_ref(), |field| {
        let value = u128::from(*field);
        path_state.is(Field::Tos, Test::Masked { mask: 3, value })
    })?;
    if !field {
        return Ok(false);
    }
    for (bit, wanted) in [(ECE, ecn.ece), (CWR, ecn.cwr)] {
        let Some(wanted) = wanted else { continue };
        let test = Test::Masked {
            mask: bit,
            value: bit,
        };
        if !has_transport(path_state)? || path_state.is(Field::TcpFlags, test)? != wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn hops(path_state: &mut PathState, hops: Hops) -> Result<bool, Undetermined> {
    let (first, last, invert) = match hops {
        Hops::Equal(value) => (value, value, false),
        Hops::NotEqual(value) => (value, value, true),
        Hops::Less(value) => match value.checked_sub(1) {
            Some(last) => (0, last, false),
            None => return Ok(false),
        },
        Hops::Greater(value) => match value.checked_add(1) {
            Some(first) => (first, u8::MAX, false),
            None => return Ok(false),
        },
    };
    within(path_state, Field::Ttl, first, last, invert)
}

pub(super) fn tcpmss(path_state: &mut PathState, mss: Tcpmss) -> Result<bool, Undetermined> {
    if !path_state.has_option(MSS)? {
        return Ok(mss.invert);
    }
    let value = option_bytes(path_state, MSS, 2, 3);
    let is = path_state.test_value(&value, Test::Within(mss.min.into(), mss.max.into()))?;
    Ok(is != mss.invert)
}

pub(super) fn osf(path_state: &mut PathState, osf: &Osf) -> Result<bool, Undetermined> {
    let from = named(path_state, Field::Source);
    let is = path_state.always(format!("a system {} sent it ({from})", osf.genre))?;
    Ok(is != osf.invert)
}

pub(super) fn string(
    path_state: &mut PathState,
    string: &StringMatch,
) -> Result<bool, Undetermined> {
    let case = if string.ignore_case {
        " (ignoring case)"
    } else {
        ""
    };
    let is = path_state.always(format!(
        "the packet has \"{}\"{case} from byte {} to byte {}",
        string.pattern, string.from, string.to
    ))?;
    Ok(is != string.invert)
}
