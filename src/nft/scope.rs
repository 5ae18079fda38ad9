//! Which tables something is about, and what else listings can be asked for.

use super::Family;
use super::expr::ObjectType;
use super::name::Name;

/// The tables that a snapshot or a listing is of: all, those of a family, or one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope<'a> {
    /// Tables of this family; of all if [`Family::UNSPEC`].
    pub family: Family,
    /// The table with this name.
    pub table: Option<Name<'a>>,
}

impl<'a> Scope<'a> {
    /// All tables.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The tables of a family.
    #[must_use]
    pub fn family(family: Family) -> Self {
        Self {
            family,
            table: None,
        }
    }

    /// One table.
    pub fn table(family: Family, table: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
        }
    }

    /// The same with nothing borrowed.
    #[must_use]
    pub fn into_owned(self) -> Scope<'static> {
        Scope {
            family: self.family,
            table: self.table.map(Name::into_owned),
        }
    }

    /// Whether the table of this name is one of them.
    #[must_use]
    pub fn admits(&self, family: Family, table: &[u8]) -> bool {
        (self.family == Family::UNSPEC || self.family == family)
            && self.table.as_deref().is_none_or(|name| *name == table)
    }

    /// Whether all of another scope is in this one.
    pub(super) fn covers(&self, other: &Scope<'_>) -> bool {
        let family = self.family == Family::UNSPEC || self.family == other.family;
        let table = self.table.is_none() || self.table == other.table;
        family && table
    }
}

/// Which rules are listed: those of some tables, or of one chain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleFilter<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) chain: Option<Name<'a>>,
}

impl<'a> RuleFilter<'a> {
    /// The rules of one chain.
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

/// Which stateful objects are listed: those of some tables, of all types or of one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectFilter<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) object_type: Option<ObjectType>,
}

impl<'a> ObjectFilter<'a> {
    /// Those of one type.
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
