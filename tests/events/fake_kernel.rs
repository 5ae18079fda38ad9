//! The fake kernel and the kernel get the same transactions: both must give the same answers and end in the same state.
//!
//! `FAKE_TRANSACTIONS` sets their number (150 by default; `CHAINWRIGHT_THOROUGH` multiplies it), `SEED` selects them:
//! without it they are the same each time.

mod state;

use crate::common::accounting;
use crate::common::compare_mirror::{is_current, lines};
use crate::common::random::Random;
use crate::common::rulesets::{OF_CLIENTS, Ruleset, loaded_data};
use crate::common::transactions::Writer;
use crate::common::{bound_chain, rule_of_bound_chain};
use allocation_counter::measure;
use chainwright::netlink::Messages;
use chainwright::nft::expr::{
    Expressions, Immediate, Lookup, Payload, PayloadBase, Register, Verdict,
};
use chainwright::nft::live::{Event, Item, Mirror, Monitor, MonitorOptions};
use chainwright::nft::{
    Chain, ChainFlags, CommitError, Committed, Connection, DataType, Devices, Element, Family,
    Generation, PlanOptions, Rule, Scope, Set, SetFlags, Snapshot, SnapshotChain, SnapshotSet,
    Table, TableFlags, Transaction,
};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELSETELEM, NFT_MSG_DESTROYSETELEM, NFT_MSG_NEWSETELEM, NFTA_SET_ELEM_EXPIRATION,
    NFTA_SET_TYPE, NFTA_TABLE_HANDLE, NFTA_TABLE_USE,
};
use chainwright_testing::FakeKernel;
use chainwright_testing::Sandbox;

/// The parts of an answer that must be equal: the error number of each failed operation.
fn answer(result: Result<(), CommitError>) -> Vec<(Option<usize>, String)> {
    let Err(error) = result else {
        return Vec::new();
    };
    let failures = error.failures.iter();
    failures
        .map(|failure| {
            let index = failure.operation.as_ref().map(|operation| operation.index);
            (index, failure.errno.name())
        })
        .collect()
}

/// The complete state, byte for byte, except for what changes over time.
fn formatted(snapshot: &Snapshot) -> Vec<String> {
    // The parts of a set; the remaining time of an element.
    let passing = [
        // Linux 6.18 decrements a table's use count too often when transactions fail.
        ("table", format!("{NFTA_TABLE_USE}=[")),
        (" set", format!("{NFTA_SET_TYPE}=[")),
        ("  element", format!("{NFTA_SET_ELEM_EXPIRATION}=[")),
    ];
    let without = |line: String| {
        let is_passing = |attribute: &str| {
            let mut passing = passing.iter();
            passing.any(|(kind, start)| line.starts_with(kind) && attribute.starts_with(start))
        };
        // Anonymous chains are numbered across all namespaces: only the presence of such a name is compared.
        let names_unnamed = |attribute: &str| attribute.contains("5f, 5f, 63, 68, 61, 69, 6e");
        let attributes = line.split_inclusive(']').map(|attribute| {
            let kind = attribute.split('=').next().unwrap();
            match names_unnamed(attribute) {
                true => format!("{kind}=[__chain]"),
                false => attribute.to_owned(),
            }
        });
        attributes
            .filter(|attribute| !is_passing(attribute.trim_start()))
            .collect()
    };
    let tables = snapshot.tables();
    tables
        .flat_map(|table| lines(&table, true))
        .map(without)
        .collect()
}

/// The operations, one line of hexadecimal digits for each.
fn bytes(tx: &Transaction) -> String {
    let operations = Messages::new(tx.as_bytes()).map(|message| {
        let message = message.unwrap();
        let bytes = message.raw[20..].iter().map(|byte| format!("{byte:02x}"));
        format!("\n{:#x} {}", message.flags, bytes.collect::<String>())
    });
    operations.collect()
}

/// The text of an event. Anonymous chains are numbered across all namespaces.
fn unnamed(event: &Event<'_>) -> String {
    let event = event.to_string();
    match event.find("__chain") {
        Some(at) => format!("{}…", &event[..at]),
        None => event,
    }
}

/// The sender's result of a transaction: the generation, and what each operation added.
fn echoed(committed: &Committed) -> (Option<u32>, Vec<(usize, String)>, Vec<usize>) {
    let additions = committed.additions();
    (
        committed.generation().map(Generation::number),
        additions
            .map(|(operation, event)| (operation, unnamed(&event)))
            .collect(),
        committed.missing().to_vec(),
    )
}

/// The events that a monitor receives, one transaction after the other.
fn events(monitor: &mut Monitor) -> Vec<String> {
    let mut reported = Vec::new();
    while let Some(item) = monitor.try_receive().unwrap() {
        match item {
            Item::Change(change) => {
                let mut events: Vec<_> = change.events().map(|event| unnamed(&event)).collect();
                // The order in which a set is emptied does not matter.
                let is_element = |event: &String| event.starts_with("delete element");
                events
                    .chunk_by_mut(|one, next| is_element(one) && is_element(next))
                    .for_each(<[String]>::sort);
                reported.append(&mut events);
                reported.push(format!("generation {}", change.generation()));
            }
            other => reported.push(format!("{other:?}")),
        }
    }
    reported
}

struct Pair {
    /// Number of compared transactions, and the state after the last one.
    compared: usize,
    before: Vec<String>,
    kernel: Connection,
    fake: Connection,
    of_kernel: Monitor,
    of_fake: Monitor,
    mirror: Mirror,
    /// Whether an echo was requested, in every other transaction.
    requests_echo: bool,
}

impl Pair {
    fn new() -> Self {
        let fake = FakeKernel::new();
        Self {
            compared: 0,
            before: Vec::new(),
            kernel: Connection::open().unwrap(),
            fake: fake.connect().unwrap(),
            of_kernel: Monitor::open().unwrap(),
            of_fake: MonitorOptions::default()
                .open_in_namespace_of(&fake.connect().unwrap())
                .unwrap(),
            mirror: Mirror::open(fake.connect().unwrap(), &Scope::all()).unwrap(),
            requests_echo: false,
        }
    }

    /// The next handles are the same, even after a failed transaction.
    #[track_caller]
    fn compare_handles(&mut self, tx: &Transaction) {
        let now = self.fake.snapshot(Scope::all()).unwrap();
        let mut probe = Transaction::new();
        for table in now.tables() {
            let view = table.table();
            let name = view.name().to_owned();
            let chain = Chain::new(view.family(), name, "probe");
            probe.add(&chain).unwrap().delete(&chain).unwrap();
        }
        self.fake.commit(&probe).unwrap();
        self.kernel.commit(&probe).unwrap();
        let by_fake = events(&mut self.of_fake);
        let by_kernel = events(&mut self.of_kernel);
        assert_eq!(by_fake, by_kernel, "handles after {}", bytes(tx));
    }

    #[track_caller]
    fn compare(&mut self, tx: &Transaction) {
        let text = || {
            let operations = tx.described().map(|operation| operation.to_string());
            operations.collect::<Vec<_>>()
        };
        self.requests_echo = !self.requests_echo;
        let (answered, by_kernel) = match self.requests_echo {
            true => {
                let (by_fake, by_kernel) = (self.fake.commit_echo(tx), self.kernel.commit_echo(tx));
                let (reported, reported_by_kernel) =
                    (by_fake.as_ref().ok(), by_kernel.as_ref().ok());
                assert_eq!(
                    reported.map(echoed),
                    reported_by_kernel.map(echoed),
                    "echo of the fake kernel (left) and of the kernel (right): {:#?}",
                    text()
                );
                (answer(by_fake.map(drop)), answer(by_kernel.map(drop)))
            }
            false => (answer(self.fake.commit(tx)), answer(self.kernel.commit(tx))),
        };
        assert_eq!(
            answered,
            by_kernel,
            "answer of the fake kernel (left) and of the kernel (right): {:#?} {}",
            text(),
            bytes(tx)
        );
        let held = formatted(&self.fake.snapshot(Scope::all()).unwrap());
        let by_kernel = formatted(&self.kernel.snapshot(Scope::all()).unwrap());
        if held != by_kernel {
            let mut pairs = held.iter().zip(&by_kernel);
            let at = pairs.position(|(by_fake, by_kernel)| by_fake != by_kernel);
            let at = at.unwrap_or(held.len().min(by_kernel.len()));
            panic!(
                "after {} transactions {answered:?} {:#?} {}\nmodel  {:#?}\nkernel {:#?}\nbefore {:#?}",
                self.compared,
                text(),
                bytes(tx),
                held.get(at),
                by_kernel.get(at),
                self.before
            );
        }
        let by_fake = events(&mut self.of_fake);
        let by_kernel = events(&mut self.of_kernel);
        assert_eq!(
            by_fake,
            by_kernel,
            "events of the fake kernel (left) and of the kernel (right): {:#?}",
            text()
        );
        self.compare_handles(tx);
        self.mirror.update().unwrap();
        // No event reports what a failed transaction leaves behind: the size that it gave a set.
        let leaves_size = tx.as_bytes().windows(6).any(|bytes| bytes == b"dynset");
        if leaves_size && !answered.is_empty() {
            self.mirror.reread().unwrap();
        }
        is_current(&self.mirror, &mut self.fake, "the fake kernel's mirror");
        self.compared += 1;
        self.before = held;
        // In the next transaction the kernel may remember an element of a tree from this one, unless a tick lies
        // between.
        let elements = [
            NFT_MSG_NEWSETELEM,
            NFT_MSG_DELSETELEM,
            NFT_MSG_DESTROYSETELEM,
        ];
        let mut messages = Messages::new(tx.as_bytes()).map(Result::unwrap);
        if messages.any(|message| elements.contains(&(message.kind as u8))) {
            crate::common::tick();
        }
    }
}

/// A ruleset of a real tool, loaded with that tool.
struct Loaded {
    name: String,
    by_tool: Sandbox,
    /// A sandbox in the initial state of the first.
    empty: Sandbox,
}

/// The rulesets in `rulesets/` and `data/` that this kernel accepts.
fn loaded() -> impl Iterator<Item = Loaded> {
    let rulesets = Ruleset::all().into_iter().filter_map(|ruleset| {
        let loaded = Loaded {
            by_tool: ruleset.load()?,
            empty: ruleset.prepare()?,
            name: ruleset.name,
        };
        Some(loaded)
    });
    let data = OF_CLIENTS.into_iter().map(|name| Loaded {
        by_tool: loaded_data(name),
        empty: accounting::prepared(),
        name: name.to_owned(),
    });
    rulesets.chain(data)
}

/// Removes a table's handle: checks of the kernel's features used some handles.
fn unnumbered(line: String) -> String {
    match line.split_once(&format!(" {NFTA_TABLE_HANDLE}=[")) {
        Some((before, after)) if line.starts_with("table") => {
            let (_, behind) = after.split_once(']').unwrap();
            format!("{before}{behind}")
        }
        _ => line,
    }
}

/// After the same transactions, the kernel and the fake kernel list a ruleset with the same bytes, and it differs from
/// the tool's own ruleset in nothing that a plan would change.
#[test]
fn the_fake_lists_rulesets_like_the_kernel() {
    let (mut rulesets, mut rules) = (0, 0);
    let mut differ = Vec::new();
    for Loaded {
        name,
        by_tool,
        empty,
    } in loaded()
    {
        let by_tool = crate::common::connect(&by_tool)
            .snapshot(Scope::all())
            .unwrap();
        let devices = by_tool.tables().flat_map(|table| {
            let chains: Vec<_> = table.chains().map(|chain| chain.chain().hook()).collect();
            chains.into_iter().flatten().filter_map(|hook| hook.devices)
        });
        let devices = devices
            .flat_map(|devices| devices.names().map(bstr::BString::from).collect::<Vec<_>>());
        let fake = devices.fold(FakeKernel::new(), FakeKernel::with_device);
        let restored = [crate::common::connect(&empty), fake.connect().unwrap()].map(|mut nft| {
            by_tool.restore(&mut nft)?;
            Ok(nft.snapshot(Scope::all()).unwrap())
        });
        let [of_kernel, of_fake] = match restored {
            [Ok(of_kernel), Ok(of_fake)] => [of_kernel, of_fake],
            [Err(error), _] | [_, Err(error)] => {
                let error: chainwright::Error = error;
                differ.push(format!("{name}: {}", crate::common::report(&error)));
                continue;
            }
        };
        for (from, to) in [(&of_fake, &by_tool), (&by_tool, &of_fake)] {
            let plan = from.plan(to, PlanOptions::default()).unwrap();
            if !plan.is_empty() {
                differ.push(format!("{name}: {plan}"));
            }
        }
        let formatted = |snapshot| formatted(snapshot).into_iter().map(unnumbered).collect();
        let [by_fake, by_kernel]: [Vec<String>; 2] = [formatted(&of_fake), formatted(&of_kernel)];
        if by_fake.len() != by_kernel.len() {
            differ.push(format!("{name}: {} of {}", by_fake.len(), by_kernel.len()));
        }
        let lines = by_fake.iter().zip(&by_kernel);
        for (by_fake, by_kernel) in lines.filter(|(by_fake, by_kernel)| by_fake != by_kernel) {
            differ.push(format!(
                "{name}:
  fake kernel  {by_fake}
  kernel       {by_kernel}"
            ));
        }
        rulesets += 1;
        rules += by_kernel
            .iter()
            .filter(|line| line.starts_with("  rule"))
            .count();
    }
    println!("{rulesets} rulesets, {rules} rules");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(rulesets > 80 && rules > 2000, "{rulesets}, {rules}");
}

#[test]
fn the_fake_answers_and_stores_like_the_kernel() {
    let sandbox = crate::common::sandbox();
    let transactions = crate::common::from_env("FAKE_TRANSACTIONS", 150);
    sandbox
        .run(|| {
            let mut pair = Pair::new();
            let mut random = Random::new();
            let (mut accepted, mut before) = (0, None);
            for _ in 0..transactions {
                let now = pair.fake.snapshot(Scope::all()).unwrap();
                let mut tx = Transaction::new();
                if random.once_in(200) {
                    tx.flush_ruleset(Family::UNSPEC).unwrap();
                } else {
                    Writer::new(&mut random, &now).write(&mut tx);
                }
                pair.compare(&tx);
                if pair.compared.is_multiple_of(5000) {
                    println!("{} transactions", pair.compared);
                }
                accepted += usize::from(before != now.generation());
                before = now.generation();
            }
            println!("{accepted} of {transactions} transactions changed something");
            assert!(accepted > transactions / 8);
        })
        .unwrap();
}

/// Ranges may contain others: if several contain a key, the one that was added first counts.
#[test]
fn ranges_of_several_values_hold_others() {
    crate::common::sandbox()
        .run(|| {
            let mut pair = Pair::new();
            let mut random = Random::new();
            let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
            let set = |name| Set::new(Family::IP, "t", name, DataType::IPV4_ADDR, 4);
            let range = |from: u8, to: u8| {
                let key = |n| [10, 0, 0, n, 0, n, 0, 0].to_vec();
                Element::range(key(from), key(to))
            };
            let mut tx = Transaction::new();
            tx.add(&Table::new(Family::IP, "t")).unwrap();
            pair.compare(&tx);
            for (name, first, then) in [
                ("inner", range(2, 2), range(1, 3)),
                ("outer", range(1, 3), range(2, 2)),
            ] {
                let set = set(name).with_interval_fields(&fields);
                for operation in [&first, &then, &first] {
                    let mut tx = Transaction::new();
                    tx.add(&set).unwrap();
                    tx.add_elements(&set.set_id(), std::slice::from_ref(operation))
                        .unwrap();
                    pair.compare(&tx);
                }
            }
            let held = pair.fake.snapshot(Scope::all()).unwrap();
            let elements = |name: &str| {
                held.tables()
                    .next()
                    .unwrap()
                    .set(name)
                    .unwrap()
                    .elements()
                    .count()
            };
            assert_eq!([elements("inner"), elements("outer")], [2, 1]);
            for _ in 0..200 {
                let now = pair.fake.snapshot(Scope::all()).unwrap();
                let mut tx = Transaction::new();
                Writer::of(&mut random, &now, Family::IP, "t").on_ranges(&mut tx);
                pair.compare(&tx);
            }
        })
        .unwrap();
}

/// Random tests rarely find this.
#[test]
fn an_activated_table_rejects_a_base_chain_in_the_same_transaction() {
    let sandbox = crate::common::sandbox();
    let asleep = Table {
        flags: Some(TableFlags::DORMANT),
        ..Table::new(Family::IP, "t")
    };
    let base = Chain::new(Family::IP, "t", "b").with_hook("filter", 1, 0);
    let mut add = Transaction::new();
    add.add(&Table::new(Family::IP, "t")).unwrap();
    add.add(&base).unwrap();
    for with_base in [false, true] {
        let answers = [
            crate::common::connect(&sandbox),
            FakeKernel::new().connect().unwrap(),
        ]
        .map(|mut nft| {
            let mut empty = Transaction::new();
            empty.flush_ruleset(Family::UNSPEC).unwrap();
            nft.commit(&empty).unwrap();
            if with_base {
                nft.commit(&add).unwrap();
            }
            let mut tx = Transaction::new();
            tx.add(&Table::new(Family::IP, "t")).unwrap();
            tx.add(&asleep).unwrap().add(&base).unwrap();
            answer(nft.commit(&tx))
        });
        assert_eq!(answers[0], answers[1], "{with_base}");
    }
}

/// Bound chains nested in one another to this depth; and the deletion of the first rule.
fn nested(depth: u32) -> [Transaction; 2] {
    let mut add = Transaction::new();
    add.add(&Table::new(Family::IP, "t")).unwrap();
    add.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    let mut jump = None;
    for id in 1..=depth {
        add.add(&bound_chain(Family::IP, "t", id)).unwrap();
        let mut inner = rule_of_bound_chain(Family::IP, "t", id);
        inner.expressions = jump.take();
        add.add(&inner).unwrap();
        let mut expressions = Expressions::new();
        expressions.push(&Immediate::verdict(Verdict::JumpId(id)));
        jump = Some(expressions);
    }
    let mut rule = Rule::new(Family::IP, "t", "c");
    rule.expressions = jump;
    add.add(&rule).unwrap();
    let mut delete = Transaction::new();
    delete.flush_chain(Family::IP, "t", "c").unwrap();
    [add, delete]
}

#[test]
fn chains_of_rules_have_no_such_chains() {
    let sandbox = crate::common::sandbox();
    let mut kernel = crate::common::connect(&sandbox);
    let mut fake = FakeKernel::new().connect().unwrap();
    for depth in [1, 2, 5] {
        for tx in nested(depth) {
            let answered = answer(fake.commit(&tx));
            assert_eq!(answered, answer(kernel.commit(&tx)), "{depth}");
            assert_eq!(answered.is_empty(), depth == 1 || tx.len() == 1, "{depth}");
            let [by_fake, by_kernel] = [&mut fake, &mut kernel].map(|nft| {
                let snapshot = nft.snapshot(Scope::all()).unwrap();
                let formatted = formatted(&snapshot).into_iter().map(unnumbered);
                formatted.collect::<Vec<_>>()
            });
            assert_eq!(by_fake, by_kernel, "{depth}");
        }
    }
}

/// Chains for hardware offload: with a device that does not support it, without a device, and at a hook without
/// devices.
#[test]
fn chains_cannot_be_offloaded_to_hardware() {
    let sandbox = crate::common::sandbox();
    let mut pair = [
        crate::common::connect(&sandbox),
        FakeKernel::new().connect().unwrap(),
    ];
    let mut refused = 0;
    for (family, hook) in [(Family::INET, 5), (Family::INET, 1), (Family::NETDEV, 0)] {
        for priority in [-5, 0, 1, 65535, 65536] {
            for devices in [None, Some(Devices::new(["lo"]))] {
                let mut chain = Chain::new(family, "t", "c").with_hook("filter", hook, priority);
                chain.flags = Some(ChainFlags::HW_OFFLOAD);
                chain.hook.as_mut().unwrap().devices = devices;
                let mut tx = Transaction::new();
                tx.add(&Table::new(family, "t")).unwrap();
                tx.create(&chain).unwrap().delete(&chain).unwrap();
                let [by_kernel, by_fake] = pair.each_mut().map(|nft| answer(nft.commit(&tx)));
                assert_eq!(by_fake, by_kernel, "{chain:?}");
                refused += usize::from(!by_kernel.is_empty());
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

/// A chain is created with the name that another one gets in the same transaction: then both have it.
#[test]
fn two_chains_of_one_name() {
    let sandbox = crate::common::sandbox();
    let answers = [
        crate::common::connect(&sandbox),
        FakeKernel::new().connect().unwrap(),
    ]
    .map(|mut nft| {
        let chain = |name: &'static str| Chain::new(Family::IP, "t", name);
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        tx.add(&chain("old")).unwrap().add(&chain("from")).unwrap();
        nft.commit(&tx).unwrap();
        let handle = nft.chain(Family::IP, "t", "old").unwrap().unwrap().handle();
        let mut tx = Transaction::new();
        let renamed = Chain {
            handle: Some(handle),
            ..chain("new")
        };
        tx.add(&renamed).unwrap().add(&chain("new")).unwrap();
        nft.commit(&tx).unwrap();
        // Which of them does the name refer to?
        let mut tx = Transaction::new();
        let mut jump = Rule::new(Family::IP, "t", "from");
        jump.push(&Immediate::jump("new"));
        tx.add(&jump).unwrap();
        nft.commit(&tx).unwrap();
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let table = snapshot.table(Family::IP, "t").unwrap();
        let uses = |chain: SnapshotChain<'_>| (chain.chain().handle(), chain.chain().references());
        table.chains().map(uses).collect::<Vec<_>>()
    });
    assert_eq!(answers[0], answers[1]);
}

/// Anonymous sets get the lowest free number, even that of one that is deleted in the same transaction, or that another
/// set has in its name.
#[test]
fn names_of_anonymous_sets() {
    let sandbox = crate::common::sandbox();
    let mut pair = [
        crate::common::connect(&sandbox),
        FakeKernel::new().connect().unwrap(),
    ];
    let mut random = Random::new();
    let mut named = 0;
    for _ in 0..100 {
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
        let mut rules = crate::common::rules_of(&mut pair[0], Family::IP, "t", "c");
        for _ in 0..random.below(8) {
            match random.below(16) {
                0..4 if !rules.is_empty() => {
                    let gone = rules.swap_remove(random.below(rules.len()));
                    tx.delete(&gone).unwrap();
                }
                4 => {
                    let name = format!("__set{}", random.below(40));
                    tx.add(&Set::new(Family::IP, "t", name, DataType::IPV4_ADDR, 4))
                        .unwrap();
                }
                _ => {
                    let of = DataType::IPV4_ADDR;
                    let set = Set::anonymous(Family::IP, "t", "__set%d", 0, of, 4);
                    let set_id = tx.add_anonymous(&set).unwrap().id;
                    let mut rule = Rule::new(Family::IP, "t", "c");
                    rule.push(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1));
                    rule.push(&Lookup {
                        set_id,
                        ..Lookup::set(Register::R1, "__set%d")
                    });
                    tx.add(&rule).unwrap();
                }
            }
        }
        let [by_kernel, by_fake] = pair.each_mut().map(|nft| {
            let answered = answer(nft.commit(&tx));
            let snapshot = nft.snapshot(Scope::all()).unwrap();
            let sets = snapshot.table(Family::IP, "t").into_iter();
            let sets = sets.flat_map(|table| table.sets().collect::<Vec<_>>());
            let name = |set: SnapshotSet<'_>| (set.set().name().to_owned(), set.set().handle());
            (answered, sets.map(name).collect::<Vec<_>>())
        });
        assert_eq!(by_fake, by_kernel);
        named = named.max(by_kernel.1.len());
    }
    assert!(named > 20, "{named}");
}

/// Bounds of intervals that are added and deleted individually, two in a transaction, in every state of a few of them:
/// which ones the kernel accepts depends on earlier operations.
#[test]
fn interval_bounds_change_individually_like_in_the_kernel() {
    let sandbox = crate::common::sandbox();
    let mut pair = [
        crate::common::connect(&sandbox),
        FakeKernel::new().connect().unwrap(),
    ];
    let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4).with_flags(SetFlags::INTERVAL);
    let key = |key: u8| vec![0, 0, 0, key];
    let start = |at| Element::new(key(at));
    let end = |at| Element::end(key(at));
    let bounds = [start(10), end(20), start(30), end(40)];
    let (mut compared, mut refused) = (0, 0);
    let mut differ = Vec::new();
    for state in 0..1 << bounds.len() {
        let there: Vec<_> = (0..bounds.len())
            .filter(|at| state & 1 << at != 0)
            .collect();
        for (one, other, deletes, together) in every_two(bounds.len()) {
            let mut empty = Transaction::new();
            empty.flush_ruleset(Family::UNSPEC).unwrap();
            empty.add(&Table::new(Family::IP, "t")).unwrap();
            empty.add(&set).unwrap();
            let whole = (0..bounds.len()).map(|at| bounds[at].clone());
            empty.add_elements(&set.set_id(), whole).unwrap();
            let mut tx = Transaction::new();
            let named = [bounds[one].clone(), bounds[other].clone()];
            let mut name = |elements: &[Element<'static>], deletes| {
                let elements = elements.iter().cloned();
                match deletes {
                    true => _ = tx.delete_elements(&set.set_id(), elements).unwrap(),
                    false => _ = tx.add_elements(&set.set_id(), elements).unwrap(),
                }
            };
            match together {
                true => name(&named, deletes[0]),
                false => {
                    name(&named[..1], deletes[0]);
                    name(&named[1..], deletes[1]);
                }
            }
            // Ends first, so that none is treated as that of another interval.
            let absent = [1, 3, 0, 2].into_iter().filter(|at| !there.contains(at));
            let absent: Vec<_> = absent.map(|at| bounds[at].clone()).collect();
            let names_start = absent.iter().any(|bound| bound.flags.is_none());
            let mut strip = Transaction::new();
            strip.delete_elements(&set.set_id(), absent).unwrap();
            let mut ticks = names_start;
            let [by_kernel, by_fake] = pair.each_mut().map(|nft| {
                nft.commit(&empty).unwrap();
                nft.commit(&strip).unwrap();
                // The fake kernel forgets with each transaction.
                if std::mem::take(&mut ticks) {
                    crate::common::tick();
                }
                let answered = answer(nft.commit(&tx));
                let held = formatted(&nft.snapshot(Scope::all()).unwrap());
                let held = held
                    .into_iter()
                    .filter(|line| line.starts_with("  element"));
                (answered, held.collect::<Vec<_>>())
            });
            compared += 1;
            refused += usize::from(!by_kernel.0.is_empty());
            if by_fake != by_kernel {
                differ.push(format!(
                    "{there:?} {one} {other} deletes {deletes:?} together {together}: fake kernel {:?} kernel {:?}",
                    by_fake.0, by_kernel.0
                ));
            }
        }
    }
    println!("{compared} transactions, {refused} rejected");
    assert!(refused > 500, "{refused}");
    assert!(differ.is_empty(), "{}: {}", differ.len(), differ.join("\n"));
}

/// Every pair of two, each added or deleted, in one message if possible, and in two.
fn every_two(number: usize) -> impl Iterator<Item = (usize, usize, [bool; 2], bool)> {
    (0..number * number * 8).filter_map(move |at| {
        let (pair, way) = (at / 8, at % 8);
        let (one, other) = (pair / number, pair % number);
        let deletes = [way & 1 != 0, way & 2 != 0];
        let together = way & 4 != 0;
        let can_be = !together || deletes[0] == deletes[1];
        can_be.then_some((one, other, deletes, together))
    })
}

/// A set that grows or shrinks is not copied for each element.
#[test]
fn large_sets_grow_in_place() {
    const ELEMENTS: u32 = 100_000;
    /// Bytes for one element with its message and answer; a copy of the set takes two thousand times as many.
    const BYTES_OF_ONE: u64 = 4096;
    let mut nft = FakeKernel::new().connect().unwrap();
    let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4).with_size(ELEMENTS);
    let elements = || (0..ELEMENTS).map(|key| Element::new(key.to_be_bytes().to_vec()));
    let mut add = Transaction::new();
    add.add(&Table::new(Family::IP, "t")).unwrap();
    add.add(&set).unwrap();
    add.add_elements(&set.set_id(), elements()).unwrap();
    let mut delete = Transaction::new();
    delete.delete_elements(&set.set_id(), elements()).unwrap();
    for (tx, count) in [(&add, ELEMENTS), (&delete, 0)] {
        let allocated = measure(|| nft.commit(tx).unwrap());
        println!("{allocated:?}");
        // Allocations are counted in the thread that runs the fake kernel.
        assert!(allocated.count_total > u64::from(ELEMENTS) / 2);
        assert!(allocated.bytes_total < BYTES_OF_ONE * u64::from(ELEMENTS));
        let set = nft.set(Family::IP, "t", "s").unwrap().unwrap();
        assert_eq!(set.count(), Some(count));
    }
}
