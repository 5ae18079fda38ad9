//! Parses stateful objects.

use super::error::Diagnostic;
use super::parser::Parser;
use super::script::InTable;
use super::tree::{Command, Object, Verb};
use crate::statements::{Declaration, ObjectKind};
use crate::syntax::Span;
use chainwright::nft::{Name, StatefulObject};

impl Parser<'_> {
    /// Parses a stateful object, after the keywords of its type.
    pub(crate) fn stateful_object(
        &mut self,
        verb: Verb,
        at: &InTable,
        kind: &ObjectKind,
        start: Span,
    ) -> Result<Command, Diagnostic> {
        let name = self.name("an object")?;
        let span = self.since(start);
        let declaration = (kind.parse)(self, span)?;
        Ok(Command {
            verb,
            object: Object::Stateful(object(at, name, declaration)?),
            span,
        })
    }
}

/// Creates an object.
pub(crate) fn object(
    at: &InTable,
    name: Name<'static>,
    (data, comment): Declaration,
) -> Result<StatefulObject<'static>, Diagnostic> {
    let object = StatefulObject::new(at.family, at.table.clone(), name, data);
    match comment {
        None => Ok(object),
        Some((comment, span)) => object
            .with_comment(&comment)
            .map_err(|error| Diagnostic::new(span, error.to_string())),
    }
}
