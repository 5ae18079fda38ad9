//! A ruleset that changes: who changed what, told by the kernel as it happens.
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
//!         let said: Vec<_> = change.events().map(|event| event.to_string()).collect();
//!         assert_eq!(said[1], "add chain ip nat KUBE-SERVICES handle 1");
//!         println!("{} by {:?}: {said:?}", change.generation(), change.thread_name());
//!     }
//!     Item::Lost(lost) => println!("read the ruleset anew: {lost}"),
//!     _ => {}
//! }
//! # Ok::<(), chainwright::Error>(()) })??;
//! # Ok(())
//! # }
//! ```
//!
//! | to | start from |
//! |---|---|
//! | be told of every change, as a blocking iterator, by a deadline, or beside other descriptors | [`Monitor`] |
//! | the same in an async program | `Monitor::into_stream` (feature `tokio`) |
//! | look at what one transaction did | [`Change`], [`Event`] |
//! | know one's own changes among them | [`Change::port`], [`Connection::port`](super::Connection::port), [`Committed::made`](super::Committed::made) |
//! | ask what is there without asking the kernel | [`Mirror`] |
//! | be told which rules a packet meets | [`Tracer`] |
//! | test all of this without a kernel | `FakeKernel` of the crate `chainwright-testing` |
//! | group events that came over a socket of one's own | [`CommitAssembler`] |
//!
//! # What is told
//!
//! The kernel tells what every transaction added and deleted, in its order, and then its generation and
//! the thread that committed it. One [`Change`] is one transaction, whole. What does not come by a
//! transaction is not told, but for one thing: that a quota object is used up ([`Item::Notice`]; Linux 5.10, 6.1
//! and 6.12 tell it when the next transaction is committed). What moves no generation stands with
//! [`Refreshed::SameGeneration`](super::Refreshed::SameGeneration).
//!
//! Nor is told what goes with something else: the elements of a deleted set, and an anonymous chain (one
//! with [`ChainFlags::BINDING`](super::ChainFlags::BINDING)) with its rules, when the rule that jumps to it
//! is deleted. (Seen on Linux 6.18.)
//!
//! # What is lost
//!
//! The kernel waits for nobody. What does not fit the receive buffer is dropped, and so is the event of
//! an object for which the kernel's message is too small. The monitor finds out, always: generations are
//! numbered without gaps, and the kernel marks the socket. Then it throws away what is queued, asks for the
//! generation, and says with one [`Lost`] which generations are missing. The next [`Change`] is the
//! first one behind them, and whole. Who keeps a picture of the ruleset reads it anew at each `Lost`.

mod assembler;
mod change;
mod mirror;
mod monitor;
#[cfg(feature = "tokio")]
mod stream;
#[cfg(test)]
mod tests;
mod trace;
mod tracer;
mod waiting;

pub use assembler::{Cause, CommitAssembler, Item, Lost, Notice};
pub use change::{Change, Event, EventFlags, EventObject, Events};
pub use mirror::{Mirror, MirrorOptions, Update};
pub use monitor::{Monitor, MonitorOptions};
#[cfg(feature = "tokio")]
pub use stream::MonitorStream;
pub use trace::{PacketWords, Trace, TraceKind, TraceRef};
pub use tracer::{Traced, TracedItem, Tracer, TracerOptions};
