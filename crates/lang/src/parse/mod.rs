//! Parses text to commands.

pub(super) mod chain;
mod elements;
pub(super) mod error;
pub(super) mod expr;
mod flowtable;
mod inside;
pub(super) mod known;
mod lexer;
pub(super) mod nat;
pub(super) mod object;
pub(super) mod parser;
#[cfg(any(test, feature = "fuzzing"))]
mod printed;
pub(super) mod query;
pub(super) mod script;
mod selector;
pub(super) mod set;
mod source;
pub(super) mod stateful;
pub(super) mod statement;
pub(super) mod table;
#[cfg(test)]
mod tests;
pub(super) mod tree;
mod tunnel;
mod variables;

pub(super) use elements::ElementList;
#[cfg(feature = "json")]
pub(super) use elements::with_data;
pub(super) use error::Diagnostic;
pub use error::Error;
pub(super) use parser::{number, parse_time};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use printed::parsed_rules;
#[cfg(feature = "json")]
pub(super) use query::RESET;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) use script::parse;
pub(super) use script::parse_with_definitions;
pub use source::read_text;
pub(super) use source::{Directories, Includes, NoIncludes, Source, Sources};
pub(super) use tree::{
    Command, Declared, Described, Elements, EventFilter, EventKind, Kind, Object, Position, Rule,
    SetDeclaration, Verb, names_devices,
};
pub(super) use tunnel::DIRECTIONS;
#[cfg(feature = "json")]
pub(super) use tunnel::geneve_data;
pub(super) use variables::{Defined, SavedVariables};
