//! The iptables view: tables, built-in chains and rules in iptables' terms, whichever backend they
//! live in.
//!
//! A [`Rule`] is what one line of `iptables-save` says. [`nft`] turns it into the expressions that
//! iptables-nft writes and reads those that any version of it wrote. So two rules are compared by
//! meaning, whoever encoded them.

mod builtin;
mod edit;
mod error;
mod handle;
mod header;
pub mod legacy;
pub mod nft;
mod rule;
mod sets;
pub mod text;
mod view;

pub use crate::legacy::Policy;
pub use crate::xt::Family;
pub use builtin::{Builtin, builtin, builtins};
pub use edit::{Edit, TableEdit};
pub use error::Error;
pub use handle::Iptables;
pub use header::{Address, Interface, Protocol};
pub use rule::{Beyond, Counters, Entry, Rule, Target};
pub use sets::SetError;
pub use view::{Chain, ChainKind, RuleView, Table, Tables};

/// Where tables live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// nf_tables, where iptables-nft puts them.
    Nft,
    /// The legacy x_tables, where iptables-legacy puts them.
    Legacy,
}
