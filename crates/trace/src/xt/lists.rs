//! ipset sets and `recent` lists. Only the kernel knows their contents; a trace only knows the changes by its own
//! rules.

use super::super::field::Field;
use super::super::path_state::{Effect, PathState, Undetermined};
use super::super::steps::Action;
use super::named;
use chainwright::xt::SetId;
use chainwright::xt::matches::recent::{Recent, RecentAction, RecentSide};
use chainwright::xt::matches::set::{Set, SetCounter, SetDirections};
use chainwright::xt::targets::set::{Set as SetTarget, SetUse};

fn set_name(set: &SetId) -> String {
    match set {
        SetId::Index(index) => format!("number {index}"),
        SetId::Name(name) => name.to_string(),
    }
}

/// Describes the packet data that a set compares. The set's type determines the fields, the rule the side.
fn parts(path_state: &mut PathState, directions: SetDirections) -> String {
    let mut description = Vec::new();
    for is_source in directions.parts() {
        let fields = match is_source {
            true => [Field::Source, Field::SourcePort],
            false => [Field::Destination, Field::DestinationPort],
        };
        let side = if is_source { "source" } else { "destination" };
        let [address, port] = fields.map(|field| {
            let value = path_state.get(field);
            path_state
                .known(&value)
                .map(|_| path_state.description(field, &value))
        });
        description.push(match (address, port) {
            (Some(address), Some(port)) => format!("{address} (port {port})"),
            (Some(address), None) => address,
            (None, _) => side.to_owned(),
        });
    }
    description.join(",")
}

fn counter(name: &str, counter: Option<SetCounter>) -> String {
    match counter {
        None => String::new(),
        Some(SetCounter::Equal(number)) => format!(" with {number} {name}"),
        Some(SetCounter::NotEqual(number)) => format!(" with other than {number} {name}"),
        Some(SetCounter::Less(number)) => format!(" with less than {number} {name}"),
        Some(SetCounter::Greater(number)) => format!(" with more than {number} {name}"),
    }
}

fn membership(path_state: &mut PathState, set: &SetId, directions: SetDirections) -> String {
    let parts = parts(path_state, directions);
    format!("the set {} has {parts}", set_name(set))
}

pub(super) fn set(path_state: &mut PathState, set: &Set) -> Result<bool, Undetermined> {
    let description = membership(path_state, &set.set, set.directions);
    let has = path_state.always(description.clone())?;
    if !has || set.packets.is_none() && set.bytes.is_none() {
        return Ok(has != set.invert);
    }
    let (packets, bytes) = (counter("packets", set.packets), counter("bytes", set.bytes));
    Ok(path_state.once(format!("{description}{packets}{bytes}"), None)? != set.invert)
}

/// Evaluates `-j SET`. Its changes apply to later queries.
pub(super) fn target(path_state: &mut PathState, set: &SetTarget) -> Effect {
    for (used, delete) in [(&set.add, false), (&set.delete, true)] {
        if let Some(SetUse { set, directions }) = used {
            let key = parts(path_state, *directions);
            let description = membership(path_state, set, *directions);
            path_state.remember(description, !delete);
            path_state.record_action(Action::Update {
                set: set_name(set).into(),
                key,
                delete,
            });
        }
    }
    if let Some(SetUse { set: id, .. }) = &set.map {
        let from = set_name(id);
        for (enabled, field, what) in [
            (set.map_mark, Field::Mark, "mark"),
            (
                set.map_priority,
                Field::Meta(chainwright::nft::expr::MetaKey::PRIORITY),
                "priority",
            ),
        ] {
            if enabled {
                let bits = field.bits(path_state.family);
                let all = vec![(0, u128::from(u32::MAX))];
                let value = path_state.new_unknown(
                    format!("the {what} from the set {from}"),
                    bits,
                    all,
                    false,
                );
                super::set(path_state, field, value);
            }
        }
    }
    Effect::Continue
}

/// Evaluates `-m recent`.
pub(super) fn recent(path_state: &mut PathState, recent: &Recent) -> Result<bool, Undetermined> {
    let field = match recent.side {
        RecentSide::Source => Field::Source,
        RecentSide::Destination => Field::Destination,
    };
    let address = named(path_state, field);
    let mask = match recent.mask.is_full() {
        true => String::new(),
        false => format!(" under the mask {}", recent.mask.address()),
    };
    let description = format!("the list {} has {address}{mask}", recent.name);
    match recent.action {
        RecentAction::Set => {
            // The new element satisfies any test of its age.
            path_state.remember(description, true);
            return Ok(!recent.invert);
        }
        RecentAction::Remove => {
            let has = path_state.always(description.clone())?;
            path_state.remember(description, false);
            return Ok(has != recent.invert);
        }
        RecentAction::Check | RecentAction::Update => {}
    }
    let mut has = path_state.always(description.clone())?;
    if has && (recent.seconds > 0 || recent.hit_count > 1 || recent.same_ttl) {
        let seconds = match recent.seconds {
            0 => String::new(),
            seconds => format!(" of the last {seconds} seconds"),
        };
        let hops = if recent.same_ttl {
            " with this ttl"
        } else {
            ""
        };
        let hits = recent.hit_count.max(1);
        has = path_state.once(
            format!("{description}{hops}, at least {hits} times{seconds}"),
            None,
        )?;
    }
    Ok(has != recent.invert)
}
