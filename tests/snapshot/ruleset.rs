//! Rulesets as values: what a transaction makes of one is what a kernel lists afterwards.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use chainwright::netlink::MessageError;
use chainwright::nft::expr::Verdict;
use chainwright::nft::{
    Chain, CommitError, Connection, DataType, Element, Family, Hook, PlanOptions, Policy, Rule,
    Ruleset, Scope, Set, SetId, Snapshot, Table, TableFlags, Transaction,
};
use chainwright_lang::Script;
use chainwright_testing::FakeKernel;

use crate::common::compare_mirror::lines;
use crate::common::random::Random;
use crate::common::rulesets;
use crate::common::transactions::Writer;
use crate::common::{connect, sandbox};

/// Returns the differences between a ruleset and a listing, in both directions.
fn differences(ruleset: &Ruleset, listed: &Snapshot) -> String {
    let mut options = PlanOptions::default();
    options.remove_other_tables = true;
    options.remove_dynamic_elements = true;
    options.counters = true;
    let ours = ruleset.to_snapshot(&Scope::all());
    let plans = [ours.plan(listed, options), listed.plan(&ours, options)];
    plans.map(|plan| plan.unwrap().to_string()).concat()
}

fn described(tx: &Transaction) -> Vec<String> {
    tx.described()
        .map(|operation| operation.to_string())
        .collect()
}

/// Whether an operation refers to a handle that does not exist yet: a ruleset numbers its objects in its own way.
fn guesses_handles(tx: &Transaction, before: &Snapshot) -> bool {
    let mut handles = HashSet::new();
    for table in before.tables() {
        let view = table.table();
        let chains = table.chains().flat_map(|chain| {
            let rules = chain.rules().map(|rule| rule.handle());
            rules.chain([chain.chain().handle()])
        });
        let all = chains
            .chain(table.sets().map(|set| set.set().handle()))
            .chain(table.objects().map(|object| object.handle()))
            .chain(table.flowtables().map(|flowtable| flowtable.handle()))
            .chain([view.handle()]);
        handles.extend(all.map(|handle| (view.family(), view.name().to_owned(), handle)));
    }
    tx.described().any(|operation| {
        let table = operation.path.first().cloned().unwrap_or_default();
        let of_table = |handle| (operation.family, table.clone(), handle);
        operation
            .handle
            .is_some_and(|handle| !handles.contains(&of_table(handle)))
    })
}

#[test]
fn applying_a_transaction_gives_the_listed_ruleset() {
    let mut fake = FakeKernel::new().connect().unwrap();
    let mut random = Random::new();
    let transactions = crate::common::from_env("FAKE_TRANSACTIONS", 600);
    let (mut accepted, mut refused, mut same_errors) = (0, 0, 0);
    for _ in 0..transactions {
        let before = fake.snapshot(Scope::all()).unwrap();
        let mut tx = Transaction::new();
        if random.once_in(200) {
            tx.flush_ruleset(Family::UNSPEC).unwrap();
        } else {
            Writer::new(&mut random, &before).write(&mut tx);
        }
        if guesses_handles(&tx, &before) {
            continue;
        }
        let mut ruleset = Ruleset::try_from(&before).unwrap();
        let applied = ruleset.apply(&tx).map(|_| ());
        match fake.commit(&tx) {
            Ok(()) => {
                applied.unwrap_or_else(|error| panic!("{error} {:#?}", described(&tx)));
                let after = fake.snapshot(Scope::all()).unwrap();
                let differences = differences(&ruleset, &after);
                if !differences.is_empty() {
                    let ours = ruleset.to_snapshot(&Scope::all());
                    let [ours, theirs] = [&ours, &after].map(|snapshot| {
                        let tables = snapshot.tables();
                        let lines = tables.flat_map(|table| lines(&table, true));
                        lines.collect::<Vec<_>>().join("\n")
                    });
                    panic!("{differences}{:#?}\n{ours}\n{theirs}", described(&tx));
                }
                assert_eq!(ruleset, Ruleset::try_from(&after).unwrap());
                accepted += 1;
            }
            Err(of_fake) => {
                refused += 1;
                if let Err(error) = applied {
                    same_errors += usize::from(first(&error) == first(&of_fake));
                    // A refused transaction changes nothing.
                    assert!(differences(&ruleset, &before).is_empty());
                }
            }
        }
    }
    println!("{accepted} accepted, {refused} refused, {same_errors} of them with the same error");
    assert!(accepted > transactions / 8 && same_errors > 0);
}

/// The first failed operation with its error.
fn first(error: &CommitError) -> Option<(Option<usize>, i32)> {
    let failure = error.failures.first()?;
    let index = failure.operation.as_ref().map(|operation| operation.index);
    Some((index, failure.errno.number()))
}

/// Each ruleset is made of its text without a kernel, and a second reconciliation finds nothing to do.
#[test]
fn reconciling_twice_changes_nothing() {
    let (mut done, mut differ) = (0, Vec::new());
    for ruleset in rulesets::Ruleset::all() {
        let Some(sandbox) = ruleset.prepare() else {
            continue;
        };
        let Ok(script) = Script::parse(&ruleset.name, &ruleset.text) else {
            continue;
        };
        let nothing = Snapshot::default();
        let Ok(change) = script.transaction(Some(&nothing)) else {
            continue;
        };
        let mut nft = connect(&sandbox);
        if nft.commit(change.transaction()).is_err() {
            continue; // this kernel lacks something
        }
        let of_kernel = nft.snapshot(Scope::all()).unwrap();
        let desired = Ruleset::of(change.transaction())
            .unwrap_or_else(|error| panic!("{}: {error}", ruleset.name));
        let differences = differences(&desired, &of_kernel);
        if !differences.is_empty() {
            differ.push(format!("{}: {differences}", ruleset.name));
        }
        differ.extend(again(&ruleset.name, &mut nft, &desired));
        let mut tx = Transaction::new();
        tx.flush_ruleset(Family::UNSPEC).unwrap();
        nft.commit(&tx).unwrap();
        let made = nft.reconcile(&desired, PlanOptions::default());
        let made = made.unwrap_or_else(|error| panic!("{}: {error}", ruleset.name));
        assert!(!made.is_empty(), "{}", ruleset.name);
        differ.extend(again(&ruleset.name, &mut nft, &desired));
        done += 1;
    }
    println!("{done} rulesets");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(done > 50, "{done}");
}

/// The plan of a reconciliation, which must be empty.
fn again(name: &str, nft: &mut Connection, desired: &Ruleset) -> Option<String> {
    let plan = nft.reconcile(desired, PlanOptions::default()).unwrap();
    (!plan.is_empty()).then(|| format!("{name}, again: {plan}"))
}

#[test]
fn a_refused_transaction_names_its_operation() {
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.create(&Chain::new(Family::IP, "t", "c")).unwrap();
    tx.create(&Chain::new(Family::IP, "t", "c")).unwrap();
    let error = Ruleset::of(&tx).unwrap_err();
    assert_eq!(first(&error), Some((Some(2), libc::EEXIST)));
    assert!(
        error.to_string().contains("create chain ip t c #2"),
        "{error}"
    );
    let mut ruleset = Ruleset::new();
    assert!(ruleset.apply(&tx).is_err());
    assert_eq!(ruleset, Ruleset::new());
}

#[test]
fn kept_tables_are_restored() {
    let fake = FakeKernel::new();
    let mut rival = fake.connect().unwrap();
    let mut desired = Ruleset::new();
    desired.add(&Table::new(Family::IP, "t")).unwrap();
    desired.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    let mut plans = Vec::new();
    let nft = fake.connect().unwrap();
    let done = nft.keep(&desired, PlanOptions::default(), |plan| {
        plans.push(plan.to_string());
        let mut tx = Transaction::new();
        match plans.len() {
            1 => _ = tx.add(&Chain::new(Family::IP, "t", "other")).unwrap(),
            2 => _ = tx.delete(&Table::new(Family::IP, "t")).unwrap(),
            _ => return ControlFlow::Break(plans.len()),
        }
        rival.commit(&tx).unwrap();
        ControlFlow::Continue(())
    });
    assert_eq!(done.unwrap(), 3);
    let made = "add table ip t #0\nadd chain ip t c #1\n";
    assert_eq!(plans, [made, "delete chain ip t other #0\n", made]);
}

#[tokio::test]
async fn tables_are_kept_by_a_task() {
    let fake = FakeKernel::new();
    let mut desired = Ruleset::new();
    desired.add(&Table::new(Family::IP, "t")).unwrap();
    let (sender, mut plans) = tokio::sync::mpsc::unbounded_channel();
    let nft = fake.connect().unwrap();
    let task = tokio::spawn(
        nft.keep_async(desired, PlanOptions::default(), move |plan| {
            sender.send(plan.to_string()).unwrap();
            ControlFlow::<()>::Continue(())
        }),
    );
    let made = "add table ip t #0\n";
    assert_eq!(plans.recv().await.unwrap(), made);
    // More changes than the mirror reads at once. None of them needs a repair, which would read the rest.
    let mut rival = fake.connect().unwrap();
    let passing = Chain::new(Family::IP, "t", "passing");
    for _ in 0..1_400 {
        let mut tx = Transaction::new();
        tx.add(&passing).unwrap().delete(&passing).unwrap();
        rival.commit(&tx).unwrap();
    }
    let mut tx = Transaction::new();
    tx.add(&Chain::new(Family::IP, "t", "other")).unwrap();
    rival.commit(&tx).unwrap();
    while plans.recv().await.unwrap() != "delete chain ip t other #0\n" {}
    assert!(!task.is_finished());
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    // The sender went with the task.
    while let Some(plan) = plans.recv().await {
        assert_eq!(plan, made);
    }
}

/// The kernel reports no event for an element that times out.
#[test]
fn kept_sets_lose_elements_that_time_out() {
    let sandbox = sandbox();
    let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4).with_timeout(None);
    let mut desired = Ruleset::new();
    desired.add(&Table::new(Family::IP, "t")).unwrap();
    desired.add(&set).unwrap();
    let mut rival = connect(&sandbox);
    let mut rounds = 0;
    let nft = connect(&sandbox);
    let done = nft.keep(&desired, PlanOptions::default(), |_| {
        rounds += 1;
        if rounds > 20 {
            return ControlFlow::Break(());
        }
        // Times out before or after the repair begins; the chain is there to be repaired in any case.
        let element = Element::new([10, 0, 0, 1].to_vec()).with_timeout(Duration::from_millis(1));
        let mut tx = Transaction::new();
        tx.add(&Chain::new(Family::IP, "t", "other")).unwrap();
        tx.add_elements(&SetId::new(Family::IP, "t", "s"), [&element])
            .unwrap();
        rival.commit(&tx).unwrap();
        std::thread::sleep(Duration::from_millis(rounds % 10));
        ControlFlow::Continue(())
    });
    done.unwrap();
}

/// A kernel lists the timeouts of a ruleset as they are, whatever ticks its timer has.
#[test]
fn timeouts_that_the_kernel_rounds_are_reconciled_once() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    for milliseconds in [1, 7, 1_002, 1_003, 1_011, 86_399_999] {
        let text = format!(
            "table ip t {{
                set s {{ type ipv4_addr; timeout {milliseconds}ms; elements = {{ 10.0.0.1 timeout 9{milliseconds}ms }} }}
                set d {{ type ipv4_addr; size 9; flags dynamic,timeout; }}
                chain c {{ update @d {{ ip saddr timeout {milliseconds}ms }}; }}
            }}"
        );
        let desired = Script::parse("x", &text).unwrap().ruleset().unwrap();
        nft.reconcile(&desired, PlanOptions::default()).unwrap();
        assert_eq!(again(&text, &mut nft, &desired), None);
    }
}

#[test]
fn new_bound_chains_get_unused_names() {
    let parse = |text| Script::parse("x", text).unwrap();
    let first = parse("table ip t { chain c { ip saddr 1.1.1.1 jump { drop; }; }; }");
    let json = serde_json::to_string(&first.ruleset().unwrap()).unwrap();
    let mut ruleset: Ruleset = serde_json::from_str(&json).unwrap();
    let second = parse("add rule ip t c ip saddr 1.1.1.2 jump { accept; }");
    let now = ruleset.to_snapshot(&Scope::all());
    let second = second.transaction(Some(&now)).unwrap();
    ruleset.apply(second.transaction()).unwrap();
    let both = parse(
        "table ip t { chain c { ip saddr 1.1.1.1 jump { drop; }; ip saddr 1.1.1.2 jump { accept; }; }; }",
    );
    assert_eq!(ruleset, both.ruleset().unwrap());
}

/// New names of chains and new properties of sets take effect at the end of a transaction.
#[test]
fn names_and_set_properties_change_at_the_end_of_a_transaction() {
    let chain = |name| Chain::new(Family::IP, "t", name);
    let rule = |chain| Rule::new(Family::IP, "t", chain);
    let set = |timeout| {
        let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4);
        set.with_timeout(Some(Duration::from_secs(timeout)))
    };
    let renamed = |handle, name| Chain {
        handle: Some(handle),
        ..chain(name)
    };
    type Build<'b> = &'b dyn Fn(&mut Transaction, u64) -> Result<(), MessageError>;
    let cases: [(Build<'_>, Option<i32>); 7] = [
        (
            &|tx, a| tx.add(&renamed(a, "b"))?.add(&rule("a")).map(drop),
            None,
        ),
        (
            &|tx, a| tx.add(&renamed(a, "b"))?.add(&rule("b")).map(drop),
            Some(libc::ENOENT),
        ),
        (
            &|tx, a| tx.add(&renamed(a, "b"))?.add(&renamed(a, "b")).map(drop),
            Some(libc::EEXIST),
        ),
        (
            &|tx, a| tx.add(&renamed(a, "a")).map(drop),
            Some(libc::EEXIST),
        ),
        (
            &|tx, a| {
                let mut taken = renamed(a, "taken").with_hook("filter", Hook::INPUT, 0);
                taken.policy = Some(Policy::DROP);
                tx.add(&taken).map(drop)
            },
            Some(libc::EEXIST),
        ),
        (
            &|tx, _| {
                tx.add(&set(1))?.delete(&set(1))?.add(&set(2))?;
                Ok(())
            },
            None,
        ),
        (&|tx, _| tx.add(&set(3)).map(drop), None),
    ];
    for (number, (build, expected)) in cases.into_iter().enumerate() {
        let mut fake = FakeKernel::new().connect().unwrap();
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        tx.add(&chain("a").with_hook("filter", Hook::INPUT, 0))
            .unwrap();
        tx.add(&chain("taken")).unwrap();
        tx.add(&set(1)).unwrap();
        fake.commit(&tx).unwrap();
        let before = fake.snapshot(Scope::all()).unwrap();
        let handle = before.chain(Family::IP, "t", "a").unwrap().chain().handle();
        let mut tx = Transaction::new();
        build(&mut tx, handle).unwrap();
        let mut ruleset = Ruleset::try_from(&before).unwrap();
        let applied = ruleset.apply(&tx).map(drop);
        let committed = fake.commit(&tx);
        for result in [&applied, &committed] {
            let errno = result
                .as_ref()
                .err()
                .and_then(first)
                .map(|(_, errno)| errno);
            assert_eq!(errno, expected, "case {number}: {result:?}");
        }
        let after = fake.snapshot(Scope::all()).unwrap();
        assert_eq!(differences(&ruleset, &after), "", "case {number}");
    }
}

/// The kernel accepts this, and then has two chains of one name.
#[test]
fn no_new_chain_gets_a_pending_name() {
    let chain = |name| Chain::new(Family::IP, "t", name);
    let mut fake = FakeKernel::new().connect().unwrap();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&chain("a")).unwrap();
    fake.commit(&tx).unwrap();
    let before = fake.snapshot(Scope::all()).unwrap();
    let mut ruleset = Ruleset::try_from(&before).unwrap();
    let renamed = Chain {
        handle: Some(before.chain(Family::IP, "t", "a").unwrap().chain().handle()),
        ..chain("b")
    };
    let mut tx = Transaction::new();
    tx.add(&renamed).unwrap().add(&chain("b")).unwrap();
    fake.commit(&tx).unwrap();
    let error = ruleset.apply(&tx).unwrap_err();
    assert_eq!(first(&error), Some((Some(1), libc::EEXIST)));
    assert_eq!(differences(&ruleset, &before), "");
}

/// A snapshot from a file may name an element twice.
#[test]
fn repeated_elements_are_no_difference() {
    let text = "table ip t { set s { type mark; elements = { 1, 2, 3 }; }; }";
    let ruleset = Script::parse("x", text).unwrap().ruleset().unwrap();
    let mut json = serde_json::to_value(&ruleset).unwrap();
    let once: Snapshot = serde_json::from_value(json.clone()).unwrap();
    let elements = json.pointer_mut("/tables/0/sets/0/elements").unwrap();
    let elements = elements.as_array_mut().unwrap();
    elements.push(elements[0].clone());
    let twice: Snapshot = serde_json::from_value(json).unwrap();
    for (now, desired) in [(&once, &twice), (&twice, &once), (&twice, &twice)] {
        let plan = now.plan(desired, PlanOptions::default()).unwrap();
        assert!(plan.is_empty(), "{plan}");
    }
}

#[test]
fn a_ruleset_with_an_owner_equals_itself() {
    let table = |flags| Table {
        flags: Some(flags),
        ..Table::new(Family::IP, "t")
    };
    let owned = table(TableFlags::OWNER);
    let persistent = table(TableFlags::OWNER | TableFlags::PERSIST);
    let [owned, persistent, plain] =
        [owned, persistent, Table::new(Family::IP, "t")].map(|table| {
            let mut ruleset = Ruleset::new();
            ruleset.add(&table).unwrap();
            ruleset
        });
    assert_eq!(owned, owned.clone());
    assert_eq!(persistent, persistent.clone());
    assert_eq!((&owned, &plain), (&plain, &owned));
    assert_ne!(persistent, plain);
    assert_ne!(plain, persistent);
}

#[test]
fn one_message_has_one_value_for_a_key() {
    let map = Set::new(Family::IP, "t", "m", DataType::MARK, 4).with_verdicts();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&map).unwrap();
    let element = |verdict| Element::new([0, 0, 0, 1].to_vec()).with_verdict(verdict);
    let elements = [element(Verdict::Accept), element(Verdict::Drop)];
    tx.add_elements(&SetId::new(Family::IP, "t", "m"), &elements)
        .unwrap();
    let expected = Some((Some(2), libc::EEXIST));
    assert_eq!(first(&Ruleset::of(&tx).unwrap_err()), expected);
    let mut fake = FakeKernel::new().connect().unwrap();
    assert_eq!(first(&fake.commit(&tx).unwrap_err()), expected);
}

#[test]
fn a_ruleset_is_serialized_and_compared() {
    let script = Script::parse(
        "x",
        "table inet t { set s { type ipv4_addr; flags timeout; timeout 1h; elements = { 10.0.0.1 } }
         chain c { type filter hook input priority 0; ip saddr @s tcp dport { 1, 2 } counter drop; }; }",
    );
    let ruleset = script.unwrap().ruleset().unwrap();
    let json = serde_json::to_string(&ruleset).unwrap();
    let mut again: Ruleset = serde_json::from_str(&json).unwrap();
    assert_eq!(ruleset, again);
    assert_eq!(ruleset.to_string(), again.to_string());
    let mut tx = Transaction::new();
    tx.flush_chain(Family::INET, "t", "c").unwrap();
    again.apply(&tx).unwrap();
    assert_ne!(ruleset, again);
    // The rule's anonymous set is gone with it.
    let table = again.table(Family::INET, "t").unwrap();
    assert_eq!(
        table
            .sets()
            .map(|set| set.elements().count())
            .collect::<Vec<_>>(),
        [1]
    );
}
