//! `nft`'s language: the types and the elements of sets; with the feature `text` whole rulesets.
//!
//! | in | is |
//! |---|---|
//! | `syntax` | what a sentence is made of |
//! | `types`, `headers`, `tunnels`, `keys`, `hooks` | what there is to be asked, and what its values are called |
//! | `read` | from the kernel's objects to sentences |
//! | `print`, `constant`, `list` | from sentences to text |
//! | `parse` | from text to commands |
//! | `compile`, `script` | from commands to a transaction |
//! | `question`, `describe`, `run` | what a script asks for, and a script carried out |
//! | `told`, `traced`, `registered` | from what the kernel tells of changes, packets and hooks to text |
//! | `json` | from sentences to libnftables' JSON, and from JSON to commands, with the feature `text-json` |
//!
//! ```
//! use chainwright::nft::DataType;
//! use chainwright::text::{Milliseconds, data_type};
//!
//! let key = DataType::concatenation([DataType::IPV4_ADDR, DataType::INET_SERVICE]);
//! assert_eq!(data_type(key), "ipv4_addr . inet_service");
//! assert_eq!(Milliseconds(9_000_000).to_string(), "2h30m");
//! ```

#[cfg(feature = "text")]
mod compile;
#[cfg(feature = "text")]
mod constant;
#[cfg(feature = "text")]
mod describe;
#[cfg(feature = "text")]
mod headers;
#[cfg(feature = "text")]
mod hooks;
#[cfg(feature = "text-json")]
mod json;
#[cfg(feature = "text")]
mod keys;
#[cfg(feature = "text")]
mod list;
#[cfg(feature = "text")]
mod list_hooks;
#[cfg(feature = "text")]
mod monitor;
#[cfg(feature = "text")]
mod parse;
#[cfg(feature = "text")]
mod print;
#[cfg(feature = "text")]
mod question;
#[cfg(feature = "text")]
mod read;
#[cfg(feature = "text")]
mod run;
#[cfg(feature = "text")]
mod script;
#[cfg(feature = "text")]
mod stateful;
#[cfg(feature = "text")]
mod syntax;
#[cfg(feature = "text")]
mod traced;
#[cfg(feature = "text")]
mod tunnels;
#[cfg(feature = "text")]
mod typeof_;
#[cfg(feature = "text")]
mod types;
#[cfg(feature = "text")]
mod units;
mod value;
#[cfg(all(feature = "text", feature = "diff"))]
mod words;
#[cfg(feature = "text")]
mod zone;

#[cfg(feature = "text")]
pub use crate::nft::Part;
#[cfg(feature = "text-json")]
pub use json::Json;
#[cfg(feature = "nftables-crate")]
pub use json::NotInStructs;
#[cfg(feature = "text")]
pub use list::elements::{element, elements};
#[cfg(feature = "text")]
pub use list::{Listing, Options, rule};
#[cfg(feature = "text")]
pub use list_hooks::HookListing;
#[cfg(feature = "text")]
pub use monitor::{EventFormatter, Formatted, Line};
#[cfg(all(feature = "text", any(test, feature = "fuzzing")))]
pub(crate) use parse::parsed_rules;
#[cfg(feature = "text")]
pub use parse::{Error, read_text};
#[cfg(feature = "text")]
pub use question::{Answer, Known, Question, Watched};
#[cfg(feature = "text")]
pub use run::{Done, Echo, Mode, RunError};
#[cfg(feature = "text")]
pub use script::{Change, Definitions, Includes, Script};
#[cfg(feature = "text")]
pub use traced::traced;
#[cfg(all(feature = "text", feature = "diff"))]
pub use words::Words;

pub use value::data_type;

pub use crate::nft::Milliseconds;

/// The page for who knows `nft`, whose examples are run.
#[cfg(all(doctest, feature = "text-json", feature = "sandbox"))]
#[doc = include_str!("../../docs/nft.md")]
struct Page;
