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

#[cfg(test)]
pub(super) fn probe(
    family: crate::nft::Family,
    source: Source,
    includes: &dyn Includes,
) -> Result<statement::Said, Fault> {
    let mut parser = parser::Parser::new(includes);
    parser.open(vec![source], Default::default())?;
    parser.family = family;
    parser.skip_separators();
    parser.rule()
}
