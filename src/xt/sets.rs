//! Sets in rules: text has their names, the kernel's data their indexes.
//!
//! This module does no input or output, so that a rule that was read from text says a set's name, and
//! one that was read from the kernel its index. Something that can ask the kernel ([`SetNames`])
//! turns one into the other: `resolve_sets` before a rule is encoded, `name_sets` before it is
//! printed. A rule with a name in it cannot be encoded: that is an [`UnresolvedSet`].

use super::{Family, Name, Text};

/// The name of a set: 1 to 31 bytes (`IPSET_MAXNAMELEN` with its NUL, `linux/netfilter/ipset/ip_set.h`).
pub type SetName = Name<31>;

/// Which set: by index or by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetId {
    /// The kernel's index of it, valid as long as the set is there; another set may have it later.
    Index(u16),
    /// Its name.
    Name(SetName),
}

impl SetId {
    /// The name, if there is no index.
    pub(super) const fn unresolved(&self) -> Option<&SetName> {
        match self {
            Self::Index(_) => None,
            Self::Name(name) => Some(name),
        }
    }

    /// Puts the index in the place of a name.
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

    /// Puts the name in the place of an index.
    pub(super) fn name<N: SetNames>(&mut self, names: &mut N) -> Result<(), N::Error> {
        if let Self::Index(index) = self {
            *self = Self::Name(names.name(*index)?);
        }
        Ok(())
    }

    /// Adds the name; an index as what no command takes for a name.
    pub(super) fn print(&self, text: &mut Text) {
        match self {
            Self::Name(name) => drop(text.name(name)),
            Self::Index(index) => drop(text.push(" [index ").number(*index).push("]")),
        }
    }
}

/// Something that knows the sets of a network namespace.
pub trait SetNames {
    /// What can go wrong.
    type Error;

    /// The index of the set of that name, which must be of the family or of none.
    ///
    /// # Errors
    /// There is no such set, it is of another family, or it cannot be known.
    fn index(&mut self, family: Family, name: &SetName) -> Result<u16, Self::Error>;

    /// The name of the set of that index.
    ///
    /// # Errors
    /// There is no such set, or it cannot be known.
    fn name(&mut self, index: u16) -> Result<SetName, Self::Error>;
}

/// An extension says the name of a set, which the kernel's data cannot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Hash)]
#[error(
    "the set `{name}` is said by its name, but the kernel takes indexes: resolve_sets() looks them up"
)]
pub struct UnresolvedSet {
    /// The set's name.
    pub name: SetName,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A table of indexes and names.
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
