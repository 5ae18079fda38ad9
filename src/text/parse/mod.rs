//! From text to commands.

mod tree;

pub(super) use tree::{
    Command, Declared, Elements, Kind, Object, Position, Rule, SetDeclaration, Verb,
};
