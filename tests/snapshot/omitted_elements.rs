//! Snapshots and mirrors without the elements of some sets: the rest is complete, and operations that would
//! lose the elements are refused.

use crate::common::compare_mirror::{formatted, is_current, lines};
use crate::common::tools::Tools;
use crate::common::{committed, connect, report, sandbox};
use chainwright::nft::expr::Immediate;
use chainwright::nft::live::{Mirror, MirrorOptions, MonitorOptions, Update};
use chainwright::nft::{
    Chain, Connection, DiffOptions, Element, ElementFilter, Family, FileError, MissingElements,
    PlanOptions, Refreshed, Rule, Scope, SetId, Snapshot, SnapshotOptions, Transaction, WriteError,
};
use chainwright_testing::Sandbox;

const INET: Family = Family::INET;

const RULESET: &str = "
table inet t {
    set blocked { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 }; }
    set nets { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.0.2.0/24 }; }
    set seen { type ipv4_addr; flags dynamic; timeout 1h; elements = { 198.51.100.1, 198.51.100.2 }; }
    map ports { type inet_service : verdict; elements = { 80 : jump web, 443 : jump web }; }
    chain web { accept; }
    chain input {
        ip saddr @blocked drop;
        ip saddr @nets accept;
        ip saddr { 203.0.113.1, 203.0.113.2, 203.0.113.3 } drop;
        tcp dport vmap { 22 : accept, 8080 : jump web };
        tcp dport vmap @ports;
        add @seen { ip saddr };
    }
}
table ip plain {
    set hosts { type ipv4_addr; elements = { 192.0.2.7 }; }
    chain c { ip saddr @hosts accept; }
}
";

/// A sandbox with that ruleset.
fn with_ruleset() -> (Sandbox, Connection) {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with("nft -f -", RULESET);
    let nft = connect(&sandbox);
    (sandbox, nft)
}

/// Adds two chains so long, and so many short ones, that each chain's rules are requested separately. The
/// short ones have an anonymous set each.
fn add_chains(nft: &mut Connection, sandbox: &Sandbox, short: usize) {
    committed(nft, |tx| {
        for chain in ["long0", "long1"] {
            tx.add(&Chain::new(INET, "t", chain)).unwrap();
            let rule = Rule::new(INET, "t", chain).with(&Immediate::accept());
            for _ in 0..6_000 {
                tx.add(&rule).unwrap();
            }
        }
    });
    let commands = (0..short).map(|number| {
        format!(
            "add chain inet t c{number}
            add rule inet t c{number} ip saddr {{ 192.0.2.1, 192.0.2.{} }} jump web
            add element inet t ports {{ {} : jump c{number} }}\n",
            number + 2,
            number + 1_000
        )
    });
    let commands: String = commands.collect();
    Tools::new(sandbox).run_with("nft -f -", &commands);
}

/// Every choice.
fn choices() -> impl Iterator<Item = ElementFilter> {
    (0..=ElementFilter::all().bits()).map(ElementFilter::from_bits_retain)
}

#[track_caller]
fn without(nft: &mut Connection, elements: ElementFilter) -> Snapshot {
    match nft.snapshot_with(Scope::all(), SnapshotOptions { elements }) {
        Ok(snapshot) => snapshot,
        Err(error) => panic!("{elements:?}: {}", report(&error)),
    }
}

#[test]
fn a_snapshot_contains_selected_elements_and_all_other_objects() {
    for chains in [0, 100] {
        let (sandbox, mut nft) = with_ruleset();
        if chains > 0 {
            add_chains(&mut nft, &sandbox, chains);
        }
        let whole = nft.snapshot(Scope::all()).unwrap();
        assert!(whole.elements().is_all() && !whole.lacks_elements());
        for elements in choices() {
            let snapshot = without(&mut nft, elements);
            assert_eq!(snapshot.elements(), elements);
            assert_eq!(snapshot.lacks_elements(), !elements.is_all());
            assert_eq!(snapshot.generation(), whole.generation());
            let (mut left_out, mut read) = (0, 0);
            for (table, all) in snapshot.tables().zip(whole.tables()) {
                for (set, all) in table.sets().zip(all.sets()) {
                    let is_read = elements.contains(ElementFilter::of(&set.set()));
                    assert_eq!(set.is_left_out(), !is_read, "{}", set.set());
                    let count = if is_read { all.element_count() } else { 0 };
                    assert_eq!(set.element_count(), count, "{}", set.set());
                    left_out += usize::from(!is_read);
                    read += usize::from(is_read);
                }
                // Everything except elements is the same, byte for byte.
                let rest = |lines: Vec<String>| -> Vec<_> {
                    let rest = lines.into_iter();
                    rest.filter(|line| !line.starts_with("  element")).collect()
                };
                assert!(
                    rest(lines(&table, true)) == rest(lines(&all, true)),
                    "{elements:?}"
                );
            }
            // Four named sets and one dynamic one, and those of the rules.
            for (kind, count) in [
                (ElementFilter::NAMED, 4),
                (ElementFilter::DYNAMIC, 1),
                (ElementFilter::ANONYMOUS, 2 + chains),
            ] {
                match elements.contains(kind) {
                    true => read -= count,
                    false => left_out -= count,
                }
            }
            assert_eq!((left_out, read), (0, 0), "{elements:?}");
        }
    }
}

/// It is read again with the same choice.
#[test]
fn the_element_filter_is_kept() {
    let (_sandbox, mut nft) = with_ruleset();
    let elements = ElementFilter::ANONYMOUS;
    let mut kept = without(&mut nft, elements);
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(INET, "t", "more")).unwrap();
    });
    assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::Reread);
    assert_eq!(kept.elements(), elements);
    assert_eq!(formatted(&kept), formatted(&without(&mut nft, elements)));
    let part = kept.filtered(&Scope::table(INET, "t")).unwrap();
    assert!(part.lacks_elements());
    assert!(
        part.table(INET, "t")
            .unwrap()
            .set("blocked")
            .unwrap()
            .is_left_out()
    );
    // A part without omissions is complete.
    let elements = ElementFilter::all() - ElementFilter::DYNAMIC;
    let plain = Scope::table(Family::IP, "plain");
    let part = without(&mut nft, elements).filtered(&plain).unwrap();
    assert!(!part.elements().is_all() && !part.lacks_elements());
    let path = tempfile::tempdir().unwrap();
    part.save(path.path().join("part")).unwrap();
    part.restore(&mut nft).unwrap();
}

#[track_caller]
fn assert_reports_omitted_elements(error: &dyn std::error::Error, what: &str) {
    let message = report(error);
    assert!(
        message.contains("the elements of set inet t "),
        "{what}: {message}"
    );
    assert!(
        message.contains("left out when the snapshot was read"),
        "{what}: {message}"
    );
}

/// Operations that would lose the elements, or treat existing ones as missing.
#[test]
fn rejects_operations_that_would_lose_elements() {
    let (_sandbox, mut nft) = with_ruleset();
    let whole = nft.snapshot(Scope::all()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut exact = PlanOptions::default();
    exact.remove_other_tables = true;
    exact.remove_dynamic_elements = true;
    for elements in choices().filter(|elements| !elements.is_all()) {
        let snapshot = without(&mut nft, elements);
        let left_out = |error: Option<chainwright::Error>, what| match error {
            Some(chainwright::Error::MissingElements(error)) => {
                assert_reports_omitted_elements(&error, what)
            }
            other => panic!("{elements:?}: {what}: {other:?}"),
        };
        left_out(snapshot.restore(&mut nft).err(), "restore");
        left_out(snapshot.check(&mut nft).err(), "check");
        let reconciled = nft.reconcile(&snapshot, PlanOptions::default());
        left_out(reconciled.err(), "reconcile");
        left_out(nft.plan(&snapshot, exact).err(), "plan over a connection");
        let mut tx = Transaction::new();
        let written = |error: Result<(), WriteError>, what| match error {
            Err(WriteError::MissingElements(error)) => {
                assert_reports_omitted_elements(&error, what)
            }
            other => panic!("{elements:?}: {what}: {other:?}"),
        };
        written(snapshot.write_to(&mut tx), "write_to");
        assert!(tx.is_empty());
        written(
            whole.plan(&snapshot, PlanOptions::default()).map(drop),
            "desired",
        );
        written(snapshot.plan(&whole, exact).map(drop), "current");
        match snapshot.save(&path) {
            Err(FileError::MissingElements(error)) => {
                assert_reports_omitted_elements(&error, "save")
            }
            other => panic!("{other:?}"),
        }
        assert!(!path.exists());
        let mut bytes = Vec::new();
        let error = snapshot.write(&mut bytes).unwrap_err();
        assert!(
            error
                .get_ref()
                .is_some_and(|error| error.is::<MissingElements>()),
            "{error}"
        );
        assert!(bytes.is_empty());
        assert_reports_omitted_elements(&serde_json::to_string(&snapshot).unwrap_err(), "JSON");
        for (old, new) in [(&snapshot, &whole), (&whole, &snapshot)] {
            assert_reports_omitted_elements(
                &old.diff(new, DiffOptions::default()).unwrap_err(),
                "diff",
            );
        }
    }
    // Nothing was changed.
    let now = nft.snapshot(Scope::all()).unwrap();
    assert_eq!(now.generation(), whole.generation());
    assert!(now.diff(&whole, DiffOptions::default()).unwrap().is_empty());
}

/// Elements that rules add stay in a plan, which need not know them.
#[test]
fn a_plan_needs_no_unchanged_elements() {
    let (sandbox, mut nft) = with_ruleset();
    // As declared, the set that rules add to is empty.
    let declared = RULESET.replace(
        "timeout 1h; elements = { 198.51.100.1, 198.51.100.2 };",
        "timeout 1h;",
    );
    let other = crate::common::sandbox();
    Tools::new(&other).run_with("nft -f -", &declared);
    let desired = connect(&other).snapshot(Scope::all()).unwrap();
    let now = without(&mut nft, ElementFilter::all() - ElementFilter::DYNAMIC);
    let plan = now.plan(&desired, PlanOptions::default()).unwrap();
    assert!(plan.is_empty(), "{plan}");
    committed(&mut nft, |tx| {
        let set = SetId::new(INET, "t", "blocked");
        tx.flush_set(&set).unwrap();
        tx.add(&Chain::new(INET, "t", "more")).unwrap();
    });
    let now = without(&mut nft, ElementFilter::all() - ElementFilter::DYNAMIC);
    let plan = now.plan(&desired, PlanOptions::default()).unwrap();
    nft.commit(plan.transaction()).unwrap();
    let listed = Tools::new(&sandbox).run("nft list ruleset");
    assert!(
        listed.contains("192.0.2.1, 192.0.2.2") && !listed.contains("more"),
        "{listed}"
    );
    // They still exist.
    assert!(
        listed.contains("198.51.100.1") && listed.contains("198.51.100.2"),
        "{listed}"
    );
    // If some are desired, it must know the existing ones.
    let whole = nft.snapshot(Scope::all()).unwrap();
    assert!(now.plan(&whole, PlanOptions::default()).is_err());
}

/// Events of omitted elements are ignored; all others are applied.
#[test]
fn a_mirror_ignores_omitted_elements() {
    for elements in choices() {
        let (sandbox, mut nft) = with_ruleset();
        let options = SnapshotOptions { elements };
        let connection = connect(&sandbox);
        let mut mirror = Mirror::open_with(connection, &Scope::all(), options).unwrap();
        is_current(&mirror, &mut nft, "opened");
        let before = mirror.snapshot().byte_length();
        let keys: Vec<_> = (0..5_000_u32).map(u32::to_be_bytes).collect();
        committed(&mut nft, |tx| {
            let set = SetId::new(INET, "t", "blocked");
            tx.add_elements(&set, keys.iter().map(Element::new))
                .unwrap();
            tx.add(&Chain::new(INET, "t", "more")).unwrap();
        });
        let updates = mirror.update().unwrap();
        assert!(matches!(updates[..], [Update::Change(_)]), "{updates:?}");
        is_current(&mirror, &mut nft, "after it grew");
        let grown = mirror.snapshot().byte_length() - before;
        let is_read = elements.contains(ElementFilter::NAMED);
        assert_eq!(grown > 20_000, is_read, "{elements:?}: {grown}");
        // Even if a table, or everything, is read again; and in new sets.
        let tools = Tools::new(&sandbox);
        for command in [
            "rename chain inet t more other",
            "add rule inet t other ip saddr { 192.0.2.5, 192.0.2.6 } accept",
            "add set inet t late { type ipv4_addr; flags dynamic; }",
            "add element inet t late { 192.0.2.8 }",
            "delete set inet t late",
            "add set inet t late { type ipv4_addr; elements = { 192.0.2.9 }; }",
            "delete element inet t ports { 80 }",
            "add element inet t ports { 81 : goto web }",
            "flush chain inet t input",
            "delete table ip plain",
        ] {
            tools.run_with("nft -f -", command);
            mirror.update().unwrap();
            is_current(&mirror, &mut nft, command);
        }
        mirror.reread().unwrap();
        is_current(&mirror, &mut nft, "after a reload");
        assert_eq!(mirror.snapshot().elements(), elements);
    }
}

#[test]
fn mirror_options_convert_from_either_kind() {
    let elements = ElementFilter::NAMED;
    let options = MirrorOptions::from(SnapshotOptions { elements });
    assert_eq!(options.snapshot.elements, elements);
    assert_eq!(options.monitor, MirrorOptions::default().monitor);
    let monitor = MonitorOptions {
        receive_buffer: 1,
        ..MonitorOptions::default()
    };
    assert_eq!(MirrorOptions::from(monitor).monitor, monitor);
    assert!(MirrorOptions::from(monitor).snapshot.elements.is_all());
    // The default is to read all.
    assert!(ElementFilter::default().is_all() && Snapshot::default().elements().is_all());
}
