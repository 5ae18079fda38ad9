//! From text to commands.

mod error;
mod lexer;
mod parser;
mod source;
mod tree;
mod variables;

pub use error::Error;
pub(super) use error::Fault;
pub(super) use source::{Directories, Includes, NoIncludes, Source, Sources};
pub(super) use tree::{
    Command, Declared, Elements, Kind, Object, Position, Rule, SetDeclaration, Verb,
};
