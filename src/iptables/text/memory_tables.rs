//! In-memory tables built from a text, starting with empty ones.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use crate::iptables::edit::Editor;
use crate::iptables::{Counters, Entry, Error, Family, NotExpressible, Policy, Rule, builtins};

/// Tables under construction, by their index in a list.
#[derive(Debug)]
pub(super) struct MemoryTables {
    tables: Vec<MemoryTable>,
    line: usize,
}

/// A table under construction.
#[derive(Debug)]
pub(super) struct MemoryTable {
    name: String,
    /// `None` for a removed chain.
    chains: Vec<Option<MemoryChain>>,
    indexes: HashMap<BString, usize>,
}

/// A chain.
#[derive(Debug)]
pub(super) struct MemoryChain {
    pub(super) name: BString,
    pub(super) policy: Option<Policy>,
    pub(super) rules: Vec<Rule>,
    /// The last line that refers to it; 0 if none does.
    pub(super) line: usize,
}

impl MemoryTables {
    /// Creates tables with only the built-in chains.
    pub(super) fn new(tables: &[(Family, &str)]) -> Self {
        let tables = tables.iter().map(|(_, name)| MemoryTable::new(name));
        Self {
            tables: tables.collect(),
            line: 0,
        }
    }

    /// Returns the chains of each table, in order of creation.
    pub(super) fn into_chains(self) -> Vec<Vec<MemoryChain>> {
        let chains = |table: MemoryTable| table.chains.into_iter().flatten().collect();
        self.tables.into_iter().map(chains).collect()
    }

    fn chain(&mut self, table: usize, chain: &BStr) -> Result<&mut MemoryChain, Error> {
        let table = &mut self.tables[table];
        let Some(&place) = table.indexes.get(chain) else {
            let known: Vec<_> = table.existing().map(|one| one.name.to_string()).collect();
            let known = known.iter().map(String::as_str);
            return Err(Error::no_such_chain(&table.name, chain, known));
        };
        let known = table.chains[place].as_mut();
        let known = known.ok_or_else(|| Error::no_such_chain(&table.name, chain, []))?;
        known.line = self.line;
        Ok(known)
    }
}

impl MemoryTable {
    /// Creates a table with the built-in chains.
    fn new(name: &str) -> Self {
        let mut table = Self {
            name: name.to_owned(),
            chains: Vec::new(),
            indexes: HashMap::new(),
        };
        for builtin in builtins(name).unwrap_or_default() {
            table.add(builtin.chain.into(), 0);
        }
        table
    }

    /// Returns the existing chains.
    fn existing(&self) -> impl Iterator<Item = &MemoryChain> {
        self.chains.iter().flatten()
    }

    fn add(&mut self, name: BString, line: usize) {
        self.indexes.insert(name.clone(), self.chains.len());
        self.chains.push(Some(MemoryChain {
            name,
            policy: None,
            rules: Vec::new(),
            line,
        }));
    }

    fn check_name_unused(&self, chain: &BStr) -> Result<(), Error> {
        match self.indexes.contains_key(chain) {
            false => Ok(()),
            true => Err(Error::ChainExists {
                table: self.name.clone(),
                chain: chain.to_owned(),
            }),
        }
    }

    fn is_builtin(&self, chain: &BStr) -> bool {
        let mut all = builtins(&self.name).into_iter().flatten();
        all.any(|builtin| builtin.chain.as_bytes() == chain.as_bytes())
    }
}

impl Editor for MemoryTables {
    fn set_line(&mut self, line: usize) {
        self.line = line;
    }

    fn clear(&mut self, table: usize) -> Result<(), Error> {
        self.tables[table] = MemoryTable::new(&self.tables[table].name);
        Ok(())
    }

    fn chains(&mut self, table: usize) -> Result<Vec<BString>, Error> {
        let chains = self.tables[table].existing();
        Ok(chains.map(|chain| chain.name.clone()).collect())
    }

    fn has_chain(&mut self, table: usize, chain: &BStr) -> Result<bool, Error> {
        Ok(self.tables[table].indexes.contains_key(chain))
    }

    fn new_chain(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        self.tables[table].check_name_unused(chain)?;
        let line = self.line;
        self.tables[table].add(chain.to_owned(), line);
        Ok(())
    }

    fn declare(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        if !self.has_chain(table, chain)? {
            return self.new_chain(table, chain);
        }
        let is_builtin = self.tables[table].is_builtin(chain);
        let known = self.chain(table, chain)?;
        if !is_builtin {
            known.rules.clear();
        }
        Ok(())
    }

    fn remove_chain(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        let has_rules = !self.chain(table, chain)?.rules.is_empty();
        let table = &mut self.tables[table];
        if has_rules {
            return Err(Error::NotEmpty {
                table: table.name.clone(),
                chain: chain.to_owned(),
            });
        }
        if let Some(place) = table.indexes.remove(chain) {
            table.chains[place] = None;
        }
        Ok(())
    }

    fn rename_chain(&mut self, table: usize, from: &BStr, to: &BStr) -> Result<(), Error> {
        self.tables[table].check_name_unused(to)?;
        self.chain(table, from)?.name = to.to_owned();
        let table = &mut self.tables[table];
        if let Some(place) = table.indexes.remove(from) {
            table.indexes.insert(to.to_owned(), place);
        }
        let chains = table.chains.iter_mut().flatten();
        let rules = chains.flat_map(|chain| &mut chain.rules);
        for rule in rules {
            if let Some(target) = rule.jump_chain_mut().filter(|target| *target == from) {
                *target = to.to_owned();
            }
        }
        Ok(())
    }

    fn flush(&mut self, table: usize, chain: Option<&BStr>) -> Result<(), Error> {
        match chain {
            Some(chain) => self.chain(table, chain)?.rules.clear(),
            None => {
                let chains = self.tables[table].chains.iter_mut().flatten();
                chains.for_each(|chain| chain.rules.clear());
            }
        }
        Ok(())
    }

    fn set_policy(
        &mut self,
        table: usize,
        chain: &BStr,
        policy: Option<Policy>,
        _counters: Option<Counters>,
    ) -> Result<(), Error> {
        let known = self.chain(table, chain)?;
        known.policy = policy.or(known.policy);
        Ok(())
    }

    fn policy(&mut self, table: usize, chain: &BStr) -> Result<Option<Policy>, Error> {
        Ok(self.chain(table, chain)?.policy)
    }

    fn rule_count(&mut self, table: usize, chain: &BStr) -> Result<usize, Error> {
        Ok(self.chain(table, chain)?.rules.len())
    }

    fn rules(
        &mut self,
        table: usize,
        chain: &BStr,
    ) -> Result<Vec<Result<Entry, NotExpressible>>, Error> {
        let rules = self.chain(table, chain)?.rules.iter();
        let entry = |rule: &Rule| Entry {
            rule: rule.clone(),
            ..Entry::default()
        };
        Ok(rules.map(|rule| Ok(entry(rule))).collect())
    }

    fn append(
        &mut self,
        table: usize,
        chain: &BStr,
        rule: &Rule,
        _counters: Counters,
    ) -> Result<(), Error> {
        self.chain(table, chain)?.rules.push(rule.clone());
        Ok(())
    }

    fn insert(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
        rule: &Rule,
        _counters: Counters,
    ) -> Result<(), Error> {
        let rules = &mut self.chain(table, chain)?.rules;
        rules.insert(position.min(rules.len()), rule.clone());
        Ok(())
    }

    fn replace(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        self.remove(table, chain, position)?;
        self.insert(table, chain, position, rule, counters)
    }

    fn remove(&mut self, table: usize, chain: &BStr, position: usize) -> Result<(), Error> {
        let rules = &mut self.chain(table, chain)?.rules;
        if position < rules.len() {
            rules.remove(position);
        }
        Ok(())
    }

    /// Does nothing: tables in memory have no counters.
    fn zero(&mut self, table: usize, chain: &BStr, _position: Option<usize>) -> Result<(), Error> {
        self.chain(table, chain).map(drop)
    }
}
