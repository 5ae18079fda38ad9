//! From text to commands.

mod chain;
mod elements;
mod error;
mod expr;
mod flowtable;
mod lexer;
mod nat;
mod object;
mod parser;
#[cfg(any(test, feature = "fuzzing"))]
mod said;
mod script;
mod selector;
mod set;
mod source;
mod stateful;
mod statement;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod variables;

pub(super) use elements::ElementList;
pub use error::Error;
pub(super) use error::Fault;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use said::parsed_rules;
pub(super) use script::parse;
pub(super) use source::{Directories, Includes, NoIncludes, Source, Sources};
pub(super) use tree::{Command, Declared, Elements, Object, Position, Rule, SetDeclaration, Verb};
