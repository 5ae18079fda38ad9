//! Monitors changes of the ruleset: the kernel reports each transaction and who committed it.
//!
//! ```
//! use chainwright::nft::live::{Item, Monitor};
//! use chainwright::nft::{Chain, Connection, Family, Table, Transaction};
//!
//! # fn main() -> Result<(), chainwright::Error> {
//! # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
//! let mut monitor = Monitor::open()?;
//!
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "nat"))?;
//! tx.add(&Chain::new(Family::IP, "nat", "KUBE-SERVICES"))?;
//! Connection::open()?.commit(&tx)?;
//!
//! match monitor.receive()? {
//!     Item::Change(change) => {
//!         let events: Vec<_> = change.events().map(|event| event.to_string()).collect();
//!         assert_eq!(events[1], "add chain ip nat KUBE-SERVICES handle 1");
//!         println!("{} by {:?}: {events:?}", change.generation(), change.thread_name());
//!     }
//!     Item::Lost(lost) => println!("read the ruleset again: {lost}"),
//!     _ => {}
//! }
//! # Ok::<(), chainwright::Error>(()) })??;
//! # Ok(())
//! # }
//! ```
//!
//! | to | start from |
//! |---|---|
//! | receive every change: blocking, with a deadline, or together with other file descriptors | [`Monitor`] |
//! | the same in an async program | `Monitor::into_stream` (feature `tokio`) |
//! | inspect one transaction | [`Change`], [`Event`] |
//! | recognize your own changes | [`Change::port`], [`Connection::port`](super::Connection::port), [`Committed::matches`](super::Committed::matches) |
//! | query the ruleset without system calls | [`Mirror`] |
//! | store changes, and apply them later without a kernel | [`Replay`] |
//! | trace the rules that a packet meets | [`Tracer`] |
//! | keep tables in a desired state | [`Connection::keep`](super::Connection::keep) |
//! | test without a kernel | `FakeKernel` of the crate `chainwright-testing` |
//! | group events received over your own socket | [`CommitAssembler`] |
//!
//! # What the kernel reports
//!
//! The kernel reports what each transaction added and deleted, in order, and then the new generation and the thread
//! that committed it. One [`Change`] is one complete transaction. The kernel doesn't report changes outside of
//! transactions, with one exception: a quota object is used up ([`Item::OutOfBand`]; Linux 5.10, 6.1 and 6.12 report it
//! with the next commit). [`Refreshed::SameGeneration`](super::Refreshed::SameGeneration) lists the changes that don't
//! move the generation.
//!
//! The kernel also doesn't report what disappears with another object: the elements of a deleted set, and an anonymous
//! chain (with [`ChainFlags::BINDING`](super::ChainFlags::BINDING)) and its rules when the rule that jumps to it is
//! deleted. (Observed on Linux 6.18.)
//!
//! # Lost events
//!
//! The kernel drops events that don't fit into the receive buffer, and events of objects that are larger than the
//! kernel's message buffer. The monitor always notices: generations are numbered without gaps, and the kernel marks the
//! socket. The monitor then discards what is queued, requests the current generation, and returns one [`Lost`] with the
//! missing generations. The next [`Change`] is the first one after them, and complete. A program that keeps a copy of
//! the ruleset reads it again after each `Lost`.

mod assembler;
mod change;
mod keep;
mod mirror;
mod monitor;
mod replay;
#[cfg(feature = "tokio")]
mod stream;
#[cfg(test)]
mod tests;
mod trace;
mod tracer;
mod waiting;

pub use assembler::{Cause, CommitAssembler, Item, Lost, OutOfBandEvent};
pub use change::{Change, Event, EventFlags, EventObject, Events};
pub use mirror::{Mirror, MirrorOptions, Update};
pub use monitor::{Monitor, MonitorOptions};
pub use replay::{Replay, RereadPart};
#[cfg(feature = "tokio")]
pub use stream::MonitorStream;
pub use trace::{PacketSummary, Trace, TraceKind, TraceRef};
pub use tracer::{Traced, TracedItem, Tracer, TracerOptions};
