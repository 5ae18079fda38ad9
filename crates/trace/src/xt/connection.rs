//! Matches of connection tracking data.

use super::super::field::{Field, TupleField};
use super::super::packet::State;
use super::super::path_state::{PathState, Undetermined};
use super::super::route::address_number;
use super::super::value::Test;
use super::{holds, is};
use chainwright::nft::expr::CtKey;
use chainwright::xt::Negatable;
use chainwright::xt::matches::PortRange;
use chainwright::xt::matches::cluster::Cluster;
use chainwright::xt::matches::connbytes::{Connbytes, ConnbytesDirection, ConnbytesMode};
use chainwright::xt::matches::connlabel::Connlabel;
use chainwright::xt::matches::connmark::Connmark;
use chainwright::xt::matches::conntrack::{
    Conntrack, ConntrackAddress, ConntrackDirection, ConntrackState,
};
use chainwright::xt::matches::helper::Helper;
use chainwright::xt::matches::ipvs::Ipvs;

/// Connection states; the match has two more.
const STATES: [(ConntrackState, State); 5] = [
    (ConntrackState::INVALID, State::Invalid),
    (ConntrackState::ESTABLISHED, State::Established),
    (ConntrackState::RELATED, State::Related),
    (ConntrackState::NEW, State::New),
    (ConntrackState::UNTRACKED, State::Untracked),
];
/// Status bits: the source or destination was translated.
const SOURCE_TRANSLATED: u128 = 1 << 4;
const DESTINATION_TRANSLATED: u128 = 1 << 5;

fn has_state(path_state: &mut PathState, states: ConntrackState) -> Result<bool, Undetermined> {
    let wanted: Vec<(u128, u128)> = STATES
        .iter()
        .filter(|(state, _)| states.contains(*state))
        .map(|(_, state)| (state.bit(), state.bit()))
        .collect();
    let state = path_state.state();
    if !wanted.is_empty() && path_state.test_value(&state, Test::Among(&wanted))? {
        return Ok(true);
    }
    if !states.intersects(ConntrackState::SNAT | ConntrackState::DNAT)
        || !path_state.has_connection()?
    {
        return Ok(false);
    }
    for (state, bit) in [
        (ConntrackState::SNAT, SOURCE_TRANSLATED),
        (ConntrackState::DNAT, DESTINATION_TRANSLATED),
    ] {
        let test = Test::Masked {
            mask: bit,
            value: bit,
        };
        if states.contains(state) && status_is(path_state, test)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn status_is(path_state: &mut PathState, test: Test<'_>) -> Result<bool, Undetermined> {
    let status = path_state.connection_status()?;
    is(path_state, status, test)
}

pub(super) fn conntrack(
    path_state: &mut PathState,
    conntrack: &Conntrack,
) -> Result<bool, Undetermined> {
    if !holds(conntrack.state.as_ref(), |states| {
        has_state(path_state, *states)
    })? {
        return Ok(false);
    }
    if !path_state.has_connection()? {
        // The match tests nothing else then.
        return Ok(conntrack.state.is_some());
    }
    if let Some(direction) = conntrack.direction {
        let wanted = u128::from(direction == ConntrackDirection::Reply);
        let value = path_state.connection_direction()?;
        if !is(path_state, value, Test::Is(wanted))? {
            return Ok(false);
        }
    }
    if let Some(tuples) = &conntrack.tuples {
        use TupleField as T;
        for (field, wanted) in [
            (T::OriginalSource, &tuples.original_source),
            (T::OriginalDestination, &tuples.original_destination),
            (T::ReplySource, &tuples.reply_source),
            (T::ReplyDestination, &tuples.reply_destination),
        ] {
            if !has_address(path_state, field, wanted.as_ref())? {
                return Ok(false);
            }
        }
    }
    let protocol = holds(conntrack.protocol.as_ref(), |protocol| {
        path_state.is(Field::Protocol, Test::Is((*protocol).into()))
    })?;
    if !protocol {
        return Ok(false);
    }
    if let Some(tuples) = &conntrack.tuples {
        use TupleField as T;
        for (field, wanted) in [
            (T::OriginalSourcePort, tuples.original_source_port),
            (T::OriginalDestinationPort, tuples.original_destination_port),
            (T::ReplySourcePort, tuples.reply_source_port),
            (T::ReplyDestinationPort, tuples.reply_destination_port),
        ] {
            if !has_port(path_state, field, wanted)? {
                return Ok(false);
            }
        }
    }
    let status = holds(conntrack.status.as_ref(), |status| {
        let mask = u128::from(status.bits());
        // With an empty mask, the kernel's test whether any of the bits is set is always false.
        match mask {
            0 => Ok(false),
            mask => Ok(!status_is(path_state, Test::Masked { mask, value: 0 })?),
        }
    })?;
    if !status {
        return Ok(false);
    }
    holds(conntrack.expiry.as_ref(), |expiry| {
        // The field is in milliseconds.
        let (first, last) = (
            u64::from(expiry.min) * 1_000,
            u64::from(expiry.max) * 1_000 + 999,
        );
        let actual = path_state.ct(CtKey::EXPIRATION, None)?;
        is(path_state, actual, Test::Within(first.into(), last.into()))
    })
}

fn has_address(
    path_state: &mut PathState,
    field: TupleField,
    wanted: Option<&Negatable<ConntrackAddress>>,
) -> Result<bool, Undetermined> {
    holds(wanted, |address| {
        let mask = address_number(address.mask.address());
        let value = address_number(address.address) & mask;
        let actual = path_state.tuple(field)?;
        is(path_state, actual, Test::Masked { mask, value })
    })
}

fn has_port(
    path_state: &mut PathState,
    field: TupleField,
    wanted: Option<PortRange>,
) -> Result<bool, Undetermined> {
    let Some(range) = wanted else {
        return Ok(true);
    };
    let actual = path_state.tuple(field)?;
    let within = Test::Within(range.first.into(), range.last.into());
    Ok(is(path_state, actual, within)? != range.invert)
}

pub(super) fn connmark(
    path_state: &mut PathState,
    connmark: &Connmark,
) -> Result<bool, Undetermined> {
    let Some(actual) = path_state.connection_mark()? else {
        return Ok(false);
    };
    let (mask, value) = (u128::from(connmark.mask), u128::from(connmark.value));
    let actual =
        value & !mask == 0 && path_state.test_value(&actual, Test::Masked { mask, value })?;
    Ok(actual != connmark.invert)
}

pub(super) fn connlabel(
    path_state: &mut PathState,
    connlabel: &Connlabel,
) -> Result<bool, Undetermined> {
    let Some(labels) = path_state.connection_labels()? else {
        return Ok(connlabel.invert);
    };
    let bit = 1_u128.checked_shl(connlabel.label.into()).unwrap_or(0);
    if connlabel.set {
        let field = Field::Ct(CtKey::LABELS, None);
        path_state.set(field, labels.masked(!bit, bit));
        return Ok(!connlabel.invert);
    }
    let test = Test::Masked {
        mask: bit,
        value: bit,
    };
    Ok(path_state.test_value(&labels, test)? != connlabel.invert)
}

pub(super) fn connbytes(
    path_state: &mut PathState,
    connbytes: &Connbytes,
) -> Result<bool, Undetermined> {
    let key = match connbytes.mode {
        ConnbytesMode::Packets => CtKey::PKTS,
        ConnbytesMode::Bytes => CtKey::BYTES,
        ConnbytesMode::AveragePacket => CtKey::AVGPKT,
    };
    let direction = match connbytes.direction {
        ConnbytesDirection::Original => Some(0),
        ConnbytesDirection::Reply => Some(1),
        ConnbytesDirection::Both => None,
    };
    let Some(actual) = path_state.ct(key, direction)? else {
        return Ok(false);
    };
    let (from, to) = (connbytes.from, connbytes.to);
    let within = Test::Within(from.min(to).into(), from.max(to).into());
    // A range whose end precedes its start is inverted.
    Ok(path_state.test_value(&actual, within)? != (from > to))
}

/// Tests the helper's name; an empty one stands for any helper.
pub(super) fn helper(path_state: &mut PathState, helper: &Helper) -> Result<bool, Undetermined> {
    if !path_state.has_connection()? {
        return Ok(helper.invert);
    }
    let description = match helper.name.is_empty() {
        true => "a helper expected its connection".to_owned(),
        false => format!("the helper {} expected its connection", helper.name),
    };
    Ok(path_state.always(description)? != helper.invert)
}

/// Tests whether the hash of the connection's source selects one of the nodes.
pub(super) fn cluster(path_state: &mut PathState, cluster: &Cluster) -> Result<bool, Undetermined> {
    if !path_state.has_connection()? {
        return Ok(false);
    }
    let field = Field::Tuple(TupleField::OriginalSource);
    let of = match path_state.tuple(TupleField::OriginalSource)? {
        Some(source) if path_state.known(&source).is_some() => {
            path_state.description(field, &source)
        }
        _ => field.to_string(),
    };
    let is = path_state.always(format!(
        "the hash of {of} with the seed {:#x} is for the nodes {:#x} of {}",
        cluster.hash_seed, cluster.nodes, cluster.total_nodes
    ))?;
    Ok(is != cluster.invert)
}

pub(super) fn ipvs(path_state: &mut PathState, ipvs: &Ipvs) -> Result<bool, Undetermined> {
    let of_ipvs = path_state.always("the packet belongs to an IPVS connection")?;
    match ipvs {
        Ipvs::None => Ok(!of_ipvs),
        Ipvs::Connection(_) if !of_ipvs => Ok(false),
        Ipvs::Connection(_) => {
            let description = super::description(&chainwright::xt::Match::Ipvs(*ipvs));
            path_state.always(format!("its IPVS connection matches `{description}`"))
        }
    }
}
