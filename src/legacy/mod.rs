//! Reads and replaces the legacy x_tables (IPv4, IPv6 and ARP) through `getsockopt` and
//! `setsockopt`.
//!
//! ```no_run
//! use chainwright::legacy::{Connection, Family, Lookup};
//!
//! # fn main() -> Result<(), chainwright::legacy::Error> {
//! let connection = Connection::open(Family::Ipv4)?;
//! match connection.read("nat")? {
//!     Lookup::NotInUse => println!("the legacy nat table is not in use"),
//!     Lookup::InUse(table) => {
//!         for chain in table.chains() {
//!             println!("{} has {} rules", chain.name(), chain.rule_count());
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Reading never creates a table
//! The kernel creates a legacy table, with its hooks, in a network namespace as soon as any program
//! requests it, even only its size. Every read here therefore first looks into
//! `/proc/thread-self/net/ip_tables_names` (or `ip6_`, `arp_`) and returns [`Lookup::NotInUse`] if
//! the table is not listed there. Only [`Connection::instantiate`] and
//! [`Connection::instantiate_and_read_into`] create tables.
//!
//! # When there is no table
//! | result | where | meaning |
//! |---|---|---|
//! | [`Error::NotBuilt`] | [`Connection::open`] | this kernel has no legacy tables of that family, or their module is not loaded; this crate does not load it |
//! | [`Lookup::NotInUse`] | every read | the table is not in use in this network namespace |
//! | [`Error::NoPermission`] | [`Connection::open`], every read | `CAP_NET_ADMIN` is missing, or the file with the table names is not readable |
//!
//! [`status`] returns all of these, and "in use", as one value.
//!
//! # From bytes to rules
//! A [`Table`] owns the entries as the kernel sent them and a small index of its chains. One pass
//! over the entries builds the index and checks that every entry lies within the table.
//! [`ChainRef`], [`RuleRef`], [`Header`], [`ExtensionRef`] and [`Target`] borrow from the table and
//! decode on access. No input causes a panic or an endless loop: [`Malformed`] names the offset and
//! the problem.
//!
//! # Changing a table
//! The kernel replaces a table only as a whole. A [`TableEditor`] borrows a table that was read and
//! records changes in memory. [`TableEditor::finish`] lays out the new table and copies everything
//! unchanged byte for byte. [`Connection::replace`] sends it to the kernel and carries the counters
//! over. Take the [`Lock`] of the legacy tools before you read the table.
//!
//! ```no_run
//! use chainwright::Retry;
//! use chainwright::legacy::{
//!     Connection, TableEditor, Family, Hook, InterfaceMatchBuf, Ipv4HeaderBuf, Lock, LockPolicy,
//!     Lookup, NewTarget,
//! };
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = Connection::open(Family::Ipv4)?;
//! let lock = Lock::take(&LockPolicy::Standard, Retry::within(Duration::from_secs(5)))?;
//! let Lookup::InUse(table) = connection.read("filter")? else {
//!     return Ok(());
//! };
//! let mut editor = TableEditor::of(&table);
//! let chain = editor.add_chain("LOCAL")?;
//! let header = Ipv4HeaderBuf {
//!     in_interface: InterfaceMatchBuf::new("lo").unwrap_or_default(),
//!     ..Default::default()
//! };
//! let jump = editor.build(header)?.finish(NewTarget::Jump(chain))?;
//! let accept = editor.build(Ipv4HeaderBuf::default())?.finish(NewTarget::Accept)?;
//! editor.append(chain, accept)?;
//! if let Some(input) = editor.builtin(Hook::Input) {
//!     editor.insert(input, 0, jump)?;
//! }
//! connection.replace(&mut editor.finish()?)?;
//! drop(lock);
//! # Ok(())
//! # }
//! ```
//!
//! Layouts: `linux/netfilter/x_tables.h`, `linux/netfilter_ipv4/ip_tables.h`,
//! `linux/netfilter_ipv6/ip6_tables.h`, `linux/netfilter_arp/arp_tables.h`. Numbers are in host
//! byte order, addresses and ARP fields in network byte order.

#![deny(unsafe_code)]

mod chain;
mod connection;
mod editor;
mod entry;
mod error;
mod extension;
mod family;
mod header;
mod info;
mod lock;
mod name;
mod replace;
mod replacement;
mod restore;
mod revision;
mod rule;
mod socket;
mod table;
mod target;

pub use chain::{Builtin, ChainRef, Chains, Policy};
pub use connection::{Connection, Lookup, Status, status};
pub use editor::{
    ChainId, EditError, EditedChain, EditedRule, EditedRules, EditedTarget, NewRule, NewTarget,
    RuleBuilder, TableEditor,
};
pub use error::{Access, Error, Malformed, Operation, Problem};
pub use extension::{ExtensionRef, Matches};
pub use family::{Family, Hook};
pub use header::{
    ArpHeader, ArpInversions, HardwareAddressMatch, Header, HeaderBuf, InterfaceMatch,
    InterfaceMatchBuf, Inversions, Ipv4Flags, Ipv4Header, Ipv4HeaderBuf, Ipv6Flags, Ipv6Header,
    Ipv6HeaderBuf, Masked,
};
pub use info::Info;
pub use lock::{LOCK_FILE, LOCK_VARIABLE, Lock, LockHolder, LockPolicy};
pub use name::TableName;
pub(crate) use name::sort_key;
pub use replacement::Replacement;
pub use revision::ExtensionKind;
pub use rule::{Counters, RuleRef, Rules};
pub use table::Table;
pub use target::Target;

// The captured tables come from a 64-bit little-endian kernel.
#[cfg(all(test, target_endian = "little", target_pointer_width = "64"))]
mod tests;
