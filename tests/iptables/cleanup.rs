//! Chains that another program left behind are removed in one step, and nothing else is touched.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::iptables::{ALL, open, real_save, state, tool};
use crate::common::tools::Tools;
use crate::common::{OnDrop, sandbox};
use bstr::{BStr, ByteSlice};
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Backend, Cleanup, Error, Family, TableEdit};
use chainwright::legacy::{self, Lookup, TableEditor};

/// Number of azure-npm's policies.
const POLICIES: usize = 97;

fn is_of_npm(name: &BStr) -> bool {
    name.starts_with(b"AZURE-NPM")
}

/// A table `filter` with the chains that azure-npm leaves behind, among Kubernetes' chains and an operator's.
fn left_behind(family: Family) -> String {
    let address = match family {
        Family::Ipv4 => "10.0.0.1/32",
        Family::Ipv6 => "fd00::1/128",
    };
    let mut chains = String::from(
        ":INPUT DROP [1:2]\n:FORWARD ACCEPT [3:4]\n:OUTPUT ACCEPT [5:6]\n:AZURE-NPM - [0:0]\n\
         :AZURE-NPM-ACCEPT - [0:0]\n:AZURE-NPM-EGRESS - [0:0]\n:AZURE-NPM-INGRESS - [0:0]\n\
         :AZURE-NPM-INGRESS-ALLOW-MARK - [0:0]\n:KUBE-FIREWALL - [0:0]\n:KUBE-FORWARD - [0:0]\n",
    );
    let mut rules = format!(
        "[7:8] -A INPUT -j KUBE-FIREWALL\n\
         [9:10] -A FORWARD -m comment --comment \"kubernetes forwarding rules\" -j KUBE-FORWARD\n\
         [11:12] -A FORWARD -m conntrack --ctstate NEW -j AZURE-NPM\n\
         [13:14] -A FORWARD -s {address} -g AZURE-NPM-ACCEPT\n\
         [15:16] -A FORWARD -j ACCEPT\n\
         -A AZURE-NPM -j AZURE-NPM-INGRESS\n-A AZURE-NPM -j AZURE-NPM-EGRESS\n-A AZURE-NPM -j AZURE-NPM-ACCEPT\n\
         -A AZURE-NPM-ACCEPT -j ACCEPT\n\
         -A AZURE-NPM-INGRESS-ALLOW-MARK -j MARK --set-xmark 0x200/0x200\n\
         -A AZURE-NPM-INGRESS-ALLOW-MARK -j AZURE-NPM-EGRESS\n"
    );
    for number in 0..POLICIES {
        for way in ["INGRESS", "EGRESS"] {
            let chain = format!("AZURE-NPM-{way}-{number:010}");
            let _ = writeln!(chains, ":{chain} - [0:0]");
            let _ = write!(
                rules,
                "-A AZURE-NPM-{way} -m comment --comment {way}-POLICY-ns/p{number} -j {chain}\n\
                 -A {chain} -p tcp -m tcp --dport 222:333 -j MARK --set-xmark 0x400/0x400\n"
            );
        }
    }
    rules += "-A AZURE-NPM-INGRESS -m mark --mark 0x400/0x400 -j DROP\n\
              [17:18] -A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP\n\
              [19:20] -A KUBE-FORWARD -m comment --comment AZURE-NPM -j ACCEPT\n";
    format!("*filter\n{chains}{rules}COMMIT\n")
}

/// The same without azure-npm's chains.
fn without(text: &str) -> String {
    let stays = |line: &&str| {
        let words: Vec<_> = line.split(' ').collect();
        let declares = line.starts_with(":AZURE-NPM");
        let appends = words
            .windows(2)
            .any(|two| two[0] == "-A" && two[1].starts_with("AZURE-NPM"));
        let refers = words
            .windows(2)
            .any(|two| matches!(two[0], "-j" | "-g") && two[1].starts_with("AZURE-NPM"));
        !declares && !appends && !refers
    };
    text.lines()
        .filter(stays)
        .map(|line| format!("{line}\n"))
        .collect()
}

fn load(tools: &Tools<'_>, backend: Backend, family: Family, text: &str) {
    tools.run_with(&tool(backend, family, "-restore -c"), text);
}

/// On either backend and for either family, an observer sees all of them or none.
#[test]
fn leftovers_of_azure_npm_are_removed_atomically() {
    for (backend, family) in ALL {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        load(&tools, backend, family, &left_behind(family));
        let before = real_save(&tools, backend, family);
        assert_eq!(before.matches("\n:AZURE-NPM").count(), 5 + 2 * POLICIES);
        let (done, seen) = (AtomicBool::new(false), [const { AtomicUsize::new(0) }; 2]);
        let gone = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut observer = open(&sandbox, backend);
                let mut last = false;
                while !last {
                    // Read once more when it is done.
                    last = done.load(Ordering::Acquire);
                    let tables = observer.read(family, &["filter"]).unwrap();
                    let filter = tables.table("filter").unwrap();
                    let chains = filter
                        .chains()
                        .filter(|chain| is_of_npm(chain.name()))
                        .count();
                    let forward = filter.chain("FORWARD").unwrap().rule_count();
                    let all = match (chains, forward) {
                        (0, 2) => 0,
                        (chains, 4) if chains == 5 + 2 * POLICIES => 1,
                        part => panic!("only a part was removed: {part:?}"),
                    };
                    seen[all].fetch_add(1, Ordering::Release);
                }
            });
            let _end = OnDrop(|| done.store(true, Ordering::Release));
            while seen[1].load(Ordering::Acquire) < 20 {
                std::thread::yield_now();
            }
            let mut iptables = open(&sandbox, backend);
            iptables.clean_up(
                &[Family::Ipv4, Family::Ipv6],
                &Cleanup::chains(&is_of_npm),
                false,
            )
        })
        .unwrap();
        assert!(seen[0].load(Ordering::Acquire) > 0);
        assert_eq!(real_save(&tools, backend, family), without(&before));
        let [gone] = &*gone else {
            panic!("{backend} {family}: {} tables", gone.len());
        };
        assert_eq!((gone.family, &*gone.table), (family, "filter"));
        assert_eq!(gone.chains.len(), 5 + 2 * POLICIES);
        let lines = before.matches("-A ").count() - without(&before).matches("-A ").count();
        assert_eq!(gone.rules.len(), lines);

        // Nothing is left to do, and nothing is changed.
        let before = state(&sandbox, backend);
        let mut iptables = open(&sandbox, backend);
        let again = iptables.clean_up(&[family], &Cleanup::chains(&is_of_npm), false);
        assert!(again.unwrap().is_empty());
        assert_eq!(state(&sandbox, backend), before);
    }
}

/// Creates no table, of any backend or family; a dry run changes nothing.
#[test]
fn a_dry_run_creates_and_changes_nothing() {
    for (backend, family) in ALL {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let mut iptables = open(&sandbox, backend);
        let both = [Family::Ipv4, Family::Ipv6];
        let all = Cleanup {
            table: None,
            chains: &|_| true,
            comments: &|_| true,
        };
        let nothing = state(&sandbox, backend);
        assert!(iptables.clean_up(&both, &all, false).unwrap().is_empty());
        assert_eq!(state(&sandbox, backend), nothing);

        load(&tools, backend, family, &left_behind(family));
        let before = state(&sandbox, backend);
        let would = iptables
            .clean_up(&both, &Cleanup::chains(&is_of_npm), true)
            .unwrap();
        assert_eq!(would[0].chains.len(), 5 + 2 * POLICIES);
        assert_eq!(state(&sandbox, backend), before);
        // In another table.
        let of_nat = Cleanup {
            table: Some("nat"),
            ..all
        };
        assert!(iptables.clean_up(&both, &of_nat, false).unwrap().is_empty());
        assert_eq!(state(&sandbox, backend), before);

        // All chains except the built-in ones, with the jumps to them; rules with comments.
        let before = real_save(&tools, backend, family);
        let gone = iptables.clean_up(&both, &all, false).unwrap();
        assert_eq!(gone.len(), 1);
        let stays = |line: &&str| {
            let is_builtin = [":INPUT", ":FORWARD", ":OUTPUT"];
            let declares = is_builtin.iter().any(|chain| line.starts_with(chain));
            declares || line.ends_with("-A FORWARD -j ACCEPT") || !line.starts_with([':', '['])
        };
        let expected: String = before
            .lines()
            .filter(stays)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(expected.lines().count(), 6);
        assert_eq!(real_save(&tools, backend, family), expected);
    }
}

/// Removes rules by their comments, whichever program wrote them.
#[test]
fn rules_are_removed_by_comment() {
    for (backend, family) in ALL {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let text = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:mine - [0:0]\n\
                    [1:1] -A INPUT -m comment --comment \"cni: net1\" -j ACCEPT\n[2:2] -A INPUT -j mine\n\
                    [3:3] -A INPUT -m comment --comment \"cni: net2\" -j DROP\n\
                    [4:4] -A mine -m comment --comment \"cni: net1\" -j RETURN\nCOMMIT\n";
        load(&tools, backend, family, text);
        let before = real_save(&tools, backend, family);
        let what = Cleanup {
            table: None,
            chains: &|_| false,
            comments: &|comment| comment == "cni: net1",
        };
        let gone = open(&sandbox, backend)
            .clean_up(&[family], &what, false)
            .unwrap();
        let rules: Vec<_> = gone[0]
            .rules
            .iter()
            .map(|(chain, rule)| format!("{chain}: {}", rule.as_ref().unwrap()))
            .collect();
        assert_eq!(
            rules,
            [
                "INPUT: -m comment --comment \"cni: net1\" -j ACCEPT",
                "mine: -m comment --comment \"cni: net1\" -j RETURN"
            ]
        );
        let rest: String = before
            .lines()
            .filter(|line| !line.contains("net1"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(real_save(&tools, backend, family), rest);
    }
}

/// The library cannot remove an nft rule that jumps to a chain, because it is no iptables rule: the kernel keeps the
/// chain, nothing changes, and the error names the chain.
#[test]
fn errors_name_chains_that_cannot_be_removed() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    load(
        &tools,
        Backend::Nft,
        Family::Ipv4,
        &left_behind(Family::Ipv4),
    );
    tools.run("nft add rule ip filter FORWARD tcp dport { 80, 443 } jump AZURE-NPM-EGRESS");
    let before = state(&sandbox, Backend::Nft);
    let mut iptables = open(&sandbox, Backend::Nft);
    let error = iptables
        .clean_up(&[Family::Ipv4], &Cleanup::chains(&is_of_npm), false)
        .unwrap_err();
    assert!(error.nothing_applied());
    let message = crate::common::report(&error);
    assert!(
        message.contains("AZURE-NPM-EGRESS") && message.contains("EBUSY"),
        "{message}"
    );
    assert_eq!(state(&sandbox, Backend::Nft), before);
}

/// Another program adds it again before the check that it is gone.
#[test]
fn reports_chains_that_were_added_again() {
    let sandbox = sandbox();
    load(
        &Tools::new(&sandbox),
        Backend::Nft,
        Family::Ipv4,
        &left_behind(Family::Ipv4),
    );
    let other = RefCell::new(open(&sandbox, Backend::Nft));
    let calls = Cell::new(0);
    let remaining = |name: &BStr| {
        calls.set(calls.get() + usize::from(name == "INPUT"));
        if name == "INPUT" && calls.get() == 2 {
            let mut other = other.borrow_mut();
            let make = |table: &mut TableEdit<'_>| table.new_chain("AZURE-NPM-NEW");
            other.update(Family::Ipv4, "filter", make).unwrap();
        }
        is_of_npm(name)
    };
    let mut iptables = open(&sandbox, Backend::Nft);
    let result = iptables.clean_up(&[Family::Ipv4], &Cleanup::chains(&remaining), false);
    let error = result.expect_err("cleanup should report the chain");
    let Error::Recreated(again) = &error else {
        panic!("{error}");
    };
    assert!(!error.nothing_applied());
    assert_eq!(again.chains, ["AZURE-NPM-NEW"]);
    assert!(error.to_string().contains("AZURE-NPM-NEW"), "{error}");
}

/// A table with two chains of one name, which the kernel accepts, is not changed, and the error names a remedy.
#[test]
fn chains_of_one_name_are_left_alone() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    for line in ["-N AA1", "-N AA2", "-A INPUT -j AA1", "-A INPUT -j AA2"] {
        tools.run(&format!("iptables-legacy {line}"));
    }
    let forged = sandbox.run(|| {
        let connection = legacy::Connection::open(legacy::Family::Ipv4).unwrap();
        let Lookup::InUse(table) = connection.read("filter").unwrap() else {
            panic!("filter should be in use");
        };
        let bytes = table.entries().replace("AA2", "AA1");
        let forged = legacy::Table::from_bytes(*table.info(), &bytes).unwrap();
        connection
            .replace(&mut TableEditor::of(&forged).finish().unwrap())
            .unwrap();
    });
    forged.unwrap();
    let mut iptables = open(&sandbox, Backend::Legacy);
    let cleanup = Cleanup::chains(&|name| name == "AA1");
    let cleaned = iptables.clean_up(&[Family::Ipv4], &cleanup, false);
    let error = cleaned.unwrap_err().to_string();
    for part in ["table filter", "named AA1", "restoring the whole table"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(tools.run("iptables-legacy -S").matches("-j AA1").count(), 2);
    let text = "*filter\n:AA1 - [0:0]\nCOMMIT\n";
    let restored = iptables.restore(Family::Ipv4, text, &RestoreOptions::default());
    restored.unwrap();
    assert_eq!(tools.run("iptables-legacy -S").matches("AA1").count(), 1);
}
