//! Snapshots to any self-describing format: every object in its typed form, each with what is in it.

use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use super::{Snapshot, SnapshotChain, SnapshotSet, SnapshotTable};

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

/// `{"generation": …, "tables": […]}`
impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Snapshot", 2)?;
        out.serialize_field(
            "generation",
            &self.generation().map(|generation| generation.0),
        )?;
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
