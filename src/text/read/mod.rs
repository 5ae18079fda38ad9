//! From what the kernel has to sentences of nft's language.
//!
//! A rule is read instruction by instruction ([`rule`]): what is loaded stands in the [`registers`] as an expression,
//! until a comparison, a look-up or a statement makes a part of the rule of it. The [`context`] is what the rule has
//! found out about its packets so far.

mod compare;
mod context;
mod fields;
mod loads;
mod lookups;
mod registers;
pub(super) mod rule;
pub(super) mod set;
pub(super) mod stateful;
mod statements;
