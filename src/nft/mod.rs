//! nf_tables: objects, expressions, listings and transactions.
//!
//! | to | start from |
//! |---|---|
//! | list tables, chains, rules, or look one up | [`Connection`], [`Filter`] |
//! | keep a listing and re-read it only when something changed | [`List`] |
//! | change the ruleset, whole or not at all | [`Transaction`], [`Connection::commit`] |
//! | read an object as the kernel sent it | [`TableRef`], [`ChainRef`], [`RuleRef`] |
//! | build one | [`Table`], [`Chain`], [`Rule`], [`expr`] |
//!
//! ```no_run
//! use chainwright::nft::{Chain, Connection, Family, Filter, Rule, Table, Transaction};
//! use chainwright::nft::expr::{Counter, Immediate};
//!
//! # fn main() -> Result<(), chainwright::Error> {
//! let mut nft = Connection::open()?;
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "example"))?;
//! tx.add(&Chain::new(Family::IP, "example", "web"))?;
//! tx.add(
//!     &Rule::new(Family::IP, "example", "web")
//!         .with(&Counter::new(0, 0))
//!         .with(&Immediate::accept()),
//! )?;
//! nft.commit(&mut tx)?; // everything, or nothing and an error that says why
//!
//! let mut chains = nft.chains(Filter::table(Family::IP, "example"))?;
//! while let Some(chain) = chains.next()? {
//!     println!("{}", chain.name());
//! }
//! # Ok(())
//! # }
//! ```

mod chain;
mod commit;
mod connection;
mod declare;
mod explain;
pub mod expr;
mod family;
mod generation;
mod list;
mod listing;
mod name;
mod object;
mod rule;
mod table;
mod transaction;

pub use chain::{Chain, ChainFlags, ChainRef, Counters, Hook, Policy, hook_name};
pub use commit::{CommitError, Failure, Outcome};
pub use connection::Connection;
#[cfg(feature = "measure")]
pub(crate) use connection::message_type;
pub use declare::Field;
pub use explain::Operation;
pub use family::Family;
pub use generation::{Generation, GenerationInfo, GenerationRef};
pub use list::List;
pub use listing::{Filter, Filtered, Listing};
pub use name::{Bytes, Name};
pub use object::{Listed, Messages, Object};
pub use rule::{Compat, Rule, RuleRef};
pub use table::{Table, TableFlags, TableRef};
pub use transaction::Transaction;
