//! Parses expressions.

use super::elements::{ElementSink, with_data};
use super::error::{Diagnostic, shown};
use super::lexer::Kind;
use super::parser::Parser;
use super::selectors::protocol;
use crate::syntax::{Element, Expr, Operator, Statement, Target, Verdict};

/// Maximum number of chained operators or map lookups.
const MAX_CHAIN_LENGTH: usize = 128;

/// Kind of expression that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Selectors, as on the left side of a match.
    Left,
    /// Constants, as on the right side of a match.
    Right,
    /// Either.
    Any,
}

impl Parser<'_> {
    /// Parses selectors with operators.
    pub(crate) fn left(&mut self) -> Result<Expr, Diagnostic> {
        self.concat(Side::Left)
    }

    /// Parses any value of a statement, including map lookups but not sets.
    pub(crate) fn any(&mut self) -> Result<Expr, Diagnostic> {
        let key = self.concat(Side::Any)?;
        self.mapped(key)
    }

    /// Parses map lookups after a key, if there are any.
    pub(crate) fn mapped(&mut self, key: Expr) -> Result<Expr, Diagnostic> {
        let mut key = key;
        let mut depth = 0;
        while self.at("map") {
            depth += 1;
            if depth > MAX_CHAIN_LENGTH {
                return Err(self.too_deep());
            }
            self.advance();
            let map = self.map()?;
            key = Expr::Map(Box::new(key), Box::new(map));
        }
        Ok(key)
    }

    /// Parses the map after `map` or `vmap`: in braces or by name.
    pub(crate) fn map(&mut self) -> Result<Expr, Diagnostic> {
        if self.at_sign("{") {
            return self.set(Side::Right, false);
        }
        if self.at_sign("@") {
            return self.reference().map(Expr::Reference);
        }
        if self.at_sign("$") {
            let start = self.current.span;
            return match self.variable()? {
                Expr::Reference(_) => {
                    let message =
                        "a variable for a map contains its elements: write `@` and the map's name";
                    Err(Diagnostic::new(self.since(start), message))
                }
                map => Ok(map),
            };
        }
        Err(self.unexpected(["{", "@"]))
    }

    /// Parses the set that a rule updates: `@name`, or a variable with this value.
    pub(crate) fn updated_set(&mut self) -> Result<String, Diagnostic> {
        if !self.at_sign("$") {
            return self.reference();
        }
        let start = self.current.span;
        match self.variable()? {
            Expr::Reference(name) => Ok(name),
            _ => {
                let message = "this variable is not a set: define it as `@name`";
                Err(Diagnostic::new(self.since(start), message))
            }
        }
    }

    /// Parses `@name`.
    pub(crate) fn reference(&mut self) -> Result<String, Diagnostic> {
        self.expect_sign("@")?;
        self.name_text("a set")
    }

    /// Parses the right side of a match: a set, a value, a range, flags, flags with a mask.
    pub(crate) fn right(&mut self) -> Result<Expr, Diagnostic> {
        if self.at_sign("{") {
            return self.set(Side::Right, false);
        }
        if self.at_sign("@") {
            return self.reference().map(Expr::Reference);
        }
        let first = self.concat(Side::Right)?;
        let first = self.flags(first)?;
        if self.eat_sign("/") {
            let of = self.concat(Side::Right)?;
            let of = self.flags(of)?;
            return Ok(Expr::Masked(Box::new(first), Box::new(of)));
        }
        Ok(first)
    }

    /// Parses the rest of a list `a,b,c` after the first flag.
    pub(crate) fn flags(&mut self, first: Expr) -> Result<Expr, Diagnostic> {
        if !self.at_sign(",") {
            return Ok(first);
        }
        let mut flags = vec![first];
        while self.eat_sign(",") {
            self.skip_lines();
            flags.push(self.concat(Side::Right)?);
        }
        Ok(Expr::Flags(flags))
    }

    /// Parses a concatenation.
    pub(crate) fn concat(&mut self, side: Side) -> Result<Expr, Diagnostic> {
        // A constant of selectors is part of a set's keys.
        let first = match side == Side::Left && self.is_at_constant() && self.next_is_sign(".") {
            true => Expr::Symbol(self.symbol()),
            false => self.limits(side)?,
        };
        if !self.at_sign(".") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat_sign(".") {
            let is_constant = side == Side::Left && self.is_at_constant() && !self.is_misspelled();
            parts.push(match is_constant {
                true => self.operation(Side::Right, 0)?,
                false => self.limits(side)?,
            });
        }
        Ok(Expr::Concat(parts))
    }

    /// Returns `true` if the current token is a constant and not the start of a selector.
    fn is_at_constant(&mut self) -> bool {
        if self.at_sign("(") {
            let digit = |word: String| word.starts_with(|c: char| c.is_ascii_digit());
            return self.next_if_word().is_some_and(digit);
        }
        // The name of a protocol, if no field follows.
        if self.is_word() && protocol(self.word()).is_some() {
            return matches!(self.next().kind, Kind::Sign(_));
        }
        let mut selectors = super::selector::words();
        self.is_quoted() || self.is_word() && !selectors.any(|word| self.at(word))
    }

    /// Returns `true` if the current token is a word, and what follows it can only belong to a selector.
    fn is_misspelled(&mut self) -> bool {
        const OPERATORS: [&str; 6] = ["vmap", "map", "and", "or", "xor", "mod"];
        let is_word = self.is_word() && !self.word().starts_with(|c: char| c.is_ascii_digit());
        is_word
            && self
                .next_if_word()
                .is_some_and(|word| !OPERATORS.contains(&&*word))
    }

    /// Parses a value, a range or a prefix.
    fn limits(&mut self, side: Side) -> Result<Expr, Diagnostic> {
        let value = self.operation(side, 0)?;
        if side == Side::Left || !is_constant(&value) {
            return Ok(value);
        }
        if self.eat_sign("-") {
            let last = self.operation(Side::Right, 0)?;
            return Ok(Expr::Range(Box::new(value), Box::new(last)));
        }
        let is_length = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if self.at_sign("/") && self.next_if_word().is_some_and(|word| is_length(&word)) {
            self.advance();
            let bits: u32 = self.number("a prefix length")?;
            return Ok(Expr::Prefix(Box::new(value), bits));
        }
        Ok(value)
    }

    /// Returns the operator at the current token.
    fn operator(&self) -> Option<Operator> {
        Some(match self.current.kind {
            Kind::Sign("&") => Operator::And,
            Kind::Sign("|") => Operator::Or,
            Kind::Sign("^") => Operator::Xor,
            Kind::Sign("<<") => Operator::LeftShift,
            Kind::Sign(">>") => Operator::RightShift,
            Kind::Word => match self.word() {
                "and" => Operator::And,
                "or" => Operator::Or,
                "xor" => Operator::Xor,
                "lshift" => Operator::LeftShift,
                "rshift" => Operator::RightShift,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Parses operators with at least this precedence.
    fn operation(&mut self, side: Side, tightest: u8) -> Result<Expr, Diagnostic> {
        let mut left = self.operand(side)?;
        let mut length = 0;
        while let Some(operator) = self.operator() {
            if operator.precedence() < tightest {
                break;
            }
            length += 1;
            if length > MAX_CHAIN_LENGTH {
                return Err(self.too_deep());
            }
            self.advance();
            let other = match side {
                Side::Right => Side::Right,
                Side::Left | Side::Any => Side::Any,
            };
            let right = self.operation(other, operator.precedence() + 1)?;
            left = Expr::binary(operator, left, right);
        }
        Ok(left)
    }

    /// Parses a single value.
    fn operand(&mut self, side: Side) -> Result<Expr, Diagnostic> {
        match self.current.kind {
            Kind::Sign("(") => {
                self.advance();
                let inner = self.deeper(|this| this.operation(side, 0))?;
                self.expect_sign(")")?;
                Ok(inner)
            }
            Kind::Sign("$") => self.variable(),
            Kind::Sign("@") if side != Side::Right => self.raw_payload(),
            Kind::Sign("-") if side == Side::Right => self.negative(),
            Kind::Sign("[") if side != Side::Left => self.bracketed(),
            Kind::Quoted if side != Side::Left => Ok(Expr::Symbol(self.symbol())),
            Kind::Word if side == Side::Right => Ok(Expr::Symbol(self.symbol())),
            Kind::Word => {
                if let Some(found) = self.selector(side)? {
                    return Ok(found);
                }
                match side {
                    Side::Any => Ok(Expr::Symbol(self.symbol())),
                    _ => Err(self.unknown_selector()),
                }
            }
            Kind::Sign("{") => Err(
                Diagnostic::new(self.current.span, "unexpected set").with_hint(
                    "a set follows the expression it is compared with: tcp dport { 22, 80 }",
                ),
            ),
            _ => Err(self.unexpected(match side {
                Side::Left => ["an expression like tcp dport"],
                Side::Right => ["a value"],
                Side::Any => ["a value or an expression"],
            })),
        }
    }

    /// Parses an IPv6 address in brackets, which a port may follow.
    fn bracketed(&mut self) -> Result<Expr, Diagnostic> {
        self.expect_sign("[")?;
        if !self.is_word() {
            return Err(self.unexpected(["an address"]));
        }
        let address = Expr::Symbol(self.symbol());
        self.expect_sign("]")?;
        Ok(address)
    }

    fn negative(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.current.span;
        self.advance();
        if !self.is_word() || super::parser::parse_number(self.word()).is_none() {
            return Err(self.unexpected(["a number"]));
        }
        let mut symbol = self.symbol();
        symbol.text = format!("-{}", symbol.text).into();
        symbol.span = self.since(start);
        Ok(Expr::Symbol(symbol))
    }

    /// Parses `$name`.
    pub(crate) fn variable(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.current.span;
        self.expect_sign("$")?;
        if !self.is_word() {
            return Err(self.unexpected(["the name of a variable"]));
        }
        let name = self.word().to_owned();
        self.advance();
        self.variables.value(&name, self.since(start))
    }

    /// Parses a set in braces.
    pub(crate) fn set(&mut self, side: Side, may_be_empty: bool) -> Result<Expr, Diagnostic> {
        let start = self.current.span;
        self.expect_sign("{")?;
        let mut elements: Vec<Element> = Vec::new();
        self.deeper(|this| this.elements(side, &mut elements))?;
        if elements.is_empty() && !may_be_empty {
            return Err(Diagnostic::new(
                self.since(start),
                "an anonymous set needs at least one element",
            ));
        }
        Ok(Expr::Set(elements))
    }

    /// Parses elements up to the closing brace.
    pub(crate) fn elements(
        &mut self,
        side: Side,
        taken: &mut impl ElementSink,
    ) -> Result<(), Diagnostic> {
        loop {
            self.skip_lines();
            if self.eat_sign("}") {
                return Ok(());
            }
            if !taken.take_run(self) {
                let start = self.current.span;
                match self.element(side)? {
                    // The elements of a nested set are added to the outer one.
                    Element {
                        key: Some(Expr::Set(inner)),
                        data,
                        ..
                    } => with_data(inner, data, self.since(start))?
                        .for_each(|element| taken.take(element)),
                    element => taken.take(element),
                }
            }
            self.skip_lines();
            if !self.at_sign(",") {
                return match self.eat_sign("}") {
                    true => Ok(()),
                    false => Err(self.unexpected([",", "}", ":"])),
                };
            }
            // Several commas are like one.
            while self.eat_sign(",") {
                self.skip_lines();
            }
        }
    }

    /// Parses an element: key, options and data.
    fn element(&mut self, side: Side) -> Result<Element, Diagnostic> {
        let start = self.current.span;
        let is_variable = self.at_sign("$");
        let key = match self.current.kind {
            Kind::Sign("*") => {
                self.advance();
                None
            }
            Kind::Sign("{") => Some(self.set(side, true)?),
            _ => Some(self.concat(side)?),
        };
        let mut element = Element::new(key);
        self.element_options(&mut element)?;
        self.skip_lines();
        let is_mapped = self.eat_sign(":");
        if is_mapped {
            self.skip_lines();
            element.data = Some(self.data(side)?);
        }
        let has_more = (is_mapped && !is_variable)
            || !element.statements.is_empty()
            || element.timeout.is_some()
            || element.expires.is_some()
            || element.comment.is_some();
        if matches!(element.key, Some(Expr::Set(_))) && has_more {
            let message = "a list of elements cannot have statements, a timeout or a comment, and only a variable can have data";
            return Err(Diagnostic::new(self.since(start), message));
        }
        Ok(element)
    }

    /// Parses the options of an element.
    fn element_options(&mut self, element: &mut Element) -> Result<(), Diagnostic> {
        loop {
            let start = self.current.span;
            if self.eat("timeout") {
                element.timeout = match self.eat("never") {
                    true => Some(0),
                    false => self.lifetime()?,
                };
            } else if self.eat("expires") {
                element.expires = self.lifetime()?;
            } else if self.eat("comment") {
                let comment = self.string("a comment")?;
                if element.comment.replace(comment).is_some() {
                    return Err(self.repeated(start, "comment"));
                }
            } else if let Some(statement) = Statement::parse_stateful(self)? {
                element.statements.push(statement);
            } else {
                return Ok(());
            }
        }
    }

    /// Parses the data of a map element.
    fn data(&mut self, side: Side) -> Result<Expr, Diagnostic> {
        match self.verdict()? {
            Some(Verdict::Jump(Target::Rules(_)) | Verdict::Goto(Target::Rules(_))) => {
                let message = "a verdict map can only jump to named chains";
                Err(Diagnostic::new(self.current.span, message))
            }
            Some(verdict) => Ok(Expr::Verdict(verdict)),
            None if self.at_sign("@") && side == Side::Right => {
                Err(self.unexpected(["a value", "a verdict"]))
            }
            None => self.concat(side),
        }
    }

    /// Parses a verdict, if there is one.
    pub(crate) fn verdict(&mut self) -> Result<Option<Verdict>, Diagnostic> {
        const WORDS: [&str; 7] = [
            "accept", "drop", "continue", "break", "return", "jump", "goto",
        ];
        Ok(Some(match self.eat_any(&WORDS) {
            Some("accept") => Verdict::Accept,
            Some("drop") => Verdict::Drop,
            Some("continue") => Verdict::Continue,
            Some("break") => Verdict::Break,
            Some("return") => Verdict::Return,
            Some("jump") => Verdict::Jump(self.target()?),
            Some("goto") => Verdict::Goto(self.target()?),
            _ => return Ok(None),
        }))
    }

    /// Parses the target of a jump or goto.
    fn target(&mut self) -> Result<Target, Diagnostic> {
        if self.at_sign("{") {
            return self.bound_rules().map(Target::Rules);
        }
        if self.at_sign("$") {
            let start = self.current.span;
            return match self.variable()? {
                Expr::Symbol(symbol) => Ok(Target::Chain(symbol.text.into())),
                _ => Err(Diagnostic::new(
                    self.since(start),
                    "this variable is not a chain name",
                )),
            };
        }
        self.name_text("a chain").map(Target::Chain)
    }

    /// Parses the value of a variable: anything allowed on the right side of a match.
    pub(crate) fn initial(&mut self) -> Result<Expr, Diagnostic> {
        if self.at_sign("{") {
            return self.set(Side::Right, true);
        }
        if self.at_sign("@") {
            return self.reference().map(Expr::Reference);
        }
        if self.at_end() {
            return Err(self.unexpected(["a value"]));
        }
        let first = self.concat(Side::Right)?;
        self.flags(first)
    }

    /// Parses a constant that consists of one word, or a variable with such a constant.
    pub(crate) fn constant(&mut self, what: &str) -> Result<crate::syntax::Symbol, Diagnostic> {
        let start = self.current.span;
        if self.at_sign("$") {
            return match self.variable()? {
                Expr::Symbol(mut symbol) => {
                    symbol.span = self.since(start);
                    Ok(symbol)
                }
                _ => {
                    let message = format!("this variable is not {what}");
                    Err(Diagnostic::new(self.since(start), message))
                }
            };
        }
        match self.is_word() || self.is_quoted() {
            true => Ok(self.symbol()),
            false => Err(self.unexpected([what])),
        }
    }

    /// Parses an explicit relational operator, if there is one.
    pub(crate) fn relation(&mut self) -> Option<crate::syntax::Relation> {
        use crate::syntax::Relation;
        let relation = match self.current.kind {
            Kind::Sign("==") => Relation::Equal,
            Kind::Sign("!=") => Relation::NotEqual,
            Kind::Sign("<") => Relation::Less,
            Kind::Sign("<=") => Relation::LessOrEqual,
            Kind::Sign(">") => Relation::Greater,
            Kind::Sign(">=") => Relation::GreaterOrEqual,
            Kind::Sign("!") => Relation::None,
            Kind::Word => match self.word() {
                "eq" => Relation::Equal,
                "ne" => Relation::NotEqual,
                "lt" => Relation::Less,
                "le" => Relation::LessOrEqual,
                "gt" => Relation::Greater,
                "ge" => Relation::GreaterOrEqual,
                "not" => Relation::None,
                _ => return None,
            },
            _ => return None,
        };
        self.advance();
        Some(relation)
    }

    /// Parses a statement that begins with an expression: a match, an assignment or a verdict map.
    pub(crate) fn comparison(&mut self) -> Result<Statement, Diagnostic> {
        let start = self.current.span;
        let left = self.left()?;
        let left = self.mapped(left)?;
        if self.eat("vmap") {
            let map = self.map()?;
            return Ok(Statement::VerdictMap(left, map));
        }
        if self.eat("set") {
            return self.assignment(left);
        }
        let relation = self.relation();
        if relation.is_none() && self.at_end() {
            let message = "missing comparison";
            return Err(Diagnostic::new(self.since(start), message).expecting([
                "a value", "==", "!=", "<", ">", "set", "map", "vmap", "{", "@",
            ]));
        }
        let relation = relation.unwrap_or(crate::syntax::Relation::Implicit);
        let right = self.right()?;
        let left = to_presence_test(left, &right);
        Ok(Statement::Match {
            left,
            relation,
            right,
        })
    }

    fn unknown_selector(&self) -> Diagnostic {
        let word = self.word();
        let statements = super::statement::words();
        let known = statements.chain(super::selector::words());
        let near = chainwright::internal::nearest(word.as_bytes(), known);
        let message = format!("unknown statement or expression `{}`", shown(word));
        let diagnostic = Diagnostic::new(self.current.span, message);
        match near {
            Some(near) => diagnostic.with_hint(format!("did you mean `{near}`?")),
            None => diagnostic.expecting([
                "a statement like accept, counter or log",
                "an expression like tcp dport",
            ]),
        }
    }
}

/// Returns `true` if the expression only consists of constants.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Symbol(_) => true,
        Expr::Binary(_, left, right) => is_constant(left) && is_constant(right),
        _ => false,
    }
}

/// Converts a `fib` expression that is compared with `exists` or `missing` to a test of existence.
pub(crate) fn to_presence_test(left: Expr, right: &Expr) -> Expr {
    use chainwright::nft::expr::{FibFlags, FibResult};
    let is_answer = |expr: &Expr| match expr {
        Expr::Symbol(symbol) => matches!(&*symbol.text, "exists" | "missing") && !symbol.is_quoted,
        _ => false,
    };
    let is_presence_test = match right {
        Expr::Set(elements) => elements
            .iter()
            .any(|element| element.key.as_ref().is_some_and(is_answer)),
        right => is_answer(right),
    };
    match left {
        Expr::Fib(flags, result @ (FibResult::OIF | FibResult::OIFNAME)) if is_presence_test => {
            Expr::Fib(flags | FibFlags::PRESENT, result)
        }
        left => left,
    }
}
