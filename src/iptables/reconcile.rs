//! Makes a chain hold the desired rules with the fewest changes.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Found;
use std::ops::Range;

use bstr::{BStr, ByteSlice};
use similar::DiffOp;

use super::edit::Splice;
use super::{Entry, Error, NotExpressible, Rule, TableEdit};
use crate::sequence;

/// The changes made to reconcile a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ChainChanges {
    /// Existing rules that were kept, with their counters.
    pub kept: usize,
    /// Inserted rules.
    pub inserted: usize,
    /// Deleted rules.
    pub deleted: usize,
}

impl ChainChanges {
    /// Returns `true` if no rule was inserted or deleted; a chain without desired rules may have been created.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.inserted == 0 && self.deleted == 0
    }
}

impl std::ops::AddAssign for ChainChanges {
    fn add_assign(&mut self, more: Self) {
        self.kept += more.kept;
        self.inserted += more.inserted;
        self.deleted += more.deleted;
    }
}

impl TableEdit<'_> {
    /// Makes a chain hold exactly these rules, in this order. Creates the chain if it is missing.
    ///
    /// It uses the fewest insertions and deletions. An existing rule that [means the
    /// same](Rule::means_the_same) is kept byte for byte with its counters, whichever version of iptables wrote it;
    /// a rule that iptables cannot express is deleted. If nothing differs, it changes nothing.
    ///
    /// ```no_run
    /// use chainwright::iptables::{Backend, Family, Iptables, Rule, Target};
    ///
    /// let drop_marked = "-m mark --mark 0x8000/0x8000 -j DROP";
    /// let mut iptables = Iptables::open(Backend::Nft)?;
    /// let (held, first) = iptables.update(Family::Ipv4, "filter", |table| {
    ///     let rule = Rule::parse(Family::Ipv4, drop_marked.as_bytes()).expect("it is a rule");
    ///     let held = table.reconcile_chain("AGENT-FIREWALL", &[rule])?;
    ///     let first = table.ensure_first("INPUT", &[Rule::jump("AGENT-FIREWALL")])?;
    ///     Ok((held, first))
    /// })?;
    /// println!("{} of our rules stayed, {} came", held.kept, held.inserted + first.inserted);
    /// # Ok::<(), chainwright::iptables::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`append`](Self::append), and read errors.
    pub fn reconcile_chain(
        &mut self,
        chain: impl AsRef<[u8]>,
        rules: &[Rule],
    ) -> Result<ChainChanges, Error> {
        let chain = chain.as_ref().as_bstr();
        self.reconcile(chain, rules, OtherRules::Delete)
    }

    /// Like [`reconcile_chain`](Self::reconcile_chain), but keeps the other rules that `keep` selects in their places,
    /// such as another program's jumps to its own chains. A replaced rule's successor takes its place.
    ///
    /// # Errors
    /// The errors of [`reconcile_chain`](Self::reconcile_chain); [`Error::InexpressibleRule`] if the chain has a rule that
    /// iptables cannot express, so that `keep` cannot judge it.
    pub fn reconcile_chain_keeping(
        &mut self,
        chain: impl AsRef<[u8]>,
        rules: &[Rule],
        keep: impl Fn(&Rule) -> bool,
    ) -> Result<ChainChanges, Error> {
        let chain = chain.as_ref().as_bstr();
        self.reconcile(chain, rules, OtherRules::KeepSelected(&keep))
    }

    /// Makes a chain begin with these rules, in this order, each once: removes other rules in the chain that
    /// [mean the same](Rule::means_the_same) as one of them. Creates the chain if it is missing.
    ///
    /// The other rules are kept, and so are the rules that are already in place, with their counters. Equal rules in
    /// `rules` appear as often as they do there.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append), and read errors.
    pub fn ensure_first(
        &mut self,
        chain: impl AsRef<[u8]>,
        rules: &[Rule],
    ) -> Result<ChainChanges, Error> {
        let chain = chain.as_ref().as_bstr();
        self.reconcile(chain, rules, OtherRules::KeepAfter)
    }

    fn reconcile(
        &mut self,
        chain: &BStr,
        rules: &[Rule],
        others: OtherRules<'_>,
    ) -> Result<ChainChanges, Error> {
        let wanted = rules.iter().map(|rule| self.check_and_resolve(rule));
        let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
        self.ensure_chain(chain)?;
        let known = self.rules_of(chain)?;
        let mut meanings = RuleNumbers::default();
        let after: Vec<usize> = wanted.iter().map(|rule| meanings.number(rule)).collect();
        let ours = meanings.next;
        let mut number = |entry: &Result<Entry, NotExpressible>| match entry {
            Ok(entry) => meanings.number(&entry.rule),
            Err(_) => meanings.another(),
        };
        let mut changes = ChainChanges::default();
        // The rules to reconcile: their places, and their numbers.
        let (mut places, mut before) = (Vec::new(), Vec::new());
        for (place, entry) in known.iter().enumerate() {
            let is_kept = match (others, entry) {
                (OtherRules::KeepSelected(keep), Ok(entry)) => keep(&entry.rule),
                (OtherRules::KeepSelected(_), Err(why)) => {
                    return Err(Error::InexpressibleRule {
                        table: self.name().to_owned(),
                        chain: chain.to_owned(),
                        number: place + 1,
                        reason: *why,
                    });
                }
                _ => false,
            };
            if is_kept {
                changes.kept += 1;
            } else {
                places.push(place);
                before.push(number(entry));
            }
        }
        // The others stay in place: the desired rules come before the first of them.
        let is_other = |number: &usize| matches!(others, OtherRules::KeepAfter) && *number >= ours;
        let end = before.iter().position(is_other).unwrap_or(before.len());
        let place = |at: usize| places.get(at).copied().unwrap_or(known.len());

        let mut splices: Vec<Splice<'_>> = Vec::new();
        for operation in sequence::changes(&before[..end], &after) {
            let (out, put) = (operation.old_range(), operation.new_range());
            if let DiffOp::Equal { .. } = operation {
                changes.kept += out.len();
                continue;
            }
            // Replace rules one by one, so that kept rules in between stay in between; the rest follow the last.
            let mut rest = wanted[put].iter().map(|rule| &**rule);
            if out.is_empty() {
                let at = place(out.start);
                add(&mut splices, at..at, rest.by_ref());
            }
            for at in out.clone() {
                let count = if at + 1 == out.end { usize::MAX } else { 1 };
                let put = rest.by_ref().take(count);
                add(&mut splices, place(at)..place(at) + 1, put);
            }
        }
        for (at, number) in before.iter().enumerate().skip(end) {
            match is_other(number) {
                true => changes.kept += 1,
                false => add(&mut splices, place(at)..place(at) + 1, []),
            }
        }
        if !splices.is_empty() {
            self.editor.splice(self.table, chain, &splices)?;
        }
        changes.deleted = splices.iter().map(|splice| splice.out.len()).sum();
        changes.inserted = splices.iter().map(|splice| splice.put.len()).sum();
        Ok(changes)
    }

    /// Returns the rules of an existing chain; a built-in one of nf_tables may not exist before its first rule.
    pub(super) fn rules_of(
        &mut self,
        chain: &BStr,
    ) -> Result<Vec<Result<Entry, NotExpressible>>, Error> {
        match self.rules(chain) {
            Err(Error::NoSuchChain { .. }) if self.has_chain(chain)? => Ok(Vec::new()),
            rules => rules,
        }
    }
}

/// How to treat a chain's other rules.
#[derive(Clone, Copy)]
enum OtherRules<'k> {
    Delete,
    /// Delete them, except for the selected ones, which stay in place.
    KeepSelected(&'k dyn Fn(&Rule) -> bool),
    /// Keep them after the desired ones.
    KeepAfter,
}

/// Appends a change to the splices, or extends the last one.
fn add<'r>(
    splices: &mut Vec<Splice<'r>>,
    out: Range<usize>,
    put: impl IntoIterator<Item = &'r Rule>,
) {
    match splices.last_mut() {
        Some(last) if last.out.end == out.start => {
            last.out.end = out.end;
            last.put.extend(put);
        }
        _ => splices.push(Splice {
            out,
            put: put.into_iter().collect(),
        }),
    }
}

/// Assigns the same number to rules that mean the same.
#[derive(Default)]
struct RuleNumbers {
    known: HashMap<Rule, usize>,
    next: usize,
}

impl RuleNumbers {
    fn number(&mut self, rule: &Rule) -> usize {
        match self.known.entry(rule.canonical()) {
            Found::Occupied(known) => *known.get(),
            Found::Vacant(vacant) => {
                self.next += 1;
                *vacant.insert(self.next - 1)
            }
        }
    }

    /// Returns a unique number.
    const fn another(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }
}
