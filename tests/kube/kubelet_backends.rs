//! A kubelet's chains in the legacy tables, equal to those in nf_tables; and chains declared by a text, in
//! both.

use std::fs;

use crate::common::sandbox;
use crate::common::tools::Tools;
use chainwright::Retry;
use chainwright::iptables::{Backend, Family, Iptables};
use chainwright::legacy::LockPolicy;
use chainwright_kube::declared::{Declared, Item};
use chainwright_kube::kubelet::Kubelet;
use chainwright_testing::Sandbox;

const FAMILIES: [(&str, bool); 2] = [("iptables-legacy", true), ("ip6tables-legacy", false)];

const LOCALNET: &str = "-A KUBE-FIREWALL -m comment --comment \"block incoming localnet connections\" --dst \
                        127.0.0.0/8 ! --src 127.0.0.0/8 -m conntrack ! --ctstate \
                        RELATED,ESTABLISHED,DNAT -j DROP";

/// Runs the commands of a starting kubelet.
fn run_kubelet(tools: &Tools<'_>) {
    for (tool, v4) in FAMILIES {
        tools.run(&format!("{tool} -t mangle -N KUBE-IPTABLES-HINT"));
        if v4 {
            tools.run(&format!("{tool} -N KUBE-FIREWALL"));
            tools.run(&format!("{tool} -I OUTPUT -j KUBE-FIREWALL"));
            tools.run(&format!("{tool} -I INPUT -j KUBE-FIREWALL"));
            tools.run(&format!("{tool} {LOCALNET}"));
        }
        for table in ["mangle", "nat", "filter"] {
            tools.run(&format!("{tool} -t {table} -N KUBE-KUBELET-CANARY"));
        }
    }
}

/// All legacy tables in a fixed order: the kernel's order is that of their creation.
fn saves(tools: &Tools<'_>) -> String {
    let mut all = String::new();
    for (tool, _) in FAMILIES {
        for table in ["filter", "mangle", "nat", "raw"] {
            let in_use = tools.run(&format!("{tool}-save"));
            if in_use.contains(&format!("*{table}")) {
                all += &tools.save(&format!("{tool}-save -c -t {table}"));
            }
        }
    }
    all
}

/// Runs a function with the tables of one backend.
fn with<R: Send>(
    sandbox: &Sandbox,
    backend: Backend,
    work: impl FnOnce(&mut Iptables) -> R + Send,
) -> R {
    let done = sandbox.run(|| {
        let iptables = Iptables::open(backend).unwrap();
        work(&mut iptables.with_lock(LockPolicy::None, Retry::ONCE))
    });
    done.unwrap()
}

fn ensure(sandbox: &Sandbox, kubelet: &Kubelet) -> Vec<String> {
    let (missing, made, left) = with(sandbox, Backend::Legacy, |iptables| {
        let missing = kubelet.check(&mut *iptables).unwrap();
        let made = kubelet.ensure(&mut *iptables).unwrap();
        (missing, made, kubelet.check(&mut *iptables).unwrap())
    });
    // The order of creation differs: the hint comes last.
    let sorted = |items: &[Item]| {
        let mut lines = words(items);
        lines.sort();
        lines
    };
    assert_eq!((sorted(&made), words(&left)), (sorted(&missing), vec![]));
    words(&made)
}

fn words(items: &[Item]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    let read =
        |family: &str| fs::read_to_string(format!("/proc/thread-self/net/{family}_tables_names"));
    let names = sandbox.run(|| ["ip", "ip6"].map(|family| read(family).unwrap()));
    names.unwrap().to_vec()
}

#[test]
fn ensure_matches_kubelets_commands() {
    let by_kubelet = sandbox();
    run_kubelet(&Tools::new(&by_kubelet));
    let ours = sandbox();
    assert_eq!(ensure(&ours, &Kubelet::new()).len(), 12);
    assert_eq!(saves(&Tools::new(&ours)), saves(&Tools::new(&by_kubelet)));
    // Chains of kubelet's commands are complete, and complete chains are not touched.
    let theirs = saves(&Tools::new(&by_kubelet));
    assert_eq!(ensure(&by_kubelet, &Kubelet::new()), [""; 0]);
    assert_eq!(saves(&Tools::new(&by_kubelet)), theirs);
}

#[test]
fn check_and_remove_create_no_table() {
    let sandbox = sandbox();
    let (missing, removed) = with(&sandbox, Backend::Legacy, |iptables| {
        let missing = Kubelet::new().check(&mut *iptables).unwrap();
        (missing, Kubelet::new().remove(&mut *iptables).unwrap())
    });
    assert_eq!((missing.len(), removed.removed.len()), (12, 0));
    assert_eq!(names(&sandbox), ["", ""]);
    // For one family only its tables are created.
    ensure(&sandbox, &Kubelet::new().only(Family::Ipv6));
    let [ip, ip6] = &names(&sandbox)[..] else {
        panic!()
    };
    assert_eq!((ip.as_str(), ip6.lines().count()), ("", 3));
}

#[test]
fn lost_rules_are_restored_and_foreign_rules_kept() {
    let sandbox = sandbox();
    ensure(&sandbox, &Kubelet::new().up_to_1_26(true));
    let tools = Tools::new(&sandbox);
    let whole = saves(&tools);
    for line in [
        "iptables-legacy -F",
        "iptables-legacy -t mangle -X KUBE-IPTABLES-HINT",
        "iptables-legacy -D INPUT -j KUBE-FIREWALL",
        "iptables-legacy -t nat -D KUBE-POSTROUTING 1",
        "ip6tables-legacy -t nat -F",
    ] {
        tools.run(line);
        assert!(!ensure(&sandbox, &Kubelet::new().up_to_1_26(true)).is_empty());
        let healed = saves(&tools);
        assert_eq!(sorted(&healed), sorted(&whole), "{line}");
    }
    // Other programs use the tables as well, and their counters continue.
    for line in [
        "iptables-legacy -I INPUT -s 10.1.2.3 -c 7 800 -j ACCEPT",
        "iptables-legacy -A KUBE-FIREWALL -j ACCEPT",
        "iptables-legacy -t nat -N ours",
        "iptables-legacy -t nat -A POSTROUTING -p tcp -m tcp --dport 80 -j ours",
        "ip6tables-legacy -t mangle -X KUBE-KUBELET-CANARY",
    ] {
        tools.run(line);
    }
    let before = saves(&tools);
    assert_eq!(
        ensure(&sandbox, &Kubelet::new().up_to_1_26(true)),
        ["ip6 mangle: chain KUBE-KUBELET-CANARY"]
    );
    let after = saves(&tools);
    let missing = ":KUBE-KUBELET-CANARY - [0:0]\n";
    assert_eq!(after.len(), before.len() + missing.len());
    assert!(after.contains("[7:800] -A INPUT -s 10.1.2.3/32 -j ACCEPT"));
}

/// The sorted lines, because recreated chains are at other positions.
fn sorted(save: &str) -> Vec<&str> {
    let mut lines: Vec<_> = save.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn chains_used_by_others_are_kept() {
    let sandbox = sandbox();
    let kubelet = Kubelet::new().up_to_1_26(true);
    let tools = Tools::new(&sandbox);
    tools.run("iptables-legacy -A INPUT -s 10.1.2.3 -j ACCEPT");
    tools.run("ip6tables-legacy -A INPUT -j ACCEPT");
    let before = saves(&tools);
    ensure(&sandbox, &kubelet);
    tools.run("iptables-legacy -t nat -N KUBE-SVC-1");
    tools.run("iptables-legacy -t nat -A KUBE-SVC-1 -j KUBE-MARK-MASQ");
    tools.run("iptables-legacy -t mangle -A KUBE-IPTABLES-HINT -j RETURN");
    let remove = || {
        with(&sandbox, Backend::Legacy, |iptables| {
            kubelet.remove(iptables).unwrap()
        })
    };
    let mut left = words(&remove().left);
    left.sort();
    assert_eq!(
        left,
        [
            "ip mangle: chain KUBE-IPTABLES-HINT",
            "ip nat: chain KUBE-MARK-MASQ",
            "ip nat: chain KUBE-POSTROUTING",
        ]
    );
    let saved = saves(&tools);
    assert!(saved.contains("-A POSTROUTING -m comment --comment \"kubernetes postrouting rules\""));
    assert!(
        !saved.contains("KUBE-FIREWALL") && !saved.contains("CANARY"),
        "{saved}"
    );

    tools.run("iptables-legacy -t nat -F KUBE-SVC-1");
    tools.run("iptables-legacy -t nat -X KUBE-SVC-1");
    tools.run("iptables-legacy -t mangle -F KUBE-IPTABLES-HINT");
    assert_eq!(remove().left, []);
    let saved = saves(&tools);
    assert!(!saved.contains("KUBE"), "{saved}");
    // The content is unchanged, except for tables that are now in use.
    let of_filter = |save: &str| {
        let start = save.find("*filter").unwrap();
        save[start..]
            .lines()
            .take_while(|line| *line != "COMMIT")
            .count()
    };
    assert_eq!(of_filter(&saved), of_filter(&before));
}

const TEXT: &str = "# the agent's\n*mangle\n:AGENT-MARK - [0:0]\n-A AGENT-MARK -j MARK --set-xmark \
                    0x1/0x1\nCOMMIT\n*filter\n:INPUT DROP [0:0]\n:AGENT - [0:0]\n:AGENT-LOG - [0:0]\n\
                    -I INPUT -m comment --comment \"the agent's\" -j AGENT\n-A FORWARD -p tcp -m tcp \
                    --dport 25 -j REJECT\n-A AGENT -s 192.0.2.1 -j AGENT-LOG\n-A AGENT -m set \
                    --match-set bad src -j DROP\n-A AGENT-LOG -m limit --limit 1/min -j LOG\nCOMMIT\n";

#[test]
fn chains_of_a_text_are_kept_in_both_backends() {
    for (backend, tool) in [
        (Backend::Nft, "iptables-nft"),
        (Backend::Legacy, "iptables-legacy"),
    ] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        tools.run("ipset create bad hash:ip");
        tools.run(&format!("{tool} -A INPUT -s 10.1.2.3 -j ACCEPT"));
        tools.run(&format!("{tool} -A FORWARD -s 10.1.2.3 -j ACCEPT"));
        let declared = Declared::of_text(Family::Ipv4, TEXT).unwrap();
        let check = || {
            with(&sandbox, backend, |iptables| {
                words(&declared.check(iptables).unwrap())
            })
        };
        let ensure = || {
            with(&sandbox, backend, |iptables| {
                words(&declared.ensure(iptables).unwrap())
            })
        };
        let all = check();
        assert_eq!(all.len(), 3 + 6);
        assert_eq!(ensure().len(), all.len());
        assert_eq!(check(), [""; 0]);
        let save = format!("{tool}-save");
        let whole = tools.save(&save);
        // -I comes first, -A last; policies are left alone.
        let input: Vec<_> = whole
            .lines()
            .filter(|line| line.contains("A INPUT"))
            .collect();
        assert!(
            input[0].ends_with("-j AGENT") && input[1].contains("10.1.2.3"),
            "{whole}"
        );
        let forward: Vec<_> = whole
            .lines()
            .filter(|line| line.contains("A FORWARD"))
            .collect();
        assert!(
            forward[0].contains("10.1.2.3") && forward[1].contains("REJECT"),
            "{whole}"
        );
        assert!(whole.contains(":INPUT ACCEPT"), "{whole}");
        assert_eq!(ensure(), [""; 0]);
        assert_eq!(tools.save(&save), whole);

        // One rule in the middle: it and the following ones are added again, in the text's order.
        tools.run(&format!("{tool} -D AGENT 1"));
        assert_eq!(ensure().len(), 2);
        assert_eq!(tools.save(&save), whole);
        tools.run(&format!("{tool} -D INPUT 1"));
        let made = ensure();
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(tools.save(&save), whole);
        tools.run(&format!("{tool} -F"));
        tools.run(&format!("{tool} -X"));
        assert_eq!(ensure().len(), all.len() - 2);
        // The error names a missing set.
        tools.run(&format!("{tool} -F"));
        tools.run("ipset destroy bad");
        let error = with(&sandbox, backend, |iptables| {
            declared.ensure(iptables).unwrap_err()
        });
        assert!(error.to_string().contains("`bad`"), "{error}");
    }
}
