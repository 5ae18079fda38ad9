//! Typed access to the fields of JSON objects.

use super::expr::VERSIONS;
use super::node::{Key, Kind, Node};
use crate::parse::Diagnostic;
use crate::parse::error::shown;
use crate::syntax::{Span, Symbol};
use chainwright::nft::Family;

/// Fields of an object; all keys are known.
pub(crate) struct Fields<'n, 't> {
    entries: &'n [(Key<'t>, Node<'t>)],
    span: Span,
}

impl<'n, 't> Fields<'n, 't> {
    /// Checks the keys of an object; `of` describes it in errors.
    pub(crate) fn new(node: &'n Node<'t>, of: &str, known: &[&str]) -> Result<Self, Diagnostic> {
        let Kind::Object(entries) = &node.kind else {
            return Err(node.wrong([&*format!("{of} as an object")]));
        };
        for (key, _) in entries {
            if !known.contains(&&*key.text) {
                let message = format!("unknown key `{}` in {of}", shown(&key.text));
                return Err(Diagnostic::new(key.span, message)
                    .expecting(known)
                    .nearest_to(&key.text));
            }
        }
        Ok(Self {
            entries,
            span: node.span,
        })
    }

    /// Returns the value of a key; null counts as missing.
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node<'t>> {
        let mut entries = self.entries.iter();
        let found = entries.find(|(known, _)| known.text == key);
        found
            .map(|(_, value)| value)
            .filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the value of a required key.
    pub(crate) fn need(&self, key: &str) -> Result<&'n Node<'t>, Diagnostic> {
        self.get(key).ok_or_else(|| self.missing(key))
    }

    pub(crate) fn missing(&self, key: &str) -> Diagnostic {
        Diagnostic::new(self.span, format!("missing `{key}`"))
    }

    /// Returns an optional number; `what` describes it in errors.
    pub(crate) fn number<N: TryFrom<u64>>(
        &self,
        key: &str,
        what: &str,
    ) -> Result<Option<N>, Diagnostic> {
        self.get(key).map(|node| node.number(what)).transpose()
    }

    /// Returns an optional boolean; false by default.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, Diagnostic> {
        match self.get(key).map(|node| (&node.kind, node)) {
            None => Ok(false),
            Some((Kind::Bool(flag), _)) => Ok(*flag),
            Some((_, node)) => Err(node.wrong(["true", "false"])),
        }
    }

    /// Returns an optional word, one of `words`; `what` describes others in errors.
    pub(crate) fn word<'w>(
        &self,
        key: &str,
        what: &str,
        words: &[&'w str],
    ) -> Result<Option<&'w str>, Diagnostic> {
        self.get(key).map(|node| node.word(what, words)).transpose()
    }

    /// Returns the flags of a list of words; `None` if there is none.
    pub(crate) fn flags<F: bitflags::Flags + Copy>(
        &self,
        what: &str,
        names: &[(&str, F)],
    ) -> Result<Option<F>, Diagnostic> {
        let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let mut all = None;
        for word in self.words("flags", what, &known)? {
            let flags = names.iter().filter(|(name, _)| *name == word);
            flags.for_each(|(_, flag)| all.get_or_insert(F::empty()).insert(*flag));
        }
        Ok(all)
    }

    /// Returns the IP version of a statement's addresses.
    pub(crate) fn version(&self) -> Result<Option<Family>, Diagnostic> {
        let word = self.word("family", "IP version", &VERSIONS)?;
        Ok(word.and_then(|word| word.parse().ok()))
    }

    /// Returns a list of these words, or a single one without a list.
    pub(crate) fn words<'w>(
        &self,
        key: &str,
        what: &str,
        words: &[&'w str],
    ) -> Result<Vec<&'w str>, Diagnostic> {
        let all = self.get(key).map_or(&[][..], Node::one_or_many);
        all.iter().map(|node| node.word(what, words)).collect()
    }
}

impl<'t> Node<'t> {
    /// Creates the error that the value has the wrong type.
    pub(crate) fn wrong<W: AsRef<str>>(&self, expected: impl IntoIterator<Item = W>) -> Diagnostic {
        let found = match &self.kind {
            Kind::Null => "null".to_owned(),
            Kind::Bool(flag) => flag.to_string(),
            Kind::Number(number) => number.to_string(),
            Kind::Negative(number) => format!("-{number}"),
            Kind::OtherNumber => "number".to_owned(),
            Kind::Text(text) => format!("\"{}\"", shown(text)),
            Kind::List(_) => "list".to_owned(),
            Kind::Object(_) => "object".to_owned(),
        };
        let message = format!("unexpected {found}");
        Diagnostic::new(self.span, message).expecting(expected)
    }

    /// Returns a string; `what` describes it in errors.
    pub(crate) fn text(&self, what: &str) -> Result<&str, Diagnostic> {
        match &self.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.wrong([&*format!("{what} in quotation marks")])),
        }
    }

    /// Returns a string without the placeholder for bytes that JSON cannot represent.
    pub(crate) fn lossless_text(&self, what: &str) -> Result<&str, Diagnostic> {
        let text = self.text(what)?;
        match text.contains(char::REPLACEMENT_CHARACTER) {
            true => {
                let message = format!("{what} has bytes that JSON cannot represent");
                Err(Diagnostic::new(self.span, message))
            }
            false => Ok(text),
        }
    }

    pub(crate) fn number<N: TryFrom<u64>>(&self, what: &str) -> Result<N, Diagnostic> {
        match self.kind {
            Kind::Number(number) => N::try_from(number).map_err(|_| {
                let largest = u128::MAX >> (128 - 8 * size_of::<N>());
                let message = format!("{number} is too large for {what}: the maximum is {largest}");
                Diagnostic::new(self.span, message)
            }),
            _ => Err(self.wrong([what])),
        }
    }

    /// Reads a number that nft writes as negative above its signed range.
    pub(crate) fn count(&self, what: &str) -> Result<u64, Diagnostic> {
        match self.kind {
            Kind::Negative(number) => match 0_i64.checked_sub_unsigned(number) {
                Some(negative) => Ok(negative.cast_unsigned()),
                None => Err(self.wrong([what])),
            },
            _ => self.number(what),
        }
    }

    /// Reads a number like [`count`](Self::count), with 32 bits.
    pub(crate) fn small_count(&self, what: &str) -> Result<u32, Diagnostic> {
        match self.kind {
            Kind::Negative(number) => {
                match 0_i32.checked_sub_unsigned(number.try_into().unwrap_or(u32::MAX)) {
                    Some(negative) => Ok(negative.cast_unsigned()),
                    None => Err(self.wrong([what])),
                }
            }
            _ => self.number(what),
        }
    }

    pub(crate) fn word<'w>(&self, what: &str, words: &[&'w str]) -> Result<&'w str, Diagnostic> {
        let Kind::Text(text) = &self.kind else {
            return Err(self.wrong(words));
        };
        let found = words.iter().copied().find(|word| word == text);
        found.ok_or_else(|| self.unknown(what, words))
    }

    /// Creates the error that the value is not one of the known words.
    pub(crate) fn unknown<W: AsRef<str>>(
        &self,
        what: &str,
        known: impl IntoIterator<Item = W>,
    ) -> Diagnostic {
        let Kind::Text(text) = &self.kind else {
            return self.wrong(known);
        };
        Diagnostic::new(self.span, format!("unknown {what} `{}`", shown(text)))
            .expecting(known)
            .nearest_to(text)
    }

    /// Returns the entries of a list, or the node itself.
    pub(crate) fn one_or_many(&self) -> &[Self] {
        match &self.kind {
            Kind::List(entries) => entries,
            _ => std::slice::from_ref(self),
        }
    }

    /// Returns the entries of a list.
    pub(crate) fn list(&self, what: &str) -> Result<&[Self], Diagnostic> {
        match &self.kind {
            Kind::List(entries) => Ok(entries),
            _ => Err(self.wrong([&*format!("a list of {what}")])),
        }
    }

    /// Returns the only entry of an object.
    pub(crate) fn tagged(&self, what: &str) -> Result<(&Key<'t>, &Self), Diagnostic> {
        match &self.kind {
            Kind::Object(entries) => match &entries[..] {
                [(key, value)] => Ok((key, value)),
                [] => Err(Diagnostic::new(
                    self.span,
                    format!("empty object: expected one key that names the {what}"),
                )),
                [_, (second, _), ..] => Err(Diagnostic::new(
                    second.span,
                    format!("unexpected second key: expected one key that names the {what}"),
                )),
            },
            _ => Err(self.wrong([&*format!("{what} as an object")])),
        }
    }

    pub(crate) const fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// Returns `true` if the value is null or an empty object.
    pub(crate) const fn is_bare(&self) -> bool {
        match &self.kind {
            Kind::Null => true,
            Kind::Object(entries) => entries.is_empty(),
            _ => false,
        }
    }

    /// Reads a constant, whose type is not known yet.
    pub(crate) fn symbol(&self, what: &str) -> Result<Symbol, Diagnostic> {
        let text = match &self.kind {
            Kind::Text(text) => (**text).into(),
            Kind::Number(number) => number.to_string().into(),
            Kind::Negative(number) => format!("-{number}").into(),
            // As in text.
            Kind::Bool(true) => "exists".into(),
            Kind::Bool(false) => "missing".into(),
            _ => return Err(self.wrong([what])),
        };
        Ok(Symbol {
            text,
            is_quoted: false,
            span: self.span,
        })
    }
}

impl Key<'_> {
    /// Returns the range from the key to the end of its value.
    pub(crate) const fn span_with(&self, value: &Node<'_>) -> Span {
        Span {
            end: value.span.end,
            ..self.span
        }
    }
}
