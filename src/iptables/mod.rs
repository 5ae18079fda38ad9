//! One iptables view: tables, chains and rules in iptables' terms, whichever backend they live in.
//!
//! | to | use |
//! |---|---|
//! | read, change, save or restore tables | [`Iptables`] |
//! | say what is to be changed | [`TableEdit`], [`Edit`] |
//! | see to it that a chain holds certain rules, or that some stand first | [`TableEdit::reconcile_chain`], [`TableEdit::ensure_first`] |
//! | take out chains that somebody left behind | [`Iptables::clean_up`] |
//! | move tables to the other backend | [`Iptables::migrate_to`] |
//! | restore tables in which others have chains | [`Iptables::restore_keeping`] |
//! | know what is wrong with tables, or will go wrong | [`doctor`] |
//! | know what versions of iptables-nft read of a rule | [`forecast`] |
//! | look at what was read | [`Tables`], [`Table`], [`Chain`], [`RuleView`] |
//! | have a rule as a value | [`Rule`], [`Rule::parse`], [`xt`](crate::xt) for its matches and target |
//! | read and write the text of iptables-save | [`text`] |
//! | be `iptables`, for programs that run it | [`program`] |
//! | turn a rule into nf_tables' expressions, or an entry of a legacy table, and back | [`nft`], [`legacy`] |
//!
//! The way of a rule: bytes from the kernel ([`RuleView`]) → [`Entry`] ([`nft::decode`],
//! [`legacy::decode`]) → text ([`Rule::print`]); and back: text → [`text::Command`] → [`Rule`] →
//! expressions ([`nft::Encoder`]) or entry → one transaction, or one replaced table.
//!
//! Two rules are compared by meaning, whoever encoded them ([`Rule::means_the_same`]). A rule that
//! iptables' language has no words for is [`NotExpressible`]: it stays as it is, and is shown as native
//! bytecode, never as a wider rule.

#[doc(hidden)]
pub mod builtin;
mod cleanup;
mod convert;
mod deviation;
pub mod doctor;
mod edit;
mod error;
mod expressible;
pub mod forecast;
mod handle;
mod header;
mod in_use;
pub mod legacy;
mod migrate;
pub mod nft;
mod nft_words;
pub mod program;
mod reconcile;
mod rule;
mod sets;
pub mod text;
mod view;

pub use crate::legacy::{Counters, Policy};
pub use crate::xt::Family;
pub use builtin::{Builtin, builtin, builtins};
pub use cleanup::{CleanedUp, Cleanup};
pub use convert::NoEquivalent;
pub use deviation::{Deviation, deviations};
pub use edit::{Edit, TableEdit};
pub use error::Error;
pub use handle::Iptables;
pub use header::{Address, Interface, Protocol};
pub use in_use::tables_in_use;
pub use migrate::{Migrated, Migration, MigrationError, Obstacle};
#[doc(hidden)]
pub use nft_words::{hook_of, nft_name};
pub use reconcile::ChainChanges;
pub use rule::{Entry, NotExpressible, Rule, Target};
pub use sets::SetError;
#[doc(hidden)]
pub use sets::resolved_here;
pub use view::{Chain, ChainKind, RuleView, Table, Tables};

/// Where tables live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// nf_tables, where iptables-nft puts them.
    Nft,
    /// The legacy x_tables, where iptables-legacy puts them.
    Legacy,
}
