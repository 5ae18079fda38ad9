//! `nft`'s language: the types and the elements of sets, and whole rulesets.
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
//! | `translate` | iptables' rules in nft's language, and back |
//! | `json` | from sentences to libnftables' JSON, and from JSON to commands, with the feature `json` |
//!
//! ```
//! use chainwright::nft::DataType;
//! use chainwright_lang::{Milliseconds, data_type};
//!
//! let key = DataType::concatenation([DataType::IPV4_ADDR, DataType::INET_SERVICE]);
//! assert_eq!(data_type(key), "ipv4_addr . inet_service");
//! assert_eq!(Milliseconds(9_000_000).to_string(), "2h30m");
//! ```

mod compile;
mod constant;
mod describe;
mod headers;
mod hooks;
#[cfg(feature = "json")]
mod json;
mod keys;
mod list;
mod list_hooks;
mod monitor;
mod parse;
mod print;
mod question;
mod read;
mod run;
mod script;
mod stateful;
mod syntax;
mod traced;
pub mod translate;
mod tunnels;
mod typeof_;
mod types;
mod units;
mod value;
#[cfg(feature = "diff")]
mod words;
mod zone;

pub use chainwright::nft::Part;
#[cfg(feature = "json")]
pub use json::Json;
#[cfg(feature = "nftables-crate")]
pub use json::NotInStructs;
pub use list::elements::{element, elements};
pub use list::{Listing, Options, rule};
pub use list_hooks::HookListing;
pub use monitor::{EventFormatter, Formatted, Line};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use parse::parsed_rules;
pub use parse::{Error, read_text};
pub use question::{Answer, Known, Question, Watched};
pub use run::{Done, Echo, Mode, RunError};
pub use script::{Change, Definitions, Includes, Script};
pub use traced::traced;
#[cfg(feature = "diff")]
pub use words::Words;

pub use value::data_type;

pub use chainwright::nft::Milliseconds;

/// The page for who knows `nft`, whose examples are run.
#[cfg(all(doctest, feature = "json"))]
#[doc = include_str!("../../../docs/nft.md")]
struct Page;

/// What the rules of a text say, each as a command that adds it: for the fuzz targets.
///
/// # Errors
/// What is wrong with the text.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn nft_rules(text: &[u8]) -> Result<Vec<String>, Error> {
    parsed_rules(text)
}
