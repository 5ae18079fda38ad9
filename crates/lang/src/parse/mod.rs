//! Parses text to commands.

pub(crate) mod chain;
pub(crate) mod elements;
pub(crate) mod error;
pub(crate) mod expr;
mod flowtable;
pub(crate) mod lexer;
pub(crate) mod object;
pub(crate) mod parser;
#[cfg(any(test, feature = "fuzzing"))]
mod printed;
pub(crate) mod query;
pub(crate) mod script;
pub(crate) mod selector;
pub(crate) mod selectors;
pub(crate) mod set;
pub(crate) mod source;
pub(crate) mod statement;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod tunnel;
pub(crate) mod variables;

pub(crate) use elements::ElementList;
#[cfg(feature = "json")]
pub(crate) use elements::with_data;
pub(crate) use error::Diagnostic;
pub use error::Error;
pub(crate) use parser::{number, parse_time};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use printed::parsed_rules;
pub(crate) use script::parse;
pub(crate) use script::parse_with_definitions;
pub use source::read_text;
pub(crate) use source::{Directories, Includes, NoIncludes, Source, Sources};
pub(crate) use tree::{
    Command, Declared, Described, Elements, EventFilter, EventKind, Kind, Object, Position, Rule,
    SetDeclaration, Verb, names_devices,
};
pub(crate) use variables::{Defined, SavedVariables};
