//! Tests of parsing, error messages, and printing of the result.

mod blocks;
mod corpus;
mod errors;
mod limits;
mod sources;
mod trees;

use super::printed::printed;
use super::{
    Command, Declared, Directories, Elements, Error, Includes, NoIncludes, Object, Position, Rule,
    SavedVariables, SetDeclaration, Source, Sources, Verb, parse, parse_with_definitions,
};

/// Parses a text without includes.
fn read(text: &str) -> Result<(Vec<Command>, Sources), Error> {
    parse(Source::new("test.nft", text), &NoIncludes)
}

/// Parses a valid text.
fn commands(text: &str) -> Vec<Command> {
    match read(text) {
        Ok((commands, _)) => commands,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the rules among commands.
fn rules(commands: &[Command]) -> impl Iterator<Item = &Rule> {
    commands.iter().filter_map(|command| match &command.object {
        Object::Rule(rule) => Some(&**rule),
        _ => None,
    })
}

/// Parses a rule in a table of this family, and prints it.
fn again(family: &str, line: &str) -> Result<String, Error> {
    let (commands, _) = read(&format!(
        "table {family} t {{\nchain c {{\n{line}\n}}\n}}\n"
    ))?;
    let rule = rules(&commands).next().expect("no rule");
    Ok(printed(rule).expect("cannot print the rule"))
}
