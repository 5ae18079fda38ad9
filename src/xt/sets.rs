//! Sets in rules: text contains their names, the kernel's data their indexes.
//!
//! This module does no I/O, so a rule parsed from text contains a set's name, and a rule from the kernel
//! its index. An implementation of [`SetNames`] can query the kernel and converts between them:
//! `resolve_sets` before encoding a rule, `name_sets` before printing it. Encoding a rule with a name
//! fails with [`UnresolvedSet`].

use super::{Family, Name, Text};

/// The name of a set: 1 to 31 bytes (`IPSET_MAXNAMELEN` with its NUL, `linux/netfilter/ipset/ip_set.h`).
pub type SetName = Name<31>;

/// Identifies a set by index or by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetId {
    /// The kernel's index, valid as long as the set exists; a later set may reuse it.
    Index(u16),
    /// Its name.
    Name(SetName),
}

impl SetId {
    /// Returns the name, if there is no index.
    pub(super) const fn unresolved(&self) -> Option<&SetName> {
        match self {
            Self::Index(_) => None,
            Self::Name(name) => Some(name),
        }
    }

    /// Replaces a name with the index.
    pub(super) fn resolve<N: SetNames>(
        &mut self,
        family: Family,
        names: &mut N,
    ) -> Result<(), N::Error> {
        if let Self::Name(name) = self {
            *self = Self::Index(names.index(family, name)?);
        }
        Ok(())
    }

    /// Replaces an index with the name.
    pub(super) fn name<N: SetNames>(&mut self, names: &mut N) -> Result<(), N::Error> {
        if let Self::Index(index) = self {
            *self = Self::Name(names.name(*index)?);
        }
        Ok(())
    }

    /// Appends the name; an index is printed in a form that no command accepts as a name.
    pub(super) fn print(&self, text: &mut Text) {
        match self {
            Self::Name(name) => drop(text.name(name)),
            Self::Index(index) => drop(text.push(" [index ").number(*index).push("]")),
        }
    }
}

/// Looks up the sets of a network namespace.
pub trait SetNames {
    /// Error of a lookup.
    type Error;

    /// Returns the index of the set with that name, which must be of the family or of no family.
    ///
    /// # Errors
    /// The set does not exist, is of another family, or cannot be looked up.
    fn index(&mut self, family: Family, name: &SetName) -> Result<u16, Self::Error>;

    /// Returns the name of the set with that index.
    ///
    /// # Errors
    /// The set does not exist, or cannot be looked up.
    fn name(&mut self, index: u16) -> Result<SetName, Self::Error>;
}

/// An extension contains the name of a set, which the kernel's data cannot represent.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Hash)]
#[error("the set `{name}` has a name, but the kernel needs its index: use resolve_sets()")]
pub struct UnresolvedSet {
    /// The set's name.
    pub name: SetName,
}

crate::debug_as_message!(UnresolvedSet);

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A fixed table of indexes and names.
    pub(in crate::xt) struct Names(pub(in crate::xt) &'static [(u16, &'static str)]);

    impl SetNames for Names {
        type Error = ();

        fn index(&mut self, _: Family, name: &SetName) -> Result<u16, ()> {
            let same = |known: &&(u16, &str)| known.1.as_bytes() == name.as_bytes();
            self.0.iter().find(same).map(|(index, _)| *index).ok_or(())
        }

        fn name(&mut self, index: u16) -> Result<SetName, ()> {
            let found = self.0.iter().find(|known| known.0 == index);
            found.and_then(|(_, name)| SetName::new(name)).ok_or(())
        }
    }

    #[test]
    fn an_index_is_not_read_as_a_name() {
        let mut text = Text::new();
        SetId::Index(7).print(&mut text);
        assert_eq!(text.as_bytes(), b" [index 7]");
        let line = "-m set --match-set [index 7] src";
        assert!(crate::iptables::Rule::parse(Family::Ipv4, line).is_err());
        let mut id = SetId::Index(7);
        assert_eq!(id.name(&mut Names(&[(6, "x")])), Err(()));
        assert_eq!(id, SetId::Index(7));
        id.name(&mut Names(&[(7, "x")])).unwrap();
        assert!(id.unresolved().is_some());
        id.resolve(Family::Ipv4, &mut Names(&[(9, "x")])).unwrap();
        assert_eq!(id, SetId::Index(9));
    }
}
