//! Existing chains and rules that differ: which are repaired, and which count as present.

use super::*;

/// Rules are compared by their effect.
#[test]
fn rules_are_compared_by_effect() {
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

    // A narrower rule, a wider one, one in another chain.
    let tools = node.tools();
    tools.run("iptables-nft -R INPUT 1 -s 10.0.0.0/8 -j KUBE-FIREWALL");
    tools.run("iptables-nft -D OUTPUT -j KUBE-FIREWALL");
    tools.run("iptables-nft -A FORWARD -j KUBE-FIREWALL");
    // The rule that 1.8.8 wrote, after iptables 1.8.7 has saved and restored it.
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
fn damaged_rules_are_repaired_and_nothing_else() {
    // Kubelet's version, changes by iptables to the chains, and the restored items.
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
        // In the wrong place: the rules after it must be restored, too.
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

/// Damage by iptables to rules that iptables created.
#[test]
fn damaged_rules_of_iptables_are_repaired() {
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
fn base_chains_keep_policy_and_counters() {
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

/// Chains with the right names that no packet passes do not count.
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
