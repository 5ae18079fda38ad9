//! What a change of some ports comes to.

use std::collections::HashMap;
use std::sync::Arc;

use super::TABLE;
use super::elements::{Key, Shared, Value};
use super::port::{Clients, Content, PortChain};
use super::write::Writer;
use crate::error::Error;
use crate::kube::service::layout::claims::Changed;
use crate::nft::{Chain, Family, Set};

/// What is to be done, in the order in which it is.
#[derive(Debug)]
pub(super) struct Difference {
    family: Family,
    /// Chains that stay, with other rules.
    changed: Vec<PortChain>,
    /// Chains that go.
    gone: Vec<Arc<str>>,
    /// Sets that go, also to be made anew.
    gone_sets: Vec<Arc<str>>,
    new_sets: Vec<Clients>,
    new: Vec<PortChain>,
    /// In the order of their sets.
    pub(super) elements: Vec<Changed<Key, Value>>,
}

impl Difference {
    pub(super) const fn new(family: Family) -> Self {
        Self {
            family,
            changed: Vec::new(),
            gone: Vec::new(),
            gone_sets: Vec::new(),
            new_sets: Vec::new(),
            new: Vec::new(),
            elements: Vec::new(),
        }
    }

    /// Takes in what differs of one port.
    pub(super) fn take(&mut self, before: Content, after: Content) {
        let chains = before.chains.into_iter();
        let mut chains: HashMap<_, _> = chains.map(|c| (Arc::clone(&c.name), c)).collect();
        for chain in after.chains {
            match chains.remove(&chain.name) {
                None => self.new.push(chain),
                Some(before) if before == chain => {}
                Some(_) => self.changed.push(chain),
            }
        }
        self.gone.extend(chains.into_keys());

        let sets = before.sets.into_iter();
        let mut sets: HashMap<_, _> = sets.map(|s| (s.name, s.timeout)).collect();
        for set in after.sets {
            match sets.remove(&set.name) {
                Some(timeout) if timeout == set.timeout => continue,
                Some(_) => self.gone_sets.push(Arc::clone(&set.name)),
                None => {}
            }
            self.new_sets.push(set);
        }
        self.gone_sets.extend(sets.into_keys());
    }

    pub(super) fn is_empty(&self) -> bool {
        // Without other chains there are no other sets.
        self.changed.is_empty()
            && self.gone.is_empty()
            && self.new.is_empty()
            && self.elements.is_empty()
    }

    pub(super) fn adds_chain(&self, name: &str) -> bool {
        self.new.iter().any(|chain| &*chain.name == name)
    }

    pub(super) fn gone_chains(&self) -> impl Iterator<Item = &str> {
        self.gone.iter().map(|name| &**name)
    }

    /// All but the deletion of chains, of which the rules go.
    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let tx = &mut writer.tx;
        let changed = self.changed.iter().map(|chain| &*chain.name);
        for chain in changed.chain(self.gone_chains()) {
            tx.flush_chain(self.family, TABLE, chain)?;
        }
        for set in &self.gone_sets {
            tx.delete(&Set::named(self.family, TABLE, &set[..]))?;
        }
        for set in &self.new_sets {
            writer.add_clients(set)?;
        }
        for chain in &self.new {
            writer.add_chain(&chain.name)?;
        }
        for chain in self.new.iter().chain(&self.changed) {
            writer.add_rules(chain)?;
        }
        for shared in Shared::FILLED {
            let first = (self.elements).partition_point(|changed| changed.key.set < shared);
            let last = (self.elements).partition_point(|changed| changed.key.set <= shared);
            let elements = || self.elements[first..last].iter();
            let before = |c: &'_ Changed<Key, Value>| c.before.is_some();
            writer.delete_elements(shared, elements().filter(|c| before(c)).map(|c| &c.key))?;
            let after = elements().filter_map(|c| Some((&c.key, c.after.as_ref()?)));
            writer.add_elements(shared, after)?;
        }
        Ok(())
    }

    /// Deletes the chains that go.
    pub(super) fn delete_chains(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        for chain in self.gone_chains() {
            writer.tx.delete(&Chain::new(self.family, TABLE, chain))?;
        }
        Ok(())
    }
}
