//! The rules of kube-proxy that do not depend on the services, and the jumps to its chains.

use super::rules::{
    CANARY, EXTERNAL, FORWARD, MARK_MASQ, NODE_PORTS, POSTROUTING, PROXY_FIREWALL, Rules, SERVICES,
    comment, count,
};
use crate::kubelet::{FIREWALL, localnet};
use chainwright::iptables::{Rule, Target};
use chainwright::xt::matches::conntrack::{Conntrack, ConntrackState};
use chainwright::xt::matches::mark::Mark as MarkMatch;
use chainwright::xt::targets::mark::Mark as MarkTarget;
use chainwright::xt::targets::masquerade::Masquerade;
use chainwright::xt::{Match, Target as Extension};

/// Counts invalid packets, which belong to no connection.
const INVALID_DROPPED: &str = "ct_state_invalid_dropped_pkts";

impl Rules<'_> {
    /// Returns the chains with constant rules.
    pub(super) fn fixed(&self, table: &str) -> Vec<(&'static str, Vec<Rule>)> {
        let bits = self.config.masquerade_mark;
        let marked = |invert| {
            Match::Mark(MarkMatch {
                value: bits,
                mask: bits,
                invert,
            })
        };
        let mark = |target| Rule::new(Target::Extension(Extension::Mark(target)));
        let mut chains = vec![(CANARY, Vec::new())];
        match table {
            "nat" => {
                let masquerade = Extension::Masquerade(Masquerade {
                    random_fully: true,
                    ..Masquerade::default()
                });
                let comment_text = comment("kubernetes service traffic requiring SNAT");
                chains.push((MARK_MASQ, vec![mark(MarkTarget::or(bits))]));
                chains.push((
                    POSTROUTING,
                    vec![
                        Rule::new(Target::Return).with(marked(true)),
                        mark(MarkTarget::xor(bits)),
                        Rule::new(Target::Extension(masquerade)).with(comment_text),
                    ],
                ));
            }
            "filter" => {
                let states = |states| Match::Conntrack(Conntrack::states(states));
                let mut rules = Vec::new();
                if !self.config.tcp_be_liberal {
                    let invalid = states(ConntrackState::INVALID);
                    let mut rule = Rule::new(Target::Drop).with(invalid);
                    if self.config.nfacct {
                        rule = rule.with(count(INVALID_DROPPED));
                    }
                    rules.push(rule);
                }
                let ours = comment("kubernetes forwarding rules");
                let known = comment("kubernetes forwarding conntrack rule");
                let established = ConntrackState::RELATED | ConntrackState::ESTABLISHED;
                rules.extend([
                    Rule::new(Target::Accept).with(ours).with(marked(false)),
                    Rule::new(Target::Accept)
                        .with(known)
                        .with(states(established)),
                ]);
                chains.push((FORWARD, rules));
            }
            _ => {}
        }
        chains
    }

    /// Returns the rules to add to chains that other programs also use. If loopback addresses serve node ports, packets
    /// from outside to these ports must be dropped; there may be no kubelet that added this rule.
    pub(super) fn rules_in_shared_chains(&self, table: &str) -> Vec<(&'static str, Rule)> {
        match self.has_node_ports_at_loopback() && table == "filter" {
            true => vec![(FIREWALL, localnet())],
            false => Vec::new(),
        }
    }

    /// Returns the rules that must be first in built-in chains.
    pub(super) fn jumps(&self, table: &str) -> Vec<(&'static str, Vec<Rule>)> {
        let jump = |comment_text: &str, chain| Rule::jump(chain).with(comment(comment_text));
        // Only a connection's first packet: the others follow its decision.
        let first = |comment_text: &str, chain| {
            let is_new = Match::Conntrack(Conntrack::states(ConntrackState::NEW));
            Rule::jump(chain).with(is_new).with(comment(comment_text))
        };
        let unaccepted = || first("kubernetes load balancer firewall", PROXY_FIREWALL);
        let refused = || first("kubernetes service portals", SERVICES);
        let outside = || first("kubernetes externally-visible service portals", EXTERNAL);
        let portals = || vec![jump("kubernetes service portals", SERVICES)];
        let rules_in_shared_chains = self.rules_in_shared_chains(table);
        let firewall = || {
            rules_in_shared_chains
                .iter()
                .map(|(chain, _)| Rule::jump(*chain))
        };
        match table {
            "nat" => vec![
                ("PREROUTING", portals()),
                ("OUTPUT", portals()),
                (
                    "POSTROUTING",
                    vec![jump("kubernetes postrouting rules", POSTROUTING)],
                ),
            ],
            "filter" => {
                let node_port_jump = jump("kubernetes health check service ports", NODE_PORTS);
                let passed_on = jump("kubernetes forwarding rules", FORWARD);
                let input = [unaccepted(), node_port_jump, outside()];
                let output = [unaccepted(), refused()];
                let forward = vec![unaccepted(), passed_on, refused(), outside()];
                vec![
                    ("INPUT", firewall().chain(input).collect()),
                    ("FORWARD", forward),
                    ("OUTPUT", firewall().chain(output).collect()),
                ]
            }
            _ => Vec::new(),
        }
    }
}
