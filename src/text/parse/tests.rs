//! What is read, what is not, and how it is said.

mod corpus;

use super::{Command, Error, NoIncludes, Source, Sources, parse};

/// What a text says that includes nothing.
fn read(text: &str) -> Result<(Vec<Command>, Sources), Error> {
    parse(Source::new("test.nft", text), &NoIncludes)
}
