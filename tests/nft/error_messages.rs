//! Mistakes of new users: each error names the one reason and the way out, in `Display` and in what `unwrap` prints.

use crate::common::{committed, connect, sandbox};
use caps::{CapSet, Capability};
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{self, Iptables};
use chainwright::netns::Netns;
use chainwright::nft::build::Build;
use chainwright::nft::expr::{
    Counter, Dynset, FlowOffload, Immediate, Limit, Lookup, Masq, Nat, NatType, ObjectType, Objref,
    Payload, PayloadBase, Redir, Register, Reject, Tproxy, Verdict,
};
use chainwright::nft::{
    Chain, Connection, DataType, Devices, Element, Family, Flowtable, Hook, Milliseconds, Policy,
    Priority, Rule, Ruleset, Scope, Set, SetFlags, SetId, StatefulObject, Table, TableFlags,
    Transaction, TransactionGroups,
};
use chainwright::{Error, ErrorKind};

const IP: Family = Family::IP;
const R1: Register = Register::R1;
const TEN: [u8; 4] = [10, 0, 0, 1];

fn rule(chain: &'static str) -> Rule<'static> {
    Rule::new(IP, "t", chain)
}

fn jump(from: &'static str, to: &'static str) -> Rule<'static> {
    rule(from).with(&Immediate::jump(to))
}

/// A rule that loads the source address first.
fn by_source(chain: &'static str) -> Rule<'static> {
    rule(chain).with(&Payload::load(PayloadBase::NETWORK, 12, 4, R1))
}

fn nat(nat_type: NatType) -> Nat {
    Nat {
        nat_type: Some(nat_type),
        family: Some(IP.0.into()),
        addr_min: Some(R1),
        ..Nat::default()
    }
}

fn set(name: &'static str) -> Set<'static> {
    Set::new(IP, "t", name, DataType::IPV4_ADDR, 4)
}

fn set_id(name: &'static str) -> SetId<'static> {
    SetId::new(IP, "t", name)
}

/// Creates the objects that the operations with mistakes refer to.
fn prepare(nft: &mut Connection) {
    committed(nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        for name in ["one", "two", "translate"] {
            tx.add(&Chain::new(IP, "t", name)).unwrap();
        }
        for (name, chain_type, hook, priority) in [
            ("in", "filter", Hook::INPUT, Priority::FILTER),
            ("pre", "nat", Hook::PREROUTING, Priority::DSTNAT),
            ("post", "nat", Hook::POSTROUTING, Priority::SRCNAT),
            ("late", "filter", Hook::POSTROUTING, Priority::FILTER),
        ] {
            tx.add(&Chain::new(IP, "t", name).with_hook(chain_type, hook, priority))
                .unwrap();
        }
        tx.add(&set("clients")).unwrap();
        tx.add(&set("verdicts").with_verdicts()).unwrap();
        tx.add(&set("marks").with_data(DataType::MARK, 4)).unwrap();
        tx.add(&set("ranges").with_interval()).unwrap();
        tx.add(&set("one-only").with_size(1)).unwrap();
        let counter = StatefulObject::new(IP, "t", "packets", Counter::new(0, 0));
        tx.add(&counter).unwrap();
        let range = Element::interval(&[10, 0, 0, 0], &[11, 0, 0, 0]);
        tx.add_elements(&set_id("ranges"), &range).unwrap();
        let mark = Element::new(&TEN).with_data(&[1, 0, 0, 0]);
        tx.add_elements(&set_id("marks"), [&mark]).unwrap();
        for name in ["clients", "one-only"] {
            tx.add_elements(&set_id(name), [Element::new(&TEN)])
                .unwrap();
        }
        tx.add(&jump("in", "one")).unwrap();
        tx.add(&jump("one", "two")).unwrap();
        tx.add(&by_source("two").with(&Lookup::set(R1, "clients")))
            .unwrap();
        tx.add(&rule("two").with(&Objref::named(ObjectType::COUNTER, "packets")))
            .unwrap();
        tx.add(&rule("translate").with(&Masq::default())).unwrap();
        tx.add(&jump("post", "translate")).unwrap();
    });
}

/// An operation that the kernel refuses, and the reason and the way out.
type Refused = (fn(&mut Transaction) -> Result<(), Error>, &'static str);

macro_rules! refused {
    ($($reason:literal: |$tx:ident| $operations:expr;)*) => {
        [$((
            (|$tx| {
                $operations?;
                Ok(())
            }) as fn(&mut Transaction) -> Result<(), Error>,
            $reason,
        )),*]
    };
}

/// Checks what people read: the message, and `Debug`, that `unwrap` and `main` print.
#[track_caller]
fn explains(error: &Error, reason: &str) {
    let display = error.to_string();
    println!("{display}\n");
    assert!(display.contains(reason), "{reason}\nis not in\n{display}");
    assert_eq!(format!("{error:?}"), display);
}

#[test]
fn refused_operations_name_the_reason_and_a_remedy() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    prepare(&mut nft);
    let mut owner = connect(&sandbox);
    committed(&mut owner, |tx| {
        tx.add(&Table {
            flags: Some(TableFlags::OWNER),
            ..Table::new(IP, "owned")
        })
        .unwrap();
    });
    let owned = format!(
        "the table ip owned belongs to the process with netlink port {}: only that process can change it, until it closes its socket",
        owner.port()
    );

    let mistakes: Vec<Refused> = refused! {
        "the table ip nix does not exist; add it first, earlier in the same transaction": |tx| tx.add(&Chain::new(IP, "nix", "c"));
        "the table inet t does not exist; there is a table ip t; add it first, earlier in the same transaction": |tx| tx.add(&Chain::new(Family::INET, "t", "c"));
        "the table ip t has no chain tow; did you mean two?; add it first, earlier in the same transaction": |tx| tx.add(&rule("tow").with(&Immediate::accept()));
        "the table ip t has no chain tow; did you mean two?; add it first, earlier in the same transaction": |tx| tx.add(&jump("one", "tow"));
        "the chain pre is a nat chain at prerouting: a rule can jump only to a chain without a hook; move its rules to such a chain, and jump to that from both": |tx| tx.add(&jump("one", "pre"));
        "the table ip t has no set client; did you mean clients?; add it first, earlier in the same transaction": |tx| tx.add(&by_source("one").with(&Lookup::set(R1, "client")));
        "the table ip t has no object packet; did you mean packets?; add it first, earlier in the same transaction": |tx| tx.add(&rule("one").with(&Objref::named(ObjectType::COUNTER, "packet")));
        "the table ip t has no flowtable fast; add it first, earlier in the same transaction": |tx| tx.add(&rule("one").with(&FlowOffload::new("fast")));
        "`dnat` is allowed only in nat chains at prerouting or output, and the chain in is a filter chain at input; put the rule in such a chain": |tx| tx.add(&by_source("in").with(&nat(NatType::DNAT)));
        "`snat` is allowed only in nat chains at postrouting or input, and the chain pre is a nat chain at prerouting; put the rule in such a chain": |tx| tx.add(&by_source("pre").with(&nat(NatType::SNAT)));
        "`masquerade` is allowed only in nat chains at postrouting, and the chain pre is a nat chain at prerouting; put the rule in such a chain": |tx| tx.add(&rule("pre").with(&Masq::default()));
        "`redirect` is allowed only in nat chains at prerouting or output, and the chain post is a nat chain at postrouting; put the rule in such a chain": |tx| tx.add(&rule("post").with(&Redir::default()));
        "`redirect` is allowed only in nat chains at prerouting or output, and the chain one is reached from in, a filter chain at input; put the rule in such a chain": |tx| tx.add(&rule("one").with(&Redir::default()));
        "`reject` is allowed only in chains at prerouting, input, forward or output, and the chain late is a filter chain at postrouting; put the rule in such a chain": |tx| tx.add(&rule("late").with(&Reject::tcp_reset()));
        "`tproxy` is allowed only in chains at prerouting, and the chain in is a filter chain at input; put the rule in such a chain": |tx| tx.add(&by_source("in").with(&Tproxy::to_port(IP, R1)));
        "`masquerade` is allowed only in nat chains at postrouting, and the chain translate is reached from in, a filter chain at input; put the rule in such a chain": |tx| tx.add(&jump("in", "translate"));
        "operation #0 made the table invalid: `masquerade` is allowed only in nat chains at postrouting, and the chain in is a filter chain at input": |tx| {
            tx.add(&rule("in").with(&Masq::default()))?;
            tx.add(&rule("one").with(&Immediate::accept()))
        };
        "`masquerade` is allowed only in nat chains at postrouting, and the chain in is a filter chain at input; put the rule in such a chain": |tx| tx.add(&by_source("in").with(&Lookup::set(R1, "marks")).with(&Masq::default()));
        "`masquerade` is allowed only in nat chains at postrouting, and the chain in is a filter chain at input; put the rule in such a chain": |tx| tx.add(&by_source("in").with(&Dynset::add("clients", R1)).with(&Masq::default()));
        "rules cannot add elements to the set one-only; declare it with the flag `dynamic`": |tx| tx.add(&by_source("one").with(&Dynset::add("one-only", R1)));
        "the chain two is still in use by the rule with handle": |tx| {
            let jumps = Element::new(&[9; 4]).with_verdict(Verdict::Jump("two".into()));
            tx.add_elements(&set_id("verdicts"), [&jumps])?;
            tx.delete_elements(&set_id("verdicts"), [Element::new(&[9; 4])])?;
            tx.delete(&Chain::new(IP, "t", "two"))
        };
        "the jumps form a loop: two → one → two; remove one of these jumps, or move the shared rules to a chain of their own": |tx| tx.add(&jump("two", "one"));
        "the jumps nest deeper than the kernel allows (16): in → deep0 → deep1 → deep2 → deep3 → deep4 → deep5 → deep6 → deep7 → deep8 → deep9 → deep10 → deep11 → deep12 → deep13 → deep14 → deep15; join some of these chains": |tx| {
            let names: Vec<_> = (0..17).map(|number| format!("deep{number}")).collect();
            for name in &names {
                tx.add(&Chain::new(IP, "t", name.as_str()))?;
            }
            for pair in names.windows(2) {
                tx.add(&Rule::new(IP, "t", pair[0].as_str()).with(&Immediate::jump(pair[1].as_str())))?;
            }
            tx.add(&rule("in").with(&Immediate::jump("deep0")))
        };
        "nat chains in the family ip have the hooks prerouting, input, output or postrouting, not forward": |tx| tx.add(&Chain::new(IP, "t", "c").with_hook("nat", Hook::FORWARD, 0));
        "a nat chain must run after connection tracking, so its priority must be greater than -200, not -300; the usual ones are -100 (dstnat) and 100 (srcnat)": |tx| tx.add(&Chain::new(IP, "t", "c").with_hook("nat", Hook::PREROUTING, -300));
        "the family ip has no chains of type fliter, only filter, nat or route; did you mean filter?": |tx| tx.add(&Chain::new(IP, "t", "c").with_hook("fliter", Hook::INPUT, 0));
        "the family bridge has no chains of type nat, only filter": |tx| {
            tx.add(&Table::new(Family::BRIDGE, "b"))?;
            tx.add(&Chain::new(Family::BRIDGE, "b", "c").with_hook("nat", Hook::PREROUTING, 0))
        };
        "`masquerade` exists only in tables of the family ip, ip6 or inet, not bridge; use such a table": |tx| {
            tx.add(&Table::new(Family::BRIDGE, "b"))?;
            tx.add(&Chain::new(Family::BRIDGE, "b", "c"))?;
            tx.add(&Rule::new(Family::BRIDGE, "b", "c").with(&Masq::default()))
        };
        "the chain in exists as a filter chain at input with priority 0, and cannot become a filter chain at input with priority 10; add it as it is, or delete it first, earlier in the same transaction": |tx| tx.add(&Chain::new(IP, "t", "in").with_hook("filter", Hook::INPUT, 10));
        "the chain in exists as a filter chain at input with priority 0, and cannot become a filter chain at forward with priority 0; add it as it is, or delete it first, earlier in the same transaction": |tx| tx.add(&Chain::new(IP, "t", "in").with_hook("filter", Hook::FORWARD, 0));
        "the chain pre exists as a nat chain at prerouting with priority -100, and cannot become a filter chain at prerouting with priority -100; add it as it is, or delete it first, earlier in the same transaction": |tx| tx.add(&Chain::new(IP, "t", "pre").with_hook("filter", Hook::PREROUTING, -100));
        "the chain one exists without a hook, and cannot get one later; delete it first, earlier in the same transaction, or use another name": |tx| tx.add(&Chain::new(IP, "t", "one").with_hook("filter", Hook::INPUT, 0));
        "only base chains have a policy, and the chain c has no hook; add a hook, or leave the policy out and end the chain with a rule": |tx| tx.add(&Chain::new(IP, "t", "c").with_policy(Policy::DROP));
        "the chain in already exists; `add` accepts an existing chain": |tx| tx.create(&Chain::new(IP, "t", "in"));
        "the table ip t already exists; `add` accepts an existing table": |tx| tx.create(&Table::new(IP, "t"));
        "the set clients already exists; `add` accepts an existing set": |tx| tx.create(&set("clients"));
        "the set clients exists with keys of 4 bytes, not 16; add it as it is, or delete it first, earlier in the same transaction": |tx| tx.add(&Set::new(IP, "t", "clients", DataType::IPV6_ADDR, 16));
        "the set clients exists with the flags (none), not interval; add it as it is, or delete it first, earlier in the same transaction": |tx| tx.add(&set("clients").with_interval());
        "the keys of the set wide have 65 bytes; keys have 1 to 64 bytes": |tx| tx.add(&Set::new(IP, "t", "wide", DataType::STRING, 65));
        "the key 00000000000000000000000000000000 has 16 bytes, but the keys of clients have 4; it is a value of another type": |tx| tx.add_elements(&set_id("clients"), [Element::new(&[0; 16])]);
        "the element has data, but clients is a set, not a map; leave the data out, or declare a map": |tx| tx.add_elements(&set_id("clients"), [Element::new(&[1; 4]).with_data(&[1; 4])]);
        "marks is a map, but the element has no data; add the data that the key maps to": |tx| tx.add_elements(&set_id("marks"), [Element::new(&[1; 4])]);
        "the data has 2 bytes, but the data of marks has 4": |tx| tx.add_elements(&set_id("marks"), [Element::new(&[1; 4]).with_data(&[1; 2])]);
        "the element has a timeout, but clients lacks the flag `timeout`; declare the set with it": |tx| tx.add_elements(&set_id("clients"), [Element::new(&[1; 4]).with_timeout(std::time::Duration::from_secs(1))]);
        "the element is a range, but clients lacks the flag `interval`; declare the set with it": |tx| tx.add_elements(&set_id("clients"), Element::interval(&[1; 4], &[2; 4]));
        "the set ranges already contains a range that overlaps; delete that first, earlier in the same transaction, or use `change_ranges`, which reads the set and checks this": |tx| tx.add_elements(&set_id("ranges"), Element::interval(&[10, 1, 0, 0], &[10, 2, 0, 0]));
        "the set clients already contains the element; `add` accepts existing elements": |tx| tx.create_elements(&set_id("clients"), [Element::new(&TEN)]);
        "the map marks already contains the key with other data; delete the element first, earlier in the same transaction": |tx| tx.add_elements(&set_id("marks"), [Element::new(&TEN).with_data(&[2; 4])]);
        "the set one-only is full; delete elements first, or declare the set with a greater size": |tx| tx.add_elements(&set_id("one-only"), [Element::new(&[1; 4])]);
        "the table ip t has no set client; did you mean clients?; add it first, earlier in the same transaction": |tx| tx.add_elements(&set_id("client"), [Element::new(&[1; 4])]);
        "the set clients does not have the element; `destroy` ignores missing elements (Linux 6.3)": |tx| tx.delete_elements(&set_id("clients"), [Element::new(&[1; 4])]);
        "the table ip t has no chain tow; did you mean two?; add it first, earlier in the same transaction": |tx| tx.add_elements(&set_id("verdicts"), [Element::new(&[1; 4]).with_verdict(Verdict::Jump("tow".into()))]);
        "the chain in is a filter chain at input: an element can jump only to a chain without a hook; use such a chain": |tx| tx.add_elements(&set_id("verdicts"), [Element::new(&[1; 4]).with_verdict(Verdict::Jump("in".into()))]);
        "in the chain one; delete that first, earlier in the same transaction": |tx| tx.delete(&Chain::new(IP, "t", "two"));
        "in the chain two; delete that first, earlier in the same transaction": |tx| tx.delete(&set("clients"));
        "in the chain two; delete that first, earlier in the same transaction": |tx| tx.delete(&StatefulObject::named(IP, "t", ObjectType::COUNTER, "packets"));
        "the table ip t has no chain tow; did you mean two?; `destroy` ignores what does not exist (Linux 6.3)": |tx| tx.delete(&Chain::new(IP, "t", "tow"));
        "a limit of 0 never matches, and the kernel refuses it; use a rate of at least 1": |tx| tx.add(&rule("one").with(&Limit::packets(0, 1, 5)));
        "the rule uses clients as a map, but it is a set and has no data; declare it as a map (nft: `type … : verdict`), or match against it without a map": |tx| tx.add(&by_source("one").with(&Lookup::map(R1, "clients", Register::VERDICT)));
        "the set ranges has the flag `interval`: rules cannot add elements to it; use a set without that flag": |tx| tx.add(&by_source("one").with(&Dynset::add("ranges", R1)));
        "the rule adds elements with a timeout to the set clients, which has none; declare the set with the flag `timeout`": |tx| tx.add(&by_source("one").with(&Dynset { timeout: Some(Milliseconds(1000)), ..Dynset::add("clients", R1) }));
        "add set ip t __set%d #0: no rule of the transaction uses it; add the rule that does, or leave it out": |tx| tx.add(&Set::anonymous(IP, "t", "__set%d", 7, DataType::IPV4_ADDR, 4));
        "flowtables exist only in tables of the family ip, ip6 or inet, not bridge; use such a table": |tx| {
            tx.add(&Table::new(Family::BRIDGE, "b"))?;
            tx.add(&Flowtable::new(Family::BRIDGE, "b", "f", 0, Devices::new(["lo"])))
        };
        "the table ip t exists without an owner, and cannot get one; delete it first, earlier in the same transaction": |tx| tx.add(&Table { flags: Some(TableFlags::OWNER), ..Table::new(IP, "t") });
    }
    .into();
    assert!(mistakes.len() > 50);
    let before = nft.generation().unwrap();
    let value = Ruleset::try_from(&nft.snapshot(Scope::all()).unwrap()).unwrap();
    let mut detected = 0;
    for (mistake, reason) in &mistakes {
        let mut tx = Transaction::new();
        mistake(&mut tx).unwrap();
        // A ruleset as a value detects some of them, for the same reasons.
        if let Err(error) = value.clone().apply(&tx) {
            explains(&error.into(), reason);
            detected += 1;
        }
        match nft.commit(&tx) {
            Ok(()) => panic!("the kernel accepts this: {reason}"),
            Err(error) => explains(&error.into(), reason),
        }
        assert_eq!(nft.generation().unwrap(), before);
    }
    assert!(detected > 20, "{detected}");
    let mut tx = Transaction::new();
    tx.add(&Chain::new(IP, "owned", "c")).unwrap();
    explains(&nft.commit(&tx).unwrap_err().into(), &owned);
}

#[test]
fn each_skipped_group_gets_its_own_reason() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    prepare(&mut nft);
    let mut both_are_skipped = |groups: &TransactionGroups<&str>, reason: &str| {
        let done = nft.commit_groups(groups).unwrap();
        assert_eq!(done.skipped.len(), 2);
        for skipped in &done.skipped {
            let failure = &skipped.failures[0];
            assert_eq!(failure.operation.as_ref().unwrap().index, 1);
            assert_eq!(failure.hint.as_deref().unwrap(), reason);
        }
    };
    let mut groups = TransactionGroups::new();
    let mut tx = Transaction::new();
    tx.add(&Chain::new(IP, "t", "three")).unwrap();
    groups.add("good", tx);
    for name in ["first", "second"] {
        let mut tx = Transaction::new();
        tx.add(&Chain::new(IP, "t", name)).unwrap();
        tx.add(&jump(name, "tow")).unwrap();
        groups.add(name, tx);
    }
    both_are_skipped(
        &groups,
        "the table ip t has no chain tow; did you mean two?; add it first, earlier in the same transaction",
    );
    let mut groups = TransactionGroups::new();
    for name in ["first", "second"] {
        let mut tx = Transaction::new();
        tx.add(&Chain::new(IP, "t", name)).unwrap();
        let mut unused = set("__set%d").with_flags(SetFlags::ANONYMOUS | SetFlags::CONSTANT);
        unused.id = Some(1);
        tx.add(&unused).unwrap();
        groups.add(name, tx);
    }
    both_are_skipped(
        &groups,
        "no rule of the transaction uses it; add the rule that does, or leave it out",
    );
}

/// Mistakes that the library detects, and those outside of transactions.
#[test]
fn other_mistakes_are_explained() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    prepare(&mut nft);
    let mut tx = Transaction::new();
    let long = "x".repeat(256);
    let start = "x".repeat(32);
    let error = tx.add(&Chain::new(IP, "t", long.as_str())).unwrap_err();
    let reason =
        format!(r#"cannot add chain: the name "{start}"… is 256 bytes long (at most 255)"#);
    explains(&error.into(), &reason);
    let error = tx.add(&Chain::new(IP, "t", "a\0b")).unwrap_err();
    explains(&error.into(), "contains a NUL byte");
    let devices = Devices::new(["a-much-too-long-name"]);
    let chain = Chain::new(Family::NETDEV, "n", "c").with_hook("filter", Hook::INGRESS, 0);
    let error = tx.add(&chain.with_devices(devices)).unwrap_err();
    explains(&error.into(), "is 20 bytes long (at most 15)");

    let rule = || Build::new(IP, "t", "one");
    let error = rule().iifname("a-much-too-long-name").accept().unwrap_err();
    explains(
        &error.into(),
        "an interface name has 1 to 15 bytes and no NUL",
    );
    let error = rule().tcp_dport(22).udp_dport(53).accept().unwrap_err();
    explains(
        &error.into(),
        "can never match: the rule already matches another protocol",
    );

    // `run` works on a separate thread, whose capabilities end with it.
    let without_right = sandbox.run(|| {
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        let mut tx = Transaction::new();
        tx.add(&Table::new(IP, "u")).unwrap();
        [
            Error::from(nft.commit(&tx).unwrap_err()),
            Error::from(nft.table(IP, "t").unwrap_err()),
        ]
    });
    for error in without_right.unwrap() {
        explains(
            &error,
            "this requires CAP_NET_ADMIN in the network namespace's user namespace",
        );
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }

    let error = Netns::from_name("no-such-name").unwrap_err();
    explains(&error.into(), "`ip netns add` creates one there");

    let mut iptables = sandbox.run(Iptables::nft).unwrap().unwrap();
    let text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPTU -j ACCEPT\nCOMMIT\n";
    let error = iptables
        .restore(iptables::Family::Ipv4, text, &RestoreOptions::default())
        .unwrap_err();
    let error = Error::from(error);
    explains(
        &error,
        "line 3: chain INPTU not found in table filter (did you mean INPUT?)",
    );
    assert!(error.is_not_found());
}

#[cfg(feature = "backup")]
#[test]
fn errors_of_non_snapshot_files_are_explained() {
    use chainwright::nft::Snapshot;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.nft");
    let error = Error::from(Snapshot::load(&path).unwrap_err());
    explains(&error, "rules.nft: No such file or directory");
    assert!(error.is_not_found());
    std::fs::write(&path, "table ip t {\n}\n").unwrap();
    let error = Snapshot::load(&path).unwrap_err();
    explains(
        &error.into(),
        "rules.nft is not a chainwright backup: it lacks the signature; use a file that",
    );
}

#[test]
fn unwrap_prints_the_reason() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Chain::new(IP, "nix", "c")).unwrap();
    let refused = nft.commit(&tx);
    let is_retryable = refused.as_ref().is_err_and(|error| error.is_retryable());
    assert!(!is_retryable);
    let unwrap = std::panic::AssertUnwindSafe(|| refused.unwrap());
    let panic = std::panic::catch_unwind(unwrap).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("the table ip nix does not exist; add it first"),
        "{text}"
    );
}
