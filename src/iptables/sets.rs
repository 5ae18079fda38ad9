//! Looks up the names of sets in rules in the kernel.

use std::borrow::Cow;
use std::sync::Arc;

use super::Rule;
use crate::error::ErrorKind;
use crate::ipset::{self, SetFamily};
use crate::xt::{Family, SetName, SetNames};

/// The reason why a set in a rule could not be looked up.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// There is no set of that name.
    #[error("set `{name}` not found: create it before the rule (ipset create)")]
    NoSuchSet {
        /// The name.
        name: SetName,
    },
    /// The set is there, but holds addresses of another family than the rule's.
    #[error("the set `{name}` and the rule have different address families")]
    OtherFamily {
        /// The name.
        name: SetName,
    },
    /// There is no set of that index.
    #[error("no set with index {index}")]
    NoSuchIndex {
        /// The index.
        index: u16,
    },
    /// The request to the kernel failed.
    #[error(transparent)]
    Ipset(#[from] ipset::Error),
}

crate::debug_as_message!(SetError);

crate::classified!(SetError, |error| match error {
    Self::NoSuchSet { .. } | Self::NoSuchIndex { .. } => ErrorKind::NotFound.into(),
    Self::OtherFamily { .. } => ErrorKind::Invalid.into(),
    Self::Ipset(error) => error.class(),
});

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

/// A connection to a network namespace's sets, or the error of opening it. It is used only if a rule
/// names a set.
pub(super) type Sets = Result<Arc<ipset::Connection>, ipset::Error>;

/// Opens a connection to the sets of the calling thread's network namespace.
pub(super) fn open() -> Sets {
    ipset::Connection::open().map(Arc::new)
}

/// Replaces set names by the indexes of the sets in the calling thread's network namespace.
#[doc(hidden)]
pub fn resolved_here(rule: &Rule, family: Family) -> Result<Cow<'_, Rule>, SetError> {
    match rule.has_set_names() {
        true => resolved(rule, family, &open()),
        false => Ok(Cow::Borrowed(rule)),
    }
}

/// Replaces set names by their indexes, so that the rule can be written.
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

/// Replaces set indexes by their names, so that the rule can be printed.
pub(super) fn named(rule: &mut Rule, sets: &Sets) -> Result<(), SetError> {
    if !rule.has_set_indexes() {
        return Ok(());
    }
    let sets = sets.as_ref().map_err(ipset::Error::clone)?;
    rule.name_sets(&mut &**sets)
}
