//! One view of iptables' tables, chains and rules in either backend.
//!
//! | to | use |
//! |---|---|
//! | read, change, save or restore tables | [`Iptables`] |
//! | describe changes | [`TableEdit`], [`Edit`] |
//! | make a chain hold exactly certain rules, or begin with them | [`TableEdit::reconcile_chain`], [`TableEdit::ensure_first`] |
//! | remove chains that a program left behind | [`Iptables::clean_up`] |
//! | move tables to the other backend | [`Iptables::migrate_to`] |
//! | restore tables in which other programs have chains | [`Iptables::restore_keeping`] |
//! | find faults in tables, or changes that will fail | [`doctor`] |
//! | predict how versions of iptables-nft read a rule | [`compat`] |
//! | inspect tables that were read | [`Tables`], [`Table`], [`Chain`], [`RuleView`] |
//! | use a rule as a value | [`Rule`], [`Rule::parse`], [`xt`](crate::xt) for its matches and target |
//! | read and write the text of iptables-save | [`text`] |
//! | emulate the `iptables` programs | [`program`] |
//! | convert a rule to and from nf_tables' expressions, or an entry of a legacy table | [`nft`], [`legacy`] |
//!
//! The path of a rule: bytes from the kernel ([`RuleView`]) → [`Entry`] ([`nft::decode`],
//! [`legacy::decode`]) → text ([`Rule::print`]); and back: text → [`text::Command`] → [`Rule`] →
//! expressions ([`nft::Encoder`]) or entry → one transaction, or one replaced table.
//!
//! Rules are compared by meaning, whichever program encoded them ([`Rule::means_the_same`]). A rule that
//! iptables' language cannot express is [`NotExpressible`]: it is preserved, and printed as native
//! bytecode, never as a wider rule.

#[doc(hidden)]
pub mod builtin;
mod cleanup;
pub mod compat;
mod convert;
pub mod doctor;
mod edit;
mod error;
mod expressible;
mod handle;
mod header;
mod known_difference;
pub mod legacy;
mod migrate;
pub mod nft;
mod nft_names;
pub mod program;
mod read_only;
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
pub use edit::{Edit, TableEdit};
pub use error::Error;
pub use handle::Iptables;
pub use header::{Address, Interface, Protocol};
pub use known_difference::{KnownDifference, known_differences};
pub use migrate::{Migrated, Migration, MigrationError, Obstacle};
#[doc(hidden)]
pub use nft_names::{hook_declaration, nft_name};
pub use read_only::tables_in_use;
pub use reconcile::ChainChanges;
pub use rule::{Entry, NotExpressible, Rule, Target};
pub use sets::SetError;
#[doc(hidden)]
pub use sets::resolved_here;
pub use view::{Chain, ChainKind, RuleView, Table, Tables};

/// The kernel interface that holds the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// nf_tables, used by iptables-nft.
    Nft,
    /// The legacy x_tables, used by iptables-legacy.
    Legacy,
}
