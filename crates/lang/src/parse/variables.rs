//! Variables: `define`, `redefine`, `undefine` and `$name`.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::Diagnostic;
use crate::syntax::{Element, Expr, Span};

/// Limit for the size of substituted values: a minimum, and an increment for each byte of source text.
const MIN_EXPANSION: usize = 32_768;
const EXPANSION_PER_BYTE: usize = 4;
/// Maximum nesting of operators in a value.
const MAX_DEPTH: usize = 32;

/// Maximum number of known variables for an error to suggest similar names.
const OFFERED: usize = 1000;

/// Variables of previous texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct SavedVariables {
    values: Arc<HashMap<Box<str>, Value>>,
    /// Total length of these texts.
    length: usize,
}

impl SavedVariables {
    /// Applies the changes of another text.
    pub(crate) fn keep(&mut self, defined: Defined) {
        let values = Arc::make_mut(&mut self.values);
        for (name, value) in defined.values {
            match value {
                Some(value) => values.insert(name, value),
                None => values.remove(&name),
            };
        }
        self.length = self.length.saturating_add(defined.length);
    }
}

/// Changes of a text to variables outside of blocks; `None` stands for `undefine`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defined {
    values: Scope,
    length: usize,
}

type Scope = HashMap<Box<str>, Option<Value>>;

/// Variables by scope.
#[derive(Debug)]
pub(crate) struct Variables {
    kept: SavedVariables,
    /// Scopes; the outermost is first.
    scopes: Vec<Scope>,
    /// Remaining size of values that may be substituted.
    left: usize,
    /// Total length of the current texts.
    length: usize,
}

#[derive(Debug, Clone)]
struct Value {
    expr: Expr,
    size: usize,
}

impl Variables {
    /// Starts with the variables of previous texts.
    pub(crate) fn extending(kept: &SavedVariables) -> Self {
        let more = kept.length.saturating_mul(EXPANSION_PER_BYTE);
        Self {
            kept: kept.clone(),
            scopes: vec![Scope::new()],
            left: MIN_EXPANSION.saturating_add(more),
            length: 0,
        }
    }

    /// Returns the changes outside of blocks.
    pub(crate) fn defined(&mut self) -> Defined {
        Defined {
            values: self
                .scopes
                .first_mut()
                .map(std::mem::take)
                .unwrap_or_default(),
            length: self.length,
        }
    }

    /// Raises the limit for a text of this length.
    pub(crate) fn allow(&mut self, length: usize) {
        self.left = self
            .left
            .saturating_add(length.saturating_mul(EXPANSION_PER_BYTE));
        self.length = self.length.saturating_add(length);
    }

    /// Enters a block.
    pub(crate) fn enter(&mut self) {
        self.scopes.push(Scope::new());
    }

    /// Leaves a block.
    pub(crate) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Returns `true` if a previous text defined the name, and the current scope is the outermost.
    fn is_kept(&self, name: &str) -> bool {
        self.scopes.len() == 1 && self.kept.values.contains_key(name)
    }

    /// Defines a variable in the current scope; `again` allows redefinition.
    pub(crate) fn define(
        &mut self,
        name: &str,
        expr: Expr,
        again: bool,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let (size, depth) = measure(&expr);
        if depth > MAX_DEPTH {
            let message = "too many nested operations in this value";
            return Err(Diagnostic::new(span, message));
        }
        let is_kept = self.is_kept(name);
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        let is_defined = scope.get(name).map_or(is_kept, Option::is_some);
        if !again && is_defined {
            let message = format!("variable `{name}` is already defined");
            let diagnostic = Diagnostic::new(span, message);
            return Err(diagnostic.with_hint(format!("to change its value: redefine {name} = …")));
        }
        scope.insert(name.into(), Some(Value { expr, size }));
        Ok(())
    }

    /// Undefines a variable.
    pub(crate) fn undefine(&mut self, name: &str, span: Span) -> Result<(), Diagnostic> {
        let is_kept = self.is_kept(name);
        let scope = self.scopes.last_mut();
        let is_removed = scope.is_some_and(|scope| {
            let is_defined = scope.get(name).map_or(is_kept, Option::is_some);
            match is_kept {
                true => scope.insert(name.into(), None),
                false => scope.remove(name),
            };
            is_defined
        });
        match is_removed {
            true => Ok(()),
            false => Err(self.missing(name, span)),
        }
    }

    fn missing(&self, name: &str, span: Span) -> Diagnostic {
        let diagnostic = Diagnostic::new(span, format!("undefined variable `{name}`"));
        let here = self.scopes.iter().flatten();
        let here = here.filter_map(|(name, value)| value.as_ref().map(|_| &**name));
        let mut known: Vec<&str> = here
            .chain(self.kept.values.keys().map(|name| &**name))
            .take(OFFERED + 1)
            .collect();
        if known.len() > OFFERED {
            return diagnostic;
        }
        known.sort_unstable();
        known.dedup();
        diagnostic
            .expecting(known.iter().map(|known| format!("${known}")))
            .nearest_to(&format!("${name}"))
    }

    /// Returns the value of a variable in the innermost scope that defines it. A value of a previous text gets the
    /// location of the reference.
    pub(crate) fn value(&mut self, name: &str, span: Span) -> Result<Expr, Diagnostic> {
        let here = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        let (value, is_kept) = match here {
            Some(value) => (value.as_ref(), false),
            None => (self.kept.values.get(name), true),
        };
        let Some(value) = value else {
            return Err(self.missing(name, span));
        };
        let Some(left) = self.left.checked_sub(value.size) else {
            let message = "variables expand to too much text";
            return Err(Diagnostic::new(span, message));
        };
        self.left = left;
        let mut expr = value.expr.clone();
        if is_kept {
            put(&mut expr, span);
        }
        Ok(expr)
    }
}

/// Sets the location of an expression.
fn put(expr: &mut Expr, span: Span) {
    match expr {
        Expr::Symbol(symbol) => symbol.span = span,
        Expr::Binary(_, left, right)
        | Expr::Range(left, right)
        | Expr::Masked(left, right)
        | Expr::Map(left, right) => {
            put(left, span);
            put(right, span);
        }
        Expr::Prefix(value, _) => put(value, span),
        Expr::Hash { key: Some(key), .. } => put(key, span),
        Expr::Concat(parts) | Expr::Flags(parts) => {
            parts.iter_mut().for_each(|part| put(part, span));
        }
        Expr::Set(elements) => {
            for element in elements {
                let both = element.key.iter_mut().chain(&mut element.data);
                both.for_each(|expr| put(expr, span));
            }
        }
        _ => {}
    }
}

/// Returns the approximate size of an expression in nodes, and its depth.
pub(crate) fn measure(expr: &Expr) -> (usize, usize) {
    let (size, depth) = match expr {
        Expr::Symbol(symbol) => (symbol.text.len() / 64, 0),
        Expr::Reference(name) | Expr::Object(name) => (name.len() / 64, 0),
        Expr::Binary(_, left, right)
        | Expr::Range(left, right)
        | Expr::Masked(left, right)
        | Expr::Map(left, right) => both(measure(left), measure(right)),
        Expr::Prefix(value, _) => measure(value),
        Expr::Hash { key: Some(key), .. } => measure(key),
        Expr::Concat(parts) | Expr::Flags(parts) => parts.iter().map(measure).fold((0, 0), both),
        Expr::Set(elements) => elements.iter().map(measure_element).fold((0, 0), both),
        _ => (0, 0),
    };
    (size + 1, depth + 1)
}

fn measure_element(element: &Element) -> (usize, usize) {
    let exprs = element.key.iter().chain(&element.data);
    let (size, depth) = exprs.map(measure).fold((0, 0), both);
    let comment = element.comment.as_deref().map_or(0, str::len) / 64;
    (size + element.statements.len() + comment + 1, depth)
}

fn both(one: (usize, usize), other: (usize, usize)) -> (usize, usize) {
    (one.0 + other.0, one.1.max(other.1))
}
