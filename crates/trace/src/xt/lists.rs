//! ipset sets and `recent` lists. Only the kernel knows their contents; a trace only knows the changes by its own
//! rules.

use super::super::field::Field;
use super::super::flow::{Effect, Flow, Undetermined};
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
fn parts(flow: &mut Flow, directions: SetDirections) -> String {
    let mut words = Vec::new();
    for is_source in directions.parts() {
        let fields = match is_source {
            true => [Field::Source, Field::SourcePort],
            false => [Field::Destination, Field::DestinationPort],
        };
        let side = if is_source { "source" } else { "destination" };
        let [address, port] = fields.map(|field| {
            let value = flow.get(field);
            flow.known(&value).map(|_| flow.words(field, &value))
        });
        words.push(match (address, port) {
            (Some(address), Some(port)) => format!("{address} (port {port})"),
            (Some(address), None) => address,
            (None, _) => side.to_owned(),
        });
    }
    words.join(",")
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

fn membership(flow: &mut Flow, set: &SetId, directions: SetDirections) -> String {
    let parts = parts(flow, directions);
    format!("the set {} has {parts}", set_name(set))
}

pub(super) fn set(flow: &mut Flow, set: &Set) -> Result<bool, Undetermined> {
    let words = membership(flow, &set.set, set.directions);
    let has = flow.always(words.clone())?;
    if !has || set.packets.is_none() && set.bytes.is_none() {
        return Ok(has != set.invert);
    }
    let (packets, bytes) = (counter("packets", set.packets), counter("bytes", set.bytes));
    Ok(flow.once(format!("{words}{packets}{bytes}"), None)? != set.invert)
}

/// Evaluates `-j SET`. Its changes apply to later questions.
pub(super) fn target(flow: &mut Flow, set: &SetTarget) -> Effect {
    for (used, delete) in [(&set.add, false), (&set.delete, true)] {
        if let Some(SetUse { set, directions }) = used {
            let key = parts(flow, *directions);
            let words = membership(flow, set, *directions);
            flow.remember(words, !delete);
            flow.record_action(Action::Update {
                set: set_name(set).into(),
                key,
                delete,
            });
        }
    }
    if let Some(SetUse { set: id, .. }) = &set.map {
        let from = set_name(id);
        for (asked, field, what) in [
            (set.map_mark, Field::Mark, "mark"),
            (
                set.map_priority,
                Field::Meta(chainwright::nft::expr::MetaKey::PRIORITY),
                "priority",
            ),
        ] {
            if asked {
                let bits = field.bits(flow.family);
                let all = vec![(0, u128::from(u32::MAX))];
                let value = flow.fresh(format!("the {what} from the set {from}"), bits, all, false);
                super::set(flow, field, value);
            }
        }
    }
    Effect::Continue
}

/// Evaluates `-m recent`.
pub(super) fn recent(flow: &mut Flow, recent: &Recent) -> Result<bool, Undetermined> {
    let field = match recent.side {
        RecentSide::Source => Field::Source,
        RecentSide::Destination => Field::Destination,
    };
    let address = named(flow, field);
    let mask = match recent.mask.is_whole() {
        true => String::new(),
        false => format!(" under the mask {}", recent.mask.address()),
    };
    let words = format!("the list {} has {address}{mask}", recent.name);
    match recent.action {
        RecentAction::Set => {
            // The new element satisfies any test of its age.
            flow.remember(words, true);
            return Ok(!recent.invert);
        }
        RecentAction::Remove => {
            let has = flow.always(words.clone())?;
            flow.remember(words, false);
            return Ok(has != recent.invert);
        }
        RecentAction::Check | RecentAction::Update => {}
    }
    let mut has = flow.always(words.clone())?;
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
        has = flow.once(
            format!("{words}{hops}, at least {hits} times{seconds}"),
            None,
        )?;
    }
    Ok(has != recent.invert)
}
