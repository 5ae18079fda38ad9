//! Changes of tables, chains and rules, on either backend.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};

use super::sets::{Sets, resolved};
use super::{
    Backend, Counters, Entry, Error, Family, KnownDifference, NotExpressible, Policy, Rule, Target,
    builtin,
};
use crate::xt;

/// Differences from iptables in changes of tables.
pub(super) const DIFFERENCES: &[KnownDifference] = &[
    KnownDifference {
        subject: "`-j DROP` in table nat",
        iptables: "refuses -A, -I, -R, -D and -C",
        chainwright: "refuses -A, -I and -R",
        reason: "-C finds a rule that another tool added, and -D deletes it.",
    },
    KnownDifference {
        subject: "`-E CHAIN ACCEPT`",
        iptables: "in nf_tables, renames the chain to a verdict",
        chainwright: "refuses it",
        reason: "No rule could jump to it afterwards.",
    },
    KnownDifference {
        subject: "`-D` and `-C` of rules written by another version",
        iptables: "compares bytes and may not find them",
        chainwright: "compares their meaning",
        reason: "The same rule has different bytes in different versions.",
    },
];

/// The operations of a backend on the tables of a change. Tables are identified by their place in
/// the list of the change; positions of rules start at 0.
///
/// Whether a chain or rule exists may turn out only at the commit.
pub(super) trait Editor {
    /// Attributes the following operations to this line of a text; 0 for none.
    fn set_line(&mut self, line: usize);
    /// Removes all chains and rules. Policies become `ACCEPT` in nf_tables, where the chains go.
    fn clear(&mut self, table: usize) -> Result<(), Error>;
    /// Returns the chains' names.
    fn chains(&mut self, table: usize) -> Result<Vec<BString>, Error>;
    /// Returns whether there is such a chain.
    fn has_chain(&mut self, table: usize, chain: &BStr) -> Result<bool, Error>;
    /// Creates a chain that does not exist yet.
    fn new_chain(&mut self, table: usize, chain: &BStr) -> Result<(), Error>;
    /// Makes sure that the chain exists, and, unless it is built in, empties it.
    fn declare(&mut self, table: usize, chain: &BStr) -> Result<(), Error>;
    /// Returns the backend whose behavior to follow where iptables' backends differ.
    fn backend(&self) -> Backend {
        Backend::Legacy
    }
    /// Removes a chain that has no rules and no references.
    fn remove_chain(&mut self, table: usize, chain: &BStr) -> Result<(), Error>;
    /// Renames a chain.
    fn rename_chain(&mut self, table: usize, from: &BStr, to: &BStr) -> Result<(), Error>;
    /// Removes all rules of a chain, or of all chains.
    fn flush(&mut self, table: usize, chain: Option<&BStr>) -> Result<(), Error>;
    /// Sets a built-in chain's policy, counters or both.
    fn set_policy(
        &mut self,
        table: usize,
        chain: &BStr,
        policy: Option<Policy>,
        counters: Option<Counters>,
    ) -> Result<(), Error>;
    /// Returns the policy of an existing built-in chain, as the kernel has it.
    fn policy(&mut self, table: usize, chain: &BStr) -> Result<Option<Policy>, Error>;
    /// Returns whether a built-in chain exists: nf_tables creates them with their first content.
    fn has_builtin(&mut self, table: usize, chain: &BStr) -> Result<bool, Error> {
        Ok(self.policy(table, chain)?.is_some())
    }
    /// Returns the number of the chain's rules.
    fn rule_count(&mut self, table: usize, chain: &BStr) -> Result<usize, Error>;
    /// Returns the chain's rules.
    fn rules(
        &mut self,
        table: usize,
        chain: &BStr,
    ) -> Result<Vec<Result<Entry, NotExpressible>>, Error>;
    /// Appends a rule.
    fn append(
        &mut self,
        table: usize,
        chain: &BStr,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error>;
    /// Inserts a rule at this position.
    fn insert(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error>;
    /// Replaces the rule at this position.
    fn replace(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error>;
    /// Removes the rule at this position.
    fn remove(&mut self, table: usize, chain: &BStr, position: usize) -> Result<(), Error>;
    /// Replaces ranges of rules: in ascending order of their original positions, without
    /// overlaps.
    fn splice(&mut self, table: usize, chain: &BStr, splices: &[Splice<'_>]) -> Result<(), Error> {
        // Going from the last to the first keeps the positions valid.
        for splice in splices.iter().rev() {
            for position in splice.out.clone().rev() {
                self.remove(table, chain, position)?;
            }
            for rule in splice.put.iter().rev() {
                let position = splice.out.start;
                self.insert(table, chain, position, rule, Counters::default())?;
            }
        }
        Ok(())
    }
    /// Sets counters to 0: of one rule, or of the chain's rules and policy.
    fn zero(&mut self, table: usize, chain: &BStr, position: Option<usize>) -> Result<(), Error>;
}

/// A range of rules to remove, and the rules that replace it.
#[derive(Debug, Clone)]
pub(super) struct Splice<'r> {
    pub(super) out: Range<usize>,
    pub(super) put: Vec<&'r Rule>,
}

/// A change of tables in progress: the argument of the function given to
/// [`Iptables::update`](super::Iptables::update). Nothing reaches the kernel before the function returns.
pub struct Edit<'e> {
    editor: &'e mut dyn Editor,
    tables: &'e [(Family, String)],
    sets: &'e Sets,
}

impl<'e> Edit<'e> {
    pub(super) fn new(
        editor: &'e mut dyn Editor,
        tables: &'e [(Family, String)],
        sets: &'e Sets,
    ) -> Self {
        Self {
            editor,
            tables,
            sets,
        }
    }

    /// Returns one of the tables of the change.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] if it was not among them.
    pub fn table(&mut self, family: Family, name: &str) -> Result<TableEdit<'_>, Error> {
        let position = self
            .tables
            .iter()
            .position(|(other, table)| *other == family && table == name)
            .ok_or_else(|| Error::no_such_table(name))?;
        Ok(self.at(position))
    }

    /// Returns the table at this place in the list of the change.
    pub(super) fn at(&mut self, position: usize) -> TableEdit<'_> {
        TableEdit {
            editor: &mut *self.editor,
            table: position,
            family: self.tables[position].0,
            name: &self.tables[position].1,
            sets: self.sets,
        }
    }

    pub(super) fn set_line(&mut self, line: usize) {
        self.editor.set_line(line);
    }
}

impl std::fmt::Debug for Edit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edit")
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

/// A table that is being changed.
///
/// On nf_tables it reads no more than necessary: when a rule is appended, the kernel
/// checks at the commit whether the chain exists.
pub struct TableEdit<'e> {
    pub(super) editor: &'e mut dyn Editor,
    pub(super) table: usize,
    family: Family,
    name: &'e str,
    sets: &'e Sets,
}

impl std::fmt::Debug for TableEdit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableEdit")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl TableEdit<'_> {
    /// Returns the table's name.
    #[must_use]
    pub const fn name(&self) -> &str {
        self.name
    }

    /// Returns the table's family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the names of the chains.
    ///
    /// # Errors
    /// Read errors.
    pub fn chains(&mut self) -> Result<Vec<BString>, Error> {
        self.editor.chains(self.table)
    }

    /// Returns the names of the chains if they are unique.
    pub(super) fn unique_chains(&mut self) -> Result<Vec<BString>, Error> {
        let chains = self.chains()?;
        let mut seen = HashSet::with_capacity(chains.len());
        match chains.iter().find(|chain| !seen.insert(*chain)) {
            None => Ok(chains),
            Some(shared) => Err(Error::SharedName {
                table: self.name.to_owned(),
                chain: shared.clone(),
            }),
        }
    }

    /// Returns whether the chain exists. Built-in chains always do.
    ///
    /// # Errors
    /// Read errors.
    pub fn has_chain(&mut self, chain: impl AsRef<[u8]>) -> Result<bool, Error> {
        let chain = chain.as_ref().as_bstr();
        Ok(self.is_builtin(chain) || self.editor.has_chain(self.table, chain)?)
    }

    /// Creates a chain (`-N`).
    ///
    /// # Errors
    /// [`Error::ChainExists`], which on nf_tables may be reported only by the kernel; [`Error::Builtin`];
    /// [`Error::TargetName`].
    pub fn new_chain(&mut self, chain: impl AsRef<[u8]>) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        self.check_not_builtin(chain)?;
        self.check_not_target(chain)?;
        self.editor.new_chain(self.table, chain)
    }

    /// Creates a chain if it does not exist; an existing one is unchanged.
    ///
    /// # Errors
    /// Read errors; [`Error::TargetName`].
    pub fn ensure_chain(&mut self, chain: impl AsRef<[u8]>) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        if self.has_chain(chain)? {
            return Ok(());
        }
        self.check_not_target(chain)?;
        self.editor.new_chain(self.table, chain)
    }

    /// Makes sure that the chain exists and has no rules, like a line `:CHAIN -` of
    /// `iptables-restore --noflush`. A built-in chain keeps its rules. As there, the chain may have
    /// the name of an extension, as older versions allowed, but not that of a verdict.
    ///
    /// # Errors
    /// Read errors; [`Error::TargetName`].
    pub fn declare(&mut self, chain: impl AsRef<[u8]>) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        self.check_not_verdict(chain)?;
        self.editor.declare(self.table, chain)
    }

    /// Removes a chain without rules and references (`-X CHAIN`). On nf_tables it may be a built-in one
    /// with the policy `ACCEPT`.
    ///
    /// # Errors
    /// [`Error::Builtin`], [`Error::NoSuchChain`], [`Error::NotEmpty`], [`Error::Drops`]; a reference to the chain may
    /// be reported only at the commit.
    pub fn remove_chain(&mut self, chain: impl AsRef<[u8]>) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        // nf_tables creates and removes built-in chains.
        if self.editor.backend() == Backend::Legacy {
            self.check_not_builtin(chain)?;
        }
        if self.is_builtin(chain) {
            let policy = self.editor.policy(self.table, chain)?;
            if self.editor.rule_count(self.table, chain)? == 0 && policy == Some(Policy::Drop) {
                return Err(Error::Drops {
                    table: self.name.to_owned(),
                    chain: chain.to_owned(),
                });
            }
            if policy.is_none() {
                return Err(Error::no_such_chain(self.name, chain, []));
            }
        }
        self.editor.remove_chain(self.table, chain)
    }

    /// Removes all chains except the built-in ones (`-X`); they must have no rules.
    ///
    /// # Errors
    /// The errors of [`remove_chain`](Self::remove_chain).
    pub fn remove_all_chains(&mut self) -> Result<(), Error> {
        for chain in self.chains()? {
            if !self.is_builtin(chain.as_bstr()) {
                self.editor.remove_chain(self.table, chain.as_bstr())?;
            }
        }
        Ok(())
    }

    /// Removes chains with their rules; only these chains themselves may refer to them.
    pub(super) fn remove_chains(&mut self, chains: &[BString]) -> Result<(), Error> {
        for chain in chains {
            self.flush(chain)?;
        }
        chains.iter().try_for_each(|chain| self.remove_chain(chain))
    }

    /// Renames a chain (`-E`). References to it follow.
    ///
    /// # Errors
    /// [`Error::Builtin`], [`Error::ChainExists`], [`Error::NoSuchChain`], [`Error::TargetName`]. On
    /// nf_tables [`Error::Unsupported`] for a chain that the same change creates, and if a name passes
    /// from one chain to another within a change.
    pub fn rename_chain(
        &mut self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        let (from, to) = (from.as_ref().as_bstr(), to.as_ref().as_bstr());
        self.check_not_target(to)?;
        if self.is_builtin(from) && !self.is_builtin(to) && self.has_chain(to)? {
            return Err(Error::ChainExists {
                table: self.name.to_owned(),
                chain: to.to_owned(),
            });
        }
        self.check_not_builtin(from)?;
        self.check_not_builtin(to)?;
        self.editor.rename_chain(self.table, from, to)
    }

    /// Removes all chains and rules, as `iptables-restore` does at the head of a table.
    ///
    /// # Errors
    /// Read errors.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.editor.clear(self.table)
    }

    /// Removes all rules of a chain (`-F CHAIN`).
    ///
    /// # Errors
    /// [`Error::NoSuchChain`], which on nf_tables may be reported only by the kernel.
    pub fn flush(&mut self, chain: impl AsRef<[u8]>) -> Result<(), Error> {
        self.editor
            .flush(self.table, Some(chain.as_ref().as_bstr()))
    }

    /// Removes all rules of all chains (`-F`).
    ///
    /// # Errors
    /// Read errors.
    pub fn flush_all(&mut self) -> Result<(), Error> {
        self.editor.flush(self.table, None)
    }

    /// Returns the policy of an existing built-in chain, as the kernel has it.
    pub(super) fn policy(&mut self, chain: &BStr) -> Result<Option<Policy>, Error> {
        self.editor.policy(self.table, chain)
    }

    /// Sets the policy of a built-in chain (`-P`); its counters are kept unless given.
    ///
    /// # Errors
    /// [`Error::NoPolicy`] for other chains.
    pub fn set_policy(
        &mut self,
        chain: impl AsRef<[u8]>,
        policy: Option<Policy>,
        counters: Option<Counters>,
    ) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        if !self.is_builtin(chain) {
            return Err(Error::NoPolicy {
                table: self.name.to_owned(),
                chain: chain.to_owned(),
            });
        }
        self.editor.set_policy(self.table, chain, policy, counters)
    }

    /// Returns the rules of a chain. Sets appear with their indexes ([`Rule::name_sets`]).
    ///
    /// # Errors
    /// [`Error::NoSuchChain`] and read errors.
    pub fn rules(
        &mut self,
        chain: impl AsRef<[u8]>,
    ) -> Result<Vec<Result<Entry, NotExpressible>>, Error> {
        self.editor.rules(self.table, chain.as_ref().as_bstr())
    }

    /// Appends a rule to a chain (`-A`).
    ///
    /// # Errors
    /// [`Error::NoSuchChain`], which on nf_tables may be reported only by the kernel;
    /// [`Error::Unwritable`]; [`Error::NatDrop`].
    pub fn append(&mut self, chain: impl AsRef<[u8]>, rule: &Rule) -> Result<(), Error> {
        self.append_with(chain, rule, Counters::default())
    }

    /// Appends a rule with these counters to a chain.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append).
    pub fn append_with(
        &mut self,
        chain: impl AsRef<[u8]>,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        let rule = self.check_and_resolve(rule)?;
        self.editor
            .append(self.table, chain.as_ref().as_bstr(), &rule, counters)
    }

    /// Inserts a rule at this number of the chain, from 1 (`-I`).
    ///
    /// # Errors
    /// The errors of [`append`](Self::append), and [`Error::NoSuchNumber`].
    pub fn insert(
        &mut self,
        chain: impl AsRef<[u8]>,
        number: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        // Insertion at the head is always possible.
        if number != 1 {
            let rules = self.editor.rule_count(self.table, chain)?;
            if number == 0 || number > rules + 1 {
                return Err(self.no_such_number(chain, number, rules));
            }
        }
        let rule = self.check_and_resolve(rule)?;
        self.editor
            .insert(self.table, chain, number - 1, &rule, counters)
    }

    /// Replaces the rule with this number, from 1 (`-R`).
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn replace(
        &mut self,
        chain: impl AsRef<[u8]>,
        number: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        let position = self.position(chain, number)?;
        let rule = self.check_and_resolve(rule)?;
        self.editor
            .replace(self.table, chain, position, &rule, counters)
    }

    /// Removes the first rule that means the same (`-D CHAIN RULE`).
    ///
    /// # Errors
    /// [`Error::NoSuchRule`]
    pub fn delete(&mut self, chain: impl AsRef<[u8]>, rule: &Rule) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        match self.find(chain, rule)? {
            Some(position) => self.editor.remove(self.table, chain, position),
            None => Err(Error::NoSuchRule {
                table: self.name.to_owned(),
                chain: chain.to_owned(),
                rule: rule.to_string(),
            }),
        }
    }

    /// Removes the rule with this number, from 1 (`-D CHAIN NUMBER`).
    ///
    /// # Errors
    /// [`Error::NoSuchNumber`]
    pub fn delete_number(&mut self, chain: impl AsRef<[u8]>, number: usize) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        let position = self.position(chain, number)?;
        self.editor.remove(self.table, chain, position)
    }

    /// Returns whether the chain has a rule that means the same (`-C`).
    ///
    /// # Errors
    /// Read errors.
    pub fn contains(&mut self, chain: impl AsRef<[u8]>, rule: &Rule) -> Result<bool, Error> {
        Ok(self.find(chain.as_ref().as_bstr(), rule)?.is_some())
    }

    /// Sets counters to 0 (`-Z`): those of the rule with this number, from 1, or those of the chain's
    /// rules and policy.
    ///
    /// # Errors
    /// [`Error::NoSuchChain`], [`Error::NoSuchNumber`]
    pub fn zero(&mut self, chain: impl AsRef<[u8]>, number: Option<usize>) -> Result<(), Error> {
        let chain = chain.as_ref().as_bstr();
        let position = number
            .map(|number| self.position(chain, number))
            .transpose()?;
        self.editor.zero(self.table, chain, position)
    }

    /// Checks that the table may hold the rule, and resolves its sets.
    pub(super) fn check_and_resolve<'r>(&self, rule: &'r Rule) -> Result<Cow<'r, Rule>, Error> {
        if self.name == "nat" && rule.target == Target::Drop {
            return Err(Error::NatDrop);
        }
        Ok(resolved(rule, self.family, self.sets)?)
    }

    fn find(&mut self, chain: &BStr, rule: &Rule) -> Result<Option<usize>, Error> {
        let rule = resolved(rule, self.family, self.sets)?;
        let rules = self.editor.rules(self.table, chain)?;
        let same = |entry: &Result<Entry, NotExpressible>| {
            entry
                .as_ref()
                .is_ok_and(|entry| entry.rule.means_the_same(&rule))
        };
        Ok(rules.iter().position(same))
    }

    /// Returns the position of the rule with this number.
    fn position(&mut self, chain: &BStr, number: usize) -> Result<usize, Error> {
        let rules = self.editor.rule_count(self.table, chain)?;
        match number.checked_sub(1) {
            Some(position) if position < rules => Ok(position),
            _ if self.is_builtin(chain) && !self.editor.has_builtin(self.table, chain)? => {
                Err(Error::no_such_chain(self.name, chain, []))
            }
            _ => Err(self.no_such_number(chain, number, rules)),
        }
    }

    fn no_such_number(&self, chain: &BStr, number: usize, rules: usize) -> Error {
        Error::NoSuchNumber {
            table: self.name.to_owned(),
            chain: chain.to_owned(),
            number,
            rules,
        }
    }

    pub(super) fn is_builtin(&self, chain: &BStr) -> bool {
        chain
            .to_str()
            .is_ok_and(|chain| builtin(self.name, chain).is_some())
    }

    /// Rejects the name of a verdict, which a rule cannot use for a chain.
    fn check_not_verdict(&self, chain: &BStr) -> Result<(), Error> {
        match is_verdict(chain) {
            true => Err(target_name(self.name, chain)),
            false => Ok(()),
        }
    }

    fn check_not_target(&self, chain: &BStr) -> Result<(), Error> {
        check_not_target(self.family, self.name, chain)
    }

    fn check_not_builtin(&self, chain: &BStr) -> Result<(), Error> {
        if self.is_builtin(chain) {
            return Err(Error::Builtin {
                table: self.name.to_owned(),
                chain: chain.to_owned(),
            });
        }
        Ok(())
    }
}

fn is_verdict(chain: &BStr) -> bool {
    matches!(chain.as_bytes(), b"ACCEPT" | b"DROP" | b"RETURN" | b"QUEUE")
}

fn target_name(table: &str, chain: &BStr) -> Error {
    Error::TargetName {
        table: table.to_owned(),
        chain: chain.to_owned(),
    }
}

/// Rejects the name of a verdict, or of an extension that is a target.
pub(super) fn check_not_target(family: Family, table: &str, chain: &BStr) -> Result<(), Error> {
    match is_verdict(chain) || xt::Target::named(family, chain).is_some() {
        true => Err(target_name(table, chain)),
        false => Ok(()),
    }
}
