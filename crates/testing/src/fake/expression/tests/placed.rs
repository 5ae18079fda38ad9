//! Compares all kinds of base chains with expressions that depend on the hook.

use std::collections::BTreeMap;

use super::super::{Base, evaluate_list, validate};
use super::{TestTable, is_known, loaded};
use crate::Sandbox;
use chainwright::netlink::Attributes;
use chainwright::nft::expr::{
    Ct, CtKey, Dup, Expressions, Fib, FibFlags, FibResult, Fwd, Masq, Meta, MetaKey, Nat, NatType,
    Notrack, ObjectType, Objref, Osf, OsfTtl, Redir, Register, Reject, Rt, RtKey, Socket,
    SocketKey, Synproxy, SynproxyFlags, Tproxy, Tunnel, TunnelKey, TunnelMode, Xfrm, XfrmDirection,
    XfrmKey,
};
use chainwright::nft::{
    Chain, Connection, Device, Devices, Family, Priority, Rule, StatefulObject, Table, Transaction,
};

/// Returns rules with one such expression each, after the expressions that load its registers.
fn rules(family: Family) -> Vec<Expressions<'static>> {
    let mut rules = Vec::new();
    let mut add = |push: &dyn Fn(&mut Expressions<'static>)| {
        let mut list = loaded();
        push(&mut list);
        rules.push(list);
    };
    let of_family = match family {
        Family::IP6 => Family::IP6,
        _ => Family::IP,
    };
    add(&|list| _ = list.push(&Masq::default()));
    add(&|list| _ = list.push(&Redir::default()));
    for nat_type in [NatType::SNAT, NatType::DNAT] {
        add(&|list| {
            list.push(&Nat {
                nat_type: Some(nat_type),
                family: Some(of_family.0.into()),
                addr_min: Some(Register::R1),
                ..Nat::default()
            });
        });
    }
    add(&|list| _ = list.push(&Reject::tcp_reset()));
    for result in [FibResult::OIF, FibResult::OIFNAME, FibResult::ADDRTYPE] {
        for device in [FibFlags::empty(), FibFlags::IIF, FibFlags::OIF] {
            let flags = FibFlags::SADDR | device;
            add(&|list| _ = list.push(&Fib::new(flags, result, Register::R1)));
        }
    }
    for key in [
        MetaKey::SECPATH,
        MetaKey::SDIF,
        MetaKey::SDIFNAME,
        MetaKey::MARK,
    ] {
        add(&|list| _ = list.push(&Meta::load(key, Register::R1)));
    }
    add(&|list| {
        list.push(&Meta {
            key: Some(MetaKey::PKTTYPE),
            sreg: Some(Register::R1),
            ..Meta::default()
        });
    });
    for key in [
        RtKey::CLASSID,
        RtKey::NEXTHOP4,
        RtKey::NEXTHOP6,
        RtKey::TCPMSS,
        RtKey::XFRM,
    ] {
        add(&|list| _ = list.push(&Rt::load(key, Register::R1)));
    }
    add(&|list| _ = list.push(&Socket::load(SocketKey::MARK, Register::R1)));
    add(&|list| _ = list.push(&Tproxy::to_port(of_family, Register::R1)));
    add(&|list| _ = list.push(&Synproxy::new(1460, 7, SynproxyFlags::MSS)));
    add(&|list| _ = list.push(&Objref::named(ObjectType::SYNPROXY, "p")));
    add(&|list| _ = list.push(&Osf::name(OsfTtl::TRUE, Register::R1)));
    for direction in [XfrmDirection::IN, XfrmDirection::OUT] {
        add(&|list| _ = list.push(&Xfrm::load(XfrmKey::SPI, direction, 0, Register::R1)));
    }
    add(&|list| _ = list.push(&Fwd::to_device(Register::R1)));
    add(&|list| _ = list.push(&Dup::to_device(Register::R1)));
    add(&|list| _ = list.push(&Notrack::default()));
    add(&|list| _ = list.push(&Tunnel::load(TunnelKey::ID, TunnelMode::NONE, Register::R1)));
    add(&|list| {
        list.push(&Ct {
            key: Some(CtKey::MARK),
            dreg: Some(Register::R1),
            ..Ct::default()
        });
    });
    rules
}

/// Adds a base chain in its own table, with an object to refer to; `None` if the kernel has no such chain.
fn chain(
    connection: &mut Connection,
    family: Family,
    chain_type: &'static str,
    hook: u32,
) -> Option<()> {
    let mut tx = Transaction::new();
    tx.add(&Table::new(family, "t")).unwrap();
    let chain = Chain::new(family, "t", "c").with_hook(chain_type, hook, Priority(0));
    tx.add(&match (family, hook) {
        (Family::NETDEV, _) | (Family::INET, 5) => {
            let mut devices = Devices::default();
            devices.push(Device::Name("lo".into()));
            chain.with_devices(devices)
        }
        _ => chain,
    })
    .unwrap();
    let synproxy = Synproxy::new(1460, 7, SynproxyFlags::MSS);
    if matches!(family, Family::IP | Family::IP6 | Family::INET) {
        tx.add(&StatefulObject::new(family, "t", "p", synproxy))
            .unwrap();
    }
    connection.commit(&tx).ok()
}

/// Returns the differences for base chains of this family, and the number of comparisons.
fn compared(family: Family) -> (Vec<String>, usize) {
    let mut differences = Vec::new();
    let mut compared = 0;
    let types = ["filter", "nat", "route"];
    for (chain_type, hook) in types
        .iter()
        .flat_map(|of| (0..6).map(move |hook| (*of, hook)))
    {
        let base = Base {
            chain_type: chain_type.into(),
            hook,
        };
        let mut compare = |list: &Expressions<'static>, connection: &mut Connection| {
            let mut tx = Transaction::new();
            let rule = Rule {
                expressions: Some(list.clone()),
                ..Rule::new(family, "t", "c")
            };
            tx.add(&rule).unwrap();
            let committed = connection.commit(&tx);
            let kernels = committed.map_err(|error| error.failures[0].errno);
            let mut world = TestTable {
                family,
                sets: BTreeMap::new(),
            };
            let ours = evaluate_list(list.as_bytes(), &mut world).and_then(|taken| {
                let mut all = Attributes::new(&taken.listed).map_while(Result::ok);
                all.try_for_each(|one| validate(one.payload, family, base))
            });
            compared += 1;
            if ours != kernels {
                let last = list.iter().last().unwrap().unwrap().decode().unwrap();
                differences.push(format!(
                    "{family} {chain_type} {hook}: {last} kernel {kernels:?} fake kernel {ours:?}"
                ));
            }
        };
        let sandbox = Sandbox::new().unwrap();
        let worked = sandbox.run(|| {
            let mut connection = Connection::open().unwrap();
            if chain(&mut connection, family, chain_type, hook).is_none() {
                return;
            }
            let rules = rules(family);
            let known = rules
                .iter()
                .filter(|list| is_known(list.as_bytes(), family));
            known.for_each(|list| compare(list, &mut connection));
        });
        worked.unwrap();
    }
    (differences, compared)
}

#[test]
fn hooks_match_the_kernel() {
    let families = Family::WITH_TABLES;
    // In parallel: the kernel mostly waits for packets in flight.
    let (differences, numbers): (Vec<_>, Vec<_>) = std::thread::scope(|scope| {
        let threads = families.map(|family| scope.spawn(move || compared(family)));
        threads
            .map(|thread| thread.join().unwrap())
            .into_iter()
            .unzip()
    });
    let compared: usize = numbers.into_iter().sum();
    assert!(compared > 1000, "{compared}");
    let differences = differences.concat().join("\n");
    assert!(differences.is_empty(), "of {compared}:\n{differences}");
}
