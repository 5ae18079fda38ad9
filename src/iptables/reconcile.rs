//! A chain that holds what it is to hold, by the fewest changes.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Found;
use std::ops::Range;

use bstr::{BStr, ByteSlice};
use similar::DiffOp;

use super::edit::Splice;
use super::{Entry, Error, NotExpressible, Rule, TableEdit};
use crate::sequence;

/// What was done so that a chain holds what it is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ChainChanges {
    /// Rules that were there and stay, with their counters.
    pub kept: usize,
    /// Rules that were put in.
    pub inserted: usize,
    /// Rules that were taken out.
    pub deleted: usize,
}

impl ChainChanges {
    /// Whether no rule was put in or taken out: the chain held it already, or was made and is to hold none.
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
    /// Sees to it that a chain holds these rules, in this order, and no others. A chain that is not there is made.
    ///
    /// It is done by the fewest insertions and deletions. A rule that is there and [means the
    /// same](Rule::means_the_same) stays as it is, byte for byte, whichever version of iptables wrote it, and with
    /// its counters; what iptables has no words for goes. Where nothing is to be changed, nothing is.
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
    /// As [`append`](Self::append), and those of reading.
    pub fn reconcile_chain(
        &mut self,
        chain: impl AsRef<[u8]>,
        rules: &[Rule],
    ) -> Result<ChainChanges, Error> {
        let chain = chain.as_ref().as_bstr();
        self.make_chain_hold(chain, rules, Others::Go)
    }

    /// The same, but rules of which `keep` says so stay where they are among the others: those of somebody else, who put
    /// jumps to their own chains into this one, say. What comes in the place of other rules stands there.
    ///
    /// # Errors
    /// As [`reconcile_chain`](Self::reconcile_chain); [`Error::NoWords`] if the chain has a rule that iptables has no words
    /// for: whether it is to be kept is not known.
    pub fn reconcile_chain_keeping(
        &mut self,
        chain: impl AsRef<[u8]>,
        rules: &[Rule],
        keep: impl Fn(&Rule) -> bool,
    ) -> Result<ChainChanges, Error> {
        let chain = chain.as_ref().as_bstr();
        self.make_chain_hold(chain, rules, Others::Chosen(&keep))
    }

    /// Sees to it that these rules stand in a chain before all others, in this order, each once: a rule elsewhere in
    /// the chain that [means the same](Rule::means_the_same) as one of them is taken out. A chain that is not there
    /// is made.
    ///
    /// The others stay as they are, and so does what of these rules is in its place, with its counters. Equal rules in
    /// `rules` stand as often as they do there.
    ///
    /// # Errors
    /// As [`append`](Self::append), and those of reading.
    pub fn ensure_first(
        &mut self,
        chain: impl AsRef<[u8]>,
        rules: &[Rule],
    ) -> Result<ChainChanges, Error> {
        let chain = chain.as_ref().as_bstr();
        self.make_chain_hold(chain, rules, Others::Follow)
    }

    fn make_chain_hold(
        &mut self,
        chain: &BStr,
        rules: &[Rule],
        others: Others<'_>,
    ) -> Result<ChainChanges, Error> {
        let wanted = rules.iter().map(|rule| self.to_put_in(rule));
        let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
        self.ensure_chain(chain)?;
        let known = self.rules_of(chain)?;
        let mut meanings = Meanings::default();
        let after: Vec<usize> = wanted.iter().map(|rule| meanings.number(rule)).collect();
        let ours = meanings.next;
        let mut number = |entry: &Result<Entry, NotExpressible>| match entry {
            Ok(entry) => meanings.number(&entry.rule),
            Err(_) => meanings.another(),
        };
        let mut changes = ChainChanges::default();
        // What is to become the wanted rules: their places, and their numbers.
        let (mut places, mut before) = (Vec::new(), Vec::new());
        for (place, entry) in known.iter().enumerate() {
            let is_kept = match (others, entry) {
                (Others::Chosen(keep), Ok(entry)) => keep(&entry.rule),
                (Others::Chosen(_), Err(why)) => {
                    return Err(Error::NoWords {
                        table: self.name().to_owned(),
                        chain: chain.to_owned(),
                        number: place + 1,
                        why: *why,
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
        // The others stay where they are: ours come before the first of them.
        let is_other = |number: &usize| matches!(others, Others::Follow) && *number >= ours;
        let end = before.iter().position(is_other).unwrap_or(before.len());
        let place = |at: usize| places.get(at).copied().unwrap_or(known.len());

        let mut splices: Vec<Splice<'_>> = Vec::new();
        for operation in sequence::changes(&before[..end], &after) {
            let (out, put) = (operation.old_range(), operation.new_range());
            if let DiffOp::Equal { .. } = operation {
                changes.kept += out.len();
                continue;
            }
            // One comes in the place of one, so that what is kept between stays between; the rest behind the last.
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

    /// The rules of a chain that is there; a built-in one of nf_tables may only come with its first rule.
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

/// What becomes of a chain's other rules.
#[derive(Clone, Copy)]
enum Others<'k> {
    Go,
    /// They go, but for those that are kept where they are.
    Chosen(&'k dyn Fn(&Rule) -> bool),
    /// They stay, behind the wanted ones.
    Follow,
}

/// Adds to splices what comes behind them all.
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

/// Numbers that are the same for rules that mean the same.
#[derive(Default)]
struct Meanings {
    known: HashMap<Rule, usize>,
    next: usize,
}

impl Meanings {
    fn number(&mut self, rule: &Rule) -> usize {
        match self.known.entry(rule.canonical()) {
            Found::Occupied(known) => *known.get(),
            Found::Vacant(room) => {
                self.next += 1;
                *room.insert(self.next - 1)
            }
        }
    }

    /// One that no other has.
    const fn another(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }
}
