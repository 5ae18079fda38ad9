//! Tables are moved completely from one backend to the other, and every packet meets at least one of them.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::accounting::prepared;
use crate::common::iptables::{open, real_save, state, tool};
use crate::common::tools::Tools;
use crate::common::{OnDrop, sandbox};
use bstr::BStr;
use chainwright::iptables::{Backend, Family, Migration, MigrationError, Policy, Rule, Tables};

/// Source and destination.
const WAYS: [(Backend, Backend); 2] = [
    (Backend::Legacy, Backend::Nft),
    (Backend::Nft, Backend::Legacy),
];

const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

/// Counters, policies, several tables, and rules that the backends encode differently.
fn text(family: Family) -> String {
    let (address, icmp, unreachable) = match family {
        Family::Ipv4 => (
            "10.0.0.0/8",
            "-p icmp -m icmp --icmp-type 8",
            "icmp-port-unreachable",
        ),
        Family::Ipv6 => (
            "fd00::/8",
            "-p ipv6-icmp -m icmp6 --icmpv6-type 128",
            "icmp6-port-unreachable",
        ),
    };
    format!(
        "*filter
:INPUT DROP [1:2]
:FORWARD DROP [3:4]
:OUTPUT ACCEPT [5:6]
:KUBE-A - [0:0]
:deep - [0:0]
:users - [0:0]
[7:8] -A INPUT -i lo -j ACCEPT
[9:10] -A INPUT -s {address} ! -i eth+ -p tcp -m tcp --dport 22:80 -m comment --comment \"two words\" -g users
[11:12] -A INPUT -j KUBE-A
[13:14] -A FORWARD {icmp} -j ACCEPT
[15:16] -A OUTPUT -m mark --mark 0x8000/0x8000 -j DROP
[17:18] -A KUBE-A -j RETURN
[19:20] -A deep -m conntrack ! --ctstate INVALID,NEW -m limit --limit 3/min -j LOG --log-prefix \"a b\"
[21:22] -A deep -j REJECT --reject-with {unreachable}
[23:24] -A users -m statistic --mode random --probability 0.5 -j deep
[25:26] -A users -p udp -m multiport --dports 53,67:68 -j NFLOG --nflog-group 3
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
[1:1] -A OUTPUT -j MARK --set-xmark 0x1/0x1
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
[2:2] -A PREROUTING -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 8080
[3:3] -A POSTROUTING -o eth1 -j MASQUERADE
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
"
    )
}

fn all(keep: &dyn Fn(&BStr) -> bool) -> Migration<'_> {
    Migration {
        families: &FAMILIES,
        keep,
        recreated: &|_| false,
        allow_split: false,
        test: false,
    }
}

/// The tables of a save, sorted by name, with sorted lines where the order has no meaning.
fn tables(save: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = save
        .split("COMMIT\n")
        .map(|table| table.lines().map(str::to_owned).collect())
        .filter(|table: &Vec<String>| table.iter().any(|line| line.contains("-A ")))
        .collect();
    for table in &mut all {
        // Chains are declared in another order, and rules are grouped by chain.
        table.sort_by_key(|line| match line.split_once("-A ") {
            Some((_, rule)) => (2, rule.split(' ').next().unwrap().to_owned()),
            None => (usize::from(!line.starts_with('*')), line.clone()),
        });
    }
    all.sort();
    all
}

/// Number of the required rules of `INPUT` that exist in either backend.
fn rules_there(tables: &Tables) -> usize {
    let input = tables
        .table("filter")
        .and_then(|filter| filter.chain("INPUT"));
    input.map_or(0, |input| input.rule_count())
}

/// Loads the tables of both families. Returns the real tools' saves of them.
fn loaded(tools: &Tools<'_>, from: Backend) -> [String; 2] {
    FAMILIES.map(|family| {
        tools.run_with(&tool(from, family, "-restore -c"), &text(family));
        real_save(tools, from, family)
    })
}

#[test]
fn all_tables_move_with_their_counters() {
    for (from, to) in WAYS {
        let sandbox = prepared();
        let tools = Tools::new(&sandbox);
        let before = loaded(&tools, from);
        let (done, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
        let moved = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut old, mut new) = (open(&sandbox, from), open(&sandbox, to));
                while !done.load(Ordering::Acquire) {
                    // The backend that is written first is read last.
                    let there = rules_there(&old.read(Family::Ipv4, &["filter"]).unwrap());
                    let here = rules_there(&new.read(Family::Ipv4, &["filter"]).unwrap());
                    assert!(there == 3 || here == 3, "{there} {here}");
                    looks.fetch_add(1, Ordering::Release);
                }
            });
            let _end = OnDrop(|| done.store(true, Ordering::Release));
            while looks.load(Ordering::Acquire) < 10 {
                std::thread::yield_now();
            }
            let moved = open(&sandbox, from).migrate_to(&mut open(&sandbox, to), &all(&|_| false));
            let seen = looks.load(Ordering::Acquire);
            while looks.load(Ordering::Acquire) < seen + 2 {
                std::thread::yield_now();
            }
            moved
        })
        .unwrap_or_else(|error| panic!("{from} to {to}: {}", crate::common::report(&error)));
        let printed: Vec<_> = moved
            .iter()
            .map(|one| (one.family, one.table.as_str(), one.chains, one.rules))
            .collect();
        for family in FAMILIES {
            for expected in [
                (family, "filter", 3, 10),
                (family, "mangle", 0, 1),
                (family, "nat", 0, 2),
            ] {
                assert!(printed.contains(&expected), "{from} to {to}: {printed:?}");
            }
        }
        assert_eq!(printed.len(), 6);
        for (family, before) in FAMILIES.into_iter().zip(&before) {
            let now = real_save(&tools, to, family);
            assert_eq!(tables(&now), tables(before), "{from} to {to}");
            let left = real_save(&tools, from, family);
            assert!(
                !left.contains("-A ") && !left.contains(" DROP ") && !left.contains(" - "),
                "{left}"
            );
        }

        // Nothing is left to do.
        let states = [state(&sandbox, from), state(&sandbox, to)];
        let again = open(&sandbox, from).migrate_to(&mut open(&sandbox, to), &all(&|_| false));
        assert!(again.unwrap().is_empty());
        assert_eq!([state(&sandbox, from), state(&sandbox, to)], states);
        // And back.
        open(&sandbox, to)
            .migrate_to(&mut open(&sandbox, from), &all(&|_| false))
            .unwrap();
        for (family, before) in FAMILIES.into_iter().zip(&before) {
            assert_eq!(tables(&real_save(&tools, from, family)), tables(before));
        }
    }
}

/// Agents' chains stay where they are, with the jumps to them, on both sides.
#[test]
fn chains_of_agents_are_kept() {
    let keep = |name: &BStr| name.starts_with(b"KUBE-");
    for (from, to) in WAYS {
        let sandbox = prepared();
        let tools = Tools::new(&sandbox);
        tools.run_with(
            &tool(from, Family::Ipv4, "-restore -c"),
            &text(Family::Ipv4),
        );
        let there = "*filter\n:KUBE-B - [0:0]\n-A INPUT -j KUBE-B\n-A KUBE-B -j DROP\nCOMMIT\n";
        tools.run_with(&tool(to, Family::Ipv4, "-restore"), there);
        // A jump in a chain that moves would disappear with it.
        tools.run(&format!(
            "{} -A users -j KUBE-A",
            tool(from, Family::Ipv4, "")
        ));
        let error = open(&sandbox, from)
            .migrate_to(
                &mut open(&sandbox, to),
                &Migration {
                    allow_split: true,
                    ..all(&keep)
                },
            )
            .unwrap_err();
        let MigrationError::Obstacles(obstacles) = &error else {
            panic!("{error}");
        };
        let chains: Vec<_> = obstacles.iter().map(|one| one.chain.to_string()).collect();
        assert_eq!(chains, ["users"]);
        tools.run(&format!(
            "{} -D users -j KUBE-A",
            tool(from, Family::Ipv4, "")
        ));

        // Separated from adjacent rules, they have another effect: this requires an option.
        let states = [state(&sandbox, from), state(&sandbox, to)];
        let error = open(&sandbox, from)
            .migrate_to(&mut open(&sandbox, to), &all(&keep))
            .unwrap_err();
        let MigrationError::Obstacles(obstacles) = &error else {
            panic!("{error}");
        };
        let chains: Vec<_> = obstacles.iter().map(|one| one.chain.to_string()).collect();
        assert_eq!(chains, ["INPUT", "INPUT"]);
        assert_eq!([state(&sandbox, from), state(&sandbox, to)], states);
        let allow_split = Migration {
            allow_split: true,
            ..all(&keep)
        };
        open(&sandbox, from)
            .migrate_to(&mut open(&sandbox, to), &allow_split)
            .unwrap();
        let rules = |backend| -> Vec<String> {
            let save = real_save(&tools, backend, Family::Ipv4);
            let rules = save
                .lines()
                .filter_map(|line| Some(line.split_once("] -A ")?.1.to_owned()));
            rules.collect()
        };
        assert_eq!(rules(from), ["INPUT -j KUBE-A", "KUBE-A -j RETURN"]);
        let now = rules(to);
        assert_eq!(now.iter().filter(|rule| rule.contains("KUBE-A")).count(), 0);
        assert_eq!(now.iter().filter(|rule| rule.contains("KUBE-B")).count(), 2);
        let input: Vec<_> = now
            .iter()
            .filter(|rule| rule.starts_with("INPUT "))
            .collect();
        assert_eq!((input.len(), input[0].as_str()), (3, "INPUT -j KUBE-B"));
    }
}

/// All obstacles are reported, and nothing is changed on either side.
#[test]
fn obstacles_are_reported_first() {
    for (from, to) in WAYS {
        let sandbox = prepared();
        let tools = Tools::new(&sandbox);
        tools.run_with(
            &tool(from, Family::Ipv4, "-restore -c"),
            &text(Family::Ipv4),
        );
        tools.run_with(
            &tool(to, Family::Ipv4, "-restore"),
            "*filter\n:INPUT DROP [0:0]\n:OUTPUT DROP [0:0]\n:mine - [0:0]\n-A FORWARD -j mine\n-A mine -j ACCEPT\nCOMMIT\n",
        );
        let mut expected = vec![
            "chain FORWARD, table filter",
            "chain OUTPUT, table filter",
            "chain mine, table filter",
        ];
        if from == Backend::Nft {
            tools.run(
                "nft add rule ip nat POSTROUTING ip daddr { 10.0.0.1, 10.0.0.2 } counter accept",
            );
            tools
                .run("nft add chain ip filter early { type filter hook prerouting priority -5 ; }");
            expected.extend([
                "rule 2 of chain POSTROUTING, table nat",
                "chain early, table filter",
            ]);
        }
        let states = [state(&sandbox, from), state(&sandbox, to)];
        let error = open(&sandbox, from)
            .migrate_to(&mut open(&sandbox, to), &all(&|_| false))
            .unwrap_err();
        let MigrationError::Obstacles(obstacles) = &error else {
            panic!("{error}");
        };
        let printed: Vec<_> = obstacles.iter().map(ToString::to_string).collect();
        for obstacle in &expected {
            assert!(
                printed.iter().any(|printed| printed.starts_with(obstacle)),
                "{obstacle}: {printed:#?}"
            );
        }
        assert_eq!(printed.len(), expected.len(), "{printed:#?}");

        // A kept chain that jumps to one that would be removed.
        let keep = |name: &BStr| name == "users" || name == "mine" || name == "early";
        let error = open(&sandbox, from)
            .migrate_to(&mut open(&sandbox, to), &all(&keep))
            .unwrap_err();
        let MigrationError::Obstacles(obstacles) = &error else {
            panic!("{error}");
        };
        let obstacle = obstacles
            .iter()
            .find(|obstacle| obstacle.chain == "users")
            .unwrap();
        assert_eq!(obstacle.rule, Some(1));
        assert_eq!([state(&sandbox, from), state(&sandbox, to)], states);
    }
}

/// A dry run; and an interruption after writing, followed by a repetition.
#[test]
fn migration_can_be_dry_run_and_repeated() {
    for (from, to) in WAYS {
        let sandbox = prepared();
        let tools = Tools::new(&sandbox);
        let before = loaded(&tools, from);
        let states = [state(&sandbox, from), state(&sandbox, to)];
        let tried = Migration {
            test: true,
            ..all(&|_| false)
        };
        let would = open(&sandbox, from)
            .migrate_to(&mut open(&sandbox, to), &tried)
            .unwrap();
        assert_eq!(would.len(), 6);
        let now = [state(&sandbox, from), state(&sandbox, to)];
        assert_eq!(now, states);

        // The state after an interruption.
        tools.run_with(&tool(to, Family::Ipv4, "-restore -c"), &text(Family::Ipv4));
        let moved = open(&sandbox, from)
            .migrate_to(&mut open(&sandbox, to), &all(&|_| false))
            .unwrap();
        for one in &moved {
            assert_eq!(one.existed, one.family == Family::Ipv4, "{one:?}");
        }
        for (family, before) in FAMILIES.into_iter().zip(&before) {
            assert_eq!(tables(&real_save(&tools, to, family)), tables(before));
            assert!(!real_save(&tools, from, family).contains("-A "));
        }
    }
}

/// Without tables there is nothing to move, and none is created.
#[test]
fn without_tables_nothing_is_created() {
    for (from, to) in WAYS {
        let sandbox = sandbox();
        let states = [state(&sandbox, from), state(&sandbox, to)];
        let moved = open(&sandbox, from).migrate_to(&mut open(&sandbox, to), &all(&|_| false));
        assert!(moved.unwrap().is_empty());
        assert_eq!([state(&sandbox, from), state(&sandbox, to)], states);
    }
}

/// Another program changes the old backend's tables after they were copied: none of that is lost.
#[test]
fn concurrent_changes_are_not_removed() {
    for (from, to) in WAYS {
        for change in 0..3 {
            let sandbox = prepared();
            let tools = Tools::new(&sandbox);
            tools.run_with(
                &tool(from, Family::Ipv4, "-restore -c"),
                &text(Family::Ipv4),
            );
            let others = RefCell::new((open(&sandbox, from), open(&sandbox, to)));
            let is_done = Cell::new(false);
            let keep = |_: &BStr| {
                let Ok(mut others) = others.try_borrow_mut() else {
                    return false;
                };
                let (old, new) = &mut *others;
                let written = new.read(Family::Ipv4, &["filter"]).unwrap();
                let is_written = rules_there(&written) == 3;
                if is_written && !is_done.replace(true) {
                    old.update(Family::Ipv4, "filter", |filter| match change {
                        0 => filter.set_policy("OUTPUT", Some(Policy::Drop), None),
                        1 => filter.new_chain("another"),
                        _ => filter.append("OUTPUT", &Rule::jump("users")),
                    })
                    .unwrap();
                }
                false
            };
            let error = open(&sandbox, from)
                .migrate_to(&mut open(&sandbox, to), &all(&keep))
                .unwrap_err();
            let MigrationError::Changed { chain, .. } = &error else {
                panic!("{change}: {error}");
            };
            let expected = if change == 1 { "another" } else { "OUTPUT" };
            assert_eq!(chain, expected);
            for backend in [from, to] {
                let save = real_save(&tools, backend, Family::Ipv4);
                assert_eq!(save.matches("-A INPUT ").count(), 3, "{save}");
            }
        }
    }
}

/// A family that is listed twice is moved once.
#[test]
fn families_are_each_moved_once() {
    let sandbox = prepared();
    let tools = Tools::new(&sandbox);
    tools.run_with("iptables-legacy-restore -c", &text(Family::Ipv4));
    let twice = Migration {
        families: &[Family::Ipv4, Family::Ipv4],
        ..all(&|_| false)
    };
    let (mut old, mut new) = (
        open(&sandbox, Backend::Legacy),
        open(&sandbox, Backend::Nft),
    );
    assert_eq!(old.migrate_to(&mut new, &twice).unwrap().len(), 3);
}
