//! The model and the kernel are given the same transactions: they answer the same, and then hold the same.
//!
//! `MODEL_TRANSACTIONS` says how many (500 by default), `SEED` which: without one they are the same each time.

mod common;
#[path = "model/transactions.rs"]
mod transactions;

use chainwright::netlink::Messages;
use chainwright::nft::live::{Item, Mirror, Model, Monitor, MonitorOptions};
use chainwright::nft::{
    Chain, CommitError, Connection, DataType, Element, Family, PlanOptions, Scope, Set, Snapshot,
    Table, TableFlags, Transaction,
};
use chainwright_sys::nf_tables::{NFTA_SET_ELEM_EXPIRATION, NFTA_SET_TYPE, NFTA_TABLE_USE};
use common::mirrored::{is_current, lines};
use common::random::Random;
use common::rulesets::Ruleset;
use transactions::Writer;

/// What of an answer is to be the same: of each operation that failed the error number.
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

/// All that is there, byte for byte but for what passes.
fn shown(snapshot: &Snapshot) -> Vec<String> {
    // Of a set what it is made of, of an element the time that it has left.
    let passing = [
        // (Linux 6.18 counts a table's uses down too often when transactions fail.)
        ("table", format!("{NFTA_TABLE_USE}=[")),
        (" set", format!("{NFTA_SET_TYPE}=[")),
        ("  element", format!("{NFTA_SET_ELEM_EXPIRATION}=[")),
    ];
    let without = |line: String| {
        let is_passing = |attribute: &str| {
            let mut passing = passing.iter();
            passing.any(|(kind, start)| line.starts_with(kind) && attribute.starts_with(start))
        };
        // Chains without a name are numbered across all namespaces: what names one is only said to do so.
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

/// The operations, a line of hexadecimal digits for each.
fn bytes(tx: &Transaction) -> String {
    let operations = Messages::new(tx.as_bytes()).map(|message| {
        let message = message.unwrap();
        let bytes = message.raw[20..].iter().map(|byte| format!("{byte:02x}"));
        format!("\n{:#x} {}", message.flags, bytes.collect::<String>())
    });
    operations.collect()
}

/// What a monitor is told, one transaction after the other.
fn events(monitor: &mut Monitor) -> Vec<String> {
    let mut told = Vec::new();
    let unnumbered = |event: String| match event.find("__chain") {
        Some(at) => format!("{}…", &event[..at]),
        None => event,
    };
    while let Some(item) = monitor.try_receive().unwrap() {
        match item {
            Item::Change(change) => {
                let mut events: Vec<_> = change
                    .events()
                    .map(|event| unnumbered(event.to_string()))
                    .collect();
                // In which order a set is emptied is its own business.
                let is_element = |event: &String| event.starts_with("delete element");
                events
                    .chunk_by_mut(|one, next| is_element(one) && is_element(next))
                    .for_each(<[String]>::sort);
                told.append(&mut events);
                told.push(format!("generation {}", change.generation()));
            }
            other => told.push(format!("{other:?}")),
        }
    }
    told
}

struct Pair {
    kernel: Connection,
    model: Connection,
    of_kernel: Monitor,
    of_model: Monitor,
    mirror: Mirror,
}

impl Pair {
    /// The next handles are the same, also after a transaction that failed.
    #[track_caller]
    fn compare_handles(&mut self, tx: &Transaction) {
        let now = self.model.snapshot(Scope::all()).unwrap();
        let mut probe = Transaction::new();
        for table in now.tables() {
            let view = table.table();
            let name = view.name().to_owned();
            let chain = Chain::new(view.family(), name, "probe");
            probe.add(&chain).unwrap().delete(&chain).unwrap();
        }
        self.model.commit(&probe).unwrap();
        self.kernel.commit(&probe).unwrap();
        let ours = events(&mut self.of_model);
        let theirs = events(&mut self.of_kernel);
        assert_eq!(ours, theirs, "handles after {}", bytes(tx));
    }

    #[track_caller]
    fn compare(&mut self, tx: &Transaction) {
        let said = || {
            let operations = tx.described().map(|operation| operation.to_string());
            operations.collect::<Vec<_>>()
        };
        let answered = answer(self.model.commit(tx));
        let theirs = answer(self.kernel.commit(tx));
        assert_eq!(
            answered,
            theirs,
            "the model's answer and the kernel's: {:#?} {}",
            said(),
            bytes(tx)
        );
        let ours = shown(&self.model.snapshot(Scope::all()).unwrap());
        let theirs = shown(&self.kernel.snapshot(Scope::all()).unwrap());
        if ours != theirs {
            let mut pairs = ours.iter().zip(&theirs);
            let at = pairs.position(|(ours, theirs)| ours != theirs);
            let at = at.unwrap_or(ours.len().min(theirs.len()));
            panic!(
                "{answered:?} {:#?}\nmodel  {:#?}\nkernel {:#?}",
                said(),
                ours.get(at),
                theirs.get(at)
            );
        }
        let ours = events(&mut self.of_model);
        let theirs = events(&mut self.of_kernel);
        assert_eq!(
            ours,
            theirs,
            "what the model tells and the kernel: {:#?}",
            said()
        );
        self.compare_handles(tx);
        self.mirror.update().unwrap();
        // What a transaction leaves behind that failed, no event tells: the size that it gave a set.
        let leaves_size = tx.as_bytes().windows(6).any(|bytes| bytes == b"dynset");
        if leaves_size && !answered.is_empty() {
            self.mirror.read_anew().unwrap();
        }
        is_current(&self.mirror, &mut self.model, "the model's mirror");
    }
}

/// What the kernel lists of a ruleset is what the model lists when it was given the same: there is nothing to do
/// between one and the other.
#[test]
fn real_rulesets_are_listed_as_by_the_kernel() {
    let mut loaded = 0;
    let mut differ = Vec::new();
    for ruleset in Ruleset::all() {
        let Some(sandbox) = ruleset.load() else {
            continue;
        };
        let of_kernel = common::connect(&sandbox).snapshot(Scope::all()).unwrap();
        let devices = of_kernel.tables().flat_map(|table| {
            let chains: Vec<_> = table.chains().map(|chain| chain.chain().hook()).collect();
            chains.into_iter().flatten().filter_map(|hook| hook.devices)
        });
        let devices = devices
            .flat_map(|devices| devices.names().map(bstr::BString::from).collect::<Vec<_>>());
        let model = devices.fold(Model::new(), Model::with_device);
        let mut connection = model.connect().unwrap();
        if let Err(error) = of_kernel.restore(&mut connection) {
            differ.push(format!("{}: {}", ruleset.name, common::report(&error)));
            continue;
        }
        let of_model = connection.snapshot(Scope::all()).unwrap();
        for (from, to) in [(&of_model, &of_kernel), (&of_kernel, &of_model)] {
            let plan = from.plan(to, PlanOptions::default()).unwrap();
            if !plan.is_empty() {
                differ.push(format!("{}: {plan}", ruleset.name));
            }
        }
        loaded += 1;
    }
    println!("{loaded} rulesets");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(loaded > 50);
}

#[test]
fn it_answers_and_holds_what_the_kernel_does() {
    let sandbox = common::sandbox();
    let transactions: usize = match std::env::var("MODEL_TRANSACTIONS") {
        Ok(number) => number.parse().unwrap(),
        Err(_) => 500,
    };
    sandbox
        .run(|| {
            let model = Model::new();
            let mut pair = Pair {
                kernel: Connection::open().unwrap(),
                model: model.connect().unwrap(),
                of_kernel: Monitor::open().unwrap(),
                of_model: MonitorOptions::default()
                    .open_beside(&model.connect().unwrap())
                    .unwrap(),
                mirror: Mirror::open(model.connect().unwrap(), &Scope::all()).unwrap(),
            };
            let mut random = match std::env::var_os("SEED") {
                Some(_) => Random::new(),
                None => Random(1),
            };
            let (mut accepted, mut before) = (0, None);
            for _ in 0..transactions {
                let now = pair.model.snapshot(Scope::all()).unwrap();
                let mut tx = Transaction::new();
                if random.once_in(200) {
                    tx.flush_ruleset(Family::UNSPEC).unwrap();
                } else {
                    Writer::new(&mut random, &now).write(&mut tx);
                }
                pair.compare(&tx);
                accepted += usize::from(before != now.generation());
                before = now.generation();
            }
            println!("{accepted} of {transactions} changed something");
            assert!(accepted > transactions / 8);
        })
        .unwrap();
}

/// Seldom met by chance.
#[test]
fn a_table_that_wakes_up_takes_no_base_chain_at_once() {
    let sandbox = common::sandbox();
    let asleep = Table {
        flags: Some(TableFlags::DORMANT),
        ..Table::new(Family::IP, "t")
    };
    let base = Chain::new(Family::IP, "t", "b").with_hook("filter", 1, 0);
    let mut add = Transaction::new();
    add.add(&Table::new(Family::IP, "t")).unwrap();
    add.add(&base).unwrap();
    for with_base in [false, true] {
        let answers =
            [common::connect(&sandbox), Model::new().connect().unwrap()].map(|mut nft| {
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

/// A set that grows is not copied for each of its elements: that would take minutes here.
#[test]
fn large_sets_grow_in_place() {
    const ELEMENTS: u32 = 100_000;
    let mut nft = Model::new().connect().unwrap();
    let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4).with_size(ELEMENTS);
    let elements = || (0..ELEMENTS).map(|key| Element::new(key.to_be_bytes().to_vec()));
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&set).unwrap();
    tx.add_elements(&set.set_id(), elements()).unwrap();
    nft.commit(&tx).unwrap();
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let table = snapshot.table(Family::IP, "t").unwrap();
    assert_eq!(
        table.set("s").unwrap().elements().count(),
        ELEMENTS as usize
    );
    let mut tx = Transaction::new();
    tx.delete_elements(&set.set_id(), elements()).unwrap();
    nft.commit(&tx).unwrap();
    assert_eq!(
        nft.set(Family::IP, "t", "s").unwrap().unwrap().count(),
        Some(0)
    );
}
