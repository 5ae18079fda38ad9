//! `define`, `redefine`, `undefine`, and what a `$name` stands for.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::Fault;
use crate::syntax::{Element, Expr, Place};

/// How much may be put in the place of names in any text, and how much more for each of its bytes.
const AT_LEAST: usize = 32_768;
const FOR_A_BYTE: usize = 4;
/// How deep the operations of a value may stand in one another.
const DEEPEST: usize = 32;

/// Up to how many names an error offers where one is not known.
const OFFERED: usize = 1000;

/// Names and their values that texts gave which are read already.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    values: Arc<HashMap<Box<str>, Value>>,
    /// How long those texts were together.
    length: usize,
}

impl Kept {
    /// Takes in what another text did.
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

/// What a text did to names outside of all blocks: those that have no value have lost it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defined {
    values: Scope,
    length: usize,
}

type Scope = HashMap<Box<str>, Option<Value>>;

/// Names and their values, by blocks.
#[derive(Debug)]
pub(super) struct Variables {
    kept: Kept,
    /// The outermost first.
    scopes: Vec<Scope>,
    /// How much may still be put in.
    left: usize,
    /// How long the texts are that are read.
    length: usize,
}

#[derive(Debug, Clone)]
struct Value {
    expr: Expr,
    size: usize,
}

impl Variables {
    /// With what was given before.
    pub(super) fn behind(kept: &Kept) -> Self {
        let more = kept.length.saturating_mul(FOR_A_BYTE);
        Self {
            kept: kept.clone(),
            scopes: vec![Scope::new()],
            left: AT_LEAST.saturating_add(more),
            length: 0,
        }
    }

    /// What was done outside of all blocks.
    pub(super) fn defined(&mut self) -> Defined {
        Defined {
            values: self
                .scopes
                .first_mut()
                .map(std::mem::take)
                .unwrap_or_default(),
            length: self.length,
        }
    }

    /// A text of this length is read.
    pub(super) fn allow(&mut self, length: usize) {
        self.left = self.left.saturating_add(length.saturating_mul(FOR_A_BYTE));
        self.length = self.length.saturating_add(length);
    }

    /// A block begins.
    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope::new());
    }

    /// It ends.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Whether a name had a value before this text, in this block.
    fn is_kept(&self, name: &str) -> bool {
        self.scopes.len() == 1 && self.kept.values.contains_key(name)
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
        let is_kept = self.is_kept(name);
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        let is_defined = scope.get(name).map_or(is_kept, Option::is_some);
        if !again && is_defined {
            let message = format!("`{name}` is defined already");
            let fault = Fault::new(place, message);
            return Err(fault.with_hint(format!("to give it another value: redefine {name} = …")));
        }
        scope.insert(name.into(), Some(Value { expr, size }));
        Ok(())
    }

    /// Takes the value of a name.
    pub(super) fn undefine(&mut self, name: &str, place: Place) -> Result<(), Fault> {
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
            false => Err(self.missing(name, place)),
        }
    }

    fn missing(&self, name: &str, place: Place) -> Fault {
        let fault = Fault::new(place, format!("no variable `{name}` is defined"));
        let here = self.scopes.iter().flatten();
        let here = here.filter_map(|(name, value)| value.as_ref().map(|_| &**name));
        let mut known: Vec<&str> = here
            .chain(self.kept.values.keys().map(|name| &**name))
            .take(OFFERED + 1)
            .collect();
        if known.len() > OFFERED {
            return fault;
        }
        known.sort_unstable();
        known.dedup();
        fault
            .expecting(known.iter().map(|known| format!("${known}")))
            .nearest_to(&format!("${name}"))
    }

    /// The value of a name, of the innermost block that gives it one. One of a text that was read before stands where it is
    /// asked for.
    pub(super) fn value(&mut self, name: &str, place: Place) -> Result<Expr, Fault> {
        let here = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        let (value, is_kept) = match here {
            Some(value) => (value.as_ref(), false),
            None => (self.kept.values.get(name), true),
        };
        let Some(value) = value else {
            return Err(self.missing(name, place));
        };
        let Some(left) = self.left.checked_sub(value.size) else {
            let message = "variables stand for more than fits: their values are put in too often";
            return Err(Fault::new(place, message));
        };
        self.left = left;
        let mut expr = value.expr.clone();
        if is_kept {
            put(&mut expr, place);
        }
        Ok(expr)
    }
}

/// Says of an expression that it stands at this place.
fn put(expr: &mut Expr, place: Place) {
    match expr {
        Expr::Symbol(symbol) => symbol.place = place,
        Expr::Binary(_, left, right)
        | Expr::Range(left, right)
        | Expr::Masked(left, right)
        | Expr::Map(left, right) => {
            put(left, place);
            put(right, place);
        }
        Expr::Prefix(value, _) => put(value, place),
        Expr::Hash { key: Some(key), .. } => put(key, place),
        Expr::Concat(parts) | Expr::Flags(parts) => {
            parts.iter_mut().for_each(|part| put(part, place));
        }
        Expr::Set(elements) => {
            for element in elements {
                let both = element.key.iter_mut().chain(&mut element.data);
                both.for_each(|expr| put(expr, place));
            }
        }
        _ => {}
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
