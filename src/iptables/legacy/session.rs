//! Changes of legacy tables: read once, edited in memory, replaced one after the other.

use bstr::{BStr, BString, ByteSlice};

use super::decode::decode_edited;
use super::encode::encode;
use crate::iptables::edit::Editor;
use crate::iptables::{Counters, Entry, Error, NotExpressible, Policy, Rule};
use crate::legacy::{ChainId, Replacement, Table, TableEditor};
use crate::xt::Family;

/// Tables that are being changed.
pub(in crate::iptables) struct Session<'t> {
    editors: Vec<(Family, TableEditor<'t>)>,
    recent: Recent,
    /// Scratch memory for encoding extensions.
    info: Vec<u8>,
}

impl<'t> Session<'t> {
    pub(in crate::iptables) fn new(tables: &'t [(Family, Table)]) -> Self {
        let editors = tables
            .iter()
            .map(|(family, table)| (*family, TableEditor::of(table)));
        Self {
            editors: editors.collect(),
            recent: Recent::default(),
            info: Vec::new(),
        }
    }

    /// Returns each table's replacement; `None` for an unchanged one.
    pub(in crate::iptables) fn finish(self) -> Result<Vec<(Family, Option<Replacement>)>, Error> {
        self.editors
            .into_iter()
            .map(|(family, editor)| {
                let replacement = editor.is_changed().then(|| editor.finish()).transpose()?;
                Ok((family, replacement))
            })
            .collect()
    }

    fn chain(&self, table: usize, name: &BStr) -> Result<ChainId, Error> {
        find(&self.editors[table].1, name)
    }

    fn editor(&mut self, table: usize) -> &mut TableEditor<'t> {
        &mut self.editors[table].1
    }

    /// Checks that no chain has that name.
    fn check_name_unused(&self, table: usize, chain: &BStr) -> Result<(), Error> {
        let editor = &self.editors[table].1;
        match editor.chain(chain) {
            None => Ok(()),
            Some(_) => Err(Error::ChainExists {
                table: editor.table().name().to_string(),
                chain: chain.to_owned(),
            }),
        }
    }

    fn build(
        &mut self,
        table: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<crate::legacy::NewRule, Error> {
        let Self {
            editors,
            recent,
            info,
        } = self;
        let (family, editor) = &mut editors[table];
        encode(*family, editor, rule, counters, info, |editor, name| {
            let id = recent.find(table, editor, name.as_bstr())?;
            if editor
                .get(id)
                .is_some_and(|chain| chain.builtin().is_some())
            {
                return Err(Error::Builtin {
                    table: editor.table().name().to_string(),
                    chain: name.into(),
                });
            }
            Ok(id)
        })
    }
}

/// The most recently used chains. Most lines of a text fill or jump to one of a few chains,
/// and each lookup in the index of a large table incurs several cache misses.
#[derive(Default)]
struct Recent {
    chains: [Option<(RecentName, usize, ChainId)>; 8],
    /// Index of the oldest item.
    oldest: usize,
}

/// A chain's name, padded with zeros.
type RecentName = [u8; 32];

impl Recent {
    /// Returns the chain of that name.
    fn find(
        &mut self,
        table: usize,
        editor: &TableEditor<'_>,
        name: &BStr,
    ) -> Result<ChainId, Error> {
        let mut key = RecentName::default();
        let Some(start) = key.get_mut(..name.len()) else {
            return find(editor, name);
        };
        start.copy_from_slice(name);
        let mut known = self.chains.iter().flatten();
        let known = known.find(|(other, its_table, _)| *other == key && *its_table == table);
        // It may have been removed or renamed since.
        let is_it = |id| editor.get(id).is_some_and(|chain| chain.name() == name);
        if let Some((.., id)) = known.filter(|(.., id)| is_it(*id)) {
            return Ok(*id);
        }
        let id = find(editor, name)?;
        self.chains[self.oldest] = Some((key, table, id));
        self.oldest = (self.oldest + 1) % self.chains.len();
        Ok(id)
    }
}

/// Returns the chain of that name.
fn find(editor: &TableEditor<'_>, name: &BStr) -> Result<ChainId, Error> {
    editor.chain(name).ok_or_else(|| {
        let names: Vec<_> = editor
            .chains()
            .map(|chain| chain.name().to_string())
            .collect();
        let table = editor.table().name().to_string();
        Error::no_such_chain(&table, name, names.iter().map(String::as_str))
    })
}

impl Editor for Session<'_> {
    fn set_line(&mut self, _line: usize) {}

    fn clear(&mut self, table: usize) -> Result<(), Error> {
        self.editor(table).clear();
        Ok(())
    }

    fn chains(&mut self, table: usize) -> Result<Vec<BString>, Error> {
        let chains = self.editors[table].1.chains();
        Ok(chains.map(|chain| chain.name().to_owned()).collect())
    }

    fn has_chain(&mut self, table: usize, chain: &BStr) -> Result<bool, Error> {
        Ok(self.editors[table].1.chain(chain).is_some())
    }

    fn new_chain(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        self.check_name_unused(table, chain)?;
        self.editor(table).add_chain(chain)?;
        Ok(())
    }

    fn declare(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        let editor = self.editor(table);
        let id = editor.get_or_add_chain(chain)?;
        if editor
            .get(id)
            .is_some_and(|chain| chain.builtin().is_none())
        {
            editor.flush(id)?;
        }
        Ok(())
    }

    fn remove_chain(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        let id = self.chain(table, chain)?;
        let editor = self.editor(table);
        if editor.get(id).is_some_and(|chain| chain.rule_count() > 0) {
            return Err(Error::NotEmpty {
                table: editor.table().name().to_string(),
                chain: chain.to_owned(),
            });
        }
        Ok(editor.remove_chain(id)?)
    }

    fn rename_chain(&mut self, table: usize, from: &BStr, to: &BStr) -> Result<(), Error> {
        self.check_name_unused(table, to)?;
        let id = self.chain(table, from)?;
        Ok(self.editor(table).rename_chain(id, to)?)
    }

    fn flush(&mut self, table: usize, chain: Option<&BStr>) -> Result<(), Error> {
        let ids = match chain {
            Some(chain) => vec![self.chain(table, chain)?],
            None => self.editors[table]
                .1
                .chains()
                .map(|chain| chain.id())
                .collect(),
        };
        for id in ids {
            self.editor(table).flush(id)?;
        }
        Ok(())
    }

    fn set_policy(
        &mut self,
        table: usize,
        chain: &BStr,
        policy: Option<Policy>,
        counters: Option<Counters>,
    ) -> Result<(), Error> {
        let id = self.chain(table, chain)?;
        let editor = self.editor(table);
        if let Some(policy) = policy {
            editor.set_policy(id, policy)?;
        }
        if let Some(counters) = counters {
            editor.set_policy_counters(id, counters)?;
        }
        Ok(())
    }

    fn policy(&mut self, table: usize, chain: &BStr) -> Result<Option<Policy>, Error> {
        let editor = &self.editors[table].1;
        let known = editor.chain(chain).and_then(|id| editor.get(id));
        Ok(known.and_then(|known| Some(known.builtin()?.policy)))
    }

    fn rule_count(&mut self, table: usize, chain: &BStr) -> Result<usize, Error> {
        let id = self.chain(table, chain)?;
        let chain = self.editors[table].1.get(id);
        Ok(chain.map_or(0, |chain| chain.rule_count()))
    }

    fn rules(
        &mut self,
        table: usize,
        chain: &BStr,
    ) -> Result<Vec<Result<Entry, NotExpressible>>, Error> {
        let id = self.chain(table, chain)?;
        let editor = &self.editors[table].1;
        let Some(chain) = editor.get(id) else {
            return Ok(Vec::new());
        };
        let rules = chain.rules();
        Ok(rules.map(|rule| decode_edited(editor, &rule)).collect())
    }

    fn append(
        &mut self,
        table: usize,
        chain: &BStr,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        let id = self.recent.find(table, &self.editors[table].1, chain)?;
        let rule = self.build(table, rule, counters)?;
        Ok(self.editor(table).append(id, rule)?)
    }

    fn insert(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        let id = self.chain(table, chain)?;
        let rule = self.build(table, rule, counters)?;
        Ok(self.editor(table).insert(id, position, rule)?)
    }

    fn replace(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        let id = self.chain(table, chain)?;
        let rule = self.build(table, rule, counters)?;
        Ok(self.editor(table).replace(id, position, rule)?)
    }

    fn remove(&mut self, table: usize, chain: &BStr, position: usize) -> Result<(), Error> {
        let id = self.chain(table, chain)?;
        Ok(self.editor(table).remove(id, position)?)
    }

    fn zero(&mut self, table: usize, chain: &BStr, position: Option<usize>) -> Result<(), Error> {
        let id = self.chain(table, chain)?;
        match position {
            Some(position) => Ok(self.editor(table).zero_rule(id, position)?),
            None => Ok(self.editor(table).zero(id)?),
        }
    }
}
