//! The iptables view: tables, built-in chains and rules in iptables' terms, whichever backend they
//! live in.
//!
//! A [`Rule`] is what one line of `iptables-save` says. [`nft`] turns it into the expressions that
//! iptables-nft writes and reads those that any version of it wrote. So two rules are compared by
//! meaning, whoever encoded them.

mod builtin;
mod header;
pub mod legacy;
pub mod nft;
mod rule;
mod sets;
pub mod text;

pub use crate::xt::Family;
pub use builtin::{Builtin, builtin};
pub use header::{Address, Interface, Protocol};
pub use rule::{Counters, Rule, Target};
pub use sets::SetError;
