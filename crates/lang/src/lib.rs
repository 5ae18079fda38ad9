//! Parses and prints nft's language, as text and as JSON, and translates iptables' rules.
//!
//! | modules | purpose |
//! |---|---|
//! | `syntax` | syntax tree |
//! | `statements` | statements and stateful objects: all forms of each in one file |
//! | `types`, `headers`, `tunnels`, `keys`, `hooks` | tables of fields and keys, and the names of their values |
//! | `read` | kernel objects to syntax trees |
//! | `print`, `constant`, `list` | syntax trees to text |
//! | `parse` | text to commands |
//! | `compile`, `script` | commands to a transaction |
//! | `query`, `describe`, `run` | queries of a script, and running a script |
//! | `parts` | syntax trees of rules to lists of conditions and statements, for other crates |
//! | `dialect` | versions of nft, and the forms in which their output differs |
//! | `monitor`, `format_trace`, `list_hooks` | change events, packet traces and registered hook functions as text |
//! | `translate` | iptables rules to nft's language, and back |
//! | `json` | syntax trees to libnftables' JSON, and JSON to commands, with the feature `json` |
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
mod dialect;
mod format_trace;
#[cfg(feature = "json")]
mod json;
mod list;
mod list_hooks;
mod monitor;
#[cfg(feature = "diff")]
mod object_formatter;
mod parse;
mod parts;
mod print;
mod printable;
mod priorities;
mod protocols;
mod query;
mod read;
mod run;
mod script;
mod selectors;
mod statements;
mod syntax;
pub mod translate;
mod tunnels;
mod typeof_;
mod types;
mod value;
mod zone;

pub use chainwright::nft::Part;
pub use dialect::NftVersion;
pub use format_trace::format_trace;
#[cfg(feature = "json")]
pub use json::Json;
#[cfg(feature = "nftables-crate")]
pub use json::UnrepresentableListing;
pub use list::elements::{element, elements};
pub use list::{Listing, Options, rule};
pub use list_hooks::HookListing;
pub use monitor::{EventFormatter, Formatted, Line};
#[cfg(feature = "diff")]
pub use object_formatter::ObjectFormatter;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use parse::parsed_rules;
pub use parse::{Error, read_text};
pub use parts::{MatchField, MatchValue, RuleEnd, RulePart, RuleParts};
pub use printable::Printable;
pub use query::{EventFilter, Query, QueryCache, QueryResult, find_element};
pub use run::{Echo, RunError, RunMode, RunOutcome};
pub use script::{CompiledScript, Definitions, Includes, Script};

pub use value::data_type;

pub use chainwright::nft::Milliseconds;

/// Runs the examples of the page for users of `nft`.
#[cfg(all(doctest, feature = "json"))]
#[doc = include_str!("../../../docs/nft.md")]
struct Page;

/// Parses a text and returns its rules, each as a command that adds it. For the fuzz targets.
///
/// # Errors
/// The text cannot be parsed.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn nft_rules(text: &[u8]) -> Result<Vec<String>, Error> {
    parsed_rules(text)
}
