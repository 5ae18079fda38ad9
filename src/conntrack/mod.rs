//! Tracked connections (ctnetlink): listed, looked up, made, deleted, and watched.
//!
//! | to … | look at |
//! |---|---|
//! | list entries, in memory that does not grow with the table | [`Connection::entries`], [`Filter`] |
//! | delete entries: by name, many at once, or those of a filter | [`Connection::delete_all`], [`Connection::delete_matching`], [`Connection::delete_if`] |
//! | have the kernel delete those of a filter by itself | [`Connection::flush_matching`] |
//! | be told of them | [`Monitor`] |
//!
//! An entry is a view over the kernel's message ([`EntryRef`]); its two directions are [`Tuple`]s. What a program
//! needs of them after a change of rules is above all deletion: packets of UDP go where the entry says, as long as there
//! are any, whatever the rules say by then.
//!
//! Source: `linux/netfilter/nfnetlink_conntrack.h`; seen on Linux 6.18.

mod connection;
mod entry;
mod filter;
mod listing;
mod monitor;
mod tuple;

pub use connection::{Connection, Deleted, Statistics};
#[doc(hidden)]
pub use connection::{request_for_all, request_to_delete};
pub use entry::{Counters, Direction, Entry, EntryKey, EntryRef, SctpState, Status, TcpState};
pub use filter::{Filter, TupleFilter};
pub use listing::Listing;
pub use monitor::{Event, Events, Monitor};
pub use tuple::{Layer4, Tuple};
