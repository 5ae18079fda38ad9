//! Rulesets as values: what a transaction makes of one is what a kernel lists afterwards.

use std::collections::HashSet;
use std::ops::ControlFlow;

use chainwright::nft::{
    Chain, CommitError, Connection, Family, PlanOptions, Ruleset, Scope, Snapshot, Table,
    Transaction,
};
use chainwright_lang::Script;
use chainwright_testing::FakeKernel;

use crate::common::connect;
use crate::common::mirrored::lines;
use crate::common::random::Random;
use crate::common::rulesets;
use crate::common::transactions::Writer;

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
fn a_transaction_makes_what_is_listed() {
    let mut model = FakeKernel::new().connect().unwrap();
    let mut random = Random::new();
    let transactions = crate::common::from_env("MODEL_TRANSACTIONS", 600);
    let (mut accepted, mut refused, mut same_errors) = (0, 0, 0);
    for _ in 0..transactions {
        let before = model.snapshot(Scope::all()).unwrap();
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
        match model.commit(&tx) {
            Ok(()) => {
                applied.unwrap_or_else(|error| panic!("{error} {:#?}", described(&tx)));
                let after = model.snapshot(Scope::all()).unwrap();
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
            Err(of_model) => {
                refused += 1;
                if let Err(error) = applied {
                    same_errors += usize::from(first(&error) == first(&of_model));
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
    let model = FakeKernel::new();
    let mut rival = model.connect().unwrap();
    let mut desired = Ruleset::new();
    desired.add(&Table::new(Family::IP, "t")).unwrap();
    desired.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    let mut plans = Vec::new();
    let nft = model.connect().unwrap();
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

#[test]
fn a_ruleset_is_serialized_and_compared() {
    let script = Script::parse(
        "x",
        "table inet t { set s { type ipv4_addr; flags timeout; timeout 1h; elements = { 10.0.0.1 } }
         chain c { type filter hook input priority 0; ip saddr @s tcp dport { 1, 2 } counter drop; } }",
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
