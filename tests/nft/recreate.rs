//! Objects that a plan deletes and recreates in one transaction because the kernel cannot change them, and objects
//! that are removed and added together with them: each alone, in both directions, because kernels accept different
//! changes. The oracle is `nft`.

use crate::common::tools::Tools;
use crate::common::{connect, kernel, report, sandbox};
use chainwright::nft::{Connection, PlanOptions, Scope, Snapshot};
use chainwright_testing::Sandbox;

/// A ruleset in two forms, with their common part in place of `…`.
struct Case {
    what: &'static str,
    common: &'static str,
    forms: [&'static str; 2],
    /// The objects that the plan to the second form recreates.
    replaced: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        what: "a chain that elements, anonymous maps and rules jump to",
        common: "map v { type ipv4_addr : verdict; elements = { 192.0.2.7 : jump leaf, 192.0.2.8 : goto leaf }; }
            chain a { ip saddr vmap @v; ip protocol vmap { tcp : jump leaf, udp : goto leaf }; jump leaf; }",
        forms: [
            "chain leaf { accept; }; …",
            "chain leaf { comment \"other\"; accept; }; …",
        ],
        replaced: &["chain ip t leaf"],
    },
    Case {
        what: "a chain and the element that jumps to it",
        common: "chain stays { accept; }",
        forms: [
            "…; chain leaf { accept; }
             map v { type ipv4_addr : verdict; elements = { 192.0.2.7 : jump leaf, 192.0.2.8 : jump stays }; }",
            "…; map v { type ipv4_addr : verdict; elements = { 192.0.2.8 : jump stays }; }",
        ],
        replaced: &[],
    },
    Case {
        what: "a chain and the map that jumps to it",
        common: "chain stays { accept; }",
        forms: [
            "…; chain leaf { accept; }
             map v { type ipv4_addr : verdict; elements = { 192.0.2.7 : jump leaf }; }
             chain a { ip saddr vmap @v; }",
            "…",
        ],
        replaced: &[],
    },
    Case {
        what: "a chain and the anonymous map that jumps to it",
        common: "chain stays { accept; }",
        forms: [
            "…; chain leaf { accept; }; chain a { ip saddr vmap { 192.0.2.7 : jump leaf }; }",
            "…; chain a { accept; }",
        ],
        replaced: &[],
    },
    Case {
        what: "a chain and the interval that jumps to it",
        common: "chain stays { accept; }",
        forms: [
            "…; chain leaf { accept; }
             map v { type ipv4_addr : verdict; flags interval;
                elements = { 192.0.2.0/24 : jump leaf, 198.51.100.0/24 : jump stays }; }",
            "…; map v { type ipv4_addr : verdict; flags interval;
                elements = { 198.51.100.0/24 : jump stays }; }",
        ],
        replaced: &[],
    },
    Case {
        what: "an object that elements and rules name",
        common: "map o { type ipv4_addr : quota; elements = { 192.0.2.9 : \"q\" }; }
            chain a { quota name ip saddr map @o; quota name \"q\"; }",
        forms: [
            "quota q { over 100 bytes; }; …",
            "quota q { over 200 bytes; }; …",
        ],
        replaced: &["object ip t q"],
    },
    Case {
        what: "an object and the map that names it",
        common: "chain stays { accept; }",
        forms: [
            "…; counter n { packets 0 bytes 0; }
             map o { type ipv4_addr : counter; elements = { 192.0.2.9 : \"n\" }; }
             chain a { counter name ip saddr map @o; }",
            "…",
        ],
        replaced: &[],
    },
    Case {
        what: "a set of another type, with the same elements, and its rules",
        common: "chain a { ip saddr @s drop; }",
        forms: [
            "set s { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 }; }; …",
            "set s { type ipv4_addr; flags interval; elements = { 192.0.2.1, 192.0.2.2 }; }; …",
        ],
        replaced: &["set ip t s"],
    },
    Case {
        what: "the same element with another comment, timeout or value",
        common: "",
        forms: [
            "set s { type ipv4_addr; elements = { 192.0.2.1 comment \"one\", 192.0.2.2 }; }
             set p { type inet_service; elements = { 22 comment \"one\", 80 }; }
             set t { type ipv4_addr; flags timeout; elements = { 192.0.2.1 timeout 1d }; }
             map m { type ipv4_addr : ipv4_addr; elements = { 192.0.2.1 : 192.0.2.8 }; }",
            "set s { type ipv4_addr; elements = { 192.0.2.1 comment \"two\", 192.0.2.2 }; }
             set p { type inet_service; elements = { 22 comment \"two\", 80 }; }
             set t { type ipv4_addr; flags timeout; elements = { 192.0.2.1 timeout 2d }; }
             map m { type ipv4_addr : ipv4_addr; elements = { 192.0.2.1 : 192.0.2.9 }; }",
        ],
        replaced: &[],
    },
    Case {
        what: "intervals that share a start, an end or a part",
        common: "",
        forms: [
            "set s { type ipv4_addr; flags interval;
                elements = { 10.0.0.0/24, 10.0.1.0-10.0.1.9, 10.0.2.0/23, 10.0.8.0/24, 10.0.9.0/24 comment \"one\" }; }
             map m { type ipv4_addr : ipv4_addr; flags interval;
                elements = { 10.0.0.0/24 : 192.0.2.1, 10.0.1.0/24 : 192.0.2.2 }; }",
            "set s { type ipv4_addr; flags interval;
                elements = { 10.0.0.0/25, 10.0.0.255-10.0.1.9, 10.0.2.0/24, 10.0.8.0-10.0.8.7, 10.0.9.0/24 comment \"two\" }; }
             map m { type ipv4_addr : ipv4_addr; flags interval;
                elements = { 10.0.0.0/23 : 192.0.2.1 }; }",
        ],
        replaced: &[],
    },
    Case {
        what: "ranges of concatenations that overlap the deleted ones",
        common: "",
        forms: [
            "set s { type ipv4_addr . inet_service; flags interval;
                elements = { 10.0.0.0/24 . 1-99, 10.0.2.0/24 . 80 comment \"one\" }; }",
            "set s { type ipv4_addr . inet_service; flags interval;
                elements = { 10.0.0.0/25 . 1-99, 10.0.0.128/25 . 1-9, 10.0.2.0/24 . 80 comment \"two\" }; }",
        ],
        replaced: &[],
    },
    Case {
        what: "a base chain at another priority",
        common: "chain leaf { accept; }",
        forms: [
            "…; chain a { type filter hook input priority 0; jump leaf; }
                chain n { type nat hook postrouting priority 100; jump leaf; }",
            "…; chain a { type filter hook input priority 5; jump leaf; }
                chain n { type nat hook postrouting priority 110; jump leaf; }",
        ],
        replaced: &["chain ip t a", "chain ip t n"],
    },
    Case {
        what: "a set that rules add to",
        common: "chain a { update @s { ip saddr timeout 1h }; ip saddr @s drop; }",
        forms: [
            "set s { type ipv4_addr; flags dynamic,timeout; size 100; elements = { 192.0.2.1 timeout 1d }; }; …",
            "set s { type ipv4_addr; flags dynamic,timeout; size 200; elements = { 192.0.2.1 timeout 1d }; }; …",
        ],
        replaced: &["set ip t s"],
    },
];

fn exact() -> PlanOptions {
    let mut options = PlanOptions::default();
    options.remove_other_tables = true;
    options.remove_dynamic_elements = true;
    options
}

fn script(family: &str, table: &str) -> String {
    format!("table {family} t {{\n{table}\n}}\n")
}

fn load(tools: &Tools<'_>, script: &str) {
    if let Err(refusal) = tools.takes("nft -f -", script) {
        panic!("{refusal}\n{script}");
    }
}

fn snapshot(nft: &mut Connection) -> Snapshot {
    nft.snapshot(Scope::all()).unwrap()
}

/// Brings one sandbox to the state of another, and back, each time in one transaction.
#[track_caller]
fn replace_and_revert(one: &Sandbox, other: &Sandbox, what: &str, replaced: &[&str]) {
    let (mut nft, mut there) = (connect(one), connect(other));
    let (before, after) = (snapshot(&mut nft), snapshot(&mut there));
    for desired in [&after, &before, &after] {
        let generation = nft.generation().unwrap();
        let plan = nft
            .reconcile(desired, exact())
            .unwrap_or_else(|error| panic!("{what}: {}", report(&error)));
        assert!(!plan.is_empty(), "{what}");
        let names: Vec<_> = plan.replaced.iter().map(ToString::to_string).collect();
        assert_eq!(names, replaced, "{what}");
        let now = nft.generation().unwrap();
        assert_eq!(now.number(), generation.number() + 1, "{what}: {plan}");
        let left = snapshot(&mut nft).plan(desired, exact()).unwrap();
        assert!(left.is_empty(), "{what}: {left}");
    }
    // A rollback recreates no table for it either.
    let table = |nft: &mut Connection| {
        let now = snapshot(nft);
        now.tables().map(|table| table.table().handle()).next()
    };
    let handle = table(&mut nft);
    before.restore(&mut nft).unwrap();
    assert_eq!(table(&mut nft), handle, "{what}: the table was recreated");
    let left = snapshot(&mut nft).plan(&before, exact()).unwrap();
    assert!(left.is_empty(), "{what}: {left}");
}

#[test]
fn unchangeable_objects_are_recreated_in_one_transaction() {
    for case in CASES {
        let sandboxes = case.forms.map(|form| {
            let sandbox = sandbox();
            let table = form.replace('…', case.common);
            load(&Tools::new(&sandbox), &script("ip", &table));
            sandbox
        });
        replace_and_revert(&sandboxes[0], &sandboxes[1], case.what, case.replaced);
    }
}

/// Chains and flowtables of devices, whose hooks a new one can take over from a deleted one.
#[test]
fn recreated_objects_take_over_device_hooks() {
    let with = |family: &str, table: &str| {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        tools.run("ip link add d0 type veth peer name d1");
        let taken = tools.takes("nft -f -", script(family, table));
        (sandbox, taken)
    };
    let chain = |device: &str, priority| {
        let chain = format!("type filter hook ingress device {device} priority {priority}");
        let (sandbox, taken) = with("netdev", &format!("chain a {{ {chain}; accept; }}"));
        taken.unwrap();
        sandbox
    };
    for (device, priority) in [("d1", 0), ("d0", 7)] {
        let (one, other) = (chain("d0", 0), chain(device, priority));
        replace_and_revert(&one, &other, "a chain of a device", &["chain netdev t a"]);
    }
    let flowtable = |devices: &str, priority| {
        with(
            "inet",
            &format!(
                "flowtable f {{ hook ingress priority {priority}; devices = {{ {devices} }}; }}
                 chain a {{ ip protocol tcp flow add @f; }}"
            ),
        )
    };
    for (devices, priority) in [("d1", 0), ("d0, d1", 0), ("d0", 7)] {
        let ((one, taken), (other, _)) = (flowtable("d0", 0), flowtable(devices, priority));
        if let Err(refusal) = taken {
            assert!(refusal.contains("No such file or directory"), "{refusal}");
            println!("{}flowtables: not built in", kernel::LACKS);
            return;
        }
        replace_and_revert(&one, &other, "a flowtable", &["flowtable inet t f"]);
    }
}
