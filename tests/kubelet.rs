//! A kubelet's chains, made here and by kubelet's own iptables commands.

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use chainwright::iptables::Family;
use chainwright::kube::kubelet::Kubelet;
use chainwright::netns::Sandbox;
use chainwright::nft::{self, Chain, Connection, Filter, Table, Transaction};
use common::tools::Tools;
use common::{OnDrop, connect, report, sandbox};

const FAMILIES: [(&str, &str); 2] = [("iptables-nft", "ip"), ("ip6tables-nft", "ip6")];

const LOCALNET: &str = "KUBE-FIREWALL -t filter -m comment --comment \
                        \"block incoming localnet connections\" --dst 127.0.0.0/8 \
                        ! --src 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT \
                        -j DROP";

/// What a kubelet runs when it starts (`kubelet_network_linux.go`), a line each. `-A` and `-I` are
/// run only if `-C` of the same rule fails.
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

/// What `iptables-nft-save` and `ip6tables-nft-save` print, with counters and without the comment
/// lines.
fn saves(tools: &Tools<'_>) -> String {
    let saves = FAMILIES.map(|(tool, _)| tools.save(&format!("{tool}-save -c")));
    saves.concat()
}

/// A sandbox, a connection into it, and a kubelet of the age asked for.
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

    /// Whose chains were made by [`Kubelet::ensure`].
    fn ensured(up_to_1_26: bool) -> Self {
        let mut node = Self::new(up_to_1_26);
        assert!(!node.ensure().is_empty());
        node
    }

    fn tools(&self) -> Tools<'_> {
        Tools::new(&self.sandbox)
    }

    fn generation(&mut self) -> u32 {
        self.nft.generation().unwrap().0
    }

    /// What `ensure` did, in words; it is what `check` found before, and one commit, if anything.
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

    /// What `remove` took away and what it left, in words; it is one commit, if anything.
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
fn what_ensure_makes_is_what_kubelets_commands_make() {
    for old in [false, true] {
        let by_kubelet = sandbox();
        run_kubelet(&Tools::new(&by_kubelet), old);
        let mut node = Node::new(old);
        node.ensure();
        let (ours, theirs) = (saves(&node.tools()), saves(&Tools::new(&by_kubelet)));
        assert_eq!(ours, theirs);
        assert_eq!(ours.contains("KUBE-POSTROUTING"), old, "{ours}");

        // The same in nft's terms, as far as the rules' encoding does not show: chains with their
        // hooks and priorities, among them those that iptables-nft-save prints in any case.
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
fn the_whole_of_it_is_one_commit() {
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
fn iptables_finds_each_rule_that_ensure_made() {
    for old in [false, true] {
        let node = Node::ensured(old);
        let tools = node.tools();
        for check in checks(old) {
            assert!(tools.succeeds(&check), "{check}");
        }
        // It is the check that says so.
        assert!(!tools.succeeds("iptables-nft -C INPUT -j KUBE-KUBELET-CANARY"));
        // And it takes them for its own: it deletes each by its text.
        for check in checks(old) {
            tools.run(&check.replacen(" -C ", " -D ", 1));
        }
        assert!(!saves(&tools).contains("-A "));
    }
}

/// The rules are encoded as iptables 1.8.7 does it, which every later version reads back whole.
#[test]
fn rules_are_written_as_iptables_1_8_7_writes_them() {
    let mut node = Node::ensured(true);
    let mut encoded = Vec::new();
    for (table, chain) in [
        ("filter", "KUBE-FIREWALL"),
        ("nat", "KUBE-POSTROUTING"),
        ("filter", "INPUT"),
    ] {
        let filter = Filter::chain(nft::Family::IP, table, chain);
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
fn edits_by_iptables_beside_them_change_nothing() {
    for old in [false, true] {
        let mut node = Node::ensured(old);
        let tools = node.tools();
        tools.run("iptables-nft -I INPUT -s 10.1.2.3 -j ACCEPT");
        tools.run("iptables-nft -A KUBE-FIREWALL -j ACCEPT");
        tools.run("ip6tables-nft -t mangle -A KUBE-IPTABLES-HINT -j RETURN");
        tools.run("iptables-nft -t nat -N ours");
        tools.run("iptables-nft -t nat -I POSTROUTING -p tcp -m tcp --dport 80 -j ours");
        // What stands twice is there as well.
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
fn what_kubelets_commands_made_is_complete() {
    for old in [false, true] {
        let mut node = Node::new(old);
        let tools = node.tools();
        run_kubelet(&tools, old);
        let made = saves(&tools);
        assert_eq!(node.ensure(), [""; 0]);
        assert_eq!(saves(&node.tools()), made);
        // And is removed as ours is.
        let [removed, left] = node.remove();
        assert_eq!((left, removed.len()), (vec![], if old { 35 } else { 12 }));
        assert!(!saves(&node.tools()).contains("KUBE"));
    }
}

/// Rules are compared by what they do.
#[test]
fn a_rule_counts_if_it_does_the_same_and_only_then() {
    let mut node = Node::ensured(true);
    let tools = node.tools();
    // As nft writes it: without a counter, with the comment elsewhere.
    tools.run("iptables-nft -F INPUT");
    tools.run("iptables-nft -t nat -F POSTROUTING");
    tools.run("nft add rule ip filter INPUT jump KUBE-FIREWALL");
    tools.run(
        "nft add rule ip nat POSTROUTING counter jump KUBE-POSTROUTING \
         comment \\\"kubernetes postrouting rules\\\"",
    );
    assert_eq!(node.ensure(), [""; 0]);

    // Narrower, wider, somewhere else.
    let tools = node.tools();
    tools.run("iptables-nft -R INPUT 1 -s 10.0.0.0/8 -j KUBE-FIREWALL");
    tools.run("iptables-nft -D OUTPUT -j KUBE-FIREWALL");
    tools.run("iptables-nft -A FORWARD -j KUBE-FIREWALL");
    // What iptables 1.8.7 makes of the rule that 1.8.8 wrote, by saving and restoring it.
    tools.run(
        "ip6tables-nft -R KUBE-FIREWALL 1 -m comment --comment \
         \"kubernetes firewall for dropping marked packets\" -j DROP",
    );
    // Another mark, another mask.
    tools.run("iptables-nft -t nat -R KUBE-MARK-DROP 1 -j MARK --or-mark 0x00018000");
    tools.run("iptables-nft -t nat -R KUBE-MARK-MASQ 1 -j MARK --set-mark 0x00004000");
    let made = node.ensure();
    let marked = "-A KUBE-FIREWALL -m comment --comment \"kubernetes firewall for dropping marked \
                  packets\" -m mark --mark 0x8000/0x8000 -j DROP";
    assert_eq!(
        made,
        [
            "ip filter: -A OUTPUT -j KUBE-FIREWALL",
            "ip filter: -A INPUT -j KUBE-FIREWALL",
            "ip nat: -A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000",
            "ip nat: -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
            &format!("ip6 filter: {marked}"),
        ]
    );
}

#[test]
fn what_is_damaged_is_repaired_and_nothing_else() {
    // Kubelet's age, what iptables does to the chains, and what is made again.
    let localnet = "ip filter: -A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment \
                    --comment \"block incoming localnet connections\" -m conntrack ! --ctstate \
                    RELATED,ESTABLISHED,DNAT -j DROP";
    let (input, output) = (
        "ip filter: -A INPUT -j KUBE-FIREWALL",
        "ip filter: -A OUTPUT -j KUBE-FIREWALL",
    );
    let masq = |family: &str| {
        [
            format!("{family} nat: -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN"),
            format!("{family} nat: -A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0"),
            format!(
                "{family} nat: -A KUBE-POSTROUTING -m comment --comment \
                 \"kubernetes service traffic requiring SNAT\" -j MASQUERADE --random-fully"
            ),
        ]
    };
    let (masq4, masq6) = (masq("ip"), masq("ip6"));
    let damages: &[(bool, &[&str], &[&str])] = &[
        (
            false,
            &["iptables-nft -t mangle -X KUBE-IPTABLES-HINT"],
            &["ip mangle: chain KUBE-IPTABLES-HINT"],
        ),
        (
            false,
            &[
                "ip6tables-nft -t mangle -X KUBE-IPTABLES-HINT",
                "iptables-nft -t nat -X KUBE-KUBELET-CANARY",
            ],
            &[
                "ip nat: chain KUBE-KUBELET-CANARY",
                "ip6 mangle: chain KUBE-IPTABLES-HINT",
            ],
        ),
        (false, &["iptables-nft -D INPUT -j KUBE-FIREWALL"], &[input]),
        (false, &["iptables-nft -F KUBE-FIREWALL"], &[localnet]),
        (false, &["iptables-nft -F"], &[localnet, output, input]),
        (
            false,
            &["iptables-nft -F", "iptables-nft -X"],
            &[
                "ip filter: chain KUBE-KUBELET-CANARY",
                "ip filter: chain KUBE-FIREWALL",
                localnet,
                output,
                input,
            ],
        ),
        (
            false,
            &["nft delete table ip6 nat", "nft flush table ip filter"],
            &[
                localnet,
                output,
                input,
                "ip6 nat: chain KUBE-KUBELET-CANARY",
            ],
        ),
        // In the wrong place: what comes behind it has to follow.
        (
            true,
            &[
                "iptables-nft -t nat -D KUBE-POSTROUTING 1",
                "iptables-nft -t nat -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
            ],
            &[&masq4[1], &masq4[2]],
        ),
        (
            true,
            &["iptables-nft -t nat -D KUBE-POSTROUTING 2"],
            &[&masq4[1], &masq4[2]],
        ),
        (
            true,
            &["ip6tables-nft -t nat -D KUBE-POSTROUTING 3"],
            &[&masq6[2]],
        ),
        (
            true,
            &[
                "iptables-nft -t nat -F KUBE-MARK-DROP",
                "iptables-nft -t nat -D POSTROUTING 1",
            ],
            &[
                "ip nat: -A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000",
                "ip nat: -A POSTROUTING -m comment --comment \"kubernetes postrouting rules\" -j \
                 KUBE-POSTROUTING",
            ],
        ),
        (
            true,
            &[
                "ip6tables-nft -D KUBE-FIREWALL 1",
                "ip6tables-nft -D OUTPUT 1",
            ],
            &[
                "ip6 filter: -A KUBE-FIREWALL -m comment --comment \"kubernetes firewall for \
                 dropping marked packets\" -m mark --mark 0x8000/0x8000 -j DROP",
                "ip6 filter: -A OUTPUT -j KUBE-FIREWALL",
            ],
        ),
    ];
    for (old, damage, repaired) in damages {
        let mut node = Node::ensured(*old);
        let whole = saves(&node.tools());
        for line in *damage {
            node.tools().run(line);
        }
        let mut made = node.ensure();
        let mut repaired = repaired.to_vec();
        made.sort();
        repaired.sort_unstable();
        assert_eq!(made, repaired, "{damage:?}");
        assert_eq!(saves(&node.tools()), whole, "{damage:?}");
    }
}

/// What iptables itself damaged of what iptables itself made.
#[test]
fn rules_of_iptables_are_put_in_order_as_well() {
    let mut node = Node::new(true);
    let tools = node.tools();
    run_kubelet(&tools, true);
    let whole = saves(&tools);
    tools.run("iptables-nft -t nat -D KUBE-POSTROUTING 1");
    tools.run("iptables-nft -t nat -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN");
    tools.run("iptables-nft -t nat -I KUBE-POSTROUTING 2 -s 10.9.9.9 -j ACCEPT -c 3 300");
    assert_eq!(node.ensure().len(), 2);
    let foreign = "[3:300] -A KUBE-POSTROUTING -s 10.9.9.9/32 -j ACCEPT\n";
    let repaired = saves(&node.tools());
    assert!(repaired.contains(foreign), "{repaired}");
    assert_eq!(repaired.replace(foreign, ""), whole);
}

#[test]
fn a_chain_with_a_policy_keeps_it_and_its_counters() {
    let mut node = Node::new(true);
    let tools = node.tools();
    tools.run_with(
        "iptables-nft-restore --counters",
        "*filter\n:INPUT DROP [7:700]\n:OUTPUT ACCEPT [8:800]\n\
         [9:900] -A INPUT -i lo -j ACCEPT\nCOMMIT\n\
         *nat\n:POSTROUTING DROP [1:100]\nCOMMIT\n",
    );
    node.ensure();
    let saved = saves(&node.tools());
    for line in [
        ":INPUT DROP [7:700]",
        ":OUTPUT ACCEPT [8:800]",
        ":POSTROUTING DROP [1:100]",
        "[9:900] -A INPUT -i lo -j ACCEPT",
    ] {
        assert!(saved.lines().any(|l| l == line), "{line} in {saved}");
    }
    node.remove();
    let saved = saves(&node.tools());
    assert!(saved.contains(":INPUT DROP [7:700]"), "{saved}");
    assert!(
        saved.contains("[9:900] -A INPUT -i lo -j ACCEPT"),
        "{saved}"
    );
}

/// The rules that are nobody's but the test's, with their handles.
fn foreign(tools: &Tools<'_>) -> String {
    let ruleset = tools.run("nft -a list ruleset");
    let foreign = ruleset.lines().filter(|line| line.contains("10.1.2.3"));
    foreign.map(|line| format!("{line}\n")).collect()
}

#[test]
fn remove_takes_what_is_kubelets_and_leaves_the_rest() {
    for old in [false, true] {
        let mut node = Node::new(old);
        let made = node.ensure();
        let tools = node.tools();
        tools.run("iptables-nft -I INPUT -s 10.1.2.3 -j ACCEPT -c 5 500");
        tools.run("iptables-nft -t nat -A POSTROUTING -s 10.1.2.3 -j RETURN");
        let kept = foreign(&tools);
        assert_eq!(kept.lines().count(), 2);

        let [mut removed, left] = node.remove();
        let mut made = made;
        removed.sort();
        made.sort();
        assert_eq!((removed, left), (made, vec![]));
        let saved = saves(&node.tools());
        assert!(!saved.contains("KUBE"), "{saved}");
        assert_eq!(foreign(&node.tools()), kept);
        assert_eq!(node.remove(), [const { Vec::<String>::new() }; 2]);
    }
}

#[test]
fn a_chain_that_others_use_is_left() {
    let firewall = || vec!["ip filter: chain KUBE-FIREWALL".to_owned()];
    // A rule in it.
    let mut node = Node::ensured(false);
    let tools = node.tools();
    tools.run("iptables-nft -A KUBE-FIREWALL -s 10.1.2.3 -j ACCEPT");
    let kept = foreign(&tools);
    let [removed, left] = node.remove();
    assert_eq!(left, firewall());
    assert_eq!(removed.len(), 11);
    let saved = saves(&node.tools());
    assert_eq!(saved.matches("KUBE").count(), 2, "{saved}"); // the chain, the foreign rule
    assert_eq!(foreign(&node.tools()), kept);
    let [removed, left] = node.remove();
    assert_eq!((removed, left), (vec![], firewall()));

    // A jump to it: it stays as it is, with the rule in it and kubelet's own jumps to it.
    let firewall_of = |saved: String| {
        let lines = saved.lines().filter(|line| line.contains("KUBE-FIREWALL"));
        lines.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let mut node = Node::ensured(false);
    let tools = node.tools();
    tools.run("iptables-nft -A FORWARD -s 10.1.2.3 -j KUBE-FIREWALL");
    let (kept, before) = (foreign(&tools), firewall_of(saves(&tools)));
    assert_eq!(before.len(), 5, "{before:?}"); // the chain, its rule, three jumps
    let [removed, left] = node.remove();
    assert_eq!((left, removed.len()), (firewall(), 8));
    assert_eq!(firewall_of(saves(&node.tools())), before);
    assert_eq!(foreign(&node.tools()), kept);

    // A verdict map that leads to it.
    let mut node = Node::ensured(false);
    node.tools().run_with(
        "nft -f -",
        "add map ip filter ways { type ipv4_addr : verdict; \
         elements = { 10.1.2.3 : jump KUBE-FIREWALL } }",
    );
    assert_eq!(node.remove()[1], firewall());
    let map = node.tools().run("nft list map ip filter ways");
    assert!(map.contains("10.1.2.3 : jump KUBE-FIREWALL"), "{map}");

    // When it is free, it goes, with its rule and the two jumps.
    node.tools().run("nft delete map ip filter ways");
    let [removed, left] = node.remove();
    assert_eq!((removed.len(), left), (4, vec![]));
}

/// A kube-proxy marks and masquerades through chains of the same names and rules: they stay.
#[test]
fn what_a_kube_proxy_shares_is_left_to_it() {
    let mut node = Node::new(true);
    let tools = node.tools();
    tools.load_iptables_nft(include_str!("data/kube-proxy-1.20-4-services.save"));
    let nat = |tools: &Tools<'_>| tools.save("iptables-nft-save -t nat");
    let masquerading = |saved: &str| {
        let of = |line: &&str| line.contains("KUBE-MARK-MASQ") || line.contains("POSTROUTING");
        saved
            .lines()
            .filter(of)
            .map(ToOwned::to_owned)
            .collect::<Vec<_>>()
    };
    let before = masquerading(&nat(&tools));
    assert!(before.len() > 8, "{before:#?}");
    node.ensure();
    let [removed, left] = node.remove();
    for chain in ["KUBE-MARK-MASQ", "KUBE-POSTROUTING"] {
        assert!(
            left.contains(&format!("ip nat: chain {chain}")),
            "{left:#?}"
        );
        assert!(
            removed
                .iter()
                .all(|item| !item.starts_with(&format!("ip nat: -A {chain}")))
        );
    }
    let after = masquerading(&nat(&node.tools()));
    for line in before {
        assert!(after.contains(&line), "{line} in {after:#?}");
    }
}

/// Chains of the right names through which no packet goes are not taken for the real ones.
#[test]
fn chains_that_see_no_packets_are_an_error() {
    for (setup, what) in [
        (
            "add table ip filter; add chain ip filter INPUT",
            "ip filter INPUT",
        ),
        (
            "add table ip filter; add chain ip filter OUTPUT \
             { type filter hook output priority 7; }",
            "ip filter OUTPUT",
        ),
        (
            "add table ip filter { flags dormant; }",
            "ip filter: the table is dormant",
        ),
    ] {
        let mut node = Node::new(false);
        node.tools().run_with("nft -f -", setup);
        let before = node.generation();
        for error in [
            node.kubelet.check(&mut node.nft).unwrap_err(),
            node.kubelet.ensure(&mut node.nft).unwrap_err(),
        ] {
            assert!(error.to_string().starts_with(what), "{error}");
        }
        assert_eq!(node.generation(), before);
    }
}

#[test]
fn one_family_alone() {
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

/// A rival that commits without a pause, in a table of its own, makes nothing fail.
#[test]
fn a_rival_that_commits_all_the_time_does_not_keep_it_from_its_end() {
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
        // Rounds, and those of them in which the rival committed.
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

/// Reading and committing are one step, whoever comes in between: two that start at the same moment
/// make everything once.
#[test]
fn two_at_once_make_everything_once() {
    const ROUNDS: usize = 100;
    let mut node = Node::new(true);
    let all = node.kubelet.check(&mut node.nft).unwrap();
    let mut other = connect(&node.sandbox);
    // As many chains and rules as there are items, and no more.
    let count = |nft: &mut Connection| {
        let (mut chains, mut rules) = (0, 0);
        let listing = nft.chains(Filter::all()).unwrap();
        listing
            .for_each(|chain| chains += usize::from(!chain.is_base()))
            .unwrap();
        let listing = nft.rules(Filter::all()).unwrap();
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
