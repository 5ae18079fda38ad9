//! Resets counters and quotas.

use chainwright::nft::expr::{Decoded, Objref};

use super::*;
use chainwright::nft::RuleFilter;

/// Rules, objects and policies count packets; after a reset they start again at 0.
#[test]
fn counters_are_reset() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let quota = Quota {
        bytes: Some(1_000_000),
        ..Quota::default()
    };
    let chain = Chain::new(INET, "t", "out")
        .with_hook("filter", OUTPUT, 0)
        .with_policy(Policy::ACCEPT)
        .with_counters(100, 1000);
    let anonymous = Rule::new(INET, "t", "out").with(&Counter::new(0, 0));
    let named = Rule::new(INET, "t", "out")
        .with(&Objref::named(ObjectType::COUNTER, "n"))
        .with(&Objref::named(ObjectType::QUOTA, "q"));
    committed(&mut nft, |tx| {
        tx.add(&Table::new(INET, "t")).unwrap();
        tx.add(&chain).unwrap();
        tx.add(&object("n", Counter::new(0, 0))).unwrap();
        tx.add(&object("q", quota)).unwrap();
        tx.add(&anonymous).unwrap();
        tx.add(&named).unwrap();
    });
    let up = Tools::new(&sandbox);
    up.run("ip link set lo up");
    send(&sandbox, 5);
    let counts = |nft: &mut Connection, reset: bool| {
        let filter = RuleFilter::chain(INET, "t", "out");
        let mut rules = match reset {
            true => nft.reset_rules(filter).unwrap(),
            false => nft.rules(filter).unwrap(),
        };
        let mut counts = Vec::new();
        while let Some(rule) = kernel::if_supported(rules.try_next())? {
            for expression in rule.expressions().into_iter().flatten() {
                if let Decoded::Counter(counter) = expression.unwrap().decode().unwrap() {
                    counts.push(counter.packets.unwrap());
                }
            }
        }
        Some(counts)
    };
    // Each datagram is answered by an ICMP error, which is sent as well.
    let seen = counts(&mut nft, false).unwrap();
    assert!(seen[0] >= 5, "{seen:?}");
    if let Some(before) = counts(&mut nft, true) {
        assert_eq!(before, seen);
        assert_eq!(counts(&mut nft, false), Some(vec![0]));
    } else {
        assert_eq!(counts(&mut nft, false), Some(seen.clone())); // refused, with nothing reset
    }

    let chain = nft.chain(INET, "t", "out").unwrap().unwrap();
    let counters = chain.counters().unwrap();
    assert!(counters.packets.unwrap() >= 105, "{counters:?}");
    assert!(counters.bytes.unwrap() > 1000, "{counters:?}");

    let value = |object: &chainwright::nft::StatefulObjectRef<'_>| match object.data() {
        Some(ObjectData::Counter(counter)) => counter.packets.unwrap(),
        Some(ObjectData::Quota(quota)) => quota.consumed.unwrap(),
        other => panic!("{other:?}"),
    };
    let counter = nft
        .reset_object(INET, "t", ObjectType::COUNTER, "n")
        .unwrap()
        .unwrap();
    assert_eq!((counter.references(), value(&counter)), (Some(1), seen[0]));
    let counter = nft.object(INET, "t", ObjectType::COUNTER, "n").unwrap();
    assert_eq!(value(&counter.unwrap()), 0);
    send(&sandbox, 3);
    let mut before = Vec::new();
    nft.reset_objects(Scope::table(INET, "t"))
        .unwrap()
        .for_each(|object| before.push(value(&object)))
        .unwrap();
    assert!(before[0] >= 3 && before[1] >= 3 * 38, "{before:?}");
    let mut after = Vec::new();
    nft.objects(Scope::table(INET, "t"))
        .unwrap()
        .for_each(|object| after.push(value(&object)))
        .unwrap();
    assert_eq!(after, [0, 0]);
}
