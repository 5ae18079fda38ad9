//! A kubelet's chains, created by the library and by kubelet's own iptables commands.

mod found;
mod removing;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::tools::Tools;
use crate::common::{OnDrop, connect, report, sandbox};
use chainwright::iptables::Family;
use chainwright::nft::{self, Chain, Connection, RuleFilter, Scope, Table, Transaction};
use chainwright_kube::kubelet::Kubelet;
use chainwright_testing::Sandbox;

const FAMILIES: [(&str, &str); 2] = [("iptables-nft", "ip"), ("ip6tables-nft", "ip6")];

const LOCALNET: &str = "KUBE-FIREWALL -t filter -m comment --comment \
                        \"block incoming localnet connections\" --dst 127.0.0.0/8 \
                        ! --src 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT \
                        -j DROP";

/// The commands of a starting kubelet (`kubelet_network_linux.go`), one per line. `-A` and `-I` run
/// only if `-C` of the same rule fails.
fn commands(up_to_1_26: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (tool, family) in FAMILIES {
        let v4 = family == "ip";
        let mut line = |options: &str| lines.push(format!("{tool} -w 5 {options}"));
        if up_to_1_26 {
            line("-N KUBE-MARK-DROP -t nat");
            line("-A KUBE-MARK-DROP -t nat -j MARK --or-mark 0x00008000");
            line("-N KUBE-FIREWALL -t filter");
            line(
                "-A KUBE-FIREWALL -t filter -m comment --comment \
                 \"kubernetes firewall for dropping marked packets\" \
                 -m mark --mark 0x00008000/0x00008000 -j DROP",
            );
            if v4 {
                line(&format!("-A {LOCALNET}"));
            }
            line("-I OUTPUT -t filter -j KUBE-FIREWALL");
            line("-I INPUT -t filter -j KUBE-FIREWALL");
            line("-N KUBE-MARK-MASQ -t nat");
            line("-N KUBE-POSTROUTING -t nat");
            line("-A KUBE-MARK-MASQ -t nat -j MARK --or-mark 0x00004000");
            line(
                "-I POSTROUTING -t nat -m comment --comment \
                 \"kubernetes postrouting rules\" -j KUBE-POSTROUTING",
            );
            line(
                "-A KUBE-POSTROUTING -t nat -m mark ! --mark 0x00004000/0x00004000 \
                 -j RETURN",
            );
            line("-A KUBE-POSTROUTING -t nat -j MARK --xor-mark 0x00004000");
            line(
                "-A KUBE-POSTROUTING -t nat -m comment --comment \
                 \"kubernetes service traffic requiring SNAT\" -j MASQUERADE --random-fully",
            );
            line("-N KUBE-IPTABLES-HINT -t mangle");
        } else {
            line("-N KUBE-IPTABLES-HINT -t mangle");
            if v4 {
                line("-N KUBE-FIREWALL -t filter");
                line("-I OUTPUT -t filter -j KUBE-FIREWALL");
                line("-I INPUT -t filter -j KUBE-FIREWALL");
                line(&format!("-A {LOCALNET}"));
            }
        }
        for table in ["mangle", "nat", "filter"] {
            line(&format!("-N KUBE-KUBELET-CANARY -t {table}"));
        }
    }
    lines
}

/// `-C` of each rule.
fn checks(up_to_1_26: bool) -> Vec<String> {
    commands(up_to_1_26)
        .iter()
        .filter(|line| !line.contains(" -N "))
        .map(|line| line.replacen(" -A ", " -C ", 1).replacen(" -I ", " -C ", 1))
        .collect()
}

fn run_kubelet(tools: &Tools<'_>, up_to_1_26: bool) {
    let mut checks = checks(up_to_1_26).into_iter();
    for line in commands(up_to_1_26) {
        if !line.contains(" -N ") {
            assert!(!tools.succeeds(&checks.next().unwrap()), "{line}");
        }
        tools.run(&line);
    }
}

/// The output of `iptables-nft-save` and `ip6tables-nft-save`, with counters and without the
/// comment lines.
fn saves(tools: &Tools<'_>) -> String {
    let saves = FAMILIES.map(|(tool, _)| tools.save(&format!("{tool}-save -c")));
    saves.concat()
}

/// A sandbox, a connection into it, and a kubelet of the requested version.
struct Node {
    sandbox: Sandbox,
    nft: Connection,
    kubelet: Kubelet,
}

impl Node {
    fn new(up_to_1_26: bool) -> Self {
        let sandbox = sandbox();
        Self {
            nft: connect(&sandbox),
            kubelet: Kubelet::new().up_to_1_26(up_to_1_26),
            sandbox,
        }
    }

    /// Creates a node whose chains come from [`Kubelet::ensure`].
    fn ensured(up_to_1_26: bool) -> Self {
        let mut node = Self::new(up_to_1_26);
        assert!(!node.ensure().is_empty());
        node
    }

    fn tools(&self) -> Tools<'_> {
        Tools::new(&self.sandbox)
    }

    fn generation(&mut self) -> u32 {
        self.nft.generation().unwrap().number()
    }

    /// Calls `ensure` and returns the created items as text; they equal the result of `check`, and
    /// take one commit, if any.
    #[track_caller]
    fn ensure(&mut self) -> Vec<String> {
        let missing = self.kubelet.check(&mut self.nft).unwrap();
        let before = self.generation();
        let made = self.kubelet.ensure(&mut self.nft).unwrap();
        assert_eq!(made, missing);
        let commits = u32::from(!made.is_empty());
        assert_eq!(self.generation(), before.wrapping_add(commits));
        assert_eq!(self.kubelet.check(&mut self.nft).unwrap(), []);
        made.iter().map(ToString::to_string).collect()
    }

    /// Calls `remove` and returns the removed and remaining items as text; takes one commit, if
    /// any.
    #[track_caller]
    fn remove(&mut self) -> [Vec<String>; 2] {
        let before = self.generation();
        let removed = self.kubelet.remove(&mut self.nft).unwrap();
        let commits = u32::from(!removed.removed.is_empty());
        assert_eq!(self.generation(), before.wrapping_add(commits));
        [&removed.removed, &removed.left]
            .map(|items| items.iter().map(ToString::to_string).collect())
    }
}

#[test]
fn ensure_matches_kubelets_commands() {
    for old in [false, true] {
        let by_kubelet = sandbox();
        run_kubelet(&Tools::new(&by_kubelet), old);
        let mut node = Node::new(old);
        node.ensure();
        let (ours, theirs) = (saves(&node.tools()), saves(&Tools::new(&by_kubelet)));
        assert_eq!(ours, theirs);
        assert_eq!(ours.contains("KUBE-POSTROUTING"), old, "{ours}");

        // The same as nft lists it, as far as the rules' encoding does not matter: chains with
        // their hooks and priorities, including those that iptables-nft-save prints in any case.
        let chains = |sandbox| {
            let mut chains: Vec<String> = Tools::new(sandbox)
                .nft_json("list chains")
                .into_iter()
                .filter_map(|mut object| {
                    let chain = object.get_mut("chain")?.as_object_mut()?;
                    chain.remove("handle");
                    Some(serde_json::to_string(chain).unwrap())
                })
                .collect();
            chains.sort();
            chains
        };
        assert_eq!(chains(&node.sandbox), chains(&by_kubelet));
    }
}

#[test]
fn ensure_is_one_commit() {
    for old in [false, true] {
        let mut node = Node::new(old);
        let before = node.generation();
        node.kubelet.ensure(&mut node.nft).unwrap();
        assert_eq!(node.generation(), before.wrapping_add(1));
        node.kubelet.ensure(&mut node.nft).unwrap();
        node.kubelet.check(&mut node.nft).unwrap();
        assert_eq!(node.generation(), before.wrapping_add(1));
        node.kubelet.remove(&mut node.nft).unwrap();
        assert_eq!(node.generation(), before.wrapping_add(2));
    }
}

#[test]
fn iptables_finds_each_rule_that_ensure_created() {
    for old in [false, true] {
        let node = Node::ensured(old);
        let tools = node.tools();
        for check in checks(old) {
            assert!(tools.succeeds(&check), "{check}");
        }
        // This proves that the check works.
        assert!(!tools.succeeds("iptables-nft -C INPUT -j KUBE-KUBELET-CANARY"));
        // kubelet treats them as its own: it deletes each by its text.
        for check in checks(old) {
            tools.run(&check.replacen(" -C ", " -D ", 1));
        }
        assert!(!saves(&tools).contains("-A "));
    }
}

/// The rules have the encoding of iptables 1.8.7, which every later version reads completely.
#[test]
fn rules_are_encoded_like_iptables_1_8_7() {
    let mut node = Node::ensured(true);
    let mut encoded = Vec::new();
    for (table, chain) in [
        ("filter", "KUBE-FIREWALL"),
        ("nat", "KUBE-POSTROUTING"),
        ("filter", "INPUT"),
    ] {
        let filter = RuleFilter::chain(nft::Family::IP, table, chain);
        let listing = node.nft.rules(filter).unwrap();
        listing
            .for_each(|rule| {
                assert_eq!(rule.userdata(), None);
                let expressions = rule.expressions().unwrap();
                let names: Vec<_> = expressions.map(|e| e.unwrap().name.to_string()).collect();
                encoded.push(names.join(" "));
            })
            .unwrap();
    }
    assert_eq!(
        encoded,
        [
            "match match counter immediate",
            "payload cmp payload cmp match match counter immediate",
            "match counter immediate",
            "counter target",
            "match counter target",
            "counter immediate",
        ]
    );
}

#[test]
fn edits_of_other_rules_by_iptables_change_nothing() {
    for old in [false, true] {
        let mut node = Node::ensured(old);
        let tools = node.tools();
        tools.run("iptables-nft -I INPUT -s 10.1.2.3 -j ACCEPT");
        tools.run("iptables-nft -A KUBE-FIREWALL -j ACCEPT");
        tools.run("ip6tables-nft -t mangle -A KUBE-IPTABLES-HINT -j RETURN");
        tools.run("iptables-nft -t nat -N ours");
        tools.run("iptables-nft -t nat -I POSTROUTING -p tcp -m tcp --dport 80 -j ours");
        // A rule that occurs twice is present as well.
        tools.run("iptables-nft -A OUTPUT -j KUBE-FIREWALL");
        for check in checks(old) {
            assert!(tools.succeeds(&check), "{check}");
        }
        let edited = saves(&tools);
        assert_eq!(edited.matches("-j ours").count(), 1);
        assert_eq!(node.ensure(), [""; 0]);
        assert_eq!(saves(&node.tools()), edited);
    }
}

#[test]
fn rules_of_kubelets_commands_are_complete() {
    for old in [false, true] {
        let mut node = Node::new(old);
        let tools = node.tools();
        run_kubelet(&tools, old);
        let made = saves(&tools);
        assert_eq!(node.ensure(), [""; 0]);
        assert_eq!(saves(&node.tools()), made);
        // It is removed like the library's own.
        let [removed, left] = node.remove();
        assert_eq!((left, removed.len()), (vec![], if old { 35 } else { 12 }));
        assert!(!saves(&node.tools()).contains("KUBE"));
    }
}

#[test]
fn ensure_can_be_limited_to_one_family() {
    let mut node = Node::new(true);
    node.kubelet = Kubelet::new().up_to_1_26(true).only(Family::Ipv6);
    let made = node.ensure();
    assert!(
        made.iter().all(|item| item.starts_with("ip6 ")),
        "{made:#?}"
    );
    let tools = node.tools();
    assert_eq!(tools.save("iptables-nft-save -c"), "");
    for check in checks(true) {
        if check.starts_with("ip6") {
            assert!(tools.succeeds(&check), "{check}");
        }
    }
}

/// Constant commits by another program, in its own table, cause no failure.
#[test]
fn ensure_completes_despite_concurrent_commits() {
    let mut node = Node::new(false);
    let all = node.kubelet.check(&mut node.nft).unwrap();
    let mut rival = connect(&node.sandbox);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let table = Table::new(nft::Family::INET, "rival");
            let chain = Chain::new(nft::Family::INET, "rival", "chain");
            let (mut add, mut delete) = (Transaction::new(), Transaction::new());
            add.add(&table).unwrap().add(&chain).unwrap();
            delete.delete(&chain).unwrap();
            while !stop.load(Ordering::Relaxed) {
                rival.commit(&add).unwrap();
                rival.commit(&delete).unwrap();
            }
        });
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        // Rounds, and those in which the other program committed.
        let (mut rounds, mut contended) = (0, 0);
        while rounds < 100 || contended < 50 {
            let before = node.generation();
            let made = node.kubelet.ensure(&mut node.nft);
            let made = made.unwrap_or_else(|error| panic!("round {rounds}: {}", report(&error)));
            assert_eq!(made, all, "round {rounds}");
            let removed = node.kubelet.remove(&mut node.nft);
            let removed = removed.unwrap_or_else(|e| panic!("round {rounds}: {}", report(&e)));
            assert_eq!(removed.removed.len(), all.len(), "round {rounds}");
            assert_eq!(removed.left, [], "round {rounds}");
            rounds += 1;
            contended += u32::from(node.generation().wrapping_sub(before) > 2);
            assert!(rounds < 10_000, "the rival committed in {contended} rounds");
        }
    });
}

/// Reading and committing are one step, whatever happens in between: of two that start at the same
/// moment, only one creates each item.
#[test]
fn concurrent_ensures_create_each_rule_once() {
    const ROUNDS: usize = 100;
    let mut node = Node::new(true);
    let all = node.kubelet.check(&mut node.nft).unwrap();
    let mut other = connect(&node.sandbox);
    // There are as many chains and rules as items, and no more.
    let count = |nft: &mut Connection| {
        let (mut chains, mut rules) = (0, 0);
        let listing = nft.chains(Scope::all()).unwrap();
        listing
            .for_each(|chain| chains += usize::from(!chain.is_base()))
            .unwrap();
        let listing = nft.rules(Scope::all()).unwrap();
        listing.for_each(|_| rules += 1).unwrap();
        (chains, rules)
    };
    let rules = all.iter().filter(|item| item.rule.is_some()).count();
    let wanted = (all.len() - rules, rules);
    let start = Barrier::new(2);
    let kubelet = &node.kubelet;
    for round in 0..ROUNDS {
        let work = |nft: &mut Connection| {
            start.wait();
            let made = kubelet.ensure(nft);
            made.unwrap_or_else(|error| panic!("round {round}: {}", report(&error)))
        };
        let (ours, theirs) = thread::scope(|scope| {
            let (work, other) = (&work, &mut other);
            let theirs = scope.spawn(move || work(other));
            (work(&mut node.nft), theirs.join().unwrap())
        });
        assert_eq!(ours.len() + theirs.len(), all.len(), "round {round}");
        assert_eq!(count(&mut node.nft), wanted, "round {round}");

        let (ours, theirs) = thread::scope(|scope| {
            let remove = |nft: &mut Connection| {
                start.wait();
                kubelet.remove(nft).unwrap()
            };
            let other = &mut other;
            let theirs = scope.spawn(move || remove(other));
            (remove(&mut node.nft), theirs.join().unwrap())
        });
        let removed = ours.removed.len() + theirs.removed.len();
        assert_eq!(
            (removed, count(&mut node.nft)),
            (all.len(), (0, 0)),
            "round {round}"
        );
    }
}
