//! chainwright owns a Linux node's packet-filter tables natively: it speaks nf_tables over netlink,
//! reads and replaces the legacy x_tables through getsockopt and setsockopt, and never runs another
//! program. It lists chains as fast as the kernel hands them out, changes rules in transactions that
//! happen whole or not at all, and gives one iptables view of both backends.
//!
//! # In ten lines
//!
//! ```
//! use chainwright::nft::{Chain, Connection, Family, Scope, Table, Transaction};
//!
//! # fn main() -> Result<(), chainwright::Error> {
//! # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
//! let mut nft = Connection::open()?; // of this network namespace
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "nat"))?;
//! tx.add(&Chain::new(Family::IP, "nat", "KUBE-SERVICES"))?;
//! nft.commit(&tx)?; // all of it, or nothing and an error that names what failed
//!
//! assert!(nft.chain_exists(Family::IP, "nat", "KUBE-SERVICES")?); // one message, no listing
//! let mut chains = nft.chains(Scope::table(Family::IP, "nat"))?; // borrowed, streaming
//! while let Some(chain) = chains.next()? {
//!     println!("{chain} {:?}", chain.hook());
//! }
//! # Ok::<(), chainwright::Error>(()) })??;
//! # Ok(())
//! # }
//! ```
//!
//! More tasks of this size: the module `guide`, which the feature `diff` documents.
//!
//! # Modules
//!
//! A module knows those under it and none beside it.
//!
//! | module | what it knows |
//! |---|---|
//! | [`iptables`] | one view of iptables' tables in either backend: read, changed at once, saved, restored |
//! | [`nft`] | nf_tables: objects, expressions, listings, transactions, snapshots |
//! | [`xt`] | x_tables extensions: matches and targets, their data and their options |
//! | [`legacy`] | the legacy tables: read, drafted, replaced |
//! | [`netlink`] | sockets, messages, attributes, dumps, batches, errors |
//! | [`ipset`] | names and indexes of ipset's sets |
//! | `conntrack` | tracked connections: listed, deleted, watched (feature `conntrack`) |
//! | [`netns`] | network namespaces, and private ones for tests |
//!
//! Other crates are built on this one: `chainwright-lang` (nft's language, as text and JSON), `chainwright-trace` (where a
//! packet goes) and `chainwright-kube` (Kubernetes' chains and services).
//!
//! The kernel's ABI as data, constants and structs under their kernel names, is the crate
//! `chainwright-sys`.
//!
//! # Features
//!
//! The default is the library alone: synchronous, without async, JSON or a command line.
//!
//! | feature | adds |
//! |---|---|
//! | `backup` | snapshots in files: `nft::Snapshot::save`, `nft::Snapshot::load` |
//! | `diff` | what differs between two snapshots: `nft::Snapshot::diff` |
//! | `serde` | objects, expressions and snapshots to and from any self-describing format |
//! | `tokio` | changes of the ruleset as a stream: `nft::live::MonitorStream` |
//! | `conntrack` | tracked connections: `conntrack` |
//!
//! # Privileges
//!
//! Looking and changing take `CAP_NET_ADMIN` in the user namespace that owns the network namespace:
//! root, or anybody inside a `chainwright_testing::Sandbox`.

#![deny(unsafe_code)]

mod arena;
#[cfg(feature = "conntrack")]
pub mod conntrack;
mod errno;
mod error;
mod escape;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "diff")]
pub mod guide;
mod input;
#[doc(hidden)]
pub mod internal;
pub mod ipset;
pub mod iptables;
pub mod legacy;
mod memory;
pub mod netlink;
#[allow(unsafe_code)]
pub mod netns;
pub mod nft;
mod retry;
mod sequence;
mod sockopt;
mod spelling;
pub mod xt;

/// Names and other bytes of the kernel's are [`BStr`](bstr::BStr) and [`BString`](bstr::BString) here: text,
/// nearly always, that nobody promised to be UTF-8.
pub use bstr;
pub use errno::Errno;
pub use error::Error;
pub use retry::Retry;
