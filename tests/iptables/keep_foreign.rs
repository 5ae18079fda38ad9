//! Tables are restored while agents have chains in them: the agents' chains are never missing, and all others come from
//! the text.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::accounting::prepared;
use crate::common::iptables::{ALL, open, real_save, state, tool};
use crate::common::random::Random;
use crate::common::tools::Tools;
use crate::common::{OnDrop, from_env, sandbox};
use bstr::BStr;
use chainwright::Retry;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Backend, ChainKind, Counters, Error, Family, Iptables, Rule, Tables};
use chainwright::legacy::LockPolicy;

/// The text that an operator restores at boot.
const TEXT: &str = "\
*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:operators - [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -j operators
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A OUTPUT -m mark --mark 0x7 -j ACCEPT
-A operators -p tcp -m limit --limit 3/min -j ACCEPT
-A operators -j DROP
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -o eth1 -j MASQUERADE
COMMIT
";

/// kube-proxy's chains and jumps, which it inserts before all others.
fn kubernetes() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/kube-proxy-1.36-iptables.save"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = Vec::new();
    let mut jumps: Vec<String> = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').take(2).collect();
        match &*words {
            [chain, ..] if chain.starts_with(':') && !chain.starts_with(":KUBE-") => {}
            ["-A", chain] if !chain.starts_with("KUBE-") => {
                jumps.push(line.replacen("-A", "-I", 1));
            }
            [word, ..] if *word == "COMMIT" => {
                lines.extend(jumps.drain(..).rev());
                lines.push(line.to_owned());
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

fn is_of_kubernetes(name: &BStr) -> bool {
    name.starts_with(b"KUBE-")
}

/// The chain that kube-proxy changes.
const BUSY: &str = "KUBE-MARK-MASQ";

/// The parts of each table that belong to Kubernetes: chains with their rules and counters, jumps to them, policies.
fn of_kubernetes(tables: &Tables) -> Vec<String> {
    let mut found = Vec::new();
    for table in tables.iter() {
        for chain in table.chains() {
            let its = is_of_kubernetes(chain.name());
            let at = format!("{} {}", table.name(), chain.name());
            if let ChainKind::Builtin { policy, .. } = chain.kind() {
                found.push(format!("{at} {policy:?}"));
            } else if its {
                found.push(format!(
                    "{at} {}",
                    if chain.name() == BUSY {
                        0
                    } else {
                        chain.rule_count()
                    }
                ));
            }
            if its {
                continue;
            }
            for rule in chain.rules() {
                let entry = rule.entry().unwrap();
                if entry.rule.jump_chain().is_some_and(is_of_kubernetes) {
                    found.push(format!("{at} {:?} {}", entry.counters, entry.rule));
                }
            }
        }
    }
    found
}

/// Changes everything except policies and what belongs to Kubernetes.
fn disturb(iptables: &mut Iptables, random: &mut Random) -> Result<(), Error> {
    let number = random.below(6);
    iptables.update_tables(&[(Family::Ipv4, "filter"), (Family::Ipv4, "nat")], |edit| {
        let mut filter = edit.table(Family::Ipv4, "filter")?;
        let drop = Rule::parse(Family::Ipv4, "-s 192.0.2.0/24 -j DROP").unwrap();
        match number {
            0 => filter.append("INPUT", &drop)?,
            1 => filter.insert("FORWARD", 2, &drop, Counters::default())?,
            2 => {
                filter.ensure_chain("stray")?;
                filter.append("stray", &drop)?;
                filter.append("OUTPUT", &Rule::jump("stray"))?;
            }
            3 => filter.flush("operators")?,
            4 => {
                let last = filter.rules("INPUT")?.len();
                filter.delete_number("INPUT", last)?;
            }
            _ => {
                let other = Rule::parse(Family::Ipv4, "-o eth2 -j MASQUERADE").unwrap();
                let mut nat = edit.table(Family::Ipv4, "nat")?;
                nat.insert("POSTROUTING", 1, &other, Counters::default())?;
            }
        }
        Ok(())
    })
}

fn open_locked(sandbox: &chainwright_testing::Sandbox, backend: Backend, lock: &Path) -> Iptables {
    let wait = Retry::within(Duration::from_secs(60));
    open(sandbox, backend).with_lock(LockPolicy::Path(lock.into()), wait)
}

/// As often as `systemctl restart iptables` may occur, at random moments, while an agent writes and an observer reads.
#[test]
fn foreign_rules_are_never_missing() {
    let times = from_env("KEEP_FOREIGN_TIMES", 40);
    let lock = tempfile::NamedTempFile::new().unwrap();
    for backend in [Backend::Nft, Backend::Legacy] {
        let sandbox = prepared();
        let tools = Tools::new(&sandbox);
        let restore = tool(backend, Family::Ipv4, "-restore");
        tools.run_with(&restore, TEXT);
        open(&sandbox, backend)
            .restore(
                Family::Ipv4,
                kubernetes(),
                &RestoreOptions {
                    noflush: true,
                    ..RestoreOptions::default()
                },
            )
            .unwrap();
        let first = real_save(&tools, backend, Family::Ipv4);
        let expected = of_kubernetes(&open(&sandbox, backend).read(Family::Ipv4, &[]).unwrap());
        assert!(expected.len() > 900, "{}", expected.len());
        let (done, looks, writes, restored) = (
            AtomicBool::new(false),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut observer = open(&sandbox, backend);
                while !done.load(Ordering::Acquire) {
                    let seen = of_kubernetes(&observer.read(Family::Ipv4, &[]).unwrap());
                    let differ = expected.iter().zip(&seen).find(|(one, other)| one != other);
                    assert_eq!(differ, None, "{backend}");
                    assert_eq!(seen.len(), expected.len(), "{backend}");
                    looks.fetch_add(1, Ordering::Release);
                }
            });
            scope.spawn(|| {
                let mut agent = open_locked(&sandbox, backend, lock.path());
                let mut random = Random::new();
                let rule = Rule::parse(Family::Ipv4, "-s 198.51.100.1/32 -j RETURN").unwrap();
                let (mut seen, mut without) = (0, 0);
                while !done.load(Ordering::Acquire) {
                    for put in [true, false] {
                        let written = agent.update(Family::Ipv4, "nat", |nat| match put {
                            true => nat.append(BUSY, &rule),
                            false => nat.delete(BUSY, &rule),
                        });
                        written.unwrap();
                    }
                    writes.fetch_add(1, Ordering::Release);
                    // Now and then leaves time for a complete read and a commit, even in a debug build; on a busy
                    // machine without such time, waits for the agent's next commit.
                    std::thread::sleep(random.within(Duration::from_millis(60)));
                    let now = restored.load(Ordering::Acquire);
                    without = if now == seen { without + 1 } else { 0 };
                    seen = now;
                    while without > 40
                        && restored.load(Ordering::Acquire) == seen
                        && !done.load(Ordering::Acquire)
                    {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
            let _end = OnDrop(|| done.store(true, Ordering::Release));
            let mut random = Random::new();
            let mut iptables = open_locked(&sandbox, backend, lock.path());
            for _ in 0..times {
                disturb(&mut iptables, &mut random).unwrap();
                std::thread::sleep(random.within(Duration::from_millis(3)));
                iptables
                    .restore_keeping(
                        Family::Ipv4,
                        TEXT,
                        &RestoreOptions::default(),
                        is_of_kubernetes,
                    )
                    .unwrap();
                restored.fetch_add(1, Ordering::Release);
            }
        });
        let (looks, writes) = (looks.into_inner(), writes.into_inner());
        println!("{backend}: {looks} reads, {writes} writes");
        assert!(looks > 5 && writes > 5, "{looks} reads, {writes} writes");
        assert_eq!(real_save(&tools, backend, Family::Ipv4), first, "{backend}");
    }
}

/// Rules and chains of others keep their positions, whatever the text contains; the text's versions of them are
/// ignored.
#[test]
fn positions_are_kept() {
    for (backend, family) in ALL {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let before = "\
*filter
:INPUT ACCEPT [1:2]
:FORWARD ACCEPT [3:4]
:OUTPUT ACCEPT [5:6]
:KUBE-A - [0:0]
:KUBE-B - [0:0]
:gone - [0:0]
:stays - [0:0]
-A INPUT -j KUBE-A
-A INPUT -p tcp -j ACCEPT
-A INPUT -g KUBE-B
-A INPUT -p udp -j gone
-A FORWARD -j KUBE-A
-A OUTPUT -p udp -j DROP
-A OUTPUT -j KUBE-B
-A KUBE-A -p tcp -j DROP
-A KUBE-B -j KUBE-A
-A gone -j DROP
-A stays -p udp -j KUBE-A
-A stays -p tcp -j RETURN
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A OUTPUT -j MARK --set-xmark 0x1/0x1
COMMIT
";
        tools.run_with(&tool(backend, family, "-restore"), before);
        let policies: Vec<String> = real_save(&tools, backend, family)
            .lines()
            .filter(|line| line.contains("PUT A"))
            .map(str::to_owned)
            .collect();
        // Any line that iptables-restore accepts; outdated chains of others.
        let text = "\
*filter
:INPUT ACCEPT [0:0]
:KUBE-A - [0:0]
:KUBE-OLD - [0:0]
:stays - [0:0]
:new - [0:0]
-N newer
-A INPUT -j KUBE-OLD
-A INPUT -p tcp -j ACCEPT
-A INPUT -p udp -j new
-A INPUT -j KUBE-A
-I INPUT -p 47 -j newer
-A KUBE-A -p udp -j ACCEPT
-A new -j ACCEPT
-A new -p udp -j DROP
-D new -j ACCEPT
-A stays -p tcp -j RETURN
-E newer newest
COMMIT
";
        let mut iptables = open(&sandbox, backend);
        let options = RestoreOptions {
            test: true,
            ..RestoreOptions::default()
        };
        let untouched = state(&sandbox, backend);
        let tried = iptables.restore_keeping(family, text, &options, is_of_kubernetes);
        assert_eq!(tried.unwrap().removed, 1);
        assert_eq!(state(&sandbox, backend), untouched);

        let kept = iptables
            .restore_keeping(family, text, &RestoreOptions::default(), is_of_kubernetes)
            .unwrap();
        assert_eq!((kept.chains, kept.skipped, kept.removed), (2, 5, 1));
        let saved = real_save(&tools, backend, family);
        assert!(saved.contains("-A OUTPUT -j MARK --set-xmark 0x1/0x1"));
        let (_, filter) = saved.split_once("*filter").unwrap();
        let (filter, _) = filter.split_once("COMMIT").unwrap();
        let lines = filter.lines();
        let rules: Vec<_> = lines
            .filter_map(|line| Some(line.split_once("-A ")?.1))
            .collect();
        for rule in [
            "KUBE-A -p tcp -j DROP",
            "KUBE-B -j KUBE-A",
            "new -p udp -j DROP",
            "stays -p udp -j KUBE-A",
            "stays -p tcp -j RETURN",
        ] {
            assert!(rules.contains(&rule), "{rule}: {saved}");
        }
        let of = |chain: &str| -> Vec<&str> {
            let rules = rules.iter().filter_map(|rule| rule.strip_prefix(chain));
            rules.collect()
        };
        assert_eq!(
            of("INPUT"),
            [
                " -j KUBE-A",
                " -p gre -j newest",
                " -p tcp -j ACCEPT",
                " -g KUBE-B",
                " -p udp -j new",
            ],
            "{backend} {family}"
        );
        assert_eq!(of("FORWARD"), [" -j KUBE-A"]);
        assert_eq!(of("OUTPUT"), [" -j KUBE-B"]);
        assert!(!saved.contains(":gone") && !saved.contains("KUBE-OLD"));
        for policy in policies {
            assert!(saved.contains(&policy), "{policy}: {saved}");
        }

        // Nothing remains to be done, and nothing is changed.
        let untouched = state(&sandbox, backend);
        let again = iptables
            .restore_keeping(family, text, &RestoreOptions::default(), is_of_kubernetes)
            .unwrap();
        assert!(again.rules.is_empty());
        match backend {
            // nf_tables sets policies again.
            Backend::Nft => assert_eq!(real_save(&tools, backend, family), saved),
            Backend::Legacy => assert_eq!(state(&sandbox, backend), untouched),
        }
    }
}

/// A removed chain to which a kept chain jumps; an invalid line; one that the kernel refuses.
#[test]
fn a_failed_restore_changes_nothing() {
    for (backend, family) in ALL {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let before = "*filter\n:KUBE-A - [0:0]\n:theirs - [0:0]\n-A KUBE-A -j theirs\nCOMMIT\n";
        tools.run_with(&tool(backend, family, "-restore"), before);
        let mut iptables = open(&sandbox, backend);
        let untouched = state(&sandbox, backend);
        for (text, message) in [
            ("*filter\n-A INPUT -j ACCEPT\nCOMMIT\n", "theirs"),
            ("*filter\n:theirs - [0:0]\n-A INPUT -j nix\nCOMMIT\n", "nix"),
            ("*filter\n:theirs - [0:0]\n-A INPUT --nix\nCOMMIT\n", "nix"),
            (
                "*filter\n:theirs - [0:0]\n-A nix -j ACCEPT\nCOMMIT\n",
                "nix",
            ),
            (
                "*filter\n:theirs - [0:0]\n:theirs - [0:0]\n-N theirs\nCOMMIT\n",
                "theirs",
            ),
        ] {
            let done = iptables.restore_keeping(
                family,
                text,
                &RestoreOptions::default(),
                is_of_kubernetes,
            );
            let error = done.err().unwrap_or_else(|| panic!("{backend}: {text}"));
            assert!(error.nothing_applied(), "{error}");
            let report = crate::common::report(&error);
            assert!(report.contains(message), "{backend} {text}: {report}");
            assert_eq!(state(&sandbox, backend), untouched, "{backend} {text}");
        }
    }
}

/// If a text has a table twice, the second one counts; a chain may have the name of a former target; and kept rules
/// stay between their neighbours.
#[test]
fn texts_are_interpreted_like_iptables_restore() {
    for (backend, family) in ALL {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let before = "*filter\n:KUBE-A - [0:0]\n-A INPUT -p tcp -j ACCEPT\n-A INPUT -j KUBE-A\n-A INPUT -j DROP\nCOMMIT\n";
        tools.run_with(&tool(backend, family, "-restore"), before);
        let text = "*filter\n:OLD - [0:0]\n-A INPUT -p 47 -j ACCEPT\nCOMMIT\n\
                    *filter\n:LOG - [0:0]\n-A INPUT -p udp -j ACCEPT\n-A INPUT -j REJECT\n-A INPUT -p esp\nCOMMIT\n";
        open(&sandbox, backend)
            .restore_keeping(family, text, &RestoreOptions::default(), is_of_kubernetes)
            .unwrap();
        let save = real_save(&tools, backend, family);
        let rules: Vec<_> = save
            .lines()
            .filter_map(|line| line.split_once("-A INPUT "))
            .map(|(_, rule)| rule.split(" --reject").next().unwrap())
            .collect();
        let expected = ["-p udp -j ACCEPT", "-j KUBE-A", "-j REJECT", "-p esp"];
        assert_eq!(rules, expected, "{backend} {family}");
        assert!(save.contains(":LOG ") && !save.contains(":OLD"), "{save}");
    }
}

/// The target of a rule that iptables cannot express is unknown: it is neither removed nor silently ignored.
#[test]
fn inexpressible_rules_are_not_lost() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("iptables-nft-restore", TEXT);
    tools.run("iptables-nft -N KUBE-A");
    tools.run("nft insert rule ip filter INPUT meta cpu 0 jump KUBE-A");
    let untouched = state(&sandbox, Backend::Nft);
    let error = open(&sandbox, Backend::Nft)
        .restore_keeping(
            Family::Ipv4,
            TEXT,
            &RestoreOptions::default(),
            is_of_kubernetes,
        )
        .unwrap_err();
    assert!(
        matches!(error, Error::InexpressibleRule { number: 1, .. }),
        "{error}"
    );
    assert!(error.nothing_applied());
    assert_eq!(state(&sandbox, Backend::Nft), untouched);
}
