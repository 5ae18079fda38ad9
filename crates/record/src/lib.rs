//! Records every change of a network namespace's nf_tables, with the process that made it, and reads it back.
//!
//! ```
//! use std::time::Duration;
//!
//! use chainwright::nft::{Connection, Family, Table, Transaction};
//! use chainwright_record::{Archive, Entry, Recorder, RecorderOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
//! let directory = tempfile::tempdir()?;
//! let mut recorder = Recorder::open(
//!     directory.path(),
//!     Connection::open()?,
//!     RecorderOptions::default(),
//! )?;
//!
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "nat"))?;
//! Connection::open()?.commit(&tx)?;
//! recorder.wait(Duration::from_secs(1))?;
//!
//! let archive = Archive::open(directory.path())?;
//! for entry in archive.entries() {
//!     if let Entry::Transaction(transaction) = entry? {
//!         println!("{:?} by {}", transaction.change, transaction.process);
//!     }
//! }
//! let state = archive.state_at(chainwright_record::Moment::Now)?;
//! assert!(state.snapshot.table(Family::IP, "nat").is_some());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! | topic | module |
//! |---|---|
//! | file format: frames, checksums, records | `format.rs` |
//! | ring of files | `ring.rs` |
//! | recording | `recorder.rs` |
//! | processes | `process.rs` |
//! | reading | `archive.rs`, `player.rs` |
//!
//! A state is as exact as that of a [`Mirror`](chainwright::nft::live::Mirror), which lists what events don't show:
//! counters, and elements that rules add.

#![forbid(unsafe_code)]

mod archive;
mod error;
mod format;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod player;
mod process;
mod recorder;
mod ring;

pub use archive::{Archive, Entries, Moment, Segment, State};
pub use error::Error;
pub use format::{Entry, Gap, Reason, Start, Transaction};
pub use player::Player;
pub use process::{Parent, Presence, Process};
pub use recorder::Recorder;
pub use ring::{RecorderOptions, Report};
