//! Runs commands of nft's language like libnftables, without libnftables.
//!
//! [`Context`] runs texts, and writes to any [`Output`]. Built as a shared library (`libchainwright_libnftables.so`),
//! this crate has the C interface of libnftables(3), with the same names: installed as `libnftables.so.1`, it serves
//! programs that load that library. `README.md` lists the differences.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sandbox = chainwright_testing::Sandbox::new()?;
//! # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use chainwright_libnftables::Context;
//!
//! let mut context = Context::new();
//! let mut output = Vec::new();
//! context.run("rules", "add table inet filter; list tables", &mut output)?;
//! assert_eq!(output, b"table inet filter\n");
//! # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod c_api;
mod context;
mod echo;
mod monitor;

pub use context::{Context, DescribeRule, Error, OWN, Output};
pub use echo::{LOST_ECHO, added, added_json, line};
pub use monitor::{Changes, wait};
