//! Changes of tables while others read, write and send: no intermediate state is visible, and nothing
//! is lost.

mod writers;

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::iptables::{ALL, open, state, tool};
use crate::common::needs::find;
use crate::common::tools::Tools;
use crate::common::{OnDrop, connect, packets, sandbox};
use chainwright::Retry;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Backend, Counters, Family, Iptables, Rule};
use chainwright::legacy::{self, LockPolicy, Lookup};
use chainwright::nft::{self, Connection, RuleFilter, Scope};
use chainwright_testing::Sandbox;

fn noflush() -> RestoreOptions {
    RestoreOptions {
        noflush: true,
        ..RestoreOptions::default()
    }
}

fn rule(family: Family, text: &str) -> Rule {
    Rule::parse(family, text).unwrap()
}

/// Everything in nf_tables: chain, handle and content of each rule.
fn rules_of_nft(sandbox: &Sandbox) -> Vec<(String, u64, String)> {
    let snapshot = connect(sandbox).snapshot(Scope::all()).unwrap();
    let mut all = Vec::new();
    for table in snapshot.tables() {
        for chain in table.chains() {
            for rule in chain.rules() {
                let name = format!("{} {}", table.table().name(), chain.chain().name());
                let content = format!("{:02x?}", rule.to_builder().expressions);
                let data = format!("{content} {:02x?}", rule.to_builder().userdata);
                all.push((name, rule.handle(), data));
            }
        }
    }
    all
}

/// Requests for what is already the case.
fn nothing(iptables: &mut Iptables, family: Family) {
    iptables
        .update(family, "filter", |table| {
            table.ensure_chain("ours")?;
            assert!(table.has_chain("INPUT")?);
            assert!(!table.has_chain("nix")?);
            assert!(table.contains("ours", &rule(family, "-p tcp -j RETURN"))?);
            assert!(!table.contains("FORWARD", &rule(family, "-p tcp"))?);
            assert!(table.chains()?.iter().any(|chain| chain == "ours"));
            assert_eq!(table.rules("ours")?.len(), 2);
            Ok(())
        })
        .unwrap();
    let texts = ["", "# nothing\n", "*filter\nCOMMIT\n"];
    for text in texts {
        iptables.restore(family, text, &noflush()).unwrap();
    }
    let check = "*filter\n-C ours -p tcp -j RETURN\nCOMMIT\n";
    iptables.restore(family, check, &noflush()).unwrap();
    let test = RestoreOptions {
        test: true,
        ..RestoreOptions::default()
    };
    iptables
        .restore(family, "*filter\n-A INPUT -j DROP\nCOMMIT\n", &test)
        .unwrap();
}

#[test]
fn unchanged_rules_are_not_rewritten() {
    for (backend, family) in ALL {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let text = "*filter\n:INPUT DROP [1:2]\n:FORWARD ACCEPT [3:4]\n:OUTPUT ACCEPT [5:6]\n\
                    :ours - [0:0]\n[7:8] -A INPUT -j ours\n[9:10] -A ours -p tcp -j RETURN\n\
                    [11:12] -A ours -m comment --comment \"two words\" -j ACCEPT\n\
                    [13:14] -A OUTPUT -m limit --limit 3/min -j REJECT\nCOMMIT\n";
        tools.run_with(&tool(backend, family, "-restore -c"), text);
        if backend == Backend::Nft {
            let ip = if family == Family::Ipv4 { "ip" } else { "ip6" };
            // A rule that iptables cannot express, in the same table.
            let address = if family == Family::Ipv4 {
                "1.2.3.4"
            } else {
                "fd00::1"
            };
            tools.run_with(
                "nft -f -",
                &format!(
                    "table {ip} filter {{
                        set some {{ type {ip}v_addr; elements = {{ {address} }} }}
                        chain FORWARD {{ }}
                        chain native {{
                            {ip} saddr @some counter packets 5 bytes 6 drop
                            meta l4proto {{ tcp, udp }} counter packets 7 bytes 8
                        }}
                        chain INPUT {{
 ct mark 7 counter packets 9 bytes 10 jump native
 }}
                    }}"
                )
                .replace("ipv_addr", "ipv4_addr")
                .replace("ip6v_addr", "ipv6_addr"),
            );
        }
        let mut iptables = open(&sandbox, backend);
        let before = state(&sandbox, backend);
        nothing(&mut iptables, family);
        assert_eq!(state(&sandbox, backend), before);

        // Adds one rule.
        let new = rule(family, "-p udp -j DROP");
        let counters = Counters {
            packets: 21,
            bytes: 22,
        };
        match backend {
            Backend::Nft => {
                let old = rules_of_nft(&sandbox);
                assert_eq!(old.len(), 7);
                let generation = connect(&sandbox).generation().unwrap().number();
                let insert = |at, chain: &str, iptables: &mut Iptables| {
                    iptables
                        .update(family, "filter", |table| {
                            table.insert(chain, at, &new, counters)
                        })
                        .unwrap();
                };
                for (times, (at, chain)) in [(2, "INPUT"), (2, "ours"), (1, "OUTPUT")]
                    .into_iter()
                    .enumerate()
                {
                    insert(at, chain, &mut iptables);
                    let known: Vec<_> = old.iter().map(|(_, handle, _)| *handle).collect();
                    let mut now = rules_of_nft(&sandbox);
                    assert_eq!(now.len(), old.len() + times + 1);
                    now.retain(|(_, handle, _)| known.contains(handle));
                    assert_eq!(now, old);
                }
                let after = connect(&sandbox).generation().unwrap().number();
                assert_eq!(after, generation + 3);
            }
            Backend::Legacy => {
                let connection = sandbox.run(|| legacy::Connection::open(family.into()));
                let connection = connection.unwrap().unwrap();
                let rules = || {
                    let table = connection.read("filter").unwrap().in_use().unwrap();
                    let mut all = Vec::new();
                    for chain in table.chains() {
                        for rule in chain.rules() {
                            all.push((
                                chain.name().to_string(),
                                rule.counters(),
                                rule_bytes(&rule),
                            ));
                        }
                    }
                    all
                };
                let mut old = rules();
                iptables
                    .update(family, "filter", |table| {
                        table.insert("ours", 2, &new, counters)
                    })
                    .unwrap();
                let mut now = rules();
                let at = now.iter().position(|(_, c, _)| c.packets == 21).unwrap();
                assert_eq!(now.remove(at).0, "ours");
                // The offset of a jump's target changes with the rules before it.
                for all in [&mut old, &mut now] {
                    all.retain(|(_, counters, _)| counters.packets != 7);
                }
                assert_eq!(now, old);
                assert_eq!(now.len(), 3);
            }
        }
    }
}

/// A rule's bytes without `comefrom`, which the kernel writes for its own use: the hooks that lead
/// there, or an offset.
fn rule_bytes(rule: &legacy::RuleRef<'_>) -> Vec<u8> {
    let mut bytes = rule.bytes().to_vec();
    // In struct ipt_entry and struct ip6t_entry it is between the offsets and the counters.
    let at = match rule.header() {
        legacy::Header::Ipv4(_) => 92,
        _ => 144,
    };
    bytes[at..at + 4].fill(0);
    bytes
}

/// A content for one table; two of them have different numbers of rules.
fn contents(rules: usize, chain: &str) -> String {
    let mut text = format!("*filter\n:both - [0:0]\n:{chain} - [0:0]\n");
    for number in 0..rules {
        text += &format!(
            "-A both -m comment --comment {chain}-{number} -m mark --mark {number:#x} -j {chain}\n"
        );
    }
    text + "-A INPUT -j both\nCOMMIT\n"
}

/// While texts are restored repeatedly, no reader sees an intermediate state.
#[track_caller]
fn nothing_between(backend: Backend, options: &RestoreOptions, turns: usize) {
    let sandbox = sandbox();
    let texts = [contents(300, "one"), contents(421, "two")];
    let mut iptables = open(&sandbox, backend);
    let restore = |iptables: &mut Iptables, turn: usize| {
        let text = &texts[turn % 2];
        if options.noflush {
            // Without the jump, which would be added repeatedly.
            let text = text.replace("-A INPUT -j both\n", "");
            iptables.restore(Family::Ipv4, text, options).unwrap();
        } else {
            iptables.restore(Family::Ipv4, text, options).unwrap();
        }
    };
    restore(&mut iptables, 0);
    let stop = AtomicBool::new(false);
    let seen = [const { AtomicUsize::new(0) }; 2];
    let looked_up = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let watch = scope.spawn(|| {
            let mut watcher = open(&sandbox, backend);
            while !stop.load(Ordering::Relaxed) {
                let tables = watcher.read(Family::Ipv4, &["filter"]).unwrap();
                let table = tables.table("filter").unwrap();
                let rules = table.chain("both").unwrap().rule_count();
                let (which, other) = match rules {
                    300 => (0, "one"),
                    421 => (1, "two"),
                    other => panic!("{other} rules"),
                };
                assert!(table.chain(other).is_some());
                seen[which].fetch_add(1, Ordering::Relaxed);
            }
        });
        let lookup = scope.spawn(|| match backend {
            Backend::Nft => {
                let mut connection = connect(&sandbox);
                while !stop.load(Ordering::Relaxed) {
                    assert!(
                        connection
                            .chain_exists(nft::Family::IP, "filter", "both")
                            .unwrap()
                    );
                    looked_up.fetch_add(1, Ordering::Relaxed);
                }
            }
            Backend::Legacy => {
                let connection = sandbox.run(|| legacy::Connection::open(legacy::Family::Ipv4));
                let connection = connection.unwrap().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let Lookup::InUse(table) = connection.read("filter").unwrap() else {
                        panic!("no table");
                    };
                    assert!(table.chain("both").is_some());
                    looked_up.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let mut turn = 0;
        // Until each content was seen, and at least this often.
        while turn < turns
            || seen.iter().any(|seen| seen.load(Ordering::Relaxed) == 0)
            || looked_up.load(Ordering::Relaxed) < 100
        {
            assert!(!watch.is_finished() && !lookup.is_finished(), "{turn}");
            turn += 1;
            restore(&mut iptables, turn);
        }
    });
}

/// Runs `work` while another thread restores a text again and again, under the lock of the passed function.
fn beside_restores(
    backend: Backend,
    text: &str,
    options: &RestoreOptions,
    work: impl FnOnce(&Sandbox, &dyn Fn() -> Iptables),
) {
    let sandbox = sandbox();
    let directory = tempfile::tempdir().unwrap();
    let policy = LockPolicy::Path(directory.path().join("lock"));
    let opened = || {
        let wait = Retry::within(Duration::from_secs(60));
        open(&sandbox, backend).with_lock(policy.clone(), wait)
    };
    opened().restore(Family::Ipv4, text, options).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        scope.spawn(|| {
            let mut writer = opened();
            while !stop.load(Ordering::Relaxed) {
                writer.restore(Family::Ipv4, text, options).unwrap();
                // Gives others a turn.
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        work(&sandbox, &opened);
    });
}

/// Changes that read tables that are constantly replaced: they see complete tables, or make no change.
#[track_caller]
fn read_whole(backend: Backend, options: &RestoreOptions, changes: usize) {
    let always = rule(Family::Ipv4, "-m comment --comment always");
    let text = contents(300, "one").replace(
        "-A both -m comment --comment one-250 ",
        "-A both -m comment --comment always\n-A both -m comment --comment one-250 ",
    );
    let text = text.replace("-A INPUT -j both\n", "");
    beside_restores(backend, &text, options, |_, opened| {
        let mut iptables = opened();
        for turn in 0..changes {
            let mut seen = Vec::new();
            iptables
                .update(Family::Ipv4, "filter", |table| {
                    assert!(table.has_chain("both")?);
                    if !table.contains("both", &always)? {
                        seen.push(format!("{:?}", table.rules("both")));
                        table.append("both", &always)?;
                        table.new_chain(format!("not-whole-{turn}"))?;
                    }
                    Ok(())
                })
                .unwrap();
            let tables = iptables.read(Family::Ipv4, &["filter"]).unwrap();
            let table = tables.table("filter").unwrap();
            let rules = table.chain("both").unwrap().rule_count();
            // An update that saw an incomplete chain has added the chain `not-whole-…`.
            let added = table.chain(format!("not-whole-{turn}")).is_some();
            assert_eq!(
                (rules, added),
                (301, false),
                "{turn}: an update saw {seen:#?}"
            );
        }
    });
}

#[test]
fn changes_read_whole_chains_of_nf_tables() {
    read_whole(Backend::Nft, &RestoreOptions::default(), 60);
    read_whole(Backend::Nft, &noflush(), 60);
}

#[test]
fn changes_read_whole_chains_of_legacy_tables() {
    read_whole(Backend::Legacy, &RestoreOptions::default(), 50);
}

#[test]
fn restored_texts_are_atomic_in_nf_tables() {
    nothing_between(Backend::Nft, &RestoreOptions::default(), 20);
    nothing_between(Backend::Nft, &noflush(), 20);
}

#[test]
fn restored_texts_are_atomic_in_legacy_tables() {
    nothing_between(Backend::Legacy, &RestoreOptions::default(), 20);
    nothing_between(Backend::Legacy, &noflush(), 20);
}

/// Packets are sent while the table is changed repeatedly: the rule that counts them stays, and counts
/// each.
#[track_caller]
fn no_packet_is_lost(backend: Backend, changes: usize) {
    let sandbox = sandbox();
    let text = "*filter\n-A OUTPUT -p udp -m comment --comment counts -j ACCEPT\nCOMMIT\n";
    let mut iptables = open(&sandbox, backend);
    iptables.restore(Family::Ipv4, text, &noflush()).unwrap();
    let counting = rule(Family::Ipv4, "-p udp -m comment --comment counts -j ACCEPT");
    let before = rule(Family::Ipv4, "-m comment --comment before -p tcp");
    let count = |iptables: &mut Iptables| {
        let tables = iptables.read(Family::Ipv4, &["filter"]).unwrap();
        let chain = tables.table("filter").unwrap().chain("OUTPUT").unwrap();
        let mut entries = chain.rules().map(|rule| rule.entry().unwrap());
        let entry = entries.find(|entry| entry.rule == counting).unwrap();
        entry.counters.packets
    };
    let sent = packets::while_sending(&sandbox, |sent| {
        for turn in 0..changes {
            // The rule has another position each time.
            iptables
                .update(Family::Ipv4, "filter", |table| match turn % 2 {
                    0 => table.insert("OUTPUT", 1, &before, Counters::default()),
                    _ => table.delete("OUTPUT", &before),
                })
                .unwrap();
            if turn % 100 == 0 {
                let sent = sent.load(Ordering::Relaxed);
                assert!(count(&mut iptables) >= sent, "{turn}");
            }
        }
    });
    assert_eq!(count(&mut iptables), sent);
    println!("{sent} packets, {changes} changes");
}

#[test]
fn a_legacy_rule_counts_each_packet_through_a_thousand_changes() {
    no_packet_is_lost(Backend::Legacy, 1000);
}

#[test]
fn a_rule_of_nf_tables_counts_each_packet_through_a_thousand_changes() {
    no_packet_is_lost(Backend::Nft, 1000);
}

/// A kernel increments the generation before it applies a commit: a read of one generation waits for the rest.
#[test]
fn reads_of_one_generation_are_complete() {
    let text = contents(300, "one").replace("-A INPUT -j both\n", "");
    beside_restores(Backend::Nft, &text, &noflush(), |sandbox, _| {
        let mut nft = sandbox.run(Connection::open).unwrap().unwrap();
        let filter = RuleFilter::chain(nft::Family::IP, "filter", "both");
        let mut complete = 0;
        while complete < 500 {
            let before = nft.stable_generation().unwrap();
            let mut rules = 0;
            let listed = nft.rules(filter.clone()).unwrap().for_each(|_| rules += 1);
            if listed.is_ok() && nft.generation().unwrap() == before {
                assert_eq!(rules, 300, "after {complete} complete reads");
                complete += 1;
            }
        }
    });
}

#[test]
fn waiting_for_a_commit_creates_no_generation() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let before = nft.stable_generation().unwrap();
    assert_eq!(nft.stable_generation().unwrap(), before);
}
