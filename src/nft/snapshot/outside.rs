//! What comes from outside, from a file or another format, and not from the kernel: believed nothing.
//!
//! A message is put into its place as a listing's is, and must be an object whose table, chain or set is
//! there before it. What has no end in the kernel's messages has one here: a message is at most 1 MiB
//! long, has at most 64 attributes of its own (whatever is looked for in what others belong to, is looked for
//! again and again), and expressions stand in one another at most 8 deep.

use bstr::{BStr, ByteSlice};
use chainwright_sys::nf_tables::{NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM};

use super::Snapshot;
use super::index::Inserted;
use crate::arena::Position;
use crate::netlink::{Malformed, Message};
use crate::nft::expr::{DEEPEST, Dynset, Expression as _, ExpressionIter, Inner, NestedExpression};
use crate::nft::{ElementsRef, RuleRef, SetRef};

/// The largest message that a snapshot holds; the kernel's are 32 KiB at most.
pub(super) const LONGEST: u32 = 1 << 20;

/// More attributes than any object has; the kernel's have 20 at most.
const MOST_ATTRIBUTES: usize = 64;

impl Snapshot {
    /// Takes in the message at this position, which is in the arena already.
    pub(super) fn admit(&mut self, at: Position) -> Result<(), Malformed> {
        let refused = |reason| Malformed {
            what: "message",
            offset: 0,
            reason,
        };
        let message = self.arena.message(at)?;
        if message.attributes()?.nth(MOST_ATTRIBUTES).is_some() {
            return Err(refused("it has more attributes than any object"));
        }
        if is_nested_too_deep(&message) {
            return Err(refused("expressions stand in one another too deep"));
        }
        match self.index.insert(&self.arena, at)? {
            Inserted::Placed => Ok(()),
            Inserted::Stray => Err(refused("what it belongs to is not before it")),
            Inserted::Unrelated => Err(refused("it is no object of a ruleset")),
        }
    }

    /// Whether all of its tables are in its scope: writing it back would otherwise leave tables alone
    /// that it is to replace.
    pub(super) fn is_in_scope(&self) -> bool {
        let mut tables = self.tables().map(|table| table.table());
        tables.all(|table| self.scope.admits(table.family(), table.name()))
    }
}

/// Whether expressions of an object stand in one another deeper than that.
fn is_nested_too_deep(message: &Message<'_>) -> bool {
    let raw = BStr::new(message.raw);
    let holders = [Dynset::NAME, Inner::NAME].map(|name| raw.find_iter(name).take(DEEPEST).count());
    if holders.iter().sum::<usize>() < DEEPEST {
        return false; // so it is with nearly all
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
