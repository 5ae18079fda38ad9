//! Targets that set marks and other metadata.

use super::super::field::Field;
use super::super::path_state::{Effect, PathState, Undetermined};
use super::super::steps::Action;
use super::super::value::{Bit, Value};
use super::set;
use chainwright::nft::expr::{CtKey, MetaKey};
use chainwright::xt::targets::classify::Classify;
use chainwright::xt::targets::connmark::{Connmark, ConnmarkOperation, ConnmarkShift};
use chainwright::xt::targets::ct::{Ct, CtDirection, CtZone};
use chainwright::xt::targets::hmark::Hmark;
use chainwright::xt::targets::mark::Mark;

/// Clears some bits and inverts others.
fn changed(value: &Value, clear: u32, flip: u32) -> Value {
    value.masked((!clear).into(), flip.into())
}

pub(super) fn mark(path_state: &mut PathState, mark: Mark) -> Effect {
    let value = changed(&path_state.get(Field::Mark), mark.mask, mark.value);
    set(path_state, Field::Mark, value)
}

/// Returns the xor of two values; a new unknown if two unknown bits meet.
fn exclusive_or(path_state: &mut PathState, one: &Value, other: &Value) -> Value {
    let (one, other) = (path_state.resolved(one), path_state.resolved(other));
    let mut bits = Vec::with_capacity(32);
    for at in (0..32).rev() {
        bits.push(match (one.bit(at), other.bit(at)) {
            (Bit::Known(turned), open) | (open, Bit::Known(turned)) => open.turned(turned),
            (Bit::Of { .. }, Bit::Of { .. }) => {
                let all = vec![(0, u128::from(u32::MAX))];
                return path_state.new_unknown(
                    "a combination of two unknown marks",
                    32,
                    all,
                    false,
                );
            }
        });
    }
    Value::of_bits(&bits)
}

fn shifted(value: &Value, shift: Option<ConnmarkShift>) -> Value {
    let zero = Value::known(0, 32);
    match shift {
        None => value.clone(),
        Some(ConnmarkShift::Left(by)) => {
            let by = u32::from(by).min(32);
            zero.with_part(by, &value.part(0, 32 - by))
        }
        Some(ConnmarkShift::Right(by)) => {
            let by = u32::from(by).min(32);
            zero.with_part(0, &value.part(by, 32 - by))
        }
    }
}

pub(super) fn connmark(
    path_state: &mut PathState,
    connmark: &Connmark,
) -> Result<Effect, Undetermined> {
    let Some(of_connection) = path_state.connection_mark()? else {
        return Ok(Effect::Continue);
    };
    let of_packet = path_state.get(Field::Mark);
    Ok(match connmark.operation {
        ConnmarkOperation::Set { value, mask } => {
            let made = shifted(&changed(&of_connection, mask, value), connmark.shift);
            set(path_state, Field::CtMark, made)
        }
        ConnmarkOperation::Save { nfmask, ctmask } => {
            let saved = shifted(&changed(&of_packet, !nfmask, 0), connmark.shift);
            let made = exclusive_or(path_state, &changed(&of_connection, ctmask, 0), &saved);
            set(path_state, Field::CtMark, made)
        }
        ConnmarkOperation::Restore { nfmask, ctmask } => {
            let restored = shifted(&changed(&of_connection, !ctmask, 0), connmark.shift);
            let made = exclusive_or(path_state, &changed(&of_packet, nfmask, 0), &restored);
            set(path_state, Field::Mark, made)
        }
    })
}

pub(super) fn classify(path_state: &mut PathState, classify: Classify) -> Effect {
    let class = u128::from(classify.major) << 16 | u128::from(classify.minor);
    set(
        path_state,
        Field::Meta(MetaKey::PRIORITY),
        Value::known(class, 32),
    )
}

/// Sets the mark to a hash of the packet, within the bounds of the rule.
pub(super) fn hmark(path_state: &mut PathState, hmark: &Hmark) -> Effect {
    let first = u128::from(hmark.offset.unwrap_or(0));
    let last = first + u128::from(hmark.modulus.max(1) - 1);
    // The sum wraps around if it exceeds a mark.
    let all = match last > u128::from(u32::MAX) {
        true => vec![(0, u128::from(u32::MAX))],
        false => vec![(first, last)],
    };
    let made = path_state.new_unknown("the mark that HMARK computes", 32, all, false);
    set(path_state, Field::Mark, made)
}

/// Configures connection tracking for a packet that it has not seen yet.
pub(super) fn ct(path_state: &mut PathState, ct: &Ct) -> Result<Effect, Undetermined> {
    if path_state.tracking.seen || path_state.tracking.untracked {
        return Ok(Effect::Continue);
    }
    if ct.notrack {
        path_state.do_not_track();
        path_state.record_action(Action::Other("it is not tracked".to_owned()));
        return Ok(Effect::Continue);
    }
    match (ct.zone, ct.zone_direction) {
        (CtZone::Id(zone), CtDirection::Both) => {
            let field = Field::Ct(CtKey::ZONE, None);
            set(path_state, field, Value::known(zone.into(), 16));
        }
        (CtZone::Mark, CtDirection::Both) => {
            let zone = path_state.get(Field::Mark).part(0, 16);
            set(path_state, Field::Ct(CtKey::ZONE, None), zone);
        }
        _ => path_state.record_action(Action::Other(
            "one of its directions gets a zone".to_owned(),
        )),
    }
    if !ct.helper.is_empty() {
        path_state.record_action(Action::Other(format!(
            "its connection gets the helper {}",
            ct.helper
        )));
    }
    if !ct.timeout.is_empty() {
        path_state.record_action(Action::Other(format!(
            "its connection gets the timeouts {}",
            ct.timeout
        )));
    }
    Ok(Effect::Continue)
}

pub(super) fn trace(path_state: &mut PathState) -> Effect {
    set(
        path_state,
        Field::Meta(MetaKey::NFTRACE),
        Value::known(1, 8),
    )
}
