//! chainwright reads and changes a Linux node's packet-filter tables directly: it speaks nf_tables over netlink,
//! reads and replaces the legacy x_tables through getsockopt and setsockopt, and never runs another
//! program. It lists chains as fast as the kernel sends them, applies changes in atomic transactions,
//! and provides one iptables view of both backends.
//!
//! # Example
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
//! while let Some(chain) = chains.try_next()? {
//!     println!("{chain} {:?}", chain.hook());
//! }
//! # Ok::<(), chainwright::Error>(()) })??;
//! # Ok(())
//! # }
//! ```
//!
//! The module `guide`, documented with the features `diff` and `iptables`, has more short examples.
//!
//! # Modules
//!
//! `iptables` builds on `nft`, `xt`, `legacy` and `ipset`; `nft` and `conntrack` build on `netlink`.
//!
//! | module | contents |
//! |---|---|
//! | `iptables` | one view of iptables' tables in either backend: read, change atomically, save, restore (feature `iptables`) |
//! | [`nft`] | nf_tables: objects, expressions, listings, transactions, snapshots |
//! | `xt` | x_tables extensions: matches and targets, their data and their options (feature `iptables`) |
//! | `legacy` | the legacy tables: read, edit, replace (feature `iptables`) |
//! | [`netlink`] | sockets, messages, attributes, dumps, batches, errors |
//! | `ipset` | names and indexes of ipset sets (feature `iptables`) |
//! | `conntrack` | conntrack entries: list, delete, watch (feature `conntrack`) |
//! | [`metrics`] | counters, sizes and totals of a ruleset, as samples and in Prometheus' text format |
//! | [`netns`] | network namespaces: open one, run code in it |
//!
//! Other crates build on this one: `chainwright-lang` (nft's language, as text and JSON), `chainwright-trace` (the path
//! of a packet), `chainwright-kube` (Kubernetes' chains and services) and `chainwright-testing` (private network
//! namespaces and an in-memory nf_tables, for tests).
//!
//! The crate `chainwright-sys` has the kernel's ABI: constants and structs under their kernel names.
//!
//! # Features
//!
//! By default the crate is synchronous, without async, JSON or a command line. The feature `iptables` is on by default;
//! a program that uses nf_tables alone compiles faster with `default-features = false`.
//!
//! | feature | adds |
//! |---|---|
//! | `iptables` (default) | iptables' tables in both backends, and x_tables' extensions: `iptables`, `legacy`, `xt`, `ipset` |
//! | `backup` | snapshots in files: `nft::Snapshot::save`, `nft::Snapshot::load` |
//! | `diff` | the differences between two snapshots: `nft::Snapshot::diff` |
//! | `ipnet` | ranges of typed sets from prefixes: `nft::typed::TypedSet::ranges` |
//! | `serde` | objects, expressions and snapshots to and from any self-describing format |
//! | `tokio` | async: `nft::live::MonitorStream`, `nft::Connection::keep_async`, `nft::Pool::run` |
//! | `conntrack` | conntrack entries: `conntrack` |
//!
//! # Privileges
//!
//! Reading and changing tables takes `CAP_NET_ADMIN` in the user namespace that owns the network namespace:
//! root has it, and so has every user inside a `Sandbox` of `chainwright-testing`.

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
#[cfg(all(feature = "diff", feature = "iptables"))]
pub mod guide;
mod input;
#[doc(hidden)]
pub mod internal;
#[cfg(feature = "iptables")]
pub mod ipset;
#[cfg(feature = "iptables")]
pub mod iptables;
#[cfg(feature = "iptables")]
pub mod legacy;
mod memory;
pub mod metrics;
pub mod netlink;
#[allow(unsafe_code)]
pub mod netns;
pub mod nft;
mod retry;
mod sequence;
#[cfg(feature = "iptables")]
mod sockopt;
mod suggest;
#[cfg(feature = "iptables")]
pub mod xt;

/// Re-exported because names and other byte strings of the kernel are [`BStr`](bstr::BStr) and
/// [`BString`](bstr::BString): nearly always text, but not guaranteed to be UTF-8.
pub use bstr;
pub use errno::Errno;
pub use error::{Error, ErrorKind, OtherError};
pub use retry::Retry;
