//! The real tools' output for a layout.

use std::collections::BTreeMap;

use chainwright::iptables::Backend;
use chainwright_kube::service::Layout;
use chainwright_testing::Sandbox;

use crate::common::tools::Tools;
use crate::services::listed::{Listed, canonical, of_flat, of_nft};

/// Lists the flat layout's table.
pub(crate) const LIST_FLAT: &str = "nft -s list table ip kube-services";

/// Converts the output of `iptables-save`: the rules of each chain of each table, in order, with policies of built-in
/// chains.
pub(crate) fn of_iptables(text: &str) -> BTreeMap<(String, String), Vec<String>> {
    let mut chains: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut table = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            name.clone_into(&mut table);
        } else if let Some(chain) = line.strip_prefix(':') {
            let (chain, policy) = chain.split_once(' ').unwrap();
            let (policy, _counters) = policy.split_once(' ').unwrap();
            let lines = chains.entry((table.clone(), chain.to_owned()));
            lines.or_default().insert(0, format!("policy {policy}"));
        } else if let Some(rule) = line.strip_prefix("-A ") {
            let (chain, rule) = rule.split_once(' ').unwrap();
            let lines = chains.entry((table.clone(), chain.to_owned()));
            lines.or_default().push(rule.to_owned());
        }
    }
    chains
}

/// The real tool's listing of a layout.
pub(crate) fn listed(layout: Layout, node: &Sandbox) -> Listed {
    let tools = Tools::new(node);
    match layout {
        Layout::Iptables(backend) => {
            let chains = of_iptables(&tools.run(match backend {
                Backend::Nft => "iptables-nft-save",
                Backend::Legacy => "iptables-legacy-save",
            }));
            let lines = chains.into_iter().map(|((table, chain), rules)| {
                let rules = rules.into_iter().enumerate();
                let rules = rules.map(|(n, rule)| format!("{n}: {rule}"));
                let of = format!("{table} {chain}");
                rules
                    .map(move |rule| (of.clone(), rule))
                    .collect::<Vec<_>>()
            });
            lines.flatten().collect()
        }
        Layout::Flat => canonical(of_flat(&tools.run(LIST_FLAT))),
        _ => of_nft(&tools.run("nft -s list table ip kube-proxy")),
    }
}
