//! Restores a text while keeping other programs' chains.

use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};

use super::memory_tables::{MemoryChain, MemoryTables};
use super::restore::{Restorer, Texts};
use super::{RestoreOptions, Restored};
use crate::iptables::edit::Edit;
use crate::iptables::handle::Change;
use crate::iptables::{ChainChanges, Error, Iptables};
use crate::xt::Family;

/// The result of a restore that keeps other programs' chains.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Preserved {
    /// The tables, chains and rules of the text.
    pub restored: Restored,
    /// Number of the text's chains and rules that were skipped: kept chains, and jumps to them.
    pub skipped: usize,
    /// Number of kept chains.
    pub chains: usize,
    /// Number of removed chains.
    pub removed: usize,
    /// Changes to the rules of the text's chains, and of built-in ones.
    pub rules: ChainChanges,
}

impl Iptables {
    /// Restores tables from a text, but keeps other programs' chains, which `keep` selects by name: these chains, and
    /// the jumps to them from chains of the text and from built-in ones, stay where they are. This restores tables
    /// while agents with chains in them run: on nf_tables in one transaction, legacy tables each in one replacement.
    ///
    /// Existing rules of the text are kept with their counters, and so is a policy that equals the text's. The text's
    /// own versions of kept chains, and its jumps to them, are skipped, because they may be outdated. A chain that is
    /// neither in the text nor kept is removed; if a kept chain jumps to it, that is an error, and nothing changes.
    /// Tables that the text does not have are unchanged.
    ///
    /// ```no_run
    /// use bstr::ByteSlice;
    /// use chainwright::iptables::text::RestoreOptions;
    /// use chainwright::iptables::{Backend, Family, Iptables};
    ///
    /// let text = std::fs::read("/etc/iptables/rules.v4")?;
    /// let mut iptables = Iptables::open(Backend::Nft)?;
    /// let kept = iptables.restore_keeping(Family::Ipv4, text, &RestoreOptions::default(), |chain| {
    ///     chain.starts_with(b"KUBE-") || chain.starts_with(b"CNI-")
    /// })?;
    /// println!("{} chains of others stayed", kept.chains);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The options [`test`](RestoreOptions::test) and [`table`](RestoreOptions::table) apply; the others do not:
    /// nothing is flushed, and no counters are set.
    ///
    /// # Errors
    /// The errors of [`restore`](Self::restore).
    pub fn restore_keeping(
        &mut self,
        family: Family,
        text: impl AsRef<[u8]>,
        options: &RestoreOptions,
        keep: impl Fn(&BStr) -> bool,
    ) -> Result<Preserved, Error> {
        let inputs = [(family, text.as_ref())];
        let texts = Texts::new(&inputs, options)?;
        let (mut desired, mut kept) = self.desired_tables(family, &texts, options)?;
        for chains in &mut desired {
            kept.skipped += skip_kept(chains, &keep);
        }
        let change = Change {
            apply: !options.test,
            tracking: false,
            replaced: &[],
            repeatable: true,
        };
        let changed = self.change(&texts.tables, change, &mut |edit| {
            let mut changed = kept.clone();
            for (table, chains) in desired.iter().enumerate() {
                apply_desired(edit, table, chains, &keep, &mut changed)?;
            }
            Ok(changed)
        });
        changed.map_err(|error| self.explain(&texts, options, 0, error))
    }

    /// Builds the chains of each table of a text, starting with empty tables.
    fn desired_tables(
        &self,
        family: Family,
        texts: &Texts<'_>,
        options: &RestoreOptions,
    ) -> Result<(Vec<Vec<MemoryChain>>, Preserved), Error> {
        let names = self.names();
        let restorer = Restorer {
            family,
            options,
            backend: self.backend(),
            tables: &texts.tables,
            first_line: 0,
            chains: HashSet::new(),
            native_log: self.has_native_log(),
            names: &names,
            multiplied: 0,
        };
        let owned: Vec<_> = texts
            .tables
            .iter()
            .map(|(family, name)| (*family, (*name).to_owned()))
            .collect();
        let (mut tables, mut kept) = (MemoryTables::new(&texts.tables), Preserved::default());
        let mut edit = Edit::new(&mut tables, &owned, self.sets());
        restorer.restore(texts.inputs[0].1, &mut edit, &mut kept.restored)?;
        Ok((tables.into_chains(), kept))
    }
}

/// Removes kept chains and jumps to them from the desired chains; returns their number.
fn skip_kept(chains: &mut Vec<MemoryChain>, keep: &impl Fn(&BStr) -> bool) -> usize {
    let is_kept = |chain: &MemoryChain| keep(chain.name.as_bstr());
    let skipped = chains.iter().filter(|chain| is_kept(chain));
    let mut count: usize = skipped.map(|chain| 1 + chain.rules.len()).sum();
    chains.retain(|chain| !is_kept(chain));
    for chain in chains {
        let before = chain.rules.len();
        chain
            .rules
            .retain(|rule| !rule.jump_chain().is_some_and(keep));
        count += before - chain.rules.len();
    }
    count
}

/// Changes a table to the desired state.
fn apply_desired(
    edit: &mut Edit<'_>,
    table: usize,
    desired: &[MemoryChain],
    keep: &impl Fn(&BStr) -> bool,
    changed: &mut Preserved,
) -> Result<(), Error> {
    let mut known = edit.at(table).unique_chains()?;
    changed.chains += known.iter().filter(|name| keep(name.as_bstr())).count();
    known.retain(|name| !keep(name.as_bstr()));
    let existing: HashSet<BString> = known.iter().cloned().collect();
    // Create chains before rules that jump to them.
    for chain in desired {
        edit.set_line(chain.line);
        let mut table = edit.at(table);
        if !table.is_builtin(chain.name.as_bstr()) && !existing.contains(&chain.name) {
            table
                .declare(&chain.name)
                .map_err(|error| error.at(chain.line))?;
        }
    }
    for chain in desired {
        edit.set_line(chain.line);
        let mut table = edit.at(table);
        let rules = match existing.contains(&chain.name) || !chain.rules.is_empty() {
            true => table.reconcile_chain_keeping(&chain.name, &chain.rules, |rule| {
                rule.jump_chain().is_some_and(keep)
            })?,
            false => ChainChanges::default(),
        };
        changed.rules += rules;
        if chain.policy.is_some() {
            table.set_policy(&chain.name, chain.policy, None)?;
        }
    }
    edit.set_line(0);
    let mut table = edit.at(table);
    let desired_names: HashSet<&BStr> = desired.iter().map(|chain| chain.name.as_bstr()).collect();
    known.retain(|name| !desired_names.contains(name.as_bstr()));
    changed.removed += known.len();
    table.remove_chains(&known)
}
