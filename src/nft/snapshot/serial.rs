//! Converts snapshots to and from self-describing formats such as JSON: every object in its typed form, with its
//! members.
//!
//! A snapshot that was read has messages with the same attributes as the written one, in this crate's order; attributes
//! assigned by the kernel, such as handles, are preserved. The boot in which a snapshot was taken is not written: after
//! a restoration the kernel assigns new names to bound chains.
//!
//! The input is validated like a file (`validate.rs`), and objects must belong to the table, chain or set that contains
//! them. Time and memory are proportional to the length of the input, whatever numbers it contains.

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
use super::validate::MAX_MESSAGE_LENGTH;
use super::{Snapshot, SnapshotChain, SnapshotSet, SnapshotTable};
use crate::arena::Full;
use crate::netlink::{Malformed, MessageError, MessageWriter, NfGenMsg};
use crate::nft::connection::message_type;
use crate::nft::declare::Field;
use crate::nft::generation::Generation;
use crate::nft::{Chain, Element, Family, Flowtable, Name, Rule, Set, StatefulObject, Table};

/// A list that is serialized from an iterator.
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

/// The scope of a snapshot.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope<'a> {
    family: Family,
    table: Option<Name<'a>>,
}

/// Serializes as `{"generation": …, "scope": {"family": …, "table": …}, "tables": […]}`; fails for a snapshot that
/// [lacks elements](Snapshot::lacks_elements).
impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.ensure_complete("written").map_err(S::Error::custom)?;
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

/// Serializes as `{"table": …, "chains": […], "sets": […], "objects": […], "flowtables": […]}`.
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

/// Serializes as `{"chain": …, "rules": […]}`.
impl Serialize for SnapshotChain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("SnapshotChain", 2)?;
        out.serialize_field("chain", &self.chain().to_builder())?;
        let rules = || self.rules().map(|rule| rule.to_builder());
        out.serialize_field("rules", &Listed(rules))?;
        out.end()
    }
}

/// Serializes as `{"set": …, "elements": […]}`.
impl Serialize for SnapshotSet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("SnapshotSet", 2)?;
        out.serialize_field("set", &self.set().to_builder())?;
        let elements = || self.elements().map(|element| element.to_builder());
        out.serialize_field("elements", &Listed(elements))?;
        out.end()
    }
}

/// The deserialized form of a snapshot.
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

/// The reason why the input is not a snapshot.
#[derive(thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    MessageError(#[from] MessageError),
    #[error("an object would take {0} bytes (at most {MAX_MESSAGE_LENGTH})")]
    Large(usize),
    #[error("{0} is not in the table, chain or set that it names")]
    Misplaced(String),
    #[error("it contains a table outside its scope")]
    OutOfScope,
}

crate::debug_as_message!(Refused);

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
            // No generation has the number 0, and a commit treats it as no condition.
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

/// Fails unless an object is in its place.
fn check_parent(is_there: bool, what: &dyn fmt::Debug) -> Result<(), Refused> {
    match is_there {
        true => Ok(()),
        false => Err(Refused::Misplaced(format!("{what:?}"))),
    }
}

impl TableForm {
    /// Adds the table and its members to a snapshot, each object after its parents.
    fn put_into(self, snapshot: &mut Snapshot) -> Result<(), Refused> {
        let (family, name) = (self.table.family, &self.table.name);
        snapshot.put(NFT_MSG_NEWTABLE, family, |w| self.table.write_attributes(w))?;
        for ChainForm { chain, .. } in &self.chains {
            check_parent((chain.family, &chain.table) == (family, name), &chain.name)?;
            snapshot.put(NFT_MSG_NEWCHAIN, family, |w| chain.write_attributes(w))?;
        }
        for object in &self.objects {
            check_parent(
                (object.family, &object.table) == (family, name),
                &object.name,
            )?;
            snapshot.put(NFT_MSG_NEWOBJ, family, |w| object.write_attributes(w))?;
        }
        for flowtable in &self.flowtables {
            check_parent(
                (flowtable.family, &flowtable.table) == (family, name),
                &flowtable.name,
            )?;
            snapshot.put(NFT_MSG_NEWFLOWTABLE, family, |w| {
                flowtable.write_attributes(w)
            })?;
        }
        for SetForm { set, elements } in &self.sets {
            check_parent((set.family, &set.table) == (family, name), &set.name)?;
            snapshot.put(NFT_MSG_NEWSET, family, |w| set.write_attributes(w))?;
            snapshot.put_elements(set, elements)?;
        }
        for ChainForm { chain, rules } in &self.chains {
            let mut before = None;
            for rule in rules {
                let is_there = (rule.family, &rule.table, &rule.chain);
                check_parent(is_there == (family, name, &chain.name), &rule.handle)?;
                snapshot.put(NFT_MSG_NEWRULE, family, |w| {
                    rule.write_attributes(w);
                    // The position, as in a listing: the handle of the preceding rule.
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
    /// Adds an object.
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
        if bytes.len() > MAX_MESSAGE_LENGTH as usize {
            return Err(Refused::Large(bytes.len()));
        }
        self.arena.space(bytes.len())?.copy_from_slice(&bytes);
        let at = self.arena.take(bytes.len());
        Ok(self.admit(at)?)
    }

    /// Adds elements to the last added set, in messages of the kernel's size.
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
