//! Targets that change the packet, and the replies of `REJECT`.

use std::net::Ipv6Addr;

use super::super::field::{Field, PacketOption};
use super::super::headers::{CWR, ECE};
use super::super::path_state::{Effect, PathState};
use super::super::steps::Action;
use super::super::value::Value;
use super::header::MSS;
use super::set;
use chainwright::xt::targets::PrefixTranslation;
use chainwright::xt::targets::dscp::Dscp;
use chainwright::xt::targets::ecn::Ecn;
use chainwright::xt::targets::tcpmss::Tcpmss;
use chainwright::xt::targets::tcpoptstrip::Tcpoptstrip;
use chainwright::xt::targets::tos::Tos;
use chainwright::xt::targets::ttl::HopsChange;

pub(super) fn dscp(path_state: &mut PathState, dscp: Dscp) -> Effect {
    let value = path_state
        .get(Field::Tos)
        .masked(3, u128::from(dscp.code_point) << 2);
    set(path_state, Field::Tos, value)
}

pub(super) fn tos(path_state: &mut PathState, tos: Tos) -> Effect {
    let value = path_state
        .get(Field::Tos)
        .masked((!tos.mask).into(), tos.value.into());
    set(path_state, Field::Tos, value)
}

pub(super) fn ecn(path_state: &mut PathState, ecn: Ecn) -> Effect {
    if let Some(field) = ecn.field {
        let value = path_state.get(Field::Tos).masked(0xfc, field.into());
        set(path_state, Field::Tos, value);
    }
    for (bit, wanted) in [(ECE, ecn.ece), (CWR, ecn.cwr)] {
        if let Some(wanted) = wanted {
            let flip = if wanted { bit } else { 0 };
            let value = path_state.get(Field::TcpFlags).masked(!bit & 0xff, flip);
            set(path_state, Field::TcpFlags, value);
        }
    }
    Effect::Continue
}

pub(super) fn hops(path_state: &mut PathState, change: HopsChange) -> Effect {
    let before = path_state.number(Field::Ttl).map(|number| number as u8);
    let after = match (change, before) {
        (HopsChange::Set(value), _) => Some(value),
        (HopsChange::Increase(by), Some(before)) => Some(before.saturating_add(by)),
        (HopsChange::Decrease(by), Some(before)) => Some(before.saturating_sub(by)),
        (_, None) => None,
    };
    let value = match after {
        Some(after) => Value::known(after.into(), 8),
        None => path_state.new_unknown("the changed ttl", 8, vec![(0, 255)], false),
    };
    set(path_state, Field::Ttl, value)
}

/// Changes the segment size: never increases the option's value, and adds the option to packets
/// without it.
pub(super) fn tcpmss(path_state: &mut PathState, mss: &Tcpmss) -> Effect {
    let fields = [Field::OptionByte(MSS, 2), Field::OptionByte(MSS, 3)];
    let has = path_state.number(Field::Has(MSS));
    let before = fields.map(|field| path_state.number(field));
    let after = match (has, mss, before) {
        (Some(1), Tcpmss::Set(wanted), [Some(high), Some(low)]) => {
            Some((high << 8 | low).min((*wanted).into()))
        }
        (Some(0), Tcpmss::Set(wanted), _) => Some((*wanted).into()),
        _ => None,
    };
    let value = match after {
        Some(after) => Value::known(after, 16),
        None => path_state.new_unknown(
            "the changed maximum segment size",
            16,
            vec![(0, 0xffff)],
            false,
        ),
    };
    path_state.record_action(Action::Other(match mss {
        Tcpmss::Set(wanted) => format!("its maximum segment size is at most {wanted}"),
        Tcpmss::ClampToPmtu => {
            "its maximum segment size is at most what the route allows".to_owned()
        }
    }));
    if has == Some(0) {
        // The kernel only adds it to packets that open a connection and have no payload.
        path_state.forget(Field::Has(MSS));
    }
    path_state.set(fields[0], value.part(8, 8));
    path_state.set(fields[1], value.part(0, 8));
    Effect::Continue
}

pub(super) fn strip(path_state: &mut PathState, strip: Tcpoptstrip) -> Effect {
    let mut names = Vec::new();
    for kind in 0..=u8::MAX {
        let word = strip.options[usize::from(kind / 32)];
        if word >> (kind % 32) & 1 != 0 {
            names.push(kind.to_string());
            path_state.set_number(Field::Has(PacketOption { of: 1, kind }), 0);
        }
    }
    path_state.record_action(Action::Other(format!(
        "its TCP options {} are removed",
        names.join(",")
    )));
    Effect::Continue
}

/// Replaces the prefix. Changes a word after it, so that the checksum stays the same.
pub(super) fn prefix(
    path_state: &mut PathState,
    field: Field,
    translation: &PrefixTranslation,
) -> Effect {
    let (prefix, length) = translation.after;
    let length = u32::from(length).min(128);
    let first = prefix.to_bits();
    let last = match length {
        0 => u128::MAX,
        length => first | u128::MAX.checked_shr(length).unwrap_or(0),
    };
    let how = match field {
        Field::Source => "snpt",
        _ => "dnpt",
    };
    let description = format!("the address computed by {how}");
    let value = path_state.new_unknown(description, 128, vec![(first, last)], false);
    path_state.record_action(Action::Translate {
        destination: field == Field::Destination,
        how,
        address: Some(format!("{}/{length}", Ipv6Addr::from(first))),
        port: None,
    });
    path_state.set(field, value);
    Effect::Continue
}
