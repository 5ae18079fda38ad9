//! Compares each rule with kube-proxy 1.36's rules for the same services.

use std::collections::HashMap;

use super::super::cleanup::TABLES;
use super::super::rules::{Rules, Shared, sorted};
use super::*;
use chainwright::iptables::{Rule, text};

/// Returns the rules of each chain of each table in the output of iptables-save, in their order.
fn saved(text: &str) -> HashMap<(&str, &str), Vec<&str>> {
    let mut chains: HashMap<_, Vec<_>> = HashMap::new();
    let mut table = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        } else if let Some(chain) = line.strip_prefix(':') {
            let chain = chain.split(' ').next().unwrap();
            chains.entry((table, chain)).or_default();
        } else if let Some(rule) = line.strip_prefix("-A ") {
            let (chain, _) = rule.split_once(' ').unwrap();
            chains.entry((table, chain)).or_default().push(line);
        }
    }
    chains
}

/// Compares by meaning and by text.
#[track_caller]
fn assert_same(chain: &str, rules: &[Rule], lines: &[&str]) {
    let printed: Vec<_> = rules.iter().map(|r| format!("-A {chain} {r}")).collect();
    // iptables-save prints two blanks before the name of an nfacct object, and so does this crate.
    assert_eq!(printed, lines);
    for (rule, line) in rules.iter().zip(lines) {
        let options = line.strip_prefix(&format!("-A {chain} ")).unwrap();
        let read = Rule::parse(Family::Ipv4, options);
        let read = read.unwrap_or_else(|error: text::ParseError| panic!("{line}: {error}"));
        assert!(rule.means_the_same(&read), "{rule} is not {line}");
    }
}

#[test]
fn chains_and_rules_match_kube_proxy() {
    let config = config();
    let saved = saved(KUBE_PROXY_1_36);
    let ports = ports(&services(), Family::Ipv4, &config);
    assert_eq!(ports.len(), 10);
    let rules = Rules {
        family: Family::Ipv4,
        config: &config,
        comments: true,
    };

    let mut compared = 0;
    for table in TABLES {
        for (chain, rules) in rules.fixed(table) {
            assert_same(chain, &rules, &saved[&(table, chain)]);
            compared += rules.len();
        }
        for (chain, rules) in rules.jumps(table) {
            assert_same(chain, &rules, &saved[&(table, chain)]);
            compared += rules.len();
        }
        for (chain, rule) in rules.rules_in_shared_chains(table) {
            assert_same(chain, &[rule], &saved[&(table, chain)]);
            compared += 1;
        }
    }
    let of_no_port = compared;
    assert_eq!(of_no_port, 1 + 3 + 3 + 11 + 3 + 1);

    for port in sorted(&ports) {
        for (chain, rules) in rules.own(port) {
            let mut lines = saved[&("nat", chain.as_str())].clone();
            if chain.starts_with("KUBE-FW-") {
                // This layout's rules are sorted by address.
                lines.swap(0, 1);
            }
            assert_same(&chain, &rules, &lines);
            compared += rules.len();
        }
        // In chains of many ports: the rules whose comments name the port.
        let about = |line: &&str| {
            let comment_text = line.split("--comment \"").nth(1);
            let rest = comment_text
                .and_then(|comment_text| comment_text.strip_prefix(&port.name.to_string()));
            rest.is_some_and(|rest| rest.starts_with([' ', '"']))
        };
        let of_port = rules.shared(port);
        for shared in Shared::ALL {
            let rules: Vec<_> = of_port
                .iter()
                .filter(|(of, _)| *of == shared)
                .map(|(_, rule)| rule.clone())
                .collect();
            let lines = &saved[&(shared.table(), shared.chain())];
            let lines: Vec<_> = lines.iter().copied().filter(about).collect();
            assert_same(shared.chain(), &rules, &lines);
            compared += rules.len();
        }
    }
    let last = rules.last(Shared::Services);
    let lines = &saved[&("nat", "KUBE-SERVICES")];
    assert_same("KUBE-SERVICES", &last, &lines[lines.len() - 1..]);
    compared += 1;

    // No rule was left out except those of the other services.
    let others = KUBE_PROXY_1_36
        .lines()
        .filter(|line| line.starts_with("-A "));
    let others = others.filter(|line| {
        let endpoints_of_others = |chain: &str| {
            let lines = &saved[&("nat", chain)];
            lines.iter().any(|line| is_foreign(line))
        };
        let chain = line.split(' ').nth(1).unwrap();
        is_foreign(line) || (chain.starts_with("KUBE-EXT") && endpoints_of_others(chain))
    });
    assert_eq!(
        KUBE_PROXY_1_36.matches("-A ").count() - others.count(),
        compared
    );
}

/// Returns `true` if the line belongs to `svc-1`, `svc-2`, `svc-4` to `svc-299`.
fn is_foreign(line: &str) -> bool {
    let Some((_, rest)) = line.split_once("/svc-") else {
        return false;
    };
    let number = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    !["0", "3"].contains(&number)
}

#[test]
fn shared_chains_are_sorted_with_node_ports_last() {
    let config = config();
    let ports = ports(&services(), Family::Ipv4, &config);
    let rules = Rules {
        family: Family::Ipv4,
        config: &config,
        comments: true,
    };
    let lines: Vec<_> = rules
        .whole(Shared::Services, &ports)
        .iter()
        .map(ToString::to_string)
        .collect();
    let (last, of_ports) = lines.split_last().unwrap();
    assert!(last.ends_with("-m addrtype --dst-type LOCAL -j KUBE-NODEPORTS"));
    let names: Vec<_> = of_ports
        .iter()
        .map(|line| line.split('"').nth(1).unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "default/azure-vote-front cluster IP",
            "default/ext:sctp cluster IP",
            "default/ext:sctp external IP",
            "default/ext:sip cluster IP",
            "default/ext:sip external IP",
            "default/kubernetes:https cluster IP",
            "default/lb-local:https cluster IP",
            "default/lb-local:https loadbalancer IP",
            "kube-system/kube-dns:dns cluster IP",
            "kube-system/kube-dns:dns-tcp cluster IP",
            "ns0/svc-0:http cluster IP",
            "ns3/svc-3:http cluster IP",
        ]
    );
}
