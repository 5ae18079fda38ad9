//! The chains that a kubelet creates when it starts, kept by one transaction.
//!
//! A kubelet makes them by a dozen `iptables` commands, once, and notices that they are gone at
//! its next look a minute later. Here all of them, in three tables and both families, come and go
//! in one transaction, and existing ones are recognised whichever version of iptables wrote them.
//!
//! | since | what | where |
//! |---|---|---|
//! | 1.24 | `KUBE-IPTABLES-HINT` | mangle, IPv4 and IPv6 |
//! | | `KUBE-KUBELET-CANARY` | mangle, nat, filter, IPv4 and IPv6 |
//! | | `KUBE-FIREWALL`, jumps from `INPUT` and `OUTPUT`, the rule against localnet traffic from outside | filter, IPv4 |
//!
//! Up to Kubernetes 1.26 there were also `KUBE-MARK-DROP`, `KUBE-MARK-MASQ` and
//! `KUBE-POSTROUTING` with their rules: [`Kubelet::up_to_1_26`].
//! Source: `pkg/kubelet/kubelet_network_linux.go` of Kubernetes.
//!
//! Long, because the chains, what is to be in them, and how they are made, looked for and removed are read side by side.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::iptables::nft::{Unwritable, chain, decode, encode};
use crate::iptables::{Address, Entry, Family, Rule, Target, builtin};
use crate::nft::{
    CommitError, Connection, Guard, Outcome, RuleFilter, Scope, Table, TableFlags, Transaction,
};
use crate::xt::matches::comment::Comment;
use crate::xt::matches::conntrack::{Conntrack, ConntrackState};
use crate::xt::matches::mark::Mark as MarkMatch;
use crate::xt::targets::mark::Mark as MarkTarget;
use crate::xt::targets::masquerade::Masquerade;
use crate::xt::{Match, Target as Extension};
use crate::{netlink, nft};

/// Name of the chain in mangle that tells other components which backend this node uses.
pub const HINT: &str = "KUBE-IPTABLES-HINT";
/// Name of the chains whose disappearance tells a kubelet that somebody flushed the tables.
pub const CANARY: &str = "KUBE-KUBELET-CANARY";
/// Name of the chain in filter that drops what must not come from outside.
pub const FIREWALL: &str = "KUBE-FIREWALL";

/// Chain that marks what is to be masqueraded; a kube-proxy makes and uses it as well.
const MARK_MASQ: &str = "KUBE-MARK-MASQ";
/// Chain that masquerades what is marked.
const POSTROUTING: &str = "KUBE-POSTROUTING";

/// The tables that they stand in.
const TABLES: [&str; 3] = ["mangle", "nat", "filter"];

/// Mark of packets to be masqueraded (kubelet's `iptablesMasqueradeBit` 14).
const MASQUERADE_MARK: u32 = 1 << 14;
/// Mark of packets to be dropped (kubelet's `iptablesDropBit` 15).
const DROP_MARK: u32 = 1 << 15;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ruleset could not be read.
    #[error("cannot read kubelet's chains")]
    Read(#[from] netlink::Error),
    /// The transaction failed; it says what is known of the ruleset.
    #[error("cannot change kubelet's chains")]
    Commit(#[source] Box<CommitError>),
    /// An attribute was too long to be put into a message.
    #[error("cannot write kubelet's rules")]
    Unfit(#[from] netlink::Unfit),
    /// A rule could not be put into nf_tables' terms.
    #[error("cannot encode kubelet's rules")]
    Encode(#[from] Unwritable),
    /// A table or chain is there, but no packet goes through it as iptables means it to: rules in
    /// it would have no effect. Nothing was applied.
    #[error("{family} {table}{}: {reason}; iptables' rules have no effect there", chain.map(|c| format!(" {c}")).unwrap_or_default())]
    Ineffective {
        /// Address family.
        family: nft::Family,
        /// Table.
        table: &'static str,
        /// Chain; `None` if it is the table.
        chain: Option<&'static str>,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The tables were changed again and again between reading and committing. Nothing was applied.
    #[error(
        "the ruleset changed {attempts} times while kubelet's chains were looked at; nothing was applied"
    )]
    Contended {
        /// How often it was tried.
        attempts: u32,
    },
}

/// Where a rule goes when it is not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// To the head of a chain that others use as well: `iptables -I`.
    Head,
    /// To the end: `iptables -A`.
    End,
}

/// One chain, and the rules in it that are the kubelet's.
#[derive(Debug, Clone)]
struct Wanted {
    family: Family,
    table: &'static str,
    chain: &'static str,
    place: Place,
    rules: Vec<Rule>,
}

/// Something of a kubelet's that is missing, was made, or was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Address family.
    pub family: Family,
    /// Table.
    pub table: &'static str,
    /// Chain.
    pub chain: &'static str,
    /// The rule; `None` for the chain itself.
    pub rule: Option<Rule>,
}

impl fmt::Display for Item {
    /// `ip filter: -A INPUT -j KUBE-FIREWALL` or `ip mangle: chain KUBE-IPTABLES-HINT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = nft::Family::from(self.family);
        match &self.rule {
            None => write!(f, "{family} {}: chain {}", self.table, self.chain),
            Some(rule) => write!(f, "{family} {}: -A {} {rule}", self.table, self.chain),
        }
    }
}

/// What a removal did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// What was removed.
    pub removed: Vec<Item>,
    /// Chains that were left because somebody else jumps to them (then with the kubelet's rules)
    /// or has rules in them.
    pub left: Vec<Item>,
}

/// A kubelet's chains: which families, and of which age.
#[derive(Debug, Clone)]
pub struct Kubelet {
    families: Vec<Family>,
    up_to_1_26: bool,
}

impl Default for Kubelet {
    fn default() -> Self {
        Self::new()
    }
}

impl Kubelet {
    /// What a kubelet of today creates, for IPv4 and IPv6.
    #[must_use]
    pub fn new() -> Self {
        Self {
            families: Family::ALL.to_vec(),
            up_to_1_26: false,
        }
    }

    /// For this family only.
    #[must_use]
    pub fn only(mut self, family: Family) -> Self {
        self.families = vec![family];
        self
    }

    /// What a kubelet created up to Kubernetes 1.26: `KUBE-MARK-DROP`, `KUBE-MARK-MASQ` and
    /// `KUBE-POSTROUTING` as well.
    #[must_use]
    pub fn up_to_1_26(mut self, yes: bool) -> Self {
        self.up_to_1_26 = yes;
        self
    }

    /// What is missing; nothing, if all is as a kubelet leaves it.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Ineffective`] when a built-in chain is there but not hooked in, or
    /// [`Error::Contended`] when the ruleset kept changing.
    pub fn check(&self, nft: &mut Connection) -> Result<Vec<Item>, Error> {
        self.attempt(nft, |nft, guard| {
            Ok(Done::Read(self.plan(nft, guard)?.missing))
        })
    }

    /// Makes what is missing, in one transaction, and returns it. If nothing is, nothing is
    /// committed. Rules of others are left alone.
    ///
    /// Where somebody else changes the ruleset meanwhile it begins again, as the connection's
    /// [`with_retry`](Connection::with_retry) says.
    ///
    /// # Errors
    /// As [`check`](Self::check), and [`Error::Commit`].
    #[tracing::instrument(level = "debug", skip_all)]
    pub fn ensure(&self, nft: &mut Connection) -> Result<Vec<Item>, Error> {
        let mut unknown = None;
        let done = self.attempt(nft, |nft, guard| {
            let mut plan = self.plan(nft, guard)?;
            if plan.transaction.is_empty() {
                return Ok(Done::Read(known(&unknown).unwrap_or(plan.missing)));
            }
            commit(
                nft,
                guard,
                &mut plan.transaction,
                plan.missing,
                &mut unknown,
            )
        });
        done.map_err(|error| contended(error, unknown))
    }

    /// Removes the rules and chains of a kubelet, in one transaction; the tables and their built-in
    /// chains stay.
    ///
    /// A chain that somebody else jumps to stays as it is, with its rules and the jumps to it
    /// (`KUBE-MARK-MASQ` and `KUBE-POSTROUTING`, which a kube-proxy shares, only together). Of a
    /// chain that somebody else has rules in, the kubelet's own rules go, and the chain stays.
    ///
    /// # Errors
    /// As [`ensure`](Self::ensure).
    #[tracing::instrument(level = "debug", skip_all)]
    pub fn remove(&self, nft: &mut Connection) -> Result<Removed, Error> {
        let mut unknown = None;
        let done = self.attempt(nft, |nft, guard| {
            let (mut transaction, removed) = self.removal(nft, guard)?;
            if transaction.is_empty() {
                return Ok(Done::Read(known(&unknown).unwrap_or(removed)));
            }
            commit(nft, guard, &mut transaction, removed, &mut unknown)
        });
        done.map_err(|error| contended(error, unknown))
    }

    /// Does `work` on one state of the tables, and again if they changed meanwhile.
    fn attempt<T>(
        &self,
        nft: &mut Connection,
        mut work: impl FnMut(&mut Connection, &mut Guard) -> Result<Done<T>, Attempt>,
    ) -> Result<T, Error> {
        let families = self
            .families
            .iter()
            .map(|&family| nft::Family::from(family));
        let scopes: Vec<_> = families
            .flat_map(|family| TABLES.map(|table| Scope::table(family, table)))
            .collect();
        let mut attempts = nft.retry().begin();
        loop {
            let mut guard = nft.guard_of_attempt(&attempts, &scopes)?;
            match work(nft, &mut guard) {
                Ok(Done::Committed(done)) => return Ok(done),
                Ok(Done::Read(done)) if guard.holds(nft)? => return Ok(done),
                Ok(Done::Read(_)) | Err(Attempt::Again) => {}
                Err(Attempt::Failed(Error::Read(error)))
                    if error.ask_again() && attempts.again_after_loss() =>
                {
                    continue;
                }
                Err(Attempt::Failed(error)) => return Err(error),
            }
            if !attempts.again() {
                let attempts = attempts.made();
                return Err(Error::Contended { attempts });
            }
        }
    }

    /// All chains with their rules, in an order in which no rule jumps to a chain that comes later.
    fn wanted(&self) -> Vec<Wanted> {
        self.families
            .iter()
            .flat_map(|&family| wanted(family, self.up_to_1_26))
            .collect()
    }

    /// Compares what is there with what is wanted.
    fn plan(&self, nft: &mut Connection, guard: &Guard) -> Result<Plan, Attempt> {
        let mut plan = Plan::default();
        for wanted in self.wanted() {
            let found = Found::look(nft, guard, &wanted)?;
            plan.complete(&wanted, &found)?;
        }
        Ok(plan)
    }

    fn removal(
        &self,
        nft: &mut Connection,
        guard: &Guard,
    ) -> Result<(Transaction, Removed), Attempt> {
        let wanted = self.wanted();
        let found = wanted
            .iter()
            .map(|wanted| Found::look(nft, guard, wanted))
            .collect::<Result<Vec<_>, _>>()?;
        let jumps_to = |target: &Wanted| {
            let same_table =
                |from: &Wanted| (from.family, from.table) == (target.family, target.table);
            let chains = wanted
                .iter()
                .zip(&found)
                .filter(|(from, _)| same_table(from));
            chains
                .flat_map(|(from, found)| found.rules.iter().map(|(index, _)| &from.rules[*index]))
                .filter(|rule| rule.target == Target::Jump(target.chain.into()))
                .count()
        };
        // A chain's references are its rules and what leads to it: jumps, elements of maps.
        let mut used: Vec<bool> = wanted
            .iter()
            .zip(&found)
            .map(|(chain, found)| found.references as usize > found.total + jumps_to(chain))
            .collect();
        // What one marks the other masquerades: of use to others only together.
        for family in &self.families {
            let pair = |chain: &Wanted| {
                chain.family == *family && [MARK_MASQ, POSTROUTING].contains(&chain.chain)
            };
            let together = wanted.iter().zip(&used).any(|(w, used)| pair(w) && *used);
            for (chain, used) in wanted.iter().zip(&mut used) {
                *used |= together && pair(chain);
            }
        }
        let kept = |from: &Wanted, rule: &Rule| {
            wanted.iter().zip(&used).any(|(target, used)| {
                *used
                    && (from.family, from.table) == (target.family, target.table)
                    && rule.target == Target::Jump(target.chain.into())
            })
        };

        let mut tx = Transaction::new();
        let mut removed = Removed::default();
        for ((chain, found), used) in wanted.iter().zip(&found).zip(&used) {
            for &(index, handle) in &found.rules {
                let rule = &chain.rules[index];
                if !used && !kept(chain, rule) {
                    chain.delete(&mut tx, handle)?;
                    removed.removed.push(chain.item(Some(rule)));
                }
            }
        }
        for ((target, found), used) in wanted.iter().zip(&found).zip(&used).rev() {
            if !found.exists || builtin(target.table, target.chain).is_some() {
                continue;
            }
            if *used || found.total > found.rules.len() {
                removed.left.push(target.item(None));
            } else {
                tx.delete(&chain(target.family, target.table, target.chain))?;
                removed.removed.push(target.item(None));
            }
        }
        Ok((tx, removed))
    }
}

/// Why an attempt was broken off.
enum Attempt {
    /// The ruleset changed: begin again.
    Again,
    /// An error to be reported.
    Failed(Error),
}

impl From<netlink::Error> for Attempt {
    fn from(error: netlink::Error) -> Self {
        match error {
            netlink::Error::Interrupted => Self::Again,
            error => Self::Failed(error.into()),
        }
    }
}

impl From<CommitError> for Attempt {
    fn from(error: CommitError) -> Self {
        if error.generation_moved() {
            Self::Again
        } else {
            Self::Failed(Error::Commit(Box::new(error)))
        }
    }
}

impl From<netlink::Unfit> for Attempt {
    fn from(error: netlink::Unfit) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Unwritable> for Attempt {
    fn from(error: Unwritable) -> Self {
        Self::Failed(error.into())
    }
}

/// How an attempt ended well.
enum Done<T> {
    /// A commit through the guard.
    Committed(T),
    /// Something was only read: it is so if the guard holds.
    Read(T),
}

/// What a commit was to do of which it could not be known whether it did.
type Unknown<T> = Option<(T, CommitError)>;

/// Commits. Where it cannot be known whether that was done, what is there is looked at again, once.
fn commit<T>(
    nft: &mut Connection,
    guard: &mut Guard,
    transaction: &mut Transaction,
    done: T,
    unknown: &mut Unknown<T>,
) -> Result<Done<T>, Attempt> {
    match guard.commit(nft, transaction) {
        Ok(()) => Ok(Done::Committed(done)),
        Err(error) if error.outcome == Outcome::Unknown && unknown.is_none() => {
            *unknown = Some((done, error));
            Err(Attempt::Again)
        }
        Err(error) => Err(error.into()),
    }
}

/// What was done after all, now that nothing is left to be done.
fn known<T: Clone>(unknown: &Unknown<T>) -> Option<T> {
    unknown.as_ref().map(|(done, _)| done.clone())
}

/// An error that does not say that nothing was applied where that cannot be known.
fn contended<T>(error: Error, unknown: Unknown<T>) -> Error {
    match unknown {
        Some((_, unknown)) => Error::Commit(Box::new(unknown)),
        None => error,
    }
}

/// One of the wanted chains as it is in the kernel.
#[derive(Default)]
struct Found {
    exists: bool,
    /// Number of rules in the chain and of references to it.
    references: u32,
    /// Number of rules in the chain, those of others included.
    total: usize,
    /// The wanted rules that are there, in the order in which they stand: which one, and its
    /// handle. Rules of others are not among them; of a wanted rule that stands twice, both are.
    rules: Vec<(usize, u64)>,
}

impl Found {
    fn look(nft: &mut Connection, guard: &Guard, wanted: &Wanted) -> Result<Self, Attempt> {
        let family = nft::Family::from(wanted.family);
        let ineffective = |chain, reason| {
            Attempt::Failed(Error::Ineffective {
                family,
                table: wanted.table,
                chain,
                reason,
            })
        };
        let table = nft.table(family, wanted.table)?;
        let flags = table.and_then(|table| table.flags()).unwrap_or_default();
        if flags.contains(TableFlags::DORMANT) {
            return Err(ineffective(None, "the table is dormant"));
        }
        let Some(chain) = nft.chain(family, wanted.table, wanted.chain)? else {
            return Ok(Self::default());
        };
        if let Some(builtin) = builtin(wanted.table, wanted.chain)
            && !builtin.is(&chain)
        {
            let reason = "the chain is not hooked in as the built-in chain of its name";
            return Err(ineffective(Some(wanted.chain), reason));
        }
        let mut found = Self {
            exists: true,
            references: chain.references().unwrap_or(0),
            ..Self::default()
        };
        let rules = nft.rules(RuleFilter::chain(family, wanted.table, wanted.chain))?;
        let listed = rules.for_each(|encoded| {
            found.total += 1;
            let Ok(Entry { rule, .. }) = decode(&encoded) else {
                return;
            };
            let which = wanted.rules.iter().position(|w| w.means_the_same(&rule));
            found
                .rules
                .extend(which.map(|which| (which, encoded.handle())));
        });
        guard.dumped(listed)?;
        Ok(found)
    }
}

impl Wanted {
    fn item(&self, rule: Option<&Rule>) -> Item {
        Item {
            family: self.family,
            table: self.table,
            chain: self.chain,
            rule: rule.cloned(),
        }
    }

    fn delete(&self, tx: &mut Transaction, handle: u64) -> Result<(), netlink::Unfit> {
        let mut rule = nft::Rule::new(self.family.into(), self.table, self.chain);
        rule.handle = Some(handle);
        tx.delete(&rule).map(drop)
    }
}

/// What is to be done.
#[derive(Default)]
struct Plan {
    transaction: Transaction,
    missing: Vec<Item>,
}

impl Plan {
    /// Adds what makes one chain complete.
    fn complete(&mut self, wanted: &Wanted, found: &Found) -> Result<(), Attempt> {
        let tx = &mut self.transaction;
        if !found.exists {
            tx.add(&Table::new(wanted.family.into(), wanted.table))?
                .add(&chain(wanted.family, wanted.table, wanted.chain))?;
            if builtin(wanted.table, wanted.chain).is_none() {
                self.missing.push(wanted.item(None));
            }
        }
        match wanted.place {
            Place::Head => {
                for (index, rule) in wanted.rules.iter().enumerate() {
                    if !found.rules.iter().any(|(which, _)| *which == index) {
                        tx.insert(&encode(wanted.family, wanted.table, wanted.chain, rule)?)?;
                        self.missing.push(wanted.item(Some(rule)));
                    }
                }
            }
            Place::End => {
                // The rules stand in an order that matters: from the first one on that is not in
                // its place, they are made anew.
                let mut standing = found.rules.iter();
                let in_place = (0..wanted.rules.len())
                    .take_while(|index| standing.any(|(which, _)| which == index))
                    .count();
                for &(_, handle) in found.rules.iter().filter(|(which, _)| *which >= in_place) {
                    wanted.delete(tx, handle)?;
                }
                for rule in &wanted.rules[in_place..] {
                    tx.add(&encode(wanted.family, wanted.table, wanted.chain, rule)?)?;
                    self.missing.push(wanted.item(Some(rule)));
                }
            }
        }
        Ok(())
    }
}

/// The chains of one family, in an order in which no rule jumps to a chain that comes later.
fn wanted(family: Family, up_to_1_26: bool) -> Vec<Wanted> {
    let of = |table, chain, place, rules| Wanted {
        family,
        table,
        chain,
        place,
        rules,
    };
    let v4 = family == Family::Ipv4;
    let mut all = vec![of("mangle", HINT, Place::End, vec![])];
    all.extend(TABLES.map(|table| of(table, CANARY, Place::End, vec![])));
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
        all.push(of("filter", FIREWALL, Place::End, firewall));
        for chain in ["OUTPUT", "INPUT"] {
            all.push(of("filter", chain, Place::Head, vec![Rule::jump(FIREWALL)]));
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
                Place::End,
                vec![set(MarkTarget::or(DROP_MARK))],
            ),
            of(
                "nat",
                MARK_MASQ,
                Place::End,
                vec![set(MarkTarget::or(MASQUERADE_MARK))],
            ),
            of(
                "nat",
                POSTROUTING,
                Place::End,
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
                Place::Head,
                vec![Rule::jump(POSTROUTING).with(comment("kubernetes postrouting rules"))],
            ),
        ]);
    }
    all
}

/// The rule against packets to the loopback network from outside it (CVE-2020-8558).
pub(in crate::kube) fn localnet() -> Rule {
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
                            assert!(all[..index].iter().any(|c| to == c.chain));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_rules_read_as_kubelet_writes_them() {
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
