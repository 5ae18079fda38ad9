//! Plans: from any ruleset to any other with the fewest operations, without touching what both have in common. The
//! oracle is `nft`: its listing afterwards equals that of the desired ruleset.
//!
//! All of it is in one file, because every test leads one ruleset to another and compares the two.

#[cfg(feature = "diff")]
mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::plan_rulesets::{operations, with};
use crate::common::random::Random;
use crate::common::rulesets::{
    Listing, OF_CLIENTS, Ruleset, diff_listings, listing, listing_in, loaded_data,
    wait_for_collection,
};
use crate::common::tools::Tools;
use crate::common::{OnDrop, connect, kernel, report, thorough};
#[cfg(feature = "diff")]
use chainwright::Retry;
use chainwright::nft::DiffOptions;
use chainwright::nft::{
    Chain, Connection, Family, PlanOptions, Rule, RuleRef, Scope, SetFlags, Snapshot,
    SnapshotChain, SnapshotTable, Table, Transaction,
};

fn snapshot(nft: &mut Connection) -> Snapshot {
    nft.snapshot(Scope::all())
        .unwrap_or_else(|error| panic!("{}", report(&error)))
}

/// Everything must be as desired, and nothing else may exist.
fn exact() -> PlanOptions {
    let mut options = PlanOptions::default();
    options.remove_other_tables = true;
    options.remove_dynamic_elements = true;
    options
}

/// Executes a plan.
fn apply_plan(nft: &mut Connection, desired: &Snapshot) -> Result<(), String> {
    let now = snapshot(nft);
    let expected = rules_in_common(&now, desired);
    let plan = now.plan(desired, exact()).map_err(|error| report(&error))?;
    nft.commit(plan.transaction())
        .map_err(|error| format!("{}\n{plan}", report(&error)))?;
    let left = snapshot(nft)
        .plan(desired, exact())
        .map_err(|error| report(&error))?;
    if !left.is_empty() {
        return Err(format!("after\n{plan}\nnot done:\n{left}"));
    }
    if plan.replaced.is_empty() && count_common_rules(&now, &snapshot(nft)) < expected {
        return Err(format!("{expected} rules could stay\n{plan}"));
    }
    Ok(())
}

/// Number of rules that both rulesets contain, with the same handles.
fn count_common_rules(before: &Snapshot, after: &Snapshot) -> usize {
    let handles = |snapshot: &Snapshot| -> BTreeSet<(String, u64)> {
        let tables = snapshot.tables();
        let rules = tables.flat_map(|table| {
            let chains = table.chains();
            let rules = chains.flat_map(|chain| chain.rules().collect::<Vec<_>>());
            let key =
                |rule: RuleRef<'_>| (format!("{} {}", rule.family(), rule.table()), rule.handle());
            rules.map(key).collect::<Vec<_>>()
        });
        rules.collect()
    };
    handles(before).intersection(&handles(after)).count()
}

/// The largest possible number of rules that stay in each chain: the longest common subsequence, of rules without
/// references to other objects.
fn rules_in_common(now: &Snapshot, desired: &Snapshot) -> usize {
    let texts = |chain: &SnapshotChain<'_>| -> Vec<String> {
        let text = |rule: RuleRef<'_>| {
            let text = rule.to_string();
            let (_, text) = text.split_once('\n').unwrap_or(("", ""));
            (!text.contains("__")).then(|| nameless(text))
        };
        chain.rules().filter_map(text).collect()
    };
    let mut common = 0;
    for table in desired.tables() {
        for chain in table.chains() {
            let (family, name) = (table.table().family(), table.table().name());
            let Some(other) = now.chain(family, name, chain.chain().name()) else {
                continue;
            };
            let (one, other) = (texts(&chain), texts(&other));
            let mut lengths = vec![vec![0; other.len() + 1]; one.len() + 1];
            for (i, text) in one.iter().enumerate() {
                for (k, with) in other.iter().enumerate() {
                    lengths[i + 1][k + 1] = match text == with {
                        true => lengths[i][k] + 1,
                        false => lengths[i][k + 1].max(lengths[i + 1][k]),
                    };
                }
            }
            common += lengths[one.len()][other.len()];
        }
    }
    common
}

#[test]
fn equal_rulesets_need_no_operations() {
    let mut failures = BTreeMap::new();
    for ruleset in Ruleset::all() {
        let (Some(one), Some(other)) = (ruleset.load(), ruleset.load()) else {
            continue;
        };
        for sandbox in [&one, &other] {
            wait_for_collection(&ruleset, sandbox);
        }
        // Other handles, and other names of anonymous objects.
        let mut nft = connect(&one);
        let mut tx = Transaction::new();
        let first = snapshot(&mut nft);
        tx.flush_ruleset(Family::UNSPEC).unwrap();
        first.write_to(&mut tx).unwrap();
        nft.commit(&tx).unwrap();
        let (one, other) = (snapshot(&mut nft), snapshot(&mut connect(&other)));
        let plan = one.plan(&other, exact()).unwrap();
        if !plan.is_empty() {
            failures.insert(ruleset.name, plan.to_string());
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Sorts a listing independently of the order of creation: chains, sets and objects have no order. Ignores generated
/// names and counters.
fn in_order(listing: &Listing) -> Listing {
    let mut tables: Vec<String> = Vec::new();
    for table in blocks(&listing.text, 0) {
        let lines: Vec<&str> = table.lines().collect();
        let (first, rest) = lines.split_first().expect("no first line");
        let (_, rest) = rest.split_last().expect("no closing brace");
        let mut parts = blocks(&rest.join("\n"), 1);
        parts.sort();
        tables.push(format!("{first}\n{}", parts.concat()));
    }
    tables.sort();
    // Rules are consecutive, each with a line that names its chain.
    let mut rules: Vec<String> = blocks(&nameless(&listing.bytecode), 0);
    // Anonymous objects have no order either.
    let name = |block: &String| {
        let first = block.lines().next().unwrap_or_default().to_owned();
        let content = if first.contains("__") {
            block.as_str()
        } else {
            ""
        };
        (first, content.to_owned())
    };
    rules.sort_by_key(name);
    Listing {
        text: nameless(&tables.concat()),
        bytecode: rules.concat(),
    }
}

/// Blocks that begin with a line of exactly this indentation, each with the deeper lines after it.
fn blocks(text: &str, depth: usize) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let indented = line.len() - line.trim_start().len();
        let closes = line.trim_start().starts_with('}');
        match blocks.last_mut() {
            Some(block) if indented > depth || closes => *block += &format!("{line}\n"),
            _ => blocks.push(format!("{line}\n")),
        }
    }
    blocks
}

/// Removes the numbers in generated names, and counters.
fn nameless(text: &str) -> String {
    let mut out = String::new();
    let mut counts = 0;
    for word in text.split_inclusive([' ', '\n']) {
        let bare = word.trim_end();
        let number = bare.trim_start_matches(|c: char| !c.is_ascii_digit());
        let name = bare.trim_start_matches('@');
        if ["__set", "__map", "__objmap", "__chain"]
            .iter()
            .any(|pattern| name.starts_with(pattern))
        {
            out += bare.strip_suffix(number).unwrap_or(bare);
            out += &word[bare.len()..];
            continue;
        }
        let counted = counts > 0 && !number.is_empty() && number == bare;
        out += if counted { "…" } else { bare };
        out += &word[bare.len()..];
        counts = match bare {
            "packets" | "bytes" | "pkts" | "used" => 1,
            _ => 0,
        };
    }
    out
}

#[test]
fn equal_client_rulesets_need_no_operations() {
    let load = |name: &str| snapshot(&mut connect(&loaded_data(name)));
    for name in OF_CLIENTS {
        let plan = load(name).plan(&load(name), exact()).unwrap();
        assert!(plan.is_empty(), "{name}: {plan}");
        assert!(plan.kept_rules > 50, "{name}: {}", plan.kept_rules);
    }
}

/// Changes a ruleset at random, with transactions of which the kernel accepts some.
fn change_at_random(nft: &mut Connection, random: &mut Random, changes: usize) {
    for _ in 0..changes {
        let now = snapshot(nft);
        let tables: Vec<SnapshotTable<'_>> = now.tables().collect();
        if tables.is_empty() {
            return;
        }
        let table = tables[random.below(tables.len())];
        let mut tx = Transaction::new();
        if change(&mut tx, &table, random).is_some() {
            // A refused transaction changes nothing.
            let _ = nft.commit(&tx);
        }
    }
}

fn change(tx: &mut Transaction, table: &SnapshotTable<'_>, random: &mut Random) -> Option<()> {
    let chains: Vec<_> = table.chains().collect();
    let sets: Vec<_> = table.sets().collect();
    let chain = (!chains.is_empty()).then(|| chains[random.below(chains.len())]);
    let set = (!sets.is_empty()).then(|| sets[random.below(sets.len())]);
    match random.below(10) {
        0..=2 => {
            let rules: Vec<_> = chain?.rules().collect();
            let rule = rules.get(random.below(rules.len()))?;
            tx.delete(&rule.to_builder()).ok()?;
        }
        3..=5 => {
            // A copy of a rule, at another position.
            let from: Vec<_> = chain?.rules().collect();
            let rule = from.get(random.below(from.len()))?;
            let into: Vec<_> = chains[random.below(chains.len())].rules().collect();
            let mut copy = Rule {
                handle: None,
                ..rule.to_builder()
            };
            match into.get(random.below(into.len())) {
                Some(before) => {
                    copy.chain = Some(before.chain().into());
                    copy.position = Some(before.handle());
                    tx.insert(&copy).ok()?;
                }
                None => _ = tx.add(&copy).ok()?,
            }
        }
        6 => {
            let set = set?;
            let flags = set.set().flags().unwrap_or_default();
            let is_tree = flags.contains(SetFlags::INTERVAL) && !flags.contains(SetFlags::CONCAT);
            let mut elements: Vec<_> = set.elements().collect();
            let first = random.below(elements.len());
            elements.drain(..first);
            // Both ends of an interval, the upper one of which is listed first; and no single end.
            let count = match is_tree {
                false => 1 + random.below(3),
                true => {
                    let start = elements
                        .iter()
                        .position(|element| !element.is_interval_end())?;
                    elements.drain(..start.saturating_sub(1));
                    start.min(1) + 1
                }
            };
            if is_tree && !elements[0].is_interval_end() && !elements[0].is_open_interval() {
                return None; // its end is before what was drained
            }
            elements.truncate(count);
            let some: Vec<_> = elements
                .iter()
                .map(|element| element.to_builder())
                .collect();
            tx.delete_elements(&set.set().set_id(), &some).ok()?;
        }
        7 => _ = tx.delete(&set?.set().to_builder()).ok()?,
        8 => _ = tx.delete(&chain?.chain().to_builder()).ok()?,
        _ => {
            let chain = chain?.chain();
            let (family, table) = (chain.family(), chain.table());
            tx.flush_chain(family, table, chain.name()).ok()?;
        }
    }
    Some(())
}

#[test]
fn plans_transform_any_ruleset_into_any_other() {
    let mut failures = BTreeMap::new();
    let mut random = Random::new();
    for ruleset in Ruleset::all() {
        let (Some(one), Some(other)) = (ruleset.load(), ruleset.load()) else {
            continue;
        };
        for sandbox in [&one, &other] {
            wait_for_collection(&ruleset, sandbox);
        }
        let (mut here, mut there) = (connect(&one), connect(&other));
        let whole = snapshot(&mut there);
        let any_order = ruleset
            .header("volatile")
            .any(|what| what == "element-order");
        for round in 0..thorough() {
            change_at_random(&mut here, &mut random, 8);
            change_at_random(&mut there, &mut random, 8);
            let desired = snapshot(&mut there);
            let result = apply_plan(&mut here, &desired).and_then(|()| {
                diff_listings(
                    &in_order(&listing_in(&other, any_order)),
                    &in_order(&listing_in(&one, any_order)),
                )
            });
            // And back to the whole.
            let result = result.and_then(|()| apply_plan(&mut there, &whole));
            if let Err(failure) = result {
                failures.insert(format!("{} {round}", ruleset.name), failure);
                break;
            }
        }
    }
    for (name, failure) in &failures {
        println!("===== {name}: {failure}");
    }
    let names: Vec<_> = failures.keys().collect();
    assert!(failures.is_empty(), "{names:#?}");
}

/// The text of a plan from one ruleset to another, and its effect: the first afterwards equals the second.
fn plan_between(now: &str, desired: &str) -> String {
    let (one, other) = (with(now), with(desired));
    let (mut nft, desired) = (connect(&one), snapshot(&mut connect(&other)));
    let plan = snapshot(&mut nft).plan(&desired, exact()).unwrap();
    nft.commit(plan.transaction())
        .unwrap_or_else(|error| panic!("{}\n{plan}", report(&error)));
    diff_listings(&in_order(&listing(&other)), &in_order(&listing(&one))).unwrap();
    let replaced = plan.replaced.iter().map(|object| format!("{object}\n"));
    format!("{plan}replaced:\n{}", replaced.collect::<String>())
}

#[test]
fn a_rule_that_moves_is_deleted_and_inserted_and_no_other_is_touched() {
    let rules = |order: &[u8]| {
        let rules = order
            .iter()
            .map(|n| format!("  ip saddr 192.0.2.{n} counter accept\n"));
        format!(
            "table ip t {{\n chain c {{\n{}; }}\n}}\n",
            rules.collect::<String>()
        )
    };
    let plan = plan_between(&rules(&[1, 2, 3, 4, 5]), &rules(&[1, 4, 2, 3, 5]));
    assert_eq!(
        operations(&plan),
        ["delete rule ip t c", "insert rule ip t c", "replaced:"]
    );
    // At the end, at the start, and at all other positions.
    let plan = plan_between(&rules(&[1, 2]), &rules(&[1, 2, 3, 4]));
    assert_eq!(
        operations(&plan),
        ["add rule ip t c", "add rule ip t c", "replaced:"]
    );
    let plan = plan_between(&rules(&[3]), &rules(&[1, 2, 3]));
    assert_eq!(
        operations(&plan),
        ["insert rule ip t c", "insert rule ip t c", "replaced:"]
    );
    // The same rule twice, and once.
    let plan = plan_between(&rules(&[7, 7, 8, 7]), &rules(&[7, 8]));
    assert_eq!(operations(&plan).len(), 3, "{plan}");
}

#[test]
fn unchangeable_objects_are_recreated_with_their_references() {
    let base = "table ip t {
        counter hits { packets 1 bytes 2 }
        set blocked { type ipv4_addr; elements = { 192.0.2.1 } }
        map verdicts { type ipv4_addr : verdict; elements = { 192.0.2.7 : jump leaf, 192.0.2.8 : accept } }
        map counters { type ipv4_addr : counter; elements = { 192.0.2.9 : \"hits\" } }
        chain leaf { counter comment \"in the leaf\"; }
        chain base {
            type filter hook input priority 0; policy accept;
            ip saddr @blocked drop
            ip saddr vmap @verdicts
            counter name ip saddr map @counters
            ip protocol vmap { tcp : jump leaf, udp : accept }
            tcp dport 22 accept
        }
    }";
    // The type of a set: with the rule that uses it.
    let plan = plan_between(
        base,
        &base.replace(
            "type ipv4_addr; elements",
            "type ipv4_addr; flags interval; elements",
        ),
    );
    assert_eq!(
        operations(&plan),
        [
            "delete rule ip t base",
            "delete set ip t blocked",
            "add set ip t blocked",
            "add element ip t blocked",
            "insert rule ip t base",
            "replaced:",
            "set ip t blocked"
        ]
    );
    // A chain's comment: with the rules that jump to it, even through an anonymous map, and the elements.
    let plan = plan_between(
        base,
        &base.replace("chain leaf {", "chain leaf { comment \"a leaf\"; "),
    );
    assert_eq!(
        operations(&plan),
        [
            "flush rule ip t leaf",
            "delete rule ip t base",
            "delete element ip t verdicts",
            "delete chain ip t leaf",
            "add chain ip t leaf",
            "add element ip t verdicts",
            "add rule ip t leaf",
            "add set ip t __map%d",
            "add element ip t __map%d",
            "insert rule ip t base",
            "replaced:",
            "chain ip t leaf"
        ]
    );
    // The hook of a base chain.
    let plan = plan_between(base, &base.replace("priority 0", "priority 5"));
    assert!(plan.ends_with("replaced:\nchain ip t base\n"), "{plan}");
    // A policy is changed in place.
    let plan = plan_between(base, &base.replace("policy accept", "policy drop"));
    assert_eq!(operations(&plan), ["add chain ip t base", "replaced:"]);
    // And a table becomes dormant.
    let plan = plan_between(
        base,
        &base.replace("table ip t {", "table ip t { flags dormant;"),
    );
    assert_eq!(operations(&plan), ["add table ip t", "replaced:"]);
}

#[test]
fn only_changed_elements_of_a_set_are_sent() {
    let set = |flags: &str, elements: &str| {
        format!(
            "table ip t {{ set s {{ type ipv4_addr; {flags}; elements = {{ {elements} }} }}; }}"
        )
    };
    let hash = "192.0.2.1, 192.0.2.2, 192.0.2.3";
    let plan = plan_between(&set("size 9", hash), &set("size 9", "192.0.2.2, 192.0.2.4"));
    assert_eq!(
        operations(&plan),
        ["delete element ip t s", "add element ip t s", "replaced:"]
    );
    let ranges = "10.0.0.0/24, 10.0.1.0-10.0.1.9, 10.0.2.0/24";
    let other = "10.0.0.0/24, 10.0.1.0-10.0.1.19, 10.0.2.0/24, 10.0.3.0/24";
    let plan = plan_between(
        &set("flags interval", ranges),
        &set("flags interval", other),
    );
    assert_eq!(
        operations(&plan),
        ["delete element ip t s", "add element ip t s", "replaced:"]
    );
}

#[test]
fn dynamic_elements_and_foreign_tables_are_kept_unless_exact() {
    let sandbox = with(
        "table ip t { set seen { type ipv4_addr; flags dynamic; elements = { 192.0.2.1 } }; }
         table ip foreign { chain c { counter; }; }",
    );
    let desired = with(
        "table ip t { set seen { type ipv4_addr; flags dynamic; elements = { 192.0.2.2 } }; }",
    );
    let (mut nft, desired) = (connect(&sandbox), snapshot(&mut connect(&desired)));
    let now = snapshot(&mut nft);
    let plan = now.plan(&desired, PlanOptions::default()).unwrap();
    assert_eq!(operations(&plan.to_string()), ["add element ip t seen"]);
    let plan = now.plan(&desired, exact()).unwrap();
    assert_eq!(
        operations(&plan.to_string()),
        [
            "delete table ip foreign",
            "delete element ip t seen",
            "add element ip t seen"
        ]
    );
}

#[test]
fn a_plan_is_bound_to_its_generation() {
    let sandbox = with("table ip t { chain c { counter; }; }");
    let mut nft = connect(&sandbox);
    let now = snapshot(&mut nft);
    let empty = Snapshot::default();
    let plan = now.plan(&empty, exact()).unwrap();
    Tools::new(&sandbox).run("nft add chain ip t other");
    let error = nft.commit(plan.transaction()).unwrap_err();
    assert!(error.generation_moved(), "{error}");
}

#[test]
fn a_restoration_keeps_equal_objects_and_all_tables() {
    let sandbox = with(
        "table ip t {
            set s { type ipv4_addr; flags interval; elements = { 192.0.2.0/24 } }
            chain leaf { counter; }
            chain base { type filter hook input priority 0; ip saddr @s jump leaf; tcp dport 22 accept; }
        }
        table ip same { chain c { accept; }; }",
    );
    let mut nft = connect(&sandbox);
    let kept = snapshot(&mut nft);
    let handles = |snapshot: &Snapshot| {
        let chain = snapshot.chain(Family::IP, "t", "base").unwrap();
        let rules: Vec<_> = chain.rules().map(|rule| rule.handle()).collect();
        let table = snapshot.table(Family::IP, "same").unwrap().table().handle();
        (chain.chain().handle(), rules, table)
    };
    // A reader always finds the table while it is repeatedly changed and restored.
    let stop = AtomicBool::new(false);
    let mut reader = connect(&sandbox);
    let reads = std::thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let mut reads = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                assert!(reader.table(Family::IP, "t").unwrap().is_some());
                reads += 1;
            }
            reads
        });
        for _ in 0..100 {
            Tools::new(&sandbox)
                .takes(
                    "nft -f -",
                    "insert rule ip t base drop\nadd element ip t s { 10.0.0.0/8 }\nflush chain ip t leaf\n",
                )
                .unwrap();
            kept.restore(&mut nft).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        reads.join().unwrap()
    });
    assert!(reads > 100, "{reads}");
    let after = snapshot(&mut nft);
    assert_eq!(handles(&after), handles(&kept));
    assert!(kept.plan(&after, exact()).unwrap().is_empty());
}

/// Tables outside of the selection stay as they are now, also those that the snapshot contains or lacks.
#[test]
fn selected_tables_are_restored_alone() {
    let sandbox = with(
        "table ip a { chain c { accept; }; }; table ip b { chain c { accept; }; }; table ip gone { }",
    );
    let tools = Tools::new(&sandbox);
    let mut nft = connect(&sandbox);
    let kept = snapshot(&mut nft);
    tools.run("nft delete table ip gone");
    tools.run("nft add table ip other");
    tools.run("nft add table ip new");
    tools.run("nft add rule ip a c drop");
    tools.run("nft add rule ip b c drop");
    let other = tools.run("nft -a list table ip b");
    let table = |name| chainwright::nft::TableId::new(Family::IP, name);
    let restored = kept
        .restore_tables(&mut nft, &[table("a"), table("gone"), table("new")])
        .unwrap();
    let name = |name: &str| vec![(Family::IP, bstr::BString::from(name))];
    assert_eq!(restored.replaced, name("a"));
    assert_eq!(restored.added, name("gone"));
    assert_eq!(restored.removed, name("new"));
    assert_eq!(tools.run("nft -a list table ip b"), other);
    let tables: Vec<_> = ["a", "b", "other", "gone"]
        .map(|name| format!("table ip {name}"))
        .into();
    let listed = tools.run("nft list tables");
    assert_eq!(listed.lines().collect::<Vec<_>>(), tables);
    assert!(!tools.run("nft list table ip a").contains("drop"));
}

#[cfg(feature = "diff")]
#[test]
fn after_a_restore_nothing_differs_despite_kernel_chosen_names() {
    // The new rule and the old one contain an anonymous set: both take a number.
    let text = "table ip t { chain c {
        ip saddr { 192.0.2.1, 192.0.2.2 } drop
        tcp dport vmap { 22 : accept, 80 : drop }
        ip daddr 192.0.2.9 jump { counter; }
    }; }";
    let sandbox = with(text);
    let mut nft = connect(&sandbox);
    let kept = snapshot(&mut nft);
    let tools = Tools::new(&sandbox);
    tools.run("nft flush chain ip t c");
    tools
        .takes("nft -f -", "add rule ip t c udp dport { 53, 54 } accept\n")
        .unwrap();
    let options = DiffOptions::default();
    assert!(!kept.diff(&snapshot(&mut nft), options).unwrap().is_empty());
    kept.restore(&mut nft).unwrap();
    let after = snapshot(&mut nft);
    assert!(
        kept.diff(&after, options).unwrap().is_empty(),
        "{}",
        kept.diff(&after, options).unwrap()
    );
    // Their content is compared.
    let other = with(&text.replace("192.0.2.2 }", "192.0.2.3 }"));
    let difference = kept
        .diff(&snapshot(&mut connect(&other)), options)
        .unwrap()
        .to_string();
    let lines: Vec<_> = difference.lines().collect();
    assert_eq!(lines.len(), 2, "{difference}");
    assert!(lines[0].starts_with("- rule ip t c: ") && lines[0].contains("020200c0"));
    assert!(lines[1].starts_with("+ rule ip t c: ") && lines[1].contains("030200c0"));
}

#[test]
fn an_interval_set_is_recreated_only_if_it_would_overflow() {
    let sandbox = with("table ip t { set s { type ipv4_addr; }; }");
    let probe = snapshot(&mut connect(&sandbox));
    let probe = probe
        .table(Family::IP, "t")
        .and_then(|table| table.set("s"));
    let size = match probe.expect("no such set").set().count() {
        Some(_) => 4,
        // Every listed element counts: two per interval, and nft's end below all of them.
        None => {
            println!(
                "{}the number of elements of a set, available since Linux 6.16: it counts an interval as two",
                kernel::LACKS
            );
            2 * 4 + 1
        }
    };
    let set = |elements: &str| {
        format!(
            "table ip t {{ set s {{ type ipv4_addr; flags interval; size {size}; elements = {{ {elements} }} }}; }}"
        )
    };
    let three = "10.0.0.0/24, 10.0.2.0/24, 10.0.4.0/24";
    let plan = plan_between(&set(three), &set("10.0.0.0/24, 10.0.2.0/24, 10.0.6.0/24"));
    assert!(plan.ends_with("replaced:\n"), "{plan}");
    let other = "10.0.0.0/24, 10.0.6.0/24, 10.0.8.0/24, 10.0.10.0/24";
    let plan = plan_between(&set(three), &set(other));
    assert!(plan.ends_with("replaced:\nset ip t s\n"), "{plan}");
}

/// Others commit all the time, in this table and in another; each of their changes survives every reconciliation, or
/// is reverted by it, and none is lost.
#[test]
fn reconciliation_succeeds_despite_concurrent_commits() {
    /// Number of tables of the other writer, in addition to the one that both change.
    const OTHERS: usize = 16;
    let sandbox = with("table ip t { chain c { counter accept; }; }");
    let mut nft = connect(&sandbox).with_retry(Retry::within(Duration::from_secs(120)));
    let desired = nft.snapshot(Scope::table(Family::IP, "t")).unwrap();
    let stop = AtomicBool::new(false);
    let (done, made) = std::thread::scope(|scope| {
        let rival = scope.spawn(|| {
            let mut nft = connect(&sandbox);
            let mut random = Random::new();
            let mut made = 0;
            while !stop.load(Ordering::Relaxed) {
                let mut tx = Transaction::new();
                tx.add(&Table::new(Family::IP, format!("other{}", made % OTHERS)))
                    .unwrap();
                tx.add(&Chain::new(Family::IP, "t", format!("foreign{made}")))
                    .unwrap();
                nft.commit(&tx).unwrap();
                made += 1;
                // Sometimes leaves time for a complete read and a commit, even in a debug build on a busy machine.
                std::thread::sleep(random.within(Duration::from_millis(10)));
            }
            made
        });
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let mut done = 0;
        while done < 50 {
            let plan = nft.reconcile(&desired, PlanOptions::default()).unwrap();
            done += usize::from(!plan.is_empty());
        }
        stop.store(true, Ordering::Relaxed);
        (done, rival.join().unwrap())
    });
    nft.reconcile(&desired, PlanOptions::default()).unwrap();
    let after = snapshot(&mut nft);
    let table = after.table(Family::IP, "t").unwrap();
    assert_eq!((done, table.chains().len()), (50, 1));
    assert_eq!(after.tables().len(), 1 + made.min(OTHERS));
    let handle = |snapshot: &Snapshot| {
        let chain = snapshot.chain(Family::IP, "t", "c").unwrap();
        chain.rules().next().unwrap().handle()
    };
    assert_eq!(handle(&after), handle(&desired));
}
