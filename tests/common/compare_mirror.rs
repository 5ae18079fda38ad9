//! Compares the content of a mirror with a listing.

use super::kernel;
use chainwright::nft::live::Mirror;
use chainwright::nft::{Connection, Snapshot, SnapshotOptions, SnapshotTable};
use chainwright_sys::nf_tables::{
    NFTA_CHAIN_USE, NFTA_FLOWTABLE_USE, NFTA_OBJ_USE, NFTA_RULE_POSITION, NFTA_SET_COUNT,
    NFTA_SET_ELEM_EXPIRATION, NFTA_TABLE_USE,
};

/// Everything in a snapshot that events also report, one line per object, in order; elements sorted by
/// their bytes.
pub(crate) fn formatted(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .tables()
        .flat_map(|table| lines(&table, false))
        .collect()
}

/// One line for each object of a table, with all its bytes if `whole`, otherwise without what events do
/// not report.
pub(crate) fn lines(table: &SnapshotTable<'_>, whole: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let attributes = |bytes: chainwright::netlink::Attributes<'_>, without: &[u16]| {
        let kept: Vec<_> = bytes
            .map(Result::unwrap)
            .filter(|attribute| whole || !without.contains(&attribute.kind))
            .map(|attribute| format!("{}={:02x?}", attribute.kind, attribute.payload))
            .collect();
        kept.join(" ")
    };
    let view = table.table();
    let family = view.family();
    lines.push(format!(
        "table {family} {}",
        attributes(view.attributes(), &[NFTA_TABLE_USE])
    ));
    for chain in table.chains() {
        let view = chain.chain();
        lines.push(format!(
            " chain {}",
            attributes(view.attributes(), &[NFTA_CHAIN_USE])
        ));
        for rule in chain.rules() {
            lines.push(format!(
                "  rule {}",
                attributes(rule.attributes(), &[NFTA_RULE_POSITION])
            ));
        }
    }
    for set in table.sets() {
        let view = set.set();
        lines.push(format!(
            " set {}",
            attributes(view.attributes(), &[NFTA_SET_COUNT])
        ));
        let elements = set.elements();
        let mut elements: Vec<_> = elements
            .map(|element| attributes(element.attributes(), &[NFTA_SET_ELEM_EXPIRATION]))
            .map(|element| format!("  element {element}"))
            .collect();
        elements.sort();
        lines.extend(elements);
    }
    for object in table.objects() {
        lines.push(format!(
            " object {}",
            attributes(object.attributes(), &[NFTA_OBJ_USE])
        ));
    }
    for flowtable in table.flowtables() {
        let view = attributes(flowtable.attributes(), &[NFTA_FLOWTABLE_USE]);
        lines.push(format!(" flowtable {view}"));
    }
    lines
}

/// Checks that the mirror has the current content and generation.
#[track_caller]
pub(crate) fn is_current(mirror: &Mirror, nft: &mut Connection, what: &str) {
    let mirrored = mirror.snapshot();
    let elements = mirrored.elements();
    let fresh = nft.snapshot_with(mirrored.scope().clone(), SnapshotOptions { elements });
    let fresh = fresh.unwrap();
    let (mirrored, listed) = (formatted(mirror.snapshot()), formatted(&fresh));
    if mirrored != listed {
        let differs = mirrored
            .iter()
            .zip(&listed)
            .position(|(one, other)| one != other);
        let at = differs.unwrap_or(mirrored.len().min(listed.len()));
        panic!(
            "{what}: line {at} of {} and {}\n{:#?}\n{:#?}",
            mirrored.len(),
            listed.len(),
            &mirrored[at.saturating_sub(2)..(at + 3).min(mirrored.len())],
            &listed[at.saturating_sub(2)..(at + 3).min(listed.len())],
        );
    }
    match (mirror.snapshot().generation(), fresh.generation()) {
        (Some(mirrored), Some(listed)) => kernel::is_same_generation(mirrored, listed),
        other => panic!("{what}: {other:?}"),
    }
    // A lookup by name finds the object with that name.
    for table in fresh.tables() {
        let (family, name) = (table.table().family(), table.table().name());
        let mirrored = mirror
            .snapshot()
            .table(family, name)
            .expect("no such object");
        for chain in table.chains() {
            let found = mirrored
                .chain(chain.chain().name())
                .expect("no such object");
            // Two chains can have one name: a renamed one and a new one.
            let same = table.chains().map(|other| other.chain());
            let mut same = same.filter(|other| other.name() == chain.chain().name());
            let is_one = same.any(|other| other.handle() == found.chain().handle());
            assert!(is_one, "{what}");
        }
        for set in table.sets() {
            let found = mirrored.set(set.set().name()).expect("no such object");
            assert_eq!(found.set().handle(), set.set().handle(), "{what}");
        }
    }
}
