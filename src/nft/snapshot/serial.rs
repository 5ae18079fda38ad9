//! Snapshots to any self-describing format, JSON for instance, and back: every object in its typed form,
//! each with what is in it.
//!
//! What is read gives messages of the same attributes as those that were written, in the order of this
//! crate; what is not an object's own, handles and the like, stays as it was listed. The boot in which a snapshot was taken
//! is not written: when one that was read is restored, the kernel names its anonymous chains anew.
//!
//! What is read is believed as little as a file (`outside.rs`), and objects must be of the table, chain
//! or set in which they stand. It takes time and memory in proportion to its own length, whatever
//! numbers stand in it.

use std::fmt;

use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFT_MSG_NEWSET,
    NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_LIST_ELEM, NFTA_RULE_POSITION,
    NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_TABLE,
};
use serde::de::Error as _;
use serde::ser::{Error as _, SerializeSeq, SerializeStruct};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::elements::CHUNK;
use super::outside::LONGEST;
use super::{Snapshot, SnapshotChain, SnapshotSet, SnapshotTable};
use crate::arena::Full;
use crate::netlink::{Malformed, MessageError, MessageWriter, NfGenMsg};
use crate::nft::connection::message_type;
use crate::nft::declare::Field;
use crate::nft::generation::Generation;
use crate::nft::{Chain, Element, Family, Flowtable, Name, Rule, Set, StatefulObject, Table};

/// A list that is written as it is walked over.
struct Listed<F>(F);

impl<F, I> Serialize for Listed<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for item in (self.0)() {
            list.serialize_element(&item)?;
        }
        list.end()
    }
}

/// What a snapshot covers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope<'a> {
    family: Family,
    table: Option<Name<'a>>,
}

/// `{"generation": …, "scope": {"family": …, "table": …}, "tables": […]}`; one that
/// [lacks elements](Snapshot::lacks_elements) is refused.
impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.insist_whole("written").map_err(S::Error::custom)?;
        let mut out = serializer.serialize_struct("Snapshot", 3)?;
        out.serialize_field(
            "generation",
            &self.generation().map(|generation| generation.number()),
        )?;
        let scope = Scope {
            family: self.scope.family,
            table: self.scope.table.clone(),
        };
        out.serialize_field("scope", &scope)?;
        out.serialize_field("tables", &Listed(|| self.tables()))?;
        out.end()
    }
}

/// `{"table": …, "chains": […], "sets": […], "objects": […], "flowtables": […]}`
impl Serialize for SnapshotTable<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("SnapshotTable", 5)?;
        out.serialize_field("table", &self.table().to_builder())?;
        out.serialize_field("chains", &Listed(|| self.chains()))?;
        out.serialize_field("sets", &Listed(|| self.sets()))?;
        let objects = || self.objects().map(|object| object.to_builder());
        out.serialize_field("objects", &Listed(objects))?;
        let flowtables = || self.flowtables().map(|flowtable| flowtable.to_builder());
        out.serialize_field("flowtables", &Listed(flowtables))?;
        out.end()
    }
}

/// `{"chain": …, "rules": […]}`
impl Serialize for SnapshotChain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("SnapshotChain", 2)?;
        out.serialize_field("chain", &self.chain().to_builder())?;
        let rules = || self.rules().map(|rule| rule.to_builder());
        out.serialize_field("rules", &Listed(rules))?;
        out.end()
    }
}

/// `{"set": …, "elements": […]}`
impl Serialize for SnapshotSet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("SnapshotSet", 2)?;
        out.serialize_field("set", &self.set().to_builder())?;
        let elements = || self.elements().map(|element| element.to_builder());
        out.serialize_field("elements", &Listed(elements))?;
        out.end()
    }
}

/// A snapshot as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotForm {
    generation: Option<u32>,
    scope: Scope<'static>,
    tables: Vec<TableForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableForm {
    table: Table<'static>,
    chains: Vec<ChainForm>,
    sets: Vec<SetForm>,
    objects: Vec<StatefulObject<'static>>,
    flowtables: Vec<Flowtable<'static>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainForm {
    chain: Chain<'static>,
    rules: Vec<Rule<'static>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetForm {
    set: Set<'static>,
    elements: Vec<Element<'static>>,
}

/// Why what was read is no snapshot.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    MessageError(#[from] MessageError),
    #[error("an object would take {0} bytes; one takes at most {LONGEST}")]
    Large(usize),
    #[error("{0} is in another table, chain or set than it says")]
    Misplaced(String),
    #[error("it holds a table that it says it does not cover")]
    OutOfScope,
}

impl From<Full> for Refused {
    fn from(full: Full) -> Self {
        Self::Malformed(full.into())
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = SnapshotForm::deserialize(deserializer)?;
        form.snapshot().map_err(D::Error::custom)
    }
}

impl SnapshotForm {
    fn snapshot(self) -> Result<Snapshot, Refused> {
        let mut snapshot = Snapshot {
            // None has this number, and a commit takes it for no condition.
            generation: self
                .generation
                .filter(|&number| number != 0)
                .map(Generation::recorded),
            scope: crate::nft::Scope {
                family: self.scope.family,
                table: self.scope.table,
            },
            of_any_boot: true,
            ..Snapshot::default()
        };
        for table in self.tables {
            table.put_into(&mut snapshot)?;
        }
        if !snapshot.is_in_scope() {
            return Err(Refused::OutOfScope);
        }
        snapshot.close();
        Ok(snapshot)
    }
}

/// Fails unless an object is where it says it is.
fn placed(is_there: bool, what: &dyn fmt::Debug) -> Result<(), Refused> {
    match is_there {
        true => Ok(()),
        false => Err(Refused::Misplaced(format!("{what:?}"))),
    }
}

impl TableForm {
    /// Puts the table and what is in it into a snapshot, each object behind those that it belongs to.
    fn put_into(self, snapshot: &mut Snapshot) -> Result<(), Refused> {
        let (family, name) = (self.table.family, &self.table.name);
        snapshot.put(NFT_MSG_NEWTABLE, family, |w| self.table.write_attributes(w))?;
        for ChainForm { chain, .. } in &self.chains {
            placed((chain.family, &chain.table) == (family, name), &chain.name)?;
            snapshot.put(NFT_MSG_NEWCHAIN, family, |w| chain.write_attributes(w))?;
        }
        for object in &self.objects {
            placed(
                (object.family, &object.table) == (family, name),
                &object.name,
            )?;
            snapshot.put(NFT_MSG_NEWOBJ, family, |w| object.write_attributes(w))?;
        }
        for flowtable in &self.flowtables {
            placed(
                (flowtable.family, &flowtable.table) == (family, name),
                &flowtable.name,
            )?;
            snapshot.put(NFT_MSG_NEWFLOWTABLE, family, |w| {
                flowtable.write_attributes(w)
            })?;
        }
        for SetForm { set, elements } in &self.sets {
            placed((set.family, &set.table) == (family, name), &set.name)?;
            snapshot.put(NFT_MSG_NEWSET, family, |w| set.write_attributes(w))?;
            snapshot.put_elements(set, elements)?;
        }
        for ChainForm { chain, rules } in &self.chains {
            let mut before = None;
            for rule in rules {
                let is_there = (rule.family, &rule.table, &rule.chain);
                placed(is_there == (family, name, &chain.name), &rule.handle)?;
                snapshot.put(NFT_MSG_NEWRULE, family, |w| {
                    rule.write_attributes(w);
                    // In a listing: which rule it stands behind.
                    if let (Some(handle), None) = (before, rule.position) {
                        w.be64(NFTA_RULE_POSITION, handle);
                    }
                })?;
                before = rule.handle;
            }
        }
        Ok(())
    }
}

impl Snapshot {
    /// Puts an object into its place.
    fn put(
        &mut self,
        message: u8,
        family: Family,
        content: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<(), Refused> {
        let mut bytes = Vec::new();
        let header = NfGenMsg {
            family: family.0,
            resource: 0,
        };
        let kind = message_type(message);
        let mut writer = MessageWriter::nfnetlink(&mut bytes, kind, 0, 0, header);
        content(&mut writer);
        writer.finish()?;
        if bytes.len() > LONGEST as usize {
            return Err(Refused::Large(bytes.len()));
        }
        self.arena.room(bytes.len())?.copy_from_slice(&bytes);
        let at = self.arena.take(bytes.len());
        Ok(self.admit(at)?)
    }

    /// Puts elements into the set that was put into its place last, in messages of the kernel's length.
    fn put_elements(&mut self, set: &Set<'_>, elements: &[Element<'_>]) -> Result<(), Refused> {
        let name = |name: &Option<Name<'_>>| name.as_deref().unwrap_or_default().to_vec();
        let (table, set_name) = (name(&set.table), name(&set.name));
        let mut elements = elements.iter().peekable();
        while elements.peek().is_some() {
            let mut list = Vec::new();
            while let Some(element) = elements.next_if(|_| list.len() < CHUNK) {
                let mut writer = MessageWriter::bare(&mut list);
                element.encode(&mut writer, NFTA_LIST_ELEM);
                writer.finish_bare()?;
            }
            self.put(NFT_MSG_NEWSETELEM, set.family, |writer| {
                writer
                    .string(NFTA_SET_ELEM_LIST_TABLE, &table)
                    .string(NFTA_SET_ELEM_LIST_SET, &set_name)
                    .nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
                        _ = writer.encoded(&list)
                    });
            })?;
        }
        Ok(())
    }
}
