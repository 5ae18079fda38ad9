//! The legacy x_tables: IPv4, IPv6 and ARP tables, read through `getsockopt` and replaced through
//! `setsockopt`.
//!
//! ```no_run
//! use chainwright::legacy::{Connection, Family, Lookup};
//!
//! # fn main() -> Result<(), chainwright::legacy::Error> {
//! let connection = Connection::open(Family::Ipv4)?;
//! match connection.read("nat")? {
//!     Lookup::NotInUse => println!("nobody uses the legacy nat table here"),
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
//! # Looking never creates a table
//! The kernel creates a legacy table, with its hooks, in a network namespace as soon as anybody
//! asks for it, be it only for its size. So everything here that reads first looks into
//! `/proc/thread-self/net/ip_tables_names` (or `ip6_`, `arp_`) and says [`Lookup::NotInUse`] when
//! the table does not stand there. Only [`Connection::instantiate`] and
//! [`Connection::instantiate_and_read_into`] create tables, as their names say.
//!
//! # Three answers that are not a table
//! | what | where | meaning |
//! |---|---|---|
//! | [`Error::NotBuilt`] | [`Connection::open`] | this kernel has no legacy tables of that family, or their module is not loaded; nothing here loads a module |
//! | [`Lookup::NotInUse`] | every read | nobody uses that table in this network namespace |
//! | [`Error::NoPermission`] | [`Connection::open`], every read | `CAP_NET_ADMIN` is missing, or the file with the names is not readable |
//!
//! [`status`] gives all of them, and "in use", as one value.
//!
//! # From bytes to rules
//! A [`Table`] owns the entries as the kernel sent them and a small index of its chains, built in
//! one pass that also proves that every entry lies within the table. [`ChainRef`], [`RuleRef`],
//! [`Header`], [`ExtensionRef`] and [`Target`] borrow from it and decode when they are asked.
//! Whatever the bytes are, there is no panic and no endless loop: [`Malformed`] names the offset
//! and the problem.
//!
//! # Changing a table
//! The kernel takes a table as a whole. A [`Draft`] borrows a table that was read, and is changed in
//! memory; [`Draft::finish`] lays out the new table, into which everything that was not changed is
//! copied byte for byte, and [`Connection::replace`] hands it over with the counters. Take the
//! [`Lock`] of the legacy tools before the table is read.
//!
//! ```no_run
//! use chainwright::Retry;
//! use chainwright::legacy::{
//!     Connection, Draft, Family, Hook, InterfaceMatchBuf, Ipv4HeaderBuf, Lock, LockPolicy,
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
//! let mut draft = Draft::of(&table);
//! let chain = draft.add_chain("LOCAL")?;
//! let header = Ipv4HeaderBuf {
//!     in_interface: InterfaceMatchBuf::new("lo").unwrap_or_default(),
//!     ..Default::default()
//! };
//! let jump = draft.build(header)?.finish(NewTarget::Jump(chain))?;
//! let accept = draft.build(Ipv4HeaderBuf::default())?.finish(NewTarget::Accept)?;
//! draft.append(chain, accept)?;
//! if let Some(input) = draft.builtin(Hook::Input) {
//!     draft.insert(input, 0, jump)?;
//! }
//! connection.replace(&mut draft.finish()?)?;
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
mod draft;
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
mod revision;
mod rule;
mod socket;
mod table;
mod target;

pub use chain::{Builtin, ChainRef, Chains, Policy};
pub use connection::{Connection, Lookup, Status, status};
pub use draft::{
    ChainId, Draft, DraftChain, DraftError, DraftRule, DraftRules, DraftTarget, NewRule, NewTarget,
    RuleBuilder,
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
pub(crate) use name::start_of;
pub use replacement::Replacement;
pub use revision::ExtensionKind;
pub use rule::{Counters, RuleRef, Rules};
pub use table::Table;
pub use target::Target;

// The captured tables are a 64-bit little-endian kernel's.
#[cfg(all(test, target_endian = "little", target_pointer_width = "64"))]
mod tests;
