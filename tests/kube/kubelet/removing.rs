//! Removes a kubelet's chains, and leaves what belongs to other programs.

use super::*;

/// The rules that only the test created, with their handles.
fn foreign(tools: &Tools<'_>) -> String {
    let ruleset = tools.run("nft -a list ruleset");
    let foreign = ruleset.lines().filter(|line| line.contains("10.1.2.3"));
    foreign.map(|line| format!("{line}\n")).collect()
}

#[test]
fn remove_deletes_only_kubelet_rules() {
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
fn remove_keeps_a_chain_used_by_others() {
    let firewall = || vec!["ip filter: chain KUBE-FIREWALL".to_owned()];
    // A rule in the chain.
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

    // A jump to the chain, which then stays unchanged, with its rule and kubelet's own jumps to it.
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

    // A verdict map that refers to the chain.
    let mut node = Node::ensured(false);
    node.tools().run_with(
        "nft -f -",
        "add map ip filter ways { type ipv4_addr : verdict; \
         elements = { 10.1.2.3 : jump KUBE-FIREWALL } }",
    );
    assert_eq!(node.remove()[1], firewall());
    let map = node.tools().run("nft list map ip filter ways");
    assert!(map.contains("10.1.2.3 : jump KUBE-FIREWALL"), "{map}");

    // When nothing refers to it, it is removed, with its rule and the two jumps.
    node.tools().run("nft delete map ip filter ways");
    let [removed, left] = node.remove();
    assert_eq!((removed.len(), left), (4, vec![]));
}

/// A kube-proxy marks and masquerades with chains of the same names and rules: they stay.
#[test]
fn remove_keeps_chains_shared_with_kube_proxy() {
    let mut node = Node::new(true);
    let tools = node.tools();
    tools.load_iptables_nft(include_str!("../../data/kube-proxy-1.20-4-services.save"));
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
