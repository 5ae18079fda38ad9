//! Scopes: the tables of an operation, and other filters of listings.

use super::Family;
use super::expr::ObjectType;
use super::name::Name;

/// The tables of a snapshot or listing: all, those of a family, or one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope<'a> {
    /// Only tables of this family; [`Family::UNSPEC`] means all.
    pub family: Family,
    /// Only the table with this name.
    pub table: Option<Name<'a>>,
}

impl<'a> Scope<'a> {
    /// Selects all tables.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects the tables of a family.
    #[must_use]
    pub fn family(family: Family) -> Self {
        Self {
            family,
            table: None,
        }
    }

    /// Selects one table.
    pub fn table(family: Family, table: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
        }
    }

    /// Converts it into a scope that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Scope<'static> {
        Scope {
            family: self.family,
            table: self.table.map(Name::into_owned),
        }
    }

    /// Returns `true` if the scope includes the table with this name.
    #[must_use]
    pub fn admits(&self, family: Family, table: &[u8]) -> bool {
        (self.family == Family::UNSPEC || self.family == family)
            && self.table.as_deref().is_none_or(|name| *name == table)
    }

    /// Returns `true` if the scope includes all of another scope.
    pub(super) fn covers(&self, other: &Scope<'_>) -> bool {
        let family = self.family == Family::UNSPEC || self.family == other.family;
        let table = self.table.is_none() || self.table == other.table;
        family && table
    }
}

/// A filter of rules: those of some tables, or of one chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleFilter<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) chain: Option<Name<'a>>,
}

impl<'a> RuleFilter<'a> {
    /// Selects the rules of one chain.
    pub fn chain(family: Family, table: impl Into<Name<'a>>, chain: impl Into<Name<'a>>) -> Self {
        Self {
            scope: Scope::table(family, table),
            chain: Some(chain.into()),
        }
    }
}

impl<'a> From<Scope<'a>> for RuleFilter<'a> {
    fn from(scope: Scope<'a>) -> Self {
        Self { scope, chain: None }
    }
}

/// A filter of stateful objects: those of some tables, of all types or one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectFilter<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) object_type: Option<ObjectType>,
}

impl<'a> ObjectFilter<'a> {
    /// Selects the objects of one type.
    #[must_use]
    pub fn of_type(scope: Scope<'a>, object_type: ObjectType) -> Self {
        Self {
            scope,
            object_type: Some(object_type),
        }
    }
}

impl<'a> From<Scope<'a>> for ObjectFilter<'a> {
    fn from(scope: Scope<'a>) -> Self {
        Self {
            scope,
            object_type: None,
        }
    }
}
