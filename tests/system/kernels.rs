//! Features that only some kernels are built with: flowtables, queues, security marks, chains of devices,
//! tunnels. If a kernel supports them, they are loaded, listed, saved and restored; if not, the error reports
//! so.

use crate::common::tools::Tools;
use crate::common::{committed, connect, kernel, report, sandbox};
use bstr::ByteSlice;
use chainwright::Retry;
use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{self, Backend, Iptables};
use chainwright::legacy::LockPolicy;
use chainwright::nft::expr::{
    Counter, Decoded, FlowOffload, Immediate, ObjectType, Objref, Queue, QueueFlags, Register,
    Tunnel, TunnelKey, TunnelMode,
};
use chainwright::nft::stateful::Secmark;
use chainwright::nft::{
    Chain, Connection, Devices, Family, Flowtable, FlowtableFlags, Policy, Rule, RuleFilter, Scope,
    StatefulObject, Table, Transaction,
};

const INET: Family = Family::INET;
/// `NF_INET_FORWARD`.
const FORWARD: u32 = 2;
/// `NF_NETDEV_INGRESS`, `NF_NETDEV_EGRESS`.
const INGRESS: u32 = 0;
const EGRESS: u32 = 1;
/// `NF_INET_INGRESS`, of family inet.
const INET_INGRESS: u32 = 5;

fn transaction(fill: impl FnOnce(&mut Transaction)) -> Transaction {
    let mut tx = Transaction::new();
    fill(&mut tx);
    tx
}

/// The expressions of the only rule of a chain.
#[track_caller]
fn expressions(
    nft: &mut Connection,
    family: Family,
    table: &str,
    chain: &str,
) -> Vec<Decoded<'static>> {
    let mut found = Vec::new();
    nft.rules(RuleFilter::chain(family, table, chain))
        .unwrap()
        .for_each(|rule| {
            let list = rule.expressions().into_iter().flatten();
            found.push(
                list.map(|expression| expression.unwrap().decode().unwrap().into_owned())
                    .collect(),
            );
        })
        .unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// The ruleset is saved, flushed, and restored unchanged.
#[track_caller]
fn assert_restored(nft: &mut Connection) {
    let before = nft.snapshot(Scope::all()).unwrap();
    let text = without_handles(&before.to_string());
    for _ in 0..2 {
        before.restore(nft).unwrap();
        let now = nft.snapshot(Scope::all()).unwrap();
        assert_eq!(without_handles(&now.to_string()), text);
        nft.commit(&transaction(|tx| {
            _ = tx.flush_ruleset(Family::UNSPEC).unwrap()
        }))
        .unwrap();
    }
    before.restore(nft).unwrap();
}

/// Removes handles, at the ends of the rules' first lines, which are new in a restored ruleset, and counters:
/// unrelated packets (IPv6 neighbor discovery) are counted at any time.
fn without_handles(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("counter pkts").next().unwrap_or(line));
    let without = lines.map(|line| line.trim_end_matches(|c: char| c.is_ascii_digit()));
    without.map(|line| format!("{line}\n")).collect()
}

#[test]
fn flow_tables() {
    let (sandbox, other) = (sandbox(), sandbox());
    let address = |n: u8| format!("10.9.0.{n}/24");
    chainwright_testing::Sandbox::connect(&sandbox, "v0", &address(1), &other, "v1", &address(2))
        .unwrap();
    let mut nft = connect(&sandbox);
    let flowtable = Flowtable {
        flags: Some(FlowtableFlags::COUNTER),
        ..Flowtable::new(INET, "t", "f", -10, Devices::new(["lo", "v0"]))
    };
    committed(&mut nft, |tx| _ = tx.add(&Table::new(INET, "t")).unwrap());
    let mut tx = transaction(|tx| _ = tx.add(&flowtable).unwrap());
    if !kernel::commit_if_built(&mut nft, &mut tx, "flow tables", "built without flowtables") {
        assert!(nft.flowtable(INET, "t", "f").unwrap().is_none());
        let mut flowtables = nft.flowtables(Scope::all()).unwrap();
        assert!(flowtables.try_next().unwrap().is_none());
        return;
    }
    let found = nft
        .flowtable(INET, "t", "f")
        .unwrap()
        .unwrap()
        .to_builder()
        .into_owned();
    assert_eq!(
        (&found.flags, found.references),
        (&flowtable.flags, Some(0))
    );
    let hook = found.hook.unwrap();
    assert_eq!(hook.priority, Some(-10));
    let mut devices: Vec<_> = hook
        .devices
        .unwrap()
        .iter()
        .map(|device| device.to_string())
        .collect();
    devices.sort();
    assert_eq!(devices, ["lo", "v0"]);

    committed(&mut nft, |tx| {
        tx.add(&Chain::new(INET, "t", "c").with_hook("filter", FORWARD, 0))
            .unwrap();
        tx.add(&Rule::new(INET, "t", "c").with(&FlowOffload::new("f")))
            .unwrap();
    });
    let rule = expressions(&mut nft, INET, "t", "c");
    assert_eq!(rule, [Decoded::FlowOffload(FlowOffload::new("f"))]);
    assert_eq!(
        nft.flowtable(INET, "t", "f").unwrap().unwrap().references(),
        Some(1)
    );
    let listed = Tools::new(&sandbox).run("nft list ruleset");
    assert!(
        listed.contains("flow add @f") && listed.contains("flowtable f {"),
        "{listed}"
    );
    assert_restored(&mut nft);
    // It cannot be deleted while in use, but together with its rule.
    let error = nft
        .commit(&transaction(|tx| _ = tx.delete(&flowtable).unwrap()))
        .unwrap_err();
    assert!(error.to_string().contains("EBUSY"), "{error}");
    committed(&mut nft, |tx| {
        tx.flush_chain(INET, "t", "c").unwrap();
        tx.delete(&flowtable).unwrap();
    });
    assert!(nft.flowtable(INET, "t", "f").unwrap().is_none());
}

#[test]
fn queue_numbers_round_trip() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(INET, "t")).unwrap();
    });
    let queues = [
        Queue::to(5),
        Queue::spread(5, 3).with_flags(QueueFlags::BYPASS | QueueFlags::CPU_FANOUT),
    ];
    for queue in queues {
        let mut tx = transaction(|tx| {
            tx.add(&Chain::new(INET, "t", "c")).unwrap();
            tx.add(&Rule::new(INET, "t", "c").with(&queue)).unwrap();
        });
        let words = "Or the kernel lacks the expression";
        if !kernel::commit_if_built(&mut nft, &mut tx, "the expression `queue`", words) {
            assert!(!nft.chain_exists(INET, "t", "c").unwrap());
            return;
        }
        let found = expressions(&mut nft, INET, "t", "c");
        let Decoded::Queue(found) = &found[0] else {
            panic!("{found:?}");
        };
        assert_eq!((found.num, found.total), (queue.num, queue.total));
        assert_eq!(
            found.flags.unwrap_or_default(),
            queue.flags.unwrap_or_default()
        );
        assert_restored(&mut nft);
        committed(&mut nft, |tx| {
            tx.flush_chain(INET, "t", "c").unwrap();
            tx.delete(&Chain::new(INET, "t", "c")).unwrap();
        });
    }
    let queue = Queue::register(Register::R1);
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(INET, "t", "c")).unwrap();
        let seven = 7u32.to_ne_bytes();
        let number = Immediate::value(Register::R1, &seven);
        tx.add(&Rule::new(INET, "t", "c").with(&number).with(&queue))
            .unwrap();
    });
    let found = expressions(&mut nft, INET, "t", "c");
    let Decoded::Queue(found) = &found[1] else {
        panic!("{found:?}");
    };
    assert_eq!((found.sreg_qnum, found.num), (queue.sreg_qnum, None));
    assert_restored(&mut nft);
}

/// A security mark requires kernel support and a security module that knows the context.
#[test]
fn security_marks() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| _ = tx.add(&Table::new(INET, "t")).unwrap());
    // A context of SELinux, and one of AppArmor, which Debian uses.
    let contexts = ["system_u:object_r:ssh_server_packet_t:s0", "unconfined"];
    let taken = contexts.into_iter().find_map(|context| {
        let object = StatefulObject::new(INET, "t", "s", Secmark::new(context));
        let mut tx = transaction(|tx| _ = tx.add(&object).unwrap());
        let what = format!("the security context `{context}`");
        let known = kernel::commit_if_built(&mut nft, &mut tx, &what, "secmark inet t s #0");
        let found = nft.object(INET, "t", ObjectType::SECMARK, "s").unwrap();
        assert_eq!(found.is_some(), known);
        known.then_some(object)
    });
    let Some(object) = taken else {
        return;
    };
    let found = nft
        .object(INET, "t", ObjectType::SECMARK, "s")
        .unwrap()
        .unwrap();
    assert_eq!(found.data(), object.data);
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(INET, "t", "c")).unwrap();
        let mark = Objref::named(ObjectType::SECMARK, "s");
        tx.add(&Rule::new(INET, "t", "c").with(&mark)).unwrap();
    });
    assert_restored(&mut nft);
}

/// Chains of devices, at both ends of one, with an existing or a future device.
#[test]
fn chains_of_devices() {
    let (sandbox, other) = (sandbox(), sandbox());
    chainwright_testing::Sandbox::connect(
        &sandbox,
        "v0",
        "10.9.0.1/24",
        &other,
        "v1",
        "10.9.0.2/24",
    )
    .unwrap();
    let mut nft = connect(&sandbox);
    let chain = |family, name: &'static str, hook, devices: &[&'static str]| {
        let chain = Chain::new(family, "t", name)
            .with_hook("filter", hook, 0)
            .with_policy(Policy::ACCEPT);
        chain.with_devices(Devices::new(devices.iter().copied()))
    };
    for (family, name, hook, devices) in [
        (Family::NETDEV, "in", INGRESS, &["lo"][..]),
        (Family::NETDEV, "both", INGRESS, &["lo", "v0"]),
        (INET, "inet-in", INET_INGRESS, &["v0"]),
        (Family::NETDEV, "out", EGRESS, &["v0"]),
    ] {
        let mut tx = transaction(|tx| {
            tx.add(&Table::new(family, "t")).unwrap();
            tx.add(&chain(family, name, hook, devices)).unwrap();
            let count = Rule::new(family, "t", name).with(&Counter::new(0, 0));
            tx.add(&count).unwrap();
        });
        if !kernel::commit_if_supported(&mut nft, &mut tx, &["the hook egress"]) {
            assert!(!nft.chain_exists(family, "t", name).unwrap());
            continue;
        }
        let found = nft
            .chain(family, "t", name)
            .unwrap()
            .unwrap()
            .to_builder()
            .into_owned();
        let listed = found.hook.unwrap();
        assert_eq!(listed.number, Some(hook));
        let mut names: Vec<_> = listed
            .devices
            .iter()
            .flat_map(|devices| devices.iter())
            .map(|device| device.to_string())
            .collect();
        names.extend(listed.device.iter().map(ToString::to_string));
        names.sort();
        names.dedup(); // a single device is in both attributes
        assert_eq!(names, devices);
    }
    assert_restored(&mut nft);
    // A packet passes them: those of its incoming and outgoing device.
    let answered = sandbox.run(|| {
        let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(b"x", "10.9.0.2:9").unwrap();
        socket.connect("10.9.0.2:9").unwrap();
        socket
            .set_read_timeout(Some(std::time::Duration::from_secs(5)))
            .unwrap();
        socket.send(b"x").unwrap();
        socket.recv(&mut [0; 1]).is_err() // the ICMP error
    });
    assert!(answered.unwrap());
    for (family, name) in [
        (Family::NETDEV, "both"),
        (INET, "inet-in"),
        (Family::NETDEV, "out"),
    ] {
        if nft.chain_exists(family, "t", name).unwrap() {
            let rule = expressions(&mut nft, family, "t", name);
            let Decoded::Counter(counter) = &rule[0] else {
                panic!("{rule:?}");
            };
            assert!(counter.packets.unwrap() > 0, "{name}");
        }
    }

    let later = chain(Family::NETDEV, "later", INGRESS, &["v0", "later0"]);
    let mut tx = transaction(|tx| _ = tx.add(&later).unwrap());
    if kernel::commit_if_supported(
        &mut nft,
        &mut tx,
        &["hooks on devices that do not exist yet"],
    ) {
        assert_restored(&mut nft);
    }
}

/// Dummy devices: every hook of one, and a flowtable on it.
#[test]
fn dummy_devices() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    if let Err(refusal) = tools.takes("ip link add d0 type dummy", "") {
        assert!(refusal.contains("Unknown device type"), "{refusal}");
        println!("this kernel lacks dummy devices: not built in");
        return;
    }
    let mut nft = connect(&sandbox);
    for (family, hook) in [
        (Family::NETDEV, INGRESS),
        (Family::NETDEV, EGRESS),
        (INET, INET_INGRESS),
    ] {
        let mut tx = transaction(|tx| {
            let chain = Chain::new(family, "t", format!("c{hook}"))
                .with_hook("filter", hook, 7)
                .with_devices(Devices::new(["d0"]));
            tx.add(&Table::new(family, "t")).unwrap();
            tx.add(&chain).unwrap();
        });
        if !kernel::commit_if_supported(&mut nft, &mut tx, &["the hook egress"]) {
            assert_eq!(hook, EGRESS);
        }
    }
    let flowtable = Flowtable::new(INET, "t", "f", 0, Devices::new(["d0"]));
    let mut tx = transaction(|tx| _ = tx.add(&flowtable).unwrap());
    if kernel::commit_if_built(&mut nft, &mut tx, "flow tables", "built without flowtables") {
        assert!(nft.flowtable(INET, "t", "f").unwrap().is_some());
    }
    assert_restored(&mut nft);
    // An older kernel removes the chain with its device; a newer one waits for the device.
    tools.run("ip link del d0");
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let text = snapshot.to_string();
    committed(&mut nft, |tx| {
        tx.flush_ruleset(Family::UNSPEC).unwrap();
    });
    snapshot.restore(&mut nft).unwrap();
    let again = nft.snapshot(Scope::all()).unwrap().to_string();
    assert_eq!(without_handles(&again), without_handles(&text));
}

/// IPVS properties of a packet in iptables rules of both backends.
#[test]
fn connections_of_ipvs() {
    const RULE: &str =
        "-A INPUT -m ipvs --vproto 6 --vaddr 10.0.0.1 --vport 80 --vmethod MASQ -j ACCEPT";
    let text = format!("*filter\n:INPUT ACCEPT [0:0]\n{RULE}\nCOMMIT\n");
    for (backend, save) in [
        (Backend::Nft, "iptables-nft-save"),
        (Backend::Legacy, "iptables-legacy-save"),
    ] {
        let sandbox = sandbox();
        let mut iptables = sandbox
            .run(|| Iptables::open(backend))
            .unwrap()
            .unwrap()
            .with_lock(LockPolicy::None, Retry::ONCE);
        let restored = iptables.restore(iptables::Family::Ipv4, &text, &RestoreOptions::default());
        if let Err(error) = restored {
            let error = report(&error);
            let words = match backend {
                Backend::Nft => "this kernel has no revision 0 of the match ipvs for nf_tables",
                Backend::Legacy => "this kernel has no legacy IPv4 match \"ipvs\" of revision 0",
            };
            assert!(error.contains(words), "{error}");
            println!("this kernel lacks the match `ipvs`: not built in");
            continue;
        }
        let listed = Tools::new(&sandbox).run(save);
        assert!(listed.contains(RULE), "{listed}");
        let tables = iptables.read(iptables::Family::Ipv4, &[]).unwrap();
        let mut chainwright = Vec::new();
        let omissions = tables
            .save(SaveOptions::default(), &mut chainwright)
            .unwrap();
        assert!(omissions.is_none());
        assert!(chainwright.contains_str(RULE), "{}", chainwright.as_bstr());
    }
}

#[test]
fn keys_of_tunnels() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    for family in [Family::NETDEV, INET, Family::IP] {
        committed(&mut nft, |tx| {
            tx.add(&Table::new(family, "t")).unwrap();
            tx.add(&Chain::new(family, "t", "c")).unwrap();
        });
        for key in [TunnelKey::PATH, TunnelKey::ID] {
            let tunnel = Tunnel::load(key, TunnelMode::NONE, Register::R1);
            let mut tx = transaction(|tx| {
                tx.add(&Rule::new(family, "t", "c").with(&tunnel)).unwrap();
            });
            let words = "Or the kernel lacks the expression";
            let what = format!("the expression `tunnel` in tables of the family {family}");
            if !kernel::commit_if_built(&mut nft, &mut tx, &what, words) {
                assert_ne!(
                    family,
                    Family::NETDEV,
                    "every kernel should support it in netdev tables"
                );
                continue;
            }
            let found = expressions(&mut nft, family, "t", "c");
            let Decoded::Tunnel(found) = &found[0] else {
                panic!("{found:?}");
            };
            assert_eq!((found.key, found.dreg), (tunnel.key, tunnel.dreg));
            committed(&mut nft, |tx| {
                tx.flush_chain(family, "t", "c").unwrap();
            });
        }
    }
}
