//! `define`, `redefine`, `undefine`, and what a `$name` stands for.

use std::collections::HashMap;

use super::error::Fault;
use crate::text::syntax::{Element, Expr, Place};

/// How much may be put in the place of names in any text, and how much more for each of its bytes.
const AT_LEAST: usize = 32_768;
const FOR_A_BYTE: usize = 4;
/// How deep the operations of a value may stand in one another.
const DEEPEST: usize = 32;

/// Names and their values, by blocks.
#[derive(Debug)]
pub(super) struct Variables {
    /// The outermost first.
    scopes: Vec<HashMap<Box<str>, Value>>,
    /// How much may still be put in.
    left: usize,
}

#[derive(Debug)]
struct Value {
    expr: Expr,
    size: usize,
}

impl Variables {
    pub(super) fn new() -> Self {
        Self {
            scopes: vec![HashMap::new()],
            left: AT_LEAST,
        }
    }

    /// A text of this length is read.
    pub(super) fn allow(&mut self, length: usize) {
        self.left = self.left.saturating_add(length.saturating_mul(FOR_A_BYTE));
    }

    /// A block begins.
    pub(super) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// It ends.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Gives a name a value in this block; `again` if it may have one already.
    pub(super) fn define(
        &mut self,
        name: &str,
        expr: Expr,
        again: bool,
        place: Place,
    ) -> Result<(), Fault> {
        let (size, depth) = measure(&expr);
        if depth > DEEPEST {
            let message = "this value has too many operations in one another";
            return Err(Fault::new(place, message));
        }
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        if !again && scope.contains_key(name) {
            let message = format!("`{name}` is defined already");
            let fault = Fault::new(place, message);
            return Err(fault.with_hint(format!("to give it another value: redefine {name} = …")));
        }
        scope.insert(name.into(), Value { expr, size });
        Ok(())
    }

    /// Takes the value of a name.
    pub(super) fn undefine(&mut self, name: &str, place: Place) -> Result<(), Fault> {
        let removed = self.scopes.last_mut().and_then(|scope| scope.remove(name));
        match removed {
            Some(_) => Ok(()),
            None => Err(self.missing(name, place)),
        }
    }

    fn missing(&self, name: &str, place: Place) -> Fault {
        let known = self.scopes.iter().flat_map(HashMap::keys);
        let mut known: Vec<&str> = known.map(|name| &**name).collect();
        known.sort_unstable();
        known.dedup();
        Fault::new(place, format!("no variable `{name}` is defined"))
            .expecting(known.iter().map(|known| format!("${known}")))
            .nearest_to(&format!("${name}"))
    }

    /// The value of a name, of the innermost block that gives it one.
    pub(super) fn value(&mut self, name: &str, place: Place) -> Result<Expr, Fault> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        let Some(value) = found else {
            return Err(self.missing(name, place));
        };
        let Some(left) = self.left.checked_sub(value.size) else {
            let message = "variables stand for more than fits: their values are put in too often";
            return Err(Fault::new(place, message));
        };
        self.left = left;
        Ok(value.expr.clone())
    }
}

/// What an expression holds, roughly in nodes, and how deep they stand in one another.
fn measure(expr: &Expr) -> (usize, usize) {
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
