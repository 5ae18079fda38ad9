//! Names of sets in rules, looked up in the kernel.

use std::borrow::Cow;
use std::sync::Arc;

use super::Rule;
use crate::ipset::{self, SetFamily};
use crate::xt::{Family, SetName, SetNames};

/// Why a set that a rule names could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// There is no set of that name.
    #[error("set `{name}` not found: create it before the rule (ipset create)")]
    NoSuchSet {
        /// The name.
        name: SetName,
    },
    /// The set is there, but holds addresses of another family than the rule's.
    #[error("the set `{name}` holds addresses of the other family than the rule's")]
    OtherFamily {
        /// The name.
        name: SetName,
    },
    /// There is no set of that index.
    #[error("no set has the index {index}")]
    NoSuchIndex {
        /// The index.
        index: u16,
    },
    /// The kernel could not be asked.
    #[error(transparent)]
    Ipset(#[from] ipset::Error),
}

impl SetNames for &ipset::Connection {
    type Error = SetError;

    fn index(&mut self, family: Family, name: &SetName) -> Result<u16, SetError> {
        let Some(found) = self.look_up(name)? else {
            return Err(SetError::NoSuchSet { name: name.clone() });
        };
        match (found.family, family) {
            (SetFamily::Any, _)
            | (SetFamily::Ipv4, Family::Ipv4)
            | (SetFamily::Ipv6, Family::Ipv6) => Ok(found.index),
            _ => Err(SetError::OtherFamily { name: name.clone() }),
        }
    }

    fn name(&mut self, index: u16) -> Result<SetName, SetError> {
        let name = ipset::Connection::name(self, index)?;
        name.and_then(SetName::new)
            .ok_or(SetError::NoSuchIndex { index })
    }
}

/// The way to a network namespace's sets, or why there is none. It is asked for only when a rule names a
/// set.
pub(super) type Sets = Result<Arc<ipset::Connection>, ipset::Error>;

/// The way to the sets of the calling thread's network namespace.
pub(super) fn open() -> Sets {
    ipset::Connection::open().map(Arc::new)
}

/// The rule with the indexes of the sets of the calling thread's network namespace in the place of their names.
#[doc(hidden)]
pub fn resolved_here(rule: &Rule, family: Family) -> Result<Cow<'_, Rule>, SetError> {
    match rule.has_set_names() {
        true => resolved(rule, family, &open()),
        false => Ok(Cow::Borrowed(rule)),
    }
}

/// The rule with its sets' indexes in the place of their names, as it can be written.
pub(super) fn resolved<'r>(
    rule: &'r Rule,
    family: Family,
    sets: &Sets,
) -> Result<Cow<'r, Rule>, SetError> {
    if !rule.has_set_names() {
        return Ok(Cow::Borrowed(rule));
    }
    let sets = sets.as_ref().map_err(ipset::Error::clone)?;
    let mut rule = rule.clone();
    rule.resolve_sets(family, &mut &**sets)?;
    Ok(Cow::Owned(rule))
}

/// Puts the names of sets in the place of their indexes, as the rule can be printed.
pub(super) fn named(rule: &mut Rule, sets: &Sets) -> Result<(), SetError> {
    if !rule.has_set_indexes() {
        return Ok(());
    }
    let sets = sets.as_ref().map_err(ipset::Error::clone)?;
    rule.name_sets(&mut &**sets)
}
