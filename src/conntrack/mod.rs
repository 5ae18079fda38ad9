//! Conntrack entries (ctnetlink): list, look up, create, delete, and watch them.
//!
//! | task | API |
//! |---|---|
//! | list entries, in memory that does not grow with the table | [`Connection::entries`], [`Filter`] |
//! | delete entries: by key, many at once, or those that match a filter | [`Connection::delete_all`], [`Connection::delete_matching`], [`Connection::delete_if`] |
//! | make the kernel delete the entries that match a filter | [`Connection::flush_matching`] |
//! | receive events | [`Monitor`] |
//!
//! An entry is a view of the kernel's message ([`EntryRef`]); its two directions are [`Tuple`]s. After a rule change,
//! programs mainly need to delete entries: UDP packets follow an existing entry as long as they keep coming, regardless
//! of the new rules.
//!
//! Source: `linux/netfilter/nfnetlink_conntrack.h`; tested on Linux 6.18.

mod connection;
mod entry;
mod filter;
mod listing;
mod monitor;
mod tuple;

pub use connection::{Connection, Deleted, Statistics};
#[doc(hidden)]
pub use connection::{delete_request, list_request};
pub use entry::{Counters, Direction, Entry, EntryKey, EntryRef, SctpState, Status, TcpState};
pub use filter::{Filter, TupleFilter};
pub use listing::Listing;
pub use monitor::{Event, Events, Monitor};
pub use tuple::{Layer4, Tuple};
