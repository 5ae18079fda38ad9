//! Checks and creates declared chains in the legacy tables, through the view that both backends share.

use std::collections::HashSet;

use super::complete::{Completion, missing};
use super::{Declared, Error, Found, InsertPosition, Item, RequiredChain};
use chainwright::iptables::{
    self, Backend, Counters, Edit, Entry, Family, Iptables, NotExpressible, Rule, TableEdit, Target,
};

/// The table with the hint is changed last: when the hint exists, everything else does too.
const LAST: &str = "mangle";

/// Changes these tables, each in one step.
pub(crate) fn change<R>(
    iptables: &mut Iptables,
    mut tables: Vec<(Family, &str)>,
    edit: impl FnMut(&mut Edit<'_>) -> Result<R, iptables::Error>,
) -> Result<R, Error> {
    tables.sort_by_key(|(_, table)| *table == LAST);
    Ok(iptables.update_tables(&tables, edit)?)
}

impl Declared {
    /// Lists the missing chains and rules, without creating a table.
    pub(super) fn check_legacy(&self, iptables: &mut Iptables) -> Result<Vec<Item>, Error> {
        let mut all = Vec::new();
        for family in Family::ALL {
            let names: Vec<&str> = self
                .tables()
                .into_iter()
                .filter_map(|(of, name)| (of == family).then_some(name))
                .collect();
            if names.is_empty() {
                continue;
            }
            let tables = iptables.read(family, &names)?;
            let mut named = HashSet::new();
            for wanted in self.chains.iter().filter(|wanted| wanted.family == family) {
                let chain = tables
                    .table(&wanted.table)
                    .and_then(|table| table.chain(&*wanted.chain));
                let found = match chain {
                    None => Found::default(),
                    Some(chain) => {
                        // This view shows sets by name, as they were declared.
                        let entries = chain.rules().map(|rule| tables.entry(&rule));
                        Found::find_in(entries, &wanted.rules)
                    }
                };
                let make = !found.exists && named.insert((&wanted.table, &wanted.chain));
                let completion = Completion::of(wanted, &found);
                all.extend(missing(wanted, make, &completion));
            }
        }
        Ok(all)
    }

    pub(super) fn ensure_legacy(&self, iptables: &mut Iptables) -> Result<Vec<Item>, Error> {
        // Only tables that lack something are replaced or created.
        let before = self.check_legacy(iptables)?;
        if before.is_empty() {
            return Ok(before);
        }
        self.allow(&before, Backend::Legacy, || true)?;
        let lacks = |(family, table): &(Family, &str)| {
            let mut items = before.iter();
            items.any(|item| (item.family, &*item.table) == (*family, *table))
        };
        let tables: Vec<_> = self.tables().into_iter().filter(lacks).collect();
        change(iptables, tables.clone(), |edit| {
            let mut all = Vec::new();
            let chains = self.chains.iter();
            let chains: Vec<&RequiredChain> =
                chains.filter(|w| tables.contains(&w.table_key())).collect();
            let mut made = Vec::with_capacity(chains.len());
            for wanted in &chains {
                let mut table = edit.table(wanted.family, &wanted.table)?;
                made.push(!table.has_chain(&*wanted.chain)?);
                table.ensure_chain(&*wanted.chain)?;
            }
            for (wanted, made) in chains.into_iter().zip(made) {
                let rules = wanted.resolved()?;
                let mut table = edit.table(wanted.family, &wanted.table)?;
                let entries = table.rules(&*wanted.chain)?;
                let found = Found::find_in(entries, &rules);
                let completion = Completion::of(wanted, &found);
                all.extend(missing(wanted, made, &completion));
                if !completion.is_empty() {
                    wanted.complete(&mut table, &rules, &completion)?;
                }
            }
            Ok(all)
        })
    }
}

impl Found {
    /// Matches a chain's rules with the declared ones.
    pub(crate) fn find_in(
        entries: impl IntoIterator<Item = Result<Entry, NotExpressible>>,
        rules: &[Rule],
    ) -> Self {
        let mut found = Self {
            exists: true,
            ..Self::default()
        };
        for (position, entry) in (0..).zip(entries) {
            found.total += 1;
            let which = entry.ok().and_then(|entry| {
                rules
                    .iter()
                    .position(|wanted| wanted.means_the_same(&entry.rule))
            });
            found.rules.extend(which.map(|which| (which, position)));
        }
        found
    }

    /// Looks up a chain of a legacy table that is in use. References are counted as nf_tables does: the chain's rules,
    /// and the table's rules that jump to it or may jump to it.
    pub(crate) fn find_in_legacy(
        table: &mut TableEdit<'_>,
        wanted: &RequiredChain,
    ) -> Result<Self, iptables::Error> {
        if !table.has_chain(&*wanted.chain)? {
            return Ok(Self::default());
        }
        let mut found = Self::find_in(table.rules(&*wanted.chain)?, &wanted.rules);
        let mut references = found.total;
        for chain in table.chains()? {
            for entry in table.rules(&chain)? {
                let is_reference = match entry.as_ref().map(|entry| &entry.rule.target) {
                    Ok(Target::Jump(to) | Target::Goto(to)) => *to == *wanted.chain,
                    Ok(_) => false,
                    // A rule that cannot be expressed may jump anywhere.
                    Err(_) => true,
                };
                references += usize::from(is_reference);
            }
        }
        found.references = u32::try_from(references).unwrap_or(u32::MAX);
        Ok(found)
    }
}

impl RequiredChain {
    fn complete(
        &self,
        table: &mut TableEdit<'_>,
        rules: &[Rule],
        completion: &Completion,
    ) -> Result<(), iptables::Error> {
        let chain = &*self.chain;
        // From last to first, so that the remaining positions stay valid.
        for &position in completion.delete.iter().rev() {
            table.delete_number(chain, position as usize + 1)?;
        }
        for &index in &completion.put {
            let rule = &rules[index];
            match self.position {
                InsertPosition::Head => table.insert(chain, 1, rule, Counters::default())?,
                InsertPosition::End => table.append(chain, rule)?,
            }
        }
        Ok(())
    }
}
