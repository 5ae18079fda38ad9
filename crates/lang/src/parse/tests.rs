//! What is read, what is not, and how it is said.

mod blocks;
mod corpus;
mod errors;
mod limits;
mod sources;
mod trees;

use super::said::said;
use super::{
    Command, Declared, Directories, Elements, Error, Includes, Kept, NoIncludes, Object, Position,
    Rule, SetDeclaration, Source, Sources, Verb, parse, parse_behind,
};

/// What a text says that includes nothing.
fn read(text: &str) -> Result<(Vec<Command>, Sources), Error> {
    parse(Source::new("test.nft", text), &NoIncludes)
}

/// The same of a text that is right.
fn commands(text: &str) -> Vec<Command> {
    match read(text) {
        Ok((commands, _)) => commands,
        Err(error) => panic!("{error}"),
    }
}

/// The rules among commands.
fn rules(commands: &[Command]) -> impl Iterator<Item = &Rule> {
    commands.iter().filter_map(|command| match &command.object {
        Object::Rule(rule) => Some(&**rule),
        _ => None,
    })
}

/// A line of a chain in a table of this family, said again.
fn again(family: &str, line: &str) -> Result<String, Error> {
    let (commands, _) = read(&format!(
        "table {family} t {{\nchain c {{\n{line}\n}}\n}}\n"
    ))?;
    let rule = rules(&commands).next().expect("the rule");
    Ok(said(rule).expect("it is written"))
}
