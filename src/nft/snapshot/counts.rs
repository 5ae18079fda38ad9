//! Counts the objects of a snapshot.

use std::fmt;

use super::{Snapshot, SnapshotSet};

/// The number of objects of each kind ([`Snapshot::contents`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ObjectCounts {
    /// Tables.
    pub tables: usize,
    /// Chains.
    pub chains: usize,
    /// Rules.
    pub rules: usize,
    /// Sets and maps.
    pub sets: usize,
    /// Elements; a range is one.
    pub elements: usize,
    /// Stateful objects.
    pub objects: usize,
    /// Flowtables.
    pub flowtables: usize,
}

impl Snapshot {
    /// Counts the objects of each kind. Iterates over all elements.
    #[must_use]
    pub fn contents(&self) -> ObjectCounts {
        let mut contents = ObjectCounts::default();
        for table in self.tables() {
            contents.tables += 1;
            contents.chains += table.chains().len();
            let rules = table.chains().map(|chain| chain.rules().len());
            contents.rules += rules.sum::<usize>();
            contents.sets += table.sets().len();
            let elements = table.sets().map(|set| set.element_count());
            contents.elements += elements.sum::<usize>();
            contents.objects += table.objects().len();
            contents.flowtables += table.flowtables().len();
        }
        contents
    }
}

impl SnapshotSet<'_> {
    /// Counts the elements; a range is one. Iterates over all of them.
    #[must_use]
    pub fn element_count(&self) -> usize {
        let elements = self.elements();
        elements
            .filter(|element| !element.is_interval_end())
            .count()
    }
}

impl fmt::Display for ObjectCounts {
    /// Formats as `3 tables, 5 chains, 1 rule`: the number of tables, and the numbers above 0 of other objects.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (number, one, many) in [
            (self.tables, "table", "tables"),
            (self.chains, "chain", "chains"),
            (self.rules, "rule", "rules"),
            (self.sets, "set", "sets"),
            (self.elements, "element", "elements"),
            (self.objects, "stateful object", "stateful objects"),
            (self.flowtables, "flowtable", "flowtables"),
        ] {
            if number > 0 || one == "table" {
                let noun = if number == 1 { one } else { many };
                write!(f, "{between}{number} {noun}")?;
                between = ", ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_counts_are_omitted() {
        assert_eq!(ObjectCounts::default().to_string(), "0 tables");
        let some = ObjectCounts {
            tables: 1,
            rules: 1,
            objects: 2,
            ..ObjectCounts::default()
        };
        assert_eq!(some.to_string(), "1 table, 1 rule, 2 stateful objects");
    }
}
