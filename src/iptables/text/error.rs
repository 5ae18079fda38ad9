//! Syntax errors and their positions.

use std::fmt;

pub(in crate::iptables) use crate::suggest::nearest;

/// An error at a position in a line.
#[derive(Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The position in the line, in bytes from 1.
    pub column: usize,
    /// The error.
    pub message: String,
    /// A suggestion.
    pub hint: Option<String>,
}

crate::debug_as_message!(ParseError);

impl ParseError {
    pub(super) fn new(column: usize, message: impl Into<String>) -> Self {
        Self {
            column,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}
