//! Computes the operations for changed ports.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::TABLE;
use super::elements::{Key, Shared, Value};
use super::port::{Clients, Content, PortChain};
use super::write::Writer;
use crate::service::layout::shared_elements::Changed;
use chainwright::Error;
use chainwright::nft::{Chain, Family, Rule, SetId};

/// The operations, in order.
#[derive(Debug)]
pub(super) struct Difference {
    family: Family,
    /// Chains that stay, with new rules.
    changed: Vec<PortChain>,
    /// Chains to remove.
    gone: Vec<Arc<str>>,
    /// Sets to remove.
    gone_sets: Vec<Arc<str>>,
    new_sets: Vec<Clients>,
    new: Vec<PortChain>,
    /// Sorted by set.
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

    /// Adds the differences of one port.
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
        let mut sets: HashSet<_> = sets.map(|set| set.name).collect();
        // A set that both have is the same: a change of its timeout first removes the set.
        let new = after.sets.into_iter().filter(|set| !sets.remove(&set.name));
        self.new_sets.extend(new);
        self.gone_sets.extend(sets);
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

    /// Returns the chains that stay and get new rules.
    pub(super) fn changed_chains(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(|chain| &*chain.name)
    }

    /// Returns `true` if new chains, or the rules and elements that block traffic, must exist before those that refer
    /// to endpoints: packets that enter a new chain at the moment of its commit find no rules in it.
    pub(super) fn needs_first(&self) -> bool {
        let mut elements = self.elements.iter();
        elements.any(|c| {
            c.after.is_some() && (c.before.is_some() || part_of_addition(c) == Part::First)
        })
    }

    /// Writes new sets and chains, and the rules and elements that block traffic.
    pub(super) fn write_first(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        self.write_new(writer)?;
        self.write_deleted(writer, Part::First)?;
        self.write_added(writer, Part::First)
    }

    /// Writes the rules and elements that send packets to endpoints, with new rules before old ones. Includes new sets
    /// and chains if they do not exist yet.
    pub(super) fn write_main(&self, writer: &mut Writer<'_>, are_new: bool) -> Result<(), Error> {
        if are_new {
            self.write_new(writer)?;
        }
        for chain in &self.changed {
            writer.insert_rules(chain)?;
        }
        self.write_deleted(writer, Part::Main)?;
        self.write_added(writer, Part::Main)
    }

    /// Deletes the objects that only packets in flight can still reach: old rules, by their handles, the rules of
    /// removed chains, sets, and elements.
    pub(super) fn write_last(
        &self,
        writer: &mut Writer<'_>,
        old: &[(String, u64)],
    ) -> Result<(), Error> {
        for (chain, handle) in old {
            let mut rule = Rule::new(self.family, TABLE, &chain[..]);
            rule.handle = Some(*handle);
            writer.tx.delete(&rule)?;
        }
        for chain in self.gone_chains() {
            writer.tx.flush_chain(self.family, TABLE, chain)?;
        }
        for set in &self.gone_sets {
            writer
                .tx
                .delete(&SetId::new(self.family, TABLE, &set[..]))?;
        }
        self.write_deleted(writer, Part::Last)
    }

    fn write_new(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        for set in &self.new_sets {
            writer.add_clients(set)?;
        }
        for chain in &self.new {
            writer.add_chain(&chain.name)?;
        }
        for chain in &self.new {
            writer.add_rules(chain)?;
        }
        Ok(())
    }

    /// Returns the changed elements of a set.
    fn of(&self, set: Shared) -> &[Changed<Key, Value>] {
        let first = (self.elements).partition_point(|changed| changed.key.set < set);
        let last = (self.elements).partition_point(|changed| changed.key.set <= set);
        &self.elements[first..last]
    }

    /// Deletes the elements that this part removes.
    fn write_deleted(&self, writer: &mut Writer<'_>, part: Part) -> Result<(), Error> {
        for shared in Shared::FILL_ORDER {
            let elements = self.of(shared).iter();
            let elements = elements.filter(|c| c.before.is_some() && part_of_deletion(c) == part);
            writer.delete_elements(shared, elements.map(|c| &c.key))?;
        }
        Ok(())
    }

    /// Adds the elements that belong to this part.
    fn write_added(&self, writer: &mut Writer<'_>, part: Part) -> Result<(), Error> {
        for shared in Shared::FILL_ORDER {
            let elements = self
                .of(shared)
                .iter()
                .filter(|c| part_of_addition(c) == part);
            let after = elements.filter_map(|c| Some((&c.key, c.after.as_ref()?)));
            writer.add_elements(shared, after)?;
        }
        Ok(())
    }

    /// Deletes the removed chains.
    pub(super) fn delete_chains(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        for chain in self.gone_chains() {
            writer.tx.delete(&Chain::new(self.family, TABLE, chain))?;
        }
        Ok(())
    }
}

/// A transaction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Main,
    Last,
}

/// Returns the part in which an element is added: firewalls, which packets look up before they are sent to an endpoint,
/// come first, so that no load balancer is reachable before its firewall exists.
const fn part_of_addition(changed: &Changed<Key, Value>) -> Part {
    match changed.key.set {
        Shared::FirewallIps => Part::First,
        _ => Part::Main,
    }
}

/// Returns the part in which an element is deleted: with the addition if it gets another value; last if packets look it
/// up after they were sent to an endpoint, or when there was none. A firewall may be removed together with the elements
/// that send packets to endpoints: a packet that does not find it made this lookup after the commit, and so finds no
/// endpoint either.
const fn part_of_deletion(changed: &Changed<Key, Value>) -> Part {
    match (changed.key.set, &changed.after) {
        (_, Some(_)) => part_of_addition(changed),
        (
            Shared::HairpinConnections | Shared::NoEndpointServices | Shared::NoEndpointNodePorts,
            None,
        ) => Part::Last,
        _ => Part::Main,
    }
}
