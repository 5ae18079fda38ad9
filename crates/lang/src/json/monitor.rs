//! Formats change events as libnftables' JSON.

use bstr::BStr;
use serde::Serialize;

use super::layout::JanssonLayout;
use super::object::{Members, named, named_chain};
use super::{Tagged, Writer};
use crate::monitor::{EventFormatter, OutputFormat};
use chainwright::nft::is_map;
use chainwright::nft::live::{Event, EventObject};
use chainwright::nft::{Family, SnapshotSet};

/// One object for each event: `{"add": {"rule": …}}`.
pub(crate) struct Events;

impl Events {
    fn writer(formatter: &EventFormatter, family: Family) -> Writer<'_> {
        Writer {
            options: &formatter.options,
            family,
            stateless: formatter.options.stateless,
        }
    }
}

fn line(verb: &'static str, object: impl Serialize) -> String {
    JanssonLayout(Tagged(verb, object)).to_string()
}

/// Formats an event about an object. Decodes it again, so that it does not outlive the definitions of its table.
fn format_object_event<'e>(
    formatter: &'e EventFormatter,
    verb: &'static str,
    event: Event<'e>,
) -> Option<String> {
    let writer = Events::writer(formatter, event.family());
    // The name is enough for a deletion.
    let gone = |kind: &'static str, table: &'e BStr, name: &'e BStr| {
        let named = named(event.family(), table, name);
        let named = named.optional("handle", event.handle());
        Some(line(verb, Tagged(kind, named)))
    };
    let is_deletion = event.is_deletion();
    let object = match &event.object().ok()? {
        EventObject::Table(view) => writer.table(view),
        EventObject::Chain(view) if is_deletion => {
            let named = named_chain(event.family(), view.table(), view.name());
            let named = named.optional("handle", event.handle());
            return Some(line(verb, Tagged("chain", named)));
        }
        EventObject::Chain(view) => writer.chain(view),
        EventObject::Set(view) if is_deletion => {
            let kind = match is_map(formatter.flags_of(&event, view)) {
                true => "map",
                false => "set",
            };
            return gone(kind, view.table(), view.name());
        }
        EventObject::Set(view) => writer.set(&formatter.table_of(&event)?.set(view.name())?),
        EventObject::Object(view) => writer.object(view),
        EventObject::Flowtable(view) if is_deletion => {
            return gone("flowtable", view.table(), view.name());
        }
        EventObject::Flowtable(view) => writer.flowtable(view),
        EventObject::Rule(rule) => writer.rule(&formatter.table_of(&event)?, rule),
        _ => return None,
    };
    Some(line(verb, object))
}

impl OutputFormat for Events {
    type Output = String;

    fn object(
        formatter: &EventFormatter,
        verb: &'static str,
        event: &Event<'_>,
        _: &EventObject<'_>,
    ) -> Option<String> {
        format_object_event(formatter, verb, *event)
    }

    fn elements(
        formatter: &EventFormatter,
        verb: &'static str,
        set: &SnapshotSet<'_>,
    ) -> Option<String> {
        let writer = Events::writer(formatter, set.set().family());
        let members = Members::of(writer, set);
        Some(line(verb, Tagged("element", members)))
    }
}
