//! Evaluates entries of legacy tables.

use bstr::ByteSlice;

use super::field::Field;
use super::path_state::{Effect, PathState, Undetermined};
use super::value::{Test, Value};
use super::xt as extensions;
use chainwright::legacy::{
    ChainRef, Header, InterfaceMatch, Inversions, Ipv4Flags, Malformed, RuleRef,
    Target as LegacyTarget,
};

/// Target of an entry.
pub(super) enum Target<'s> {
    Effect(Effect),
    /// A chain; `true` for a goto.
    Chain(ChainRef<'s>, bool),
}

fn malformed(_: Malformed) -> Undetermined {
    Undetermined::unknown("malformed entry")
}

/// Returns whether the header of an entry matches.
///
/// # Errors
/// The branch splits.
pub(super) fn header(
    path_state: &mut PathState,
    header: &Header<'_>,
) -> Result<bool, Undetermined> {
    let (protocol, inversions) = match header {
        Header::Ipv4(ip) => (ip.protocol(), ip.inversions()),
        Header::Ipv6(ip) => (ip.protocol(), ip.inversions()),
        Header::Arp(_) => return Ok(false),
    };
    let masked: [(u128, u128); 2] = match header {
        Header::Ipv4(ip) => [ip.source(), ip.destination()]
            .map(|of| (of.mask.to_bits().into(), of.value.to_bits().into())),
        Header::Ipv6(ip) => {
            [ip.source(), ip.destination()].map(|of| (of.mask.to_bits(), of.value.to_bits()))
        }
        Header::Arp(_) => return Ok(false),
    };
    let sides = [
        (Field::Source, Inversions::SOURCE),
        (Field::Destination, Inversions::DESTINATION),
    ];
    for ((field, inverted), (mask, value)) in sides.into_iter().zip(masked) {
        let inverted = inversions.contains(inverted);
        if mask == 0 {
            if (value != 0) != inverted {
                return Ok(false);
            }
            continue;
        }
        // Value bits outside of the mask never match.
        let is = value & !mask == 0 && path_state.is(field, Test::Masked { mask, value })?;
        if is == inverted {
            return Ok(false);
        }
    }
    let interfaces = [
        (
            Field::InName,
            path_state.has_in(),
            header.in_interface(),
            Inversions::IN_INTERFACE,
        ),
        (
            Field::OutName,
            path_state.has_out(),
            header.out_interface(),
            Inversions::OUT_INTERFACE,
        ),
    ];
    for (field, has_interface, wanted, inverted) in interfaces {
        let is = interface(path_state, field, has_interface, &wanted)?;
        if is == inversions.contains(inverted) {
            return Ok(false);
        }
    }
    if protocol != 0 {
        let is = path_state.is(Field::Protocol, Test::Is(protocol.into()))?;
        if is == inversions.contains(Inversions::PROTOCOL) {
            return Ok(false);
        }
    }
    if let Header::Ipv4(ip) = header
        && ip.flags().contains(Ipv4Flags::FRAGMENT)
        && path_state.is_later_fragment()? == inversions.contains(Inversions::FRAGMENT)
    {
        return Ok(false);
    }
    Ok(true)
}

fn interface(
    path_state: &mut PathState,
    field: Field,
    has_interface: bool,
    wanted: &InterfaceMatch<'_>,
) -> Result<bool, Undetermined> {
    if wanted.is_any() {
        return Ok(true);
    }
    let mask = u128::from_be_bytes(*wanted.raw_mask);
    let value = u128::from_be_bytes(*wanted.raw_name) & mask;
    let name = match has_interface {
        true => path_state.get(field),
        false => Value::known(0, 128),
    };
    path_state.test_value(&name, Test::Masked { mask, value })
}

/// Returns whether a match of the entry applies; `None` if there are no more matches.
///
/// # Errors
/// The branch splits, or the entry is malformed.
pub(super) fn part(
    path_state: &mut PathState,
    rule: &RuleRef<'_>,
    number: usize,
) -> Result<Option<bool>, Undetermined> {
    let Some(found) = rule.matches().nth(number) else {
        return Ok(None);
    };
    let found = found.map_err(malformed)?;
    let (name, revision) = (found.name(), found.revision());
    extensions::read_match(path_state, name.as_bytes(), revision, found.data()).map(Some)
}

/// Evaluates the target of the entry.
///
/// # Errors
/// The branch splits, or the target cannot be evaluated.
pub(super) fn target<'s>(
    path_state: &mut PathState,
    rule: &RuleRef<'s>,
) -> Result<Target<'s>, Undetermined> {
    Ok(Target::Effect(match rule.target().map_err(malformed)? {
        LegacyTarget::Accept => Effect::Accept,
        LegacyTarget::Drop => Effect::Drop,
        LegacyTarget::Return => Effect::Return,
        LegacyTarget::FallThrough => Effect::Continue,
        LegacyTarget::Queue => Effect::Queue {
            first: 0,
            queues: 1,
            bypass: false,
        },
        LegacyTarget::Jump(chain) => return Ok(Target::Chain(chain, false)),
        LegacyTarget::Goto(chain) => return Ok(Target::Chain(chain, true)),
        LegacyTarget::Extension(found) => {
            let (name, revision) = (found.name(), found.revision());
            extensions::read_target(path_state, name.as_bytes(), revision, found.data())?
        }
        _ => return Err(Undetermined::unknown("its verdict is not supported")),
    }))
}
