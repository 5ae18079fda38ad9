//! Snapshots contain the existing ruleset, and restoring one gives the same ruleset. The rulesets are those in
//! `rulesets/`, and those of real clients in `data/`; the oracle is `nft`.

use std::collections::BTreeMap;

use crate::common::rulesets::{
    Listing, Ruleset, data, diff_listings, listing, listing_in, wait_for_collection,
};
use crate::common::tools::Tools;
use crate::common::{connect, report, sandbox};
use bstr::BString;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{
    DataType, DiffOptions, Family, Generation, List, ObjectData, Refreshed, Scope, Set, Snapshot,
    StatefulObject, Table, Transaction,
};
use chainwright_testing::Sandbox;

/// Saves a ruleset to a file, flushes it, and restores it.
fn round_trip(sandbox: &Sandbox, any_order: bool) -> Result<(), String> {
    round_trip_but(sandbox, any_order, false)
}

/// Removes elements that count connections: the kernel collects those that count none, within a second or at any
/// other time.
fn without_counting(listing: &Listing) -> Listing {
    let kept = |line: &&str| {
        let mut words = line.split([' ', ',', '\t']);
        !(line.starts_with("\telement") || words.any(|word| word == "count"))
    };
    let of = |text: &str| text.lines().filter(kept).collect::<Vec<_>>().join("\n");
    Listing {
        text: of(&listing.text),
        bytecode: of(&listing.bytecode),
    }
}

/// Like [`round_trip`]; if `collected`, elements that count connections may disappear meanwhile.
fn round_trip_but(sandbox: &Sandbox, any_order: bool, collected: bool) -> Result<(), String> {
    let same = |before: &Listing, after: &Listing| match diff_listings(before, after) {
        Err(_) if collected => {
            println!("the listings differ: compare them without elements that count connections");
            crate::common::rulesets::diff_listings(
                &without_counting(before),
                &without_counting(after),
            )
        }
        other => other,
    };
    let mut nft = connect(sandbox);
    let listing = |sandbox| listing_in(sandbox, any_order);
    let before = listing(sandbox);
    let snapshot = nft.snapshot(Scope::all()).map_err(|error| report(&error))?;
    let directory = tempfile::tempdir().expect("cannot create a directory");
    let path = directory.path().join("backup");
    snapshot.save(&path).map_err(|error| report(&error))?;

    let mut tx = Transaction::new();
    tx.flush_ruleset(Family::UNSPEC).unwrap();
    nft.commit(&tx).map_err(|error| report(&error))?;
    assert_eq!(nft.snapshot(Scope::all()).unwrap().tables().len(), 0);
    let loaded = Snapshot::load(&path).map_err(|error| report(&error))?;
    let number = |snapshot: &Snapshot| snapshot.generation().map(Generation::number);
    assert_eq!(number(&loaded), number(&snapshot));
    assert_eq!(loaded.byte_length(), snapshot.byte_length());
    let restored = loaded.restore(&mut nft).map_err(|error| report(&error))?;
    let mut all: Vec<_> = loaded
        .tables()
        .map(|table| (table.table().family(), table.table().name().to_owned()))
        .collect();
    all.sort();
    let nothing: Vec<(Family, BString)> = Vec::new();
    assert_eq!((&restored.added, &restored.replaced), (&all, &nothing));
    assert_eq!(
        (&restored.removed, &restored.owned_by_others),
        (&nothing, &nothing)
    );
    same(&before, &listing(sandbox))?;

    // Over the existing ruleset.
    let restored = loaded.restore(&mut nft).map_err(|error| report(&error))?;
    assert_eq!((&restored.added, &restored.replaced), (&nothing, &all));
    assert_eq!(
        (&restored.removed, &restored.owned_by_others),
        (&nothing, &nothing)
    );
    same(&before, &listing(sandbox))?;
    Ok(())
}

#[test]
fn every_ruleset_is_restored_unchanged() {
    let rulesets = Ruleset::all();
    assert!(rulesets.len() >= 40, "{}", rulesets.len());
    let mut failures = BTreeMap::new();
    for ruleset in &rulesets {
        let sandbox = match ruleset.try_load() {
            Ok(Some(sandbox)) => sandbox,
            Ok(None) => continue,
            Err(refusal) => {
                failures.insert(&ruleset.name, refusal);
                continue;
            }
        };
        let any_order = ruleset
            .header("volatile")
            .any(|what| what == "element-order");
        let collected = ruleset
            .header("volatile")
            .any(|what| what == "counted-connections");
        if let Err(failure) = round_trip_but(&sandbox, any_order, collected) {
            failures.insert(&ruleset.name, failure);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The unchanged bytecode that `nft` prints for a ruleset.
fn bytecode(sandbox: &Sandbox) -> String {
    let both = Tools::new(sandbox).run("nft --debug=netlink list ruleset");
    match both.find("\ntable ") {
        Some(end) if !both.starts_with("table ") => both[..=end].to_owned(),
        _ => String::new(),
    }
}

#[track_caller]
fn assert_bytecode(name: &str, sandbox: &Sandbox) {
    let chainwright = connect(sandbox).snapshot(Scope::all()).unwrap().to_string();
    let real = bytecode(sandbox);
    // A hash table may be rebuilt in between, and then has another order.
    let in_order = |text: &str| {
        let mut lines: Vec<_> = text.lines().collect();
        for set in lines.chunk_by_mut(|one, other| one.starts_with('\t') && other.starts_with('\t'))
        {
            if set[0].starts_with('\t') {
                set.sort_unstable();
            }
        }
        lines.join("\n")
    };
    let (chainwright, real) = (in_order(&chainwright), in_order(&real));
    if chainwright != real {
        let mut lines = chainwright.lines().zip(real.lines());
        let differs = lines.find(|(chainwright, real)| chainwright != real);
        panic!("{name}: {differs:#?}\n{chainwright}\n-----\n{real}");
    }
}

#[test]
fn bytecode_matches_nft() {
    for ruleset in Ruleset::all() {
        if let Some(sandbox) = ruleset.load() {
            assert_bytecode(&ruleset.name, &sandbox);
        }
    }
    for name in [
        "kube-proxy-1.20-300-services.save",
        "kube-proxy-1.20-4-services.save",
    ] {
        let sandbox = sandbox();
        Tools::new(&sandbox).load_iptables_nft(&data(name));
        assert_bytecode(name, &sandbox);
    }
    let sandbox = sandbox();
    Tools::new(&sandbox).load_nft(include_str!("../data/kube-proxy-1.36-nftables.nft"));
    assert_bytecode("kube-proxy-1.36-nftables.nft", &sandbox);
}

#[test]
fn client_rulesets_are_restored_unchanged() {
    for name in [
        "kube-proxy-1.20-300-services.save",
        "kube-proxy-1.20-4-services.save",
    ] {
        let sandbox = sandbox();
        Tools::new(&sandbox).load_iptables_nft(&data(name));
        round_trip(&sandbox, false).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
    let sandbox = sandbox();
    Tools::new(&sandbox).load_nft(include_str!("../data/kube-proxy-1.36-nftables.nft"));
    round_trip(&sandbox, false).unwrap();
}

#[test]
fn a_single_table_can_be_saved() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table ip a { chain c { counter jump d; }; chain d { accept; }; }
         table ip b { chain c { drop; }; }
         table ip6 a { chain c { accept; }; }",
    );
    let mut nft = connect(&sandbox);
    let snapshot = nft.snapshot(Scope::table(Family::IP, "a")).unwrap();
    assert_eq!(snapshot.tables().len(), 1);
    let chain = snapshot.chain(Family::IP, "a", "c").unwrap();
    assert_eq!(chain.rules().len(), 1);
    assert!(snapshot.chain(Family::IP, "b", "c").is_none());
    assert!(snapshot.chain(Family::IP6, "a", "c").is_none());
    assert!(snapshot.chain(Family::IP, "a", "x").is_none());

    let before = listing(&sandbox);
    tools.run("nft flush chain ip a c");
    tools.run("nft add rule ip b c counter");
    snapshot.restore(&mut nft).unwrap();
    let after = tools.run("nft list ruleset");
    assert!(after.contains("jump d") && after.contains("counter packets 0 bytes 0"));
    // The others are unchanged.
    tools.run("nft flush chain ip b c");
    tools.run("nft add rule ip b c drop");
    let sorted = |listing: &Listing| {
        let mut blocks: Vec<_> = listing.text.split("\n}\n").map(str::to_owned).collect();
        blocks.sort();
        blocks
    };
    assert_eq!(sorted(&listing(&sandbox)), sorted(&before));
}

#[test]
fn differences_are_listed_per_object() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        r#"
table ip t {
    counter hits { packets 3 bytes 40 }
    set s { type ipv4_addr; elements = { 10.0.0.1, 10.0.0.2 } }
    chain input { type filter hook input priority 0; policy accept; counter packets 1 bytes 2; ip saddr @s drop; }
    chain c { accept; tcp dport 1 accept; tcp dport 2 accept; tcp dport 3 accept; }
    chain gone { }
}
table ip6 old { chain x { drop; }; }"#,
    );
    let mut nft = connect(&sandbox);
    let old = nft.snapshot(Scope::all()).unwrap();
    let options = DiffOptions::default();
    assert!(old.diff(&old, options).unwrap().is_empty());
    // Counters are no difference, unless requested.
    tools.run("nft reset counters");
    let reset = nft.snapshot(Scope::all()).unwrap();
    assert!(old.diff(&reset, options).unwrap().is_empty());
    let mut counters = DiffOptions::default();
    counters.counters = true;
    assert_eq!(
        old.diff(&reset, counters)
            .unwrap()
            .to_string()
            .lines()
            .count(),
        2,
        "{}",
        old.diff(&reset, counters).unwrap()
    );

    tools.run_with(
        "nft -f -",
        r#"
delete table ip6 old
add table inet new { comment "fresh"; }
delete chain ip t gone
add chain ip t input { policy drop; }
delete element ip t s { 10.0.0.1 }
add element ip t s { 10.0.0.3 comment "three" }
insert rule ip t c position 999999"#
            .lines()
            .filter(|line| !line.contains("999999"))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .as_str(),
    );
    let handle = |port: &str| {
        let listing = tools.run("nft -a list chain ip t c");
        let line = listing
            .lines()
            .find(|line| line.contains(port))
            .expect("no line for the object");
        line.rsplit(' ').next().expect("no handle").to_owned()
    };
    tools.run(&format!(
        "nft delete rule ip t c handle {}",
        handle("dport 1")
    ));
    tools.run(&format!(
        "nft replace rule ip t c handle {} tcp dport 22 accept",
        handle("dport 2")
    ));
    let new = nft.snapshot(Scope::all()).unwrap();
    let diff = old.diff(&new, options).unwrap();
    let text = diff.to_string();
    let expected = [
        "- element ip t s: 0100000a  : 0 [end]",
        "+ element ip t s: 0300000a  : 0 [end]  userdata = { \\x00\\x06three\\x00 }",
        "- chain ip t input: type filter hook input priority 0 policy accept",
        "+ chain ip t input: type filter hook input priority 0 policy drop",
        "- chain ip t gone",
        "- table ip6 old",
        "- chain ip6 old x",
        "- rule ip6 old x: [ immediate reg 0 drop ]",
        "+ table inet new:  comment \"fresh\"",
    ];
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("rule ip t c"))
        .collect();
    assert_eq!(lines, expected, "{text}");
    let rules: Vec<_> = text
        .lines()
        .filter(|line| line.contains("rule ip t c"))
        .collect();
    assert_eq!(rules.len(), 3, "{text}");
    assert!(
        rules
            .iter()
            .all(|line| line.contains("[ payload load 2b @ transport header + 2 => reg 1 ]"))
    );
    assert!(rules[0].starts_with("- rule ip t c: "));
    assert_eq!(rules.iter().filter(|line| line.starts_with('+')).count(), 1);

    // In the other direction every line has the other sign.
    let back = new.diff(&old, options).unwrap();
    assert_eq!(back.changes.len(), diff.changes.len());
    old.restore(&mut nft).unwrap();
    assert!(
        old.diff(&nft.snapshot(Scope::all()).unwrap(), options)
            .unwrap()
            .is_empty()
    );
}

/// Even if tables and sets are compared by the entries of their user data.
#[test]
fn bytes_after_the_entries_of_user_data_are_compared() {
    let with = |rest: &[u8]| {
        let userdata = [&[9, 0][..], rest].concat();
        let mut tx = Transaction::new();
        let (mut table, mut set) = (
            Table::new(Family::IP, "t"),
            Set::new(Family::IP, "t", "s", DataType::INET_SERVICE, 2),
        );
        table.userdata = Some(userdata.clone().into());
        set.userdata = Some(userdata.into());
        tx.add(&table).unwrap().add(&set).unwrap();
        let mut nft = connect(&sandbox());
        nft.commit(&tx).unwrap();
        nft.snapshot(Scope::all()).unwrap()
    };
    let differences = |one: &[u8], other: &[u8]| {
        let diff = with(one).diff(&with(other), DiffOptions::default());
        diff.unwrap().changes.len()
    };
    assert_eq!(differences(b"", b""), 0);
    assert_eq!(differences(b"\x01", b"\x01"), 0);
    for (one, other) in [
        (&b""[..], &b"\x01"[..]),
        (b"\x01", b"\x02"),
        (b"\x01\x05a", b"\x01\x05b"),
    ] {
        assert_eq!(
            differences(one, other),
            differences(b"", b"\x03\0"),
            "{one:?} {other:?}"
        );
    }
    assert!(differences(b"", b"\x03\0") >= 2);
}

#[test]
fn a_ruleset_does_not_differ_from_what_was_written_back() {
    for ruleset in Ruleset::all() {
        let Some(sandbox) = ruleset.load() else {
            continue;
        };
        wait_for_collection(&ruleset, &sandbox);
        let mut nft = connect(&sandbox);
        let before = nft.snapshot(Scope::all()).unwrap();
        before.restore(&mut nft).unwrap();
        let after = nft.snapshot(Scope::all()).unwrap();
        let mut options = DiffOptions::default();
        options.counters = true;
        let diff = before.diff(&after, options).unwrap();
        assert!(diff.is_empty(), "{}:\n{diff}", ruleset.name);
    }
}

#[test]
fn a_kept_snapshot_is_reread_after_a_change() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let mut nft = connect(&sandbox);
    let mut kept = nft.snapshot(Scope::family(Family::IP)).unwrap();
    assert_eq!(kept.tables().len(), 0);
    assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::SameGeneration);
    tools.run_with("nft -f -", "table ip t { chain c { accept; }; }");
    assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::Reread);
    assert_eq!(kept.chain(Family::IP, "t", "c").unwrap().rules().len(), 1);
    // A change in another family changes the generation, but nothing here.
    tools.run("nft add table ip6 t");
    assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::Reread);
    assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::SameGeneration);
    assert_eq!(kept.tables().len(), 1);
    // Smaller and larger ones, in the same memory.
    for round in 1..4 {
        let rules = "counter packets 1 bytes 2 accept; ".repeat(round * 250);
        let text = format!("flush chain ip t c; table ip t {{ chain c {{ {rules}; }}; }}");
        tools.run_with("nft -f -", &text);
        assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::Reread);
        assert_eq!(
            kept.to_string(),
            nft.snapshot(Scope::family(Family::IP)).unwrap().to_string()
        );
        tools.run("nft flush chain ip t c");
        assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::Reread);
        assert_eq!(kept.chain(Family::IP, "t", "c").unwrap().rules().len(), 0);
    }
    // Another namespace's generations are unrelated.
    let elsewhere = crate::common::sandbox();
    let mut other = connect(&elsewhere);
    assert_eq!(kept.refresh(&mut other).unwrap(), Refreshed::Reread);
    assert_eq!(kept.tables().len(), 0);
}

/// Resets of counters and elements that rules add are no commits: the generation stays the same although something
/// changed, and reading again shows it.
#[test]
fn changes_without_a_generation_are_visible_after_a_reload() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("ip link set lo up");
    tools.run_with(
        "nft -f -",
        "table ip t {
            counter hits { packets 3 bytes 40; }
            set seen { type inet_service; size 16; flags dynamic; }
            chain out {
                type filter hook output priority 0;
                add @seen { udp dport }
            }
        }",
    );
    let mut nft = connect(&sandbox);
    let mut kept = nft.snapshot(Scope::all()).unwrap();
    let mut objects = List::<StatefulObject<'_>>::new(Scope::table(Family::IP, "t"));
    assert_eq!(objects.refresh(&mut nft).unwrap(), Refreshed::Reread);
    let packets = |objects: &List<StatefulObject<'_>>| {
        let counter = objects.iter().next().unwrap().data();
        match counter {
            Some(ObjectData::Counter(counter)) => counter.packets,
            other => panic!("{other:?}"),
        }
    };
    let seen = |snapshot: &Snapshot| {
        let hits = snapshot.table(Family::IP, "t").unwrap();
        let elements = hits.set("seen").unwrap().elements().count();
        let counter = hits.object(ObjectType::COUNTER, "hits").unwrap().data();
        let Some(ObjectData::Counter(counter)) = counter else {
            panic!("not a counter");
        };
        (counter.packets, elements)
    };
    assert_eq!(seen(&kept), (Some(3), 0));
    assert_eq!(packets(&objects), Some(3));

    tools.run("nft reset counters");
    sandbox
        .run(|| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(b"x", "127.0.0.1:1234").unwrap();
        })
        .unwrap();

    assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::SameGeneration);
    assert_eq!(seen(&kept), (Some(3), 0));
    kept.reread(&mut nft).unwrap();
    assert_eq!(seen(&kept), (Some(0), 1));
    assert_eq!(kept.refresh(&mut nft).unwrap(), Refreshed::SameGeneration);

    assert_eq!(
        objects.refresh(&mut nft).unwrap(),
        Refreshed::SameGeneration
    );
    assert_eq!(packets(&objects), Some(3));
    objects.reread(&mut nft).unwrap();
    assert_eq!(packets(&objects), Some(0));
    assert_eq!(objects.generation(), Some(nft.generation().unwrap()));
}

/// The kernel lists the end of a range whose start has timed out, and does not accept such an end; elements that
/// have timed out but were not collected yet still count as references to chains.
#[test]
fn expiring_elements_do_not_interfere() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table ip t {
            map m {
                type ipv4_addr : verdict
                flags interval,timeout
                elements = { 1.0.0.0/8 timeout 1s : jump a, 2.0.0.0/8 timeout 1s : jump a,
                    3.0.0.0/8 timeout 1s : jump b, 9.0.0.0/8 : jump a }
            }
            map p {
                type ipv4_addr . inet_service : verdict
                flags interval,timeout
                elements = { 1.0.0.0/8 . 1-5 timeout 1s : jump a, 2.0.0.0/8 . 7 : jump b }
            }
            map h {
                type ipv4_addr : verdict
                flags timeout
                elements = { 1.0.0.0 timeout 1s : jump a, 3.0.0.0 : jump b }
            }
            chain a { accept; }
            chain b { accept; }
            chain c { ip saddr vmap @m; }
        }",
    );
    let mut nft = connect(&sandbox);
    let all = nft.snapshot(Scope::all()).unwrap();
    let elements = |snapshot: &Snapshot, set: &str| {
        let table = snapshot.table(Family::IP, "t").unwrap();
        table.set(set).unwrap().elements().count()
    };
    assert_eq!(elements(&all, "h"), 2);
    let rest = loop {
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let left = ["p", "h"].map(|set| elements(&snapshot, set));
        if left == [1, 1] && elements(&snapshot, "m") < elements(&all, "m") - 2 {
            break snapshot;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    // From the rest, and from the earlier snapshot, in which the elements had remaining time.
    for snapshot in [&rest, &all] {
        snapshot.restore(&mut nft).unwrap();
        let listing = tools.run("nft list map ip t m");
        assert!(listing.contains("9.0.0.0/8 : jump a"), "{listing}");
        assert_eq!(
            listing.contains("1.0.0.0/8"),
            std::ptr::eq(snapshot, &all),
            "{listing}"
        );
    }
}
