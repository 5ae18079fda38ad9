//! Conntrack entries.

use chainwright::conntrack::{Direction, EntryRef, Filter, TupleFilter};

use crate::Target;
use crate::mutate::InputFormat;

/// The target: the payload of a ctnetlink message.
pub const TARGET: Target = Target {
    name: "conntrack",
    input_format: InputFormat::Bytes,
    run,
};

fn run(input: &[u8]) {
    let Ok(entry) = EntryRef::parse(input) else {
        return;
    };
    let original = entry.original();
    assert_eq!(original.source.is_ipv4(), original.destination.is_ipv4());
    assert_eq!(original.reversed().reversed(), original);
    assert!(entry.to_string().contains(&original.source.to_string()));
    for direction in [Direction::Original, Direction::Reply] {
        let _ = (entry.counters(direction), entry.zone_of(direction));
    }
    let _ = (
        entry.started(),
        entry.helper(),
        entry.labels(),
        entry.master(),
    );
    // A filter made from its properties admits it.
    let like = TupleFilter {
        source: Some(original.source),
        destination: Some(original.destination),
        source_port: original.source_port(),
        destination_port: original.destination_port(),
    };
    let filter = Filter::all()
        .protocol(original.protocol())
        .original(like)
        .mark(entry.mark(), !0)
        .status(entry.status(), !chainwright::conntrack::Status::empty())
        .zone(entry.zone());
    assert!(filter.admits(&entry));
}
