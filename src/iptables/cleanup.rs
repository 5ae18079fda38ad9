//! Atomic removal of chains and rules that a program left behind.

use bstr::{BStr, BString, ByteSlice};

use super::edit::{Edit, Splice};
use super::handle::Change;
use super::sets::named;
use super::{Error, Family, Iptables, NotExpressible, Rule, TableEdit};
use crate::xt;

/// Selects what to remove: chains with all rules that jump to them, and rules by comment.
#[derive(Clone, Copy)]
pub struct Cleanup<'c> {
    /// Only removes from tables with this name.
    pub table: Option<&'c str>,
    /// Selects chains by name. Built-in ones are never removed.
    pub chains: &'c dyn Fn(&BStr) -> bool,
    /// Selects rules by comment.
    pub comments: &'c dyn Fn(&BStr) -> bool,
}

impl<'c> Cleanup<'c> {
    /// Selects chains by name.
    #[must_use]
    pub fn chains(chains: &'c dyn Fn(&BStr) -> bool) -> Self {
        Self {
            table: None,
            chains,
            comments: &|_| false,
        }
    }

    fn has(&self, rule: &Rule) -> bool {
        let is_its = |one: &xt::Match| match one {
            xt::Match::Comment(comment) => (self.comments)(comment.as_bytes().as_bstr()),
            _ => false,
        };
        rule.jump_chain().is_some_and(self.chains) || rule.matches.iter().any(is_its)
    }
}

impl std::fmt::Debug for Cleanup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cleanup").finish_non_exhaustive()
    }
}

/// The chains and rules removed from one table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanedUp {
    /// The table's family.
    pub family: Family,
    /// The table.
    pub table: String,
    /// The removed chains, in the kernel's order.
    pub chains: Vec<BString>,
    /// The removed rules with their chains: the rules of removed chains, rules that jumped to them, and selected rules.
    pub rules: Vec<(BString, Result<Rule, NotExpressible>)>,
}

impl CleanedUp {
    /// Returns `true` if nothing was removed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.chains.is_empty() && self.rules.is_empty()
    }
}

impl TableEdit<'_> {
    /// Removes chains with their rules and all rules that jump to them, and rules by comment.
    ///
    /// The target of a rule that iptables cannot express is unknown. If it jumps to a removed chain, the
    /// commit of the change fails.
    ///
    /// # Errors
    /// Read errors.
    pub fn clean_up(&mut self, selection: &Cleanup<'_>) -> Result<CleanedUp, Error> {
        let mut removed = CleanedUp {
            family: self.family(),
            table: self.name().to_owned(),
            chains: Vec::new(),
            rules: Vec::new(),
        };
        for chain in self.unique_chains()? {
            let is_removed =
                (selection.chains)(chain.as_bstr()) && !self.is_builtin(chain.as_bstr());
            let mut splices = Vec::new();
            for (place, entry) in self.rules_of(chain.as_bstr())?.into_iter().enumerate() {
                if !is_removed && !entry.as_ref().is_ok_and(|entry| selection.has(&entry.rule)) {
                    continue;
                }
                splices.push(Splice {
                    out: place..place + 1,
                    put: Vec::new(),
                });
                removed
                    .rules
                    .push((chain.clone(), entry.map(|entry| entry.rule)));
            }
            match is_removed {
                true => removed.chains.push(chain),
                false if splices.is_empty() => {}
                false => self.editor.splice(self.table, chain.as_bstr(), &splices)?,
            }
        }
        self.remove_chains(&removed.chains)?;
        Ok(removed)
    }
}

impl Iptables {
    /// Removes chains and rules from all existing tables of these families: on nf_tables atomically, in each legacy
    /// table atomically. It creates no table. The result omits unchanged tables.
    ///
    /// Afterwards it verifies the removal. With `test` it changes nothing and returns what it would remove; on
    /// nf_tables the kernel checks the change.
    ///
    /// ```no_run
    /// use chainwright::iptables::{Backend, Cleanup, Family, Iptables};
    ///
    /// let mut legacy = Iptables::open(Backend::Legacy)?;
    /// let left_behind = Cleanup::chains(&|name| name.starts_with(b"AZURE-NPM"));
    /// for removed in legacy.clean_up(&[Family::Ipv4, Family::Ipv6], &left_behind, false)? {
    ///     println!("{} chains of {}", removed.chains.len(), removed.table);
    /// }
    /// # Ok::<(), chainwright::iptables::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`update_tables`](Self::update_tables); [`Error::Recreated`]; [`Error::NotVerified`].
    pub fn clean_up(
        &mut self,
        families: &[Family],
        selection: &Cleanup<'_>,
        test: bool,
    ) -> Result<Vec<CleanedUp>, Error> {
        let mut names = Vec::new();
        for family in Family::ALL
            .iter()
            .filter(|family| families.contains(family))
        {
            let in_use = self.tables_in_use(*family)?.into_iter();
            let wanted = in_use.filter(|name| selection.table.is_none_or(|only| only == name));
            names.extend(wanted.map(|name| (*family, name)));
        }
        let tables: Vec<_> = names.iter().map(|(f, name)| (*f, name.as_str())).collect();
        if tables.is_empty() {
            return Ok(Vec::new());
        }
        let mut removed = self.clean(&tables, selection, !test)?;
        removed.retain(|removed| !removed.is_empty());
        if !test && !removed.is_empty() {
            let again = self
                .clean(&tables, selection, false)
                .map_err(|error| Error::NotVerified(Box::new(error)))?;
            if let Some(again) = again.into_iter().find(|again| !again.is_empty()) {
                return Err(Error::Recreated(Box::new(again)));
            }
        }
        let rules = removed.iter_mut().flat_map(|removed| &mut removed.rules);
        for rule in rules.filter_map(|(_, rule)| rule.as_mut().ok()) {
            // A set whose name cannot be found keeps its index.
            let _ = named(rule, self.sets());
        }
        Ok(removed)
    }

    fn clean(
        &mut self,
        tables: &[(Family, &str)],
        selection: &Cleanup<'_>,
        apply: bool,
    ) -> Result<Vec<CleanedUp>, Error> {
        let change = Change {
            apply,
            tracking: false,
            replaced: &[],
            repeatable: false,
        };
        self.change(tables, change, &mut |edit: &mut Edit<'_>| {
            let each = (0..tables.len()).map(|table| edit.at(table).clean_up(selection));
            each.collect()
        })
    }
}
