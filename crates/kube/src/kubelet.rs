//! The chains that a kubelet creates when it starts, kept in either backend.
//!
//! A kubelet creates them with a dozen `iptables` commands, once, and notices their removal at its next check, up to a
//! minute later. This module creates and removes all of them, in three tables and both families, in one transaction of
//! nf_tables, or table by table in the legacy backend. It recognizes existing ones whichever version of iptables wrote
//! them. [`detect`](super::detect) finds out which backend a node uses; the [`guard`](super::guard) reports who flushes
//! the chains and restores them at once.
//!
//! | since | what | where |
//! |---|---|---|
//! | 1.24 | `KUBE-IPTABLES-HINT` | mangle, IPv4 and IPv6 |
//! | | `KUBE-KUBELET-CANARY` | mangle, nat, filter, IPv4 and IPv6 |
//! | | `KUBE-FIREWALL`, jumps from `INPUT` and `OUTPUT`, the rule against localnet traffic from outside | filter, IPv4 |
//!
//! Up to Kubernetes 1.26 there were also `KUBE-MARK-DROP`, `KUBE-MARK-MASQ` and `KUBE-POSTROUTING` with their rules:
//! [`Kubelet::up_to_1_26`]. Source: `pkg/kubelet/kubelet_network_linux.go` of Kubernetes.
//!
//! This file is long because a reader needs the chains, their rules, and the code that creates, checks and removes them
//! side by side.

use std::net::{IpAddr, Ipv4Addr};

use super::declared::{
    Attempt, BackendMut, Declared, Found, InsertPosition, RequiredChain, change_legacy, change_nft,
};
use chainwright::iptables::{self, Address, Family, Iptables, Rule, Target};
use chainwright::nft::{Connection, Guard, Transaction};
use chainwright::xt::matches::comment::Comment;
use chainwright::xt::matches::conntrack::{Conntrack, ConntrackState};
use chainwright::xt::matches::mark::Mark as MarkMatch;
use chainwright::xt::targets::mark::Mark as MarkTarget;
use chainwright::xt::targets::masquerade::Masquerade;
use chainwright::xt::{Match, Target as Extension};

pub use super::declared::{Error, Item};

/// Name of the chain in mangle that shows other components which backend this node uses.
pub const HINT: &str = "KUBE-IPTABLES-HINT";
/// Name of the chains whose disappearance shows a kubelet that another program flushed the tables.
pub const CANARY: &str = "KUBE-KUBELET-CANARY";
/// Name of the chain in filter that drops packets that must not arrive from outside.
pub const FIREWALL: &str = "KUBE-FIREWALL";

/// Chain that marks packets to be masqueraded; kube-proxy creates and uses it as well.
const MARK_MASQ: &str = "KUBE-MARK-MASQ";
/// Chain that masquerades marked packets.
const POSTROUTING: &str = "KUBE-POSTROUTING";

/// The tables that contain the chains.
const TABLES: [&str; 3] = ["mangle", "nat", "filter"];

/// Mark of packets to be masqueraded (kubelet's `iptablesMasqueradeBit` 14).
const MASQUERADE_MARK: u32 = 1 << 14;
/// Mark of packets to be dropped (kubelet's `iptablesDropBit` 15).
const DROP_MARK: u32 = 1 << 15;

/// The result of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// The removed chains and rules.
    pub removed: Vec<Item>,
    /// Chains that were left because other rules jump to them (then with the kubelet's rules), or because they contain
    /// rules of other programs.
    pub left: Vec<Item>,
}

/// A kubelet's chains, for some families and versions.
#[derive(Debug, Clone)]
pub struct Kubelet {
    families: Vec<Family>,
    up_to_1_26: bool,
    second_hint: bool,
}

impl Default for Kubelet {
    fn default() -> Self {
        Self::new()
    }
}

impl Kubelet {
    /// Creates the chains of a current kubelet, for IPv4 and IPv6.
    #[must_use]
    pub fn new() -> Self {
        Self {
            families: Family::ALL.to_vec(),
            up_to_1_26: false,
            second_hint: false,
        }
    }

    /// Restricts it to this family.
    #[must_use]
    pub fn only(mut self, family: Family) -> Self {
        self.families = vec![family];
        self
    }

    /// Sets whether to include the chains that kubelets created up to Kubernetes 1.26: `KUBE-MARK-DROP`,
    /// `KUBE-MARK-MASQ` and `KUBE-POSTROUTING`.
    #[must_use]
    pub fn up_to_1_26(mut self, yes: bool) -> Self {
        self.up_to_1_26 = yes;
        self
    }

    /// Sets whether to create the hint even while the other backend has one. Components that look for it then find
    /// both.
    #[must_use]
    pub fn with_second_hint(mut self, yes: bool) -> Self {
        self.second_hint = yes;
        self
    }

    /// Lists the missing chains and rules in the tables of an [`Iptables`], or of nf_tables over a [`Connection`];
    /// empty if everything is as a kubelet leaves it.
    ///
    /// # Errors
    /// Those of [`Declared::check`].
    pub fn check<'t>(&self, tables: impl Into<BackendMut<'t>>) -> Result<Vec<Item>, Error> {
        self.declared().check(tables)
    }

    /// Creates the missing chains and rules, and returns them: in nf_tables in one transaction, in the legacy backend
    /// one table at a time, the table with the hint last. If nothing is missing, nothing is changed. Rules of other
    /// programs are left alone.
    ///
    /// If another program changes the ruleset meanwhile, the call starts again, as often as the handle's
    /// [`with_retry`](Connection::with_retry) allows.
    ///
    /// # Errors
    /// Those of [`Declared::ensure`]; among them [`Error::HintElsewhere`], unless
    /// [`with_second_hint`](Self::with_second_hint).
    pub fn ensure<'t>(&self, tables: impl Into<BackendMut<'t>>) -> Result<Vec<Item>, Error> {
        self.declared().ensure(tables)
    }

    /// Removes the rules and chains of a kubelet, in nf_tables in one transaction; the tables and their built-in chains
    /// stay.
    ///
    /// A chain that other rules jump to stays, with its rules and the jumps to it (`KUBE-MARK-MASQ` and
    /// `KUBE-POSTROUTING`, which a kube-proxy shares, stay or go together). A chain that contains rules of other
    /// programs loses the kubelet's own rules and stays.
    ///
    /// # Errors
    /// Those of [`ensure`](Self::ensure).
    #[tracing::instrument(level = "debug", skip_all)]
    pub fn remove<'t>(&self, tables: impl Into<BackendMut<'t>>) -> Result<Removed, Error> {
        let declared = self.declared();
        match tables.into() {
            BackendMut::Nft(connection) => change_nft(&declared, connection, |nft, guard| {
                self.removal(&declared.chains, nft, guard)
            }),
            BackendMut::Legacy(iptables) => self.remove_legacy(&declared, iptables),
        }
    }

    /// Returns the chains as a declaration, to combine with others or to [guard](super::guard).
    #[must_use]
    pub fn declared(&self) -> Declared {
        let families = self.families.iter();
        Declared {
            chains: families
                .flat_map(|&family| wanted(family, self.up_to_1_26))
                .collect(),
            second_hint: self.second_hint,
        }
    }

    fn removal(
        &self,
        wanted: &[RequiredChain],
        nft: &mut Connection,
        guard: &Guard,
    ) -> Result<(Transaction, Removed), Attempt> {
        let found = wanted
            .iter()
            .map(|wanted| Found::find_in_kernel(nft, guard, wanted, &wanted.rules))
            .collect::<Result<Vec<_>, _>>()?;
        let removal_plan = self.removal_plan(wanted, &found);
        let mut tx = Transaction::new();
        for (index, handle) in removal_plan.rules {
            wanted[index].delete(&mut tx, handle)?;
        }
        for index in removal_plan.chains {
            let target = &wanted[index];
            tx.delete(&iptables::nft::chain(
                target.family,
                &target.table,
                &target.chain,
            ))?;
        }
        Ok((tx, removal_plan.removed))
    }

    fn remove_legacy(
        &self,
        declared: &Declared,
        iptables: &mut Iptables,
    ) -> Result<Removed, Error> {
        // A table that is not in use contains none of the chains, and stays unused.
        let mut tables = Vec::new();
        for family in Family::ALL {
            let used = iptables.tables_in_use(family)?;
            let of_family = declared.tables().into_iter();
            tables.extend(
                of_family
                    .filter(|(of, name)| *of == family && used.iter().any(|used| used == name)),
            );
        }
        if tables.is_empty() {
            return Ok(Removed::default());
        }
        let wanted = &declared.chains;
        change_legacy(iptables, tables.clone(), |edit| {
            let mut found = Vec::with_capacity(wanted.len());
            for wanted in wanted {
                found.push(match tables.contains(&(wanted.family, &*wanted.table)) {
                    true => {
                        let mut table = edit.table(wanted.family, &wanted.table)?;
                        Found::find_in_legacy(&mut table, wanted)?
                    }
                    false => Found::default(),
                });
            }
            let mut removal_plan = self.removal_plan(wanted, &found);
            // From last to first, so that the remaining positions stay valid.
            removal_plan
                .rules
                .sort_by_key(|(_, position)| std::cmp::Reverse(*position));
            for (index, position) in removal_plan.rules {
                let wanted = &wanted[index];
                let mut table = edit.table(wanted.family, &wanted.table)?;
                table.delete_number(&*wanted.chain, position as usize + 1)?;
            }
            for index in removal_plan.chains {
                let wanted = &wanted[index];
                let mut table = edit.table(wanted.family, &wanted.table)?;
                table.remove_chain(&*wanted.chain)?;
            }
            Ok(removal_plan.removed)
        })
    }

    /// Determines which of the existing chains and rules to remove, and which stay because others use them.
    fn removal_plan(&self, wanted: &[RequiredChain], found: &[Found]) -> Removal {
        let jumps_to = |target: &RequiredChain| {
            let chains = wanted
                .iter()
                .zip(found)
                .filter(|(from, _)| in_one_table(from, target));
            chains
                .flat_map(|(from, found)| found.rules.iter().map(|(index, _)| &from.rules[*index]))
                .filter(|rule| rule.target == jump_to(target))
                .count()
        };
        // The kernel counts as references the chain's rules, and jumps and map elements that refer to it.
        let mut used: Vec<bool> = wanted
            .iter()
            .zip(found)
            .map(|(chain, found)| found.references as usize > found.total + jumps_to(chain))
            .collect();
        // One marks what the other masquerades: other programs can only use both together.
        for family in &self.families {
            let pair = |chain: &RequiredChain| {
                chain.family == *family && [MARK_MASQ, POSTROUTING].contains(&&*chain.chain)
            };
            let together = wanted.iter().zip(&used).any(|(w, used)| pair(w) && *used);
            for (chain, used) in wanted.iter().zip(&mut used) {
                *used |= together && pair(chain);
            }
        }
        let kept = |from: &RequiredChain, rule: &Rule| {
            wanted.iter().zip(&used).any(|(target, used)| {
                *used && in_one_table(from, target) && rule.target == jump_to(target)
            })
        };

        let mut removal_plan = Removal::default();
        let all = || wanted.iter().zip(found).zip(&used).enumerate();
        for (which, ((chain, found), used)) in all() {
            for &(index, handle) in &found.rules {
                let rule = &chain.rules[index];
                if !used && !kept(chain, rule) {
                    removal_plan.rules.push((which, handle));
                    removal_plan.removed.removed.push(chain.item(Some(rule)));
                }
            }
        }
        for (which, ((target, found), used)) in all().rev() {
            if !found.exists || target.is_builtin() {
                continue;
            }
            if *used || found.total > found.rules.len() {
                removal_plan.removed.left.push(target.item(None));
            } else {
                removal_plan.chains.push(which);
                removal_plan.removed.removed.push(target.item(None));
            }
        }
        removal_plan
    }
}

/// The chains and rules to remove.
#[derive(Default)]
struct Removal {
    /// Index of the chain, and the rule's handle or position.
    rules: Vec<(usize, u64)>,
    /// Indexes of the chains.
    chains: Vec<usize>,
    /// The same as items.
    removed: Removed,
}

fn in_one_table(one: &RequiredChain, other: &RequiredChain) -> bool {
    (one.family, &one.table) == (other.family, &other.table)
}

fn jump_to(target: &RequiredChain) -> Target {
    Target::Jump((*target.chain).into())
}

/// Returns the chains of one family, ordered so that no rule jumps to a later chain.
fn wanted(family: Family, up_to_1_26: bool) -> Vec<RequiredChain> {
    let of = |table: &'static str, chain: &'static str, position, rules| RequiredChain {
        family,
        table: table.into(),
        chain: chain.into(),
        position,
        rules,
    };
    let v4 = family == Family::Ipv4;
    let mut all = vec![of("mangle", HINT, InsertPosition::End, vec![])];
    all.extend(TABLES.map(|table| of(table, CANARY, InsertPosition::End, vec![])));
    let mut firewall = Vec::new();
    if up_to_1_26 {
        firewall.push(
            Rule::new(Target::Drop)
                .with(comment("kubernetes firewall for dropping marked packets"))
                .with(marked(DROP_MARK, false)),
        );
    }
    if v4 {
        firewall.push(localnet());
    }
    if !firewall.is_empty() {
        all.push(of("filter", FIREWALL, InsertPosition::End, firewall));
        for chain in ["OUTPUT", "INPUT"] {
            all.push(of(
                "filter",
                chain,
                InsertPosition::Head,
                vec![Rule::jump(FIREWALL)],
            ));
        }
    }
    if up_to_1_26 {
        let set = |target| Rule::new(Target::Extension(Extension::Mark(target)));
        let masquerade = Extension::Masquerade(Masquerade {
            random_fully: true,
            ..Masquerade::default()
        });
        all.extend([
            of(
                "nat",
                "KUBE-MARK-DROP",
                InsertPosition::End,
                vec![set(MarkTarget::or(DROP_MARK))],
            ),
            of(
                "nat",
                MARK_MASQ,
                InsertPosition::End,
                vec![set(MarkTarget::or(MASQUERADE_MARK))],
            ),
            of(
                "nat",
                POSTROUTING,
                InsertPosition::End,
                vec![
                    Rule::new(Target::Return).with(marked(MASQUERADE_MARK, true)),
                    set(MarkTarget::xor(MASQUERADE_MARK)),
                    Rule::new(Target::Extension(masquerade))
                        .with(comment("kubernetes service traffic requiring SNAT")),
                ],
            ),
            of(
                "nat",
                "POSTROUTING",
                InsertPosition::Head,
                vec![Rule::jump(POSTROUTING).with(comment("kubernetes postrouting rules"))],
            ),
        ]);
    }
    all
}

/// Returns the rule against packets from outside to the loopback network (CVE-2020-8558).
pub(crate) fn localnet() -> Rule {
    let loopback = Address::network(IpAddr::V4(Ipv4Addr::LOCALHOST), 8);
    Rule {
        source: Some(loopback.not()),
        destination: Some(loopback),
        ..Rule::new(Target::Drop)
    }
    .with(comment("block incoming localnet connections"))
    .with(Match::Conntrack(Conntrack::not_states(
        ConntrackState::RELATED | ConntrackState::ESTABLISHED | ConntrackState::DNAT,
    )))
}

fn comment(text: &'static str) -> Match {
    Match::Comment(Comment::new(text).expect("invariant: the comments here are short constants"))
}

fn marked(bits: u32, invert: bool) -> Match {
    Match::Mark(MarkMatch {
        value: bits,
        mask: bits,
        invert,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rule_jumps_to_a_later_chain() {
        for family in Family::ALL {
            for old in [false, true] {
                let all = wanted(family, old);
                for (index, chain) in all.iter().enumerate() {
                    for rule in &chain.rules {
                        if let Target::Jump(to) = &rule.target {
                            assert!(all[..index].iter().any(|c| *to == *c.chain));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_rules_match_kubelets_rules() {
        let lines: Vec<_> = wanted(Family::Ipv4, true)
            .iter()
            .flat_map(|w| w.rules.iter().map(|rule| w.item(Some(rule)).to_string()))
            .collect();
        assert_eq!(
            lines,
            [
                "ip filter: -A KUBE-FIREWALL -m comment --comment \"kubernetes firewall for dropping \
                 marked packets\" -m mark --mark 0x8000/0x8000 -j DROP",
                "ip filter: -A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment \
                 \"block incoming localnet connections\" -m conntrack ! --ctstate \
                 RELATED,ESTABLISHED,DNAT -j DROP",
                "ip filter: -A OUTPUT -j KUBE-FIREWALL",
                "ip filter: -A INPUT -j KUBE-FIREWALL",
                "ip nat: -A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000",
                "ip nat: -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
                "ip nat: -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
                "ip nat: -A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0",
                "ip nat: -A KUBE-POSTROUTING -m comment --comment \"kubernetes service traffic \
                 requiring SNAT\" -j MASQUERADE --random-fully",
                "ip nat: -A POSTROUTING -m comment --comment \"kubernetes postrouting rules\" -j \
                 KUBE-POSTROUTING",
            ]
        );
    }
}
