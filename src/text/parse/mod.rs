//! From text to commands.

mod error;
mod expr;
mod lexer;
mod nat;
mod parser;
mod selector;
mod source;
mod stateful;
mod statement;
mod tree;
mod variables;

pub use error::Error;
pub(super) use error::Fault;
pub(super) use source::{Directories, Includes, NoIncludes, Source, Sources};
pub(super) use tree::{
    Command, Declared, Elements, Kind, Object, Position, Rule, SetDeclaration, Verb,
};
