//! Faults of a chain and its rules.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};

use bstr::{BStr, BString};

use super::ExamineOptions;
use super::fault::{Fault, Finding, FindingLocation};
use crate::iptables::compat::{self, Location, Misreading, Reading, Version};
use crate::iptables::{
    Chain, ChainKind, Entry, NotExpressible, Policy, Rule, RuleView, Table, Tables, Target,
};
use crate::xt;

/// The way in which a version fails on a rule.
#[derive(PartialEq)]
enum ReadingFault {
    Misread(Box<Misreading>),
    Unreadable(&'static str),
}

/// The versions that hide a table, each with the first cause.
#[derive(Default)]
pub(super) struct Hidden(Vec<(Version, Location, &'static str)>);

impl Hidden {
    fn add(&mut self, version: Version, chain: &BStr, rule: Option<usize>, why: &'static str) {
        if self.0.iter().all(|(known, ..)| *known != version) {
            let chain = chain.to_owned();
            self.0.push((version, Location { chain, rule }, why));
        }
    }

    /// Returns a fault for each cause.
    pub(super) fn faults(mut self) -> Vec<Fault> {
        self.0.sort_by_key(|(version, ..)| *version);
        let mut faults: Vec<Fault> = Vec::new();
        for (version, cause, reason) in self.0 {
            let same = faults.iter_mut().find_map(|fault| match fault {
                Fault::Hidden {
                    versions,
                    at,
                    reason: why,
                } if *at == cause && *why == reason => Some(versions),
                _ => None,
            });
            match same {
                Some(versions) => versions.push(version),
                None => faults.push(Fault::Hidden {
                    versions: vec![version],
                    at: cause,
                    reason,
                }),
            }
        }
        faults
    }
}

/// The chains to which a table's rules jump.
pub(super) type Reached = HashSet<BString>;

/// A chain being examined, with its table.
pub(super) struct ChainExaminer<'t> {
    pub(super) tables: &'t Tables,
    pub(super) table: &'t Table<'t>,
    pub(super) chain: Chain<'t>,
}

impl ChainExaminer<'_> {
    fn finding(&self, rule: Option<usize>, fault: Fault) -> Finding {
        let place = FindingLocation {
            rule,
            chain: Some(self.chain.name().to_owned()),
            ..super::table::place(self.tables, self.table)
        };
        Finding { place, fault }
    }

    /// Examines the rules in order, and records the chains to which they jump and causes that hide the table. Returns
    /// whether they decide on packets.
    pub(super) fn rules(
        &self,
        options: &ExamineOptions<'_>,
        reached: &mut Reached,
        hidden: &mut Hidden,
        findings: &mut Vec<Finding>,
    ) -> bool {
        let mut entry = Entry::default();
        let mut seen = DuplicateDetector::default();
        let mut catch_all: Option<usize> = None;
        let (mut decides, mut is_reported) = (false, false);
        // No version looks at the rules of a chain that is entered elsewhere.
        let versions = match self.chain.has_foreign_hook() {
            true => &[],
            false => options.versions,
        };
        for (number, rule) in (1..).zip(self.chain.rules()) {
            let read = self.tables.entry_into(&rule, &mut entry);
            self.readings(number, &rule, read, versions, hidden, findings);
            if let (Some(catch_all), false) = (catch_all, is_reported) {
                is_reported = true;
                findings.push(self.finding(Some(number), Fault::Unreachable { catch_all }));
            }
            let rule = &entry.rule;
            if read.is_err() {
                decides = true;
                continue;
            }
            decides |= decides_on(&rule.target);
            if let Some(to) = rule.jump_chain()
                && !reached.contains(to)
            {
                reached.insert(to.to_owned());
            }
            if let Some(of) = seen.before(rule, number) {
                findings.push(self.finding(Some(number), Fault::Duplicate { of }));
            }
            if catch_all.is_none() && rule.matches_all_packets() && ends(&rule.target) {
                catch_all = Some(number);
            }
        }
        decides
    }

    /// Collects how the versions read a rule.
    fn readings(
        &self,
        number: usize,
        rule: &RuleView<'_>,
        read: Result<(), NotExpressible>,
        versions: &[Version],
        hidden: &mut Hidden,
        findings: &mut Vec<Finding>,
    ) {
        let mut wrong: Vec<(ReadingFault, Vec<Version>)> = Vec::new();
        if let RuleView::Nft(rule) = rule {
            for (version, reading) in compat::readings(rule, versions) {
                let found = match reading {
                    Reading::Correct => continue,
                    Reading::Hides(why) => {
                        hidden.add(version, self.chain.name(), Some(number), why);
                        continue;
                    }
                    Reading::Fails(why) => ReadingFault::Unreadable(why),
                    Reading::Other(mut reading) => {
                        self.tables.name_sets(&mut reading.read_as);
                        ReadingFault::Misread(reading)
                    }
                };
                match wrong.iter_mut().find(|(before, _)| *before == found) {
                    Some((_, versions)) => versions.push(version),
                    None => wrong.push((found, vec![version])),
                }
            }
        }
        if let (Err(why), true) = (read, wrong.is_empty()) {
            findings.push(self.finding(Some(number), Fault::NotExpressible(why)));
        }
        let faults = wrong.into_iter().map(|(wrong, versions)| match wrong {
            ReadingFault::Misread(reading) => Fault::Misread { versions, reading },
            ReadingFault::Unreadable(why) => Fault::Unreadable {
                versions,
                reason: why,
            },
        });
        findings.extend(faults.map(|fault| self.finding(Some(number), fault)));
    }

    /// Examines the chain itself, without its rules.
    pub(super) fn own_faults(
        &self,
        options: &ExamineOptions<'_>,
        hidden: &mut Hidden,
        findings: &mut Vec<Finding>,
    ) {
        if self.chain.has_foreign_hook() {
            for &version in options.versions {
                if let Some(why) = compat::hides_foreign_hooks(version) {
                    hidden.add(version, self.chain.name(), None, why);
                }
            }
        }
        if let Some(why) = self.chain.not_expressible() {
            findings.push(self.finding(None, Fault::ChainNotExpressible { reason: why }));
        }
        let drops = self.chain.policy() == Some(Policy::Drop);
        if drops && self.chain.rule_count() == 0 {
            findings.push(self.finding(None, Fault::DropsAll));
        }
    }

    /// Returns `true` if the chain is a user's chain without references.
    pub(super) fn is_unreached(&self, reached: &Reached) -> bool {
        // An element of a map may refer to it, too: nf_tables reports the number of all references.
        let is_reached = reached.contains::<BStr>(self.chain.name())
            || self.chain.references().is_some_and(|number| number > 0);
        self.chain.kind() == ChainKind::User && !is_reached
    }

    pub(super) fn unreached(&self) -> Finding {
        self.finding(None, Fault::Unreached)
    }
}

/// Returns `true` if matching packets never reach the next rule.
const fn ends(target: &Target) -> bool {
    use xt::Target as Extension;
    match target {
        Target::Accept | Target::Drop | Target::Return | Target::Queue | Target::Goto(_) => true,
        Target::None | Target::Jump(_) => false,
        Target::Extension(target) => matches!(
            target,
            Extension::Reject(_)
                | Extension::Dnat(_)
                | Extension::Snat(_)
                | Extension::Masquerade(_)
                | Extension::Redirect(_)
                | Extension::Netmap(_)
                | Extension::Nfqueue(_)
        ),
    }
}

/// Returns `true` if the target decides on matching packets: a chain of such rules is meant to be reached.
const fn decides_on(target: &Target) -> bool {
    !matches!(target, Target::Return) && (ends(target) || matches!(target, Target::Jump(_)))
}

/// Finds repeated rules: without stateful or random matches, and with a target that ends the chain for the packet, so
/// that the second rule has no effect, or that jumps to another chain.
#[derive(Default)]
struct DuplicateDetector {
    /// Numbers of rules by their text.
    rules: HashMap<BString, usize>,
    /// The same for rules whose conditions another rule may change, since the last such change.
    until_changed: HashMap<BString, usize>,
}

impl DuplicateDetector {
    /// Returns the number of the earlier rule that this one repeats.
    fn before(&mut self, rule: &Rule, number: usize) -> Option<usize> {
        let is_final = ends(&rule.target);
        let is_jump = matches!(rule.target, Target::Jump(_));
        let is_plain = !rule.matches.iter().any(xt::Match::has_effects);
        let mut of = None;
        if is_plain && (is_final || is_jump) {
            let text = rule.canonical().to_string().into();
            let seen = match depends_on_rule_effects(rule) {
                true => &mut self.until_changed,
                false => &mut self.rules,
            };
            of = match seen.entry(text) {
                Slot::Occupied(first) => Some(*first.get()),
                Slot::Vacant(free) => {
                    free.insert(number);
                    None
                }
            };
        }
        let may_change = !is_final && rule.target != Target::None;
        if may_change {
            self.until_changed.clear();
        }
        // It may change anything about the connection.
        if matches!(rule.target, Target::Extension(xt::Target::Ct(_))) {
            self.rules.clear();
        }
        of
    }
}

/// Returns `true` if another rule, or another chain, may change the result of its conditions: marks, sets, and header
/// fields or other bytes of the packet.
fn depends_on_rule_effects(rule: &Rule) -> bool {
    let is_one = |one: &xt::Match| {
        matches!(
            one,
            xt::Match::Tcp(xt::matches::tcp::Tcp {
                option: Some(_),
                ..
            }) | xt::Match::Length(_)
                | xt::Match::String(_)
                | xt::Match::U32(_)
                | xt::Match::Mark(_)
                | xt::Match::Connmark(_)
                | xt::Match::Connlabel(_)
                | xt::Match::Dscp(_)
                | xt::Match::Ecn(_)
                | xt::Match::Tos(_)
                | xt::Match::Ttl(_)
                | xt::Match::Hl(_)
                | xt::Match::Set(_)
                | xt::Match::Tcpmss(_)
                | xt::Match::Rateest(_)
        )
    };
    rule.matches.iter().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Family;

    /// A rule that equals an earlier one is reported as a duplicate, unless the rules in between may
    /// have changed the result of its conditions.
    #[test]
    fn possibly_changed_rules_are_no_duplicates() {
        for (rule, between, of) in [
            ("-s 10.0.0.1/32 -j DROP", "-j MARK --set-mark 1", Some(1)),
            ("-m mark --mark 1 -j DROP", "-i lo -j ACCEPT", Some(1)),
            ("-m mark --mark 1 -j DROP", "-j MARK --set-mark 1", None),
            ("-m mark --mark 1 -j DROP", "-j other", None),
            ("-m length --length 40 -j DROP", "-j other", None),
            (
                "-m conntrack --ctstate UNTRACKED -j ACCEPT",
                "-j MARK --set-mark 1",
                Some(1),
            ),
            (
                "-m conntrack --ctstate UNTRACKED -j ACCEPT",
                "-j CT --notrack",
                None,
            ),
            ("-m limit --limit 5/sec -j DROP", "-i lo -j ACCEPT", None),
        ] {
            let mut seen = DuplicateDetector::default();
            let parse = |text| Rule::parse(Family::Ipv4, text).unwrap();
            assert_eq!(seen.before(&parse(rule), 1), None, "{rule}");
            assert_eq!(seen.before(&parse(between), 2), None, "{between}");
            assert_eq!(seen.before(&parse(rule), 3), of, "{rule} {between}");
        }
    }
}
