//! Mistakes of new users: each error names the one reason and the way out, in `Display` and in what `unwrap` prints.

use crate::common::{committed, connect, sandbox};
use chainwright::Error;
use chainwright::nft::expr::{
    Counter, Dynset, FlowOffload, Immediate, Limit, Lookup, Masq, Nat, NatType, ObjectType, Objref,
    Payload, PayloadBase, Redir, Register, Reject, Tproxy, Verdict,
};
use chainwright::nft::{
    Chain, Connection, DataType, Devices, Element, Family, Flowtable, Hook, Milliseconds, Policy,
    Priority, Rule, Set, SetId, StatefulObject, Table, TableFlags, Transaction,
};

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

/// What is there before each mistake.
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
fn refused_operations_name_the_reason_and_the_way_out() {
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
        "X": |tx| tx.add(&Chain::new(IP, "nix", "c"));
        "X": |tx| tx.add(&Chain::new(Family::INET, "t", "c"));
        "X": |tx| tx.add(&rule("tow").with(&Immediate::accept()));
        "X": |tx| tx.add(&jump("one", "tow"));
        "X": |tx| tx.add(&jump("one", "pre"));
        "X": |tx| tx.add(&by_source("one").with(&Lookup::set(R1, "client")));
        "X": |tx| tx.add(&rule("one").with(&Objref::named(ObjectType::COUNTER, "packet")));
        "X": |tx| tx.add(&rule("one").with(&FlowOffload::new("fast")));
        "X": |tx| tx.add(&by_source("in").with(&nat(NatType::DNAT)));
        "X": |tx| tx.add(&by_source("pre").with(&nat(NatType::SNAT)));
        "X": |tx| tx.add(&rule("pre").with(&Masq::default()));
        "X": |tx| tx.add(&rule("post").with(&Redir::default()));
        "X": |tx| tx.add(&rule("one").with(&Redir::default()));
        "X": |tx| tx.add(&rule("late").with(&Reject::tcp_reset()));
        "X": |tx| tx.add(&by_source("in").with(&Tproxy::to_port(IP, R1)));
        "X": |tx| tx.add(&jump("in", "translate"));
        "X": |tx| tx.add(&jump("two", "one"));
        "X": |tx| {
            let names: Vec<_> = (0..17).map(|number| format!("deep{number}")).collect();
            for name in &names {
                tx.add(&Chain::new(IP, "t", name.as_str()))?;
            }
            for pair in names.windows(2) {
                tx.add(&Rule::new(IP, "t", pair[0].as_str()).with(&Immediate::jump(pair[1].as_str())))?;
            }
            tx.add(&rule("in").with(&Immediate::jump("deep0")))
        };
        "X": |tx| tx.add(&Chain::new(IP, "t", "c").with_hook("nat", Hook::FORWARD, 0));
        "X": |tx| tx.add(&Chain::new(IP, "t", "c").with_hook("nat", Hook::PREROUTING, -300));
        "X": |tx| tx.add(&Chain::new(IP, "t", "c").with_hook("fliter", Hook::INPUT, 0));
        "X": |tx| {
            tx.add(&Table::new(Family::BRIDGE, "b"))?;
            tx.add(&Chain::new(Family::BRIDGE, "b", "c").with_hook("nat", Hook::PREROUTING, 0))
        };
        "X": |tx| {
            tx.add(&Table::new(Family::BRIDGE, "b"))?;
            tx.add(&Chain::new(Family::BRIDGE, "b", "c"))?;
            tx.add(&Rule::new(Family::BRIDGE, "b", "c").with(&Masq::default()))
        };
        "X": |tx| tx.add(&Chain::new(IP, "t", "in").with_hook("filter", Hook::INPUT, 10));
        "X": |tx| tx.add(&Chain::new(IP, "t", "in").with_hook("filter", Hook::FORWARD, 0));
        "X": |tx| tx.add(&Chain::new(IP, "t", "pre").with_hook("filter", Hook::PREROUTING, -100));
        "X": |tx| tx.add(&Chain::new(IP, "t", "one").with_hook("filter", Hook::INPUT, 0));
        "X": |tx| tx.add(&Chain::new(IP, "t", "c").with_policy(Policy::DROP));
        "X": |tx| tx.create(&Chain::new(IP, "t", "in"));
        "X": |tx| tx.create(&Table::new(IP, "t"));
        "X": |tx| tx.create(&set("clients"));
        "X": |tx| tx.add(&Set::new(IP, "t", "clients", DataType::IPV6_ADDR, 16));
        "X": |tx| tx.add(&set("clients").with_interval());
        "X": |tx| tx.add(&Set::new(IP, "t", "wide", DataType::STRING, 65));
        "X": |tx| tx.add_elements(&set_id("clients"), [Element::new(&[0; 16])]);
        "X": |tx| tx.add_elements(&set_id("clients"), [Element::new(&[1; 4]).with_data(&[1; 4])]);
        "X": |tx| tx.add_elements(&set_id("marks"), [Element::new(&[1; 4])]);
        "X": |tx| tx.add_elements(&set_id("marks"), [Element::new(&[1; 4]).with_data(&[1; 2])]);
        "X": |tx| tx.add_elements(&set_id("clients"), [Element::new(&[1; 4]).with_timeout(std::time::Duration::from_secs(1))]);
        "X": |tx| tx.add_elements(&set_id("clients"), &Element::interval(&[1; 4], &[2; 4]));
        "X": |tx| tx.add_elements(&set_id("ranges"), &Element::interval(&[10, 1, 0, 0], &[10, 2, 0, 0]));
        "X": |tx| tx.create_elements(&set_id("clients"), [Element::new(&TEN)]);
        "X": |tx| tx.add_elements(&set_id("marks"), [Element::new(&TEN).with_data(&[2; 4])]);
        "X": |tx| tx.add_elements(&set_id("one-only"), [Element::new(&[1; 4])]);
        "X": |tx| tx.add_elements(&set_id("client"), [Element::new(&[1; 4])]);
        "X": |tx| tx.delete_elements(&set_id("clients"), [Element::new(&[1; 4])]);
        "X": |tx| tx.add_elements(&set_id("verdicts"), [Element::new(&[1; 4]).with_verdict(Verdict::Jump("tow".into()))]);
        "X": |tx| tx.add_elements(&set_id("verdicts"), [Element::new(&[1; 4]).with_verdict(Verdict::Jump("in".into()))]);
        "X": |tx| tx.delete(&Chain::new(IP, "t", "two"));
        "X": |tx| tx.delete(&set("clients"));
        "X": |tx| tx.delete(&StatefulObject::named(IP, "t", ObjectType::COUNTER, "packets"));
        "X": |tx| tx.delete(&Chain::new(IP, "t", "tow"));
        "X": |tx| tx.add(&rule("one").with(&Limit::packets(0, 1, 5)));
        "X": |tx| tx.add(&by_source("one").with(&Lookup::map(R1, "clients", Register::VERDICT)));
        "X": |tx| tx.add(&by_source("one").with(&Dynset::add("clients", R1)));
        "X": |tx| tx.add(&by_source("one").with(&Dynset { timeout: Some(Milliseconds(1000)), ..Dynset::add("clients", R1) }));
        "X": |tx| tx.add(&Set::anonymous(IP, "t", "__set%d", 7, DataType::IPV4_ADDR, 4));
        "X": |tx| {
            tx.add(&Table::new(Family::BRIDGE, "b"))?;
            tx.add(&Flowtable::new(Family::BRIDGE, "b", "f", 0, Devices::new(["lo"])))
        };
        "X": |tx| {
            tx.add(&Table::new(Family::NETDEV, "n"))?;
            tx.add(&Chain::new(Family::NETDEV, "n", "c").with_hook("filter", Hook::INGRESS, 0))
        };
        "X": |tx| tx.add(&Table { flags: Some(TableFlags::OWNER), ..Table::new(IP, "t") });
        "X": |tx| tx.add(&Chain::new(IP, "owned", "c"));
    }
    .into();
    let before = nft.generation().unwrap();
    for (number, (mistake, reason)) in mistakes.iter().enumerate() {
        let mut tx = Transaction::new();
        mistake(&mut tx).unwrap();
        match nft.commit(&tx) {
            Ok(()) => println!("#{number} ACCEPTED"),
            Err(error) => println!("#{number} {error}"),
        }
        let _ = reason;
    }
    let _ = (before, owned);
}
