//! Tables owned by a connection: others cannot change them; and what happens to them when the owner is gone.

use crate::common::tools::Tools;
use crate::common::{committed, connect, kernel, report, sandbox};
use chainwright::Error;
use chainwright::nft::expr::{Counter, Immediate};
use chainwright::nft::{
    Chain, CommitError, Connection, Element, Family, Outcome, Ownership, Rule, Scope, SetId,
    Snapshot, Table, TableFlags, Transaction,
};
use chainwright_testing::FakeKernel;

const IP: Family = Family::IP;
const PERSISTENT: TableFlags = TableFlags::OWNER.union(TableFlags::PERSIST);

fn table(name: &'static str, flags: TableFlags) -> Table<'static> {
    Table {
        flags: Some(flags),
        ..Table::new(IP, name)
    }
}

/// A table with a chain and two rules.
fn fill(tx: &mut Transaction, name: &'static str, flags: TableFlags) {
    tx.add(&table(name, flags)).unwrap();
    let base = Chain::new(IP, name, "input").with_hook("filter", 1, 0);
    tx.add(&base).unwrap();
    tx.add(&Chain::new(IP, name, "c")).unwrap();
    let rule = Rule::new(IP, name, "input")
        .with(&Counter::new(0, 0))
        .with(&Immediate::jump("c"));
    tx.add(&rule).unwrap();
    let rule = Rule::new(IP, name, "c").with(&Immediate::accept());
    tx.add(&rule).unwrap();
}

fn commit(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) -> Result<(), CommitError> {
    let mut tx = Transaction::new();
    fill(&mut tx);
    nft.commit(&tx)
}

/// The library's names for such tables.
const OWNED: [&str; 2] = ["owned tables", "tables that outlive their owner"];

/// Like [`committed`], if the kernel supports such tables, which is all that the test is about.
#[track_caller]
#[must_use]
fn committed_if_supported(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) -> bool {
    let mut tx = Transaction::new();
    fill(&mut tx);
    kernel::commit_if_supported(nft, &mut tx, &OWNED)
}

/// The commit fails with a permission error and changes nothing.
#[track_caller]
fn not_permitted(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) {
    let before = nft.generation().unwrap();
    let error = commit(nft, fill).unwrap_err();
    assert_eq!(error.outcome, Outcome::NothingApplied);
    let errno = error.failures[0].errno.number();
    assert_eq!(errno, libc::EPERM, "{}", report(&error));
    assert_eq!(nft.generation().unwrap(), before);
}

/// The content of a table with its handles: the same objects, not just similar ones.
fn content(nft: &mut Connection, name: &'static str) -> String {
    let snapshot = nft.snapshot(Scope::table(IP, name)).unwrap();
    let mut text = snapshot.to_string();
    for table in snapshot.tables() {
        text += &format!("{:?}", table.table().to_builder());
        for chain in table.chains() {
            text += &format!("{:?}", chain.chain().to_builder());
        }
    }
    text
}

/// Names of all tables.
fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .tables()
        .map(|table| table.table().name().to_string())
        .collect()
}

fn owner(nft: &mut Connection, name: &'static str) -> Option<u32> {
    let table = nft.table(IP, name).unwrap();
    table.expect("no such table").owner()
}

fn flags(nft: &mut Connection, name: &'static str) -> TableFlags {
    let table = nft.table(IP, name).unwrap();
    table.expect("no such table").flags().unwrap_or_default()
}

/// A socket is closed when the last process has closed it: a process that another test is just starting may hold it
/// a moment longer.
#[track_caller]
fn eventually(mut is_so: impl FnMut() -> bool) {
    for _ in 0..5000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the condition did not become true");
}

/// All changes by others to the table fail, or leave it alone.
#[track_caller]
fn is_immune(tools: &Tools<'_>, rival: &mut Connection, name: &'static str) {
    let before = content(rival, name);
    assert!(
        before.contains("jump -> c") && before.contains("input"),
        "{before}"
    );
    // Another process: these succeed, on everything that has no owner.
    for command in [
        "nft flush ruleset",
        "nft flush ruleset ip",
        "nft flush chains ip",
    ] {
        if tools.succeeds(command) {
            assert_eq!(content(rival, name), before, "{command}");
        }
    }
    tools.run("nft add table ip others");
    tools.run("nft flush ruleset");
    assert!(
        rival.table(IP, "others").unwrap().is_none(),
        "the flush should delete tables without an owner"
    );
    assert_eq!(content(rival, name), before);
    // These fail.
    for command in [
        "delete table ip NAME",
        "flush table ip NAME",
        "add chain ip NAME x",
        "delete chain ip NAME c",
        "flush chain ip NAME input",
        "add rule ip NAME c drop",
        "insert rule ip NAME input drop",
        "add set ip NAME s { type ipv4_addr; }",
        "add counter ip NAME n",
        "add table ip NAME { flags dormant; }",
    ] {
        let command = format!("nft {}", command.replace("NAME", name));
        assert!(!tools.succeeds(&command), "{command}");
        assert_eq!(content(rival, name), before, "{command}");
    }
    // Another connection of this process.
    not_permitted(rival, |tx| _ = tx.delete(&Table::new(IP, name)).unwrap());
    not_permitted(rival, |tx| _ = tx.flush_table(IP, name).unwrap());
    not_permitted(rival, |tx| {
        tx.add(&Chain::new(IP, name, "x")).unwrap();
    });
    not_permitted(rival, |tx| {
        tx.add(&Rule::new(IP, name, "c").with(&Immediate::drop()))
            .unwrap();
    });
    not_permitted(rival, |tx| {
        tx.delete(&Chain::new(IP, name, "input")).unwrap();
    });
    not_permitted(rival, |tx| {
        let set = SetId::new(IP, name, "s");
        tx.add_elements(&set, [Element::new(&[1; 4])]).unwrap();
    });
    // A refused transaction has no other effects either.
    not_permitted(rival, |tx| {
        tx.add(&Table::new(IP, "others")).unwrap();
        tx.delete(&Table::new(IP, name)).unwrap();
    });
    assert!(rival.table(IP, "others").unwrap().is_none());
    assert_eq!(content(rival, name), before);
}

#[test]
fn an_owned_table_survives_a_flush_by_another_process() {
    for flags in [PERSISTENT, TableFlags::OWNER] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let (mut keeper, mut rival) = (connect(&sandbox), connect(&sandbox));
        if !committed_if_supported(&mut keeper, |tx| fill(tx, "kept", flags)) {
            continue;
        }
        let port = owner(&mut rival, "kept");
        assert!(port.is_some_and(|port| port != 0), "{port:?}");
        is_immune(&tools, &mut rival, "kept");
        assert_eq!(owner(&mut rival, "kept"), port);

        // The owner can still change it.
        committed(&mut keeper, |tx| {
            tx.add(&Chain::new(IP, "kept", "more")).unwrap();
            let jump = Immediate::jump("more");
            tx.add(&Rule::new(IP, "kept", "c").with(&jump)).unwrap();
        });
        assert!(content(&mut rival, "kept").contains("jump -> more"));
        committed(&mut keeper, |tx| {
            tx.flush_table(IP, "kept").unwrap();
            tx.delete(&Table::new(IP, "kept")).unwrap();
        });
        assert!(rival.table(IP, "kept").unwrap().is_none());
    }
}

/// The commands of the tests above do change a table without an owner.
#[test]
fn control_a_table_without_an_owner_is_flushed() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let (mut keeper, mut rival) = (connect(&sandbox), connect(&sandbox));
    for command in ["nft flush ruleset", "nft delete table ip kept"] {
        committed(&mut keeper, |tx| fill(tx, "kept", TableFlags::empty()));
        assert_eq!(owner(&mut rival, "kept"), None);
        assert!(tools.succeeds("nft add chain ip kept x"));
        tools.run(command);
        assert!(rival.table(IP, "kept").unwrap().is_none());
    }
}

#[test]
fn a_persistent_table_outlives_its_owner_and_can_be_adopted() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let (mut keeper, mut rival) = (connect(&sandbox), connect(&sandbox));
    if !committed_if_supported(&mut keeper, |tx| fill(tx, "kept", PERSISTENT)) {
        return;
    }
    // No process can take it over while its owner exists.
    assert!(
        commit(&mut rival, |tx| _ =
            tx.add(&table("kept", PERSISTENT)).unwrap())
        .is_err()
    );
    let packets = rival
        .snapshot(Scope::table(IP, "kept"))
        .unwrap()
        .to_string();
    drop(keeper);

    eventually(|| owner(&mut rival, "kept").is_none());

    // It is an orphan and otherwise unchanged: the kernel removed the flag `owner`.
    assert_eq!(flags(&mut rival, "kept"), TableFlags::PERSIST);
    let now = rival
        .snapshot(Scope::table(IP, "kept"))
        .unwrap()
        .to_string();
    assert_eq!(now, packets);

    // A connection that adds it again with the same flags owns it, with its content.
    let mut new_owner = connect(&sandbox);
    committed(&mut new_owner, |tx| {
        _ = tx.add(&table("kept", PERSISTENT)).unwrap()
    });
    let adopted = owner(&mut rival, "kept");
    assert!(adopted.is_some());
    assert_eq!(
        rival
            .snapshot(Scope::table(IP, "kept"))
            .unwrap()
            .to_string(),
        packets
    );
    is_immune(&tools, &mut rival, "kept");
    committed(&mut new_owner, |tx| {
        tx.add(&Chain::new(IP, "kept", "more")).unwrap();
    });

    // In the meantime it is an ordinary table.
    drop(new_owner);
    eventually(|| owner(&mut rival, "kept").is_none());
    assert!(tools.succeeds("nft add chain ip kept anybodys"));
    let mut new_owner = connect(&sandbox);
    committed(&mut new_owner, |tx| {
        _ = tx.add(&table("kept", PERSISTENT)).unwrap()
    });
    is_immune(&tools, &mut rival, "kept");
    drop(new_owner);
    eventually(|| owner(&mut rival, "kept").is_none());
    tools.run("nft flush ruleset");
    assert!(rival.table(IP, "kept").unwrap().is_none());

    // Without `persist` it cannot be adopted; neither can a table that never had an owner.
    let mut new_owner = connect(&sandbox);
    committed(&mut rival, |tx| fill(tx, "free", TableFlags::empty()));
    for flags in [PERSISTENT, TableFlags::OWNER] {
        assert!(
            commit(&mut new_owner, |tx| _ =
                tx.add(&table("free", flags)).unwrap())
            .is_err()
        );
    }
    committed(&mut new_owner, |tx| fill(tx, "kept", PERSISTENT));

    // To remove it for good, its owner deletes it.
    committed(&mut new_owner, |tx| {
        _ = tx.delete(&Table::new(IP, "kept")).unwrap()
    });
    assert!(rival.table(IP, "kept").unwrap().is_none());
}

#[test]
fn a_non_persistent_table_is_deleted_with_its_owner() {
    let sandbox = sandbox();
    let (mut keeper, mut rival) = (connect(&sandbox), connect(&sandbox));
    let known = committed_if_supported(&mut keeper, |tx| {
        fill(tx, "kept", TableFlags::OWNER);
        fill(tx, "free", TableFlags::empty());
    });
    if !known {
        return;
    }
    let before = rival.generation().unwrap();
    drop(keeper);
    eventually(|| rival.table(IP, "kept").unwrap().is_none());
    assert!(rival.table(IP, "free").unwrap().is_some());
    // That is no commit (observed on Linux 6.18): the generation does not change.
    assert_eq!(rival.generation().unwrap(), before);
}

// ---------------------------------------------------------------------------------------------
// Snapshots.

#[test]
fn restore_keeps_tables_owned_by_others() {
    let sandbox = sandbox();
    let (mut keeper, mut other) = (connect(&sandbox), connect(&sandbox));
    let known = committed_if_supported(&mut keeper, |tx| {
        fill(tx, "persistent", PERSISTENT);
        fill(tx, "owned", TableFlags::OWNER);
    });
    if !known {
        return;
    }
    committed(&mut other, |tx| fill(tx, "free", TableFlags::empty()));
    let with = other.snapshot(Scope::all()).unwrap();
    let before = ["persistent", "owned", "free"].map(|name| content(&mut other, name));
    let both = vec![(IP, "owned".into()), (IP, "persistent".into())];

    // Tables in the snapshot, and others.
    let empty = connect(&crate::common::sandbox())
        .snapshot(Scope::all())
        .unwrap();
    for (what, snapshot, free) in [(0, &with, true), (1, &empty, false), (2, &with, true)] {
        let checked = snapshot.check(&mut other).unwrap();
        let restored = snapshot.restore(&mut other).unwrap();
        assert_eq!(restored, checked);
        assert_eq!(restored.owned_by_others, both);
        assert_eq!(restored.no_longer_owned, []);
        let became = [restored.replaced, restored.removed, restored.added];
        let mut expected = [vec![], vec![], vec![]];
        expected[what] = vec![(IP, "free".into())];
        assert_eq!(became, expected);
        assert_eq!(content(&mut other, "persistent"), before[0]);
        assert_eq!(content(&mut other, "owned"), before[1]);
        assert_eq!(other.table(IP, "free").unwrap().is_some(), free);
    }
    // Only that scope is considered.
    let table = other.snapshot(Scope::table(IP, "free")).unwrap();
    let restored = table.restore(&mut other).unwrap();
    assert_eq!(restored.replaced, [(IP, "free".into())]);
    assert_eq!(restored.owned_by_others, []);
    let table = other.snapshot(Scope::table(IP, "owned")).unwrap();
    let restored = table.restore(&mut other).unwrap();
    assert_eq!(restored.owned_by_others, both[..1]);

    // For their owner they are ordinary tables: they are restored, and it still owns them.
    let keepers = |nft: &mut Connection| {
        ["persistent", "owned"].map(|name| (owner(nft, name), flags(nft, name)))
    };
    let owners = keepers(&mut other);
    committed(&mut keeper, |tx| {
        tx.flush_table(IP, "persistent").unwrap();
    });
    let restored = with.restore(&mut keeper).unwrap();
    assert_eq!(restored.owned_by_others, []);
    assert_eq!(keepers(&mut other)[0], owners[0]);
    assert_eq!(names(&other.snapshot(Scope::all()).unwrap()).len(), 3);
    // Except for the flag without persist: that table would not outlive the connection.
    assert_eq!(restored.no_longer_owned, both[..1]);
    assert_eq!(keepers(&mut other)[1], (None, TableFlags::empty()));
    drop(keeper);
    assert_eq!(names(&other.snapshot(Scope::all()).unwrap()).len(), 3);
}

#[test]
fn owned_tables_are_restored_after_their_owner_exited() {
    let sandbox = sandbox();
    let (mut keeper, mut other) = (connect(&sandbox), connect(&sandbox));
    let known = committed_if_supported(&mut keeper, |tx| {
        fill(tx, "persistent", PERSISTENT);
        fill(tx, "owned", TableFlags::OWNER);
    });
    if !known {
        return;
    }
    let snapshot = other.snapshot(Scope::all()).unwrap();
    // Both are gone: one was deleted, the other disappeared with its owner.
    committed(&mut keeper, |tx| {
        tx.delete(&Table::new(IP, "persistent")).unwrap();
    });
    drop(keeper);
    eventually(|| other.table(IP, "owned").unwrap().is_none());
    let nothing: [&str; 0] = [];
    assert_eq!(names(&other.snapshot(Scope::all()).unwrap()), nothing);

    let restored = snapshot.restore(&mut other).unwrap();
    assert_eq!(restored.owned_by_others, []);
    assert_eq!(restored.no_longer_owned, [(IP, "owned".into())]);
    let mut observer = connect(&sandbox);
    assert_eq!(flags(&mut observer, "owned"), TableFlags::empty());
    assert_eq!(owner(&mut observer, "owned"), None);
    // The persistent one belongs to the connection that restored it, and stays.
    assert_eq!(flags(&mut observer, "persistent"), PERSISTENT);
    assert!(owner(&mut observer, "persistent").is_some());
    drop(other);
    eventually(|| owner(&mut observer, "persistent").is_none());
    let now = observer.snapshot(Scope::all()).unwrap();
    assert_eq!(names(&now).len(), 2);
}

/// A table with `persist` whose owner is gone.
#[test]
fn a_restoration_over_an_orphan() {
    let sandbox = sandbox();
    let (mut keeper, mut other) = (connect(&sandbox), connect(&sandbox));
    if !committed_if_supported(&mut keeper, |tx| fill(tx, "orphan", PERSISTENT)) {
        return;
    }
    committed(&mut other, |tx| fill(tx, "free", TableFlags::empty()));
    drop(keeper);
    eventually(|| owner(&mut other, "orphan").is_none());
    let snapshot = other.snapshot(Scope::all()).unwrap();
    let bare = |snapshot: &Snapshot| {
        let text = snapshot.to_string();
        let lines = text.lines().filter(|line| line.starts_with(' '));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        let restored = snapshot.restore(&mut other).unwrap();
        assert_eq!(
            (restored.owned_by_others, restored.no_longer_owned),
            (vec![], vec![])
        );
        assert_eq!((restored.added, restored.removed), (vec![], vec![]));
        let now = other.snapshot(Scope::all()).unwrap();
        assert_eq!(names(&now), names(&snapshot));
        assert_eq!(bare(&now), bare(&snapshot));
        // It stays an orphan, free for adoption.
        assert_eq!(owner(&mut other, "orphan"), None);
        assert_eq!(flags(&mut other, "orphan"), TableFlags::PERSIST);
    }
}

/// In one call: a new table, one whose owner is gone, and tables that cannot be owned; with the fake kernel as with the
/// kernel.
#[test]
fn a_table_is_owned_with_its_content() {
    let sandbox = sandbox();
    let fake = FakeKernel::new();
    let on_kernel = || connect(&sandbox);
    let on_fake = || fake.connect().unwrap();
    // Whether the kernel supports such tables is determined elsewhere; the fake kernel supports all of them.
    let mut elsewhere = connect(&crate::common::sandbox());
    let known = committed_if_supported(&mut elsewhere, |tx| fill(tx, "t", PERSISTENT));
    let connects: [(&dyn Fn() -> Connection, bool); 2] = [(&on_kernel, known), (&on_fake, true)];
    for (connect, known) in connects {
        let (mut first, mut other) = (connect(), connect());
        let owned = first.own(IP, "t").unwrap();
        committed(&mut first, |tx| {
            tx.add(&Chain::new(IP, "t", "c")).unwrap();
            tx.add(&Rule::new(IP, "t", "c")).unwrap();
        });
        let before = content(&mut other, "t");
        if !known {
            assert_eq!(owned, Ownership::Shared);
            assert_eq!(other.own(IP, "t").unwrap(), Ownership::Shared);
            assert_eq!(content(&mut other, "t"), before);
            continue;
        }
        assert_eq!(owned, Ownership::Owned);
        assert_eq!(
            first.own(IP, "t").unwrap(),
            Ownership::Owned,
            "a second call should succeed"
        );
        let Err(Error::Commit(error)) = other.own(IP, "t") else {
            panic!("a table with another owner should be refused");
        };
        assert_eq!(error.failures[0].errno.number(), libc::EPERM);
        assert_eq!(content(&mut other, "t"), before);

        let of_chain = |nft: &mut Connection| {
            let chain = nft.chain(IP, "t", "c").unwrap().unwrap();
            (chain.handle(), chain.references())
        };
        let chain = of_chain(&mut first);
        drop(first);
        eventually(|| owner(&mut other, "t").is_none());
        assert_eq!(other.own(IP, "t").unwrap(), Ownership::Owned);
        assert_eq!(
            of_chain(&mut other),
            chain,
            "the adopted chain should be unchanged"
        );
        let mut rival = connect();
        not_permitted(&mut rival, |tx| {
            _ = tx.delete(&Table::new(IP, "t")).unwrap()
        });

        // A table that another program created without an owner.
        committed(&mut rival, |tx| fill(tx, "plain", TableFlags::empty()));
        let before = content(&mut rival, "plain");
        assert_eq!(other.own(IP, "plain").unwrap(), Ownership::Shared);
        assert_eq!(content(&mut rival, "plain"), before);
    }
}

/// A dormant table whose owner is gone stays dormant when it is adopted.
#[test]
fn a_dormant_table_stays_dormant_when_adopted() {
    let sandbox = sandbox();
    let mut first = connect(&sandbox);
    let asleep = PERSISTENT | TableFlags::DORMANT;
    if !committed_if_supported(&mut first, |tx| fill(tx, "t", asleep)) {
        return;
    }
    drop(first);
    let mut other = connect(&sandbox);
    eventually(|| owner(&mut other, "t").is_none());
    assert_eq!(other.own(IP, "t").unwrap(), Ownership::Owned);
    assert_eq!(flags(&mut other, "t"), asleep);
}

/// An owned table without `persist` stays without it, and the result reports that.
#[test]
fn a_table_without_persist_is_reported() {
    let sandbox = sandbox();
    let mut first = connect(&sandbox);
    if !committed_if_supported(&mut first, |tx| fill(tx, "t", TableFlags::OWNER)) {
        return;
    }
    let before = content(&mut first, "t");
    assert_eq!(first.own(IP, "t").unwrap(), Ownership::OwnedUntilClose);
    assert_eq!(content(&mut first, "t"), before);
    let mut other = connect(&sandbox);
    assert!(
        other.own(IP, "t").is_err(),
        "a table with another owner should be refused"
    );
    drop(first);
    eventually(|| other.table(IP, "t").unwrap().is_none());
}
