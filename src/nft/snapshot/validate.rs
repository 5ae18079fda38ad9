//! Validates data from untrusted sources: files and other formats.
//!
//! A message is indexed like that of a listing, and must be an object whose table, chain or set precedes it. Unlike the
//! kernel's messages they are limited: a message has at most 1 MiB and at most 64 attributes on its top level (since
//! lookups in objects search them repeatedly), and expressions are nested at most 8 deep.

use bstr::{BStr, ByteSlice};
use chainwright_sys::nf_tables::{NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM};

#[cfg(any(feature = "backup", feature = "serde"))]
use super::Snapshot;
#[cfg(any(feature = "backup", feature = "serde"))]
use super::index::Inserted;
#[cfg(any(feature = "backup", feature = "serde"))]
use crate::arena::Position;
use crate::netlink::{Malformed, Message};
use crate::nft::expr::{
    Dynset, Expression as _, ExpressionIter, Inner, MAX_DEPTH, NestedExpression,
};
use crate::nft::{ElementsRef, RuleRef, SetRef};

/// Maximum size of a message in a snapshot; the kernel's have at most 32 KiB.
pub(super) const MAX_MESSAGE_LENGTH: u32 = 1 << 20;

/// Maximum number of attributes; the kernel's messages have at most 20.
const MAX_ATTRIBUTES: usize = 64;

#[cfg(any(feature = "backup", feature = "serde"))]
impl Snapshot {
    /// Validates and indexes the message at this position of the arena.
    pub(super) fn admit(&mut self, at: Position) -> Result<(), Malformed> {
        check_outside_message(&self.arena.message(at)?)?;
        match self.index.insert(&self.arena, at)? {
            Inserted::Added => Ok(()),
            Inserted::ParentMissing => Err(refused("its parent does not come before it")),
            Inserted::Unrelated => Err(refused("it is not an object of a ruleset")),
        }
    }

    /// Returns `true` if all its tables are in its scope: otherwise restoring it would not replace some tables.
    pub(super) fn is_in_scope(&self) -> bool {
        let mut tables = self.tables().map(|table| table.table());
        tables.all(|table| self.scope.admits(table.family(), table.name()))
    }
}

fn refused(reason: &'static str) -> Malformed {
    Malformed {
        what: "message",
        offset: 0,
        reason,
    }
}

/// Checks the limits of a message.
pub(in crate::nft) fn check_outside_message(message: &Message<'_>) -> Result<(), Malformed> {
    if message.raw.len() > MAX_MESSAGE_LENGTH as usize {
        return Err(refused("it is larger than any object"));
    }
    if message.attributes()?.nth(MAX_ATTRIBUTES).is_some() {
        return Err(refused("it has more attributes than any object"));
    }
    match is_nested_too_deep(message) {
        true => Err(refused("expressions are nested too deeply")),
        false => Ok(()),
    }
}

/// Returns `true` if expressions of an object are nested too deeply.
fn is_nested_too_deep(message: &Message<'_>) -> bool {
    let raw = BStr::new(message.raw);
    let holders =
        [Dynset::NAME, Inner::NAME].map(|name| raw.find_iter(name).take(MAX_DEPTH).count());
    if holders.iter().sum::<usize>() < MAX_DEPTH {
        return false; // the usual case
    }
    let list = |list: Option<ExpressionIter<'_>>| {
        let mut expressions = list.into_iter().flatten().map_while(Result::ok);
        expressions.any(|expression| expression.is_too_deep())
    };
    let one = |one: Option<NestedExpression<'_>>| {
        one.is_some_and(|one| one.get().is_ok_and(|it| it.is_too_deep()))
    };
    match message.kind as u8 {
        NFT_MSG_NEWRULE => RuleRef::parse(message).is_ok_and(|rule| list(rule.expressions())),
        NFT_MSG_NEWSET => {
            SetRef::parse(message).is_ok_and(|set| one(set.expression()) || list(set.expressions()))
        }
        NFT_MSG_NEWSETELEM => ElementsRef::parse(message).is_ok_and(|elements| {
            let mut elements = elements.elements().into_iter().flatten().flatten();
            elements.any(|element| one(element.expression()) || list(element.expressions()))
        }),
        _ => false,
    }
}
